"""Options of the preparation, chosen by validation on subsampled logs.

An option is chosen here if neither the recording nor the user specifies it. The options are tried
one after the other: cutoff, order, standstill, and then the cutoff again. The samples before the
held-out part are divided in two. Each trial fits the first part and is validated on the second,
with the forces as measured. The decimation follows from the cutoff, because forces and regressor
contain no frequencies above it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TypeAlias

import numpy as np

from tauloop.common.errors import IdentificationError, InputError, PoseError
from tauloop.common.plain import PlainData, json_keys
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.identification.estimation.estimators import Estimator
from tauloop.identification.estimation.evaluation import overall
from tauloop.identification.preparation.choice.trials import Trials
from tauloop.identification.preparation.measured_log import MeasuredLog
from tauloop.identification.regression.streaming import split_each
from tauloop.identification.regression.ties import Ties
from tauloop.logs import Preparation, common_cutoff, sample_period
from tauloop.logs.rates import (
    MAX_AMPLITUDE_LOSS,
    MIN_SPECTRUM_SAMPLES,
    amplitude_loss,
    top_of_motion,
)
from tauloop.logs.signals import HIGHEST_CUTOFF
from tauloop.model import Model

#: Options of a preparation that validation may choose, in addition to the decimation.
CHOSEN_OPTIONS = ("cutoff", "cutoffs", "order", "standstill")
#: Maximum number of samples of each log in a trial.
MAX_TRIAL_SAMPLES = 4_000
#: A value is chosen if it reduces the validation error of all outputs by at least this fraction.
MIN_ERROR_REDUCTION = 0.01
#: Cutoffs of the first round, as multiples of the cutoff that the noise allows.
COARSE_CUTOFF_FACTORS = (0.0625, 0.125, 0.25, 0.5, 2.0)
#: Cutoffs of the second round, as multiples of the best cutoff of the first round.
FINE_CUTOFF_FACTORS = (0.71, 1.41)
#: Orders of the filter that are tried.
TRIED_ORDERS = (2, 6)
#: Standstills that are tried, as fractions of a channel's largest speed.
TRIED_STANDSTILLS = (1e-3, 3e-3, 1e-2, 3e-2, 0.1)
#: Sampling rate after the decimation, as a multiple of the Nyquist rate of the cutoff.
OVERSAMPLING = 2.0
#: Fraction of the samples before the held-out part that a trial fits; the others validate the fit.
TRAINING_SHARE = 0.7
#: Minimum number of rows at which decimation saves a significant amount of time.
MIN_ROWS_TO_DECIMATE = 5_000

#: A function that returns a preparation with another value of one option.
ChangeOption: TypeAlias = Callable[[Preparation, float], Preparation]


def _tried_rows(tried: tuple[tuple[float, float], ...]) -> list[dict[str, float]]:
    return [{"value": value, "validation_percent": error} for value, error in tried]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationChoice(PlainData, ReprMixin):
    """One option that was chosen by validation.

    Attributes:
        option: name of the option.
        value: the chosen value, SI.
        error: validation error with this value, % of the largest force; root mean square over the
            outputs.
        tried: other values that were tried, with their errors.
    """

    option: str
    value: float
    error: float = field(metadata=json_keys("validation_percent"))
    tried: tuple[tuple[float, float], ...] = field(metadata=json_keys(summary=_tried_rows))

    def __str__(self) -> str:
        others = ", ".join(f"{value:.3g}: {error:.3g} %" for value, error in self.tried)
        return f"{self.option} {self.value:.3g} chosen by validation, error {self.error:.3g} % ({others})"


class _PreparationSearch:
    """A search over preparations, with trials on subsampled logs."""

    def __init__(
        self,
        model: Model,
        logs: Sequence[MeasuredLog],
        estimator: Estimator,
        output: str,
        ties: Ties | None,
        share: float,
    ) -> None:
        """Start with the preparations that the logs have."""
        before_held_out = []
        for entry in logs:
            count = round(share * len(entry.log.time))
            before_held_out.append(entry.log.part(slice(None, count)))
        longest = max(len(log.time) for log in before_held_out)
        stride = max(1, math.ceil(longest / MAX_TRIAL_SAMPLES))
        self._trials = Trials(model, before_held_out, estimator, output, ties, stride=stride)
        self.preparations = [entry.effective_preparation for entry in logs]
        self.error = self.error_of(self.preparations)

    def error_of(self, preparations: Sequence[Preparation]) -> float:
        """Return the validation error of preparations; infinite if they are not possible."""
        try:
            data = self._trials.data([replace(how, decimation=1) for how in preparations])
            training, validation = split_each(data, TRAINING_SHARE)
            _, percent = self._trials.fit_and_evaluate(training, validation, data)
        except (PoseError, InputError, IdentificationError):
            return float("inf")
        return overall(percent)

    def choose(
        self,
        option: str,
        values: Sequence[float],
        change: ChangeOption,
        unchanged: float,
    ) -> PreparationChoice:
        """Try values of one option, and choose the best if it reduces the error enough."""
        before = self.error
        tried = [(unchanged, self.error)]
        best = self.preparations
        chosen = unchanged
        for value in values:
            preparations = [change(how, value) for how in self.preparations]
            error = self.error_of(preparations)
            tried.append((value, error))
            if error * (1.0 + MIN_ERROR_REDUCTION) <= before and error < self.error:
                self.error = error
                best = preparations
                chosen = value
        self.preparations = list(best)
        others = tuple(
            (value, error) for value, error in tried if value != chosen and np.isfinite(error)
        )
        return PreparationChoice(option=option, value=chosen, error=self.error, tried=others)


def choose_preparation(
    model: Model,
    logs: Sequence[MeasuredLog],
    *,
    free: Sequence[str],
    fitted: int,
    estimator: Estimator,
    output: str,
    ties: Ties | None,
    share: float,
) -> tuple[list[MeasuredLog], tuple[PreparationChoice, ...]]:
    """Return the logs with the options of their preparation chosen by validation, and the choices.

    Args:
        model: the machine.
        logs: the fitted logs, followed by the validation log if there is one. The preparation of
            each log has a cutoff for every channel.
        free: names of the options that may be chosen: cutoff, order, standstill, decimation.
        fitted: number of fitted logs.
        estimator, output, ties: options of the identification.
        share: fraction of each log before its held-out part.
    """
    search = _PreparationSearch(model, logs[:fitted], estimator, output, ties, share)
    if not np.isfinite(search.error):
        return list(logs), ()
    choices: list[PreparationChoice] = []
    first = search.preparations[0]
    if "cutoff" in free:
        highest = HIGHEST_CUTOFF / max(sample_period(entry.log) for entry in logs[:fitted])
        lowest = min(first.cutoffs.values(), default=highest)
        values = possible_cutoffs(logs[:fitted], lowest, COARSE_CUTOFF_FACTORS)
        choices.append(search.choose("cutoff", values, _change_cutoff, lowest))
    if "order" in free:
        choices.append(search.choose("order", TRIED_ORDERS, _change_order, first.order))
    if "standstill" in free:
        choices.append(
            search.choose("standstill", TRIED_STANDSTILLS, _change_standstill, first.standstill)
        )
    if "cutoff" in free and search.preparations[0].cutoff is not None:
        middle = search.preparations[0].cutoff
        values = possible_cutoffs(logs[:fitted], middle, FINE_CUTOFF_FACTORS)
        second_round = search.choose("cutoff", values, _change_cutoff, middle)
        choices[0] = _join_rounds(choices[0], second_round)
    chosen = {name: getattr(search.preparations[0], name) for name in CHOSEN_OPTIONS}
    prepared = [
        replace(entry, preparation=replace(entry.effective_preparation, **chosen)) for entry in logs
    ]
    if "decimation" in free:
        prepared = [replace(entry, preparation=_decimated(entry)) for entry in prepared]
    return prepared, tuple(choices)


def possible_cutoffs(
    logs: Sequence[MeasuredLog], center: float, factors: Sequence[float]
) -> list[float]:
    """Return the multiples of a cutoff, Hz, that are allowed for all logs.

    Multiples above one are allowed even if the cutoff `center` itself removes motion.
    """
    highest = HIGHEST_CUTOFF / max(sample_period(entry.log) for entry in logs)
    lowest = min(center, max(_least_cutoff(entry) for entry in logs))
    return [factor * center for factor in factors if lowest <= factor * center < highest]


def _change_cutoff(preparation: Preparation, cutoff: float) -> Preparation:
    """Return the preparation with the same cutoff, Hz, for all channels."""
    return replace(preparation, cutoff=cutoff, cutoffs={})


def _change_order(preparation: Preparation, order: float) -> Preparation:
    """Return the preparation with another order of the filter."""
    return replace(preparation, order=round(order))


def _change_standstill(preparation: Preparation, standstill: float) -> Preparation:
    """Return the preparation with another speed below which a channel is at rest."""
    return replace(preparation, standstill=standstill)


def _least_cutoff(entry: MeasuredLog) -> float:
    """Return the lowest cutoff, Hz, whose loss of acceleration amplitude is still allowed."""
    rate = 1.0 / sample_period(entry.log)
    tops = [
        top_of_motion(channel.values, rate=rate, order=entry.effective_preparation.order)
        for channel in entry.log.channels
        if channel.quantity == "position"
        and len(channel.values) >= MIN_SPECTRUM_SAMPLES
        and np.ptp(channel.values) > 0.0
    ]
    too_low = [0.0]
    for cutoff in max(tops, default=0.0) * np.geomspace(0.25, 8.0, 41):
        if cutoff >= HIGHEST_CUTOFF * rate:
            continue
        loss = amplitude_loss(max(tops), rate=rate, cutoff=cutoff, order=min(TRIED_ORDERS))
        if loss > MAX_AMPLITUDE_LOSS:
            too_low.append(float(cutoff))
    return max(too_low)


def _join_rounds(first: PreparationChoice, second: PreparationChoice) -> PreparationChoice:
    """Return two rounds over the same option, joined into one choice."""
    tried: dict[float, float] = dict((*first.tried, (first.value, first.error), *second.tried))
    tried.pop(second.value, None)
    return replace(second, tried=tuple(sorted(tried.items())))


def _decimated(entry: MeasuredLog) -> Preparation:
    """Return the preparation with the decimation that its cutoff allows, for long logs."""
    cutoff = common_cutoff(entry.log, entry.effective_preparation)
    count = len(entry.log.time)
    if cutoff is None or count < MIN_ROWS_TO_DECIMATE:
        return entry.effective_preparation
    factor = min(int(0.5 / (OVERSAMPLING * cutoff)), count // MIN_ROWS_TO_DECIMATE * 2)
    return replace(entry.effective_preparation, decimation=max(1, factor))
