"""Poses at which the elasticity of a machine is calculated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from tauloop.common.errors import InputError, Problem
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.machine.structure import MachineStructure
from tauloop.equations.ports import checked
from tauloop.kinematics.named_kinematics import forward_kinematics, inverse_kinematics
from tauloop.logs import samples
from tauloop.logs.matching import channel_problems
from tauloop.logs.recording import read_recorded
from tauloop.mechanism.elastic.inertia import ElementMass
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model

#: Directions of a twist or wrench.
DIRECTIONS = ("x", "y", "z", "rx", "ry", "rz")
#: Units of a twist in these directions.
TWIST_UNITS = ("m",) * 3 + ("rad",) * 3


@dataclass(frozen=True, slots=True, eq=False)
class CoordinateRows:
    """Poses of a machine that are given by their coordinates.

    Attributes:
        q: (N, n_q) coordinates.
    """

    q: Array


#: Poses of the platform: a single pose as a mapping or text, several poses as rows of numbers; None
#: for the reference pose.
PoseInput = str | Mapping[str, str | float] | object | None

#: Maximum number of poses of a motion that are analyzed.
MAX_MOTION_POSES = 50


def machine_coordinates(
    model: Model,
    poses: PoseInput,
    actuators: object | None = None,
    motion: str | Path | None = None,
) -> tuple[Array, tuple[Diagnostic, ...]]:
    """Return the coordinates (N, n_q) of a machine, and diagnostics of its poses.

    The diagnostics check joint limits, and for a pose given by names, whether it is reached from
    the reference pose.

    Args:
        model: the machine.
        poses: None for the reference pose; a text or mapping such as ``{"x": "10 mm"}`` for a
            single pose; rows (N, n) of the independent platform coordinates, SI; or
            `CoordinateRows`.
        actuators: positions of the actuators (see `forward_kinematics`), instead of poses.
        motion: table with positions of the platform, instead of poses; see `motion_coordinates`.

    Raises:
        InputError: positions are given in two ways, or names, shapes or values are wrong.
        PoseError: a pose is out of reach or singular.
    """
    if motion is not None:
        for name, value in (("pose", poses), ("actuators", actuators)):
            if value is not None:
                what = "is given in addition to a motion"
                raise InputError.of(name, what, f"give either `{name}` or `motion`")
        q = motion_coordinates(model, motion)
        return q, model.limits.diagnostics(q)
    if actuators is not None:
        if poses is not None:
            what = "is given in addition to poses of the platform"
            raise InputError.of(
                "actuators", what, "give positions of the actuators or the platform"
            )
        kinematics = forward_kinematics(model, actuators)
        return np.asarray(kinematics.q[:1]), kinematics.diagnostics
    if isinstance(poses, CoordinateRows):
        return poses.q, ()
    if isinstance(poses, str | Mapping):
        kinematics = inverse_kinematics(model, poses)
        return np.asarray(kinematics.q[:1]), kinematics.diagnostics
    q = model.assembly.q if poses is None else _row_coordinates(model, poses)
    q = np.atleast_2d(np.asarray(q, dtype=float))
    return q, model.limits.diagnostics(q)


def motion_coordinates(model: Model, path: str | Path) -> Array:
    """Return the coordinates (N, n_q) at up to `MAX_MOTION_POSES` rows of a motion's table.

    Raises:
        InputError: the table has no positions of the platform.
        PoseError: a row is out of reach.
    """
    log = read_recorded(path)
    port = model.platform.ports.position
    channels = {"position": dict(zip(port.columns, port.units, strict=True))}
    InputError.raise_if_any(channel_problems(log, channels, str(path)))
    rows = samples(log, "position", port.columns)
    q = np.asarray(model.platform.track(rows).q)
    count = min(len(q), MAX_MOTION_POSES)
    return q[np.unique(np.linspace(0, len(q) - 1, count).round().astype(int))]


def _row_coordinates(model: Model, poses: object) -> Array:
    """Return the coordinates (N, n_q) at poses (N, n) of the platform."""
    port = replace(model.platform.ports.position, name="poses")
    rows = checked({"poses": port}, {"poses": poses})[0]["poses"]
    if not len(rows):
        raise InputError.of("poses", "there are no poses", "give at least one")
    return np.asarray(model.inverse_kinematics(rows).q)


def require_elastic_data(
    mechanism: Mechanism, machine: MachineStructure, *, are_motors_held: bool = True
) -> None:
    """Check that a machine has at least one elastic part.

    Args:
        mechanism: the machine.
        machine: its structure.
        are_motors_held: whether motors are held, so that the stiffness of their drives counts.

    Raises:
        InputError: no part is elastic.
    """
    if machine.elastic_names:
        return
    what = "no rod, body, joint or actuator has elastic data: the machine is rigid"
    if not are_motors_held:
        what = "no rod, body or joint has elastic data: with free motors the machine is rigid"
    remedy = (
        "give rods a section such as `tube: {outer: 50 mm, wall: 3 mm, material: aluminium}`, "
        "bodies `beams`, joints and actuators a `stiffness`"
    )
    raise InputError.of("machine", what, remedy, file=mechanism.file)


def rigid_parts(mechanism: Mechanism, machine: MachineStructure) -> tuple[str, ...]:
    """Return the names of the rods, bodies, joints and actuators that are rigid."""
    elastic = set(machine.elastic_names)
    names = [rod.name for rod in mechanism.rods]
    names += [actuator.name for actuator in mechanism.actuators]
    names += [joint.name for joint in mechanism.joints if joint.name != "platform"]
    reduced = {item.body for item in mechanism.structures}
    names += [body.name for body in mechanism.bodies if body.name not in reduced]
    return tuple(name for name in names if name not in elastic)


def gravity_vector(mechanism: Mechanism) -> Array:
    """Return the acceleration (3,) of gravity in the axes of the base, m/s^2."""
    return np.array([mechanism.value(component) for component in mechanism.gravity])


def mass_problems(machine: MachineStructure, file: str) -> Iterator[Problem]:
    """Yield a problem for each mass whose distribution the file does not define."""
    for mass in machine.masses:
        if not mass.is_placed:
            yield _mass_problem(mass, file)
    for name in machine.massless:
        what = "this finite-element model has no mass matrix"
        yield Problem(name, what, "also export the mass matrix M of the model", file=file)


def _mass_problem(mass: ElementMass, file: str) -> Problem:
    """Return the problem of a stated mass whose distribution the file does not state."""
    located = mass.section + mass.fittings
    difference = mass.mass - located
    what = (
        f"states {mass.mass:.4g} kg, but its sections and fittings have {located:.4g} kg; "
        f"the frequencies depend on the location of the other {difference:.4g} kg"
    )
    remedy = (
        "give `fittings: {start: ..., end: ...}` with the masses at its ends, or "
        "`distributed: yes` if the mass is spread along it; or omit the mass to use the mass of "
        "the sections"
    )
    return Problem(mass.element, what, remedy, file=file)
