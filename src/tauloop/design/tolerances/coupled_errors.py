"""Worst cases of over-constrained machines, whose redundant loops couple their errors.

Errors e of a machine that assembles satisfy M e + r = 0 with |r| <= R: its redundant loops are closed.
So the error along d is at most

    d.S e = (d.S - y.M) e - y.r <= sum_g ||(d.S - y.M)_g|| + |y|.R     for any multipliers y,

over sources g in intervals or balls, in units of their tolerances. The least such bound is the largest
error, because linear programs (and those over balls) have no gap to their duals. It follows from a
linear program for y, with balls cut by planes.

Source: Boyd, Vandenberghe 2004, Convex optimization, chapter 5; Kelley 1960, The cutting-plane method for
solving convex programs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.tolerances.error_equations import Array
from tauloop.design.tolerances.error_groups import ErrorGroup

#: Rounds of cutting planes, and the gap at which they end, as a fraction of the bound.
CUTTING_ROUNDS, GAP = 20, 1e-6
#: Steps of reweighted least squares for the smallest clearances.
REWEIGHTINGS = 30
#: Motions of redundant loops below this fraction of the largest count as rounding.
COUPLING_CUTOFF = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ErrorCoupling:
    """Errors of sources by their whole tolerances, as vectors; intervals have one component.

    Attributes:
        effects: (N, 6, g, 3) twists of the tool.
        openings: (N, c, g, 3) residuals of redundant loops.
        adapts: (g,) whether a source takes the value with which the machine fits: clearances.
    """

    effects: Array
    openings: Array
    adapts: np.ndarray

    @property
    def is_coupled(self) -> bool:
        """Whether errors open redundant loops, beyond rounding."""
        largest = np.abs(self.effects).max(initial=0.0)
        return bool(np.abs(self.openings).max(initial=0.0) > COUPLING_CUTOFF * largest)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoupledWorst:
    """Largest errors of machines that assemble.

    Attributes:
        worst: (N, 6) bounds for loops that close to first order, m and rad.
        multipliers: (N, 6, c) that prove them.
    """

    worst: Array
    multipliers: Array


def coupling(
    groups: Sequence[ErrorGroup], mismatch: Array, adapts: Sequence[bool]
) -> ErrorCoupling:
    """Return how errors of groups open redundant loops.

    Args:
        groups: sources of error in the order of the equations.
        mismatch: (N, c, p) residuals of redundant loops per unit of each component of all errors.
        adapts: whether the sources of each group take values with which the machine fits.
    """
    effects, openings, first = [], [], 0
    for group in groups:
        N, count, _, k = group.effects.shape
        last = first + count * k
        rows = mismatch[:, :, first:last].reshape(N, mismatch.shape[1], count, k)
        scale = group.tolerances[:, None]
        effects.append(_padded(np.moveaxis(group.effects, 1, 2) * scale))
        openings.append(_padded(rows * scale))
        first = last
    return ErrorCoupling(
        effects=np.concatenate(effects, axis=2),
        openings=np.concatenate(openings, axis=2),
        adapts=np.repeat(adapts, [len(group.tolerances) for group in groups]),
    )


def _padded(x: Array) -> Array:
    """Return vectors (..., 3) from those with one or three components."""
    missing = 3 - x.shape[-1]
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)])


def coupled_worst(errors: ErrorCoupling) -> CoupledWorst:
    """Return the largest errors (N, 6) over errors that close redundant loops to first order."""
    S, M = errors.effects, errors.openings
    N, c = M.shape[:2]
    worst = np.linalg.norm(S, axis=-1).sum(axis=-1)
    multipliers = np.zeros((N, 6, c))
    if not errors.is_coupled:
        return CoupledWorst(worst=worst, multipliers=multipliers)
    cutoff = COUPLING_CUTOFF * np.abs(M).max()
    for pose, axis in np.argwhere(_opening_of_worst(S, M) > cutoff):
        y = _multipliers(S[pose, axis], M[pose])
        total = _bound(S[pose, axis], M[pose], y)
        if total < worst[pose, axis]:
            worst[pose, axis], multipliers[pose, axis] = total, y
    return CoupledWorst(worst=worst, multipliers=multipliers)


def _opening_of_worst(S: Array, M: Array) -> Array:
    """Return how far the errors that are worst in each direction alone open the loops (N, 6)."""
    size = np.linalg.norm(S, axis=-1, keepdims=True)
    unit = np.divide(S, size, out=np.zeros_like(S), where=size > 0.0)
    return np.asarray(np.abs(np.einsum("ncgk,ndgk->ndc", M, unit)).max(axis=-1))


def _bound(s: Array, M: Array, y: Array) -> float:
    """Return the bound of the error with multipliers y (c,)."""
    return float(np.linalg.norm(s - np.tensordot(y, M, axes=1), axis=-1).sum())


def _multipliers(s: Array, M: Array) -> Array:
    """Return the multipliers (c,) of the least bound.

    Minimizes sum_g t_g with t_g >= u.(s - y.M)_g for unit vectors u, which are added at the solution.

    Args:
        s: (g, 3) effects in one direction.
        M: (c, g, 3) openings.
    """
    from scipy.optimize import linprog

    count = len(s)
    basis, sigma, _ = np.linalg.svd(M.reshape(len(M), -1), full_matrices=False)
    basis = basis[:, sigma > COUPLING_CUTOFF * sigma[0]]
    rows = np.tensordot(basis.T, M, axes=1)
    used = (s != 0.0) | (rows != 0.0).any(axis=0)
    source, component = np.nonzero(used)
    unit = np.eye(3)[component]
    cuts, owners = np.concatenate([unit, -unit]), np.concatenate([source, source])
    scale = float(np.abs(s).max())
    z = np.zeros(basis.shape[1])
    for _ in range(CUTTING_ROUNDS):
        left = np.zeros((len(cuts), count))
        left[np.arange(len(cuts)), owners] = -1.0
        along = np.einsum("rik,ik->ir", rows[:, owners], cuts)
        side = -(s[owners] * cuts).sum(axis=1) / scale
        program = linprog(
            np.concatenate([np.ones(count), np.zeros(len(z))]),
            A_ub=np.concatenate([left, -along], axis=1),
            b_ub=side,
            bounds=[(0.0, None)] * count + [(None, None)] * len(z),
        )
        if program.x is None:
            break
        z = scale * program.x[count:]
        rest = s - np.tensordot(z, rows, axes=1)
        size = np.linalg.norm(rest, axis=1)
        if size.sum() <= (1.0 + GAP) * scale * program.fun:
            break
        new = np.flatnonzero(size > 0.0)
        cuts = np.concatenate([cuts, rest[new] / size[new, None]])
        owners = np.concatenate([owners, new])
    return np.asarray(basis @ z)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AssemblyFit:
    """Whether parts with errors can be assembled, to first order.

    Attributes:
        opening: (N, c) largest residuals of redundant loops that clearances do not take up.
        share: (N,) largest fraction of a clearance that takes the others up.
    """

    opening: Array
    share: Array


def assembly_fit(errors: ErrorCoupling) -> AssemblyFit:
    """Return whether clearances let every machine within its tolerances assemble.

    Clearances that fit, in units of their radii, are chosen linear in the other errors. Their largest
    values over these errors are an upper bound of what is needed. Least squares with weights that
    balance the clearances make it small.
    """
    N, c = errors.openings.shape[:2]
    if not errors.is_coupled:
        return AssemblyFit(opening=np.zeros((N, c)), share=np.zeros(N))
    parts = errors.openings[:, :, ~errors.adapts, 0]
    joints = errors.openings[:, :, errors.adapts].reshape(N, c, -1)
    if joints.shape[2] == 0:
        return AssemblyFit(opening=np.abs(parts).sum(axis=-1), share=np.zeros(N))
    weights, share = np.ones((N, joints.shape[2] // 3)), np.full(N, np.inf)
    for _ in range(REWEIGHTINGS):
        answer = _adapted(joints, parts, weights)
        needed = np.linalg.norm(answer.reshape(N, -1, 3, parts.shape[2]), axis=2).sum(axis=-1)
        most = needed.max(axis=1)
        share = np.minimum(share, most)
        relative = needed / np.maximum(most[:, None], np.finfo(float).tiny)
        weights = weights / np.sqrt(np.maximum(relative, COUPLING_CUTOFF))
        weights = weights / weights.max(axis=1, keepdims=True)
    opening = _without_rounding(parts + joints @ _adapted(joints, parts, weights), parts)
    return AssemblyFit(opening=np.abs(opening).sum(axis=-1), share=share)


def _adapted(joints: Array, parts: Array, weights: Array) -> Array:
    """Return the clearances (N, 3 k, p) that close loops, with the least sum of squares over weights."""
    each = np.repeat(weights, 3, axis=1)
    answer = np.linalg.pinv(joints * each[:, None], rcond=COUPLING_CUTOFF) @ parts
    return np.asarray(-each[..., None] * answer)


def _without_rounding(openings: Array, reference: Array) -> Array:
    """Return openings without those that are rounding errors of some others."""
    largest = np.abs(reference).max(initial=0.0)
    return np.where(np.abs(openings) > COUPLING_CUTOFF * largest, openings, 0.0)
