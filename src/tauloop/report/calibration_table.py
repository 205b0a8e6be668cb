"""The tables of a calibration for the terminal; lengths in mm and angles in degrees."""

from __future__ import annotations

import math

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tauloop.calibration import Calibration, Comparison, Direction
from tauloop.calibration.judging.identifiability import NOT_TOLD_APART
from tauloop.result import Status

#: What one SI unit is in the unit that is shown.
SHOWN = {"m": (1e3, "mm"), "rad": (180 / math.pi, "deg"), "1": (1.0, "")}


def shown(value: float, unit: str) -> tuple[float, str]:
    """A value in SI in the unit that is shown."""
    factor, name = SHOWN.get(unit, (1.0, unit))
    return value * factor, name


def calibration_table(calibration: Calibration) -> Group:
    """Summary, parameters with error bars, errors before and after, what cannot be told, outliers and advice."""
    parts: list[RenderableType] = [_summary(calibration), _parameters(calibration), _errors(calibration)]
    parts += _untold(calibration)
    for a, b, r in calibration.strong_correlations[:6]:
        parts.append(Text(f"correlation {r:+.3f} of {a} and {b}"))
    for outlier in calibration.outliers:
        factor, unit = SHOWN.get(_unit(calibration, outlier.pose), (1.0, ""))
        text = f"outlier: {outlier.label}: {outlier.quantity} off by {factor * outlier.error:.3g} {unit}, "
        parts.append(Text(f"{text}{outlier.deviations:.0f} standard deviations", style="yellow"))
    parts += _analysed(calibration)
    parts += [Text(str(problem), style="yellow") for problem in calibration.findings]
    parts += [Text(line, style="yellow") for line in calibration.advice]
    return Group(*parts)


def _unit(calibration: Calibration, pose: int) -> str:
    for series in calibration.problem.series:
        if pose < len(series):
            return series.instrument.errors[0][1]
        pose -= len(series)
    return "1"


def _summary(calibration: Calibration) -> Text:
    told = calibration.identifiability
    text = Text()
    text.append(
        f"{len(calibration.estimates)} of {len(told.unknowns)} unknowns estimated from {told.equations} residuals of "
        f"{calibration.problem.n_poses} poses; rank {told.rank} at the nominal geometry, {told.generic_rank} away from "
        f"it; {len(told.gauge)} gauge freedoms, {len(told.weak)} directions weaker than their tolerances\n"
    )
    good = calibration.status is Status.OK
    text.append(f"status: {calibration.status.value}", style="green" if good else "bold yellow")
    return text


def _parameters(calibration: Calibration) -> Table:
    table = Table(
        title="Parameters",
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=0,
    )
    # long names go on below, so that figures are never cut off
    table.add_column("parameter", overflow="fold")
    for heading in ("nominal", "calibrated", "correction", "std. dev."):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    table.add_column("", overflow="fold")
    for estimate in calibration.estimates:
        factor, unit = SHOWN.get(estimate.unit, (1.0, estimate.unit))
        note = "nuisance" if estimate.is_nuisance else "prior" if estimate.has_prior else ""
        if len(estimate.members) > 1:
            note = f"of {len(estimate.members)}"
        if estimate.bound is not None:
            note = f"{note}, bound".lstrip(", ")
        table.add_row(
            escape(estimate.name),
            f"{factor * estimate.nominal:.4f}",
            f"{factor * estimate.value:.4f}",
            f"{factor * estimate.correction:+.4f}",
            f"{factor * estimate.deviation:.2g}",
            unit,
            note,
        )
    return table


def _errors(calibration: Calibration) -> Table:
    table = Table(title="Errors, predicted less measured", title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for heading in ("series", "quantity"):
        table.add_column(heading, no_wrap=True)
    for heading in ("RMS\nbefore", "\nafter", "mean size\nafter", "largest\nafter"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    for before, after in zip(calibration.before, calibration.after, strict=True):
        factor, unit = SHOWN.get(after.unit, (1.0, after.unit))
        cells = [f"{factor * value:.3g}" for value in (before.rms, after.rms, after.mean_absolute, after.largest)]
        table.add_row(escape(after.series), after.quantity, *cells, unit)
    return table


def _analysed(calibration: Calibration) -> list[RenderableType]:
    """What the residuals look like, and what in them chance does not make."""
    analysis = calibration.residual_analysis
    table = Table(title="Residuals", title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for heading in ("quantity", "strongest\ntrend with"):
        table.add_column(heading, no_wrap=True)
    for heading in ("its\nshare", "\np", "neigh-\nbours r", "\np", "normal\np"):
        table.add_column(heading, justify="right", no_wrap=True)
    for item in analysis.quantities:
        trend = min(item.trends, key=lambda trend: trend.p, default=None)
        trend_cells = ("", "", "") if trend is None else (trend.against, f"{trend.share:.2f}", f"{trend.p:.1g}")
        cells = (
            "" if value is None else f"{value:{form}}"
            for value, form in ((item.correlation, "+.2f"), (item.correlation_p, ".1g"), (item.normality_p, ".1g"))
        )
        table.add_row(escape(f"{item.series} {item.quantity}"), *trend_cells, *cells)
    lines = [Text(f"residuals: {line}", style="yellow") for line in analysis.remarks]
    return [table, *(lines or [Text(f"residuals: {analysis.verdict}")])]


def in_words(calibration: Calibration, direction: Direction, most: int = 6) -> str:
    """A combination of unknowns in shown units, its largest terms."""
    units = {unknown.name: unknown.unit for unknown in calibration.problem.unknowns}
    terms = []
    for name, change in direction.terms[:most]:
        value, unit = shown(change, units[name])
        terms.append(f"{value:+.3g} {unit} {name}".replace("  ", " "))
    more = len(direction.terms) - most
    return ", ".join(terms) + (f" and {more} smaller" if more > 0 else "")


def named(direction: Direction) -> str:
    """The motion that a gauge freedom is, and how much of it."""
    if direction.name:
        whole = direction.explained is None or direction.explained > 0.9999
        return direction.name if whole else f"{direction.name} ({100 * (direction.explained or 0):.1f} % of it)"
    if direction.explained is None:
        return "no motion known by name"
    share = f"{100 * direction.explained:.0f} %"
    return f"several motions at once ({share} of it are turns and shifts of frames, scales or offsets)"


def _untold(calibration: Calibration) -> list[RenderableType]:
    told = calibration.identifiability
    parts: list[RenderableType] = []
    if told.gauge:
        parts.append(Text("Gauge freedoms: no geometry shows them, all measurements stay as they are", style="bold"))
        parts += [Text(f"  {named(direction)}: {in_words(calibration, direction)}") for direction in told.gauge]
    if told.weak:
        parts.append(Text("Seen less well than the tolerances (standard deviation in tolerances)", style="bold"))
        parts += [Text(f"  {d.deviation:.3g}: {in_words(calibration, d, 4)}") for d in told.weak[:5]]
        if len(told.weak) > 5:
            parts.append(Text(f"  and {len(told.weak) - 5} more"))
    if told.left_out:
        parts.append(Text("Left at their start values", style="bold"))
        for item in told.left_out:
            in_gauge = item.reason.startswith(NOT_TOLD_APART)
            reason = f"{NOT_TOLD_APART}: its gauge freedom is above" if in_gauge else item.reason
            parts.append(Text(f"  {item.name}: {reason}"))
    return parts


def comparison_table(comparison: Comparison, unit: str) -> Group:
    """Sets of unknowns side by side, judged by poses they had not seen; errors in the unit shown for `unit`."""
    factor, name = SHOWN.get(unit, (1.0, unit))
    table = Table(
        title=f"Judged by poses not seen (RMS, {name})", title_justify="left", title_style="bold", box=SIMPLE_HEAD
    )
    table.add_column("set", no_wrap=True)
    for heading in ("unknowns", "leave-one-out", "k folds: mean", "least", "largest"):
        table.add_column(heading, justify="right")
    for model in comparison.models:
        folds = factor * model.fold_errors
        table.add_row(
            escape(model.name),
            str(model.unknowns),
            f"{factor * model.leave_one_out.rms:.4g}",
            f"{folds.mean():.4g}",
            f"{folds.min():.4g}",
            f"{folds.max():.4g}",
        )
    return Group(table, Text(f"recommended: {comparison.recommended}", style="bold"), Text(comparison.reason))
