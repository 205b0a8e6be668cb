"""Linear start values for one chain of a translational machine: a cart on a track and one link.

With the platform's joint at X and the cart's at o + q c, the link's equation

    |X|^2 - 2 X.(o + q c) + q^2 c.c + 2 q o.c + (o.o - L^2) = 0

is linear in o, c and three lumped constants k = (c.c, 2 o.c, o.o - L^2), nine unknowns of which
seven are free. The lumped constants are estimated as if they were independent, which amplifies
noise and model errors: the result is only a start. From there the cost of eq. 1 is minimized with
    its
seven unknowns, without code of Tauloop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from tauloop.common.errors import IdentificationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """One chain: cart joint at offset + q c, platform joint at X, and their distance.

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
        """First rotation of the track, about z, rad."""
        return float(np.arctan2(self.direction[1], self.direction[0]))

    @property
    def pitch(self) -> float:
        """Second rotation of the track, about its own y, rad."""
        return float(-np.arcsin(self.direction[2] * self.gain))


def linear_chain(X: np.ndarray, q: np.ndarray) -> Chain:
    """Fit one chain by linear least squares.

    Args:
        X: positions of the platform's joint (N, 3), m.
        q: motor positions (N,), m.

    Raises:
        IdentificationError: the poses do not determine the nine unknowns, or the squared length
            is negative.
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
        what = f"the squared length of the link is {squared:.3g} m^2"
        raise IdentificationError.of("linear start", what, "start from the nominal geometry")
    return Chain(offset=offset, direction=direction, length=float(np.sqrt(squared)))


def fitted_chain(X: np.ndarray, q: np.ndarray) -> Chain:
    """Return the chain with the least squares of L^2 - |X - o - q c|^2 (eq. 1).

    Args:
        X: positions of the platform's joint (N, 3), m.
        q: motor positions (N,), m.

    Raises:
        IdentificationError: see `linear_chain`.
    """

    def residual(x: np.ndarray) -> np.ndarray:
        return np.asarray(x[6] ** 2 - ((X - x[:3] - q[:, None] * x[3:6]) ** 2).sum(axis=1))

    start = linear_chain(X, q)
    x = least_squares(
        residual,
        [*start.offset, *start.direction, start.length],
        method="lm",
        xtol=1e-12,
        ftol=1e-12,
    ).x
    return Chain(offset=x[:3], direction=x[3:6], length=float(abs(x[6])))


def meeting(chains: Sequence[Chain], q: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Return the points (N, 3) at which three links meet, m: the nearer of two on three spheres.

    Args:
        chains: three chains.
        q: motor positions (N, 3), m.
        near: positions near the result (N, 3), m.
    """
    a, b, c = (chain.offset + q[:, i, None] * chain.direction for i, chain in enumerate(chains))
    along = (b - a) / np.linalg.norm(b - a, axis=1, keepdims=True)
    across = (c - a) - ((c - a) * along).sum(axis=1, keepdims=True) * along
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    d, i, j = (
        ((end - a) * axis).sum(axis=1) for end, axis in ((b, along), (c, along), (c, across))
    )
    first, second, third = (chain.length**2 for chain in chains)
    x = (first - second + d**2) / (2 * d)
    y = (first - third + i**2 + j**2 - 2 * i * x) / (2 * j)
    height = np.sqrt(first - x**2 - y**2)[:, None] * np.cross(along, across)
    foot = a + x[:, None] * along + y[:, None] * across
    above, below = foot + height, foot - height
    is_above = np.linalg.norm(above - near, axis=1) < np.linalg.norm(below - near, axis=1)
    return np.where(is_above[:, None], above, below)
