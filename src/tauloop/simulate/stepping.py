"""Integrations step by step: what every stepper is, and where an integration stands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tauloop.simulate import stepping_source as code
from tauloop.simulate.options import DormandPrince, RungeKutta4
from tauloop.simulate.steps import Steps
from tauloop.simulate.system import System
from tauloop.simulate.tableaus import Tableau, dormand_prince, runge_kutta_4

#: Steps that a part of an integration holds at most.
CAPACITY = 512
#: The first step of an adaptive integrator, s; its error estimate soon finds a better one.
FIRST_STEP = 1e-4

Evaluated = tuple[np.ndarray, np.ndarray, np.ndarray]
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
        memory: the stepper's own numbers.
    """

    time: float
    y: np.ndarray
    acting: np.ndarray
    guess: np.ndarray
    memory: np.ndarray


class Stepper(ABC):
    """Carries one system forward; made once and used for any number of integrations."""

    def __init__(self, system: System) -> None:
        """Keep the system."""
        self.system = system

    @abstractmethod
    def advance(self, progress: Progress, end: float, law: Law | None, period: float | None) -> Steps:
        """Steps until `end`, or until the part is full; `progress` is moved along.

        Args:
            progress: where the integration stands.
            end: s.
            law: what acts; None for what `progress` holds already.
            period: time between samples of the law, s; None for one that acts continuously.
        """

    def begin(self, y: np.ndarray, acting: np.ndarray, guess: np.ndarray) -> Progress:
        """The start of an integration at time zero."""
        n_known = self.system.model.topology.n_q + self.system.model.topology.n_v
        memory = np.zeros(code.MEMORY + self.system.size + n_known)
        memory[0] = self.first_step
        return Progress(time=0.0, y=y.copy(), acting=acting.copy(), guess=guess.copy(), memory=memory)

    @property
    def first_step(self) -> float:
        """The step that is tried first, s."""
        return FIRST_STEP


def explicit_method(integrator: DormandPrince | RungeKutta4) -> tuple[Tableau, tuple[float, float, float], float]:
    """Tableau; rtol, atol and longest step; first step."""
    if isinstance(integrator, DormandPrince):
        limits = (integrator.rtol, integrator.atol, integrator.max_step)
        return dormand_prince(), limits, min(FIRST_STEP, integrator.max_step)
    return runge_kutta_4(), (1.0, 1.0, integrator.step), integrator.step


def polynomials_of(tableau: Tableau, h: np.ndarray, K: np.ndarray) -> np.ndarray:
    """The dense output (M, d, n) of steps of lengths (M,) with stages (M, s, n)."""
    return np.asarray(h[:, None, None] * np.einsum("sd,msn->mdn", tableau.dense, K))
