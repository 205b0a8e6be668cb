"""Initial poses of instrument frames that fit the nominal machine, to start a calibration."""

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
from tauloop.common.counts import counted
from tauloop.common.errors import InputError, Problems
from tauloop.mechanism.model import Mechanism

#: A larger rotation of a target, rad, is not a mounting error and too large for a search that
#: starts at zero.
MAX_MOUNTING_ROTATION = 0.2
#: Minimum number of poses that determine a frame.
MIN_FRAME_POSES = 3


def aligned(mechanism: Mechanism, series: Series) -> Series:
    """Return the series with the instrument frame that fits the nominal machine best.

    See `aligned_together` for several series.

    Raises:
        InputError: the instrument has no frame, or its readings do not determine it (three
            components at three poses are needed).
        PoseError: poses are out of reach of the nominal geometry.
    """
    return aligned_together(mechanism, [series])[0]


def aligned_together(
    mechanism: Mechanism,
    series: Sequence[Series],
    *parameter_sets: Iterable[str],
    equilibrium: bool = False,
) -> tuple[Series, ...]:
    """Return all series with the instrument frames that fit the nominal machine best.

    Positions are aligned by Kabsch's method. Orientations without positions are aligned by the mean
    rotation between measured and nominal orientations. For poses, a large rotation of the target is
    initialized too, with the mean rotation from the tool to the measured orientation.

    Series of the same instrument, and series whose frames are tied by an unknown, are aligned
    together: all members of a tie have the same correction, so equal frames must remain equal. The
    same applies to tied rotations of targets.

    Args:
        mechanism: the nominal machine.
        series: measurements.
        parameter_sets: patterns of the unknowns of the calibration, as for `select_unknowns`; to
            compare several calibrations, the patterns of each.
        equilibrium: whether the machine is in static equilibrium at every pose, as for
            `calibration_problem`.

    Raises:
        InputError: an instrument has no frame, or its readings do not determine it (three
            components at three poses are needed), or a pattern matches no parameter.
        PoseError: poses are out of reach of the nominal geometry.
    """
    InputError.raise_if_any(_missing_frames(series))
    names = dict.fromkeys(item.instrument.name for item in series)
    frames = [f"{name}.frame.x" for name in names]
    problem = calibration_problem(mechanism, series, frames, equilibrium=equilibrium)
    unknowns = [unknown for patterns in parameter_sets for unknown in _unknowns(problem, patterns)]
    states = problem.evaluate(np.zeros(len(names))).states
    aligned_series = list(series)
    for group in _tied_groups(series, unknowns, "frame."):
        members = [(series[i], problem.measured_poses[i], states[i]) for i in group]
        for i, item in zip(group, _align_frames(members, len(names)), strict=True):
            aligned_series[i] = item
    for group in _tied_groups(series, unknowns, "target.r"):
        poses = [i for i in group if isinstance(series[i].instrument, Pose)]
        rotated_series = _rotate_targets([(series[i], aligned_series[i], states[i]) for i in poses])
        for i, item in zip(poses, rotated_series, strict=True):
            aligned_series[i] = item
    return tuple(aligned_series)


def _missing_frames(series: Sequence[Series]) -> Problems:
    """Return a problem for each instrument without a frame."""
    problems = Problems()
    for item in series:
        if not isinstance(item.instrument, Framed):
            problems.add(
                item.instrument.name,
                "has no frame that could be aligned",
                "align only instruments that read positions or orientations",
            )
    return problems


def _unknowns(problem: CalibrationProblem, patterns: Iterable[str]) -> tuple[Unknown, ...]:
    """Return the unknowns that patterns select; empty if there are no patterns."""
    patterns = list(patterns)
    if not patterns:
        return ()
    instrument_nuisances = {
        n.name: n
        for measured_pose in problem.measured_poses
        for n in measured_pose.series.instrument.nuisances()
    }
    nuisances = (
        *instrument_nuisances.values(),
        *encoder_nuisances(problem.mechanism, problem.assembly),
    )
    return select_unknowns(problem.mechanism, nuisances, patterns, Tolerances())


def _tied_groups(
    series: Sequence[Series], unknowns: Iterable[Unknown], prefix: str
) -> list[list[int]]:
    """Return groups of series (indices) that share an instrument or a tied parameter.

    Args:
        series: measurements.
        unknowns: unknowns, some of which tie parameters of several instruments.
        prefix: beginning of the parameters' names after the name of the instrument.
    """
    names = [item.instrument.name for item in series]
    group_of = {name: name for name in names}
    for unknown in unknowns:
        tied_names = [name for name in group_of if _has_member(unknown, f"{name}.{prefix}")]
        tied_groups = {group_of[name] for name in tied_names}
        if len(tied_groups) > 1:
            first = group_of[tied_names[0]]
            for name, group in group_of.items():
                if group in tied_groups:
                    group_of[name] = first
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        groups.setdefault(group_of[name], []).append(i)
    return list(groups.values())


def _has_member(unknown: Unknown, prefix: str) -> bool:
    """Return whether an unknown has a member whose name begins with a prefix."""
    return any(member.startswith(prefix) for member in unknown.members)


def _align_frames(
    members: list[tuple[Series, MeasuredPose, MeasuredPoseState]], count: int
) -> list[Series]:
    """Return the series with one correction (translation and rotation) of all their frames.

    With frames (t_i, R_i), readings y should be at p = t_i + d + R(rho) R_i y. R(rho) and d follow
    from the points R_i y and p - t_i by Kabsch's method.

    Args:
        members: series with their functions and nominal poses.
        count: number of unknowns of these functions.
    """
    readings = []
    points = []
    for series, measured_pose, state in members:
        columns = list(series.instrument.position_columns)
        if columns:
            frame = _frame_instrument(series).frame
            readings.append(_rotation(frame.quaternion).apply(series.readings[:, columns]))
            points.append(measured_pose.points(np.zeros(count), state.q) - frame.position)
    oriented = [
        (series, state)
        for series, _, state in members
        if series.instrument.quaternion_column is not None
    ]
    n_points = sum(len(y) for y in readings)
    n_orientations = sum(len(series) for series, _ in oriented)
    if (n_points or n_orientations) < MIN_FRAME_POSES:
        series = members[0][0]
        what = (
            f"{counted(len(series), 'pose')} with {counted(len(series.instrument.columns), 'number')} "
            "each cannot determine a frame"
        )
        remedy = "measure x, y and z at three poses or more, or give the frame"
        raise InputError.of(series.instrument.name, what, remedy)
    if readings:
        y = np.concatenate(readings)
        p = np.concatenate(points)
        rotation = Rotation.from_matrix(kabsch(y, p)[0])
        translation = p.mean(axis=0) - rotation.apply(y.mean(axis=0))
    else:
        rotations = []
        for series, state in oriented:
            measured, predicted = _orientations(series, state.errors)
            start = _rotation(_frame_instrument(series).frame.quaternion)
            rotations.append(start * predicted * measured.inv() * start.inv())
        rotation = Rotation.concatenate(rotations).mean()
        translation = np.zeros(3)
    return [_with_frame(series, translation, rotation) for series, _, _ in members]


def _frame_instrument(series: Series) -> Framed:
    """Return the instrument of a series, which is known to have a frame."""
    instrument = series.instrument
    if not isinstance(instrument, Framed):
        raise AssertionError("instruments without a frame should have been rejected earlier")
    return instrument


def _pose_instrument(series: Series) -> Pose:
    """Return the instrument of a series, which is known to read poses."""
    instrument = series.instrument
    if not isinstance(instrument, Pose):
        raise AssertionError("only instruments that read poses have target rotations to align")
    return instrument


def _with_frame(series: Series, translation: np.ndarray, rotation: Rotation) -> Series:
    """Return the series with its instrument's frame translated and rotated."""
    instrument = _frame_instrument(series)
    x, y, z = (float(value) for value in np.asarray(instrument.frame.position) + translation)
    quaternion = _quaternion(rotation * _rotation(instrument.frame.quaternion))
    frame = Frame(position=(x, y, z), quaternion=quaternion)
    return replace(series, instrument=replace(instrument, frame=frame))


def _rotate_targets(members: list[tuple[Series, Series, MeasuredPoseState]]) -> list[Series]:
    """Return the aligned series with one correction of all target rotations, if it is large.

    Args:
        members: original series, series with its aligned frame, and the nominal poses.
    """
    if not members:
        return []
    rotations = []
    for series, aligned_series, state in members:
        measured, predicted = _orientations(series, state.errors[:, 3:])
        target = _rotation(_pose_instrument(series).target_quaternion)
        tool = _rotation(_frame_instrument(series).frame.quaternion) * predicted * target.inv()
        frame = _rotation(_frame_instrument(aligned_series).frame.quaternion)
        rotations.append(tool.inv() * frame * measured * target.inv())
    rotation = Rotation.concatenate(rotations).mean()
    if rotation.magnitude() <= MAX_MOUNTING_ROTATION:
        return [aligned_series for _, aligned_series, _ in members]
    return [_with_target(aligned_series, rotation) for _, aligned_series, _ in members]


def _with_target(series: Series, rotation: Rotation) -> Series:
    """Return the series with its instrument's target rotated."""
    instrument = _pose_instrument(series)
    quaternion = _quaternion(rotation * _rotation(instrument.target_quaternion))
    return replace(series, instrument=replace(instrument, target_quaternion=quaternion))


def _orientations(series: Series, errors: np.ndarray) -> tuple[Rotation, Rotation]:
    """Return measured and predicted orientations (N,), from the errors (N, 3) between them."""
    measured = Rotation.from_quat(np.roll(series.readings[:, -4:], -1, axis=1))
    norm = np.linalg.norm(errors, axis=1, keepdims=True)
    angle = 2 * np.arcsin(np.clip(norm / 2, 0, 1))
    rotation_vector = errors * np.where(norm > 0, angle / np.maximum(norm, 1e-300), 1.0)
    return measured, measured * Rotation.from_rotvec(rotation_vector)


def _rotation(quaternion: tuple[float, float, float, float]) -> Rotation:
    return Rotation.from_quat(quaternion, scalar_first=True)


def _quaternion(rotation: Rotation) -> tuple[float, float, float, float]:
    w, x, y, z = (float(value) for value in rotation.as_quat(scalar_first=True))
    return w, x, y, z
