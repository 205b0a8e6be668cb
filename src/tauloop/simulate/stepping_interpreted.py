"""The explicit integrators without a compiler, and what the implicit one shares with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from tauloop.simulate import stepping_source as code
from tauloop.simulate.options import DormandPrince, RungeKutta4
from tauloop.simulate.stepping import CAPACITY, Evaluated, Law, Progress, Stepper, explicit_method, polynomials_of
from tauloop.simulate.steps import Ending, Steps
from tauloop.simulate.system import System
from tauloop.simulate.tableaus import Tableau


@final
class InterpretedStepper(Stepper):
    """The same explicit integrators without a compiler: slow, to the same numbers."""

    def __init__(self, system: System, integrator: DormandPrince | RungeKutta4) -> None:
        """Prepare."""
        super().__init__(system)
        self._tableau, self._limits, self._first_step = explicit_method(integrator)

    @property
    def first_step(self) -> float:
        """The step that is tried first, s."""
        return self._first_step

    def advance(self, progress: Progress, end: float, law: Law | None, period: float | None) -> Steps:
        """Steps one by one."""
        taken = Taken(self.system, progress)
        continuous = None if period else law
        while progress.time < end:
            if len(taken) == CAPACITY:
                return taken.steps(self._tableau, progress, None)
            limit = sampled(progress, end, law, period)
            first = evaluated(self.system, progress, progress.time, progress.y, continuous)
            if first is None:
                return taken.steps(self._tableau, progress, Ending.SINGULAR)
            acting = progress.acting.copy()
            step = self._step(progress, first[0], limit, continuous)
            if isinstance(step, Ending):
                return taken.steps(self._tableau, progress, step)
            taken.add(progress, first[1], first[2], acting, step.K)
            progress.time, progress.y[:] = step.time, step.y
            if not step.arrived:
                return taken.steps(self._tableau, progress, Ending.LOOPS)
        return taken.steps(self._tableau, progress, Ending.END)

    def _step(self, progress: Progress, first: np.ndarray, limit: float, law: Law | None) -> _Step | Ending:
        """One step that is good enough, or why there is none; the proposal for the next is left in the memory."""
        memory, is_adaptive, most = progress.memory, self._tableau.is_adaptive, code.GREATEST_FACTOR
        near = progress.guess.copy()
        while True:
            h = min(memory[0], self._limits[2])
            is_last = progress.time + h * (1 + code.STRETCH) >= limit
            h = limit - progress.time if is_last else h
            K, following = self._stages(progress, first, h, law)
            good, factor, is_healthy = K is not None, code.RETREAT, K is not None
            if K is not None and is_adaptive:
                good, factor = self._judged(progress.y, following, h, K)
                factor = min(factor, most)
            back, arrived = self.system.back_onto_loops(following) if good else (following, True)
            if good and is_adaptive:
                way = self._norm(back - following, progress.y, following)
                good = is_healthy = arrived and way < code.FARTHEST_RETURN
                factor = factor if good else code.RETREAT
            if good and K is not None:
                if is_adaptive and (not is_last or factor < 1):
                    memory[0] = h * factor
                return _Step(time=limit if is_last else progress.time + h, y=back, K=K, arrived=arrived)
            memory[4] += 1
            smallest = code.SMALLEST_STEP if is_healthy else code.SMALLEST_RETREAT
            if not is_adaptive or h < smallest:
                return Ending.LOOPS if not arrived else Ending.STEP if is_healthy else Ending.SINGULAR
            most, memory[0] = 1.0, h * factor
            progress.guess[:] = near

    def _stages(
        self, progress: Progress, first: np.ndarray, h: float, law: Law | None
    ) -> tuple[np.ndarray | None, np.ndarray]:
        tableau = self._tableau
        K = np.empty((len(tableau.c), self.system.size))
        K[0] = first
        y = progress.y
        for s in range(1, len(tableau.c)):
            y = progress.y + h * (tableau.A[s, :s] @ K[:s])
            found = evaluated(self.system, progress, progress.time + tableau.c[s] * h, y, law)
            if found is None:
                return None, y
            K[s] = found[0]
        return K, y

    def _judged(self, y: np.ndarray, following: np.ndarray, h: float, K: np.ndarray) -> tuple[bool, float]:
        """Whether a step's error is small enough, and by how much the next may be longer."""
        norm = self._norm(h * (self._tableau.error @ K), y, following)
        factor = code.SAFETY * norm**-0.2 if norm > 0 else code.GREATEST_FACTOR
        return norm < 1.0, min(max(factor, code.LEAST_FACTOR), code.GREATEST_FACTOR)

    def _norm(self, error: np.ndarray, y: np.ndarray, following: np.ndarray) -> float:
        """An error in shares of what is allowed, root mean square over the state."""
        rtol, atol, _ = self._limits
        scale = atol + rtol * np.maximum(np.abs(y), np.abs(following))
        return float(np.sqrt(np.mean((error / scale) ** 2)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One accepted step: its end, the state there back on the loops, its stages, and whether the way back was found."""

    time: float
    y: np.ndarray
    K: np.ndarray
    arrived: bool


def sampled(progress: Progress, end: float, law: Law | None, period: float | None) -> float:
    """Sample a sampled law when it is due; the time up to which what acts is known, s."""
    if law is None or not period:
        return end
    if progress.time >= progress.memory[2] * period:
        law(progress.time, progress.y, progress.acting)
        progress.memory[2] += 1
    return min(end, float(progress.memory[2] * period))


def evaluated(system: System, progress: Progress, time: float, y: np.ndarray, law: Law | None) -> Evaluated | None:
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


class Taken:
    """Steps as they are taken."""

    def __init__(self, system: System, progress: Progress) -> None:
        """Begin where an integration stands."""
        self._system = system
        self._before = progress.memory[3:5].copy()
        self._rows: list[tuple[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, progress: Progress, q: np.ndarray, v: np.ndarray, acting: np.ndarray, K: np.ndarray) -> None:
        """Keep the step that is about to begin."""
        self._rows.append((progress.time, progress.y.copy(), q, v, acting, K))

    def steps(self, tableau: Tableau | None, progress: Progress, ending: Ending | None) -> Steps:
        """All of them; without a tableau the polynomials are at hand in place of the stages."""
        shape, n, m = self._system.model.topology, self._system.size, len(self)
        columns: list[tuple[object, ...]] = list(zip(*self._rows, strict=True)) or [()] * 6
        times = np.array([*columns[0], progress.time], dtype=float)
        K = np.array(columns[5], dtype=float)
        if tableau is not None:
            K = polynomials_of(tableau, np.diff(times), K.reshape(m, len(tableau.c), n))
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
