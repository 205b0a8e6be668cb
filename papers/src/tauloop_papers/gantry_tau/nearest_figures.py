"""``python -m tauloop_papers.gantry_tau.nearest_figures FILE.png``: draw Figures 3 to 5.

They show the plant nearest to all three rows of Table 1, which is stored in ``found_plants.json``;
its search is `pattern_search`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure

from tauloop.display import LARGE, NORMAL, TEXT
from tauloop_papers.gantry_tau.identification_figures import FIGURES, draw_forces
from tauloop_papers.gantry_tau.pattern import pattern
from tauloop_papers.gantry_tau.results import Pattern
from tauloop_papers.gantry_tau.settings import SETTINGS

#: The key of a picture's metadata that identifies its plant.
PLANT = "Comment"


def figures_3_to_5(plants: Pattern) -> Figure:
    """Return the three figures next to each other."""
    figure = Figure(figsize=(15.0, 6.0), layout="constrained")
    columns = figure.subplots(len(SETTINGS.measured), len(plants.curves), sharex=True)
    for panels, row in zip(columns.T, plants.curves, strict=True):
        draw_forces(panels, row, SETTINGS.stated.rows[row.row])
        panels[0].annotate(
            f"Figure {FIGURES[row.row]}: {row.row}",
            (0.0, 1.2),
            xycoords="axes fraction",
            fontsize=LARGE,
            color=TEXT,
        )
    curves, labels = columns[0, 0].get_legend_handles_labels()
    figure.legend(
        curves, labels, fontsize=NORMAL, frameon=False, ncols=2, loc="outside lower center"
    )
    return figure


def errors(plants: Pattern) -> str:
    """Return the errors of Table 1 of the plant, which identify it."""
    rows = []
    for row in plants.nearest[-1].table:
        rows.append(", ".join(f"{value:.2f}" for value in row))
    return "; ".join(rows)


if __name__ == "__main__":
    found_plants = pattern(SETTINGS)
    figures_3_to_5(found_plants).savefig(
        Path(sys.argv[1]), dpi=70, metadata={PLANT: errors(found_plants)}
    )
