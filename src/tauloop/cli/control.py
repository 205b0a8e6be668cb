"""``tauloop control``: a trajectory followed under sampled controllers, with and without the machine's model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tauloop.assembly.entry import PLATFORM
from tauloop.assembly.limits import beyond_limits, require_within_limits
from tauloop.cli.announced import announced
from tauloop.cli.assigned import quantity
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_machine
from tauloop.cli.output import (
    FAILED,
    JsonOption,
    console,
    figure_ending,
    log_ending,
    print_doubts,
    print_json,
    reports_errors,
    table,
    writes,
)
from tauloop.cli.strokes import (
    AccelerationOption,
    BlendOption,
    EndOption,
    EntryOption,
    LawOption,
    PointsOption,
    ReturnsOption,
    ShapeOption,
    ShareOption,
    SpeedOption,
    StartOption,
    StrokeChoice,
    TimeOption,
    TurnOption,
    ViaOption,
)
from tauloop.errors import InputError, Problem
from tauloop.logs import write_log
from tauloop.logs.channels import Channel, build_log
from tauloop.mechanism import units
from tauloop.mechanism.suggestions import suggestion
from tauloop.model import Model
from tauloop.report import save_figure
from tauloop.report.control_figure import control_figure
from tauloop.simulation.controllers.laws import (
    HEUN_3,
    PD,
    RUNGE_KUTTA_4,
    SPACES,
    ComputedTorque,
    Controller,
    FeedForward,
    GravityCompensation,
    Sampling,
)
from tauloop.simulation.controllers.run import SUBSTEPS, ControlledMotion
from tauloop.simulation.controllers.run import control as follow

CONTROLLERS: dict[str, type[PD | FeedForward | GravityCompensation | ComputedTorque]] = {
    "pd": PD,
    "gravity": GravityCompensation,
    "feed-forward": FeedForward,
    "computed-torque": ComputedTorque,
}
METHODS = {"rk4": RUNGE_KUTTA_4, "heun3": HEUN_3}


@reports_errors
@writes(out=log_ending, figure=figure_ending)
def control(
    machine: MachineArgument,
    side: SideOption = None,
    shape: ShapeOption = "line",
    start: StartOption = None,
    via: ViaOption = None,
    end: EndOption = None,
    points: PointsOption = None,
    turn: TurnOption = None,
    blend: BlendOption = 0.02,
    entry: EntryOption = PLATFORM,
    law: LawOption = "3-4-5",
    time: TimeOption = None,
    speed: SpeedOption = None,
    acceleration: AccelerationOption = None,
    share: ShareOption = 0.8,
    returns: ReturnsOption = False,
    controller: Annotated[
        list[str] | None,
        typer.Option(help=f"{', '.join(CONTROLLERS)}; may be repeated; all of them without it."),
    ] = None,
    space: Annotated[str, typer.Option(help="Where errors are taken: joint (actuators) or platform.")] = "joint",
    bandwidth: Annotated[str, typer.Option(help="Of all laws, such as 150 (rad/s) or '20 Hz'.")] = "150 rad/s",
    damping: Annotated[float, typer.Option(help="Damping ratio.")] = 1.0,
    rate: Annotated[str, typer.Option(help="Samples per second, such as 1kHz.")] = "1 kHz",
    delay: Annotated[str, typer.Option(help="From measurement to force, such as 0.5ms.")] = "0 s",
    quantisation: Annotated[
        str, typer.Option(help="Step of the encoders, such as 0.1mrad, or one per actuator between commas; 0 for none.")
    ] = "0",
    differences: Annotated[
        bool, typer.Option("--differences", help="Speeds are differences of measured positions.")
    ] = False,
    saturation: Annotated[bool, typer.Option(help="Forces end at the machine file's limits.")] = True,
    plant: Annotated[
        str | None,
        typer.Option(help="What the controller does not know: parameters of the machine that moves, 'plate_mass=0.4'."),
    ] = None,
    settling: Annotated[float, typer.Option(help="Further time at rest at the end, s.")] = 0.0,
    method: Annotated[str, typer.Option(help=f"Integrator between samples: {', '.join(METHODS)}.")] = "rk4",
    substeps: Annotated[int, typer.Option(help="Its steps per sample.")] = SUBSTEPS,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the motion under the last controller to this CSV or Parquet file."),
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw it into this file (PNG, PDF, SVG).")] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Follow a trajectory under sampled controllers, and say how far the machine stays behind.

    Exit code 1 when a run ends early (out of reach, singular, not finite) or goes beyond a stop; saturated forces are
    reported.
    """
    choice = StrokeChoice(
        shape=shape,
        start=start,
        via=via,
        end=end,
        points=points,
        turn=turn,
        blend=blend,
        entry=entry,
        law=law,
        time=time,
        speed=speed,
        acceleration=acceleration,
        share=share,
        returns=returns,
    )
    laws = _laws(controller, space, bandwidth, damping)
    if method not in METHODS:
        remedy = f"one of {', '.join(METHODS)}"
        raise InputError(Problem(where="--method", what=f"{method!r} is unknown", remedy=remedy))
    model = announced(Model(load_machine(machine, side)))
    sampling = Sampling(
        frequency=quantity("--rate", rate, units.FREQUENCY),
        delay=quantity("--delay", delay, units.TIME),
        resolution=_resolution(model, quantisation),
        differences=differences,
        saturates=saturation,
    )
    moved = _plant(model, plant)
    trajectory = choice.planned(model)
    results = {
        name: follow(
            trajectory, law, sampling, plant=moved, method=METHODS[method], substeps=substeps, settling=settling
        )
        for name, law in laws.items()
    }
    beyond = {name: beyond_limits(result.evidence) for name, result in results.items()}
    if within_limits:
        for items in beyond.values():
            require_within_limits(items)
    last = list(results)[-1]
    if out is not None:
        write_log(out, _as_log(model, results[last]))
    if figure is not None:
        names, force_units = model.output_ports("actuators")
        title = f"{model.mechanism.name} on a stroke of {trajectory.total:.4g} s, {space} space"
        save_figure(control_figure(results, last, names, force_units, title=title), figure)
    if as_json:
        print_json(_document(model, results, space, sampling, trajectory.total))
    else:
        _print(model, results, space, trajectory.total, out, figure)
        for name, items in beyond.items():
            print_doubts(replace(item, name=f"{name}: {item.name}") for item in items)
    if any(result.end for result in results.values()) or any(beyond.values()):
        raise typer.Exit(FAILED)


def _laws(names: list[str] | None, space: str, bandwidth: str, damping: float) -> dict[str, Controller]:
    problems = [
        Problem(
            where="--controller",
            what=f"{name!r} is unknown",
            remedy=suggestion(name, CONTROLLERS) or f"choose among {', '.join(CONTROLLERS)}",
        )
        for name in names or []
        if name not in CONTROLLERS
    ]
    if space not in SPACES:
        problems.append(Problem(where="--space", what=f"{space!r} is unknown", remedy=" or ".join(SPACES)))
    InputError.raise_if_any(problems)
    width = quantity("--bandwidth", bandwidth, units.FREQUENCY)
    if bandwidth.strip().endswith("Hz"):
        width *= 2 * np.pi
    return {
        name: law(bandwidth=width, damping=damping, space=space)
        for name, law in CONTROLLERS.items()
        if not names or name in names
    }


def _resolution(model: Model, text: str) -> np.ndarray:
    """Steps of the encoders (n_u,), m or rad."""
    kinds = model.actuators.ports.position.units[: len(model.mechanism.actuators)]
    parts = text.split(",")
    if len(parts) == 1:
        parts *= len(kinds)
    if len(parts) != len(kinds):
        what = f"{len(parts)} steps for {len(kinds)} actuators"
        raise InputError(Problem(where="--quantisation", what=what, remedy="one for all, or one for each"))
    of = {"rad": units.ANGLE, "m": units.LENGTH}
    return np.array([quantity("--quantisation", part, of[kind]) for part, kind in zip(parts, kinds, strict=True)])


def _plant(model: Model, text: str | None) -> Model | None:
    """The machine that moves, where it is not the controller's."""
    if text is None:
        return None
    known = model.mechanism.parameters.names
    values, problems = {}, []
    for part in text.split(","):
        name, equals, number = (piece.strip() for piece in part.partition("="))
        try:
            values[name] = float(number)
        except ValueError:
            equals = ""
        if not equals or not np.isfinite(values[name]):
            remedy = "such as plate_mass=0.4, in SI units"
            problems.append(Problem(where="--plant", what=f"{part.strip()!r} is not NAME=NUMBER", remedy=remedy))
        elif name not in known:
            remedy = suggestion(name, known) or "see `tauloop show`"
            problems.append(Problem(where="--plant", what=f"no parameter {name!r}", remedy=remedy))
    InputError.raise_if_any(problems)
    return Model(model.mechanism.with_values(values))


def _figures(model: Model, result: ControlledMotion) -> dict[str, Any]:
    """Figures of one run; none of a run that failed at its first sample, no distance where nothing is in metres."""
    if not len(result.time):
        return {"peak_error_m": None, "rms_error_m": None, "actuator_error": None, "peak_force": None}
    has_distance = "m" in model.platform.ports.position.units
    return {
        "peak_error_m": result.peak_error if has_distance else None,
        "rms_error_m": result.rms_error if has_distance else None,
        "actuator_error": float(np.abs(result.actuator_error).max()),
        "peak_force": np.abs(result.force).max(axis=0),
    }


def _document(
    model: Model, results: dict[str, ControlledMotion], space: str, sampling: Sampling, total: float
) -> dict[str, Any]:
    return {
        "machine": model.mechanism.name,
        "status": "failed"
        if any(result.end or beyond_limits(result.evidence) for result in results.values())
        else "ok",
        "space": space,
        "duration_s": total,
        "frequency_Hz": sampling.frequency,
        "delay_s": sampling.delay,
        "actuators": model.output_ports("actuators")[0],
        "force_units": model.output_ports("actuators")[1],
        "runs": {
            name: {"status": result.status.value, "samples": len(result.time), "end": result.end or None}
            | _figures(model, result)
            | {"evidence": list(result.evidence), "provenance": result.provenance}
            for name, result in results.items()
        },
    }


def _print(
    model: Model, results: dict[str, ControlledMotion], space: str, total: float, out: Path | None, figure: Path | None
) -> None:
    kinds = set(model.actuators.ports.position.units)
    unit = kinds.pop() if len(kinds) == 1 else "SI"
    forces = set(model.output_ports("actuators")[1])
    force_unit = forces.pop() if len(forces) == 1 else "SI"
    rows = table(
        f"{model.mechanism.name}: {total:.4g} s, {space} space",
        *("controller", "distance,\npeak [mm]", "rms [mm]", f"actuators,\npeak [{unit}]"),
        *(f"force,\npeak [{force_unit}]", "saturated", ""),
        numeric=(1, 2, 3, 4, 5),
    )
    for name, result in results.items():
        found = _figures(model, result)
        saturated = next(item.value for item in result.evidence if item.name == "share of saturated forces")
        distances = [found["peak_error_m"], found["rms_error_m"]]
        if found["peak_force"] is None:
            rows.add_row(name, "-", "-", "-", "-", "-", "ended at once")
            continue
        rows.add_row(
            name,
            *("-" if value is None else f"{1e3 * value:.4g}" for value in distances),
            *(f"{found['actuator_error']:.3g}", f"{found['peak_force'].max():.4g}", f"{saturated:.1%}"),
            "ended early" if result.end else "",
        )
    screen = console()
    screen.print(rows)
    for name, result in results.items():
        if result.end:
            screen.print(f"{name}: {result.end}")
    for path in (out, figure):
        if path is not None:
            screen.print(f"written: {path}")


def _as_log(model: Model, result: ControlledMotion) -> Any:
    """The platform's motion and the forces, as a log that other commands read."""
    entry = model.platform.ports
    names, force_units = model.output_ports("actuators")
    signals = [
        Channel(quantity=kind, channel=column, values=values[:, i], unit=unit)
        for kind, port, values in (
            ("position", entry.position, result.position),
            ("velocity", entry.velocity, result.velocity),
        )
        for i, (column, unit) in enumerate(zip(port.columns, port.units, strict=True))
    ]
    signals += [
        Channel(quantity="force", channel=name, values=result.force[:, k], unit=unit)
        for k, (name, unit) in enumerate(zip(names, force_units, strict=True))
    ]
    return build_log(result.time, signals)
