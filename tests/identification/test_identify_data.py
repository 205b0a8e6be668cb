"""Periods, faults, streaming, essential parameters, scan of filters, and identified machines."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest
import xarray as xr
from extras import extra
from identifying import identified, measured, options_of
from planar_arm import NAMES, OUTPUTS, TRUE, UNITS, arm_data, arm_motion, arm_regressor

from tauloop import Model, load
from tauloop.common.errors import IdentificationError, InputError
from tauloop.common.result import Status
from tauloop.formats.library import loads
from tauloop.formats.writing.yaml_writer import dumps
from tauloop.identification import (
    AutocorrelatedErrors,
    OrdinaryLeastSquares,
    RegressionData,
    WeightedLeastSquares,
    fit_regression,
    identify,
    split_data,
)
from tauloop.identification.faults.forces import wrong_signs
from tauloop.identification.faults.recording.signals import clipped_channels
from tauloop.identification.parameters.essential import essential_parameters
from tauloop.identification.parameters.write_back import identified_mechanism
from tauloop.identification.preparation.choice.filter_scan import scan_filters
from tauloop.identification.preparation.periods import average_periods, fourier_derivatives
from tauloop.identification.regression.columns import (
    asymmetric_friction,
    stribeck_friction,
    with_columns,
)
from tauloop.identification.regression.from_log import regression_data
from tauloop.identification.regression.streaming import (
    condense_parts,
    estimate_condensed,
    merge_data,
)
from tauloop.logs import Preparation, Sensors, measure, samples
from tauloop.motion import random_multisine

#: Relative difference of the same sums in another order.
ROUNDING_TOLERANCE = 1e-9


@functools.cache
def machine(name: str) -> Model:
    return Model(load(name))


def arm_log(count: int, noise: float = 0.0, seed: int = 0) -> xr.Dataset:
    """Return a log of the arm's positions and torques, with a common period of 2 s at 200 Hz."""
    t = np.arange(count) / 200.0
    turn = 2.0 * np.pi * t[:, None] * (0.5, 1.0)
    rate = np.pi * np.array([1.0, 2.0])
    q, v, a = np.sin(turn), rate * np.cos(turn), -(rate**2) * np.sin(turn)
    forces = arm_regressor(q, v, a) @ TRUE
    sensors = Sensors(resolution=np.full(2, 1e-9), force_noise=np.full(2, noise))
    rng = np.random.default_rng(seed)
    return measure(t, q, forces, OUTPUTS, ("rad",) * 2, ("N m",) * 2, sensors, rng)


# Periods


def test_average_over_periods_is_the_mean_and_tells_the_noise():
    log = arm_log(400 * 25 + 30, noise=0.3)
    average = average_periods(log, 2.0)
    assert average.periods == 25
    forces = samples(log, "force", OUTPUTS)[: 400 * 25].reshape(25, 400, 2)
    np.testing.assert_allclose(
        samples(average.log, "force", OUTPUTS), forces.mean(axis=0), rtol=ROUNDING_TOLERANCE
    )
    # 9600 spare samples: the standard deviation of a standard deviation is 0.7 %
    assert average.noise["force.shoulder"] == pytest.approx(0.3, rel=0.03)
    exact = samples(arm_log(400), "force", OUTPUTS)
    np.testing.assert_allclose(
        np.std(samples(average.log, "force", OUTPUTS) - exact), 0.3 / 5.0, rtol=0.1
    )


@pytest.mark.parametrize(
    ("period", "text"),
    [(10.0, "fewer than two periods"), (1.0033, "drift by"), (0.0, "fewer than two periods")],
)
def test_periods_that_do_not_suit(period, text):
    with pytest.raises(InputError, match=text):
        average_periods(arm_log(1600), period)


def test_fourier_derivatives_are_exact_for_harmonics_below_the_limit():
    t = np.arange(400) / 200.0
    low, high = 2.0 * np.pi * 3.0, 2.0 * np.pi * 60.0
    x = np.stack([np.sin(low * t) + 0.1 * np.sin(high * t), np.cos(low * t) + 2.0], axis=1)
    position, velocity, acceleration = fourier_derivatives(x, 200.0, 10.0)
    np.testing.assert_allclose(
        position, np.stack([np.sin(low * t), np.cos(low * t) + 2.0], axis=1), atol=1e-12
    )
    np.testing.assert_allclose(
        velocity, low * np.stack([np.cos(low * t), -np.sin(low * t)], axis=1), atol=1e-10
    )
    np.testing.assert_allclose(
        acceleration, -(low**2) * np.stack([np.sin(low * t), np.cos(low * t)], 1), atol=1e-8
    )
    with pytest.raises(InputError, match="between zero and half"):
        fourier_derivatives(x, 200.0, 100.0)


# Faults


def test_clipped_torques_are_named():
    log = arm_log(1600, noise=0.05)
    assert clipped_channels(log) == ()
    limit = 0.8 * float(log["force.shoulder"].max())
    cut = log.copy()
    cut["force.shoulder"] = (
        log["force.shoulder"].clip(max=limit).assign_attrs(log["force.shoulder"].attrs)
    )
    (problem,) = clipped_channels(cut)
    assert problem.where == "force.shoulder"
    assert f"{limit:.6g}" in problem.what


def data_with_friction(signs: tuple[float, float]) -> RegressionData:
    """Return data of the arm with viscous friction, and with signs of the drives' forces."""
    _, q, v, a = arm_motion(1000)
    regressor = np.concatenate([arm_regressor(q, v, a), v[:, :, None] * np.eye(2)], axis=2)
    forces = regressor @ np.append(TRUE, [0.8, 0.5]) * signs
    return RegressionData(
        regressor=regressor,
        forces=forces + 0.05 * np.random.default_rng(2).standard_normal(forces.shape),
        parameters=(*NAMES, "shoulder.viscous", "elbow.viscous"),
        parameter_units=(*UNITS, "N m s/rad", "N m s/rad"),
        outputs=OUTPUTS,
        output_units=("N m",) * 2,
    )


@pytest.mark.parametrize(
    ("signs", "where"),
    [
        ((1.0, 1.0), set()),
        ((1.0, -1.0), {"force.elbow"}),
        ((-1.0, -1.0), {"shoulder.viscous", "elbow.viscous"}),
    ],
    ids=["right", "elbow", "both"],
)
def test_wrong_signs_are_named(signs, where):
    result = wrong_signs(data_with_friction(signs), ("shoulder.viscous", "elbow.viscous"))
    named = {problem.where for problem in result}
    if signs == (1.0, -1.0):  # Friction shows which of the two signs is wrong.
        assert named & {"force.elbow", "force.shoulder"}
    else:
        assert named == where


# Streaming


def test_parts_condense_to_the_same_as_the_whole():
    data = arm_data(5000, noise=(0.3, 0.1))
    whole = condense_parts([data])
    parts = condense_parts(data.part(slice(k, k + 700)) for k in range(0, 5000, 700))
    assert parts.samples == whole.samples == 5000
    for k in range(2):
        np.testing.assert_allclose(
            parts.triangles[k].T @ parts.triangles[k],
            whole.triangles[k].T @ whole.triangles[k],
            rtol=1e-9,
            atol=1e-9,
        )
    base, estimate = estimate_condensed(parts, WeightedLeastSquares())
    result = fit_regression(data, None, WeightedLeastSquares())
    np.testing.assert_allclose(estimate.values, result.values, rtol=ROUNDING_TOLERANCE)
    np.testing.assert_allclose(
        estimate.standard_deviations, result.standard_deviations, rtol=ROUNDING_TOLERANCE
    )
    np.testing.assert_allclose(
        parts.root_mean_squares(base.spread(estimate.values)),
        [judged.rmse for judged in result.training],
        rtol=ROUNDING_TOLERANCE,
    )


def test_logs_are_merged():
    first, second = arm_data(400, noise=(0.1, 0.1)), arm_data(300, noise=(0.1, 0.1), phase=0.7)
    both = merge_data([first, second])
    assert len(both) == 700
    np.testing.assert_allclose(
        both.triangles[0].T @ both.triangles[0],
        sum(part.triangles[0].T @ part.triangles[0] for part in (first, second)),
        rtol=1e-9,
        atol=1e-9,
    )
    other = dataclasses.replace(second, outputs=("a", "b"))
    for together in (merge_data, condense_parts):
        with pytest.raises(IdentificationError, match="outputs differ from those of the first"):
            together([first, other])
        with pytest.raises(IdentificationError, match=r"there are no (logs|samples)"):
            together([])


# Essential parameters


def test_parameters_that_do_nothing_are_left_out():
    rng = np.random.default_rng(1)
    regressor = rng.standard_normal((900, 1, 5))
    truth = np.array([2.0, 0.0, -1.0, 0.001, 0.5])
    forces = regressor @ truth + 0.2 * rng.standard_normal((900, 1))
    data = RegressionData(
        regressor=regressor,
        forces=forces,
        parameters=tuple("abcde"),
        parameter_units=("kg",) * 5,
        outputs=("motor",),
        output_units=("N",),
    )
    training, held_out = split_data(data)
    full = fit_regression(training, held_out, OrdinaryLeastSquares(), errors=AutocorrelatedErrors())
    result = essential_parameters(full, training, held_out)
    assert result.names == ("a", "c", "e")
    assert {removal.parameter for removal in result.removed} == {"b", "d"}
    expected, *_ = np.linalg.lstsq(training.regressor[:, 0, [0, 2, 4]], training.forces[:, 0])
    np.testing.assert_allclose(result.values, expected, rtol=ROUNDING_TOLERANCE)
    assert result.held_out[0].rmse < 1.01 * full.held_out[0].rmse
    with pytest.raises(IdentificationError, match="no base parameter is known to"):
        essential_parameters(full, training, held_out, largest_deviation=1e-6)


# Further columns


def test_asymmetric_and_stribeck_friction_are_found():
    _, _, v, _ = arm_motion(3000)
    data = arm_data(3000)
    columns = np.concatenate(
        [
            _coulomb(v),
            asymmetric_friction(v),
            stribeck_friction(v, np.array([0.2, 0.3])),
        ],
        axis=2,
    )
    truth = np.array([2.0, 1.0, 0.3, -0.2, 0.1, 0.05, 0.8, 0.4])
    forces = (
        data.forces + columns @ truth + 0.01 * np.random.default_rng(1).standard_normal((3000, 2))
    )
    names = [f"{kind}{k}" for kind in ("coulomb", "shift", "tilt", "stribeck") for k in (1, 2)]
    wider = with_columns(dataclasses.replace(data, forces=forces), columns, names, ("N m",) * 8)
    result = fit_regression(wider, None, WeightedLeastSquares())
    by_name = dict(
        zip(
            (parameter.representative for parameter in result.base.base), result.values, strict=True
        )
    )
    np.testing.assert_allclose([by_name[name] for name in names], truth, atol=0.02)
    with pytest.raises(IdentificationError, match="columns: have shape"):
        with_columns(data, columns, names[:3], ("N m",) * 3)
    with pytest.raises(IdentificationError, match="is not positive"):
        stribeck_friction(v, np.zeros(2))


def _coulomb(velocity: np.ndarray) -> np.ndarray:
    return np.sign(velocity)[:, :, None] * np.eye(2)


# Filters


@functools.cache
def five_bar_log() -> xr.Dataset:
    model, rng = machine("five_bar"), np.random.default_rng(5)
    center = model.actuator_position(model.assembly.q)
    motion = random_multisine(
        center, np.full(len(center), 0.3), rng, terms=4, lowest=0.3, highest=2.0
    ).sample(np.arange(0.0, 12.0, 1.0 / 400.0))
    return measured(model, motion, 2e-5, 0.02, rng)


def test_the_filter_is_chosen_by_validation_and_judged_apart():
    preparation = Preparation(cutoff=40.0, trim=100, decimation=10)
    scan = scan_filters(
        machine("five_bar"), five_bar_log(), preparation, orders=(2,), cutoffs=(2.0, 20.0, 190.0)
    )
    assert [trial.cutoff for trial in scan.trials] == [2.0, 20.0, 190.0]
    # 2 Hz cuts the motion, 190 Hz leaves the encoder's steps
    assert scan.trials[scan.chosen].cutoff == 20.0
    errors = [trial.validation_error for trial in scan.trials]
    assert scan.chosen == int(np.argmin(errors))
    data = regression_data(
        machine("five_bar"), five_bar_log(), dataclasses.replace(preparation, order=2, cutoff=20.0)
    )
    again = fit_regression(*split_data(data), WeightedLeastSquares())
    np.testing.assert_allclose(scan.identification.values, again.values, rtol=1e-6, atol=1e-9)
    assert scan.as_dict()["chosen"] == {
        "order": 2,
        "cutoff": 20.0,
        "standstill": preparation.standstill,
    }
    assert np.all(scan.spread >= 0.0)
    with pytest.raises(IdentificationError, match="there is no filter to try"):
        scan_filters(machine("five_bar"), five_bar_log(), Preparation(cutoff=None))


# The identified machine


#: Values of a machine's own parameters that give dynamic parameters are solved for, relative.
SOLVED_TOLERANCE = 1e-10


@pytest.mark.parametrize("name", ["five_bar", "delta", "hexapod"])
def test_an_identified_machine_is_written_and_read_again(name):
    model = machine(name)
    values = 1.1 * model.pi
    again = Model(loads(dumps(identified_mechanism(model, values))))
    assert [p.name for p in again.parameters] == [p.name for p in model.parameters]
    np.testing.assert_allclose(again.pi, values, rtol=SOLVED_TOLERANCE, atol=0.0)
    center = model.actuator_position(model.assembly.q)
    rng = np.random.default_rng(0)
    v, a = rng.standard_normal((2, 1, len(center)))
    position = center[None]
    expected = (model.actuators.regressor(position, v, a) @ values)[0]
    forces = again.actuators.inverse_dynamics(position, v, a).force[0]
    np.testing.assert_allclose(forces, expected, atol=ROUNDING_TOLERANCE * np.abs(expected).max())


def test_values_of_another_machine_are_refused():
    with pytest.raises(InputError, match="finite values, one for each"):
        identified_mechanism(machine("five_bar"), np.ones(3))


# Whole identifications


FILTER: dict[str, Any] = {"cutoff": 40.0, "trim": 100, "decimation": 10}


def test_consistent_parameters_make_a_machine_that_has_them():
    extra("cvxpy")
    options = options_of(**FILTER, estimator="irls", errors="autocorrelated", consistent=True)
    result = identify(machine("five_bar"), five_bar_log(), options)
    assert result.status is Status.OK
    document = result.as_dict()
    assert document["estimator"]["name"] == "IterativelyReweightedLeastSquares"
    assert document["provenance"]["options"]["errors"]["name"] == "AutocorrelatedErrors"
    assert document["findings"] == []
    parameters = document["consistent"]["regressor_parameters"]
    again = Model(result.mechanism())
    assert {
        p.name: value for p, value in zip(again.parameters, again.pi.tolist(), strict=True)
    } == parameters


#: Share of the samples at a limit that are not detected: plateaus of fewer than five samples, which
#: noise causes near the limit, count as peaks.
SHORT_PLATEAU_SHARE = 0.05


@pytest.mark.parametrize(("share", "is_fault"), [(0.7, False), (0.6, True)])
def test_a_force_at_its_limit_is_left_out_or_named_where_too_little_is_left(share, is_fault):
    log = five_bar_log().copy()
    name = "force.motor_2"
    attributes = log[name].attrs
    limit = share * float(log[name].max())
    log[name] = log[name].clip(max=limit).assign_attrs(attributes)
    document = identified(machine("five_bar"), log, **FILTER)
    at_limit = int((log[name] == limit).sum())
    if is_fault:
        assert at_limit > log.sizes["time"] / 2
        assert any(
            item["where"] == name and "it is clipped" in item["what"]
            for item in document["findings"]
        )
    else:
        assert document["findings"] == []
        assert document["channels"]["prepared"][0]["left_out"]["motor_2"] == pytest.approx(
            at_limit, rel=SHORT_PLATEAU_SHARE
        )
        assert any("force.motor_2 is at a limit" in note for note in document["channels"]["notes"])


def test_options_that_cannot_be():
    for options in ({"hold_out": 0.0}, {"errors": "none"}):
        with pytest.raises(InputError) as caught:
            options_of(**options)
        assert [problem.where for problem in caught.value.problems] == [*options]
