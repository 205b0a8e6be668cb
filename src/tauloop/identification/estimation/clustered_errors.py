"""Cluster-robust standard deviations, with blocks of a log or whole logs as clusters.

Source: Cameron and Miller 2015, A practitioner's guide to cluster-robust inference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
import scipy.special

from tauloop.common.counts import counted
from tauloop.common.errors import IdentificationError
from tauloop.common.options import option
from tauloop.common.records import dataclass
from tauloop.identification.estimation.error_models import ErrorModel, EstimatingEquations

#: Choices of clusters.
CLUSTERS = ("block", "log")
#: Standard deviations are scaled so that this quantile is that of a normal distribution.
COVERAGE_QUANTILE = 0.975


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredErrors(ErrorModel):
    """Errors that are arbitrary within a cluster and independent between clusters (jackknife).

    The covariance is C = (G - 1) / G times the sum of d_g d_g^T over the G clusters. Here d_g is
    the change of the parameters (A - A_g)^-1 s_g if cluster g is left out, minus the mean change
    over all clusters. A_g = Z_g^T Y_g and s_g = Z_g^T e_g are those of the cluster's samples, and A
    is the sum of all A_g (CR3 in Bell and McCaffrey
    2002, Bias reduction in standard errors for linear regression with multi-stage samples).

    Unlike the covariance from the residuals' autocorrelation, this covariance includes model errors
    that last as long as a cluster. With few clusters the scatter between clusters is poorly known,
    so standard deviations are multiplied by the ratio t_(G - 1) / t_infinity of the 97.5 %
    quantiles of Student's t; then 1.96 standard deviations cover 95 %.

    The covariance does not include errors that all clusters share, such as those of a wrong
    friction law if all motions are similar.

    Attributes:
        by: "block" (each log is split into equal blocks) or "log".
        blocks: number of blocks of each log.
    """

    by: str = option("block", choices=CLUSTERS)
    blocks: int = option(12, least=2, remedy="give at least 2, such as 12")

    def covariance(self, equations: EstimatingEquations) -> np.ndarray:
        """See `ErrorModel`.

        Raises:
            IdentificationError: clusters are logs, but there is only one log; or a log has fewer
                samples than blocks.
        """
        rank = equations.regressor.shape[-1]
        scores = equations.scores
        matrices = []
        sums = []
        for cluster in self._clusters(equations):
            instruments = equations.instruments[cluster].reshape(-1, rank)
            matrices.append(instruments.T @ equations.regressor[cluster].reshape(-1, rank))
            sums.append(scores[cluster].sum(axis=0))
        return jackknife(matrices, sums)

    def _clusters(self, equations: EstimatingEquations) -> list[np.ndarray]:
        """Return the sample indices of every cluster."""
        if equations.logs is None:
            labels = np.zeros(len(equations.residual), dtype=int)
        else:
            labels = np.asarray(equations.logs)
        logs = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        if self.by == "log":
            if len(logs) < 2:
                raise IdentificationError.of(
                    "ClusteredErrors",
                    "errors clustered by log need at least 2 logs, got 1",
                    "give several logs, or cluster by block",
                )
            return logs
        shortest = min(map(len, logs))
        if shortest < self.blocks:
            raise IdentificationError.of(
                "ClusteredErrors.blocks",
                f"a log of {counted(shortest, 'sample')} cannot be split into {counted(self.blocks, 'block')}",
                "use fewer blocks",
            )
        return [block for log in logs for block in np.array_split(log, self.blocks)]


def jackknife(parts: Sequence[np.ndarray], scores: Sequence[np.ndarray]) -> np.ndarray:
    """Return the covariance (r, r) from clusters; see `ClusteredErrors`.

    Args:
        parts: A_g (r, r) of every cluster.
        scores: s_g (r,) of every cluster.
    """
    count = len(parts)
    total = np.sum(parts, axis=0)
    scale = np.sqrt(np.abs(np.diag(total)))
    scale[scale == 0.0] = 1.0
    steps = np.zeros((count, len(total)))
    for g, (part, score) in enumerate(zip(parts, scores, strict=True)):
        # If only this cluster excites a direction, the matrix of the other clusters is singular.
        # The step is then the minimum-norm solution.
        others = (total - part) / np.outer(scale, scale)
        steps[g] = np.linalg.lstsq(others, score / scale, rcond=None)[0] / scale
    steps -= steps.mean(axis=0)
    few_clusters = student_factor(count)
    return np.asarray(few_clusters**2 * (count - 1) / count * steps.T @ steps)


def student_factor(count: int) -> float:
    """Return the ratio of the 97.5 % quantiles of Student's t and the normal distribution.

    Student's distribution has `count` - 1 degrees of freedom.
    """
    student = scipy.special.stdtrit(count - 1, COVERAGE_QUANTILE)
    return float(student / scipy.special.ndtri(COVERAGE_QUANTILE))
