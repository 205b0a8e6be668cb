"""Marks in the scene: coordinates beyond their limits, and poses near a singularity."""

from __future__ import annotations

import numpy as np

from tauloop.display.palette import RESIDUAL
from tauloop.geometry.machine_geometry import MachineGeometry
from tauloop.kinematics.singularities import SINGULARITY_KINDS, least_distance, singularities
from tauloop.mechanism.model import LIMIT_KINDS
from tauloop.mechanism.poses import placement_pose
from tauloop.model import Model
from tauloop.viewer.stage import Stage

#: Effect of each kind of singularity (`SINGULARITY_KINDS`).
EFFECTS = {
    "serial": "serial: platform blocked in a direction",
    "parallel": "parallel: motors cannot hold the platform",
    "constraint": "constraint: platform gains a degree of freedom",
}
# The colors of a path differ in lightness.
#: Color of a path within limits.
WITHIN_COLOR = RESIDUAL
#: Color of a path beyond limits.
BEYOND_COLOR = "#e69f00"
#: Color of a path near a singularity.
SINGULAR_COLOR = "#1f2328"


def path_colors(model: Model, q: np.ndarray) -> list[str]:
    """Return a color for each sample (N, n_q) of a motion."""
    is_beyond_limit = (model.limits.room(q) < 0.0).any(axis=1)
    measured = singularities(model, q)
    distances = np.stack([measured.distance(kind) for kind in SINGULARITY_KINDS])
    is_near_singular = distances.min(axis=0) < least_distance(model)
    colors = np.where(
        is_near_singular, SINGULAR_COLOR, np.where(is_beyond_limit, BEYOND_COLOR, WITHIN_COLOR)
    )
    return colors.tolist()


class Marks:
    """Labels at coordinates beyond their limits, and at the tool near a singularity."""

    def __init__(self, viewer: Stage) -> None:
        """Start without labels."""
        self._viewer = viewer
        self._least_distance = least_distance(viewer.model)
        self._shown: set[str] = set()

    def follow(self, geometry: MachineGeometry) -> str:
        """Mark the current pose, and return the same information in Markdown."""
        viewer = self._viewer
        model = viewer.model
        q = viewer.q
        outside = {
            item.coordinate: item
            for kind in LIMIT_KINDS
            for item in model.limits.beyond(q[None], kind=kind)
        }
        measured = singularities(model, q[None])
        distances = {kind: float(measured.distance(kind)[0]) for kind in SINGULARITY_KINDS}
        near = [kind for kind in SINGULARITY_KINDS if distances[kind] < self._least_distance]
        texts = {
            f"limit/{name}": (item.short, _position(model, name, geometry))
            for name, item in outside.items()
        }
        if near:
            worst = min(near, key=distances.__getitem__)
            texts["singular"] = (
                f"near singular ({EFFECTS[worst]}): {distances[worst]:.2g}",
                geometry.tool[0],
            )
        labels = viewer.scene.labels
        assert labels is not None
        for name, (text, position) in texts.items():
            labels.put(f"/marks/{name}", text, position)
        for name in self._shown.difference(texts):
            labels.remove(f"/marks/{name}")
        self._shown = set(texts)
        lines = [
            f"**Near a singularity** ({EFFECTS[kind]}): {distances[kind]:.2g} of 1" for kind in near
        ]
        if outside:
            lines.append(
                "**Outside its limits:** "
                + ", ".join(f"`{name}` {item.amount}" for name, item in outside.items())
            )
        return "  \n".join(lines)


def _position(model: Model, coordinate: str, geometry: MachineGeometry) -> np.ndarray:
    """Return the position of a coordinate's mark (3,), m: at its joint or rod, else at the tool."""
    for segment, endpoints in zip(geometry.shape.segments, geometry.segments[0], strict=True):
        if segment.kind == "rod" and segment.name == coordinate:
            return np.asarray(endpoints.mean(axis=0))
    for joint in model.mechanism.joints:
        if coordinate == joint.name or coordinate in joint.velocity_names:
            if joint.child.body == geometry.shape.platform:
                break
            position = placement_pose(model.mechanism, joint.child).position
            return np.asarray(geometry.fixed_to(joint.child.body, position[None])[0, 0])
    return geometry.tool[0]
