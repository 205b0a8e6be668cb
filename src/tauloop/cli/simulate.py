"""``tauloop simulate``: forward dynamics in time: constant forces, conservative swings, round trips of motions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tauloop.assembly.limits import beyond_limits, require_within_limits
from tauloop.assembly.ports import Port
from tauloop.cli.announced import announced
from tauloop.cli.assigned import TOOL, assigned
from tauloop.cli.event_options import UntilOption, WatchOption, events
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
from tauloop.cli.simulate_cables import CableStart, cables_simulated, finish_cables, refuse_beside_cables
from tauloop.errors import InputError, Problem, Problems
from tauloop.logs import read_log, samples, write_log
from tauloop.logs.channels import TIME, Channel, build_log
from tauloop.logs.matching import channel_problems
from tauloop.mechanism.cables import cables
from tauloop.model import Model
from tauloop.report import save_figure
from tauloop.report.simulation_figure import comparison_figure, round_trip_figure, simulation_figure
from tauloop.result import Status
from tauloop.simulation import (
    ConstantForce,
    DormandPrince,
    Event,
    ExtendedSpace,
    IndependentCoordinates,
    Integrator,
    Multipliers,
    Projected,
    Radau,
    Route,
    RungeKutta4,
    Simulation,
    Simulator,
    start_state,
)
from tauloop.simulation import (
    simulate as run,
)
from tauloop.simulation.round_trip import RoundTrip, round_trip
from tauloop.simulation.spline_motion import SplineMotion
from tauloop.simulation.swing import AMPLITUDE, FREQUENCY, Swing
from tauloop.simulation.swing import swing as hang

ROUTES: dict[str, Route] = {
    "independent": IndependentCoordinates(),
    "projected": Projected(),
    "extended": ExtendedSpace(),
    "extended-free": ExtendedSpace(stabilisation=None),
    "multipliers": Multipliers(),
    "multipliers-free": Multipliers(stabilisation=None),
}
#: A swing shall keep its energy to this share of its largest kinetic energy, and its loops to this, m, by the routes
#: on which nothing drifts.
ENERGY_KEPT, LOOPS_KEPT, EXACT = 1e-8, 1e-10, ("independent", "projected")
#: A round trip shall return to within this, m.
RETURNED = 1e-9


@reports_errors
@writes(out=log_ending, figure=figure_ending)
def simulate(
    machine: MachineArgument,
    side: SideOption = None,
    duration: Annotated[float | None, typer.Option(help="Seconds; 10 for a swing, else 1, or as the motion.")] = None,
    swing: Annotated[
        bool, typer.Option("--swing", help="Without friction, in springs at its drives, pushed: by every route.")
    ] = False,
    frequency: Annotated[float, typer.Option(help="Of the swing's springs, Hz.")] = FREQUENCY,
    amplitude: Annotated[float, typer.Option(help="Of the swing, rad or characteristic lengths.")] = AMPLITUDE,
    motion: Annotated[
        Path | None,
        typer.Option(
            help="Round trip of a motion: CSV or Parquet with columns time and position.NAME of the platform; its "
            "forces by inverse dynamics are fed to forward dynamics."
        ),
    ] = None,
    force: Annotated[
        str | None, typer.Option(help="Constant forces, such as 'motor1=1.5,motor2=-2' (N, N m); zero if not named.")
    ] = None,
    wrench: Annotated[
        str | None, typer.Option(help="At the tool, such as 'fx=10,mz=0.5' (N, N m, base frame).")
    ] = None,
    position: Annotated[
        str | None, typer.Option(help="Start, such as 'platform.x=0.1' (SI); the rest as at reference.")
    ] = None,
    velocity: Annotated[str | None, typer.Option(help="Start velocity, likewise; zero where not named.")] = None,
    until: UntilOption = None,
    watch: WatchOption = None,
    route: Annotated[str, typer.Option(help=f"{', '.join(ROUTES)}.")] = "independent",
    rtol: Annotated[float, typer.Option(help="Relative tolerance of a step.")] = 1e-11,
    atol: Annotated[float, typer.Option(help="Absolute tolerance of a step, SI.")] = 1e-12,
    step: Annotated[float | None, typer.Option(help="Fixed steps of this length (s), by Runge and Kutta.")] = None,
    stiff: Annotated[bool, typer.Option("--stiff", help="Implicit integrator, for stiff machines.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the simulated motion to this CSV or Parquet file.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw it into this file (PNG, PDF, SVG).")] = None,
    preload: Annotated[
        str | None, typer.Option(help="Tensions (N) at which held winches hold the start, as of `tauloop dynamics`.")
    ] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Simulate a machine: constant forces (a free fall without any), a swing, or the round trip of a motion.

    Cables pull, become slack and are tautened again; without --force their winches are held as they hold the start at
    rest. Exit code 1 when the end is not reached, energy, loops or the round trip miss their limits, or the motion goes
    beyond a stop, which does not hold it (put an event there).
    """
    starts = {"--force": force, "--wrench": wrench, "--position": position, "--velocity": velocity}
    _check(swing, motion, route, starts | {"--until": until or None, "--watch": watch or None})
    mechanism = load_machine(machine, side)
    integrator = _integrator(rtol, atol, step, stiff)
    model = announced(Model(mechanism))
    if cables(mechanism):
        refuse_beside_cables({"--swing": swing, "--motion": motion})
        start = CableStart(position=position, velocity=velocity, force=force, wrench=wrench, preload=preload)
        chosen = Projected() if route == "independent" else ROUTES[route]
        looked_for = events(model, until, watch)
        simulated = cables_simulated(model, duration or 1.0, start, chosen, integrator, looked_for)
        finish_cables(simulated, out, figure, within_limits, as_json)
        return
    if swing:
        ready = hang(mechanism, frequency=frequency, amplitude=amplitude)
        _swing(ready, duration or 10.0, integrator, within_limits, figure, as_json)
        return
    if motion is not None:
        _round_trip(model, motion, duration, ROUTES[route], integrator, within_limits, out, figure, as_json)
        return
    looked_for = events(model, until, watch)
    found = _simulated(model, duration or 1.0, force, wrench, position, velocity, ROUTES[route], integrator, looked_for)
    if within_limits:
        require_within_limits(found.evidence)
    if out is not None:
        _write(out, model, found)
    if figure is not None:
        save_figure(simulation_figure(found, title=f"Simulation of {mechanism.name}"), figure)
    if as_json:
        print_json(found.as_dict())
    else:
        _print(found, out, figure)
    if found.status is not Status.OK:
        raise typer.Exit(FAILED)


def _check(swing: bool, motion: Path | None, route: str, given: Mapping[str, object]) -> None:
    problems = Problems()
    if route not in ROUTES:
        problems.add("--route", f"{route!r} is unknown", f"one of {', '.join(ROUTES)}")
    if swing and motion is not None:
        problems.add("--swing", "given beside --motion", "give one of them")
    if swing or motion is not None:
        what = f"means nothing beside {'--swing' if swing else '--motion'}"
        problems += [
            Problem(where=name, what=what, remedy="leave it out") for name, value in given.items() if value is not None
        ]
    InputError.raise_if_any(problems)


def _integrator(rtol: float, atol: float, step: float | None, stiff: bool) -> Integrator:
    if stiff and step is not None:
        raise InputError(Problem(where="--stiff", what="given beside --step", remedy="give one of them"))
    if step is not None:
        return RungeKutta4(step=step)
    return Radau(rtol=rtol, atol=atol) if stiff else DormandPrince(rtol=rtol, atol=atol)


def _simulated(
    model: Model,
    duration: float,
    force: str | None,
    wrench: str | None,
    position: str | None,
    velocity: str | None,
    route: Route,
    integrator: Integrator,
    looked_for: tuple[Event, ...],
) -> Simulation:
    ports = model.platform.ports.motion
    names, units = model.output_ports("actuators")
    at_reference = model.platform_position(model.assembly.q)
    start = assigned(ports["position"], "--position", position, at_reference)
    moving = assigned(ports["velocity"], "--velocity", velocity, np.zeros(ports["velocity"].size))
    forces = assigned(Port(name="force", columns=names, units=units), "--force", force, np.zeros(len(names)))
    pull = None if wrench is None else assigned(TOOL, "--wrench", wrench, np.zeros(6))
    q, v = start_state(model, start, moving)
    acting = ConstantForce(tuple(forces))
    return run(
        model, duration, q=q, v=v, force=acting, wrench=pull, route=route, integrator=integrator, events=looked_for
    )


def _swing(
    ready: Swing, duration: float, integrator: Integrator, within_limits: bool, figure: Path | None, as_json: bool
) -> None:
    """The same swing by every route, and whether the exact ones keep energy and loops."""
    results: dict[str, Simulation] = {}
    left_out: dict[str, str] = {}
    for name, route in ROUTES.items():
        try:
            simulator = Simulator(ready.model, route=route, integrator=integrator)
        except InputError as error:
            left_out[name] = str(error.problems[0].what)
            continue
        results[name] = simulator.run(duration, q=ready.q, v=ready.v)
    beyond = beyond_limits(results[EXACT[0]].evidence)
    if within_limits:
        require_within_limits(beyond)
    good = all(_keeps(results[name]) for name in EXACT) and not beyond
    if figure is not None:
        save_figure(comparison_figure(results, title=f"Conservative swing of {ready.model.mechanism.name}"), figure)
    if as_json:
        print_json(
            {
                "status": "ok" if good else "failed",
                "springs": ready.springs,
                "energy_limit": ENERGY_KEPT,
                "loop_limit_m": LOOPS_KEPT,
                "routes": {name: result.as_dict() for name, result in results.items()},
                "left_out": left_out,
            }
        )
    else:
        _print_swing(ready, duration, results, left_out, figure)
        print_doubts(beyond)
    if not good:
        raise typer.Exit(FAILED)


def _keeps(result: Simulation) -> bool:
    return (
        result.problem is None
        and result.relative_energy_error <= ENERGY_KEPT
        and float(result.residual.max()) <= LOOPS_KEPT
    )


def _print_swing(
    ready: Swing, duration: float, results: dict[str, Simulation], left_out: dict[str, str], figure: Path | None
) -> None:
    screen = console()
    springs = table("Springs at the drives", "freedom", "stiffness", "unit", "rest position", "unit", numeric=(1, 3))
    for spring in ready.springs:
        of_rest = "rad" if spring.unit.endswith("rad") else "m"
        springs.add_row(spring.freedom, f"{spring.stiffness:.5g}", spring.unit, f"{spring.rest:.5g}", of_rest)
    screen.print(springs)
    rows = table(
        f"Conservative swing of {ready.model.mechanism.name}, {duration:g} s",
        *("route", "energy error,\nof largest kinetic", "largest loop\nresidual [m]", "steps", "evaluations", ""),
        numeric=(1, 2, 3, 4),
    )
    for name, result in results.items():
        verdict = ("keeps" if _keeps(result) else "FAILS") if name in EXACT else "reported"
        rows.add_row(
            name,
            f"{result.relative_energy_error:.1e}",
            f"{result.residual.max():.1e}",
            str(len(result.steps)),
            str(result.steps.evaluations),
            verdict if result.problem is None else f"{result.problem.where}: {result.ending.value}",
        )
    screen.print(rows)
    for name, reason in left_out.items():
        screen.print(f"not run: {name}: {reason}")
    screen.print(f"Limits: energy {ENERGY_KEPT:.0e}, loops {LOOPS_KEPT:.0e} m, for {' and '.join(EXACT)}.")
    if figure is not None:
        screen.print(f"written: {figure}")


def _round_trip(
    model: Model,
    path: Path,
    duration: float | None,
    route: Route,
    integrator: Integrator,
    within_limits: bool,
    out: Path | None,
    figure: Path | None,
    as_json: bool,
) -> None:
    port = model.platform.ports.position
    log = read_log(path)
    InputError.raise_if_any(
        channel_problems(log, {"position": dict(zip(port.columns, port.units, strict=True))}, str(path))
    )
    time = log[TIME].to_numpy()
    spline = SplineMotion(model, time - time[0], samples(log, "position", port.columns))
    found = round_trip(model, spline, min(duration or np.inf, spline.duration), route=route, integrator=integrator)
    if within_limits:
        require_within_limits(found.simulation.evidence)
    good = found.simulation.problem is None and found.position_error <= RETURNED and not found.simulation.beyond_stops
    if out is not None:
        _write(out, model, found.simulation)
    if figure is not None:
        save_figure(round_trip_figure(found, title=f"Round trip of {model.mechanism.name}"), figure)
    if as_json:
        print_json(
            {
                "status": "ok" if good else "failed",
                "largest_position_error_m": found.position_error,
                "largest_turning_error_rad": found.turning_error,
                "limit_m": RETURNED,
                "simulation": found.simulation.as_dict(),
            }
        )
    else:
        _print_round_trip(found, out, figure)
    if not good:
        raise typer.Exit(FAILED)


def _print_round_trip(found: RoundTrip, out: Path | None, figure: Path | None) -> None:
    _print(found.simulation, out, figure)
    rows = table("Round trip: inverse, then forward dynamics", "coordinate", "largest error", "unit", numeric=(1,))
    for name, unit, column in zip(found.columns, found.units, np.abs(found.error).T, strict=True):
        rows.add_row(name, f"{column.max():.1e}", unit)
    screen = console()
    screen.print(rows)
    screen.print(f"largest distance {found.position_error:.1e} m (limit {RETURNED:.0e} m)")


def _print(found: Simulation, out: Path | None, figure: Path | None) -> None:
    screen = console()
    model = found.system.model
    entry = model.platform.ports
    rows = table(
        f"{found.machine}: {found.time[-1]:.6g} of {found.duration:g} s, {found.ending.value}",
        *("coordinate", "start", "end", "unit"),
        numeric=(1, 2),
    )
    for i, unit in zip(entry.q, entry.position.units, strict=True):
        rows.add_row(found.coordinate_names[i], f"{found.q[0, i]:.6g}", f"{found.q[-1, i]:.6g}", unit)
    screen.print(rows)
    for item in found.evidence:
        screen.print(str(item), soft_wrap=True)
    for event in found.occurrences:
        screen.print(f"{event.time:.9g} s: {event.name}{', the end' if event.is_terminal else ''}")
    steps = found.steps
    screen.print(f"{len(steps)} steps, {steps.rejected} rejected, {steps.evaluations} evaluations")
    if found.problem is not None:
        screen.print(str(found.problem))
    for path in (out, figure):
        if path is not None:
            screen.print(f"written: {path}")


def _write(path: Path, model: Model, found: Simulation) -> None:
    """The platform's motion, the actuators' positions and forces, as a log that `tauloop dynamics` reads."""
    entry, units = model.platform.ports, model.output_ports("actuators")[1]
    signals = [
        Channel(quantity="position", channel=name, values=found.q[:, i], unit=unit)
        for i, name, unit in zip(entry.q, entry.position.columns, entry.position.units, strict=True)
    ]
    signals += [
        Channel(quantity="velocity", channel=name, values=found.v[:, i], unit=unit)
        for i, name, unit in zip(entry.v, entry.velocity.columns, entry.velocity.units, strict=True)
    ]
    signals += [
        Channel(quantity="force", channel=name, values=found.force[:, k], unit=unit)
        for k, (name, unit) in enumerate(zip(found.actuator_names, units, strict=True))
    ]
    write_log(path, build_log(found.time, signals))
