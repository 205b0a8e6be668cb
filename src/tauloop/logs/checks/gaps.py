"""Interpolation of short gaps in a log, on request."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.logs.checks.findings import Findings

#: Largest deviation of a gap's duration from whole periods, as a fraction of a period.
WHOLE_PERIOD_TOLERANCE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class FillGaps(Options):
    """Interpolation of missing samples by a cubic through two samples on each side, or by a line.

    The line is used if one side has only one sample.

    Attributes:
        longest: maximum number of consecutive missing samples to interpolate; longer gaps are
            rejected.
    """

    longest: int = option(
        1, least=1, remedy="give a whole number of at least 1; 1 fills single missing samples"
    )


def with_missing_rows(
    time: np.ndarray, values: np.ndarray, gaps: FillGaps
) -> tuple[np.ndarray, np.ndarray]:
    """Return time stamps (N,) and samples (N, n) with rows of NaN in gaps up to the allowed length."""
    steps = np.diff(time)
    positive_steps = steps[steps > 0.0]
    if not len(positive_steps):
        return time, values
    periods = steps / np.median(positive_steps)
    missing = np.round(periods).astype(int) - 1
    gap_steps = np.flatnonzero(
        (missing >= 1)
        & (missing <= gaps.longest)
        & (np.abs(periods - missing - 1) < WHOLE_PERIOD_TOLERANCE)
    )
    stamps = [np.linspace(time[k], time[k + 1], missing[k] + 2)[1:-1] for k in gap_steps]
    indices = np.repeat(gap_steps + 1, missing[gap_steps])
    if not len(indices):
        return time, values
    rows = np.full((len(indices), values.shape[1]), np.nan)
    new_time = np.insert(time, indices, np.concatenate(stamps))
    return new_time, np.insert(values, indices, rows, axis=0)


def filled(
    values: np.ndarray, gaps: FillGaps, findings: Findings, *, where: str, file: str
) -> tuple[np.ndarray, int]:
    """Return the samples (N,) with interpolated gaps, and the number of interpolated samples.

    Gaps that cannot be interpolated are added to the findings.
    """
    missing = ~np.isfinite(values)
    interpolated = values.copy()
    for first, after in runs(missing):
        if first == 0 or after == len(values):
            end = "beginning" if first == 0 else "end"
            what = f"{counted(after - first, 'sample', 'are')} missing at the {end}"
            remedy = "cut the log there; interpolation needs samples on both sides"
            findings.add("gaps at an end", where, what, remedy, file)
        elif after - first > gaps.longest:
            what = f"{counted(after - first, 'consecutive sample', 'are')} missing from row {first + 1} on, "
            what += f"but at most {gaps.longest} are interpolated"
            remedy = "use the log before or after the gap, or permit longer gaps"
            findings.add("gaps that are too long", where, what, remedy, file)
        else:
            nodes = np.array([first - 2, first - 1, after, after + 1])
            inside = (nodes >= 0) & (nodes < len(values))
            inside[inside] = ~missing[nodes[inside]]
            if not inside.all():
                nodes = nodes[1:3]
            polynomial = np.polynomial.Polynomial.fit(nodes, values[nodes], len(nodes) - 1)
            interpolated[first:after] = polynomial(np.arange(first, after))
    return interpolated, int(missing.sum())


def with_lines(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return samples (N,) after replacing marked samples by linear interpolation.

    Args:
        values: samples (N,).
        at: whether each sample is replaced (N,).
    """
    if not at.any() or at.all():
        return values
    valid = np.flatnonzero(~at)
    return np.interp(np.arange(len(values)), valid, values[valid])


def runs(at: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield (first index, last index + 1) of each run of true values."""
    edges = np.flatnonzero(np.diff(at, prepend=False, append=False))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
