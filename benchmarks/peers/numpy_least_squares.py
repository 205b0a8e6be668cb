"""Identification of the five-bar of `closed_form.py` written by hand: NumPy, SciPy and a closed form.

    python benchmarks/peers/numpy_least_squares.py LOG.parquet CUTOFF TRIM DECIMATION

Positions pass a zero-phase Butterworth filter and are differentiated, the regressor of all samples
follows from closed forms, regressor and forces are decimated by one filter, and
`numpy.linalg.lstsq` finds the parameters. The residuals (RMS, N m) are printed as JSON.
`bench_identification.py` compares the time of this process with that of the command.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet
from scipy import signal

GRAVITY = 9.81
#: As in `closed_form.py`, which imports Tauloop; this process must not.
BASE, CRANK, LINK = 0.09, 0.25, 0.36
ZERO = np.array([2.22993974951153, 0.675497024133312])
MOTORS = ("ma", "mb")
ORDER = 4
#: Columns of a body: mass, first moments along and across, inertia about its origin; of a motor:
#: rotor, viscous, dry.
BODY, MOTOR = 4, 3


def along(angle: np.ndarray) -> np.ndarray:
    """Return unit vectors (N, 2) along angles."""
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def across(angle: np.ndarray) -> np.ndarray:
    """Return unit vectors (N, 2) across angles."""
    return np.stack([-np.sin(angle), np.cos(angle)], axis=-1)


def regressor(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return the regressor (N, 2, 24) of motor torques along a motion."""
    count = len(q)
    crank = q + ZERO
    elbows = np.array([[-BASE, 0.0], [BASE, 0.0]]) + CRANK * along(crank)
    between = elbows[:, 1] - elbows[:, 0]
    distance = np.linalg.norm(between, axis=1, keepdims=True)
    normal = np.stack([-between[:, 1], between[:, 0]], axis=1) / distance
    tip = 0.5 * (elbows[:, 0] + elbows[:, 1]) + normal * np.sqrt(LINK**2 - 0.25 * distance**2)
    reach = tip[:, None] - elbows
    link = np.arctan2(reach[..., 1], reach[..., 0])
    link_across = across(link)
    left = LINK * np.stack([link_across[:, 0], -link_across[:, 1]], axis=-1)
    right = CRANK * np.stack([-across(crank[:, 0]), across(crank[:, 1])], axis=-1)
    jacobian = np.linalg.solve(left, right)
    link_v = np.einsum("nij,nj->ni", jacobian, v)
    pull = CRANK * along(crank) * v[..., None] ** 2 + LINK * along(link) * link_v[..., None] ** 2
    bias = np.einsum("nij,nj->ni", right, a) + pull[:, 0] - pull[:, 1]
    link_a = np.linalg.solve(left, bias[..., None])[..., 0]
    columns = np.zeros((count, 2, 4 * BODY + 2 * MOTOR + 2))
    upwards = np.array([0.0, GRAVITY])
    for side in (0, 1):
        unit = np.zeros((count, 2))
        unit[:, side] = 1.0
        elbow_jacobian = CRANK * across(crank[:, side])[:, :, None] * unit[:, None, :]
        elbow_a = CRANK * (
            across(crank[:, side]) * a[:, [side]] - along(crank[:, side]) * v[:, [side]] ** 2
        )
        still, rest = np.zeros((count, 2, 2)), np.zeros((count, 2))
        bodies = (
            (crank[:, side], v[:, side], a[:, side], unit, still, rest),
            (
                link[:, side],
                link_v[:, side],
                link_a[:, side],
                jacobian[:, side],
                elbow_jacobian,
                elbow_a,
            ),
        )
        for number, (angle, speed, rate, turning, moving, origin_a) in enumerate(bodies):
            first = (2 * side + number) * BODY
            lifted = origin_a + upwards
            columns[:, :, first] = np.einsum("nij,ni->nj", moving, lifted)
            for place, (axis, turned) in enumerate(
                ((along(angle), across(angle)), (across(angle), -along(angle))), 1
            ):
                center_a = turned * rate[:, None] - axis * speed[:, None] ** 2
                moment = np.einsum("ni,ni->n", turned, lifted)
                columns[:, :, first + place] = (
                    np.einsum("nij,ni->nj", moving, center_a) + moment[:, None] * turning
                )
            columns[:, :, first + 3] = rate[:, None] * turning
        relative = link_v[:, side] - v[:, side]
        columns[:, :, 4 * BODY + 2 * MOTOR + side] = relative[:, None] * (jacobian[:, side] - unit)
        of_motor = 4 * BODY + MOTOR * side
        columns[:, side, of_motor] = a[:, side]
        columns[:, side, of_motor + 1] = v[:, side]
        columns[:, side, of_motor + 2] = np.sign(v[:, side])
    return columns


def identify(path: Path, cutoff: float, trim: int, decimation: int) -> np.ndarray:
    """Return the root mean square (2,) of the residuals of both motors."""
    table = pyarrow.parquet.read_table(path)
    time = table["time [s]"].to_numpy()
    position = np.stack([table[f"position.{name} [rad]"].to_numpy() for name in MOTORS], axis=1)
    forces = np.stack([table[f"force.{name} [N m]"].to_numpy() for name in MOTORS], axis=1)
    period = (time[-1] - time[0]) / (len(time) - 1)
    sections = signal.butter(ORDER, cutoff, fs=1.0 / period, output="sos")
    position = signal.sosfiltfilt(sections, position, axis=0)
    velocity = np.gradient(position, period, axis=0)
    acceleration = np.gradient(velocity, period, axis=0)
    inside = slice(trim, len(time) - trim)
    columns = regressor(position[inside], velocity[inside], acceleration[inside])
    columns = signal.decimate(columns, decimation, ftype="fir", axis=0)
    forces = signal.decimate(forces[inside], decimation, ftype="fir", axis=0)
    rows = columns.reshape(-1, columns.shape[-1])
    values = np.linalg.lstsq(rows, forces.ravel(), rcond=1e-9)[0]
    residuals = forces - columns @ values
    return np.asarray(np.sqrt(np.mean(residuals**2, axis=0)))


if __name__ == "__main__":
    found = identify(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    print(json.dumps({"residuals": found.tolist()}))
