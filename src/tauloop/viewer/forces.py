"""Forces on the machine: arrows at motors and at the platform, rods coloured by tension and compression."""

from __future__ import annotations

from typing import Any

import numpy as np

from tauloop.common.errors import TauloopError
from tauloop.compiler.state import Forces
from tauloop.geometry.machine_geometry import MachineGeometry
from tauloop.model import Model
from tauloop.viewer.playback import Playback
from tauloop.viewer.scene import rgb
from tauloop.viewer.stage import Stage

#: Of rods that are pushed, that are pulled, and that carry nothing: apart in hue and lightness.
PUSHED, PULLED, FREE = "#b35806", "#053061", "#e8e4da"
#: Colour of motor forces; length of the longest arrow and its thickness over the machine's largest
#: dimension.
MOTOR, LONGEST, SHAFT = "#b0301c", 0.22, 0.008


def motion_forces(model: Model, playback: Playback) -> Forces:
    """Inverse dynamics of a motion that is played back; at rest in every sample where there are no accelerations.

    Raises:
        TauloopError: they are not determined.
    """
    functions = model.motion(playback.entry)
    velocity, acceleration = playback.rates or np.zeros(
        (2, len(playback.q), functions.ports.velocity.size)
    )
    return functions.inverse_dynamics(
        functions.ports.at(playback.q), velocity, acceleration, start=playback.q
    )


def rod_forces(model: Model, forces: Forces) -> dict[str, np.ndarray]:
    """Forces of rods by name (N,), N; positive where a rod is pushed together.

    The multiplier of a rod's equation (d.d - L^2) / (2 L) = 0 pushes its ends apart.
    """
    rows = {name.partition(":")[0]: i for i, name in enumerate(forces.closure_names)}
    multipliers = np.atleast_2d(forces.closure_force)
    values = {
        rod.name: multipliers[:, rows[rod.name]] for rod in model.mechanism.rods if rod.name in rows
    }
    if forces.tension is not None:
        values |= dict(zip(forces.tension_names, -np.atleast_2d(forces.tension).T, strict=True))
    return values


def force_colour(share: float) -> str:
    """The colour of a rod with this share of the largest force, from -1 (pulled) to 1 (pushed)."""
    end, free = np.array(rgb(PUSHED if share > 0 else PULLED)), np.array(rgb(FREE))
    red, green, blue = (
        np.round(free + min(abs(share), 1.0) ** 0.7 * (end - free)).astype(int).tolist()
    )
    return f"#{red:02x}{green:02x}{blue:02x}"


class ForceLayer:
    """Shows forces where a box is ticked: of the motion while that is shown, else of the machine at rest.

    Attributes:
        box: the check box.
    """

    def __init__(self, viewer: Stage, playback: Playback | None, *, is_on: bool) -> None:
        """Add the panel."""
        self._viewer, self._playback = viewer, playback
        self._motion: Forces | None = None
        self._node: Any = None
        gui = viewer.server.gui
        with gui.add_folder("Forces", expand_by_default=is_on):
            self.box = gui.add_checkbox("show", is_on)
            self._words = gui.add_markdown("Arrows and colours.")
        self.box.on_update(lambda _: viewer.show(viewer.q, sample=viewer.sample))

    def follow(self, geometry: MachineGeometry, sample: int | None) -> None:
        """Show the forces at the pose shown, which is a sample of the motion or None."""
        scene = self._viewer.scene
        if not self.box.value:
            if self._node is not None:
                self._node.visible = False
                scene.colour_rods({})
                scene.name_drives({})
            return
        model = self._viewer.model
        try:
            still = Playback(time=np.zeros(1), q=self._viewer.q[None])
            forces = self._of_motion(sample) if sample is not None else motion_forces(model, still)
        except TauloopError as error:
            self._words.content = f"Not determined: {error.problems[0].what}."
            scene.colour_rods({})
            return
        row = sample if sample is not None else 0
        rods = {name: float(values[row]) for name, values in rod_forces(model, forces).items()}
        motors = dict(
            zip(forces.actuator_names, np.atleast_2d(forces.force)[row].tolist(), strict=True)
        )
        units = dict(zip(forces.actuator_names, model.output_ports("actuators")[1], strict=True))
        largest = max(map(abs, rods.values()), default=0.0) or 1.0
        scene.colour_rods({name: force_colour(value / largest) for name, value in rods.items()})
        scene.name_drives(
            {name: f"{name}: {value:.3g} {units[name]}" for name, value in motors.items()}
        )
        self._draw(geometry, rods, motors, units)
        when = (
            "in motion"
            if sample is not None and self._playback and self._playback.rates
            else "at rest"
        )
        words = "".join(
            f'<span style="color:{colour}">■</span> {what} up to {value:.3g} N  \n'
            for colour, what, value in (
                (PUSHED, "compression", max(rods.values(), default=0.0)),
                (PULLED, "tension", -min(rods.values(), default=0.0)),
            )
            if value > 0.0
        )
        most = " and ".join(
            f"{value:.3g} {unit}" for unit, value in _largest(motors, units).items()
        )
        self._words.content = (
            f'{words}<span style="color:{MOTOR}">■</span> motors, {when}, up to {most}'
        )

    def _of_motion(self, sample: int) -> Forces:
        if self._motion is None:
            assert self._playback is not None
            self._motion = motion_forces(self._viewer.model, self._playback)
        return self._motion

    def _draw(
        self,
        geometry: MachineGeometry,
        rods: dict[str, float],
        motors: dict[str, float],
        units: dict[str, str],
    ) -> None:
        """Arrows: of motors along their axes, of rods on the platform."""
        size = LONGEST * self._viewer.scene.size
        lines, colours = [], []
        most = _largest(motors, units)
        for axis, origin, way in zip(
            geometry.shape.drives, *(part[0] for part in geometry.drives), strict=True
        ):
            if not axis.rod:
                lines.append(
                    [
                        origin,
                        origin + size * motors[axis.name] / (most[units[axis.name]] or 1.0) * way,
                    ]
                )
                colours.append(rgb(MOTOR))
        largest = max(map(abs, rods.values()), default=0.0) or 1.0
        for segment, ends in zip(geometry.shape.segments, geometry.segments[0], strict=True):
            if (
                segment.name in rods
                and segment.kind == "rod"
                and geometry.shape.platform in segment.bodies
            ):
                tip, other = ends if segment.bodies[0] == geometry.shape.platform else ends[::-1]
                way = (tip - other) / np.linalg.norm(tip - other)
                lines.append([tip, tip + size * rods[segment.name] / largest * way])
                colours.append(rgb(PUSHED if rods[segment.name] > 0 else PULLED))
        points = np.array(lines, dtype=np.float32).reshape(-1, 2, 3)
        if self._node is None:
            radius = SHAFT * self._viewer.scene.size
            self._node = self._viewer.server.scene.add_arrows(
                "/forces",
                points,
                np.array(colours, dtype=np.uint8).reshape(-1, 3),
                shaft_radius=radius,
                head_radius=2.4 * radius,
                head_length=5.0 * radius,
            )
        self._node.points, self._node.colors = (
            points,
            np.array(colours, dtype=np.uint8).reshape(-1, 3),
        )
        self._node.visible = len(points) > 0


def _largest(motors: dict[str, float], units: dict[str, str]) -> dict[str, float]:
    """The largest amount of the motors of each unit."""
    return {
        unit: max(abs(motors[name]) for name in motors if units[name] == unit)
        for unit in units.values()
    }
