"""``tauloop machines | show | check | schema``: what a machine is, and whether it works as described."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from typing import Annotated, Any

import numpy as np
import typer

from tauloop.assembly.assembly import spread
from tauloop.assembly.entry_ports import coordinate_units
from tauloop.cli.machine import MachineArgument, RodsOption, SideOption, load_machine
from tauloop.cli.output import FAILED, JsonOption, console, print_json, reports_errors, table
from tauloop.errors import TauloopError
from tauloop.formats import load
from tauloop.kinematics.inspection import Inspection, inspect
from tauloop.mechanism import json_schema, shipped_machines
from tauloop.mechanism.cables import cables
from tauloop.mechanism.drive_file import DRIVE
from tauloop.mechanism.drive_file import FORMAT as DRIVE_FORMAT
from tauloop.mechanism.drive_line import DriveLine, DualDrive, ElasticBacklash, ExactBacklash
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model
from tauloop.programs.catalogue import FORWARD_DYNAMICS, INVERSE_DYNAMICS
from tauloop.programs.program import LinearBlock


@reports_errors
def machines(as_json: JsonOption = False) -> None:
    """List the shipped machines."""
    found = [(name, load(name)) for name in shipped_machines()]
    if as_json:
        print_json({"machines": [{"name": name, **_counts(machine)} for name, machine in found]})
        return
    rows = table("Shipped machines", "name", "bodies", "joints", "rods", "motors", "what it is", numeric=(1, 2, 3, 4))
    rows.columns[0].no_wrap = True
    for name, machine in found:
        counts = _counts(machine)
        rows.add_row(
            name, *(str(counts[key]) for key in ("bodies", "joints", "rods", "actuators")), str(counts["summary"])
        )
    console().print(rows)


def _counts(machine: Mechanism) -> dict[str, object]:
    return {
        "bodies": len(machine.bodies),
        "joints": len(machine.joints),
        "rods": len(machine.rods),
        "actuators": len(machine.actuators),
        "summary": first_sentence(machine.description),
    }


def first_sentence(text: str) -> str:
    """The first sentence of a description, on one line."""
    return re.split(r"\. |: ", " ".join(text.split()), maxsplit=1)[0].rstrip(".")


@reports_errors
def show(
    machine: MachineArgument,
    side: SideOption = None,
    rods: RodsOption = False,
    parameters: Annotated[
        bool, typer.Option("--parameters", help="List all leaf parameters with their sources.")
    ] = False,
    blocks: Annotated[
        bool, typer.Option("--blocks", help="Show how equations are sorted into blocks and solved.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a machine: coordinates, mobility, loops, actuators, parameters."""
    mechanism = load_machine(machine, side, rods)
    model = Model(mechanism)
    if as_json:
        linear = {"linear_blocks": _linear_list(model)} if blocks and not model.assembly.findings else {}
        print_json(_as_dict(mechanism, model) | linear)
        return
    out = console()
    out.print(mechanism.name, style="bold")
    out.print(reflowed(mechanism.description))
    out.print()
    out.print(_summary(model, inspect(model)))
    out.print(_coordinates(model))
    if any(actuator.drive for actuator in mechanism.actuators):
        out.print(_drive_lines(mechanism))
    if parameters:
        out.print(_parameters(mechanism))
    if blocks:
        out.print(_blocks(model))
        out.print(_linear_blocks(model))


def reflowed(text: str) -> str:
    """A description with its paragraphs on one line each; items that begin with a dash stay apart."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return re.sub(r"(?<=[^\n])\n(?=[^\n-])", " ", "\n".join(lines))


def _as_dict(mechanism: Mechanism, model: Model) -> dict[str, object]:
    return {
        "name": mechanism.name,
        "description": mechanism.description,
        "assembly": model.assembly.as_dict(),
        "actuators": [
            {"name": a.name, "drives": {name: mechanism.value(ratio) for name, ratio in a.drives}}
            | ({"drive_line": _drive_line(mechanism, a.drive)} if a.drive is not None else {})
            for a in mechanism.actuators
        ],
        "parameters": [
            {
                "name": p.name,
                "value": p.value,
                "unit": p.unit,
                "group": p.group,
                "status": p.status,
                "source": p.source,
                "lower": p.lower if np.isfinite(p.lower) else None,
                "upper": p.upper if np.isfinite(p.upper) else None,
            }
            for p in mechanism.parameters
        ],
        "dynamic_parameters": [
            {"name": p.name, "unit": p.unit, "value": float(value)}
            for p, value in zip(model.parameters, model.pi, strict=True)
        ],
        "blocks": []
        if model.assembly.findings
        else [
            {"equations": list(b.equations), "unknowns": list(b.unknowns), "method": b.method}
            for b in model.platform.blocks
        ],
    }


def _tension_margin(model: Model) -> str:
    """How far cables can stay within their bounds at the reference pose; empty without any, or where none holds it."""
    if not cables(model.mechanism) or model.assembly.passive or model.assembly.findings:
        return ""
    try:
        margin = float(model.platform.tension_margin(model.platform_position(model.assembly.q)))
    except TauloopError as error:
        return f"not determined: {error.problems[0].where} {error.problems[0].what}"
    return f"{margin:.4g} N at the reference pose, at rest" + (": cables cannot hold it" if margin < 0.0 else "")


def _summary(model: Model, found: Inspection) -> object:
    assembly, names = model.assembly, model.topology.velocity_names
    rows = table("", "", "")
    rows.show_header = False
    loop_names = assembly.loops.names
    rows.add_row("mobility", str(assembly.mobility))
    rows.add_row("independent", ", ".join(names[i] for i in assembly.independent))
    rows.add_row("actuators", ", ".join(a.name for a in model.mechanism.actuators) or "none")
    if found.undriven:
        rows.add_row("passive", ", ".join(map(str, found.undriven)))
    if assembly.is_redundant:
        rows.add_row("redundant actuators", ", ".join(assembly.spare_actuators))
    rows.add_row("loop equations", f"{len(loop_names)}, rank {assembly.rank}")
    if assembly.dropped:
        rows.add_row("redundant", "\n".join(_by_element([loop_names[i] for i in assembly.dropped])))
    if assembly.frozen:
        rows.add_row("constant", ", ".join(names[i] for i in assembly.frozen))
    rows.add_row("loop residual", f"{assembly.residual:.1e} m at the reference pose")
    count = len(assembly.states)
    if assembly.substitute is not None:
        rows.add_row("pose of the file", f"singular, {assembly.substitute.text}")
    if loop_names:
        rows.add_row("loop condition", _conditions(assembly.platform_condition, count))
    rows.add_row("actuator condition", _conditions(assembly.actuator_condition, count))
    if margin := _tension_margin(model):
        rows.add_row("tension margin", margin)
    for problem in found.problems:
        rows.add_row("problem", str(problem))
    for note in found.notes:
        rows.add_row("note", str(note))
    return rows


def _conditions(values: np.ndarray, count: int) -> str:
    at, median, worst = ("singular" if value is None else f"{value:.3g}" for value in spread(values).values())
    return f"{at} at the reference pose; {median} median, {worst} worst of {count} poses"


def _by_element(names: list[str]) -> list[str]:
    """Names of loop equations, those of one element together."""
    grouped: dict[str, list[str]] = {}
    for name in names:
        element, _, what = name.partition(": ")
        grouped.setdefault(element, []).append(what)
    return [f"{element}: {', '.join(conditions)}" for element, conditions in grouped.items()]


def _coordinates(model: Model) -> object:
    rows = table("Coordinates at the reference pose", "name", "value", "unit", numeric=(1,))
    for name, value, unit in zip(
        model.topology.coordinate_names, model.assembly.q, coordinate_units(model.topology), strict=True
    ):
        degrees = f"{np.degrees(value):.4f}" if unit == "rad" else f"{value:.6f}"
        rows.add_row(name, degrees, "deg" if unit == "rad" else unit)
    return rows


def _drive_line(mechanism: Mechanism, line: DriveLine) -> dict[str, Any]:
    """What stands behind an actuator, in figures."""
    ratios, drive, value = line.ratios(), line.control.drive, mechanism.value
    played = (ElasticBacklash, ExactBacklash)
    period = line.control.sample_time
    return {
        "load": line.performance.of,
        "motors": [motor.name for motor in line.motors],
        "slave": drive.slave if isinstance(drive, DualDrive) else None,
        "inertias": [
            {"name": i.name, "value": value(i.value), "turns": i.turns, "ratio": value(ratios[i.name])}
            for i in line.inertias
            if i.name != line.performance.of
        ],
        "reflected": sum(value(i.value) * value(ratios[i.name]) ** 2 for i in line.inertias),
        "play": {c.name: value(c.compliance.gap) for c in line.connections if isinstance(c.compliance, played)},
        "sample_time": None if period is None else value(period),
    }


def _drive_lines(mechanism: Mechanism) -> object:
    rows = table(
        "Drive lines", "actuator", "motors", "bodies (motion over\nthe load's)", "inertia at\nthe load", "play [m, rad]"
    )
    rows.columns[0].no_wrap = True
    for actuator in mechanism.actuators:
        if actuator.drive is None:
            rows.add_row(actuator.name, "acts directly", "", "", "")
            continue
        found = _drive_line(mechanism, actuator.drive)
        motors = [f"{name} (slave)" if name == found["slave"] else name for name in found["motors"]]
        bodies = [f"{item['name']} ({item['ratio']:.4g})" for item in found["inertias"]]
        play = [f"{name} {gap:.3g}" for name, gap in found["play"].items()]
        unit = "kg" if not actuator.drive.inertia(found["load"]).turns else "kg m^2"
        inertia = f"{found['reflected']:.4g} {unit}"
        rows.add_row(actuator.name, "\n".join(motors), "\n".join(bodies), inertia, "\n".join(play) or "none")
    return rows


def _parameters(mechanism: Mechanism) -> object:
    rows = table("Leaf parameters", "name", "value", "unit", "group", "status", "source", numeric=(1,))
    for p in mechanism.parameters:
        rows.add_row(p.name, f"{p.value / p.scale:.6g}", p.unit, p.group, p.status, p.source)
    return rows


def _linear_counts(model: Model) -> Counter[tuple[str, LinearBlock]]:
    """How many linear blocks of each kind the dynamics have; redundant or passive machines may lack some of these."""
    found: Counter[tuple[str, LinearBlock]] = Counter()
    for spec in (INVERSE_DYNAMICS, FORWARD_DYNAMICS):
        with suppress(TauloopError):
            found.update((spec.name.replace("_", " "), block) for block in model.platform.program(spec).linear_blocks)
    return found


def _linear_list(model: Model) -> list[dict[str, object]]:
    return [
        {"function": function, "for": block.what, "size": block.size, "method": block.method, "count": count}
        for (function, block), count in _linear_counts(model).items()
    ]


def _linear_blocks(model: Model) -> object:
    rows = table("Linear blocks", "function", "for", "size", "solved by", "how many", numeric=(2, 4))
    for (function, block), count in _linear_counts(model).items():
        rows.add_row(function, block.what, str(block.size), block.method, str(count))
    return rows


def _blocks(model: Model) -> object:
    rows = table(
        "Position blocks, in the order of their solution", "equations", "unknowns", "size", "solved by", numeric=(2,)
    )
    for block in model.platform.blocks:
        rows.add_row("\n".join(block.equations), "\n".join(block.unknowns), str(len(block.unknowns)), block.method)
    return rows


def import_notes(mechanism: Mechanism) -> list[str]:
    """What an importer noted: what is not carried over, renamed, or assumed; nothing for a machine file."""
    if not mechanism.description.startswith("Imported from "):
        return []
    return [line.removeprefix("- ") for line in mechanism.description.splitlines()[1:]]


@reports_errors
def check(
    machine: MachineArgument,
    side: SideOption = None,
    rods: RodsOption = False,
    driven: Annotated[bool, typer.Option("--driven", help="Refuse freedoms that no actuator drives.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check a machine file: does it read, do its loops close, is it driven?

    Exit code 1 when it assembles but does not work as described: no actuator at all, independent coordinates that are
    constant or do not determine the pose, a start outside its limits, loops whose rank is unclear. Exit code 2 when it
    cannot be read or its loops do not close. Notes leave it at 0: a singular reference pose in whose place a regular
    one is used, freedoms that nothing drives (--driven refuses them), redundant actuators, a guessed assembly mode.
    """
    model = Model(load_machine(machine, side, rods))
    imported, found = import_notes(model.mechanism), inspect(model, driven=driven)
    if as_json:
        print_json(found.as_dict() | {"import": imported, "assembly": model.assembly.as_dict()})
    else:
        out = console()
        if imported:
            out.print(reflowed(model.mechanism.description), markup=False, highlight=False)
        out.print(_summary(model, found))
        out.print("ok" if found.is_usable else "not usable as described", style="green" if found.is_usable else "red")
    if not found.is_usable:
        raise typer.Exit(FAILED)


@reports_errors
def schema(
    drive: Annotated[bool, typer.Option("--drive", help="Of drive-line files, in place of machine files.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the JSON Schema of machine files, for editors (JSON with or without --json)."""
    print_json(json_schema(DRIVE, DRIVE_FORMAT) if drive else json_schema())
