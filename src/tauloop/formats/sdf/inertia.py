"""Inertia of SDF links with ``<inertial auto="true">``, computed from collisions (SDF 1.11).

The density is that of the collision or, if absent, of the ``<inertial>``, or 1000 kg/m^3. If the
``<inertial>`` states a mass, the result is scaled to it, as in libsdformat 15.2 and later.
"""

from __future__ import annotations

import numpy as np

from tauloop.formats.imported.shape_inertia import solid_inertia, solid_volume, summed
from tauloop.formats.sdf.model import SdfReader, descend
from tauloop.formats.xml.nodes import XmlNode
from tauloop.mechanism.links.rigid_tree import LinkInertia

#: Default density, kg/m^3: that of water.
DEFAULT_DENSITY = 1000.0
#: For each shape, its elements with their number of values, and the factors from these values to
#: the sizes of `solid_volume`.
_ROUND = ({"radius": 1, "length": 1}, (1.0, 0.5))
_SOLID_SHAPES: dict[str, tuple[dict[str, int], tuple[float, ...]]] = {
    "box": ({"size": 3}, (0.5, 0.5, 0.5)),
    "sphere": ({"radius": 1}, (1.0,)),
    "ellipsoid": ({"radii": 3}, (1.0, 1.0, 1.0)),
    "cylinder": _ROUND,
    "capsule": _ROUND,
    "cone": _ROUND,
}


def is_automatic(inertial: XmlNode | None) -> bool:
    """Return whether an ``<inertial>`` is computed from the collisions of its link."""
    return inertial is not None and inertial.attributes.get("auto", "").strip().lower() in (
        "true",
        "1",
    )


def collision_inertia(
    reader: SdfReader, name: str, link: XmlNode, inertial: XmlNode
) -> LinkInertia | None:
    """Return the inertia of a link from its collisions, in the link's frame; None on an error."""
    collisions = list(link.all("collision"))
    remedy = (
        "add a <collision> with a box, cylinder, sphere, capsule, ellipsoid or cone, "
        "or write mass and inertia"
    )
    if not collisions:
        reader.problem(
            inertial,
            name,
            'its inertia is to be computed (auto="true"), but it has no <collision>',
            remedy,
        )
        return None
    default_density = reader.child_number(inertial, name, "density", DEFAULT_DENSITY)
    inertias = [_shape_inertia(reader, name, node, default_density) for node in collisions]
    if any(inertia is None for inertia in inertias):
        return None
    total = summed([inertia for inertia in inertias if inertia is not None])
    mass = reader.child_number(inertial, name, "mass", total.mass)
    if not mass > 0.0:
        if np.isfinite(mass):
            reader.problem(
                inertial, name, f"the mass is {mass:g} kg", "give a positive mass, or omit it"
            )
        return None
    return LinkInertia(
        mass=mass, center=total.center, about_center=total.about_center * (mass / total.mass)
    )


def _shape_inertia(
    reader: SdfReader, name: str, node: XmlNode, default_density: float
) -> LinkInertia | None:
    """Return the inertia of one collision, in the link's frame; None on an error."""
    geometry = descend(node, "geometry")
    shapes = [] if geometry is None else geometry.children
    shape = shapes[0] if shapes else None
    collision = node.attributes.get("name", "collision")
    if shape is None or shape.tag not in _SOLID_SHAPES:
        shape_name = shape.tag if shape else "no shape"
        problem = (
            "its inertia is automatic, and the inertia of collision "
            f"{collision!r} ({shape_name}) is not supported"
        )
        names = ", ".join(_SOLID_SHAPES)
        remedy = f"use one of {names}, or add mass, pose and inertia to <inertial>"
        reader.problem(node, name, problem, remedy)
        return None
    tags, factors = _SOLID_SHAPES[shape.tag]
    numbers: list[float] = []
    for tag, count in tags.items():
        element = shape.first(tag)
        if element is None:
            reader.problem(shape, name, f"collision {collision!r} has no <{tag}>", f"add <{tag}>")
            return None
        numbers += reader.numbers(element, name, (np.nan,) * count)
    density = reader.child_number(node, name, "density", default_density)
    values = np.array([*numbers, density])
    if not (np.isfinite(values).all() and (values > 0.0).all()):
        what = f"collision {collision!r} has the sizes {numbers} and the density {density:g} kg/m^3"
        reader.problem(node, name, what, "give positive numbers")
        return None
    size = np.array(numbers) * factors
    return solid_inertia(
        shape.tag, size, density * solid_volume(shape.tag, size)[0], reader.pose_on(name, node)
    )
