"""Results of the strokes: torques, round trips, and operations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tauloop_papers.nuwar.settings import StrokeSettings
from tauloop_papers.reproduction import Reproduction


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A stroke back and forth on a machine.

    Attributes:
        machine: name of the machine.
        time: times (N,), s.
        position: position of the plate (N, 3), m.
        torque: torques (N, 3), N m.
        peaks: largest torque of every motor, with its sign, N m.
        one_way, shortest: duration of one direction, and at the motors' limit, s.
        spread: largest difference between Hamilton's and Newton-Euler torques, N m.
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
    """A motion by inverse dynamics and then forward dynamics.

    Attributes:
        path, law, route: names of path, law and route.
        peak: largest torque, N m.
        one_way: duration of one direction, s.
        time: times (N,), s.
        error: simulated minus given positions (N, 3), m.
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
        settings: settings of the experiment.
        fits: by machine, the largest scale at which the printed ellipse is in reach, and the
            distance by which the legs miss it.
        runs: strokes of Figure 2.
        turned: largest torque by reading of the forearm's mass, machine and direction of the
            stroke, N m.
        trips: Figure 3: routes of the ellipse, then other paths and laws.
        shapes: points of the paths (N, 3), m.
        operations: operations of one sample of inverse dynamics on NUWAR, by formulation.
        coordinates: number of coordinates of the extended space.
        fastest: largest acceleration from rest at the motors' limit on the machine's axis,
            m/s^2.
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
