"""Corrected motor positions: own nonlinear equilibrium, inverse dynamics, and refusals."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from elastic_machines import DELTA, FOUR_BAR, gantry, hexapod
from scipy.spatial.transform import Rotation

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.formats import machine_path

EXAMPLE = "examples/elastic/gantry_tau.yaml"
#: Axial stiffness of a rod's tube 50 x 3 mm, N, and stiffness of a drive, N/m.
EA, DRIVE = 70e9 * np.pi / 4.0 * (0.05**2 - 0.044**2), 20e6
EXPANSION, GRAVITY = 23e-6, 9.81
#: Rods and their tracks of the Gantry-Tau.
RODS = {"triple1": 1, "triple2": 1, "triple3": 1, "pair1": 2, "pair2": 2, "single1": 3}
#: Index of the track of each rod.
TRACKS = np.array(list(RODS.values())) - 1
#: Second-order estimates hold within this factor.
ESTIMATE_FACTOR = 2.0
#: Second-order part of the rotation at the largest load, which turns the plate by 2 mrad.
ROTATION_TOLERANCE = 4e-3
#: Relative agreement of first-order corrections with exact forces: the relative deflection is 1e-5.
FIRST_ORDER_TOLERANCE = 3e-4
#: Rounding errors of the equilibrium by differences, m.
EQUILIBRIUM_TOLERANCE = 1e-11


def loaded_tool(
    machine: tl.Model, motors: np.ndarray, wrench: np.ndarray, heat: dict[str, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return position and orientation of the Gantry-Tau's tool in nonlinear equilibrium.

    Rods and drives are springs; Newton's method on the gradient of the potential of the plate's six
    and the carts' three coordinates.
    """
    value = machine.mechanism.value
    B = np.array([[value(f"{rod}.B_{axis}") for axis in "xyz"] for rod in RODS])
    on_cart = np.array([[value(f"{rod}.A_{axis}") for axis in "xyz"] for rod in RODS])
    free = np.array([value(f"{rod}.length") for rod in RODS])
    lengths = free * (1.0 + EXPANSION * np.array([heat.get(rod, 0.0) for rod in RODS]))
    sides = np.array([[value(f"track{t}.track_{axis}") for axis in "yz"] for t in (1, 2, 3)])
    stiffness = np.concatenate([EA / free, np.full(3, DRIVE)])
    (plate,) = (body for body in machine.mechanism.bodies if body.name == "plate")
    assert plate.inertia is not None
    mass, *moment = (value(x) for x in plate.inertia.parameters[:4])
    tube = 2700.0 * EA / 70e9 * free
    tool = np.array([value(x) for x in machine.mechanism.platform.tool.position])

    def stretches(x: np.ndarray) -> np.ndarray:
        R = Rotation.from_rotvec(x[3:6]).as_matrix()
        A = on_cart + np.column_stack([x[6 + TRACKS], sides[TRACKS]])
        ends = x[:3] + B @ R.T
        return np.concatenate([np.linalg.norm(ends - A, axis=1) - lengths, x[6:] - motors])

    def potential(x: np.ndarray) -> float:
        R = Rotation.from_rotvec(x[3:6])
        heights = mass * x[2] + R.apply(moment)[2] + 0.5 * tube @ (x[:3] + R.apply(B))[:, 2]
        turned = wrench[3:] @ R.as_rotvec()
        return float(GRAVITY * heights - wrench[:3] @ (x[:3] + R.apply(tool)) - turned)

    def slopes(function: object, x: np.ndarray, step: float) -> np.ndarray:
        assert callable(function)
        rows = [
            (function(x + step * unit) - function(x - step * unit)) / (2.0 * step)
            for unit in np.eye(len(x))
        ]
        return np.array(rows)

    start = machine.forward_kinematics(motors).q
    x = np.concatenate([start[:3], np.zeros(3), motors])
    for _ in range(60):
        J = slopes(stretches, x, 1e-6)
        force = J @ (stiffness * stretches(x)) + slopes(potential, x, 1e-4)
        step = np.linalg.solve(J @ (stiffness[:, None] * J.T), force)
        x = x - step
        if np.abs(step).max() < EQUILIBRIUM_TOLERANCE:
            break
    R = Rotation.from_rotvec(x[3:6])
    return x[:3] + R.apply(tool), R.as_rotvec()


@pytest.fixture(scope="module")
def tubes() -> tl.Model:
    """Return the example of aluminium tubes."""
    return tl.Model(EXAMPLE)


@pytest.mark.parametrize("size", [1.0, 10.0])
def test_loaded_warm_machine_is_at_the_commanded_position(tubes: tl.Model, size: float) -> None:
    """The remaining error is of second order, and within its stated size."""
    poses = np.array([[0.0, 0.0, 0.0], [0.15, 0.05, -0.08], [-0.12, -0.1, 0.1]])
    wrench = size * np.array([300.0, -200.0, -400.0, 0.0, 0.0, 0.0])
    heat = {"triple1": 3.0, "pair2": -2.0, "single1": 5.0}
    result = tl.compensate(tubes, poses, wrench=tuple(wrench), temperatures=heat)
    assert result.status == "ok"
    for row, motors in enumerate(result.actuators):
        place, turn = loaded_tool(tubes, motors, wrench, heat)
        miss = np.linalg.norm(place - result.tool[row])
        assert miss <= ESTIMATE_FACTOR * result.second_order[row]
        assert miss < 3e-3 * np.linalg.norm(result.deflection[row, :3] + result.heat[row, :3])
        # The actuators cannot correct the plate's rotation.
        expected = result.remaining[row, 3:]
        assert np.abs(turn - expected).max() < ROTATION_TOLERANCE * np.abs(expected).max()
        rigid, _ = loaded_tool(tubes, result.rigid_actuators[row], wrench, heat)
        assert np.linalg.norm(rigid - result.tool[row]) > 300.0 * miss


def test_remaining_error_follows_from_stiffness_and_heat(tubes: tl.Model) -> None:
    """`stiffness` and `thermal_expansion` at the corrected motors give the same error of the tool."""
    result = tl.compensate(
        tubes, [[0.1, 0.05, -0.05]], wrench={"fx": 800.0, "mz": 50.0}, temperatures={"single1": 4.0}
    )
    reached = tl.forward_kinematics(tubes, result.actuators[0])
    rows = [reached.platform]
    loaded = tl.stiffness(tubes, rows, wrench={"fx": 800.0, "mz": 50.0})
    heated = tl.thermal_expansion(tubes, rows, temperatures={"single1": 4.0})
    place = loaded.tool[0] + loaded.deflection[0, :3] + heated.error[0, :3]
    assert place - result.tool[0] == pytest.approx(result.remaining[0, :3], abs=1e-12)
    assert np.abs(place - result.tool[0]).max() < 1e-11
    turn = loaded.deflection[0, 3:] + heated.error[0, 3:]
    assert turn == pytest.approx(result.remaining[0, 3:], rel=1e-9, abs=1e-15)


def elastic_motors(name: str) -> tl.Model:
    """Return a shipped machine of which only the drives are elastic, without rotors and friction."""
    text = machine_path(name).read_text(encoding="utf-8")
    text = re.sub(r"inertia: rotor_inertia, |    friction: .*", "", text)
    unit = "N/um" if name.startswith("gantry") else "N m/urad"
    return tl.Model(
        tl.loads(re.sub(r"(force: [\d.]+ N[^}]*)\}", rf"\1, stiffness: 20 {unit}}}", text))
    )


@pytest.mark.parametrize(
    ("name", "ranges"),
    [
        ("gantry_tau_6link", ([0.2, 0.1, 0.1], [0.0, 0.0, 0.0])),
        ("delta", ([0.08, 0.08, 0.05], [0.0, 0.0, -0.5])),
        ("five_bar", ([0.03, 0.03], None)),
    ],
)
def test_inertia_deflects_elastic_drives_as_inverse_dynamics_states(
    name: str, ranges: tuple[list[float], list[float] | None]
) -> None:
    """Each motor is corrected by its force over its stiffness, if all else is rigid."""
    model = elastic_motors(name)
    rng = np.random.default_rng(3)
    half, middle = ranges
    center = model.platform_position(model.assembly.q) if middle is None else np.array(middle)
    poses = center + rng.uniform(-1.0, 1.0, (6, len(half))) * half
    velocity, acceleration = rng.normal(size=(2, 6, len(half))) * [[[2.0]], [[20.0]]]
    result = tl.compensate(model, poses, velocity=velocity, acceleration=acceleration)
    forces = tl.inverse_dynamics(model, poses, velocity, acceleration).force
    expected = forces / 20e6
    assert result.status == "ok"
    assert (
        np.abs(result.correction - expected).max() < FIRST_ORDER_TOLERANCE * np.abs(expected).max()
    )


def test_batch_equals_single_samples_with_their_own_wrenches(tubes: tl.Model) -> None:
    """Wrenches of samples equal single calls."""
    poses = np.array([[0.0, 0.0, 0.0], [0.1, 0.05, 0.0]])
    wrenches = np.array([[100.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, -300.0, 5.0, 0.0, 0.0]])
    both = tl.compensate(tubes, poses, wrenches=wrenches)
    for row, wrench in enumerate(wrenches):
        single = tl.compensate(tubes, poses[row], wrench=tuple(wrench))
        assert single.actuators[0] == pytest.approx(both.actuators[row], rel=1e-13)


def test_motion_from_a_table_equals_arrays(tubes: tl.Model, tmp_path: Path) -> None:
    """A motion is corrected from its table."""
    position = np.array([[-0.01, 0.0, 0.0], [0.0, 0.0, 0.01], [0.02, 0.0, 0.0]])
    velocity, acceleration = np.full((3, 3), 0.5), np.array([[4.0, 0.0, -3.0]] * 3)
    time = np.array([0.0, 0.1, 0.2])
    path = tmp_path / "motion.csv"
    heads = ["time [s]"]
    for quantity, unit in (("position", "m"), ("velocity", "m/s"), ("acceleration", "m/s^2")):
        heads += [f"{quantity}.platform.{axis} [{unit}]" for axis in "xyz"]
    rows = np.column_stack([time, position, velocity, acceleration])
    np.savetxt(path, rows, delimiter=",", header=",".join(heads), comments="")
    from_table = tl.compensate(tubes, motion=path)
    arrays = tl.compensate(tubes, position, velocity=velocity, acceleration=acceleration, time=time)
    assert np.array_equal(from_table.actuators, arrays.actuators)
    assert np.array_equal(from_table.time, arrays.time)
    at_rest = tl.compensate(tubes, position)
    assert np.abs(arrays.actuators - at_rest.actuators).max() > 1e-6


def test_hexapod_is_corrected_in_all_directions() -> None:
    """A machine with six freedoms misses neither position nor orientation."""
    model = tl.Model(hexapod(drives="20 N/um", sections=True))
    result = tl.compensate(model, {"x": "20 mm", "rx": "3 deg"}, wrench={"fx": 500.0, "mx": 20.0})
    weight = np.repeat([1.0, 0.3], 3)
    size = np.linalg.norm(result.deflection[0] * weight)
    assert np.linalg.norm(result.remaining[0] * weight) < 1e-6 * size


def test_joint_coordinates_keep_the_smallest_error() -> None:
    """A four-bar with one motor is corrected by least squares, and the rest is reported."""
    model = tl.Model(tl.loads(FOUR_BAR))
    result = tl.compensate(model, wrench={"fy": 2.0})
    J = model.platform.tool_jacobian(result.corrected_platform)[0]
    weight = np.repeat([1.0, tl.stiffness(model).structure.structure.length], 3)
    left, column = result.remaining[0] * weight, J[:, 0] * weight
    size = np.linalg.norm(column) * np.linalg.norm(result.deflection[0] * weight)
    assert abs(column @ left) < 1e-4 * size
    assert result.remaining_distance[0] > 0.0


def test_refusals(tubes: tl.Model) -> None:
    """Rigid machines, double loads and wrong shapes are refused by name."""
    with pytest.raises(InputError, match="no rod, body, joint or actuator has elastic data"):
        tl.compensate("delta")
    with pytest.raises(InputError, match="wrenches: is given in addition to `wrench`"):
        tl.compensate(tubes, wrench={"fx": 1.0}, wrenches=np.zeros((1, 6)))
    with pytest.raises(InputError, match="wrenches: has 2 rows for 1 samples"):
        tl.compensate(tubes, wrenches=np.zeros((2, 6)))
    with pytest.raises(InputError, match="motion: is given in addition to poses"):
        tl.compensate(tubes, [[0.0, 0.0, 0.0]], motion="stroke.csv")
    with pytest.raises(InputError, match="time: has 2 values for 1 samples"):
        tl.compensate(tubes, time=[0.0, 1.0])


def test_large_deflections_are_doubtful() -> None:
    """A soft delta under a large load is not a result to build on."""
    assert tl.compensate(tl.loads(DELTA), wrench={"fx": 800.0}).status == "doubtful"
    assert tl.compensate(gantry(), wrench={"fx": 800.0}).status == "ok"
