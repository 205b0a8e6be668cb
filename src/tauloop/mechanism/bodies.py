"""Bodies and rods of a machine file: inertias in any form, and rods of fixed or variable length.

Inertias become parameters about the origin of the frame that carries them. The parallel axis theorem
is implemented here for all modules. A rod with the key `tension` is a cable. A rod without it pushes
as well as pulls, regardless of its name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tauloop.common.errors import Problem
from tauloop.mechanism.description.cursor import Cursor, Value
from tauloop.mechanism.description.placements import Placements, constant_vector, rotated
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.expression import ZERO, Expression, add, multiply, subtract
from tauloop.mechanism.joints import read_direction, read_freedom
from tauloop.mechanism.model import (
    MOMENT_ENTRIES,
    ZERO_VECTOR,
    Body,
    Inertia,
    Mechanism,
    Placement,
    Rod,
    SlenderPart,
    Telescope,
    Vector,
)
from tauloop.mechanism.tension import Tension

Array = NDArray[np.float64]


def as_matrices(parameters: Iterable[float]) -> tuple[float, Array, Array]:
    """Return mass (kg), first moment (3,) and inertia (3, 3) from the ten inertial parameters.

    The first moment is h = m c, kg m; the inertia refers to the origin, kg m^2.

    Args:
        parameters: m, h_x, h_y, h_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz (`Inertia.parameters`).
    """
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = parameters
    return m, np.array([hx, hy, hz]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def offset_inertia(p: Array) -> Array:
    """Return the inertia (3, 3) of a unit point mass at p (3,) about the origin: p.p 1 - p p^T."""
    return np.asarray(p @ p * np.eye(3) - np.outer(p, p))


def about_center(mass: float, first_moment: Array, about_origin: Array) -> tuple[Array, Array]:
    """Return the mass centre and the inertia about it: c = h / m (3,), m; I - m (c.c 1 - c c^T)."""
    c = first_moment / mass
    return c, about_origin - mass * offset_inertia(c)


#: Principal moments may violate positivity and the triangle inequality by this share of the trace.
#: Flat bodies and thin bars satisfy them with equality, and rounding must not refuse them.
DEGENERACY_TOLERANCE = 1e-9
#: Largest moment of inertia that is accepted, kg m^2; far larger numbers overflow.
_MAX_MOMENT = 1e30


def about_origin(mass: Expression, center: Vector, moments: Sequence[Expression]) -> Inertia:
    """Return the inertia about the frame's origin: I + m (c.c 1 - c c^T).

    Args:
        mass: m.
        center: mass centre c.
        moments: inertia I about the mass centre, in the axes of the frame.
    """
    x, y, z = center
    xx, yy, zz = (multiply(mass, component, component) for component in center)
    I_xx, I_xy, I_yy, I_xz, I_yz, I_zz = moments
    first = (multiply(mass, component) for component in center)
    return Inertia.of(
        (
            mass,
            *first,
            add(I_xx, yy, zz),
            subtract(I_xy, multiply(mass, x, y)),
            add(I_yy, xx, zz),
            subtract(I_xz, multiply(mass, x, z)),
            subtract(I_yz, multiply(mass, y, z)),
            add(I_zz, xx, yy),
        )
    )


def read_inertia(cursor: Cursor, values: ValueReader) -> Inertia | None:
    """Return the inertia of a body or of a full link, or None after noting what is wrong."""
    mass = values.expression(_unchecked(cursor, "mass"))
    center, first_moment = cursor.get("center"), cursor.get("first_moment")
    is_about_origin = cursor.word("about") == "origin"
    if center is not None and first_moment is not None:
        cursor.problem(
            "center and first_moment give the same value twice", "keep one of them", "first_moment"
        )
    if first_moment is not None and not (is_about_origin and cursor.has("inertia")):
        cursor.problem(
            "with a first moment, the inertia about the origin is needed",
            "add inertia, and about: origin",
            "first_moment",
        )
        return None
    if is_about_origin and not cursor.has("inertia"):
        cursor.problem("about is given without an inertia", "add inertia, or remove about", "about")
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
        inertia = Inertia.of((mass, *h, *moments))
    elif is_about_origin:
        inertia = Inertia.of((mass, *(multiply(mass, component) for component in c), *moments))
    else:
        inertia = about_origin(mass, c, moments)
    return (
        inertia
        if cursor.word("unchecked") == "yes" or _is_possible(inertia, cursor, values)
        else None
    )


def _unchecked(cursor: Cursor, key: str) -> Cursor | None:
    """Return the value of a key; it may have any sign where the numbers are not checked."""
    place = cursor.get(key)
    if place is None or not isinstance(place.kind, Value) or cursor.word("unchecked") != "yes":
        return place
    return replace(place, kind=replace(place.kind, sign=""))


def _read_moments(cursor: Cursor | None, values: ValueReader) -> tuple[Expression, ...] | None:
    """Return the six moments in Pinocchio's order; missing ones are zero."""
    if cursor is None:
        return (ZERO,) * 6
    if cursor.text is not None:
        cursor.problem(
            "a single moment does not describe a body", "write inertia: {xx: ..., yy: ..., zz: ...}"
        )
        return None
    keys = [f"{'xyz'[i]}{'xyz'[j]}" for i, j in MOMENT_ENTRIES]
    read = [values.expression(cursor.get(key)) if cursor.has(key) else ZERO for key in keys]
    moments = tuple(moment for moment in read if moment is not None)
    return moments if len(moments) == len(read) else None


def principal_moments(parameters: Sequence[float]) -> tuple[np.ndarray, float] | None:
    """Return the principal moments (3,) about the mass centre and their rounding error, kg m^2.

    Args:
        parameters: the ten inertial parameters about the frame's origin (`Inertia.parameters`).

    Returns:
        The moments in ascending order and the rounding error; None where they are too large or
        undefined (no mass).
    """
    m, h, about = as_matrices(parameters)
    with np.errstate(all="ignore"):
        central = about - offset_inertia(h) / np.float64(m)
        if not np.max(np.abs(central)) < _MAX_MOMENT:
            return None
    allowance = DEGENERACY_TOLERANCE * max(abs(np.trace(about)), abs(np.trace(central)))
    return np.linalg.eigvalsh(central), float(allowance)


def is_possible(parameters: Sequence[float]) -> bool:
    """Return whether a body can have these ten inertial parameters about the frame's origin."""
    moments = principal_moments(parameters)
    if moments is None or parameters[0] <= 0.0:
        return False
    (least, middle, largest), allowance = moments
    return bool(least >= -allowance and largest <= least + middle + allowance)


def _is_possible(inertia: Inertia, cursor: Cursor, values: ValueReader) -> bool:
    """Return whether a body can have this inertia; note what is wrong otherwise.

    Principal moments about the mass centre need a, b >= 0 and c <= a + b.
    """
    principal = principal_moments([values.nominal(p) for p in inertia.parameters])
    if principal is None:
        cursor.problem("the numbers are too large for a body", "check units and exponents")
        return False
    (least, middle, largest), allowance = principal
    moments = (
        f"the principal moments of inertia about the mass centre are {least:.6g}, {middle:.6g} "
        f"and {largest:.6g} kg m^2"
    )
    key = "inertia" if cursor.has("inertia") else ""
    if least < -allowance:
        cursor.problem(
            f"{moments}: none may be negative",
            "check signs, units, and the point the inertia refers to",
            key,
        )
        return False
    if largest > least + middle + allowance:
        cursor.problem(
            f"{moments}: the largest exceeds the sum of the others, {least + middle:.6g}; no body has that",
            "check units and missing moments (a flat body in x-y has xx + yy = zz)",
            key,
        )
        return False
    return True


def read_slender(cursor: Cursor, values: ValueReader) -> SlenderPart | None:
    """Return the inertia of a slender link about its own end, or None after noting what is wrong.

    h = m s, J = I + m s^2.
    """
    for key in ("first_moment", "about"):
        if cursor.has(key):
            cursor.problem(
                f"a slender link has no {key}", "give mass, center (a distance) and inertia", key
            )
    center, moment = cursor.get("center"), cursor.get("inertia")
    if center is None:
        cursor.problem(
            "the mass centre of a slender link is missing",
            "add center: its distance along the rod",
            "center",
        )
    elif center.items():
        center.problem(
            "a slender link has its mass centre on the line of the rod", "write one distance"
        )
        center = None
    if moment is not None and moment.text is None and not moment.has("value"):
        moment.problem(
            "a slender link has a single moment of inertia, across the rod", "write one value"
        )
        return None
    mass = values.expression(_unchecked(cursor, "mass"))
    s = values.expression(center)
    across = values.expression(_unchecked(cursor, "inertia")) if moment is not None else ZERO
    if mass is None or s is None or across is None:
        return None
    h = multiply(mass, s)
    return SlenderPart(mass=mass, first_moment=h, second_moment=add(across, multiply(h, s)))


def read_rod(name: str, cursor: Cursor, values: ValueReader, placements: Placements) -> Rod | None:
    """Return a rod, or None after noting what is wrong."""
    start, end = placements.read(cursor.get("from")), placements.read(cursor.get("to"))
    if start is not None and end is not None and start.body == end.body:
        cursor.problem(f"both ends are on {start.body}", "join two different bodies", "to")
    is_telescopic, model = cursor.has("telescopic"), cursor.word("model")
    if is_telescopic and cursor.has("length"):
        cursor.problem("the rod has a length and is telescopic", "keep one of them", "length")
    elif not is_telescopic and not cursor.has("length"):
        cursor.problem(
            "the rod has neither length nor telescopic",
            "add length for a fixed rod, or telescopic",
            "length",
        )
    length = values.expression(cursor.get("length"))
    telescope = _read_telescope(cursor.get("telescopic"), values)
    lower, upper = _read_parts(cursor, model, is_telescopic, values)
    first_axis = _read_first_axis(cursor, model, start, values)
    tension = read_tension(cursor.get("tension"), values)
    if start is None or end is None or (length is None and telescope is None):
        return None
    spin: Literal["universal", "none"] = (
        "universal" if cursor.word("spin") == "universal" else "none"
    )
    return Rod(
        name=name,
        start=start,
        end=end,
        length=None if is_telescopic else length,
        telescope=telescope,
        lower=lower,
        upper=upper,
        spin=spin,
        first_axis=first_axis,
        tension=tension,
    )


def _read_telescope(cursor: Cursor | None, values: ValueReader) -> Telescope | None:
    if cursor is None:
        return None
    reference = values.number(cursor.get("reference"))
    freedom = read_freedom(cursor, values, is_angular=False, start=reference)
    if cursor.has("limits") and freedom.lower <= 0.0 and freedom.upper < float("inf"):
        cursor.problem(
            f"the shortest length must be positive, got {freedom.lower:g} m",
            "raise the lower limit",
            "limits",
        )
    return None if reference is None else Telescope(reference=reference, freedom=freedom)


def _read_parts(
    cursor: Cursor, model: str | None, is_telescopic: bool, values: ValueReader
) -> tuple[SlenderPart | Inertia | None, SlenderPart | Inertia | None]:
    """Return the inertias at A and at B.

    Missing keys, and keys that do not belong to this kind of rod, are noted.
    """
    allowed = _inertia_keys(model, is_telescopic)
    for key in ("link", "lower", "upper"):
        if cursor.has(key) and key not in allowed:
            if model == "massless":
                cursor.problem(
                    "a massless rod has no inertia", "remove the key, or change the model", key
                )
            else:
                cursor.problem(
                    f"a {'telescopic' if is_telescopic else 'fixed'} rod has no {key}",
                    f"use {' or '.join(allowed)}",
                    key,
                )
    if allowed and model in ("slender", "full") and not any(cursor.has(key) for key in allowed):
        cursor.problem(
            f"the inertia of a {model} rod is missing",
            f"add {' or '.join(allowed)}, or write model: massless",
            allowed[0],
        )
    read = read_slender if model == "slender" else read_inertia
    inertias: dict[str, SlenderPart | Inertia | None] = {}
    for key in allowed:
        place = cursor.get(key)
        if place is not None:
            inertias[key] = read(place, values)
    return inertias.get("link") or inertias.get("lower"), inertias.get("upper")


def _inertia_keys(model: str | None, is_telescopic: bool) -> tuple[str, ...]:
    """Return the keys that may hold the inertias of a rod of this model."""
    if model == "massless":
        return ()
    return ("lower", "upper") if is_telescopic else ("link",)


def _read_first_axis(
    cursor: Cursor, model: str | None, start: Placement | None, values: ValueReader
) -> Vector | None:
    """Return the first axis of the universal joint at A, in coordinates of A's body."""
    for key in ("first_axis", "spin"):
        if model == "full" and not cursor.has(key):
            example = "[0, 0, 1]" if key == "first_axis" else "universal"
            cursor.problem(f"a full rod needs {key}", f"add {key}: {example}", key)
        elif model in ("slender", "massless") and cursor.has(key):
            cursor.problem(
                f"a {model} rod has no {key}", "remove the key, or write model: full", key
            )
    place = cursor.get("first_axis")
    direction = read_direction(place, values) if place is not None else None
    if model != "full" or direction is None or start is None:
        return None
    return rotated(start.turns, constant_vector(direction))


#: Words in the names of rods, legs and motors that indicate a cable.
_WORDS = re.compile(
    r"(?<![a-z])(cable|rope|wire|tendon|tether|winch)(s|es)?(?![a-z])", re.IGNORECASE
)


def read_tension(cursor: Cursor | None, values: ValueReader) -> Tension | None:
    """Return the bounds of a cable; None without them or after noting what is wrong."""
    if cursor is None:
        return None
    least, greatest, restitution = (
        values.number(cursor.get(key)) for key in ("least", "greatest", "restitution")
    )
    stiffness, damping = (values.expression(cursor.get(key)) for key in ("stiffness", "damping"))
    if least is not None and greatest is not None and not greatest > least:
        remedy = (
            "exchange them"
            if greatest < least
            else "leave a range: forces that are to be kept exactly are preloads"
        )
        cursor.problem(
            f"the greatest tension, {greatest:g} N, is not above the least, {least:g} N",
            remedy,
            "greatest",
        )
    if cursor.has("damping") and not cursor.has("stiffness"):
        cursor.problem(
            "a cable without stiffness does not stretch, so nothing is damped",
            "add stiffness",
            "damping",
        )
    if cursor.has("restitution") and cursor.has("stiffness"):
        cursor.problem(
            "a cable with stiffness rebounds by itself", "keep one of them", "restitution"
        )
    if restitution is not None and not 0.0 <= restitution <= 1.0:
        cursor.problem(
            f"must be 0 to 1, got {restitution:g}",
            "give the share of its speed that is left",
            "restitution",
        )
    if least is None:
        return None
    return Tension(
        least=least,
        greatest=math.inf if greatest is None else greatest,
        stiffness=stiffness,
        damping=damping,
        restitution=restitution,
    )


def cables(mechanism: Mechanism) -> dict[str, Tension]:
    """Return the tensions of the rods that are cables, by rod name."""
    return {rod.name: rod.tension for rod in mechanism.rods if rod.tension is not None}


def struts(mechanism: Mechanism) -> Mechanism:
    """Return the machine with its cables replaced by rods that also push.

    A machine without cables is returned unchanged.
    """
    if not cables(mechanism):
        return mechanism
    return replace(mechanism, rods=tuple(replace(rod, tension=None) for rod in mechanism.rods))


def cable_problems(mechanism: Mechanism) -> list[Problem]:
    """Return the problem of a calculation that would let cables push; none without cables."""
    names = list(cables(mechanism))
    if not names:
        return []
    what = (
        f"is a cable{' (one of several)' if len(names) > 1 else ''}, which would be let push here"
    )
    remedy = "use `simulate_cables` (by command: `tauloop simulate`), or take `tension` away to treat it as a strut"
    return [Problem(where=names[0], what=what, remedy=remedy, file=mechanism.file)]


def dry_friction(mechanism: Mechanism) -> list[tuple[str, str]]:
    """Return the elements with friction that jumps at zero speed, each with its key in the file."""
    freedoms = [(name, freedom.friction) for name, freedom in mechanism.freedoms.items()]
    freedoms += [(actuator.name, actuator.friction) for actuator in mechanism.actuators]
    freedoms += [(loss.name, loss.friction) for loss in mechanism.losses]
    elements = []
    for name, friction in freedoms:
        for key in ("coulomb", "static", "coulomb_asymmetry"):
            term = getattr(friction, key, None)
            if term is not None and mechanism.value(term) != 0.0:
                elements.append((name, key))
    return elements


def called_cables(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the rods named as cables, directly or by their motors, that have no `tension`.

    Such rods push as well as pull.
    """
    motors: dict[str, str] = {}
    for actuator in mechanism.actuators:
        for name, _ in actuator.drives:
            motors[name] = f"{motors.get(name, '')} {actuator.name}"
    return tuple(
        rod.name
        for rod in mechanism.rods
        if rod.tension is None
        and _WORDS.search(f"{rod.name} {motors.get(rod.name, '')}".replace("_", " "))
    )


def unbounded_note(mechanism: Mechanism) -> tuple[Problem, ...]:
    """Return a note on rods that are named as cables but would push; empty if there are none."""
    names = called_cables(mechanism)
    if not names:
        return ()
    rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (
        Problem(
            where="rods",
            what=f"{', '.join(names[:3])}{rest}: called cables, but without bounds they push as well as they pull",
            remedy="give them `tension: {least: ..., greatest: ...}`, or another name if they are struts",
            file=mechanism.file,
        ),
    )


def read_body(name: str, cursor: Cursor, values: ValueReader) -> Body | None:
    """Return a body, or None after noting what is wrong."""
    if cursor.text is not None:
        return Body(name=name)
    place = cursor.get("mass")
    is_point = not any(
        cursor.has(key) for key in ("center", "first_moment", "inertia", "unchecked")
    )
    if is_point and place is not None and isinstance(place.kind, Value):
        mass = values.expression(replace(place, kind=replace(place.kind, sign="")))
        if mass is None or values.nominal(mass) == 0:
            return None if mass is None else Body(name=name)
    inertia = read_inertia(cursor, values)
    return None if inertia is None else Body(name=name, inertia=inertia)


def called_winches(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the names of the motors that are named as winches and drive no rod.

    Such motors move lines over pulleys.
    """
    rods = {rod.name for rod in mechanism.rods}
    winches = []
    for actuator in mechanism.actuators:
        driven = {name for name, _ in actuator.drives}
        if _WORDS.search(actuator.name) and not driven & rods:
            winches.append(actuator.name)
    return tuple(winches)
