"""Functions of a `Model` by name: in platform and actuator coordinates, one sample and many, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import tauloop as tl
from tauloop.kinematics import random_states

#: Rounding of solutions with well-conditioned matrices, of themselves.
ROUNDING = 1e-9


@pytest.fixture(scope="module", params=["delta", "hexapod"])
def model(request: pytest.FixtureRequest) -> tl.Model:
    return tl.Model(request.param)


def motion_of(model: tl.Model, coordinates: str, n: int = 4) -> tuple[np.ndarray, ...]:
    """Random positions, velocities and accelerations in platform or actuator coordinates."""
    states = random_states(model, n, np.random.default_rng(3))
    if coordinates == "platform":
        return states.position, states.velocity, states.acceleration
    motion = states.position, states.velocity, states.acceleration
    state = model.platform.kinematics(*motion)
    ports = model.actuators.ports
    assert state.v is not None
    assert state.a is not None
    return ports.at(state.q), ports.rates(state.v), ports.rates(state.a)


@pytest.mark.parametrize("coordinates", ["platform", "actuators"])
def test_forward_dynamics_undoes_inverse_dynamics(model: tl.Model, coordinates: str) -> None:
    x, v, a = motion_of(model, coordinates)
    forces = model.inverse_dynamics(x, v, a, coordinates=coordinates)
    motion = model.forward_dynamics(x, v, forces.force, coordinates=coordinates)
    assert motion.acceleration == pytest.approx(a, rel=ROUNDING, abs=1e-7)
    assert motion.given == forces.given
    expected = "platform coordinates" if coordinates == "platform" else "actuator coordinates"
    assert repr(forces).startswith(f"Forces(given='{expected} ")
    assert repr(motion).startswith(f"Accelerations(given='{expected} ")


@pytest.mark.parametrize("coordinates", ["platform", "actuators"])
def test_mass_matrix_bias_and_jacobian_give_the_forces(model: tl.Model, coordinates: str) -> None:
    """M a + bias = J^T u."""
    x, v, a = motion_of(model, coordinates)
    M = model.mass_matrix(x, coordinates=coordinates)
    bias = model.bias(x, v, coordinates=coordinates)
    J = model.jacobian(x, of="actuators", coordinates=coordinates)
    force = model.inverse_dynamics(x, v, a, coordinates=coordinates).force
    left = np.einsum("kij,kj->ki", M, a) + bias
    assert left == pytest.approx(np.einsum("kji,kj->ki", J, force), rel=1e-8, abs=1e-8)
    energy = np.einsum("ki,kij,kj->k", v, M, v) / 2
    assert model.kinetic_energy(x, v, coordinates=coordinates) == pytest.approx(energy)


def test_gravity_is_what_holds_a_machine_at_rest(model: tl.Model) -> None:
    x, *_ = motion_of(model, "platform")
    still = np.zeros((len(x), model.platform.ports.velocity.size))
    force = model.inverse_dynamics(x, still, still).force
    J = model.jacobian(x, of="actuators")
    assert model.gravity_forces(x) == pytest.approx(
        np.einsum("kji,kj->ki", J, force), rel=1e-8, abs=1e-8
    )


def test_gravity_is_the_gradient_of_the_potential_energy() -> None:
    """A machine without springs."""
    delta = tl.Model("delta")
    x, step = np.array([0.02, -0.03, -0.5]), 1e-6
    sides = [delta.potential_energy(x + side * step * np.eye(3)) for side in (1.0, -1.0)]
    assert delta.gravity_forces(x) == pytest.approx((sides[0] - sides[1]) / (2.0 * step), abs=1e-7)
    assert delta.potential_energy(x).shape == ()


def test_poses_and_jacobians_of_the_tool(model: tl.Model) -> None:
    """Oracle: differences of the poses along the velocities."""
    step = 1e-6
    x, v, _ = motion_of(model, "platform")
    pose = model.tool_pose(x)
    twist = np.einsum("kij,kj->ki", model.jacobian(x), v)
    assert pose.shape == (len(x), 4, 4)
    assert (pose[:, 3] == [0, 0, 0, 1]).all()
    state = model.platform.kinematics(x, v)
    assert state.v is not None
    velocities = (model.platform.tool(x, v).twist)[:, :3]
    assert twist[:, :3] == pytest.approx(velocities)
    if x.shape == v.shape:
        moved = model.tool_pose(x + step * v)[:, :3, 3] - model.tool_pose(x - step * v)[:, :3, 3]
        assert twist[:, :3] == pytest.approx(moved / (2 * step), abs=1e-6)
    assert model.jacobian(x, of="platform") == pytest.approx(
        np.broadcast_to(np.eye(v.shape[1]), (len(x), v.shape[1], v.shape[1]))
    )


def test_one_sample_comes_back_without_the_axis_of_samples() -> None:
    model = tl.Model("delta")
    x, zero = [0.0, 0.0, -0.5], [0.0, 0.0, 0.0]
    assert model.mass_matrix(x).shape == (3, 3)
    assert model.mass_matrix([x]).shape == (1, 3, 3)
    assert model.jacobian(x).shape == (6, 3)
    assert model.tool_pose(x)[:3, 3].tolist() == x
    assert model.bias(x, zero).shape == (3,)
    assert model.kinetic_energy(x, zero).item() == 0.0
    assert model.inverse_dynamics(x, zero, zero).force.shape == (3,)
    assert model.forward_dynamics({"x": 0, "y": 0, "z": -0.5}, zero, zero).acceleration.shape == (
        3,
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, x: m.jacobian(x, of="base"), "of: 'base' is unknown"),
        (lambda m, x: m.mass_matrix(x, coordinates="joints"), "coordinates: is 'joints'"),
        (lambda m, x: m.mass_matrix(x, coordinates=None), "coordinates: is None"),
        (lambda m, x: m.inverse_dynamics(x, x, x[:2]), "acceleration: has shape (2,), needs (3,)"),
        (lambda m, x: m.inverse_dynamics(x, x, None), "acceleration: has shape ()"),
        (lambda m, x: m.forward_dynamics(x, x, "torque"), "force: is not an array of numbers"),
        (lambda m, x: m.tool_pose(m), "position: is not an array of numbers"),
        (lambda m, x: m.bias(x, [np.nan] * 3), "velocity: is not finite"),
    ],
)
def test_wrong_arguments_are_refused_by_name(call: Callable[..., object], message: str) -> None:
    model = tl.Model("delta")
    with pytest.raises(tl.InputError) as caught:
        call(model, [0.0, 0.0, -0.5])
    assert message in str(caught.value)


def test_functions_of_a_machine_take_batches_first() -> None:
    x = np.array([[0.0, 0.0, -0.5], [0.05, 0.0, -0.45]])
    v = np.zeros(3)
    model = tl.Model("delta")
    forces = tl.inverse_dynamics("delta", x, v, {"z": 2.0})
    assert forces.forces.force == pytest.approx(model.inverse_dynamics(x, v, [0, 0, 2.0]).force)
    assert forces.time.tolist() == [0.0, 1.0]
    motion = tl.forward_dynamics(model, x, v, forces.forces.force)
    assert motion.acceleration == pytest.approx(np.tile([0, 0, 2.0], (2, 1)), abs=1e-7)
    assert motion.to_pandas()["acceleration.platform.z"].round(6).tolist() == [2.0, 2.0]
    assert motion.as_dict()["given"] == "platform coordinates x, y, z"
    by_actuators = tl.inverse_dynamics("delta", [0.5] * 3, v, v, coordinates="actuators")
    assert "given='actuator coordinates leg1.motor" in repr(by_actuators)
    assert (
        tl.inverse_dynamics("delta", [0.5] * 3, coordinates="actuators").given == by_actuators.given
    )


def test_a_motion_is_given_once() -> None:
    with pytest.raises(tl.InputError, match="position: is given twice"):
        tl.inverse_dynamics("delta", [0, 0, -0.5], options=tl.DynamicsOptions(pose="z=-0.5"))
    with pytest.raises(tl.InputError, match="position: is given in addition to a table"):
        tl.inverse_dynamics("delta", [0, 0, -0.5], motion="motion.csv")


def test_poses_of_kinematics_state_their_coordinates() -> None:
    """On this machine three numbers are valid in both."""
    forward = tl.forward_kinematics("delta", [0.5, 0.5, 0.5])
    inverse = tl.inverse_kinematics("delta", [0.0, 0.0, -0.5])
    assert "given='actuator coordinates leg1.motor" in repr(forward)
    assert "given='platform coordinates x, y, z'" in repr(inverse)
    assert inverse.actuators.shape == (3,)
    again = tl.forward_kinematics("delta", inverse.actuators)
    assert again.platform == pytest.approx([0.0, 0.0, -0.5], abs=1e-9)
    assert again.tool_pose[0, :3, 3] == pytest.approx(again.tool[0])


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("library", ["pandas", "xarray"])
def test_tables_of_samples_are_read_by_label(rows: int, library: str) -> None:
    """Against arrays in the machine's order, and accelerations back from the forces."""
    arrays = {
        "position": np.array([[0.0, 0.0, -0.5], [0.02, 0.01, -0.48], [0.03, -0.02, -0.46]]),
        "velocity": np.array([[0.1, -0.2, 0.3], [0.3, 0.2, 0.1], [-0.1, 0.1, 0.2]]),
        "acceleration": np.array([[1.0, 2.0, 3.0], [-3.0, 2.0, 1.0], [2.0, -1.0, 3.0]]),
    }
    model, order = tl.Model("delta"), ["z", "x", "y"]
    tables = {
        name: pd.DataFrame(array[:rows], columns=list("xyz"), index=range(7, 7 + rows))[order]
        for name, array in arrays.items()
    }
    if library == "xarray":
        tables = {
            name: xr.DataArray(table.to_numpy(), dims=("t", "axis"), coords={"axis": order})
            for name, table in tables.items()
        }
    forces = tl.inverse_dynamics(model, *tables.values()).forces.force
    expected = model.inverse_dynamics(*(array[:rows] for array in arrays.values())).force
    np.testing.assert_allclose(forces, expected, rtol=1e-12)
    position, velocity, _ = tables.values()
    motion = tl.forward_dynamics(model, position, velocity, forces)
    np.testing.assert_allclose(motion.acceleration, arrays["acceleration"][:rows], rtol=1e-9)


def test_a_table_of_one_row_is_a_pose() -> None:
    pose = pd.DataFrame([[-0.5, 0.0, 0.02]], columns=["z", "y", "x"])
    model = tl.Model("delta")
    actuators = tl.inverse_kinematics(model, pose).actuators
    np.testing.assert_array_equal(
        actuators, tl.inverse_kinematics(model, [0.02, 0.0, -0.5]).actuators
    )
    np.testing.assert_allclose(
        tl.forward_kinematics(model, actuators).platform, [0.02, 0.0, -0.5], atol=1e-12
    )
    with pytest.raises(tl.InputError, match="has 2 rows"):
        tl.inverse_kinematics(model, pd.concat([pose, pose]))
