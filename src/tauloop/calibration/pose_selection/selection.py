"""Optimal selection of measuring poses by exchange.

A set of poses has the information M = P + sum of J_i^T J_i (whitened residuals, parameters in
tolerances, P from priors). A criterion says how good M is; its value is given as a size of standard
deviations, in tolerances, so that smaller is better for all three:

    D   det(M)^(-1/2m)          their geometric mean over the directions (axes of the ellipsoid)
    A   sqrt(trace(M^-1) / m)   their root mean square
    E   lambda_min(M)^(-1/2)    the largest

The exchange algorithm (Fedorov 1972, in the form of Cook and Nachtsheim 1980) takes every selected
pose out in turn and puts in its place the candidate that is best there, until a whole round changes
nothing. Taking a pose out and putting one in are changes of rank r, so only r x r matrices are
worked on per candidate: with C = (M - J_i^T J_i)^-1,

    det(M') = det(C)^-1 det(I + J C J^T),   trace(M'^-1) = trace(C) - trace((I + J C J^T)^-1 J C C J^T).

Source: Fedorov 1972, Theory of Optimal Experiments; Cook and Nachtsheim 1980, A comparison of
algorithms for constructing exact D-optimal designs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import scipy.linalg

from tauloop.calibration.judging.observability import (
    NULL_TOLERANCE,
    Observability,
    observability,
    observable_directions,
    require_jacobians,
)
from tauloop.common.errors import IdentificationError, InputError
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass

#: A round that betters the criterion by less than this share is the last.
ENOUGH = 1e-4
#: A poor set is made regular by this share of the candidates' mean information while the first
#: poses are chosen.
RIDGE = 1e-6
#: Directions below this share of the largest are left out where no prior holds them: information
#: squares it.
SHOWN = 1e-6
#: Lowest eigenvectors of M in which candidates are compared (E), and how many of the best are
#: worked out in full, at once and at most.
LOWEST, FINALISTS, WORKED_OUT = 12, 12, 48


class Criterion(ABC):
    """How good an information matrix is; smaller is better."""

    @abstractmethod
    def value(self, M: np.ndarray) -> float:
        """Size of the standard deviations, in tolerances, from the information (m, m)."""

    @abstractmethod
    def best(self, M: np.ndarray, J: np.ndarray, allowed: np.ndarray) -> int:
        """The allowed pose (N,) whose Jacobian (N, r, m) betters the information M most."""


@dataclass(frozen=True, slots=True)
class DOptimal(Criterion):
    """The least volume of the ellipsoid of uncertainty."""

    def value(self, M: np.ndarray) -> float:
        """det(M)^(-1/2m)."""
        sign, logarithm = np.linalg.slogdet(M)
        return float(np.exp(-0.5 * logarithm / len(M))) if sign > 0 else np.inf

    def best(self, M: np.ndarray, J: np.ndarray, allowed: np.ndarray) -> int:
        """Largest det(I + J C J^T)."""
        W = _whitened(M, J)
        return _largest(np.linalg.slogdet(_one_plus(W @ W.transpose(0, 2, 1)))[1], allowed)


@dataclass(frozen=True, slots=True)
class AOptimal(Criterion):
    """The least mean variance."""

    def value(self, M: np.ndarray) -> float:
        """sqrt(trace(M^-1) / m)."""
        return float(np.sqrt(np.trace(scipy.linalg.inv(M)) / len(M)))

    def best(self, M: np.ndarray, J: np.ndarray, allowed: np.ndarray) -> int:
        """Largest trace((I + J C J^T)^-1 J C C J^T)."""
        W = _whitened(M, J)
        JC = _by_rows(J, scipy.linalg.inv(M))
        gain = np.linalg.solve(_one_plus(W @ W.transpose(0, 2, 1)), JC @ JC.transpose(0, 2, 1))
        return _largest(np.trace(gain, axis1=1, axis2=2), allowed)


@dataclass(frozen=True, slots=True)
class EOptimal(Criterion):
    """The least uncertainty of the direction that is shown least."""

    def value(self, M: np.ndarray) -> float:
        """lambda_min(M)^(-1/2)."""
        smallest = float(np.linalg.eigvalsh(M)[0])
        return smallest**-0.5 if smallest > 0 else np.inf

    def best(self, M: np.ndarray, J: np.ndarray, allowed: np.ndarray) -> int:
        """Largest smallest eigenvalue of M + J^T J.

        In the span of a few eigenvectors of M it is never smaller than in full (Rayleigh and Ritz),
        so candidates are worked out in full in the order of that bound, until no bound is above the
        best value found (or some dozens are worked out: where the lowest eigenvalues are nearly
        equal, bounds hardly differ).
        """
        sizes, V = np.linalg.eigh(M)
        few = min(LOWEST, len(sizes))
        B = _by_rows(J, V[:, :few])
        bounds = np.linalg.eigvalsh(np.diag(sizes[:few]) + B.transpose(0, 2, 1) @ B)[:, 0]
        order = np.argsort(np.where(allowed, -bounds, np.inf), kind="stable")[: int(allowed.sum())]
        best, chosen = -np.inf, int(order[0])
        for first in range(0, min(len(order), WORKED_OUT), FINALISTS):
            some = order[first : first + FINALISTS]
            if bounds[some[0]] <= best:
                break
            values = np.linalg.eigvalsh(M + J[some].transpose(0, 2, 1) @ J[some])[:, 0]
            if values.max() > best:
                best, chosen = float(values.max()), int(some[values.argmax()])
        return chosen


D_OPTIMAL, A_OPTIMAL, E_OPTIMAL = DOptimal(), AOptimal(), EOptimal()
CRITERIA = {"D": D_OPTIMAL, "A": A_OPTIMAL, "E": E_OPTIMAL}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Selected poses.

    Attributes:
        chosen: indices (k,) of candidates in rising order; one that is to be measured again comes
            again.
        value: of the criterion: size of standard deviations in tolerances.
        start_value: the same of the first set, chosen one pose after the other.
        rounds, exchanges: how many rounds over all selected poses, and how many poses were
            exchanged.
        indices: observability of the selected poses.
        silent: directions that no candidate shows; they are left out.
    """

    chosen: tuple[int, ...]
    value: float
    start_value: float
    rounds: int
    exchanges: int
    indices: Observability
    silent: int


def select_poses(
    jacobians: np.ndarray,
    count: int,
    *,
    criterion: Criterion = D_OPTIMAL,
    prior: np.ndarray | None = None,
    repeated: bool = False,
    rounds: int = 20,
    progress: Progress | None = None,
) -> Selection:
    """Choose the poses that show the parameters best.

    Args:
        jacobians: of all candidates (N, r, n): whitened residuals in parameters in tolerances.
        count: how many poses to choose.
        criterion: what is best.
        prior: information (n,) of each parameter from elsewhere, in tolerances^-2 (ones for
            tolerance priors).
        repeated: whether one candidate may be chosen more than once.
        rounds: of exchanges at most.
        progress: called with poses gone over and a bound of their number.

    Raises:
        InputError: wrong shapes, or more poses than candidates.
        IdentificationError: fewer residuals than directions and no prior, or nothing moves what is
            measured.
    """
    J = require_jacobians(jacobians)
    n_candidates, r, n = J.shape
    _require_count(count, n_candidates, repeated)
    weights = np.zeros(n) if prior is None else np.asarray(prior, dtype=float)
    null = NULL_TOLERANCE if (weights > 0).all() else SHOWN
    basis = observable_directions(J, null=null)
    m = basis.shape[1]
    if m == 0:
        what = "none of them moves what is measured"
        raise IdentificationError.of(
            "parameters", what, "name geometry of the loops or of the tool"
        )
    if count * r + int((weights > 0).sum()) < m:
        what = f"{count} poses with {r} residuals each cannot show {m} directions"
        remedy = f"choose at least {-(-m // r)} poses, estimate fewer parameters, or use tolerance priors"
        raise IdentificationError.of("count", what, remedy)
    W = J @ basis
    P = basis.T @ (weights[:, None] * basis)
    chosen = _one_by_one(W, P, count, criterion, repeated)
    start_value = criterion.value(information(W, P, chosen))
    value, used, exchanges, stages = start_value, 0, 0, Stages(progress, 1)
    for used in range(1, rounds + 1):
        changed = 0
        for place in range(count):
            stages.part((used - 1) * count + place, rounds * count)
            changed += _exchange(W, P, chosen, place, criterion, repeated)
        better = criterion.value(information(W, P, chosen))
        exchanges += changed
        gain, value = value - better, better
        if not changed or gain < ENOUGH * value:
            break
    stages.done()
    chosen.sort()
    return Selection(
        chosen=tuple(chosen),
        value=value,
        start_value=start_value,
        rounds=used,
        exchanges=exchanges,
        indices=observability(W[chosen], null=null),
        silent=n - m,
    )


def _require_count(count: int, n_candidates: int, repeated: bool) -> None:
    if count < 1 or (count > n_candidates and not repeated):
        what = f"{count} of {n_candidates} candidates"
        remedy = "choose at least one pose and no more than there are, or give more candidates"
        raise InputError.of("count", what, remedy)


def information(W: np.ndarray, P: np.ndarray, chosen: list[int]) -> np.ndarray:
    """P + sum of W_i^T W_i over the chosen poses."""
    rows = W[chosen].reshape(-1, W.shape[2])
    return np.asarray(P + rows.T @ rows)


def _one_by_one(
    W: np.ndarray, P: np.ndarray, count: int, criterion: Criterion, repeated: bool
) -> list[int]:
    """A first set: each pose the best beside those before it, made regular by a little of all candidates."""
    everything = W.reshape(-1, W.shape[2])
    M = P + everything.T @ everything * (RIDGE / len(W))
    allowed, chosen = np.ones(len(W), dtype=bool), []
    for _ in range(count):
        j = criterion.best(M, W, allowed)
        chosen.append(j)
        allowed[j] = repeated
        M = M + W[j].T @ W[j]
    return chosen


def _exchange(
    W: np.ndarray,
    P: np.ndarray,
    chosen: list[int],
    place: int,
    criterion: Criterion,
    repeated: bool,
) -> bool:
    """Exchange one selected pose for the candidate that is best in its place; whether that made the set better."""
    old = chosen[place]
    others = chosen[:place] + chosen[place + 1 :]
    M = information(W, P, others)
    if np.linalg.matrix_rank(M, hermitian=True) < len(M):
        return False  # the pose is needed for a direction that no other shows
    allowed = np.ones(len(W), dtype=bool)
    if not repeated:
        allowed[others] = False
    new = criterion.best(M, W, allowed)
    if new == old or criterion.value(M + W[new].T @ W[new]) >= criterion.value(
        M + W[old].T @ W[old]
    ) * (1 - 1e-12):
        return False
    chosen[place] = new
    return True


def _whitened(M: np.ndarray, J: np.ndarray) -> np.ndarray:
    """J L^-T with M = L L^T, so that its rows' products are J M^-1 J^T."""
    L = np.linalg.cholesky(M)
    return _by_rows(J, scipy.linalg.solve_triangular(L, np.eye(len(L)), lower=True).T)


def _by_rows(J: np.ndarray, A: np.ndarray) -> np.ndarray:
    """J A for all poses by one product of matrices."""
    return np.asarray((J.reshape(-1, J.shape[2]) @ A).reshape(len(J), J.shape[1], -1))


def _one_plus(S: np.ndarray) -> np.ndarray:
    return np.asarray(np.eye(S.shape[1]) + S)


def _largest(gain: np.ndarray, allowed: np.ndarray) -> int:
    return int(np.where(allowed, gain, -np.inf).argmax())
