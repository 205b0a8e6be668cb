"""Inertias in numbers: the ten parameters as matrices, and the theorem of parallel axes for all who shift them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def as_matrices(parameters: Iterable[float]) -> tuple[float, Array, Array]:
    """Mass m (kg), first moment h = m c (3,), kg m, and inertia (3, 3) about the origin, kg m^2, of the ten parameters.

    Args:
        parameters: m, h_x, h_y, h_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz (`Inertia.parameters`).
    """
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = parameters
    return m, np.array([hx, hy, hz]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def offset_inertia(p: Array) -> Array:
    """Inertia (3, 3) of a unit point mass at p (3,) about the origin: p.p 1 - p p^T."""
    return np.asarray(p @ p * np.eye(3) - np.outer(p, p))


def about_center(mass: float, first_moment: Array, about_origin: Array) -> tuple[Array, Array]:
    """Mass centre c = h / m (3,), m, and inertia about it (3, 3): I - m (c.c 1 - c c^T)."""
    c = first_moment / mass
    return c, about_origin - mass * offset_inertia(c)
