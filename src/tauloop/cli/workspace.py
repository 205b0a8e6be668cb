"""``tauloop workspace``: where a machine can work, and why not elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.progress import Progress

from tauloop.assembly.ports import Port
from tauloop.cli.announced import announced
from tauloop.cli.assigned import TOOL, assigned
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_machine
from tauloop.cli.output import (
    FAILED,
    JsonOption,
    any_ending,
    console,
    figure_ending,
    print_json,
    reports_errors,
    table,
    writes,
)
from tauloop.errors import InputError, Problem
from tauloop.files import write_file
from tauloop.kinematics import workspace_map as maps
from tauloop.kinematics.pose_axes import pose_axes
from tauloop.kinematics.workspace_map import Reason, Workspace, WorkspaceLimits, section_axes
from tauloop.model import Model
from tauloop.model.tension_terms import NO_WRENCH
from tauloop.result import Status

#: Poses along the longer axis of a section whose resolution is not given.
FINENESS = 120


@reports_errors
@writes(figure=figure_ending, out=any_ending)
def workspace(
    machine: MachineArgument,
    side: SideOption = None,
    plane: Annotated[
        str | None,
        typer.Option(help="Positions that vary, one to three, such as 'x,z'; the first two without it."),
    ] = None,
    section: Annotated[
        str | None,
        typer.Option(help="Positions that are held, such as 'z=-0.5' (SI); the rest as at the reference pose."),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option("--range", help="Ranges, such as 'x=-0.4:0.4,y=-0.4:0.4'; as far as the machine reaches without."),
    ] = None,
    resolution: Annotated[float | None, typer.Option(help="Step of the grid, m or rad.")] = None,
    singularity: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Least distance to singularities (0 to 1, free of units).")
    ] = 0.05,
    clearance: Annotated[float, typer.Option(min=0.0, help="Least distance of rod centre lines, m.")] = 0.0,
    margin: Annotated[
        float, typer.Option(min=0.0, help="Least margin of the tensions of cables to their bounds, N.")
    ] = 0.0,
    wrench: Annotated[
        list[str] | None,
        typer.Option(
            help="Load at the tool that cables must hold, such as 'fz=-50,mx=2' (N, N m, base frame); may be given "
            "several times, for one load at a time."
        ),
    ] = None,
    colour: Annotated[
        str, typer.Option(help="What colours usable poses: parallel, serial, constraint, clearance or tension.")
    ] = "parallel",
    figure: Annotated[Path | None, typer.Option(help="Draw a section to this file (PNG, SVG, PDF).")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the map as NetCDF.")] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Where a machine can work: reach, ranges, singularities, interference of rods, and what cables can hold.

    Over a section or a volume of poses at rest. A platform's orientation is given by angles rx, ry, rz: turned from the
    reference pose about that vector in the base frame.
    """
    model = announced(Model(load_machine(machine, side)), within_limits)
    pose = pose_axes(model)
    port = Port(name="position", columns=pose.columns, units=pose.units)
    names = _names(port, plane)
    fixed = {full_name(port, key, "--section"): value for key, value in numbers(section, "--section").items()}
    ranges = {full_name(port, key, "--range"): value for key, value in ranges_of(within).items()}
    step = resolution
    if step is None:
        widest = max(float(np.ptp(values)) for values in section_axes(model, names, 1e-3, ranges).values())
        step = float(f"{widest / FINENESS:.1g}")
    axes = section_axes(model, names, step, ranges)
    loads = tuple(tuple(map(float, assigned(TOOL, "--wrench", text, np.zeros(6)))) for text in wrench or ())
    limits = WorkspaceLimits(singularity=singularity, clearance=clearance, tension=margin, wrenches=loads or NO_WRENCH)
    with Progress(transient=True, disable=as_json) as progress:
        task = progress.add_task("poses")
        found = maps.workspace(
            model,
            axes,
            fixed=fixed,
            limits=limits,
            progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    if figure is not None:
        from tauloop.report import save_figure
        from tauloop.report.workspace_figure import workspace_figure

        save_figure(workspace_figure(found, title=f"Workspace of {model.mechanism.name}", measure=colour), figure)
    if out is not None:
        write_file(out, lambda path: found.data.to_netcdf(path, engine="scipy"))
    if as_json:
        print_json(_as_dict(model, found))
    else:
        _print(model, found, figure, out)
    if found.status is not Status.OK:
        raise typer.Exit(FAILED)


def _names(port: Port, text: str | None) -> tuple[str, ...]:
    if text is None:
        return port.columns[:2]
    return tuple(full_name(port, part.strip(), "--plane") for part in text.split(",") if part.strip())


def full_name(port: Port, name: str, where: str) -> str:
    """A column by its name, or by the last part of it where only one column ends so."""
    places = [column for column in port.columns if column == name]
    places = places or [column for column in port.columns if column.rpartition(".")[2] == name]
    if len(places) == 1:
        return places[0]
    raise InputError(Problem(where=where, what=f"no single position {name!r}", remedy=", ".join(port.columns)))


def numbers(text: str | None, where: str) -> dict[str, float]:
    """Numbers by name from ``a=1,b=2``."""
    pairs = [part.partition("=") for part in (text or "").split(",") if part.strip()]
    try:
        return {name.strip(): float(value) for name, _, value in pairs}
    except ValueError:
        raise InputError(Problem(where=where, what=f"{text!r} is not NAME=NUMBER", remedy="such as z=-0.5")) from None


def ranges_of(text: str | None) -> dict[str, tuple[float, float]]:
    """Ranges by name from ``a=0:1,b=2:3``."""
    found = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name, _, limits = part.partition("=")
        low, _, high = limits.partition(":")
        try:
            found[name.strip()] = (float(low), float(high))
        except ValueError:
            what = f"{part.strip()!r} is not NAME=LOW:HIGH"
            raise InputError(Problem(where="--range", what=what, remedy="such as x=-0.4:0.4")) from None
    return found


def _size(found: Workspace) -> tuple[float, str]:
    units = {found.data[name].attrs["units"] for name in found.data.dims}
    dimension = len(found.data.dims)
    unit = next(iter(units)) if len(units) == 1 else "mixed units"
    return float(found.connected.sum()) * found.cell, unit if dimension == 1 else f"{unit}^{dimension}"


def _as_dict(model: Model, found: Workspace) -> dict[str, object]:
    size, unit = _size(found)
    counts = {reason.text: int((found.reason == reason).sum()) for reason in Reason}
    usable = found.usable
    return {
        "machine": model.mechanism.name,
        "status": found.status,
        "evidence": found.evidence,
        "axes": {str(name): found.data[name].to_numpy() for name in found.data.dims},
        "fixed": found.fixed,
        "limits": found.limits,
        "poses": counts,
        "excluded_by": found.excluded_by(),
        "connected_usable": size,
        "connected_usable_unit": unit,
        "least": {
            name: float(found.data[name].to_numpy()[usable].min())
            for name in ("serial", "parallel", "constraint", "clearance", "tension")
            if usable.any() and np.isfinite(found.data[name].to_numpy()[usable]).all()
        },
    }


def _print(model: Model, found: Workspace, figure: Path | None, out: Path | None) -> None:
    screen = console()
    sizes = " x ".join(f"{len(found.data[name])} {name}" for name in found.data.dims)
    rows = table(f"Workspace of {model.mechanism.name}: {sizes}", "pose", "number", "share", numeric=(1, 2))
    for reason in Reason:
        count = int((found.reason == reason).sum())
        rows.add_row(reason.text, str(count), f"{count / found.reason.size:.1%}")
    screen.print(rows)
    blamed = table("What excludes poses", "element", "poses", numeric=(1,))
    for name, count in list(found.excluded_by().items())[:10]:
        blamed.add_row(name, str(count))
    screen.print(blamed)
    size, unit = _size(found)
    screen.print(f"usable and connected with the reference pose: {size:.4g} {unit}")
    for line in found.advice:
        screen.print(line)
    for path in (figure, out):
        if path is not None:
            screen.print(f"written: {path}")
