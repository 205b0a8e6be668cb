"""Checks of what is added to identification: estimators."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import Problems
from tauloop.identification import AutocorrelatedErrors, Estimator, RegressionData, fit
from tauloop.testing.conformance import ConformanceError, compare

#: Exact data leave rounding, which weights by the residual's own size enlarge.
EXACT = 1e-8
#: Deviations of independent errors by the covariance, and by the instruments: estimators weight
#: samples differently.
ALIKE = 3.0
#: An estimate may miss the truth by this many of its own standard deviations.
DEVIATIONS = 6.0


def check_estimator(estimator: Estimator, *, seed: int = 1) -> None:
    """Check an estimator: it finds the truth from exact data, and from noisy ones within its own deviations.

    The data have two outputs with noise of 1 and 10 percent, three parameters and 400 samples. Its
    instruments must give about the deviations of its covariance, for the errors are independent.

    Args:
        estimator: as it is handed to `fit`.
        seed: of regressor and noise.

    Raises:
        ConformanceError: everything that does not hold.
    """
    problems, rng = Problems(), np.random.default_rng(seed)
    truth = np.array([2.0, -1.0, 0.5])
    regressor = rng.standard_normal((400, 2, 3))
    noise = rng.standard_normal((400, 2)) * (0.01, 0.1)
    for what, errors in (("exact data", np.zeros_like(noise)), ("noisy data", noise)):
        data = RegressionData(
            regressor=regressor,
            forces=regressor @ truth + errors,
            parameters=("first", "second", "third"),
            parameter_units=("kg",) * 3,
            outputs=("near", "far"),
            output_units=("N",) * 2,
        )
        estimate = fit(data, None, estimator).estimate
        if what == "exact data":
            compare(
                problems,
                what,
                estimate.values,
                truth,
                tolerance=EXACT,
                remedy="an estimator is right without noise",
            )
            continue
        deviations = estimate.standard_deviations
        if not (np.isfinite(deviations).all() and (deviations > 0).all()):
            problems.add(
                "covariance",
                f"gives the deviations {deviations}",
                "a positive definite matrix (r, r)",
            )
        elif (np.abs(estimate.values - truth) > DEVIATIONS * deviations).any():
            worst = np.max(np.abs(estimate.values - truth) / deviations)
            problems.add(
                what,
                f"an error of {worst:.1f} standard deviations",
                "deviations are those of the estimate",
            )
        try:
            others = fit(
                data, None, estimator, errors=AutocorrelatedErrors(lags=0)
            ).estimate.standard_deviations
        except ValueError as error:
            problems.add(
                "instruments",
                f"cannot be used: {error}",
                "Z (N, n_out, r), such as the weighted regressor",
            )
        else:
            ratio = np.max(np.abs(np.log(others / deviations)))
            if not ratio < np.log(ALIKE):
                what = f"give deviations that differ by a factor {np.exp(ratio):.3g} from those of the covariance"
                problems.add(
                    "instruments",
                    what,
                    "Z of the equations Z^T (f - Y p) = 0 that the values solve",
                )
        compare(
            problems,
            "covariance",
            estimate.covariance,
            estimate.covariance.T,
            tolerance=1e-12,
            remedy="symmetric",
        )
        if estimate.noise.shape != (2,) or estimate.weights.shape != (2,):
            problems.add(
                "noise and weights",
                f"have shapes {estimate.noise.shape}, {estimate.weights.shape}",
                "(n_out,)",
            )
    ConformanceError.raise_if_any(problems)
