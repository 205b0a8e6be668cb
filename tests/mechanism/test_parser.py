"""Expressions: values against Python's own arithmetic, dimensions, folding, and everything that is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from tauloop.mechanism.description import units
from tauloop.mechanism.description.parser import (
    MAX_NESTING,
    MAX_OPERATORS,
    ExpressionError,
    Quantity,
    is_too_large,
    names,
    parse,
    resolve,
)
from tauloop.mechanism.description.units import MAX_CHARACTERS, Dimension
from tauloop.mechanism.expression import ZERO, Call, Constant, Expression, Leaf, evaluate

LEAVES = {
    "L": Quantity(Leaf("L"), units.LENGTH),
    "r": Quantity(Leaf("r"), units.LENGTH),
    "m": Quantity(Leaf("m"), units.MASS),
    "phi": Quantity(Leaf("phi"), units.ANGLE),
    "n": Quantity(Leaf("n"), units.ONE),
    "leg1.x": Quantity(Leaf("leg1.x"), units.LENGTH),
}
VALUES = {"L": 0.5, "r": 0.2, "m": 3.0, "phi": 0.7, "n": 2.0, "leg1.x": 0.1}


def read(text: str) -> Quantity:
    quantity = resolve(parse(text), LEAVES)
    assert quantity is not None
    return quantity


def value(text: str) -> float:
    return float(evaluate(read(text).expression, VALUES))


def refused(text: str) -> ExpressionError:
    with pytest.raises(ExpressionError) as raised:
        read(text)
    return raised.value


@pytest.mark.parametrize(
    ("text", "expected", "dimension"),
    [
        ("2 * L - 5 mm", 0.995, units.LENGTH),
        ("m * L^2 / 12", 0.0625, units.INERTIA),
        ("-L^2", -0.25, units.LENGTH**2),
        ("(-L)^2", 0.25, units.LENGTH**2),
        ("2^3^2", 512.0, units.ONE),
        ("2^-1", 0.5, units.ONE),
        ("8 / 4 / 2", 1.0, units.ONE),
        ("8 - 4 - 2", 2.0, units.ONE),
        ("1 + 2 * 3", 7.0, units.ONE),
        ("-2 * -3", 6.0, units.ONE),
        ("--2", 2.0, units.ONE),
        ("+L", 0.5, units.LENGTH),
        ("120 deg", 2 * math.pi / 3, units.ANGLE),
        ("(n - 1) * 120 deg", 2 * math.pi / 3, units.ANGLE),
        ("pi / 2", math.pi / 2, units.ANGLE),
        ("sin(phi) * L", math.sin(0.7) * 0.5, units.LENGTH),
        ("atan2(r, L)", math.atan2(0.2, 0.5), units.ANGLE),
        ("asin(r / L)", math.asin(0.4), units.ANGLE),
        ("atan(1 / sqrt(2))", math.atan(1 / math.sqrt(2)), units.ANGLE),
        ("sqrt(L^2 + r^2)", math.hypot(0.5, 0.2), units.LENGTH),
        ("abs(r - L)", 0.3, units.LENGTH),
        ("leg1.x + 1 m", 1.1, units.LENGTH),
        ("L^0.5", math.sqrt(0.5), units.LENGTH ** Fraction(1, 2)),
        ("0 + L", 0.5, units.LENGTH),
        ("1e-3 * m", 3e-3, units.MASS),
        (".5 * m + 1. kg", 2.5, units.MASS),
    ],
)
def test_values_and_dimensions(text: str, expected: float, dimension: Dimension) -> None:
    assert value(text) == pytest.approx(expected, rel=1e-15)
    assert read(text).dimension == dimension


NUMBERS = st.floats(0.1, 10.0).map(lambda x: f"{x:.3f}")
SIMPLE = st.recursive(
    NUMBERS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(" ".join),
        inner.map("({})".format),
        inner.map("-{}".format),
        inner.map("abs({})".format),
        st.tuples(inner, st.sampled_from(["2", "3", "-1", "0.5"])).map(
            lambda t: f"abs({t[0]})^{t[1]}"
        ),
    ),
    max_leaves=12,
)


@given(text=SIMPLE)
def test_agrees_with_python(text: str) -> None:
    try:
        # text that this test has made: the other route
        expected = eval(text.replace("^", "**"), {"abs": abs})
    except (ZeroDivisionError, OverflowError):
        refused(text)
        return
    # the order of operations is the same, folding is not
    assert value(text) == pytest.approx(expected, rel=1e-12)


@given(text=st.text(alphabet="Lrmn phi0123456789.()+-*/^,ei_", max_size=40))
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    try:
        syntax = parse(text)
        known = {name: LEAVES.get(name, LEAVES["n"]) for name in names(syntax)}
        quantity = resolve(syntax, known)
    except ExpressionError as error:
        reason = error.what, error.remedy
    else:
        assert isinstance(quantity, Quantity)
        return
    assert all(reason)


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        ("", "there is no value", "number with its unit"),
        ("L +", "ends where a value is needed", "complete"),
        ("(L", "ends where a closing parenthesis is needed", "complete"),
        ("L)", "unexpected ')' (character 2) where an operator is needed", "check"),
        ("2 ** 3", "unexpected **", "write ^"),
        ("L r", "'r' (character 3) follows without an operator", "write * between"),
        ("2 (L)", "'(' (character 3) follows without", "write *"),
        ("2 L", "unknown unit 'L'", "2 * L"),
        ("2 kg m", "follows without an operator", "compound unit"),
        ("2 Nm", "unknown unit 'Nm'", "did you mean N m?"),
        ("L = 2", "unexpected '=' at character 3", "use only numbers"),
        ("'L'", "unexpected", "use only numbers"),
        ("L[x]", "unexpected '[' at character 2", "use only numbers"),
        ("exp(1)", "unknown function exp", "did you mean|functions are sin"),
        ("sine(phi)", "unknown function sine", "did you mean sin"),
        ("sin(phi, phi)", "sin takes 1 argument, not 2", "commas"),
        ("atan2(L)", "atan2 takes 2 arguments, not 1", "commas"),
        ("sin()", "unexpected ')' (character 5) where a value is needed", "check"),
        ("L + m", "'+' adds a length (m) to a mass (kg)", "same unit"),
        ("L - m", "'-' subtracts a mass (kg) from a length (m)", "same unit"),
        ("L + 1", "'+' adds a length (m) to a plain number", "same unit"),
        ("phi + 1", "'+' adds an angle (rad) to a plain number", "same unit"),
        ("sin(L)", "sin takes an angle (rad), not a length (m)", "30 deg"),
        ("sin(0.5)", "sin takes an angle (rad), not a plain number", "30 deg"),
        ("asin(L)", "asin takes a plain number, not a length (m)", "reference value"),
        ("2^n", "exponent of ^ is not a plain number", "constant exponent"),
        ("2^L", "exponent of ^ is not a plain number", "constant exponent"),
        ("L^13", "must be between -12 and 12, got 13", "check"),
        ("L / 0", "division by zero", "denominator"),
        ("1 / (2 - 2)", "division by zero", "denominator"),
        ("sqrt(-1)", "sqrt has no finite real value at -1", "check the numbers"),
        ("asin(2)", "asin has no finite real value at 2", "check the numbers"),
        ("(-8)^0.5", "^ has no finite real value", "check the numbers"),
        ("1e300 * 1e300", "* has no finite real value", "check the numbers"),
        ("1e999", "the number 1e999 is too large", "exponent"),
    ],
)
def test_what_is_refused(text: str, what: str, remedy: str) -> None:
    error = refused(text)
    assert what in error.what
    assert any(part in error.remedy for part in remedy.split("|"))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("+".join(["L"] * (MAX_OPERATORS + 2)), "operators"),
        ("(" * (MAX_NESTING + 1) + "L" + ")" * (MAX_NESTING + 1), "nested"),
        ("-" * (MAX_NESTING + 2) + "L", "nested"),
        ("L" + "^1" * (MAX_NESTING + 2), "nested"),
        ("sin(" * (MAX_NESTING + 1) + "L" + ")" * (MAX_NESTING + 1), "nested"),
        ("L" + " " * MAX_CHARACTERS, "characters"),
    ],
)
def test_size_is_limited(text: str, what: str) -> None:
    assert what in refused(text).what


def test_the_largest_allowed_expression_is_read_and_evaluated() -> None:
    text = "+".join(["L"] * (MAX_OPERATORS + 1))
    assert value(text) == pytest.approx((MAX_OPERATORS + 1) * 0.5, rel=1e-13)
    nested = "(" * MAX_NESTING + "L" + ")" * MAX_NESTING
    assert value(nested) == 0.5


def test_doubling_is_seen_without_writing_it_out() -> None:
    doubled: Expression = Leaf("L")
    for _ in range(60):  # 2^60 leaves when written out
        doubled = Call("+", (doubled, doubled))
    assert is_too_large(doubled)
    assert not is_too_large(read("m * L^2 / 12").expression)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("0 * L", ZERO),
        ("L + 0", Leaf("L")),
        ("1 * L", Leaf("L")),
        ("cos(90 deg) * L", ZERO),
        ("sin(-90 deg) * 2", Constant(-2.0)),
        ("cos(180 deg)", Constant(-1.0)),
        ("sin(360 deg)", ZERO),
        ("2 * 3 mm", Constant(0.006)),
    ],
)
def test_constants_fold(text: str, folded: Expression) -> None:
    assert read(text).expression == folded


def test_an_attribute_is_a_name_like_any_other() -> None:
    assert list(names(parse("L.__class__ + leg1.x"))) == ["L.__class__", "leg1.x"]


def test_a_failed_name_fails_quietly() -> None:
    assert resolve(parse("L + broken * 2"), {**LEAVES, "broken": None}) is None


def test_where_a_quantity_fits() -> None:
    bare_zero, zero_length = read("0"), read("0 m")
    assert bare_zero.fits(units.MASS)
    assert bare_zero.fits(units.ANGLE)
    assert zero_length.fits(units.LENGTH)
    assert not zero_length.fits(units.MASS)
    assert read("phi").fits(units.ANGLE)
    assert not read("n").fits(units.ANGLE)
    assert not read("phi").fits(units.ONE)
    assert read("m * L^2 * phi").fits(units.INERTIA)
