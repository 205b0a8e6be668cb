"""A phase of a cable simulation, in which no inelastic cable changes between slack and taut."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.compiler.functions.extended import impact_program, multiplier_program
from tauloop.compiler.functions.tensions import multiplier_rows
from tauloop.compiler.program import Program
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.assembly.freedoms.locks import Locks
from tauloop.equations.assembly.loops import length_on_drum, nominal
from tauloop.equations.tree import symbolic_motion
from tauloop.equations.values import BatchFunction
from tauloop.integrate.events import Event
from tauloop.model import Model
from tauloop.simulation.cables.machines import WOUND_SUFFIX, CableMachine
from tauloop.simulation.forces import ForceLaw, Wrench

#: Largest difference between locked coordinates of the machine and of its equivalent, in
#: characteristic lengths or rad.
LOCK_TOLERANCE = 1e-9
#: Function from time to the released lengths of the elastic cables (k,) and their rates (k,).
Lengths = Callable[[float], tuple[np.ndarray, np.ndarray]]


class CablePhase:
    """The equivalent machine of a phase, with its forces, tensions and events."""

    def __init__(
        self,
        original: Model,
        machine: CableMachine,
        law: ForceLaw | None,
        lengths: Lengths,
        held: Mapping[str, float],
        wrench: Wrench | None,
    ) -> None:
        """Assemble the machine.

        Args:
            original: the cable machine.
            machine: the equivalent machine in this phase.
            law: forces of winches and other actuators of the original; None without forces.
            lengths: released lengths of elastic cables whose winches have no coordinate.
            held: lengths of inelastic cables with locked winches, by name.
            wrench: wrench at the tool; None for no wrench.

        Raises:
            InputError: a locked coordinate differs between the two machines.
            AssemblyError: the machine does not assemble, or a cable tension is not determined.
        """
        locks = Locks(
            names=tuple(original.topology.velocity_names[i] for i in original.assembly.locked)
        )
        self.machine = machine
        self.model = Model(machine.mechanism, evaluator=original.evaluator, locks=locks)
        _require_equal_locks(original, self.model, locks)
        self._original = original
        self._law = law
        self._wrench = wrench
        self._lengths = lengths
        self._held = held
        bounds, mechanism = original.mechanism.cables, original.mechanism
        coefficients = [
            (bounds[name].stiffness, bounds[name].damping) for name in machine.stretched
        ]
        self._stiffness = np.array(
            [mechanism.value(k) if k is not None else 0.0 for k, _ in coefficients]
        )
        self._damping = np.array(
            [mechanism.value(c) if c is not None else 0.0 for _, c in coefficients]
        )
        names, velocities = self.model.topology.coordinate_names, self.model.topology.velocity_names
        self._q = [names.index(name) for name in machine.stretched]
        self._v = [velocities.index(name) for name in machine.stretched]
        self._wound_q, self._wound_v = [], []
        for name in machine.stretched:
            wound = name + WOUND_SUFFIX
            self._wound_q.append(names.index(wound) if wound in names else -1)
            self._wound_v.append(velocities.index(wound) if wound in velocities else -1)
        all_names = [actuator.name for actuator in mechanism.actuators]
        remaining = [a.name for a in machine.mechanism.actuators if a.name in all_names]
        self._original_actuators = [all_names.index(name) for name in remaining]
        ratios = {a.name: mechanism.value(a.drives[0][1]) for a in mechanism.actuators}
        self._bare = {remaining.index(name): ratios[name] for name in machine.bare}
        self._balanced = _balanced(self.model.assembly, machine.taut)
        self._rows = multiplier_rows(self._balanced, machine.taut)
        self._spans = _spans(original, self.model)

    def start(
        self, q: Mapping[str, float], v: Mapping[str, float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the coordinates and velocities of this phase's machine as arrays.

        Values that are not given by name follow from the distances between cable ends. Winches have
        the same speed.
        """
        topology = self.model.topology
        known_q = np.array([[q.get(name, 0.0) for name in topology.coordinate_names]])
        known_v = np.array([[v.get(name, 0.0) for name in topology.velocity_names]])
        spans = self.spans(known_q, known_v)
        lengths, _ = self._lengths(0.0)
        wound = {
            f"{name}{WOUND_SUFFIX}": float(x)
            for name, x in zip(self.machine.stretched, lengths, strict=True)
        }
        known = {name: float(span[0]) for name, (span, _) in spans.items()} | wound | dict(q)
        rates = {name: float(rate[0]) for name, (_, rate) in spans.items()} | dict(v)
        rates = {f"{name}{WOUND_SUFFIX}": rates[name] for name in self.machine.stretched} | rates
        return (
            np.array([known[name] for name in topology.coordinate_names]),
            np.array([rates.get(name, 0.0) for name in topology.velocity_names]),
        )

    def spans(self, q: np.ndarray, v: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return the end distances of all cables (N,), m, and their time derivatives, by name."""
        distance, rate = self._spans([q, v], len(q))
        return dict(
            zip(self._original.mechanism.cables, zip(distance.T, rate.T, strict=True), strict=True)
        )

    def described(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coordinates (N, n_q) and velocities (N, n_v) of the original cable machine.

        If a cable has no coordinate in this phase, its value is the distance between its ends.
        """
        original, topology = self._original.topology, self.model.topology
        coordinates = dict(zip(topology.coordinate_names, q.T, strict=True))
        velocities = dict(zip(topology.velocity_names, v.T, strict=True))
        for name, (distance, rate) in self.spans(q, v).items():
            coordinates.setdefault(name, distance)
            velocities.setdefault(name, rate)
        return (
            np.stack([coordinates[name] for name in original.coordinate_names], axis=1),
            np.stack([velocities[name] for name in original.velocity_names], axis=1),
        )

    def pull(self, time: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return k x + c x' of the elastic cables (N, k), N, which is the tension if positive."""
        samples = [self._lengths(t) for t in time]
        length, rate = (np.array(column) for column in zip(*samples, strict=True))
        for k, (i, j) in enumerate(zip(self._wound_q, self._wound_v, strict=True)):
            if i >= 0:
                length[:, k], rate[:, k] = q[:, i], v[:, j]
        return np.asarray(
            self._stiffness * (q[:, self._q] - length) + self._damping * (v[:, self._v] - rate)
        )

    def forces(
        self, time: np.ndarray, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the actuator forces of this phase (N, n_u), and the pulls of its bare winches.

        Bare winches are those of `CableMachine.bare`. A pull may be negative. The force of the
        winch is then zero.
        """
        original_forces = np.zeros((len(time), len(self._original.mechanism.actuators)))
        if self._law is not None:
            samples = zip(time, *self.described(q, v), strict=True)
            original_forces = np.array([self._law.force(*sample) for sample in samples]).reshape(
                original_forces.shape
            )
        own = original_forces[:, self._original_actuators]
        bare = np.zeros((len(time), len(self._bare)))
        for k, (i, ratio) in enumerate(self._bare.items()):
            bare[:, k] = -ratio * own[:, i]
            own[:, i] = -np.maximum(bare[:, k], 0.0) / ratio
        return np.concatenate([own, -np.maximum(self.pull(time, q, v), 0.0)], axis=1), bare

    def tensions(self, time: np.ndarray, q: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
        """Return cable tensions (N,), N, by name; negative if a taut inelastic cable would push."""
        force, bare = self.forces(time, q, v)
        pulls = dict(
            zip(self.machine.stretched, np.maximum(self.pull(time, q, v), 0.0).T, strict=True)
        )
        pulls |= dict(zip(self.machine.bare.values(), np.maximum(bare, 0.0).T, strict=True))
        pulls |= {name: np.zeros(len(time)) for name in self.machine.slack}
        if self.machine.taut:
            inputs = {"q": q, "v": v, "force": np.ascontiguousarray(force)}
            if self._wrench is not None:
                inputs["wrench"] = np.array([_wrench_at(self._wrench, t) for t in time])
            outputs, _ = self._multipliers.run(inputs, len(time))
            pulls |= {
                n: -outputs["multipliers"][:, i]
                for n, i in zip(self.machine.taut, self._rows, strict=True)
            }
        return pulls

    def unpulled(
        self, q: Mapping[str, float], v: Mapping[str, float], time: float = 0.0
    ) -> list[str]:
        """Return the names of cables without tension in a state at a time (s).

        Only elastic cables and the cables of bare winches are considered.
        """
        at_q, at_v = (row[None] for row in self.start(q, v))
        times = np.array([time])
        pull, (_, bare) = self.pull(times, at_q, at_v), self.forces(times, at_q, at_v)
        names = (*self.machine.stretched, *self.machine.bare.values())
        return [
            name
            for name, value in zip(names, np.concatenate([pull[0], bare[0]]), strict=True)
            if value < 0.0
        ]

    @cached_property
    def _multipliers(self) -> Program:
        return multiplier_program(
            self._balanced, self.model.formulation, with_wrench=self._wrench is not None
        )

    @cached_property
    def _impact(self) -> Program:
        return impact_program(self._balanced, self.model.formulation)

    def impact(
        self, name: str, restitution: float, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, dict[str, float]]:
        """Return the velocities (n_v,) after a cable becomes taut, and the impulses of taut cables.

        The impulses are in N s, by name.

        Args:
            name: name of the cable that becomes taut, an inelastic cable of this phase.
            restitution: coefficient of restitution of this cable.
            q, v: coordinates (n_q,) and velocities (n_v,) before the impact.
        """
        restitutions = np.zeros(len(self._balanced.rows))
        restitutions[self._rows[self.machine.taut.index(name)]] = restitution
        inputs = {"q": q[None], "v": v[None], "restitution": restitutions[None]}
        outputs, _ = self._impact.run(inputs, 1)
        impulses = {
            n: -float(outputs["impulse"][0, i])
            for n, i in zip(self.machine.taut, self._rows, strict=True)
        }
        return outputs["v_after"][0], impulses

    def gap(self, name: str, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the distance of a cable's ends minus its length (N,), m, and the time derivative.

        The difference is negative for a slack cable.
        """
        topology = self.model.topology
        length = self._original.mechanism.rod(name).length
        span, rate = self.spans(q, v)[name]
        if name in topology.coordinate_names:
            released = q[:, topology.coordinate_names.index(name)]
            released_rate = v[:, topology.velocity_names.index(name)]
            return span - released, rate - released_rate
        if length is None:
            return span - self._held[name], rate
        return span - self._original.mechanism.value(length), rate

    def watched(self, events: Sequence[Event], offset: float) -> tuple[Event, ...]:
        """Return events of the cable machine as events of this phase, with their index as name."""

        def in_phase(event: Event) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
            return lambda time, q, v: event.function(time + offset, *self.described(q, v))

        return tuple(
            replace(event, name=str(k), function=in_phase(event)) for k, event in enumerate(events)
        )

    def events(self, offset: float) -> tuple[Event, ...]:
        """Return the events of cables that become slack or taut.

        Events of inelastic cables end the phase.
        """
        events = []

        def stretch(k: int) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
            return lambda time, q, v: self.pull(time + offset, q, v)[:, k]

        def bare(k: int) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
            return lambda time, q, v: self.forces(time + offset, q, v)[1][:, k]

        def taut(name: str) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
            return lambda time, q, v: self.tensions(time + offset, q, v)[name]

        def slack(name: str) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
            return lambda time, q, v: self.gap(name, q, v)[0]

        pulls = [(name, stretch(k)) for k, name in enumerate(self.machine.stretched)]
        pulls += [(name, bare(k)) for k, name in enumerate(self.machine.bare.values())]
        for name, function in pulls:
            events.append(
                Event(name=f"{name} slack", function=function, direction=-1, is_terminal=False)
            )
            events.append(
                Event(name=f"{name} taut", function=function, direction=1, is_terminal=False)
            )
        events += [
            Event(name=f"{name} slack", function=taut(name), direction=-1)
            for name in self.machine.taut
        ]
        events += [
            Event(name=f"{name} taut", function=slack(name), direction=1)
            for name in self.machine.slack
        ]
        return tuple(events)


class PhaseForce(ForceLaw):
    """The forces of a phase that begins at a time (s)."""

    def __init__(self, phase: CablePhase, offset: float) -> None:
        """Store the phase and its start time."""
        self._phase, self._offset = phase, offset

    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the forces (n_u,) at a time of the phase."""
        forces, _ = self._phase.forces(np.array([time + self._offset]), q[None], v[None])
        return np.asarray(forces[0])


def _balanced(assembly: Assembly, taut: Sequence[str]) -> Assembly:
    """Return the assembly whose independent equations include those of taut cables.

    Cables may fix a coordinate completely: for example, two cables with locked winches fix a point
    in a plane. Such a coordinate is constant, and the original assembly omits the equations of the
    cables.
    """
    elements = {assembly.loops.elements[i] for i in assembly.rows}
    return assembly if elements.issuperset(taut) else assembly.with_constant_coordinates()


def _require_equal_locks(original: Model, model: Model, locks: Locks) -> None:
    """Reject locked coordinates whose reference value changes when the cables are removed.

    Raises:
        InputError: a value changes. The message states the coordinates, with both values.
    """
    problems = Problems()
    for name in locks.names:
        with_cables, without = (
            machine.assembly.q[machine.topology.coordinate_names.index(name)]
            for machine in (original, model)
        )
        column = original.topology.coordinate_names.index(name)
        scale = original.assembly.loops.coordinate_scale[column]
        if abs(with_cables - without) > LOCK_TOLERANCE * scale:
            what = f"is locked at {with_cables:.9g} by the cables, but the file's reference is {without:.9g}"
            problems.add(name, what, f"write reference: {with_cables:.9g} in the machine file")
    InputError.raise_if_any(problems)


def _wrench_at(wrench: Wrench, time: float) -> np.ndarray:
    return np.asarray(wrench(time) if callable(wrench) else wrench, dtype=float)


def _spans(original: Model, model: Model) -> BatchFunction:
    """Return the function from states of `model` to the end distances of cables and their rates."""
    motion = symbolic_motion(model.topology, nominal(model.assembly.mechanism))
    distances, rates = [], []
    for name in original.mechanism.cables:
        rod = original.mechanism.rod(name)
        if rod.drum is not None:
            line = length_on_drum(rod, rod.drum, motion)
            distances.append(line.x)
            rates.append(line.rate)
            continue
        A, B = motion.point(rod.start), motion.point(rod.end)
        distances.append(ca.norm_2(B.p - A.p))
        rates.append(ca.dot(B.p - A.p, B.v - A.v) / distances[-1])
    outputs = [ca.densify(ca.vertcat(ca.SX(0, 1), *part)) for part in (distances, rates)]
    return BatchFunction(ca.Function("spans", [motion.q, motion.v], outputs))
