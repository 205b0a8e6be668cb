"""Identification from several logs, averages over periods, and the standstill chosen by a scan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from identifying import identified, options_of, tables_of

from tauloop import IdentificationError, InputError, Model, load
from tauloop.identification import (
    KnownNoise,
    MachineIdentification,
    WeightedLeastSquares,
    fit_regression,
    identify,
    merge_data,
    scan_filters,
    split_data,
    split_each,
)
from tauloop.identification.regression.from_log import parameter_ties, regression_data
from tauloop.logs import Preparation, Sensors, measure, read_log, write_log
from tauloop.motion import SampledMotion, random_multisine

RATE, PERIOD, PERIODS = 200.0, 4.0, 6  # Hz, s
NOISE = np.array([0.01, 0.04])  # of the two motors' torques, N m
TIP = 0.5  # kg, different from the value in the machine file
FIRST = Preparation(cutoff=30.0, trim=40, decimation=4)
SECOND = Preparation(cutoff=50.0, trim=60, decimation=5)
#: Relative difference of two calculations of the same fit: rounding only.
ROUNDING_TOLERANCE = 1e-8
#: Estimates are within this number of standard deviations of the truth.
MAX_DEVIATIONS = 5.0
#: Relative tolerance of a standard deviation from 4 000 values: five times its error of 1.1 %.
NOISE_TOLERANCE = 0.06


@pytest.fixture(scope="module")
def plant() -> Model:
    return Model(load("five_bar").with_values({"tip_mass": TIP}))


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(load("five_bar"))


def motion(plant: Model, seed: int, duration: float, lowest: float) -> SampledMotion:
    """Return multisines around the reference pose, with multiples of the lowest frequency."""
    center = plant.actuator_position(plant.assembly.q)
    excitation = random_multisine(
        center, np.full(2, 0.3), np.random.default_rng(seed), terms=3, lowest=lowest, highest=2
    )
    return excitation.sample(np.arange(round(duration * RATE)) / RATE)


def measured(plant: Model, moved: SampledMotion, seed: int) -> xr.Dataset:
    forces = plant.actuators.inverse_dynamics(moved.position, moved.velocity, moved.acceleration)
    units = (plant.actuators.ports.position.units, plant.output_ports("actuators")[1])
    sensors = Sensors(resolution=np.full(2, 1e-6), force_noise=NOISE)
    rng = np.random.default_rng(seed)
    return measure(
        moved.time, moved.position, forces.force, forces.actuator_names, *units, sensors, rng
    )


def described(folder: Path, name: str, log: xr.Dataset, preparation: Preparation) -> Path:
    """Write a log and the YAML file that states its preparation, and return the latter."""
    table = write_log(folder / f"{name}.csv", log)
    cutoff, trim, factor = preparation.cutoff, preparation.trim, preparation.decimation
    path = folder / f"{name}.yaml"
    path.write_text(
        f"format: tauloop-log/1\nfiles:\n  - path: {table.name}\n"
        f"preparation: {{cutoff: {cutoff:g} Hz, trim: {trim}, decimation: {factor}}}\n",
        encoding="utf-8",
    )
    return path


@pytest.fixture(scope="module")
def recordings(tmp_path_factory, plant) -> tuple[Path, Path]:
    """Return the recordings of two motions with different preparations."""
    folder = tmp_path_factory.mktemp("logs")
    logs = [measured(plant, motion(plant, seed, 8.0, 0.4), seed) for seed in (1, 2)]
    return described(folder, "one", logs[0], FIRST), described(folder, "two", logs[1], SECOND)


def one_period(plant: Model) -> SampledMotion:
    """Return a period of sines at its first, second and fourth harmonic."""
    phase = 2.0 * np.pi * np.arange(round(PERIOD * RATE))[:, None] / (PERIOD * RATE)
    size = np.array([[0.25, 0.12, 0.06], [-0.15, 0.16, 0.05]])
    rate = 2.0 * np.pi / PERIOD
    center = plant.actuator_position(plant.assembly.q)
    position, velocity, acceleration = (
        center + np.zeros((len(phase), 2)),
        np.zeros((len(phase), 2)),
        0.0,
    )
    for k, multiple in enumerate((1, 2, 4)):
        angle = multiple * phase + 0.7 * k
        position = position + size[:, k] * np.sin(angle)
        velocity = velocity + size[:, k] * multiple * rate * np.cos(angle)
        acceleration = acceleration - size[:, k] * (multiple * rate) ** 2 * np.sin(angle)
    return SampledMotion(
        time=np.arange(len(phase)) / RATE,
        position=position,
        velocity=velocity,
        acceleration=np.asarray(acceleration),
    )


@pytest.fixture(scope="module")
def periodic_log(tmp_path_factory, plant) -> Path:
    once = one_period(plant)
    again = {
        name: np.tile(getattr(once, name), (PERIODS, 1))
        for name in ("position", "velocity", "acceleration")
    }
    moved = SampledMotion(time=np.arange(PERIODS * len(once.time)) / RATE, **again)
    return write_log(tmp_path_factory.mktemp("periods") / "log.csv", measured(plant, moved, 3))


def values(document: dict[str, Any]) -> dict[str, float]:
    return {row["representative"]: row["value"] for row in document["base_parameters"]}


def deviations_of(document: dict[str, Any], plant: Model) -> np.ndarray:
    """Return the errors of the base parameters, in standard deviations."""
    true = plant.mechanism.parameters
    errors = []
    for row in document["base_parameters"]:
        error = row["value"] - true[row["representative"]].value
        for term in row["terms"]:
            error -= term["coefficient"] * true[term["parameter"]].value
        errors.append(error / row["standard_deviation"])
    return np.array(errors)


# Several logs


@pytest.fixture(scope="module")
def together(model, recordings) -> dict[str, Any]:
    return identified(model, *recordings, unknowns="file")


@pytest.fixture(scope="module")
def alone(model, recordings) -> dict[str, Any]:
    return identified(model, recordings[0], unknowns="file")


def test_logs_with_preparations_of_their_own_are_fitted_together(
    together, alone, recordings, model, plant
):
    document = together
    parts = [
        regression_data(
            model, read_log(path.with_suffix(".csv")), preparation, ties=parameter_ties(model)
        )
        for path, preparation in zip(recordings, (FIRST, SECOND), strict=True)
    ]
    cuts = [round(0.7 * len(part)) for part in parts]
    training = merge_data(
        [part.part(slice(None, cut)) for part, cut in zip(parts, cuts, strict=True)]
    )
    held_out = merge_data(
        [part.part(slice(cut, None)) for part, cut in zip(parts, cuts, strict=True)]
    )
    expected = fit_regression(training, held_out, WeightedLeastSquares())
    rows = [row["value"] for row in document["base_parameters"]]
    np.testing.assert_allclose(
        rows,
        expected.values,
        rtol=ROUNDING_TOLERANCE,
        atol=ROUNDING_TOLERANCE * np.abs(expected.values).max(),
    )
    counts = document["provenance"]["inputs"]
    assert (counts["training_samples"], counts["held_out_samples"]) == (
        sum(cuts),
        sum(map(len, parts)) - sum(cuts),
    )
    assert np.abs(deviations_of(document, plant)).max() < MAX_DEVIATIONS
    assert total_deviation(document) < total_deviation(alone)


def total_deviation(document: dict[str, Any]) -> float:
    """Return the sum of the standard deviations of all base parameters."""
    return sum(row["standard_deviation"] for row in document["base_parameters"])


def test_a_log_without_a_preparation_takes_the_first_ones(together, model, recordings):
    bare = recordings[1].with_suffix(".csv")
    first = identified(model, recordings[0], bare, unknowns="file")
    assert values(first) != values(together)
    same: dict[str, Any] = {"cutoff": 30.0, "trim": 40, "decimation": 4, "unknowns": "file"}
    assert values(first) == values(
        identified(model, recordings[0].with_suffix(".csv"), bare, **same)
    )


def test_a_log_to_judge_by_has_its_own_preparation(recordings, model):
    document = identified(model, recordings[0], validation=recordings[1], unknowns="file")
    log = read_log(recordings[1].with_suffix(".csv"))
    judged = regression_data(model, log, SECOND, ties=parameter_ties(model))
    assert document["provenance"]["inputs"]["held_out_samples"] == len(judged)


def test_findings_say_which_log_they_are_of(model, recordings):
    log = read_log(recordings[1].with_suffix(".csv"))
    name = "force.motor_2"
    log[name].values[200] += 10.0 * float(log[name].max())
    document = identified(model, recordings[0], log)
    assert document["findings"][0]["where"] == f"log 2: {name}"


def test_instruments_of_several_logs(model, recordings, plant):
    commanded = tuple(path.with_suffix(".csv") for path in recordings)
    document = identified(model, *recordings, estimator="iv", commanded=commanded, unknowns="file")
    # The measured motion serves as its own instrument.
    assert np.abs(deviations_of(document, plant)).max() < MAX_DEVIATIONS
    with pytest.raises(InputError, match="1 recording for 2 logs"):
        identified(model, *recordings, estimator="iv", commanded=commanded[:1])


def test_tables_of_several_logs(recordings):
    text = tables_of(identify(load("five_bar"), recordings, options_of()))
    for line in (
        "Fitted to all 2 logs",
        "Fitted to the first 70 % of each log, validated on the rest",
    ):
        assert line in text


def test_errors_of_a_known_filter_need_one_decimation(model, recordings):
    with pytest.raises(InputError, match=r"decimated by 4 .* and 5 "):
        identified(model, *recordings, errors="decimated")
    assert identified(model, *recordings, errors="decimated", decimation=4)["status"] == "ok"


def test_one_log_stays_as_it_is(recordings, model):
    data = regression_data(model, read_log(recordings[0].with_suffix(".csv")), FIRST)
    assert merge_data([data]) is data
    (first,), (rest,) = split_each([data], 0.6)
    assert (len(first), len(rest)) == tuple(len(part) for part in split_data(data, 0.6))
    assert len(first) + len(rest) == len(data)


# Periods


@pytest.fixture(scope="module")
def averaged(model, periodic_log) -> MachineIdentification:
    inputs = options_of(period=PERIOD, max_frequency=1.1, errors="independent", unknowns="file")
    return identify(model, periodic_log, inputs)


@pytest.fixture(scope="module")
def periodic(averaged) -> dict[str, Any]:
    return averaged.as_dict()


def test_periods_are_averaged_and_show_the_noise(periodic, plant):
    (shown,) = periodic["periods"]
    assert shown["periods"] == PERIODS
    for k, name in enumerate(("motor_1", "motor_2")):
        assert shown["noise"][f"force.{name}"] == pytest.approx(NOISE[k], rel=NOISE_TOLERANCE)
    assert np.abs(deviations_of(periodic, plant)).max() < MAX_DEVIATIONS


def test_forces_are_weighted_by_the_noise_of_the_periods(periodic):
    assert periodic["estimator"]["name"] == "KnownNoise"
    (shown,) = periodic["periods"]
    for output in periodic["outputs"]:
        averaged = shown["noise"][f"force.{output['name']}"] / np.sqrt(PERIODS)
        assert output["weight"] == pytest.approx(1.0 / averaged)
        # Only the noise remains in the residuals.
        assert output["noise"] == pytest.approx(averaged, rel=3 * NOISE_TOLERANCE)


def test_the_table_of_periods_and_two_periodic_logs(averaged, model, periodic_log):
    assert "Averages over periods, and noise from their scatter" in tables_of(averaged)
    with pytest.raises(InputError) as caught:
        identified(
            model,
            periodic_log,
            periodic_log,
            period=PERIOD,
            max_frequency=1.1,
            validation=periodic_log,
        )
    problems = [problem.what.partition(" in all")[0] for problem in caught.value.problems]
    assert problems == [f"is identical to log.csv (log {number})" for number in (1, 1, 2)]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"period": 4.0}, "only one of period and max_frequency is given"),
        (
            {"period": 4.0, "max_frequency": 1.1, "cutoff": 20.0},
            "cutoff cannot be combined with a period",
        ),
        (
            {"period": 4.0, "max_frequency": 1.1, "scan_cutoffs": (20.0,)},
            "scan_cutoffs cannot be combined with a period",
        ),
        ({"period": 40.0, "max_frequency": 1.1}, "contain fewer than two periods of 40 s"),
        (
            {"period": 4.0, "max_frequency": 100.0},
            "100 Hz is not between zero and half the sampling rate",
        ),
        ({"scan_standstills": (1e-3,)}, "add scan_cutoffs"),
    ],
)
def test_options_of_periods_that_have_no_meaning(model, periodic_log, options, says):
    with pytest.raises(InputError, match=says):
        identified(model, periodic_log, **options)


def test_noise_that_is_not_known_is_refused(recordings, model):
    with pytest.raises(IdentificationError, match="noise: is 0"):
        KnownNoise(noise=(1.0, 0.0))
    data = regression_data(model, read_log(recordings[0].with_suffix(".csv")), FIRST)
    with pytest.raises(IdentificationError, match="has 3 entries for 2 measured outputs"):
        fit_regression(data, None, KnownNoise(noise=(1.0, 1.0, 1.0)))


# Rest


@pytest.fixture(scope="module")
def resting(plant) -> xr.Dataset:
    """Return a log with long rests, in which the drives creep without Coulomb friction."""
    moved = motion(plant, 5, 12.0, 0.4)
    center = plant.actuator_position(plant.assembly.q)
    window = np.clip(4.0 * np.sin(2.0 * np.pi * moved.time / 3.0) ** 2 - 1.5, 0.0, 1.0)[:, None]
    smooth = window**2 * (3.0 - 2.0 * window)
    position = center + smooth * (moved.position - center)
    velocity = np.gradient(position, 1.0 / RATE, axis=0)
    acceleration = np.gradient(velocity, 1.0 / RATE, axis=0)
    creeping = (
        position
        + 2e-5 * np.cumsum(np.random.default_rng(1).standard_normal(position.shape), axis=0) / RATE
    )
    rests = SampledMotion(
        time=moved.time, position=position, velocity=velocity, acceleration=acceleration
    )
    log = measured(plant, rests, 6)
    for k, name in enumerate(("motor_1", "motor_2")):
        log[f"position.{name}"].values[:] = creeping[:, k]
    return log


def test_the_threshold_of_rest_is_chosen_by_validation_alone(resting, model):
    preparation = Preparation(cutoff=30.0, trim=40, decimation=4)
    levels = (0.0, 1e-3, 0.3)
    scan = scan_filters(
        model, resting, preparation, orders=(4,), cutoffs=(30.0,), standstills=levels
    )
    assert [trial.standstill for trial in scan.trials] == list(levels)
    best = scan.trials[scan.chosen]
    # With 0, creep has friction; with 0.3, motion counts as rest.
    assert best.standstill == 1e-3
    assert scan.least_errors("standstill") == {
        trial.standstill: trial.validation_error for trial in scan.trials
    }
    cut = round(0.7 * len(resting["time"]))
    spoilt = resting.copy(deep=True)
    # Only the held-out part is changed: the errors differ, the choice does not.
    spoilt["force.motor_1"].values[cut + 60 :] *= -3.0
    again = scan_filters(
        model, spoilt, preparation, orders=(4,), cutoffs=(30.0,), standstills=levels
    )
    assert again.chosen == scan.chosen
    assert again.trials[0].held_out_percent[0] > 2.0 * scan.trials[0].held_out_percent[0]


def test_what_was_chosen_is_explained(resting, model):
    scanned = options_of(
        trim=40,
        decimation=4,
        scan_cutoffs=(30.0,),
        scan_orders=(2, 4),
        scan_standstills=(0.0, 1e-3, 0.3),
    )
    words = " ".join(tables_of(identify(model, resting, scanned)).split())
    assert (
        "at 30 Hz, standstill below 0.001 of the largest speed. It has the smallest error on the validation part"
        in words
    )
    assert "smallest validation error, %, by order:" in words
    assert "smallest validation error, %, by standstill: 0 " in words
