"""Free motions of machines whose loops close by iteration: derivatives by differences, limits, and assembly modes."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np
import pytest

import tauloop as tl
from tauloop.motion import FreePlanner, PathLimits, PathRows, Surroundings, fastest_law, stroke
from tauloop.motion.free.chart import SplinePath, chart
from tauloop.motion.free.loops import IteratedLoops
from tauloop.motion.free.program import FreeProgram
from tauloop.motion.free.rows import rows_at

#: Derivatives beside differences of fourth order, over the largest.
DIFFERENCES = 1e-8
#: What rounding leaves of limits.
KEPT = 1e-6


def differences(
    function: Callable[[np.ndarray], np.ndarray], x: np.ndarray, step: float
) -> np.ndarray:
    """Jacobian by differences of fourth order."""
    columns = []
    for d in np.eye(len(x)) * step:
        near, far = (function(x + k * d) - function(x - k * d) for k in (1, 2))
        columns.append((8.0 * near - far) / (12.0 * step))
    return np.array(columns).T


def ends_of(model: tl.Model, way: float) -> np.ndarray:
    """Positions at the reference pose and where the first one has moved."""
    start = model.platform.ports.at(model.assembly.q)
    return np.array([start, start + way * np.eye(len(start))[0]])


def test_derivatives_along_the_manifold_are_differences_of_states_that_newton_closes() -> None:
    """A machine that turns in part, whose platform moves aside as it tilts."""
    model = tl.Model(tl.load("three_prs"))
    ends = ends_of(model, 0.02)
    free, q = chart(model.topology, model.platform.ports, ends), model.platform.follow(ends).q
    limits = PathLimits(tool_acceleration=20.0, reversal=0.02)
    rows = rows_at(model, free, limits, Surroundings(), q, 50.0, 0.1)
    program, rng = (
        FreeProgram(rows, 6, rate=rows.power, change=100.0, is_held=True),
        np.random.default_rng(3),
    )
    line = (
        ends[0]
        + np.linspace(0.0, 1.0, 5)[1:-1, None] * (ends[1] - ends[0])
        + rng.normal(size=(3, 3)) * 0.005
    )
    x, p = np.append(line.ravel(), 0.3), np.append(ends.ravel(), 0.3)
    ours, weights = program.derivatives, rng.normal(size=program.problem["g"].numel())

    def array(matrix: ca.DM) -> np.ndarray:
        return np.asarray(matrix.full())

    def slope(x: np.ndarray) -> np.ndarray:
        down, jacobian = array(ours["grad_f"](x, p)[1]).ravel(), array(ours["jac_g"](x, p)[1])
        return np.asarray(0.7 * down + jacobian.T @ weights)

    jacobian, bent = array(ours["jac_g"](x, p)[1]), array(ours["hess_lag"](x, p, 0.7, weights))
    by_rows = differences(lambda x: array(ours["jac_g"](x, p)[0]).ravel(), x, 2e-5)
    assert by_rows == pytest.approx(jacobian, abs=DIFFERENCES * np.abs(jacobian).max())
    by_slopes = differences(slope, x, 2e-5)
    assert np.triu(by_slopes) == pytest.approx(bent, abs=DIFFERENCES * np.abs(bent).max())


def test_rates_of_a_rotation_that_is_independent_in_part_are_those_along_a_path() -> None:
    """Forces and the tool's acceleration of the program beside those of inverse dynamics of a path."""
    model = tl.Model(tl.load("three_prs"))
    ports, rng = model.platform.ports, np.random.default_rng(5)
    ends = ends_of(model, 0.02)
    free, q = chart(model.topology, ports, ends), model.platform.follow(ends).q
    limits = PathLimits(tool_acceleration=20.0)
    rows = rows_at(model, free, limits, Surroundings(), q, 50.0, 0.1)
    control = (
        ends[0]
        + np.linspace(0.0, 1.0, 9)[:, None] * (ends[1] - ends[0])
        + rng.normal(size=(9, 3)) * 0.02
    )
    placed = stroke(
        model, SplinePath(chart=free, coefficients=control), ports.position.columns, ranges=False
    )
    u = np.linspace(0.12, 0.88, 4)  # off the knots
    rows.loops.follow(placed.grid, placed.q)
    y = np.concatenate([placed.path.spline(u, k) for k in range(3)], axis=1)  # type: ignore[attr-defined]
    at = ca.Function("at", [rows.y, rows.loops.symbols], [rows.forces, rows.values]).map(len(u))
    forces, values = (np.asarray(part).T for part in at(y.T, rows.loops.at(u, y[:, :3]).T))
    motion = placed.under(u, np.ones((1, 1)), np.zeros((1, 1)))
    solution = model.platform.inverse_dynamics(*motion[:3], start=motion[3])
    size = np.array([actuator.force for actuator in model.mechanism.actuators])
    assert forces * size == pytest.approx(solution.force, rel=1e-9)
    h = 1e-4
    places = [
        np.asarray(
            model.platform.tool(placed.position(u + k * h), start=placed.start(u + k * h)).place
        )
        for k in (-1, 0, 1)
    ]
    pull = np.linalg.norm((places[0] - 2.0 * places[1] + places[2]) / h**2, axis=1)
    share = values[:, rows.names.index("tool acceleration")]
    assert 20.0 * np.sqrt(share) == pytest.approx(pull, rel=1e-5)


def test_a_transfer_keeps_the_limits_of_its_motors_and_stays_in_its_assembly_mode() -> None:
    model = tl.Model(tl.load("sarrus"))
    start, end = ends_of(model, -0.3)
    motion = FreePlanner(model, PathLimits(force=0.9)).plan(start, end)
    x, duration = np.linspace(0.0, 1.0, 2001), motion.law.duration
    placed = motion.stroke
    moved = placed.motion(motion.law.law.at(x), 1.0 / duration, x * duration)
    forces = np.asarray(model.platform.inverse_dynamics(*moved.states, start=placed.start(x)).force)
    size = np.array([actuator.force for actuator in model.mechanism.actuators])
    assert (np.abs(forces[1:-1]) / size).max() == pytest.approx(0.9, rel=2e-3)
    assert (np.abs(forces[1:-1]) / size).max() < 0.9 * (1.0 + KEPT)
    assert np.abs(np.diff(placed.q, axis=0)).max() < 0.05  # no leg folds over


@pytest.mark.nightly
def test_legs_with_friction_that_turn_keep_all_limits_with_its_jumps() -> None:
    """All three legs turn on the way; with the jump, by inverse dynamics, all limits are kept."""
    model = tl.Model(tl.load("three_upu"))
    planner = FreePlanner(model, PathLimits(force=0.9))
    motion = planner.plan([0.059, -0.016, 0.455], [-0.085, 0.046, 0.454])
    x, duration = np.linspace(0.0, 1.0, 2001), motion.law.duration
    moved = motion.stroke.motion(motion.law.law.at(x), 1.0 / duration, x * duration)
    forces = np.asarray(
        model.platform.inverse_dynamics(*moved.states, start=motion.stroke.start(x)).force
    )
    assert 0.95 * 0.9 < (np.abs(forces) / 300.0).max() < 0.9 * (1.0 + 1e-3)
    line = fastest_law(PathRows(planner.start_path(), PathLimits(force=0.9)), intervals=200)
    assert duration < 0.93 * line.duration


def test_loops_in_another_assembly_mode_are_seen() -> None:
    """By the side of the singularity between them, and where both lie on the same one by where the path leads."""
    for name, mirrored in (
        ("irb360", {"upper_fork.first": -np.pi, "shaft_length": -2.0}),
        ("three_upu", {"leg1.foot.first": np.pi, "leg1.length": -2.0}),
    ):
        model = tl.Model(tl.load(name))
        names, q = list(model.topology.coordinate_names), model.assembly.q
        ends = np.stack([q, q])
        free = chart(model.topology, model.platform.ports, model.platform.ports.at(ends))
        loops, u = IteratedLoops(model, free, ends), np.array([0.0, 1.0])
        position = free.free(model.platform.ports.at(ends))
        here = loops.at(u, position)
        assert np.isfinite(here).all()
        there = q.copy()
        for coordinate, change in mirrored.items():
            i = names.index(coordinate)
            there[i] = (
                there[i] * (1.0 + change) if coordinate.endswith("length") else there[i] + change
            )
        loops.follow(u, np.stack([there, there]))
        if name == "irb360":
            assert np.isnan(loops.at(u, position)).all()
            continue
        assert np.abs(loops.at(u, position) - here).max() > 1.0
        path = SplinePath(chart=free, coefficients=np.tile(position[0], (9, 1)))
        placed = stroke(model, path, model.platform.ports.position.columns)
        with pytest.raises(tl.PoseError, match="leaves its assembly mode at"):
            loops.require_same_assembly_mode(placed, u, position)
