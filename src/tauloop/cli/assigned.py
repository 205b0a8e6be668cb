"""Numbers by name on the command line, such as ``x=0.1,z=-0.5``, and quantities with their unit."""

from __future__ import annotations

import re

import numpy as np

from tauloop.assembly.ports import Port
from tauloop.errors import InputError, Problem, Problems
from tauloop.mechanism.parser import NUMBER
from tauloop.mechanism.units import Dimension, UnitError, named, parse_unit

#: A force and moment at the tool centre point, in the base frame.
TOOL = Port(name="wrench", columns=("fx", "fy", "fz", "mx", "my", "mz"), units=("N",) * 3 + ("N m",) * 3)

_QUANTITY = re.compile(rf"\s*(?P<number>[+-]?{NUMBER})\s*(?P<unit>[A-Za-z1].*)?", re.ASCII)


def assigned(port: Port, where: str, text: str | None, default: np.ndarray) -> np.ndarray:
    """Numbers of a port from NAME=VALUE pairs; a name may leave out the prefix where one column alone ends so."""
    result = np.array(default, dtype=float)
    problems = Problems()
    taken: set[int] = set()
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name, equals, number = (piece.strip() for piece in part.partition("="))
        places = [i for i, column in enumerate(port.columns) if column == name]
        places = places or [i for i, column in enumerate(port.columns) if column.rpartition(".")[2] == name]
        try:
            value = float(number)
        except ValueError:
            value = np.nan
        if not equals or not np.isfinite(value):
            what, remedy = f"{part.strip()!r} is not NAME=NUMBER", "such as x=0.1, in SI units"
        elif not places:
            what, remedy = f"no coordinate {name!r}", f"choose among {', '.join(port.columns)}"
        elif len(places) > 1:
            what, remedy = (
                f"{name!r} may be any of {', '.join(port.columns[i] for i in places)}",
                "write the whole name",
            )
        elif places[0] in taken:
            what, remedy = f"{port.columns[places[0]]} is given twice", "give it once"
        else:
            taken.add(places[0])
            result[places[0]] = value
            continue
        problems.add(where, what, remedy)
    InputError.raise_if_any(problems)
    return result


def quantity(where: str, text: str, dimension: Dimension) -> float:
    """A number in SI units from text such as ``1 kHz`` or ``0.5ms``; a number alone is in SI units.

    Raises:
        InputError: no number, an unknown unit, or a unit of something else.
    """
    match = _QUANTITY.fullmatch(text)
    what = remedy = ""
    scale = 1.0
    if match is None:
        what, remedy = f"{text!r} is no number with a unit", f"give {named(dimension)}"
    elif match["unit"]:
        try:
            unit = parse_unit(match["unit"])
        except UnitError as error:
            what, remedy = error.what, error.remedy
        else:
            scale = unit.scale
            if not unit.dimension.matches(dimension):
                what, remedy = f"{text!r} is {named(unit.dimension)}", f"give {named(dimension)}"
    if what or match is None:
        raise InputError(Problem(where=where, what=what, remedy=remedy))
    return float(match["number"]) * scale
