"""Beams of rods and bodies, compliances of joints, and damping.

On a rod with a full inertia, the section's y and z axes are x and y of the rod frame. On a body, the
beam states the direction of z.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tauloop.common.records import dataclass
from tauloop.mechanism.description import units
from tauloop.mechanism.description.units import Dimension
from tauloop.mechanism.elastic.sections import Section, power, scaled
from tauloop.mechanism.expression import ONE, ZERO, Expression, add, divide, multiply
from tauloop.mechanism.placement import Vector

#: Directions of a compliance, in the order of its rows.
DIRECTIONS = ("x", "y", "z", "rx", "ry", "rz")


@dataclass(frozen=True, slots=True, kw_only=True)
class BeamSegment:
    """A segment of a beam.

    Attributes:
        length: length, m.
        start, end: sections at its ends; the dimensions change linearly between them. Both are
            equal if the segment is not tapered.
    """

    length: Expression
    start: Section
    end: Section

    @property
    def is_tapered(self) -> bool:
        """Whether the section changes along the segment."""
        return self.start != self.end

    def section(self, fraction: float) -> Section:
        """Return the section at a fraction of the length, 0 to 1."""
        return self.start.between(self.end, fraction)


#: Points and weights of Gauss's rule on [0, 1]. It is exact up to degree 5. The integrand for the
#: second moment of a linear taper has degree 4.
_GAUSS = (
    (0.5 - math.sqrt(0.15), 5 / 18),
    (0.5, 8 / 18),
    (0.5 + math.sqrt(0.15), 5 / 18),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineMass:
    """Mass of a beam and its moments along its axis, counted from its start.

    Attributes:
        mass: mass, kg.
        first_moment: integral of s dm, kg m.
        second_moment: integral of s^2 dm, kg m^2.
        rotary: integrals of rho I_y and of rho I_z, kg m^2.
    """

    mass: Expression = ZERO
    first_moment: Expression = ZERO
    second_moment: Expression = ZERO
    rotary: tuple[Expression, Expression] = (ZERO, ZERO)

    def plus_point(self, mass: Expression, distance: Expression) -> LineMass:
        """Return the sum of this and a point mass at a distance from the start."""
        moment = multiply(mass, distance)
        return LineMass(
            mass=add(self.mass, mass),
            first_moment=add(self.first_moment, moment),
            second_moment=add(self.second_moment, multiply(moment, distance)),
            rotary=self.rotary,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Beam:
    """A straight elastic beam.

    Attributes:
        length: length, m.
        segments: segments from start to end.
        rest: index of the segment without length in the file; it fills the rest of the beam.
        fittings: point masses at its start and end, kg; None if the file states none.
        is_distributed: whether the stated mass that exceeds the section's is spread along the beam.
    """

    length: Expression
    segments: tuple[BeamSegment, ...]
    rest: int = 0
    fittings: tuple[Expression, Expression] | None = None
    is_distributed: bool = False

    @property
    def is_round(self) -> bool:
        """Whether all sections are round."""
        return all(s.start.is_round and s.end.is_round for s in self.segments)

    @property
    def sections(self) -> tuple[Section, ...]:
        """Sections at the ends of all segments, each once."""
        ends = [section for s in self.segments for section in (s.start, s.end)]
        return tuple(dict.fromkeys(ends))

    def section_mass(self) -> LineMass:
        """Return the mass of the sections alone."""
        total = LineMass()
        start: Expression = ZERO
        for segment in self.segments:
            total = _plus_segment(total, segment, start)
            start = add(start, segment.length)
        return total

    def line_mass(self) -> LineMass:
        """Return the mass of the sections with the fittings."""
        total = self.section_mass()
        if self.fittings is not None:
            total = total.plus_point(self.fittings[0], ZERO)
            total = total.plus_point(self.fittings[1], self.length)
        return total


def _plus_segment(total: LineMass, segment: BeamSegment, start: Expression) -> LineMass:
    """Return `total` plus the mass of a segment that begins at a distance from the beam's start."""
    length = segment.length
    if not segment.is_tapered:
        properties = segment.start.properties
        mass = multiply(properties.mass_per_length, length)
        middle = add(start, scaled(0.5, length))
        total = total.plus_point(mass, middle)
        own_moment = scaled(1 / 12, mass, power(length, 2))
        pieces = [(properties, length)]
    else:
        own_moment = ZERO
        pieces = []
        for fraction, weight in _GAUSS:
            properties = segment.section(fraction).properties
            piece_length = scaled(weight, length)
            distance = add(start, scaled(fraction, length))
            total = total.plus_point(multiply(properties.mass_per_length, piece_length), distance)
            pieces.append((properties, piece_length))
    y, z = total.rotary
    for properties, piece_length in pieces:
        y = add(y, multiply(properties.rotary_inertia[0], piece_length))
        z = add(z, multiply(properties.rotary_inertia[1], piece_length))
    return LineMass(
        mass=total.mass,
        first_moment=total.first_moment,
        second_moment=add(total.second_moment, own_moment),
        rotary=(y, z),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyBeam:
    """An elastic beam between two points of a body.

    Attributes:
        name: name within the body.
        start, end: its points in body coordinates, m.
        z_axis: direction of the sections' z axis in body coordinates, perpendicular to the beam;
            None if all sections are round.
        beam: length and sections.
        interfaces: names of the joints or rods at its start and end; empty for a point.
    """

    name: str
    start: Vector
    end: Vector
    z_axis: tuple[float, float, float] | None = None
    beam: Beam
    interfaces: tuple[str, str] = ("", "")


def entry_dimension(row: int, column: int, *, is_stiffness: bool) -> Dimension:
    """Return the dimension of an entry of a stiffness or compliance matrix (6, 6)."""
    angles = (row > 2) + (column > 2)
    dimension = (units.STIFFNESS, units.FORCE / units.ANGLE, units.ANGULAR_STIFFNESS)[angles]
    return dimension if is_stiffness else units.ONE / dimension


@dataclass(frozen=True, slots=True, kw_only=True)
class Compliance:
    """Compliance or stiffness matrix of a joint (6, 6), in the order of `DIRECTIONS`.

    It refers to the origin of the child's joint frame, in the axes of the parent's joint frame.

    Attributes:
        matrix: compliance (displacement per load; zero is rigid) or stiffness (load per
            displacement; rows of the joint's degrees of freedom are zero).
        is_stiffness: whether `matrix` is a stiffness.
    """

    matrix: tuple[tuple[Expression, ...], ...]
    is_stiffness: bool = False

    @property
    def is_diagonal(self) -> bool:
        """Whether the matrix is diagonal."""
        return all(
            row[j] == ZERO for i, row in enumerate(self.matrix) for j in range(len(row)) if i != j
        )

    def dimension(self, row: int, column: int) -> Dimension:
        """Return the dimension of an entry of the matrix."""
        return entry_dimension(row, column, is_stiffness=self.is_stiffness)

    @classmethod
    def per_axis(cls, stiffness: dict[str, Expression]) -> Compliance:
        """Return the compliance of stiffnesses by direction; all other directions are rigid."""
        diagonal = [
            divide(ONE, stiffness[name]) if name in stiffness else ZERO for name in DIRECTIONS
        ]
        return cls.diagonal(diagonal)

    @classmethod
    def diagonal(cls, values: Sequence[Expression]) -> Compliance:
        """Return a diagonal compliance of six values, ordered as `DIRECTIONS`; zero is rigid."""
        rows = []
        for i, value in enumerate(values):
            row: list[Expression] = [ZERO] * len(values)
            row[i] = value
            rows.append(tuple(row))
        return cls(matrix=tuple(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Damping:
    """Damping of the machine's vibrations; exactly one of the two attributes is set.

    Attributes:
        ratios: damping ratios of the modes in ascending order of frequency; the last holds for all
            higher modes.
        loss_factor: loss factor of all stiffnesses.
    """

    ratios: tuple[Expression, ...] = ()
    loss_factor: Expression | None = None
