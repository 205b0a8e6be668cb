"""Torques of the shipped planar 3-RRR by virtual work in NumPy, independent of Tauloop.

Accelerations and Jacobians of the bodies are differences of their poses, whose loops are closed by
Newton's method.
"""

from __future__ import annotations

import numpy as np

from tauloop.logs.log import Channel, Signals

BASE_RADIUS, PLATE_RADIUS, PROXIMAL, DISTAL, WIDTH = 0.25, 0.08, 0.18, 0.20, 0.03
PROXIMAL_MASS, DISTAL_MASS, PLATE_MASS, ROTOR = 0.4, 0.3, 0.9, 2e-4
VISCOUS, COULOMB = 0.01, 0.03
SECTORS = np.deg2rad([90.0, 210.0, 330.0])
CENTER = np.deg2rad(115.0)
MOTORS = ("leg1.motor", "leg2.motor", "leg3.motor")
#: Steps of differences in time, s, and of motor angles, rad.
TIME_STEP, ANGLE_STEP = 2e-5, 1e-6
#: Masses, or moments of inertia about the mass center, in the order of `poses`.
INERTIAS = (
    PLATE_MASS * np.array([1.0, 1.0, 0.5 * PLATE_RADIUS**2]),
    PROXIMAL_MASS,
    PROXIMAL_MASS * (PROXIMAL**2 + WIDTH**2) / 12.0,
    DISTAL_MASS,
    DISTAL_MASS * (DISTAL**2 + WIDTH**2) / 12.0,
)


def along(angle: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def poses(q: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the plate's x, y, angle (N, 3), and centers and angles of cranks and links."""
    crank = q + SECTORS
    pivots = BASE_RADIUS * along(SECTORS)
    elbows = pivots + PROXIMAL * along(crank)
    plate = np.zeros((len(q), 3))
    for _ in range(30):
        turned = plate[:, 2:] + SECTORS
        reach = plate[:, None, :2] + PLATE_RADIUS * along(turned) - elbows
        across = PLATE_RADIUS * along(turned + 0.5 * np.pi)
        gap = np.sum(reach**2, axis=-1) - DISTAL**2
        turning = np.sum(reach * across, axis=-1, keepdims=True)
        change = np.linalg.solve(2.0 * np.concatenate([reach, turning], axis=-1), gap[..., None])
        plate = plate - change[..., 0]
        if np.abs(change).max() < 1e-14:
            break
    link = np.unwrap(np.arctan2(reach[..., 1], reach[..., 0]), axis=0)
    return plate, pivots + 0.5 * PROXIMAL * along(crank), crank, elbows + 0.5 * reach, link


def forces_of(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return the torques (N, 3) of a motion."""
    h = TIME_STEP
    before, now, after = (poses(q + s * h * v + 0.5 * (s * h) ** 2 * a) for s in (-1, 0, 1))
    forces = ROTOR * a + VISCOUS * v + COULOMB * np.sign(v)
    for motor in range(3):
        step = ANGLE_STEP * np.eye(3)[motor]
        ahead, behind = poses(q + step), poses(q - step)
        for k, inertia in enumerate(INERTIAS):
            rate = (after[k] - 2.0 * now[k] + before[k]) / h**2
            jacobian = (ahead[k] - behind[k]) / (2.0 * ANGLE_STEP)
            forces[:, motor] += np.sum((inertia * rate * jacobian).reshape(len(q), -1), axis=1)
    return forces


def motion_at(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, v, a (N, 3) of sines up to 2.5 Hz."""
    w = 2.0 * np.pi * np.array([0.23, 0.55, 1.03, 1.7, 2.5])
    size = np.array(
        [
            [0.1, 0.09, -0.07, 0.05, 0.04],
            [0.09, -0.1, 0.08, 0.06, -0.03],
            [-0.1, 0.07, 0.09, -0.05, 0.04],
        ]
    )
    angle = w * t[:, None, None] + np.arange(15.0).reshape(3, 5)
    parts = size * np.sin(angle), size * w * np.cos(angle), -size * w**2 * np.sin(angle)
    q, v, a = (part.sum(axis=2) for part in parts)
    return q + CENTER, v, a


def log_of(
    time: np.ndarray, forces: np.ndarray, rng: np.random.Generator, *, noise: float, encoder: float
) -> Signals:
    """Return a log of the motion with given forces, to which noise (share of their RMS) is added."""
    sizes = np.sqrt(np.mean(forces**2, axis=0))
    read = forces + noise * sizes * rng.standard_normal(forces.shape)
    position = encoder * np.round(motion_at(time)[0] / encoder + rng.uniform(size=3))
    channels = [
        Channel(quantity=quantity, channel=name, values=np.ascontiguousarray(column), unit=unit)
        for quantity, unit, values in (("position", "rad", position), ("force", "N m", read))
        for name, column in zip(MOTORS, values.T, strict=True)
    ]
    return Signals(time=time, channels=tuple(channels))
