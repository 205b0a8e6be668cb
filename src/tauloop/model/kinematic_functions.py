"""Kinematics of one entry of a machine: all coordinates from the given ones, at single poses and along motions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tauloop.assembly.entry_ports import EntryPorts
from tauloop.assembly.ports import Port, checked, numbers
from tauloop.codegen.evaluator import c_function, compiled_health
from tauloop.codegen.tracking import LONG_MOTION, SEAM, Tracker, require_continuity
from tauloop.errors import AssemblyError, InputError, PoseError, Problem
from tauloop.model.program_runs import ProgramRuns
from tauloop.programs.program import NEWTON_STEP, Newton, Program
from tauloop.programs.state import Health, State
from tauloop.programs.turns import continued, nearest_turns

if TYPE_CHECKING:
    from tauloop.model.model import Model

#: Steps of the straight line in actuator space along which forward kinematics follows the reference pose.
CONTINUATION_STEPS = 12
#: Newton's tolerance before the last of these steps (m, rad): good enough to start the next one from.
ON_THE_WAY = 1e-3
#: A start that differs by more than this (rad, characteristic lengths) from its own closed forms lies elsewhere.
OTHER_MODE = 1e-3


class KinematicFunctions(ProgramRuns):
    """Kinematics of one entry."""

    def __init__(self, model: Model, ports: EntryPorts) -> None:
        """Prepare; programs are built when first used."""
        super().__init__(model, ports)
        self._trackers: dict[tuple[Program, bool], Tracker | None] = {}

    def kinematics(
        self,
        position: object,
        velocity: object | None = None,
        acceleration: object | None = None,
        *,
        start: object | None = None,
        theta: object | None = None,
    ) -> State:
        """All coordinates (and velocities, accelerations) of the extended space.

        Args:
            position: given positions (N, n) or (n,); columns as in `ports`.
            velocity: given velocities, or None for positions only.
            acceleration: given accelerations, or None.
            start: start values (N, n_q) or (n_q,) for Newton blocks; the reference pose without it.
            theta: free parameters (N, n_free) or (n_free,); nominal without it.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular: which loop, by how much.
        """
        arguments = {"position": position, "velocity": velocity, "acceleration": acceleration}
        if acceleration is not None and velocity is None:
            remedy = "give the velocity too; zeros for a motion that starts from rest"
            raise InputError(Problem(where="velocity", what="is missing beside the acceleration", remedy=remedy))
        given = {name: value for name, value in arguments.items() if value is not None}
        inputs, single, n = self._inputs(given, start, theta)
        outputs, found = self._run(f"kinematics_{len(given) - 1}", inputs, n)
        self._require(found, inputs, outputs["q"])
        state = self._state(outputs, found, start)
        return state.single() if single else state

    def _kinematics(
        self, given: dict[str, object], start: object | None, tolerance: float = NEWTON_STEP, work: int = 0
    ) -> tuple[State, bool]:
        inputs, single, n = self._inputs(given, start, None)
        outputs, evidence = self._run(f"kinematics_{len(given) - 1}", inputs, n, tolerance, work)
        return self._state(outputs, evidence, start), single

    def evaluate(
        self,
        position: object,
        velocity: object | None = None,
        acceleration: object | None = None,
        *,
        start: object | None = None,
    ) -> State:
        """As `kinematics`, but unreachable and singular samples are left to the caller, who reads `State.health`."""
        arguments = {"position": position, "velocity": velocity, "acceleration": acceleration}
        given = {name: value for name, value in arguments.items() if value is not None}
        state, single = self._kinematics(given, start)
        return state.single() if single else state

    def follow(self, position: object, start: object | None = None) -> State:
        """Positions by continuation from a start pose; see `Model.forward_kinematics`."""
        arrays, single = checked({"position": self.ports.position}, {"position": position})
        target = arrays["position"]
        names = self._model.topology.coordinate_names
        full = Port(name="start", columns=names, units=("",) * len(names))
        q = checked({"start": full}, {"start": self._model.assembly.q if start is None else start})[0]["start"][0]
        origin = self.ports.at(q)
        if start is not None:
            functions = self.on_branch_of(q)
            if functions is not self:
                state = functions.follow(target, q)
                return state.single() if single else state
            self._require_assembled(q)
        current = np.broadcast_to(q, (len(target), len(q)))
        steps = CONTINUATION_STEPS if self._iterates() else 1  # closed forms have no way to lose
        for fraction in np.linspace(0.0, 1.0, steps + 1)[1:-1]:
            waypoint: dict[str, object] = {"position": origin + fraction * (target - origin)}
            on_the_way, _ = self._kinematics(waypoint, current, ON_THE_WAY, len(target) * steps)
            current = np.where(np.isfinite(on_the_way.q), on_the_way.q, current)  # the last step says what is wrong
        state = self.kinematics(target, start=current)
        if not self._positions.turns_matter:
            state = replace(state, q=nearest_turns(state.q, q, self._positions.turning))
        state = replace(state, turns=replace(state.turns, nearest="reference pose" if start is None else "start"))
        return state.single() if single else state

    def _iterates(self) -> bool:
        """Whether positions need Newton's method anywhere."""
        return any(isinstance(step, Newton) for step in self.program("kinematics_0").steps)

    def _require_assembled(self, start: np.ndarray) -> None:
        """Raise where positions lead from a start's own position to another pose: then its loops are open."""
        found, _ = self._kinematics({"position": self.ports.at(start)[None]}, start[None])
        gap = np.abs(found.q[0] - start)
        is_angle = np.array(self._model.topology.is_angle, dtype=bool)
        gap[is_angle] = np.abs((gap[is_angle] + np.pi) % (2 * np.pi) - np.pi)
        worst = int(np.argmax(np.nan_to_num(gap, nan=np.inf)))
        if found.health.is_reached.all() and gap[worst] > OTHER_MODE * max(1.0, self._model.assembly.loops.length):
            name = self._model.topology.coordinate_names[worst]
            raise AssemblyError(
                Problem(
                    where="start",
                    what=f"is not assembled: its loops are open; where they close {name} differs by {gap[worst]:.3g} "
                    "(m or rad)",
                    remedy="give an assembled pose; `tauloop modes` lists those of a position",
                )
            )

    def track(self, position: object, start: object | None = None) -> State:
        """Positions of consecutive samples of one motion, each followed from the samples before it.

        The first sample is reached by `follow`. Machine code runs through the others; without a compiler all samples
        are reached by `follow`. Long motions are cut into parts, whose first samples are reached by `follow`, and
        which run through vector lanes side by side; where parts do not meet, all samples are followed one by one.
        Angles go on without jumps of whole turns, from the turn that the first sample has.

        Args:
            position: given positions (N, n) in the order of time.
            start: assembled coordinates (n_q,) to start from; the reference pose without it.

        Raises:
            PoseError: out of reach: which loop, by how much.
            AssemblyError: the motion jumps, for it has left its assembly mode.
        """
        program = self.program("kinematics_0")
        target = np.atleast_2d(checked({"position": self.ports.position}, {"position": position})[0]["position"])
        if start is not None:
            q = numbers(start, "start")
            functions = self.on_branch_of(q) if q.shape == (self._model.topology.n_q,) else self
            if functions is not self:
                return functions.track(target, q)
        if not self._iterates() and not self._positions.turns_matter:
            return self._continued(self.kinematics(target), start)
        tracked = self._tracked(program, target, start, True) if len(target) >= LONG_MOTION else None
        tracked = self._tracked(program, target, start, False) if tracked is None else tracked
        if tracked is None:
            return self._continued(self.follow(target, start), None)
        q, found = tracked
        if not found.is_reached.all():
            lost = ~np.isfinite(q).all(axis=1)
            return self.kinematics(target, start=np.where(lost[:, None], q[0], q))
        shape = self._model.topology
        is_angle = np.array(shape.is_angle)
        scale = np.where(is_angle, 1.0, self._model.assembly.loops.length)
        require_continuity(q, shape.coordinate_names, scale, is_angle)
        return self._followed(self._state({"q": q}, found, start), q)

    def counted(self, state: State) -> State:
        """Consecutive samples of a motion, each reached by itself, with the turns of angles counted along them."""
        if self._positions.turns_matter:
            return self.track(self.ports.at(state.q), state.q[0])
        return self._continued(state, None)

    def _continued(self, state: State, start: object | None) -> State:
        """Samples of a motion whose angles go on, from the turn nearest to a start."""
        turning = self._positions.turning
        q = continued(state.q, turning)
        if start is not None and len(q):
            first = nearest_turns(q[:1], numbers(start, "start"), turning)
            q = q + (first - q[:1])
        return self._followed(state, q)

    def _followed(self, state: State, q: np.ndarray) -> State:
        """A state with the coordinates (N, n_q) of a motion, on whose samples before the turns depend."""
        return replace(state, q=q, turns=replace(state.turns, nearest="sample before"))

    def _tracked(
        self, program: Program, target: np.ndarray, start: object | None, in_lanes: bool
    ) -> tuple[np.ndarray, Health] | None:
        """Coordinates along a motion, and the evidence; None without machine code, or where parts do not meet."""
        tracker = self._tracker(program, in_lanes)
        if tracker is None:
            return None
        try:
            first = self.follow(target[tracker.starts(len(target))], start).q
        except PoseError:
            if in_lanes:
                return None
            raise
        theta = np.array([self._model.mechanism.parameters[leaf].value for leaf in self._model.machine.free])
        q, numbers, gap = tracker(np.ascontiguousarray(target), np.ascontiguousarray(first), theta)
        found = compiled_health(numbers)
        return None if in_lanes and not (found.is_reached.all() and gap < SEAM) else (q, found)

    def _tracker(self, program: Program, in_lanes: bool) -> Tracker | None:
        """Machine code that follows motions, made once (a failure too); None where there is none to be had."""
        key = (program, in_lanes)
        if key not in self._trackers:
            function = c_function(program, self._empty_inputs(), ("q",))
            self._trackers[key] = self._model.evaluator.tracker(function, in_lanes=in_lanes)
        return self._trackers[key]

    def embedding(self, position: object, *, start: object | None = None) -> np.ndarray:
        """Matrix G (N, n_v, m): velocities of all coordinates per unit of the given velocities."""
        inputs, single, n = self._inputs({"position": position}, start, None)
        inputs["velocity"] = np.zeros((n, self.ports.velocity.size))
        outputs, evidence = self._run("embedding", inputs, n)
        self._require(evidence, inputs, outputs["q"])
        G = outputs["G"].reshape(n, self.ports.velocity.size, -1).transpose(0, 2, 1)
        return np.asarray(G[0] if single else G)

    def actuator_jacobian(self, position: object, *, start: object | None = None) -> np.ndarray:
        """Jacobian J (N, n_u, m): actuator velocities per unit of the given velocities."""
        return np.asarray(self._model.assembly.loops.transmission @ self.embedding(position, start=start))
