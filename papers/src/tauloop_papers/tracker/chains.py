"""A linear start for the calibration of one chain of a translational machine: a cart on a track and one link.

With the platform's joint at X and the cart's at o + q c, the link's equation

    |X|^2 - 2 X.(o + q c) + q^2 c.c + 2 q o.c + (o.o - L^2) = 0

is linear in o, c and three lumped constants k = (c.c, 2 o.c, o.o - L^2), nine unknowns of which seven are free. The
lumped constants are estimated as if they were independent, so noise and model errors are amplified: a start, no more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tauloop.errors import IdentificationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """One chain: the cart's joint is at offset + q c, the platform's at X, the distance is the length.

    Attributes:
        offset: o (3,), m.
        direction: c (3,), track direction times cart travel per motor travel.
        length: L, m.
    """

    offset: np.ndarray
    direction: np.ndarray
    length: float

    @property
    def gain(self) -> float:
        """Motor travel per cart travel, 1/|c|."""
        return float(1.0 / np.linalg.norm(self.direction))

    @property
    def yaw(self) -> float:
        """First turn of the track, about z, rad."""
        return float(np.arctan2(self.direction[1], self.direction[0]))

    @property
    def pitch(self) -> float:
        """Second turn of the track, about its own y, rad."""
        return float(-np.arcsin(self.direction[2] * self.gain))


def linear_chain(X: np.ndarray, q: np.ndarray) -> Chain:
    """Fit one chain linearly.

    Args:
        X: positions of the platform's joint (N, 3), m.
        q: motor positions (N,), m.

    Raises:
        IdentificationError: the poses do not determine the nine unknowns, or the squared length comes out negative.
    """
    matrix = np.column_stack([-2 * X, -2 * X * q[:, None], q**2, q, np.ones_like(q)])
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0.0] = 1.0
    solution, _, rank, _ = np.linalg.lstsq(matrix / scale, -(X * X).sum(axis=1), rcond=None)
    if rank < matrix.shape[1]:
        what = f"{len(X)} poses determine {rank} of {matrix.shape[1]} linear unknowns"
        raise IdentificationError.of("poses", what, "spread the poses over the work volume")
    solution = solution / scale
    offset, direction, constant = solution[:3], solution[3:6], float(solution[8])
    squared = float(offset @ offset) - constant
    if not squared > 0:
        what = f"the squared length of the link comes out as {squared:.3g} m^2"
        raise IdentificationError.of("linear start", what, "start from the nominal geometry")
    return Chain(offset=offset, direction=direction, length=float(np.sqrt(squared)))
