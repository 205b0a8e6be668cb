"""FIGAROH on one serial arm: regressor, decimation and base parameters by least squares, as its own example does it.

FIGAROH (github thanhndv212/figaroh, ``pip install figaroh``) is not among Tauloop's requirements:
where it is not installed, its rows state this.
"""

from __future__ import annotations

import importlib
import time
import warnings
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np


class NotInstalled(Exception):
    """FIGAROH, or Pinocchio under it, cannot be imported; the text states the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Processor times (s) of the steps, number of base parameters, and RMS residual of every joint."""

    regressor: float
    decimation: float
    estimation: float
    base_parameters: int
    residuals: np.ndarray

    @property
    def whole(self) -> float:
        """Return the time of all steps, s."""
        return self.regressor + self.decimation + self.estimation


def modules() -> dict[str, Any]:
    """Return FIGAROH's regressor and decomposition, SciPy's signals, and Pinocchio.

    Raises:
        NotInstalled: one of them is missing.
    """
    names = (
        "figaroh.tools.regressor",
        "figaroh.tools.qrdecomposition",
        "scipy.signal",
        "pinocchio",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # dependencies register their types twice
        try:
            return {name.rpartition(".")[2]: importlib.import_module(name) for name in names}
        except ImportError as error:
            raise NotInstalled(str(error)) from None


def identify(
    urdf: str, motion: tuple[np.ndarray, np.ndarray, np.ndarray], torques: np.ndarray, factor: int
) -> Found:
    """Identify base parameters of an arm whose last two joints share a drive.

    Args:
        urdf: text of the file.
        motion: joint positions, velocities and accelerations (N, n), already filtered.
        torques: decimated joint torques (N', n).
        factor: of the decimation.

    Raises:
        NotInstalled: FIGAROH is missing.
    """
    found = modules()
    model = found["pinocchio"].buildModelFromXML(urdf)
    robot = SimpleNamespace(model=model, data=model.createData())
    q, v, a = motion
    count, joints = v.shape
    options = {
        **dict.fromkeys(
            ("has_friction", "has_actuator_inertia", "has_joint_offset", "is_joint_torques"), True
        ),
        "act_idxv": range(joints),
    }
    start = time.process_time()
    rows = found["regressor"].build_regressor_basic(robot, q, v, a, options)
    rows = np.hstack([rows, _shared_drive(v, a)])
    names = {f"p{k:03d}": 0.0 for k in range(rows.shape[1])}
    made = time.process_time()
    left_out, kept = found["regressor"].get_index_eliminate(rows, names)
    rows = found["regressor"].build_regressor_reduced(rows, left_out)
    decimate = found["signal"].decimate
    parts = []
    for first in range(0, len(rows), count):
        columns = rows[first : first + count].T
        parts.append(
            np.stack([decimate(x, factor, ftype="fir", zero_phase=True) for x in columns], 1)
        )
    rows, forces = np.vstack(parts), torques.T.ravel()
    decimated = time.process_time()
    regressor, _, expressions, values = (
        found["qrdecomposition"].QRDecomposer().double_decomposition(forces, rows, kept)
    )
    done = time.process_time()
    residuals = (forces - regressor @ values).reshape(joints, -1)
    return Found(
        regressor=made - start,
        decimation=decimated - made,
        estimation=done - decimated,
        base_parameters=len(expressions),
        residuals=np.sqrt(np.mean(residuals**2, axis=1)),
    )


def _shared_drive(v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return the inertia, viscous and Coulomb columns of a drive that moves with the sum of the last two joints."""
    count, joints = v.shape
    columns = np.zeros((joints, count, 3))
    columns[-2, :, 0], columns[-1, :, 0] = a[:, -1], a[:, -2]
    columns[-2, :, 1], columns[-1, :, 1] = v[:, -1], v[:, -2]
    both = v[:, -2] + v[:, -1]
    # the drive rests: no sign from rounding errors
    both[np.abs(both) < 1e-12 * np.abs(v[:, -2])] = 0.0
    columns[-2:, :, 2] = np.sign(both)
    return columns.reshape(-1, 3)
