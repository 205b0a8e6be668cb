"""``tauloop drive``: a step of a drive line: criteria, limit cycle, figure."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated

import typer

from tauloop.cli.output import FAILED, JsonOption, console, figure_ending, print_json, reports_errors, table, writes
from tauloop.drives import LINE_INTEGRATOR, Axis, DriveLine, Outcome, Record, load_drive, record_axis
from tauloop.drives.axis.limit_cycle import LimitCycle, measure, predict
from tauloop.errors import InputError, Problem
from tauloop.integrate.integrators import Integrator
from tauloop.report import save_figure
from tauloop.report.drive_figure import drive_figure

#: Samples per second of a record.
RATE = 400
UNITS = {
    "rise_time": "s",
    "overshoot": "m, rad",
    "settling_time": "s",
    "energy": "(N m)^2 s, N^2 s",
    "final_error": "m, rad",
    "swing": "m, rad",
}


@reports_errors
@writes(figure=figure_ending)
def drive(
    line: Annotated[str, typer.Argument(help="A shipped drive line (dual_motor_axis, ...), or a drive-line file.")],
    step: Annotated[float, typer.Option(help="Step of the reference, m or rad.")] = 0.1,
    duration: Annotated[float, typer.Option(help="Seconds.")] = 10.0,
    set_: Annotated[
        str | None, typer.Option("--set", help="Other parameters, such as 'gap=0.001,kp=250' (SI).")
    ] = None,
    load: Annotated[float, typer.Option(help="Force on the judged body, N or N m.")] = 0.0,
    load_time: Annotated[float, typer.Option(help="When the force sets in, s.")] = 0.0,
    beside: Annotated[
        str | None, typer.Option(help="A second drive line, for the figure: the same step beside the first.")
    ] = None,
    cycle: Annotated[
        bool, typer.Option("--cycle", help="Measure the limit cycle, beside what the describing function predicts.")
    ] = False,
    rtol: Annotated[float, typer.Option(help="Relative error of an integration step.")] = 1e-7,
    figure: Annotated[Path | None, typer.Option(help="Draw it into this file (PNG, PDF, SVG).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Simulate a step of a drive line with its control, and judge it.

    Exit code 1 when the run diverges or is given up.
    """
    if beside is not None and figure is None:
        what = "given without --figure, the only thing that it changes"
        raise InputError(Problem(where="--beside", what=what, remedy="name a figure, or leave it out"))
    first = load_drive(line)
    given = assigned_values(set_)
    options = replace(LINE_INTEGRATOR, rtol=rtol, atol=1e-2 * rtol)
    record = _run(first, given, step, duration, load, load_time, options)
    criteria = {item.name: getattr(record.criteria, item.name)[0] for item in fields(record.criteria)}
    outcome = Outcome(int(criteria["outcome"]))
    cycles = _cycles(first, given, record) if cycle else None
    if figure is not None:
        records = {first.name: record}
        if beside is not None:
            second = load_drive(beside)
            records[second.name] = _run(second, {}, step, duration, load, load_time, options)
        title = f"Step of {step:g} of {' and '.join(records)}"
        save_figure(drive_figure(records, first.performance.of, title=title), figure)
    if as_json:
        document = {"name": first.name, "step": step, "duration": duration, "parameters": given}
        document |= {"criteria": criteria | {"outcome": outcome.name.lower()}}
        print_json(document | ({"limit_cycle": cycles} if cycles is not None else {}))
    else:
        _print(first, record, outcome, cycles, figure)
    if outcome is not Outcome.OK:
        raise typer.Exit(FAILED)


def _run(
    line: DriveLine,
    given: dict[str, float],
    step: float,
    duration: float,
    load: float,
    load_time: float,
    options: Integrator,
) -> Record:
    samples = int(min(max(RATE * duration, 2), 1_000_000)) + 1 if duration > 0 else 2
    return record_axis(
        Axis(line),
        given,
        step=step,
        duration=duration,
        load=load,
        load_time=load_time,
        samples=samples,
        integrator=options,
    )


def assigned_values(text: str | None) -> dict[str, float]:
    """Numbers by name from ``a=1,b=2``; the names are checked where they are known."""
    found, problems = {}, []
    for part in (text or "").split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not part.strip():
            continue
        try:
            found[name] = float(value)
        except ValueError:
            what = f"{value!r} is not a number" if equals else f"{part.strip()!r} assigns nothing"
            problems.append(Problem(where=f"--set {name}", what=what, remedy="write NAME=NUMBER, in SI units"))
    InputError.raise_if_any(problems)
    return found


def _cycles(line: DriveLine, given: dict[str, float], record: Record) -> dict[str, object]:
    return {
        "simulated": _as_dict(measure(record, line.performance.of)) if not record.criteria.failed[0] else None,
        "describing_function": [_as_dict(one) for one in predict(line, given)],
    }


def _as_dict(cycle: LimitCycle | None) -> dict[str, float] | None:
    return None if cycle is None else {"frequency": cycle.frequency, "amplitude": cycle.amplitude}


def _print(
    line: DriveLine, record: Record, outcome: Outcome, cycles: dict[str, object] | None, figure: Path | None
) -> None:
    screen = console()
    criteria = record.criteria
    shown = table(
        f"{line.name}: step of {record.reference - record.before:g}", "criterion", "value", "unit", numeric=(1,)
    )
    if outcome is Outcome.OK:
        for name, unit in UNITS.items():
            shown.add_row(name.replace("_", " "), f"{getattr(criteria, name)[0]:.6g}", unit)
        screen.print(shown)
        if not criteria.settled[0]:
            screen.print("not settled: outside the band at the end; settling time is the duration")
    else:
        screen.print(f"{line.name}: {outcome.name.lower().replace('_', ' ')} at {criteria.end[0]:.4g} s")
    screen.print(f"{criteria.steps[0]} steps, {criteria.events[0]} events")
    if cycles is not None:
        found = table("Limit cycle", "route", "frequency [Hz]", "amplitude [m, rad]", numeric=(1, 2))
        rows = [("simulated", cycles["simulated"])]
        rows += [("describing function", one) for one in cycles["describing_function"]]  # type: ignore[attr-defined]
        for name, one in rows:
            pair = (f"{one['frequency']:.4g}", f"{one['amplitude']:.4g}") if isinstance(one, dict) else ("none", "")
            found.add_row(name, *pair)
        if len(rows) == 1:
            found.add_row("describing function", "none", "")
        screen.print(found)
    if figure is not None:
        screen.print(f"written: {figure}")
