"""Forces on the machine: arrows at motors and platform, rods colored by tension and compression."""

from __future__ import annotations

from typing import Any

import numpy as np

from tauloop.common.errors import TauloopError
from tauloop.compiler.state import Forces
from tauloop.dynamics.joint_forces import JointForces, joint_forces
from tauloop.geometry.machine_geometry import MachineGeometry
from tauloop.model import Model
from tauloop.viewer.playback import Playback
from tauloop.viewer.scene.machine_scene import rgb
from tauloop.viewer.stage import Stage

#: Colors of rods in compression, in tension and without force; they differ in hue and lightness.
COMPRESSION_COLOR = "#b35806"
TENSION_COLOR = "#053061"
ZERO_COLOR = "#e8e4da"
#: Color of motor forces.
MOTOR_COLOR = "#b0301c"
#: Color of forces in joints.
JOINT_COLOR = "#1b7837"
#: Length of the longest arrow, as a fraction of the machine's largest dimension.
ARROW_LENGTH = 0.22
#: Radius of the shaft of an arrow, as a fraction of the machine's largest dimension.
SHAFT_RADIUS = 0.008


def motion_forces(model: Model, playback: Playback) -> Forces:
    """Return the inverse dynamics of a motion.

    For a motion without velocities and accelerations, the machine is at rest in every sample.

    Raises:
        TauloopError: the forces are not determined.
    """
    functions = model.functions(playback.entry)
    velocity, acceleration = playback.rates or np.zeros(
        (2, len(playback.q), functions.ports.velocity.size)
    )
    return functions.inverse_dynamics(
        functions.ports.at(playback.q), velocity, acceleration, start=playback.q
    )


def rod_forces(model: Model, forces: Forces) -> dict[str, np.ndarray]:
    """Return the axial forces of rods (N,), in newtons, by name; compression is positive.

    The force is the Lagrange multiplier of the rod's equation (d.d - L^2) / (2 L) = 0, where d is
    the vector between the ends of the rod, and L its length.
    """
    rows = {name.partition(":")[0]: i for i, name in enumerate(forces.closure_names)}
    multipliers = np.atleast_2d(forces.closure_force)
    values = {
        rod.name: multipliers[:, rows[rod.name]] for rod in model.mechanism.rods if rod.name in rows
    }
    if forces.tension is not None:
        values |= dict(zip(forces.tension_names, -np.atleast_2d(forces.tension).T, strict=True))
    return values


def force_color(fraction: float) -> str:
    """Return the color of a rod with this fraction of the largest force, from -1 (tension) to 1."""
    full = np.array(rgb(COMPRESSION_COLOR if fraction > 0 else TENSION_COLOR))
    zero = np.array(rgb(ZERO_COLOR))
    shade = zero + min(abs(fraction), 1.0) ** 0.7 * (full - zero)
    red, green, blue = np.round(shade).astype(int).tolist()
    return f"#{red:02x}{green:02x}{blue:02x}"


class ForceLayer:
    """A layer with forces: those of the motion at its samples, otherwise those at rest.

    Attributes:
        box: check box that shows the layer.
        joints_box: check box that adds the forces in joints.
    """

    def __init__(self, viewer: Stage, playback: Playback | None, *, is_on: bool) -> None:
        """Add the panel."""
        self._viewer = viewer
        self._playback = playback
        self._motion_forces: Forces | None = None
        self._joint_forces_of_motion: JointForces | None = None
        self._node: Any = None
        gui = viewer.server.gui
        with gui.add_folder("Forces", expand_by_default=is_on):
            self.box = gui.add_checkbox("show", is_on)
            self.joints_box = gui.add_checkbox(
                "in joints", False, hint="Forces on the child body of each joint."
            )
            self._legend = gui.add_markdown("Arrows and colors.")
        for box in (self.box, self.joints_box):
            box.on_update(lambda _: viewer.show(viewer.q, sample=viewer.sample))

    def follow(self, geometry: MachineGeometry, sample: int | None) -> None:
        """Show the forces at the current pose.

        Args:
            geometry: the machine at this pose.
            sample: index of the sample of the motion; None if the pose does not belong to it.
        """
        scene = self._viewer.scene
        if not self.box.value:
            if self._node is not None:
                self._node.visible = False
                scene.color_rods({})
                scene.name_drives({})
            return
        model = self._viewer.model
        try:
            at_rest = Playback(time=np.zeros(1), q=self._viewer.q[None])
            forces = motion_forces(model, at_rest) if sample is None else self._forces_of_motion()
        except TauloopError as error:
            self._legend.content = f"Not determined: {error.problems[0].what}."
            scene.color_rods({})
            return
        row = sample if sample is not None else 0
        rods = {name: float(values[row]) for name, values in rod_forces(model, forces).items()}
        motors = dict(
            zip(forces.actuator_names, np.atleast_2d(forces.force)[row].tolist(), strict=True)
        )
        units = dict(zip(forces.actuator_names, model.output_ports("actuators")[1], strict=True))
        largest = max(map(abs, rods.values()), default=0.0) or 1.0
        scene.color_rods({name: force_color(value / largest) for name, value in rods.items()})
        scene.name_drives(
            {name: f"{name}: {value:.3g} {units[name]}" for name, value in motors.items()}
        )
        joints = None
        if self.joints_box.value:
            joints = self._forces_in_joints(forces, sample)
        self._draw(geometry, rods, motors, units, None if joints is None else (joints, row))
        has_rates = self._playback is not None and self._playback.rates is not None
        condition = "in motion" if sample is not None and has_rates else "at rest"
        legend = "".join(
            f'<span style="color:{color}">■</span> {name} up to {value:.3g} N  \n'
            for color, name, value in (
                (COMPRESSION_COLOR, "compression", max(rods.values(), default=0.0)),
                (TENSION_COLOR, "tension", -min(rods.values(), default=0.0)),
            )
            if value > 0.0
        )
        largest_motor = " and ".join(
            f"{value:.3g} {unit}" for unit, value in _largest_by_unit(motors, units).items()
        )
        square = f'<span style="color:{MOTOR_COLOR}">■</span>'
        self._legend.content = f"{legend}{square} motors, {condition}, up to {largest_motor}"
        if joints is not None:
            square = f'<span style="color:{JOINT_COLOR}">■</span>'
            magnitudes = np.linalg.norm(_known_forces(joints)[row], axis=1)
            self._legend.content += f"  \n{square} joints up to {magnitudes.max(initial=0.0):.3g} N"

    def _forces_in_joints(self, forces: Forces, sample: int | None) -> JointForces:
        """Return the forces in all joints; those of a motion are computed only once."""
        model = self._viewer.model
        if sample is None:
            return joint_forces(model, np.zeros(1), forces)
        if self._joint_forces_of_motion is None:
            assert self._playback is not None
            self._joint_forces_of_motion = joint_forces(model, self._playback.time, forces)
        return self._joint_forces_of_motion

    def _forces_of_motion(self) -> Forces:
        """Return the forces of all samples of the motion, which are computed only once."""
        if self._motion_forces is None:
            assert self._playback is not None
            self._motion_forces = motion_forces(self._viewer.model, self._playback)
        return self._motion_forces

    def _draw(
        self,
        geometry: MachineGeometry,
        rods: dict[str, float],
        motors: dict[str, float],
        units: dict[str, str],
        joints: tuple[JointForces, int] | None,
    ) -> None:
        """Draw arrows: motor forces along their axes, rod forces at the platform, joint forces."""
        size = ARROW_LENGTH * self._viewer.scene.size
        lines = []
        colors = []
        largest_by_unit = _largest_by_unit(motors, units)
        axes = geometry.shape.drives
        all_origins, all_directions = geometry.drives
        origins = all_origins[0]
        directions = all_directions[0]
        for axis, origin, direction in zip(axes, origins, directions, strict=True):
            if not axis.rod:
                fraction = motors[axis.name] / (largest_by_unit[units[axis.name]] or 1.0)
                lines.append([origin, origin + size * fraction * direction])
                colors.append(rgb(MOTOR_COLOR))
        largest = max(map(abs, rods.values()), default=0.0) or 1.0
        for segment, endpoints in zip(geometry.shape.segments, geometry.segments[0], strict=True):
            if (
                segment.name in rods
                and segment.kind == "rod"
                and geometry.shape.platform in segment.bodies
            ):
                is_first = segment.bodies[0] == geometry.shape.platform
                tip, other = endpoints if is_first else endpoints[::-1]
                direction = (tip - other) / np.linalg.norm(tip - other)
                force = rods[segment.name]
                lines.append([tip, tip + size * force / largest * direction])
                colors.append(rgb(COMPRESSION_COLOR if force > 0 else TENSION_COLOR))
        if joints is not None:
            forces_in_joints, row = joints
            vectors = _known_forces(forces_in_joints)[row]
            longest = np.linalg.norm(vectors, axis=1).max(initial=0.0) or 1.0
            for origin, vector in zip(forces_in_joints.position[row], vectors, strict=True):
                lines.append([origin, origin + size / longest * vector])
                colors.append(rgb(JOINT_COLOR))
        points = np.array(lines, dtype=np.float32).reshape(-1, 2, 3)
        point_colors = np.array(colors, dtype=np.uint8).reshape(-1, 3)
        if self._node is None:
            radius = SHAFT_RADIUS * self._viewer.scene.size
            self._node = self._viewer.server.scene.add_arrows(
                "/forces",
                points,
                point_colors,
                shaft_radius=radius,
                head_radius=2.4 * radius,
                head_length=5.0 * radius,
            )
        self._node.points = points
        self._node.colors = point_colors
        self._node.visible = len(points) > 0


def _known_forces(joints: JointForces) -> np.ndarray:
    """Return the forces in k joints (N, k, 3), base frame; undetermined components are zero."""
    return np.nan_to_num(joints.wrench_in_base[..., :3])


def _largest_by_unit(motors: dict[str, float], units: dict[str, str]) -> dict[str, float]:
    """Return the largest absolute motor force of each unit."""
    largest = dict.fromkeys(units.values(), 0.0)
    for name, value in motors.items():
        unit = units[name]
        largest[unit] = max(largest[unit], abs(value))
    return largest
