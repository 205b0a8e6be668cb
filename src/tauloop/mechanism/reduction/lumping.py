"""Equivalent lumped masses: conditions of equivalence, and rods replaced by masses at their ends.

Point masses are equivalent to a body if they have the same mass, mass center and moments of inertia
(Kroneis et al., eq. 1). Masses at the two ends of a rod preserve mass and mass center and
approximate the moments of inertia.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import Problem
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.expression import Constant, Expression, add, divide, subtract
from tauloop.mechanism.model import BASE, Inertia, Mechanism, Rod, SlenderPart
from tauloop.mechanism.reduction.graph import with_added
from tauloop.mechanism.reduction.inertia import point_mass
from tauloop.mechanism.reduction.steps import Step, require
from tauloop.mechanism.suggestions import unknown_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence(ReprMixin):
    """Differences between point masses and the body that they replace.

    Attributes:
        mass: difference in mass, kg.
        first_moment: difference in first moment (3,), kg m.
        second_moment: difference in inertia about the frame's origin (3, 3), kg m^2.
    """

    mass: float
    first_moment: np.ndarray
    second_moment: np.ndarray


def equivalence(inertia: Sequence[float], masses: np.ndarray, points: np.ndarray) -> Equivalence:
    """Return the mass, first moment and inertia of point masses minus those of a body.

    sum m_j - m, sum m_j x_j - m c, sum m_j (x_j.x_j 1 - x_j x_j^T) - I.

    Args:
        inertia: ten inertial parameters about the frame's origin, SI (Pinocchio's order).
        masses: m_j (N,), kg.
        points: x_j (N, 3), m.
    """
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = inertia
    square = np.einsum("n,ni,nj->ij", masses, points, points)
    return Equivalence(
        mass=float(masses.sum() - m),
        first_moment=masses @ points - np.array([hx, hy, hz]),
        second_moment=np.trace(square) * np.eye(3)
        - square
        - np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]),
    )


def drop_rod_inertia(mechanism: Mechanism, names: Iterable[str]) -> tuple[Mechanism, Step]:
    """Make rods massless.

    Returns:
        The changed machine, and the step with what it preserves.

    Raises:
        InputError: there is no rod with this name.
    """
    rods = _rods_by_name(mechanism, names)
    mass = sum(
        mechanism.value(part.mass)
        for rod in rods
        for part in (rod.lower, rod.upper)
        if part is not None
    )
    selected = {rod.name for rod in rods}
    step = Step(
        name="drop inertia of rods",
        kept=tuple(rod.name for rod in rods),
        preserved=("kinematics",),
        approximated=(f"mass: {mass:.6g} kg omitted",) if mass else (),
    )
    changed = tuple(
        replace(rod, lower=None, upper=None) if rod.name in selected else rod
        for rod in mechanism.rods
    )
    return replace(mechanism, rods=changed), step


def lump_rods(mechanism: Mechanism, names: Iterable[str]) -> tuple[Mechanism, Step]:
    """Replace the mass of slender rods by point masses at their two ends.

    Mass and mass center are preserved (for a telescopic rod, the mass center only at its reference
    length), but not the moment of inertia. The mass at B is h/L for a fixed rod and
    h_1/l + m_2 - h_2/l for a telescopic one. A mass at an end on the base is at rest and is
    omitted.

    Returns:
        The changed machine, and the step with what it preserves.

    Raises:
        InputError: there is no rod with this name, or it has a full inertia.
    """
    rods = _rods_by_name(mechanism, names)
    require(
        mechanism,
        [
            Problem(
                where=f"rods.{rod.name}",
                what="has a full inertia",
                remedy="name slender rods only",
            )
            for rod in rods
            if rod.is_full
        ],
    )
    approximated, lost = [], []
    for rod in rods:
        if rod.lower is None and rod.upper is None:
            continue
        m_A, m_B = _end_masses(rod)
        mechanism = with_added(mechanism, rod.start.body, point_mass(m_A, rod.start.position))
        mechanism = with_added(mechanism, rod.end.body, point_mass(m_B, rod.end.position))
        approximated.append(f"moment of inertia of {rod.name}")
        ends = ((rod.start, m_A), (rod.end, m_B))
        lost += [
            f"{mechanism.value(m):.6g} kg of {rod.name} on the base"
            for end, m in ends
            if end.body == BASE
        ]
        if rod.telescope is not None:
            approximated.append(f"mass center of {rod.name} away from its reference length")
    selected = {rod.name for rod in rods}
    changed = tuple(
        replace(rod, lower=None, upper=None) if rod.name in selected else rod
        for rod in mechanism.rods
    )
    step = Step(
        name="lump rods",
        kept=tuple(rod.name for rod in rods),
        preserved=("kinematics", "mass", "mass center"),
        approximated=tuple(approximated),
        lost=tuple(lost),
    )
    return replace(mechanism, rods=changed), step


def _end_masses(rod: Rod) -> tuple[Expression, Expression]:
    length = rod.length
    if length is None:
        length = Constant(rod.telescope.reference if rod.telescope else 1.0)
    m_A: Expression = Constant(0.0)
    m_B: Expression = Constant(0.0)
    if isinstance(rod.lower, SlenderPart):
        far_mass = divide(rod.lower.first_moment, length)
        m_A, m_B = add(m_A, subtract(rod.lower.mass, far_mass)), add(m_B, far_mass)
    if isinstance(rod.upper, SlenderPart):
        far_mass = divide(rod.upper.first_moment, length)
        m_A, m_B = add(m_A, far_mass), add(m_B, subtract(rod.upper.mass, far_mass))
    return m_A, m_B


def _rods_by_name(mechanism: Mechanism, names: Iterable[str]) -> tuple[Rod, ...]:
    names = tuple(names)
    known = sorted(rod.name for rod in mechanism.rods)
    require(mechanism, unknown_names(names, known, "there is no rod with this name", "rods.{}"))
    return tuple(rod for rod in mechanism.rods if rod.name in names)


def total_mass(mechanism: Mechanism) -> float:
    """Return the mass of all bodies and rods at nominal values, kg."""
    parts: list[Inertia | SlenderPart | None] = [body.inertia for body in mechanism.bodies]
    parts += [part for rod in mechanism.rods for part in (rod.lower, rod.upper)]
    return sum(mechanism.value(part.mass) for part in parts if part is not None)
