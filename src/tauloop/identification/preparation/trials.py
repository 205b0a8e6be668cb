"""Logs prepared in one way after another, fitted and judged alike: what a scan and a choice of preparations share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.identification.estimation.error_models import ErrorModel
from tauloop.identification.estimation.estimators import Estimator
from tauloop.identification.estimation.evaluation import judge
from tauloop.identification.estimation.fitting import fit
from tauloop.identification.estimation.result import Identification
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.from_log import regression_data
from tauloop.identification.regression.streaming import merge
from tauloop.identification.regression.ties import Ties
from tauloop.logs import Preparation, common_cutoff, prepared_signals, with_cutoffs
from tauloop.logs.log import Log
from tauloop.model import Model


class Trials:
    """Fits of logs under several preparations, all by the base parameters of the first."""

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
        """Nothing is fitted yet; the arguments are those of `regression_data` and `fit`.

        With a stride only every so many samples are fitted and judged, without any common filter.
        """
        self._stride = stride
        self._model, self._logs, self._estimator, self._output, self._ties = (
            model,
            logs,
            estimator,
            output,
            ties,
        )
        self._cutoffs: list[float | None] = []
        self.base: BaseParameters | None = None

    def parts(self, preparations: Sequence[Preparation]) -> list[RegressionData]:
        """Return regression data of every log, each with its preparation, without their common filter.

        Errors of several cut-offs then compare: the forces are the same.
        """
        prepared = [
            with_cutoffs(log, how) for log, how in zip(self._logs, preparations, strict=True)
        ]
        if self._stride > 1:
            self._cutoffs = [None] * len(prepared)
            return [self._thinned(log, how) for log, how in zip(self._logs, prepared, strict=True)]
        self._cutoffs = [
            None if (cutoff := common_cutoff(log, how)) is None else cutoff * how.decimation
            for log, how in zip(self._logs, prepared, strict=True)
        ]
        return [
            regression_data(
                self._model, log, how, output=self._output, ties=self._ties, common_filter=False
            )
            for log, how in zip(self._logs, prepared, strict=True)
        ]

    def _thinned(self, log: Log, how: Preparation) -> RegressionData:
        """Return regression data of every so many samples of a log, which is filtered as a whole."""
        signals = prepared_signals(log, how).part(slice(None, None, self._stride))
        return regression_data(
            self._model,
            log,
            how,
            output=self._output,
            ties=self._ties,
            prepared=signals,
            common_filter=False,
        )

    def judged(
        self,
        training: Sequence[RegressionData],
        held_out: Sequence[RegressionData],
        whole: Sequence[RegressionData],
        errors: ErrorModel | None = None,
    ) -> tuple[Identification, np.ndarray]:
        """Fit the first behind its common filter, and judge it on the second without.

        Returns:
            The identification, and its RMSE (n_out,) on the second in % of each output's largest
            force in the third.
        """
        filtered = [
            [part.low_passed(cutoff) for part, cutoff in zip(parts, self._cutoffs, strict=True)]
            for parts in (training, held_out)
        ]
        result = fit(
            merge(filtered[0]), merge(filtered[1]), self._estimator, base=self.base, errors=errors
        )
        self.base = result.base
        largest = np.max([np.abs(part.forces).max(axis=0) for part in whole], axis=0)
        fits = judge("held-out", merge(held_out), result.parameters, largest)
        return result, np.array([row.rmse_percent for row in fits])
