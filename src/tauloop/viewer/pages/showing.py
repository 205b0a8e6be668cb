"""A first look at a machine: a page with a tour of its workspace, and next steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from tauloop.common.datasets import tabulated
from tauloop.common.errors import InputError, PoseError, TauloopError
from tauloop.common.keywords import keywords
from tauloop.common.plain import json_keys
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Result, provenance
from tauloop.display.page_records import page_record
from tauloop.equations.named_values import QUATERNION_SUFFIXES
from tauloop.equations.ports import ACTUATORS, PLATFORM, Entry
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled
from tauloop.motion.planning import PlannedMotion, StrokeOptions, plan_stroke
from tauloop.viewer.pages.document import Card, write_page

#: Sizes of the tour that are tried, as fractions of the distance from the reference pose to the
#: limits.
TOUR_SIZES = (0.7, 0.4, 0.2, 0.1)
#: Duration of the tour if the machine file has no limits of force or speed, s.
DEFAULT_TOUR_TIME = 6.0
#: Distance by which a coordinate without limits moves, by unit.
DEFAULT_DISTANCES = {"rad": 0.3, "m": 0.05}
#: Corners of the tour, as fractions of the distance along up to three coordinates.
CORNERS = np.array([[1, 0, 1], [0, 1, 0], [-1, 0, -1], [0, -1, 0]], dtype=float)
#: Introduction of the page.
INTRODUCTION = (
    "Tauloop models machines with closed loops: deltas, hexapods, cable robots, linkages. A short "
    "file states joints, lengths and masses; Tauloop closes the loops and computes the rest. Here "
    "the machine tours its workspace as fast as its motors and limits allow."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo(Result):
    """A page with a machine in motion.

    Attributes:
        machine: name of the machine.
        planned: the tour.
        path: the page.
        size: size of the page, bytes.
    """

    machine: str
    planned: PlannedMotion = field(metadata=json_keys("motion") | tabulated())
    path: Path
    size: int

    def next_steps(self, called: str) -> tuple[str, ...]:
        """Return the next steps, one per line; `called` is the name or file of the machine."""
        return (
            f"open {self.path} in a browser: play, rotate and zoom without Python",
            f"tauloop view {called}: move the machine by hand, as far as its loops close",
            f"tauloop new mine --template {called}: the same machine with your own dimensions",
            "tauloop check mine.yaml: do its loops close, is it driven, is it near a singularity?",
            "tauloop dynamics mine.yaml: forces of its motors; tauloop -h lists all commands",
        )


@keywords()
def demo(machine: MachineSource, path: str | Path, *, progress: Progress | None = None) -> Demo:
    """Write a page that shows a machine in 3D on a tour of its workspace, with its motor forces.

    The tour is as fast as the limits in the machine file allow.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        path: the page (HTML).
        progress: function (completed stages, all stages).

    Returns:
        The path of the page, and the planned tour.

    Raises:
        PoseError: the machine cannot leave its reference pose.
        EngineError: plotly or viser is not installed.
        InputError: the page cannot be written.

    Examples:
        >>> import tauloop as tl
        >>> tl.demo(tl.load("four_bar"), "four_bar.html").path.name
        'four_bar.html'
    """
    model, stages = modeled(machine), Stages(progress, 2)
    planned = _tour(model)
    stages.done()
    name = model.mechanism.name
    record = page_record(planned)
    title = f"{name}: a tour of its workspace"
    written = write_page(
        path,
        title,
        [replace(record, kind="Demo", title=title)],
        introduction=(INTRODUCTION,),
        cards=_cards(name),
        progress=stages.part,
    )
    return Demo(
        diagnostics=planned.diagnostics,
        provenance=provenance(options={}, inputs={"machine": name}),
        machine=name,
        planned=planned,
        path=written,
        size=written.stat().st_size,
    )


def _cards(name: str) -> tuple[Card, ...]:
    """Return typical tasks, each with its command for this machine."""
    return (
        Card(
            title="Design",
            text="Describe your own machine from a template; check its loops, drives and limits.",
            command=f"tauloop new mine --template {name}\ntauloop check mine.yaml",
        ),
        Card(
            title="Move and see",
            text="Drag the tool as far as the loops close; map the workspace.",
            command=f"tauloop view {name}\ntauloop workspace {name}",
        ),
        Card(
            title="Forces and motors",
            text="Torques, speeds and power of a motion, and forces in every joint.",
            command=f"tauloop dynamics {name} --joint-forces",
        ),
        Card(
            title="Simulate and identify",
            text="Simulate the machine; estimate masses, friction and geometry from measured logs.",
            command=f"tauloop simulate {name}\ntauloop identify {name} log.csv",
        ),
        Card(
            title="Deliver",
            text="Fast C code for controllers, and models for MuJoCo, ROS and FMI.",
            command=f"tauloop export c {name} --out code",
        ),
    )


def _tour(model: Model) -> PlannedMotion:
    """Return the largest tour that the machine can run, as fast as it can."""
    error: TauloopError | None = None
    for size_fraction in TOUR_SIZES:
        for entry in (PLATFORM, ACTUATORS):
            corners = list(_corners(model, entry, size_fraction))
            if not corners:
                continue
            for time in (None, DEFAULT_TOUR_TIME):
                options = StrokeOptions(
                    shape="spline",
                    via=tuple(corners[:-1]),
                    end=corners[-1],
                    coordinates=entry,
                    duration=time,
                )
                try:
                    return plan_stroke(model, options)
                except (InputError, PoseError) as caught:
                    error = error or caught
    raise error or PoseError.of(
        model.mechanism.name, "has no coordinate that can move", "see `tauloop check`"
    )


def _corners(model: Model, entry: Entry, size_fraction: float) -> Iterator[dict[str, float]]:
    """Yield the points of the tour by coordinate; none if all coordinates are quaternions.

    Args:
        model: the machine.
        entry: coordinates of the points: platform or actuators.
        size_fraction: size of the tour, as a fraction of the distance to the limits.
    """
    motion, limits = model.functions(entry), model.limits
    port, home = motion.ports.position, motion.ports.at(model.assembly.q)
    ranges = {
        name: (low, high)
        for name, low, high in zip(limits.names, limits.lower, limits.upper, strict=True)
    }
    positions = [
        i
        for i, name in enumerate(port.columns)
        if name.rpartition(".")[2] not in QUATERNION_SUFFIXES
    ]
    moved_positions = sorted(positions, key=lambda i: port.columns[i] not in ranges)[
        : CORNERS.shape[1]
    ]
    if not moved_positions:
        return
    distances_to_limits = []
    for i in moved_positions:
        low, high = ranges.get(port.columns[i], (-np.inf, np.inf))
        default = DEFAULT_DISTANCES.get(port.units[i], 0.0)
        distances = [low - home[i], high - home[i]]
        distances_to_limits.append(np.nan_to_num(distances, neginf=-default, posinf=default))
    for corner in (*CORNERS, np.zeros(CORNERS.shape[1])):
        if len(moved_positions) == 1 and not corner[0] and corner[1]:
            continue  # the same point as the previous one
        yield {
            port.columns[i]: float(home[i] + size_fraction * (high if step > 0 else -low) * step)
            for i, step, (low, high) in zip(
                moved_positions, corner, distances_to_limits, strict=False
            )
        }
