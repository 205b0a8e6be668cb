"""Inertial parameters: about any point, as matrices, and their physical consistency.

The parallel axis theorem is implemented here for all modules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tauloop.mechanism.expression import Expression, add, multiply, subtract
from tauloop.mechanism.model import Inertia, Vector

Array = NDArray[np.float64]

#: Principal moments may violate positivity and the triangle inequality by this fraction of the
#: trace. Flat bodies and thin bars satisfy the conditions with equality, up to rounding.
DEGENERACY_TOLERANCE = 1e-9
#: Largest moment of inertia that is accepted, kg m^2; far larger numbers overflow.
_MAX_MOMENT = 1e30


def as_matrices(parameters: Iterable[float]) -> tuple[float, Array, Array]:
    """Return mass (kg), first moment (3,) and inertia (3, 3) from the ten inertial parameters.

    The first moment is h = m c, kg m; the inertia refers to the origin, kg m^2.

    Args:
        parameters: m, h_x, h_y, h_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz (`Inertia.parameters`).
    """
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = parameters
    return m, np.array([hx, hy, hz]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def offset_inertia(p: Array) -> Array:
    """Return the inertia about the origin (3, 3) of a unit point mass at p (3,): p.p 1 - p p^T."""
    return np.asarray(p @ p * np.eye(3) - np.outer(p, p))


def about_center(mass: float, first_moment: Array, about_origin: Array) -> tuple[Array, Array]:
    """Return the mass center c = h / m (3,), m, and the inertia about it, I - m (c.c 1 - c c^T)."""
    c = first_moment / mass
    return c, about_origin - mass * offset_inertia(c)


def about_origin(mass: Expression, center: Vector, moments: Sequence[Expression]) -> Inertia:
    """Return the inertia about the frame's origin: I + m (c.c 1 - c c^T).

    Args:
        mass: m.
        center: mass center c.
        moments: inertia I about the mass center, in the axes of the frame.
    """
    x, y, z = center
    xx, yy, zz = (multiply(mass, component, component) for component in center)
    I_xx, I_xy, I_yy, I_xz, I_yz, I_zz = moments
    first_moment = (multiply(mass, component) for component in center)
    return Inertia.of(
        (
            mass,
            *first_moment,
            add(I_xx, yy, zz),
            subtract(I_xy, multiply(mass, x, y)),
            add(I_yy, xx, zz),
            subtract(I_xz, multiply(mass, x, z)),
            subtract(I_yz, multiply(mass, y, z)),
            add(I_zz, xx, yy),
        )
    )


def principal_moments(parameters: Sequence[float]) -> tuple[np.ndarray, float] | None:
    """Return the principal moments (3,) about the mass center and their rounding error, kg m^2.

    Args:
        parameters: the ten inertial parameters about the frame's origin (`Inertia.parameters`).

    Returns:
        The moments in ascending order and the rounding error; None if they are too large or
        undefined (no mass).
    """
    m, h, about_frame_origin = as_matrices(parameters)
    with np.errstate(all="ignore"):
        central = about_frame_origin - offset_inertia(h) / np.float64(m)
        if not np.max(np.abs(central)) < _MAX_MOMENT:
            return None
    rounding_error = DEGENERACY_TOLERANCE * max(
        abs(np.trace(about_frame_origin)), abs(np.trace(central))
    )
    return np.linalg.eigvalsh(central), float(rounding_error)


def is_possible(parameters: Sequence[float]) -> bool:
    """Return whether a body can have these ten inertial parameters about the frame's origin."""
    moments = principal_moments(parameters)
    if moments is None or parameters[0] <= 0.0:
        return False
    (smallest, middle, largest), rounding_error = moments
    return bool(smallest >= -rounding_error and largest <= smallest + middle + rounding_error)
