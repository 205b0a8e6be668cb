"""Circular test of a machine with drive lines, as with a ball-bar.

Source: ISO 230-4, Test code for machine tools: circular tests for numerically controlled machine
tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.datasets import Variable, rows
from tauloop.common.errors import InputError, Problems, solving
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, in_json
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Result, provenance
from tauloop.drives.machine.path import (
    PATH_INTEGRATOR,
    DrivenMachine,
    DrivenMotion,
    Variation,
    has_two_motors,
)
from tauloop.integrate.events import Event, Occurrence
from tauloop.integrate.integrators import Integrator, described
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model
from tauloop.motion import Ellipse, PeakSpeed, Trajectory, Trapezoidal, plan, stroke

#: Number of laps. The middle lap is measured, at constant speed.
LAPS = 3
#: Fraction of the total time for acceleration, and for deceleration.
RAMP_FRACTION = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Circle(Options):
    """A circle of the platform.

    Attributes:
        columns: the two positions of the plane, such as ``platform.x``, ``platform.y``; the circle
            starts along the first and is traversed toward the second.
        radius: radius, m.
        speed: speed on the circle, m/s.
        center: center of the circle in the two positions, m; default: the reference pose.
    """

    columns: tuple[str, str]
    radius: float = option(above=0.0, below=np.inf)
    speed: float = option(above=0.0, below=np.inf)
    center: tuple[float, float] | None = None

    def _note_mismatches(self, problems: Problems) -> None:
        """Add problems for coordinates that do not form a plane."""
        if len(set(self.columns)) != 2:
            problems.add(
                "columns",
                "are not two different positions",
                "name two, such as platform.x and platform.y",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lap:
    """The measured lap of one run, with the criteria of ISO 230-4.

    Attributes:
        angle: commanded angle on the circle (N,), rad.
        radial: distance from the center of the best-fitting circle, minus the commanded radius
            (N,), m.
        center: center of the best-fitting circle (least squares), minus the commanded one (2,), m.
        radius_error: radius of the best-fitting circle, minus the commanded radius, m.
        deviation: circular deviation: largest minus smallest radial distance, m.
        normal: largest distance from the plane of the circle, m.
        following: largest distance of the platform from its reference at the same time, m.
        rms: root mean square of the following distance, m.
        motion: the whole run.
    """

    angle: np.ndarray
    radial: np.ndarray
    center: np.ndarray
    radius_error: float
    deviation: float
    normal: float
    following: float
    rms: float
    motion: DrivenMotion

    figures = old_attribute("figures", "deviations")

    @property
    def deviations(self) -> dict[str, float]:
        """Criteria by name, um."""
        return {
            "circular_deviation": 1e6 * self.deviation,
            "radius_error": 1e6 * self.radius_error,
            "center_first": 1e6 * float(self.center[0]),
            "center_second": 1e6 * float(self.center[1]),
            "out_of_plane": 1e6 * self.normal,
            "following_error": 1e6 * self.following,
            "following_rms": 1e6 * self.rms,
        }

    @property
    def values(self) -> dict[str, Any]:
        """Criteria, and radial deviations over the angle; values with names in _um are in um."""
        return {f"{name}_um": value for name, value in self.deviations.items()} | {
            "steps": self.motion.steps,
            "events": self.motion.events,
            "angle_deg": np.degrees(self.angle),
            "radial_um": 1e6 * self.radial,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CircleTest(Result):
    """Results of a circular test: a lap for each variation of the drive lines.

    Attributes:
        machine: name of the machine.
        circle: the commanded circle.
        laps: laps by variation, without the runs that ended early.
        ends: why a run ended early, by variation.
        occurrences: events by variation.
        model: model of the machine, for pictures.
    """

    machine: str
    circle: Circle
    laps: Mapping[Variation, Lap] = field(metadata=OMITTED)
    ends: Mapping[Variation, str] = field(metadata=OMITTED)
    occurrences: Mapping[Variation, tuple[Occurrence, ...]] = field(metadata=OMITTED)
    model: Model | None = field(default=None, metadata=OMITTED)

    def variables(self) -> Iterator[Variable]:
        """Yield the criteria of every `run`, and its radial deviation over the `angle`, SI."""
        laps = list(self.laps.values())
        names = ("deviation", "radius_error", "normal", "following", "rms")
        values: dict[str, list[float]] = {}
        for name in names:
            values[name] = [getattr(lap, name) for lap in laps]
        yield from rows(
            "run",
            (variation.label for variation in self.laps),
            dict.fromkeys(names, "m"),
            **values,
        )
        if laps:
            yield Variable(name="angle", values=laps[0].angle, over=("angle",), unit="rad")
            radial = np.array([lap.radial for lap in laps])
            yield Variable(name="radial", values=radial, over=("run", "angle"), unit="m")

    @property
    @in_json()
    def runs(self) -> dict[str, dict[str, Any]]:
        """Values of every lap, by label of the variation."""
        return {variation.label: lap.values for variation, lap in self.laps.items()}

    @property
    @in_json()
    def ended_early(self) -> dict[str, str]:
        """Why a run ended early, by label of the variation."""
        return {variation.label: reason for variation, reason in self.ends.items()}

    @property
    @in_json()
    def events(self) -> dict[str, tuple[Occurrence, ...]]:
        """Events, by label of the variation."""
        return {variation.label: items for variation, items in self.occurrences.items()}


def circle_trajectory(model: Model, circle: Circle) -> Trajectory:
    """Return a trajectory of three laps from rest to rest, with constant speed on the middle lap.

    Raises:
        InputError: positions that the platform does not have.
        PoseError: the circle is out of reach or leads through a singularity.
    """
    columns = model.platform.ports.position.columns
    InputError.raise_if_any(unknown_names(circle.columns, columns, "is not a platform position"))
    order = sorted(circle.columns, key=columns.index)
    swapped = order != list(circle.columns)
    reference = model.platform_position(model.assembly.q[None])[0]
    center: Sequence[float] | None = circle.center
    if center is None:
        center = tuple(reference[columns.index(name)] for name in circle.columns)
    vectors = np.array([center, (circle.radius, 0.0), (0.0, circle.radius)], dtype=float)
    if swapped:
        vectors = vectors[:, ::-1]
    path = Ellipse(vectors[0], vectors[1], vectors[2], 0.0, 2 * np.pi * LAPS)
    return plan(stroke(model, path, order), Trapezoidal(RAMP_FRACTION), PeakSpeed(circle.speed))


@solving(InputError)
def circle_test(
    mechanism: Mechanism,
    circle: Circle,
    *,
    variations: Sequence[Variation] | None = None,
    values: Mapping[str, float] | None = None,
    integrator: Integrator = PATH_INTEGRATOR,
    presliding: float | None = None,
    folder: Path | None = None,
    events: Sequence[Event] = (),
    progress: Progress | None = None,
) -> CircleTest:
    """Simulate a circular test of a machine with variations of its drive lines.

    Args:
        mechanism: machine with drive lines.
        circle: commanded circle and speed.
        variations: variations of the lines; default: all (`AS_DESCRIBED` only if a line has two
            motors).
        values: values of parameters of the lines that differ from the machine file, SI; a variation
            without such a parameter ignores it.
        integrator: integrator of the equations.
        presliding, folder: as in `DrivenMachine`.
        events: events to look for; a terminal event ends a run.
        progress: called with the work done and the total work.

    Returns:
        One lap for each variation.

    Raises:
        InputError: the machine has no drive lines, a line is invalid, or a parameter is unknown.
        PoseError: the circle is out of reach or leads through a singularity.
    """
    if variations is None:
        variations = [
            v for v in Variation if v is not Variation.AS_DESCRIBED or has_two_motors(mechanism)
        ]
    model, stages = Model(mechanism), Stages(progress, 1 + len(variations))
    trajectory = circle_trajectory(model, circle)
    remedy = "see `tauloop show NAME --table`"
    names = mechanism.parameters.names
    InputError.raise_if_any(
        unknown_names(values or {}, names, "is not an independent parameter", remedy=remedy)
    )
    stages.done()
    laps = {}
    ends = {}
    occurrences = {}
    diagnostics = []
    for variation in stages.over(variations):
        machine = DrivenMachine(
            mechanism,
            variation=variation,
            presliding=presliding,
            folder=folder,
        )
        line_values = {
            name: value
            for name, value in (values or {}).items()
            if name in machine.system.parameters.names
        }
        motion = machine.follow(
            trajectory, values=line_values, integrator=integrator, events=events
        )
        occurrences[variation] = motion.occurrences
        diagnostics += [
            replace(item, name=f"{variation.value}: {item.name}") for item in motion.diagnostics
        ]
        if motion.end:
            ends[variation] = motion.end
        else:
            laps[variation] = _lap(motion, circle, trajectory)
    return CircleTest(
        diagnostics=tuple(diagnostics),
        provenance=provenance(
            options={
                "circle": circle,
                "integrator": described(integrator),
                "values": dict(values or {}),
            },
            inputs={"machine": mechanism.name},
        ),
        machine=mechanism.name,
        circle=circle,
        laps=laps,
        ends=ends,
        occurrences=occurrences,
        model=model,
    )


def _lap(motion: DrivenMotion, circle: Circle, trajectory: Trajectory) -> Lap:
    """Return the results of the middle lap."""
    lap = trajectory.places(motion.time) * LAPS
    is_measured = (lap >= 1.0) & (lap < 2.0)
    in_plane = [motion.columns.index(name) for name in circle.columns]
    error = motion.error[is_measured]
    angle = 2 * np.pi * (lap[is_measured] - 1.0)
    directions = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    points = circle.radius * directions + error[:, in_plane]
    # |p|^2 = 2 p . c + (r^2 - |c|^2) is linear in the center c and in r^2 - |c|^2
    A = np.column_stack([2 * points, np.ones(len(points))])
    solution, *_ = np.linalg.lstsq(A, (points**2).sum(axis=1), rcond=None)
    center = solution[:2]
    distance = np.linalg.norm(points - center, axis=1)
    out_of_plane = [i for i in range(len(motion.columns)) if i not in in_plane]
    error_norm = np.linalg.norm(error, axis=1)
    return Lap(
        angle=angle,
        radial=distance - circle.radius,
        center=center,
        radius_error=float(np.sqrt(solution[2] + center @ center)) - circle.radius,
        deviation=float(np.ptp(distance)),
        normal=float(np.abs(error[:, out_of_plane]).max(initial=0.0)),
        following=float(error_norm.max()),
        rms=float(np.sqrt(np.mean(error_norm**2))),
        motion=motion,
    )
