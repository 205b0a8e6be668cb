"""Fast arithmetic for CasADi's scalar expressions.

The equations of a machine take thousands of operations. CasADi's operators of `ca.SX` first
determine whether operands are numbers, arrays or expressions. This takes 10 us, and the operation
itself 1.5 us. The operators in this module call the operation directly if the operands are
expressions or Python numbers, and CasADi's operator otherwise.

Functions of expressions are twice as fast if they receive the pointer in `SX.this`. For an
expression itself, CasADi's interface (SWIG) compares the full name of its type at every attempt to
convert it.

The fast operators and functions yield the same expressions. They are used only while the equations
and programs of a machine are built (`fast_operators`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import repeat
from threading import RLock
from types import ModuleType
from typing import Any

import casadi as ca

#: The module with CasADi's functions and classes, which call the C++ interface.
_CALLERS: Any = ca.casadi
interface = _CALLERS._casadi
_SX: Any = ca.SX
#: CasADi's operations by the name of the operator.
OPERATIONS = {"add": ca.OP_ADD, "sub": ca.OP_SUB, "mul": ca.OP_MUL, "truediv": ca.OP_DIV}

#: Functions of the interface whose arguments take longer to convert than `pointer` takes.
CONVERTING = (
    *("_vertcat", "_horzcat", "_diagcat", "vertsplit", "horzsplit", "transpose", "reshape", "vec"),
    *("repmat", "densify", "sparsify", "mtimes", "dot", "cross", "skew", "sumsqr", "jacobian"),
    *("substitute", "symvar", "depends_on", "simplify", "cse", "plus", "minus", "times", "rdivide"),
    *("power", "sqrt", "sin", "cos", "tan", "atan2", "acos", "asin", "fabs", "norm_2", "diag"),
    *("new_SX", "new_Function", "SX_get", "SX_set", "SX_get_nz", "SX_set_nz"),
)

#: Integers up to this size are passed to CasADi, which rejects larger ones.
LARGEST_INTEGER = 2**31

#: Largest index of an element with fast access.
LARGEST_INDEX = 1000

Operator = Callable[[Any, Any], Any]


class _Uses:
    """Number of `with` blocks that currently use the fast operators, in all threads."""

    count = 0
    lock = RLock()


@contextmanager
def fast_operators() -> Iterator[None]:
    """Use the fast operators of `ca.SX` in a `with` block or, as a decorator, during a call."""
    with _Uses.lock:
        if _Uses.count == 0:
            for label, function in _FAST.items():
                setattr(ca.SX, label, function)
            _CALLERS._casadi = _FAST_INTERFACE
        _Uses.count += 1
    try:
        yield
    finally:
        with _Uses.lock:
            _Uses.count -= 1
            if _Uses.count == 0:
                for label in _FAST:
                    if label in _ORIGINAL:
                        setattr(ca.SX, label, _ORIGINAL[label])
                    else:
                        delattr(ca.SX, label)  # the class inherits CasADi's operator
                _CALLERS._casadi = interface


def read_instructions(
    function: ca.Function,
) -> Iterator[tuple[int, Sequence[int], Sequence[int]]]:
    """Yield the operation of each instruction of a function, its operands and its results."""
    program: Any = function
    pointers, numbers = repeat(program.this), range(function.n_instructions())
    # `map` avoids a Python-level loop, because functions have up to 100 000 instructions.
    yield from zip(
        map(interface.Function_instruction_id, pointers, numbers),
        map(interface.Function_instruction_input, pointers, numbers),
        map(interface.Function_instruction_output, pointers, numbers),
        strict=True,
    )


def instruction_codes(function: ca.Function) -> list[int]:
    """Return the operation of each instruction of a function."""
    program: Any = function
    numbers = range(function.n_instructions())
    return list(map(interface.Function_instruction_id, repeat(program.this), numbers))


def instruction_operands(function: ca.Function) -> Iterator[Sequence[int]]:
    """Return an iterator over the operands of the instructions of a function."""
    program: Any = function
    numbers = range(function.n_instructions())
    return map(interface.Function_instruction_input, repeat(program.this), numbers)


def has_sequential_results(function: ca.Function) -> bool:
    """Return whether the k-th value of a function is element k of its work vector.

    This is the case if no element is used twice, because CasADi numbers new elements in the order
    of the instructions (option `live_variables` is off).
    """
    outputs = sum(function.nnz_out(i) for i in range(function.n_out()))
    return bool(function.sz_w() == function.n_instructions() - outputs)


def cross(a: ca.SX, b: ca.SX) -> ca.SX:
    """Return the cross product of two vectors (3,), without products with zero."""
    if not interface.GenSX_nnz(pointer(a)) or not interface.GenSX_nnz(pointer(b)):
        return ca.SX(3, 1)
    return ca.cross(a, b)


def pointer(argument: Any) -> Any:
    """Return the pointer to an expression, also inside lists and tuples; or the argument itself."""
    kind = type(argument)
    if kind is _SX:
        return argument.this
    if kind is list or kind is tuple:
        return kind([pointer(item) for item in argument])
    return argument


def _product(general: Operator) -> Operator:
    """Return an operator of matrix products that skips products with zero and unit matrices.

    Two of three products in the motion of a machine are of this kind, because joints have no
    translation or frames have no rotation.
    """
    nonzeros, is_eye = interface.GenSX_nnz, interface.SX_is_eye

    def product(x: Any, y: Any) -> Any:
        if type(y) is not _SX:
            return general(x, y)
        left, right = x.this, y.this
        if interface.GenSX_size2(left) != interface.GenSX_size1(right):
            return general(x, y)
        if not nonzeros(left) or not nonzeros(right):
            return ca.SX(interface.GenSX_size1(left), interface.GenSX_size2(right))
        if is_eye(left):
            return +y  # a copy, as expressions can change
        if is_eye(right):
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
    binary = interface.SX_binary

    def direct(x: Any, y: Any) -> Any:
        if type(y) is _SX:
            return binary(operation, x.this, y.this)
        if _is_plain(y):
            return binary(operation, x.this, _SX(y).this)
        return general(x, y)

    def reflected(y: Any, x: Any) -> Any:
        if _is_plain(x):
            return binary(operation, _SX(x).this, y.this)
        return general(y, x)

    return reflected if is_reflected else direct


@cache
def _element(index: int) -> Any:
    """Return CasADi's range of a single index."""
    return ca.Slice(index, index + 1)


def _element_pointers(index: Any) -> tuple[Any, ...] | None:
    """Return the pointers to the indices of a single element; None for any other index."""
    if _is_index(index):
        return (_element(index).this,)
    if type(index) is tuple and len(index) == 2 and _is_index(index[0]) and _is_index(index[1]):
        return _element(index[0]).this, _element(index[1]).this
    return None


def _is_index(index: Any) -> bool:
    return type(index) is int and 0 <= index < LARGEST_INDEX


def _get_item(general: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the operator that reads elements."""
    get = interface.SX_get

    def get_item(x: Any, index: Any) -> Any:
        pointers = _element_pointers(index)
        return general(x, index) if pointers is None else get(x.this, False, *pointers)

    return get_item


def _set_item(general: Callable[[Any, Any, Any], None]) -> Callable[[Any, Any, Any], None]:
    """Return the operator that writes elements."""
    put = interface.SX_set

    def set_item(x: Any, index: Any, value: Any) -> None:
        pointers = _element_pointers(index)
        if pointers is not None and type(value) is _SX:
            put(x.this, value.this, False, *pointers)
        elif pointers is not None and _is_plain(value):
            put(x.this, _SX(value).this, False, *pointers)
        else:
            general(x, index, value)

    return set_item


def _is_plain(number: Any) -> bool:
    """Return whether an argument is a Python number that CasADi converts without an error."""
    return type(number) is float or (type(number) is int and abs(number) < LARGEST_INTEGER)


def _fast_operators() -> dict[str, Callable[..., Any]]:
    """Return the fast operators by the names of the methods."""
    functions: dict[str, Callable[..., Any]] = {
        "__matmul__": _product(ca.SX.__matmul__),
        "__getitem__": _get_item(ca.SX.__getitem__),
        "__setitem__": _set_item(ca.SX.__setitem__),
    }
    for name, operation in OPERATIONS.items():
        for label, is_reflected in ((f"__{name}__", False), (f"__r{name}__", True)):
            functions[label] = _operator(operation, getattr(ca.SX, label), is_reflected)
    return functions


def _fast_interface() -> ModuleType:
    """Return CasADi's interface with functions that pass pointers."""

    def with_pointers(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: function(*[pointer(argument) for argument in arguments])

    fast = ModuleType(interface.__name__)
    vars(fast).update(vars(interface))
    for name in CONVERTING:
        setattr(fast, name, with_pointers(getattr(interface, name)))
    return fast


_FAST = _fast_operators()
_ORIGINAL = {label: vars(ca.SX)[label] for label in _FAST if label in vars(ca.SX)}
_FAST_INTERFACE = _fast_interface()
