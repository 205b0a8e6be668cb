"""Loads of a machine in equilibrium, and the geometric stiffness due to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from tauloop.common.errors import AssemblyError, InputError
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.assembled import AssembledStructure
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.preload import DeadLoad, geometric_stiffness, preload_stiffness
from tauloop.elasticity.frame.statics import element_weight, gravity_load
from tauloop.elasticity.machine.poses import gravity_vector
from tauloop.elasticity.machine.structure import MachineStructure
from tauloop.elasticity.vibrations.servo_modes import servo_rows
from tauloop.equations.named_values import TOOL_PORT, named_values
from tauloop.mechanism.model import Mechanism

#: Largest fraction of all loads that may act along a rigid-body mode.
EQUILIBRIUM_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MachineLoads:
    """Weight and a constant wrench at the tool.

    Attributes:
        gravity: (3,) acceleration in the axes of the base, m/s^2.
        wrench: (6,) force and moment in the axes of the base, N and N m.
    """

    gravity: Array
    wrench: Array


class LoadOptions(Protocol):
    """Options with loads, such as `VibrationOptions`."""

    @property
    def loaded(self) -> bool:
        """Whether loads change the stiffness."""

    @property
    def weightless(self) -> bool:
        """Whether the weight is neglected."""

    @property
    def wrench(self) -> str | Mapping[str, str | float] | tuple[float, ...] | None:
        """Wrench at the tool."""


def machine_loads(mechanism: Mechanism, options: LoadOptions) -> MachineLoads | None:
    """Return the loads for the geometric stiffness; None without the option `loaded`.

    Raises:
        InputError: `wrench` or `weightless` is given without `loaded`, or the wrench is wrong.
    """
    if not options.loaded:
        for name, value in (("wrench", options.wrench), ("weightless", options.weightless)):
            if value:
                what = "loads do not change the frequencies of the unloaded machine"
                raise InputError.of(name, what, f"set `loaded`, or omit `{name}`")
        return None
    wrench = np.asarray(named_values(TOOL_PORT, "wrench", options.wrench, np.zeros(6)), float)
    gravity = np.zeros(3) if options.weightless else gravity_vector(mechanism)
    return MachineLoads(gravity=gravity, wrench=wrench)


def loaded_stiffness(
    elastic_machine: MachineStructure,
    assembled: AssembledStructure,
    loads: MachineLoads,
    *,
    is_estimate: bool = False,
) -> Array:
    """Return the geometric stiffness (N, n, n) due to loads in equilibrium.

    Controlled motors hold their positions. The loads must not act along other rigid-body modes, such
    as those of free motors.

    Args:
        elastic_machine: the machine.
        assembled: its structure.
        loads: weight and wrench.
        is_estimate: True to use only the axial forces in beams if rigid parts close loops, instead
            of an error.

    Raises:
        AssemblyError: the loads act along a rigid-body mode.
        InputError: rigid parts close loops, and `is_estimate` is False.
    """
    motion = assembled.point_motion(elastic_machine.tool_body, elastic_machine.tool_point)
    load = gravity_load(assembled, loads.gravity) + np.swapaxes(motion, -1, -2) @ loads.wrench
    by_loads = preload_stiffness if is_estimate else geometric_stiffness
    at_tool = DeadLoad(
        body=elastic_machine.tool_body, point=elastic_machine.tool_point, wrench=loads.wrench
    )
    K = assembled.stiffness
    if elastic_machine.drives:
        motor_rows, _, _ = servo_rows(assembled, elastic_machine.lengths, elastic_machine.drives)
        _, _, Vt = np.linalg.svd(motor_rows, full_matrices=True)
        # Columns of Z are the motions at which all motors rest.
        Z = np.swapaxes(Vt[:, motor_rows.shape[1] :], -1, -2)
        left = np.swapaxes(Z, -1, -2)
        displacement = (Z @ np.linalg.solve(left @ K @ Z, left @ load[..., None]))[..., 0]
        return by_loads(assembled, displacement, loads.gravity, (at_tool,))
    free = assembled.mechanisms
    if free.shape[-1]:
        _require_equilibrium(assembled, load, free, loads)
        # A spring against the rigid-body modes makes K regular. The loads do not deform it.
        scale = np.trace(K, axis1=1, axis2=2)[:, None, None]
        K = K + scale * free @ np.swapaxes(free, -1, -2)
    displacement = np.asarray(np.linalg.solve(K, load[..., None]))[..., 0]
    return by_loads(assembled, displacement, loads.gravity, (at_tool,))


def _require_equilibrium(
    assembled: AssembledStructure, load: Array, free: Array, loads: MachineLoads
) -> None:
    """Check that loads (N, n) do no work along rigid-body modes (N, n, d).

    Raises:
        AssemblyError: the loads do work along a rigid-body mode.
    """
    length = assembled.structure.length
    largest = np.zeros((len(free), free.shape[-1]))
    total = np.linalg.norm(loads.wrench[:3]) + np.linalg.norm(loads.wrench[3:]) / length
    for body in assembled.structure.bodies:
        twist = assembled.body_motion[body.name] @ free
        rotation = length * np.linalg.norm(twist[:, 3:], axis=1)
        largest = np.maximum(largest, np.linalg.norm(twist[:, :3], axis=1) + rotation)
        if body.inertia is not None:
            total += np.max(body.inertia[..., 0, 0]) * np.linalg.norm(loads.gravity)
    for element in assembled.structure.elements:
        total += np.linalg.norm(element_weight(element, loads.gravity), axis=-1).max()
    work = np.abs(np.einsum("ni,nid->nd", load, free))
    fraction = (work / np.where(largest > 0.0, largest, 1.0)).max(initial=0.0) / (total or 1.0)
    if fraction > EQUILIBRIUM_TOLERANCE:
        what = (
            f"free motors are not in equilibrium: a fraction {fraction:.2g} of all loads acts "
            "along their motion"
        )
        raise AssemblyError.of("loaded", what, "lock the motors, or omit `loaded`")
