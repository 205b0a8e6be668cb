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
        note(
            "has no unit",
            f"add it to the header, `{table.names[column]} [...]`, or give `units` ({examples})",
        )
        return None
    try:
        value = literal(text) if _SCALED_UNIT.match(text.strip()) else _one_of(parse_unit(text))
    except UnitError as error:
        note(error.what, error.remedy)
        return None
    if value.value == 0.0:
        note(f"the factor of {text!r} is 0", "give the SI value of the number 1 in the file")
        return None
    if allowed is not None and value.dimension not in allowed:
        note(f"{value.unit!r} is not a unit of a {quantity}", f"use a unit such as {examples}")
        return None
    return Scale(factor=value.value, unit=str(value.dimension) or "1")
