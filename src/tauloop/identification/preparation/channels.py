"""How each channel of the logs is prepared: source of its velocity, cut-off, samples at a limit; and what that was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from tauloop.common.errors import IdentificationError, InputError, Problem, Problems
from tauloop.common.plain import OMITTED, PlainData, json_keys, stated
from tauloop.common.records import dataclass
from tauloop.identification.chosen import chosen_estimator
from tauloop.identification.options import IdentificationOptions
from tauloop.identification.preparation.automatic import PreparationChoice
from tauloop.identification.preparation.channel_choice import (
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
    """What was decided of the channels.

    Attributes:
        prepared: of each log, how (`MeasuredLog.as_dict`).
        choice: what validation chose; None where there was nothing to choose.
        notes: in words.
        problems: channels of velocity that do not belong to their positions.
        chosen: options of the preparation that validation chose.
    """

    prepared: tuple[dict[str, Any], ...]
    choice: ChannelChoice | None = field(default=None, metadata=json_keys(flat=True))
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = field(default=(), metadata=OMITTED)
    chosen: tuple[PreparationChoice, ...] = field(
        default=(), metadata=json_keys(optional=True, summary=stated)
    )


def force_limits(model: Model) -> dict[str, float]:
    """Largest force of every actuator that the machine file gives one, by its name."""
    return {
        actuator.name: actuator.force
        for actuator in model.mechanism.actuators
        if np.isfinite(actuator.force)
    }


def without_saturation(model: Model, logs: Sequence[MeasuredLog]) -> list[MeasuredLog]:
    """The logs with marks on the samples of each force that a limit holds."""
    return [replace(entry, log=without_saturated(entry.log, force_limits(model))) for entry in logs]


def mended_samples(
    logs: Sequence[MeasuredLog], count: int, *, marks: bool
) -> tuple[list[MeasuredLog], tuple[Problem, ...]]:
    """The logs with bad samples interpolated or marked, and the findings; names of logs where there are several.

    Args:
        logs: as measured.
        count: how many are fitted.
        marks: whether forces may be marked as left out, which averages of periods cannot use.
    """
    mended, problems = [], Problems()
    for entry in logs:
        log, own = without_bad_samples(entry.log, marks=marks)
        mended.append(replace(entry, log=log))
        problems += (of_log(entry.name, count, problem) for problem in own)
    return mended, tuple(problems)


def less_known_forces(logs: Sequence[MeasuredLog]) -> tuple[list[MeasuredLog], tuple[str, ...]]:
    """The logs with the forces that their recordings know taken off, and what that was, in words."""
    kept, notes = [], []
    for entry in logs:
        log, remarks = without_known_forces(entry.log, entry.known_forces)
        kept.append(replace(entry, log=log, known_forces=()))
        notes += [text if len(logs) == 1 else f"{entry.name}: {text}" for text in remarks]
    return kept, tuple(notes)


def chosen_channels(
    model: Model,
    logs: Sequence[MeasuredLog],
    fitted: int,
    options: IdentificationOptions,
    ties: Ties | None,
) -> tuple[list[MeasuredLog], Channels]:
    """The logs with the source of every velocity, and its own cut-off where there are some to try, as validation says.

    Args:
        model: the machine.
        logs: those that are fitted, and then one to judge by.
        fitted: how many are fitted; the choice rests on them alone.
        options, ties: of the identification.
    """
    names = tuple(model.actuators.ports.position.columns)
    usable = usable_velocities(model, [entry.log for entry in logs])
    problems, notes = _not_used(names, logs, usable)
    choice: ChannelChoice | None = None
    cutoffs = options.preparation.scan_cutoffs
    if usable or (cutoffs and len(names) > 1):
        try:
            choice = choose_channels(
                model,
                [entry.log for entry in logs[:fitted]],
                [entry.how for entry in logs[:fitted]],
                velocities=tuple(usable),
                cutoffs=cutoffs,
                estimator=chosen_estimator(options),
                output=options.output,
                ties=ties,
                shares=(options.share, 0.7),
            )
        except (IdentificationError, InputError) as error:
            notes.append(
                f"velocities are not chosen: none could be judged ({error.problems[0].what})"
            )
    if choice is not None:
        first = choice.preparations[0]
        judged = (
            replace(log.how, cutoffs=first.cutoffs, velocities=first.velocities)
            for log in logs[fitted:]
        )
        preparations = [*choice.preparations, *judged]
        logs = [replace(entry, preparation=p) for entry, p in zip(logs, preparations, strict=True)]
    notes += [_of_velocity(name, logs[0], usable[name]) for name in usable]
    notes += [
        f"{'' if len(logs) == 1 else f'{entry.name}: '}force.{name} is at a limit in {count} samples: these "
        "are left out"
        for entry in logs
        for name, count in left_out_counts(entry.log, SATURATED).items()
    ]
    notes += dict.fromkeys(filter(None, (_of_filters(entry) for entry in logs)))
    prepared = tuple(entry.as_dict() for entry in logs)
    return list(logs), Channels(
        prepared=prepared, choice=choice, notes=tuple(notes), problems=problems
    )


def fourier_channels(logs: Sequence[MeasuredLog]) -> Channels:
    """The logs as they are, for periods that are differentiated by Fourier series."""
    names = dict.fromkeys(name for entry in logs for name in channels(entry.log, "velocity"))
    notes = [
        f"velocity.{name} is not used: periods of the positions are differentiated"
        for name in names
    ]
    return Channels(prepared=tuple(entry.as_dict() for entry in logs), notes=tuple(notes))


def _not_used(
    names: Sequence[str], logs: Sequence[MeasuredLog], usable: dict[str, MeasuredVelocity]
) -> tuple[tuple[Problem, ...], list[str]]:
    """Channels of velocity that are wrong, and in words those that are not used for another reason."""
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
                meant = suggestion(name, names)
                notes[name] = f"velocity.{name} is not used: it is no given actuator" + (
                    f"; {meant}" if meant else ""
                )
            else:
                notes[name] = (
                    f"velocity.{name} is not used: not all logs have it, in one unit and long enough"
                )
    return tuple(problems.values()), list(notes.values())


def _of_velocity(name: str, log: MeasuredLog, worth: MeasuredVelocity) -> str:
    source = log.how.source_of(name)
    words = {
        "positions": f"velocity of {name}: from its positions",
        "measured": f"velocity of {name}: measured",
        "fused": f"velocity of {name}: fused, from its positions below {worth.crossover:.3g} Hz and measured above",
    }[source]
    figures = f"scale {worth.scale:.4g}, offset {worth.offset:.2g}"
    if worth.delay:
        figures += f", {1e3 * abs(worth.delay):.3g} ms {'late' if worth.delay > 0.0 else 'early'}"
    if source != "positions":
        figures += ", taken out"
        figures += (
            f"; {worth.saturated} samples at its limit are from the positions"
            if worth.saturated
            else ""
        )
    return f"{words} ({figures})"


def _of_filters(log: MeasuredLog) -> str:
    """Return which filters forces and regressor share, and what the motion is differentiated behind."""
    factor, cutoff = log.how.decimation, common_cutoff(log.log, log.how)
    shared = [f"that of the decimation by {factor}"] if factor > 1 else []
    if cutoff is not None and cutoff * factor < HIGHEST_CUTOFF:
        shared.append(f"one at {cutoff / sample_period(log.log):.3g} Hz")
    both = (
        f"forces and regressor pass the same filters: {' and '.join(shared)}"
        if shared
        else "nothing is filtered"
    )
    return both
