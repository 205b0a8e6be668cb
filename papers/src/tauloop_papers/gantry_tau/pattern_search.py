"""``python -m tauloop_papers.gantry_tau.pattern_search``: search the plant behind Table 1's pattern, and keep it.

Cell by cell, and the file is written after each: who stops it and begins again goes on where it
was. About ten minutes of one processor; `found_plants.json` beside this file is its result.
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

#: Weight of an unknown at one standard deviation beside a row that is one point off: of plants that
#: are alike near to the printed rows the likelier is kept.
PRIOR = 0.02
#: Of differences, in standard deviations, shares and 1/kg.
STEP = 1e-5


def searched(family: Family, cell: Cell) -> list[dict[str, Any]]:
    """The nearest plant for each size of the hand's errors, from the least.

    Minimises the squared differences of the cell's rows from the printed ones (points), from random
    starts and from the result for the next smaller size.

    Returns:
        For each size: `size`, `worst` (largest difference of a row, points), and the unknowns `u`.
    """
    effort, printed = family.family, printed_rows(family.settings, cell.rows)

    def residual(u: np.ndarray) -> np.ndarray:
        rows = family.rows(u)[..., : cell.rows, :] - printed
        return np.concatenate([rows.reshape(*u.shape[:-1], -1), PRIOR * u[..., :-3]], axis=-1)

    rng = np.random.default_rng(effort.seed)
    plants: list[dict[str, Any]] = []
    before: list[np.ndarray] = []
    for size in effort.sizes:
        low, high = family.bounds(cell.structure, size)
        # what a structure does not have stays at zero: a range of no width is none for the solver
        free = high > low
        into = np.eye(len(free))[free]
        runs = [
            least_squares(
                lambda x, into=into: residual(x @ into),
                start[free],
                jac=lambda x, into=into: _jacobian(residual, x, into),
                bounds=(low[free], high[free]),
                max_nfev=effort.evaluations,
                x_scale=high[free],
            )
            for start in [*(rng.uniform(low, high) for _ in range(effort.starts)), *before]
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
    """(m, n) by central differences, of all unknowns in one batch."""
    step = STEP * np.eye(len(x))
    above, below = (residual((x + sign * step) @ into) for sign in (1.0, -1.0))
    return np.asarray((above - below).T / (2.0 * STEP))


def search(
    path: Path, settings: TwoRunSettings = SETTINGS, family: FamilySettings = FAMILY
) -> None:
    """Search all cells that the file does not have."""
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
