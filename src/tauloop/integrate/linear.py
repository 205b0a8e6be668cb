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

#: Factor by which motions that are too fast for the step decay per step (ρ∞).
SPECTRAL_RADIUS = 0.8
#: Largest number of entries of all inverted matrices that are in memory together.
MAX_NUMBERS = 4_000_000
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
    rho, h = SPECTRAL_RADIUS, float(time[1] - time[0])
    alpha_m, alpha_f = (2.0 * rho - 1.0) / (rho + 1.0), rho / (rho + 1.0)
    gamma = 0.5 - alpha_m + alpha_f
    beta = 0.25 * (1.0 - alpha_m + alpha_f) ** 2
    to_rate = (1.0 - alpha_m) / (1.0 - alpha_f)
    count, size = len(time), len(position)
    x, v, a_dot = (np.empty((count, size)) for _ in range(3))
    x[0], v[0] = position, velocity
    a_dot[0] = first_acceleration(terms(time[:1]), position, velocity)
    # the algorithmic acceleration, which differs from the acceleration of the equations of motion
    a = a_dot[0].copy()
    stacked = np.empty(3 * size)
    chunk = max(1, MAX_NUMBERS // (8 * size**2))
    for first in range(1, count, chunk):
        part = terms(time[first : first + chunk])
        S = to_rate * part.mass + (gamma * h) * part.damping + (beta * h**2) * part.stiffness
        S_inverse = np.linalg.inv(S)
        forced = (S_inverse @ part.force[..., None])[..., 0]
        blocks = (part.mass, part.damping, part.stiffness)
        response = np.concatenate([S_inverse @ block for block in blocks], axis=-1)
        constant = len(response) == 1
        for k in range(len(forced)):
            i = first + k - 1
            at_rest = (alpha_m * a - alpha_f * a_dot[i]) / (1.0 - alpha_f)
            v_next = v[i] + (h * (1.0 - gamma)) * a
            x_next = x[i] + h * v[i] + (h**2 * (0.5 - beta)) * a
            stacked[:size], stacked[size : 2 * size], stacked[2 * size :] = at_rest, v_next, x_next
            a = forced[k] - response[0 if constant else k] @ stacked
            x[i + 1] = x_next + (h**2 * beta) * a
            v[i + 1] = v_next + (h * gamma) * a
            a_dot[i + 1] = to_rate * a + at_rest
    return LinearMotion(time=time, position=x, velocity=v, acceleration=a_dot)


def first_acceleration(terms: LinearTerms, position: Array, velocity: Array) -> Array:
    """Return the acceleration (n,) at the first time; zero in directions without mass."""
    M, D, K = terms.mass[0], terms.damping[0], terms.stiffness[0]
    rest = terms.force[0] - D @ velocity - K @ position
    values, vectors = np.linalg.eigh(M)
    is_massive = values > MASSLESS * np.abs(values).max(initial=0.0)
    inverse = np.where(is_massive, 1.0 / np.where(is_massive, values, 1.0), 0.0)
    return np.asarray(vectors @ (inverse * (vectors.T @ rest)))
