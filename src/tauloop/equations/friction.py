"""Friction of freedoms and of motors, as generalised forces: the one part of the tree forces that has no energy."""

from __future__ import annotations

import casadi as ca

from tauloop.equations.dynamic_parameters import Entries
from tauloop.equations.topology import Topology
from tauloop.equations.values import Values
from tauloop.mechanism.model import CombinedFriction, Friction, Mechanism


def friction_force(entries: Entries, element: str, velocity: ca.SX, friction: Friction | None, values: Values) -> ca.SX:
    """Friction force of one element, as `Friction` says: linear in its coefficients, not in the Stribeck speed."""
    if friction is None:
        return ca.SX(0)
    sign = ca.sign(velocity)
    factors = {
        "viscous": velocity,
        "coulomb": sign,
        "offset": ca.SX(1),
        "viscous_asymmetry": ca.fabs(velocity),
        "coulomb_asymmetry": ca.fabs(sign),
    }
    if friction.stribeck is not None:
        factors["stribeck"] = sign * ca.exp(-((velocity / values.scalar(friction.stribeck)) ** 2))
    force = ca.SX(0)
    for role, factor in factors.items():
        coefficient = entries.get(element, role)
        if coefficient is not None:
            force += coefficient * factor
    return force


def friction_forces(mechanism: Mechanism, topology: Topology, values: Values, v: ca.SX, entries: Entries) -> ca.SX:
    """Forces (n_v,), N or N m, that overcome all friction; a motor's reaches the coordinates by its transmission.

    So does that of a combination of coordinates, by its ratios.

    Args:
        mechanism, topology, values: the machine.
        v: velocities (n_v,).
        entries: dynamic parameters.
    """
    tau = ca.SX(topology.n_v, 1)
    for i, (name, freedom) in enumerate(zip(topology.velocity_names, topology.freedoms, strict=True)):
        tau[i] = friction_force(entries, name, v[i], freedom.friction, values)
    for actuator in mechanism.actuators:
        terms = [(topology.velocity_names.index(name), values.scalar(ratio)) for name, ratio in actuator.drives]
        velocity = sum((ratio * v[i] for i, ratio in terms), ca.SX(0))
        force = friction_force(entries, actuator.name, velocity, actuator.friction, values)
        for i, ratio in terms:
            tau[i] += ratio * force
    for loss in mechanism.losses:
        add_loss(tau, loss, topology, values, v, entries)
    return tau


def add_loss(
    tau: ca.SX, loss: CombinedFriction, topology: Topology, values: Values, v: ca.SX, entries: Entries
) -> None:
    """Add friction of a combination of coordinates to forces (n_v,): ratio_j F on each, by virtual work."""
    terms = [(topology.velocity_names.index(name), values.scalar(ratio)) for name, ratio in loss.terms]
    velocity = sum((ratio * v[i] for i, ratio in terms), ca.SX(0))
    force = friction_force(entries, loss.name, velocity, loss.friction, values)
    for i, ratio in terms:
        tau[i] += ratio * force
