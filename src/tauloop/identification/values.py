"""Values that options give: numbers in SI units, or texts with a unit."""

from __future__ import annotations

from tauloop.mechanism.description.quantities import quantity
from tauloop.mechanism.description.units import parse_unit


def si_value(where: str, value: float | str, unit: str) -> float:
    """A value in SI units, of the dimension of a unit.

    Raises:
        InputError: a text is no number with a unit of that dimension.
    """
    return (
        quantity(where, value, parse_unit(unit or "1").dimension)
        if isinstance(value, str)
        else float(value)
    )
