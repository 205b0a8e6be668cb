"""``tauloop motion``: a trajectory along a path, as a table that other commands read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tauloop.cli.dynamics import assigned
from tauloop.cli.machine import MachineArgument, SideOption, load_machine
from tauloop.cli.output import JsonOption, console, print_json, reports_errors, table
from tauloop.errors import InputError, Problem
from tauloop.functions import Model, MotionFunctions
from tauloop.logs import read_log, samples, write_log
from tauloop.logs.channels import Channel, build_log, channels
from tauloop.motion import (
    LAWS,
    Ellipse,
    Line,
    MachineLimits,
    PeakAcceleration,
    PeakForce,
    PeakSpeed,
    SampledPath,
    Seconds,
    Timing,
    Together,
    Trajectory,
    Turn,
    peak,
    plan,
    polyline,
    stroke,
    tightest_limit,
)
from tauloop.motion.paths import Path as Curve

SHAPES = ("line", "ellipse", "polyline", "spline")


@reports_errors
def motion(
    machine: MachineArgument,
    side: SideOption = None,
    shape: Annotated[
        str,
        typer.Option(
            help="line; ellipse (half of one over the via point, sheared where that is not above the middle); "
            "polyline (corners blended by clothoids); spline."
        ),
    ] = "line",
    start: Annotated[
        str | None, typer.Option("--from", help="Start, such as 'x=0,y=-0.1' (SI); the rest as at the reference pose.")
    ] = None,
    via: Annotated[
        list[str] | None, typer.Option(help="A point on the way, likewise; coordinates not named as at the start.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", help="End, likewise.")] = None,
    points: Annotated[
        Path | None,
        typer.Option(
            help="Instead: points of a spline, CSV or Parquet with columns such as 'position.platform.x [m]'."
        ),
    ] = None,
    turn: Annotated[
        str | None,
        typer.Option(help="Beside it: rotation vector 'rx,ry,rz' in rad, where the platform's quaternion is free."),
    ] = None,
    blend: Annotated[float, typer.Option(help="Distance from the corners of a polyline where blends start.")] = 0.02,
    entry: Annotated[str, typer.Option(help="Whose coordinates these are: platform or actuators.")] = "platform",
    law: Annotated[str, typer.Option(help=f"Motion law: {', '.join(LAWS)}.")] = "3-4-5",
    time: Annotated[float | None, typer.Option(help="Duration of the stroke, s.")] = None,
    speed: Annotated[float | None, typer.Option(help="Or its peak speed, m/s (actuators: of any one).")] = None,
    acceleration: Annotated[float | None, typer.Option(help="Or its peak acceleration, m/s^2 (likewise).")] = None,
    share: Annotated[
        float, typer.Option(help="Or, without these, the share of the machine's force and speed limits.")
    ] = 1.0,
    returns: Annotated[bool, typer.Option("--returns", help="Back to the start on the same way.")] = False,
    frequency: Annotated[float, typer.Option(help="Samples per second in the table, Hz.")] = 1000.0,
    out: Annotated[
        Path | None,
        typer.Option(help="Write time, positions, velocities and accelerations to this CSV or Parquet file."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Plan a trajectory: a path, a motion law, and a duration (given, or the shortest that the machine can do).

    The table is input of `tauloop dynamics --motion`. A path that leaves the workspace or passes through a singularity
    is refused with the place.
    """
    _check_choices(shape, entry, law)
    timing = _timing(time, speed, acceleration, share)
    model = Model(load_machine(machine, side))
    functions = model.platform if entry == "platform" else model.actuators
    base = functions.entry.at(model.assembly.q)
    moved, path, base = _path(functions, base, shape, start, via or [], end, points, blend)
    if turn is not None:
        moved, path = _with_turn(functions, base, moved, path, turn)
    if path is None:
        remedy = "give --to, --points or --turn"
        raise InputError(Problem(where="--to", what="no end of the path is given", remedy=remedy))
    placed = stroke(model, path, moved, entry=entry, base=base)
    trajectory = plan(placed, LAWS[law], timing, returns=returns)
    peaks = trajectory.peak_forces()
    rate = 1.0 / trajectory.duration
    tightest = tightest_limit(placed, LAWS[law], rate, returns=returns)
    document = {
        "machine": model.mechanism.name,
        "entry": entry,
        "columns": moved,
        "law": law,
        "duration_s": trajectory.duration,
        "total_s": trajectory.total,
        "peak_speed": peak(placed, LAWS[law], "velocity", rate),
        "peak_acceleration": peak(placed, LAWS[law], "acceleration", rate),
        "forces": [_as_dict(item) for item in peaks],
        "tightest_limit": None if tightest is None else {"limit": tightest[0], "share": tightest[1]},
        "condition": placed.condition,
        "worst_place": placed.place(placed.worst),
    }
    if out is not None:
        _write(out, functions, trajectory, frequency)
    if as_json:
        print_json(document)
    else:
        _print(document, functions, peaks, out)


def _check_choices(shape: str, entry: str, law: str) -> None:
    choices = (("--shape", shape, SHAPES), ("--entry", entry, ("platform", "actuators")), ("--law", law, tuple(LAWS)))
    problems = [
        Problem(where=where, what=f"{given!r} is unknown", remedy=f"choose among {', '.join(known)}")
        for where, given, known in choices
        if given not in known
    ]
    if problems:
        raise InputError(problems)


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
    functions: MotionFunctions,
    base: np.ndarray,
    shape: str,
    start: str | None,
    via: list[str],
    end: str | None,
    points: Path | None,
    blend: float,
) -> tuple[tuple[str, ...], Curve | None, np.ndarray]:
    """Names of the coordinates that move, the path in them, and where the others stay."""
    port = functions.entry.position
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
    functions: MotionFunctions, base: np.ndarray, moved: tuple[str, ...], path: Curve | None, text: str
) -> tuple[tuple[str, ...], Curve]:
    """The path with a turn of the platform beside it."""
    columns = functions.entry.position.columns
    quaternion = [i for i, unit in enumerate(functions.entry.position.units) if unit == "1"]
    problems = []
    if len(quaternion) != 4:
        what = f"the {functions.entry.name} has no free orientation: {', '.join(columns)}"
        problems.append(Problem(where="--turn", what=what, remedy="leave it out, or move its coordinates by --to"))
    try:
        rotation = np.array([float(part) for part in text.split(",")])
    except ValueError:
        rotation = np.empty(0)
    if len(rotation) != 3 or not np.isfinite(rotation).all():
        problems.append(Problem(where="--turn", what=f"{text!r} is not three numbers", remedy="such as 0,0,0.2 (rad)"))
    names = tuple(columns[i] for i in quaternion)
    if set(names) & set(moved):
        problems.append(Problem(where="--turn", what="given beside components of the quaternion", remedy="one of them"))
    if problems:
        raise InputError(problems)
    turned = Turn(base[quaternion], rotation)
    return (*moved, *names), turned if path is None else Together((path, turned))


def _write(out: Path, functions: MotionFunctions, trajectory: Trajectory, frequency: float) -> None:
    sampled = trajectory.sample(frequency)
    log = build_log(
        sampled.time,
        [
            Channel(quantity=kind, channel=column, values=getattr(sampled, kind)[:, i], unit=unit)
            for kind, port in functions.ports.items()
            for i, (column, unit) in enumerate(zip(port.columns, port.units, strict=True))
        ],
    )
    write_log(out, log)


def _as_dict(item: PeakForce) -> dict[str, Any]:
    limit = item.limit if np.isfinite(item.limit) else None
    return {
        "actuator": item.actuator,
        "peak_force": item.force,
        "time_s": item.time,
        "unit": item.unit,
        "limit": limit,
    }


def _print(
    document: dict[str, Any], functions: MotionFunctions, peaks: tuple[PeakForce, ...], out: Path | None
) -> None:
    screen = console()
    linear = functions.entry.name == "platform" and "m/s" in functions.entry.velocity.units
    unit = "m/s" if linear else next(iter(functions.entry.velocity.units))
    total = "" if document["total_s"] == document["duration_s"] else f" ({document['total_s']:.6g} s there and back)"
    screen.print(f"Stroke of {document['duration_s']:.6g} s{total}, law {document['law']}")
    screen.print(
        f"peak speed {document['peak_speed']:.5g} {unit}, acceleration {document['peak_acceleration']:.5g} {unit}^2"
    )
    rows = table("Peak forces", "actuator", "force", "limit", "unit", "at [s]", numeric=(1, 2, 4))
    for item in peaks:
        limit = f"{item.limit:.5g}" if np.isfinite(item.limit) else "-"
        rows.add_row(item.actuator, f"{item.force:.5g}", limit, item.unit, f"{item.time:.4f}")
    screen.print(rows)
    if document["tightest_limit"] is not None:
        screen.print(f"{document['tightest_limit']['share']:.1%} of the limit of {document['tightest_limit']['limit']}")
    screen.print(f"worst condition number {document['condition']:.3g} at {document['worst_place']}", soft_wrap=True)
    if out is not None:
        screen.print(f"written: {out}")
