"""Texts of shipped machines with some of them replaced."""

from __future__ import annotations

from tauloop.formats import machine_path

#: For the arm: a motor that turns two joints, with dry friction on it.
COUPLED_ELBOW = (
    "elbow_motor: {on: elbow, ratio: gear, inertia: rotor_inertia, force: 0.25 N m, speed: 4000 rpm}",
    "elbow_motor: {drives: {shoulder: 37, elbow: 41}, friction: {coulomb: 0.01 N m}}",
)
#: For the five-bar, whose runs are compared: dry friction jumps, and runs with other steps part
#: there.
WITHOUT_COULOMB = (", coulomb: 0.05 N m", "")


def shipped_text(name: str, *changes: tuple[str, str]) -> str:
    """Text of a shipped machine; each change replaces all of what it names, which must be there."""
    text = machine_path(name).read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, f"{name} does not say {old!r}"
        text = text.replace(old, new)
    return text
