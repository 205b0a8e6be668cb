"""Protocols of the viewer and of a view, which make the panels independent of each other."""

from __future__ import annotations

import threading
from typing import Any, Protocol

import numpy as np

from tauloop.common.errors import TauloopError
from tauloop.model import Model
from tauloop.viewer.layers import Layers
from tauloop.viewer.playback import Playback
from tauloop.viewer.scene.machine_scene import MachineScene


class Movable(Protocol):
    """A machine in the scene that sliders move."""

    server: Any
    model: Model
    q: np.ndarray
    lock: threading.RLock

    def show(self, q: np.ndarray, dragged: Any = None, *, sample: int | None = None) -> None:
        """Show the machine at assembled coordinates (n_q,)."""

    def explain(self, error: TauloopError, heading: str = ...) -> None:
        """Show in the panel why the machine cannot move."""


class Stage(Movable, Protocol):
    """The part of a viewer that its panels use; see `Viewer`."""

    sample: int | None
    scene: MachineScene

    @property
    def time(self) -> float:
        """Return the current time, s; zero without a motion."""

    def fit(self, client: Any, away: np.ndarray | None = None) -> None:
        """Move the camera of a page so that the page shows the whole machine."""

    def replace(self, view: ViewState) -> None:
        """Show another machine in place of this one."""

    def warn(self, text: str) -> None:
        """Show errors in the watched files."""


class ViewState(Protocol):
    """A machine with pose, motion and layers; see `View`."""

    @property
    def model(self) -> Model:
        """Return the machine."""

    @property
    def q(self) -> np.ndarray:
        """Return the coordinates of the machine (n_q,)."""

    @property
    def playback(self) -> Playback | None:
        """Return the motion of the machine, or None."""

    @property
    def layers(self) -> Layers:
        """Return the additional layers of the view."""
