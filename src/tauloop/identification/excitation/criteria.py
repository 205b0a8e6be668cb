"""Criteria of an excitation: smooth functions of the normal matrix Y^T Y with exact gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import casadi as ca
import numpy as np
from scipy.special import logsumexp, softmax

from tauloop.common.records import dataclass

#: Eigenvalues of the normal matrix are at least this fraction of the largest; smaller ones are
#: rounding errors.
MIN_EIGENVALUE_SHARE = 1e-15


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcitationCriterion(ABC):
    """A function of the normal matrix M (r, r) that is minimized, and its gradient."""

    @abstractmethod
    def value(self, normal: np.ndarray) -> float:
        """Return the value of the criterion."""

    @abstractmethod
    def gradient(self, normal: np.ndarray) -> np.ndarray:
        """Return the gradient (r, r), which is symmetric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionNumber(ExcitationCriterion):
    """The logarithm of the condition number of Y, in a smooth form.

    The criterion is (lse(p log l) + lse(-p log l)) / (2 p), with the eigenvalues l of M, where lse
    is the logarithm of the sum of exponentials. The value exceeds log(cond Y) by at most
    log(r) / p. The gradient exists even if eigenvalues coincide.

    Attributes:
        unit_norm: whether the columns of Y are scaled to unit norm first; otherwise they are in SI
            units.
        sharpness: p.
        information: weight of `LogDeterminant`, which is added. The condition number does not
            depend on a common factor of the columns. With unit-norm columns, it does not depend on
            the norm of any column either, so it can favor very small motions without the
            log-determinant.

    Source: the criterion is eq. 14 of Kroneis, Müller and Liu; the smoothing is Tauloop's own.
    """

    unit_norm: bool = False
    sharpness: float = 100.0
    information: float = 0.0

    def value(self, normal: np.ndarray) -> float:
        """Return (lse(p log l) + lse(-p log l)) / (2 p), plus the weighted log-determinant."""
        scaled, _ = self._scaled(normal)
        eigenvalues, _ = _eigen_decomposition(scaled)
        logs = self.sharpness * np.log(eigenvalues)
        smooth = float((logsumexp(logs) + logsumexp(-logs)) / (2 * self.sharpness))
        if not self.information:
            return smooth
        return smooth + self.information * LogDeterminant().value(normal)

    def gradient(self, normal: np.ndarray) -> np.ndarray:
        """Return the gradient, by the chain rule through the scaling of the columns.

        With respect to the scaled matrix, with eigenvectors V, the gradient is
        V diag((softmax(p log l) - softmax(-p log l)) / (2 l)) V^T.
        """
        scaled, norms = self._scaled(normal)
        values, vectors = _eigen_decomposition(scaled)
        logs = self.sharpness * np.log(values)
        weights = 0.5 * (softmax(logs) - softmax(-logs)) / values
        inner = (vectors * weights) @ vectors.T
        if self.unit_norm:
            inner = inner - np.diag((inner * scaled).sum(axis=1))
        gradient = np.asarray(inner / np.outer(norms, norms))
        if not self.information:
            return gradient
        return gradient + self.information * LogDeterminant().gradient(normal)

    def _scaled(self, normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the normal matrix of the scaled columns, and the norms that divide them."""
        norms = np.sqrt(np.diag(normal)) if self.unit_norm else np.ones(len(normal))
        norms = np.maximum(norms, np.sqrt(MIN_EIGENVALUE_SHARE) * norms.max())
        return normal / np.outer(norms, norms), norms


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDeterminant(ExcitationCriterion):
    """The D-optimal criterion -log det(M) / (2 r).

    The criterion is the logarithm of the volume of the parameters' confidence ellipsoid, divided by
    the number of parameters, plus a constant. Other units of the parameters add a constant and do
    not change the optimum.
    """

    def value(self, normal: np.ndarray) -> float:
        """Return -log det(M) / (2 r)."""
        eigenvalues, _ = _eigen_decomposition(normal)
        return float(-np.log(eigenvalues).mean() / 2)

    def gradient(self, normal: np.ndarray) -> np.ndarray:
        """Return -M^-1 / (2 r)."""
        values, vectors = _eigen_decomposition(normal)
        return np.asarray(-(vectors / values) @ vectors.T / (2 * len(values)))


def _eigen_decomposition(normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues, bounded from below, and eigenvectors of a normal matrix."""
    values, vectors = np.linalg.eigh(0.5 * (normal + normal.T))
    return np.maximum(values, MIN_EIGENVALUE_SHARE * max(values[-1], np.finfo(float).tiny)), vectors


#: Criteria by name. With unit-norm columns the log-determinant is added, so that the motion does
#: not become arbitrarily small.
EXCITATION_CRITERIA: dict[str, ExcitationCriterion] = {
    "condition": ConditionNumber(),
    "unit-condition": ConditionNumber(unit_norm=True, information=0.1),
    "determinant": LogDeterminant(),
}


class CriterionFunction(ca.Callback):
    """A criterion as a CasADi function of vec(M), with its exact gradient.

    The caller must hold a reference to this object as long as other functions call it.
    """

    def __init__(self, criterion: ExcitationCriterion, size: int) -> None:
        """Create the function for normal matrices (size, size)."""
        ca.Callback.__init__(self)
        self.criterion = criterion
        self.size = size
        self._gradient = _Gradient(criterion, size)
        self.construct("criterion", {})

    def get_sparsity_in(self, _: int) -> ca.Sparsity:
        """Return the sparsity of the argument, a dense column."""
        return ca.Sparsity.dense(self.size**2, 1)

    def eval(self, arguments: Sequence[ca.DM]) -> list[float]:
        """Return the value of the criterion."""
        return [self.criterion.value(_matrix(arguments[0], self.size))]

    def has_jacobian(self) -> bool:
        """Return True: the gradient is known."""
        return True

    def get_jacobian(self, *_: object) -> ca.Function:
        """Return the gradient, as a row."""
        return self._gradient


class _Gradient(ca.Callback):
    """The gradient of a criterion as a row; CasADi passes the value as the second argument."""

    def __init__(self, criterion: ExcitationCriterion, size: int) -> None:
        ca.Callback.__init__(self)
        self.criterion = criterion
        self.size = size
        self.construct("jac_criterion", {})

    def get_n_in(self) -> int:
        return 2

    def get_sparsity_in(self, which: int) -> ca.Sparsity:
        return ca.Sparsity.dense(1 if which else self.size**2, 1)

    def get_sparsity_out(self, _: int) -> ca.Sparsity:
        return ca.Sparsity.dense(1, self.size**2)

    def eval(self, arguments: Sequence[ca.DM]) -> list[ca.DM]:
        return [ca.DM(self.criterion.gradient(_matrix(arguments[0], self.size)).reshape(1, -1))]


def _matrix(column: ca.DM, size: int) -> np.ndarray:
    """Return the square matrix of a column."""
    return np.asarray(column).reshape(size, size)
