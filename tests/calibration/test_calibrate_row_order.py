"""Readings of other rows: some poses late or early, and rows in another order; each is named with its size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from calibration_sessions import encoders, machine, measured, part_errors

from tauloop.calibration import (
    CalibrationOptions,
    Distance,
    FitOptions,
    Frame,
    Instrument,
    Pose,
    Position,
    Series,
    calibrate,
)
from tauloop.common.errors import IdentificationError, Problem

NAME, NOISE, POSES = "gantry_tau_3dof", 2e-5, 60
FRAME = Frame(position=(2.0, -1.0, 0.5), quaternion=(0.6, 0.0, 0.8, 0.0))
UNKNOWN_FRAME = ("track*.length", "t.frame.*")


def session(instrument: Instrument, step: float | None = None) -> Series:
    """Poses at random, or along a path of equal steps where these are given."""
    draw = np.random.default_rng(3)
    true = part_errors(NAME, ("track*.length",), 2e-4, draw)
    positions = encoders(NAME, POSES, draw)
    if step is not None:
        time = step * np.arange(POSES)
        positions = positions.mean(axis=0) + 0.15 * np.stack(
            [np.sin(time), np.cos(1.3 * time), np.sin(0.7 * time + 1.0)], axis=1
        )
    return measured(NAME, true, instrument, positions, NOISE)


def late(series: Series, rows: int) -> Series:
    """The reading of a pose is some rows further down; the first rows read what was before the session."""
    return replace(series, readings=np.roll(series.readings, rows, axis=0))


def problems(series: Series, *parameters: str, **more: object) -> tuple[Problem, ...]:
    with pytest.raises(IdentificationError) as refused:
        calibrate(
            machine(NAME),
            series,
            CalibrationOptions(parameters=parameters or ("track*.length",), **more),
        )
    return refused.value.problems


@pytest.mark.parametrize(
    ("rows", "name"),
    [(1, "1 pose late"), (-1, "1 pose early"), (3, "3 poses late"), (-2, "2 poses early")],
)
def test_readings_that_are_late_are_named_with_the_number_of_poses(rows: int, name: str) -> None:
    (problem,) = problems(late(session(Position(name="t")), rows))
    assert f"the readings look {name}" in problem.what
    direction = "up" if rows > 0 else "down"
    assert f"move the readings {direction} by {abs(rows)} row" in problem.remedy


@pytest.mark.parametrize(
    ("instrument", "parameters"),
    [
        (Position(name="t", frame=FRAME), UNKNOWN_FRAME),
        (Position(name="t"), ("track*.length",)),
        (Distance(name="t", center=(0.0, -1.5, 0.5)), ("track*.length", "t.offset")),
        (Position(name="t", components="xz"), ("track*.length",)),
    ],
    ids=["position, frame unknown", "position", "distance", "two components"],
)
def test_a_smooth_path_that_is_read_one_pose_late(
    instrument: Instrument, parameters: tuple[str, ...]
) -> None:
    """Neighbors are a few per cent of the path apart."""
    series = session(instrument, step=0.12)
    if isinstance(instrument, Position) and instrument.frame is FRAME:
        series = replace(series, instrument=Position(name="t"))
    (problem,) = problems(late(series, 1), *parameters)
    assert "the readings look 1 pose late" in problem.what
    assert calibrate(
        machine(NAME),
        session(instrument, step=0.12),
        CalibrationOptions(parameters=("track*.length",)),
    )


@pytest.mark.parametrize("kind", [Position, Pose])
@pytest.mark.parametrize("frame", [Frame(), FRAME], ids=["frame known", "frame unknown"])
def test_shuffled_rows_are_named_with_the_poses_they_belong_to(
    kind: type[Position] | type[Pose], frame: Frame
) -> None:
    series = session(kind(name="t", frame=frame))
    order = np.random.default_rng(5).permutation(POSES)
    mixed = replace(series, instrument=kind(name="t"), readings=series.readings[order])
    parameters = ("track*.length",) if frame is not FRAME else UNKNOWN_FRAME
    (problem,) = [item for item in problems(mixed, *parameters) if "shuffled" in item.what]
    moved = int((order != np.arange(POSES)).sum())
    assert f"{moved} of {POSES} readings fit other poses" in problem.what
    first = int(np.flatnonzero(order != np.arange(POSES))[0])
    assert f"that of pose {first + 1} to pose {order[first] + 1}" in problem.what


def test_two_exchanged_rows_are_named() -> None:
    series = session(Position(name="t"))
    order = np.arange(POSES)
    order[[7, 30]] = [30, 7]
    (problem,) = problems(replace(series, readings=series.readings[order]))
    assert (
        "2 of 60 readings fit other poses (that of pose 8 to pose 31, that of pose 31 to pose 8)"
        in problem.what
    )


def test_shuffled_rows_are_named_under_align_too() -> None:
    series = session(Position(name="t", frame=FRAME))
    order = np.random.default_rng(6).permutation(POSES)
    mixed = replace(series, instrument=Position(name="t"), readings=series.readings[order])
    assert any("shuffled" in item.what for item in problems(mixed, *UNKNOWN_FRAME, align=True))


@pytest.mark.parametrize("size", [0.0, 2e-3, 2e-2])
def test_wrong_geometry_and_noise_are_not_taken_for_another_order(size: float) -> None:
    """Errors of the lengths up to 20 mm, and random readings: neither fits better in another order."""
    draw = np.random.default_rng(11)
    true = part_errors(NAME, ("track*.length",), size, draw)
    series = measured(NAME, true, Position(name="t"), encoders(NAME, 30, draw), NOISE)
    assert calibrate(machine(NAME), series, CalibrationOptions(parameters=("track*.length",)))
    scattered = replace(series, readings=series.readings[0] + draw.uniform(-0.2, 0.2, (30, 3)))
    options = CalibrationOptions(
        parameters=("track*.length",), fit=FitOptions(reject_implausible=False)
    )
    findings = calibrate(machine(NAME), scattered, options).findings
    assert not [item for item in findings if "shuffled" in item.what or "late" in item.what]
