"""Which freedoms of a machine are independent, which actuators determine motion, and which freedoms are passive.

All choices are made once at build, for the worst of many assembled states, by pivoting on unit-free motions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.assembly.quantiles import quantile
from tauloop.records import dataclass

#: A pivot that shrinks below this share of a unit motion at some state determines nothing there.
SMALLEST = 1e-8
#: Factors on the pivots of preferred coordinates, and of those that are no angle or length of their own.
DRIVEN, ROTATION = 10.0, 0.1
#: Below this share of its usual pivot a row stands still at a state.
STANDING = 1e-3
#: What lies between pivots of all states: the worst state counts, but single singular states do not rule a choice out.
QUANTILE = 0.1


def independent_rows(
    matrices: np.ndarray,
    count: int,
    fixed: Sequence[int] = (),
    preference: np.ndarray | None = None,
    *,
    sure: int = 0,
) -> tuple[int, ...]:
    """Rows that are well conditioned together at all states: pivoting on what earlier choices leave of each row.

    Args:
        matrices: (N, k, m) at N states.
        count: how many rows are wanted, those in `fixed` included; fewer come back where there are no more.
        fixed: rows that are taken first, in this order.
        preference: factor (k,) on the size of each row; zero rules a row out.
        sure: of the first so many states none may be an exception: no row stands still at one of them.

    Returns:
        Indices of the rows, in the order of their choice.
    """
    left = np.array(matrices, dtype=float)
    weight = np.ones(left.shape[1]) if preference is None else preference
    chosen: list[int] = []
    queue = list(fixed)
    while len(chosen) < count:
        size = np.linalg.norm(left, axis=2)
        common = quantile(size, QUANTILE) if len(size) else np.zeros(left.shape[1])
        least = size[:sure].min(axis=0, initial=np.inf)
        common = np.where(least < STANDING * common, least, common)
        if queue:
            row = queue.pop(0)
        else:
            score = common * weight
            score[chosen] = 0.0
            row = int(np.argmax(score))
            if score[row] <= SMALLEST:
                break
        if common[row] > SMALLEST or row in fixed:
            chosen.append(row)
        unit = left[:, row] / np.maximum(size[:, row], 1e-300)[:, None]
        left = left - np.einsum("nki,ni,nj->nkj", left, unit, unit)
    return tuple(chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Actuation:
    """How actuators and passive freedoms together determine the motion.

    Attributes:
        leading: indices of the actuators whose motion is given; the others follow them (redundant actuation).
        passive: indices of the passive velocities, which move while all actuators rest.
    """

    leading: tuple[int, ...]
    passive: tuple[int, ...]

    @property
    def rank(self) -> int:
        """Freedoms that the actuators move."""
        return len(self.leading)


def actuation(
    motions: np.ndarray,
    actuators: np.ndarray,
    transmission: np.ndarray,
    rank: int,
    scalar: np.ndarray,
) -> Actuation:
    """Leading actuators and passive freedoms, chosen so that they determine the motion together.

    Passive freedoms are coordinates of the actuators first where an actuator drives several (so that positions follow
    at once), then whatever moves most while the actuators rest.

    Args:
        motions: unit-free motions (N, n_v, m).
        actuators: unit-free actuator velocities per velocity (n_u, n_v).
        transmission: the same with its units, for which coordinates an actuator drives.
        rank: of the actuation.
        scalar: which velocities (n_v,) belong to a coordinate of their own, not to a quaternion.
    """
    m = motions.shape[2]
    leading = tuple(sorted(independent_rows(actuators @ motions, rank)))
    driven = np.flatnonzero(np.abs(transmission[list(leading)]).max(axis=0, initial=0.0) > 0)
    weight = np.where(scalar, 1.0, ROTATION)
    spare = len(driven) - len(leading)
    stack = np.concatenate([actuators[list(leading)] @ motions, motions], axis=1)
    chosen: tuple[int, ...] = tuple(range(rank))
    if spare > 0:
        own = np.zeros(len(weight))
        own[driven] = 1.0
        chosen = independent_rows(stack, min(rank + spare, m), chosen, np.concatenate([np.zeros(rank), own]))
    chosen = independent_rows(stack, m, chosen, np.concatenate([np.zeros(rank), weight]))
    return Actuation(leading=leading, passive=tuple(sorted(i - rank for i in chosen[rank:])))
