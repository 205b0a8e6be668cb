"""The part of a machine that an actuator map covers: joints, motors and elements between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import final

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.equations.assembly.freedoms.locks import DEFAULT_LOCKS, Locks
from tauloop.equations.ports import (
    PLATFORM,
    EntryPorts,
    Port,
    coordinate_units,
    entry_ports,
    text_names,
    velocity_units,
)
from tauloop.equations.topology import Topology
from tauloop.mechanism.model import BASE, Mechanism
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model.model import MachineSource, Model, modeled

#: A motor does not move with a degree of freedom if the dimensionless ratio of their velocities is
#: below this fraction of the largest ratio.
COUPLING_TOLERANCE = 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MappedJoints:
    """Named joints as the independent coordinates of a model, with an equal number of motors.

    Attributes:
        model: the machine with these joints and their motors; all other degrees of freedom are
            locked.
        joints: names of the joints' coordinates, in the order of the map.
        velocities: indices of the joints' velocities.
        carried: bodies between the base and the last joint that move only with the joints.
    """

    model: Model
    joints: tuple[str, ...]
    velocities: tuple[int, ...]
    carried: frozenset[str]

    @property
    def ports(self) -> EntryPorts:
        """Ports of the joints' motion, in the order of the map."""
        topology, indices = self.model.topology, self.velocities
        coordinates = [topology.q_of_v[i] for i in indices]
        position = coordinate_units(topology, coordinates)
        rates = velocity_units(topology, indices)
        return replace(
            entry_ports(self.model.assembly, PLATFORM),
            position=Port(name="position", columns=self.joints, units=position),
            velocity=Port(name="velocity", columns=self.joints, units=rates),
            q=tuple(coordinates),
            v=self.velocities,
            to_q=np.eye(len(indices)),
            to_v=np.eye(len(indices)),
            offset=np.zeros(len(indices)),
        )


def mapped_joints(machine: MachineSource, joints: Iterable[str] | str) -> MappedJoints:
    """Return the part of a machine that moves with named joints.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine. The map is valid in
            the working mode and the assembly mode of the reference pose.
        joints: names of scalar joint coordinates; all independent ones if empty.

    Raises:
        InputError: the names do not exist or are not independent, the number of motors differs from
            the number of joints, or motors also move with other coordinates.
        AssemblyError: the machine cannot be assembled as described.
    """
    whole = modeled(machine)
    names = text_names(joints, "joints") or whole.assembly.independent_names
    _require_scalars(whole.topology, names)
    model = whole if set(names) == set(whole.assembly.independent_names) else None
    if model is None:
        model = _with_independent(whole, names)
    model = _without_other_freedoms(model, names)
    _require_as_many_motors(model, names)
    indices = tuple(model.topology.velocity_names.index(name) for name in names)
    locked = {model.topology.velocity_names[i] for i in model.assembly.locked}
    return MappedJoints(
        model=model,
        joints=names,
        velocities=indices,
        carried=_carried_bodies(model.mechanism, {*names, *locked}),
    )


def _require_scalars(topology: Topology, names: Sequence[str]) -> None:
    """Raise an error for names that are not scalar coordinates, and for repeated names."""
    scalars = [
        name
        for name, column in zip(topology.velocity_names, topology.q_of_v, strict=True)
        if column >= 0
    ]
    problems = Problems(unknown_names(names, scalars, "{!r} is not a joint coordinate", "joints"))
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            problems.add("joints", f"names {name} {names.count(name)} times", "name it once")
    InputError.raise_if_any(problems)


def _with_independent(whole: Model, names: tuple[str, ...]) -> Model:
    """Return the machine with named joints as independent coordinates, at the same pose."""
    mechanism = whole.mechanism
    others = _remaining(whole, names)
    platform = replace(mechanism.platform, independent=(*names, *others))
    model = _modelled(whole, replace(mechanism, platform=platform), _locked_names(whole))
    missing = [name for name in names if name not in model.assembly.independent_names]
    if missing:
        chosen = ", ".join(model.assembly.independent_names)
        what = f"{', '.join(missing)} depends on the other freedoms; independent are {chosen}"
        raise InputError.of("joints", what, "name joints that can move independently")
    return model


def _remaining(whole: Model, names: tuple[str, ...]) -> list[str]:
    """Return the machine's independent coordinates that stay independent of the named joints.

    Each joint replaces the coordinate that it depends on most.

    Raises:
        InputError: a joint depends on the joints named before it.
    """
    assembly, topology = whole.assembly, whole.topology
    G = whole.platform.embedding(whole.platform_position(assembly.q))
    scale = assembly.loops.velocity_scale
    rows = G[[topology.velocity_names.index(name) for name in names]]
    rows = rows * scale[list(assembly.independent)]
    for i in range(len(names)):
        column = int(np.abs(rows[i]).argmax())
        if not abs(rows[i, column]) > COUPLING_TOLERANCE:
            what = f"{names[i]} depends on {', '.join(names[:i]) or 'no freedom'}"
            raise InputError.of("joints", what, "name joints that can move independently")
        rows[i + 1 :] -= np.outer(rows[i + 1 :, column] / rows[i, column], rows[i])
        rows[i + 1 :, column] = 0.0
        rows[i, column] = np.nan
    is_replaced = np.isnan(rows).any(axis=0)
    return [
        name
        for name, replaced in zip(assembly.independent_names, is_replaced, strict=True)
        if not replaced
    ]


def _without_other_freedoms(model: Model, names: tuple[str, ...]) -> Model:
    """Return the model with the other freedoms locked, and without motors that do not move then.

    Raises:
        InputError: a motor moves with named joints and with other freedoms.
    """
    assembly = model.assembly
    others = [name for name in assembly.independent_names if name not in names]
    moves = _moved_actuators(model)
    columns = [assembly.independent_names.index(name) for name in names]
    with_joints = np.asarray(moves[:, columns].any(axis=1))
    problems = Problems()
    for i in np.flatnonzero(with_joints):
        further = [name for name in others if moves[i, assembly.independent_names.index(name)]]
        if further:
            motor = model.mechanism.actuators[i].name
            what = f"{motor} moves with the named joints and with {', '.join(further)}"
            problems.add(
                "joints", what, f"name all of these: --joints {','.join([*names, *further])}"
            )
    InputError.raise_if_any(problems)
    if not others and with_joints.all():
        return model
    actuators = [
        actuator
        for actuator, is_moved in zip(model.mechanism.actuators, with_joints, strict=True)
        if is_moved
    ]
    mechanism = replace(model.mechanism, actuators=tuple(actuators))
    return _modelled(model, mechanism, (*_locked_names(model), *others))


def _moved_actuators(model: Model) -> np.ndarray:
    """Return whether each actuator moves with each independent velocity (n_u, m) in some state."""
    assembly = model.assembly
    J = model.platform.actuator_jacobian(model.platform_position(assembly.states))
    scale = assembly.loops.velocity_scale[list(assembly.independent)]
    size = np.abs(J * scale).max(axis=0)
    largest = size.max(axis=1, keepdims=True, initial=0.0)
    return np.asarray(size > COUPLING_TOLERANCE * np.maximum(largest, 1e-300))


def _require_as_many_motors(model: Model, names: tuple[str, ...]) -> None:
    """Raise an error if the numbers of motors and joints differ or a freedom is passive."""
    motors = [actuator.name for actuator in model.mechanism.actuators]
    if len(motors) == len(names) and not model.assembly.passive:
        return
    move = "moves" if len(motors) == 1 else "move"
    what = f"{counted(len(motors), 'motor')} ({', '.join(motors) or 'none'}) {move} "
    what += f"{counted(len(names), 'joint')} ({', '.join(names)})"
    remedy = "name as many joints as motors that move them; a map both ways needs equal numbers"
    if len(motors) == len(names):
        what += f", and do not move {', '.join(model.assembly.passive_names)}"
        remedy = "name only joints that motors move"
    raise InputError.of("joints", what, remedy)


def _locked_names(model: Model) -> tuple[str, ...]:
    """Return the names of the locked velocities, except spins."""
    topology = model.topology
    return tuple(
        topology.velocity_names[i] for i in model.assembly.locked if topology.q_of_v[i] >= 0
    )


def _modelled(model: Model, mechanism: Mechanism, locked: tuple[str, ...]) -> Model:
    """Return the model of a changed mechanism at the pose of another model."""
    changed = Model(
        mechanism,
        model.free,
        formulation=model.formulation,
        evaluator=model.given_evaluator,
        locks=Locks(names=locked) if locked else DEFAULT_LOCKS,
    )
    old = dict(zip(model.topology.coordinate_names, model.assembly.q, strict=True))
    names = changed.topology.coordinate_names
    if not set(names) <= set(old):
        return changed
    q = np.array([old[name] for name in names])
    return changed if np.array_equal(q, changed.assembly.q) else changed.at(q)


def _carried_bodies(mechanism: Mechanism, moving: set[str]) -> frozenset[str]:
    """Return the bodies that joints with these velocities, and fixed joints, connect to the base."""
    connected = {BASE}
    joints = [joint for joint in mechanism.joints if set(joint.velocity_names) <= moving]
    while True:
        reached = {
            body for joint in joints if connected & set(joint.bodies) for body in joint.bodies
        }
        if reached <= connected:
            return frozenset(connected)
        connected |= reached
