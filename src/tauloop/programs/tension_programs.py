"""Tensions before they are shared out, as a program: for optimisers that choose forces together with a motion."""

from __future__ import annotations

import casadi as ca

from tauloop.assembly.entry_ports import EntryPorts
from tauloop.equations.newton_euler import transmission
from tauloop.programs.machine import Machine
from tauloop.programs.motion import MotionState, embedding, parameter_values, require_actuated
from tauloop.programs.program import Program
from tauloop.programs.tensions import tensions


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
    found = tensions(state.builder, machine.assembly, ports, (tau, S, state.K, state.scale))
    return state.builder.finish(
        {
            "unforced": found.unforced,
            "pulls": ca.vec(ca.densify(found.pulls)),
            "map": ca.vec(ca.densify(S.T @ G)),
            "needed": G.T @ tau,
        }
    )
