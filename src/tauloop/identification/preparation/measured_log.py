"""A log of an identification with its preparation, filtered or averaged over its periods."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

import numpy as np

from tauloop.common.errors import AssemblyError, InputError, LogError, PoseError, Problem
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.plain import OMITTED, PlainData, in_json, json_keys, records
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.identification.preparation.periodic import periodic_signals
from tauloop.identification.preparation.periods import FORCE_NOISE, PeriodAverage, average_periods
from tauloop.identification.preparation.two_runs import TwoRuns
from tauloop.logs import (
    Preparation,
    Signals,
    channels,
    prepared_signals,
    sample_period,
    samples,
    with_cutoffs,
)
from tauloop.logs.checks.known_forces import KnownForce
from tauloop.logs.checks.saturation import LEFT_OUT, left_out
from tauloop.logs.log import TIME, as_signals


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredLog(PlainData, ReprMixin):
    """A log with its name and with the properties that its recording specifies.

    Attributes:
        name: name of the file, or any other name.
        log: the channels.
        preparation: filters, trimming, decimation; None to prepare the log like the first log.
        known_forces: forces that the machine file does not describe; they are subtracted.
        average: average of the periods, if periods are averaged.
        highest: highest frequency of the averaged motion, Hz.
        runs: result of the two-run method, if it was used.
        is_prepared: whether the recording specifies its preparation.
    """

    name: str = field(metadata=json_keys("log"))
    log: Signals = field(metadata=OMITTED)
    preparation: Preparation | None = field(default=None, metadata=OMITTED)
    known_forces: tuple[KnownForce, ...] = field(default=(), metadata=OMITTED)
    average: PeriodAverage | None = field(default=None, metadata=OMITTED)
    highest: float = field(default=np.inf, metadata=OMITTED)
    runs: TwoRuns | None = field(default=None, metadata=OMITTED)
    is_prepared: bool = field(default=True, metadata=OMITTED)
    how = old_attribute("how", "effective_preparation")

    @property
    def effective_preparation(self) -> Preparation:
        """The preparation; a preparation without filters if none is given."""
        return self.preparation or Preparation(cutoff=None)

    @property
    def factor(self) -> int:
        """Factor by which regressor and forces are decimated."""
        return 1 if self.average is not None else self.effective_preparation.decimation

    @property
    def source(self) -> Signals:
        """The channels, or their average over all periods if periods are averaged."""
        return self.log if self.average is None else as_signals(self.average.log)

    def prepared(self) -> Signals:
        """Return the filtered channels, or the average period with derivatives of its series."""
        if self.average is None:
            return prepared_signals(self.log, self.effective_preparation)
        return periodic_signals(
            self.average.log, highest=self.highest, standstill=self.effective_preparation.standstill
        )

    def prepared_again(self, longest: int) -> Signals | None:
        """Return the first samples of the prepared log, prepared once more; None for averages.

        The prepared motion is smooth and known exactly, so its difference from the result is the
        change that the preparation causes without noise. The first preparation is not trimmed, so
        that the ends of the log have the same effect in both preparations.

        Args:
            longest: maximum number of samples.
        """
        if self.average is not None:
            return None
        how = with_cutoffs(self.log, self.effective_preparation)
        beginning = as_signals(self.log).part(slice(None, longest + 2 * how.trim))
        untrimmed = prepared_signals(beginning, replace(how, trim=0))
        return prepared_signals(untrimmed, how)

    def averaged(self, period: float, highest: float) -> MeasuredLog:
        """Return the log with the average of its periods, without the samples that are trimmed.

        A log of a single period counts as an average. `tauloop log subtract` writes such logs, with
        the noise of the forces.

        Args:
            period: period of the motion, s.
            highest: highest frequency of the motion, Hz.
        """
        trim = self.effective_preparation.trim
        trimmed = self.log.dataset().isel({TIME: slice(trim, len(self.log.time) - trim)})
        if round(period / sample_period(trimmed)) == len(trimmed[TIME]):
            stated = channels(trimmed, FORCE_NOISE)
            noise = {
                f"force.{name}": float(trimmed[f"{FORCE_NOISE}.{name}"].mean()) for name in stated
            }
            covariance = np.diag(np.square(list(noise.values())))
            average = PeriodAverage(log=trimmed, periods=1, noise=noise, covariance=covariance)
        else:
            average = average_periods(trimmed, period)
        return replace(self, average=average, highest=highest)

    @property
    @in_json()
    def channels(self) -> list[dict[str, Any]]:
        """Source of the velocity and cutoff of every channel."""
        names = channels(self.log, "position")
        return records(
            channel=names,
            velocity=[self.effective_preparation.source_of(name) for name in names],
            cutoff=[self.effective_preparation.cutoff_of(name) for name in names],
        )

    @property
    @in_json()
    def left_out(self) -> dict[str, int]:
        """Number of samples of each force that are left out; see `left_out_counts`."""
        return left_out_counts(self.log)


def left_out_counts(log: Signals, source: str = "") -> dict[str, int]:
    """Return the number of samples of each force that are left out.

    Args:
        log: prepared log.
        source: if given, only forces whose marks have this source are counted.
    """
    sources = {
        channel.channel: channel.source for channel in log.channels if channel.quantity == LEFT_OUT
    }
    return {
        name: int(samples(log, LEFT_OUT, (name,)).sum())
        for name in left_out(log)
        if source in sources[name]
    }


def of_log(name: str, count: int, problem: Problem) -> Problem:
    """Return the problem, with the log's name if there are several logs."""
    return problem if count == 1 else replace(problem, where=f"{name}: {problem.where}")


@contextmanager
def naming_log(log: MeasuredLog, count: int) -> Iterator[None]:
    """Prefix problems that are raised inside with the log's name, if there are several logs."""
    try:
        yield
    except (InputError, LogError, PoseError, AssemblyError) as error:
        raise type(error)(of_log(log.name, count, problem) for problem in error.problems) from error
