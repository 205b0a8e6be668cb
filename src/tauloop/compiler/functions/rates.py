"""Right-hand sides of simulations: time derivatives of the state, applied forces, and powers.

A rate program computes the time derivative of a state from the state and the applied forces. The
last two entries are the power of actuators and tool wrench, and the power lost in friction. Their
integrals are used to check the energy balance.
"""

from __future__ import annotations

import casadi as ca

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.expressions import Expressions, MotionState, require_inertia
from tauloop.compiler.functions.tool import WRENCH, tool_jacobian
from tauloop.compiler.program import Program
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.formulations import NEWTON_EULER, Formulation
from tauloop.equations.newton_euler import friction_forces
from tauloop.equations.ports import EntryPorts
from tauloop.equations.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class RateProgram(ReprMixin):
    """Right-hand side of a simulation: a program of the state's time derivative.

    Attributes:
        program: program that computes `rate` (the time derivative), and all coordinates `all_q` and
            velocities `all_v`, from the components of the state, `force` and, if requested,
            `wrench`.
        state: names and sizes of the state's components, in order; work and loss (2) follow.
        quaternions: start indices of unit quaternions in the state.
    """

    program: Program
    state: tuple[tuple[str, int], ...]
    quaternions: tuple[int, ...]


def independent_rate_program(
    assembly: Assembly,
    ports: EntryPorts,
    formulation: Formulation = NEWTON_EULER,
    *,
    with_wrench: bool = False,
    free: tuple[str, ...] = (),
) -> RateProgram:
    """Return the rate program of the independent coordinates.

    Their accelerations a solve M_r a = G^T (S u + J^T w - M gamma - h) with M_r = G^T M G. M is the
    mass matrix and h the bias of all coordinates. The embedding G maps independent to all
    velocities, v = G v_ind, and gamma are the accelerations of all coordinates at a = 0. S maps the
    actuator forces u, and the transposed Jacobian J^T of the tool maps the wrench w, to generalized
    forces. See `forward_dynamics_program`.

    Args:
        assembly: the machine.
        ports: ports of the platform's motion.
        formulation: formulation of the forces.
        with_wrench: whether a wrench at the tool is an input.
        free: names of the independent parameters that are inputs; the others are constants.
    """
    state = MotionState(assembly, ports, "rate", 1, formulation, free)
    G, bias = state.embedding, state.drift()
    reduced = G.T @ (state.mass_matrix(state.v) @ G)
    applied = Acting(state, with_wrench=with_wrench)
    right_side = G.T @ (applied.generalized - state.forces(state.v, bias))
    require_inertia(reduced, ports)
    acceleration = state.builder.solve_symmetric(reduced, right_side, "accelerations")
    q_rate = coordinate_rate(state.topology, state.configuration.q, state.v)
    program = state.builder.finish(
        {
            "rate": ca.vertcat(q_rate[list(ports.q)], acceleration, applied.powers(state.v)),
            "all_q": state.configuration.q,
            "all_v": state.v,
        }
    )
    return RateProgram(
        program=program,
        state=(("position", ports.position.size), ("velocity", ports.velocity.size)),
        quaternions=ports.whole_quaternions(state.topology),
    )


def coordinate_rate(topology: Topology, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return the time derivatives q' = N(q) v (n_q,); N is `equations.tree.coordinate_rates`."""
    rate = ca.SX(topology.n_q, 1)
    for iv, iq in enumerate(topology.q_of_v):
        if iq >= 0:
            rate[iq] = v[iv]
    for iq, iv in topology.quaternions:
        real, vector, omega = q[iq], q[iq + 1 : iq + 4], v[iv : iv + 3]
        rate[iq] = -ca.dot(vector, omega) / 2
        rate[iq + 1 : iq + 4] = (real * omega + ca.cross(omega, vector)) / 2
    return rate


def actuator_motion(assembly: Assembly, q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return positions and speeds (n_u,) of the actuators at coordinates q and velocities v."""
    topology, transmission = assembly.topology, ca.DM(assembly.loops.transmission)
    index_pairs = [(i, iq) for i, iq in enumerate(topology.q_of_v) if iq >= 0]
    position_transmission = ca.sparsify(transmission[:, [i for i, _ in index_pairs]])
    position = position_transmission @ q[[iq for _, iq in index_pairs]]
    offset = assembly.loops.actuator_offsets
    if offset.any():
        position += ca.DM(offset)
    return position, ca.sparsify(transmission) @ v


class Acting:
    """Actuator forces and the wrench at the tool as inputs of a program.

    Attributes:
        generalized: forces S u + J^T w on all velocities (n_v,).
    """

    def __init__(self, state: Expressions, *, with_wrench: bool) -> None:
        """Declare the inputs `force` and, if requested, `wrench`."""
        self._state = state
        force = state.builder.input("force", len(state.mechanism.actuators))
        self.generalized: ca.SX = state.transmission.T @ force
        if with_wrench:
            wrench = state.builder.input("wrench", WRENCH)
            self.generalized = (
                self.generalized + tool_jacobian(*state.parts, state.configuration).T @ wrench
            )

    def powers(self, v: ca.SX) -> ca.SX:
        """Return the powers (2,), W, of the applied forces and of friction at velocities (n_v,)."""
        friction = friction_forces(*self._state.parts, v, self._state.entries)
        return ca.vertcat(ca.dot(self.generalized, v), ca.dot(friction, v))
