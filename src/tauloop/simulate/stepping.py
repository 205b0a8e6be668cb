"""Integrations step by step: explicit ones in machine code or interpreted, implicit ones by SciPy."""

from __future__ import annotations

import ctypes
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.integrate

from tauloop.errors import EngineError, InputError, Problem
from tauloop.functions.compiled import loaded
from tauloop.functions.compiler import find_compiler
from tauloop.functions.evaluator import Compiled
from tauloop.functions.source import HEALTH
from tauloop.simulate import stepping_source as code
from tauloop.simulate.options import DormandPrince, Integrator, Radau, RungeKutta4
from tauloop.simulate.steps import Ending, Steps
from tauloop.simulate.system import System
from tauloop.simulate.tableaus import Tableau, dormand_prince, runge_kutta_4

_LOGGER = logging.getLogger("tauloop")
#: Steps that a part of an integration holds at most.
CAPACITY = 512
#: The first step of an adaptive integrator, s; its error estimate soon finds a better one.
FIRST_STEP = 1e-4
#: Instructions above which compiling takes minutes, so that the loop is interpreted.
LARGEST = 40_000

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


def stepper(system: System, integrator: Integrator) -> Stepper:
    """The stepper of an integrator; compiled with the model where the model's evaluator compiles."""
    if isinstance(integrator, Radau):
        return ImplicitStepper(system, integrator)
    if not isinstance(integrator, DormandPrince | RungeKutta4):
        what, remedy = f"{type(integrator).__name__} is unknown", "DormandPrince, RungeKutta4 or Radau"
        raise InputError(Problem(where="integrator", what=what, remedy=remedy))
    evaluator = system.model.evaluator
    if isinstance(evaluator, Compiled) and system.rate.program.operations <= LARGEST:
        try:
            return CompiledStepper(system, integrator, evaluator)
        except EngineError as error:
            _LOGGER.warning("simulating interpreted, which is some hundred times slower: %s", error)
    return InterpretedStepper(system, integrator)


def _method(integrator: DormandPrince | RungeKutta4) -> tuple[Tableau, tuple[float, float, float], float]:
    """Tableau; rtol, atol and longest step; first step."""
    if isinstance(integrator, DormandPrince):
        limits = (integrator.rtol, integrator.atol, integrator.max_step)
        return dormand_prince(), limits, min(FIRST_STEP, integrator.max_step)
    return runge_kutta_4(), (1.0, 1.0, integrator.step), integrator.step


_LAW = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_double))
_ENDINGS = {code.UNHEALTHY: Ending.SINGULAR, code.TOO_SMALL: Ending.STEP, code.LOOPS_LOST: Ending.LOOPS}


@final
class CompiledStepper(Stepper):
    """An explicit integrator in machine code, around the generated right-hand side."""

    def __init__(self, system: System, integrator: DormandPrince | RungeKutta4, evaluator: Compiled) -> None:
        """Compile, or find in the cache.

        Raises:
            EngineError: the library cannot be made.
        """
        super().__init__(system)
        compiler = find_compiler()
        if compiler is None:
            raise EngineError(Problem(where="C compiler", what="none was found (cc, gcc, clang)", remedy="install one"))
        self._tableau, self._limits, self._first_step = _method(integrator)
        source, _ = code.stepping_source(system, self._tableau)
        _, library = loaded(source, compiler, False, evaluator.folder)
        self._advance = library.tl_advance
        double, pointer, size = ctypes.c_double, ctypes.c_void_p, ctypes.c_size_t
        self._advance.argtypes = [
            *(pointer, pointer, double, pointer, pointer, pointer, _LAW, double, double, double, double, size),
            *([pointer] * 7),
        ]
        self._advance.restype = ctypes.c_int

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
            polynomials=_polynomials(self._tableau, np.diff(ends), K[:m]),
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


def _polynomials(tableau: Tableau, h: np.ndarray, K: np.ndarray) -> np.ndarray:
    return np.asarray(h[:, None, None] * np.einsum("sd,msn->mdn", tableau.dense, K))


@final
class InterpretedStepper(Stepper):
    """The same explicit integrators without a compiler: slow, to the same numbers."""

    def __init__(self, system: System, integrator: DormandPrince | RungeKutta4) -> None:
        """Prepare."""
        super().__init__(system)
        self._tableau, self._limits, self._first_step = _method(integrator)

    @property
    def first_step(self) -> float:
        """The step that is tried first, s."""
        return self._first_step

    def advance(self, progress: Progress, end: float, law: Law | None, period: float | None) -> Steps:
        """Steps one by one."""
        taken = _Taken(self.system, progress)
        continuous = None if period else law
        while progress.time < end:
            if len(taken) == CAPACITY:
                return taken.steps(self._tableau, progress, None)
            limit = _sampled(progress, end, law, period)
            first = _evaluated(self.system, progress, progress.time, progress.y, continuous)
            if first is None:
                return taken.steps(self._tableau, progress, Ending.SINGULAR)
            acting = progress.acting.copy()
            step = self._step(progress, first[0], limit, continuous)
            if isinstance(step, Ending):
                return taken.steps(self._tableau, progress, step)
            taken.add(progress, first[1], first[2], acting, step.K)
            progress.time = step.time
            progress.y[:], arrived = self.system.back_onto_loops(step.y)
            if not arrived:
                return taken.steps(self._tableau, progress, Ending.LOOPS)
        return taken.steps(self._tableau, progress, Ending.END)

    def _step(self, progress: Progress, first: np.ndarray, limit: float, law: Law | None) -> _Step | Ending:
        """One step that is good enough, or why there is none; the proposal for the next is left in the memory."""
        memory, is_adaptive, most = progress.memory, self._tableau.is_adaptive, code.GREATEST_FACTOR
        while True:
            h = min(memory[0], self._limits[2])
            is_last = progress.time + h * (1 + code.STRETCH) >= limit
            h = limit - progress.time if is_last else h
            K, following = self._stages(progress, first, h, law)
            good, factor = K is not None, code.RETREAT
            if K is not None and is_adaptive:
                good, factor = self._judged(progress.y, following, h, K)
                factor = min(factor, most)
            if good and K is not None:
                if is_adaptive and (not is_last or factor < 1):
                    memory[0] = h * factor
                return _Step(time=limit if is_last else progress.time + h, y=following, K=K)
            memory[4] += 1
            smallest = code.SMALLEST_RETREAT if K is None else code.SMALLEST_STEP
            if not is_adaptive or h < smallest:
                return Ending.SINGULAR if K is None else Ending.STEP
            most, memory[0] = 1.0, h * factor

    def _stages(
        self, progress: Progress, first: np.ndarray, h: float, law: Law | None
    ) -> tuple[np.ndarray | None, np.ndarray]:
        tableau = self._tableau
        K = np.empty((len(tableau.c), self.system.size))
        K[0] = first
        y = progress.y
        for s in range(1, len(tableau.c)):
            y = progress.y + h * (tableau.A[s, :s] @ K[:s])
            found = _evaluated(self.system, progress, progress.time + tableau.c[s] * h, y, law)
            if found is None:
                return None, y
            K[s] = found[0]
        return K, y

    def _judged(self, y: np.ndarray, following: np.ndarray, h: float, K: np.ndarray) -> tuple[bool, float]:
        """Whether a step's error is small enough, and by how much the next may be longer."""
        rtol, atol, _ = self._limits
        scale = atol + rtol * np.maximum(np.abs(y), np.abs(following))
        norm = float(np.sqrt(np.mean((h * (self._tableau.error @ K) / scale) ** 2)))
        factor = code.SAFETY * norm**-0.2 if norm > 0 else code.GREATEST_FACTOR
        return norm < 1.0, min(max(factor, code.LEAST_FACTOR), code.GREATEST_FACTOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One accepted step: its end, the state there before it is put back onto the loops, and its stages."""

    time: float
    y: np.ndarray
    K: np.ndarray


def _sampled(progress: Progress, end: float, law: Law | None, period: float | None) -> float:
    """Sample a sampled law when it is due; the time up to which what acts is known, s."""
    if law is None or not period:
        return end
    if progress.time >= progress.memory[2] * period:
        law(progress.time, progress.y, progress.acting)
        progress.memory[2] += 1
    return min(end, float(progress.memory[2] * period))


def _evaluated(
    system: System, progress: Progress, time: float, y: np.ndarray, law: Law | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Rate, q and v at a state; None where the machine cannot be there. Newton's start moves along."""
    if law is not None:
        law(time, y, progress.acting)
    progress.memory[3] += 1
    with np.errstate(all="ignore"):
        found = system.rates(y[None, :], progress.acting[None, :], progress.guess[None, :])
    if not found.is_good[0]:
        return None
    progress.guess[:] = found.q[0]
    return found.rate[0], found.q[0], found.v[0]


class _Taken:
    """Steps as they are taken."""

    def __init__(self, system: System, progress: Progress) -> None:
        self._system = system
        self._before = progress.memory[3:5].copy()
        self._rows: list[tuple[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, progress: Progress, q: np.ndarray, v: np.ndarray, acting: np.ndarray, K: np.ndarray) -> None:
        self._rows.append((progress.time, progress.y.copy(), q, v, acting, K))

    def steps(self, tableau: Tableau | None, progress: Progress, ending: Ending | None) -> Steps:
        """All of them; without a tableau the polynomials are at hand in place of the stages."""
        shape, n, m = self._system.model.topology, self._system.size, len(self)
        columns: list[tuple[object, ...]] = list(zip(*self._rows, strict=True)) or [()] * 6
        times = np.array([*columns[0], progress.time], dtype=float)
        K = np.array(columns[5], dtype=float)
        if tableau is not None:
            K = _polynomials(tableau, np.diff(times), K.reshape(m, len(tableau.c), n))
        spent = progress.memory[3:5] - self._before
        return Steps(
            time=times,
            y=np.array([*columns[1], progress.y], dtype=float).reshape(m + 1, n),
            q=np.array(columns[2], dtype=float).reshape(m, shape.n_q),
            v=np.array(columns[3], dtype=float).reshape(m, shape.n_v),
            acting=np.array(columns[4], dtype=float).reshape(m, self._system.acting),
            polynomials=K.reshape(m, K.shape[1] if m else 1, n),
            evaluations=int(spent[0]),
            rejected=int(spent[1]),
            ending=ending,
        )


@final
class ImplicitStepper(Stepper):
    """SciPy's Radau IIA method, the state put back onto the loops between steps."""

    def __init__(self, system: System, integrator: Radau) -> None:
        """Prepare."""
        super().__init__(system)
        self._options = integrator

    def advance(self, progress: Progress, end: float, law: Law | None, period: float | None) -> Steps:
        """Steps until the end or the next sample of a sampled law."""
        taken = _Taken(self.system, progress)
        limit = _sampled(progress, end, law, period)
        continuous = None if period else law

        def rate(time: float, y: np.ndarray) -> np.ndarray:
            found = _evaluated(self.system, progress, time, y, continuous)
            return np.full(self.system.size, np.nan) if found is None else found[0]

        def finished(ending: Ending | None) -> Steps:
            return taken.steps(None, progress, ending)

        options = self._options
        if _evaluated(self.system, progress, progress.time, progress.y, continuous) is None:
            return finished(Ending.SINGULAR)
        solver = scipy.integrate.Radau(
            rate,
            progress.time,
            progress.y.copy(),
            limit,
            max_step=options.max_step,
            rtol=max(options.rtol, 1e-13),
            atol=options.atol,
            first_step=min(FIRST_STEP, limit - progress.time),
        )
        while solver.status == "running" and len(taken) < CAPACITY:
            known = _evaluated(self.system, progress, progress.time, progress.y, continuous)
            acting = progress.acting.copy()
            try:
                with np.errstate(all="ignore"):
                    solver.step()
            except (ValueError, np.linalg.LinAlgError):  # the factorisation of a matrix that is not finite
                return finished(Ending.SINGULAR)
            if solver.status == "failed" or known is None:
                return finished(Ending.SINGULAR if known is None else Ending.STEP)
            dense = solver.dense_output()
            taken.add(progress, known[1], known[2], acting, np.asarray(dense.Q).T)
            progress.time = float(solver.t)
            progress.y[:], arrived = self.system.back_onto_loops(solver.y)
            if not arrived:
                return finished(Ending.LOOPS)
            solver.y = progress.y.copy()
            solver.f = rate(progress.time, solver.y)
        return finished(Ending.END if progress.time >= end else None)
