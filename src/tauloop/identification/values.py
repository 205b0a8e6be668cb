"""Values of options: numbers in SI units, or texts with a unit."""

from __future__ import annotations

from tauloop.mechanism.description.units import parse_unit, quantity


def si_value(where: str, value: float | str, unit: str) -> float:
    """Return a value in SI units, with the dimension of a unit.

    Raises:
        InputError: a text is not a number with a unit of this dimension.
    """
    if isinstance(value, str):
        return quantity(where, value, parse_unit(unit or "1").dimension)
    return float(value)
