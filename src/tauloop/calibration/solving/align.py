"""Where instruments stand, by the nominal machine: the start of a calibration with unknown instrument frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from tauloop.calibration.measurements.instruments import Frame, Framed, Pose
from tauloop.calibration.measurements.series import Series
from tauloop.calibration.problem.measured_poses import MeasuredPose, MeasuredPoseState
from tauloop.calibration.problem.problem import (
    CalibrationProblem,
    calibration_problem,
    encoder_nuisances,
)
from tauloop.calibration.problem.unknowns import Tolerances, Unknown, select_unknowns
from tauloop.calibration.solving.registration import kabsch
from tauloop.common.errors import InputError, Problems
from tauloop.mechanism.model import Mechanism

#: A target's turn beyond this, rad, is no error of mounting, and far for a search that starts
#: without any.
FAR = 0.2
#: Poses that place a frame.
LEAST_POSES = 3


def aligned(mechanism: Mechanism, series: Series) -> Series:
    """Return the series with the instrument's frame where its readings fit the nominal machine best.

    See `aligned_together`, of which this is the case of one series.

    Raises:
        InputError: the instrument has no frame, or reads too little to place it (three components,
            three poses).
        PoseError: poses are out of reach of the nominal geometry.
    """
    return aligned_together(mechanism, [series])[0]


def aligned_together(
    mechanism: Mechanism,
    series: Sequence[Series],
    *parameter_sets: Iterable[str],
    equilibrium: bool = False,
) -> tuple[Series, ...]:
    """Return all series, with the instruments' frames where the readings fit the nominal machine best.

    Positions by Kabsch's method; an orientation alone by the mean turn between measured and
    nominal. Of poses the target's own turn is started too where it is far from none: the mean turn
    from the tool to what was read.

    Series of one instrument, and series whose frames an unknown ties, are aligned together, for a
    tie gives all its members the same correction: frames that start at one place stay at one place.
    Likewise for tied turns of targets.

    Args:
        mechanism: the nominal machine.
        series: measurements.
        parameter_sets: unknowns that the calibration names, by pattern, as for `select_unknowns`;
            of several calibrations to compare, the unknowns of each.
        equilibrium: whether the machine hangs still at every pose, as for `calibration_problem`.

    Raises:
        InputError: an instrument has no frame, or reads too little to place it (three components,
            three poses); names of parameters that are wrong.
        PoseError: poses are out of reach of the nominal geometry.
    """
    InputError.raise_if_any(_without_frame(series))
    names = dict.fromkeys(item.instrument.name for item in series)
    frames = [f"{name}.frame.x" for name in names]
    probe = calibration_problem(mechanism, series, frames, equilibrium=equilibrium)
    unknowns = [unknown for patterns in parameter_sets for unknown in _unknowns(probe, patterns)]
    states = probe.evaluate(np.zeros(len(names))).states
    placed = list(series)
    for group in _tied(series, unknowns, "frame."):
        corrected = _moved_frames(
            [(series[i], probe.measured_poses[i], states[i]) for i in group], len(names)
        )
        for i, item in zip(group, corrected, strict=True):
            placed[i] = item
    for group in _tied(series, unknowns, "target.r"):
        poses = [i for i in group if isinstance(series[i].instrument, Pose)]
        turned = _turned_targets([(series[i], placed[i], states[i]) for i in poses])
        for i, item in zip(poses, turned, strict=True):
            placed[i] = item
    return tuple(placed)


def _without_frame(series: Sequence[Series]) -> Problems:
    problems = Problems()
    for item in series:
        if not isinstance(item.instrument, Framed):
            problems.add(
                item.instrument.name, "has no frame of its own", "align positions and orientations"
            )
    return problems


def _unknowns(problem: CalibrationProblem, patterns: Iterable[str]) -> tuple[Unknown, ...]:
    """The unknowns that patterns name; none where there are none."""
    patterns = list(patterns)
    if not patterns:
        return ()
    of_instruments = {
        n.name: n
        for measured_pose in problem.measured_poses
        for n in measured_pose.series.instrument.nuisances()
    }
    nuisances = (*of_instruments.values(), *encoder_nuisances(problem.mechanism, problem.assembly))
    return select_unknowns(problem.mechanism, nuisances, patterns, Tolerances())


def _tied(series: Sequence[Series], unknowns: Iterable[Unknown], beginning: str) -> list[list[int]]:
    """Groups of series (indices) of one instrument, or with parameters that begin so and get one correction."""
    names = [item.instrument.name for item in series]
    group_of = {name: name for name in names}
    for unknown in unknowns:
        tied = [
            name
            for name in group_of
            if any(member.startswith(f"{name}.{beginning}") for member in unknown.members)
        ]
        joined = {group_of[name] for name in tied}
        if len(joined) > 1:
            first = group_of[tied[0]]
            group_of = {
                name: first if group in joined else group for name, group in group_of.items()
            }
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        groups.setdefault(group_of[name], []).append(i)
    return list(groups.values())


def _has_part(unknown: Unknown, beginning: str) -> bool:
    return any(member.startswith(beginning) for member in unknown.members)


def _moved_frames(
    members: list[tuple[Series, MeasuredPose, MeasuredPoseState]], count: int
) -> list[Series]:
    """Series with one correction (a shift and a turn) of all their frames that fits best.

    With frames (t_i, R_i) readings y should be at p = t_i + d + R(rho) R_i y, hence R(rho) and d by
    Kabsch's method from the points R_i y and p - t_i.

    Args:
        members: series with their functions and nominal poses.
        count: number of unknowns of these functions.
    """
    readings, points = [], []
    for series, measured_pose, state in members:
        columns = list(series.instrument.position_columns)
        if columns:
            frame = _framed(series).frame
            readings.append(_rotation(frame.quaternion).apply(series.readings[:, columns]))
            points.append(measured_pose.points(np.zeros(count), state.q) - frame.position)
    oriented = [
        (series, state)
        for series, _, state in members
        if series.instrument.quaternion_column is not None
    ]
    total = sum(len(part) for part in readings) or sum(len(series) for series, _ in oriented)
    if total < LEAST_POSES:
        series = members[0][0]
        what = (
            f"{len(series)} poses of {len(series.instrument.columns)} numbers do not place a frame"
        )
        remedy = "read all of x, y, z at three poses or more, or state the frame"
        raise InputError.of(series.instrument.name, what, remedy)
    if readings:
        y, p = np.concatenate(readings), np.concatenate(points)
        turn = Rotation.from_matrix(kabsch(y, p)[0])
        shift = p.mean(axis=0) - turn.apply(y.mean(axis=0))
    else:
        turns = []
        for series, state in oriented:
            measured, seen = _orientations(series, state.errors)
            start = _rotation(_framed(series).frame.quaternion)
            turns.append(start * seen * measured.inv() * start.inv())
        turn, shift = Rotation.concatenate(turns).mean(), np.zeros(3)
    return [_with_frame(series, shift, turn) for series, _, _ in members]


def _framed(series: Series) -> Framed:
    instrument = series.instrument
    if not isinstance(instrument, Framed):
        raise AssertionError("instruments without a frame have been refused")
    return instrument


def _posed(series: Series) -> Pose:
    instrument = series.instrument
    if not isinstance(instrument, Pose):
        raise AssertionError("only poses have turns of targets that are aligned")
    return instrument


def _with_frame(series: Series, shift: np.ndarray, turn: Rotation) -> Series:
    """The series with its instrument's frame shifted and turned."""
    instrument = _framed(series)
    x, y, z = (float(value) for value in np.asarray(instrument.frame.position) + shift)
    quaternion = _quaternion(turn * _rotation(instrument.frame.quaternion))
    return replace(
        series,
        instrument=replace(instrument, frame=Frame(position=(x, y, z), quaternion=quaternion)),
    )


def _turned_targets(members: list[tuple[Series, Series, MeasuredPoseState]]) -> list[Series]:
    """Placed series of poses with one correction of all their targets' turns, where that is far from none.

    Args:
        members: series as it was, series with its frame placed, and the nominal poses.
    """
    if not members:
        return []
    turns = []
    for series, placed, state in members:
        measured, seen = _orientations(series, state.errors[:, 3:])
        target = _rotation(_posed(series).target_quaternion)
        tool = _rotation(_framed(series).frame.quaternion) * seen * target.inv()
        turns.append(
            tool.inv() * _rotation(_framed(placed).frame.quaternion) * measured * target.inv()
        )
    turn = Rotation.concatenate(turns).mean()
    if turn.magnitude() <= FAR:
        return [placed for _, placed, _ in members]
    return [_with_turned_target(placed, turn) for _, placed, _ in members]


def _with_turned_target(series: Series, turn: Rotation) -> Series:
    """The series with its instrument's target turned."""
    instrument = _posed(series)
    quaternion = _quaternion(turn * _rotation(instrument.target_quaternion))
    return replace(series, instrument=replace(instrument, target_quaternion=quaternion))


def _orientations(series: Series, errors: np.ndarray) -> tuple[Rotation, Rotation]:
    """Orientations (N,) that were read, and those that are predicted, from the errors (N, 3) between them."""
    measured = Rotation.from_quat(np.roll(series.readings[:, -4:], -1, axis=1))
    size = np.linalg.norm(errors, axis=1, keepdims=True)
    turn = errors * np.where(
        size > 0, 2 * np.arcsin(np.clip(size / 2, 0, 1)) / np.maximum(size, 1e-300), 1.0
    )
    return measured, measured * Rotation.from_rotvec(turn)


def _rotation(quaternion: tuple[float, float, float, float]) -> Rotation:
    return Rotation.from_quat(quaternion, scalar_first=True)


def _quaternion(rotation: Rotation) -> tuple[float, float, float, float]:
    w, x, y, z = (float(value) for value in rotation.as_quat(scalar_first=True))
    return w, x, y, z
