"""Cables: the key `tension` of rods, and rods that are called cables without it."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from tauloop.errors import Problem
from tauloop.mechanism.cursor import Cursor
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.tension import Tension
from tauloop.mechanism.values import ValueReader

#: Words in the names of rods, legs and motors that say that a rod is a cable.
_WORDS = re.compile(r"(?<![a-z])(cable|rope|wire|tendon|tether|winch)(s|es)?(?![a-z])", re.IGNORECASE)


def read_tension(cursor: Cursor | None, values: ValueReader) -> Tension | None:
    """The bounds of a cable; None without them, or if something is wrong, which is noted."""
    if cursor is None:
        return None
    least, greatest, restitution = (values.number(cursor.get(key)) for key in ("least", "greatest", "restitution"))
    stiffness, damping = (values.expression(cursor.get(key)) for key in ("stiffness", "damping"))
    if least is not None and greatest is not None and not greatest > least:
        remedy = (
            "exchange them" if greatest < least else "leave a range: forces that are to be kept exactly are preloads"
        )
        cursor.problem(f"the greatest tension, {greatest:g} N, is not above the least, {least:g} N", remedy, "greatest")
    if cursor.has("damping") and not cursor.has("stiffness"):
        cursor.problem("a cable without stiffness does not stretch, so nothing is damped", "add stiffness", "damping")
    if cursor.has("restitution") and cursor.has("stiffness"):
        cursor.problem("a cable with stiffness rebounds by itself", "keep one of them", "restitution")
    if restitution is not None and not 0.0 <= restitution <= 1.0:
        cursor.problem(
            f"must be 0 to 1, got {restitution:g}", "give the share of its speed that is left", "restitution"
        )
    if least is None:
        return None
    return Tension(
        least=least,
        greatest=math.inf if greatest is None else greatest,
        stiffness=stiffness,
        damping=damping,
        restitution=restitution,
    )


def cables(mechanism: Mechanism) -> dict[str, Tension]:
    """Tensions of the rods that are cables, by their names."""
    return {rod.name: rod.tension for rod in mechanism.rods if rod.tension is not None}


def struts(mechanism: Mechanism) -> Mechanism:
    """The same machine with its cables as rods that push as well; itself where it has none."""
    if not cables(mechanism):
        return mechanism
    return replace(mechanism, rods=tuple(replace(rod, tension=None) for rod in mechanism.rods))


def cable_problems(mechanism: Mechanism) -> list[Problem]:
    """What to say where cables would be let push; nothing without them."""
    names = list(cables(mechanism))
    if not names:
        return []
    what = f"is a cable{' (one of several)' if len(names) > 1 else ''}, which would be let push here"
    remedy = "use `simulate_cables` (by command: `tauloop simulate`), or take `tension` away to treat it as a strut"
    return [Problem(where=names[0], what=what, remedy=remedy, file=mechanism.file)]


def called_cables(mechanism: Mechanism) -> tuple[str, ...]:
    """Rods that are cables by their names, or by those of their motors, but have no `tension`: they push as well."""
    motors: dict[str, str] = {}
    for actuator in mechanism.actuators:
        for name, _ in actuator.drives:
            motors[name] = f"{motors.get(name, '')} {actuator.name}"
    return tuple(
        rod.name
        for rod in mechanism.rods
        if rod.tension is None and _WORDS.search(f"{rod.name} {motors.get(rod.name, '')}".replace("_", " "))
    )


def unbounded_note(mechanism: Mechanism) -> tuple[Problem, ...]:
    """A word on rods that are called cables and would push like struts; none where there are none."""
    names = called_cables(mechanism)
    if not names:
        return ()
    rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (
        Problem(
            where="rods",
            what=f"{', '.join(names[:3])}{rest}: called cables, but without bounds they push as well as they pull",
            remedy="give them `tension: {least: ..., greatest: ...}`, or another name if they are struts",
            file=mechanism.file,
        ),
    )
