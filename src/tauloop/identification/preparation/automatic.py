"""The preparation of logs that neither a recording nor the user states: chosen by validation on thinned logs.

One option after the other is tried: cut-off, order, standstill, and then the cut-off again. Each
trial fits the first part of the samples before the held-out part and is judged on the rest of them,
by the forces as they were measured. Decimation follows from the cut-off: forces and regressor hold
nothing above it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TypeAlias

import numpy as np

from tauloop.common.errors import IdentificationError, InputError, PoseError
from tauloop.common.plain import PlainData, json_keys
from tauloop.common.records import dataclass
from tauloop.common.shown import Shown
from tauloop.identification.estimation.estimators import Estimator
from tauloop.identification.estimation.evaluation import overall
from tauloop.identification.preparation.measured_log import MeasuredLog
from tauloop.identification.preparation.trials import Trials
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

#: Samples of each log in a trial, at most.
TRIED = 4_000
#: A value is taken where it lessens the validation error of all outputs by this share.
BETTER = 0.01
#: Cut-offs that are tried, as multiples of the one that the noise allows; and again, of the best of
#: them.
COARSE, FINE = (0.0625, 0.125, 0.25, 0.5, 2.0), (0.71, 1.41)
ORDERS = (2, 6)
STANDSTILLS = (1e-3, 3e-3, 1e-2, 3e-2, 0.1)
#: Rows for each sample at the Nyquist frequency of the cut-off that a decimation keeps.
KEPT = 2.0
#: Share of a log before its held-out part that is fitted in a trial; the rest judges.
TRAINING = 0.7
#: Rows from which on a decimation is worth its while.
MANY = 5_000

#: Makes a preparation with another value of one option.
Changed: TypeAlias = Callable[[Preparation, float], Preparation]


def _tried_rows(tried: tuple[tuple[float, float], ...]) -> list[dict[str, float]]:
    return [{"value": value, "validation_percent": error} for value, error in tried]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationChoice(PlainData, Shown):
    """One option that validation chose.

    Attributes:
        option: name of the option.
        value: that was chosen, SI.
        error: validation error with it, % of the largest force, root mean square of the outputs.
        tried: other values with their errors.
    """

    option: str
    value: float
    error: float = field(metadata=json_keys("validation_percent"))
    tried: tuple[tuple[float, float], ...] = field(metadata=json_keys(summary=_tried_rows))

    def __str__(self) -> str:
        others = ", ".join(f"{value:.3g}: {error:.3g} %" for value, error in self.tried)
        return f"{self.option} {self.value:.3g} chosen by validation, error {self.error:.3g} % ({others})"


class _PreparationSearch:
    """Trials of preparations on thinned logs."""

    def __init__(
        self,
        model: Model,
        logs: Sequence[MeasuredLog],
        estimator: Estimator,
        output: str,
        ties: Ties | None,
        share: float,
    ) -> None:
        """Nothing is tried yet."""
        parts = [entry.log.part(slice(None, round(share * len(entry.log.time)))) for entry in logs]
        stride = max(1, -(-max(len(part.time) for part in parts) // TRIED))
        self._trials = Trials(model, parts, estimator, output, ties, stride=stride)
        self.preparations = [entry.how for entry in logs]
        self.error = self.error_of(self.preparations)

    def error_of(self, preparations: Sequence[Preparation]) -> float:
        """Return the validation error of some preparations, infinite where they are not possible."""
        try:
            data = self._trials.parts([replace(how, decimation=1) for how in preparations])
            _, percent = self._trials.judged(*split_each(data, TRAINING), data)
        except (PoseError, InputError, IdentificationError):
            return float("inf")
        return overall(percent)

    def choose(
        self,
        option: str,
        values: Sequence[float],
        change: Callable[[Preparation, float], Preparation],
        unchanged: float,
    ) -> PreparationChoice:
        """Try values of one option, and keep the best where it is better by a share."""
        before, tried = self.error, [(unchanged, self.error)]
        best, chosen = self.preparations, unchanged
        for value in values:
            preparations = [change(how, value) for how in self.preparations]
            error = self.error_of(preparations)
            tried.append((value, error))
            if error * (1.0 + BETTER) <= before and error < self.error:
                self.error, best, chosen = error, preparations, value
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
    """Return the logs with the options of their preparation that validation chose, and the choices.

    Args:
        model: the machine.
        logs: those that are fitted, and then one to judge by; with a cut-off of every channel.
        free: names of the options that may be chosen: cutoff, order, standstill, decimation.
        fitted: how many are fitted.
        estimator, output, ties: of the identification.
        share: of each log before its held-out part.
    """
    search = _PreparationSearch(model, logs[:fitted], estimator, output, ties, share)
    if not np.isfinite(search.error):
        return list(logs), ()
    choices: list[PreparationChoice] = []
    first = search.preparations[0]
    highest = HIGHEST_CUTOFF / max(sample_period(entry.log) for entry in logs[:fitted])

    def scaled(how: Preparation, cutoff: float) -> Preparation:
        """The preparation with one cut-off of all channels."""
        return replace(how, cutoff=cutoff, cutoffs={})

    def resting(how: Preparation, standstill: float) -> Preparation:
        """The preparation with another speed of rest."""
        return replace(how, standstill=standstill)

    least = max(_least_cutoff(entry) for entry in logs[:fitted])
    if "cutoff" in free:
        lowest = min(first.cutoffs.values(), default=highest)
        values = [factor * lowest for factor in COARSE if least <= factor * lowest < highest]
        choices.append(search.choose("cutoff", values, scaled, lowest))
    if "order" in free:
        choices.append(
            search.choose(
                "order", ORDERS, lambda how, order: replace(how, order=round(order)), first.order
            )
        )
    if "standstill" in free:
        choices.append(search.choose("standstill", STANDSTILLS, resting, first.standstill))
    if "cutoff" in free and search.preparations[0].cutoff is not None:
        middle = search.preparations[0].cutoff
        values = [factor * middle for factor in FINE if least <= factor * middle < highest]
        choices[0] = _joined(choices[0], search.choose("cutoff", values, scaled, middle))
    chosen = {
        name: getattr(search.preparations[0], name)
        for name in ("cutoff", "cutoffs", "order", "standstill")
    }
    prepared = [replace(entry, preparation=replace(entry.how, **chosen)) for entry in logs]
    if "decimation" in free:
        prepared = [replace(entry, preparation=_decimated(entry)) for entry in prepared]
    return prepared, tuple(choices)


def _least_cutoff(entry: MeasuredLog) -> float:
    """Return the lowest cut-off, Hz, that takes no more of the accelerations of a log than is allowed."""
    rate = 1.0 / sample_period(entry.log)
    tops = [
        top_of_motion(channel.values, rate=rate, order=entry.how.order)
        for channel in entry.log.channels
        if channel.quantity == "position"
        and len(channel.values) >= MIN_SPECTRUM_SAMPLES
        and np.ptp(channel.values) > 0.0
    ]
    tried = max(tops, default=0.0) * np.geomspace(0.25, 8.0, 41)
    losing = [
        cutoff
        for cutoff in tried
        if cutoff < HIGHEST_CUTOFF * rate
        and amplitude_loss(max(tops), rate=rate, cutoff=cutoff, order=min(ORDERS))
        > MAX_AMPLITUDE_LOSS
    ]
    return max(losing, default=0.0)


def _joined(first: PreparationChoice, second: PreparationChoice) -> PreparationChoice:
    """Return one choice of two rounds of the same option."""
    tried: dict[float, float] = dict((*first.tried, (first.value, first.error), *second.tried))
    tried.pop(second.value, None)
    return replace(second, tried=tuple(sorted(tried.items())))


def _decimated(entry: MeasuredLog) -> Preparation:
    """Return the preparation with the decimation that its cut-off allows, where there are many samples."""
    cutoff = common_cutoff(entry.log, entry.how)
    if cutoff is None or len(entry.log.time) < MANY:
        return entry.how
    factor = min(int(0.5 / (KEPT * cutoff)), len(entry.log.time) // MANY * 2)
    return replace(entry.how, decimation=max(1, factor))
