"""Inertia of single freedoms, by which accelerations of light and heavy parts are held against each other."""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.assembly.loops import nominal
from tauloop.equations.tree import Configuration, tree_motion
from tauloop.programs.machine import Machine
from tauloop.programs.motion import column


def tree_inertias(machine: Machine, q: np.ndarray) -> np.ndarray:
    """Diagonal of the tree's mass matrix (n_v,), kg m^2 or kg: what each velocity moves when the others rest.

    Args:
        machine: the machine, at its nominal parameters.
        q: coordinates (n_q,).
    """
    assembly = machine.assembly
    mechanism, shape, values = assembly.loops.mechanism, assembly.loops.topology, nominal(assembly.loops.mechanism)
    still, a = ca.SX(shape.n_v, 1), ca.SX.sym("a", shape.n_v)
    motion = tree_motion(shape, values, Configuration(ca.SX(ca.DM(q)), {}), still, a)
    pi = column(ca.SX(values.scalar(p.expression)) for p in machine.parameters)
    tau = machine.formulation.forces(mechanism, shape, values, motion, machine.parameters, pi)
    return np.array(ca.DM(ca.diag(ca.jacobian(tau, a)))).ravel()
