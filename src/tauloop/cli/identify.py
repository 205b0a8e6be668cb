"""``tauloop identify``: dynamic parameters of a machine from a measured log."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
import xarray as xr
from threadpoolctl import threadpool_limits

from tauloop.cli.machine import MachineArgument, SideOption, load_machine
from tauloop.cli.output import FAILED, JsonOption, console, print_json, reports_errors
from tauloop.errors import InputError, Problem
from tauloop.functions import Model
from tauloop.identify import (
    Estimator,
    Identification,
    OrdinaryLeastSquares,
    RegressionData,
    WeightedLeastSquares,
    fit,
    split,
)
from tauloop.identify.from_log import OUTPUTS, leaf_ties, regression_data
from tauloop.logs import Preparation, load_recording, read_log
from tauloop.report import fit_table, identification_figure, identification_table, save_figure
from tauloop.result import Status, write_json

ESTIMATORS: dict[str, Estimator] = {"ols": OrdinaryLeastSquares(), "wls": WeightedLeastSquares()}
PARAMETERS = ("standard", "file")


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
    estimator: Annotated[str, typer.Option(help="ols or wls (weights per actuator from the residuals).")] = "wls",
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
    _check_options(estimator=estimator, parameters=parameters, output=output)
    # the matrices are small: threads of linear algebra would wait for each other longer than they work
    threadpool_limits(limits=1, user_api="blas")
    model = Model(load_machine(machine, side))
    options = {"cutoff": cutoff, "order": order, "trim": trim, "decimation": decimation}
    training = _regression(model, log, data, options, output, parameters)
    held_out: RegressionData | None = None
    everything: Identification | None = None
    if validation is not None:
        held_out = _regression(model, validation, data, options, output, parameters)
    elif hold_out > 0:
        everything = fit(training, None, ESTIMATORS[estimator])
        training, held_out = split(training, 1.0 - hold_out)
    result = fit(training, held_out, ESTIMATORS[estimator])
    document = result.as_dict() | ({"whole_log": everything.as_dict()} if everything is not None else {})
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
        for path in (json_file, figure):
            if path is not None:
                screen.print(f"written: {path}")
    if result.status is not Status.OK:
        raise typer.Exit(FAILED)


def _check_options(**chosen: str) -> None:
    known = {"estimator": tuple(ESTIMATORS), "parameters": PARAMETERS, "output": OUTPUTS}
    problems = [
        Problem(where=f"--{name}", what=f"{value!r} is unknown", remedy=" or ".join(known[name]))
        for name, value in chosen.items()
        if value not in known[name]
    ]
    if problems:
        raise InputError(problems)


def _regression(
    model: Model, path: Path, folder: Path | None, options: dict[str, float | int | None], output: str, parameters: str
) -> RegressionData:
    log, preparation = _recording(path, folder)
    chosen = {key: value for key, value in options.items() if value is not None}
    ties = leaf_ties(model) if parameters == "file" else None
    return regression_data(model, log, replace(preparation, **chosen), output=output, ties=ties)  # type: ignore[arg-type]


def _recording(path: Path, folder: Path | None) -> tuple[xr.Dataset, Preparation]:
    if path.suffix.lower() in (".yaml", ".yml"):
        recording = load_recording(path, folder)
        log = read_log(*recording.files, sample_rate=recording.sample_rate)
        return log, recording.preparation or Preparation(cutoff=None)
    return read_log(path), Preparation(cutoff=None)
