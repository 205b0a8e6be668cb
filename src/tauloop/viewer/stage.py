"""What the parts of a viewer may ask of it, and it of a view: they know these alone, and not each other."""

from __future__ import annotations

import threading
from typing import Any, Protocol

import numpy as np

from tauloop.common.errors import TauloopError
from tauloop.model import Model
from tauloop.viewer.layers import Layers
from tauloop.viewer.playback import Playback
from tauloop.viewer.scene import MachineScene


class Stage(Protocol):
    """A viewer, as its parts see it; see `Viewer`."""

    server: Any
    model: Model
    q: np.ndarray
    sample: int | None
    lock: threading.RLock
    scene: MachineScene

    @property
    def moment(self) -> float:
        """The time shown, s; zero without a motion."""

    def show(self, q: np.ndarray, dragged: Any = None, *, sample: int | None = None) -> None:
        """Show the machine at assembled coordinates (n_q,)."""

    def replace(self, view: Sight) -> None:
        """Show another machine in place of this one."""

    def explain(self, error: TauloopError, heading: str = ...) -> None:
        """Say in the panel what is in the way."""

    def warn(self, text: str) -> None:
        """Say what is wrong with the files that are watched."""


class Sight(Protocol):
    """What is shown, as a file's reader gives it; see `View`."""

    @property
    def model(self) -> Model:
        """The machine."""

    @property
    def q(self) -> np.ndarray:
        """Its coordinates (n_q,)."""

    @property
    def playback(self) -> Playback | None:
        """Its motion."""

    @property
    def layers(self) -> Layers:
        """What is shown beside it."""
