"""Tables of an identification from logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tauloop.display.pieces import Paragraph, Printed, Table
from tauloop.display.tables import Column, doubts, table
from tauloop.display.tables.identification.essential_tables import essential_tables
from tauloop.display.tables.identification.filter_scan_tables import filter_scan_tables
from tauloop.display.tables.identification.identification_tables import (
    fit_table,
    identification_table,
)
from tauloop.identification.estimation.errors_in_variables import InstrumentalVariables
from tauloop.identification.estimation.fitting import CORRELATION_DIAGNOSTIC, WHITENESS_DIAGNOSTIC
from tauloop.identification.estimation.log_comparison import LogComparison
from tauloop.identification.estimation.result import Identification
from tauloop.identification.machine_result import MachineIdentification
from tauloop.identification.parameters.consistency import ConsistentIdentification
from tauloop.identification.parameters.known import DriveGains
from tauloop.identification.preparation.channels import Channels
from tauloop.identification.preparation.choice.channel_choice import ChannelChoice
from tauloop.identification.regrouping.formula_values import FormulaValue

#: Ratios that differ from 1 by less than this are not reported.
MIN_REPORTED_DIFFERENCE = 0.01


def machine_identification_tables(result: MachineIdentification) -> Iterator[Printed]:
    """Yield preparation of the logs, fits, remarks, further requested results, and findings."""
    if result.filter_scan is not None:
        yield from filter_scan_tables(result.filter_scan)
    if result.channels.choice is not None:
        yield channel_table(result.channels, result.channels.choice)
    if result.periods:
        yield period_table(result.periods)
    if result.gains is not None:
        yield gains_table(result.gains)
    if result.whole_log is not None:
        count = len(result.logs)
        yield Paragraph(
            text="Fitted to the complete log" if count == 1 else f"Fitted to all {count} logs",
            tone="strong",
        )
        yield fit_table(result.whole_log)
        each = "" if count == 1 else " of each log"
        yield Paragraph(
            text=f"Fitted to the first {100 * (1 - result.hold_out):.0f} %{each}, validated on the rest",
            tone="strong",
        )
    yield from identification_table(result.identification)
    yield from result.repairs
    yield from remarks(result.identification)
    yield from result.machine_file.remarks
    yield from result.known_forces
    yield from result.channels.notes
    yield from result.presliding_notes
    if result.log_comparison is not None:
        yield comparison_table(result.log_comparison)
    if result.essential is not None:
        yield from essential_tables(result.essential)
    if result.formulas is not None:
        yield formula_table(result.formulas)
    if result.consistent is not None:
        yield from consistent_tables(result.consistent)
    for problem in result.findings:
        yield Paragraph(text=str(problem), tone="doubtful")


def channel_table(channels: Channels, choice: ChannelChoice) -> Table:
    """Return a table of the choice for each channel, and the validation errors of tried choices."""
    cells = (
        (
            channel["channel"],
            channel["velocity"],
            "none" if channel["cutoff"] is None else channel["cutoff"],
        )
        for channel in channels.prepared[0]["channels"]
    )
    errors = ", ".join(f"{name} {error:.3g} %" for name, error in choice.common.items())
    note = f"validation error over all outputs: {errors}, chosen {choice.errors[1]:.3g} %"
    heads = ("channel", "velocity from", ("cut-off [Hz]", "g"))
    return table("Channels", *heads, rows=cells, note=note)


def period_table(periods: Sequence[dict[str, Any]]) -> Table:
    """Return a table of each channel's noise, from the scatter of the periods about their mean."""
    columns = (
        "log",
        "channel",
        ("periods", ""),
        ("noise of a sample", ".3g"),
        ("of the average", ".3g"),
        "unit",
    )
    rows = (
        (
            row["log"],
            name,
            row["periods"],
            noise,
            noise / np.sqrt(row["periods"]),
            row["units"][name],
        )
        for row in periods
        for name, noise in row["noise"].items()
    )
    return table("Averages over periods, and noise from their scatter", *columns, rows=rows)


def gains_table(gains: DriveGains) -> Table:
    """Return a table of the gains with their standard deviations."""
    rows = zip(gains.outputs, gains.values, gains.standard_deviations, strict=True)
    return table("Gains", "drive", ("gain", ".5g"), ("std. dev.", ".2g"), rows=rows)


def comparison_table(comparison: LogComparison) -> Table:
    """Return a table of the parameters of each log, and their means with standard deviations.

    The standard deviations include the model error.
    """
    rows = zip(
        (parameter.short_name() for parameter in comparison.base.base),
        *comparison.values,
        comparison.means,
        comparison.mean_deviations,
        (f"{100.0 * fraction:.0f} %" for fraction in comparison.shares),
        comparison.largest,
        ("moves" if is_moved else "" for is_moved in comparison.moved),
        strict=True,
    )
    logs: list[Column] = [(log, ".4g") for log in comparison.logs]
    return table(
        "Separate fits of each log (SI); standard deviations include the model error, "
        "which is listed as a fraction of one log's variance",
        *("base parameter", *logs, ("mean", ".4g"), ("std. dev.", ".2g")),
        *(("model error", ""), ("moves by", ".2g"), ""),
        rows=rows,
    )


def formula_table(formulas: Sequence[FormulaValue]) -> Table:
    """Return a table of base parameters as formulas, with the identified values."""
    return table(
        "Base parameters as formulas in link parameters and lengths",
        *("formula", ("value", ".5g"), ("std. dev.", ".2g"), "unit", ("machine file", ".5g")),
        rows=(
            (item.formula, item.value, item.deviation, item.unit, item.file) for item in formulas
        ),
    )


def consistent_tables(physical: ConsistentIdentification) -> Iterator[Printed]:
    """Yield masses, fit and checks of the physically consistent parameters."""
    singular = {body.element for body in physical.regularized}
    bodies = (
        (
            *(cone.element, cone.mass(physical.parameters), cone.mass(physical.prior)),
            "prior was singular" if cone.element in singular else "",
        )
        for cone in physical.cones
        if cone.is_inertial
    )
    title = "Physically consistent parameters"
    yield table(title, "body", ("mass [kg]", ".4g"), ("prior [kg]", ".4g"), "", rows=bodies)
    pairs = zip(physical.held_out, physical.unconstrained.held_out, strict=True)
    fits = (
        (consistent.output, consistent.rmse_percent, unconstrained.rmse_percent)
        for consistent, unconstrained in pairs
    )
    yield table("", "output", ("held out %", ".2f"), ("unconstrained %", ".2f"), rows=fits)
    yield (
        f"weight of the prior {physical.weight:.3g}, chosen by validation; directions determined only by the "
        f"prior: {len(physical.prior_directions)}; coefficients at their bound of zero: {len(physical.at_bound)}"
    )
    yield from doubts(physical)


def remarks(result: Identification) -> tuple[str, ...]:
    """Return remarks on values without limits that are needed to interpret the tables."""
    values = {item.name: item.value for item in result.diagnostics}
    lines = []
    probability = values.get(WHITENESS_DIAGNOSTIC)
    ratio = values.get(CORRELATION_DIAGNOSTIC)
    if probability is not None:
        lines.append(
            f"Ljung-Box probability that the residuals are white: {probability:.2g} (minimum over all outputs)"
        )
    if ratio is not None and abs(ratio - 1.0) > MIN_REPORTED_DIFFERENCE:
        lines.append(
            f"standard deviations that allow for correlated residuals are {ratio:.3g} times those given (median)"
        )
    if isinstance(result.estimator, InstrumentalVariables):
        lines.append(
            "the RMSE is computed with the measured motion, whose noise is in the regressor; the "
            "instrumental-variables estimator does not minimize it, so a larger RMSE does not mean worse "
            "parameters"
        )
    return tuple(lines)
