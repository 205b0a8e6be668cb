"""Preparation of each channel: source of the velocity, cutoff, and bad and saturated samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import IdentificationError, InputError, Problem, Problems
from tauloop.common.plain import OMITTED, PlainData, json_keys, none_if_empty
from tauloop.common.records import dataclass
from tauloop.identification.chosen import chosen_estimator
from tauloop.identification.options import IdentificationOptions
from tauloop.identification.preparation.choice.automatic import PreparationChoice
from tauloop.identification.preparation.choice.channel_choice import (
    ChannelChoice,
    choose_channels,
    usable_velocities,
)
from tauloop.identification.preparation.measured_log import MeasuredLog, left_out_counts, of_log
from tauloop.identification.regression.ties import Ties
from tauloop.logs import MeasuredVelocity, channels, common_cutoff, sample_period
from tauloop.logs.checks.bad_samples import without_bad_samples
from tauloop.logs.checks.known_forces import without_known_forces
from tauloop.logs.checks.saturation import SATURATED, without_saturated
from tauloop.logs.signals import HIGHEST_CUTOFF
from tauloop.logs.velocities import wrong_velocities
from tauloop.mechanism.suggestions import suggestion
from tauloop.model import Model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Channels(PlainData):
    """The decisions about the channels of the logs.

    Attributes:
        prepared: the preparation of each log (`MeasuredLog.as_dict`).
        choice: the choice by validation; None if there was nothing to choose.
        notes: the decisions as sentences.
        problems: velocity channels that are not the derivatives of their positions.
        chosen: options of the preparation that were chosen by validation.
    """

    prepared: tuple[dict[str, Any], ...]
    choice: ChannelChoice | None = field(default=None, metadata=json_keys(flat=True))
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = field(default=(), metadata=OMITTED)
    chosen: tuple[PreparationChoice, ...] = field(
        default=(), metadata=json_keys(optional=True, summary=none_if_empty)
    )


def force_limits(model: Model) -> dict[str, float]:
    """Return the largest forces that the machine file specifies, by name of the actuator."""
    return {
        actuator.name: actuator.force
        for actuator in model.mechanism.actuators
        if np.isfinite(actuator.force)
    }


def without_saturation(model: Model, logs: Sequence[MeasuredLog]) -> list[MeasuredLog]:
    """Return the logs with marks on the samples at which a force is at its limit."""
    return [replace(entry, log=without_saturated(entry.log, force_limits(model))) for entry in logs]


def mended_samples(
    logs: Sequence[MeasuredLog], count: int, *, marks: bool
) -> tuple[list[MeasuredLog], tuple[Problem, ...]]:
    """Return the logs with bad samples interpolated or marked, and a problem for each finding.

    The problems name their log if there are several.

    Args:
        logs: the measured logs.
        count: number of fitted logs.
        marks: whether samples of forces may be marked as left out; marks are not possible for
            averages of periods.
    """
    mended: list[MeasuredLog] = []
    problems = Problems()
    for entry in logs:
        log, log_problems = without_bad_samples(entry.log, marks=marks)
        mended.append(replace(entry, log=log))
        problems += (of_log(entry.name, count, problem) for problem in log_problems)
    return mended, tuple(problems)


def less_known_forces(logs: Sequence[MeasuredLog]) -> tuple[list[MeasuredLog], tuple[str, ...]]:
    """Return the logs minus the known forces in their recordings, and a note for each force."""
    reduced: list[MeasuredLog] = []
    notes: list[str] = []
    for entry in logs:
        log, remarks = without_known_forces(entry.log, entry.known_forces)
        reduced.append(replace(entry, log=log, known_forces=()))
        notes += [text if len(logs) == 1 else f"{entry.name}: {text}" for text in remarks]
    return reduced, tuple(notes)


def chosen_channels(
    model: Model,
    logs: Sequence[MeasuredLog],
    fitted: int,
    options: IdentificationOptions,
    ties: Ties | None,
) -> tuple[list[MeasuredLog], Channels]:
    """Return the logs with the sources of velocity and the cutoffs that validation chose.

    Cutoffs of single channels are only tried if the options list cutoffs.

    Args:
        model: the machine.
        logs: the fitted logs, followed by the validation log if there is one.
        fitted: number of fitted logs; only they are used for the choice.
        options, ties: options of the identification.
    """
    names = tuple(model.actuators.ports.position.columns)
    usable = usable_velocities(model, [entry.log for entry in logs])
    problems, notes = _unused_velocities(names, logs, usable)
    choice: ChannelChoice | None = None
    cutoffs = options.preparation.scan_cutoffs
    if usable or (cutoffs and len(names) > 1):
        try:
            choice = choose_channels(
                model,
                [entry.log for entry in logs[:fitted]],
                [entry.effective_preparation for entry in logs[:fitted]],
                velocities=tuple(usable),
                cutoffs=cutoffs,
                estimator=chosen_estimator(options),
                output=options.output,
                ties=ties,
                shares=(options.share, 0.7),
            )
        except (IdentificationError, InputError) as error:
            reason = error.problems[0].what
            notes.append(f"velocities are not chosen by validation: no trial succeeded ({reason})")
    if choice is not None:
        first = choice.preparations[0]
        preparations = list(choice.preparations)
        for validation_log in logs[fitted:]:
            preparations.append(
                replace(
                    validation_log.effective_preparation,
                    cutoffs=first.cutoffs,
                    velocities=first.velocities,
                )
            )
        logs = [replace(entry, preparation=p) for entry, p in zip(logs, preparations, strict=True)]
    notes += [_velocity_note(name, logs[0], usable[name]) for name in usable]
    for entry in logs:
        place = "" if len(logs) == 1 else f"{entry.name}: "
        for name, count in left_out_counts(entry.log, SATURATED).items():
            notes.append(
                f"{place}force.{name} is at a limit in {counted(count, 'sample')}: left out"
            )
    notes += dict.fromkeys(_filter_note(entry) for entry in logs)
    channels = Channels(
        prepared=tuple(entry.as_dict() for entry in logs),
        choice=choice,
        notes=tuple(notes),
        problems=problems,
    )
    return list(logs), channels


def fourier_channels(logs: Sequence[MeasuredLog]) -> Channels:
    """Return the decisions for logs of whole periods, which a Fourier series differentiates."""
    names = dict.fromkeys(name for entry in logs for name in channels(entry.log, "velocity"))
    notes = [
        f"velocity.{name} is not used: the periods of the positions are differentiated"
        for name in names
    ]
    return Channels(prepared=tuple(entry.as_dict() for entry in logs), notes=tuple(notes))


def _unused_velocities(
    names: Sequence[str], logs: Sequence[MeasuredLog], usable: dict[str, MeasuredVelocity]
) -> tuple[tuple[Problem, ...], list[str]]:
    """Return problems of wrong velocity channels, and notes on other unused velocity channels."""
    problems: dict[str, Problem] = {}
    notes: dict[str, str] = {}
    for log in logs:
        wrong = wrong_velocities(log.log)
        for name in channels(log.log, "velocity"):
            if name in usable:
                continue
            if name in wrong:
                problems.setdefault(name, wrong[name])
            elif name not in names:
                hint = suggestion(name, names)
                notes[name] = (
                    f"velocity.{name} is not used: {name} is not an actuator with a given motion"
                )
                if hint:
                    notes[name] += f"; {hint}"
            else:
                notes[name] = (
                    f"velocity.{name} is not used: in a log it is missing, too short or has another unit"
                )
    return tuple(problems.values()), list(notes.values())


def _velocity_note(name: str, log: MeasuredLog, velocity: MeasuredVelocity) -> str:
    """Return a note on the source of a velocity, with the errors of the measured velocity."""
    source = log.effective_preparation.source_of(name)
    words = {
        "positions": f"velocity of {name}: from its positions",
        "measured": f"velocity of {name}: measured",
        "fused": f"velocity of {name}: fused, from its positions below {velocity.crossover:.3g} Hz "
        "and measured above",
    }[source]
    details = f"scale {velocity.scale:.4g}, offset {velocity.offset:.2g}"
    if velocity.delay:
        direction = "late" if velocity.delay > 0.0 else "early"
        details += f", {1e3 * abs(velocity.delay):.3g} ms {direction}"
    if source != "positions":
        details += ", corrected"
        if velocity.saturated:
            count = counted(velocity.saturated, "sample")
            details += f"; {count} at its limit replaced by the derivative of the positions"
    return f"{words} ({details})"


def _filter_note(log: MeasuredLog) -> str:
    """Return a note on the filters that forces and regressor share."""
    factor = log.effective_preparation.decimation
    cutoff = common_cutoff(log.log, log.effective_preparation)
    shared = [f"that of the decimation by {factor}"] if factor > 1 else []
    if cutoff is not None and cutoff * factor < HIGHEST_CUTOFF:
        shared.append(f"one at {cutoff / sample_period(log.log):.3g} Hz")
    if not shared:
        return "nothing is filtered"
    return f"forces and regressor pass the same filters: {' and '.join(shared)}"
