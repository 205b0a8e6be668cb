"""Inputs that are not finite are found by generated code, whether it checks them or what follows from them."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from compiled_machines import compilers, function, model, motion

from tauloop.compiler.c.calling.compiled import compile_function
from tauloop.compiler.c.calling.evaluator import c_function
from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.printing.batch_source import MAX_LINES
from tauloop.compiler.c.printing.checked_values import checked_values
from tauloop.compiler.c.printing.source import CFunction
from tauloop.compiler.limits import CONVERGED, SMALLEST_PIVOT
from tauloop.compiler.program import Evaluate, Program
from tauloop.equations.values import BatchFunction

pytestmark = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
#: A closed form, Newton's method with a start for each sample, a serial machine, and one with
#: quaternions.
CASES = (
    ("five_bar", "platform", "inverse_dynamics", ("force",)),
    ("five_bar", "actuators", "forward_dynamics", ("acceleration",)),
    ("gantry_tau_5dof", "platform", "inverse_dynamics", ("force",)),
    ("rcid", "actuators", "kinematics_0", ("q",)),
    ("rcid", "platform", "regressor_actuators", ("regressor",)),
)
NOT_FINITE = (np.nan, np.inf, -np.inf)


@pytest.mark.parametrize(("name", "entry", "which", "outputs"), CASES)
def test_every_input_that_is_not_finite_is_found(name, entry, which, outputs):
    """Also those that have no check of their own, in the kernel of lanes as in the function of one sample."""
    motor = getattr(model(name), entry)
    inputs = motion(name, entry, 1)
    program = motor.program(which)
    kernel = compile_function(c_function(program, inputs, outputs))
    arrays, call = kernel.bind()
    for port in kernel.function.inputs:
        for i in range(port.size):
            for value in NOT_FINITE:
                spoiled = {key: array.copy() for key, array in inputs.items()}
                spoiled[port.name][0, i] = value
                results, is_sound = kernel.run(spoiled, 1)
                for key in (port.name for port in kernel.function.inputs):
                    arrays[key][:] = spoiled[key][0]
                call()
                health = arrays["health"]
                is_sound_alone = (
                    health[0] >= 0.0 and health[1] > SMALLEST_PIVOT and abs(health[2]) < CONVERGED
                )
                assert is_sound_alone == is_sound, (port.name, i, value)
                if is_sound:  # a start that nothing reads
                    assert port.name == "start", (i, value)
                    np.testing.assert_array_equal(
                        results[outputs[0]], kernel.run(inputs, 1)[0][outputs[0]]
                    )


def test_inputs_that_a_checked_output_depends_on_need_no_check_of_their_own():
    checked = function("five_bar", "platform", "inverse_dynamics")
    small = [port for port in checked.outputs if port.name == "force"]
    values = checked_values(checked.program, checked.inputs, tuple(small), MAX_LINES)
    assert values.inputs == ()


def test_checks_from_which_a_checked_output_follows_need_no_sum():
    checked = function("five_bar", "platform", "inverse_dynamics")
    small = tuple(port for port in checked.outputs if port.name == "force")
    assert checked_values(checked.program, checked.inputs, small, MAX_LINES).implied == {
        "discriminants",
        "pivots",
    }
    assert checked_values(checked.program, checked.inputs, small, 0).implied == frozenset()


def test_outputs_from_which_another_follows_need_no_check():
    """y1 = x y0, y2 = y1 + x, y3 = 1 / x: of the first three the last one is checked, and the fourth."""
    x = ca.SX.sym("x")
    y0 = ca.sin(x)
    y1 = x * y0
    step = Evaluate(
        function=BatchFunction(ca.Function("f", [x], [ca.vertcat(y0, y1, y1 + x, 1 / x)])),
        inputs=("x",),
        outputs=("y",),
    )
    program = Program(name="chain", outputs=("y",), steps=(step,), closed_forms=(), pivots=())
    values = checked_values(
        program, (CPort(name="x", size=1),), (CPort(name="y", size=4),), MAX_LINES
    )
    assert values.outputs == (("y", 2), ("y", 3))
    assert values.inputs == ()


def test_angles_whose_turns_are_taken_away_are_checked_themselves():
    """1e200 rad less its whole turns is zero or 1e184, by rounding: without fused products the result looked sound."""
    wrapping = function("five_bar", "actuators", "kinematics_2")
    values = checked_values(wrapping.program, wrapping.inputs, wrapping.outputs, MAX_LINES)
    assert {("start", 3), ("start", 4), ("position", 0), ("position", 1)} <= set(values.inputs)


def test_all_inputs_are_checked_where_an_output_is_not():
    checked = function("five_bar", "platform", "inverse_dynamics")
    values = checked_values(checked.program, checked.inputs, checked.outputs, 0)
    assert values.inputs == tuple(
        (port.name, i) for port in checked.inputs for i in range(port.size)
    )


def test_ports_may_have_the_names_of_what_the_health_is_computed_from():
    """A port named p ended in an error of the compiler, so that calibrations with one ran interpreted."""
    x = ca.SX.sym("x", 2)
    names = ("p", "d", "squares", "s_0")
    step = Evaluate(
        function=BatchFunction(ca.Function("f", [x], [2 * x, x + 1, -x])),
        inputs=names[:1],
        outputs=names[1:],
    )
    made = CFunction(
        name="named",
        inputs=(CPort(name="p", size=2),),
        outputs=tuple(CPort(name=name, size=2) for name in names[1:]),
        program=Program(name="named", outputs=names[1:], steps=(step,), closed_forms=(), pivots=()),
    )
    results, is_sound = compile_function(made).run({"p": np.array([[1.0, 2.0]])}, 1)
    assert is_sound
    np.testing.assert_array_equal(results["squares"], [[2.0, 3.0]])


def test_pivots_that_are_one_expression_are_compared_once():
    checked = function("five_bar", "platform", "inverse_dynamics")
    factors = checked_values(
        checked.program, checked.inputs, checked.outputs, MAX_LINES
    ).pivot_factors["pivots"]
    assert 0 < len(factors) < len(checked.program.pivots)
    typical = {1.0 / pivot.typical for pivot in checked.program.pivots}
    assert set(factors.values()) <= typical
