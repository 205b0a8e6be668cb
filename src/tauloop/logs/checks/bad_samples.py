"""Faulty samples: spikes, encoder drop-outs, frozen channels, wrapped angles and jumps.

They are found without a model of the machine. Faulty force samples are marked, so that a fit
ignores them. Faulty positions are interpolated; if there are more than a few, the forces at these
times are also marked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import Problem
from tauloop.common.records import dataclass
from tauloop.logs.checks.gaps import runs
from tauloop.logs.checks.position_jumps import position_jumps, unwrapped_positions
from tauloop.logs.checks.saturation import (
    LEFT_OUT,
    MIN_PLATEAU_SAMPLES,
    RESTING_SPEED_SHARE,
    moving,
)
from tauloop.logs.log import Channel, Log, Signals, as_signals, by_channel

#: A spike of a position is off a cubic through its neighbors by this many times the deviation of
#: nine tenths of the samples, and off both neighbors by half of that.
SPIKE_FACTOR, SPIKE_QUANTILE = 6.0, 0.9
#: A spike of a force is off by more than normal noise exceeds in this number of samples of a log.
#: The noise has the deviation that these quantiles of all samples require; reversals of dry friction
#: are above them.
EXPECTED_FALSE_SPIKES = 1e-3
NOISE_QUANTILES = (0.9, 0.95)
#: Small spikes of a force are off a parabola through this number of neighbors on each side. A
#: parabola through many neighbors hardly has noise of its own.
SMALL_SPIKE_REACHES = (3, 4, 6, 8, 12, 16, 24)
#: Next to a reversal, they are off a parabola through more neighbors on the other side.
SIDED_WINDOWS = ((12, 2), (2, 12))
#: They are off the lines through the neighbors of both sides by this fraction of that, ...
ONE_SIDED_SHARE = 0.5
#: ... at least this fraction of the range, ...
MIN_SMALL_SPIKE_SHARE = 0.005
#: ... and more than normal noise has in this log, times this power of the ratio of these two
#: quantiles to that of normal noise. Noise with many outliers therefore has no small spikes. The
#: ratio is that of all samples, because a few hundred do not determine the outer quantile.
TAIL_QUANTILES, TAIL_POWER = (0.9, 0.99), 5
#: The power for distances from a cubic. They mix the noise of five samples, which makes their
#: inner quantiles more normal than the noise.
CUBIC_TAIL_POWER = 7
#: Maximum number of samples, spread over the log, that determine the numbers of neighbors.
MAX_COMPARED_SAMPLES = 20_000
#: More neighbors are used until the difference grows by this factor.
MAX_GROWTH = 1.1
#: An encoder is coarse for a number of samples if its position is constant in a larger fraction of them.
MAX_CONSTANT_SHARE = 0.2
#: Minimum number of samples whose noise can be measured, for the same and for different numbers of
#: neighbors on both sides.
MIN_JUDGED_SAMPLES, MIN_SIDED_SAMPLES = 200, 60
#: Number of passes. Spikes that an earlier pass found are not neighbors.
SMALL_SPIKE_PASSES = 3
#: Weights of the samples before a sample in the line that predicts it, the nearest first. Three
#: samples predict noisy forces better, and two fast positions.
LINE_WEIGHTS = {"position": (2.0, -1.0), "force": (4.0 / 3.0, 1.0 / 3.0, -2.0 / 3.0)}
#: Between two reversals, friction can have a spike. A motor that moves on after this number of
#: samples may have reversed twice, ...
STOP_REACH = 10
#: ... and within this number of samples spikes are at least this fraction of the range.
STOP_MARGIN, STOP_SPIKE_SHARE = 3, 0.5
#: Force spikes are at least this fraction of the range (without its outermost hundredths); encoder
#: steps up to this number are not spikes.
MIN_SPIKE_SHARE, MAX_ENCODER_STEPS = 0.02, 3.0
#: Spikes of up to this many samples; those of more than one leave and return by this fraction of
#: the range of forces, or by this many times the step that all but a hundredth of the positions
#: make.
MAX_SPIKE_SAMPLES, WIDE_SPIKE_SHARE, WIDE_SPIKE_STEPS = 3, 0.5, 5.0
#: A channel is frozen for this number of equal samples, if that is also this many times the usual
#: number, ...
MIN_FROZEN_SAMPLES, UNUSUAL_RUN_FACTOR = 20, 5
#: ... and if a force changes elsewhere in equally many samples by this fraction of its range and
#: this number of its steps, ...
MIN_CHANGE_SHARE, MIN_CHANGE_STEPS = 0.01, 5.0
#: Stretches count in which the motor moves for more than this fraction of the time.
MIN_MOVING_SHARE = 0.5
#: A stretch is compared with others of its length, or of this fraction of the log if it is longer.
MAX_COMPARED_SHARE = 0.05
#: ... or a position stops or starts with this many times the second difference of all but a
#: hundredth of the samples.
ABRUPT_FACTOR = 20.0
#: Maximum number of times that a message lists.
MAX_LISTED_TIMES = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BadSamples:
    """Faulty samples of a channel.

    Attributes:
        quantity, channel: quantity and name of the channel.
        kind: "spikes" or "frozen".
        at: whether each sample is faulty (N,).
        problem: problem with the finding.
    """

    quantity: str
    channel: str
    kind: str
    at: np.ndarray
    problem: Problem


def bad_samples(log: Log) -> tuple[BadSamples, ...]:
    """Return spikes and frozen stretches of positions and forces.

    Args:
        log: the log as measured, before any filter.
    """
    time = as_signals(log).time
    positions = by_channel(log, "position")
    moves = moving(log) if positions else np.ones(len(time), dtype=bool)
    bad: list[BadSamples] = []
    for quantity in ("position", "force"):
        for name, values in by_channel(log, quantity).items():
            if len(values) < 2 * MIN_FROZEN_SAMPLES or not np.ptp(values):
                continue
            position = positions.get(name) if quantity == "force" else None
            jumps = spike_samples(values, quantity, position)
            if jumps.any():
                problem = _spikes(quantity, name, values, jumps, time)
                bad.append(
                    BadSamples(
                        quantity=quantity, channel=name, kind="spikes", at=jumps, problem=problem
                    )
                )
            turns = (
                _moving_alone(positions[name])
                if quantity == "force" and name in positions
                else moves
            )
            stands = frozen_samples(values, turns, quantity)
            if stands.any():
                problem = _frozen(quantity, name, values, stands, time)
                bad.append(
                    BadSamples(
                        quantity=quantity, channel=name, kind="frozen", at=stands, problem=problem
                    )
                )
    return tuple(bad)


def without_bad_samples(log: Log, *, marks: bool = True) -> tuple[Signals, tuple[Problem, ...]]:
    """Return the log with bad positions interpolated and bad forces marked, and the findings.

    The marks are channels ``left_out.NAME``. Wrapped angles are made continuous. Other jumps of
    positions are only reported.

    Args:
        log: the log as measured, before any filter.
        marks: whether to mark forces; positions are interpolated in any case.
    """
    raw, wrap_problems = unwrapped_positions(as_signals(log))
    bad = bad_samples(raw)
    if not bad:
        return raw, (*wrap_problems, *position_jumps(raw))
    count = len(raw.time)
    masks = {
        channel.channel: channel.values != 0.0
        for channel in raw.channels
        if channel.quantity == LEFT_OUT
    }
    mended: dict[str, np.ndarray] = {}
    forces = tuple(by_channel(raw, "force"))
    for stretch in bad:
        affected: Sequence[str] = (stretch.channel,) if stretch.quantity == "force" else ()
        if stretch.quantity == "position":
            values = mended.get(stretch.channel, by_channel(raw, "position")[stretch.channel])
            mended[stretch.channel] = bridged(values, stretch.at)
            affected = forces if stretch.kind == "frozen" else ()
        for name in affected:
            masks[name] = masks.get(name, np.zeros(count, dtype=bool)) | stretch.at
    kept = [
        replace(channel, values=mended[channel.channel])
        if channel.quantity == "position" and channel.channel in mended
        else channel
        for channel in raw.channels
        if not (marks and channel.quantity == LEFT_OUT)
    ]
    if marks:
        kept += [
            Channel(
                quantity=LEFT_OUT,
                channel=name,
                values=mask.astype(float),
                unit="1",
                source="bad samples",
            )
            for name, mask in masks.items()
        ]
    whole = replace(raw, channels=tuple(kept))
    problems = (stretch.problem for stretch in bad)
    return whole, (*wrap_problems, *problems, *position_jumps(whole))


def spike_samples(
    values: np.ndarray, quantity: str, position: np.ndarray | None = None
) -> np.ndarray:
    """Return the samples (N,) that leave their neighbors' course and return to it.

    A spike has at most `MAX_SPIKE_SAMPLES` samples.

    Args:
        values: (N,) as measured.
        quantity: "position" or "force".
        position: (N,) position of the motor of a force. Where it stops for a moment, dry friction
            can have a spike, and other spikes must be larger.
    """
    if len(values) < 2 * MIN_PLATEAU_SAMPLES:
        return np.zeros(len(values), dtype=bool)
    steps = np.diff(values)
    sizes = np.abs(steps)
    low, high = np.quantile(values, (0.01, 0.99))
    smallest = _smallest_step(sizes)
    inner = values[2:-2]
    off_course = np.abs(
        inner - (4.0 * (values[1:-3] + values[3:-1]) - values[:-4] - values[4:]) / 6.0
    )
    if quantity == "force":
        usual = _largest_noise(off_course)
        least = max(usual, MAX_ENCODER_STEPS * smallest, MIN_SPIKE_SHARE * float(high - low))
        wide = WIDE_SPIKE_SHARE * float(high - low)
    else:
        usual = SPIKE_FACTOR * float(np.quantile(off_course, SPIKE_QUANTILE))
        least = max(usual, MAX_ENCODER_STEPS * smallest)
        wide = WIDE_SPIKE_STEPS * float(np.quantile(sizes, 0.99))
    at = _large_spikes(values, steps, off_course, quantity, least)
    pulses = _pulses(values, steps, max(wide, least))
    if position is not None and (at.any() or pulses.any()):
        # the tails of the noise only matter for samples that normal noise does not explain
        least = max(least, usual * _tail_increase_of_motion(off_course, usual, position))
        at = _large_spikes(values, steps, off_course, quantity, least)
        pulses = _pulses(values, steps, max(wide, least))
        is_clear = off_course > STOP_SPIKE_SHARE * float(high - low)
        at[2:-2] &= is_clear | ~_near_stops(position)[2:-2]
    at |= pulses
    if quantity == "force":
        least = max(MAX_ENCODER_STEPS * smallest, MIN_SMALL_SPIKE_SHARE * float(high - low))
        small = _small_spikes(values, at, least, position)
        if position is not None and small.any():
            small &= ~_near_stops(position)
        at |= small
    return at


def _smallest_step(sizes: np.ndarray) -> float:
    """Return the smallest nonzero value of sizes (N,); infinity if all are zero."""
    smallest = float(sizes.min())
    return smallest if smallest > 0.0 else float(sizes[sizes > 0.0].min(initial=np.inf))


def _large_spikes(
    values: np.ndarray,
    steps: np.ndarray,
    off_course: np.ndarray,
    quantity: str,
    least: float,
) -> np.ndarray:
    """Return the single samples (N,) that are off their neighbors' course on both sides.

    Args:
        values: (N,) as measured.
        steps: (N - 1,) differences of the values.
        off_course: (N - 4,) distances from a cubic through two neighbors on each side.
        quantity: "position" or "force".
        least: smallest distance.
    """
    at = np.zeros(len(values), dtype=bool)
    rows = np.flatnonzero(off_course > least) + 2
    before, after = steps[rows - 1], steps[rows]
    off_both = np.where(before * after < 0.0, np.minimum(np.abs(before), np.abs(after)), 0.0)
    # neighbors of a spike are off course too, and off both sides only by their own step
    least_off = 0.5 * off_course[rows - 2]
    rows, least_off = rows[off_both > least_off], least_off[off_both > least_off]
    if quantity == "force":
        least_off = np.maximum(least, least_off)
    at[rows[_off_nearer_line(values, rows, LINE_WEIGHTS[quantity]) > least_off]] = True
    return at


def _pulses(values: np.ndarray, steps: np.ndarray, least: float) -> np.ndarray:
    """Return the samples (N,) of spikes of two or more samples.

    Args:
        values: (N,) as measured.
        steps: (N - 1,) differences of the values.
        least: smallest step with which a spike leaves and returns.
    """
    at = np.zeros(len(values), dtype=bool)
    large = np.flatnonzero(np.abs(steps) > least)
    for width in range(2, MAX_SPIKE_SAMPLES + 1):
        starts = large[large < len(steps) - width]
        leaves, returns = steps[starts], steps[starts + width]
        net = np.abs(values[starts + width + 1] - values[starts])
        pulse = np.minimum(np.abs(leaves), np.abs(returns))
        is_pulse = (leaves * returns < 0.0) & (pulse > least) & (net < 0.5 * pulse)
        for first in starts[is_pulse]:
            at[first + 1 : first + 1 + width] = True
    return at


def _small_spikes(
    values: np.ndarray, known: np.ndarray, least: float, position: np.ndarray | None
) -> np.ndarray:
    """Return the single samples (N,) of a force that many neighbors contradict.

    Args:
        values: (N,) as measured.
        known: (N,) spikes that are known already.
        least: smallest difference from the neighbors.
        position: as for `spike_samples`.
    """
    at = np.zeros(len(values), dtype=bool)
    windows = [
        (window, np.flatnonzero(is_judged))
        for window, is_judged in _windows(bridged(values, known), position)
    ]
    for _ in range(SMALL_SPIKE_PASSES):
        bad = known | at
        neighbors = bridged(values, bad)
        sizes = [
            np.abs(_off_parabola(values, neighbors, *window, at=judged))
            for window, judged in windows
        ]
        noise = [off[~bad[judged]] for (_, judged), off in zip(windows, sizes, strict=True)]
        increase = _tail_increase(noise)
        before = at
        at = np.zeros(len(values), dtype=bool)
        for (window, judged), off, usual in zip(windows, sizes, noise, strict=True):
            is_large = (off > max(least, increase * _largest_noise(usual))) & ~known[judged]
            large = judged[is_large]
            off_line = _off_nearer_line_at(values, neighbors, large, window)
            at[large] = off_line > ONE_SIDED_SHARE * off[is_large]
        if np.array_equal(at, before):
            break
    return at


def _windows(
    values: np.ndarray, position: np.ndarray | None
) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
    """Yield numbers of neighbors before and after, and the samples (N,) that they judge.

    A sample is judged by as many neighbors as predict it well. Samples from whose neighbors a
    reversal separates them are not predicted, because friction jumps there. Next to a reversal,
    there are fewer neighbors on its side.

    Args:
        values, position: as for `_small_spikes`.
    """
    least = np.inf
    smooth: list[tuple[int, np.ndarray]] = []
    stands = np.zeros(len(values), dtype=bool) if position is None else _stands(position)
    counts = _cumulative_count(stands)
    for reach in SMALL_SPIKE_REACHES:
        is_smooth = _moves_within(counts, reach, reach)
        if is_smooth.sum() < MIN_JUDGED_SAMPLES:
            break
        compared = np.flatnonzero(is_smooth)
        compared = compared[:: -(-len(compared) // MAX_COMPARED_SAMPLES)]
        off = np.abs(_off_parabola(values, values, reach, reach, at=compared))
        typical = float(np.quantile(off, SPIKE_QUANTILE))
        if typical > MAX_GROWTH * least:
            break
        least = min(typical, least)
        smooth.append((reach, is_smooth))
    is_judged = np.zeros(len(values), dtype=bool)
    for reach, is_smooth in reversed(smooth):
        is_new = is_smooth & ~is_judged
        if is_new.sum() >= MIN_JUDGED_SAMPLES:
            is_judged |= is_new
            yield (reach, reach), is_new
    longest = smooth[-1][0] if smooth else 0
    for before, after in SIDED_WINDOWS if position is not None else ():
        is_new = _moves_within(counts, before, after) & ~is_judged
        if max(before, after) <= longest and is_new.sum() >= MIN_SIDED_SAMPLES:
            is_judged |= is_new
            yield (before, after), is_new


def _cumulative_count(stands: np.ndarray) -> np.ndarray:
    """Return the number (N + 1,) of samples before each sample that may stand."""
    counts = np.zeros(len(stands) + 1, dtype=np.int32 if len(stands) < 2**31 else np.int64)
    np.cumsum(stands, out=counts[1:])
    return counts


def _moves_within(counts: np.ndarray, before: int, after: int) -> np.ndarray:
    """Return the samples (N,) with all neighbors within the log, none of which may stand.

    Args:
        counts: (N + 1,) result of `_cumulative_count`.
        before, after: number of neighbors on each side.
    """
    size = len(counts) - 1
    moves = np.zeros(size, dtype=bool)
    np.equal(
        counts[before + after + 1 :],
        counts[: -before - after - 1],
        out=moves[before : size - after],
    )
    return moves


def _stands(position: np.ndarray) -> np.ndarray:
    """Return the samples (N,) at which a position may stand or reverse.

    The direction is that over the smallest number of samples in which a coarse encoder shows one
    for most of the log.
    """
    stands = np.ones(len(position), dtype=bool)
    for reach in SMALL_SPIKE_REACHES:
        stands = ~_moves_on(position, reach)
        if stands.mean() < MAX_CONSTANT_SHARE:
            break
    return stands


def _tail_increase(groups: Sequence[np.ndarray], power: int = TAIL_POWER) -> float:
    """Return the factor by which noise with many outliers exceeds normal noise; at least 1.

    Args:
        groups: absolute values of groups of samples, each with its own deviation.
        power: power of the ratio of the quantiles.
    """
    normal = NormalDist()
    inner_size, outer_size = (normal.inv_cdf(0.5 * (1.0 + share)) for share in TAIL_QUANTILES)
    inner_share = TAIL_QUANTILES[0]
    scaled = [
        off / max(float(np.quantile(off, inner_share)), np.finfo(float).tiny) for off in groups
    ]
    if not scaled:
        return 1.0
    outer = float(np.quantile(np.concatenate(scaled), TAIL_QUANTILES[1]))
    return max(1.0, outer * inner_size / outer_size) ** power


def _tail_increase_of_motion(off_course: np.ndarray, usual: float, position: np.ndarray) -> float:
    """Return the factor of `_tail_increase` for the samples of a force away from reversals.

    Args:
        off_course: (N - 4,) distances from a cubic through two neighbors on each side.
        usual: largest distance of normal noise. Samples next to larger distances are left out,
            because spikes are rare and must not count as noise.
        position: (N,) position of the motor.
    """
    is_sound = ~_near(off_course > usual, 2)
    is_sound &= _moves_within(_cumulative_count(_stands(position)), 2, 2)[2:-2]
    if is_sound.sum() < MIN_JUDGED_SAMPLES:
        return 1.0
    return _tail_increase([off_course[is_sound]], CUBIC_TAIL_POWER)


def _off_parabola(
    values: np.ndarray, neighbors: np.ndarray, before: int, after: int, at: np.ndarray
) -> np.ndarray:
    """Return how far some samples (n,) are off parabolas through their neighbors.

    Args:
        values: (N,) samples.
        neighbors: (N,) the same without spikes.
        before, after: number of neighbors on each side.
        at: (n,) indices of the samples, which have all neighbors.
    """
    offsets = np.arange(-before, after + 1)
    kernel = np.zeros(len(offsets))
    kernel[offsets != 0] = _weights_at_zero(offsets[offsets != 0], 2)
    if len(at) * len(offsets) < len(values):
        return np.asarray(values[at] - neighbors[at[:, None] + offsets] @ kernel)
    predicted = np.correlate(neighbors, kernel, mode="valid")
    return np.asarray(values[at] - predicted[at - before])


def _weights_at_zero(offsets: np.ndarray, degree: int) -> np.ndarray:
    """Return the weights (n,) of samples at offsets (n,) in the fitted polynomial's value at zero."""
    powers = np.vander(offsets / np.abs(offsets).max(), degree + 1, increasing=True)
    return np.asarray(np.linalg.pinv(powers)[0])


def _near_stops(position: np.ndarray) -> np.ndarray:
    """Return the samples (N,) next to which a position stops for a moment and then moves on."""
    return _near(~_moves_on(position, 1) & _moves_on(position, STOP_REACH), STOP_MARGIN)


def _near(at: np.ndarray, margin: int) -> np.ndarray:
    """Return the samples (N,) that are at most some samples away from others."""
    return np.convolve(at, np.ones(2 * margin + 1), mode="same") > 0.5


def _moves_on(position: np.ndarray, reach: int) -> np.ndarray:
    """Return the samples (N,) before and after which a position moves in the same direction."""
    direction = np.sign(position[reach:] - position[:-reach])
    moves_on = np.zeros(len(position), dtype=bool)
    moves_on[reach:-reach] = direction[reach:] * direction[:-reach] > 0.0
    return moves_on


def _off_nearer_line_at(
    values: np.ndarray, neighbors: np.ndarray, at: np.ndarray, window: tuple[int, int]
) -> np.ndarray:
    """Return the distances (n,) of `_off_nearer_line` at some samples, for fitted lines.

    Args:
        values: (N,) as measured.
        neighbors: (N,) the same without spikes.
        at: (n,) indices of the samples.
        window: number of neighbors before and after.
    """
    distances = []
    for count, direction in zip(window, (-1, 1), strict=True):
        offsets = np.arange(1, count + 1)
        sides = neighbors[at[:, None] + direction * offsets]
        distances.append(values[at] - sides @ _weights_at_zero(offsets, 1))
    return _smaller_if_same_side(*distances)


def _smaller_if_same_side(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the smaller absolute value of two distances, and zero for different signs."""
    smaller = np.minimum(np.abs(first), np.abs(second))
    return np.where(first * second > 0.0, smaller, 0.0)


def _off_nearer_line(values: np.ndarray, at: np.ndarray, weights: Sequence[float]) -> np.ndarray:
    """Return how far some samples (n,) are off the lines through their neighbors on both sides.

    It is the smaller distance, and zero for a sample between the lines or at the ends. A step, such
    as that of dry friction, leaves the line on one side only.

    Args:
        values: (N,) as measured.
        at: (n,) indices of the samples.
        weights: weights of the samples on one side in the line, the nearest first.
    """
    offsets = np.arange(1, len(weights) + 1)
    is_inner = (at >= len(weights)) & (at < len(values) - len(weights))
    inner = at[is_inner]
    before = values[inner[:, None] - offsets] @ np.array(weights)
    after = values[inner[:, None] + offsets] @ np.array(weights)
    off = np.zeros(len(at))
    off[is_inner] = _smaller_if_same_side(values[inner] - before, values[inner] - after)
    return off


def _largest_noise(sizes: np.ndarray) -> float:
    """Return the size that `EXPECTED_FALSE_SPIKES` of all samples exceed by normal noise.

    Args:
        sizes: (N,) absolute values.
    """
    normal = NormalDist()
    quantiles = np.quantile(sizes, NOISE_QUANTILES).tolist()
    deviation = max(
        quantile / normal.inv_cdf(0.5 * (1.0 + share))
        for quantile, share in zip(quantiles, NOISE_QUANTILES, strict=True)
    )
    return deviation * normal.inv_cdf(1.0 - 0.5 * EXPECTED_FALSE_SPIKES / len(sizes))


def frozen_samples(values: np.ndarray, moves: np.ndarray, quantity: str) -> np.ndarray:
    """Return the samples (N,) of one value for too long while the machine moves.

    `limits_reached` handles runs at the largest and the smallest value.

    Args:
        values: (N,) as measured.
        moves: (N,) whether the channel's motor, or the machine, moves.
        quantity: "position" or "force".
    """
    frozen = np.zeros(len(values), dtype=bool)
    edges = np.concatenate([[0], np.flatnonzero(np.diff(values)) + 1, [len(values)]])
    lengths = np.diff(edges)
    usual = float(np.median(np.repeat(lengths, lengths)))
    longer = np.flatnonzero(
        (lengths >= MIN_FROZEN_SAMPLES) & (lengths >= UNUSUAL_RUN_FACTOR * usual)
    )
    for run in longer:
        first, after = int(edges[run]), int(edges[run + 1])
        at_end = quantity == "force" and values[first] in (values.max(), values.min())
        stands = int(moves[first:after].sum())
        if at_end or stands < max(MIN_FROZEN_SAMPLES, MIN_MOVING_SHARE * (after - first)):
            continue
        if quantity == "force":
            is_frozen = _changes_elsewhere(values, moves, first, after)
        else:
            is_frozen = _is_abrupt(values, first, after)
        frozen[first:after] = is_frozen
    return frozen


def bridged(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return positions (N,) with some samples replaced by a cubic that is smooth at both ends."""
    mended = values.copy()
    good = np.flatnonzero(~at)
    for first, after in runs(at):
        before, behind = good[good < first][-2:], good[good >= after][:2]
        if len(before) < 2 or len(behind) < 2:
            mended[first:after] = np.interp(np.arange(first, after), good, values[good])
            continue
        span = float(behind[0] - before[1])
        start, end = values[before[1]], values[behind[0]]
        rates = [
            span * (values[pair[1]] - values[pair[0]]) / (pair[1] - pair[0])
            for pair in (before, behind)
        ]
        x = (np.arange(first, after) - before[1]) / span
        # Hermite's cubic with the mean slopes on both sides
        mended[first:after] = (
            (1.0 + 2.0 * x) * (1.0 - x) ** 2 * start
            + x * (1.0 - x) ** 2 * rates[0]
            + x**2 * (3.0 - 2.0 * x) * end
            + x**2 * (x - 1.0) * rates[1]
        )
    return mended


def _moving_alone(position: np.ndarray) -> np.ndarray:
    """Return the samples (N,) in which one position channel moves."""
    speed = np.abs(np.gradient(position))
    width = 2 * MIN_PLATEAU_SAMPLES + 1
    smooth = np.convolve(speed, np.full(width, 1.0 / width), mode="same")
    return np.asarray(smooth > RESTING_SPEED_SHARE * smooth.max(initial=0.0))


def _changes_elsewhere(values: np.ndarray, moves: np.ndarray, first: int, after: int) -> bool:
    """Return whether a force changes clearly in other stretches of the same length, or shorter.

    It must also continue elsewhere after this stretch.

    A force with coarse steps may stay at one of them while it changes little; it then leaves it by
    one step.
    """
    length = max(MIN_FROZEN_SAMPLES, int(MAX_COMPARED_SHARE * len(values)))
    length = min(after - first, length)
    low, high = np.quantile(values, (0.01, 0.99))
    sizes = np.abs(np.diff(values))
    smallest = float(sizes[sizes > 0.0].min())
    ranges = [
        float(np.ptp(values[start : start + length]))
        for start in _starts(len(values), length, first, after)
        if moves[start : start + length].mean() > MIN_MOVING_SHARE
    ]
    clear = max(MIN_CHANGE_SHARE * float(high - low), MIN_CHANGE_STEPS * smallest)
    if after < len(values) and abs(values[after] - values[first]) <= MIN_CHANGE_STEPS * smallest:
        return False
    return len(ranges) >= 3 and float(np.quantile(ranges, 0.05)) > clear


def _starts(count: int, length: int, first: int, after: int) -> Iterator[int]:
    """Yield the starts of stretches of a length on both sides of a run, at most a few hundred."""
    stride = max(length, count // 500)
    yield from range(after, count - length + 1, stride)
    yield from range(first - length, -1, -stride)


def _is_abrupt(values: np.ndarray, first: int, after: int) -> bool:
    """Return whether a position stops or starts faster than a motor can."""
    bends = np.abs(np.diff(values, 2))
    edges = [k for k in (first - 2, first - 1, after - 2, after - 1) if 0 <= k < len(bends)]
    steps = np.abs(np.diff(values))
    usual = max(float(np.quantile(bends, 0.99)), float(steps[steps > 0.0].min()))
    return bool(edges) and bool(bends[edges].max() > ABRUPT_FACTOR * usual)


def _spikes(
    quantity: str, name: str, values: np.ndarray, at: np.ndarray, time: np.ndarray
) -> Problem:
    groups = list(runs(at))
    first, after = groups[0]
    before, behind = values[max(first - 1, 0)], values[min(after, len(values) - 1)]
    times = ", ".join(f"{time[start]:g}" for start, _ in groups[:MAX_LISTED_TIMES])
    more = f" and {len(groups) - MAX_LISTED_TIMES} more" if len(groups) > MAX_LISTED_TIMES else ""
    what = (
        f"jumps for single samples: {len(groups)} of them, the first {values[first]:.6g} at {time[first]:g} s between "
        f"{before:.6g} and {behind:.6g}; at {times}{more} s"
    )
    mended = "they are interpolated" if quantity == "position" else "they are ignored"
    return Problem(f"{quantity}.{name}", what, f"{mended}; check the sensor and its wiring")


def _frozen(
    quantity: str, name: str, values: np.ndarray, at: np.ndarray, time: np.ndarray
) -> Problem:
    stretches = list(runs(at))
    texts = [
        f"{values[first]:.6g} from {time[first]:g} to {time[after - 1]:g} s"
        for first, after in stretches
    ]
    more = f" and {len(texts) - MAX_LISTED_TIMES} more" if len(texts) > MAX_LISTED_TIMES else ""
    subject = "its motor moves" if quantity == "force" else "the machine moves"
    times = ", ".join(texts[:MAX_LISTED_TIMES])
    what = f"does not change while {subject}: {times}{more} ({counted(at.sum(), 'sample')})"
    left = (
        "these samples are ignored"
        if quantity == "force"
        else "the forces at these times are ignored"
    )
    return Problem(f"{quantity}.{name}", what, f"{left}; check the sensor and its bus")
