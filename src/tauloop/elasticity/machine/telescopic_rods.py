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
    panel_length = length / PANELS
    panel_starts = np.arange(PANELS) * panel_length
    distances_in_panel = 0.5 * (_GAUSS_POINTS + 1.0) * panel_length
    weights = 0.5 * _GAUSS_WEIGHTS * panel_length
    return PartMass(
        masses=np.tile(mass_per_length * weights, PANELS),
        distances=(panel_starts[:, None] + distances_in_panel).ravel(),
    )


def equivalent_mass(mass: float, first_moment: float, second_moment: float) -> PartMass:
    """Return two equal point masses with the given total mass and moments.

    Args:
        mass: total mass, kg.
        first_moment, second_moment: moments of the mass about the outer end, kg m and kg m^2.
    """
    if mass == 0.0:
        return PartMass(masses=np.zeros(0), distances=np.zeros(0))
    center = first_moment / mass
    radius = np.sqrt(max(second_moment / mass - center**2, 0.0))
    return PartMass(
        masses=np.full(2, 0.5 * mass), distances=np.array([center - radius, center + radius])
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class TelescopicRod:
    """A telescopic rod, with the motion of its point masses.

    The motion is a function of the coordinates of the rod's element in the structure. An elastic
    rod consists of e beam elements.

    Attributes:
        bodies: bodies or nodes that carry the ends A and B.
        ends: positions (N, 3) of the ends A and B, m.
        axes: (N, 3, 3) local axes as columns; x points from A to B.
        lower, upper: masses of the parts.
        beam: bending and stretch of an elastic rod; None for a rigid rod.
        compliances: compliances of the springs in series with the stretch: at A, between the
            parts, and at B, m/N.
        axial_fractions: fractions of an axial displacement of B by which the lower and the upper
            part of a rigid rod move; None for an elastic rod, or a rod of fixed length.
        has_rotor: whether the element has a coordinate of the motor after those of the ends.
    """

    bodies: tuple[str, str]
    ends: tuple[Array, Array]
    axes: Array
    lower: PartMass
    upper: PartMass
    beam: ReducedBeam | None = None
    compliances: tuple[float, float, float] = (0.0, 0.0, 0.0)
    axial_fractions: tuple[float, float] | None = None
    has_rotor: bool = False

    @property
    def masses(self) -> Array:
        """Masses (p,) of all point masses, those of the lower part first."""
        return np.concatenate([self.lower.masses, self.upper.masses])

    @cached_property
    def lengths(self) -> Array:
        """Lengths (N,) of the rod, m."""
        return np.asarray(np.linalg.norm(self.ends[1] - self.ends[0], axis=-1))

    @cached_property
    def positions(self) -> Array:
        """Distances (N, p) of all point masses from A, m."""
        shape = (len(self.lengths), len(self.lower.distances))
        lower = np.broadcast_to(self.lower.distances, shape)
        upper = self.lengths[:, None] - self.upper.distances
        return np.concatenate([lower, upper], axis=1)

    @cached_property
    def is_upper(self) -> NDArray[np.bool_]:
        """Whether each point mass (p,) belongs to the upper part."""
        return np.arange(len(self.masses)) >= len(self.lower.masses)

    @cached_property
    def shapes(self) -> Array:
        """Matrices (N, p, 3, k) from the element's coordinates to the points' displacements.

        The displacements are in local axes.
        """
        shapes = self._rigid_shapes() if self.beam is None else self._beam_shapes(self.beam)
        if self.has_rotor:
            shapes = np.insert(shapes, 6, 0.0, axis=-1)
        return shapes

    def _rigid_shapes(self) -> Array:
        """Return the shapes (N, p, 3, 6) of a rod that stays straight."""
        fraction = self.positions / self.lengths[:, None]
        shapes = np.zeros((*fraction.shape, 3, 6))
        for axis in range(3):
            weight = fraction
            if axis == 0 and self.axial_fractions is not None:
                weight = np.where(self.is_upper, self.axial_fractions[1], self.axial_fractions[0])
            shapes[..., axis, axis] = 1.0 - weight
            shapes[..., axis, 3 + axis] = weight
        return shapes

    def _beam_shapes(self, beam: ReducedBeam) -> Array:
        """Return the shapes (N, p, 3, k) of a rod that bends and stretches."""
        shapes = np.zeros((*self.positions.shape, 3, beam.size))
        index, within, element_lengths = self._beam_elements(beam)
        for axis, motion in ((1, BeamMotion.BEND_XY), (2, BeamMotion.BEND_XZ)):
            positions, signs = beam.indices_and_signs[motion]
            basis = beam.motions[motion].basis
            cubic, _, _ = bending_shapes(within, element_lengths, np.zeros_like(element_lengths))
            rows = _at_nodes(basis, 2 * index[..., None] + np.arange(4))
            shapes[..., axis, positions] = signs * np.einsum("npj,npjk->npk", cubic, rows)
        shapes[..., 0, beam.indices_and_signs[BeamMotion.STRETCH][0]] = self._stretch(
            beam, index, within
        )
        return shapes

    def _beam_elements(self, beam: ReducedBeam) -> tuple[Indices, Array, Array]:
        """Return the beam elements that contain the points.

        Returns:
            For each point (N, p): index of its beam element, position in this element (0 to 1), and
            length of this element, m.
        """
        lengths = np.broadcast_to(beam.lengths, (len(self.lengths), beam.lengths.shape[-1]))
        ends = np.cumsum(lengths, axis=-1)
        index = np.sum(self.positions[..., None] > ends[:, None, :], axis=-1)
        index = np.minimum(index, lengths.shape[-1] - 1)
        element_length = np.take_along_axis(lengths, index, axis=-1)
        start = np.take_along_axis(ends - lengths, index, axis=-1)
        within = np.clip((self.positions - start) / element_length, 0.0, 1.0)
        return index, within, element_length

    def _stretch(self, beam: ReducedBeam, index: Indices, within: Array) -> Array:
        """Return the matrix (N, p, k) from the stretch coordinates to axial displacements."""
        element_starts, element_ends, middle_stretch = stretch_field(beam, self.compliances)
        at_start = np.take_along_axis(element_starts, index, axis=-1)
        at_end = np.take_along_axis(element_ends, index, axis=-1)
        jump = np.where(self.is_upper, middle_stretch[:, None], 0.0)
        fraction = at_start + within * (at_end - at_start) + jump
        basis = beam.motions[BeamMotion.STRETCH].basis[..., 2:]
        rows = _at_nodes(basis, index[..., None] + np.arange(2))
        weights = np.stack([1.0 - within, within], axis=-1)
        modes = np.einsum("npj,npjk->npk", weights, rows)
        _, signs = beam.indices_and_signs[BeamMotion.STRETCH]
        shapes = np.concatenate([(1.0 - fraction)[..., None], fraction[..., None], modes], axis=-1)
        return np.asarray(signs * shapes)

    def acceleration(
        self, velocities: tuple[Array, Array], accelerations: tuple[Array, Array]
    ) -> Array:
        """Return the accelerations (N, p, 3) of all points of the undeformed rod.

        With d = B - A = L u (length L, unit vector u), L'' = u·d'' + L |u'|² and
        u'' = (d'' - L'' u - 2 L' u') / L. A point of the lower part at the distance s from A has
        the acceleration A'' + s u''. A point of the upper part at the distance s from B has
        B'' - s u''.

        Args:
            velocities: (N, 3) of A and B.
            accelerations: (N, 3) of A and B.
        """
        L_rate, u_rate = self._rates(velocities)
        L = self.lengths[:, None]
        u = self.axes[..., 0]
        relative = accelerations[1] - accelerations[0]
        L_second = _dot(u, relative) + L * _dot(u_rate, u_rate)
        u_second = (relative - L_second * u - 2.0 * L_rate * u_rate) / L
        lower = accelerations[0][:, None] + self.lower.distances[:, None] * u_second[:, None]
        upper = accelerations[1][:, None] - self.upper.distances[:, None] * u_second[:, None]
        return np.concatenate([lower, upper], axis=1)

    def _rates(self, velocities: tuple[Array, Array]) -> tuple[Array, Array]:
        """Return L' (N, 1) and u' (N, 3), the time derivatives of length and direction."""
        u = self.axes[..., 0]
        difference = velocities[1] - velocities[0]
        L_rate = _dot(u, difference)
        return L_rate, (difference - L_rate * u) / self.lengths[:, None]


@dataclass(frozen=True, kw_only=True, eq=False)
class RodRotor(TelescopicRod):
    """The reflected inertia of a motor that moves with the length L of a rod.

    The inertia (kg) is represented by a fictitious point mass, which is the only point of the upper
    part. Its displacement along the rod is the change of L, its acceleration is L''.
    """

    @cached_property
    def shapes(self) -> Array:
        """Matrix (N, 1, 3, 6) from the ends' displacements to the change of the length."""
        shapes = np.zeros((len(self.lengths), 1, 3, 6))
        shapes[:, 0, 0, 0] = -1.0
        shapes[:, 0, 0, 3] = 1.0
        return shapes

    def acceleration(
        self, velocities: tuple[Array, Array], accelerations: tuple[Array, Array]
    ) -> Array:
        """Return L'' u (N, 1, 3)."""
        _, u_rate = self._rates(velocities)
        u = self.axes[..., 0]
        L_second = _dot(u, accelerations[1] - accelerations[0])
        L_second = L_second + self.lengths[:, None] * _dot(u_rate, u_rate)
        return np.asarray((L_second * u)[:, None])


def stretch_field(
    beam: ReducedBeam, compliances: tuple[float, float, float]
) -> tuple[Array, Array, Array]:
    """Return the static axial displacements of a rod with springs for a unit displacement of B.

    The rod and the springs are in series. End A is fixed.

    Args:
        beam: the rod.
        compliances: compliances of the springs at A, between the parts, and at B, m/N.

    Returns:
        Three arrays: the displacements at the start (N, e) and at the end (N, e) of each beam
        element, both without the stretch of the spring between the parts; and this stretch (N,).
    """
    axial = np.broadcast_to(beam.properties.axial, beam.lengths.shape)
    element_compliances = beam.lengths / axial
    at_A, middle, at_B = compliances
    total = element_compliances.sum(axis=-1) + at_A + middle + at_B
    element_ends = (at_A + np.cumsum(element_compliances, axis=-1)) / total[..., None]
    element_starts = element_ends - element_compliances / total[..., None]
    return element_starts, element_ends, middle / total


def _at_nodes(basis: Array, rows: Indices) -> Array:
    """Return the rows (N, p, j, k) of a basis (N, n, k) or (n, k) with indices (N, p, j)."""
    samples = np.arange(len(rows))[:, None, None]
    per_sample = np.broadcast_to(basis, (len(rows), *basis.shape[-2:]))
    return np.asarray(per_sample[samples, rows])


def _dot(first: Array, second: Array) -> Array:
    """Return the scalar products (N, 1) of vectors (N, 3)."""
    return np.sum(first * second, axis=-1, keepdims=True)
