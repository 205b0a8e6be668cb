"""Estimators, regression data, and `fit` from end to end."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, strategies as st
from planar_arm import NAMES, OUTPUTS, TRUE, UNITS, arm_data, arm_motion, arm_regressor, true_base

from tauloop.common.errors import IdentificationError, InputError
from tauloop.common.result import Status
from tauloop.identification import (
    Estimator,
    FilteredErrors,
    IndependentErrors,
    OrdinaryLeastSquares,
    RegressionData,
    Ties,
    WeightedLeastSquares,
    base_parameters,
    fit_regression,
    named_ties,
    split_data,
)
from tauloop.identification.estimation.fitting import CORRELATION_DIAGNOSTIC
from tauloop.identification.regression.data import SAMPLES_AT_ONCE

#: The same least-squares solution by two routes at condition numbers below 100.
SAME_SOLUTION = 1e-9
#: Standard deviations of 400 repetitions have an accuracy of 1/sqrt(800) = 3.5 %; this is 4.5 times
#: as much.
MONTE_CARLO, REPETITIONS = 0.16, 400
BOTH = (OrdinaryLeastSquares(), WeightedLeastSquares())
BASE = [1, 2, 3, 5, 6, 7]  # representatives of the planar arm, by test_base_parameters


def plain_data(regressor: np.ndarray, forces: np.ndarray, **changes: object) -> RegressionData:
    outputs, parameters = regressor.shape[-2:]
    fields = {
        "regressor": regressor,
        "forces": forces,
        "parameters": tuple(f"p{k}" for k in range(parameters)),
        "parameter_units": ("kg",) * parameters,
        "outputs": tuple(f"motor_{k}" for k in range(outputs)),
        "output_units": ("N",) * outputs,
    }
    return RegressionData(**{**fields, **changes})


# The numbers


def test_ordinary_least_squares_is_lstsq():
    data = arm_data(SAMPLES_AT_ONCE * 2 + 100, noise=(0.3, 0.1))
    result = fit_regression(data, None, OrdinaryLeastSquares())
    matrix = data.regressor[:, :, BASE].reshape(-1, 6)
    expected, *_ = np.linalg.lstsq(matrix, data.forces.ravel())
    np.testing.assert_allclose(result.values, expected, rtol=SAME_SOLUTION)
    np.testing.assert_allclose(
        result.values, true_base(), atol=5 * result.standard_deviations.max()
    )


def test_weighted_least_squares_is_repeated_lstsq():
    data = arm_data(1500, noise=(0.5, 0.02))
    result = fit_regression(data, None, WeightedLeastSquares(reweightings=2))
    matrix = data.regressor[:, :, BASE]
    weights = np.ones(2)
    for _ in range(3):
        whole = (weights[:, None] * matrix).reshape(-1, 6)
        values, *_ = np.linalg.lstsq(whole, (weights * data.forces).ravel())
        freedom = len(data) - _leverage(weights[:, None] * matrix)
        used, weights = (
            weights,
            1 / np.sqrt(np.sum((data.forces - matrix @ values) ** 2, axis=0) / freedom),
        )
    np.testing.assert_allclose(result.values, values, rtol=SAME_SOLUTION)
    np.testing.assert_allclose(result.estimate.weights, used, rtol=SAME_SOLUTION)
    np.testing.assert_allclose(result.estimate.noise, 1 / weights, rtol=SAME_SOLUTION)


def _leverage(matrix: np.ndarray) -> np.ndarray:
    """Trace of each output's part of the hat matrix, from the normal equations."""
    inverse = np.linalg.inv(np.einsum("nki,nkj->ij", matrix, matrix))
    return np.einsum("nki,ij,nkj->k", matrix, inverse, matrix)


def test_covariance_of_one_output_is_the_textbook_formula():
    data = arm_data(400, noise=(0.2, 0.2), measured=np.array([True, False]))
    result = fit_regression(data, None, OrdinaryLeastSquares())
    matrix = data.regressor[:, 0, result.base.independent]
    residual = data.forces[:, 0] - matrix @ result.values
    variance = residual @ residual / (len(matrix) - result.base.rank)
    np.testing.assert_allclose(
        result.estimate.covariance, variance * np.linalg.inv(matrix.T @ matrix), rtol=1e-7
    )


@pytest.mark.parametrize("estimator", BOTH)
def test_standard_deviations_against_monte_carlo(estimator):
    """With outputs of very different noise, and few samples, so that the spare equations count too."""
    rng = np.random.default_rng(5)
    results = [
        fit_regression(arm_data(60, noise=(0.5, 0.05), rng=rng), None, estimator)
        for _ in range(REPETITIONS)
    ]
    scatter = np.std([result.values for result in results], axis=0, ddof=1)
    predicted = np.sqrt(np.mean([result.standard_deviations**2 for result in results], axis=0))
    np.testing.assert_allclose(predicted, scatter, rtol=MONTE_CARLO)
    noise = np.sqrt(np.mean([result.estimate.noise**2 for result in results], axis=0))
    np.testing.assert_allclose(noise, [0.5, 0.05], rtol=0.05)
    center = np.mean([result.values for result in results], axis=0)
    assert np.all(np.abs(center - true_base()) < 4.5 * scatter / np.sqrt(REPETITIONS))


def test_weights_make_better_estimates():
    ordinary, weighted = (
        fit_regression(arm_data(500, noise=(1.0, 0.01)), None, estimator) for estimator in BOTH
    )
    assert np.all(weighted.standard_deviations[3:] < 0.5 * ordinary.standard_deviations[3:])
    np.testing.assert_allclose(weighted.estimate.weights * weighted.estimate.noise, 1.0, rtol=0.01)


def test_units_of_an_output_do_not_matter_to_converged_weights():
    data = arm_data(800, noise=(0.5, 0.05))
    scale = np.array([1.0, 1000.0])
    other = dataclasses.replace(
        data, regressor=data.regressor * scale[:, None], forces=data.forces * scale
    )
    first, second = (
        fit_regression(d, None, WeightedLeastSquares(reweightings=60)) for d in (data, other)
    )
    np.testing.assert_allclose(second.values, first.values, rtol=1e-8)
    np.testing.assert_allclose(second.standard_deviations, first.standard_deviations, rtol=1e-6)


@given(st.permutations(range(8)), st.sampled_from(BOTH))
def test_order_of_the_columns_does_not_change_predictions(order, estimator):
    data = arm_data(300, noise=(0.1, 0.1))
    shuffled = dataclasses.replace(
        data,
        regressor=data.regressor[:, :, order],
        parameters=tuple(NAMES[k] for k in order),
        ties=None,
    )
    first, second = (
        fit_regression(d, None, estimator).predict(d.regressor) for d in (data, shuffled)
    )
    np.testing.assert_allclose(second, first, atol=SAME_SOLUTION * np.abs(first).max())


@pytest.mark.parametrize("estimator", BOTH)
def test_data_without_noise_are_recovered(estimator):
    training, held_out = split_data(arm_data(1000))
    result = fit_regression(training, held_out, estimator)
    np.testing.assert_allclose(result.values, true_base(), rtol=1e-10)
    assert max(judged.rmse_percent for judged in result.held_out) < 1e-10
    assert result.status is Status.OK


def test_condensed_data_hold_the_same_products():
    data = arm_data(SAMPLES_AT_ONCE + 10, noise=(0.1, 0.1))
    triangles = data.triangles
    assert triangles.shape == (2, 9, 9)
    for k in range(2):
        whole = np.column_stack([data.regressor[:, k], data.forces[:, k]])
        np.testing.assert_allclose(
            triangles[k].T @ triangles[k], whole.T @ whole, atol=1e-10 * np.sum(whole**2)
        )
    few = data.part(slice(0, 4)).triangles
    assert few.shape == (2, 9, 9)


# What may be said of the data


def test_outputs_that_are_not_measured_are_not_looked_at():
    data = arm_data(400, noise=(0.1, 0.1))
    blind = dataclasses.replace(
        data,
        forces=np.column_stack([data.forces[:, 0], np.full(400, np.nan)]),
        measured=np.array([True, False]),
    )
    alone = dataclasses.replace(
        data,
        regressor=data.regressor[:, :1],
        forces=data.forces[:, :1],
        outputs=OUTPUTS[:1],
        output_units=("N m",),
        measured=None,
    )
    first, second = (
        fit_regression(blind, None, WeightedLeastSquares()),
        fit_regression(alone, None, WeightedLeastSquares()),
    )
    np.testing.assert_allclose(first.values, second.values, rtol=SAME_SOLUTION)
    assert [judged.output for judged in first.training] == ["shoulder"]
    assert first.predict(data.regressor).shape == (400, 2)
    assert first.residual(blind).shape == (400, 1)
    unseen = first.predict(data.regressor)[:, 1] - data.forces[:, 1]
    # its own noise of 0.1 N m, and the errors of parameters from 400 samples
    assert np.sqrt(np.mean(unseen**2)) < 0.3


def test_ties_make_equal_parameters_one_and_take_out_known_ones():
    data = arm_data(400, noise=(0.05, 0.05))
    tied = named_ties(
        NAMES, UNITS, equal={"my": ("link1.my", "link2.my")}, known={"link2.m": 2.0, "link1.m": 3.0}
    )
    assert tied.parameters == ("link1.mx", "my", "link1.I", "link2.mx", "link2.I")
    assert tied.units == ("kg m", "kg m", "kg m^2", "kg m", "kg m^2")
    result = fit_regression(dataclasses.replace(data, ties=tied), None, OrdinaryLeastSquares())
    assert result.base.names == tied.parameters
    columns = np.stack([data.regressor[:, :, [j]].sum(axis=2) for j in (1, 2, 3, 5, 7)], axis=2)
    columns[:, :, 1] += data.regressor[:, :, 6]
    forces = data.forces - 2.0 * data.regressor[:, :, 4]
    expected, *_ = np.linalg.lstsq(columns.reshape(-1, 5), forces.ravel())
    np.testing.assert_allclose(result.values, expected, rtol=SAME_SOLUTION)
    assert result.parameters[NAMES.index("link2.m")] == 2.0
    assert result.parameters[NAMES.index("link1.my")] == result.parameters[NAMES.index("link2.my")]
    np.testing.assert_allclose(
        result.predict(data.regressor),
        (columns @ expected) + 2.0 * data.regressor[:, :, 4],
        rtol=1e-8,
    )


def test_general_ties_are_a_matrix():
    """Slender links of unknown mass: mx = m / 5, I = m / 20."""
    matrix = np.zeros((8, 2))
    matrix[[0, 1, 3], 0] = 1.0, 0.2, 0.05
    matrix[[4, 5, 7], 1] = 1.0, 0.2, 0.05
    data = arm_data(300)
    true = matrix @ np.array([3.0, 2.0])
    data = dataclasses.replace(
        data,
        forces=data.regressor @ true,
        ties=Ties(matrix=matrix, parameters=("m1", "m2"), units=("kg", "kg")),
    )
    result = fit_regression(data, None, WeightedLeastSquares())
    np.testing.assert_allclose(result.values, [3.0, 2.0], rtol=1e-10)
    np.testing.assert_allclose(result.parameters, true, rtol=1e-10)


def test_base_parameters_known_before_are_used():
    rng = np.random.default_rng(0)
    random_states = arm_regressor(*rng.standard_normal((3, 100, 2)))
    base = base_parameters(random_states, NAMES, UNITS)
    data = arm_data(500, noise=(0.1, 0.1))
    first, second = (
        fit_regression(data, None, OrdinaryLeastSquares(), base=base),
        fit_regression(data, None, OrdinaryLeastSquares()),
    )
    assert first.base is base
    np.testing.assert_allclose(first.values, second.values, rtol=SAME_SOLUTION)
    np.testing.assert_allclose(first.condition, second.condition, rtol=1e-8)


def test_data_are_viewed_not_copied_and_not_writable():
    regressor, forces = np.random.default_rng(0).standard_normal((2, 50, 1, 3))
    data = plain_data(regressor, forces[:, :, 0])
    assert np.shares_memory(data.regressor, regressor)
    with pytest.raises(ValueError, match="read-only"):
        data.regressor[0] = 0.0
    regressor[0] = 0.0  # the caller's own array stays the caller's
    first, second = split_data(data, 0.6)
    assert (len(first), len(second)) == (30, 20)
    assert np.shares_memory(second.regressor, regressor)


def locked_elbow(count: int, noise: float = 0.0) -> RegressionData:
    """The arm with its elbow locked, torque of the shoulder measured: one rigid body of three base parameters."""
    _, q, v, a = arm_motion(count)
    regressor = arm_regressor(*(x * np.array([1.0, 0.0]) for x in (q, v, a)))
    forces = regressor @ TRUE + noise * np.random.default_rng(0).standard_normal((count, 2))
    return arm_data(count, regressor=regressor, forces=forces, measured=np.array([True, False]))


def test_diagnostics_says_when_the_held_out_motion_needs_more():
    free = arm_data(600, phase=2.0, measured=np.array([True, False]))
    result = fit_regression(locked_elbow(600, noise=0.05), free, WeightedLeastSquares())
    assert result.base.rank == 3
    assert result.status is Status.DOUBTFUL
    assert any(
        "motion excites parameters that the training motion does not" in line
        for line in result.advice
    )
    assert any("does not predict other motions" in line for line in result.advice)


def test_correlated_residuals_are_reported():
    rng = np.random.default_rng(0)
    data = arm_data(2000)
    # correlation 0.95
    slow = np.convolve(rng.standard_normal(2000 + 19), np.ones(20) / 20, mode="valid")
    result = fit_regression(
        dataclasses.replace(data, forces=data.forces + slow[:, None]), None, OrdinaryLeastSquares()
    )
    (item,) = [item for item in result.diagnostics if item.name == CORRELATION_DIAGNOSTIC]
    correlation = np.mean([judged.residual_correlation for judged in result.training])
    np.testing.assert_allclose(correlation, 0.95, atol=0.03)
    known = FilteredErrors(correlation=1.0 - np.arange(20) / 20)  # a mean of 20 samples
    judged_alike, judged_rightly = (
        fit_regression(
            dataclasses.replace(data, forces=data.forces + slow[:, None]),
            None,
            OrdinaryLeastSquares(),
            errors=errors,
        )
        for errors in (IndependentErrors(), known)
    )
    truth = np.median(judged_rightly.standard_deviations / judged_alike.standard_deviations)
    np.testing.assert_allclose(item.value, truth, rtol=0.25)


# What is refused


def refused(text: str, *arguments: object, **options: object) -> IdentificationError:
    with pytest.raises(IdentificationError, match=text) as caught:
        fit_regression(*arguments, **options)
    assert all(problem.remedy for problem in caught.value.problems)
    return caught.value


def test_too_few_samples():
    data = arm_data(400, noise=(0.1, 0.1))
    refused(
        "3 samples of 2 measured outputs give 6 equations for at least 6",
        data.part(slice(0, 3)),
        None,
        OrdinaryLeastSquares(),
    )
    single = dataclasses.replace(data, measured=np.array([True, False])).part(slice(0, 5))
    refused("5 samples of 1 measured output give 5 equations", single, None, WeightedLeastSquares())
    rng = np.random.default_rng(0)
    regressor = np.zeros((3, 2, 4))
    regressor[:, 0, :3], regressor[:, 1, 3] = np.eye(3), 1.0
    refused(
        "an output has no redundant equations",
        plain_data(regressor, rng.standard_normal((3, 2))),
        None,
        OrdinaryLeastSquares(),
    )


def test_machine_at_rest():
    data = arm_data(300)
    still = dataclasses.replace(
        data, regressor=np.broadcast_to(data.regressor[:1], data.regressor.shape)
    )
    refused("the same in all 300 samples: nothing moves", still, None, OrdinaryLeastSquares())
    refused("the same in all 1 sample", data.part(slice(0, 1)), None, OrdinaryLeastSquares())


def test_zero_rank():
    regressor = np.zeros((50, 2, 3))
    regressor[:, 0] = np.random.default_rng(0).standard_normal((50, 3))
    tied = named_ties(("p0", "p1", "p2"), ("kg",) * 3, known={"p0": 1.0, "p1": 1.0})
    silent = Ties(matrix=0.0 * tied.matrix, parameters=tied.parameters, units=tied.units)
    data = plain_data(regressor, np.ones((50, 2)), ties=silent)
    refused("zero in all columns", data, None, OrdinaryLeastSquares())


def test_forces_that_have_nothing_to_do_with_the_motion():
    data = arm_data(2000)
    rng = np.random.default_rng(4)
    noise = np.where(np.arange(2000)[:, None] % 2, 1.0, -1.0) * (
        5.0 + 0.1 * rng.standard_normal((2000, 2))
    )
    error = refused(
        "no base parameter is determined: the best, ",
        dataclasses.replace(data, forces=noise),
        None,
        OrdinaryLeastSquares(),
    )
    assert "condition number" in str(error)


def test_output_without_force():
    data = arm_data(300)
    forces = data.forces.copy()
    forces[:, 1] = 0.0
    refused(
        r"measured force is zero in all 300 samples: elbow \[N m\]",
        dataclasses.replace(data, forces=forces),
        None,
        BOTH[0],
    )


def test_held_out_data_that_are_no_test():
    data = arm_data(1000, noise=(0.1, 0.1))
    training, held_out = split_data(data)
    refused(
        "300 of 300 samples are copies of training samples", data, held_out, OrdinaryLeastSquares()
    )
    refused("700 of 700 samples are copies", training, training, OrdinaryLeastSquares())
    refused(
        "200 of 500 samples are copies",
        training,
        data.part(slice(500, None)),
        OrdinaryLeastSquares(),
    )
    renamed = dataclasses.replace(held_out, outputs=("a", "b"), measured=np.array([True, False]))
    assert (
        len(refused("held-out outputs: differ", training, renamed, OrdinaryLeastSquares()).problems)
        == 2
    )


def test_given_base_parameters_that_the_data_do_not_excite():
    base = base_parameters(arm_data().regressor, NAMES, UNITS)
    error = refused(
        "do not determine all 6 base", locked_elbow(400), None, OrdinaryLeastSquares(), base=base
    )
    assert "link2" in str(error)
    other = base_parameters(arm_data().regressor, tuple("abcdefgh"), UNITS)
    refused(
        "the 8 parameters differ from the 8 unknowns",
        arm_data(300),
        None,
        OrdinaryLeastSquares(),
        base=other,
    )


def test_all_faults_of_the_data_are_told_at_once():
    with pytest.raises(IdentificationError) as caught:
        plain_data(
            np.ones((10, 2, 3)),
            np.ones((9, 2)),
            parameters=("a", "a", "b", "c"),
            output_units=("N",),
            measured=np.array([1, 0]),
            time=np.arange(8.0),
        )
    where = [problem.where for problem in caught.value.problems]
    assert where == ["parameters", "parameters", "output_units", "forces", "time", "measured"]
    assert all(problem.remedy for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"regressor": np.ones((10, 3))}, r"regressor: has shape \(10, 3\)"),
        ({"measured": np.array([False, False])}, "no output is measured"),
        (
            {"time": np.array([0.0, 1.0, 1.0, *range(3, 10)])},
            "does not increase at sample 2: 1 s, then 1 s",
        ),
        ({"parameters": "abc"}, "parameters: is a single text"),
    ],
)
def test_faulty_data(change, text):
    rng = np.random.default_rng(0)
    with pytest.raises(IdentificationError, match=text):
        plain_data(
            **{
                "regressor": rng.standard_normal((10, 2, 3)),
                "forces": rng.standard_normal((10, 2)),
                **change,
            }
        )


def test_numbers_that_are_not_finite_are_located():
    rng = np.random.default_rng(0)
    regressor, forces = rng.standard_normal((20, 2, 3)), rng.standard_normal((20, 2))
    regressor[7, 1, 2] = regressor[9, 0, 0] = np.nan
    forces[3, 1] = -np.inf
    with pytest.raises(IdentificationError) as caught:
        plain_data(regressor, forces)
    first, second = map(str, caught.value.problems)
    assert "2 of 120 numbers are not finite, the first at sample 7, motor_1, p2" in first
    assert "1 of 40 numbers are not finite, the first at sample 3, motor_1" in second


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"known": {"mass": 1.0}}, "unknown parameter 'mass'"),
        (
            {"known": {"link2.m": 1.0}, "equal": {"m": ("link1.m", "link2.m")}},
            "'link2.m' is used 2 times",
        ),
        ({"equal": {"x": ("link1.m", "link1.I")}}, "different units: kg, kg m\\^2"),
        ({"equal": {"x": ()}}, "ties.x: has no members"),
        ({"known": dict.fromkeys(NAMES, 1.0)}, "ties.matrix: has shape"),
        ({"known": {"link1.m": float("nan")}}, "not finite"),
    ],
)
def test_faulty_ties(arguments, text):
    with pytest.raises(IdentificationError, match=text):
        named_ties(NAMES, UNITS, **arguments)


def test_ties_of_another_regressor():
    tied = named_ties(NAMES[:4], UNITS[:4], known={"link1.m": 1.0})
    with pytest.raises(IdentificationError, match=r"ties.matrix: has shape \(4, 3\)"):
        arm_data(100, ties=tied)


@pytest.mark.parametrize("share", [0.0, 1.0, 1e-9, -3.0, float("nan")])
def test_splits_that_leave_nothing(share):
    with pytest.raises(IdentificationError, match="leaves one part empty"):
        split_data(arm_data(100), share)


@pytest.mark.parametrize("reweightings", [0, -1, 2.5, 10**6])
def test_wrong_estimator_options(reweightings):
    with pytest.raises(IdentificationError, match="whole number from 1 to 1000"):
        WeightedLeastSquares(reweightings=reweightings)


def test_estimator_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Estimator()


def test_prediction_refuses_other_regressors():
    result = fit_regression(arm_data(300, noise=(0.1, 0.1)), None, OrdinaryLeastSquares())
    with pytest.raises(InputError, match=r"has shape \(10, 2, 7\)"):
        result.predict(np.ones((10, 2, 7)))
    regressor = np.ones((10, 2, 8))
    regressor[4, 0, 1] = np.nan
    with pytest.raises(InputError, match="not finite, first at sample 4"):
        result.predict(regressor)
