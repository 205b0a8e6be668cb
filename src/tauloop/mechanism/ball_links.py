"""Links between two ball joints, whose spin moves nothing else: rods, as most files describe them."""

from __future__ import annotations

import numpy as np

from tauloop.mechanism.model import JOINT_KINDS, Joint, Mechanism

#: A body lighter than this share of the heaviest has no part in forces: exporters write such masses
#: for the links between the three joints that stand for a ball.
NEGLIGIBLE_MASS = 1e-6


def lies_between_balls(mechanism: Mechanism, bodies: tuple[str, ...]) -> bool:
    """Whether bodies are a link with two ends, each with three rotations to its neighbour."""
    return rotations_at_ends(mechanism, bodies) == [3, 3]


def is_pin(mechanism: Mechanism, bodies: tuple[str, ...]) -> bool:
    """Whether bodies are a link between two hinges; where it can spin by itself, these have one axis."""
    return rotations_at_ends(mechanism, bodies) == [1, 1]


def rotations_at_ends(mechanism: Mechanism, bodies: tuple[str, ...]) -> list[float]:
    """Return how many rotations are free at each end of a link; infinity where it can slide as well.

    A ball may be one joint, or several with bodies of no mass or of a negligible one between them.
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
        if neighbor is not None and neighbor not in link:  # a link may be cut in two and welded
            ends.append(rotations)
    return ends


def _massless(mechanism: Mechanism) -> set[str]:
    """Return the bodies without inertia, and those whose mass is negligible."""
    inertias = {body.name: body.inertia for body in mechanism.bodies if body.inertia is not None}
    masses = {name: mechanism.value(inertia.mass) for name, inertia in inertias.items()}
    negligible = NEGLIGIBLE_MASS * max(masses.values(), default=0.0)
    return {body.name for body in mechanism.bodies if masses.get(body.name, 0.0) <= negligible}


def _rotations_to_neighbor(
    mechanism: Mechanism, joint: Joint, body: str, massless: set[str]
) -> tuple[float, str | None]:
    """Rotations that are free between a link and the first body with mass behind a joint; None for that at a dead end.

    Args:
        mechanism: the machine.
        joint: at the link.
        body: on its other side.
        massless: bodies without inertia.

    Returns:
        Their number, infinite where the body can slide as well; and the body.
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
