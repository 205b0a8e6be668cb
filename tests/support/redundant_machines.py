"""Shipped machines that are given more actuators than freedoms."""

from __future__ import annotations

import re
from functools import cache

from tauloop import Model, loads
from tauloop.formats.library import source_path

THIRD = "  motor_3: {on: elbow_2, inertia: rotor_inertia, force: 8 N m}\nplatform:\n  body:"
PROP = """rods:
  prop:
    from: {on: base, at: [0.05 m, 0.02 m, 0.1 m]}
    to: plate
    model: massless
    telescopic: {reference: 0.6 m}
actuators:
  fourth: {on: prop, force: 100 N}
platform:
"""
#: Machines whose drives are more than their freedoms: file, and what is changed in it.
CHANGES = {
    "five_bar": ("platform:\n  body:", THIRD),
    "delta": ("platform:\n", PROP),
    "four_bar": ("  motor: {on", "  second: {on: rocker_pin, force: 2 N m}\n  motor: {on"),
    # the place of the platform stands, in terms that cancel, in loops that are closed before it is
    # known
    "par4": (
        "frames:    # middle",
        "actuators:\n  fifth: {on: turn, force: 60 N m}\nframes:    # middle",
    ),
    # cables as struts that push too: eight for six freedoms, unlike angles and lengths
    "cable_robot": (re.compile(r"\n *tension: .*"), ""),
}


@cache
def redundant(name: str) -> Model:
    """A machine with more actuators than freedoms, without friction of joints."""
    text, (old, new) = source_path(name).read_text(encoding="utf-8"), CHANGES[name]
    changed = old.sub(new, text) if isinstance(old, re.Pattern) else text.replace(old, new)
    assert changed != text
    mechanism = loads(re.sub(r"\n *friction: {.*", "", changed))
    dry = [leaf for leaf in mechanism.parameters.names if "coulomb" in leaf]
    made = Model(mechanism.with_values(dict.fromkeys(dry, 0.0)))
    assert made.assembly.is_redundant
    assert not made.assembly.passive
    return made
