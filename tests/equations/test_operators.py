"""Fast operators of expressions yield the expressions, and raise the errors, of CasADi's own."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest

from tauloop import Model
from tauloop.equations.operators import CONVERTING, cross, fast_operators, interface

SYMBOLS = (operator.add, operator.sub, operator.mul, operator.truediv, operator.matmul)


def sparse() -> ca.SX:
    expression = ca.SX(3, 1)
    expression[1] = ca.SX.sym("s")
    return expression


OPERANDS: dict[str, Callable[[], Any]] = {
    "scalar": lambda: ca.SX.sym("x"),
    "vector": lambda: ca.SX.sym("v", 3),
    "sparse": sparse,
    "zero": lambda: ca.SX(3, 1),
    "structural zero": lambda: ca.SX(1, 1),
    "one": lambda: ca.SX(1.0),
    "row": lambda: ca.SX.sym("r", 1, 3),
    "matrix": lambda: ca.SX.sym("M", 3, 3),
    "identity": lambda: ca.SX.eye(3),
    "dense identity": lambda: ca.densify(ca.SX.eye(3)),
    "zero matrix": lambda: ca.SX(3, 3),
    "column block": lambda: ca.SX.sym("b", 3, 2),
    "empty": lambda: ca.SX(0, 0),
    "empty vector": lambda: ca.SX(0, 1),
    "int": lambda: 2,
    "large int": lambda: 10**400,
    "float": lambda: 0.1,
    "infinity": lambda: float("inf"),
    "bool": lambda: True,
    "numpy number": lambda: np.float64(0.3),
    "array": lambda: np.array([1.0, 2.0, 3.0]),
    "DM": lambda: ca.DM([1, 2, 3]),
    "MX": lambda: ca.MX.sym("m", 3),
    "text": lambda: "x",
    "none": lambda: None,
}


def described(compute: Callable[[], Any]) -> object:
    """Return the type, structure and operations of an expression, or the type of the error."""
    try:
        result = compute()
    except Exception as error:
        return type(error)
    if isinstance(result, ca.SX):
        return type(result), result.sparsity().serialize(), [str(x) for x in result.nonzeros()]
    return type(result), str(result)


@pytest.mark.parametrize("symbol", SYMBOLS, ids=lambda symbol: symbol.__name__)
@pytest.mark.parametrize(
    "first", ["scalar", "vector", "sparse", "structural zero", "one", "matrix", "identity", "empty"]
)
def test_operators_are_casadis(first: str, symbol: Callable[..., Any]) -> None:
    x, others = OPERANDS[first](), {name: make() for name, make in OPERANDS.items()}
    with fast_operators():
        fast = {name: both_ways(symbol, x, y) for name, y in others.items()}
    assert fast == {name: both_ways(symbol, x, y) for name, y in others.items()}


def both_ways(symbol: Callable[..., Any], x: Any, y: Any) -> tuple[object, object]:
    return described(lambda: symbol(x, y)), described(lambda: symbol(y, x))


@pytest.mark.parametrize(
    "index", [0, 2, 3, -1, 5000, True, (0, 0), (2, 1), (0, 3), (0, -1), slice(1, 3), [0, 2], "x"]
)
@pytest.mark.parametrize("first", ["scalar", "vector", "sparse", "zero", "row", "matrix", "empty"])
def test_elements_are_casadis(first: str, index: Any) -> None:
    x = OPERANDS[first]()
    with fast_operators():
        fast = described(lambda: x[index])
    assert fast == described(lambda: x[index])


@pytest.mark.parametrize("value", ["scalar", "structural zero", "vector", "int", "float", "text"])
@pytest.mark.parametrize("index", [0, 2, 3, -1, (0, 0), (2, 1), slice(1, 3)])
@pytest.mark.parametrize("first", ["vector", "sparse", "zero", "matrix"])
def test_elements_are_set_as_by_casadi(first: str, index: Any, value: str) -> None:
    x, item = OPERANDS[first](), OPERANDS[value]()

    def changed() -> ca.SX:
        copy = ca.SX(x)
        copy[index] = item
        return copy

    with fast_operators():
        fast = described(changed)
    assert fast == described(changed)


FUNCTIONS: dict[str, Callable[[ca.SX], Any]] = {
    "vertcat": lambda x: ca.vertcat(x, 1.0, x),
    "horzcat": lambda x: ca.horzcat(x, x),
    "vertsplit": lambda x: ca.SX(ca.vertsplit(x)[-1]),
    "transpose": lambda x: x.T,
    "mtimes": lambda x: ca.mtimes(x, x.T),
    "dot": lambda x: ca.dot(x, ca.DM.ones(*x.shape)),
    "sumsqr": ca.sumsqr,
    "power": lambda x: x**2,
    "plus": lambda x: x + np.ones(x.shape),
    "reshape": lambda x: ca.reshape(x, (1, x.numel())),
    "repmat": lambda x: ca.repmat(x, 1, 2),
    "diagcat": lambda x: ca.diagcat(x, 2.0),
    "cse": lambda x: ca.cse([x * x, x * x + 1])[0],
    "rows": lambda x: x[[0], :],
    "last": lambda x: x[-1],
    "nonzero": lambda x: x.nz[0],
    "atan2": lambda x: ca.atan2(x, 2.0),
    "jacobian": lambda x: ca.jacobian(x * x, ca.vertcat(*ca.symvar(x))),
    "substitute": lambda x: ca.substitute([x], ca.symvar(x), [ca.SX(2.0)] * x.nnz())[0],
    "copy": ca.SX,
    "function": lambda x: ca.Function("f", ca.symvar(x), [x]).serialize(),
}


@pytest.mark.parametrize("first", ["scalar", "vector", "sparse", "row", "matrix", "empty vector"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_casadis(name: str, first: str) -> None:
    x = OPERANDS[first]()
    with fast_operators():
        fast = described(lambda: FUNCTIONS[name](x))
    assert fast == described(lambda: FUNCTIONS[name](x))


def test_functions_take_an_expression_and_its_pointer() -> None:
    x = ca.SX.sym("x", 3)
    expected = str(ca.densify(x))
    for name in CONVERTING:
        assert callable(getattr(interface, name))
    with fast_operators():
        assert ca.casadi._casadi is not interface
        assert str(ca.densify(x)) == expected
    assert ca.casadi._casadi is interface


@pytest.mark.parametrize("second", ["vector", "sparse", "zero"])
@pytest.mark.parametrize("first", ["vector", "sparse", "zero"])
def test_cross_products_are_casadis(first: str, second: str) -> None:
    a, b = OPERANDS[first](), OPERANDS[second]()
    assert described(lambda: cross(a, b)) == described(lambda: ca.cross(a, b))


def test_a_product_with_the_identity_is_a_copy() -> None:
    vector = ca.SX.sym("v", 3)
    with fast_operators():
        products = ca.SX.eye(3) @ vector, (vector.T @ ca.SX.eye(3)).T
    for product in products:
        product[0] = 0.0
    assert [x.is_symbolic() for x in vector.nonzeros()] == [True] * 3


def test_casadi_has_its_own_operators_outside_of_the_building_of_a_machine() -> None:
    names = ("__add__", "__rmul__", "__matmul__", "__getitem__", "__setitem__")
    own = {name: getattr(ca.SX, name) for name in names}
    with fast_operators():
        with fast_operators():
            assert all(getattr(ca.SX, name) is not method for name, method in own.items())
        assert ca.SX.__add__ is not own["__add__"]
    assert {name: getattr(ca.SX, name) for name in own} == own
    Model("five_bar").platform.program("inverse_dynamics")
    assert {name: getattr(ca.SX, name) for name in own} == own
