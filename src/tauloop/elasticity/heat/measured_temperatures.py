"""Temperatures of parts from a table with a column ``temperature.PART [K]`` per thermometer."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tauloop.common.errors import LogError, Problem
from tauloop.elasticity.frame.beams import Array
from tauloop.logs.checks.findings import Findings
from tauloop.logs.files.opening import open_table

#: Prefix of the names of columns with temperatures.
PREFIX = "temperature."
#: Accepted units of temperatures relative to the reference. Degrees Celsius are not accepted, because
#: their zero is not the reference temperature.
UNITS = ("", "K")


def measured_temperatures(path: str | Path) -> dict[str, Array]:
    """Return the rises (N,) of parts above the reference temperature, K, in the rows of a table.

    Raises:
        LogError: the file is missing or damaged, or its columns are not temperatures.
    """
    table = open_table(path)
    findings = Findings()
    columns = {}
    for index, (name, unit) in enumerate(zip(table.names, table.units, strict=True)):
        if not name.startswith(PREFIX):
            continue
        if unit not in UNITS:
            what = f"is in {unit}, which is not a unit of temperature differences"
            remedy = "give rises above the reference temperature in K"
            findings.add("units", f"column {name!r}", what, remedy, table.file)
        columns[name.removeprefix(PREFIX)] = index
    findings.raise_if_any()
    if not columns:
        what = "has no column with a temperature"
        remedy = f"name the columns {PREFIX}PART [K], such as {PREFIX}base [K]"
        raise LogError([Problem(where="", what=what, remedy=remedy, file=table.file)])
    values = table.numbers(tuple(columns.values()), findings)
    findings.raise_if_any()
    return dict(zip(columns, np.asarray(values, dtype=float).T, strict=True))
