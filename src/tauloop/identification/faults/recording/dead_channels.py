"""Detection of channels without information: constant forces, zero positions, copied channels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import Problem, Problems
from tauloop.logs.log import Log, by_channel

#: Two channels are copies, up to a factor and an offset, if they differ by at most this fraction of
#: their largest value.
COPY_TOLERANCE = 1e-9
#: Number of samples, spread over a log, that are compared first; most channels that are not copies
#: already differ there.
COMPARED_SAMPLES = 1000
#: Two channels of a symmetric motion are equal or opposite within this fraction of their range
#: (RMS).
CHANNEL_SYMMETRY_TOLERANCE = 0.1


def dead(log: Log, names: Sequence[str]) -> tuple[Problem, ...]:
    """Return a problem for each constant force and each zero position of a machine that moves.

    Args:
        log: the log as measured, before any filter.
        names: driven positions, without those that are held on purpose.
    """
    positions = by_channel(log, "position")
    problems = Problems()
    measured = {name: positions[name] for name in names if name in positions}
    if not any(np.ptp(values) for values in measured.values()):
        return ()
    for name, values in by_channel(log, "force").items():
        if len(values) > 1 and np.ptp(values) == 0.0:
            what = f"is {values[0] + 0.0:.6g} in all {counted(len(values), 'sample')}: the channel is dead"
            remedy = (
                "check the sensor and the column, or omit the column: not all forces are needed"
            )
            problems.add(f"force.{name}", what, remedy)
    for name, values in measured.items():
        if not values.any():
            what = f"is zero in all {counted(len(values), 'sample')}: the channel is dead, or the axis did not move"
            remedy = (
                "check the sensor and the column; if the axis did not move, omit the column and "
                f"give --hold {name}=VALUE"
            )
            problems.add(f"position.{name}", what, remedy)
    return tuple(problems)


def copied(log: Log, names: Sequence[str]) -> tuple[Problem, ...]:
    """Return a problem for each channel that is a copy of another, up to a factor and an offset.

    Two positions, or two forces, may be equal in a symmetric motion. The other quantity is then
    nearly equal as well, and the channels are not reported.

    Args:
        log: the log as measured, before any filter.
        names: driven positions.
    """
    measured = by_channel(log, "position")
    positions = {name: measured[name] for name in names if name in measured}
    forces = by_channel(log, "force")
    problems = []
    for (left, first), (right, second) in combinations(positions.items(), 2):
        if _is_copy(first, second) and not _is_symmetric(log, "force", left, right):
            problems.append(_copy_problem(f"position.{right}", f"position.{left}"))
    for (left, first), (right, second) in combinations(forces.items(), 2):
        if _is_copy(first, second) and not _is_symmetric(log, "position", left, right):
            problems.append(_copy_problem(f"force.{right}", f"force.{left}"))
    for force, values in forces.items():
        for position, motion in positions.items():
            if _is_copy(motion, values):
                problems.append(_copy_problem(f"force.{force}", f"position.{position}"))
    return tuple(problems)


def _copy_problem(name: str, original: str) -> Problem:
    """Return the problem of a channel that is a copy of another."""
    what = (
        f"is a copy of {original} in all samples, up to a factor and an offset: readings of two "
        "sensors are never exactly equal"
    )
    return Problem(name, what, "check the columns from which both are read")


def _is_copy(first: np.ndarray, second: np.ndarray) -> bool:
    """Return whether one signal is a multiple of the other plus an offset; False if constant."""
    if _differ_in_some_samples(first, second):
        return False
    x = first - first.mean()
    y = second - second.mean()
    x_size = float(np.abs(x).max())
    y_size = float(np.abs(y).max())
    largest = max(np.abs(first).max(), np.abs(second).max())
    if len(x) < 4 or min(x_size, y_size) <= COPY_TOLERANCE * largest:
        return False
    x = x / x_size
    y = y / y_size
    return float(np.abs(y - x * (x @ y) / (x @ x)).max()) <= COPY_TOLERANCE


def _differ_in_some_samples(first: np.ndarray, second: np.ndarray) -> bool:
    """Return whether some samples show that `_is_copy` is False.

    The best factor and offset of some samples leave the smallest error (RMS) there. If it exceeds
    the tolerance, the largest error of all samples exceeds it too for every factor and offset.
    """
    stride = max(len(first) // COMPARED_SAMPLES, 1)
    x = first[::stride] - first[::stride].mean()
    y = second[::stride] - second[::stride].mean()
    power = float(x @ x)
    if not power > 0.0:
        return False
    error = np.sqrt(np.mean((y - x * (x @ y) / power) ** 2))
    return bool(error > COPY_TOLERANCE * np.ptp(second))


def _is_symmetric(log: Log, quantity: str, first: str, second: str) -> bool:
    """Return whether a quantity is measured in both channels and nearly equal or opposite."""
    values = by_channel(log, quantity)
    if first not in values or second not in values:
        return False
    x = values[first]
    y = values[second]
    difference = min(np.std(x - y), np.std(x + y))
    return float(difference) <= CHANNEL_SYMMETRY_TOLERANCE * float(max(np.ptp(x), np.ptp(y)))
