"""First-order forms and small matrices in python-flint's arb, for checks of proofs.

Written apart from the batches in NumPy: all coefficients are balls, so arb bounds the rounding errors.

Source: Johansson 2017, Arb: efficient arbitrary-precision midpoint-radius interval arithmetic.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flint import arb

#: A ball form, or a number that is the same in the whole box.
Entry = Any


class BallForm:
    """x = c + sum_k g_k t_k + r with |t_k| <= 1 and |r| <= e; c and g are balls, e an upper bound."""

    __slots__ = ("c", "e", "g", "size")

    def __init__(self, c: arb, g: Sequence[arb], e: arb) -> None:
        """Store the coefficients."""
        self.c, self.g, self.e = c, g, e
        self.size = sum((abs(x) for x in g), e)

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
        rest = abs(c) * other.e + abs(d) * self.e + self.size * other.size
        return BallForm(c * d, linear, rest)

    __rmul__ = __mul__

    def lower(self) -> arb:
        """Return a lower bound, as a ball."""
        return self.c - self.size

    def upper(self) -> arb:
        """Return an upper bound, as a ball."""
        return self.c + self.size

    def largest(self) -> arb:
        """Return an upper bound of the absolute value, as a ball."""
        return abs(self.c) + self.size

    def through(self, value: arb, slope: arb, shift: arb, rest: arb) -> BallForm:
        """Return value + shift + slope (x - c) with a further remainder."""
        linear = [slope * a for a in self.g]
        return BallForm(value + shift, linear, abs(slope) * self.e + rest)


def square(x: Entry) -> Entry:
    """Return x^2."""
    if not isinstance(x, BallForm):
        return x * x
    half = x.size * x.size / 2
    return x.through(x.c * x.c, 2 * x.c, half, half)


def invert(x: Entry) -> Entry:
    """Return 1 / x; zero in the box makes it infinite."""
    if not isinstance(x, BallForm):
        return 1 / arb(x)
    least = abs(x.c) - x.size
    if not least > 0:
        return BallForm(x.c, x.g, arb("inf"))
    inverse = 1 / x.c
    half = (x.size * inverse) ** 2 / (2 * least)
    return x.through(inverse, -inverse * inverse, half if x.c > 0 else -half, half)


def root(x: Entry) -> Entry:
    """Return the square root; a negative number in the box makes it infinite."""
    if not isinstance(x, BallForm):
        return arb(x).sqrt()
    least = x.c - x.size
    if not least >= 0:
        return BallForm(x.c, x.g, arb("inf"))
    s = x.c.sqrt()
    half = (x.size / (s + least.sqrt())) ** 2 / (4 * s)
    return x.through(s, 1 / (2 * s), -half, half)


def _circular(x: BallForm, value: arb, slope: arb) -> BallForm:
    second = abs(value) + x.size
    if second > 1:
        second = arb(1)
    return x.through(value, slope, arb(0), x.size * x.size * second / 2)


def sine(x: Entry) -> Entry:
    """Return the sine."""
    return _circular(x, x.c.sin(), x.c.cos()) if isinstance(x, BallForm) else arb(x).sin()


def cosine(x: Entry) -> Entry:
    """Return the cosine."""
    return _circular(x, x.c.cos(), -x.c.sin()) if isinstance(x, BallForm) else arb(x).cos()


def absolute(x: Entry) -> Entry:
    """Return |x| of forms without zero."""
    if not isinstance(x, BallForm):
        return abs(arb(x))
    if x.lower() > 0:
        return x
    return -x if x.upper() < 0 else BallForm(x.c, x.g, arb("inf"))


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
    """A matrix of ball forms: coefficients by row and column."""

    __slots__ = ("n_symbols", "rows")

    def __init__(self, rows: list[list[Entry]], n_symbols: int) -> None:
        """Store the entries; numbers become forms."""
        zero = [arb(0)] * n_symbols
        self.rows = [
            [x if isinstance(x, BallForm) else BallForm(arb(x), zero, arb(0)) for x in row]
            for row in rows
        ]
        self.n_symbols = n_symbols

    @classmethod
    def by_columns(cls, values: Sequence[Entry], r: int, s: int, n_symbols: int) -> BallMatrix:
        """Return a matrix (r, s) from its entries, one column after the other."""
        return cls([[values[j * r + i] for j in range(s)] for i in range(r)], n_symbols)

    def columns(self, chosen: Sequence[int]) -> BallMatrix:
        """Return some columns."""
        return BallMatrix([[row[j] for j in chosen] for row in self.rows], self.n_symbols)

    def transposed(self) -> BallMatrix:
        """Return the transposed matrix."""
        return BallMatrix([list(column) for column in zip(*self.rows, strict=True)], self.n_symbols)

    def times(self, other: BallMatrix) -> BallMatrix:
        """Return the product."""
        columns = list(zip(*other.rows, strict=True))
        return BallMatrix(
            [[_dot(row, column) for column in columns] for row in self.rows], self.n_symbols
        )

    def plus(self, other: BallMatrix) -> BallMatrix:
        """Return the sum."""
        return BallMatrix(
            [
                [a + b for a, b in zip(row, line, strict=True)]
                for row, line in zip(self.rows, other.rows, strict=True)
            ],
            self.n_symbols,
        )

    def multiplied(self, left: Sequence[Sequence[float]]) -> BallMatrix:
        """Return the product of numbers with the matrix."""
        columns = list(zip(*self.rows, strict=True))
        return BallMatrix(
            [[_dot(column, row) for column in columns] for row in left], self.n_symbols
        )

    def middle(self) -> list[list[float]]:
        """Return the middles in floating point."""
        return [[float(x.c.mid()) for x in row] for row in self.rows]


def _dot(forms: Sequence[BallForm], factors: Sequence[Entry]) -> Entry:
    total: Entry = arb(0)
    for x, y in zip(forms, factors, strict=True):
        if isinstance(y, BallForm) or y != 0.0:
            total = x * y + total
    return total


def near_inverse_product(near_one: BallMatrix, Q: BallMatrix) -> BallMatrix | None:
    """Return (I + D)^-1 Q for a matrix I + D near one; None where it is too far from one.

    (I + D)^-1 Q = Q - D Q + R with |R| <= D^2 (I - |D|)^-1 |Q|, entry by entry.
    """
    n, columns = len(near_one.rows), len(Q.rows[0])
    D = BallMatrix(
        [[near_one.rows[i][j] - (1.0 if i == j else 0.0) for j in range(n)] for i in range(n)],
        Q.n_symbols,
    )
    size = [[x.largest() for x in row] for row in D.rows]
    norm = max(sum(row, arb(0)).upper() for row in size)
    if not norm < 0.95:
        return None
    largest = [[x.largest() for x in row] for row in Q.rows]
    second = _times(size, _times(size, largest))
    tail = [max(row[j].upper() for row in second) * norm / (1 - norm) for j in range(columns)]
    DQ = D.times(Q).rows
    rows: list[list[Entry]] = []
    for i in range(n):
        first_order = [Q.rows[i][j] - DQ[i][j] for j in range(columns)]
        rows.append([_wider(x, second[i][j] + tail[j]) for j, x in enumerate(first_order)])
    return BallMatrix(rows, Q.n_symbols)


def _times(A: list[list[arb]], B: list[list[arb]]) -> list[list[arb]]:
    columns = list(zip(*B, strict=True))
    return [
        [sum((a * b for a, b in zip(row, column, strict=True)), arb(0)) for column in columns]
        for row in A
    ]


def _wider(x: BallForm, by: arb) -> BallForm:
    return BallForm(x.c, x.g, x.e + by)


def lower_square(W: BallMatrix) -> BallMatrix:
    """Return V^T W + W^T V - V^T V <= W^T W with the middle V."""
    V = W.middle()
    transposed = [list(column) for column in zip(*V, strict=True)]
    half = W.multiplied(transposed).rows
    m = len(half)
    rows = [
        [half[i][j] + half[j][i] - _number(transposed[i], transposed[j]) for j in range(m)]
        for i in range(m)
    ]
    return BallMatrix(rows, W.n_symbols)


def _number(x: Sequence[float], y: Sequence[float]) -> arb:
    return sum((arb(a) * arb(b) for a, b in zip(x, y, strict=True)), arb(0))


def is_definite(G: BallMatrix, shift: arb) -> bool:
    """Return whether G - shift I is positive definite at all vertices of the box."""
    m = len(G.rows)
    spread = max(sum((x.e for x in row), arb(0)).upper() for row in G.rows)
    return all(
        _has_pivots([[_at(x, signs) for x in row] for row in G.rows], shift + spread, m)
        for signs in itertools.product((-1, 1), repeat=G.n_symbols)
    )


def _at(x: BallForm, signs: Sequence[int]) -> arb:
    return sum((g if sign > 0 else -g for g, sign in zip(x.g, signs, strict=True)), x.c)


def _has_pivots(A: list[list[arb]], off: arb, m: int) -> bool:
    for i in range(m):
        A[i][i] -= off
    for j in range(m):
        if not A[j][j] > 0:
            return False
        for i in range(j + 1, m):
            factor = A[i][j] / A[j][j]
            for k in range(j + 1, i + 1):
                A[i][k] -= factor * A[k][j]
    return True
