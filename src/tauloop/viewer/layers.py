"""What a viewer shows beside a machine at a pose."""

from __future__ import annotations

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.ports import Entry
from tauloop.model import Model
from tauloop.viewer.playback import Playback


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers(ReprMixin):
    """All of it can be switched on in the panel too, but for other machines and logs.

    Attributes:
        measured: a log, shown see-through at the time of the motion.
        beside: another machine, shown see-through at the same actuator positions.
        forces: whether forces are shown.
        workspace: two or three platform positions whose slice or cloud is shown; none if empty.
        colouring: what its points are coloured by: "reach", "conditioning" or "force".
        modes: whose position is held while all modes are looked for at the start; None to wait for
            a click.
    """

    measured: Playback | None = None
    beside: Model | None = None
    forces: bool = False
    workspace: tuple[str, ...] = ()
    colouring: str = "reach"
    modes: Entry | None = None
