"""What controllers need of machines with more actuators than freedoms, or fewer: encoders' spread, gains, refusals."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import Problem
from tauloop.equations.assembly.assembly import Assembly
from tauloop.model import Model

#: The least spread as a share of the largest: of an encoder that measures exactly beside others
#: that count.
LEAST = 1e-3
#: Below this share of its motion an actuator stands still at a pose.
STANDS = 1e-9


def passive_problems(assembly: Assembly) -> list[Problem]:
    """What to say where freedoms move that no actuator does; nothing without them."""
    if not assembly.passive:
        return []
    names, actuators = ", ".join(assembly.passive_names), len(assembly.mechanism.actuators)
    what = f"no actuator moves {names} ({actuators} actuators, {assembly.mobility} freedoms)"
    remedy = "controllers need actuators for all freedoms: add some, or lock these freedoms"
    return [
        Problem(
            where=assembly.mechanism.name, what=what, remedy=remedy, file=assembly.mechanism.file
        )
    ]


def lengths(model: Model) -> np.ndarray:
    """Motions of the actuators (n_u,), m or rad, that are alike large."""
    loops = model.assembly.loops
    return np.asarray(np.abs(loops.transmission * loops.velocity_scale).max(axis=1))


def spread(model: Model, resolution: np.ndarray) -> np.ndarray:
    """Spread of what the actuators' encoders say (n_u,), its geometric mean 1: that of their steps, m or rad.

    All alike, lengths and angles by the machine's size, where none counts.
    """
    unit = lengths(model)
    steps = np.asarray(resolution) / unit
    steps = np.maximum(steps, LEAST * steps.max()) if steps.any() else np.ones(len(unit))
    return np.asarray(steps * unit / np.exp(np.log(steps * unit).mean()))


def motor_masses(R: np.ndarray, mass: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Mass that each actuator moves by itself (n_u,), where all of them move a mass matrix together.

    Of all motions of the machine R x' the one nearest to that of actuator i alone is P e_i, P = R
    R^+; along it the machine has the mass e_i^T R^+T M R^+ e_i, and the actuators together that of
    gains mu_i P_ii. Without redundancy R^+ is the inverse, P_ii = 1, and these are the diagonal of
    the mass matrix in the actuators' velocities.

    Args:
        R: actuator velocities per unit of the leading ones (n_u, m).
        mass: of the leading velocities (m, m).
        unit: motions of the actuators that are alike large (n_u,).
    """
    relative = R / unit[:, None]
    back = np.linalg.pinv(relative)
    moved, reach = np.einsum("ki,kl,li->i", back, mass, back), np.einsum("ik,ki->i", relative, back)
    return np.divide(moved, reach, out=np.zeros(len(unit)), where=reach > STANDS) / unit**2


def gained_masses(model: Model, in_platform: bool, q: np.ndarray) -> np.ndarray:
    """Mass that gains of each platform coordinate, or of each actuator, move (n,), at coordinates (1, n_q)."""
    motion = model.platform if in_platform else model.actuators
    position = motion.ports.at(q)
    mass = motion.mass_matrix(position, start=q)[0]
    if model.assembly.is_redundant and not in_platform:
        return motor_masses(motion.actuator_jacobian(position, start=q)[0], mass, lengths(model))
    return np.asarray(np.diagonal(mass))
