"""Programs of states beside those of forces: terms of the equations of motion, the tool, energies, virtual platforms.

With v = G v_g and a = G a_g + (what v brings about) the balance S u + K^T lambda + J^T w = M a + h becomes, by
virtual work,

    R^T u + J_g^T w = M_g a_g + c + g + f,    M_g = G^T M G,  R = A G,  J_g = J G,

c the Coriolis and centripetal forces, g those of gravity, f those of friction and springs. Tensions before they are
shared out are for optimisers that choose forces together with a motion.
Source: Khalil and Ibrahim 2004, for the projection.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca

from tauloop.assembly.loops import closure
from tauloop.assembly.ports import EntryPorts
from tauloop.equations.energy import kinetic_energy, potential_energy
from tauloop.equations.formulations.platform_matrices import euler_axes, virtual_platforms
from tauloop.equations.formulations.state_symbols import StateSymbols
from tauloop.equations.newton_euler import transmission
from tauloop.equations.tree import quaternion_rotation
from tauloop.mechanism.expression import Constant
from tauloop.programs.machine import Machine
from tauloop.programs.motion import (
    MotionState,
    column,
    dependent_velocities,
    embedding,
    parameter_entries,
    parameter_values,
    require_actuated,
    require_inertia,
)
from tauloop.programs.program import Program
from tauloop.programs.tensions import tensions
from tauloop.programs.tool import tool_jacobian, tool_pose, tool_twist


def terms_program(machine: Machine, ports: EntryPorts) -> Program:
    """Program of M_g (m m, by columns), c, g and f (m,) from positions and velocities."""
    state = MotionState(machine, ports, f"{ports.name}_terms", 1)
    n_v, parameters = state.shape.n_v, machine.parameters
    G = embedding(state, ports)
    drift, still = ca.SX(n_v, 1), ca.SX(n_v, 1)
    state.close(ports, drift, column(row.psi_acceleration for row in state.rows(state.v, drift)))
    pi = parameter_values(machine, state.values)
    inertial = column(pi[i] if p.group in ("inertia", "drive") else ca.SX(0) for i, p in enumerate(parameters))
    floating = replace(state.mechanism, gravity=(Constant(0.0),) * 3)

    def forces(v: ca.SX, a: ca.SX, values: ca.SX, weightless: bool) -> ca.SX:
        mechanism = floating if weightless else state.mechanism
        return machine.formulation.forces(mechanism, state.shape, state.values, state.motion(v, a), parameters, values)

    a = ca.SX.sym("a", n_v)
    M = G.T @ (ca.sparsify(ca.jacobian(forces(still, a, inertial, True), a)) @ G)
    require_inertia(M, ports)
    coriolis = G.T @ forces(state.v, drift, inertial, True)
    return state.builder.finish(
        {
            "q": state.configuration.q,
            "mass_matrix": ca.vec(ca.densify(ca.tril2symm(ca.tril(M)))),
            "coriolis": coriolis,
            "gravity": G.T @ forces(still, still, inertial, False),
            "losses": G.T @ forces(state.v, drift, pi, True) - coriolis,
        }
    )


def tool_program(machine: Machine, ports: EntryPorts) -> Program:
    """Program of the tool's place (3,), rotation (9, by columns), twist (6,) and Jacobian J_g (6 m, by columns)."""
    state = MotionState(machine, ports, f"{ports.name}_tool", 1)
    motion = state.motion(state.v, ca.SX(state.shape.n_v, 1))
    place, rotation = tool_pose(motion, state.mechanism, state.values)
    J = tool_jacobian(state.mechanism, state.shape, state.values, state.configuration)
    return state.builder.finish(
        {
            "q": state.configuration.q,
            "place": place,
            "rotation": ca.vec(rotation),
            "twist": tool_twist(motion, state.mechanism, state.values),
            "jacobian": ca.vec(ca.densify(J @ embedding(state, ports))),
        }
    )


def energies_program(machine: Machine, ports: EntryPorts) -> Program:
    """Program of the kinetic and the potential energy, J.

    Raises:
        DescriptionError: a rod has no kinetic energy.
    """
    state = MotionState(machine, ports, f"{ports.name}_energies", 1)
    motion = state.motion(state.v, ca.SX(state.shape.n_v, 1))
    parts = (state.mechanism, state.shape, state.values, motion, parameter_entries(machine, state.values))
    return state.builder.finish(
        {"q": state.configuration.q, "kinetic": kinetic_energy(*parts), "potential": potential_energy(*parts)}
    )


def tensions_program(machine: Machine, ports: EntryPorts) -> Program:
    """Program of T_0 (k,), C (k n_u,), R (n_u m,) by columns, and t (m,): T = T_0 - C u, R^T u = t (see `tensions`).

    Raises:
        AssemblyError: there are passive freedoms, or the tension of a cable is not determined.
    """
    require_actuated(machine.assembly)
    state = MotionState(machine, ports, f"{ports.name}_tensions", 2)
    parts = (state.mechanism, state.shape, state.values)
    pi = parameter_values(machine, state.values)
    tau = machine.formulation.forces(*parts, state.motion(state.v, state.a), machine.parameters, pi)
    G, S = embedding(state, ports), transmission(*parts).T
    terms = tensions(state.builder, machine.assembly, ports, (tau, S, state.K, state.scale))
    return state.builder.finish(
        {
            "unforced": terms.unforced,
            "pulls": ca.vec(ca.densify(terms.pulls)),
            "map": ca.vec(ca.densify(S.T @ G)),
            "needed": G.T @ tau,
        }
    )


def platform_matrices_program(
    machine: Machine, ports: EntryPorts, by_momentum: bool, in_euler: bool
) -> tuple[Program, tuple[tuple[str, str, str], ...]]:
    """Program of the matrices of every inertia as a virtual platform (see `formulations.platform_matrices`).

    Args:
        machine: the machine.
        ports: the given motion; x' are its velocities.
        by_momentum: by generalized momentum, or by energies in Koditschek's form.
        in_euler: on the rates of x, y, z, psi, theta, phi of a free platform; else on the given velocities.

    Returns:
        The program of M, V (k m^2 numbers, matrix after matrix by columns), gravity (k m) and cos(theta) of the Euler
        angles (else one), and the k labels (name, kind, part).
    """
    state = MotionState(machine, ports, f"{ports.name}_platform_matrices", 1)
    G = embedding(state, ports)
    platforms = virtual_platforms(
        state.mechanism,
        state.shape,
        state.values,
        state.motion(state.v, state.a),
        parameter_entries(state.machine, state.values),
        G,
        _embedding_rate(state, ports, G),
        by_momentum=by_momentum,
    )
    cos_theta = ca.SX(1)
    if in_euler:
        ((iq, iv),) = [pair for pair in state.shape.quaternions if pair[1] in ports.v]
        R = quaternion_rotation(state.configuration.q[iq : iq + 4])
        J_A, J_A_rate, cos_theta = euler_axes(R, state.v[iv : iv + 3])
        T, T_rate = ca.diagcat(ca.SX(ca.DM.eye(3)), J_A), ca.diagcat(ca.SX(3, 3), J_A_rate)
        platforms = tuple(platform.mapped(T, T_rate) for platform in platforms)
    program = state.builder.finish(
        {
            "q": state.configuration.q,
            "M": column(ca.vec(ca.densify(platform.M)) for platform in platforms),
            "V": column(ca.vec(ca.densify(platform.V)) for platform in platforms),
            "gravity": column(ca.densify(platform.gravity) for platform in platforms),
            "cos_theta": cos_theta,
        }
    )
    return program, tuple((platform.name, platform.kind, platform.part) for platform in platforms)


def _embedding_rate(state: MotionState, ports: EntryPorts, G: ca.SX) -> ca.SX:
    """Rate G' (n_v, m) along the motion, from K G' = -K' G."""
    symbols, assembly = StateSymbols(state.shape), state.machine.assembly
    rows = closure(state.mechanism, state.shape, state.values, symbols.motion(state.values))
    K = ca.jacobian(column(rows[i].psi_rate for i in assembly.rows), symbols.v)
    (K_rate,) = symbols.at([symbols.rate_at_constant_velocity(K)], state.motion(state.v, state.a))
    dependent = dependent_velocities(assembly, ports)
    G_rate = ca.SX(*G.shape)
    if dependent:
        G_rate[dependent, :] = state.builder.solve(state.K[:, dependent], -(K_rate @ G), "embedding")
    return G_rate
