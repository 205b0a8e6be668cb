"""Pivots within Newton's loops: their product is the determinant, and they vanish at singular poses."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from compiled_machines import compiled, compilers, model, motion, program

from tauloop.compiler.c.calling.evaluator import run_kernel
from tauloop.compiler.program import Newton

#: Product of at most ten pivots against a determinant by NumPy: rounding, through the size of
#: single terms.
SAME = 1e-9
#: A compiled loop keeps the pivots of its last step, which begins within that step (1e-8) of the
#: solution.
LAST_STEP_APART = 1e-6
#: Angle of the cranks (rad) at which the smallest pivot is proportional to it, within this share.
NEAR, PROPORTIONAL = 1e-2, 1e-3

MACHINES = (("rcid", "actuators"), ("gantry_tau_5dof", "platform"), ("spidermill", "actuators"))


@pytest.mark.parametrize(("name", "entry"), MACHINES)
def test_the_product_of_all_pivots_is_the_determinant(name: str, entry: str) -> None:
    chosen, inputs, n = program(name, entry, "kinematics_0"), motion(name, entry, 20), 20
    values, diagnostics = dict(inputs), chosen.run(inputs, n)[1]
    (loop,) = (step for step in chosen.steps if isinstance(step, Newton))
    count = len(loop.pivots)
    assert count in (loop.size, loop.size - 1)  # a determinant takes the place of the last two
    assert chosen.all_pivots[:count] == loop.pivots
    for step in chosen.steps:
        step.run(values, n, diagnostics)
    symbols = loop.function.function.sx_in()
    jacobian = ca.jacobian(loop.function.function.call(symbols)[0], symbols[0])
    slopes = ca.Function("slopes", symbols, [ca.densify(jacobian)])
    known = [values[key] for key in (loop.solution, *loop.inputs)]
    determinants = [np.linalg.det(slopes(*(array[i] for array in known)).full()) for i in range(n)]
    products = np.prod(
        diagnostics.pivots[:, :count] * [pivot.typical for pivot in loop.pivots], axis=1
    )
    assert products == pytest.approx(np.abs(determinants), rel=SAME)


@pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here")
def test_the_smallest_pivot_vanishes_where_the_links_are_stretched(tmp_path) -> None:
    """Cranks that point away from each other stretch a five-bar's links (2 x 0.25 m + 0.2 m = 2 x 0.35 m).

    The sine of the links' angle, and with it the pivot, goes to zero in proportion to the cranks'
    angle.
    """
    actuators = model("five_bar").actuators
    angles = NEAR * np.array([1.0, 0.1, 0.01])
    u = np.column_stack([np.pi - angles, angles])
    state = actuators.kinematics(u[:1])
    starts = np.repeat(state.q, len(angles), axis=0)
    state = actuators.kinematics(u, start=starts)
    smallest = state.health.smallest_pivot
    assert smallest[:-1] / smallest[1:] == pytest.approx(10.0, rel=PROPORTIONAL)
    kernel = compiled("five_bar", "actuators", "kinematics_0", tmp_path)
    inputs = {"position": u, "start": state.q, "theta": np.empty((len(u), 0))}
    _, outputs = run_kernel(kernel, inputs, len(u))
    assert outputs.smallest_pivot == pytest.approx(smallest, rel=LAST_STEP_APART)
