"""Dry friction along a path: its side at rest and at reversals, and fastest laws that use all of the forces with it."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import tauloop as tl
from tauloop.formats import machine_path
from tauloop.motion import (
    LAWS,
    Line,
    Path,
    PathLimits,
    PathRows,
    SampledPath,
    Stroke,
    Trajectory,
    fastest_law,
    fastest_rate,
    limited_law,
    polyline,
    stroke,
)
from tauloop.motion.fastest.planning import with_breaks
from tauloop.motion.strokes.dry_friction import friction_sides

PLANE = ("platform.x", "platform.y")
#: The bar: by which share a law may be slower than the optimum.
SLOWER = 1e-3
#: What rounding leaves of limits on a grid ten times finer than the law's.
KEPT = 1e-6
#: Rounding of a profile on a grid ten times finer.
ROUNDING = 1e-9
FRICTION = "friction: {viscous: 0.01 N m s/rad, coulomb: 0.05 N m}"
STRIBECK = "friction: {coulomb: 0.5 N m, static: 2 N m, stribeck: 0.1 rad/s}"
ASYMMETRIC = "friction: {coulomb: 0.7 N m, coulomb_asymmetry: 0.3 N m, offset: 0.2 N m}"
SLIDE = """
format: tauloop-machine/1
name: slide
provenance: {status: chosen, source: of this test}
gravity: [0, 0, 0]
bodies: {cart: {mass: 2 kg}}
joints: {rail: {type: prismatic, axis: x, parent: base, child: cart, reference: 0 m, friction: FRICTION}}
actuators: {motor: {on: rail, force: 10 N}}
platform: {body: cart, independent: [rail]}
"""
#: Two slides at right angles: along one of them the other rests.
CROSS = """
format: tauloop-machine/1
name: cross
provenance: {status: chosen, source: of this test}
gravity: [0, 0, 0]
bodies: {bridge: {mass: 3 kg}, cart: {mass: 2 kg}}
joints:
  x: {type: prismatic, axis: x, parent: base, child: bridge, reference: 0 m, friction: {coulomb: 3 N}}
  y: {type: prismatic, axis: y, parent: bridge, child: cart, reference: 0 m, friction: {coulomb: 2 N}}
actuators: {along: {on: x, force: 10 N}, across: {on: y, force: 6 N}}
platform: {body: cart, independent: [x, y]}
"""


def five_bar(friction: str, passive: str = "") -> tl.Model:
    """A five-bar with other friction of its motors' joints, and some of its passive ones."""
    text = machine_path("five_bar").read_text(encoding="utf-8").replace(FRICTION, friction)
    if passive:
        for angle in ("-89.54162887451466", "89.54162887451466", "97.55008118966038"):
            text = text.replace(
                f"reference: {angle} deg\n", f"reference: {angle} deg\n    {passive}\n"
            )
    return tl.Model(tl.loads(text))


def slide(friction: str) -> Stroke:
    model = tl.Model(tl.loads(SLIDE.replace("FRICTION", friction)))
    return stroke(model, Line([0.0], [0.3]), ("rail",))


def line(model: tl.Model) -> Stroke:
    return stroke(model, Line([-0.074, 0.41], [0.02, 0.363]), PLANE)


def spline(model: tl.Model) -> Stroke:
    """A path on which joints reverse."""
    return stroke(
        model,
        SampledPath(np.array([[-0.08, 0.38], [0.0, 0.45], [0.05, 0.37], [0.08, 0.44]])),
        PLANE,
    )


def forces(placed: Stroke, u: np.ndarray, speed: np.ndarray, pull: np.ndarray) -> np.ndarray:
    """Forces by inverse dynamics of a motion that does not rest."""
    *motion, start = placed.under(u, speed[None], pull[None])
    return np.asarray(placed.functions.inverse_dynamics(*motion, start=start).force)


def taken(placed: Stroke, best: object, samples: int = 10_001) -> np.ndarray:
    """Largest shares of the motors' forces by inverse dynamics, but for the instants of rest."""
    law, duration = best.law, best.duration  # type: ignore[attr-defined]
    progress = law.at(np.linspace(0.0, 1.0, samples)[1:-1])
    size = np.array([actuator.force for actuator in placed.model.mechanism.actuators])
    values = forces(
        placed, progress.s, progress.derivative / duration, progress.second_derivative / duration**2
    )
    return np.asarray(np.abs(values / size).max(axis=1))


def optimum(placed: Stroke, unit: float, intervals: int = 400) -> float:
    """The shortest time by a program in squared speeds b, which IPOPT solves: constant accelerations in intervals.

    Inverse dynamics at four motions on each side of each interval's middle gives the coefficients
    of force; friction that falls with speed is not among them. Intervals end at reversals, found
    here from signs of all speeds.
    """
    fine = np.linspace(0.0, 1.0, 40_001)
    *motion, start = placed.under(fine, np.ones((1, 1)), np.zeros((1, 1)))
    v = np.asarray(placed.functions.kinematics(*motion[:2], start=start).v)
    moving = np.abs(v).max(axis=0) > 1e-6 * np.abs(v).max()
    turned = fine[1:][(np.diff(np.sign(v[:, moving]), axis=0) != 0).any(axis=1)]
    u = np.union1d(np.linspace(0.0, 1.0, intervals + 1), turned)
    n, d = len(u) - 1, np.diff(u)
    size = np.array([actuator.force for actuator in placed.model.mechanism.actuators])
    b = ca.MX.sym("b", n + 1)
    a, root = (b[1:] - b[:-1]) / (2.0 * d), ca.sqrt(b + 1e-13)
    kept = []
    for share, side in ((1e-3, slice(0, n)), (1.0 - 1e-3, slice(1, n + 1))):
        at, ones = u[:-1] + share * d, np.ones(n)
        slow, middle, quick = (
            forces(placed, at, k * unit * ones, 0.0 * ones) for k in (1.0, 2.0, 3.0)
        )
        A = forces(placed, at, unit * ones, unit**2 * ones) - slow
        B = 0.5 * (quick - 2.0 * middle + slow)
        V = middle - slow - 3.0 * B
        C = slow - B - V
        for k in range(len(size)):
            force = (
                ca.DM(A[:, k]) * a
                + ca.DM(B[:, k]) * b[side]
                + ca.DM(V[:, k]) * root[side]
                + ca.DM(C[:, k])
            )
            kept.append(force / size[k])
    program = {"x": b, "f": ca.sum1(2.0 * d / (root[1:] + root[:-1])), "g": ca.vertcat(*kept)}
    settings = {"print_level": 0, "sb": "yes", "tol": 1e-9}
    solver = ca.nlpsol("optimum", "ipopt", program, {"print_time": False, "ipopt": settings})
    high = np.full(n + 1, np.inf)
    high[[0, -1]] = 0.0
    solution = solver(x0=0.2 * np.sin(np.pi * u) ** 2 + 1e-6, lbx=0.0, ubx=high, lbg=-1.0, ubg=1.0)
    assert solver.stats()["success"]
    return float(solution["f"]) / unit


@pytest.mark.parametrize(
    "friction", ["coulomb: 3 N", "coulomb: 3 N, static: 6 N, stribeck: 1e-9 m/s"]
)
def test_a_slide_brakes_with_its_motor_and_its_friction(friction: str) -> None:
    """Two constant accelerations, (F - C) / m and (F + C) / m; static friction acts at one instant only."""
    best = fastest_law(PathRows(slide(f"{{{friction}}}"), PathLimits()))
    ahead, back = (10.0 - 3.0) / 2.0, (10.0 + 3.0) / 2.0
    assert best.duration == pytest.approx(
        np.sqrt(2.0 * 0.3 * (1.0 / ahead + 1.0 / back)), rel=SLOWER
    )
    share = np.abs(
        Trajectory(stroke=best.rows.stroke, law=best.law, duration=best.duration)
        .peak_forces()[0]
        .force
    )
    assert share == pytest.approx(10.0, rel=KEPT)


def test_fixed_laws_brake_with_friction_too() -> None:
    """The parabolic law is bound where it speeds up; where it brakes, friction of 3 N helps, at its end as well."""
    placed = slide("{coulomb: 3 N}")
    rate = fastest_rate(placed, LAWS["parabolic"])
    assert rate == pytest.approx(1.0 / (2.0 * np.sqrt(0.3 / 3.5)), rel=1e-8)
    trajectory = Trajectory(stroke=placed, law=LAWS["parabolic"], duration=1.0 / rate)
    ends = trajectory.forces(np.array([0.0, trajectory.duration, 1.1 * trajectory.duration]))
    assert ends.ravel() == pytest.approx([10.0, -4.0, 0.0], abs=1e-9)


@pytest.mark.parametrize(
    "coulomb",
    [
        pytest.param(0.0, marks=pytest.mark.nightly),
        pytest.param(0.05, marks=pytest.mark.nightly),
        1.0,
        2.0,
    ],
)
def test_a_law_with_dry_friction_is_the_optimum_and_uses_all_torque(coulomb: float) -> None:
    placed = line(five_bar(f"friction: {{coulomb: {coulomb} N m}}"))
    rows = PathRows(placed, PathLimits())
    best = fastest_law(rows)
    assert best.duration < optimum(placed, rows.unit()) * (1.0 + SLOWER)
    share = taken(placed, best)
    assert np.median(share) > 0.999
    assert 1.0 - KEPT < share.max() < 1.0 + KEPT


@pytest.mark.parametrize(
    ("friction", "passive"),
    [
        ("friction: {coulomb: 1 N m}", ""),
        pytest.param(
            FRICTION,
            "friction: {coulomb: 0.4 N m, viscous: 0.02 N m s/rad}",
            marks=pytest.mark.nightly,
        ),
        pytest.param(ASYMMETRIC, ASYMMETRIC, marks=pytest.mark.nightly),
    ],
)
def test_joints_that_reverse_on_the_way_lose_no_time(friction: str, passive: str) -> None:
    placed = spline(five_bar(friction, passive))
    assert len(placed.friction_sides.reversals) > 0
    rows = PathRows(placed, PathLimits())
    best = fastest_law(rows)
    assert best.duration < optimum(placed, rows.unit(), 1000) * (1.0 + SLOWER)
    share = taken(placed, best)
    assert np.median(share) > 0.999
    assert share.max() < 1.0 + KEPT


@pytest.mark.parametrize("path", [line, pytest.param(spline, marks=pytest.mark.nightly)])
def test_static_friction_that_falls_with_speed_is_used_at_its_speed(path: object) -> None:
    placed = path(five_bar(STRIBECK))  # type: ignore[operator]
    best = fastest_law(PathRows(placed, PathLimits()))
    share = taken(placed, best)
    assert np.median(share) > 0.999
    assert share.max() < 1.0 + KEPT
    sliding = path(five_bar("friction: {coulomb: 0.5 N m}"))  # type: ignore[operator]
    without = fastest_law(PathRows(sliding, PathLimits()))
    assert best.duration == pytest.approx(without.duration, rel=0.02)


def test_limits_between_points_of_the_grid_hold_to_rounding() -> None:
    placed = spline(five_bar("friction: {coulomb: 1 N m, viscous: 0.05 N m s/rad}"))
    rows = PathRows(placed, PathLimits())
    best = fastest_law(rows)
    profile = best.law.profile  # type: ignore[attr-defined]
    shares = np.arange(10) / 10
    k = np.repeat(np.arange(len(profile.first)), len(shares))
    w = np.tile(shares, len(profile.first)) * np.diff(profile.grid)[k]
    excess = rows.at(profile.grid[k] + w, best.unit).excess(*profile.at(k, w))
    assert excess.max() <= ROUNDING


def test_joints_that_rest_over_a_part_of_the_path_have_no_side_there() -> None:
    corner = polyline(np.array([[0.0, 0.0], [0.2, 0.0], [0.2, 0.2]]), 0.02)
    placed = stroke(tl.Model(tl.loads(CROSS)), corner, ("x", "y"))
    assert placed.friction_sides.at(np.array([0.1, 0.5, 0.9])).tolist() == [[1, 0], [1, 1], [0, 1]]
    best = fastest_law(PathRows(placed, PathLimits()))
    share = best.rows.shares(best.law.at(np.linspace(0.0, 1.0, 10_001)), 1.0 / best.duration)[
        0
    ].max(axis=1)
    assert np.median(share) > 0.999
    assert 1.0 - KEPT < share.max() < 1.0 + KEPT


@pytest.mark.parametrize("name", ["five_bar", "gantry_tau_5dof", "pendulum_arm"])
def test_sides_along_a_path_give_the_forces_of_inverse_dynamics(name: str) -> None:
    model = tl.Model(tl.load(name))
    port = model.platform.ports.position
    n = min(port.size, 3)
    base, rng = model.platform.ports.at(model.assembly.q)[:n], np.random.default_rng(3)
    points = base + np.concatenate([np.zeros((1, n)), rng.uniform(-0.04, 0.04, (3, n))])
    placed = stroke(model, SampledPath(points), port.columns[:n], ranges=False)
    u = rng.uniform(size=400)
    away = np.abs(u[:, None] - np.append(placed.friction_sides.reversals, -1.0)).min(axis=1) > 1e-6
    u = u[away]
    for direction in (1.0, -1.0):
        *motion, start = placed.under(u, np.full((1, 1), direction * 2.0), np.full((1, 1), 3.0))
        expected = np.asarray(placed.functions.inverse_dynamics(*motion, start=start).force)
        made = np.asarray(placed.forces(u, direction, tuple(motion)).force)
        assert made == pytest.approx(expected, abs=1e-9 * np.abs(expected).max())


def test_at_rest_friction_is_the_limit_from_the_side_of_the_motion() -> None:
    placed = line(five_bar(STRIBECK.replace("0.1 rad/s", "5 rad/s")))
    u = np.array([0.0, 1.0])
    near = forces(placed, u, np.full(2, 1e-7), np.full(2, 3.0))
    *motion, _ = placed.under(u, np.zeros((1, 1)), np.full((1, 1), 3.0))
    assert np.asarray(placed.forces(u, 1.0, tuple(motion)).force) == pytest.approx(near, abs=1e-6)
    none = np.asarray(placed.functions.inverse_dynamics(*motion, start=placed.start(u)).force)
    assert np.abs(near - none).min() > 1.5


@pytest.mark.parametrize(
    ("coulomb", "reversal", "ends"), [(2.0, 0.02, "held"), (1.0, 1e-3, "braked")]
)
def test_bounds_of_changes_never_make_a_motion_shorter(
    coulomb: float, reversal: float, ends: str
) -> None:
    placed = line(five_bar(f"friction: {{coulomb: {coulomb} N m}}"))
    without = fastest_law(PathRows(placed, PathLimits()))
    limits = PathLimits(reversal=reversal, ends=ends)
    best = limited_law(replace(without, rows=PathRows(placed, limits)))
    assert best.duration >= without.duration
    assert taken(placed, best).max() < 1.0 + KEPT


def test_sides_of_speeds_that_cross_touch_and_rest() -> None:
    def speeds(u: np.ndarray) -> np.ndarray:
        crossing, touching = u - 0.3, (u - 0.5) ** 2
        twice = (u - 0.6) * (u - 0.6004)
        resting = np.where(u < 0.7, 1e-15 * np.sin(1e4 * u), u - 0.7)
        return np.stack([crossing, touching, twice, resting, u], axis=1)

    sides = friction_sides(speeds, np.linspace(0.0, 1.0, 1025), (0.7,))
    assert sides.reversals == pytest.approx([0.3, 0.6, 0.6004, 0.7], abs=1e-8)
    assert sides.reversals[-1] == 0.7
    expected = [
        [-1, 1, 1, 0, 1],
        [1, 1, 1, 0, 1],
        [1, 1, -1, 0, 1],
        [1, 1, 1, 0, 1],
        [1, 1, 1, 1, 1],
    ]
    assert sides.sides.tolist() == expected
    ahead, behind = np.nextafter(sides.reversals, 0.0), sides.reversals
    assert sides.at(ahead).tolist() == expected[:-1]
    assert sides.at(behind).tolist() == expected[1:]


def test_kinks_near_each_other_are_all_points_of_a_grid() -> None:
    kinks = np.array([0.301, 0.302, 0.31])
    grid = with_breaks(np.linspace(0.0, 1.0, 11), kinks)
    assert np.isin(kinks, grid).all()
    assert (np.diff(grid) > 0).all()
    assert grid[[0, -1]].tolist() == [0.0, 1.0]


class _Backwards(Path):
    """A path from its end to its start."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def at(self, u: np.ndarray):  # type: ignore[no-untyped-def]
        curve = self.path.at(1.0 - u)
        return replace(curve, derivative=-curve.derivative)


@pytest.mark.nightly
def test_the_way_back_under_its_own_friction_is_the_path_run_backwards() -> None:
    model = five_bar(ASYMMETRIC)
    path = Line([-0.074, 0.41], [0.02, 0.363])
    back = fastest_law(PathRows(stroke(model, _Backwards(path), PLANE), PathLimits()))
    ahead = fastest_law(PathRows(stroke(model, path, PLANE), PathLimits()))
    both = fastest_law(PathRows(stroke(model, path, PLANE), PathLimits(), returns=True))
    assert both.duration > max(ahead.duration, back.duration)
    assert abs(ahead.duration - back.duration) > 1e-4 * ahead.duration
