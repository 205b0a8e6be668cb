"""Every quantity of random machines of any size, against independent equations in maximal coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, pairwise

import numpy as np
import pytest
from maximal import (
    BLOCKED,
    RATES,
    Link,
    Maximal,
    Motion,
    Pose,
    cross,
    maximal,
    quaternion,
    rotation,
    skew,
)
from random_machines import FAMILIES, Layout, Size, random_size

import tauloop as tl
from tauloop import Model
from tauloop.common.result import Status
from tauloop.compiler.c import Compiled, Evaluator, Interpreted
from tauloop.dynamics.joint_forces import joint_forces
from tauloop.equations.formulations import FORMULATIONS
from tauloop.mechanism.model import PLATFORM_JOINT, Inertia, Mechanism, Rod, SlenderPart

#: Largest error of any quantity over the condition of its state, in natural units: rounding of
#: both.
AGREEMENT = 1e-9
MACHINES, STATES = 300, 10
BY_DAY, STATES_BY_DAY = 12, 2
#: States are at most so badly conditioned, and so far from the reference pose, natural units or
#: rad.
WORST_CONDITION, REACH = 1e3, 0.15
#: A machine is redrawn where this many times the number of states do not give enough of them.
MOST_DRAWN = 3
#: Forward kinematics start this far from the pose that they reach: beyond a fold there is another
#: one.
NEARBY = 0.01
#: Poses are one where no coordinate differs by more, rad or characteristic lengths.
SAME_POSE = 1e-6
#: Steps and weights of the central difference of eighth order, and its steps: that which is changed
#: least by the next smaller one counts, where this is less than a share of the agreement that is
#: asked for.
STEPS = np.array([1, 2, 3, 4, -1, -2, -3, -4])
WEIGHTS = np.array([672, -168, 32, -3, -672, 168, -32, 3]) / 840
SIZES = (1e-2, 2e-3, 4e-4, 8e-5)
ACCURATE = 0.2
#: Number of states of a machine that are differenced; of this number of machines one has its
#: Jacobians compared.
DIFFERENCES, JACOBIANS = 2, 5

#: Wrench of a unit internal load above which a component is open, natural units.
INTERNAL_LOAD = 1e-8

#: The quantities that are compared.
QUANTITIES = (
    "closure",
    "inverse kinematics",
    "forward kinematics",
    "velocities",
    "accelerations",
    "embedding",
    "actuator Jacobian",
    "tool pose",
    "tool twist",
    "tool Jacobian",
    "inverse dynamics",
    "inverse dynamics with a wrench",
    "inverse dynamics by another formulation",
    "forward dynamics",
    "mass matrix",
    "Coriolis forces",
    "gravity",
    "bias",
    "kinetic energy",
    "potential energy",
    "power",
    "regressor",
    "tree forces",
    "rod forces",
    "forces in joints",
    "undetermined forces in joints",
    "preloads",
    "directional derivatives",
    "Jacobians",
)


@dataclass(frozen=True)
class State:
    """A machine in motion: by the maximal coordinates, and what Tauloop is given of it."""

    pose: Pose
    rates: np.ndarray
    accelerations: np.ndarray
    wrench: np.ndarray
    direction: np.ndarray


@dataclass(frozen=True)
class Comparison:
    """A random machine by both sets of equations, at some states.

    Attributes:
        size: its natural units.
        model: Tauloop's equations.
        system: those in maximal coordinates.
        states: motions.
        has_derivatives: whether derivatives are compared too, and another formulation.
        has_jacobians: whether all Jacobians are, whose programs take seconds to build.
    """

    size: Size
    model: Model
    system: Maximal
    states: tuple[State, ...]
    has_derivatives: bool = False
    has_jacobians: bool = False

    @cached_property
    def independent(self) -> list[int]:
        """Rows of the independent rates, in Tauloop's order."""
        names = self.model.topology.velocity_names
        return [self.system.rates.index(names[i]) for i in self.model.assembly.independent]

    @cached_property
    def turns(self) -> np.ndarray:
        """Whether each independent rate turns."""
        return np.array([self.model.topology.angular[i] for i in self.model.assembly.independent])

    @cached_property
    def motors_turn(self) -> np.ndarray:
        """Whether each motor turns."""
        return np.array(
            [self.model.topology.is_rotary(actuator) for actuator in self.model.mechanism.actuators]
        )

    def motion(self, state: State) -> Motion:
        """Return the machine in motion, in maximal coordinates."""
        return self.system.at(
            state.pose, self.system.at(state.pose).embedding(self.independent) @ state.rates
        )

    def q(self, pose: Pose) -> np.ndarray:
        """Return Tauloop's coordinates of a pose; quaternions in the half space of the reference."""
        values, coordinates, reference = [], self.system.coordinates(pose), self.model.assembly.q
        for i, name in enumerate(self.model.topology.coordinate_names):
            joint, _, suffix = name.rpartition(".")
            if suffix in ("qw", "qx", "qy", "qz"):
                first = i - ("qw", "qx", "qy", "qz").index(suffix)
                numbers = quaternion(self.system.ball(pose, joint))
                numbers = numbers * np.sign(numbers @ reference[first : first + 4])
                values.append(numbers[i - first])
            else:
                values.append(coordinates[self.system.rates.index(name)])
        return np.array(values)

    def displaced(self, pose: Pose, step: np.ndarray) -> Pose | None:
        """Return the pose after a displacement of the independent rates; None where it is out of reach."""
        return displaced(self.system, self.independent, pose, step)

    def actuator_forces(self, motion: Motion, forces: np.ndarray) -> np.ndarray:
        """Return the motors' forces that give forces (6 n,) along all motions, with the least sum of squares."""
        G = motion.embedding(self.independent)
        scale = self.size.displacements(self.turns)
        S = (self.system.actuator_weights @ motion.rates.J @ G).T * scale[:, None]
        return np.linalg.pinv(S, rcond=1e-11) @ (scale * (G.T @ forces))

    def actuation(self, state: State) -> float:
        """Return the condition number of the actuators' motion by the independent rates, in natural units."""
        motion = self.motion(state)
        scale = self.size.displacements(self.turns)
        S = (
            self.system.actuator_weights @ motion.rates.J @ motion.embedding(self.independent)
        ).T * scale[:, None]
        sizes = np.linalg.svd(S, compute_uv=False)
        return float(sizes[0] / max(sizes[min(S.shape) - 1], np.finfo(float).tiny))


def displaced(
    system: Maximal, independent: Sequence[int], pose: Pose, step: np.ndarray
) -> Pose | None:
    """Return the pose after a displacement of independent rates; None where it is out of reach."""
    coordinates, targets = system.coordinates(pose), []
    for k, row in enumerate(independent):
        if np.isnan(coordinates[row]):
            joint, _, suffix = system.rates[row].rpartition(".")
            first = k - ("wx", "wy", "wz").index(suffix)
            targets.append(rotation(step[first : first + 3]) @ system.ball(pose, joint))
        else:
            targets.append(float(coordinates[row] + step[k]))
    return system.closed(pose, independent, targets)


def random_comparison(number: int, count: int) -> Comparison:
    """Return the machine of a number at states that are not near a singularity; one that starts there is redrawn."""
    rng = np.random.default_rng(number)
    while True:
        size = random_size(rng)
        machine = FAMILIES[number % len(FAMILIES)](Layout(rng, size))
        system = maximal(machine)
        independent = [system.rates.index(name) for name in machine.platform.independent]
        reference = system.closed(system.start())
        assert reference is not None, "loops close by construction"
        motion = system.at(reference)
        if (
            motion.mobility != len(independent)
            or not motion.condition(independent) < WORST_CONDITION / 3
        ):
            continue
        model = Model(machine, evaluator=Interpreted())
        assert model.assembly.mobility == len(independent)
        if model.assembly.substitute is not None:
            continue
        comparison = Comparison(size, model, system, states=())
        drawn = random_states(rng, size, model, system, reference, MOST_DRAWN * count)
        # forces have no digits left where the actuators hardly move the machine
        regular = (state for state in drawn if comparison.actuation(state) < WORST_CONDITION)
        states = tuple(islice(regular, count))
        if len(states) == count:
            return replace(comparison, states=states)


def random_states(
    rng: np.random.Generator, size: Size, model: Model, system: Maximal, reference: Pose, count: int
) -> Iterator[State]:
    """Yield motions at poses around the reference."""
    topology, assembly = model.topology, model.assembly
    independent = [system.rates.index(topology.velocity_names[i]) for i in assembly.independent]
    unit = size.displacements([topology.angular[i] for i in assembly.independent])
    reach, n = REACH, len(unit)
    while count:
        pose = displaced(
            system, independent, reference, reach * unit * rng.uniform(-1.0, 1.0, size=n)
        )
        if pose is None or not system.at(pose).condition(independent) < WORST_CONDITION:
            reach *= 0.8
            continue
        count -= 1
        yield State(
            pose=pose,
            rates=rng.normal(size=n) * unit / size.time,
            accelerations=rng.normal(size=n) * unit / size.time**2,
            wrench=rng.normal(size=6) * size.forces([False] * 3 + [True] * 3),
            direction=rng.uniform(-1.0, 1.0, size=n) * unit,
        )


class Differences:
    """The largest error of each quantity over the condition of its state, in natural units.

    Attributes:
        worst: by quantity.
    """

    def __init__(self, condition: np.ndarray) -> None:
        """Start with none; condition numbers (N,) of the states."""
        self._condition = condition
        self.worst: dict[str, float] = {}

    def add(
        self,
        quantity: str,
        values: object,
        expected: object,
        unit: object = 1.0,
        *,
        condition: object = 1.0,
    ) -> None:
        """Add values (N, ...) next to those expected; numbers below the natural unit count as it."""
        difference = np.abs(np.asarray(values) - np.asarray(expected)) / unit
        size = np.abs(np.asarray(expected)) / unit
        axes = tuple(range(1, difference.ndim))
        error = difference.max(axis=axes, initial=0.0) / np.maximum(
            1.0, size.max(axis=axes, initial=0.0)
        )
        worst = float((error / self._condition / condition).max())
        assert np.isfinite(worst), quantity
        self.worst[quantity] = max(self.worst.get(quantity, 0.0), worst)


def differences(comparison: Comparison) -> dict[str, float]:
    """Return the largest error over condition of every quantity that a machine has."""
    motions = [comparison.motion(state) for state in comparison.states]
    record = Differences(np.array([motion.condition(comparison.independent) for motion in motions]))
    for compare in (
        _kinematics,
        _tool,
        _dynamics,
        _terms,
        _energies,
        _reactions,
        _joint_forces,
        _redundancy,
        _derivatives,
    ):
        compare(comparison, motions, record)
    return record.worst


def _given(
    comparison: Comparison,
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], dict[str, np.ndarray]]:
    """Return positions, velocities and accelerations (N, n) of the states, and where solutions start."""
    q = np.array([comparison.q(state.pose) for state in comparison.states])
    rates = np.array([state.rates for state in comparison.states])
    accelerations = np.array([state.accelerations for state in comparison.states])
    start = np.tile(comparison.model.assembly.q, (len(q), 1))
    return (comparison.model.platform_position(q), rates, accelerations), {"start": start}


def _accelerations(comparison: Comparison, motions: Sequence[Motion]) -> list[np.ndarray]:
    pairs = zip(comparison.states, motions, strict=True)
    return [
        motion.accelerations(comparison.independent, state.accelerations) for state, motion in pairs
    ]


def _kinematics(comparison: Comparison, motions: Sequence[Motion], record: Differences) -> None:
    model, size, system = comparison.model, comparison.size, comparison.system
    motion, start = _given(comparison)
    topology, functions = model.topology, model.platform
    q = np.array([comparison.q(state.pose) for state in comparison.states])
    rows = [system.rates.index(name) for name in topology.velocity_names]
    coordinate_unit = np.where(topology.is_length, size.length, 1.0)
    velocity_unit, given_unit = (
        size.displacements(topology.angular),
        size.displacements(comparison.turns),
    )
    record.add(
        "closure",
        model.assembly.loops.openings(model.assembly.loops.residuals(q)[0]),
        np.zeros(len(q)),
    )
    state = functions.kinematics(*motion, **start)
    record.add("inverse kinematics", state.q, q, coordinate_unit)
    lengths = np.array(
        [system.actuator_weights @ np.nan_to_num(system.coordinates(m.pose)) for m in motions]
    )
    nearby = [comparison.displaced(s.pose, NEARBY * s.direction) for s in comparison.states]
    followed = [
        x if near is None else model.forward_kinematics(p, comparison.q(near)).q
        for near, p, x in zip(nearby, lengths, q, strict=True)
    ]
    record.add("forward kinematics", followed, q, coordinate_unit)
    record.add(
        "velocities",
        state.v,
        [(m.rates.J @ m.velocity)[rows] for m in motions],
        velocity_unit / size.time,
    )
    pairs = zip(motions, _accelerations(comparison, motions), strict=True)
    rates = [(m.rates.J @ acceleration + m.rates.bias)[rows] for m, acceleration in pairs]
    record.add("accelerations", state.a, rates, velocity_unit / size.time**2)
    embeddings = [m.embedding(comparison.independent) for m in motions]
    G = [m.rates.J[rows] @ embedding for m, embedding in zip(motions, embeddings, strict=True)]
    record.add(
        "embedding", functions.embedding(motion[0], **start), G, velocity_unit[:, None] / given_unit
    )
    J = [
        system.actuator_weights @ m.rates.J @ embedding
        for m, embedding in zip(motions, embeddings, strict=True)
    ]
    motor_unit = size.displacements(comparison.motors_turn)
    jacobians = functions.actuator_jacobian(motion[0], **start)
    record.add("actuator Jacobian", jacobians, J, motor_unit[:, None] / given_unit)


def _tool(comparison: Comparison, motions: Sequence[Motion], record: Differences) -> None:
    size = comparison.size
    (position, velocity, _), start = _given(comparison)
    tool = comparison.model.platform.tool(position, velocity, **start)
    tools = [m.tool() for m in motions]
    record.add("tool pose", tool.place, [p for p, _, _ in tools], size.length)
    record.add("tool pose", tool.rotation, [R for _, R, _ in tools])
    unit = size.displacements([False] * 3 + [True] * 3)
    twists = [J @ m.velocity for (_, _, J), m in zip(tools, motions, strict=True)]
    record.add("tool twist", tool.twist, twists, unit / size.time)
    jacobians = [
        J @ m.embedding(comparison.independent) for (_, _, J), m in zip(tools, motions, strict=True)
    ]
    record.add(
        "tool Jacobian",
        tool.jacobian,
        jacobians,
        unit[:, None] / size.displacements(comparison.turns),
    )


def _needed(comparison: Comparison, motions: Sequence[Motion]) -> list[np.ndarray]:
    """Return the forces (6 n,) that the states need."""
    return [m.forces(a) for m, a in zip(motions, _accelerations(comparison, motions), strict=True)]


def _dynamics(comparison: Comparison, motions: Sequence[Motion], record: Differences) -> None:
    model, size, functions = comparison.model, comparison.size, comparison.model.platform
    motion, start = _given(comparison)
    needed, unit = _needed(comparison, motions), size.forces(comparison.motors_turn)
    forces = np.array(
        [comparison.actuator_forces(m, f) for m, f in zip(motions, needed, strict=True)]
    )
    outcome = functions.inverse_dynamics(*motion, **start)
    record.add("inverse dynamics", outcome.force, forces, unit)
    wrench = np.array([state.wrench for state in comparison.states])
    loads = [m.tool()[2].T @ w for m, w in zip(motions, wrench, strict=True)]
    loaded = [
        comparison.actuator_forces(m, f - w) for m, f, w in zip(motions, needed, loads, strict=True)
    ]
    values = functions.inverse_dynamics(*motion, **start, wrench=wrench).force
    record.add("inverse dynamics with a wrench", values, loaded, unit)
    Y = functions.regressor(*motion, **start)
    record.add("regressor", Y @ model.pi, forces, unit)
    if comparison.has_derivatives and _has_energy(model.mechanism):
        other = FORMULATIONS[1 + len(model.mechanism.bodies) % (len(FORMULATIONS) - 1)]
        formulated = Model(model.mechanism, formulation=other, evaluator=Interpreted()).platform
        values = formulated.inverse_dynamics(*motion, **start).force
        record.add("inverse dynamics by another formulation", values, forces, unit)
    speeds = np.einsum("nij,nj->ni", functions.actuator_jacobian(motion[0], **start), motion[1])
    power = [f @ m.velocity for m, f in zip(motions, needed, strict=True)]
    record.add(
        "power", (outcome.force * speeds).sum(axis=1), power, size.force * size.length / size.time
    )
    if not model.mechanism.rods and model.assembly.mechanism is model.mechanism:
        record.add("tree forces", outcome.tree_force, *_tree_forces(comparison, motions, needed))


def _has_energy(machine: Mechanism) -> bool:
    """Whether the inertia of every rod is a function of the pose; that of a rod without spin is not."""
    return not any(rod.spin == "none" and isinstance(rod.lower, Inertia) for rod in machine.rods)


def _terms(comparison: Comparison, motions: Sequence[Motion], record: Differences) -> None:
    size, functions = comparison.size, comparison.model.platform
    motion, start = _given(comparison)
    position, velocity, _ = motion
    unit, displacement = size.forces(comparison.turns), size.displacements(comparison.turns)
    G = [m.embedding(comparison.independent) for m in motions]
    masses = np.array([g.T @ m.mass_matrix @ g for g, m in zip(G, motions, strict=True)])
    mass_unit = unit[:, None] / displacement * size.time**2
    record.add("mass matrix", functions.mass_matrix(position, **start), masses, mass_unit)
    rest = np.zeros(len(comparison.turns))
    drift = [
        m.mass_matrix @ m.accelerations(comparison.independent, rest) + m.gyroscopic
        for m in motions
    ]
    coriolis = np.array([g.T @ f for g, f in zip(G, drift, strict=True)])
    gravity = np.array([g.T @ m.weight for g, m in zip(G, motions, strict=True)])
    losses = np.array([g.T @ m.losses for g, m in zip(G, motions, strict=True)])
    record.add("Coriolis forces", functions.coriolis(position, velocity, **start), coriolis, unit)
    record.add("gravity", functions.gravity(position, **start), gravity, unit)
    record.add(
        "bias", functions.bias(position, velocity, **start), coriolis + gravity + losses, unit
    )
    rng = np.random.default_rng(0)
    force = rng.normal(size=(len(motions), len(comparison.motors_turn))) * size.forces(
        comparison.motors_turn
    )
    motors = comparison.system.actuator_weights
    pushed = np.array(
        [(motors @ m.rates.J @ g).T @ u for g, m, u in zip(G, motions, force, strict=True)]
    )
    pushed = (pushed - coriolis - gravity - losses) / unit
    accelerations = (
        np.linalg.solve(masses / mass_unit, pushed[..., None])[..., 0] * displacement / size.time**2
    )
    values = functions.ports.rates(
        np.asarray(functions.forward_dynamics(position, velocity, force, **start).a)
    )
    inertial = np.linalg.cond(masses / mass_unit)
    record.add(
        "forward dynamics", values, accelerations, displacement / size.time**2, condition=inertial
    )


def _energies(comparison: Comparison, motions: Sequence[Motion], record: Differences) -> None:
    size, functions = comparison.size, comparison.model.platform
    if not _has_energy(comparison.model.mechanism):
        return
    (position, velocity, _), start = _given(comparison)
    unit = size.force * size.length
    kinetic = functions.kinetic_energy(position, velocity, **start)
    record.add("kinetic energy", kinetic, [m.kinetic_energy for m in motions], unit)
    potential = functions.potential_energy(position, **start)
    expected = np.array([m.potential_energy for m in motions])
    record.add("potential energy", potential - potential[0], expected - expected[0], unit)


def _tree_forces(
    comparison: Comparison, motions: Sequence[Motion], needed: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return forces on all velocities of the tree, and their units; of machines without rods and ends."""
    model, system = comparison.model, comparison.system
    tree = {edge.joint.name for edge in model.topology.tree}
    spanning = replace(system, joints=tuple(link for link in system.joints if link.name in tree))
    joints = sum(len(letters) for link in spanning.links for letters in BLOCKED[link.kind])
    rows = [spanning.rates.index(name) for name in model.topology.velocity_names]
    expected = []
    for m, force in zip(motions, needed, strict=True):
        opened = spanning.at(m.pose)
        square = np.concatenate([opened.constraints.J[:joints], opened.rates.J[rows]])
        expected.append(np.linalg.solve(square.T, force)[joints:])
    return expected, comparison.size.forces(model.topology.angular)


def _reactions(comparison: Comparison, motions: Sequence[Motion], record: Differences) -> None:
    """Compare forces of rods that all constraints together determine."""
    model, system, unit = comparison.model, comparison.system, comparison.size.force
    if model.assembly.dropped or model.assembly.frozen:
        return
    motion, start = _given(comparison)
    outcome = model.platform.inverse_dynamics(*motion, **start)
    accelerations, needed = _accelerations(comparison, motions), _needed(comparison, motions)
    for rod in model.mechanism.rods:
        name = f"{rod.name}: length"
        if name not in outcome.closure_names or not _is_simple(rod):
            continue
        values, expected = outcome.closure_force[:, outcome.closure_names.index(name)].copy(), []
        for k, (m, a, f) in enumerate(zip(motions, accelerations, needed, strict=True)):
            u = comparison.actuator_forces(m, f)
            reactions, null = m.constraint_forces(f - (system.actuator_weights @ m.rates.J).T @ u)
            row, axial = _end_row(system, rod), _own_share(system, m, a, rod)
            is_determined = np.abs(null[row] * system.length).max(initial=0.0) < 1e-9
            values[k] = values[k] if is_determined else 0.0
            expected.append(reactions[row] + axial if is_determined else 0.0)
        record.add("rod forces", values, expected, unit)


def _is_simple(rod: Rod) -> bool:
    """Whether a rod's force along itself follows from the motion of its ends alone."""
    return rod.lower is None if rod.telescope else not isinstance(rod.lower, Inertia)


def _end_row(system: Maximal, rod: Rod) -> int:
    """Return the row of the constraint along a rod at its end B."""
    row = 0
    last = next(bodies for bodies in system.rods if bodies.rod.name == rod.name).links[-1]
    for link in system.links:
        if link is last:
            return row + 2
        row += sum(map(len, BLOCKED[link.kind]))
    raise AssertionError(rod.name)


def _own_share(system: Maximal, motion: Motion, acceleration: np.ndarray, rod: Rod) -> float:
    """Return the axial force at B that moves the mass of a rod: (h/L) (a_A - g) + (J/L^2) (a_B - a_A)."""
    if not isinstance(rod.lower, SlenderPart) or rod.length is None:
        return 0.0
    bodies = next(bodies for bodies in system.rods if bodies.rod.name == rod.name)
    _, h, J = (system.machine.value(x) for x in rod.lower.parameters)
    z, L = motion.pose.R[bodies.lower][:, 2], bodies.length
    a, alpha = acceleration[6 * bodies.lower :][:3], acceleration[6 * bodies.lower + 3 :][:3]
    w = motion.velocity[6 * bodies.lower + 3 :][:3]
    across = L * (cross(alpha, z) + cross(w, cross(w, z)))
    return float(z @ (h / L * (a - motion.gravity) + J / L**2 * across))


def _joint_forces(comparison: Comparison, motions: Sequence[Motion], record: Differences) -> None:
    """Compare forces and moments in all joints and rod ends, in the axes of the base."""
    model, system, size = comparison.model, comparison.system, comparison.size
    motion, start = _given(comparison)
    outcome = model.platform.inverse_dynamics(*motion, **start)
    joints = joint_forces(model, np.arange(len(motions)), outcome)
    unit = size.forces([False] * 3 + [True] * 3)
    internal_unit = size.forces([True] * 6)
    accelerations, needed = _accelerations(comparison, motions), _needed(comparison, motions)
    values, expected, is_missing, is_open = [], [], [], []
    for i, (m, a, f) in enumerate(zip(motions, accelerations, needed, strict=True)):
        u = comparison.actuator_forces(m, f)
        reactions, null = m.constraint_forces(f - (system.actuator_weights @ m.rates.J).T @ u)
        reactions, null = _without_platform_joint(system, reactions, null)
        gears = slice(len(null) - len(system.coupling_weights), len(null))
        on_rates = _rate_forces(m, a, u) + system.coupling_weights.T @ reactions[gears]
        internal_on_rates = system.coupling_weights.T @ null[gears]
        for rows in _joint_rows(system):
            by_constraints, by_rates = rows.maps(m)
            wrench = by_constraints @ reactions[rows.constraints] + by_rates @ on_rates[rows.rates]
            internal = (
                by_constraints @ null[rows.constraints] + by_rates @ internal_on_rates[rows.rates]
            )
            changes = np.abs(internal * (internal_unit / unit)[:, None]).max(axis=1, initial=0.0)
            is_open.append(changes > INTERNAL_LOAD * size.length)
            if rows.name not in joints.names:
                assert rows.name == PLATFORM_JOINT
                assert np.abs(wrench / unit).max() < AGREEMENT * m.condition(comparison.independent)
                is_open.pop()
                continue
            value = joints.wrench_in_base[i, joints.names.index(rows.name)]
            is_missing.append(np.isnan(value))
            values.append(np.where(is_open[-1] | is_missing[-1], 0.0, value))
            expected.append(np.where(is_open[-1] | is_missing[-1], 0.0, wrench))
    shape = (len(motions), -1, 6)
    record.add("forces in joints", np.reshape(values, shape), np.reshape(expected, shape), unit)
    record.add(
        "undetermined forces in joints",
        np.reshape(is_missing, shape).astype(float),
        np.reshape(is_open, shape).astype(float),
    )


def _without_platform_joint(
    system: Maximal, reactions: np.ndarray, null: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return multipliers in which null vectors relieve the joint that gives the platform coordinates."""
    rows = [rows for rows in _joint_rows(system) if rows.name == PLATFORM_JOINT]
    if not rows or not null.size:
        return reactions, null
    A = null[rows[0].constraints]
    inverse = np.linalg.pinv(A, rcond=1e-9) if np.abs(A).max() > 1e-9 else np.zeros(A.T.shape)
    return (
        reactions - null @ (inverse @ reactions[rows[0].constraints]),
        null @ (np.eye(null.shape[1]) - inverse @ A),
    )


@dataclass(frozen=True)
class JointRows:
    """The rows of a joint or rod end in the equations.

    Attributes:
        name: the joint, or the end of a rod.
        link: its joint in maximal coordinates.
        is_near: whether the wrench is that on the near body.
        constraints, rates: rows.
    """

    name: str
    link: Link
    is_near: bool
    constraints: slice
    rates: slice

    def maps(self, motion: Motion) -> tuple[np.ndarray, np.ndarray]:
        """Return the wrenches per unit of the constraints' and of the rates' forces (6, rows).

        They act at the origin of the frame on the body. Where that body is the base, they are the
        opposite of those on the other body.
        """
        frame, other = self.link.far, self.link.near
        if self.is_near:
            frame, other = other, frame
        point = motion.pose.of(frame)[1]
        carrier, sign = (frame, 1.0) if frame.body >= 0 else (other, -1.0)
        origin = motion.pose.of(carrier)[2]
        to_point = sign * np.eye(6)
        to_point[3:, :3] = -sign * skew(point - origin)
        body = slice(6 * carrier.body, 6 * carrier.body + 6)
        return (
            to_point @ motion.constraints.J[self.constraints, body].T,
            to_point @ motion.rates.J[self.rates, body].T,
        )


def _joint_rows(system: Maximal) -> Iterator[JointRows]:
    """Yield the rows of all joints but free ones, and of the ends of rods."""
    ends = {}
    for bodies in system.rods:
        ends[id(bodies.links[0])] = (f"{bodies.rod.name}.start", True)
        ends[id(bodies.links[-1])] = (f"{bodies.rod.name}.end", False)
    row = rate = 0
    for link in system.links:
        constraints = slice(row, row + sum(map(len, BLOCKED[link.kind])))
        rates = slice(rate, rate + (len(RATES[link.kind]) if link.name else 0))
        row, rate = constraints.stop, rates.stop
        if id(link) in ends:
            name, is_near = ends[id(link)]
            yield JointRows(name, link, is_near, constraints, rates)
        elif link.kind != "free" and any(link is joint for joint in system.joints):
            yield JointRows(link.name, link, False, constraints, rates)


def _rate_forces(motion: Motion, acceleration: np.ndarray, forces: np.ndarray) -> np.ndarray:
    """Return the forces (k,) that motors, losses and rotors exert on the rates of joints."""
    system = motion.system
    total = system.actuator_weights.T @ forces
    coordinates = np.nan_to_num(system.coordinates(motion.pose))
    for law in system.laws:
        row = law.weights @ motion.rates.J
        force = law.stiffness * (law.weights @ coordinates - law.rest) if law.stiffness else 0.0
        if law.friction is not None:
            force += system.friction(law.friction, float(row @ motion.velocity))
        force += law.inertia * float(row @ acceleration + law.weights @ motion.rates.bias)
        total = total - force * law.weights
    return total


def _redundancy(comparison: Comparison, motions: Sequence[Motion], record: Differences) -> None:
    model = comparison.model
    if not model.assembly.is_redundant:
        return
    q = np.array([comparison.q(state.pose) for state in comparison.states])
    N = model.hybrid.preload_directions(model.actuators.ports.at(q), start=q)
    scale, projectors = comparison.size.displacements(comparison.turns), []
    for m in motions:
        S = (
            comparison.system.actuator_weights @ m.rates.J @ m.embedding(comparison.independent)
        ).T * scale[:, None]
        projectors.append(np.eye(S.shape[1]) - np.linalg.pinv(S, rcond=1e-11) @ S)
    record.add("preloads", N @ N.swapaxes(-1, -2), projectors)


def _derivatives(comparison: Comparison, motions: Sequence[Motion], record: Differences) -> None:
    """Compare derivatives of inverse dynamics along a direction with differences of the independent equations."""
    if not comparison.has_derivatives:
        return
    size, functions = comparison.size, comparison.model.platform
    motion, start = _given(comparison)
    pairs = list(zip(motions, comparison.states, strict=True))[:DIFFERENCES]
    expected = [_difference(comparison, m, state) for m, state in pairs]
    expected += [None] * (len(motions) - len(pairs))
    smooth = [k for k, difference in enumerate(expected) if difference is not None]
    if not smooth:
        return
    unit, direction = (
        size.forces(comparison.motors_turn),
        np.array([state.direction for state in comparison.states]),
    )
    steps = {
        name: direction / size.time**power
        for power, name in enumerate(("position", "velocity", "acceleration"))
    }
    factors = np.ones((len(motions), len(unit)))
    along = functions.products(
        "inverse_dynamics", *motion, factors=factors, directions=steps, **start
    ).along
    expected = [
        along[k] if difference is None else difference for k, difference in enumerate(expected)
    ]
    record.add("directional derivatives", along, expected, unit)
    if comparison.has_jacobians:
        outcome = functions.derivatives("inverse_dynamics", *motion, **start)
        pairs = ((outcome.jacobian("force", name), step) for name, step in steps.items())
        values = sum(np.einsum("nij,nj->ni", jacobian, step) for jacobian, step in pairs)
        record.add("Jacobians", values, along, unit)


def _difference(comparison: Comparison, motion: Motion, state: State) -> np.ndarray | None:
    """Return the derivative of the motors' forces along a direction.

    None across a jump of dry friction, and where rounding leaves the difference less accurate than
    is asked for.
    """
    unit = comparison.size.forces(comparison.motors_turn)
    slopes = [slope for h in SIZES if (slope := _slope(comparison, state, h)) is not None]
    changes = [np.abs((first - second) / unit).max() for first, second in pairwise(slopes)]
    if not changes:
        return None
    best = int(np.argmin(changes))
    size = max(1.0, float(np.abs(slopes[1 + best] / unit).max()))
    is_accurate = (
        changes[best] < ACCURATE * AGREEMENT * motion.condition(comparison.independent) * size
    )
    return slopes[1 + best] if is_accurate else None


def _slope(comparison: Comparison, state: State, h: float) -> np.ndarray | None:
    """Return the central difference with a step; None across a jump of dry friction, or out of reach."""
    size, system, signs = comparison.size, comparison.system, []
    total = np.zeros(len(comparison.motors_turn))
    for step, weight in zip(h * STEPS, WEIGHTS / h, strict=True):
        pose = comparison.displaced(state.pose, step * state.direction)
        if pose is None:
            return None
        moved = replace(
            state,
            pose=pose,
            rates=state.rates + step * state.direction / size.time,
            accelerations=state.accelerations + step * state.direction / size.time**2,
        )
        there = comparison.motion(moved)
        signs.append(
            [
                np.sign(law.weights @ there.rates.J @ there.velocity)
                for law in system.laws
                if law.friction
            ]
        )
        acceleration = there.accelerations(comparison.independent, moved.accelerations)
        total += weight * comparison.actuator_forces(there, there.forces(acceleration))
    return total if all(row == signs[0] for row in signs) else None


def require_agreement(worst: dict[str, float], number: int) -> None:
    assert {quantity: error for quantity, error in worst.items() if not error < AGREEMENT} == {}, (
        f"machine {number}"
    )


@pytest.mark.parametrize("number", range(BY_DAY))
def test_one_machine_of_each_family_agrees(number: int) -> None:
    require_agreement(differences(random_comparison(number, STATES_BY_DAY)), number)


@pytest.mark.nightly
@pytest.mark.parametrize("group", range(MACHINES // len(FAMILIES)))
def test_random_machines_agree_in_all_quantities(group: int) -> None:
    compared: set[str] = set()
    for number in range(len(FAMILIES) * (group + 1), len(FAMILIES) * (group + 2)):
        comparison = random_comparison(number, STATES)
        assert len(comparison.states) == STATES
        whole = replace(comparison, has_derivatives=True, has_jacobians=number % JACOBIANS == 0)
        worst = differences(whole)
        require_agreement(worst, number)
        compared |= set(worst)
    assert compared == set(QUANTITIES)


@pytest.mark.parametrize(
    ("change", "quantity"),
    [
        (lambda m, c, I: (m, c, 1.000001 * I), "inverse dynamics"),
        (lambda m, c, I: (m, c + 1e-6 * m * np.cbrt(np.trace(I) / m), I), "gravity"),
        (lambda m, c, I: (1.000001 * m, c, I), "kinetic energy"),
    ],
)
def test_a_millionth_of_an_inertia_is_seen(
    change: Callable[..., tuple[object, ...]], quantity: str
) -> None:
    comparison = random_comparison(0, STATES_BY_DAY)
    changed = tuple(change(*masses) for masses in comparison.system.inertias)
    other = replace(comparison, system=replace(comparison.system, inertias=changed))
    assert differences(other)[quantity] > AGREEMENT


@pytest.mark.parametrize("evaluator", [Interpreted(), Compiled()], ids=["interpreted", "compiled"])
def test_a_pose_of_another_assembly_mode_is_reported(evaluator: Evaluator) -> None:
    """The straight line of actuator positions leaves the workspace of this machine of four arms on a plate."""
    comparison = random_comparison(80, STATES)
    model = Model(comparison.model.mechanism, evaluator=evaluator)
    poses = np.array([comparison.q(state.pose) for state in comparison.states])
    positions = model.actuator_position(poses)
    state = model.forward_kinematics(positions)
    is_other = model.assembly.loops.gaps(state.q, poses) > SAME_POSE
    assert 0 < is_other.sum() < len(poses)
    assert state.has_opened is not None
    assert state.has_opened[is_other].all()
    assert any("stay open" in item.name and not item.is_good for item in state.diagnostics)
    for position in positions[is_other]:
        assert tl.forward_kinematics(model, position).status is Status.DOUBTFUL
    regular = next(
        position for position, other in zip(positions, is_other, strict=True) if not other
    )
    assert tl.forward_kinematics(model, regular).status is Status.OK
