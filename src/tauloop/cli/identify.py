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

from tauloop.cli.announced import announced
from tauloop.cli.identify_channels import (
    Channels,
    channel_table,
    chosen_channels,
    fourier_channels,
    less_known_forces,
    without_saturation,
)
from tauloop.cli.identify_comparison import compared, comparison_document, comparison_table, require_comparable
from tauloop.cli.identify_findings import (
    fault_evidence,
    faults_of_data,
    faults_of_logs,
    judged_faults,
    limits_of_logs,
    moves_of_logs,
    naming,
    remarks,
)
from tauloop.cli.identify_friction import (
    presliding_notes,
    presliding_texts,
    stribeck_texts,
    with_friction,
    with_presliding,
)
from tauloop.cli.identify_known import gains_table, known, known_leaves, with_gains, with_known
from tauloop.cli.identify_logs import (
    averaged,
    commanded_regressor,
    force_noise,
    measured_logs,
    naming_log,
    period_table,
    periodic,
    periodicity,
    periods,
    prepared,
    require_forces_of_all,
    require_same_forces,
)
from tauloop.cli.identify_options import check_options, chosen_estimator, numbers, whole_numbers
from tauloop.cli.identify_options import error_model as errors_assumed
from tauloop.cli.identify_repairs import repair_lines, repairs
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
from tauloop.codegen import Compiled
from tauloop.errors import InputError, Problem
from tauloop.identification import (
    ConsistentIdentification,
    FilterScan,
    Identification,
    RegressionData,
    cones,
    essential_parameters,
    fit,
    fit_consistent,
    merge,
    scan_filters,
    split_each,
)
from tauloop.identification.faults.unexcited import unexcited
from tauloop.identification.parameters.prior import compare_with_prior, runaway_masses
from tauloop.identification.parameters.write_back import identified_mechanism
from tauloop.identification.preparation.periods import PeriodAverage
from tauloop.identification.regression.from_log import dynamic_leaves, leaf_ties, require_channels
from tauloop.model import Model
from tauloop.report import fit_table, identification_figure, identification_table, save_figure
from tauloop.report.essential_table import essential_table
from tauloop.report.filter_scan_table import filter_scan_table
from tauloop.result import Status, plain, write_json

#: Samples from which on the regressor is compiled: it takes seconds, but once for a machine whose logs are identified
#: again and again.
WORTH_COMPILING = 5_000


@reports_errors
@writes(write=any_ending, json_file=any_ending, figure=figure_ending)
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
            help="Standard deviations for errors that are independent, autocorrelated (as the residuals show), "
            "decimated (white before the decimation), or of any kind inside blocks of each log, or inside logs: these "
            "two count model errors as well."
        ),
    ] = "autocorrelated",
    scan_cutoffs: Annotated[
        str | None,
        typer.Option(
            "--scan-cutoffs",
            help="Cut-offs to try, Hz, such as 20,50,100: what each gives, how far parameters move, and the choice, "
            "for all channels and then for each alone.",
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
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--known",
            help="NAME=VALUE,..., such as 'tip_mass=0.3 kg': parameters that are known, SI without a unit; a spring's "
            "rest as 'slide.rest=0.1 m'.",
        ),
    ] = None,
    payload: Annotated[
        list[str] | None,
        typer.Option(
            "--payload", help="LOG=BODY: in this log that body carries an unknown payload (payload.m, payload.mcx ...)."
        ),
    ] = None,
    asymmetric: Annotated[
        list[str] | None,
        typer.Option(
            "--asymmetric",
            help="Friction of this joint, rod or motor differs from one direction to the other (may be repeated).",
        ),
    ] = None,
    stribeck: Annotated[
        list[str] | None,
        typer.Option(
            "--stribeck", help="NAME=SPEED: friction of it is larger at speeds below this one, such as 'tip=0.2 rad/s'."
        ),
    ] = None,
    presliding: Annotated[
        list[str] | None,
        typer.Option(
            "--presliding",
            help="Friction of this joint, rod or motor turns round over some way after a reversal: NAME, whose way "
            "validation finds, or NAME=WAY, such as 'elbow=0.01 rad' (may be repeated).",
        ),
    ] = None,
    gains: Annotated[
        bool,
        typer.Option(
            "--gains", help="Forces are known up to a factor for each drive; --known parameters set the scale."
        ),
    ] = False,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare-logs",
            help="Also fit each of several logs by itself: which parameters move by more than their bars, and bars "
            "that count this error of the model.",
        ),
    ] = False,
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
    velocity: Annotated[
        str | None,
        typer.Option(
            "--velocity",
            help="Velocities from positions, measured, or fused of both; chosen by validation unless said here or in "
            "the recording.",
        ),
    ] = None,
    cutoff: Annotated[
        float | None, typer.Option(help="Zero-phase low-pass of positions and measured velocities, Hz.")
    ] = None,
    order: Annotated[int | None, typer.Option(help="Order of that Butterworth filter.")] = None,
    standstill: Annotated[
        float | None, typer.Option(help="Share of an actuator's largest speed below which it counts as at rest.")
    ] = None,
    trim: Annotated[int | None, typer.Option(help="Samples cut off at each end.")] = None,
    decimation: Annotated[int | None, typer.Option(help="Keep every n-th sample after a zero-phase filter.")] = None,
    hold: Annotated[
        list[str] | None,
        typer.Option(
            "--hold",
            help="NAME=VALUE, such as 'motor_4=30 deg': this axis is not in the logs and stood still there; without a "
            "value where the reference pose has it (may be repeated).",
        ),
    ] = None,
    fill_gaps: Annotated[
        int | None,
        typer.Option(
            "--fill-gaps", min=1, help="Interpolate up to so many missing samples in a row; they are counted."
        ),
    ] = None,
    resample: Annotated[
        bool,
        typer.Option("--resample", help="Samples were taken at uneven times, as stamped: take them at even ones."),
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json-file", help="Write the whole result to this JSON file.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Write measured, predicted and residual to this PNG.")
    ] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Identify base parameters from logs, and judge them on data that were not fitted.

    Several logs are fitted together; of each the last part is held out. One that states no preparation is prepared as
    the first. Exit code 1 when the result is doubtful, also for what is wrong with the data (clipped, late, turned,
    exchanged, dead, copied, in another unit, unexciting) and for masses that cannot be; it says what.
    """
    check_options(commanded, len(log), estimator=estimator, parameters=parameters, output=output, errors=errors)
    if write is not None and not consistent:
        what = "an identified machine needs all its parameters, and base parameters are fewer"
        raise InputError(Problem(where="--write", what=what, remedy="add --consistent"))
    if hold_out == 0.0 and validation is None:
        what = "a model that is judged only on data it was fitted to is not judged"
        raise InputError(Problem(where="--hold-out", what=what, remedy="hold out a share, such as 0.3"))
    if scan_standstills is not None and scan_cutoffs is None:
        raise InputError(Problem(where="--scan-standstills", what="is given alone", remedy="add --scan-cutoffs"))
    beside = {
        "--estimator iv": estimator == "iv",
        "--scan-cutoffs": scan_cutoffs is not None,
        "--consistent": consistent,
        "--output joints": gains and output == "joints",
    }
    given = [*log, *([validation] if validation is not None else [])]
    options_known = known(values or (), payload or (), gains, given, **beside)
    beside = {"--estimator iv": estimator == "iv", "--period": period is not None, "--write": write is not None}
    if compare:
        require_comparable(len(log), **{"--estimator iv": estimator == "iv", "--payload": payload})
    stribeck_speeds = stribeck_texts(asymmetric or (), stribeck or (), beside)
    ways = presliding_texts(presliding or (), beside)
    # the matrices are small: threads of linear algebra would wait for each other longer than they work
    threadpool_limits(limits=1, user_api="blas")
    mechanism = load_machine(machine, side)
    leaves = known_leaves(mechanism, options_known) if parameters == "file" else {}
    model = announced(Model(mechanism.with_values(leaves), evaluator=Compiled(at_least=WORTH_COMPILING)))
    if gains and model.assembly.is_redundant:
        what = "the actuators are redundant: every equation holds the forces of several drives"
        raise InputError(Problem(where="--gains", what=what, remedy="give the forces in N or N m"))
    filters = {"cutoff": cutoff, "order": order, "standstill": standstill, "trim": trim, "decimation": decimation}
    options = {**filters, "velocity": velocity}
    chosen = {key: value for key, value in options.items() if value is not None}
    repeats = periodicity(period, highest, scan_cutoffs, chosen)
    made = repairs(model, hold or (), fill_gaps, resample)
    logs = measured_logs(given, data, chosen, made)
    logs = logs if repeats is not None else without_saturation(model, logs)
    logs, taken = less_known_forces(logs)
    beyond = limits_of_logs(model, logs, refuse=within_limits)
    unknown = dynamic_leaves(model, leaves)
    ties = leaf_ties(model, unknown) if parameters == "file" else None
    error_model = errors_assumed(errors, logs, repeats)
    scan: FilterScan | None = None
    if scan_cutoffs is not None:
        scan = scan_filters(
            model,
            [one.log for one in logs[: len(log)]],
            [one.preparation for one in logs[: len(log)]],
            orders=whole_numbers("--scan-orders", scan_orders),
            cutoffs=numbers("--scan-cutoffs", scan_cutoffs),
            standstills=numbers("--scan-standstills", scan_standstills) if scan_standstills is not None else (),
            estimator=chosen_estimator(estimator, column_error, None) if estimator != "iv" else None,
            output=output,
            ties=ties,
            shares=(1.0 - (hold_out or 0.3), 0.7),
            errors=error_model,
        )
        best = scan.trials[scan.chosen]
        found = {"order": best.order, "cutoff": best.cutoff, "standstill": best.standstill}
        logs = [replace(one, preparation=replace(one.preparation, **found)) for one in logs]  # type: ignore[arg-type]
    averages: list[PeriodAverage] = []
    decided: Channels | None = None
    moves: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    if repeats is None:
        decided = chosen_channels(
            model,
            logs,
            len(log),
            cutoffs=numbers("--scan-cutoffs", scan_cutoffs) if scan_cutoffs is not None else (),
            share=1.0 - hold_out if validation is None else 1.0,
            estimator=chosen_estimator(estimator, column_error, None) if estimator != "iv" else None,
            output=output,
            ties=ties,
        )
        logs = decided.logs
    else:
        decided = fourier_channels(logs)
        averages = [averaged(one, repeats) for one in logs]
    for one in logs:
        with naming_log(one, len(logs)):
            require_channels(model, one.log, output)
    faults = faults_of_logs(
        model, logs, averages, repeats, output=output, ties=ties, scaled=not gains, presliding=bool(ways)
    )
    if repeats is None:
        parts = []
        for one in logs:
            with naming_log(one, len(logs)):
                parts.append(prepared(one, model, output, ties))
        moves = moves_of_logs(model, logs, parts)
        logs = [replace(one) for one in logs]  # without what they have prepared, which fills the memory
    else:
        parts = [
            periodic(one, average, model, repeats, output, ties) for one, average in zip(logs, averages, strict=True)
        ]
    if averages or output == "joints":
        require_same_forces(logs, parts)
    elif validation is not None:
        require_forces_of_all(logs, parts)
    bare = parts
    parts = with_friction(parts, logs, model, asymmetric or (), stribeck_speeds, output)
    share = 1.0 - hold_out if validation is None else 1.0
    parts, sliding = with_presliding(parts, logs, model, ways, output, fitted=len(log), share=share)
    parts = with_known(parts, [one.name for one in logs], options_known, tuple(leaves))
    scale = None
    if gains:
        training_parts = parts[:-1] if validation is not None else split_each(parts, 1.0 - hold_out)[0]
        parts, scale = with_gains(parts, merge(training_parts))
    instruments = [
        commanded_regressor(path, data, one, model, output, repeats)
        for path, one in zip(commanded or (), logs, strict=False)
    ]
    noise = force_noise(averages[: len(log)], model, output) if averages and estimator == "wls" else None
    everything: Identification | None = None
    if validation is not None:
        fitted, held_out = parts[:-1], parts[-1]
    else:
        way = chosen_estimator(estimator, column_error, instruments, noise)
        with naming(faults):
            everything = fit(merge(parts), None, way, errors=error_model)
        fitted, judged = split_each(parts, 1.0 - hold_out)
        held_out = merge(judged)
        instruments = [rows[: len(part)] for rows, part in zip(instruments, fitted, strict=False)]
    training = merge(fitted)
    way = chosen_estimator(estimator, column_error, instruments, noise)
    with naming(faults):
        result = fit(training, held_out, way, errors=error_model)
    faults = faults or faults_of_data(model, logs, parts, result, training, moves, output=output)
    comparison = None
    if compare:
        base = result.base if everything is None else everything.base
        apart = chosen_estimator(estimator, column_error, None, noise)
        comparison = compared(logs[: len(log)], parts[: len(log)], base, apart, error_model)
    beside_file = compare_with_prior(model, result, training.unknowns)
    left_out = unexcited(model, _machine_alone(training, bare, validation), np.random.default_rng(0), output=output)
    lines = repair_lines([one.name for one in logs], [one.log for one in logs], made)
    lines += tuple(f"what held axes leave out: {problem.what}" for problem in left_out) if made.held else ()
    findings = (
        *(decided.problems if decided is not None else ()),
        *judged_faults(result, faults),
        *(beside_file.findings if scale is None else ()),
        *(comparison.problems if comparison is not None else ()),
        *(() if made.held else left_out),
    )
    result = replace(result, evidence=(*result.evidence, fault_evidence(findings), *beyond))
    document = result.as_dict() | {"findings": [problem.as_dict() for problem in findings]}
    document |= {"repairs": list(lines)}
    document |= {"machine_file": beside_file.rows()}
    document |= {"log_comparison": comparison_document(comparison)} if comparison is not None else {}
    document |= {"whole_log": everything.as_dict()} if everything is not None else {}
    document |= {"filter_scan": scan.as_dict()} if scan is not None else {}
    document |= {"presliding": plain(sliding)} if sliding is not None else {}
    document |= {"known_forces": taken} if taken else {}
    document |= {"channels": decided.as_dict()} if decided is not None else {}
    document |= {"periods": periods(logs, averages)} if averages else {}
    document |= {"gains": plain(scale)} if scale is not None else {}
    reduced = None
    if essential is not None:
        reduced = essential_parameters(result, training, held_out, largest_deviation=essential)
        document["essential"] = {"status": reduced.status, **plain(reduced)}
    physical: ConsistentIdentification | None = None
    heavy: tuple[Problem, ...] = ()
    if consistent:
        groups = np.repeat(np.arange(len(fitted)), [len(part) for part in fitted]) if len(fitted) > 1 else None
        physical = fit_consistent(training, held_out, cones(model.parameters), model.pi, groups=groups)
        document["consistent"] = physical.as_dict()
        heavy = runaway_masses(physical)
        findings += heavy
        document["findings"] += [problem.as_dict() for problem in heavy]
        if write is not None:
            from tauloop.formats.yaml_writer import write_yaml  # slow to import, and seldom asked for

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
        if decided is not None and decided.choice is not None:
            screen.print(channel_table(decided))
        if averages:
            screen.print(period_table(logs, averages))
        if scale is not None:
            screen.print(gains_table(scale))
        if everything is not None:
            screen.print("Fitted to the whole log" if len(log) == 1 else f"Fitted to all {len(log)} logs", style="bold")
            screen.print(fit_table(everything))
            each = "" if len(log) == 1 else " of each log"
            screen.print(f"Fitted to the first {100 * (1 - hold_out):.0f} %{each}, judged on the rest", style="bold")
        screen.print(identification_table(result))
        notes = (*taken, *(decided.notes if decided is not None else ()))
        notes += presliding_notes(sliding, model) if sliding is not None else ()
        for line in (*lines, *remarks(result), *beside_file.remarks, *notes):
            screen.print(line)
        if comparison is not None:
            screen.print(comparison_table(comparison))
        if reduced is not None:
            screen.print(essential_table(reduced))
        if physical is not None:
            _print_consistent(screen, physical)
        for problem in findings:
            screen.print(str(problem), style="yellow")
        for path in (json_file, figure, write):
            if path is not None:
                screen.print(f"written: {path}")
    if result.status is not Status.OK or (physical is not None and (heavy or physical.status is not Status.OK)):
        raise typer.Exit(FAILED)


def _machine_alone(
    training: RegressionData, parts: Sequence[RegressionData], validation: Path | None
) -> RegressionData:
    """The training data, or of a machine with a payload all data without its columns."""
    if training.parameters == parts[0].parameters:
        return training
    return merge(parts[:-1] if validation is not None else parts)


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
