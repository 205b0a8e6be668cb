"""Plots of counts and comparisons: operations by formulation, differences from other engines."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.display.pieces import Piece, Plot, PlotTrace
from tauloop.display.plots.building import at_rest, by_name, motion, rounded
from tauloop.model import Model
from tauloop.model.equation_text.costs import VELOCITY_MATRIX
from tauloop.model.equation_text.operation_counts import OperationCounts
from tauloop.verification.engines.verification import TOLERANCE, VerifiedMachine

#: Smallest difference on a logarithmic axis, which has no zero.
MIN_SHOWN_ERROR = 1e-17


def cost_scene(counts: OperationCounts) -> Iterator[Piece]:
    """Yield the machine at rest."""
    yield at_rest(Model(counts.mechanism))


def cost_plots(counts: OperationCounts) -> Iterator[Plot]:
    """Yield a plot of the number of operations of every quantity in every formulation."""
    rows = [row for row in counts.costs if row.quantity != VELOCITY_MATRIX]
    drawn = []
    for formulation in dict.fromkeys(row.formulation for row in rows):
        same_formulation = [row for row in rows if row.formulation == formulation]
        quantities = tuple(row.quantity for row in same_formulation)
        totals = rounded([row.total for row in same_formulation])
        drawn.append(PlotTrace(name=formulation, x=quantities, y=totals, style="bars"))
    yield Plot(
        title="Operations of every function",
        x="",
        y="operations of one sample",
        traces=tuple(drawn),
        sideways=True,
    )


def verification_scene(verification: VerifiedMachine) -> Iterator[Piece]:
    """Yield the machine at the compared states."""
    number = np.arange(1.0, len(verification.q) + 1)
    title = f"Compared states 1 to {len(number)}, one after the other"
    yield from motion(Model(verification.mechanism), number, verification.q, title, is_motion=False)


def verification_plots(verification: VerifiedMachine) -> Iterator[Plot]:
    """Yield the largest differences by quantity, engine and method."""
    rows = verification.comparisons
    if not rows:
        return
    columns = {
        "difference": np.maximum([row.largest_difference for row in rows], MIN_SHOWN_ERROR),
        "engine's own residual": np.maximum([row.residual for row in rows], MIN_SHOWN_ERROR),
    }
    names = (f"{row.quantity}: {row.engine}, {row.method}" for row in rows)
    yield by_name(
        "Differences from the engines",
        "largest difference / largest value [1]",
        names,
        columns,
        style="points",
        log_y=True,
        note=f"The limit is {TOLERANCE:.0e}, for accelerations 1e-08.",
    )
