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
from tauloop.common.errors import IdentificationError
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


@pytest.mark.parametrize(
    ("change", "name"), [(last, "in the order x, y, z, w"), (inverse, "inverse rotations")]
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
