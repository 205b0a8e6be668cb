"""Elastic machines in motion: against closed forms, static results, and a nonlinear four-bar."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from nonlinear_four_bar import NonlinearFourBar
from scipy.interpolate import CubicSpline, PPoly
from scipy.special import airy

import tauloop as tl
from tauloop.elasticity.machine.rigid_motion import RigidMotion, RigidRates, velocity_terms
from tauloop.integrate.linear import LinearTerms, integrate_linear
from tauloop.motion import SampledMotion

EXAMPLES = Path(__file__).parents[2] / "examples" / "elastic"
SLIDE = """
format: tauloop-machine/1
name: slide
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
damping: {ratio: RATIO}
bodies: {cart: {mass: 2 kg}}
joints: {rail: {type: prismatic, axis: x, parent: base, child: cart}}
actuators: {motor: {on: rail, force: 10 N, stiffness: 5 N/um}}
platform: {body: cart, independent: [rail]}
"""
STIFFNESS, MASS = 5e6, 2.0
CANTILEVER = """
format: tauloop-machine/1
name: cantilever
provenance: {status: chosen, source: test}
gravity: [0, 0, 0]
bodies:
  arm:
    beams:
      bar:
        from: [0, 0, 0]
        to: [0.5 m, 0, 0]
        z_axis: [0, 0, 1]
        rectangle: {width: 8 mm, height: 30 mm, material: steel}
joints: {hub: {type: revolute, axis: z, parent: base, child: arm}}
actuators: {motor: {on: hub, force: 50 N m}}
platform: {body: arm, tool: {at: [0.5 m, 0, 0]}, independent: [hub]}
"""
#: Error of the time steps that the options of these tests allow, relative to the largest change.
STEP_TOLERANCE = 2e-4
#: A reduced cantilever against the series of Euler-Bernoulli: a handful of modes between fixed ends.
SERIES_TOLERANCE = 2e-3
#: Frequencies of a free vibration, by Fourier's transform of a finite time.
FREQUENCY_TOLERANCE = 2e-3
#: A motion over 10 s against the static deflection: accelerations are 1.5e-3 of the weight.
STATIC_TOLERANCE = 5e-3
#: Linear equations against large deformation: deflections of 0.5 % of the machine, and squares of
#: rotation rates of 0.4 % of those of the lowest frequency. Both effects together are 1.8 %.
LINEAR_TOLERANCE = 0.025


@dataclass(frozen=True)
class Ramps:
    """Acceleration along one coordinate that rises, stays and falls linearly, then the reverse."""

    duration: float
    peak: float

    @property
    def corners(self) -> tuple[np.ndarray, np.ndarray]:
        """Times and accelerations between which the acceleration is linear."""
        steps = np.array([0.0, 1.0, 3.0, 5.0, 7.0, 8.0]) / 8.0 * self.duration
        return steps, self.peak * np.array([0.0, 1.0, 1.0, -1.0, -1.0, 0.0])

    def at(self, time: np.ndarray) -> SampledMotion:
        """Return position, speed and acceleration."""
        times, values = self.corners
        slopes = np.diff(values) / np.diff(times)
        curve = PPoly(np.array([slopes, values[:-1]]), times)
        clipped = np.clip(time, 0.0, self.duration)
        speed = curve.antiderivative(1)(clipped)
        place = curve.antiderivative(2)(clipped)
        rows = (values[:, None] for values in (place, speed, curve(clipped)))
        position, velocity, acceleration = rows
        return SampledMotion(
            time=time, position=position, velocity=velocity, acceleration=acceleration
        )


def damped_response(motion: Ramps, ratio: float, time: np.ndarray) -> np.ndarray:
    """Return ẍ + 2 ζ ω ẋ + ω² x = -a(t): each change of slope adds the response to a ramp."""
    omega = np.sqrt(STIFFNESS / MASS)
    damped = omega * np.sqrt(1.0 - ratio**2)
    times, values = motion.corners
    slopes = np.concatenate([[0.0], np.diff(values) / np.diff(times), [0.0]])
    total = np.zeros_like(time)
    for start, change in zip(times, np.diff(slopes), strict=True):
        t = np.maximum(time - start, 0.0)
        decay = np.exp(-ratio * omega * t)
        swing = 2.0 * ratio * np.cos(damped * t)
        swing += (2.0 * ratio**2 - 1.0) * omega / damped * np.sin(damped * t)
        ramp = t - 2.0 * ratio / omega + decay * swing / omega
        total -= change / omega**2 * ramp
    return total


def test_mass_on_spring_under_ramps_of_acceleration() -> None:
    machine = tl.Model(tl.loads(SLIDE.replace("RATIO", "0.05")))
    motion = Ramps(duration=0.05, peak=8.0)
    result = tl.simulate_elastic(machine, motion, duration=0.08, tolerance=STEP_TOLERANCE)
    exact = damped_response(motion, 0.05, result.time)
    error = np.abs(result.deflection[:, 0] - exact).max() / np.ptp(exact)
    assert result.status.value == "ok"
    assert error < 1.5 * STEP_TOLERANCE
    expected = STIFFNESS * np.abs(exact).max()
    assert np.abs(result.drive_force).max() == pytest.approx(expected, rel=1e-3)
    # The drive pushes the mass along with the acceleration.
    during = result.drive_force[np.searchsorted(result.time, 0.0125), 0]
    assert during == pytest.approx(MASS * 8.0, rel=0.2)


def test_settling_time_is_that_of_the_last_crossing() -> None:
    machine = tl.loads(SLIDE.replace("RATIO", "0.02"))
    result = tl.simulate_elastic(
        machine, release={"fx": 10.0}, settling_band="0.2 um", duration=0.2, tolerance=1e-4
    )
    outside = np.abs(result.deflection[:, 0]) > 0.2e-6
    assert result.settling_time == pytest.approx(result.time[np.flatnonzero(outside)[-1] + 1])
    envelope = np.log(10.0) / (0.02 * np.sqrt(STIFFNESS / MASS))
    half_period = np.pi / np.sqrt(STIFFNESS / MASS)
    assert envelope - half_period < result.settling_time <= envelope
    assert result.settling(1e-5) == 0.0
    assert tl.simulate_elastic(machine, release={"fx": 10.0}, duration=0.01).settling(1e-9) is None


def test_energy_is_stored_and_dissipated() -> None:
    machine = tl.loads(SLIDE.replace("RATIO", "0.05"))
    result = tl.simulate_elastic(machine, release={"fx": 10.0}, duration=0.1)
    stored = 0.5 * 10.0**2 / STIFFNESS
    assert result.elastic[0] == pytest.approx(stored)
    assert result.loss[-1] == pytest.approx(stored, rel=2e-3)
    speed = CubicSpline(result.time, result.deflection[:, 0])(result.time, 1)
    kinetic = 0.5 * MASS * speed**2
    assert result.kinetic == pytest.approx(kinetic, abs=1e-3 * kinetic.max())


def test_cantilever_released_from_a_static_load() -> None:
    force = 10.0
    result = tl.simulate_elastic(
        tl.loads(CANTILEVER), release={"fy": force}, duration=0.05, tolerance=1e-3
    )
    E, rho, length = 210e9, 7850.0, 0.5
    EI, line = E * 0.03 * 0.008**3 / 12.0, rho * 0.03 * 0.008
    roots = np.array([1.875104068711961, 4.694091132974175, 7.854757438237613, 10.99554073487547])
    # The characteristic equation cos x cosh x = -1 is cos x = 0 to 1e-6 from here on.
    roots = np.concatenate([roots, np.pi * (np.arange(5, 12) - 0.5)])
    omega = (roots / length) ** 2 * np.sqrt(EI / line)
    # At its tip each mode of unit mass has the squared amplitude 4 / (ρ A L).
    amplitude = force * 4.0 / (line * length) / omega**2
    exact = amplitude @ np.cos(omega[:, None] * result.time)
    assert result.deflection[0, 1] == pytest.approx(force * length**3 / (3.0 * EI), rel=1e-9)
    difference = np.abs(result.deflection[:, 1] - exact).max()
    assert difference < SERIES_TOLERANCE * np.abs(exact).max()
    assert "no damping is stated, so that vibrations do not decay" in result.notes


def gantry_motion(machine: tl.Model, duration: float) -> object:
    """Return a motion in all directions of the example."""
    return tl.plan_stroke(
        machine, end={"x": "200 mm", "y": "60 mm", "z": "-80 mm"}, duration=duration
    )


@pytest.mark.parametrize("wrench", [None, {"fx": 100.0}, {"fx": 1e-9}])
def test_equilibrium_without_motion_is_reliable(wrench: dict[str, float] | None) -> None:
    """Rounding errors of the energy are no error of its balance, and nothing vibrates."""
    machine = tl.load(str(Path(__file__).parents[2] / "examples" / "elastic" / "gantry_tau.yaml"))
    result = tl.simulate_elastic(machine, wrench=wrench, duration=0.2, damping=0.02)
    assert result.status.value == "ok", result.advice
    assert np.abs(result.deflection - result.deflection[0]).max() < 1e-12


def test_slow_motion_has_the_static_deflection() -> None:
    machine = tl.Model(EXAMPLES / "gantry_tau.yaml")
    motion = gantry_motion(machine, 10.0)
    result = tl.simulate_elastic(machine, motion, duration=10.0, tolerance=0.01, damping=0.05)
    chosen = np.linspace(0, len(result.time) - 1, 7).astype(int)
    poses = motion.trajectory.at(result.time[chosen]).position
    static = tl.stiffness(machine, poses)
    for own, expected in (
        (result.deflection[chosen], static.deflection),
        (result.axial[chosen], static.axial),
    ):
        assert np.abs(own - expected).max() < STATIC_TOLERANCE * np.abs(expected).max()
    assert result.tool[chosen] == pytest.approx(static.tool, abs=1e-6)


def test_vibration_after_a_stop_has_the_natural_frequencies() -> None:
    machine = tl.Model(EXAMPLES / "gantry_tau.yaml")
    motion = gantry_motion(machine, 0.06)
    result = tl.simulate_elastic(machine, motion, duration=0.56, tolerance=5e-3)
    end = motion.trajectory.at(np.array([0.06])).position
    frequencies = tl.vibration(machine, end, count=40).frequency[0]
    after = result.time >= 0.06
    step = result.time[1] - result.time[0]
    moved = result.deflection[after, 2] - result.rest[2]
    spectrum = np.abs(np.fft.rfft(moved * np.hanning(after.sum()), 8 * after.sum()))
    peak = np.argmax(spectrum) / (8 * after.sum() * step)
    nearest = frequencies[np.argmin(np.abs(frequencies - peak))]
    assert peak == pytest.approx(nearest, rel=FREQUENCY_TOLERANCE)
    assert result.residual_vibration == pytest.approx(result.deviation[after].max())


def closed_four_bar() -> np.ndarray:
    """Return crank root, crank tip, rocker tip and rocker root of the example (4, 2)."""
    angle = np.radians(60.0)
    tip, ground = 0.3 * np.array([np.cos(angle), np.sin(angle)]), np.array([0.7, 0.0])
    across = ground - tip
    distance = np.hypot(*across)
    along = (0.8**2 - 0.6**2 + distance**2) / (2.0 * distance)
    direction = across / distance
    normal = np.array([-direction[1], direction[0]])
    end = tip + along * direction + np.sqrt(0.8**2 - along**2) * normal
    return np.array([[0.0, 0.0], tip, end, ground])


def test_four_bar_in_large_motion_against_nonlinear_beams() -> None:
    height, duration = 0.02, 0.12
    text = (EXAMPLES / "four_bar.yaml").read_text(encoding="utf-8")
    machine = tl.Model(tl.loads(text.replace("thickness: 8 mm", "thickness: 20 mm")))
    motion = tl.plan_stroke(machine, end={"crank_pin": "150 deg"}, duration=duration)
    own = NonlinearFourBar(
        closed_four_bar(),
        (3, 8, 6),
        (210e9 * 0.03 * height, 210e9 * 0.03 * height**3 / 12.0),
        7850.0 * 0.03 * height,
        9.81,
    )

    def angle(time: np.ndarray) -> np.ndarray:
        return np.asarray(motion.trajectory.at(time).position[:, 0])

    time, pose = own.moved(angle, 0.16, 8e-6, 125)
    # The tool is on a rigid arm of 0.4 m from the coupler's end at the crank.
    arm = 0.4 * np.stack([np.cos(pose[:, 2]), np.sin(pose[:, 2])], axis=1)
    result = tl.simulate_elastic(machine, motion, duration=0.16)
    tool, deflection = (
        np.array([np.interp(time, result.time, values[:, i]) for i in range(2)]).T
        for values in (result.tool, result.deflection)
    )
    expected = pose[:, :2] + arm - tool
    assert np.abs(deflection - expected).max() < LINEAR_TOLERANCE * np.abs(expected).max()
    assert result.status.value == "ok"


def test_accelerations_of_bodies_are_second_derivatives() -> None:
    machine = tl.Model(EXAMPLES / "four_bar.yaml")
    motion = tl.plan_stroke(machine, end={"crank_pin": "150 deg"}, duration=0.5).trajectory
    rigid = RigidMotion(machine.mechanism, machine.topology)
    h = 1e-3
    time = 0.2 + h * np.arange(-2.0, 3.0)
    state = machine.platform.kinematics(*motion.at(time).states)
    rates = rigid.at(state.q, state.v, state.a)
    weights = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / (12.0 * h**2)
    for body in ("coupler", "rocker"):
        point = rates.origin[body]
        assert weights @ point == pytest.approx(rates.acceleration[body][2], abs=1e-5)


def test_velocity_terms_are_those_of_particles() -> None:
    rng = np.random.default_rng(1)
    masses, places = rng.uniform(0.1, 1.0, 6), rng.normal(size=(6, 3))
    omega, turning = rng.normal(size=3), rng.normal(size=3)
    inertia = np.zeros((1, 6, 6))
    force = np.zeros(6)
    for m, c in zip(masses, places, strict=True):
        cross = np.cross(np.eye(3), c).T
        # δr = u + θ × c
        jacobian = np.hstack([np.eye(3), cross])
        inertia[0] += m * jacobian.T @ jacobian
        force += jacobian.T @ (2.0 * m * np.cross(turning, np.cross(omega, c)))
    zero = np.zeros((1, 3))
    rates = RigidRates(
        origin={"b": zero},
        angular_velocity={"b": omega[None]},
        angular_acceleration={"b": zero},
        velocity={"b": zero},
        acceleration={"b": zero},
        coordinate_acceleration={},
        coordinate_velocity={},
    )

    class Machine:
        carried_by = {"b": "b"}  # noqa: RUF012

    matrix = velocity_terms(Machine(), rates, "b", inertia)[0]  # type: ignore[arg-type]
    assert matrix @ np.concatenate([np.zeros(3), turning]) == pytest.approx(force)


def test_integration_is_of_second_order_and_damps_what_it_does_not_resolve() -> None:
    def terms(time: np.ndarray) -> LinearTerms:
        """Return x'' + (1 + t) x = 0 with mass (1 + t)^2, and a direction without mass."""
        mass, stiffness = np.zeros((2, len(time), 2, 2))
        mass[:, 0, 0] = (1.0 + time) ** 2
        stiffness[:, 0, 0] = (1.0 + time) ** 3
        stiffness[:, 1, 1] = 1e8
        force = np.stack([np.zeros_like(time), 1e8 * np.cos(time)], axis=1)
        return LinearTerms(mass=mass, damping=np.zeros_like(mass), stiffness=stiffness, force=force)

    ai, ai_rate, bi, bi_rate = airy(-1.0)
    factors = np.linalg.solve([[ai, bi], [-ai_rate, -bi_rate]], [1.0, 0.0])
    errors = []
    for steps in (100, 200):
        time = np.linspace(0.0, 5.0, steps + 1)
        motion = integrate_linear(terms, time, np.array([1.0, 1.5]), np.zeros(2))
        values = airy(-1.0 - time)
        exact = factors[0] * values[0] + factors[1] * values[2]
        errors.append(np.abs(motion.position[:, 0] - exact).max())
        assert motion.position[-1, 1] == pytest.approx(np.cos(5.0), rel=1e-3)
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)
    assert errors[1] < 5e-3


def test_refusals() -> None:
    with pytest.raises(tl.InputError, match="the machine is rigid"):
        tl.simulate_elastic("delta")
    machine = tl.loads(SLIDE.replace("RATIO", "0.05"))
    with pytest.raises(tl.InputError, match="a float is not a motion"):
        tl.simulate_elastic(machine, 3.0)
    with pytest.raises(tl.InputError, match="in addition to a motion"):
        tl.simulate_elastic(machine, Ramps(duration=0.1, peak=1.0), pose={"rail": "10 mm"})


def test_large_deflections_are_doubtful() -> None:
    machine = tl.loads(SLIDE.replace("RATIO", "0.05"))
    result = tl.simulate_elastic(machine, release={"fx": 5e5})
    assert result.status.value == "doubtful"
