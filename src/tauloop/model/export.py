"""Export of a machine's functions as C: source, header, self-checking test program and manifest."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tauloop.assembly.entry import PLATFORM, Entry
from tauloop.assembly.entry_ports import coordinate_units, velocity_units
from tauloop.codegen.evaluator import reads_start
from tauloop.codegen.operations import operations
from tauloop.codegen.signature import CPort
from tauloop.codegen.source import CFunction, c_name, c_source
from tauloop.errors import InputError, PoseError, Problem
from tauloop.mechanism.cables import cables
from tauloop.mechanism.tension import Tension
from tauloop.model.export_texts import Case, check_text, header_text
from tauloop.model.model import Model
from tauloop.model.motion import Motion
from tauloop.programs.catalogue import EXPORTABLE, INVERSE_DYNAMICS, ProgramSpec
from tauloop.programs.state import health
from tauloop.records import dataclass
from tauloop.result import content, plain, provenance

#: Samples that the test program holds.
SAMPLES = 5
#: States with a larger condition number are left out of the test program, so that rounding stays far below its limit.
WORST_CONDITION = 1e3
#: Start values of Newton's method in the test program lie this far from the solution (m, rad).
ASTRAY = 1e-3


#: Inputs by which redundant actuators and cables share forces.
SHARING = ("weight", "preload")


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A finished export.

    Attributes:
        name: first part of every name in C and of the files' names.
        manifest: what was made, as plain data.
        files: text by file name, the manifest among them.
    """

    name: str
    manifest: Mapping[str, object]
    files: Mapping[str, str]


def export_c(
    model: Model,
    functions: Sequence[str],
    rng: np.random.Generator,
    *,
    entry: Entry = PLATFORM,
    name: str | None = None,
) -> Export:
    """C source, header, test program and manifest of some functions; the same model gives the same texts.

    Args:
        model: the machine; parameters that are not free are baked in.
        functions: names of `EXPORTABLE`.
        rng: source of the random velocities in the test program.
        entry: which motion is given.
        name: first part of all names; the machine's without it.

    Raises:
        InputError: unknown functions, or a name that gives no C identifier.
        AssemblyError: the machine does not assemble as described.
        PoseError: no regular state was found for the test program.
    """
    _require_known(functions)
    stem = c_name(model.mechanism.name if name is None else name)
    given = model.motion(entry)
    ports = c_ports(model, given)
    samples = _samples(model, given, rng)
    cases = [
        _case(model, given, spec, f"{stem}_{function}", ports, samples)
        for function, spec in EXPORTABLE.items()
        if function in functions
    ]
    note = f"{stem}: made by Tauloop from the machine {model.mechanism.name!r}; do not edit"
    files = {
        f"{stem}.c": c_source([case.function for case in cases], note, includes=[f'"{stem}.h"']),
        f"{stem}.h": header_text(stem, note, model.mechanism, model.machine.free, entry.name, cases),
        f"{stem}_check.c": check_text(stem, cases),
    }
    manifest = _manifest(model, stem, entry, cases, files)
    files["manifest.json"] = json.dumps(manifest, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
    return Export(name=stem, manifest=manifest, files=files)


def write_export(export: Export, folder: Path) -> tuple[Path, ...]:
    """Write the files into a folder (made where it is missing): all beside first, then renamed.

    Other files in the folder are left alone.

    Raises:
        InputError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".export-") as scratch:
            for file, text in export.files.items():
                (Path(scratch) / file).write_text(text, encoding="ascii", newline="\n")
            for file in export.files:
                (Path(scratch) / file).replace(folder / file)
    except OSError as error:
        raise InputError(
            Problem(
                where=str(folder),
                what=f"cannot be written: {error.strerror or error}",
                remedy="name a folder that you may write to",
            )
        ) from error
    return tuple(folder / file for file in export.files)


def _require_known(functions: Sequence[str]) -> None:
    known = ", ".join(EXPORTABLE)
    problems = [
        Problem(where="functions", what=f"{name!r} is unknown", remedy=f"there are {known}")
        for name in functions
        if name not in EXPORTABLE
    ]
    if not functions:
        problems.append(Problem(where="functions", what="none is named", remedy=f"there are {known}"))
    InputError.raise_if_any(problems)


def c_ports(model: Model, given: Motion) -> dict[str, CPort]:
    """Every port that an exported function may have."""
    shape, assembly = model.topology, model.assembly
    velocities = velocity_units(shape)
    closures = tuple(assembly.loops.names[i] for i in assembly.rows)
    actuators, force_units = model.output_ports("actuators")
    table, free = model.mechanism.parameters, model.machine.free
    cabled = tuple(cables(model.mechanism))
    what = f"the {given.ports.name}"
    pairs = [(row, unit, p) for row, unit in zip(actuators, force_units, strict=True) for p in model.parameters]
    start = "start values for all coordinates, such as the last sample's q: Newton's method and the turns of angles"
    found = [
        CPort(
            name="start", size=shape.n_q, columns=shape.coordinate_names, units=coordinate_units(shape), meaning=start
        ),
        CPort(
            name="theta",
            size=len(free),
            columns=free,
            units=tuple(f"SI unit for {table[leaf].unit or '1'}" for leaf in free),
            meaning="parameters that were left free",
        ),
        CPort(
            name="weight",
            size=len(actuators),
            columns=actuators,
            units=("1",) * len(actuators),
            meaning="w > 0: redundant actuators share forces by the least sum of w (u - p)^2, p from preloads; 1 for "
            "all alike",
        ),
        CPort(
            name="preload",
            size=len(cabled),
            columns=cabled,
            units=("N",) * len(cabled),
            meaning="tensions that winches hold their cables at where nothing else is needed; 0 for the least",
        ),
        CPort(
            name="tension", size=len(cabled), columns=cabled, units=("N",) * len(cabled), meaning="tensions of cables"
        ),
        CPort(name="force", size=len(actuators), columns=actuators, units=force_units, meaning="actuator forces u"),
        CPort(
            name="closure_force",
            size=len(closures),
            columns=closures,
            units=("N or N m",) * len(closures),
            meaning="multipliers of the loop equations: N for lengths, N m for directions",
        ),
        CPort(
            name="regressor",
            size=len(pairs),
            columns=tuple(f"{row} / {p.name}" for row, _, p in pairs),
            units=tuple(f"({unit})/({p.unit})" for _, unit, p in pairs),
            meaning=f"Y by rows: {len(actuators)} actuator forces, each on {len(model.parameters)} dynamic parameters",
        ),
        CPort(
            name="q",
            size=shape.n_q,
            columns=shape.coordinate_names,
            units=coordinate_units(shape),
            meaning="all coordinates",
        ),
        CPort(name="v", size=shape.n_v, columns=shape.velocity_names, units=velocities, meaning="all velocities"),
        CPort(
            name="a",
            size=shape.n_v,
            columns=shape.velocity_names,
            units=tuple(f"{unit}^2" for unit in velocities),
            meaning="all accelerations",
        ),
    ]
    for name in given.ports.motion:
        port = given.ports.motion[name]
        found.append(
            CPort(name=name, size=port.size, columns=port.columns, units=port.units, meaning=f"{name} of {what}")
        )
    return {port.name: port for port in found}


def _samples(model: Model, given: Motion, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Inputs of all functions at a few regular states with random velocities, accelerations and forces.

    Raises:
        PoseError: there is no such state.
    """
    assembly, q = model.assembly, model.assembly.states
    scale = assembly.loops.velocity_scale[list(model.platform.ports.v)]
    velocity, acceleration = (rng.normal(size=(len(q), len(scale))) * scale for _ in range(2))
    if cables(model.mechanism) and not assembly.passive:
        q, velocity, acceleration = _bearable(model, q, velocity, acceleration)
    state = model.platform.evaluate(model.platform_position(q), velocity, acceleration, start=q)
    condition = given.condition(q)
    good = state.health.is_reached & state.health.is_regular & (condition < WORST_CONDITION)
    good &= np.abs(state.q - q).max(axis=1, initial=0.0) < ASTRAY
    chosen = np.flatnonzero(good)[:SAMPLES]
    if not len(chosen):
        raise PoseError(
            Problem(
                where=model.mechanism.name,
                what=f"none of {len(q)} states around the reference pose is regular enough for the test program: the "
                f"smallest condition number is {condition.min():.3g} (limit {WORST_CONDITION:.3g})",
                remedy="choose a reference pose away from singularities",
            )
        )
    chosen = np.resize(chosen, SAMPLES)
    q = state.q[chosen]
    motion = (model.platform_position(q), velocity[chosen], acceleration[chosen])
    if given is not model.platform:
        leading = list(assembly.leading)
        A = assembly.loops.transmission[leading]
        motion = (
            model.actuator_position(q)[:, leading],
            np.asarray(state.v)[chosen] @ A.T,
            np.asarray(state.a)[chosen] @ A.T,
        )
    table = model.mechanism.parameters
    return {
        **dict(zip(given.ports.motion, motion, strict=True)),
        "start": q + ASTRAY * rng.normal(size=q.shape),
        "force": rng.normal(size=(SAMPLES, len(model.mechanism.actuators))),
        **_shared(model, SAMPLES),
        "theta": np.tile([table[leaf].value for leaf in model.machine.free], (SAMPLES, 1)),
    }


def _bearable(
    model: Model, q: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States, velocities and accelerations that cables can bear: at rest where they cannot bear the motion.

    Raises:
        PoseError: they bear none of the states even at rest.
    """
    program = model.platform.program(INVERSE_DYNAMICS)
    n, within = len(q), np.zeros(len(q), dtype=bool)
    given = {"position": np.ascontiguousarray(model.platform_position(q)), "start": q, **_shared(model, n)}
    given["theta"] = np.tile([model.mechanism.parameters[leaf].value for leaf in model.machine.free], (n, 1))
    for at_rest in (False, True):
        _, evidence = program.run({**given, "velocity": velocity, "acceleration": acceleration}, n)
        within = health(program, evidence).is_within
        if not at_rest:
            velocity, acceleration = (np.where(within[:, None], x, 0.0) for x in (velocity, acceleration))
    if not within.any():
        what = f"at none of {n} states around the reference pose cables hold the machine within their bounds"
        raise PoseError(Problem(where="tension", what=what, remedy="change the bounds, or the reference pose"))
    return q[within], velocity[within], acceleration[within]


def _case(
    model: Model,
    given: Motion,
    spec: ProgramSpec,
    name: str,
    ports: Mapping[str, CPort],
    samples: Mapping[str, np.ndarray],
) -> Case:
    """One function, with inputs and the numbers that the interpreter finds for them."""
    program = given.program(spec)
    wanted = tuple(port for port in spec.outputs if ports[port].size)
    inputs = [*spec.inputs, *(["start"] * reads_start(program, wanted))]
    inputs += ["theta"] * bool(model.machine.free)
    needed = {name for step in program.steps for name in step.inputs}
    inputs += [port for port in SHARING if port in needed]
    function = CFunction(
        name=name,
        program=program,
        inputs=tuple(ports[port] for port in inputs),
        outputs=tuple(ports[port] for port in wanted),
    )
    arrays = {key: np.ascontiguousarray(array) for key, array in samples.items()}
    outputs, evidence = program.run(arrays, SAMPLES)
    found = health(program, evidence)
    if not (found.is_reached & found.is_regular & found.is_within).all():
        what = f"{spec.name} fails at the states of the test program"
        raise PoseError(Problem(where=model.mechanism.name, what=what, remedy="choose another reference pose"))
    return Case(
        function=function,
        meaning=spec.meaning,
        inputs={port: arrays[port] for port in inputs},
        expected={port.name: outputs[port.name] for port in function.outputs},
    )


def _shared(model: Model, n: int) -> dict[str, np.ndarray]:
    """Weights, and preloads in the middle of the bounds, for n samples."""
    middle = [t.least + (t.greatest - t.least if np.isfinite(t.greatest) else 0.0) / 2 for t in _tensions(model)]
    return {"weight": np.ones((n, len(model.mechanism.actuators))), "preload": np.tile(middle, (n, 1))}


def _tensions(model: Model) -> tuple[Tension, ...]:
    return tuple(cables(model.mechanism).values())


def _manifest(
    model: Model, stem: str, entry: Entry, cases: Sequence[Case], files: Mapping[str, str]
) -> dict[str, object]:
    """What was made, as plain data without time or place."""
    mechanism, free = model.mechanism, model.machine.free
    data = {
        "tauloop": provenance(packages=(), options={}).versions["tauloop"],
        "name": stem,
        "machine": {"name": mechanism.name, "sha256": _hash(content(replace(mechanism, file="")))},
        "entry": entry.name,
        "baked_in": {p.name: p.value for p in mechanism.parameters if p.name not in free},
        "functions": [
            {
                "name": case.function.name,
                "batch": f"{case.function.name}_batch",
                "meaning": case.meaning,
                "inputs": case.function.inputs,
                "outputs": case.function.outputs,
                "operations": operations(case.function),
            }
            for case in cases
        ],
        "files": {file: _hash(text) for file, text in files.items()},
    }
    return dict(plain(data))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
