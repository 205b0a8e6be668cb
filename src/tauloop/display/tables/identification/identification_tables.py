"""Tables of an identification."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tauloop.common.counts import counted
from tauloop.display.pieces import Printed, PrintedPieces, Table
from tauloop.display.tables import Column, doubts, status_line, table
from tauloop.identification import Identification, OutputFit

#: Maximum number of characters of a combination's name; the full name is in the JSON file.
NAME_WIDTH = 44


def identification_table(
    identification: Identification, *, reference: Sequence[float] | np.ndarray | None = None
) -> PrintedPieces:
    """Return a summary, the base parameters with their accuracy, and the fit of every output.

    Args:
        identification: result of `fit`.
        reference: values (SI) of all unknowns, such as those of the machine file. The regrouped
            values are listed next to the estimates.
    """
    return PrintedPieces(
        (
            *_summary(identification),
            _parameters(identification, reference),
            fit_table(identification),
            *doubts(identification),
        )
    )


def _summary(identification: Identification) -> Iterator[Printed]:
    base = identification.base
    gap = "every column is independent" if base.gap is None else f"gap {base.gap:.2g}"
    inputs = identification.provenance.inputs
    yield (
        f"{counted(base.rank, 'base parameter')} of {counted(len(base.parameters), 'unknown')} "
        f"(tolerance {base.options.tolerance:.2g}, {gap}); "
        f"{len(base.alone)} alone, {len(base.combined)} in combinations, {len(base.no_effect)} without effect"
    )
    yield (
        f"{type(identification.estimator).__name__}: {inputs['training_samples']} training and "
        f"{inputs['held_out_samples']} held-out samples; condition number {identification.condition:.3g} "
        f"with unit-norm columns, {identification.condition_si:.3g} in SI"
    )
    yield status_line(identification)


def _parameters(
    identification: Identification, reference: Sequence[float] | np.ndarray | None
) -> Table:
    reference_column = [] if reference is None else [("reference", ".4g")]
    references = np.zeros((len(identification.values), 0))
    if reference is not None:
        values = np.asarray(reference, dtype=float)
        regrouped = identification.base.regroup(values)
        rounding = 1e-9 * np.abs(identification.base.regrouping) @ np.abs(values)
        references = np.where(np.abs(regrouped) > rounding, regrouped, 0.0)[:, None]
    cells = []
    for i, parameter in enumerate(identification.base.base):
        relative = identification.relative_standard_deviations[i]
        percentage: float | str = "-" if relative is None else relative
        if relative is not None and relative >= 1000:
            percentage = "> 1000"
        estimate = (
            identification.values[i],
            identification.standard_deviations[i],
            percentage,
            *references[i],
        )
        cells.append((i + 1, parameter.short_name(NAME_WIDTH), *estimate, parameter.unit))
    heads: tuple[Column, ...] = (
        ("#", ""),
        "base parameter",
        ("value", ".4g"),
        ("std. dev.", ".2g"),
        ("%", ".3g"),
        *reference_column,
        "unit",
    )
    return table("Base parameters (SI)", *heads, rows=cells)


def fit_table(identification: Identification) -> Table:
    """Return a table of the fit of every output, on training and held-out data."""
    held_out: Sequence[OutputFit | None] = identification.held_out or [None] * len(
        identification.training
    )
    cells = []
    for training, validation in zip(identification.training, held_out, strict=True):
        for data, fit in (("training", training), ("held out", validation)):
            if fit is not None:
                name = fit.output if data == "training" else ""
                values = (fit.rmse, fit.rmse_percent, fit.relative_error_percent, fit.bias)
                cells.append((name, data, *values, fit.unit))
    heads = (("RMSE", ".3g"), ("RMSE %", ".2f"), ("relative\nerror %", ".2f"), ("bias", ".2g"))
    title = "Fit of every output (SI); % of the largest measured force"
    return table(title, "output", "data", *heads, "unit", rows=cells)
