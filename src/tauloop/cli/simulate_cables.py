"""``tauloop simulate`` of a machine with cables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import typer

from tauloop.assembly.limits import require_within_limits
from tauloop.assembly.ports import Port
from tauloop.cli.assigned import TOOL, assigned
from tauloop.cli.output import FAILED, console, print_doubts, print_json, table
from tauloop.cli.tensions import sharing_of
from tauloop.errors import InputError, Problem
from tauloop.logs import write_log
from tauloop.logs.channels import Channel, build_log
from tauloop.model import Model
from tauloop.report import save_figure
from tauloop.report.simulation_figure import cable_figure
from tauloop.result import Status
from tauloop.simulation import CableSimulation, ConstantForce, Event, Integrator, Route, simulate_cables, start_state

#: Changes of cables that are shown; all of them are in JSON.
SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CableStart:
    """What the command line says of the start and of what acts, as text."""

    position: str | None
    velocity: str | None
    force: str | None
    wrench: str | None
    preload: str | None


def refuse_beside_cables(options: Mapping[str, object]) -> None:
    """Refuse options that mean nothing for cables.

    Raises:
        InputError: which.
    """
    why = {
        "--swing": "is not for machines with cables: they push nothing back",
        "--motion": "is not for machines with cables: those that stretch do not come back to the motion",
    }
    InputError.raise_if_any(
        Problem(where=n, what=why[n], remedy="leave it out") for n, value in options.items() if value
    )


def cables_simulated(
    model: Model,
    duration: float,
    start: CableStart,
    route: Route,
    integrator: Integrator,
    looked_for: tuple[Event, ...],
) -> CableSimulation:
    """The simulation that the command line asks for.

    Raises:
        InputError: a name or a number is wrong, or a cable cannot be simulated.
        PoseError: the start is out of reach, or no tensions hold it.
    """
    if start.force is not None and start.preload is not None:
        raise InputError(Problem(where="--preload", what="given beside --force", remedy="give one of them"))
    ports = model.platform.ports.motion
    names, units = model.output_ports("actuators")
    position = assigned(ports["position"], "--position", start.position, model.platform_position(model.assembly.q))
    velocity = assigned(ports["velocity"], "--velocity", start.velocity, np.zeros(ports["velocity"].size))
    q, v = start_state(model, position, velocity)
    force = None
    if start.force is not None:
        port = Port(name="force", columns=names, units=units)
        force = ConstantForce(tuple(map(float, assigned(port, "--force", start.force, np.zeros(len(names))))))
    pull = None if start.wrench is None else assigned(TOOL, "--wrench", start.wrench, np.zeros(6))
    sharing = sharing_of(model, start.preload)
    return simulate_cables(
        model,
        duration,
        q=q,
        v=v,
        force=force,
        wrench=pull,
        route=route,
        integrator=integrator,
        sharing=sharing,
        events=looked_for,
    )


def finish_cables(
    found: CableSimulation, out: Path | None, figure: Path | None, within_limits: bool, as_json: bool
) -> None:
    """Write, print, and end with exit code 1 where the result is doubtful."""
    if within_limits:
        require_within_limits(found.evidence)
    if out is not None:
        _write(out, found)
    if figure is not None:
        save_figure(cable_figure(found, title=f"Simulation of {found.machine}"), figure)
    if as_json:
        print_json(found.as_dict())
    else:
        _print(found, out, figure)
    if found.status is not Status.OK:
        raise typer.Exit(FAILED)


def _print(found: CableSimulation, out: Path | None, figure: Path | None) -> None:
    screen = console()
    screen.print(f"{found.machine}: {found.time[-1]:.6g} of {found.duration:g} s, {found.ending.value}")
    rows = table("Tensions of cables", "cable", "start", "least", "largest", "end", "unit", numeric=(1, 2, 3, 4))
    for name, tension in zip(found.cable_names, found.tension.T, strict=True):
        rows.add_row(name, *(f"{x:.6g}" for x in (tension[0], tension.min(), tension.max(), tension[-1])), "N")
    screen.print(rows)
    for event in found.events[:SHOWN]:
        impact = f", at {event.speed:.4g} m/s with {event.impulse:.4g} N s" if event.impulse else ""
        screen.print(f"{event.time:.9g} s: {event.cable} becomes {'slack' if event.is_slack else 'taut'}{impact}")
    if len(found.events) > SHOWN:
        screen.print(f"and {len(found.events) - SHOWN} more")
    for one in found.occurrences:
        screen.print(f"{one.time:.9g} s: {one.name}{', the end' if one.is_terminal else ''}")
    for item in found.evidence[:4]:
        screen.print(str(item))
    print_doubts(found.evidence[4:])
    if found.problem is not None:
        screen.print(str(found.problem))
    for path in (out, figure):
        if path is not None:
            screen.print(f"written: {path}")


def _write(path: Path, found: CableSimulation) -> None:
    """Positions of the platform and tensions over time; what has no such coordinate all the time is left out."""
    signals = []
    for name, unit in zip(found.platform.columns, found.platform.units, strict=True):
        values = found.coordinate(name)
        if np.isfinite(values).all():
            signals.append(Channel(quantity="position", channel=name, values=values, unit=unit))
    signals += [
        Channel(quantity="tension", channel=name, values=tension, unit="N")
        for name, tension in zip(found.cable_names, found.tension.T, strict=True)
    ]
    time = found.time + 0.0
    keep = np.concatenate([[True], np.diff(time) > 0])
    kept = [Channel(quantity=s.quantity, channel=s.channel, values=s.values[keep], unit=s.unit) for s in signals]
    write_log(path, build_log(time[keep], kept))
