"""Overlays inside a machine's solids: frames, joint axes, mass centers, inertia ellipsoids."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from tauloop.common.records import dataclass
from tauloop.geometry.machine_geometry import joint_axes
from tauloop.mechanism.model import BASE, Inertia, Mechanism, SlenderPart
from tauloop.viewer.scene.machine_scene import MachineScene, node_path, rgb

#: Length of the axes of frames, as a fraction of the machine's largest dimension.
FRAME_AXES_LENGTH = 0.06
#: Length of the axes of joints, as a fraction of the machine's largest dimension.
JOINT_AXES_LENGTH = 0.16
#: Radius of the ball at a mass center, as a fraction of the machine's largest dimension.
CENTER_RADIUS = 0.011
#: Smallest semi-axis of an ellipsoid as a fraction of its largest, so that it is visible.
MIN_SEMI_AXIS = 0.02
#: Colors of joint axes, mass centers and ellipsoids.
AXIS_COLOR, CENTER_COLOR, ELLIPSOID_COLOR = "#1b7837", "#b0301c", "#8a6fb0"
#: Opacity of ellipsoids.
ELLIPSOID_OPACITY = 0.55


@dataclass(frozen=True, slots=True, kw_only=True)
class MassProperties:
    """Mass and inertia of a body, a rod or a part of a telescopic rod, in its own frame.

    Attributes:
        name: name of the body, rod or part.
        mass: mass, kg.
        center: mass center (3,), m.
        semi_axes: semi-axes (3,) of the ellipsoid of uniform density with the same mass and
            inertia, m; zero for a point mass.
        rotation: directions of the semi-axes (3, 3), in columns.
    """

    name: str
    mass: float
    center: np.ndarray
    semi_axes: np.ndarray
    rotation: np.ndarray


def mass_properties(mechanism: Mechanism) -> tuple[MassProperties, ...]:
    """Return masses and inertias of all moving bodies and rods with a positive mass."""
    items = []
    for body in mechanism.bodies:
        if body.inertia is not None and body.name != BASE:
            items.append(_of_inertia(mechanism, body.name, body.inertia))
    for rod in mechanism.rods:
        for end, part in (("lower", rod.lower), ("upper", rod.upper)):
            name = rod.name if rod.telescope is None else f"{rod.name}.{end}"
            if isinstance(part, Inertia):
                items.append(_of_inertia(mechanism, name, part))
            elif isinstance(part, SlenderPart):
                sign = -1.0 if rod.telescope is not None and end == "upper" else 1.0
                items.append(_of_slender_part(mechanism, name, part, sign))
    return tuple(item for item in items if item.mass > 0.0)


def _of_inertia(mechanism: Mechanism, name: str, inertia: Inertia) -> MassProperties:
    """Return mass properties and ellipsoid for ten inertial parameters about a frame's origin.

    An ellipsoid with the semi-axes a, b, c has I_1 = m (b^2 + c^2) / 5 about its first axis, so
    a^2 = 5 (I_2 + I_3 - I_1) / (2 m).
    """
    m, *moments = (mechanism.value(value) for value in inertia.parameters)
    if m <= 0.0:
        return MassProperties(
            name=name, mass=m, center=np.zeros(3), semi_axes=np.zeros(3), rotation=np.eye(3)
        )
    center = np.array(moments[:3]) / m
    xx, xy, yy, xz, yz, zz = moments[3:]
    about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    about_center = about_origin - m * (center @ center * np.eye(3) - np.outer(center, center))
    principal, axes = np.linalg.eigh(about_center)
    squares = 2.5 / m * (principal.sum() - 2.0 * principal)
    semi_axes = np.sqrt(np.clip(squares, 0.0, None))
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return MassProperties(name=name, mass=m, center=center, semi_axes=semi_axes, rotation=axes)


def _of_slender_part(
    mechanism: Mechanism, name: str, part: SlenderPart, sign: float
) -> MassProperties:
    """Return mass properties of a slender part, with a line along z as its ellipsoid.

    The half length c follows from the moment of inertia about the mass center, J_c = m c^2 / 5.
    """
    m, moment, about_end = (mechanism.value(value) for value in part.parameters)
    center_distance = moment / m if m > 0.0 else 0.0
    about_center = max(about_end - m * center_distance**2, 0.0)
    half_length = np.sqrt(5.0 * about_center / m) if m > 0.0 else 0.0
    return MassProperties(
        name=name,
        mass=m,
        center=np.array([0.0, 0.0, sign * center_distance]),
        semi_axes=np.array([0.0, 0.0, half_length]),
        rotation=np.eye(3),
    )


class Overlays:
    """Frames, joint axes, mass centers and ellipsoids; each is built when it is first shown.

    Attributes:
        shown: names of the visible overlays.
    """

    #: Names of the overlays in the panel.
    NAMES = ("body frames", "joint axes", "mass centers", "inertia ellipsoids")

    def __init__(self, server: Any, mechanism: Mechanism, scene: MachineScene) -> None:
        """Start without visible overlays.

        Args:
            server: a `viser.ViserServer`.
            mechanism: the machine.
            scene: scene of the machine.
        """
        self._scene = server.scene
        self._mechanism = mechanism
        self._machine = scene
        self.shown: set[str] = set()
        self._nodes: dict[str, list[Any]] = {}
        self._nodes_by_body: dict[str, list[Any]] = {}

    def show(self, name: str, is_shown: bool) -> None:
        """Show or hide an overlay of `NAMES`; solids are transparent while one is visible."""
        if is_shown and name not in self._nodes:
            builders = (self._frames, self._axes, self._centers, self._ellipsoids)
            self._nodes[name] = dict(zip(self.NAMES, builders, strict=True))[name]()
            self.follow()
        for node in self._nodes.get(name, ()):
            node.visible = is_shown
        if is_shown:
            self.shown.add(name)
        else:
            self.shown.discard(name)
        self._machine.show_inside(bool(self.shown))

    def follow(self) -> None:
        """Move all nodes to the machine's pose."""
        for body, nodes in self._nodes_by_body.items():
            pose = self._machine.frames[body].at(0)
            wxyz = Rotation.from_matrix(pose.rotation).as_quat(scalar_first=True)
            for node in nodes:
                node.position = pose.position
                node.wxyz = wxyz

    def _frame(self, kind: str, body: str, **options: Any) -> Any:
        """Return a new node that moves with a body or rod."""
        node = self._scene.add_frame(node_path(body, f"/{kind}"), **options)
        self._nodes_by_body.setdefault(body, []).append(node)
        return node

    def _frames(self) -> list[Any]:
        """Build the frames of the bodies, and return their nodes."""
        length = FRAME_AXES_LENGTH * self._machine.size
        names = [body.name for body in self._mechanism.bodies]
        return [
            self._frame(
                "frames", name, axes_length=length, axes_radius=0.05 * length, origin_radius=0.0
            )
            for name in names
        ]

    def _axes(self) -> list[Any]:
        """Build the axes of the joints, and return their nodes."""
        half = 0.5 * JOINT_AXES_LENGTH * self._machine.size
        lines: dict[str, list[np.ndarray]] = {}
        for axis in joint_axes(self._mechanism):
            assert axis.direction is not None  # a joint has its own axis
            ends = axis.origin + half * np.array([[-1.0], [1.0]]) * axis.direction
            lines.setdefault(axis.body, []).append(ends)
        nodes = []
        for body, ends in lines.items():
            nodes.append(self._frame("axes", body, show_axes=False))
            self._scene.add_line_segments(
                f"{node_path(body, '/axes')}/lines",
                points=np.array(ends, dtype=np.float32),
                colors=rgb(AXIS_COLOR),
                thickness=0.004 * self._machine.size,
            )
        return nodes

    def _centers(self) -> list[Any]:
        """Build the mass centers, and return their nodes."""
        nodes = []
        for item in mass_properties(self._mechanism):
            nodes.append(self._frame("centers", item.name, show_axes=False))
            self._scene.add_icosphere(
                f"{node_path(item.name, '/centers')}/ball",
                radius=CENTER_RADIUS * self._machine.size,
                color=rgb(CENTER_COLOR),
                position=item.center,
            )
        return nodes

    def _ellipsoids(self) -> list[Any]:
        """Build the inertia ellipsoids, and return their nodes."""
        nodes = []
        for item in mass_properties(self._mechanism):
            largest = float(item.semi_axes.max())
            if largest == 0.0:
                continue
            semi_axes = np.maximum(item.semi_axes, MIN_SEMI_AXIS * largest)
            nodes.append(self._frame("ellipsoids", item.name, show_axes=False))
            self._scene.add_icosphere(
                f"{node_path(item.name, '/ellipsoids')}/ball",
                radius=1.0,
                subdivisions=3,
                color=rgb(ELLIPSOID_COLOR),
                opacity=ELLIPSOID_OPACITY,
                position=item.center,
                wxyz=Rotation.from_matrix(item.rotation).as_quat(scalar_first=True),
                scale=tuple(semi_axes),
            )
        return nodes
