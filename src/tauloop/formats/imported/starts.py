"""Start values of an imported machine, moved into the ranges of its joints."""

from __future__ import annotations

import math
from dataclasses import replace

from tauloop.mechanism.description.placements import quaternion, with_turns
from tauloop.mechanism.expression import evaluate, negate
from tauloop.mechanism.model import BASE, JOINT_KINDS, Freedom, Joint, Mechanism, Placement, Turn
from tauloop.mechanism.poses import FramePose, rotation_quaternion

#: Tolerance by which a start value may be outside its range, characteristic lengths or rad.
RANGE_TOLERANCE = 1e-9


def clamp_initial_positions(
    mechanism: Mechanism, *, is_chosen: bool
) -> tuple[Mechanism, tuple[str, ...]]:
    """Return the machine with start values moved into the joint ranges, and notes on the changes.

    Args:
        mechanism: the machine as in its file.
        is_chosen: whether the user chose these start values. If so, they are moved to the nearest
            end of the range; otherwise to its middle.

    Returns:
        The machine, and a note for each joint that was moved.
    """
    notes: list[str] = []
    length = mechanism.characteristic_length
    joints = tuple(
        joint if joint.is_cut else _clamped(joint, length, is_chosen, notes)
        for joint in mechanism.joints
    )
    return (replace(mechanism, joints=joints) if notes else mechanism), tuple(notes)


def _clamped(joint: Joint, length: float, is_chosen: bool, notes: list[str]) -> Joint:
    kind = JOINT_KINDS[joint.kind]
    reference = list(joint.reference)
    for i, (freedom, is_angular) in enumerate(zip(joint.freedoms, kind.angular, strict=False)):
        if i >= len(reference) or kind.coordinates[i].startswith("q"):
            break
        start, lower, upper = reference[i], freedom.lower, freedom.upper
        tolerance = RANGE_TOLERANCE * (1.0 if is_angular else length)
        if lower - tolerance <= start <= upper + tolerance:
            continue
        end = min(max(start, lower), upper)
        reference[i] = (
            end if is_chosen or math.isinf(lower) or math.isinf(upper) else 0.5 * (lower + upper)
        )
        factor, unit = (180 / math.pi, "deg") if is_angular else (1.0, "m")
        start, lower, upper, new_start = (factor * x for x in (start, lower, upper, reference[i]))
        notes.append(
            f"{joint.velocity_names[i]} starts at {new_start:.4g} {unit}, because its position in "
            f"the file, {start:.4g} {unit}, is outside its range, "
            f"{lower:.4g} to {upper:.4g} {unit}"
        )
    return replace(joint, reference=tuple(reference))


def free_joint(
    name: str, body: str, pose: FramePose, freedoms: tuple[Freedom, ...] = (Freedom(),) * 6
) -> Joint:
    """Return a free joint whose body starts at a pose in the base frame."""
    return Joint(
        name=name,
        kind="free",
        parent=Placement(body=BASE),
        child=Placement(body=body),
        reference=tuple(
            float(value) for value in (*pose.position, *rotation_quaternion(pose.rotation))
        ),
        freedoms=freedoms,
    )


def ball_joint(
    *,
    name: str,
    near: Placement,
    far: Placement,
    start: tuple[Turn, ...],
    is_reversed: bool,
    freedoms: tuple[Freedom, ...],
) -> Joint:
    """Return a ball joint from its two frames, which coincide at the pose of the file.

    Args:
        name: name of the joint.
        near, far: frames on the body nearer to the base and on the other body.
        start: constant rotations from the near to the far frame at the identity quaternion.
        is_reversed: whether the far body is the joint's parent.
        freedoms: the `Freedom` of each of its three velocities.
    """
    inverse_turns = tuple(Turn(turn.axis, negate(turn.angle)) for turn in reversed(start))
    near = with_turns(near, inverse_turns)
    parent, child, turns = (far, near, inverse_turns) if is_reversed else (near, far, start)
    reference = quaternion([(turn.axis, float(evaluate(turn.angle, {}))) for turn in turns])
    return Joint(
        name=name,
        kind="spherical",
        parent=parent,
        child=child,
        reference=reference,
        freedoms=freedoms,
    )
