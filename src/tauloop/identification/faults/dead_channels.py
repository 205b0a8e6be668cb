"""Channels that hold nothing of their own: forces that never change, positions of zeros, copies of other channels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from tauloop.common.errors import Problem, Problems
from tauloop.logs.log import Log, by_channel

#: Two channels are one, up to a factor and an offset, when they differ by at most this share of
#: their range.
SAME = 1e-9
#: A machine that moves alike in two channels has like forces there: to this share of their range
#: (RMS).
ALIKE = 0.1


def dead(log: Log, names: Sequence[str]) -> tuple[Problem, ...]:
    """Forces that have one value in all samples, and positions that are zero in all, while others move.

    Args:
        log: the log as measured, before any filter.
        names: positions that the machine is moved by, without those that are held on purpose.
    """
    positions, problems = by_channel(log, "position"), Problems()
    measured = {name: positions[name] for name in names if name in positions}
    if not any(np.ptp(values) for values in measured.values()):
        return ()
    for name, values in by_channel(log, "force").items():
        if len(values) > 1 and np.ptp(values) == 0.0:
            what = f"is {values[0]:.6g} in all {len(values)} samples: the channel is dead"
            remedy = "look at the sensor and the column; leave the column out: a force need not be measured"
            problems.add(f"force.{name}", what, remedy)
    for name, values in measured.items():
        if not values.any():
            what = f"is zero in all {len(values)} samples: the channel is dead, or the axis was not moved"
            remedy = "look at the sensor and the column; if it stood still, leave the column out and say "
            problems.add(f"position.{name}", what, f"{remedy}--hold {name}=VALUE")
    return tuple(problems)


def copied(log: Log, names: Sequence[str]) -> tuple[Problem, ...]:
    """Channels that are another one over again, but for a factor and an offset.

    Two positions, or two forces, may be equal in a symmetric motion; then the other quantity is
    alike too, and nothing is said.

    Args:
        log: the log as measured, before any filter.
        names: positions that the machine is moved by.
    """
    measured, forces, problems = by_channel(log, "position"), by_channel(log, "force"), []
    positions = {name: measured[name] for name in names if name in measured}
    for quantity, own, other in (("position", positions, "force"), ("force", forces, "position")):
        for (left, first), (right, second) in combinations(own.items(), 2):
            if _is_copy(first, second) and not _alike(log, other, left, right):
                problems.append(_copy(f"{quantity}.{right}", f"{quantity}.{left}"))
    for force, values in forces.items():
        for position, motion in positions.items():
            if _is_copy(motion, values):
                problems.append(_copy(f"force.{force}", f"position.{position}"))
    return tuple(problems)


def _copy(name: str, of: str) -> Problem:
    what = f"is {of} over again in all samples, but for a factor and an offset: no two sensors read the same"
    return Problem(name, what, "look at the columns that both are read from")


def _is_copy(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether one is the other times a factor plus an offset, and neither is constant."""
    x, y = (values - values.mean() for values in (first, second))
    sizes = float(np.abs(x).max()), float(np.abs(y).max())
    if len(x) < 4 or min(sizes) <= SAME * max(np.abs(first).max(), np.abs(second).max()):
        return False
    x, y = x / sizes[0], y / sizes[1]
    return float(np.abs(y - x * (x @ y) / (x @ x)).max()) <= SAME


def _alike(log: Log, quantity: str, first: str, second: str) -> bool:
    """Whether both channels have that quantity, and it differs little between them."""
    values = by_channel(log, quantity)
    if first not in values or second not in values:
        return False
    x, y = values[first], values[second]
    apart = min(np.std(x - y), np.std(x + y))
    return float(apart) <= ALIKE * float(max(np.ptp(x), np.ptp(y)))
