"""Marks where the machine is at its ends: joints beyond their limits, and poses near a singularity."""

from __future__ import annotations

from typing import Any

import numpy as np

from tauloop.display.palette import RESIDUAL
from tauloop.geometry.machine_geometry import MachineGeometry
from tauloop.kinematics.singularities import KINDS, least_distance, singularities
from tauloop.mechanism.model import LIMIT_KINDS
from tauloop.mechanism.poses import placement_pose
from tauloop.model import Model
from tauloop.viewer.stage import Stage

#: What the machine does there, by `KINDS`.
EFFECTS = {
    "serial": "leg side: the platform cannot leave",
    "parallel": "platform side: motors lose hold",
    "constraint": "loops: a freedom is gained",
}
#: Pieces of a path that keep their limits, leave them, and pass near a singularity; different in
#: lightness too.
INSIDE, BEYOND, SINGULAR = RESIDUAL, "#e69f00", "#1f2328"


def path_colours(model: Model, q: np.ndarray) -> list[str]:
    """Colours of the samples (N, n_q) of a motion."""
    beyond = (model.limits.room(q) < 0.0).any(axis=1)
    measured = singularities(model, q)
    near = np.stack([measured.distance(kind) for kind in KINDS]).min(axis=0) < least_distance(model)
    return np.where(near, SINGULAR, np.where(beyond, BEYOND, INSIDE)).tolist()


class Marks:
    """Words in the scene at what is beyond its limits, and at the tool near a singularity."""

    def __init__(self, viewer: Stage) -> None:
        """Begin without any."""
        self._viewer, self._near = viewer, least_distance(viewer.model)
        self._labels: dict[str, Any] = {}

    def follow(self, geometry: MachineGeometry) -> str:
        """Mark the pose shown, and say the same in Markdown."""
        viewer = self._viewer
        model, q = viewer.model, viewer.q
        outside = {
            item.coordinate: item
            for kind in LIMIT_KINDS
            for item in model.limits.beyond(q[None], kind=kind)
        }
        measured = singularities(model, q[None])
        distances = {kind: float(measured.distance(kind)[0]) for kind in KINDS}
        near = [kind for kind in KINDS if distances[kind] < self._near]
        texts = {
            f"limit/{name}": (f"{item.amount}", _place(model, name, geometry))
            for name, item in outside.items()
        }
        if near:
            worst = min(near, key=distances.__getitem__)
            texts["singular"] = (
                f"near singular ({EFFECTS[worst]}): {distances[worst]:.2g}",
                geometry.tool[0],
            )
        for name, (text, place) in texts.items():
            if name not in self._labels:
                self._labels[name] = viewer.server.scene.add_label(f"/marks/{name}", text)
            self._labels[name].text, self._labels[name].position = text, place
        for name, label in self._labels.items():
            label.visible = name in texts
        lines = [
            f"**Near a singularity** ({EFFECTS[kind]}): {distances[kind]:.2g} of 1" for kind in near
        ]
        if outside:
            lines.append(
                "**Outside its limits:** "
                + ", ".join(f"`{name}` {item.amount}" for name, item in outside.items())
            )
        return "  \n".join(lines)


def _place(model: Model, coordinate: str, geometry: MachineGeometry) -> np.ndarray:
    """Where a coordinate is in the scene (3,), m: at its joint, amid its rod, else at the tool."""
    for segment, ends in zip(geometry.shape.segments, geometry.segments[0], strict=True):
        if segment.kind == "rod" and segment.name == coordinate:
            return np.asarray(ends.mean(axis=0))
    for joint in model.mechanism.joints:
        if coordinate == joint.name or coordinate in joint.velocity_names:
            if joint.child.body == geometry.shape.platform:
                break
            place = placement_pose(model.mechanism, joint.child).position
            return np.asarray(geometry.fixed_to(joint.child.body, place[None])[0, 0])
    return geometry.tool[0]
