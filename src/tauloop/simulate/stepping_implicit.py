"""The implicit integrator: SciPy's, around the right-hand side of one machine, in machine code where there is some."""

from __future__ import annotations

from typing import final

import numpy as np
import scipy.integrate

from tauloop.simulate.options import Radau
from tauloop.simulate.stepping import CAPACITY, FIRST_STEP, Evaluated, Law, Progress, Stepper
from tauloop.simulate.stepping_compiled import compiled_rate
from tauloop.simulate.stepping_interpreted import Taken, evaluated, sampled
from tauloop.simulate.steps import Ending, Steps
from tauloop.simulate.system import System


@final
class ImplicitStepper(Stepper):
    """SciPy's Radau IIA method, the state put back onto the loops between steps."""

    def __init__(self, system: System, integrator: Radau) -> None:
        """Prepare."""
        super().__init__(system)
        self._options = integrator
        self._compiled = compiled_rate(system)

    def advance(self, progress: Progress, end: float, law: Law | None, period: float | None) -> Steps:
        """Steps until the end or the next sample of a sampled law."""
        taken = Taken(self.system, progress)
        limit = sampled(progress, end, law, period)
        continuous = None if period else law

        near = progress.guess.copy()

        def rate(time: float, y: np.ndarray) -> np.ndarray:
            progress.guess[:] = near  # not where a trial has led, which may be some turns away
            found = self._evaluated(progress, time, y, continuous)
            return np.full(self.system.size, np.nan) if found is None else found[0]

        def finished(ending: Ending | None) -> Steps:
            return taken.steps(None, progress, ending)

        options = self._options
        if self._evaluated(progress, progress.time, progress.y, continuous) is None:
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
            known = self._evaluated(progress, progress.time, progress.y, continuous)
            acting = progress.acting.copy()
            near[:] = progress.guess
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

    def _evaluated(self, progress: Progress, time: float, y: np.ndarray, law: Law | None) -> Evaluated | None:
        """Rate, q and v at a state, in machine code where there is some; None where the machine cannot be there."""
        if self._compiled is None:
            return evaluated(self.system, progress, time, y, law)
        if law is not None:
            law(time, y, progress.acting)
        progress.memory[3] += 1
        return self._compiled(y, progress.acting, progress.guess)
