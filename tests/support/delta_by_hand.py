"""Inverse dynamics of a Delta in closed form (NumPy), independent of the package: by virtual work and differences.

Arms turn about horizontal axes, a forearm is one slender uniform rod from elbow to plate, the plate
translates. Motors have friction and rotor inertia. Numbers are those of `MACHINE`, which is the
shipped Delta's text with drives added.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from machine_texts import shipped_text

import tauloop as tl

MOTOR_RADIUS, PLATE_RADIUS, ARM, FOREARM = 0.194, 0.03, 0.26, 0.48
PLATE_MASS, ARM_MASS, ARM_INERTIA, ELBOW_MASS, FOREARM_MASS = 0.62, 0.977, 0.01822, 0.0099, 0.0296
ROTOR, VISCOUS, COULOMB = 0.008, 0.06, 0.35
GRAVITY = 9.81
Motion = Callable[[np.ndarray], np.ndarray]


def machine() -> tl.Mechanism:
    """Return the machine: the shipped Delta with drives."""
    text = shipped_text("delta").replace("plate_mass: 0.2807 kg", f"plate_mass: {PLATE_MASS} kg")
    drive = f"inertia: {ROTOR} kg m^2, friction: {{viscous: {VISCOUS} N m s/rad, coulomb: {COULOMB} N m}}"
    return tl.loads(
        text.replace("motor: {on: shoulder, force: 41.76 N m}", f"motor: {{on: shoulder, {drive}}}")
    )


def _points(angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return elbows (N, 3, 3) and the plate's centre (N, 3) at arm angles (N, 3), positive downwards."""
    sector = 2.0 * np.pi / 3.0 * np.arange(3)
    outwards = np.stack([np.cos(sector), np.sin(sector), np.zeros(3)], axis=1)
    reach = MOTOR_RADIUS + ARM * np.cos(angles)
    elbows = reach[:, :, None] * outwards - (ARM * np.sin(angles))[:, :, None] * np.array(
        [0.0, 0.0, 1.0]
    )
    centers = elbows - PLATE_RADIUS * outwards  # of three spheres that meet at the plate's centre
    first, second = centers[:, 1] - centers[:, 0], centers[:, 2] - centers[:, 0]
    normal = np.cross(first, second)
    square = np.sum(normal**2, axis=1, keepdims=True)
    inside = np.cross(normal, first) * np.sum(second**2, axis=1, keepdims=True)
    inside += np.cross(second, normal) * np.sum(first**2, axis=1, keepdims=True)
    to_center = inside / (2.0 * square)
    height = np.sqrt(FOREARM**2 - np.sum(to_center**2, axis=1, keepdims=True))
    down = -np.sign(normal[:, 2:]) * normal / np.sqrt(square)
    return elbows, centers[:, 0] + to_center + height * down


def _bodies(angles: np.ndarray) -> np.ndarray:
    """Return points (N, 21): elbows, the forearms' ends at the plate are translations of it, and the plate."""
    elbows, plate = _points(angles)
    return np.concatenate([elbows.reshape(len(angles), -1), plate], axis=1)


def forces(
    motion: Motion, time: np.ndarray, payload: np.ndarray | float = 0.0, step: float = 1e-4
) -> np.ndarray:
    """Return the motors' torques (N, 3), N m, of arm angles as functions of time, by virtual work.

    Args:
        motion: arm angles (N, 3), rad, at times (N,).
        time: s.
        payload: mass at the plate's centre at each time, kg.
        step: of the differences in time, s.
    """
    before, now, after = (motion(time + shift) for shift in (-step, 0.0, step))
    velocity = (after - before) / (2.0 * step)
    acceleration = (after - 2.0 * now + before) / step**2
    places = _bodies(now)
    linear = (_bodies(after) - 2.0 * places + _bodies(before)) / step**2
    shift = 1e-6
    by_angle = np.stack(
        [(_bodies(now + d) - _bodies(now - d)) / (2.0 * shift) for d in shift * np.eye(3)], axis=1
    )  # (N, 3, 12)
    lifted = linear + np.tile([0.0, 0.0, GRAVITY], 4)
    elbows, plate = lifted[:, :9].reshape(-1, 3, 3), lifted[:, 9:]
    third, sixth = FOREARM_MASS / 3.0, FOREARM_MASS / 6.0
    # a uniform rod between a and b: m/3 and m/6 are its mass matrix between the ends
    at_elbows = (third + ELBOW_MASS) * elbows + sixth * plate[:, None]
    at_plate = (PLATE_MASS + np.broadcast_to(payload, len(time)))[:, None] * plate
    at_plate = at_plate + 3.0 * third * plate + sixth * elbows.sum(axis=1)
    loads = np.concatenate([at_elbows.reshape(len(time), -1), at_plate], axis=1)
    torque = np.einsum("nkj,nj->nk", by_angle, loads)
    torque += (ARM_INERTIA + ROTOR) * acceleration - ARM_MASS * GRAVITY * ARM / 2.0 * np.cos(now)
    return torque + VISCOUS * velocity + COULOMB * np.sign(velocity)


def multisine(seed: int, size: float = 0.25, base: float = 0.2, harmonics: int = 13) -> Motion:
    """Return arm angles that move up to 13 times the base frequency (2.6 Hz), each arm with its own phases."""
    rng = np.random.default_rng(seed)
    rates = 2.0 * np.pi * base * np.array([1, 2, 4, 7, harmonics])
    amplitude = rng.uniform(0.5, 1.0, (3, 5)) / np.sqrt(rates / rates[0])
    amplitude *= size / amplitude.sum(axis=1, keepdims=True)
    phase = rng.uniform(0.0, 2.0 * np.pi, (3, 5))

    def angles(time: np.ndarray) -> np.ndarray:
        return 0.65 + np.sum(amplitude * np.sin(rates * time[:, None, None] + phase), axis=2)

    return angles
