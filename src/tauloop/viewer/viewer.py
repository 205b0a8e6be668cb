"""The viewer: a viser server with a machine, controls that move it, and playback of a motion."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import TauloopError
from tauloop.common.names.deprecated import old_attribute
from tauloop.equations.ports import Entry
from tauloop.geometry import machine_solids, parts
from tauloop.geometry.machine_geometry import MachineGeometry, machine_shape
from tauloop.model import Model
from tauloop.viewer.guard import Guard, silent, start_guarded, viser_module
from tauloop.viewer.layers import Layers
from tauloop.viewer.panel.clock import Clock
from tauloop.viewer.panel.display import DisplayPanel
from tauloop.viewer.panel.gizmo import Gizmo, Puller
from tauloop.viewer.panel.modes import ModeButtons
from tauloop.viewer.panel.plots import Plots
from tauloop.viewer.panel.sliders import Sliders, as_markdown
from tauloop.viewer.panel.vibration import VibrationPanel
from tauloop.viewer.panel.watch import Watch
from tauloop.viewer.pictures import PicturePanel
from tauloop.viewer.playback import Playback
from tauloop.viewer.scene.cloud import CloudPanel
from tauloop.viewer.scene.forces import ForceLayer
from tauloop.viewer.scene.ghost import Ghost
from tauloop.viewer.scene.machine_scene import MachineScene
from tauloop.viewer.scene.marks import Marks, path_colors
from tauloop.viewer.scene.neighbor import Neighbor
from tauloop.viewer.stage import ViewState

#: Frames per second while a motion plays.
VIEWER_FRAME_RATE = 30.0
#: Time until a new page reports its final size and camera, s.
SETTLING_TIME = 2.0
#: Largest height of the canvas, CSS pixels. If a page reports more, its screen has several device
#: pixels per CSS pixel.
MAX_PICTURE_HEIGHT = 1000.0
#: Relative differences of aspect ratios up to this value are rounding errors.
ASPECT_TOLERANCE = 0.01
#: Message of the panel without an error.
WITHIN_REACH = "Within reach."


class Viewer:
    """A machine in the browser. Moving a handle moves the machine, as far as its loops allow.

    Attributes:
        server: the `viser.ViserServer`.
        model: the machine.
        q: coordinates (n_q,) of the current pose.
        lock: lock that is held while the pose changes.
        scene: the machine's nodes.
        sliders: sliders by entry (platform or actuators) and index of their handle.
        gizmo: control that drags the tool; None for a machine that does not move.
        warning: text with errors in the watched files; hidden if there are none.
        message: text with the error of the last requested pose.
        clock, plots: playback controls and plots of the motion; None if there is no motion.
        sample: index of the displayed sample of the motion; None after the user moved the machine.
        ghosts: transparent machines at the same position.
        neighbors: machines next to the machine.
        forces, modes, workspace: panels; None for a machine that does not move.
        vibration: panel of natural modes; None for a machine without elastic data.
        display: panel of views and layers of the scene.
        pictures: panel that saves pictures and animations.
    """

    moment = old_attribute("moment", "time")

    def __init__(
        self,
        model: Model,
        *,
        q: np.ndarray | None = None,
        playback: Playback | None = None,
        layers: Layers | None = None,
        host: str = "127.0.0.1",
        port: int = 8080,
    ) -> None:
        """Start the server and build the scene.

        Args:
            model: the machine.
            q: coordinates (n_q,) of the first pose; default: the first pose of the motion, or the
                reference pose.
            playback: motion to play.
            layers: additional layers.
            host: address to listen on; 127.0.0.1 is visible only on this computer.
            port: port to listen on. If it is in use, the next free port is used; 0 is any free
                port.

        Raises:
            EngineError: viser is not installed, or its server cannot be guarded.
        """
        viser = viser_module()
        self.lock = threading.RLock()
        self._stop_requested = threading.Event()
        self._guard = Guard(host=host, title=lambda: self.model.mechanism.name)
        self.model = model
        with silent():
            self.server = start_guarded(
                self._guard,
                lambda: viser.ViserServer(
                    host=host, port=port, label=model.mechanism.name, verbose=False
                ),
            )
        # The page has no links to other servers.
        self.server.gui.configure_theme(show_logo=False, show_share_button=False)
        self.server.gui.main_panel.dock_right()  # next to the machine, never over it
        self.server.on_client_connect(lambda client: PageCamera(self, client))
        self.host = host
        self.port = int(self.server.get_port())
        start = playback.q[0] if playback is not None else model.assembly.q
        self._watch: Watch | None = None
        self.clock: Clock | None
        self.plots: Plots | None
        self.gizmo: Gizmo | None
        self.forces: ForceLayer | None
        self.modes: ModeButtons | None
        self.workspace: CloudPanel | None
        self.vibration: VibrationPanel | None
        self.ghosts: list[Ghost]
        self._build(model, np.array(start if q is None else q), playback, layers or Layers())

    def replace(self, view: ViewState) -> None:
        """Show another machine from the same side, at the same platform position if possible.

        Args:
            view: view of the other machine; its own pose is shown if the machine cannot reach that
                position, or if the view has a motion.
        """
        with self.lock:
            start = np.array(view.q)
            if view.playback is None:
                start = _coordinates_at_same_position(view.model, self.model, self.q, start)
            # This raises the error of an unreadable mesh before the old scene is removed.
            parts(machine_solids(view.model))
            self.server.scene.reset()
            self.server.gui.reset()
            self._build(view.model, start, view.playback, view.layers)

    def watch(self, files: Iterable[str | Path], load: Callable[[], ViewState]) -> None:
        """Update the view whenever a file is saved; after an error the last view stays.

        Args:
            files: files to watch.
            load: function that loads the view from the files, such as
                ``lambda: tl.view(tl.load("my.yaml"))``.
        """
        self._watch = Watch(self, map(Path, files), load)

    def _build(
        self, model: Model, q: np.ndarray, playback: Playback | None, layers: Layers
    ) -> None:
        """Build the scene and the panel of a machine."""
        self.model, self.q = model, q
        self.sample = None if playback is None else 0
        self._shape = machine_shape(model)
        self.display: DisplayPanel | None = None
        geometry = self.geometry
        all_states = geometry if playback is None else self._shape.at(playback.q)
        self.scene = MachineScene(self.server, model, all_states)
        gui = self.server.gui
        gui.set_panel_label(model.mechanism.name)
        self.warning = gui.add_markdown("", visible=False)
        self.message = gui.add_markdown(WITHIN_REACH)
        self.clock = self.plots = None
        if playback is not None:
            self.scene.draw_path(all_states.tool, path_colors(model, playback.q))
            self.clock = Clock(self, playback)
        self.display = DisplayPanel(self, self.clock, q)
        self.ghosts = []
        if layers.measured is not None:
            self.ghosts.append(Ghost(self, "measured", model, layers.measured))
        if layers.comparison is not None:
            self.ghosts.append(Ghost(self, "compared", layers.comparison))
        if playback is not None:
            self.plots = Plots(self, playback)
        self._sliders = Sliders(self, model)
        self.gizmo = None
        if handles := next(iter(self._sliders.handles.values()), None):
            with contextlib.suppress(TauloopError):  # the tool cannot be dragged from this pose
                self.gizmo = Gizmo(
                    self, Puller(handles, self._shape, model.limits, q), geometry.size
                )
        if layers.next_to:
            self.scene.name_machine("machine", model.mechanism.name, self.scene.points)
        self.neighbors = [
            Neighbor(self, number, machine) for number, machine in enumerate(layers.next_to, 1)
        ]
        self._marks = Marks(self)
        self.vibration = VibrationPanel(self) if model.mechanism.has_elastic_data else None
        self.forces = self.modes = self.workspace = None
        if self._sliders.handles:  # the machine is driven and moves
            self.forces = ForceLayer(self, playback, is_on=layers.forces)
            self.modes = ModeButtons(self)
            self.workspace = CloudPanel(self)
        self.pictures = PicturePanel(self, playback)
        self.show(q, sample=self.sample)
        if self.modes is not None and layers.modes is not None:
            self.modes.select(layers.modes)
        if self.workspace is not None and layers.workspace:
            self.workspace.show(layers.workspace, layers.coloring)

    @property
    def geometry(self) -> MachineGeometry:
        """Return the machine's geometry at the current pose."""
        return self._shape.at(self.q[None])

    @property
    def time(self) -> float:
        """Return the current time, s; zero without a motion."""
        return 0.0 if self.clock is None else float(self.clock.slider.value)

    @property
    def url(self) -> str:
        """Return the address for the browser, with the token that every request needs."""
        return self._guard.url(self.port)

    @property
    def sliders(self) -> dict[Entry, dict[int, Any]]:
        """Return the sliders by entry and index of their handle."""
        return self._sliders.sliders

    def move(self, entry: Entry, number: int, value: float) -> None:
        """Move one handle: the machine follows, or stays and the panel shows the reason.

        Args:
            entry: whether the handle belongs to the platform or to the actuators.
            number: index of the handle.
            value: value in the handle's unit.
        """
        self._sliders.move(entry, number, value)

    def show(self, q: np.ndarray, dragged: Any = None, *, sample: int | None = None) -> None:
        """Show the machine at assembled coordinates.

        Args:
            q: coordinates (n_q,).
            dragged: the slider that the user drags, or None; all other sliders follow.
            sample: index of the sample if the pose belongs to the motion, else None.
        """
        with self.lock:
            if self.vibration is not None and self.vibration.mode is not None:
                self.vibration.stop()
            self.q, self.sample = np.array(q), sample
            geometry = self.geometry
            self.scene.show(geometry)
            self.message.content = self._marks.follow(geometry) or WITHIN_REACH
            self._sliders.follow(self.q, dragged)
            for ghost in self.ghosts:
                ghost.follow(geometry)
            if self.plots is not None:
                self.plots.follow(sample)
            if self.forces is not None:
                self.forces.follow(geometry, sample)
            if self.gizmo is not None:
                self.gizmo.follow(geometry)
            if self.display is not None:
                self.display.follow()
            self.scene.arrange_labels()

    def fit(self, client: Any, away: np.ndarray | None = None) -> None:
        """Move the camera of a page so that the page shows the whole machine.

        Args:
            client: the page.
            away: direction from the machine to the camera (3,); default: direction of the first
                view.
        """
        camera = client.camera
        with self.lock:
            target = self.scene.fitted_camera(typical_size(camera.aspect), away)
            camera.position = target.eye
            camera.look_at = target.look_at  # setting the position has changed this point too

    def explain(self, error: TauloopError, heading: str = "The machine does not move:") -> None:
        """Show in the panel why the machine cannot move."""
        self.message.content = as_markdown(error, heading)

    def warn(self, text: str) -> None:
        """Show errors in the watched files at the top of the panel; an empty text hides them."""
        with self.lock:
            self.warning.content, self.warning.visible = text, bool(text)

    def advance(self, elapsed: float) -> None:
        """Advance a playing motion and a vibration, and read watched files that have changed.

        Args:
            elapsed: time since the last call, s.
        """
        if self._watch is not None:
            self._watch.update()
        if self.clock is not None:
            self.clock.advance(elapsed)
        if self.vibration is not None:
            self.vibration.advance(elapsed)

    def run(self) -> None:
        """Serve until it is stopped or interrupted (Ctrl-C)."""
        last_time = time.monotonic()
        try:
            while not self._stop_requested.wait(1.0 / VIEWER_FRAME_RATE):
                now = time.monotonic()
                self.advance(now - last_time)
                last_time = now
        except KeyboardInterrupt:
            pass
        finally:
            self.stop()

    def stop(self) -> None:
        """End the server and its threads."""
        self._stop_requested.set()
        with self.lock, silent():
            self.server.stop()


class PageCamera:
    """The camera of a page: fits the machine into the page, and arranges the labels for it."""

    def __init__(self, viewer: Viewer, client: Any) -> None:
        """Fit the machine into a page; a new page reports its final size only after a while."""
        self._viewer, self._client = viewer, client
        self._opening_time = time.monotonic()
        self._size = (1.0, 1.0)
        self._fitted_position = np.full(3, np.nan)
        client.camera.on_update(self.follow)

    def follow(self, camera: Any) -> None:
        """Fit the machine into a new page or a page with a new aspect ratio; arrange the labels."""
        size = picture_size(camera)
        aspect = size[0] / size[1]
        previous_aspect = self._size[0] / self._size[1]
        # Under load the page draws fewer pixels, with the same aspect ratio.
        if abs(aspect / previous_aspect - 1.0) > ASPECT_TOLERANCE:
            self._size = size
            is_new = time.monotonic() - self._opening_time < SETTLING_TIME
            away = None if is_new else camera.position - camera.look_at
            # A view that the user has chosen stays.
            if is_new or np.allclose(camera.position, self._fitted_position, rtol=1e-3):
                self._viewer.fit(self._client, away)
                self._fitted_position = np.array(camera.position)
        with self._viewer.lock:
            scene = self._viewer.scene
            scene.look_from(camera.position, camera.look_at, self._size, camera.fov)


def typical_size(aspect: float) -> tuple[float, float]:
    """Return the typical width and height, pixels, of a screen or phone with an aspect ratio."""
    return (800.0 * aspect, 800.0) if aspect > 1.1 else (400.0, 400.0 / aspect)


def picture_size(camera: Any) -> tuple[float, float]:
    """Return width and height of the canvas of a page, CSS pixels.

    The page reports device pixels, several of which may form a CSS pixel.
    """
    scale = min(1.0, MAX_PICTURE_HEIGHT / camera.image_height)
    return scale * camera.image_width, scale * camera.image_height


def _coordinates_at_same_position(
    model: Model, other: Model, q_other: np.ndarray, default: np.ndarray
) -> np.ndarray:
    """Return coordinates (n_q,) of a machine at the platform position of another machine.

    Args:
        model: the machine.
        other: the other machine.
        q_other: coordinates of the other machine.
        default: coordinates that are returned if the machine cannot reach this position.
    """
    try:
        source, target = other.platform.ports, model.platform
        if source.position.columns == target.ports.position.columns:
            return np.asarray(target.follow(source.at(q_other)).q)
    except TauloopError:
        pass
    return default
