"""Faults of single channels, logs without faults, known values, payloads and gains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from identifying import identified, options_of

from tauloop import Model, load
from tauloop.common.errors import IdentificationError, InputError
from tauloop.identification import (
    OrdinaryLeastSquares,
    fit_regression,
    merge_data,
    parameter_ties,
    regression_data,
)
from tauloop.identification.faults.channels import wrong_channels
from tauloop.identification.faults.measured_motion import measured_motion
from tauloop.identification.faults.recording.signals import channels_with_spikes, clipped_channels
from tauloop.identification.parameters.known import drive_gains, known_parameters, with_payload
from tauloop.logs import Preparation, Sensors, measure, prepared_signals, read_signals, write_log
from tauloop.motion import SampledMotion, random_multisine

RATE, DURATION = 200.0, 10.0  # Hz, s
PREPARATION = Preparation(cutoff=20.0, trim=40, decimation=2)
OPTIONS: dict[str, Any] = {"cutoff": 20.0, "trim": 40, "decimation": 2}
#: Noise of the torques, N m, and of the positions, rad.
FORCE_NOISE, ENCODER = 5e-3, 1e-5
#: Delay of a channel, in samples.
SHIFT = 10
#: Estimates are within this number of standard deviations of the truth.
MAX_DEVIATIONS = 5.0
#: Relative difference of two calculations of the same fit: rounding times the condition number.
ROUNDING_TOLERANCE = 1e-8
PAYLOAD = 0.4  # kg, a point at the tip
GAINS = np.array([1.3, 0.7])


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(load("five_bar"))


def recorded(model: Model, seed: int) -> xr.Dataset:
    """Return a log without faults of a multisine."""
    rng = np.random.default_rng(seed)
    center = model.actuator_position(model.assembly.q)
    excitation = random_multisine(center, np.full(2, 0.35), rng, terms=5, lowest=0.2, highest=1.6)
    moved: SampledMotion = excitation.sample(np.arange(0.0, DURATION, 1.0 / RATE))
    forces = model.actuators.inverse_dynamics(moved.position, moved.velocity, moved.acceleration)
    log = measure(
        moved.time,
        moved.position,
        forces.force,
        forces.actuator_names,
        model.actuators.ports.position.units,
        ("N m", "N m"),
        Sensors(resolution=np.zeros(2), force_noise=np.full(2, FORCE_NOISE)),
        rng,
    )
    for name in ("position.motor_1", "position.motor_2"):
        log[name].values = log[name].values + ENCODER * rng.standard_normal(len(log[name]))
    return log


@pytest.fixture(scope="module")
def sound(model: Model) -> xr.Dataset:
    return recorded(model, 4)


def changed(log: xr.Dataset, **channels: np.ndarray) -> xr.Dataset:
    result = log.copy(deep=True)
    for name, values in channels.items():
        result[name.replace("__", ".")].values = values
    return result


def late(values: np.ndarray) -> np.ndarray:
    return np.roll(values, SHIFT)


def exchanged(log: xr.Dataset, kind: str) -> xr.Dataset:
    names = [f"{kind}.motor_{i}" for i in (1, 2)]
    first, second = (log[name].values for name in names)
    return changed(log, **{names[0]: second, names[1]: first})


def each(
    kind: str, number: int, change: Callable[[np.ndarray], np.ndarray]
) -> Callable[[xr.Dataset], xr.Dataset]:
    name = f"{kind}.motor_{number}"
    return lambda log: changed(log, **{name: change(log[name].values)})


def found_in(model: Model, log: xr.Dataset, ties: bool) -> dict[str, str]:
    motion = measured_motion(
        model, prepared_signals(log, PREPARATION), decimation=PREPARATION.decimation
    )
    text = wrong_channels(
        model, motion, ties=parameter_ties(model) if ties else None, step=PREPARATION.decimation
    )
    return {problem.where: problem.what for problem in text}


FAULTS = {
    "torque turned": (each("force", 1, np.negative), "force.motor_1", "has the wrong sign"),
    "position turned": (each("position", 1, np.negative), "position.motor_1", "has the wrong sign"),
    "torque late": (
        each("force", 2, late),
        "force.motor_2",
        f"lags the other channels by {SHIFT} samples",
    ),
    "position late": (
        each("position", 2, late),
        "position.motor_2",
        f"lags the other channels by {SHIFT} samples",
    ),
    "torques exchanged": (
        lambda log: exchanged(log, "force"),
        "force.motor_1",
        "is swapped with force.motor_2",
    ),
}


@pytest.mark.parametrize("ties", [True, False], ids=["file", "standard"])
def test_nothing_is_said_of_a_sound_log(model: Model, sound: xr.Dataset, ties: bool) -> None:
    assert found_in(model, sound, ties) == {}
    rng = np.random.default_rng(1)
    noisy = changed(
        sound,
        **{
            name: sound[name].values + 1e-3 * rng.standard_normal(len(sound[name]))
            for name in sound
            if "posi" in name
        },
    )
    # noise of the positions in the regressor feigns delays
    assert found_in(model, noisy, ties) == {}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("ties", [True, False], ids=["file", "standard"])
def test_the_wrong_channel_is_named(
    model: Model, sound: xr.Dataset, fault: str, ties: bool
) -> None:
    spoil, where, what = FAULTS[fault]
    text = found_in(model, spoil(sound), ties)
    assert list(text) == [where]
    assert what in text[where]


def test_a_scale_far_from_one(model: Model, sound: xr.Dataset) -> None:
    """Forces do not show which of two drives is wrong: one is too large, or the other too small."""
    ((where, what),) = found_in(model, each("force", 1, lambda x: 3.0 * x)(sound), True).items()
    factor = float(what.split()[1])
    assert factor == pytest.approx(3.0 if where == "force.motor_1" else 1.0 / 3.0, rel=0.02)


def test_a_limit_under_noise_and_a_limit_of_the_machine(sound: xr.Dataset) -> None:
    name, rng = "force.motor_2", np.random.default_rng(0)
    assert clipped_channels(sound) == ()
    values = sound[name].values
    limit = float(np.quantile(values, 0.85))
    below = np.minimum(values, limit) + 1e-3 * rng.standard_normal(len(values))
    (problem,) = clipped_channels(changed(sound, **{name: below}))
    assert problem.where == name
    assert "with noise of up to" in problem.what
    noisier = np.minimum(values, limit) + 5e-3 * limit * rng.uniform(-1.0, 1.0, len(values))
    (problem,) = clipped_channels(changed(sound, **{name: noisier}), limits={"motor_2": limit})
    assert f"at the limit of {limit:.6g} in the machine file" in problem.what
    # the machine rests at its largest torque: nothing holds it there
    still = np.concatenate(
        [sound[name].values, np.full(400, 1.2 * values.max()) + 1e-4 * rng.standard_normal(400)]
    )
    longer = xr.concat([sound, sound.isel(time=slice(-400, None))], "time", data_vars="all")
    resting = {
        case: np.concatenate([sound[case].values, np.full(400, sound[case].values[-1])])
        for case in sound
        if "posi" in case
    }
    assert clipped_channels(changed(longer, **resting, **{name: still})) == ()


def test_a_spike_is_named_and_a_jump_of_friction_is_not(sound: xr.Dataset) -> None:
    assert channels_with_spikes(sound) == ()
    steps = np.sign(np.sin(np.arange(len(sound.time)) / 7.0))
    assert channels_with_spikes(changed(sound, **{"force.motor_1": steps})) == ()
    values = sound["force.motor_2"].values.copy()
    values[700] = 80.0
    (problem,) = channels_with_spikes(changed(sound, **{"force.motor_2": values}))
    assert problem.where == "force.motor_2"
    assert "1 of them, the first 80 at 3.5 s" in problem.what


# In identifications


@pytest.mark.parametrize(
    ("spoil", "where", "what"),
    [
        (FAULTS["position turned"][0], "position.motor_1", "has the wrong sign"),
        (
            lambda log: changed(
                log, **{f"force.motor_{i}": -log[f"force.motor_{i}"].values for i in (1, 2)}
            ),
            "force.motor_1",
            "gains energy from friction",
        ),
        (
            lambda log: changed(
                log,
                **{
                    f"force.motor_{i}": np.random.default_rng(i).normal(size=len(log.time))
                    for i in (1, 2)
                },
            ),
            "force.motor_1",
            "is hardly explained by the motion",
        ),
        (
            lambda log: changed(
                log, **{f"{kind}.motor_2": np.full(len(log.time), 0.9) for kind in ("position",)}
            ),
            "log",
            "the motion does not excite",
        ),
    ],
    ids=["one turned", "all turned", "noise", "one rests"],
)
def test_faults_make_the_result_doubtful(
    model: Model,
    sound: xr.Dataset,
    spoil: Callable[[xr.Dataset], xr.Dataset],
    where: str,
    what: str,
) -> None:
    document = identified(
        model, spoil(sound), **OPTIONS, unknowns="file" if where != "log" else "standard"
    )
    assert document["status"] == "doubtful"
    assert any(line.startswith("faults of the data") for line in document["advice"])
    assert any(
        finding["where"] == where and what in finding["what"] for finding in document["findings"]
    )


def test_faults_are_named_where_nothing_can_be_fitted(model: Model, sound: xr.Dataset) -> None:
    """With the wrong sign of one of two torques, no parameter is known to its own size."""
    with pytest.raises(IdentificationError) as caught:
        identified(model, FAULTS["torque turned"][0](sound), **OPTIONS, unknowns="file")
    assert caught.value.problems[0].where == "force.motor_1"
    assert "has the wrong sign" in caught.value.problems[0].what


@pytest.fixture(scope="module")
def pair(model: Model, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the files of a log without a payload and of one with a payload at the tip."""
    folder = tmp_path_factory.mktemp("payload")
    tip = model.mechanism.parameters["tip_mass"].value
    loaded = Model(model.mechanism.with_values({"tip_mass": tip + PAYLOAD}))
    free, carrying = recorded(model, 7), recorded(loaded, 8)
    return write_log(folder / "free.csv", free), write_log(folder / "loaded.csv", carrying)


def rows_of(document: dict[str, Any]) -> dict[str, tuple[float, float]]:
    return {
        row["representative"]: (row["value"], row["standard_deviation"])
        for row in document["base_parameters"]
    }


def test_a_payload_in_one_of_two_logs(model: Model, pair: tuple[Path, Path]) -> None:
    document = rows_of(
        identified(model, *pair, **OPTIONS, unknowns="file", payload_body={"loaded.csv": "link_1"})
    )
    for name, truth in {
        "payload.m": PAYLOAD,
        "payload.mcx": 0.0,
        "payload.mcy": 0.0,
        "payload.Izz": 0.0,
    }.items():
        value, deviation = document[name]
        assert abs(value - truth) < MAX_DEVIATIONS * deviation
    assert document["payload.m"][1] < 0.01 * PAYLOAD


def point(mass: float) -> dict[str, float | str]:
    others = ("mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
    return {"payload.m": f"{1e3 * mass} g", **{f"payload.{name}": 0.0 for name in others}}


def test_gains_from_a_known_payload(model: Model, pair: tuple[Path, Path], tmp_path: Path) -> None:
    scaled = []
    for path in pair:
        log = read_signals(path).dataset()
        for k, gain in enumerate(GAINS):
            log[f"force.motor_{k + 1}"].values = log[f"force.motor_{k + 1}"].values / gain
        scaled.append(write_log(tmp_path / path.name, log))
    payload: dict[str, Any] = {"payload_body": {"loaded.csv": "link_1"}, "known": point(PAYLOAD)}
    document = identified(model, *scaled, **OPTIONS, **payload, unknowns="file", gains=True)
    gains = document["gains"]
    assert np.all(
        np.abs(gains["values"] - GAINS) < MAX_DEVIATIONS * np.array(gains["standard_deviations"])
    )
    assert np.all(np.array(gains["standard_deviations"]) < 0.01 * GAINS)
    # a known mass that unknown ones can replace sets no scale
    data = regression_data(model, read_signals(scaled[0]), PREPARATION, ties=parameter_ties(model))
    with pytest.raises(IdentificationError, match="unknown parameters can produce all but"):
        drive_gains(known_parameters(data, {"tip_mass": 0.3}))
    with pytest.raises(IdentificationError, match="no known parameter affects the forces"):
        drive_gains(data)


def test_known_parameters_leave_the_unknowns(model: Model, pair: tuple[Path, Path]) -> None:
    free = rows_of(
        identified(model, pair[0], **OPTIONS, unknowns="file", known={"tip_mass": "300 g"})
    )
    assert "tip_mass" not in free
    data = known_parameters(
        regression_data(model, read_signals(pair[0]), PREPARATION, ties=parameter_ties(model)),
        {"tip_mass": 0.3},
    )
    assert "tip_mass" not in data.unknowns
    value, deviation = free["link_mass"]
    assert abs(value - model.mechanism.parameters["link_mass"].value) < MAX_DEVIATIONS * deviation
    fixed = rows_of(
        identified(model, pair[0], **OPTIONS, known={"shoulder_1.viscous": "0.01 N m s/rad"})
    )
    assert "shoulder_1.viscous" not in fixed


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"unknowns": "file", "known": {"tip_mas": 1.0}}, "did you mean tip_mass"),
        ({"unknowns": "file", "known": {"tip_mass": "1 m"}}, r"is a length \(m\)"),
        ({"payload_body": {"other.csv": "link_1"}}, "'other.csv' is not one of the logs"),
        ({"payload_body": {"free.csv": "link_1"}}, "is carried in 1 of 1 logs"),
        ({"payload_body": {"free.csv": "link_9"}}, "is not a body of the machine"),
        ({"gains": True}, "no known parameter affects the forces"),
    ],
    ids=["misspelt", "unit", "log", "both", "body", "gains"],
)
def test_what_is_refused(
    model: Model, pair: tuple[Path, Path], options: dict[str, Any], says: str
) -> None:
    with pytest.raises((InputError, IdentificationError), match=says):
        identified(model, pair[0], **OPTIONS, **options)


def test_gains_have_no_meaning_beside_output_joints() -> None:
    with pytest.raises(InputError, match="gains: cannot be combined with output='joints'"):
        options_of(gains=True, output="joints")


def test_a_payload_needs_a_log_without_it(model: Model, sound: xr.Dataset) -> None:
    data = regression_data(model, sound, PREPARATION)
    with pytest.raises(IdentificationError, match="carried in 2 of 2 logs"):
        with_payload([data, data], "link_1", [True, True])


# Logs that measure different torques


def test_logs_with_other_torques_are_merged(model: Model) -> None:
    first, second = recorded(model, 11), recorded(model, 12)
    data = [
        regression_data(model, log, PREPARATION, ties=parameter_ties(model))
        for log in (first, second)
    ]
    without = [
        regression_data(model, log.drop_vars(name), PREPARATION, ties=parameter_ties(model))
        for log, name in ((first, "force.motor_2"), (second, "force.motor_1"))
    ]
    both = merge_data(without)
    assert both.counts.tolist() == [len(data[0]), len(data[1])]
    fitted = fit_regression(both, None, OrdinaryLeastSquares())
    # the same equations by hand
    rows = [
        (part.regressor[:, k] @ part.ties.matrix[:, fitted.base.independent], part.forces[:, k])
        for part, k in zip(data, (0, 1), strict=True)
    ]
    regressor, forces = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    values = np.linalg.lstsq(regressor, forces, rcond=None)[0]
    np.testing.assert_allclose(
        fitted.values, values, rtol=ROUNDING_TOLERANCE, atol=ROUNDING_TOLERANCE
    )
    for judged, (columns, measured_forces) in zip(fitted.training, rows, strict=True):
        residual = measured_forces - columns @ values
        assert judged.samples == len(residual)
        assert judged.rmse == pytest.approx(np.sqrt(np.mean(residual**2)), rel=1e-6)
    # standard deviations too are those of that many samples: both noises are alike, so that one
    # variance will do
    noise = np.sum((forces - regressor @ values) ** 2) / (len(forces) - len(values))
    deviations = np.sqrt(noise * np.diag(np.linalg.inv(regressor.T @ regressor)))
    np.testing.assert_allclose(fitted.standard_deviations, deviations, rtol=0.1)
    # and with the end of each log held out
    logs = [first.drop_vars("force.motor_2"), second.drop_vars("force.motor_1")]
    document = identified(model, *logs, **OPTIONS, unknowns="file")
    assert [output["name"] for output in document["outputs"]] == ["motor_1", "motor_2"]
    tip = rows_of(document)["tip_mass" if "tip_mass" in rows_of(document) else "link_mass"]
    assert tip[1] < 0.05 * abs(tip[0])
    other = recorded(model, 13).drop_vars("force.motor_2")
    message = "lacks forces that the fitted logs contain: motor_2"
    with pytest.raises(InputError, match=message):
        identified(model, *logs, **OPTIONS, unknowns="file", validation=other)
