"""Tables of an exported FMU: its variables, and commands to try it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tauloop.common.counts import counted
from tauloop.display.pieces import Printed
from tauloop.display.tables import table
from tauloop.export.fmu import FmuExport


def fmu_tables(exported: FmuExport) -> Iterator[Printed]:
    """Yield the inputs, outputs and parameters with units and start values, and commands."""
    variables = exported.variables
    for title, role in (("Inputs", "input"), ("Outputs", "output"), ("Parameters", "parameter")):
        rows = [
            (variable.name, variable.unit, "" if variable.start is None else variable.start)
            for variable in variables.all
            if variable.causality == role
        ]
        if rows:
            yield table(title, "name", ("unit", ""), ("start", ""), rows=rows)
    folders = Counter(name.partition("/")[0] for name in exported.files)
    binary = (
        "a library for this platform"
        if folders["binaries"]
        else "no library: importers compile the sources"
    )
    yield (
        f"FMI {exported.version}.0, model exchange and co-simulation: "
        f"{counted(len(variables.states), 'state')}, "
        f"{counted(len(variables.modes), 'event indicator')}; {binary}"
    )
    for path in exported.written:
        yield f"check and run it: fmpy validate {path}; fmpy simulate {path} --show-plot"
