"""Pictures and animations of the scene, which the browser saves."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from tauloop.common.errors import TauloopError
from tauloop.common.files import temporary_folder
from tauloop.viewer.film import ffmpeg, save_animation
from tauloop.viewer.playback import Playback
from tauloop.viewer.stage import Stage

#: Longest time to wait for a picture from a page, s.
PICTURE_TIMEOUT = 60.0
#: Width of the picture, pixels.
PICTURE_WIDTH = 1600


class PicturePanel:
    """A button for a picture of the scene; with a motion also one for each animation format."""

    def __init__(self, viewer: Stage, playback: Playback | None) -> None:
        """Add the panel."""
        self._viewer, self._playback = viewer, playback
        gui = viewer.server.gui
        with gui.add_folder("Save", expand_by_default=False):
            self.picture = gui.add_button("picture (PNG)")
            self.picture.on_click(lambda event: self.save_picture(event.client))
            self.film: Any = None
            if playback is not None:
                formats = ("HTML", "GIF", *(("MP4",) if ffmpeg() else ()))
                self.film = gui.add_button_group("animation", formats)
                self.film.on_click(
                    lambda event: self.save_animation(event.client, event.target.value.lower())
                )
            self._message = gui.add_markdown("")

    def save_picture(self, client: Any) -> None:
        """Save a picture of a page's view in its browser."""
        from matplotlib.image import imsave

        try:
            aspect = client.camera.aspect
            pixels = client.get_render(
                round(PICTURE_WIDTH / aspect),
                PICTURE_WIDTH,
                transport_format="png",
                timeout=PICTURE_TIMEOUT,
            )
        except TimeoutError:
            self._message.content = f"The page returned no picture within {PICTURE_TIMEOUT:g} s."
            return
        buffer = io.BytesIO()
        imsave(buffer, np.ascontiguousarray(pixels), format="png")
        name = f"{self._viewer.model.mechanism.name}.png"
        client.send_file_download(name, buffer.getvalue(), save_immediately=True)

    def save_animation(self, client: Any, extension: str) -> None:
        """Save the motion as an animation (html, gif or mp4) in the browser of a page."""
        viewer, playback = self._viewer, self._playback
        assert playback is not None
        self._message.content = "Writing the animation ..."
        try:
            with temporary_folder() as folder:
                path = save_animation(
                    viewer.model, playback.q, playback.time, folder / f"film.{extension}"
                )
                content = path.read_bytes()
        except TauloopError as error:
            self._message.content = "\n".join(
                f"- {problem.what}; *{problem.remedy}*" for problem in error.problems
            )
            return
        self._message.content = ""
        client.send_file_download(
            f"{viewer.model.mechanism.name}.{extension}", content, save_immediately=True
        )
