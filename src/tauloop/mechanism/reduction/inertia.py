"""Vectors and inertias as expressions: sums, shifts, constant rotations and point masses."""

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

#: Distance from 0, 1 or -1 within which entries of a computed rotation matrix are set to it.
ENTRY_TOLERANCE = 1e-9


def plus(*vectors: Vector) -> Vector:
    """Return the sum of vectors, with collected like terms."""
    return triple(collected(*components) for components in zip(*vectors, strict=True))


def minus(a: Vector, b: Vector) -> Vector:
    """Return the difference a - b, with collected like terms."""
    return triple(collected(p, negate(q)) for p, q in zip(a, b, strict=True))


def mean(vectors: Sequence[Vector]) -> Vector:
    """Return the mean of vectors, with collected like terms."""
    count = Constant(float(len(vectors)))
    return triple(
        divide(collected(*components), count) for components in zip(*vectors, strict=True)
    )


def turned_vector(R: np.ndarray, vector: Vector) -> Vector:
    """Return R r for a constant rotation R (3, 3)."""
    return triple(_row_times(R[i], vector) for i in range(3))


def _row_times(row: np.ndarray, vector: Vector) -> Expression:
    return add(*(_times(factor, component) for factor, component in zip(row, vector, strict=True)))


def clean(R: np.ndarray) -> np.ndarray:
    """Return a rotation matrix (3, 3) after rounding entries near 0, 1 and -1."""
    nearest = np.round(R)
    return np.where(np.abs(R - nearest) < ENTRY_TOLERANCE, nearest, R)


def total(*parts: Part) -> Part:
    """Return the sum of inertias in the same frame, or of slender parts about the same end."""
    parameters = [part.parameters for part in parts]
    return type(parts[0]).of(add(*terms) for terms in zip(*parameters, strict=True))


def about(inertia: Inertia, point: Vector) -> Inertia:
    """Return the same body in a frame with the same axes whose origin is at s = `point`.

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
    """Return the same body in other axes about the same origin: h' = R h, I' = R I R^T."""
    if np.array_equal(R, np.eye(3)):
        return inertia
    I: list[list[Expression]] = [[ZERO] * 3 for _ in range(3)]
    for (i, j), moment in zip(MOMENT_ENTRIES, inertia.second_moment, strict=True):
        I[i][j] = I[j][i] = moment
    moments = []
    for i, j in MOMENT_ENTRIES:
        terms = [_times(R[i, k] * R[j, l], I[k][l]) for k in range(3) for l in range(3)]
        moments.append(add(*terms))
    return Inertia.of([inertia.mass, *turned_vector(R, inertia.first_moment), *moments])


def carried(inertia: Inertia, at: Vector, to: Vector, R: np.ndarray) -> Inertia:
    """Return the inertia of a body attached at its point `at` to the point `to` of another body.

    Both bodies have the same rotation. The result is about the second body's origin, in its axes.

    Args:
        inertia: inertia about the first body's origin.
        at: point of the first body, m.
        to: point of the second body, m.
        R: rotation from the first body's axes to the second's (3, 3).
    """
    return about(turned(about(inertia, at), R), _opposite(to))


def point_mass(mass: Expression, position: Vector) -> Inertia:
    """Return the inertia of a point mass."""
    return about(Inertia(mass=mass), _opposite(position))


def _opposite(vector: Vector) -> Vector:
    if vector == ZERO_VECTOR:
        return vector
    return triple(map(negate, vector))


def _times(factor: float, expression: Expression) -> Expression:
    return negate(expression) if factor == -1.0 else multiply(Constant(float(factor)), expression)
