"""Forward and inverse kinematics and Jacobians at one pose with named coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any, ClassVar

import numpy as np

from tauloop.common.datasets import (
    Variable,
    channels,
    in_table,
    numbered,
    quantity_over,
    several,
)
from tauloop.common.errors import InputError, PoseError, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, in_json, json_keys, records
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.equations.assembly.limits import LimitViolation, require_within_limits
from tauloop.equations.named_values import named_values
from tauloop.equations.ports import (
    ACTUATORS,
    PLATFORM,
    Entry,
    Port,
    coordinate_units,
    coordinates_text,
    motor_port,
    output_port,
)
from tauloop.geometry.machine_geometry import machine_geometry
from tauloop.kinematics.actuator_positions import actuator_values, agreement, given_columns
from tauloop.kinematics.drum_jumps import drum_diagnostics
from tauloop.kinematics.equilibrium import static_equilibrium, unstated_passive
from tauloop.kinematics.homotopy.monodromy import Report, unreported
from tauloop.kinematics.modes.modes import MODE_RESIDUAL, ModeOptions, assembly_modes, working_modes
from tauloop.kinematics.straight_path import reached_along_line
from tauloop.mechanism.poses import homogeneous, rotation_quaternion, rotation_vector
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

#: Velocities whose Jacobian can be computed.
TARGETS = ("tool", "actuators", "platform")


@dataclass(frozen=True, slots=True, kw_only=True)
class KinematicsOptions(Options):
    """Options of forward and inverse kinematics.

    Attributes:
        all_modes: list every mode, not only that of the reference pose.
        seed: seed of the search for modes.
        thorough: also test the completeness of modes of blocks with many angles; takes minutes.
        within_limits: reject poses beyond a stop of the machine file; otherwise they are reported.
        encoder_noise: standard deviation of the encoder readings, which weights redundant
            actuators: '0.1 mm' for all, or by name, 'line1.winch=0.1mm'. The default is 1e-5 rad,
            or 1e-5 of the machine's characteristic length.

    Examples:
        >>> import tauloop as tl
        >>> tl.KinematicsOptions(all_modes=True, seed=1).all_modes
        True
    """

    all_modes: bool = option(False)
    seed: int = option(0, least=0)
    thorough: bool = option(False)
    within_limits: bool = option(False)
    encoder_noise: str | float | Mapping[str, str | float] | None = option(None, read=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Poses(Result):
    """M poses of a machine at one given position of its platform or its actuators.

    Attributes:
        machine: name of the machine.
        entry: the side whose position is given, `PLATFORM` or `ACTUATORS`.
        platform_port, actuator_port: names and units of the platform and actuator positions.
        coordinates, units: names and units of all coordinates, including those of the joints.
        q: coordinates (M, n_q) of the poses; the pose in the reference pose's mode is first.
        platform_position: platform positions (M, n).
        actuator_position: actuator positions (M, n_u), m or rad.
        tool: tool center points (M, 3), m, base frame.
        tool_rotation: orientations of the tool's frame (M, 3, 3), base frame.
        output_port: names and units of the outputs of the machine file.
        output_values: values (M, n_outputs) of these outputs.
        residual: largest loop residual of each pose (M,), m; dimensionless residuals are multiplied
            by the characteristic length.
        misfit: given positions of redundant actuators minus those of the pose, by name, m or rad.
        resting: passive degrees of freedom without a given position; they are at rest in the
            equilibrium of gravity, springs and stops.
        at_stops: coordinates that press against a stop in this equilibrium.
        beyond: limit violations of each pose.
    """

    quantity_order: ClassVar[tuple[str, ...]] = (
        "pose",
        "position",
        "coordinate",
        "tool",
        "output",
        "residual",
    )
    needs_forces: ClassVar[bool] = False
    machine: str
    entry: Entry = field(metadata=json_keys(given="name"))
    platform_port: Port = field(metadata=json_keys("platform"))
    actuator_port: Port = field(metadata=json_keys("actuators"))
    coordinates: tuple[str, ...]
    units: tuple[str, ...]
    q: np.ndarray = field(
        metadata=OMITTED
        | several(
            numbered("pose"),
            channels("pose", names="coordinates", units="units", name="coordinate"),
        )
    )
    platform_position: np.ndarray = field(
        metadata=OMITTED | channels("pose", port="platform_port", name="position")
    )
    actuator_position: np.ndarray = field(
        metadata=OMITTED | channels("pose", port="actuator_port", name="position")
    )
    tool: np.ndarray = field(metadata=OMITTED | channels("pose", names=("x", "y", "z"), unit="m"))
    tool_rotation: np.ndarray = field(metadata=OMITTED)
    residual: np.ndarray = field(metadata=OMITTED | quantity_over("pose", unit="m"))
    output_port: Port = field(metadata=OMITTED)
    output_values: np.ndarray = field(
        metadata=OMITTED | channels("pose", port="output_port", name="output")
    )
    misfit: Mapping[str, float]
    resting: tuple[str, ...]
    at_stops: tuple[str, ...]
    beyond: tuple[tuple[LimitViolation, ...], ...] = field(metadata=OMITTED)

    @property
    def given(self) -> str:
        """Names of the given coordinates."""
        port = self.platform_port if self.entry is PLATFORM else self.actuator_port
        return coordinates_text(self.entry, port.columns)

    @property
    def platform(self) -> np.ndarray:
        """Platform coordinates (n,) of the first pose; m, rad or components of a quaternion."""
        return np.asarray(self.platform_position[0])

    @property
    def actuators(self) -> np.ndarray:
        """Actuator coordinates (n_u,) of the first pose, m or rad."""
        return np.asarray(self.actuator_position[0])

    @property
    def tool_pose(self) -> np.ndarray:
        """Poses of the tool's frame in the base frame (M, 4, 4), homogeneous, m."""
        return homogeneous(self.tool_rotation, self.tool)

    @property
    @in_json()
    def outputs(self) -> dict[str, dict[str, object]]:
        """Outputs of the machine file in the first pose, by name, each with its SI unit."""
        if not len(self.q):
            return {}
        port = self.output_port
        values = zip(port.columns, port.units, self.output_values[0].tolist(), strict=True)
        return {name: {"value": value, "unit": unit} for name, unit, value in values}

    def _contents(self) -> dict[str, object]:
        return {
            "machine": self.machine,
            "given": self.given,
            **dict(zip(self.platform_port.columns, self.platform.tolist(), strict=True)),
            **dict(zip(self.actuator_port.columns, self.actuators.tolist(), strict=True)),
            "tool": self.tool[0],
            "poses": len(self.q),
            "status": self.status,
        }

    @property
    @in_table(channels("pose", names=("rx", "ry", "rz"), unit="rad", name="tool"))
    def tool_rotation_vector(self) -> np.ndarray:
        """Orientations of the tool's frame as rotation vectors (M, 3) in the base frame, rad."""
        return rotation_vector(self.tool_rotation)

    @property
    @in_json()
    def poses(self) -> list[dict[str, Any]]:
        """The poses one by one."""
        return records(
            platform=self.platform_position,
            actuators=self.actuator_position,
            tool_m=self.tool,
            tool_rotation=self.tool_rotation,
            tool_rotation_vector_rad=self.tool_rotation_vector,
            tool_quaternion=rotation_quaternion(self.tool_rotation),
            q=self.q,
            outputs=self.output_values,
            residual=self.residual,
            beyond_stops=self.beyond,
        )


@keywords(KinematicsOptions)
@solving(PoseError)
def forward_kinematics(
    machine: MachineSource,
    actuators: object | None = None,
    options: KinematicsOptions | None = None,
    *,
    report: Report | None = None,
) -> Poses:
    """Return the poses of the platform at given positions of the actuators.

    By default, the solution is tracked continuously from the reference pose
    (`Model.forward_kinematics`). As in `inverse_kinematics`, the pose is doubtful if moving the
    actuators along a straight line from the reference pose does not reach it.

    With the option `all_modes`, polynomial continuation finds all assembly modes
    (`assembly_modes`).

    If actuators are named but passive degrees of freedom are not, the passive ones come to rest
    under gravity and springs, or at a stop (`Poses.resting`). If nothing stops such a motion, the
    pose is doubtful.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        actuators: positions of the actuators: a row in SI units, a mapping from names, or a text
            such as ``motor_1=20deg``. Actuators that are not named are at the reference pose. If
            redundant actuators are named, a least-squares fit uses all named actuators.
        options: selection of poses, limits and encoder noise.
        report: called with the progress of the search for modes.

    Raises:
        InputError: wrong names, units or values.
        PoseError: the machine does not reach the position from its reference pose.

    Examples:
        >>> import tauloop as tl
        >>> poses = tl.forward_kinematics(tl.load("five_bar"), {"motor_1": "100deg"})
        >>> poses.to_pandas()["position.platform.y"].round(3).tolist()
        [0.499]
        >>> poses.to_xarray()["position.platform.y"].attrs["units"]
        'm'
    """
    return _poses(
        modeled(machine),
        ACTUATORS,
        actuators,
        options or KinematicsOptions(),
        report or unreported,
    )


@keywords(KinematicsOptions)
@solving(PoseError)
def inverse_kinematics(
    machine: MachineSource,
    pose: object | None = None,
    options: KinematicsOptions | None = None,
    *,
    report: Report | None = None,
) -> Poses:
    """Return the positions of the actuators at a given position of the platform.

    By default, the pose is in the working mode of the reference pose. With the option `all_modes`,
    every posture of the legs is returned.

    If a loop is solved by Newton's method, the solution is tracked along the straight line of
    positions from the reference pose. A pose that is not reached along this line, such as a pose
    beyond a singularity, is doubtful. Functions for batches (`Model.inverse_kinematics`) skip this check.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        pose: position of the platform: a row in SI units, a mapping from names, or a text such as
            ``x=50mm,rz=10deg`` (a rotation vector from the reference orientation). Coordinates that
            are not named are at the reference pose.
        options: selection of poses and limits.
        report: called with the progress of the search for modes.

    Raises:
        InputError: wrong names, units or values.
        PoseError: the pose is out of reach or singular; the message states which loop fails.

    Examples:
        >>> import tauloop as tl
        >>> poses = tl.inverse_kinematics(tl.load("delta"), {"x": "50 mm"})
        >>> poses.to_pandas()["position.leg1.motor"].round(3).tolist()
        [0.609]
    """
    return _poses(
        modeled(machine), PLATFORM, pose, options or KinematicsOptions(), report or unreported
    )


def _poses(
    model: Model, entry: Entry, position: object, options: KinematicsOptions, report: Report
) -> Poses:
    ports = model.functions(entry).ports
    fit = None
    if entry is ACTUATORS:
        values, fit = actuator_values(model, position, options.encoder_noise)
    else:
        values = named_values(ports.position, "pose", position, ports.at(model.assembly.q))
    diagnostics: tuple[Diagnostic, ...] = agreement(fit)
    equilibrium = None
    if entry is ACTUATORS and fit is None and not options.all_modes:
        free = unstated_passive(model, given_columns(ports.position, position))
        if free:
            equilibrium = static_equilibrium(model, values, free)
            diagnostics = (*diagnostics, *equilibrium.diagnostics(model))
            values = equilibrium.position if equilibrium.is_at_rest else values
    if options.all_modes:
        search = assembly_modes if entry is ACTUATORS else working_modes
        modes = search(
            model, values, ModeOptions(seed=options.seed, thorough=options.thorough), report=report
        )
        modes = modes.within_limits() if options.within_limits else modes
        q, diagnostics = modes.q, (*diagnostics, *modes.diagnostics)
    else:
        solve = model.forward_kinematics if entry is ACTUATORS else model.inverse_kinematics
        pose = np.asarray(solve(values).q)
        path: tuple[Diagnostic, ...] = ()
        if fit is None:
            pose, path = reached_along_line(model.functions(entry), values, pose)
        q = np.atleast_2d(pose)
        diagnostics = (*diagnostics, *path, *_limited(model, q[0], options.within_limits))
    loops = model.assembly.loops
    residual = loops.largest_residual(loops.residuals(q)[0])
    geometry = machine_geometry(model, q)
    outputs = model.outputs(q)
    output_values = np.zeros((len(q), 0))
    if outputs:
        output_values = np.stack(list(outputs.values()), axis=-1)
    advice = "the pose is badly conditioned: choose a pose farther from singularities"
    value = float(residual.max()) if len(residual) else None
    closing = diagnostic(
        "largest loop residual",
        value,
        at_most=MODE_RESIDUAL * loops.length,
        unit="m",
        advice=advice,
    )
    return Poses(
        machine=model.mechanism.name,
        entry=entry,
        platform_port=model.platform.ports.position,
        actuator_port=motor_port(model.assembly, "actuators", "rad", "m"),
        coordinates=model.topology.coordinate_names,
        units=coordinate_units(model.topology),
        q=q,
        platform_position=model.platform_position(q),
        actuator_position=model.actuator_position(q),
        tool=geometry.tool,
        tool_rotation=geometry.tool_rotation,
        output_port=output_port(model.mechanism),
        output_values=output_values,
        residual=residual,
        misfit={} if fit is None else dict(zip(fit.names, fit.residual.tolist(), strict=True)),
        resting=equilibrium.names if equilibrium is not None and equilibrium.is_at_rest else (),
        at_stops=equilibrium.at_stops if equilibrium is not None and equilibrium.is_at_rest else (),
        beyond=tuple(model.limits.beyond(row) for row in q),
        diagnostics=(closing, *drum_diagnostics(model.assembly, q), *diagnostics),
        provenance=provenance(
            options={"all_modes": options.all_modes, "seed": options.seed},
            inputs={"machine": model.mechanism.name},
        ),
    )


def _limited(model: Model, q: np.ndarray, within_limits: bool) -> tuple[Diagnostic, ...]:
    """Return a diagnostic of the limit violations of a pose; reject these with `within_limits`."""
    diagnostics = tuple(model.limits.diagnostics(q))
    if within_limits:
        require_within_limits(diagnostics)
    return diagnostics


@dataclass(frozen=True, slots=True, kw_only=True)
class JacobianOptions(Options):
    """Options of a Jacobian.

    Attributes:
        of: velocity whose Jacobian is computed (rows); for the tool these are its velocity and
            angular velocity in the base frame.
        wrt: differentiate with respect to this velocity (columns); by default the platform's for a
            pose of the platform, and the actuators' for a pose of the actuators.
        within_limits: reject poses beyond a stop of the machine file; otherwise they are reported.

    Examples:
        >>> import tauloop as tl
        >>> tl.JacobianOptions(of="actuators").of
        'actuators'
    """

    of: str = option("tool", choices=TARGETS)
    wrt: str | None = option(None, choices=("platform", "actuators"))
    within_limits: bool = option(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jacobian(Result):
    """A Jacobian at one pose.

    Attributes:
        machine: name of the machine.
        matrix: velocities of `rows` per unit velocity of `columns`, SI.
        rows, columns: names and units of the velocities.
        q: coordinates of the pose (n_q,).
    """

    needs_forces: ClassVar[bool] = False
    machine: str
    matrix: np.ndarray = field(metadata=json_keys("jacobian"))
    rows: Port = field(metadata=json_keys(of="name", rows="columns", row_units="units"))
    columns: Port = field(metadata=json_keys(columns="columns", column_units="units"))
    q: np.ndarray

    def variables(self) -> Iterator[Variable]:
        """Return the matrix over `row` and `column`; a unit is `row_unit` per `column_unit`."""
        yield Variable(name="row", values=list(self.rows.columns), over=("row",))
        yield Variable(name="column", values=list(self.columns.columns), over=("column",))
        yield Variable(
            name="jacobian", values=self.matrix, over=("row", "column"), unit=self.rows.units
        )
        yield Variable(name="column_unit", values=list(self.columns.units), over=("column",))


@keywords(JacobianOptions)
@solving(PoseError)
def jacobian(
    machine: MachineSource,
    pose: object | None = None,
    *,
    actuators: object | None = None,
    options: JacobianOptions | None = None,
) -> Jacobian:
    """Return a Jacobian at one pose.

    It maps velocities of the platform or the actuators to velocities of the tool, the actuators or
    the platform.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        pose: position of the platform (see `inverse_kinematics`).
        actuators: positions of the actuators (see `forward_kinematics`), instead of `pose`. Without
            either, the Jacobian is computed at the reference pose.
        options: choice of the Jacobian, and limits.

    Raises:
        InputError: both positions are given, or names, units or values are wrong.
        PoseError: the pose is out of reach or singular.

    Examples:
        >>> import tauloop as tl
        >>> matrix = tl.jacobian(tl.load("five_bar"), pose={"x": 0.05}).to_xarray()["jacobian"]
        >>> matrix.sel(row="tool.vx").round(3).values.tolist()
        [1.0, 0.0]
    """
    model, options = modeled(machine), options or JacobianOptions()
    if pose is not None and actuators is not None:
        raise InputError.of(
            "actuators",
            "are given in addition to a pose of the platform",
            "give only one of the two",
        )
    given_entry = ACTUATORS if actuators is not None else PLATFORM
    ports = model.functions(given_entry).ports
    fit = None
    if given_entry is PLATFORM:
        values = named_values(ports.position, "pose", pose, ports.at(model.assembly.q))
    else:
        values, fit = actuator_values(model, actuators)
    solve = model.inverse_kinematics if given_entry is PLATFORM else model.forward_kinematics
    q = np.asarray(solve(values).q)
    path: tuple[Diagnostic, ...] = ()
    if fit is None:
        q, path = reached_along_line(model.functions(given_entry), values, q)
    entry = given_entry if options.wrt is None else Entry(options.wrt)
    motion = model.at(q).functions(entry)
    jacobians = {
        "tool": motion.tool_jacobian,
        "actuators": motion.actuator_jacobian,
        "platform": motion.platform_jacobian,
    }
    matrix = jacobians[options.of](motion.ports.at(q), start=q)
    return Jacobian(
        machine=model.mechanism.name,
        matrix=matrix,
        rows=_rows(model, options.of),
        columns=motion.ports.velocity,
        q=q,
        diagnostics=(
            diagnostic(
                "condition number of the dimensionless loop equations",
                model.assembly.loop_conditions(q[None], motion.ports.v)[0],
                at_most=1e6,
                advice="the pose is singular or nearly singular: choose a pose farther from the "
                "singularity",
            ),
            *agreement(fit),
            *path,
            *_limited(model, q, options.within_limits),
        ),
        provenance=provenance(
            options={"of": options.of, "wrt": entry.name}, inputs={"machine": model.mechanism.name}
        ),
    )


def _rows(model: Model, of: str) -> Port:
    if of == "tool":
        names = tuple(f"tool.{name}" for name in ("vx", "vy", "vz", "wx", "wy", "wz"))
        return Port(name=of, columns=names, units=("m/s",) * 3 + ("rad/s",) * 3)
    if of == "actuators":
        return motor_port(model.assembly, of, "rad/s", "m/s")
    return replace(model.platform.ports.velocity, name=of)
