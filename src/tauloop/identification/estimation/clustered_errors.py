"""Standard deviations from how much blocks of a log, or whole logs, pull the parameters apart.

Source: Cameron and Miller 2015, A practitioner's guide to cluster-robust inference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
import scipy.special

from tauloop.common.errors import IdentificationError
from tauloop.common.options import option
from tauloop.common.records import dataclass
from tauloop.identification.estimation.error_models import ErrorModel, EstimatingEquations

#: What errors are clustered by.
CLUSTERS = ("block", "log")
#: Quantile up to which a standard deviation is made to cover as of a normal distribution.
COVERED = 0.975


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredErrors(ErrorModel):
    """Errors of any kind inside a cluster, independent from one cluster to the next: the jackknife over clusters.

    C = (G - 1) / G sum of d_g d_g^T over the G clusters, with d_g = (A - A_g)^-1 s_g the step of
    the parameters when cluster g is left out, less its mean; A_g = Z_g^T Y_g and s_g = Z_g^T e_g of
    its samples (Bell and McCaffrey 2002, Bias reduction in standard errors for linear regression
    with multi-stage samples: CR3). Unlike the residuals' own sandwich it counts what a model error
    does that lasts as long as a cluster. Few clusters say little of the scatter: deviations are
    multiplied by t_(G - 1) / t_infinity at 97.5 %, so that 1.96 of them cover 95 %.

    What all clusters have in common, such as a wrong friction law under motions of one kind, none
    of this shows.

    Attributes:
        by: "block" (each log is cut into equal blocks) or "log".
        blocks: how many in each log.
    """

    by: str = option("block", choices=CLUSTERS)
    blocks: int = option(12, least=2, remedy="give at least 2, such as 12")

    def covariance(self, equations: EstimatingEquations) -> np.ndarray:
        """See `ErrorModel`.

        Raises:
            IdentificationError: a single log where clusters are logs; fewer samples than blocks.
        """
        clusters, rank, scores = (
            self._clusters(equations),
            equations.regressor.shape[-1],
            equations.scores,
        )
        parts = [
            equations.instruments[cluster].reshape(-1, rank).T
            @ equations.regressor[cluster].reshape(-1, rank)
            for cluster in clusters
        ]
        return jackknife(parts, [scores[cluster].sum(axis=0) for cluster in clusters])

    def _clusters(self, equations: EstimatingEquations) -> list[np.ndarray]:
        """Numbers of the samples of every cluster."""
        count = len(equations.residual)
        labels = (
            np.zeros(count, dtype=int) if equations.logs is None else np.asarray(equations.logs)
        )
        logs = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        if self.by == "log":
            if len(logs) < 2:
                what = "a single log has no other to be compared with"
                raise IdentificationError.of(
                    "ClusteredErrors", what, "give several logs, or cluster by block"
                )
            return logs
        if min(map(len, logs)) < self.blocks:
            what = f"{min(map(len, logs))} samples of a log do not fill {self.blocks} blocks"
            raise IdentificationError.of("ClusteredErrors.blocks", what, "take fewer blocks")
        return [block for log in logs for block in np.array_split(log, self.blocks)]


def jackknife(parts: Sequence[np.ndarray], scores: Sequence[np.ndarray]) -> np.ndarray:
    """Covariance (r, r) from clusters, as `ClusteredErrors` says.

    Args:
        parts: A_g (r, r) of every cluster.
        scores: s_g (r,) of every cluster.
    """
    count, whole = len(parts), np.sum(parts, axis=0)
    scale = np.sqrt(np.abs(np.diag(whole)))
    scale[scale == 0.0] = 1.0
    steps = np.zeros((count, len(whole)))
    for g, (part, score) in enumerate(zip(parts, scores, strict=True)):
        # a cluster that alone shows a direction leaves none of it: the least-norm step of the
        # others
        left = (whole - part) / np.outer(scale, scale)
        steps[g] = np.linalg.lstsq(left, score / scale, rcond=None)[0] / scale
    steps -= steps.mean(axis=0)
    few = float(scipy.special.stdtrit(count - 1, COVERED) / scipy.special.ndtri(COVERED))
    return np.asarray(few**2 * (count - 1) / count * steps.T @ steps)
