"""Strokes of NUWAR: inverse dynamics (Figure 2), and round trips (Figure 3).

The ellipse as printed is out of reach of the printed geometry, so it is scaled. The round trip uses
Hamilton's equations with Baumgarte's stabilization, as in the paper, and independent coordinates
for comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np

import tauloop as tl
from tauloop.common.errors import PoseError
from tauloop.common.result import diagnostic, plain, provenance
from tauloop.motion import (
    LAWS,
    POLYNOMIAL_345,
    Clothoid,
    Ellipse,
    Law,
    Line,
    MachineLimits,
    Path,
    PeakAcceleration,
    Trajectory,
    plan,
    sheared_ellipse,
    stroke,
)
from tauloop.simulation import (
    DormandPrince,
    ExtendedSpace,
    IndependentCoordinates,
    Route,
    round_trip,
)
from tauloop_papers.alike import of_same_parts
from tauloop_papers.nuwar.results import Run, Strokes, Trip
from tauloop_papers.nuwar.settings import SETTINGS, StrokeSettings
from tauloop_papers.nuwar.table import LAWS_USED, choices, comparisons, printed
from tauloop_papers.reproduction import EXPERIMENTS, Progress

COLUMNS = ("platform.x", "platform.y", "platform.z")
#: Largest difference of torques by two formulations, relative to the largest torque.
TORQUE_AGREEMENT = 1e-10
#: Largest position error of a round trip, m.
ROUND_TRIP_TOLERANCE = 1e-9
#: Number of heights at which accelerations are computed.
HEIGHTS = 25


def run(progress: Progress, settings: StrokeSettings = SETTINGS) -> Strokes:
    """Simulate the strokes of section 6."""
    own = tl.load(settings.machine)
    machines = {settings.machine: own, settings.other: of_same_parts(settings.other, own)}
    models = {name: tl.Model(machine) for name, machine in machines.items()}
    model = models[settings.machine]
    progress("checking the reach for the printed ellipse")
    fits = {name: printed_ellipse(single_model, settings) for name, single_model in models.items()}
    progress("torques (Figure 2)")
    stroke = ellipse(settings, settings.scale)
    runs = tuple(
        torques(single_model, stroke, settings, name) for name, single_model in models.items()
    )
    progress("the same in other directions")
    turned = {
        reading: _turned(machines, factor, settings)
        for reading, factor in settings.readings.items()
    }
    progress("the round trip (Figure 3)")
    shapes = paths(settings)
    first = next(iter(shapes))
    routes: dict[str, Route] = {
        "Hamilton's equations": ExtendedSpace(),
        "independent": IndependentCoordinates(),
    }
    trips = [
        trip(model, first, shapes[first], "3-4-5", name, route, settings)
        for name, route in routes.items()
    ]
    for name, path in shapes.items():
        for law, word in LAWS_USED.items():
            if (name, law) == (first, "3-4-5"):
                continue
            progress(f"{name}, {word}")
            trips.append(
                trip(model, name, path, law, "Hamilton's equations", ExtendedSpace(), settings)
            )
    progress("counting operations")
    counted = tl.count_operations(model.mechanism).costs
    operations = {
        cost.formulation: cost.total for cost in counted if cost.quantity == "inverse dynamics"
    }
    findings = Strokes(
        experiment=EXPERIMENTS["nuwar"],
        settings=settings,
        comparisons=(),
        choices=choices(settings),
        fits=fits,
        runs=runs,
        turned=turned,
        trips=tuple(trips),
        shapes={
            name: path.at(np.linspace(0.0, 1.0, 101)).position for name, path in shapes.items()
        },
        operations=operations,
        coordinates=model.topology.n_q,
        fastest=fastest(model, settings),
        diagnostics=(
            diagnostic(
                "torques by Hamilton and by Newton-Euler: relative difference",
                max(single_model.spread / single_model.peak for single_model in runs),
                at_most=TORQUE_AGREEMENT,
                advice="report this fault of Tauloop: two formulations disagree",
            ),
            diagnostic(
                "largest error of a round trip",
                max(single_model.largest for single_model in trips),
                at_most=ROUND_TRIP_TOLERANCE,
                unit="m",
                advice="tighten the tolerances; otherwise inverse and forward dynamics disagree",
            ),
        ),
        provenance=provenance(
            packages=("numpy", "scipy", "casadi"), options=plain(settings), inputs={}
        ),
    )
    return replace(findings, comparisons=comparisons(findings), printed=printed(findings, model))


def fastest(model: tl.Model, settings: StrokeSettings) -> float:
    """Return the largest acceleration from rest on the axis of the machine, m/s^2.

    It is linear in the torques, so that a corner of their cube has the largest value.
    """
    corners = settings.limit * np.array(list(product((-1.0, 1.0), repeat=3)))
    heights = settings.scale * (settings.bottom + settings.rise * np.linspace(0.0, 1.0, HEIGHTS))
    position = np.zeros((HEIGHTS * len(corners), 3))
    position[:, 2] = np.repeat(heights, len(corners))
    state = model.platform.forward_dynamics(
        position, np.zeros_like(position), np.tile(corners, (HEIGHTS, 1))
    )
    acceleration = np.asarray(state.a)[:, list(model.platform.ports.v)]
    return float(np.linalg.norm(acceleration, axis=1).max())


def ellipse(settings: StrokeSettings, scale: float, direction: float = 90.0) -> Ellipse:
    """Return the paper's half ellipse, scaled; `direction` in degrees from x about z."""
    along = np.array([np.cos(np.radians(direction)), np.sin(np.radians(direction)), 0.0])
    center, up = np.array([[0.0, 0.0, settings.bottom], [0.0, 0.0, settings.rise]]) * scale
    return Ellipse(center, -settings.half_width * scale * along, up, 0.0, np.pi)


def paths(settings: StrokeSettings) -> dict[str, Path]:
    """Return the four shapes of section 6, between the same points or of the same width."""
    scale = settings.scale
    arc = ellipse(settings, scale)
    start, end = (arc.at(np.array([u])).position[0] for u in (0.0, 1.0))
    y, z = np.eye(3)[1:]
    width = 2 * scale * settings.half_width
    return {
        "ellipse": arc,
        "straight line": Line(start, end),
        "sheared ellipse": sheared_ellipse(
            arc.center, arc.semi_axis_a, arc.semi_axis_b, settings.shear, 0.0, np.pi
        ),
        "clothoid": Clothoid(
            start=start, direction=y, normal=z, length=width, curvature=settings.curvature
        ),
    }


def printed_ellipse(model: tl.Model, settings: StrokeSettings) -> tuple[float, tuple[str, ...]]:
    """Return the largest scale of an ellipse in reach, and distances to the printed one."""
    low, high = settings.scale, 1.0
    try:
        stroke(model, ellipse(settings, 1.0), COLUMNS, ranges=False)
        return 1.0, ()
    except PoseError as error:
        misses = tuple(
            f"{problem.where} {problem.what.split(' in ')[0]}" for problem in error.problems[1:]
        )
    while high - low > 1e-4:
        middle = 0.5 * (low + high)
        try:
            stroke(model, ellipse(settings, middle), COLUMNS, ranges=False)
            low = middle
        except PoseError:
            high = middle
    return low, misses


def planned(
    model: tl.Model, path: Path, law: Law, settings: StrokeSettings, *, ranges: bool = True
) -> Trajectory:
    """Return a stroke back and forth with the printed largest acceleration."""
    placed = stroke(model, path, COLUMNS, ranges=ranges)
    return plan(placed, law, PeakAcceleration(settings.acceleration), returns=True)


def torques(model: tl.Model, path: Path, settings: StrokeSettings, machine: str) -> Run:
    """Return the torques of a stroke by two formulations; `machine` is a name or a file."""
    trajectory = planned(model, path, POLYNOMIAL_345, settings)
    motion = trajectory.at(np.linspace(0.0, trajectory.total, settings.samples))
    sampled = (motion.position, motion.velocity, motion.acceleration)
    force = model.platform.inverse_dynamics(*sampled).force
    by_hamilton = (
        tl.Model(model.mechanism, formulation="hamilton").platform.inverse_dynamics(*sampled).force
    )
    return Run(
        machine=machine,
        time=motion.time,
        position=motion.position,
        torque=force,
        peaks=tuple(peak.force for peak in trajectory.peak_forces()),
        one_way=trajectory.duration,
        shortest=plan(trajectory.stroke, POLYNOMIAL_345, MachineLimits()).duration,
        spread=float(np.abs(force - by_hamilton).max()),
    )


def _turned(
    machines: Mapping[str, tl.Mechanism], factor: float, settings: StrokeSettings
) -> dict[str, tuple[float, ...]]:
    """Return the largest torque of each machine by direction of the stroke, N m."""
    table = {}
    for name, machine in machines.items():
        mass = machine.parameters["forearm_mass"].value
        model = tl.Model(machine.with_values({"forearm_mass": factor * mass}))
        peaks = []
        for turn in settings.turns:
            path = ellipse(settings, settings.scale, turn)
            trajectory = planned(model, path, POLYNOMIAL_345, settings, ranges=False)
            peaks.append(max(abs(peak.force) for peak in trajectory.peak_forces()))
        table[name] = tuple(peaks)
    return table


def trip(
    model: tl.Model,
    name: str,
    path: Path,
    law: str,
    route_name: str,
    route: Route,
    settings: StrokeSettings,
) -> Trip:
    """Compute torques by inverse dynamics, and simulate the stroke with them."""
    trajectory = planned(model, path, LAWS[law], settings)
    rtol, atol = settings.tolerance
    duration = trajectory.total if name == "ellipse" else trajectory.duration
    trip = round_trip(
        model, trajectory, duration, route=route, integrator=DormandPrince(rtol=rtol, atol=atol)
    )
    kept = slice(None, None, max(len(trip.error) // settings.samples, 1))
    return Trip(
        path=name,
        law=law,
        route=route_name,
        peak=max(abs(peak.force) for peak in trajectory.peak_forces()),
        one_way=trajectory.duration,
        time=trip.simulation.time[kept],
        error=trip.error[kept],
        residual=float(trip.simulation.residual.max()),
    )
