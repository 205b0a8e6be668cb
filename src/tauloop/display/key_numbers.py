"""Key numbers of a result: the most important values, at the top of its page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from tauloop.common.datasets import Variable
from tauloop.common.result import Diagnostic
from tauloop.display.pieces import KeyNumbers
from tauloop.dynamics.motor_loads import RPM_PER_RAD_S
from tauloop.dynamics.motor_sizing import is_within

#: Quantities over time whose largest absolute values are shown, with the text of the number.
PEAKS = {
    "force": "peak force of a motor",
    "power": "peak power",
    "velocity": "peak velocity",
    "acceleration": "peak acceleration",
    "error": "largest error",
}
#: Texts for peaks in these units.
PEAKS_BY_UNIT = {"N m": {"force": "peak torque of a motor"}}
#: Maximum number of diagnostics among the key numbers.
MAX_DIAGNOSTICS = 4
#: Maximum number of key numbers.
MAX_NUMBERS = 8

#: Name, value with its unit, and remark of a key number.
Row = tuple[str, str, str]


def key_numbers(result: Any) -> KeyNumbers | None:
    """Return the key numbers of a result, such as duration and peaks; None if it has no numbers.

    Peaks are computed from the result's quantities over time. Diagnostics are added if they have a
    unit or are outside their limits, or if the result has no peaks.
    """
    first_rows = _SPECIAL_ROWS.get(type(result).__name__, _peaks)
    rows = list(first_rows(result))
    diagnostics = getattr(result, "diagnostics", ())
    limited = [item for item in diagnostics if item.limits]
    if limited:
        passed = sum(item.is_good for item in limited)
        rows.append(("diagnostics within limits", f"{passed} of {len(limited)}", ""))
    # In addition to peaks, only errors with a unit and values outside their limits are of interest.
    has_no_peaks = len(rows) <= bool(limited)
    relevant = [item for item in diagnostics if has_no_peaks or item.unit or not item.is_good]
    defined = [item for item in relevant if item.value is not None]
    rows += [_diagnostic(item) for item in defined[:MAX_DIAGNOSTICS]]
    return KeyNumbers(rows=tuple(rows[:MAX_NUMBERS])) if rows else None


def _peaks(result: Any) -> Iterator[Row]:
    """Yield the duration, and the largest absolute value of each quantity and unit over time."""
    variables = getattr(result, "variables", None)
    if variables is None:
        return
    over_time = [item for item in variables() if item.over == ("time",)]
    axes = [item for item in over_time if item.is_label]
    if not axes:
        return
    time = axes[0].array()
    yield "duration", f"{time[-1] - time[0]:.4g} s", ""
    for quantity, name in PEAKS.items():
        columns = [item for item in over_time if item.quantity == quantity]
        for unit in dict.fromkeys(str(item.unit) for item in columns):
            same_unit = [item for item in columns if str(item.unit) == unit]
            text = PEAKS_BY_UNIT.get(unit, {}).get(quantity, name)
            yield from _peak(text, unit, time, same_unit)


def _peak(name: str, unit: str, time: np.ndarray, columns: list[Variable]) -> Iterator[Row]:
    """Yield the largest absolute value in some columns over time, with its channel and time."""
    values = np.abs(np.array([item.array() for item in columns], dtype=float))
    if not values.size or not np.isfinite(values).any() or not np.nanmax(values):
        return
    column, sample = np.unravel_index(np.nanargmax(values), values.shape)
    channel = columns[column].name.partition(".")[2]
    amount = f"{values[column, sample]:.4g} {unit}".strip().replace("^2", "²")
    yield name, amount, f"{channel} at {time[sample]:.3g} s".strip()


def _planned(motion: Any) -> Iterator[Row]:
    """Yield the duration and the exact peaks of force, speed and acceleration of a motion."""
    yield "duration", f"{motion.trajectory.total:.4g} s", ""
    yield from _largest_forces(
        (peak.actuator, peak.force, peak.unit, f"at {peak.time:.3g} s", peak.limit)
        for peak in motion.forces
    )
    units = motion.trajectory.stroke.functions.ports.velocity.units
    unit = "m/s" if "m/s" in units else units[0]
    yield "peak speed", f"{motion.peak_speed:.4g} {unit}", ""
    yield "peak acceleration", f"{motion.peak_acceleration:.4g} {unit}²", ""


def _cycle(cycle: Any) -> Iterator[Row]:
    """Yield the time of a cycle, and the largest loads of its motors."""
    yield "cycle time", f"{cycle.time:.4g} s", ""
    yield from _largest_forces(
        (motor.actuator, motor.peak_force, motor.unit, "", np.inf) for motor in cycle.motors
    )
    strongest = max(cycle.motors, key=lambda motor: motor.peak_power)
    yield "peak power of a motor", f"{strongest.peak_power:.4g} W", strongest.actuator


def _motors(sizing: Any) -> Iterator[Row]:
    """Yield the largest loads of the motors, and the lightest motor with its gear."""
    for is_rotary in (True, False):
        loads = [load for load in sizing.loads if load.is_rotary == is_rotary]
        if not loads:
            continue
        unit, quantity = ("N m", "torque") if is_rotary else ("N", "force")
        strongest = max(loads, key=lambda load: load.peak_force)
        yield f"peak {quantity} of a motor", f"{strongest.peak_force:.4g} {unit}", strongest.name
        hottest = max(loads, key=lambda load: load.rms_force)
        yield f"RMS {quantity} of a motor", f"{hottest.rms_force:.4g} {unit}", hottest.name
        factor, unit = (RPM_PER_RAD_S, "rpm") if is_rotary else (1.0, "m/s")
        fastest = max(loads, key=lambda load: load.peak_speed)
        yield "peak speed of a motor", f"{factor * fastest.peak_speed:.4g} {unit}", fastest.name
        suitable = [c for c in sizing.for_all(is_rotary=is_rotary) if is_within(c, sizing.options)]
        if suitable:
            best = suitable[0]
            remark = f"utilization {best.use:.0%} ({best.limited_by})"
            name = "lightest motor and gear" if best.mass is not None else "motor and gear"
            yield name, f"{best.motor}, {best.gear}", remark


def _identified(result: Any) -> Iterator[Row]:
    """Yield the largest errors of the fit, and the number and accuracy of the base parameters."""
    fit = result.identification
    for name, outputs in (("held-out error", fit.held_out), ("training error", fit.training)):
        if outputs:
            worst = max(outputs, key=lambda output: output.rmse_percent)
            remark = f"RMS, {worst.rmse_percent:.2g} % of the largest force of {worst.output}"
            yield name, f"{worst.rmse:.3g} {worst.unit}", remark
    known = [value for value in fit.relative_standard_deviations if value is not None]
    remark = f"standard deviations {min(known):.2g} to {max(known):.2g} %" if known else ""
    yield "base parameters", f"{fit.base.rank}", remark


def _largest_forces(peaks: Iterable[tuple[str, float, str, str, float]]) -> Iterator[Row]:
    """Yield the largest force in each unit.

    Args:
        peaks: actuator, force, unit, text on the time, and limit of each peak.
    """
    by_unit: dict[str, list[tuple[str, float, str, str, float]]] = {}
    for peak in peaks:
        by_unit.setdefault(peak[2], []).append(peak)
    for unit, same_unit in by_unit.items():
        name, force, _, time_text, limit = max(same_unit, key=lambda peak: abs(peak[1]))
        remark = f"{name} {time_text}".strip()
        if np.isfinite(limit):
            remark += f", limit {limit:.4g} {unit}"
        text = PEAKS_BY_UNIT.get(unit, {}).get("force", PEAKS["force"])
        yield text, f"{abs(force):.4g} {unit}", remark


def _control(comparison: Any) -> Iterator[Row]:
    """Yield duration, and the largest distance of each controller from the reference."""
    yield "duration", f"{comparison.duration:.4g} s", ""
    for name, run in comparison.runs.items():
        if len(run.time):
            remark = f"peak; RMS {1e3 * run.rms_error:.4g} mm"
            yield f"distance from the reference, {name}", f"{1e3 * run.peak_error:.4g} mm", remark


def _diagnostic(item: Diagnostic) -> Row:
    """Return a diagnostic as a key number, with the condition under which it passes."""
    limits = f"pass if {item.limits}" if item.limits else ""
    return item.name, f"{item.value:.3g} {item.unit}".strip(), limits


#: Functions of the first key numbers of results with exact peaks or several runs, by their class.
_SPECIAL_ROWS: Mapping[str, Callable[[Any], Iterator[Row]]] = {
    "ControlComparison": _control,
    "Cycle": _cycle,
    "MachineIdentification": _identified,
    "MotorSizing": _motors,
    "PlannedMotion": _planned,
}
