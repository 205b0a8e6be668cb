"""Interfaces of a viewer and a view, through which the panels work without knowing each other."""

from __future__ import annotations

import threading
from typing import Any, Protocol

import numpy as np

from tauloop.common.errors import TauloopError
from tauloop.model import Model
from tauloop.viewer.layers import Layers
from tauloop.viewer.playback import Playback
from tauloop.viewer.scene.machine_scene import MachineScene


class Stage(Protocol):
    """A viewer as its panels use it; see `Viewer`."""

    server: Any
    model: Model
    q: np.ndarray
    sample: int | None
    lock: threading.RLock
    scene: MachineScene

    @property
    def moment(self) -> float:
        """Return the current time, s; zero without a motion."""

    def show(self, q: np.ndarray, dragged: Any = None, *, sample: int | None = None) -> None:
        """Show the machine at assembled coordinates (n_q,)."""

    def replace(self, view: ViewState) -> None:
        """Show another machine in place of this one."""

    def explain(self, error: TauloopError, heading: str = ...) -> None:
        """Show in the panel why the machine cannot move."""

    def warn(self, text: str) -> None:
        """Show what is wrong with the watched files."""


class ViewState(Protocol):
    """A machine with pose, motion and layers; see `View`."""

    @property
    def model(self) -> Model:
        """Return the machine."""

    @property
    def q(self) -> np.ndarray:
        """Return its coordinates (n_q,)."""

    @property
    def playback(self) -> Playback | None:
        """Return its motion."""

    @property
    def layers(self) -> Layers:
        """Return its additional layers."""
