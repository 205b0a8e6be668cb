"""``tauloop ballbar | play``: a machine with its drive lines on a circle, and how play shows at its tool."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tauloop.assembly.limits import require_within_limits
from tauloop.assembly.named_values import full_name, numbers_of, ranges_of
from tauloop.assembly.ports import Port
from tauloop.cli.announced import announced
from tauloop.cli.drive import assigned_values
from tauloop.cli.machine import MachineArgument, WithinLimitsOption, load_machine
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
from tauloop.drives.machine.circle import Circle, CircleTest, circle_test
from tauloop.drives.machine.lines import play_at_the_load
from tauloop.drives.machine.path import PATH_INTEGRATOR, Variation
from tauloop.drives.machine.play import PLAY, PlayMap, play_map, work_volume
from tauloop.errors import InputError, Problem
from tauloop.files import write_file
from tauloop.mechanism.units import ONE
from tauloop.model import Model
from tauloop.report import save_figure
from tauloop.result import Status

#: What the variations are called on a command line.
WORDS = {
    "dual": Variation.AS_DESCRIBED,
    "one": Variation.ONE_MOTOR,
    "no-play": Variation.NO_PLAY,
    "rigid": Variation.RIGID,
}
NAMES = {Variation.AS_DESCRIBED: "two motors"}
COLUMNS = {
    "circular_deviation": "circular\ndeviation",
    "radius_error": "radius\nerror",
    "out_of_plane": "out of\nplane",
    "following_error": "following\nerror",
    "following_rms": "following,\nRMS",
}
#: Points along each axis of a section and of the work volume.
SECTION, VOLUME = 61, 13
#: What leaves poses out of the map is named up to so many.
NAMED = 6


@reports_errors
@writes(figure=figure_ending)
def ballbar(
    machine: MachineArgument,
    plane: Annotated[str, typer.Option(help="The two positions that move, such as 'x,y'.")] = "x,y",
    radius: Annotated[float, typer.Option(help="Of the circle, m.")] = 0.1,
    speed: Annotated[float, typer.Option(help="On the circle, m/s.")] = 0.5,
    center: Annotated[
        str | None, typer.Option(help="Of the circle, such as 'x=0.1,y=0' (m); the reference pose without it.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(help=f"Variations of the drives: {', '.join(WORDS)}; all without it.")
    ] = None,
    set_: Annotated[
        str | None,
        typer.Option("--set", help="Other values of drive lines, such as 'track1.motor.drive.gap=1e-4'."),
    ] = None,
    presliding: Annotated[
        float | None,
        typer.Option(
            help="Coulomb friction of the machine itself as LuGre friction, whose bristles bend so far, um or urad."
        ),
    ] = None,
    rtol: Annotated[float, typer.Option(help="Relative error of an integration step.")] = PATH_INTEGRATOR.rtol,
    interpreted: Annotated[
        bool, typer.Option("--interpreted", help="Step by step in Python, thousands of times slower.")
    ] = False,
    figure: Annotated[Path | None, typer.Option(help="Draw it into this file (PNG, PDF, SVG).")] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Drive a machine with drive lines round a circle: with two motors, with one, without play, and with rigid drives.

    Radial figures are about the circle that fits best (ISO 230-4). Exit code 1 when a run ends early or is doubtful.
    """
    mechanism = load_machine(machine)
    port = announced(Model(mechanism)).platform.ports.position
    columns = [full_name(port.columns, part.strip(), "--plane") for part in plane.split(",") if part.strip()]
    if len(columns) != 2:
        raise InputError(
            Problem(where="--plane", what=f"{plane!r} names {len(columns)} positions", remedy="such as x,y")
        )
    at = {full_name(port.columns, key, "--center"): value for key, value in numbers_of(center, "--center").items()}
    wrong = [name for name in at if name not in columns]
    if wrong or (at and len(at) != 2):
        remedy = f"give {columns[0]} and {columns[1]}"
        raise InputError(Problem(where="--center", what=f"{center!r} is no point of the plane", remedy=remedy))
    found = circle_test(
        mechanism,
        Circle(
            columns=(columns[0], columns[1]),
            radius=radius,
            speed=speed,
            center=(at[columns[0]], at[columns[1]]) if at else None,
        ),
        variations=_variations(only),
        values=assigned_values(set_),
        integrator=replace(PATH_INTEGRATOR, rtol=rtol, atol=1e-2 * rtol),
        presliding=None if presliding is None else 1e-6 * presliding,
        interpreted=interpreted,
    )
    if within_limits:
        require_within_limits(found.evidence)
    if figure is not None:
        from tauloop.report.drive_circle_figure import circle_figure

        title = f"{mechanism.name}: circle of {1e3 * radius:g} mm at {speed:g} m/s"
        save_figure(circle_figure(found, title=title, names=NAMES), figure)
    if as_json:
        print_json(_circle_document(mechanism.name, found))
    else:
        _print_circle(mechanism.name, found, figure)
    if found.ends or found.status is not Status.OK:
        raise typer.Exit(FAILED)


def _variations(text: str | None) -> list[Variation] | None:
    if text is None:
        return None
    words = [part.strip() for part in text.split(",") if part.strip()]
    wrong = [word for word in words if word not in WORDS]
    if wrong or not words:
        what = f"{', '.join(map(repr, wrong)) or 'nothing'} is no variation"
        raise InputError(Problem(where="--only", what=what, remedy=f"one or more of {', '.join(WORDS)}"))
    return [WORDS[word] for word in words]


def _name(variation: Variation) -> str:
    return NAMES.get(variation, variation.value)


def _circle_document(name: str, found: CircleTest) -> dict[str, object]:
    return {
        "machine": name,
        "status": found.status,
        "circle": found.circle,
        "unit": "um",
        "runs": {
            _name(variation): lap.figures
            | {
                "steps": lap.motion.steps,
                "events": lap.motion.events,
                "angle_deg": np.degrees(lap.angle),
                "radial_um": 1e6 * lap.radial,
            }
            for variation, lap in found.laps.items()
        },
        "ended_early": {_name(variation): reason for variation, reason in found.ends.items()},
        "evidence": found.evidence,
    }


def _print_circle(name: str, found: CircleTest, figure: Path | None) -> None:
    screen = console()
    circle = found.circle
    title = f"{name}: circle of {1e3 * circle.radius:g} mm in {', '.join(circle.columns)} at {circle.speed:g} m/s [um]"
    rows = table(title, "drives", *COLUMNS.values(), numeric=tuple(range(1, len(COLUMNS) + 1)))
    for variation, lap in found.laps.items():
        rows.add_row(_name(variation), *(f"{lap.figures[key]:.2f}" for key in COLUMNS))
    screen.print(rows)
    for variation, reason in found.ends.items():
        screen.print(f"{_name(variation)}: {reason}")
    for line in found.advice:
        screen.print(line)
    if figure is not None:
        screen.print(f"written: {figure}")


@reports_errors
@writes(figure=figure_ending, out=any_ending)
def play(
    machine: MachineArgument,
    amount: Annotated[
        str,
        typer.Option(
            "--play",
            help="From end to end, um or urad: of every actuator, or 'track1.motor=10,...'; or 'lines': their gaps.",
        ),
    ] = f"{1e6 * PLAY:g}",
    plane: Annotated[
        str | None, typer.Option(help="Positions of the section, such as 'y,z'; the first two without it.")
    ] = None,
    section: Annotated[str | None, typer.Option(help="Positions that are held in it, such as 'x=0.1' (SI).")] = None,
    within: Annotated[
        str | None,
        typer.Option("--range", help="Work volume, such as 'x=-0.2:0.2'; as in the machine file without."),
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the section into this file (PNG, PDF, SVG).")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the map of the volume as NetCDF.")] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """How play at the actuators shows at the tool, over the work volume and in a section of it.

    Exit code 1 when the map is doubtful: no pose can be used, or forward kinematics disagrees.
    """
    model = announced(Model(load_machine(machine)), within_limits)
    port = model.platform.ports.position
    given = play_at_the_load(model.mechanism) if amount == "lines" else _amounts(amount)
    if within is None:
        volume = work_volume(model, VOLUME)
    else:
        ranges = {full_name(port.columns, key, "--range"): ends for key, ends in ranges_of(within).items()}
        volume = {name: np.linspace(*ranges[name], VOLUME) for name in port.columns if name in ranges}
    whole = play_map(model, dict(list(volume.items())[:3]), play=given)
    cut = _section(port, volume, plane)
    held = {full_name(port.columns, key, "--section"): value for key, value in numbers_of(section, "--section").items()}
    if figure is not None:
        from tauloop.report.play_figure import play_figure

        much = "its drive lines" if amount == "lines" else f"{amount} um (urad)"
        title = f"{model.mechanism.name}: tool displacement by play of {much} [um]"
        save_figure(play_figure(play_map(model, cut, play=given, fixed=held), title=title), figure)
    if out is not None:
        write_file(out, lambda path: whole.data.to_netcdf(path, engine="scipy"))
    if as_json:
        document = {"machine": model.mechanism.name, "status": whole.status, "play": whole.play, "unit": "m"}
        axes = {name: [float(values[0]), float(values[-1])] for name, values in volume.items()}
        print_json(
            document
            | {
                "volume": axes,
                "tool": whole.figures(),
                "excluded_by": whole.space.excluded_by(),
                "evidence": whole.evidence,
            }
        )
    else:
        _print_play(model, whole, (figure, out))
    if whole.status is not Status.OK:
        raise typer.Exit(FAILED)


def _amounts(text: str) -> float | dict[str, float]:
    """Play, SI."""
    try:
        return 1e-6 * float(text)
    except ValueError:
        return {name: 1e-6 * value for name, value in numbers_of(text, "--play", ONE).items()}


def _section(port: Port, volume: dict[str, np.ndarray], plane: str | None) -> dict[str, np.ndarray]:
    names = list(volume)[:2]
    if plane is not None:
        names = [full_name(port.columns, part.strip(), "--plane") for part in plane.split(",") if part.strip()]
    missing = [name for name in names if name not in volume]
    if len(names) != 2 or missing:
        what = f"{', '.join(missing)} has no range" if missing else f"{plane!r} names {len(names)} positions"
        raise InputError(Problem(where="--plane", what=what, remedy="two of the work volume's; see --range"))
    return {name: np.linspace(volume[name][0], volume[name][-1], SECTION) for name in names}


def _print_play(model: Model, found: PlayMap, files: tuple[Path | None, ...]) -> None:
    screen = console()
    units = dict(zip(*model.output_ports("actuators"), strict=True))
    rows = table(
        f"{model.mechanism.name}: displacement of the tool by play, over {int(found.space.usable.sum())} poses",
        *("play of", "play", "unit", "least\n[um]", "median\n[um]", "largest\n[um]", "largest\nover play"),
        numeric=(1, 3, 4, 5, 6),
    )
    rows.columns[0].no_wrap = True
    for name, figures in found.figures().items():
        is_one = name in found.play
        amount = 1e6 * found.play[name] if is_one else 0.0
        unit = ("urad" if units[name] == "N m" else "um") if is_one else ""
        ratio = f"{1e6 * figures['largest'] / amount:.3g}" if amount else ""
        shown = [f"{1e6 * figures[key]:.3g}" for key in ("least", "median", "largest")]
        rows.add_row(name if is_one else "all, worst case", f"{amount:g}" if is_one else "", unit, *shown, ratio)
    screen.print(rows)
    axes = ", ".join(
        f"{name} {float(values.min()):g} to {float(values.max()):g}"
        for name, values in ((str(d), found.data[d].to_numpy()) for d in found.data["worst"].dims)
    )
    screen.print(f"work volume: {axes}")
    for name, count in list(found.space.excluded_by().items())[:NAMED]:
        screen.print(f"left out, by {name}: {count} poses")
    screen.print(str(found.evidence[-1]))
    for line in found.advice:
        screen.print(line)
    for path in files:
        if path is not None:
            screen.print(f"written: {path}")
