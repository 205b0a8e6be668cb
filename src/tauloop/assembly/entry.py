"""Entries: whose motion is given (the platform's, or the actuators'), from which everything else follows."""

from __future__ import annotations

import enum


class Entry(enum.Enum):
    """Whose motion is given, from which everything else follows: `PLATFORM`'s or `ACTUATORS`'.

    The names are those in messages, files and on the command line. What an entry is in numbers on one machine tells
    `tauloop.assembly.entry_ports`.
    """

    platform = "platform"
    actuators = "actuators"

    def __str__(self) -> str:
        return self.name


PLATFORM, ACTUATORS = Entry.platform, Entry.actuators
