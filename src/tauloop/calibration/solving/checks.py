"""Checks of measurements before a fit: problems, each with a value that shows it and a remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations
from operator import itemgetter

import numpy as np

from tauloop.calibration.measurements.instruments import Contact
from tauloop.calibration.measurements.series import Series
from tauloop.calibration.measurements.surfaces import Plane
from tauloop.calibration.problem.building import swap_columns, with_encoders
from tauloop.calibration.problem.measured_poses import MeasuredPose
from tauloop.calibration.problem.problem import CalibrationProblem, Evaluation
from tauloop.calibration.solving.exchanges import DEFAULT_SEARCH_TIME, similar_pairs
from tauloop.calibration.solving.quaternion_order import wrong_quaternions
from tauloop.calibration.solving.registration import kabsch, rms_distance
from tauloop.calibration.solving.row_order import MIN_FIT_RATIO, MIN_RELATIVE_ERROR, wrong_rows
from tauloop.common.counts import counted
from tauloop.common.errors import Problem, Problems
from tauloop.equations.assembly.limits import limits_of

#: Points are on a line, or in a plane, if their spread perpendicular to the line or plane is below
#: this fraction of their largest spread.
MAX_FLATNESS = 1e-2
#: Rows are compared with each other if their readings have at least this number of columns.
MIN_COMPARED_COLUMNS = 3
#: A pose has a gross error if its error exceeds the median error by this factor.
GROSS_ERROR_RATIO = 20.0
#: Maximum number of poses listed one by one.
MAX_LISTED_POSES = 5
#: A joint may exceed its stops by this fraction of its range, because its zero point may be wrong
#: before the calibration.
STOP_TOLERANCE = 0.05
#: A distance may be in another unit if it exceeds the median distance by this factor.
FAR_DISTANCE_RATIO = 20.0
#: A ratio of lengths matches an entry of `UNIT_RATIOS` if they differ by less than this factor.
UNIT_RATIO_TOLERANCE = 1.3
#: Readings are reported to be in another unit if, in this unit and in the best frame, they differ
#: from the nominal positions by less than this fraction of the spread.
MAX_UNIT_MISFIT = 0.1
#: Ratios of readings to true lengths that indicate confused units.
UNIT_RATIOS = {
    1e3: "mm read as m",
    1e-3: "m read as mm",
    1e2: "cm read as m",
    1e-2: "m read as cm",
    1 / 25.4: "inches read as mm",
    25.4: "mm read as inches",
    1 / 0.0254: "inches read as m",
    0.0254: "m read as inches",
}


def measurement_problems(
    problem: CalibrationProblem,
    *,
    gross: bool = True,
    start: Evaluation | None = None,
    exchanges: float = DEFAULT_SEARCH_TIME,
) -> tuple[Problem, ...]:
    """Return all problems that make the measurements unusable for a calibration.

    Args:
        problem: measurements and unknowns.
        gross: whether to search for single poses with gross errors. A least-squares fit would adapt
            to them; a robust loss may tolerate them.
        start: the evaluation of `problem.predicting()` without corrections, if available.
        exchanges: processor time of the search for swapped encoders, s.
    """
    problems = Problems()
    n = len(problem.free)
    rows = len(problem.pose_of_row)
    priors = sum(unknown.has_prior for unknown in problem.estimated)
    if rows + priors < n:
        what = (
            f"{counted(rows, 'residual')} of {counted(problem.n_poses, 'pose')} cannot determine "
            f"{counted(n, 'unknown')}"
        )
        remedy = "measure more poses, estimate fewer parameters, or give priors from tolerances"
        problems.add("measurements", what, remedy)
    forward = problem.predicting()
    evaluation = forward.evaluate(np.zeros(n)) if start is None else start
    zero = np.zeros(len(problem.unknowns))
    jacobians = forward.pose_jacobians(evaluation)
    for measured_pose, state, jacobian in zip(
        forward.measured_poses, evaluation.states, jacobians, strict=True
    ):
        points = measured_pose.points(zero, state.q)
        problems += _on_a_line(measured_pose.series, points)
        problems += _copied_rows(measured_pose.series)
        if measured_pose.series.instrument.position_columns:
            position_problems = _position_problems(forward, measured_pose, state.errors, exchanges)
            problems += position_problems
            if position_problems:
                continue
        quaternion_problems = wrong_quaternions(measured_pose, state.errors)
        problems += quaternion_problems
        if quaternion_problems:
            continue
        scaled_jacobian = jacobian * problem.tolerances
        row_problems = wrong_rows(measured_pose, state.residual, state.errors, scaled_jacobian)
        problems += row_problems
        if row_problems:
            continue
        if gross:
            spread = float(np.linalg.norm(_spreads(points)))
            problems += _beyond_stops(forward, measured_pose, state.q)
            problems += _gross_errors(forward, measured_pose, state.errors, spread)
    return tuple(problems)


def _spreads(points: np.ndarray) -> np.ndarray:
    """Return the root mean square spreads (3,) along the principal directions, largest first."""
    centered = points - points.mean(axis=0)
    variances = np.linalg.eigvalsh(centered.T @ centered / len(points))
    return np.asarray(np.sqrt(np.maximum(variances[::-1], 0.0)))


def _on_a_line(series: Series, points: np.ndarray) -> list[Problem]:
    """Return a problem if all targets of a series are on one line."""
    if len(points) < 3:
        return []
    spreads = _spreads(points)
    if spreads[1] > MAX_FLATNESS * max(spreads[0], 1e-12):
        return []
    instrument = series.instrument
    if isinstance(instrument, Contact) and isinstance(instrument.surface, Plane):
        what = "the plane is touched only along one line"
        remedy = "touch the plane in two directions"
    else:
        what = "all poses lie on one line"
        remedy = "spread the poses over the whole workspace"
    spread_text = (
        f"the points spread by {1e3 * spreads[0]:.3g} mm along the line and by {1e3 * spreads[1]:.3g} mm "
        "across it"
    )
    return [Problem(instrument.name, f"{what}: {spread_text}", remedy)]


def _copied_rows(series: Series) -> list[Problem]:
    """Return a problem if rows are copies of others, which makes standard deviations too small.

    Readings of several numbers are never exactly equal, even at the same encoder positions.
    """
    if series.readings.shape[1] < MIN_COMPARED_COLUMNS or len(series) < 2:
        return []
    rows = np.column_stack([series.encoders.reshape(len(series), -1), series.readings])
    _, first, counts = np.unique(rows, axis=0, return_index=True, return_counts=True)
    copies = int(len(series) - len(counts))
    if not copies:
        return []
    example = series.label(int(first[np.argmax(counts)]))
    what = (
        f"{counted(copies, 'row')} of {len(series)} are exact copies of others, such as of "
        f"{example}: repeated readings are never equal"
    )
    return [Problem(series.instrument.name, what, "remove the copies; they contain no information")]


def _position_problems(
    problem: CalibrationProblem, measured_pose: MeasuredPose, errors: np.ndarray, exchanges: float
) -> list[Problem]:
    """Return problems of positions (x, y, z): wrong units, mirrored frames and swapped columns."""
    instrument = measured_pose.series.instrument
    if len(errors) < 4:
        return []
    columns = list(instrument.position_columns)
    measured = measured_pose.series.readings[:, columns]
    predicted = errors[:, columns] + measured
    spread = float(np.linalg.norm(_spreads(predicted)))
    if not spread > 0.0:
        return []
    problems = Problems(_confused_units(measured_pose.series, measured, predicted))
    if problems:
        return problems
    is_frame_unknown = any(name.startswith(f"{instrument.name}.frame.r") for name in problem.names)
    _, rotated, mirrored = kabsch(measured, predicted)
    is_flat = _spreads(predicted)[2] < MAX_FLATNESS * _spreads(predicted)[0]
    is_large = rotated > MIN_RELATIVE_ERROR * spread
    if not is_flat and rotated > MIN_FIT_RATIO * mirrored and is_large:
        problems.add(
            f"{instrument.name}.frame",
            f"the readings are mirrored: they differ from the nominal positions by {1e3 * mirrored:.3g} mm RMS "
            f"when mirrored, and by {1e3 * rotated:.3g} mm unchanged",
            "the instrument's frame is left-handed: invert the sign of one column, or swap two columns",
        )
    unchanged_error = rotated if is_frame_unknown else rms_distance(predicted - measured)
    if unchanged_error <= MIN_RELATIVE_ERROR * spread:
        return problems
    if not is_frame_unknown:
        problems += _swapped_readings(instrument.name, measured, predicted, unchanged_error)
    encoders = measured_pose.series.encoders
    remedy = "give the unit of the encoder columns"
    scaled_encoders = (
        (ratio * encoders, "in another unit", f"multiplied by {ratio:g}", remedy)
        for ratio in UNIT_RATIOS
    )
    wrong_units = list(
        _better_encoders(
            problem, measured_pose, measured, unchanged_error, is_frame_unknown, scaled_encoders
        )
    )
    if wrong_units:
        _, nearest = min(wrong_units, key=itemgetter(0))
        return [*problems, nearest]
    # Report swapped encoders only if they fit about as well as the previous explanations.
    best = unchanged_error
    if problems:
        best = min(unchanged_error, MIN_FIT_RATIO**2 * mirrored)
    names = [actuator.name for actuator in problem.mechanism.actuators]
    swaps = (
        (
            swap_columns(encoders, i, j),
            f"{names[i]} and {names[j]} look swapped",
            "swapped back",
            "swap the two columns",
        )
        for i, j in similar_pairs(encoders, exchanges)
    )
    swap_problems = _better_encoders(
        problem, measured_pose, measured, best, is_frame_unknown, swaps
    )
    return [*problems, *(swap for _, swap in swap_problems)]


def _swapped_readings(
    instrument: str, measured: np.ndarray, predicted: np.ndarray, unchanged_error: float
) -> list[Problem]:
    """Return a problem for each order of the position columns that fits much better."""
    problems = Problems()
    for order in permutations(range(3)):
        reordered = rms_distance(predicted - measured[:, order])
        if unchanged_error > MIN_FIT_RATIO * reordered:
            names = "".join("xyz"[column] for column in order)
            problems.add(
                f"{instrument}.readings",
                f"columns look swapped: they differ from the nominal positions by {1e3 * reordered:.3g} mm RMS "
                f"when read as {names}, and by {1e3 * unchanged_error:.3g} mm as xyz",
                f"assign the columns in the order {names}, or estimate the frame of the instrument",
            )
    return problems


def _better_encoders(
    problem: CalibrationProblem,
    measured_pose: MeasuredPose,
    measured: np.ndarray,
    unchanged_error: float,
    is_frame_unknown: bool,
    alternatives: Iterable[tuple[np.ndarray, str, str, str]],
) -> Iterator[tuple[float, Problem]]:
    """Yield the RMS distance and a problem for each alternative of the encoders that fits better.

    Args:
        problem: the calibration, by forward kinematics.
        measured_pose: the measured poses.
        measured: measured positions (N, 3), m.
        unchanged_error: RMS distance with the unchanged readings, m.
        is_frame_unknown: whether the instrument's frame is unknown.
        alternatives: changed encoder readings, the suspected fault, a description of the change,
            and a remedy.
    """
    for encoders, fault, change, remedy in alternatives:
        distance = _nominal_distance(problem, measured_pose, encoders, measured, is_frame_unknown)
        if distance is not None and unchanged_error > MIN_FIT_RATIO * distance:
            comparison = (
                f"readings differ from the nominal positions by {1e3 * distance:.3g} mm RMS when {change}, "
                f"and by {1e3 * unchanged_error:.3g} mm unchanged"
            )
            where = f"{measured_pose.series.instrument.name}.encoders"
            yield distance, Problem(where, f"{fault}: {comparison}", remedy)


def _confused_units(series: Series, measured: np.ndarray, predicted: np.ndarray) -> list[Problem]:
    """Return a problem if all positions have a wrong unit, or if they have two units."""
    where = f"{series.instrument.name}.readings"
    ratio = float(np.linalg.norm(_spreads(measured)) / np.linalg.norm(_spreads(predicted)))
    differences = {
        unit_ratio: abs(np.log(max(ratio, 1e-300) / unit_ratio)) for unit_ratio in UNIT_RATIOS
    }
    nearest = min(differences, key=differences.__getitem__)
    is_known = differences[nearest] < np.log(UNIT_RATIO_TOLERANCE)
    if is_known and _misfit(measured / nearest, predicted) < MAX_UNIT_MISFIT:
        what = f"positions spread {ratio:.4g} times as far as the nominal ones: {UNIT_RATIOS[nearest]}?"
        return [Problem(where=where, what=what, remedy="give the unit of the columns")]
    distance = np.linalg.norm(measured - np.median(measured, axis=0), axis=1)
    reach = float(np.linalg.norm(predicted - predicted.mean(axis=0), axis=1).max())
    typical_distance = max(min(np.median(distance), reach), 1e-12)
    far_rows = np.flatnonzero(distance > FAR_DISTANCE_RATIO * typical_distance)
    # If more than half of the positions are far, the prediction is wrong instead, such as with
    # encoders in another unit.
    if 2 <= len(far_rows) <= len(series) / 2 and _fits_in_two_units(measured, predicted, far_rows):
        names = ", ".join(series.label(int(i)) for i in far_rows[:MAX_LISTED_POSES])
        times = distance[far_rows].min() / typical_distance
        what = (
            f"{len(far_rows)} of {len(series)} positions are {times:.0f} times as far away as the "
            f"others ({names}): two units in one table?"
        )
        return [Problem(where=where, what=what, remedy="convert all rows to the same unit")]
    return []


def _fits_in_two_units(measured: np.ndarray, predicted: np.ndarray, far: np.ndarray) -> bool:
    """Return whether positions fit the predicted positions after a change of the far rows' unit."""
    for ratio in UNIT_RATIOS:
        corrected = measured.copy()
        corrected[far] /= ratio
        if _misfit(corrected, predicted) < MAX_UNIT_MISFIT:
            return True
    return False


def _misfit(measured: np.ndarray, predicted: np.ndarray) -> float:
    """Return the RMS distance to predicted positions in the best frame, relative to the spread."""
    _, rotated, mirrored = kabsch(measured, predicted)
    return min(rotated, mirrored) / float(np.linalg.norm(_spreads(predicted)))


def _nominal_distance(
    problem: CalibrationProblem,
    measured_pose: MeasuredPose,
    encoders: np.ndarray,
    measured: np.ndarray,
    is_frame_unknown: bool,
) -> float | None:
    """Return the RMS distance between measured and nominal positions for other encoder readings, m.

    It is None if poses are out of reach.
    """
    zero = np.zeros(len(problem.unknowns))
    other = with_encoders(measured_pose, encoders, problem.assembly.q, zero)
    state = other.state(zero, other.q)
    if not state.is_reached.all():
        return None
    if is_frame_unknown and len(measured) > 3:
        return kabsch(measured, state.errors[:, :3] + measured_pose.series.readings[:, :3])[1]
    return rms_distance(state.errors[:, :3])


def _beyond_stops(
    problem: CalibrationProblem, measured_pose: MeasuredPose, q: np.ndarray
) -> list[Problem]:
    """Return problems of poses whose loops close with driven joints far beyond their stops."""
    limits = limits_of(problem.mechanism, problem.assembly.topology)
    values = limits.values(q)
    excess = -limits.room(q, ("stop",))
    width = limits.upper - limits.lower
    driven = {name for actuator in problem.mechanism.actuators for name, _ in actuator.drives}
    excess[:, [name not in driven for name in limits.names]] = -np.inf
    beyond = np.flatnonzero((excess > STOP_TOLERANCE * width).any(axis=1))
    problems = Problems()
    for pose in beyond[:MAX_LISTED_POSES]:
        j = int(excess[pose].argmax())
        if limits.units[j] == "rad":
            factor = np.degrees(1.0)
            unit = "deg"
        else:
            factor = 1e3
            unit = "mm"
        value = factor * values[pose, j]
        overrun = factor * excess[pose, j]
        lower = factor * limits.lower[j]
        upper = factor * limits.upper[j]
        what = (
            f"the encoders put {limits.names[j]} at {value:.4g} {unit}, {overrun:.3g} {unit} beyond its range of "
            f"{lower:.4g} to {upper:.4g} {unit}; {len(beyond)} of {len(q)} poses are beyond a range"
        )
        remedy = (
            "check the encoders of this pose, their unit and zero; remove the pose, or correct the limits in "
            "the machine file"
        )
        label = measured_pose.series.label(int(pose) // measured_pose.poses)
        problems.add(f"{measured_pose.series.instrument.name}, {label}", what, remedy)
    return problems


def _gross_errors(
    problem: CalibrationProblem, measured_pose: MeasuredPose, errors: np.ndarray, spread: float
) -> list[Problem]:
    """Return problems of single poses with errors that no geometry explains."""
    series = measured_pose.series
    lengths = [k for k, (_, unit) in enumerate(series.instrument.errors) if unit == "m"]
    if not lengths:
        return []
    error_norms = np.linalg.norm(errors[:, lengths], axis=1)
    median = float(np.median(error_norms))
    gross_poses = np.flatnonzero(
        error_norms > max(GROSS_ERROR_RATIO * median, MIN_RELATIVE_ERROR * spread)
    )
    problems = Problems()
    for pose in gross_poses[np.argsort(-error_norms[gross_poses])][:MAX_LISTED_POSES]:
        what = (
            f"error of {1e3 * error_norms[pose]:.3g} mm with the nominal geometry; "
            f"the median is {1e3 * median:.3g} mm, and "
            f"{len(gross_poses)} of {counted(len(series), 'pose')} have such errors"
        )
        change = _fitting_unit(
            problem, measured_pose.take(np.array([pose])), float(error_norms[pose])
        )
        remedy = "measure this pose again, remove it, or use a robust loss"
        if change:
            what = f"{what}; {change}: two units in one table?"
            remedy = "convert all rows to the same unit"
        problems.add(f"{series.instrument.name}, {series.label(int(pose))}", what, remedy)
    return problems


def _fitting_unit(problem: CalibrationProblem, measured_pose: MeasuredPose, error: float) -> str:
    """Return a description of the change of unit that makes a pose fit; empty if there is none.

    Args:
        problem: the calibration, by forward kinematics.
        measured_pose: a single pose.
        error: error of the pose without the change, m.
    """
    series = measured_pose.series
    columns = series.instrument.columns
    errors = series.instrument.errors
    if len(columns) != len(errors) or any(unit != "m" for _, unit in (*columns, *errors)):
        return ""
    zero = np.zeros(len(problem.unknowns))
    predicted = measured_pose.state(zero, measured_pose.q).errors + series.readings
    fits: list[tuple[float, str]] = []
    for ratio in UNIT_RATIOS:
        distance = float(np.linalg.norm(predicted - ratio * series.readings))
        fits.append((distance, f"the readings multiplied by {ratio:g}"))
        scaled_distance = _nominal_distance(
            problem, measured_pose, ratio * series.encoders, series.readings, is_frame_unknown=False
        )
        if scaled_distance is not None:
            fits.append((scaled_distance, f"the encoders multiplied by {ratio:g}"))
    least, change = min(fits)
    if error <= MIN_FIT_RATIO * least:
        return ""
    return f"{1e3 * least:.3g} mm with {change}"
