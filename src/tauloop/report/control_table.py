"""Controllers on a stroke for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.console import RenderableType

from tauloop.report.simulation_table import sensitivity_table
from tauloop.report.tables import doubts, table
from tauloop.simulation import ControlComparison


def control_tables(comparison: ControlComparison) -> Iterator[RenderableType]:
    """How far each controller stays behind, with which forces; and what is doubtful."""
    model = comparison.model
    kinds, forces = set(model.actuators.ports.position.units), set(model.output_ports("actuators")[1])
    unit, force_unit = (every.pop() if len(every) == 1 else "SI" for every in (kinds, forces))
    cells: list[tuple[object, ...]] = []
    for name, run in comparison.runs.items():
        if not len(run.time):
            cells.append((name, *"-----", "ended at once"))
            continue
        distances: tuple[object, ...] = ("-", "-")
        if "m" in model.platform.ports.position.units:
            distances = (1e3 * run.peak_error, 1e3 * run.rms_error)
        figures = (np.abs(run.actuator_error).max(), np.abs(run.force).max(), comparison.saturated(name))
        cells.append((name, *distances, *figures, "ended early" if run.end else ""))
    yield table(
        f"{model.mechanism.name}: {comparison.duration:.4g} s, {comparison.space} space",
        *("controller", ("distance,\npeak [mm]", ".4g"), ("rms [mm]", ".4g"), (f"actuators,\npeak [{unit}]", ".3g")),
        *((f"force,\npeak [{force_unit}]", ".4g"), ("saturated", ".1%"), ""),
        rows=cells,
    )
    for name, run in comparison.runs.items():
        if run.end:
            yield f"{name}: {run.end}"
        yield from (f"{name}: {occurrence.words}" for occurrence in run.occurrences)
        if run.sensitivities is not None and len(run.time):
            yield sensitivity_table(f"{name}: derivatives", run.sensitivities)
    yield from doubts(comparison)
