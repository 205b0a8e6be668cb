"""A second machine in the scene, see-through: what was measured in step with the motion, or another model beside it."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from tauloop.common.errors import TauloopError
from tauloop.geometry.machine_geometry import MachineGeometry, machine_shape
from tauloop.model import Model
from tauloop.viewer.playback import Playback
from tauloop.viewer.scene import MachineScene
from tauloop.viewer.stage import Stage


class Ghost:
    """Follows a log at the time shown, or the actuator positions shown.

    Attributes:
        q: its coordinates (n_q,).
    """

    def __init__(
        self, viewer: Stage, name: str, model: Model, measured: Playback | None = None
    ) -> None:
        """Build it.

        Args:
            viewer: that shows the machine.
            name: node of the scene, and what it is called in the panel.
            model: the other machine, or the same.
            measured: what it follows in time; the actuators of the machine shown without it.
        """
        self._viewer, self._name, self._model, self._measured = viewer, name, model, measured
        self.q = np.array(model.assembly.q if measured is None else measured.q[0])
        self._shape = machine_shape(model.assembly.loops)
        self._scene = MachineScene(viewer.server, model, self._shape.at(self.q[None]), ghost=name)
        self.words = viewer.server.gui.add_markdown("")

    def follow(self, geometry: MachineGeometry) -> None:
        """Go where the log or the actuators are, and say how far its tool is from the machine's."""
        try:
            self.q = self._next()
        except TauloopError as error:
            self.words.content = f"**{self._name}** stays: {error.problems[0].what}"
            return
        own = self._shape.at(self.q[None])
        self._scene.show(own)
        apart = 1e3 * float(np.linalg.norm(own.tool[0] - geometry.tool[0]))
        turn = Rotation.from_matrix(own.tool_rotation[0] @ geometry.tool_rotation[0].T).magnitude()
        self.words.content = f"**{self._name}** (see-through): tool {apart:.3g} mm and {np.degrees(turn):.3g} deg away"

    def _next(self) -> np.ndarray:
        viewer = self._viewer
        if self._measured is not None:
            return self._measured.q[self._measured.sample(viewer.moment)]
        position = viewer.model.actuators.ports.at(viewer.q)
        return np.asarray(self._model.actuators.follow(position, start=self.q).q)
