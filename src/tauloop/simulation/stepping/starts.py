"""Integration from many starts at once: source text of the step loop, and its kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tauloop.compiler.c.calling.evaluator import Evaluator
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.precision import Precision
from tauloop.compiler.c.printing.rows import RowKernel, row_kernel_letters, without_headers
from tauloop.simulation.stepping.stepper import ENDING_OF_OUTCOME, Stepper
from tauloop.simulation.stepping.steps import Ending, ManySteps

# Outcomes of `steps.c` in addition to `StepOutcome`.
#: The end time is reached.
DONE = 10
#: The buffer is full.
FULL = 11


def steps_text(stepper: Stepper, precision: Precision = Precision.DOUBLE) -> str:
    """Return the source text of the step loop, for the system's C compiler and NVRTC."""
    routines = stepper.routines
    known = routines.coordinates + routines.velocities + routines.inputs
    loop = c_file("tauloop.simulation.stepping", "steps.c")
    return without_headers(
        routines.source(stepper.method.tableau, loop, known=known, precision=precision)
    )


def starts_kernel(
    stepper: Stepper, evaluator: Evaluator, evaluations: float = math.inf
) -> RowKernel:
    """Return the kernel that integrates from many starts.

    `evaluations` is the expected number of evaluations of the rates.

    Raises:
        InputError: the tolerances are too tight for the precision.
        EngineError: no C compiler was found, or it fails.
    """
    precision = evaluator.precision
    stepper.method.require_precision(precision)
    text, letters = steps_text(stepper, precision), row_kernel_letters(2, 9)
    return evaluator.rows(text, "tl_many", letters, precision, evaluations)


def many_steps(
    kernel: RowKernel, stepper: Stepper, starts: Sequence[np.ndarray], end: float, times: np.ndarray
) -> ManySteps:
    """Return the states of many integrations at given times.

    Args:
        kernel: kernel of the stepper.
        stepper: the system and its method.
        starts: states (N, n), coordinates from which Newton's method starts (N, n_q), and
            constant forces and wrench (N, m).
        end: end time, s.
        times: times of the returned states (T,), increasing, s.
    """
    count, n_times = len(starts[0]), len(times)
    size, n_q = stepper.system.size, stepper.system.model.topology.n_q
    columns = [np.ascontiguousarray(array.T, dtype=float) for array in starts]
    numbers = np.array([end, *stepper.method.numbers], dtype=float)
    shapes = ((n_times * size, count), (n_times * n_q, count), (3, count))
    arrays = (times, numbers, stepper.system.theta, *columns)
    states, near, report = kernel(count, (n_times, stepper.max_steps), arrays, shapes)
    endings = {DONE: Ending.SUCCESS, FULL: Ending.MAX_STEPS} | {
        int(code): ending for code, ending in ENDING_OF_OUTCOME.items()
    }
    reasons = tuple(endings[int(code)] for code in report[1])
    return ManySteps(
        y=np.ascontiguousarray(states.reshape(n_times, size, count).transpose(2, 0, 1)),
        near=np.ascontiguousarray(near.reshape(n_times, n_q, count).transpose(2, 0, 1)),
        reached=np.where([reason is Ending.SUCCESS for reason in reasons], end, report[0]),
        endings=reasons,
        steps=report[2].astype(int),
    )
