"""Identification with redundant motors and averaged logs; logs with and without faults."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from identifying import identified
from machine_texts import shipped_text

from tauloop import Model, load
from tauloop.common.errors import InputError, LogError
from tauloop.common.result import Status
from tauloop.equations.ports import Entry
from tauloop.formats import loads
from tauloop.identification import WeightedLeastSquares, fit_regression, split_data
from tauloop.identification.excitation.limits import ExcitationLimits
from tauloop.identification.excitation.problem import ExcitationProblem, ExcitationTask
from tauloop.identification.faults.recording.signals import clipped_channels
from tauloop.identification.faults.unexcited import unexcited_directions
from tauloop.identification.regression.from_log import parameter_ties, regression_data
from tauloop.logs import Preparation, Sensors, measure, write_log
from tauloop.motion import SampledMotion, random_multisine

RATE = 250.0  # Hz: central differences of 2 Hz are off by 4e-4
NOISE = 0.003  # N m
#: Estimates are within this number of standard deviations of the truth.
MAX_DEVIATIONS = 5.0
#: Difference of the regressor times the parameters from inverse dynamics, N m.
FORCE_TOLERANCE = 1e-9
#: Largest effect of a preload, as a share: rounding, and the positions' resolution of 1e-6 rad
#: times about 10 N m.
MAX_PRELOAD_SHARE = 1e-4
THIRD = "  motor_3: {on: elbow_2, inertia: rotor_inertia, force: 8 N m, friction: {coulomb: 0.02 N m}}\n"


@pytest.fixture(scope="module")
def many() -> Model:
    """Return a five-bar with a third motor."""
    return Model(
        loads(shipped_text("five_bar", ("platform:\n  body:", THIRD + "platform:\n  body:")))
    )


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(load("five_bar"))


def motion(model: Model, seed: int = 1, duration: float = 12.0) -> SampledMotion:
    center = model.actuator_position(model.assembly.q)[list(model.assembly.leading)]
    excitation = random_multisine(
        center, np.full(2, 0.3), np.random.default_rng(seed), terms=3, lowest=0.5, highest=2
    )
    return excitation.sample(np.arange(round(duration * RATE)) / RATE)


def log_of(model: Model, moved: SampledMotion, forces: np.ndarray, seed: int = 2) -> xr.Dataset:
    """Return a log with positions of the leading actuators and forces of all actuators."""
    names = [actuator.name for actuator in model.mechanism.actuators]
    position = np.zeros((len(moved.time), len(names)))
    position[:, list(model.assembly.leading)] = moved.position
    sensors = Sensors(resolution=np.full(len(names), 1e-6), force_noise=np.full(len(names), NOISE))
    units = (["rad"] * len(names), ["N m"] * len(names))
    result = measure(
        moved.time, position, forces, names, *units, sensors, np.random.default_rng(seed)
    )
    return result.drop_vars([f"position.{name}" for name in model.assembly.spare_actuators])


@pytest.mark.parametrize("output", ["actuators", "joints"])
def test_redundant_actuation_is_identified_whatever_its_preload(many: Model, output: str) -> None:
    assert many.assembly.is_redundant
    moved = motion(many)
    sampled = (moved.position, moved.velocity, moved.acceleration)
    shared = many.actuators.inverse_dynamics(*sampled).force
    assert np.abs(many.actuators.regressor(*sampled) @ many.pi - shared).max() < FORCE_TOLERANCE
    # These forces cancel each other and are larger than those of the motion.
    pressing = (
        many.hybrid.preload_directions(moved.position)[..., 0]
        * (5.0 + 4.0 * np.sin(moved.time))[:, None]
    )
    preparation = Preparation(cutoff=None, trim=5)
    with_preload, without = (
        regression_data(
            many, log_of(many, moved, forces), preparation, output=output, ties=parameter_ties(many)
        )
        for forces in (shared + pressing, shared)
    )
    assert with_preload.forces.shape[1] == 2
    assert all(name.endswith(".resultant") for name in with_preload.outputs)
    result = fit_regression(*split_data(with_preload), WeightedLeastSquares())
    truth = result.base.regroup(
        np.array([many.mechanism.parameters[name].value for name in result.base.parameters])
    )
    assert (np.abs(result.values - truth) / result.standard_deviations).max() < MAX_DEVIATIONS
    same = fit_regression(*split_data(without), WeightedLeastSquares())
    assert np.abs(result.values - same.values).max() < MAX_PRELOAD_SHARE * np.abs(same.values).max()
    # The reference: the power of all forces equals that of the resultants at the speeds of the
    # leading motors.
    rows = many.actuators.regressor(*sampled, output=many.measurable_output(output)) @ many.pi
    speeds = np.einsum(
        "num,nm->nu", many.actuators.actuator_jacobian(moved.position), moved.velocity
    )
    power = (speeds * (shared + pressing)).sum(axis=1)
    assert np.abs(power - (rows * moved.velocity).sum(axis=1)).max() < FORCE_TOLERANCE * max(
        1.0, np.abs(power).max()
    )


def test_redundant_actuation_needs_all_forces(many: Model) -> None:
    moved = motion(many, duration=1.0)
    forces = np.ones((len(moved.time), 3))
    with pytest.raises(LogError, match="motor_2"):
        regression_data(
            many,
            log_of(many, moved, forces).drop_vars("force.motor_2"),
            Preparation(cutoff=None, trim=5),
        )


@pytest.mark.parametrize("space", ["actuators", "platform"])
def test_an_excitation_is_judged_by_the_same_rows(many: Model, space: str) -> None:
    task = ExcitationTask(channels=Entry(space), limits=ExcitationLimits(stroke=0.05))
    problem = ExcitationProblem(many.mechanism, task)
    moved = motion(many, duration=0.2)
    state = many.actuators.kinematics(moved.position, moved.velocity, moved.acceleration)
    entry = problem.functions.ports
    inputs = SampledMotion(
        time=moved.time,
        position=entry.at(state.q),
        velocity=entry.rates(state.v),
        acceleration=entry.rates(state.a),
    )
    rows = many.actuators.regressor(
        moved.position, moved.velocity, moved.acceleration, output="leading"
    )
    expected = problem.rows(rows)
    assert (
        np.abs(problem.evaluate(inputs).regressor - expected).max()
        < FORCE_TOLERANCE * np.abs(expected).max()
    )
    (screened, _) = problem.screen(inputs)
    expected = rows @ problem.ties.matrix
    assert np.abs(screened - expected).max() < FORCE_TOLERANCE * np.abs(expected).max()


def test_what_a_motion_of_redundant_motors_leaves_out_is_named(many: Model) -> None:
    moved = motion(many)
    ones = np.array([1.0, 0.0])  # the second leading motor rests
    resting = replace(
        moved,
        position=moved.position * ones + moved.position[0] * (1.0 - ones),
        velocity=moved.velocity * ones,
        acceleration=moved.acceleration * ones,
    )
    for inputs, least in ((moved, 0), (resting, 1)):
        forces = many.actuators.inverse_dynamics(
            inputs.position, inputs.velocity, inputs.acceleration
        ).force
        data = regression_data(many, log_of(many, inputs, forces), Preparation(cutoff=None, trim=5))
        result = unexcited_directions(many, data, np.random.default_rng(0))
        assert (len(result) > 0) is (least > 0), result


def test_forces_that_have_nothing_to_do_with_the_motion_are_doubtful(model: Model) -> None:
    moved = motion(model)
    forces = np.random.default_rng(0).normal(size=(len(moved.time), 2))
    data = regression_data(
        model,
        log_of(model, moved, forces),
        Preparation(cutoff=None, trim=5),
        ties=parameter_ties(model),
    )
    result = fit_regression(*split_data(data), WeightedLeastSquares())
    assert result.status is Status.DOUBTFUL
    assert any("the motion hardly explains the forces" in line for line in result.advice)


def test_coarse_steps_of_a_force_are_no_limit(model: Model) -> None:
    moved = motion(model)
    wave = 2.0 * np.sin(2.0 * np.pi * 0.3 * moved.time)[:, None] * [1.0, 0.7]
    coarse = log_of(model, moved, wave)
    for name in ("force.motor_1", "force.motor_2"):
        coarse[name].values = np.round(coarse[name].values / 0.1) * 0.1
        is_largest = coarse[name].values == coarse[name].values.max()
        runs = "".join(np.where(is_largest, "x", " ")).split()
        assert max(map(len, runs)) >= 5
    assert clipped_channels(coarse) == ()
    coarse["force.motor_1"].values = np.minimum(coarse["force.motor_1"].values, 0.5 * wave.max())
    (problem,) = clipped_channels(coarse)
    assert problem.where == "force.motor_1"


def test_logs_with_other_forces_and_faults_are_named(model: Model, tmp_path: Path) -> None:
    moved = motion(model)
    forces = model.actuators.inverse_dynamics(
        moved.position, moved.velocity, moved.acceleration
    ).force
    log = log_of(model, moved, forces)
    first = write_log(tmp_path / "first.csv", log)
    second = write_log(tmp_path / "second.csv", log.drop_vars("force.motor_2"))
    with pytest.raises(InputError) as caught:
        identified(load("five_bar"), first, validation=second, unknowns="file")
    (problem,) = caught.value.problems
    assert problem.where == "second.csv"
    assert problem.what == "lacks forces that the fitted logs contain: motor_2"
    sound = log["force.motor_1"].values
    # more at the limit than not
    log["force.motor_1"].values = np.maximum(sound, np.quantile(sound, 0.7))
    document = identified(load("five_bar"), log, cutoff=20.0, trim=20, unknowns="file")
    assert document["status"] == "doubtful"
    assert "it is clipped" in document["findings"][0]["what"]
