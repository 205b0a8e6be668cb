"""Checks of the row order: readings that are some rows late or early, or in another order.

To test readings that are k rows late, each is compared with the prediction k rows before it. Other
orders are found without the instrument's frame: distances between points do not depend on it, and
quantiles of the distances from a point to all others identify the point.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from tauloop.calibration.problem.measured_poses import MeasuredPose
from tauloop.calibration.solving.registration import kabsch
from tauloop.common.errors import Problem

#: Another explanation of the readings is reported if its error is smaller by this factor, ...
MIN_FIT_RATIO = 5.0
#: ... and if the error of the unchanged readings exceeds this fraction of the spread of the poses.
MIN_RELATIVE_ERROR = 0.02
#: Numbers of rows by which readings may be late (positive) or early (negative).
SHIFTS = (1, -1, 2, -2, 3, -3)
#: Minimum degrees of freedom of a comparison, so that a ratio of `MIN_FIT_RATIO` is unlikely by
#: chance.
MIN_DEGREES_OF_FREEDOM = 10
#: Minimum number of rows for identifying points by their distances.
MIN_ROWS = 6
#: Maximum number of rows for identifying points, which needs the distances between all points.
MAX_ROWS = 2000
#: Quantiles of distances that identify a point.
QUANTILES = np.linspace(0.0, 1.0, 33)
#: A reading matches a pose within this fraction of the distance between neighboring poses.
MATCH_TOLERANCE = 0.2
#: Minimum fraction of the rows that must match different poses.
MIN_MATCHED_FRACTION = 0.9
#: Maximum number of searches for the nearest poses after the initial order.
MAX_SEARCHES = 5
#: Maximum number of rows listed in a message.
MAX_LISTED_ROWS = 4


def wrong_rows(
    measured_pose: MeasuredPose, residual: np.ndarray, errors: np.ndarray, jacobian: np.ndarray
) -> list[Problem]:
    """Return a problem if readings fit other rows much better than their own rows.

    Args:
        measured_pose: the measured poses, by forward kinematics.
        residual: whitened residuals (N, r), without corrections.
        errors: errors of the instrument (N, n_errors), without corrections, SI.
        jacobian: Jacobian of the residuals (N, r, n) with respect to the free unknowns, scaled by
            their tolerances.
    """
    instrument = measured_pose.series.instrument
    if instrument.position_columns:
        columns = list(instrument.position_columns)
        measured = measured_pose.series.readings[:, columns]
        predicted = errors[:, columns] + measured
        return _late_points(measured_pose, measured, predicted) or _shuffled_rows(
            measured_pose, measured, predicted
        )
    if instrument.quaternion_column is None and len(instrument.columns) == len(instrument.errors):
        return _late_readings(measured_pose, residual, jacobian)
    return []


def _late_points(
    measured_pose: MeasuredPose, measured: np.ndarray, predicted: np.ndarray
) -> list[Problem]:
    """Return a problem if positions fit the nominal positions after a shift of rows.

    The frame of the instrument is arbitrary.
    """
    unchanged_error = kabsch(measured, predicted)[1]
    distance = {}
    for shift in SHIFTS:
        rows, partners = _shifted_rows(len(measured), shift)
        # Each row has three numbers, and the rigid registration has six unknowns.
        if 3 * len(rows) >= MIN_DEGREES_OF_FREEDOM + 6:
            distance[shift] = kabsch(measured[rows], predicted[partners])[1]
    best = min(distance, key=lambda shift: distance[shift], default=0)
    if not best or unchanged_error <= MIN_FIT_RATIO * distance[best]:
        return []
    comparison = (
        f"they differ from the nominal positions by {1e3 * distance[best]:.3g} mm RMS when moved, and "
        f"by {1e3 * unchanged_error:.3g} mm unchanged"
    )
    return [_shift_problem(measured_pose, best, comparison)]


def _late_readings(
    measured_pose: MeasuredPose, residual: np.ndarray, jacobian: np.ndarray
) -> list[Problem]:
    """Return a problem if readings fit after a shift of rows, with corrections to first order."""
    series = measured_pose.series
    count = len(series)
    elimination = measured_pose.elimination
    first = measured_pose.n_equations[0] + measured_pose.n_equations[1]
    last = first + len(series.instrument.errors)
    is_error = (elimination.soft >= first) & (elimination.soft < last)
    weights = elimination.whitening[:, :, is_error]

    def fitted_rms(rows: np.ndarray, sources: np.ndarray) -> float | None:
        """Return the residual RMS of a fit in which rows have the readings of other rows."""
        change = weights[rows] @ (series.readings[rows] - series.readings[sources])[:, :, None]
        r = (residual[rows] + change[:, :, 0]).ravel()
        J = jacobian[rows].reshape(len(r), -1)
        U, singular_values, _ = np.linalg.svd(J, full_matrices=False)
        largest = max(float(singular_values.max(initial=0.0)), 1e-300)
        U = U[:, singular_values > 1e-10 * largest]
        dof = len(r) - U.shape[1]
        if dof < MIN_DEGREES_OF_FREEDOM:
            return None
        r = r - U @ (U.T @ r)
        return float(np.sqrt(r @ r / dof))

    all_rows = np.arange(count)
    unchanged_error = fitted_rms(all_rows, all_rows)
    shifted_rms = {}
    for shift in SHIFTS:
        sources, rows = _shifted_rows(count, shift)
        rms = fitted_rms(rows, sources) if len(rows) else None
        if rms is not None:
            shifted_rms[shift] = rms
    best = min(shifted_rms, key=lambda shift: shifted_rms[shift], default=0)
    if (
        unchanged_error is None
        or not best
        or unchanged_error <= MIN_FIT_RATIO * max(shifted_rms[best], 1.0)
    ):
        return []
    comparison = (
        f"residuals after a fit are {shifted_rms[best]:.3g} standard deviations RMS when moved, and "
        f"{unchanged_error:.3g} unchanged"
    )
    return [_shift_problem(measured_pose, best, comparison)]


def _shifted_rows(count: int, late: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the row indices of readings that are late (early if negative), and of their poses."""
    rows = np.arange(count)
    if late > 0:
        return rows[late:], rows[: count - late]
    return rows[: count + late], rows[-late:]


def _shift_problem(measured_pose: MeasuredPose, shift: int, comparison: str) -> Problem:
    """Return the problem of readings that are some rows late or early."""
    count = abs(shift)
    when = "late" if shift > 0 else "early"
    direction = "up" if shift > 0 else "down"
    row = "pose" if measured_pose.poses == 1 else "reading"
    plural = "" if count == 1 else "s"
    return Problem(
        f"{measured_pose.series.instrument.name}.readings",
        f"the readings look {count} {row}{plural} {when}: {comparison}",
        f"move the readings {direction} by {count} row{plural}, and remove rows without a reading",
    )


def _shuffled_rows(
    measured_pose: MeasuredPose, measured: np.ndarray, predicted: np.ndarray
) -> list[Problem]:
    """Return a problem if positions fit the nominal positions in another order of the rows."""
    count = len(measured)
    centered = predicted - predicted.mean(axis=0)
    spread = float(np.sqrt((centered**2).sum(axis=1).mean()))
    unchanged_error = kabsch(measured, predicted)[1]
    if not MIN_ROWS <= count <= MAX_ROWS or unchanged_error <= MIN_RELATIVE_ERROR * spread:
        return []
    tree = cKDTree(predicted)
    neighbor_distances = tree.query(predicted, k=2)[0][:, 1]
    spacing = float(np.median(neighbor_distances))
    order = _order_by_distances(measured, predicted)
    distance = np.full(count, np.inf)
    for _ in range(MAX_SEARCHES):
        R, _, _ = kabsch(measured, predicted[order])
        registered = (measured - measured.mean(axis=0)) @ R.T + predicted[order].mean(axis=0)
        distance, nearest = tree.query(registered)
        if np.array_equal(nearest, order):
            break
        order = nearest
    is_matched = distance < MATCH_TOLERANCE * spacing
    misplaced = np.flatnonzero(is_matched & (order != np.arange(count)))
    n_poses = len(np.unique(order[is_matched]))
    if n_poses < MIN_MATCHED_FRACTION * count or not len(misplaced):
        return []
    matched_rms = float(np.sqrt(np.mean(distance[is_matched] ** 2)))
    if unchanged_error <= MIN_FIT_RATIO * matched_rms:
        return []
    label = measured_pose.series.label
    listed = misplaced[:MAX_LISTED_ROWS]
    pairs = ", ".join(f"that of {label(int(i))} to {label(int(order[i]))}" for i in listed)
    unlisted = len(misplaced) - len(listed)
    more = f" and {unlisted} more" if unlisted else ""
    what = (
        f"the rows look shuffled: {len(misplaced)} of {count} readings fit other poses ({pairs}{more}); "
        f"they differ from the nominal positions by {1e3 * matched_rms:.3g} mm RMS when moved, and by "
        f"{1e3 * unchanged_error:.3g} mm unchanged"
    )
    remedy = "sort encoders and readings in the same order of rows"
    return [Problem(f"{measured_pose.series.instrument.name}.readings", what, remedy)]


def _order_by_distances(measured: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return the predicted point with the most similar distances for each measured point (N, 3)."""
    predicted_quantiles = np.quantile(cdist(predicted, predicted), QUANTILES, axis=1).T
    measured_quantiles = np.quantile(cdist(measured, measured), QUANTILES, axis=1).T
    return np.asarray(cKDTree(predicted_quantiles).query(measured_quantiles)[1])
