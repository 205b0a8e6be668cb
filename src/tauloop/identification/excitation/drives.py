"""Machines with direct drives on chosen joints instead of their actuators.

Some papers assume such drives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tauloop.common.errors import InputError, Problem
from tauloop.mechanism.expression import Constant
from tauloop.mechanism.model import Actuator, Mechanism
from tauloop.mechanism.suggestions import unknown_names


def driven_at(mechanism: Mechanism, coordinates: Sequence[str]) -> Mechanism:
    """Return the machine with direct drives on the given coordinates instead of its actuators.

    The drives have no force limits.

    Args:
        mechanism: the machine.
        coordinates: scalar joint coordinates or telescopic rods, one for each degree of freedom of
            the machine.

    Raises:
        InputError: a name is unknown or given twice.
    """
    scalar_coordinates = [
        velocity
        for joint in mechanism.joints
        for velocity in joint.velocity_names
        if velocity in joint.coordinate_names
    ]
    scalar_coordinates += [rod.name for rod in mechanism.rods if rod.telescope is not None]
    problems = unknown_names(
        coordinates,
        scalar_coordinates,
        "is not a scalar coordinate of the machine",
        "direct_drives.{}",
        "see `tauloop check`",
    )
    problems += [
        Problem(f"direct_drives.{name}", "is given twice", "give it once")
        for k, name in enumerate(coordinates)
        if name in coordinates[:k]
    ]
    InputError.raise_if_any(problems)
    drives = tuple(Actuator(name=name, drives=((name, Constant(1.0)),)) for name in coordinates)
    return replace(mechanism, actuators=drives)
