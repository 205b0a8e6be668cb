"""``tauloop dynamics``: inverse dynamics of one pose, or of a motion from a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tauloop.assembly.entry import ACTUATORS, PLATFORM, Entry
from tauloop.assembly.limits import require_within_limits
from tauloop.assembly.named_values import assigned
from tauloop.assembly.ports import Port
from tauloop.cli.announced import announced
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_machine
from tauloop.cli.output import (
    FAILED,
    JsonOption,
    console,
    log_ending,
    print_doubts,
    print_json,
    reports_errors,
    table,
    writes,
)
from tauloop.equations.formulations import FORMULATIONS, NEWTON_EULER
from tauloop.errors import InputError, Problems
from tauloop.kinematics.singularities import require_regular, singularity_report
from tauloop.model import HybridForces, Model
from tauloop.model.preloads import pushed_cables, sharing_of
from tauloop.programs import Forces, State
from tauloop.report.tension_table import tension_table
from tauloop.result import Status, status_of

#: Rows that are shown on the terminal; the rest is in the file or in JSON.
SHOWN = 10


@reports_errors
@writes(out=log_ending)
def dynamics(
    machine: MachineArgument,
    side: SideOption = None,
    position: Annotated[
        str | None,
        typer.Option(help="One pose, such as 'platform.x=0.1,platform.z=-0.5' (SI); the rest as at reference."),
    ] = None,
    velocity: Annotated[str | None, typer.Option(help="Its velocity, likewise; zero where not named.")] = None,
    acceleration: Annotated[str | None, typer.Option(help="Its acceleration, likewise; zero where not named.")] = None,
    motion: Annotated[
        Path | None,
        typer.Option(
            help="Many: CSV or Parquet with columns time, position.NAME, velocity.NAME, acceleration.NAME, each with "
            "its unit: 'position.platform.x [m]'."
        ),
    ] = None,
    entry: Annotated[Entry, typer.Option(help="What moves as given.")] = PLATFORM,
    formulation: Annotated[
        str, typer.Option(help=f"How the forces are found: {', '.join(f.name for f in FORMULATIONS)}.")
    ] = NEWTON_EULER.name,
    preload: Annotated[
        str | None,
        typer.Option(
            help="Tensions (N) that cables shall have where redundant actuation leaves a choice: one for all, such as "
            "'100', or by name, 'cable1=100,cable2=50'; the least ones within their bounds without."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write time, motion of platform and actuators, and forces to this CSV or Parquet file."),
    ] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Actuator forces that a motion needs (inverse dynamics).

    A machine with passive freedoms is moved by its actuators (--entry actuators): accelerations are given for these
    alone, and those of the passive freedoms come out beside the forces. For one pose name the coordinates that differ
    from the reference pose; for many give a table. A table that passes a singularity between two rows is refused. Exit
    code 1 when a pose lies beyond a stop.
    """
    _check_options(motion, {"position": position, "velocity": velocity, "acceleration": acceleration})
    model = announced(Model(load_machine(machine, side), formulation=formulation))
    functions = model.motion(entry)
    is_hybrid = entry is ACTUATORS and bool(model.assembly.passive)
    ports = model.hybrid.ports if is_hybrid else functions.ports.motion
    if motion is not None:
        time, values = _table_motion(ports, motion)
    else:
        reference = functions.ports.at(model.assembly.q)
        time, values = np.zeros(1), _one_pose(ports, reference, position, velocity, acceleration)
    start = None
    if model.assembly.rows and (entry is ACTUATORS or (motion is not None and functions.turning)):
        reached = functions.kinematics if entry is PLATFORM else functions.follow
        state = reached(values["position"])
        start = state.q if motion is None else functions.counted(state).q
    turns = "reference pose" if motion is None else "sample before"
    given = (values["position"], values["velocity"], values["acceleration"])
    sharing = sharing_of(model, preload)
    hybrid = model.hybrid.inverse_dynamics(*given, start=start, sharing=sharing) if is_hybrid else None
    forces = functions.inverse_dynamics(*given, start=start, sharing=sharing) if hybrid is None else hybrid.forces
    if within_limits:
        require_within_limits(forces.evidence)
    _require_no_crossing(model, forces.state, entry)
    units = model.output_ports("actuators")[1]
    if out is not None:
        _write_log(out, model, time, forces, units)
    condition = functions.condition(np.atleast_2d(forces.state.q))
    if as_json:
        print_json(
            {
                "machine": model.mechanism.name,
                "status": status_of(forces.evidence),
                "evidence": forces.evidence,
                "entry": entry,
                "formulation": formulation,
                "time_s": time,
                "actuators": forces.actuator_names,
                "units": units,
                "force": forces.force,
                "closures": forces.closure_names,
                "closure_force": forces.closure_force,
                "coordinates": forces.state.coordinate_names,
                "q": forces.state.q,
                "turns": {"angles": forces.state.turns.angles, "nearest": turns},
                "shared": forces.is_shared,
                "cables": forces.tension_names,
                "tension": () if forces.tension is None else forces.tension,
                "notes": pushed_cables(model, forces),
                "passive": () if hybrid is None else hybrid.passive_names,
                "passive_acceleration": () if hybrid is None else hybrid.passive_acceleration,
                "condition": [float(value) if np.isfinite(value) else None for value in condition],
            }
        )
    else:
        _print(time, forces, units, float(condition.max()), out)
        springs = zip(model.topology.velocity_names, model.topology.freedoms, strict=True)
        felt = [name for name, freedom in springs if freedom.spring is not None and name in forces.state.turns.angles]
        if felt:
            console().print(f"springs on {', '.join(felt)} feel the turn nearest to the {turns}")
        if hybrid is not None:
            _print_passive(hybrid, functions.ports.acceleration)
        if (tensions := tension_table(forces)) is not None:
            console().print(tensions)
        for note in pushed_cables(model, forces):
            console().print(f"note: {note}", markup=False)
        print_doubts(forces.evidence)
    if status_of(forces.evidence) is not Status.OK:
        raise typer.Exit(FAILED)


def _require_no_crossing(model: Model, motion: State, entry: Entry) -> None:
    """Refuse a motion that passes a singularity between two samples, where no forces bring it about.

    Raises:
        AssemblyError: which kind, between which samples, where.
    """
    if np.ndim(motion.q) == 2 and len(motion.q) > 1:
        require_regular(singularity_report(model, motion, entry=entry), smallest=0.0)


def _check_options(motion: Path | None, pose: dict[str, str | None]) -> None:
    problems = Problems()
    given = [f"--{name}" for name, text in pose.items() if text is not None]
    if motion is not None and given:
        problems.add("--motion", f"given beside {', '.join(given)}", "give one pose, or a table of many")
    InputError.raise_if_any(problems)


def _one_pose(
    ports: Mapping[str, Port],
    reference: np.ndarray,
    position: str | None,
    velocity: str | None,
    acceleration: str | None,
) -> dict[str, np.ndarray]:
    still, constant = np.zeros(ports["velocity"].size), np.zeros(ports["acceleration"].size)
    return {
        "position": assigned(ports["position"], "--position", position, reference)[None, :],
        "velocity": assigned(ports["velocity"], "--velocity", velocity, still)[None, :],
        "acceleration": assigned(ports["acceleration"], "--acceleration", acceleration, constant)[None, :],
    }


def _table_motion(ports: Mapping[str, Port], path: Path) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    from tauloop.logs import read_log, samples  # data frames are slow to import, and one pose needs none
    from tauloop.logs.channels import TIME
    from tauloop.logs.matching import channel_problems

    log = read_log(path)
    wanted = {kind: dict(zip(port.columns, port.units, strict=True)) for kind, port in ports.items()}
    InputError.raise_if_any(channel_problems(log, wanted, str(path)))
    return log[TIME].to_numpy(), {kind: samples(log, kind, tuple(columns)) for kind, columns in wanted.items()}


def _write_log(out: Path, model: Model, time: np.ndarray, forces: Forces, units: tuple[str, ...]) -> None:
    """The motion of platform and actuators and the forces: input of this command by either entry, and a log."""
    from tauloop.logs import write_log
    from tauloop.logs.channels import Channel, build_log

    q, v, a = forces.state.q, np.asarray(forces.state.v), np.asarray(forces.state.a)
    columns = {
        (kind, column): (values[:, i], unit)
        for functions in (model.platform, model.actuators)
        for (kind, port), values in zip(
            functions.ports.motion.items(),
            (functions.ports.at(q), functions.ports.rates(v), functions.ports.rates(a)),
            strict=True,
        )
        for i, (column, unit) in enumerate(zip(port.columns, port.units, strict=True))
    }
    signals = [
        Channel(quantity=kind, channel=column, values=values, unit=unit)
        for (kind, column), (values, unit) in columns.items()
    ]
    signals += [
        Channel(quantity="force", channel=name, values=forces.force[:, i], unit=unit)
        for i, (name, unit) in enumerate(zip(forces.actuator_names, units, strict=True))
    ]
    write_log(out, build_log(time, signals))


def _print_passive(hybrid: HybridForces, accelerations: Port) -> None:
    rows = table("Passive accelerations", "freedom", "acceleration", "unit", numeric=(1,))
    values = np.atleast_2d(hybrid.passive_acceleration)
    for i, name in enumerate(hybrid.passive_names):
        text = f"{values[0, i]:.6g}" if len(values) == 1 else f"{values[:, i].min():.5g} to {values[:, i].max():.5g}"
        rows.add_row(name, text, accelerations.units[accelerations.columns.index(name)])
    console().print(rows)


def _print(time: np.ndarray, forces: Forces, units: tuple[str, ...], condition: float, out: Path | None) -> None:
    screen = console()
    force = np.atleast_2d(forces.force)
    if len(force) == 1:
        rows = table("Actuator forces", "actuator", "force", "unit", numeric=(1,))
        for name, value, unit in zip(forces.actuator_names, force[0], units, strict=True):
            rows.add_row(name, f"{value:.6g}", unit)
        screen.print(rows)
    else:
        rows = table(
            f"Actuator forces, {len(force)} samples",
            "time [s]",
            *(f"{name} [{unit}]" for name, unit in zip(forces.actuator_names, units, strict=True)),
            numeric=tuple(range(len(units) + 1)),
        )
        for i in np.unique(np.linspace(0, len(force) - 1, SHOWN).astype(int)):
            rows.add_row(f"{time[i]:.4f}", *(f"{value:.5g}" for value in force[i]))
        rows.add_section()
        rows.add_row("largest", *(f"{value:.5g}" for value in np.abs(force).max(axis=0)))
        screen.print(rows)
    screen.print(f"worst condition number {condition:.3g}")
    if forces.is_shared:
        rule = (
            "the least sum of squares" if forces.tension is None else "tensions within bounds, nearest to the preload"
        )
        screen.print(f"actuation is redundant: these forces have {rule}")
    if out is not None:
        screen.print(f"written: {out}")
