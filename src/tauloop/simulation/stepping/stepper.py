"""Base class of steppers, and the state of an integration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.integrate.integrators import Integrator
from tauloop.integrate.outcome import StepOutcome
from tauloop.integrate.sensitivity import (
    SensitivityDirection,
    along_constants,
    along_start,
    sensitive,
)
from tauloop.simulation.stepping.steps import Ending, Steps
from tauloop.simulation.system import System

#: Maximum number of steps in a part of an integration.
CAPACITY = 512
#: Ending of a simulation, by the outcome of a failed step.
ENDING_OF_OUTCOME = {
    StepOutcome.SINGULAR: Ending.SINGULAR,
    StepOutcome.STEP_TOO_SMALL: Ending.STEP_TOO_SMALL,
    StepOutcome.LOOPS_LOST: Ending.LOOPS_LOST,
}

#: Function of time, state and `acting` that writes the forces and the wrench into `acting`.
Law = Callable[[float, np.ndarray, np.ndarray], None]


class Laws:
    """Forces and wrench that act on a machine.

    Attributes:
        constant: forces and wrench that apply unless a law sets other values (n_acting,).
        law: law that is called at every evaluation; None if there is none.
        sampled: law whose values are held between its samples; None if there is none.
        period: time between the samples, s.
    """

    law: Law | None = None
    sampled: Law | None = None
    period: float = 0.0

    def __init__(self, constant: np.ndarray) -> None:
        """Set constant values, without laws."""
        self.constant = constant


@dataclass(slots=True, kw_only=True)
class SteppingState:
    """State of an integration in progress. A stepper changes it in place.

    Attributes:
        time: current time, s.
        y: state, followed by its sensitivities (n,).
        laws: laws of the forces and the wrench.
        acting: current forces and wrench (n_acting,); laws write into it.
        guess: coordinates from which Newton's method starts (n_q,).
        p: constants of the right-hand side.
        samples: number of samples of the sampled law so far.
        own: data that belong to the stepper.
    """

    time: float = 0.0
    y: np.ndarray
    laws: Laws
    acting: np.ndarray
    guess: np.ndarray
    p: np.ndarray
    samples: int = 0
    own: object = None


class Stepper(ABC):
    """A method that integrates a system. It is built once and used for many integrations."""

    def __init__(self, system: System, integrator: Integrator, directions: int = 0) -> None:
        """Store the system. `directions` is the number of directions of sensitivities."""
        self.system = system
        self.method = integrator.method
        self.max_steps = integrator.max_steps
        self.routines = sensitive(system.routines, directions)

    def begin(
        self,
        y: np.ndarray,
        laws: Laws,
        guess: np.ndarray,
        along: Sequence[SensitivityDirection] = (),
        duration: float = 0.0,
    ) -> SteppingState:
        """Return the state of an integration that starts at time zero.

        Args:
            y: start state (n,).
            laws: laws of the forces and the wrench.
            guess: coordinates from which Newton's method starts (n_q,).
            along: directions along which the states are differentiated.
            duration: expected duration, s, which determines the compiler of the code.

        Raises:
            EngineError: no C compiler was found, or it fails.
        """
        progress = SteppingState(
            y=along_start(y, along),
            laws=laws,
            acting=laws.constant.copy(),
            guess=guess.copy(),
            p=along_constants(self.system.theta, along),
        )
        progress.own = self._begin_integration(progress, duration)
        return progress

    @abstractmethod
    def _begin_integration(self, progress: SteppingState, duration: float) -> object:
        """Return the stepper's data for a new integration."""

    @abstractmethod
    def advance(self, progress: SteppingState, end: float) -> Steps:
        """Return steps until `end` (s), or at most `CAPACITY` steps, and update `progress`."""

    def _steps(
        self,
        progress: SteppingState,
        rows: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
        counts: tuple[int, int],
        ending: Ending | None,
    ) -> Steps:
        """Return the steps.

        Args:
            progress: state of the integration after the steps.
            rows: times, states, known outputs and polynomials of the steps.
            counts: numbers of evaluations and of rejected steps.
            ending: reason why the integration ended; None if it can continue.
        """
        times, states, known, polynomials = rows
        n_q, n_v = self.routines.coordinates, self.routines.velocities
        return Steps(
            time=np.append(times, progress.time),
            y=np.vstack([states, progress.y]),
            q=known[:, :n_q].copy(),
            v=known[:, n_q : n_q + n_v].copy(),
            acting=known[:, n_q + n_v :].copy(),
            polynomials=polynomials.copy(),
            evaluations=counts[0],
            rejected=counts[1],
            ending=ending,
        )
