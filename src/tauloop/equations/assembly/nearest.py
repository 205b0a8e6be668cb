"""The point nearest to the origin that keeps linear conditions, for many samples at once: how cables share a load.

min |y|^2 with G y >= h, by the dual method of Goldfarb and Idnani (1983): from the origin, the
condition that is missed most is added, and conditions that would have to pull are dropped, until
none is missed. Every change brings the dual closer, so it ends after a few; where none is possible,
the conditions contradict each other and the method says how: weights c >= 0 with G^T c = 0 and c.h
> 0 (Farkas).
"""

from __future__ import annotations

import numpy as np

from tauloop.common.records import dataclass

#: Conditions may be missed by this share of the largest side: rounding, 5e-9 N of 500 N.
MISSED = 1e-11
#: A condition that conditions at work leave less than this share of (of the longest row) depends on
#: them.
DEPENDENT = 1e-11
#: Changes after which the search is given up: each adds or drops a condition, and a handful is
#: usual.
MOST_CHANGES = 200
#: The margin is looked for below this many times the largest side; beyond it has no bound.
BEYOND = 1e6
#: Farkas weights tried for a margin; each is one of finitely many, and two or three are usual.
MOST_WEIGHTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The nearest points of N samples.

    Attributes:
        point: y (N, r).
        multipliers: mu >= 0 (N, n) with y = G^T mu, and zero where G y > h.
        missed: by how much the worst condition is missed, of the largest side (N,).
        weights: c >= 0 (N, n), their sum one, with G^T c = 0 where the conditions contradict each
            other; else zeros.
    """

    point: np.ndarray
    multipliers: np.ndarray
    missed: np.ndarray
    weights: np.ndarray


def nearest(rows: np.ndarray, sides: np.ndarray) -> Nearest:
    """The point nearest to the origin with G y >= h, by samples.

    Args:
        rows: G (N, n, r).
        sides: h (N, n).

    Source: Goldfarb and Idnani, "A numerically stable dual method for solving strictly convex
        quadratic programs", Mathematical Programming 27, 1983.
    """
    search = _NearestSearch(rows, sides)
    for _ in range(MOST_CHANGES):
        if not search.change():
            break
    return search.result()


class _NearestSearch:
    """Where the search of every sample stands."""

    def __init__(self, rows: np.ndarray, sides: np.ndarray) -> None:
        n, m, r = rows.shape
        self._rows, self._sides = rows, sides
        self._y, self._mu = np.zeros((n, r)), np.zeros((n, m))
        self._at_work, self._weights = np.zeros((n, m), dtype=bool), np.zeros((n, m))
        self._added = np.full(n, -1)
        self._scale = np.abs(sides).max(axis=1, initial=0.0)
        self._longest = np.sqrt((rows**2).sum(axis=2)).max(axis=1, initial=0.0)
        self._left = np.flatnonzero(
            np.isfinite(rows).all(axis=(1, 2)) & np.isfinite(sides).all(axis=1)
        )

    def change(self) -> bool:
        """Add or drop a condition of every sample that is not done; False where all are."""
        self._choose()
        s = self._left
        if not len(s):
            return False
        i, G = self._added[s], self._rows[s]
        g = G[np.arange(len(s)), i]
        working = np.where(self._at_work[s][:, :, None], G, 0.0)
        share = self._shares(working, g)
        rest = g - np.einsum("nk,nkr->nr", share, working)
        length = (rest**2).sum(axis=1)
        missed = self._sides[s, i] - (g * self._y[s]).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            full = np.where(length > (DEPENDENT * self._longest[s]) ** 2, missed / length, np.inf)
            drops = np.where(self._at_work[s] & (share > DEPENDENT), self._mu[s] / share, np.inf)
        until = drops.min(axis=1, initial=np.inf)
        step = np.minimum(full, until)
        stuck = ~np.isfinite(step)
        self._contradict(s[stuck], i[stuck], share[stuck])
        moving = ~stuck
        s, i, step = s[moving], i[moving], step[moving]
        self._mu[s] -= step[:, None] * share[moving]
        self._mu[s, i] += step
        self._y[s] += np.where(np.isfinite(full[moving]), step, 0.0)[:, None] * rest[moving]
        is_full = full[moving] <= until[moving]
        self._at_work[s[is_full], i[is_full]] = True
        self._added[s[is_full]] = -1
        dropped = np.argmin(drops[moving], axis=1)[~is_full]
        self._at_work[s[~is_full], dropped], self._mu[s[~is_full], dropped] = False, 0.0
        self._left = s
        return True

    def _choose(self) -> None:
        """The condition that each sample misses most, where it is not adding one; samples that miss none are done."""
        s = self._left
        free = self._added[s] < 0
        miss = self._sides[s] - np.einsum("nkr,nr->nk", self._rows[s], self._y[s])
        miss[self._at_work[s]] = -np.inf
        worst = np.argmax(miss, axis=1) if miss.shape[1] else np.zeros(len(s), dtype=int)
        most = miss.max(axis=1, initial=-np.inf)
        keeps = ~free | (most > MISSED * self._scale[s])
        self._added[s[free & keeps]] = worst[free & keeps]
        self._left = s[keeps]

    def _shares(self, working: np.ndarray, g: np.ndarray) -> np.ndarray:
        """How the conditions at work make up another one, by least squares (N, n)."""
        if not working.shape[2]:
            return np.zeros(working.shape[:2])
        return np.asarray(np.einsum("nrk,nr->nk", np.linalg.pinv(working, rcond=DEPENDENT), g))

    def _contradict(self, s: np.ndarray, i: np.ndarray, share: np.ndarray) -> None:
        """Note the weights of conditions that contradict each other."""
        weights = np.where(self._at_work[s], np.maximum(-share, 0.0), 0.0)
        weights[np.arange(len(s)), i] = 1.0
        self._weights[s] = weights / weights.sum(axis=1, keepdims=True)

    def result(self) -> Nearest:
        """The points, made anew from the multipliers, and what they miss."""
        y = np.einsum("nk,nkr->nr", self._mu, self._rows)
        miss = (self._sides - np.einsum("nkr,nr->nk", self._rows, y)).max(axis=1, initial=0.0)
        missed = np.maximum(miss, 0.0) / np.where(self._scale > 0, self._scale, 1.0)
        return Nearest(
            point=y,
            multipliers=self._mu,
            missed=np.where(np.isfinite(missed), missed, np.inf),
            weights=self._weights,
        )


def margin(rows: np.ndarray, sides: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest m with G y >= h + m for some y: how far the conditions can be kept from, or how far they are missed.

    By Newton's method on the dual: weights c of conditions that contradict each other at m bound it
    by -c.h, where they hold just so; it ends when none contradict.

    Args:
        rows: G (N, n, r).
        sides: h (N, n).

    Returns:
        m (N,), negative where no y keeps the conditions, infinite where nothing bounds it; and the
        weights (N, n) that bound it, zeros where nothing does.
    """
    n = len(rows)
    scale = np.abs(sides).max(axis=1, initial=0.0) + 1e-300
    margins, weights = BEYOND * scale, np.zeros(sides.shape)
    left = np.arange(n)
    for _ in range(MOST_WEIGHTS):
        if not len(left):
            break
        tried = nearest(rows[left], sides[left] + margins[left, None])
        contradicts = tried.weights.any(axis=1)
        bound = -(tried.weights * sides[left]).sum(axis=1)
        lower = contradicts & (bound < margins[left] - MISSED * scale[left])
        weights[left[lower]] = tried.weights[lower]
        margins[left[lower]] = bound[lower]
        left = left[lower]
    return np.where(weights.any(axis=1), margins, np.inf), weights
