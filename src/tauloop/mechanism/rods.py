"""Rods of a machine file: two-point links of fixed or telescopic length, with one of three models of inertia."""

from __future__ import annotations

from typing import Literal

from tauloop.mechanism.cables import read_tension
from tauloop.mechanism.cursor import Cursor
from tauloop.mechanism.inertias import read_inertia, read_slender
from tauloop.mechanism.joints import read_direction, read_freedom
from tauloop.mechanism.model import Inertia, Placement, Rod, SlenderPart, Telescope, Vector
from tauloop.mechanism.placements import Placements, constant_vector
from tauloop.mechanism.rotation import rotated
from tauloop.mechanism.values import ValueReader


def read_rod(name: str, cursor: Cursor, values: ValueReader, placements: Placements) -> Rod | None:
    """A rod; None if something is wrong, which is noted."""
    start, end = placements.read(cursor.get("from")), placements.read(cursor.get("to"))
    if start is not None and end is not None and start.body == end.body:
        cursor.problem(f"both ends are on {start.body}", "join two different bodies", "to")
    is_telescopic, model = cursor.has("telescopic"), cursor.word("model")
    if is_telescopic and cursor.has("length"):
        cursor.problem("the rod has a length and is telescopic", "keep one of them", "length")
    elif not is_telescopic and not cursor.has("length"):
        cursor.problem(
            "the rod has neither length nor telescopic", "add length for a fixed rod, or telescopic", "length"
        )
    length = values.expression(cursor.get("length"))
    telescope = _read_telescope(cursor.get("telescopic"), values)
    lower, upper = _read_parts(cursor, model, is_telescopic, values)
    first_axis = _read_first_axis(cursor, model, start, values)
    tension = read_tension(cursor.get("tension"), values)
    if start is None or end is None or (length is None and telescope is None):
        return None
    spin: Literal["universal", "none"] = "universal" if cursor.word("spin") == "universal" else "none"
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
            f"the shortest length must be positive, got {freedom.lower:g} m", "raise the lower limit", "limits"
        )
    return None if reference is None else Telescope(reference=reference, freedom=freedom)


def _read_parts(
    cursor: Cursor, model: str | None, is_telescopic: bool, values: ValueReader
) -> tuple[SlenderPart | Inertia | None, SlenderPart | Inertia | None]:
    """Inertia at A and at B; keys that do not belong to this rod, and missing ones, are noted."""
    allowed = () if model == "massless" else ("lower", "upper") if is_telescopic else ("link",)
    for key in ("link", "lower", "upper"):
        if cursor.has(key) and key not in allowed:
            if model == "massless":
                cursor.problem("a massless rod has no inertia", "remove the key, or change the model", key)
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
    parts = {key: read(place, values) for key in allowed if (place := cursor.get(key)) is not None}
    return parts.get("link") or parts.get("lower"), parts.get("upper")


def _read_first_axis(cursor: Cursor, model: str | None, start: Placement | None, values: ValueReader) -> Vector | None:
    """First axis of the universal joint at A in coordinates of A's body."""
    for key in ("first_axis", "spin"):
        if model == "full" and not cursor.has(key):
            example = "[0, 0, 1]" if key == "first_axis" else "universal"
            cursor.problem(f"a full rod needs {key}", f"add {key}: {example}", key)
        elif model in ("slender", "massless") and cursor.has(key):
            cursor.problem(f"a {model} rod has no {key}", "remove the key, or write model: full", key)
    place = cursor.get("first_axis")
    direction = read_direction(place, values) if place is not None else None
    if model != "full" or direction is None or start is None:
        return None
    return rotated(start.turns, constant_vector(direction))
