"""Programs of one machine, built when first used: from a given motion to all coordinates, forces and regressors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, final

import casadi as ca
import numpy as np

from tauloop.assembly.assembly import Assembly
from tauloop.assembly.loops import ClosureRow, closure, nominal
from tauloop.assembly.ports import EntryPorts
from tauloop.equations.formulations.hamilton import CanonicalTerms, canonical_terms
from tauloop.equations.newton_euler import transmission
from tauloop.equations.tree import TreeMotion, tree_motion
from tauloop.equations.values import Entries, Values
from tauloop.errors import AssemblyError, Problem
from tauloop.mechanism.bodies import cables
from tauloop.programs.bounded_forces import bounded_forces_program
from tauloop.programs.builder import ProgramBuilder
from tauloop.programs.closed_forms import Branches
from tauloop.programs.machine import Machine
from tauloop.programs.position import Positions, solve_positions
from tauloop.programs.program import Program
from tauloop.programs.tool import PAYLOAD, WRENCH, tool_load

if TYPE_CHECKING:
    from tauloop.programs.catalogue import ProgramSpec


class MotionState:
    """A program that has reached the full state (q, v, a), and the expressions of that state."""

    def __init__(self, machine: Machine, ports: EntryPorts, name: str, levels: int) -> None:
        """Emit the kinematics: positions, then velocities and accelerations as far as `levels` (0 to 2) says."""
        self.machine = machine
        assembly = machine.assembly
        self.mechanism, self.shape = assembly.loops.mechanism, assembly.loops.topology
        self.builder = ProgramBuilder(name, _samples(machine, ports))
        self.theta = self.builder.input("theta", len(machine.free))
        self.values = nominal(self.mechanism, {leaf: self.theta[i] for i, leaf in enumerate(machine.free)})
        position = self.builder.input("position", ports.position.size)
        start = self.builder.input("start", self.shape.n_q)
        known = ports.coordinates(position)
        for i in _frozen_coordinates(assembly):
            known.setdefault(i, ca.SX(float(assembly.q[i])))
        self.positions = solve_positions(
            self.builder,
            self.mechanism,
            self.shape,
            self.values,
            assembly.rows,
            known,
            start,
            assembly.q,
            (self.theta, _nominal_theta(machine)),
            assembly.states,
        )
        self.configuration = self.positions.configuration
        self.v, self.a = ca.SX(self.shape.n_v, 1), ca.SX(self.shape.n_v, 1)
        self.K = ca.SX(0, self.shape.n_v)
        self.scale = ca.SX(0, 1)
        if levels:
            self._velocities(ports, levels)

    def branches(self) -> Branches:
        """On which roots of the closed forms poses lie."""
        theta = (self.theta, _nominal_theta(self.machine))
        return Branches.of(self.positions.slopes, self.positions.symbols, theta, self.machine.assembly.states)

    def motion(self, v: ca.SX, a: ca.SX) -> TreeMotion:
        """Motion of all bodies at the velocities and accelerations (n_v,)."""
        return tree_motion(self.shape, self.values, self.configuration, v, a)

    def rows(self, v: ca.SX, a: ca.SX) -> list[ClosureRow]:
        """The kept loop equations of a motion; a tree has none, and its sweep would be for nothing."""
        if not self.machine.assembly.rows:
            return []
        residuals = closure(self.mechanism, self.shape, self.values, self.motion(v, a))
        return [residuals[i] for i in self.machine.assembly.rows]

    def _velocities(self, ports: EntryPorts, levels: int) -> None:
        """Loops on velocity and acceleration level, with what is given put in at once: K x = -(rate of the rest)."""
        n_v = self.shape.n_v
        v, at_rest = ca.SX.sym("v", n_v), ca.SX(n_v, 1)
        rows = self.rows(v, at_rest)
        rates, self.scale = column(row.psi_rate for row in rows), column(row.scale for row in rows)
        self.K = ca.jacobian(rates, v)
        self._give(ports, self.v, self.builder.input("velocity", ports.velocity.size))
        # put in instead of built again: the motion of all bodies is half of the work on a program
        self.close(ports, self.v, ca.SX(ca.substitute([rates], [v], [ca.densify(self.v)])[0]))
        if levels > 1:
            self._give(ports, self.a, self.builder.input("acceleration", ports.velocity.size))
            self.close(ports, self.a, column(row.psi_acceleration for row in self.rows(self.v, self.a)))

    def _give(self, ports: EntryPorts, full: ca.SX, values: ca.SX) -> None:
        full[list(ports.v)] = ca.DM(ports.to_v) @ values

    def close(self, ports: EntryPorts, full: ca.SX, open_rates: ca.SX) -> None:
        """Fill in the dependent entries so that the rates of the loops vanish."""
        dependent = dependent_velocities(self.machine.assembly, ports)
        if dependent:
            full[dependent] = self.builder.solve(self.K[:, dependent], -open_rates, "loop velocities")


def column(expressions: Iterable[ca.SX]) -> ca.SX:
    """Expressions below each other; an empty column where there are none."""
    return ca.SX(ca.vertcat(ca.SX(0, 1), *expressions))


def _frozen_coordinates(assembly: Assembly) -> tuple[int, ...]:
    """Coordinates that belong to velocities which are zero in every motion."""
    shape, frozen = assembly.loops.topology, set(assembly.frozen)
    q = [shape.q_of_v[i] for i in assembly.frozen if shape.q_of_v[i] >= 0]
    for q0, v0 in shape.quaternions:
        if {v0, v0 + 1, v0 + 2} <= frozen:
            q += range(q0, q0 + 4)
    return tuple(q)


def _nominal_theta(machine: Machine) -> np.ndarray:
    parameters = machine.assembly.loops.mechanism.parameters
    return np.array([parameters[leaf].value for leaf in machine.free])


def _samples(machine: Machine, ports: EntryPorts) -> dict[str, np.ndarray]:
    """Inputs at the assembled states, from which pivot orders are chosen; velocities play no part in these."""
    assembly = machine.assembly
    count = len(assembly.states)
    return {
        "theta": np.repeat(_nominal_theta(machine)[None], count, axis=0),
        "position": np.ascontiguousarray(ports.at(assembly.states)),
        "start": assembly.states,
        "weight": np.ones((count, len(assembly.loops.mechanism.actuators))),
        "preload": np.zeros((count, len(cables(assembly.loops.mechanism)))),
        "wrench": np.zeros((count, WRENCH)),
        "payload": np.zeros((count, PAYLOAD)),
    }


def diagnosis_program(machine: Machine, ports: EntryPorts) -> Program:
    """Program of what closed forms miss where a pose is out of reach (see `tauloop.model.diagnosis.gaps`)."""
    state = MotionState(machine, ports, f"{ports.name}_diagnosis", 0)
    return state.builder.finish({"extremes": state.builder.extremes})


def kinematics_program(machine: Machine, ports: EntryPorts, levels: int) -> Program:
    """Program of all coordinates (and, by level, velocities and accelerations) from a given motion."""
    state = MotionState(machine, ports, f"{ports.name}_kinematics_{levels}", levels)
    outputs = {"q": state.configuration.q}
    if levels > 0:
        outputs["v"] = state.v
    if levels > 1:
        outputs["a"] = state.a
    return state.builder.finish(outputs)


def embedding_program(machine: Machine, ports: EntryPorts) -> Program:
    """Program of G (n_v, m): velocities of all coordinates per unit of the given velocities, stored by columns."""
    state = MotionState(machine, ports, f"{ports.name}_embedding", 1)
    G = embedding(state, ports)
    return state.builder.finish({"q": state.configuration.q, "G": ca.vec(G)})


def dependent_velocities(assembly: Assembly, ports: EntryPorts) -> list[int]:
    """Velocities that move but are not given."""
    return [i for i in range(assembly.loops.topology.n_v) if i not in ports.v and i not in assembly.frozen]


def embedding(state: MotionState, ports: EntryPorts) -> ca.SX:
    """Matrix G (n_v, m): velocities of all coordinates per unit of the given velocities."""
    dependent = dependent_velocities(state.machine.assembly, ports)
    G = ca.SX(state.shape.n_v, ports.velocity.size)
    G[list(ports.v), :] = ca.DM(ports.to_v)
    if dependent:
        G[dependent, :] = state.builder.solve(state.K[:, dependent], -(state.K @ G), "embedding")
    return G


def require_inertia(M: ca.SX, ports: EntryPorts) -> None:
    """Refuse a mass matrix (m, m) with zeros on its diagonal: no force determines those accelerations.

    Raises:
        AssemblyError: the velocities that move nothing with inertia.
    """
    diagonal = ca.diag(M)
    refuse_idle([name for i, name in enumerate(ports.velocity.columns) if diagonal[i].is_zero()])


def refuse_idle(idle: list[str]) -> None:
    """Refuse velocities, by name, that move nothing with inertia."""
    what = "moves nothing that has mass or inertia, so that forces do not determine its acceleration"
    remedy = "give a body that it moves a mass, or its motor an inertia; or make the joint a fixed one"
    if idle:
        raise AssemblyError([Problem(where=name, what=what, remedy=remedy) for name in idle])


def forward_dynamics_program(machine: Machine, ports: EntryPorts, *, loaded: bool = False) -> Program:
    """Program of the accelerations that actuator forces give, in the given velocities and in all coordinates.

    Inverse dynamics is affine in the accelerations: with a = G a_given + g and r(a) = G^T (M a + h),
    M_r a_given = G^T S u - r(g),  M_r = G^T M G, solved by L D L^T (design, "Forward dynamics from inverse"). Where it
    is `loaded`, payload and wrench at the tool are inputs.
    """
    state = MotionState(machine, ports, f"{ports.name}_forward_dynamics", 1)
    n_v, m = state.shape.n_v, ports.velocity.size
    force = state.builder.input("force", len(state.mechanism.actuators))
    G = embedding(state, ports)
    bias = ca.SX(n_v, 1)
    state.close(ports, bias, column(row.psi_acceleration for row in state.rows(state.v, bias)))
    pi = parameter_values(machine, state.values)
    a = ca.SX.sym("a", n_v)
    parts = (state.mechanism, state.shape, state.values)
    load = carried(state) if loaded else None

    def forces(a: ca.SX) -> ca.SX:
        motion = state.motion(state.v, a)
        tau = machine.formulation.forces(*parts, motion, machine.parameters, pi)
        return tau if load is None else tau + load(motion)

    M, tau_bias = ca.sparsify(ca.jacobian(forces(a), a)), forces(bias)
    S = transmission(*parts).T
    reduced = G.T @ (M @ G)
    require_inertia(reduced, ports)
    acceleration = state.builder.solve_symmetric(reduced, G.T @ (S @ force - tau_bias), "accelerations")
    return state.builder.finish(
        {
            "q": state.configuration.q,
            "v": state.v,
            "acceleration": acceleration,
            "a": G @ acceleration + bias,
            "mass_matrix": ca.vec(ca.tril2symm(ca.tril(reduced))) if m else ca.SX(0, 1),
        }
    )


def inverse_dynamics_program(machine: Machine, ports: EntryPorts, *, loaded: bool = False) -> Program:
    """Program of actuator forces u and multipliers lambda: S u + K^T lambda = M a + h on the moving coordinates.

    With redundant actuation u has the least sum of w u^2, w an input; `loaded`, payload and wrench at the tool are.

    Raises:
        AssemblyError: there are passive freedoms, whose motion no actuator can bring about.
    """
    state = MotionState(machine, ports, f"{ports.name}_inverse_dynamics", 2)
    pi = parameter_values(machine, state.values)
    tau = machine.formulation.forces(
        state.mechanism,
        state.shape,
        state.values,
        state.motion(state.v, state.a),
        machine.parameters,
        pi,
    )
    if loaded:
        tau = tau + carried(state)(state.motion(state.v, state.a))
    known = {"q": state.configuration.q, "v": state.v, "a": state.a, "tree_force": tau}
    return _with_actuator_forces(state, ports, tau, known)


def regressor_program(machine: Machine, ports: EntryPorts, output: str) -> Program:
    """Program of the regressor Y, stored by rows: forces = Y pi.

    Args:
        machine: the machine.
        ports: the given motion.
        output: "actuators" for actuator forces u (n_u rows), "joints" for the forces A^T u on the driven coordinates;
            "leading" and "leading_joints" for the forces of all actuators together on the motions of the leading
            actuators, or of the coordinates that these drive: m rows R^T u that no preload enters.
    """
    state = MotionState(machine, ports, f"{ports.name}_regressor_{output}", 2)
    pi = ca.SX.sym("pi", len(machine.parameters))
    tau = machine.formulation.forces(
        state.mechanism,
        state.shape,
        state.values,
        state.motion(state.v, state.a),
        machine.parameters,
        pi,
    )
    require_actuated(machine.assembly)
    moving = moving_velocities(machine.assembly)
    n_u = len(state.mechanism.actuators)
    Y_tree = ca.jacobian(tau[moving], pi)
    if not machine.assembly.rows and output == "joints":
        Y = Y_tree[[moving.index(i) for i in machine.assembly.driven], :]
        return state.builder.finish({"regressor": ca.vec(Y.T)})
    if output in ("leading", "leading_joints"):
        Y = _leading_map(state, ports, output)[:, moving] @ Y_tree
        return state.builder.finish({"regressor": ca.vec(Y.T)})
    if machine.assembly.is_redundant:
        R, weight = shared_map(state, ports), ca.SX.ones(n_u)
        projection = shared_forces(state.builder, R, embedding(state, ports)[moving, :].T, weight)
    else:
        unit = ca.vertcat(ca.SX(ca.DM.eye(n_u)), ca.SX(len(moving) - n_u, n_u))
        projection = state.builder.solve(_force_map(state).T, unit, "actuator forces").T
    if output == "joints":
        S = transmission(state.mechanism, state.shape, state.values).T
        projection = S[list(machine.assembly.driven), :] @ projection
    return state.builder.finish({"regressor": ca.vec((projection @ Y_tree).T)})


def _leading_map(state: MotionState, ports: EntryPorts, output: str) -> ca.SX:
    """Matrix (m, n_v) from forces on all coordinates to those on the leading motions w: G_w^T with v = G_w w.

    With the given velocities x, v = G x and w = L x, so that G_w = G L^-1. By virtual work the actuators' forces u have
    the resultants R^T u on w, with R = A G_w the actuators' velocities per unit of w; those of preload are zero.
    """
    assembly = state.machine.assembly
    G = embedding(state, ports)
    leading = transmission(state.mechanism, state.shape, state.values)[list(assembly.leading), :]
    L = leading @ G if output == "leading" else G[list(assembly.leading_driven), :]
    if L.is_constant():  # where the leading motions themselves are given
        return ca.SX(ca.inv(ca.DM(L)).T) @ G.T
    return state.builder.solve(L.T, G.T, "leading motions")


def moving_velocities(assembly: Assembly) -> list[int]:
    """Velocities that are not zero in every motion."""
    return [i for i in range(assembly.loops.topology.n_v) if i not in assembly.frozen]


def _with_actuator_forces(state: MotionState, ports: EntryPorts, tau: ca.SX, known: dict[str, ca.SX]) -> Program:
    """Close a program with actuator forces u (n_u,) and multipliers (c,) that give the tree forces tau = M a + h."""
    assembly = state.machine.assembly
    require_actuated(assembly)
    if cables(state.mechanism):
        G = embedding(state, ports)
        R = transmission(state.mechanism, state.shape, state.values) @ G
        return bounded_forces_program(state, ports, (tau, R, G.T @ tau), partial(multipliers, state, ports), known)
    if assembly.is_redundant:
        weight = state.builder.input("weight", len(state.mechanism.actuators))
        force = shared_forces(state.builder, shared_map(state, ports), embedding(state, ports).T @ tau, weight)
        closure_force = closure_forces(state, ports, tau, force)
    else:
        forces = state.builder.solve(_force_map(state), tau[moving_velocities(assembly)], "actuator forces")
        n_u = len(state.mechanism.actuators)
        force, closure_force = forces[:n_u, :], forces[n_u:, :] * state.scale
    return state.builder.finish({**known, "force": force, "closure_force": closure_force})


def require_actuated(assembly: Assembly) -> None:
    """Raise where actuators alone cannot bring about a given motion.

    Raises:
        AssemblyError: there are passive freedoms.
    """
    if assembly.passive:
        raise AssemblyError.of(
            "actuators",
            (
                f"no actuator moves {len(assembly.passive)} of the {assembly.mobility} freedoms of the machine, "
                f"so their motion cannot be given; passive: {', '.join(assembly.passive_names)}"
            ),
            (
                "give the actuators' motion to hybrid inverse dynamics (`model.hybrid`, --entry actuators), "
                "which gives the passive accelerations; or lock the passive freedoms"
            ),
            file=assembly.loops.mechanism.file,
        )


def shared_map(state: MotionState, ports: EntryPorts) -> ca.SX:
    """Matrix R (n_u, m) of actuator velocities per unit of the given velocities."""
    return transmission(state.mechanism, state.shape, state.values) @ embedding(state, ports)


def shared_forces(builder: ProgramBuilder, R: ca.SX, generalized: ca.SX, weight: ca.SX) -> ca.SX:
    """Actuator forces with R^T u = t and the least sum of w u^2: u = W^-1 R (R^T W^-1 R)^-1 t.

    Args:
        builder: receives the solution.
        R: actuator velocities per unit of the given ones (n_u, m), of rank m.
        generalized: forces t (m, k) on the given velocities.
        weight: w (n_u,), positive.
    """
    weighted = R / ca.repmat(weight, 1, R.size2())
    return weighted @ builder.solve_symmetric(R.T @ weighted, generalized, "actuator forces")


def closure_forces(state: MotionState, ports: EntryPorts, tau: ca.SX, force: ca.SX) -> ca.SX:
    """Multipliers (c,) of the kept loop equations beside known actuator forces: K^T lambda = M a + h - S u."""
    S = transmission(state.mechanism, state.shape, state.values).T
    return multipliers(state, ports, tau - S @ force)


def multipliers(state: MotionState, ports: EntryPorts, loads: ca.SX) -> ca.SX:
    """Multipliers (c, k) of the kept loop equations that carry loads on all velocities (n_v, k): K^T lambda = load."""
    dependent = dependent_velocities(state.machine.assembly, ports)
    if not dependent:
        return ca.SX(0, loads.size2())
    solution = state.builder.solve(state.K[:, dependent].T, loads[dependent, :], "multipliers")
    return solution * ca.repmat(state.scale, 1, loads.size2())


def _force_map(state: MotionState) -> ca.SX:
    """Matrix [S K^T] (n, n) of the moving coordinates."""
    moving = moving_velocities(state.machine.assembly)
    S = transmission(state.mechanism, state.shape, state.values).T
    return ca.horzcat(S[moving, :], state.K[:, moving].T)


def momentum_program(machine: Machine, ports: EntryPorts) -> Program:
    """Program of the momenta p = dT/dv (n_v,): positions and velocities in, no accelerations."""
    state = MotionState(machine, ports, f"{ports.name}_momentum", 1)
    return state.builder.finish({"q": state.configuration.q, "momentum": _canonical(state).momentum})


def momentum_forces_program(machine: Machine, ports: EntryPorts) -> Program:
    """Program of actuator forces and multipliers from the rate of the momenta: S u + K^T lambda = p' + dH/dq.

    The momenta themselves are an output too: a sampled motion needs those of the samples before and behind.
    """
    state = MotionState(machine, ports, f"{ports.name}_momentum_forces", 1)
    rate = state.builder.input("momentum_rate", state.shape.n_v)
    terms = _canonical(state)
    tau = rate + terms.remainder
    known = {"q": state.configuration.q, "v": state.v, "tree_force": tau, "momentum": terms.momentum}
    return _with_actuator_forces(state, ports, tau, known)


def _canonical(state: MotionState) -> CanonicalTerms:
    entries = parameter_entries(state.machine, state.values)
    return canonical_terms(state.mechanism, state.shape, state.values, state.motion(state.v, state.a), entries)


def parameter_values(machine: Machine, values: Values) -> ca.SX:
    """Values pi (n_pi,) of the dynamic parameters."""
    return column(ca.SX(values.scalar(p.expression)) for p in machine.parameters)


def parameter_entries(machine: Machine, values: Values) -> Entries:
    """The dynamic parameters by element and role."""
    return Entries(machine.parameters, parameter_values(machine, values))


def carried(state: MotionState) -> Callable[[TreeMotion], ca.SX]:
    """What a payload and a wrench at the tool, inputs of a program, add to the forces of motions (see `tool_load`)."""
    parts = (state.mechanism, state.shape, state.values)
    wrench, payload = state.builder.input("wrench", WRENCH), state.builder.input("payload", PAYLOAD)
    return lambda motion: tool_load(motion, *parts, wrench, payload)


@final
class Catalogue:
    """The programs of one entry of a machine, built when first used."""

    def __init__(self, machine: Machine, ports: EntryPorts) -> None:
        """Keep what programs are made from."""
        self.machine = machine
        self.ports = ports
        self._programs: dict[ProgramSpec, Program] = {}

    def at(self, assembly: Assembly) -> Catalogue:
        """The same programs, of the machine with its reference at another pose."""
        return Catalogue(replace(self.machine, assembly=assembly), self.ports)

    def program(self, spec: ProgramSpec) -> Program:
        """A program of this machine."""
        if spec not in self._programs:
            self._programs[spec] = spec.build(self.machine, self.ports)
        return self._programs[spec]

    @cached_property
    def positions(self) -> Positions:
        """How positions are found."""
        return self._state.positions

    @cached_property
    def branches(self) -> Branches:
        """On which roots of the closed forms poses lie."""
        return self._state.branches()

    @cached_property
    def _state(self) -> MotionState:
        return MotionState(self.machine, self.ports, f"{self.ports.name}_positions", 0)
