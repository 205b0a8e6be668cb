"""Values of parameters of drive lines, written with units."""

from __future__ import annotations

from collections.abc import Mapping

from tauloop.common.errors import InputError, Problems
from tauloop.mechanism.description.quantities import quantity
from tauloop.mechanism.description.units import parse_unit
from tauloop.mechanism.expression import ParameterTable


def values_in_si(
    parameters: ParameterTable, values: Mapping[str, float | str], where: str
) -> dict[str, float]:
    """Return values of parameters in SI units; texts may have units of their parameter's kind.

    Args:
        parameters: the parameters; a name that is not one of them takes a plain number.
        values: by the names of parameters.
        where: name of the option that has the values.

    Raises:
        InputError: all that is wrong, at once.
    """
    problems = Problems()
    numbers: dict[str, float] = {}
    for name, value in values.items():
        if not isinstance(value, str):
            numbers[name] = value
            continue
        unit = parameters[name].unit if name in parameters.names else ""
        with problems.collecting(InputError):
            dimension = parse_unit(unit or "1").dimension
            numbers[name] = quantity(f"{where} {name}", value, dimension)
    InputError.raise_if_any(problems)
    return numbers
