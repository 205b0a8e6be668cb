"""What a command says of the machine before its results: a reference pose that is not the file's, or beyond a stop."""

from __future__ import annotations

from tauloop.assembly.limits import require_within_limits
from tauloop.cli.screen import Screen
from tauloop.model import Model


def announced(model: Model, within_limits: bool = False) -> Model:
    """The same model; notes on standard error where its reference pose is not its file's, or lies beyond a stop.

    Args:
        model: the machine.
        within_limits: whether a reference pose beyond a stop is refused.

    Raises:
        PoseError: it is: which coordinates, and by how much.
    """
    if within_limits:
        require_within_limits(model.limits.evidence(model.assembly.q))
    screen = Screen(stderr=True, highlight=False, soft_wrap=True)
    for note in (*model.assembly.moved, *(f"reference pose: {item}" for item in model.limits.beyond(model.assembly.q))):
        screen.print(f"note: {note}", markup=False)
    return model
