"""Explicit integrators in machine code, around the generated right-hand side of one machine."""

from __future__ import annotations

import ctypes
import logging
from typing import final

import numpy as np

from tauloop.codegen.compiled import loaded, one_thread_after_fork
from tauloop.codegen.compiler import find_compiler
from tauloop.codegen.evaluator import Compiled
from tauloop.codegen.signature import HEALTH
from tauloop.errors import EngineError, Problem
from tauloop.simulate import stepping_source as code
from tauloop.simulate.options import DormandPrince, RungeKutta4
from tauloop.simulate.stepping import CAPACITY, Evaluated, Law, Progress, Stepper, explicit_method, polynomials_of
from tauloop.simulate.steps import Ending, ManySteps, Steps
from tauloop.simulate.system import System
from tauloop.simulate.tableaus import Tableau, dormand_prince

_LOGGER = logging.getLogger("tauloop")
#: Instructions above which compiling takes minutes, so that the loop is interpreted.
LARGEST = 40_000
_LAW = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_double))
_ENDINGS = {code.UNHEALTHY: Ending.SINGULAR, code.TOO_SMALL: Ending.STEP, code.LOOPS_LOST: Ending.LOOPS}


def machine_code(system: System, tableau: Tableau, evaluator: Compiled) -> ctypes.CDLL:
    """The machine code around a system's right-hand side.

    Raises:
        EngineError: it cannot be made.
    """
    compiler = find_compiler()
    if compiler is None:
        raise EngineError(Problem(where="C compiler", what="none was found (cc, gcc, clang)", remedy="install one"))
    source, _ = code.stepping_source(system, tableau)
    return loaded(source, compiler, evaluator.threads, evaluator.folder)[1]


@final
class CompiledStepper(Stepper):
    """An explicit integrator in machine code, around the generated right-hand side."""

    def __init__(self, system: System, integrator: DormandPrince | RungeKutta4, evaluator: Compiled) -> None:
        """Compile, or find in the cache.

        Raises:
            EngineError: the library cannot be made.
        """
        super().__init__(system)
        self._tableau, self._limits, self._first_step = explicit_method(integrator)
        self._most = integrator.max_steps
        library = machine_code(system, self._tableau, evaluator)
        self._code, self._advance, self._many = library, library.tl_advance, library.tl_many
        double, pointer, size = ctypes.c_double, ctypes.c_void_p, ctypes.c_size_t
        self._advance.argtypes = [
            *(pointer, pointer, double, pointer, pointer, pointer, _LAW, double, double, double, double, size),
            *([pointer] * 7),
        ]
        self._advance.restype = ctypes.c_int
        self._many.argtypes = [size, size, pointer, *([double] * 5), size, *([pointer] * 8)]
        self._many.restype = None

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
        held = np.zeros((count, max(self.system.acting, 1)))
        held[:, : self.system.acting] = acting
        inputs = [np.ascontiguousarray(array, dtype=float) for array in (times, y, guess, held)]
        states = np.full((count, wanted, self.system.size), np.nan)
        near = np.full((count, wanted, self.system.model.topology.n_q), np.nan)
        reached, codes, taken = np.zeros(count), np.zeros(count, dtype=ctypes.c_long), np.zeros(count, ctypes.c_long)
        numbers = (end, self._first_step, *self._limits, self._most)
        pointers = [array.ctypes.data for array in (*inputs[1:], states, near, reached, codes, taken)]
        one_thread_after_fork(self._code)
        self._many(count, wanted, inputs[0].ctypes.data, *numbers, *pointers)
        endings = {**_ENDINGS, code.DONE: Ending.END, code.FULL: Ending.STEPS}
        return ManySteps(
            y=states, near=near, reached=reached, endings=tuple(endings[int(c)] for c in codes), steps=taken.astype(int)
        )

    @property
    def first_step(self) -> float:
        """The step that is tried first, s."""
        return self._first_step

    def advance(self, progress: Progress, end: float, law: Law | None, period: float | None) -> Steps:
        """Steps in machine code; the law is called back for."""
        n, shape, stages = self.system.size, self.system.model.topology, len(self._tableau.c)
        width = max(self.system.acting, 1)
        time, count = np.array([progress.time]), np.zeros(1, dtype=np.uintp)
        times, states = np.empty(CAPACITY), np.empty((CAPACITY, n))
        known, acted = np.empty((CAPACITY, shape.n_q + shape.n_v)), np.empty((CAPACITY, width))
        K, health = np.empty((CAPACITY, stages, n)), np.zeros(HEALTH)
        acting = np.zeros(width)
        acting[: self.system.acting] = progress.acting
        before = progress.memory[3:5].copy()
        called = _Callback(law, n, self.system.acting)
        result = self._advance(
            *(time.ctypes.data, progress.y.ctypes.data, end, progress.memory.ctypes.data, progress.guess.ctypes.data),
            *(acting.ctypes.data, called.pointer, period or 0.0, *self._limits, CAPACITY, count.ctypes.data),
            *(array.ctypes.data for array in (times, states, known, acted, K, health)),
        )
        called.raise_error()
        progress.time, progress.acting[:] = float(time[0]), acting[: self.system.acting]
        m = int(count[0])
        ends = np.append(times[:m], progress.time)
        spent = progress.memory[3:5] - before
        return Steps(
            time=ends,
            y=np.vstack([states[:m], progress.y]),
            q=known[:m, : shape.n_q].copy(),
            v=known[:m, shape.n_q :].copy(),
            acting=acted[:m, : self.system.acting].copy(),
            polynomials=polynomials_of(self._tableau, np.diff(ends), K[:m]),
            evaluations=int(spent[0]),
            rejected=int(spent[1]),
            ending=Ending.END if result == code.DONE else _ENDINGS.get(result),
        )


class _Callback:
    """A law as C calls it; what it raises is kept, for C cannot pass it on."""

    def __init__(self, law: Law | None, n: int, n_acting: int) -> None:
        self._error: Exception | None = None

        def call(time: float, state: object, acting: object) -> None:
            y = np.ctypeslib.as_array(state, (n,))
            filled = np.ctypeslib.as_array(acting, (n_acting,))
            try:
                law(time, y, filled)  # type: ignore[misc]
            except Exception as error:
                self._error = self._error or error
                filled[:] = np.nan

        self.pointer = _LAW(call) if law is not None else _LAW()

    def raise_error(self) -> None:
        """Raise what the law raised."""
        if self._error is not None:
            raise self._error


class CompiledRate:
    """The right-hand side of one system as machine code, called from Python."""

    def __init__(self, system: System, evaluator: Compiled) -> None:
        """Compile, or find in the cache (the code of `CompiledStepper` holds it too).

        Raises:
            EngineError: the library cannot be made.
        """
        self._call = machine_code(system, dormand_prince(), evaluator).tl_evaluate
        self._call.restype = ctypes.c_int
        self._call.argtypes = [ctypes.c_void_p] * 6
        self._sizes = (system.size, system.model.topology.n_q, system.model.topology.n_v)

    def __call__(self, y: np.ndarray, acting: np.ndarray, guess: np.ndarray) -> Evaluated | None:
        """Rate, q and v at a state; Newton's start moves along."""
        rate, q, v = (np.empty(size) for size in self._sizes)
        state = np.ascontiguousarray(y, dtype=float)
        good = self._call(*(array.ctypes.data for array in (state, acting, guess, rate, q, v)))
        return (rate, q, v) if good else None


def compiled_rate(system: System) -> CompiledRate | None:
    """The right-hand side as machine code; None, and a warning in the log, where it cannot be made."""
    evaluator = system.model.evaluator
    if not isinstance(evaluator, Compiled) or system.rate.program.operations > LARGEST:
        return None
    try:
        return CompiledRate(system, evaluator)
    except EngineError as error:
        _LOGGER.warning("simulating interpreted, which is some hundred times slower: %s", error)
        return None
