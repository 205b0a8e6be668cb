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
    """A check for changes of files; while the files have errors, the last valid view stays.

    Attributes:
        problem: errors in the files, in Markdown; "" if there are none.
    """

    def __init__(self, viewer: Stage, files: Iterable[Path], load: Callable[[], ViewState]) -> None:
        """Start the watch; the current view must show the current content of the files.

        Args:
            viewer: viewer of the machine.
            files: files of the machine; mesh files of the machine are watched too.
            load: function that reads the files.
        """
        self._viewer, self._files, self._load = viewer, tuple(files), load
        self._loaded_state = self._last_state = self._state()
        self._next_check = 0.0
        self.problem = ""

    def update(self) -> None:
        """Read the files if they have changed."""
        if time.monotonic() < self._next_check:
            return
        previous_state, self._last_state = self._last_state, self._state()
        is_written = self._last_state == previous_state
        if is_written and self._last_state != self._loaded_state:
            self._loaded_state = self._last_state
            try:
                view = self._load()
                self.problem = ""
                self._viewer.replace(view)
                # The state includes the mesh files of the new machine.
                self._loaded_state = self._last_state = self._state()
            except TauloopError as error:
                self.problem = as_markdown(
                    error, "The file has errors; the view shows the machine before the change:"
                )
                self._viewer.warn(self.problem)
        self._next_check = time.monotonic() + WATCH_INTERVAL

    def _state(self) -> tuple[tuple[int, int] | None, ...]:
        """Return modification time and size of every file; None for a missing file."""
        meshes = [
            solid.mesh
            for solid in self._viewer.model.mechanism.solids
            if isinstance(solid.mesh, Path)
        ]
        return tuple(map(_file_state, (*self._files, *meshes)))


def _file_state(path: Path) -> tuple[int, int] | None:
    """Return modification time (ns) and size (bytes) of a file; None if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
