"""Where an instrument stands, by the nominal machine: the start of a calibration with an unknown instrument frame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from tauloop.calibration.measurements.instruments import Frame, Framed, Pose
from tauloop.calibration.measurements.series import Series
from tauloop.calibration.problem.problem import calibration_problem
from tauloop.calibration.solving.registration import kabsch
from tauloop.errors import InputError
from tauloop.mechanism.model import Mechanism

#: A target's turn beyond this, rad, is no error of mounting, and far for a search that starts without any.
FAR = 0.2


def aligned(mechanism: Mechanism, series: Series) -> Series:
    """The same series with the instrument's frame where its readings fit the nominal machine best.

    Positions by Kabsch's method; an orientation alone by the mean turn between measured and nominal. Of poses the
    target's own turn is started too where it is far from none: the mean turn from the tool to what was read.

    Raises:
        InputError: the instrument has no frame, or reads too little to place it (three components, three poses).
        PoseError: poses are out of reach of the nominal geometry.
    """
    instrument = series.instrument
    columns, quaternion = list(instrument.position_columns), instrument.quaternion_column
    if not isinstance(instrument, Framed):
        raise InputError.of(instrument.name, "has no frame of its own", "align positions and orientations")
    if (not columns and quaternion is None) or len(series) < 3:
        what = f"{len(series)} poses of {len(instrument.columns)} numbers do not place a frame"
        raise InputError.of(instrument.name, what, "read all of x, y, z at three poses or more, or state the frame")
    probe = calibration_problem(mechanism, [series], [f"{instrument.name}.frame.x"])
    state = probe.evaluate(np.zeros(1)).states[0]
    q = state.q
    if not columns:
        measured, seen = _orientations(series, state.errors)
        R = (_rotation(instrument.frame.quaternion) * seen * measured.inv()).mean().as_matrix()
        position = np.array(instrument.frame.position)
    else:
        points, readings = probe.stations[0].points(np.zeros(1), q), series.readings[:, columns]
        R, _, _ = kabsch(readings, points)
        position = points.mean(axis=0) - R @ readings.mean(axis=0)
    p0, p1, p2 = (float(value) for value in position)
    placed = replace(instrument, frame=Frame(position=(p0, p1, p2), quaternion=_quaternion(Rotation.from_matrix(R))))
    if isinstance(placed, Pose):
        measured, seen = _orientations(series, state.errors[:, 3:])
        tool = _rotation(instrument.frame.quaternion) * seen * _rotation(placed.target_quaternion).inv()
        turn = (tool.inv() * Rotation.from_matrix(R) * measured).mean()
        if (turn * _rotation(placed.target_quaternion).inv()).magnitude() > FAR:
            placed = replace(placed, target_quaternion=_quaternion(turn))
    return replace(series, instrument=placed)


def _orientations(series: Series, errors: np.ndarray) -> tuple[Rotation, Rotation]:
    """Orientations (N,) that were read, and those that are predicted, from the errors (N, 3) between them."""
    measured = Rotation.from_quat(np.roll(series.readings[:, -4:], -1, axis=1))
    size = np.linalg.norm(errors, axis=1, keepdims=True)
    turn = errors * np.where(size > 0, 2 * np.arcsin(np.clip(size / 2, 0, 1)) / np.maximum(size, 1e-300), 1.0)
    return measured, measured * Rotation.from_rotvec(turn)


def _rotation(quaternion: tuple[float, float, float, float]) -> Rotation:
    return Rotation.from_quat(quaternion, scalar_first=True)


def _quaternion(rotation: Rotation) -> tuple[float, float, float, float]:
    w, x, y, z = (float(value) for value in rotation.as_quat(scalar_first=True))
    return w, x, y, z
