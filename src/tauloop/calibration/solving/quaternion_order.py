"""Check of the order and direction of quaternions, which programs define differently.

Measured orientations q and predicted orientations p, as unit quaternions, satisfy q = a p b with
the rotations a of the instrument's frame and b of the target. For unknown a and b this is any
rotation of four dimensions. Quaternions in the order (x, y, z, w), and inverse rotations, have the
determinant -1 and fit only after a reflection.
"""

from __future__ import annotations

import numpy as np

from tauloop.calibration.problem.measured_poses import MeasuredPose
from tauloop.calibration.solving.registration import kabsch
from tauloop.common.errors import Problem

#: A reflection is reported if it leaves an error that is smaller by this factor, ...
MIN_REFLECTION_RATIO = 5.0
#: ... and if the error without it exceeds this number, for quaternions of length 1.
MIN_QUATERNION_ERROR = 1e-3
#: Smallest number of poses.
MIN_POSES = 6
#: Order of the components of (x, y, z, w) that gives (w, x, y, z).
FROM_LAST = (3, 0, 1, 2)


def wrong_quaternions(measured_pose: MeasuredPose, errors: np.ndarray) -> list[Problem]:
    """Return a problem if measured orientations only fit in another order or as inverse rotations.

    Args:
        measured_pose: the measured poses, by forward kinematics.
        errors: errors of the instrument (N, n_errors), without corrections.
    """
    instrument = measured_pose.series.instrument
    first = instrument.quaternion_column
    readings = measured_pose.series.readings
    if first is None or len(readings) < MIN_POSES:
        return []
    measured = readings[:, first : first + 4]
    measured = measured / np.linalg.norm(measured, axis=1, keepdims=True)
    turned = instrument.readings_at(errors)[:, first : first + 4]
    predicted = _product(measured, turned)
    if not np.isfinite(predicted).all():
        return []
    rotated, reflected = _registration_errors(measured, predicted)
    if rotated <= max(MIN_REFLECTION_RATIO * reflected, MIN_QUATERNION_ERROR):
        return []
    candidates = {
        "in the order x, y, z, w": measured[:, FROM_LAST],
        "inverse rotations": measured * np.array([1.0, -1.0, -1.0, -1.0]),
    }
    names = list(candidates)
    if instrument.position_columns:
        columns = list(instrument.position_columns)
        positions = readings[:, columns]
        frame = _quaternion(kabsch(positions, errors[:, columns] + positions)[0])
        spread = {
            name: _spread(_product(_inverse(predicted), _product(frame, values)))
            for name, values in candidates.items()
        }
        best = min(names, key=spread.__getitem__)
        if MIN_REFLECTION_RATIO * spread[best] < max(spread.values()):
            names = [best]
    what = (
        f"look like {' or '.join(names)}: the quaternions differ from the nominal orientations by "
        f"{rotated:.3g} RMS, and by {reflected:.3g} after a reflection"
    )
    remedy = (
        "give the rotation from the target's frame to the instrument's frame as qw, qx, qy, qz: "
        "exchange the columns, or change the sign of qw"
    )
    return [Problem(f"{instrument.name}.readings", f"orientations {what}", remedy)]


def _registration_errors(measured: np.ndarray, predicted: np.ndarray) -> tuple[float, float]:
    """Return the RMS errors of quaternions (N, 4) after the best rotation, and reflection."""
    first, second = (
        values * np.where(values @ values[0] < 0.0, -1.0, 1.0)[:, None]
        for values in (measured, predicted)
    )
    U, _, Vt = np.linalg.svd(first.T @ second)
    sign = np.sign(np.linalg.det(U @ Vt)) or 1.0
    errors = []
    for determinant in (sign, -sign):
        mapped = second @ (U @ np.diag([1.0, 1.0, 1.0, determinant]) @ Vt).T
        errors.append(float(np.sqrt(np.mean(np.sum((first - mapped) ** 2, axis=1)))))
    return errors[0], errors[1]


def _product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the products of quaternions (N, 4) or (4,), with the real part first."""
    w, x, y, z = np.moveaxis(left, -1, 0)
    a, b, c, d = np.moveaxis(right, -1, 0)
    components = (
        w * a - x * b - y * c - z * d,
        w * b + x * a + y * d - z * c,
        w * c - x * d + y * a + z * b,
        w * d + x * c - y * b + z * a,
    )
    return np.stack(components, axis=-1)


def _inverse(quaternions: np.ndarray) -> np.ndarray:
    """Return the inverses of unit quaternions (N, 4)."""
    return quaternions * np.array([1.0, -1.0, -1.0, -1.0])


def _quaternion(rotation: np.ndarray) -> np.ndarray:
    """Return the unit quaternion (4,) of a rotation (3, 3), by its largest eigenvector.

    Source: Bar-Itzhack 2000, New method for extracting the quaternion from a rotation matrix.
    """
    R = rotation
    twice = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    matrix = np.empty((4, 4))
    matrix[0, 0] = np.trace(R)
    matrix[0, 1:] = matrix[1:, 0] = twice
    matrix[1:, 1:] = R + R.T - np.trace(R) * np.eye(3)
    return np.asarray(np.linalg.eigh(matrix)[1][:, -1])


def _spread(quaternions: np.ndarray) -> float:
    """Return the RMS distance of unit quaternions (N, 4) from their mean, in both signs."""
    sizes = np.linalg.eigvalsh(quaternions.T @ quaternions / len(quaternions))
    return float(np.sqrt(max(1.0 - sizes[-1], 0.0)))
