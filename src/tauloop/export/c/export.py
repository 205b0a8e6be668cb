"""Export of a machine's functions as C: source, header, self-checking test program and manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.deprecated import old_attribute
from tauloop.common.errors import EngineError, PoseError, Problems
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, listed, option
from tauloop.common.plain import OMITTED, in_json
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Status, content, plain, provenance
from tauloop.compiler.c.calling.evaluator import reads_start
from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.calling.target import TARGETS, target_figures
from tauloop.compiler.c.printing import single
from tauloop.compiler.c.printing.operations import operations
from tauloop.compiler.c.printing.parameter_check import parameter_hash, parameter_source
from tauloop.compiler.c.printing.source import CFunction, c_name, c_source
from tauloop.compiler.catalogue import EXPORTABLE, INVERSE_DYNAMICS
from tauloop.compiler.derivatives.derivatives import by
from tauloop.compiler.expressions import ProgramSpec
from tauloop.compiler.program import Newton
from tauloop.compiler.state import solve_diagnostics
from tauloop.equations.assembly.closing import random_walk
from tauloop.equations.ports import PLATFORM, Entry, force_port
from tauloop.export.c.export_library import library_files
from tauloop.export.c.export_texts import Case, HeaderNotes, check_text, deviation, header_text
from tauloop.export.c.exported_files import (
    ExportedCode,
    as_c_and_cpp,
    refuse_another_project,
    written_files,
)
from tauloop.export.c.single_accuracy import (
    FUSED,
    UNFUSED,
    SingleAccuracy,
    run_in_floats,
    single_accuracy,
)
from tauloop.mechanism.bodies import cables
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model.c_ports import c_ports
from tauloop.model.model import MachineSource, Model, modelled
from tauloop.model.motion import Motion

#: Samples that the test program holds.
SAMPLES = 5
#: States with a larger condition number are left out of the test program, so that rounding stays
#: far below its limit.
WORST_CONDITION = 1e3
#: Start values of Newton's method in the test program lie this far from the solution
#: (characteristic lengths, rad).
ASTRAY = 1e-3
#: States over which single precision is compared with double: walks side by side, steps of each,
#: and their size (rad or characteristic lengths), so that they come to the ends of the workspace.
WALKS, STEPS, STEP = 64, 24, 0.2
#: The test program of floats lets pass so many times what they deviate at its samples, and no less
#: than the last figure: compilers may round products and sums once.
ROOM, LEAST_TOLERANCE = 4, 1e-6
PRECISIONS = ("double", "single")

#: Inputs by which redundant actuators and cables share forces.
SHARING = ("weight", "preload")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions(Options):
    """What is exported, and by which names.

    Attributes:
        functions: which, with commas between.
        entry: coordinates in which the motion is given: platform or actuators.
        outputs: of the functions, such as 'force'; all that they have without it.
        name: first part of all names in what is written; the machine's name without it.
        seed: seed of the random states in the test program, and of those that single precision is
            tried at.
        precision: double, or single: floats alone, for a microcontroller, without kernels for
            batches.
        target: whose code size and stack are written down: generic stands for any processor,
            measured on this one.
        library: write a CMake package that Arduino and PlatformIO take as a library, with a header
            for C++.

    Examples:
        >>> import tauloop as tl
        >>> tl.ExportOptions(functions=("inverse_dynamics",), name="arm").name
        'arm'
    """

    functions: tuple[str, ...] = option(
        ("inverse_dynamics",), read=listed, choices=tuple(EXPORTABLE)
    )
    entry: Entry = PLATFORM
    outputs: tuple[str, ...] = option((), read=listed)
    name: str | None = None
    seed: int = option(0, least=0)
    precision: str = option("double", choices=PRECISIONS)
    target: str = option("generic", choices=tuple(TARGETS))
    library: bool = False

    def _note_mismatches(self, problems: Problems) -> None:
        """Note that no function is named, and outputs that are none of them."""
        if not self.functions:
            problems.add("functions", "none is named", f"choose among {', '.join(EXPORTABLE)}")
        specs = {name: EXPORTABLE[name] for name in self.functions if name in EXPORTABLE}
        known = sorted({output for spec in specs.values() for output in spec.outputs})
        problems += unknown_names(
            self.outputs if specs else (), known, "no such output", "outputs {}"
        )
        for name, spec in specs.items():
            if not problems and not self.wanted(spec):
                what = f"none of {', '.join(self.outputs)} is an output of {name}"
                problems.add("outputs", what, f"it has {', '.join(spec.outputs)}")

    def wanted(self, spec: ProgramSpec) -> tuple[str, ...]:
        """Those outputs of a function that are exported."""
        return tuple(name for name in spec.outputs if not self.outputs or name in self.outputs)

    @property
    def is_single(self) -> bool:
        """Whether floats are exported."""
        return self.precision == "single"

    @property
    def is_small(self) -> bool:
        """Whether it is for a microcontroller: one sample at a time, and its figures in the manifest."""
        return self.is_single or self.target != "generic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Export(ExportedCode):
    """A finished export of functions in C; `name` is the first part of every name in C and of the files' names.

    Attributes:
        accuracy: of single precision; None for doubles.
    """

    accuracy: SingleAccuracy | None = field(default=None, metadata=OMITTED)
    evidence = old_attribute("evidence", "diagnostics")

    @property
    def status(self) -> Status:
        """Doubtful where single precision is not good enough; what cannot be exported raises."""
        return Status.OK if all(item.is_good for item in self.diagnostics) else Status.DOUBTFUL

    @property
    @in_json()
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Shares of the largest errors of single precision; none for doubles."""
        return (
            ()
            if self.accuracy is None
            else tuple(item.diagnostic for item in self.accuracy.outputs)
        )

    @property
    @in_json()
    def advice(self) -> tuple[str, ...]:
        """A line for each output that single precision is not good enough for: the figure and what to do."""
        return tuple(str(item) for item in self.diagnostics if not item.is_good)


@keywords(ExportOptions)
def export_c(
    machine: MachineSource,
    folder: str | Path | None = None,
    options: ExportOptions | None = None,
    *,
    progress: Progress | None = None,
) -> Export:
    """C source, header, test program and manifest of some functions; the same model gives the same texts.

    Args:
        machine: a mechanism, or its model; parameters that are not free are baked in.
        folder: where the files are written (it is made where it is missing; other files in it are
            left alone): all beside first, then renamed. They stay texts without it.
        options: which functions, of which motion.
        progress: called with what is done and what there is to do.

    Raises:
        InputError: a name that gives no C identifier, a folder that cannot be written, or one that
            holds another library.
        AssemblyError: the machine does not assemble as described.
        PoseError: no regular state was found for the test program.
        EngineError: there is no C compiler that single precision could be tried with.

    Examples:
        >>> import tauloop as tl
        >>> export = tl.export_c("four_bar", functions="kinematics")
        >>> sorted(export.files)
        ['four_bar.c', 'four_bar.h', 'four_bar_check.c', 'four_bar_manifest.json']
    """
    model, options = modelled(machine), options or ExportOptions()
    entry = options.entry
    stem = c_name(model.mechanism.name if options.name is None else options.name)
    motion = model.motion(entry)
    ports = c_ports(model, motion)
    chosen = {name: spec for name, spec in EXPORTABLE.items() if name in options.functions}
    stages = Stages(progress, 1 + len(chosen))
    rng = np.random.default_rng(options.seed)
    samples = _samples(model, motion, model.assembly.states, rng, SAMPLES)
    if options.is_single:
        samples = _as_floats(samples)
    stages.done()
    cases = [
        _case(model, motion, spec, options, f"{stem}_{function}", ports, samples)
        for function, spec in stages.over(chosen.items())
    ]
    accuracy = None
    if options.is_single:
        accuracy = single_accuracy(
            [case.function for case in cases], _as_floats(_wide_samples(model, motion, rng))
        )
    mechanism, free = model.mechanism, model.free
    header = HeaderNotes(
        made_from=f"the machine {mechanism.name!r}",
        description=mechanism.description,
        given=f"the motion of the {entry.name}",
        baked_in=[p for p in mechanism.parameters if p.name not in free],
    )
    source = {"name": mechanism.name, "sha256": _hash(content(replace(mechanism, file="")))}
    made = {"machine": source, "entry": entry.name}
    return finished_export(stem, cases, header, made, folder, options=options, accuracy=accuracy)


def finished_export(
    stem: str,
    cases: Sequence[Case],
    notes: HeaderNotes,
    source: Mapping[str, object],
    folder: str | Path | None,
    *,
    options: ExportOptions | None = None,
    accuracy: SingleAccuracy | None = None,
) -> Export:
    """Texts of functions, written where a folder is named.

    Args:
        stem: first part of every name.
        cases: the functions, with numbers that they are checked by.
        notes: what the header says of them all.
        source: what they were made from, for the manifest.
        folder: where the files are written.
        options: precision and target; doubles for any processor without.
        accuracy: of single precision.

    Raises:
        InputError: the folder cannot be written.
    """
    options = options or ExportOptions()
    small, is_single = options.is_small, options.is_single
    functions = [case.function for case in cases]
    note = f"{stem}: made by Tauloop from {notes.made_from}; do not edit"
    header_name = f'"{stem}.h"'
    source_text = as_c_and_cpp(
        c_source(functions, note, includes=[header_name], with_batch=not small, single=is_single)
    )
    files = {
        f"{stem}.c": f"{source_text}\n{parameter_source(stem, notes.values)}",
        f"{stem}.h": header_text(stem, note, notes, cases, batch=not small, single=is_single),
        f"{stem}_check.c": check_text(
            stem, cases, batch=not small, tolerance=_tolerance(cases) if is_single else None
        ),
    }
    alone = files | {f"{stem}.c": source_text}
    figures = _figures(stem, functions, alone, notes.values, options, accuracy) if small else {}
    if options.library:
        version = str(provenance(packages=(), options={}).versions["tauloop"])
        files = library_files(stem, files, cases, notes, version, single=is_single)
    manifest = _manifest(stem, cases, notes, source, files) | figures
    files[f"{stem}_manifest.json"] = (
        json.dumps(manifest, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
    )
    if folder is not None and options.library:
        refuse_another_project(Path(folder), stem)
    written = () if folder is None else written_files(files, Path(folder))
    return Export(name=stem, manifest=manifest, files=files, written=written, accuracy=accuracy)


def _tolerance(cases: Sequence[Case]) -> float:
    """What the test program of floats lets pass: some times what they deviate here, rounded one way or the other."""
    deviations = [
        deviation(
            run_in_floats(case.function, case.inputs, SAMPLES, contraction)[port.name],
            case.expected[port.name],
        )
        for case in cases
        for contraction in (UNFUSED, FUSED)
        for port in case.function.outputs
    ]
    return max(ROOM * max(deviations, default=0.0), LEAST_TOLERANCE)


def _figures(
    stem: str,
    functions: Sequence[CFunction],
    files: Mapping[str, str],
    values: Mapping[str, float],
    options: ExportOptions,
    accuracy: SingleAccuracy | None,
) -> dict[str, Any]:
    """What a microcontroller's programmer asks for: precision, bytes, the longest loops, and how well floats do."""
    most = {
        function.name: {
            "newton_steps": function.most_steps
            * any(isinstance(step, Newton) for step in function.program.steps),
            "operations": _most_operations(function),
        }
        for function in functions
    }
    figures: dict[str, Any] = {
        "precision": options.precision,
        "most": most,
        "target": {"name": options.target},
    }
    target = TARGETS[options.target]
    check = "check.c"
    try:
        figures["target"] |= plain(target_figures(target, files, f"{stem}.c", list(most)))
        of_check = target_figures(target, {check: parameter_source(stem, values)}, check, ())
        figures["target"] |= {"parameter_check_bytes": of_check.code_bytes}
    except EngineError as error:
        (problem,) = error.problems
        figures["target"]["not_measured"] = f"{problem.what}: {problem.remedy}"
    if accuracy is not None:
        rows = [plain(row) | {"share": row.share, "enough": row.enough} for row in accuracy.outputs]
        counts = {
            "states": accuracy.states,
            "refused": accuracy.refused,
            "condition_below": WORST_CONDITION,
        }
        figures["accuracy"] = counts | {"outputs": plain(rows)}
    return figures


def _most_operations(function: CFunction) -> int:
    """Operations of a call whose Newton loops all take the most steps."""
    counts = operations(function)
    return sum(counts["once"].values()) + function.most_steps * sum(
        counts["each_iteration"].values()
    )


def _wide_samples(model: Model, entry: Motion, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Inputs of all functions at states all over the workspace."""
    assembly = model.assembly
    walks = random_walk(
        assembly.loops,
        assembly.q[None],
        rng,
        walks=WALKS,
        steps=STEPS,
        step=STEP,
        locked=assembly.locked,
    )
    return _samples(model, entry, walks[rng.permutation(len(walks))], rng, len(walks))


def _as_floats(samples: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The nearest numbers that floats can hold."""
    return {name: array.astype(np.float32).astype(float) for name, array in samples.items()}


def _samples(
    model: Model, entry: Motion, q: np.ndarray, rng: np.random.Generator, most: int
) -> dict[str, np.ndarray]:
    """Inputs of all functions at regular states with random velocities, accelerations and forces.

    Args:
        model: the machine.
        entry: what moves as given.
        q: states to choose among (N, n_q).
        rng: source of randomness.
        most: how many are wanted; fewer come again.

    Raises:
        PoseError: there is no such state.
    """
    assembly = model.assembly
    scale = assembly.loops.velocity_scale[list(model.platform.ports.v)]
    velocity, acceleration = (rng.normal(size=(len(q), len(scale))) * scale for _ in range(2))
    if cables(model.mechanism) and not assembly.passive:
        q, velocity, acceleration = _bearable(model, q, velocity, acceleration)
    state = model.platform.evaluate(model.platform_position(q), velocity, acceleration, start=q)
    condition = entry.condition(q)
    good = state.health.is_reached & state.health.is_regular & (condition < WORST_CONDITION)
    good &= model.assembly.loops.gaps(q, state.q) < ASTRAY
    chosen = np.flatnonzero(good)[:most]
    if not len(chosen):
        what = f"none of {len(q)} states around the reference pose is regular enough for the test program: the "
        what += f"smallest condition number is {condition.min():.3g} (limit {WORST_CONDITION:.3g})"
        raise PoseError.of(
            model.mechanism.name, what, "choose a reference pose away from singularities"
        )
    chosen = np.resize(chosen, most)
    q = state.q[chosen]
    motion = (model.platform_position(q), velocity[chosen], acceleration[chosen])
    if entry is not model.platform:
        leading = list(assembly.leading)
        A = assembly.loops.transmission[leading]
        rates = (np.asarray(rate)[chosen] @ A.T for rate in (state.v, state.a))
        motion = (model.actuator_position(q)[:, leading], *rates)
    table = model.mechanism.parameters
    return {
        **dict(zip(entry.ports.motion, motion, strict=True)),
        "start": q + ASTRAY * assembly.loops.coordinate_scale * rng.normal(size=q.shape),
        "force": rng.normal(size=(most, len(model.mechanism.actuators))),
        "momentum_rate": rng.normal(size=(most, model.topology.n_v)),
        "last_momentum": rng.normal(size=(most, model.topology.n_v)),
        "last_external_force": rng.normal(size=(most, len(assembly.independent))),
        "period": rng.uniform(0.001, 0.01, size=(most, 1)),
        "bandwidth": rng.uniform(10.0, 100.0, size=(most, 1)),
        **_directions(entry, most),
        **_shared(model, most),
        "theta": np.tile(table.vector(model.free), (most, 1)),
    }


def _directions(entry: Motion, most: int) -> dict[str, np.ndarray]:
    """Random directions and factors of products."""
    rng, ports = np.random.default_rng(2), entry.ports.products(force_port(entry.assembly))
    return {name: rng.normal(size=(most, port.size)) for name, port in ports.items()}


def _bearable(
    model: Model, q: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States, velocities and accelerations that cables can bear: at rest where they cannot bear the motion.

    Raises:
        PoseError: they bear none of the states even at rest.
    """
    program = model.platform.program(INVERSE_DYNAMICS)
    n, within = len(q), np.zeros(len(q), dtype=bool)
    arguments = {
        "position": np.ascontiguousarray(model.platform_position(q)),
        "start": q,
        **_shared(model, n),
    }
    arguments["theta"] = np.tile(model.mechanism.parameters.vector(model.free), (n, 1))
    for at_rest in (False, True):
        _, diagnostics = program.run(
            {**arguments, "velocity": velocity, "acceleration": acceleration}, n
        )
        within = solve_diagnostics(program, diagnostics).is_within
        if not at_rest:
            velocity, acceleration = (
                np.where(within[:, None], x, 0.0) for x in (velocity, acceleration)
            )
    if not within.any():
        what = f"at none of {n} states around the reference pose cables hold the machine within their bounds"
        raise PoseError.of("tension", what, "change the bounds, or the reference pose")
    return q[within], velocity[within], acceleration[within]


def _case(
    model: Model,
    motion: Motion,
    spec: ProgramSpec,
    options: ExportOptions,
    name: str,
    ports: Mapping[str, CPort],
    samples: Mapping[str, np.ndarray],
) -> Case:
    """One function, with inputs and the numbers that the interpreter finds for them."""
    program = motion.program(spec)
    wanted = tuple(port for port in options.wanted(spec) if ports[port].size)
    if not options.outputs:
        wanted += tuple(name for name in program.outputs if name.endswith(by("", "theta")))
    inputs = [*spec.inputs, *(["start"] * reads_start(program, wanted))]
    inputs += ["theta"] * bool(model.free)
    needed = {name for step in program.steps for name in step.inputs}
    inputs += [port for port in SHARING if port in needed]
    function = CFunction(
        name=name,
        program=program,
        inputs=tuple(ports[port] for port in inputs),
        outputs=tuple(ports[port] for port in wanted),
    )
    if options.is_single:
        function = replace(
            function,
            last_step=single.SINGLE_STEP_TOLERANCE,
            most_steps=single.NEWTON_ITERATIONS,
            largest=single.LARGEST,
        )
    arrays = {key: np.ascontiguousarray(array) for key, array in samples.items()}
    expected, diagnostics = program.run(arrays, SAMPLES)
    checked = solve_diagnostics(program, diagnostics)
    if not (checked.is_reached & checked.is_regular & checked.is_within).all():
        what = f"{spec.name} fails at the states of the test program"
        raise PoseError.of(model.mechanism.name, what, "choose another reference pose")
    return Case(
        function=function,
        meaning=spec.meaning,
        inputs={port: arrays[port] for port in inputs},
        expected={port.name: expected[port.name] for port in function.outputs},
    )


def _shared(model: Model, n: int) -> dict[str, np.ndarray]:
    """Weights, and preloads in the middle of the bounds, for n samples."""
    tensions = cables(model.mechanism).values()
    middle = [
        t.least + (t.greatest - t.least if np.isfinite(t.greatest) else 0.0) / 2 for t in tensions
    ]
    return {
        "weight": np.ones((n, len(model.mechanism.actuators))),
        "preload": np.tile(middle, (n, 1)),
    }


def _manifest(
    stem: str,
    cases: Sequence[Case],
    notes: HeaderNotes,
    source: Mapping[str, object],
    files: Mapping[str, str],
) -> dict[str, object]:
    """What was made, as plain data without time or place."""
    data = {
        "tauloop": provenance(packages=(), options={}).versions["tauloop"],
        "name": stem,
        **source,
        "baked_in": notes.values,
        "parameter_hash": parameter_hash(notes.values),
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
