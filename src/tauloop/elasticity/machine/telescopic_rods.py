"""Point masses of the two parts of telescopic rods, for motions that change the rods' lengths.

A point of the lower part keeps its distance from end A, a point of the upper part its distance from
end B. In the overlap, points of both parts are at the same position but have different velocities.
Therefore accelerations between the ends are not interpolated linearly.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tauloop.common.records import dataclass
from tauloop.elasticity.frame.beams import Array, BeamMotion, Indices, bending_shapes
from tauloop.elasticity.frame.reduction import ReducedBeam

#: Number of panels that a part is divided into; its mass is concentrated at 4 Gauss points per
#: panel.
PANELS = 12
_GAUSS_POINTS, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(4)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartMass:
    """Mass of a part of a telescopic rod as p point masses.

    Attributes:
        masses: (p,) point masses, kg.
        distances: (p,) distances from the part's outer end (A or B), m.
    """

    masses: Array
    distances: Array

    def with_point(self, mass: float) -> PartMass:
        """Return these points and a point mass at the part's outer end."""
        return PartMass(
            masses=np.append(self.masses, mass), distances=np.append(self.distances, 0.0)
        )


def spread_mass(mass_per_length: float, length: float) -> PartMass:
    """Return the point masses of a part with uniform mass per length."""
    starts = np.arange(PANELS) * (length / PANELS)
    within = 0.5 * (_GAUSS_POINTS + 1.0) * (length / PANELS)
    weights = 0.5 * _GAUSS_WEIGHTS * (length / PANELS)
    return PartMass(
        masses=np.tile(mass_per_length * weights, PANELS),
        distances=(starts[:, None] + within).ravel(),
    )


def equivalent_mass(mass: float, first: float, second: float) -> PartMass:
    """Return two point masses with a mass, and its first and second moment about the outer end."""
    if mass == 0.0:
        return PartMass(masses=np.zeros(0), distances=np.zeros(0))
    center = first / mass
    radius = np.sqrt(max(second / mass - center**2, 0.0))
    return PartMass(
        masses=np.full(2, 0.5 * mass), distances=np.array([center - radius, center + radius])
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class TelescopicRod:
    """A telescopic rod, and the motion of its points as a function of an element's coordinates.

    Attributes:
        bodies: bodies or nodes that carry the ends A and B.
        points: positions (N, 3) of both ends, m.
        axes: (N, 3, 3) local axes as columns; x points from A to B.
        lower, upper: masses of the parts.
        beam: bending and stretch of an elastic rod; None for a rigid rod.
        flexibility: flexibility of the springs in series with the stretch: at A, between the parts,
            and at B, m/N.
        shares: fractions of an axial displacement of B by which the lower and the upper part of a
            rigid rod move; None for a fixed length, where all axial displacements are equal.
        has_rotor: whether the element has a coordinate of the motor after those of the ends.
    """

    bodies: tuple[str, str]
    points: tuple[Array, Array]
    axes: Array
    lower: PartMass
    upper: PartMass
    beam: ReducedBeam | None = None
    flexibility: tuple[float, float, float] = (0.0, 0.0, 0.0)
    shares: tuple[float, float] | None = None
    has_rotor: bool = False

    @property
    def masses(self) -> Array:
        """Masses (p,) of all points, those of the lower part first."""
        return np.concatenate([self.lower.masses, self.upper.masses])

    @cached_property
    def length(self) -> Array:
        """Lengths (N,) of the rod, m."""
        return np.asarray(np.linalg.norm(self.points[1] - self.points[0], axis=-1))

    @cached_property
    def positions(self) -> Array:
        """Distances (N, p) of all points from A, m."""
        near = np.broadcast_to(self.lower.distances, (len(self.length), len(self.lower.distances)))
        return np.concatenate([near, self.length[:, None] - self.upper.distances], axis=1)

    @cached_property
    def is_upper(self) -> NDArray[np.bool_]:
        """Whether each point (p,) belongs to the upper part."""
        return np.arange(len(self.masses)) >= len(self.lower.masses)

    @cached_property
    def shapes(self) -> Array:
        """Matrices (N, p, 3, k) from the element's coordinates to displacements in local axes."""
        shapes = self._rigid_shapes() if self.beam is None else self._beam_shapes(self.beam)
        if self.has_rotor:
            shapes = np.insert(shapes, 6, 0.0, axis=-1)
        return shapes

    def _rigid_shapes(self) -> Array:
        """Return the shapes (N, p, 3, 6) of a rod that stays straight."""
        fraction = self.positions / self.length[:, None]
        shapes = np.zeros((*fraction.shape, 3, 6))
        for axis in range(3):
            weight = fraction
            if axis == 0 and self.shares is not None:
                weight = np.where(self.is_upper, self.shares[1], self.shares[0])
            shapes[..., axis, axis] = 1.0 - weight
            shapes[..., axis, 3 + axis] = weight
        return shapes

    def _beam_shapes(self, beam: ReducedBeam) -> Array:
        """Return the shapes (N, p, 3, k) of a rod that bends and stretches."""
        shapes = np.zeros((*self.positions.shape, 3, beam.size))
        index, within, lengths = self._elements(beam)
        for axis, motion in ((1, BeamMotion.BEND_XY), (2, BeamMotion.BEND_XZ)):
            positions, signs = beam.places[motion]
            basis = beam.motions[motion].basis
            cubic, _, _ = bending_shapes(within, lengths, np.zeros_like(lengths))
            rows = _at_nodes(basis, 2 * index[..., None] + np.arange(4))
            shapes[..., axis, positions] = signs * np.einsum("npj,npjk->npk", cubic, rows)
        shapes[..., 0, beam.places[BeamMotion.STRETCH][0]] = self._stretch(beam, index, within)
        return shapes

    def _elements(self, beam: ReducedBeam) -> tuple[Indices, Array, Array]:
        """Return for each point its element, its position there from 0 to 1, and the length.

        All arrays are (N, p).
        """
        lengths = np.broadcast_to(beam.lengths, (len(self.length), beam.lengths.shape[-1]))
        ends = np.cumsum(lengths, axis=-1)
        index = np.sum(self.positions[..., None] > ends[:, None, :], axis=-1)
        index = np.minimum(index, lengths.shape[-1] - 1)
        size = np.take_along_axis(lengths, index, axis=-1)
        start = np.take_along_axis(ends - lengths, index, axis=-1)
        return index, np.clip((self.positions - start) / size, 0.0, 1.0), size

    def _stretch(self, beam: ReducedBeam, index: Indices, within: Array) -> Array:
        """Return the matrix (N, p, k) from the stretch coordinates to axial displacements."""
        near, far, jump = stretch_field(beam, self.flexibility)
        start, end = (np.take_along_axis(values, index, axis=-1) for values in (near, far))
        moved = start + within * (end - start) + np.where(self.is_upper, jump[:, None], 0.0)
        basis = beam.motions[BeamMotion.STRETCH].basis[..., 2:]
        rows = _at_nodes(basis, index[..., None] + np.arange(2))
        weights = np.stack([1.0 - within, within], axis=-1)
        modes = np.einsum("npj,npjk->npk", weights, rows)
        _, signs = beam.places[BeamMotion.STRETCH]
        shapes = np.concatenate([(1.0 - moved)[..., None], moved[..., None], modes], axis=-1)
        return np.asarray(signs * shapes)

    def acceleration(
        self, velocities: tuple[Array, Array], accelerations: tuple[Array, Array]
    ) -> Array:
        """Return the accelerations (N, p, 3) of all points of the undeformed rod.

        With d = B - A = L u, L'' = u·d'' + L |u'|² and u'' = (d'' - L'' u - 2 L' u') / L. A point
        at the distance s from A has the acceleration A'' + s u'', a point at the distance s from B
        has B'' - s u''.

        Args:
            velocities: (N, 3) of A and B.
            accelerations: (N, 3) of A and B.
        """
        L_rate, u_rate = self._rates(velocities)
        L, u = self.length[:, None], self.axes[..., 0]
        relative = accelerations[1] - accelerations[0]
        L_second = _dot(u, relative) + L * _dot(u_rate, u_rate)
        u_second = (relative - L_second * u - 2.0 * L_rate * u_rate) / L
        near = accelerations[0][:, None] + self.lower.distances[:, None] * u_second[:, None]
        far = accelerations[1][:, None] - self.upper.distances[:, None] * u_second[:, None]
        return np.concatenate([near, far], axis=1)

    def _rates(self, velocities: tuple[Array, Array]) -> tuple[Array, Array]:
        """Return L' (N, 1) and u' (N, 3)."""
        u = self.axes[..., 0]
        difference = velocities[1] - velocities[0]
        rate = _dot(u, difference)
        return rate, (difference - rate * u) / self.length[:, None]


@dataclass(frozen=True, kw_only=True, eq=False)
class RodRotor(TelescopicRod):
    """The inertia of a motor that moves with a rod's length, as a point with the acceleration L''.

    The upper part has this single point, whose mass is the inertia.
    """

    @cached_property
    def shapes(self) -> Array:
        """Matrix (N, 1, 3, 6) from the ends' displacements to the change of the length."""
        shapes = np.zeros((len(self.length), 1, 3, 6))
        shapes[:, 0, 0, 0], shapes[:, 0, 0, 3] = -1.0, 1.0
        return shapes

    def acceleration(
        self, velocities: tuple[Array, Array], accelerations: tuple[Array, Array]
    ) -> Array:
        """Return L'' u (N, 1, 3)."""
        _, u_rate = self._rates(velocities)
        u = self.axes[..., 0]
        L_second = _dot(u, accelerations[1] - accelerations[0])
        L_second = L_second + self.length[:, None] * _dot(u_rate, u_rate)
        return np.asarray((L_second * u)[:, None])


def stretch_field(
    beam: ReducedBeam, flexibility: tuple[float, float, float]
) -> tuple[Array, Array, Array]:
    """Return the static axial displacements of a rod with springs in series for a unit motion of B.

    Args:
        beam: the rod.
        flexibility: flexibility of the springs at A, between the parts, and at B, m/N.

    Returns:
        Displacements (N, e) at the start and at the end of each element, without the stretch of the
        spring between the parts, and this stretch (N,).
    """
    axial = np.broadcast_to(beam.properties.axial, beam.lengths.shape)
    element_flexibility = beam.lengths / axial
    start, middle, end = flexibility
    total = element_flexibility.sum(axis=-1) + start + middle + end
    far = (start + np.cumsum(element_flexibility, axis=-1)) / total[..., None]
    return far - element_flexibility / total[..., None], far, middle / total


def _at_nodes(basis: Array, rows: Indices) -> Array:
    """Return the rows (N, p, j, k) of a basis (N, n, k) or (n, k) with indices (N, p, j)."""
    samples = np.arange(len(rows))[:, None, None]
    per_sample = np.broadcast_to(basis, (len(rows), *basis.shape[-2:]))
    return np.asarray(per_sample[samples, rows])


def _dot(first: Array, second: Array) -> Array:
    """Return the scalar products (N, 1) of vectors (N, 3)."""
    return np.sum(first * second, axis=-1, keepdims=True)
