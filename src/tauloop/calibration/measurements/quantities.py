"""Numbers with units, and ranges of them, as people write them."""

from __future__ import annotations

import numpy as np

from tauloop.calibration.problem.unknowns import Bounds
from tauloop.mechanism.units import ANGLE, LENGTH, ONE, Dimension, UnitError, named, parse_unit

#: What unknowns and readings are measured in, by SI unit.
DIMENSIONS: dict[str, Dimension] = {"m": LENGTH, "rad": ANGLE, "1": ONE}


def quantity(text: str, dimension: Dimension) -> float:
    """SI value of a text such as ``0.02 mm``.

    Raises:
        ValueError: no number with a unit of that dimension; the text says what.
    """
    number, _, unit_text = text.strip().partition(" ")
    try:
        value = float(number)
        unit = parse_unit(unit_text or "1")
    except (ValueError, UnitError):
        raise ValueError(f"{text!r} is not {named(dimension)}") from None
    if unit.dimension != dimension or not np.isfinite(value):
        raise ValueError(f"{text!r} is not {named(dimension)}")
    return value * unit.scale


def any_quantity(text: str) -> tuple[float, str]:
    """SI value of a length, an angle or a plain number, and its unit: m, rad or 1.

    Raises:
        ValueError: it is none of them; the text says so.
    """
    for unit, dimension in DIMENSIONS.items():
        try:
            return quantity(text, dimension), unit
        except ValueError:
            continue
    raise ValueError(f"{text!r} is no length, angle or number")


def bounds_of(text: str, between: str) -> Bounds:
    """Bounds of a text such as ``1.2 m:1.3 m`` or ``:5 deg``; infinite where a side is left out.

    Args:
        text: what was written.
        between: what stands between both sides.

    Raises:
        ValueError: no two sides, both left out, two units, or a side that is no quantity.
    """
    low, separator, high = f" {text} ".partition(between)
    sides = [side.strip() for side in (low, high)]
    if not separator or not any(sides):
        raise ValueError(f"{text.strip()!r} is not LOW{between}HIGH")
    found = [any_quantity(side) if side else None for side in sides]
    units = {side[1] for side in found if side is not None}
    if len(units) > 1:
        raise ValueError(f"{text.strip()!r} has two units")
    lower, upper = (side[0] if side is not None else None for side in found)
    return Bounds(lower=-np.inf if lower is None else lower, upper=np.inf if upper is None else upper, unit=units.pop())
