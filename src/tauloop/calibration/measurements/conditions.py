"""Columns of loads at the tool and of temperatures of parts in tables of measurements.

``load.fx [N]`` ... ``load.mz [N m]`` are the wrench at the tool center point, in the axes of the
base, in addition to the machine's weight; missing components are zero. ``temperature.PART [K]`` is
the temperature of a part above the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from tauloop.common.records import dataclass
from tauloop.equations.named_values import TOOL_PORT
from tauloop.logs.checks.findings import Findings
from tauloop.logs.checks.scales import find_scale
from tauloop.logs.tables import LogTable
from tauloop.mechanism.suggestions import suggestion, unknown_names

#: Prefixes of the names of standard columns.
LOAD_PREFIX = "load."
TEMPERATURE_PREFIX = "temperature."
#: Units with an offset, which are not allowed for temperature differences.
_CELSIUS = ("degC", "°C", "C", "celsius", "Celsius")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionColumns:
    """Columns of loads and temperatures.

    Attributes:
        loads: column of each component (fx ... mz) of the wrench at the tool.
        temperatures: column of each thermometer.
        noise: standard deviation of the thermometers, K.
    """

    loads: Mapping[str, str] = field(default_factory=dict)
    temperatures: Mapping[str, str] = field(default_factory=dict)
    noise: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoseConditions:
    """Loads and temperatures of the rows of a table.

    The attributes are described in `Series`.
    """

    loads: np.ndarray | None
    thermometers: tuple[str, ...]
    temperatures: np.ndarray | None

    def rows(self, rows: np.ndarray) -> PoseConditions:
        """Return the conditions of some rows."""
        return PoseConditions(
            loads=None if self.loads is None else self.loads[rows],
            thermometers=self.thermometers,
            temperatures=None if self.temperatures is None else self.temperatures[rows],
        )


def standard_loads(table: LogTable) -> dict[str, str]:
    """Return the columns of loads in a table with standard headers, by component."""
    return _with_prefix(table, LOAD_PREFIX)


def standard_temperatures(table: LogTable) -> dict[str, str]:
    """Return the columns of temperatures in a table with standard headers, by part."""
    return _with_prefix(table, TEMPERATURE_PREFIX)


def _with_prefix(table: LogTable, prefix: str) -> dict[str, str]:
    names = [name for name in table.names if name.startswith(prefix)]
    return {name.removeprefix(prefix): name for name in names}


def read_conditions(
    table: LogTable,
    count: int,
    chosen_columns: ConditionColumns,
    units: Mapping[str, str],
    findings: Findings,
) -> PoseConditions:
    """Return the loads and temperatures of all rows of a table.

    Args:
        table: the measurements.
        count: number of rows of the table.
        chosen_columns: columns of the table with loads and temperatures.
        units: units by group (``loads``, ``temperatures``) or column.
        findings: receives problems. If there are any, the result is not complete.
    """
    for problem in unknown_names(
        chosen_columns.loads, TOOL_PORT.columns, "is not a component of a wrench", "load.{}"
    ):
        findings.add("loads", problem.where, problem.what, problem.remedy, table.file)
    dimensions = dict(zip(TOOL_PORT.columns, TOOL_PORT.units, strict=True))
    loads = None
    if chosen_columns.loads:
        loads = np.zeros((count, len(TOOL_PORT.columns)))
    for name, column in chosen_columns.loads.items():
        if name not in dimensions or loads is None:
            continue
        quantity = "force at the tool" if dimensions[name] == "N" else "moment at the tool"
        values = _column(table, f"load.{name}", column, quantity, ("loads", units), findings)
        if values is not None:
            loads[:, TOOL_PORT.columns.index(name)] = values
    names = tuple(chosen_columns.temperatures)
    temperatures = np.zeros((count, len(names))) if names else None
    for index, name in enumerate(names):
        column = chosen_columns.temperatures[name]
        where = f"temperature.{name}"
        group = ("temperatures", units)
        values = _column(table, where, column, "difference of temperature", group, findings)
        if temperatures is not None and values is not None:
            temperatures[:, index] = values
    return PoseConditions(loads=loads, thermometers=names, temperatures=temperatures)


def _column(
    table: LogTable,
    where: str,
    column: str,
    quantity: str,
    group: tuple[str, Mapping[str, str]],
    findings: Findings,
) -> np.ndarray | None:
    """Return the SI values of a column; None if it has problems, which are recorded.

    `group` is the name of the group of columns, and the units by group or column.
    """
    if column not in table.names:
        remedy = suggestion(column, table.names) or f"use one of {', '.join(table.names)}"
        findings.add("missing", where, f"no column {column!r}", remedy, table.file)
        return None
    index = table.names.index(column)
    name, units = group
    text = units.get(column, units.get(name, table.units[index]))
    if text.strip() in _CELSIUS:
        what = f"is in {text.strip()}, but temperatures above the reference are differences"
        remedy = "subtract the reference temperature, and give differences in K"
        findings.add("units that are missing or wrong", where, what, remedy, table.file)
        return None
    scale = find_scale(quantity, text, table, index, findings)
    if scale is None:
        return None
    return np.asarray(scale.of(table.numbers([index], findings)[:, 0]))
