"""How the logs of an identification are prepared: what is taken off, scanned filters, channels, periods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tauloop.common.errors import Problem
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.equations.assembly.limits import require_within_limits
from tauloop.identification.chosen import chosen_errors, chosen_estimator
from tauloop.identification.estimation.error_models import ErrorModel
from tauloop.identification.options import IdentificationOptions
from tauloop.identification.preparation.automatic import PreparationChoice, choose_preparation
from tauloop.identification.preparation.channel_choice import usable_velocities
from tauloop.identification.preparation.channels import (
    Channels,
    chosen_channels,
    fourier_channels,
    less_known_forces,
    mended_samples,
    without_saturation,
)
from tauloop.identification.preparation.filter_scan import OPTIONS, FilterScan, scan_filters
from tauloop.identification.preparation.measured_log import MeasuredLog, naming_log
from tauloop.identification.preparation.motion_limits import motion_limits
from tauloop.identification.preparation.redundant_encoders import with_all_encoders
from tauloop.identification.regression.from_log import require_channels
from tauloop.identification.regression.ties import Ties
from tauloop.logs import sample_period, with_cutoffs
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
    """Logs with how they are prepared, and what that rests on.

    Attributes:
        logs: those that are fitted, and then the one to judge by.
        names: of them.
        fitted: how many are fitted.
        errors: what standard deviations assume.
        scan: of the filters, where some were to be tried.
        channels: how each channel is prepared.
        known_forces: what was taken off, in words.
        beyond: coordinates beyond their stops, and angles that look like degrees; how alike two
            runs were, and how far the encoders of redundant drives disagree.
        bad_samples: spikes and frozen stretches, which are left out.
        periods: how many periods every log has and the noise of its channels.
        is_chosen: whether validation chose a cut-off, so that it may choose friction as well.
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

    def part(self, share: float, longest: int) -> PreparedLogs:
        """Return the fitted logs before their held-out part, and not longer than a number of samples."""
        logs = []
        for entry in self.logs[: self.fitted]:
            count = min(round(share * len(entry.log.time)), longest)
            logs.append(replace(entry, log=entry.log.part(slice(None, count))))
        names = tuple(entry.name for entry in logs)
        return replace(
            self, logs=tuple(logs), names=names, fitted=len(logs), beyond=(), is_chosen=False
        )

    def changed(self, **changes: Any) -> PreparedLogs:
        """Return them with other options of every log's preparation."""
        logs = tuple(
            replace(entry, preparation=replace(entry.how, **changes)) for entry in self.logs
        )
        return replace(self, logs=logs)


def prepare_logs(
    model: Model,
    logs: Sequence[MeasuredLog],
    options: IdentificationOptions,
    ties: Ties | None,
    fitted: int,
    *,
    may_choose: bool = True,
) -> PreparedLogs:
    """Decide how logs are prepared, of which the first `fitted` are fitted.

    Without `may_choose` nothing is chosen by validation: logs that come one by one are all to be
    prepared alike.

    Raises:
        PoseError: a motion goes beyond stops, where that is to be refused.
        InputError, IdentificationError: filters cannot be scanned, or periods not averaged.
    """
    for entry in logs:
        with naming_log(entry, len(logs)):
            require_channels(model, entry.log, options.output)
    how = options.preparation
    periodic = how.period is not None and how.highest is not None
    logs, bad_samples = mended_samples(logs, fitted, marks=not periodic)
    logs = logs if periodic else without_saturation(model, logs)
    logs, known_forces = less_known_forces(logs)
    logs, misfits = with_all_encoders(model, logs)
    beyond = tuple(
        replace(item, name=item.name if len(logs) == 1 else f"{log.name}: {item.name}")
        for log in logs
        for item in motion_limits(model, log.log)
    )
    if options.within_limits:
        require_within_limits(beyond)
    if not how.scan_cutoffs and not periodic:
        logs = _with_cutoffs(logs)
    choices: tuple[PreparationChoice, ...] = ()
    free: tuple[str, ...] = ()
    if may_choose and not (periodic or how.scan_cutoffs or logs[0].is_prepared):
        free = _unstated(options)
    if free:
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
        scan = scan_filters(
            model,
            [entry.log for entry in logs[:fitted]],
            [entry.how for entry in logs[:fitted]],
            orders=how.scan_orders,
            cutoffs=how.scan_cutoffs,
            standstills=how.scan_standstills,
            estimator=chosen_estimator(options),
            output=options.output,
            ties=ties,
            shares=(1.0 - (options.hold_out or 0.3), 0.7),
            errors=errors,
        )
        best = {name: getattr(scan.trials[scan.chosen], name) for name in OPTIONS}
        logs = [replace(entry, preparation=replace(entry.how, **best)) for entry in logs]
        errors = chosen_errors(options, logs)
    if how.period is not None and how.highest is not None:
        channels = fourier_channels(logs)
        logs = [entry.averaged(how.period, how.highest) for entry in logs]
    else:
        logs, channels = chosen_channels(model, logs, fitted, options, ties)
        beyond += tuple(item for log in logs for item in _amplitude_losses(log, len(logs)))
        notes = (*map(str, choices), *channels.notes)
        channels = replace(channels, notes=notes, chosen=choices)
    return PreparedLogs(
        logs=tuple(logs),
        names=tuple(entry.name for entry in logs),
        is_chosen="cutoff" in free,
        fitted=fitted,
        errors=errors,
        scan=scan,
        channels=channels,
        known_forces=known_forces,
        bad_samples=bad_samples,
        beyond=(
            *beyond,
            *misfits,
            *(item for log in logs if log.runs is not None for item in log.runs.diagnostics),
        ),
        periods=tuple(
            {
                "log": entry.name,
                "periods": entry.average.periods,
                "noise": entry.average.noise,
                "units": {name: units_of(entry.average.log[name]) for name in entry.average.noise},
            }
            for entry in logs
            if entry.average is not None
        ),
    )


def prepared_again(
    model: Model,
    prepared: PreparedLogs,
    options: IdentificationOptions,
    ties: Ties | None,
    changes: Mapping[str, Any],
) -> PreparedLogs:
    """Return logs with other options of their preparations, which take the place of what was chosen before."""
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
    """Return the channels whose measured velocity may be used, where no source is stated."""
    if options.preparation.velocity is not None:
        return ()
    return tuple(usable_velocities(model, [entry.log for entry in prepared.logs]))


def _amplitude_losses(log: MeasuredLog, count: int) -> Iterator[Diagnostic]:
    """Yield what the low-pass takes off the accelerations of the channel that loses most, at the top of its motion."""
    raw, how = as_signals(log.log), log.how
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
        yield diagnostic(
            f"{'' if count == 1 else f'{log.name}: '}share of accelerations that the low-pass takes at the top of "
            f"the motion ({name}, {top:.3g} Hz)",
            loss,
            at_most=MAX_AMPLITUDE_LOSS,
            advice="inertias come out too large: raise the cut-off, or state none so that the noise decides",
        )


def _unstated(options: IdentificationOptions) -> tuple[str, ...]:
    """Return the options of the preparation that validation may choose: those that the user does not state.

    A stated cut-off is a filter by hand, which nothing is chosen beside.
    """
    stated = options.preparation.stated
    if "cutoff" in stated:
        return ()
    return tuple(
        name for name in ("cutoff", "order", "standstill", "decimation") if name not in stated
    )


def _with_cutoffs(logs: Sequence[MeasuredLog]) -> list[MeasuredLog]:
    """Return the logs with a cut-off of every channel: where they state none, the lowest that one of them allows."""
    prepared = []
    for entry in logs:
        with naming_log(entry, len(logs)):
            prepared.append(with_cutoffs(entry.log, entry.how))
    lowest: dict[str, float] = {}
    for entry, preparation in zip(logs, prepared, strict=True):
        for name, cutoff in preparation.cutoffs.items():
            if entry.how.cutoff_of(name) is None:
                lowest[name] = min(cutoff, lowest.get(name, cutoff))
    return [
        replace(entry, preparation=replace(entry.how, cutoffs={**lowest, **entry.how.cutoffs}))
        if entry.how.cutoff is None
        else entry
        for entry in logs
    ]
