"""Checks of a machine as a whole: everything hangs on the base, and no freedom has two motors."""

from __future__ import annotations

from collections.abc import Mapping

from tauloop.mechanism.cursor import Cursor
from tauloop.mechanism.model import BASE, Actuator, Joint
from tauloop.mechanism.spanning import PLATFORM_JOINT


def check_connection(bodies: Mapping[str, Cursor], joints: Mapping[str, Joint | None], platform: Cursor | None) -> None:
    """Note bodies that no chain of joints leads to from the base; a rod alone does not hold a body.

    Args:
        bodies: where each body stands.
        joints: the joints; one that could not be read (None, or the platform's missing) leaves the matter open.
        platform: where the platform stands.
    """
    has_motion = platform is not None and platform.has("motion")
    if any(joint is None for joint in joints.values()) or (has_motion and PLATFORM_JOINT not in joints):
        return
    reached = {BASE}
    waiting = [joint for joint in joints.values() if joint is not None and not joint.is_cut]
    while True:
        further = [j for j in waiting if (j.parent.body in reached) != (j.child.body in reached)]
        if not further:
            break
        for joint in further:
            reached |= {joint.parent.body, joint.child.body}
    platform_body = platform.word("body") if platform is not None else None
    for name, cursor in bodies.items():
        if name not in reached:
            is_idle_platform = name == platform_body and not has_motion
            remedy = "add platform.motion, or a joint" if is_idle_platform else "give it a joint (a rod is none)"
            cursor.problem(f"no chain of joints leads from {BASE} to {name}", remedy)


def check_actuators(places: Mapping[str, Cursor], actuators: Mapping[str, Actuator | None]) -> None:
    """Note two actuators that each drive one and the same coordinate alone."""
    owner: dict[str, str] = {}
    for name, actuator in actuators.items():
        if actuator is None or len(actuator.drives) != 1:
            continue
        coordinate = actuator.drives[0][0]
        if coordinate in owner:
            places[name].problem(
                f"{coordinate} is driven by {owner[coordinate]} already",
                "remove one of the two actuators, or couple them",
            )
        owner.setdefault(coordinate, name)
