"""Modes and responses of machines whose motors are held by position loops, against own state spaces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from elastic_machines import gantry, hexapod
from scipy.linalg import expm

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.elasticity.vibrations.servo_modes import closed_loop_matrix
from tauloop.mechanism.expression import Constant

#: Rounding of eigenvalues of matrices whose entries differ by ten orders.
ROUNDING = 1e-7
#: A rotor of this inertia, at the joint, stays at rest, kg.
HEAVY = 1e7
#: Rounding of eigenvalues next to those of such rotors.
HEAVY_ROUNDING = 1e-5
#: Tolerance of the simulation of a drive line, and of the step in which it is sampled.
SIMULATION = 2e-5
MASS, ROTOR, SPRING, GEAR = 40.0, 2e-3, 500.0, 200.0
POSITION, SPEED, INTEGRAL = 60.0, 0.9, 0.02
SLIDE = """
format: tauloop-machine/1
name: slide
provenance: {{status: chosen, source: test}}
gravity: [0, 0, -9.81 m/s^2]
bodies: {{cart: {{mass: 40 kg}}}}
joints: {{rail: {{type: prismatic, axis: x, parent: base, child: cart}}}}
actuators: {{motor: {{on: rail, ratio: 200, force: 10 N, {keys}}}}}
platform: {{body: cart, independent: [rail]}}
"""
GAINS = {"motor": {"position": POSITION, "speed": SPEED, "integral_time": "20 ms"}}


def slide(keys: str) -> tl.Model:
    return tl.Model(tl.loads(SLIDE.format(keys=keys)))


def two_masses(ratio: float) -> np.ndarray:
    """Matrix of (motor, cart, their speeds, integral), with a damping ratio of the free mode."""
    K = SPRING * np.array([[1.0, -GEAR], [-GEAR, GEAR**2]])
    root = np.sqrt(np.array([ROTOR, MASS]))
    squared, V = np.linalg.eigh(K / np.outer(root, root))
    rates = V @ np.diag(2.0 * ratio * np.sqrt(np.maximum(squared, 0.0))) @ V.T
    A = np.zeros((5, 5))
    A[:2, 2:4] = np.eye(2)
    A[2:4, :2] = -K / root[:, None] ** 2
    A[2:4, 2:4] = -rates * root / root[:, None]
    A[2, [0, 2, 4]] += np.array([-POSITION, -1.0, 1.0]) * SPEED / ROTOR
    A[4, [0, 2]] = -np.array([POSITION, 1.0]) / INTEGRAL
    return A


def oscillating(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return frequencies, Hz, and damping ratios of the complex eigenvalues."""
    values = np.linalg.eigvals(A)
    values = values[values.imag > 1e-6 * np.abs(values)]
    values = values[np.argsort(np.abs(values))]
    return np.abs(values) / (2.0 * np.pi), -values.real / np.abs(values)


@pytest.mark.parametrize("ratio", [0.0, 0.01])
def test_two_masses_with_a_cascade(ratio: float) -> None:
    machine = slide("stiffness: 500 N/m, inertia: 2e-3 kg")
    result = tl.vibration(machine, motor_state="servo", servo_gains=GAINS, damping=ratio or None)
    frequency, damping = oscillating(two_masses(ratio))
    assert result.frequency[0] == pytest.approx(frequency, rel=ROUNDING)
    assert result.damping_ratio is not None
    assert result.damping_ratio[0] == pytest.approx(damping, rel=ROUNDING)
    assert result.status == "ok"


def test_the_response_of_the_tool_includes_the_loops() -> None:
    machine = slide("stiffness: 500 N/m, inertia: 2e-3 kg")
    result = tl.vibration(machine, motor_state="servo", servo_gains=GAINS, damping=0.01)
    A, force = two_masses(0.01), np.array([0.0, 0.0, 0.0, 1.0 / MASS, 0.0])
    for frequency in (0.01, 5.0, 24.0, 135.0, 500.0):
        expected = np.linalg.solve(2j * np.pi * frequency * np.eye(5) - A, force)[1]
        response = result.tool_response([frequency])[0, 0, 0, 0]
        assert response == pytest.approx(expected, rel=ROUNDING)


def test_the_inertia_of_a_rigid_drive_is_reflected_by_its_ratio() -> None:
    """(m + n² J) s² + n² k s + n² k p = 0."""
    machine = slide("inertia: 2e-3 kg")
    position, speed = 60.0, 0.1
    gains = f"motor.position={position} 1/s,motor.speed={speed}"
    result = tl.vibration(machine, motor_state="servo", servo_gains=gains)
    inertia = MASS + GEAR**2 * ROTOR
    omega = np.sqrt(GEAR**2 * speed * position / inertia)
    assert result.frequency[0] == pytest.approx([omega / (2.0 * np.pi)], rel=ROUNDING)
    assert result.damping_ratio is not None
    expected = GEAR**2 * speed / inertia / (2.0 * omega)
    assert result.damping_ratio[0] == pytest.approx([expected], rel=ROUNDING)


def test_a_bandwidth_lets_errors_decay_without_overshoot() -> None:
    machine = slide("inertia: 2e-3 kg")
    result = tl.vibration(machine, motor_state="servo", bandwidth=100.0)
    assert result.servo is not None
    poles = np.linalg.eigvals(closed_loop_matrix(result.servo.plant)[0])
    assert poles == pytest.approx([-100.0, -100.0], rel=1e-5)  # a double pole: the root of rounding
    hertz = tl.vibration(machine, motor_state="servo", bandwidth=f"{100.0 / (2.0 * np.pi)} Hz")
    assert hertz.servo is not None
    assert hertz.servo.growth == pytest.approx(result.servo.growth, rel=1e-5)


#: A motor with a pinion on an elastic shaft, and a law with all parts.
LINE = """
format: tauloop-drive/1
name: line
provenance: {{status: chosen, source: test}}
inertias:
  motor1: {{inertia: 0.02 kg m^2, friction: {{viscous: 3 N m s/rad}}}}
  flange: {{inertia: 0.01 kg m^2}}
  cart: {{mass: 300 kg}}
connections:
  coupling: {{first: motor1, second: flange, gear: 2, rigid: yes}}
  rack:
    first: flange
    second: cart
    rack_and_pinion: 50 mm
    shaft: {{stiffness: 1e6 N/m, damping: 2000 N s/m}}
motors: {{drive1: {{on: motor1}}}}
encoders: {{scale: {{on: cart}}, resolver: {{on: motor1}}}}
control:
  {control}
  motor: drive1
performance: {{of: cart, band: 1 mm}}
"""
CONTROLS = {
    "pid": "position: {encoder: scale, gain: 200, integral_time: 1.5 s, derivative_time: 0.05 s}",
    "cascade": """position: {encoder: scale, gain: 800}
  speed: {encoder: resolver, gain: 6, integral_time: 0.1 s}""",
}
ON_LINE = """
format: tauloop-machine/1
name: slide
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
bodies: {cart: {mass: 300 kg}}
joints: {rail: {type: prismatic, axis: x, parent: base, child: cart}}
actuators: {motor: {on: rail, force: 10 N, drive: {file: line.yaml}}}
platform: {body: cart, independent: [rail]}
"""


@pytest.mark.parametrize("control", CONTROLS)
def test_a_drive_line_moves_as_its_simulation(tmp_path: Path, control: str) -> None:
    """The step of a line by simulation, and by the closed loop of a machine with this line."""
    line = tmp_path / "line.yaml"
    line.write_text(LINE.format(control=CONTROLS[control]), encoding="utf-8")
    (tmp_path / "machine.yaml").write_text(ON_LINE, encoding="utf-8")
    size = 1e-3
    simulated = tl.simulate_drive_line(tl.drives.load_drive(line), step=size, duration=0.6)
    data = simulated.to_xarray()
    time, position = data["time"].to_numpy(), data["position.cart"].to_numpy()
    result = tl.vibration(tmp_path / "machine.yaml", motor_state="servo")
    assert result.servo is not None
    plant = result.servo.plant
    A = closed_loop_matrix(plant)[0]
    modes, law = plant.squared.shape[1], plant.laws[0]
    push = (plant.torque[0] @ plant.shapes[0])[0] * law.D[0]
    B = np.concatenate([np.zeros(modes), push, law.B[:, 0]])
    at_rest = -np.linalg.solve(A, B) * size
    read = (plant.position[0] @ plant.shapes[0])[0]
    for k in range(0, len(time), len(time) // 20):
        state = at_rest - expm(A * time[k]) @ at_rest
        assert read @ state[:modes] == pytest.approx(position[k], abs=SIMULATION * size)


@pytest.mark.parametrize("name", ["gantry", "struts", "tubes"])
def test_a_heavy_rotor_holds_as_a_locked_motor(name: str) -> None:
    machine = {
        "gantry": gantry,
        "struts": lambda: hexapod(drives="10 N/um"),
        "tubes": lambda: hexapod(drives="10 N/um", sections=True),
    }[name]()
    ratios = [machine.value(actuator.drives[0][1]) for actuator in machine.actuators]
    rotors = tuple(
        replace(actuator, inertia=Constant(HEAVY / ratio**2), friction=None)
        for actuator, ratio in zip(machine.actuators, ratios, strict=True)
    )
    model = tl.Model(replace(machine, actuators=rotors))
    locked = tl.vibration(machine, count=6, link_modes=1).frequency[0]
    servo = tl.vibration(
        model, count=40, link_modes=1, motor_state="servo", servo_gains="*.position=1,*.speed=1"
    )
    frequencies = servo.frequency[0]
    elastic = frequencies[frequencies > 1.0][:6]
    assert elastic == pytest.approx(locked, rel=HEAVY_ROUNDING)


def test_weak_loops_leave_the_modes_of_free_motors() -> None:
    machine = gantry()
    rotors = tuple(replace(actuator, stiffness=None) for actuator in machine.actuators)
    model = tl.Model(replace(machine, actuators=rotors))
    free = tl.vibration(model, count=8, motor_state="free")
    servo = tl.vibration(
        model, count=8, motor_state="servo", servo_gains="*.position=1e-3,*.speed=1"
    )
    frequencies = servo.frequency[0]
    elastic = free.frequency[0, free.free :]
    assert frequencies[frequencies > 1.0][:4] == pytest.approx(elastic[:4], rel=1e-4)


def test_missing_and_wrong_gains_are_named() -> None:
    machine = slide("inertia: 2e-3 kg")
    with pytest.raises(InputError, match=r"actuators.motor: .* gains are missing: position, speed"):
        tl.vibration(machine, motor_state="servo")
    for gains, message in (
        ({"motr": {"speed": 1.0}}, "did you mean motor"),
        ({"motor": {"sped": 1.0}}, "did you mean speed"),
        ({"motor": {"speed": -1.0}}, "servo_gains.motor.speed: must be positive, got -1"),
        ({"motor": {"speed": float("inf")}}, "servo_gains.motor.speed: must be finite, got inf"),
        ("motor.position=1 m", "servo_gains.motor.position"),
    ):
        with pytest.raises(InputError, match=message):
            tl.vibration(machine, motor_state="servo", servo_gains=gains)
    with pytest.raises(InputError, match="motors are locked, not controlled"):
        tl.vibration(slide("stiffness: 5 N/um"), servo_gains=GAINS)
    with pytest.raises(InputError, match="the inertia of its motor is missing"):
        tl.vibration(slide("stiffness: 5 N/um"), motor_state="servo", servo_gains=GAINS)


def test_an_unstable_loop_is_doubtful() -> None:
    machine = slide("inertia: 2e-3 kg")
    gains = {"motor": {"position": 60.0, "speed": 0.1, "integral_time": 1e-3}}
    result = tl.vibration(machine, motor_state="servo", servo_gains=gains)
    assert result.status == "doubtful"
    assert any("the loops are unstable" in line for line in result.advice)
