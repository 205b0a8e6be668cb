"""Calls with options: circle tests of a machine with drive lines, and maps of backlash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, Problems
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, listed, option, pairs_reader
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.drives.machine.circle import Circle, CircleTest, circle_test
from tauloop.drives.machine.lines import backlash_at_the_load
from tauloop.drives.machine.path import PATH_INTEGRATOR, Variation
from tauloop.drives.machine.play import DEFAULT_BACKLASH, PlayMap, play_map, workspace_axes
from tauloop.drives.parameter_values import values_in_si
from tauloop.equations.named_values import by_column, full_name, named_values, numbers_of, ranges_of
from tauloop.equations.ports import Port
from tauloop.integrate.events import Event
from tauloop.integrate.integrators import Integrator
from tauloop.kinematics.event_texts import parse_events
from tauloop.mechanism.description import units
from tauloop.mechanism.description.units import ANGLE, LENGTH, quantity
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

#: Names of the variations of the drive lines in options.
VARIATIONS = {
    "dual": Variation.AS_DESCRIBED,
    "one": Variation.ONE_MOTOR,
    "no-play": Variation.NO_PLAY,
    "rigid": Variation.RIGID,
}
#: Number of points along each axis of a plane section.
SECTION_POINTS = 61
#: Number of points along each axis of the workspace.
WORKSPACE_POINTS = 13


def _distance(text: str) -> float:
    return quantity("presliding_distance", text, LENGTH, ANGLE)


@dataclass(frozen=True, kw_only=True)
class BallbarOptions(Options):
    """Circle, and variants of the drives.

    Attributes:
        plane: positions of the platform that vary, such as 'x,y'.
        radius: radius of the circle, such as 0.1 (m) or 50mm.
        speed: speed on the circle, such as 0.5 (m/s) or 20mm/s.
        pose: position of the platform, such as 'x=0.1,z=-50cm' (SI, or with units), at the center
            of the circle; other coordinates are as in the reference pose.
        only: variants of the drives to simulate, separated by commas: dual, one, no-play, rigid;
            default: all.
        values: change parameters for this run, such as those of drive lines,
            'track1.motor.drive.gap=0.1mm' (SI, or with units).
        presliding_distance: model the machine's own Coulomb friction as LuGre friction with this
            bristle deflection, m or rad.
        tolerance: relative tolerance of an integration step.
        integrator: integrator that replaces the explicit one with the tolerance above.
        until: end at this event: 'platform.z<-0.7' or 'singularity<0.05', as of `tauloop simulate`.
        record: record the times of this event, written as for --until, and continue.

    Examples:
        >>> import tauloop as tl
        >>> tl.BallbarOptions(plane=("x", "y"), radius=0.05, speed=0.5).speed
        0.5
    """

    plane: tuple[str, ...] = option(("x", "y"), read=listed, metavar="NAMES")
    radius: float = option(0.1, metavar="LENGTH", unit=units.LENGTH)
    speed: float = option(0.5, metavar="SPEED", unit=units.SPEED)
    pose: Mapping[str, str | float] | None = option(
        None, read=pairs_reader("pose"), metavar="VALUES"
    )
    only: tuple[str, ...] = option((), read=listed, metavar="NAME,...")
    values: Mapping[str, float | str] = option(
        flag="--set",
        factory=dict,
        read=pairs_reader("values", "track1.motor.drive.gap=0.1mm"),
        metavar="NAME=VALUE",
    )
    presliding_distance: float | None = option(None, read=_distance, metavar="QUANTITY")
    tolerance: float = option(PATH_INTEGRATOR.rtol)
    integrator: Integrator | None = option(None, flag="")
    until: tuple[str | Event, ...] = option((), metavar="EVENT")
    record: tuple[str | Event, ...] = option((), metavar="EVENT")

    def _note_mismatches(self, problems: Problems) -> None:
        """Add problems for unknown variations and for coordinates that do not form a plane."""
        unknown = [name for name in self.only if name not in VARIATIONS]
        if unknown:
            problems.add(
                "only",
                f"{', '.join(map(repr, unknown))} is not a variation",
                f"choose one or more of {', '.join(VARIATIONS)}",
            )
        if len(self.plane) != 2:
            problems.add(
                "plane",
                f"{', '.join(self.plane)} names {counted(len(self.plane), 'position')}",
                "name two positions, such as x,y",
            )


@keywords(BallbarOptions)
def ballbar(
    machine: MachineSource,
    options: BallbarOptions | None = None,
    *,
    progress: Progress | None = None,
) -> CircleTest:
    """Simulate a circular test with two motors, one motor, no backlash, and rigid drives.

    Radial deviations are relative to the best-fitting circle (ISO 230-4).

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine; it needs drive
            lines.
        options: the circle, and variants of the drives.
        progress: called with the work done and the total work.

    Returns:
        Paths, deviations and the criteria of ISO 230-4 of every variant (`laps`).

    Raises:
        InputError: the machine has no drive lines, a line is invalid, or a name is unknown.
        PoseError: the circle is out of reach or leads through a singularity.

    Examples:
        >>> import tauloop as tl
        >>> options = tl.BallbarOptions(radius=0.05, speed=0.6, only=("rigid",))
        >>> laps = tl.ballbar(tl.load("examples/gantry_tau_racks/gantry_tau_racks.yaml"), options)
        >>> laps.to_pandas().columns.tolist()
        ['deviation', 'radius_error', 'normal', 'following', 'rms']
    """
    options = options or BallbarOptions()
    model = modeled(machine)
    port = model.platform.ports.position
    first, second = (full_name(port.columns, name, "plane") for name in options.plane)
    center = None
    if options.pose:
        names = [full_name(port.columns, name, "pose") for name in options.pose]
        if sorted(names) != sorted((first, second)):
            raise InputError.of(
                "pose",
                f"{', '.join(names)} is not a point of the plane",
                f"give {first} and {second}",
            )
        pose = named_values(port, "pose", options.pose, np.zeros(port.size))
        center = (float(pose[port.columns.index(first)]), float(pose[port.columns.index(second)]))
    return circle_test(
        model.mechanism,
        Circle(columns=(first, second), radius=options.radius, speed=options.speed, center=center),
        variations=[VARIATIONS[word] for word in options.only] or None,
        values=values_in_si(model.mechanism.parameters, options.values, "values"),
        integrator=options.integrator
        or replace(PATH_INTEGRATOR, rtol=options.tolerance, atol=1e-2 * options.tolerance),
        presliding=options.presliding_distance,
        events=parse_events(model, options.until, options.record),
        progress=progress,
    )


def _backlash(text: str) -> str | float | dict[str, float]:
    """Return backlash in SI units, or the string "lines"."""
    if text == "lines":
        return text
    if "=" not in text:
        return quantity("backlash", text, LENGTH, ANGLE)
    return numbers_of(text, "backlash", LENGTH, ANGLE)


@dataclass(frozen=True, kw_only=True)
class BacklashOptions(Options):
    """Backlash, and the poses at which it is evaluated.

    Attributes:
        backlash: total backlash (full gap), m or rad: of every actuator, such as '20 um', or by
            name, such as 'track1.motor=10um'; 'lines' takes the gaps of the drive lines; default:
            10 um.
        plane: positions of the platform that vary in the slice, such as 'y,z'; default: the first
            two.
        pose: position of the platform, such as 'x=0.1,z=-50cm' (SI, or with units), in the
            slice; other coordinates are as in the reference pose.
        ranges: ranges of platform positions, such as 'x=-0.4:0.4,z=100:300 mm' (SI without a unit);
            default: those of the machine file.

    Examples:
        >>> import tauloop as tl
        >>> tl.BacklashOptions(backlash={"track1.motor": 20e-6}).backlash
        {'track1.motor': 2e-05}
    """

    backlash: str | float | Mapping[str, float] = option(
        DEFAULT_BACKLASH, read=_backlash, metavar="QUANTITY"
    )
    plane: tuple[str, ...] = option((), read=listed, metavar="NAMES")
    pose: Mapping[str, str | float] = option(
        factory=dict, read=pairs_reader("pose"), metavar="VALUES"
    )
    ranges: Mapping[str, tuple[float, float]] | None = option(
        None,
        read=ranges_of,
        metavar="NAME=LOW:HIGH",
        unit=(units.LENGTH, units.ANGLE, units.ONE),
    )


@keywords(BacklashOptions)
def backlash_map(
    machine: MachineSource,
    options: BacklashOptions | None = None,
    *,
    progress: Progress | None = None,
) -> PlayMap:
    """Return a map of the tool displacement that backlash allows, over the workspace.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: the backlash, and the ranges of the workspace.
        progress: called with the work done and the total work.

    Raises:
        InputError: unknown names, a workspace without ranges, or actuators that do not determine
            the machine's motion.

    Examples:
        >>> import tauloop as tl
        >>> play = tl.backlash_map("five_bar", backlash={"motor_1": 1e-4})
        >>> sorted(play.displacements())
        ['motor_1', 'motor_2', 'worst']
    """
    options = options or BacklashOptions()
    model, backlash = _model_and_backlash(machine, options)
    axes = _workspace_axes(model, options)
    _plane(model.platform.ports.position, axes, options)  # reject an invalid plane
    first_axes = dict(list(axes.items())[:3])
    result = play_map(model, first_axes, backlash=backlash, progress=progress)
    limits = {name: (float(values[0]), float(values[-1])) for name, values in axes.items()}
    return replace(result, volume=limits)


def play_section(machine: MachineSource, options: BacklashOptions) -> PlayMap:
    """Return a finer map in a plane of the workspace; arguments as in `backlash_map`."""
    model, backlash = _model_and_backlash(machine, options)
    port = model.platform.ports.position
    ranges = _workspace_axes(model, options)
    axes = {
        name: np.linspace(ranges[name][0], ranges[name][-1], SECTION_POINTS)
        for name in _plane(port, ranges, options)
    }
    pose = named_values(port, "pose", options.pose, np.full(port.size, np.nan))
    fixed = {
        name: float(value)
        for name, value in zip(port.columns, pose, strict=True)
        if np.isfinite(value)
    }
    return play_map(model, axes, backlash=backlash, fixed=fixed)


def _model_and_backlash(
    machine: MachineSource, options: BacklashOptions
) -> tuple[Model, float | Mapping[str, float]]:
    model = modeled(machine)
    if not isinstance(options.backlash, str):
        return model, options.backlash
    if options.backlash != "lines":
        raise InputError.of(
            "backlash",
            f"{options.backlash!r} is unknown",
            "give numbers in m or rad, or 'lines' for the backlash of the drive lines",
        )
    return model, backlash_at_the_load(model.mechanism)


def _workspace_axes(model: Model, options: BacklashOptions) -> dict[str, np.ndarray]:
    if options.ranges is None:
        return workspace_axes(model, WORKSPACE_POINTS)
    port = model.platform.ports.position
    units = dict(zip(port.columns, port.units, strict=True))
    ranges = by_column(units, options.ranges, "ranges")
    return {
        name: np.linspace(*ranges[name], WORKSPACE_POINTS)
        for name in port.columns
        if name in ranges
    }


def _plane(port: Port, axes: Mapping[str, np.ndarray], options: BacklashOptions) -> list[str]:
    names = [full_name(port.columns, name, "plane") for name in options.plane] or list(axes)[:2]
    missing = [name for name in names if name not in axes]
    if len(names) != 2 or missing:
        what = f"names {counted(len(names), 'position')}"
        if missing:
            what = f"no range of {', '.join(missing)}"
        raise InputError.of("plane", what, "name two positions that have a range (`ranges`)")
    return names
