"""Tangents: how much a program's outputs move when its inputs do, in one direction, as a program again.

Straight-line code is differentiated by CasADi, forward. Where Newton's method has found f(x, u) =
0, its step -(df/dx)^-1 f has there the derivative -(df/dx)^-1 df/du by u, which is that of x: one
step more, and exact.

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
    """Name of the tangent of a value."""
    return f"{name}_by"


def along(expressions: list[ca.SX], inputs: list[ca.SX], directions: list[ca.SX]) -> list[ca.SX]:
    """Derivatives of expressions along directions, one for each of the inputs that move, as dense columns."""
    x, d = ca.vertcat(*inputs), ca.vertcat(*directions)
    return [ca.densify(ca.jtimes(ca.densify(expression), x, d)) for expression in expressions]


def tangent_program(program: Program, inputs: Mapping[str, int]) -> Program:
    """The program of the tangents (`moved`) of its outputs, from its inputs and the tangents of some of these.

    It says nothing of health, which the program itself does.

    Args:
        program: of which.
        inputs: that move, with their sizes.

    Raises:
        InputError: forces within bounds, which are no smooth function of the motion.
    """
    steps: list[Evaluate | Newton | Bounded] = []
    moving = set(inputs)
    for step in program.steps:
        if isinstance(step, Bounded):
            what = "forces within bounds have kinks, where there are no derivatives"
            raise InputError.of(program.name, what, "take differences of runs instead")
        symbols = step.function.function.sx_in()
        values = step.function.function.call(symbols)
        unknown: tuple[str, ...] = ()
        if isinstance(step, Newton):
            steps.append(step)
            unknown, results = (step.solution,), {step.solution: values[1]}
        else:
            results = dict(zip(step.outputs, values, strict=True))
        # behind Newton's loop its unknowns are known
        names = (*unknown, *step.inputs)
        known = dict(zip(names, symbols, strict=True))
        chosen = [name for name in step.inputs if name in moving]
        directions = [ca.SX.sym(moved(name), known[name].numel()) for name in chosen]
        tangents = along(list(results.values()), [known[name] for name in chosen], directions)
        made = dict(zip(map(moved, results), tangents, strict=True)) | ({} if unknown else results)
        function = ca.Function("tangent", [*symbols, *directions], ca.cse(list(made.values())))
        inputs_of = (*names, *map(moved, chosen))
        steps.append(
            Evaluate(function=BatchFunction(function), inputs=inputs_of, outputs=tuple(made))
        )
        moving |= set(results)
    return Program(
        name=f"{program.name}_by",
        steps=tuple(steps),
        outputs=tuple(moved(name) for name in program.outputs),
        closed_forms=(),
        pivots=(),
    )
