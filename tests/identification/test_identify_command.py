"""Identification of an arm with a parallelogram: filters, essential parameters, instruments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from identifying import identified, measured, options_of, tables_of
from machine_texts import COUPLED_ELBOW, shipped_text
from tabulated import assert_tabulated

from tauloop import Model, load
from tauloop.common.errors import IdentificationError, InputError
from tauloop.formats.library import loads
from tauloop.identification import (
    InstrumentalVariables,
    MachineIdentification,
    RegressionData,
    WeightedLeastSquares,
    fit_regression,
    identify,
    motion_regressor,
    parameter_ties,
    regression_data,
    simulated_instruments,
)
from tauloop.logs import Preparation, Sensors, measure, read_log, write_log
from tauloop.mechanism.model import Mechanism
from tauloop.motion import SampledMotion, random_multisine

PALLETISER = Path(__file__).parents[1] / "cases" / "palletiser.yaml"
#: Parameters of the measured arm that differ from its file.
TRUE_VALUES = {
    "load": 9.0,
    "arm_mass": 14.0,
    "elbow.friction.viscous": 5.0,
    "shoulder.friction.coulomb": 28.0,
}
RATE, DURATION = 200.0, 14.0  # Hz, s
FILTER: dict[str, Any] = {"cutoff": 20.0, "trim": 60, "decimation": 5}
SCAN: dict[str, Any] = {"scan_cutoffs": (4.0, 20.0), "scan_orders": (1, 4)}
#: Estimates of about twenty parameters are within this number of standard deviations of the truth.
MAX_DEVIATIONS = 5.0
#: Relative difference of two calculations of the same fit: rounding only.
ROUNDING_TOLERANCE = 1e-9
#: Motor torques, N m.
NOISE = 0.02


def motion(machine: Model, stroke: float, rng: np.random.Generator) -> SampledMotion:
    """Return multisines of all motors around the reference pose."""
    center = machine.actuator_position(machine.assembly.q)
    joints = np.abs(machine.assembly.loops.transmission[:, list(machine.assembly.driven)]).max(
        axis=1
    )
    excitation = random_multisine(center, stroke * joints, rng, terms=5, lowest=0.15, highest=1.0)
    return excitation.sample(np.arange(0.0, DURATION, 1.0 / RATE))


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(load(PALLETISER))


@pytest.fixture(scope="module")
def truth() -> Model:
    return Model(load(PALLETISER).with_values(TRUE_VALUES))


@pytest.fixture(scope="module")
def logs(tmp_path_factory, truth) -> tuple[Path, Path]:
    """Return the files of the measured motion with its torques, and of the commanded motion."""
    folder, rng = tmp_path_factory.mktemp("palletiser"), np.random.default_rng(3)
    moved = motion(truth, 0.35, rng)
    log = measured(truth, moved, 2e-4, NOISE, rng)
    exact = measured(truth, moved, 0.0, NOISE, rng)
    commanded = exact[[name for name in exact.data_vars if name.startswith("position.")]]
    return write_log(folder / "log.csv", log), write_log(folder / "commanded.csv", commanded)


@pytest.fixture(scope="module")
def plain(model, logs) -> dict[str, Any]:
    return identified(model, logs[0], **FILTER)


def deviations(document: dict[str, Any], truth: Model) -> np.ndarray:
    """Return the errors of the base parameters in standard deviations."""
    true = dict(zip([p.name for p in truth.parameters], truth.pi, strict=True))
    errors = []
    for row in document["base_parameters"]:
        error = row["value"] - true[row["representative"]]
        for term in row["terms"]:
            error -= term["coefficient"] * true[term["parameter"]]
        errors.append(error / row["standard_deviation"])
    return np.array(errors)


# Loops in real data: two of the parallelogram's four joints are measured and driven


def test_a_parallelogram_of_which_two_joints_are_measured(plain, truth):
    assert [output["name"] for output in plain["outputs"]] == ["motor_1", "motor_2", "motor_3"]
    assert np.abs(deviations(plain, truth)).max() < MAX_DEVIATIONS
    for output in plain["outputs"]:
        # The filter of the decimation removes most of the noise.
        assert output["held_out"]["rmse"] < NOISE
    by_name = {row["representative"]: row for row in plain["base_parameters"]}
    elbow = by_name["elbow.viscous"]  # on a joint that is neither measured nor driven
    assert elbow["terms"] == []
    assert (
        abs(elbow["value"] - TRUE_VALUES["elbow.friction.viscous"])
        < MAX_DEVIATIONS * elbow["standard_deviation"]
    )
    assert elbow["standard_deviation"] < 0.2 * elbow["value"]


def test_the_parallelogram_with_the_parameters_of_its_file(model, logs):
    document = identified(model, logs[0], **FILTER, unknowns="file")
    by_name = {row["representative"]: row for row in document["base_parameters"]}
    assert (
        abs(by_name["load"]["value"] - TRUE_VALUES["load"])
        < MAX_DEVIATIONS * by_name["load"]["standard_deviation"]
    )


def test_a_parallelogram_in_which_one_torque_is_not_measured(model, logs, truth):
    document = identified(model, read_log(logs[0]).drop_vars("force.motor_3"), **FILTER)
    assert [output["name"] for output in document["outputs"]] == ["motor_1", "motor_2"]
    assert np.abs(deviations(document, truth)).max() < MAX_DEVIATIONS


# Standard deviations, filters, essential parameters


def test_errors_are_taken_as_autocorrelated_unless_said(plain, model, logs):
    assert plain["provenance"]["options"]["errors"]["name"] == "AutocorrelatedErrors"
    white = identified(model, logs[0], **FILTER, errors="independent")
    assert white["provenance"]["options"]["errors"]["name"] == "IndependentErrors"
    values = [row["value"] for row in plain["base_parameters"]]
    white_values = [row["value"] for row in white["base_parameters"]]
    assert values == pytest.approx(white_values, rel=ROUNDING_TOLERANCE)


@pytest.fixture(scope="module")
def identification(model, logs) -> MachineIdentification:
    return identify(model, logs[0], options_of(**FILTER, **SCAN, essential=0.1))


@pytest.fixture(scope="module")
def scanned(identification) -> dict[str, Any]:
    return identification.as_dict()


def test_a_scan_of_filters_chooses_by_validation_and_goes_on_with_the_choice(scanned, model, logs):
    scan = scanned["filter_scan"]
    errors = [np.sqrt(np.mean(np.square(trial["validation_percent"]))) for trial in scan["trials"]]
    best = scan["trials"][int(np.argmin(errors))]
    assert (best["order"], best["cutoff"]) == (scan["chosen"]["order"], scan["chosen"]["cutoff"])
    assert [(trial["order"], trial["cutoff"]) for trial in scan["trials"]] == [
        (order, cutoff) for order in (1, 4) for cutoff in (4.0, 20.0)
    ]
    chosen = FILTER | {"cutoff": best["cutoff"], "order": best["order"]}
    assert identified(model, logs[0], **chosen)["outputs"] == scanned["outputs"]
    values = np.array([trial["values"] for trial in scan["trials"]])
    assert [row["spread"] for row in scan["parameters"]] == pytest.approx(np.ptp(values, axis=0))


def test_filters_essential_parameters_and_the_fit_are_tables(identification):
    assert_tabulated(identification.filter_scan, "validation_error", "spread")
    assert_tabulated(identification.essential, "value", "deviation")
    assert_tabulated(identification, "value", "machine_file", "held_out")


def test_essential_parameters(scanned):
    essential = scanned["essential"]
    shares = np.divide(essential["standard_deviations"], np.abs(essential["values"]))
    assert shares.max() <= 0.1
    assert len(essential["names"]) + len(essential["removed"]) == len(scanned["base_parameters"])
    assert len(essential["removed"]) > 0


def test_the_tables_of_scan_and_essential_parameters(identification):
    text = tables_of(identification)
    for heading in (
        "Filters: RMSE in %",
        "Chosen: order ",
        "Essential parameters:",
        "Held out, RMSE %",
    ):
        assert heading in text


# Instruments


def test_instruments_of_the_commanded_motion(model, logs, truth):
    document = identified(model, logs[0], **FILTER, estimator="iv", commanded=(logs[1],))
    assert document["estimator"]["name"] == "InstrumentalVariables"
    assert np.abs(deviations(document, truth)).max() < MAX_DEVIATIONS


def closed_loop(mechanism: Mechanism, wanted: SampledMotion, law: Model) -> np.ndarray:
    """Return motor positions under feedforward torques of a model and feedback, by Runge-Kutta."""
    plant = Model(mechanism)
    forward = law.actuators.inverse_dynamics(
        wanted.position, wanted.velocity, wanted.acceleration
    ).force
    gains = np.array([40.0, 3.0])
    step = wanted.time[1] - wanted.time[0]
    x, v = wanted.position[0].copy(), wanted.velocity[0].copy()
    passed = [x]
    for k in range(len(wanted.time) - 1):
        force = (
            forward[k] + gains[0] * (wanted.position[k] - x) + gains[1] * (wanted.velocity[k] - v)
        )

        def rate(
            x: np.ndarray, v: np.ndarray, force: np.ndarray = force
        ) -> tuple[np.ndarray, np.ndarray]:
            driven = list(plant.assembly.driven)
            return v, plant.actuators.forward_dynamics(x, v, force).a[driven]

        v1, a1 = rate(x, v)
        v2, a2 = rate(x + 0.5 * step * v1, v + 0.5 * step * a1)
        x, v = x + step * v2, v + step * a2
        passed.append(x)
    return np.array(passed)


def test_instruments_of_a_simulated_closed_loop():
    """Noise of the positions biases least squares, but not instruments of the simulated machine."""
    still = {f"shoulder_{i}.friction.coulomb": 0.0 for i in (1, 2)}
    nominal = Model(load("five_bar").with_values(still))
    true = Model(load("five_bar").with_values(still | {"tip_mass": 0.5, "rotor_inertia": 9e-4}))
    rng = np.random.default_rng(2)
    center = nominal.actuator_position(nominal.assembly.q)
    wanted = random_multisine(
        center, np.full(2, 0.3), rng, terms=4, lowest=0.5, highest=3.0
    ).sample(np.arange(0.0, 1.2, 1.0 / RATE))
    preparation = Preparation(cutoff=40.0, trim=30)
    names, units = (
        [a.name for a in true.mechanism.actuators],
        nominal.actuators.ports.position.units,
    )

    def as_log(position: np.ndarray, force: np.ndarray) -> xr.Dataset:
        silent = Sensors(resolution=np.zeros(2), force_noise=np.zeros(2))
        return measure(wanted.time, position, force, names, units, ("N m", "N m"), silent, rng)

    passed = closed_loop(true.mechanism, wanted, nominal)
    exact = regression_data(true, as_log(passed, np.zeros((len(passed), 2))), preparation)
    forces = exact.regressor @ true.pi
    noisy = as_log(passed + 4e-4 * rng.standard_normal(passed.shape), np.zeros((len(passed), 2)))
    ties = parameter_ties(nominal, ["tip_mass", "rotor_inertia"])
    data = RegressionData(
        regressor=motion_regressor(nominal, noisy, preparation),
        forces=forces + 0.01 * rng.standard_normal(forces.shape),
        parameters=exact.parameters,
        parameter_units=exact.parameter_units,
        outputs=exact.outputs,
        output_units=exact.output_units,
        ties=ties,
    )
    runs: list[Mechanism] = []

    def simulate(mechanism: Mechanism) -> xr.Dataset:
        runs.append(mechanism)
        return as_log(closed_loop(mechanism, wanted, nominal), np.zeros((len(passed), 2)))

    instruments = simulated_instruments(nominal, simulate, preparation)
    biased = fit_regression(data, None, WeightedLeastSquares())
    free = fit_regression(
        data, None, InstrumentalVariables(instruments_of=instruments, tolerance=0.05)
    )
    truth = free.base.regroup(np.array([0.5, 9e-4]))
    assert (np.abs(free.values - truth) / free.standard_deviations).max() < MAX_DEVIATIONS
    rotor = biased.base.names.index("rotor_inertia")
    off = [abs(result.values[rotor] - truth[rotor]) for result in (biased, free)]
    assert off[0] > 4 * biased.standard_deviations[rotor]
    assert off[0] > 3 * off[1]
    assert 2 <= len(runs) <= 6


# Drives


def test_a_resting_drive_of_coupled_joints_has_no_friction():
    """Its velocity is a sum of joint velocities and has rounding errors; their sign is ignored."""
    machine = Model(loads(shipped_text("pendulum_arm", COUPLED_ELBOW)))
    time = np.arange(400) / RATE
    center = machine.actuator_position(machine.assembly.q)
    position = center + np.stack([0 * time, 3.0 * np.sin(7.0 * time), 0 * time], axis=1)
    names = [actuator.name for actuator in machine.mechanism.actuators]
    silent = Sensors(resolution=np.zeros(3), force_noise=np.zeros(3))
    log = measure(
        time,
        position,
        np.ones((400, 3)),
        names,
        ["rad"] * 3,
        ["N m"] * 3,
        silent,
        np.random.default_rng(0),
    )
    data = regression_data(machine, log, Preparation(cutoff=None, trim=2))
    assert not data.regressor[:, :, data.parameters.index("elbow_motor.coulomb")].any()
    assert data.regressor[:, :, data.parameters.index("elbow.coulomb")].any()


# Logs with too little excitation


def test_directions_that_the_motion_leaves_out_are_named(plain, model, truth):
    assert plain["findings"] == []
    rng = np.random.default_rng(3)
    moved = motion(truth, 0.35, rng)
    still = np.array([0.0, 1.0, 1.0])
    center = truth.actuator_position(truth.assembly.q)
    without_yaw = SampledMotion(
        time=moved.time,
        position=center + still * (moved.position - center),
        velocity=still * moved.velocity,
        acceleration=still * moved.acceleration,
    )
    document = identified(model, measured(truth, without_yaw, 0.0, NOISE, rng), **FILTER)
    findings = [finding["what"] for finding in document["findings"]]
    lost = [what for what in findings if "the motion does not excite" in what]
    assert any("yaw.viscous" in what for what in lost)
    assert not any("shoulder.viscous" in what or "elbow.viscous" in what for what in lost)


# What is refused


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"estimator": "iv"}, "give both estimator iv and the commanded motion"),
        (
            {"scan_cutoffs": (20.0, 400.0)},
            "400 Hz is not between zero and half the sampling rate, 100 Hz",
        ),
        ({"estimator": "tls", "column_error": 2.0}, "above 0 and below 1"),
        ({"estimator": "lasso", "errors": "none"}, "'none' is unknown"),
        ({"essential": 0.0}, "is not positive"),
    ],
)
def test_options_that_have_no_meaning(model, logs, options, says):
    with pytest.raises((InputError, IdentificationError), match=says):
        identified(model, logs[0], **FILTER, **options)
