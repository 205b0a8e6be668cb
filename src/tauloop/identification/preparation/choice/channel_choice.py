"""Choice of the cutoff and the source of velocity of each channel by validation.

The held-out data are not used for the choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from tauloop.common.errors import PoseError
from tauloop.common.plain import OMITTED, in_json, records
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.identification.estimation.estimators import Estimator, WeightedLeastSquares
from tauloop.identification.estimation.evaluation import overall
from tauloop.identification.preparation.choice.trials import Trials
from tauloop.identification.regression.streaming import split_each
from tauloop.identification.regression.ties import Ties
from tauloop.logs import MeasuredVelocity, Preparation, measured_velocities
from tauloop.logs.log import Log, as_signals
from tauloop.logs.velocities import SOURCES
from tauloop.model import Model

#: A change is accepted if it reduces the validation error of all outputs by this fraction.
MIN_ERROR_REDUCTION = 0.01
#: An accepted change increases the error of no single output by more than this fraction.
MAX_OUTPUT_ERROR_GROWTH = 0.03
#: Maximum number of sweeps over all channels.
MAX_SWEEPS = 2
#: Maximum number of samples of a log that the choice uses, from its beginning.
MAX_SAMPLES = 40_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChannelChoice(ReprMixin):
    """The chosen preparation of the channels, with the validation errors that led to the choice.

    Attributes:
        preparations: the preparation of each log. Its `cutoffs` and `velocities` contain every
            channel whose preparation differs from that of other channels.
        common: validation error, %, of each preparation that is the same for all channels, by its
            label, such as ``velocity measured``.
        before: (n_out,) validation errors with the given preparations, % of each output's largest
            force.
        after: (n_out,) validation errors with the chosen preparations.
        outputs: names of the outputs.
        moved: changes of a single channel: channel, new value, and the errors (%) of all outputs
            before and after the change.
    """

    preparations: tuple[Preparation, ...] = field(metadata=OMITTED)
    common: Mapping[str, float] = field(metadata=OMITTED)
    before: np.ndarray = field(metadata=OMITTED)
    after: np.ndarray = field(metadata=OMITTED)
    outputs: tuple[str, ...] = field(metadata=OMITTED)
    moved: tuple[tuple[str, str, float, float], ...] = field(metadata=OMITTED)

    @property
    def errors(self) -> tuple[float, float]:
        """Root mean square of the outputs' percentages, before and after the choice."""
        return overall(self.before), overall(self.after)

    @property
    @in_json()
    def validation_percent(self) -> dict[str, float]:
        """Validation errors, %, of the common preparations and of the chosen preparation."""
        return {**self.common, "chosen": self.errors[1]}

    @property
    @in_json("outputs")
    def output_rows(self) -> list[dict[str, Any]]:
        """Validation errors of every output, %."""
        return records(name=self.outputs, as_given=self.before, chosen=self.after)

    @property
    @in_json("moved")
    def moved_rows(self) -> list[dict[str, Any]]:
        """Channels that are prepared differently from the others, with errors before and after."""
        names = ("channel", "to", "error_before", "error_after")
        return [dict(zip(names, row, strict=True)) for row in self.moved]


def usable_velocities(model: Model, logs: Sequence[Log]) -> dict[str, MeasuredVelocity]:
    """Return the measured velocities of the given actuators that can be used in all logs.

    All logs must contain the velocity in the correct unit, and it must be the position's
    derivative.
    """
    velocities: dict[str, MeasuredVelocity] = {}
    log_velocities = [measured_velocities(log) for log in logs]
    port = model.actuators.ports.position
    for name, unit in zip(port.columns, port.units, strict=True):
        units = {
            channel.unit
            for log in logs
            for channel in as_signals(log).channels
            if channel.name == f"velocity.{name}"
        }
        if units == {f"{unit}/s"} and all(
            name in measured and measured[name].problem() is None for measured in log_velocities
        ):
            velocities[name] = log_velocities[0][name]
    return velocities


def choose_channels(
    model: Model,
    logs: Sequence[Log],
    preparations: Sequence[Preparation],
    *,
    velocities: Sequence[str] = (),
    cutoffs: Sequence[float] = (),
    estimator: Estimator | None = None,
    output: str = "actuators",
    ties: Ties | None = None,
    shares: tuple[float, float] = (0.7, 0.7),
) -> ChannelChoice:
    """Choose the source of velocity and the cutoff, first for all channels, then for each channel.

    A change of one channel is accepted if it reduces the root mean square of all outputs'
    validation errors by `MIN_ERROR_REDUCTION` and increases the error of no output by more than
    `MAX_OUTPUT_ERROR_GROWTH`. If each output depends only on its own channel, the choices for the
    channels are independent. If loops couple the outputs, the second condition prevents one output
    from becoming much worse while another improves. Forces are the same in all trials.

    Args:
        model, logs, preparations, output, ties: as for `regression_data`, with one preparation for
            each log.
        velocities: channels whose measured velocity is tried (see `usable_velocities`). A source
            that a preparation gives for a channel is not changed.
        cutoffs: cutoffs to try for single channels, Hz; empty to try none.
        estimator: estimator of the parameters; weighted least squares if None.
        shares: fraction of each log before its held-out part, and fraction of this part before its
            validation part.

    Returns:
        The preparation of each channel, and the validation errors before and after the choice.

    Raises:
        IdentificationError: the data cannot support the identification.
        InputError: a filter is not possible for this log.
    """
    before_held_out = []
    for log in map(as_signals, logs):
        count = min(round(shares[0] * len(log.time)), MAX_SAMPLES)
        before_held_out.append(log.part(slice(None, count)))
    trials = Trials(model, before_held_out, estimator or WeightedLeastSquares(), output, ties)
    search = _ChannelSearch(trials, shares[1], tuple(preparations))
    before = search.best
    free = [name for name in velocities if not _is_source_stated(name, preparations)]
    common = {"as given": overall(before)}
    for source in SOURCES[1:] if free else ():
        common[f"velocity {source}"] = search.try_source(source, free)
    channels = model.actuators.ports.position.columns
    sources = free if len(channels) > 1 else ()
    for _ in range(MAX_SWEEPS if len(channels) > 1 else 1):
        count = len(search.moved)
        for name in channels:
            search.try_channel(name, SOURCES if name in sources else (), cutoffs)
        if len(search.moved) == count:
            break
    return ChannelChoice(
        preparations=search.chosen,
        common=common,
        before=before,
        after=search.best,
        outputs=tuple(search.outputs),
        moved=tuple(search.moved),
    )


class _ChannelSearch:
    """The preparations that were chosen so far, and trials of others.

    Attributes:
        chosen: the best preparations so far.
        best: their validation errors (n_out,), % of each output's largest force.
        outputs: names of the outputs.
        moved: accepted changes of single channels: name, new value, error before and after.
    """

    def __init__(self, trials: Trials, share: float, preparations: tuple[Preparation, ...]) -> None:
        """Start with preparations.

        Args:
            trials: trials of the logs before their held-out parts.
            share: fraction of each log that is fitted; the remaining samples are its validation
                part.
            preparations: preparation of each log.
        """
        self._trials = trials
        self._share = share
        self.outputs: list[str] = []
        self.moved: list[tuple[str, str, float, float]] = []
        self.chosen = preparations
        self.best = self._errors(preparations)

    def _errors(self, tried: Sequence[Preparation]) -> np.ndarray:
        """Return the RMSE (n_out,) on the validation part, % of each output's largest force.

        The error is infinite for preparations with which a pose cannot be computed.
        """
        try:
            data = self._trials.data(tried)
        except PoseError:
            if not self.outputs:
                raise
            return np.full(len(self.outputs), np.inf)
        training, validation = split_each(data, self._share)
        result, errors = self._trials.fit_and_evaluate(training, validation, data)
        self.outputs[:] = [row.output for row in result.held_out]
        return errors

    def try_source(self, source: str, free: Sequence[str]) -> float:
        """Return the error of a source for all free channels; choose it if the error falls."""
        trial = tuple(
            replace(p, velocities={**p.velocities, **dict.fromkeys(free, source)})
            for p in self.chosen
        )
        errors = self._errors(trial)
        if overall(errors) * (1.0 + MIN_ERROR_REDUCTION) <= overall(self.best):
            self.chosen = _with_stated_sources(trial, free)
            self.best = errors
        return overall(errors)

    def try_channel(self, name: str, sources: Sequence[str], cutoffs: Sequence[float]) -> None:
        """Try sources and cutoffs for one channel; choose those that reduce the error."""
        options: list[tuple[str, str | float]] = [("velocities", source) for source in sources]
        options += [("cutoffs", cutoff) for cutoff in cutoffs]
        for name_of_field, value in options:
            if all(_current(p, name_of_field, name) == value for p in self.chosen):
                continue
            trial = tuple(_with_entry(p, name_of_field, name, value) for p in self.chosen)
            errors = self._errors(trial)
            is_better = overall(errors) * (1.0 + MIN_ERROR_REDUCTION) <= overall(self.best)
            if is_better and (errors <= self.best * (1.0 + MAX_OUTPUT_ERROR_GROWTH)).all():
                label = f"{value:g} Hz" if isinstance(value, float) else f"velocity {value}"
                self.moved.append((name, label, overall(self.best), overall(errors)))
                self.chosen = trial
                self.best = errors


def _is_source_stated(name: str, preparations: Sequence[Preparation]) -> bool:
    """Return whether some preparation states the source of velocity of a channel."""
    return any(p.velocity is not None or name in p.velocities for p in preparations)


def _with_stated_sources(
    preparations: Sequence[Preparation], names: Sequence[str]
) -> tuple[Preparation, ...]:
    """Return preparations that state the source of velocity of each of the channels."""
    stated = []
    for preparation in preparations:
        channels = (*preparation.velocities, *names)
        sources = {name: preparation.source_of(name) for name in channels}
        stated.append(replace(preparation, velocities=sources))
    return tuple(stated)


def _with_entry(preparation: Preparation, field: str, name: str, value: str | float) -> Preparation:
    """Return a preparation with another value of one channel, in `velocities` or `cutoffs`."""
    changed: dict[str, Any] = {field: {**getattr(preparation, field), name: value}}
    return replace(preparation, **changed)


def _current(preparation: Preparation, field: str, name: str) -> object:
    """Return the current value of a channel in `velocities` or `cutoffs`."""
    return preparation.source_of(name) if field == "velocities" else preparation.cutoff_of(name)
