"""Readings that belong to other rows of the table: some rows late or early, or in another order than the encoders.

A reading that is k rows late is compared with the prediction k rows before it. Other orders are
found without the instrument's frame: distances between points do not depend on it, so quantiles of
the distances from a point to all others recognise the point.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from tauloop.calibration.problem.measured_poses import MeasuredPose
from tauloop.calibration.solving.registration import kabsch
from tauloop.common.errors import Problem

#: Another order is believed when it fits so many times better.
FITS_BETTER = 5.0
#: And when the readings, as they are, are off by this share of the spread of the poses.
LARGE_ERROR = 0.02
#: Rows by which readings may be late or early.
SHIFTS = (1, -1, 2, -2, 3, -3)
#: Residuals less unknowns that comparisons need: chance then makes no ratio of `FITS_BETTER`.
LEAST_FREEDOM = 10
#: Points of fewer rows are not recognised by their distances.
LEAST_ROWS = 6
#: Distances between all points are not kept for more rows.
MOST_ROWS = 2000
#: Quantiles of distances by which a point is recognised.
QUANTILES = np.linspace(0.0, 1.0, 33)
#: A reading belongs to a pose within this share of the distance between neighbouring poses.
NEAR = 0.2
#: Least share of the rows that find a pose of their own.
MATCHED = 0.9
#: Searches for the nearest poses after the first guess.
ROUNDS = 5
#: Rows that are named one by one.
NAMED = 4


def wrong_rows(
    measured_pose: MeasuredPose, residual: np.ndarray, errors: np.ndarray, jacobian: np.ndarray
) -> list[Problem]:
    """Return what is wrong where readings fit other rows much better than their own.

    Args:
        measured_pose: the series with its whitening, by forward kinematics.
        residual: whitened (N, r), without corrections.
        errors: of the instrument (N, n_errors), without corrections, SI.
        jacobian: of the residuals (N, r, n) in the free unknowns, scaled by their tolerances.
    """
    instrument = measured_pose.series.instrument
    if instrument.position_columns:
        columns = list(instrument.position_columns)
        measured = measured_pose.series.readings[:, columns]
        predicted = errors[:, columns] + measured
        return _late_points(measured_pose, measured, predicted) or _shuffled(
            measured_pose, measured, predicted
        )
    if instrument.quaternion_column is None and len(instrument.columns) == len(instrument.errors):
        return _late_readings(measured_pose, residual, jacobian)
    return []


def _late_points(
    measured_pose: MeasuredPose, measured: np.ndarray, predicted: np.ndarray
) -> list[Problem]:
    """Positions that fit the nominal ones some rows off, whatever the frame."""
    as_is = kabsch(measured, predicted)[1]
    distance = {}
    for shift in SHIFTS:
        rows, partners = _shifted(len(measured), shift)
        if 3 * len(rows) >= LEAST_FREEDOM + 6:
            distance[shift] = kabsch(measured[rows], predicted[partners])[1]
    best = min(distance, key=lambda shift: distance[shift], default=0)
    if not best or as_is <= FITS_BETTER * distance[best]:
        return []
    fits = f"{1e3 * distance[best]:.3g} mm RMS from the nominal positions when moved, {1e3 * as_is:.3g} mm as they are"
    return [_late(measured_pose, best, fits)]


def _late_readings(
    measured_pose: MeasuredPose, residual: np.ndarray, jacobian: np.ndarray
) -> list[Problem]:
    """Other readings that fit some rows off, whatever the unknowns (to first order)."""
    series = measured_pose.series
    count = len(series)
    first = measured_pose.n_equations[0] + measured_pose.n_equations[1]
    is_error = (measured_pose.elimination.soft >= first) & (
        measured_pose.elimination.soft < first + len(series.instrument.errors)
    )
    weights = measured_pose.elimination.whitening[:, :, is_error]

    def left(rows: np.ndarray, sources: np.ndarray) -> float | None:
        """Root mean square of what the unknowns leave where rows get the readings of other rows."""
        change = (weights[rows] @ (series.readings[rows] - series.readings[sources])[:, :, None])[
            :, :, 0
        ]
        r = (residual[rows] + change).ravel()
        J = jacobian[rows].reshape(len(r), -1)
        U, sizes, _ = np.linalg.svd(J, full_matrices=False)
        U = U[:, sizes > 1e-10 * max(float(sizes.max(initial=0.0)), 1e-300)]
        freedom = len(r) - U.shape[1]
        if freedom < LEAST_FREEDOM:
            return None
        r = r - U @ (U.T @ r)
        return float(np.sqrt(r @ r / freedom))

    every = np.arange(count)
    as_is = left(every, every)
    moved = {}
    for shift in SHIFTS:
        sources, rows = _shifted(count, shift)
        size = left(rows, sources) if len(rows) else None
        if size is not None:
            moved[shift] = size
    best = min(moved, key=lambda shift: moved[shift], default=0)
    if as_is is None or not best or as_is <= FITS_BETTER * max(moved[best], 1.0):
        return []
    fits = (
        f"{moved[best]:.3g} standard deviations RMS after a fit when moved, {as_is:.3g} as they are"
    )
    return [_late(measured_pose, best, fits)]


def _shifted(count: int, late: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of readings that are so many rows late (early where negative), and the rows of their poses."""
    every = np.arange(count)
    return (
        (every[late:], every[: count - late])
        if late > 0
        else (every[: count + late], every[-late:])
    )


def _late(measured_pose: MeasuredPose, shift: int, fits: str) -> Problem:
    size, when = abs(shift), "late" if shift > 0 else "early"
    each = "pose" if measured_pose.poses == 1 else "reading"
    poses = each if size == 1 else f"{each}s"
    where = f"{measured_pose.series.instrument.name}.readings"
    remedy = (
        f"move the readings {'up' if shift > 0 else 'down'} by {size} row{'' if size == 1 else 's'}"
    )
    return Problem(
        where,
        f"the readings look {size} {poses} {when}: {fits}",
        f"{remedy}, and leave out rows without",
    )


def _shuffled(
    measured_pose: MeasuredPose, measured: np.ndarray, predicted: np.ndarray
) -> list[Problem]:
    """Positions that fit the nominal ones in another order of the rows."""
    count = len(measured)
    centred = predicted - predicted.mean(axis=0)
    spread = float(np.sqrt((centred**2).sum(axis=1).mean()))
    as_is = kabsch(measured, predicted)[1]
    if not LEAST_ROWS <= count <= MOST_ROWS or as_is <= LARGE_ERROR * spread:
        return []
    tree = cKDTree(predicted)
    neighbour = tree.query(predicted, k=2)[0][:, 1]
    spacing = float(np.median(neighbour))
    known, seen = (
        np.quantile(cdist(points, points), QUANTILES, axis=1).T for points in (predicted, measured)
    )
    order = cKDTree(known).query(seen)[1]
    distance = np.full(count, np.inf)
    for _ in range(ROUNDS):
        R, _, _ = kabsch(measured, predicted[order])
        moved = (measured - measured.mean(axis=0)) @ R.T + predicted[order].mean(axis=0)
        distance, nearest = tree.query(moved)
        if np.array_equal(nearest, order):
            break
        order = nearest
    is_near = distance < NEAR * spacing
    others = np.flatnonzero(is_near & (order != np.arange(count)))
    matched = float(np.sqrt(np.mean(distance[is_near] ** 2))) if is_near.any() else np.inf
    if (
        len(np.unique(order[is_near])) < MATCHED * count
        or not len(others)
        or as_is <= FITS_BETTER * matched
    ):
        return []
    label = measured_pose.series.label
    pairs = ", ".join(f"that of {label(int(i))} to {label(int(order[i]))}" for i in others[:NAMED])
    more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
    what = (
        f"the rows look shuffled: {len(others)} of {count} readings fit other poses ({pairs}{more}), "
        f"{1e3 * matched:.3g} mm RMS from the nominal positions when moved there, {1e3 * as_is:.3g} mm as they are"
    )
    remedy = "bring encoders and readings to the same order of rows"
    return [Problem(f"{measured_pose.series.instrument.name}.readings", what, remedy)]
