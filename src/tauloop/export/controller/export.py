"""Export of a controller as files: header, source, check program, loop program and manifest."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from tauloop.common.keywords import keywords
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import content, plain
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.parameter_check import parameter_manifest
from tauloop.compiler.c.printing.source import c_name, number
from tauloop.drives.machine.path import DrivenMachine
from tauloop.export.c.exported_files import ExportedCode, as_c_and_cpp, written_files
from tauloop.export.controller.controller import FLAGS, controller_values
from tauloop.export.controller.equations import (
    ControllerChannel,
    ControllerEquations,
    controller_equations,
)
from tauloop.export.controller.options import ControllerOptions
from tauloop.export.controller.source import controller_header, controller_source
from tauloop.model.model import MachineSource, modeled


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerExport(ExportedCode):
    """A generated controller as texts.

    Every C name and file name starts with `name`. The manifest's `parameters` contain the hash and
    the values.
    """


@keywords(ControllerOptions)
def export_controller(
    machine: MachineSource,
    folder: str | Path | None = None,
    options: ControllerOptions | None = None,
    *,
    name: str | None = None,
    progress: Progress | None = None,
) -> ControllerExport:
    """Export a machine's controller as C99.

    The forces of every sample are finite and within their limits, for any input. Flags report
    faults: an input that is not a number, a stale encoder, a lost pose, saturation, a missed
    deadline. After a fault, the controller holds the last good forces for some samples. Then the
    actuators decelerate to standstill at a given rate, and the brakes are applied. The same machine
    and options give the same texts.

    Args:
        machine: the controller's model of the machine; its free parameters stay parameters of the
            code.
        folder: folder for the files. It is created if missing, and its other files are left alone.
        options: the law, its gains, and the reactions to faults.
        name: first part of all names; default: the machine's name followed by "_controller".
        progress: called with the completed and the total number of stages.

    Returns:
        The export: texts of the files by name, and the written paths.

    Raises:
        InputError: a degree of freedom has no actuator, a force has no limit, the law does not suit
            the machine, the name cannot be turned into a C identifier, or the folder cannot be
            written.
        AssemblyError: the machine cannot be assembled as described.

    Examples:
        >>> import tauloop as tl
        >>> export = tl.export_controller(tl.load("five_bar"))
        >>> sorted(name.removeprefix("five_bar_controller") for name in export.files)
        ['.c', '.h', '_check.c', '_loop.c', '_manifest.json', 'plant_link.h']
    """
    model, options, stages = modeled(machine), options or ControllerOptions(), Stages(progress, 2)
    equations = controller_equations(model, options)
    stages.done()
    stem = c_name(f"{model.mechanism.name}_controller" if name is None else name)
    values = controller_values(equations)
    files = {
        f"{stem}.h": controller_header(stem, equations, values),
        f"{stem}.c": as_c_and_cpp(
            f'#include "{stem}.h"\n' + controller_source(stem, equations, values)
        ),
        f"{stem}_check.c": _check_text(stem, equations),
        f"{stem}_loop.c": _loop_text(stem, equations),
        "plant_link.h": c_file("tauloop.export.controller", "plant_link.h"),
    }
    source = {
        "name": model.mechanism.name,
        "sha256": hashlib.sha256(content(replace(model.mechanism, file="")).encode()).hexdigest(),
    }
    manifest = {
        "name": stem,
        "machine": source,
        "controller": plain(options),
        "period_s": options.period,
        "inputs": [_channel(item) for item in equations.inputs],
        "forces": _channel(equations.forces),
        "flags": FLAGS,
        "parameters": parameter_manifest(values),
        "files": {file: hashlib.sha256(text.encode()).hexdigest() for file, text in files.items()},
    }
    files[f"{stem}_manifest.json"] = (
        json.dumps(manifest, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
    )
    written = () if folder is None else written_files(files, Path(folder))
    stages.done()
    return ControllerExport(name=stem, manifest=manifest, files=files, written=written)


def _channel(channel: ControllerChannel) -> dict[str, object]:
    return {"name": channel.name, "columns": list(channel.columns), "units": list(channel.units)}


def indices_in_measurement(equations: ControllerEquations) -> tuple[list[int], list[int]]:
    """Return the indices of the measured positions and speeds in a plant's measurement, (n_u,) each.

    They are the values that the control loops use. Encoders of drive lines have no speeds. Their
    indices are those of the positions from whose differences the speeds are computed.
    """
    n_u = len(equations.model.mechanism.actuators)
    if equations.options.controller != "drive":
        return list(range(n_u)), list(range(n_u, 2 * n_u))
    positions, speeds, start = [], [], 2 * n_u
    for line in DrivenMachine(equations.model.mechanism).system.lines:
        names, control = list(line.measurable_signals), line.line.control
        positions.append(start + names.index(control.encoder))
        speeds.append(start + names.index(control.speed_encoder or control.encoder))
        start += len(names)
    return positions, speeds


def _loop_text(stem: str, equations: ControllerEquations) -> str:
    """Return the program that runs a controller against a plant in another process."""
    positions, speeds = indices_in_measurement(equations)
    sizes = {
        "POSITIONS": ", ".join(map(str, positions)),
        "SPEEDS": ", ".join(map(str, speeds)),
        "DIFFERENCES": int(equations.options.controller == "drive"),
        "NAME": stem,
        "UP": stem.upper(),
        "REFERENCE": sum(c.size for c in equations.inputs if c.name.startswith("reference")),
        "ACTUATORS": len(equations.model.mechanism.actuators),
        "SPEED": int(not equations.options.velocity_differences),
    }
    text = c_file("tauloop.export.controller", "loop.c")
    for name, value in sizes.items():
        text = text.replace(f"@{name}@", str(value))
    return text


def _check_text(stem: str, equations: ControllerEquations) -> str:
    """Return the program that checks a controller; its exit status is 0 if all checks pass."""
    model = equations.model
    q = model.assembly.q
    pose, zero = model.platform.ports.at(q), np.zeros(model.platform.ports.velocity.size)
    holding = np.zeros(equations.forces.size)
    if equations.needs_model:
        holding = model.platform.inverse_dynamics(pose, zero, zero, start=q).force
    first_limit = sum(c.size for c in equations.parameters[:8])
    limits = equations.defaults[first_limit:][: equations.forces.size]
    is_known = equations.needs_model and bool((np.abs(holding) < limits).all())
    rest = {"position": equations.readings(q), "reference": pose}
    values = [rest.get(item.name, np.zeros(item.size)) for item in equations.inputs]
    lines = [
        f"/* Checks {stem}.c: at rest it holds the machine, and without a measurement it stops. */",
        f'#include "{stem}.h"',
        "#include <stddef.h>",
        f"#define KNOWN {int(is_known)}",
        _table("at_rest", np.concatenate(values)),
        _table("holding", np.asarray(holding)),
        c_file("tauloop.export.controller", "check.c")
        .replace("@NAME@", stem)
        .replace("@UP@", stem.upper()),
    ]
    return "\n".join(lines)


def _table(name: str, values: np.ndarray) -> str:
    return (
        f"static const double {name}[] = {{{', '.join(number(float(value)) for value in values)}}};"
    )
