"""Friction of freedoms and of motors, as generalised forces: the one part of the tree forces that has no energy."""

from __future__ import annotations

import casadi as ca

from tauloop.equations.dynamic_parameters import Entries
from tauloop.equations.topology import Topology
from tauloop.equations.values import Values
from tauloop.mechanism.model import Friction, Mechanism


def friction_force(entries: Entries, element: str, velocity: ca.SX, friction: Friction | None) -> ca.SX:
    """Friction force F = viscous v + coulomb sign(v) + offset of one element."""
    force = ca.SX(0)
    if friction is not None:
        for role, factor in (("viscous", velocity), ("coulomb", ca.sign(velocity)), ("offset", ca.SX(1))):
            coefficient = entries.get(element, role)
            if coefficient is not None:
                force += coefficient * factor
    return force


def friction_forces(mechanism: Mechanism, topology: Topology, values: Values, v: ca.SX, entries: Entries) -> ca.SX:
    """Forces (n_v,), N or N m, that overcome all friction; a motor's reaches the coordinates by its transmission.

    Args:
        mechanism, topology, values: the machine.
        v: velocities (n_v,).
        entries: dynamic parameters.
    """
    tau = ca.SX(topology.n_v, 1)
    for i, (name, freedom) in enumerate(zip(topology.velocity_names, topology.freedoms, strict=True)):
        tau[i] = friction_force(entries, name, v[i], freedom.friction)
    for actuator in mechanism.actuators:
        terms = [(topology.velocity_names.index(name), values.scalar(ratio)) for name, ratio in actuator.drives]
        velocity = sum((ratio * v[i] for i, ratio in terms), ca.SX(0))
        force = friction_force(entries, actuator.name, velocity, actuator.friction)
        for i, ratio in terms:
            tau[i] += ratio * force
    return tau
