"""The Model bundle: every function of one assembled machine, on batches, with named and checked ports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from tauloop.common.errors import AssemblyError, InputError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.records import dataclass
from tauloop.common.shown import Shown
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.assembly.elsewhere import assembled_at
from tauloop.equations.assembly.limits import Limits, limits_of
from tauloop.equations.assembly.locks import DEFAULT_LOCKS, Locks
from tauloop.equations.assembly.loops import loops
from tauloop.equations.assembly.spins import assemble_locked
from tauloop.equations.formulations import NEWTON_EULER, Formulation, formulation_named
from tauloop.equations.ports import (
    ACTUATORS,
    PLATFORM,
    Entry,
    entry_named,
    entry_ports,
    force_port,
    motor_port,
    numbers,
)
from tauloop.equations.topology import Topology
from tauloop.equations.values import DynamicParameter, dynamic_parameters
from tauloop.formats.library import mechanism_of
from tauloop.mechanism.expression import leaves
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.named import Named
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model.arguments import assembled_poses, full_coordinates, require_type, text_names

# Whoever asks whether a machine assembles, and how, makes no program and runs none.
if TYPE_CHECKING:
    from tauloop.compiler.c.calling.evaluator import Evaluator
    from tauloop.compiler.state import Accelerations, Forces, State
    from tauloop.model.encoder_fit import ActuatorFit
    from tauloop.model.hybrid import HybridFunctions
    from tauloop.model.motion import Motion
    from tauloop.model.tool import Payload


@final
@dataclass(frozen=True, init=False, repr=False, eq=False)
class Model(Shown):
    """An assembled machine and its functions. Made once per mechanism; constant afterwards.

    Two entries give the same functions from different motions: `platform` (the independent
    coordinates) and `actuators` (what encoders measure, and the positions of passive freedoms).
    `hybrid` is the inverse dynamics of machines with passive freedoms.

    Attributes:
        mechanism: the machine.
        assembly: what its loops allow.
        free: names of the leaf parameters that stay arguments of its functions; all others are
            baked in.
        formulation: how the forces M a + h are found.
        given_evaluator: how programs are run; None for the usual way.

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
            free: leaf parameters (or one) that stay arguments of every function; all others are
                baked in.
            formulation: one of `equations.formulations.FORMULATIONS` by name, or one of your own,
                for inverse dynamics and regressors.
            evaluator: how functions are run. Without it they are interpreted, and machine code for
                large batches; `Compiled()` is machine code from the first sample on.
            locks: freedoms that are held; without it the spins of links between two ball joints,
                and of pins.

        Raises:
            AssemblyError: the loops do not close.
            InputError: a free parameter, or the formulation, does not exist.
        """
        mechanism = mechanism_of(machine)
        names = text_names(free, "free")
        _require_leaves(mechanism, names)
        chosen = formulation_named(formulation) if isinstance(formulation, str) else formulation
        require_type(
            chosen, Formulation, "formulation", "give its name, or a Formulation of your own"
        )
        require_type(locks, Locks, "locks", "give Locks(...)")
        if evaluator is not None:
            from tauloop.compiler.c.calling.evaluator import Evaluator

            require_type(
                evaluator, Evaluator, "evaluator", "give tl.compiler.c.Compiled() or Interpreted()"
            )
        described = loops(mechanism)
        assembly = assemble_locked(described, locks)
        # ends that the loops need are no part of the description; joints that locks have put in
        # place of others are
        if assembly.mechanism is not described.mechanism:
            mechanism = assembly.mechanism
        self._keep(mechanism, assembly, names, chosen, evaluator)
        _ = self.parameters  # whose names are checked

    def _keep(self, *values: object) -> None:
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)

    @keywords()
    def at(self, q: np.ndarray) -> Model:
        """The same machine with its reference at another assembled pose, on whose branch its closed forms lie.

        Args:
            q: coordinates (n_q,).

        Raises:
            AssemblyError: the loops do not close there.
        """
        other = Model.__new__(Model)
        poses, single = assembled_poses(q, self.topology)
        if not single:
            raise InputError.of("q", f"has {len(poses)} rows", "give the coordinates of one pose")
        there = assembled_at(self.assembly, self.platform.runner.pose(poses[0]))
        other._keep(self.mechanism, there, self.free, self.formulation, self.given_evaluator)
        return other

    def freed(self, names: Iterable[str]) -> Model:
        """The same machine with leaf parameters that stay arguments of every function, beside those that do already.

        Args:
            names: of them, or of one.

        Raises:
            InputError: a parameter does not exist.
        """
        names = tuple(name for name in text_names(names, "names") if name not in self.free)
        _require_leaves(self.mechanism, names)
        if not names:
            return self
        other = Model.__new__(Model)
        free = (*self.free, *names)
        other._keep(self.mechanism, self.assembly, free, self.formulation, self.given_evaluator)
        return other

    @cached_property
    def evaluator(self) -> Evaluator:
        """How its programs are run."""
        from tauloop.compiler.c.calling.evaluator import WORTH_COMPILING, Compiled

        return (
            Compiled(at_least=WORTH_COMPILING)
            if self.given_evaluator is None
            else self.given_evaluator
        )

    @property
    def topology(self) -> Topology:
        """Its coordinates."""
        return self.assembly.topology

    def _contents(self) -> dict[str, object]:
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
        """Entries of pi, in which inverse dynamics is linear; by index, or by name."""
        return Named(dynamic_parameters(self.mechanism, self.topology))

    @cached_property
    def pi(self) -> np.ndarray:
        """Nominal dynamic parameters (n_pi,), SI."""
        return np.array([self.mechanism.value(p.expression) for p in self.parameters])

    @cached_property
    def limits(self) -> Limits:
        """Limits of its coordinates and cut joints, by which given poses and motions are judged."""
        return limits_of(self.mechanism, self.topology)

    def ties(self, names: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
        """How pi depends on leaf parameters: pi = T p + pi_0.

        Args:
            names: leaf parameters p; pi must be linear in them together.

        Returns:
            T (n_pi, n_p) and pi_0 (n_pi,), the rest at nominal values.

        Raises:
            InputError: pi is not linear in these parameters (such as a mass times a length, both
                free).
        """
        names = text_names(names, "names")
        _require_leaves(self.mechanism, names)
        touched = [i for i, p in enumerate(self.parameters) if leaves(p.expression) & set(names)]

        def pi(values: np.ndarray) -> np.ndarray:
            mechanism = self.mechanism.at_values(dict(zip(names, values, strict=True)))
            result = np.zeros(len(self.parameters))
            result[touched] = [mechanism.value(self.parameters[i].expression) for i in touched]
            return result

        zero = np.zeros(len(names))
        origin = pi(zero)
        T = np.stack([pi(row) - origin for row in np.eye(len(names))], axis=1)
        probe = np.array([1.0 + 0.37 * i for i in range(len(names))])
        deviation = np.abs(pi(probe) - (T @ probe + origin))
        bad = np.flatnonzero(deviation > 1e-9 * (1.0 + np.abs(origin) + np.abs(T) @ probe))
        problems = Problems()
        remedy = (
            "give one of them a value (by command --known NAME=VALUE), or an inertia by its moments"
        )
        alike: dict[str, list[str]] = {}
        for entry in (self.parameters[i] for i in bad):
            chosen = ", ".join(sorted(leaves(entry.expression) & set(names)))
            alike.setdefault(chosen, []).append(entry.name)
        for chosen, entries in alike.items():
            others = f" (and {len(entries) - 1} others are not)" if len(entries) > 1 else ""
            problems.add(
                entries[0], f"is not linear in the chosen parameters ({chosen}){others}", remedy
            )
        InputError.raise_if_any(problems)
        untouched = np.array(self.pi)
        untouched[touched] = 0.0
        return T, origin + untouched

    @cached_property
    def platform(self) -> Motion:
        """Functions of the motion of the independent (platform) coordinates."""
        return self._motion(PLATFORM)

    @cached_property
    def actuators(self) -> Motion:
        """Functions of the motion of the actuators."""
        return self._motion(ACTUATORS)

    @cached_property
    def hybrid(self) -> HybridFunctions:
        """Hybrid inverse dynamics, for machines with passive freedoms or redundant actuators (and all others)."""
        from tauloop.model.hybrid import HybridFunctions

        return HybridFunctions(self.actuators)

    @keywords()
    def motion(self, entry: Entry | str) -> Motion:
        """Return the functions of a motion of the platform or of the actuators.

        Args:
            entry: "platform" or "actuators".

        Raises:
            AssemblyError: the machine does not work as described.
            InputError: neither of these.
        """
        return self.platform if entry_named(entry, "entry") is PLATFORM else self.actuators

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

        See `Motion.inverse_dynamics` for the equation. Called `rnea` in Pinocchio, `rne` in the
        Robotics Toolbox, `mj_inverse` in MuJoCo; here loops are closed and friction, springs and
        rotors count.

        Args:
            position, velocity, acceleration: samples (N, n), or one (n,), or mappings by name; SI.
            coordinates: of which they are: "platform" or "actuators".
            wrench: force and moment (N, 6) or (6,) that act on the tool, base frame, N and N m.
            payload: what is fixed to the tool in addition to the machine file.

        Raises:
            InputError, PoseError, AssemblyError: as `Motion.inverse_dynamics`.

        Examples:
            >>> import tauloop as tl
            >>> forces = tl.Model("delta").inverse_dynamics([0.0, 0.0, -0.5], [0.0] * 3, [0.0] * 3)
            >>> forces.given, forces.force.round(2).tolist()
            ('platform coordinates x, y, z', [-1.37, -1.37, -1.37])
        """
        motion = self._of(coordinates)
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
        """Return the accelerations in platform coordinates, or actuator coordinates, that actuator forces cause.

        Called `aba` in Pinocchio, `accel` in the Robotics Toolbox, `mj_forward` in MuJoCo.

        Args:
            position, velocity: samples (N, n), or one (n,), or mappings by name; SI.
            force: of the actuators (N, n_u) or (n_u,), N or N m.
            coordinates: of which the motion is: "platform" or "actuators".
            wrench: force and moment (N, 6) or (6,) that act on the tool, base frame, N and N m.
            payload: what is fixed to the tool in addition to the machine file.

        Raises:
            InputError, PoseError: as `Motion.forward_dynamics`.
        """
        from tauloop.compiler.state import Accelerations

        motion = self._of(coordinates)
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
            of: "tool" for its velocity and angular velocity in the base frame (N, 6, m);
                "actuators" (N, n_u, m); "platform" (N, n, m).
            coordinates: of which the position and the columns are: "platform" or "actuators".

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular.
        """
        motion = self._of(coordinates)
        functions = {
            "tool": motion.tool_jacobian,
            "actuators": motion.actuator_jacobian,
            "platform": motion.platform_jacobian,
        }
        InputError.raise_if_any(unknown_names([of], functions, "{!r} is unknown", "of"))
        return functions[of](position)

    @keywords()
    def tool_pose(self, position: object, *, coordinates: Entry | str = "platform") -> np.ndarray:
        """Return the tool's poses (N, 4, 4) in the base frame at platform coordinates, or actuator coordinates.

        Called `framePlacement` in Pinocchio, `fkine` in the Robotics Toolbox, `site_xpos` and
        `site_xmat` in MuJoCo.

        Args:
            position: samples (N, n), or one (n,), or a mapping by name; SI.
            coordinates: of which it is: "platform" or "actuators".

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular.
        """
        return self._of(coordinates).tool(position).pose

    @keywords()
    def mass_matrix(self, position: object, *, coordinates: Entry | str = "platform") -> np.ndarray:
        """Return the mass matrices (N, m, m) in platform coordinates, or in actuator coordinates.

        M of M a + bias = J^T u, where J is the Jacobian of the actuators (`jacobian`). Called
        `crba` in Pinocchio, `inertia` in the Robotics Toolbox, `mj_fullM` in MuJoCo.

        Args:
            position: samples (N, n), or one (n,), or a mapping by name; SI.
            coordinates: of which it is: "platform" or "actuators".

        Raises:
            InputError, PoseError, AssemblyError: as `Motion.mass_matrix`.
        """
        return self._of(coordinates).mass_matrix(position)

    @keywords()
    def bias(
        self, position: object, velocity: object, *, coordinates: Entry | str = "platform"
    ) -> np.ndarray:
        """Return the forces (N, m) at zero acceleration on platform coordinates, or on actuator coordinates.

        Coriolis and centripetal forces, gravity, friction and springs. Called `nle`
        (`nonLinearEffects`) in Pinocchio and `qfrc_bias` in MuJoCo, without friction and springs
        there.

        Args:
            position, velocity: samples (N, n), or one (n,), or mappings by name; SI.
            coordinates: of which they are: "platform" or "actuators".

        Raises:
            InputError, PoseError, AssemblyError: as `Motion.mass_matrix`.
        """
        return self._of(coordinates).bias(position, velocity)

    @keywords()
    def gravity_forces(
        self, position: object, *, coordinates: Entry | str = "platform"
    ) -> np.ndarray:
        """Return the forces (N, m) against gravity on platform coordinates, or on actuator coordinates.

        Called `computeGeneralizedGravity` in Pinocchio, `gravload` in the Robotics Toolbox.

        Args:
            position: samples (N, n), or one (n,), or a mapping by name; SI.
            coordinates: of which it is: "platform" or "actuators".

        Raises:
            InputError, PoseError, AssemblyError: as `Motion.mass_matrix`.
        """
        return self._of(coordinates).gravity(position)

    @keywords()
    def kinetic_energy(
        self, position: object, velocity: object, *, coordinates: Entry | str = "platform"
    ) -> np.ndarray:
        """Return the kinetic energy (N,), J, of a motion in platform coordinates, or in actuator coordinates.

        Called `computeKineticEnergy` in Pinocchio, `mj_energyVel` in MuJoCo.

        Args:
            position, velocity: samples (N, n), or one (n,), or mappings by name; SI.
            coordinates: of which they are: "platform" or "actuators".

        Raises:
            InputError, PoseError: as `Motion.mass_matrix`.
            DescriptionError: a rod has no kinetic energy.
        """
        return self._of(coordinates).kinetic_energy(position, velocity)

    def _of(self, coordinates: Entry | str) -> Motion:
        return self.motion(entry_named(coordinates))

    def as_jax(self, function: str = "inverse_dynamics") -> Callable[..., Any]:
        """A function of the platform's motion for JAX; see `Motion.as_jax`."""
        return self.platform.as_jax(function)

    def as_torch(self, function: str = "inverse_dynamics") -> Callable[..., Any]:
        """A function of the platform's motion for PyTorch; see `Motion.as_torch`."""
        return self.platform.as_torch(function)

    def _motion(self, entry: Entry) -> Motion:
        AssemblyError.raise_if_any(self.assembly.findings)
        from tauloop.compiler.expressions import Catalogue
        from tauloop.model.motion import Motion
        from tauloop.model.runner import Runner

        catalogue = Catalogue(
            self.assembly, entry_ports(self.assembly, entry), self.formulation, self.free
        )
        return Motion(Runner(catalogue, self.evaluator, self.limits))

    @keywords()
    def output_ports(self, output: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names and units of a regressor's rows, of one of the outputs of `Motion.regressor`."""
        topology = self.topology
        from tauloop.model.motion import OUTPUTS

        InputError.raise_if_any(unknown_names([output], OUTPUTS, "{!r} is unknown", "output"))
        leads = output.startswith("leading")
        if output.endswith("joints"):
            driven = self.assembly.leading_driven if leads else self.assembly.driven
            names = tuple(topology.velocity_names[i] for i in driven)
            units = tuple("N m" if topology.angular[i] else "N" for i in driven)
        else:
            port = force_port(self.assembly)
            chosen = self.assembly.leading if leads else range(port.size)
            names, units = (
                tuple(port.columns[i] for i in chosen),
                tuple(port.units[i] for i in chosen),
            )
        return tuple(f"{name}.resultant" for name in names) if leads else names, units

    def determined(self, output: str) -> str:
        """The output of a regressor whose rows measured forces determine, whatever preload is among them.

        Redundant actuators can press against each other without moving the machine: only their
        resultants on the leading motions ("leading", "leading_joints") follow from the motion.
        """
        names = {"actuators": "leading", "joints": "leading_joints"}
        from tauloop.model.motion import OUTPUTS

        InputError.raise_if_any(unknown_names([output], OUTPUTS, "{!r} is unknown", "output"))
        return names.get(output, output) if self.assembly.is_redundant else output

    def platform_position(self, q: np.ndarray) -> np.ndarray:
        """The platform entry's positions (N, n) at full coordinates (N, n_q)."""
        return np.take(full_coordinates(q, self.topology), self.platform.ports.q, axis=-1)

    def actuator_position(self, q: np.ndarray) -> np.ndarray:
        """Actuator positions p (N, n_u) at full coordinates (N, n_q)."""
        topology = self.topology
        driven = list(self.assembly.driven)
        moved = full_coordinates(q, topology)[..., [topology.q_of_v[i] for i in driven]]
        return np.asarray(moved @ self.assembly.loops.transmission[:, driven].T)

    @property
    def actuator_units(self) -> tuple[str, ...]:
        """Units of the positions of all actuators (n_u,), m or rad."""
        return motor_port(self.assembly, "position", "rad", "m").units

    @keywords()
    def inverse_kinematics(self, position: object, start: object | None = None) -> State:
        """Full coordinates from positions of the platform: those of the actuators by `actuator_position`.

        Where a loop is solved by Newton's method, a pose far from the start may be one to which no
        motion leads, such as one beyond a fold: `tauloop.inverse_kinematics` checks one pose for
        that, `platform.track` a motion. All working modes, one pose each, come from
        `tauloop.kinematics.modes.modes.working_modes`.

        Args:
            position: positions of the independent coordinates (N, n), m, rad or quaternions, as
                `platform.ports`.
            start: assembled coordinates (N, n_q) or (n_q,) on whose working mode they lie; the
                reference without it.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular; which loop, by how much.
        """
        return self.platform.kinematics(position, start=start)

    @keywords()
    def forward_kinematics(self, position: object, start: object | None = None) -> State:
        """Full coordinates from actuator positions, followed from an assembled start pose.

        All samples walk together along straight lines in actuator space, from the start pose to
        their own positions, and so stay on its assembly mode. Where the loops stay open at a point
        of such a line, the rest is followed from the pose before it, which may lead to another
        mode: `State.has_opened` and `State.diagnostics` report it.

        Args:
            position: actuator positions (N, m), m or rad; of redundant actuators those of all, or
                of the leading ones alone. All count by least squares, with equal weights of angles
                and of lengths.
            start: assembled coordinates (n_q,) to start from; the reference pose without it.

        Raises:
            PoseError: a loop does not close, or a pose is singular; which and by how much. Or
                positions of redundant actuators disagree: which (see `fit_actuators`).
        """
        if not self._has_all_encoders(position):
            return self.actuators.follow(position, start)
        from tauloop.model.encoder_fit import fit_actuators, require_agreement

        return require_agreement(fit_actuators(self.actuators, position, start))

    @keywords()
    def fit_actuators(
        self,
        position: object,
        start: object | None = None,
        *,
        noise: float | str | Mapping[str, float | str] | None = None,
    ) -> ActuatorFit:
        """The pose that agrees best with the positions of all actuators, and by how much each of them disagrees.

        Args:
            position: of all actuators and passive freedoms (N, n) or (n,), m or rad.
            start: assembled coordinates (n_q,) to start from; the reference pose without it.
            noise: standard deviations of the positions, which weigh them: one number in SI units,
                or numbers or texts with units by name; without it 1e-5 rad, and 1e-5 of the
                machine's characteristic length.

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
        from tauloop.model.encoder_fit import encoder_deviations, fit_actuators

        deviations = encoder_deviations(self.assembly, noise)
        return fit_actuators(self.actuators, position, start, deviations=deviations)

    def _has_all_encoders(self, position: object) -> bool:
        """Whether positions are those of all actuators, of which some do not lead."""
        if not self.assembly.is_redundant:
            return False
        if isinstance(position, Mapping):
            spare = self.assembly.spare_actuators
            return any(str(key) in spare or str(key) in _last_parts(spare) for key in position)
        size, leading = numbers(position, "position").shape[-1:], self.actuators.ports.position.size
        return size == (leading + len(self.assembly.spare_actuators),)


def _require_leaves(mechanism: Mechanism, names: tuple[str, ...]) -> None:
    problems, table = Problems(), mechanism.parameters
    for name in names:
        if name not in table.names:
            problems.add(name, "is not a leaf parameter", table.near(name))
    InputError.raise_if_any(problems)


def _last_parts(names: Iterable[str]) -> set[str]:
    """What is behind the last point of names."""
    return {name.rpartition(".")[2] for name in names}


#: A machine in every form that public functions take: a mechanism, its model, a path, or the name
#: of a shipped machine.
MachineSource = Mechanism | Model | str | Path


def modelled(machine: MachineSource) -> Model:
    """Return the model of a machine: itself, or made of a mechanism, a path or the name of a shipped machine.

    Raises:
        DescriptionError: there is no such machine or file, or the file is wrong.
        AssemblyError: its loops do not close.
        InputError: not a machine.
    """
    return machine if isinstance(machine, Model) else Model(machine)
