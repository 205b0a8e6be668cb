"""Joints, gears, and motors that drive several coordinates, as parts of a structure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.common.errors import InputError
from tauloop.elasticity.frame.beams import NODE_FREEDOMS
from tauloop.elasticity.frame.structure import MotionCombination, in_local_axes
from tauloop.elasticity.machine.joints import elastic_directions, elastic_joint, free_twists
from tauloop.elasticity.machine.parts.collected import StructureParts
from tauloop.elasticity.machine.parts.drives import held_stiffness
from tauloop.elasticity.static_analysis.gradients import ElasticLaw, is_diagonal
from tauloop.mechanism.expression import Expression
from tauloop.mechanism.model import PLATFORM_JOINT, Joint


def add_joint(
    parts: StructureParts,
    joint: Joint,
    springs: Mapping[str, float],
    inertias: Mapping[str, float],
    locked: set[str],
) -> None:
    """Add a joint to the structure; skip the platform's joint if it allows all motions.

    Args:
        parts: the structure under construction.
        joint: the joint of the machine.
        springs: stiffness of single coordinates, by name.
        inertias: inertia of single coordinates, by name.
        locked: names of the coordinates that rigid motors hold.
    """
    if joint.name == PLATFORM_JOINT:
        if joint.kind == "free":
            return
        parts.notes.append(
            f"the platform can move only as its joint allows ({joint.kind}); it is rigid in all "
            "other directions"
        )
    parent, child = parts.frame(joint.parent), parts.frame(joint.child)
    twists = free_twists(joint, parent, child)
    names = joint.velocity_names
    bearings = None
    if joint.compliance is not None:
        parts.elastic.append(joint.name)
        bearings = elastic_directions(
            parts.mechanism, joint.compliance, parent.rotation, twists, parts.length
        )
    remaining = [i for i, name in enumerate(names) if name not in locked]
    free_names = tuple(names[i] for i in remaining)
    free = twists[..., remaining], free_names
    parent_body, _ = parts.attachment(joint.parent, joint.name)
    child_body, point = parts.attachment(joint.child, joint.name)
    parts.joints.append(
        elastic_joint(
            joint, (parent_body, child_body), point, free, bearings, springs, inertias, parts.drives
        )
    )
    motions = tuple(
        (index, parts.spring_laws[name])
        for index, name in enumerate(free_names)
        if name in parts.spring_laws
    )
    if bearings is None or joint.compliance is None:
        if motions:
            parts.laws.append(ElasticLaw(item=joint.name, motions=motions))
        return
    bearing_twists = in_local_axes(parent.rotation, bearings[0])
    is_complete = bearing_twists.shape[-1] + twists.shape[-1] == NODE_FREEDOMS
    is_along_axes = is_diagonal(joint.compliance) and joint.kind != "universal"
    parts.laws.append(
        ElasticLaw(
            item=joint.name,
            motions=motions,
            bearings=joint.compliance,
            bearing_twists=bearing_twists,
            are_directions_fixed=is_complete or is_along_axes,
        )
    )


def add_combinations(parts: StructureParts, locked: set[str]) -> None:
    """Add gears, and motors that drive several coordinates."""
    value = parts.mechanism.value
    motions = {name for joint in parts.joints for name in joint.names}
    items: list[tuple[str, list[tuple[str, float]], Expression | None]] = []
    for coupling in parts.mechanism.couplings:
        if coupling.curves:
            remedy = "remove the cam, or replace it by its ratio at the pose"
            where = f"couplings.{coupling.name}"
            raise InputError.of(
                where, "elastic analysis of machines with cams is not supported", remedy
            )
        terms = [(name, value(ratio)) for name, ratio in coupling.terms]
        items.append((coupling.name, terms, None))
    for actuator in parts.mechanism.actuators:
        if (
            parts.options.laws is None
            and len(actuator.drives) > 1
            and parts.options.are_motors_held
        ):
            terms = [(name, value(ratio)) for name, ratio in actuator.drives]
            items.append((actuator.name, terms, held_stiffness(parts, actuator)))
    for name, terms, stiffness in items:
        moving_terms = tuple(
            (other, np.asarray(ratio)) for other, ratio in terms if other in motions
        )
        if moving_terms:
            drive_value = None if stiffness is None else value(stiffness)
            parts.combinations.append(
                MotionCombination(name=name, terms=moving_terms, stiffness=drive_value)
            )
            if stiffness is not None:
                parts.laws.append(ElasticLaw(item=name, springs=(stiffness,)))
