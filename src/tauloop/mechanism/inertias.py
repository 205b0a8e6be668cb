"""Inertia of a machine file, in any of its forms, to parameters about the origin of the frame that carries it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tauloop.mechanism.cursor import Cursor
from tauloop.mechanism.expression import ZERO, Expression, add, multiply, subtract
from tauloop.mechanism.grammar import MOMENTS
from tauloop.mechanism.kinds import Value
from tauloop.mechanism.model import ZERO_VECTOR, Inertia, SlenderPart, Vector
from tauloop.mechanism.parallel_axes import as_matrices, offset_inertia
from tauloop.mechanism.values import ValueReader

Moments = tuple[Expression, Expression, Expression, Expression, Expression, Expression]

#: Principal moments may violate positivity and the triangle inequality by this share of the trace: a flat body and a
#: thin bar are equalities, and rounding must not refuse them.
DEGENERACY_TOLERANCE = 1e-9
#: No machine has a moment of inertia beyond this, kg m^2; far larger numbers overflow.
_LARGEST = 1e30


def about_origin(mass: Expression, center: Vector, moments: Moments) -> Inertia:
    """Inertia about the frame's origin from that about the mass centre c (same axes): I + m (c.c 1 - c c^T)."""
    x, y, z = center
    xx, yy, zz = (multiply(mass, component, component) for component in center)
    I_xx, I_xy, I_yy, I_xz, I_yz, I_zz = moments
    return Inertia(
        mass=mass,
        first_moment=_times(mass, center),
        second_moment=(
            add(I_xx, yy, zz),
            subtract(I_xy, multiply(mass, x, y)),
            add(I_yy, xx, zz),
            subtract(I_xz, multiply(mass, x, z)),
            subtract(I_yz, multiply(mass, y, z)),
            add(I_zz, xx, yy),
        ),
    )


def _times(mass: Expression, center: Vector) -> Vector:
    x, y, z = (multiply(mass, component) for component in center)
    return x, y, z


def read_inertia(cursor: Cursor, values: ValueReader) -> Inertia | None:
    """Inertia of a body or of a full link; None if something is wrong, which is noted."""
    mass = values.expression(_unchecked(cursor, "mass"))
    center, first_moment = cursor.get("center"), cursor.get("first_moment")
    is_about_origin = cursor.word("about") == "origin"
    if center is not None and first_moment is not None:
        cursor.problem("center and first_moment say the same thing twice", "keep one of them", "first_moment")
    if first_moment is not None and not (is_about_origin and cursor.has("inertia")):
        cursor.problem(
            "with a first moment, the inertia about the origin is needed",
            "add inertia, and about: origin",
            "first_moment",
        )
        return None
    if is_about_origin and not cursor.has("inertia"):
        cursor.problem("about refers to an inertia that is not there", "add inertia, or remove about", "about")
    if center is not None and not center.items():
        if center.text is not None:
            center.problem("a list of three coordinates is needed here", "write [x, y, z]")
        return None
    c = values.vector(center) if center is not None else ZERO_VECTOR
    h = values.vector(first_moment) if first_moment is not None else ZERO_VECTOR
    moments = _read_moments(cursor.get("inertia"), values)
    if mass is None or c is None or h is None or moments is None:
        return None
    if first_moment is not None:
        inertia = Inertia(mass=mass, first_moment=h, second_moment=moments)
    elif is_about_origin:
        inertia = Inertia(mass=mass, first_moment=_times(mass, c), second_moment=moments)
    else:
        inertia = about_origin(mass, c, moments)
    return inertia if cursor.word("unchecked") == "yes" or _is_possible(inertia, cursor, values) else None


def _unchecked(cursor: Cursor, key: str) -> Cursor | None:
    """The value behind a key, of any sign where the figures are not checked."""
    place = cursor.get(key)
    if place is None or not isinstance(place.kind, Value) or cursor.word("unchecked") != "yes":
        return place
    return replace(place, kind=replace(place.kind, sign=""))


def _read_moments(cursor: Cursor | None, values: ValueReader) -> Moments | None:
    """The six moments in Pinocchio's order; what is absent is zero."""
    if cursor is None:
        return (ZERO,) * 6
    if cursor.text is not None:
        cursor.problem("a single moment does not describe a body", "write inertia: {xx: ..., yy: ..., zz: ...}")
        return None
    read: dict[str, Expression] = {}
    for field in MOMENTS.fields:
        if cursor.has(field.name):
            moment = values.expression(cursor.get(field.name))
            if moment is not None:
                read[field.name] = moment
        else:
            read[field.name] = ZERO
    if len(read) < len(MOMENTS.fields):
        return None
    return read["xx"], read["xy"], read["yy"], read["xz"], read["yz"], read["zz"]


def principal_moments(parameters: Sequence[float]) -> tuple[np.ndarray, float] | None:
    """Principal moments (3,) about the mass centre, rising, and what they may be off by rounding, kg m^2.

    Args:
        parameters: the ten inertial parameters about the frame's origin (`Inertia.parameters`).

    Returns:
        None where they are too large or undefined (no mass).
    """
    m, h, about = as_matrices(parameters)
    with np.errstate(all="ignore"):
        central = about - offset_inertia(h) / np.float64(m)
        if not np.max(np.abs(central)) < _LARGEST:
            return None
    allowance = DEGENERACY_TOLERANCE * max(abs(np.trace(about)), abs(np.trace(central)))
    return np.linalg.eigvalsh(central), float(allowance)


def is_possible(parameters: Sequence[float]) -> bool:
    """Whether a body can have these ten inertial parameters about the frame's origin."""
    found = principal_moments(parameters)
    if found is None or parameters[0] <= 0.0:
        return False
    (least, middle, largest), allowance = found
    return bool(least >= -allowance and largest <= least + middle + allowance)


def _is_possible(inertia: Inertia, cursor: Cursor, values: ValueReader) -> bool:
    """Whether a body can have this inertia: principal moments about the mass centre a, b >= 0 and c <= a + b."""
    found = principal_moments([values.nominal(p) for p in inertia.parameters])
    if found is None:
        cursor.problem("the numbers are too large for a body", "check units and exponents")
        return False
    (least, middle, largest), allowance = found
    moments = (
        f"the principal moments of inertia about the mass centre are {least:.6g}, {middle:.6g} and {largest:.6g} kg m^2"
    )
    key = "inertia" if cursor.has("inertia") else ""
    if least < -allowance:
        cursor.problem(
            f"{moments}: none may be negative", "check signs, units, and the point the inertia refers to", key
        )
        return False
    if largest > least + middle + allowance:
        cursor.problem(
            f"{moments}: the largest exceeds the sum of the others, {least + middle:.6g}, which no body has",
            "check units and missing moments (a flat body in x-y has xx + yy = zz)",
            key,
        )
        return False
    return True


def read_slender(cursor: Cursor, values: ValueReader) -> SlenderPart | None:
    """Inertia of a slender link about its own end: h = m s, J = I + m s^2; None if something is wrong, noted."""
    for key in ("first_moment", "about"):
        if cursor.has(key):
            cursor.problem(f"a slender link has no {key}", "give mass, center (a distance) and inertia", key)
    center, moment = cursor.get("center"), cursor.get("inertia")
    if center is None:
        cursor.problem(
            "the mass centre of a slender link is missing", "add center: its distance along the rod", "center"
        )
    elif center.items():
        center.problem("a slender link has its mass centre on the line of the rod", "write one distance")
        center = None
    if moment is not None and moment.text is None and not moment.has("value"):
        moment.problem("a slender link has a single moment of inertia, across the rod", "write one value")
        return None
    mass = values.expression(_unchecked(cursor, "mass"))
    s = values.expression(center)
    across = values.expression(_unchecked(cursor, "inertia")) if moment is not None else ZERO
    if mass is None or s is None or across is None:
        return None
    h = multiply(mass, s)
    return SlenderPart(mass=mass, first_moment=h, second_moment=add(across, multiply(h, s)))
