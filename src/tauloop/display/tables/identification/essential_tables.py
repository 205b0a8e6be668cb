"""Tables of essential parameters, and of the errors of the fit with them."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.identification.parameters.essential import EssentialParameters


def essential_tables(essential: EssentialParameters) -> Iterator[Printed]:
    """Yield the essential parameters, and held-out errors compared with all base parameters."""
    count = len(essential.names) + len(essential.removed)
    estimates = zip(essential.names, essential.values, essential.standard_deviations, strict=True)
    yield table(
        f"Essential parameters: {len(essential.names)} of {count} (SI)",
        *("base parameter", ("value", ".4g"), ("std. dev.", ".2g"), ("%", ".3g")),
        rows=(
            (name, value, deviation, 100.0 * deviation / abs(value))
            for name, value, deviation in estimates
        ),
    )
    pairs = zip(essential.held_out, essential.full_held_out, strict=True)
    rows = (
        (essential_fit.output, essential_fit.rmse_percent, full_fit.rmse_percent)
        for essential_fit, full_fit in pairs
    )
    yield table("Held out, RMSE %", "output", ("essential", ".2f"), ("all", ".2f"), rows=rows)
    yield from doubts(essential)
