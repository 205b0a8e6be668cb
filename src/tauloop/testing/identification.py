"""Check of estimators."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import Problems
from tauloop.identification import AutocorrelatedErrors, Estimator, RegressionData, fit_regression
from tauloop.testing.conformance import ConformanceError, compare

#: Largest relative error of an estimate from exact data. Weights of small residuals amplify
#: rounding errors.
EXACT_TOLERANCE = 1e-8
#: Largest ratio of the standard deviations from the covariance and from the instruments, for
#: independent errors. The two kinds of standard deviations differ because estimators
#: weight samples differently.
MAX_DEVIATION_RATIO = 3.0
#: Largest error of an estimate, in standard deviations.
MAX_ERROR_DEVIATIONS = 6.0


def check_estimator(estimator: Estimator, *, seed: int = 1) -> None:
    """Check an estimator with exact data, and its standard deviations with noisy data.

    The data have two outputs with noise of 1 and 10 percent, three parameters and 400 samples. The
    errors are independent, so that the instruments and the covariance of the estimator must give
    similar standard deviations.

    Args:
        estimator: the estimator, as passed to `fit`.
        seed: seed of regressor and noise.

    Raises:
        ConformanceError: lists all violations.
    """
    problems = Problems()
    rng = np.random.default_rng(seed)
    truth = np.array([2.0, -1.0, 0.5])
    regressor = rng.standard_normal((400, 2, 3))
    noise = rng.standard_normal((400, 2)) * (0.01, 0.1)
    for case, errors in (("exact data", np.zeros_like(noise)), ("noisy data", noise)):
        data = RegressionData(
            regressor=regressor,
            forces=regressor @ truth + errors,
            parameters=("first", "second", "third"),
            parameter_units=("kg",) * 3,
            outputs=("near", "far"),
            output_units=("N",) * 2,
        )
        estimate = fit_regression(data, None, estimator).estimate
        if case == "exact data":
            compare(
                problems,
                case,
                estimate.values,
                truth,
                tolerance=EXACT_TOLERANCE,
                remedy="return the true values without noise",
            )
            continue
        deviations = estimate.standard_deviations
        if not (np.isfinite(deviations).all() and (deviations > 0).all()):
            problems.add(
                "covariance",
                f"gives the standard deviations {deviations}",
                "return a positive definite matrix (r, r)",
            )
        elif (np.abs(estimate.values - truth) > MAX_ERROR_DEVIATIONS * deviations).any():
            worst = np.max(np.abs(estimate.values - truth) / deviations)
            problems.add(
                case,
                f"has an error of {worst:.1f} standard deviations",
                "return the covariance of the estimate",
            )
        try:
            instrument_deviations = fit_regression(
                data, None, estimator, errors=AutocorrelatedErrors(lags=0)
            ).estimate.standard_deviations
        except ValueError as error:
            problems.add(
                "instruments",
                f"cannot be used: {error}",
                "return Z (N, n_out, r), such as the weighted regressor",
            )
        else:
            ratio = np.max(np.abs(np.log(instrument_deviations / deviations)))
            if not ratio < np.log(MAX_DEVIATION_RATIO):
                what = (
                    "give standard deviations that differ from those of the covariance by a factor "
                    f"{np.exp(ratio):.3g}"
                )
                problems.add(
                    "instruments",
                    what,
                    "return Z of the equations Z^T (f - Y p) = 0 that the estimate solves",
                )
        compare(
            problems,
            "covariance",
            estimate.covariance,
            estimate.covariance.T,
            tolerance=1e-12,
            remedy="return a symmetric matrix",
        )
        if estimate.noise.shape != (2,) or estimate.weights.shape != (2,):
            problems.add(
                "noise and weights",
                f"have shapes {estimate.noise.shape}, {estimate.weights.shape}",
                "return arrays (n_out,)",
            )
    ConformanceError.raise_if_any(problems)
