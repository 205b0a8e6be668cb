"""A further machine next to the first, with its own sliders."""

from __future__ import annotations

from typing import Any

import numpy as np

from tauloop.common.errors import TauloopError
from tauloop.geometry.machine_geometry import machine_shape
from tauloop.model import Model
from tauloop.viewer.panel.sliders import Sliders, as_markdown
from tauloop.viewer.scene.camera import view_axes
from tauloop.viewer.scene.machine_scene import MachineScene
from tauloop.viewer.stage import Stage

#: Gap between machines, as a fraction of the larger of the new machine's width and size.
GAP = 0.25


class Neighbor:
    """A machine to the right of the others, with its own sliders.

    Attributes:
        model: the machine.
        q: coordinates of the machine (n_q,).
        offset: displacement of its base in the scene (3,), m.
        message: text with the reason why the machine cannot move.
    """

    def __init__(self, stage: Stage, number: int, model: Model) -> None:
        """Build the scene to the right of other machines on the same floor, and the panel's folder.

        Args:
            stage: the view of the first machine.
            number: number of the neighbor, from 1.
            model: the machine.
        """
        self.server = stage.server
        self.lock = stage.lock
        self.model = model
        self.q = np.array(model.assembly.q)
        self._shape = machine_shape(model)
        name = f"neighbor_{number}"
        root = self.server.scene.add_frame(f"/{name}", show_axes=False)
        self._scene = MachineScene(
            self.server, model, self._shape.at(self.q[None]), name=name, has_names=False
        )
        self.offset = self._offset_from(stage.scene)
        root.position = tuple(self.offset)
        points = self._scene.points + self.offset
        stage.scene.name_machine(name, model.mechanism.name, points)
        stage.scene.include_points(points)
        assert stage.scene.labels is not None
        self._labels = stage.scene.labels
        self._name = name
        self._update_obstacles()
        gui = self.server.gui
        with gui.add_folder(f"{number + 1}: {model.mechanism.name}", expand_by_default=False):
            self.message: Any = gui.add_markdown("", visible=False)
            self._sliders = Sliders(self, model)

    @property
    def sliders(self) -> Sliders:
        """The sliders of the machine."""
        return self._sliders

    def _offset_from(self, scene: MachineScene) -> np.ndarray:
        """Return the displacement (3,), m, to the right of a scene on the same floor."""
        right = view_axes(-scene.away)[0]
        coordinates = self._scene.points @ right
        gap = GAP * max(float(np.ptp(coordinates)), self._scene.size)
        offset = ((scene.points @ right).max() + gap - coordinates.min()) * right
        offset[2] = scene.points[:, 2].min() - self._scene.points[:, 2].min()
        return np.asarray(offset)

    def show(self, q: np.ndarray, dragged: Any = None, *, sample: int | None = None) -> None:
        """Show the machine at assembled coordinates (n_q,).

        `sample` has no effect; it is part of the interface that `Sliders` require.
        """
        with self.lock:
            self.q = np.array(q)
            self._scene.show(self._shape.at(self.q[None]))
            self._sliders.follow(self.q, dragged)
            self._update_obstacles()
            self._labels.arrange()
            self.message.visible = False

    def _update_obstacles(self) -> None:
        """Update the points of this machine that labels avoid."""
        motors, solids = self._scene.obstacles()
        self._labels.avoid(self._name, motors + self.offset, solids + self.offset)

    def explain(self, error: TauloopError, heading: str = "The machine does not move:") -> None:
        """Show in the folder why the machine cannot move."""
        self.message.content = as_markdown(error, heading)
        self.message.visible = True
