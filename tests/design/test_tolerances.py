"""Errors of the tool by tolerances: against changed machines, Jacobians, corners and closed forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.design.tolerances.allocation_programs import (
    continuous_allocation,
    graded_allocation,
)
from tauloop.design.tolerances.worst_case import COVERING_COSINE, farthest

#: Central differences of the forward kinematics, whose loops close to about 1e-13 m.
DIFFERENCES = 2e-6
#: Rounding of the same sum in another order.
ROUNDING = 1e-10
#: Standard deviation of a standard deviation of 20 000 samples, five times.
SAMPLED = 0.025
#: Newton's solution of a machine with errors, m.
NEWTON = 1e-12
#: Accuracy of the multipliers of coupled errors.
COUPLED = 1e-4
#: Optimality of the dual problem's solution.
OPTIMUM = 1e-6

DELTA_POSES = np.array([[0.0, 0.0, -0.5], [0.1, -0.05, -0.55], [-0.12, 0.08, -0.48]])
MACHINES = ("delta", "five_bar", "hexapod", "linear_delta", "rcid", "gantry_tau_5dof")


def changed_tool(name: str, parameter: str, change: float, poses: np.ndarray) -> np.ndarray:
    """Return the tool center points of a machine with one other value, at the same actuators."""
    mechanism = tl.load(name)
    model = tl.Model(mechanism)
    q = np.asarray(model.inverse_kinematics(poses).q)
    value = mechanism.parameters[parameter].value + change
    other = tl.Model(mechanism.with_values({parameter: value}))
    moved = np.asarray(other.actuators.kinematics(model.actuator_position(q), start=q).q)
    return np.asarray(other.tool_pose(other.platform_position(moved))[..., :3, 3])


@pytest.mark.parametrize("parameter", ["arm_length", "forearm_length", "motor_radius"])
def test_common_errors_are_differences_of_changed_machines(parameter: str) -> None:
    step = 1e-5
    ahead = changed_tool("delta", parameter, step, DELTA_POSES)
    behind = changed_tool("delta", parameter, -step, DELTA_POSES)
    result = tl.tolerance_map(
        "delta", DELTA_POSES, tolerances={parameter: 1.0e-4}, common=(parameter,)
    )
    expected = np.abs(ahead - behind) / (2.0 * step) * 1.0e-4
    assert result.sources[0] == parameter
    assert result.contributions[:, :3, 0] == pytest.approx(expected, abs=1e-4 * DIFFERENCES)


@pytest.mark.parametrize("name", MACHINES)
def test_errors_of_encoders_follow_the_jacobian(name: str) -> None:
    result = tl.tolerance_map(name, encoders={"*": 1e-5}, samples=5)
    model = tl.Model(name)
    q = np.asarray(model.inverse_kinematics(result.platform).q)
    J = model.actuators.tool_jacobian(model.actuator_position(q), start=q)
    expected = 1e-5 * np.abs(J).sum(axis=2)
    assert result.worst == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert result.root_sum_square == pytest.approx(1e-5 * np.linalg.norm(J, axis=2), abs=1e-12)


def test_clearance_at_the_end_of_a_rod_acts_along_the_rod() -> None:
    length = tl.tolerance_map("delta", DELTA_POSES, tolerances={"forearm_length": "20 um"})
    play = tl.tolerance_map("delta", DELTA_POSES, clearances={"*.forearm.end": "20 um"})
    assert play.sources == tuple(f"leg{i}.forearm.end" for i in (1, 2, 3))
    assert play.contributions == pytest.approx(length.contributions, abs=1e-12)


@pytest.mark.parametrize("name", MACHINES)
def test_random_machines_are_inside_the_worst_case(name: str) -> None:
    """Newton's solution of machines with random errors, in all directions."""
    from tauloop.design.tolerances.error_equations import ErrorEquations, part_parameters

    model = tl.Model(name)
    result = tl.tolerance_map(model, tolerances={"*": "0.1 mm"}, samples=4)
    geometric = [
        source.partition("@")[0]
        for source, kind in zip(result.sources, result.kinds, strict=True)
        if kind == "parameter"
    ]
    parts = part_parameters(model.assembly.mechanism, tuple(dict.fromkeys(geometric)))
    equations = ErrorEquations(model, parts, ())
    q = np.asarray(model.inverse_kinematics(result.platform).q)
    first = equations.first_order(q)
    generator = np.random.default_rng(5)
    count = 200
    limits = np.zeros(equations.count)  # the last ones are errors of encoders
    limits[: len(result.tolerances)] = result.tolerances
    errors = generator.choice([-1.0, 1.0], (count, equations.count)) * limits
    for pose in range(len(q)):
        start = np.tile(q[pose], (count, 1))
        velocities = errors @ first.velocities[pose].T
        place, _, residual = equations.displaced(start, velocities, errors)
        moved = place - result.tool[pose]
        assert residual.max() < 1e-9
        allowed = result.worst[pose, :3] + 1.5 * result.second_order[pose, :3] + 1e-12
        assert (np.abs(moved) <= allowed).all()
        slack = 1.5 * np.linalg.norm(result.second_order[pose, :3])
        assert np.linalg.norm(moved, axis=1).max() <= result.worst_distance[pose] + slack


@pytest.mark.parametrize(
    "name",
    ["delta", "hexapod", "linear_delta", "rcid", "gantry_tau_5dof", "five_bar", "spidermill"],
)
def test_random_machines_are_inside_the_proved_bound(name: str) -> None:
    """Newton's solutions of 1 000 machines, at corners and inside; without any slack but rounding."""
    from tauloop.design.tolerances.error_equations import ErrorEquations, part_parameters

    model = tl.Model(name)
    result = tl.tolerance_map(model, tolerances={"*": "0.3 mm"}, samples=2)
    names = tuple(dict.fromkeys(source.partition("@")[0] for source in result.sources))
    equations = ErrorEquations(model, part_parameters(model.assembly.mechanism, names), ())
    q = np.asarray(model.inverse_kinematics(result.platform).q)
    first = equations.first_order(q)
    generator = np.random.default_rng(6)
    corners = generator.choice([-1.0, 1.0], (500, equations.count))
    shares = np.concatenate([corners, generator.uniform(-1.0, 1.0, (500, equations.count))])
    limits = np.zeros(equations.count)  # the last ones are errors of encoders
    limits[: len(result.tolerances)] = result.tolerances
    for pose in range(len(q)):
        for axis in range(3):  # the corners that are worst to first order, too
            shares[2 * axis] = np.sign(first.twist[pose, axis])
            shares[2 * axis + 1] = -shares[2 * axis]
        errors = shares * limits
        start = np.tile(q[pose], (len(errors), 1))
        place, _, left = equations.displaced(start, errors @ first.velocities[pose].T, errors)
        assert left.max() < NEWTON
        moved = np.abs(place - result.tool[pose])
        assert (moved <= result.proved_worst[pose, :3] + NEWTON).all()
        linear = errors @ first.twist[pose, :3].T
        beyond = np.abs(place - result.tool[pose] - linear)
        assert (beyond <= result.remainder[pose, :3] + NEWTON).all()


def test_the_proved_bound_is_near_first_order_for_small_tolerances() -> None:
    for name in MACHINES:
        result = tl.tolerance_map(name, tolerances={"*": "10 um"}, samples=4)
        share = result.remainder[:, :3] / np.maximum(result.worst[:, :3], 1e-12)
        assert share.max() < 0.01, name


def test_the_remainder_of_a_crank_is_its_curvature() -> None:
    """One arm that an encoder turns by e: 1 - cos e across, at most e^2 / 2 of its length."""
    text = """
format: tauloop-machine/1
name: crank
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
parameters: {reach: 0.5 m}
bodies: {arm: {mass: 1 kg}}
joints:
  turn: {type: revolute, axis: z, parent: base, child: arm, reference: 0 deg}
actuators: {motor: {on: turn, force: 1 N m}}
platform: {body: arm, tool: {at: [reach, 0, 0]}, independent: [turn]}
"""
    angle = 0.01
    result = tl.tolerance_map(tl.loads(text), np.zeros((1, 1)), encoders={"motor": angle})
    sagitta = 0.5 * (1.0 - np.cos(angle))
    assert result.worst[0, :2] == pytest.approx([0.0, 0.5 * angle], abs=1e-15)
    assert sagitta <= result.remainder[0, 0] <= 1.01 * sagitta
    assert 0.5 * (angle - np.sin(angle)) <= result.remainder[0, 1] < 0.5 * angle**2
    assert result.remainder[0, 5] < angle**3


def test_second_order_part_vanishes_with_the_tolerances() -> None:
    wide = tl.tolerance_map("delta", DELTA_POSES, tolerances={"*": "1 mm"})
    narrow = tl.tolerance_map("delta", DELTA_POSES, tolerances={"*": "0.1 mm"})
    ratio = wide.second_order[:, :3] / narrow.second_order[:, :3]
    assert ratio == pytest.approx(100.0, rel=0.05)
    assert narrow.second_order[:, :3].max() < 0.01 * narrow.worst[:, :3].max()


def test_farthest_point_of_all_corners() -> None:
    generator = np.random.default_rng(3)
    intervals = generator.normal(size=(20, 3, 9))
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=9)))
    corners = np.linalg.norm(np.einsum("nij,cj->nci", intervals, signs), axis=2).max(axis=1)
    bound, _ = farthest(intervals, np.zeros((20, 0, 3, 3)))
    assert (bound >= corners).all()
    assert (bound <= corners / COVERING_COSINE * (1.0 + ROUNDING)).all()
    ball = np.tile(2.0 * np.eye(3), (20, 1, 1, 1))
    with_ball, _ = farthest(intervals, ball)
    assert with_ball == pytest.approx(bound + 2.0 / COVERING_COSINE, rel=1e-9)


def test_redundant_loops_that_do_not_close_are_doubtful() -> None:
    """A planar four-bar of hinges in space: an error out of its plane cannot be assembled."""
    text = """
format: tauloop-machine/1
name: lifted
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
parameters: {lift: 0 mm, coupler: 0.4 m}
bodies: {crank: {mass: 1 kg}, bar: {mass: 1 kg}, rocker: {mass: 1 kg}}
joints:
  a: {type: revolute, axis: z, parent: base, child: crank, reference: 80 deg}
  b: {type: revolute, axis: z, parent: {on: crank, at: [0.1 m, 0, 0]}, child: bar}
  c: {type: revolute, axis: z, parent: {on: bar, at: [coupler, 0, lift]}, child: {on: rocker, at: [0.3 m, 0, 0]}}
  d: {type: revolute, axis: z, parent: {on: base, at: [0.4 m, 0, 0]}, child: rocker, reference: 100 deg}
actuators: {motor: {on: a, force: 10 N m}}
platform: {body: rocker, independent: [d]}
"""
    machine = tl.loads(text)
    flat = tl.tolerance_map(machine, {"d": "100 deg"}, tolerances={"coupler": "0.1 mm"})
    lifted = tl.tolerance_map(machine, {"d": "100 deg"}, tolerances={"lift": "0.1 mm"})
    assert flat.status == "ok"
    assert lifted.status == "doubtful"
    assert any("over-constrained" in item.advice for item in lifted.diagnostics)


FOUR_BAR = """
format: tauloop-machine/1
name: lifted
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
parameters: {lift: 0 mm, coupler: 0.4 m}
bodies: {crank: {mass: 1 kg}, bar: {mass: 1 kg}, rocker: {mass: 1 kg}}
joints:
  a: {type: revolute, axis: z, parent: base, child: crank, reference: 80 deg}
  b: {type: revolute, axis: z, parent: {on: crank, at: [0.1 m, 0, 0]}, child: bar}
  c: {type: revolute, axis: z, parent: {on: bar, at: [coupler, 0, lift]}, child: {on: rocker, at: [0.3 m, 0, 0]}}
  d: {type: revolute, axis: z, parent: {on: base, at: [0.4 m, 0, 0]}, child: rocker, reference: 100 deg}
actuators: {motor: {on: a, force: 10 N m}}
platform: {body: bar, tool: {at: [0.2 m, 0.1 m, 0]}, independent: [a]}
"""
CLEARANCES = {"a": 4e-5, "b": 4e-5, "c": 5e-6, "d": 1e-5}


def test_clearances_of_a_loop_couple() -> None:
    """Across its plane, joints a and b can move the tool only as far as c and d let the loop close."""
    result = tl.tolerance_map(tl.loads(FOUR_BAR), {"a": "80 deg"}, clearances=CLEARANCES)
    assert result.status == "ok"
    assert result.worst[0, 2] == pytest.approx(1.5e-5, rel=1e-6)
    assert result.contributions[0, 2].sum() == pytest.approx(8e-5)
    alone = result.contributions[0, :2].sum(axis=1)
    assert result.worst[0, :2] == pytest.approx(alone, rel=1e-6)  # the plane is not redundant


def test_machines_with_clearance_that_assemble_are_inside_the_proved_bound() -> None:
    """Joint d takes the height that closes the loop; machines in which it cannot do not count."""
    from tauloop.design.tolerances.tolerance_map import ToleranceMapOptions, error_sources

    model, limits = tl.Model(tl.loads(FOUR_BAR)), {"coupler": 5e-5, "lift": 1e-5}
    options = ToleranceMapOptions(tolerances=limits, clearances=CLEARANCES)
    result = tl.tolerance_map(model, {"a": "80 deg"}, options)
    _, equations = error_sources(model, options)
    assert result.sources[:2] == ("coupler", "lift")
    generator = np.random.default_rng(4)
    count, radii = 20_000, np.array(list(CLEARANCES.values()))
    parts = generator.choice([-1.0, 1.0], (count, 2)) * [5e-5, 1e-5]
    joints = generator.normal(size=(count, 4, 3))
    joints *= radii[:, None] / np.linalg.norm(joints, axis=2, keepdims=True)
    lift = parts[:, 1] + joints[:, 0, 2] + joints[:, 1, 2] + joints[:, 2, 2]
    joints[:, 3, 2] = lift
    fits = np.abs(lift) < radii[3]
    across = np.sqrt(np.maximum(radii[3] ** 2 - lift**2, 0.0))
    joints[:, 3, :2] *= (across / np.linalg.norm(joints[:, 3, :2], axis=1))[:, None]
    motor = np.zeros((count, 1))
    errors = np.concatenate([parts, motor, joints.reshape(count, -1)], axis=1)[fits]
    assert 500 < len(errors) < count
    q = np.tile(np.asarray(model.inverse_kinematics(result.platform).q), (len(errors), 1))
    first = equations.first_order(q[:1])
    place, _, left = equations.displaced(q, errors @ first.velocities[0].T, errors)
    assert left.max() < NEWTON
    moved = np.abs(place - result.tool[0])
    assert (moved <= result.proved_worst[0, :3] + NEWTON).all()
    assert moved[:, 2].max() > 0.8 * result.worst[0, 2]


@pytest.mark.parametrize(("lift", "status"), [("90 um", "ok"), ("100 um", "doubtful")])
def test_clearances_take_up_what_parts_have_too_much(lift: str, status: str) -> None:
    """The four clearances add up to 95 um."""
    sources = {"tolerances": {"lift": lift}, "clearances": CLEARANCES}
    result = tl.tolerance_map(tl.loads(FOUR_BAR), {"a": "80 deg"}, **sources)
    assert result.status == status
    share = {item.name: item.value for item in result.diagnostics}
    needed = share["clearance that parts with errors need, fraction of the clearance"]
    assert needed == pytest.approx(float(lift.split()[0]) / 95.0, rel=COUPLED)


@pytest.mark.parametrize("seed", range(3))
def test_coupled_errors_are_those_of_the_linear_program(seed: int) -> None:
    """Largest S e over |e| <= 1 with M e = 0, by HiGHS."""
    from scipy.optimize import linprog

    from tauloop.design.tolerances.coupled_errors import ErrorCoupling, coupled_worst

    generator = np.random.default_rng(seed)
    S, M = generator.normal(size=(4, 6, 12, 3)), generator.normal(size=(4, 3, 12, 3))
    S[..., 1:], M[..., 1:] = 0.0, 0.0
    M[:, 2] = M[:, 0] - M[:, 1]  # rows may depend on each other
    errors = ErrorCoupling(effects=S, openings=M, adapts=np.zeros(12, dtype=bool))
    result = coupled_worst(errors)
    for pose, axis in itertools.product(range(4), range(6)):
        program = linprog(
            -S[pose, axis, :, 0], A_eq=M[pose, :, :, 0], b_eq=np.zeros(3), bounds=[(-1.0, 1.0)] * 12
        )
        best = -program.fun
        assert best * (1.0 - ROUNDING) <= result.worst[pose, axis] <= best * (1.0 + COUPLED)


@pytest.mark.parametrize("seed", range(3))
def test_coupled_errors_in_balls_are_those_of_sequential_programming(seed: int) -> None:
    """Largest S e over ||e_g|| <= 1 with M e = 0, by SLSQP."""
    from scipy.optimize import minimize

    from tauloop.design.tolerances.coupled_errors import ErrorCoupling, coupled_worst

    generator = np.random.default_rng(seed)
    S, M = generator.normal(size=(1, 6, 5, 3)), generator.normal(size=(1, 2, 5, 3))
    result = coupled_worst(ErrorCoupling(effects=S, openings=M, adapts=np.ones(5, dtype=bool)))
    flat = M[0].reshape(2, -1)
    constraints = [
        {"type": "eq", "fun": lambda e: flat @ e},
        {"type": "ineq", "fun": lambda e: 1.0 - (e.reshape(5, 3) ** 2).sum(axis=1)},
    ]
    for axis in range(6):
        goal = S[0, axis].ravel()
        program = minimize(lambda e, g=goal: -g @ e, np.zeros(15), constraints=constraints)
        assert program.success
        assert result.worst[0, axis] == pytest.approx(-program.fun, rel=COUPLED)


def test_loads_and_heat_are_sources() -> None:
    machine = tl.Model("examples/elastic/gantry_tau.yaml")
    result = tl.tolerance_map(machine, samples=3, wrench={"fx": 100.0}, temperatures=2.0)
    compliance = tl.stiffness(machine, result.platform).compliance
    loads = result.contributions[:, :, [kind == "wrench" for kind in result.kinds]]
    assert loads[:, :, 0] == pytest.approx(100.0 * np.abs(compliance[:, :, 0]), abs=1e-15)
    heat = tl.thermal_expansion(machine, result.platform, temperatures=2.0)
    warm = result.contributions[:, :, [kind == "heat" for kind in result.kinds]]
    assert warm == pytest.approx(2.0 * np.abs(heat.per_kelvin), abs=1e-15)


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({}, "no tolerance is given"),
        ({"tolerances": {"arm_lenght": "1 mm"}}, "did you mean arm_length"),
        ({"tolerances": {"arm_length": "1 kg"}}, "is a mass"),
        ({"tolerances": {"arm_length": "-1 mm"}}, "give the largest deviation"),
        ({"clearances": {"elbow": "1 um"}}, "no name matches 'elbow'"),
        ({"tolerances": {"*": "1 um"}, "common": ("arms",)}, "no name matches 'arms'"),
    ],
)
def test_wrong_tolerances_are_refused(keywords: dict[str, object], text: str) -> None:
    with pytest.raises(InputError, match=text):
        tl.tolerance_map("delta", **keywords)


# Allocation


def test_one_limit_has_a_closed_form() -> None:
    """With one constraint a.t = b, t is proportional to the root of k / a."""
    a, k, b = np.array([1.0, 4.0, 0.3]), np.array([2.0, 1.0, 5.0]), 0.7
    result = continuous_allocation(a[None], np.array([b]), k)
    expected = np.sqrt(k / a) * b / (a @ np.sqrt(k / a))
    assert result.tolerances == pytest.approx(expected, rel=OPTIMUM)
    assert result.cost == pytest.approx(result.lower_bound, rel=OPTIMUM)
    price = np.sqrt(a * k).sum() ** 2 / b**2
    assert result.prices == pytest.approx([price], rel=OPTIMUM)


def test_the_dual_value_bounds_the_cost_of_many_limits() -> None:
    generator = np.random.default_rng(1)
    rows, room = generator.uniform(0.0, 1.0, (60, 5)), generator.uniform(0.5, 1.5, 60)
    costs = generator.uniform(0.1, 2.0, 5)
    result = continuous_allocation(rows, room, costs)
    assert (rows @ result.tolerances <= room * (1.0 + ROUNDING)).all()
    assert result.lower_bound <= result.cost * (1.0 + ROUNDING)
    assert result.cost <= result.lower_bound * (1.0 + 1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_grades_are_those_of_all_combinations(seed: int) -> None:
    generator = np.random.default_rng(seed)
    rows, room = generator.uniform(0.0, 1.0, (8, 4)), generator.uniform(0.8, 1.2, 8)
    costs = generator.uniform(0.1, 2.0, 4)
    menu = [list(generator.uniform(0.05, 0.8, 4)) for _ in range(4)]
    best = np.inf
    for combination in itertools.product(*menu):
        if (rows @ np.array(combination) <= room).all():
            best = min(best, float((costs / combination).sum()))
    chosen, cost = graded_allocation(rows, room, costs, menu)
    assert cost == pytest.approx(best, rel=OPTIMUM)
    if chosen is not None:
        assert cost >= continuous_allocation(rows, room, costs).lower_bound * (1.0 - ROUNDING)


def test_chosen_tolerances_keep_the_limits_of_a_new_map() -> None:
    limits = {"x": 3e-4, "y": 3e-4, "z": 3e-4}
    stated = {"*_length": "0.1 mm", "*_radius": "0.1 mm"}
    sources = {"encoders": {"*": "20 urad"}, "samples": 20}
    result = tl.allocate_tolerances(
        "delta", limits=limits, tolerances=stated, grades=(6, 7, 8, 9), **sources
    )
    chosen = dict(zip(result.names, result.tolerances.tolist(), strict=True))
    again = tl.tolerance_map("delta", tolerances=chosen, **sources)
    assert (again.worst[:, :3] <= 3e-4 * (1.0 + ROUNDING)).all()
    assert again.worst == pytest.approx(result.error, rel=1e-9, abs=1e-15)
    assert result.lower_bound <= result.cost
    assert result.looser_cost <= result.cost <= result.tighter_cost


def test_own_choices_are_those_of_all_combinations() -> None:
    """Lists by the user, one of them for an angle, against every combination."""
    choices = {"arm_length": ("20 um", "60 um", 1e-4), "*_radius": (3e-5, 6e-5)}
    stated = {"arm_length": "0.1 mm", "*_radius": "0.1 mm"}
    limits = {"x": 2.5e-4, "z": 2e-4}
    result = tl.allocate_tolerances(
        "delta", DELTA_POSES, tolerances=stated, limits=limits, tolerance_choices=choices
    )
    full = tl.tolerance_map("delta", DELTA_POSES, tolerances=stated)
    names = ("arm_length", "motor_radius", "plate_radius")
    assert result.names == names
    owners = [source.partition("@")[0] for source in full.sources]
    unit = np.stack(
        [
            full.contributions[:, :, [o == name for o in owners]].sum(axis=2) / 1e-4
            for name in names
        ],
        axis=2,
    )
    best = np.inf
    for combination in itertools.product((2e-5, 6e-5, 1e-4), (3e-5, 6e-5), (3e-5, 6e-5)):
        error = unit @ np.array(combination)
        if error[:, 0].max() <= 2.5e-4 and error[:, 2].max() <= 2e-4:
            best = min(best, sum(1e-4 / t for t in combination))
    assert result.cost == pytest.approx(best, rel=OPTIMUM)
    assert result.lower_bound <= result.cost
    lists = [(1e-4, 6e-5, 2e-5), (6e-5, 3e-5), (6e-5, 3e-5)]
    for grade, tolerance, values in zip(
        result.chosen_grades, result.tolerances, lists, strict=True
    ):
        assert tolerance == pytest.approx(values[-1 - grade])


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        ("arm_length=20um/50um", "neither choices nor grades"),
        ("arm_lenght=20um", "did you mean arm_length"),
        ("plate_radius=20um", "is not a parameter of the allocation"),
        ("*_length=20um/0", "a tolerance of zero"),
        ("*_length=20um/1kg", "whose unit is m"),
    ],
)
def test_wrong_choices_are_refused(choices: str, text: str) -> None:
    stated = {"tolerances": {"*_length": "0.1 mm"}, "limits": {"z": "1 mm"}, "samples": 3}
    with pytest.raises(InputError, match=text):
        tl.allocate_tolerances("delta", tolerance_choices=choices, **stated)


def test_choices_and_standard_grades_can_be_mixed() -> None:
    stated = {"tolerances": {"*_length": "0.1 mm"}, "limits": {"z": "0.2 mm"}, "samples": 5}
    result = tl.allocate_tolerances(
        "delta", grades=(6, 7, 8), tolerance_choices="arm_length=25um/40um", **stated
    )
    chosen = dict(zip(result.names, result.tolerances.tolist(), strict=True))
    assert round(1e6 * chosen["arm_length"], 6) in (25.0, 40.0)
    grade = int(result.chosen_grades[result.names.index("forearm_length")])
    assert chosen["forearm_length"] == tl.design.grade_tolerance(0.48, grade)


def test_a_limit_that_nothing_keeps_states_by_how_much() -> None:
    stated = {"tolerances": {"arm_length": "0.1 mm"}, "samples": 3}
    with pytest.raises(
        InputError, match=r"the finest grades cause .* times the error that the limit"
    ):
        tl.allocate_tolerances("delta", limits={"z": "1 um"}, grades=(7,), **stated)
    with pytest.raises(InputError, match="encoders, clearances, heat and loads alone cause"):
        tl.allocate_tolerances("delta", limits={"z": "1 um"}, encoders={"*": "1 mrad"}, **stated)
    with pytest.raises(InputError, match="no limit is given"):
        tl.allocate_tolerances("delta", **stated)


def test_a_tolerance_that_no_limit_bounds_is_refused() -> None:
    """The plate of a Delta does not turn, and a five-bar stays in its plane."""
    with pytest.raises(InputError, match="no limit bounds arm_length"):
        tl.allocate_tolerances(
            "delta", samples=3, tolerances={"arm_length": "0.1 mm"}, limits={"rx": "1 mrad"}
        )


def test_wide_tolerances_that_are_chosen_are_doubtful() -> None:
    """The second-order part is that of the chosen tolerances, not of the stated ones."""
    chosen = tl.allocate_tolerances(
        "delta", samples=5, tolerances={"arm_length": "1 um"}, limits={"z": "60 mm"}
    )
    assert chosen.tolerances[0] > 1e-3
    assert chosen.status == "doubtful"


def test_errors_after_a_calibration_are_those_of_least_squares() -> None:
    """The same estimate from stacked rows of readings and prior, and its covariance by samples."""
    from tauloop.design.tolerances.calibrated import calibrated_effects
    from tauloop.design.tolerances.error_equations import ErrorEquations, part_parameters
    from tauloop.design.tolerances.tolerance_map import ToleranceMapOptions
    from tauloop.kinematics.states import random_states

    model, noise, readings, made = tl.Model("delta"), 2e-5, 12, 5e-4
    options = ToleranceMapOptions(tolerances={"arm_length": 1e-4, "forearm_length": 1e-4})
    effects = calibrated_effects(
        model, DELTA_POSES, options, {"forearm_length": made}, noise, readings
    )
    names = ("arm_length", "forearm_length")
    equations = ErrorEquations(model, part_parameters(model.assembly.mechanism, names), ())
    measured = np.asarray(random_states(model, readings, np.random.default_rng(1)).q)
    J = equations.first_order(measured).twist[:, :3, :6].reshape(-1, 6)
    q = np.asarray(model.inverse_kinematics(DELTA_POSES).q)
    T = equations.first_order(q).twist[:, :, :6]
    prior = np.sqrt(3.0) / made
    rows = np.concatenate([J[:, 3:] / noise, prior * np.eye(3)])
    for j in range(3):
        right = np.concatenate([J[:, j] / noise, np.zeros(3)])
        estimate = np.linalg.lstsq(rows, right)[0]
        left = np.abs(T[:, :, j] - T[:, :, 3:] @ estimate)
        assert effects.per_unit[f"arm_length@leg{j + 1}"] == pytest.approx(left, abs=1e-9)
    generator = np.random.default_rng(2)
    count = 20_000
    true = made * generator.uniform(-1.0, 1.0, (count, 3))
    seen = true @ J[:, 3:].T + noise * generator.normal(size=(count, len(J)))
    right = np.concatenate([seen / noise, np.zeros((count, 3))], axis=1)
    estimates = np.linalg.lstsq(rows, right.T)[0].T
    spread = ((true - estimates) @ np.swapaxes(T[:, :, 3:], 1, 2)).std(axis=1)
    assert effects.deviation == pytest.approx(spread, rel=SAMPLED, abs=1e-12)


def test_a_calibration_with_a_better_instrument_saves_more() -> None:
    stated = {"*_length": "0.05 mm", "motor_radius": "0.05 mm"}
    common = {"tolerances": stated, "limits": {"z": "0.2 mm"}, "samples": 20}
    calibrated = {"forearm_length": "0.5 mm"}
    plain = tl.allocate_tolerances("delta", **common)
    fine, coarse = (
        tl.allocate_tolerances("delta", calibrated=calibrated, noise=noise, **common)
        for noise in (5e-6, 5e-5)
    )
    assert plain.saving == 0.0
    assert fine.uncalibrated_cost == pytest.approx(plain.cost, rel=OPTIMUM)
    assert fine.names == ("arm_length", "motor_radius")
    assert fine.calibrated == {"forearm_length": 5e-4}
    assert 0.0 < coarse.saving < fine.saving
    assert fine.cost > 0.05 / 0.5  # the forearms themselves cost a tenth of their stated tolerance
    assert fine.saving == pytest.approx(fine.uncalibrated_cost - fine.cost)


def test_the_sensitivity_of_the_cost_is_that_of_the_closed_form() -> None:
    """With one limit b the cost is c / b, so that its relative sensitivity is -1."""
    result = tl.allocate_tolerances(
        "delta",
        {"z": "-0.5 m"},
        tolerances={"arm_length": "0.1 mm", "forearm_length": "0.1 mm"},
        limits={"z": "0.2 mm"},
    )
    assert result.cost_sensitivity == pytest.approx(-1.0, rel=5e-3)
    assert result.tighter_cost == pytest.approx(result.cost / 0.95, rel=OPTIMUM)


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"calibrated": {"forearm_length": "1 mm"}}, "is not given"),
        ({"noise": 1e-5}, "names no parameter"),
        ({"calibrated": {"plate_radius": "1 mm"}, "noise": 1e-5}, "has no stated tolerance"),
        ({"calibrated": {"*_length": "1 mm"}, "noise": 1e-5}, "no parameter is left"),
        ({"calibrated": {"forearm_length": 0.0}, "noise": 1e-5}, "is zero"),
    ],
)
def test_wrong_calibrations_are_refused(keywords: dict[str, object], text: str) -> None:
    with pytest.raises(InputError, match=text):
        tl.allocate_tolerances(
            "delta",
            tolerances={"*_length": "0.1 mm"},
            limits={"z": "1 mm"},
            samples=3,
            **keywords,
        )


def test_parameters_of_tool_and_ratio_are_parts_of_their_own() -> None:
    """Two links and the tool share a length; a ratio drives the first joint."""
    text = """
format: tauloop-machine/1
name: arm
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
parameters: {reach: 0.3 m, gear: 10}
bodies: {upper: {mass: 1 kg}, lower: {mass: 1 kg}}
joints:
  one: {type: revolute, axis: z, parent: base, child: upper, reference: 20 deg}
  two: {type: revolute, axis: z, parent: {on: upper, at: [reach, 0, 0]}, child: lower, reference: 60 deg}
actuators: {first: {on: one, ratio: gear, force: 1 N m}, second: {on: two, force: 1 N m}}
platform: {body: lower, tool: {at: [reach, 0, 0]}, independent: [one, two]}
"""
    stated = {"reach": 1e-4, "gear": 1e-3}
    result = tl.tolerance_map(tl.loads(text), np.radians([[20.0, 60.0]]), tolerances=stated)
    by_name = dict(zip(result.sources, result.contributions[0, :3].T, strict=True))
    first, both = np.radians(20.0), np.radians(80.0)
    upper, lower = ([abs(np.cos(a)), abs(np.sin(a)), 0.0] for a in (first, both))
    assert by_name["reach@two"] == pytest.approx(1e-4 * np.array(upper), abs=1e-12)
    assert by_name["reach@tool"] == pytest.approx(1e-4 * np.array(lower), abs=1e-12)
    # the motor's position is held: the joint turns by angle / gear per unit of the gear's error
    tool = 0.3 * np.array([np.cos(first) + np.cos(both), np.sin(first) + np.sin(both)])
    turned = 1e-3 * first / 10.0 * np.abs(np.array([tool[1], tool[0], 0.0]))
    assert by_name["gear"] == pytest.approx(turned, abs=1e-12)


def test_grades_are_near_the_formula_of_the_standard() -> None:
    """IT6 to IT16 up to 500 mm: multiples of i = 0.45 D^(1/3) + 0.001 D um, then rounded."""
    limits = [3, 6, 10, 18, 30, 50, 80, 120, 180, 250, 315, 400, 500]
    multiples = {6: 10, 7: 16, 8: 25, 9: 40, 10: 64, 11: 100, 12: 160, 13: 250, 14: 400}
    for smallest, largest in itertools.pairwise(limits):
        mean = np.sqrt(smallest * largest)
        unit = 0.45 * mean ** (1.0 / 3.0) + 0.001 * mean
        for grade, multiple in multiples.items():
            width = 2e6 * tl.design.grade_tolerance(1e-3 * largest, grade)
            assert width == pytest.approx(multiple * unit, rel=0.095), (largest, grade)
    with pytest.raises(InputError, match="the table ends at"):
        tl.design.grade_tolerance(4.0, 7)
    with pytest.raises(InputError, match="use 1 to 18"):
        tl.design.grade_tolerance(0.1, 19)
