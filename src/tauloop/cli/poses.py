"""``tauloop poses``: which poses to measure for a calibration, and how many are enough."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.progress import Progress

from tauloop.calibration.measurements.instruments import (
    Contact,
    Distance,
    Inclinometer,
    Instrument,
    JointSensor,
    Orientation,
    Pose,
    Position,
    Vector3,
)
from tauloop.calibration.measurements.reading import KINDS, read_instrument
from tauloop.calibration.pose_selection.candidates import PoseLimits
from tauloop.calibration.pose_selection.plan import ENOUGH, PosePlan, plan_poses
from tauloop.calibration.pose_selection.selection import CRITERIA
from tauloop.calibration.problem.unknowns import Tolerances
from tauloop.cli.announced import announced
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
from tauloop.cli.workspace import ranges_of
from tauloop.errors import InputError, Problem, Problems
from tauloop.files import write_file
from tauloop.mechanism.quantities import read_quantity
from tauloop.mechanism.units import LENGTH, UnitError
from tauloop.model import Model
from tauloop.result import Status

#: Numbers of poses of the curve, as shares of the number that is asked for.
SHARES = (0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 4.0)


@reports_errors
@writes(out=any_ending, figure=figure_ending)
def poses(
    machine: MachineArgument,
    side: SideOption = None,
    parameters: Annotated[
        str,
        typer.Option(help="Unknowns by name or pattern, such as 'track*.length,track*.yaw,tracker.frame.*'."),
    ] = "",
    measure: Annotated[
        str, typer.Option(help=f"What is measured: {', '.join(KINDS)}; contacts are with the plane z = 0.")
    ] = "position",
    center: Annotated[
        str | None, typer.Option(help="Fixed centre of a ball bar (distance), such as '0 m, 0.1 m, -0.6 m'.")
    ] = None,
    coordinate: Annotated[str | None, typer.Option(help="Coordinate that a joint sensor reads.")] = None,
    instrument: Annotated[
        Path | None,
        typer.Option(help="YAML that describes the instrument as a series of measurements does (kind, surface, ...)."),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="How many poses to choose.")] = 60,
    candidates: Annotated[int, typer.Option(min=1, help="How many poses to choose from.")] = 2000,
    criterion: Annotated[
        str, typer.Option(help="D (least volume), A (least mean variance) or E (least worst direction).")
    ] = "D",
    noise: Annotated[float, typer.Option(help="Standard deviation of measured lengths, m.")] = 20e-6,
    turn_noise: Annotated[float, typer.Option(help="Standard deviation of measured angles, rad.")] = 20e-6,
    tolerance: Annotated[float, typer.Option(help="Usual size of corrections, m, rad or 1.")] = 1e-3,
    priors: Annotated[
        bool, typer.Option("--priors/--no-priors", help="Count tolerances as knowledge about the parameters.")
    ] = True,
    within: Annotated[
        str | None, typer.Option("--range", help="Ranges of platform positions, such as 'x=-0.4:0.4,z=0.1:0.3'.")
    ] = None,
    singularity: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Least distance to singularities (0 to 1, free of units).")
    ] = 0.05,
    clearance: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="Least distance of rod centre lines, m; without it a share of the rods' length; 0: none."
        ),
    ] = None,
    turn: Annotated[float, typer.Option(min=0.0, help="Largest turn of the platform about an axis, rad.")] = 0.15,
    curve: Annotated[
        bool, typer.Option("--curve", help="Also try other numbers of poses: how many are enough?")
    ] = False,
    goal: Annotated[
        float, typer.Option(help="Enough: expected error below this share of the noise, at all candidates.")
    ] = ENOUGH,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the candidates.")] = 0,
    figure: Annotated[Path | None, typer.Option(help="Draw poses and curve to this file (PNG, SVG, PDF).")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the selected poses as CSV.")] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Choose the poses that show the parameters of a calibration best, within reach, limits and clearance.

    Exit code 1 when the poses leave more open than the instrument's noise.
    """
    chosen = _checked(measure, criterion, parameters)
    model = announced(Model(load_machine(machine, side)), within_limits)
    if instrument is not None:
        read = read_instrument(instrument)
    else:
        read = _instrument(model, measure, center, coordinate)
    deviations = tuple(noise if unit == "m" else turn_noise for _, unit in read.errors)
    with Progress(transient=True, disable=as_json) as progress:
        task = progress.add_task("poses")
        plan = plan_poses(
            model,
            read,
            [part.strip() for part in parameters.split(",") if part.strip()],
            count,
            np.random.default_rng(seed),
            noise=deviations,
            candidates=candidates,
            criterion=CRITERIA[chosen],
            limits=PoseLimits(
                singularity=singularity, clearance=clearance, turn=turn, ranges=_ranges(model, within) or None
            ),
            tolerances=Tolerances(length=tolerance, angle=tolerance, ratio=tolerance, priors=("*",) if priors else ()),
            curve=[round(share * count) for share in SHARES if share * count <= candidates] if curve else (),
            goal=goal,
            progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    if figure is not None:
        from tauloop.report import save_figure
        from tauloop.report.poses_figure import poses_figure

        title = f"{model.mechanism.name}: {count} poses for {len(plan.problem.free)} parameters, {_kind(plan)} measured"
        save_figure(poses_figure(plan, title=title), figure)
    if out is not None:
        write_file(out, lambda path: _write_csv(plan, path))
    if as_json:
        print_json(_as_dict(plan, chosen))
    else:
        _print(plan, chosen, clearance is None, [path for path in (figure, out) if path is not None])
    if plan.status is not Status.OK:
        raise typer.Exit(FAILED)


def _checked(measure: str, criterion: str, parameters: str) -> str:
    problems = Problems()
    if measure not in KINDS:
        problems.add("--measure", f"{measure!r} is unknown", ", ".join(KINDS))
    if criterion.upper() not in CRITERIA:
        problems.add("--criterion", f"{criterion!r} is unknown", ", ".join(CRITERIA))
    if not parameters.strip():
        remedy = "name or pattern the unknowns, such as 'track*.length'; see `tauloop show MACHINE --parameters`"
        problems.add("--parameters", "are not given", remedy)
    InputError.raise_if_any(problems)
    return criterion.upper()


def _instrument(model: Model, measure: str, center: str | None, coordinate: str | None) -> Instrument:
    """The instrument of a kind; names are those that `tauloop calibrate` gives to bare tables."""
    if measure == "distance":
        if center is None:
            remedy = "give the fixed centre of the bar, such as --center '0 m, 0.1 m, -0.6 m'"
            raise InputError(Problem(where="--center", what="is missing", remedy=remedy))
        return Distance(name="bar", center=_vector("--center", center))
    if measure == "joint":
        shape = model.topology
        scalars = [shape.coordinate_names[j] for j in shape.q_of_v if j >= 0]
        if coordinate is None:
            remedy = f"name the coordinate that is read: {', '.join(scalars)}"
            raise InputError(Problem(where="--coordinate", what="is missing", remedy=remedy))
        is_angle = coordinate not in scalars or shape.is_angle[shape.coordinate_names.index(coordinate)]
        return JointSensor(name="sensor", coordinate=coordinate, unit="rad" if is_angle else "m")
    plain: dict[str, Instrument] = {
        "position": Position(name="tracker"),
        "pose": Pose(name="tracker"),
        "orientation": Orientation(name="tracker"),
        "contact": Contact(name="surface"),
        "inclinometer": Inclinometer(name="level"),
    }
    return plain[measure]


def _vector(where: str, text: str) -> Vector3:
    parts = [part.strip() for part in text.split(",")]
    try:
        x, y, z = (read_quantity(part, LENGTH).value for part in parts)
    except (UnitError, ValueError) as error:
        what = str(error) if len(parts) == 3 else f"{text!r} is not three lengths"
        raise InputError(Problem(where=where, what=what, remedy="such as '0 m, 0.1 m, -0.6 m'")) from None
    return (x, y, z)


def _kind(plan: PosePlan) -> str:
    (series,) = plan.problem.series
    return "joint" if isinstance(series.instrument, JointSensor) else type(series.instrument).__name__.lower()


def _ranges(model: Model, text: str | None) -> dict[str, tuple[float, float]]:
    """Ranges of the platform's columns, which may be named without the platform."""
    columns = model.platform.ports.position.columns
    full = {column.rpartition(".")[2]: column for column in columns}
    return {full.get(name, name): limits for name, limits in ranges_of(text).items()}


def _write_csv(plan: PosePlan, path: Path) -> None:
    actuators = [actuator.name for actuator in plan.problem.mechanism.actuators]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["pose", *actuators, *plan.candidates.columns])
        for i, (encoders, position) in enumerate(zip(plan.encoders, plan.positions, strict=True)):
            writer.writerow([i + 1, *(f"{value:.9g}" for value in (*encoders, *position))])


def _as_dict(plan: PosePlan, criterion: str) -> dict[str, object]:
    deviations = [float(value) if np.isfinite(value) else None for value in plan.deviations]
    return {
        "machine": plan.problem.mechanism.name,
        "status": plan.status,
        "evidence": plan.evidence,
        "criterion": criterion,
        "selection": plan.selection,
        "candidates": {
            "number": len(plan.candidates),
            "tried": plan.candidates.tried,
            "excluded": plan.candidates.excluded,
            "clearance": plan.candidates.clearance,
        },
        "columns": plan.candidates.columns,
        "positions": plan.positions,
        "encoders": plan.encoders,
        "parameters": plan.problem.names,
        "expected_deviations": deviations,
        "expected_error_over_noise": plan.error,
        "curve": plan.curve,
        "enough": plan.enough,
        "goal": plan.goal,
        "provenance": plan.provenance,
    }


def _print(plan: PosePlan, criterion: str, is_usual_clearance: bool, written: list[Path]) -> None:
    screen, chosen, indices = console(), plan.selection, plan.selection.indices
    name, n = plan.problem.mechanism.name, len(plan.problem.free)
    rows = table(f"{len(chosen.chosen)} poses of {name} for {n} parameters, {_kind(plan)} measured", "figure", "value")
    rows.add_row("candidates", f"{len(plan.candidates)} of {plan.candidates.tried} tried")
    for reason, number in plan.candidates.excluded.items():
        rows.add_row(f"  left out: {reason}", str(number))
    rows.add_row(f"{criterion}-criterion, tolerances", f"{chosen.start_value:.4g} at first, {chosen.value:.4g} after")
    rows.add_row("exchanges", f"{chosen.exchanges} in {chosen.rounds} rounds")
    for index in ("O1", "O2", "O3", "O4", "O5"):
        rows.add_row(f"observability {index}", f"{getattr(indices, index):.4g}")
    rows.add_row("directions that no candidate shows", str(chosen.silent))
    rows.add_row("expected error over the noise", f"{plan.error:.3f}")
    screen.print(rows)
    apart = plan.candidates.clearance
    if apart is not None and is_usual_clearance:
        screen.print(
            f"rods have no thickness in machine files: centre lines were kept {1e3 * apart:.3g} mm apart "
            "(--clearance states another distance)"
        )
    elif apart is None:
        screen.print("interference of rods was not looked at: there are no two rods that do not meet")
    elif not apart:
        screen.print("interference of rods was not looked at (--clearance 0)")
    units = [plan.problem.unknowns[i].unit for i in plan.problem.free]
    weak = sorted(
        zip(plan.deviations / plan.problem.tolerances, plan.problem.names, plan.deviations, units, strict=True)
    )
    worst = table("Least known parameters", "parameter", "expected deviation", "unit", numeric=(1,))
    for _, parameter, deviation, unit in weak[::-1][:8]:
        worst.add_row(parameter, f"{deviation:.3g}" if np.isfinite(deviation) else "not shown", unit)
    screen.print(worst)
    if plan.curve:
        points = table(
            "How many poses are enough", "poses", "expected error over noise", "random poses", numeric=(0, 1, 2)
        )
        for point in plan.curve:
            drawn = "-" if point.random_error is None else f"{point.random_error:.3f}"
            points.add_row(str(point.count), f"{point.error:.3f}", drawn)
        screen.print(points)
        if plan.enough is None:
            screen.print(f"none of these numbers brings the error below {plan.goal:g} of the noise")
        else:
            screen.print(f"{plan.enough} poses bring the error below {plan.goal:g} of the noise")
    for line in plan.advice:
        screen.print(line)
    for path in written:
        screen.print(f"written: {path}")
