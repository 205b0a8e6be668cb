"""Averaged periods with instruments of the commanded motion and with a coupled transmission."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from identifying import identified
from machine_texts import COUPLED_ELBOW, shipped_text

from tauloop import LogError, Model, load
from tauloop.common.errors import InputError
from tauloop.identification import (
    Identification,
    InstrumentalVariables,
    WeightedLeastSquares,
    average_periods,
    fit_regression,
    split_data,
)
from tauloop.identification.preparation.periodic import (
    cut_off,
    force_noise,
    periodic_regression,
    periodic_signals,
)
from tauloop.identification.regression.from_log import motion_regressor, parameter_ties
from tauloop.logs import Preparation, Sensors, measure, samples, write_log
from tauloop.motion import SampledMotion

RATE, PERIOD, PERIODS = 100.0, 4.0, 6  # Hz, s
#: Noise of the motors' torques, N m, and of their angles, rad. The encoder is so coarse that least
#: squares is biased.
FORCE_NOISE, ENCODER_NOISE = 0.01, 2e-3
#: Highest frequency that is retained, Hz; far above the motion's 1 Hz, so that noise of the angles
#: passes.
HIGHEST = 20.0
#: Relative difference of two calculations of the same value: rounding only.
ROUNDING_TOLERANCE = 1e-9
#: The same for estimates, with a condition number of some hundreds.
ESTIMATE_TOLERANCE = 1e-7
#: Estimates without bias are within this number of standard deviations of the truth.
MAX_DEVIATIONS = 5.0


def periodic_instruments(model: Model, commanded: xr.Dataset) -> np.ndarray:
    """Return the regressor of whole periods of the commanded motion."""
    prepared = periodic_signals(commanded, highest=HIGHEST)
    return motion_regressor(model, commanded, Preparation(cutoff=None), prepared=prepared)


def coupled_arm(folder: Path) -> Path:
    """Write the shipped arm with a motor on two joints, which has friction and may be at rest."""
    path = folder / "coupled.yaml"
    path.write_text(shipped_text("pendulum_arm", COUPLED_ELBOW), encoding="utf-8")
    return path


def one_period(center: np.ndarray, size: np.ndarray) -> SampledMotion:
    """Return sines at the first, second and fourth harmonic of the period, with sizes (n, 3)."""
    rate = 2.0 * np.pi / PERIOD
    time = np.arange(round(PERIOD * RATE)) / RATE
    turn = rate * np.array([1.0, 2.0, 4.0])
    angle = turn * time[:, None, None] + 0.7 * np.arange(3) + 1.1 * np.arange(len(size))[:, None]
    return SampledMotion(
        time=time,
        position=center + np.sum(size * np.sin(angle), axis=2),
        velocity=np.sum(size * turn * np.cos(angle), axis=2),
        acceleration=-np.sum(size * turn**2 * np.sin(angle), axis=2),
    )


def recorded(
    model: Model, motion: SampledMotion, encoder: float, force: float, seed: int = 1
) -> xr.Dataset:
    """Return a log of all periods of a motion, with the forces of the motion without noise."""
    rng = np.random.default_rng(seed)
    start = model.actuators.track(motion.position).q
    forces = model.actuators.inverse_dynamics(
        motion.position, motion.velocity, motion.acceleration, start=start
    ).force
    position = np.tile(motion.position, (PERIODS, 1))
    names = tuple(actuator.name for actuator in model.mechanism.actuators)
    return measure(
        np.arange(len(position)) / RATE,
        position + encoder * rng.normal(size=position.shape),
        np.tile(forces, (PERIODS, 1)),
        names,
        model.actuators.ports.position.units,
        model.output_ports("actuators")[1],
        Sensors(resolution=np.zeros(len(names)), force_noise=np.full(len(names), force)),
        rng,
    )


@pytest.fixture(scope="module")
def arm_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return coupled_arm(tmp_path_factory.mktemp("arm"))


@pytest.fixture(scope="module")
def arm(arm_file: Path) -> Model:
    return Model(load(arm_file))


@pytest.fixture(scope="module")
def arm_log(arm: Model) -> xr.Dataset:
    size = np.array([[8.0, 4.0, 3.0], [7.0, -5.0, 2.0], [9.0, 5.0, -3.0]])
    return recorded(arm, one_period(arm.actuator_position(arm.assembly.q), size), 0.0, FORCE_NOISE)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(load("five_bar"))


@pytest.fixture(scope="module")
def motion(model: Model) -> SampledMotion:
    size = np.array([[0.25, 0.12, 0.06], [-0.15, 0.16, 0.05]])
    return one_period(model.actuator_position(model.assembly.q), size)


@pytest.fixture(scope="module")
def logs(model: Model, motion: SampledMotion) -> tuple[xr.Dataset, xr.Dataset]:
    """Return the log of noisy encoders, and the commanded motion."""
    return recorded(model, motion, ENCODER_NOISE, FORCE_NOISE), recorded(model, motion, 0.0, 0.0)


def document(model: Model, log: xr.Dataset, **options: Any) -> dict[str, Any]:
    return identified(model, log, period=PERIOD, max_frequency=HIGHEST, **options)


def estimates(document: dict[str, Any]) -> np.ndarray:
    return np.array([row["value"] for row in document["base_parameters"]])


def off(identification: Identification, model: Model) -> float:
    """Return the largest error of a base parameter, in standard deviations."""
    truth = identification.base.regroup(
        np.array(
            [model.mechanism.parameters[name].value for name in identification.base.parameters]
        )
    )
    return float(np.abs((identification.values - truth) / identification.standard_deviations).max())


def test_rows_of_joints_are_those_of_actuators_through_the_transmission(
    arm: Model, arm_log: xr.Dataset
) -> None:
    average = average_periods(arm_log, PERIOD).log
    actuators, joints = (
        periodic_regression(arm, average, highest=HIGHEST, output=output)
        for output in ("actuators", "joints")
    )
    # speed of a motor per speed of a joint
    A = np.array([[50.0, 0.0, 0.0], [0.0, 50.0, 0.0], [0.0, 37.0, 41.0]])
    assert joints.outputs == ("waist", "shoulder", "elbow")
    np.testing.assert_allclose(joints.forces, actuators.forces @ A, rtol=ROUNDING_TOLERANCE)
    expected = np.einsum("nkp,kd->ndp", actuators.regressor, A)
    np.testing.assert_allclose(
        joints.regressor,
        expected,
        rtol=ROUNDING_TOLERANCE,
        atol=ROUNDING_TOLERANCE * np.abs(expected).max(),
    )
    exact = joints.regressor @ arm.pi
    assert (joints.forces - exact).std(axis=0) == pytest.approx(
        FORCE_NOISE / np.sqrt(PERIODS) * np.linalg.norm(A, axis=0), rel=0.15
    )  # 400 samples scatter by 3.5 %


def test_noise_of_joints_is_that_of_their_own_periods(arm: Model, arm_log: xr.Dataset) -> None:
    """The reference calculates joint torques for each sample first, and then their average."""
    log = arm_log.copy(deep=True)
    names = ("waist_motor", "shoulder_motor", "elbow_motor")
    # two motors have noise in common
    shared = 0.03 * np.random.default_rng(5).normal(size=len(log["time"]))
    for name in names[1:]:
        log[f"force.{name}"].values += shared
    A = np.asarray(arm.assembly.loops.transmission[:, list(arm.assembly.driven)])
    torque = samples(log, "force", names) @ A
    result = force_noise([average_periods(log, PERIOD)], arm, "joints")
    for k, name in enumerate(names):
        log[f"force.{name}"].values = torque[:, k]
    direct = average_periods(log, PERIOD)
    assert result == pytest.approx(
        [direct.noise[f"force.{name}"] / np.sqrt(PERIODS) for name in names]
    )


def test_a_motor_at_rest_has_no_dry_friction(arm: Model) -> None:
    size = np.array([[8.0, 4.0, 3.0], [7.0, -5.0, 2.0], [0.0, 0.0, 0.0]])
    log = recorded(arm, one_period(arm.actuator_position(arm.assembly.q), size), 0.0, FORCE_NOISE)
    data = periodic_regression(arm, average_periods(log, PERIOD).log, highest=HIGHEST)
    column = data.parameters.index("elbow_motor.coulomb")
    assert not data.regressor[..., column].any()
    moving = data.parameters.index("shoulder.coulomb")
    assert np.abs(data.regressor[..., moving]).max() > 0.0


def test_instruments_of_the_commanded_motion_take_the_bias_away(
    model: Model, logs: tuple[xr.Dataset, xr.Dataset]
) -> None:
    measured, commanded = (average_periods(log, PERIOD).log for log in logs)
    data = periodic_regression(model, measured, highest=HIGHEST, ties=parameter_ties(model))
    instruments = periodic_instruments(model, commanded)
    training, held_out = split_data(data, 0.7)
    plain = fit_regression(
        training, held_out, InstrumentalVariables(instruments_of=training.regressor)
    )
    fitted = fit_regression(
        training, held_out, InstrumentalVariables(instruments_of=instruments[: len(training)])
    )
    assert off(plain, model) > 2 * MAX_DEVIATIONS
    assert off(fitted, model) < MAX_DEVIATIONS
    # The same estimating equations, solved directly: Z^T W^2 (f - Y p) = 0.
    ties = parameter_ties(model)
    Z, Y = (
        (rows[: len(training)] @ ties.matrix)[..., fitted.base.independent]
        for rows in (instruments, data.regressor)
    )
    force = training.forces - training.regressor @ np.asarray(ties.offset)
    weighted = Z * fitted.estimate.weights[:, None] ** 2
    by_hand = np.linalg.solve(
        np.einsum("nkr,nks->rs", weighted, Y), np.einsum("nkr,nk->r", weighted, force)
    )
    np.testing.assert_allclose(
        fitted.values,
        by_hand,
        rtol=ESTIMATE_TOLERANCE,
        atol=ESTIMATE_TOLERANCE * np.abs(by_hand).max(),
    )


def test_the_commanded_motion_is_averaged_too(
    model: Model, logs: tuple[xr.Dataset, xr.Dataset]
) -> None:
    options: dict[str, Any] = {"unknowns": "file", "trim": 37}
    result = document(model, logs[0], **options, estimator="iv", commanded=(logs[1],))
    trimmed = [log.isel(time=slice(37, len(log["time"]) - 37)) for log in logs]
    measured, commanded = (average_periods(log, PERIOD).log for log in trimmed)
    data = periodic_regression(model, measured, highest=HIGHEST, ties=parameter_ties(model))
    training, held_out = split_data(data, 0.7)
    instruments = periodic_instruments(model, commanded)[: len(training)]
    expected = fit_regression(training, held_out, InstrumentalVariables(instruments_of=instruments))
    np.testing.assert_allclose(
        estimates(result), expected.values, rtol=ESTIMATE_TOLERANCE, atol=ESTIMATE_TOLERANCE
    )
    assert not np.allclose(
        estimates(result), estimates(document(model, logs[0], **options)), rtol=1e-3
    )


def test_a_log_of_one_period_is_an_average_already(model: Model, motion: SampledMotion) -> None:
    whole = recorded(model, motion, 0.0, FORCE_NOISE)
    mean = average_periods(whole, PERIOD).log
    several, single = (
        document(model, log, unknowns="file", errors="independent") for log in (whole, mean)
    )
    assert several["estimator"]["name"] == "KnownNoise"
    assert single["estimator"]["name"] == "WeightedLeastSquares"  # The noise is unknown.
    data = periodic_regression(model, mean, highest=HIGHEST, ties=parameter_ties(model))
    expected = fit_regression(*split_data(data, 0.7), WeightedLeastSquares())
    np.testing.assert_allclose(
        estimates(single), expected.values, rtol=ESTIMATE_TOLERANCE, atol=ESTIMATE_TOLERANCE
    )
    assert off(expected, model) < MAX_DEVIATIONS
    assert (
        np.abs(estimates(several) - expected.values) < MAX_DEVIATIONS * expected.standard_deviations
    ).all()


def test_joints_are_fitted(arm: Model, arm_log: xr.Dataset) -> None:
    result = document(arm, arm_log, output="joints")
    assert [output["name"] for output in result["outputs"]] == ["waist", "shoulder", "elbow"]
    assert result["estimator"]["name"] == "KnownNoise"
    # The residuals contain nothing but the known noise.
    for output in result["outputs"]:
        assert output["noise"] * output["weight"] == pytest.approx(1.0, rel=0.2)
    both = document(arm, arm_log, output="joints", estimator="iv", commanded=(arm_log,))
    assert [output["name"] for output in both["outputs"]] == ["waist", "shoulder", "elbow"]


def test_joints_need_all_forces(arm: Model, arm_log: xr.Dataset) -> None:
    average = average_periods(arm_log.drop_vars("force.elbow_motor"), PERIOD).log
    with pytest.raises(LogError, match=r"force\.elbow_motor"):
        periodic_regression(arm, average, highest=HIGHEST, output="joints")
    some = periodic_regression(arm, average, highest=HIGHEST)
    assert some.measured is not None
    assert some.measured.tolist() == [True, True, False]


def test_a_period_that_is_none_and_another_commanded_motion(
    logs: tuple[xr.Dataset, xr.Dataset], model: Model, motion: SampledMotion, tmp_path: Path
) -> None:
    document = identified(model, logs[0], period=2.8, max_frequency=HIGHEST, unknowns="file")
    assert document["status"] == "doubtful"
    rows = [finding["what"] for finding in document["findings"]]
    assert sum("does not repeat after the given period" in what for what in rows) == 2
    other = write_log(
        tmp_path / "other.csv", logs[1].assign({"position.motor_1": logs[1]["position.motor_2"]})
    )
    short = write_log(tmp_path / "short.csv", logs[1].isel(time=slice(0, 1000)))
    for commanded, says in (
        (other, "other.csv: position.motor_1: differs by"),
        (short, "short.csv: has 1000 samples"),
    ):
        with pytest.raises(InputError) as caught:
            identified(model, logs[0], estimator="iv", commanded=(commanded,))
        assert says in str(caught.value)


@pytest.mark.parametrize("encoder", [0.0, ENCODER_NOISE])
def test_a_highest_frequency_below_the_motions_reports_the_share_above_it(encoder: float) -> None:
    """The reported share of the velocity's power is that of three sines of known size."""
    model = Model(load("five_bar"))
    size = np.array([[0.2, 0.15, 0.08], [0.2, 0.15, 0.0]])
    log = recorded(
        model, one_period(model.actuator_position(model.assembly.q), size), encoder, FORCE_NOISE
    )
    average = average_periods(log, PERIOD)
    assert cut_off(average, 1.1) == ()
    (problem,) = cut_off(average, 0.9)
    power = (size[0] * np.array([1.0, 2.0, 4.0])) ** 2
    assert problem.where == "position.motor_1"
    share = float(problem.what.split("has ")[1].split(" %")[0])
    assert share == pytest.approx(100.0 * power[2] / power.sum(), rel=0.1)
    assert "most of it at 1 Hz" in problem.what
    document = identified(model, log, period=PERIOD, max_frequency=0.9)
    assert document["status"] == "doubtful"
    assert "--max-frequency" in document["findings"][0]["remedy"]
