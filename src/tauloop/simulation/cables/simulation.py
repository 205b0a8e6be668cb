"""Simulations of cable machines: cables pull, become slack, and are tautened again, or the simulation says why not."""

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
from tauloop.mechanism.bodies import cables
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import ForceSharing, Model
from tauloop.model.force_sharing import EQUAL_SHARES
from tauloop.simulation.cables.machines import cable_machine
from tauloop.simulation.cables.phase import CablePhase, Lengths, PhaseForce
from tauloop.simulation.cables.result import (
    OVER,
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

#: A tautened cable that would rebound slower than this (m/s) stays taut: else it would rebound
#: without end.
REBOUND = 1e-4
#: Ends that move together slower than this (m/s) at the start rest.
REST = 1e-9
#: A tension that is negative by less than this share of the largest is rounding.
PUSHED = 1e-9
#: Times that cables may become slack or taut before a simulation is given up.
MOST_PHASES = 1000


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

    A cable with stiffness k and damping c pulls with max(0, k x + c x'), x its stretch over what
    its winch has let out. One without does not stretch: it holds its ends while its tension is
    positive, is gone while it is slack, and when its ends have moved as far apart as it is long,
    they rebound with the `restitution` of its file; without one the simulation ends there and says
    so.

    Args:
        model: the machine.
        duration: s.
        q, v: start in the model's own coordinates (n_q,), (n_v,); cables of fixed length may be
            slack there, or stretched if they have a stiffness. The reference pose at rest without
            them.
        force: what the actuators do, continuously or sampled; without it all winches are held. The
            lengths of cables among the coordinates that it is given are what driven winches have
            let out, else distances of ends.
        lengths: unstretched lengths of telescopic cables with stiffness, by name, at the start; or,
            of held winches, a function of time to all of these lengths and their rates (k,), (k,).
            Without it those that hold the start pose at rest with the least tensions.
        wrench: force and moment at the tool centre point in the base frame (6,), or a function of
            time.
        route: the way to forward dynamics; projection without it.
        integrator: Dormand and Prince's without it.
        sharing: preloads and weights of the tensions that hold the start pose.
        events: what to look for, in the coordinates of the cable machine; also what a jerk jumps
            over is found.
        progress: called with the share of the duration that is done, and what there is to do.

    Raises:
        InputError: the machine has no cables, one cannot be simulated, or the input is wrong.
        AssemblyError: a start is not assembled, or the tension of a cable is not determined.
        PoseError: no tensions hold the start, and no lengths are given.
    """
    chosen = Projected() if route is None else route
    return _CableRun(
        model, duration, q, v, force, lengths, wrench, chosen, integrator, sharing, events
    ).go(Stages(progress, 1))


class _CableRun:
    """One simulation from change to change."""

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
        self._sampled = (
            SampledForce(force, len(model.mechanism.actuators)) if force and force.period else None
        )
        self._model, self._duration, self._wrench, self._watched = (
            model,
            duration,
            wrench,
            tuple(events),
        )
        self._force = force if self._sampled is None else self._sampled
        self._route, self._integrator, self._sharing = route, integrator, sharing
        self._bounds = cables(model.mechanism)
        shape = model.topology
        self._q = numbers(model.assembly.q if q is None else q, "q").copy()
        self._v = np.zeros(shape.n_v) if v is None else numbers(v, "v").copy()
        self._phases: dict[frozenset[str], tuple[CablePhase, Simulator]] = {}
        names = [rod.name for rod, _, _ in shape.telescopes if rod.name in self._bounds]
        self._wound = {name: float(self._q[shape.coordinate_names.index(name)]) for name in names}
        # or it says why not
        cable_machine(model.mechanism, frozenset(), self._wound if force is None else None)
        self._lengths = self._given_lengths(lengths)
        self._parts: list[CableStretch] = []
        self._events: list[CableEvent] = []
        self._occurrences: list[Occurrence] = []

    def _given_lengths(self, lengths: Mapping[str, float] | Lengths | None) -> Lengths:
        """Lengths of all cables that stretch at a time; those of fixed length have it."""
        if callable(lengths):
            return lengths
        mechanism, positions, rates = self._model.mechanism, [], []
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
                positions.append(
                    self._wound[name] - self._static[name] / mechanism.value(stiffness)
                )
            rates.append(0.0)
        constant = (np.array(positions), np.array(rates))
        return lambda time: constant

    @cached_property
    def _static(self) -> dict[str, float]:
        """Tensions that hold the start pose.

        Raises:
            InputError: freedoms are passive, so that cables do not hold it.
            PoseError: no tensions do.
        """
        if self._model.assembly.passive:
            what = f"are not given, and nothing holds {', '.join(self._model.assembly.passive_names)} at the start"
            raise InputError.of("lengths", what, "give the unstretched lengths of the cables")
        functions = self._model.platform
        still = np.zeros(functions.ports.velocity.size)
        position = self._model.platform_position(self._q)
        forces = functions.inverse_dynamics(
            position, still, still, start=self._q, sharing=self._sharing
        )
        assert forces.tension is not None
        return dict(zip(forces.tension_names, map(float, forces.tension), strict=True))

    def _phase(self, slack: frozenset[str]) -> tuple[CablePhase, Simulator]:
        if slack not in self._phases:
            held = self._wound if self._force is None else None
            machine = cable_machine(self._model.mechanism, slack, held)
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

    def go(self, stages: Stages) -> CableSimulation:
        """All of it, in one stage."""
        shape = self._model.topology
        q = dict(zip(shape.coordinate_names, self._q, strict=True))
        v = dict(zip(shape.velocity_names, self._v, strict=True))
        slack, time, problem, changes = self._loose(q, v), 0.0, None, 0
        until = self._sample(slack, q, v, time)
        slack = self._settled(slack, q, v, time)
        self._events += [
            CableEvent(cable=n, is_slack=True, time=0.0)
            for n in self._phase(slack)[0].unpulled(q, v)
        ]
        ending = Ending.SUCCESS
        while problem is None and not self._is_over(time):
            if changes >= MOST_PHASES:
                problem, ending = _too_many(time), Ending.MAX_STEPS
                break
            if time >= until - OVER * self._duration:
                until = self._sample(slack, q, v, time)
                slack = self._settled(slack, q, v, time)
            phase, simulation = self._advanced(slack, q, v, time, until, stages)
            time += float(simulation.time[-1])
            q = dict(zip(simulation.coordinate_names, simulation.q[-1], strict=True))
            v = dict(zip(simulation.velocity_names, simulation.v[-1], strict=True))
            ending, problem = simulation.ending, simulation.problem
            if ending is Ending.EVENT and not self._is_ended:
                before, changes = v, changes + 1
                slack, v, problem = self._changed(phase, slack, q, v, time)
                self._jumped(phase, q, before, v, time)
        return self._result(Ending.EVENT if self._is_ended else ending, problem)

    @property
    def _is_ended(self) -> bool:
        """Whether an event that was looked for has ended it."""
        return bool(self._occurrences) and self._occurrences[-1].is_terminal

    def _is_over(self, time: float) -> bool:
        return self._is_ended or self._duration - time <= OVER * self._duration

    def _sample(
        self, slack: frozenset[str], q: Mapping[str, float], v: Mapping[str, float], time: float
    ) -> float:
        """Sample a law that is computed and held; until when it holds, or the end, s."""
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

    def _jumped(
        self,
        phase: CablePhase,
        q: Mapping[str, float],
        v: Mapping[str, float],
        after: Mapping[str, float],
        time: float,
    ) -> None:
        """Note the events whose functions went through zero in a jerk."""
        states = [
            phase.described(*(row[None] for row in phase.start(q, rates))) for rates in (v, after)
        ]
        for event in self._watched:
            was, now = (float(event.function(np.array([time]), *state)[0]) for state in states)
            if was * now < 0 and event.direction * now >= 0 and not self._is_ended:
                at_q, at_v = states[1]
                occurrence = Occurrence(
                    name=event.name, time=time, q=at_q[0], v=at_v[0], is_terminal=event.is_terminal
                )
                self._occurrences.append(occurrence)

    def _loose(self, q: Mapping[str, float], v: Mapping[str, float]) -> frozenset[str]:
        """Cables of a length that does not change and that are slack at the start, or becoming so."""
        fixed = [
            n
            for n, b in self._bounds.items()
            if b.stiffness is None and self._model.mechanism.rod(n).length
        ]
        if not fixed:
            return frozenset()
        phase, _ = self._phase(frozenset(fixed))
        state = [row[None] for row in phase.start(q, v)]
        gaps = {name: phase.gap(name, *state) for name in fixed}
        loose = {
            n
            for n, (gap, rate) in gaps.items()
            if gap[0] < -START_GAP or (gap[0] <= START_GAP and rate[0] < -REST)
        }
        self._events += [
            CableEvent(cable=name, is_slack=True, time=0.0) for name in fixed if name in loose
        ]
        return frozenset(loose)

    def _advanced(
        self,
        slack: frozenset[str],
        q: Mapping[str, float],
        v: Mapping[str, float],
        time: float,
        until: float,
        stages: Stages,
    ) -> tuple[CablePhase, Simulation]:
        """The simulation until the next change, or until a time."""
        phase, simulator = self._phase(slack)
        start_q, start_v = phase.start(q, v)
        wrench = self._wrench
        shifted: Wrench | None = (
            (lambda t: np.asarray(wrench(t + time))) if callable(wrench) else wrench
        )
        simulation = simulator.run(
            until - time,
            q=start_q,
            v=start_v,
            force=PhaseForce(phase, time),
            wrench=shifted,
            events=(*phase.events(time), *phase.watched(self._watched, time)),
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
                name, at = self._watched[int(item.name)].name, time + item.time
                self._occurrences.append(replace(item, name=name, time=at, q=at_q[0], v=at_v[0]))
                continue
            cable, _, what = item.name.rpartition(" ")
            self._events.append(
                CableEvent(cable=cable, is_slack=what == "slack", time=time + item.time)
            )
        return phase, simulation

    def _changed(
        self,
        phase: CablePhase,
        slack: frozenset[str],
        q: dict[str, float],
        v: dict[str, float],
        time: float,
    ) -> tuple[frozenset[str], dict[str, float], Problem | None]:
        """Slack cables, velocities and what is wrong after a cable that does not stretch has changed."""
        event = self._events[-1]
        if event.is_slack:
            return self._settled(slack | {event.cable}, q, v, time), v, None
        taut, _ = self._phase(slack - {event.cable})
        start_q, start_v = taut.start(q, v)
        speed = float(phase.gap(event.cable, *(row[None] for row in phase.start(q, v)))[1][0])
        restitution = self._bounds[event.cable].restitution
        if restitution is None:
            return slack, v, _tautened(event.cable, time, speed)
        after, impulses = taut.impact(event.cable, restitution, start_q, start_v)
        pushed = [
            name
            for name, impulse in impulses.items()
            if impulse < -PUSHED * max(map(abs, impulses.values()))
        ]
        if pushed:
            return slack, v, _pushed(event.cable, pushed, time)
        self._events[-1] = replace(event, speed=speed, impulse=impulses[event.cable])
        if restitution * speed > REBOUND:
            return slack, dict(zip(taut.model.topology.velocity_names, after, strict=True)), None
        after, _ = taut.impact(event.cable, 0.0, start_q, start_v)
        v = dict(zip(taut.model.topology.velocity_names, after, strict=True))
        return self._settled(slack - {event.cable}, q, v, time), v, None

    def _settled(
        self, slack: frozenset[str], q: Mapping[str, float], v: Mapping[str, float], time: float
    ) -> frozenset[str]:
        """Slack cables, with those that would have to push from here on, the worst of them first."""
        for _ in self._bounds:
            phase, _ = self._phase(slack)
            start_q, start_v = phase.start(q, v)
            pulls = phase.tensions(np.array([time]), start_q[None], start_v[None])
            taut = {name: float(pulls[name][0]) for name in phase.machine.taut}
            if not taut or min(taut.values()) >= -PUSHED * max(map(abs, taut.values())):
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
    """Refuse what cannot be simulated.

    Raises:
        InputError: no cables, no duration, or a lock on the length of a cable.
    """
    problems, locked = Problems(), [model.topology.velocity_names[i] for i in model.assembly.locked]
    for name in cables(model.mechanism):
        if name in locked:
            what = "is a cable, and its length is locked, so that it could neither stretch nor become slack"
            problems.add(name, what, "give the cable a `length`, or lock other freedoms")
    if not cables(model.mechanism):
        problems.add("rods", "none is a cable", "use `simulate`")
    if not 0 < duration < np.inf:
        problems.add("duration", f"must be positive, got {duration:g} s", "give seconds")
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


def _tautened(name: str, time: float, speed: float) -> Problem:
    return Problem(
        where=name,
        what=f"is tautened at {time:.9g} s, its ends moving apart at {speed:.4g} m/s: it does not stretch, so that "
        "nothing says how they rebound",
        remedy="give its `tension` a restitution, or a stiffness",
    )


def _pushed(name: str, pushed: list[str], time: float) -> Problem:
    return Problem(
        where=name,
        what=f"is tautened at {time:.9g} s, and its jerk would need {', '.join(pushed)} to push",
        remedy="give cables a stiffness: impacts on several at once are not determined by one restitution",
    )


def _too_many(time: float) -> Problem:
    return Problem(
        where="cables",
        what=f"became slack or taut {MOST_PHASES} times before {time:.6g} s",
        remedy="give them a stiffness, or a smaller restitution",
    )
