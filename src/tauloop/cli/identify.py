"""``tauloop identify``: dynamic parameters of a machine from a measured log."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
import xarray as xr
from rich.console import Console
from threadpoolctl import threadpool_limits

from tauloop.cli.machine import MachineArgument, SideOption, load_machine
from tauloop.cli.output import FAILED, JsonOption, console, print_json, reports_errors, table
from tauloop.errors import InputError, Problem
from tauloop.functions import Model
from tauloop.identify import (
    AutocorrelatedErrors,
    ConsistentIdentification,
    ErrorModel,
    Estimator,
    FilteredErrors,
    Identification,
    IndependentErrors,
    IterativelyReweightedLeastSquares,
    OrdinaryLeastSquares,
    RegressionData,
    WeightedLeastSquares,
    cones,
    decimation_correlation,
    fit,
    fit_consistent,
    split,
)
from tauloop.identify.faults import clipped, delays, wrong_signs
from tauloop.identify.from_log import OUTPUTS, leaf_ties, regression_data
from tauloop.identify.write_back import identified_mechanism
from tauloop.logs import Preparation, load_recording, read_log
from tauloop.mechanism.formats.yaml_writer import write_yaml
from tauloop.report import fit_table, identification_figure, identification_table, save_figure
from tauloop.result import Status, write_json

ESTIMATORS: dict[str, Estimator] = {
    "ols": OrdinaryLeastSquares(),
    "wls": WeightedLeastSquares(),
    "irls": IterativelyReweightedLeastSquares(),
}
PARAMETERS = ("standard", "file")
#: Samples after decimation, to either side, within which delays of the forces are looked for.
LARGEST_DELAY = 10
ERRORS = ("independent", "autocorrelated", "decimated")


@reports_errors
def identify(
    machine: MachineArgument,
    log: Annotated[
        Path,
        typer.Argument(
            help="Recording: a CSV or Parquet with columns time, position.NAME, force.NAME, or a YAML that "
            "describes files and columns."
        ),
    ],
    side: SideOption = None,
    data: Annotated[Path | None, typer.Option("--data", help="Folder of the data files that the YAML names.")] = None,
    validation: Annotated[
        Path | None, typer.Option("--validation", help="A second recording to judge by, instead of --hold-out.")
    ] = None,
    hold_out: Annotated[
        float,
        typer.Option("--hold-out", min=0.0, max=0.9, help="Share at the end of the log that is judged, not fitted."),
    ] = 0.3,
    parameters: Annotated[
        str, typer.Option(help="standard: each body's own ten; file: the named leaf parameters of the machine file.")
    ] = "standard",
    output: Annotated[
        str, typer.Option(help="Forces fitted: actuators, or joints (behind the transmission).")
    ] = "actuators",
    estimator: Annotated[
        str, typer.Option(help="ols, wls (weights per actuator from the residuals), or irls (Huber, against outliers).")
    ] = "wls",
    errors: Annotated[
        str,
        typer.Option(
            help="Standard deviations for errors that are independent, autocorrelated (as the residuals show), or "
            "decimated (white before the decimation)."
        ),
    ] = "independent",
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
    """Identify base parameters from a log, and judge them on data that were not fitted.

    Exit code 1 when the result is doubtful; it says why.
    """
    _check_options(estimator=estimator, parameters=parameters, output=output, errors=errors)
    if write is not None and not consistent:
        what = "an identified machine needs all its parameters, and base parameters are fewer"
        raise InputError(Problem(where="--write", what=what, remedy="add --consistent"))
    # the matrices are small: threads of linear algebra would wait for each other longer than they work
    threadpool_limits(limits=1, user_api="blas")
    model = Model(load_machine(machine, side))
    options = {"cutoff": cutoff, "order": order, "trim": trim, "decimation": decimation}
    training, findings = _regression(model, log, data, options, output, parameters)
    error_model = _error_model(errors, decimation, log, data)
    everything: Identification | None = None
    if validation is not None:
        held_out, more = _regression(model, validation, data, options, output, parameters)
        findings += more
    elif hold_out == 0.0:
        what = "a model that is judged only on data it was fitted to is not judged"
        raise InputError(Problem(where="--hold-out", what=what, remedy="hold out a share, such as 0.3"))
    else:
        everything = fit(training, None, ESTIMATORS[estimator], errors=error_model)
        training, held_out = split(training, 1.0 - hold_out)
    result = fit(training, held_out, ESTIMATORS[estimator], errors=error_model)
    findings += wrong_signs(training, _dissipative(training)) + _late(training)
    document = result.as_dict() | {"findings": [problem.as_dict() for problem in findings]}
    document |= {"whole_log": everything.as_dict()} if everything is not None else {}
    physical = fit_consistent(training, held_out, cones(model.parameters), model.pi) if consistent else None
    if physical is not None:
        document["consistent"] = physical.as_dict()
        if write is not None:
            write_yaml(identified_mechanism(model, physical.parameters, source=f"identified from {log.name}"), write)
    if json_file is not None:
        write_json(json_file, document)
    if figure is not None:
        title = f"{model.mechanism.name}: {log.name}"
        save_figure(identification_figure(result, training, held_out, title=title), figure)
    if as_json:
        print_json(document)
    else:
        screen = console()
        if everything is not None:
            screen.print("Fitted to the whole log", style="bold")
            screen.print(fit_table(everything))
            screen.print(f"Fitted to the first {100 * (1 - hold_out):.0f} %, judged on the rest", style="bold")
        screen.print(identification_table(result))
        if physical is not None:
            _print_consistent(screen, physical)
        for problem in findings:
            screen.print(str(problem), style="yellow")
        for path in (json_file, figure, write):
            if path is not None:
                screen.print(f"written: {path}")
    if result.status is not Status.OK or (physical is not None and physical.status is not Status.OK):
        raise typer.Exit(FAILED)


def _check_options(**chosen: str) -> None:
    known = {"estimator": tuple(ESTIMATORS), "parameters": PARAMETERS, "output": OUTPUTS, "errors": ERRORS}
    problems = [
        Problem(where=f"--{name}", what=f"{value!r} is unknown", remedy=" or ".join(known[name]))
        for name, value in chosen.items()
        if value not in known[name]
    ]
    if problems:
        raise InputError(problems)


def _regression(
    model: Model, path: Path, folder: Path | None, options: dict[str, float | int | None], output: str, parameters: str
) -> tuple[RegressionData, tuple[Problem, ...]]:
    """Regression data of a recording, and what is suspicious of its forces."""
    log, preparation = _recording(path, folder)
    chosen = {key: value for key, value in options.items() if value is not None}
    ties = leaf_ties(model) if parameters == "file" else None
    data = regression_data(model, log, replace(preparation, **chosen), output=output, ties=ties)  # type: ignore[arg-type]
    return data, clipped(log)


def _error_model(name: str, decimation: int | None, path: Path, folder: Path | None) -> ErrorModel:
    if name == "autocorrelated":
        return AutocorrelatedErrors()
    if name == "independent":
        return IndependentErrors()
    factor = _recording(path, folder)[1].decimation if decimation is None else decimation
    return FilteredErrors(correlation=decimation_correlation(factor))


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


def _recording(path: Path, folder: Path | None) -> tuple[xr.Dataset, Preparation]:
    if path.suffix.lower() in (".yaml", ".yml"):
        recording = load_recording(path, folder)
        log = read_log(*recording.files, sample_rate=recording.sample_rate)
        return log, recording.preparation or Preparation(cutoff=None)
    return read_log(path), Preparation(cutoff=None)
