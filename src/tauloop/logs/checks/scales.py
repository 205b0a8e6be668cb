"""Conversion from the unit of a column to the SI unit of a channel."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from tauloop.common.records import dataclass
from tauloop.logs.checks.findings import Findings
from tauloop.logs.tables import LogTable
from tauloop.mechanism.description.units import (
    ACCELERATION,
    ANGLE,
    ANGULAR_SPEED,
    FORCE,
    LENGTH,
    NUMBER,
    ONE,
    SPEED,
    TEMPERATURE,
    TIME,
    TORQUE,
    Dimension,
    Literal,
    Unit,
    UnitError,
    literal,
    parse_unit,
)

#: A number in front of a unit.
_SCALED_UNIT = re.compile(rf"[+-]?\s*{NUMBER}(\s*[A-Za-z]|\s+\S)", re.ASCII)

#: Dimensions of the quantities that are checked; other quantities may have any unit.
DIMENSIONS: Mapping[str, tuple[Dimension, ...]] = {
    "time": (TIME,),
    "position": (ANGLE, LENGTH, ONE),  # plain numbers are components of a quaternion
    "velocity": (ANGULAR_SPEED, SPEED),
    "acceleration": (ANGULAR_SPEED / TIME, ACCELERATION),
    "force": (TORQUE, FORCE),
    "force at the tool": (FORCE,),
    "moment at the tool": (TORQUE,),
    "difference of temperature": (TEMPERATURE,),
}


#: Units of raw recordings, whose size only the user knows, with an example of that size.
_RAW_UNITS = {
    "the angle or length of 1 count": (
        "1.2e-5 rad",
        "count counts cnt inc incs increment increments tick ticks pulse pulses lsb".split(),
    ),
    "the torque or force at 1 A": ("0.052 N m", "A Arms mA ampere amperes".split()),
    "the torque or force at 1 %": ("0.013 N m", ["%"]),
}
#: Usual spellings that differ from those of `parse_unit`.
_SYMBOL_SPELLINGS = {
    "°": "deg",
    "°/s": "deg/s",
    "°/s²": "deg/s^2",
    "µs": "us",
    "μs": "us",
    "µm": "um",
}


def _remedy_of_unit(text: str) -> str:
    """Return the remedy for the unit of a raw recording or a usual spelling; "" for others."""
    text = text.strip()
    for size, (example, names) in _RAW_UNITS.items():
        if text in names or text.lower() in names:
            return f"give {size} as the unit, such as '{example}', in the header or in `units`"
    return f"did you mean {_SYMBOL_SPELLINGS[text]}?" if text in _SYMBOL_SPELLINGS else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """SI value of one unit of the file, and the SI unit."""

    factor: float
    unit: str

    def of(self, values: np.ndarray) -> np.ndarray:
        """Return values (N,) of the file in the SI unit; the same array if nothing changes."""
        return values if self.factor == 1.0 else values * self.factor


def _one_of(unit: Unit) -> Literal:
    return Literal(1.0, unit.text, unit.scale, unit.dimension)


def find_scale(
    quantity: str, text: str, table: LogTable, column: int, findings: Findings
) -> Scale | None:
    """Return the scale of a column; None if its unit is missing, unknown or incompatible.

    Args:
        quantity: quantity of the column.
        text: a unit such as ``deg``, or a factor and a unit such as ``0.0523 N m``.
        table: the file.
        column: index of the column.
        findings: receives problems.
    """

    def note(what: str, remedy: str) -> None:
        findings.add(
            "units that are missing or wrong",
            f"column {table.names[column]!r}",
            what,
            remedy,
            table.file,
        )

    allowed = DIMENSIONS.get(quantity)
    examples = " or ".join(str(dimension) or "1" for dimension in allowed or (ANGLE,))
    if not text.strip():
        name, bracket, unit = table.names[column].removesuffix(")").rpartition(" (")
        header = f"{name} [{unit}]" if bracket else f"{table.names[column]} [...]"
        note("has no unit", f"add it to the header, `{header}`, or give `units` ({examples})")
        return None
    try:
        value = literal(text) if _SCALED_UNIT.match(text.strip()) else _one_of(parse_unit(text))
    except UnitError as error:
        note(error.what, _remedy_of_unit(text) or error.remedy)
        return None
    if value.value == 0.0:
        note(f"the factor of {text!r} is 0", "give the SI value of the number 1 in the file")
        return None
    if allowed is not None and value.dimension not in allowed:
        note(f"{value.unit!r} is not a unit of a {quantity}", f"use a unit such as {examples}")
        return None
    return Scale(factor=value.value, unit=str(value.dimension) or "1")
