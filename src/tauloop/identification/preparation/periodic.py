"""Preparation of one period of a motion: derivatives by Fourier series, noise of the forces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.fft

from tauloop.common.counts import counted
from tauloop.common.errors import Problem
from tauloop.identification.preparation.periods import PeriodAverage, fourier_derivatives
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.from_log import driven_transmission, regression_data
from tauloop.identification.regression.ties import Ties
from tauloop.logs import Preparation, Signals, channels, sample_period
from tauloop.logs.log import TIME, Channel, Log, as_signals, units_of
from tauloop.logs.preparation import Motion, with_motions
from tauloop.model import Model

#: A speed below this fraction of the channel's largest speed counts as zero, as in `Preparation`.
STANDSTILL = 1e-6
#: Positions repeat if their RMS difference from the mean over all periods is at most this fraction
#: of the largest RMS motion.
MAX_PERIOD_DIFFERENCE = 0.1
#: Power of a velocity above the highest frequency is reported if it exceeds this fraction of the
#: total power.
MIN_REPORTED_POWER = 1e-3
#: It must also exceed this number of standard deviations of the noise's power.
MIN_REPORTED_DEVIATIONS = 6.0


def periodic_signals(log: Log, *, highest: float, standstill: float = STANDSTILL) -> Signals:
    """Return whole periods with velocities and accelerations; see `prepared_signals`.

    Positions are differentiated by their Fourier series up to the highest frequency, Hz. Forces are
    not filtered, so that white noise stays white.

    Raises:
        InputError: the highest frequency is not below half the rate.
    """
    raw = as_signals(log)
    rate = 1.0 / sample_period(log)

    def motion(channel: Channel) -> Motion:
        """Return position, velocity and acceleration of a channel."""
        position, velocity, acceleration = fourier_derivatives(
            channel.values[:, None], rate, highest
        )
        return position[:, 0], velocity[:, 0], acceleration[:, 0]

    return with_motions(raw, motion, standstill)


def periodic_regression(
    model: Model,
    log: Log,
    *,
    highest: float,
    output: str = "actuators",
    standstill: float = STANDSTILL,
    ties: Ties | None = None,
) -> RegressionData:
    """Return the regressor and the forces of one period; see `regression_data`.

    The period may be `PeriodAverage.log` or `TwoRuns.log`.

    Raises:
        InputError: the output is unknown, or the highest frequency is not below half the rate.
        LogError: channels are missing, or have another unit than the machine's.
        PoseError: the log leaves the workspace of the described machine.
    """
    prepared = periodic_signals(log, highest=highest, standstill=standstill)
    return regression_data(
        model, log, Preparation(cutoff=None), output=output, ties=ties, prepared=prepared
    )


def not_repeated(average: PeriodAverage) -> tuple[Problem, ...]:
    """Return a problem for each position that does not repeat after the given period."""
    if average.periods == 1:
        return ()
    names = [name for name in average.noise if name.startswith("position.")]
    motion = {name: float(average.log[name].std()) for name in names}
    # Noise is compared with the largest motion of all channels with the same unit, because the
    # motion of a channel that is held is only noise.
    largest: dict[str | None, float] = {}
    for name in names:
        unit = units_of(average.log[name])
        total_motion = float(np.hypot(motion[name], average.noise[name]))
        largest[unit] = max(largest.get(unit, 0.0), total_motion)
    problems = []
    for name in names:
        noise = average.noise[name]
        if noise > MAX_PERIOD_DIFFERENCE * largest[units_of(average.log[name])]:
            what = (
                f"moves by {motion[name]:.3g} (RMS) in the mean of {counted(average.periods, 'period')} and "
                f"differs from the mean by {noise:.3g}: it does not repeat after the given period"
            )
            remedy = "correct the period, or trim the start and the end of the log"
            problems.append(Problem(name, what, remedy))
    return tuple(problems)


def cut_off(average: PeriodAverage, highest: float) -> tuple[Problem, ...]:
    """Return a problem for each position whose motion is partly above the highest frequency.

    The power of the velocity above the highest frequency then exceeds the power of its noise. The
    reported value is the power above the highest frequency minus the mean power of white noise, as
    a fraction of the total power.
    """
    signals = as_signals(average.log)
    rate = 1.0 / sample_period(signals)
    problems = []
    for channel in signals.channels:
        if channel.quantity != "position" or not np.ptp(channel.values):
            continue
        count = len(channel.values)
        frequency = scipy.fft.rfftfreq(count, 1.0 / rate)
        power = np.abs(scipy.fft.rfft(channel.values - channel.values.mean())) ** 2 * frequency**2
        noise = (
            average.deviation(channel.name) ** 2 * count if channel.name in average.noise else 0.0
        )
        above = frequency > highest
        expected = noise * frequency[above] ** 2
        excess = float(power[above].sum() - expected.sum())
        total_power = float(power[~above].sum()) + max(excess, 0.0)
        # The power of noise at one frequency has a standard deviation that equals its mean.
        deviation = float(np.sqrt(np.sum(expected**2)))
        if excess < max(MIN_REPORTED_POWER * total_power, MIN_REPORTED_DEVIATIONS * deviation):
            continue
        strongest = frequency[above][int(np.argmax(power[above]))]
        what = (
            f"has {100.0 * excess / total_power:.2g} % of its velocity's power above the highest "
            f"frequency of {highest:g} Hz, most of it at {strongest:.3g} Hz: this part is cut off"
        )
        problems.append(Problem(channel.name, what, "give a higher frequency (--max-frequency)"))
    return tuple(problems)


def force_noise(averages: Sequence[PeriodAverage], model: Model, output: str) -> np.ndarray | None:
    """Return the standard deviation of the averaged forces of the measured outputs (n_kept,), SI.

    The logs' covariances of the actuators' forces u are pooled. For joints the result is the
    standard deviation of A^T u.

    Returns:
        The standard deviations. None for redundant actuators, because their resultants combine the
        forces differently at every sample. None also if a log is a single period without a given
        noise.
    """
    names = [
        a.name for a in model.mechanism.actuators if a.name in channels(averages[0].log, "force")
    ]
    wanted = [f"force.{name}" for name in names]
    if model.assembly.is_redundant or any(
        name not in average.noise for average in averages for name in wanted
    ):
        return None
    covariances = []
    for average in averages:
        indices = [list(average.noise).index(name) for name in wanted]
        covariances.append(average.covariance[np.ix_(indices, indices)] / average.periods)
    pooled = np.average(
        covariances, axis=0, weights=[len(average.log[TIME]) for average in averages]
    )
    if output == "actuators":
        return np.sqrt(np.diag(pooled))
    mixing = driven_transmission(model)
    return np.sqrt(np.diag(mixing.T @ pooled @ mixing))
