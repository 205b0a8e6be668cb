"""The tables of an identification for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tauloop.identification import Identification, OutputFit
from tauloop.result import Status

#: Characters for a combination's name; the whole of it is in the JSON file.
NAME_WIDTH = 44


def identification_table(
    identification: Identification, *, reference: Sequence[float] | np.ndarray | None = None
) -> Group:
    """A summary, the base parameters with their accuracy, and the fit of every output.

    Args:
        identification: result of `fit`.
        reference: values (SI) of all unknowns, such as those of the machine file, regrouped for a column beside the
            estimates.
    """
    parts: list[RenderableType] = [
        _summary(identification),
        _parameters(identification, reference),
        fit_table(identification),
    ]
    parts += [Text(line, style="yellow") for line in identification.advice]
    return Group(*parts)


def _summary(identification: Identification) -> Text:
    base = identification.base
    gap = "every column is independent" if base.gap is None else f"gap {base.gap:.2g}"
    inputs = identification.provenance.inputs
    text = Text()
    text.append(
        f"{base.rank} base parameters of {len(base.parameters)} unknowns "
        f"(tolerance {base.options.tolerance:.2g}, {gap}); "
        f"{len(base.alone)} alone, {len(base.combined)} in combinations, {len(base.no_effect)} without effect\n"
    )
    text.append(
        f"{type(identification.estimator).__name__}: {inputs['training_samples']} training and "
        f"{inputs['held_out_samples']} held-out samples; condition number {identification.condition:.3g} "
        f"with unit-norm columns, {identification.condition_si:.3g} in SI\n"
    )
    good = identification.status is Status.OK
    text.append(f"status: {identification.status.value}", style="green" if good else "bold yellow")
    return text


def _parameters(identification: Identification, reference: Sequence[float] | np.ndarray | None) -> Table:
    table = Table(title="Base parameters (SI)", title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column("#", justify="right", style="dim")
    table.add_column("base parameter", overflow="fold")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("std. dev.", justify="right", no_wrap=True)
    table.add_column("%", justify="right", no_wrap=True)
    references: list[str] = []
    if reference is not None:
        table.add_column("reference", justify="right", no_wrap=True)
        values = np.asarray(reference, dtype=float)
        regrouped = identification.base.regroup(values)
        rounding = 1e-9 * np.abs(identification.base.regrouping) @ np.abs(values)
        references = [f"{value:.4g}" for value in np.where(np.abs(regrouped) > rounding, regrouped, 0.0)]
    table.add_column("unit", no_wrap=True)
    deviations = identification.standard_deviations
    for i, parameter in enumerate(identification.base.base):
        relative = identification.relative_standard_deviations[i]
        cells = [
            str(i + 1),
            escape(parameter.short_name(NAME_WIDTH)),
            f"{identification.values[i]:.4g}",
            f"{deviations[i]:.2g}",
            "-" if relative is None else f"{relative:.3g}" if relative < 1000 else "> 1000",
        ]
        table.add_row(*cells, *references[i : i + 1], escape(parameter.unit))
    return table


def fit_table(identification: Identification) -> Table:
    """The fit of every output, on training and held-out data."""
    table = Table(
        title="Fit of every output (SI); % of the largest measured force",
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
    )
    for heading in ("output", "data"):
        table.add_column(heading, no_wrap=True)
    for heading in ("RMSE", "RMSE %", "relative error %", "bias"):
        table.add_column(heading, justify="right")
    table.add_column("unit", no_wrap=True)
    held_out: Sequence[OutputFit | None] = identification.held_out or [None] * len(identification.training)
    for training, judged in zip(identification.training, held_out, strict=True):
        for data, fit in (("training", training), ("held out", judged)):
            if fit is not None:
                table.add_row(
                    escape(fit.output) if data == "training" else "",
                    data,
                    f"{fit.rmse:.3g}",
                    f"{fit.rmse_percent:.2f}",
                    f"{fit.relative_error_percent:.2f}",
                    f"{fit.bias:.2g}",
                    escape(fit.unit),
                    end_section=fit is (judged or training),
                )
    return table
