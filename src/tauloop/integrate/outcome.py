"""Outcomes of steps, with the numbers of `hybrid.c`."""

from __future__ import annotations

from tauloop.common.execution.stopping import StopCode


class StepOutcome(StopCode):
    """Outcome of a step.

    `SINGULAR` is a rate that cannot be relied on; `LOOPS_LOST` a state that cannot be led back to
    where it must be.
    """

    SUCCESS = 0
    SINGULAR = 1
    STEP_TOO_SMALL = 2
    LOOPS_LOST = 3
    CHATTERING = 4
    MAX_STEPS = 20
    EVENT = 21
