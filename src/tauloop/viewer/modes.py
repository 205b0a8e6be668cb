"""Assembly and working modes in the panel: looked for where the machine stands, and shown at a click."""

from __future__ import annotations

from typing import Any

import numpy as np

from tauloop.common.errors import TauloopError
from tauloop.equations.ports import ACTUATORS, PLATFORM, Entry
from tauloop.kinematics.modes.modes import Modes, assembly_modes, working_modes
from tauloop.viewer.stage import Stage

#: More buttons than these would fill the panel.
MOST = 40
#: What is looked for, by the entry whose position is held.
KINDS: dict[Entry, str] = {ACTUATORS: "assembly modes", PLATFORM: "working modes"}


class ModeButtons:
    """A button that looks for modes at the present position, of actuators or of the platform, and one for each mode.

    Attributes:
        modes: those that were looked for last; None before.
        buttons: which show them; None before.
    """

    def __init__(self, viewer: Stage) -> None:
        """Add the panel."""
        self._viewer = viewer
        self.modes: Modes | None = None
        self.buttons: Any = None
        gui = viewer.server.gui
        self._folder = gui.add_folder("Modes", expand_by_default=False)
        with self._folder:
            self.kind = gui.add_button_group("look for", tuple(KINDS.values()))
            self._words = gui.add_markdown(
                "All ways to assemble it at these motor positions, or to reach this pose."
            )
        entries = {kind: entry for entry, kind in KINDS.items()}
        self.kind.on_click(lambda event: self.look(entries[event.target.value]))

    def look(self, entry: Entry) -> None:
        """Look for all modes at the position where the machine stands.

        Args:
            entry: whose position is held: actuators (assembly modes) or platform (working modes).
        """
        viewer, kind = self._viewer, KINDS[entry]
        self._words.content = f"Looking for {kind} ..."
        find = assembly_modes if entry is ACTUATORS else working_modes
        try:
            self.modes = find(viewer.model, viewer.model.motion(entry).ports.at(viewer.q))
        except TauloopError as error:
            self._words.content = "\n".join(
                f"- {problem.what}; *{problem.remedy}*" for problem in error.problems
            )
            return
        count = len(self.modes.modes)
        left = f"; the first {MOST} have buttons" if count > MOST else ""
        self._words.content = (
            f"{count} {kind}{left}. Those in brackets are beyond a stop or singular."
        )
        if self.buttons is not None:
            self.buttons.remove()
        with self._folder:
            self.buttons = viewer.server.gui.add_button_group("mode", self._labels())
        self.buttons.on_click(lambda event: self.show(self._labels().index(event.target.value)))

    def show(self, number: int) -> None:
        """Show one of the modes by its number."""
        assert self.modes is not None
        mode = self.modes.modes[number]
        self._viewer.show(np.array(mode.q))
        condition = "singular" if mode.is_singular else f"condition {mode.condition:.3g}"
        stops = "; ".join(map(str, mode.beyond)) or "within its stops"
        reference = ", the one of the reference pose" if mode.is_reference else ""
        self._words.content = (
            f"Mode {number + 1} of {len(self.modes.modes)}{reference}: {condition}, {stops}."
        )

    def _labels(self) -> tuple[str, ...]:
        assert self.modes is not None
        modes = self.modes.modes[:MOST]
        return tuple(
            f"({i})" if mode.beyond or mode.is_singular else f"{i}"
            for i, mode in enumerate(modes, start=1)
        )
