"""Assembly and working modes in the panel: a search at the current pose, and a button per mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import TauloopError
from tauloop.equations.ports import ACTUATORS, PLATFORM, Entry
from tauloop.kinematics.modes.modes import Modes, assembly_modes, working_modes
from tauloop.viewer.stage import Stage

#: Maximum number of buttons; more would fill the panel.
MAX_MODE_BUTTONS = 40
#: Kind of modes, by the coordinates whose position is fixed.
MODE_KINDS: dict[Entry, str] = {ACTUATORS: "assembly modes", PLATFORM: "working modes"}


class ModeButtons:
    """Buttons that search for modes at the current position of actuators or platform.

    Attributes:
        modes: modes of the last search; None before the first search.
        buttons: one button for each mode; None before the first search.
    """

    def __init__(self, viewer: Stage) -> None:
        """Add the panel."""
        self._viewer = viewer
        self.modes: Modes | None = None
        self.buttons: Any = None
        gui = viewer.server.gui
        self._folder = gui.add_folder("Modes", expand_by_default=False)
        with self._folder:
            self.kind = gui.add_button_group("find", tuple(MODE_KINDS.values()))
            self._message = gui.add_markdown(
                "All assembly modes at these motor positions, or all working modes at this pose."
            )
        entries = {kind: entry for entry, kind in MODE_KINDS.items()}
        self.kind.on_click(lambda event: self.select(entries[event.target.value]))

    def select(self, entry: Entry) -> None:
        """Find all modes at the current position.

        Args:
            entry: coordinates whose position is fixed: actuators (assembly modes) or platform
                (working modes).
        """
        viewer, kind = self._viewer, MODE_KINDS[entry]
        self._message.content = f"Searching for {kind} ..."
        find_modes = assembly_modes if entry is ACTUATORS else working_modes
        try:
            self.modes = find_modes(viewer.model, viewer.model.functions(entry).ports.at(viewer.q))
        except TauloopError as error:
            self._message.content = "\n".join(
                f"- {problem.what}; *{problem.remedy}*" for problem in error.problems
            )
            return
        count = len(self.modes.modes)
        note = f"; the first {MAX_MODE_BUTTONS} have buttons" if count > MAX_MODE_BUTTONS else ""
        self._message.content = (
            f"{counted(count, kind.removesuffix('s'))}{note}. Modes in parentheses are beyond a stop "
            "or singular."
        )
        if self.buttons is not None:
            self.buttons.remove()
        with self._folder:
            self.buttons = viewer.server.gui.add_button_group("mode", self._labels())
        self.buttons.on_click(lambda event: self.show(self._labels().index(event.target.value)))

    def show(self, number: int) -> None:
        """Show a mode by its index."""
        assert self.modes is not None
        mode = self.modes.modes[number]
        self._viewer.show(np.array(mode.q))
        condition = "singular" if mode.is_singular else f"condition {mode.condition:.3g}"
        stops = "; ".join(map(str, mode.beyond)) or "within its stops"
        reference = ", the mode of the reference pose" if mode.is_reference else ""
        self._message.content = (
            f"Mode {number + 1} of {len(self.modes.modes)}{reference}: {condition}, {stops}."
        )

    def _labels(self) -> tuple[str, ...]:
        assert self.modes is not None
        modes = self.modes.modes[:MAX_MODE_BUTTONS]
        return tuple(
            f"({i})" if mode.beyond or mode.is_singular else f"{i}"
            for i, mode in enumerate(modes, start=1)
        )
