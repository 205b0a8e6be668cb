"""Actuator forces that keep cables within their bounds, as the last steps of a program of inverse dynamics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import casadi as ca

from tauloop.equations.newton_euler import transmission
from tauloop.programs.tensions import tensions

if TYPE_CHECKING:
    from tauloop.assembly.ports import EntryPorts
    from tauloop.programs.motion import MotionState
    from tauloop.programs.program import Program

#: Multipliers (c, k) of loads on all velocities (n_v, k).
Multipliers = Callable[[ca.SX], ca.SX]


def bounded_forces_program(
    state: MotionState,
    ports: EntryPorts,
    needed: tuple[ca.SX, ca.SX, ca.SX],
    multipliers: Multipliers,
    known: Mapping[str, ca.SX],
) -> Program:
    """Close a program with forces, multipliers and tensions within their bounds.

    Args:
        state: the program with the motion.
        ports: the given motion.
        needed: tree forces tau = M a + h (n_v,); actuator velocities R (n_u, m) per unit of the motions that actuators
            bring about, and the forces t (m,) on these; without redundant actuation R is square.
        multipliers: of the loop equations beside loads on all velocities.
        known: the other outputs.

    Raises:
        AssemblyError: the tension of a cable is not determined.
    """
    tau, R, t = needed
    assembly, builder = state.machine.assembly, state.builder
    S = transmission(state.mechanism, state.shape, state.values).T
    terms = tensions(builder, assembly, ports, (tau, S, state.K, state.scale))
    if assembly.is_redundant:
        root = ca.sqrt(builder.input("weight", R.size1()))
        wanted = terms.wanted(builder.input("preload", len(terms.bounds)))
        orthogonal = builder.orthogonal(R / ca.repmat(root, 1, R.size2()), "actuator forces")
        force = wanted + orthogonal.least_norm(t - R.T @ wanted) / root
        directions = orthogonal.complement() / ca.repmat(root, 1, R.size1() - R.size2())
    else:
        force, directions = builder.solve(R.T, t, "actuator forces"), ca.SX(R.size1(), 0)
    held = {
        "force": ca.horzcat(force, directions),
        "closure_force": multipliers(ca.horzcat(tau - S @ force, -S @ directions)),
        "tension": ca.horzcat(terms.at(force), -terms.pulls @ directions),
    }
    rows, sides = terms.conditions(force, directions)
    nearest = builder.nearest(rows, sides, held, known)
    by = ca.vertcat(1, nearest.point)
    return builder.finish({name: value @ by for name, value in nearest.held.items()})
