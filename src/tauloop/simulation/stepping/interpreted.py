"""Integrations without a compiler: slow, to the same numbers."""

from __future__ import annotations

from typing import final

import numpy as np

from tauloop.integrate.interpreted import Run, Stepped
from tauloop.integrate.system import RoutineProblem
from tauloop.simulation.stepping.stepper import CAPACITY, ENDINGS, Law, Stepper, SteppingState
from tauloop.simulation.stepping.steps import Ending, Steps


@final
class InterpretedStepper(Stepper):
    """The integrator in Python."""

    def _begun(self, progress: SteppingState) -> Run:
        problem, method = RoutineProblem(self.routines, progress.p, np.zeros(0)), self.method
        problem.arrays["in"] = progress.acting
        return Run(
            problem,
            method.tableau,
            progress.y,
            guess=progress.guess,
            step=method.first,
            rtol=method.rtol,
            atol=method.atol,
            longest=method.longest,
        )

    def advance(
        self,
        progress: SteppingState,
        end: float,
        law: Law | None = None,
        sampled: Law | None = None,
        period: float = 0.0,
    ) -> Steps:
        """Steps one by one."""
        run = progress.own
        assert isinstance(run, Run)
        assert isinstance(run.problem, RoutineProblem)
        run.problem.law = law
        rows: list[tuple[object, ...]] = []
        evaluations, rejected, ending = run.evaluations, run.rejected, None
        with np.errstate(all="ignore"):
            while ending is None and run.time < end and len(rows) < CAPACITY:
                limit = end
                if sampled is not None:
                    if run.time >= progress.samples * period:
                        sampled(run.time, run.y[: self.system.size], progress.acting)
                        progress.samples, run.is_known = progress.samples + 1, False
                    limit = min(end, progress.samples * period)
                steps = run.steps
                code = run.next(limit)
                if run.steps > steps:
                    rows.append((run.origin, run.start, run.start_known, run.Q))
                ending = None if code == Stepped.STEPPED else ENDINGS[code]
        progress.time, progress.guess[:], progress.y[:] = run.time, run.guess, run.y
        m = len(rows)
        times, states, known, polynomials = (
            np.array(column, dtype=float) for column in (zip(*rows, strict=True) if rows else [()] * 4)
        )
        n, acting = self.routines.states, self.routines.coordinates + self.routines.velocities + self.routines.inputs
        kept = times, states.reshape(m, n), known.reshape(m, acting), polynomials.reshape(m, len(run.Q), n)
        spent = run.evaluations - evaluations, run.rejected - rejected
        return self._steps(progress, kept, spent, Ending.END if ending is None and run.time >= end else ending)
