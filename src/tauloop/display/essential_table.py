"""The tables of essential parameters for the terminal: what is left, what was left out, and what that costs."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from tauloop.display.tables import doubts, table
from tauloop.identification.parameters.essential import EssentialParameters


def essential_table(essential: EssentialParameters) -> Group:
    """Parameters kept, and held-out errors with them beside those with all base parameters."""
    count = len(essential.names) + len(essential.removed)
    figures = zip(essential.names, essential.values, essential.standard_deviations, strict=True)
    kept = table(
        f"Essential parameters: {len(essential.names)} of {count} (SI)",
        *("base parameter", ("value", ".4g"), ("std. dev.", ".2g"), ("%", ".3g")),
        rows=(
            (Text(name), value, deviation, 100.0 * deviation / abs(value))
            for name, value, deviation in figures
        ),
    )
    pairs = zip(essential.held_out, essential.full_held_out, strict=True)
    rows = ((own.output, own.rmse_percent, full.rmse_percent) for own, full in pairs)
    fits = table("Held out, RMSE %", "output", ("essential", ".2f"), ("all", ".2f"), rows=rows)
    return Group(kept, fits, *doubts(essential))
