"""Check that a log has the channels and units that a machine needs."""

from __future__ import annotations

from collections.abc import Mapping

from tauloop.common.errors import Problem, Problems
from tauloop.common.records import dataclass
from tauloop.logs.log import Log, channels, units
from tauloop.mechanism.suggestions import listing, suggestion


@dataclass(frozen=True, slots=True)
class MissingChannel(Problem):
    """A channel that a log does not have; `where` is ``QUANTITY.NAME``."""


def channel_problems(
    log: Log, wanted: Mapping[str, Mapping[str, str]], file: str = ""
) -> list[Problem]:
    """Return problems for all channels that are missing or have another unit.

    Args:
        log: a log as from `read_log`.
        wanted: quantity -> channel -> SI unit.
        file: name of the file, for the message.
    """
    problems = Problems()
    for quantity, columns in wanted.items():
        present, actual = channels(log, quantity), units(log, quantity)
        for name, unit in columns.items():
            where = f"{quantity}.{name}"
            if name not in present:
                what = f"not in the log, which has {quantity} of {listing(present) or 'nothing'}"
                # channels that are needed themselves are not candidates
                candidates = [channel for channel in present if channel not in columns]
                remedy = suggestion(name, candidates)
                remedy = remedy or f"name a column '{where} [{unit}]', or map a column to it"
                problems.append(MissingChannel(where, what, remedy, file=file))
            elif actual[name] != unit:
                what = f"is in {actual[name]}, but the machine needs {unit}"
                problems.add(where, what, "correct the unit or the channel", file=file)
    return problems
