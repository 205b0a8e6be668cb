"""Hybrid inverse dynamics: actuator forces and passive accelerations from the actuators' motion.

The given motion consists of actuator velocities v_m and passive velocities v_p, so that
v = G_m v_m + G_p v_p. gamma are the accelerations of all coordinates if a_m and a_p are zero. For
M, h, A and G see docs/equations.md.

Passive degrees of freedom move no actuator (A G_p = 0), so actuator forces do not enter their
equations:

    M_pp a_p = -G_p^T (M (G_m a_m + gamma) + h),    M_pp = G_p^T M G_p, positive definite

With a = G_m a_m + G_p a_p + gamma the actuator forces u follow from

    R^T u = G_m^T (M a + h),    R = A G_m

R is the unit matrix unless actuation is redundant.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.common.errors import AssemblyError, Problem
from tauloop.compiler.expressions import MotionState
from tauloop.compiler.functions.bounded_forces import bounded_forces_program
from tauloop.compiler.functions.motion import shared_forces
from tauloop.compiler.program import Program
from tauloop.equations.values import quantile

#: A passive degree of freedom counts as massless if its inertia, in units of total mass and
#: characteristic length, is below this.
MIN_INERTIA = 1e-13


def hybrid_inverse_dynamics_program(state: MotionState) -> Program:
    """Return the program of forces, multipliers and passive accelerations.

    Args:
        state: positions and velocities of leading actuators and passive degrees of freedom, in this
            order (`ACTUATORS`).

    Raises:
        AssemblyError: passive degrees of freedom have no inertia, so their motion is not
            determined.
    """
    assembly, builder, rank = state.assembly, state.builder, len(state.assembly.leading)
    leading = builder.input("actuator_acceleration", rank)
    G_m, G_p = state.embedding[:, :rank], state.embedding[:, rank:]
    a = state.drift() + G_m @ leading
    passive = ca.SX(0, 1)
    tau = state.forces(state.v, a)
    if assembly.passive:
        M_p = state.mass_matrix(state.v) @ G_p
        M_pp = G_p.T @ M_p
        _require_inertia(state, M_pp)
        passive = builder.solve_symmetric(M_pp, -(G_p.T @ tau), "passive accelerations")
        a = a + G_p @ passive
        tau = tau + M_p @ passive
    force, R = G_m.T @ tau, state.transmission @ G_m
    known = {
        "q": state.configuration.q,
        "v": state.v,
        "a": a,
        "tree_force": tau,
        "passive_acceleration": passive,
    }
    if state.mechanism.cables:
        return bounded_forces_program(state, (tau, R, force), known)
    if assembly.is_redundant:
        force = shared_forces(builder, R, force, builder.input("weight", R.size1()))
    closure_force = state.multipliers(tau - state.transmission.T @ force)
    return builder.finish({**known, "force": force, "closure_force": closure_force})


def _require_inertia(state: MotionState, M_pp: ca.SX) -> None:
    """Raise an error if passive degrees of freedom can move without any inertia.

    Raises:
        AssemblyError: passive degrees of freedom have no inertia; the message names them.
    """
    assembly = state.assembly
    n = len(assembly.passive)
    M = state.builder.at_samples(M_pp).reshape(-1, n, n)
    size = np.sqrt(quantile(np.abs(np.einsum("nii->ni", M)), 0.5))
    scale = np.where(
        np.array(state.topology.angular)[list(assembly.passive)], assembly.loops.length, 1.0
    )
    mass = sum(abs(state.mechanism.value(p.expression)) for p in state.parameters if p.unit == "kg")
    is_massless = size / scale < np.sqrt(MIN_INERTIA * max(mass, 1e-300))
    unit = M / np.maximum(size[:, None] * size, 1e-300)
    least, vectors = np.linalg.eigh(quantile(unit, 0.5))
    if not is_massless.any() and n and least[0] < MIN_INERTIA:
        is_massless = np.abs(vectors[:, 0]) > 0.1
    if is_massless.any():
        names = [
            name
            for name, has_no_inertia in zip(assembly.passive_names, is_massless, strict=True)
            if has_no_inertia
        ]
        raise AssemblyError(
            Problem(
                where=name,
                what="this passive degree of freedom moves no inertia, so its acceleration is not "
                "determined",
                remedy="give the bodies that it moves an inertia, or lock it (`Locks`)",
                file=state.mechanism.file,
            )
            for name in names
        )
