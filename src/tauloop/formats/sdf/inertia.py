"""Inertia of SDF links that state ``<inertial auto="true">``: it follows from their collisions (SDF 1.11).

The density of a collision is its own, else that of the ``<inertial>``, else 1000 kg/m^3. A mass of
the ``<inertial>`` scales the result, as libsdformat does from 15.2 on.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tauloop.formats.imported.shape_inertia import solid_inertia, solid_volume, summed
from tauloop.formats.sdf.model import SdfReader, descend
from tauloop.formats.xml.nodes import XmlNode
from tauloop.mechanism.rigid_tree import LinkInertia

#: Density without any statement, kg/m^3: that of water.
DENSITY = 1000.0
#: Elements of the shapes, each with the number of its values, and what the size of `solid_volume`
#: is of them.
_Size = Callable[[np.ndarray], np.ndarray]
_SHAPES: dict[str, tuple[dict[str, int], _Size]] = {
    "box": ({"size": 3}, lambda x: x / 2),
    "sphere": ({"radius": 1}, lambda x: x),
    "ellipsoid": ({"radii": 3}, lambda x: x),
    "cylinder": ({"radius": 1, "length": 1}, lambda x: x * [1.0, 0.5]),
    "capsule": ({"radius": 1, "length": 1}, lambda x: x * [1.0, 0.5]),
    "cone": ({"radius": 1, "length": 1}, lambda x: x * [1.0, 0.5]),
}


def is_automatic(inertial: XmlNode | None) -> bool:
    """Return whether an ``<inertial>`` follows from the collisions of its link."""
    return inertial is not None and inertial.attributes.get("auto", "").strip().lower() in (
        "true",
        "1",
    )


def collision_inertia(
    reader: SdfReader, name: str, link: XmlNode, inertial: XmlNode
) -> LinkInertia | None:
    """Return the inertia of a link by its collisions, in the link's frame; None where it has none, which is noted."""
    collisions = list(link.all("collision"))
    remedy = "add a <collision> with a box, cylinder, sphere, capsule, ellipsoid or cone, or write mass and inertia"
    if not collisions:
        reader.problem(
            inertial,
            name,
            'its inertia is automatic (auto="true"), and it has no <collision>',
            remedy,
        )
        return None
    common = reader.leaf(inertial, name, "density", DENSITY)
    parts = [_part(reader, name, node, common) for node in collisions]
    if any(part is None for part in parts):
        return None
    total = summed([part for part in parts if part is not None])
    mass = reader.leaf(inertial, name, "mass", total.mass)
    if not mass > 0.0:
        if np.isfinite(mass):
            reader.problem(
                inertial, name, f"the mass is {mass:g} kg", "give a positive mass, or leave it out"
            )
        return None
    return LinkInertia(
        mass=mass, center=total.center, about_center=total.about_center * (mass / total.mass)
    )


def _part(reader: SdfReader, name: str, node: XmlNode, common: float) -> LinkInertia | None:
    """Return the inertia of one collision, in the link's frame; None where it has none, which is noted."""
    shapes = [] if (geometry := descend(node, "geometry")) is None else geometry.children
    shape = shapes[0] if shapes else None
    word = node.attributes.get("name", "collision")
    if shape is None or shape.tag not in _SHAPES:
        what = f"its inertia is automatic, and that of collision {word!r} ({shape.tag if shape else 'no shape'}) "
        remedy = f"use one of {', '.join(_SHAPES)}, or write mass, pose and inertia into <inertial>"
        reader.problem(node, name, what + "is not computed here", remedy)
        return None
    tags, to_size = _SHAPES[shape.tag]
    numbers: list[float] = []
    for tag, count in tags.items():
        element = shape.first(tag)
        if element is None:
            reader.problem(shape, name, f"collision {word!r} has no <{tag}>", f"add <{tag}>")
            return None
        numbers += reader.numbers(element, name, (np.nan,) * count)
    density = reader.leaf(node, name, "density", common)
    values = np.array([*numbers, density])
    if not (np.isfinite(values).all() and (values > 0.0).all()):
        what = f"collision {word!r} has the sizes {numbers} and the density {density:g} kg/m^3"
        reader.problem(node, name, what, "give positive numbers")
        return None
    size = to_size(np.array(numbers))
    return solid_inertia(
        shape.tag, size, density * solid_volume(shape.tag, size)[0], reader.pose_on(name, node)
    )
