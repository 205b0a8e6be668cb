"""Coordinates that the positions of the leading actuators determine without the loops.

An actuator may drive several coordinates, as a tendon over two joints does. Couplings and constant
coordinates are linear equations between them, which are solved before any loop is closed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.equations.assembly.freedoms.coordinates import independent_rows
from tauloop.equations.assembly.loops import Loops

#: Singular values below this fraction of the largest count as zero. Gear ratios span fewer orders
#: of magnitude.
DRIVE_RANK_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadingDrive:
    """Positions p of the leading actuators as functions of coordinates x: p = matrix x + offset.

    Attributes:
        v: indices of the velocities of x.
        matrix: actuator positions per unit of x (n_leading, len(v)).
        offset: positions of the actuators where x is zero (n_leading,).
    """

    v: tuple[int, ...]
    matrix: np.ndarray
    offset: np.ndarray


def leading_drive(
    loops: Loops, leading: Sequence[int], passive: Sequence[int], constants: dict[int, float]
) -> LeadingDrive:
    """Return the coordinates that the leading actuators drive and couplings do not determine.

    The couplings among the driven coordinates x are R x = r. With x = (y, z), they determine
    z = R_z^-1 (r - R_y y), so that p = (A_y - A_z R_z^-1 R_y) y + A_z R_z^-1 r + b with the offsets
    b of the actuators.

    Args:
        loops: loops of the machine.
        leading: indices of the actuators.
        passive: indices of the passive velocities, which are also given.
        constants: values of constant coordinates, by velocity index.
    """
    transmission = loops.transmission[list(leading)]
    driven = [int(i) for i in np.flatnonzero(np.any(transmission, axis=0))]
    ratios, sums = _linear_equations(
        loops, driven, {i: value for i, value in constants.items() if i in driven}
    )
    followers = _followers(ratios, driven, passive)
    leaders = [k for k in range(len(driven)) if k not in followers]
    A = transmission[:, driven]
    to_actuators = A[:, followers] @ np.linalg.inv(ratios[:, followers])
    return LeadingDrive(
        v=tuple(driven[k] for k in leaders),
        matrix=A[:, leaders] - to_actuators @ ratios[:, leaders],
        offset=to_actuators @ sums + loops.actuator_offsets[list(leading)],
    )


def _linear_equations(
    loops: Loops, driven: list[int], constants: dict[int, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return R (k, n_driven) and r (k,) of the independent equations R x = r of driven coordinates.

    Couplings may contain other coordinates too. The equations are combinations of couplings in
    which these coordinates cancel.
    """
    n_v = loops.topology.n_v
    rows = np.concatenate([loops.coupling_ratios, np.eye(n_v)[list(constants)]])
    sums = np.concatenate([loops.coupling_offsets, list(constants.values())])
    others = [i for i in range(n_v) if i not in driven]
    combinations = _left_null_space(rows[:, others])
    ratios, sums = combinations @ rows[:, driven], combinations @ sums
    independent = list(independent_rows(ratios[None], _rank(ratios)))
    return ratios[independent], sums[independent]


def _followers(ratios: np.ndarray, driven: list[int], passive: Sequence[int]) -> list[int]:
    """Return the driven coordinates, without passive ones, that follow from the others."""
    preference = np.array([0.0 if i in passive else 1.0 for i in driven])
    return list(independent_rows(ratios.T[None], len(ratios), preference=preference))


def _rank(matrix: np.ndarray) -> int:
    sigma = np.linalg.svd(matrix, compute_uv=False) if matrix.size else np.zeros(0)
    return int((sigma > DRIVE_RANK_TOLERANCE * sigma.max(initial=0.0)).sum())


def _left_null_space(matrix: np.ndarray) -> np.ndarray:
    """Return combinations (k, n) of the rows of a matrix (n, m) that vanish."""
    if not matrix.size:
        return np.eye(len(matrix))
    U, _, _ = np.linalg.svd(matrix)
    return np.asarray(U[:, _rank(matrix) :].T)
