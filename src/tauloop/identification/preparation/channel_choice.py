"""Which cut-off and which velocity each channel is prepared with, chosen by validation, channel by channel.

The held-out data take no part in the choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from tauloop.common.errors import PoseError
from tauloop.common.plain import OMITTED, in_json, records
from tauloop.common.records import dataclass
from tauloop.common.shown import Shown
from tauloop.identification.estimation.estimators import Estimator, WeightedLeastSquares
from tauloop.identification.estimation.evaluation import overall
from tauloop.identification.preparation.trials import Trials
from tauloop.identification.regression.streaming import split_each
from tauloop.identification.regression.ties import Ties
from tauloop.logs import MeasuredVelocity, Preparation, measured_velocities
from tauloop.logs.log import Log, as_signals
from tauloop.logs.velocities import SOURCES
from tauloop.model import Model

#: A change is taken where it lessens the validation error of all outputs by this share, ...
BETTER = 0.01
#: ... and that of no output grows by more than this share.
WORSE = 0.03
#: All channels are gone through so many times at most.
SWEEPS = 2
#: Samples of a log that a choice is made by, at most: its first ones.
LONGEST = 40_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChannelChoice(Shown):
    """How the channels are prepared, and what that rests on.

    Attributes:
        preparations: of each log, with `cutoffs` and `velocities` of every channel that differs
            from the others.
        common: validation error, %, with the same for all channels, by what that is, such as
            ``velocity measured``.
        before, after: (n_out,) validation errors, % of each output's largest force, as given and as
            chosen.
        outputs: their names.
        moved: by channel what was changed for it alone, with the errors (%) of all outputs before
            and after.
    """

    preparations: tuple[Preparation, ...] = field(metadata=OMITTED)
    common: Mapping[str, float] = field(metadata=OMITTED)
    before: np.ndarray = field(metadata=OMITTED)
    after: np.ndarray = field(metadata=OMITTED)
    outputs: tuple[str, ...] = field(metadata=OMITTED)
    moved: tuple[tuple[str, str, float, float], ...] = field(metadata=OMITTED)

    @property
    def errors(self) -> tuple[float, float]:
        """Root mean square of the outputs' percentages, as given and as chosen."""
        return overall(self.before), overall(self.after)

    @property
    @in_json()
    def validation_percent(self) -> dict[str, float]:
        """Validation errors, %, of the common preparations and of the chosen one."""
        return {**self.common, "chosen": self.errors[1]}

    @property
    @in_json("outputs")
    def output_rows(self) -> list[dict[str, Any]]:
        """Validation errors of every output, %."""
        return records(name=self.outputs, as_given=self.before, chosen=self.after)

    @property
    @in_json("moved")
    def moved_rows(self) -> list[dict[str, Any]]:
        """Channels that differ from the others, with the errors before and after."""
        names = ("channel", "to", "error_before", "error_after")
        return [dict(zip(names, row, strict=True)) for row in self.moved]


def usable_velocities(model: Model, logs: Sequence[Log]) -> dict[str, MeasuredVelocity]:
    """Measured velocities of the given actuators that all logs have and that belong to their positions."""
    velocities: dict[str, MeasuredVelocity] = {}
    each = [measured_velocities(log) for log in logs]
    port = model.actuators.ports.position
    for name, unit in zip(port.columns, port.units, strict=True):
        units = {
            channel.unit
            for log in logs
            for channel in as_signals(log).channels
            if channel.name == f"velocity.{name}"
        }
        if units == {f"{unit}/s"} and all(
            name in usable and usable[name].problem() is None for usable in each
        ):
            velocities[name] = each[0][name]
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
    """Try every source of velocity and every cut-off, first for all channels alike, then for each alone.

    A change of one channel is taken where it lessens the root mean square of all outputs'
    validation errors by `BETTER` and makes no output worse by `WORSE`: where outputs depend on
    their own channel alone that is each joint by itself, and where loops couple them no joint pays
    for another. Forces are the same in all trials.

    Args:
        model, logs, preparations, output, ties: as for `regression_data`, one preparation for each
            log.
        velocities: channels whose measured velocity is tried (see `usable_velocities`); where a
            preparation says a source for a channel, it stays.
        cutoffs: cut-offs to try for single channels, Hz; none without them.
        estimator: weighted least squares without it.
        shares: part of each log before its held-out part, and share of that before the validation
            part.

    Raises:
        IdentificationError: the data cannot support the identification.
        InputError: a filter is not possible for this log.
    """
    whole = [as_signals(log) for log in logs]
    parts = [log.part(slice(None, min(round(shares[0] * len(log.time)), LONGEST))) for log in whole]
    search, outputs = (
        Trials(model, parts, estimator or WeightedLeastSquares(), output, ties),
        list[str](),
    )

    def errors_of(tried: Sequence[Preparation]) -> np.ndarray:
        """RMSE (n_out,) on the validation part, % of each output's largest force; infinite where no pose is found."""
        try:
            data = search.parts(tried)
        except PoseError:
            if not outputs:
                raise
            return np.full(len(outputs), np.inf)
        result, errors = search.judged(*split_each(data, shares[1]), data)
        outputs[:] = [row.output for row in result.held_out]
        return errors

    chosen = tuple(preparations)
    free = [
        name
        for name in velocities
        if all(p.velocity is None and name not in p.velocities for p in preparations)
    ]
    before = best = errors_of(chosen)
    common = {"as given": overall(before)}
    for source in SOURCES[1:] if free else ():
        trial = tuple(
            replace(p, velocities={**p.velocities, **dict.fromkeys(free, source)}) for p in chosen
        )
        errors = errors_of(trial)
        common[f"velocity {source}"] = overall(errors)
        if overall(errors) * (1.0 + BETTER) <= overall(best):
            chosen, best = _merged(trial, free), errors
    moved: list[tuple[str, str, float, float]] = []
    channels = model.actuators.ports.position.columns
    for _ in range(SWEEPS if len(channels) > 1 else 1):
        count = len(moved)
        for name in channels:
            options: list[tuple[str, str | float]] = [
                ("velocities", source) for source in SOURCES if name in free and len(channels) > 1
            ]
            options += [("cutoffs", cutoff) for cutoff in cutoffs]
            for name_of_field, value in options:
                if all(_current(p, name_of_field, name) == value for p in chosen):
                    continue
                changed: list[dict[str, Any]] = [
                    {name_of_field: {**getattr(p, name_of_field), name: value}} for p in chosen
                ]
                trial = tuple(
                    replace(p, **change) for p, change in zip(chosen, changed, strict=True)
                )
                errors = errors_of(trial)
                if (
                    overall(errors) * (1.0 + BETTER) <= overall(best)
                    and (errors <= best * (1.0 + WORSE)).all()
                ):
                    label = f"{value:g} Hz" if isinstance(value, float) else f"velocity {value}"
                    moved.append((name, label, overall(best), overall(errors)))
                    chosen, best = trial, errors
        if len(moved) == count:
            break
    return ChannelChoice(
        preparations=chosen,
        common=common,
        before=before,
        after=best,
        outputs=tuple(outputs),
        moved=tuple(moved),
    )


def _merged(preparations: Sequence[Preparation], names: Sequence[str]) -> tuple[Preparation, ...]:
    return tuple(
        replace(p, velocities={name: p.source_of(name) for name in (*p.velocities, *names)})
        for p in preparations
    )


def _current(preparation: Preparation, field: str, name: str) -> object:
    return preparation.source_of(name) if field == "velocities" else preparation.cutoff_of(name)
