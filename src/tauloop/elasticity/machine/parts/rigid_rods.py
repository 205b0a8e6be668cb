"""Springs and masses of rods that remain straight, as elements between the two ends."""

from __future__ import annotations

import numpy as np

from tauloop.elasticity.frame.beams import Array, Matrices
from tauloop.elasticity.frame.structure import Attachment, Element, beam_axes
from tauloop.elasticity.machine.parts.collected import (
    SAME_NODE,
    TRANSLATIONS,
    StructureParts,
    transverse_direction,
)
from tauloop.elasticity.machine.telescopic_rods import (
    PartMass,
    RodRotor,
    TelescopicRod,
    equivalent_mass,
)
from tauloop.mechanism.model import Inertia, Rod, SlenderPart


def add_rotor_mass(
    parts: StructureParts,
    name: str,
    start: tuple[str, Array],
    end: tuple[str, Array],
    inertia: float,
) -> None:
    """Add the inertia of a motor that moves with the length of a rod.

    Args:
        parts: the structure under construction.
        name: name of the rod.
        start, end: bodies or nodes that carry the ends, and positions (N, 3) of the ends.
        inertia: mass that moves with the change of the length, kg.
    """
    if not inertia:
        return
    difference = np.array([[1.0, -1.0], [-1.0, 1.0]])
    M = inertia * np.kron(difference, np.diag([1.0, 0.0, 0.0]))
    zero = np.zeros((6, 6))
    matrices = Matrices(stiffness=zero, mass=M, geometric=zero)
    _add_two_point(parts, f"{name}.rotor", start, end, matrices)
    ends = (start[1], end[1])
    no_mass = PartMass(masses=np.zeros(0), distances=np.zeros(0))
    parts.telescopes[f"{name}.rotor"] = RodRotor(
        bodies=(start[0], end[0]),
        ends=ends,
        axes=beam_axes(*ends, transverse_direction(ends[1] - ends[0])),
        lower=no_mass,
        upper=no_mass.with_point(inertia),
    )


def add_axial_spring(
    parts: StructureParts,
    rod: Rod,
    start: tuple[str, Array],
    end: tuple[str, Array],
    stiffness: float | None,
) -> None:
    """Add a spring along a rod.

    Args:
        parts: the structure under construction.
        rod: rod of the machine; the spring has the same name.
        start, end: bodies or nodes that carry the ends, and positions (N, 3) of the ends.
        stiffness: stiffness of the spring, N/m; None for no stiffness.
    """
    difference = np.array([[1.0, -1.0], [-1.0, 1.0]])
    K = np.kron(difference, np.diag([float(stiffness or 0.0), 0.0, 0.0]))
    length = np.linalg.norm(end[1] - start[1], axis=-1)
    geometric = np.kron(difference, np.diag([0.0, 1.0, 1.0])) / length[:, None, None]
    matrices = Matrices(stiffness=K, mass=np.zeros((6, 6)), geometric=geometric)
    _add_two_point(parts, rod.name, start, end, matrices)


def add_rigid_mass(
    parts: StructureParts,
    rod: Rod,
    start: tuple[str, Array],
    end: tuple[str, Array],
    axial_fractions: tuple[float, float] | None = None,
) -> None:
    """Add the mass of a rigid rod to the coordinates of its ends.

    Perpendicular to the rod, a point at the distance s from A moves by (1 - s/L) u_A + (s/L) u_B.
    Along the rod, all points of a part move by (1 - φ) u_A + φ u_B.

    Args:
        parts: the structure under construction.
        rod: a rod without sections.
        start, end: bodies or nodes that carry the ends, and positions (N, 3) of the ends.
        axial_fractions: φ of the lower and of the upper part; None for a rod of fixed length.
    """
    length = np.linalg.norm(end[1] - start[1], axis=-1)
    M = np.zeros((parts.samples, 2, 2))
    axial = np.zeros((2, 2))
    for part, is_upper in ((rod.lower, False), (rod.upper, True)):
        if part is None:
            continue
        mass, first, second = _line_moments(parts, part)
        _note_offset(parts, rod, part)
        outer, inner = (1, 0) if is_upper else (0, 1)
        M[:, outer, outer] += mass - 2.0 * first / length + second / length**2
        M[:, inner, inner] += second / length**2
        M[:, 0, 1] += first / length - second / length**2
        M[:, 1, 0] += first / length - second / length**2
        if axial_fractions is not None:
            fraction = axial_fractions[is_upper]
            weights = np.array([1.0 - fraction, fraction])
            axial += mass * np.outer(weights, weights)
    if not M.any():
        return
    directions = np.repeat(M[:, None], 3, axis=1)
    if axial_fractions is not None:
        directions[:, 0] = axial
    mass_matrix = np.einsum("nkij,kl->nikjl", directions, np.eye(3)).reshape(-1, 6, 6)
    zero = np.zeros((6, 6))
    matrices = Matrices(stiffness=zero, mass=mass_matrix, geometric=zero)
    _add_two_point(parts, f"{rod.name}.mass", start, end, matrices)
    if rod.telescope is None:
        return
    no_moments = (0.0, 0.0, 0.0)
    lower_moments = no_moments if rod.lower is None else _line_moments(parts, rod.lower)
    upper_moments = no_moments if rod.upper is None else _line_moments(parts, rod.upper)
    parts.telescopes[f"{rod.name}.mass"] = TelescopicRod(
        bodies=(start[0], end[0]),
        ends=(start[1], end[1]),
        axes=beam_axes(start[1], end[1], transverse_direction(end[1] - start[1])),
        lower=equivalent_mass(*lower_moments),
        upper=equivalent_mass(*upper_moments),
        axial_fractions=axial_fractions,
    )


def _line_moments(parts: StructureParts, part: SlenderPart | Inertia) -> tuple[float, float, float]:
    """Return the mass and its first and second moments along the rod about the part's outer end."""
    value = parts.mechanism.value
    if isinstance(part, SlenderPart):
        return value(part.mass), value(part.first_moment), value(part.second_moment)
    second_moment = 0.5 * (value(part.second_moment[0]) + value(part.second_moment[2]))
    return value(part.mass), abs(value(part.first_moment[2])), second_moment


def _note_offset(parts: StructureParts, rod: Rod, part: SlenderPart | Inertia) -> None:
    """Add a note if the mass center of a part is not on the rod's axis."""
    if isinstance(part, SlenderPart):
        return
    x, y = (parts.mechanism.value(moment) for moment in part.first_moment[:2])
    offset = np.hypot(x, y) / parts.mechanism.value(part.mass)
    if offset > SAME_NODE * parts.length:
        parts.notes.append(
            f"{rod.name}: a mass center is {1000.0 * offset:.4g} mm off the rod's axis; the mass "
            "is assumed to be on the axis"
        )


def _add_two_point(
    parts: StructureParts,
    name: str,
    start: tuple[str, Array],
    end: tuple[str, Array],
    matrices: Matrices,
) -> None:
    """Add an element whose coordinates are the translations of two points."""
    axes = beam_axes(start[1], end[1], transverse_direction(end[1] - start[1]))
    attachments = tuple(
        Attachment(body=body, point=point, axes=axes, freedoms=TRANSLATIONS)
        for body, point in (start, end)
    )
    parts.elements.append(Element(name=name, attachments=attachments, matrices=matrices))
