"""Integrations step by step: what every stepper is, and where an integration stands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tauloop.errors import InputError, Problem
from tauloop.integrate.interpreted import Stepped
from tauloop.integrate.tableau import Tableau, dormand_prince, runge_kutta_4
from tauloop.simulation.options import DormandPrince, Integrator, Radau, RungeKutta4
from tauloop.simulation.steps import Ending, Steps
from tauloop.simulation.system import System

#: Steps that a part of an integration holds at most.
CAPACITY = 512
#: The first step of an adaptive integrator, s; its error estimate soon finds a better one.
FIRST_STEP = 1e-4
#: What a step that was not taken means.
ENDINGS = {Stepped.UNHEALTHY: Ending.SINGULAR, Stepped.TOO_SMALL: Ending.STEP, Stepped.ASTRAY: Ending.LOOPS}

#: (time, state, acting): fills in what acts, in place.
Law = Callable[[float, np.ndarray, np.ndarray], None]


@dataclass(slots=True)
class Progress:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """An integrator's numbers: explicit tableau, or None for Radau IIA; tolerances, longest and first step."""

    tableau: Tableau | None
    rtol: float
    atol: float
    longest: float
    first: float
    max_steps: int

    @classmethod
    def of(cls, integrator: Integrator) -> Method:
        """The method that an integrator's options name.

        Raises:
            InputError: there is no such integrator.
        """
        most = integrator.max_steps
        if isinstance(integrator, RungeKutta4):
            step = integrator.step
            return cls(tableau=runge_kutta_4(), rtol=1.0, atol=1.0, longest=step, first=step, max_steps=most)
        if not isinstance(integrator, DormandPrince | Radau):
            what, remedy = f"{type(integrator).__name__} is unknown", "DormandPrince, RungeKutta4 or Radau"
            raise InputError(Problem(where="integrator", what=what, remedy=remedy))
        return cls(
            tableau=dormand_prince() if isinstance(integrator, DormandPrince) else None,
            rtol=integrator.rtol,
            atol=integrator.atol,
            longest=integrator.max_step,
            first=min(FIRST_STEP, integrator.max_step),
            max_steps=most,
        )


class Stepper(ABC):
    """Carries one system forward; made once and used for any number of integrations."""

    def __init__(self, system: System, method: Method) -> None:
        """Keep the system."""
        self.system, self.method = system, method

    @abstractmethod
    def begin(self, y: np.ndarray, acting: np.ndarray, guess: np.ndarray) -> Progress:
        """The start of an integration at time zero."""

    @abstractmethod
    def advance(self, progress: Progress, end: float, law: Law | None, period: float | None) -> Steps:
        """Steps until `end`, or until the part is full; `progress` is moved along.

        Args:
            progress: where the integration stands.
            end: s.
            law: what acts; None for what `progress` holds already.
            period: time between samples of the law, s; None for one that acts continuously.
        """
