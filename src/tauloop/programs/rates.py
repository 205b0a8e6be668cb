"""What every right-hand side of a simulation has in common: rates of coordinates, what acts on them, and powers.

A rate program takes a state and what acts on the machine, and gives the state's rate. Its last two entries are the
rates of the work done by actuators and at the tool, and of what friction takes: they balance the energy.
"""

from __future__ import annotations

import casadi as ca

from tauloop.assembly.loops import nominal
from tauloop.assembly.ports import EntryPorts
from tauloop.equations.energy import kinetic_energy, potential_energy
from tauloop.equations.newton_euler import friction_forces, transmission
from tauloop.equations.topology import Topology
from tauloop.equations.tree import Configuration, tree_motion
from tauloop.equations.values import Values
from tauloop.programs.builder import ProgramBuilder
from tauloop.programs.machine import Machine
from tauloop.programs.motion import MotionState, column, embedding, parameter_entries, parameter_values, require_inertia
from tauloop.programs.program import Program
from tauloop.programs.tool import WRENCH, tool_jacobian
from tauloop.records import dataclass
from tauloop.shown import Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class RateProgram(Shown):
    """A right-hand side.

    Attributes:
        program: steps from the state's parts, `force` and, if asked for, `wrench` to `rate`, `all_q` and `all_v`.
        state: names and sizes of the state's parts, in order; work and loss (2) come behind them.
        quaternions: where in the state unit quaternions begin.
    """

    program: Program
    state: tuple[tuple[str, int], ...]
    quaternions: tuple[int, ...]


def independent_rate_program(machine: Machine, ports: EntryPorts, *, with_wrench: bool = False) -> RateProgram:
    """Rates of the independent coordinates: M_r a = G^T (S u + J^T w) - r(g), as `forward_dynamics_program`.

    Args:
        machine: the machine.
        ports: its independent motion.
        with_wrench: whether a wrench at the tool is an input.
    """
    state = MotionState(machine, ports, f"{ports.name}_rate", 1)
    n_v = state.shape.n_v
    G = embedding(state, ports)
    bias = ca.SX(n_v, 1)
    state.close(ports, bias, column(row.psi_acceleration for row in state.rows(state.v, bias)))
    pi = parameter_values(machine, state.values)
    a = ca.SX.sym("a", n_v)
    parts = (state.mechanism, state.shape, state.values)
    tau = machine.formulation.forces(*parts, state.motion(state.v, a), machine.parameters, pi)
    M = ca.sparsify(ca.jacobian(tau, a))
    tau_bias = machine.formulation.forces(*parts, state.motion(state.v, bias), machine.parameters, pi)
    acting = Acting(state.builder, machine, state.values, state.configuration, with_wrench=with_wrench)
    rest = G.T @ (acting.generalized - tau_bias)
    reduced = G.T @ (M @ G)
    require_inertia(reduced, ports)
    acceleration = state.builder.solve_symmetric(reduced, rest, "accelerations")
    q_rate = coordinate_rate(state.shape, state.configuration.q, state.v)
    program = state.builder.finish(
        {
            "rate": ca.vertcat(q_rate[list(ports.q)], acceleration, acting.powers(state.v)),
            "all_q": state.configuration.q,
            "all_v": state.v,
        }
    )
    whole = [ports.q.index(iq) for iq, _ in state.shape.quaternions if set(range(iq, iq + 4)) <= set(ports.q)]
    return RateProgram(
        program=program,
        state=(("position", ports.position.size), ("velocity", ports.velocity.size)),
        quaternions=tuple(whole),
    )


def energy_program(machine: Machine) -> Program:
    """Program of the kinetic and the potential energy, J, of a state (q, v).

    Raises:
        DescriptionError: a rod has no kinetic energy.
    """
    shape, mechanism = machine.assembly.loops.topology, machine.assembly.loops.mechanism
    builder = ProgramBuilder("energy", {})
    values = nominal(mechanism)
    q, v = builder.input("q", shape.n_q), builder.input("v", shape.n_v)
    motion = tree_motion(shape, values, Configuration(q, {}), v, ca.SX(shape.n_v, 1))
    entries = parameter_entries(machine, values)
    return builder.finish(
        {
            "kinetic": kinetic_energy(mechanism, shape, values, motion, entries),
            "potential": potential_energy(mechanism, shape, values, motion, entries),
        }
    )


def coordinate_rate(shape: Topology, q: ca.SX, v: ca.SX) -> ca.SX:
    """Rates q' = N(q) v (n_q,); a quaternion turns with the angular velocity in its reference frame."""
    rate = ca.SX(shape.n_q, 1)
    for iv, iq in enumerate(shape.q_of_v):
        if iq >= 0:
            rate[iq] = v[iv]
    for iq, iv in shape.quaternions:
        real, vector, turning = q[iq], q[iq + 1 : iq + 4], v[iv : iv + 3]
        rate[iq] = -ca.dot(vector, turning) / 2
        rate[iq + 1 : iq + 4] = (real * turning + ca.cross(turning, vector)) / 2
    return rate


class Acting:
    """Actuator forces and the wrench at the tool, as inputs of a program.

    Attributes:
        generalized: forces S u + J^T w on all velocities (n_v,).
    """

    def __init__(
        self,
        builder: ProgramBuilder,
        machine: Machine,
        values: Values,
        configuration: Configuration,
        *,
        with_wrench: bool,
    ) -> None:
        """Declare the inputs `force` and, with it, `wrench`."""
        self._machine, self._values = machine, values
        self._shape, self._mechanism = machine.assembly.loops.topology, machine.assembly.loops.mechanism
        S = transmission(self._mechanism, self._shape, values).T
        self.generalized: ca.SX = S @ builder.input("force", len(self._mechanism.actuators))
        if with_wrench:
            wrench = builder.input("wrench", WRENCH)
            J = tool_jacobian(self._mechanism, self._shape, values, configuration)
            self.generalized = self.generalized + J.T @ wrench

    def powers(self, v: ca.SX) -> ca.SX:
        """Power of what acts, and power lost in friction (2,), W, at velocities (n_v,)."""
        entries = parameter_entries(self._machine, self._values)
        friction = friction_forces(self._mechanism, self._shape, self._values, v, entries)
        return ca.vertcat(ca.dot(self.generalized, v), ca.dot(friction, v))
