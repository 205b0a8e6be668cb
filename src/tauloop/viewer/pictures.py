"""Pictures and films of what is shown, to be saved by the browser."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import TauloopError
from tauloop.viewer.film import ffmpeg, save_film
from tauloop.viewer.playback import Playback
from tauloop.viewer.stage import Stage

#: Longest time to wait for a picture of a page, s; and how large it is, pixels.
PATIENCE, WIDTH = 60.0, 1600


class PicturePanel:
    """A button for a picture of the scene, and one for each kind of film where there is a motion."""

    def __init__(self, viewer: Stage, playback: Playback | None) -> None:
        """Add the panel."""
        self._viewer, self._playback = viewer, playback
        gui = viewer.server.gui
        with gui.add_folder("Save", expand_by_default=False):
            self.picture = gui.add_button("picture (PNG)")
            self.picture.on_click(lambda event: self.save_picture(event.client))
            self.film: Any = None
            if playback is not None:
                kinds = ("HTML", "GIF", *(("MP4",) if ffmpeg() else ()))
                self.film = gui.add_button_group("film", kinds)
                self.film.on_click(
                    lambda event: self.save_film(event.client, event.target.value.lower())
                )
            self._words = gui.add_markdown("")

    def save_picture(self, client: Any) -> None:
        """Have a page save a picture of its own view."""
        from matplotlib.image import imsave

        try:
            aspect = client.camera.aspect
            drawn = client.get_render(
                round(WIDTH / aspect), WIDTH, transport_format="png", timeout=PATIENCE
            )
        except TimeoutError:
            self._words.content = f"The page gave no picture within {PATIENCE:g} s."
            return
        buffer = io.BytesIO()
        imsave(buffer, np.ascontiguousarray(drawn), format="png")
        name = f"{self._viewer.model.mechanism.name}.png"
        client.send_file_download(name, buffer.getvalue(), save_immediately=True)

    def save_film(self, client: Any, kind: str) -> None:
        """Have a page save the motion as a film: html, gif or mp4."""
        viewer, playback = self._viewer, self._playback
        assert playback is not None
        self._words.content = "Making the film ..."
        try:
            with tempfile.TemporaryDirectory() as folder:
                path = save_film(
                    viewer.model, playback.q, playback.time, Path(folder) / f"film.{kind}"
                )
                content = path.read_bytes()
        except TauloopError as error:
            self._words.content = "\n".join(
                f"- {problem.what}; *{problem.remedy}*" for problem in error.problems
            )
            return
        self._words.content = ""
        client.send_file_download(
            f"{viewer.model.mechanism.name}.{kind}", content, save_immediately=True
        )
