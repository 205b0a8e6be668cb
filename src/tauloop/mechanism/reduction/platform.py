"""Replacement of a platform's joint by one that only permits the motion that occurs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tauloop.common.errors import Problems
from tauloop.mechanism.description.placements import turns_to_axes
from tauloop.mechanism.expression import Constant, triple
from tauloop.mechanism.model import (
    BASE,
    JOINT_KINDS,
    Body,
    Freedom,
    Joint,
    Mechanism,
    Placement,
    Turn,
    Vector,
)
from tauloop.mechanism.reduction.inertia import rounded_entries
from tauloop.mechanism.reduction.steps import BodyMotions, Step, require

#: Joints of platforms with their own coordinates.
PLATFORM_KINDS = ("free", "planar", "translational")


def constant_turns(R: np.ndarray) -> tuple[Turn, ...]:
    """Return rotations by constant angles that give a rotation matrix (3, 3)."""
    R = rounded_entries(R)
    return turns_to_axes(R[:, 0].tolist(), R[:, 1].tolist())


def hold_platform(
    mechanism: Mechanism, held: Iterable[str], motion: BodyMotions
) -> tuple[Mechanism, Step]:
    """Remove the degrees of freedom that never move from the platform's joint.

    A platform that translates along all three axes gets a translational joint. With fewer axes it
    gets prismatic joints in series, which keep the names of the coordinates.

    Args:
        mechanism: the machine.
        held: velocities of the platform's joint that are zero in every motion; they must include
            all rotations.
        motion: how the bodies move.

    Returns:
        The changed machine, and the step with what it preserves.

    Raises:
        InputError: the platform has no coordinates of its own, it rotates, or an independent
            coordinate is held.
    """
    joint = next(
        (j for j in mechanism.joints if j.name == "platform" and j.kind in PLATFORM_KINDS), None
    )
    held = set(held)
    problems = Problems()
    if joint is None:
        problems.add("platform", "has no coordinates of its own", "leave the platform as it is")
        require(mechanism, problems)
        raise AssertionError("unreachable: the checks above raise an error for this input")
    kind = JOINT_KINDS[joint.kind]
    rotations = [
        f"{joint.name}.{s}"
        for s, is_angle in zip(kind.velocities, kind.angular, strict=True)
        if is_angle
    ]
    for name in rotations:
        if name not in held:
            problems.add(name, "this rotation is not held", "hold all rotations of the platform")
    for name in mechanism.platform.independent:
        if name in held:
            problems.add(
                name, "is held, but it is an independent coordinate", "name other coordinates"
            )
    require(mechanism, problems)
    moving = [i for i, name in enumerate(joint.velocity_names) if name not in held]
    turns = constant_turns(motion.orientation[joint.child.body].T)
    child = Placement(body=joint.child.body, turns=turns)
    freedoms = joint.freedoms or (Freedom(),) * len(kind.velocities)
    other_joints = tuple(
        other_joint for other_joint in mechanism.joints if other_joint.name != joint.name
    )
    step = Step(
        name="hold platform",
        removed=tuple(name for name in joint.velocity_names if name in held),
        kept=tuple(joint.velocity_names[i] for i in moving),
        preserved=("motion", "inertia"),
    )
    origin = motion.position[joint.child.body]
    if len(moving) == 3:
        translational = replace(
            joint,
            kind="translational",
            child=child,
            reference=tuple(float(x) for x in origin),
            freedoms=tuple(freedoms[i] for i in moving),
        )
        return replace(mechanism, joints=(translational, *other_joints)), step
    position: Vector = triple(
        Constant(0.0 if i in moving or abs(origin[i]) < 1e-12 else float(origin[i]))
        for i in range(3)
    )
    chain, slides = [], []
    parent = Placement(body=BASE, position=position)
    for i in moving:
        is_last = i == moving[-1]
        letter = "xyz"[i]
        slide = f"{joint.name}.slide_{letter}"
        chain.append(
            Joint(
                name=f"{joint.name}.{letter}",
                kind="prismatic",
                parent=parent,
                child=child if is_last else Placement(body=slide),
                axes=(("x", "y", "z")[i],),
                reference=(float(origin[i]),),
                freedoms=(freedoms[i],),
            )
        )
        if not is_last:
            slides.append(Body(name=slide))
            parent = Placement(body=slide)
    return replace(
        mechanism, bodies=(*mechanism.bodies, *slides), joints=(*chain, *other_joints)
    ), step
