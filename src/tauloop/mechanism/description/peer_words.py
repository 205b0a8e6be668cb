"""Words of other programs and of the literature, with the words of machine files that they mean."""

from __future__ import annotations

from collections.abc import Collection, Mapping

#: Words in lower case, each with words of machine files, of which those that are permitted in a
#: place are suggested there. Text after a colon is the form of the value.
PEER_WORDS: Mapping[str, tuple[str, ...]] = {
    # Types of joints
    "hinge": ("revolute",),
    "continuous": ("revolute",),
    "rotary": ("revolute",),
    "pin": ("revolute",),
    "r": ("revolute",),
    "slide": ("prismatic",),
    "slider": ("prismatic",),
    "linear": ("prismatic",),
    "p": ("prismatic",),
    "ball": ("spherical",),
    "s": ("spherical",),
    "cardan": ("universal",),
    "hooke": ("universal",),
    "gimbal": ("universal",),
    "u": ("universal",),
    "c": ("cylindrical",),
    "weld": ("fixed",),
    "rigid": ("fixed", "slender"),
    "floating": ("free",),
    "freejoint": ("free",),
    "free_flyer": ("free",),
    # Keys
    "links": ("bodies",),
    "motors": ("actuators",),
    "variables": ("parameters",),
    "constants": ("parameters",),
    "joint": ("on",),
    "gear": ("ratio",),
    "gear_ratio": ("ratio",),
    "reduction": ("ratio",),
    "armature": ("inertia",),
    "rotor_inertia": ("inertia",),
    "damping": ("friction: {viscous: ...}",),
    "frictionloss": ("friction: {coulomb: ...}",),
    "effort": ("force",),
    "stroke": ("limits",),
    "origin": ("at",),
    "xyz": ("at",),
    "pos": ("at",),
    "position": ("at",),
    "translation": ("at",),
    "rpy": ("turn: [{z: ...}, {y: ...}, {x: ...}]",),
    "euler": ("turn: [{x: ...}, {y: ...}, {z: ...}]",),
    "rotation": ("turn: [{z: ...}]",),
    "rotate": ("turn: [{z: ...}]",),
    "orientation": ("turn: [{z: ...}]",),
    "home": ("reference",),
    "initial": ("reference",),
    "start": ("reference",),
    "tcp": ("tool",),
    "end_effector": ("platform", "tool"),
    # Bodies
    "world": ("base",),
    "ground": ("base",),
    "frame": ("base",),
    "base_link": ("base",),
}

#: Examples of keys whose form is hard to guess.
EXAMPLES: Mapping[str, str] = {
    "gravity": "[0, 0, -9.81 m/s^2]",
    "provenance": "{status: chosen, source: a drawing}",
}

#: Characters that expressions do not have, and what to write instead.
PEER_CHARACTERS: Mapping[str, str] = {
    "°": "write deg, as in 60 deg",
    "µ": "write u, as in 5 um",
    "μ": "write u, as in 5 um",
    "²": "write ^2",
    "³": "write ^3",
    "·": "write * between factors, and a space between units",
    "×": "write *",
    "−": "write the minus sign of the keyboard, -",
    "π": "write pi",
    ":": "write a ratio as a quotient, such as 1 / 50",
    "%": "write the fraction, such as 0.05 for 5 %",
}


def peer_word(word: str, known: Collection[str]) -> str:
    """Return a question ``did you mean revolute?`` for a word of others; "" if none fits.

    Args:
        word: the unknown word.
        known: the words that are permitted in its place.
    """
    for name in PEER_WORDS.get(word.lower(), ()):
        if name.partition(":")[0] in known:
            return f"did you mean {name}?"
    return ""
