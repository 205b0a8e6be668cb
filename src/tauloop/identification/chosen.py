"""The estimator and the error model that the options of an identification select."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.errors import InputError
from tauloop.identification.estimation.clustered_errors import ClusteredErrors
from tauloop.identification.estimation.error_models import (
    AutocorrelatedErrors,
    ErrorModel,
    FilteredErrors,
    IndependentErrors,
    decimation_correlation,
)
from tauloop.identification.estimation.errors_in_variables import (
    InstrumentalVariables,
    TotalLeastSquares,
)
from tauloop.identification.estimation.estimators import (
    Estimator,
    KnownNoise,
    OrdinaryLeastSquares,
    WeightedLeastSquares,
)
from tauloop.identification.estimation.robust import IterativelyReweightedLeastSquares
from tauloop.identification.options import ESTIMATORS, IdentificationOptions
from tauloop.identification.preparation.measured_log import MeasuredLog
from tauloop.logs import common_cutoff
from tauloop.logs.signals import HIGHEST_CUTOFF


def chosen_estimator(
    options: IdentificationOptions,
    instruments: Sequence[np.ndarray] = (),
    noise: np.ndarray | None = None,
) -> Estimator:
    """Return the estimator that the options select.

    Args:
        options: options of the identification.
        instruments: instruments of each log. Without them, the estimator "iv" is replaced by
            weighted least squares.
        noise: standard deviation of the outputs' forces, if it is known. It then provides the
            weights.
    """
    stated = options.estimator
    estimator = ESTIMATORS[stated] if isinstance(stated, str) else stated
    if estimator is not None:
        return estimator
    if options.estimator == "iv" and len(instruments):
        return InstrumentalVariables(instruments_of=np.concatenate(instruments))
    if noise is not None:
        return KnownNoise(noise=tuple(noise.tolist()))
    if options.estimator == "tls":
        return TotalLeastSquares(column_error=options.column_error)
    others: dict[object, Estimator] = {
        "ols": OrdinaryLeastSquares(),
        "irls": IterativelyReweightedLeastSquares(),
    }
    return others.get(options.estimator, WeightedLeastSquares())


def chosen_errors(options: IdentificationOptions, logs: Sequence[MeasuredLog]) -> ErrorModel:
    """Return the model of the errors that standard deviations assume.

    Args:
        options: options of the identification.
        logs: the logs; empty for averaged periods.

    Raises:
        InputError: the logs are decimated by different factors, and the errors are assumed to be
            white before the decimation.
    """
    if isinstance(options.errors, ErrorModel):
        return options.errors
    if options.errors == "independent":
        return IndependentErrors()
    if options.errors in ("blocks", "logs"):
        return ClusteredErrors(by=options.errors.removesuffix("s"))
    cutoffs = [common_cutoff(log.log, log.effective_preparation) or HIGHEST_CUTOFF for log in logs]
    different_filters = {
        (log.factor, min(cutoff, 0.5 / log.factor))
        for log, cutoff in zip(logs, cutoffs, strict=True)
    }
    filters = sorted(different_filters)
    if options.errors == "autocorrelated":
        lobes = [0.5 / (factor * cutoff) for factor, cutoff in filters]
        return AutocorrelatedErrors(lobe=max(lobes, default=None))
    if len(filters) > 1:
        passed = " and ".join(
            f"{factor} (low-pass at {cutoff:.3g} of the rate)" for factor, cutoff in filters
        )
        what = f"logs are decimated by {passed}, so their errors have different correlations"
        raise InputError.of(
            "errors",
            what,
            "use the same decimation and cutoff for all logs, or autocorrelated errors",
        )
    return FilteredErrors(
        correlation=decimation_correlation(*filters[0]) if filters else np.ones(1)
    )
