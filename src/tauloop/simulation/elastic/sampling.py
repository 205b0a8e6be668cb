"""The structure of a machine at poses of its motion, as many as its interpolation needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.assembled import AssembledStructure, assemble
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.machine.constants import machine_constants
from tauloop.elasticity.machine.poses import (
    gravity_vector,
    machine_coordinates,
    mass_problems,
    require_elastic_data,
)
from tauloop.elasticity.machine.rigid_motion import rigid_motion
from tauloop.elasticity.machine.structure import (
    MachineStructure,
    StructureOptions,
    machine_structure,
)
from tauloop.elasticity.vibrations.machine_modes import require_controlled
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model
from tauloop.model.motion import Motion
from tauloop.motion import SampledMotion
from tauloop.simulation.elastic.controlled import SampledLoops, sampled_loops
from tauloop.simulation.elastic.moving_structure import SampledStructure
from tauloop.simulation.elastic.time_course import INTERPOLATED, Sampled, TimeCourse

#: Initial number of poses.
FIRST_POSES = 33
#: Maximum number of poses.
MAX_POSES = 1025
#: Tolerance of the relative error of interpolated matrices.
INTERPOLATION_TOLERANCE = 1e-4
#: Factor by which half the sample spacing reduces the error of cubic splines.
SPLINE_ERROR_RATIO = 16.0


class RigidPath(Protocol):
    """A motion of the platform."""

    def at(self, time: Array) -> SampledMotion:
        """Return the motion at times (N,)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledCourse:
    """The structure along a motion.

    Attributes:
        structure: the structure at P poses.
        coordinates: coordinates (P, n_q) of the machine at these poses, m and rad.
        sampled: matrices and forces of the structure.
        error: largest relative error of the interpolated matrices between the poses.
        beams, drives: names of beams and elastic drives.
        loops: position loops of controlled motors; None for motors that follow exactly.
    """

    structure: SampledStructure
    coordinates: Array
    sampled: Sampled
    error: float
    beams: tuple[str, ...]
    drives: tuple[str, ...]
    loops: SampledLoops | None = None


def path_entry(model: Model, path: RigidPath) -> Motion:
    """Return the functions of the coordinates that a motion is given in."""
    stroke = getattr(path, "stroke", None)
    return model.platform if stroke is None else model.functions(stroke.functions.ports.name)


def sampled_course(
    model: Model,
    path: RigidPath | None,
    duration: float,
    pose: object | None,
    settings: StructureOptions,
    ratios: Callable[[Array], Array] | None,
) -> SampledCourse:
    """Return the structure of a machine along a motion, or at a pose.

    Args:
        model: the machine.
        path: motion of the platform; None for a machine that does not move.
        duration: duration of the motion, s.
        pose: position of the platform if there is no motion.
        settings: how the machine becomes a structure.
        ratios: angular frequencies (P, k) -> damping ratios; None for no damping.
    """
    if path is None:
        structure, q = _at_rest(model, pose, settings)
        sampled, names = _quantities(model, structure, ratios)
        return _course(structure, q, sampled, names, 0.0, settings)
    poses = FIRST_POSES
    while True:
        time = np.linspace(0.0, duration, poses)
        structure, q = _along(model, path, time, settings)
        sampled, names = _quantities(model, structure, ratios)
        error = _interpolation_error(structure, sampled)
        if error <= INTERPOLATION_TOLERANCE or 2 * poses - 1 > MAX_POSES:
            break
        poses = 2 * poses - 1
    return _course(structure, q, sampled, names, error, settings)


def _course(
    structure: SampledStructure,
    q: Array,
    sampled: Sampled,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    error: float,
    settings: StructureOptions,
) -> SampledCourse:
    """Return a structure along its motion, with the position loops of controlled motors."""
    return SampledCourse(
        structure=structure,
        coordinates=q,
        sampled=sampled,
        error=error,
        beams=names[0],
        drives=names[1],
        loops=None if settings.laws is None else sampled_loops(structure),
    )


def tool_path(model: Model, path: RigidPath, time: Array) -> Array:
    """Return the tool center point (N, 3), m, of the undeformed machine at times (N,), s."""
    q = path_entry(model, path).track(path.at(time).position).q
    return machine_constants(model).shape.at(q).tool


def _at_rest(
    model: Model, pose: object | None, settings: StructureOptions
) -> tuple[SampledStructure, Array]:
    """Return the structure of a machine that does not move, and its coordinates (1, n_q)."""
    q, _ = machine_coordinates(model, pose)
    machine, assembled = _structure_at(model, q, settings)
    rest = np.zeros((1, model.topology.n_v))
    rates = rigid_motion(model).at(q, rest, rest)
    structure = SampledStructure(
        time=np.zeros(1),
        machine=machine,
        assembled=assembled,
        rates=rates,
        directions=(),
        independent=np.zeros((1, 0)),
    )
    return structure, q


def _along(
    model: Model, path: RigidPath, time: Array, settings: StructureOptions
) -> tuple[SampledStructure, Array]:
    """Return the structure of a machine at times (P,) of a motion, and its coordinates."""
    motion, entry = path.at(time), path_entry(model, path)
    q_start = entry.track(motion.position).q
    state = entry.kinematics(*motion.states, start=q_start)
    assert state.v is not None
    assert state.a is not None
    machine, assembled = _structure_at(model, state.q, settings)
    embedding = entry.embedding(motion.position, start=q_start)
    independent = motion.acceleration
    bias = state.a - np.einsum("nij,nj->ni", embedding, independent)
    rigid, rest = rigid_motion(model), np.zeros_like(state.v)
    structure = SampledStructure(
        time=time,
        machine=machine,
        assembled=assembled,
        rates=rigid.at(state.q, state.v, bias),
        directions=tuple(
            rigid.at(state.q, rest, embedding[..., i]) for i in range(embedding.shape[-1])
        ),
        independent=independent,
    )
    return structure, state.q


def _structure_at(
    model: Model, q: Array, settings: StructureOptions
) -> tuple[MachineStructure, AssembledStructure]:
    """Return the structure of a machine at coordinates (P, n_q).

    Raises:
        InputError: the machine has no elastic data, or the machine file does not state where a mass
            is.
        AssemblyError: a part can move without any deformation.
    """
    machine = machine_structure(model, q, settings)
    if settings.laws is None:
        require_elastic_data(model.mechanism, machine)
    InputError.raise_if_any(mass_problems(machine, model.mechanism.file))
    assembled = assemble(machine.structure)
    if settings.laws is None:
        assembled.require_no_mechanism()
    else:
        require_controlled(assembled, machine)
    return machine, assembled


def _quantities(
    model: Model, structure: SampledStructure, ratios: Callable[[Array], Array] | None
) -> tuple[Sampled, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the interpolated quantities of a structure, and the names of beams and drives."""
    beams, axial = structure.axial()
    drives, forces = _drive_forces(model.mechanism, structure)
    undamped = np.zeros_like(structure.mass)
    sampled = Sampled(
        mass=structure.mass,
        stiffness=structure.stiffness,
        damping=undamped if ratios is None else structure.damping(ratios),
        gyroscopic=structure.gyroscopic,
        inertial=structure.inertial,
        centrifugal=structure.centrifugal,
        weight=structure.weight(gravity_vector(model.mechanism)),
        tool=structure.tool,
        axial=axial,
        drives=forces,
    )
    return sampled, (beams, drives)


def _drive_forces(
    mechanism: Mechanism, structure: SampledStructure
) -> tuple[tuple[str, ...], Array]:
    """Return the names of d elastic drives, and their forces per coordinate (P, d, n)."""
    ratios = {actuator.name: actuator.drives for actuator in mechanism.actuators}
    combined = {item.name for item in structure.machine.structure.combinations}
    names, rows = [], []
    for name, motion, stiffness in structure.assembled.elastic_items:
        if name not in ratios or motion.shape[1] != 1:
            continue
        # Combined coordinates, and those of a rotor, have their ratios already.
        ratio = 1.0 if name in combined else mechanism.value(ratios[name][0][1])
        names.append(name)
        rows.append((-(stiffness @ motion) / ratio)[:, 0])
    if not rows:
        return (), np.zeros((len(structure.time), 0, structure.assembled.size))
    return tuple(names), np.asarray(np.stack(rows, axis=1) @ structure.basis)


def _interpolation_error(structure: SampledStructure, sampled: Sampled) -> float:
    """Return the estimated error of splines through all samples, relative to the largest values.

    Centrifugal forces are compared with the inertial forces of the rigid motion if those are larger.
    Gyroscopic forces per elastic velocity are compared with 2 π times the largest mass divided by the
    duration of the motion, if that is larger.
    """
    time = structure.time
    coarse = TimeCourse(time[::2], sampled.every_second(), _nothing, _nothing)
    inertial_force = np.einsum("pnm,pm->pn", sampled.inertial, structure.independent)
    references = {
        "centrifugal": np.abs(inertial_force).max(initial=0.0),
        "gyroscopic": 2.0 * np.pi / time[-1] * np.abs(sampled.mass).max(initial=0.0),
    }
    largest = 0.0
    for name in INTERPOLATED:
        exact = getattr(sampled, name)[1::2]
        scale = np.abs(getattr(sampled, name)).max(initial=references.get(name, 0.0))
        if scale > 0.0:
            difference = np.abs(coarse.at(name, time[1::2]) - exact).max(initial=0.0)
            largest = max(largest, float(difference / scale))
    return largest / SPLINE_ERROR_RATIO


def _nothing(time: Array) -> Array:
    """Return no values (N, 0)."""
    return np.zeros((len(time), 0))
