"""Logs of the shipped 3-RRR table and hexapod from closed formulae: chosen plate motion, virtual work.

Lengths and angles of the legs follow from the plate's motion. Velocities, accelerations and
Jacobians are finite differences of these formulae; nothing comes from Tauloop's equations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tauloop.logs import Signals
from tauloop.logs.log import Channel

GRAVITY = np.array([0.0, 0.0, -9.81])
#: Steps of the finite differences, s, and m or rad, and their weights at -3 to 3 steps.
TIME_STEP, POSE_STEP = 2e-3, 1e-3
FIRST = np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0]) / 60.0
SECOND = np.array([2.0, -27.0, 270.0, -490.0, 270.0, -27.0, 2.0]) / 180.0

#: Mass, inertia (3, 3) about the mass center, mass center (N, 3) and orientation (N, 3, 3).
Body = tuple[float, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Plate:
    """A machine whose legs follow from the pose of its plate.

    Attributes:
        legs: positions (N, n) of the motors and all bodies, for poses (N, d).
        motors, unit: names of the motors, and the unit of their positions.
        center, stroke: (d,) of the motion of the plate.
        rotor, viscous, coulomb: of every motor.
    """

    legs: Callable[[np.ndarray], tuple[np.ndarray, list[Body]]]
    motors: tuple[str, ...]
    unit: str
    center: np.ndarray
    stroke: np.ndarray
    rotor: float = 0.0
    viscous: float = 0.0
    coulomb: float = 0.0

    def poses(self, time: np.ndarray, seed: int, highest: float = 2.0) -> np.ndarray:
        """Return a multisine (N, d) within the stroke."""
        rng = np.random.default_rng(seed)
        frequencies = highest * np.array([0.09, 0.22, 0.41, 0.59, 0.82, 1.0])
        sizes = rng.normal(size=(len(self.center), len(frequencies))) / frequencies
        sizes *= (self.stroke / np.abs(sizes).sum(axis=1))[:, None]
        phases = rng.uniform(0.0, 2.0 * np.pi, sizes.shape)
        angle = 2.0 * np.pi * frequencies * time[:, None, None] + phases
        return np.asarray(self.center + (sizes * np.sin(angle)).sum(axis=2))

    def motion(self, time: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return positions (N, n) and forces (N, n) of the motors."""
        nearby = [self.legs(self.poses(time + k * TIME_STEP, seed)) for k in range(-3, 4)]
        positions = np.stack([q for q, _ in nearby])
        position = positions[3]
        velocity = np.tensordot(FIRST, positions, 1) / TIME_STEP
        acceleration = np.tensordot(SECOND, positions, 1) / TIME_STEP**2
        x = self.poses(time, seed)
        jacobian = np.zeros((*position.shape, x.shape[1]))
        generalized = np.zeros(x.shape)
        moments = [
            _momentum_rates([bodies[k] for _, bodies in nearby]) for k in range(len(nearby[0][1]))
        ]
        for axis in range(x.shape[1]):
            moved = [self.legs(x + k * POSE_STEP * np.eye(x.shape[1])[axis]) for k in range(-3, 4)]
            jacobian[:, :, axis] = np.tensordot(FIRST, np.stack([q for q, _ in moved]), 1)
            for k, (force, moment) in enumerate(moments):
                centers = np.stack([bodies[k][2] for _, bodies in moved])
                turns = np.stack([bodies[k][3] for _, bodies in moved])
                shift = np.tensordot(FIRST, centers, 1) / POSE_STEP
                turn = _axial(np.tensordot(FIRST, turns, 1) @ turns[3].swapaxes(1, 2)) / POSE_STEP
                generalized[:, axis] += np.sum(force * shift + moment * turn, axis=1)
        jacobian /= POSE_STEP
        forces = np.linalg.solve(jacobian.swapaxes(1, 2), generalized[..., None])[..., 0]
        forces += self.rotor * acceleration + self.viscous * velocity
        return position, forces + self.coulomb * np.sign(velocity)

    def log(
        self,
        seed: int,
        *,
        rate: float = 250.0,
        seconds: float = 12.0,
        noise: float = 0.02,
        step: float = 0.0,
    ) -> Signals:
        """Return a log.

        Args:
            seed: of motion and noise.
            rate, seconds: Hz, s.
            noise: of the forces, as a fraction of their RMS.
            step: encoder step; 0 for none.
        """
        time = np.arange(round(rate * seconds)) / rate
        position, forces = self.motion(time, seed + 100)
        rng = np.random.default_rng(seed)
        rms = np.sqrt(np.mean(forces**2, axis=0))
        forces = forces + noise * rms * rng.standard_normal(forces.shape)
        if step:
            position = step * np.round(position / step)
        return self.signals(time, position, forces)

    def signals(self, time: np.ndarray, position: np.ndarray, forces: np.ndarray) -> Signals:
        """Return positions and forces (N, n) as a log."""
        force_unit = "N" if self.unit == "m" else "N m"
        channels = [
            Channel(quantity=quantity, channel=name, values=column.copy(), unit=unit)
            for quantity, unit, values in (
                ("position", self.unit, position),
                ("force", force_unit, forces),
            )
            for name, column in zip(self.motors, values.T, strict=True)
        ]
        return Signals(time=time, channels=tuple(channels))


def _momentum_rates(bodies: list[Body]) -> tuple[np.ndarray, np.ndarray]:
    """Return force and moment (N, 3) that accelerate a body, from seven instants of it."""
    mass, inertia = bodies[3][:2]
    centers = np.stack([body[2] for body in bodies])
    turns = np.stack([body[3] for body in bodies])
    transposed = turns[3].swapaxes(1, 2)
    spin = np.tensordot(FIRST, turns, 1) / TIME_STEP @ transposed
    spin_rate = np.tensordot(SECOND, turns, 1) / TIME_STEP**2 @ transposed - spin @ spin
    omega, alpha = _axial(spin), _axial(spin_rate)
    about = turns[3] @ inertia @ transposed
    momentum = (about @ omega[..., None])[..., 0]
    moment = (about @ alpha[..., None])[..., 0] + np.cross(omega, momentum)
    force = mass * (np.tensordot(SECOND, centers, 1) / TIME_STEP**2 - GRAVITY)
    return force, moment


def _axial(matrix: np.ndarray) -> np.ndarray:
    """Return the axial vectors (N, 3) of matrices (N, 3, 3)."""
    skew = 0.5 * (matrix - matrix.swapaxes(1, 2))
    return np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], axis=1)


def _turned(angle: np.ndarray, axis: int) -> np.ndarray:
    """Return rotations (N, 3, 3) about a coordinate axis."""
    first, second = (axis + 1) % 3, (axis + 2) % 3
    turns = np.zeros((len(angle), 3, 3))
    turns[:, axis, axis] = 1.0
    turns[:, first, first] = turns[:, second, second] = np.cos(angle)
    turns[:, second, first] = np.sin(angle)
    turns[:, first, second] = -np.sin(angle)
    return turns


def _in_plane(radius: float, angle: np.ndarray | float) -> np.ndarray:
    """Return points (N, 3) or (3,) at a radius in the horizontal plane."""
    zero = np.zeros_like(angle)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), zero], axis=-1)


def planar_3rrr() -> Plate:
    """Return the shipped 3-RRR table, whose parameters are copied from its file."""
    base, plate, proximal, distal, width = 0.25, 0.08, 0.18, 0.2, 0.03

    def bar(mass: float, length: float) -> np.ndarray:
        squares = np.array([width**2, length**2, length**2 + width**2])
        return np.diag(mass * squares / 12.0)

    def legs(x: np.ndarray) -> tuple[np.ndarray, list[Body]]:
        turn = x[:, 2]
        center = np.stack([x[:, 0], x[:, 1], np.zeros(len(x))], axis=1)
        plate_inertia = 0.9 * plate**2 * np.diag([0.25, 0.25, 0.5])
        bodies: list[Body] = [(0.9, plate_inertia, center, _turned(turn, 2))]
        angles = []
        for sector in np.radians([90.0, 210.0, 330.0]):
            motor = _in_plane(base, sector)
            hinge = center + _in_plane(plate, sector + turn)
            reach = hinge - motor
            distance = np.linalg.norm(reach, axis=1)
            cosine = (proximal**2 + distance**2 - distal**2) / (2.0 * proximal * distance)
            crank = np.arctan2(reach[:, 1], reach[:, 0]) - np.arccos(cosine)
            elbow = motor + _in_plane(proximal, crank)
            link = np.arctan2(hinge[:, 1] - elbow[:, 1], hinge[:, 0] - elbow[:, 0])
            angles.append(np.mod(crank - sector, 2.0 * np.pi))
            bodies.append((0.4, bar(0.4, proximal), 0.5 * (motor + elbow), _turned(crank, 2)))
            bodies.append((0.3, bar(0.3, distal), 0.5 * (hinge + elbow), _turned(link, 2)))
        return np.stack(angles, axis=1), bodies

    return Plate(
        legs=legs,
        motors=("leg1.motor", "leg2.motor", "leg3.motor"),
        unit="rad",
        center=np.zeros(3),
        stroke=np.array([0.04, 0.04, 0.3]),
        rotor=2e-4,
        viscous=0.01,
        coulomb=0.03,
    )


def hexapod() -> Plate:
    """Return the shipped hexapod, whose parameters are copied from its file."""
    base_angles = np.radians([10.0, 110.0, 130.0, 230.0, 250.0, 350.0])
    plate_angles = np.radians([50.0, 70.0, 170.0, 190.0, 290.0, 310.0])
    plate_inertia = np.diag([0.25, 0.25, 0.45])
    cylinder, piston = np.diag([9e-3, 9e-3, 1.1e-3]), np.diag([5e-3, 5e-3, 1.2e-4])

    def legs(x: np.ndarray) -> tuple[np.ndarray, list[Body]]:
        turn = _turned(x[:, 5], 2) @ _turned(x[:, 4], 1) @ _turned(x[:, 3], 0)
        bodies: list[Body] = [(20.0, plate_inertia, x[:, :3] + 0.03 * turn[:, :, 2], turn)]
        lengths = []
        for base_angle, plate_angle in zip(base_angles, plate_angles, strict=True):
            base = _in_plane(0.35, base_angle)
            hinge = x[:, :3] + turn @ _in_plane(0.2, plate_angle)
            length = np.linalg.norm(hinge - base, axis=1, keepdims=True)
            along = (hinge - base) / length
            across = np.cross(along, _in_plane(1.0, base_angle))
            across /= np.linalg.norm(across, axis=1, keepdims=True)
            leg_turn = np.stack([np.cross(across, along), across, along], axis=2)
            lengths.append(length[:, 0])
            bodies.append((1.8, cylinder, base + 0.12 * along, leg_turn))
            bodies.append((0.7, piston, hinge - 0.14 * along, leg_turn))
        return np.stack(lengths, axis=1), bodies

    return Plate(
        legs=legs,
        motors=tuple(f"leg{k}.motor" for k in range(1, 7)),
        unit="m",
        center=np.array([0.0, 0.0, 0.35, 0.0, 0.0, 0.0]),
        stroke=np.array([0.05, 0.05, 0.04, 0.15, 0.15, 0.2]),
    )
