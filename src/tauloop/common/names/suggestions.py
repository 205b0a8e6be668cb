"""Suggestions of similar names for misspelled ones, and for names that other libraries use."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping

#: Maximum length of a compared word; names are short.
MAX_LENGTH = 60
#: Maximum number of compared names; a machine has hundreds of names.
MAX_NAMES = 2000
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PREFIX = re.compile("^(get|calc|calculate|compute|eval)_")
#: Names of other libraries (Pinocchio, Drake, MuJoCo, SciPy, scikit-learn, Robotics Toolbox) and
#: common guesses, in lower case, each with Tauloop's names. Names with a dot are full paths and are
#: suggested everywhere; the others only where they exist.
PEER_NAMES: Mapping[str, tuple[str, ...]] = {
    # Functions and methods
    "rnea": ("inverse_dynamics",),
    "rne": ("inverse_dynamics",),
    "mj_inverse": ("inverse_dynamics",),
    "aba": ("forward_dynamics",),
    "mj_forward": ("forward_dynamics",),
    "accel": ("forward_dynamics",),
    "crba": (
        "mass_matrix",
        "tauloop.Model(machine).mass_matrix",
    ),
    "inertia": (
        "mass_matrix",
        "mass",
    ),
    "mj_fullm": ("mass_matrix",),
    "nle": ("bias",),
    "nonlinear_effects": ("bias",),
    "coriolis": ("bias",),
    "coriolis_matrix": ("bias",),
    "generalized_gravity": ("gravity_forces",),
    "gravload": ("gravity_forces",),
    "gravity_vector": ("gravity_forces",),
    "energy": ("kinetic_energy",),
    "frame_placement": ("tool_pose",),
    "frame_pose": ("tool_pose",),
    "end_effector": ("tool_pose",),
    "regressor": ("model.platform.regressor",),
    "joint_torque_regressor": ("model.platform.regressor",),
    "frame_jacobian": ("jacobian",),
    "tool_jacobian": ("model.platform.tool_jacobian",),
    "fk": ("forward_kinematics",),
    "fkine": ("forward_kinematics",),
    "ik": ("inverse_kinematics",),
    "ikine": ("inverse_kinematics",),
    "jacob0": ("jacobian",),
    "jac": ("jacobian",),
    "load_urdf": ("load",),
    "load_model": ("load",),
    "load_machine": ("load",),
    "from_urdf": ("tauloop.load",),
    "buildmodelfromurdf": ("load",),
    "add_models": ("load",),
    "save": (
        "convert",
        "dumps",
        "tauloop.convert",
    ),
    "dump": ("dumps",),
    "to_yaml": ("tauloop.dumps",),
    "write": (
        "convert",
        "dumps",
        "tauloop.convert",
    ),
    "machines": ("shipped_machines",),
    "list_machines": ("shipped_machines",),
    "available_machines": ("shipped_machines",),
    "list": ("shipped_machines",),
    "examples": ("shipped_machines",),
    # Loading and saving
    "rigid_body_tree": ("tauloop.load",),
    "multibody_plant": ("tauloop.load",),
    "mj_model": ("tauloop.load",),
    "serial_link": ("tauloop.load",),
    "read": ("tauloop.load",),
    "open": ("tauloop.load",),
    "from_file": ("tauloop.load",),
    "from_yaml": ("tauloop.load",),
    "from_xml_path": ("tauloop.load",),
    "from_string": ("tauloop.loads",),
    "from_xml_string": ("tauloop.loads",),
    "models": ("tauloop.shipped_machines",),
    "to_urdf": ("tauloop.convert",),
    "export_urdf": ("tauloop.convert",),
    "export_sdf": ("tauloop.convert",),
    "export_mjcf": ("tauloop.convert",),
    "to_sdf": ("tauloop.convert",),
    "to_mjcf": ("tauloop.convert",),
    "to_xml": ("tauloop.convert",),
    # Methods of models and robots
    "mass_matrix_via_inverse_dynamics": ("mass_matrix",),
    "c": ("bias",),
    "bias_term": ("bias",),
    "g": ("gravity_forces",),
    "gravity_compensation": (
        "gravity_forces",
        "tauloop.Model(machine).gravity_forces",
    ),
    "gravity_generalized_forces": ("gravity_forces",),
    "jacobe": ("jacobian",),
    "joint_jacobians": ("jacobian",),
    "frame_jacobians": ("jacobian",),
    "actuation_matrix": ("model.platform.actuator_jacobian",),
    "make_actuation_matrix": ("model.platform.actuator_jacobian",),
    "manipulability": ("tauloop.check", "tauloop.workspace"),
    "condition": ("tauloop.check", "tauloop.workspace"),
    "condition_number": ("tauloop.check", "tauloop.workspace"),
    "optimize": ("tauloop.synthesize", "tauloop.tune_drive_line"),
    "sensitivity": ("tauloop.tolerance_map", "jacobian"),
    "dexterity": ("tauloop.check", "tauloop.workspace"),
    "singularities": ("tauloop.workspace",),
    "linearize": ("model.platform.derivatives",),
    "linearise": ("model.platform.derivatives",),
    "step": ("tauloop.simulate",),
    "mj_step": ("tauloop.simulate",),
    "simulator": ("tauloop.simulate",),
    "control": ("tauloop.follow_path",),
    "controller": ("tauloop.follow_path",),
    "teach": ("tauloop.view",),
    "plot_robot": ("tauloop.view",),
    "visualize": ("tauloop.view",),
    "animate": ("tauloop.view",),
    "render": ("tauloop.view",),
    "trajectory": ("tauloop.plan_stroke", "tauloop.plan_path"),
    "optimize_trajectory": ("tauloop.plan_path", "tauloop.plan_stroke"),
    "jtraj": ("tauloop.plan_stroke",),
    "ctraj": ("tauloop.plan_path",),
    "mstraj": ("tauloop.plan_path",),
    "se3": ("tauloop.Frame",),
    "version": ("tauloop.__version__",),
    "random_position": ("tauloop.kinematics.random_states",),
    "random_configuration": ("tauloop.kinematics.random_states",),
    "random_states": ("tauloop.kinematics.random_states",),
    "randq": ("tauloop.kinematics.random_states",),
    "sample": ("tauloop.kinematics.random_states",),
    "show": (
        "describe",
        "view",
        "tauloop.view",
    ),
    "info": ("describe",),
    "plan_trajectory": (
        "plan_stroke",
        "plan_path",
        "tauloop.plan_stroke",
    ),
    "solve_ivp": (
        "simulate",
        "tauloop.simulate",
    ),
    "integrate": (
        "simulate",
        "tauloop.simulate",
    ),
    "fit": (
        "identify",
        "calibrate",
    ),
    "estimate": (
        "identify",
        "calibrate",
    ),
    # Sizes and contents of models
    "nq": ("model.topology.coordinate_names",),
    "nv": ("model.topology.velocity_names",),
    "names": ("model.topology.coordinate_names",),
    "nu": ("model.actuators",),
    "num_actuators": ("model.actuators",),
    "actuator_names": ("model.actuators",),
    "motor_names": ("model.actuators",),
    "njoints": ("model.mechanism.joints",),
    "num_joints": ("model.mechanism.joints",),
    "joint_names": ("model.topology.coordinate_names",),
    "num_positions": ("model.topology.coordinate_names",),
    "num_velocities": ("model.topology.velocity_names",),
    "dof": ("model.assembly.mobility",),
    "dofs": ("model.assembly.mobility",),
    "ndof": ("model.assembly.mobility",),
    "n_dof": ("model.assembly.mobility",),
    "mobility": ("model.assembly.mobility",),
    "qz": ("model.assembly.q",),
    "name": ("model.mechanism.name",),
    "gravity": ("model.mechanism.gravity",),
    "body": ("model.mechanism.body",),
    "bodies": ("model.mechanism.bodies",),
    "links": ("bodies", "model.mechanism.bodies"),
    "total_mass": ("model.mechanism.bodies",),
    "set": ("with_values", "model.mechanism.with_values"),
    "set_parameter": ("with_values", "model.mechanism.with_values"),
    "set_parameters": ("with_values", "model.mechanism.with_values"),
    "neutral": ("model.assembly.q",),
    "home": ("model.assembly.q",),
    "reference": ("model.assembly.q",),
    "inertias": ("model.mechanism.bodies",),
    "frames": ("model.mechanism.bodies",),
    "joints": ("model.mechanism.joints",),
    "mass": (
        "inertia",
        "model.mechanism.bodies",
    ),
    # Results
    "torque": ("force",),
    "torques": ("force",),
    "tau": ("force",),
    "success": ("status",),
    "ok": ("status",),
    "passed": ("status",),
    "is_ok": ("status",),
    "pose": ("platform",),
    "start": ("pose", "position"),
    "position": (
        "pose",
        "start",
        "platform",
        "platform_position",
    ),
    "velocity": ("platform_velocity",),
    "lower_limits": ("limits",),
    "upper_limits": ("limits",),
    "actuators": ("model.actuator_position", "tauloop.inverse_kinematics"),
    "message": ("advice",),
    "errors": ("problems",),
    "warnings": ("notes",),
    "j": ("matrix",),
    "det": ("matrix",),
    "values": ("to_pandas",),
    "y": ("to_pandas",),
    "df": ("to_pandas",),
    "to_dataframe": ("to_pandas",),
    "to_dict": ("as_dict",),
    "to_numpy": (
        "to_pandas",
        "to_xarray",
    ),
    "to_json": ("write_json",),
    "area": ("size",),
    "volume": ("size",),
    "summary": ("tauloop.check", "tauloop.describe"),
    # Arguments
    "robot": (
        "machine",
        "tauloop.load",
    ),
    "model": ("machine",),
    "mechanism": ("machine",),
    "q": (
        "position",
        "actuators",
        "pose",
    ),
    "x": (
        "position",
        "pose",
        "platform",
    ),
    "qpos": (
        "position",
        "actuators",
        "pose",
        "q",
    ),
    "joint_positions": (
        "position",
        "actuators",
    ),
    "motors": ("actuators",),
    "target": (
        "pose",
        "end",
    ),
    "goal": (
        "end",
        "pose",
    ),
    "q0": (
        "pose",
        "start",
        "model.assembly.q",
    ),
    "x0": (
        "pose",
        "start",
        "initial",
    ),
    "initial_state": (
        "pose",
        "start",
    ),
    "init": (
        "initial",
        "pose",
        "start",
    ),
    "v": ("velocity",),
    "qd": ("velocity",),
    "dq": ("velocity",),
    "qvel": ("velocity",),
    "a": ("acceleration",),
    "qdd": ("acceleration",),
    "ddq": ("acceleration",),
    "qacc": ("acceleration",),
    "u": ("force",),
    "effort": ("force",),
    "external_force": ("wrench",),
    "f_ext": ("wrench",),
    "t": (
        "time",
        "tool",
        "duration",
    ),
    "time": ("duration",),
    "t_final": ("duration",),
    "t_end": ("duration",),
    "tf": ("duration",),
    "t_span": ("duration",),
    "t_max": ("duration",),
    "dt": (
        "fixed_step",
        "rate",
    ),
    "time_step": (
        "fixed_step",
        "rate",
    ),
    "timestep": (
        "fixed_step",
        "rate",
    ),
    "step_size": ("fixed_step",),
    "method": (
        "integrator",
        "estimator",
        "search",
    ),
    "solver": (
        "integrator",
        "estimator",
        "search",
    ),
    "model_type": ("estimator",),
    "waypoints": (
        "via",
        "points",
    ),
    "profile": ("law",),
    "max_speed": (
        "max_velocity",
        "speed",
    ),
    "vmax": ("max_velocity",),
    "v_max": ("max_velocity",),
    "amax": ("max_acceleration",),
    "a_max": ("max_acceleration",),
    "max_accel": ("max_acceleration",),
    "max_time": (
        "max_duration",
        "duration",
    ),
    "frequency": ("rate",),
    "fs": ("rate",),
    "sample_rate": ("rate",),
    "sampling_rate": ("rate",),
    "kp": ("bandwidth",),
    "gains": ("bandwidth",),
    "tol": ("tolerance",),
    "n_jobs": ("workers",),
    "n_workers": ("workers",),
    "threads": ("workers",),
    "random_state": (
        "seed",
        "tauloop.kinematics.random_states",
    ),
    "rng": ("seed",),
    "limits": (
        "ranges",
        "bounds",
    ),
    "range": ("ranges",),
    "bounds": ("ranges",),
    "grid": ("resolution",),
    "n": (
        "states",
        "count",
        "resolution",
    ),
    "n_samples": (
        "states",
        "count",
    ),
    "spacing": ("resolution",),
    "log": ("logs",),
    "data": (
        "logs",
        "log",
        "measurements",
    ),
    "dataset": (
        "logs",
        "log",
        "measurements",
    ),
    "readings": ("measurements",),
    "poses": ("measurements",),
    "out": (
        "folder",
        "target",
        "path",
    ),
    "output": (
        "folder",
        "target",
        "path",
    ),
    "directory": ("folder",),
    "output_dir": ("folder",),
    "filename": (
        "target",
        "path",
        "name_or_path",
    ),
    "file": (
        "target",
        "path",
        "name_or_path",
    ),
    "com": ("center",),
    "center_of_mass": ("center",),
    "m": (
        "mass",
        "mass_matrix",
    ),
    "formulation": ("tauloop.Model(machine, formulation=...)",),
    "evaluator": ("tauloop.Model(machine, evaluator=...)",),
}


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a question ``did you mean a or b?``; an empty text if no name is similar."""
    known_names = list(known)[:MAX_NAMES]
    if len(word) > MAX_LENGTH:
        return ""
    names = peer_names(word, known_names)
    if not any(name in known_names for name in names):
        import difflib

        candidates = {name.lower(): name for name in known_names}
        matches = difflib.get_close_matches(word.lower(), candidates, n=2, cutoff=0.6)
        names = [candidates[name] for name in matches] or names
    return f"did you mean {' or '.join(names)}?" if names else ""


def peer_names(word: str, known: Iterable[str]) -> list[str]:
    """Return at most two of Tauloop's names for a name of another library.

    Args:
        word: the name in the other library, in any of the usual spellings (``massMatrix``,
            ``CalcMassMatrix``, ``get_mass_matrix``).
        known: the names that exist in this context.
    """
    known = {*known}
    for spelling in _spellings(word):
        if spelling != word and spelling in known:
            return [spelling]
        names = PEER_NAMES.get(spelling, ())
        full_paths = [name for name in names if "." in name]
        close_names = [name for name in names if name in known][:2] or full_paths[:2]
        if close_names:
            return close_names
    return []


def names_elsewhere(word: str) -> list[str]:
    """Return the function of `tauloop` or the attribute of its `Model` that has a name.

    Models and machines have few methods, and users of other libraries look for all functions there.

    Args:
        word: an unknown attribute.
    """
    package = sys.modules.get("tauloop")
    functions = vars(package).get("__all__", ()) if package is not None else ()
    for spelling in _spellings(word):
        if spelling in functions:
            return [f"tauloop.{spelling}"]
        model = getattr(package, "Model", None) if "Model" in functions else None
        if not spelling.startswith("_") and hasattr(model, spelling):
            return [f"tauloop.Model(machine).{spelling}"]
    return []


def _spellings(word: str) -> list[str]:
    """Return a name in lower case, with underscores between words, and without words such as get."""
    if len(word) > MAX_LENGTH:
        return []
    snake = _WORD_START.sub("_", word).lower()
    bare = _PREFIX.sub("", snake).removesuffix("_by_name")
    return [*dict.fromkeys((word.lower(), snake, bare))]
