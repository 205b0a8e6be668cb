"""Merging of links and rods with equal rotation.

This is exact: links with equal rotation about points a constant vector apart have the same motion
up to that vector, so their inertias about these points add up. The potential energy changes by a
constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import Problem, Problems
from tauloop.mechanism.expression import steps_from
from tauloop.mechanism.links.graph import far_end, far_side, joints_of, rods_of, side
from tauloop.mechanism.model import (
    BASE,
    Inertia,
    Joint,
    Mechanism,
    Placement,
    Rod,
    SlenderPart,
    Vector,
)
from tauloop.mechanism.reduction.graph import STRAIGHT, numbers, with_added, without
from tauloop.mechanism.reduction.inertia import (
    carried,
    clean,
    mean,
    minus,
    plus,
    total,
    turned_vector,
)
from tauloop.mechanism.reduction.platform import constant_turns
from tauloop.mechanism.reduction.steps import BodyMotions, Step, limits_of, require

#: Relative difference below which lengths count as equal.
EQUAL = 1e-12
#: Distance (m) across the axis direction below which two joints are offset only along the axis.
BEHIND = 1e-9


def group_parallel_links(
    mechanism: Mechanism, kept: str, removed: str, motion: BodyMotions
) -> tuple[Mechanism, Step]:
    """Replace two links of equal rotation, which connect the same bodies, by one of them.

    The links are a constant vector apart. Examples are two cranks of a parallelogram, or two equal
    links in front of and behind a plane. The removed link's inertia about its joints is added to
    the kept link, and its rods are moved to the kept link. A body that no longer has a joint that
    prevents its rotation gets a translational joint to the base.

    Args:
        mechanism: the machine.
        kept, removed: names of the links.
        motion: how the bodies move.

    Returns:
        The changed machine, and the step with what it preserves.

    Raises:
        InputError: the links rotate differently or connect different bodies, or something acts on
            the removed link.
    """
    partners = parallel_joints(mechanism, kept, removed, motion)
    own = joints_of(mechanism, removed)
    correspond = "corresponds" if len(partners) == 1 else "correspond"
    problems = Problems()
    if len(partners) != len(own) or len(own) < 2 or removed == mechanism.platform.body:
        problems.add(
            f"bodies.{removed}",
            f"{len(partners)} of its {counted(len(own), 'joint')} {correspond} to a parallel joint of {kept}",
            "name a link that moves parallel to the other, connects the same bodies at a constant "
            "distance, and has no loads on its joints",
        )
    require(mechanism, problems)
    mine, theirs = partners[0]
    s, r = side(mine, removed).position, side(theirs, kept).position
    R = clean(motion.orientation[kept].T @ motion.orientation[removed])
    body = far_side(mine, removed).body
    shift = turned_vector(
        clean(motion.orientation[body]),
        minus(far_side(theirs, kept).position, far_side(mine, removed).position),
    )
    rods = rods_of(mechanism, removed)
    for rod in rods:
        far = far_end(rod, removed).body
        offset = motion.orientation[far].T @ numbers(mechanism, shift)
        if not motion.is_steady(far, offset, mechanism.characteristic_length):
            problems.add(
                f"rods.{rod.name}",
                f"connects the link to {far}, which rotates",
                "keep this link and remove the other one",
            )
    require(mechanism, problems)

    def moved(rod: Rod) -> Rod:
        if rod not in rods:
            return rod
        return replace(
            rod,
            start=moved_end(rod.start),
            end=moved_end(rod.end),
            first_axis=_axis_on(rod, removed, R),
        )

    def moved_end(end: Placement) -> Placement:
        if end.body == removed:
            return Placement(body=kept, position=plus(r, turned_vector(R, minus(end.position, s))))
        return replace(
            end,
            position=plus(
                end.position, turned_vector(clean(motion.orientation[end.body]).T, shift)
            ),
        )

    mechanism = replace(mechanism, rods=tuple(moved(rod) for rod in mechanism.rods))
    inertia = mechanism.body(removed).inertia
    mechanism = with_added(mechanism, kept, None if inertia is None else carried(inertia, s, r, R))
    mechanism = without(mechanism, (removed,), (joint.name for joint in own))
    for neighbor in {far_side(joint, removed).body: None for joint in own}:
        straight = (joint.bodies for joint in mechanism.joints if joint.kind in STRAIGHT)
        if neighbor in motion.translating and neighbor not in steps_from(BASE, straight):
            mechanism = replace(mechanism, joints=(*mechanism.joints, _guide(neighbor, motion)))
    step = Step(
        name="group parallel links",
        removed=(removed,),
        kept=(kept,),
        preserved=("mass", "mass center up to a constant", "inertia about the joints"),
        lost=limits_of(own),
    )
    return mechanism, step


def parallel_joints(
    mechanism: Mechanism, kept: str, removed: str, motion: BodyMotions
) -> list[tuple[Joint, Joint]]:
    """Return (joint of the removed link, equivalent joint of the kept link) pairs."""
    if (
        kept == removed
        or motion.group(kept) is not motion.group(removed)
        or kept in motion.translating
    ):
        return []
    pairs = []
    length = mechanism.characteristic_length
    for mine in joints_of(mechanism, removed):
        far = far_side(mine, removed)
        for theirs in joints_of(mechanism, kept):
            other = far_side(theirs, kept)
            if (
                other.body == far.body
                and theirs.kind == mine.kind
                and motion.is_steady(
                    far.body, numbers(mechanism, minus(other.position, far.position)), length
                )
                and not mechanism.is_loaded(mine)
            ):
                pairs.append((mine, theirs))
                break
    return pairs


def is_behind(mechanism: Mechanism, kept: str, removed: str, motion: BodyMotions) -> bool:
    """Return whether two links are offset only along the one axis direction of their joints."""
    axis = motion.orientation[kept] @ motion.steady[kept]
    for mine, theirs in parallel_joints(mechanism, kept, removed, motion):
        far, other = far_side(mine, removed), far_side(theirs, kept)
        between = motion.orientation[far.body] @ numbers(
            mechanism, minus(other.position, far.position)
        )
        if axis.shape[1] != 1 or np.linalg.norm(np.cross(between, axis[:, 0])) > BEHIND:
            return False
    return True


def _axis_on(rod: Rod, removed: str, R: np.ndarray) -> Vector | None:
    if rod.first_axis is None or rod.start.body != removed:
        return rod.first_axis
    return turned_vector(R, rod.first_axis)


def _guide(body: str, motion: BodyMotions) -> Joint:
    return Joint(
        name=f"{body}.guide",
        kind="translational",
        parent=Placement(body=BASE),
        child=Placement(body=body, turns=constant_turns(motion.orientation[body].T)),
        reference=tuple(float(x) for x in motion.position[body]),
    )


def merge_rods(mechanism: Mechanism, names: Sequence[str]) -> tuple[Mechanism, Step]:
    """Replace parallel rods by one rod midway between them with the sum of their inertias.

    The merged rod has the name of the first one. This is exact if the rods remain parallel and
    their ends on each body have the same velocity.

    Returns:
        The changed machine, and the step with what it preserves.

    Raises:
        InputError: the rods differ in length, in the bodies they connect, or in the form of their
            inertia.
    """
    rods = [mechanism.rod(name) for name in names]
    first = rods[0]
    length = mechanism.value(first.length) if first.length is not None else np.nan
    problems = []
    for rod in rods:
        own = mechanism.value(rod.length) if rod.length is not None else np.nan
        differences = [
            ("is telescopic", rod.length is None),
            (
                f"is {1e3 * (own - length):+.6g} mm longer than {first.name}",
                abs(own - length) > EQUAL * length,
            ),
            (
                f"connects other bodies than {first.name}",
                (rod.start.body, rod.end.body) != (first.start.body, first.end.body),
            ),
            (
                f"has another form of inertia than {first.name}",
                type(rod.lower) is not type(first.lower),
            ),
            (
                f"has another first axis or spin than {first.name}",
                (rod.first_axis, rod.spin) != (first.first_axis, first.spin),
            ),
        ]
        problems += [
            Problem(
                where=f"rods.{rod.name}",
                what=what,
                remedy="name rods that are equal and parallel",
            )
            for what, differs in differences
            if differs
        ]
    require(mechanism, problems)
    single = replace(
        first,
        start=replace(first.start, position=mean([rod.start.position for rod in rods])),
        end=replace(first.end, position=mean([rod.end.position for rod in rods])),
        lower=_summed([rod.lower for rod in rods if rod.lower is not None]),
    )
    gone = set(names) - {first.name}
    merged = tuple(
        single if rod.name == first.name else rod for rod in mechanism.rods if rod.name not in gone
    )
    step = Step(
        name="merge parallel rods",
        removed=tuple(rod.name for rod in rods[1:]),
        kept=(first.name,),
        preserved=("mass", "mass center", "inertia about the joints"),
    )
    return replace(mechanism, rods=merged), step


def _summed(parts: Sequence[SlenderPart | Inertia]) -> SlenderPart | Inertia | None:
    slender = [part for part in parts if isinstance(part, SlenderPart)]
    full = [part for part in parts if isinstance(part, Inertia)]
    if slender:
        return total(*slender)
    return total(*full) if full else None
