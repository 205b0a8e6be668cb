"""Motors, springs and rotors that act on the coordinates of a machine."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import InputError
from tauloop.elasticity.frame.structure import MotionCombination
from tauloop.elasticity.machine.parts.axial_springs import has_elastic_part
from tauloop.elasticity.machine.parts.collected import StructureParts
from tauloop.elasticity.vibrations.servo_drives import Terms, load_inertia
from tauloop.mechanism.elastic.drives import drive_stiffness
from tauloop.mechanism.expression import Expression, multiply
from tauloop.mechanism.model import Actuator


def motor_coordinates(parts: StructureParts) -> tuple[dict[str, float], dict[str, float], set[str]]:
    """Add springs, motors and drives; return the springs and inertias of coordinates, and locks.

    A motor that is held locks its coordinate if its drive is rigid. Otherwise its drive is a spring
    of the coordinate, and its rotor is at rest.

    Returns:
        Stiffnesses of coordinates by name, inertias by name, and names of locked coordinates.
    """
    value = parts.mechanism.value
    inertias: dict[str, float] = {}
    locked: set[str] = set()
    for name, freedom in parts.mechanism.freedoms.items():
        if freedom.spring is not None:
            parts.add_spring(name, freedom.spring.stiffness)
        if freedom.inertia is not None:
            inertias[name] = value(freedom.inertia)
    for actuator in parts.mechanism.actuators:
        if parts.options.laws is not None:
            _add_servo(parts, actuator, inertias, locked)
            continue
        if len(actuator.drives) > 1:
            continue
        name, ratio_expression = actuator.drives[0]
        ratio = value(ratio_expression)
        if not parts.options.are_motors_held:
            if actuator.inertia is not None:
                rotor = ratio**2 * value(actuator.inertia)
                inertias[name] = inertias.get(name, 0.0) + rotor
            continue
        stiffness = held_stiffness(parts, actuator)
        if stiffness is None:
            locked.add(name)
        else:
            if name in parts.spring_laws:
                parts.drives.pop(name, None)
            else:
                parts.drives[name] = actuator.name
            joint_stiffness = multiply(ratio_expression, ratio_expression, stiffness)
            parts.add_spring(name, joint_stiffness)
    springs = {name: value(spring) for name, spring in parts.spring_laws.items()}
    return springs, inertias, locked


def _add_servo(
    parts: StructureParts, actuator: Actuator, inertias: dict[str, float], locked: set[str]
) -> None:
    """Add a controlled motor with its drive.

    Raises:
        InputError: an elastic drive has no motor inertia, or a drive line moves a rod without
            elastic parts.
    """
    value = parts.mechanism.value
    line = actuator.drive
    inertia = 0.0 if actuator.inertia is None else value(actuator.inertia)
    if line is not None:
        inertia += load_inertia(line, parts.mechanism)
    stiffness = None if line is not None else held_stiffness(parts, actuator)
    drives = tuple((name, value(ratio)) for name, ratio in actuator.drives)
    name, ratio = drives[0]
    rod = next((rod for rod in parts.mechanism.rods if rod.name == name), None)
    where = f"actuators.{actuator.name}"
    shaft: Terms
    if stiffness is not None and not inertia:
        what = "the drive is elastic, but the inertia of its motor is missing"
        raise InputError.of(where, what, "give `inertia` on the motor's side")
    if rod is not None:
        has_spring = stiffness is not None or has_elastic_part(rod)
        if line is not None and not has_spring:
            what = f"its drive line moves the rod {name}, which has no elastic part"
            raise InputError.of(where, what, "give the rod a section, or a `contact` stiffness")
        if not has_spring:
            shaft = ((name, ratio),)
            inertias[name] = inertias.get(name, 0.0) + ratio**2 * inertia
        else:
            rotor = f"{actuator.name}.rotor"
            rotor_terms = parts.servo.add_rotor(rotor, ratio**2 * inertia, ((name, 1.0),))
            shaft = ((rotor_terms[0][0], ratio),)
            parts.rotors[name] = rotor
            parts.notes.append(
                f"{name}: the masses of the two parts move with the ends of the rod, not with the "
                "motor between them"
            )
            if stiffness is None:
                locked.add(name)
            else:
                ratio_expression = actuator.drives[0][1]
                parts.add_spring(name, multiply(ratio_expression, ratio_expression, stiffness))
    elif stiffness is not None or len(drives) > 1:
        shaft = parts.servo.add_rotor(f"{actuator.name}.rotor", inertia, drives)
        terms = (*drives, (shaft[0][0], -1.0))
        arrays = tuple((other, np.asarray(factor)) for other, factor in terms)
        drive_value = None if stiffness is None else value(stiffness)
        parts.combinations.append(
            MotionCombination(name=actuator.name, terms=arrays, stiffness=drive_value)
        )
    else:
        shaft = drives
        inertias[name] = inertias.get(name, 0.0) + ratio**2 * inertia
    if line is None:
        parts.servo.add_motor(actuator, shaft)
    else:
        parts.elastic.append(actuator.name)
        parts.servo.add_line(actuator, line, shaft)


def held_stiffness(parts: StructureParts, actuator: Actuator) -> Expression | None:
    """Return the stiffness of an actuator's drive with its motor held; None if the drive is rigid.

    An actuator with an elastic drive is added to the elastic items.
    """
    stiffness = drive_stiffness(actuator)
    if stiffness is not None:
        parts.elastic.append(actuator.name)
    return stiffness
