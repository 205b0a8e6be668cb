"""Table of a verification: comparisons with engines, and whether they agree."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.common.counts import counted
from tauloop.display.pieces import Paragraph, Printed
from tauloop.display.tables import table
from tauloop.mechanism.model import omission_diagnostics
from tauloop.verification.engines.verification import TOLERANCE, VerifiedMachine, agrees


def verification_tables(verification: VerifiedMachine) -> Iterator[Printed]:
    """Yield a table of the comparisons by quantity and engine, and the omitted comparisons."""
    options = verification.options
    note = (
        ""
        if verification.distinct_states == options.states
        else f", {verification.distinct_states} of them different"
    )
    rows = (
        (
            *(row.quantity, row.engine, row.method, row.largest_difference, row.residual),
            "agrees" if agrees(row) else f"DISAGREES at state {row.sample}, {row.column}",
        )
        for row in verification.comparisons
    )
    yield table(
        f"{verification.machine} over {counted(options.states, 'random state')} "
        f"(seed {options.seed}){note}",
        *(
            "quantity",
            "engine",
            "method",
            ("largest\ndifference", ".1e"),
            ("engine's\nresidual", ".1e"),
            "",
        ),
        rows=rows,
    )
    by_reason: dict[str, list[str]] = {}
    for comparison, reason in verification.not_run:
        by_reason.setdefault(reason, []).append(comparison)
    for reason, comparisons in by_reason.items():
        yield f"not compared: {'; '.join(comparisons)}: {reason}"
    versions = ", ".join(
        dict.fromkeys(f"{row.engine} {row.version}" for row in verification.comparisons)
    )
    yield (
        f"{versions}. Limit {TOLERANCE:.0e} of a state's largest value, 1e-08 for accelerations; friction is "
        "left out on both sides."
    )
    yield "Residual: largest error of the engine's own loops and their rates, and of unbalanced forces, in SI units."
    for item in omission_diagnostics(verification.mechanism):
        yield Paragraph(text=f"doubtful: {item}", tone="doubtful")
