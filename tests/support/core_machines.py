"""The shipped machines over which loops of tests go; the gallery has tests of its own (test_gallery_machines.py)."""

from __future__ import annotations

from tauloop.mechanism import shipped_machines

#: Names of the core machines, in alphabetical order.
CORE_MACHINES = shipped_machines(gallery=False)
