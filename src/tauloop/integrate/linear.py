"""Linear equations of motion with matrices that depend on time: M ẍ + D ẋ + K x = f.

Machine structures have many stiff directions, and directions without mass, whose motion is not of
interest. An A-stable method damps them at any step size. All matrices are inverted in batches, so
that a step is a single product of a matrix and a vector.

Source: Chung, Hulbert 1993, A time integration algorithm for structural dynamics with improved
numerical dissipation: the generalized-α method, J. Appl. Mech. 60, eqs. 25-28; in the form of
Arnold, Brüls 2007, Convergence of the generalized-α scheme for constrained mechanical systems,
Multibody Syst. Dyn. 18, eqs. 4-7, which is of second order for matrices that change.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tauloop.common.records import dataclass

Array = NDArray[np.float64]

#: Spectral radius ρ∞ at high frequencies: the factor per step by which motions decay that are too
#: fast for the step.
SPECTRAL_RADIUS = 0.8
#: Maximum number of entries of all matrices of a chunk of steps that are in memory together.
MAX_CHUNK_ENTRIES = 4_000_000
#: Eigenvalue of the mass matrix, relative to the largest, below which a direction has no mass.
MASSLESS = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearTerms:
    """Matrices (N, n, n) and forces (N, n) of linear equations of motion at N times.

    Matrices (1, n, n) are constant over all of these times.
    """

    mass: Array
    damping: Array
    stiffness: Array
    force: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearMotion:
    """Displacements, velocities and accelerations (N, n) at times (N,), s."""

    time: Array
    position: Array
    velocity: Array
    acceleration: Array


def integrate_linear(
    terms: Callable[[Array], LinearTerms], time: Array, position: Array, velocity: Array
) -> LinearMotion:
    """Return the solution of linear equations of motion by the generalized-α method.

    Args:
        terms: function of times (N,) that returns matrices and forces.
        time: equidistant times (N,), s.
        position, velocity: displacements and velocities (n,) at the first time.
    """
    h = float(time[1] - time[0])
    mass_weight, gamma, beta, to_prediction, to_state = _step_coefficients(h)
    count, size = len(time), len(position)
    start = first_acceleration(terms(time[:1]), position, velocity)
    state = np.stack([position, velocity, start, start])
    predicted, response_force = np.empty((4, size)), np.empty(size)
    stacked = predicted[:3].reshape(-1)
    history = np.empty((3, count, size))
    history[:, 0] = state[:3]
    chunk = max(1, MAX_CHUNK_ENTRIES // (8 * size**2))
    for first in range(1, count, chunk):
        matrices = terms(time[first : first + chunk])
        S = (
            mass_weight * matrices.mass
            + gamma * h * matrices.damping
            + beta * h**2 * matrices.stiffness
        )
        S_inverse = np.linalg.inv(S)
        by_force = (S_inverse @ matrices.force[..., None])[..., 0]
        blocks = (matrices.mass, matrices.damping, matrices.stiffness)
        response = np.concatenate([S_inverse @ block for block in blocks], axis=-1)
        is_constant = len(response) == 1
        for k in range(len(by_force)):
            np.matmul(to_prediction, state, out=predicted[:3])
            np.matmul(response[0 if is_constant else k], stacked, out=response_force)
            np.subtract(by_force[k], response_force, out=predicted[3])
            np.matmul(to_state, predicted, out=state)
            history[:, first + k] = state[:3]
    x, v, a_dot = history
    return LinearMotion(time=time, position=x, velocity=v, acceleration=a_dot)


def _step_coefficients(h: float) -> tuple[float, float, float, Array, Array]:
    """Return the method's coefficients for a step h: three numbers, and two matrices.

    The numbers are (1 - α_m) / (1 - α_f), γ and β. The rows of a state are position, velocity,
    acceleration and the algorithmic acceleration, which differs from the acceleration of the
    equations of motion. The first matrix (3, 4) maps a state to a prediction: the parts of the next
    acceleration, velocity and position that do not depend on the next algorithmic acceleration. The
    second matrix (4, 4) maps the prediction and the next algorithmic acceleration to the next
    state.
    """
    rho = SPECTRAL_RADIUS
    alpha_m, alpha_f = (2.0 * rho - 1.0) / (rho + 1.0), rho / (rho + 1.0)
    gamma = 0.5 - alpha_m + alpha_f
    beta = 0.25 * (1.0 - alpha_m + alpha_f) ** 2
    mass_weight = (1.0 - alpha_m) / (1.0 - alpha_f)
    to_prediction = np.array(
        [
            [0.0, 0.0, -alpha_f / (1.0 - alpha_f), alpha_m / (1.0 - alpha_f)],
            [0.0, 1.0, 0.0, h * (1.0 - gamma)],
            [1.0, h, 0.0, h**2 * (0.5 - beta)],
        ]
    )
    to_state = np.array(
        [
            [0.0, 0.0, 1.0, h**2 * beta],
            [0.0, 1.0, 0.0, h * gamma],
            [1.0, 0.0, 0.0, mass_weight],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )
    return mass_weight, gamma, beta, to_prediction, to_state


def first_acceleration(terms: LinearTerms, position: Array, velocity: Array) -> Array:
    """Return the acceleration (n,) at the first time; zero in directions without mass."""
    M, D, K = terms.mass[0], terms.damping[0], terms.stiffness[0]
    rest = terms.force[0] - D @ velocity - K @ position
    values, vectors = np.linalg.eigh(M)
    is_massive = values > MASSLESS * np.abs(values).max(initial=0.0)
    inverse = np.where(is_massive, 1.0 / np.where(is_massive, values, 1.0), 0.0)
    return np.asarray(vectors @ (inverse * (vectors.T @ rest)))
