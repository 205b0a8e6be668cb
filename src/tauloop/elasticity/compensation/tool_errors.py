"""Tool errors due to loads, motion and heat, and the corrections of the platform."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic
from tauloop.elasticity.frame.assembled import AssembledStructure, assemble
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.preload import DeadLoad, preload_stiffness
from tauloop.elasticity.frame.statics import gravity_load
from tauloop.elasticity.heat.expansion import (
    ThermalExpansion,
    ThermalExpansionOptions,
    thermal_expansion,
)
from tauloop.elasticity.machine.constants import machine_constants
from tauloop.elasticity.machine.joints import free_twists
from tauloop.elasticity.machine.poses import gravity_vector, require_elastic_data
from tauloop.elasticity.machine.rigid_motion import inertia_forces, rigid_motion
from tauloop.elasticity.machine.structure import (
    MachineStructure,
    StructureOptions,
    machine_structure,
)
from tauloop.mechanism.model import PLATFORM_JOINT
from tauloop.mechanism.poses import FramePose
from tauloop.model import Model

#: Above this condition number of the tool's Jacobian, some platform coordinates do not change the
#: tool's pose, as for an arm with more than six motors.
MAX_TOOL_CONDITION = 1e10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolLoads:
    """Loads and temperatures of a machine.

    Attributes:
        wrench: (N, 6) force and moment at the tool, N and N m.
        rates: velocities and accelerations (N, m) of the platform's coordinates; None at rest.
        is_weightless: whether the weight is neglected.
        temperatures, expansions: see `ThermalExpansionOptions`; None without heat.
    """

    wrench: Array
    rates: tuple[Array, Array] | None = None
    is_weightless: bool = False
    temperatures: float | Mapping[str, float] | None = None
    expansions: float | Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolError:
    """Twists (small displacements) of the tool due to loads and heat at N poses.

    Attributes:
        deflection: (N, 6) twist due to loads, m and rad.
        heat: (N, 6) twist due to heat, m and rad.
        by_geometric_stiffness: (N,) displacement that geometric stiffness adds, m; zero if it was
            not calculated.
        notes: assumptions about the machine.
        diagnostics: diagnostics of the thermal error.
    """

    deflection: Array
    heat: Array
    by_geometric_stiffness: Array
    notes: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def total(self) -> Array:
        """Twist (N, 6) due to loads and heat, m and rad."""
        return self.deflection + self.heat


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolPose:
    """Position (N, 3) and orientation (N, 3, 3) of the tool of the rigid machine."""

    position: Array
    rotation: Array


class LoadedTool:
    """The tool of a machine under loads, at N samples.

    Attributes:
        model: the machine.
        loads: loads and temperatures at the samples.
        length: characteristic length of the machine, m.
    """

    def __init__(self, model: Model, loads: ToolLoads) -> None:
        """Store the machine and its loads.

        Args:
            model: the machine.
            loads: loads and temperatures at the samples.
        """
        self.model = model
        self.loads = loads
        self.length = float(machine_constants(model).shape.length)

    def pose(self, q: Array) -> ToolPose:
        """Return the pose of the tool at coordinates (N, n_q) of the rigid machine."""
        geometry = machine_constants(self.model).shape.at(np.ascontiguousarray(q))
        return ToolPose(position=geometry.tool, rotation=geometry.tool_rotation)

    def error(self, q: Array, *, with_second_order: bool = False) -> ToolError:
        """Return the twists of the tool due to loads and heat.

        Args:
            q: coordinates (N, n_q) of the rigid machine.
            with_second_order: whether to calculate the effect of geometric stiffness.

        Raises:
            InputError: the machine has no elastic part, and no temperatures are given.
            AssemblyError: a part can move without any deformation.
        """
        elastic_machine = machine_structure(self.model, q, StructureOptions(has_rod_modes=False))
        heat = np.zeros((len(q), 6))
        thermal_diagnostics: tuple[Diagnostic, ...] = ()
        is_heated = self.loads.temperatures is not None
        if is_heated:
            expansion = self._thermal_expansion(q)
            heat = expansion.error
            thermal_diagnostics = expansion.diagnostics
        if elastic_machine.elastic_names or not is_heated:
            require_elastic_data(self.model.mechanism, elastic_machine)
        by_geometric_stiffness = np.zeros(len(q))
        if not elastic_machine.elastic_names:
            return ToolError(
                deflection=np.zeros((len(q), 6)),
                heat=heat,
                by_geometric_stiffness=by_geometric_stiffness,
                notes=elastic_machine.notes,
                diagnostics=thermal_diagnostics,
            )
        assembled = assemble(elastic_machine.structure)
        assembled.require_no_mechanism()
        load = self._load(q, elastic_machine, assembled)
        displacement = np.asarray(np.linalg.solve(assembled.stiffness, load[..., None])[..., 0])
        motion = assembled.point_motion(elastic_machine.tool_body, elastic_machine.tool_point)
        if with_second_order:
            by_geometric_stiffness = self._by_geometric_stiffness(
                elastic_machine, assembled, load, displacement
            )
        return ToolError(
            deflection=(motion @ displacement[..., None])[..., 0],
            heat=heat,
            by_geometric_stiffness=by_geometric_stiffness,
            notes=elastic_machine.notes,
            diagnostics=thermal_diagnostics,
        )

    @property
    def _gravity(self) -> Array:
        """Acceleration (3,) of gravity, m/s^2."""
        is_weightless = self.loads.is_weightless
        return np.zeros(3) if is_weightless else gravity_vector(self.model.mechanism)

    def _load(
        self, q: Array, elastic_machine: MachineStructure, assembled: AssembledStructure
    ) -> Array:
        """Return the generalized forces (N, n) due to weight, wrench and inertia."""
        motion = assembled.point_motion(elastic_machine.tool_body, elastic_machine.tool_point)
        load = gravity_load(assembled, self._gravity)
        load += np.einsum("...ki,...k->...i", motion, self.loads.wrench)
        if self.loads.rates is not None:
            position = self.model.platform_position(q)
            state = self.model.platform.kinematics(position, *self.loads.rates, start=q)
            assert state.v is not None
            assert state.a is not None
            rates = rigid_motion(self.model).at(state.q, state.v, state.a)
            load -= inertia_forces(elastic_machine, assembled, rates)
        return load

    def _thermal_expansion(self, q: Array) -> ThermalExpansion:
        """Return the thermal expansion at coordinates (N, n_q), with the tool's error."""
        options = ThermalExpansionOptions(
            temperatures=self.loads.temperatures or 0.0, expansions=self.loads.expansions
        )
        return thermal_expansion(self.model, self.model.platform_position(q), options)

    def _by_geometric_stiffness(
        self,
        elastic_machine: MachineStructure,
        assembled: AssembledStructure,
        load: Array,
        displacement: Array,
    ) -> Array:
        """Return the displacement (N,) of the tool that geometric stiffness adds, m."""
        at_tool = DeadLoad(
            body=elastic_machine.tool_body,
            point=elastic_machine.tool_point,
            wrench=self.loads.wrench,
        )
        geometric = preload_stiffness(assembled, displacement, self._gravity, (at_tool,))
        preloaded = np.linalg.solve(assembled.stiffness + geometric, load[..., None])[..., 0]
        motion = assembled.point_motion(elastic_machine.tool_body, elastic_machine.tool_point)
        twist = (motion @ (preloaded - displacement)[..., None])[..., 0]
        return np.asarray(np.linalg.norm(twist[:, :3], axis=1))

    # Corrections

    def pose_deviation(self, q: Array, target: ToolPose, error: Array) -> Array:
        """Return the twist (N, 6) from the target to the tool, plus the tool's error (N, 6).

        The rotation matrix R Rₜᵀ from the target orientation Rₜ to the tool's orientation R is a
        small rotation. Its rotation vector is therefore that of its skew-symmetric part.
        """
        pose = self.pose(q)
        rotation = pose.rotation @ np.swapaxes(target.rotation, -1, -2)
        skew = 0.5 * (rotation - np.swapaxes(rotation, -1, -2))
        angle = np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], axis=-1)
        return np.concatenate([pose.position - target.position, angle], axis=-1) + error

    def correction(self, q: Array, deviation: Array) -> Array:
        """Return the displacement (N, m) of the platform's coordinates that removes a deviation.

        The deviation (N, 6) is a twist of the tool. For redundant coordinates, the displacement is
        the smallest.
        """
        S = np.swapaxes(self.directions(q), -1, -2)
        J = S @ self._jacobian(q)
        scale = np.linalg.norm(J, axis=-2, keepdims=True)
        scale = np.where(scale > 0.0, scale, 1.0)
        if np.linalg.cond(J / scale).max(initial=1.0) > MAX_TOOL_CONDITION:
            # Some coordinates do not change the tool's pose: use the minimum-norm displacement.
            inverse = np.linalg.pinv(J / scale, rcond=1.0 / MAX_TOOL_CONDITION)
            change = np.asarray(inverse @ (S @ deviation[..., None]) / np.swapaxes(scale, -1, -2))
        else:
            change = np.asarray(np.linalg.solve(J, S @ deviation[..., None]))
        return -np.asarray(change[..., 0], dtype=float)

    def correctable(self, q: Array, deviation: Array) -> Array:
        """Return the component (N, 6) of a deviation that the platform's coordinates can remove."""
        change = self.correction(q, deviation)
        return -np.asarray((self._jacobian(q) @ change[..., None])[..., 0])

    def _jacobian(self, q: Array) -> Array:
        """Return the tool's twist (N, 6, m) per unit of the platform's velocities."""
        return self.model.platform.tool_jacobian(self.model.platform_position(q), start=q)

    def directions(self, q: Array) -> Array:
        """Return the directions (N, 6, m) in which the tool is corrected exactly.

        These are the directions of the platform's commanded coordinates. If joints are commanded,
        the result is the tool's Jacobian with rotations multiplied by the square of the machine's
        length.
        """
        constant = platform_directions(self.model)
        if constant is not None:
            return np.broadcast_to(constant, (len(q), *constant.shape))
        weight = np.repeat([1.0, self.length**2], 3)
        return self._jacobian(q) * weight[:, None]


def platform_directions(model: Model) -> Array | None:
    """Return the directions (6, m) of the platform's commanded coordinates; None for joints."""
    names = model.platform.ports.velocity.columns
    joint = next((item for item in model.mechanism.joints if item.name == PLATFORM_JOINT), None)
    if joint is None or not set(names) <= set(joint.velocity_names):
        return None
    base = machine_constants(model).frame(joint.parent)
    parent = FramePose(base.rotation[None], base.position[None])
    twists = free_twists(joint, parent, parent)[0]
    return np.asarray(twists[:, [joint.velocity_names.index(name) for name in names]])
