"""Positions that change only at every k-th sample, because their bus is slower than the recorder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.errors import Problem, Problems
from tauloop.logs.log import Log, as_signals, channels, samples

#: Minimum number of changes of a position that is judged.
MIN_CHANGES = 50
#: At least this fraction of the changes is a multiple of the length after the first of them.
MIN_ALIGNED_SHARE = 0.98
#: An encoder that is coarse changes by one step. At least half of the changes of a held position
#: exceed the smallest change by this factor.
MIN_STEP_RATIO = 1.5


def held_positions(log: Log, names: Sequence[str]) -> tuple[Problem, ...]:
    """Return a problem for each position that is held for a constant number of samples.

    Args:
        log: the log as measured, before any filter.
        names: channels of the positions that are checked, if the log contains them.
    """
    problems = Problems()
    time = as_signals(log).time
    known = channels(log, "position")
    for name in names:
        if name not in known:
            continue
        length = held_length(samples(log, "position", (name,))[:, 0])
        if length == 1:
            continue
        delay = 0.5e3 * (length - 1) * float(np.median(np.diff(time)))
        what = f"changes only every {length} samples, which is a mean delay of {delay:.3g} ms"
        remedy = (
            f"record the position at its own rate, or use only one row in {length}, the first of "
            "each value"
        )
        problems.add(f"position.{name}", what, remedy)
    return tuple(problems)


def held_length(values: np.ndarray) -> int:
    """Return the number of samples for which each value of a position (N,) is held; 1 if it is not.

    The changes then have multiples of this number between them, and most of them exceed the
    smallest change. The changes of a coarse encoder are equal, and their distances follow the speed.
    """
    changes = np.flatnonzero(np.diff(values))
    if len(changes) < MIN_CHANGES:
        return 1
    length = int(np.argmax(np.bincount(np.diff(changes))))
    steps = np.abs(np.diff(values)[changes])
    aligned = np.bincount(changes % length).max()
    is_held = aligned >= MIN_ALIGNED_SHARE * len(changes)
    is_fine = float(np.median(steps)) > MIN_STEP_RATIO * float(steps.min())
    return length if is_held and is_fine else 1
