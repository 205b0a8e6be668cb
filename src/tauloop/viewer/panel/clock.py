"""Playback controls of a motion: time slider, play, loop and speed."""

from __future__ import annotations

from tauloop.viewer.playback import Playback
from tauloop.viewer.stage import Stage

#: Playback speeds, as multiples of real time.
PLAYBACK_SPEEDS = ("1/100", "1/10", "1/4", "1/2", "1", "2")


class Clock:
    """Playback controls of a motion: a time slider, play, loop and speed.

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

    def seek(self, time: float) -> None:
        """Show the sample nearest to `time` (in seconds)."""
        sample = self._playback.sample(time)
        self._viewer.show(self._playback.q[sample], sample=sample)

    def advance(self, elapsed: float) -> None:
        """If the motion is playing, advance it by `elapsed` seconds of real time.

        The time is multiplied by the chosen speed.

        At its end, the motion restarts or stops.
        """
        if not self.play.value:
            return
        numerator, _, denominator = self.speed.value.partition("/")
        speed = float(numerator) / float(denominator or 1)
        time = self.slider.value + speed * elapsed
        if time > self._duration and self.loop.value:
            time %= self._duration
        elif time > self._duration:
            time = self._duration
            self.play.value = False
        self.slider.value = float(time)
