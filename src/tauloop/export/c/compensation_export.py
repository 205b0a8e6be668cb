"""Export of corrected motor positions as C: inverse kinematics with load and temperature."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Status, content, diagnostic, status_of
from tauloop.compiler.c.calling.evaluator import reads_start
from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.printing import single
from tauloop.compiler.c.printing.source import CFunction, c_name
from tauloop.compiler.state import solve_diagnostics
from tauloop.elasticity import CompensationOptions, compensate, stiffness
from tauloop.elasticity.compensation.compensation_program import (
    ACTUATOR_OUTPUT,
    PASSES,
    TEMPERATURES,
    CompensationProgram,
    compensation_program,
)
from tauloop.elasticity.heat.expansion import expansions_of
from tauloop.equations.named_values import TOOL_PORT
from tauloop.equations.ports import motor_port
from tauloop.export.c.export import PRECISIONS, Export, ExportOptions, finished_export
from tauloop.export.c.export_texts import Case, HeaderNotes
from tauloop.export.c.single_accuracy import (
    FUSED,
    UNFUSED,
    SingleAccuracy,
    run_in_floats,
    single_accuracy,
)
from tauloop.mechanism.description.units import EXPANSION
from tauloop.model.c_ports import c_ports
from tauloop.model.model import MachineSource, Model, modeled

#: Number of samples in the test program.
TEST_SAMPLES = 5
#: Deflection at the samples, as a fraction of the machine's size.
SAMPLE_DEFLECTION = 1e-4
#: Largest temperature rise at the samples, K.
SAMPLE_TEMPERATURE = 5.0
#: Limit of the difference between the exported function and `compensate`, as a fraction of the
#: correction.
MAX_DIFFERENCE = 1e-6
NAME = "compensation"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompensationExportOptions(Options):
    """Corrections, names and precision of the exported function.

    Attributes:
        name: prefix of all generated names; default: the machine's name.
        precision: double or single; single is for a microcontroller: all numbers are floats, and
            there are no batch kernels.
        passes: number of corrections; from the second on, loads act at the corrected pose.
        expansions: coefficients of expansion by part, 1/K, instead of the file's; or one number
            for all parts for which the file states none. The base, and bodies without beams,
            expand uniformly if they have a coefficient.
        weightless: neglect the weight of the machine.
        seed: seed of the loads in the test program.

    Examples:
        >>> import tauloop as tl
        >>> tl.CompensationExportOptions(precision="single").passes
        2
    """

    name: str | None = None
    precision: str = option("double", choices=PRECISIONS)
    passes: int = option(PASSES, least=1, most=10)
    expansions: float | Mapping[str, float] | None = option(
        None, unit=EXPANSION, below=np.inf, read=expansions_of, metavar="VALUES"
    )
    weightless: bool = option(False)
    seed: int = option(0, least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompensationExport(Export):
    """The exported function of corrected motor positions.

    Attributes:
        parts: parts whose temperatures are inputs, in their order.
        difference: largest difference from `compensate`, as a fraction of the correction.
        tool_error: largest error of the tool's position caused by single precision at the sampled
            poses, m; None for double.
    """

    parts: tuple[str, ...] = ()
    difference: float = 0.0
    tool_error: float | None = field(default=None, metadata=json_keys("tool_error_m"))

    @property
    def status(self) -> Status:
        """Return doubtful if an error is too large; see `diagnostics`."""
        return status_of(self.diagnostics)

    @property
    @in_json()
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the errors of the exported function."""
        difference = diagnostic(
            "largest difference from `compensate`, relative to the correction",
            self.difference,
            at_most=MAX_DIFFERENCE,
            advice="keep the reference pose away from singularities",
        )
        if self.accuracy is None or self.tool_error is None:
            return (difference,)
        return (
            difference,
            *(item.diagnostic for item in self.accuracy.outputs),
            diagnostic("largest tool error due to single precision", self.tool_error, unit="m"),
        )


@keywords(CompensationExportOptions)
def export_compensation(
    machine: MachineSource,
    folder: str | Path | None = None,
    options: CompensationExportOptions | None = None,
) -> CompensationExport:
    """Export inverse kinematics with load and temperature as C: pose to corrected motor positions.

    The function takes the commanded pose, a wrench at the tool and temperatures of the parts. It
    returns the same motor positions as `compensate` with the same number of passes. The code
    allocates no memory. All parameters are constants.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        folder: folder for the files. It is created if missing, and its other files are left alone.
            Either all files are written or none. Without a folder, the result only contains the
            texts.
        options: name, precision and coefficients of expansion.

    Raises:
        InputError: the machine has no elastic data, the code does not support one of its parts, or
            the folder cannot be written.
        PoseError: a sampled pose is singular.
        EngineError: single precision needs a C compiler, and none was found.

    Examples:
        >>> import tauloop as tl
        >>> machine = tl.loads('''
        ... format: tauloop-machine/1
        ... name: slide
        ... provenance: {status: chosen, source: example}
        ... gravity: [0, 0, -9.81 m/s^2]
        ... bodies: {cart: {mass: 2 kg}}
        ... joints: {rail: {type: prismatic, axis: x, parent: base, child: cart}}
        ... actuators: {motor: {on: rail, force: 10 N, stiffness: 5 N/um}}
        ... platform: {body: cart, independent: [rail]}
        ... ''')
        >>> sorted(tl.export_compensation(machine).files)
        ['slide.c', 'slide.h', 'slide_check.c', 'slide_manifest.json']
    """
    options = options or CompensationExportOptions()
    model = fixed_model(modeled(machine))
    stem = c_name(model.mechanism.name if options.name is None else options.name)
    built = compensation_program(
        model,
        expansions=options.expansions,
        is_weightless=options.weightless,
        passes=options.passes,
    )
    is_single = options.precision == "single"
    samples = load_samples(model, built, options.seed)
    if is_single:
        samples = {key: as_floats(values) for key, values in samples.items()}
    function = compensation_function(model, built, f"{stem}_{NAME}", is_single=is_single)
    expected = _expected_positions(model, built, samples)
    difference = _difference(model, built, options, samples, expected)
    accuracy, tool_error = None, None
    if is_single:
        accuracy = single_accuracy([function], samples)
        tool_error = _tool_error(model, function, samples, expected, accuracy)
    chosen = np.arange(len(expected)) < TEST_SAMPLES
    case = Case(
        function=function,
        meaning="positions of the actuators that place the tool of the loaded, warm machine at the commanded pose",
        inputs={port.name: samples[port.name][chosen] for port in function.inputs},
        expected={ACTUATOR_OUTPUT: expected[chosen]},
    )
    digest = hashlib.sha256(content(replace(model.mechanism, file="")).encode()).hexdigest()
    source = {
        "machine": {"name": model.mechanism.name, "sha256": digest},
        "compensation": {
            "parts": built.parts,
            "passes": options.passes,
            "weightless": options.weightless,
            "difference_to_compensate": difference,
            "tool_error_m": tool_error,
        },
    }
    finished = finished_export(
        stem,
        [case],
        _header_notes(model),
        source,
        folder,
        options=ExportOptions(precision=options.precision),
        accuracy=accuracy,
    )
    return CompensationExport(
        name=finished.name,
        manifest=finished.manifest,
        files=finished.files,
        written=finished.written,
        accuracy=accuracy,
        parts=built.parts,
        difference=difference,
        tool_error=tool_error,
    )


def _header_notes(model: Model) -> HeaderNotes:
    """Return the texts of the header: the machine, the inputs and the constants."""
    return HeaderNotes(
        made_from=f"the machine {model.mechanism.name!r}",
        description=model.mechanism.description,
        given="the commanded pose of the platform, the wrench at the tool, and temperatures",
        baked_in=list(model.mechanism.parameters),
    )


def fixed_model(model: Model) -> Model:
    """Return a model after checking that it has no free parameters.

    Raises:
        InputError: it has free parameters.
    """
    if model.free:
        what = f"has free parameters ({', '.join(model.free)}), but elastic data must be constant"
        raise InputError.of("machine", what, "pass the mechanism instead of the model")
    return model


def compensation_ports(model: Model, built: CompensationProgram) -> dict[str, CPort]:
    """Return the ports of wrench, temperatures and actuator positions, by name."""
    motors = motor_port(model.assembly, ACTUATOR_OUTPUT, "rad", "m")
    rises = "rise of temperatures above the reference"
    ports = (
        ("wrench", TOOL_PORT.columns, TOOL_PORT.units, "force and moment at the tool, base axes"),
        (TEMPERATURES, built.parts, ("K",) * len(built.parts), rises),
        (ACTUATOR_OUTPUT, motors.columns, motors.units, "corrected positions of the actuators"),
    )
    return {
        name: CPort(name=name, size=len(columns), columns=columns, units=units, meaning=meaning)
        for name, columns, units, meaning in ports
    }


def compensation_function(
    model: Model, built: CompensationProgram, name: str, *, is_single: bool
) -> CFunction:
    """Return the C function of corrected actuator positions."""
    ports = c_ports(model, model.platform) | compensation_ports(model, built)
    inputs = ["position", "wrench"]
    if built.parts:
        inputs.append(TEMPERATURES)
    if reads_start(built.program, (ACTUATOR_OUTPUT,)):
        inputs.append("start")
    function = CFunction(
        name=name,
        program=built.program,
        inputs=tuple(ports[port] for port in inputs),
        outputs=(ports[ACTUATOR_OUTPUT],),
    )
    if not is_single:
        return function
    return replace(
        function,
        last_step=single.SINGLE_STEP_TOLERANCE,
        max_steps=single.NEWTON_ITERATIONS,
        largest=single.LARGEST,
    )


def as_floats(values: np.ndarray) -> np.ndarray:
    """Return the nearest single-precision numbers."""
    return values.astype(np.float32).astype(float)


def load_samples(model: Model, built: CompensationProgram, seed: int) -> dict[str, np.ndarray]:
    """Return inputs by port: poses, with random wrenches and temperatures.

    The wrenches and temperatures cause small deflections.
    """
    rng = np.random.default_rng(seed)
    q = built.states[rng.permutation(len(built.states))]
    reference = stiffness(model)
    length = reference.structure.structure.length
    force = SAMPLE_DEFLECTION * length * float(reference.worst_translational[0])
    weight = np.repeat([force, SAMPLE_DEFLECTION * float(reference.worst_rotational[0])], 3)
    weight = np.where(np.isfinite(weight), weight, 0.0)
    return {
        "position": np.ascontiguousarray(model.platform_position(q)),
        "wrench": rng.uniform(-1.0, 1.0, (len(q), 6)) * weight,
        TEMPERATURES: SAMPLE_TEMPERATURE
        * rng.uniform(-1.0, 1.0, (len(q), max(len(built.parts), 1))),
        "start": q,
        "theta": np.zeros((len(q), 0)),
    }


def _expected_positions(
    model: Model, built: CompensationProgram, samples: dict[str, np.ndarray]
) -> np.ndarray:
    """Return the actuator positions (M, n_u) at the samples, and remove samples that fail.

    Raises:
        InputError: all samples fail.
    """
    values, diagnostics = built.program.run(samples, len(samples["position"]))
    state = solve_diagnostics(built.program, diagnostics)
    good = state.is_reached & state.is_regular
    if not good.any():
        what = "no pose around the reference pose is regular"
        raise InputError.of(model.mechanism.name, what, "choose another reference pose")
    for key in samples:
        samples[key] = np.ascontiguousarray(samples[key][good])
    return np.asarray(values[ACTUATOR_OUTPUT][good])


def _difference(
    model: Model,
    built: CompensationProgram,
    options: CompensationExportOptions,
    samples: Mapping[str, np.ndarray],
    expected: np.ndarray,
) -> float:
    """Return the largest difference from `compensate`, as a fraction of the correction."""
    rises = dict(zip(built.parts, samples[TEMPERATURES][0].tolist(), strict=False))
    count = len(expected)
    values, _ = built.program.run(
        {**samples, TEMPERATURES: np.tile(samples[TEMPERATURES][:1], (count, 1))}, count
    )
    same = CompensationOptions(
        temperatures=rises or None,
        expansions=options.expansions,
        weightless=options.weightless,
        passes=options.passes,
    )
    independent = compensate(model, samples["position"], same, wrenches=samples["wrench"])
    correction = float(np.abs(independent.correction).max())
    error = float(np.abs(values[ACTUATOR_OUTPUT] - independent.actuators).max())
    return error / correction if correction > 0.0 else 0.0


def _tool_error(
    model: Model,
    function: CFunction,
    samples: Mapping[str, np.ndarray],
    expected: np.ndarray,
    accuracy: SingleAccuracy,
) -> float:
    """Return the largest error of the tool's position caused by single precision, m."""
    J = model.platform.tool_jacobian(samples["position"])[:, :3]
    R = model.platform.actuator_jacobian(samples["position"])
    largest = 0.0
    for contraction in (UNFUSED, FUSED):
        run = run_in_floats(function, samples, len(expected), contraction)
        error = (np.linalg.pinv(R) @ (run[ACTUATOR_OUTPUT] - expected)[..., None])[..., 0]
        displacement = (J @ error[..., None])[..., 0]
        largest = max(largest, float(np.linalg.norm(displacement, axis=1).max()))
    return largest
