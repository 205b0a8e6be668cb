"""Standard deviations, coverage, robust and noise-in-the-regressor estimators, whiteness."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np
import pytest
from planar_arm import NAMES, TRUE, UNITS, arm_data, arm_motion, arm_regressor, true_base
from scipy.optimize import least_squares

from tauloop.common.errors import IdentificationError, InputError
from tauloop.identification import (
    AutocorrelatedErrors,
    FilteredErrors,
    IndependentErrors,
    InstrumentalVariables,
    IterativelyReweightedLeastSquares,
    OrdinaryLeastSquares,
    RegressionData,
    TotalLeastSquares,
    WeightedLeastSquares,
    base_parameters,
    decimation_correlation,
    fit_regression,
    whiteness,
)
from tauloop.identification.estimation.error_models import EstimatingEquations
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.logs import decimate

#: Runs of the coverage study, and what 95 % intervals must cover when the model of the errors is
#: right. With six parameters a run the standard deviation of the pooled coverage is about 0.3 %.
RUNS, COVERED = 2000, (0.93, 0.97)
#: 300 samples tell little of an unknown correlation, so intervals are somewhat short.
FEWER_RUNS, COVERED_WITHOUT_KNOWING = 600, (0.89, 0.97)
#: Of the normal distribution: 95 % lie within this many standard deviations.
QUANTILE = 1.959963984540054
#: The same sums in another order.
SAME = 1e-9


def arm_base() -> BaseParameters:
    return base_parameters(arm_data().regressor, NAMES, UNITS)


# Coverage


FACTOR, COUNT, MEAN = 5, 1500, 12


@functools.cache
def decimated_arm() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The arm's base regressor after decimation; the matrix from white noise to that of the torques; its correlation.

    The sensor's noise is a running mean of 12 samples, then decimated.
    """
    _, q, v, a = arm_motion(COUNT)
    regressor = decimate(arm_regressor(q, v, a)[:, :, arm_base().independent], FACTOR)
    running = sum(np.eye(COUNT, COUNT + MEAN - 1, k) for k in range(MEAN)) / MEAN
    matrix = decimate(running, FACTOR)
    middle = len(matrix) // 2
    correlation = matrix[middle : middle + 40] @ matrix[middle]
    return regressor, matrix, correlation / correlation[0]


MODELS = {
    "known filter": lambda correlation: FilteredErrors(correlation=correlation),
    "autocorrelated": lambda correlation: AutocorrelatedErrors(),
    "independent": lambda correlation: IndependentErrors(),
}


def coverage(name: str, runs: int) -> float:
    """Share of 95 % intervals, of all parameters and runs together, that hold the true value."""
    regressor, matrix, correlation = decimated_arm()
    flat, errors = regressor.reshape(-1, 6), MODELS[name](correlation)
    white = np.random.default_rng(12).standard_normal((matrix.shape[1], 2 * runs))
    noise = (
        ((matrix @ white) * np.tile([2.0, 0.2], runs))
        .reshape(len(matrix), runs, 2)
        .transpose(0, 2, 1)
    )
    deviations = np.linalg.pinv(flat) @ noise.reshape(-1, runs)  # estimates less the true values
    residuals = noise - (flat @ deviations).reshape(noise.shape)
    inside = []
    for run in range(runs):
        case = EstimatingEquations(
            instruments=regressor, regressor=regressor, residual=residuals[:, :, run]
        )
        inside.append(
            np.abs(deviations[:, run]) < QUANTILE * np.sqrt(np.diag(errors.covariance(case)))
        )
    return float(np.mean(inside))


def test_known_filter_covers_95_percent():
    assert COVERED[0] <= coverage("known filter", RUNS) <= COVERED[1]


def test_unknown_correlation_covers_nearly_95_percent_and_independence_far_less():
    low, high = COVERED_WITHOUT_KNOWING
    assert low <= coverage("autocorrelated", FEWER_RUNS) <= high
    assert coverage("independent", FEWER_RUNS) < 0.85


def equations(count: int = 120) -> EstimatingEquations:
    rng = np.random.default_rng(6)
    return EstimatingEquations(
        instruments=rng.standard_normal((count, 2, 3)),
        regressor=rng.standard_normal((count, 2, 3)) + 1.0,
        residual=rng.standard_normal((count, 2)),
    )


def test_filtered_errors_are_the_whole_covariance_matrix_of_the_samples():
    case, correlation = equations(), np.array([1.0, 0.6, 0.2])
    whole = sum(
        c * (np.eye(120, k=k) + (np.eye(120, k=-k) if k else 0)) for k, c in enumerate(correlation)
    )
    bread = np.linalg.inv(np.einsum("nkr,nks->rs", case.instruments, case.regressor))
    total = np.zeros((3, 3))
    for k in range(2):
        Z, Y = case.instruments[:, k], case.regressor[:, k]
        freedom = 120 - np.trace(bread @ Z.T @ whole @ Y)
        total += np.sum(case.residual[:, k] ** 2) / freedom * (Z.T @ whole @ Z)
    np.testing.assert_allclose(
        FilteredErrors(correlation=correlation).covariance(case), bread @ total @ bread.T, rtol=SAME
    )


@pytest.mark.parametrize(
    "logs", [np.zeros(120), np.repeat([0, 1, 2], [50, 1, 69])], ids=["one log", "three logs"]
)
def test_lags_are_those_of_newey_and_west(logs):
    case = dataclasses.replace(equations(), logs=logs)
    bread = np.linalg.inv(np.einsum("nkr,nks->rs", case.instruments, case.regressor))
    scores = np.einsum("nkr,nk->nr", case.instruments, case.residual) @ bread.T
    total = sum(
        max(0.0, 1.0 - abs(n - m) / 4.0) * np.outer(scores[n], scores[m])
        for n, m in itertools.product(range(120), repeat=2)
        if logs[n] == logs[m]
    )
    followed = np.sum(np.diag(total) / np.sum(scores**2, axis=0)) / 2
    expected = total * 120 / (120 - followed)
    np.testing.assert_allclose(AutocorrelatedErrors(lags=3).covariance(case), expected, rtol=SAME)


def test_variances_of_few_slow_samples_are_positive():
    """A kernel that ended at half of the samples, where it was 0.3, made one of them negative in each fifth log."""
    time = np.arange(99) / 99.0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        waves = 2.0 * np.pi * rng.uniform(0.2, 4.0, size=4) * time[:, None] + rng.uniform(
            0.0, 6.0, size=4
        )
        regressor, error = np.sin(waves[:, :3]), np.sin(waves[:, 3]) + 0.1 * rng.normal(size=99)
        residual = error - regressor @ np.linalg.lstsq(regressor, error)[0]
        columns = regressor[:, None, :]
        equations = EstimatingEquations(
            instruments=columns, regressor=columns, residual=residual[:, None]
        )
        assert (np.diag(AutocorrelatedErrors().covariance(equations)) > 0.0).all()


def test_independent_errors_are_those_of_least_squares():
    data = arm_data(500, noise=(0.5, 0.05))
    for estimator in (OrdinaryLeastSquares(), WeightedLeastSquares()):
        plain, explicit = (
            fit_regression(data, None, estimator, errors=errors)
            for errors in (None, IndependentErrors())
        )
        np.testing.assert_allclose(
            explicit.standard_deviations, plain.standard_deviations, rtol=1e-8
        )


def test_correlation_after_decimation_is_that_of_decimated_noise():
    noise = decimate(np.random.default_rng(2).standard_normal((40000, 20)), 4)
    expected = [
        np.mean(noise[lag:] * noise[: len(noise) - lag]) / np.mean(noise**2) for lag in range(6)
    ]
    # 200 000 samples: 0.0022
    np.testing.assert_allclose(decimation_correlation(4)[:6], expected, atol=0.01)
    np.testing.assert_array_equal(decimation_correlation(1), [1.0])


# Outliers


def spoilt(rng: np.random.Generator) -> RegressionData:
    data = arm_data(400, noise=(0.1, 0.1), rng=rng)
    hit = rng.random(data.forces.shape) < 0.05
    return dataclasses.replace(data, forces=data.forces + 8.0 * hit)


def test_huber_is_that_of_scipy():
    data = spoilt(np.random.default_rng(3))
    estimator = IterativelyReweightedLeastSquares()
    result = fit_regression(data, None, estimator)
    matrix, noise = data.regressor[:, :, result.base.independent], result.estimate.noise
    solution = least_squares(
        lambda p: ((data.forces - matrix @ p) / noise / estimator.threshold).ravel(),
        np.zeros(6),
        loss="huber",
        xtol=1e-14,
        ftol=1e-14,
        gtol=1e-12,
    )
    np.testing.assert_allclose(result.values, solution.x, atol=1e-5 * np.abs(solution.x).max())


def test_outliers_hardly_move_robust_estimates():
    data = spoilt(np.random.default_rng(3))
    ordinary, robust = (
        fit_regression(data, None, e)
        for e in (WeightedLeastSquares(), IterativelyReweightedLeastSquares())
    )
    worst = [np.abs(result.values - true_base()).max() for result in (ordinary, robust)]
    assert worst[1] < 0.2 * worst[0]
    np.testing.assert_allclose(robust.estimate.noise, 0.1, rtol=0.25)


def test_standard_deviations_of_robust_estimates_against_monte_carlo():
    rng = np.random.default_rng(8)
    base = arm_base()
    results = [
        fit_regression(spoilt(rng), None, IterativelyReweightedLeastSquares(), base=base)
        for _ in range(60)
    ]
    scatter = np.std([result.values for result in results], axis=0, ddof=1)
    predicted = np.sqrt(np.mean([result.standard_deviations**2 for result in results], axis=0))
    np.testing.assert_allclose(predicted, scatter, rtol=0.3)  # 60 runs: 9 %, and three times that


# Noise in the regressor


def noisy_arm(rng: np.random.Generator, level: float = 0.4) -> tuple[RegressionData, np.ndarray]:
    """The arm with noise of the acceleration, which differentiation makes largest; and its exact regressor."""
    _, q, v, a = arm_motion(400)
    exact = arm_regressor(q, v, a)
    measured = arm_regressor(q, v, a + level * a.std() * rng.standard_normal(a.shape))
    forces = exact @ TRUE + 0.05 * rng.standard_normal((400, 2))
    return arm_data(400, regressor=measured, forces=forces), exact


def test_instrumental_variables_have_no_bias_where_least_squares_have():
    rng, base = np.random.default_rng(4), arm_base()
    biased, free, sizes = [], [], []
    for _ in range(40):
        data, exact = noisy_arm(rng)
        biased.append(fit_regression(data, None, WeightedLeastSquares(), base=base).values)
        result = fit_regression(data, None, InstrumentalVariables(instruments_of=exact), base=base)
        free.append(result.values)
        sizes.append(result.standard_deviations)
    scatter = np.std(free, axis=0) / np.sqrt(40)
    assert np.abs(np.mean(biased, axis=0) - true_base())[2] > 10 * scatter[2]
    assert np.all(np.abs(np.mean(free, axis=0) - true_base()) < 4.5 * scatter)
    np.testing.assert_allclose(
        np.sqrt(np.mean(np.square(sizes), axis=0)), np.std(free, axis=0), rtol=0.35
    )


def test_instruments_equal_to_the_regressor_are_least_squares():
    data = arm_data(400, noise=(0.2, 0.02))
    weighted, same = (
        fit_regression(data, None, estimator, errors=IndependentErrors())
        for estimator in (
            WeightedLeastSquares(),
            InstrumentalVariables(instruments_of=data.regressor, reweightings=4),
        )
    )
    # the weights are one step further
    np.testing.assert_allclose(same.values, weighted.values, rtol=1e-4)
    np.testing.assert_allclose(same.standard_deviations, weighted.standard_deviations, rtol=1e-2)


def test_simulated_instruments_are_repeated_until_the_parameters_rest():
    data, exact = noisy_arm(np.random.default_rng(4), 0.02)
    seen = []

    def simulate(parameters: np.ndarray) -> np.ndarray:
        seen.append(parameters)
        return exact

    result = fit_regression(data, None, InstrumentalVariables(instruments_of=simulate))
    ideal = fit_regression(data, None, InstrumentalVariables(instruments_of=exact))
    np.testing.assert_allclose(result.values, ideal.values, rtol=1e-3)
    assert len(seen) >= 2
    assert all(parameters.shape == (8,) for parameters in seen)
    np.testing.assert_allclose(exact @ seen[-1], exact @ TRUE, atol=0.5)
    with pytest.raises(IdentificationError, match="do not converge in 1 simulation"):
        fit_regression(
            data,
            None,
            InstrumentalVariables(instruments_of=simulate, repetitions=1, tolerance=1e-12),
        )


@pytest.mark.parametrize("instruments", [np.ones((3, 2, 8)), np.zeros((400, 2, 8))])
def test_instruments_that_are_of_no_use(instruments):
    data, _ = noisy_arm(np.random.default_rng(4))
    with pytest.raises(IdentificationError, match="instruments"):
        fit_regression(data, None, InstrumentalVariables(instruments_of=instruments))


def columns_with_noise(rng: np.random.Generator, error: float) -> RegressionData:
    exact = rng.standard_normal((500, 1, 3)) * (1.0, 10.0, 0.1)
    forces = exact @ COLUMNS
    sizes = np.sqrt(np.mean(exact**2, axis=(0, 1)))
    noise = error * sizes * rng.standard_normal(exact.shape)
    return RegressionData(
        regressor=exact + noise,
        forces=forces + FORCE_NOISE * rng.standard_normal(forces.shape),
        parameters=("a", "b", "c"),
        parameter_units=("kg",) * 3,
        outputs=("motor",),
        output_units=("N",),
    )


COLUMNS, FORCE_NOISE = np.array([2.0, -0.3, 12.0]), 0.2


def test_total_least_squares_is_the_svd_of_all_samples():
    data = columns_with_noise(np.random.default_rng(1), 0.05)
    result = fit_regression(data, None, TotalLeastSquares(column_error=0.05))
    weight = fit_regression(data, None, WeightedLeastSquares()).estimate.weights[0]
    Y, f = weight * data.regressor[:, 0], weight * data.forces
    errors = 0.05 * np.sqrt(np.mean(Y**2, axis=0))
    last = np.linalg.svd(np.hstack([Y / errors, f]))[2][-1]
    np.testing.assert_allclose(result.values, -last[:3] / last[3] / errors, rtol=1e-8)
    assert [item.is_good for item in result.diagnostics if "normalized product" in item.name] == [
        True
    ]


def test_total_least_squares_with_the_right_ratio_has_less_bias():
    """The residual of least squares holds the columns' noise too: the ratio to pass is that to the whole of it."""
    rng, error = np.random.default_rng(5), 0.1
    whole = np.sqrt(FORCE_NOISE**2 + np.sum((error * COLUMNS * (1.0, 10.0, 0.1)) ** 2))
    # errors are counted in units of the residual of least squares
    share = error * whole / FORCE_NOISE
    results = np.array(
        [
            [
                fit_regression(data, None, e).values
                for e in (OrdinaryLeastSquares(), TotalLeastSquares(column_error=share))
            ]
            for data in (columns_with_noise(rng, error) for _ in range(40))
        ]
    )
    bias = np.abs(results.mean(axis=0) - COLUMNS) / np.abs(COLUMNS)
    scatter = results[:, 1].std(axis=0) / np.sqrt(40) / np.abs(COLUMNS)
    assert np.all(bias[0] > 0.005)
    assert np.all(bias[1] < np.maximum(0.3 * bias[0], 5.0 * scatter))


def test_column_errors_that_hide_everything():
    with pytest.raises(IdentificationError, match="above 0 and below 1"):
        TotalLeastSquares(column_error=1.0)


# Whiteness


def test_whiteness_of_white_and_of_coloured_noise():
    rng = np.random.default_rng(0)
    chances = np.array([whiteness(rng.standard_normal(400)).probability for _ in range(400)])
    assert 0.02 < np.mean(chances < 0.05) < 0.09  # 5 %, with a standard deviation of 1.1 %
    colored = np.convolve(rng.standard_normal(400), [1.0, 0.5], mode="valid")
    result = whiteness(colored)
    assert result.probability < 1e-6
    assert result.correlations[0] == pytest.approx(0.4, abs=0.15)
    assert whiteness(np.ones(100)).probability is None
    with pytest.raises(InputError, match="too few for a whiteness test"):
        whiteness(np.ones(4))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: AutocorrelatedErrors(lags=-1), "from 0 on"),
        (lambda: FilteredErrors(correlation=np.array([0.5, 1.0])), "begins with 1"),
        (lambda: IterativelyReweightedLeastSquares(threshold=0.0), "give a positive number"),
    ],
    ids=["lags", "correlation", "threshold"],
)
def test_options_out_of_range(make, text):
    with pytest.raises(IdentificationError, match=text):
        make()
