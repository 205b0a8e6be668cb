"""Position level: all coordinates from those that are given, block by block.

One equation in one unknown is solved in closed form: a quadratic in a length, or A cos q + B sin q = C for the pair
(cos q, sin q), without ever taking the angle. Everything else goes to Newton's method.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from tauloop.equations.closure import closure
from tauloop.equations.topology import Topology
from tauloop.equations.tree import Configuration, tree_motion
from tauloop.equations.values import Values
from tauloop.functions.builder import ProgramBuilder
from tauloop.functions.program import ClosedForm
from tauloop.functions.sorting import Block, blocks
from tauloop.mechanism.model import Mechanism

#: A numerator counts as a first harmonic or a quadratic when samples deviate by less than this, relatively.
FORM_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionEquations:
    """Position equations with one symbol for every coordinate, and for the cosine and sine of every angle.

    Attributes:
        q: coordinates (n_q,).
        c, s: cosines and sines (n_q,), used where the coordinate is an angle.
        numerators, denominators: of the kept loop equations, then of the norms of unknown quaternions.
        names, elements: of the same.
        is_distance: whether each is a rod's, whose denominator is twice its length.
    """

    q: ca.SX
    c: ca.SX
    s: ca.SX
    numerators: ca.SX
    denominators: ca.SX
    names: tuple[str, ...]
    elements: tuple[str, ...]
    is_distance: tuple[bool, ...]


def position_equations(
    mechanism: Mechanism, topology: Topology, values: Values, rows: tuple[int, ...], unknown: tuple[int, ...]
) -> PositionEquations:
    """The kept loop equations, and one norm for every quaternion of which a component is unknown."""
    n = topology.n_q
    q, c, s = ca.SX.sym("q", n), ca.SX.sym("c", n), ca.SX.sym("s", n)
    pairs = {i: (c[i], s[i]) for i in range(n) if topology.is_angle[i]}
    zero = ca.SX(topology.n_v, 1)
    motion = tree_motion(topology, values, Configuration(q, pairs), zero, zero)
    kept = [closure(mechanism, topology, values, motion)[i] for i in rows] if rows else []
    numerators = [row.numerator for row in kept]
    denominators = [row.denominator for row in kept]
    names = [row.name for row in kept]
    elements = [row.element for row in kept]
    is_distance = [row.is_distance for row in kept]
    for iq, _ in topology.quaternions:
        if set(range(iq, iq + 4)) & set(unknown):
            numerators.append(ca.sumsqr(q[iq : iq + 4]) - 1)
            denominators.append(ca.SX(1))
            is_distance.append(False)
            elements.append(topology.coordinate_names[iq].removesuffix(".qw"))
            names.append(f"{elements[-1]}: unit quaternion")
    return PositionEquations(
        q=q,
        c=c,
        s=s,
        numerators=ca.vertcat(ca.SX(0, 1), *numerators),
        denominators=ca.vertcat(ca.SX(0, 1), *denominators),
        names=tuple(names),
        elements=tuple(elements),
        is_distance=tuple(is_distance),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvedBlock:
    """One block of the position problem, for the record.

    Attributes:
        equations: names of its equations.
        unknowns: names of the coordinates that it yields.
        method: "quadratic", "cosine and sine", or "Newton".
    """

    equations: tuple[str, ...]
    unknowns: tuple[str, ...]
    method: str


def solve_positions(
    builder: ProgramBuilder,
    mechanism: Mechanism,
    topology: Topology,
    values: Values,
    rows: tuple[int, ...],
    given: Mapping[int, ca.SX],
    start: ca.SX,
    reference: np.ndarray,
    theta: tuple[ca.SX, np.ndarray],
) -> tuple[Configuration, tuple[SolvedBlock, ...]]:
    """Emit the steps that find all coordinates from the given ones.

    Args:
        builder: receives the steps.
        mechanism, topology, values: the machine.
        rows: the loop equations kept.
        given: known coordinates by index (symbols of the builder, or constants).
        start: start values (n_q,) for Newton blocks.
        reference: assembled reference coordinates (n_q,); they pick the branch of closed forms.
        theta: free parameters, as symbols and as nominal values.

    Returns:
        The configuration in terms of the builder's symbols, and the blocks.

    Raises:
        ValueError: the equations do not determine the coordinates.
    """
    unknown = tuple(i for i in range(topology.n_q) if i not in given)
    equations = position_equations(mechanism, topology, values, rows, unknown)
    if len(equations.names) != len(unknown):
        raise ValueError(f"{len(equations.names)} position equations for {len(unknown)} unknown coordinates")
    solver = _Solver(builder, topology, equations, reference, theta)
    for i, expression in given.items():
        solver.set_coordinate(i, expression)
    found = []
    for block in blocks(_incidence(equations, topology, unknown)):
        found.append(solver.solve(block, tuple(unknown[j] for j in block.columns), start))
    return solver.configuration(), tuple(found)


def _incidence(equations: PositionEquations, topology: Topology, unknown: tuple[int, ...]) -> ca.Sparsity:
    """Which equation contains which unknown, an angle through its cosine or sine."""
    angles = _at_angles(equations, topology)
    return ca.sparsify(ca.jacobian(angles, equations.q)[:, list(unknown)]).sparsity()


def _at_angles(equations: PositionEquations, topology: Topology) -> ca.SX:
    """Numerators in terms of q alone."""
    angle = [i for i in range(topology.n_q) if topology.is_angle[i]]
    if not angle:
        return equations.numerators
    q = equations.q[angle]
    return ca.SX(
        ca.substitute(
            [equations.numerators],
            [equations.c[angle], equations.s[angle]],
            [ca.cos(q), ca.sin(q)],
        )[0]
    )


class _Solver:
    """Keeps what is known of every coordinate while the blocks are solved one after the other."""

    def __init__(
        self,
        builder: ProgramBuilder,
        topology: Topology,
        equations: PositionEquations,
        reference: np.ndarray,
        theta: tuple[ca.SX, np.ndarray],
    ) -> None:
        self._builder = builder
        self._topology = topology
        self._equations = equations
        self._reference = reference
        self._theta = theta
        self._q = ca.SX(equations.q)
        self._c, self._s = ca.SX(equations.c), ca.SX(equations.s)

    def set_coordinate(self, i: int, value: ca.SX) -> None:
        self._q[i] = value
        if self._topology.is_angle[i]:
            self._c[i], self._s[i] = ca.cos(value), ca.sin(value)

    def set_pair(self, i: int, c: ca.SX, s: ca.SX) -> None:
        self._c[i], self._s[i] = c, s
        self._q[i] = ca.atan2(s, c)

    def configuration(self) -> Configuration:
        pairs = {i: (self._c[i], self._s[i]) for i in range(self._topology.n_q) if self._topology.is_angle[i]}
        return Configuration(self._q, pairs)

    def solve(self, block: Block, unknown: tuple[int, ...], start: ca.SX) -> SolvedBlock:
        """Solve one block and keep its unknowns."""
        rows = list(block.rows)
        numerators = self._equations.numerators[rows]
        method = ""
        if len(unknown) == 1:
            i = unknown[0]
            if self._topology.is_angle[i]:
                method = "cosine and sine" if self._solve_pair(numerators, rows[0], i) else ""
            else:
                method = "quadratic" if self._solve_quadratic(numerators, rows[0], i) else ""
        if not method:
            method = "Newton"
            self._solve_newton(rows, unknown, start)
        return SolvedBlock(
            equations=tuple(self._equations.names[r] for r in rows),
            unknowns=tuple(self._topology.coordinate_names[i] for i in unknown),
            method=method,
        )

    def _known(self, expression: ca.SX) -> ca.SX:
        """The expression with everything put in that is known so far."""
        e = self._equations
        return ca.SX(ca.substitute([expression], [e.q, e.c, e.s], [self._q, self._c, self._s])[0])

    def _has_form(self, actual: ca.SX, modelled: ca.SX, i: int) -> bool:
        """Whether two expressions in q, c and s agree at random values of everything (angles consistent)."""
        e, is_angle = self._equations, self._topology.is_angle[i]
        symbols, nominal = self._theta
        function = ca.Function("form", [e.q, e.c, e.s, symbols], [actual, modelled])
        rng = np.random.default_rng(1)
        scale, deviation = 1e-300, 0.0
        for _ in range(5):
            q, angles = rng.normal(size=e.q.numel()), rng.uniform(-np.pi, np.pi, size=e.q.numel())
            if is_angle:
                q[i] = angles[i]
            a, m = function(q, np.cos(angles), np.sin(angles), nominal)
            scale, deviation = max(scale, abs(float(a))), max(deviation, abs(float(a) - float(m)))
        return deviation < FORM_TOLERANCE * scale

    def _solve_pair(self, numerator: ca.SX, row: int, i: int) -> bool:
        """Solve A0 + A cos q + B sin q = 0 for the pair (cos q, sin q), on the reference's branch."""
        e = self._equations
        c, s = e.c[i], e.s[i]

        def at_zero(x: ca.SX) -> ca.SX:
            return ca.SX(ca.substitute([x], [c, s], [ca.SX(0), ca.SX(0)])[0])

        A, B = at_zero(ca.jacobian(numerator, c)), at_zero(ca.jacobian(numerator, s))
        square = at_zero(ca.jacobian(ca.jacobian(numerator, c), c)) / 2
        A0 = at_zero(numerator) + square
        if not self._has_form(numerator, A0 + A * c + B * s, i):
            return False
        A, B, A0 = self._known(A), self._known(B), self._known(A0)
        r2 = A * A + B * B
        root = ca.sqrt(r2 - A0 * A0)
        sign = self._branch(numerator, i)
        self.set_pair(i, (-A0 * A - sign * B * root) / r2, (-A0 * B + sign * A * root) / r2)
        r = ca.sqrt(r2)
        self._record(row, i, A0 - r, A0 + r)
        return True

    def _solve_quadratic(self, numerator: ca.SX, row: int, i: int) -> bool:
        """Solve alpha x^2 + beta x + gamma = 0 on the reference's branch; linear where alpha vanishes identically."""
        x = self._equations.q[i]
        slope = ca.jacobian(numerator, x)

        def at_zero(expression: ca.SX) -> ca.SX:
            return ca.SX(ca.substitute([expression], [x], [ca.SX(0)])[0])

        alpha = ca.simplify(at_zero(ca.jacobian(slope, x)) / 2)
        beta, gamma = at_zero(slope), at_zero(numerator)
        if not self._has_form(numerator, alpha * x * x + beta * x + gamma, i):
            return False
        if ca.symvar(alpha) and not all(ca.depends_on(self._theta[0], symbol) for symbol in ca.symvar(alpha)):
            return False
        curved = not alpha.is_zero()
        alpha, beta, gamma = self._known(alpha), self._known(beta), self._known(gamma)
        if not curved:
            self.set_coordinate(i, -gamma / beta)
            return True
        half = beta / (2 * alpha)
        square = half * half - gamma / alpha
        self.set_coordinate(i, -half + self._branch(numerator, i) * ca.sqrt(square))
        # the numerator alpha ((x + half)^2 - square) is largest or least at x = -half; beyond there is no bound
        extreme = -alpha * square
        beyond = ca.SX(1e300)
        upwards = float(self._nominal(alpha)) > 0
        self._record(row, i, extreme if upwards else -beyond, beyond if upwards else extreme)
        return True

    def _nominal(self, expression: ca.SX) -> ca.DM:
        """Value at the nominal parameters of an expression that depends on nothing else."""
        return ca.Function("nominal", [self._theta[0]], [expression])(self._theta[1])

    def _branch(self, numerator: ca.SX, i: int) -> float:
        """Sign of the root that the reference lies on, from the numerator's slope there.

        At a root the slope is -sign * root for an angle, and 2 alpha sign * root for a quadratic.
        """
        e = self._equations
        x = e.q[i]
        if self._topology.is_angle[i]:
            slope = e.c[i] * ca.jacobian(numerator, e.s[i]) - e.s[i] * ca.jacobian(numerator, e.c[i])
        else:
            slope = ca.jacobian(numerator, x)
            curvature = ca.jacobian(slope, x)
            slope = slope * ca.sign(curvature)
        function = ca.Function("slope", [e.q, e.c, e.s, self._theta[0]], [slope])
        q = self._reference
        value = float(function(q, np.cos(q), np.sin(q), self._theta[1]))
        if self._topology.is_angle[i]:
            value = -value
        return 1.0 if value >= 0 else -1.0

    def _record(self, row: int, i: int, least: ca.SX, greatest: ca.SX) -> None:
        is_distance = self._equations.is_distance[row]
        length = self._known(self._equations.denominators[row]) / 2 if is_distance else ca.SX(0)
        name = f"extremes_{row}"
        self._builder.record(
            ClosedForm(
                what=self._equations.names[row],
                element=self._equations.elements[row],
                unknown=self._topology.coordinate_names[i],
                extremes=name,
            ),
            ca.vertcat(least, greatest, length),
        )

    def _solve_newton(self, rows: list[int], unknown: tuple[int, ...], start: ca.SX) -> None:
        e = self._equations
        residual = e.numerators[rows] / e.denominators[rows]
        x = ca.SX.sym("x", len(unknown))
        q, c, s = ca.SX(self._q), ca.SX(self._c), ca.SX(self._s)
        for j, i in enumerate(unknown):
            q[i] = x[j]
            if self._topology.is_angle[i]:
                c[i], s[i] = ca.cos(x[j]), ca.sin(x[j])
        residual = ca.substitute([residual], [e.q, e.c, e.s], [q, c, s])[0]
        names = self._topology.coordinate_names
        solution = self._builder.newton(
            residual,
            x,
            ca.vertcat(*(start[i] for i in unknown)),
            tuple(e.names[r] for r in rows),
            tuple(names[i] for i in unknown),
        )
        for j, i in enumerate(unknown):
            self.set_coordinate(i, solution[j])
