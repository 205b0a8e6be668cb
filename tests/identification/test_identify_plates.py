"""Faults of a 3-RRR table and a hexapod are named with their sizes, and sound logs have none.

The forces come from the closed formulae of `plates_by_hand`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identifying import options_of
from plates_by_hand import Plate, hexapod, planar_3rrr

from tauloop import Model, PoseError, identify, load
from tauloop.compiler.c.calling.evaluator import default_evaluator
from tauloop.identification import WeightedLeastSquares, fit_regression
from tauloop.identification.estimation.error_models import AutocorrelatedErrors
from tauloop.identification.faults.late_forces import LateForce, late_forces
from tauloop.identification.faults.measured_motion import measured_motion
from tauloop.identification.faults.zeros_and_scales import ScaleSearch, zeros_and_scales
from tauloop.identification.regression.from_log import regression_data
from tauloop.logs import Preparation, Signals, common_cutoff, prepared_signals, with_cutoffs
from tauloop.logs.checks.bad_samples import bad_samples

DECIMATION = 5
#: Encoder of 14 bits, rad, whose noise makes the accelerations of the table bad.
COARSE_STEP = 2.0 * np.pi / 2**14
#: Errors of sizes are at most this number of their standard deviations, for a dozen of sizes.
MAX_DEVIATIONS = 3.0
#: Relative accuracy of closed formulae with finite differences.
FORMULA_TOLERANCE = 1e-7


@pytest.fixture(scope="module")
def table() -> Model:
    return Model(load("planar_3rrr"), evaluator=default_evaluator(threads=1))


@pytest.fixture(scope="module")
def six_legs() -> Model:
    return Model(load("hexapod"), evaluator=default_evaluator(threads=1))


def changed(log: Signals, name: str, factor: float = 1.0, offset: float = 0.0) -> Signals:
    channels = tuple(
        replace(channel, values=channel.values * factor + offset)
        if channel.name == name
        else channel
        for channel in log.channels
    )
    return replace(log, channels=channels)


def late(model: Model, log: Signals) -> tuple[LateForce, ...]:
    preparation = with_cutoffs(log, Preparation(cutoff=None, trim=100))
    prepared = prepared_signals(log, preparation)
    again = prepared_signals(prepared, replace(preparation, trim=0))
    return late_forces(
        model, measured_motion(model, prepared), prepared_again=measured_motion(model, again)
    )


def scales(model: Model, log: Signals) -> ScaleSearch:
    preparation = Preparation(cutoff=None, trim=100, decimation=DECIMATION)
    preparation = with_cutoffs(log, preparation)
    prepared = prepared_signals(log, preparation)
    return zeros_and_scales(
        model,
        measured_motion(model, prepared),
        regression_data(model, log, preparation, prepared=prepared),
        factor=DECIMATION,
        cutoff=common_cutoff(prepared, preparation),
    )


@pytest.mark.parametrize("plate", [planar_3rrr(), hexapod()], ids=["table", "hexapod"])
def test_the_formulae_are_those_of_the_machine_files(
    plate: Plate, table: Model, six_legs: Model
) -> None:
    model = table if plate.unit == "rad" else six_legs
    time = np.arange(150) / 500.0
    position, forces = replace(plate, coulomb=0.0).motion(time, 3)
    velocity, acceleration = np.gradient(position, time, axis=0), np.zeros(position.shape)
    h = time[1]
    velocity[3:-3] = sum(
        w * position[k : len(time) - 6 + k]
        for k, w in enumerate(np.array([-1, 9, -45, 0, 45, -9, 1]) / (60.0 * h))
    )
    acceleration[3:-3] = sum(
        w * position[k : len(time) - 6 + k]
        for k, w in enumerate(np.array([2, -27, 270, -490, 270, -27, 2]) / (180.0 * h**2))
    )
    start = model.actuators.track(position).q
    expected = model.actuators.inverse_dynamics(position, velocity, acceleration, start=start).force
    expected = expected - plate.coulomb * np.sign(velocity)
    error = np.abs(forces - expected)[3:-3].max()
    assert error < FORMULA_TOLERANCE * np.abs(expected).max()


def test_no_force_of_a_sound_log_is_late(table: Model, six_legs: Model) -> None:
    """One output of a hexapod alone hardly determines its many parameters."""
    assert late(six_legs, hexapod().log(0, step=1e-6)) == ()
    assert late(table, planar_3rrr().log(0, step=2.0 * np.pi / 2**19)) == ()


@pytest.mark.parametrize("delay", [3e-3, -5e-3])
def test_a_common_delay_is_found(table: Model, delay: float) -> None:
    plate = planar_3rrr()
    log = plate.log(2, noise=0.0)
    _, forces = plate.motion(log.time - delay, 102)
    rng = np.random.default_rng(0)
    forces += 0.02 * np.sqrt(np.mean(forces**2, axis=0)) * rng.standard_normal(forces.shape)
    position, _ = plate.motion(log.time, 102)
    explained = late(table, plate.signals(log.time, position, forces))
    assert [force.kind for force in explained] == ["delay"] * 3
    assert [force.delay for force in explained] == pytest.approx([delay] * 3, abs=2e-4)


@pytest.mark.parametrize("seed", [1, 3])
def test_the_interval_of_a_delay_contains_the_effect_of_encoder_noise(
    table: Model, seed: int
) -> None:
    """With a cut-off that passes the steps of the encoders, a delay is estimated as too small."""
    delay, step = 2e-3, 2e-4
    plate = planar_3rrr()
    log = plate.log(seed, noise=0.0, rate=500.0)
    position, _ = plate.motion(log.time, 100 + seed)
    _, forces = plate.motion(log.time - delay, 100 + seed)
    rng = np.random.default_rng(seed)
    forces += 0.02 * np.sqrt(np.mean(forces**2, axis=0)) * rng.standard_normal(forces.shape)
    signals = plate.signals(log.time, step * np.round(position / step), forces)
    preparation = Preparation(cutoff=20.0, trim=100, decimation=5)
    data = regression_data(table, signals, preparation)
    fitted = fit_regression(data, None, WeightedLeastSquares(), errors=AutocorrelatedErrors())
    (term,) = [term for term in fitted.timing if term.kind == "delay" and term.is_of_all]
    assert term.is_shown
    assert term.value < delay - 0.1e-3
    assert abs(term.value - delay) < MAX_DEVIATIONS * term.deviation
    assert term.deviation < 0.3 * delay


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("motor", "degrees"), [(0, 5.0), (2, -3.0)])
def test_a_zero_of_a_coarse_encoder_is_unbiased(
    table: Model, seed: int, motor: int, degrees: float
) -> None:
    plate = planar_3rrr()
    name = plate.motors[motor]
    log = changed(
        plate.log(seed, rate=500.0, step=COARSE_STEP),
        f"position.{name}",
        offset=np.radians(degrees),
    )
    first = scales(table, log).causes[0]
    assert (first.kind, first.channel) == ("zero", name)
    assert abs(first.size - np.radians(degrees)) < MAX_DEVIATIONS * first.deviation
    assert first.deviation < np.radians(0.4)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("motor", "ratio"), [(1, 1.1), (2, 0.97)])
def test_a_ratio_of_a_coarse_encoder_is_unbiased(
    table: Model, seed: int, motor: int, ratio: float
) -> None:
    plate = planar_3rrr()
    name = plate.motors[motor]
    log = changed(plate.log(seed, rate=500.0, step=COARSE_STEP), f"position.{name}", ratio)
    causes = {cause.kind: cause for cause in scales(table, log).causes}
    assert next(iter(causes)) == "ratio"
    assert causes["ratio"].channel == name
    assert abs(causes["ratio"].size - ratio) < MAX_DEVIATIONS * causes["ratio"].deviation
    assert causes["ratio"].deviation < 0.006


def test_a_gear_that_is_off_by_two_percent(six_legs: Model) -> None:
    plate = hexapod()
    sound = plate.log(0, step=1e-6)
    assert scales(six_legs, sound).causes == ()
    log = changed(sound, "position.leg2.motor", 1.02)
    log = changed(log, "force.leg2.motor", 1.0 / 1.02)
    first = scales(six_legs, log).causes[0]
    assert (first.kind, first.channel) == ("gear", "leg2.motor")
    assert abs(first.size - 1.02) < MAX_DEVIATIONS * first.deviation


@pytest.mark.parametrize("names", [slice(None), slice(2, 3)], ids=["all", "one"])
def test_millimeters_declared_as_meters(six_legs: Model, names: slice) -> None:
    plate = hexapod()
    log = plate.log(0, seconds=4.0)
    for name in plate.motors[names]:
        log = changed(log, f"position.{name}", 1e3)
    with pytest.raises(PoseError) as error:
        identify(six_legs, log, options_of(cutoff=30.0))
    first = error.value.problems[0]
    assert first.where == " and ".join(f"position.{name}" for name in plate.motors[names])
    assert "in mm, but the log states m" in first.what


def test_a_force_that_is_frozen_for_a_quarter_of_the_log() -> None:
    log = planar_3rrr().log(0)
    assert bad_samples(log) == ()
    values = log.channels[4].values
    values[1000:1700] = values[1000]
    (frozen,) = bad_samples(log)
    assert (frozen.kind, frozen.channel) == ("frozen", "leg2.motor")
    assert np.flatnonzero(frozen.at).tolist() == list(range(1000, 1700))


@pytest.mark.parametrize("seed", range(3))
def test_spikes_of_twelve_deviations(seed: int) -> None:
    """A spike has its own noise, and that of its neighbors; dry friction makes steps."""
    log = planar_3rrr().log(seed, rate=500.0)
    assert bad_samples(log) == ()
    values = log.channels[3].values
    places = np.arange(300, 5800, 500)
    values[places] += 12.0 * 0.02 * np.sqrt(np.mean(values**2)) * (-1.0) ** np.arange(len(places))
    (spikes,) = bad_samples(log)
    assert set(np.flatnonzero(spikes.at)) <= set(places)
    assert spikes.at.sum() >= len(places) - 2


def test_friction_between_two_reversals_is_not_a_spike() -> None:
    """A motor that stops and moves on can reverse for a single sample, and its friction with it."""
    time = np.arange(2000) / 250.0
    speed = np.cos(2.0 * np.pi * 0.3 * time) - 0.4
    speed[1500:1521] = 2e-3 * np.abs(np.arange(-10.0, 11.0))
    speed[1510] = -1e-3
    rng = np.random.default_rng(0)
    position = np.stack([np.cumsum(speed) / 250.0] * 3, axis=1)
    forces = 0.2 * speed[:, None] + 0.06 * np.sign(speed)[:, None]
    forces = forces + 2e-3 * rng.standard_normal((len(time), 3))
    log = planar_3rrr().signals(time, position, forces)
    assert bad_samples(log) == ()
