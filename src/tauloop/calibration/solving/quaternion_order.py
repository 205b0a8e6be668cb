"""Check of the order and direction of quaternions, which programs define differently.

Measured orientations q and predicted orientations p, as unit quaternions, satisfy q = a p b with
the rotations a of the instrument's frame and b of the target. For unknown a and b the map from
p to q is an arbitrary rotation in four dimensions. The maps to quaternions in the order
(x, y, z, w), to inverse rotations, and to two exchanged components or one of opposite sign have the
determinant -1, so these fit only after a reflection. Measured positions determine a, which shows
which of these maps explains the measurements.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from tauloop.calibration.problem.measured_poses import MeasuredPose
from tauloop.calibration.solving.registration import kabsch, rotation_between
from tauloop.common.errors import Problem

#: A reflection is reported if it leaves an error that is smaller by this factor, ...
MIN_REFLECTION_RATIO = 5.0
#: ... and if the error without it exceeds this number, for quaternions of length 1.
MIN_QUATERNION_ERROR = 1e-3
#: Minimum number of poses.
MIN_QUATERNION_POSES = 6
#: Order of the components that gives (w, x, y, z), by the description of the measured quaternions.
COMPONENT_ORDERS = {
    "in the order x, y, z, w": (3, 0, 1, 2),
    "with qx and qy exchanged": (0, 2, 1, 3),
    "with qx and qz exchanged": (0, 3, 2, 1),
    "with qy and qz exchanged": (0, 1, 3, 2),
}
#: Factors of the components that give the rotations, by the description of the measured quaternions.
COMPONENT_SIGNS = {
    "of inverse rotations": (1.0, -1.0, -1.0, -1.0),
    "with the opposite sign of qx": (1.0, -1.0, 1.0, 1.0),
    "with the opposite sign of qy": (1.0, 1.0, -1.0, 1.0),
    "with the opposite sign of qz": (1.0, 1.0, 1.0, -1.0),
}


def wrong_quaternions(measured_pose: MeasuredPose, errors: np.ndarray) -> list[Problem]:
    """Return a problem if measured orientations only fit in another order or as inverse rotations.

    Args:
        measured_pose: the measured poses, by forward kinematics.
        errors: errors of the instrument (N, n_errors), without corrections.
    """
    instrument = measured_pose.series.instrument
    first = instrument.quaternion_column
    readings = measured_pose.series.readings
    if first is None or len(readings) < MIN_QUATERNION_POSES:
        return []
    measured = readings[:, first : first + 4]
    measured = measured / np.linalg.norm(measured, axis=1, keepdims=True)
    relative_rotations = instrument.readings_at(errors)[:, first : first + 4]
    if not (np.isfinite(measured).all() and np.isfinite(relative_rotations).all()):
        return []
    predictions = _rotations(measured) * _rotations(relative_rotations)
    predicted = predictions.as_quat(scalar_first=True)
    _, rotated, reflected = rotation_between(_in_half_space(predicted), _in_half_space(measured))
    if rotated <= max(MIN_REFLECTION_RATIO * reflected, MIN_QUATERNION_ERROR):
        return []
    candidates = {name: measured[:, order] for name, order in COMPONENT_ORDERS.items()}
    candidates |= {name: measured * np.array(signs) for name, signs in COMPONENT_SIGNS.items()}
    names = list(candidates)
    if instrument.position_columns:
        columns = list(instrument.position_columns)
        positions = readings[:, columns]
        frame = Rotation.from_matrix(kabsch(positions, errors[:, columns] + positions)[0])
        spread = {
            name: _spread(predictions.inv() * frame * _rotations(values))
            for name, values in candidates.items()
        }
        limit = MIN_REFLECTION_RATIO * min(spread.values())
        names = [name for name in names if spread[name] < limit] or names
    what = (
        f"look like quaternions {', or '.join(names)}: they differ from the nominal orientations by "
        f"{rotated:.3g} RMS, and by {reflected:.3g} after a reflection"
    )
    remedy = (
        "give the rotation from the target's frame to the instrument's frame as qw, qx, qy, qz: "
        "exchange the columns, or change the sign of one"
    )
    return [Problem(f"{instrument.name}.readings", f"orientations {what}", remedy)]


def _in_half_space(quaternions: np.ndarray) -> np.ndarray:
    """Return quaternions (N, 4) with signs that make their products with the first one positive."""
    return quaternions * np.where(quaternions @ quaternions[0] < 0.0, -1.0, 1.0)[:, None]


def _rotations(quaternions: np.ndarray) -> Rotation:
    """Return the rotations of quaternions (N, 4) with the real part first."""
    return Rotation.from_quat(quaternions, scalar_first=True)


def _spread(rotations: Rotation) -> float:
    """Return the RMS distance of unit quaternions from their mean, regardless of their signs."""
    quaternions = rotations.as_quat(scalar_first=True)
    eigenvalues = np.linalg.eigvalsh(quaternions.T @ quaternions / len(quaternions))
    return float(np.sqrt(max(1.0 - eigenvalues[-1], 0.0)))
