"""The tables of an identification from logs, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tauloop.identification.estimation.errors_in_variables import InstrumentalVariables
from tauloop.identification.estimation.log_comparison import LogComparison
from tauloop.identification.estimation.result import Identification
from tauloop.identification.machine_result import MachineIdentification
from tauloop.identification.parameters.consistency import ConsistentIdentification
from tauloop.identification.parameters.known import DriveGains
from tauloop.identification.preparation.channel_choice import ChannelChoice
from tauloop.identification.preparation.channels import Channels
from tauloop.report.essential_table import essential_table
from tauloop.report.filter_scan_table import filter_scan_table
from tauloop.report.identification_tables import fit_table, identification_table
from tauloop.report.tables import table

#: A ratio as near to one is one.
SAME = 0.01


def machine_identification_tables(result: MachineIdentification) -> Iterator[RenderableType]:
    """How logs were prepared, the fits, what is remarkable, what else was asked for, and the findings."""
    if result.filter_scan is not None:
        yield filter_scan_table(result.filter_scan)
    if result.channels.choice is not None:
        yield channel_table(result.channels, result.channels.choice)
    if result.periods:
        yield period_table(result.periods)
    if result.gains is not None:
        yield gains_table(result.gains)
    if result.whole_log is not None:
        count = len(result.logs)
        yield Text("Fitted to the whole log" if count == 1 else f"Fitted to all {count} logs", style="bold")
        yield fit_table(result.whole_log)
        each = "" if count == 1 else " of each log"
        yield Text(f"Fitted to the first {100 * (1 - result.hold_out):.0f} %{each}, judged on the rest", style="bold")
    yield identification_table(result.identification)
    yield from map(
        Text,
        (
            *result.repairs,
            *remarks(result.identification),
            *result.machine_file.remarks,
            *result.known_forces,
            *result.channels.notes,
            *result.presliding_notes,
        ),
    )
    if result.log_comparison is not None:
        yield comparison_table(result.log_comparison)
    if result.essential is not None:
        yield essential_table(result.essential)
    if result.consistent is not None:
        yield from consistent_tables(result.consistent)
    for problem in result.findings:
        yield Text(str(problem), style="yellow")


def channel_table(found: Channels, choice: ChannelChoice) -> Table:
    """What was chosen for each channel, and the validation errors of what was tried."""
    rows = table("Channels", "channel", "velocity from", "cut-off [Hz]", numeric=(2,))
    for one in found.prepared[0]["channels"]:
        cutoff = one["cutoff"]
        rows.add_row(one["channel"], one["velocity"], "none" if cutoff is None else f"{cutoff:g}")
    tried = ", ".join(f"{what} {error:.3g} %" for what, error in choice.common.items())
    rows.caption = f"validation error over all outputs: {tried}, chosen {choice.errors[1]:.3g} %"
    rows.caption_justify = "left"
    return rows


def period_table(periods: Sequence[dict[str, Any]]) -> Table:
    """Noise of every channel from the scatter of the periods about their mean."""
    columns = ("log", "channel", "periods", "noise of a sample", "of the average", "unit")
    rows = table("Averages over periods, and the noise that they show", *columns, numeric=(2, 3, 4))
    for one in periods:
        for name, noise in one["noise"].items():
            figures = (f"{noise:.3g}", f"{noise / np.sqrt(one['periods']):.3g}")
            rows.add_row(one["log"], name, str(one["periods"]), *figures, one["units"][name])
    return rows


def gains_table(gains: DriveGains) -> Table:
    """The gains with their standard deviations."""
    rows = table("Gains", "drive", "gain", "std. dev.", numeric=(1, 2))
    for name, value, deviation in zip(gains.outputs, gains.values, gains.standard_deviations, strict=True):
        rows.add_row(name, f"{value:.5g}", f"{deviation:.2g}")
    return rows


def comparison_table(comparison: LogComparison) -> Table:
    """Parameters of every log, their mean, and its bar with the model's error."""
    columns = ("base parameter", *comparison.logs, "mean", "std. dev.", "model's error", "moves by", "")
    rows = table(
        "Logs fitted apart (SI); std. dev. with the model's error, its share in a log's own squared bar",
        *columns,
        numeric=tuple(range(1, len(columns) - 1)),
    )
    for k, parameter in enumerate(comparison.base.base):
        rows.add_row(
            parameter.short_name(),
            *(f"{value:.4g}" for value in comparison.values[:, k]),
            f"{comparison.means[k]:.4g}",
            f"{comparison.mean_deviations[k]:.2g}",
            f"{100.0 * comparison.shares[k]:.0f} %",
            f"{comparison.largest[k]:.2g}",
            "moves" if comparison.moved[k] else "",
        )
    return rows


def consistent_tables(physical: ConsistentIdentification) -> Iterator[RenderableType]:
    """Masses, fit and evidence of the physically consistent parameters."""
    bodies = table("Physically consistent parameters", "body", "mass [kg]", "prior [kg]", "", numeric=(1, 2))
    singular = {body.element for body in physical.regularised}
    for cone in physical.cones:
        if cone.is_inertial:
            note = "prior was singular" if cone.element in singular else ""
            masses = (f"{cone.mass(values):.4g}" for values in (physical.parameters, physical.prior))
            bodies.add_row(cone.element, *masses, note)
    yield bodies
    fits = table("", "output", "held out %", "unconstrained %", numeric=(1, 2))
    for judged, free in zip(physical.held_out, physical.unconstrained.held_out, strict=True):
        fits.add_row(judged.output, f"{judged.rmse_percent:.2f}", f"{free.rmse_percent:.2f}")
    yield fits
    yield Text(
        f"weight of the prior {physical.weight:.3g}, chosen by validation; {len(physical.prior_directions)} directions "
        f"are the prior's alone; {len(physical.at_bound)} coefficients are zero at their bound"
    )
    for line in physical.advice:
        yield Text(line, style="yellow")


def remarks(result: Identification) -> tuple[str, ...]:
    """Figures that judge nothing by a limit, but without which the tables are misread."""
    figures = {item.name.split(",")[0].split(" (")[0]: item.value for item in result.evidence}
    found = []
    white = figures.get("Ljung-Box probability of white residuals")
    ratio = figures.get("standard deviations that count the residuals' correlation")
    if white is not None:
        found.append(f"Ljung-Box probability that the residuals are white: {white:.2g} (least of all outputs)")
    if ratio is not None and abs(ratio - 1.0) > SAME:
        found.append(f"standard deviations that count their correlation are {ratio:.3g} times those given (median)")
    if isinstance(result.estimator, InstrumentalVariables):
        found.append(
            "RMSE is that of the measured motion, whose noise is in the regressor: instruments do not make it small, "
            "so it is larger than with least squares and says nothing against the parameters"
        )
    return tuple(found)
