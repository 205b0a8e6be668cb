"""Controllers on a stroke for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from tauloop.report.tables import table
from tauloop.simulation import ControlComparison


def control_tables(found: ControlComparison) -> Iterator[RenderableType]:
    """How far each controller stays behind, with which forces; and what is doubtful."""
    model = found.model
    kinds, forces = set(model.actuators.ports.position.units), set(model.output_ports("actuators")[1])
    unit, force_unit = (every.pop() if len(every) == 1 else "SI" for every in (kinds, forces))
    rows = table(
        f"{model.mechanism.name}: {found.duration:.4g} s, {found.space} space",
        *("controller", "distance,\npeak [mm]", "rms [mm]", f"actuators,\npeak [{unit}]"),
        *(f"force,\npeak [{force_unit}]", "saturated", ""),
        numeric=(1, 2, 3, 4, 5),
    )
    for name, run in found.runs.items():
        if not len(run.time):
            rows.add_row(name, "-", "-", "-", "-", "-", "ended at once")
            continue
        distances = ("-",) * 2
        if "m" in model.platform.ports.position.units:
            distances = (f"{1e3 * run.peak_error:.4g}", f"{1e3 * run.rms_error:.4g}")
        figures = (f"{np.abs(run.actuator_error).max():.3g}", f"{np.abs(run.force).max():.4g}")
        rows.add_row(name, *distances, *figures, f"{found.saturated(name):.1%}", "ended early" if run.end else "")
    yield rows
    for name, run in found.runs.items():
        if run.end:
            yield f"{name}: {run.end}"
    for item in found.evidence:
        if not item.is_good:
            yield Text(str(item), style="yellow")
