"""Fast arithmetic of CasADi's scalar expressions in place of CasADi's own.

The equations of a machine take thousands of operations. An operator of `ca.SX` first finds out
whether its operands are numbers, arrays or expressions; this takes 10 us and the operation 1.5 us.
The operators here call the operation directly if the operands are expressions or Python's numbers,
and CasADi's own operator otherwise. They yield the same expressions, and are used only while a
machine's equations and programs are built (`fast_operators`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import casadi as ca

#: CasADi's operations by the name of the operator.
OPERATIONS = {"add": ca.OP_ADD, "sub": ca.OP_SUB, "mul": ca.OP_MUL, "truediv": ca.OP_DIV}

#: CasADi refuses large integers.
LARGEST_INTEGER = 2**31

Operator = Callable[[Any, Any], Any]


class _Uses:
    """The number of blocks that use the fast operators now, in all threads."""

    count = 0
    lock = RLock()


@contextmanager
def fast_operators() -> Iterator[None]:
    """Give `ca.SX` the fast operators for the time of a block, or as a decorator of a call."""
    with _Uses.lock:
        if _Uses.count == 0:
            for label, function in _FAST.items():
                setattr(ca.SX, label, function)
        _Uses.count += 1
    try:
        yield
    finally:
        with _Uses.lock:
            _Uses.count -= 1
            if _Uses.count == 0:
                for label in _FAST:
                    delattr(ca.SX, label)  # the class inherits CasADi's own


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


def _fast_operators() -> dict[str, Operator]:
    """Return the fast operators by the names of the methods."""
    functions: dict[str, Operator] = {"__matmul__": _product(ca.SX.__matmul__)}
    for name, operation in OPERATIONS.items():
        for label, is_reflected in ((f"__{name}__", False), (f"__r{name}__", True)):
            functions[label] = _operator(operation, getattr(ca.SX, label), is_reflected)
    return functions


_FAST = _fast_operators()
