"""The machine argument of commands, and the options for reading a machine file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tauloop.cli.output import LOADED_MACHINE
from tauloop.cli.terminal.completion import machines, parameters
from tauloop.cli.terminal.screen import Screen, is_quiet
from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.equations.assembly.limits import require_within_limits
from tauloop.equations.formulations import FORMULATIONS
from tauloop.formats import load
from tauloop.formats.options import ImportOptions, RodRecognition
from tauloop.mechanism.model import Mechanism

if TYPE_CHECKING:
    from tauloop.model import Model

MachineArgument = Annotated[
    str,
    typer.Argument(
        metavar="MACHINE",
        help="A shipped machine (see `tauloop list`), or a YAML, URDF, SDF or MJCF (.xml) file.",
        autocompletion=machines,
    ),
]

LineArgument = Annotated[
    str,
    typer.Argument(
        metavar="LINE", help="A shipped drive line (dual_motor_axis, ...), or a drive-line file."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportArguments:
    """Options for reading a machine file; each field is an option of the command line."""

    side: Annotated[
        Path | None,
        typer.Option(
            "--side",
            help="YAML file that completes a URDF (gravity, platform, transmissions, friction, loops); or "
            "Gepetto's robot.yaml.",
        ),
    ] = None
    platform_body: Annotated[
        str | None,
        typer.Option(
            "--platform-body",
            metavar="BODY",
            help="Platform body, for a URDF, SDF or MJCF.",
        ),
    ] = None
    independent: Annotated[
        str | None,
        typer.Option(
            "--independent",
            metavar="NAMES",
            help="Independent coordinates, separated by commas, for a URDF, SDF or MJCF.",
        ),
    ] = None
    motors: Annotated[
        str | None,
        typer.Option(
            "--motors",
            metavar="NAMES",
            help="Motors, separated by commas (joints, or motors in the file), for a URDF, SDF or MJCF.",
        ),
    ] = None
    rods: Annotated[
        bool,
        typer.Option(
            "--rods",
            help="Replace links with ball joints at both ends by rods with locked spin, for a URDF, SDF or MJCF.",
        ),
    ] = False
    gravity: Annotated[
        str | None,
        typer.Option(
            "--gravity",
            metavar="X,Y,Z",
            help="Gravity, such as 0,0,-9.81 (m/s^2), for a URDF or MJCF that does not specify it.",
        ),
    ] = None
    keyframe: Annotated[
        str | None,
        typer.Option(
            "--keyframe",
            metavar="NAME",
            help="Keyframe at which the machine starts, for an MJCF.",
        ),
    ] = None
    model_name: Annotated[
        str | None,
        typer.Option(
            "--model-name",
            metavar="NAME",
            help="Name of the machine in an SDF world with several machines.",
        ),
    ] = None
    origins: Annotated[
        bool,
        typer.Option(
            "--origins",
            help="Turn all six numbers of each URDF origin into parameters, including zeros.",
        ),
    ] = False

    xacro: Annotated[
        list[str] | None,
        typer.Option(
            "--xacro",
            metavar="NAME:=VALUE",
            help="Value of an argument of a xacro file. May be repeated.",
        ),
    ] = None
    package_folder: Annotated[
        list[Path] | None,
        typer.Option(
            "--package-folder",
            metavar="FOLDER",
            help="Folder of packages or models to which a URDF, SDF or xacro refers. May be repeated.",
        ),
    ] = None

    def options(self) -> ImportOptions | None:
        """Return the import options, or None if all of them have their defaults."""
        options = ImportOptions(
            gravity=_vector(self.gravity) if self.gravity else None,
            platform_body=self.platform_body or "",
            independent=_names("--independent", self.independent),
            motors=_names("--motors", self.motors),
            rods=RodRecognition() if self.rods else None,
            keyframe=self.keyframe or "",
            model_name=self.model_name or "",
            origins=self.origins,
            xacro=tuple(self.xacro or ()),
            package_folders=tuple(self.package_folder or ()),
        )
        return None if options == ImportOptions() else options


@dataclass(frozen=True, slots=True, kw_only=True)
class SetArguments(ImportArguments):
    """Options for reading a machine file, and values of the machine's parameters."""

    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Change parameters for this run, such as 'arm_length=0.3 m'; numbers without a unit are in "
            "SI units. May be repeated.",
            autocompletion=parameters,
        ),
    ] = None


#: Annotation of a parameter that `tauloop.cli.output.reports_errors` replaces by the options of
#: `SetArguments`.
SideOption = SetArguments | None

FormulationOption = Annotated[
    str,
    typer.Option(
        help=f"Formulation of the dynamics: {', '.join(formulation.name for formulation in FORMULATIONS)}."
    ),
]

WithinLimitsOption = Annotated[
    bool,
    typer.Option(
        "--within-limits",
        help="Reject poses beyond a stop of the machine file; otherwise they are reported.",
    ),
]

#: Its type is text, because Typer would import Pydantic for a number (0.1 s).
WorkersOption = Annotated[
    str,
    typer.Option(
        "--workers",
        "-j",
        metavar="N",
        help="Number of parallel workers; results do not depend on it.",
    ),
]


def load_machine(name: str, arguments: ImportArguments | None = None) -> Mechanism:
    """Return the machine with a name or from a file, with the values of ``--set``."""
    arguments = arguments or ImportArguments()
    mechanism = load(name, arguments.side, options=arguments.options())
    if isinstance(arguments, SetArguments) and arguments.values:
        mechanism = _with_values(mechanism, arguments.values)
    LOADED_MACHINE.set(mechanism)
    return mechanism


def load_model(
    name: str,
    arguments: ImportArguments | None = None,
    *,
    within_limits: bool = False,
    threads: str = "1",
    **options: Any,
) -> Model:
    """Return the model of a machine, and print its notes.

    Args:
        name: name of a shipped machine, or a file.
        arguments: options for reading the file, and values of parameters.
        within_limits: whether a reference pose beyond a stop is rejected.
        threads: value of ``--workers``.
        options: options of `tauloop.Model`.
    """
    from tauloop.model import Model  # commands that only read a machine do not need it

    if (count := thread_count(threads)) > 1:
        from tauloop.compiler.c.calling.evaluator import default_evaluator

        options["evaluator"] = default_evaluator(threads=count)
    model = Model(load_machine(name, arguments), **options)
    print_notes(model, within_limits)
    return model


def thread_count(text: str) -> int:
    """Return the value of ``--workers`` as a number."""
    if not (text.isdecimal() and int(text) > 0):
        raise InputError.of(
            "--workers", f"{text!r} is not a number of workers", "give a whole number above zero"
        )
    return int(text)


def print_notes(model: Model, within_limits: bool = False) -> None:
    """Print notes if the reference pose was replaced or is beyond a stop.

    Args:
        model: the machine.
        within_limits: whether a reference pose beyond a stop is rejected.

    Raises:
        PoseError: the reference pose is rejected; the message states the coordinates beyond a stop.
    """
    if within_limits:
        require_within_limits(model.limits.diagnostics(model.assembly.q))
    screen = Screen(stderr=True, soft_wrap=True, quiet=is_quiet())
    for note in (
        *model.assembly.moved,
        *(f"reference pose: {item}" for item in model.limits.beyond(model.assembly.q)),
    ):
        screen.print(f"note: {note}")


def _with_values(mechanism: Mechanism, texts: list[str]) -> Mechanism:
    """Return the machine with other values of parameters.

    Args:
        mechanism: the machine.
        texts: assignments such as ``arm_length=0.3 m``; values without a unit are in SI units.

    Raises:
        InputError: a name is not a parameter, or a value has a wrong dimension.
    """
    from tauloop.common.options import pairs
    from tauloop.mechanism.description.units import parse_unit, quantity

    problems = Problems()
    values: dict[str, float] = {}
    for name, text in pairs("values", texts, problems, "arm_length=0.3").items():
        if name not in mechanism.parameters.names:
            problems.add(f"values {name}", "is not a parameter", mechanism.parameters.near(name))
            continue
        unit = mechanism.parameters[name].unit
        with problems.collecting(InputError):
            values[name] = quantity(f"values {name}", text, parse_unit(unit or "1").dimension)
    InputError.raise_if_any(problems)
    return mechanism.with_values(values)


def _names(option_name: str, text: str | None) -> tuple[str, ...]:
    """Return the names in a text, in which commas separate them; an empty tuple for None."""
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InputError.of(
            option_name, f"{text!r} has an empty name", "separate names with single commas"
        )
    return names


def _vector(text: str) -> tuple[float, ...]:
    """Return the three components of ``--gravity`` in m/s^2, from a text with commas."""
    from tauloop.mechanism.description.units import ACCELERATION, quantities_reader

    numbers = quantities_reader("--gravity", ACCELERATION)(text)
    if len(numbers) != 3:
        what = f"{text!r} is not three finite numbers"
        remedy = "give x, y, z in m/s^2, such as 0,0,-9.81"
        raise InputError.of("--gravity", what, remedy)
    return numbers
