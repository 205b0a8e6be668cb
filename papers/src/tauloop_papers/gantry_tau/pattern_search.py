"""``python -m tauloop_papers.gantry_tau.pattern_search``: search the plant of Table 1.

The file is written after each cell, so that an interrupted search continues. It takes about ten
minutes on one processor; the result is `found_plants.json` in the same folder.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from tauloop.common.files import write_text
from tauloop_papers.gantry_tau.pattern import (
    FAMILY,
    FOUND,
    Cell,
    Family,
    FamilySettings,
    Machines,
    cells,
    printed_rows,
    read,
)
from tauloop_papers.gantry_tau.settings import SETTINGS, TwoRunSettings

#: Weight of an unknown at one standard deviation, relative to a row with an error of one point: it
#: selects the more likely of equally near plants.
PRIOR_WEIGHT = 0.02
#: Step of differences, in standard deviations, shares and 1/kg.
DIFFERENCE_STEP = 1e-5


def searched(family: Family, cell: Cell) -> list[dict[str, Any]]:
    """Return the nearest plant for each size of hand measurement errors, in ascending order.

    Minimizes the squared differences of the cell's rows from the printed ones (points), from random
    starts and from the result of the next smaller size.

    Returns:
        For each size: `size`, `worst` (largest difference of a row, points), and the unknowns `u`.
    """
    effort, printed = family.family, printed_rows(family.settings, cell.rows)

    def residual(u: np.ndarray) -> np.ndarray:
        rows = family.rows(u)[..., : cell.rows, :] - printed
        return np.concatenate(
            [rows.reshape(*u.shape[:-1], -1), PRIOR_WEIGHT * u[..., :-3]], axis=-1
        )

    rng = np.random.default_rng(effort.seed)
    plants: list[dict[str, Any]] = []
    before: list[np.ndarray] = []
    for size in effort.sizes:
        low, high = family.bounds(cell.structure, size)
        # effects that a structure lacks are zero: the solver does not accept empty ranges
        free = high > low
        into = np.eye(len(free))[free]
        starts = [rng.uniform(low, high) for _ in range(effort.starts)]
        runs = [
            least_squares(
                lambda x, into=into: residual(x @ into),
                start[free],
                jac=lambda x, into=into: _jacobian(residual, x, into),
                bounds=(low[free], high[free]),
                max_nfev=effort.evaluations,
                x_scale=high[free],
            )
            for start in (*starts, *before)
        ]
        best = min(runs, key=lambda run: run.cost)
        u = np.clip(np.round(best.x @ into, 6), low, high)
        before = [u]
        worst = float(np.abs(family.rows(u)[: cell.rows] - printed).max())
        plants.append({"size": size, "worst": round(worst, 4), "u": u.tolist()})
    return plants


def _jacobian(
    residual: Callable[[np.ndarray], np.ndarray], x: np.ndarray, into: np.ndarray
) -> np.ndarray:
    """Return the Jacobian (m, n) by central differences of all unknowns in one batch."""
    step = DIFFERENCE_STEP * np.eye(len(x))
    above, below = (residual((x + sign * step) @ into) for sign in (1.0, -1.0))
    return np.asarray((above - below).T / (2.0 * DIFFERENCE_STEP))


def search(
    path: Path, settings: TwoRunSettings = SETTINGS, family: FamilySettings = FAMILY
) -> None:
    """Search all cells that are missing in the file."""
    results, machines = read(path), Machines(settings)
    for cell in cells(family):
        if cell.key not in results:
            results[cell.key] = searched(
                Family(machines, settings, family, cell.held, cell.motion), cell
            )
            # a plant on a line
            parts = [
                f"{json.dumps(key)}: [\n  " + ",\n  ".join(map(json.dumps, results[key])) + "\n ]"
                for key in results
            ]
            write_text(path, "{\n " + ",\n ".join(parts) + "\n}\n")


if __name__ == "__main__":
    search(Path(sys.argv[1]) if len(sys.argv) > 1 else FOUND)
