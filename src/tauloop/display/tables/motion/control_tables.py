"""Tables of controllers that follow a stroke."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.display.tables.motion.simulation_tables import sensitivity_table
from tauloop.simulation import ControlComparison
from tauloop.simulation.controllers.workflow import COUPLING_CHANGE


def _peaks(values: np.ndarray, units: Sequence[str]) -> list[float]:
    """Return the largest absolute value in the columns (N, n) of each unit."""
    names = np.array(units)
    return [float(np.abs(values[:, names == unit]).max()) for unit in dict.fromkeys(units)]


def control_tables(comparison: ControlComparison) -> Iterator[Printed]:
    """Yield the errors and forces of each controller, and doubts."""
    model = comparison.model
    units, force_units = model.actuator_units, model.output_ports("actuators")[1]
    cells: list[tuple[object, ...]] = []
    rotation_heads = []
    if any(run.turn_error.any() for run in comparison.runs.values()):
        rotation_heads = [("turn,\npeak [mrad]", ".3g")]
    for name, run in comparison.runs.items():
        if not len(run.time):
            n_empty = 3 + len(rotation_heads) + len(set(units)) + 2 * len(set(force_units))
            cells.append((name, *["-"] * n_empty, "ended at once"))
            continue
        rms = np.sqrt(np.mean(run.force**2, axis=0, keepdims=True))
        peaks = _peaks(run.actuator_error, units)
        for pair in zip(_peaks(run.force, force_units), _peaks(rms, force_units), strict=True):
            peaks += pair
        errors = [1e3 * run.peak_error, 1e3 * run.rms_error]
        if rotation_heads:
            errors.append(1e3 * run.peak_turn)
        cells.append(
            (name, *errors, *peaks, comparison.saturated(name), "ended early" if run.end else "")
        )
    yield table(
        f"{model.mechanism.name}: {comparison.duration:.4g} s, {comparison.space} space",
        "controller",
        *(("distance,\npeak [mm]", ".4g"), ("rms [mm]", ".4g"), *rotation_heads),
        *((f"actuators,\npeak [{unit}]", ".3g") for unit in dict.fromkeys(units)),
        *(
            column
            for unit in dict.fromkeys(force_units)
            for column in ((f"force,\npeak [{unit}]", ".4g"), (f"rms\n[{unit}]", ".4g"))
        ),
        *(("saturated", ".1%"), ""),
        rows=cells,
    )
    for name, run in comparison.runs.items():
        if run.end:
            yield f"{name}: {run.end}"
        if len(run.step_time):
            median, upper = 1e6 * np.quantile(run.step_time, [0.5, 0.999])
            fraction = 1e-6 * upper * comparison.sampling.frequency
            yield (
                f"{name}: {median:.0f} us per step in Python, 99.9 % within {upper:.0f} us "
                f"({fraction:.1%} of the period)"
            )
        yield from (f"{name}: {occurrence.words}" for occurrence in run.occurrences)
        if run.sensitivities is not None and len(run.time):
            yield sensitivity_table(f"{name}: derivatives", run.sensitivities)
    yield from (str(item) for item in comparison.diagnostics if item.name == COUPLING_CHANGE)
    yield from doubts(comparison)
