"""What comes out of the strokes: torques, round trips, and operations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tauloop_papers.nuwar.settings import StrokeSettings
from tauloop_papers.reproduction import Reproduction


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A stroke there and back on a machine.

    Attributes:
        machine: its name.
        time: s (N,).
        position: of the plate (N, 3), m.
        torque: N m (N, 3).
        peaks: largest torque of every motor, with its sign, N m.
        one_way, shortest: duration of one direction, and at the motors' limit, s.
        spread: largest difference between Hamilton's and Newton and Euler's torques, N m.
    """

    machine: str
    time: np.ndarray
    position: np.ndarray
    torque: np.ndarray
    peaks: tuple[float, ...]
    one_way: float
    shortest: float
    spread: float

    @property
    def peak(self) -> float:
        """The largest torque, N m."""
        return max(map(abs, self.peaks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """A motion through inverse and forward dynamics.

    Attributes:
        path, law, route: their names.
        peak: largest torque, N m.
        one_way: duration of one direction, s.
        time: s (N,).
        error: what came back less what was wanted (N, 3), m.
        residual: largest residual of the loops, m.
    """

    path: str
    law: str
    route: str
    peak: float
    one_way: float
    time: np.ndarray
    error: np.ndarray
    residual: float

    @property
    def largest(self) -> float:
        """Largest distance from the stroke, m."""
        return float(np.linalg.norm(self.error, axis=1).max())


@dataclass(frozen=True, slots=True, kw_only=True)
class Strokes(Reproduction):
    """The experiment's results.

    Attributes:
        settings: of the experiment.
        fits: by machine, the largest scale at which the printed ellipse is in reach, and by how
            much the legs miss it.
        runs: Figure 2.
        turned: largest torque by reading of the forearm's mass, machine and direction of the
            stroke, N m.
        trips: Figure 3: routes of the ellipse, then other paths and laws.
        shapes: points of the paths (N, 3), m.
        operations: of one sample of inverse dynamics on NUWAR, by formulation.
        coordinates: of the extended space.
        fastest: acceleration from rest at the motors' limit on the machine's axis, the largest
            there, m/s^2.
    """

    settings: StrokeSettings
    fits: dict[str, tuple[float, tuple[str, ...]]]
    runs: tuple[Run, ...]
    turned: dict[str, dict[str, tuple[float, ...]]]
    trips: tuple[Trip, ...]
    shapes: dict[str, np.ndarray]
    operations: dict[str, int]
    coordinates: int
    fastest: float
