"""Measurements that cannot be what they claim: each fault with the figure that shows it and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations

import numpy as np

from tauloop.calibration.measurements.instruments import Contact
from tauloop.calibration.measurements.series import Series
from tauloop.calibration.measurements.surfaces import Plane
from tauloop.calibration.problem.building import swap_columns, with_encoders
from tauloop.calibration.problem.measured_poses import MeasuredPose
from tauloop.calibration.problem.problem import CalibrationProblem, Evaluation
from tauloop.calibration.solving.exchanges import DEFAULT_SEARCH_TIME, similar_pairs
from tauloop.calibration.solving.registration import kabsch, rms_distance
from tauloop.calibration.solving.row_order import FITS_BETTER, LARGE_ERROR, wrong_rows
from tauloop.common.errors import Problem, Problems
from tauloop.equations.assembly.limits import limits_of

#: A spread below this share of the next larger one is none: poses on a line, or in a plane.
FLAT = 1e-2
#: A pose is gross when it is also so many times further off than the median one.
GROSS = 20.0
#: Gross poses that are named one by one.
NAMED = 5
#: A joint may be beyond its stops by this share of it: zero points are among what calibrations
#: find.
BEYOND = 0.05
#: Ratios of lengths that are two units mixed up.
UNIT_RATIOS = {
    1e3: "mm read as m",
    1e-3: "m read as mm",
    25.4: "inches read as mm",
    1e2: "cm read as m",
    1e-2: "m read as cm",
}


def inspect(
    problem: CalibrationProblem,
    *,
    gross: bool = True,
    start: Evaluation | None = None,
    exchanges: float = DEFAULT_SEARCH_TIME,
) -> tuple[Problem, ...]:
    """Everything about the measurements that keeps a calibration from being meaningful.

    Args:
        problem: measurements and unknowns.
        gross: also look for single poses that are far off before anything is fitted; a
            least-squares fit bends to them until they hide behind others, a robust loss may take
            them.
        start: the evaluation of `problem.predicting()` without corrections, where it is at hand.
        exchanges: processor time in which swapped encoders are looked for, s.
    """
    problems = Problems()
    n = len(problem.free)
    rows = len(problem.pose_of_row)
    priors = sum(unknown.has_prior for unknown in problem.estimated)
    if rows + priors < n:
        what = f"{rows} residuals of {problem.n_poses} poses cannot give {n} unknowns"
        problems.add(
            "measurements",
            what,
            "measure more poses, estimate fewer parameters, or give priors from tolerances",
        )
    forward = problem.predicting()
    evaluation = forward.evaluate(np.zeros(n)) if start is None else start
    nothing = np.zeros(len(problem.unknowns))
    jacobians = forward.pose_jacobians(evaluation)
    for measured_pose, state, jacobian in zip(
        forward.measured_poses, evaluation.states, jacobians, strict=True
    ):
        points = measured_pose.points(nothing, state.q)
        problems += _on_a_line(measured_pose.series, points)
        if measured_pose.series.instrument.position_columns:
            wrong = _wrong_reading(forward, measured_pose, state.errors, exchanges)
            problems += wrong
            if wrong:
                continue
        misplaced = wrong_rows(
            measured_pose, state.residual, state.errors, jacobian * problem.tolerances
        )
        problems += misplaced
        if misplaced:
            continue
        if gross:
            problems += _beyond_range(forward, measured_pose, state.q)
            problems += _gross(
                forward, measured_pose, state.errors, float(np.linalg.norm(_spreads(points)))
            )
    return tuple(problems)


def _spreads(points: np.ndarray) -> np.ndarray:
    """Root mean square spreads (3,) along the principal directions, largest first."""
    centred = points - points.mean(axis=0)
    squares = np.linalg.eigvalsh(centred.T @ centred / len(points))
    return np.asarray(np.sqrt(np.maximum(squares[::-1], 0.0)))


def _on_a_line(series: Series, points: np.ndarray) -> list[Problem]:
    if len(points) < 3:
        return []
    spreads = _spreads(points)
    if spreads[1] > FLAT * max(spreads[0], 1e-12):
        return []
    on_plane = isinstance(series.instrument, Contact) and isinstance(
        series.instrument.surface, Plane
    )
    what = "the plane is touched on one line only" if on_plane else "all poses lie on one line"
    what = f"{what}: they spread by {1e3 * spreads[0]:.3g} mm along it and {1e3 * spreads[1]:.3g} mm across"
    remedy = (
        "touch the plane in two directions"
        if on_plane
        else "spread the poses over the whole work volume"
    )
    return [Problem(series.instrument.name, what, remedy)]


def _wrong_reading(
    problem: CalibrationProblem, measured_pose: MeasuredPose, errors: np.ndarray, exchanges: float
) -> list[Problem]:
    """Units, mirrors and swapped columns of positions of which all three components were read."""
    instrument = measured_pose.series.instrument
    if len(errors) < 4:
        return []
    columns = list(instrument.position_columns)
    measured = measured_pose.series.readings[:, columns]
    predicted = errors[:, columns] + measured
    spread = float(np.linalg.norm(_spreads(predicted)))
    if not spread > 0.0:
        return []
    problems = Problems(_units(measured_pose.series, measured, predicted))
    if problems:
        return problems
    frame_free = any(name.startswith(f"{instrument.name}.frame.r") for name in problem.names)
    _, turned, mirrored = kabsch(measured, predicted)
    flat = _spreads(predicted)[2] < FLAT * _spreads(predicted)[0]
    if not flat and turned > FITS_BETTER * mirrored and turned > LARGE_ERROR * spread:
        problems.add(
            f"{instrument.name}.frame",
            f"the readings are a mirror image: {1e3 * mirrored:.3g} mm RMS from the nominal positions when "
            f"mirrored, {1e3 * turned:.3g} mm as they are",
            "turn the sign of one column, or swap two columns: the instrument's frame is left-handed",
        )
    as_is = turned if frame_free else rms_distance(predicted - measured)
    if as_is <= LARGE_ERROR * spread:
        return problems
    if not frame_free:
        for swapped in permutations(range(3)):
            other = rms_distance(predicted - measured[:, swapped])
            if as_is > FITS_BETTER * other:
                names = "".join("xyz"[c] for c in swapped)
                problems.add(
                    f"{instrument.name}.readings",
                    f"columns look swapped: {1e3 * other:.3g} mm RMS from the nominal positions when read as "
                    f"{names}, {1e3 * as_is:.3g} mm as xyz",
                    f"map the columns in the order {names}, or let the frame be unknown",
                )
    encoders, drives = (
        measured_pose.series.encoders,
        [actuator.name for actuator in problem.mechanism.actuators],
    )
    remedy = "state the unit of the encoder columns"
    scaled = (
        (ratio * encoders, "in another unit", f"multiplied by {ratio:g}", remedy)
        for ratio in UNIT_RATIOS
    )
    units = next(_other_encoders(problem, measured_pose, measured, as_is, frame_free, scaled), None)
    if units is not None:
        return [*problems, units]
    # another explanation is named only where it fits about as well as the ones before
    best = as_is if not problems else min(as_is, FITS_BETTER**2 * mirrored)
    swaps = (
        (
            swap_columns(encoders, i, j),
            f"{drives[i]} and {drives[j]} look swapped",
            "swapped back",
            "swap the two columns",
        )
        for i, j in similar_pairs(encoders, exchanges)
    )
    return [*problems, *_other_encoders(problem, measured_pose, measured, best, frame_free, swaps)]


def _other_encoders(
    problem: CalibrationProblem,
    measured_pose: MeasuredPose,
    measured: np.ndarray,
    as_is: float,
    frame_free: bool,
    readings: Iterable[tuple[np.ndarray, str, str, str]],
) -> Iterator[Problem]:
    """Other readings of the encoders that fit better; each has what they look like, how it is tried, and a remedy."""
    for encoders, what, tried, remedy in readings:
        other = _left(problem, measured_pose, encoders, measured, frame_free)
        if other is not None and as_is > FITS_BETTER * other:
            fits = f"{1e3 * other:.3g} mm RMS from the nominal positions when {tried}, {1e3 * as_is:.3g} mm as they are"
            yield Problem(
                f"{measured_pose.series.instrument.name}.encoders", f"{what}: {fits}", remedy
            )


def _units(series: Series, measured: np.ndarray, predicted: np.ndarray) -> list[Problem]:
    """One wrong unit for all poses, or poses in two units."""
    where = f"{series.instrument.name}.readings"
    ratio = float(np.linalg.norm(_spreads(measured)) / np.linalg.norm(_spreads(predicted)))
    for known, text in UNIT_RATIOS.items():
        if abs(np.log(max(ratio, 1e-300) / known)) < np.log(1.3):
            what = f"positions spread {ratio:.4g} times as far as the nominal ones: {text}?"
            return [Problem(where=where, what=what, remedy="state the unit of the columns")]
    distance = np.linalg.norm(measured - np.median(measured, axis=0), axis=1)
    usual = np.median(distance)
    reach = float(np.linalg.norm(predicted - predicted.mean(axis=0), axis=1).max())
    far = np.flatnonzero(distance > 20 * max(min(usual, reach), 1e-12))
    # else it is the prediction that is wrong: encoders in another unit
    if 2 <= len(far) <= len(series) / 2:
        names = ", ".join(series.label(int(i)) for i in far[:5])
        times = distance[far].min() / max(min(usual, reach), 1e-12)
        what = (
            f"{len(far)} of {len(series)} positions are {times:.0f} times as far away as the others ({names}): "
            "two units in one table?"
        )
        return [Problem(where=where, what=what, remedy="bring all rows to one unit")]
    return []


def _left(
    problem: CalibrationProblem,
    measured_pose: MeasuredPose,
    encoders: np.ndarray,
    measured: np.ndarray,
    frame_free: bool,
) -> float | None:
    """RMS distance of nominal and measured positions with other encoder readings, m; None where out of reach."""
    zero = np.zeros(len(problem.unknowns))
    other = with_encoders(measured_pose, encoders, problem.assembly.q, zero)
    state = other.state(zero, other.q)
    if not state.is_reached.all():
        return None
    if frame_free and len(measured) > 3:
        return kabsch(measured, state.errors[:, :3] + measured_pose.series.readings[:, :3])[1]
    return rms_distance(state.errors[:, :3])


def _beyond_range(
    problem: CalibrationProblem, measured_pose: MeasuredPose, q: np.ndarray
) -> list[Problem]:
    """Poses that close, but with driven joints far beyond their stops in the machine file."""
    limits = limits_of(problem.mechanism, problem.assembly.topology)
    values, over, width = limits.values(q), -limits.room(q, ("stop",)), limits.upper - limits.lower
    driven = {name for actuator in problem.mechanism.actuators for name, _ in actuator.drives}
    over[:, [name not in driven for name in limits.names]] = -np.inf
    far = np.flatnonzero((over > BEYOND * width).any(axis=1))
    problems = Problems()
    for pose in far[:NAMED]:
        j = int(over[pose].argmax())
        factor, unit = (np.degrees(1.0), "deg") if limits.units[j] == "rad" else (1e3, "mm")
        what = (
            f"the encoders put {limits.names[j]} at {factor * values[pose, j]:.4g} {unit}, "
            f"{factor * over[pose, j]:.3g} {unit} beyond its range of {factor * limits.lower[j]:.4g} to "
            f"{factor * limits.upper[j]:.4g} {unit}; {len(far)} of {len(q)} are like that"
        )
        remedy = "check the encoders of this pose, their unit and zero, or leave it out; else mend the machine's limits"
        label = measured_pose.series.label(int(pose) // measured_pose.poses)
        problems.add(f"{measured_pose.series.instrument.name}, {label}", what, remedy)
    return problems


def _gross(
    problem: CalibrationProblem, measured_pose: MeasuredPose, errors: np.ndarray, spread: float
) -> list[Problem]:
    """Single poses so far off that their readings are wrong, whatever the geometry is."""
    series = measured_pose.series
    lengths = [k for k, (_, unit) in enumerate(series.instrument.errors) if unit == "m"]
    if not lengths:
        return []
    size = np.linalg.norm(errors[:, lengths], axis=1)
    usual = float(np.median(size))
    far = np.flatnonzero(size > max(GROSS * usual, LARGE_ERROR * spread))
    problems = Problems()
    for pose in far[np.argsort(-size[far])][:NAMED]:
        what = (
            f"{1e3 * size[pose]:.3g} mm off with the nominal geometry, where the median is {1e3 * usual:.3g} mm; "
            f"{len(far)} of {len(series)} are like that"
        )
        unit = _unit_of_one(problem, measured_pose.take(np.array([pose])), float(size[pose]))
        remedy = "measure this pose again or leave it out, or use a robust loss"
        if unit:
            what, remedy = f"{what}; {unit}: two units in one table?", "bring all rows to one unit"
        problems.add(f"{series.instrument.name}, {series.label(int(pose))}", what, remedy)
    return problems


def _unit_of_one(problem: CalibrationProblem, measured_pose: MeasuredPose, size: float) -> str:
    """What a pose's readings (or encoders) are multiplied by to fit; empty where nothing makes them fit."""
    series = measured_pose.series
    columns, errors = series.instrument.columns, series.instrument.errors
    if len(columns) != len(errors) or any(unit != "m" for _, unit in (*columns, *errors)):
        return ""
    zero = np.zeros(len(problem.unknowns))
    predicted = measured_pose.state(zero, measured_pose.q).errors + series.readings
    for ratio in UNIT_RATIOS:
        other = float(np.linalg.norm(predicted - ratio * series.readings))
        if size > FITS_BETTER * other:
            return f"{1e3 * other:.3g} mm with the readings multiplied by {ratio:g}"
    for ratio in UNIT_RATIOS:
        left = _left(
            problem, measured_pose, ratio * series.encoders, series.readings, frame_free=False
        )
        if left is not None and size > FITS_BETTER * left:
            return f"{1e3 * left:.3g} mm with the encoders multiplied by {ratio:g}"
    return ""
