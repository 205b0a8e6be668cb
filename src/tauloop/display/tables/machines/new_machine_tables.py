"""Tables of a new machine file: its dimensions, and whether it works."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.authoring import NewMachine
from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.display.tables.machines.machine_tables import check_tables


def new_machine_tables(made: NewMachine) -> Iterator[Printed]:
    """Yield the values that can be chosen, the result of `check`, and doubts."""
    choices = [item for item in made.dimensions if item.bounds] or made.dimensions
    yield table(
        f"Values, from {made.source}",
        "name",
        "value",
        "",
        "description",
        rows=[
            (item.name, item.text, _origin(made, item.name), item.note)
            for item in choices
            if item.value is not None
        ],
    )
    yield ""
    yield from check_tables(made.inspection, doubtful=bool(made.advice))
    yield from doubts(made)


def _origin(made: NewMachine, name: str) -> str:
    """Return the origin of a value: "own" (the user's), "scaled" with lengths, or "default"."""
    if name in made.changed:
        return "own"
    return "scaled" if name in made.scaled else "default"
