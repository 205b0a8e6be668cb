"""``tauloop simulate``: forward dynamics in time: forces, free motion, round trips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

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

FreeOption = Annotated[
    bool,
    typer.Option(
        "--free",
        help="Simulate free motion without friction, with springs at the drives, by every route.",
    ),
]
SpringFrequencyOption = Annotated[
    str,
    typer.Option(
        metavar="FREQUENCY",
        help="Natural frequency of a free motion with its springs, such as 4Hz (Hz).",
    ),
]
AmplitudeOption = Annotated[
    str,
    typer.Option(
        metavar="ANGLE",
        help="Amplitude of a free motion, such as 0.1 or 5deg; rad, or characteristic lengths for "
        "sliding drives.",
    ),
]
MotionOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Motion from a table (CSV or Parquet) for a round trip, with columns time and "
        "position.NAME of the platform; forward dynamics gets its forces from inverse dynamics. "
        "With --elastic, the motors follow it.",
    ),
]
ElasticOption = Annotated[
    bool,
    typer.Option(
        "--elastic",
        help="Simulate the deformation of an elastic machine whose motors follow --motion, or hold "
        "--pose.",
    ),
]
DampingOption = Annotated[
    float | None,
    typer.Option(
        help="Damping ratio of the modes of an elastic machine; default: that of the machine file."
    ),
]
ReleaseOption = Annotated[
    str | None,
    typer.Option(
        metavar="VALUES",
        help="Wrench at the tool of an elastic machine at rest that is released at the start, such as "
        "'fx=10'.",
    ),
]
SettlingBandOption = Annotated[
    str | None,
    typer.Option(
        metavar="LENGTH",
        help="Distance from the rest position at the end below which the tool of an elastic machine "
        "has settled, such as 5um.",
    ),
]
MotorStateOption = Annotated[
    str | None,
    typer.Option(
        help="State of the motors of an elastic machine: locked (they follow the motion exactly, default) "
        "or servo (position loops control them).",
    ),
]
ServoGainsOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="Gains of position loops (1/s), gains of speed loops (N s/m, N m s/rad) and their "
        "integral times, such as '*.position=50,motor.speed=2e4'.",
    ),
]
BandwidthOption = Annotated[
    str | None,
    typer.Option(
        metavar="FREQUENCY",
        help="Bandwidth of the position loops whose gains are not set, such as '20 Hz' or 100 (rad/s).",
    ),
]
FeedforwardOption = Annotated[
    str | None,
    typer.Option(
        help="Feed-forward of the position loops: none, speed (of the reference, default), or force "
        "(speed, and the force of the undeformed machine).",
    ),
]


@command(out=TABLE.of("the simulated motion"), json_file=RESULT, figure=FIGURE)
def simulate(
    machine: MachineArgument,
    options: tl.SimulationOptions,
    coupling: tl.FmuCoupling,
    side: SideOption,
    free: FreeOption = False,
    spring_frequency: SpringFrequencyOption = f"{FreeMotionOptions.frequency:g}",
    amplitude: AmplitudeOption = f"{FreeMotionOptions.amplitude:g}",
    motion: MotionOption = None,
    elastic: ElasticOption = False,
    damping: DampingOption = None,
    release: ReleaseOption = None,
    settling_band: SettlingBandOption = None,
    motor_state: MotorStateOption = None,
    servo_gains: ServoGainsOption = None,
    bandwidth: BandwidthOption = None,
    feedforward: FeedforwardOption = None,
    out: Path | None = None,
    within_limits: WithinLimitsOption = False,
    threads: WorkersOption = "1",
) -> None:
    """Simulate constant forces, free motion, an inverse/forward dynamics round trip, or deformation.

    Cables pull and can become slack; without --force their winches are locked at the start. With
    --fmu, a third-party FMU is an actuator or a drive. Exit code 1 when the simulation ends early,
    when the errors of energy, loops or the round trip exceed their limits, or when the motion goes
    beyond a stop (stops exert no force: add an event at them).
    """
    hertz = frequency("spring_frequency", spring_frequency)
    radians = angle("amplitude", amplitude)
    deformation = {
        "damping": damping,
        "release": release,
        "settling_band": settling_band,
        "motor_state": motor_state,
        "servo_gains": servo_gains,
        "bandwidth": bandwidth,
        "feedforward": feedforward,
    }
    if elastic:
        _require_elastic(options, coupling, free=free)
        model = load_model(machine, side, threads=threads)
        # The options class converts texts with units.
        settings: dict[str, Any] = {
            name: value for name, value in deformation.items() if value is not None
        }
        elastic_options = tl.ElasticSimulationOptions(
            duration=options.duration, wrench=options.wrench, pose=options.pose, **settings
        )
        deformed = tl.simulate_elastic(model, motion, elastic_options)
        finish(deformed, log_file(out, deformed.log), within_limits=within_limits)
        return
    _refuse_without_elastic(deformation)
    simulation_options = _simulation_options(options, free, hertz, radians, motion, out)
    model = load_model(machine, side, threads=threads)
    with bar("simulation") as progress:
        if coupling == tl.FmuCoupling():
            result = tl.simulate(model, simulation_options, progress=progress)
        else:
            result = tl.co_simulate(model, simulation_options, coupling, progress=progress)
    files = [] if isinstance(result, FreeMotionComparison) else [log_file(out, result.log)]
    finish(result, *files, within_limits=within_limits)


#: Options of `tauloop.SimulationOptions` that a simulation of deformation uses too.
ELASTIC_FIELDS = ("duration", "wrench", "pose")


def _require_elastic(
    options: tl.SimulationOptions, coupling: tl.FmuCoupling, *, free: bool
) -> None:
    """Refuse options that a simulation of deformation does not have.

    Raises:
        tl.InputError: such an option differs from its default.
    """
    ignored = [name for name in _changed(options) if name not in ELASTIC_FIELDS]
    if free:
        ignored.append("--free")
    if coupling != tl.FmuCoupling():
        ignored.append("--fmu")
    _refuse(ignored, "--elastic")


def _refuse_without_elastic(deformation: Mapping[str, object]) -> None:
    """Refuse options of deformation in a simulation without deformation.

    Raises:
        tl.InputError: at least one of them has a value.
    """
    tl.InputError.raise_if_any(
        tl.Problem(where=name, what="has an effect only with --elastic", remedy="add --elastic")
        for name, value in deformation.items()
        if value is not None
    )


def _changed(options: tl.SimulationOptions) -> list[str]:
    """Return the names of options that differ from their defaults."""
    defaults = tl.SimulationOptions()
    return [
        item.name
        for item in fields(options)
        if getattr(options, item.name) != getattr(defaults, item.name)
    ]


def _refuse(names: list[str], switch: str) -> None:
    """Refuse options that have no effect with another option.

    Args:
        names: names of the options.
        switch: the other option, such as ``--elastic``.

    Raises:
        tl.InputError: `names` is not empty.
    """
    tl.InputError.raise_if_any(
        tl.Problem(where=name, what=f"has no effect with {switch}", remedy="omit it")
        for name in names
    )


def _simulation_options(
    options: tl.SimulationOptions,
    free: bool,
    frequency: float,
    amplitude: float,
    motion: Path | None,
    out: Path | None,
) -> tl.SimulationOptions | FreeMotionOptions | RoundTripOptions:
    """Return the options of the requested simulation.

    Raises:
        tl.InputError: an option has no effect on this simulation.
    """
    if not free and motion is None:
        return options
    switch = "--motion"
    effective = ["duration", "integration"]
    if free:
        switch = "--free"
    else:
        effective.append("route")
    ignored = [name for name in _changed(options) if name not in effective]
    if free and out is not None:
        ignored.append("--out")
    if free and motion is not None:
        ignored.append("--motion")
    _refuse(ignored, switch)
    if motion is None:
        return FreeMotionOptions(
            duration=options.duration or FreeMotionOptions.duration,
            frequency=frequency,
            amplitude=amplitude,
            integration=options.integration,
        )
    return RoundTripOptions(
        motion=motion,
        duration=options.duration,
        route=options.route,
        integration=options.integration,
    )
