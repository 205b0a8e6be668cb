"""The `Model`: all functions of one assembled machine, on batches, with named and checked ports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import AssemblyError, InputError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.names.deprecated import old_attribute, with_old_keywords
from tauloop.common.names.lazy import lazy_functions
from tauloop.common.recent import Recent
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.assembly.assembly import Assembly, assemble
from tauloop.equations.assembly.freedoms.locks import DEFAULT_LOCKS, Locks
from tauloop.equations.assembly.limits import Limits, limits_of
from tauloop.equations.assembly.loops import loops, nominal
from tauloop.equations.formulations import NAMED_FORMULATIONS, NEWTON_EULER, Formulation
from tauloop.equations.ports import (
    ACTUATORS,
    PLATFORM,
    Entry,
    Port,
    assembled_poses,
    coordinate_units,
    entry_named,
    entry_ports,
    force_port,
    full_coordinates,
    motor_port,
    numbers,
    require_type,
    text_names,
    velocity_units,
)
from tauloop.equations.topology import Topology
from tauloop.equations.values import BatchFunction, DynamicParameter, dynamic_parameters
from tauloop.formats.library import mechanism_of
from tauloop.mechanism.expression import leaves
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import Named, unknown_names

# These modules build and run programs. Checking the assembly of a machine does not need them.
if TYPE_CHECKING:
    from tauloop.compiler.c.calling.evaluator import Evaluator
    from tauloop.compiler.state import Accelerations, Forces, State
    from tauloop.equations.assembly.elsewhere import assembled_at
    from tauloop.equations.assembly.freedoms.spins import held_velocities, lock_spins
    from tauloop.equations.joint_reactions import JointReactions
    from tauloop.model.forces.hybrid import HybridFunctions
    from tauloop.model.motion import Motion
    from tauloop.model.positions.encoder_fit import ActuatorFit
    from tauloop.model.tool import Payload
else:
    held_velocities, lock_spins = lazy_functions(
        "tauloop.equations.assembly.freedoms.spins", "held_velocities", "lock_spins"
    )
    (assembled_at,) = lazy_functions("tauloop.equations.assembly.elsewhere", "assembled_at")


#: Relative tolerance of the check that the dynamic parameters pi are linear in other parameters.
LINEARITY_TOLERANCE = 1e-9
#: Assemblies of recent machines stay in memory while their velocities do not exceed this total
#: number. The programs of a machine take about 1 MB per velocity.
VELOCITIES_IN_MEMORY = 300
#: Number of motions of a machine whose functions stay in memory.
MOTIONS_IN_MEMORY = 8


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Assembled:
    """An assembled machine, which is shared by its models.

    Attributes:
        mechanism: the machine, in which locks replace joints.
        assembly: its assembly.
        motions: functions of a motion, by its coordinates, the formulation, the free parameters and
            the evaluator.
    """

    mechanism: Mechanism
    assembly: Assembly
    motions: Recent[Motion] = field(default_factory=lambda: Recent(MOTIONS_IN_MEMORY))


#: Assemblies of recent models. A further model of the same machine uses the same assembly, programs
#: and compiled code.
ASSEMBLIES: Recent[_Assembled] = Recent(VELOCITIES_IN_MEMORY)


@final
@dataclass(frozen=True, init=False, repr=False, eq=False)
class Model(ReprMixin):
    """An assembled machine and its functions. A model is immutable.

    Models of equal machines share their assembly, programs and machine code while these are in
    memory. A further model of the same machine therefore takes one to three milliseconds.

    The same functions are available for two sets of coordinates: `platform` (the independent
    coordinates) and `actuators` (positions of the actuators, which encoders measure, and of passive
    degrees of freedom). `hybrid` is the inverse dynamics of machines with passive degrees of
    freedom.

    Attributes:
        mechanism: the machine.
        assembly: coordinates, independent loop equations and mobility of the machine.
        free: names of the independent parameters that remain arguments of the functions; all others
            have fixed values.
        formulation: formulation of the generalized forces M a + h.
        given_evaluator: evaluator that the caller passed; None for the default.

    Examples:
        >>> import tauloop as tl
        >>> model = tl.Model(tl.load("delta"))
        >>> model.forward_kinematics([0.5, 0.5, 0.5]).coordinate("platform.z").round(3).item()
        -0.401
        >>> model.platform.actuator_jacobian([[0.0, 0.0, -0.5]]).shape
        (1, 3, 3)
    """

    mechanism: Mechanism
    assembly: Assembly
    free: tuple[str, ...]
    formulation: Formulation
    given_evaluator: Evaluator | None
    # The assembly and functions that models of equal machines share. The declaration as a class
    # variable keeps it out of the fields.
    _shared: ClassVar[_Assembled]
    freed = old_attribute("freed", "with_free_parameters")
    ties = old_attribute("ties", "parameter_map")
    determined = old_attribute("determined", "measurable_output")
    motion = old_attribute("motion", "functions")

    @keywords()
    @solving(AssemblyError)
    def __init__(
        self,
        machine: MachineSource,
        free: Iterable[str] = (),
        *,
        formulation: str | Formulation = NEWTON_EULER,
        evaluator: Evaluator | None = None,
        locks: Locks = DEFAULT_LOCKS,
    ) -> None:
        """Assemble the machine.

        Args:
            machine: a mechanism, another model of it, a path, or the name of a shipped machine.
            free: names (or one name) of independent parameters that remain arguments of every
                function; all others have fixed values.
            formulation: formulation for inverse dynamics and regressors, by its name in
                `equations.formulations.FORMULATIONS`, or an object.
            evaluator: evaluator of the functions. By default the embedded compiler produces machine
                code in milliseconds, and the system's compiler produces faster code for large
                batches; `Compiled()` uses the system's compiler from the first sample on.
            locks: degrees of freedom that are locked; by default the spins of links between two
                ball joints, and of pins.

        Raises:
            AssemblyError: the loops do not close.
            InputError: a free parameter, or the formulation, does not exist.
        """
        mechanism = mechanism_of(machine)
        names = text_names(free, "free")
        _require_leaves(mechanism, names)
        if isinstance(formulation, str):
            formulation = NAMED_FORMULATIONS.lookup(formulation, "formulation")
        require_type(
            formulation, Formulation, "formulation", "give its name, or a Formulation object"
        )
        require_type(locks, Locks, "locks", "give Locks(...)")
        if evaluator is not None:
            from tauloop.compiler.c.calling.evaluator import Evaluator

            require_type(
                evaluator, Evaluator, "evaluator", "give tl.compiler.c.Compiled() or Interpreted()"
            )
        shared = ASSEMBLIES.get(
            (mechanism, locks),
            lambda: _assembled(mechanism, locks),
            lambda assembled: assembled.assembly.topology.n_v,
        )
        self._set_fields(shared, names, formulation, evaluator)
        _ = self.parameters  # This checks the names of the parameters.

    def _set_fields(
        self,
        shared: _Assembled,
        free: tuple[str, ...],
        formulation: Formulation,
        evaluator: Evaluator | None,
    ) -> None:
        """Set all fields, and the data that models of the same machine share."""
        values = shared.mechanism, shared.assembly, free, formulation, evaluator
        for item, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, item.name, value)
        object.__setattr__(self, "_shared", shared)

    @keywords()
    def at(self, q: np.ndarray) -> Model:
        """Return the same machine with another assembled pose as its reference.

        Closed-form solutions of the kinematics are then on the branch of this pose.

        Args:
            q: coordinates (n_q,).

        Raises:
            AssemblyError: the loops do not close at that pose.
        """
        other = Model.__new__(Model)
        poses, single = assembled_poses(q, self.topology)
        if not single:
            what = f"has {counted(len(poses), 'row')}"
            raise InputError.of("q", what, "give the coordinates of one pose")
        assembly = assembled_at(self.assembly, self.platform.runner.pose(poses[0]))
        shared = _Assembled(mechanism=self.mechanism, assembly=assembly)
        other._set_fields(shared, self.free, self.formulation, self.given_evaluator)
        return other

    def with_free_parameters(self, names: Iterable[str]) -> Model:
        """Return the same machine with further free parameters, which every function takes.

        Args:
            names: names (or one name) of independent parameters.

        Raises:
            InputError: a parameter does not exist.
        """
        names = tuple(name for name in text_names(names, "names") if name not in self.free)
        _require_leaves(self.mechanism, names)
        if not names:
            return self
        other = Model.__new__(Model)
        free = (*self.free, *names)
        other._set_fields(self._shared, free, self.formulation, self.given_evaluator)
        return other

    def with_payload(self, payload: float | Payload) -> Model:
        """Return the machine with a payload as a body that is fixed to the tool.

        Args:
            payload: the payload, or the mass of a point at the tool center point, kg.
        """
        from tauloop.model.tool import with_payload

        mechanism = with_payload(self.mechanism, payload)
        locked = tuple(self.topology.velocity_names[i] for i in self.assembly.locked)
        return Model(
            mechanism,
            self.free,
            formulation=self.formulation,
            evaluator=self.given_evaluator,
            locks=Locks(names=locked) if locked else DEFAULT_LOCKS,
        )

    @cached_property
    def evaluator(self) -> Evaluator:
        """The evaluator that runs the functions of the model."""
        from tauloop.compiler.c.calling.evaluator import default_evaluator

        return default_evaluator() if self.given_evaluator is None else self.given_evaluator

    @property
    def topology(self) -> Topology:
        """Coordinates and velocities of the machine."""
        return self.assembly.topology

    def _contents(self) -> dict[str, object]:
        """Return the values that the repr shows, by name."""
        return {
            "mechanism": self.mechanism,
            "mobility": self.assembly.mobility,
            "coordinates": self.topology.coordinate_names,
            "actuators": tuple(actuator.name for actuator in self.mechanism.actuators),
            "free": self.free,
            "formulation": self.formulation.name,
        }

    @cached_property
    def parameters(self) -> Named[DynamicParameter]:
        """Dynamic parameters pi, in which inverse dynamics is linear, by index or by name."""
        return Named(dynamic_parameters(self.mechanism, self.topology))

    @cached_property
    def pi(self) -> np.ndarray:
        """Nominal values of the dynamic parameters (n_pi,), SI."""
        return np.array([self.mechanism.value(p.expression) for p in self.parameters])

    @cached_property
    def limits(self) -> Limits:
        """Limits of coordinates and cut joints, for checks of poses and motions."""
        return limits_of(self.mechanism, self.topology)

    def parameter_map(self, names: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the linear map from independent to dynamic parameters: pi = T p + pi_0.

        Args:
            names: names of the independent parameters p; pi must be linear in p.

        Returns:
            T (n_pi, n_p), and pi_0 (n_pi,) with all other parameters at nominal values.

        Raises:
            InputError: pi is not linear in these parameters, for example because it contains the
                product of a mass and a length that are both in `names`.
        """
        names = text_names(names, "names")
        _require_leaves(self.mechanism, names)
        dependent = [i for i, p in enumerate(self.parameters) if leaves(p.expression) & set(names)]

        def pi(values: np.ndarray) -> np.ndarray:
            """Return the dependent entries of pi, and zeros for the others."""
            mechanism = self.mechanism.at_values(dict(zip(names, values, strict=True)))
            result = np.zeros(len(self.parameters))
            result[dependent] = [mechanism.value(self.parameters[i].expression) for i in dependent]
            return result

        origin = pi(np.zeros(len(names)))
        T = np.stack([pi(row) - origin for row in np.eye(len(names))], axis=1)
        probe = np.array([1.0 + 0.37 * i for i in range(len(names))])
        deviation = np.abs(pi(probe) - (T @ probe + origin))
        tolerance = LINEARITY_TOLERANCE * (1.0 + np.abs(origin) + np.abs(T) @ probe)
        self._require_linear(np.flatnonzero(deviation > tolerance), names)
        constant = np.array(self.pi)
        constant[dependent] = 0.0
        return T, origin + constant

    def _require_linear(self, nonlinear: np.ndarray, names: tuple[str, ...]) -> None:
        """Raise an error if entries of pi (indices) are not linear in the named parameters."""
        entries_of: dict[str, list[str]] = {}
        for entry in (self.parameters[i] for i in nonlinear):
            factors = ", ".join(sorted(leaves(entry.expression) & set(names)))
            entries_of.setdefault(factors, []).append(entry.name)
        problems = Problems()
        remedy = (
            "give one of them a value (on the command line --known NAME=VALUE), or define the "
            "inertia by its moments"
        )
        for factors, entries in entries_of.items():
            others = f" (and {len(entries) - 1} others are not)" if len(entries) > 1 else ""
            what = f"is not linear in the chosen parameters ({factors}){others}"
            problems.add(entries[0], what, remedy)
        InputError.raise_if_any(problems)

    @cached_property
    def platform(self) -> Motion:
        """Functions that take the motion of the independent (platform) coordinates."""
        return self._motion(PLATFORM)

    @cached_property
    def actuators(self) -> Motion:
        """Functions that take the motion of the actuators."""
        return self._motion(ACTUATORS)

    @cached_property
    def hybrid(self) -> HybridFunctions:
        """Hybrid inverse dynamics, for passive degrees of freedom and redundant actuators."""
        from tauloop.model.forces.hybrid import HybridFunctions

        return HybridFunctions(self.actuators)

    @cached_property
    def joint_reactions(self) -> JointReactions:
        """Functions of the forces and moments in all joints, at nominal parameter values."""
        from tauloop.equations.joint_reactions import joint_reactions

        return joint_reactions(self.assembly.loops)

    @with_old_keywords
    @keywords()
    def functions(self, coordinates: Entry | str) -> Motion:
        """Return the functions that take the motion of the platform or of the actuators.

        Args:
            coordinates: "platform" for `platform`, "actuators" for `actuators`.

        Raises:
            AssemblyError: the machine does not work as described.
            InputError: the name is neither of the two.
        """
        return self._functions(coordinates)

    def _functions(self, coordinates: Entry | str) -> Motion:
        """Return the same as `functions`; the caller checks the argument."""
        is_platform = entry_named(coordinates) is PLATFORM
        return self.platform if is_platform else self.actuators

    @cached_property
    def _output_function(self) -> BatchFunction:
        """Function from coordinates to outputs, at nominal parameter values."""
        from tauloop.equations.outputs import output_function

        mechanism = self.assembly.mechanism
        return output_function(mechanism, self.topology, nominal(mechanism))

    def outputs(self, q: np.ndarray) -> dict[str, np.ndarray]:
        """Return the outputs of the machine file by name, at full coordinates.

        Args:
            q: coordinates (N, n_q) or (n_q,), such as `State.q` of `inverse_kinematics`; NaN
                where a pose is out of reach.

        Returns:
            Values (N,), or a number for one sample; SI.

        Raises:
            InputError: wrong shapes.

        Examples:
            >>> import tauloop as tl
            >>> text = tl.dumps(tl.load("five_bar")) + "outputs: {height: y(tool)}"
            >>> model = tl.Model(tl.loads(text))
            >>> model.outputs(model.assembly.q)["height"].round(3).item()
            0.5
        """
        array = full_coordinates(q, self.topology)
        rows = np.atleast_2d(array)
        (values,) = self._output_function([rows], len(rows))
        columns = values.T.reshape(-1, *array.shape[:-1])
        names = [output.name for output in self.mechanism.outputs]
        return dict(zip(names, columns, strict=True))

    @keywords()
    def inverse_dynamics(
        self,
        position: object,
        velocity: object,
        acceleration: object,
        *,
        coordinates: Entry | str = "platform",
        wrench: object | None = None,
        payload: Payload | None = None,
    ) -> Forces:
        """Return the actuator forces of a motion in platform coordinates, or in actuator coordinates.

        See `Motion.inverse_dynamics` for the equation. The function is called `rnea` in Pinocchio,
        `rne` in the Robotics Toolbox, and `mj_inverse` in MuJoCo. Tauloop's function also accounts
        for closed loops, friction, springs and rotors.

        Args:
            position, velocity, acceleration: samples (N, n), or one (n,), or mappings by name; SI.
            coordinates: coordinates of the motion: "platform" or "actuators".
            wrench: force and moment (N, 6) or (6,) that act on the tool, base frame, N and N m.
            payload: a body fixed to the tool, in addition to the machine file.

        Raises:
            InputError, PoseError, AssemblyError: as `Motion.inverse_dynamics`.

        Examples:
            >>> import tauloop as tl
            >>> forces = tl.Model("delta").inverse_dynamics([0.0, 0.0, -0.5], [0.0] * 3, [0.0] * 3)
            >>> forces.given, forces.force.round(2).tolist()
            ('platform coordinates x, y, z', [-1.37, -1.37, -1.37])
        """
        motion = self._functions(coordinates)
        return motion.inverse_dynamics(
            position, velocity, acceleration, wrench=wrench, payload=payload
        )

    @keywords()
    def forward_dynamics(
        self,
        position: object,
        velocity: object,
        force: object,
        *,
        coordinates: Entry | str = "platform",
        wrench: object | None = None,
        payload: Payload | None = None,
    ) -> Accelerations:
        """Return the accelerations that actuator forces cause, in platform or actuator coordinates.

        The function is called `aba` in Pinocchio, `accel` in the Robotics Toolbox, and `mj_forward`
        in MuJoCo.

        Args:
            position, velocity: samples (N, n), or one (n,), or mappings by name; SI.
            force: actuator forces (N, n_u) or (n_u,), N or N m.
            coordinates: coordinates of the motion: "platform" or "actuators".
            wrench: force and moment (N, 6) or (6,) that act on the tool, base frame, N and N m.
            payload: a body fixed to the tool, in addition to the machine file.

        Raises:
            InputError, PoseError: as `Motion.forward_dynamics`.
        """
        from tauloop.compiler.state import Accelerations

        motion = self._functions(coordinates)
        state = motion.forward_dynamics(position, velocity, force, wrench=wrench, payload=payload)
        return Accelerations(
            names=motion.ports.velocity.columns,
            acceleration=motion.ports.rates(np.asarray(state.a)),
            state=state,
        )

    @keywords()
    def jacobian(
        self, position: object, *, of: str = "tool", coordinates: Entry | str = "platform"
    ) -> np.ndarray:
        """Return the Jacobian: velocities of the tool per unit of velocities of the coordinates.

        Called `getFrameJacobian` in Pinocchio, `jacob0` in the Robotics Toolbox, `mj_jacSite` in
        MuJoCo.

        Args:
            position: samples (N, n), or one (n,), or a mapping by name; SI.
            of: "tool" for its linear, then angular velocity in the base frame (N, 6, m);
                "actuators" (N, n_u, m); "platform" (N, n, m).
            coordinates: coordinates of the position and the columns: "platform" or "actuators".

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular.
        """
        motion = self._functions(coordinates)
        functions = {
            "tool": motion.tool_jacobian,
            "actuators": motion.actuator_jacobian,
            "platform": motion.platform_jacobian,
        }
        InputError.raise_if_any(unknown_names([of], functions, "{!r} is unknown", "of"))
        return functions[of](position)

    @keywords()
    def tool_pose(self, position: object, *, coordinates: Entry | str = "platform") -> np.ndarray:
        """Return the tool's poses (N, 4, 4) in the base frame at platform or actuator coordinates.

        Called `framePlacement` in Pinocchio, `fkine` in the Robotics Toolbox, `site_xpos` and
        `site_xmat` in MuJoCo.

        Args:
            position: samples (N, n), or one (n,), or a mapping by name; SI.
            coordinates: coordinates of the position: "platform" or "actuators".

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular.
        """
        return self._functions(coordinates).tool(position).pose

    @keywords()
    def mass_matrix(self, position: object, *, coordinates: Entry | str = "platform") -> np.ndarray:
        """Return the mass matrices (N, m, m) in platform coordinates, or in actuator coordinates.

        This is the matrix M of M a + bias = J^T u, where u are the actuator forces, J is the
        Jacobian of the actuators (`jacobian` of "actuators"), and a are the accelerations of the
        coordinates. Called `crba` in Pinocchio, `inertia` in the Robotics Toolbox, `mj_fullM` in
        MuJoCo.

        Args:
            position: samples (N, n), or one (n,), or a mapping by name; SI.
            coordinates: coordinates of the position: "platform" or "actuators".

        Raises:
            InputError, PoseError, AssemblyError: as `Motion.mass_matrix`.
        """
        return self._functions(coordinates).mass_matrix(position)

    @keywords()
    def bias(
        self, position: object, velocity: object, *, coordinates: Entry | str = "platform"
    ) -> np.ndarray:
        """Return the forces (N, m) on platform or actuator coordinates at zero acceleration.

        These forces contain Coriolis and centripetal forces, gravity, friction and springs. Called
        `nle` (`nonLinearEffects`) in Pinocchio and `qfrc_bias` in MuJoCo, where they do not contain
        friction and springs.

        Args:
            position, velocity: samples (N, n), or one (n,), or mappings by name; SI.
            coordinates: coordinates of the motion: "platform" or "actuators".

        Raises:
            InputError, PoseError, AssemblyError: as `Motion.mass_matrix`.
        """
        return self._functions(coordinates).bias(position, velocity)

    @keywords()
    def gravity_forces(
        self, position: object, *, coordinates: Entry | str = "platform"
    ) -> np.ndarray:
        """Return the forces (N, m) on platform or actuator coordinates that balance gravity.

        They are the negative of the forces that gravity exerts.

        Called `computeGeneralizedGravity` in Pinocchio, `gravload` in the Robotics Toolbox.

        Args:
            position: samples (N, n), or one (n,), or a mapping by name; SI.
            coordinates: coordinates of the position: "platform" or "actuators".

        Raises:
            InputError, PoseError, AssemblyError: as `Motion.mass_matrix`.
        """
        return self._functions(coordinates).gravity(position)

    @keywords()
    def kinetic_energy(
        self, position: object, velocity: object, *, coordinates: Entry | str = "platform"
    ) -> np.ndarray:
        """Return the kinetic energy (N,), J, of a motion in platform or actuator coordinates.

        Called `computeKineticEnergy` in Pinocchio, `mj_energyVel` in MuJoCo.

        Args:
            position, velocity: samples (N, n), or one (n,), or mappings by name; SI.
            coordinates: coordinates of the motion: "platform" or "actuators".

        Raises:
            InputError, PoseError: as `Motion.mass_matrix`.
            DescriptionError: the kinetic energy of a rod is not a function of its velocity.
        """
        return self._functions(coordinates).kinetic_energy(position, velocity)

    @keywords()
    def potential_energy(
        self, position: object, *, coordinates: Entry | str = "platform"
    ) -> np.ndarray:
        """Return the potential energy (N,), J, of gravity and springs, up to a constant.

        Called `computePotentialEnergy` in Pinocchio, `mj_energyPos` in MuJoCo.

        Args:
            position: samples (N, n), or one (n,), or a mapping by name; SI.
            coordinates: coordinates of the position: "platform" or "actuators".

        Raises:
            InputError, PoseError: as `Motion.mass_matrix`.
            DescriptionError: the energies of the machine are not defined; see `kinetic_energy`.
        """
        return self._functions(coordinates).potential_energy(position)

    def as_jax(self, function: str = "inverse_dynamics") -> Callable[..., Any]:
        """Return a function of the platform's motion for JAX; see `Motion.as_jax`."""
        return self.platform.as_jax(function)

    def as_torch(self, function: str = "inverse_dynamics") -> Callable[..., Any]:
        """Return a function of the platform's motion for PyTorch; see `Motion.as_torch`."""
        return self.platform.as_torch(function)

    def _motion(self, entry: Entry) -> Motion:
        """Return the functions of a motion, which models of the same machine share."""
        AssemblyError.raise_if_any(self.assembly.findings)
        if type(self.evaluator).__hash__ is None:  # mutable evaluators have no hash
            return self._built_motion(entry)
        key = entry, self.formulation, self.free, self.evaluator
        return self._shared.motions.get(key, lambda: self._built_motion(entry))

    def _built_motion(self, entry: Entry) -> Motion:
        """Build the functions of a motion."""
        from tauloop.compiler.expressions import Catalogue
        from tauloop.model.motion import Motion
        from tauloop.model.runner import Runner

        catalogue = Catalogue(
            self.assembly, entry_ports(self.assembly, entry), self.formulation, self.free
        )
        return Motion(Runner(catalogue, self.evaluator, self.limits))

    @keywords()
    def output_ports(self, output: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names and the units of the rows of a regressor.

        Args:
            output: an output of `Motion.regressor`.

        Raises:
            InputError: the output is unknown.
        """
        topology = self.topology
        from tauloop.model.motion import OUTPUTS

        if not isinstance(output, str) or output not in OUTPUTS:
            raise InputError(unknown_names([output], OUTPUTS, "{!r} is unknown", "output"))
        is_leading = output.startswith("leading")
        if output.endswith("joints"):
            driven = self.assembly.leading_driven if is_leading else self.assembly.driven
            names = tuple(topology.velocity_names[i] for i in driven)
            units = tuple("N m" if topology.angular[i] else "N" for i in driven)
        else:
            port = force_port(self.assembly)
            indices = self.assembly.leading if is_leading else range(port.size)
            names = tuple(port.columns[i] for i in indices)
            units = tuple(port.units[i] for i in indices)
        if is_leading:
            names = tuple(f"{name}.resultant" for name in names)
        return names, units

    def measurable_output(self, output: str) -> str:
        """Return the regressor output that is independent of the preload between redundant actuators.

        Redundant actuators can press against each other without moving the machine. Only their
        resultants on the leading motions ("leading", "leading_joints") follow from the motion.

        Args:
            output: an output of `Motion.regressor`.

        Raises:
            InputError: the output is unknown.
        """
        names = {"actuators": "leading", "joints": "leading_joints"}
        from tauloop.model.motion import OUTPUTS

        if not isinstance(output, str) or output not in OUTPUTS:
            raise InputError(unknown_names([output], OUTPUTS, "{!r} is unknown", "output"))
        return names.get(output, output) if self.assembly.is_redundant else output

    def platform_position(self, q: np.ndarray) -> np.ndarray:
        """Return platform positions (N, n) at full coordinates (N, n_q)."""
        return np.take(full_coordinates(q, self.topology), self.platform.ports.q, axis=-1)

    def actuator_position(self, q: np.ndarray) -> np.ndarray:
        """Return actuator positions p (N, n_u) at full coordinates (N, n_q)."""
        topology = self.topology
        driven = list(self.assembly.driven)
        joints = full_coordinates(q, topology)[..., [topology.q_of_v[i] for i in driven]]
        loops = self.assembly.loops
        return np.asarray(joints @ loops.transmission[:, driven].T + loops.actuator_offsets)

    @property
    def coordinate_port(self) -> Port:
        """Names and units of all coordinates (n_q,)."""
        topology = self.topology
        return Port(
            name="q", columns=tuple(topology.coordinate_names), units=coordinate_units(topology)
        )

    @property
    def velocity_port(self) -> Port:
        """Names and units of all velocities (n_v,)."""
        topology = self.topology
        return Port(
            name="v", columns=tuple(topology.velocity_names), units=velocity_units(topology)
        )

    @property
    def force_port(self) -> Port:
        """Names of all actuators (n_u,), and units of their forces."""
        return force_port(self.assembly)

    @property
    def actuator_port(self) -> Port:
        """Names of all actuators (n_u,), and units of their positions."""
        return motor_port(self.assembly, "position", "rad", "m")

    @property
    def actuator_units(self) -> tuple[str, ...]:
        """Units of the positions of all actuators (n_u,), m or rad."""
        return self.actuator_port.units

    @keywords()
    def inverse_kinematics(self, position: object, start: object | None = None) -> State:
        """Return full coordinates at platform positions.

        `actuator_position` returns the actuator positions at these coordinates.

        If Newton's method solves a loop, a solution far from the start may be on another branch
        that no continuous motion reaches. `tauloop.inverse_kinematics` checks this for one pose,
        and `platform.track` for a motion. `tauloop.working_modes` returns one pose of each working
        mode.

        Args:
            position: positions of the independent coordinates (N, n), m, rad or quaternions;
                columns as in `platform.ports`.
            start: assembled coordinates (N, n_q) or (n_q,) that select the working mode; by default
                the reference pose.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: a pose is out of reach or singular; the message states the loop and its gap.
        """
        return self.platform.kinematics(position, start=start)

    @keywords()
    def forward_kinematics(self, position: object, start: object | None = None) -> State:
        """Return full coordinates at actuator positions, by continuation from an assembled pose.

        Each sample is followed along a straight line in actuator space, from the start pose to its
        position, and so remains in the assembly mode of the start pose. If the loops do not close
        at a point of the line, the continuation resumes from the pose before it and may reach
        another mode. `State.has_opened` and `State.diagnostics` report this.

        Args:
            position: actuator positions (N, m), m or rad. With redundant actuators, the positions
                of either all actuators or only the leading actuators. Positions of all actuators
                are fitted by least squares, with equal weights for angles and for lengths.
            start: assembled coordinates (n_q,) to start from; by default the reference pose.

        Raises:
            PoseError: a loop does not close (the message states the loop and its gap), a pose is
                singular, or positions of redundant actuators are inconsistent (see
                `fit_actuators`).
        """
        if not self._has_all_encoders(position):
            return self.actuators.follow(position, start)
        from tauloop.model.positions.encoder_fit import fit_actuators, require_agreement

        return require_agreement(fit_actuators(self.actuators, position, start))

    @keywords()
    def fit_actuators(
        self,
        position: object,
        start: object | None = None,
        *,
        noise: float | str | Mapping[str, float | str] | None = None,
    ) -> ActuatorFit:
        """Return the least-squares pose for the positions of all actuators, and their residuals.

        Args:
            position: positions of all actuators and passive degrees of freedom (N, n) or (n,), m or
                rad.
            start: assembled coordinates (n_q,) to start from; by default the reference pose.
            noise: standard deviations of the positions, for the weights: one number in SI units, or
                numbers or texts with units by name; by default 1e-5 rad, and 1e-5 of the machine's
                characteristic length.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular.

        Examples:
            >>> import tauloop as tl
            >>> model = tl.Model(tl.load("cable_camera"))
            >>> lengths = model.actuator_position(model.assembly.q)
            >>> model.fit_actuators(lengths).largest < 1.0
            True
        """
        from tauloop.model.positions.encoder_fit import encoder_deviations, fit_actuators

        deviations = encoder_deviations(self.assembly, noise)
        return fit_actuators(self.actuators, position, start, deviations=deviations)

    def _has_all_encoders(self, position: object) -> bool:
        """Return whether positions of redundant actuators include those of dependent actuators."""
        if not self.assembly.is_redundant:
            return False
        if isinstance(position, Mapping):
            spare = self.assembly.spare_actuators
            return any(str(key) in spare or str(key) in _last_parts(spare) for key in position)
        array = numbers(position, "position")
        count = self.actuators.ports.position.size + len(self.assembly.spare_actuators)
        return array.ndim > 0 and array.shape[-1] == count


def _assembled(mechanism: Mechanism, locks: Locks) -> _Assembled:
    """Assemble a machine, and lock degrees of freedom.

    Raises:
        AssemblyError: the loops do not close.
    """
    machine_loops = loops(mechanism)
    locked = held_velocities(machine_loops, locks.names) if locks.names else ()
    assembly = assemble(machine_loops, locked)
    if assembly.passive:
        assembly = lock_spins(assembly, locks)
    # Keep joints replaced by locks in the mechanism, but not frames added for the loop equations.
    is_replaced = assembly.mechanism is not machine_loops.mechanism
    return _Assembled(mechanism=assembly.mechanism if is_replaced else mechanism, assembly=assembly)


def _require_leaves(mechanism: Mechanism, names: tuple[str, ...]) -> None:
    """Reject names that are not independent parameters."""
    problems = Problems()
    table = mechanism.parameters
    for name in names:
        if name not in table.names:
            problems.add(name, "is not an independent parameter", table.near(name))
    InputError.raise_if_any(problems)


def _last_parts(names: Iterable[str]) -> set[str]:
    """Return the parts of names after the last dot."""
    return {name.rpartition(".")[2] for name in names}


#: A machine in the forms that public functions accept: a mechanism, its model, a path, or the name
#: of a shipped machine.
MachineSource = Mechanism | Model | str | Path


def modeled(machine: MachineSource) -> Model:
    """Return the model of a machine; a model is returned unchanged.

    Raises:
        DescriptionError: the machine or file does not exist, or the file is wrong.
        AssemblyError: the loops do not close.
        InputError: the argument is not a machine.
    """
    return machine if isinstance(machine, Model) else Model(machine)
