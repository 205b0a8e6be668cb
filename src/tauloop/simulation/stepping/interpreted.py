"""Integrations without a compiler: slow, to the same numbers."""

from __future__ import annotations

from typing import final

import numpy as np

from tauloop.integrate.interpreted import InterpretedProblem, Run, Stepped
from tauloop.simulation.stepping.stepper import CAPACITY, ENDINGS, Law, Stepper, SteppingState
from tauloop.simulation.stepping.steps import Ending, Steps
from tauloop.simulation.system import System


class _InterpretedSystem(InterpretedProblem):
    """A system under a law."""

    def __init__(self, system: System, acting: np.ndarray) -> None:
        self._system, self.acting = system, acting
        self.law: Law | None = None
        self.sample = 0

    def rate(self, run: Run, time: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Rates; what is known beside them are coordinates, velocities, and what acts."""
        if self.law is not None:
            self.law(time, y, self.acting)
        rates = self._system.rates(y[None, :], self.acting[None, :], run.guess[None, :])
        good = bool(rates.is_good[0])
        if good:
            run.guess, run.known = rates.q[0], (rates.q[0], rates.v[0], self.acting.copy())
        return rates.rate[0], np.zeros(0), good

    def at_start(self, run: Run) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What was known where the last step began."""
        known = run.start_known
        assert isinstance(known, tuple)
        return known[0], known[1], known[2]

    def back(self, run: Run, y: np.ndarray) -> tuple[np.ndarray, int]:
        """Unit quaternions, or the loops' manifold."""
        system = self._system
        if system.projection is None and not system.rate.quaternions:
            return y, 0
        back, arrived = system.back_onto_loops(y)
        return back, 1 if arrived else -1


@final
class InterpretedStepper(Stepper):
    """The integrator in Python."""

    def begin(self, y: np.ndarray, acting: np.ndarray, guess: np.ndarray) -> SteppingState:
        """The start of an integration at time zero."""
        progress, method = SteppingState(time=0.0, y=y.copy(), acting=acting.copy(), guess=guess.copy()), self.method
        machine = _InterpretedSystem(self.system, progress.acting)
        progress.own = Run(
            machine,
            method.tableau,
            y,
            guess=guess,
            step=method.first,
            rtol=method.rtol,
            atol=method.atol,
            longest=method.longest,
        )
        return progress

    def advance(self, progress: SteppingState, end: float, law: Law | None, period: float | None) -> Steps:
        """Steps one by one."""
        run = progress.own
        assert isinstance(run, Run)
        machine = run.problem
        assert isinstance(machine, _InterpretedSystem)
        machine.law = None if period else law
        rows: list[tuple[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        evaluations, rejected, ending = run.evaluations, run.rejected, None
        with np.errstate(all="ignore"):
            while ending is None and run.time < end and len(rows) < CAPACITY:
                limit = end
                if law is not None and period:
                    if run.time >= machine.sample * period:
                        law(run.time, run.y, progress.acting)
                        machine.sample, run.is_known = machine.sample + 1, False
                    limit = min(end, machine.sample * period)
                steps = run.steps
                code = run.next(limit)
                if run.steps > steps:
                    rows.append((run.origin, run.start, *machine.at_start(run), run.Q))
                ending = None if code == Stepped.STEPPED else ENDINGS[code]
        progress.time, progress.guess[:], progress.y[:] = run.time, run.guess, run.y
        shape, n, m = self.system.model.topology, self.system.size, len(rows)
        columns: list[tuple[object, ...]] = list(zip(*rows, strict=True)) or [()] * 6
        return Steps(
            time=np.array([*columns[0], run.time], dtype=float),
            y=np.array([*columns[1], run.y], dtype=float).reshape(m + 1, n),
            q=np.array(columns[2], dtype=float).reshape(m, shape.n_q),
            v=np.array(columns[3], dtype=float).reshape(m, shape.n_v),
            acting=np.array(columns[4], dtype=float).reshape(m, self.system.acting),
            polynomials=np.array(columns[5], dtype=float).reshape(m, len(run.Q), n),
            evaluations=run.evaluations - evaluations,
            rejected=run.rejected - rejected,
            ending=Ending.END if ending is None and run.time >= end else ending,
        )
