"""Derivatives along the manifold: beside differences of assembled states, other formulations, and Pinocchio's own."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from differences import FOREIGN, REDUNDANT, STEPS, WEIGHTS, Differences, difference, machine
from extras import extra

from tauloop import Model, load
from tauloop.common.errors import InputError, PoseError
from tauloop.compiler.c import Compiled, Interpreted
from tauloop.compiler.c.printing.operations import output_operations
from tauloop.equations.ports import ACTUATORS, PLATFORM, Entry
from tauloop.equations.topology import integrate
from tauloop.mechanism import shipped_machines
from tauloop.mechanism.expression import Constant
from tauloop.mechanism.model import Friction, Mechanism
from tauloop.model import Derivatives, Payload
from tauloop.verification.engines import pinocchio_engine

#: Agreement of Jacobians with differences, of their largest entry (issue 19).
SAME = 1e-8
#: Other formulations take other ways to the same numbers.
OTHER = 1e-9
#: Operations of value and Jacobian together over those of the value (issue 19).
BARS = {"delta": 4.0, "rcid": 5.5, "hexapod": 7.0}
#: By day: closed forms, a loop of joints, a tree.
BY_DAY = ("delta", "five_bar", "pendulum_arm")
FUNCTIONS = ("kinematics", "inverse_dynamics", "forward_dynamics")


def derivatives(differences: Differences) -> Derivatives:
    return differences.motion.derivatives(
        differences.function, *differences.inputs.values(), start=differences.start
    )


def check(model: Model, entry: Entry, function: str) -> None:
    differences = Differences(model, entry, function)
    exact = derivatives(differences)
    for name in differences.names:
        errors: dict[str, float] = {}
        for size in STEPS:
            try:
                slopes = differences.by(name, size)
            except PoseError:
                continue
            for output, expected in slopes.items():
                errors[output] = min(
                    errors.get(output, np.inf), difference(exact.jacobian(output, name), expected)
                )
            if max(errors.values()) < SAME:
                break
        assert errors, "all differences leave the reach"
        assert max(errors.values()) < SAME, (name, errors)


def skip_what_is_refused(model: Model, function: str) -> None:
    if function == "inverse_dynamics" and (
        model.assembly.passive or any(rod.tension for rod in model.mechanism.rods)
    ):
        pytest.skip(
            "inverse dynamics has no derivatives: passive freedoms, or forces within bounds"
        )


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", BY_DAY)
def test_jacobians_are_the_slopes_of_their_functions(name, function):
    check(machine(name), PLATFORM, function)


@pytest.mark.parametrize("stribeck", [1.0, 1e-3, 1e-6])
def test_slopes_of_friction_are_there_at_any_stribeck_speed(stribeck: float) -> None:
    """In states that are all faster than the curve its slope is nothing, and two motors seemed to have the same."""
    law = Friction(
        viscous=Constant(0.2),
        coulomb=Constant(0.3),
        static=Constant(0.8),
        stribeck=Constant(stribeck),
    )
    machines = [with_friction_of_motors(friction) for friction in (law, None)]
    motions = [Model(changed, evaluator=Interpreted()).platform for changed in machines]
    position = motions[0].ports.at(motions[0].assembly.q)
    J = motions[0].actuator_jacobian(position)
    speeds = np.array([0.7, -0.3])  # of the motors, over that of Stribeck
    moved = position, np.linalg.solve(J, stribeck * speeds), np.zeros(2)
    slopes = [
        motion.derivatives("inverse_dynamics", *moved).jacobian("force", "velocity")
        for motion in motions
    ]
    falling = (0.8 - 0.3) * 2 * np.abs(speeds) / stribeck * np.exp(-(speeds**2))
    assert slopes[0] - slopes[1] == pytest.approx((0.2 - falling)[:, None] * J, rel=SAME)


def with_friction_of_motors(law: Friction | None) -> Mechanism:
    five_bar = load("five_bar")
    return replace(
        five_bar, actuators=tuple(replace(motor, friction=law) for motor in five_bar.actuators)
    )


def test_jacobians_of_shared_forces_are_their_slopes():
    assert machine(REDUNDANT).assembly.is_redundant
    check(machine(REDUNDANT), PLATFORM, "inverse_dynamics")


@pytest.mark.nightly
@pytest.mark.parametrize("entry", [PLATFORM, ACTUATORS], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", [*shipped_machines(), *FOREIGN])
def test_jacobians_of_every_machine_are_the_slopes_of_their_functions(name, function, entry):
    model = machine(name)
    skip_what_is_refused(model, function)
    check(model, entry, function)


def test_other_formulations_have_the_same_derivatives():
    differences = Differences(machine("delta"), PLATFORM, "inverse_dynamics")
    exact = derivatives(differences)
    for formulation in ("hamilton", "lagrange"):
        other = Model(load("delta"), formulation=formulation).platform.derivatives(
            "inverse_dynamics", *differences.inputs.values(), start=differences.start
        )
        for key, expected in exact.jacobians.items():
            assert difference(other.jacobians[key], expected) < OTHER, key


def test_a_tree_has_pinocchios_derivatives():
    """Its recursive derivatives know neither friction nor rotors, which are put beside: viscous, and gear^2 inertia."""
    pin = extra("pinocchio")
    model = machine("pendulum_arm")
    engine = pinocchio_engine(model.mechanism)
    differences = Differences(model, PLATFORM, "inverse_dynamics")
    exact, gear = derivatives(differences), 50.0
    rotors, viscous = gear**2 * 2.5e-6 * np.eye(3), np.diag([0.05, 0.06, 0.04])
    order = engine.v_order
    for i, (q, v, a) in enumerate(zip(*differences.inputs.values(), strict=True)):
        state = [np.empty(3) for _ in range(3)]
        for array, numbers in zip(state, (q, v, a), strict=True):
            array[order] = numbers
        data = engine.model.createData()
        by_q, by_v, M = pin.computeRNEADerivatives(engine.model, data, *state)
        M = np.triu(M) + np.triu(M, 1).T
        pairs = zip(
            ("position", "velocity", "acceleration"),
            (by_q, by_v, M),
            (0, viscous, rotors),
            strict=True,
        )
        for name, expected, beside in pairs:
            ours = gear * exact.jacobian("force", name)[i]
            assert difference(ours, expected[np.ix_(order, order)] + beside) < SAME, name


def slope(function, value: np.ndarray, k: int) -> np.ndarray:
    """Differences of eighth order of a function of numbers."""
    step = np.eye(len(value))[k] * max(abs(value[k]), 1.0) * STEPS[0]
    pairs = [
        (weight, function(value + n * step) - function(value - n * step))
        for n, weight in enumerate(WEIGHTS, 1)
    ]
    return np.asarray(sum(weight * difference for weight, difference in pairs)) / step[k]


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
def test_free_parameters_loads_and_payloads_move_forces_and_accelerations(function):
    """Geometry among them: the loops close at another place."""
    free = ("arm_length", "plate_mass")
    model = machine("delta").with_free_parameters(free)
    differences = Differences(model, PLATFORM, function, samples=1)
    arguments = differences.inputs.values()
    load = Payload(mass=0.4, center=(0.01, 0.02, 0.03), inertia=(1e-3, 0.0, 2e-3, 0.0, 0.0, 2e-3))
    wrench = np.array([1.0, 2.0, 3.0, 0.4, 0.5, 0.6])
    exact = differences.motion.derivatives(
        function, *arguments, start=differences.start, payload=load, wrench=wrench
    )
    output = "force" if function == "inverse_dynamics" else "acceleration"

    def by_theta(theta: np.ndarray) -> np.ndarray:
        motion = getattr(differences.motion, function)
        result = motion(
            *arguments, start=differences.start, payload=load, wrench=wrench, theta=theta
        )
        return result.force[0] if output == "force" else differences.motion.ports.rates(result.a)[0]

    def by_wrench(other: np.ndarray) -> np.ndarray:
        motion = getattr(differences.motion, function)
        result = motion(*arguments, start=differences.start, payload=load, wrench=other)
        return result.force[0] if output == "force" else differences.motion.ports.rates(result.a)[0]

    theta = model.mechanism.parameters.vector(free)
    for k in range(2):
        assert (
            difference(exact.jacobian(output, "theta")[0, :, k], slope(by_theta, theta, k)) < SAME
        )
    for k in range(3):  # the plate does not turn
        assert (
            difference(exact.jacobian(output, "wrench")[0, :, k], slope(by_wrench, wrench, k))
            < SAME
        )
    more = Payload(
        mass=0.4 + STEPS[0],
        center=tuple(0.4 * c / (0.4 + STEPS[0]) for c in load.center),
        inertia=load.inertia,
    )
    assert not np.array_equal(more.parameters, load.parameters)
    moved = differences.motion.derivatives(
        function, *arguments, start=differences.start, payload=more, wrench=wrench
    )
    mean = (exact.jacobian(output, "payload") + moved.jacobian(output, "payload"))[0] / 2
    change = mean @ (more.parameters - load.parameters)
    # the mean of the slopes is that of a chord up to the third order of the step
    assert difference(change, (moved.values[output] - exact.values[output])[0]) < 10 * STEPS[0] ** 3


def test_machine_code_has_the_numbers_of_the_interpreter():
    mechanism, differences = (
        load("five_bar"),
        Differences(machine("five_bar"), PLATFORM, "forward_dynamics", samples=9),
    )
    arguments = differences.inputs.values()
    here, there = (
        Model(mechanism, evaluator=evaluator).platform.derivatives(
            "forward_dynamics", *arguments, start=differences.start
        )
        for evaluator in (Interpreted(), Compiled(at_least=0))
    )
    for key, expected in here.jacobians.items():
        assert difference(there.jacobians[key], expected) < 1e-13, key


def test_results_say_what_they_are_and_wrong_names_are_refused():
    platform = machine("delta").platform
    motion = ([0.05, 0.0, -0.5], [0.1, 0.2, 0.3], [1.0, 2.0, 3.0])
    moved = platform.derivatives("inverse_dynamics", *motion, wrt=["payload", "position"])
    assert {name for _, name in moved.jacobians} == {"payload", "position"}
    assert moved.jacobian("force", "payload").shape == (3, 10)
    assert moved.rows["force"] == ("leg1.motor", "leg2.motor", "leg3.motor")
    assert np.allclose(
        moved.values["force"], platform.inverse_dynamics(*motion).force, rtol=1e-13, atol=0
    )
    kinematics = platform.derivatives("kinematics", *motion)
    assert np.array_equal(kinematics.jacobian("q", "velocity"), np.zeros((6, 3)))
    assert (
        difference(kinematics.jacobian("a", "velocity"), 2 * kinematics.jacobian("v", "position"))
        < 1e-13
    )
    assert (
        difference(kinematics.jacobian("a", "acceleration"), kinematics.jacobian("q", "position"))
        < 1e-13
    )
    alone = platform.derivatives("inverse_dynamics", *motion, wrt="payload")
    assert {name for _, name in alone.jacobians} == {"payload"}
    for wrong, what in (
        (lambda: platform.derivatives("inverse", *motion), "'inverse' is unknown"),
        (
            lambda: platform.derivatives("inverse_dynamics", *motion, wrt=["speed"]),
            "wrt: 'speed' is not an input",
        ),
        (
            lambda: platform.derivatives("inverse_dynamics", *motion, wrt="theta"),
            "no parameter of this model is free",
        ),
        (
            lambda: platform.derivatives("inverse_dynamics", *motion, payload=1.0),
            "payload: is of the type float",
        ),
        (lambda: moved.jacobian("torque", "position"), "torque: is not an output"),
    ):
        with pytest.raises(InputError, match=what):
            wrong()


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("name", ["delta", pytest.param("rcid", marks=pytest.mark.nightly)])
def test_casadi_takes_the_same_jacobian_and_its_zeros(name, function):
    """By the numbers of quaternions: along a displacement these move as its half times the quaternion."""
    differences = Differences(machine(name), PLATFORM, function, samples=1)
    motion, output = (
        differences.motion,
        "force" if function == "inverse_dynamics" else "acceleration",
    )
    exact = derivatives(differences)
    own = motion.casadi(function)
    numbers = [array[0] for array in differences.inputs.values()]
    assert difference(np.array(own(*numbers)).ravel(), exact.values[output][0]) < 1e-13
    jacobian = own.jacobian()
    blocks = [np.array(block) for block in jacobian(*numbers, 0)]
    step = 1e-6 * motion.embedding(differences.inputs["position"], start=differences.start)[0]
    moved = [
        (
            motion.ports.at(
                integrate(machine(name).topology, differences.start, sign * step[:, [k]].T)
            )
        )
        for k in range(step.shape[1])
        for sign in (1, -1)
    ]
    slopes = (np.concatenate(moved[::2]) - np.concatenate(moved[1::2])).T / 2e-6
    # of differences of quaternions
    assert difference(blocks[0] @ slopes, exact.jacobian(output, "position")[0]) < 1e-7
    for block, argument in zip(blocks[1:], differences.names[1:], strict=True):
        assert difference(block, exact.jacobian(output, argument)[0]) < 1e-12
    with pytest.raises(InputError, match="displacements"):
        motion.casadi("kinematics")


def test_passive_freedoms_and_cables_are_refused():
    with pytest.raises(InputError, match="not differentiable"):
        Model(load("cable_camera")).platform.derivatives(
            "inverse_dynamics", [0.0] * 3, [0.0] * 3, [0.0] * 3
        )


@pytest.mark.parametrize(
    "name", ["delta", pytest.param("rcid", marks=pytest.mark.nightly), "hexapod"]
)
def test_value_and_jacobian_cost_little_more_than_the_value(name):
    platform = machine(name).platform
    alone = output_operations(platform.program("inverse_dynamics"), "force")
    pair = platform.program("inverse_dynamics_derivatives")
    together = output_operations(
        pair, "force", *(f"force_by_{n}" for n in ("position", "velocity", "acceleration"))
    )
    assert sum(together["once"].values()) <= BARS[name] * sum(alone["once"].values())


def test_near_a_singularity_derivatives_grow_faster_than_their_functions():
    """A five-bar whose outer links come into one line: forces go with the condition number, slopes with its powers."""
    platform = machine("five_bar").platform
    height = 0.005 * 0.5 ** np.arange(4)
    position = np.stack([np.zeros(4), height], axis=1)
    start, rest, pull = platform.follow(position).q, np.zeros((4, 2)), np.ones((4, 2))
    exact = platform.derivatives("inverse_dynamics", position, rest, pull, start=start)
    growth = np.diff(np.log(exact.condition))
    by_x, by_y = (
        np.diff(np.log(np.linalg.norm(exact.jacobian("force", "position")[:, :, k], axis=1)))
        for k in (0, 1)
    )
    # the condition number doubles with every half
    assert growth == pytest.approx(np.log(2.0), rel=1e-2)
    assert (np.diff(np.log(np.linalg.norm(exact.values["force"], axis=1))) / growth)[
        -1
    ] == pytest.approx(1.0, abs=0.1)
    assert (by_y / growth)[-1] == pytest.approx(2.0, abs=0.05)
    assert (by_x / growth)[-1] == pytest.approx(3.0, abs=0.05)
    shift = height * 1e-3
    ahead, behind = (
        platform.inverse_dynamics(
            position + sign * np.stack([0 * shift, shift], axis=1), rest, pull, start=start
        ).force
        for sign in (1.0, -1.0)
    )
    slope = (ahead - behind) / (2.0 * shift[:, None])
    assert exact.jacobian("force", "position")[:, :, 1] == pytest.approx(slope, rel=1e-4)


def refuse_decompositions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every singular value decomposition of NumPy an error."""

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("a singular value decomposition")

    monkeypatch.setattr(np.linalg, "svd", refuse)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("samples", [1, 3])
def test_condition_numbers_are_computed_only_when_they_are_read(monkeypatch, function, samples):
    motion = machine("delta").platform
    position = np.array([[0.05, 0.0, -0.5], [0.0, 0.0, -0.5], [0.0, 0.1, -0.45]])[:samples]
    arguments = [
        np.squeeze(array, axis=0) if samples == 1 else array
        for array in (position, 0 * position, position)
    ]
    motion.derivatives(function, *arguments)  # builds the program, which decomposes matrices
    with monkeypatch.context() as changed:
        refuse_decompositions(changed)
        exact = motion.derivatives(function, *arguments)
        for output in exact.rows:
            for name in exact.columns:
                assert np.isfinite(exact.jacobian(output, name)).all()
        assert exact.health.all_sound
        with pytest.raises(AssertionError, match="singular value"):
            _ = exact.condition
    expected = motion.condition(np.atleast_2d(exact.values["q"]))
    np.testing.assert_array_equal(exact.condition, expected)


def test_condition_numbers_are_of_the_poses_that_were_differentiated():
    """Whether they are read before the result is copied, sent or written into, or afterwards."""
    motion, position = machine("delta").platform, np.array([[0.05, 0.0, -0.5], [0.0, 0.1, -0.45]])
    results = [
        motion.derivatives("inverse_dynamics", position, 0 * position, position) for _ in range(2)
    ]
    expected = motion.condition(results[0].values["q"])
    sent, changed = pickle.loads(pickle.dumps(results[0])), replace(results[0], function="other")
    results[1].values["q"][:] *= 180.0 / np.pi
    for result in (*results, sent, changed):
        np.testing.assert_array_equal(result.condition, expected)
    assert "condition=[" in repr(results[1])
