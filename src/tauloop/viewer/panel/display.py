"""Controls for the layers of the scene, views and poses, with keyboard shortcuts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tauloop.viewer.panel.clock import Clock
from tauloop.viewer.scene.overlays import Overlays
from tauloop.viewer.stage import Stage

#: Keyboard shortcuts; viser defines those of the mouse and the camera.
HOME_KEY = "H"
START_KEY = "R"
FIT_KEY = "F"
PLAY_KEY = "space"
#: Keyboard shortcut of each layer of the scene.
LAYER_KEYS = {
    "labels": "L",
    "tool axes": "T",
    "body frames": "B",
    "joint axes": "J",
    "mass centers": "M",
    "inertia ellipsoids": "I",
    "floor": "G",
}
#: Order of folders at the end of the panel.
LAST_ORDER = 1e6
CAMERA_HELP = """
| mouse and camera | |
|---|---|
| drag | rotate |
| right button, drag | move sideways |
| wheel | zoom |
| W A S D, Q E | move the camera |
| arrow keys | rotate |
| Ctrl K | list of all commands |
"""


class DisplayPanel:
    """Buttons for poses and views, a check box for each layer of the scene, and help on keys.

    Attributes:
        views: buttons for poses and views.
        boxes: check boxes by the name of their layer.
    """

    def __init__(self, viewer: Stage, clock: Clock | None, start_pose: np.ndarray) -> None:
        """Add the buttons, the folders and the keyboard shortcuts.

        Args:
            viewer: the viewer.
            clock: controls of the motion, or None.
            start_pose: coordinates (n_q,) of the pose at which the viewer opens.
        """
        self._viewer, self._clock = viewer, clock
        self._start_pose = np.array(start_pose)
        self._overlays = Overlays(viewer.server, viewer.model.mechanism, viewer.scene)
        gui = viewer.server.gui
        self.views = gui.add_button_group("go to", ("home pose", "start", "fit view"))
        actions = {
            "home pose": lambda client: self.go_home(),
            "start": lambda client: self.go_to_start(),
            "fit view": viewer.fit,
        }
        self.views.on_click(lambda event: actions[event.target.value](event.client))
        initial_layers = ("labels", "tool axes", "floor")
        self.boxes: dict[str, Any] = {}
        with gui.add_folder("Show", order=LAST_ORDER, expand_by_default=False):
            for name in LAYER_KEYS:
                self.boxes[name] = gui.add_checkbox(name, name in initial_layers)
                self.boxes[name].on_update(self._layer_callback(name))
        with gui.add_folder("Keys and mouse", order=LAST_ORDER + 1.0, expand_by_default=False):
            gui.add_markdown(self._help())
        self._add_keys(actions)

    def go_home(self) -> None:
        """Show the reference pose of the machine file."""
        self._pause()
        self._viewer.show(self._viewer.model.assembly.q)

    def go_to_start(self) -> None:
        """Show the pose at which the viewer was opened, or the start of the motion."""
        self._pause()
        if self._clock is None:
            self._viewer.show(self._start_pose)
        else:
            self._clock.slider.value = 0.0
            self._clock.seek(0.0)

    def _pause(self) -> None:
        if self._clock is not None:
            self._clock.play.value = False

    def show_layer(self, name: str, is_shown: bool) -> None:
        """Show or hide a layer of `LAYER_KEYS`."""
        scene = self._viewer.scene
        with self._viewer.lock:
            if name == "labels":
                assert scene.labels is not None
                scene.labels.set_visible(is_shown)
            elif name == "tool axes":
                scene.show_tool_axes(is_shown)
            elif name == "floor":
                scene.floor.visible = is_shown
            else:
                self._overlays.show(name, is_shown)

    def follow(self) -> None:
        """Move frames, axes, mass centers and ellipsoids to the machine's pose."""
        self._overlays.follow()

    def _layer_callback(self, name: str) -> Callable[[Any], None]:
        """Return the callback of a check box, which shows or hides its layer."""
        return lambda event: self.show_layer(name, bool(event.target.value))

    def _toggle_callback(self, box: Any) -> Callable[[Any], None]:
        """Return the callback of a key that toggles a check box."""

        def toggle(_: Any) -> None:
            box.value = not box.value

        return toggle

    def _add_keys(self, actions: dict[str, Callable[[Any], None]]) -> None:
        gui = self._viewer.server.gui
        keys = {"home pose": HOME_KEY, "start": START_KEY, "fit view": FIT_KEY}
        for name, key in keys.items():
            command = gui.add_command(f"Go to: {name}", hotkey=key)
            command.on_trigger(self._key_callback(actions[name]))
        for name, key in LAYER_KEYS.items():
            command = gui.add_command(f"Show or hide: {name}", hotkey=key)
            command.on_trigger(self._toggle_callback(self.boxes[name]))
        if self._clock is not None:
            command = gui.add_command("Play or pause", hotkey=PLAY_KEY)
            command.on_trigger(self._toggle_callback(self._clock.play))

    def _key_callback(self, action: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return the callback of a key that has the same action as a button."""
        return lambda event: action(event.client)

    def _help(self) -> str:
        """Return the keys as a table in Markdown."""
        rows = {HOME_KEY: "home pose", START_KEY: "start", FIT_KEY: "fit view"}
        if self._clock is not None:
            rows[PLAY_KEY] = "play or pause"
        rows |= {key: f"show or hide {name}" for name, key in LAYER_KEYS.items()}
        lines = [f"| {key} | {text} |" for key, text in rows.items()]
        return "\n".join(["| key | |", "|---|---|", *lines]) + "\n" + CAMERA_HELP
