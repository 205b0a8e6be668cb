"""``tauloop excite``: a motion that tells the dynamic parameters best, under all limits of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import Progress

from tauloop.assembly.entry import ACTUATORS, Entry
from tauloop.assembly.ports import Port
from tauloop.cli.announced import announced
from tauloop.cli.assigned import assigned
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_machine
from tauloop.cli.output import (
    FAILED,
    JsonOption,
    console,
    figure_ending,
    log_ending,
    print_json,
    reports_errors,
    table,
    writes,
)
from tauloop.errors import InputError, Problem
from tauloop.identification.excitation.criteria import ConditionNumber, Criterion, LogDeterminant
from tauloop.identification.excitation.design import ExcitationOptions
from tauloop.identification.excitation.design import excite as optimised
from tauloop.identification.excitation.drives import driven_at
from tauloop.identification.excitation.limits import ExcitationLimits, PerChannel
from tauloop.identification.excitation.problem import ExcitationTask
from tauloop.identification.excitation.result import Excitation, LimitUse, slow_sampling
from tauloop.identification.excitation.solver import SolverOptions
from tauloop.logs import read_log, samples, write_log
from tauloop.logs.channels import TIME, Channel, build_log
from tauloop.logs.matching import channel_problems
from tauloop.model import Model
from tauloop.motion.sampled import SampledMotion
from tauloop.result import Status

#: Criteria by name. With unit-norm columns a share of the log-determinant keeps the motion from shrinking to nothing.
CRITERIA: dict[str, Criterion] = {
    "condition": ConditionNumber(),
    "unit-condition": ConditionNumber(unit_norm=True, information=0.1),
    "determinant": LogDeterminant(),
}


def _slow_sampling(given: Mapping[str, Any]) -> Problem | None:
    """Whether a table that is asked for would not show its fastest term."""
    frequency, harmonics, period = given["frequency"], given["harmonics"], given["period"]
    is_asked = given["out"] is not None and harmonics > 0 and period > 0
    return slow_sampling(frequency, harmonics, period) if is_asked else None


@reports_errors
@writes(out=log_ending, figure=figure_ending, also=_slow_sampling)
def excite(
    machine: MachineArgument,
    side: SideOption = None,
    space: Annotated[Entry, typer.Option(help="Whose coordinates the series are.")] = ACTUATORS,
    output: Annotated[
        str, typer.Option(help="Rows of the regressor: actuators, or joints (behind the transmissions).")
    ] = "actuators",
    criterion: Annotated[str, typer.Option(help=f"What is made small: {', '.join(CRITERIA)}.")] = "condition",
    harmonics: Annotated[int, typer.Option(help="Terms of every Fourier series.")] = 5,
    period: Annotated[float, typer.Option(help="Period, s.")] = 10.0,
    stroke: Annotated[
        str | None,
        typer.Option(help="Largest distance from the centre: one number, or 'name=0.1,...' (m, rad)."),
    ] = None,
    speed: Annotated[str | None, typer.Option(help="Largest speed of a channel, likewise (SI).")] = None,
    acceleration: Annotated[str | None, typer.Option(help="Largest acceleration, likewise (SI).")] = None,
    force: Annotated[float, typer.Option(help="Share of the machine's force limits that may be used.")] = 1.0,
    singularity: Annotated[float, typer.Option(help="Least distance to singularities (0 to 1, free of units).")] = 0.05,
    clearance: Annotated[float, typer.Option(help="Least distance of rod centre lines, m; 0 for none.")] = 0.0,
    hold: Annotated[
        str | None, typer.Option(help="Channels that stay still, such as 'telescope1.motor=1.2'; the others move.")
    ] = None,
    center: Annotated[
        str | None, typer.Option(help="Centres of channels, likewise; the reference pose's where not named.")
    ] = None,
    after: Annotated[
        list[Path] | None,
        typer.Option(help="Motion of an earlier data set, as --out writes it (may be repeated): designed beside it."),
    ] = None,
    drive: Annotated[
        list[str] | None,
        typer.Option(help="Put direct drives on these coordinates instead of the actuators (repeat for each)."),
    ] = None,
    first: Annotated[
        list[str] | None,
        typer.Option(help="Parameters that represent base parameters before all others (may be repeated)."),
    ] = None,
    moving: Annotated[bool, typer.Option("--moving", help="A period need not start and end at rest.")] = False,
    random: Annotated[int, typer.Option(help="Random series that are tried first.")] = 1000,
    starts: Annotated[int, typer.Option(help="Starts of the optimiser; 0 keeps the best random series.")] = 4,
    polish: Annotated[int, typer.Option(help="Best outcomes that are optimised further on a finer grid.")] = 2,
    processes: Annotated[int, typer.Option(help="Processes among which starts are shared out.")] = 1,
    seconds: Annotated[float, typer.Option(help="Most processor seconds for each start.")] = 60.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random series.")] = 0,
    beside: Annotated[
        float | None, typer.Option(help="A condition number that is stated elsewhere, to be printed beside.")
    ] = None,
    frequency: Annotated[float, typer.Option(help="Samples per second in the table, Hz.")] = 1000.0,
    out: Annotated[
        Path | None, typer.Option(help="Write one period of the motion to this CSV or Parquet file.")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw it into this file (PNG, PDF, SVG).")] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Optimise an excitation: finite Fourier series under limits, from several starts.

    Ranges, speeds and forces of the machine file hold for all joints and rods, driven or not. Ctrl-C stops the
    optimisation and keeps the best motion so far. Exit code 1 when no start ends at an optimum, or a check fails.
    """
    if criterion not in CRITERIA:
        what, remedy = f"{criterion!r} is unknown", f"choose among {', '.join(CRITERIA)}"
        raise InputError(Problem(where="--criterion", what=what, remedy=remedy))
    mechanism = load_machine(machine, side)
    mechanism = driven_at(mechanism, drive) if drive else mechanism
    model = announced(Model(mechanism), within_limits)
    functions = model.motion(space)
    port = functions.ports.position
    task = ExcitationTask(
        space=space,
        output=output,
        harmonics=harmonics,
        period=period,
        limits=ExcitationLimits(
            stroke=_per_channel(port, "--stroke", stroke),
            speed=_per_channel(port, "--speed", speed),
            acceleration=_per_channel(port, "--acceleration", acceleration),
            force=force,
            singularity=singularity,
            clearance=clearance,
        ),
        held=_named(port, "--hold", hold),
        center=_named(port, "--center", center),
        rests=not moving,
        first=tuple(first or ()),
    )
    options = ExcitationOptions(
        random=random,
        starts=starts,
        polished=polish,
        processes=processes,
        solver=SolverOptions(seconds=seconds),
    )
    with Progress(transient=True, disable=as_json) as progress:
        bars: dict[str, int] = {}

        def report(phase: str, done: float, total: float) -> None:
            if phase not in bars:
                bars[phase] = progress.add_task(phase, total=total)
            progress.update(bars[phase], completed=done)  # type: ignore[arg-type]

        found = optimised(
            mechanism,
            task,
            np.random.default_rng(seed),
            criterion=CRITERIA[criterion],
            before=[_motion(path, functions.ports.motion) for path in after or ()],
            options=options,
            progress=report,
        )
    if out is not None:
        _write(out, functions.ports.motion, found, frequency)
    if figure is not None:
        from tauloop.report import save_figure
        from tauloop.report.excitation_figure import excitation_figure

        save_figure(excitation_figure(found, title=f"Excitation of {mechanism.name}"), figure)
    if as_json:
        print_json(found.as_dict() | {"seed": seed, "stated_elsewhere": beside})
    else:
        _print(found, seed, beside)
        for path in (out, figure):
            if path is not None:
                console().print(f"written: {path}")
    if found.status is not Status.OK:
        raise typer.Exit(FAILED)


def _per_channel(port: Port, where: str, text: str | None) -> PerChannel:
    if text is None:
        return {}
    try:
        return float(text)
    except ValueError:
        return _named(port, where, text)


def _named(port: Port, where: str, text: str | None) -> dict[str, float]:
    values = assigned(port, where, text, np.full(port.size, np.inf))
    return {name: float(value) for name, value in zip(port.columns, values, strict=True) if np.isfinite(value)}


def _motion(path: Path, ports: dict[str, Port]) -> SampledMotion:
    log = read_log(path)
    wanted = {kind: dict(zip(port.columns, port.units, strict=True)) for kind, port in ports.items()}
    InputError.raise_if_any(channel_problems(log, wanted, str(path)))
    return SampledMotion(
        time=log[TIME].to_numpy(), **{kind: samples(log, kind, tuple(columns)) for kind, columns in wanted.items()}
    )


def _write(out: Path, ports: dict[str, Port], found: Excitation, frequency: float) -> None:
    motion = found.sample(frequency)
    signals = [
        Channel(quantity=kind, channel=column, values=getattr(motion, kind)[:, i], unit=unit)
        for kind, port in ports.items()
        for i, (column, unit) in enumerate(zip(port.columns, port.units, strict=True))
    ]
    write_log(out, build_log(motion.time, signals))


def _print(found: Excitation, seed: int, beside: float | None) -> None:
    screen = console()
    names, units = found.outputs
    series = found.series
    screen.print(f"Excitation of {found.machine}", style="bold")
    screen.print(
        f"{series.harmonics} harmonics, period {series.period:g} s, in {', '.join(found.channels)}; regressor rows: "
        + ", ".join(f"{name} [{unit}]" for name, unit in zip(names, units, strict=True))
    )
    rows = table("Condition number", "columns", "this motion", "best random", "median random", numeric=(1, 2, 3))
    random = found.random
    given = (
        ("SI units", found.conditions.si, random.best_si, random.median_si),
        ("unit norm", found.conditions.unit_norm, random.best_unit_norm, random.median_unit_norm),
    )
    for name, *values in given:
        rows.add_row(name, *(f"{value:.4g}" for value in values))
    screen.print(rows)
    screen.print(
        f"random: {random.kept} of {random.tried} series keep all limits (seed {seed}); "
        f"log det / 2r = {found.conditions.log_determinant:.4g}"
    )
    if beside is not None:
        screen.print(
            f"stated elsewhere: {beside:g}; not comparable unless columns, units, output and limits are the same: the "
            "condition number depends on all of them"
        )
    rows = table(f"{found.base.rank} base parameters", "base parameter", "unit")
    for parameter in found.base.base:
        rows.add_row(parameter.short_name(70), parameter.unit)
    screen.print(rows)
    rows = table("Limits", "quantity", "least", "greatest", "lower", "upper", "unit", numeric=(1, 2, 3, 4))
    for limit in found.limits:
        rows.add_row(limit.name, *_numbers(limit), limit.unit)
    screen.print(rows)
    if found.starts:
        rows = table("Starts (criterion)", "before", "after", "iterations", "solver", numeric=(0, 1, 2))
        for start in (*found.starts, *found.polished):
            polished = "polished: " if start in found.polished else ""
            reached = (f"{value:.4g}" if np.isfinite(value) else "-" for value in (start.started, start.reached))
            rows.add_row(*reached, str(start.iterations), polished + start.status)
        screen.print(rows)
    for evidence in found.evidence:
        screen.print(f"{'' if evidence.is_good else 'doubtful: '}{evidence}", style=None if evidence.is_good else "red")


def _numbers(limit: LimitUse) -> list[str]:
    values = (limit.least, limit.greatest, limit.lower, limit.upper)
    return ["-" if value is None else f"{value:.5g}" for value in values]
