"""Integrations step by step: what every stepper is, and where an integration stands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from tauloop.integrate.integrators import Integrator
from tauloop.integrate.interpreted import Stepped
from tauloop.records import dataclass
from tauloop.simulation.stepping.steps import Ending, Steps
from tauloop.simulation.system import System

#: Steps that a part of an integration holds at most.
CAPACITY = 512
#: What a step that was not taken means.
ENDINGS = {Stepped.UNHEALTHY: Ending.SINGULAR, Stepped.TOO_SMALL: Ending.STEP, Stepped.ASTRAY: Ending.LOOPS}

#: (time, state, acting): fills in what acts, in place.
Law = Callable[[float, np.ndarray, np.ndarray], None]


@dataclass(slots=True)
class SteppingState:
    """Where an integration stands; changed in place by a stepper.

    Attributes:
        time: s.
        y: state (n,).
        acting: what acts (n_acting,); the law writes into it.
        guess: coordinates from which Newton's method starts (n_q,).
        own: the stepper's own.
    """

    time: float
    y: np.ndarray
    acting: np.ndarray
    guess: np.ndarray
    own: object = None


class Stepper(ABC):
    """Carries one system forward; made once and used for any number of integrations."""

    def __init__(self, system: System, integrator: Integrator) -> None:
        """Keep the system."""
        self.system, self.method, self.max_steps = system, integrator.method, integrator.max_steps

    @abstractmethod
    def begin(self, y: np.ndarray, acting: np.ndarray, guess: np.ndarray) -> SteppingState:
        """The start of an integration at time zero."""

    @abstractmethod
    def advance(self, progress: SteppingState, end: float, law: Law | None, period: float | None) -> Steps:
        """Steps until `end`, or until the part is full; `progress` is moved along.

        Args:
            progress: where the integration stands.
            end: s.
            law: what acts; None for what `progress` holds already.
            period: time between samples of the law, s; None for one that acts continuously.
        """
