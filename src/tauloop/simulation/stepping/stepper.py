"""Integrations step by step: what every stepper is, and where an integration stands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.integrate.integrators import Integrator
from tauloop.integrate.interpreted import StepOutcome
from tauloop.integrate.sensitivity import (
    SensitivityDirection,
    along_constants,
    along_start,
    sensitive,
)
from tauloop.simulation.stepping.steps import Ending, Steps
from tauloop.simulation.system import System

#: Steps that a part of an integration holds at most.
CAPACITY = 512
#: What a step that was not taken means.
ENDINGS = {
    StepOutcome.SINGULAR: Ending.SINGULAR,
    StepOutcome.STEP_TOO_SMALL: Ending.STEP_TOO_SMALL,
    StepOutcome.LOOPS_LOST: Ending.LOOPS_LOST,
}

#: (time, state, acting): fills in what acts, in place.
Law = Callable[[float, np.ndarray, np.ndarray], None]


class Laws:
    """What acts on a machine.

    Attributes:
        constant: where nothing else does, and before it does (n_acting,).
        law: of time and state, at every evaluation; None where nothing acts so.
        sampled: of what is held between its samples; likewise.
        period: time between these, s.
    """

    law: Law | None = None
    sampled: Law | None = None
    period: float = 0.0

    def __init__(self, constant: np.ndarray) -> None:
        """What acts is constant, until laws are set."""
        self.constant = constant


@dataclass(slots=True, kw_only=True)
class SteppingState:
    """Where an integration stands; changed in place by a stepper.

    Attributes:
        time: s.
        y: state, with its derivatives (n,).
        laws: what acts.
        acting: what acts now (n_acting,); laws write into it.
        guess: coordinates from which Newton's method starts (n_q,).
        p: constants.
        samples: of a law that is held between these, so far.
        own: the stepper's own.
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
    """Carries one system forward; made once and used for any number of integrations."""

    def __init__(self, system: System, integrator: Integrator, directions: int = 0) -> None:
        """Keep the system, with derivatives along so many directions."""
        self.system, self.method, self.max_steps = system, integrator.method, integrator.max_steps
        self.routines = sensitive(system.routines, directions)

    def begin(
        self,
        y: np.ndarray,
        laws: Laws,
        guess: np.ndarray,
        along: Sequence[SensitivityDirection] = (),
    ) -> SteppingState:
        """The start of an integration at time zero, from a state (n,), with derivatives along directions."""
        first, constants = along_start(y, along), along_constants(self.system.theta, along)
        acting = laws.constant.copy()
        progress = SteppingState(y=first, laws=laws, acting=acting, guess=guess.copy(), p=constants)
        progress.own = self._begun(progress)
        return progress

    @abstractmethod
    def _begun(self, progress: SteppingState) -> object:
        """The stepper's own of an integration that begins."""

    @abstractmethod
    def advance(self, progress: SteppingState, end: float) -> Steps:
        """Steps until `end`, s, or until the part is full; `progress` is moved along."""

    def _steps(
        self,
        progress: SteppingState,
        rows: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
        spent: tuple[int, int],
        ending: Ending | None,
    ) -> Steps:
        """Steps from what is kept of each: its time, its state, what is known there, and its polynomials."""
        times, states, known, polynomials = rows
        n_q, n_v = self.routines.coordinates, self.routines.velocities
        return Steps(
            time=np.append(times, progress.time),
            y=np.vstack([states, progress.y]),
            q=known[:, :n_q].copy(),
            v=known[:, n_q : n_q + n_v].copy(),
            acting=known[:, n_q + n_v :].copy(),
            polynomials=polynomials.copy(),
            evaluations=spent[0],
            rejected=spent[1],
            ending=ending,
        )
