"""Where an instrument stands, by the nominal machine: the start of a calibration with an unknown instrument frame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from tauloop.calibrate.checks import kabsch
from tauloop.calibrate.instruments import Frame, Orientation, Pose, Position
from tauloop.calibrate.measurements import Series
from tauloop.calibrate.problem import calibration_problem
from tauloop.errors import InputError, Problem
from tauloop.mechanism.model import Mechanism


def aligned(mechanism: Mechanism, series: Series) -> Series:
    """The same series with the instrument's frame where its readings fit the nominal machine best.

    Positions by Kabsch's method; an orientation alone by the mean turn between measured and nominal.

    Raises:
        InputError: the instrument has no frame, or reads too little to place it (three components, three poses).
        PoseError: poses are out of reach of the nominal geometry.
    """
    instrument = series.instrument
    if not isinstance(instrument, Position | Pose | Orientation):
        raise InputError(
            Problem(where=instrument.name, what="has no frame of its own", remedy="align positions and orientations")
        )
    partial = isinstance(instrument, Position) and sorted(instrument.components) != ["x", "y", "z"]
    if partial or len(series) < 3:
        raise InputError(
            Problem(
                where=instrument.name,
                what=f"{len(series)} poses of {len(instrument.columns)} numbers do not place a frame",
                remedy="read all of x, y, z at three poses or more, or state the frame",
            )
        )
    probe = calibration_problem(mechanism, [series], [f"{instrument.name}.frame.x"])
    q = probe.evaluate(np.zeros(1)).states[0].q
    if isinstance(instrument, Orientation):
        R_old = Rotation.from_quat(np.roll(instrument.frame.quaternion, -1))
        measured = Rotation.from_quat(np.roll(series.readings, -1, axis=1))
        half = probe.evaluate(np.zeros(1)).states[0].errors
        size = np.linalg.norm(half, axis=1, keepdims=True)
        turn = half * np.where(size > 0, 2 * np.arcsin(np.clip(size / 2, 0, 1)) / np.maximum(size, 1e-300), 1.0)
        tool = R_old * measured * Rotation.from_rotvec(turn)
        R = (tool * measured.inv()).mean().as_matrix()
        position = np.array(instrument.frame.position)
    else:
        order = [instrument.components.index(c) for c in "xyz"] if isinstance(instrument, Position) else [0, 1, 2]
        points, readings = probe.stations[0].points(np.zeros(1), q), series.readings[:, order]
        R, _, _ = kabsch(readings, points)
        position = points.mean(axis=0) - R @ readings.mean(axis=0)
    x, y, z, w = (float(value) for value in Rotation.from_matrix(R).as_quat())
    p0, p1, p2 = (float(value) for value in position)
    frame = Frame(position=(p0, p1, p2), quaternion=(w, x, y, z))
    return replace(series, instrument=replace(instrument, frame=frame))
