"""Integration in machine code, with the generated right-hand side of a machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import Compiled, default_evaluator
from tauloop.compiler.c.calling.library import Callback, Library
from tauloop.compiler.c.printing.rows import RowKernel
from tauloop.integrate.integrators import Integrator
from tauloop.integrate.outcome import StepOutcome
from tauloop.simulation.stepping.starts import DONE, FULL, starts_kernel, steps_text
from tauloop.simulation.stepping.stepper import CAPACITY, ENDING_OF_OUTCOME, Stepper, SteppingState
from tauloop.simulation.stepping.steps import Ending, Steps
from tauloop.simulation.system import System

#: Number of operations of the right-hand side above which the system's compiler takes minutes. The
#: embedded compiler is then used for any amount of work.
MAX_OPERATIONS = 40_000


class _StepCode:
    """The step loop of a run in machine code."""

    def __init__(self, library: Library) -> None:
        self.size: int = library.function("tl_size", "", "n")()
        self.begin: Callable[..., Any] = library.function("tl_begin", "*****dddd")
        self.advance: Callable[..., Any] = library.function("tl_advance", "*d**dn*******", "i")


@dataclass(slots=True)
class _IntegrationMemory:
    """Code and memory of an integration.

    Attributes:
        code: the step loop.
        memory: memory of the step loop.
        counts: numbers of evaluations and of rejected steps so far (2,).
    """

    code: _StepCode
    memory: np.ndarray
    counts: np.ndarray


@final
class CompiledStepper(Stepper):
    """A stepper in machine code, with the generated right-hand side.

    The code is compiled when an integration begins, because the duration determines the compiler.
    """

    def __init__(self, system: System, integrator: Integrator, directions: int = 0) -> None:
        """Store the system. `directions` is the number of directions of sensitivities."""
        super().__init__(system, integrator, directions)
        self._known = self.routines.coordinates + self.routines.velocities + self.routines.inputs
        self._degree = 3 if self.method.tableau is None else self.method.tableau.dense.shape[1]
        evaluator = system.model.evaluator
        self._evaluator = evaluator if isinstance(evaluator, Compiled) else default_evaluator()
        self._codes: dict[bool, _StepCode] = {}
        self._kernels: dict[bool, RowKernel] = {}

    def _work(self, duration: float, starts: int = 1) -> float:
        """Return the expected number of evaluations, which determines the compiler."""
        if self.system.rate.program.operations > MAX_OPERATIONS:
            return 0.0
        return starts * self.method.evaluations(duration)

    def _code(self, work: float) -> _StepCode:
        """Return the step loop of a run.

        Raises:
            EngineError: no C compiler was found, or it fails.
        """
        is_large = self._evaluator.is_large(work)
        if is_large not in self._codes:
            compiler, folder = self._evaluator.compiler(work), self._evaluator.folder
            library = Library.create(steps_text(self), compiler, folder=folder)
            self._codes[is_large] = _StepCode(library)
        return self._codes[is_large]

    def starts_kernel(self, duration: float, starts: int) -> RowKernel:
        """Return the step loop of many runs, for `many_steps`.

        Args:
            duration: duration of each run, s.
            starts: number of runs.

        Raises:
            EngineError: no C compiler was found, or it fails.
        """
        work = self._work(duration, starts)
        is_large = self._evaluator.is_large(work)
        if is_large not in self._kernels:
            self._kernels[is_large] = starts_kernel(self, self._evaluator, work)
        return self._kernels[is_large]

    def _begin_integration(self, progress: SteppingState, duration: float) -> _IntegrationMemory:
        code = self._code(self._work(duration))
        memory = np.zeros(-(-code.size // 8))
        arrays = progress.y, progress.acting, progress.guess, progress.p
        code.begin(memory, *arrays, *self.method.numbers)
        return _IntegrationMemory(code=code, memory=memory, counts=np.zeros(2))

    def advance(self, progress: SteppingState, end: float) -> Steps:
        """Return the next steps, computed in machine code that calls the laws in Python."""
        integration = progress.own
        assert isinstance(integration, _IntegrationMemory)
        n = self.routines.states
        laws = progress.laws
        time = np.empty(1)
        count = np.zeros(1, dtype=np.uintp)
        counts_before = integration.counts.copy()
        times = np.empty(CAPACITY)
        states = np.empty((CAPACITY, n))
        known = np.empty((CAPACITY, self._known))
        polynomials = np.empty((CAPACITY, self._degree, n))
        callbacks = [
            Callback(law, self.system.size, self.system.acting) for law in (laws.law, laws.sampled)
        ]
        outcome = integration.code.advance(
            integration.memory,
            end,
            *(callback.pointer for callback in callbacks),
            laws.period,
            CAPACITY,
            count,
            times,
            states,
            known,
            polynomials,
            integration.counts,
            time,
        )
        for callback in callbacks:
            callback.raise_error()
        progress.time = float(time[0])
        if outcome == DONE:
            ending = Ending.SUCCESS
        elif outcome == FULL:
            ending = None
        else:
            ending = ENDING_OF_OUTCOME[StepOutcome(outcome)]
        m = int(count[0])
        rows = times[:m], states[:m], known[:m], polynomials[:m]
        evaluations, rejected = integration.counts - counts_before
        return self._steps(progress, rows, (int(evaluations), int(rejected)), ending)
