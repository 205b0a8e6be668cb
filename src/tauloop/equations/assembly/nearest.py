"""Minimum-norm point under linear inequality constraints, for many samples.

The method computes tensions of cables that share a load. It minimizes |y|^2 subject to G y >= h by
the dual method of Goldfarb and Idnani (1983). Starting at the origin, it adds the most violated
constraint and drops constraints whose multiplier would become negative, until none is violated.
Every change increases the dual objective, so the method ends after a few changes. If no change is
possible, the constraints contradict each other, and the method returns weights c >= 0 with
G^T c = 0 and c.h > 0 (Farkas).
"""

from __future__ import annotations

import numpy as np

from tauloop.common.records import dataclass

#: Violations up to this fraction of the largest right-hand side h are rounding errors, for example
#: 5e-9 N for 500 N.
VIOLATION_TOLERANCE = 1e-11
#: A constraint depends on the active constraints if the component of its row orthogonal to
#: their rows is shorter than this fraction of the longest row.
DEPENDENCE_TOLERANCE = 1e-11
#: Maximum number of changes, each of which adds or drops a constraint. Usually there are fewer than
#: ten.
MAX_CHANGES = 200
#: Start of the search for a margin, relative to the largest right-hand side; a larger margin is
#: treated as unbounded.
MAX_RELATIVE_MARGIN = 1e6
#: Maximum number of Farkas weights tried for a margin; two or three are usual.
MAX_WEIGHT_ITERATIONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """Nearest points of N samples.

    Attributes:
        point: y (N, r).
        multipliers: mu >= 0 (N, n) with y = G^T mu, and zero where G y > h.
        missed: largest violation of a constraint relative to the largest right-hand side (N,).
        weights: c >= 0 (N, n) with sum one and G^T c = 0 if the constraints contradict each other;
            otherwise zeros.
    """

    point: np.ndarray
    multipliers: np.ndarray
    missed: np.ndarray
    weights: np.ndarray


def nearest(rows: np.ndarray, rhs: np.ndarray) -> Nearest:
    """Return the point nearest to the origin with G y >= h for each sample.

    Args:
        rows: G (N, n, r).
        rhs: h (N, n).

    Source: Goldfarb and Idnani, "A numerically stable dual method for solving strictly convex
        quadratic programs", Mathematical Programming 27, 1983.
    """
    search = _NearestSearch(rows, rhs)
    for _ in range(MAX_CHANGES):
        if not search.change():
            break
    return search.result()


class _NearestSearch:
    """Current state of the search for every sample."""

    def __init__(self, rows: np.ndarray, rhs: np.ndarray) -> None:
        n, m, r = rows.shape
        self._rows, self._rhs = rows, rhs
        self._y, self._mu = np.zeros((n, r)), np.zeros((n, m))
        self._active, self._weights = np.zeros((n, m), dtype=bool), np.zeros((n, m))
        self._added = np.full(n, -1)
        self._scale = np.abs(rhs).max(axis=1, initial=0.0)
        self._longest = np.sqrt((rows**2).sum(axis=2)).max(axis=1, initial=0.0)
        self._unfinished = np.flatnonzero(
            np.isfinite(rows).all(axis=(1, 2)) & np.isfinite(rhs).all(axis=1)
        )

    def change(self) -> bool:
        """Add or drop a constraint of each unfinished sample; return False if all are finished."""
        self._choose()
        s = self._unfinished
        if not len(s):
            return False
        i, G = self._added[s], self._rows[s]
        g = G[np.arange(len(s)), i]
        working = np.where(self._active[s][:, :, None], G, 0.0)
        coefficients, rest = _project(working, g)
        length = (rest**2).sum(axis=1)
        missed = self._rhs[s, i] - (g * self._y[s]).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            full = np.where(
                length > (DEPENDENCE_TOLERANCE * self._longest[s]) ** 2, missed / length, np.inf
            )
            drops = np.where(
                self._active[s] & (coefficients > DEPENDENCE_TOLERANCE),
                self._mu[s] / coefficients,
                np.inf,
            )
        until = drops.min(axis=1, initial=np.inf)
        step = np.minimum(full, until)
        stuck = ~np.isfinite(step)
        self._contradict(s[stuck], i[stuck], coefficients[stuck])
        moving = ~stuck
        s, i, step = s[moving], i[moving], step[moving]
        self._mu[s] -= step[:, None] * coefficients[moving]
        self._mu[s, i] += step
        self._y[s] += np.where(np.isfinite(full[moving]), step, 0.0)[:, None] * rest[moving]
        is_full = full[moving] <= until[moving]
        self._active[s[is_full], i[is_full]] = True
        self._added[s[is_full]] = -1
        dropped = np.argmin(drops[moving], axis=1)[~is_full]
        self._active[s[~is_full], dropped], self._mu[s[~is_full], dropped] = False, 0.0
        self._unfinished = s
        return True

    def _choose(self) -> None:
        """Choose the most violated constraint of each sample that is not already adding another.

        Samples without a violated constraint are finished.
        """
        s = self._unfinished
        free = self._added[s] < 0
        miss = self._rhs[s] - np.einsum("nkr,nr->nk", self._rows[s], self._y[s])
        miss[self._active[s]] = -np.inf
        worst = np.argmax(miss, axis=1) if miss.shape[1] else np.zeros(len(s), dtype=int)
        most = miss.max(axis=1, initial=-np.inf)
        keeps = ~free | (most > VIOLATION_TOLERANCE * self._scale[s])
        self._added[s[free & keeps]] = worst[free & keeps]
        self._unfinished = s[keeps]

    def _contradict(self, s: np.ndarray, i: np.ndarray, coefficients: np.ndarray) -> None:
        """Store the weights of constraints that contradict each other."""
        weights = np.where(self._active[s], np.maximum(-coefficients, 0.0), 0.0)
        weights[np.arange(len(s)), i] = 1.0
        self._weights[s] = weights / weights.sum(axis=1, keepdims=True)

    def result(self) -> Nearest:
        """Return the points, recomputed from the multipliers, and their violations."""
        y = np.einsum("nk,nkr->nr", self._mu, self._rows)
        miss = (self._rhs - np.einsum("nkr,nr->nk", self._rows, y)).max(axis=1, initial=0.0)
        missed = np.maximum(miss, 0.0) / np.where(self._scale > 0, self._scale, 1.0)
        return Nearest(
            point=y,
            multipliers=self._mu,
            missed=np.where(np.isfinite(missed), missed, np.inf),
            weights=self._weights,
        )


def _project(working: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return least-squares coefficients (N, n) of g in the active rows, and the remainder (N, r).

    The projection is applied twice. A single projection leaves rounding errors proportional to the
    coefficients, which are large if active rows are almost parallel. A dependent constraint would
    then count as independent.
    """
    coefficients, rest = np.zeros(working.shape[:2]), g
    if not working.shape[2]:
        return coefficients, rest
    inverse = np.linalg.pinv(working, rcond=DEPENDENCE_TOLERANCE)
    for _ in range(2):
        part = np.einsum("nrk,nr->nk", inverse, rest)
        coefficients = coefficients + part
        rest = rest - np.einsum("nk,nkr->nr", part, working)
    return coefficients, rest


def margin(rows: np.ndarray, rhs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest m for which a y with G y >= h + m exists.

    Newton's method is applied to the dual problem. If constraints contradict each other at m, their
    weights c give the next value -c.h, at which these constraints become consistent. The iteration
    ends when there is no contradiction.

    Args:
        rows: G (N, n, r).
        rhs: h (N, n).

    Returns:
        m (N,), negative if no y satisfies the constraints, infinite if m has no bound; and the
        weights (N, n) of the constraints that bound m, zero if m has no bound.
    """
    n = len(rows)
    scale = np.abs(rhs).max(axis=1, initial=0.0) + 1e-300
    margins, weights = MAX_RELATIVE_MARGIN * scale, np.zeros(rhs.shape)
    unfinished = np.arange(n)
    for _ in range(MAX_WEIGHT_ITERATIONS):
        if not len(unfinished):
            break
        trial = nearest(rows[unfinished], rhs[unfinished] + margins[unfinished, None])
        contradicts = trial.weights.any(axis=1)
        bound = -(trial.weights * rhs[unfinished]).sum(axis=1)
        tolerance = VIOLATION_TOLERANCE * scale[unfinished]
        lower = contradicts & (bound < margins[unfinished] - tolerance)
        weights[unfinished[lower]] = trial.weights[lower]
        margins[unfinished[lower]] = bound[lower]
        unfinished = unfinished[lower]
    return np.where(weights.any(axis=1), margins, np.inf), weights
