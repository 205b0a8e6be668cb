"""The editing loop: a machine is shown anew when one of its files is saved, and what is wrong with them is said."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tauloop.common.errors import TauloopError
from tauloop.viewer.sliders import as_markdown
from tauloop.viewer.stage import Sight, Stage

#: Seconds between two looks. What has changed is read when it is the same at two looks: an editor
#: may still be writing.
PERIOD = 0.25


class Watch:
    """Looks at files again and again; while they are wrong the last good picture stays.

    Attributes:
        problem: what is wrong with the files as they are; "" while nothing is.
    """

    def __init__(self, viewer: Stage, files: Iterable[Path], load: Callable[[], Sight]) -> None:
        """Take what is shown for what the files have now.

        Args:
            viewer: that shows the machine.
            files: of the machine; meshes that it names are watched too.
            load: reads them.
        """
        self._viewer, self._files, self._load = viewer, tuple(files), load
        self._shown = self._seen = self._state()
        self._next, self.problem = 0.0, ""

    def look(self) -> None:
        """Read the files if they have changed."""
        if time.monotonic() < self._next:
            return
        before, self._seen = self._seen, self._state()
        if self._seen == before != self._shown:
            self._shown = self._seen
            try:
                view = self._load()
                self.problem = ""
                self._viewer.replace(view)
                self._shown = self._seen = self._state()  # of its meshes
            except TauloopError as error:
                self.problem = as_markdown(
                    error, "The file is wrong; this is the machine as it was:"
                )
                self._viewer.warn(self.problem)
        self._next = time.monotonic() + PERIOD

    def _state(self) -> tuple[tuple[int, int] | None, ...]:
        """Time and size of every file; None for one that is not there."""
        meshes = [
            solid.mesh
            for solid in self._viewer.model.mechanism.solids
            if isinstance(solid.mesh, Path)
        ]
        return tuple(map(_stamp, (*self._files, *meshes)))


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size
