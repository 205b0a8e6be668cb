"""Readers of bodies and rods: inertias in all forms, and rods of fixed or variable length.

Inertias are converted to inertial parameters about the origin of their frame.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from tauloop.mechanism.description.cursor import Cursor, Value
from tauloop.mechanism.description.elastic_grammar import SECTION_KEYS
from tauloop.mechanism.description.placements import Placements, constant_vector, rotated
from tauloop.mechanism.description.sections.joints import read_direction, read_freedom
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.expression import ZERO, Expression, add, multiply
from tauloop.mechanism.inertia import about_origin, principal_moments
from tauloop.mechanism.model import (
    MOMENT_ENTRIES,
    ZERO_VECTOR,
    Body,
    Drum,
    Inertia,
    Placement,
    Rod,
    SlenderPart,
    Telescope,
    Tension,
    Vector,
)

if TYPE_CHECKING:  # few machines have elastic data
    from tauloop.mechanism.description.sections.elastic import ElasticReader
    from tauloop.mechanism.elastic.beams import Beam


def read_inertia(cursor: Cursor, values: ValueReader) -> Inertia | None:
    """Return the inertia of a body or of a full link, or None after adding a problem."""
    mass = values.expression(_unchecked(cursor, "mass"))
    center = cursor.get("center")
    first_moment = cursor.get("first_moment")
    is_about_origin = cursor.word("about") == "origin"
    if center is not None and first_moment is not None:
        cursor.problem(
            "`center` and `first_moment` give the same value twice",
            "keep one of them",
            "first_moment",
        )
    if first_moment is not None and not (is_about_origin and cursor.has("inertia")):
        cursor.problem(
            "with `first_moment`, the inertia about the origin is required",
            "add `inertia` and `about: origin`",
            "first_moment",
        )
        return None
    if is_about_origin and not cursor.has("inertia"):
        cursor.problem(
            "`about` is given without `inertia`", "add `inertia`, or remove `about`", "about"
        )
    if center is not None and not center.items():
        if center.text is not None:
            center.problem("must be a list of three coordinates", "write [x, y, z]")
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
    is_unchecked = cursor.word("unchecked") == "yes"
    return inertia if is_unchecked or _is_possible(inertia, cursor, values) else None


def _unchecked(cursor: Cursor, key: str) -> Cursor | None:
    """Return the cursor of a key; the value may have any sign if `unchecked` is yes."""
    value_cursor = cursor.get(key)
    if (
        value_cursor is None
        or not isinstance(value_cursor.kind, Value)
        or cursor.word("unchecked") != "yes"
    ):
        return value_cursor
    return replace(value_cursor, kind=replace(value_cursor.kind, sign=""))


def _read_moments(cursor: Cursor | None, values: ValueReader) -> tuple[Expression, ...] | None:
    """Return the six moments in Pinocchio's order; missing moments are zero."""
    if cursor is None:
        return (ZERO,) * 6
    if cursor.text is not None:
        cursor.problem(
            "a body needs more than a single moment of inertia",
            "write `inertia: {xx: ..., yy: ..., zz: ...}`",
        )
        return None
    keys = [f"{'xyz'[i]}{'xyz'[j]}" for i, j in MOMENT_ENTRIES]
    expressions = [values.expression(cursor.get(key)) if cursor.has(key) else ZERO for key in keys]
    moments = tuple(moment for moment in expressions if moment is not None)
    return moments if len(moments) == len(expressions) else None


def _is_possible(inertia: Inertia, cursor: Cursor, values: ValueReader) -> bool:
    """Return whether a rigid body can have this inertia; otherwise add a problem.

    The principal moments a <= b <= c about the mass center must satisfy a >= 0 and c <= a + b.
    """
    principal = principal_moments([values.nominal(p) for p in inertia.parameters])
    if principal is None:
        cursor.problem(
            "mass, mass center or moments of inertia are too large", "check units and exponents"
        )
        return False
    (smallest, middle, largest), allowance = principal
    if abs(smallest) <= allowance:
        smallest = 0.0  # a rounding error
    text = (
        f"the principal moments of inertia about the mass center are {smallest:.6g}, {middle:.6g} "
        f"and {largest:.6g} kg m^2"
    )
    key = "inertia" if cursor.has("inertia") else ""
    if smallest < -allowance:
        cursor.problem(
            f"{text}: none may be negative",
            "check signs, units, and the point the inertia refers to",
            key,
        )
        return False
    if largest > smallest + middle + allowance:
        cursor.problem(
            f"{text}: the largest exceeds the sum of the others, {smallest + middle:.6g}, which is "
            "impossible",
            "check units and missing moments (a flat body in x-y has xx + yy = zz); in a machine that "
            "moves in one plane, write `unchecked: yes` next to `mass` to leave moments out",
            key,
        )
        return False
    return True


def read_slender(cursor: Cursor, values: ValueReader) -> SlenderPart | None:
    """Return the inertia of a slender link about its end, or None after adding a problem.

    h = m s and J = I + m s^2, where s is the distance of the mass center from that end.
    """
    for key in ("first_moment", "about"):
        if cursor.has(key):
            cursor.problem(
                f"a slender link has no {key}",
                "give `mass`, `center` (a distance) and `inertia`",
                key,
            )
    center = cursor.get("center")
    moment = cursor.get("inertia")
    if center is None:
        cursor.problem(
            "the mass center of a slender link is missing",
            "add `center`: its distance along the rod",
            "center",
        )
    elif center.items():
        center.problem(
            "the mass center of a slender link lies on the line of the rod", "write one distance"
        )
        center = None
    if moment is not None and moment.text is None and not moment.has("value"):
        moment.problem(
            "a slender link has a single moment of inertia, the transverse one", "write one value"
        )
        return None
    mass = values.expression(_unchecked(cursor, "mass"))
    s = values.expression(center)
    transverse = values.expression(_unchecked(cursor, "inertia")) if moment is not None else ZERO
    if mass is None or s is None or transverse is None:
        return None
    h = multiply(mass, s)
    return SlenderPart(mass=mass, first_moment=h, second_moment=add(transverse, multiply(h, s)))


def read_rod(
    name: str,
    cursor: Cursor,
    values: ValueReader,
    placements: Placements,
    elastic: ElasticReader | None = None,
) -> Rod | None:
    """Return a rod, or None after adding a problem.

    Args:
        name: name of the rod.
        cursor: cursor of the rod.
        values: reads values.
        placements: reads frames.
        elastic: reads sections; None for a file without them.
    """
    start, end = placements.read(cursor.get("from")), placements.read(cursor.get("to"))
    drum = _read_drum(cursor, values)
    if start is not None and end is not None and start.body == end.body:
        cursor.problem(f"both ends are on {start.body}", "join two different bodies", "to")
    is_telescopic = cursor.has("telescopic")
    model = cursor.word("model")
    if is_telescopic and cursor.has("length"):
        cursor.problem("the rod has both `length` and `telescopic`", "keep one of them", "length")
    elif not is_telescopic and not cursor.has("length"):
        cursor.problem(
            "the rod has neither `length` nor `telescopic`",
            "add `length` for a fixed rod, or `telescopic`",
            "length",
        )
    length = values.expression(cursor.get("length"))
    telescope = _read_telescope(cursor.get("telescopic"), values)
    lower, upper = _read_parts(cursor, model, is_telescopic, values)
    beams: tuple[Beam | None, Beam | None] = (None, None)
    contact: tuple[Expression | None, Expression | None] = (None, None)
    if elastic is not None:
        beams = elastic.rod_beams(cursor, length, telescope, (lower, upper))
        contact = elastic.contact(cursor)
        lower, upper = _with_section_mass((lower, upper), beams, model)
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
        drum=drum,
        lower_beam=beams[0],
        upper_beam=beams[1],
        contact=contact,
    )


def _with_section_mass(
    parts: tuple[SlenderPart | Inertia | None, SlenderPart | Inertia | None],
    beams: tuple[Beam | None, Beam | None],
    model: str | None,
) -> tuple[SlenderPart | Inertia | None, SlenderPart | Inertia | None]:
    """Return the inertias of both parts of a rod; absent inertias follow from the sections."""
    if beams == (None, None):
        return parts
    from tauloop.mechanism.elastic.inertia import link_inertia

    complete: list[SlenderPart | Inertia | None] = []
    for part, beam, is_upper in zip(parts, beams, (False, True), strict=True):
        if part is None and beam is not None and model in ("slender", "full"):
            part = link_inertia(beam, is_full=model == "full", is_upper=is_upper)
        complete.append(part)
    return complete[0], complete[1]


def _read_drum(cursor: Cursor, values: ValueReader) -> Drum | None:
    """Return the drum of a rod; None if there is none or after adding a problem."""
    drum_cursor = cursor.get("drum")
    if drum_cursor is None:
        return None
    if cursor.word("model") != "massless":
        cursor.problem(
            "a rod with a drum must be massless",
            "write `model: massless`, or remove `drum`",
            "drum",
        )
    radius = values.expression(drum_cursor.get("radius"))
    if radius is None:
        return None
    return Drum(radius=radius, is_clockwise=drum_cursor.word("winds") == "clockwise")


def _read_telescope(cursor: Cursor | None, values: ValueReader) -> Telescope | None:
    """Return the length coordinate of a rod; None if it is fixed or after adding a problem."""
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
    """Return the inertias of the link or lower part (at the start), and of the upper part.

    Report missing keys, and keys that do not belong to this kind of rod.
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
    has_inertia = cursor.has_any(allowed) or cursor.has_any(SECTION_KEYS)
    if allowed and model in ("slender", "full") and not has_inertia:
        cursor.problem(
            f"the inertia of a {model} rod is missing",
            f"add {' or '.join(allowed)}, or a section such as `tube`, or write `model: massless`",
            allowed[0],
        )
    read = read_slender if model == "slender" else read_inertia
    inertias: dict[str, SlenderPart | Inertia | None] = {}
    for key in allowed:
        part_cursor = cursor.get(key)
        follows_from_section = (
            part_cursor is not None
            and part_cursor.has_any(SECTION_KEYS)
            and not part_cursor.has("mass")
        )
        if part_cursor is not None and not follows_from_section:
            inertias[key] = read(part_cursor, values)
    return inertias.get("link") or inertias.get("lower"), inertias.get("upper")


def _inertia_keys(model: str | None, is_telescopic: bool) -> tuple[str, ...]:
    """Return the keys of the inertias of a rod of this model."""
    if model == "massless":
        return ()
    return ("lower", "upper") if is_telescopic else ("link",)


def _read_first_axis(
    cursor: Cursor, model: str | None, start: Placement | None, values: ValueReader
) -> Vector | None:
    """Return the first axis of the universal joint at the start, in its body's coordinates."""
    for key in ("first_axis", "spin"):
        if model == "full" and not cursor.has(key):
            example = "[0, 0, 1]" if key == "first_axis" else "universal"
            cursor.problem(f"a full rod needs {key}", f"add {key}: {example}", key)
        elif model in ("slender", "massless") and cursor.has(key):
            cursor.problem(
                f"a {model} rod has no {key}", "remove the key, or write `model: full`", key
            )
    axis_cursor = cursor.get("first_axis")
    direction = read_direction(axis_cursor, values) if axis_cursor is not None else None
    if model != "full" or direction is None or start is None:
        return None
    return rotated(start.turns, constant_vector(direction))


def read_tension(cursor: Cursor | None, values: ValueReader) -> Tension | None:
    """Return the tension bounds of a cable; None if there are none or after adding a problem."""
    if cursor is None:
        return None
    least = values.number(cursor.get("least"))
    greatest = values.number(cursor.get("greatest"))
    restitution = values.number(cursor.get("restitution"))
    stiffness = values.expression(cursor.get("stiffness"))
    damping = values.expression(cursor.get("damping"))
    if least is not None and greatest is not None and not greatest > least:
        remedy = "swap the two values"
        if greatest == least:
            remedy = "give a range; for a constant force, prescribe a preload"
        cursor.problem(
            f"the greatest tension, {greatest:g} N, is not above the least tension, {least:g} N",
            remedy,
            "greatest",
        )
    if cursor.has("damping") and not cursor.has("stiffness"):
        cursor.problem(
            "a cable without `stiffness` does not stretch, so `damping` has no effect",
            "add stiffness",
            "damping",
        )
    if cursor.has("restitution") and cursor.has("stiffness"):
        cursor.problem(
            "a cable with `stiffness` does not need `restitution`: its stiffness determines the rebound",
            "keep one of them",
            "restitution",
        )
    if restitution is not None and not 0.0 <= restitution <= 1.0:
        cursor.problem(
            f"must be between 0 and 1, got {restitution:g}",
            "give the rebound speed as a fraction of the impact speed",
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


def read_body(
    name: str,
    cursor: Cursor,
    values: ValueReader,
    elastic: ElasticReader | None = None,
    points: Mapping[str, Mapping[str, Placement]] = MappingProxyType({}),
) -> Body | None:
    """Return a body, or None after adding a problem.

    Args:
        name: name of the body.
        cursor: cursor of the body.
        values: reads values.
        elastic: reads beams; needed for a body with beams.
        points: placements of joints, rods and frames, by name and then by body.
    """
    if cursor.text is not None:
        return Body(name=name)
    if elastic is None or not cursor.has("beams"):
        return _read_rigid_body(name, cursor, values)
    from tauloop.mechanism.elastic.inertia import beams_inertia

    beams = elastic.body_beams(cursor, name, points)
    if beams is None:
        return None
    is_distributed = cursor.word("distributed") == "yes"
    inertia = beams_inertia(beams)
    stated_inertia = None
    if cursor.has("mass"):
        stated_inertia = read_inertia(cursor, values)
        if stated_inertia is None:
            return None
        inertia = stated_inertia
    elastic_beams = [beam.beam for beam in beams]
    mass = None if stated_inertia is None else stated_inertia.mass
    elastic.check_mass(
        cursor,
        elastic_beams,
        mass,
        is_distributed=is_distributed,
        is_unchecked=cursor.word("unchecked") == "yes",
    )
    return Body(name=name, inertia=inertia, beams=beams, is_distributed=is_distributed)


def _read_rigid_body(name: str, cursor: Cursor, values: ValueReader) -> Body | None:
    """Return a body without beams, or None after adding a problem."""
    if cursor.has("distributed"):
        cursor.problem(
            "`distributed` requires beams, but the body has none", "remove it", "distributed"
        )
    mass_cursor = cursor.get("mass")
    is_point = not any(
        cursor.has(key) for key in ("center", "first_moment", "inertia", "unchecked")
    )
    if is_point and mass_cursor is not None and isinstance(mass_cursor.kind, Value):
        mass = values.expression(replace(mass_cursor, kind=replace(mass_cursor.kind, sign="")))
        if mass is None or values.nominal(mass) == 0:
            return None if mass is None else Body(name=name)
    inertia = read_inertia(cursor, values)
    return None if inertia is None else Body(name=name, inertia=inertia)
