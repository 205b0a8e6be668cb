"""A first look at a machine: a page with a tour of its work volume, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

import numpy as np

from tauloop.common.datasets import Variable
from tauloop.common.errors import InputError, PoseError, TauloopError
from tauloop.common.keywords import keywords
from tauloop.common.plain import json_keys
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Result, provenance
from tauloop.equations.named_values import QUATERNION_SUFFIXES
from tauloop.equations.ports import ACTUATORS, PLATFORM, Entry
from tauloop.model import Model
from tauloop.model.model import MachineSource, modelled
from tauloop.motion.planning import PlannedMotion, StrokeOptions, plan_stroke
from tauloop.viewer.pages.workflow import write_report

#: Shares of the way from the reference pose to the limits that are tried, one after the other.
SHARES = (0.7, 0.4, 0.2, 0.1)
#: Time of the tour of a machine whose file states no limits of force or speed, s.
UNHURRIED = 6.0
#: How far a coordinate without limits goes, rad and m.
FAR = {"rad": 0.3, "m": 0.05}
#: Corners of the tour, in shares of the way along up to three coordinates.
CORNERS = np.array([[1, 0, 1], [0, 1, 0], [-1, 0, -1], [0, -1, 0]], dtype=float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo(Result):
    """A page with a machine in motion.

    Attributes:
        machine: its name.
        planned: the tour.
        path: the page.
        size: bytes of it.
    """

    machine: str
    planned: PlannedMotion = field(metadata=json_keys("motion"))
    path: Path
    size: int

    def variables(self) -> Iterator[Variable]:
        """Those of the tour."""
        return self.planned.variables()

    def next_steps(self, called: str) -> tuple[str, ...]:
        """What to do next, a line each; `called` is the name or file by which commands know the machine."""
        return (
            f"open {self.path} in a browser: it plays, turns and zooms without Python",
            f"tauloop view {called}: move it by hand, as far as its loops close",
            f"tauloop new mine --template {called}: the same machine with dimensions of your own",
            "tauloop check mine.yaml: do its loops close, is it driven, where is it weak?",
            "tauloop dynamics mine.yaml: forces of its motors; tauloop -h for all else",
        )


@keywords()
def demo(machine: MachineSource, path: str | Path, *, progress: Progress | None = None) -> Demo:
    """Write a page with a machine on a tour of its work volume: in 3D, with its stroke and the forces of its motors.

    The tour goes as fast as the limits of the machine's file allow.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        path: the page (HTML).
        progress: called with what is done and what there is to do.

    Raises:
        PoseError: the machine cannot leave its reference pose.
        EngineError: plotly or viser is not installed.
        InputError: the page cannot be written.

    Examples:
        >>> import tauloop as tl
        >>> tl.demo(tl.load("four_bar"), "four_bar.html").path.name
        'four_bar.html'
    """
    model, stages = modelled(machine), Stages(progress, 2)
    planned = _tour(model)
    stages.done()
    written = write_report(planned, path, progress=stages.part)
    name = model.mechanism.name
    return Demo(
        diagnostics=planned.diagnostics,
        provenance=provenance(options={}, inputs={"machine": name}),
        machine=name,
        planned=planned,
        path=written.path,
        size=written.size,
    )


def _tour(model: Model) -> PlannedMotion:
    """The largest tour that the machine can do, as fast as it can."""
    error: TauloopError | None = None
    for share in SHARES:
        for entry in (PLATFORM, ACTUATORS):
            if not (corners := list(_corners(model, entry, share))):
                continue
            for time in (None, UNHURRIED):
                way = tuple(corners[:-1])
                options = StrokeOptions(
                    shape="spline", via=way, end=corners[-1], entry=entry, time=time
                )
                try:
                    return plan_stroke(model, options)
                except (InputError, PoseError) as caught:
                    error = error or caught
    raise error or PoseError.of(
        model.mechanism.name, "has nothing that moves", "`tauloop check` says more"
    )


def _corners(model: Model, entry: Entry, share: float) -> Iterator[dict[str, float]]:
    """Points of the tour by names of the entry's coordinates; none where these are orientations alone."""
    port, limits, home = (
        model.motion(entry).ports.position,
        model.limits,
        model.motion(entry).ports.at(model.assembly.q),
    )
    ends = {
        name: (low, high)
        for name, low, high in zip(limits.names, limits.lower, limits.upper, strict=True)
    }
    free = [
        i
        for i, name in enumerate(port.columns)
        if name.rpartition(".")[2] not in QUATERNION_SUFFIXES
    ]
    moved = sorted(free, key=lambda i: port.columns[i] not in ends)[: CORNERS.shape[1]]
    if not moved:
        return
    open_ends = (-np.inf, np.inf)
    ways = [[end - home[i] for end in ends.get(port.columns[i], open_ends)] for i in moved]
    fars = [FAR.get(port.units[i], 0.0) for i in moved]
    reach = [
        np.nan_to_num(way, neginf=-far, posinf=far) for way, far in zip(ways, fars, strict=True)
    ]
    for corner in (*CORNERS, np.zeros(CORNERS.shape[1])):
        if len(moved) == 1 and not corner[0] and corner[1]:
            continue  # the same place as the one before
        yield {
            port.columns[i]: float(home[i] + share * (high if step > 0 else -low) * step)
            for i, step, (low, high) in zip(moved, corner, reach, strict=False)
        }
