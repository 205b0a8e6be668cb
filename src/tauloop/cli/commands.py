"""The commands of ``tauloop``: module, summary, and the Python functions that they call.

Help, tab completion, documentation pages and the tests of the grammar
(docs/decisions/command-line.md) follow from the tables below.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class CommandEntry(NamedTuple):
    """A command: it parses its arguments, calls one function, and prints the result.

    Attributes:
        module: module of the command below `tauloop.cli`.
        function: name of the command's function in this module.
        summary: line of the command in the help.
        python: Python functions that the command calls. The first has the same meaning as the
            command; empty for a command without a counterpart in Python.
    """

    module: str
    function: str
    summary: str
    python: tuple[str, ...] = ()


class CommandGroup(NamedTuple):
    """Commands that share their first word; the word alone prints their help.

    Attributes:
        summary: line of the group in the help.
        commands: commands of the group by name.
    """

    summary: str
    commands: Mapping[str, CommandEntry]


PLAN = CommandGroup(
    "Plan a motion or the poses of a calibration.",
    {
        "stroke": CommandEntry(
            "plan.stroke",
            "stroke",
            "Plan a trajectory: a path, a motion law and a duration.",
            ("tl.plan_stroke",),
        ),
        "path": CommandEntry(
            "plan.path",
            "path",
            "Plan the fastest motion along a path, under limits.",
            ("tl.plan_path",),
        ),
        "transfer": CommandEntry(
            "plan.transfer",
            "transfer",
            "Plan the optimal path and motion between two poses.",
            ("tl.plan_transfer",),
        ),
        "cycle": CommandEntry(
            "plan.cycle",
            "cycle",
            "Plan a cyclic motion between stations: pick and place, conveyors.",
            ("tl.plan_cycle",),
        ),
        "excitation": CommandEntry(
            "plan.excitation",
            "excitation",
            "Optimize a motion for identification, under limits.",
            ("tl.plan_excitation",),
        ),
        "poses": CommandEntry(
            "plan.poses",
            "poses",
            "Choose the poses to measure for a calibration.",
            ("tl.plan_poses",),
        ),
    },
)
EXPORT = CommandGroup(
    "Write a machine as code for controllers and simulators.",
    {
        "c": CommandEntry(
            "deliver.export_c", "export_c", "Write functions of a machine as C99.", ("tl.export_c",)
        ),
        "controller": CommandEntry(
            "deliver.export_controller",
            "export_controller",
            "Write a sampled controller as C99.",
            ("tl.export_controller",),
        ),
        "fmu": CommandEntry(
            "deliver.export_fmu",
            "export_fmu",
            "Write a machine or its controller as an FMU.",
            ("tl.export_fmu",),
        ),
        "compensation": CommandEntry(
            "deliver.export_compensation",
            "export_compensation",
            "Write a C99 function that corrects motors for loads and heat.",
            ("tl.export_compensation",),
        ),
        "linuxcnc": CommandEntry(
            "deliver.export_linuxcnc",
            "export_linuxcnc",
            "Write a component for LinuxCNC.",
            ("tl.export_linuxcnc",),
        ),
        "ros2": CommandEntry(
            "deliver.export_ros2",
            "export_ros2",
            "Write a package for ROS 2.",
            ("tl.export_ros2",),
        ),
        "transmission": CommandEntry(
            "deliver.export_transmission",
            "export_transmission",
            "Write the map between joints and motors of a parallel ankle.",
            ("tl.export_transmission",),
        ),
    },
)
RUN = CommandGroup(
    "Run a machine in real time.",
    {
        "plant": CommandEntry(
            "deliver.run_plant",
            "run_plant",
            "Run a machine as a plant for a controller in another process.",
            ("tl.run_plant",),
        ),
        "stream": CommandEntry(
            "deliver.run_stream",
            "run_stream",
            "Stream a machine in motion to Rerun or Foxglove.",
            ("tl.run_stream",),
        ),
    },
)

#: Contents of the top level by sections of the help, in order.
HELP_SECTIONS: Mapping[str, Mapping[str, CommandEntry | CommandGroup]] = {
    "Start": {
        "demo": CommandEntry(
            "start.demo",
            "demo",
            "Write a page with a machine in motion, and name the next steps.",
            ("tl.demo",),
        ),
        "new": CommandEntry(
            "start.new",
            "new",
            "Write a machine file with your own dimensions.",
            ("tl.new_machine",),
        ),
        "list": CommandEntry(
            "start.list",
            "list_shipped",
            "List the shipped machines or drive lines.",
            ("tl.mechanism.machine_index", "tl.drives.shipped_drives"),
        ),
        "show": CommandEntry(
            "start.show",
            "show",
            "Show coordinates, mobility, loops, actuators and parameters.",
            ("tl.describe",),
        ),
        "check": CommandEntry(
            "start.check",
            "check",
            "Check a machine file: is it valid, do loops close, is it driven?",
            ("tl.check",),
        ),
        "view": CommandEntry(
            "start.view",
            "view",
            "Show a machine in the browser, or write a picture or animation.",
            ("tl.view",),
        ),
        "convert": CommandEntry(
            "start.convert",
            "convert",
            "Write a machine as YAML, MJCF, SDF or URDF.",
            ("tl.convert",),
        ),
    },
    "Compute": {
        "fk": CommandEntry(
            "compute.fk",
            "fk",
            "Compute forward kinematics: the platform from the actuators.",
            ("tl.forward_kinematics",),
        ),
        "ik": CommandEntry(
            "compute.ik",
            "ik",
            "Compute inverse kinematics: the actuators from the platform.",
            ("tl.inverse_kinematics",),
        ),
        "jacobian": CommandEntry(
            "compute.jacobian",
            "jacobian",
            "Compute the Jacobian of tool, actuators or platform.",
            ("tl.jacobian",),
        ),
        "modes": CommandEntry(
            "compute.modes",
            "modes",
            "List all assembly modes or working modes of one pose.",
            ("tl.assembly_modes", "tl.working_modes"),
        ),
        "workspace": CommandEntry(
            "compute.workspace",
            "workspace",
            "Map the workspace: reach, singularities, interference.",
            ("tl.workspace",),
        ),
        "dynamics": CommandEntry(
            "compute.dynamics",
            "dynamics",
            "Compute the actuator forces of a motion (inverse dynamics).",
            ("tl.inverse_dynamics",),
        ),
        "stiffness": CommandEntry(
            "compute.stiffness",
            "stiffness",
            "Compute stiffness, deflection, stress and buckling.",
            ("tl.stiffness",),
        ),
        "vibration": CommandEntry(
            "compute.vibration",
            "vibration",
            "Compute natural frequencies and frequency responses.",
            ("tl.vibration",),
        ),
        "simulate": CommandEntry(
            "compute.simulate",
            "simulate",
            "Simulate a machine: constant forces, free motion, a round trip.",
            ("tl.simulate", "tl.co_simulate", "tl.simulate_elastic"),
        ),
    },
    "Plan": {"plan": PLAN},
    "Measure": {
        "identify": CommandEntry(
            "measure.identify",
            "identify",
            "Identify dynamic parameters from logs.",
            ("tl.identify", "tl.fold_logs"),
        ),
        "calibrate": CommandEntry(
            "measure.calibrate",
            "calibrate",
            "Calibrate a machine's geometry, with error bars.",
            ("tl.calibrate",),
        ),
        "verify": CommandEntry(
            "measure.verify",
            "verify",
            "Compare the dynamics with Pinocchio and MuJoCo.",
            ("tl.verify",),
        ),
    },
    "Deliver": {
        "export": EXPORT,
        "run": RUN,
        "report": CommandEntry(
            "deliver.report",
            "report",
            "Write a page of results: tables, pictures, the machine in motion.",
            ("tl.write_report",),
        ),
    },
}
#: The groups, which the help lists below the sections. Their names are nouns.
COMMAND_GROUPS: Mapping[str, CommandGroup] = {
    "control": CommandGroup(
        "Sampled control of a machine.",
        {
            "follow": CommandEntry(
                "control.follow",
                "follow",
                "Follow a trajectory under sampled controllers.",
                ("tl.follow_path", "tl.follow_path_with_exported_code", "tl.co_simulate"),
            ),
            "collision": CommandEntry(
                "control.collision",
                "collision",
                "Compute how soon a collision of the platform is detected.",
                ("tl.simulate_collision_detection",),
            ),
        },
    ),
    "drive": CommandGroup(
        "Drive lines: motors, transmissions and their control.",
        {
            "step": CommandEntry(
                "drive.step",
                "step",
                "Simulate the step response of a drive line.",
                ("tl.simulate_drive_line",),
            ),
            "tune": CommandEntry(
                "drive.tune", "tune", "Tune a drive line's control.", ("tl.tune_drive_line",)
            ),
            "fit": CommandEntry(
                "drive.fit",
                "fit",
                "Identify a drive line's parameters from measured steps.",
                ("tl.fit_drive_line",),
            ),
        },
    ),
    "accuracy": CommandGroup(
        "The accuracy of a machine at its tool.",
        {
            "backlash": CommandEntry(
                "accuracy.backlash",
                "backlash",
                "Map the tool's displacement due to actuator backlash.",
                ("tl.backlash_map",),
            ),
            "compensate": CommandEntry(
                "accuracy.compensate",
                "compensate",
                "Correct motor positions for deflection and heat.",
                ("tl.compensate",),
            ),
            "compensation-table": CommandEntry(
                "accuracy.compensation_table",
                "compensation_table",
                "Write a lookup table of motor corrections.",
                ("tl.compensation_table",),
            ),
            "ballbar": CommandEntry(
                "accuracy.ballbar",
                "ballbar",
                "Simulate a ballbar test of a machine with drive lines.",
                ("tl.ballbar",),
            ),
            "tolerances": CommandEntry(
                "accuracy.tolerances",
                "tolerances",
                "Compute errors of the tool due to tolerances of parts.",
                ("tl.tolerance_map",),
            ),
            "compliance": CommandEntry(
                "accuracy.compliance",
                "compliance",
                "Compute the displacement of the tool under load (ISO 9283).",
                ("tl.static_compliance",),
            ),
            "thermal": CommandEntry(
                "accuracy.thermal",
                "thermal",
                "Compute the error of the tool due to thermal expansion.",
                ("tl.thermal_expansion",),
            ),
        },
    ),
    "design": CommandGroup(
        "Dimensions, motors, tolerances and certified boxes of a design.",
        {
            "motors": CommandEntry(
                "design.motors",
                "motors",
                "Size motors and gears for a motion, from a catalogue.",
                ("tl.size_motors",),
            ),
            "certify": CommandEntry(
                "design.certify",
                "certify",
                "Prove that a machine reaches all poses of a box, or refute it.",
                ("tl.certify", "tl.check_certificate"),
            ),
            "synthesize": CommandEntry(
                "design.synthesize",
                "synthesize",
                "Choose dimensions of a machine for a task.",
                ("tl.synthesize",),
            ),
            "tolerances": CommandEntry(
                "design.tolerances",
                "tolerances",
                "Choose the cheapest tolerances that keep the tool's limits.",
                ("tl.allocate_tolerances",),
            ),
        },
    ),
    "model": CommandGroup(
        "A machine's equations and parameters.",
        {
            "equations": CommandEntry(
                "model.equations",
                "equations",
                "Write a machine's equations as text, LaTeX and Python.",
                ("tl.write_equations",),
            ),
            "reduce": CommandEntry(
                "model.reduce",
                "reduce",
                "Reduce a machine by equivalent lumped masses.",
                ("tl.reduce_model",),
            ),
            "cost": CommandEntry(
                "model.cost",
                "cost",
                "Count the operations of a machine's functions.",
                ("tl.count_operations",),
            ),
            "base-parameters": CommandEntry(
                "model.base_parameters",
                "base_parameters",
                "Derive base parameters as formulas in the machine's lengths.",
                ("tl.symbolic_base_parameters",),
            ),
            "link-parameters": CommandEntry(
                "model.link_parameters",
                "link_parameters",
                "Bound masses and mass centers of links by identified parameters.",
                ("tl.link_parameters",),
            ),
        },
    ),
    "log": CommandGroup(
        "Recorded logs.",
        {
            "describe": CommandEntry(
                "log.describe",
                "describe",
                "Describe a log of another program: its columns and units.",
                ("tl.describe_log",),
            ),
            "forces": CommandEntry(
                "log.forces",
                "forces",
                "Estimate external forces on the platform, and contacts.",
                ("tl.estimate_external_wrench",),
            ),
            "drive-stiffness": CommandEntry(
                "log.drive_stiffness",
                "drive_stiffness",
                "Identify stiffness and damping of drives from logs of both sides.",
                ("tl.identify_drive_stiffness",),
            ),
            "track": CommandEntry(
                "log.track",
                "track",
                "Track payload and friction by a recursive fit.",
                ("tl.track_parameters",),
            ),
            "subtract": CommandEntry(
                "log.subtract",
                "subtract",
                "Subtract the actuators' forces, measured without the machine.",
                ("tl.subtract_actuator_forces",),
            ),
        },
    ),
    "study": CommandGroup(
        "Many samples of a calculation: tolerances, sensitivities, sweeps.",
        {
            "run": CommandEntry(
                "study.run", "run", "Compute a study, or its missing samples.", ("tl.run_study",)
            ),
            "show": CommandEntry(
                "study.show",
                "show",
                "Show the results of the computed samples.",
                ("tl.study.read_results",),
            ),
        },
    ),
    "env": CommandGroup(
        "The environment: installed software, compiled libraries, and schema of machine files.",
        {
            "doctor": CommandEntry(
                "env.doctor",
                "doctor",
                "Show what is installed, what is missing, and how to get it.",
                ("tl.doctor",),
            ),
            "cache": CommandEntry(
                "env.cache",
                "cache",
                "List or remove compiled libraries.",
                ("tl.compiler.c.compiled_cache",),
            ),
            "schema": CommandEntry(
                "env.schema",
                "schema",
                "Print the JSON Schema of machine files, for editors.",
                ("tl.mechanism.json_schema", "tl.mechanism.drive_schema"),
            ),
        },
    ),
}
#: The group of Tauloop's second distribution. Its commands are functions in the module that its
#: entry point names.
PAPER = CommandGroup(
    "Experiments of papers (the distribution tauloop-papers).",
    {
        "list": CommandEntry("", "list_experiments", "List the experiments."),
        "reproduce": CommandEntry(
            "", "reproduce", "Reproduce an experiment, and compare the results."
        ),
    },
)
PAPER_ENTRY_POINT = "reproduce"
PAPER_REMEDY = "run `pip install ./papers` in a clone of Tauloop (the distribution tauloop-papers)"

#: All commands and groups of the top level by name, except those of papers.
TOP_LEVEL: Mapping[str, CommandEntry | CommandGroup] = {
    **{name: entry for section in HELP_SECTIONS.values() for name, entry in section.items()},
    **COMMAND_GROUPS,
}


def _commands_by_path() -> dict[str, CommandEntry]:
    """Return the commands of the top level and of all groups, each by its path."""
    commands: dict[str, CommandEntry] = {}
    for name, entry in TOP_LEVEL.items():
        if isinstance(entry, CommandEntry):
            commands[name] = entry
        else:
            commands |= {f"{name} {word}": command for word, command in entry.commands.items()}
    return commands


#: All commands by their path, such as ``plan stroke``.
COMMANDS: Mapping[str, CommandEntry] = _commands_by_path()
