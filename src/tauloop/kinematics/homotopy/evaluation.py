"""Complex values of polynomial expressions, by running CasADi's instructions on NumPy arrays.

CasADi evaluates real numbers only. Its SX functions are straight-line code, so the same
instructions run over NumPy's complex arrays, all samples at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

_BINARY: dict[int, Callable[..., Any]] = {
    ca.OP_ADD: np.add,
    ca.OP_SUB: np.subtract,
    ca.OP_MUL: np.multiply,
    ca.OP_DIV: np.divide,
}
_UNARY: dict[int, Callable[..., Any]] = {
    ca.OP_NEG: np.negative,
    ca.OP_SQ: np.square,
    ca.OP_INV: np.reciprocal,
    ca.OP_SIN: np.sin,
    ca.OP_COS: np.cos,
    ca.OP_SQRT: np.sqrt,
}


class ComplexFunction:
    """A CasADi SX function with dense outputs, evaluated at complex numbers."""

    __slots__ = ("_shapes", "_size", "_steps", "function")

    def __init__(self, function: ca.Function) -> None:
        """Read the instructions.

        Raises:
            ValueError: an operation is not implemented for complex numbers (a minimum, a
                comparison).
        """
        self.function = function
        self._shapes = tuple(function.size_out(i) for i in range(function.n_out()))
        self._size = function.sz_w()
        self._steps = tuple(self._read(function, k) for k in range(function.n_instructions()))

    @staticmethod
    def _read(function: ca.Function, k: int) -> tuple[Any, ...]:
        """Return an instruction as operation, target and two sources."""
        code = function.instruction_id(k)
        source = function.instruction_input(k)
        target = function.instruction_output(k)
        if code == ca.OP_CONST:
            return "const", target[0], function.instruction_constant(k), None
        if code == ca.OP_INPUT:
            return "input", target[0], source[0], source[1]
        if code == ca.OP_OUTPUT:
            return "output", source[0], target[0], target[1]
        if code == ca.OP_TWICE:
            return np.add, target[0], source[0], source[0]
        if code in _BINARY:
            return _BINARY[code], target[0], source[0], source[1]
        if code in _UNARY:
            return _UNARY[code], target[0], source[0], None
        raise ValueError(f"CasADi operation {code} is not implemented for complex numbers")

    def __call__(self, *inputs: np.ndarray) -> list[np.ndarray]:
        """Return the values at N samples.

        Args:
            inputs: one array (N, k) per input.

        Returns:
            One array (N, r, c) per output.
        """
        n = len(inputs[0])
        columns = [np.ascontiguousarray(np.asarray(array, dtype=complex).T) for array in inputs]
        buffers = list(np.empty((self._size, n), dtype=complex))
        outputs = [np.zeros((rows * width, n), dtype=complex) for rows, width in self._shapes]
        # constants and inputs are used where they are, not copied
        w: list[Any] = [None] * self._size
        for operation, target, first, second in self._steps:
            if operation == "const":
                w[target] = first
            elif operation == "input":
                w[target] = columns[first][second]
            elif operation == "output":
                outputs[first][second] = w[target]
            elif second is None:
                w[target] = operation(w[first], out=buffers[target])
            else:
                w[target] = operation(w[first], w[second], out=buffers[target])
        return [
            np.ascontiguousarray(array.reshape(width, rows, n).transpose(2, 1, 0))
            for array, (rows, width) in zip(outputs, self._shapes, strict=True)
        ]
