"""Inverse and forward dynamics of a machine for poses, motions and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tauloop.common.datasets import (
    OVER_TIME,
    channels,
    in_table,
    quantity_over,
    several,
    tabulated_by,
)
from tauloop.common.errors import InputError, PoseError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, by_label, is_labeled_table, option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import DEFERRED, dataclass, deferred
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.compiler import Accelerations, Forces
from tauloop.equations.named_values import has_texts, named_values
from tauloop.equations.ports import (
    ACTUATORS,
    PLATFORM,
    Entry,
    Port,
    checked,
    entry_named,
    force_port,
    numbers,
)
from tauloop.kinematics.singularities import require_regular, singularity_report
from tauloop.kinematics.straight_path import reached_along_line
from tauloop.mechanism.cables import called_cables
from tauloop.mechanism.description import units
from tauloop.mechanism.model import Mechanism, omission_diagnostics
from tauloop.model import HybridForces, Model, Motion
from tauloop.model.forces.force_sharing import EQUAL_SHARES, ForceSharing, sharing_of
from tauloop.model.forces.sampled_momenta import MIN_SAMPLES, forces_from_momenta
from tauloop.model.model import MachineSource, modeled
from tauloop.model.motion_table import motion_table
from tauloop.model.tool import Payload, read_payload

if TYPE_CHECKING:
    import xarray as xr

    from tauloop.dynamics.joint_forces import JointForces
    from tauloop.dynamics.load_cases import JointForce, LoadCase

#: Largest accepted error of two-point differences, as a fraction of the largest force.
MAX_DIFFERENCE_ERROR = 0.01
#: Names of the diagnostics of forces from momenta.
ERROR_OF_ALL_ROWS = "error of two-point differences, fraction of the largest force"
ERROR_OF_LAST_ROW = (
    "error on the last row, whose difference is one-sided, fraction of the largest force"
)
#: Smallest value, N or N m, by which errors are divided; the largest force may be zero.
MIN_FORCE = 1e-300
#: Largest accepted fraction of the generalized forces that no joint balances.
MAX_IMBALANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicsOptions(Options):
    """A motion: one pose with velocity and acceleration, or many from a table.

    Attributes:
        pose: position of the platform, such as 'x=0.1,z=-50cm' (SI, or with units); others are as
            in the reference pose.
        actuators: positions of the actuators, such as 'motor_1=20deg,slide=5mm'; others are as in the
            reference pose.
        velocity: velocity of the platform or the actuators, such as 'x=0.1' (SI, or with units);
            zero where not named.
        acceleration: acceleration of the platform or the actuators, such as 'z=2' (SI, or with
            units); zero where not named.
        motion: motion from a table: CSV or Parquet with columns time, position.NAME, velocity.NAME,
            acceleration.NAME, each with its unit: 'position.platform.x [m]'.
        coordinates: coordinates in which the motion is given: platform or actuators.
        from_momenta: compute forces from finite differences of the momenta (Hamilton's
            equations); the table then needs no accelerations.
        preload: tensions of cables (N) where redundant actuation leaves a choice: one for all, such
            as '100', or by name, 'cable1=100,cable2=50'; default: the smallest tensions within
            bounds.
        joint_forces: show the forces and moments in all joints and rod ends.
        payload: mass that is attached to the tool, such as 0.5kg, or 0.5kg@0,0,20mm with its
            center in the tool's frame. Python accepts a `Payload` too.

    Examples:
        >>> import tauloop as tl
        >>> tl.DynamicsOptions(pose={"x": "10 mm"}, acceleration={"z": 2.0}).acceleration
        {'z': 2.0}
    """

    pose: str | Mapping[str, str | float] | tuple[str | float, ...] | None = option(
        None, read=str, metavar="VALUES"
    )
    actuators: str | Mapping[str, str | float] | tuple[str | float, ...] | None = option(
        None, read=str, names="actuators", metavar="VALUES"
    )
    velocity: str | Mapping[str, str | float] | tuple[str | float, ...] | None = option(
        None, read=str, metavar="VALUES"
    )
    acceleration: str | Mapping[str, str | float] | tuple[str | float, ...] | None = option(
        None, read=str, metavar="VALUES"
    )
    motion: Path | None = option(None, metavar="FILE")
    coordinates: Entry = PLATFORM
    from_momenta: bool = False
    preload: str | float | Mapping[str, str | float] | None = option(None, read=str)
    joint_forces: bool = False
    payload: float | Payload | None = option(
        None, least=0.0, read=read_payload, metavar="MASS", unit=units.MASS
    )

    @property
    def position_coordinates(self) -> Entry:
        """The coordinates of the position: those of the actuators if their positions are given."""
        return self.coordinates if self.actuators is None else ACTUATORS

    @property
    def stated_position(self) -> str | Mapping[str, str | float] | tuple[str | float, ...] | None:
        """The position of the platform or the actuators."""
        return self.pose if self.actuators is None else self.actuators

    def _note_mismatches(self, problems: Problems) -> None:
        """Report a pose together with actuators or a table, and momenta without a table."""
        if self.pose is not None and self.actuators is not None:
            problems.add("actuators", "is given in addition to pose", "give one of them")
        names = ("pose", "actuators", "velocity", "acceleration")
        stated = [name for name in names if getattr(self, name) is not None]
        if self.motion is not None and stated:
            problems.add(
                "motion",
                f"is given in addition to {', '.join(stated)}",
                "give either a pose or a motion table",
            )
        if self.from_momenta and self.motion is None:
            problems.add(
                "from_momenta", "finite differences need more than one pose", "give a table"
            )
        if self.from_momenta and self.joint_forces:
            problems.add(
                "joint_forces",
                "forces in joints need accelerations, which are missing with from_momenta",
                "omit from_momenta",
            )
        if self.from_momenta and self.preload is not None:
            problems.add("from_momenta", "is given in addition to a preload", "give one of them")


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionForces(Result):
    """The forces of a motion, with multipliers, tensions and all coordinates.

    Attributes:
        model: the machine.
        options: the motion.
        time: (N,) times of the samples, s.
        forces: actuator forces, multipliers, tensions, and the full motion.
        hybrid: forces together with the accelerations of passive degrees of freedom, for a machine
            with passive degrees of freedom and a motion in actuator coordinates; otherwise None.
        condition: (N,) condition numbers, dimensionless; infinite if singular. They are computed
            when they are first read, because they take many times longer than the forces.
        joint_forces: forces and moments in all joints and rod ends, computed when they are first
            read. Reading raises InputError for forces from momenta, which have no accelerations.
    """

    quantity_order: ClassVar[tuple[str, ...]] = (
        "time",
        "force",
        "coordinate",
        "closure_force",
        "tension",
        "joint",
        "condition",
    )
    model: Model = field(metadata=json_keys(machine="mechanism.name"))
    options: DynamicsOptions = field(metadata=json_keys(entry="position_coordinates"))
    time: np.ndarray = field(metadata=json_keys("time_s") | OVER_TIME)
    forces: Forces = field(
        metadata=json_keys(
            actuators="actuator_names",
            force="force",
            closures="closure_names",
            closure_force="closure_force",
            coordinates="state.coordinate_names",
            q="state.q",
            shared="is_shared",
            cables="tension_names",
        )
        | several(
            channels(
                "time", names="forces.actuator_names", units="units", name="force", path="force"
            ),
            channels("time", port="model.coordinate_port", name="coordinate", path="state.q"),
            channels(
                "time",
                names="forces.closure_names",
                units="model.assembly.multiplier_units",
                name="closure_force",
                path="closure_force",
            ),
            channels(
                "time", names="forces.tension_names", unit="N", name="tension", path="tension"
            ),
        )
    )
    hybrid: HybridForces | None = field(metadata=OMITTED)
    condition: np.ndarray = field(
        metadata=DEFERRED | json_keys(nullable=True) | quantity_over("time")
    )
    joint_forces: JointForces = field(metadata=DEFERRED | OMITTED)

    def joint(self, name: str) -> JointForce:
        """Return the force and moment in one joint or rod end.

        Args:
            name: the joint, or the rod with ".start" or ".end".

        Raises:
            InputError: there is no such joint.
        """
        return self.joint_forces.joint(name)

    @property
    @in_table(tabulated_by(methodcaller("wrenches")))
    @in_json("joint_forces", optional=True)
    def shown_joint_forces(self) -> JointForces | None:
        """Forces in all joints if the options request them, else None."""
        return self.joint_forces if self.options.joint_forces else None

    @property
    @in_json("load_cases", optional=True)
    def shown_load_cases(self) -> tuple[LoadCase, ...] | None:
        """Load cases of all joints if the options request forces in joints of a motion, else None."""
        is_shown = self.options.joint_forces and len(self.time) > 1
        return self.joint_forces.load_cases().cases if is_shown else None

    @property
    def given(self) -> str:
        """The coordinates in which the motion was given, such as "platform coordinates x, y, z"."""
        return self.forces.given

    def _contents(self) -> dict[str, object]:
        return {
            "machine": self.model.mechanism.name,
            "given": self.given,
            "actuators": self.forces.actuator_names,
            "force": self.forces.force,
            "status": self.status,
        }

    @property
    def force(self) -> np.ndarray:
        """Forces (N, n_u) of the actuators, N or N m."""
        return self.forces.force

    @property
    @in_json()
    def units(self) -> tuple[str, ...]:
        """Units of the actuators' forces."""
        return self.model.output_ports("actuators")[1]

    @property
    def difference_errors(self) -> tuple[Diagnostic, ...]:
        """Errors of two-point differences of momenta: largest of all rows, and on the last row."""
        return tuple(
            item for item in self.diagnostics if item.name in (ERROR_OF_ALL_ROWS, ERROR_OF_LAST_ROW)
        )

    @property
    @in_json()
    def notes(self) -> list[str]:
        """Notes on rods that are cables and have compressive forces."""
        return _compressed_cables(self.model.mechanism, self.forces)

    @property
    def nearest(self) -> str:
        """Pose relative to which angles are unwrapped if the loops leave full revolutions open."""
        return "reference pose" if self.options.motion is None else "sample before"

    @property
    @in_json()
    def formulation(self) -> str:
        """The formulation of the equations."""
        return _formulation(self.model, self.options)

    @property
    @in_json()
    def turns(self) -> dict[str, Any]:
        """Angles whose full revolutions the loops leave open, and the pose that determines them."""
        return {"angles": self.forces.state.turns.angles, "nearest": self.nearest}

    @property
    @in_json()
    def tension(self) -> Any:
        """Tensions of cables (N, k), N; empty without cables."""
        return () if self.forces.tension is None else self.forces.tension

    @property
    @in_json()
    def passive(self) -> tuple[str, ...]:
        """Names of the passive degrees of freedom."""
        return () if self.hybrid is None else self.hybrid.passive_names

    @property
    @in_json()
    def passive_acceleration(self) -> Any:
        """Accelerations (N, n_p) of the passive degrees of freedom; empty without any."""
        return () if self.hybrid is None else self.hybrid.passive_acceleration

    def log(self) -> xr.Dataset:
        """Return the motion of platform and actuators, and the forces, as a log."""
        # Data frames are slow to import, so they are imported only when needed.
        from tauloop.logs.log import Channel, build_log

        state = self.forces.state
        tables: list[tuple[tuple[str, Port], np.ndarray]] = []
        for ports in (self.model.platform.ports, self.model.actuators.ports):
            rates = [
                ports.rates(np.asarray(rate)) for rate in (state.v, state.a) if rate is not None
            ]
            tables += zip(
                ports.motion.items(), [ports.at(state.q), *rates], strict=state.a is not None
            )
        force = Port(name="force", columns=self.forces.actuator_names, units=self.units)
        tables.append((("force", force), self.forces.force))
        signals = {}
        for (quantity, port), array in tables:
            for i, (name, unit) in enumerate(zip(port.columns, port.units, strict=True)):
                signals[quantity, name] = Channel(
                    quantity=quantity, channel=name, values=array[:, i], unit=unit
                )
        if self.options.joint_forces:
            for variable in self.joint_forces.wrenches():
                quantity, _, name = variable.name.partition(".")
                signals[quantity, name] = Channel(
                    quantity=quantity,
                    channel=name,
                    values=variable.array(),
                    unit=str(variable.unit),
                )
        return build_log(self.time, list(signals.values()))


def _compressed_cables(mechanism: Mechanism, forces: Forces) -> list[str]:
    """Return a note on rods whose names call them cables, but which carry compression.

    Args:
        mechanism: the machine.
        forces: forces of its motion.
    """
    largest = np.atleast_2d(forces.closure_force).max(axis=0, initial=0.0)
    rods = [name.partition(":")[0] for name in forces.closure_names]
    compression = {rod: value for rod, value in zip(rods, largest, strict=True) if value > 0.0}
    if not compression:
        return []
    listed = [
        f"{name} (up to {compression[name]:.4g} N)"
        for name in called_cables(mechanism)
        if name in compression
    ]
    if not listed:
        return []
    return [
        f"rods named as cables carry compression: {', '.join(listed)}; give them `tension` "
        "bounds if they are cables"
    ]


@keywords(DynamicsOptions)
@solving(PoseError)
def inverse_dynamics(
    machine: MachineSource,
    position: object | None = None,
    velocity: object | None = None,
    acceleration: object | None = None,
    options: DynamicsOptions | None = None,
    *,
    coordinates: Entry | str | None = None,
    time: object | None = None,
    progress: Progress | None = None,
) -> MotionForces:
    """Return the actuator forces of a motion in platform coordinates, or in actuator coordinates.

    See `Motion.inverse_dynamics` for the equation. Called `rnea` in Pinocchio, `rne` in the
    Robotics Toolbox, `mj_inverse` in MuJoCo. For a machine with passive degrees of freedom and a
    motion in actuator coordinates, accelerations are given for the actuators only. The
    accelerations of the passive degrees of freedom are then part of the result (see
    `HybridFunctions`).

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine; the
            formulation of a model is used.
        position, velocity, acceleration: samples (N, n) or one sample (n,) in SI units; a table
            with a column for each coordinate, in any order; or one sample by names, such as
            ``{"x": "10 mm"}`` or ``"x=10mm"``. Positions that are not named are at the reference
            pose; velocities and accelerations are zero.
        options: the motion; by default the machine is at rest at the reference pose.
        coordinates: coordinates of the motion: "platform" (the default) or "actuators".
        time: times (N,) of samples in arrays, s; by default the indices of the samples.
        progress: called with the completed and the total number of steps.

    Raises:
        InputError: names, units or columns are wrong, or a table is given in addition to a pose, or
            forces from momenta are requested for a machine with passive degrees of freedom or
            redundant actuators.
        PoseError: a pose is out of reach or singular, or no tensions within their bounds produce
            the motion.
        AssemblyError: the motion passes a singularity between two samples, so no forces can produce
            it.

    Examples:
        >>> import tauloop as tl
        >>> forces = tl.inverse_dynamics("delta", acceleration={"z": 2.0})
        >>> forces.to_pandas()["force.leg1.motor"].round(2).tolist()
        [-1.55]
        >>> tl.inverse_dynamics("delta", [0.0, 0.0, -0.5], [0.0] * 3, [0.0] * 3).forces.force.round(2)
        array([[-1.37, -1.37, -1.37]])
    """
    options = _with_coordinates(options or DynamicsOptions(), coordinates)
    stated = _stated(options, position, velocity, acceleration)
    model = modeled(machine)
    if options.payload:
        model = model.with_payload(options.payload)
    entry, table, stages = options.position_coordinates, options.motion, Stages(progress, 3)
    functions = model.functions(entry)
    is_hybrid = entry is ACTUATORS and bool(model.assembly.passive)
    ports = model.hybrid.ports if is_hybrid else functions.ports.motion
    if options.from_momenta:
        _require_momenta(model, is_hybrid=is_hybrid)
        ports = {name: port for name, port in ports.items() if name != "acceleration"}
    reference = functions.ports.at(model.assembly.q)
    sample_times, arrays = _timed_samples(ports, stated, reference, table, time)
    stages.done()
    start, path = _followed(functions, arrays["position"], is_table=table is not None)
    motion = tuple(arrays.values())
    hybrid = None
    sharing = _sharing(model, options)
    diagnostics: tuple[Diagnostic, ...] = ()
    if options.from_momenta:
        forces, diagnostics = _from_momenta(functions, sample_times, motion[0], motion[1], start)
    elif is_hybrid:
        hybrid = model.hybrid.inverse_dynamics(*motion, start=start, sharing=sharing)
        forces = hybrid.forces
    else:
        forces = functions.inverse_dynamics(*motion, start=start, sharing=sharing)
    stages.done()
    if table is not None and len(sample_times) > 1:
        require_regular(singularity_report(model, forces.state, entry=entry), smallest=0.0)
    stages.done()
    # A copy, because the caller can change the result's array before reading its condition.
    q = np.array(forces.state.q, ndmin=2)
    joints = _stated_joint_forces(model, sample_times, forces, options)
    used_options = {"entry": entry.name, "formulation": _formulation(model, options)}
    return MotionForces(
        model=model,
        options=options,
        time=sample_times,
        forces=forces,
        hybrid=hybrid,
        condition=deferred(lambda: functions.condition(q)),
        joint_forces=joints,
        diagnostics=(
            *forces.diagnostics,
            *path,
            *diagnostics,
            *omission_diagnostics(model.mechanism),
            *_no_inertia(model, forces),
            *_imbalance(joints, options),
        ),
        provenance=provenance(options=used_options, inputs={"machine": model.mechanism.name}),
    )


def _stated_joint_forces(
    model: Model, times: np.ndarray, forces: Forces, options: DynamicsOptions
) -> Any:
    """Return the forces of the joints, calculated when they are first read if not requested."""
    if options.joint_forces:
        return _joint_forces(model, times, forces)
    return deferred(lambda: _joint_forces(model, times, forces))


def _timed_samples(
    ports: Mapping[str, Port],
    stated: Mapping[str, object],
    reference: np.ndarray,
    table: Path | None,
    time: object | None,
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the times (N,) of a motion and its samples (N, n) by port.

    Args:
        ports: ports by name, such as "position".
        stated: the motion by port, from arguments and options.
        reference: default of the position.
        table: file of the motion; None to use `stated`.
        time: times of the stated samples.

    Raises:
        InputError: the motion or the table is wrong, or times are given in addition to a table.
    """
    if table is None:
        arrays = _samples(ports, stated, reference)
        return _sample_times(time, len(arrays["position"])), arrays
    if time is not None:
        what = "is given in addition to a table (`motion`)"
        raise InputError.of("time", what, "give either `time` or `motion`")
    return motion_table(ports, table)


def _sharing(model: Model, options: DynamicsOptions) -> ForceSharing:
    """Return the rule by which redundant actuators share forces."""
    if options.preload is None:
        return EQUAL_SHARES
    return sharing_of(model.mechanism, options.preload)


def _with_coordinates(options: DynamicsOptions, coordinates: Entry | str | None) -> DynamicsOptions:
    """Return the options with other coordinates of the motion; the same options for None.

    Raises:
        InputError: positions of the actuators are given, and the coordinates are the platform's.
    """
    if coordinates is None:
        return options
    entry = entry_named(coordinates)
    if options.actuators is not None and entry is not ACTUATORS:
        what = f"is {entry.name}, but positions of the actuators are given"
        raise InputError.of("coordinates", what, "omit it, or give a pose")
    return replace(options, coordinates=entry)


def _joint_forces(model: Model, time: np.ndarray, forces: Forces) -> JointForces:
    """Return the forces in all joints.

    Raises:
        InputError: the motion has no accelerations.
    """
    # Most calls do not read the forces in joints.
    from tauloop.dynamics.joint_forces import joint_forces

    if forces.state.a is None:
        what = "forces from momenta have no accelerations, which forces in joints need"
        raise InputError.of("joint_forces", what, "give accelerations")
    return joint_forces(model, time, forces)


def _no_inertia(model: Model, forces: Forces) -> tuple[Diagnostic, ...]:
    """Return a diagnostic if all forces are zero because the machine has no dynamic parameters."""
    if np.any(model.pi) or np.any(forces.force):
        return ()
    advice = (
        "no body has a mass, and no joint has friction or a spring, so all forces are zero: give "
        "masses"
    )
    name = "dynamic parameters of the machine"
    return (diagnostic(name, len(model.pi), at_least=1.0, advice=advice),)


def _imbalance(joints: JointForces, options: DynamicsOptions) -> tuple[Diagnostic, ...]:
    """Return the fraction of the forces that no joint carries, if forces in joints are requested."""
    if not options.joint_forces:
        return ()
    advice = "the pose is nearly singular: keep the motion away from it"
    name = "fraction of the forces that no joint carries"
    return (diagnostic(name, joints.imbalance.max(), at_most=MAX_IMBALANCE, advice=advice),)


def _sample_times(time: object | None, count: int) -> np.ndarray:
    """Return the times (N,) of samples; by default their indices.

    Raises:
        InputError: the times are not strictly increasing, or their number is wrong.
    """
    if time is None:
        return np.arange(count, dtype=float)
    times = np.atleast_1d(numbers(time, "time"))
    if times.shape != (count,) or not (np.diff(times) > 0).all():
        what = f"must have {count} strictly increasing values, got shape {times.shape}"
        raise InputError.of("time", what, "give the times of all samples in s")
    return times


def _require_momenta(model: Model, *, is_hybrid: bool) -> None:
    """Reject forces from momenta for redundant actuators and passive degrees of freedom."""
    reason = ""
    if model.assembly.is_redundant:
        reason = "redundant actuators need weights to share forces"
    if is_hybrid:
        reason = "the motion of passive degrees of freedom follows from accelerations"
    if reason:
        raise InputError.of("from_momenta", reason, "give accelerations")


def _followed(
    functions: Motion, position: np.ndarray, *, is_table: bool
) -> tuple[np.ndarray | None, tuple[Diagnostic, ...]]:
    """Return start coordinates (N, n_q) of the samples' solutions, and diagnostics of the path.

    The path is followed if positions do not determine the coordinates in closed form. Otherwise no
    start is needed, and None is returned.

    Args:
        functions: functions of the motion.
        position: samples (N, n).
        is_table: whether the samples come from a table, so that they follow one motion.
    """
    start = None
    path: tuple[Diagnostic, ...] = ()
    is_tracked = is_table and (bool(functions.turning) or functions.runner.iterates)
    if functions.assembly.rows and (functions.ports.entry is ACTUATORS or is_tracked):
        reached = functions.follow(position)
        start = functions.with_continuous_angles(reached).q if is_table else reached.q
        path = reached.opened
    if not is_table and len(position) == 1 and functions.runner.iterates:
        q = np.asarray(functions.kinematics(position[0]).q if start is None else start[0])
        q, path = reached_along_line(functions, position[0], q)
        start = q[None]
    return start, path


def _stated(
    options: DynamicsOptions, position: object, velocity: object, acceleration: object
) -> dict[str, object]:
    """Return a motion by the names of its ports, from arguments or options.

    Raises:
        InputError: a value is given both as an argument and in the options, or in addition to a
            table.
    """
    arguments = {"position": position, "velocity": velocity, "acceleration": acceleration}
    fields_of_options = {
        "position": options.stated_position,
        "velocity": options.velocity,
        "acceleration": options.acceleration,
    }
    problems = Problems()
    for name, value in arguments.items():
        if value is None:
            arguments[name] = fields_of_options[name]
        elif fields_of_options[name] is not None:
            problems.add(name, "is given twice, as an argument and in the options", "give it once")
        elif options.motion is not None:
            problems.add(name, "is given in addition to a table (`motion`)", "give one of them")
    InputError.raise_if_any(problems)
    return arguments


def _samples(
    ports: Mapping[str, Port], stated: Mapping[str, object], reference: np.ndarray
) -> dict[str, np.ndarray]:
    """Return samples (N, n) of ports; a single sample is used for all N.

    Args:
        ports: ports by name, such as "position".
        stated: samples or one sample for each port, as numbers or by names; None for the default.
        reference: default of the position; the default of other ports is zero.

    Raises:
        InputError: lists all problems of all ports.
    """
    problems = Problems()
    rows: dict[str, object] = {}
    for name, port in ports.items():
        value = stated.get(name)
        default = reference if name == "position" else np.zeros(port.size)
        with problems.collecting(InputError):
            if not is_labeled_table(value):  # `checked` reads the rows of tables by label
                value = by_label(value)
            is_named = value is None or isinstance(value, str | Mapping) or has_texts(value)
            rows[name] = named_values(port, name, value, default) if is_named else value
    InputError.raise_if_any(problems)
    return checked(ports, rows)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionAccelerations(Result):
    """The accelerations of a machine due to forces, with the full motion.

    Attributes:
        model: the machine.
        time: (N,) times of the samples, s; by default the indices of the samples.
        accelerations: accelerations of the given coordinates, and the full motion.
        force: (N, n_u) actuator forces, N or N m.
    """

    model: Model = field(metadata=json_keys(machine="mechanism.name"))
    time: np.ndarray = field(metadata=OMITTED | OVER_TIME)
    accelerations: Accelerations = field(
        metadata=json_keys(
            given="given",
            names="names",
            acceleration="acceleration",
            coordinates="state.coordinate_names",
            q="state.q",
        )
        | several(
            channels(
                "time",
                names="accelerations.names",
                units="units",
                name="acceleration",
                path="acceleration",
            ),
            channels("time", port="model.coordinate_port", name="coordinate", path="state.q"),
        )
    )
    force: np.ndarray = field(metadata=channels("time", port="model.force_port"))

    @property
    def given(self) -> str:
        """The coordinates in which the motion was given, such as "platform coordinates x, y, z"."""
        return self.accelerations.given

    @property
    def acceleration(self) -> np.ndarray:
        """Accelerations (N, m) of the given coordinates, m/s^2 or rad/s^2."""
        return self.accelerations.acceleration

    def _contents(self) -> dict[str, object]:
        return {
            "machine": self.model.mechanism.name,
            "given": self.given,
            "names": self.accelerations.names,
            "acceleration": self.acceleration,
            "status": self.status,
        }

    @property
    @in_json()
    def units(self) -> tuple[str, ...]:
        """Units of the accelerations (m,)."""
        motions = (self.model.platform, self.model.actuators)
        ports = next(
            m.ports for m in motions if m.ports.velocity.columns == self.accelerations.names
        )
        return ports.acceleration.units


@keywords()
@solving(PoseError)
def forward_dynamics(
    machine: MachineSource,
    position: object | None = None,
    velocity: object | None = None,
    force: object | None = None,
    *,
    coordinates: Entry | str = PLATFORM,
) -> MotionAccelerations:
    """Return the accelerations due to actuator forces, in platform or actuator coordinates.

    Called `aba` in Pinocchio, `accel` in the Robotics Toolbox, `mj_forward` in MuJoCo. See
    `Motion.forward_dynamics` for the equation.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        position, velocity: samples (N, n) or one sample (n,) in SI units; a table with a column for
            each coordinate, in any order; or one sample by names, such as ``{"x": "10 mm"}``.
            Positions that are not named are at the reference pose; velocities are zero.
        force: actuator forces (N, n_u) or (n_u,), N or N m; or by names. Forces that are not named
            are zero.
        coordinates: coordinates of the motion: "platform" or "actuators".

    Raises:
        InputError: names, units or shapes are wrong.
        PoseError: a pose is out of reach or singular.
        AssemblyError: the machine cannot be assembled as described.

    Examples:
        >>> import tauloop as tl
        >>> fall = tl.forward_dynamics("delta", [0.0, 0.0, -0.5])
        >>> fall.given, fall.acceleration[0, 2].round(2).item()
        ('platform coordinates x, y, z', -14.8)
    """
    model = modeled(machine)
    entry = entry_named(coordinates)
    functions = model.functions(entry)
    ports = {name: functions.ports.motion[name] for name in ("position", "velocity")}
    ports["force"] = force_port(model.assembly)
    stated = {"position": position, "velocity": velocity, "force": force}
    arrays = _samples(ports, stated, functions.ports.at(model.assembly.q))
    result = model.forward_dynamics(*arrays.values(), coordinates=entry)
    return MotionAccelerations(
        model=model,
        time=np.arange(len(arrays["position"]), dtype=float),
        accelerations=result,
        force=arrays["force"],
        diagnostics=(*result.diagnostics, *omission_diagnostics(model.mechanism)),
        provenance=provenance(
            options={"coordinates": entry.name}, inputs={"machine": model.mechanism.name}
        ),
    )


def _formulation(model: Model, options: DynamicsOptions) -> str:
    """Return the name of the formulation."""
    return "hamilton, sampled" if options.from_momenta else model.formulation.name


def _from_momenta(
    functions: Motion,
    time: np.ndarray,
    position: np.ndarray,
    velocity: np.ndarray,
    start: np.ndarray | None,
) -> tuple[Forces, tuple[Diagnostic, ...]]:
    """Return the forces from momenta, and their errors: largest of all rows, and on the last row.

    The errors are of second order in the time step. They are therefore estimated as a third of the
    difference from forces that use only every other sample. Both even and odd samples are used, so
    that one of the two halves contains the last row. Differences on the last row are one-sided, so
    its error is larger. The errors are None if there are too few rows.
    """
    forces = forces_from_momenta(functions, time, position, velocity, start=start)
    if len(time) < 2 * MIN_SAMPLES - 1:
        names = (ERROR_OF_ALL_ROWS, ERROR_OF_LAST_ROW)
        return forces, tuple(diagnostic(name, None) for name in names)
    errors = np.zeros(len(time))
    for first in range(2 if len(time) > 2 * MIN_SAMPLES - 1 else 1):
        half = slice(first, None, 2)
        coarse = forces_from_momenta(
            functions,
            time[half],
            position[half],
            velocity[half],
            start=None if start is None else start[half],
        )
        rows = np.arange(len(time))[half]
        # The first and last rows of a half have one-sided differences. They can be compared only if
        # they are also the first and last of all rows.
        is_end = np.isin(rows, (rows[0], rows[-1]))
        is_comparable = ~is_end | np.isin(rows, (0, len(time) - 1))
        differences = np.abs(coarse.force - forces.force[half])[is_comparable]
        errors[rows[is_comparable]] = differences.max(axis=1) / 3
    relative = errors / max(np.abs(forces.force).max(), MIN_FORCE)
    advice = "sample the motion more often"
    return forces, (
        diagnostic(ERROR_OF_ALL_ROWS, relative.max(), at_most=MAX_DIFFERENCE_ERROR, advice=advice),
        diagnostic(ERROR_OF_LAST_ROW, relative[-1], at_most=MAX_DIFFERENCE_ERROR, advice=advice),
    )
