"""Export of a machine's functions as C: source, header, self-checking test program and manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import EngineError, PoseError, Problems
from tauloop.common.keywords import keywords
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.options import Options, listed, option
from tauloop.common.plain import OMITTED, in_json
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Status, content, plain, tauloop_version
from tauloop.compiler.c.calling.evaluator import reads_start
from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.calling.target import TARGETS, target_figures
from tauloop.compiler.c.printing import single
from tauloop.compiler.c.printing.operations import operations
from tauloop.compiler.c.printing.parameter_check import parameter_hash, parameter_source
from tauloop.compiler.c.printing.source import CFunction, c_name, c_source
from tauloop.compiler.catalogue import EXPORTABLE, INVERSE_DYNAMICS
from tauloop.compiler.expressions import ProgramSpec
from tauloop.compiler.program import Newton
from tauloop.compiler.state import solve_diagnostics
from tauloop.equations.assembly.closing import random_walk
from tauloop.equations.ports import PLATFORM, Entry, force_port, jacobian_name
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
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model.c_ports import c_ports
from tauloop.model.model import MachineSource, Model, modeled
from tauloop.model.motion import Motion

#: Number of samples in the test program.
TEST_SAMPLES = 5
#: The test program omits states with a larger condition number, so that rounding errors stay far
#: below its tolerance.
MAX_TEST_CONDITION = 1e3
#: Distance of Newton's start values from the solution in the test program (characteristic lengths,
#: rad).
START_OFFSET = 1e-3
#: Number of random walks along which single precision is compared with double. The walks reach the
#: edge of the workspace.
WALKS = 64
#: Number of steps of each walk.
WALK_STEPS = 24
#: Length of a step, rad or characteristic lengths.
WALK_STEP = 0.2
#: Tolerance of the test program in single precision, as a multiple of the deviation at its samples.
DEVIATION_FACTOR = 4
#: Smallest tolerance of the test program, because a compiler may fuse a product and a sum.
MIN_TOLERANCE = 1e-6
PRECISIONS = ("double", "single")

#: Inputs that set the distribution of forces among redundant actuators and cables.
SHARING = ("weight", "preload")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions(Options):
    """Functions to export, and their names.

    Attributes:
        functions: names of the functions, separated by commas.
        coordinates: coordinates in which the motion is given: platform or actuators.
        outputs: outputs to export, such as 'force'; all outputs if empty.
        name: prefix of all generated names; default: the machine's name.
        seed: seed of the random states in the test program, and of the states at which single
            precision is compared with double.
        precision: double or single; single is for a microcontroller: all numbers are floats, and
            there are no batch kernels.
        target: processor whose code size and stack are reported; generic is measured on this
            computer's processor.
        library: write a CMake package that Arduino and PlatformIO accept as a library, with a
            header for C++.

    Examples:
        >>> import tauloop as tl
        >>> tl.ExportOptions(functions=("inverse_dynamics",), name="arm").name
        'arm'
    """

    functions: tuple[str, ...] = option(
        ("inverse_dynamics",), read=listed, choices=tuple(EXPORTABLE)
    )
    coordinates: Entry = PLATFORM
    outputs: tuple[str, ...] = option((), read=listed)
    name: str | None = None
    seed: int = option(0, least=0)
    precision: str = option("double", choices=PRECISIONS)
    target: str = option("generic", choices=tuple(TARGETS))
    library: bool = False

    def _note_mismatches(self, problems: Problems) -> None:
        """Report an empty list of functions, and outputs that no chosen function has."""
        if not self.functions:
            problems.add("functions", "none is named", f"choose among {', '.join(EXPORTABLE)}")
        specs = {name: EXPORTABLE[name] for name in self.functions if name in EXPORTABLE}
        known = sorted({output for spec in specs.values() for output in spec.outputs})
        problems += unknown_names(
            self.outputs if specs else (), known, "no such output", "outputs {}"
        )
        for name, spec in specs.items():
            if not problems and not self.wanted(spec):
                message = f"none of {', '.join(self.outputs)} is an output of {name}"
                problems.add("outputs", message, f"choose from {', '.join(spec.outputs)}")

    def wanted(self, spec: ProgramSpec) -> tuple[str, ...]:
        """Return the names of the exported outputs of a function."""
        return tuple(name for name in spec.outputs if not self.outputs or name in self.outputs)

    @property
    def is_single(self) -> bool:
        """Whether the export is in single precision."""
        return self.precision == "single"

    @property
    def is_small(self) -> bool:
        """Whether the export is for a microcontroller: one sample per call, sizes in the manifest."""
        return self.is_single or self.target != "generic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Export(ExportedCode):
    """Exported functions in C; every C name and file name starts with `name`.

    Attributes:
        accuracy: accuracy of single precision; None for double.
    """

    accuracy: SingleAccuracy | None = field(default=None, metadata=OMITTED)
    evidence = old_attribute("evidence", "diagnostics")

    @property
    def status(self) -> Status:
        """Doubtful if single precision is not accurate enough; a failed export raises an error."""
        return Status.OK if all(item.is_good for item in self.diagnostics) else Status.DOUBTFUL

    @property
    @in_json()
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The largest relative errors of single precision; empty for double precision."""
        if self.accuracy is None:
            return ()
        return tuple(item.diagnostic for item in self.accuracy.outputs)

    @property
    @in_json()
    def advice(self) -> tuple[str, ...]:
        """Message with value and remedy for each output that is not accurate enough."""
        return tuple(str(item) for item in self.diagnostics if not item.is_good)


@keywords(ExportOptions)
def export_c(
    machine: MachineSource,
    folder: str | Path | None = None,
    options: ExportOptions | None = None,
    *,
    progress: Progress | None = None,
) -> Export:
    """Export functions of a machine as C: source, header, test program and manifest.

    The same model always gives the same files.

    Args:
        machine: a mechanism or its model; parameters that are not free become constants in the
            code.
        folder: folder for the files. It is created if missing, and its other files are left alone.
            Either all files are written or none. Without a folder, the result only contains the
            texts.
        options: functions, and the coordinates in which their motion is given.
        progress: called with the completed and the total number of stages.

    Returns:
        The export: texts of the files by name, and the written paths.

    Raises:
        InputError: the name cannot be turned into a C identifier, the folder cannot be written, or
            it holds another library.
        AssemblyError: the machine cannot be assembled as described.
        PoseError: no regular state was found for the test program.
        EngineError: single precision needs a C compiler, and none was found.

    Examples:
        >>> import tauloop as tl
        >>> export = tl.export_c("four_bar", functions="kinematics")
        >>> sorted(export.files)
        ['four_bar.c', 'four_bar.h', 'four_bar_check.c', 'four_bar_manifest.json']
    """
    model, options = modeled(machine), options or ExportOptions()
    entry = options.coordinates
    stem = c_name(model.mechanism.name if options.name is None else options.name)
    motion = model.functions(entry)
    ports = c_ports(model, motion)
    specs = {name: spec for name, spec in EXPORTABLE.items() if name in options.functions}
    stages = Stages(progress, 1 + len(specs))
    rng = np.random.default_rng(options.seed)
    samples = _samples(model, motion, model.assembly.states, rng, TEST_SAMPLES)
    if options.is_single:
        samples = _as_floats(samples)
    stages.done()
    cases = [
        _case(model, motion, spec, options, f"{stem}_{function}", ports, samples)
        for function, spec in stages.over(specs.items())
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
    origin = {"machine": source, "entry": entry.name}
    return finished_export(stem, cases, header, origin, folder, options=options, accuracy=accuracy)


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
    """Return the exported files of functions, and write them if a folder is given.

    Args:
        stem: first part of every name.
        cases: the functions, with inputs and expected outputs.
        notes: notes in the header that apply to all functions.
        source: origin of the functions, for the manifest.
        folder: folder for the files.
        options: precision and target; default: double precision for any processor.
        accuracy: accuracy of single precision.

    Raises:
        InputError: the folder cannot be written.
    """
    options = options or ExportOptions()
    is_small, is_single = options.is_small, options.is_single
    functions = [case.function for case in cases]
    note = f"{stem}: generated by Tauloop from {notes.made_from}; do not edit"
    header_name = f'"{stem}.h"'
    source_text = as_c_and_cpp(
        c_source(functions, note, includes=[header_name], with_batch=not is_small, single=is_single)
    )
    files = {
        f"{stem}.c": f"{source_text}\n{parameter_source(stem, notes.values)}",
        f"{stem}.h": header_text(stem, note, notes, cases, batch=not is_small, single=is_single),
        f"{stem}_check.c": check_text(
            stem, cases, batch=not is_small, tolerance=_tolerance(cases) if is_single else None
        ),
    }
    sources = files | {f"{stem}.c": source_text}
    sizes: dict[str, Any] = {}
    if is_small:
        sizes = _small_target_data(stem, functions, sources, notes.values, options, accuracy)
    if options.library:
        version = tauloop_version()
        files = library_files(stem, files, cases, notes, version, single=is_single)
    manifest = _manifest(stem, cases, notes, source, files) | sizes
    files[f"{stem}_manifest.json"] = (
        json.dumps(manifest, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
    )
    if folder is not None and options.library:
        refuse_another_project(Path(folder), stem)
    written = () if folder is None else written_files(files, Path(folder))
    return Export(name=stem, manifest=manifest, files=files, written=written, accuracy=accuracy)


def _tolerance(cases: Sequence[Case]) -> float:
    """Return the tolerance of the test program in single precision.

    It covers compilers that fuse products and sums and compilers that do not.
    """
    deviations = [
        deviation(
            run_in_floats(case.function, case.inputs, TEST_SAMPLES, contraction)[port.name],
            case.expected[port.name],
        )
        for case in cases
        for contraction in (UNFUSED, FUSED)
        for port in case.function.outputs
    ]
    return max(DEVIATION_FACTOR * max(deviations, default=0.0), MIN_TOLERANCE)


def _small_target_data(
    stem: str,
    functions: Sequence[CFunction],
    files: Mapping[str, str],
    values: Mapping[str, float],
    options: ExportOptions,
    accuracy: SingleAccuracy | None,
) -> dict[str, Any]:
    """Return the manifest data of an export for a microcontroller.

    They are precision, code size and stack in bytes, upper bounds of iterations and operations,
    and accuracy.
    """
    upper_bounds = {
        function.name: {
            "newton_steps": _max_newton_steps(function),
            "operations": _max_operations(function),
        }
        for function in functions
    }
    data: dict[str, Any] = {
        "precision": options.precision,
        "most": upper_bounds,
        "target": {"name": options.target},
    }
    target = TARGETS[options.target]
    check = "check.c"
    try:
        data["target"] |= plain(target_figures(target, files, f"{stem}.c", list(upper_bounds)))
        check_sizes = target_figures(target, {check: parameter_source(stem, values)}, check, ())
        data["target"] |= {"parameter_check_bytes": check_sizes.code_bytes}
    except EngineError as error:
        (problem,) = error.problems
        data["target"]["not_measured"] = f"{problem.what}: {problem.remedy}"
    if accuracy is not None:
        rows = [plain(row) | {"share": row.share, "enough": row.enough} for row in accuracy.outputs]
        counts = {
            "states": accuracy.states,
            "refused": accuracy.refused,
            "condition_below": MAX_TEST_CONDITION,
        }
        data["accuracy"] = counts | {"outputs": plain(rows)}
    return data


def _max_newton_steps(function: CFunction) -> int:
    """Return the maximum number of Newton steps of a call; 0 without a Newton loop."""
    if any(isinstance(step, Newton) for step in function.program.steps):
        return function.max_steps
    return 0


def _max_operations(function: CFunction) -> int:
    """Return the number of operations of a call whose Newton loops all reach the step limit."""
    counts = operations(function)
    newton_operations = sum(counts["each_iteration"].values())
    return sum(counts["once"].values()) + function.max_steps * newton_operations


def _wide_samples(model: Model, entry: Motion, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return inputs of all functions at states spread over the workspace."""
    assembly = model.assembly
    walks = random_walk(
        assembly.loops,
        assembly.q[None],
        rng,
        walks=WALKS,
        steps=WALK_STEPS,
        step=WALK_STEP,
        locked=assembly.locked,
    )
    return _samples(model, entry, walks[rng.permutation(len(walks))], rng, len(walks))


def _as_floats(samples: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the nearest single-precision numbers."""
    return {name: array.astype(np.float32).astype(float) for name, array in samples.items()}


def _samples(
    model: Model, entry: Motion, q: np.ndarray, rng: np.random.Generator, count: int
) -> dict[str, np.ndarray]:
    """Return inputs of all functions at regular states, with random motion and forces.

    Args:
        model: the machine.
        entry: coordinates of the input motion.
        q: candidate states (N, n_q).
        rng: random number generator.
        count: number of samples; if fewer states are regular, they are repeated.

    Raises:
        PoseError: none of the states is regular enough.
    """
    assembly = model.assembly
    scale = assembly.loops.velocity_scale[list(model.platform.ports.v)]
    velocity = rng.normal(size=(len(q), len(scale))) * scale
    acceleration = rng.normal(size=(len(q), len(scale))) * scale
    if model.mechanism.cables and not assembly.passive:
        q, velocity, acceleration = _within_tension_bounds(model, q, velocity, acceleration)
    state = model.platform.evaluate(model.platform_position(q), velocity, acceleration, start=q)
    condition = entry.condition(q)
    is_good = state.health.is_reached & state.health.is_regular & (condition < MAX_TEST_CONDITION)
    is_good &= model.assembly.loops.gaps(q, state.q) < START_OFFSET
    rows = np.flatnonzero(is_good)[:count]
    if not len(rows):
        message = (
            f"none of {len(q)} states around the reference pose is regular enough for the test "
            f"program: the smallest condition number is {condition.min():.3g} (limit "
            f"{MAX_TEST_CONDITION:.3g})"
        )
        remedy = "choose a reference pose away from singularities"
        raise PoseError.of(model.mechanism.name, message, remedy)
    rows = np.resize(rows, count)
    q = state.q[rows]
    motion = (model.platform_position(q), velocity[rows], acceleration[rows])
    if entry is not model.platform:
        leading = list(assembly.leading)
        A = assembly.loops.transmission[leading]
        motion = (
            model.actuator_position(q)[:, leading],
            np.asarray(state.v)[rows] @ A.T,
            np.asarray(state.a)[rows] @ A.T,
        )
    table = model.mechanism.parameters
    return {
        **dict(zip(entry.ports.motion, motion, strict=True)),
        "start": q + START_OFFSET * assembly.loops.coordinate_scale * rng.normal(size=q.shape),
        "force": rng.normal(size=(count, len(model.mechanism.actuators))),
        "momentum_rate": rng.normal(size=(count, model.topology.n_v)),
        "last_momentum": rng.normal(size=(count, model.topology.n_v)),
        "last_external_force": rng.normal(size=(count, len(assembly.independent))),
        "period": rng.uniform(0.001, 0.01, size=(count, 1)),
        "bandwidth": rng.uniform(10.0, 100.0, size=(count, 1)),
        **_directions(entry, count),
        **_sharing_inputs(model, count),
        "theta": np.tile(table.vector(model.free), (count, 1)),
    }


def _directions(entry: Motion, count: int) -> dict[str, np.ndarray]:
    """Return random inputs of the derivative products: directions and factors, (count, n) by port."""
    rng = np.random.default_rng(2)
    ports = entry.ports.products(force_port(entry.assembly))
    return {name: rng.normal(size=(count, port.size)) for name, port in ports.items()}


def _within_tension_bounds(
    model: Model, q: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return states, velocities and accelerations with cable tensions within their bounds.

    If a motion violates a bound, it is replaced by rest at the same state. States that violate a
    bound even at rest are dropped.

    Raises:
        PoseError: the tensions violate a bound at every state, even at rest.
    """
    program = model.platform.program(INVERSE_DYNAMICS)
    n = len(q)
    within = np.zeros(n, dtype=bool)
    arguments = {
        "position": np.ascontiguousarray(model.platform_position(q)),
        "start": q,
        **_sharing_inputs(model, n),
    }
    arguments["theta"] = np.tile(model.mechanism.parameters.vector(model.free), (n, 1))
    for at_rest in (False, True):
        _, diagnostics = program.run(
            {**arguments, "velocity": velocity, "acceleration": acceleration}, n
        )
        within = solve_diagnostics(program, diagnostics).is_within
        if not at_rest:
            velocity = np.where(within[:, None], velocity, 0.0)
            acceleration = np.where(within[:, None], acceleration, 0.0)
    if not within.any():
        message = (
            f"the cable tensions violate their bounds at all {n} states around the reference pose"
        )
        raise PoseError.of("tension", message, "change the bounds or the reference pose")
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
    """Return a function with its inputs, and the outputs that the interpreter computes for them."""
    program = motion.program(spec)
    wanted = tuple(port for port in options.wanted(spec) if ports[port].size)
    if not options.outputs:
        ending = jacobian_name("", "theta")
        wanted += tuple(name for name in program.outputs if name.endswith(ending))
    inputs = list(spec.inputs)
    if reads_start(program, wanted):
        inputs.append("start")
    if model.free:
        inputs.append("theta")
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
            max_steps=single.NEWTON_ITERATIONS,
            largest=single.LARGEST,
        )
    arrays = {key: np.ascontiguousarray(array) for key, array in samples.items()}
    expected, run_diagnostics = program.run(arrays, TEST_SAMPLES)
    diagnostics = solve_diagnostics(program, run_diagnostics)
    failures = {
        "are out of reach": ~diagnostics.is_reached,
        "are singular": ~diagnostics.is_regular,
        "need cable tensions outside their bounds": ~diagnostics.is_within,
    }
    problems = Problems()
    for fault, failed in failures.items():
        if failed.any():
            problems.add(
                model.mechanism.name,
                f"{spec.name}: {failed.sum()} of {counted(failed.size, 'state')} of the test program {fault}",
                "choose a reference pose farther from singularities and limits",
            )
    PoseError.raise_if_any(problems)
    return Case(
        function=function,
        meaning=spec.meaning,
        inputs={port: arrays[port] for port in inputs},
        expected={port.name: expected[port.name] for port in function.outputs},
    )


def _sharing_inputs(model: Model, n: int) -> dict[str, np.ndarray]:
    """Return weights, and preloads in the middle of the tension bounds, for n samples."""
    tensions = model.mechanism.cables.values()
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
    """Return the manifest as plain data. It contains no times and no paths."""
    data = {
        "tauloop": tauloop_version(),
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
