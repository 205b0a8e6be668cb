"""Sources of error of a machine, by name or pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from tauloop.common.errors import InputError, Problems
from tauloop.common.options import by_label, pairs
from tauloop.common.records import dataclass
from tauloop.design.tolerances.error_equations import geometry_of_parts
from tauloop.mechanism.description.units import UnitError, literal, parse_unit, quantity, si_unit
from tauloop.mechanism.expression import leaves
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import listing, suggestion

#: Values by name or pattern, as numbers in SI units or strings with units.
Amounts = str | Mapping[str, str | float]
#: Lists of values by name or pattern, each as a number in SI units or a string with a unit.
AmountLists = str | Mapping[str, Sequence[str | float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A quantity that may have an error.

    Attributes:
        name: name by which the user gives its deviation.
        unit: SI unit of the deviation.
    """

    name: str
    unit: str


def geometric_candidates(mechanism: Mechanism) -> tuple[Candidate, ...]:
    """Return the independent parameters of the geometry: placements, lengths, ratios and the tool."""
    used = leaves(tuple(geometry for _, geometry in geometry_of_parts(mechanism)))
    return tuple(
        Candidate(name=parameter.name, unit=si_unit(parameter.unit))
        for parameter in mechanism.parameters
        if parameter.name in used
    )


def joint_candidates(mechanism: Mechanism) -> tuple[Candidate, ...]:
    """Return the joints and ends of rods whose centers can move by clearance."""
    names = [joint.name for joint in mechanism.joints if joint.kind != "fixed"]
    for rod in mechanism.rods:
        names += [f"{rod.name}.start", f"{rod.name}.end"]
    return tuple(Candidate(name=name, unit="m") for name in names)


def amount_lists(
    where: str,
    values: AmountLists | None,
    candidates: Sequence[Candidate],
    problems: Problems,
) -> dict[str, tuple[float, ...]]:
    """Return several positive amounts by name, SI, in descending order.

    Args:
        where: name of the argument, for messages.
        values: amounts by name or shell pattern; in texts they are separated by slashes, such as
            ``arm_length=20um/50um``.
        candidates: the names that exist.
        problems: receives unknown names, wrong units and amounts that are not positive.
    """
    if values is None:
        return {}
    items = values
    if isinstance(values, str):
        texts = pairs(where, values, problems, "arm_length=20um/50um")
        items = {name: text.split("/") for name, text in texts.items()}
    columns: dict[str, set[float]] = {}
    for pattern, listed_values in by_label(items).items():
        is_single = isinstance(listed_values, str | float | int)
        value_list = [listed_values] if is_single else listed_values
        numbers_by_name: dict[str, set[float]] = {}
        for value in value_list:
            for name, number in amounts(where, {pattern: value}, candidates, problems).items():
                numbers_by_name.setdefault(name, set()).add(number)
        columns |= numbers_by_name
    for name, numbers in columns.items():
        if 0.0 in numbers:
            problems.add(where, f"{name} has a tolerance of zero", "give positive tolerances")
    return {name: tuple(sorted(numbers, reverse=True)) for name, numbers in columns.items()}


def amounts(
    where: str, values: Amounts | None, candidates: Sequence[Candidate], problems: Problems
) -> dict[str, float]:
    """Return the amounts by name, SI, which are not negative; later patterns replace earlier values.

    Args:
        where: name of the argument, for messages.
        values: amounts by name or shell pattern; a pattern applies to the names whose unit its value
            has.
        candidates: the names that exist.
        problems: receives unknown names, wrong units and negative amounts.
    """
    if values is None:
        return {}
    items = (
        pairs(where, values, problems, "arm_length=0.05mm") if isinstance(values, str) else values
    )
    result: dict[str, float] = {}
    names = [candidate.name for candidate in candidates]
    for pattern, value in by_label(items).items():
        matches = [
            item
            for item in candidates
            if item.name == pattern or (fnmatchcase(item.name, pattern) and _fits(value, item))
        ]
        other_units = [item for item in candidates if fnmatchcase(item.name, pattern)]
        if not matches and other_units:
            first = other_units[0]
            what = f"{value!r} does not fit {first.name}, whose unit is {first.unit}"
            problems.add(where, what, "give a value with a unit of the same kind")
        elif not matches:
            remedy = suggestion(pattern, names) or f"known: {listing(names, 20)}"
            problems.add(where, f"no name matches {pattern!r}", remedy)
        for candidate in matches:
            with problems.collecting(InputError):
                result[candidate.name] = _amount(f"{where} {pattern}", value, candidate.unit)
    return result


def _fits(value: str | float, candidate: Candidate) -> bool:
    """Return whether a value that a pattern gives has the dimension of a candidate."""
    if not isinstance(value, str):
        return True
    try:
        number = literal(value)
    except UnitError:
        return True
    return not number.unit or number.dimension == parse_unit(candidate.unit or "1").dimension


def _amount(where: str, value: str | float, unit: str) -> float:
    """Return a single amount, SI.

    Raises:
        InputError: the value is not a number of this unit, or is negative.
    """
    text = value if isinstance(value, str) else f"{float(value):.17g}"
    number = quantity(where, text, parse_unit(unit or "1").dimension)
    if number < 0.0:
        raise InputError.of(
            where, f"is {number:g}", "give the largest deviation, which is positive"
        )
    return float(number)
