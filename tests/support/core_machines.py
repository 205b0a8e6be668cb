"""The shipped machines that loops over all of them take; the gallery's own stand in tests/gallery."""

from __future__ import annotations

from tauloop.mechanism import machine_index

#: Names of the core machines, in alphabetical order.
CORE_MACHINES = tuple(machine.name for machine in machine_index().machines if machine.group == "core")
