"""Free motions: known bars, limits and distances by other routes, derivatives of their program, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from page_tables import numbers, page_table

import tauloop as tl
from tauloop.motion import (
    BoxObstacle,
    Ellipse,
    FreeMotion,
    FreePlanner,
    Objective,
    PathLimits,
    PathRows,
    SphereObstacle,
    Surroundings,
    fastest_law,
    polyline,
    stroke,
)
from tauloop.motion.free.chart import SplinePath, chart
from tauloop.motion.free.program import FreeProgram
from tauloop.motion.free.rows import rows_at
from tauloop.motion.free.sequential import Sequential
from tauloop.motion.laws import Uniform
from tauloop.testing.machines import serial_chain

DELTA = tl.Model(tl.load("delta"))
TORQUE = 41.76
#: Start and end of the pick-and-place motion of the bars, and two boxes that both given paths of
#: the bars clear.
START, END = np.array([-0.1525, 0.0, -0.525]), np.array([0.1525, 0.0, -0.525])
BOXES = tuple(BoxObstacle(center=(x, 0.0, -0.53), size=(0.04, 0.1, 0.05)) for x in (-0.05, 0.05))
#: What rounding leaves of limits, and how much less than the clearance is kept between collocation
#: points, m.
KEPT, TOUCH = 1e-6, 5e-5
#: Derivatives beside differences, and beside CasADi's of the whole program.
DIFFERENCES, ALIKE = 1e-6, 1e-9
#: A motion that is planned again beside one that is planned anew: IPOPT ends sooner, and time alone
#: mends what is left.
AGAIN = 0.01


def shares(motion: FreeMotion) -> np.ndarray:
    """Torques over the largest, by inverse dynamics at 4001 times of the motion itself."""
    x = np.linspace(0.0, 1.0, 4001)
    placed, duration = motion.stroke, motion.law.duration
    moved = placed.motion(motion.law.law.at(x), 1.0 / duration, x * duration)
    return (
        np.asarray(DELTA.platform.inverse_dynamics(*moved.states, start=placed.start(x)).force)
        / TORQUE
    )


def test_a_free_path_past_two_boxes_beats_the_laws_along_paths_that_clear_them_too() -> None:
    motion = FreePlanner(DELTA, PathLimits(), surroundings=Surroundings(obstacles=BOXES)).plan(
        START, END
    )
    assert np.abs(shares(motion)).max() < 1.0 + KEPT
    way = motion.stroke.path.at(np.linspace(0.0, 1.0, 4001))
    assert way.position[[0, -1]] == pytest.approx(np.array([START, END]))
    assert way.derivative[[0, -1]] == pytest.approx(0.0, abs=1e-12)
    up, middle, columns = np.array([0.0, 0.0, 0.025]), 0.5 * (START + END), motion.stroke.columns
    paths = (
        Ellipse(middle, START - middle, up, 0.0, np.pi),
        polyline(np.array([START, START + up, END + up, END]), 0.012),
    )
    for path in paths:
        along = fastest_law(PathRows(stroke(DELTA, path, columns), PathLimits()), intervals=300)
        assert motion.law.duration < 0.96 * along.duration
    for box in BOXES:
        assert box.distances(way.position).min() > 0.002 - TOUCH
        assert all(
            box.distances(path.at(np.linspace(0.0, 1.0, 2001)).position).min() > 0.002
            for path in paths
        )
    # the fastest 3-4-5 law on the ellipse, by an independent program
    assert motion.law.duration < 0.58 * 0.1188


def test_a_motion_whose_end_moves_is_planned_again_within_its_limits() -> None:
    planner = FreePlanner(DELTA, PathLimits(force=0.9))
    first = planner.plan(START, END)
    for shift in ([0.0, 0.02, 0.0], [-0.012, 0.014, -0.008]):
        moved = planner.replan(END + shift)
        assert moved.stroke.path.at(np.ones(1)).position[0] == pytest.approx(END + shift)
        assert np.abs(shares(moved)).max() < 0.9 * (1.0 + KEPT)
    anew = FreePlanner(DELTA, PathLimits(force=0.9)).plan(START, END + shift)
    assert moved.law.duration == pytest.approx(anew.law.duration, rel=AGAIN)
    assert first.measure < first.allowed


def test_quadratic_programs_in_turn_end_where_ipopt_does() -> None:
    x, p = ca.MX.sym("x", 3), ca.MX.sym("p", 1)
    cost = (1.0 - x[0]) ** 2 + 5.0 * (x[1] - x[0] ** 2) ** 2 + ca.exp(p * x[2])
    rows = ca.vertcat(ca.sumsqr(x), x[0] + x[1] * x[2], x[2] - x[0])
    weights, factor = ca.MX.sym("l", 3), ca.MX.sym("f")
    bent = ca.triu(ca.hessian(factor * cost + ca.dot(weights, rows), x)[0])
    derivatives = {
        "grad_f": ca.Function("grad_f", [x, p], [cost, ca.gradient(cost, x)]),
        "jac_g": ca.Function("jac_g", [x, p], [rows, ca.jacobian(rows, x)]),
        "hess_lag": ca.Function("hess_lag", [x, p, factor, weights], [bent]),
    }
    bounds = {"lbx": np.full(3, -2.0), "ubx": np.full(3, 3.0)}
    bounds |= {"lbg": np.array([-np.inf, 0.2, -1.0]), "ubg": np.array([1.0, np.inf, 3.0])}
    solver = ca.nlpsol(
        "s",
        "ipopt",
        {"x": x, "p": p, "f": cost, "g": rows},
        {"print_time": False, "ipopt.print_level": 0},
    )
    solution = solver(x0=[0.5, 0.5, -0.4], p=0.7, **bounds)
    settled = Sequential(derivatives).solved(
        np.array([0.5, 0.5, -0.4]), np.array([0.7]), np.zeros(3), bounds
    )
    assert settled is not None
    # the last step is a 500th of the room
    assert settled[0] == pytest.approx(solution["x"].full().ravel(), abs=1e-3)
    assert settled[1][1] == pytest.approx(solution["lam_g"].full().ravel(), abs=1e-3)
    bounds["ubg"] = np.array([-1.0, np.inf, 3.0])  # no ball has a negative radius
    assert (
        Sequential(derivatives).solved(
            np.array([0.5, 0.5, -0.4]), np.array([0.7]), np.zeros(3), bounds
        )
        is None
    )


@pytest.mark.nightly
def test_past_boxes_a_hundred_ends_that_moved_are_planned_again() -> None:
    """None is refused; times stand in the benchmark. Every twentieth is planned anew beside it."""
    around = Surroundings(obstacles=BOXES)
    planner = FreePlanner(DELTA, PathLimits(force=0.9), surroundings=around, compiled=True)
    first, rng = planner.plan(START, END), np.random.default_rng(0)
    for k in range(100):
        shift = rng.normal(size=3)
        end = END + 0.02 * shift / np.linalg.norm(shift)
        planner.restart(first)
        moved = planner.replan(end)
        assert np.abs(shares(moved)).max() < 0.9 * (1.0 + 1e-4)
        way = moved.stroke.path.at(np.linspace(0.0, 1.0, 2001)).position
        assert all(box.distances(way).min() > 0.002 - TOUCH for box in BOXES)
        if k % 20 == 0:
            anew = FreePlanner(DELTA, PathLimits(force=0.9), surroundings=around).plan(START, end)
            assert moved.law.duration < (1.0 + AGAIN) * anew.law.duration


def test_energy_is_what_forces_and_speeds_say_and_less_than_that_of_the_fastest_motion() -> None:
    options = {"start": {"x": -0.1}, "end": {"x": 0.1}, "copper_loss": 0.02, "reserve": 0.0}
    spent = []
    for optimise in ("time", "energy"):
        result = tl.plan_transfer(DELTA, tl.TransferOptions(optimize=optimise, **options))  # type: ignore[arg-type]
        time = np.linspace(0.0, result.duration, 4001)
        energy = np.trapezoid(0.02 * (result.trajectory.forces(time) ** 2).sum(axis=1), time)
        assert result.energy == pytest.approx(energy, rel=1e-2)
        spent.append((energy, result.duration))
    assert spent[1][0] < 0.5 * spent[0][0]
    assert spent[1][1] > spent[0][1]


def test_the_programs_derivatives_are_casadis_of_the_whole() -> None:
    q = DELTA.platform.kinematics(np.array([START, END])).q
    free = chart(DELTA.topology, DELTA.platform.ports, np.array([START, END]))
    limits = PathLimits(
        reversal=0.02, payload=tl.model.Payload(mass=0.3), motor_curve=((0.0, 1.0), (40.0, 0.5))
    )
    around = Surroundings(
        obstacles=(*BOXES, SphereObstacle(center=(0.0, 0.1, -0.5), radius=0.02)), rod_radius=0.005
    )
    rows = rows_at(DELTA, free, limits, around, q, 50.0, 0.1)
    program = FreeProgram(rows, 6, rate=rows.power, change=100.0, is_held=True)
    problem, rng = program.problem, np.random.default_rng(3)
    x, p = problem["x"], problem["p"]
    line = (
        START
        + np.linspace(0.0, 1.0, 5)[1:-1, None] * (END - START)
        + rng.normal(size=(3, 3)) * 0.01
    )
    at = np.append(line.ravel(), 0.2), np.concatenate([START, END, [0.2]])
    weights = rng.normal(size=problem["g"].numel())
    whole = ca.Function(
        "whole",
        [x, p],
        [
            ca.jacobian(problem["g"], x),
            ca.gradient(problem["f"], x),
            ca.hessian(0.7 * problem["f"] + ca.dot(weights, problem["g"]), x)[0],
        ],
    )
    jacobian, gradient, hessian = (np.asarray(ca.DM(part)) for part in whole(*at))
    ours = program.derivatives
    assert np.asarray(ca.DM(ours["jac_g"](*at)[1])) == pytest.approx(
        jacobian, abs=ALIKE * np.abs(jacobian).max()
    )
    assert np.asarray(ours["grad_f"](*at)[1]) == pytest.approx(
        gradient, abs=ALIKE * np.abs(gradient).max()
    )
    bent = np.asarray(ca.DM(ours["hess_lag"](*at, 0.7, weights)))
    assert bent == pytest.approx(np.triu(hessian), abs=ALIKE * np.abs(hessian).max())


def test_paths_that_turn_have_unit_quaternions_and_the_rates_of_their_expressions() -> None:
    model = tl.Model(tl.load("hexapod"))
    ports, rng = model.platform.ports, np.random.default_rng(5)
    start = ports.at(model.assembly.q)
    end = start + rng.normal(size=start.size) * 0.03
    end[3:] /= np.linalg.norm(end[3:])
    ends = np.array([start, end])
    free = chart(model.topology, ports, ends)
    control = free.free(ends)[0] + np.linspace(0.0, 1.0, 9)[:, None] * np.diff(
        free.free(ends), axis=0
    )
    path = SplinePath(chart=free, coefficients=control + rng.normal(size=control.shape) * 0.003)
    u, h = np.linspace(0.1, 0.9, 7) + 0.003, 1e-5
    low, here, high = (path.at(u + k * h) for k in (-1, 0, 1))
    assert np.linalg.norm(here.position[:, 3:], axis=1) == pytest.approx(1.0, abs=1e-14)
    assert (high.position - low.position) / (2 * h) == pytest.approx(
        here.derivative, abs=DIFFERENCES
    )
    assert (high.derivative - low.derivative) / (2 * h) == pytest.approx(
        here.second_derivative, abs=1e-4
    )
    placed = stroke(model, path, ports.position.columns, ranges=False)
    moved = placed.under(u, np.ones((1, 1)), np.zeros((1, 1)))
    rates = [ca.SX.sym(name, free.freedoms) for name in "xva"]
    function = ca.Function("rates", rates, list(free.expressions(*rates)))
    for k, row in enumerate(u):
        values = function(*(path.spline(row, i) for i in range(3)))
        for ours, theirs in zip(values, moved, strict=False):
            assert np.asarray(ours).ravel() == pytest.approx(theirs[k], abs=1e-9)


def test_distances_are_the_expressions_of_the_program() -> None:
    point, rng = ca.SX.sym("p", 3), np.random.default_rng(7)
    for obstacle in (BOXES[0], SphereObstacle(center=(0.02, 0.0, -0.5), radius=0.03)):
        function = ca.Function("distance", [point], [obstacle.expression(point)])
        points = np.asarray(obstacle.center) + rng.normal(size=(50, 3)) * 0.04
        expected = [float(function(row)) for row in points]
        assert obstacle.distances(points) == pytest.approx(np.array(expected), abs=2e-6)


def test_outlines_lie_where_distances_are_none() -> None:
    for obstacle in (BOXES[0], SphereObstacle(center=(0.02, 0.0, -0.5), radius=0.03)):
        for i, j in ((0, 1), (0, 2), (1, 2)):
            points = np.tile(obstacle.center, (len(outline := obstacle.outline(i, j)), 1))
            points[:, [i, j]] = outline
            assert obstacle.distances(points) == pytest.approx(0.0, abs=1e-12)
            assert outline[0] == pytest.approx(outline[-1])


def test_the_measure_bounds_the_condition_number() -> None:
    rng = np.random.default_rng(9)
    position = np.array([0.0, 0.0, -0.5]) + rng.uniform(-0.1, 0.1, (20, 3))
    free = chart(DELTA.topology, DELTA.platform.ports, position[:2])
    q = DELTA.platform.kinematics(position).q
    rows = rows_at(DELTA, free, PathLimits(), Surroundings(), q[:2], 50.0, 0.0)
    bound = ca.Function("bound", [rows.y], [rows.measure])
    # one unit alone enters: all velocities are of lengths
    J = DELTA.platform.actuator_jacobian(position)
    for row, matrix in zip(position, J, strict=True):
        assert np.linalg.cond(matrix) < np.exp(float(bound(np.concatenate([row, np.zeros(6)])))) * (
            1.0 + 1e-12
        )


@pytest.mark.nightly
def test_forces_that_change_slowly_begin_and_end_at_rest() -> None:
    limits = PathLimits(force=0.9, reversal=0.02)
    motion = FreePlanner(DELTA, limits, objective=Objective(intervals=16)).plan(START, END)
    share = shares(motion)
    time = np.linspace(0.0, motion.law.duration, 4001)
    rate = np.abs(np.diff(share, axis=0) / np.diff(time)[:, None]).max()
    assert rate < 2.0 / 0.02 * (1.0 + 1e-3)
    still = DELTA.platform.inverse_dynamics(START, np.zeros(3), np.zeros(3)).force / TORQUE
    assert share[0] == pytest.approx(still, abs=1e-6)


@pytest.mark.nightly
def test_rods_keep_off_obstacles_too() -> None:
    ball = SphereObstacle(center=(-0.049, 0.083, -0.442), radius=0.03)
    for rod_radius in (None, 0.006):
        options = tl.TransferOptions(
            start={"x": -0.1}, end={"x": 0.1}, spheres=(ball,), rod_radius=rod_radius, reserve=0.1
        )
        result = tl.plan_transfer(DELTA, options)
        names = [item.name for item in result.nearest]
        assert ("sphere 1 to rods" in names) == (rod_radius is not None)
        assert all(item.distance > 0.002 - TOUCH for item in result.nearest)


@pytest.mark.nightly
def test_the_simulator_follows_it_and_the_reserve_has_its_price() -> None:
    options = tl.TransferOptions(start={"x": -0.1}, end={"x": 0.1}, payload=0.2)
    result = tl.plan_transfer(DELTA, options)
    assert result.status.value == "ok"
    assert [run.payload for run in result.tried] == [0.0, 0.2]
    assert all(run.peak_share < 1.0 and not run.end for run in result.tried)
    assert 0.0 < 1.0 - result.without_reserve / result.duration < 0.08
    assert {part.limit.split(" ")[0] for part in result.active} <= {
        "",
        "leg1.motor",
        "leg2.motor",
        "leg3.motor",
    }
    assert result.gains["fastest, start's path"] > 0.0


def test_places_hold_no_rounding() -> None:
    start = dict(zip("xyz", START, strict=True))
    placed = tl.plan_stroke(
        DELTA, tl.StrokeOptions(start=start, end={"x": 0.1, "y": 1e-31}, duration=1.0)
    )
    assert (
        placed.trajectory.stroke.place(1.0)
        == "100.0 % of the path (platform.x = 0.1 m, platform.y = 0 m)"
    )


def test_what_cannot_be_planned_is_refused() -> None:
    with pytest.raises(tl.InputError, match="no end of the motion"):
        tl.TransferOptions(start={"x": 0.1})
    with pytest.raises(tl.InputError, match="needs the winding losses of the motors"):
        tl.plan_transfer(DELTA, tl.TransferOptions(end={"x": 0.1}, optimize="energy"))
    with pytest.raises(tl.InputError, match="minimal wear needs a bound"):
        tl.TransferOptions(end={"x": 0.1}, optimize="wear")
    inside = tl.TransferOptions(
        end={"x": 0.1}, spheres=(SphereObstacle(center=(0.1, 0.0, -0.5), radius=0.01),)
    )
    with pytest.raises(tl.PoseError, match="end: is -10 mm from sphere 1"):
        tl.plan_transfer(DELTA, inside)
    with pytest.raises(
        tl.PoseError, match=r"^end: leg1.forearm is out of reach by .* in this pose"
    ):
        tl.plan_transfer(DELTA, tl.TransferOptions(end={"x": 1.0}))
    with pytest.raises(tl.InputError, match="has cables"):
        tl.plan_transfer(tl.Model(tl.load("cable_camera")), tl.TransferOptions(end={"x": 0.01}))
    with pytest.raises(tl.InputError, match="is the same as the start"):
        tl.plan_transfer(DELTA, tl.TransferOptions(end={"x": 0.0}))


@pytest.mark.parametrize(
    "seed",
    [
        3,
        *(
            pytest.param(seed, marks=pytest.mark.nightly)
            for seed in (2, 5, 6, 7, 9, 11, 12, 13, 14, 15)
        ),
    ],
)
def test_arms_with_coulomb_friction_are_planned_faster_than_along_the_straight_way(
    seed: int,
) -> None:
    """Random ones, whose joints turn back and forth while others are needed."""
    rng = np.random.default_rng(seed)
    mechanism = serial_chain(rng)
    model = tl.Model(mechanism)
    platform = model.platform
    here, n = platform.ports.at(model.assembly.q), platform.ports.velocity.size
    force = (
        np.abs(platform.inverse_dynamics(here, np.zeros(n), 10.0 * rng.normal(size=n)).force) + 5.0
    )
    motors = zip(mechanism.actuators, 3.0 * force, strict=True)
    model = tl.Model(
        replace(mechanism, actuators=tuple(replace(motor, force=float(f)) for motor, f in motors))
    )
    planner = FreePlanner(model, PathLimits(force=0.9))
    motion = planner.plan(here, here + 0.05 * (np.arange(len(here)) == 0))
    straight = fastest_law(PathRows(planner.start_path(), PathLimits(force=0.9)))
    assert motion.law.duration < 1.02 * straight.duration
    assert abs(motion.law.duration / motion.guess.duration - 1.0) < 0.03
    share, _ = motion.law.rows.shares(
        Uniform().at(np.linspace(0.0, 1.0, 4001)), 1.0 / motion.law.duration
    )
    assert share.max() < 1.0 + 1e-6


@pytest.mark.nightly
def test_platforms_that_turn_are_planned_too() -> None:
    model = tl.Model(tl.load("hexapod"))
    result = tl.plan_transfer(model, tl.TransferOptions(end={"x": 0.05}, rotation=(0.0, 0.0, 0.2)))
    assert result.status.value == "ok"
    assert result.gains["fastest, start's path"] > 0.05
    end = result.trajectory.at(np.array([result.duration])).position[0]
    assert end[3:] == pytest.approx([np.cos(0.1), 0.0, 0.0, np.sin(0.1)])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "options", "values"),
    [
        (
            "delta",
            {"start": dict(zip("xyz", START, strict=True)), "end": {"x": END[0]}, "boxes": BOXES},
            (65.3, 24.6, 43.7, 42.5, 5.2, 3.99),
        ),
        (
            "nuwar",
            {"start": {"x": 0.0, "y": -0.144, "z": -0.648}, "end": {"y": 0.144}},
            (59.9, 8.8, 25.4, 23.9, 5.1, 8.53),
        ),
        (
            "gantry_tau_3dof",
            {"start": {"x": -0.6, "y": -0.1}, "end": {"x": 0.6, "y": 0.1}, "intervals": 60},
            (715.0, 0.1, 47.6, 44.1, 0.3, 2.77),
        ),
        (
            "gantry_tau_5dof",
            {"start": {"x": -0.6, "y": -0.1}, "end": {"x": 0.6, "y": 0.1}},
            (721.0, 0.0, 47.1, 43.6, 0.4, 5.87),
        ),
        (
            "par4",
            {"start": {"x": -0.15, "y": 0.0}, "end": {"x": 0.15, "spin": 1.0}},
            (117.5, 6.4, 25.6, 22.6, 5.1, 179.0),
        ),
    ],
)
def test_gains_over_other_laws(
    name: str, options: dict[str, object], values: tuple[float, ...]
) -> None:
    """Time in ms, gains over fastest, cycloidal and 3-4-5 in %, cost of the reserve in %, condition.

    An optimum ends where rounding leaves it: a hundredth of the time, one point of a gain.
    """
    result = tl.plan_transfer(tl.Model(tl.load(name)), tl.TransferOptions(**options))
    time, *gains, reserve, condition = values
    assert 1e3 * result.duration == pytest.approx(time, rel=0.01)
    assert [100 * gain for gain in result.gains.values()] == pytest.approx(gains, abs=1.0)
    assert 100 * (1 - result.without_reserve / result.duration) == pytest.approx(reserve, abs=0.3)
    assert result.trajectory.stroke.condition == pytest.approx(condition, rel=0.02)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["time", "energy", "wear"])
def test_what_is_least_on_the_page_is_least(kind: str) -> None:
    """Times in ms, energies in J, wear in rad or mrad; an optimum ends where rounding leaves it."""
    rows = page_table("transfers.md", "| | time | energy").rows
    (cells,) = [cells for cells in rows if cells[0].startswith(f"least {kind}")]
    longest = {} if kind == "time" else {"longest": 0.1}
    options = tl.TransferOptions(
        start={"x": -0.1}, end={"x": 0.1}, copper_loss=0.02, optimize=kind, **longest
    )
    result = tl.plan_transfer(tl.load("delta"), options)
    wear = result.wear * (1e3 if cells[3].endswith("mrad") else 1.0)
    own = [1e3 * result.duration, result.energy, wear]
    assert own == pytest.approx([float(numbers(cell)[0]) for cell in cells[1:]], rel=0.01)
