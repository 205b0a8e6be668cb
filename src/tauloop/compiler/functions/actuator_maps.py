"""Programs that convert motion and effort between named joints and the motors that move them.

With joint positions q, motor positions m(q) and the Jacobian J = dm/dq, virtual work gives

    m' = J q',    q' = J^-1 m',    tau = J^T u,    u = J^-T tau,

for joint efforts tau and motor efforts u. Motors add J^T I J to the inertia in joint coordinates,
and links add G^T M G.

Source: Siciliano et al. 2009, Robotics: Modelling, Planning and Control, section 3.8 (kineto-statics
duality).
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

import casadi as ca

from tauloop.compiler.expressions import MotionState, column
from tauloop.compiler.program import Program
from tauloop.equations.values import Entries
from tauloop.mechanism.expression import Constant


def joint_to_actuator_program(
    state: MotionState, *, joints: tuple[int, ...], reference: float
) -> Program:
    """Return the program from joint positions, velocities and efforts to those of the motors.

    Args:
        state: state of the joints' motion.
        joints: indices of the joints' velocities.
        reference: determinant of J at the reference pose.
    """
    J = state.transmission @ state.embedding
    effort = state.builder.input("effort", len(joints))
    return state.builder.finish(
        {
            "q": state.configuration.q,
            "actuator_position": actuator_positions(state),
            "actuator_velocity": state.transmission @ state.v,
            "actuator_effort": state.builder.solve(J.T, effort, "motor efforts"),
            "jacobian": ca.densify(ca.vec(J.T)),
            "mode": ca.densify(ca.det(J) / reference),
        }
    )


def actuator_to_joint_program(
    state: MotionState, *, joints: tuple[int, ...], reference: float
) -> Program:
    """Return the program from motor positions, velocities and efforts to those of the joints.

    Args:
        state: state of the motors' motion.
        joints: indices of the joints' velocities.
        reference: determinant of J at the reference pose.
    """
    n = len(joints)
    effort = state.builder.input("effort", n)
    rates = state.embedding[list(joints), :]
    J = state.builder.solve(rates, ca.SX.eye(n), "Jacobian of the motors")
    positions = [state.topology.q_of_v[i] for i in joints]
    return state.builder.finish(
        {
            "q": state.configuration.q,
            "joint_position": ca.densify(state.configuration.q[positions]),
            "joint_velocity": ca.densify(state.v[list(joints)]),
            "joint_effort": ca.densify(J.T @ effort),
            "jacobian": ca.densify(ca.vec(J.T)),
            "mode": ca.densify(ca.det(J) / reference),
        }
    )


def reflected_inertia_program(state: MotionState, *, motors: Set[str], links: Set[str]) -> Program:
    """Return the program of the inertia that motors and links add in joint coordinates.

    Args:
        state: state of the joints' motion.
        motors: names of elements whose inertia is counted for motors: actuators and driven
            coordinates.
        links: names of elements whose inertia is counted for links: bodies and rods.
    """
    return state.builder.finish(
        {
            "q": state.configuration.q,
            "motor_inertia": _inertia(state, motors, "drive"),
            "link_inertia": _inertia(state, links, "inertia"),
        }
    )


def actuator_positions(state: MotionState) -> ca.SX:
    """Return the motor positions p = A q + b (n_u,)."""
    q = state.configuration.q
    scalars = column(q[i] if i >= 0 else ca.SX(0) for i in state.topology.q_of_v)
    return ca.densify(state.transmission @ scalars + state.actuator_offsets)


def _inertia(state: MotionState, elements: Set[str], group: str) -> ca.SX:
    """Return G^T M G (n n,) by rows, where M contains only the given elements."""
    counted = column(
        state.pi[i] if p.group == group and p.element in elements else ca.SX(0)
        for i, p in enumerate(state.parameters)
    )
    floating = replace(state.mechanism, gravity=(Constant(0.0),) * 3)
    a = ca.SX.sym("a", state.topology.n_v)
    motion = state.motion(state.at_rest, a)
    forces = state.formulation.forces(floating, motion, Entries(state.parameters, counted))
    M = state.embedding.T @ (ca.sparsify(ca.jacobian(forces, a)) @ state.embedding)
    return ca.densify(ca.vec(ca.tril2symm(ca.tril(M))))
