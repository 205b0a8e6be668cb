"""Closed forms of one loop equation in one unknown: recognised by checking, solved without trigonometry.

A rod's equation is taken apart by its difference vector d, which gives shorter code than its polynomial d.d - L^2.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from tauloop.records import dataclass

#: An equation has a form when it deviates from it by less than this, relatively, at random values of everything.
FORM_TOLERANCE = 1e-9

Symbols = tuple[ca.SX, ca.SX, ca.SX]
Theta = tuple[ca.SX, np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairForm:
    """A cos q + B sin q + C = 0."""

    A: ca.SX
    B: ca.SX
    C: ca.SX

    def at(self, put_in: Callable[[ca.SX], ca.SX]) -> PairForm:
        """The same with known values put in."""
        return PairForm(A=put_in(self.A), B=put_in(self.B), C=put_in(self.C))

    def solution(self, sign: float) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Cosine, sine and the discriminant A^2 + B^2 - C^2, on one of two branches."""
        r2 = self.A * self.A + self.B * self.B
        discriminant = r2 - self.C * self.C
        root = ca.sqrt(discriminant)
        if sign < 0:
            root = -root
        scale = 1 / r2
        p, r = self.C * scale, root * scale
        return -(self.A * p + self.B * r), self.A * r - self.B * p, discriminant

    def extremes(self) -> tuple[ca.SX, ca.SX]:
        """Least and greatest value of the form over all angles."""
        r = ca.sqrt(self.A * self.A + self.B * self.B)
        return self.C - r, self.C + r


@dataclass(frozen=True, slots=True, kw_only=True)
class QuadraticForm:
    """(x + half)^2 = square, or x = -half where square is None."""

    half: ca.SX
    square: ca.SX | None

    def at(self, put_in: Callable[[ca.SX], ca.SX]) -> QuadraticForm:
        """The same with known values put in."""
        return QuadraticForm(half=put_in(self.half), square=None if self.square is None else put_in(self.square))

    def solution(self, sign: float) -> tuple[ca.SX, ca.SX]:
        """The root and the discriminant, on one of two branches."""
        if self.square is None:
            return -self.half, ca.SX(1)
        root = ca.sqrt(self.square)
        return (root if sign > 0 else -root) - self.half, self.square

    def extremes(self) -> tuple[ca.SX, ca.SX]:
        """Least and greatest value of half the monic polynomial over all lengths; without bound above."""
        return ca.SX(0) if self.square is None else -self.square / 2, ca.SX(1e300)


def pair_form(
    psi: ca.SX, difference: tuple[ca.SX, ca.SX] | None, symbols: Symbols, i: int, theta: Theta
) -> PairForm | None:
    """The form A cos + B sin + C in the angle q_i, or None when the equation is not of that form.

    For a rod with d = d0 + c dc + s ds, where dc and ds are as long and perpendicular:
    A = d0.dc, B = d0.ds, C = (d0.d0 + dc.dc - L^2)/2.
    """
    c, s = symbols[1][i], symbols[2][i]
    zero = ca.SX(0)

    def at_zero(x: ca.SX) -> ca.SX:
        return ca.SX(ca.substitute([x], [c, s], [zero, zero])[0])

    if difference is not None:
        d, L = difference
        dc, ds, d0 = ca.jacobian(d, c), ca.jacobian(d, s), at_zero(d)
        form = PairForm(A=ca.dot(d0, dc), B=ca.dot(d0, ds), C=(ca.sumsqr(d0) + _constant(ca.sumsqr(dc)) - L * L) / 2)
    else:
        square = at_zero(ca.jacobian(ca.jacobian(psi, c), c)) / 2
        A, B = at_zero(ca.jacobian(psi, c)), at_zero(ca.jacobian(psi, s))
        form = PairForm(A=A, B=B, C=at_zero(psi) + square)
    modelled = form.A * c + form.B * s + form.C
    return form if agree(psi, modelled, symbols, theta, i) else None


def quadratic_form(
    psi: ca.SX, difference: tuple[ca.SX, ca.SX] | None, symbols: Symbols, i: int, theta: Theta
) -> QuadraticForm | None:
    """The quadratic (or linear) form in the length q_i, or None when the equation is not of that form.

    For a rod with d = d0 + x e of constant unit direction e: half = d0.e, square = L^2 - |d0 - half e|^2. For its own
    length L = x: square = d.d.
    """
    x = symbols[0][i]

    def at_zero(expression: ca.SX) -> ca.SX:
        return ca.SX(ca.substitute([expression], [x], [ca.SX(0)])[0])

    if difference is not None:
        d, L = difference
        e, own = ca.jacobian(d, x), ca.jacobian(L, x)
        if e.is_constant() and abs(float(ca.sumsqr(ca.DM(e))) - 1) < 1e-14 and own.is_zero():
            d0 = at_zero(d)
            half = ca.dot(d0, e)
            return QuadraticForm(half=half, square=L * L - ca.sumsqr(d0 - half * e))
        if e.is_zero() and own.is_one():
            return QuadraticForm(half=ca.SX(0), square=ca.sumsqr(d))
    slope = ca.jacobian(psi, x)
    alpha, beta, gamma = at_zero(ca.jacobian(slope, x)) / 2, at_zero(slope), at_zero(psi)
    if not agree(psi, alpha * x * x + beta * x + gamma, symbols, theta):
        return None
    if alpha.is_zero():
        return QuadraticForm(half=gamma / beta, square=None)
    half = beta / (2 * alpha)
    return QuadraticForm(half=half, square=half * half - gamma / alpha)


def _constant(expression: ca.SX) -> ca.SX:
    """A sum of squares that is constant up to rounding, as a number."""
    return ca.SX(ca.simplify(expression))


def agree(actual: ca.SX, modelled: ca.SX, symbols: Symbols, theta: Theta, angle: int | None = None) -> bool:
    """Whether two expressions in q, c and s agree at random values of everything (pairs are those of angles).

    Args:
        actual, modelled: the expressions (scalars).
        symbols: q, c and s.
        theta: free parameters, as symbols and as values.
        angle: index of a coordinate whose own value belongs to its pair.
    """
    q_symbols, c_symbols, s_symbols = symbols
    function = ca.Function("form", [q_symbols, c_symbols, s_symbols, theta[0]], [actual, modelled])
    rng = np.random.default_rng(1)
    scale, deviation = 1e-300, 0.0
    for _ in range(5):
        q = rng.normal(size=q_symbols.numel())
        angles = rng.uniform(-np.pi, np.pi, size=q_symbols.numel())
        if angle is not None:
            q[angle] = angles[angle]
        a, m = function(q, np.cos(angles), np.sin(angles), theta[1])
        scale, deviation = max(scale, abs(float(a))), max(deviation, abs(float(a) - float(m)))
    return deviation < FORM_TOLERANCE * scale
