"""Springs in series along a rod: contacts at its ends, and the drive between its parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.elasticity.frame.beams import Array, BeamMotion, Matrices
from tauloop.elasticity.frame.reduction import ReducedBeam
from tauloop.elasticity.machine.telescopic_rods import stretch_field
from tauloop.mechanism.model import Rod


def in_series(stiffnesses: list[float | None]) -> float | None:
    """Return the stiffness of springs in series; None if all of them are rigid (None)."""
    compliant = [stiffness for stiffness in stiffnesses if stiffness is not None]
    return 1.0 / sum(1.0 / stiffness for stiffness in compliant) if compliant else None


def rigid_shares(contacts: list[float | None], drive: float | None) -> tuple[float, float] | None:
    """Return the fractions of the displacement of end B by which the lower and upper part move.

    The parts are rigid. None if the length of the rod is fixed.

    Args:
        contacts: stiffness of the contacts at A and B; None for a rigid contact.
        drive: stiffness of the drive between the parts; None if it is rigid.
    """
    total = in_series([drive, *contacts])
    if total is None:
        return None
    before, after = (0.0 if k is None else total / k for k in contacts)
    return before, 1.0 - after


def flexibilities(contacts: list[float | None], drive: float | None) -> tuple[float, float, float]:
    """Return the flexibility of the springs at A, between the parts of a rod, and at B, m/N."""
    start, middle, end = (0.0 if k is None else 1.0 / k for k in (contacts[0], drive, contacts[1]))
    return start, middle, end


def softened_rod(
    beam: ReducedBeam,
    flexibility: tuple[float, float, float],
    beyond: tuple[Array, Array] | None,
) -> ReducedBeam:
    """Return a rod with springs in series along its axis, at both ends and between its parts.

    The springs change the static shape of the stretch, and thus the mass matrix along the axis.
    With a soft drive the lower part moves with end A, and the upper part with end B.

    Args:
        beam: the rod.
        flexibility: flexibility of the springs at A, between the parts, and at B, m/N.
        beyond: lengths (N, s) of pieces of constant section, and the fraction (s,) of their mass
            that moves with the upper part; None for a rod that is not telescopic.
    """
    if not any(flexibility):
        return beam
    places, signs = beam.places[BeamMotion.STRETCH]
    mass = np.broadcast_to(beam.properties.mass, beam.lengths.shape)
    near, far, stretched = stretch_field(beam, flexibility)
    jump = stretched[..., None]
    upper = np.zeros_like(far)
    if beyond is not None:
        upper = upper + _fraction_of_elements(beam.lengths, *beyond)
    basis = beam.motions[BeamMotion.STRETCH].basis
    M = np.array(beam.matrices.mass)
    size = len(places)
    stretch = np.zeros((*M.shape[:-2], size, size))
    for fraction, shift in ((1.0 - upper, 0.0), (upper, jump)):
        shapes = []
        for at, rows in ((near, basis[..., :-1, 2:]), (far, basis[..., 1:, 2:])):
            moved = (at + shift)[..., None]
            modes = np.broadcast_to(rows, (*moved.shape[:-1], rows.shape[-1]))
            shapes.append(np.concatenate([1.0 - moved, moved, modes], axis=-1))
        weight = (fraction * mass * beam.lengths / 6.0)[..., None]
        for i, j, factor in ((0, 0, 2.0), (1, 1, 2.0), (0, 1, 1.0), (1, 0, 1.0)):
            stretch += factor * np.swapaxes(weight * shapes[i], -1, -2) @ shapes[j]
    M[..., places[:, None], places] = stretch * np.outer(signs, signs)
    axial = np.broadcast_to(beam.properties.axial, beam.lengths.shape)
    rod_flexibility = (beam.lengths / axial).sum(axis=-1)
    softening = rod_flexibility / (rod_flexibility + sum(flexibility))
    K = np.array(beam.matrices.stiffness)
    K[..., places[:2, None], places[:2]] *= softening[..., None, None]
    matrices = Matrices(stiffness=K, mass=M, geometric=beam.matrices.geometric)
    return replace(beam, matrices=matrices)


def _fraction_of_elements(lengths: Array, pieces: Array, fractions: Array) -> Array:
    """Return for each element (..., e) of a chain the fraction of the piece that contains it.

    Args:
        lengths: (..., e) lengths of the elements.
        pieces: (N, s) lengths of the pieces.
        fractions: (s,) fraction of each piece.
    """
    middles = np.cumsum(lengths, axis=-1) - 0.5 * lengths
    starts = np.cumsum(pieces, axis=-1) - pieces
    index = np.sum(middles[..., None] > starts[..., None, :], axis=-1) - 1
    return np.asarray(fractions[index])


def has_elastic_part(rod: Rod) -> bool:
    """Return whether a telescopic rod has an elastic part along its axis, besides its drive."""
    return (
        rod.lower_beam is not None
        or any(item is not None for item in rod.contact)
        or (rod.tension is not None and rod.tension.stiffness is not None)
    )
