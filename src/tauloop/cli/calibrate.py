"""``tauloop calibrate``: the geometry that a machine really has, from measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress
from threadpoolctl import threadpool_limits

from tauloop.assembly.limits import require_within_limits
from tauloop.calibration import (
    Bounds,
    CalibrationProblem,
    Cauchy,
    ExchangeSearch,
    FitOptions,
    ForwardKinematics,
    Huber,
    LoopEquations,
    Loss,
    Squares,
    Tolerances,
    aligned,
    bootstrap,
    calibration_problem,
    compare,
    fit,
    indistinguishable_swaps,
    leave_one_out,
)
from tauloop.calibration.measurements.quantities import bounds_of, quantity
from tauloop.calibration.measurements.reading import KINDS, MeasurementFile, read_measurements
from tauloop.calibration.problem.residuals import ResidualKind
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
    writes,
)
from tauloop.errors import InputError, Problem, Problems
from tauloop.formats.yaml_writer import write_yaml
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.units import ANGLE, LENGTH
from tauloop.model import Model
from tauloop.report.calibration_figure import calibration_figure
from tauloop.report.calibration_table import calibration_table, comparison_table, shown
from tauloop.report.figures import save_figure
from tauloop.result import Status, write_json

LOSSES: dict[str, Loss] = {"squares": Squares(), "huber": Huber(), "cauchy": Cauchy()}
RESIDUALS: dict[str, ResidualKind] = {"forward-kinematics": ForwardKinematics(), "loops": LoopEquations()}


@reports_errors
@writes(out=any_ending, json_file=any_ending, figure=figure_ending)
def calibrate(
    machine: MachineArgument,
    measurements: Annotated[
        Path,
        typer.Argument(
            help="A table with columns encoder.ACTUATOR [unit] and measured.COLUMN [unit], or a YAML that describes "
            "files, columns, instruments and noise (docs/calibration.md)."
        ),
    ],
    side: SideOption = None,
    measure: Annotated[str, typer.Option(help=f"What a bare table holds: {', '.join(KINDS)}.")] = "position",
    noise: Annotated[str | None, typer.Option(help="Standard deviation of a bare table, such as '0.02 mm'.")] = None,
    data: Annotated[Path | None, typer.Option("--data", help="Folder of the files that the YAML names.")] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--parameters",
            "-p",
            help="Unknowns: names or patterns, separated by commas; NAME=PATTERN ties all that match.",
        ),
    ] = None,
    prior: Annotated[
        list[str] | None,
        typer.Option(
            "--prior",
            help="Patterns of unknowns whose tolerance is a prior; '*': all. The data tell whether it is too tight.",
        ),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            "--bounds",
            help="Least and largest value of unknowns, such as 'track1.length=1.2 m:1.3 m' or 'tower*.angle=:1 deg'; "
            "separated by commas or given again.",
        ),
    ] = None,
    residuals: Annotated[str, typer.Option(help=f"{' or '.join(RESIDUALS)}.")] = "forward-kinematics",
    loss: Annotated[str, typer.Option(help=f"{', '.join(LOSSES)}.")] = "squares",
    leave_out_weak: Annotated[
        bool, typer.Option("--leave-out-weak", help="Also leave out unknowns told less well than their tolerance.")
    ] = False,
    align: Annotated[
        bool, typer.Option("--align", help="Start from the instrument frame that fits the nominal machine best.")
    ] = False,
    against: Annotated[
        list[str] | None,
        typer.Option("--against", help="Another set of unknowns, as --parameters, to compare with on unseen poses."),
    ] = None,
    draws: Annotated[int, typer.Option(min=2, help="Random draws of 5 folds for --against.")] = 30,
    replicates: Annotated[int, typer.Option("--bootstrap", min=0, help="Bootstrap replicates; none for 0.")] = 0,
    exchanges: Annotated[
        float,
        typer.Option(min=0.0, help="Processor time for the search for exchanged encoder columns, s; none for 0."),
    ] = ExchangeSearch().seconds,
    cross_validate: Annotated[
        bool, typer.Option("--leave-one-out", help="Judge every pose by a fit without it.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of random draws.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", help="Write the calibrated machine to this YAML file.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json-file", help="Write the whole result to this file.")] = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="Write errors and corrections to this PNG.")] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Calibrate a machine's geometry, with error bars, and say what the data cannot tell.

    Exit code 1 when the result is doubtful; it says why.
    """
    _check_choices(loss=loss, residuals=residuals)
    # the matrices are small: threads of linear algebra would wait for each other longer than they work
    threadpool_limits(limits=1, user_api="blas")
    mechanism = load_machine(machine, side)
    announced(Model(mechanism))
    found = read_measurements(measurements, mechanism, kind=measure, noise=_noise(noise, measure), folder=data)
    if align:
        found = replace(found, series=tuple(aligned(mechanism, series) for series in found.series))
    names = _listed(parameters) or found.parameters
    if not names:
        remedy = "name them: --parameters 'track*.length,track*.offset_?'"
        raise InputError(Problem(where="--parameters", what="no unknowns are named", remedy=remedy))
    tolerances = found.tolerances or Tolerances()
    if prior:
        tolerances = replace(tolerances, priors=_listed(prior))
    found = replace(found, bounds=found.bounds | _bounds(bounds))
    problem = _problem(mechanism, found, names, tolerances, RESIDUALS[residuals])
    rng = np.random.default_rng(seed)
    options = FitOptions(loss=LOSSES[loss], leave_out_weak=leave_out_weak, exchanges=ExchangeSearch(seconds=exchanges))
    result = fit(problem, rng, options=options)
    if within_limits:
        require_within_limits(result.evidence)
    document = result.as_dict()
    swaps = indistinguishable_swaps(result.problem, result.solution, options.exchanges)
    document["indistinguishable_swaps"] = [list(pair) for pair in swaps.pairs]
    document["exchanges"] = {"tried": swaps.tried, "of": swaps.of, "seconds": exchanges}
    screen = console()
    lines: list[str] = []
    if swaps.tried < swaps.of and exchanges > 0:
        lines.append(f"{swaps.tried} of {swaps.of} pairs of encoders were tried for exchange in {exchanges:g} s")
    for a, b in swaps.pairs:
        lines.append(f"a swap of the encoders of {a} and {b} cannot be seen in these data: check the wiring by hand")
    if cross_validate:
        with _progress("leave-one-out", as_json) as tick:
            judged = leave_one_out(result.problem.predicting(), result.solution, tick)
        value, unit = shown(judged.rms, _unit(problem))
        document["leave_one_out"] = {"rms": judged.rms, "errors": judged.errors.tolist()}
        lines.append(f"leave-one-out: {value:.4g} {unit} RMS")
    if replicates:
        with _progress("bootstrap", as_json) as tick:
            drawn = bootstrap(result.problem, result.solution, rng, replicates=replicates, progress=tick)
        document["bootstrap"] = {
            "replicates": replicates,
            "standard_deviations": dict(zip(drawn.names, drawn.standard_deviations.tolist(), strict=True)),
            "intervals_95": dict(zip(drawn.names, drawn.intervals.tolist(), strict=True)),
        }
        ratio = drawn.standard_deviations / np.array([estimate.deviation for estimate in result.estimates])
        lines.append(
            f"bootstrap of {replicates}: standard deviations {ratio.min():.2f} to {ratio.max():.2f} times those above"
        )
    comparison = None
    if against:
        # errors of all sets are judged at the same poses, each set's identifiable part
        other = _problem(mechanism, found, _listed(against), tolerances, RESIDUALS[residuals])
        smaller = fit(other, rng, options=options)
        sets = {
            "--parameters": result.problem.predicting(),
            "--against": smaller.problem.predicting(),
        }
        with _progress("comparing", as_json) as tick:
            comparison = compare(sets, rng, draws=draws, progress=tick)
        document["comparison"] = {
            "recommended": comparison.recommended,
            "reason": comparison.reason,
            "draws": draws,
            "models": [
                {
                    "name": model.name,
                    "unknowns": model.unknowns,
                    "leave_one_out_rms": model.leave_one_out.rms,
                    "fold_rms": model.fold_errors.tolist(),
                }
                for model in comparison.models
            ],
            "differences": comparison.differences,
        }
    if out is not None:
        write_yaml(result.mechanism, out)
    if json_file is not None:
        write_json(json_file, document)
    if figure is not None:
        save_figure(calibration_figure(result, title=f"{mechanism.name}: {measurements.name}"), figure)
    if as_json:
        print_json(document)
    else:
        screen.print(calibration_table(result))
        for line in lines:
            screen.print(line)
        if comparison is not None:
            screen.print(comparison_table(comparison, _unit(problem)))
        for path in (out, json_file, figure):
            if path is not None:
                screen.print(f"written: {path}")
    if result.status is not Status.OK:
        raise typer.Exit(FAILED)


def _problem(
    mechanism: Mechanism,
    found: MeasurementFile,
    names: tuple[str, ...],
    tolerances: Tolerances,
    residuals: ResidualKind,
) -> CalibrationProblem:
    return calibration_problem(
        mechanism,
        found.series,
        names,
        residuals=residuals,
        tolerances=tolerances,
        encoder_noise=found.encoder_noise,
        bounds=found.bounds,
    )


def _bounds(texts: list[str] | None) -> dict[str, Bounds]:
    found: dict[str, Bounds] = {}
    problems = Problems()
    for part in _listed(texts):
        name, _, limits = part.rpartition("=")
        try:
            found[name.strip()] = bounds_of(limits, ":")
        except ValueError as error:
            problems.add("--bounds", str(error), "such as 'track1.length=1.2 m:1.3 m'")
            continue
        if not name.strip():
            problems.add("--bounds", f"{part!r} names no unknown", "write NAME=LOW:HIGH, with units")
    InputError.raise_if_any(problems)
    return found


def _unit(problem: CalibrationProblem) -> str:
    """The unit of all errors; none where they are of several."""
    units = {unit for series in problem.series for _, unit in series.instrument.errors}
    return units.pop() if len(units) == 1 else "SI"


def _listed(texts: list[str] | None) -> tuple[str, ...]:
    return tuple(part.strip() for text in texts or () for part in text.split(",") if part.strip())


def _noise(text: str | None, measure: str) -> float | None:
    if text is None:
        return None
    try:
        return quantity(text, ANGLE if measure in ("orientation", "inclinometer") else LENGTH)
    except ValueError as error:
        raise InputError(Problem(where="--noise", what=str(error), remedy="such as '0.02 mm'")) from None


def _check_choices(**chosen: str) -> None:
    known = {"loss": tuple(LOSSES), "residuals": tuple(RESIDUALS)}
    InputError.raise_if_any(
        Problem(where=f"--{name}", what=f"{value!r} is unknown", remedy=" or ".join(known[name]))
        for name, value in chosen.items()
        if value not in known[name]
    )


@contextmanager
def _progress(what: str, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, which is gone when the work is done."""
    with Progress(console=Console(stderr=True), transient=True, disable=quiet) as bar:
        task = bar.add_task(what)
        yield lambda done, total: bar.update(task, completed=done, total=total)
