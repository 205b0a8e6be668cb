"""Simulation of machines whose cables become slack and taut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from tauloop.common.errors import InputError, PoseError, Problem, Problems, solving
from tauloop.common.progress import Progress, Stages
from tauloop.equations.ports import numbers
from tauloop.integrate.events import Event, Occurrence
from tauloop.integrate.integrators import Integrator
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import ForceSharing, Model
from tauloop.model.forces.force_sharing import EQUAL_SHARES
from tauloop.simulation.cables.machines import cable_machine
from tauloop.simulation.cables.phase import CablePhase, Lengths, PhaseForce
from tauloop.simulation.cables.result import (
    TIME_TOLERANCE,
    CableEvent,
    CableSimulation,
    CableStretch,
    diagnostics,
)
from tauloop.simulation.forces import ForceLaw, SampledForce, Wrench
from tauloop.simulation.routes import Projected, Route
from tauloop.simulation.simulation import Simulation, Simulator
from tauloop.simulation.stepping.steps import Ending
from tauloop.simulation.system import START_GAP

#: Smallest rebound speed (m/s). A slower cable stays taut, which avoids endless rebounds.
MIN_REBOUND_SPEED = 1e-4
#: Closing speed of cable ends (m/s) below which they are at rest at the start.
REST_SPEED = 1e-9
#: Negative tension, relative to the largest, that counts as rounding.
PUSH_TOLERANCE = 1e-9
#: Maximum number of changes between slack and taut in one simulation.
MAX_PHASES = 1000


@solving(PoseError)
def simulate_cables(
    model: Model,
    duration: float,
    *,
    q: object | None = None,
    v: object | None = None,
    force: ForceLaw | None = None,
    lengths: Mapping[str, float] | Lengths | None = None,
    wrench: Wrench | None = None,
    route: Route | None = None,
    integrator: Integrator | None = None,
    sharing: ForceSharing = EQUAL_SHARES,
    events: Sequence[Event] = (),
    progress: Progress | None = None,
) -> CableSimulation:
    """Simulate a machine with cables.

    A cable with stiffness k and damping c pulls with max(0, k x + c x'), where x is its stretch
    beyond the released length. A cable without stiffness is inelastic: it holds its ends while its
    tension is positive, and is removed while it is slack. When the distance of its ends reaches its
    length, they rebound with the `restitution` of the file. Without a restitution the simulation
    ends and reports the reason.

    Args:
        model: the machine.
        duration: duration, s.
        q, v: start coordinates and velocities (n_q,), (n_v,); by default the reference pose at
            rest. Cables of fixed length may be slack, or stretched if they have a stiffness.
        force: law of the actuator forces, continuous or sampled; without it all winches are locked.
            In the coordinates that the law receives, the length of a cable is its released length
            if a winch drives it, otherwise the distance between its ends.
        lengths: unstretched lengths of telescopic cables with stiffness at the start, by name; or,
            for locked winches, a function from time to the lengths and rates (k,), (k,) of all
            cables with stiffness. By default, the lengths that hold the start pose at rest with the
            smallest tensions.
        wrench: force and moment at the tool center point in the base frame (6,), or a function of
            time.
        route: method of forward dynamics; projection by default.
        integrator: integration method; Dormand-Prince by default.
        sharing: preloads and weights for the tensions that hold the start pose.
        events: events to detect, in the coordinates of the cable machine. Sign changes during an
            impact are also detected.
        progress: called with the simulated time and the duration.

    Returns:
        The motions and tensions between events, and the reason why the simulation ended.

    Raises:
        InputError: the machine has no cables, a cable cannot be simulated, or the input is wrong.
        AssemblyError: the start is not assembled, or a cable tension is not determined.
        PoseError: no tensions hold the start, and no lengths are given.
    """
    chosen = Projected() if route is None else route
    return _CableRun(
        model, duration, q, v, force, lengths, wrench, chosen, integrator, sharing, events
    ).result(Stages(progress, 1))


class _CableRun:
    """A cable simulation in progress."""

    def __init__(
        self,
        model: Model,
        duration: float,
        q: object | None,
        v: object | None,
        force: ForceLaw | None,
        lengths: Mapping[str, float] | Lengths | None,
        wrench: Wrench | None,
        route: Route,
        integrator: Integrator | None,
        sharing: ForceSharing,
        events: Sequence[Event],
    ) -> None:
        _require(model, duration)
        self._model = model
        self._duration = duration
        self._wrench = wrench
        #: Events that the caller requests.
        self._events_to_detect = tuple(events)
        self._sampled: SampledForce | None = None
        self._force = force
        if force is not None and force.period:
            self._sampled = SampledForce(force, len(model.mechanism.actuators))
            self._force = self._sampled
        self._route = route
        self._integrator = integrator
        self._sharing = sharing
        self._bounds = model.mechanism.cables
        topology = model.topology
        self._q = numbers(model.assembly.q if q is None else q, "q").copy()
        self._v = np.zeros(topology.n_v) if v is None else numbers(v, "v").copy()
        self._phases: dict[frozenset[str], tuple[CablePhase, Simulator]] = {}
        names = [rod.name for rod, _, _ in topology.telescopes if rod.name in self._bounds]
        #: Lengths of the telescopic cables (those on winches) at the start, m.
        self._wound = {
            name: float(self._q[topology.coordinate_names.index(name)]) for name in names
        }
        # raises if a cable cannot be simulated
        cable_machine(model.mechanism, frozenset(), self._wound if force is None else None)
        self._lengths = self._given_lengths(lengths)
        self._parts: list[CableStretch] = []
        self._events: list[CableEvent] = []
        self._occurrences: list[Occurrence] = []

    def _given_lengths(self, lengths: Mapping[str, float] | Lengths | None) -> Lengths:
        """Return the function from time to the released lengths and rates of all elastic cables."""
        if callable(lengths):
            return lengths
        mechanism = self._model.mechanism
        positions = []
        stretched = [name for name, bound in self._bounds.items() if bound.stiffness is not None]
        _require_names(lengths, [name for name in stretched if name in self._wound])
        for name in stretched:
            length, stiffness = mechanism.rod(name).length, self._bounds[name].stiffness
            assert stiffness is not None
            if length is not None:
                positions.append(mechanism.value(length))
            elif lengths is not None:
                positions.append(lengths[name])
            else:
                stretch = self._static_tensions[name] / mechanism.value(stiffness)
                positions.append(self._wound[name] - stretch)
        constant = (np.array(positions), np.zeros(len(positions)))
        return lambda time: constant

    @cached_property
    def _static_tensions(self) -> dict[str, float]:
        """Tensions that hold the start pose by name, N.

        Raises:
            InputError: the machine has passive degrees of freedom, which cables do not hold.
            PoseError: no tensions hold the pose.
        """
        if self._model.assembly.passive:
            passive = ", ".join(self._model.assembly.passive_names)
            what = f"are not given, and nothing holds {passive} at the start"
            raise InputError.of("lengths", what, "give the unstretched lengths of the cables")
        functions = self._model.platform
        zero = np.zeros(functions.ports.velocity.size)
        position = self._model.platform_position(self._q)
        forces = functions.inverse_dynamics(
            position, zero, zero, start=self._q, sharing=self._sharing
        )
        assert forces.tension is not None
        return dict(zip(forces.tension_names, map(float, forces.tension), strict=True))

    def _phase(self, slack: frozenset[str]) -> tuple[CablePhase, Simulator]:
        """Return the phase with these slack cables, and its simulator; both are built once."""
        if slack not in self._phases:
            locked_lengths = self._wound if self._force is None else None
            machine = cable_machine(self._model.mechanism, slack, locked_lengths)
            phase = CablePhase(
                self._model, machine, self._force, self._lengths, self._wound, self._wrench
            )
            simulator = Simulator(
                phase.model,
                route=self._route,
                integrator=self._integrator,
                with_wrench=self._wrench is not None,
            )
            self._phases[slack] = phase, simulator
        return self._phases[slack]

    def result(self, stages: Stages) -> CableSimulation:
        """Run the simulation and return its result."""
        topology = self._model.topology
        q = dict(zip(topology.coordinate_names, self._q, strict=True))
        v = dict(zip(topology.velocity_names, self._v, strict=True))
        slack = self._initially_slack(q, v)
        time = 0.0
        problem = None
        n_changes = 0
        until = self._sample(slack, q, v, time)
        slack = self._settled(slack, q, v, time)
        self._events += [
            CableEvent(cable=n, is_slack=True, time=0.0)
            for n in self._phase(slack)[0].unpulled(q, v)
        ]
        ending = Ending.SUCCESS
        while problem is None and not self._is_over(time):
            if n_changes >= MAX_PHASES:
                problem, ending = _too_many_changes(time), Ending.MAX_STEPS
                break
            if time >= until - TIME_TOLERANCE * self._duration:
                until = self._sample(slack, q, v, time)
                slack = self._settled(slack, q, v, time)
            phase, simulation = self._advanced(slack, q, v, time, until, stages)
            time += float(simulation.time[-1])
            q = dict(zip(simulation.coordinate_names, simulation.q[-1], strict=True))
            v = dict(zip(simulation.velocity_names, simulation.v[-1], strict=True))
            ending, problem = simulation.ending, simulation.problem
            if ending is Ending.EVENT and not self._is_ended:
                n_changes += 1
                before = v
                slack, v, problem = self._after_change(phase, slack, q, v, time)
                self._note_impact_events(phase, q, before, v, time)
        return self._result(Ending.EVENT if self._is_ended else ending, problem)

    @property
    def _is_ended(self) -> bool:
        """Whether a requested event ended the simulation."""
        return bool(self._occurrences) and self._occurrences[-1].is_terminal

    def _is_over(self, time: float) -> bool:
        return self._is_ended or self._duration - time <= TIME_TOLERANCE * self._duration

    def _sample(
        self, slack: frozenset[str], q: Mapping[str, float], v: Mapping[str, float], time: float
    ) -> float:
        """Sample the force law, and return the time until which its forces are held, s.

        Without a sampled law, return the end of the simulation.
        """
        if self._sampled is None:
            return self._duration
        phase, _ = self._phase(slack)
        at_q, at_v = phase.described(*(row[None] for row in phase.start(q, v)))
        before = phase.unpulled(q, v, time)
        until = self._sampled.sample(time, at_q[0], at_v[0])
        after = phase.unpulled(q, v, time)
        if time > 0.0:
            changed = [name for name in self._bounds if (name in before) != (name in after)]
            self._events += [
                CableEvent(cable=name, is_slack=name in after, time=time) for name in changed
            ]
        return min(until, self._duration)

    def _note_impact_events(
        self,
        phase: CablePhase,
        q: Mapping[str, float],
        v: Mapping[str, float],
        after: Mapping[str, float],
        time: float,
    ) -> None:
        """Record the events whose functions change sign in an impact."""
        states = []
        for rates in (v, after):
            coordinates, velocities = phase.start(q, rates)
            states.append(phase.described(coordinates[None], velocities[None]))
        for event in self._events_to_detect:
            before, now = (float(event.function(np.array([time]), *state)[0]) for state in states)
            if before * now < 0 and event.direction * now >= 0 and not self._is_ended:
                at_q, at_v = states[1]
                occurrence = Occurrence(
                    name=event.name, time=time, q=at_q[0], v=at_v[0], is_terminal=event.is_terminal
                )
                self._occurrences.append(occurrence)

    def _initially_slack(self, q: Mapping[str, float], v: Mapping[str, float]) -> frozenset[str]:
        """Return inelastic cables of fixed length that are slack or become slack at the start."""
        fixed = [
            name
            for name, bound in self._bounds.items()
            if bound.stiffness is None and self._model.mechanism.rod(name).length
        ]
        if not fixed:
            return frozenset()
        phase, _ = self._phase(frozenset(fixed))
        state = [row[None] for row in phase.start(q, v)]
        gaps = {name: phase.gap(name, *state) for name in fixed}
        slack = set()
        for name, (gap, rate) in gaps.items():
            is_closing = gap[0] <= START_GAP and rate[0] < -REST_SPEED
            if gap[0] < -START_GAP or is_closing:
                slack.add(name)
        self._events += [
            CableEvent(cable=name, is_slack=True, time=0.0) for name in fixed if name in slack
        ]
        return frozenset(slack)

    def _advanced(
        self,
        slack: frozenset[str],
        q: Mapping[str, float],
        v: Mapping[str, float],
        time: float,
        until: float,
        stages: Stages,
    ) -> tuple[CablePhase, Simulation]:
        """Return the phase, and its simulation until a cable changes or a time is reached."""
        phase, simulator = self._phase(slack)
        start_q, start_v = phase.start(q, v)
        wrench = self._wrench
        phase_wrench: Wrench | None = wrench  # as a function of the time since the phase's start
        if callable(wrench):
            phase_wrench = lambda t: np.asarray(wrench(t + time))  # noqa: E731
        simulation = simulator.run(
            until - time,
            q=start_q,
            v=start_v,
            force=PhaseForce(phase, time),
            wrench=phase_wrench,
            events=(*phase.events(time), *phase.watched(self._events_to_detect, time)),
            progress=lambda done, total: stages.part(
                time + (until - time) * done / total, self._duration
            ),
        )
        pulls = phase.tensions(simulation.time + time, simulation.q, simulation.v)
        tension = np.stack([np.maximum(pulls[name], 0.0) for name in self._bounds], axis=1)
        self._parts.append(
            CableStretch(start=time, machine=phase.machine, simulation=simulation, tension=tension)
        )
        for item in simulation.occurrences:
            if item.name.isdecimal():
                at_q, at_v = phase.described(item.q[None], item.v[None])
                name, at = self._events_to_detect[int(item.name)].name, time + item.time
                self._occurrences.append(replace(item, name=name, time=at, q=at_q[0], v=at_v[0]))
                continue
            cable, _, state = item.name.rpartition(" ")
            self._events.append(
                CableEvent(cable=cable, is_slack=state == "slack", time=time + item.time)
            )
        return phase, simulation

    def _after_change(
        self,
        phase: CablePhase,
        slack: frozenset[str],
        q: dict[str, float],
        v: dict[str, float],
        time: float,
    ) -> tuple[frozenset[str], dict[str, float], Problem | None]:
        """Return slack cables, velocities and a problem after an inelastic cable changed."""
        event = self._events[-1]
        if event.is_slack:
            return self._settled(slack | {event.cable}, q, v, time), v, None
        taut, _ = self._phase(slack - {event.cable})
        start_q, start_v = taut.start(q, v)
        phase_q, phase_v = phase.start(q, v)
        _, gap_rate = phase.gap(event.cable, phase_q[None], phase_v[None])
        speed = float(gap_rate[0])
        restitution = self._bounds[event.cable].restitution
        if restitution is None:
            return slack, v, _no_restitution(event.cable, time, speed)
        after, impulses = taut.impact(event.cable, restitution, start_q, start_v)
        largest = max(map(abs, impulses.values()))
        pushing = [name for name, value in impulses.items() if value < -PUSH_TOLERANCE * largest]
        if pushing:
            return slack, v, _pushing_cables(event.cable, pushing, time)
        self._events[-1] = replace(event, speed=speed, impulse=impulses[event.cable])
        if restitution * speed > MIN_REBOUND_SPEED:
            return slack, dict(zip(taut.model.topology.velocity_names, after, strict=True)), None
        after, _ = taut.impact(event.cable, 0.0, start_q, start_v)
        v = dict(zip(taut.model.topology.velocity_names, after, strict=True))
        return self._settled(slack - {event.cable}, q, v, time), v, None

    def _settled(
        self, slack: frozenset[str], q: Mapping[str, float], v: Mapping[str, float], time: float
    ) -> frozenset[str]:
        """Return the slack cables, including taut cables whose tension would be negative."""
        for _ in self._bounds:
            phase, _ = self._phase(slack)
            start_q, start_v = phase.start(q, v)
            pulls = phase.tensions(np.array([time]), start_q[None], start_v[None])
            taut = {name: float(pulls[name][0]) for name in phase.machine.taut}
            if not taut or min(taut.values()) >= -PUSH_TOLERANCE * max(map(abs, taut.values())):
                break
            worst = min(taut, key=taut.__getitem__)
            slack = slack | {worst}
            self._events.append(CableEvent(cable=worst, is_slack=True, time=time))
        return slack

    def _result(self, ending: Ending, problem: Problem | None) -> CableSimulation:
        parts = self._parts
        result = CableSimulation(
            diagnostics=(),
            provenance=parts[-1].simulation.provenance,
            machine=self._model.mechanism.name,
            cable_names=tuple(self._bounds),
            time=np.concatenate([part.start + part.simulation.time for part in parts]),
            tension=np.concatenate([part.tension for part in parts]),
            parts=tuple(parts),
            events=tuple(self._events),
            occurrences=tuple(self._occurrences),
            duration=self._duration,
            ending=ending,
            problem=problem,
        )
        return replace(result, diagnostics=diagnostics(self._model, result, self._is_ended))


def _require(model: Model, duration: float) -> None:
    """Reject machines and durations that cannot be simulated.

    Raises:
        InputError: the machine has no cables, the duration is not positive, or the length of a
            cable is locked.
    """
    problems = Problems()
    locked = [model.topology.velocity_names[i] for i in model.assembly.locked]
    for name in model.mechanism.cables:
        if name in locked:
            what = "is a cable of locked length, so it can neither stretch nor become slack"
            problems.add(name, what, "give the cable a `length`, or lock other coordinates")
    if not model.mechanism.cables:
        problems.add("rods", "the machine has no cables", "use `simulate`")
    if not 0 < duration < np.inf:
        what = f"must be positive and finite, got {duration:g} s"
        problems.add("duration", what, "give a time such as 1.0")
    InputError.raise_if_any(problems)


def _require_names(lengths: Mapping[str, float] | None, names: list[str]) -> None:
    if lengths is None:
        return
    problems = unknown_names(lengths, names, "no telescopic cable with stiffness", "lengths.{}")
    problems += [
        Problem(where=f"lengths.{name}", what="is missing", remedy="give the unstretched length, m")
        for name in names
        if name not in lengths
    ]
    InputError.raise_if_any(problems)


def _no_restitution(name: str, time: float, speed: float) -> Problem:
    return Problem(
        where=name,
        what=f"becomes taut at {time:.9g} s while its ends move apart at {speed:.4g} m/s; "
        "the rebound of an inelastic cable without restitution is undefined",
        remedy="give the cable's `tension` a restitution or a stiffness",
    )


def _pushing_cables(name: str, pushing: list[str], time: float) -> Problem:
    return Problem(
        where=name,
        what=f"becomes taut at {time:.9g} s with an impact in which {', '.join(pushing)} would push",
        remedy="give the cables a stiffness; a restitution does not determine impacts on several cables",
    )


def _too_many_changes(time: float) -> Problem:
    return Problem(
        where="cables",
        what=f"became slack or taut {MAX_PHASES} times before {time:.6g} s",
        remedy="give the cables a stiffness, or a smaller restitution",
    )
