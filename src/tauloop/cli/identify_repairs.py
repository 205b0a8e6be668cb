"""Options of ``tauloop identify`` for logs that lack something: axes held, short gaps, samples at uneven times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tauloop.cli.assigned import quantity
from tauloop.errors import InputError, Problems
from tauloop.logs import FillGaps, Signals, held, resampled
from tauloop.mechanism.suggestions import listing, suggestion
from tauloop.mechanism.units import parse_unit
from tauloop.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """What is put into logs on request.

    Attributes:
        held: position, SI, and unit of axes that stood still, by name.
        gaps: how missing samples are interpolated.
        resample: whether samples are taken at even times by their stamps.
    """

    held: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    gaps: FillGaps | None = None
    resample: bool = False

    def made(self, log: Signals) -> Signals:
        """The log with them.

        Raises:
            LogError: an axis is held that the log has.
        """
        log = resampled(log) if self.resample else log
        return held(log, self.held) if self.held else log


def repairs(model: Model, hold: Sequence[str], fill_gaps: int | None, resample: bool) -> Repairs:
    """Read the options.

    Args:
        model: the machine; an axis without a value is held where the reference pose has it.
        hold: NAME or NAME=VALUE.
        fill_gaps: samples in a row.
        resample: whether to resample.

    Raises:
        InputError: an unknown or doubled name, or a value in another unit; all problems.
    """
    port = model.actuators.ports.position
    units = dict(zip(port.columns, port.units, strict=True))
    pose = dict(zip(port.columns, model.actuator_position(model.assembly.q)[list(model.assembly.leading)], strict=True))
    found: dict[str, tuple[float, str]] = {}
    problems = Problems()
    for text in hold:
        name, equals, value = (part.strip() for part in text.partition("="))
        if name not in units or name in found:
            what = f"{name!r} is given twice" if name in found else f"{name!r} is no position of this machine"
            remedy = suggestion(name, units) or f"choose among {listing(units)}"
            problems.add("--hold", what, remedy)
            continue
        try:
            dimension = parse_unit(units[name] or "1").dimension
            position = quantity(f"--hold {name}", value, dimension) if equals else float(pose[name])
            found[name] = (position, units[name])
        except InputError as error:
            problems += error.problems
    InputError.raise_if_any(problems)
    gaps = None if fill_gaps is None else FillGaps(longest=fill_gaps)
    return Repairs(held=found, gaps=gaps, resample=resample)


def repair_lines(names: Sequence[str], logs: Sequence[Signals], made: Repairs) -> tuple[str, ...]:
    """What was put into the logs, in sentences."""
    lines = [
        f"held on request: {name} at {np.format_float_positional(value, precision=6, trim='-')} {unit}"
        for name, (value, unit) in made.held.items()
    ]
    lines += [
        f"{log}: {count} missing samples of {channel} interpolated"
        for log, signals in zip(names, logs, strict=True)
        for channel, count in signals.interpolated.items()
    ]
    return tuple(lines)
