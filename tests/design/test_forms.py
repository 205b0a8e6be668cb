"""Forms of first order contain the values of every point of their box, in exact or many-digit arithmetic."""

from __future__ import annotations

from fractions import Fraction

import casadi as ca
import numpy as np
import pytest
from extras import extra

from tauloop.common.errors import InputError
from tauloop.design.claims import ARITHMETIC
from tauloop.design.intervals.forms import Form, form
from tauloop.design.intervals.matrices import Matrix, is_definite, matrix
from tauloop.design.intervals.program import program

#: Samples of every operation, and directions of a box.
N, DIRECTIONS = 400, 3


def random_forms(rng: np.random.Generator, least: float = -2.0, size: float = 0.2) -> Form:
    """Forms with middles between `least` and 2, and deviations up to a share of them."""
    c = rng.uniform(least, 2.0, N)
    g = rng.uniform(-1.0, 1.0, (DIRECTIONS, N)) * size * np.abs(c) / DIRECTIONS
    e = rng.uniform(0.0, 0.1 * size, N) * np.abs(c)
    return form(np.concatenate([c[None], g, e[None]]))


def point(x: Form, i: int, t: np.ndarray, r: float) -> Fraction:
    """Exact value of a form at a point of the box, with the share r of the remainder."""
    rows = [Fraction(float(value)) for value in x.rows[:, i]]
    linear = sum((g * Fraction(float(s)) for g, s in zip(rows[1:-1], t, strict=True)), rows[0])
    return linear + rows[-1] * Fraction(r)


def is_inside(x: Form, i: int, t: np.ndarray, value: Fraction) -> bool:
    """Whether an exact value at a point of the box is within the remainder of a form there."""
    rows = [Fraction(float(entry)) for entry in x.rows[:, i]]
    linear = sum((g * Fraction(float(s)) for g, s in zip(rows[1:-1], t, strict=True)), rows[0])
    return abs(value - linear) <= rows[-1]


RATIONAL = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
}


@pytest.mark.parametrize("name", RATIONAL)
def test_rational_operations_contain_exact_values(name: str) -> None:
    rng = np.random.default_rng(1)
    x, y = random_forms(rng), random_forms(rng)
    z = ARITHMETIC[name](x, y)
    for i in range(N):
        t = rng.choice([-1.0, 1.0, 0.25], DIRECTIONS)
        r, s = (float(value) for value in rng.choice([-1.0, 1.0, 0.5], 2))
        assert is_inside(z, i, t, RATIONAL[name](point(x, i, t, r), point(y, i, t, s)))


def test_sums_without_extent_are_rounded_outwards() -> None:
    """0.1 + 0.2 is not 0.3 in floating point; the remainder contains the exact sum of both numbers."""
    first = form(np.array([[0.1], [0.0]]))
    other = form(np.array([[0.2], [0.0]]))
    total = ARITHMETIC["add"](first, other)
    exact = Fraction(0.1) + Fraction(0.2)
    assert float(total.rows[0, 0]) != exact
    assert is_inside(total, 0, np.zeros(0), exact)


@pytest.mark.parametrize("name", ["sine", "cosine", "root", "invert", "square", "tangent"])
def test_functions_contain_values_with_many_digits(name: str) -> None:
    mpmath = extra("mpmath")
    mpmath.mp.prec = 200
    functions = {
        "sine": mpmath.sin,
        "cosine": mpmath.cos,
        "tangent": mpmath.tan,
        "root": mpmath.sqrt,
        "invert": lambda v: 1 / v,
        "square": lambda v: v * v,
    }
    rng = np.random.default_rng(2)
    for size in (0.3, 1e-9, 0.0):
        x = random_forms(rng, least=0.1 if name == "root" else -1.2, size=size)
        if name == "tangent":
            x = form(0.5 * x.rows)
        z = ARITHMETIC[name](x)
        for i in range(N):
            t = rng.choice([-1.0, 1.0, 0.25], DIRECTIONS)
            value = point(x, i, t, float(rng.choice([-1.0, 1.0])))
            exact = functions[name](mpmath.mpf(value.numerator) / value.denominator)
            rows = [mpmath.mpf(float(entry)) for entry in z.rows[:, i]]
            linear = rows[0] + sum(g * float(s) for g, s in zip(rows[1:-1], t, strict=True))
            assert abs(exact - linear) <= rows[-1]


@pytest.mark.parametrize("name", ["invert", "root"])
def test_a_domain_that_is_left_proves_nothing(name: str) -> None:
    x = form(np.array([[0.1], [0.2], [0.0]]))
    with np.errstate(all="ignore"):
        z = ARITHMETIC[name](x)
        lower, upper = z.bounds
    assert not lower[0] > -1e9
    assert not upper[0] < 1e9


def test_second_order_is_left_of_a_product() -> None:
    """Half the box leaves a quarter of the remainder, where plain intervals would leave half of it."""
    remainders = []
    for size in (0.1, 0.05):
        x = form(np.array([[1.0], [size], [0.0]]))
        remainders.append(float(ARITHMETIC["multiply"](x, form(x.rows.copy())).rows[-1, 0]))
    assert remainders[1] == pytest.approx(0.25 * remainders[0], rel=1e-6)


def test_programs_have_the_values_of_casadi() -> None:
    x = ca.SX.sym("x", 3)
    y = ca.vertcat(
        x[0] * x[1] / x[2] - 2 * x[1] ** 2, ca.sqrt(x[2]) + ca.sin(x[0]) * ca.tan(x[1]), 4.0
    )
    lines = program("a test", x, y)
    values = np.array([0.3, -0.7, 1.9])
    inputs = [form(np.array([[value], [0.0]])) for value in values]
    results = [
        float(z.rows[0, 0]) if isinstance(z, Form) else z for z in lines.run(inputs, ARITHMETIC)
    ]
    assert np.allclose(results, np.array(ca.Function("f", [x], [y])(values)).ravel(), rtol=1e-14)


def test_an_operation_without_intervals_is_named() -> None:
    x = ca.SX.sym("x", 2)
    with pytest.raises(InputError, match="ATAN2"):
        program("a test", x, ca.atan2(x[0], x[1]))


def test_definiteness_at_the_vertices_is_that_of_samples() -> None:
    """Matrices whose samples have a negative eigenvalue are never proved; most others are."""
    rng = np.random.default_rng(3)
    half = rng.normal(size=(200, 4, 4))
    rows = np.zeros((4, 200, 4, 4))
    rows[0] = half @ half.swapaxes(1, 2) + 0.3 * np.eye(4)
    for k in (1, 2):
        slope = 0.1 * rng.normal(size=(200, 4, 4))
        rows[k] = slope + slope.swapaxes(1, 2)
    proved = is_definite(matrix(rows), 0.05)
    t = rng.uniform(-1.0, 1.0, (500, 2))
    t[:4] = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    sampled = rows[0][:, None] + np.einsum("sk,knij->nsij", t, rows[1:3])
    least = np.linalg.eigvalsh(sampled)[:, :, 0].min(axis=1)
    assert not proved[least < 0.05].any()
    assert proved[least > 0.05 + 1e-9].all()
    assert 0 < proved.sum() < 200


def test_remainders_count_in_definiteness() -> None:
    rows = np.zeros((3, 1, 2, 2))
    rows[0] = np.eye(2)
    rows[-1] = 0.4
    G = matrix(rows)
    assert isinstance(G, Matrix)
    assert is_definite(G, 0.15)[0]
    assert not is_definite(G, 0.25)[0]
