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

#: Entries of a computed rotation matrix that are closer than this to 0, 1 or -1 are rounded.
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


def rotated_vector(R: np.ndarray, vector: Vector) -> Vector:
    """Return R r for a constant rotation R (3, 3)."""
    return triple(_row_times(R[i], vector) for i in range(3))


def _row_times(row: np.ndarray, vector: Vector) -> Expression:
    return add(*(_times(factor, component) for factor, component in zip(row, vector, strict=True)))


def rounded_entries(R: np.ndarray) -> np.ndarray:
    """Return a rotation matrix or a unit vector after rounding entries near 0, 1 and -1."""
    nearest = np.round(R)
    return np.where(np.abs(R - nearest) < ENTRY_TOLERANCE, nearest, R)


def total(*parts: Part) -> Part:
    """Return the sum of inertias in the same frame, or of slender parts about the same end."""
    parameters = [part.parameters for part in parts]
    return type(parts[0]).of(add(*terms) for terms in zip(*parameters, strict=True))


def inertia_about(inertia: Inertia, point: Vector) -> Inertia:
    """Return the inertia of the same body about the point s = `point` (parallel-axis theorem).

    The axes do not change. With mass m, first moment h and second moments I:

    h_s = h - m s,  I_s = I + m (s.s 1 - s s^T) - 2 (s.h) 1 + h s^T + s h^T.
    """
    m, h, s = inertia.mass, inertia.first_moment, point
    moments = []
    for (i, j), moment in zip(MOMENT_ENTRIES, inertia.second_moment, strict=True):
        if i == j:
            a, b = (i + 1) % 3, (i + 2) % 3
            first_order = add(multiply(s[a], h[a]), multiply(s[b], h[b]))
            second_order = multiply(m, add(multiply(s[a], s[a]), multiply(s[b], s[b])))
            doubled = multiply(Constant(2.0), first_order)
            moments.append(subtract(add(moment, second_order), doubled))
        else:
            first_order = add(multiply(h[i], s[j]), multiply(h[j], s[i]))
            moments.append(subtract(add(moment, first_order), multiply(m, s[i], s[j])))
    return Inertia.of([m, *(subtract(h[i], multiply(m, s[i])) for i in range(3)), *moments])


def rotated_inertia(inertia: Inertia, R: np.ndarray) -> Inertia:
    """Return an inertia in rotated axes about the same origin: h' = R h, I' = R I R^T."""
    if np.array_equal(R, np.eye(3)):
        return inertia
    I: list[list[Expression]] = [[ZERO] * 3 for _ in range(3)]
    for (i, j), moment in zip(MOMENT_ENTRIES, inertia.second_moment, strict=True):
        I[i][j] = I[j][i] = moment
    moments = []
    for i, j in MOMENT_ENTRIES:
        terms = [_times(R[i, k] * R[j, l], I[k][l]) for k in range(3) for l in range(3)]
        moments.append(add(*terms))
    return Inertia.of([inertia.mass, *rotated_vector(R, inertia.first_moment), *moments])


def transferred_inertia(
    inertia: Inertia, from_point: Vector, to_point: Vector, R: np.ndarray
) -> Inertia:
    """Return a body's inertia about the origin of another body, in the axes of the other body.

    The first body is attached with `from_point` at `to_point` of the second body. The bodies do not
    rotate relative to each other; R is the constant rotation between their axes.

    Args:
        inertia: inertia about the first body's origin.
        from_point: point of the first body, m.
        to_point: point of the second body, m.
        R: rotation from the first body's axes to the second's (3, 3).
    """
    rotated = rotated_inertia(inertia_about(inertia, from_point), R)
    return inertia_about(rotated, _opposite(to_point))


def point_mass(mass: Expression, position: Vector) -> Inertia:
    """Return the inertia of a point mass."""
    return inertia_about(Inertia(mass=mass), _opposite(position))


def _opposite(vector: Vector) -> Vector:
    if vector == ZERO_VECTOR:
        return vector
    return triple(map(negate, vector))


def _times(factor: float, expression: Expression) -> Expression:
    return negate(expression) if factor == -1.0 else multiply(Constant(float(factor)), expression)
