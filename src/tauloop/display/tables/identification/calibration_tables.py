"""Tables of a calibration; lengths in mm and angles in degrees."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.calibration import Calibration, ParameterDirection, UnknownsComparison
from tauloop.calibration.judging.identifiability import INDISTINGUISHABLE
from tauloop.common.counts import counted
from tauloop.display.pieces import Paragraph, Printed, Table
from tauloop.display.tables import doubts, status_line, table
from tauloop.mechanism.description.units import in_usual_unit, usual_unit

#: With fewer degrees of freedom, 95 % intervals are wider than two deviations and have a column.
FEW_DEGREES = 30
#: Maximum number of listed terms of a base combination, those with the largest coefficients.
MAX_LISTED_TERMS = 4


def corrections(calibration: Calibration) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return names with tolerances, and corrections and half-widths (n,) divided by the tolerances.

    The half-widths are those of 95 % intervals. An estimate without an interval has a half-width of
    zero.
    """
    estimates = calibration.estimates
    names = []
    for estimate in estimates:
        tolerance, unit = in_usual_unit(estimate.tolerance, estimate.unit)
        names.append(f"{estimate.name}, {tolerance:.3g} {unit}".rstrip(" ,"))
    scale = np.array([estimate.tolerance for estimate in estimates])
    values = np.array([estimate.correction for estimate in estimates]) / scale
    half_widths = np.array([estimate.half_width or 0.0 for estimate in estimates])
    return names, values, half_widths / scale


def calibration_tables(calibration: Calibration) -> Iterator[Printed]:
    """Yield summary, parameters with error bars, errors, outliers, doubts, and further analyses."""
    yield from _summary(calibration)
    yield from _parameters(calibration)
    if calibration.base_combinations:
        yield _base_combinations(calibration)
    yield _errors(calibration)
    yield from _undetermined(calibration)
    for a, b, r in calibration.strong_correlations[:6]:
        yield f"correlation {r:+.3f} of {a} and {b}"
    for outlier in calibration.outliers:
        factor, unit = usual_unit(_unit(calibration, outlier.pose_index))
        text = f"outlier: {outlier.label}: {outlier.quantity} off by {factor * outlier.error:.3g} {unit}, "
        yield Paragraph(text=f"{text}{outlier.deviations:.0f} standard deviations", tone="doubtful")
    yield from _residual_tables(calibration)
    yield from (Paragraph(text=str(problem), tone="doubtful") for problem in calibration.findings)
    yield from doubts(calibration)
    yield from _further_analyses(calibration)


def _base_combinations(calibration: Calibration) -> Table:
    """Return a table of base combinations of stiffness and expansion, relative to tolerances."""
    tolerances = {estimate.name: estimate.tolerance for estimate in calibration.estimates}
    rows = []
    for item in calibration.base_combinations:
        terms = [
            f"{coefficient * tolerances[name]:+.2f} {name}"
            for name, coefficient in item.terms[:MAX_LISTED_TERMS]
        ]
        ellipsis = " ..." if len(item.terms) > MAX_LISTED_TERMS else ""
        half_width = "-" if item.half_width is None else f"{item.half_width:.3g}"
        rows.append((" ".join(terms) + ellipsis, item.value, half_width))
    heads = ("corrections / tolerances", ("estimate", ".3g"), "± (95 %)")
    return table("Base combinations of stiffness and expansion", *heads, rows=rows)


def _further_analyses(calibration: Calibration) -> Iterator[Printed]:
    """Yield the requested further analyses: swaps, leave-one-out, bootstrap, sets of unknowns."""
    units = {unit for series in calibration.problem.series for _, unit in series.instrument.errors}
    common = units.pop() if len(units) == 1 else "SI"
    exchanges, bootstrap = calibration.exchanges, calibration.bootstrap
    if exchanges is not None:
        if exchanges.tried < exchanges.total and exchanges.seconds > 0:
            seconds = f"{exchanges.seconds:g} s"
            total = counted(exchanges.total, "pair of encoders")
            yield f"tried for a swap in {seconds}: {exchanges.tried} of {total}"
        for a, b in exchanges.pairs:
            yield f"these data cannot show whether the encoders of {a} and {b} are swapped: check the wiring by hand"
    if calibration.leave_one_out is not None:
        value, unit = in_usual_unit(calibration.leave_one_out.rms, common)
        yield f"leave-one-out: {value:.4g} {unit} RMS"
    if bootstrap is not None:
        pairs = zip(bootstrap.standard_deviations, calibration.estimates, strict=True)
        ratios = [
            deviation / estimate.deviation for deviation, estimate in pairs if estimate.deviation
        ]
        if ratios:
            times = f"{min(ratios):.2f} to {max(ratios):.2f} times the values above"
            samples = counted(len(bootstrap.corrections), "sample")
            yield f"bootstrap with {samples}: standard deviations {times}"
    if calibration.comparison is not None:
        yield from _comparison(calibration.comparison, common)


def _unit(calibration: Calibration, pose: int) -> str:
    """Return the unit of the errors of the series that contains a pose."""
    for series in calibration.problem.series:
        if pose < len(series):
            return series.instrument.errors[0][1]
        pose -= len(series)
    return "1"


def _summary(calibration: Calibration) -> Iterator[Printed]:
    identified = calibration.identifiability
    yield (
        f"{len(calibration.estimates)} of {counted(len(identified.unknowns), 'unknown')} estimated from "
        f"{counted(identified.equations, 'residual')} of {counted(calibration.problem.n_poses, 'pose')}; "
        f"rank {identified.rank} at the nominal geometry, {identified.generic_rank} away from it; "
        f"{counted(len(identified.gauge), 'gauge freedom')}, "
        f"{counted(len(identified.weak), 'direction')} weaker than the tolerances"
    )
    yield status_line(calibration)


def _parameters(calibration: Calibration) -> Iterator[Table]:
    """Yield a table of the machine's parameters, and one of instruments and encoders."""
    headings = [
        ("nominal", ".4f"),
        ("calibrated", ".4f"),
        ("correction", "+.4f"),
        ("std. dev.", ".2g"),
    ]
    has_wide_intervals = 0 < calibration.degrees_of_freedom < FEW_DEGREES
    if has_wide_intervals:
        headings.append(("± 95 %", ".2g"))
    titles = (("Parameters", False), ("Parameters of instruments and encoders", True))
    for title, is_nuisance in titles:
        cells = []
        for estimate in (item for item in calibration.estimates if item.is_nuisance is is_nuisance):
            factor, unit = usual_unit(estimate.unit)
            note = "prior" if estimate.has_prior else ""
            if len(estimate.members) > 1:
                note = f"of {len(estimate.members)}"
            if estimate.bound is not None:
                note = f"{note}, bound".lstrip(", ")
            values = [estimate.nominal, estimate.value, estimate.correction, estimate.deviation]
            if has_wide_intervals:
                values.append(estimate.half_width)
            shown_values = ("none" if value is None else factor * value for value in values)
            cells.append((estimate.name, *shown_values, unit, note))
        if cells:
            notes = [""] if any(cell[-1] for cell in cells) else []
            rows = [cell if notes else cell[:-1] for cell in cells]
            yield table(title, "parameter", *headings, "unit", *notes, rows=rows)


def _errors(calibration: Calibration) -> Table:
    headings = [
        (head, ".3g") for head in ("RMS\nbefore", "\nafter", "mean size\nafter", "largest\nafter")
    ]
    cells = []
    for before, after in zip(calibration.before, calibration.after, strict=True):
        factor, unit = usual_unit(after.unit)
        values = (before.rms, after.rms, after.mean_absolute, after.largest)
        cells.append(
            (after.instrument, after.quantity, *(factor * value for value in values), unit)
        )
    return table(
        "Errors, predicted minus measured", "series", "quantity", *headings, "unit", rows=cells
    )


def _residual_tables(calibration: Calibration) -> list[Printed]:
    """Return a table of trends and correlations of the residuals, and remarks on them."""
    analysis = calibration.residual_analysis
    value_heads = (
        ("its\nshare", ".2f"),
        ("\np", ".1g"),
        ("neigh-\nbors r", "+.2f"),
        ("\np", ".1g"),
        ("normal\np", ".1g"),
    )
    cells = []
    for item in analysis.quantities:
        trend = min(item.trends, key=lambda trend: trend.p, default=None)
        trends = ("", "", "") if trend is None else (trend.against, trend.share, trend.p)
        others = (item.correlation, item.correlation_p, item.normality_p)
        cells.append((f"{item.series} {item.quantity}", *trends, *others))
    rows = table("Residuals", "quantity", "strongest\ntrend with", *value_heads, rows=cells)
    lines: list[Printed] = [
        Paragraph(text=f"residuals: {line}", tone="doubtful") for line in analysis.remarks
    ]
    return [rows, *(lines or [f"residuals: {analysis.verdict}"])]


def direction_text(calibration: Calibration, direction: ParameterDirection, most: int = 6) -> str:
    """Return a text with the `most` largest terms of a combination of unknowns."""
    units = {unknown.name: unknown.unit for unknown in calibration.problem.unknowns}
    terms = []
    for name, change in direction.terms[:most]:
        value, unit = in_usual_unit(change, units[name])
        terms.append(f"{value:+.3g} {unit} {name}".replace("  ", " "))
    n_omitted = len(direction.terms) - most
    return ", ".join(terms) + (f" and {n_omitted} smaller" if n_omitted > 0 else "")


def gauge_name(direction: ParameterDirection) -> str:
    """Return the name of the motion that a gauge freedom describes, with the explained fraction."""
    if direction.name:
        if direction.explained is None or direction.explained > 0.9999:
            return direction.name
        return f"{direction.name} ({100 * direction.explained:.1f} % of it)"
    if direction.explained is None:
        return "a motion without a name"
    percentage = f"{100 * direction.explained:.0f} %"
    return f"several motions at once (rotations and shifts of frames, scales or offsets: {percentage} of it)"


def _undetermined(calibration: Calibration) -> list[Printed]:
    """Return gauge freedoms, weakly determined directions, and parameters left at their start."""
    identified = calibration.identifiability
    parts: list[Printed] = []
    if identified.gauge:
        parts.append(
            Paragraph(
                text="Gauge freedoms: changes of the unknowns that do not change any measurement",
                tone="strong",
            )
        )
        parts += [
            f"  {gauge_name(direction)}: {direction_text(calibration, direction)}"
            for direction in identified.gauge
        ]
    if identified.weak:
        parts.append(
            Paragraph(
                text="Determined less accurately than their tolerances (standard deviation in tolerances)",
                tone="strong",
            )
        )
        parts += [
            f"  {d.deviation:.3g}: {direction_text(calibration, d, 4)}" for d in identified.weak[:5]
        ]
        if len(identified.weak) > 5:
            parts.append(f"  and {len(identified.weak) - 5} more")
    if identified.left_out:
        parts.append(Paragraph(text="Left at their start values", tone="strong"))
        for item in identified.left_out:
            in_gauge = item.reason.startswith(INDISTINGUISHABLE)
            reason = f"{INDISTINGUISHABLE}: its gauge freedom is above" if in_gauge else item.reason
            parts.append(f"  {item.name}: {reason}")
    return parts


def _comparison(comparison: UnknownsComparison, unit: str) -> Iterator[Printed]:
    """Yield a table of sets of unknowns with errors at unused poses, and the recommendation."""
    factor, display_unit = usual_unit(unit)
    headings = [(head, ".4g") for head in ("leave-one-out", "k folds: mean", "smallest", "largest")]
    cells = []
    for model in comparison.models:
        folds = factor * model.fold_errors
        errors = (factor * model.leave_one_out.rms, folds.mean(), folds.min(), folds.max())
        cells.append((model.name, model.unknowns, *errors))
    yield table(
        f"Errors at unused poses (RMS, {display_unit})",
        "set",
        ("unknowns", ""),
        *headings,
        rows=cells,
    )
    yield Paragraph(text=f"recommended: {comparison.recommended}", tone="strong")
    yield comparison.reason
