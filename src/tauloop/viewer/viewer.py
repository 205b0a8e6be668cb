"""The viewer: a viser server with a machine, what moves it by hand, and a clock to play a motion by."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import TauloopError
from tauloop.equations.ports import Entry
from tauloop.geometry import machine_solids, parts
from tauloop.geometry.machine_geometry import MachineGeometry, machine_shape
from tauloop.model import Model
from tauloop.viewer.clock import Clock
from tauloop.viewer.cloud import CloudPanel
from tauloop.viewer.forces import ForceLayer
from tauloop.viewer.ghost import Ghost
from tauloop.viewer.gizmo import Gizmo, Puller
from tauloop.viewer.guard import Guard, silent, start_guarded, viser_module
from tauloop.viewer.layers import Layers
from tauloop.viewer.marks import Marks, path_colours
from tauloop.viewer.modes import ModeButtons
from tauloop.viewer.pictures import PicturePanel
from tauloop.viewer.playback import Playback
from tauloop.viewer.plots import Plots
from tauloop.viewer.scene import MachineScene
from tauloop.viewer.sliders import Sliders, as_markdown
from tauloop.viewer.stage import Sight
from tauloop.viewer.watch import Watch

#: Pictures per second while a motion plays.
RATE = 30.0
#: How long a page takes until it has its measures and its camera, s.
SETTLING = 2.0
#: What the panel says while nothing is wrong.
WITHIN = "Within reach."


class Viewer:
    """A machine in the browser. Moving a handle moves the machine, as far as its loops allow.

    Attributes:
        server: the `viser.ViserServer`.
        model: the machine.
        q: coordinates (n_q,) of the pose shown.
        lock: held while the pose changes.
        scene: the machine's nodes.
        sliders: by entry, one slider per handle.
        gizmo: by which the tool is dragged; None where the machine does not move.
        warning: what is wrong with the files that are watched; hidden while nothing is.
        message: what is wrong with the pose that was asked for last.
        clock, plots: of the motion that is played back; None without one.
        sample: of the motion that is shown; None where the machine has been moved by hand.
        ghosts: what is shown see-through beside the machine.
        forces, modes, workspace: panels of these; None where the machine does not move.
        pictures: panel of what can be saved.
    """

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
            q: coordinates (n_q,) at which it stands at first; the reference pose, or the motion's
                first, without it.
            playback: a motion to be played.
            layers: what else is shown.
            host: address to listen on; 127.0.0.1 is seen from this computer alone.
            port: port to listen on; the next one that is free if it is taken, any free one if 0.

        Raises:
            EngineError: viser is not installed, or its server cannot be guarded.
        """
        viser = viser_module()
        self.lock, self._ended = threading.RLock(), threading.Event()
        self._guard = Guard(host=host)
        with silent():
            self.server = start_guarded(
                self._guard,
                lambda: viser.ViserServer(
                    host=host, port=port, label=model.mechanism.name, verbose=False
                ),
            )
        # nothing leaves this computer
        self.server.gui.configure_theme(show_logo=False, show_share_button=False)
        self.server.gui.main_panel.dock_right()  # beside the machine, never over it
        self.server.on_client_connect(
            lambda client: keep_in_view(client, self.server.initial_camera)
        )
        self.host, self.port = host, int(self.server.get_port())
        start = playback.q[0] if playback is not None else model.assembly.q
        self._watch: Watch | None = None
        self.clock: Clock | None
        self.plots: Plots | None
        self.gizmo: Gizmo | None
        self.forces: ForceLayer | None
        self.modes: ModeButtons | None
        self.workspace: CloudPanel | None
        self.ghosts: list[Ghost]
        self._build(model, np.array(start if q is None else q), playback, layers or Layers())

    def replace(self, view: Sight) -> None:
        """Show another machine in place of this one, from the same side; where it can, at the same platform position.

        Args:
            view: of the machine; its pose counts where the machine has none there, and where its
                motion begins.
        """
        with self.lock:
            start = np.array(view.q)
            if view.playback is None:
                start = _at_the_position_of(self.model, self.q, view.model, start)
            # a mesh that cannot be read is refused before the old scene goes
            parts(machine_solids(view.model))
            self.server.scene.reset()
            self.server.gui.reset()
            self._build(view.model, start, view.playback, view.layers)

    def watch(self, files: Iterable[str | Path], load: Callable[[], Sight]) -> None:
        """Show the machine anew whenever one of its files is saved; while one is wrong the last good picture stays.

        Args:
            files: to look at.
            load: makes what is shown of them, such as ``lambda: tl.view(tl.load("my.yaml"))``.
        """
        self._watch = Watch(self, map(Path, files), load)

    def _build(
        self, model: Model, q: np.ndarray, playback: Playback | None, layers: Layers
    ) -> None:
        """Make the scene and the panel of a machine."""
        self.model, self.q, self.sample = model, q, None if playback is None else 0
        self._shape = machine_shape(model.assembly.loops)
        geometry = self.geometry
        self.scene = MachineScene(self.server, model, geometry)
        gui = self.server.gui
        self.warning = gui.add_markdown("", visible=False)
        self.message = gui.add_markdown(WITHIN)
        self.clock, self.plots = None, None
        if playback is not None:
            self.scene.draw_path(self._shape.at(playback.q).tool, path_colours(model, playback.q))
            self.clock = Clock(self, playback)
        self.ghosts = []
        if layers.measured is not None:
            self.ghosts.append(Ghost(self, "measured", model, layers.measured))
        if layers.beside is not None:
            self.ghosts.append(Ghost(self, "beside", layers.beside))
        if playback is not None:
            self.plots = Plots(self, playback)
        self._hands = Sliders(self, model)
        self.gizmo = None
        if handles := next(iter(self._hands.handles.values()), None):
            with contextlib.suppress(TauloopError):  # where it starts it cannot be dragged
                self.gizmo = Gizmo(
                    self, Puller(handles, self._shape, model.limits, q), geometry.size
                )
        self._marks = Marks(self)
        self.forces = self.modes = self.workspace = None
        if self._hands.handles:  # it is driven, and moves
            self.forces = ForceLayer(self, playback, is_on=layers.forces)
            self.modes = ModeButtons(self)
            self.workspace = CloudPanel(self)
        self.pictures = PicturePanel(self, playback)
        self.show(q, sample=self.sample)
        if self.modes is not None and layers.modes is not None:
            self.modes.look(layers.modes)
        if self.workspace is not None and layers.workspace:
            self.workspace.show(layers.workspace, layers.colouring)

    @property
    def geometry(self) -> MachineGeometry:
        """Where the parts of the machine are at the pose shown."""
        return self._shape.at(self.q[None])

    @property
    def moment(self) -> float:
        """The time shown, s; zero without a motion."""
        return 0.0 if self.clock is None else float(self.clock.slider.value)

    @property
    def url(self) -> str:
        """Address for the browser, with the token without which nothing is served."""
        return self._guard.url(self.port)

    @property
    def sliders(self) -> dict[Entry, list[Any]]:
        """The sliders by entry."""
        return self._hands.sliders

    def move(self, entry: Entry, number: int, value: float) -> None:
        """Move one handle: the machine follows, or stays where it is and the panel says what is in the way.

        Args:
            entry: whose handle.
            number: of the handle.
            value: in the handle's unit.
        """
        self._hands.move(entry, number, value)

    def show(self, q: np.ndarray, dragged: Any = None, *, sample: int | None = None) -> None:
        """Show the machine at assembled coordinates.

        Args:
            q: coordinates (n_q,).
            dragged: the slider in the user's hand, if any; all others follow.
            sample: of the motion, where the pose is one of it.
        """
        with self.lock:
            self.q, self.sample = np.array(q), sample
            geometry = self.geometry
            self.scene.show(geometry)
            self.message.content = self._marks.follow(geometry) or WITHIN
            self._hands.follow(self.q, dragged)
            for ghost in self.ghosts:
                ghost.follow(geometry)
            if self.plots is not None:
                self.plots.follow(sample)
            if self.forces is not None:
                self.forces.follow(geometry, sample)
            if self.gizmo is not None:
                self.gizmo.follow(geometry)

    def explain(self, error: TauloopError, heading: str = "The machine stays where it is:") -> None:
        """Say in the panel what is in the way."""
        self.message.content = as_markdown(error, heading)

    def warn(self, text: str) -> None:
        """Say above everything else what is wrong with the files that are watched; nothing if empty."""
        with self.lock:
            self.warning.content, self.warning.visible = text, bool(text)

    def advance(self, elapsed: float) -> None:
        """Let the clock run while the motion plays, and look at the files that are watched.

        Args:
            elapsed: time that has passed, s.
        """
        if self._watch is not None:
            self._watch.look()
        if self.clock is not None:
            self.clock.advance(elapsed)

    def run(self) -> None:
        """Serve until it is stopped or interrupted (Ctrl-C)."""
        last = time.monotonic()
        try:
            while not self._ended.wait(1.0 / RATE):
                now = time.monotonic()
                self.advance(now - last)
                last = now
        except KeyboardInterrupt:
            pass
        finally:
            self.stop()

    def stop(self) -> None:
        """End the server and its threads."""
        self._ended.set()
        with self.lock, silent():
            self.server.stop()


def keep_in_view(client: Any, start: Any) -> None:
    """Keep the eye of a page that is higher than wide so far back that its width holds what its height would.

    Args:
        client: the page, which tells another camera than its first one until it has settled, and
            other measures.
        start: the camera that it begins with.
    """
    camera, begin, share = client.camera, time.monotonic(), 1.0

    def fit(_: Any) -> None:
        nonlocal share
        before, share = share, min(camera.aspect, 1.0)
        if time.monotonic() - begin < SETTLING:  # what the page answers has its measures by then
            at, away = np.array(start.look_at), np.array(start.position) - start.look_at
        elif share != before:
            at, away = camera.look_at, before * (camera.position - camera.look_at)
        else:
            return
        camera.position = at + away / share
        camera.look_at = at  # it has gone along with the eye

    fit(None)
    camera.on_update(fit)


def _at_the_position_of(
    before: Model, q: np.ndarray, after: Model, otherwise: np.ndarray
) -> np.ndarray:
    """Coordinates (n_q,) of a machine where its platform is as another's at q; others where it has no such pose."""
    try:
        old, new = before.platform.ports, after.platform
        if old.position.columns == new.ports.position.columns:
            return np.asarray(new.follow(old.at(q)).q)
    except TauloopError:
        pass
    return otherwise
