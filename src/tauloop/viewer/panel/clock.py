"""The controls of a motion: time slider, play, loop, slow motion."""

from __future__ import annotations

from tauloop.viewer.playback import Playback
from tauloop.viewer.stage import Stage

#: Playback speeds, as multiples of real time.
PLAYBACK_SPEEDS = ("1/100", "1/10", "1/4", "1/2", "1", "2")


class Clock:
    """The controls of a motion: a time slider, play, loop and speed.

    Attributes:
        slider: slider of the time, s.
        play, loop: check boxes.
        speed: drop-down list of `PLAYBACK_SPEEDS`.
    """

    def __init__(self, viewer: Stage, playback: Playback) -> None:
        """Add the panel."""
        self._viewer, self._playback = viewer, playback
        self._duration = max(playback.duration, 1e-9)
        gui = viewer.server.gui
        with gui.add_folder(f"Motion: {playback.source}" if playback.source else "Motion"):
            self.slider = gui.add_slider(
                "time [s]", 0.0, self._duration, self._duration / 10000, 0.0
            )
            self.play = gui.add_checkbox("play", False)
            self.loop = gui.add_checkbox("loop", True)
            self.speed = gui.add_dropdown("speed", PLAYBACK_SPEEDS, initial_value="1")
        self.slider.on_update(lambda event: self.seek(float(event.target.value)))

    def seek(self, moment: float) -> None:
        """Show the sample nearest to a time, s."""
        sample = self._playback.sample(moment)
        self._viewer.show(self._playback.q[sample], sample=sample)

    def advance(self, elapsed: float) -> None:
        """Advance a playing motion by a time, s; at its end it restarts or stops."""
        if not self.play.value:
            return
        numerator, _, denominator = self.speed.value.partition("/")
        moment = self.slider.value + elapsed * float(numerator) / float(denominator or 1)
        if moment > self._duration and not self.loop.value:
            moment, self.play.value = self._duration, False
        elif moment > self._duration:
            moment %= self._duration
        self.slider.value = float(moment)
