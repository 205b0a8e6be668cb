"""Many starts of a machine under a sampled controller, in machine code or one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from tauloop.common.datasets import (
    OVER_TIME,
    channels,
    quantity_over,
)
from tauloop.common.errors import InputError, PoseError, solving
from tauloop.common.plain import OMITTED, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic
from tauloop.compiler.c.calling.evaluator import Compiled, default_evaluator
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.precision import Precision
from tauloop.compiler.c.printing.rows import RowKernel, row_kernel_letters, without_headers
from tauloop.compiler.catalogue import FORWARD_DYNAMICS
from tauloop.compiler.state import CONVERGED, SMALLEST_PIVOT
from tauloop.equations.ports import numbers
from tauloop.integrate.integrators import Integrator
from tauloop.integrate.system import HybridSystem
from tauloop.integrate.tableau import Tableau
from tauloop.mechanism.model import omission_diagnostics
from tauloop.model import Model
from tauloop.model.tool import Payload
from tauloop.motion import Trajectory
from tauloop.simulation.controllers.laws import (
    RUNGE_KUTTA_4,
    CompiledLaw,
    Controller,
    Loop,
    Sampling,
)
from tauloop.simulation.controllers.loop import control_numbers
from tauloop.simulation.controllers.run import (
    SUBSTEPS,
    control_provenance,
    loop_runner,
    prepared_loop,
    saturation,
    tool_errors,
)
from tauloop.simulation.controllers.system import ControlLayouts, control_system
from tauloop.simulation.forces import Wrench

#: Number of rows of a kernel's report: outcome, samples, steps, smallest discriminant, smallest
#: pivot, and largest residual.
REPORT_ROWS = 6
#: Argument types of the kernel: two sizes (number of samples, samples per stored sample) and
#: arrays.
CONTROL_LETTERS = row_kernel_letters(2, 9)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyControlledMotions(Result):
    """Motions from N starts under a controller, at T stored samples; NaN after an early end.

    Attributes:
        time: times of the stored samples (T,), s.
        reference: reference positions of the platform (T, n_position).
        position, velocity: motion of the platform (N, T, n_position), (N, T, n).
        force: actuator forces, held from each sample to the next (N, T, n_u), N or N m.
        tool_error: distance of the tool center point from its reference (N, T), m.
        turn_error: angle between the tool and its reference (N, T), rad.
        reached: number of samples that each run reached (N,).
        is_whole: whether each run reached the end (N,).
        steps: number of integration steps of each run (N,).
        pivot: smallest pivot divided by its typical magnitude (N,).
        residual: largest residual of the loops (N,), divided by the characteristic length or
            dimensionless.
        model: model of the simulated machine.
    """

    time: np.ndarray = field(metadata=OVER_TIME)
    reference: np.ndarray = field(metadata=channels("time", port="model.platform.ports.position"))
    position: np.ndarray = field(
        metadata=json_keys(nullable=True)
        | channels("start", "time", port="model.platform.ports.position")
    )
    velocity: np.ndarray = field(
        metadata=json_keys(nullable=True)
        | channels("start", "time", port="model.platform.ports.velocity")
    )
    force: np.ndarray = field(
        metadata=json_keys(nullable=True) | channels("start", "time", port="model.force_port")
    )
    tool_error: np.ndarray = field(
        metadata=json_keys(nullable=True) | quantity_over("start", "time", unit="m")
    )
    turn_error: np.ndarray = field(
        metadata=json_keys(nullable=True) | quantity_over("start", "time", unit="rad")
    )
    reached: np.ndarray = field(metadata=quantity_over("start"))
    is_whole: np.ndarray
    steps: np.ndarray = field(metadata=quantity_over("start"))
    pivot: np.ndarray = field(metadata=json_keys(nullable=True) | quantity_over("start"))
    residual: np.ndarray = field(metadata=json_keys(nullable=True) | quantity_over("start"))
    model: Model = field(repr=False, metadata=OMITTED)


@solving(PoseError)
def follow_many(
    trajectory: Trajectory,
    controller: Controller,
    sampling: Sampling,
    position: object,
    velocity: object | None = None,
    *,
    plant: Model | None = None,
    method: Tableau | Integrator = RUNGE_KUTTA_4,
    substeps: int = SUBSTEPS,
    settling: float = 0.0,
    wrench: Wrench | None = None,
    payload: Callable[[float], Payload] | None = None,
    values: Mapping[str, float] = MappingProxyType({}),
    every: int = 1,
) -> ManyControlledMotions:
    """Follow a trajectory from many starts; see `follow`.

    Machine, controller and an explicit integrator are compiled into one function. It runs on the
    `threads` of the evaluator of the simulated machine, or on a device
    (`evaluator=tl.export.gpu.Cuda()`) with one thread per start. With a delay, a law in Python or
    an implicit integrator, the starts run one after the other.

    Args:
        trajectory, controller, sampling: see `follow`.
        position: start positions of the platform (N, n_position), on the branch of the trajectory's
            start.
        velocity: start velocities of the platform (N, n); zero by default.
        plant, method, substeps, settling, wrench, payload, values: see `follow`.
        every: number of samples from each stored sample to the next.

    Returns:
        Motions and forces from all starts; NaN after a run that ended early.

    Raises:
        InputError: a machine, an option or an array is unsuitable. A failure during a run is not
            raised: the run ends early.
        PoseError: the trajectory cannot be followed at all, or a start is out of reach.

    Examples:
        >>> import numpy as np
        >>> import tauloop as tl
        >>> from tauloop.motion.planning import planned
        >>> from tauloop.simulation.controllers.laws import ComputedTorque, Sampling
        >>> model = tl.Model(tl.load("five_bar"))
        >>> trajectory = planned(model, tl.StrokeOptions(end={"x": 0.02}, duration=0.05))
        >>> position = model.platform.ports.at(model.assembly.q) + 1e-3 * np.random.default_rng(1).normal(size=(20, 2))
        >>> starts = tl.simulation.follow_many(trajectory, ComputedTorque(bandwidth=150.0), Sampling(), position)
        >>> starts.position.shape, bool(starts.is_whole.all())
        ((20, 51, 2), True)
    """
    _require_positive(every)
    loop, reference_states = prepared_loop(
        trajectory,
        controller,
        sampling,
        plant=plant,
        method=method,
        substeps=substeps,
        settling=settling,
        wrench=wrench,
        payload=payload,
        values=values,
    )
    x, v, q = _starts(loop, position, velocity)
    kernel = _kernel(loop, len(x))
    if kernel is None:
        states, forces, report = _one_by_one(loop, x, v, q, every)
    else:
        states, forces, report = _by_kernel(kernel, loop, x, v, q, every)
    plant = loop.plant
    n_p = plant.platform.ports.position.size
    stored = slice(None, None, every)
    reference_q = reference_states.q[stored]
    reference = plant.platform.ports.at(reference_q)
    known = np.isfinite(states).all(axis=2)
    errors = _tool_errors(loop, known, reference, states[known][:, :n_p], reference_q)
    starts = np.repeat(q, known.sum(axis=1), axis=0)
    result = ManyControlledMotions(
        diagnostics=(),
        provenance=control_provenance(loop, sampling),
        time=(np.arange(len(loop.feedforward)) * loop.period)[stored],
        reference=reference,
        position=states[:, :, :n_p],
        velocity=states[:, :, n_p:],
        force=forces,
        tool_error=errors[0],
        turn_error=errors[1],
        reached=report[1].astype(int),
        is_whole=report[0] == 0.0,
        steps=report[2].astype(int),
        pivot=report[4],
        residual=report[5],
        model=plant,
    )
    diagnostics = _all_diagnostics(result, loop, known, starts)
    return replace(result, diagnostics=diagnostics)


def _require_positive(every: int) -> None:
    """Reject a step between stored samples that is not positive."""
    if every < 1:
        raise InputError.of(
            "every", f"must be at least 1, got {every}", "give 1 to store every sample"
        )


def _all_diagnostics(
    result: ManyControlledMotions, loop: Loop, known: np.ndarray, starts: np.ndarray
) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of all motions.

    Args:
        result: the motions.
        loop: the controlled machine.
        known: whether a sample was reached (N, T).
        starts: coordinates near the known samples (n_known, n_q).
    """
    return (
        *_diagnostics(result),
        saturation(result.force[known], loop.limit),
        *_limit_diagnostics(result, known, starts),
        *omission_diagnostics(loop.plant.mechanism),
    )


def _tool_errors(
    loop: Loop, known: np.ndarray, reference: np.ndarray, position: np.ndarray, q: np.ndarray
) -> np.ndarray:
    """Return distances (m) and angles (rad) of the tool from its reference (2, N, T).

    Args:
        loop: the controlled machine.
        known: whether a sample was reached (N, T); the errors at other samples are NaN.
        reference: reference positions of the platform (T, n_position).
        position: positions of the platform at the known samples (n_known, n_position).
        q: coordinates of the reference (T, n_q).
    """
    errors = np.full((2, *known.shape), np.nan)
    sample = np.nonzero(known)[1]
    errors[:, known] = tool_errors(loop, reference[sample], position, q[sample])
    return errors


def _limit_diagnostics(
    result: ManyControlledMotions, known: np.ndarray, starts: np.ndarray
) -> tuple[Diagnostic, ...]:
    """Return diagnostics of coordinates beyond their stops.

    Args:
        result: the motions.
        known: whether a sample was reached (N, T).
        starts: coordinates near the known samples (n_known, n_q).
    """
    reached = result.model.platform.kinematics(result.position[known], start=starts)
    times = np.broadcast_to(result.time, known.shape)[known]
    return result.model.limits.diagnostics(reached.q, times)


def _starts(
    loop: Loop, position: object, velocity: object | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the platform's start positions (N, n_position), velocities (N, n) and coordinates.

    Raises:
        InputError: an array has a wrong shape.
        PoseError: a start is out of reach.
    """
    x = np.atleast_2d(numbers(position, "position"))
    size = (len(x), loop.plant.platform.ports.velocity.size)
    v = np.zeros(size)
    if velocity is not None:
        v = np.atleast_2d(numbers(velocity, "velocity"))
    q = loop.plant.platform.kinematics(x, v, start=np.tile(loop.q, (len(x), 1))).q
    return x, np.broadcast_to(v, size), q


def _kernel(loop: Loop, n: int) -> RowKernel | None:
    """Return the machine code of a loop for n starts; None if it does not support the loop.

    Raises:
        EngineError: no C compiler was found, or it fails.
    """
    evaluator, method = loop.plant.evaluator, loop.method.tableau
    if method is None or loop.delay or not isinstance(loop.controller, CompiledLaw):
        return None
    system = control_system(loop.plant, loop.model, loop.controller, loaded=loop.load is not None)
    program = loop.plant.platform.runner.program(FORWARD_DYNAMICS)
    samples = n * len(loop.feedforward)
    if not isinstance(evaluator, Compiled) and not evaluator.wants_code(program, samples):
        evaluator = default_evaluator()
    precision = evaluator.precision
    loop.method.require_precision(precision)
    text = control_text(system, method, precision)
    work = samples * loop.method.evaluations(loop.period)
    return evaluator.rows(text, "tl_control", CONTROL_LETTERS, precision, work)


def _by_kernel(
    kernel: RowKernel, loop: Loop, x: np.ndarray, v: np.ndarray, q: np.ndarray, every: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return states (N, T, ...), forces (N, T, n_u) and report (6, N), computed by a kernel."""
    layouts = ControlLayouts(loop.plant, loop.model, loop.controller, loaded=loop.load is not None)
    arrays, shapes = control_arrays(loop, layouts, (x, v, q), every)
    states, forces, report = kernel(len(x), (len(loop.feedforward), every), arrays, shapes)
    states, forces = (np.ascontiguousarray(array.transpose(2, 0, 1)) for array in (states, forces))
    return states, forces, report


def _one_by_one(
    loop: Loop, x: np.ndarray, v: np.ndarray, q: np.ndarray, every: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return states (N, T, ...), forces (N, T, n_u) and report (6, N), one run after the other."""
    run = loop_runner(loop)
    samples = -(-len(loop.feedforward) // every)
    states = np.full((len(x), samples, x.shape[1] + v.shape[1]), np.nan)
    forces = np.full((len(x), samples, len(loop.limit)), np.nan)
    report = np.zeros((REPORT_ROWS, len(x)))
    for i in range(len(x)):
        trace = run(replace(loop, position=x[i], velocity=v[i], q=q[i]))
        reached = -(-len(trace.force) // every)
        states[i, :reached] = np.hstack([trace.position, trace.velocity])[::every]
        forces[i, :reached] = trace.force[::every]
        report[:, i] = [
            trace.samples.outcome,
            len(trace.force),
            trace.samples.steps,
            *trace.samples.worst,
        ]
    return states, forces, report


def _diagnostics(result: ManyControlledMotions) -> tuple[Diagnostic, ...]:
    return (
        diagnostic(
            "fraction of the starts that reached the end",
            np.mean(result.is_whole),
            at_least=1.0,
            advice="see `is_whole` and `reached`; for details run a single initial state with `follow`",
        ),
        diagnostic(
            "smallest pivot relative to its typical size",
            result.pivot.min(),
            at_least=SMALLEST_PIVOT,
            advice="keep the motion away from singularities",
        ),
        diagnostic(
            "largest loop residual relative to the characteristic length",
            result.residual.max(),
            at_most=CONVERGED,
            advice="keep the motion within reach",
        ),
    )


def control_arrays(
    loop: Loop, parts: ControlLayouts, starts: tuple[Any, Any, Any], every: int, xp: Any = np
) -> tuple[list[Any], list[tuple[int, ...]]]:
    """Return the kernel's input arrays, and the shapes of its outputs: states, forces and report.

    Args:
        loop: the reference, the gains and the sampling.
        parts: layouts of the loop's arrays.
        starts: position, velocity and all coordinates (N, ...).
        every: number of samples from each stored sample to the next.
        xp: array module of the device that runs the kernel.
    """
    position, velocity, q = starts
    n, samples = len(q), -(-len(loop.feedforward) // every)
    inputs, constants = control_numbers(loop, parts)
    held = xp.array(xp.asarray(parts.held.rows(n, {"force": loop.initial_force})), order="F")
    for name, copies in (("estimate", 1), ("past", 3)):
        held[:, parts.held.slices[name]] = xp.concatenate([q] * copies, axis=1)
    state = xp.concatenate([position, velocity], axis=1)
    numbers = np.array([loop.period, *loop.method.numbers, float(loop.max_steps)])
    arrays = [xp.asarray(numbers), xp.asarray(inputs), xp.asarray(constants), held.T, q.T, state.T]
    return arrays, [
        (samples, state.shape[1], n),
        (samples, len(loop.limit), n),
        (REPORT_ROWS, n),
    ]


def control_text(
    system: HybridSystem, method: Tableau, precision: Precision = Precision.DOUBLE
) -> str:
    """Return the source of the kernel: routines, integrator, and the loop over samples."""
    defined = f"#define TL_FOUND {system.held + system.kept}\n"
    loop = defined + c_file("tauloop.simulation.controllers", "control.c")
    return without_headers(system.source(method, loop, precision=precision))
