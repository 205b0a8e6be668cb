"""Smooth substitute of Coulomb friction in the program of a free motion.

Coulomb friction jumps where a joint reverses, which gradient-based optimizers cannot handle.
sign(v) is replaced by v / sqrt(v^2 + w^2), where w is a small fraction of the speed of the initial
motion. The machine's exact expressions decide whether a motion satisfies its limits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import casadi as ca
import numpy as np

from tauloop.equations.operators import read_instructions

#: Width of a slope relative to the joint's largest speed in the initial motion.
SLOPE_WIDTH = 0.1
#: Minimum of this largest speed, as a fraction of that of the fastest joint.
MIN_SPEED_FRACTION = 0.5


def smooth_at_jumps(
    values: Sequence[ca.SX], symbols: Sequence[ca.SX], start: Sequence[np.ndarray]
) -> list[ca.SX]:
    """Return the expressions with smooth slopes in place of jumps.

    Args:
        values: the expressions.
        symbols: symbols (columns) on which the expressions depend.
        start: values of the symbols at N samples of the initial motion (N, size).
    """
    function = ca.Function(
        "jumps", [*symbols], [ca.densify(value) for value in values], {"cse": True}
    )
    speeds = list[ca.SX]()

    def noted(speed: ca.SX) -> ca.SX:
        speeds.append(speed)
        return ca.SX(ca.sign(speed))

    _walked(function, symbols, noted)
    if not speeds:
        return list(values)
    at_start = ca.Function("speeds", [*symbols], [ca.vertcat(*speeds)])
    most = np.abs(at_start.map(len(start[0]))(*(ca.DM(part.T) for part in start)).full()).max(
        axis=1
    )
    widths = iter(SLOPE_WIDTH * np.maximum(most, MIN_SPEED_FRACTION * most.max(initial=1e-12)))
    return _walked(function, symbols, lambda speed: speed / ca.sqrt(speed**2 + next(widths) ** 2))


def _walked(
    function: ca.Function, symbols: Sequence[ca.SX], jump: Callable[[ca.SX], ca.SX]
) -> list[ca.SX]:
    """Return the expressions of a function, in which `jump` replaces each sign function."""
    work, results = (
        dict[int, ca.SX](),
        [ca.SX(function.sparsity_out(i)) for i in range(function.n_out())],
    )
    for k, (operation, before, after) in enumerate(read_instructions(function)):
        if operation == ca.OP_INPUT:
            work[after[0]] = symbols[before[0]].nz[before[1]]
        elif operation == ca.OP_OUTPUT:
            results[after[0]].nz[after[1]] = work[before[0]]
        elif operation == ca.OP_CONST:
            work[after[0]] = ca.SX(function.instruction_constant(k))
        elif operation == ca.OP_SIGN:
            work[after[0]] = jump(work[before[0]])
        elif len(before) == 1:
            work[after[0]] = ca.SX.unary(operation, work[before[0]])
        else:
            work[after[0]] = ca.SX.binary(operation, *(work[i] for i in before))
    return results
