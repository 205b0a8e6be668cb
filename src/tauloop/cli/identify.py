"""``tauloop identify``: dynamic parameters of a machine from a measured log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from threadpoolctl import threadpool_limits

from tauloop.cli.identify_logs import (
    MeasuredLog,
    Periodicity,
    averaged,
    force_noise,
    measured_logs,
    of_log,
    one_decimation,
    period_table,
    periodic,
    periodicity,
    periods,
    prepared,
    recording,
)
from tauloop.cli.machine import MachineArgument, SideOption, load_machine
from tauloop.cli.output import FAILED, JsonOption, console, print_json, reports_errors, table
from tauloop.errors import InputError, Problem
from tauloop.functions import Compiled, Model
from tauloop.identify import (
    AutocorrelatedErrors,
    ConsistentIdentification,
    ErrorModel,
    Estimator,
    FilteredErrors,
    FilterScan,
    Identification,
    IndependentErrors,
    InstrumentalVariables,
    IterativelyReweightedLeastSquares,
    KnownNoise,
    OrdinaryLeastSquares,
    RegressionData,
    TotalLeastSquares,
    WeightedLeastSquares,
    cones,
    decimation_correlation,
    essential_parameters,
    fit,
    fit_consistent,
    merge,
    scan_filters,
    split_each,
)
from tauloop.identify.faults import clipped, delays, wrong_signs
from tauloop.identify.from_log import OUTPUTS, leaf_ties, motion_regressor
from tauloop.identify.periods import PeriodAverage
from tauloop.identify.unexcited import unexcited
from tauloop.identify.write_back import identified_mechanism
from tauloop.mechanism.formats.yaml_writer import write_yaml
from tauloop.report import fit_table, identification_figure, identification_table, save_figure
from tauloop.report.essential_table import essential_table
from tauloop.report.filter_scan_table import filter_scan_table
from tauloop.result import Status, plain, write_json

ESTIMATORS = ("ols", "wls", "irls", "tls", "iv")
PARAMETERS = ("standard", "file")
#: Samples from which on the regressor is compiled: it takes seconds, but once for a machine whose logs are identified
#: again and again.
WORTH_COMPILING = 5_000
#: Samples after decimation, to either side, within which delays of the forces are looked for.
LARGEST_DELAY = 10
ERRORS = ("independent", "autocorrelated", "decimated")


@reports_errors
def identify(
    machine: MachineArgument,
    log: Annotated[
        list[Path],
        typer.Argument(
            help="Recordings, one or several: a CSV or Parquet with columns time, position.NAME, force.NAME, or a YAML "
            "that describes files and columns, and says how this one is prepared."
        ),
    ],
    side: SideOption = None,
    data: Annotated[Path | None, typer.Option("--data", help="Folder of the data files that the YAML names.")] = None,
    validation: Annotated[
        Path | None, typer.Option("--validation", help="Another recording to judge by, instead of --hold-out.")
    ] = None,
    hold_out: Annotated[
        float,
        typer.Option("--hold-out", min=0.0, max=0.9, help="Share at the end of each log that is judged, not fitted."),
    ] = 0.3,
    parameters: Annotated[
        str, typer.Option(help="standard: each body's own ten; file: the named leaf parameters of the machine file.")
    ] = "standard",
    output: Annotated[
        str, typer.Option(help="Forces fitted: actuators, or joints (behind the transmission).")
    ] = "actuators",
    estimator: Annotated[
        str,
        typer.Option(
            help="ols, wls (weights per actuator from the residuals), irls (Huber, against outliers), tls (errors of "
            "the regressor, --column-error) or iv (instruments of the --commanded motion)."
        ),
    ] = "wls",
    column_error: Annotated[
        float, typer.Option("--column-error", help="With tls: error of the regressor's columns, as a share of them.")
    ] = 0.01,
    commanded: Annotated[
        list[Path] | None,
        typer.Option(
            "--commanded",
            help="With iv: recording of the commanded positions, sample by sample as the log; one for each log.",
        ),
    ] = None,
    errors: Annotated[
        str,
        typer.Option(
            help="Standard deviations for errors that are independent, autocorrelated (as the residuals show), or "
            "decimated (white before the decimation)."
        ),
    ] = "autocorrelated",
    scan_cutoffs: Annotated[
        str | None,
        typer.Option(
            "--scan-cutoffs",
            help="Cut-offs to try, Hz, such as 20,50,100: what each gives, how far parameters move, and the choice.",
        ),
    ] = None,
    scan_orders: Annotated[str, typer.Option("--scan-orders", help="Orders to try with them.")] = "1,2,4",
    scan_standstills: Annotated[
        str | None,
        typer.Option("--scan-standstills", help="Values of --standstill to try with them, such as 1e-6,1e-3."),
    ] = None,
    period: Annotated[
        float | None,
        typer.Option(
            "--period",
            help="The motion repeats, s: average over its periods, weight forces by the noise that they show, and "
            "differentiate by Fourier series instead of a filter; needs --highest.",
        ),
    ] = None,
    highest: Annotated[
        float | None, typer.Option("--highest", help="With --period: highest frequency of the motion, Hz.")
    ] = None,
    essential: Annotated[
        float | None,
        typer.Option(
            "--essential",
            help="Leave out base parameters step by step until all are known to this share of their size, such as 0.3.",
        ),
    ] = None,
    consistent: Annotated[
        bool,
        typer.Option(
            "--consistent", help="Also fit all standard parameters inside physical limits, near the machine file's."
        ),
    ] = False,
    write: Annotated[
        Path | None,
        typer.Option("--write", help="With --consistent: write the identified machine to this YAML file."),
    ] = None,
    cutoff: Annotated[float | None, typer.Option(help="Zero-phase low-pass of the positions, Hz.")] = None,
    order: Annotated[int | None, typer.Option(help="Order of that Butterworth filter.")] = None,
    standstill: Annotated[
        float | None, typer.Option(help="Share of an actuator's largest speed below which it counts as at rest.")
    ] = None,
    trim: Annotated[int | None, typer.Option(help="Samples cut off at each end.")] = None,
    decimation: Annotated[int | None, typer.Option(help="Keep every n-th sample after a zero-phase filter.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json-file", help="Write the whole result to this JSON file.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Write measured, predicted and residual to this PNG.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Identify base parameters from logs, and judge them on data that were not fitted.

    Several logs are fitted together; of each the last part is held out. One that states no preparation is prepared as
    the first. Exit code 1 when the result is doubtful; it says why.
    """
    _check_options(commanded, len(log), estimator=estimator, parameters=parameters, output=output, errors=errors)
    if write is not None and not consistent:
        what = "an identified machine needs all its parameters, and base parameters are fewer"
        raise InputError(Problem(where="--write", what=what, remedy="add --consistent"))
    if hold_out == 0.0 and validation is None:
        what = "a model that is judged only on data it was fitted to is not judged"
        raise InputError(Problem(where="--hold-out", what=what, remedy="hold out a share, such as 0.3"))
    if scan_standstills is not None and scan_cutoffs is None:
        raise InputError(Problem(where="--scan-standstills", what="is given alone", remedy="add --scan-cutoffs"))
    # the matrices are small: threads of linear algebra would wait for each other longer than they work
    threadpool_limits(limits=1, user_api="blas")
    model = Model(load_machine(machine, side), evaluator=Compiled(at_least=WORTH_COMPILING))
    options = {"cutoff": cutoff, "order": order, "standstill": standstill, "trim": trim, "decimation": decimation}
    chosen = {key: value for key, value in options.items() if value is not None}
    repeats = periodicity(period, highest, output, estimator, scan_cutoffs, chosen)
    logs = measured_logs([*log, *([validation] if validation is not None else [])], data, chosen)
    ties = leaf_ties(model) if parameters == "file" else None
    error_model = _error_model(errors, logs, repeats)
    scan: FilterScan | None = None
    if scan_cutoffs is not None:
        scan = scan_filters(
            model,
            [one.log for one in logs[: len(log)]],
            [one.preparation for one in logs[: len(log)]],
            orders=[round(number) for number in _numbers("--scan-orders", scan_orders)],
            cutoffs=_numbers("--scan-cutoffs", scan_cutoffs),
            standstills=_numbers("--scan-standstills", scan_standstills) if scan_standstills is not None else (),
            estimator=_estimator(estimator, column_error, None) if estimator != "iv" else None,
            output=output,
            ties=ties,
            shares=(1.0 - (hold_out or 0.3), 0.7),
            errors=error_model,
        )
        best = scan.trials[scan.chosen]
        found = {"order": best.order, "cutoff": best.cutoff, "standstill": best.standstill}
        logs = [replace(one, preparation=replace(one.preparation, **found)) for one in logs]  # type: ignore[arg-type]
    averages: list[PeriodAverage] = []
    if repeats is None:
        parts = [prepared(one, model, output, ties) for one in logs]
    else:
        averages = [averaged(one, repeats) for one in logs]
        parts = [periodic(one, model, repeats, ties) for one in averages]
    findings = tuple(of_log(one, len(logs), problem) for one in logs for problem in clipped(one.log))
    instruments = [
        motion_regressor(model, recording(path, data)[0], one.preparation, output=output)
        for path, one in zip(commanded or (), logs, strict=False)
    ]
    noise = force_noise(averages[: len(log)], model) if averages and estimator == "wls" else None
    everything: Identification | None = None
    if validation is not None:
        fitted, held_out = parts[:-1], parts[-1]
    else:
        way = _estimator(estimator, column_error, instruments, noise)
        everything = fit(merge(parts), None, way, errors=error_model)
        fitted, judged = split_each(parts, 1.0 - hold_out)
        held_out = merge(judged)
        instruments = [rows[: len(part)] for rows, part in zip(instruments, fitted, strict=False)]
    training = merge(fitted)
    result = fit(training, held_out, _estimator(estimator, column_error, instruments, noise), errors=error_model)
    findings += wrong_signs(training, _dissipative(training))
    findings += tuple(
        of_log(one, len(log), problem) for one, part in zip(logs, fitted, strict=False) for problem in _late(part)
    )
    findings += unexcited(model, training, np.random.default_rng(0), output=output)
    document = result.as_dict() | {"findings": [problem.as_dict() for problem in findings]}
    document |= {"whole_log": everything.as_dict()} if everything is not None else {}
    document |= {"filter_scan": scan.as_dict()} if scan is not None else {}
    document |= {"periods": periods(logs, averages)} if averages else {}
    reduced = None
    if essential is not None:
        reduced = essential_parameters(result, training, held_out, largest_deviation=essential)
        document["essential"] = {"status": reduced.status, **plain(reduced)}
    physical = fit_consistent(training, held_out, cones(model.parameters), model.pi) if consistent else None
    if physical is not None:
        document["consistent"] = physical.as_dict()
        if write is not None:
            source = f"identified from {', '.join(path.name for path in log)}"
            write_yaml(identified_mechanism(model, physical.parameters, source=source), write)
    if json_file is not None:
        write_json(json_file, document)
    if figure is not None:
        title = f"{model.mechanism.name}: {', '.join(path.name for path in log)}"
        save_figure(identification_figure(result, training, held_out, title=title), figure)
    if as_json:
        print_json(document)
    else:
        screen = console()
        if scan is not None:
            screen.print(filter_scan_table(scan))
        if averages:
            screen.print(period_table(logs, averages))
        if everything is not None:
            screen.print("Fitted to the whole log" if len(log) == 1 else f"Fitted to all {len(log)} logs", style="bold")
            screen.print(fit_table(everything))
            each = "" if len(log) == 1 else " of each log"
            screen.print(f"Fitted to the first {100 * (1 - hold_out):.0f} %{each}, judged on the rest", style="bold")
        screen.print(identification_table(result))
        if reduced is not None:
            screen.print(essential_table(reduced))
        if physical is not None:
            _print_consistent(screen, physical)
        for problem in findings:
            screen.print(str(problem), style="yellow")
        for path in (json_file, figure, write):
            if path is not None:
                screen.print(f"written: {path}")
    if result.status is not Status.OK or (physical is not None and physical.status is not Status.OK):
        raise typer.Exit(FAILED)


def _check_options(commanded: list[Path] | None, logs: int, **chosen: str) -> None:
    known = {"estimator": ESTIMATORS, "parameters": PARAMETERS, "output": OUTPUTS, "errors": ERRORS}
    problems = [
        Problem(where=f"--{name}", what=f"{value!r} is unknown", remedy=" or ".join(known[name]))
        for name, value in chosen.items()
        if value not in known[name]
    ]
    if (chosen["estimator"] == "iv") != bool(commanded):
        what = "instruments come from the commanded motion: one is given without the other"
        problems.append(Problem(where="--commanded", what=what, remedy="give both --estimator iv and --commanded LOG"))
    elif commanded and len(commanded) != logs:
        what = f"is given {len(commanded)} times for {logs} logs"
        problems.append(Problem(where="--commanded", what=what, remedy="give one for each log, in their order"))
    if problems:
        raise InputError(problems)


def _estimator(
    name: str, column_error: float, instruments: Sequence[np.ndarray] | None, noise: np.ndarray | None = None
) -> Estimator:
    if name == "iv" and instruments:
        return InstrumentalVariables(instruments_of=np.concatenate(instruments))
    if noise is not None:
        return KnownNoise(noise=tuple(noise.tolist()))
    if name == "tls":
        return TotalLeastSquares(column_error=column_error)
    plainly = {"ols": OrdinaryLeastSquares(), "irls": IterativelyReweightedLeastSquares()}
    return plainly.get(name, WeightedLeastSquares())


def _numbers(option: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        what = f"{text!r} is no list of numbers"
        raise InputError(
            Problem(where=option, what=what, remedy="separate them by commas, such as 20,50,100")
        ) from None


def _error_model(name: str, logs: Sequence[MeasuredLog], repeats: Periodicity | None) -> ErrorModel:
    if name == "autocorrelated":
        return AutocorrelatedErrors()
    if name == "independent":
        return IndependentErrors()
    return FilteredErrors(correlation=decimation_correlation(one_decimation(logs) if repeats is None else 1))


def _dissipative(data: RegressionData) -> tuple[str, ...]:
    """Names of friction coefficients among the unknowns."""
    return tuple(name for name in data.unknowns if name.rsplit(".", 1)[-1] in ("viscous", "coulomb"))


def _late(data: RegressionData) -> tuple[Problem, ...]:
    """Outputs whose force is far from the motion in time, and fits clearly better there."""
    largest = min(LARGEST_DELAY, len(data) // 10)
    return tuple(
        Problem(
            where=f"force.{delay.output}",
            what=f"comes {delay.samples:.2g} samples (after decimation) behind the motion: shifted by that its own "
            f"residual falls from {delay.rmse_without:.3g} to {delay.rmse:.3g} (SI)",
            remedy="align the channels of the log",
        )
        for delay in (delays(data, largest) if largest else ())
        if abs(delay.samples) > 1.0 and delay.rmse < 0.8 * delay.rmse_without
    )


def _print_consistent(screen: Console, physical: ConsistentIdentification) -> None:
    """Masses, fit and evidence of the physically consistent parameters."""
    bodies = table("Physically consistent parameters", "body", "mass [kg]", "prior [kg]", "", numeric=(1, 2))
    singular = {body.element for body in physical.regularised}
    for cone in physical.cones:
        if cone.is_inertial:
            note = "prior was singular" if cone.element in singular else ""
            masses = (f"{cone.mass(values):.4g}" for values in (physical.parameters, physical.prior))
            bodies.add_row(cone.element, *masses, note)
    screen.print(bodies)
    fits = table("", "output", "held out %", "unconstrained %", numeric=(1, 2))
    for judged, free in zip(physical.held_out, physical.unconstrained.held_out, strict=True):
        fits.add_row(judged.output, f"{judged.rmse_percent:.2f}", f"{free.rmse_percent:.2f}")
    screen.print(fits)
    screen.print(
        f"weight of the prior {physical.weight:.3g}, chosen by validation; {len(physical.prior_directions)} directions "
        f"are the prior's alone; {len(physical.at_bound)} coefficients are zero at their bound"
    )
    for line in physical.advice:
        screen.print(line, style="yellow")
