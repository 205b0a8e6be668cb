"""A second, transparent machine in the scene: a measured motion, or another model."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from tauloop.common.errors import TauloopError
from tauloop.geometry.machine_geometry import MachineGeometry, machine_shape
from tauloop.model import Model
from tauloop.viewer.playback import Playback
from tauloop.viewer.scene.machine_scene import MachineScene
from tauloop.viewer.stage import Stage


class Ghost:
    """A transparent machine that follows a log in time, or the actuators of the main machine.

    Attributes:
        q: coordinates of the transparent machine (n_q,).
        caption: text in the panel with the distance and angle between the two tools.
    """

    def __init__(
        self, viewer: Stage, name: str, model: Model, measured: Playback | None = None
    ) -> None:
        """Build the scene of the transparent machine.

        Args:
            viewer: the viewer of the main machine.
            name: name of the node in the scene, and in the panel.
            model: the transparent machine, which may be the same as the main machine.
            measured: motion to follow in time; default: follow the actuators of the main machine.
        """
        self._viewer = viewer
        self._name = name
        self._model = model
        self._measured = measured
        self.q = np.array(model.assembly.q if measured is None else measured.q[0])
        self._shape = machine_shape(model)
        self._scene = MachineScene(
            viewer.server,
            model,
            self._shape.at(self.q[None]),
            name=name,
            has_names=False,
            is_ghost=True,
        )
        self.caption = viewer.server.gui.add_markdown("")

    def follow(self, geometry: MachineGeometry) -> None:
        """Move to the pose of the log or of the actuators, and show the distance of the tools."""
        try:
            self.q = self._followed_coordinates()
        except TauloopError as error:
            self.caption.content = f"**{self._name}** does not follow: {error.problems[0].what}"
            return
        ghost = self._shape.at(self.q[None])
        self._scene.show(ghost)
        distance = 1e3 * float(np.linalg.norm(ghost.tool[0] - geometry.tool[0]))
        rotation = Rotation.from_matrix(ghost.tool_rotation[0] @ geometry.tool_rotation[0].T)
        angle = np.degrees(rotation.magnitude())
        self.caption.content = (
            f"**{self._name}** (transparent): tool {distance:.3g} mm and {angle:.3g} deg away"
        )

    def _followed_coordinates(self) -> np.ndarray:
        """Return the coordinates (n_q,) of the log, or at the main machine's actuators."""
        viewer = self._viewer
        if self._measured is not None:
            return self._measured.q[self._measured.sample(viewer.time)]
        position = viewer.model.actuators.ports.at(viewer.q)
        return np.asarray(self._model.actuators.follow(position, start=self.q).q)
