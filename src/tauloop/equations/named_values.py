"""Values of a port by name, such as ``x=100 mm, rz=10 deg``, with short names and units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard, TypeVar

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, Problems
from tauloop.common.options import by_label, is_labeled_table, pairs
from tauloop.equations.ports import Port, checked
from tauloop.mechanism.description.units import (
    ANGLE,
    FORCE,
    LENGTH,
    ONE,
    TORQUE,
    Dimension,
    UnitError,
    interval,
    parse_unit,
    quantity,
    require_unit,
)
from tauloop.mechanism.poses import turned_quaternion
from tauloop.mechanism.suggestions import listing, suggestion

#: Suffixes of the names of a quaternion's components, and of the rotation vector that may replace
#: them.
QUATERNION_SUFFIXES, ROTATION_VECTOR = ("qw", "qx", "qy", "qz"), ("rx", "ry", "rz")
#: Force and moment at the tool center point, in the base frame.
TOOL_PORT = Port(
    name="wrench", columns=("fx", "fy", "fz", "mx", "my", "mz"), units=("N",) * 3 + ("N m",) * 3
)


def full_name(columns: Iterable[str], name: str, where: str) -> str:
    """Return the full name of a column from its name or its suffix, if that is unique.

    Raises:
        InputError: no column or several columns match.
    """
    columns = tuple(columns)
    if not isinstance(name, str):
        raise InputError.of(
            where, f"has the name {name!r:.80}", f"use one of {listing(columns, 20)}"
        )
    matches = [c for c in columns if c == name] or [
        c for c in columns if c.rpartition(".")[2] == name
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        what = f"{name!r} is ambiguous: it may be any of {', '.join(matches)}"
        remedy = "write the full name"
    else:
        suffixes = (column.rpartition(".")[2] for column in columns)
        what = f"no coordinate {name!r}"
        remedy = suggestion(name, (*columns, *suffixes)) or f"known: {listing(columns, 20)}"
    raise InputError.of(where, what, remedy)


Value = TypeVar("Value", float, tuple[float, float])


def by_column(
    columns: Mapping[str, str], values: Mapping[str, Value], where: str
) -> dict[str, Value]:
    """Return values or ranges by the full names of columns.

    Args:
        columns: SI units by full name.
        values: numbers, or lower and upper limits, by name or suffix.
        where: name of the option or argument, for messages.

    Raises:
        InputError: unknown, ambiguous or repeated names, or units of other dimensions; all problems
            are listed at once.
    """
    problems, result = Problems(), dict[str, Value]()
    for name, value in values.items():
        with problems.collecting(InputError):
            column = full_name(columns, name, where)
            if column in result:
                problems.add(where, f"{column} is given twice", "give it once")
            for number in value if isinstance(value, tuple) else (value,):
                require_unit(f"{where} {name}", number, columns[column])
            result[column] = value
    InputError.raise_if_any(problems)
    return result


def quaternion_start(port: Port) -> int | None:
    """Return the index of the first of four columns that form a quaternion, or None."""
    suffixes = tuple(column.rpartition(".")[2] for column in port.columns)
    starts = range(len(suffixes) - 3)
    return next((i for i in starts if suffixes[i : i + 4] == QUATERNION_SUFFIXES), None)


def named_values(port: Port, where: str, values: object, default: np.ndarray) -> np.ndarray:
    """Return the values (n,) of a port from numbers, a mapping or a text.

    Args:
        port: names and units.
        where: name of the option or argument, for messages.
        values: one of these: a row of numbers in SI units or texts with units; a table of one row
            with all columns, in any order; a mapping from full names or suffixes to such values; a
            text such as ``x=50mm,rz=10deg``; or None for the default. If the port has a quaternion,
            ``rx``, ``ry``, ``rz`` are the components of a rotation vector r (rad, at most half a
            revolution) that rotates the default orientation: R = exp([r]) R_default.
        default: values (n,) for columns that are not given.

    Raises:
        InputError: unknown or ambiguous names, wrong units or sizes, numbers that are not finite;
            all problems are listed at once.
    """
    problems, port = Problems(), replace(port, name=where)
    if values is None:
        return np.asarray(default)
    if isinstance(values, str):
        values = pairs(where, values, problems, _example(port))
    is_table = is_labeled_table(values)
    if not is_table:  # `checked` reads the row of a table by label
        values = by_label(values)
    if has_texts(values):
        if len(values) != port.size:
            what = f"has {counted(len(values), 'value')}, needs {port.size}"
            raise InputError.of(
                where, what, f"give one value for each of {', '.join(port.columns)}"
            )
        values = dict(zip(port.columns, values, strict=True))
    if isinstance(values, Mapping):
        return _by_name(port, where, values, default, problems)
    arrays, single = checked({where: port}, {where: values})
    if not single and not (is_table and len(arrays[where]) == 1):
        what = f"has {counted(len(arrays[where]), 'row')}"
        raise InputError.of(
            where, what, f"give one row with a value for each of {', '.join(port.columns)}"
        )
    return np.asarray(arrays[where][0])


def has_texts(values: object) -> TypeGuard[Sequence[str | float]]:
    """Return whether a row of values contains texts, such as ``["30 deg", 0.1]``."""
    return isinstance(values, list | tuple) and any(isinstance(item, str) for item in values)


#: Values in the examples of messages, by SI unit; other quantities are 0.1 of their SI unit.
EXAMPLE_VALUES = {"m": "10mm", "rad": "10deg", "1": "0.1"}


def _example(port: Port) -> str:
    """Return an assignment to the first column of a port, such as ``motor_1=10deg``."""
    name, unit = port.columns[0], port.units[0]
    if quaternion_start(port) == 0:
        name, unit = name.removesuffix(QUATERNION_SUFFIXES[0]) + ROTATION_VECTOR[0], "rad"
    value = EXAMPLE_VALUES.get(unit) or f"0.1 {unit}"
    text = f"{name}={value}"
    return f"'{text}'" if " " in text else text


def _by_name(
    port: Port,
    where: str,
    values: Mapping[str, str | float],
    default: np.ndarray,
    problems: Problems,
) -> np.ndarray:
    result = np.array(default, dtype=float)
    start = quaternion_start(port)
    units = dict(zip(port.columns, port.units, strict=True))
    if start is not None:
        units |= {
            port.columns[start].removesuffix(QUATERNION_SUFFIXES[0]) + name: "rad"
            for name in ROTATION_VECTOR
        }
    numbers: dict[str, float] = {}
    for name, value in values.items():
        with problems.collecting(InputError):
            column = full_name(units, name, where)
            if column in numbers:
                problems.add(where, f"{column} is given twice", "give it once")
            try:
                text = value if isinstance(value, str) else f"{float(value):.17g}"
            except TypeError:
                raise InputError.of(
                    f"{where} {name}",
                    f"is {value!r:.80}",
                    "give a number, or a string such as '10 mm'",
                ) from None
            numbers[column] = quantity(
                f"{where} {name}", text, parse_unit(units[column] or "1").dimension
            )
    rotation = [numbers.pop(column, 0.0) for column in units if column not in port.columns]
    if (
        start is not None
        and any(column in numbers for column in port.columns[start : start + 4])
        and any(rotation)
    ):
        problems.add(where, "has both a rotation vector and a quaternion", "give one of the two")
    if np.linalg.norm(rotation) > np.pi:
        problems.add(
            where,
            f"is a rotation of {np.degrees(np.linalg.norm(rotation)):.4g} deg",
            "give at most 180 deg",
        )
    InputError.raise_if_any(problems)
    for column, number in numbers.items():
        result[port.columns.index(column)] = number
    if start is not None and any(rotation):
        result[start : start + 4] = turned_quaternion(result[start : start + 4], np.array(rotation))
    return result


def ranges_of(
    text: str | Iterable[str] | None, where: str = "ranges"
) -> dict[str, tuple[float, float]]:
    """Return ranges by name from one or more texts such as ``a=0:1,b=2 mm:3 mm``.

    Raises:
        InputError: the text cannot be read; all problems are listed at once.
    """
    return _ranges_in(text, where, "x=-0.4:0.4", LENGTH, ANGLE, ONE)


def wrenches_of(text: str | Iterable[str] | None) -> dict[str, tuple[float, float]]:
    """Return ranges of forces and moments by name from texts such as ``fz=-100:0,mx=-1:1 N m``.

    Raises:
        InputError: all problems at once.
    """
    return _ranges_in(text, "wrenches", "fz=-100:0", FORCE, TORQUE, ONE)


def _ranges_in(
    text: str | Iterable[str] | None, where: str, example: str, *wanted: Dimension
) -> dict[str, tuple[float, float]]:
    """Return ranges of wanted dimensions by name."""
    problems, ranges = Problems(), dict[str, tuple[float, float]]()
    for name, limit_text in pairs(where, text, problems, example).items():
        try:
            limits = interval(limit_text, ":", *wanted, is_si=True)
        except UnitError as error:
            problems.add(where, f"{name}: {error.what}", error.remedy)
        else:
            ranges[name] = (limits.lower, limits.upper)
    InputError.raise_if_any(problems)
    return ranges


def numbers_of(text: str | None, where: str = "section", *wanted: Dimension) -> dict[str, float]:
    """Return lengths, angles or numbers (or the wanted dimensions) by name from ``a=1,b=2 mm``.

    Raises:
        InputError: the text cannot be read; all problems are listed at once.
    """
    problems, numbers = Problems(), dict[str, float]()
    for name, value in pairs(where, text, problems).items():
        with problems.collecting(InputError):
            numbers[name] = quantity(where, value, *(wanted or (LENGTH, ANGLE, ONE)))
    InputError.raise_if_any(problems)
    return numbers


def wrench_of(text: str) -> tuple[float, ...]:
    """Return a force and moment at the tool from a text such as ``fx=10,mz=0.5``."""
    return tuple(map(float, named_values(TOOL_PORT, "wrench", text, np.zeros(6))))
