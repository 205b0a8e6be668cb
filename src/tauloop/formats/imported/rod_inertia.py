"""Inertia of a link about the line between its joints, and the rod's independent parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from tauloop.common.records import dataclass
from tauloop.formats.imported.leaves import Leaves
from tauloop.formats.imported.linkage import Linkage
from tauloop.formats.imported.rod_ends import DIRECTION_TOLERANCE, POINT_TOLERANCE, End, orientation
from tauloop.formats.options import RodRecognition
from tauloop.mechanism.description.placements import constant_vector
from tauloop.mechanism.expression import add, multiply
from tauloop.mechanism.links.rigid_tree import LinkInertia
from tauloop.mechanism.model import Inertia, Mechanism, SlenderPart, Vector

#: Moments of inertia count as equal, and products as zero, within this fraction of the largest
#: moment.
_MOMENT_TOLERANCE = 1e-6
#: An axial inertia below this fraction of the transverse one counts as zero. Exporters write small
#: values if zero is not permitted.
_NEGLIGIBLE_AXIAL_FRACTION = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class _AboutLine:
    """Inertia of a link relative to the line between its joints.

    Attributes:
        center: distance of the mass center from A, m.
        perpendicular, axial: moments of inertia perpendicular to and about the line, about the mass
            center, kg m^2.
        is_symmetric: whether the mass center lies on the line and the inertia is axisymmetric about
            it.
    """

    center: float
    perpendicular: float
    axial: float
    is_symmetric: bool

    @property
    def is_thin(self) -> bool:
        """Return whether the inertia about the line is zero."""
        return self.is_symmetric and self.axial <= _NEGLIGIBLE_AXIAL_FRACTION * self.perpendicular


def _about_line(inertia: LinkInertia, part: RodPart, length: float) -> _AboutLine:
    """Return the inertia of a link relative to the line of its part."""
    mass, about_center, z, r = (
        inertia.mass,
        inertia.about_center,
        part.line,
        inertia.center - part.end,
    )
    P = np.eye(3) - np.outer(z, z)
    transverse, axial = P @ about_center @ P, float(z @ about_center @ z)
    perpendicular = 0.5 * float(np.trace(transverse))
    tolerance = _MOMENT_TOLERANCE * max(perpendicular, axial, mass * length**2)
    is_round = (
        np.abs(transverse - perpendicular * P).max() <= tolerance
        and np.abs(P @ about_center @ z).max() <= tolerance
    )
    is_centered = mass * float(np.linalg.norm(P @ r)) <= POINT_TOLERANCE * mass * length
    return _AboutLine(
        center=float(r @ z),
        perpendicular=perpendicular,
        axial=axial,
        is_symmetric=bool(is_round and is_centered),
    )


def source_of(mechanism: Mechanism, link: Sequence[str]) -> str:
    """Return the source text for the parameters of a link: file and bodies."""
    return f"{Path(mechanism.file).name}: {', '.join(link)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RodPart:
    """One link of a rod.

    Attributes:
        name: name of the part: "rod", "lower" or "upper".
        link: bodies of the link.
        end: the joint center (3,) about which the inertia is taken.
        line: unit vector (3,) from there to the rod's other end.
        rotation: axes (3, 3) of the link's first body in the frame of the first part's first body.
    """

    name: str
    link: tuple[str, ...]
    end: np.ndarray
    line: np.ndarray
    rotation: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class RodInertias:
    """Inertias of a rod's parts as in `Rod`, the rod's spin, and the parameters of each part."""

    parts: tuple[SlenderPart | Inertia | None, ...]
    spin: Literal["universal", "none"]
    first_axis: Vector | None
    leaves: tuple[Leaves, ...]


def rod_inertias(
    linkage: Linkage,
    name: str,
    parts: Sequence[RodPart],
    A: End,
    length: float,
    options: RodRecognition,
    notes: list[str],
    *,
    unconverted: str,
    adjective: str = "",
) -> RodInertias | None:
    """Return the inertias as a slender rod, or as a rod with full inertia tensor; else None.

    Args:
        linkage: the machine.
        name: name of the rod.
        parts: links of the rod; the link at A comes first.
        A: the end with a universal joint, if there is one.
        length: length at the start, m.
        options: whether spins may be locked.
        notes: receives notes on the result.
        unconverted: noun for the element in notes if it is not converted.
        adjective: adjective before "rod" in notes, with a space at its end.
    """
    leaves = tuple(
        Leaves(source=source_of(linkage.mechanism, part.link), status="inferred") for part in parts
    )
    inertias = [linkage.inertia(part.link) for part in parts]
    lines = [
        _about_line(inertia, part, length) for inertia, part in zip(inertias, parts, strict=True)
    ]
    rows = list(zip(parts, inertias, lines, leaves, strict=True))
    axial, z = sum(line.axial for line in lines), parts[0].line
    if A.kind == "universal" and not all(line.is_thin for line in lines):
        if abs(float(A.second_axis @ z)) > DIRECTION_TOLERANCE:
            notes.append(
                f"{name} was not converted: the second axis of its universal joint is not "
                "perpendicular to the rod"
            )
            return None
        y = A.second_axis * orientation(linkage, parts[0].link, A, z)
        R_A = np.column_stack([np.cross(y, z), y, z]).T
        notes.append(
            f"{name} is a {adjective}rod with full inertia tensor between a universal and a ball "
            "joint"
        )
        solids = tuple(
            part_leaves.inertia(
                f"{name}.{part.name}",
                _in_axes(inertia, R_A @ part.rotation, part.end),
                lower=-np.inf,
            )
            if inertia.mass > 0.0 or inertia.about_center.any()
            else None
            for part, inertia, _, part_leaves in rows
        )
        h0, h1, h2 = (float(component) for component in A.first_axis)
        return RodInertias(
            parts=solids, spin="universal", first_axis=constant_vector((h0, h1, h2)), leaves=leaves
        )
    if not all(line.is_symmetric for line in lines):
        notes.append(
            f"{name} remains a {unconverted}: it is between two ball joints and not axisymmetric"
        )
        return None
    if not all(line.is_thin for line in lines) and not options.lock_spins:
        notes.append(
            f"{name} remains a {unconverted}: it may spin about its line, with an inertia of "
            f"{axial:.3g} kg m^2"
        )
        return None
    slender = tuple(
        _slender(part_leaves, f"{name}.{part.name}", inertia.mass, line)
        if inertia.mass > 0.0
        else None
        for part, inertia, line, part_leaves in rows
    )
    unused = f", so its axial inertia of {axial:.3g} kg m^2 has no effect" if axial else ""
    locked = "; its spin is locked" if A.kind == "ball" else ""
    notes.append(
        f"{name} is a {'slender' if any(slender) else 'massless'} {adjective}rod{locked}{unused}"
    )
    return RodInertias(parts=slender, spin="none", first_axis=None, leaves=leaves)


def _in_axes(inertia: LinkInertia, R: np.ndarray, origin: np.ndarray) -> LinkInertia:
    """Return the same inertia in axes rotated by R (3, 3), with another origin (3,)."""
    return LinkInertia(
        mass=inertia.mass,
        center=R @ (inertia.center - origin),
        about_center=R @ inertia.about_center @ R.T,
    )


def _slender(leaves: Leaves, name: str, mass: float, line: _AboutLine) -> SlenderPart:
    """Return the inertia of a link about its end.

    The mass center is on the line, with a transverse moment about it.
    """
    m = leaves.leaf(f"{name}.mass", mass, "kg", "inertia")
    s = leaves.leaf(f"{name}.center", line.center, "m", "inertia")
    perpendicular = leaves.leaf(f"{name}.inertia", line.perpendicular, "kg m^2", "inertia")
    h = multiply(m, s)
    return SlenderPart(mass=m, first_moment=h, second_moment=add(perpendicular, multiply(h, s)))
