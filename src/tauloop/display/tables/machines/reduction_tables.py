"""Tables of a reduction: sizes, steps and errors."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.common.counts import counted
from tauloop.display.pieces import Paragraph, Printed, Table
from tauloop.display.tables import doubts, table
from tauloop.kinematics.reduction import Reduction
from tauloop.model import Model

#: Decimals of a displacement in meters; smaller values are rounding errors.
SHIFT_DIGITS = 9


def reduction_tables(reduction: Reduction) -> Iterator[Printed]:
    """Yield sizes before and after, the steps with their effects, and the errors of the forces."""
    yield Paragraph(text=f"Reduction of {reduction.full.name}", tone="strong")
    yield _sizes(reduction)
    if reduction.steps:
        yield _steps(reduction)
    else:
        yield "No step applies: no parts have the same motion."
    yield _errors(reduction)
    for undone in reduction.undone:
        yield f"undone: {undone.name} of {', '.join(undone.elements)}: {undone.reason}"
    for quantity in dict.fromkeys(name for step in reduction.steps for name in step.lost):
        yield f"no longer known: {quantity}"
    yield from doubts(reduction)
    yield "exact" if reduction.is_exact else "approximate, as requested"


def _sizes(reduction: Reduction) -> Table:
    comparison = reduction.comparison
    shift = " ".join(f"{1e3 * x + 0.0:.3f}" for x in comparison.center_shift.round(SHIFT_DIGITS))
    counts = reduction.newton_euler
    couplings = [("couplings", *reduction.couplings)] if any(reduction.couplings) else []
    rows = (
        ("coordinates", *reduction.coordinates),
        ("loop equations", *reduction.equations),
        *couplings,
        (
            "Newton-Euler equations of links",
            *(f"{c.equations} ({c.links})" for c in (counts[0], counts[-1])),
        ),
        *(("the same in the plane", f"{c.equations} ({c.links})", "") for c in counts[1:-1]),
        ("parameters", len(reduction.full.parameters), len(reduction.mechanism.parameters)),
        ("mass, kg", *(f"{mass:.6g}" for mass in comparison.mass)),
        (
            "shift of the mass center, mm",
            "",
            f"({shift}), constant to {1e3 * comparison.center_deviation:.1e}",
        ),
    )
    return table("", "", ("full", ""), ("reduced", ""), rows=rows)


def _steps(reduction: Reduction) -> Table:
    rows = (
        (
            step.name,
            ", ".join(step.removed),
            ", ".join(step.kept),
            *map("\n".join, (step.preserved, step.approximated)),
        )
        for step in reduction.steps
    )
    return table("Steps", "step", "replaced", "by", "preserved exactly", "approximated", rows=rows)


def _errors(reduction: Reduction) -> Table:
    units = dict(zip(*Model(reduction.full).output_ports("actuators"), strict=True))
    states = (
        f"{counted(reduction.comparison.states, 'random state')} "
        f"(seed {reduction.provenance.options['seed']})"
    )
    return table(
        f"Errors of the actuator forces as fractions of the largest, over {states}",
        *("actuator", ("largest\nforce", ".6g"), "unit"),
        *(
            (head, ".1e")
            for head in ("rms", "largest", "from\ngravity", "from\ninertia", "from\nvelocity")
        ),
        rows=(
            (
                e.actuator,
                e.largest,
                units[e.actuator],
                e.rms,
                e.maximum,
                e.gravity,
                e.inertia,
                e.velocity,
            )
            for e in reduction.comparison.errors
        ),
    )
