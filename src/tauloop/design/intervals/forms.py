"""Affine forms over batches of boxes: bounds of functions with a remainder of second order.

An affine form is x = c + sum_k g_k t_k + r with |t_k| <= 1 and |r| <= e. It has the center c and the
generators g_k. The point t of the box determines the linear part. The remainder r contains all terms
of higher order and all rounding errors. N forms are an array (k + 2, N) with the rows
c, g_1 ... g_k, e. Running error bounds cover the rounding errors, so that no rounding mode has to be
set. Outside the domain of a function (the square root of
an interval with negative numbers, a division by an interval with zero) the remainder is infinite or
NaN, and comparisons are false.

Source: de Figueiredo and Stolfi 2004, Affine arithmetic: concepts and applications; Makino and Berz
2003, Taylor models and other validated functional inclusion methods (order one).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tauloop.common.records import dataclass

#: Bound of the rounding errors of an operation, relative to the magnitudes of its terms: eight unit
#: roundoffs. A product or a sum of at most three terms needs four.
ROUNDING = 2.0**-50
#: Factor that covers the rounding errors of the remainders themselves: less than 64 operations on
#: positive numbers.
INFLATION = 1.0 + 2.0**-46
#: Error of NumPy's sine and cosine: four units in the last place of a number up to one.
SINE_ERROR = 4 * 2.0**-52
#: Bound of the errors of results below the range of normal numbers.
UNDERFLOW = 1e-300


@dataclass(frozen=True, slots=True)
class Form:
    """N affine forms.

    Attributes:
        rows: coefficients (k + 2, N): centers c, generators g_1 ... g_k, and bounds e of the
            remainders.
        radius: upper bounds (N,) of |x - c|.
    """

    rows: np.ndarray
    radius: np.ndarray

    @property
    def n_symbols(self) -> int:
        """Number k of generators."""
        return len(self.rows) - 2

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds (N,)."""
        c = self.rows[0]
        radius = self.radius * INFLATION + ROUNDING * np.abs(c) + UNDERFLOW
        return c - radius, c + radius


#: The value of a register: forms, or a number that is the same in all boxes.
Register = Form | float


def form(rows: np.ndarray) -> Form:
    """Return forms from their coefficients (k + 2, N)."""
    return Form(rows, np.abs(rows[1:]).sum(axis=0) * INFLATION)


def constant(value: float, n_symbols: int, n: int) -> Form:
    """Return n forms of the same number."""
    rows = np.zeros((n_symbols + 2, n))
    rows[0] = value
    return Form(rows, np.zeros(n))


def _rounded(rows: np.ndarray) -> Form:
    """Return forms from coefficients, with the rounding errors of a sum added to the remainders."""
    radius = np.abs(rows[1:]).sum(axis=0)
    rounding = ROUNDING * (np.abs(rows[0]) + radius) + UNDERFLOW
    rows[-1] += rounding
    return Form(rows, (radius + rounding) * INFLATION)


def add(x: Register, y: Register) -> Register:
    """Return x + y."""
    if isinstance(x, Form) and isinstance(y, Form):
        return _rounded(x.rows + y.rows)
    if isinstance(x, Form):
        rows = x.rows.copy()
        rows[0] += y
        return _rounded(rows)
    return add(y, x) if isinstance(y, Form) else x + y


def negate(x: Register) -> Register:
    """Return -x."""
    if not isinstance(x, Form):
        return -x
    rows = -x.rows
    rows[-1] = x.rows[-1]
    return Form(rows, x.radius)


def subtract(x: Register, y: Register) -> Register:
    """Return x - y."""
    if isinstance(x, Form) and isinstance(y, Form):
        rows = x.rows - y.rows
        rows[-1] = x.rows[-1] + y.rows[-1]
        return _rounded(rows)
    return add(x, negate(y))


def multiply(x: Register, y: Register) -> Register:
    """Return x y; the products of the deviations are part of the remainder."""
    if not isinstance(x, Form):
        return _scale(y, x) if isinstance(y, Form) else x * y
    if not isinstance(y, Form):
        return _scale(x, y)
    if x is y:
        return square(x)
    a, b = x.rows, y.rows
    A, B = np.abs(a[0]), np.abs(b[0])
    rows = a[0] * b
    rows[1:-1] += b[0] * a[1:-1]
    terms = A * (B + y.radius) + B * x.radius
    rows[-1] = (
        A * b[-1] + B * a[-1] + x.radius * y.radius + ROUNDING * terms
    ) * INFLATION + UNDERFLOW
    return form(rows)


def _scale(x: Form, factor: float) -> Form:
    """Return the product of forms and a number."""
    rows = factor * x.rows
    rows[-1] = abs(rows[-1])
    return _rounded(rows)


def square(x: Register) -> Register:
    """Return x^2; the square of the deviation is between zero and the square of its bound."""
    if not isinstance(x, Form):
        return x * x
    c = x.rows[0]
    A = np.abs(x.rows[0])
    half = 0.5 * x.radius * x.radius
    rows = (2.0 * c) * x.rows
    rows[0] = c * c + half
    terms = A * (A + 2.0 * x.radius) + half
    rows[-1] = (2.0 * A * x.rows[-1] + half + ROUNDING * terms) * INFLATION + UNDERFLOW
    return form(rows)


def _linear(
    x: Form, value: np.ndarray, slope: np.ndarray, shift: np.ndarray, remainder: np.ndarray
) -> Form:
    """Return value + shift + slope (x - c) with an additional remainder.

    Args:
        x: the argument.
        value, slope: the function and its derivative at c.
        shift: midpoint of the second-order terms.
        remainder: half width of the second-order terms, and errors of `value`.
    """
    rows = slope * x.rows
    rows[0] = value + shift
    terms = np.abs(value) + np.abs(shift) + np.abs(slope) * x.radius
    remainder = np.abs(slope) * x.rows[-1] + remainder + 2.0 * ROUNDING * terms
    rows[-1] = remainder * INFLATION + UNDERFLOW
    return form(rows)


def invert(x: Register) -> Register:
    """Return 1 / x; its second-order term is (x - c)^2 / (c^2 x)."""
    if not isinstance(x, Form):
        return 1.0 / x
    c = x.rows[0]
    smallest = np.abs(c) * (1.0 - ROUNDING) - x.radius
    inverse = 1.0 / c
    half = 0.5 * (x.radius * inverse) ** 2 / np.where(smallest > 0, smallest, np.nan) * INFLATION
    return _linear(x, inverse, -inverse * inverse, np.sign(c) * half, half)


def divide(x: Register, y: Register) -> Register:
    """Return x / y."""
    if not isinstance(y, Form) and not isinstance(x, Form):
        return x / y
    return multiply(x, invert(y))


def root(x: Register) -> Register:
    """Return the square root; its second-order term is -(sqrt(x) - sqrt(c))^2 / (2 sqrt(c))."""
    if not isinstance(x, Form):
        return float(np.sqrt(x))
    c = x.rows[0]
    smallest = c * (1.0 - ROUNDING) - x.radius
    s = np.sqrt(np.where(smallest >= 0, c, np.nan))
    deviation = x.radius / (s + np.sqrt(np.maximum(smallest, 0.0)))
    half = deviation * deviation / (4.0 * s) * INFLATION
    return _linear(x, s, 0.5 / s, -half, half)


def sine(x: Register) -> Register:
    """Return the sine; the remainder includes SINE_ERROR."""
    return _circular(x, np.sin, np.cos, 1.0)


def cosine(x: Register) -> Register:
    """Return the cosine; the remainder includes SINE_ERROR."""
    return _circular(x, np.cos, np.sin, -1.0)


def _circular(
    x: Register,
    function: Callable[[np.ndarray], np.ndarray],
    derivative: Callable[[np.ndarray], np.ndarray],
    sign: float,
) -> Register:
    """Return a sine or cosine; the second derivative is the negative of the function.

    Args:
        x: the argument.
        function: the function.
        derivative: the derivative without its sign.
        sign: sign of the derivative.
    """
    if not isinstance(x, Form):
        return float(function(np.array(x)))
    c = x.rows[0]
    value = function(c)
    slope = sign * derivative(c)
    # Largest magnitude of the second derivative over the box.
    second = np.minimum(np.abs(value) + SINE_ERROR + x.radius, 1.0)
    remainder = 0.5 * x.radius * x.radius * second + SINE_ERROR * (1.0 + x.radius)
    return _linear(x, value, slope, np.zeros_like(c), remainder * INFLATION)


def absolute(x: Register) -> Register:
    """Return |x|; the remainder is NaN if the form contains zero."""
    if not isinstance(x, Form):
        return abs(x)
    rows = np.where(x.rows[0] < 0, -1.0, 1.0) * x.rows
    rows[-1] = np.where(np.abs(x.rows[0]) > x.radius, x.rows[-1], np.nan)
    return Form(rows, np.where(np.abs(x.rows[0]) > x.radius, x.radius, np.nan))
