"""``tauloop simulate``: forward dynamics in time: forces, free motion, round trips."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import (
    MachineArgument,
    SideOption,
    WithinLimitsOption,
    WorkersOption,
    load_model,
)
from tauloop.cli.output import command, finish, log_file
from tauloop.cli.outputs import FIGURE, RESULT, TABLE
from tauloop.cli.terminal.screen import bar
from tauloop.cli.values import angle, frequency
from tauloop.simulation import FreeMotionComparison, FreeMotionOptions, RoundTripOptions


@command(out=TABLE.of("the simulated motion"), json_file=RESULT, figure=FIGURE)
def simulate(
    machine: MachineArgument,
    options: tl.SimulationOptions,
    coupling: tl.FmuCoupling,
    side: SideOption,
    free: Annotated[
        bool,
        typer.Option(
            "--free",
            help="Simulate free motion without friction, with springs at the drives, by every route.",
        ),
    ] = False,
    spring_frequency: Annotated[
        str,
        typer.Option(
            metavar="FREQUENCY",
            help="Natural frequency of the springs of a free motion, such as 4Hz.",
        ),
    ] = f"{FreeMotionOptions.frequency:g}",
    amplitude: Annotated[
        str,
        typer.Option(
            metavar="ANGLE",
            help="Amplitude of a free motion, such as 0.1 or 5deg: rad, and characteristic lengths "
            "for sliding drives.",
        ),
    ] = f"{FreeMotionOptions.amplitude:g}",
    motion: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Motion from a table (CSV or Parquet) for a round trip, with columns time and "
            "position.NAME of the platform; forward dynamics gets its forces from inverse dynamics.",
        ),
    ] = None,
    out: Path | None = None,
    within_limits: WithinLimitsOption = False,
    threads: WorkersOption = "1",
) -> None:
    """Simulate a machine: constant forces (or a free fall), a free motion, or a round trip.

    Cables pull and can become slack; without --force their winches are locked at the start. With
    --fmu, a third-party FMU is an actuator or a drive. Exit code 1 when the end is not reached;
    when energy, loops or the round trip exceed their limits; or when the motion goes beyond a stop
    (stops
    exert no force: add an event at them).
    """
    hertz = frequency("spring_frequency", spring_frequency)
    radians = angle("amplitude", amplitude)
    chosen = _chosen(options, free, hertz, radians, motion, out)
    model = load_model(machine, side, threads=threads)
    with bar("simulation") as progress:
        if coupling == tl.FmuCoupling():
            result = tl.simulate(model, chosen, progress=progress)
        else:
            result = tl.co_simulate(model, chosen, coupling, progress=progress)
    files = [] if isinstance(result, FreeMotionComparison) else [log_file(out, result.log)]
    finish(result, *files, within_limits=within_limits)


def _chosen(
    options: tl.SimulationOptions,
    free: bool,
    frequency: float,
    amplitude: float,
    motion: Path | None,
    out: Path | None,
) -> tl.SimulationOptions | FreeMotionOptions | RoundTripOptions:
    """Return the options of the requested simulation.

    Raises:
        tl.InputError: options that do not fit together.
    """
    if not free and motion is None:
        return options
    simulation, shared = ("--free", ()) if free else ("--motion", ("route",))
    general = tl.SimulationOptions()
    useless = [
        item.name
        for item in fields(options)
        if item.name not in ("duration", "integration", *shared)
        and getattr(options, item.name) != getattr(general, item.name)
    ]
    useless += ["--out"] * (free and out is not None) + ["--motion"] * (free and motion is not None)
    tl.InputError.raise_if_any(
        tl.Problem(where=name, what=f"has no effect with {simulation}", remedy="leave it out")
        for name in useless
    )
    if motion is None:
        duration, integration = options.duration or FreeMotionOptions.duration, options.integration
        return FreeMotionOptions(
            duration=duration, frequency=frequency, amplitude=amplitude, integration=integration
        )
    return RoundTripOptions(
        motion=motion,
        duration=options.duration,
        route=options.route,
        integration=options.integration,
    )
