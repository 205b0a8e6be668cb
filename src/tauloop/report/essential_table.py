"""The tables of essential parameters for the terminal: what is left, what was left out, and what that costs."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from tauloop.identification.parameters.essential import EssentialParameters


def essential_table(essential: EssentialParameters) -> Group:
    """Parameters kept, and held-out errors with them beside those with all base parameters."""
    count = len(essential.names) + len(essential.removed)
    kept = Table(
        title=f"Essential parameters: {len(essential.names)} of {count} (SI)", title_justify="left", box=SIMPLE_HEAD
    )
    kept.add_column("base parameter")
    for heading in ("value", "std. dev.", "%"):
        kept.add_column(heading, justify="right", no_wrap=True)
    for name, value, deviation in zip(essential.names, essential.values, essential.standard_deviations, strict=True):
        kept.add_row(Text(name), f"{value:.4g}", f"{deviation:.2g}", f"{100.0 * deviation / abs(value):.3g}")
    fits = Table(title="Held out, RMSE %", title_justify="left", box=SIMPLE_HEAD)
    for heading in ("output", "essential", "all"):
        fits.add_column(heading, justify="left" if heading == "output" else "right", no_wrap=True)
    for own, full in zip(essential.held_out, essential.full_held_out, strict=True):
        fits.add_row(own.output, f"{own.rmse_percent:.2f}", f"{full.rmse_percent:.2f}")
    return Group(kept, fits, *(Text(line, style="yellow") for line in essential.advice))
