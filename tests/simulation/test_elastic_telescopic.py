"""Elastic machines whose rods change their lengths, against nonlinear equations of their own."""

from __future__ import annotations

import numpy as np
import pytest
from elasticity.elastic_machines import hexapod
from nonlinear_strut import NonlinearStrut, Servo, StrutData

import tauloop as tl
from tauloop.elasticity.machine.structure import StructureOptions, machine_structure
from tauloop.elasticity.vibrations.servo_control import cascade

STRUT = """
format: tauloop-machine/1
name: strut
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
bodies: {cart: {mass: 1 kg}}
joints:
  rail:
    type: prismatic
    axis: x
    parent: {on: base, at: [0, 0, 0.3 m]}
    child: cart
    reference: 0.6 m
rods:
  strut:
    from: {on: base, at: [0, 0, 0]}
    to: {on: cart, at: [0, 0, 0]}
    telescopic: {reference: sqrt(0.45) * 1 m}
    model: slender
    lower:
      length: 0.55 m
      section: {EA: 1e12 N, EI: 500 N m^2, GJ: 1 N m^2, mass_per_length: 3 kg/m}
    upper:
      length: 0.5 m
      section: {EA: 1e12 N, EI: 400 N m^2, GJ: 1 N m^2, mass_per_length: 2 kg/m}
actuators: {motor: {on: strut, force: 1000 N, stiffness: 0.4 N/um, inertia: 5 kg}}
platform: {body: cart, independent: [rail]}
"""
DATA = StrutData(
    height=0.3,
    cart=1.0,
    parts=(0.55, 0.5),
    density=(3.0, 2.0),
    bending=(500.0, 400.0),
    drive=4e5,
    gravity=9.81,
)
GAINS = "motor.position=30,motor.speed=1200,motor.integral_time=50ms"
SERVO = Servo(inertia=5.0, position=30.0, speed=1200.0, integral_time=0.05)
#: Linear equations with the package's modes against nonlinear ones with others: compression of the
#: strut, 0.3 % of its buckling load, is left out.
LINEAR_TOLERANCE = 6e-3
#: The tool of a controlled motor: its following error, known to the steps' tolerance, is the most.
CONTROLLED_TOLERANCE = 2e-3
#: A quadrature of the products of cubic shapes with kinks of the third derivative.
QUADRATURE = 1e-5
#: A motion over 10 s against the static deflection.
STATIC_TOLERANCE = 5e-3


@pytest.fixture(scope="module")
def strut() -> tl.Model:
    return tl.Model(tl.loads(STRUT))


def reference(motion: object, end: float) -> object:
    """Return the function from time to the strut's length and its rate."""

    def length(time: float) -> tuple[float, float]:
        row = motion.trajectory.at(np.array([min(time, end)]))  # type: ignore[attr-defined]
        x, speed = row.position[0, 0], row.velocity[0, 0] * (time < end)
        total = float(np.hypot(x, DATA.height))
        return total, float(x * speed / total)

    return length


def test_telescopic_strut_in_large_motion(strut: tl.Model) -> None:
    end, times = 0.12, np.linspace(0.0, 0.15, 61)
    motion = tl.plan_stroke(strut, end={"rail": "0.7 m"}, duration=end)
    length = reference(motion, end)
    own = NonlinearStrut(DATA, (0.64, 0.85), modes=2)
    expected = own.moved(lambda time: length(time)[0], 0.6, times)  # type: ignore[operator]
    result = tl.simulate_elastic(strut, motion, duration=0.15, link_modes=3)
    rigid = motion.trajectory.at(np.minimum(times, end)).position[:, 0]
    for values, wanted in (
        (result.deflection[:, 0], expected[:, 0] - rigid),
        (result.axial[:, 0], expected[:, 1]),
    ):
        error = np.interp(times, result.time, values) - wanted
        assert np.abs(error).max() < LINEAR_TOLERANCE * np.abs(wanted).max()
    assert np.interp(times, result.time, result.tool[:, 0]) == pytest.approx(rigid, abs=1e-7)
    assert result.status.value == "ok"


def test_controlled_strut_in_large_motion(strut: tl.Model) -> None:
    end, times = 0.2, np.linspace(0.0, 0.25, 101)
    motion = tl.plan_stroke(strut, end={"rail": "0.75 m"}, duration=end)
    length = reference(motion, end)
    own = NonlinearStrut(DATA, (0.62, 0.87), modes=1)
    expected = own.controlled(SERVO, length, 0.6, times)  # type: ignore[arg-type]
    result = tl.simulate_elastic(
        strut, motion, duration=0.25, motor_state="servo", servo_gains=GAINS, link_modes=2
    )
    rigid = motion.trajectory.at(np.minimum(times, end)).position[:, 0]
    lag = np.array([length(time)[0] for time in times]) - expected[:, 1]  # type: ignore[operator]
    for values, wanted in (
        (result.deflection[:, 0], expected[:, 0] - rigid),
        (result.following_error[:, 0], lag),
        (result.motor_force[:, 0], expected[:, 2]),
    ):
        error = np.interp(times, result.time, values) - wanted
        assert np.abs(error).max() < CONTROLLED_TOLERANCE * np.abs(wanted).max()
    assert result.status.value == "ok"


def test_force_fed_forward_leaves_the_elastic_deflection(strut: tl.Model) -> None:
    """The motor then carries the undeformed machine, so that its loop has little to correct."""
    motion = tl.plan_stroke(strut, end={"rail": "0.7 m"}, duration=0.2)
    largest = {}
    for feedforward in ("none", "speed", "force"):
        result = tl.simulate_elastic(
            strut,
            motion,
            duration=0.2,
            motor_state="servo",
            servo_gains=GAINS,
            feedforward=feedforward,
            link_modes=1,
        )
        largest[feedforward] = result.largest_following_error["motor"]
    assert largest["force"] < 0.02 * largest["speed"]
    # Without the speed of the reference the position loop lags by v / p, less what the integral corrects.
    assert largest["none"] > 10.0 * largest["speed"]


@pytest.mark.parametrize("sections", [True, False])
@pytest.mark.parametrize("controlled", [True, False])
def test_points_of_rods_have_the_mass_of_their_elements(
    *, sections: bool, controlled: bool
) -> None:
    model = tl.Model(hexapod(drives="8 N/um, inertia: 6 kg", sections=sections))
    laws = {item.name: cascade(50.0, 1e4, None) for item in model.mechanism.actuators}
    options = StructureOptions(modes=3, laws=laws if controlled else None)
    machine = machine_structure(model, np.atleast_2d(model.assembly.q), options)
    elements = {element.name: element for element in machine.structure.elements}
    assert len(machine.telescopes) >= 6
    for name, rod in machine.telescopes.items():
        mass = np.broadcast_to(
            elements[name].matrices.mass, (1, *elements[name].matrices.mass.shape[-2:])
        )
        own = np.einsum("p,npxi,npxj->nij", rod.masses, rod.shapes, rod.shapes)
        # Torsion and rotary inertia are left out.
        assert np.abs(own - mass).max() < QUADRATURE * np.abs(mass).max()


def test_accelerations_of_points_are_second_derivatives(strut: tl.Model) -> None:
    """Places of material points by the two ends alone, differentiated by differences."""
    machine = machine_structure(strut, np.atleast_2d(strut.assembly.q), StructureOptions(modes=1))
    rod = machine.telescopes["strut"]
    h, times = 1e-4, 1e-4 * np.arange(-2.0, 3.0)
    rng = np.random.default_rng(3)
    start = [np.array([point[0], *rng.normal(size=(2, 3))]) for point in rod.ends]

    def ends(time: float) -> list[np.ndarray]:
        return [p + v * time + 0.5 * a * time**2 for p, v, a in start]

    def places(time: float) -> np.ndarray:
        A, B = ends(time)
        u = (B - A) / np.linalg.norm(B - A)
        near = A + rod.lower.distances[:, None] * u
        return np.concatenate([near, B - rod.upper.distances[:, None] * u])

    weights = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / (12.0 * h**2)
    expected = np.tensordot(weights, [places(time) for time in times], axes=1)
    computed = rod.acceleration(
        tuple(item[1][None] for item in start),  # type: ignore[arg-type]
        tuple(item[2][None] for item in start),  # type: ignore[arg-type]
    )
    assert computed[0] == pytest.approx(expected, abs=1e-5)


def test_slow_hexapod_has_the_static_deflection() -> None:
    model = tl.Model(hexapod(drives="8 N/um", sections=True))
    motion = tl.plan_stroke(model, end={"x": "40 mm", "y": "20 mm"}, duration=10.0)
    result = tl.simulate_elastic(model, motion, duration=10.0, tolerance=0.02, damping=0.3)
    chosen = np.linspace(0, len(result.time) - 1, 6).astype(int)
    poses = motion.trajectory.at(result.time[chosen]).position
    static = tl.stiffness(model, poses)
    error = np.abs(result.deflection[chosen] - static.deflection).max(axis=0)
    assert np.all(error < STATIC_TOLERANCE * np.abs(static.deflection).max(axis=0))


def test_hexapod_after_a_stop_vibrates_as_vibration_states() -> None:
    """The largest peak of the spectrum after a motion is a natural frequency at its end."""
    model = tl.Model(hexapod(drives="8 N/um", sections=True))
    motion = tl.plan_stroke(model, end={"x": "40 mm", "y": "20 mm"}, duration=0.04)
    result = tl.simulate_elastic(model, motion, duration=0.54, tolerance=5e-3)
    end = motion.trajectory.at(np.array([0.04])).position
    vibration = tl.vibration(model, end, count=30)
    after = result.time >= 0.04
    step = result.time[1] - result.time[0]
    moved = (result.deflection[after, 0] - result.rest[0]) * np.hanning(after.sum())
    spectrum = np.abs(np.fft.rfft(moved, 8 * after.sum()))
    peak = np.argmax(spectrum) / (8 * after.sum() * step)
    distance = np.abs(vibration.frequency[0] / peak - 1.0)
    # A window of 0.5 s resolves 2 Hz.
    assert distance.min() < 0.01
    balance = np.abs(result.energy_error).max() / result.kinetic.max()
    assert balance < 0.01


def test_released_controlled_hexapod_moves_by_the_poles_of_vibration() -> None:
    """The deflection is a sum of exponentials of all poles, and of no others."""
    model = tl.Model(hexapod(drives="8 N/um, inertia: 6 kg", sections=True))
    control = {"motor_state": "servo", "servo_gains": "*.position=100,*.speed=300", "link_modes": 1}
    result = tl.simulate_elastic(
        model, release={"fx": 50.0, "mz": 5.0}, duration=0.3, tolerance=1e-4, **control
    )
    vibration = tl.vibration(model, count=40, **control)
    poles = vibration.servo.poles[0]
    moved = (result.deflection[::4] - result.rest)[:, [0, 5]]
    time = result.time[::4]

    def unexplained(values: np.ndarray) -> float:
        waves = np.exp(np.outer(time, values))
        basis = np.concatenate([waves.real, waves.imag], axis=1)
        rest = moved - basis @ np.linalg.lstsq(basis, moved, rcond=None)[0]
        return float(np.max(np.linalg.norm(rest, axis=0) / np.linalg.norm(moved, axis=0)))

    assert unexplained(poles) < 1e-3
    assert unexplained(1.1 * poles) > 10.0 * unexplained(poles)


def test_gains_need_controlled_motors(strut: tl.Model) -> None:
    with pytest.raises(tl.InputError, match="motors are locked, not controlled"):
        tl.simulate_elastic(strut, servo_gains=GAINS)
    with pytest.raises(tl.InputError, match="its gains are missing: position, speed"):
        tl.simulate_elastic(strut, motor_state="servo")
    with pytest.raises(tl.InputError, match="feedforward: has no effect on locked motors"):
        tl.simulate_elastic(strut, feedforward="force")
