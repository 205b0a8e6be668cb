"""Links with a ball joint at each end. They can spin freely about the line between the joints.

Most file formats describe rods as such links.
"""

from __future__ import annotations

import numpy as np

from tauloop.mechanism.model import JOINT_KINDS, Joint, Mechanism

#: Bodies lighter than this fraction of the heaviest one are treated as massless. Exporters write
#: such masses for the links between the three hinges that represent a ball joint.
NEGLIGIBLE_MASS = 1e-6


def lies_between_balls(mechanism: Mechanism, bodies: tuple[str, ...]) -> bool:
    """Return whether the bodies form a link with three free rotations at each of its two ends."""
    return rotations_at_ends(mechanism, bodies) == [3, 3]


def lies_between_hinges(mechanism: Mechanism, bodies: tuple[str, ...]) -> bool:
    """Return whether the bodies form a link between two hinges.

    Such a link can rotate while its neighbors are fixed only if its hinges are coaxial.
    """
    return rotations_at_ends(mechanism, bodies) == [1, 1]


def rotations_at_ends(mechanism: Mechanism, bodies: tuple[str, ...]) -> list[float]:
    """Return the number of free rotations at each end of a link; infinity if it can also slide.

    A ball may be one joint, or several joints with bodies of no or negligible mass between them.
    """
    massless = _massless(mechanism)
    link = {name for name in bodies if name not in massless} or set(bodies)
    ends = []
    for joint in mechanism.joints:
        sides = {joint.parent.body, joint.child.body}
        if len(sides & link) != 1:
            continue
        rotations, neighbor = _rotations_to_neighbor(
            mechanism, joint, (sides - link).pop(), massless
        )
        if neighbor is not None and neighbor not in link:  # a link may consist of welded bodies
            ends.append(rotations)
    return ends


def _massless(mechanism: Mechanism) -> set[str]:
    """Return the bodies without inertia or of negligible mass."""
    inertias = {body.name: body.inertia for body in mechanism.bodies if body.inertia is not None}
    masses = {name: mechanism.value(inertia.mass) for name, inertia in inertias.items()}
    negligible = NEGLIGIBLE_MASS * max(masses.values(), default=0.0)
    return {body.name for body in mechanism.bodies if masses.get(body.name, 0.0) <= negligible}


def _rotations_to_neighbor(
    mechanism: Mechanism, joint: Joint, body: str, massless: set[str]
) -> tuple[float, str | None]:
    """Return the free rotations between a link and its neighbor, and the neighbor's name.

    The neighbor is the next body that has mass, connects more than two joints, or is the platform.

    Args:
        mechanism: the machine.
        joint: the joint at the link.
        body: the body on the other side of the joint.
        massless: bodies without inertia or of negligible mass.

    Returns:
        The number of rotations, infinite if the neighbor can also slide; and the name of the
        neighbor, None if there is none.
    """
    rotations, passed = 0.0, {joint.name}
    while True:
        angular = JOINT_KINDS[joint.kind].angular
        rotations += len(angular) if all(angular) else np.inf
        if body not in massless or body == mechanism.platform.body:
            return rotations, body
        further = [
            other
            for other in mechanism.joints
            if other.name not in passed and body in (other.parent.body, other.child.body)
        ]
        if len(further) != 1:
            return rotations, body if further else None
        joint = further[0]
        passed.add(joint.name)
        body = joint.child.body if joint.parent.body == body else joint.parent.body
