"""Friction of combinations of coordinates or motors in a machine file, such as belts and cables have it."""

from __future__ import annotations

from collections.abc import Mapping

from tauloop.mechanism.cursor import Cursor
from tauloop.mechanism.elements import Coordinates, motor_turns, read_terms
from tauloop.mechanism.expression import Expression, add, multiply
from tauloop.mechanism.joints import read_friction
from tauloop.mechanism.model import Actuator, CombinedFriction
from tauloop.mechanism.patterns import note_unknown
from tauloop.mechanism.units import named
from tauloop.mechanism.values import ValueReader


def read_loss(
    name: str, cursor: Cursor, values: ValueReader, coordinates: Coordinates, actuators: Mapping[str, Actuator | None]
) -> CombinedFriction | None:
    """Friction of a combination of coordinates or motors; None if something is wrong, which is noted."""
    of, motors = cursor.get("of"), cursor.get("motors")
    if (of is None) == (motors is None):
        what = "has both of and motors" if of is not None else "is of nothing"
        cursor.problem(f"the loss {what}", "give of (coordinates) or motors", "of")
        return None
    if of is not None:
        places: list[tuple[str, Cursor, Cursor | None]] = [(word, place, place) for word, place in of.entries()]
        terms, turns = read_terms(cursor, places, values, coordinates, "loss")
    else:
        terms, turns = _of_motors(cursor, motors, values, actuators)
    if turns is None:
        return None  # which units friction has cannot be known
    friction = read_friction(cursor.get("friction"), values, turns)
    if friction is None:
        return None
    return CombinedFriction(name=name, terms=terms, friction=friction, turns=turns)


def _of_motors(
    cursor: Cursor, motors: Cursor | None, values: ValueReader, actuators: Mapping[str, Actuator | None]
) -> tuple[tuple[tuple[str, Expression], ...], bool | None]:
    """A combination of motors as one of the coordinates that they drive; None where nothing is left of it."""
    terms: dict[str, Expression] = {}
    turning: set[bool] = set()
    for word, place in motors.entries() if motors is not None else ():
        motor = next((one for one in (cursor.prefix + word, word) if one in actuators), None)
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
        for coordinate, own in actuator.drives:
            new = multiply(ratio.expression, own)
            terms[coordinate] = add(terms[coordinate], new) if coordinate in terms else new
    if len(turning) > 1:
        cursor.problem("the loss would turn for one motor and slide for another", "give the ratios units", "motors")
    return tuple(terms.items()), (True in turning) if turning else None
