"""Readers of actuators, couplings, friction between coordinates, and the platform."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_functions
from tauloop.common.records import dataclass
from tauloop.mechanism.description import units
from tauloop.mechanism.description.cursor import Cursor
from tauloop.mechanism.description.placements import Placements
from tauloop.mechanism.description.sections.joints import (
    note_unknown_freedom,
    read_friction,
    read_reference,
    scalar_start,
    with_limits,
)
from tauloop.mechanism.description.structure import Names, note_unknown
from tauloop.mechanism.description.units import Dimension, named
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.expression import ONE, ZERO, Expression, add, multiply
from tauloop.mechanism.model import (
    BASE,
    JOINT_KINDS,
    PLATFORM_JOINT,
    Actuator,
    CombinedFriction,
    Coupling,
    Freedom,
    Joint,
    Placement,
    Platform,
)
from tauloop.mechanism.suggestions import listing

if TYPE_CHECKING:
    from tauloop.mechanism.description.sections.curves import read_curve
else:
    (read_curve,) = lazy_functions("tauloop.mechanism.description.sections.curves", "read_curve")


@dataclass(slots=True)
class Coordinates:
    """All degrees of freedom of a machine, for references by name.

    Each degree of freedom is a rotation or a translation, and has a scalar coordinate unless it is
    an angular velocity of a ball joint.
    """

    _angular: dict[str, bool] = field(default_factory=dict)
    _vectorial: set[str] = field(default_factory=set)
    _joints: dict[str, str] = field(default_factory=dict)

    def add_joint(self, name: str, kind_name: str) -> None:
        """Add the degrees of freedom of a joint."""
        kind = JOINT_KINDS.get(kind_name)
        self._joints[name] = kind_name
        if kind is None:
            return
        for suffix, angular in zip(kind.velocities, kind.angular, strict=True):
            full_name = f"{name}.{suffix}" if suffix else name
            self._angular[full_name] = angular
            if suffix not in kind.coordinates:
                self._vectorial.add(full_name)

    def add_rod(self, name: str) -> None:
        """Add the length of a telescopic rod."""
        self._angular[name] = False

    def is_angular(self, name: str) -> bool:
        """Return whether a degree of freedom is a rotation."""
        return self._angular[name]

    def knows(self, cursor: Cursor, word: str) -> bool:
        """Return whether a degree of freedom has this name, with or without the leg's prefix."""
        return word in self._angular or cursor.prefix + word in self._angular

    @property
    def names(self) -> Collection[str]:
        """Full names of all degrees of freedom."""
        return self._angular.keys()

    def has_joint(self, cursor: Cursor, word: str) -> bool:
        """Return whether a joint has this name, with or without the leg's prefix."""
        return word in self._joints or cursor.prefix + word in self._joints

    def find(self, cursor: Cursor, word: str, needs_coordinate: bool = True) -> str | None:
        """Return the full name of a degree of freedom, or None after adding a problem.

        The name is looked up in the leg first, then at the top level.

        Args:
            cursor: position of the name.
            word: the name as written in the file.
            needs_coordinate: whether to reject angular velocities, which have no coordinate.
        """
        candidates = (cursor.prefix + word, word)
        for name in candidates:
            if name in self._angular:
                if needs_coordinate and name in self._vectorial:
                    cursor.problem(
                        f"{word} is an angular velocity, which has no coordinate",
                        "use a revolute or universal joint",
                    )
                    return None
                return name
        joint = next((name for name in candidates if name in self._joints), None)
        if joint is None:
            note_unknown(cursor, word, "coordinate", self._angular)
        elif self._joints[joint] in JOINT_KINDS:
            kind = self._joints[joint]
            suffixes = [f"{word}.{suffix}" for suffix in JOINT_KINDS[kind].velocities]
            count = "several degrees" if suffixes else "no degree"
            cursor.problem(
                f"{word} is a {kind} joint, which has {count} of freedom",
                f"name one of {listing(suffixes)}" if suffixes else "name another joint",
            )
        return None


def read_actuator(
    name: str, cursor: Cursor, values: ValueReader, coordinates: Coordinates
) -> Actuator | None:
    """Return an actuator, or None after adding a problem."""
    on_cursor = cursor.get("on")
    drives_cursor = cursor.get("drives")
    if on_cursor is not None and drives_cursor is not None:
        cursor.problem("the actuator has both `on` and `drives`", "keep one of them", "drives")
    elif not cursor.has_any(("on", "drives")):
        cursor.problem("the actuator drives nothing", "add `on` or `drives`", "on")
    if drives_cursor is not None and cursor.has("ratio"):
        cursor.problem(
            "`drives` gives a ratio for each coordinate, so `ratio` has no meaning",
            "remove `ratio`",
            "ratio",
        )
    if on_cursor is None:
        written_terms = _terms_at(cursor, "drives")
    else:
        written_terms = [(on_cursor.text or "", on_cursor, cursor.get("ratio"))]
    drives, is_angular = read_terms(cursor, written_terms, values, coordinates, "actuator")
    if is_angular is None:
        return None
    limits = {
        key: values.number(cursor.get(key), is_angular) for key in ("force", "rated_force", "speed")
    }
    copper_loss = values.number(cursor.get("copper_loss"), is_angular)
    offset = values.expression(cursor.get("offset"), is_angular)
    if offset is None and cursor.has("offset"):
        return None
    if cursor.has("stiffness") and cursor.has("drive"):
        cursor.problem(
            "the stiffness of an actuator with a drive line follows from the drive line",
            "remove `stiffness`, or the drive line",
            "stiffness",
        )
    drive_cursor = cursor.get("drive")
    drive = None
    # imported only when needed: few machines have a drive line, and the import takes as long as
    # reading the machine
    if drive_cursor is not None:
        from tauloop.mechanism.description.drives.drive_on_actuator import read_actuator_drive

        drive = read_actuator_drive(name, drive_cursor, values, is_angular)
    return Actuator(
        name=name,
        drives=drives,
        offset=ZERO if offset is None else offset,
        is_rotary=is_angular,
        inertia=values.expression(cursor.get("inertia"), is_angular),
        friction=read_friction(cursor.get("friction"), values, is_angular),
        **{key: math.inf if limit is None else limit for key, limit in limits.items()},
        copper_loss=copper_loss,
        drive=drive,
        stiffness=values.expression(cursor.get("stiffness"), is_angular),
    )


def read_coupling(
    name: str,
    cursor: Cursor,
    values: ValueReader,
    coordinates: Coordinates,
    freedoms: Mapping[str, Freedom] = MappingProxyType({}),
) -> Coupling | None:
    """Return a gear or cam between coordinates, or None after adding a problem.

    Args:
        name: name of the coupling.
        cursor: cursor of the coupling.
        values: reads values.
        coordinates: all degrees of freedom.
        freedoms: limits by coordinate name, to check the range of tables.
    """
    terms, is_angular = read_terms(cursor, _terms_at(cursor, "of"), values, coordinates, "gear")
    if is_angular is None:
        return None
    offset = values.expression(cursor.get("offset"), is_angular)
    if offset is None and cursor.has("offset"):
        return None
    curves = []
    for word, curve_cursor in cursor.entries_of("curves"):
        coordinate = coordinates.find(curve_cursor, word)
        if coordinate is None:
            return None
        if coordinate in dict(terms):
            curve_cursor.problem(f"{word} has a ratio and a curve", "put the ratio into the curve")
            return None
        freedom = freedoms.get(coordinate) if freedoms else None
        curve = read_curve(
            curve_cursor, values, coordinates.is_angular(coordinate), is_angular, freedom
        )
        if curve is None:
            return None
        curves.append((coordinate, curve))
    return Coupling(
        name=name,
        terms=terms,
        offset=ZERO if offset is None else offset,
        is_angular=is_angular,
        curves=tuple(curves),
    )


def _terms_at(cursor: Cursor, key: str) -> list[tuple[str, Cursor, Cursor | None]]:
    """Return the terms of a sum: coordinate as written, its cursor, and the cursor of its ratio."""
    return [(word, term_cursor, term_cursor) for word, term_cursor in cursor.entries_of(key)]


def read_terms(
    cursor: Cursor,
    written_terms: list[tuple[str, Cursor, Cursor | None]],
    values: ValueReader,
    coordinates: Coordinates,
    what: str,
) -> tuple[tuple[tuple[str, Expression], ...], bool | None]:
    """Return (coordinate, ratio) terms, and whether their sum is an angle (None if undetermined).

    Args:
        cursor: mapping with the terms.
        written_terms: the terms as in the file (see `_terms_at`).
        values: reads the ratios.
        coordinates: all degrees of freedom.
        what: noun for messages: "actuator", "gear" or "loss".
    """
    terms: list[tuple[str, Expression]] = []
    kinds: set[bool] = set()
    for word, term_cursor, ratio_cursor in written_terms:
        coordinate = coordinates.find(term_cursor, word) if word else None
        ratio = values.quantity(ratio_cursor) if ratio_cursor is not None else None
        if coordinate is None or (ratio is None and ratio_cursor is not None):
            continue
        if coordinate in dict(terms):
            term_cursor.problem(f"{word} appears twice in this {what}", "name each coordinate once")
        is_angular = is_angular_product(
            coordinates.is_angular(coordinate), ratio.dimension if ratio else units.ONE
        )
        if is_angular is None:
            (ratio_cursor or term_cursor).problem(
                f"the ratio is {named(ratio.dimension) if ratio else 'a plain number'}, "
                f"so ratio times {word} is neither an angle nor a length",
                f"write a plain number, rad/m (rotary {what} on a linear coordinate) or m/rad "
                f"(linear {what} on a rotary coordinate)",
            )
        else:
            kinds.add(is_angular)
            terms.append((coordinate, ratio.expression if ratio else ONE))
    if len(kinds) > 1:
        cursor.problem(
            f"the terms of the {what} have different units: rotary for one coordinate, "
            "linear for another",
            "give the ratios units",
            "drives" if what == "actuator" else "of",
        )
    return tuple(terms), (True in kinds) if kinds else None


def is_angular_product(is_angular: bool, ratio: Dimension) -> bool | None:
    """Return whether ratio times coordinate is an angle; None if it is neither angle nor length."""
    motor = ratio * (units.ANGLE if is_angular else units.LENGTH)
    if motor.matches(units.ANGLE):
        return True
    return False if motor.matches(units.LENGTH) else None


def platform_joint(cursor: Cursor, values: ValueReader, names: Names) -> Joint | None:
    """Return the joint that the key `motion` adds; None without it or after adding a problem."""
    motion = cursor.word("motion")
    if motion is None:
        for key in ("reference", "limits"):
            if cursor.has(key):
                cursor.problem(
                    f"a platform without `motion` cannot have `{key}`",
                    f"give `{key}` to its joints, or add `motion`",
                    key,
                )
        return None
    kind = JOINT_KINDS.get(motion)
    body = names.find(cursor.get("body"), ("body",))
    if kind is None or body is None or body == BASE:
        return None
    reference = read_reference(cursor.get("reference"), motion, values)
    freedoms = [Freedom()] * len(kind.velocities)
    for suffix, limits_cursor in cursor.entries_of("limits"):
        if suffix not in kind.velocities:
            note_unknown_freedom(limits_cursor, suffix, motion)
        elif suffix not in kind.coordinates:
            limits_cursor.problem(
                f"{suffix} is an angular velocity, which has no coordinate",
                "limit other coordinates",
            )
        else:
            i = kind.velocities.index(suffix)
            start = scalar_start(kind, suffix, reference)
            freedoms[i] = with_limits(freedoms[i], limits_cursor, values, kind.angular[i], start)
    if reference is None:
        return None
    return Joint(
        name=PLATFORM_JOINT,
        kind=motion,
        parent=Placement(body=BASE),
        child=Placement(body=body),
        reference=reference,
        freedoms=tuple(freedoms),
    )


def read_platform(
    cursor: Cursor,
    placements: Placements,
    values: ValueReader,
    names: Names,
    coordinates: Coordinates,
) -> Platform | None:
    """Return the platform, or None after adding a problem."""
    body = names.find(cursor.get("body"), ("body",))
    if body == BASE:
        cursor.problem("the platform is the immovable base", "name a body that moves", "body")
    tool = placements.on(body or BASE, cursor.get("tool"))
    independent = _read_independent(cursor, coordinates)
    payload = values.number(cursor.get("payload")) or 0.0
    if body is None:
        return None
    return Platform(body=body, tool=tool, independent=independent, payload=payload)


def _read_independent(cursor: Cursor, coordinates: Coordinates) -> tuple[str, ...]:
    """Return the full names of the platform's independent velocities."""
    motion = cursor.word("motion")
    kind = JOINT_KINDS.get(motion) if motion else None
    names: list[str] = []
    for item in cursor.items_of("independent"):
        word = item.text or ""
        if motion is None or coordinates.knows(item, word):
            if motion is not None and kind is not None and word in kind.velocities:
                remedy = f"write {PLATFORM_JOINT}.{word}, or give the joint another name"
                item.problem(
                    f"{word} is the name of both a platform degree of freedom and a joint", remedy
                )
            name = coordinates.find(item, word, needs_coordinate=False) if word else None
        elif kind is not None and word not in kind.velocities:
            note_unknown_freedom(item, word, motion)
            continue
        else:
            name = f"{PLATFORM_JOINT}.{word}"
        if name in names:
            item.problem(f"{word} is named twice", "name each coordinate once")
        elif name is not None:
            names.append(name)
    return tuple(names)


def read_loss(
    name: str,
    cursor: Cursor,
    values: ValueReader,
    coordinates: Coordinates,
    actuators: Mapping[str, Actuator | None],
) -> CombinedFriction | None:
    """Return the friction of a sum of coordinates or motors, or None after adding a problem."""
    of = cursor.get("of")
    motors = cursor.get("motors")
    if (of is None) == (motors is None):
        what = "has both `of` and `motors`" if of is not None else "names no coordinate or motor"
        cursor.problem(f"the loss {what}", "give `of` (coordinates) or `motors`", "of")
        return None
    if of is not None:
        terms, is_angular = read_terms(cursor, _terms_at(cursor, "of"), values, coordinates, "loss")
    else:
        terms, is_angular = _terms_of_motors(cursor, values, actuators)
    if is_angular is None:
        return None  # the units of friction are unknown
    friction = read_friction(cursor.get("friction"), values, is_angular)
    if friction is None:
        return None
    return CombinedFriction(name=name, terms=terms, friction=friction, is_angular=is_angular)


def _terms_of_motors(
    cursor: Cursor, values: ValueReader, actuators: Mapping[str, Actuator | None]
) -> tuple[tuple[tuple[str, Expression], ...], bool | None]:
    """Convert a combination of motors to terms of coordinates (see `read_terms`)."""
    terms: dict[str, Expression] = {}
    kinds: set[bool] = set()
    for word, ratio_cursor in cursor.entries_of("motors"):
        motor = next(
            (candidate for candidate in (cursor.prefix + word, word) if candidate in actuators),
            None,
        )
        if motor is None:
            note_unknown(ratio_cursor, word, "actuator", actuators)
            continue
        actuator = actuators[motor]
        ratio = values.quantity(ratio_cursor)
        if actuator is None or ratio is None:
            continue
        is_angular = is_angular_product(bool(actuator.is_rotary), ratio.dimension)
        if is_angular is None:
            ratio_cursor.problem(
                f"the ratio is {named(ratio.dimension)}, so ratio times {word} is neither an angle nor a length",
                "write a plain number, rad/m (rotary loss, linear motor) or m/rad (linear loss, rotary motor)",
            )
            continue
        kinds.add(is_angular)
        for coordinate, drive_ratio in actuator.drives:
            term = multiply(ratio.expression, drive_ratio)
            terms[coordinate] = add(terms[coordinate], term) if coordinate in terms else term
    if len(kinds) > 1:
        cursor.problem(
            "the terms of the loss have different units: rotary for one motor, linear for another",
            "give the ratios units",
            "motors",
        )
    return tuple(terms.items()), (True in kinds) if kinds else None
