"""Additional layers of a viewer: logs, other machines, forces, workspace and modes."""

from __future__ import annotations

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.ports import Entry
from tauloop.model import Model
from tauloop.viewer.playback import Playback


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers(ReprMixin):
    """Layers of a viewer. The panel can switch on all layers except other machines and logs.

    Attributes:
        measured: a log, shown transparent at the time of the motion.
        comparison: another machine, shown transparent at the same actuator positions.
        next_to: further machines, shown to the right of the first, each with its own sliders.
        forces: whether forces are shown.
        workspace: two or three platform positions over which a slice or cloud of the workspace is
            shown; empty for none.
        coloring: property that colors the points: "reach", "conditioning" or "force".
        modes: coordinates whose position is fixed in a search for all modes when the viewer opens:
            actuators (assembly modes) or platform (working modes); None for no search.
    """

    measured: Playback | None = None
    comparison: Model | None = None
    next_to: tuple[Model, ...] = ()
    forces: bool = False
    workspace: tuple[str, ...] = ()
    coloring: str = "reach"
    modes: Entry | None = None
