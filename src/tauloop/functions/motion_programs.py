"""Programs of one machine: from a given motion to all coordinates, forces and regressors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import casadi as ca
import numpy as np

from tauloop.equations.closure import ClosureRow, closure
from tauloop.equations.dynamic_parameters import DynamicParameter, Entries
from tauloop.equations.formulations import NEWTON_EULER, Formulation
from tauloop.equations.formulations.hamilton import CanonicalTerms, canonical_terms
from tauloop.equations.formulations.platform_matrices import euler_axes, virtual_platforms
from tauloop.equations.formulations.state_symbols import StateSymbols
from tauloop.equations.newton_euler import transmission
from tauloop.equations.tree import TreeMotion, quaternion_rotation, tree_motion
from tauloop.functions.assembly import Assembly
from tauloop.functions.builder import ProgramBuilder
from tauloop.functions.entry import Entry
from tauloop.functions.loops import nominal
from tauloop.functions.position import SolvedBlock, solve_positions
from tauloop.functions.program import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What the programs of one machine are made from.

    Attributes:
        assembly: the assembled machine.
        parameters: entries of pi.
        free: names of the leaf parameters that stay symbols; all others are baked in.
        formulation: how the forces M a + h are found.
    """

    assembly: Assembly
    parameters: tuple[DynamicParameter, ...]
    free: tuple[str, ...] = ()
    formulation: Formulation = NEWTON_EULER


class _State:
    """A program that has reached the full state (q, v, a), and the expressions of that state."""

    def __init__(self, machine: Machine, entry: Entry, name: str, levels: int) -> None:
        """Emit the kinematics: positions, then velocities and accelerations as far as `levels` (0 to 2) says."""
        self.machine = machine
        assembly = machine.assembly
        self.mechanism, self.shape = assembly.loops.mechanism, assembly.loops.topology
        self.builder = ProgramBuilder(name, _samples(machine, entry))
        self.theta = self.builder.input("theta", len(machine.free))
        self.values = nominal(self.mechanism, {leaf: self.theta[i] for i, leaf in enumerate(machine.free)})
        position = self.builder.input("position", entry.position.size)
        start = self.builder.input("start", self.shape.n_q)
        given = entry.given(position)
        for i in _frozen_coordinates(assembly):
            given.setdefault(i, ca.SX(float(assembly.q[i])))
        self.configuration, self.blocks = solve_positions(
            self.builder,
            self.mechanism,
            self.shape,
            self.values,
            assembly.rows,
            given,
            start,
            assembly.q,
            (self.theta, np.array([self.mechanism.parameters[leaf].value for leaf in machine.free])),
            assembly.states,
        )
        self.v, self.a = ca.SX(self.shape.n_v, 1), ca.SX(self.shape.n_v, 1)
        self.K = ca.SX(0, self.shape.n_v)
        if levels:
            self._velocities(entry, levels)

    def motion(self, v: ca.SX, a: ca.SX) -> TreeMotion:
        return tree_motion(self.shape, self.values, self.configuration, v, a)

    def rows(self, v: ca.SX, a: ca.SX) -> list[ClosureRow]:
        """The kept loop equations of a motion."""
        found = closure(self.mechanism, self.shape, self.values, self.motion(v, a))
        return [found[i] for i in self.machine.assembly.rows]

    def _velocities(self, entry: Entry, levels: int) -> None:
        """Loops on velocity and acceleration level, with what is given put in at once: K x = -(rate of the rest)."""
        n_v = self.shape.n_v
        v, at_rest = ca.SX.sym("v", n_v), ca.SX(n_v, 1)
        self.K = ca.jacobian(_column(row.psi_rate for row in self.rows(v, at_rest)), v)
        self._give(entry, self.v, self.builder.input("velocity", entry.velocity.size))
        self.close(entry, self.v, _column(row.psi_rate for row in self.rows(self.v, at_rest)))
        if levels > 1:
            self._give(entry, self.a, self.builder.input("acceleration", entry.velocity.size))
            self.close(entry, self.a, _column(row.psi_acceleration for row in self.rows(self.v, self.a)))

    def _give(self, entry: Entry, full: ca.SX, given: ca.SX) -> None:
        full[list(entry.v)] = ca.DM(entry.to_v) @ given

    def close(self, entry: Entry, full: ca.SX, open_rates: ca.SX) -> None:
        """Fill in the dependent entries so that the rates of the loops vanish."""
        assembly = self.machine.assembly
        dependent = [i for i in range(self.shape.n_v) if i not in entry.v and i not in assembly.frozen]
        if dependent:
            full[dependent] = self.builder.solve(self.K[:, dependent], -open_rates, "loop velocities")


def _column(expressions: Iterable[ca.SX]) -> ca.SX:
    return ca.SX(ca.vertcat(ca.SX(0, 1), *expressions))


def _frozen_coordinates(assembly: Assembly) -> tuple[int, ...]:
    """Coordinates that belong to velocities which are zero in every motion."""
    shape, frozen = assembly.loops.topology, set(assembly.frozen)
    q = [shape.q_of_v[i] for i in assembly.frozen if shape.q_of_v[i] >= 0]
    for q0, v0 in shape.quaternions:
        if {v0, v0 + 1, v0 + 2} <= frozen:
            q += range(q0, q0 + 4)
    return tuple(q)


def _samples(machine: Machine, entry: Entry) -> dict[str, np.ndarray]:
    """Inputs at the assembled states, from which pivot orders are chosen; velocities play no part in these."""
    assembly = machine.assembly
    parameters = assembly.loops.mechanism.parameters
    count = len(assembly.states)
    theta = np.array([parameters[leaf].value for leaf in machine.free]).reshape(1, -1)
    return {
        "theta": np.repeat(theta, count, axis=0),
        "position": np.ascontiguousarray(entry.at(assembly.states)),
        "start": assembly.states,
    }


def diagnosis_program(machine: Machine, entry: Entry) -> Program:
    """Program of what closed forms miss where a pose is out of reach (see `tauloop.functions.diagnosis.gaps`)."""
    state = _State(machine, entry, f"{entry.name}_diagnosis", 0)
    return state.builder.finish({"extremes": state.builder.extremes})


def kinematics_program(machine: Machine, entry: Entry, levels: int) -> tuple[Program, tuple[SolvedBlock, ...]]:
    """Program of all coordinates (and, by level, velocities and accelerations) from a given motion."""
    state = _State(machine, entry, f"{entry.name}_kinematics_{levels}", levels)
    outputs = {"q": state.configuration.q}
    if levels > 0:
        outputs["v"] = state.v
    if levels > 1:
        outputs["a"] = state.a
    return state.builder.finish(outputs), state.blocks


def embedding_program(machine: Machine, entry: Entry) -> Program:
    """Program of G (n_v, m): velocities of all coordinates per unit of the given velocities, stored by columns."""
    state = _State(machine, entry, f"{entry.name}_embedding", 1)
    G = _embedding(state, entry)
    return state.builder.finish({"q": state.configuration.q, "G": ca.vec(G)})


def _embedding(state: _State, entry: Entry) -> ca.SX:
    assembly, n_v = state.machine.assembly, state.shape.n_v
    dependent = [i for i in range(n_v) if i not in entry.v and i not in assembly.frozen]
    G = ca.SX(n_v, entry.velocity.size)
    G[list(entry.v), :] = ca.DM(entry.to_v)
    if dependent:
        G[dependent, :] = state.builder.solve(state.K[:, dependent], -(state.K @ G), "embedding")
    return G


def forward_dynamics_program(machine: Machine, entry: Entry) -> Program:
    """Program of the accelerations that actuator forces give, in the given velocities and in all coordinates.

    Inverse dynamics is affine in the accelerations: with a = G a_given + g and r(a) = G^T (M a + h),
    M_r a_given = G^T S u - r(g),  M_r = G^T M G, solved by L D L^T (design, "Forward dynamics from inverse").
    """
    state = _State(machine, entry, f"{entry.name}_forward_dynamics", 1)
    n_v, m = state.shape.n_v, entry.velocity.size
    force = state.builder.input("force", len(state.mechanism.actuators))
    G = _embedding(state, entry)
    bias = ca.SX(n_v, 1)
    state.close(entry, bias, _column(row.psi_acceleration for row in state.rows(state.v, bias)))
    pi = ca.vertcat(ca.SX(0, 1), *(ca.SX(state.values.scalar(p.expression)) for p in machine.parameters))
    a = ca.SX.sym("a", n_v)
    parts = (state.mechanism, state.shape, state.values)
    tau = machine.formulation.forces(*parts, state.motion(state.v, a), machine.parameters, pi)
    M = ca.sparsify(ca.jacobian(tau, a))
    tau_bias = machine.formulation.forces(*parts, state.motion(state.v, bias), machine.parameters, pi)
    S = transmission(*parts).T
    reduced = G.T @ (M @ G)
    given = state.builder.solve_symmetric(reduced, G.T @ (S @ force - tau_bias), "accelerations")
    return state.builder.finish(
        {
            "q": state.configuration.q,
            "v": state.v,
            "acceleration": given,
            "a": G @ given + bias,
            "mass_matrix": ca.vec(ca.tril2symm(ca.tril(reduced))) if m else ca.SX(0, 1),
        }
    )


def inverse_dynamics_program(machine: Machine, entry: Entry) -> Program:
    """Program of actuator forces u and multipliers lambda: S u + K^T lambda = M a + h on the moving coordinates."""
    state = _State(machine, entry, f"{entry.name}_inverse_dynamics", 2)
    pi = ca.vertcat(ca.SX(0, 1), *(ca.SX(state.values.scalar(p.expression)) for p in machine.parameters))
    tau = machine.formulation.forces(
        state.mechanism,
        state.shape,
        state.values,
        state.motion(state.v, state.a),
        machine.parameters,
        pi,
    )
    forces = state.builder.solve(_force_map(state), tau[_moving(machine.assembly)], "actuator forces")
    n_u = len(state.mechanism.actuators)
    return state.builder.finish(
        {
            "q": state.configuration.q,
            "v": state.v,
            "a": state.a,
            "tree_force": tau,
            "force": forces[:n_u],
            "closure_force": forces[n_u:] * _column(row.scale for row in state.rows(state.v, state.a)),
        }
    )


def regressor_program(machine: Machine, entry: Entry, output: str) -> Program:
    """Program of the regressor Y, stored by rows: forces = Y pi.

    Args:
        machine: the machine.
        entry: the given motion.
        output: "actuators" for actuator forces u (n_u rows), "joints" for the forces A^T u on the driven coordinates.
    """
    state = _State(machine, entry, f"{entry.name}_regressor_{output}", 2)
    pi = ca.SX.sym("pi", len(machine.parameters))
    tau = machine.formulation.forces(
        state.mechanism,
        state.shape,
        state.values,
        state.motion(state.v, state.a),
        machine.parameters,
        pi,
    )
    moving = _moving(machine.assembly)
    n_u = len(state.mechanism.actuators)
    Y_tree = ca.jacobian(tau[moving], pi)
    if not machine.assembly.rows and output == "joints":
        Y = Y_tree[[moving.index(i) for i in machine.assembly.driven], :]
        return state.builder.finish({"regressor": ca.vec(Y.T)})
    unit = ca.vertcat(ca.SX(ca.DM.eye(n_u)), ca.SX(len(moving) - n_u, n_u))
    projection = state.builder.solve(_force_map(state).T, unit, "actuator forces").T
    if output == "joints":
        S = transmission(state.mechanism, state.shape, state.values).T
        projection = S[list(machine.assembly.driven), :] @ projection
    return state.builder.finish({"regressor": ca.vec((projection @ Y_tree).T)})


def _moving(assembly: Assembly) -> list[int]:
    return [i for i in range(assembly.loops.topology.n_v) if i not in assembly.frozen]


def _force_map(state: _State) -> ca.SX:
    """Matrix [S K^T] (n, n) of the moving coordinates."""
    moving = _moving(state.machine.assembly)
    S = transmission(state.mechanism, state.shape, state.values).T
    return ca.horzcat(S[moving, :], state.K[:, moving].T)


def momentum_program(machine: Machine, entry: Entry) -> Program:
    """Program of the momenta p = dT/dv (n_v,): positions and velocities in, no accelerations."""
    state = _State(machine, entry, f"{entry.name}_momentum", 1)
    return state.builder.finish({"q": state.configuration.q, "momentum": _canonical(state).momentum})


def momentum_forces_program(machine: Machine, entry: Entry) -> Program:
    """Program of actuator forces and multipliers from the rate of the momenta: S u + K^T lambda = p' + dH/dq."""
    state = _State(machine, entry, f"{entry.name}_momentum_forces", 1)
    rate = state.builder.input("momentum_rate", state.shape.n_v)
    tau = rate + _canonical(state).remainder
    forces = state.builder.solve(_force_map(state), tau[_moving(machine.assembly)], "actuator forces")
    n_u = len(state.mechanism.actuators)
    return state.builder.finish(
        {
            "q": state.configuration.q,
            "v": state.v,
            "tree_force": tau,
            "force": forces[:n_u],
            "closure_force": forces[n_u:] * _column(row.scale for row in state.rows(state.v, state.a)),
        }
    )


def _canonical(state: _State) -> CanonicalTerms:
    return canonical_terms(state.mechanism, state.shape, state.values, state.motion(state.v, state.a), _entries(state))


def _entries(state: _State) -> Entries:
    parameters = state.machine.parameters
    return Entries(parameters, _column(ca.SX(state.values.scalar(p.expression)) for p in parameters))


def platform_matrices_program(
    machine: Machine, entry: Entry, by_momentum: bool, in_euler: bool
) -> tuple[Program, tuple[tuple[str, str, str], ...]]:
    """Program of the matrices of every inertia as a virtual platform (see `formulations.platform_matrices`).

    Args:
        machine: the machine.
        entry: the given motion; x' are its velocities.
        by_momentum: by generalized momentum, or by energies in Koditschek's form.
        in_euler: on the rates of x, y, z, psi, theta, phi of a free platform; else on the entry's velocities.

    Returns:
        The program of M, V (k m^2 numbers, matrix after matrix by columns), gravity (k m) and cos(theta) of the Euler
        angles (else one), and the k labels (name, kind, part).
    """
    state = _State(machine, entry, f"{entry.name}_platform_matrices", 1)
    G = _embedding(state, entry)
    found = virtual_platforms(
        state.mechanism,
        state.shape,
        state.values,
        state.motion(state.v, state.a),
        _entries(state),
        G,
        _embedding_rate(state, entry, G),
        by_momentum=by_momentum,
    )
    cos_theta = ca.SX(1)
    if in_euler:
        ((iq, iv),) = [pair for pair in state.shape.quaternions if pair[1] in entry.v]
        R = quaternion_rotation(state.configuration.q[iq : iq + 4])
        J_A, J_A_rate, cos_theta = euler_axes(R, state.v[iv : iv + 3])
        T, T_rate = ca.diagcat(ca.SX(ca.DM.eye(3)), J_A), ca.diagcat(ca.SX(3, 3), J_A_rate)
        found = tuple(platform.mapped(T, T_rate) for platform in found)
    program = state.builder.finish(
        {
            "q": state.configuration.q,
            "M": _column(ca.vec(ca.densify(platform.M)) for platform in found),
            "V": _column(ca.vec(ca.densify(platform.V)) for platform in found),
            "gravity": _column(ca.densify(platform.gravity) for platform in found),
            "cos_theta": cos_theta,
        }
    )
    return program, tuple((platform.name, platform.kind, platform.part) for platform in found)


def _embedding_rate(state: _State, entry: Entry, G: ca.SX) -> ca.SX:
    """Rate G' (n_v, m) along the motion, from K G' = -K' G."""
    symbols, assembly = StateSymbols(state.shape), state.machine.assembly
    rows = closure(state.mechanism, state.shape, state.values, symbols.motion(state.values))
    K = ca.jacobian(_column(rows[i].psi_rate for i in assembly.rows), symbols.v)
    (K_rate,) = symbols.at([symbols.rate_at_constant_velocity(K)], state.motion(state.v, state.a))
    dependent = [i for i in range(state.shape.n_v) if i not in entry.v and i not in assembly.frozen]
    G_rate = ca.SX(*G.shape)
    if dependent:
        G_rate[dependent, :] = state.builder.solve(state.K[:, dependent], -(K_rate @ G), "embedding")
    return G_rate
