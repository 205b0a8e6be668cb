"""Quaternions in another order and inverse rotations are named; the reference is SciPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tauloop import Model, load
from tauloop.calibration import (
    CalibrationOptions,
    Frame,
    Orientation,
    Pose,
    Series,
    calibrate,
    simulated_series,
)
from tauloop.calibration.measurements.reading import read_measurements
from tauloop.common.errors import IdentificationError, InputError
from tauloop.kinematics import random_states

FRAME = Frame(position=(0.3, -0.2, 0.1), quaternion=(np.cos(0.2), 0.0, 0.0, np.sin(0.2)))


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(load("hexapod"))


def series_of(model: Model, instrument: Pose | Orientation) -> Series:
    rng = np.random.default_rng(0)
    return simulated_series(model, instrument, random_states(model, 12, rng).q, 2e-5, rng)


def last(rotations: Rotation) -> np.ndarray:
    return np.asarray(rotations.as_quat())


def inverse(rotations: Rotation) -> np.ndarray:
    return np.roll(rotations.inv().as_quat(), 1, axis=1)


def exchanged(rotations: Rotation) -> np.ndarray:
    return np.asarray(rotations.as_quat()[:, [3, 1, 0, 2]])


def negated(rotations: Rotation) -> np.ndarray:
    return np.roll(rotations.as_quat() * [1.0, -1.0, 1.0, 1.0], 1, axis=1)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (last, "in the order x, y, z, w"),
        (inverse, "inverse rotations"),
        (exchanged, "with qx and qy exchanged"),
        (negated, "with the opposite sign of qy"),
    ],
)
@pytest.mark.parametrize("kind", [Pose, Orientation])
def test_other_conventions_are_named(model, change, name, kind) -> None:
    """Positions state the instrument's frame; without them both explanations are given."""
    sound = series_of(model, kind(name="tracker", frame=FRAME))
    first = sound.readings.shape[1] - 4
    rotations = Rotation.from_quat(np.roll(sound.readings[:, first:], -1, axis=1))
    readings = np.concatenate([sound.readings[:, :first], change(rotations)], axis=1)
    with pytest.raises(IdentificationError) as refused:
        calibrate(
            model,
            [replace(sound, readings=readings)],
            CalibrationOptions(parameters=("tracker.frame.rz",)),
        )
    (problem,) = (p for p in refused.value.problems if "orientations look like" in p.what)
    assert name in problem.what
    assert (" or " in problem.what) == (kind is Orientation)


def test_signs_and_frames_do_not_matter(model) -> None:
    sound = series_of(model, Pose(name="tracker", frame=FRAME))
    readings = sound.readings.copy()
    readings[::2, 3:] *= -1.0
    parameters = ("tracker.frame.*",)
    start = Pose(name="tracker")
    result = calibrate(
        model,
        [replace(sound, readings=readings, instrument=start)],
        CalibrationOptions(parameters=parameters, align=True),
    )
    assert result.status.value == "ok"


@pytest.mark.parametrize(
    "noise", ["0.02 mm,0.1 mrad", ("0.02 mm", 1e-4), (2e-5,) * 3 + (1e-4,) * 3]
)
def test_poses_in_a_table_have_one_noise_for_each_unit(tmp_path, noise) -> None:
    """Against SI numbers, and a file that lists the noise of each error."""
    hexapod = load("hexapod")
    motors = [actuator.name for actuator in hexapod.actuators]
    headers = [f"encoder.{name} [m]" for name in motors] + [f"measured.{c} [mm]" for c in "xyz"]
    headers += [f"measured.{c} [1]" for c in ("qw", "qx", "qy", "qz")]
    row = [0.42] * len(motors) + [1.0, 2.0, 500.0, 1.0, 0.0, 0.0, 0.0]
    table = tmp_path / "poses.csv"
    table.write_text(f"{','.join(headers)}\n{','.join(map(str, row))}\n")
    (series,) = read_measurements(table, hexapod, kind="pose", noise=noise).series
    assert series.sigma.tolist() == pytest.approx([2e-5] * 3 + [1e-4] * 3, rel=1e-15)
    (tmp_path / "poses.yaml").write_text(
        "format: tauloop-measurements/1\nseries:\n  - {path: poses.csv, kind: pose, "
        "noise: [20 um, 20 um, 20 um, 0.1 mrad, 0.1 mrad, 0.1 mrad]}\n"
    )
    (described,) = read_measurements(tmp_path / "poses.yaml", hexapod).series
    np.testing.assert_allclose(series.sigma, described.sigma, rtol=1e-15)
    np.testing.assert_array_equal(series.readings, described.readings)


@pytest.mark.parametrize("noise", ["0.02 mm", 2e-5, "0.02 mm,0.1 mrad,0.1 mrad"])
def test_a_length_is_not_the_noise_of_an_angle(tmp_path, noise) -> None:
    table = tmp_path / "poses.csv"
    table.write_text("measured.x [mm]\n1\n")
    with pytest.raises(InputError, match="but the 6 errors have the units m, rad"):
        read_measurements(table, load("hexapod"), kind="pose", noise=noise)
