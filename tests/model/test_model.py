"""The Model bundle: checked ports, batches, free parameters, its two entries, and ties to leaf parameters."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from core_machines import CORE_MACHINES
from hypothesis import given, strategies as st

import tauloop as tl
import tauloop.model.runner
from tauloop import Model, load, loads
from tauloop.common.errors import AssemblyError, InputError, PoseError
from tauloop.common.result import Status
from tauloop.formats import machine_path
from tauloop.kinematics import RandomStates, conditioning, random_states
from tauloop.kinematics.modes.modes import assembly_modes

#: Two routes to the same numbers, of a well conditioned machine: rounding only.
SAME = 1e-10
#: Newton's method stops at steps below 1e-10; what is left is that times the loops' conditioning
#: (about ten).
ARRIVED = 1e-9
#: Central differences with this step err by rounding over the step and by the step's square: 1e-9
#: of the quotient.
STEP, DIFFERENCES = 1e-5, 1e-8


@functools.cache
def model(name: str) -> Model:
    return Model(load(name))


@functools.cache
def states(name: str, n: int = 24) -> RandomStates:
    return random_states(model(name), n, np.random.default_rng(2))


def motion(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sampled = states(name)
    return sampled.position, sampled.velocity, sampled.acceleration


# Ports


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"position": [0.0, -0.5]}, {"position": "shape (2,), needs (3,) or (N, 3)"}),
        ({"position": np.zeros((2, 2, 3))}, {"position": "shape (2, 2, 3)"}),
        ({"velocity": 1.0}, {"velocity": "shape ()"}),
        ({"velocity": "fast"}, {"velocity": "not an array of numbers"}),
        ({"velocity": [1j, 0, 0]}, {"velocity": "not an array of numbers"}),
        (
            {"acceleration": [0.0, np.nan, 0.0]},
            {"acceleration": "not finite at sample 0 column platform.y"},
        ),
        (
            {"acceleration": [[0.0, 0.0, -np.inf]]},
            {"acceleration": "not finite at sample 0 column platform.z"},
        ),
        (
            {"position": {"platform.x": 0.0, "platform.q": 1.0}},
            {"position": "unknown columns platform.q; missing columns"},
        ),
        (
            {"velocity": np.zeros((2, 3)), "acceleration": np.zeros((3, 3))},
            {"samples": "velocity (2, 3)"},
        ),
        ({"start": np.zeros(3)}, {"start": "shape (3,), needs (6,)"}),
        ({"theta": [1.0]}, {"theta": "shape (1,), needs (0,)"}),
        (
            {"position": [0.0, 0.0], "velocity": [np.nan] * 3, "acceleration": "x", "start": [0.0]},
            {
                "position": "shape",
                "velocity": "not finite",
                "acceleration": "not an array",
                "start": "shape",
            },
        ),
    ],
)
def test_ports_refuse_what_does_not_fit_all_at_once(changes, expected):
    arguments = {
        "position": [0.0, 0.0, -0.5],
        "velocity": np.zeros(3),
        "acceleration": np.zeros(3),
    } | changes
    for function in (model("delta").platform.inverse_dynamics, model("delta").platform.regressor):
        with pytest.raises(InputError) as caught:
            function(**arguments)
        problems = {problem.where: problem.what for problem in caught.value.problems}
        assert set(problems) == set(expected)
        for where, text in expected.items():
            assert text in problems[where]


def test_many_numbers_that_are_not_finite_are_counted():
    position = np.zeros((9, 3))
    position[:, 1] = np.nan
    with pytest.raises(InputError, match=r"sample 4 column platform\.y and 4 more"):
        model("delta").platform.kinematics(position)


def test_columns_may_come_by_name():
    by_name = {"platform.z": -0.5, "platform.x": 0.1, "platform.y": 0.0}
    for position in (by_name, {name: [value] * 4 for name, value in by_name.items()}):
        state = model("delta").platform.kinematics(position)
        expected = model("delta").platform.kinematics([0.1, 0.0, -0.5])
        assert np.array_equal(state.q, np.broadcast_to(expected.q, state.q.shape))


def test_an_unknown_output_of_the_regressor():
    with pytest.raises(InputError, match="choose among actuators, joints, leading"):
        model("delta").platform.regressor([0, 0, -0.5], np.zeros(3), np.zeros(3), output="legs")


@pytest.mark.parametrize("entry", ["platform", "actuators"])
@pytest.mark.parametrize("name", ["delta", "five_bar", "pendulum_arm"])
def test_resultants_on_the_leading_actuators_are_their_forces_where_none_is_redundant(name, entry):
    single, sampled = model(name), states(name, 6)
    A = single.assembly.loops.transmission
    given_motion = (single.actuator_position(sampled.q), sampled.v @ A.T, sampled.a @ A.T)
    if entry == "platform":
        given_motion = (sampled.position, sampled.velocity, sampled.acceleration)
    functions = getattr(single, entry)
    for output in ("actuators", "joints"):
        rows = functions.regressor(*given_motion, output=output, start=sampled.q)
        leading = output.replace("actuators", "leading").replace("joints", "leading_joints")
        resultants = functions.regressor(*given_motion, output=leading, start=sampled.q)
        assert resultants.shape == rows.shape
        assert np.abs(resultants - rows).max() < SAME * np.abs(rows).max()
        assert single.measurable_output(output) == output


# Batches


@pytest.mark.parametrize("entry", ["platform", "actuators"])
@pytest.mark.parametrize("name", ["delta", "gantry_tau_5dof", "five_bar", "pendulum_arm"])
def test_single_samples_give_the_rows_of_the_batch(name, entry):
    functions, sampled = getattr(model(name), entry), states(name)
    A = model(name).assembly.loops.transmission
    given_motion = motion(name)
    if entry == "actuators":
        given_motion = (model(name).actuator_position(sampled.q), sampled.v @ A.T, sampled.a @ A.T)
    batch = functions.inverse_dynamics(*given_motion, start=sampled.q)
    regressor = functions.regressor(*given_motion, start=sampled.q)
    for i in (0, 7):
        forces = functions.inverse_dynamics(*(x[i] for x in given_motion), start=sampled.q[i])
        assert forces.force.shape == (A.shape[0],)
        for single, many in (
            (forces.force, batch.force),
            (forces.closure_force, batch.closure_force),
            (forces.tree_force, batch.tree_force),
            (forces.state.q, batch.state.q),
            (forces.state.v, batch.state.v),
            (forces.state.a, batch.state.a),
            (functions.regressor(*(x[i] for x in given_motion), start=sampled.q[i]), regressor),
        ):
            assert single.shape == many.shape[1:]
            assert np.abs(single - many[i]).max(initial=0.0) <= SAME * (
                1.0 + np.abs(many[i]).max(initial=0.0)
            )


def test_one_velocity_serves_all_positions():
    sampled = states("delta")
    same = np.broadcast_to(sampled.velocity[0], sampled.velocity.shape)
    spread = model("delta").platform.kinematics(sampled.position, sampled.velocity[0])
    assert np.array_equal(spread.v, model("delta").platform.kinematics(sampled.position, same).v)


@pytest.mark.parametrize("size", [1, 5, 23, 24])
def test_chunks_give_what_the_whole_batch_gives(monkeypatch, size):
    machine, sampled = model("gantry_tau_5dof"), states("gantry_tau_5dof")
    whole = machine.platform.inverse_dynamics(*motion("gantry_tau_5dof"), start=sampled.q)
    Y = machine.platform.regressor(*motion("gantry_tau_5dof"), start=sampled.q)
    monkeypatch.setattr(tauloop.model.runner, "RUN_CHUNK", size)
    parts = machine.platform.inverse_dynamics(*motion("gantry_tau_5dof"), start=sampled.q)
    assert np.array_equal(parts.force, whole.force)
    assert np.array_equal(parts.state.q, whole.state.q)
    assert np.array_equal(parts.state.health.is_regular, whole.state.health.is_regular)
    assert np.array_equal(
        machine.platform.regressor(*motion("gantry_tau_5dof"), start=sampled.q), Y
    )


def test_a_batch_longer_than_a_chunk():
    count = tauloop.model.runner.RUN_CHUNK + 5
    position = np.resize(states("delta").position, (count, 3))
    force = model("delta").platform.inverse_dynamics(position, np.zeros(3), np.zeros(3)).force
    assert np.array_equal(force[:24], force[24:48])
    assert np.array_equal(force[-5:], np.resize(force[:24], (count, 3))[-5:])


def test_faults_are_counted_over_all_chunks(monkeypatch):
    monkeypatch.setattr(tauloop.model.runner, "RUN_CHUNK", 4)
    position = np.tile([0.0, 0.0, -0.5], (10, 1))
    position[[1, 9], 2] = -0.9
    with pytest.raises(PoseError, match="samples 1, 9 of 10"):
        model("delta").platform.kinematics(position)


def test_an_empty_batch_is_empty():
    empty = model("delta").platform.inverse_dynamics(*[np.zeros((0, 3))] * 3)
    assert empty.force.shape == (0, 3)
    assert empty.state.q.shape == (0, 6)


# Free parameters


FREE = {
    "delta": ("motor_radius", "forearm_length", "plate_mass", "gravity[2]"),
    "gantry_tau_5dof": ("m_p", "cart_mass"),
}


@pytest.mark.parametrize("name", FREE)
def test_free_parameters_equal_a_model_built_with_their_values(name):
    names = FREE[name]
    free = Model(load(name), free=names)
    nominal = np.array([free.mechanism.parameters[leaf].value for leaf in names])
    others = nominal * (1.0 + 0.01 * np.arange(1, len(names) + 1))
    sampled, given_motion = states(name), motion(name)
    unchanged = free.platform.inverse_dynamics(*given_motion, start=sampled.q)
    expected = model(name).platform.inverse_dynamics(*given_motion, start=sampled.q)
    assert np.abs(unchanged.force - expected.force).max() < SAME * np.abs(expected.force).max()
    rebuilt = Model(free.mechanism.with_values(dict(zip(names, others, strict=True))))
    expected = rebuilt.platform.inverse_dynamics(*given_motion, start=sampled.q)
    changed = free.platform.inverse_dynamics(*given_motion, start=sampled.q, theta=others)
    assert np.abs(changed.force - expected.force).max() < SAME * np.abs(expected.force).max()
    assert np.abs(changed.force - unchanged.force).max() > 1e-4 * np.abs(expected.force).max()
    mixed = free.platform.inverse_dynamics(
        *given_motion, start=sampled.q, theta=np.where(np.arange(24)[:, None] % 2, others, nominal)
    )
    assert (
        np.abs(mixed.force[1::2] - changed.force[1::2]).max() < SAME * np.abs(expected.force).max()
    )
    assert (
        np.abs(mixed.force[::2] - unchanged.force[::2]).max() < SAME * np.abs(expected.force).max()
    )


def test_free_parameters_that_are_not_there_are_all_named():
    with pytest.raises(InputError) as caught:
        Model(load("delta"), free=["plate_mass", "plate_mas", "radius"])
    assert [problem.where for problem in caught.value.problems] == ["plate_mas", "radius"]


# Two entries


def signed(q: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """Coordinates with quaternions of positive real part, which mean the same rotation."""
    q = q.copy()
    for i, name in enumerate(names):
        if name.endswith(".qw"):
            q[:, i : i + 4] *= np.where(q[:, i : i + 1] < 0, -1.0, 1.0)
    return q


@pytest.mark.parametrize("name", CORE_MACHINES)
def test_forward_kinematics_inverts_inverse_kinematics(name):
    machine, sampled = model(name), states(name)
    p = machine.actuator_position(machine.platform.kinematics(sampled.position, start=sampled.q).q)
    q = machine.forward_kinematics(p).q
    names = machine.topology.coordinate_names
    assert np.abs(signed(q, names) - signed(sampled.q, names)).max() < ARRIVED
    residuals, _ = machine.assembly.loops.residuals(q)
    assert np.abs(residuals).max(initial=0.0) < ARRIVED


def test_forward_kinematics_in_closed_form_is_on_the_branch_of_the_reference_or_the_start():
    """The plate below the motors, by plane geometry; from a start on its mirror image it is above them."""
    machine = model("delta")
    angles = np.full(3, 0.5)
    below = machine.forward_kinematics(angles)
    elbow = 0.194 + 0.26 * np.cos(0.5) - 0.03, -0.26 * np.sin(0.5)
    half = np.sqrt(0.48**2 - elbow[0] ** 2)
    assert below.coordinate("platform.z") == pytest.approx(elbow[1] - half)
    start = below.q.copy()
    start[machine.topology.coordinate_names.index("platform.z")] = elbow[1] + half
    above = machine.forward_kinematics(angles + 0.05, start=start)
    elbow = 0.194 + 0.26 * np.cos(0.55) - 0.03, -0.26 * np.sin(0.55)
    assert above.coordinate("platform.z") == pytest.approx(
        elbow[1] + np.sqrt(0.48**2 - elbow[0] ** 2)
    )
    start[0] += 0.1
    with pytest.raises(AssemblyError, match="its loops are open"):
        machine.forward_kinematics(angles + 0.05, start=start)


def test_a_start_of_another_machine_is_refused():
    with pytest.raises(InputError, match="start"):
        model("delta").forward_kinematics(np.full(3, 0.5), start=np.zeros(4))


@pytest.mark.parametrize("name", ["delta", "gantry_tau_5dof", "rcid", "spidermill"])
def test_the_actuator_jacobian_is_the_derivative_of_the_actuators_positions(name):
    """Along the velocities of the independent coordinates, by central differences of inverse kinematics."""
    machine, sampled = model(name), states(name)
    J = machine.platform.actuator_jacobian(sampled.position, start=sampled.q)
    rates = machine.platform.kinematics(sampled.position, sampled.velocity, start=sampled.q)
    given_v = list(machine.platform.ports.v)
    assert rates.v[:, given_v] == pytest.approx(sampled.velocity, abs=SAME)
    direction = _position_rates(machine, sampled)
    ahead, behind = (
        machine.actuator_position(
            machine.platform.kinematics(sampled.position + s * direction, start=sampled.q).q
        )
        for s in (STEP, -STEP)
    )
    quotient = (ahead - behind) / (2 * STEP)
    product = np.einsum("nij,nj->ni", J, sampled.velocity)
    assert np.abs(product - quotient).max() < DIFFERENCES * np.abs(product).max()


def _position_rates(machine: Model, states: RandomStates) -> np.ndarray:
    """Time derivatives of the platform's positions: velocities, and for quaternions q' = (0, omega) q / 2."""
    names = machine.platform.ports.position.columns
    columns = machine.platform.ports.velocity.columns
    rates = np.zeros_like(states.position)
    for i, name in enumerate(names):
        if name in columns:
            rates[:, i] = states.velocity[:, columns.index(name)]
    full = machine.topology
    for q0, v0 in full.quaternions:
        w, omega = states.q[:, q0], states.v[:, v0 : v0 + 3]
        u = states.q[:, q0 + 1 : q0 + 4]
        rate = 0.5 * np.column_stack(
            [-np.sum(u * omega, axis=1), w[:, None] * omega + np.cross(omega, u)]
        )
        for k in range(4):
            if full.coordinate_names[q0 + k] in names:
                rates[:, names.index(full.coordinate_names[q0 + k])] = rate[:, k]
    return rates


def test_joint_forces_are_the_actuators_forces_through_the_transmission():
    machine, sampled = model("gantry_tau_6link"), states("gantry_tau_6link")
    A = machine.assembly.loops.transmission[:, list(machine.assembly.driven)]
    Y_actuators, Y_joints = (
        machine.platform.regressor(*motion("gantry_tau_6link"), start=sampled.q, output=output)
        for output in ("actuators", "joints")
    )
    expected = np.einsum("ui,nup->nip", A, Y_actuators)
    assert np.abs(Y_joints - expected).max() < SAME * np.abs(expected).max()


# Ties to leaf parameters


@given(st.integers(0, 2**31))
def test_ties_give_the_dynamic_parameters_of_any_masses(seed):
    names = ("plate_mass", "arm_mass", "elbow_mass", "forearm_mass")
    machine = model("delta")
    T, offset = machine.parameter_map(names)
    values = np.random.default_rng(seed).uniform(0.01, 3.0, size=len(names))
    other = machine.mechanism.with_values(dict(zip(names, values, strict=True)))
    expected = np.array([other.value(p.expression) for p in machine.parameters])
    assert T @ values + offset == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_ties_that_are_not_linear_name_the_parameters():
    with pytest.raises(InputError) as caught:
        model("delta").parameter_map(["arm_mass", "arm_length"])
    wheres = [problem.where for problem in caught.value.problems]
    assert "leg1.arm.mcx" in wheres
    assert all("arm_length" in problem.what and problem.remedy for problem in caught.value.problems)
    model("delta").parameter_map(["arm_mass"])  # each alone is fine where the other is known


def test_ties_to_a_leaf_that_is_not_there():
    with pytest.raises(InputError, match="plate_mas"):
        model("delta").parameter_map(["plate_mas"])


# Kinematics on top of the model


def test_conditioning_is_that_of_the_inverse_of_the_given_jacobian():
    position = states("delta").position
    result = conditioning(model("delta"), position)
    expected = np.linalg.cond(model("delta").platform.actuator_jacobian(position))
    assert result.condition == pytest.approx(expected)
    assert conditioning(model("delta"), position[0]).condition == pytest.approx(expected[:1])


def test_conditioning_of_rotations_depends_on_the_length_but_not_on_gears():
    position = states("hexapod").position
    short, long = (
        conditioning(model("hexapod"), position, length=length).condition for length in (0.1, 1.0)
    )
    assert np.abs(short / long - 1).min() > 0.1
    gain = {
        name: 7.0
        for name in model("gantry_tau_6link").mechanism.parameters.names
        if name.endswith("track1.gain")
    }
    assert gain
    geared = Model(load("gantry_tau_6link").with_values(gain))
    position = states("gantry_tau_6link").position
    assert conditioning(geared, position).condition == pytest.approx(
        conditioning(model("gantry_tau_6link"), position).condition
    )


def test_random_states_are_reproducible_and_refuse_a_machine_without_regular_ones():
    again = random_states(model("delta"), 24, np.random.default_rng(2))
    assert np.array_equal(again.q, states("delta").q)
    with pytest.raises(PoseError, match="is regular"):
        random_states(model("delta"), 24, np.random.default_rng(2), condition=1.0)


def test_a_turning_motor_on_a_slide_has_its_own_units():
    """A rack drive with a ratio in rad/m: position, torque, inertia and friction are those of a rotation."""
    text = machine_path("linear_delta").read_text(encoding="utf-8")
    assert "motor: {on: slide" in text
    text = re.sub(
        r"motor: \{on: slide[^}]*\}",
        "motor: {on: slide, ratio: 100 rad/m, inertia: 1e-4 kg m^2, friction: {viscous: 0.01 N m s/rad}}",
        text,
    )
    model = Model(loads(text))
    assert model.actuators.ports.position.units == ("rad",) * 3
    assert model.output_ports("actuators")[1] == ("N m",) * 3
    units = {p.role: p.unit for p in model.parameters if p.element.endswith("motor")}
    assert units == {"inertia": "kg m^2", "viscous": "N m s/rad"}
    q = model.assembly.q
    assert np.allclose(model.actuator_position(q), 100.0 * q[3:6])


def test_accelerations_need_velocities():
    position, _, acceleration = motion("delta")
    with pytest.raises(InputError, match="velocity: is missing"):
        model("delta").platform.kinematics(position, acceleration=acceleration)


def test_closed_forms_follow_a_start_on_another_mode() -> None:
    model = Model(load("four_bar"))
    modes = assembly_modes(model)
    mine, other = modes.q
    position = model.actuator_position(mine[None])
    assert np.abs(model.forward_kinematics(position, start=mine).q - mine).max() < 1e-9
    assert np.abs(mine - other).max() > 0.1
    assert np.abs(model.forward_kinematics(position, start=other).q - other).max() < 1e-9
    assert np.abs(model.actuators.track(position, other).q - other).max() < 1e-9
    both = model.actuators.kinematics(
        np.repeat(position, 3, axis=0), start=np.array([other, mine, other])
    )
    assert np.abs(both.q - [other, mine, other]).max() < 1e-9


#: A displacement of 1e-6 m moves torques of some newton metres by as much.
BESIDE = 2e-5


def test_a_regular_pose_at_which_the_order_of_elimination_breaks_down_is_not_called_singular():
    """A pivot of the hexapod's equations passes through zero at a height between two regular poses."""
    platform, rest = model("hexapod").platform, np.zeros(6)
    turn = [0.9362844727405225, 0.1383808565071958, -0.10585967202408347, 0.30498500700245945]
    at = np.array([0.04126442022454752, 0.04122899758175934, 0.3086351988166202, *turn])
    up = np.array([0.0, 0.0, 1e-6, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(
        PoseError,
        match=r"a regular pose, but the elimination order .*: condition number 7\.25 in this pose",
    ):
        platform.inverse_dynamics(at, rest, rest)
    beside = platform.inverse_dynamics(at + up, rest, rest).force
    near_by = model("hexapod").at(platform.kinematics(at).q).platform
    # The pivot is 1.2e-6 there, which costs six of sixteen digits.
    exact = near_by.inverse_dynamics(at + up, rest, rest).force
    assert beside == pytest.approx(exact, rel=1e-8)


def test_two_equations_need_no_pivot():
    """The five-bar's tip on the line of its motors, where -y is an entry of its equations."""
    platform, at, rest = model("five_bar").platform, np.array([0.3, 0.0]), np.zeros(2)
    beside = platform.inverse_dynamics(at + 1e-6, rest, rest).force
    assert platform.inverse_dynamics(at, rest, rest).force == pytest.approx(beside, abs=BESIDE)
    (doubt,) = platform.inverse_dynamics([0.2, 0.0], rest, rest).diagnostics
    assert "dead center" in doubt.advice


@pytest.mark.parametrize(
    ("distance", "is_doubtful"), [(1e-14, True), (1e-12, True), (1e-9, False), (1e-3, False)]
)
def test_forces_that_are_rounding_are_doubtful(distance: float, is_doubtful: bool) -> None:
    """All legs of the delta are stretched at once: forces of 1e17 N m, and a condition number of 6."""
    machine = load("delta")
    platform = Model(machine).platform
    hip, arm = (
        machine.value("motor_radius") - machine.value("plate_radius"),
        machine.value("arm_length"),
    )
    reach = np.sqrt((arm + machine.value("forearm_length")) ** 2 - hip**2)
    height = float(distance - reach)
    forces = platform.inverse_dynamics([0.0, 0.0, height], [0.0, 0.0, -0.1], np.zeros(3))
    assert bool(forces.diagnostics) is is_doubtful
    command = tl.inverse_dynamics(
        machine, tl.DynamicsOptions(pose=f"z={height} m", velocity="z=-0.1 m/s")
    )
    assert command.status is (Status.DOUBTFUL if is_doubtful else Status.OK)


def test_one_free_parameter_is_named_alone():
    assert Model(load("delta"), free="plate_mass").free == ("plate_mass",)
    with pytest.raises(
        InputError, match=r"^plate_mas: is not an independent parameter\n.*did you mean plate_mass"
    ):
        Model(load("delta"), free="plate_mas")
