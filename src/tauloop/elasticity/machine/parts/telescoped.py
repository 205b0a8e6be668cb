"""The two parts of a telescopic rod, joined to a single beam."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import InputError
from tauloop.elasticity.frame.beams import Array, BeamProperties
from tauloop.elasticity.machine.beams import NumericBeam
from tauloop.elasticity.machine.telescopic_rods import PartMass, spread_mass


def part_mass(part: NumericBeam) -> PartMass:
    """Return the mass of a part of constant section, and of the fitting at its outer end."""
    density = float(np.ravel(part.properties.mass)[0])
    return spread_mass(density, float(part.lengths[0])).with_point(part.fittings[0])


def telescopic_beam(
    name: str, lower: NumericBeam, upper: NumericBeam, distance: Array
) -> tuple[NumericBeam, Array]:
    """Return a telescopic rod as a single beam, and the lengths (N, 3) of its pieces.

    The pieces are the lower part, the overlap and the upper part. In the overlap both parts carry
    bending; the drive transmits the axial force from one part to the other.

    Args:
        name: name of the rod.
        lower, upper: the parts at the ends A and B, each with one section.
        distance: (N,) distances from A to B, m.

    Raises:
        InputError: the parts do not overlap, are longer than the distance, or have several
            sections.
    """
    if len(lower.lengths) != 1 or len(upper.lengths) != 1:
        what = "a part of this telescopic rod has several sections"
        raise InputError.of(f"rods.{name}", what, "give each part one section")
    lower_length = float(lower.lengths[0])
    upper_length = float(upper.lengths[0])
    overlap = lower_length + upper_length - distance
    lengths = np.stack([distance - upper_length, overlap, distance - lower_length], -1)
    if lengths.min() <= 0.0:
        pose = int(np.argmin(lengths.min(axis=1)))
        what = (
            f"parts of {lower_length:.4g} m and {upper_length:.4g} m do not fit the length "
            f"{distance[pose]:.4g} m (pose {pose})"
        )
        remedy = (
            "change the lengths: at every pose, each part must be shorter than the rod, and both "
            "together longer"
        )
        raise InputError.of(f"rods.{name}", what, remedy)
    values = {}
    for key in BeamProperties.__dataclass_fields__:
        lower_value = np.ravel(getattr(lower.properties, key)).astype(float)
        upper_value = np.ravel(getattr(upper.properties, key)).astype(float)
        values[key] = np.concatenate([lower_value, lower_value + upper_value, upper_value])
    strength = None
    if lower.strength is not None and upper.strength is not None:
        # In the overlap, use the section data of the lower part: the actual stress is smaller.
        strength = lower.strength.followed_by(lower.strength).followed_by(upper.strength)
    beam = NumericBeam(
        lengths=lengths[0],
        properties=BeamProperties(**values),
        strength=strength,
        fittings=(0.0, 0.0),
    )
    return beam, lengths
