"""Affine forms and small matrices in python-flint's arb, for checks of proofs.

This code is independent of the batched NumPy implementation. All coefficients are balls, so that
arb bounds the rounding errors.

Source: Johansson 2017, Arb: efficient arbitrary-precision midpoint-radius interval arithmetic.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flint import arb

if TYPE_CHECKING:
    import numpy as np

#: A ball form, or a number (a constant).
Entry = Any


class BallForm:
    """An affine form x = c + sum_k g_k t_k + r with |t_k| <= 1 and |r| <= e.

    Attributes:
        c: value at the center of the box, a ball.
        g: generators, balls.
        e: upper bound of the remainder |r|.
        radius: upper bound of |x - c|.
    """

    __slots__ = ("c", "e", "g", "radius")

    def __init__(self, c: arb, g: Sequence[arb], e: arb) -> None:
        """Store the coefficients, and compute the radius."""
        self.c, self.g, self.e = c, g, e
        self.radius = sum((abs(x) for x in g), e)

    def __add__(self, other: Entry) -> BallForm:
        """Return the sum."""
        if isinstance(other, BallForm):
            g = [a + b for a, b in zip(self.g, other.g, strict=True)]
            return BallForm(self.c + other.c, g, self.e + other.e)
        return BallForm(self.c + other, self.g, self.e)

    __radd__ = __add__

    def __neg__(self) -> BallForm:
        """Return the negative."""
        return BallForm(-self.c, [-a for a in self.g], self.e)

    def __sub__(self, other: Entry) -> BallForm:
        """Return the difference."""
        return self + (-other)

    def __rsub__(self, other: Entry) -> BallForm:
        """Return the difference from a number."""
        return (-self) + other

    def __mul__(self, other: Entry) -> BallForm:
        """Return the product."""
        c, g = self.c, self.g
        if not isinstance(other, BallForm):
            return BallForm(c * other, [a * other for a in g], self.e * abs(arb(other)))
        d = other.c
        linear = [c * b + d * a for a, b in zip(g, other.g, strict=True)]
        remainder = abs(c) * other.e + abs(d) * self.e + self.radius * other.radius
        return BallForm(c * d, linear, remainder)

    __rmul__ = __mul__

    def lower(self) -> arb:
        """Return a lower bound, as a ball."""
        return self.c - self.radius

    def upper(self) -> arb:
        """Return an upper bound, as a ball."""
        return self.c + self.radius

    def magnitude_bounds(self) -> arb:
        """Return an upper bound of the absolute value, as a ball."""
        return abs(self.c) + self.radius

    def linearized(self, value: arb, slope: arb, shift: arb, remainder: arb) -> BallForm:
        """Return value + shift + slope (x - c) with an additional remainder."""
        linear = [slope * a for a in self.g]
        return BallForm(value + shift, linear, abs(slope) * self.e + remainder)


def square(x: Entry) -> Entry:
    """Return x^2."""
    if not isinstance(x, BallForm):
        return x * x
    half = x.radius * x.radius / 2
    return x.linearized(x.c * x.c, 2 * x.c, half, half)


def invert(x: Entry) -> Entry:
    """Return 1 / x; the remainder is infinite if the range of x contains zero."""
    if not isinstance(x, BallForm):
        return 1 / arb(x)
    smallest = abs(x.c) - x.radius
    if not smallest > 0:
        return BallForm(x.c, x.g, arb("inf"))
    inverse = 1 / x.c
    half = (x.radius * inverse) ** 2 / (2 * smallest)
    return x.linearized(inverse, -inverse * inverse, half if x.c > 0 else -half, half)


def root(x: Entry) -> Entry:
    """Return the square root; it is unbounded if the range of x contains negative numbers."""
    if not isinstance(x, BallForm):
        return arb(x).sqrt()
    smallest = x.c - x.radius
    if not smallest >= 0:
        return BallForm(x.c, x.g, arb("inf"))
    s = x.c.sqrt()
    half = (x.radius / (s + smallest.sqrt())) ** 2 / (4 * s)
    return x.linearized(s, 1 / (2 * s), -half, half)


def _circular(x: BallForm, value: arb, slope: arb) -> BallForm:
    """Return a sine or cosine from its value and slope at the center of the box."""
    second = abs(value) + x.radius
    if second > 1:
        second = arb(1)
    return x.linearized(value, slope, arb(0), x.radius * x.radius * second / 2)


def sine(x: Entry) -> Entry:
    """Return the sine."""
    return _circular(x, x.c.sin(), x.c.cos()) if isinstance(x, BallForm) else arb(x).sin()


def cosine(x: Entry) -> Entry:
    """Return the cosine."""
    return _circular(x, x.c.cos(), -x.c.sin()) if isinstance(x, BallForm) else arb(x).cos()


def absolute(x: Entry) -> Entry:
    """Return |x|; the remainder is infinite if the range of x contains zero."""
    if not isinstance(x, BallForm):
        return abs(arb(x))
    if x.lower() > 0:
        return x
    return -x if x.upper() < 0 else BallForm(x.c, x.g, arb("inf"))


#: The operations of programs in ball forms, by the names of `tauloop.design.intervals.program`.
BALLS: Mapping[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: square(x) if x is y else x * y,
    "divide": lambda x, y: x * invert(y),
    "negate": lambda x: -x,
    "square": square,
    "twice": lambda x: x * 2,
    "invert": invert,
    "root": root,
    "sine": sine,
    "cosine": cosine,
    "tangent": lambda x: sine(x) * invert(cosine(x)),
    "absolute": absolute,
}


class BallMatrix:
    """A matrix of ball forms.

    Attributes:
        rows: entries by row and column.
        n_symbols: number of symbols t_k of the forms.
    """

    __slots__ = ("n_symbols", "rows")

    def __init__(self, rows: list[list[Entry]], n_symbols: int) -> None:
        """Store the entries; numbers become forms."""
        self.rows = [_as_forms(row, n_symbols) for row in rows]
        self.n_symbols = n_symbols

    @classmethod
    def constant(cls, values: np.ndarray, n_symbols: int) -> BallMatrix:
        """Return a matrix of numbers as constant forms."""
        return cls(values.tolist(), n_symbols)

    @classmethod
    def by_columns(cls, values: Sequence[Entry], r: int, s: int, n_symbols: int) -> BallMatrix:
        """Return a matrix (r, s) from its entries, one column after the other."""
        rows = [list(values[row : s * r : r]) for row in range(r)]
        return cls(rows, n_symbols)

    def columns(self, chosen: Sequence[int]) -> BallMatrix:
        """Return the matrix of the columns with these indices."""
        rows = []
        for row in self.rows:
            rows.append([row[column] for column in chosen])
        return BallMatrix(rows, self.n_symbols)

    def transposed(self) -> BallMatrix:
        """Return the transposed matrix."""
        return BallMatrix([list(column) for column in zip(*self.rows, strict=True)], self.n_symbols)

    def times(self, other: BallMatrix) -> BallMatrix:
        """Return the product with another matrix."""
        columns = list(zip(*other.rows, strict=True))
        rows = []
        for row in self.rows:
            rows.append([_dot(row, column) for column in columns])
        return BallMatrix(rows, self.n_symbols)

    def plus(self, other: BallMatrix) -> BallMatrix:
        """Return the sum with another matrix."""
        rows = []
        for row, other_row in zip(self.rows, other.rows, strict=True):
            rows.append([a + b for a, b in zip(row, other_row, strict=True)])
        return BallMatrix(rows, self.n_symbols)

    def numeric_product(self, left: Sequence[Sequence[float]]) -> BallMatrix:
        """Return the product of a matrix of numbers with this matrix."""
        columns = list(zip(*self.rows, strict=True))
        rows = []
        for factors in left:
            rows.append([_dot(column, factors) for column in columns])
        return BallMatrix(rows, self.n_symbols)

    def centers(self) -> list[list[float]]:
        """Return the midpoints of the entries in floating point."""
        rows = []
        for row in self.rows:
            rows.append([float(x.c.mid()) for x in row])
        return rows

    def magnitude_bounds(self) -> list[list[arb]]:
        """Return upper bounds of the absolute values of the entries."""
        rows = []
        for row in self.rows:
            rows.append([x.magnitude_bounds() for x in row])
        return rows


def _as_forms(row: Sequence[Entry], n_symbols: int) -> list[BallForm]:
    """Return the entries of a row as forms."""
    zero = [arb(0)] * n_symbols
    return [x if isinstance(x, BallForm) else BallForm(arb(x), zero, arb(0)) for x in row]


def _dot(forms: Sequence[BallForm], factors: Sequence[Entry]) -> Entry:
    """Return the scalar product of forms with forms or numbers."""
    total: Entry = arb(0)
    for x, y in zip(forms, factors, strict=True):
        if isinstance(y, BallForm) or y != 0.0:
            total = x * y + total
    return total


def near_inverse_product(near_identity: BallMatrix, Q: BallMatrix) -> BallMatrix | None:
    """Return (I + D)^-1 Q for a matrix I + D; None if D is too large.

    (I + D)^-1 Q = Q - D Q + R with |R| <= |D|^2 (I - |D|)^-1 |Q|, entry by entry.
    """
    n = len(near_identity.rows)
    columns = len(Q.rows[0])
    D = _minus_identity(near_identity)
    abs_D = D.magnitude_bounds()
    norm = max(sum(row, arb(0)).upper() for row in abs_D)
    if not norm < 0.95:
        return None
    second_order = _times(abs_D, _times(abs_D, Q.magnitude_bounds()))
    tail = []
    for column in zip(*second_order, strict=True):
        largest = max(entry.upper() for entry in column)
        tail.append(largest * norm / (1 - norm))
    DQ = D.times(Q).rows
    rows: list[list[Entry]] = []
    for i in range(n):
        first_order = [Q.rows[i][j] - DQ[i][j] for j in range(columns)]
        rows.append([_widened(x, second_order[i][j] + tail[j]) for j, x in enumerate(first_order)])
    return BallMatrix(rows, Q.n_symbols)


def _minus_identity(A: BallMatrix) -> BallMatrix:
    """Return A - I."""
    rows: list[list[Entry]] = []
    for i, row in enumerate(A.rows):
        rows.append([x - (1.0 if i == j else 0.0) for j, x in enumerate(row)])
    return BallMatrix(rows, A.n_symbols)


def _times(A: list[list[arb]], B: list[list[arb]]) -> list[list[arb]]:
    """Return the product of two matrices of balls."""
    columns = list(zip(*B, strict=True))
    rows = []
    for row in A:
        rows.append([_ball_dot(row, column) for column in columns])
    return rows


def _ball_dot(x: Sequence[arb], y: Sequence[arb]) -> arb:
    """Return the scalar product of two vectors of balls."""
    return sum((a * b for a, b in zip(x, y, strict=True)), arb(0))


def _widened(x: BallForm, increase: arb) -> BallForm:
    """Return a form whose remainder is larger by `increase`."""
    return BallForm(x.c, x.g, x.e + increase)


def square_lower_bound(W: BallMatrix) -> BallMatrix:
    """Return V^T W + W^T V - V^T V with the centers V of W; it is at most W^T W."""
    V = W.centers()
    transposed = [list(column) for column in zip(*V, strict=True)]
    half = W.numeric_product(transposed).rows
    m = len(half)
    rows: list[list[Entry]] = []
    for i in range(m):
        row = []
        for j in range(m):
            row.append(half[i][j] + half[j][i] - _exact_dot(transposed[i], transposed[j]))
        rows.append(row)
    return BallMatrix(rows, W.n_symbols)


def _exact_dot(x: Sequence[float], y: Sequence[float]) -> arb:
    """Return the scalar product of two vectors of floating-point numbers, as a ball."""
    return sum((arb(a) * arb(b) for a, b in zip(x, y, strict=True)), arb(0))


def _remainder_sum(row: Sequence[BallForm]) -> arb:
    """Return an upper bound of the sum of the remainders of a row."""
    return sum((x.e for x in row), arb(0)).upper()


def is_definite(G: BallMatrix, shift: arb) -> bool:
    """Return whether G - shift I is positive definite at all vertices of the box."""
    remainder_norm = max(_remainder_sum(row) for row in G.rows)
    for signs in itertools.product((-1, 1), repeat=G.n_symbols):
        vertex = []
        for row in G.rows:
            vertex.append([_vertex_value(x, signs) for x in row])
        if not _has_positive_pivots(vertex, shift + remainder_norm):
            return False
    return True


def _vertex_value(x: BallForm, signs: Sequence[int]) -> arb:
    """Return the linear part of a form at a vertex t_k = -1 or 1 of the box."""
    return sum((g if sign > 0 else -g for g, sign in zip(x.g, signs, strict=True)), x.c)


def _has_positive_pivots(A: list[list[arb]], shift: arb) -> bool:
    """Return whether all pivots of the symmetric A - shift I are positive; A is overwritten."""
    m = len(A)
    for i in range(m):
        A[i][i] -= shift
    for j in range(m):
        if not A[j][j] > 0:
            return False
        for i in range(j + 1, m):
            factor = A[i][j] / A[j][j]
            for k in range(j + 1, i + 1):
                A[i][k] -= factor * A[k][j]
    return True
