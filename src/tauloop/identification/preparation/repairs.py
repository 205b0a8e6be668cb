"""Repairs of logs on request: positions of locked axes, short gaps, resampling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.identification.options import PreparationOptions
from tauloop.identification.values import si_value
from tauloop.logs import FillGaps, LogFile, Signals, held, read_signals, resampled
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """Repairs of logs that the user requests.

    Attributes:
        held: position, SI, and unit of each axis that was held and is not in the log, by name.
        gaps: options of the interpolation of missing samples; None to interpolate none.
        resample: whether to resample at uniform times (`tauloop.logs.resampled`).
    """

    held: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    gaps: FillGaps | None = None
    resample: bool = False

    def read(
        self, *files: LogFile | str | Path | pd.DataFrame, sample_rate: float | None = None
    ) -> Signals:
        """Read a recording and repair it.

        Returns:
            The repaired signals.

        Raises:
            LogError: the files are damaged, or the log contains an axis that is given as held.
        """
        log = read_signals(*files, sample_rate=sample_rate, gaps=self.gaps, resample=self.resample)
        return held(log, self.held) if self.held else log

    def apply(self, log: Signals) -> Signals:
        """Return a repaired log in memory.

        Raises:
            LogError: the log contains an axis that is given as held, or time stamps decrease or
                have gaps that are not to be filled.
        """
        log = resampled(log, self.gaps) if self.resample else log
        return held(log, self.held) if self.held else log

    def lines(self, names: Sequence[str], logs: Sequence[Signals]) -> tuple[str, ...]:
        """Return notes on the repairs of the logs."""
        lines = [
            f"held on request: {name} at {np.format_float_positional(value, precision=6, trim='-')} {unit}"
            for name, (value, unit) in self.held.items()
        ]
        lines += [
            f"{name}: {note}" for name, log in zip(names, logs, strict=True) for note in log.notes
        ]
        lines += [
            f"{name}: {counted(count, 'missing sample')} of {channel} interpolated"
            for name, log in zip(names, logs, strict=True)
            for channel, count in log.interpolated.items()
        ]
        return tuple(lines)


def repairs(model: Model, options: PreparationOptions) -> Repairs:
    """Return the repairs that the options request for the logs of a machine.

    Raises:
        InputError: names are unknown, or values have another unit; lists all problems.
    """
    port = model.actuators.ports.position
    units = dict(zip(port.columns, port.units, strict=True))
    reference = model.actuator_position(model.assembly.q)[list(model.assembly.leading)]
    reference_position = dict(zip(port.columns, reference, strict=True))
    held_positions: dict[str, tuple[float, str]] = {}
    problems = Problems(
        unknown_names(options.hold, units, "{!r} is not a position of this machine", "hold")
    )
    for name, value in options.hold.items():
        with problems.collecting(InputError):
            if name not in units:
                continue
            if value == "":
                position = float(reference_position[name])
            else:
                position = si_value(f"hold {name}", value, units[name])
            held_positions[name] = (position, units[name])
    InputError.raise_if_any(problems)
    gaps = None if options.fill_gaps is None else FillGaps(longest=options.fill_gaps)
    return Repairs(held=held_positions, gaps=gaps, resample=options.resample)
