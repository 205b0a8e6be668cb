"""Loop equations with a closed-form solution, which are recognized by numeric checks.

One equation in one unknown: the equation of a rod is solved by the difference vector d of its ends,
which gives shorter code than the polynomial d.d - L^2.

Two equations that locate a pin at the intersection of two circles, or of a circle and a line:
psi = p + M (cos b, sin b) = 0 with M^T M = rho^2 I means that a pin at p is on a circle of radius
rho about the origin. |p|^2 = rho^2 is then one equation in the other unknown, like the equation of
a rod of length rho. The pair follows from (cos b, sin b) = -M^T p / rho^2. M may rotate with the
other unknown, as in a chain of angles that add up.

An equal number of spheres and unknown lengths (trilateration): with psi_i = x^T H x / 2 + g_i^T x +
c_i and the same constant H, the differences psi_i - psi_0 are linear. They determine all unknowns
as functions u + w t of one unknown t, and psi_0 becomes a quadratic equation in t. The origin is at
the center of the first sphere, which makes the code short and the numbers small.

The signs of the slopes of the equations at a pose determine the roots (`Branches`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.program import Evaluate, Program
from tauloop.equations.assembly.closing import FirstNormalNumbers
from tauloop.equations.values import BatchFunction, quantile

#: Largest relative deviation, at random values of all symbols, of an equation from a form.
FORM_TOLERANCE = 1e-9

Symbols = tuple[ca.SX, ca.SX, ca.SX]
Theta = tuple[ca.SX, np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairForm:
    """Equation A cos q + B sin q + C = 0 in an angle q."""

    A: ca.SX
    B: ca.SX
    C: ca.SX

    def at(self, substitute: Callable[[ca.SX], ca.SX]) -> PairForm:
        """Return the form with known values substituted."""
        return PairForm(A=substitute(self.A), B=substitute(self.B), C=substitute(self.C))

    def solution(self, sign: float) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return cosine, sine and the discriminant A^2 + B^2 - C^2 of one of two branches."""
        r2 = self.A * self.A + self.B * self.B
        discriminant = r2 - self.C * self.C
        root = ca.sqrt(discriminant)
        if sign < 0:
            root = -root
        scale = 1 / r2
        p, r = self.C * scale, root * scale
        return -(self.A * p + self.B * r), self.A * r - self.B * p, discriminant

    def extremes(self) -> tuple[ca.SX, ca.SX]:
        """Return the smallest and largest value of the form over all angles."""
        r = ca.sqrt(self.A * self.A + self.B * self.B)
        return self.C - r, self.C + r


@dataclass(frozen=True, slots=True, kw_only=True)
class QuadraticForm:
    """Quadratic equation (x + half)^2 = square; linear, x = -half, if square is None."""

    half: ca.SX
    square: ca.SX | None

    def at(self, substitute: Callable[[ca.SX], ca.SX]) -> QuadraticForm:
        """Return the form with known values substituted."""
        return QuadraticForm(
            half=substitute(self.half),
            square=None if self.square is None else substitute(self.square),
        )

    def solution(self, sign: float) -> tuple[ca.SX, ca.SX]:
        """Return the root and the discriminant of one of two branches."""
        if self.square is None:
            return -self.half, ca.SX(1)
        root = ca.sqrt(self.square)
        return (root if sign > 0 else -root) - self.half, self.square

    def extremes(self) -> tuple[ca.SX, ca.SX]:
        """Return the smallest value of ((x + half)^2 - square) / 2, and 1e300 as the largest."""
        return ca.SX(0) if self.square is None else -self.square / 2, ca.SX(1e300)


def pair_form(
    psi: ca.SX, difference: tuple[ca.SX, ca.SX] | None, symbols: Symbols, i: int, theta: Theta
) -> PairForm | None:
    """Return the form A cos + B sin + C in the angle q_i, or None if psi does not have it.

    For a rod with d = d0 + c dc + s ds, where dc and ds are perpendicular and of equal length:
    A = d0.dc, B = d0.ds, C = (d0.d0 + dc.dc - L^2)/2.
    """
    c, s = symbols[1][i], symbols[2][i]
    zero = ca.SX(0)

    def at_zero(x: ca.SX) -> ca.SX:
        return ca.SX(ca.substitute([x], [c, s], [zero, zero])[0])

    if difference is not None:
        d, L = difference
        dc, ds, d0 = ca.jacobian(d, c), ca.jacobian(d, s), at_zero(d)
        form = PairForm(
            A=ca.dot(d0, dc),
            B=ca.dot(d0, ds),
            C=(ca.sumsqr(d0) + _constant(ca.sumsqr(dc)) - L * L) / 2,
        )
    else:
        square = at_zero(ca.jacobian(ca.jacobian(psi, c), c)) / 2
        A, B = at_zero(ca.jacobian(psi, c)), at_zero(ca.jacobian(psi, s))
        form = PairForm(A=A, B=B, C=at_zero(psi) + square)
    modeled = form.A * c + form.B * s + form.C
    return form if agree(psi, modeled, symbols, theta, i) else None


def quadratic_form(
    psi: ca.SX, difference: tuple[ca.SX, ca.SX] | None, symbols: Symbols, i: int, theta: Theta
) -> QuadraticForm | None:
    """Return the quadratic (or linear) form in the length q_i, or None if psi does not have it.

    For a rod with d = d0 + x e and a constant unit direction e: half = d0.e,
    square = L^2 - |d0 - half e|^2. For a rod of unknown length L = x: square = d.d.
    """
    x = symbols[0][i]

    def at_zero(expression: ca.SX) -> ca.SX:
        return ca.SX(ca.substitute([expression], [x], [ca.SX(0)])[0])

    if difference is not None:
        d, L = difference
        e, dL = ca.jacobian(d, x), ca.jacobian(L, x)
        if e.is_constant() and abs(float(ca.sumsqr(ca.DM(e))) - 1) < 1e-14 and dL.is_zero():
            d0 = at_zero(d)
            half = ca.dot(d0, e)
            return QuadraticForm(half=half, square=L * L - ca.sumsqr(d0 - half * e))
        if e.is_zero() and dL.is_one():
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
    """Return a sum of squares as a number if it is constant up to rounding, else unchanged."""
    return ca.SX(ca.simplify(expression))


def agree(
    actual: ca.SX, modeled: ca.SX, symbols: Symbols, theta: Theta, angle: int | None = None
) -> bool:
    """Return whether expressions in q, c and s agree with others at random values.

    Pairs (c, s) are cosines and sines of random angles.

    Args:
        actual, modeled: the expressions, as columns (k,); each entry agrees relative to its size.
        symbols: q, c and s.
        theta: free parameters, as symbols and as values.
        angle: index of a coordinate whose value is made consistent with its pair.
    """
    q_symbols, c_symbols, s_symbols = symbols
    function = ca.Function("form", [q_symbols, c_symbols, s_symbols, theta[0]], [actual, modeled])
    # columns of 5 random states
    random = FirstNormalNumbers()
    q = random.normal(size=(q_symbols.numel(), 5))
    angles = np.pi * random.normal(size=q.shape)
    if angle is not None:
        q[angle] = angles[angle]
    values = function(q, np.cos(angles), np.sin(angles), theta[1])
    actual_values, modeled_values = (np.asarray(value) for value in values)  # (k, 5)
    with np.errstate(invalid="ignore"):  # infinite values
        differences = np.abs(actual_values - modeled_values)
    # `fmax` ignores states without a value
    scale = np.fmax.reduce(np.abs(actual_values), axis=1, initial=1e-300)
    largest = np.fmax.reduce(differences, axis=1, initial=0.0)
    return bool((largest < FORM_TOLERANCE * scale).all())


@dataclass(frozen=True, slots=True, kw_only=True)
class CircleForm:
    """p + M (cos b, sin b) = 0 with M^T M = square I: a pin on a circle of radius rho.

    Attributes:
        p: position of the pin (2,), which does not contain the angle b.
        M: matrix of the circle (2, 2).
        square: square of the radius rho.
        is_constant: whether the radius is constant.
    """

    p: ca.SX
    M: ca.SX
    square: ca.SX
    is_constant: bool

    @property
    def psi(self) -> ca.SX:
        """Return the equation (|p|^2 - rho^2) / 2 = 0, which does not contain b."""
        return (ca.sumsqr(self.p) - self.square) / 2

    @property
    def difference(self) -> tuple[ca.SX, ca.SX] | None:
        """Return the vector p and the length rho, as for a rod; None if rho is not constant."""
        return (self.p, ca.sqrt(self.square)) if self.is_constant else None

    @property
    def pair(self) -> ca.SX:
        """Return cosine and sine of b (2,)."""
        return -self.M.T @ self.p / self.square


def circle_form(psi: ca.SX, symbols: Symbols, b: int, theta: Theta) -> CircleForm | None:
    """Return the circle of angle b in two equations (2,), or None if they do not have this form.

    In a plane that is inclined to the base frame, the projection of the circle is an ellipse. Then
    A = M M^T is constant but not rho^2 I, and its Cholesky factor transforms the ellipse to a
    circle.
    """
    q, c, s = symbols
    pair = ca.vertcat(c[b], s[b])
    M = ca.jacobian(psi, pair)
    if ca.depends_on(psi, q[b]) or ca.depends_on(M, pair) or M.is_zero():
        return None
    p = ca.substitute([psi], [pair], [ca.SX.zeros(2)])[0]
    A = M @ M.T
    A_zero = _at_zero_angles(A, symbols)
    is_constant = _same(A, A_zero, symbols, theta)
    if is_constant:
        A = A_zero
    if not _same(A, A[0, 0] * ca.SX.eye(2), symbols, theta):
        if not is_constant:
            return None
        T = _circle_transform(A)
        if T is None:
            return None
        p, M = T @ p, T @ M
        A = ca.fmax(A[0, 0], A[1, 1]) * ca.SX.eye(2)
    return CircleForm(p=p, M=M, square=A[0, 0], is_constant=is_constant)


def _at_zero_angles(expression: ca.SX, symbols: Symbols) -> ca.SX:
    """Return the value of an expression at coordinates and angles of zero."""
    zero = ca.SX.zeros(symbols[0].numel())
    return ca.simplify(ca.substitute([expression], list(symbols), [zero, zero + 1, zero])[0])


def _same(actual: ca.SX, modeled: ca.SX, symbols: Symbols, theta: Theta) -> bool:
    """Return whether two matrices (2, 2) agree; off-diagonals relative to the first entry."""
    pairs = [(0, 0), (1, 1), (0, 1)]
    trace = actual[0, 0]
    actual_column = ca.vertcat(*[trace + actual[i, j] for i, j in pairs])
    modeled_column = ca.vertcat(*[trace + modeled[i, j] for i, j in pairs])
    return agree(actual_column, modeled_column, symbols, theta)


def _circle_transform(A: ca.SX) -> ca.SX | None:
    """Return the matrix T (2, 2) with T A T^T = r I, which transforms an ellipse to a circle.

    r is the larger diagonal entry of A. The result is None if A is structurally singular.
    """
    first = ca.sqrt(A[0, 0])
    across = A[1, 0] / first
    second = A[1, 1] - across * across
    if second.is_zero():
        return None
    second = ca.sqrt(second)
    rho = ca.sqrt(ca.fmax(A[0, 0], A[1, 1]))
    return rho * ca.vertcat(
        ca.horzcat(1 / first, ca.SX(0)), ca.horzcat(-across / (first * second), 1 / second)
    )


#: Second derivatives of two spheres count as equal if they differ by less than this fraction of the
#: largest.
SPHERE_TOLERANCE = 1e-14


@dataclass(frozen=True, slots=True, kw_only=True)
class SphereForm:
    """Spheres x^T H x / 2 + g_i^T x + c_i = 0, with x relative to the center of the first sphere.

    The first sphere has g_0 = 0.

    Attributes:
        center: center of the first sphere (n,).
        H: second derivatives (n, n), which are numbers.
        A: gradients g_i of the other spheres (n - 1, n).
        b: differences of constants c_i - c_0 of the other spheres (n - 1,).
        c: constant of the first sphere: minus half of its squared radius.
    """

    center: ca.SX
    H: ca.DM
    A: ca.SX
    b: ca.SX
    c: ca.SX

    def along(self, u: ca.SX, w: ca.SX) -> tuple[QuadraticForm, ca.SX]:
        """Return the first sphere on the line u + w t as a quadratic in t, and its factor.

        The factor is alpha = w^T H w, by which the equation is divided.
        """
        Hw = ca.SX(self.H) @ w
        alpha = ca.dot(w, Hw)
        half = ca.dot(u, Hw) / alpha
        rest = (ca.dot(u, ca.SX(self.H) @ u) / 2 + self.c) * 2 / alpha
        return QuadraticForm(half=half, square=half * half - rest), alpha


def sphere_form(psi: ca.SX, x: ca.SX) -> SphereForm | None:
    """Return the spheres of equations psi (n,) in n unknowns x, or None if they are not spheres."""
    slopes = ca.jacobian(psi, x)
    second = [ca.jacobian(slopes[i, :], x) for i in range(psi.numel())]
    if not all(H.is_constant() for H in second):
        return None
    H = ca.DM(second[0])
    size = float(ca.norm_inf(H))
    # an indefinite H means hyperboloids, on which the quadratic along a line may lose its leading
    # term
    if np.linalg.eigvalsh(H.full()).min() <= SPHERE_TOLERANCE * size:
        return None
    if any(float(ca.norm_inf(ca.DM(other) - H)) > SPHERE_TOLERANCE * size for other in second[1:]):
        return None
    (at_zero,) = ca.substitute([slopes[0, :].T], [x], [ca.SX.zeros(*x.shape)])
    center = (
        -at_zero if np.array_equal(H.full(), np.eye(x.numel())) else -ca.solve(ca.SX(H), at_zero)
    )
    center = ca.densify(center)
    g, c = ca.substitute([slopes, psi], [x], [center])
    return SphereForm(center=center, H=H, A=ca.densify(g[1:, :]), b=c[1:] - c[0], c=c[0])


def sphere_slope(psi: ca.SX, x: ca.SX, last: int) -> ca.SX:
    """Return the derivative of the first sphere's equation along the line of intersection.

    The differences between the spheres' equations are linear and define this line. Its direction w
    has w_last = 1.
    """
    slopes = ca.jacobian(psi, x)
    n = x.numel()
    others = [j for j in range(n) if j != last]
    A = slopes[1:, :] - ca.repmat(slopes[0, :], n - 1, 1)
    w = ca.SX(n, 1)
    w[others], w[last] = -ca.solve(A[:, others], A[:, last]), 1
    return ca.SX(slopes[0, :] @ w)


#: A slope below this fraction of its median over the assembled states counts as zero: the pose is a
#: dead center, where both roots are equal.
DEAD_CENTER_TOLERANCE = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class Branches:
    """Slopes of the equations that are solved in closed form; their signs determine the roots.

    Attributes:
        slopes: program that computes "slopes" from "q", at nominal parameters.
        typical: median absolute value of each slope (k,) over the assembled states.
        reference_signs: signs (k,) of the roots that a program uses, which are those of the
            reference pose (the first of these states).
    """

    slopes: Program
    typical: np.ndarray
    reference_signs: np.ndarray

    @classmethod
    def of(
        cls,
        slopes: Sequence[ca.SX],
        symbols: tuple[ca.SX, ca.SX, ca.SX],
        theta: tuple[ca.SX, np.ndarray],
        states: np.ndarray,
    ) -> Branches:
        """Return the branches from expressions and assembled states (M, n_q)."""
        q = ca.SX.sym("q", symbols[0].numel())
        column = ca.densify(ca.vertcat(ca.SX(0, 1), *slopes))
        at_q = ca.substitute(
            [column], [*symbols, theta[0]], [q, ca.cos(q), ca.sin(q), ca.SX(ca.DM(theta[1]))]
        )
        function = BatchFunction(ca.Function("branches", [q], ca.cse(at_q)))
        (values,) = function([states], len(states))
        step = Evaluate(function=function, inputs=("q",), outputs=("slopes",))
        program = Program(
            name="branches", steps=(step,), outputs=("slopes",), closed_forms=(), pivots=()
        )
        return cls(
            slopes=program,
            typical=quantile(np.abs(values), 0.5),
            reference_signs=np.where(values[0] >= 0, 1, -1).astype(int),
        )

    def signs(self, q: np.ndarray) -> np.ndarray:
        """Return the signs (N, k) of the roots at poses (N, n_q)."""
        return self.signs_of(self.slopes.run({"q": q}, len(q))[0]["slopes"])

    def signs_of(self, slopes: np.ndarray) -> np.ndarray:
        """Return signs (N, k) from slopes (N, k); at a dead center, the sign that is used."""
        return np.where(
            np.abs(slopes) > DEAD_CENTER_TOLERANCE * self.typical,
            np.where(slopes >= 0, 1, -1),
            self.reference_signs,
        )
