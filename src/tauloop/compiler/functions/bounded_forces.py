"""Actuator forces that keep cable tensions in bounds: last steps of inverse dynamics programs."""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca

from tauloop.compiler.expressions import MotionState
from tauloop.compiler.functions.tensions import tensions
from tauloop.compiler.program import Program


def bounded_forces_program(
    state: MotionState, needed: tuple[ca.SX, ca.SX, ca.SX], known: Mapping[str, ca.SX]
) -> Program:
    """Return the finished program with forces, multipliers and tensions within bounds.

    Args:
        state: program of the motion.
        needed: tree forces tau = M a + h (n_v,); actuator velocities R (n_u, m) per unit of the
            actuated motions; and the required forces t (m,) on these motions. R is square unless
            actuation is redundant.
        known: the other outputs.

    Raises:
        AssemblyError: the tension of a cable is not determined.
    """
    tau, R, t = needed
    builder, S = state.builder, state.transmission.T
    terms = tensions(state, tau)
    if state.assembly.is_redundant:
        root = ca.sqrt(builder.input("weight", R.size1()))
        wanted = terms.wanted(builder.input("preload", len(terms.bounds)))
        orthogonal = builder.orthogonal(R / ca.repmat(root, 1, R.size2()), "actuator forces")
        force = wanted + orthogonal.least_norm(t - R.T @ wanted) / root
        directions = orthogonal.complement() / ca.repmat(root, 1, R.size1() - R.size2())
    else:
        force, directions = builder.solve(R.T, t, "actuator forces"), ca.SX(R.size1(), 0)
    held = {
        "force": ca.horzcat(force, directions),
        "closure_force": state.multipliers(ca.horzcat(tau - S @ force, -S @ directions)),
        "tension": ca.horzcat(terms.at(force), -terms.pulls @ directions),
    }
    rows, sides = terms.conditions(force, directions)
    nearest = builder.nearest(rows, sides, held, known)
    by = ca.vertcat(1, nearest.point)
    return builder.finish({name: value @ by for name, value in nearest.held.items()})
