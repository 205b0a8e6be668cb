"""Control with more or fewer actuators than degrees of freedom: noise, gains and errors."""

from __future__ import annotations

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import Problem
from tauloop.equations.assembly.assembly import Assembly
from tauloop.model import Model

#: Smallest noise of an encoder relative to the largest. It applies to exact encoders if others are
#: quantized.
MIN_NOISE_RATIO = 1e-3
#: Relative motion below which an actuator stands still at a pose.
STANDSTILL_RATIO = 1e-9


def passive_problems(assembly: Assembly) -> list[Problem]:
    """Return a problem that lists the degrees of freedom without actuators; empty if none."""
    if not assembly.passive:
        return []
    names, actuators = ", ".join(assembly.passive_names), len(assembly.mechanism.actuators)
    freedoms = counted(assembly.mobility, "degree of freedom")
    what = f"no actuator moves {names} ({counted(actuators, 'actuator')}, {freedoms})"
    remedy = "add actuators, or lock these degrees of freedom: controllers need actuators"
    return [
        Problem(
            where=assembly.mechanism.name, what=what, remedy=remedy, file=assembly.mechanism.file
        )
    ]


def lengths(model: Model) -> np.ndarray:
    """Return a characteristic motion of each actuator (n_u,), m or rad.

    It is the largest motion of the actuator when one coordinate moves by its scale.
    """
    loops = model.assembly.loops
    return np.asarray(np.abs(loops.transmission * loops.velocity_scale).max(axis=1))


def spread(model: Model, resolution: np.ndarray) -> np.ndarray:
    """Return the measurement noise of the actuators' encoders (n_u,), with geometric mean 1.

    It is proportional to the encoder steps, m or rad. If no encoder is quantized, the noise is the
    same for all, relative to `lengths`.
    """
    unit = lengths(model)
    steps = np.asarray(resolution) / unit
    steps = np.maximum(steps, MIN_NOISE_RATIO * steps.max()) if steps.any() else np.ones(len(unit))
    return np.asarray(steps * unit / np.exp(np.log(steps * unit).mean()))


def motor_masses(R: np.ndarray, mass: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Return the mass that each actuator moves alone (n_u,).

    M is the mass matrix that the actuators move together, and R^+ the pseudoinverse of R. The motion
    R x' of the machine that is nearest to a motion of actuator i alone is P e_i with P = R R^+. For
    this motion the machine has the mass e_i^T R^+T M R^+ e_i, and the gain of actuator i acts with
    the factor P_ii; the result is the ratio of both. Without redundancy, R^+ is
    the inverse and P_ii = 1, so the masses are the diagonal of the mass matrix in the actuator
    velocities.

    Args:
        R: actuator velocities per unit of the leading velocities (n_u, m).
        mass: mass matrix of the leading velocities (m, m).
        unit: comparable motions of the actuators (n_u,), from `lengths`.
    """
    relative = R / unit[:, None]
    pseudoinverse = np.linalg.pinv(relative)
    moved_mass = np.einsum("ki,kl,li->i", pseudoinverse, mass, pseudoinverse)
    gain_factor = np.einsum("ik,ki->i", relative, pseudoinverse)
    moves = gain_factor > STANDSTILL_RATIO
    return np.divide(moved_mass, gain_factor, out=np.zeros(len(unit)), where=moves) / unit**2


def gained_masses(model: Model, in_platform: bool, q: np.ndarray) -> np.ndarray:
    """Return the masses (n,) of platform coordinates or actuators for the gains, at q (1, n_q)."""
    motion = model.platform if in_platform else model.actuators
    position = motion.ports.at(q)
    mass = motion.mass_matrix(position, start=q)[0]
    if model.assembly.is_redundant and not in_platform:
        return motor_masses(motion.actuator_jacobian(position, start=q)[0], mass, lengths(model))
    return np.asarray(np.diagonal(mass))
