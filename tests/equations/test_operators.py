"""Fast operators of expressions yield the expressions, and raise the errors, of CasADi's own."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest

from tauloop import Model
from tauloop.equations.operators import cross, fast_operators

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
@pytest.mark.parametrize("second", OPERANDS)
@pytest.mark.parametrize(
    "first", ["scalar", "vector", "sparse", "structural zero", "one", "matrix", "identity", "empty"]
)
def test_operators_are_casadis(first: str, second: str, symbol: Callable[..., Any]) -> None:
    x, y = OPERANDS[first](), OPERANDS[second]()
    with fast_operators():
        fast = described(lambda: symbol(x, y)), described(lambda: symbol(y, x))
    assert fast == (described(lambda: symbol(x, y)), described(lambda: symbol(y, x)))


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
    own = {name: getattr(ca.SX, name) for name in ("__add__", "__rmul__", "__matmul__")}
    with fast_operators():
        with fast_operators():
            assert all(getattr(ca.SX, name) is not method for name, method in own.items())
        assert ca.SX.__add__ is not own["__add__"]
    assert {name: getattr(ca.SX, name) for name in own} == own
    Model("five_bar").platform.program("inverse_dynamics")
    assert {name: getattr(ca.SX, name) for name in own} == own
