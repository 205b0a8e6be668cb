"""Comparison of written equations with the machine's functions, by running their Python text."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from tauloop.common.result import Diagnostic, diagnostic
from tauloop.compiler.catalogue import INVERSE_DYNAMICS
from tauloop.compiler.state import solve_diagnostics
from tauloop.equations.ports import Entry
from tauloop.model.equation_text.equation_texts import FUNCTION_NAMES
from tauloop.model.model import Model

#: Number of states at which equations are compared.
CHECK_STATES = 3
#: Largest condition number of the loops at a regular state.
WORST_CONDITION = 1e3
#: Largest relative difference: rounding, 1e-16, times the condition numbers of some blocks.
AGREEMENT = 1e-9
TINY = np.finfo(float).tiny
#: All names that a written module needs in addition to NumPy.
BUILTINS = ("__import__", "abs", "float", "max", "min", "range", "ValueError")
_FAULT = "the written equations are wrong: do not use them, and report this with the machine file"


def compared(
    model: Model, entry: Entry, python: str, implicit: Mapping[str, ca.Function]
) -> Iterable[Diagnostic]:
    """Yield the largest difference of each written part from CasADi, relative to the largest value.

    Args:
        model: the machine; its free parameters are symbols in the equations.
        entry: coordinates in which the motion of the solved equations is given.
        python: text of the module.
        implicit: functions of q, v, a, u, lambda and theta for the written loop and dynamic
            equations.
    """
    module: dict[str, Any] = {"__builtins__": {name: getattr(builtins, name) for name in BUILTINS}}
    tree = ast.parse(python)
    require_plain(tree)
    exec(compile(tree, "equations.py", "exec"), module)
    rng = np.random.default_rng(0)
    q = model.assembly.states[:CHECK_STATES]
    nominal = np.array([model.mechanism.parameters[name].value for name in model.free])
    for name, function in implicit.items():
        sizes = [function.size1_in(i) for i in range(1, 5)]
        pairs = []
        for state in q:
            # The loops are open here, so that no residual is zero.
            point = [
                state + 0.01 * rng.normal(size=len(state)),
                *(rng.normal(size=size) for size in sizes),
            ]
            arguments = point[:1] if name == "loops" else point
            compiled = np.array(function(*point, nominal)).ravel()
            pairs.append((module[FUNCTION_NAMES[name]](*arguments), compiled))
        if len(pairs[0][1]):
            title = FUNCTION_NAMES[name].replace("_", " ")
            yield _agreement(
                f"{title}, written and compiled: largest difference relative to the largest value",
                pairs,
            )
    if FUNCTION_NAMES["solved"] in module:
        yield from _solved(model, entry, module, q, rng)


def require_plain(tree: ast.Module) -> None:
    """Raise an error if a module could do more than calculate, as it contains names from a file.

    Raises:
        AssertionError: the module imports more than NumPy, or uses names with underscores.
    """
    for node in ast.walk(tree):
        imported = (
            {alias.name for alias in node.names}
            if isinstance(node, ast.Import | ast.ImportFrom)
            else set()
        )
        is_private = isinstance(node, ast.Attribute) and node.attr.startswith("_")
        is_private |= isinstance(node, ast.Name) and node.id.startswith("__")
        if is_private or imported - {"numpy", "annotations"}:
            raise AssertionError(
                f"line {getattr(node, 'lineno', 0)} of written equations does more than calculate"
            )


def _solved(
    model: Model, entry: Entry, module: Mapping[str, Any], q: np.ndarray, rng: np.random.Generator
) -> Iterable[Diagnostic]:
    motion = model.functions(entry)
    ports, n = motion.ports, len(q)
    velocity, acceleration = rng.normal(size=(2, n, len(ports.v)))
    arguments = {"position": ports.at(q), "velocity": velocity, "acceleration": acceleration}
    nominal = [model.mechanism.parameters[name].value for name in model.free]
    further = {
        "theta": np.tile(nominal, (n, 1)),
        "weight": np.ones((n, len(model.mechanism.actuators))),
    }
    program = motion.program(INVERSE_DYNAMICS)
    outputs, diagnostics = program.run({**arguments, **further, "start": q}, n)
    checked = solve_diagnostics(program, diagnostics)
    regular = np.flatnonzero(
        checked.is_reached & checked.is_regular & (motion.condition(q) < WORST_CONDITION)
    )
    yield diagnostic(
        "nonsingular states at which the solved equations were evaluated",
        len(regular),
        at_least=1.0,
        advice="choose a reference pose away from singularities",
    )
    pairs: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {
        "q": [],
        "force": [],
        "closure_force": [],
    }
    for i in regular:
        try:
            written = module[FUNCTION_NAMES["solved"]](
                *(part[i] for part in arguments.values()), start=q[i]
            )
        except ValueError:
            # The written loops do not close, but the model's loops do: a failure.
            written = {name: np.full_like(outputs[name][i], np.nan) for name in pairs}
        for name, both in pairs.items():
            both.append((written[name], outputs[name][i]))
    if len(regular):
        yield _agreement(
            "solved equations, written and compiled: largest difference relative to the largest value",
            *pairs.values(),
        )


def _agreement(name: str, *kinds: list[tuple[np.ndarray, np.ndarray]]) -> Diagnostic:
    worst = 0.0
    for pairs in kinds:
        written, compiled = map(np.array, zip(*pairs, strict=True))
        difference = np.abs(written - compiled).max(initial=0.0) / max(
            np.abs(compiled).max(initial=0.0), TINY
        )
        worst = max(worst, float(np.nan_to_num(difference, nan=1.0)))
    return diagnostic(name, worst, at_most=AGREEMENT, advice=_FAULT)
