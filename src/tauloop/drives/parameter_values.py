"""Values and ranges of drive-line parameters in SI units, from numbers and strings with units."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tauloop.common.errors import InputError, Problems
from tauloop.common.options import pairs
from tauloop.mechanism.description.units import UnitError, interval, parse_unit, quantity
from tauloop.mechanism.expression import ParameterTable

#: Lower and upper limit of a parameter: numbers in SI units or strings with units; or one string,
#: ``LOW:HIGH``.
ParameterRange = tuple[float | str, float | str] | str


def values_in_si(
    parameters: ParameterTable, values: Mapping[str, float | str], where: str
) -> dict[str, float]:
    """Return values of parameters in SI units.

    Args:
        parameters: the parameters; the value of an unknown name must not have a unit.
        values: numbers in SI units, or strings with a unit of the parameter, by parameter.
        where: name of the option that has the values.

    Raises:
        InputError: invalid values; all problems at once.
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


def ranges_in_si(
    parameters: ParameterTable, ranges: Mapping[str, ParameterRange], where: str
) -> dict[str, tuple[float, float]]:
    """Return ranges of parameters in SI units.

    Args:
        parameters: the parameters; the limits of an unknown name must not have a unit.
        ranges: two limits, or a string such as ``1 mm:2 mm``, by parameter.
        where: name of the option that has the ranges.

    Raises:
        InputError: invalid ranges; all problems at once.
    """
    problems = Problems()
    limits: dict[str, tuple[float, float]] = {}
    for name, limits_or_text in ranges.items():
        if not isinstance(limits_or_text, str):
            low, high = limits_or_text
            with problems.collecting(InputError):
                limits[name] = (
                    values_in_si(parameters, {name: low}, where)[name],
                    values_in_si(parameters, {name: high}, where)[name],
                )
            continue
        unit = parameters[name].unit if name in parameters.names else ""
        try:
            dimension = parse_unit(unit or "1").dimension
            parsed = interval(limits_or_text, ":", dimension, is_si=True)
        except UnitError as error:
            problems.add(f"{where} {name}", error.what, error.remedy)
        else:
            limits[name] = (parsed.lower, parsed.upper)
    InputError.raise_if_any(problems)
    return limits


def ranges_reader(where: str, example: str) -> Callable[[Any], dict[str, str]]:
    """Return a function that parses strings such as ``kp=100:300,gap=1mm:2mm`` for an option.

    The limits are read later by `ranges_in_si`, when the parameters and their units are known.

    Args:
        where: name of the field.
        example: example of a range for messages.
    """

    def read(texts: str | Iterable[str]) -> dict[str, str]:
        problems = Problems()
        ranges = pairs(where, texts, problems, example)
        for name, text in ranges.items():
            if ":" not in text:
                problems.add(
                    where, f"{name}: {text!r} is not LOW:HIGH", f"write {example}, for example"
                )
        InputError.raise_if_any(problems)
        return ranges

    return read
