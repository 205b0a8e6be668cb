"""Actuators, gears, losses and the platform of a machine file."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING

from tauloop.common.names.lazy import late_functions
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
    (read_curve,) = late_functions("tauloop.mechanism.description.sections.curves", "read_curve")


@dataclass(slots=True)
class Coordinates:
    """Freedoms by complete name: whether each is a rotation, and whether it has a coordinate."""

    _angular: dict[str, bool] = field(default_factory=dict)
    _vectorial: set[str] = field(default_factory=set)
    _joints: dict[str, str] = field(default_factory=dict)

    def add_joint(self, name: str, kind_name: str) -> None:
        """Add the freedoms of a joint."""
        kind = JOINT_KINDS.get(kind_name)
        self._joints[name] = kind_name
        for suffix, angular in zip(kind.velocities, kind.angular, strict=True) if kind else ():
            full = f"{name}.{suffix}" if suffix else name
            self._angular[full] = angular
            if kind and suffix not in kind.coordinates:
                self._vectorial.add(full)

    def add_rod(self, name: str) -> None:
        """Add the length of a telescopic rod."""
        self._angular[name] = False

    def is_angular(self, name: str) -> bool:
        """Return whether a freedom is a rotation."""
        return self._angular[name]

    def knows(self, cursor: Cursor, word: str) -> bool:
        """Return whether a freedom has this name, complete or without the leg's prefix."""
        return word in self._angular or cursor.prefix + word in self._angular

    @property
    def names(self) -> Collection[str]:
        """Complete names of all freedoms."""
        return self._angular.keys()

    def has_joint(self, cursor: Cursor, word: str) -> bool:
        """Return whether a joint has this name, complete or without the leg's prefix."""
        return word in self._joints or cursor.prefix + word in self._joints

    def find(self, cursor: Cursor, word: str, needs_coordinate: bool = True) -> str | None:
        """Return the complete name of a freedom, or None after noting that there is none.

        The name is looked up in the leg first, then at the top.

        Args:
            cursor: place of the name.
            word: the name as written.
            needs_coordinate: whether angular velocities, which have no coordinate, are rejected.
        """
        candidates = (cursor.prefix + word, word)
        for name in candidates:
            if name in self._angular:
                if needs_coordinate and name in self._vectorial:
                    cursor.problem(
                        f"{word} is an angular velocity without a coordinate of its own",
                        "act on a revolute or universal joint",
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
    """Return an actuator, or None after noting what is wrong."""
    on, several = cursor.get("on"), cursor.get("drives")
    if on is not None and several is not None:
        cursor.problem("the actuator has both on and drives", "keep one of them", "drives")
    elif on is None and several is None and not cursor.has("on") and not cursor.has("drives"):
        cursor.problem("the actuator drives nothing", "add on, or drives", "on")
    if several is not None and cursor.has("ratio"):
        cursor.problem("write the ratio after each coordinate of drives", "remove ratio", "ratio")
    places = _summed(cursor, "drives") if on is None else [(on.text or "", on, cursor.get("ratio"))]
    drives, is_angular = read_terms(cursor, places, values, coordinates, "motor")
    if is_angular is None:
        return None
    most = {
        key: values.number(cursor.get(key), is_angular) for key in ("force", "rated_force", "speed")
    }
    copper = values.number(cursor.get("copper"), is_angular)
    offset = values.expression(cursor.get("offset"), is_angular)
    if offset is None and cursor.has("offset"):
        return None
    if cursor.has("stiffness") and cursor.has("drive"):
        cursor.problem(
            "the stiffness of an actuator with a drive line follows from the drive line",
            "remove stiffness, or the drive line",
            "stiffness",
        )
    place = cursor.get("drive")
    drive = None
    # imported late: few machines have a drive line, and the import takes as long as the machine's
    if place is not None:
        from tauloop.mechanism.description.drives.drive_on_actuator import read_actuator_drive

        drive = read_actuator_drive(name, place, values, is_angular)
    return Actuator(
        name=name,
        drives=drives,
        offset=ZERO if offset is None else offset,
        turns=is_angular,
        inertia=values.expression(cursor.get("inertia"), is_angular),
        friction=read_friction(cursor.get("friction"), values, is_angular),
        **{key: math.inf if limit is None else limit for key, limit in most.items()},
        copper=copper,
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
    """Return a gear or cam between coordinates, or None after noting what is wrong.

    Args:
        name: name of the coupling.
        cursor: its place.
        values: reader of values.
        coordinates: all freedoms.
        freedoms: those with limits by name, to check the ends of tables.
    """
    terms, turns = read_terms(cursor, _summed(cursor, "of"), values, coordinates, "gear")
    if turns is None:
        return None
    offset = values.expression(cursor.get("offset"), turns)
    if offset is None and cursor.has("offset"):
        return None
    curves = []
    for word, place in cursor.entries_of("curves"):
        coordinate = coordinates.find(place, word)
        if coordinate is None:
            return None
        if coordinate in dict(terms):
            place.problem(f"{word} has a ratio and a curve", "put the ratio into the curve")
            return None
        freedom = freedoms.get(coordinate) if freedoms else None
        curve = read_curve(place, values, coordinates.is_angular(coordinate), turns, freedom)
        if curve is None:
            return None
        curves.append((coordinate, curve))
    return Coupling(
        name=name,
        terms=terms,
        offset=ZERO if offset is None else offset,
        turns=turns,
        curves=tuple(curves),
    )


def _summed(cursor: Cursor, key: str) -> list[tuple[str, Cursor, Cursor | None]]:
    """Return the coordinates that are summed under a key: place of each, and place of its ratio."""
    return [(word, place, place) for word, place in cursor.entries_of(key)]


def read_terms(
    cursor: Cursor,
    places: list[tuple[str, Cursor, Cursor | None]],
    values: ValueReader,
    coordinates: Coordinates,
    what: str,
) -> tuple[tuple[tuple[str, Expression], ...], bool | None]:
    """Return coordinates with ratios, and whether their sum is an angle (None if undecidable)."""
    drives: list[tuple[str, Expression]] = []
    motors: set[bool] = set()
    for word, place, ratio_place in places:
        coordinate = coordinates.find(place, word) if word else None
        ratio = values.quantity(ratio_place) if ratio_place is not None else None
        if coordinate is None or (ratio is None and ratio_place is not None):
            continue
        if coordinate in dict(drives):
            place.problem(f"{word} is driven twice by this actuator", "name each coordinate once")
        turns = motor_turns(
            coordinates.is_angular(coordinate), ratio.dimension if ratio else units.ONE
        )
        if turns is None:
            (ratio_place or place).problem(
                f"the ratio is {named(ratio.dimension) if ratio else 'a plain number'}, "
                f"which makes no {what} of {word}",
                "write a plain number, rad/m for a turning motor on a slide, or m/rad for a sliding motor on a joint",
            )
        else:
            motors.add(turns)
            drives.append((coordinate, ratio.expression if ratio else ONE))
    if len(motors) > 1:
        cursor.problem(
            f"the {what} would turn for one coordinate and slide for another",
            "give the ratios units",
            "drives" if what == "motor" else "of",
        )
    return tuple(drives), (True in motors) if motors else None


def motor_turns(is_angular: bool, ratio: Dimension) -> bool | None:
    """Return whether the motor with this ratio rotates; None if it can neither rotate nor slide."""
    motor = ratio * (units.ANGLE if is_angular else units.LENGTH)
    if motor.matches(units.ANGLE):
        return True
    return False if motor.matches(units.LENGTH) else None


def platform_joint(cursor: Cursor, values: ValueReader, names: Names) -> Joint | None:
    """Return the joint that `motion` adds; None without it or after noting what is wrong."""
    motion = cursor.word("motion")
    if motion is None:
        for key in ("reference", "limits"):
            if cursor.has(key):
                cursor.problem(
                    f"a platform without motion has no {key} of its own",
                    f"give {key} to its joints, or add motion",
                    key,
                )
        return None
    kind = JOINT_KINDS.get(motion)
    body = names.find(cursor.get("body"), ("body",))
    if kind is None or body is None or body == BASE:
        return None
    reference = read_reference(cursor.get("reference"), motion, values)
    freedoms = [Freedom()] * len(kind.velocities)
    for suffix, place in cursor.entries_of("limits"):
        if suffix not in kind.velocities:
            note_unknown_freedom(place, suffix, motion)
        elif suffix not in kind.coordinates:
            place.problem(
                f"{suffix} is an angular velocity without a coordinate of its own",
                "limit other coordinates",
            )
        else:
            i = kind.velocities.index(suffix)
            start = scalar_start(kind, suffix, reference)
            freedoms[i] = with_limits(freedoms[i], place, values, kind.angular[i], start)
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
    """Return the platform, or None after noting what is wrong."""
    body = names.find(cursor.get("body"), ("body",))
    if body == BASE:
        cursor.problem("the platform is the immovable base", "name a body that moves", "body")
    tool = placements.on(body or BASE, cursor.get("tool"))
    independent = _read_independent(cursor, coordinates)
    payload = values.number(cursor.get("payload")) or 0.0
    return (
        None
        if body is None
        else Platform(body=body, tool=tool, independent=independent, payload=payload)
    )


def _read_independent(cursor: Cursor, coordinates: Coordinates) -> tuple[str, ...]:
    motion = cursor.word("motion")
    kind = JOINT_KINDS.get(motion) if motion else None
    names: list[str] = []
    for item in cursor.items_of("independent"):
        word = item.text or ""
        if motion is None or coordinates.knows(item, word):
            if motion is not None and kind is not None and word in kind.velocities:
                remedy = f"write {PLATFORM_JOINT}.{word}, or give the joint another name"
                item.problem(f"{word} is a degree of freedom of the platform and a joint", remedy)
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
    """Return the friction of a combination of coordinates or motors.

    None after noting what is wrong.
    """
    of, motors = cursor.get("of"), cursor.get("motors")
    if (of is None) == (motors is None):
        what = "has both of and motors" if of is not None else "names no coordinate or motor"
        cursor.problem(f"the loss {what}", "give of (coordinates) or motors", "of")
        return None
    if of is not None:
        terms, turns = read_terms(cursor, _summed(cursor, "of"), values, coordinates, "loss")
    else:
        terms, turns = _of_motors(cursor, values, actuators)
    if turns is None:
        return None  # the units of friction are unknown
    friction = read_friction(cursor.get("friction"), values, turns)
    if friction is None:
        return None
    return CombinedFriction(name=name, terms=terms, friction=friction, turns=turns)


def _of_motors(
    cursor: Cursor, values: ValueReader, actuators: Mapping[str, Actuator | None]
) -> tuple[tuple[tuple[str, Expression], ...], bool | None]:
    """Return a combination of motors as one of their coordinates; None without a valid term."""
    terms: dict[str, Expression] = {}
    turning: set[bool] = set()
    for word, place in cursor.entries_of("motors"):
        motor = next(
            (candidate for candidate in (cursor.prefix + word, word) if candidate in actuators),
            None,
        )
        if motor is None:
            note_unknown(place, word, "actuator", actuators)
            continue
        actuator, ratio = actuators[motor], values.quantity(place)
        if actuator is None or ratio is None:
            continue
        turns = motor_turns(bool(actuator.turns), ratio.dimension)
        if turns is None:
            place.problem(
                f"the ratio is {named(ratio.dimension)}, which makes neither a turn nor a length of {word}",
                "write a plain number, rad/m (what turns, of a sliding motor) or m/rad (what slides, of a turning one)",
            )
            continue
        turning.add(turns)
        for coordinate, drive_ratio in actuator.drives:
            new = multiply(ratio.expression, drive_ratio)
            terms[coordinate] = add(terms[coordinate], new) if coordinate in terms else new
    if len(turning) > 1:
        cursor.problem(
            "the loss would turn for one motor and slide for another",
            "give the ratios units",
            "motors",
        )
    return tuple(terms.items()), (True in turning) if turning else None
