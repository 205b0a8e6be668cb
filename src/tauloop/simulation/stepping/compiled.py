"""Integration in machine code, with the generated right-hand side of one machine."""

from __future__ import annotations

from typing import final

import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import Compiled
from tauloop.compiler.c.calling.library import Callback, Library
from tauloop.compiler.c.printing.rows import CompiledRows, row_kernel_letters
from tauloop.integrate.integrators import Integrator
from tauloop.integrate.interpreted import StepOutcome
from tauloop.simulation.stepping.starts import DONE, FULL, many_steps, steps_text
from tauloop.simulation.stepping.stepper import CAPACITY, ENDING_OF_OUTCOME, Stepper, SteppingState
from tauloop.simulation.stepping.steps import Ending, ManySteps, Steps
from tauloop.simulation.system import System

#: Largest number of operations to compile; larger programs take minutes and are interpreted.
MAX_OPERATIONS = 40_000


@dataclass(slots=True)
class _IntegrationMemory:
    """Memory of an integration, with the evaluations and rejected steps counted so far."""

    memory: np.ndarray
    counted: np.ndarray


@final
class CompiledStepper(Stepper):
    """A stepper in machine code, with the generated right-hand side."""

    def __init__(
        self, system: System, integrator: Integrator, evaluator: Compiled, directions: int = 0
    ) -> None:
        """Compile the code, or take it from the cache.

        Raises:
            EngineError: the library cannot be compiled.
        """
        super().__init__(system, integrator, directions)
        self._known = self.routines.coordinates + self.routines.velocities + self.routines.inputs
        text, letters = steps_text(self), row_kernel_letters(2, 9)
        self._code = Library.made(text, folder=evaluator.folder)
        self._many = CompiledRows(text, "tl_many", letters, evaluator.threads, evaluator.folder)
        self._size = self._code.function("tl_size", "", "n")()
        self._begin = self._code.function("tl_begin", "*****dddd")
        self._advance = self._code.function("tl_advance", "*d**dn*******", "i")
        self._degree = 3 if self.method.tableau is None else self.method.tableau.dense.shape[1]

    def _begin_integration(self, progress: SteppingState) -> _IntegrationMemory:
        own = _IntegrationMemory(memory=np.zeros(-(-self._size // 8)), counted=np.zeros(2))
        arrays = progress.y, progress.acting, progress.guess, progress.p
        self._begin(own.memory, *arrays, *self.method.numbers)
        return own

    def advance(self, progress: SteppingState, end: float) -> Steps:
        """Return the next steps, computed in machine code that calls the laws back."""
        own, n, laws = progress.own, self.routines.states, progress.laws
        assert isinstance(own, _IntegrationMemory)
        time, count, before = np.empty(1), np.zeros(1, dtype=np.uintp), own.counted.copy()
        times, states = np.empty(CAPACITY), np.empty((CAPACITY, n))
        known, polynomials = (
            np.empty((CAPACITY, self._known)),
            np.empty((CAPACITY, self._degree, n)),
        )
        called = [
            Callback(each, self.system.size, self.system.acting)
            for each in (laws.law, laws.sampled)
        ]
        pointers = (each.pointer for each in called)
        arrays = count, times, states, known, polynomials, own.counted, time
        code = self._advance(own.memory, end, *pointers, laws.period, CAPACITY, *arrays)
        for each in called:
            each.raise_error()
        progress.time, m, spent = float(time[0]), int(count[0]), own.counted - before
        if code == DONE:
            ending = Ending.SUCCESS
        elif code == FULL:
            ending = None
        else:
            ending = ENDING_OF_OUTCOME[StepOutcome(code)]
        rows = times[:m], states[:m], known[:m], polynomials[:m]
        return self._steps(progress, rows, (int(spent[0]), int(spent[1])), ending)

    def many(
        self, y: np.ndarray, acting: np.ndarray, guess: np.ndarray, end: float, times: np.ndarray
    ) -> ManySteps:
        """Return many integrations, divided among the threads of the evaluator (see `many_steps`).

        Args:
            y: start states (N, n).
            acting: constant forces and wrench of each (N, n_acting).
            guess: coordinates from which Newton's method starts (N, n_q).
            end: end time, s.
            times: times of the returned states (T,), increasing, s.
        """
        held = np.broadcast_to(acting, (len(y), self.system.acting))
        return many_steps(self._many, self, (y, guess, held), end, times)
