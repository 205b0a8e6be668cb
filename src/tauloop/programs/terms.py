"""Terms of the equations of motion in the given velocities, motion of the tool, and energies, as programs.

With v = G v_g and a = G a_g + (what v brings about) the balance S u + K^T lambda + J^T w = M a + h becomes, by
virtual work,

    R^T u + J_g^T w = M_g a_g + c + g + f,    M_g = G^T M G,  R = A G,  J_g = J G,

c the Coriolis and centripetal forces, g those of gravity, f those of friction and springs.
Source: Khalil and Ibrahim 2004, for the projection.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca

from tauloop.assembly.entry_ports import EntryPorts
from tauloop.equations.energy import kinetic_energy, potential_energy
from tauloop.mechanism.expression import Constant
from tauloop.programs.machine import Machine
from tauloop.programs.motion import (
    MotionState,
    column,
    embedding,
    parameter_entries,
    parameter_values,
    require_inertia,
)
from tauloop.programs.program import Program
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
