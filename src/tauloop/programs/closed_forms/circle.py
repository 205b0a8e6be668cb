"""Closed form of two loop equations in two unknowns that place a pin: the intersection of circles, or circle and line.

Two equations psi = p + M (cos b, sin b) = 0 with M^T M = rho^2 I say that a pin at p lies on a circle of radius rho
about the origin: |p|^2 = rho^2 is one equation in the other unknown, as that of a rod of length rho, and the pair
follows from it, (cos b, sin b) = -M^T p / rho^2. M may turn with the other unknown: a chain of angles that add up.
"""

from __future__ import annotations

import casadi as ca

from tauloop.programs.closed_forms.single import Symbols, Theta, agree
from tauloop.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CircleForm:
    """p + M (cos b, sin b) = 0 with M^T M = square I.

    Attributes:
        p: the pin (2,), without the angle b.
        M: the circle (2, 2).
        square: square of its radius.
        is_constant: whether the radius is the same at all coordinates.
    """

    p: ca.SX
    M: ca.SX
    square: ca.SX
    is_constant: bool

    @property
    def psi(self) -> ca.SX:
        """The equation (|p|^2 - rho^2) / 2 = 0, from which b is gone."""
        return (ca.sumsqr(self.p) - self.square) / 2

    @property
    def difference(self) -> tuple[ca.SX, ca.SX] | None:
        """The same as a rod's: its vector p and its length rho; None where the radius changes."""
        return (self.p, ca.sqrt(self.square)) if self.is_constant else None

    @property
    def pair(self) -> ca.SX:
        """Cosine and sine of b (2,)."""
        return -self.M.T @ self.p / self.square


def circle_form(psi: ca.SX, symbols: Symbols, b: int, theta: Theta) -> CircleForm | None:
    """The circle of angle b in two equations (2,), or None where they are of another form.

    In a plane that is inclined to the base frame the two equations show the circle as an ellipse: M M^T is then not
    rho^2 I, but constant, and its Cholesky factor makes the ellipse round again.
    """
    q, c, s = symbols
    turn = ca.vertcat(c[b], s[b])
    M = ca.jacobian(psi, turn)
    if ca.depends_on(psi, q[b]) or ca.depends_on(M, turn) or M.is_zero():
        return None
    p = ca.substitute([psi], [turn], [ca.SX.zeros(2)])[0]
    A = M @ M.T
    upright = _upright(A, symbols)
    is_constant = _same(A, upright, symbols, theta)
    if is_constant:
        A = upright
    if not _same(A, A[0, 0] * ca.SX.eye(2), symbols, theta):
        if not is_constant:
            return None
        rounding = _rounding(A)
        if rounding is None:
            return None
        p, M, A = rounding @ p, rounding @ M, ca.fmax(A[0, 0], A[1, 1]) * ca.SX.eye(2)
    return CircleForm(p=p, M=M, square=A[0, 0], is_constant=is_constant)


def _upright(expression: ca.SX, symbols: Symbols) -> ca.SX:
    """An expression with all coordinates and angles at zero."""
    zero = ca.SX.zeros(symbols[0].numel())
    return ca.simplify(ca.substitute([expression], list(symbols), [zero, zero + 1, zero])[0])


def _same(actual: ca.SX, modelled: ca.SX, symbols: Symbols, theta: Theta) -> bool:
    """Whether two matrices (2, 2) agree, off their diagonals relative to its first entry."""
    trace = actual[0, 0]
    pairs = [(0, 0), (1, 1), (0, 1)]
    return all(agree(trace + actual[i, j], trace + modelled[i, j], symbols, theta) for i, j in pairs)


def _rounding(A: ca.SX) -> ca.SX | None:
    """Matrix (2, 2) that makes M M^T = A a multiple of the unit matrix, of A's larger diagonal entry."""
    first = ca.sqrt(A[0, 0])
    across = A[1, 0] / first
    second = A[1, 1] - across * across
    if second.is_zero():
        return None
    second = ca.sqrt(second)
    rho = ca.sqrt(ca.fmax(A[0, 0], A[1, 1]))
    return rho * ca.vertcat(ca.horzcat(1 / first, ca.SX(0)), ca.horzcat(-across / (first * second), 1 / second))
