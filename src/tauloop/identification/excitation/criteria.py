"""How good an excitation is: smooth functions of the normal matrix Y^T Y with exact gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import casadi as ca
import numpy as np
from scipy.special import logsumexp, softmax

from tauloop.common.records import dataclass

#: Eigenvalues of the normal matrix below this share of the largest count as this: they are
#: rounding.
SMALLEST_SHARE = 1e-15


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcitationCriterion(ABC):
    """A function of the normal matrix M (r, r), to be made small, and its gradient."""

    @abstractmethod
    def value(self, normal: np.ndarray) -> float:
        """Its value."""

    @abstractmethod
    def gradient(self, normal: np.ndarray) -> np.ndarray:
        """Its gradient (r, r), symmetric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionNumber(ExcitationCriterion):
    """Logarithm of the condition number of Y, made smooth: (lse(p log l) + lse(-p log l)) / (2 p), l eigenvalues of M.

    lse is the logarithm of the sum of exponentials. The value lies above log(cond Y) by at most
    log(r) / p, and its gradient exists where eigenvalues coincide too.

    Attributes:
        unit_norm: columns of Y are scaled to norm one first; else they are in SI units as they are.
        sharpness: p.
        information: share of `LogDeterminant` that is added. The condition number does not see how
            large columns are, and with unit-norm columns not even how large one is beside another,
            so that it alone may prefer a motion that hardly moves.
    Source: the criterion is eq. 14 of Kroneis, Müller and Liu; the smoothing is ours.
    """

    unit_norm: bool = False
    sharpness: float = 100.0
    information: float = 0.0

    def value(self, normal: np.ndarray) -> float:
        """(lse(p log l) + lse(-p log l)) / (2 p)."""
        logs = self.sharpness * np.log(_eigen(self._scaled(normal)[0])[0])
        smooth = float((logsumexp(logs) + logsumexp(-logs)) / (2 * self.sharpness))
        return smooth + (
            self.information * LogDeterminant().value(normal) if self.information else 0.0
        )

    def gradient(self, normal: np.ndarray) -> np.ndarray:
        """V diag((softmax(p log l) - softmax(-p log l)) / (2 l)) V^T, taken back through the scaling of the columns."""
        scaled, norms = self._scaled(normal)
        values, vectors = _eigen(scaled)
        logs = self.sharpness * np.log(values)
        weights = 0.5 * (softmax(logs) - softmax(-logs)) / values
        inner = (vectors * weights) @ vectors.T
        if self.unit_norm:
            inner = inner - np.diag((inner * scaled).sum(axis=1))
        gradient = np.asarray(inner / np.outer(norms, norms))
        return gradient + (
            self.information * LogDeterminant().gradient(normal) if self.information else 0.0
        )

    def _scaled(self, normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        norms = np.sqrt(np.diag(normal)) if self.unit_norm else np.ones(len(normal))
        norms = np.maximum(norms, np.sqrt(SMALLEST_SHARE) * norms.max())
        return normal / np.outer(norms, norms), norms


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDeterminant(ExcitationCriterion):
    """-log det(M) / (2 r): D-optimal, the volume of the parameters' confidence ellipsoid, per parameter.

    A change of the parameters' units adds a constant and does not move the optimum.
    """

    def value(self, normal: np.ndarray) -> float:
        """-log det(M) / (2 r)."""
        return float(-np.log(_eigen(normal)[0]).mean() / 2)

    def gradient(self, normal: np.ndarray) -> np.ndarray:
        """-M^-1 / (2 r)."""
        values, vectors = _eigen(normal)
        return np.asarray(-(vectors / values) @ vectors.T / (2 * len(values)))


def _eigen(normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(0.5 * (normal + normal.T))
    return np.maximum(values, SMALLEST_SHARE * max(values[-1], np.finfo(float).tiny)), vectors


#: Criteria by name. With unit-norm columns a share of the log-determinant keeps the motion from
#: shrinking to nothing.
CRITERIA: dict[str, ExcitationCriterion] = {
    "condition": ConditionNumber(),
    "unit-condition": ConditionNumber(unit_norm=True, information=0.1),
    "determinant": LogDeterminant(),
}


class CriterionFunction(ca.Callback):
    """A criterion as a CasADi function of vec(M), with its exact gradient. Keep it while functions call it."""

    def __init__(self, criterion: ExcitationCriterion, size: int) -> None:
        """Make the function for normal matrices (size, size)."""
        ca.Callback.__init__(self)
        self.criterion, self.size = criterion, size
        self._gradient = _Gradient(criterion, size)
        self.construct("criterion", {})

    def get_sparsity_in(self, _: int) -> ca.Sparsity:
        """A dense column."""
        return ca.Sparsity.dense(self.size**2, 1)

    def eval(self, arguments: Sequence[ca.DM]) -> list[float]:
        """The criterion's value."""
        return [self.criterion.value(_matrix(arguments[0], self.size))]

    def has_jacobian(self) -> bool:
        """It has one."""
        return True

    def get_jacobian(self, *_: object) -> ca.Function:
        """The gradient as a row."""
        return self._gradient


class _Gradient(ca.Callback):
    """Gradient of a criterion as a row; the second argument is the value, as CasADi wants it."""

    def __init__(self, criterion: ExcitationCriterion, size: int) -> None:
        ca.Callback.__init__(self)
        self.criterion, self.size = criterion, size
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
    return np.asarray(column).reshape(size, size)
