"""Programs of a state without given forces: terms of the equations of motion, tool, energies.

With v = G v_given and a = G a_given + (accelerations due to v), the balance
S u + K^T lambda + J^T w = M a + h becomes, by virtual work,

    R^T u + J_r^T w = M_r a_given + c + g + f,    M_r = G^T M G,  R = A G,  J_r = J G.

u are the actuator forces, w is the wrench at the tool, J is the tool's Jacobian for all velocities,
c are the Coriolis and centripetal forces, g are gravity forces, and f are friction and spring
forces. The program of tensions as functions of
forces serves optimizers that choose forces together with a motion.

Source: Khalil and Ibrahim 2004, for the projection.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca

from tauloop.compiler.expressions import MotionState, column, require_inertia
from tauloop.compiler.functions.motion import require_actuated
from tauloop.compiler.functions.tensions import tensions
from tauloop.compiler.functions.tool import tool_jacobian, tool_pose, tool_twist
from tauloop.compiler.program import Program
from tauloop.equations.assembly.loops import closure
from tauloop.equations.energy import kinetic_energy, potential_energy
from tauloop.equations.formulations.platform_matrices import (
    VirtualPlatform,
    euler_axes,
    virtual_platforms,
)
from tauloop.equations.formulations.state_symbols import StateSymbols
from tauloop.equations.tree import TreeMotion, quaternion_rotation
from tauloop.equations.values import Entries
from tauloop.mechanism.expression import Constant


def terms_program(state: MotionState) -> Program:
    """Return the program of M_r (m m, by columns), c, g and f (m,) from a state."""
    G, drift, at_rest = state.embedding, state.drift(), state.at_rest
    inertial = column(
        state.pi[i] if p.group in ("inertia", "drive") else ca.SX(0)
        for i, p in enumerate(state.parameters)
    )
    floating = replace(state.mechanism, gravity=(Constant(0.0),) * 3)

    def forces(v: ca.SX, a: ca.SX, pi: ca.SX, weightless: bool) -> ca.SX:
        mechanism = floating if weightless else state.mechanism
        return state.formulation.forces(
            mechanism, state.motion(v, a), Entries(state.parameters, pi)
        )

    a = ca.SX.sym("a", state.topology.n_v)
    M = G.T @ (ca.sparsify(ca.jacobian(forces(at_rest, a, inertial, True), a)) @ G)
    require_inertia(M, state.ports)
    coriolis = G.T @ forces(state.v, drift, inertial, True)
    return state.builder.finish(
        {
            "q": state.configuration.q,
            "mass_matrix": ca.vec(ca.densify(ca.tril2symm(ca.tril(M)))),
            "coriolis": coriolis,
            "gravity": G.T @ forces(at_rest, at_rest, inertial, False),
            "losses": G.T @ forces(state.v, drift, state.pi, True) - coriolis,
        }
    )


def tool_program(state: MotionState) -> Program:
    """Return the program of the tool's position (3,), rotation (9), twist (6,) and J_g (6 m)."""
    motion = state.motion(state.v)
    place, rotation = tool_pose(motion, state.mechanism)
    J = tool_jacobian(*state.parts, state.configuration)
    return state.builder.finish(
        {
            "q": state.configuration.q,
            "place": place,
            "rotation": ca.vec(rotation),
            "twist": tool_twist(motion, state.mechanism),
            "jacobian": ca.vec(ca.densify(J @ state.embedding)),
        }
    )


def energies_program(state: MotionState) -> Program:
    """Return the program of the kinetic and the potential energy, J.

    Raises:
        DescriptionError: the kinetic energy of a rod is not a function of its velocity.
    """
    parts = (state.mechanism, state.motion(state.v), state.entries)
    return state.builder.finish(
        {
            "q": state.configuration.q,
            "kinetic": kinetic_energy(*parts),
            "potential": potential_energy(*parts),
        }
    )


def tensions_program(state: MotionState) -> Program:
    """Return the program of T_0 (k,), C (k n_u,), R (n_u m,) by columns, and t (m,).

    T = T_0 - C u and R^T u = t (see `tensions`).

    Raises:
        AssemblyError: there are passive degrees of freedom, or the tension of a cable is not
            determined.
    """
    require_actuated(state.assembly)
    tau, G = state.forces(state.v, state.a), state.embedding
    matrices = tensions(state, tau)
    return state.builder.finish(
        {
            "unforced": matrices.unforced,
            "pulls": ca.vec(ca.densify(matrices.pulls)),
            "map": ca.vec(ca.densify(state.transmission @ G)),
            "needed": G.T @ tau,
        }
    )


def platform_matrices_program(
    state: MotionState, by_momentum: bool, in_euler: bool
) -> tuple[Program, tuple[tuple[str, str, str], ...]]:
    """Return the program of every inertia's matrices as a virtual platform.

    Args:
        state: state at positions and velocities; x' are the given velocities.
        by_momentum: True for generalized momentum, False for energies in Koditschek's form.
        in_euler: whether matrices belong to the rates of x, y, z, psi, theta, phi of a free
            platform instead of the given velocities.

    Returns:
        The program of M, V (k m^2 numbers, matrix after matrix by columns), gravity (k m) and
        cos(theta) of the Euler angles (one if `in_euler` is False); and the k labels (name, kind,
        part).
    """
    matrices = _virtual_platforms(state, by_momentum)
    cos_theta = ca.SX(1)
    if in_euler:
        matrices, cos_theta = _in_euler(state, matrices)
    program = state.builder.finish(
        {
            "q": state.configuration.q,
            "M": column(ca.vec(ca.densify(platform.M)) for platform in matrices),
            "V": _velocity_matrices(matrices),
            "gravity": column(ca.densify(platform.gravity) for platform in matrices),
            "cos_theta": cos_theta,
        }
    )
    return program, _labels(matrices)


def velocity_matrices_program(
    state: MotionState, by_momentum: bool, in_euler: bool
) -> tuple[Program, tuple[tuple[str, str, str], ...]]:
    """Return the program of the velocity matrices V, with `in_euler` also of those in Euler angles.

    The program is used to count operations. Arguments and labels are those of
    `platform_matrices_program`.
    """
    matrices = _virtual_platforms(state, by_momentum)
    outputs = {"V": _velocity_matrices(matrices)}
    if in_euler:
        outputs["V_euler"] = _velocity_matrices(_in_euler(state, matrices)[0])
    return state.builder.finish(outputs), _labels(matrices)


def _virtual_platforms(state: MotionState, by_momentum: bool) -> tuple[VirtualPlatform, ...]:
    G, motion = state.embedding, state.motion(state.v)
    rate = _embedding_rate(state, motion)
    return virtual_platforms(
        state.mechanism, motion, state.entries, G, rate, by_momentum=by_momentum
    )


def _in_euler(
    state: MotionState, matrices: tuple[VirtualPlatform, ...]
) -> tuple[tuple[VirtualPlatform, ...], ca.SX]:
    """Return the matrices on the rates of x, y, z, psi, theta, phi, and cos(theta)."""
    ((iq, iv),) = [pair for pair in state.topology.quaternions if pair[1] in state.ports.v]
    R = quaternion_rotation(state.configuration.q[iq : iq + 4])
    J_A, J_A_rate, cos_theta = euler_axes(R, state.v[iv : iv + 3])
    T, T_rate = ca.diagcat(ca.SX(ca.DM.eye(3)), J_A), ca.diagcat(ca.SX(3, 3), J_A_rate)
    return tuple(platform.mapped(T, T_rate) for platform in matrices), cos_theta


def _velocity_matrices(matrices: tuple[VirtualPlatform, ...]) -> ca.SX:
    return column(ca.vec(ca.densify(platform.V)) for platform in matrices)


def _labels(matrices: tuple[VirtualPlatform, ...]) -> tuple[tuple[str, str, str], ...]:
    return tuple((platform.name, platform.kind, platform.part) for platform in matrices)


def _embedding_rate(state: MotionState, motion: TreeMotion) -> ca.SX:
    """Return the rate G' (n_v, m) along the motion, from K G' = -K' G."""
    symbols, dependent = StateSymbols.of(motion), state.dependent
    rows = closure(state.mechanism, symbols.motion)
    K = ca.jacobian(column(rows[i].psi_rate for i in state.assembly.rows), symbols.v)
    (K_rate,) = symbols.at([symbols.rate_at_constant_velocity(K)], motion)
    G_rate = ca.SX(*state.embedding.shape)
    if dependent:
        G_rate[dependent, :] = state.builder.solve(
            state.K[:, dependent], -(K_rate @ state.embedding), "embedding"
        )
    return G_rate
