"""Counts and comparisons on a page: operations by formulation, differences from other engines."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.engines.verification import TOLERANCE, VerifiedMachine
from tauloop.model.costs import VELOCITY_MATRIX
from tauloop.model.operation_counts import OperationCounts
from tauloop.report.pieces import Piece, Plot, PlotTrace, rounded

#: Differences of nothing at all are drawn at it: a logarithm has no zero.
ROUNDING = 1e-17


def cost_page(counts: OperationCounts) -> Iterator[Piece]:
    """Totals of every quantity by every formulation."""
    rows = [row for row in counts.costs if row.quantity != VELOCITY_MATRIX]
    drawn = []
    for formulation in dict.fromkeys(row.formulation for row in rows):
        own = [row for row in rows if row.formulation == formulation]
        totals = rounded([row.total for row in own])
        drawn.append(PlotTrace(name=formulation, x=tuple(row.quantity for row in own), y=totals, look="bars"))
    yield Plot(
        title="Operations of every function", x="", y="operations of one sample", traces=tuple(drawn), sideways=True
    )


def verification_page(verification: VerifiedMachine) -> Iterator[Piece]:
    """Largest differences by quantity, engine and method, beside their limit."""
    rows = verification.comparisons
    if not rows:
        return
    names = tuple(f"{row.quantity}: {row.engine}, {row.method}" for row in rows)
    columns = {
        "difference": [row.largest_difference for row in rows],
        "engine's own residual": [row.residual for row in rows],
    }
    drawn = [
        PlotTrace(name=name, x=names, y=rounded(np.maximum(values, ROUNDING)), look="points")
        for name, values in columns.items()
    ]
    yield Plot(
        title="How far the engines are from here",
        x="",
        y="largest difference, share of the largest number [1]",
        traces=tuple(drawn),
        sideways=True,
        log_y=True,
        note=f"The limit is {TOLERANCE:.0e}, for accelerations 1e-08.",
    )
