"""Trials of preparations, for the scan of filters and for the choice of preparations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.identification.estimation.error_models import ErrorModel
from tauloop.identification.estimation.estimators import Estimator
from tauloop.identification.estimation.evaluation import judge
from tauloop.identification.estimation.fitting import fit_regression
from tauloop.identification.estimation.result import Identification
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.from_log import regression_data
from tauloop.identification.regression.streaming import merge_data
from tauloop.identification.regression.ties import Ties
from tauloop.logs import Preparation, common_cutoff, prepared_signals, with_cutoffs
from tauloop.logs.log import Log
from tauloop.model import Model


class Trials:
    """Fits of logs under several preparations, all with the base parameters of the first fit."""

    def __init__(
        self,
        model: Model,
        logs: Sequence[Log],
        estimator: Estimator,
        output: str,
        ties: Ties | None,
        *,
        stride: int = 1,
    ) -> None:
        """Store the arguments of `regression_data` and `fit_regression`; nothing is fitted yet.

        If the stride n is larger than 1, only every n-th sample is fitted and evaluated, without a
        common filter.
        """
        self._stride = stride
        self._model = model
        self._logs = logs
        self._estimator = estimator
        self._output = output
        self._ties = ties
        self._cutoffs: list[float | None] = []
        self.base: BaseParameters | None = None

    def data(self, preparations: Sequence[Preparation]) -> list[RegressionData]:
        """Return the regression data of every log, each with its preparation.

        The common filter of forces and regressor is not applied. The forces are then the same for
        all cutoffs, so that the errors can be compared.
        """
        self._cutoffs = []
        data = []
        for log, preparation in zip(self._logs, preparations, strict=True):
            complete = with_cutoffs(log, preparation)
            if self._stride > 1:
                self._cutoffs.append(None)
                data.append(self._subsampled(log, complete))
            else:
                self._cutoffs.append(decimated_cutoff(log, complete))
                data.append(self._unfiltered(log, complete))
        return data

    def _unfiltered(self, log: Log, preparation: Preparation) -> RegressionData:
        """Return the regression data of a log without the common filter."""
        return regression_data(
            self._model,
            log,
            preparation,
            output=self._output,
            ties=self._ties,
            common_filter=False,
        )

    def _subsampled(self, log: Log, preparation: Preparation) -> RegressionData:
        """Return the regression data of every n-th sample of a log, filtered as a whole."""
        signals = prepared_signals(log, preparation).part(slice(None, None, self._stride))
        return regression_data(
            self._model,
            log,
            preparation,
            output=self._output,
            ties=self._ties,
            prepared=signals,
            common_filter=False,
        )

    def fit_and_evaluate(
        self,
        training: Sequence[RegressionData],
        held_out: Sequence[RegressionData],
        whole: Sequence[RegressionData],
        errors: ErrorModel | None = None,
    ) -> tuple[Identification, np.ndarray]:
        """Fit the training data with the common filter, and evaluate on held-out data without it.

        Call `data` first: it sets the common filter of each log.

        Args:
            training: data to fit.
            held_out: data for the evaluation.
            whole: data with the largest force of each output, which is 100 % of its error.
            errors: error model of the standard deviations, as for `fit_regression`.

        Returns:
            The identification, and its RMSE (n_out,) on the held-out data, in % of each output's
            largest force in the whole data.
        """
        result = fit_regression(
            merge_data(self._filtered(training)),
            merge_data(self._filtered(held_out)),
            self._estimator,
            base=self.base,
            errors=errors,
        )
        self.base = result.base
        largest = np.max([np.abs(part.forces).max(axis=0) for part in whole], axis=0)
        fits = judge("held-out", merge_data(held_out), result.parameters, largest)
        return result, np.array([row.rmse_percent for row in fits])

    def _filtered(self, data: Sequence[RegressionData]) -> list[RegressionData]:
        """Return the data of each log after its common filter."""
        return [entry.low_passed(cutoff) for entry, cutoff in zip(data, self._cutoffs, strict=True)]


def decimated_cutoff(log: Log, preparation: Preparation) -> float | None:
    """Return the common cutoff as a fraction of the decimated rate; None without a filter."""
    cutoff = common_cutoff(log, preparation)
    return None if cutoff is None else cutoff * preparation.decimation
