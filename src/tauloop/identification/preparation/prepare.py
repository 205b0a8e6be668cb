"""Preparation of the logs of an identification: known forces, filters, channels, periods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from tauloop.common.errors import Problem
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.equations.assembly.limits import require_within_limits
from tauloop.identification.chosen import chosen_errors, chosen_estimator
from tauloop.identification.estimation.error_models import ErrorModel
from tauloop.identification.options import IdentificationOptions
from tauloop.identification.preparation.channels import (
    Channels,
    chosen_channels,
    fourier_channels,
    less_known_forces,
    mended_samples,
    without_saturation,
)
from tauloop.identification.preparation.choice.automatic import (
    CHOSEN_OPTIONS,
    PreparationChoice,
    choose_preparation,
    possible_cutoffs,
)
from tauloop.identification.preparation.choice.channel_choice import usable_velocities
from tauloop.identification.preparation.choice.filter_scan import (
    SCANNED_OPTIONS,
    FilterScan,
    scan_filters,
)
from tauloop.identification.preparation.measured_log import MeasuredLog, naming_log
from tauloop.identification.preparation.motion_limits import motion_limits
from tauloop.identification.preparation.redundant_encoders import with_all_encoders
from tauloop.identification.regression.from_log import require_channels
from tauloop.identification.regression.ties import Ties
from tauloop.logs import channels as channels_of, sample_period, with_cutoffs
from tauloop.logs.log import as_signals, units_of
from tauloop.logs.rates import (
    MAX_AMPLITUDE_LOSS,
    MIN_SPECTRUM_SAMPLES,
    amplitude_loss,
    top_of_motion,
)
from tauloop.model import Model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedLogs:
    """Logs with their preparations, and the diagnostics of the preparation.

    Attributes:
        logs: the fitted logs, followed by the validation log if there is one.
        names: names of the logs.
        fitted: number of fitted logs.
        errors: model of the errors that standard deviations assume.
        scan: scan of filters, if the options ask for one.
        channels: the preparation of each channel.
        known_forces: notes on the known forces that were subtracted.
        beyond: diagnostics of the motion: coordinates beyond their limits, angles that look like
            degrees, loss of acceleration amplitude by the low-pass, differences between the motions
            of two runs, and disagreement of redundant encoders.
        bad_samples: problems of spikes and frozen stretches, whose samples are left out.
        periods: number of periods of every log, and the noise of its channels.
        is_chosen: whether validation chose a cutoff; it may then choose friction laws as well.
        unchosen: options of the preparation before validation chose others, by name.
    """

    logs: tuple[MeasuredLog, ...]
    names: tuple[str, ...]
    fitted: int
    errors: ErrorModel
    scan: FilterScan | None
    channels: Channels
    known_forces: tuple[str, ...]
    beyond: tuple[Diagnostic, ...]
    bad_samples: tuple[Problem, ...]
    periods: tuple[dict[str, Any], ...]
    is_chosen: bool = False
    unchosen: Mapping[str, Any] = field(default_factory=dict)

    def part(self, share: float, longest: int) -> PreparedLogs:
        """Return the beginnings of the fitted logs.

        Args:
            share: fraction of each log before its held-out part.
            longest: maximum number of samples of a log.
        """
        logs = []
        for entry in self.logs[: self.fitted]:
            count = min(round(share * len(entry.log.time)), longest)
            logs.append(replace(entry, log=entry.log.part(slice(None, count))))
        names = tuple(entry.name for entry in logs)
        return replace(
            self, logs=tuple(logs), names=names, fitted=len(logs), beyond=(), is_chosen=False
        )

    def changed(self, **changes: Any) -> PreparedLogs:
        """Return the logs with other options in the preparation of every log."""
        logs = tuple(
            replace(entry, preparation=replace(entry.effective_preparation, **changes))
            for entry in self.logs
        )
        return replace(self, logs=logs)

    def is_same(self, changes: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
        """Return whether two sets of options lead to the same preparation of every log."""
        return all(
            replace(log.effective_preparation, **changes)
            == replace(log.effective_preparation, **others)
            for log in self.logs
        )

    def is_prepared_as(self, other: PreparedLogs) -> bool:
        """Return whether other logs are the same logs with the same preparations."""
        pairs = zip(self.logs, other.logs, strict=True)
        return all(
            entry.log is other_entry.log and _is_same_preparation(entry, other_entry)
            for entry, other_entry in pairs
        )

    def possible_cutoffs(self, changes: Mapping[str, Any], factors: Sequence[float]) -> list[float]:
        """Return multiples of the lowest cutoff, Hz, that keep the motion of all logs.

        Args:
            changes: options of the preparation that replace those of the logs, by name.
            factors: the multiples.
        """
        logs = self.changed(**changes).logs
        cutoffs = [
            entry.effective_preparation.cutoff_of(name)
            for entry in logs
            for name in channels_of(entry.log, "position")
        ]
        lowest = min((cutoff for cutoff in cutoffs if cutoff is not None), default=None)
        if lowest is None:
            return []
        return possible_cutoffs(logs, lowest, factors)

    def with_earlier_forces(self, delays: Mapping[str, float]) -> PreparedLogs:
        """Return the logs without known delays of forces.

        Args:
            delays: delays, s, by the name of the force.
        """
        logs = []
        for entry in self.logs:
            time = entry.log.time
            corrected = tuple(
                replace(
                    channel,
                    values=np.interp(time + delays[channel.channel], time, channel.values),
                )
                if channel.quantity == "force" and channel.channel in delays
                else channel
                for channel in entry.log.channels
            )
            logs.append(replace(entry, log=replace(entry.log, channels=corrected)))
        return replace(self, logs=tuple(logs))


def _is_same_preparation(entry: MeasuredLog, other: MeasuredLog) -> bool:
    """Return whether two preparations treat the positions of a log in the same way."""
    names = channels_of(entry.log, "position")
    shared: dict[str, Any] = {"cutoff": None, "cutoffs": {}, "velocity": None, "velocities": {}}
    is_same = all(
        entry.effective_preparation.cutoff_of(name) == other.effective_preparation.cutoff_of(name)
        and entry.effective_preparation.source_of(name)
        == other.effective_preparation.source_of(name)
        for name in names
    )
    return is_same and replace(entry.effective_preparation, **shared) == replace(
        other.effective_preparation, **shared
    )


def prepare_logs(
    model: Model,
    logs: Sequence[MeasuredLog],
    options: IdentificationOptions,
    ties: Ties | None,
    fitted: int,
    *,
    may_choose: bool = True,
) -> PreparedLogs:
    """Return the logs with their preparations.

    Args:
        model: the machine.
        logs: the fitted logs, followed by the validation log if there is one.
        options: options of the identification.
        ties: relations between the parameters.
        fitted: number of fitted logs.
        may_choose: whether validation may choose options. Use False if logs are processed one by
            one, because all logs must be prepared in the same way.

    Raises:
        PoseError: a motion goes beyond limits, and the options reject this.
        InputError, IdentificationError: the filters cannot be scanned, or the periods cannot be
            averaged.
    """
    for entry in logs:
        with naming_log(entry, len(logs)):
            require_channels(model, entry.log, options.output)
    how = options.preparation
    periodic = how.period is not None and how.max_frequency is not None
    logs, bad_samples = mended_samples(logs, fitted, marks=not periodic)
    logs = logs if periodic else without_saturation(model, logs)
    logs, known_forces = less_known_forces(logs)
    logs, encoder_diagnostics = with_all_encoders(model, logs)
    beyond = _beyond_limits(model, logs)
    if options.within_limits:
        require_within_limits(beyond)
    if not how.scan_cutoffs and not periodic:
        logs = _with_cutoffs(logs)
    choices: tuple[PreparationChoice, ...] = ()
    free: tuple[str, ...] = ()
    unchosen: dict[str, Any] = {}
    if may_choose and not (periodic or how.scan_cutoffs or logs[0].is_prepared):
        free = _unstated(options)
    if free:
        unchosen = {name: getattr(logs[0].effective_preparation, name) for name in CHOSEN_OPTIONS}
        logs, choices = choose_preparation(
            model,
            logs,
            free=free,
            fitted=fitted,
            estimator=chosen_estimator(options),
            output=options.output,
            ties=ties,
            share=options.share,
        )
    errors = chosen_errors(options, logs if not periodic else ())
    scan = None
    if how.scan_cutoffs:
        logs, scan = _scanned(model, logs, options, ties, fitted, errors)
        errors = chosen_errors(options, logs)
    if how.period is not None and how.max_frequency is not None:
        channels = fourier_channels(logs)
        logs = [entry.averaged(how.period, how.max_frequency) for entry in logs]
    else:
        logs, channels = chosen_channels(model, logs, fitted, options, ties)
        beyond += tuple(item for log in logs for item in _amplitude_losses(log, len(logs)))
        notes = (*map(str, choices), *channels.notes)
        channels = replace(channels, notes=notes, chosen=choices)
    beyond += encoder_diagnostics
    for entry in logs:
        beyond += entry.runs.diagnostics if entry.runs is not None else ()
    return PreparedLogs(
        logs=tuple(logs),
        names=tuple(entry.name for entry in logs),
        is_chosen="cutoff" in free,
        unchosen=unchosen,
        fitted=fitted,
        errors=errors,
        scan=scan,
        channels=channels,
        known_forces=known_forces,
        bad_samples=bad_samples,
        beyond=beyond,
        periods=tuple(_period_records(logs)),
    )


def _beyond_limits(model: Model, logs: Sequence[MeasuredLog]) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of motions beyond limits, with the name of the log if several."""
    return tuple(
        replace(item, name=item.name if len(logs) == 1 else f"{log.name}: {item.name}")
        for log in logs
        for item in motion_limits(model, log.log)
    )


def _scanned(
    model: Model,
    logs: Sequence[MeasuredLog],
    options: IdentificationOptions,
    ties: Ties | None,
    fitted: int,
    errors: ErrorModel,
) -> tuple[list[MeasuredLog], FilterScan]:
    """Return the logs with the best filters of a scan over the fitted logs, and the scan."""
    how = options.preparation
    scan = scan_filters(
        model,
        [entry.log for entry in logs[:fitted]],
        [entry.effective_preparation for entry in logs[:fitted]],
        orders=how.scan_orders,
        cutoffs=how.scan_cutoffs,
        standstills=how.scan_standstills,
        estimator=chosen_estimator(options),
        output=options.output,
        ties=ties,
        shares=(1.0 - (options.hold_out or 0.3), 0.7),
        errors=errors,
    )
    best = {name: getattr(scan.trials[scan.chosen], name) for name in SCANNED_OPTIONS}
    return [
        replace(entry, preparation=replace(entry.effective_preparation, **best)) for entry in logs
    ], scan


def _period_records(logs: Sequence[MeasuredLog]) -> Iterator[dict[str, Any]]:
    """Yield the number of periods and the noise of the channels of each averaged log."""
    for entry in logs:
        if entry.average is not None:
            names = entry.average.noise
            yield {
                "log": entry.name,
                "periods": entry.average.periods,
                "noise": entry.average.noise,
                "units": {name: units_of(entry.average.log[name]) for name in names},
            }


def prepared_again(
    model: Model,
    prepared: PreparedLogs,
    options: IdentificationOptions,
    ties: Ties | None,
    changes: Mapping[str, Any],
) -> PreparedLogs:
    """Return logs prepared with other options, which replace earlier choices by validation."""
    if not changes:
        return prepared
    choices = tuple(choice for choice in prepared.channels.chosen if choice.option not in changes)
    changed = prepared.changed(**changes)
    logs, channels = chosen_channels(model, changed.logs, prepared.fitted, options, ties)
    channels = replace(channels, notes=(*map(str, choices), *channels.notes), chosen=choices)
    return replace(changed, logs=tuple(logs), channels=channels)


def usable_names(
    model: Model, prepared: PreparedLogs, options: IdentificationOptions
) -> tuple[str, ...]:
    """Return the channels whose measured velocity may be used; none if a source is given."""
    if options.preparation.velocity_source is not None:
        return ()
    return tuple(usable_velocities(model, [entry.log for entry in prepared.logs]))


def _amplitude_losses(log: MeasuredLog, count: int) -> Iterator[Diagnostic]:
    """Yield the diagnostic of a log's largest loss of acceleration amplitude by the low-pass.

    The loss of each channel is evaluated at the highest frequency of its motion.
    """
    raw = as_signals(log.log)
    how = log.effective_preparation
    rate = 1.0 / sample_period(raw)
    losses = {}
    for channel in raw.channels:
        cutoff = how.cutoff_of(channel.channel)
        if channel.quantity != "position" or cutoff is None or len(raw.time) < MIN_SPECTRUM_SAMPLES:
            continue
        if np.ptp(channel.values) > 0.0:
            top = top_of_motion(channel.values, rate=rate, order=how.order)
            losses[channel.channel, top] = amplitude_loss(
                top, rate=rate, cutoff=cutoff, order=how.order
            )
    if losses:
        (name, top), loss = max(losses.items(), key=lambda item: item[1])
        place = "" if count == 1 else f"{log.name}: "
        yield diagnostic(
            f"{place}fraction of the acceleration that the low-pass removes at the highest frequency "
            f"of the motion ({name}, {top:.3g} Hz)",
            loss,
            at_most=MAX_AMPLITUDE_LOSS,
            advice="estimated inertias are too large: raise the cutoff, or omit it, so that the "
            "noise determines it",
        )


def _unstated(options: IdentificationOptions) -> tuple[str, ...]:
    """Return the options of the preparation that the user has not given and validation may choose.

    If the user specifies a cutoff, no option is chosen.
    """
    stated = options.preparation.stated
    if "cutoff" in stated:
        return ()
    return tuple(
        name for name in ("cutoff", "order", "standstill", "decimation") if name not in stated
    )


def _with_cutoffs(logs: Sequence[MeasuredLog]) -> list[MeasuredLog]:
    """Return the logs with a cutoff for every channel.

    A channel without a given cutoff gets the lowest of the cutoffs that the noise of the logs
    permits.
    """
    prepared = []
    for entry in logs:
        with naming_log(entry, len(logs)):
            prepared.append(with_cutoffs(entry.log, entry.effective_preparation))
    lowest: dict[str, float] = {}
    for entry, preparation in zip(logs, prepared, strict=True):
        for name, cutoff in preparation.cutoffs.items():
            if entry.effective_preparation.cutoff_of(name) is None:
                lowest[name] = min(cutoff, lowest.get(name, cutoff))
    complete = []
    for entry in logs:
        if entry.effective_preparation.cutoff is None:
            cutoffs = {**lowest, **entry.effective_preparation.cutoffs}
            complete.append(
                replace(entry, preparation=replace(entry.effective_preparation, cutoffs=cutoffs))
            )
        else:
            complete.append(entry)
    return complete
