"""Tangents: derivatives of a program's outputs along a direction of its inputs, as a program.

CasADi differentiates straight-line code, in forward mode. If Newton's method solves f(x, u) = 0,
the derivative of the step -(df/dx)^-1 f with respect to u at the solution is -(df/dx)^-1 df/du,
which is the derivative of the solution x. So the tangent of one more step is the exact derivative.

Source:
    Griewank, Walther 2008, Evaluating Derivatives, chapter 3 (forward mode) and section 15.1
    (implicit functions).
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca

from tauloop.common.errors import InputError
from tauloop.compiler.program import Evaluate, Newton, Program
from tauloop.compiler.solving.bounded import Bounded
from tauloop.equations.values import BatchFunction


def moved(name: str) -> str:
    """Return the name of the tangent of a value."""
    return f"{name}_by"


def along(expressions: list[ca.SX], inputs: list[ca.SX], directions: list[ca.SX]) -> list[ca.SX]:
    """Return the directional derivatives of expressions, as dense columns.

    Args:
        expressions: expressions of the inputs.
        inputs: symbols (columns).
        directions: components of the direction for each input (columns of the same sizes).
    """
    x, d = ca.vertcat(*inputs), ca.vertcat(*directions)
    return [ca.densify(ca.jtimes(ca.densify(expression), x, d)) for expression in expressions]


def tangent_program(program: Program, inputs: Mapping[str, int]) -> Program:
    """Return the program of tangents (`moved`) from the inputs and the tangents of some inputs.

    This program reports no diagnostics, because the original program does.

    Args:
        program: program to differentiate.
        inputs: names and sizes of the inputs with a direction.

    Raises:
        InputError: cable tensions have bounds, so forces are not a smooth function of the motion.
    """
    steps: list[Evaluate | Newton | Bounded] = []
    moving = set(inputs)
    for step in program.steps:
        if isinstance(step, Bounded):
            what = "forces within bounds are not differentiable everywhere"
            raise InputError.of(program.name, what, "use finite differences of runs")
        symbols = step.function.function.sx_in()
        values = step.function.function.call(symbols)
        unknown: tuple[str, ...] = ()
        if isinstance(step, Newton):
            steps.append(step)
            unknown = (step.solution,)
            results = {step.solution: values[1]}
        else:
            results = dict(zip(step.outputs, values, strict=True))
        # after Newton's loop, its unknowns are inputs of one more step
        names = (*unknown, *step.inputs)
        known = dict(zip(names, symbols, strict=True))
        chosen = [name for name in step.inputs if name in moving]
        directions = [ca.SX.sym(moved(name), known[name].numel()) for name in chosen]
        tangents = along(list(results.values()), [known[name] for name in chosen], directions)
        outputs = dict(zip(map(moved, results), tangents, strict=True))
        if not unknown:
            outputs |= results
        function = ca.Function("tangent", [*symbols, *directions], ca.cse(list(outputs.values())))
        names_of_inputs = (*names, *map(moved, chosen))
        steps.append(
            Evaluate(
                function=BatchFunction(function), inputs=names_of_inputs, outputs=tuple(outputs)
            )
        )
        moving |= set(results)
    return Program(
        name=f"{program.name}_by",
        steps=tuple(steps),
        outputs=tuple(moved(name) for name in program.outputs),
        closed_forms=(),
        pivots=(),
    )
