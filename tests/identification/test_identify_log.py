"""From a log to parameters: a five-bar and a Delta with known parameters, and unusable logs."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
import pytest
import xarray as xr
from identifying import measured
from machine_texts import shipped_text

import tauloop as tl
from tauloop import Model, load
from tauloop.common.errors import IdentificationError, InputError, LogError, PoseError
from tauloop.formats.library import loads
from tauloop.identification import (
    Identification,
    RegressionData,
    WeightedLeastSquares,
    fit_regression,
    split_data,
)
from tauloop.identification.regression.from_log import (
    dynamic_parameters,
    held_lengths,
    parameter_ties,
    regression_data,
)
from tauloop.logs import Preparation, read_log, write_log
from tauloop.motion import random_multisine

#: Estimates of about twenty parameters are within this number of standard deviations of the truth.
MAX_DEVIATIONS = 4.5
#: Range of the root mean square of these deviations, which is near one if the standard deviations
#: are correct.
DEVIATIONS_RANGE = (0.5, 1.6)
#: Relative difference of two calculations of the same regression: rounding only.
ROUNDING_TOLERANCE = 1e-9

RATE, DURATION = 400.0, 20.0  # Hz, s
PREPARATION = Preparation(cutoff=40.0, order=4, trim=100, decimation=10)

#: By machine: parameters that differ from its file, stroke of the actuators, noise of their forces.
TRUE_MACHINES: Mapping[str, tuple[Mapping[str, float], float, float]] = {
    "five_bar": (
        {
            "crank_mass": 0.55,
            "link_mass": 0.19,
            "tip_mass": 0.42,
            "crank_inertia": 3.1e-3,
            "rotor_inertia": 9e-4,
            "shoulder_1.friction.viscous": 0.04,
            "shoulder_2.friction.coulomb": 0.11,
        },
        0.30,
        0.02,
    ),
    "delta": (
        {"plate_mass": 0.5, "arm_mass": 0.8, "forearm_mass": 0.07, "arm_inertia": 0.02},
        0.25,
        0.05,
    ),
}


@functools.cache
def model(name: str) -> Model:
    """Return the machine that its file describes, with which the identification starts."""
    return Model(load(name))


@functools.cache
def truth(name: str) -> Model:
    """Return the measured machine."""
    return Model(load(name).with_values(TRUE_MACHINES[name][0]))


@functools.cache
def simulated(name: str, noise: float | None = None, duration: float = DURATION) -> xr.Dataset:
    """Return a log of the true machine on multisines of its actuators."""
    machine, (_, stroke, usual) = truth(name), TRUE_MACHINES[name]
    rng = np.random.default_rng(5)
    center = machine.actuator_position(machine.assembly.q)
    excitation = random_multisine(
        center, np.full(len(center), stroke), rng, terms=4, lowest=0.3, highest=2.0
    )
    motion = excitation.sample(np.arange(0.0, duration, 1.0 / RATE))
    start = machine.forward_kinematics(motion.position).q
    return measured(machine, motion, 1e-7, usual if noise is None else noise, rng, start)


def identified(
    name: str, log: xr.Dataset, parameters: str, output: str = "actuators"
) -> tuple[Identification, RegressionData]:
    ties = parameter_ties(model(name)) if parameters == "file" else None
    data = regression_data(model(name), log, PREPARATION, output=output, ties=ties)
    return fit_regression(*split_data(data, 0.7), WeightedLeastSquares()), data


def true_base_values(machine: Model, result: Identification, parameters: str) -> np.ndarray:
    """Return the base parameters of a machine with known parameters, by the result's regrouping."""
    if parameters == "file":
        p = np.array(
            [machine.mechanism.parameters[leaf].value for leaf in dynamic_parameters(machine)]
        )
    else:
        p = machine.pi
    return np.asarray(result.base.regrouping @ p)


@pytest.mark.parametrize("parameters", ["standard", "file"])
@pytest.mark.parametrize("name", TRUE_MACHINES)
def test_the_true_parameters_are_found_within_their_standard_deviations(tmp_path, name, parameters):
    path = write_log(tmp_path / "log.csv", simulated(name))
    result, data = identified(name, read_log(path), parameters)
    deviations = (
        result.values - true_base_values(truth(name), result, parameters)
    ) / result.standard_deviations
    assert np.abs(deviations).max() < MAX_DEVIATIONS
    assert DEVIATIONS_RANGE[0] < np.sqrt(np.mean(deviations**2)) < DEVIATIONS_RANGE[1]
    # The values of the file differ far from the estimates: there was something to identify.
    described = (
        result.values - true_base_values(model(name), result, parameters)
    ) / result.standard_deviations
    assert np.abs(described).max() > 3 * MAX_DEVIATIONS
    noise = TRUE_MACHINES[name][2]
    for judged in result.held_out:
        # The filter of the decimation removes most of the noise that is not fitted.
        assert judged.rmse < noise
    assert data.outputs == tuple(actuator.name for actuator in model(name).mechanism.actuators)
    assert len(data.time) == len(data) == -(-(int(RATE * DURATION) - 200) // 10)


def test_both_sets_of_parameters_predict_alike():
    """File parameters have more relations; without noise both sets give the true forces."""
    log = simulated("five_bar", 0.0)
    forces = []
    for parameters in ("standard", "file"):
        result, data = identified("five_bar", log, parameters)
        forces.append(result.predict(data.regressor))
        # numerical derivatives
        assert np.abs(forces[-1] - data.forces).max() < 2e-3 * np.abs(data.forces).max()
    assert result.base.rank < len(dynamic_parameters(model("five_bar")))


def test_regressor_and_forces_are_decimated_alike():
    """Regressor times true parameters is the measured force at the times of remaining samples."""
    log = simulated("five_bar", 0.0)
    data = regression_data(model("five_bar"), log, PREPARATION)
    true_force = data.regressor @ truth("five_bar").pi
    inner = slice(3, -3)  # the decimation filter meets the ends of the record
    assert np.abs(true_force - data.forces)[inner].max() < 2e-3 * np.abs(data.forces).max()
    whole = regression_data(model("five_bar"), log, Preparation(cutoff=40.0, order=4, trim=100))
    assert np.array_equal(whole.time[::10], data.time)
    assert data.time[0] == pytest.approx(100 / RATE)


def test_joint_forces_and_actuator_forces_tell_the_same_where_nothing_is_geared():
    by_joint, by_actuator = (
        identified("five_bar", simulated("five_bar"), "file", output)[0]
        for output in ("joints", "actuators")
    )
    assert by_joint.outputs == ("shoulder_1", "shoulder_2")
    assert by_joint.values == pytest.approx(by_actuator.values, rel=ROUNDING_TOLERANCE)


def test_joint_forces_are_those_behind_the_gears():
    """An actuator with ten times the travel of the joint has a tenth of the force in the log."""
    text = shipped_text(
        "five_bar", ("{on: shoulder_1, inertia", "{on: shoulder_1, ratio: 10, inertia")
    )
    geared = Model(loads(text))
    log = simulated("five_bar").copy()
    log["position.motor_1"] = log["position.motor_1"] * 10
    log["force.motor_1"] = log["force.motor_1"] / 10
    for channel, unit in (("position.motor_1", "rad"), ("force.motor_1", "N m")):
        log[channel].attrs.update(
            units=unit, quantity=channel.partition(".")[0], channel="motor_1", source=""
        )
    plain = regression_data(model("five_bar"), simulated("five_bar"), PREPARATION, output="joints")
    behind = regression_data(geared, log, PREPARATION, output="joints")
    assert behind.forces == pytest.approx(
        plain.forces, rel=ROUNDING_TOLERANCE, abs=ROUNDING_TOLERANCE
    )
    rotors = [p.endswith("motor_1.inertia") for p in plain.parameters]
    columns = np.flatnonzero(~np.array(rotors))
    scale = np.abs(plain.regressor).max()
    assert (
        np.abs(behind.regressor - plain.regressor)[:, :, columns].max() < ROUNDING_TOLERANCE * scale
    )
    assert behind.regressor[:, 0, rotors] == pytest.approx(
        100 * plain.regressor[:, 0, rotors], rel=1e-6, abs=1e-6
    )


# Forces of some actuators only


def test_some_forces_tell_less_but_tell_it_right():
    log = simulated("five_bar").drop_vars("force.motor_2")
    data = regression_data(model("five_bar"), log, PREPARATION)
    assert data.measured is not None
    assert list(data.measured) == [True, False]
    result = fit_regression(*split_data(data, 0.7), WeightedLeastSquares())
    both, _ = identified("five_bar", simulated("five_bar"), "standard")
    assert result.base.rank < both.base.rank
    assert [fitted.output for fitted in result.training] == ["motor_1"]
    deviations = (
        result.values - true_base_values(truth("five_bar"), result, "standard")
    ) / result.standard_deviations
    assert np.abs(deviations).max() < MAX_DEVIATIONS
    with pytest.raises(LogError, match=r"force\.motor_2"):
        regression_data(model("five_bar"), log, PREPARATION, output="joints")


# Logs that cannot be used


def renamed(log: xr.Dataset, old: str, new: str) -> xr.Dataset:
    quantity, _, channel = new.partition(".")
    result = log.rename({old: new})
    result[new].attrs.update(quantity=quantity, channel=channel)
    return result


def test_missing_channels_are_all_named():
    log = simulated("delta").drop_vars(
        ["position.leg1.motor", "position.leg3.motor", *(f"force.leg{i}.motor" for i in (1, 2, 3))]
    )
    with pytest.raises(LogError) as caught:
        regression_data(model("delta"), log, PREPARATION)
    assert [p.where for p in caught.value.problems] == [
        "position.leg1.motor",
        "position.leg3.motor",
        "force",
    ]
    assert all(p.remedy for p in caught.value.problems)


def test_a_misspelt_force_is_not_taken_as_absent():
    with pytest.raises(LogError) as caught:
        regression_data(
            model("five_bar"),
            renamed(simulated("five_bar"), "force.motor_2", "force.motr_2"),
            PREPARATION,
        )
    (problem,) = caught.value.problems
    assert problem.where == "force.motr_2"
    assert "motor_2" in problem.remedy


def test_forces_of_something_else_do_no_harm():
    log = renamed(simulated("five_bar"), "force.motor_2", "force.table_sensor_z")
    assert list(regression_data(model("five_bar"), log, PREPARATION).kept) == [0]


def test_an_unknown_output():
    with pytest.raises(InputError, match="actuators or joints"):
        regression_data(model("five_bar"), simulated("five_bar"), PREPARATION, output="legs")


def test_too_few_samples_for_the_rank():
    short = simulated("five_bar").isel(time=slice(0, 3))
    data = regression_data(model("five_bar"), short, Preparation(cutoff=None))
    with pytest.raises(IdentificationError) as caught:
        fit_regression(data, None, WeightedLeastSquares())
    assert any(figure in str(caught.value) for figure in ("3", "6"))
    with pytest.raises(InputError, match="too few"):
        regression_data(model("five_bar"), short, PREPARATION)


def test_a_machine_that_rests_tells_nothing():
    still = simulated("five_bar").copy()
    for name in ("position.motor_1", "position.motor_2"):
        still[name] = still[name] * 0 + float(still[name][0])
        still[name].attrs.update(simulated("five_bar")[name].attrs)
    data = regression_data(model("five_bar"), still, Preparation(cutoff=None))
    with pytest.raises(IdentificationError, match="nothing moves"):
        fit_regression(data, None, WeightedLeastSquares())


def test_a_log_that_leaves_the_workspace_says_where_and_when():
    """Outward arms put the elbows 0.424 m from the plate's joints, but forearms have 0.40 m."""
    machine = Model(load("delta").with_values({"forearm_length": 0.40}))
    log = simulated("delta").isel(time=slice(0, 1000)).copy(deep=True)
    for i in (1, 2, 3):
        log[f"position.leg{i}.motor"].values[:] = np.linspace(0.9, 0.0, 1000)
    with pytest.raises(PoseError) as caught:
        regression_data(machine, log, Preparation(cutoff=None, trim=100))
    message = str(caught.value)
    assert "counted from 0, which is 0.25 s in the log" in message
    assert "of 800" in message
    assert all(problem.remedy for problem in caught.value.problems)


def test_ties_that_are_not_linear_are_refused():
    with pytest.raises(InputError, match="not linear"):
        parameter_ties(model("delta"), ["arm_mass", "arm_length"])


def test_lengths_of_a_template_keep_their_values_and_equal_problems_are_one():
    """The legs' mass centers are at shares of the shortest leg, in 36 dynamic parameters."""
    hexapod = tl.Model(tl.new_machine("mine", "hexapod").inspection.model.mechanism)
    masses = ("plate_mass", "cylinder_mass", "piston_mass")
    assert dynamic_parameters(hexapod) == masses
    assert held_lengths(hexapod) == ("leg_least",)
    assert parameter_ties(hexapod).parameters == masses
    # its square counts as well
    assert dynamic_parameters(hexapod, ("cylinder_mass", "piston_mass")) == ("plate_mass",)
    with pytest.raises(InputError) as caught:
        parameter_ties(hexapod, ("leg_least", *masses))
    assert len(caught.value.problems) == 2
    assert "(cylinder_mass, leg_least) (and 17 others are not)" in str(caught.value)


def test_leaves_that_forces_are_linear_in():
    leaves = dynamic_parameters(model("five_bar"))
    groups = {model("five_bar").mechanism.parameters[name].group for name in leaves}
    assert groups == {"inertia", "friction", "drive"}
    assert "crank_length" not in leaves
    assert parameter_ties(model("five_bar"), ["tip_mass"]).units == ("kg",)
