"""Fast arithmetic of CasADi's scalar expressions in place of CasADi's own.

The equations of a machine take thousands of operations. An operator of `ca.SX` first finds out
whether its operands are numbers, arrays or expressions; this takes 10 us and the operation 1.5 us.
The operators here call the operation directly if the operands are expressions or Python's numbers,
and CasADi's own operator otherwise. They yield the same expressions, also in other code that uses
CasADi.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca

#: CasADi's operations by the name of the operator.
OPERATIONS = {"add": ca.OP_ADD, "sub": ca.OP_SUB, "mul": ca.OP_MUL, "truediv": ca.OP_DIV}

#: CasADi refuses large integers.
LARGEST_INTEGER = 2**31

Operator = Callable[[Any, Any], Any]


def use_fast_operators() -> None:
    """Give `ca.SX` the fast operators."""
    for name, operation in OPERATIONS.items():
        for label, is_reflected in ((f"__{name}__", False), (f"__r{name}__", True)):
            general = getattr(ca.SX, label)
            setattr(ca.SX, label, _operator(operation, general, is_reflected))
    ca.SX.__matmul__ = _product(ca.SX.__matmul__)  # type: ignore[method-assign]


def cross(a: ca.SX, b: ca.SX) -> ca.SX:
    """Return the cross product of two vectors (3,), without computing a product with zero."""
    return ca.SX(3, 1) if a.nnz() == 0 or b.nnz() == 0 else ca.cross(a, b)


def _product(general: Operator) -> Operator:
    """Return the operator of matrix products, which does not compute products with 0 and 1.

    Two of three products in the motion of a machine are of this kind: joints without translations,
    frames without rotations.
    """

    def product(x: Any, y: Any) -> Any:
        if type(y) is not ca.SX or x.size2() != y.size1():
            return general(x, y)
        if x.nnz() == 0 or y.nnz() == 0:
            return ca.SX(x.size1(), y.size2())
        if x.is_eye():
            return +y  # a copy, as expressions can change
        if y.is_eye():
            return +x
        return general(x, y)

    return product


def _operator(operation: int, general: Operator, is_reflected: bool) -> Operator:
    """Return an operator of an expression.

    Args:
        operation: CasADi's code of the operation.
        general: CasADi's operator.
        is_reflected: whether the expression is the second operand.
    """
    binary = ca.SX.binary

    def direct(x: Any, y: Any) -> Any:
        if type(y) is ca.SX:
            return binary(operation, x, y)
        if _is_plain(y):
            return binary(operation, x, ca.SX(y))
        return general(x, y)

    def reflected(y: Any, x: Any) -> Any:
        if _is_plain(x):
            return binary(operation, ca.SX(x), y)
        return general(y, x)

    return reflected if is_reflected else direct


def _is_plain(number: Any) -> bool:
    """Return whether this is a number of Python that CasADi converts without an error."""
    return type(number) is float or (type(number) is int and abs(number) < LARGEST_INTEGER)
