"""What an MJCF file may say beside the machine that changes its motion, and is not read: refused, or named on its own.

Masses that MuJoCo's compiler changes, and forces that an option switches off, would give another
machine without a word. The drag of the surroundings is left out, and results that need forces are
doubtful.
"""

from __future__ import annotations

from collections.abc import Mapping

from tauloop.formats.mjcf.settings import FOR_MUJOCO, MjcfReader
from tauloop.formats.xml.nodes import XmlNode

#: Share of the heaviest mass, and of its moment at the machine's largest length, that a bound may
#: add to zeros.
_BOUND_SHARE = 1e-4
#: Forces that an option can switch off.
_FORCES = ("constraint", "equality", "frictionloss", "spring", "damper")
_MEDIUM = ("density", "viscosity", "wind")


def refuse_what_acts(reader: MjcfReader, root: XmlNode) -> None:
    """Add problems for settings that change the machine and are not read; list the drag that is left out."""
    _refuse_masses(reader, root, {"settotalmass": 0.0})
    for option in root.all("option"):
        for flag in option.all("flag"):
            for key in _FORCES:
                if reader.word(flag, key) == "disable":
                    what = f"{key}=disable switches forces off that the file describes"
                    reader.problem(
                        flag, f"option.flag.{key}", what, "remove the flag, or what it switches off"
                    )
        medium = {key: reader.numbers(option, "option", key) for key in _MEDIUM}
        acting: list[str] = []
        for key, numbers in medium.items():
            if any(numbers):
                text = " ".join(f"{number:g}" for number in numbers)
                acting.append(f"{key} {text}")
        if any(medium["density"]) or any(medium["viscosity"]):
            reader.omitted.append(f"the drag of a medium ({', '.join(acting)})")


def refuse_bounds(reader: MjcfReader, root: XmlNode, heaviest: float, largest: float) -> None:
    """Add problems for bounds of masses and moments that change the machine, in addition to letting zeros pass.

    Args:
        reader: collects the problems.
        root: the element ``<mujoco>``.
        heaviest: the largest mass of a body, kg.
        largest: the largest length of the file, m.
    """
    sizes = {"boundmass": heaviest, "boundinertia": heaviest * largest**2}
    allowed = {
        key: min(FOR_MUJOCO, _BOUND_SHARE * size) if size else FOR_MUJOCO
        for key, size in sizes.items()
    }
    _refuse_masses(reader, root, allowed)


def _refuse_masses(reader: MjcfReader, root: XmlNode, allowed: Mapping[str, float]) -> None:
    """Refuse settings of the compiler that are above what leaves the masses of a file as they are."""
    for node in root.all("compiler"):
        for key, most in allowed.items():
            if reader.number(node, "compiler", key, 0.0) > most:
                what = f"{key}={node.attributes[key]} changes the masses of the file"
                reader.problem(
                    node, f"compiler.{key}", what, "let MuJoCo write the model out: mj_saveLastXML"
                )
