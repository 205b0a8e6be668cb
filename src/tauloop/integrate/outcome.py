"""Outcomes of steps, with the numeric values of `hybrid.c`."""

from __future__ import annotations

from tauloop.common.execution.stopping import StopCode


class StepOutcome(StopCode):
    """Outcome of a step.

    `SINGULAR`: the derivative of the state is not reliable. `LOOPS_LOST`: the projection onto the
    loops did not converge.
    """

    SUCCESS = 0
    SINGULAR = 1
    STEP_TOO_SMALL = 2
    LOOPS_LOST = 3
    CHATTERING = 4
    MAX_STEPS = 20
    EVENT = 21
