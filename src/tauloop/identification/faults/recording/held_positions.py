"""Positions that change only at every k-th sample, because their bus is slower than the recorder.

The ratio k of the rates need not be an integer: a bus of 400 Hz in a log of 1 kHz changes after 2 or
3 samples. In a run of changes without a missing value, change n then lies at k n + const, rounded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.errors import Problem, Problems
from tauloop.logs.log import Log, as_signals, channels, samples

#: Minimum number of changes of a position that is judged.
MIN_CHANGES = 50
#: At least this fraction of the changes is in runs with the median ratio.
MIN_ALIGNED_SHARE = 0.75
#: Minimum and maximum number of changes of a run. A value that equals the value before it, as at a
#: reversal, spoils only a short run.
MIN_RUN, MAX_RUN = 12, 40
#: Rounding moves a change by less than one sample; the ratio of a run has an error too.
MAX_MISALIGNMENT = 1.2
#: Smallest ratio that is reported.
MIN_RATIO = 1.05
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
        ratio = held_length(samples(log, "position", (name,))[:, 0])
        if ratio == 1.0:
            continue
        # samples of the recorder coincide with those of the bus if the ratio is an integer
        age = 0.5 * (ratio - 1.0 if ratio.is_integer() else ratio)
        delay = 1e3 * age * float(np.median(np.diff(time)))
        what = f"changes only every {ratio:.4g} samples, which is a mean delay of {delay:.3g} ms"
        remedy = (
            f"record the position at its own rate, or use only one row in {ratio:g}, the first of "
            "each value"
        )
        if not ratio.is_integer():
            remedy = "record the position at its own rate, or all signals at the rate of its bus"
        problems.add(f"position.{name}", what, remedy)
    return tuple(problems)


def held_length(values: np.ndarray) -> float:
    """Return the number of samples for which each value of a position (N,) is held; 1 if it is not.

    Most changes of a held position exceed the smallest change. The changes of a coarse encoder are
    equal, and their distances follow the speed.
    """
    changes = np.flatnonzero(np.diff(values))
    if len(changes) < MIN_CHANGES:
        return 1.0
    steps = np.abs(np.diff(values)[changes])
    if float(np.median(steps)) <= MIN_STEP_RATIO * float(steps.min()):
        return 1.0
    runs = _regular_runs(changes)
    if not runs:
        return 1.0
    ratio = float(np.median([_ratio(run) for run in runs]))
    whole = round(ratio)
    if sum(len(run) for run in runs if _is_aligned(run, whole, tolerance=0.0)) >= (
        MIN_ALIGNED_SHARE * len(changes)
    ):
        return float(whole)
    aligned = [run for run in runs if _is_aligned(run, ratio)]
    if ratio < MIN_RATIO or sum(map(len, aligned)) < MIN_ALIGNED_SHARE * len(changes):
        return 1.0
    return float(np.mean([_ratio(run) for run in aligned]))


def _regular_runs(changes: np.ndarray) -> list[np.ndarray]:
    """Return the runs of successive changes whose distances differ by one sample at most."""
    distances = np.diff(changes)
    least = int(np.argmax(np.bincount(distances)))
    if (distances == least - 1).sum() > (distances == least + 1).sum():
        least -= 1
    breaks = np.flatnonzero((distances < least) | (distances > least + 1)) + 1
    parts = (
        run[first : first + MAX_RUN]
        for run in np.split(changes, breaks)
        for first in range(0, len(run), MAX_RUN)
    )
    return [part for part in parts if len(part) >= MIN_RUN]


def _ratio(run: np.ndarray) -> float:
    """Return the mean distance of the changes of a run."""
    return float(np.polyfit(np.arange(len(run)), run, 1)[0])


def _is_aligned(run: np.ndarray, ratio: float, tolerance: float = MAX_MISALIGNMENT) -> bool:
    """Return whether the changes of a run lie on a grid of this spacing, to rounding."""
    return bool(np.ptp(run - ratio * np.arange(len(run))) <= tolerance)
