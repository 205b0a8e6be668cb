"""What comes out of the RCID's experiment: strokes, operation counts, and tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tauloop_papers.rcid.settings import ImpedanceSettings, Task
from tauloop_papers.reproduction import Reproduction


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The strokes that a set of poses asks for.

    Attributes:
        poses: the set, in words.
        low, high: least and largest height of each carriage (6,), m.
        sampled: stroke over the random poses from which these were sought, m.
    """

    poses: str
    low: np.ndarray
    high: np.ndarray
    sampled: float

    @property
    def stroke(self) -> float:
        """Of the actuators, which are alike and mounted alike, m."""
        return float(self.high.max() - self.low.min())


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """A task simulated on the machine.

    Attributes:
        task: which one.
        time: s (N,).
        place: of the tool from its home (N, 3), m.
        pressure: with which it presses on the surface (N,), N.
        force: of the drives (N, 6), N.
        speed: of the drives (N, 6), m/s.
        target: where the task's own mass, spring and damper would be (N, 3), m.
        energy_error: of the simulation, over its largest kinetic energy.
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
        settings: of the experiment.
        reaches: strokes by reading of the prescribed poses.
        counts: additions, multiplications and divisions of velocity matrices in Euler angles, by
            method and part.
        touches: the tasks.
        masses: of all bodies and rods without the payload, kg.
    """

    settings: ImpedanceSettings
    reaches: tuple[Reach, ...]
    counts: dict[str, dict[str, tuple[int, int, int]]]
    touches: tuple[Touch, ...]
    masses: float
