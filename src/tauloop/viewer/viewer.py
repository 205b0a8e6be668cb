"""The viewer: a viser server with a machine, handles to move it by, and a clock to play a motion by."""

from __future__ import annotations

import contextlib
import importlib
import io
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tauloop.assembly.ports import Entry
from tauloop.errors import AssemblyError, EngineError, TauloopError
from tauloop.kinematics.machine_geometry import machine_shape
from tauloop.mechanism.model import LIMIT_KINDS
from tauloop.model import Model
from tauloop.viewer.guard import Guard, start_guarded
from tauloop.viewer.handles import Handles
from tauloop.viewer.playback import Playback
from tauloop.viewer.scene import MachineScene

#: Pictures per second while a motion plays.
RATE = 30.0
#: Steps of sliders: m, deg, pure numbers.
STEPS = {"m": 1e-4, "deg": 1e-2, "1": 1e-4}
#: Speeds at which a motion may be played.
SPEEDS = ("1/100", "1/10", "1/4", "1", "2")
#: What the panel says while nothing is wrong.
WITHIN = "Within reach."


class Viewer:
    """A machine in the browser. Moving a handle moves the machine, as far as its loops allow.

    Attributes:
        server: the `viser.ViserServer`.
        scene: the machine's nodes.
        sliders: by entry, one slider per handle.
        message: what is wrong with the pose that was asked for last.
        clock: slider of the time of the motion that is played back; None without one.
    """

    def __init__(
        self,
        model: Model,
        *,
        q: np.ndarray | None = None,
        playback: Playback | None = None,
        host: str = "127.0.0.1",
        port: int = 8080,
    ) -> None:
        """Start the server and build the scene.

        Args:
            model: the machine.
            q: coordinates (n_q,) at which it stands at first; the reference pose, or the motion's first, without it.
            playback: a motion to be played.
            host: address to listen on; 127.0.0.1 is seen from this computer alone.
            port: port to listen on; the next one that is free if it is taken, any free one if 0.

        Raises:
            EngineError: viser is not installed, or its server cannot be guarded.
        """
        viser = viser_module()
        start = playback.q[0] if playback is not None else model.assembly.q
        self._model, self.q = model, np.array(start if q is None else q)
        self._playback = playback
        self._lock = threading.RLock()
        self._syncing = False
        self._shape = machine_shape(model.assembly.loops)
        geometry = self._shape.at(self.q[None])
        self._guard = Guard(host=host)
        with silent():
            self.server = start_guarded(
                self._guard,
                lambda: viser.ViserServer(host=host, port=port, label=model.mechanism.name, verbose=False),
            )
        self.server.gui.configure_theme(show_logo=False, show_share_button=False)  # nothing leaves this computer
        self.host, self.port = host, int(self.server.get_port())
        self.scene = MachineScene(self.server, model, geometry)
        self.message = self.server.gui.add_markdown(WITHIN)
        self.clock: Any = None
        if playback is not None:
            self._add_playback(playback)
        self._handles: dict[Entry, Handles] = {}
        self.sliders: dict[Entry, list[Any]] = {}
        for entry in Entry:
            self._add_sliders(entry)

    @property
    def url(self) -> str:
        """Address for the browser, with the token without which nothing is served."""
        return self._guard.url(self.port)

    def move(self, entry: Entry, number: int, value: float) -> None:
        """Move one handle: the machine follows, or stays where it is and the panel says what is in the way.

        Args:
            entry: whose handle.
            number: of the handle.
            value: in the handle's unit.
        """
        self._move(entry, number, value, None)

    def show(self, q: np.ndarray) -> None:
        """Show the machine at assembled coordinates (n_q,); all sliders follow."""
        self._show(q, None)

    def _move(self, entry: Entry, number: int, value: float, dragged: Any) -> None:
        with self._lock:
            try:
                self._show(self._handles[entry].moved(self.q, number, value), dragged)
            except TauloopError as error:
                self.message.content = as_markdown(error)

    def _show(self, q: np.ndarray, dragged: Any) -> None:
        with self._lock:
            self.q = np.array(q)
            self.scene.show(self._shape.at(self.q[None]))
            self.message.content = self._limits()
            self._synchronise(dragged)

    def seek(self, moment: float) -> None:
        """Show the sample of the motion nearest to a time, s."""
        if self._playback is not None:
            self.show(self._playback.q[self._playback.sample(moment)])

    def advance(self, elapsed: float) -> None:
        """Let the clock run while the motion plays; it starts again at its end.

        Args:
            elapsed: time that has passed, s.
        """
        if self._playback is None or not self._play.value:
            return
        part, _, whole = self._speed.value.partition("/")
        duration = max(self._playback.duration, 1e-9)
        self.clock.value = float((self.clock.value + elapsed * float(part) / float(whole or 1)) % duration)

    def run(self) -> None:
        """Serve until it is interrupted (Ctrl-C), then stop."""
        last = time.monotonic()
        try:
            while True:
                time.sleep(1.0 / RATE)
                now = time.monotonic()
                self.advance(now - last)
                last = now
        except KeyboardInterrupt:
            pass
        finally:
            self.stop()

    def stop(self) -> None:
        """End the server and its threads."""
        with silent():
            self.server.stop()

    def _add_playback(self, playback: Playback) -> None:
        self.scene.draw_path(self._shape.at(playback.q).tool)
        with self.server.gui.add_folder(f"Motion: {playback.source}" if playback.source else "Motion"):
            duration = max(playback.duration, 1e-9)
            self.clock = self.server.gui.add_slider("time [s]", 0.0, duration, duration / 10000, 0.0)
            self._play = self.server.gui.add_checkbox("play", False)
            self._speed = self.server.gui.add_dropdown("speed", SPEEDS, initial_value="1")
        self.clock.on_update(lambda event: self.seek(float(event.target.value)))

    def _add_sliders(self, entry: Entry) -> None:
        """Sliders of one entry; a machine that this entry does not determine says so in their place."""
        try:
            handles = Handles(self._model, self._model.motion(entry), self.q)
        except AssemblyError as error:
            self.server.gui.add_markdown(as_markdown(error, f"Not to be moved by its {entry.name}:"))
            return
        if any(handles.names == others.names for others in self._handles.values()):
            return  # a machine whose independent coordinates are its motors'
        with self.server.gui.add_folder(entry.name.capitalize()):
            self._handles[entry], self.sliders[entry] = handles, []
            for number, (handle, value) in enumerate(zip(handles.handles, handles.values(self.q), strict=True)):
                slider = self.server.gui.add_slider(
                    f"{handle.name} [{handle.unit}]" if handle.unit != "1" else handle.name,
                    min=handle.lower,
                    max=handle.upper,
                    step=STEPS[handle.unit],
                    initial_value=float(np.clip(rounded(value, STEPS[handle.unit]), handle.lower, handle.upper)),
                )
                slider.on_update(self._moves(entry, number))
                self.sliders[entry].append(slider)

    def _moves(self, entry: Entry, number: int) -> Callable[[Any], None]:
        """What happens when a slider moves: nothing while it only follows the machine."""

        def moved(event: Any) -> None:
            with self._lock:
                if not self._syncing:
                    self._move(entry, number, float(event.target.value), event.target)

        return moved

    def _synchronise(self, dragged: Any) -> None:
        """Set the sliders to where the machine stands, but not the one in the user's hand: he is ahead already."""
        self._syncing = True
        try:
            for entry, sliders in self.sliders.items():
                for slider, value in zip(sliders, self._handles[entry].values(self.q), strict=True):
                    if slider is not dragged:
                        slider.value = rounded(value, slider.step)
        finally:
            self._syncing = False

    def _limits(self) -> str:
        """Which coordinates are outside their limits, of both kinds."""
        outside = [item for kind in LIMIT_KINDS for item in self._model.limits.beyond(self.q, kind=kind)]
        listed = ", ".join(f"`{item.coordinate}` {item.amount}" for item in outside)
        return f"**Outside its limits:** {listed}" if outside else WITHIN


def viser_module() -> Any:
    """The viser package.

    Raises:
        EngineError: it is not installed.
    """
    try:
        return importlib.import_module("viser")
    except ImportError as error:
        raise EngineError.of(
            "viser",
            f"cannot be imported ({error})",
            "pip install tauloop[view]; a picture (--png FILE) needs nothing more",
        ) from error


def rounded(value: float, step: float) -> float:
    """A value as a slider of such steps shows it."""
    return round(float(value), round(-np.log10(step))) + 0.0


def as_markdown(error: TauloopError, heading: str = "The machine stays where it is:") -> str:
    """An error's problems as a list for the panel."""
    lines = [f"**{heading}**", ""]
    lines += [f"- `{problem.where}`: {problem.what}; *{problem.remedy}*" for problem in error.problems]
    return "\n".join(lines)


@contextlib.contextmanager
def silent() -> Any:
    """Keep viser from printing its banner: what is printed is the command's to say."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
