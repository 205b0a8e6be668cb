"""Results of the RCID's experiment: strokes, operation counts, and tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tauloop_papers.rcid.settings import ImpedanceSettings, Task
from tauloop_papers.reproduction import Reproduction


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The strokes required by a set of poses.

    Attributes:
        poses: description of the set.
        low, high: least and largest height of each carriage (6,), m.
        sampled: stroke over the random poses at which the search started, m.
    """

    poses: str
    low: np.ndarray
    high: np.ndarray
    sampled: float

    @property
    def stroke(self) -> float:
        """Stroke of the actuators, which are all mounted alike, m."""
        return float(self.high.max() - self.low.min())


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """A task simulated on the machine.

    Attributes:
        task: name of the task.
        time: times (N,), s.
        place: position of the tool relative to its home (N, 3), m.
        pressure: force on the surface (N,), N.
        force: forces of the drives (N, 6), N.
        speed: speeds of the drives (N, 6), m/s.
        target: positions of the task's mass, spring and damper (N, 3), m.
        energy_error: energy error of the simulation, divided by its largest kinetic energy.
    """

    task: Task
    time: np.ndarray
    place: np.ndarray
    pressure: np.ndarray
    force: np.ndarray
    speed: np.ndarray
    target: np.ndarray
    energy_error: float

    @property
    def miss(self) -> float:
        """Largest distance from the target, m."""
        return float(np.linalg.norm(self.place - self.target, axis=1).max())


@dataclass(frozen=True, slots=True, kw_only=True)
class Impedance(Reproduction):
    """The experiment's results.

    Attributes:
        settings: settings of the experiment.
        reaches: strokes by reading of the prescribed poses.
        counts: additions, multiplications and divisions of velocity matrices in Euler angles, by
            method and part.
        touches: the tasks.
        masses: masses of all bodies and rods without the payload, kg.
    """

    settings: ImpedanceSettings
    reaches: tuple[Reach, ...]
    counts: dict[str, dict[str, tuple[int, int, int]]]
    touches: tuple[Touch, ...]
    masses: float
