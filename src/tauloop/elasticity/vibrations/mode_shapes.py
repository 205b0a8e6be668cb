"""Displacements of points of bodies and rods in the modes of a machine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.elasticity.frame.assembled import AssembledStructure
from tauloop.elasticity.frame.beams import Array, BeamMotion
from tauloop.elasticity.frame.structure import Element
from tauloop.elasticity.vibrations.machine_modes import MachineModes
from tauloop.mechanism.model import BASE

#: Suffixes of the names of a telescopic rod's parts.
PARTS = (".lower", ".upper")


class ModeShapes:
    """The motion of all points of a machine in its modes at a single pose.

    Attributes:
        count: number of modes m.
    """

    def __init__(self, result: MachineModes, pose: int = 0) -> None:
        """Select the pose with this index."""
        self._result, self._pose = result, pose
        self._assembled: AssembledStructure = result.assembled
        shapes = result.modes.shapes if result.servo is None else result.servo.shapes
        self._shapes = shapes[pose]
        self.count = self._shapes.shape[-1]

    def displacement(self, owner: str, points: np.ndarray) -> np.ndarray:
        """Return displacements (k, 3, m) of points of a body or rod, in the axes of the base.

        With controlled motors the displacements u are complex, and a point moves by
        Re(u exp(i ω t)).

        Args:
            owner: a body, a rod, or a part of a telescopic rod (``NAME.lower``, ``NAME.upper``).
            points: positions (k, 3) in the base frame, m.
        """
        rod = owner
        for suffix in PARTS:
            rod = rod.removesuffix(suffix)
        beams = list(self._beams(rod))
        if beams:
            return self._of_beams(beams, points)
        if owner in self._assembled.body_motion and owner != BASE:
            return self._of_body(owner, points)
        names = (body.name for body in self._assembled.structure.bodies)
        prefix = self._result.built.reduced.get(owner, "")
        nodes = [name for name in names if prefix and name.startswith(f"{prefix}.node")]
        if nodes:
            return self._of_nodes(nodes, points)
        if owner == BASE:
            return np.zeros((*points.shape, self.count))
        return self._of_line(rod, owner, points)

    def _beams(self, owner: str) -> Iterator[tuple[Element, Array]]:
        """Yield the beams of a body or rod, and their coordinates (k, m) in the modes."""
        elements = zip(
            self._assembled.structure.elements, self._assembled.element_motion, strict=True
        )
        for element, motion in elements:
            if element.beam is None:
                continue
            first = element.attachments[0].body
            is_of_body = element.name.startswith(f"{owner}.") and first.startswith(f"{owner}.")
            if element.name == owner or is_of_body:
                yield element, motion[self._pose] @ self._shapes

    def _of_beams(self, beams: list[tuple[Element, Array]], points: np.ndarray) -> np.ndarray:
        """Return the displacements of points, each of which moves with the nearest beam."""
        displacements, distances = [], []
        for element, motion in beams:
            start, end = (self._point_at_pose(item.point) for item in element.attachments[:2])
            fraction = (points - start) @ (end - start) / np.sum((end - start) ** 2)
            nearest = start + np.clip(fraction, 0.0, 1.0)[:, None] * (end - start)
            distances.append(np.linalg.norm(points - nearest, axis=1))
            displacements.append(self._of_beam(element, motion, points))
        nearest_beam = np.argmin(distances, axis=0)
        return np.asarray(np.stack(displacements)[nearest_beam, np.arange(len(points))])

    def _of_beam(self, element: Element, motion: Array, points: np.ndarray) -> np.ndarray:
        """Return the displacements of points that move with the cross-sections of a beam."""
        beam = element.beam
        assert beam is not None
        ends = len(beam.start) + len(beam.end)
        # The coordinate of a rotor in a rod is between those of the ends and of the modes.
        motion = np.delete(motion, np.arange(ends, element.external), axis=0)
        lengths = beam.lengths.reshape(-1, beam.lengths.shape[-1])
        lengths = lengths[self._pose if len(lengths) > 1 else 0]
        nodes = np.concatenate([[0.0], np.cumsum(lengths)])
        axes = element.attachments[0].axes
        axes = axes[self._pose] if axes.ndim > 2 else axes
        local = (points - self._point_at_pose(element.attachments[0].point)) @ axes
        position = np.clip(local[:, 0], 0.0, nodes[-1])
        section = {}
        for name, item in beam.motions.items():
            positions, signs = beam.indices_and_signs[name]
            basis = item.basis.reshape(-1, *item.basis.shape[-2:])
            basis = basis[self._pose if len(basis) > 1 else 0]
            chain = basis @ (signs[:, None] * motion[positions])
            chain = chain.reshape(len(nodes), -1, self.count)
            section[name] = [
                _interpolated(position, nodes, chain[:, k]) for k in range(chain.shape[1])
            ]
        zero = np.zeros((len(points), self.count))
        stretch = section[BeamMotion.STRETCH][0]
        twist = section.get(BeamMotion.TWIST, [zero])[0]
        v, v_slope = section[BeamMotion.BEND_XY]
        w, w_slope = section[BeamMotion.BEND_XZ]
        x, y, z = (local[:, 0] - position)[:, None], local[:, 1, None], local[:, 2, None]
        displacement = [
            stretch - y * v_slope - z * w_slope,
            v + x * v_slope - z * twist,
            w + x * w_slope + y * twist,
        ]
        return np.asarray(np.einsum("ij,kjm->kim", axes, np.stack(displacement, axis=1)))

    def _of_body(self, name: str, points: np.ndarray) -> np.ndarray:
        """Return the displacements of points of a rigid body or node: u + θ × r."""
        twist = self._assembled.body_motion[name][self._pose] @ self._shapes
        arm = points - self._point_at_pose(self._assembled.origin(name))
        rotated = np.cross(twist[None, 3:], arm[:, :, None], axis=1)
        return np.asarray(twist[None, :3] + rotated)

    def _of_nodes(self, names: list[str], points: np.ndarray) -> np.ndarray:
        """Return the displacements of points as averages over nodes, weighted by 1 / distance²."""
        origins = np.array([self._point_at_pose(self._assembled.origin(name)) for name in names])
        squared = np.sum((points[:, None] - origins) ** 2, axis=2)
        extent = max(float(np.sum(np.ptp(origins, axis=0) ** 2)), np.finfo(float).tiny)
        weights = 1.0 / (squared + 1e-12 * extent)
        weights /= weights.sum(axis=1, keepdims=True)
        by_node = np.stack([self._of_body(name, points) for name in names], axis=1)
        return np.asarray(np.einsum("kn,knim->kim", weights, by_node))

    def _of_line(self, rod: str, owner: str, points: np.ndarray) -> np.ndarray:
        """Return the displacements of points of a straight rod between its two ends."""
        ends = self._line_ends(rod)
        if ends is None:
            return np.zeros((*points.shape, self.count))
        (first, A), (second, B) = ends
        at_start = self._end_motion(first, A)
        at_end = self._end_motion(second, B)
        direction = (B - A) / np.linalg.norm(B - A)
        fraction = ((points - A) @ direction / np.linalg.norm(B - A))[:, None, None]
        displacement = (1.0 - fraction) * at_start + fraction * at_end
        if owner.endswith(PARTS):
            # A part moves along the rod with its outer end.
            outer_end = at_end if owner.endswith(PARTS[1]) else at_start
            axial = np.einsum("i,kim->km", direction, outer_end - displacement)
            displacement = displacement + direction[None, :, None] * axial[:, None]
        return np.asarray(displacement)

    def _end_motion(self, body: str, point: np.ndarray) -> np.ndarray:
        """Return the displacement (1, 3, m) of an end of a rod."""
        if body == BASE:
            return np.zeros((1, 3, self.count))
        return self._of_body(body, point[None])

    def _line_ends(self, rod: str) -> tuple[tuple[str, np.ndarray], ...] | None:
        """Return the bodies and points of a rod's ends; None if the rod is not in the structure."""
        structure = self._assembled.structure
        for link in structure.links:
            if link.name == f"{rod}.length":
                pairs = zip(link.bodies, link.points, strict=True)
                return tuple((body, self._point_at_pose(point)) for body, point in pairs)
        for element in structure.elements:
            if element.name in (rod, f"{rod}.mass"):
                return tuple(
                    (end.body, self._point_at_pose(end.point)) for end in element.attachments[:2]
                )
        return None

    def _point_at_pose(self, point: Array) -> np.ndarray:
        """Return a point (3,) at the selected pose."""
        depends_on_pose = point.ndim > 1 and len(point) > 1
        selected = point[self._pose] if depends_on_pose else point
        return np.asarray(selected).reshape(-1)[:3]


def _interpolated(position: Array, nodes: Array, values: Array) -> np.ndarray:
    """Return values (k, m) at positions (k,), interpolated between nodes.

    Args:
        position: (k,) positions.
        nodes: (e + 1,) positions of the nodes.
        values: (e + 1, m) values at the nodes.
    """
    index = np.clip(np.searchsorted(nodes, position, side="right") - 1, 0, len(nodes) - 2)
    fraction = ((position - nodes[index]) / (nodes[index + 1] - nodes[index]))[:, None]
    return np.asarray((1.0 - fraction) * values[index] + fraction * values[index + 1])
