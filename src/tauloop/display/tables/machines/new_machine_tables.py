"""Tables of a new machine file: its dimensions, and whether it works."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.authoring import NewMachine
from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.display.tables.machines.machine_tables import check_tables


def new_machine_tables(new_machine: NewMachine) -> Iterator[Printed]:
    """Yield the values that can be chosen, the result of `check`, and doubts."""
    choices = [item for item in new_machine.dimensions if item.bounds] or new_machine.dimensions
    yield table(
        f"Values, from {new_machine.source}",
        "name",
        "value",
        "",
        "description",
        rows=[
            (item.name, item.text, _origin(new_machine, item.name), item.note)
            for item in choices
            if item.value is not None
        ],
    )
    yield ""
    yield from check_tables(new_machine.inspection, doubtful=bool(new_machine.advice))
    yield from doubts(new_machine)


def _origin(new_machine: NewMachine, name: str) -> str:
    """Return the origin of a value: "own" (the user's), "scaled" with lengths, or "default"."""
    if name in new_machine.changed:
        return "own"
    return "scaled" if name in new_machine.scaled else "default"
