"""Checks of time stamps, which must increase without gaps."""

from __future__ import annotations

import numpy as np

from tauloop.logs.checks.findings import LISTED_PER_KIND, Findings
from tauloop.logs.checks.gaps import WHOLE_PERIOD_TOLERANCE, FillGaps
from tauloop.logs.tables import LogTable

#: Number of messages after a late one that are checked for compensation of the delay.
MAX_MESSAGES_AHEAD = 20
#: If fewer messages remain in the log, the messages before the step are used too.
MIN_MESSAGES_AHEAD = 6
#: A step of more than this number of periods is a gap; from 1.5 on, the nearest integer is two.
GAP_PERIODS = 1.5
#: Maximum number of consecutive missing samples for which interpolation is advised.
MAX_FILLED_GAP = 20


def missing_samples(time: np.ndarray, *, may_be_late: bool) -> tuple[float, np.ndarray]:
    """Return the median step of stamps (N,), and the number of missing samples per step (N - 1,).

    A step of more than `GAP_PERIODS` median steps T is a gap. If stamps may be late, as times of
    receipt are, shorter steps may follow a long step and compensate the delay. Then the number of
    missing samples after t[k] is the minimum of (t[k+j] - t[k]) / T - j over the next
    `MAX_MESSAGES_AHEAD` messages j. If fewer than `MIN_MESSAGES_AHEAD` messages remain in the log,
    the messages before the step are used too.
    """
    steps = np.diff(time)
    positive_steps = steps[steps > 0.0]
    period = float(np.median(positive_steps)) if len(positive_steps) else 0.0
    missing = np.zeros(len(steps), dtype=int)
    for k in np.flatnonzero((steps > GAP_PERIODS * period) & (steps > 0.0)):
        if not may_be_late:
            missing[k] = max(round(float(steps[k] / period)) - 1, 1)
            continue
        ahead = (time[k + 1 : k + 1 + MAX_MESSAGES_AHEAD] - time[k]) / period
        missing_periods = float((ahead - np.arange(1, len(ahead) + 1)).min())
        if len(ahead) < MIN_MESSAGES_AHEAD:
            before = (time[k + 1] - time[max(k + 1 - MAX_MESSAGES_AHEAD, 0) : k + 1][::-1]) / period
            missing_before = float((before - np.arange(1, len(before) + 1)).min())
            missing_periods = min(missing_periods, missing_before)
        missing[k] = max(round(missing_periods), 0)
    return period, missing


def check_time(
    table: LogTable,
    column: str,
    time: np.ndarray,
    findings: Findings,
    *,
    resample: bool = False,
    gaps: FillGaps | None = None,
    uneven: bool = False,
) -> None:
    """Add problems for repeated and decreasing stamps and for gaps.

    Args:
        table: the file, for lines in messages.
        column: name of its time column.
        time: stamps (N,), s.
        findings: receives problems.
        resample: whether the samples are resampled later, so that stamps may be late, uneven and
            repeated.
        gaps: with `resample`, the permitted gaps.
        uneven: whether steps may differ and be zero, as in a simulation; if so, only decreasing
            stamps are problems.
    """
    steps = np.diff(time)
    period, missing = missing_samples(time, may_be_late=table.may_be_late or resample)
    permitted = gaps.longest if resample and gaps is not None else 0
    gap = missing > permitted
    gap &= not uneven
    arrival = table.arrival
    is_clock_jump = np.zeros_like(gap)
    if arrival is not None and len(arrival) == len(time):
        is_clock_jump = gap & (np.diff(arrival) <= GAP_PERIODS * period)

    def note(kind: str, is_bad: np.ndarray, what: str, remedy: str) -> None:
        """Add a problem for each marked step; `what` is a format string."""
        rows = np.flatnonzero(is_bad)
        for row in rows[:LISTED_PER_KIND]:
            line = table.line(int(row) + 1)
            periods = steps[row] / period if period > 0.0 else np.inf
            text = what.format(
                before=time[row], after=time[row + 1], step=steps[row], periods=periods
            )
            row_text = "" if line is not None else f" in row {row + 2}"
            findings.add(kind, f"column {column!r}", text + row_text, remedy, table.file, line)
        findings.count(kind, table.file, more=len(rows[LISTED_PER_KIND:]))

    note(
        "repeated time stamps",
        (steps == 0.0) & (not (resample or uneven)),
        "the time {after:.10g} s is repeated",
        "remove the repeated sample. If the clock is too coarse, give `sample_rate` instead of the time column, or "
        "resample at even times (--resample)",
    )
    note(
        "decreasing time stamps",
        steps < 0.0,
        "time decreases from {before:.10g} s to {after:.10g} s",
        "cut the log there: it contains several recordings, or the clock was reset",
    )
    note(
        "jumps of the clock",
        is_clock_jump,
        "time jumps by {step:.6g} s after t = {before:.10g} s, but the recorder's clock by at most one period",
        "the clock was reset and nothing is missing: use the time of receipt, or only one side of the jump",
    )
    what = f"a gap of {{step:.6g}} s after t = {{before:.10g}} s: {{periods:.4g}} periods of {period:.6g} s"
    for remedy, rows in _gap_remedies(
        time, period, gap & ~is_clock_jump, is_uneven=resample or table.may_be_late
    ).items():
        note("gaps in time", rows, what, remedy)


def _gap_remedies(
    time: np.ndarray, period: float, gap: np.ndarray, *, is_uneven: bool
) -> dict[str, np.ndarray]:
    """Return the marks (N - 1,) of steps that are gaps, by remedy.

    Args:
        time: stamps (N,), s.
        period: sampling period, s.
        gap: whether each step is a gap (N - 1,).
        is_uneven: whether stamps already count as late, so that the steps after a gap are not
            checked for compensation.
    """
    if not gap.any():
        return {}
    periods = np.diff(time) / period
    missing = missing_samples(time, may_be_late=True)[1]
    is_compensated = gap & (missing == 0) & (not is_uneven)
    is_long = gap & ~is_compensated & (missing > MAX_FILLED_GAP)
    is_short = gap & ~is_compensated & ~is_long
    longest = int(missing[is_short].max(initial=1))
    is_whole = np.abs(periods - np.round(periods)) < WHOLE_PERIOD_TOLERANCE
    option = (
        f"--fill-gaps {longest}"
        if is_whole[is_short].all() and not is_uneven
        else f"--resample --fill-gaps {longest}"
    )
    return {
        "stamps are late, and the next steps compensate: resample at even times (--resample)": is_compensated,
        f"samples are missing: interpolate them ({option}), or use the log before or after the gap": is_short,
        "samples are missing: use the log before or after the gap": is_long,
    }


def check_same_time(
    table: LogTable,
    column: str,
    time: np.ndarray,
    reference: LogTable,
    reference_time: np.ndarray,
    findings: Findings,
) -> None:
    """Add problems if the times of two files differ by more than half a period.

    Args:
        table: the second file.
        column: name of its time column.
        time: stamps (N,) of the second file, s.
        reference: the first file.
        reference_time: stamps (N,) of the first file, s.
        findings: receives problems.
    """
    if len(time) < 2:
        return
    differences = np.abs(time - reference_time)
    if differences.max() > 0.5 * float(np.median(np.abs(np.diff(reference_time)))):
        row = int(differences.argmax())
        what = (
            f"the time is {time[row]:.10g} s, but {reference_time[row]:.10g} s in {reference.file}"
        )
        remedy = "the files belong to different recordings, or one starts later: cut both to the same samples"
        findings.add(
            "clocks that differ", f"column {column!r}", what, remedy, table.file, table.line(row)
        )
