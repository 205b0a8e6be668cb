"""Inertias of rods and bodies from their elastic beams, and a comparison with stated masses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tauloop.common.errors import Problem
from tauloop.common.records import dataclass
from tauloop.mechanism.elastic.beams import Beam, BodyBeam, LineMass
from tauloop.mechanism.elastic.sections import number, scaled
from tauloop.mechanism.expression import (
    ZERO,
    Call,
    Expression,
    add,
    divide,
    multiply,
    negate,
    subtract,
)
from tauloop.mechanism.model import Inertia, Mechanism, SlenderPart
from tauloop.mechanism.suggestions import listing

#: Difference between a stated mass and the sum of section and fittings, relative to the stated
#: mass, up to which the difference counts as rounding of the values in the file.
MASS_TOLERANCE = 0.01


def mass_gap(stated: float, parts: float) -> float:
    """Return a stated mass minus section and fittings, kg; zero within `MASS_TOLERANCE`."""
    gap = stated - parts
    return gap if abs(gap) > MASS_TOLERANCE * abs(stated) else 0.0


def link_inertia(beam: Beam, *, is_full: bool, is_upper: bool) -> SlenderPart | Inertia:
    """Return the inertia of a beam with its fittings, in the form for a rod or one part of it.

    Args:
        beam: the beam, starting at A, or at B for the upper part of a telescopic rod.
        is_full: whether the rod has a full inertia, in the rod frame; otherwise it is slender.
        is_upper: whether this is the part at B, along -z of the rod frame.
    """
    line = beam.line_mass()
    rotary_y, rotary_z = line.rotary
    if not is_full:
        transverse = scaled(0.5, add(rotary_y, rotary_z))
        return SlenderPart(
            mass=line.mass,
            first_moment=line.first_moment,
            second_moment=add(line.second_moment, transverse),
        )
    h = negate(line.first_moment) if is_upper else line.first_moment
    I_xx = add(line.second_moment, rotary_y)
    I_yy = add(line.second_moment, rotary_z)
    I_zz = add(rotary_y, rotary_z)
    return Inertia(
        mass=line.mass,
        first_moment=(ZERO, ZERO, h),
        second_moment=(I_xx, ZERO, I_yy, ZERO, ZERO, I_zz),
    )


def beams_inertia(beams: Sequence[BodyBeam]) -> Inertia:
    """Return the inertia of the beams of a body with their fittings, about the body's origin.

    A beam of line mass (m, h, J) along the unit vector u from the point a has the second moments
    integral of p p^T dm = m a a^T + h (a u^T + u a^T) + J u u^T about the origin. The rotary inertia
    of its sections is added in the axes of the section.
    """
    total: list[Expression] = [ZERO] * 10
    for beam in beams:
        for i, value in enumerate(_beam_inertia(beam).parameters):
            total[i] = add(total[i], value)
    return Inertia.of(total)


def _beam_inertia(beam: BodyBeam) -> Inertia:
    line, length = beam.beam.line_mass(), beam.beam.length
    start = beam.start
    direction = [divide(subtract(b, a), length) for a, b in zip(start, beam.end, strict=True)]
    first_moment = [
        add(multiply(line.mass, a), multiply(line.first_moment, u))
        for a, u in zip(start, direction, strict=True)
    ]
    second_moments = _second_moments(line, start, direction)
    rotary = _rotary_tensor(beam, line, direction)
    trace = add(second_moments[0][0], second_moments[1][1], second_moments[2][2])

    def moment(i: int, j: int) -> Expression:
        value = negate(second_moments[i][j])
        if i == j:
            value = subtract(trace, second_moments[i][i])
        return add(value, rotary[i][j])

    entries = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
    return Inertia.of((line.mass, *first_moment, *(moment(i, j) for i, j in entries)))


def _second_moments(
    line: LineMass, start: Sequence[Expression], direction: Sequence[Expression]
) -> list[list[Expression]]:
    """Return the integral of p p^T dm over a line (3, 3)."""

    def entry(i: int, j: int) -> Expression:
        mixed = add(multiply(start[i], direction[j]), multiply(direction[i], start[j]))
        return add(
            multiply(line.mass, start[i], start[j]),
            multiply(line.first_moment, mixed),
            multiply(line.second_moment, direction[i], direction[j]),
        )

    return _tensor(entry)


def _rotary_tensor(
    beam: BodyBeam, line: LineMass, direction: Sequence[Expression]
) -> list[list[Expression]]:
    """Return the rotary inertia of the sections in body axes (3, 3).

    It is the sum of I_k e_k e_k^T over the axes of the section. With e_y e_y^T = 1 - u u^T - e_z
    e_z^T and a polar moment I_y + I_z, this is I_y 1 + I_z u u^T + (I_z - I_y) e_z e_z^T.
    """
    I_y, I_z = line.rotary
    z_axis = _perpendicular_unit(beam.z_axis, direction)
    difference = subtract(I_z, I_y)

    def entry(i: int, j: int) -> Expression:
        value = multiply(I_z, direction[i], direction[j])
        if i == j:
            value = add(I_y, value)
        if z_axis is not None:
            value = add(value, multiply(difference, z_axis[i], z_axis[j]))
        return value

    return _tensor(entry)


def _tensor(entry: Callable[[int, int], Expression]) -> list[list[Expression]]:
    """Return the rows of a matrix (3, 3) from a function of its entries."""
    tensor = []
    for i in range(3):
        tensor.append([entry(i, j) for j in range(3)])
    return tensor


def _perpendicular_unit(
    z_axis: Sequence[float] | None, direction: Sequence[Expression]
) -> list[Expression] | None:
    """Return the unit vector perpendicular to a beam and nearest to `z_axis`, if any."""
    if z_axis is None:
        return None
    component = add(*(scaled(c, u) for c, u in zip(z_axis, direction, strict=True)))
    perpendicular = [
        subtract(number(c), multiply(component, u)) for c, u in zip(z_axis, direction, strict=True)
    ]
    length = Call("sqrt", (add(*(multiply(c, c) for c in perpendicular)),))
    return [divide(c, length) for c in perpendicular]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementMass:
    """Mass of a link in the equations of motion, compared with the mass of its sections.

    Attributes:
        element: name of the rod, of ``ROD.lower`` or ``ROD.upper``, or of the body.
        mass: mass in the equations of motion, kg: stated in the file, or section plus fittings.
        section: mass of the sections, kg.
        fittings: mass of the fittings at the ends, kg.
        is_distributed: whether the rest of the stated mass is spread along the length.
    """

    element: str
    mass: float
    section: float
    fittings: float
    is_distributed: bool

    @property
    def is_placed(self) -> bool:
        """Whether the file locates all of the mass, within `MASS_TOLERANCE`."""
        return self.is_distributed or mass_gap(self.mass, self.section + self.fittings) == 0.0

    @property
    def unplaced(self) -> float:
        """Mass whose location the file does not state, kg."""
        return 0.0 if self.is_placed else max(0.0, self.mass - self.section - self.fittings)


def element_masses(mechanism: Mechanism) -> tuple[ElementMass, ...]:
    """Return the masses of all rods and bodies that have sections."""
    parts: list[tuple[str, Inertia | SlenderPart | None, tuple[Beam, ...], bool]] = []
    for rod in mechanism.rods:
        is_single = rod.telescope is None
        for suffix, part, beam in (
            ("lower", rod.lower, rod.lower_beam),
            ("upper", rod.upper, rod.upper_beam),
        ):
            if beam is not None:
                name = rod.name if is_single else f"{rod.name}.{suffix}"
                parts.append((name, part, (beam,), beam.is_distributed))
    for body in mechanism.bodies:
        if body.beams:
            beams = tuple(item.beam for item in body.beams)
            parts.append((body.name, body.inertia, beams, body.is_distributed))
    masses = []
    for name, part, beams, is_distributed in parts:
        section = add(*(beam.section_mass().mass for beam in beams))
        fittings = add(*(add(*beam.fittings) for beam in beams if beam.fittings is not None))
        masses.append(
            ElementMass(
                element=name,
                mass=0.0 if part is None else mechanism.value(part.mass),
                section=mechanism.value(section),
                fittings=mechanism.value(fittings),
                is_distributed=is_distributed,
            )
        )
    return tuple(masses)


def unplaced_masses(mechanism: Mechanism) -> tuple[Problem, ...]:
    """Return a problem for each stated mass whose location along its link is unknown.

    Links with equal masses share one problem. The location affects vibration, not stiffness.
    """
    names_by_text: dict[str, list[str]] = {}
    remedies: dict[str, str] = {}
    for item in element_masses(mechanism):
        if not item.unplaced:
            continue
        parts = f"the section has {item.section:.6g} kg"
        if item.fittings:
            parts += f", the fittings {item.fittings:.6g} kg"
        what = (
            f"the stated mass is {item.mass:.6g} kg, {parts}: the file does not state where the "
            f"remaining {item.unplaced:.6g} kg are located, and natural frequencies depend on it"
        )
        names_by_text.setdefault(what, []).append(item.element)
        half_mass = f"{item.unplaced / 2:.4g} kg"
        remedies[what] = (
            f"add fittings: {{start: {half_mass}, end: {half_mass}}}, or distributed: yes"
        )
    return tuple(
        Problem(where=listing(names), what=what, remedy=remedies[what], file=mechanism.file)
        for what, names in names_by_text.items()
    )
