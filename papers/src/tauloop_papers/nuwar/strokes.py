"""Strokes of NUWAR: torques by inverse dynamics (Figure 2), and the stroke back by forward dynamics (Figure 3).

The paper's ellipse as printed is out of reach of the printed geometry, so it is run scaled. The
round trip goes by Hamilton's equations with Baumgarte's stabilisation, as in the paper, and by
independent coordinates beside it.
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
#: Formulations must agree to this share of the largest torque; a round trip shall return to within
#: so many metres.
AGREEMENT, RETURNED = 1e-10, 1e-9
#: At which accelerations are looked at.
HEIGHTS = 25


def run(progress: Progress, settings: StrokeSettings = SETTINGS) -> Strokes:
    """Run the strokes of section 6."""
    own = tl.load(settings.machine)
    machines = {settings.machine: own, settings.other: of_same_parts(settings.other, own)}
    models = {name: tl.Model(machine) for name, machine in machines.items()}
    model = models[settings.machine]
    progress("how far the printed ellipse is out of reach")
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
                "torques by Hamilton and by Newton and Euler: difference over the largest",
                max(single_model.spread / single_model.peak for single_model in runs),
                at_most=AGREEMENT,
                advice="two formulations disagree: this is a fault in Tauloop",
            ),
            diagnostic(
                "largest error of a round trip",
                max(single_model.largest for single_model in trips),
                at_most=RETURNED,
                unit="m",
                advice="inverse and forward dynamics disagree, or the tolerances are too wide",
            ),
        ),
        provenance=provenance(
            packages=("numpy", "scipy", "casadi"), options=plain(settings), inputs={}
        ),
    )
    return replace(findings, comparisons=comparisons(findings), printed=printed(findings, model))


def fastest(model: tl.Model, settings: StrokeSettings) -> float:
    """Largest acceleration from rest that the motors' limit gives, on the axis over the heights of the stroke, m/s^2.

    It is linear in the torques, so some corner of their cube gives the largest.
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
    """The paper's half ellipse, scaled; `direction` in degrees from x about z, along y without it."""
    along = np.array([np.cos(np.radians(direction)), np.sin(np.radians(direction)), 0.0])
    center, up = np.array([[0.0, 0.0, settings.bottom], [0.0, 0.0, settings.rise]]) * scale
    return Ellipse(center, -settings.half_width * scale * along, up, 0.0, np.pi)


def paths(settings: StrokeSettings) -> dict[str, Path]:
    """The four shapes of section 6, between the same points or as wide."""
    scale = settings.scale
    arc = ellipse(settings, scale)
    start, end = (arc.at(np.array([u])).position[0] for u in (0.0, 1.0))
    y, z = np.eye(3)[1:]
    width = 2 * scale * settings.half_width
    return {
        "ellipse": arc,
        "straight line": Line(start, end),
        "sheared ellipse": sheared_ellipse(
            arc.center, arc.first, arc.second, settings.shear, 0.0, np.pi
        ),
        "clothoid": Clothoid(
            start=start, direction=y, normal=z, length=width, curvature=settings.curvature
        ),
    }


def printed_ellipse(model: tl.Model, settings: StrokeSettings) -> tuple[float, tuple[str, ...]]:
    """The largest scale at which the ellipse is in reach, by bisection, and what each leg misses of the printed one."""
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
    """A stroke there and back with the printed largest acceleration."""
    placed = stroke(model, path, COLUMNS, ranges=ranges)
    return plan(placed, law, PeakAcceleration(settings.acceleration), returns=True)


def torques(model: tl.Model, path: Path, settings: StrokeSettings, machine: str) -> Run:
    """The torques of a stroke there and back, by two formulations; `machine` is a name or a file."""
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
    """Largest torque of each machine by direction of the stroke, N m."""
    table = {}
    for name, machine in machines.items():
        mass = machine.parameters["forearm_mass"].value
        model = tl.Model(machine.with_values({"forearm_mass": factor * mass}))
        made = [
            planned(
                model,
                ellipse(settings, settings.scale, turn),
                POLYNOMIAL_345,
                settings,
                ranges=False,
            )
            for turn in settings.turns
        ]
        table[name] = tuple(
            max(abs(peak.force) for peak in run_made.peak_forces()) for run_made in made
        )
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
    """Torques by inverse dynamics, and the stroke that they give by forward dynamics."""
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
