"""Worst cases of over-constrained machines, whose redundant loops couple their errors.

If a machine can be assembled, its redundant loops are closed: its errors e satisfy M e + r = 0, where r
contains the nonlinear terms and |r| <= R. So the error along d is at most

    d.S e = (d.S - y.M) e - y.r <= sum_g ||(d.S - y.M)_g|| + |y|.R     for any multipliers y,

where S are the twists of the tool, and the sources g are errors in intervals or balls, in units of their
tolerances. Without R, the smallest such bound equals the largest error by strong duality. A linear
program determines y; cutting planes approximate the balls.

Source: Boyd, Vandenberghe 2004, Convex optimization, chapter 5; Kelley 1960, The cutting-plane method for
solving convex programs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.tolerances.error_equations import Array
from tauloop.design.tolerances.error_groups import ErrorGroup

#: Maximum number of rounds of cutting planes.
CUTTING_ROUNDS = 20
#: Gap between the bound and its lower bound at which the rounds end, as a fraction of the bound.
CUTTING_GAP = 1e-6
#: Number of steps of reweighted least squares for the smallest clearances.
REWEIGHTINGS = 30
#: Residuals of redundant loops below this fraction of the largest count as rounding errors.
COUPLING_CUTOFF = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ErrorCoupling:
    """Effects of the full tolerances of g sources, as vectors; intervals use a single component.

    The opening of a redundant loop is the residual of its equation.

    Attributes:
        effects: (N, 6, g, 3) twists of the tool.
        openings: (N, c, g, 3) residuals of redundant loops.
        adapts: (g,) whether the error adapts itself so that the machine can be assembled, as the joint
            center within a clearance does.
    """

    effects: Array
    openings: Array
    adapts: np.ndarray

    @property
    def is_coupled(self) -> bool:
        """Whether errors open redundant loops by more than rounding errors."""
        largest = np.abs(self.effects).max(initial=0.0)
        return bool(np.abs(self.openings).max(initial=0.0) > COUPLING_CUTOFF * largest)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoupledWorst:
    """Largest errors of machines that can be assembled.

    Attributes:
        worst: (N, 6) bounds of the errors for loops that close to first order, m and rad.
        multipliers: (N, 6, c) multipliers y that prove the bounds.
    """

    worst: Array
    multipliers: Array


def coupling(
    groups: Sequence[ErrorGroup], mismatch: Array, adapts: Sequence[bool]
) -> ErrorCoupling:
    """Return the effects of all errors on the tool and on redundant loops.

    Args:
        groups: sources of error in the order of the equations.
        mismatch: (N, c, p) residuals of redundant loops per unit of each component of all errors.
        adapts: for each group, whether its errors adapt themselves (see `ErrorCoupling`).
    """
    effects: list[Array] = []
    openings: list[Array] = []
    first = 0
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
    """Return vectors (..., 3) from vectors with one or three components."""
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
    """Return the largest opening (N, 6) of the loops by the errors that are worst in each direction."""
    magnitude = np.linalg.norm(S, axis=-1, keepdims=True)
    unit = np.divide(S, magnitude, out=np.zeros_like(S), where=magnitude > 0.0)
    return np.asarray(np.abs(np.einsum("ncgk,ndgk->ndc", M, unit)).max(axis=-1))


def _bound(s: Array, M: Array, y: Array) -> float:
    """Return the bound of the error with multipliers y (c,)."""
    return float(np.linalg.norm(s - np.tensordot(y, M, axes=1), axis=-1).sum())


def _multipliers(s: Array, M: Array) -> Array:
    """Return the multipliers y (c,) of the smallest bound, by the cutting-plane method.

    The method minimizes sum_g t_g subject to t_g >= u.(s - y.M)_g for some unit vectors u. It adds
    the directions of (s - y.M)_g at the solution to these vectors until the bound no longer
    changes.

    Args:
        s: (g, 3) effects in one direction.
        M: (c, g, 3) openings.
    """
    from scipy.optimize import linprog

    count = len(s)
    basis, sigma, _ = np.linalg.svd(M.reshape(len(M), -1), full_matrices=False)
    basis = basis[:, sigma > COUPLING_CUTOFF * sigma[0]]
    rows = np.tensordot(basis.T, M, axes=1)
    has_effect = (s != 0.0) | (rows != 0.0).any(axis=0)
    source, component = np.nonzero(has_effect)
    unit = np.eye(3)[component]
    cuts = np.concatenate([unit, -unit])
    owners = np.concatenate([source, source])
    scale = float(np.abs(s).max())
    z = np.zeros(basis.shape[1])
    for _ in range(CUTTING_ROUNDS):
        by_bounds = np.zeros((len(cuts), count))
        by_bounds[np.arange(len(cuts)), owners] = -1.0
        by_multipliers = -np.einsum("rik,ik->ir", rows[:, owners], cuts)
        right_side = -(s[owners] * cuts).sum(axis=1) / scale
        program = linprog(
            np.concatenate([np.ones(count), np.zeros(len(z))]),
            A_ub=np.concatenate([by_bounds, by_multipliers], axis=1),
            b_ub=right_side,
            bounds=[(0.0, None)] * count + [(None, None)] * len(z),
        )
        if program.x is None:
            break
        z = scale * program.x[count:]
        remainders = s - np.tensordot(z, rows, axes=1)
        norms = np.linalg.norm(remainders, axis=1)
        if norms.sum() <= (1.0 + CUTTING_GAP) * scale * program.fun:
            break
        cut_sources = np.flatnonzero(norms > 0.0)
        new_cuts = remainders[cut_sources] / norms[cut_sources, None]
        cuts = np.concatenate([cuts, new_cuts])
        owners = np.concatenate([owners, cut_sources])
    return np.asarray(basis @ z)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AssemblyFit:
    """Whether parts with errors can be assembled, to first order.

    Attributes:
        opening: (N, c) largest residuals of redundant loops that clearances cannot compensate.
        clearance_fraction: (N,) largest fraction of a clearance that the other residuals require.
    """

    opening: Array
    clearance_fraction: Array


def assembly_fit(errors: ErrorCoupling) -> AssemblyFit:
    """Return whether clearances let every machine within its tolerances assemble.

    The displacements of joint centers, in units of the clearances, are linear functions of the other
    errors. Their largest values over these errors are an upper bound of the required clearance.
    Reweighted least squares balances the clearances and makes this bound small.
    """
    N, c = errors.openings.shape[:2]
    if not errors.is_coupled:
        return AssemblyFit(opening=np.zeros((N, c)), clearance_fraction=np.zeros(N))
    part_openings = errors.openings[:, :, ~errors.adapts, 0]
    clearance_openings = errors.openings[:, :, errors.adapts].reshape(N, c, -1)
    if clearance_openings.shape[2] == 0:
        return AssemblyFit(
            opening=np.abs(part_openings).sum(axis=-1), clearance_fraction=np.zeros(N)
        )
    weights = np.ones((N, clearance_openings.shape[2] // 3))
    fraction = np.full(N, np.inf)
    for _ in range(REWEIGHTINGS):
        displacements = _closing_displacements(clearance_openings, part_openings, weights)
        vectors = displacements.reshape(N, -1, 3, part_openings.shape[2])
        required = np.linalg.norm(vectors, axis=2).sum(axis=-1)
        largest = required.max(axis=1)
        fraction = np.minimum(fraction, largest)
        relative = required / np.maximum(largest[:, None], np.finfo(float).tiny)
        weights = weights / np.sqrt(np.maximum(relative, COUPLING_CUTOFF))
        weights = weights / weights.max(axis=1, keepdims=True)
    uncompensated = part_openings + clearance_openings @ _closing_displacements(
        clearance_openings, part_openings, weights
    )
    opening = _without_rounding(uncompensated, part_openings)
    return AssemblyFit(opening=np.abs(opening).sum(axis=-1), clearance_fraction=fraction)


def _closing_displacements(joints: Array, parts: Array, weights: Array) -> Array:
    """Return the displacements (N, 3 k, p) of joint centers that close the loops.

    The displacements minimize the sum of squares of displacement divided by weight.
    """
    component_weights = np.repeat(weights, 3, axis=1)
    scaled = np.linalg.pinv(joints * component_weights[:, None], rcond=COUPLING_CUTOFF) @ parts
    return np.asarray(-component_weights[..., None] * scaled)


def _without_rounding(openings: Array, reference: Array) -> Array:
    """Return openings with zeros for values that are rounding errors relative to a reference."""
    largest = np.abs(reference).max(initial=0.0)
    return np.where(np.abs(openings) > COUPLING_CUTOFF * largest, openings, 0.0)
