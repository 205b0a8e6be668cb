"""Corrected motor positions of a machine that deforms under loads and heat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from tauloop.common.datasets import OVER_TIME, channels, in_table, quantity_over
from tauloop.common.errors import AssemblyError, InputError, PoseError, solving
from tauloop.common.files import csv_text
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.elasticity.compensation.tool_errors import LoadedTool, ToolLoads, ToolPose
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.heat.expansion import expansions_of, temperatures_of
from tauloop.elasticity.machine.poses import PoseInput, machine_coordinates
from tauloop.elasticity.static_analysis.stiffness import DIRECTIONS, MAX_DEFLECTION, TWIST_UNITS
from tauloop.equations.named_values import TOOL_PORT, named_values
from tauloop.equations.ports import checked, numbers
from tauloop.equations.topology import integrate
from tauloop.mechanism.description.units import EXPANSION, TEMPERATURE
from tauloop.mechanism.model import omission_diagnostics
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled
from tauloop.model.motion_table import motion_table

#: Number of passes of the correction. Each pass multiplies the error by about the relative
#: deflection. After two passes the error is far below the errors of linear elasticity.
PASSES = 2
#: Largest remaining error in the directions that actuators can correct, as a fraction of the
#: correction.
MAX_REMAINING = 1e-3
#: Largest second-order part of the displacement, as a fraction of the displacement.
MAX_SECOND_ORDER = 0.1
#: Note on the neglected inertia forces of telescopic rods.
TELESCOPE_NOTE = "Coriolis and centripetal forces of the parts of telescopic rods are neglected"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompensationOptions(Options):
    """Loads and temperatures, and a motion from a table.

    Attributes:
        wrench: wrench at the tool, such as 'fx=10,mz=0.5' (N, N m, base frame).
        temperatures: temperature of each part relative to the reference temperature, K; a number
            for all parts that have a coefficient of expansion.
        expansions: coefficients of expansion by part, 1/K, instead of the file's; or one number
            for all parts for which the file states none. The base, and bodies without beams,
            expand uniformly if they have a coefficient.
        weightless: neglect the weight of the machine.
        motion: motion from a table: CSV or Parquet with columns time, position.NAME, velocity.NAME,
            acceleration.NAME, each with its unit: 'position.platform.x [m]'.
        passes: number of corrections; from the second on, loads act at the corrected pose.

    Examples:
        >>> import tauloop as tl
        >>> tl.CompensationOptions(wrench={"fx": 100.0}).passes
        2
    """

    wrench: str | Mapping[str, str | float] | tuple[float, ...] | None = option(
        None, read=str, metavar="VALUES"
    )
    temperatures: float | Mapping[str, float] | None = option(
        None, unit=TEMPERATURE, below=np.inf, read=temperatures_of, metavar="VALUES"
    )
    expansions: float | Mapping[str, float] | None = option(
        None, unit=EXPANSION, below=np.inf, read=expansions_of, metavar="VALUES"
    )
    weightless: bool = option(False)
    motion: Path | None = option(None, metavar="FILE")
    passes: int = option(PASSES, least=1, most=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompensatedPoses(Result):
    """Motor positions at which the tool of a loaded, heated machine is at N commanded poses.

    A twist is here a small displacement of the tool center point: a translation and a rotation
    vector, in the axes of the base.

    Attributes:
        model: the machine.
        options: loads and temperatures.
        time: (N,) times of the samples of a motion, s; sample indices if no times are given.
        platform: (N, n) commanded positions of the platform.
        tool: (N, 3) commanded tool center points, m.
        rigid_actuators: (N, n_u) actuator positions of the undeformed machine.
        actuators: (N, n_u) corrected actuator positions.
        corrected_platform: (N, n) positions of the rigid machine's platform at these actuator
            positions.
        deflection: (N, 6) twist of the tool due to loads at the corrected positions, m and rad.
        heat: (N, 6) twist of the tool due to thermal expansion at the corrected positions, m and
            rad.
        remaining: (N, 6) remaining twist from the commanded to the actual tool pose, m and rad.
        correctable: (N, 6, m) twists of the tool that the actuators can correct: one for each of
            the m independent coordinates of the platform.
        second_order: (N,) displacement of the tool that is quadratic in loads and heat, m; linear
            elasticity neglects it. It is estimated from the change of the deflection along the
            correction, and from geometric stiffness.
        notes: assumptions about this machine.
    """

    quantity_order: ClassVar[tuple[str, ...]] = (
        "time",
        "position",
        "actuators",
        "rigid_actuators",
        "correction",
        "deflection",
        "heat",
        "remaining",
        "second_order",
    )
    model: Model = field(metadata=json_keys(machine="mechanism.name"))
    options: CompensationOptions = field(metadata=OMITTED)
    time: np.ndarray = field(metadata=json_keys("time_s") | OVER_TIME)
    platform: np.ndarray = field(
        metadata=channels("time", port="model.platform.ports.position", name="position")
    )
    tool: np.ndarray = field(metadata=json_keys("tool_m"))
    rigid_actuators: np.ndarray = field(metadata=channels("time", port="model.actuator_port"))
    actuators: np.ndarray = field(metadata=channels("time", port="model.actuator_port"))
    corrected_platform: np.ndarray
    deflection: np.ndarray = field(metadata=channels("time", names=DIRECTIONS, units=TWIST_UNITS))
    heat: np.ndarray = field(metadata=channels("time", names=DIRECTIONS, units=TWIST_UNITS))
    remaining: np.ndarray = field(metadata=channels("time", names=DIRECTIONS, units=TWIST_UNITS))
    correctable: np.ndarray = field(metadata=OMITTED)
    second_order: np.ndarray = field(
        metadata=json_keys("second_order_m") | quantity_over("time", unit="m")
    )
    notes: tuple[str, ...]

    @property
    @in_table(channels("time", port="model.actuator_port"))
    @in_json()
    def correction(self) -> np.ndarray:
        """Corrected minus rigid actuator positions (N, n_u), m or rad."""
        return np.asarray(self.actuators - self.rigid_actuators)

    @property
    @in_json()
    def remaining_distance(self) -> np.ndarray:
        """Distance (N,) of the tool center point from its commanded position, m."""
        return np.asarray(np.linalg.norm(self.remaining[:, :3], axis=1))

    def to_csv(self) -> str:
        """Return a CSV text: time, poses, positions of actuators and twists of the tool."""
        variables = list(self.variables())
        headers = tuple(f"{item.name} [{item.unit}]" for item in variables)
        values = np.column_stack([item.array() for item in variables])
        return csv_text(headers, [tuple(row) for row in values.tolist()])


@keywords(CompensationOptions)
@solving(PoseError)
def compensate(
    machine: MachineSource,
    poses: PoseInput = None,
    options: CompensationOptions | None = None,
    *,
    velocity: object | None = None,
    acceleration: object | None = None,
    wrenches: object | None = None,
    time: object | None = None,
) -> CompensatedPoses:
    """Return the motor positions that bring the tool of the deformed machine to commanded poses.

    This is an elastic feed-forward. The tool error δ due to weight, wrench, inertia and heat is
    calculated at the pose x of the rigid machine. Each of `passes` corrections changes x so that
    x + δ(x) approaches the commanded pose. The result contains the actuator positions of the rigid
    machine at x. The commanded coordinates of the platform are corrected up to the error that
    remains after these passes; a diagnostic limits it. A machine with fewer than six degrees of
    freedom keeps an error in the other directions (`remaining`). If joints are commanded, the sum
    of the squared errors is minimized, with rotations multiplied by the machine's length. Friction
    is neglected.
    Source: Klimchik, Pashkevich, Chablat, Hovland 2013, Compliance error compensation technique
    for parallel robots composed of non-perfect serial chains.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        poses: commanded poses of the platform; by default the reference pose. A single pose by
            names, such as ``{"x": "10 mm"}``, or rows (N, n) of its independent coordinates, SI.
        options: loads, temperatures and a motion from a table.
        velocity, acceleration: (N, m) rates of the platform's independent coordinates, SI; inertia
            forces then also deform the machine.
        wrenches: (N, 6) wrenches at the tool, one for each sample, instead of `wrench`.
        time: (N,) times of the samples, s.

    Raises:
        InputError: the machine has no elastic data and no temperatures are given, or an argument is
            wrong.
        AssemblyError: a part can move without any deformation.
        PoseError: a pose is out of reach or singular.

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
        >>> result = tl.compensate(machine, [[0.1], [0.2]], wrench={"fx": 10.0})
        >>> (1e6 * result.correction).round(3).ravel().tolist()
        [-2.0, -2.0]
    """
    model = modeled(machine)
    options = options or CompensationOptions()
    times, q, rates = _commanded(model, poses, (velocity, acceleration, time), options)
    command = model.platform_position(q)
    loads = ToolLoads(
        wrench=_wrenches(options, wrenches, len(q)),
        rates=rates,
        is_weightless=options.weightless,
        temperatures=options.temperatures,
        expansions=options.expansions,
    )
    tool = LoadedTool(model, loads)
    target = tool.pose(q)
    at_command = tool.error(q, with_second_order=True)
    x = _compensated(model, tool, q, target, at_command.total, options.passes)
    actuators = np.asarray(model.actuator_position(x))
    q_by_actuators = _forward_coordinates(model, x)
    error = tool.error(q_by_actuators)
    remaining = tool.pose_deviation(q_by_actuators, target, error.total)
    curvature = np.linalg.norm((error.total - at_command.total)[:, :3], axis=1)
    second_order = curvature + at_command.by_geometric_stiffness
    return CompensatedPoses(
        model=model,
        options=options,
        time=times,
        platform=command,
        tool=target.position,
        rigid_actuators=np.asarray(model.actuator_position(q)),
        actuators=actuators,
        corrected_platform=model.platform_position(x),
        deflection=error.deflection,
        heat=error.heat,
        remaining=remaining,
        correctable=tool.directions(q_by_actuators),
        second_order=second_order,
        notes=(*at_command.notes, *_motion_notes(model, rates)),
        diagnostics=(
            *at_command.diagnostics,
            *_diagnostics(tool, error.total, remaining, q_by_actuators, second_order),
            *model.limits.diagnostics(x),
            *omission_diagnostics(model.mechanism),
        ),
        provenance=provenance(
            options={"passes": options.passes, "weightless": options.weightless},
            inputs={"machine": model.mechanism.name, "samples": len(q)},
        ),
    )


def _motion_notes(model: Model, rates: object | None) -> tuple[str, ...]:
    """Return the note on telescopic rods if the machine moves."""
    has_telescopes = any(rod.telescope is not None for rod in model.mechanism.rods)
    return (TELESCOPE_NOTE,) if rates is not None and has_telescopes else ()


def _compensated(
    model: Model, tool: LoadedTool, q: Array, target: ToolPose, first_error: Array, passes: int
) -> Array:
    """Return coordinates (N, n_q) of the rigid machine at which the loaded tool is at its target.

    Args:
        model, tool: the machine and its loaded tool.
        q: commanded coordinates (N, n_q).
        target: commanded poses of the tool.
        first_error: errors (N, 6) of the tool at the commanded coordinates.
        passes: number of corrections.
    """
    x = q
    error = first_error
    for iteration in range(passes):
        if iteration > 0:
            error = tool.error(x).total
        x = _shifted(model, x, tool.correction(x, tool.pose_deviation(x, target, error)))
    return x


def _commanded(
    model: Model,
    poses: PoseInput,
    motion: tuple[object | None, object | None, object | None],
    options: CompensationOptions,
) -> tuple[Array, Array, tuple[Array, Array] | None]:
    """Return times (N,), coordinates (N, n_q), and velocities and accelerations (N, m) or None.

    Raises:
        InputError: a table is given in addition to poses or rates, or shapes or values are wrong.
        PoseError: a pose is out of reach or singular.
    """
    velocity, acceleration, time = motion
    ports = model.platform.ports.motion
    arguments = {"poses": poses, "velocity": velocity, "acceleration": acceleration, "time": time}
    if options.motion is not None:
        names = [name for name, value in arguments.items() if value is not None]
        if names:
            what = f"is given in addition to {', '.join(names)}"
            raise InputError.of("motion", what, "give either a table or arrays")
        times, values = motion_table(ports, options.motion)
        q = np.asarray(model.inverse_kinematics(values["position"]).q)
        return times, q, (values["velocity"], values["acceleration"])
    q, _ = machine_coordinates(model, poses)
    rates = None
    if velocity is not None or acceleration is not None:
        arrays = {
            name: np.zeros(ports[name].size) if arguments[name] is None else arguments[name]
            for name in ("velocity", "acceleration")
        }
        arrays["position"] = model.platform_position(q)
        values = checked(ports, arrays)[0]
        rates = values["velocity"], values["acceleration"]
        q = np.broadcast_to(q, (len(rates[0]), q.shape[1]))
    if time is None:
        return np.arange(len(q), dtype=float), q, rates
    times = np.atleast_1d(numbers(time, "time"))
    if times.shape != (len(q),):
        what = f"has {times.size} values for {len(q)} samples"
        raise InputError.of("time", what, "give a time for each sample")
    if not np.isfinite(times).all():
        what = f"contains {int((~np.isfinite(times)).sum())} non-finite values"
        raise InputError.of("time", what, "give a finite time for each sample")
    return times, q, rates


def _wrenches(options: CompensationOptions, wrenches: object | None, count: int) -> Array:
    """Return the wrenches (N, 6) at the tool.

    Raises:
        InputError: `wrench` and `wrenches` are given, or shapes or values are wrong.
    """
    if wrenches is None:
        wrench = named_values(TOOL_PORT, "wrench", options.wrench, np.zeros(6))
        return np.tile(np.asarray(wrench, dtype=float), (count, 1))
    if options.wrench is not None:
        raise InputError.of(
            "wrenches", "is given in addition to `wrench`", "give either `wrench` or `wrenches`"
        )
    port = replace(TOOL_PORT, name="wrenches")
    values = checked({"wrenches": port}, {"wrenches": wrenches})[0]["wrenches"]
    if len(values) not in (1, count):
        what = f"has {len(values)} rows for {count} samples"
        raise InputError.of("wrenches", what, "give one row for each sample")
    return np.broadcast_to(values, (count, 6))


def _shifted(model: Model, q: Array, change: Array) -> Array:
    """Return the coordinates (N, n_q) after a displacement (N, m) of the platform's coordinates."""
    G = model.platform.embedding(model.platform_position(q), start=q)
    displaced = integrate(model.topology, q, (G @ change[..., None])[..., 0])
    position = model.platform.ports.at(displaced)
    return np.asarray(model.inverse_kinematics(position, start=q).q)


def _forward_coordinates(model: Model, q: Array) -> Array:
    """Return the forward kinematics (N, n_q) at the actuator positions of coordinates q."""
    try:
        ports = model.actuators.ports
    except AssemblyError:
        # Several actuators act on the same coordinate, so there is no forward kinematics.
        return q
    return np.asarray(model.actuators.kinematics(ports.at(q), start=q).q)


def _diagnostics(
    tool: LoadedTool, total: Array, remaining: Array, q: Array, second_order: Array
) -> Iterator[Diagnostic]:
    """Yield diagnostics of the correction's accuracy."""
    distance = float(np.linalg.norm(total[:, :3], axis=1).max())
    scale = distance or 1.0
    yield diagnostic(
        "largest displacement of the tool, fraction of the machine's size",
        distance / tool.length,
        at_most=MAX_DEFLECTION,
        advice="the linear equations hold only for small displacements; reduce the loads or the "
        "temperatures",
    )
    correctable_part = tool.correctable(q, remaining)
    weight = np.repeat([1.0, tool.length], 3)
    largest_error = np.linalg.norm(total * weight, axis=1).max() or 1.0
    yield diagnostic(
        "remaining error in corrected directions, fraction of the correction",
        np.linalg.norm(correctable_part * weight, axis=1).max() / largest_error,
        at_most=MAX_REMAINING,
        advice="increase `passes`, or exclude poses near singularities",
    )
    yield diagnostic(
        "second-order part of the displacement, fraction of it",
        second_order.max() / scale,
        at_most=MAX_SECOND_ORDER,
        advice="linear elasticity is not accurate for these loads; reduce them",
    )
    largest = float(np.linalg.norm(remaining[:, :3], axis=1).max())
    yield diagnostic("largest remaining error of the tool's position", largest, unit="m")
    rotation = float(np.linalg.norm(remaining[:, 3:], axis=1).max())
    yield diagnostic("largest remaining error of the tool's orientation", rotation, unit="rad")
