"""Natural modes of an elastic machine in the panel: the machine vibrates in the chosen mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.common.errors import TauloopError
from tauloop.viewer.stage import Stage

if TYPE_CHECKING:
    from tauloop.viewer.mode_animation import ModeMesh

#: Number of animated periods per second.
ANIMATION_FREQUENCY = 0.7
#: Name of the choice without vibration.
AT_REST = "at rest"


class VibrationPanel:
    """A button that calculates the modes at the current pose, and a choice of the animated mode.

    Attributes:
        mesh: solids and their displacements in the modes; None before the first calculation.
        mode: index of the animated mode; None at rest.
        nodes: meshes of the vibrating machine, with the indices of their vertices.
    """

    def __init__(self, viewer: Stage) -> None:
        """Add the panel."""
        self._viewer = viewer
        self.mesh: ModeMesh | None = None
        self.mode: int | None = None
        self.nodes: list[tuple[Any, np.ndarray]] = []
        self._phase = 0.0
        gui = viewer.server.gui
        with gui.add_folder("Vibration", expand_by_default=False):
            self.button = gui.add_button("natural modes of this pose")
            self.choice = gui.add_dropdown("mode", (AT_REST,))
            self.amplitude = gui.add_slider("amplitude", 0.0, 3.0, 0.05, 1.0)
            self._message = gui.add_markdown("")
        self.button.on_click(lambda _: self.calculate())
        self.choice.on_update(lambda _: self.show(self.choice.value))

    def calculate(self) -> None:
        """Calculate the modes at the current pose, and animate the first mode."""
        from tauloop.elasticity.vibrations.vibration import vibration
        from tauloop.viewer.mode_animation import mode_mesh, mode_titles

        viewer = self._viewer
        self.stop()
        self._message.content = "Calculating ..."
        try:
            result = vibration(viewer.model, viewer.model.platform_position(viewer.q)[None])
            self.mesh = mode_mesh(result)
        except TauloopError as error:
            self._message.content = "\n".join(
                f"- {problem.what}; *{problem.remedy}*" for problem in error.problems
            )
            return
        titles = mode_titles(result)
        self._message.content = "; ".join(result.advice) or "The amplitude is exaggerated."
        self.choice.options = (AT_REST, *titles)
        self.choice.value = titles[0]
        self.show(titles[0])

    def show(self, title: str) -> None:
        """Animate the mode with this title; stop for any other title."""
        titles = tuple(self.choice.options)
        if self.mesh is None or title not in titles[1:]:
            self.stop()
            return
        with self._viewer.lock:
            self.mode = titles.index(title) - 1
            if not self.nodes:
                self._add_nodes(self.mesh)
            self._viewer.scene.set_visible(False)

    def stop(self) -> None:
        """Show the machine at rest."""
        with self._viewer.lock:
            self.mode = None
            for node, _ in self.nodes:
                node.remove()
            self.nodes = []
            self._viewer.scene.set_visible(True)

    def advance(self, elapsed: float) -> None:
        """Advance the animation by `elapsed` seconds of real time."""
        if self.mode is None or self.mesh is None:
            return
        with self._viewer.lock:
            self._phase += 2.0 * np.pi * ANIMATION_FREQUENCY * elapsed
            amplitude = float(self.amplitude.value)
            vertices = self.mesh.at_phase(self.mode, self._phase, amplitude)
            for node, indices in self.nodes:
                node.vertices = vertices[indices].astype(np.float32)

    def _add_nodes(self, mesh: ModeMesh) -> None:
        """Add a mesh for each color."""
        colors, groups = np.unique(mesh.colors, axis=0, return_inverse=True)
        for k, color in enumerate(colors):
            faces = mesh.faces[groups.ravel() == k]
            indices, local_indices = np.unique(faces, return_inverse=True)
            node = self._viewer.server.scene.add_mesh_simple(
                f"/mode/{k}",
                vertices=mesh.vertices[indices].astype(np.float32),
                faces=local_indices.reshape(-1, 3).astype(np.uint32),
                color=tuple(round(255.0 * float(channel)) for channel in color),
                flat_shading=True,
            )
            self.nodes.append((node, indices))
