"""Vectors and inertias as expressions: sums, shifts of the reference point, constant rotations, point masses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from tauloop.mechanism.expression import (
    ZERO,
    Constant,
    Expression,
    add,
    divide,
    multiply,
    negate,
    subtract,
    triple,
)
from tauloop.mechanism.model import MOMENT_ENTRIES, ZERO_VECTOR, Inertia, SlenderPart, Vector
from tauloop.mechanism.reduction.collect import collected

Part = TypeVar("Part", Inertia, SlenderPart)

#: Entries of a measured rotation matrix this near to 0, 1 or -1 are meant to be that.
ROUNDING = 1e-9


def plus(*vectors: Vector) -> Vector:
    """Sum of vectors; what cancels is gone."""
    return triple(collected(*components) for components in zip(*vectors, strict=True))


def minus(a: Vector, b: Vector) -> Vector:
    """Difference a - b; what cancels is gone."""
    return triple(collected(p, negate(q)) for p, q in zip(a, b, strict=True))


def mean(vectors: Sequence[Vector]) -> Vector:
    """Mean of vectors; what cancels is gone."""
    count = Constant(float(len(vectors)))
    return triple(
        divide(collected(*components), count) for components in zip(*vectors, strict=True)
    )


def turned_vector(R: np.ndarray, vector: Vector) -> Vector:
    """R r for a constant rotation R (3, 3)."""
    return triple(add(*(_times(R[i, j], vector[j]) for j in range(3))) for i in range(3))


def clean(R: np.ndarray) -> np.ndarray:
    """A rotation matrix (3, 3) with its entries near 0, 1 and -1 made exact."""
    nearest = np.round(R)
    return np.where(np.abs(R - nearest) < ROUNDING, nearest, R)


def total(*parts: Part) -> Part:
    """Inertia of several parts in the same frame, or of slender ones about the same end."""
    return type(parts[0]).of(
        add(*terms) for terms in zip(*(part.parameters for part in parts), strict=True)
    )


def about(inertia: Inertia, point: Vector) -> Inertia:
    """The same body in a frame with the same axes whose origin is at s = `point`.

    h_s = h - m s,  I_s = I + m (s.s 1 - s s^T) - 2 (s.h) 1 + h s^T + s h^T.
    """
    m, h, s = inertia.mass, inertia.first_moment, point
    moments = []
    for (i, j), moment in zip(MOMENT_ENTRIES, inertia.second_moment, strict=True):
        if i == j:
            a, b = (i + 1) % 3, (i + 2) % 3
            static = add(multiply(s[a], h[a]), multiply(s[b], h[b]))
            square = multiply(m, add(multiply(s[a], s[a]), multiply(s[b], s[b])))
            moments.append(subtract(add(moment, square), multiply(Constant(2.0), static)))
        else:
            static = add(multiply(h[i], s[j]), multiply(h[j], s[i]))
            moments.append(subtract(add(moment, static), multiply(m, s[i], s[j])))
    return Inertia.of([m, *(subtract(h[i], multiply(m, s[i])) for i in range(3)), *moments])


def turned(inertia: Inertia, R: np.ndarray) -> Inertia:
    """The same body in other axes about the same origin: h' = R h, I' = R I R^T."""
    if np.array_equal(R, np.eye(3)):
        return inertia
    I: list[list[Expression]] = [[ZERO] * 3 for _ in range(3)]
    for (i, j), moment in zip(MOMENT_ENTRIES, inertia.second_moment, strict=True):
        I[i][j] = I[j][i] = moment
    moments = (
        add(*(_times(R[i, k] * R[j, l], I[k][l]) for k in range(3) for l in range(3)))
        for i, j in MOMENT_ENTRIES
    )
    return Inertia.of([inertia.mass, *turned_vector(R, inertia.first_moment), *moments])


def carried(inertia: Inertia, at: Vector, to: Vector, R: np.ndarray) -> Inertia:
    """The same body attached to another one that turns alike, its point `at` put on that body's point `to`.

    Args:
        inertia: about the first body's origin.
        at: point of the first body, m.
        to: point of the second body, m.
        R: from the first body's axes to the second's (3, 3).
    """
    return about(turned(about(inertia, at), R), _opposite(to))


def point_mass(mass: Expression, position: Vector) -> Inertia:
    """Inertia of a point mass."""
    return about(Inertia(mass=mass), _opposite(position))


def _opposite(vector: Vector) -> Vector:
    if vector == ZERO_VECTOR:
        return vector
    return triple(map(negate, vector))


def _times(factor: float, expression: Expression) -> Expression:
    return negate(expression) if factor == -1.0 else multiply(Constant(float(factor)), expression)
