"""The table of cable tensions for the terminal."""

from __future__ import annotations

import numpy as np
from rich.table import Table

from tauloop.programs import Forces
from tauloop.report.tables import table


def tension_table(forces: Forces) -> Table | None:
    """Tensions of cables, over all samples; None where there are none."""
    if forces.tension is None:
        return None
    rows = table("Tensions of cables", "cable", "tension", "unit", numeric=(1,))
    values = np.atleast_2d(forces.tension)
    for i, name in enumerate(forces.tension_names):
        text = f"{values[0, i]:.6g}" if len(values) == 1 else f"{values[:, i].min():.5g} to {values[:, i].max():.5g}"
        rows.add_row(name, text, "N")
    return rows
