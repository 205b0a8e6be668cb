"""Solution of the position problem: all coordinates from the given ones, block by block.

These blocks have a closed-form solution: one equation in one unknown (a quadratic in a length, or
A cos q + B sin q = C for the pair (cos q, sin q)); two equations that locate a pin at the
intersection of two circles, or of a circle and a line; and spheres that intersect in a point. All
other blocks are solved by Newton's method.

The equations are the independent loop equations and the norms of quaternions, with angles expressed
by cosine and sine. The full revolutions of an angle a are chosen so that it is nearest to the start
value of a pose, or to the previous sample of a motion: a + 2 pi floor((near - a) / 2 pi + 1/2).
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np

from tauloop.common.execution.blas import one_blas_thread
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.builder import Block, ProgramBuilder, blocks
from tauloop.compiler.program import ClosedForm
from tauloop.compiler.solving.closed_forms import (
    CircleForm,
    PairForm,
    QuadraticForm,
    circle_form,
    pair_form,
    quadratic_form,
    sphere_form,
    sphere_slope,
)
from tauloop.equations.assembly.loops import closure
from tauloop.equations.topology import Topology
from tauloop.equations.tree import Configuration, tree_motion
from tauloop.equations.values import Values
from tauloop.mechanism.model import Mechanism

#: Residual (characteristic lengths, rad) above which a redundant loop equation counts as open.
#: Values with six digits in a file cause a tenth of this residual.
OPEN = 1e-5
#: Singular values below this fraction of the largest one are ignored when the start values of an
#: iteration are predicted.
SINGULAR_VALUE_TOLERANCE = 1e-3
#: Coefficients of this prediction below this absolute value are set to zero.
MIN_COEFFICIENT = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionEquations:
    """Position equations with symbols for every coordinate, cosine and sine.

    Attributes:
        q: coordinates (n_q,).
        c, s: cosines and sines (n_q,), used where the coordinate is an angle.
        psi, scales: independent loop equations psi = 0, followed by the norms of unknown
            quaternions; phi = psi / scale is the residual.
        sizes: characteristic size of each phi: the machine's characteristic length, m, or one.
        names, elements: name and element of each phi.
        differences: vector d from A to B and length L for the equation d.d = L^2 of a rod; None for
            other equations.
        redundant: name, element and dimensionless residual of every redundant loop equation.
    """

    q: ca.SX
    c: ca.SX
    s: ca.SX
    psi: ca.SX
    scales: ca.SX
    sizes: np.ndarray
    names: tuple[str, ...]
    elements: tuple[str, ...]
    differences: tuple[tuple[ca.SX, ca.SX] | None, ...]
    redundant: tuple[tuple[str, str, ca.SX], ...]


def position_equations(
    mechanism: Mechanism,
    topology: Topology,
    values: Values,
    rows: tuple[int, ...],
    unknown: tuple[int, ...],
) -> PositionEquations:
    """Return the independent loop equations, and norms of quaternions with unknown components."""
    n = topology.n_q
    q, c, s = ca.SX.sym("q", n), ca.SX.sym("c", n), ca.SX.sym("s", n)
    pairs = {i: (c[i], s[i]) for i in range(n) if topology.is_angle[i]}
    zero = ca.SX(topology.n_v, 1)
    equations = (
        closure(mechanism, tree_motion(topology, values, Configuration(q, pairs), zero, zero))
        if rows
        else []
    )
    independent = [equations[i] for i in rows]
    length = mechanism.characteristic_length
    psi = [row.psi for row in independent]
    scales = [row.scale for row in independent]
    sizes = [length if row.is_length else 1.0 for row in independent]
    names = [row.name for row in independent]
    elements = [row.element for row in independent]
    differences = [
        None if row.difference is None else (row.difference, row.scale) for row in independent
    ]
    for iq, _ in topology.quaternions:
        if set(range(iq, iq + 4)) & set(unknown):
            psi.append((ca.sumsqr(q[iq : iq + 4]) - 1) / 2)
            scales.append(ca.SX(1))
            sizes.append(1.0)
            differences.append(None)
            elements.append(topology.coordinate_names[iq].removesuffix(".qw"))
            names.append(f"{elements[-1]}: unit quaternion")
    return PositionEquations(
        q=q,
        c=c,
        s=s,
        psi=ca.vertcat(ca.SX(0, 1), *psi),
        scales=ca.vertcat(ca.SX(0, 1), *scales),
        sizes=np.array(sizes, dtype=float),
        names=tuple(names),
        elements=tuple(elements),
        differences=tuple(differences),
        redundant=tuple(
            (row.name, row.element, row.residual / (length if row.is_length else 1.0))
            for i, row in enumerate(equations)
            if i not in rows
        ),
    )


def incidence(
    equations: PositionEquations, topology: Topology, unknown: tuple[int, ...]
) -> ca.Sparsity:
    """Return the pattern that states which equations (rows) contain which unknowns (columns).

    An equation contains an angle if it contains the angle's cosine or sine.
    """
    angles = _in_coordinates(equations, topology)
    return ca.sparsify(ca.jacobian(angles, equations.q)[:, list(unknown)]).sparsity()


def _in_coordinates(equations: PositionEquations, topology: Topology) -> ca.SX:
    """Return the equations psi in terms of q only, without symbols for cosines and sines."""
    angle = [i for i in range(topology.n_q) if topology.is_angle[i]]
    if not angle:
        return equations.psi
    q = equations.q[angle]
    return ca.SX(
        ca.substitute(
            [equations.psi],
            [equations.c[angle], equations.s[angle]],
            [ca.cos(q), ca.sin(q)],
        )[0]
    )


def entering_by_value(equations: PositionEquations, topology: Topology) -> set[int]:
    """Return indices of angles that equations contain directly, as gears do, not as cosines."""
    used = {symbol.element_hash() for symbol in ca.symvar(equations.psi)}
    return {
        i
        for i in range(topology.n_q)
        if topology.is_angle[i] and equations.q[i].element_hash() in used
    }


#: One revolution, rad.
TURN = 2.0 * np.pi


def nearest_turn(angle: ca.SX, near: ca.SX) -> ca.SX:
    """Return an angle plus the full revolutions that make it nearest to another angle (rad)."""
    return angle + TURN * ca.floor((near - angle) * (1.0 / TURN) + 0.5)


def nearest_turns(q: np.ndarray, near: np.ndarray, turning: tuple[int, ...]) -> np.ndarray:
    """Return coordinates (N, n_q) with the angles `turning` in the revolution nearest to `near`."""
    q = q.copy()
    turn_near(q, near, turning)
    return q


def turn_near(q: np.ndarray, near: np.ndarray, turning: tuple[int, ...]) -> None:
    """Do the same as `nearest_turns`, in place."""
    columns = list(turning)
    turns = np.round((q[:, columns] - near[..., columns]) / TURN)
    if turns.any():
        q[:, columns] -= TURN * turns


def continued(q: np.ndarray, turning: tuple[int, ...]) -> np.ndarray:
    """Return coordinates (N, n_q) of consecutive samples with the angles `turning` unwrapped."""
    q, columns = q.copy(), list(turning)
    turns = np.round(np.diff(q[:, columns], axis=0) / TURN)
    q[1:, columns] -= TURN * np.cumsum(turns, axis=0)
    return q


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvedBlock:
    """Record of one block of the position problem.

    Attributes:
        equations: names of the equations.
        unknowns: names of the coordinates that the block determines.
        method: "quadratic", "cosine and sine", "two circles", "circle and line", "spheres", or
            "Newton".
    """

    equations: tuple[str, ...]
    unknowns: tuple[str, ...]
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions(ReprMixin):
    """The solved position problem.

    Attributes:
        configuration: all coordinates, in terms of the builder's symbols.
        blocks: records of the blocks.
        slopes: derivatives of the closed forms with respect to their unknowns, in the symbols of
            the equations; their signs determine the roots (see `Branches`).
        symbols: symbols of the coordinates, cosines and sines in `slopes`.
        turning: indices of the angles that the loops determine only up to full revolutions.
        turns_matter: whether the revolutions of such an angle affect other coordinates (a gear
            after a loop).
    """

    configuration: Configuration
    blocks: tuple[SolvedBlock, ...]
    slopes: tuple[ca.SX, ...]
    symbols: tuple[ca.SX, ca.SX, ca.SX]
    turning: tuple[int, ...]
    turns_matter: bool


@one_blas_thread()
def solve_positions(
    builder: ProgramBuilder,
    mechanism: Mechanism,
    topology: Topology,
    values: Values,
    rows: tuple[int, ...],
    fixed: Mapping[int, ca.SX],
    start: ca.SX,
    reference: np.ndarray,
    theta: tuple[ca.SX, np.ndarray],
    states: np.ndarray,
) -> Positions:
    """Add the steps that compute all coordinates from the given ones.

    Args:
        builder: program to which the steps are added.
        mechanism, topology, values: the machine.
        rows: indices of the independent loop equations.
        fixed: known coordinates by index (symbols of the builder, or constants).
        start: start values (n_q,) for Newton blocks; angles are in the revolution nearest to them.
        reference: assembled reference coordinates (n_q,), which select the branch of closed forms.
        theta: free parameters, as symbols and as nominal values.
        states: assembled coordinates (M, n_q) of the builder's samples.

    Returns:
        Expressions of all coordinates, and the blocks that are solved for them.

    Raises:
        ValueError: the equations do not determine the coordinates.
    """
    unknown = tuple(i for i in range(topology.n_q) if i not in fixed)
    equations = position_equations(mechanism, topology, values, rows, unknown)
    if len(equations.names) != len(unknown):
        raise ValueError(
            f"{len(equations.names)} position equations for {len(unknown)} unknown coordinates"
        )
    solver = _Solver(
        builder,
        topology,
        equations,
        start,
        reference,
        theta,
        states,
        mechanism.characteristic_length,
    )
    for i, expression in fixed.items():
        solver.set_coordinate(i, expression)
    solved = []
    for block in blocks(incidence(equations, topology, unknown)):
        solved.append(solver.solve(block, tuple(unknown[j] for j in block.columns)))
    solver.add_redundant_diagnostics()
    return Positions(
        configuration=solver.configuration(),
        blocks=tuple(solved),
        slopes=tuple(solver.slopes),
        symbols=(equations.q, equations.c, equations.s),
        turning=tuple(sorted(solver.turning)),
        turns_matter=bool(set(solver.turning) & solver.by_value),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Equation:
    """One equation psi = 0 of a closed form, with difference vector and length if it has them."""

    name: str
    element: str
    psi: ca.SX
    difference: tuple[ca.SX, ca.SX] | None

    @classmethod
    def of_row(cls, e: PositionEquations, row: int) -> _Equation:
        return cls(
            name=e.names[row],
            element=e.elements[row],
            psi=e.psi[row],
            difference=e.differences[row],
        )

    @classmethod
    def of_circle(cls, e: PositionEquations, rows: list[int], circle: CircleForm) -> _Equation:
        names = ", ".join(dict.fromkeys(e.names[row] for row in rows))
        return cls(
            name=names, element=e.elements[rows[0]], psi=circle.psi, difference=circle.difference
        )


class _Solver:
    """Solver of the blocks: adds steps to the program and stores the value of each coordinate."""

    def __init__(
        self,
        builder: ProgramBuilder,
        topology: Topology,
        equations: PositionEquations,
        start: ca.SX,
        reference: np.ndarray,
        theta: tuple[ca.SX, np.ndarray],
        states: np.ndarray,
        length: float,
    ) -> None:
        self._builder = builder
        self._topology = topology
        self._equations = equations
        self._start = start
        self._reference = reference
        self._theta = theta
        self._states = states
        self._length = length
        self._q = ca.SX(equations.q)
        self._c, self._s = ca.SX(equations.c), ca.SX(equations.s)
        self._reference_values = {"q": reference, "c": np.cos(reference), "s": np.sin(reference)}
        self._index_of = {
            symbols[i].element_hash(): (letter, i)
            for letter, symbols in (("q", equations.q), ("c", equations.c), ("s", equations.s))
            for i in range(topology.n_q)
        }
        self.by_value = entering_by_value(equations, topology)
        # coordinates with a known value, and angles of which only cosine and sine are known
        self._known_by_value: set[int] = set()
        self._known_by_pair: set[int] = set()
        self.slopes: list[ca.SX] = []
        self.turning: list[int] = []

    def set_coordinate(self, i: int, value: ca.SX) -> None:
        self._known_by_value.add(i)
        self._q[i] = value
        if self._topology.is_angle[i]:
            self._c[i], self._s[i] = ca.cos(value), ca.sin(value)

    def set_pair(self, i: int, c: ca.SX, s: ca.SX) -> None:
        """Set an angle from its cosine and sine; it is in the revolution nearest to its start."""
        self._c[i], self._s[i] = c, s
        self._q[i] = nearest_turn(ca.atan2(s, c), self._start[i])
        self._add_turning(i)

    def _add_turning(self, i: int) -> None:
        self._known_by_pair.add(i)
        self.turning.append(i)

    def configuration(self) -> Configuration:
        pairs = {
            i: (self._c[i], self._s[i])
            for i in range(self._topology.n_q)
            if self._topology.is_angle[i]
        }
        return Configuration(self._q, pairs)

    def solve(self, block: Block, unknown: tuple[int, ...]) -> SolvedBlock:
        """Solve one block and store its unknowns."""
        rows = list(block.rows)
        method = ""
        if len(unknown) == 1:
            method = self._solve_one(_Equation.of_row(self._equations, rows[0]), unknown[0])
        elif len(unknown) == 2:
            method = self._solve_pin(rows, unknown)
        if not method and len(unknown) > 1:
            method = self._solve_spheres(rows, unknown)
        if not method:
            method = "Newton"
            self._solve_newton(rows, unknown)
        return SolvedBlock(
            equations=tuple(self._equations.names[r] for r in rows),
            unknowns=tuple(self._topology.coordinate_names[i] for i in unknown),
            method=method,
        )

    def add_redundant_diagnostics(self) -> None:
        """Add diagnostics of the redundant equations, which may be open in another posture."""
        residuals = self._known(
            ca.vertcat(ca.SX(0, 1), *(residual for *_, residual in self._equations.redundant))
        )
        for (name, element, _), residual in zip(
            self._equations.redundant, ca.vertsplit(residuals), strict=True
        ):
            if not residual.is_constant():
                record = ClosedForm(equation=name, element=element, unknown="")
                gap = ca.fabs(residual)
                self._builder.closed_form(record, 1 - (residual / OPEN) ** 2, ca.vertcat(gap, 0, 0))

    def _known(
        self, expression: ca.SX, but: tuple[int, ...] = (), trial: tuple[int, ...] = ()
    ) -> ca.SX:
        """Return the expression with all known values substituted.

        The coordinates `but` remain symbols, and the coordinates `trial` have the symbols of
        Newton's iteration.

        Coordinates of later blocks may appear in terms that cancel. For example, both ends of a rod
        between two bodies of a carriage depend on the carriage's position. The values of such
        coordinates do not matter, so those of the reference pose are used.
        """
        symbols = []
        values = []
        for symbol in ca.symvar(expression):
            letter, i = self._index_of.get(symbol.element_hash(), ("", -1))
            if not letter or (letter == "q" and i in but):
                continue
            symbols.append(symbol)
            values.append(self._value(letter, i, (*but, *trial)))
        if not symbols:
            return expression
        return ca.SX(ca.substitute([expression], [ca.vertcat(*symbols)], [ca.vertcat(*values)])[0])

    def _value(self, letter: str, i: int, unknown: tuple[int, ...]) -> ca.SX:
        """Return a coordinate, cosine or sine; the reference pose's value if not known yet."""
        if i in self._known_by_value or i in self._known_by_pair or i in unknown:
            return {"q": self._q, "c": self._c, "s": self._s}[letter][i]
        return ca.SX(float(self._reference_values[letter][i]))

    def _solve_one(self, equation: _Equation, i: int) -> str:
        """Solve one equation in one unknown in closed form; return the method, or "" if none."""
        form = self._form(equation, i)
        if form is None:
            return ""
        self._solve_form(form, equation, i)
        return "cosine and sine" if isinstance(form, PairForm) else "quadratic"

    def _solve_pin(self, rows: list[int], unknown: tuple[int, ...]) -> str:
        """Solve two equations that locate a pin; return the method, "" for other equations."""
        e = self._equations
        circles = [
            (circle_form(e.psi[rows], (e.q, e.c, e.s), b, self._theta), a, b)
            for a, b in (unknown, unknown[::-1])
            if self._topology.is_angle[b]
        ]
        # the pin must reach the larger circle, so that "too near" and "too far" in messages are
        # right
        for circle, a, b in sorted(circles, key=lambda item: -self._radius(item[0])):
            if circle is None:
                continue
            equation = _Equation.of_circle(e, rows, circle)
            form = self._form(equation, a)
            if form is not None:
                self._solve_form(form, equation, a)
                c, s = ca.vertsplit(self._known(circle.pair))
                self.set_pair(b, c, s)
                return "two circles" if isinstance(form, PairForm) else "circle and line"
        return ""

    def _solve_spheres(self, rows: list[int], unknown: tuple[int, ...]) -> str:
        """Solve equations of spheres; return the method, "" for other equations."""
        e, n = self._equations, len(unknown)
        if any(self._topology.is_angle[i] for i in unknown):
            return ""
        x = e.q[list(unknown)]
        form = sphere_form(self._known(e.psi[rows], but=unknown), x)
        if form is None:
            return ""
        last = self._best_last(form.A, n)
        others = [j for j in range(n) if j != last]
        lines = self._builder.solve(
            form.A[:, others], -ca.horzcat(form.b, form.A[:, last]), "spheres"
        )
        u, w = ca.SX(n, 1), ca.SX(n, 1)
        u[others], w[others], w[last] = lines[:, 0], lines[:, 1], 1
        quadratic, alpha = form.along(u, w)
        t, discriminant = quadratic.solution(self._branch(sphere_slope(e.psi[rows], x, last)))
        point = form.center + u + w * t
        for j, i in enumerate(unknown):
            self.set_coordinate(i, point[j])
        record = ClosedForm(
            equation=", ".join(e.names[row] for row in rows),
            element=", ".join(dict.fromkeys(e.elements[row] for row in rows)),
            unknown=", ".join(self._topology.coordinate_names[i] for i in unknown),
        )
        difference = e.differences[rows[0]]
        length = ca.SX(0) if difference is None else self._known(difference[1])
        least, greatest = quadratic.extremes()
        self._builder.closed_form(record, discriminant, ca.vertcat(alpha * least, greatest, length))
        return "spheres"

    def _best_last(self, A: ca.SX, n: int) -> int:
        """Return the unknown without which the linear equations are best conditioned."""
        sampled = self._builder.at_samples(A).reshape(-1, n, n - 1).transpose(0, 2, 1)
        worst = [
            np.linalg.svd(np.delete(sampled, j, axis=2), compute_uv=False)[:, -1].min()
            for j in range(n)
        ]
        return int(np.argmax(worst))

    def _radius(self, circle: CircleForm | None) -> float:
        """Return the nominal radius of a circle; zero if it depends on the pose."""
        if circle is None or not circle.is_constant:
            return 0.0
        square = ca.Function("square", [self._theta[0]], [circle.square])
        return float(square(self._theta[1])) ** 0.5

    def _form(self, equation: _Equation, i: int) -> PairForm | QuadraticForm | None:
        """Return the closed form of an equation in the unknown i, or None if it has none."""
        e = self._equations
        parts = (equation.psi, equation.difference, (e.q, e.c, e.s), i, self._theta)
        if not self._topology.is_angle[i]:
            return quadratic_form(*parts)
        if not ca.depends_on(equation.psi, e.q[i]):
            return pair_form(*parts)
        # a gear contains the angle itself, and its equation is linear
        if ca.depends_on(equation.psi, ca.vertcat(e.c[i], e.s[i])):
            return None
        return quadratic_form(*parts)

    def _solve_form(self, form: PairForm | QuadraticForm, equation: _Equation, i: int) -> None:
        """Store the root of a closed form on the branch of the reference pose."""
        known = form.at(self._known)
        if isinstance(known, PairForm):
            c, s, discriminant = known.solution(-self._branch(self._slope(equation.psi, i)))
            self.set_pair(i, c, s)
        else:
            # a linear equation has a single root
            sign = 1.0 if known.square is None else self._branch(self._slope(equation.psi, i))
            x, discriminant = known.solution(sign)
            self.set_coordinate(i, x)
        if not discriminant.is_constant():
            names = self._topology.coordinate_names
            record = ClosedForm(equation=equation.name, element=equation.element, unknown=names[i])
            length = (
                ca.SX(0) if equation.difference is None else self._known(equation.difference[1])
            )
            self._builder.closed_form(record, discriminant, ca.vertcat(*known.extremes(), length))

    def _slope(self, psi: ca.SX, i: int) -> ca.SX:
        """Return the derivative of psi with respect to the unknown, whose sign selects the root.

        With the square root r of the discriminant and the sign of the root, the derivative is
        -sign r for an angle, and alpha sign r for a quadratic with leading coefficient alpha.
        """
        e = self._equations
        if self._topology.is_angle[i] and not ca.depends_on(psi, e.q[i]):
            return e.c[i] * ca.jacobian(psi, e.s[i]) - e.s[i] * ca.jacobian(psi, e.c[i])
        slope = ca.jacobian(psi, e.q[i])
        return slope * ca.sign(ca.jacobian(slope, e.q[i]))

    def _branch(self, slope: ca.SX) -> float:
        """Return the sign of a slope at the reference pose, and store the slope for `Branches`."""
        self.slopes.append(slope)
        e = self._equations
        function = ca.Function("slope", [e.q, e.c, e.s, self._theta[0]], [slope])
        q = self._reference
        return 1.0 if float(function(q, np.cos(q), np.sin(q), self._theta[1])) >= 0 else -1.0

    def _solve_newton(self, rows: list[int], unknown: tuple[int, ...]) -> None:
        e = self._equations
        residual = e.psi[rows] / e.scales[rows]
        x = ca.SX.sym("x", len(unknown))
        for j, i in enumerate(unknown):
            self._q[i] = x[j]
            if self._topology.is_angle[i]:
                self._c[i], self._s[i] = ca.cos(x[j]), ca.sin(x[j])
        residual = self._known(residual, trial=unknown)
        names = self._topology.coordinate_names
        solution = self._builder.newton(
            residual,
            x,
            self._predicted(rows, unknown),
            tuple(e.names[r] for r in rows),
            tuple(names[i] for i in unknown),
            self._states[:, list(unknown)],
            e.sizes[rows],
            np.where(np.array(self._topology.is_length)[list(unknown)], self._length, 1.0),
        )
        for j, i in enumerate(unknown):
            self.set_coordinate(i, solution[j])
            if self._topology.is_angle[i] and i not in self.by_value:
                # the iteration may have added full revolutions; cosine and sine are not affected
                self._q[i] = nearest_turn(solution[j], self._start[i])
                self._add_turning(i)

    def _predicted(self, rows: list[int], unknown: tuple[int, ...]) -> ca.SX:
        """Return the start of Newton's method, predicted along the tangent at the reference pose.

        For residuals r, unknowns x and known coordinates k,
        x = x_start - (dr/dx)^-1 (dr/dk) (k - k_start). This saves one iteration. Angles that are
        known only by cosine and sine are skipped, because they would cost an arctangent.
        """
        e, start = self._equations, self._start
        q = ca.SX.sym("q", e.q.numel())
        at_q = ca.substitute(
            [e.psi[rows] / e.scales[rows]], [e.q, e.c, e.s], [q, ca.cos(q), ca.sin(q)]
        )[0]
        slopes = ca.Function("slopes", [q, self._theta[0]], [ca.jacobian(at_q, q)])
        J = np.array(slopes(self._reference, self._theta[1]).full())
        known = [i for i in sorted(self._known_by_value) if np.any(J[:, i])]
        coefficients, *_ = np.linalg.lstsq(
            J[:, list(unknown)], -J[:, known], rcond=SINGULAR_VALUE_TOLERANCE
        )
        coefficients[np.abs(coefficients) < MIN_COEFFICIENT] = 0.0
        steps = ca.SX(0, 1)
        for i in known:
            step = self._q[i] - start[i]
            if self._topology.is_angle[i] and not ca.depends_on(e.psi[rows], e.q[i]):
                # remove full revolutions, on which the equations do not depend
                step = step - 2 * np.pi * ca.floor(step / (2 * np.pi) + 0.5)
            steps = ca.vertcat(steps, step)
        return ca.SX(
            ca.vertcat(*(start[i] for i in unknown)) + ca.sparsify(ca.DM(coefficients)) @ steps
        )
