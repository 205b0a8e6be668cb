"""Programs that compute a function and its Jacobians along the manifold of closed loops.

A position is changed by displacements dx, which have the components of its velocity (three for a
rotation): dq = N(q) dx. The loop equations of positions, velocities and accelerations (K v = 0,
K a = k) and the balance of forces S u + K^T lambda = M a + h determine dependent derivatives by
implicit differentiation, block by block, in the same order as the values. Newton's loops are never
differentiated. The subscripts are "giv" for given and "dep" for dependent coordinates. On the right
side, the unknowns of the left side are constant:

    K_dep dx_dep = -K_giv dx_giv,  K_dep dv_dep = -d(K v),  K_dep da_dep = -d(K a - k),
    [S K^T] d[u; lambda] = d(M a + h) - d[S K^T] [u; lambda]

For forward dynamics, with G^T K^T = 0 and M_r = G^T M G,
M_r da_giv = -G^T (d(M a + h) - d(S u) - d(K^T) lambda). The forces of redundant actuators minimize
the sum of w u^2: W u = R mu, where W is diagonal with the weights w, R = S^T G, and mu are
multipliers.

Source: `accumulation`; for trees Carpentier, Mansard 2018, Analytical derivatives of rigid body
dynamics algorithms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TypeVar

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.compiler.builder import blocks
from tauloop.compiler.derivatives.accumulation import DerivativeGraph, expression_graph
from tauloop.compiler.expressions import MotionState, column
from tauloop.compiler.functions.motion import balanced_forces, free_accelerations, require_actuated
from tauloop.compiler.program import Program
from tauloop.equations.named_values import TOOL_PORT
from tauloop.equations.natural_units import natural_units, stribeck_speeds
from tauloop.equations.ports import force_port, jacobian_name, may_depend
from tauloop.equations.tree import Configuration, quaternion_rotation
from tauloop.equations.values import BODY_UNITS
from tauloop.mechanism.description.units import si_unit

#: Number of states at which expressions are compared. Two different expressions must not agree by
#: chance at all of them, such as two signs of friction.
SAMPLES = 32
#: Minimum number of different poses among these states.
MIN_DIFFERENT_POSES = 4
#: Speeds of slow states relative to the Stribeck speed. At the lower speed, the Stribeck curve
#: still affects joints that are thirty times as fast.
SLOW = (0.3, 0.03)
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Equations:
    """Equations A dy = -mixing d(terms) for unknowns y, which are constants in their own terms.

    Attributes:
        terms: expressions (k,).
        targets: symbols of the unknowns; or indices of velocities, if the unknowns are the
            displacements of these.
        matrix: A (n, n) at the state; None for the unit matrix.
        mixing: matrix (n, k); None for the unit matrix.
        is_symmetric: whether A is symmetric positive definite.
        is_local: whether the inverse of A, which several levels use, is part of the graph, so that
            its successors may be eliminated before its predecessors.
    """

    terms: ca.SX
    targets: Sequence[ca.SX | int]
    matrix: ca.SX | None = None
    mixing: ca.SX | None = None
    is_symmetric: bool = False
    is_local: bool = False


class Differentiation:
    """Equations of a state with a symbol for each value that other equations determine."""

    def __init__(self, state: MotionState, v: ca.SX, a: ca.SX) -> None:
        """Replace coordinates, cosines, sines, velocities and accelerations by symbols."""
        self.state, self.topology = state, state.topology
        self._symbols: list[ca.SX] = []
        self._actual: list[ca.SX] = []
        self._equations: list[_Equations] = []
        self._results: dict[str, ca.SX | Sequence[int]] = {}
        self.actual = state.configuration
        fixed = set(self.topology.coordinates_of(state.assembly.frozen))
        q, pairs = ca.SX(self.actual.q), {}
        for i in range(self.topology.n_q):
            if i not in fixed:
                q[i] = self.symbols(self.actual.q[i])
            if self.topology.is_angle[i]:
                pair = self.actual.pair(i)
                pairs[i] = pair if i in fixed else (self.symbols(pair[0]), self.symbols(pair[1]))
        self.configuration = Configuration(q, pairs)
        self._rotations: list[tuple[ca.SX, int, set[int]]] = [
            (q[q0 : q0 + 4], v0, set())
            for q0, v0 in self.topology.quaternions
            if {v0, v0 + 1, v0 + 2} & set(state.moving)
        ]
        self.v = state.at_rest
        self.a = state.at_rest
        self.v[state.moving] = self.symbols(v[state.moving])
        self.a[state.moving] = self.symbols(a[state.moving])
        self.rows = self.in_symbols(lambda: state.rows(self.v, self.a))

    def symbols(self, actual: ca.SX) -> ca.SX:
        """Return symbols (n,) for expressions."""
        made = ca.SX.sym("x", actual.numel())
        self._symbols += ca.vertsplit(made)
        self._actual += ca.vertsplit(ca.densify(actual))
        return made

    def in_symbols(self, make: Callable[[], _Made]) -> _Made:
        """Return expressions that `make` builds from the symbols of the coordinates."""
        self.state.configuration = self.configuration
        try:
            return make()
        finally:
            self.state.configuration = self.actual

    def at_state(self, expressions: Sequence[ca.SX]) -> list[ca.SX]:
        """Return expressions with symbols replaced by their actual values."""
        if not self._symbols:
            return list(expressions)
        symbols = [ca.vertcat(*self._symbols)]
        values = [ca.vertcat(*self._actual)]
        return list(ca.substitute(list(expressions), symbols, values))

    def with_constants(self, expression: ca.SX, unknowns: Sequence[ca.SX]) -> ca.SX:
        """Return an expression in which the symbols of some unknowns are constants."""
        constants = self._constants(unknowns)
        return ca.SX(ca.substitute([expression], [column(unknowns)], [constants])[0])

    def _constants(self, symbols: Sequence[ca.SX]) -> ca.SX:
        """Return new symbols (n,) with the same values, by which nothing is differentiated."""
        indices = {symbol.__hash__(): i for i, symbol in enumerate(self._symbols)}
        return self.symbols(column(self._actual[indices[s.__hash__()]] for s in symbols))

    def _constant_under(self, expression: ca.SX, unknown: Sequence[int]) -> ca.SX:
        """Return an expression that is constant under the displacements with these indices.

        A quaternion is replaced if any of its three displacements is among them; the other
        displacements still change it (see `_place`).
        """
        q = self.configuration.q
        unknown_symbols = list[ca.SX]()
        for iq in (self.topology.q_of_v[i] for i in unknown if self.topology.q_of_v[i] >= 0):
            unknown_symbols += [q[iq], *self.configuration.pairs.get(iq, ())]
        for q0, v0 in self.topology.quaternions:
            if {v0, v0 + 1, v0 + 2} & set(unknown):
                quaternion = ca.vertsplit(q[q0 : q0 + 4])
                constants = self._constants(quaternion)
                expression = ca.substitute([expression], [column(quaternion)], [constants])[0]
                self._rotations.append((constants, v0, set(unknown)))
        if not unknown_symbols:
            return ca.SX(expression)
        return self.with_constants(expression, unknown_symbols)

    def balance(self, force: ca.SX, multipliers: ca.SX) -> ca.SX:
        """Return M a + h - S u - K^T lambda on the moving coordinates, with lambda those of psi."""
        state, moving = self.state, self.state.moving
        tau = self.in_symbols(lambda: state.forces(self.v, self.a))
        rates = column(row.psi_rate for row in self.rows)
        loops = (
            ca.jtimes(rates, self.v[moving], multipliers, True)
            if self.rows
            else ca.SX(len(moving), 1)
        )
        return ca.SX(tau[moving] - (state.transmission.T @ force)[moving] - loops)

    def equations(self, equations: _Equations) -> None:
        """Add equations after those whose unknowns they need."""
        self._equations.append(equations)

    def loops(self, levels: int) -> None:
        """Add the loop equations of positions and, up to `levels`, of their derivatives."""
        psi = column(row.psi for row in self.rows)
        rate = column(row.psi_rate for row in self.rows)
        acceleration = column(row.psi_acceleration for row in self.rows)
        for rows, unknown, matrix in self._blocks():
            terms = self._constant_under(psi[rows], unknown)
            self.equations(_Equations(terms=terms, targets=unknown, matrix=matrix, is_local=True))
            for full, derivative in ((self.v, rate), (self.a, acceleration))[:levels]:
                symbols = [full[i] for i in unknown]
                terms = self.with_constants(derivative[rows], symbols)
                self.equations(
                    _Equations(terms=terms, targets=symbols, matrix=matrix, is_local=True)
                )

    def loops_at(self, rates: ca.SX) -> None:
        """Add K z = 0 for velocities z on the moving coordinates, which are symbols (`rates`)."""
        residual = ca.substitute(
            [column(row.psi_rate for row in self.rows)], [self.v[self.state.moving]], [rates]
        )[0]
        position = {i: k for k, i in enumerate(self.state.moving)}
        for rows, unknown, matrix in self._blocks():
            symbols = [rates[position[i]] for i in unknown]
            terms = self.with_constants(residual[rows], symbols)
            self.equations(_Equations(terms=terms, targets=symbols, matrix=matrix, is_local=True))

    def _blocks(self) -> list[tuple[list[int], list[int], ca.SX]]:
        """Return rows, unknown velocities and matrix of every block of the loop equations."""
        state, dependent = self.state, self.state.dependent
        K = ca.sparsify(state.K[:, dependent])
        result: list[tuple[list[int], list[int], ca.SX]] = []
        for block in blocks(K.sparsity()):
            rows, columns = list(block.rows), list(block.columns)
            result.append((rows, [dependent[j] for j in columns], K[rows, columns]))
        return result

    def result(self, name: str, values: ca.SX | Sequence[int]) -> None:
        """Request the derivatives of expressions (n,), or of displacements with these indices."""
        self._results[name] = values

    def jacobians(self, sources: Mapping[str, ca.SX]) -> dict[str, ca.SX]:
        """Return the Jacobians of the results with respect to all sources, by `jacobian_name`.

        Args:
            sources: inputs of the program by name; inputs of the motion have the columns of its
                ports.
        """
        rotations = [ca.vec(quaternion_rotation(quaternion)) for quaternion, *_ in self._rotations]
        results = [values for values in self._results.values() if isinstance(values, ca.SX)]
        terms = [equations.terms for equations in self._equations]
        free = [symbol for name, symbol in sources.items() if name not in _MOTION]
        self._graph = DerivativeGraph(
            column([*self._symbols, *free]),
            [ca.densify(e) for e in (*rotations, *terms, *results)],
            self._sampled,
            range(len(rotations)),
            self._computed_expressions(),
        )
        vertices = iter(self._graph.vertices)
        self._tangents = {i: self._graph.new() for i in self.state.moving}
        self._place([next(vertices) for _ in rotations])
        starts = {name: self._source(name, symbol) for name, symbol in sources.items()}
        waiting = [self._joined(equations, next(vertices)) for equations in self._equations]
        sinks = {}
        for name, values in self._results.items():
            if isinstance(values, ca.SX):
                sinks[name] = self._sinks(next(vertices))
            else:
                sinks[name] = self._sinks([self._tangents.get(i) for i in values])
        self._solve(
            [w for w in waiting if w is not None],
            {*chain(*starts.values()), *chain(*sinks.values())},
        )
        pairs = [(output, name) for output in sinks for name in starts if may_depend(output, name)]
        made = {
            jacobian_name(output, name): self._graph.rows(sinks[output], starts[name])
            for output, name in pairs
        }
        return dict(zip(made, self.at_state(list(made.values())), strict=True))

    def _sampled(self, expressions: ca.SX) -> np.ndarray:
        """Return values (M, n) of a column at some states; empty if there are too few states."""
        (actual,) = self.at_state([ca.densify(expressions)])
        return self.state.builder.values_at(actual, self._states)[self._regular_states]

    @cached_property
    def _states(self) -> dict[str, np.ndarray]:
        """Return random motions and loads at assembled poses, in natural units.

        All terms must affect the values. At speeds far above the Stribeck speed, the slope of the
        Stribeck curve vanishes, so some states are slow enough for each friction law.
        """
        assembly, builder, rng = self.state.assembly, self.state.builder, np.random.default_rng(5)
        count, natural = len(assembly.states), natural_units(assembly.mechanism)
        parameters = assembly.mechanism.parameters
        theta = parameters.vector(self.state.free)
        perturbed = theta * rng.uniform(0.98, 1.02, size=(count, len(theta)))
        small = 1e-3 * natural.sizes(
            si_unit(parameters[name].unit or "1") for name in self.state.free
        )
        states = {"theta": np.where(theta, perturbed, small * rng.normal(size=perturbed.shape))}
        ports = {**self.state.ports.motion, "force": force_port(assembly), "wrench": TOOL_PORT}
        units = {name: port.units for name, port in ports.items()} | {"payload": BODY_UNITS}
        for name, names in units.items():
            if builder.declares(name) and name != "position":
                size = builder.declared(name).numel()
                states[name] = natural.sizes(names[:size]) * rng.normal(size=(count, size))
        slow = np.unique(stribeck_speeds(assembly.mechanism, self.topology) * natural.time)
        speeds = np.resize([1.0, *np.outer(SLOW, slow).ravel()], (count, 1))
        if "velocity" in states:
            states["velocity"] = states["velocity"] * speeds
        if builder.declares("weight"):
            states["weight"] = rng.uniform(
                0.5, 2.0, size=(count, builder.declared("weight").numel())
            )
        return states

    @cached_property
    def _regular_states(self) -> np.ndarray:
        """Return indices of at most `SAMPLES` states with finite values, the reference pose last.

        The result is empty if these states have fewer than `MIN_DIFFERENT_POSES` different poses.
        """
        values = self.state.builder.values_at(column(self._actual), self._states)
        regular = np.flatnonzero(np.isfinite(values).all(axis=1))[::-1][:SAMPLES]
        poses = self.state.assembly.states[regular] / self.state.assembly.loops.coordinate_scale
        return (
            regular
            if len(np.unique(poses.round(6), axis=0)) >= MIN_DIFFERENT_POSES
            else regular[:0]
        )

    def _computed_expressions(self) -> list[ca.SX]:
        """Return all expressions that the program computes for the values, without derivatives."""
        (values,) = ca.cse([column(self._actual)])
        made, operations, _ = expression_graph(column(ca.symvar(values)), [ca.densify(values)])
        return [made[vertex] for vertex in operations]

    def _place(self, rotations: Sequence[Sequence[int]]) -> None:
        """Connect displacements and coordinates: dc = -s d, ds = c d; dR = d x R (quaternions)."""
        graph, q = self._graph, self.configuration.q
        for i, tangent in self._tangents.items():
            iq = self.topology.q_of_v[i]
            if iq >= 0:
                graph.connect(tangent, graph.symbol(q[iq]), 1)
                if iq in self.configuration.pairs:
                    c, s = self.configuration.pairs[iq]
                    graph.connect(tangent, graph.symbol(c), -s)
                    graph.connect(tangent, graph.symbol(s), c)
        for (_, v0, constant), entries in zip(self._rotations, rotations, strict=True):
            for first in (0, 3, 6):
                for k in range(3):
                    following, last = (k + 1) % 3, (k + 2) % 3
                    for axis, entry, sign in ((following, last, 1), (last, following, -1)):
                        weight = sign * graph.value(entries[first + entry])
                        if v0 + axis not in constant:
                            graph.connect(self._tangents.get(v0 + axis), entries[first + k], weight)

    def _source(self, name: str, symbols: ca.SX) -> list[int]:
        """Return the graph's vertices of an input: its symbols, or new vertices for a motion."""
        graph, ports = self._graph, self.state.ports
        if name not in _MOTION:
            vertices = [graph.symbol(symbol) for symbol in ca.vertsplit(symbols)]
            return [graph.new() if vertex is None else vertex for vertex in vertices]
        made = [graph.new() for _ in range(ports.velocity.size)]
        for row, i in enumerate(ports.v):
            full = {"velocity": self.v, "acceleration": self.a}.get(name)
            end = self._tangents.get(i) if full is None else graph.symbol(full[i])
            for k, start in enumerate(made):
                graph.connect(start, end, float(ports.to_v[row, k]))
        return made

    def _sinks(self, vertices: Sequence[int | None]) -> list[int]:
        """Return a new successor without successors of its own (a sink) for each vertex."""
        sinks = [self._graph.new() for _ in vertices]
        for start, end in zip(vertices, sinks, strict=True):
            self._graph.connect(start, end, 1)
        return sinks

    def _joined(
        self, equations: _Equations, terms: list[int]
    ) -> tuple[_Equations, list[int], list[int | None]] | None:
        """Add equations to the graph; return those left for `_solve`, with rows and targets."""
        graph = self._graph
        targets = [
            self._tangents[t] if isinstance(t, int) else graph.symbol(t) for t in equations.targets
        ]
        rows, mixing = terms, equations.mixing
        if mixing is not None:
            rows = [graph.new() for _ in targets]
            for i, row in enumerate(rows):
                for j, term in enumerate(terms):
                    graph.connect(term, row, mixing[i, j])
        if not (equations.matrix is None or equations.is_local or len(rows) == 1):
            return equations, rows, targets
        inverse = (
            ca.SX(ca.DM.eye(len(rows)))
            if equations.matrix is None
            else self._inverse(equations.matrix)
        )
        for i, target in enumerate(targets):
            for j, row in enumerate(rows):
                graph.connect(row, target, -inverse[i, j])
        return None

    def _inverse(self, A: ca.SX) -> ca.SX:
        return (
            self.state.builder.solve(A, ca.SX(ca.DM.eye(A.size1())), "derivatives")
            if A.size1() > 1
            else 1 / A
        )

    def _solve(
        self, waiting: list[tuple[_Equations, list[int], list[int | None]]], kept: set[int]
    ) -> None:
        """Eliminate all vertices except `kept`, and solve the waiting equations in their order.

        Each block of equations is solved for all vertices on which its rows depend.
        """
        graph, builder = self._graph, self.state.builder
        graph.join_equivalent(
            kept | {vertex for _, r, t in waiting for vertex in (*r, *t) if vertex is not None}
        )
        for k, (equations, rows, targets) in enumerate(waiting):
            later = {vertex for _, r, t in waiting[k:] for vertex in (*r, *t) if vertex is not None}
            graph.eliminate(kept | later)
            starts = graph.starts(rows)
            (right,) = self.at_state([graph.rows(rows, starts)])
            assert equations.matrix is not None
            solve = builder.solve_symmetric if equations.is_symmetric else builder.solve
            slopes = solve(equations.matrix, -right, "derivatives")
            graph.forget(rows)
            for i, target in enumerate(targets):
                for j, start in enumerate(starts):
                    graph.connect(start, target, slopes[i, j])
        graph.eliminate(kept)


_MOTION = ("position", "velocity", "acceleration")


def _sources(state: MotionState, *names: str) -> dict[str, ca.SX]:
    """Return inputs of a program by name, including free parameters if there are any."""
    inputs = {name: state.builder.declared(name) for name in names}
    theta = state.builder.declared("theta")
    return inputs | ({"theta": theta} if theta.numel() else {})


def _finish(
    state: MotionState, values: Mapping[str, ca.SX], jacobians: Mapping[str, ca.SX]
) -> Program:
    return state.builder.finish(
        {**values, **{name: ca.vec(ca.densify(J)) for name, J in jacobians.items()}}
    )


def kinematics_derivatives_program(state: MotionState) -> Program:
    """Return the program of coordinates, velocities and accelerations with their Jacobians.

    The Jacobians are those of displacements, velocities and accelerations (n_v each) with respect
    to the given motion, stored by columns.
    """
    parts = Differentiation(state, state.v, state.a)
    parts.loops(2)
    parts.result("q", range(state.topology.n_v))
    parts.result("v", parts.v)
    parts.result("a", parts.a)
    values = {"q": state.configuration.q, "v": state.v, "a": state.a}
    return _finish(state, values, parts.jacobians(_sources(state, *_MOTION)))


def inverse_dynamics_derivatives_program(state: MotionState, *, loaded: bool = False) -> Program:
    """Return the program of derivatives of actuator forces and multipliers.

    They are derivatives with respect to the motion and, if `loaded`, payload and wrench at the tool.

    Raises:
        AssemblyError: there are passive degrees of freedom.
        InputError: the machine has cables, so forces are not a smooth function of the motion.
    """
    require_smooth(state)
    if loaded:
        state.add_loads()
    tau = state.forces(state.v, state.a)
    force, raw = balanced_forces(state, tau)
    parts = Differentiation(state, state.v, state.a)
    parts.loops(2)
    u, multipliers = parts.symbols(force), parts.symbols(raw)
    balance = parts.balance(u, multipliers)
    if state.assembly.is_redundant:
        _share(parts, balance, u, multipliers, tau)
    else:
        _determine(parts, balance, ca.vertcat(u, multipliers))
    scale = column(row.scale for row in parts.rows)
    parts.result("force", u)
    parts.result("closure_force", multipliers * scale)
    values = {"q": state.configuration.q, "force": force, "closure_force": raw * state.scale}
    return _finish(
        state, values, parts.jacobians(_sources(state, *_MOTION, *(_LOAD if loaded else ())))
    )


_LOAD = ("wrench", "payload")


def require_smooth(state: MotionState) -> None:
    """Raise an error unless forces are a smooth function of the motion.

    Raises:
        AssemblyError: there are passive degrees of freedom.
        InputError: the machine has cables, whose tensions have bounds.
    """
    if state.mechanism.cables:
        what = "forces within bounds are not differentiable everywhere"
        raise InputError.of(
            "cables", what, "use finite differences, or replace the cables with rods"
        )
    require_actuated(state.assembly)


def _determine(parts: Differentiation, balance: ca.SX, unknown: ca.SX) -> None:
    """Add the equations of forces and multipliers that the motion determines."""
    (A,) = parts.at_state([ca.jacobian(balance, unknown)])
    A = ca.sparsify(A)
    for block in blocks(A.sparsity()):
        rows, columns = list(block.rows), list(block.columns)
        targets = [unknown[j] for j in columns]
        terms = parts.with_constants(balance[rows], targets)
        parts.equations(_Equations(terms=terms, targets=targets, matrix=A[rows, columns]))


def _share(
    parts: Differentiation, balance: ca.SX, u: ca.SX, multipliers: ca.SX, tau: ca.SX
) -> None:
    """Add the forces of redundant actuators.

    R^T du = G^T d(balance) and W du = R dmu + d(A z), where z = G mu and K z = 0.
    """
    state = parts.state
    moving, G = state.moving, state.embedding
    weight = state.builder.declared("weight")
    R = state.transmission @ G
    weighted = R / ca.repmat(weight, 1, R.size2())
    mu = state.builder.solve_symmetric(R.T @ weighted, G.T @ tau, "actuator forces")
    z = parts.symbols((G @ mu)[moving])
    parts.loops_at(z)
    weighted_forces = state.transmission[:, moving] @ z
    unknowns = [*ca.vertsplit(u), *ca.vertsplit(multipliers)]
    terms = ca.vertcat(parts.with_constants(balance, unknowns), weighted_forces)
    mu_symbols = parts.symbols(mu)
    mixing = ca.horzcat(-G[moving, :].T, weighted.T)
    parts.equations(
        _Equations(
            terms=terms,
            targets=ca.vertsplit(mu_symbols),
            matrix=R.T @ weighted,
            mixing=mixing,
            is_symmetric=True,
        )
    )
    mixing = -ca.horzcat(weighted, ca.diag(1 / weight))
    parts.equations(
        _Equations(
            terms=ca.vertcat(mu_symbols, weighted_forces), targets=ca.vertsplit(u), mixing=mixing
        )
    )
    position = {i: k for k, i in enumerate(moving)}
    K = ca.sparsify(-state.K[:, state.dependent].T)
    for block in blocks(K.sparsity()) if state.dependent else ():
        targets = [multipliers[j] for j in block.columns]
        rows = [position[state.dependent[i]] for i in block.rows]
        matrix = K[list(block.rows), list(block.columns)]
        terms = parts.with_constants(balance[rows], targets)
        parts.equations(_Equations(terms=terms, targets=targets, matrix=matrix))


def forward_dynamics_derivatives_program(state: MotionState, *, loaded: bool = False) -> Program:
    """Return the program of derivatives of accelerations with respect to state, forces and loads.

    M_r da_giv = -G^T (d(M a + h) - d(S) u - d(K^T) lambda - S du). Here a = G a_giv + gamma are the
    accelerations, gamma are their values at a_giv = 0, and M_r = G^T M G is the mass matrix of the
    given coordinates.
    """
    force = state.builder.input("force", len(state.mechanism.actuators))
    G, bias = state.embedding, state.drift()
    if loaded:
        state.add_loads()
    reduced, acceleration = free_accelerations(state, force, G, bias)
    a = G @ acceleration + bias
    raw = state.loop_forces(state.forces(state.v, a) - state.transmission.T @ force)
    parts = Differentiation(state, state.v, a)
    parts.loops(2)
    multipliers = parts.symbols(raw)
    balance = parts.balance(force, multipliers)
    given_acceleration = parts.symbols(acceleration)
    mixing = G[state.moving, :].T
    parts.equations(
        _Equations(
            terms=balance,
            targets=ca.vertsplit(given_acceleration),
            matrix=reduced,
            mixing=mixing,
            is_symmetric=True,
        )
    )
    parts.result("acceleration", given_acceleration)
    sources = _sources(state, *_MOTION[:2], "force", *(_LOAD if loaded else ()))
    values = {"q": state.configuration.q, "v": state.v, "acceleration": acceleration}
    return _finish(state, values, parts.jacobians(sources))
