"""One period of a periodic motion as a prepared log: derivatives by Fourier series, no filter; noise of its forces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.fft

from tauloop.common.errors import Problem
from tauloop.identification.preparation.periods import PeriodAverage, fourier_derivatives
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.from_log import driven_transmission, regression_data
from tauloop.identification.regression.ties import Ties
from tauloop.logs import Preparation, Signals, channels, sample_period
from tauloop.logs.log import TIME, Channel, Log, as_signals, units_of
from tauloop.logs.preparation import Motion, with_motions
from tauloop.model import Model

#: A speed below this share of its channel's largest counts as zero, as in `Preparation`.
STANDSTILL = 1e-6
#: Positions that differ by this share of the largest stroke (RMS) from their mean over all periods
#: do not repeat.
NOT_REPEATED = 0.1
#: Power of a velocity above the highest frequency, as a share of all of it and in standard
#: deviations of noise, that is named.
CUT_OFF, NOISY = 1e-3, 6.0


def periodic_signals(log: Log, *, highest: float, standstill: float = STANDSTILL) -> Signals:
    """Whole periods as `prepared_signals` prepares other logs: positions, velocities and accelerations, and the rest.

    Positions are differentiated by their Fourier series up to the highest frequency, Hz; forces
    stay as they are, so that white noise of theirs stays white.

    Raises:
        InputError: the highest frequency is not below half the rate.
    """
    raw, rate = as_signals(log), 1.0 / sample_period(log)

    def motion(channel: Channel) -> Motion:
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
    """Regressor and forces of one period, such as of `PeriodAverage.log` or `TwoRuns.log`; see `regression_data`.

    Raises:
        InputError: no such output, or the highest frequency is not below half the rate.
        LogError: channels are missing, or in another unit than the machine's.
        PoseError: the log leaves the workspace of the described machine.
    """
    prepared = periodic_signals(log, highest=highest, standstill=standstill)
    return regression_data(
        model, log, Preparation(cutoff=None), output=output, ties=ties, prepared=prepared
    )


def not_repeated(average: PeriodAverage) -> tuple[Problem, ...]:
    """Positions that differ so much from period to period that the motion has another period."""
    if average.periods == 1:
        return ()
    moves = [name for name in average.noise if name.startswith("position.")]
    stroke = {name: float(average.log[name].std()) for name in moves}
    # by unit; beside it, since a channel that is held moves by its noise alone
    largest: dict[str | None, float] = {}
    for name in moves:
        unit, whole = (
            units_of(average.log[name]),
            float(np.hypot(stroke[name], average.noise[name])),
        )
        largest[unit] = max(largest.get(unit, 0.0), whole)
    return tuple(
        Problem(
            name,
            f"moves by {stroke[name]:.3g} in the mean of {average.periods} periods (RMS), and differs from it by "
            f"{noise:.3g}: it does not repeat after the given period",
            "correct the period, or trim the start and the end of the log",
        )
        for name in moves
        if (noise := average.noise[name]) > NOT_REPEATED * largest[units_of(average.log[name])]
    )


def cut_off(average: PeriodAverage, highest: float) -> tuple[Problem, ...]:
    """Positions with more power above the highest frequency than their noise has: it cuts off some of the motion.

    The power is that of the velocity, less the mean of white noise, as a share of all of it.
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
        whole = float(power[~above].sum()) + max(excess, 0.0)
        # the power of noise at one frequency has a standard deviation of its mean
        if excess < max(CUT_OFF * whole, NOISY * float(np.sqrt(np.sum(expected**2)))):
            continue
        strongest = frequency[above][int(np.argmax(power[above]))]
        what = (
            f"has {100.0 * excess / whole:.2g} % of its velocity's power above the highest frequency of {highest:g} "
            f"Hz, most of it at {strongest:.3g} Hz: it is cut off"
        )
        problems.append(Problem(channel.name, what, "give a higher frequency (--max-frequency)"))
    return tuple(problems)


def force_noise(averages: Sequence[PeriodAverage], model: Model, output: str) -> np.ndarray | None:
    """Standard deviation of the averaged forces, pooled over logs, of the measured outputs (n_kept,), SI.

    Of joints it is that of A^T u, with the covariance of the actuators' forces u that the periods
    show. None of redundant actuators, whose resultants mix the forces otherwise at every sample,
    and where a log is one period without a stated noise.
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
        places = [list(average.noise).index(name) for name in wanted]
        covariances.append(average.covariance[np.ix_(places, places)] / average.periods)
    pooled = np.average(
        covariances, axis=0, weights=[len(average.log[TIME]) for average in averages]
    )
    if output == "actuators":
        return np.sqrt(np.diag(pooled))
    mixing = driven_transmission(model)
    return np.sqrt(np.diag(mixing.T @ pooled @ mixing))
