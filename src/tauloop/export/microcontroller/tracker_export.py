"""The tracker of payload and friction as C: regressor, causal filters and recursive fit."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path

import casadi as ca
import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError
from tauloop.compiler.c.calling.evaluator import reads_start
from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.source import CFunction, c_name, comment, number
from tauloop.compiler.expressions import MotionState, ProgramSpec
from tauloop.compiler.functions.motion import force_map
from tauloop.compiler.program import Program
from tauloop.export.c.export import Export, finished_export
from tauloop.export.c.export_texts import Case, HeaderNotes
from tauloop.export.c.exported_files import as_c_and_cpp, written_files
from tauloop.identification import BaseEstimates, MachineIdentification
from tauloop.identification.online.causal_rows import (
    MIN_MOVING_SHARE,
    MOTION_LAGS,
    ROW_LAGS,
    CausalFilters,
)
from tauloop.identification.online.parameter_tracking import (
    TrackerStart,
    TrackOptions,
    tracker_start,
)
from tauloop.model import Model
from tauloop.model.c_ports import c_ports
from tauloop.model.model import MachineSource, modeled

#: Number of samples in the test program.
TEST_SAMPLES = 5


def rows_program(state: MotionState, columns: np.ndarray, offset: np.ndarray) -> Program:
    """Return the program that computes q and the rows [Y C, Y o] of all actuators.

    Y is the regressor: the actuator forces are Y (C x + o) for the tracked parameters x.

    Args:
        state: symbolic motion state.
        columns: C (n_pi, n).
        offset: o (n_pi,).
    """
    x, n_u = ca.SX.sym("x", columns.shape[1]), len(state.mechanism.actuators)
    pi = ca.DM(columns) @ x + ca.DM(offset)
    tau = state.forces(state.v, state.a, pi)[state.moving]
    at_zero = ca.substitute(tau, x, ca.SX(ca.DM.zeros(columns.shape[1])))
    unit = ca.vertcat(ca.SX(ca.DM.eye(n_u)), ca.SX(len(state.moving) - n_u, n_u))
    projection = state.builder.solve(force_map(state).T, unit, "actuator forces").T
    rows = projection @ ca.horzcat(ca.jacobian(tau, x), at_zero)
    return state.builder.finish({"q": state.configuration.q, "rows": ca.vec(rows.T)})


def export_tracker(
    machine: MachineSource,
    fit: BaseEstimates | MachineIdentification | str | Path,
    options: TrackOptions | None = None,
    *,
    filters: CausalFilters,
    name: str | None = None,
    folder: str | Path | None = None,
) -> Export:
    """Export a tracker of payload and friction as C, with the rows of its regression.

    `NAME_tracker_step` takes one sample of positions and forces. It allocates no memory, and every
    loop has a fixed length. Its estimates equal those of `track_parameters` up to rounding.

    Args:
        machine: the machine of the saved fit.
        fit: result of `identify`, or its JSON file.
        options: parameters that may change, and their rates of change.
        filters: sampling, filters and standstill speeds, such as `ParameterTrack.filters`.
        name: first part of all C names; default: the machine's name.
        folder: folder for the files; without it the result only has the texts.

    Returns:
        The exported files.

    Raises:
        InputError: the fit or the filters belong to another machine, actuators are redundant, the
            name cannot be turned into a C identifier, or the folder cannot be written.
    """
    options = options or TrackOptions()
    model = modeled(machine)
    start = tracker_start(model, fit, options)
    stem = c_name(model.mechanism.name if name is None else name)
    if len(filters.standstill) != len(start.noise):
        speeds = counted(len(filters.standstill), "standstill speed")
        message = f"has {speeds} for {counted(len(start.noise), 'motor')}"
        raise InputError.of("filters", message, "give one speed for each motor")
    case, has_start = _rows_case(model, start, stem)
    notes = HeaderNotes(
        made_from=f"the machine {model.mechanism.name!r}",
        description=model.mechanism.description,
        given="the motion of the actuators",
        baked_in=list(model.mechanism.parameters),
    )
    export = finished_export(stem, [case], notes, {"machine": {"name": model.mechanism.name}}, None)
    tokens = _tokens(model, start, filters, stem, has_start=has_start)
    texts = {
        f"{stem}_tracker.{ending}": _filled(f"tracker.{ending}", tokens) for ending in ("h", "c")
    }
    files = {**export.files, **{name: as_c_and_cpp(text) for name, text in texts.items()}}
    manifest = {**export.manifest, "tracker": _manifest(start, filters, texts)}
    files[f"{stem}_manifest.json"] = (
        json.dumps(manifest, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
    )
    written = () if folder is None else written_files(files, Path(folder))
    return Export(name=stem, manifest=manifest, files=files, written=written)


def _rows_case(model: Model, start: TrackerStart, stem: str) -> tuple[Case, bool]:
    """Return the function of the rows with test samples, and whether it reads start values."""
    spec = ProgramSpec(
        name="tracker_rows",
        meaning="rows of the regression for the tracked parameters, and forces of known parameters",
        build=partial(rows_program, columns=start.columns, offset=start.offset),
        inputs=("position", "velocity", "acceleration"),
        outputs=("q", "rows"),
    )
    program = model.actuators.program(spec)
    has_start = reads_start(program, spec.outputs)
    ports = c_ports(model, model.actuators)
    actuators, force_units = model.output_ports("actuators")
    entries = [
        (f"{actuator} / {column}", f"({unit})/({column_unit})")
        for actuator, unit in zip(actuators, force_units, strict=True)
        for column, column_unit in zip(
            (*start.names, "known"), (*start.parameter_units, "1"), strict=True
        )
    ]
    rows = CPort(
        name="rows",
        size=len(entries),
        columns=tuple(entry for entry, _ in entries),
        units=tuple(unit for _, unit in entries),
        meaning="rows of all actuators: derivatives with respect to the tracked parameters, then the known force",
    )
    names = list(spec.inputs)
    if has_start:
        names.append("start")
    function = CFunction(
        name=f"{stem}_tracker_rows",
        program=program,
        inputs=tuple(ports[name] for name in names),
        outputs=(ports["q"], rows),
    )
    inputs = _samples(model, has_start=has_start)
    expected = program.run(inputs, TEST_SAMPLES)[0]
    return Case(
        function=function, meaning=spec.meaning, inputs=inputs, expected=expected
    ), has_start


def _samples(model: Model, *, has_start: bool) -> dict[str, np.ndarray]:
    """Return the motions of the test program by port, at assembled poses near the reference."""
    rng = np.random.default_rng(0)
    q = np.resize(model.assembly.states, (TEST_SAMPLES, model.topology.n_q))
    position = model.actuator_position(q)
    scale = np.where(
        [unit == "rad" for unit in model.actuator_units], 1.0, model.assembly.loops.length
    )
    inputs = {"position": position}
    inputs |= {
        quantity: rng.standard_normal(position.shape) * scale
        for quantity in ("velocity", "acceleration")
    }
    if has_start:
        inputs["start"] = q
    return {name: np.ascontiguousarray(values) for name, values in inputs.items()}


def _filled(name: str, tokens: dict[str, str]) -> str:
    """Return a template of this package with its tokens replaced."""
    text = c_file("tauloop.export.microcontroller", name)
    for token, value in tokens.items():
        text = text.replace(f"@{token}@", value)
    return text


def _tokens(
    model: Model, start: TrackerStart, filters: CausalFilters, stem: str, *, has_start: bool
) -> dict[str, str]:
    """Return the values of the template's tokens. Texts of the machine are escaped for comments."""
    fit = start.fit()
    tracked = [start.wander[name] for name in fit.tracked]
    elapsed = filters.interval * filters.period
    described = zip(start.names, start.parameter_units, strict=True)
    arguments = ["at", "velocity", "acceleration"]
    if has_start:
        arguments.append("tracker->q")
    arguments += ["q", "rows", "health"]
    return {
        "stem": stem,
        "STEM": stem.upper(),
        "delay": f"{filters.delay:.4g}",
        "parameters": "\n".join(
            f" *   [{k}] {comment(name)} [{comment(unit)}]{' tracked' if name in fit.tracked else ''}"
            for k, (name, unit) in enumerate(described)
        ),
        "motors": str(len(model.actuators.ports.position.columns)),
        "forces": str(len(start.noise)),
        "coordinates": str(model.topology.n_q),
        "n": str(len(start.names)),
        "tracked": str(len(tracked)),
        "interval": str(filters.interval),
        "period": number(filters.period),
        "motion_share": number(-np.expm1(-filters.motion * filters.period)),
        "row_share": number(-np.expm1(-filters.rows * filters.period)),
        "moving": number(MIN_MOVING_SHARE),
        "weights": _listed(fit.weights),
        "standstill": _listed(filters.standstill),
        "steps": _listed(1.0 / (item.rate * np.sqrt(elapsed)) for item in tracked),
        "ranges": _listed(item.range for item in tracked),
        "start": _listed(model.assembly.q),
        "order": ", ".join(str(index) for index in fit.order),
        "triangle": ",\n".join(f"    {{{_listed(row)}}}" for row in fit.triangle),
        "call": f"{stem}_tracker_rows({', '.join(arguments)})",
    }


def _listed(values: object) -> str:
    """Return C text of numbers, separated by commas, from which C reads the same numbers."""
    return ", ".join(number(value) for value in values)  # type: ignore[attr-defined]


def _manifest(
    start: TrackerStart, filters: CausalFilters, texts: dict[str, str]
) -> dict[str, object]:
    """Return the tracker's section of the manifest."""
    return {
        "parameters": [
            {"name": name, "unit": unit, "is_tracked": name in start.wander}
            for name, unit in zip(start.names, start.parameter_units, strict=True)
        ],
        "period_s": filters.period,
        "interval_samples": filters.interval,
        "delay_s": filters.delay,
        "lags": {"motion": MOTION_LAGS, "rows": ROW_LAGS},
        "files": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()},
    }
