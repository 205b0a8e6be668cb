"""The command line's frame: its commands, each imported only when it is called.

Exit codes: 0 all is well; 1 the command ran and found something wrong (a failed check, a doubtful
result); 2 the input cannot be used.
"""

from __future__ import annotations

import enum
import functools
import importlib
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

import tauloop
from tauloop.cli.completion import TAKES_MACHINE, machines
from tauloop.cli.examples import EXAMPLES
from tauloop.common.extensions import brought
from tauloop.mechanism.suggestions import suggestion

#: Commands by group, in the order of the help: the module that holds each, and what the list of
#: commands says of it.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Describe": {
        "demo": ("demo", "A machine in motion on a page, and what to do next."),
        "machines": ("machines", "List the shipped machines."),
        "show": ("describe", "A machine's coordinates, mobility, loops, actuators, parameters."),
        "check": ("describe", "Does a machine file read, do its loops close, is it driven?"),
        "new": ("new", "Write a machine file of your own dimensions."),
        "view": ("view", "Look at a machine in the browser, or as a picture."),
        "verify": ("verify", "Compare the dynamics with Pinocchio and MuJoCo."),
        "schema": ("describe", "Print the JSON Schema of machine files, for editors."),
    },
    "Kinematics": {
        "fk": ("kinematics", "Forward kinematics: the platform from the actuators."),
        "ik": ("kinematics", "Inverse kinematics: the actuators from the platform."),
        "jacobian": ("kinematics", "Velocities of tool, actuators or platform per unit of others."),
        "modes": ("modes", "All assembly modes at given actuator positions."),
        "workspace": ("workspace", "Where a machine can work: reach, singularities, interference."),
        "play": ("drive_machine", "How play at the actuators shows at the tool."),
    },
    "Dynamics": {
        "dynamics": ("dynamics", "Actuator forces that a motion needs (inverse dynamics)."),
        "simulate": ("simulate", "Simulate a machine: constant forces, a swing, a round trip."),
        "equations": ("equations", "Write a machine's equations as text, LaTeX and Python."),
        "cost": ("cost", "Count the operations of a machine's functions."),
        "reduce": ("reduce", "Reduce a machine by equivalent lumped masses."),
        "regroup": ("regroup", "A machine's base parameters as formulas in its lengths."),
    },
    "Motion": {
        "motion": ("motion", "Plan a trajectory: a path, a motion law and a duration."),
        "fastest": ("fastest", "The fastest motion along a path, tried out under a controller."),
        "transfer": ("transfer", "The best motion from here to there: its path is free."),
        "cycle": ("cycle", "A cyclic motion between stations: pick and place, conveyors."),
    },
    "Measure": {
        "excite": ("excite", "Optimise an excitation for identification, under limits."),
        "identify": ("identify", "Identify dynamic parameters from logs."),
        "link-parameters": (
            "link_parameters",
            "Masses and centres of links from identified parameters.",
        ),
        "forces": ("forces", "Forces from outside on the platform, and contacts, from a log."),
        "track": ("track", "Payload and friction along a log, by a recursive fit."),
        "subtract": ("subtract", "Subtract the actuators' own forces from a log."),
        "poses": ("poses", "Choose the poses of a calibration."),
        "calibrate": ("calibrate", "Calibrate a machine's geometry, with error bars."),
    },
    "Studies": {
        "study": ("study", "Many samples of a calculation: tolerances, sensitivities, sweeps."),
        "fold": ("fold", "Identify dynamic parameters from any number of logs, by workers."),
    },
    "Control": {
        "control": ("control", "Follow a trajectory under sampled controllers."),
        "detect-hit": ("detect_hit", "How soon a blow at the platform is noticed, by momenta."),
        "drive": ("drive", "Simulate a step of a drive line with its control."),
        "tune": ("tune", "Tune the control of a drive line: least cost, compromises."),
        "fit-plant": ("fit_plant", "Identify a drive line's parameters from measured steps."),
        "run": ("run", "Run a machine as a plant that a controller elsewhere drives."),
        "ballbar": ("drive_machine", "Drive a machine with drive lines round a circle."),
    },
    "Export": {
        "export": ("export", "Write a machine as C99, an FMU, for LinuxCNC, or for ROS 2."),
        "convert": ("convert", "Write a machine as YAML, MJCF, SDF, or URDF with a side file."),
        "report": ("report", "Make a page of results: tables, figures, the machine in motion."),
    },
    "This computer": {
        "doctor": ("doctor", "What is installed, what is missing, and how to get it."),
        "cache": ("cache", "Compiled libraries that are kept: list or remove them."),
    },
}
#: All of them by name.
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}
#: Group of the entry points by which other distributions bring commands: name of the command, and
#: its function.
BROUGHT = "tauloop.commands"
#: Commands of Tauloop's own other distributions: how each is installed, and what the list says of
#: it.
ELSEWHERE = {
    "reproduce": (
        "run `pip install ./papers` in a clone of Tauloop (the distribution tauloop-papers)",
        "Do a paper's experiment again, beside what it states.",
    ),
}


#: Both ways to ask for help.
HELP = {"help_option_names": ["-h", "--help"]}


class Quick:
    """A command whose values are converted here where that is plain: Typer imports Pydantic for any, for 0.1 s."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Options and arguments, ``--help`` among them."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in params:
            vars(parameter).setdefault("process_value", functools.partial(_processed, parameter))
        return params


def _processed(parameter: Any, ctx: Any, value: Any) -> Any:
    """What Typer makes of a value: plainly of nothing, text, numbers and words; it makes the rest, and names faults."""
    descriptor = getattr(parameter, "type_descriptor", None)  # since 0.29
    kind = descriptor.annotation if descriptor is not None and not descriptor.is_ranged else None
    missing = value is None and descriptor is not None and not parameter.required
    if missing:
        value = () if parameter.multiple or parameter.nargs == -1 else None
    elif isinstance(value, str) and (kind in (int, float) or isinstance(kind, enum.EnumType)):
        with suppress(ValueError):
            value = kind(value)
    if not missing and (value is None or type(value) is not kind):
        return type(parameter).process_value(parameter, ctx, value)
    return parameter.callback(ctx, parameter, value) if parameter.callback else value


class QuickCommand(Quick, TyperCommand):
    """A command with it, that keeps its words, and shows how it is called where an argument is missing or wrong."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See `TyperCommand`; the words are kept for reports."""
        from tauloop.cli.output import WORDS

        WORDS.set((*ctx.command_path.split(), *args))
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            # what is missing has no message
            if isinstance(error.param, TyperArgument) or not error.message:
                error.message = f"{error.message} {self.epilog or ''}".strip()
            raise


class FirstWord(QuickCommand):
    """What completes the first word behind a command that takes a machine, for which that command is not imported."""

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Options are the command's own, which is imported for them."""
        group = ctx.parent.command
        own = group.get_command(ctx.parent, ctx.info_name)
        return list(
            own.shell_complete(
                own.make_context(ctx.info_name, [], resilient_parsing=True), incomplete
            )
        )


def _first_word(machine: Annotated[str, typer.Argument(autocompletion=machines)]) -> None:
    """Take a machine."""


class LazyGroup(Quick, TyperGroup):
    """A group whose commands are imported when they are asked for: figures and data frames are slow to import."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all commands."""
        return [*COMMANDS, *sorted({*ELSEWHERE, *brought(BROUGHT)} - {*COMMANDS})]

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Names of commands that begin so, with their summaries; none of them is imported."""
        if incomplete.startswith("-"):
            return list(super().shell_complete(ctx, incomplete))
        known = {
            name: COMMANDS[name][1] if name in COMMANDS else None
            for name in self.list_commands(ctx)
        }
        light = TyperGroup(
            commands={name: TyperCommand(name, help=summary) for name, summary in known.items()}
        )
        return list(
            light.shell_complete(
                light.make_context(ctx.info_name, [], resilient_parsing=True), incomplete
            )
        )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of the first word; of an unknown one, what was meant."""
        is_known = args[0] in COMMANDS or args[0] in self.list_commands(ctx)
        if not is_known and (hint := suggestion(args[0], self.list_commands(ctx))):
            ctx.fail(f"No such command {args[0]!r}: {hint}")
        if ctx.resilient_parsing and len(args) == 1 and args[0] in TAKES_MACHINE:
            single = typer.Typer(add_completion=False)
            single.command(args[0], cls=FirstWord)(_first_word)
            return args[0], typer.main.get_command(single), []
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, or None."""
        if cmd_name in COMMANDS:
            function = getattr(
                importlib.import_module(f"tauloop.cli.{COMMANDS[cmd_name][0]}"),
                cmd_name.replace("-", "_"),
            )
        elif cmd_name in brought(BROUGHT):
            function = brought(BROUGHT)[cmd_name].load()
        else:
            if cmd_name in ELSEWHERE:
                ctx.fail(f"{cmd_name} is not installed: {ELSEWHERE[cmd_name][0]}")
            return None
        single = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=HELP)
        example = EXAMPLES.get(cmd_name)
        single.command(
            cmd_name, cls=QuickCommand, epilog=f"Example: tauloop {example}" if example else None
        )(function)
        return typer.main.get_command(single)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands, for which none of them is imported."""
        summaries = {
            name: f"Brought by {entry.dist.name}."
            for name, entry in brought(BROUGHT).items()
            if entry.dist
        }
        summaries |= {name: summary for name, (_, summary) in ELSEWHERE.items()}
        others = {
            name: ("", summary)
            for name, summary in sorted(summaries.items())
            if name not in COMMANDS
        }
        for title, commands in {**GROUPS, "Others": others}.items():
            with formatter.section(title):
                formatter.write_dl([(name, summary) for name, (_, summary) in commands.items()])


app = typer.Typer(
    cls=LazyGroup,
    name="tauloop",
    help="Parallel robots: one description of a machine gives its kinematics, dynamics, simulation and identification.",
    no_args_is_help=True,
    add_completion=True,
    context_settings=HELP,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tauloop {tauloop.__version__}")
        raise typer.Exit


@app.callback()
def _frame(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Make a group of the commands above."""


def main() -> None:
    """Run the command line."""
    from tauloop.cli.interrupts import ends_soon
    from tauloop.cli.screen import streams

    with ends_soon(), streams():
        app()
