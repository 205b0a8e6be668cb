"""Integrations in machine code, around the generated right-hand side of one machine."""

from __future__ import annotations

from typing import final

import numpy as np

from tauloop.codegen.evaluator import Compiled
from tauloop.codegen.library import Callback, Library
from tauloop.integrate.integrators import Integrator
from tauloop.integrate.interpreted import Stepped
from tauloop.records import dataclass
from tauloop.simulation.stepping.source import stepping_source
from tauloop.simulation.stepping.stepper import CAPACITY, ENDINGS, Law, Stepper, SteppingState
from tauloop.simulation.stepping.steps import Ending, ManySteps, Steps
from tauloop.simulation.system import System

#: Instructions above which compiling takes minutes, so that the loop is interpreted.
LARGEST = 40_000
#: Further outcomes of `steps.c`.
DONE, FULL = 10, 11


@dataclass(slots=True)
class _Own:
    """Memory of an integration, and its evaluations and rejections so far."""

    memory: np.ndarray
    counted: np.ndarray


@final
class CompiledStepper(Stepper):
    """The integrator in machine code, around the generated right-hand side."""

    def __init__(self, system: System, integrator: Integrator, evaluator: Compiled) -> None:
        """Compile, or find in the cache.

        Raises:
            EngineError: the library cannot be made.
        """
        super().__init__(system, integrator)
        source = stepping_source(system, self.method.tableau)
        self._code = Library.made(source, threads=evaluator.threads, folder=evaluator.folder)
        self._size = self._code.function("tl_size", "", "n")()
        self._begin = self._code.function("tl_begin", "****dddd")
        self._advance = self._code.function("tl_advance", "*d*dn*******", "i")
        self._many = self._code.function("tl_many", "nn*dddddn********")
        self._acting = max(system.acting, 1)
        self._degree = 3 if self.method.tableau is None else self.method.tableau.dense.shape[1]

    def _numbers(self) -> tuple[float, float, float, float]:
        return self.method.first, self.method.rtol, self.method.atol, self.method.longest

    def begin(self, y: np.ndarray, acting: np.ndarray, guess: np.ndarray) -> SteppingState:
        """The start of an integration at time zero."""
        filled = np.zeros(self._acting)
        forces = filled[: len(acting)]
        forces[:] = acting
        own = _Own(memory=np.zeros(-(-self._size // 8)), counted=np.zeros(2))
        progress = SteppingState(time=0.0, y=np.array(y, dtype=float), acting=forces, guess=guess.copy(), own=own)
        self._begin(own.memory, progress.y, filled, progress.guess, *self._numbers())
        return progress

    def advance(self, progress: SteppingState, end: float, law: Law | None, period: float | None) -> Steps:
        """Steps in machine code; the law is called back for."""
        own = progress.own
        assert isinstance(own, _Own)
        n, shape = self.system.size, self.system.model.topology
        n_q, n_v = shape.n_q, shape.n_v
        time, count = np.empty(1), np.zeros(1, dtype=np.uintp)
        times, states = np.empty(CAPACITY), np.empty((CAPACITY, n))
        known = np.empty((CAPACITY, n_q + n_v + self._acting))
        polynomials, before = np.empty((CAPACITY, self._degree, n)), own.counted.copy()
        called = Callback(law, n, self.system.acting)
        arrays = (times, states, known, polynomials, own.counted, time)
        code = self._advance(own.memory, end, called.pointer, period or 0.0, CAPACITY, count, *arrays)
        called.raise_error()
        progress.time, m = float(time[0]), int(count[0])
        spent = own.counted - before
        return Steps(
            time=np.append(times[:m], progress.time),
            y=np.vstack([states[:m], progress.y]),
            q=known[:m, :n_q].copy(),
            v=known[:m, n_q : n_q + n_v].copy(),
            acting=known[:m, n_q + n_v :][:, : self.system.acting].copy(),
            polynomials=polynomials[:m].copy(),
            evaluations=int(spent[0]),
            rejected=int(spent[1]),
            ending={DONE: Ending.END, FULL: None}[code] if code in (DONE, FULL) else ENDINGS[Stepped(code)],
        )

    def many(self, y: np.ndarray, acting: np.ndarray, guess: np.ndarray, end: float, times: np.ndarray) -> ManySteps:
        """Many integrations in one call, on all cores where the evaluator has threads.

        Args:
            y: starts (N, n).
            acting: what acts on each, constant (N, n_acting).
            guess: coordinates from which Newton's method starts (N, n_q).
            end: s.
            times: at which states are wanted (T,), rising, s.
        """
        count, wanted = len(y), len(times)
        held = np.zeros((count, self._acting))
        held[:, : self.system.acting] = acting
        wanted_at, *inputs = (np.ascontiguousarray(array, dtype=float) for array in (times, y, guess, held))
        states = np.full((count, wanted, self.system.size), np.nan)
        near = np.full((count, wanted, self.system.model.topology.n_q), np.nan)
        reached, codes, taken = np.zeros(count), np.zeros(count, dtype=np.long), np.zeros(count, dtype=np.long)
        self._code.one_thread_after_fork()
        numbers = (end, *self._numbers(), self.max_steps)
        self._many(count, wanted, wanted_at, *numbers, *inputs, states, near, reached, codes, taken)
        endings = {DONE: Ending.END, FULL: Ending.STEPS} | {int(code): ending for code, ending in ENDINGS.items()}
        return ManySteps(
            y=states, near=near, reached=reached, endings=tuple(endings[int(c)] for c in codes), steps=taken.astype(int)
        )
