"""Cables of a machine; rods and motors whose names suggest a cable or a winch.

A rod with the key `tension` is a cable (`Mechanism.cables`). A rod without it pushes as well as
pulls, regardless of its name.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tauloop.common.errors import Problem
from tauloop.mechanism.model import Mechanism

#: Words in the names of rods, legs and motors that suggest a cable.
_WORDS = re.compile(
    r"(?<![a-z])(cable|rope|wire|tendon|tether|winch)(s|es)?(?![a-z])", re.IGNORECASE
)


def struts(mechanism: Mechanism) -> Mechanism:
    """Return the machine with its cables replaced by rods that also push.

    A machine without cables is returned unchanged.
    """
    if not mechanism.cables:
        return mechanism
    return replace(mechanism, rods=tuple(replace(rod, tension=None) for rod in mechanism.rods))


def cable_problems(mechanism: Mechanism) -> list[Problem]:
    """Return a problem for a calculation that lets cables push; empty if there are no cables."""
    names = list(mechanism.cables)
    if not names:
        return []
    several = " (one of several)" if len(names) > 1 else ""
    what = f"is a cable{several}, but this calculation would let it push"
    remedy = "use `simulate_cables` (command: `tauloop simulate`), or remove `tension` to treat it as a strut"
    return [Problem(where=names[0], what=what, remedy=remedy, file=mechanism.file)]


def dry_friction(mechanism: Mechanism) -> list[tuple[str, str]]:
    """Return (element, key in the file) for friction that jumps at zero speed."""
    freedoms = [(name, freedom.friction) for name, freedom in mechanism.freedoms.items()]
    freedoms += [(actuator.name, actuator.friction) for actuator in mechanism.actuators]
    freedoms += [(loss.name, loss.friction) for loss in mechanism.losses]
    elements = []
    for name, friction in freedoms:
        for key in ("coulomb", "static", "coulomb_asymmetry"):
            term = getattr(friction, key, None)
            if term is not None and mechanism.value(term) != 0.0:
                elements.append((name, key))
    return elements


def called_cables(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the rods named as cables, directly or by their motors, that have no `tension`.

    Such rods push as well as pull.
    """
    motors: dict[str, str] = {}
    for actuator in mechanism.actuators:
        for name, _ in actuator.drives:
            motors[name] = f"{motors.get(name, '')} {actuator.name}"
    return tuple(
        rod.name
        for rod in mechanism.rods
        if rod.tension is None
        and _WORDS.search(f"{rod.name} {motors.get(rod.name, '')}".replace("_", " "))
    )


def unbounded_note(mechanism: Mechanism) -> tuple[Problem, ...]:
    """Return a note on rods that are named as cables but would push; empty if there are none."""
    names = called_cables(mechanism)
    if not names:
        return ()
    rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (
        Problem(
            where="rods",
            what=f"{', '.join(names[:3])}{rest}: named as cables, but they push as well as pull "
            f"because they have no `tension`",
            remedy="give them `tension: {least: ..., greatest: ...}`, or rename them if they are struts",
            file=mechanism.file,
        ),
    )


def winch_names(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the names of the motors that are named as winches and drive no rod.

    Such motors move lines over pulleys.
    """
    rods = {rod.name for rod in mechanism.rods}
    winches = []
    for actuator in mechanism.actuators:
        driven = {name for name, _ in actuator.drives}
        if _WORDS.search(actuator.name) and not driven & rods:
            winches.append(actuator.name)
    return tuple(winches)
