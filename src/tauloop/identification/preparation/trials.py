"""Logs prepared in one way after another, fitted and judged alike: what a scan and a choice of preparations share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.identification.estimation.error_models import ErrorModel
from tauloop.identification.estimation.estimators import Estimator
from tauloop.identification.estimation.fitting import fit
from tauloop.identification.estimation.result import Identification
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.from_log import regression_data
from tauloop.identification.regression.streaming import merge
from tauloop.identification.regression.ties import Ties
from tauloop.logs import Preparation
from tauloop.logs.channels import Log
from tauloop.model import Model


class Trials:
    """Fits of logs under several preparations, all by the base parameters of the first."""

    def __init__(self, model: Model, logs: Sequence[Log], estimator: Estimator, output: str, ties: Ties | None) -> None:
        """Nothing is fitted yet; the arguments are those of `regression_data` and `fit`."""
        self._model, self._logs, self._estimator, self._output, self._ties = model, logs, estimator, output, ties
        self.base: BaseParameters | None = None

    def parts(self, preparations: Sequence[Preparation]) -> list[RegressionData]:
        """Regression data of every log, each with its preparation."""
        return [
            regression_data(self._model, log, preparation, output=self._output, ties=self._ties)
            for log, preparation in zip(self._logs, preparations, strict=True)
        ]

    def judged(
        self,
        training: Sequence[RegressionData],
        held_out: Sequence[RegressionData],
        whole: Sequence[RegressionData],
        errors: ErrorModel | None = None,
    ) -> tuple[Identification, np.ndarray]:
        """Fit to the first, and its RMSE (n_out,) on the second in % of each output's largest force in the third."""
        result = fit(merge(training), merge(held_out), self._estimator, base=self.base, errors=errors)
        self.base = result.base
        largest = np.max([np.abs(part.forces).max(axis=0) for part in whole], axis=0)
        scales = dict(zip(whole[0].outputs, largest, strict=True))
        return result, np.array([100.0 * row.rmse / scales[row.output] for row in result.held_out])
