"""Optimal selection of measuring poses by exchange.

A set of poses has the information matrix M = P + sum of J_i^T J_i. The Jacobians J_i of the poses
refer to whitened residuals and parameters in units of their tolerances; P is the information of the
priors. A criterion summarizes the standard deviations that follow from M, in
tolerances. Smaller is better for all three criteria:

    D   det(M)^(-1/2m)          geometric mean over the directions (axes of the ellipsoid)
    A   sqrt(trace(M^-1) / m)   root mean square
    E   lambda_min(M)^(-1/2)    largest standard deviation

The exchange algorithm (Fedorov 1972, in the form of Cook and Nachtsheim 1980) replaces every
selected pose in turn by the best candidate, until a whole round changes nothing. Removing and
adding a pose are changes of rank r, the number of residuals of a pose, so only r x r matrices are
needed per candidate: with
C = (M - J_i^T J_i)^-1,

    det(M') = det(C)^-1 det(I + J C J^T),
    trace(M'^-1) = trace(C) - trace((I + J C J^T)^-1 J C C J^T).

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
from tauloop.common.counts import counted
from tauloop.common.errors import IdentificationError, InputError
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass

#: The search ends after a round that improves the criterion by less than this fraction.
MIN_IMPROVEMENT = 1e-4
#: Fraction of the candidates' mean information that is added while the first poses are chosen, so
#: that the information matrix is regular.
RIDGE = 1e-6
#: Directions with singular values below this fraction of the largest are left out unless a prior
#: determines them. Eigenvalues of the information are squares of singular values.
OBSERVABLE_TOLERANCE = 1e-6
#: Number of the lowest eigenvectors of M in which E-optimality first compares candidates.
N_LOWEST_EIGENVECTORS = 12
#: Number of the best candidates that E-optimality then evaluates in full at once.
FULL_EVALUATION_BATCH = 12
#: Maximum number of candidates that E-optimality evaluates in full.
MAX_FULL_EVALUATIONS = 48


class Criterion(ABC):
    """A measure of an information matrix; smaller is better."""

    @abstractmethod
    def value(self, M: np.ndarray) -> float:
        """Return a mean or maximum of the standard deviations, in tolerances, for M (m, m)."""

    @abstractmethod
    def best(self, M: np.ndarray, J: np.ndarray, allowed: np.ndarray) -> int:
        """Return the index of the pose that improves M most.

        Args:
            M: information matrix (m, m) without the pose.
            J: Jacobians (N, r, m) of all poses.
            allowed: whether each pose (N,) can be chosen.
        """


@dataclass(frozen=True, slots=True)
class DOptimal(Criterion):
    """D-optimality: minimum volume of the uncertainty ellipsoid."""

    def value(self, M: np.ndarray) -> float:
        """Return det(M)^(-1/2m)."""
        sign, logarithm = np.linalg.slogdet(M)
        return float(np.exp(-0.5 * logarithm / len(M))) if sign > 0 else np.inf

    def best(self, M: np.ndarray, J: np.ndarray, allowed: np.ndarray) -> int:
        """Return the pose with the largest det(I + J C J^T)."""
        W = _whitened_jacobians(M, J)
        return _best_allowed(
            np.linalg.slogdet(_identity_plus(W @ W.transpose(0, 2, 1)))[1], allowed
        )


@dataclass(frozen=True, slots=True)
class AOptimal(Criterion):
    """A-optimality: minimum mean variance."""

    def value(self, M: np.ndarray) -> float:
        """Return sqrt(trace(M^-1) / m)."""
        return float(np.sqrt(np.trace(scipy.linalg.inv(M)) / len(M)))

    def best(self, M: np.ndarray, J: np.ndarray, allowed: np.ndarray) -> int:
        """Return the pose with the largest trace((I + J C J^T)^-1 J C C J^T)."""
        W = _whitened_jacobians(M, J)
        JC = _times_matrix(J, scipy.linalg.inv(M))
        gain = np.linalg.solve(_identity_plus(W @ W.transpose(0, 2, 1)), JC @ JC.transpose(0, 2, 1))
        return _best_allowed(np.trace(gain, axis1=1, axis2=2), allowed)


@dataclass(frozen=True, slots=True)
class EOptimal(Criterion):
    """E-optimality: minimum uncertainty of the worst direction."""

    def value(self, M: np.ndarray) -> float:
        """Return lambda_min(M)^(-1/2)."""
        smallest = float(np.linalg.eigvalsh(M)[0])
        return smallest**-0.5 if smallest > 0 else np.inf

    def best(self, M: np.ndarray, J: np.ndarray, allowed: np.ndarray) -> int:
        """Return the pose with the largest minimum eigenvalue of M + J^T J.

        In the span of a few eigenvectors of M this eigenvalue is an upper bound (Rayleigh and
        Ritz). Candidates are evaluated in full in the order of the bound, until no bound is above
        the best value found. If the lowest eigenvalues are nearly equal, bounds hardly differ, so
        the number of these evaluations is limited.
        """
        eigenvalues, V = np.linalg.eigh(M)
        count = min(N_LOWEST_EIGENVECTORS, len(eigenvalues))
        B = _times_matrix(J, V[:, :count])
        bounds = np.linalg.eigvalsh(np.diag(eigenvalues[:count]) + B.transpose(0, 2, 1) @ B)[:, 0]
        order = np.argsort(np.where(allowed, -bounds, np.inf), kind="stable")[: int(allowed.sum())]
        best = -np.inf
        chosen = int(order[0])
        for first in range(0, min(len(order), MAX_FULL_EVALUATIONS), FULL_EVALUATION_BATCH):
            batch = order[first : first + FULL_EVALUATION_BATCH]
            if bounds[batch[0]] <= best:
                break
            values = np.linalg.eigvalsh(M + J[batch].transpose(0, 2, 1) @ J[batch])[:, 0]
            if values.max() > best:
                best = float(values.max())
                chosen = int(batch[values.argmax()])
        return chosen


D_OPTIMAL = DOptimal()
A_OPTIMAL = AOptimal()
E_OPTIMAL = EOptimal()
CRITERIA = {"D": D_OPTIMAL, "A": A_OPTIMAL, "E": E_OPTIMAL}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Selected poses.

    Attributes:
        chosen: indices (k,) of candidates in ascending order; a candidate that is to be measured
            several times appears several times.
        value: value of the criterion, in tolerances.
        start_value: value of the criterion for the initial set, which was chosen pose by pose.
        rounds: number of rounds over all selected poses.
        exchanges: number of exchanged poses.
        indices: observability of the selected poses.
        n_unobservable: number of directions that no candidate determines; they are left out.
    """

    chosen: tuple[int, ...]
    value: float
    start_value: float
    rounds: int
    exchanges: int
    indices: Observability
    n_unobservable: int

    silent = old_attribute("silent", "n_unobservable")


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
    """Choose the poses that determine the parameters best.

    Args:
        jacobians: Jacobians of all candidates (N, r, n): whitened residuals, parameters in
            tolerances.
        count: number of poses to choose.
        criterion: criterion to minimize.
        prior: prior information (n,) of each parameter, in tolerances^-2 (ones for tolerance
            priors).
        repeated: whether one candidate may be chosen more than once.
        rounds: maximum number of rounds of exchanges.
        progress: called with the number of processed poses and an upper bound of their number.

    Returns:
        Indices of the selected candidates, the value of the criterion and the observability.

    Raises:
        InputError: shapes are wrong, or there are more poses than candidates.
        IdentificationError: there are fewer residuals than directions and no prior, or measurements
            do not depend on the parameters.
    """
    J = require_jacobians(jacobians)
    n_candidates, r, n = J.shape
    _require_count(count, n_candidates, repeated)
    weights = np.zeros(n) if prior is None else np.asarray(prior, dtype=float)
    tolerance = NULL_TOLERANCE if (weights > 0).all() else OBSERVABLE_TOLERANCE
    basis = observable_directions(J, null=tolerance)
    m = basis.shape[1]
    if m == 0:
        what = "none of them has an effect on the measurements"
        raise IdentificationError.of(
            "parameters", what, "name geometric parameters of the loops or of the tool"
        )
    if count * r + int((weights > 0).sum()) < m:
        what = f"{counted(count, 'pose')} with {counted(r, 'residual')} each cannot determine {m} directions"
        remedy = f"choose at least {counted(-(-m // r), 'pose')}, estimate fewer parameters, or use tolerance priors"
        raise IdentificationError.of("count", what, remedy)
    J = J @ basis
    P = basis.T @ (weights[:, None] * basis)
    chosen = _initial_set(J, P, count, criterion, repeated)
    start_value = criterion.value(information(J, P, chosen))
    value = start_value
    rounds_used = 0
    exchanges = 0
    stages = Stages(progress, 1)
    for rounds_used in range(1, rounds + 1):
        changed = 0
        for index in range(count):
            stages.part((rounds_used - 1) * count + index, rounds * count)
            changed += _exchange(J, P, chosen, index, criterion, repeated)
        exchanges += changed
        previous = value
        value = criterion.value(information(J, P, chosen))
        if not changed or previous - value < MIN_IMPROVEMENT * value:
            break
    stages.done()
    chosen.sort()
    return Selection(
        chosen=tuple(chosen),
        value=value,
        start_value=start_value,
        rounds=rounds_used,
        exchanges=exchanges,
        indices=observability(J[chosen], null=tolerance),
        n_unobservable=n - m,
    )


def _require_count(count: int, n_candidates: int, repeated: bool) -> None:
    """Reject a number of poses that is below one or above the number of candidates."""
    if count < 1 or (count > n_candidates and not repeated):
        what = f"{count} of {counted(n_candidates, 'candidate')} requested"
        remedy = "request at least one pose and at most all candidates, or give more candidates"
        raise InputError.of("count", what, remedy)


def information(J: np.ndarray, P: np.ndarray, chosen: list[int]) -> np.ndarray:
    """Return P + sum of J_i^T J_i over the chosen poses."""
    rows = J[chosen].reshape(-1, J.shape[2])
    return np.asarray(P + rows.T @ rows)


def _initial_set(
    J: np.ndarray, P: np.ndarray, count: int, criterion: Criterion, repeated: bool
) -> list[int]:
    """Return an initial set, in which each pose is the best addition to the previous poses.

    A small fraction of the information of all candidates makes the information matrix regular.
    """
    all_rows = J.reshape(-1, J.shape[2])
    M = P + all_rows.T @ all_rows * (RIDGE / len(J))
    allowed = np.ones(len(J), dtype=bool)
    chosen: list[int] = []
    for _ in range(count):
        j = criterion.best(M, J, allowed)
        chosen.append(j)
        allowed[j] = repeated
        M = M + J[j].T @ J[j]
    return chosen


def _exchange(
    J: np.ndarray,
    P: np.ndarray,
    chosen: list[int],
    index: int,
    criterion: Criterion,
    repeated: bool,
) -> bool:
    """Replace one selected pose by the best candidate; return whether that improved the set."""
    old = chosen[index]
    others = chosen[:index] + chosen[index + 1 :]
    M = information(J, P, others)
    if np.linalg.matrix_rank(M, hermitian=True) < len(M):
        # Without this pose, one of its directions would not be determined.
        return False
    allowed = np.ones(len(J), dtype=bool)
    if not repeated:
        allowed[others] = False
    new = criterion.best(M, J, allowed)
    if new == old:
        return False
    old_value = criterion.value(M + J[old].T @ J[old])
    new_value = criterion.value(M + J[new].T @ J[new])
    if new_value >= old_value * (1 - 1e-12):
        return False
    chosen[index] = new
    return True


def _whitened_jacobians(M: np.ndarray, J: np.ndarray) -> np.ndarray:
    """Return W = J L^-T with M = L L^T, which satisfies W W^T = J M^-1 J^T."""
    L = np.linalg.cholesky(M)
    return _times_matrix(J, scipy.linalg.solve_triangular(L, np.eye(len(L)), lower=True).T)


def _times_matrix(J: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return J A for all poses, computed as one matrix product."""
    return np.asarray((J.reshape(-1, J.shape[2]) @ A).reshape(len(J), J.shape[1], -1))


def _identity_plus(S: np.ndarray) -> np.ndarray:
    """Return I + S for stacked matrices."""
    return np.asarray(np.eye(S.shape[1]) + S)


def _best_allowed(gain: np.ndarray, allowed: np.ndarray) -> int:
    """Return the allowed index with the largest gain."""
    return int(np.where(allowed, gain, -np.inf).argmax())
