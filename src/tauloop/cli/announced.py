"""What a command says of the machine before its own results: that another reference pose than the file's is used."""

from __future__ import annotations

from tauloop.cli.screen import Screen
from tauloop.functions import Model


def announced(model: Model) -> Model:
    """The same model; a note on standard error where its reference pose is not that of its file."""
    screen = Screen(stderr=True, highlight=False, soft_wrap=True)
    for note in model.assembly.moved:
        screen.print(f"note: {note}", markup=False)
    return model
