"""A stroke that the command line names: its path, its law and its duration, for `tauloop motion` and `control`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tauloop.assembly.entry import Entry
from tauloop.cli.assigned import assigned
from tauloop.errors import InputError, Problem, Problems
from tauloop.logs import read_log, samples
from tauloop.logs.channels import channels
from tauloop.model import Model, Motion
from tauloop.motion import (
    LAWS,
    Ellipse,
    Line,
    MachineLimits,
    PeakAcceleration,
    PeakSpeed,
    SampledPath,
    Seconds,
    Timing,
    Together,
    Trajectory,
    Turn,
    plan,
    polyline,
    stroke,
)
from tauloop.motion.paths import Path as Curve

SHAPES = ("line", "ellipse", "polyline", "spline")

ShapeOption = Annotated[
    str,
    typer.Option(
        "--shape",
        "--path",
        help="line; ellipse (half of one over the via point, sheared where that is not above the middle); "
        "polyline (corners blended by clothoids); spline.",
    ),
]
StartOption = Annotated[
    str | None, typer.Option("--from", help="Start, such as 'x=0,y=-0.1' (SI); the rest as at the reference pose.")
]
ViaOption = Annotated[
    list[str] | None, typer.Option(help="A point on the way, likewise; coordinates not named as at the start.")
]
EndOption = Annotated[str | None, typer.Option("--to", help="End, likewise.")]
PointsOption = Annotated[
    Path | None,
    typer.Option(help="Instead: points of a spline, CSV or Parquet with columns such as 'position.platform.x [m]'."),
]
TurnOption = Annotated[
    str | None,
    typer.Option(help="Beside it: rotation vector 'rx,ry,rz' in rad, where the platform's quaternion is free."),
]
BlendOption = Annotated[float, typer.Option(help="Distance from the corners of a polyline where blends start.")]
EntryOption = Annotated[Entry, typer.Option(help="Whose coordinates these are.")]
LawOption = Annotated[str, typer.Option(help=f"Motion law: {', '.join(LAWS)}.")]
TimeOption = Annotated[float | None, typer.Option(help="Duration of the stroke, s.")]
SpeedOption = Annotated[float | None, typer.Option(help="Or its peak speed, m/s (actuators: of any one).")]
AccelerationOption = Annotated[float | None, typer.Option(help="Or its peak acceleration, m/s^2 (likewise).")]
ShareOption = Annotated[
    float, typer.Option(help="Or, without these, the share of the machine's force and speed limits.")
]
ReturnsOption = Annotated[bool, typer.Option("--returns", help="Back to the start on the same way.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class StrokeChoice:
    """What the options above say."""

    shape: str
    start: str | None
    via: list[str] | None
    end: str | None
    points: Path | None
    turn: str | None
    blend: float
    entry: Entry
    law: str
    time: float | None
    speed: float | None
    acceleration: float | None
    share: float
    returns: bool

    def planned(self, model: Model) -> Trajectory:
        """The trajectory of a machine.

        Raises:
            InputError: options that are unknown, or do not go together.
            PoseError: a path that leaves the workspace or passes through a singularity, and where.
        """
        _check_choices(self.shape, self.law)
        timing = _timing(self.time, self.speed, self.acceleration, self.share)
        functions = model.motion(self.entry)
        base = functions.ports.at(model.assembly.q)
        moved, path, base = _path(
            functions, base, self.shape, self.start, self.via or [], self.end, self.points, self.blend
        )
        if self.turn is not None:
            moved, path = _with_turn(functions, base, moved, path, self.turn)
        if path is None:
            remedy = "give --to, --points or --turn"
            raise InputError(Problem(where="--to", what="no end of the path is given", remedy=remedy))
        placed = stroke(model, path, moved, entry=self.entry, base=base)
        return plan(placed, LAWS[self.law], timing, returns=self.returns)


def _check_choices(shape: str, law: str) -> None:
    choices = (("--shape", shape, SHAPES), ("--law", law, tuple(LAWS)))
    InputError.raise_if_any(
        Problem(where=where, what=f"{given!r} is unknown", remedy=f"choose among {', '.join(known)}")
        for where, given, known in choices
        if given not in known
    )


def _timing(time: float | None, speed: float | None, acceleration: float | None, share: float) -> Timing:
    given = {"--time": time, "--speed": speed, "--acceleration": acceleration}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        what = f"given beside {' and '.join(named[:-1])}"
        raise InputError(Problem(where=named[-1], what=what, remedy="only one of them sets the duration"))
    if time is not None:
        return Seconds(time)
    if speed is not None:
        return PeakSpeed(speed)
    if acceleration is not None:
        return PeakAcceleration(acceleration)
    return MachineLimits(force=share, speed=share)


def _path(
    functions: Motion,
    base: np.ndarray,
    shape: str,
    start: str | None,
    via: list[str],
    end: str | None,
    points: Path | None,
    blend: float,
) -> tuple[tuple[str, ...], Curve | None, np.ndarray]:
    """Names of the coordinates that move, the path in them, and where the others stay."""
    port = functions.ports.position
    if points is not None:
        if start is not None or via or end is not None:
            what = "given beside points on the command line"
            raise InputError(Problem(where="--points", what=what, remedy="give the one or the other"))
        log = read_log(points)
        names = tuple(name for name in port.columns if name in channels(log, "position"))
        return names, SampledPath(samples(log, "position", names)), base
    if end is None:
        base = assigned(port, "--from", start, base)
        return (), None, base
    first = assigned(port, "--from", start, base)
    rows = [first, *(assigned(port, "--via", text, first) for text in via), assigned(port, "--to", end, first)]
    moving = np.flatnonzero(np.ptp(rows, axis=0) > 0)
    corners = np.array(rows)[:, moving]
    names = tuple(port.columns[i] for i in moving)
    needed = {"line": 0, "ellipse": 1}.get(shape, len(via))
    if len(via) != needed:
        what = f"{len(via)} given, a path of shape {shape} needs {needed}"
        raise InputError(Problem(where="--via", what=what, remedy="choose another --shape, or other points"))
    if not len(moving):
        raise InputError(Problem(where="--to", what="is the start: the path has no length", remedy="name another end"))
    units = {port.units[i] for i in moving}
    if shape == "polyline" and len(units) > 1:
        what = f"a polyline in {' and '.join(sorted(units))} has no lengths to blend by"
        raise InputError(Problem(where="--shape", what=what, remedy="spline, or move coordinates of one unit"))
    if shape == "line":
        return names, Line(corners[0], corners[1]), first
    if shape == "ellipse":
        middle = 0.5 * (corners[0] + corners[2])
        return names, Ellipse(middle, corners[0] - middle, corners[1] - middle, 0.0, np.pi), first
    if shape == "polyline":
        return names, polyline(corners, blend), first
    return names, SampledPath(corners), first


def _with_turn(
    functions: Motion, base: np.ndarray, moved: tuple[str, ...], path: Curve | None, text: str
) -> tuple[tuple[str, ...], Curve]:
    """The path with a turn of the platform beside it."""
    columns = functions.ports.position.columns
    quaternion = [i for i, unit in enumerate(functions.ports.position.units) if unit == "1"]
    problems = Problems()
    if len(quaternion) != 4:
        what = f"the {functions.ports.name} has no free orientation: {', '.join(columns)}"
        problems.add("--turn", what, "leave it out, or move its coordinates by --to")
    try:
        rotation = np.array([float(part) for part in text.split(",")])
    except ValueError:
        rotation = np.empty(0)
    if len(rotation) != 3 or not np.isfinite(rotation).all():
        problems.add("--turn", f"{text!r} is not three numbers", "such as 0,0,0.2 (rad)")
    names = tuple(columns[i] for i in quaternion)
    if set(names) & set(moved):
        problems.add("--turn", "given beside components of the quaternion", "one of them")
    InputError.raise_if_any(problems)
    turned = Turn(base[quaternion], rotation)
    return (*moved, *names), turned if path is None else Together((path, turned))
