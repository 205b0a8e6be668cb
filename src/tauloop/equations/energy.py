"""Kinetic and potential energy of a machine: bodies, rods, rotors, gravity and springs."""

from __future__ import annotations

import casadi as ca

from tauloop.common.errors import DescriptionError, Problems
from tauloop.equations.inertial_elements import InertialElement, inertial_elements
from tauloop.equations.tree import TreeMotion
from tauloop.equations.values import Entries, Values
from tauloop.mechanism.model import Inertia, Mechanism

#: Products and differences of inertia below this fraction of the inertia count as zero: all
#: transverse axes are then principal axes.
MATRIX_SYMMETRY_TOLERANCE = 1e-12


def kinetic_energy(
    mechanism: Mechanism,
    motion: TreeMotion,
    entries: Entries,
    elements: tuple[InertialElement, ...] | None = None,
) -> ca.SX:
    """Return the kinetic energy T = sum of u^T I u / 2 over all inertias, J.

    With closed loops it is the energy of the machine. With open loops it is the energy of the tree,
    whose rods are stretched.

    Args:
        mechanism: the machine.
        motion: positions and velocities of all bodies.
        entries: dynamic parameters.
        elements: inertias of the machine in this motion, if they are known.

    Raises:
        DescriptionError: the kinetic energy of a rod is not a function of its velocity (see
            `require_energy`).
    """
    require_energy(mechanism)
    if elements is None:
        elements = inertial_elements(mechanism, motion, entries)
    return sum((element.energy for element in elements), ca.SX(0))


def freedom_momentum(motion: TreeMotion, entries: Entries) -> ca.SX:
    """Return the momenta (n_v,) of the inertias on single degrees of freedom.

    An inertia on one angular velocity of a ball joint resists only the rate of this velocity, so it
    does not appear in Poincare's term.
    """
    topology, momentum = motion.topology, ca.SX(motion.topology.n_v, 1)
    for i, (name, freedom) in enumerate(
        zip(topology.velocity_names, topology.freedoms, strict=True)
    ):
        inertia = entries.get(name, "inertia")
        if freedom.inertia is not None and inertia is not None:
            momentum[i] = inertia * motion.v[i]
    return momentum


def potential_energy(
    mechanism: Mechanism,
    motion: TreeMotion,
    entries: Entries,
    elements: tuple[InertialElement, ...] | None = None,
) -> ca.SX:
    """Return the potential energy of gravity and springs, J, up to a constant.

    The energy is -g . sum(m r) + sum(k q^2 / 2 - k q_0 q).

    Args:
        mechanism: the machine.
        motion: positions of all bodies.
        entries: dynamic parameters.
        elements: inertias of the machine in this motion, if they are known.
    """
    if elements is None:
        elements = inertial_elements(mechanism, motion, entries)
    energy = gravity_energy(mechanism, motion.values, elements)
    for i, name in enumerate(motion.topology.velocity_names):
        stiffness, preload = entries.get(name, "stiffness"), entries.get(name, "preload")
        if stiffness is not None and preload is not None:
            q = motion.q[motion.topology.q_of_v[i]]
            energy += stiffness * q * q / 2 - preload * q
    return energy


def gravity_energy(
    mechanism: Mechanism, values: Values, elements: tuple[InertialElement, ...]
) -> ca.SX:
    """Return the potential energy of inertias in the gravity field, J."""
    gravity = values.vector(mechanism.gravity)
    return sum((-ca.dot(gravity, element.weight) for element in elements), ca.SX(0))


def require_energy(mechanism: Mechanism) -> None:
    """Raise an error unless the kinetic energy of every inertia is a function of q and v.

    The coordinates do not determine the transverse axes of a rod without spin: after a closed path
    its direction is the same, but its transverse axes may have rotated. So its inertia is a
    function of the coordinates only if it is symmetric about the rod's axis.

    Raises:
        DescriptionError: rods have unequal transverse inertias; the message lists the differences.
    """
    problems = Problems()
    for rod in mechanism.rods:
        for part in (rod.lower, rod.upper) if rod.spin == "none" else ():
            if not isinstance(part, Inertia):
                continue
            mass, mcx, mcy, _, Ixx, Ixy, Iyy, Ixz, Iyz, _ = (
                mechanism.value(e) for e in part.parameters
            )
            size = max(abs(Ixx), abs(Iyy))
            unequal = max(abs(Ixx - Iyy), abs(Ixy), abs(Ixz), abs(Iyz))
            if (
                unequal > MATRIX_SYMMETRY_TOLERANCE * size
                or max(abs(mcx), abs(mcy)) > MATRIX_SYMMETRY_TOLERANCE * (size * mass) ** 0.5
            ):
                problems.add(
                    rod.name,
                    "the kinetic energy of a rod without spin is a function of its velocity only "
                    "if its inertia is symmetric about its axis: its transverse inertias differ by "
                    f"{unequal:.4g} kg m^2 (of {size:.4g}), and its mass center is off the axis by "
                    f"m c = ({mcx:.4g}, {mcy:.4g}) kg m",
                    "write spin: universal; make xx equal to yy, without products of inertia and "
                    "with the center on the axis; or use a formulation without energies, such as "
                    "newton-euler",
                    file=mechanism.file,
                )
    DescriptionError.raise_if_any(problems)
