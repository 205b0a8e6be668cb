"""Readers of joints: axes, reference values, and friction, springs and limits of coordinates.

The values of a joint's coordinates in the reference pose (key `reference`) are also called start
values in messages, because the closing of the loops starts from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace

from tauloop.mechanism.description import yaml_nodes
from tauloop.mechanism.description.cursor import Cursor
from tauloop.mechanism.description.grammar import FREEDOM
from tauloop.mechanism.description.placements import (
    Placements,
    constant_turns,
    quaternion,
    turns_to_axes,
    turns_to_axis,
    with_turns,
)
from tauloop.mechanism.description.units import ANGLE, LENGTH, shown
from tauloop.mechanism.description.values import Element, ValueReader
from tauloop.mechanism.expression import ZERO, Expression, triple
from tauloop.mechanism.model import (
    JOINT_KINDS,
    LIMIT_KINDS,
    AxisName,
    Freedom,
    Friction,
    Joint,
    JointKind,
    LimitKind,
    Spring,
    Turn,
)
from tauloop.mechanism.suggestions import listing, suggestion

#: Keys of the reference values of each kind of joint with several degrees of freedom.
REFERENCE_KEYS: dict[str, tuple[str, ...]] = {
    "cylindrical": ("angle", "slide"),
    "universal": ("first", "second"),
    "spherical": ("turn",),
    "planar": ("x", "y", "angle", "at", "turn"),
    "schoenflies": ("x", "y", "z", "angle", "at", "turn"),
    "translational": ("at",),
    "free": ("at", "turn"),
}
#: Keys of reference values that are scalar coordinates.
SCALARS = ("first", "second", "angle", "slide", "x", "y", "z")
#: Two axes count as perpendicular if the cosine of their angle is at most this. Directions in files
#: have about six digits.
PERPENDICULAR_TOLERANCE = 1e-6

Direction = tuple[float, float, float]


def read_joint(
    name: str, cursor: Cursor, values: ValueReader, placements: Placements
) -> Joint | None:
    """Return a joint, or None after adding a problem."""
    kind_name = cursor.word("type") or ""
    kind = JOINT_KINDS.get(kind_name)
    parent, child = placements.read(cursor.get("parent")), placements.read(cursor.get("child"))
    if parent is not None and child is not None and parent.body == child.body:
        cursor.problem(f"both frames are on {parent.body}", "join two different bodies", "child")
    if kind is None:
        return None
    axes = _read_axes(cursor, kind_name, values)
    reference = read_reference(cursor.get("reference"), kind_name, values)
    freedoms = _read_freedoms(cursor, kind_name, values, reference)
    if parent is None or child is None or axes is None or reference is None:
        return None
    letters, rotations = axes
    return Joint(
        name=name,
        kind=kind_name,
        parent=with_turns(parent, rotations),
        child=with_turns(child, rotations),
        axes=letters,
        reference=reference,
        freedoms=freedoms,
        is_cut=cursor.word("cut") == "yes",
    )


def _read_axes(
    cursor: Cursor, kind: str, values: ValueReader
) -> tuple[tuple[AxisName, ...], tuple[Turn, ...]] | None:
    """Return a joint's axes as coordinate axes of rotated frames, or None after adding a problem.

    Returns:
        The coordinate axes (x, y or z) along which the joint's axes lie after a constant rotation
        of both frames, and this rotation.
    """
    n_axes = JOINT_KINDS[kind].axes
    key, other_key = ("axes", "axis") if n_axes == 2 else ("axis", "axes")
    unexpected_keys = [other_key]
    if n_axes == 0:
        unexpected_keys.append(key)
    for unexpected_key in unexpected_keys:
        if cursor.has(unexpected_key):
            remedy = f"use {key}" if n_axes else "remove the key"
            cursor.problem(f"a {kind} joint has no {unexpected_key}", remedy, unexpected_key)
    if n_axes == 0:
        return (), ()
    axes_cursor = cursor.get(key)
    if axes_cursor is None:
        if not cursor.has(key):
            needed = "two axes" if n_axes == 2 else "an axis"
            example = "axes: [x, y]" if n_axes == 2 else "axis: z"
            cursor.problem(f"a {kind} joint needs {needed}", f"add {example}", key)
        return None
    axis_cursors = axes_cursor.items() if n_axes == 2 else [axes_cursor]
    directions = [_direction(item, values) for item in axis_cursors]
    if n_axes == 1:
        if directions[0] is None:
            return None
        letter, rotations = turns_to_axis(directions[0])
        return (letter,), rotations
    if len(directions) != 2 or directions[0] is None or directions[1] is None:
        return None
    return _universal_axes(axes_cursor, directions[0], directions[1])


def _universal_axes(
    cursor: Cursor, first: Direction, second: Direction
) -> tuple[tuple[AxisName, ...], tuple[Turn, ...]] | None:
    """Return the axes of a universal joint (see `_read_axes`), or None after adding a problem."""
    cosine = sum(a * b for a, b in zip(first, second, strict=True))
    if abs(cosine) > PERPENDICULAR_TOLERANCE:
        angle = math.degrees(math.acos(max(-1.0, min(1.0, cosine))))
        cursor.problem(
            f"the angle between the axes of a universal joint is {angle:.4g} deg, not 90 deg",
            "correct the axes, or write two revolute joints with a massless body between them",
        )
        return None
    first_letter, first_rotation = turns_to_axis(first)
    second_letter, second_rotation = turns_to_axis(second)
    if not first_rotation and not second_rotation:
        return (first_letter, second_letter), ()
    return ("x", "y"), turns_to_axes(first, second)


def _direction(cursor: Cursor, values: ValueReader) -> Direction | None:
    """Return the unit vector of an axis given as a letter (``-x``) or as numbers."""
    if cursor.text is not None:
        letter = cursor.text[-1:]
        if letter not in ("x", "y", "z"):
            return None
        sign = -1.0 if cursor.text.startswith("-") else 1.0
        return (sign * (letter == "x"), sign * (letter == "y"), sign * (letter == "z"))
    return read_direction(cursor, values)


def read_direction(cursor: Cursor, values: ValueReader) -> Direction | None:
    """Return the unit vector along a vector of three numbers, or None after adding a problem."""
    numbers = [values.number(item) for item in cursor.items()]
    components = [number for number in numbers if number is not None]
    if len(components) != 3 or len(numbers) != 3:
        return None
    length = math.hypot(*components)
    if not 0.0 < length < math.inf:
        cursor.problem(
            "the direction is zero or not finite",
            "write three finite numbers that are not all zero",
        )
        return None
    return triple(component / length for component in components)


def read_reference(
    cursor: Cursor | None, kind: str, values: ValueReader
) -> tuple[float, ...] | None:
    """Return the reference values of a joint's coordinates (m, rad, quaternion w x y z).

    Coordinates without a value in the file have the neutral value: zero, or the identity rotation.
    The result is None after adding a problem.
    """
    coordinates = JOINT_KINDS[kind].coordinates
    if cursor is None:
        return JOINT_KINDS[kind].neutral
    if coordinates == ("",):
        if cursor.text is None and not cursor.has("value"):
            cursor.problem(
                f"a {kind} joint has one coordinate, but its start value is a mapping",
                "write a single start value",
            )
            return None
        number = values.number(cursor, is_angular=JOINT_KINDS[kind].angular[0])
        return None if number is None else (number,)
    keys = REFERENCE_KEYS.get(kind, coordinates)
    if not isinstance(cursor.node, yaml_nodes.Mapping):
        cursor.problem(
            f"a {kind} joint has {len(coordinates) or 'no'} coordinates",
            f"write a mapping with {listing(keys)}" if keys else "remove it",
        )
        return None
    is_known = True
    for entry in cursor.node.entries:
        if entry.key not in keys and cursor.get(entry.key) is not None:
            remedy = f"use {listing(keys)}" if keys else "remove it"
            cursor.problem(f"a {kind} joint has no {entry.key}", remedy, entry.key)
            is_known = False
    return _start_values(cursor, kind, values) if is_known else None


def _start_values(cursor: Cursor, kind: str, values: ValueReader) -> tuple[float, ...] | None:
    """Return the reference values of a joint with a mapping of values, or None if invalid."""
    coordinates = JOINT_KINDS[kind].coordinates
    at_cursor = cursor.get("at")
    turn_cursor = cursor.get("turn")
    position: list[float | None] = [0.0, 0.0, 0.0]
    if at_cursor is not None:
        position = [values.number(item) for item in at_cursor.items()]
    rotations = constant_turns(turn_cursor, values)
    if rotations is None or len(position) != 3 or None in position:
        return None
    start_values: dict[str, float | None] = dict(zip(("x", "y", "z"), position, strict=True))
    start_values |= dict(zip(("qw", "qx", "qy", "qz"), quaternion(rotations), strict=True))
    if kind in ("planar", "schoenflies"):
        slides = coordinates[:-1]
        if at_cursor is not None and start_values["z"] != 0.0 and "z" not in slides:
            at_cursor.problem(
                f"a planar joint has z = 0, got {start_values['z']:g} m", "write 0 for z"
            )
        if turn_cursor is not None and any(axis != "z" for axis, _ in rotations):
            turn_cursor.problem(f"a {kind} joint rotates only about z", "write turn: [{z: ...}]")
        if at_cursor is not None and any(cursor.has(slide) for slide in slides):
            cursor.problem(
                f"{', '.join(slides)} and `at` give the same value twice", "keep one of them", "at"
            )
        if turn_cursor is not None and cursor.has("angle"):
            cursor.problem(
                "`angle` and `turn` give the same value twice", "keep one of them", "turn"
            )
        start_values["angle"] = sum(angle for _, angle in rotations)
    for key in SCALARS:
        if key in coordinates and (cursor.has(key) or key not in start_values):
            start_values[key] = values.number(cursor.get(key)) if cursor.has(key) else 0.0
    ordered = [start_values[name] for name in coordinates]
    numbers = [number for number in ordered if number is not None]
    return tuple(numbers) if len(numbers) == len(ordered) else None


def _read_freedoms(
    cursor: Cursor, kind_name: str, values: ValueReader, reference: tuple[float, ...] | None
) -> tuple[Freedom, ...]:
    """Return the properties (`Freedom`) of each degree of freedom of the joint."""
    kind = JOINT_KINDS[kind_name]
    freedoms_cursor = cursor.get("freedoms")
    if kind.velocities == ("",):
        if freedoms_cursor is not None:
            freedoms_cursor.problem(
                f"a {kind_name} joint has one degree of freedom",
                "write these keys on the joint itself",
            )
        return (read_freedom(cursor, values, kind.angular[0], reference[0] if reference else None),)
    example = f"freedoms: {{{kind.velocities[0]}: ...}}" if kind.velocities else ""
    for field in FREEDOM.fields:
        if cursor.has(field.name):
            if example:
                cursor.problem(
                    f"a {kind_name} joint has several degrees of freedom",
                    f"write it under {example}",
                    field.name,
                )
            else:
                cursor.problem(
                    "a fixed joint has no degree of freedom", "remove the key", field.name
                )
    entries = dict(freedoms_cursor.entries()) if freedoms_cursor is not None else {}
    for name, freedom_cursor in entries.items():
        if name not in kind.velocities:
            note_unknown_freedom(freedom_cursor, name, kind_name)
    freedoms = []
    for name, is_angular in zip(kind.velocities, kind.angular, strict=True):
        freedom = Freedom()
        if name in entries:
            start = scalar_start(kind, name, reference)
            is_scalar = _is_scalar(kind, name)
            freedom = read_freedom(entries[name], values, is_angular, start, is_scalar)
        freedoms.append(freedom)
    return tuple(freedoms)


def note_unknown_freedom(cursor: Cursor, name: str, kind: str) -> None:
    """Report that a joint has no degree of freedom with this name."""
    velocities = JOINT_KINDS[kind].velocities
    remedy = suggestion(name, velocities) or (
        f"its degrees of freedom are {listing(velocities)}" if velocities else "remove it"
    )
    cursor.problem(f"a {kind} joint has no degree of freedom {name}", remedy)


def _is_scalar(kind: JointKind, name: str) -> bool:
    """Return whether a velocity is the rate of a scalar coordinate (not so in ball joints)."""
    return name in kind.coordinates


def scalar_start(kind: JointKind, name: str, reference: tuple[float, ...] | None) -> float | None:
    """Return the reference value of the coordinate of a velocity; None if there is none."""
    if not reference or not _is_scalar(kind, name):
        return None
    return reference[kind.coordinates.index(name)]


def read_freedom(
    cursor: Cursor,
    values: ValueReader,
    is_angular: bool,
    start: float | None,
    is_scalar: bool = True,
) -> Freedom:
    """Return friction, spring, inertia, speed and limits of one degree of freedom.

    Invalid elements are reported and omitted.

    Args:
        cursor: a joint, freedom or telescope; they share these keys.
        values: reads the values.
        is_angular: whether the degree of freedom is a rotation.
        start: reference value of its coordinate; None if unknown.
        is_scalar: whether it has a scalar coordinate, which limits and springs need.
    """
    for key in ("limits", "spring"):
        if cursor.has(key) and not is_scalar:
            cursor.problem(
                f"an angular velocity has no coordinate, so it cannot have `{key}`",
                "use a universal or revolute joint",
                key,
            )
    speed = values.number(cursor.get("speed"), is_angular)
    freedom = Freedom(
        friction=read_friction(cursor.get("friction"), values, is_angular),
        spring=_read_spring(cursor.get("spring"), values, is_angular),
        inertia=values.expression(cursor.get("inertia"), is_angular),
        speed=math.inf if speed is None else speed,
    )
    return with_limits(freedom, cursor.get("limits"), values, is_angular, start)


def with_limits(
    freedom: Freedom,
    cursor: Cursor | None,
    values: ValueReader,
    is_angular: bool,
    start: float | None,
) -> Freedom:
    """Return a degree of freedom with limits read from a cursor; unchanged if there are none.

    A reference value outside the limits is reported.
    """
    kind: LimitKind = "stop"
    if cursor is not None and isinstance(cursor.node, yaml_nodes.Mapping):
        kinds = [name for name in LIMIT_KINDS if cursor.has(name)]
        if len(kinds) != 1:
            what = f"both are given: {listing(kinds)}" if kinds else "the range is missing"
            cursor.problem(
                what,
                "write [lower, upper] for stops, or {drawing: [lower, upper]} for a plot range",
            )
            return freedom
        kind = kinds[0]
        cursor = cursor.get(kind)
    ends = values.range(cursor, is_angular)
    if cursor is None or ends is None:
        return freedom
    if start is not None and not ends[0] <= start <= ends[1]:
        dimension = ANGLE if is_angular else LENGTH
        limits = f"{shown(ends[0], dimension)} to {shown(ends[1], dimension)}"
        cursor.problem(
            f"the start value {shown(start, dimension)} is outside the limits {limits}",
            "widen the limits or correct the reference",
        )
    return replace(freedom, lower=ends[0], upper=ends[1], limit=kind)


def read_friction(cursor: Cursor | None, values: ValueReader, is_angular: bool) -> Friction | None:
    """Return the friction of an element; None if there is none."""
    return read_friction_law(Friction, cursor, values, is_angular)


def read_friction_law(
    law: type[Element], cursor: Cursor | None, values: ValueReader, is_angular: bool
) -> Element | None:
    """Return the friction of an element as an instance of `law`; None if there is none.

    Invalid combinations of terms are reported.
    """
    if cursor is None:
        return None
    friction = values.element(law, cursor, is_angular)
    terms = {
        field.name: getattr(friction, field.name) for field in fields(law) if cursor.has(field.name)
    }
    for key, what, remedy in friction_problems(terms, values.nominal):
        cursor.problem(what, remedy, key)
    return friction


def _read_spring(cursor: Cursor | None, values: ValueReader, is_angular: bool) -> Spring | None:
    """Return a spring; None if there is none or after adding a problem."""
    if cursor is None:
        return None
    stiffness = values.expression(cursor.get("stiffness"), is_angular)
    rest = values.expression(cursor.get("rest"), is_angular)
    if rest is None and not cursor.has("rest"):
        rest = ZERO  # side files may omit it
    return None if stiffness is None or rest is None else Spring(stiffness=stiffness, rest=rest)


#: (term, other): a friction term that requires another term.
_REQUIRED_TERMS = (
    ("static", "coulomb"),
    ("static", "stribeck"),
    ("stribeck", "static"),
    ("viscous_asymmetry", "viscous"),
    ("coulomb_asymmetry", "coulomb"),
)
#: (term, other, reason): a friction term that must not exceed another term.
_UPPER_BOUNDS = (
    ("coulomb", "static", "static friction is never below Coulomb friction"),
    ("viscous_asymmetry", "viscous", "friction would drive the motion in one direction"),
    ("coulomb_asymmetry", "coulomb", "friction would drive the motion in one direction"),
)


def friction_problems(
    terms: Mapping[str, Expression | None], nominal: Callable[[Expression], float]
) -> Iterator[tuple[str, str, str]]:
    """Yield (term, what is wrong, remedy) for each invalid term of a friction law.

    Args:
        terms: the terms of the file by their names in `Friction`; None for invalid values.
        nominal: value of an expression, SI.
    """
    for key, other in _REQUIRED_TERMS:
        if key in terms and other not in terms:
            yield key, f"`{key}` is given without `{other}`", f"add `{other}`"
    for key, other, reason in _UPPER_BOUNDS:
        smaller_term = terms.get(key)
        larger_term = terms.get(other)
        if (
            smaller_term is not None
            and larger_term is not None
            and abs(nominal(smaller_term)) > nominal(larger_term)
        ):
            smaller = abs(nominal(smaller_term))
            larger = nominal(larger_term)
            comparison = f"{key} is {smaller:g}, and {other} {larger:g} (SI)"
            yield key, f"{comparison}: {reason}", "correct one of the two"
