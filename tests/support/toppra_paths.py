"""Random paths of machines, and TOPP-RA on them under the same limits."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

import numpy as np
from extras import extra

import tauloop as tl
from tauloop.motion import PathLimits, PathRows, SampledPath, Stroke, stroke
from tauloop.motion.fastest.limits import LimitRows

ta = extra("toppra")

#: Boxes (m) in which paths lie, and the coordinates that they move; those of the paths are the
#: first of the platform's.
BOXES = {
    "delta": ((-0.15, 0.15), (-0.15, 0.15), (-0.62, -0.40)),
    "nuwar": ((-0.05, 0.05), (-0.12, 0.12), (-0.60, -0.40)),
    "rcid": ((-0.008, 0.008), (-0.008, 0.008), (0.106, 0.120)),
    "five_bar": ((-0.11, 0.11), (0.35, 0.47)),
}


def random_stroke(model: tl.Model, name: str, seed: int) -> Stroke:
    """A cubic spline through four random points of the box."""
    box, rng = np.array(BOXES[name]), np.random.default_rng(seed)
    while True:
        points = rng.uniform(box[:, 0], box[:, 1], (4, len(box)))
        try:
            return stroke(
                model, SampledPath(points), ("platform.x", "platform.y", "platform.z")[: len(box)]
            )
        except tl.PoseError:
            continue


class WithoutViscous(PathRows):
    """Limits without viscous friction, which TOPP-RA's linear form has no place for."""

    def at(self, u: np.ndarray, unit: float) -> LimitRows:
        rows = super().at(u, unit)
        return replace(rows, g=0.0 * rows.g)


class _Constraint(ta.constraint.LinearConstraint):  # type: ignore[name-defined,misc]
    """Our rows as TOPP-RA takes them, precomputed."""

    def __init__(self, rows: LimitRows) -> None:
        super().__init__()
        self.rows, self.identical = rows, True
        self.set_discretization_type(ta.constraint.DiscretizationType.Interpolation)

    def compute_constraint_params(self, path: object, grid: np.ndarray) -> tuple[object, ...]:
        rows, m = self.rows, self.rows.p.shape[1]
        made = list(
            ta.constraint.linear_constraint.canlinear_colloc_to_interpolate(
                rows.q, rows.p, -rows.r, np.eye(m), np.zeros(m), None, None, grid, identical=True
            )
        )
        if np.isfinite(rows.top).any():
            made[6] = np.stack([np.zeros(len(grid)), np.minimum(rows.top, 1e5)], axis=1)
        return tuple(made)


class _Path(ta.interpolator.AbstractGeometricPath):  # type: ignore[name-defined,misc]
    """A path that nobody asks: its rows are precomputed."""

    dof, path_interval, waypoints = 1, np.array([0.0, 1.0]), None

    def __call__(self, x: np.ndarray, order: int = 0) -> np.ndarray:
        return np.zeros((np.size(x), 1))


def toppra_duration(rows: PathRows, unit: float, points: int) -> tuple[float, float]:
    """TOPP-RA's duration on an even grid (s), and the time that it takes (s)."""
    logging.getLogger("toppra").setLevel(logging.CRITICAL)
    grid = np.linspace(0.0, 1.0, points + 1)
    constraint = _Constraint(rows.at(grid, unit))
    start = time.thread_time()
    instance = ta.algorithm.TOPPRA([constraint], _Path(), gridpoints=grid, solver_wrapper="seidel")
    _, speed, _, _ = instance.compute_parameterization(0, 0, return_data=True)
    taken = time.thread_time() - start
    assert speed is not None
    return 2.0 * float(np.sum(np.diff(grid) / (speed[1:] + speed[:-1]))) / unit, taken


def limits_of(placed: Stroke) -> PathRows:
    """The machine file's limits along a stroke, without viscous friction."""
    return WithoutViscous(placed, PathLimits())
