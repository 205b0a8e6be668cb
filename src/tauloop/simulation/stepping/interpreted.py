"""Integration without a compiler: slower, with the same results."""

from __future__ import annotations

from typing import final

import numpy as np

from tauloop.integrate.interpreted import Run, StepOutcome
from tauloop.integrate.system import RoutineProblem
from tauloop.simulation.stepping.stepper import CAPACITY, ENDING_OF_OUTCOME, Stepper, SteppingState
from tauloop.simulation.stepping.steps import Ending, Steps


@final
class InterpretedStepper(Stepper):
    """A stepper in Python."""

    def _begin_integration(self, progress: SteppingState) -> Run:
        problem = RoutineProblem(self.routines, progress.p, np.zeros(0))
        problem.arrays["in"], problem.law = progress.acting, progress.laws.law
        return Run(problem, self.method, progress.y, guess=progress.guess)

    def advance(self, progress: SteppingState, end: float) -> Steps:
        """Return the next steps, computed one at a time."""
        run, laws = progress.own, progress.laws
        assert isinstance(run, Run)
        rows: list[tuple[object, ...]] = []
        evaluations, rejected, ending = run.evaluations, run.rejected, None
        with np.errstate(all="ignore"):
            while ending is None and run.time < end and len(rows) < CAPACITY:
                limit = end
                if laws.sampled is not None:
                    if run.time >= progress.samples * laws.period:
                        laws.sampled(run.time, run.y[: self.system.size], progress.acting)
                        progress.samples, run.is_known = progress.samples + 1, False
                    limit = min(end, progress.samples * laws.period)
                steps = run.steps
                code = run.next(limit)
                if run.steps > steps:
                    rows.append((run.origin, run.start, run.start_known, run.Q))
                ending = None if code == StepOutcome.SUCCESS else ENDING_OF_OUTCOME[code]
        progress.time, progress.guess[:], progress.y[:] = run.time, run.guess, run.y
        m = len(rows)
        times, states, known, polynomials = (
            np.array(column, dtype=float)
            for column in (zip(*rows, strict=True) if rows else [()] * 4)
        )
        n, acting = (
            self.routines.states,
            self.routines.coordinates + self.routines.velocities + self.routines.inputs,
        )
        columns = (
            times,
            states.reshape(m, n),
            known.reshape(m, acting),
            polynomials.reshape(m, len(run.Q), n),
        )
        spent = run.evaluations - evaluations, run.rejected - rejected
        return self._steps(
            progress,
            columns,
            spent,
            Ending.SUCCESS if ending is None and run.time >= end else ending,
        )
