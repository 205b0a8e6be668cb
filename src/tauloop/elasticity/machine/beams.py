"""Numeric values of a machine file's beams: sections, strength, and specified masses."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from tauloop.common.records import dataclass
from tauloop.elasticity.frame.beams import Array, BeamProperties
from tauloop.mechanism.elastic.beams import Beam, BeamSegment
from tauloop.mechanism.elastic.inertia import ElementMass
from tauloop.mechanism.elastic.sections import SectionProperties
from tauloop.mechanism.expression import ZERO, Expression
from tauloop.mechanism.model import Mechanism

#: Number of pieces of constant section that approximate a tapered segment. A piece has the section
#: at its midpoint. The error is about 1e-4 if the diameter doubles along the segment.
TAPER_PIECES = 32


_SECTION_MODULI = ("section_modulus_y", "section_modulus_z", "torsional_section_modulus")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SectionStrength:
    """Section data for stresses; every array has a value for each piece of constant section.

    Attributes:
        area: cross-sectional area, m^2.
        section_modulus_y, section_modulus_z: elastic section moduli in bending about y
            and z, m^3.
        torsional_section_modulus: polar moment of area over the largest distance from the axis,
            m^3. It is exact for round sections, and an approximation for others.
        strength: stress at which the material yields or breaks, Pa; NaN if the file states none.
        is_round: whether the section is round, so that the two bending moments add as vectors.
    """

    area: Array
    section_modulus_y: Array
    section_modulus_z: Array
    torsional_section_modulus: Array
    strength: Array
    is_round: bool

    def followed_by(self, other: SectionStrength) -> SectionStrength:
        """Return the section data of this beam's pieces, followed by those of another beam."""
        arrays = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("area", *_SECTION_MODULI, "strength")
        }
        return SectionStrength(**arrays, is_round=self.is_round and other.is_round)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumericBeam:
    """Numeric values of a beam that is divided into s pieces of constant section.

    Attributes:
        lengths: (s,) lengths of the pieces, m.
        properties: section properties of the pieces.
        strength: section data for stresses; None for composite sections.
        fittings: point masses at start and end, kg.
    """

    lengths: Array
    properties: BeamProperties
    strength: SectionStrength | None
    fittings: tuple[float, float]


def stated_mass(
    mechanism: Mechanism,
    name: str,
    mass: Expression | None,
    beams: Collection[Beam],
    is_distributed: bool,
) -> ElementMass:
    """Return the specified mass of a link, and the masses of its sections and fittings.

    Args:
        mechanism: the machine.
        name: name of the rod or body.
        mass: mass that the file specifies for the link; None if it specifies none.
        beams: elastic beams that the link consists of.
        is_distributed: whether the specified mass beyond sections and fittings is distributed along
            the beams.
    """
    sections = sum(mechanism.value(beam.section_mass().mass) for beam in beams)
    fittings = sum(mechanism.value(fitting) for beam in beams for fitting in (beam.fittings or ()))
    total = 0.0 if mass is None else mechanism.value(mass)
    return ElementMass(
        element=name, mass=total, section=sections, fittings=fittings, is_distributed=is_distributed
    )


def numeric_beam(
    mechanism: Mechanism, beam: Beam, *, mass_factor: float, shear: bool
) -> NumericBeam:
    """Return the numeric values of a beam.

    Args:
        mechanism: the machine.
        beam: the beam of the file.
        mass_factor: factor of the mass per length, with which the specified mass that remains is
            distributed along the beam.
        shear: whether shear deformation and rotary inertia are included (Timoshenko), if all sections
            have a shear stiffness.
    """
    lengths: list[float] = []
    for segment in beam.segments:
        pieces = _piece_count(segment)
        lengths += [mechanism.value(segment.length) / pieces] * pieces
    sections = piece_sections(beam)

    def values(items: list[Expression]) -> Array:
        """Return the values of expressions, SI."""
        return np.array([mechanism.value(item) for item in items])

    rotary_y = values([section.rotary_inertia[0] for section in sections])
    rotary_z = values([section.rotary_inertia[1] for section in sections])
    properties = {
        "axial": values([section.axial_stiffness for section in sections]),
        "torsional": values([section.torsional_stiffness for section in sections]),
        "bending_y": values([section.bending_stiffness[0] for section in sections]),
        "bending_z": values([section.bending_stiffness[1] for section in sections]),
        "mass": mass_factor * values([section.mass_per_length for section in sections]),
        "polar_inertia": mass_factor * (rotary_y + rotary_z),
    }
    if shear and all(section.shear_stiffness is not None for section in sections):
        pairs = [section.shear_stiffness for section in sections if section.shear_stiffness]
        properties["shear_y"] = values([pair[0] for pair in pairs])
        properties["shear_z"] = values([pair[1] for pair in pairs])
        properties["rotary_y"] = mass_factor * rotary_y
        properties["rotary_z"] = mass_factor * rotary_z
    first, second = (mechanism.value(mass) for mass in beam.fittings or (ZERO, ZERO))
    return NumericBeam(
        lengths=np.array(lengths),
        properties=BeamProperties(**properties),
        strength=_strength(mechanism, sections, beam.is_round),
        fittings=(first, second),
    )


def piece_sections(beam: Beam) -> list[SectionProperties]:
    """Return the sections of a beam's pieces of constant section."""
    return [
        section
        for segment in beam.segments
        for section in _sections(segment, _piece_count(segment))
    ]


def piece_lengths(beam: Beam) -> list[tuple[Expression, int]]:
    """Return for each piece the length of its segment, and the number of pieces in the segment."""
    counts = [(segment.length, _piece_count(segment)) for segment in beam.segments]
    return [(length, count) for length, count in counts for _ in range(count)]


def _piece_count(segment: BeamSegment) -> int:
    """Return the number of pieces that a segment is divided into."""
    return TAPER_PIECES if segment.is_tapered else 1


def _sections(segment: BeamSegment, pieces: int) -> list[SectionProperties]:
    """Return the sections at the midpoints of the equal pieces of a segment."""
    midpoints = (np.arange(pieces) + 0.5) / pieces
    return [segment.section(float(fraction)).properties for fraction in midpoints]


def _strength(
    mechanism: Mechanism, sections: list[SectionProperties], is_round: bool
) -> SectionStrength | None:
    """Return the section data for stresses; None if a section is composite."""
    rows = []
    for section in sections:
        if section.area is None or section.extent is None:
            return None
        area = mechanism.value(section.area)
        EA = mechanism.value(section.axial_stiffness)
        E = EA / area
        y, z = (mechanism.value(distance) for distance in section.extent)
        I_y, I_z = (mechanism.value(stiffness) / E for stiffness in section.bending_stiffness)
        strength = np.nan if section.strength is None else mechanism.value(section.strength)
        radius = max(y, z) if is_round else np.hypot(y, z)
        rows.append((area, I_y / z, I_z / y, (I_y + I_z) / radius, strength))
    areas, moduli_y, moduli_z, torsional_moduli, strengths = np.array(rows).T
    return SectionStrength(
        area=areas,
        section_modulus_y=moduli_y,
        section_modulus_z=moduli_z,
        torsional_section_modulus=torsional_moduli,
        strength=strengths,
        is_round=is_round,
    )


def equivalent_stress(strength: SectionStrength, loads: Array, pieces: Array) -> Array:
    """Return the von Mises stress (N, e + 1) in sections, Pa; transverse shear is neglected.

    The stress is √(σ² + 3 τ²) with σ = |F| / A + σ_b and τ = |T| / W_t. F is the axial force, T the
    torsional moment, and W_t the torsional section modulus. The bending stress σ_b is √(σ_y² +
    σ_z²) for round sections and σ_y + σ_z for others, with σ_y = |M_y| / W_y and σ_z = |M_z| / W_z.

    Args:
        strength: section data of the pieces.
        loads: (N, e + 1, 6) forces and moments in the sections at N poses.
        pieces: (e + 1,) piece to which each section belongs.
    """
    force = np.abs(loads[..., 0])
    torsion = np.abs(loads[..., 3])
    about_y = np.abs(loads[..., 4])
    about_z = np.abs(loads[..., 5])
    sigma_y = about_y / strength.section_modulus_y[pieces]
    sigma_z = about_z / strength.section_modulus_z[pieces]
    bending = np.hypot(sigma_y, sigma_z) if strength.is_round else sigma_y + sigma_z
    normal = force / strength.area[pieces] + bending
    shear = torsion / strength.torsional_section_modulus[pieces]
    return np.asarray(np.sqrt(normal**2 + 3.0 * shear**2))
