"""The linear algebra of an identification runs in one thread; the number of threads is restored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from planar_arm import arm_data
from threadpoolctl import threadpool_info, threadpool_limits

from tauloop.common.errors import IdentificationError
from tauloop.identification import Estimate, OrdinaryLeastSquares, fit_regression
from tauloop.identification.estimation.estimators import CondensedEstimator


def threads() -> set[int]:
    """Return the numbers of threads that the libraries report."""
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@dataclass(frozen=True, slots=True)
class Watching(CondensedEstimator):
    """Ordinary least squares that records the number of threads during a fit."""

    seen: list[set[int]]

    def estimate(self, triangles: np.ndarray, samples: int | np.ndarray) -> Estimate:
        self.seen.append(threads())
        return OrdinaryLeastSquares().estimate(triangles, samples)


def test_a_fit_takes_one_thread_and_gives_the_others_back() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        before = threads()
        watching = Watching([])
        fit_regression(arm_data(300, noise=(0.1, 0.1)), None, watching)
        assert watching.seen == [{1}]
        assert threads() == before
        with pytest.raises(IdentificationError):
            fit_regression(arm_data(2), None, watching)
        assert threads() == before
