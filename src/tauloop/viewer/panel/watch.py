"""Live editing: the viewer shows a machine, or its errors, whenever one of its files is saved."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tauloop.common.errors import TauloopError
from tauloop.viewer.panel.sliders import as_markdown
from tauloop.viewer.stage import Stage, ViewState

#: Time between two checks, s. A change is read when two checks agree, because an editor may still
#: be writing.
WATCH_INTERVAL = 0.25


class Watch:
    """A watch on files; while they have errors, the last valid view stays.

    Attributes:
        problem: text on the errors in the files; "" if there are none.
    """

    def __init__(self, viewer: Stage, files: Iterable[Path], load: Callable[[], ViewState]) -> None:
        """Start the watch; the current view must show the current content of the files.

        Args:
            viewer: viewer of the machine.
            files: files of the machine; mesh files of the machine are watched too.
            load: function that reads the files.
        """
        self._viewer, self._files, self._load = viewer, tuple(files), load
        self._shown = self._seen = self._state()
        self._next, self.problem = 0.0, ""

    def update(self) -> None:
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
                self._shown = self._seen = self._state()  # includes the new machine's meshes
            except TauloopError as error:
                self.problem = as_markdown(
                    error, "The file has errors; the view shows the machine before the change:"
                )
                self._viewer.warn(self.problem)
        self._next = time.monotonic() + WATCH_INTERVAL

    def _state(self) -> tuple[tuple[int, int] | None, ...]:
        """Return modification time and size of every file; None for a missing file."""
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
