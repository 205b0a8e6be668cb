"""Motor torques of a five-bar and a Delta from closed forms in NumPy, independent of Tauloop, and logs of them.

A log is what instruments would have recorded of a motion: encoder steps, torque noise, and effects
that no model of the machine has, such as an elastic transmission. Parameters identified from it are
compared with the true ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tauloop import Model, load
from tauloop.formats import loads
from tauloop.logs.log import Channel, Signals
from tauloop.mechanism.model import Mechanism

GRAVITY = 9.81
#: Encoder steps, rad: of 19 and of 16 bits.
FINE_STEP, COARSE_STEP = 2.0 * np.pi / 2**19, 2.0 * np.pi / 2**16

Motion = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Multisine:
    """Sums of sines, one set of frequencies for all motors: positions, velocities and accelerations at any time.

    Attributes:
        center: (n,) rad.
        amplitudes, phases: (n, terms).
        frequencies: (terms,) Hz.
    """

    center: np.ndarray
    amplitudes: np.ndarray
    phases: np.ndarray
    frequencies: np.ndarray

    @classmethod
    def random(cls, center: np.ndarray, stroke: float, highest: float, seed: int) -> Multisine:
        """Return one with strokes of at most `stroke` about the center and equal accelerations of all terms."""
        rng = np.random.default_rng(seed)
        frequencies = highest * np.array([0.09, 0.22, 0.41, 0.59, 0.82, 1.0])
        amplitudes = rng.normal(size=(len(center), len(frequencies))) / frequencies
        amplitudes *= stroke / np.abs(amplitudes).sum(axis=1, keepdims=True)
        phases = rng.uniform(0.0, 2.0 * np.pi, amplitudes.shape)
        return cls(center=center, amplitudes=amplitudes, phases=phases, frequencies=frequencies)

    def at(self, time: np.ndarray) -> Motion:
        """Return positions, velocities and accelerations (N, n)."""
        omega = 2.0 * np.pi * self.frequencies
        angle = time[:, None, None] * omega + self.phases
        position = self.center + (self.amplitudes * np.sin(angle)).sum(axis=2)
        velocity = (self.amplitudes * omega * np.cos(angle)).sum(axis=2)
        acceleration = (-self.amplitudes * omega**2 * np.sin(angle)).sum(axis=2)
        return position, velocity, acceleration


@dataclass(frozen=True, kw_only=True)
class Jolted:
    """A multisine whose accelerations jump at every reversal, as those of a controlled motor with dry friction do.

    A controller reduces the jump: a response (t - s)^2 exp(-(t - s) / fading) / 2 is added from every
    reversal s on.

    Attributes:
        smooth: the multisine.
        jump: of the accelerations, rad/s^2, in the direction of the new motion.
        fading: s.
    """

    smooth: Multisine
    jump: float
    fading: float = 0.03

    def at(self, time: np.ndarray) -> Motion:
        """Return positions, velocities and accelerations (N, n)."""
        motion = self.smooth.at(time)
        for motor, reversals in enumerate(self.reversals(time[0] - 10.0 * self.fading, time[-1])):
            for moment, direction in reversals:
                since = time - moment
                fades = (
                    self.jump * direction * np.exp(-since.clip(0.0) / self.fading) * (since > 0.0)
                )
                x = since / self.fading
                motion[0][:, motor] += 0.5 * since**2 * fades
                motion[1][:, motor] += since * (1.0 - 0.5 * x) * fades
                motion[2][:, motor] += (1.0 - 2.0 * x + 0.5 * x**2) * fades
        return motion

    def reversals(self, start: float, stop: float) -> list[list[tuple[float, float]]]:
        """Return time and new direction of every reversal of every motor."""
        times = np.arange(start, stop, 1e-4)
        velocity = self.smooth.at(times)[1]
        found = []
        for column in velocity.T:
            places = np.flatnonzero(np.sign(column[1:]) != np.sign(column[:-1]))
            between = column[places] / (column[places] - column[places + 1])
            moments = times[places] + 1e-4 * between
            found.append(
                list(zip(moments.tolist(), np.sign(column[places + 1]).tolist(), strict=True))
            )
        return found


@dataclass(frozen=True, kw_only=True)
class Truth:
    """A machine whose torques are known.

    Attributes:
        name: of the machine.
        mechanism: its description, with the true values.
        motors: names of the actuators.
        motion: the motion of its motors.
        forces: torques (N, n) of the motors along a motion.
        smooth: the same without dry friction, which does not deform the transmission.
        coulomb: dry friction (n,) of the motors.
        noise: of the torques, as a share of each motor's root mean square torque.
        parameters: "file" or "standard", of the identification.
    """

    name: str
    mechanism: Mechanism
    motors: tuple[str, ...]
    motion: Multisine | Jolted
    smooth: Callable[[Motion], np.ndarray]
    coulomb: np.ndarray
    noise: float
    parameters: str

    def parameter_values(self, names: Sequence[str], model: Model) -> np.ndarray:
        """Return the true values of the unknowns of an identification."""
        if self.parameters == "standard":
            return np.asarray(model.pi)
        return np.array([self.mechanism.parameters[name].value for name in names])

    def forces(self, motion: Motion) -> np.ndarray:
        """Return torques (N, n) along a motion."""
        return self.smooth(motion) + self.coulomb * np.sign(motion[1])


def log_of(
    truth: Truth,
    rng: np.random.Generator,
    *,
    rate: float = 500.0,
    seconds: float = 20.0,
    step: float = FINE_STEP,
    noise: float | None = None,
    late: float = 0.0,
    bending: float | None = None,
) -> Signals:
    """Return a log of a truth.

    Args:
        truth: the machine and its motion.
        rng: for the noise.
        rate: samples per second.
        seconds: length.
        step: of the encoders, rad; none where zero.
        noise: of the torques, as a share of their root mean square; the truth's own without it.
        late: delay of the torques after the motion, s.
        bending: frequency, Hz, at which a load would oscillate on its transmission with its motor
            and the other loads fixed. The motion is that of the loads. Encoders and dry friction are
            at the motors, which lead by the load's torque divided by the stiffness.
    """
    time = np.arange(round(rate * seconds)) / rate
    position = truth.motion.at(time)[0]
    forces = truth.forces(truth.motion.at(time - late))
    if bending is not None:
        stiffness = stiffness_of(truth, bending)
        position = position + truth.smooth(truth.motion.at(time)) / stiffness
        forces = truth.smooth(truth.motion.at(time - late))
        forces = forces + truth.coulomb * np.sign(motor_velocity(truth, time - late, stiffness))
    share = truth.noise if noise is None else noise
    forces = forces + share * np.sqrt(np.mean(forces**2, axis=0)) * rng.standard_normal(
        forces.shape
    )
    if step:
        # the phase of an encoder's steps is random
        zero = step * rng.uniform(size=position.shape[1])
        position = step * np.round((position - zero) / step) + zero
    channels = [
        Channel(quantity=quantity, channel=name, values=np.ascontiguousarray(column), unit=unit)
        for quantity, unit, values in (("position", "rad", position), ("force", "N m", forces))
        for name, column in zip(truth.motors, values.T, strict=True)
    ]
    return Signals(time=time, channels=tuple(channels))


def stiffness_of(truth: Truth, bending: float) -> np.ndarray:
    """Return the stiffness (n,), N m/rad, at which loads at the motion's center oscillate at `bending`, Hz."""
    multisine = truth.motion if isinstance(truth.motion, Multisine) else truth.motion.smooth
    count = len(truth.motors)
    center = np.repeat(multisine.center[None], count, axis=0)
    still = np.zeros((count, count))
    inertias = np.diag(
        truth.smooth((center, still, np.eye(count))) - truth.smooth((center, still, still))
    )
    return np.asarray(inertias * (2.0 * np.pi * bending) ** 2)


def motor_velocity(
    truth: Truth, time: np.ndarray, stiffness: np.ndarray, h: float = 1e-3
) -> np.ndarray:
    """Return velocities (N, n) of motors whose transmissions bend, by differences of the exact torques."""
    before, after = (truth.smooth(truth.motion.at(time + shift)) for shift in (-h, h))
    return np.asarray(truth.motion.at(time)[1] + (after - before) / (2.0 * h * stiffness))


# ----------------------------------------------------------------------------------------------------------
# five-bar

#: Its description, with the true values.
FIVE_BAR = Path(__file__).with_name("closed_form_five_bar.xml")
BASE, CRANK, LINK = 0.09, 0.25, 0.36
#: Angles of the two cranks at zero motor angle.
ZERO = np.array([2.22993974951153, 0.675497024133312])
#: Mass, mass center along and across the body, inertia about it: cranks, then links, of both sides.
CRANKS = ((0.9, 0.11, 0.006, 0.0058), (0.85, 0.12, -0.005, 0.0055))
LINKS = ((0.55, 0.17, -0.004, 0.0070), (0.8, 0.19, 0.003, 0.0088))
ROTOR, VISCOUS, ELBOW = 0.004, np.array([0.05, 0.06]), 0.004


def _along(angle: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def _across(angle: np.ndarray) -> np.ndarray:
    return np.stack([-np.sin(angle), np.cos(angle)], axis=-1)


def five_bar_forces(motion: Motion) -> np.ndarray:
    """Return torques (N, 2) of a planar five-bar without dry friction: virtual work of every body."""
    q, v, a = motion
    crank = q + ZERO
    pivots = np.array([[-BASE, 0.0], [BASE, 0.0]])
    elbows = pivots + CRANK * _along(crank)
    between = elbows[:, 1] - elbows[:, 0]
    distance = np.linalg.norm(between, axis=1, keepdims=True)
    normal = np.stack([-between[:, 1], between[:, 0]], axis=1) / distance
    tip = 0.5 * (elbows[:, 0] + elbows[:, 1]) + normal * np.sqrt(LINK**2 - 0.25 * distance**2)
    reach = tip[:, None] - elbows
    link = np.arctan2(reach[..., 1], reach[..., 0])
    # the loop: CRANK across(crank_a) v_a + LINK across(link_a) w_a is the same of side b
    across = _across(link)
    left = LINK * np.stack([across[:, 0], -across[:, 1]], axis=-1)
    right = CRANK * np.stack([-_across(crank[:, 0]), _across(crank[:, 1])], axis=-1)
    jacobian = np.linalg.solve(left, right)  # (N, links, motors)
    link_v = np.einsum("nij,nj->ni", jacobian, v)
    pull = CRANK * _along(crank) * v[..., None] ** 2 + LINK * _along(link) * link_v[..., None] ** 2
    bias = np.einsum("nij,nj->ni", right, a) + pull[:, 0] - pull[:, 1]
    link_a = np.linalg.solve(left, bias[..., None])[..., 0]
    forces = ROTOR * a + VISCOUS * v
    for side in (0, 1):
        unit = np.zeros_like(v)
        unit[:, side] = 1.0
        elbow_jacobian = CRANK * _across(crank[:, side])[:, :, None] * unit[:, None, :]
        elbow_a = CRANK * (
            _across(crank[:, side]) * a[:, [side]] - _along(crank[:, side]) * v[:, [side]] ** 2
        )
        still = np.zeros((len(q), 2, 2)), np.zeros((len(q), 2))
        parts = (
            (CRANKS[side], crank[:, side], v[:, side], a[:, side], unit, *still),
            (
                LINKS[side],
                link[:, side],
                link_v[:, side],
                link_a[:, side],
                jacobian[:, side],
                elbow_jacobian,
                elbow_a,
            ),
        )
        for body, angle, speed, rate, turning, moving, origin_a in parts:
            forces += _body_torques(body, angle, speed, rate, turning, moving, origin_a)
        relative = link_v[:, side] - v[:, side]
        forces += ELBOW * relative[:, None] * (jacobian[:, side] - unit)
    return forces


def _body_torques(
    body: tuple[float, float, float, float],
    angle: np.ndarray,
    speed: np.ndarray,
    rate: np.ndarray,
    turning: np.ndarray,
    moving: np.ndarray,
    origin_a: np.ndarray,
) -> np.ndarray:
    """Return what the inertia and weight of a planar body take of the motors (N, 2).

    Args:
        body: mass, mass center along and across, inertia about it.
        angle, speed, rate: of the body (N,).
        turning, moving: Jacobians of its angle (N, 2) and of its origin (N, 2, 2) by the motors'
            angles.
        origin_a: acceleration (N, 2) of its origin.
    """
    mass, along, across, inertia = body
    center = along * _along(angle) + across * _across(angle)
    # derivative of the center by the angle
    turned = along * _across(angle) - across * _along(angle)
    center_a = origin_a + turned * rate[:, None] - center * speed[:, None] ** 2
    center_jacobian = moving + turned[:, :, None] * turning[:, None, :]
    pull = mass * (center_a + np.array([0.0, GRAVITY]))
    return np.einsum("nij,ni->nj", center_jacobian, pull) + inertia * rate[:, None] * turning


def five_bar() -> Truth:
    """Return the five-bar with its motion up to 2.2 Hz."""
    return Truth(
        name="five-bar",
        mechanism=load(FIVE_BAR),
        motors=("ma", "mb"),
        motion=Multisine.random(np.zeros(2), 0.55, 2.2, seed=1),
        smooth=five_bar_forces,
        coulomb=np.array([0.25, 0.30]),
        noise=0.02,
        parameters="standard",
    )


# -------------------------------------------------------------------------------------------------------------
# Delta

DELTA = """
format: tauloop-machine/1
name: delta_by_hand
provenance: {status: chosen, source: closed_form.py}
gravity: [0, 0, -9.81 m/s^2]
parameters:
  motor_radius: 0.2 m
  plate_radius: 0.05 m
  arm_length: 0.24 m
  forearm_length: 0.52 m
  plate_mass: 0.62 kg
  arm_moment: 0.07 kg m
  arm_inertia: 0.013 kg m^2
  forearm_mass: 0.16 kg
  viscous: 0.08 N m s/rad
  coulomb: 0.3 N m
bodies:
  plate: {mass: plate_mass}
legs:
  - name: leg
    repeat: 3
    each:
      phi: [0 deg, 120 deg, 240 deg]
    frames:
      sector: {on: base, turn: [{z: phi}]}
      plate_sector: {on: plate, turn: [{z: phi}]}
    bodies:
      arm:
        mass: 0.9 kg
        first_moment: [arm_moment, 0, 0]
        inertia: {xx: 4e-4 kg m^2, yy: arm_inertia, zz: arm_inertia}
        about: origin
    joints:
      shoulder:
        type: revolute
        axis: y
        parent: {on: sector, at: [motor_radius, 0, 0]}
        child: arm
        reference: 30 deg
        friction: {viscous: viscous, coulomb: coulomb}
        limits: {drawing: [-60 deg, 110 deg]}
    rods:
      forearm:
        from: {on: arm, at: [arm_length, 0, 0]}
        to: {on: plate_sector, at: [plate_radius, 0, 0]}
        length: forearm_length
        model: slender
        link: {mass: forearm_mass, center: forearm_length / 2, inertia: forearm_mass * forearm_length^2 / 12}
    actuators:
      motor: {on: shoulder}
platform:
  body: plate
  motion: translational
  independent: [x, y, z]
  reference: {at: [0, 0, -0.5 m]}
"""
MOTOR_RADIUS, PLATE_RADIUS, ARM, FOREARM = 0.2, 0.05, 0.24, 0.52
PLATE_MASS, ARM_MOMENT, ARM_INERTIA, FOREARM_MASS = 0.62, 0.07, 0.013, 0.16
DELTA_VISCOUS, DELTA_COULOMB = 0.08, 0.3


def delta_forces(motion: Motion) -> np.ndarray:
    """Return torques (N, 3) of a Delta without dry friction.

    A forearm is a uniform bar: with the accelerations a and b of its ends, the forces on them are m
    (2 a + b) / 6 and m (a + 2 b) / 6, and half its weight each. The plate's forces reach the motors
    by its Jacobian.
    """
    q, v, a = motion
    sectors = np.deg2rad([0.0, 120.0, 240.0])
    outward = np.stack([np.cos(sectors), np.sin(sectors), np.zeros(3)], axis=1)
    up = np.array([0.0, 0.0, 1.0])
    cos, sin = np.cos(q)[..., None], np.sin(q)[..., None]
    along = cos * outward - sin * up  # (N, 3 arms, 3): a positive angle lowers the arm
    turned = -sin * outward - cos * up
    elbow_jacobian = ARM * turned
    elbow_v = elbow_jacobian * v[..., None]
    elbow_a = elbow_jacobian * a[..., None] - ARM * along * v[..., None] ** 2
    centers = (MOTOR_RADIUS - PLATE_RADIUS) * outward + ARM * along
    plate = _below(centers)
    rods = plate[:, None] - centers
    # the loop: rods . (plate_v - elbow_v) = 0
    jacobian = np.linalg.solve(
        rods, np.einsum("nij,nij->ni", rods, elbow_jacobian)[:, :, None] * np.eye(3)
    )
    plate_v = np.einsum("nij,nj->ni", jacobian, v)
    relative = plate_v[:, None] - elbow_v
    bias = np.einsum("nij,nij->ni", rods, elbow_a) - np.einsum("nij,nij->ni", relative, relative)
    plate_a = np.linalg.solve(rods, bias[..., None])[..., 0]
    weight = GRAVITY * up
    elbow_pull = FOREARM_MASS * ((2.0 * elbow_a + plate_a[:, None]) / 6.0 + 0.5 * weight)
    plate_pull = FOREARM_MASS * ((elbow_a + 2.0 * plate_a[:, None]) / 6.0 + 0.5 * weight).sum(
        axis=1
    )
    plate_pull += PLATE_MASS * (plate_a + weight)
    arm = ARM_INERTIA * a + ARM_MOMENT * GRAVITY * turned[..., 2] + DELTA_VISCOUS * v
    arm += np.einsum("nij,nij->ni", elbow_jacobian, elbow_pull)
    return arm + np.einsum("nij,ni->nj", jacobian, plate_pull)


def _below(centers: np.ndarray) -> np.ndarray:
    """Return the lower point (N, 3) at the forearms' length from three centers (N, 3, 3): trilateration."""
    first = centers[:, 0]
    one, two = centers[:, 1] - first, centers[:, 2] - first
    normal = np.cross(one, two)
    area = np.sum(normal**2, axis=1, keepdims=True)
    squares = np.sum(one**2, axis=1, keepdims=True), np.sum(two**2, axis=1, keepdims=True)
    middle = np.cross(squares[0] * two - squares[1] * one, normal) / (2.0 * area)
    height = np.sqrt(FOREARM**2 - np.sum(middle**2, axis=1, keepdims=True))
    return first + middle - normal / np.sqrt(area) * np.sign(normal[:, [2]]) * height


def delta() -> Truth:
    """Return the Delta with its motion up to 2.6 Hz."""
    return Truth(
        name="Delta",
        mechanism=loads(DELTA),
        motors=("leg1.motor", "leg2.motor", "leg3.motor"),
        motion=Multisine.random(np.full(3, 0.5), 0.5, 2.6, seed=2),
        smooth=delta_forces,
        coulomb=np.full(3, DELTA_COULOMB),
        noise=0.006,
        parameters="file",
    )
