"""Faulty samples: spikes, encoder drop-outs, frozen channels, wrapped angles and jumps.

The checks need no model of the machine. Faulty force samples are marked, so that a fit ignores
them. Faulty positions are interpolated; if a position is frozen, the forces at these times are also
marked.
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

#: A spike of a position deviates from a cubic through its neighbors by at least this multiple of
#: the typical deviation, and from each neighbor by at least half of its deviation from the cubic.
SPIKE_FACTOR = 6.0
#: The typical deviation is this quantile of all deviations of a log.
SPIKE_QUANTILE = 0.9
#: A spike of a force deviates more than normally distributed noise does. The limit is the deviation
#: that this number of samples of a whole log is expected to exceed.
EXPECTED_FALSE_SPIKES = 1e-3
#: Quantiles that determine the standard deviation of the noise. Deviations at reversals of dry
#: friction are above these quantiles.
NOISE_QUANTILES = (0.9, 0.95)
#: Numbers of neighbors on each side for the parabolas from which small spikes of a force deviate. A
#: parabola through many neighbors hardly contains their noise.
SMALL_SPIKE_REACHES = (3, 4, 6, 8, 12, 16, 24)
#: Numbers of neighbors before and after a sample next to a reversal.
SIDED_WINDOWS = ((12, 2), (2, 12))
#: A small spike deviates from the lines through the neighbors on each side by at least this
#: fraction of its deviation from the parabola.
ONE_SIDED_SHARE = 0.5
#: A small spike is at least this fraction of the range of the force.
MIN_SMALL_SPIKE_SHARE = 0.005
#: Inner and outer quantile of the deviations. Their ratio, divided by that of normally distributed
#: noise, is the tail ratio, which measures how frequent outliers are. It is computed for all
#: samples, because a few hundred do not determine the outer quantile.
TAIL_QUANTILES = (0.9, 0.99)
#: The limit of small spikes is multiplied by this power of the tail ratio. In noise with many
#: outliers, no sample therefore counts as a small spike.
TAIL_POWER = 5
#: The power for deviations from a cubic. These deviations mix the noise of five samples, so that
#: their inner quantiles are closer to those of a normal distribution.
CUBIC_TAIL_POWER = 7
#: Maximum number of samples, spread over the log, that determine the numbers of neighbors.
MAX_COMPARED_SAMPLES = 20_000
#: The number of neighbors is increased until the typical deviation grows by this factor.
MAX_GROWTH = 1.1
#: An encoder is too coarse for a distance in samples if its position is constant over this distance
#: in a larger fraction of the log.
MAX_CONSTANT_SHARE = 0.2
#: Minimum number of samples that determine the noise level.
MIN_JUDGED_SAMPLES = 200
#: Minimum number of samples that determine the noise level in the windows of `SIDED_WINDOWS`.
MIN_SIDED_SAMPLES = 60
#: Number of passes of the search for small spikes. Each pass ignores the spikes of the previous one
#: as neighbors.
SMALL_SPIKE_PASSES = 3
#: Weights of the samples before a sample in the line that predicts it, the nearest first. Three
#: samples predict noisy forces better, and two samples fast positions.
LINE_WEIGHTS = {"position": (2.0, -1.0), "force": (4.0 / 3.0, 1.0 / 3.0, -2.0 / 3.0)}
#: Dry friction causes a short pulse of the force between two reversals. A motor that stops, and
#: moves in the same direction this number of samples before and after, may have reversed twice.
STOP_REACH = 10
#: Number of samples around such a stop in which only large spikes count.
STOP_MARGIN = 3
#: Minimum size of a spike near such a stop, as a fraction of the range.
STOP_SPIKE_SHARE = 0.5
#: Minimum size of force spikes, as a fraction of the range (without its outermost hundredths).
MIN_SPIKE_SHARE = 0.02
#: Deviations of up to this number of counts are not spikes. The smallest nonzero change between two
#: samples is taken as one count.
MAX_COUNTS = 3.0
#: Maximum number of samples of a spike.
MAX_SPIKE_SAMPLES = 3
#: Minimum step at both ends of a force spike of several samples, as a fraction of the range.
WIDE_SPIKE_SHARE = 0.5
#: Minimum step at both ends of a position spike of several samples, as a multiple of the 0.99
#: quantile of all steps.
WIDE_SPIKE_STEPS = 5.0
#: Minimum number of equal samples of a frozen channel.
MIN_FROZEN_SAMPLES = 20
#: Minimum number of equal samples of a frozen channel, as a multiple of the typical number.
UNUSUAL_RUN_FACTOR = 5
#: A force is frozen only if it changes elsewhere, in equally many samples, by at least this
#: fraction of its range.
MIN_CHANGE_SHARE = 0.01
#: Minimum of this change as a multiple of the smallest nonzero step of the force.
MIN_CHANGE_STEPS = 5.0
#: A stretch of samples counts as moving if the motor moves for more than this fraction of the time.
MIN_MOVING_SHARE = 0.5
#: Longest stretches that are compared with a frozen stretch, as a fraction of the log.
MAX_COMPARED_SHARE = 0.05
#: A position is frozen only if it stops or starts abruptly: with a second difference of more than
#: this multiple of the 0.99 quantile of all second differences.
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
        problem: the finding, for messages.
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
    machine_moves = moving(log) if positions else np.ones(len(time), dtype=bool)
    bad: list[BadSamples] = []
    for quantity in ("position", "force"):
        for name, values in by_channel(log, quantity).items():
            if len(values) < 2 * MIN_FROZEN_SAMPLES or not np.ptp(values):
                continue
            position = positions.get(name) if quantity == "force" else None
            spikes = spike_samples(values, quantity, position)
            if spikes.any():
                problem = _spikes(quantity, name, values, spikes, time)
                bad.append(
                    BadSamples(
                        quantity=quantity, channel=name, kind="spikes", at=spikes, problem=problem
                    )
                )
            is_moving = machine_moves
            if quantity == "force" and name in positions:
                is_moving = _moving_alone(positions[name])
            frozen = frozen_samples(values, is_moving, quantity)
            if frozen.any():
                problem = _frozen(quantity, name, values, frozen, time)
                bad.append(
                    BadSamples(
                        quantity=quantity, channel=name, kind="frozen", at=frozen, problem=problem
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
    interpolated: dict[str, np.ndarray] = {}
    forces = tuple(by_channel(raw, "force"))
    for finding in bad:
        affected: Sequence[str] = (finding.channel,) if finding.quantity == "force" else ()
        if finding.quantity == "position":
            values = interpolated.get(finding.channel, by_channel(raw, "position")[finding.channel])
            interpolated[finding.channel] = bridged(values, finding.at)
            affected = forces if finding.kind == "frozen" else ()
        for name in affected:
            masks[name] = masks.get(name, np.zeros(count, dtype=bool)) | finding.at
    new_channels = [
        replace(channel, values=interpolated[channel.channel])
        if channel.quantity == "position" and channel.channel in interpolated
        else channel
        for channel in raw.channels
        if not (marks and channel.quantity == LEFT_OUT)
    ]
    if marks:
        new_channels += [
            Channel(
                quantity=LEFT_OUT,
                channel=name,
                values=mask.astype(float),
                unit="1",
                source="bad samples",
            )
            for name, mask in masks.items()
        ]
    repaired = replace(raw, channels=tuple(new_channels))
    problems = (finding.problem for finding in bad)
    return repaired, (*wrap_problems, *problems, *position_jumps(repaired))


def spike_samples(
    values: np.ndarray, quantity: str, position: np.ndarray | None = None
) -> np.ndarray:
    """Return whether each sample (N,) belongs to a spike.

    A spike leaves the curve of its neighbors and returns to it within `MAX_SPIKE_SAMPLES` samples.

    Args:
        values: (N,) as measured.
        quantity: "position" or "force".
        position: (N,) position of the motor of a force. Near samples at which the motor stops for a
            moment, dry friction causes pulses, so only larger deviations count as spikes.
    """
    if len(values) < 2 * MIN_PLATEAU_SAMPLES:
        return np.zeros(len(values), dtype=bool)
    steps = np.diff(values)
    step_sizes = np.abs(steps)
    low, high = np.quantile(values, (0.01, 0.99))
    smallest_step = _smallest_step(step_sizes)
    inner = values[2:-2]
    cubic_deviation = np.abs(
        inner - (4.0 * (values[1:-3] + values[3:-1]) - values[:-4] - values[4:]) / 6.0
    )
    if quantity == "force":
        noise_limit = _largest_noise(cubic_deviation)
        min_deviation = max(
            noise_limit, MAX_COUNTS * smallest_step, MIN_SPIKE_SHARE * float(high - low)
        )
        min_pulse = WIDE_SPIKE_SHARE * float(high - low)
    else:
        noise_limit = SPIKE_FACTOR * float(np.quantile(cubic_deviation, SPIKE_QUANTILE))
        min_deviation = max(noise_limit, MAX_COUNTS * smallest_step)
        min_pulse = WIDE_SPIKE_STEPS * float(np.quantile(step_sizes, 0.99))
    spikes = _large_spikes(values, steps, cubic_deviation, quantity, min_deviation)
    pulses = _pulses(values, steps, max(min_pulse, min_deviation))
    if position is not None and (spikes.any() or pulses.any()):
        # the tails of the noise only matter for samples that normal noise does not explain
        min_deviation = max(
            min_deviation,
            noise_limit * _tail_increase_of_motion(cubic_deviation, noise_limit, position),
        )
        spikes = _large_spikes(values, steps, cubic_deviation, quantity, min_deviation)
        pulses = _pulses(values, steps, max(min_pulse, min_deviation))
        is_clear = cubic_deviation > STOP_SPIKE_SHARE * float(high - low)
        spikes[2:-2] &= is_clear | ~_near_stops(position)[2:-2]
    spikes |= pulses
    if quantity == "force":
        min_deviation = max(MAX_COUNTS * smallest_step, MIN_SMALL_SPIKE_SHARE * float(high - low))
        small = _small_spikes(values, spikes, min_deviation, position)
        if position is not None and small.any():
            small &= ~_near_stops(position)
        spikes |= small
    return spikes


def _smallest_step(sizes: np.ndarray) -> float:
    """Return the smallest nonzero value of step sizes (N,); infinity if all are zero."""
    smallest = float(sizes.min())
    return smallest if smallest > 0.0 else float(sizes[sizes > 0.0].min(initial=np.inf))


def _large_spikes(
    values: np.ndarray,
    steps: np.ndarray,
    cubic_deviation: np.ndarray,
    quantity: str,
    min_deviation: float,
) -> np.ndarray:
    """Return whether each sample (N,) is a spike of a single sample.

    Args:
        values: (N,) as measured.
        steps: (N - 1,) differences of the values.
        cubic_deviation: (N - 4,) deviations from a cubic through two neighbors on each side.
        quantity: "position" or "force".
        min_deviation: smallest deviation of a spike.
    """
    spikes = np.zeros(len(values), dtype=bool)
    rows = np.flatnonzero(cubic_deviation > min_deviation) + 2
    before, after = steps[rows - 1], steps[rows]
    peaks = np.where(before * after < 0.0, np.minimum(np.abs(before), np.abs(after)), 0.0)
    # neighbors of a spike deviate from the cubic too, but are not peaks of half that size
    limits = 0.5 * cubic_deviation[rows - 2]
    is_peak = peaks > limits
    rows, limits = rows[is_peak], limits[is_peak]
    if quantity == "force":
        limits = np.maximum(min_deviation, limits)
    spikes[rows[_deviations_from_nearer_line(values, rows, LINE_WEIGHTS[quantity]) > limits]] = True
    return spikes


def _pulses(values: np.ndarray, steps: np.ndarray, min_step: float) -> np.ndarray:
    """Return whether each sample (N,) belongs to a spike of two or more samples.

    Args:
        values: (N,) as measured.
        steps: (N - 1,) differences of the values.
        min_step: smallest step at both ends of a spike.
    """
    is_spike = np.zeros(len(values), dtype=bool)
    large = np.flatnonzero(np.abs(steps) > min_step)
    for width in range(2, MAX_SPIKE_SAMPLES + 1):
        starts = large[large < len(steps) - width]
        leaves, returns = steps[starts], steps[starts + width]
        net = np.abs(values[starts + width + 1] - values[starts])
        pulse = np.minimum(np.abs(leaves), np.abs(returns))
        is_pulse = (leaves * returns < 0.0) & (pulse > min_step) & (net < 0.5 * pulse)
        for first in starts[is_pulse]:
            is_spike[first + 1 : first + 1 + width] = True
    return is_spike


def _small_spikes(
    values: np.ndarray, known_spikes: np.ndarray, min_deviation: float, position: np.ndarray | None
) -> np.ndarray:
    """Return whether each sample (N,) of a force is a small spike of a single sample.

    Args:
        values: (N,) as measured.
        known_spikes: (N,) whether each sample is already known to be a spike.
        min_deviation: smallest deviation from the parabola through the neighbors.
        position: as for `spike_samples`.
    """
    spikes = np.zeros(len(values), dtype=bool)
    windows = [
        (window, np.flatnonzero(is_judged))
        for window, is_judged in _windows(bridged(values, known_spikes), position)
    ]
    for _ in range(SMALL_SPIKE_PASSES):
        all_spikes = known_spikes | spikes
        neighbors = bridged(values, all_spikes)
        all_deviations = [
            np.abs(_deviations_from_parabola(values, neighbors, *window, at=judged))
            for window, judged in windows
        ]
        noise = [
            deviations[~all_spikes[judged]]
            for (_, judged), deviations in zip(windows, all_deviations, strict=True)
        ]
        increase = _tail_increase(noise)
        previous_spikes = spikes
        spikes = np.zeros(len(values), dtype=bool)
        for (window, judged), deviations, noise_deviations in zip(
            windows, all_deviations, noise, strict=True
        ):
            is_large = (
                deviations > max(min_deviation, increase * _largest_noise(noise_deviations))
            ) & ~known_spikes[judged]
            large = judged[is_large]
            line_deviations = _deviations_from_fitted_lines(values, neighbors, large, window)
            spikes[large] = line_deviations > ONE_SIDED_SHARE * deviations[is_large]
        if np.array_equal(spikes, previous_spikes):
            break
    return spikes


def _windows(
    values: np.ndarray, position: np.ndarray | None
) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
    """Yield numbers of neighbors before and after, and whether each sample (N,) uses them.

    A sample is compared with the largest number of neighbors that predict it well. A sample is not
    predicted across a reversal, because friction jumps there. Next to a reversal, there are fewer
    neighbors on the side of the reversal.

    Args:
        values, position: as for `_small_spikes`.
    """
    smallest_typical = np.inf
    smooth: list[tuple[int, np.ndarray]] = []
    may_stop = np.zeros(len(values), dtype=bool) if position is None else _may_stop(position)
    counts = _cumulative_count(may_stop)
    for reach in SMALL_SPIKE_REACHES:
        is_smooth = _moves_within(counts, reach, reach)
        if is_smooth.sum() < MIN_JUDGED_SAMPLES:
            break
        compared = np.flatnonzero(is_smooth)
        compared = compared[:: -(-len(compared) // MAX_COMPARED_SAMPLES)]
        deviations = np.abs(_deviations_from_parabola(values, values, reach, reach, at=compared))
        typical = float(np.quantile(deviations, SPIKE_QUANTILE))
        if typical > MAX_GROWTH * smallest_typical:
            break
        smallest_typical = min(typical, smallest_typical)
        smooth.append((reach, is_smooth))
    is_judged = np.zeros(len(values), dtype=bool)
    for reach, is_smooth in reversed(smooth):
        is_new = is_smooth & ~is_judged
        if is_new.sum() >= MIN_JUDGED_SAMPLES:
            is_judged |= is_new
            yield (reach, reach), is_new
    longest = smooth[-1][0] if smooth else 0
    if position is None:
        return
    for before, after in SIDED_WINDOWS:
        is_new = _moves_within(counts, before, after) & ~is_judged
        if max(before, after) <= longest and is_new.sum() >= MIN_SIDED_SAMPLES:
            is_judged |= is_new
            yield (before, after), is_new


def _cumulative_count(may_stop: np.ndarray) -> np.ndarray:
    """Return, for each sample, the number (N + 1,) of earlier samples at which the motor may stop."""
    counts = np.zeros(len(may_stop) + 1, dtype=np.int32 if len(may_stop) < 2**31 else np.int64)
    np.cumsum(may_stop, out=counts[1:])
    return counts


def _moves_within(counts: np.ndarray, before: int, after: int) -> np.ndarray:
    """Return whether all neighbors of each sample (N,) are in the log and move.

    Args:
        counts: (N + 1,) result of `_cumulative_count`.
        before, after: number of neighbors on each side.
    """
    n = len(counts) - 1
    moves = np.zeros(n, dtype=bool)
    np.equal(
        counts[before + after + 1 :],
        counts[: -before - after - 1],
        out=moves[before : n - after],
    )
    return moves


def _may_stop(position: np.ndarray) -> np.ndarray:
    """Return whether a position may be at rest or reverse at each sample (N,).

    The direction of motion is determined over the smallest number of samples over which the encoder
    position changes for most of the log.
    """
    may_stop = np.ones(len(position), dtype=bool)
    for reach in SMALL_SPIKE_REACHES:
        may_stop = ~_moves_on(position, reach)
        if may_stop.mean() < MAX_CONSTANT_SHARE:
            break
    return may_stop


def _tail_increase(groups: Sequence[np.ndarray], power: int = TAIL_POWER) -> float:
    """Return the factor by which outliers of the noise raise the limit of spikes.

    The factor is a power of the tail ratio (see `TAIL_QUANTILES`), and at least 1.

    Args:
        groups: absolute deviations of groups of samples. Each group has its own noise level.
        power: power of the tail ratio.
    """
    normal = NormalDist()
    inner_normal, outer_normal = (
        normal.inv_cdf(0.5 * (1.0 + probability)) for probability in TAIL_QUANTILES
    )
    inner_probability = TAIL_QUANTILES[0]
    scaled = [
        deviations / max(float(np.quantile(deviations, inner_probability)), np.finfo(float).tiny)
        for deviations in groups
    ]
    if not scaled:
        return 1.0
    outer = float(np.quantile(np.concatenate(scaled), TAIL_QUANTILES[1]))
    return max(1.0, outer * inner_normal / outer_normal) ** power


def _tail_increase_of_motion(
    cubic_deviation: np.ndarray, noise_limit: float, position: np.ndarray
) -> float:
    """Return the factor of `_tail_increase` for the samples of a force away from reversals.

    Args:
        cubic_deviation: (N - 4,) deviations from a cubic through two neighbors on each side.
        noise_limit: largest deviation due to normal noise. Samples next to larger deviations are
            left out, because spikes are rare and must not count as noise.
        position: (N,) position of the motor.
    """
    is_sound = ~_near_marked(cubic_deviation > noise_limit, 2)
    is_sound &= _moves_within(_cumulative_count(_may_stop(position)), 2, 2)[2:-2]
    if is_sound.sum() < MIN_JUDGED_SAMPLES:
        return 1.0
    return _tail_increase([cubic_deviation[is_sound]], CUBIC_TAIL_POWER)


def _deviations_from_parabola(
    values: np.ndarray, neighbors: np.ndarray, before: int, after: int, at: np.ndarray
) -> np.ndarray:
    """Return the signed deviations (n,) of samples from parabolas through their neighbors.

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
    """Return the weights (n,) of samples at offsets (n,) in a fitted polynomial's value at zero."""
    powers = np.vander(offsets / np.abs(offsets).max(), degree + 1, increasing=True)
    return np.asarray(np.linalg.pinv(powers)[0])


def _near_stops(position: np.ndarray) -> np.ndarray:
    """Return whether a position stops for a moment, and then moves on, near each sample (N,)."""
    return _near_marked(~_moves_on(position, 1) & _moves_on(position, STOP_REACH), STOP_MARGIN)


def _near_marked(at: np.ndarray, margin: int) -> np.ndarray:
    """Return whether a marked sample is at most `margin` samples away from each sample (N,)."""
    return np.convolve(at, np.ones(2 * margin + 1), mode="same") > 0.5


def _moves_on(position: np.ndarray, reach: int) -> np.ndarray:
    """Return whether a position moves in the same direction before and after each sample (N,)."""
    direction = np.sign(position[reach:] - position[:-reach])
    moves_on = np.zeros(len(position), dtype=bool)
    moves_on[reach:-reach] = direction[reach:] * direction[:-reach] > 0.0
    return moves_on


def _deviations_from_fitted_lines(
    values: np.ndarray, neighbors: np.ndarray, at: np.ndarray, window: tuple[int, int]
) -> np.ndarray:
    """Return the smaller deviation (n,) of samples from lines fitted to both sides' neighbors.

    It is zero for a sample between the two lines.

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
    """Return the smaller absolute value of two deviations; zero where their signs differ."""
    smaller = np.minimum(np.abs(first), np.abs(second))
    return np.where(first * second > 0.0, smaller, 0.0)


def _deviations_from_nearer_line(
    values: np.ndarray, at: np.ndarray, weights: Sequence[float]
) -> np.ndarray:
    """Return the smaller deviation (n,) of samples from the lines through both sides' neighbors.

    It is zero for a sample between the two lines or at the ends of the log. A step, such as that of
    dry friction, deviates from the line on one side only.

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
    deviations = np.zeros(len(at))
    deviations[is_inner] = _smaller_if_same_side(values[inner] - before, values[inner] - after)
    return deviations


def _largest_noise(deviations: np.ndarray) -> float:
    """Return the deviation that normal noise is expected to exceed `EXPECTED_FALSE_SPIKES` times.

    The expected number is that in all N samples.

    Args:
        deviations: (N,) absolute deviations.
    """
    normal = NormalDist()
    quantiles = np.quantile(deviations, NOISE_QUANTILES).tolist()
    standard_deviation = max(
        quantile / normal.inv_cdf(0.5 * (1.0 + probability))
        for quantile, probability in zip(quantiles, NOISE_QUANTILES, strict=True)
    )
    return standard_deviation * normal.inv_cdf(1.0 - 0.5 * EXPECTED_FALSE_SPIKES / len(deviations))


def frozen_samples(values: np.ndarray, moves: np.ndarray, quantity: str) -> np.ndarray:
    """Return whether each sample (N,) has an unchanged value for too long while the machine moves.

    For forces, `limits_reached` handles runs at the largest and the smallest value.

    Args:
        values: (N,) as measured.
        moves: (N,) whether the channel's motor, or the machine, moves.
        quantity: "position" or "force".
    """
    frozen = np.zeros(len(values), dtype=bool)
    edges = np.concatenate([[0], np.flatnonzero(np.diff(values)) + 1, [len(values)]])
    lengths = np.diff(edges)
    typical_length = float(np.median(np.repeat(lengths, lengths)))
    long_runs = np.flatnonzero(
        (lengths >= MIN_FROZEN_SAMPLES) & (lengths >= UNUSUAL_RUN_FACTOR * typical_length)
    )
    for run in long_runs:
        first, after = int(edges[run]), int(edges[run + 1])
        is_at_limit = quantity == "force" and values[first] in (values.max(), values.min())
        moving_count = int(moves[first:after].sum())
        min_moving_count = max(MIN_FROZEN_SAMPLES, MIN_MOVING_SHARE * (after - first))
        if is_at_limit or moving_count < min_moving_count:
            continue
        if quantity == "force":
            is_frozen = _changes_elsewhere(values, moves, first, after)
        else:
            is_frozen = _is_abrupt(values, first, after)
        frozen[first:after] = is_frozen
    return frozen


def bridged(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return samples (N,) with marked samples replaced by a cubic that is smooth at both ends."""
    repaired = values.copy()
    valid = np.flatnonzero(~at)
    for first, after in runs(at):
        left, right = valid[valid < first][-2:], valid[valid >= after][:2]
        if len(left) < 2 or len(right) < 2:
            repaired[first:after] = np.interp(np.arange(first, after), valid, values[valid])
            continue
        span = float(right[0] - left[1])
        start, end = values[left[1]], values[right[0]]
        slopes = [
            span * (values[pair[1]] - values[pair[0]]) / (pair[1] - pair[0])
            for pair in (left, right)
        ]
        x = (np.arange(first, after) - left[1]) / span
        # cubic Hermite interpolation with the mean slopes on both sides
        repaired[first:after] = (
            (1.0 + 2.0 * x) * (1.0 - x) ** 2 * start
            + x * (1.0 - x) ** 2 * slopes[0]
            + x**2 * (3.0 - 2.0 * x) * end
            + x**2 * (x - 1.0) * slopes[1]
        )
    return repaired


def _moving_alone(position: np.ndarray) -> np.ndarray:
    """Return whether a position channel moves at each sample (N,)."""
    speed = np.abs(np.gradient(position))
    width = 2 * MIN_PLATEAU_SAMPLES + 1
    smooth = np.convolve(speed, np.full(width, 1.0 / width), mode="same")
    return np.asarray(smooth > RESTING_SPEED_SHARE * smooth.max(initial=0.0))


def _changes_elsewhere(values: np.ndarray, moves: np.ndarray, first: int, after: int) -> bool:
    """Return whether a force is frozen from sample `first` to before `after`.

    A frozen force changes clearly in other stretches of at most the same length. It must also jump
    at the end of the stretch, because a force with a coarse resolution may stay at a value while it
    changes little, and then leave this value by one step of the resolution.
    """
    length = max(MIN_FROZEN_SAMPLES, int(MAX_COMPARED_SHARE * len(values)))
    length = min(after - first, length)
    low, high = np.quantile(values, (0.01, 0.99))
    step_sizes = np.abs(np.diff(values))
    smallest_step = float(step_sizes[step_sizes > 0.0].min())
    other_ranges = [
        float(np.ptp(values[start : start + length]))
        for start in _starts(len(values), length, first, after)
        if moves[start : start + length].mean() > MIN_MOVING_SHARE
    ]
    clear_change = max(MIN_CHANGE_SHARE * float(high - low), MIN_CHANGE_STEPS * smallest_step)
    if (
        after < len(values)
        and abs(values[after] - values[first]) <= MIN_CHANGE_STEPS * smallest_step
    ):
        return False
    return len(other_ranges) >= 3 and float(np.quantile(other_ranges, 0.05)) > clear_change


def _starts(count: int, length: int, first: int, after: int) -> Iterator[int]:
    """Yield the starts of at most a few hundred stretches of a length, before and after a run."""
    stride = max(length, count // 500)
    yield from range(after, count - length + 1, stride)
    yield from range(first - length, -1, -stride)


def _is_abrupt(values: np.ndarray, first: int, after: int) -> bool:
    """Return whether a position stops or starts faster than a motor can."""
    second_differences = np.abs(np.diff(values, 2))
    count = len(second_differences)
    edges = [k for k in (first - 2, first - 1, after - 2, after - 1) if 0 <= k < count]
    steps = np.abs(np.diff(values))
    typical = max(float(np.quantile(second_differences, 0.99)), float(steps[steps > 0.0].min()))
    return bool(edges) and bool(second_differences[edges].max() > ABRUPT_FACTOR * typical)


def _spikes(
    quantity: str, name: str, values: np.ndarray, at: np.ndarray, time: np.ndarray
) -> Problem:
    """Return the finding on the spikes of a channel, at the marked samples."""
    groups = list(runs(at))
    first, after = groups[0]
    left, right = values[max(first - 1, 0)], values[min(after, len(values) - 1)]
    times = ", ".join(f"{time[start]:g}" for start, _ in groups[:MAX_LISTED_TIMES])
    more = f" and {len(groups) - MAX_LISTED_TIMES} more" if len(groups) > MAX_LISTED_TIMES else ""
    what = (
        f"jumps for single samples: {len(groups)} of them, the first {values[first]:.6g} at {time[first]:g} s between "
        f"{left:.6g} and {right:.6g}; at {times}{more} s"
    )
    treatment = "they are interpolated" if quantity == "position" else "they are ignored"
    return Problem(f"{quantity}.{name}", what, f"{treatment}; check the sensor and its wiring")


def _frozen(
    quantity: str, name: str, values: np.ndarray, at: np.ndarray, time: np.ndarray
) -> Problem:
    """Return the finding on the frozen stretches of a channel, at the marked samples."""
    stretches = list(runs(at))
    texts = [
        f"{values[first]:.6g} from {time[first]:g} to {time[after - 1]:g} s"
        for first, after in stretches
    ]
    more = f" and {len(texts) - MAX_LISTED_TIMES} more" if len(texts) > MAX_LISTED_TIMES else ""
    subject = "its motor moves" if quantity == "force" else "the machine moves"
    times = ", ".join(texts[:MAX_LISTED_TIMES])
    what = f"does not change while {subject}: {times}{more} ({counted(at.sum(), 'sample')})"
    treatment = (
        "these samples are ignored"
        if quantity == "force"
        else "the forces at these times are ignored"
    )
    return Problem(f"{quantity}.{name}", what, f"{treatment}; check the sensor and its bus")
