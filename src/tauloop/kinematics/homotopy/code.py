"""Path tracking in machine code: a polynomial system in complex numbers, one thread per path.

Each path has its own steps and its own Newton iterations, so no number depends on the other paths or
on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import Evaluator
from tauloop.compiler.c.calling.library import WORTH_OPTIMIZING
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.rows import RowKernel, row_kernel_letters, row_kernel_text
from tauloop.compiler.c.printing.source import number
from tauloop.compiler.c.printing.straight import Instruction, instructions
from tauloop.kinematics.homotopy.paths import (
    ParameterLine,
    PolynomialSystem,
    Tracked,
    TrackingOptions,
)

#: Number of instructions times number of unknowns from which gcc or clang is faster than the
#: embedded compiler for a whole search of a few hundred paths. Embedded compiler and gcc take 0.10
#: and 0.23 s for delta, 0.58 and 0.25 s for five_bar, 3.3 and 0.6 s for rcid.
MIN_LARGE_SYSTEM = 600
_CALLS = {
    ca.OP_ADD: "tl_plus",
    ca.OP_SUB: "tl_less",
    ca.OP_MUL: "tl_times",
    ca.OP_INV: "tl_inverse",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrintedSystem:
    """The parts of a system that are printed as code.

    Attributes:
        function: (x, y, y') -> F, F_x, F_y y', where y are the known variables except the factors
            of the linear terms.
        terms: matrices (n_terms, m, m) of linear terms in x; their factors are the last known
            variables.
    """

    function: ca.Function
    terms: np.ndarray


class Printable(PolynomialSystem, Protocol):
    """A system that can be printed as machine code."""

    @property
    def printed(self) -> PrintedSystem:
        """The printed parts."""


#: Follows solutions from t = 0 to t = 1.
Follow = Callable[[Printable, np.ndarray, ParameterLine, TrackingOptions | None], Tracked]


class PathFollower:
    """Follows paths by machine code."""

    def __init__(self, evaluator: Evaluator) -> None:
        """Store an evaluator."""
        self._evaluator = evaluator
        # keep the texts: printing a large system takes as long as following some of its paths
        self._texts: dict[tuple[ca.Function, int], str] = {}
        self._kernels: dict[str, RowKernel] = {}

    def __call__(
        self,
        system: Printable,
        x: np.ndarray,
        line: ParameterLine,
        options: TrackingOptions | None = None,
    ) -> Tracked:
        """Follow solutions x (N, m) from t = 0 to t = 1.

        If the Jacobian becomes singular at t = 1 (a multiple solution, or a solution at infinity),
        the steps of the path shrink towards t = 1. The path is reported as stopped or infinite,
        never as regular.

        Raises:
            EngineError: no C compiler is available, or the compiler fails.
        """
        options, (n, m) = options or TrackingOptions(), x.shape
        kernel = self._kernel(system.printed, m)
        points = (_parts(array) for array in (x, line.y0, line.y1, line.e0, line.e1))
        terms = np.ascontiguousarray(system.printed.terms, dtype=complex).view(float)
        ends, report = kernel(n, (), (*points, _numbers(options), terms), ((2 * m, n), (3, n)))
        return Tracked(
            x=np.ascontiguousarray(ends.T).view(complex),
            t=report[0],
            endings=report[1].astype(int),
            steps=int(report[2].max(initial=0.0)),
        )

    def _kernel(self, printed: PrintedSystem, unknowns: int) -> RowKernel:
        """Return the machine code that follows paths of a system, compiled once for each system."""
        system = (printed.function, len(printed.terms))
        if system not in self._texts:
            self._texts[system] = paths_text(printed)
        text = self._texts[system]
        if text not in self._kernels:
            is_large = unknowns * printed.function.n_instructions() >= MIN_LARGE_SYSTEM
            work = WORTH_OPTIMIZING if is_large else 1
            letters = row_kernel_letters(0, 9)
            self._kernels[text] = self._evaluator.rows(text, "tl_paths", letters, evaluations=work)
        return self._kernels[text]


def _parts(array: np.ndarray) -> np.ndarray:
    """Return complex numbers (N, k) as real rows (2 k, N): real, then imaginary parts of each."""
    whole = np.ascontiguousarray(array, dtype=complex)
    return np.ascontiguousarray(whole.view(float).reshape(len(whole), 2 * whole.shape[1]).T)


def _numbers(options: TrackingOptions) -> np.ndarray:
    """Return the options in the order of `homotopy.c`."""
    return np.array(
        [
            options.tolerance,
            options.corrections,
            options.end_tolerance,
            options.end_corrections,
            options.regular_ratio,
            options.first_step,
            options.longest_step,
            options.smallest_step,
            options.infinity,
            options.steps,
        ],
        dtype=float,
    )


def paths_text(printed: PrintedSystem) -> str:
    """Return the text of the kernel that follows the paths of a system."""
    function = printed.function
    n_terms = len(printed.terms)
    m = function.size1_out(0)
    known = function.size1_in(1)
    sizes = {"TL_M": m, "TL_K": known + n_terms, "TL_WAYS": n_terms}
    head = [f"#define {name} {size}" for name, size in sizes.items()]
    point = "const tl_complex *x, const tl_complex *y"
    body = [
        *head,
        c_file("tauloop.kinematics.homotopy", "homotopy.c"),
        *_routine(f"tl_values({point}, tl_complex *F, tl_complex *J)", function, ("F", "J", None)),
        *_routine(
            f"tl_rates({point}, const tl_complex *rate, tl_complex *J, tl_complex *r)",
            function,
            (None, "J", "r"),
        ),
    ]
    return row_kernel_text("\n".join(body))


def _routine(head: str, function: ca.Function, outputs: tuple[str | None, ...]) -> list[str]:
    """Return a function of complex numbers that writes some of a system's outputs."""
    code = instructions(function, [name is not None for name in outputs])
    constants = {each.number: each.constant for each in code if each.operation == ca.OP_CONST}
    lines = [_statement(each, constants, outputs) for each in code if each.number not in constants]
    written = {each.port for each in code if each.operation == ca.OP_OUTPUT}
    zeros = [  # outputs are dense; entries that are never written stay zero
        f"{name}[{i}] = tl_of(0.0, 0.0);"
        for k, name in enumerate(outputs)
        if name is not None
        for i in range(function.numel_out(k))
        if (k, i) not in written
    ]
    return [f"static void {head}", "{", *(f"    {line}" for line in (*zeros, *lines)), "}", ""]


def _statement(
    each: Instruction, constants: dict[int, float], outputs: tuple[str | None, ...]
) -> str:
    """Return the C statement of an instruction."""

    def value(operand: int) -> str:
        if operand in constants:
            return f"tl_of({number(constants[operand])}, 0.0)"
        return f"w{operand}"

    if each.operation == ca.OP_OUTPUT:
        assert each.port is not None
        return f"{outputs[each.port[0]]}[{each.port[1]}] = {value(each.operands[0])};"
    return f"const tl_complex w{each.number} = {_expression(each, constants, value)};"


def _expression(each: Instruction, constants: dict[int, float], value: Callable[[int], str]) -> str:
    """Return the value of an instruction.

    Raises:
        ValueError: the operation does not occur in polynomial systems.
    """
    operands = each.operands
    if each.operation == ca.OP_INPUT:
        assert each.port is not None
        return f"{('x', 'y', 'rate')[each.port[0]]}[{each.port[1]}]"
    if (
        each.operation == ca.OP_MUL
        and (real := next((i for i in operands if i in constants), None)) is not None
    ):
        other = operands[1] if real == operands[0] else operands[0]
        return f"tl_scaled({number(constants[real])}, {value(other)})"
    if each.operation in _CALLS:
        return f"{_CALLS[each.operation]}({', '.join(map(value, operands))})"
    (first, *others) = map(value, operands)
    simple = {
        ca.OP_ASSIGN: first,
        ca.OP_NEG: f"tl_scaled(-1.0, {first})",
        ca.OP_SQ: f"tl_times({first}, {first})",
        ca.OP_TWICE: f"tl_scaled(2.0, {first})",
        ca.OP_DIV: f"tl_times({first}, tl_inverse({(*others, first)[0]}))",
    }
    if each.operation not in simple:
        raise ValueError(
            f"CasADi operation {each.operation} is not implemented for complex numbers"
        )
    return simple[each.operation]
