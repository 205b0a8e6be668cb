"""All functions of one entry of a machine: the given motion in, everything else out, on batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tauloop.errors import AssemblyError, InputError, PoseError, Problem
from tauloop.functions.compiled import CompiledFunction
from tauloop.functions.diagnosis import condition_numbers, gaps, singular, unreached
from tauloop.functions.entry import Entry
from tauloop.functions.evaluator import Compiled, c_function, compiled_health, run_kernel
from tauloop.functions.hybrid_programs import hybrid_inverse_dynamics_program
from tauloop.functions.hybrid_sharing import EQUAL_SHARES, ForceSharing
from tauloop.functions.motion_programs import (
    diagnosis_program,
    embedding_program,
    forward_dynamics_program,
    inverse_dynamics_program,
    kinematics_program,
    momentum_forces_program,
    momentum_program,
    regressor_program,
)
from tauloop.functions.ports import Port, checked
from tauloop.functions.position import SolvedBlock
from tauloop.functions.program import NEWTON_STEP, Newton, Program
from tauloop.functions.source import CFunction
from tauloop.functions.state import Forces, Health, State, health, joined
from tauloop.functions.tracking import LONG_MOTION, SEAM, Tracker, require_continuity

if TYPE_CHECKING:
    from tauloop.functions.model import Model

#: Steps of the straight line in actuator space along which forward kinematics follows the reference pose.
CONTINUATION_STEPS = 12
#: Newton's tolerance before the last of these steps (m, rad): good enough to start the next one from.
ON_THE_WAY = 1e-3
#: A start that differs by more than this (rad, characteristic lengths) from its own closed forms lies elsewhere.
OTHER_MODE = 1e-3
#: Samples evaluated at once; bounds the memory of intermediate values.
CHUNK = 8192


#: Programs without further choices, by name.
PROGRAMS = {
    "diagnosis": diagnosis_program,
    "embedding": embedding_program,
    "forward_dynamics": forward_dynamics_program,
    "hybrid_inverse_dynamics": hybrid_inverse_dynamics_program,
    "inverse_dynamics": inverse_dynamics_program,
    "momentum": momentum_program,
    "momentum_forces": momentum_forces_program,
}


class MotionFunctions:
    """All functions of one entry: the given motion in, everything else out."""

    def __init__(self, model: Model, entry: Entry) -> None:
        """Prepare; programs are built when first used."""
        self._model = model
        self.entry = entry
        self._programs: dict[str, Program] = {}
        self._kernels: dict[Program, CompiledFunction | None] = {}
        self._trackers: dict[tuple[Program, bool], Tracker | None] = {}
        self._blocks: tuple[SolvedBlock, ...] = ()

    @property
    def ports(self) -> dict[str, Port]:
        """Ports of a motion: position, velocity, acceleration."""
        return {
            "position": self.entry.position,
            "velocity": self.entry.velocity,
            "acceleration": self.entry.acceleration,
        }

    @property
    def blocks(self) -> tuple[SolvedBlock, ...]:
        """How the position problem was sorted and is solved."""
        self.program("kinematics_0")
        return self._blocks

    def program(self, name: str) -> Program:
        """One of the programs: kinematics_0 (to 2), embedding, inverse_dynamics, regressor_actuators (_joints)."""
        if name not in self._programs:
            machine = self._model.machine
            stem, _, detail = name.rpartition("_")
            if stem == "kinematics":
                program, self._blocks = kinematics_program(machine, self.entry, int(detail))
            elif stem == "regressor":
                program = regressor_program(machine, self.entry, detail)
            else:
                program = PROGRAMS[name](machine, self.entry)
            self._programs[name] = program
        return self._programs[name]

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
        state = self._state(outputs, found)
        return _single(state) if single else state

    def _kinematics(
        self, given: dict[str, object], start: object | None, tolerance: float = NEWTON_STEP, work: int = 0
    ) -> tuple[State, bool]:
        inputs, single, n = self._inputs(given, start, None)
        outputs, evidence = self._run(f"kinematics_{len(given) - 1}", inputs, n, tolerance, work)
        return self._state(outputs, evidence), single

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
        return _single(state) if single else state

    def follow(self, position: object, start: object | None = None) -> State:
        """Positions by continuation from a start pose; see `Model.forward_kinematics`."""
        arrays, single = checked({"position": self.entry.position}, {"position": position})
        target = arrays["position"]
        names = self._model.topology.coordinate_names
        full = Port(name="start", columns=names, units=("",) * len(names))
        q = checked({"start": full}, {"start": self._model.assembly.q if start is None else start})[0]["start"][0]
        origin = self.entry.at(q)
        if start is not None:
            self._require_branch(q)
        current = np.broadcast_to(q, (len(target), len(q)))
        steps = CONTINUATION_STEPS if self._iterates() else 1  # closed forms have no way to lose
        for fraction in np.linspace(0.0, 1.0, steps + 1)[1:-1]:
            waypoint: dict[str, object] = {"position": origin + fraction * (target - origin)}
            on_the_way, _ = self._kinematics(waypoint, current, ON_THE_WAY, len(target) * steps)
            current = on_the_way.q
        state = self.kinematics(target, start=current)
        return _single(state) if single else state

    def _iterates(self) -> bool:
        """Whether positions need Newton's method anywhere."""
        return any(isinstance(step, Newton) for step in self.program("kinematics_0").steps)

    def _require_branch(self, start: np.ndarray) -> None:
        """Raise where closed forms, whose branch is the reference's, lead from a start's position to another pose."""
        found, _ = self._kinematics({"position": self.entry.at(start)[None]}, start[None])
        gap = np.abs(found.q[0] - start)
        is_angle = np.array(self._model.topology.is_angle, dtype=bool)
        gap[is_angle] = np.abs((gap[is_angle] + np.pi) % (2 * np.pi) - np.pi)
        worst = int(np.argmax(np.nan_to_num(gap, nan=np.inf)))
        if found.health.is_reached.all() and gap[worst] > OTHER_MODE * max(1.0, self._model.assembly.loops.length):
            name = self._model.topology.coordinate_names[worst]
            raise AssemblyError(
                Problem(
                    where="start",
                    what=f"is on another assembly mode than the closed forms, or its loops are open: {name} differs by "
                    f"{gap[worst]:.3g} (m or rad)",
                    remedy="give a reference pose on that mode in the machine file; `tauloop modes` lists all of them",
                )
            )

    def track(self, position: object, start: object | None = None) -> State:
        """Positions of consecutive samples of one motion, each followed from the samples before it.

        The first sample is reached by `follow`. Machine code runs through the others; without a compiler all samples
        are reached by `follow`. Long motions are cut into parts, whose first samples are reached by `follow`, and
        which run through vector lanes side by side; where parts do not meet, all samples are followed one by one.

        Args:
            position: given positions (N, n) in the order of time.
            start: assembled coordinates (n_q,) to start from; the reference pose without it.

        Raises:
            PoseError: out of reach: which loop, by how much.
            AssemblyError: the motion jumps, for it has left its assembly mode.
        """
        program = self.program("kinematics_0")
        target = np.atleast_2d(checked({"position": self.entry.position}, {"position": position})[0]["position"])
        if not self._iterates():
            return self.kinematics(target)
        tracked = self._tracked(program, target, start, True) if len(target) >= LONG_MOTION else None
        tracked = self._tracked(program, target, start, False) if tracked is None else tracked
        if tracked is None:
            return self.follow(target, start)
        q, found = tracked
        if not found.is_reached.all():
            lost = ~np.isfinite(q).all(axis=1)
            return self.kinematics(target, start=np.where(lost[:, None], q[0], q))
        shape = self._model.topology
        is_angle = np.array(shape.is_angle)
        scale = np.where(is_angle, 1.0, self._model.assembly.loops.length)
        require_continuity(q, shape.coordinate_names, scale, is_angle)
        return self._state({"q": q}, found)

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

    def inverse_dynamics(
        self,
        position: object,
        velocity: object,
        acceleration: object,
        *,
        start: object | None = None,
        theta: object | None = None,
        sharing: ForceSharing = EQUAL_SHARES,
    ) -> Forces:
        """Actuator forces that the motion needs, by the model's formulation.

        S u + K^T lambda = M a + h: gravity, inertia, rotors, friction and springs included. Redundant actuators
        share forces by the least sum of w u^2.

        Args:
            position, velocity, acceleration: the given motion (N, n) or (n,), SI.
            start: start values for Newton blocks.
            theta: free parameters.
            sharing: the weights w of redundant actuators; no part in other machines.

        Returns:
            Forces: u in N or N m, multipliers, and the full state; `weights` where they were shared.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular.
            AssemblyError: there are passive freedoms (see `Model.hybrid`).
        Source: Khalil and Ibrahim 2004; Gantry-Tau paper, eq. 1.
        """
        given = {"position": position, "velocity": velocity, "acceleration": acceleration}
        weights = self.weights(sharing)
        outputs, evidence, single = self.run("inverse_dynamics", given, start=start, theta=theta, weights=weights)
        return self.forces(outputs, evidence, single, weights)

    def weights(self, sharing: ForceSharing) -> np.ndarray | None:
        """Weights (n_u,) of redundant actuators; None where the motion determines all forces."""
        weights = sharing.weights(self._model.mechanism)
        return weights if self._model.assembly.is_redundant else None

    def run(
        self,
        program: str | Program,
        given: dict[str, object],
        *,
        start: object | None = None,
        theta: object | None = None,
        extra: dict[str, np.ndarray] | None = None,
        weights: np.ndarray | None = None,
    ) -> tuple[dict[str, np.ndarray], Health, bool]:
        """Run a program of this entry whose outputs contain q.

        Args:
            program: its name, or a program built for this entry.
            given: position, and velocity and acceleration as the program needs them.
            start: start values for Newton blocks.
            theta: free parameters.
            extra: further inputs (N, n).
            weights: of redundant actuators (n_u,); all one without them.

        Returns:
            Outputs by name (N, n), the evidence, and whether a single sample was given.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular.
        """
        inputs, single, n = self._inputs(given, start, theta)
        if weights is not None:
            relative = weights / np.exp(np.log(weights).mean())
            inputs["weight"] = np.broadcast_to(relative, (n, len(weights)))
        outputs, evidence = self._run(program, inputs | (extra or {}), n)
        self._require(evidence, inputs, outputs["q"])
        return outputs, evidence, single

    def forces(
        self, outputs: dict[str, np.ndarray], evidence: Health, single: bool, weights: np.ndarray | None = None
    ) -> Forces:
        """The result of a program of forces; `weights` where redundant actuators shared them."""
        state = self._state(outputs, evidence)
        loops = self._model.assembly.loops
        pick = (lambda array: array[0]) if single else (lambda array: array)
        return Forces(
            actuator_names=tuple(actuator.name for actuator in self._model.mechanism.actuators),
            closure_names=tuple(loops.names[i] for i in self._model.assembly.rows),
            force=pick(outputs["force"]),
            closure_force=pick(outputs["closure_force"]),
            tree_force=pick(outputs["tree_force"]),
            weights=weights,
            state=_single(state) if single else state,
        )

    def forward_dynamics(
        self,
        position: object,
        velocity: object,
        force: object,
        *,
        start: object | None = None,
        theta: object | None = None,
    ) -> State:
        """Motion that actuator forces give: all accelerations, with positions and velocities closed around the given.

        Args:
            position, velocity: the given motion (N, n) or (n,), SI.
            force: actuator forces (N, n_u) or (n_u,), N or N m.
            start: start values for Newton blocks.
            theta: free parameters.

        Returns:
            The full state; the given accelerations are among `a`.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach, or singular (at a leg-side singularity the reduced mass matrix does not exist).
        """
        inputs, single, n = self._inputs({"position": position, "velocity": velocity, "force": force}, start, theta)
        outputs, evidence = self._run("forward_dynamics", inputs, n)
        self._require(evidence, inputs, outputs["q"])
        state = self._state(outputs, evidence)
        return _single(state) if single else state

    def regressor(
        self,
        position: object,
        velocity: object,
        acceleration: object,
        *,
        output: str = "actuators",
        start: object | None = None,
        theta: object | None = None,
    ) -> np.ndarray:
        """Regressor Y (N, n_out, n_pi) with forces = Y pi.

        Args:
            position, velocity, acceleration: the given motion (N, n), SI.
            output: "actuators" for actuator forces u, "joints" for forces on the driven coordinates (A^T u).
            start: start values for Newton blocks.
            theta: free parameters.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular.
        """
        if output not in ("actuators", "joints"):
            raise InputError(Problem(where="output", what=f"{output!r} is unknown", remedy="actuators or joints"))
        given = {"position": position, "velocity": velocity, "acceleration": acceleration}
        inputs, single, n = self._inputs(given, start, theta)
        outputs, evidence = self._run(f"regressor_{output}", inputs, n)
        self._require(evidence, inputs)
        n_pi = len(self._model.parameters)
        Y = outputs["regressor"].reshape(n, -1, n_pi)
        return np.asarray(Y[0] if single else Y)

    def embedding(self, position: object, *, start: object | None = None) -> np.ndarray:
        """Matrix G (N, n_v, m): velocities of all coordinates per unit of the given velocities."""
        inputs, single, n = self._inputs({"position": position}, start, None)
        inputs["velocity"] = np.zeros((n, self.entry.velocity.size))
        outputs, evidence = self._run("embedding", inputs, n)
        self._require(evidence, inputs, outputs["q"])
        G = outputs["G"].reshape(n, self.entry.velocity.size, -1).transpose(0, 2, 1)
        return np.asarray(G[0] if single else G)

    def actuator_jacobian(self, position: object, *, start: object | None = None) -> np.ndarray:
        """Jacobian J (N, n_u, m): actuator velocities per unit of the given velocities."""
        return np.asarray(self._model.assembly.loops.transmission @ self.embedding(position, start=start))

    def _inputs(
        self, given: dict[str, object], start: object | None, theta: object | None
    ) -> tuple[dict[str, np.ndarray], bool, int]:
        """Checked arrays of the motion, the start values and the free parameters."""
        machine, shape = self._model.machine, self._model.topology
        names, units = self._model.output_ports("actuators")
        known = self.ports | {"force": Port(name="force", columns=names, units=units)}
        known["actuator_acceleration"] = self.entry.leading_acceleration(len(self._model.assembly.leading))
        ports = {name: known[name] for name in given}
        arguments = dict(given)
        if start is not None:
            ports["start"] = Port(name="start", columns=shape.coordinate_names, units=("",) * shape.n_q)
            arguments["start"] = start
        if theta is not None:
            ports["theta"] = Port(name="theta", columns=machine.free, units=("",) * len(machine.free))
            arguments["theta"] = theta
        inputs, single = checked(ports, arguments)
        n = len(inputs["position"])
        table = self._model.mechanism.parameters
        nominal_theta = np.array([table[name].value for name in machine.free]).reshape(1, -1)
        inputs.setdefault("start", np.broadcast_to(self._model.assembly.q, (n, shape.n_q)))
        inputs.setdefault("theta", np.broadcast_to(nominal_theta, (n, len(machine.free))))
        if self._model.assembly.is_redundant:
            inputs["weight"] = np.ones((n, len(names)))
        return inputs, single, n

    def _run(
        self,
        name: str | Program,
        inputs: dict[str, np.ndarray],
        n: int,
        tolerance: float = NEWTON_STEP,
        work: int = 0,
    ) -> tuple[dict[str, np.ndarray], Health]:
        """Run a program: as machine code where that pays, else in chunks, so that intermediate values stay small."""
        program = self.program(name) if isinstance(name, str) else name
        kernel = self._kernel(program, inputs, max(n, work))
        if kernel is not None:
            results, found = run_kernel(kernel, inputs, n)
            if (found.is_reached & found.is_regular).all():
                return results, found
            # the interpreter, which keeps the evidence of every single loop, says what is wrong
        outputs: dict[str, np.ndarray] = {}
        parts = []
        for first in range(0, max(n, 1), CHUNK):
            size = min(CHUNK, n - first)
            chunk = {key: np.ascontiguousarray(array[first : first + size]) for key, array in inputs.items()}
            results, evidence = program.run(chunk, size, tolerance)
            parts.append(health(program, evidence))
            if size == n:
                return results, parts[0]
            for key, array in results.items():
                outputs.setdefault(key, np.empty((n, array.shape[1])))[first : first + size] = array
        return outputs, joined(parts)

    def compiled(self, program: str, outputs: tuple[str, ...]) -> CompiledFunction:
        """Machine code of a program with only the outputs that are wanted: for control loops and long streams.

        It checks nothing: inputs are contiguous arrays in the order of the ports, and the health that it reports (least
        discriminant, least relative pivot, Newton's residual and iterations) is the caller's to read.

        Args:
            program: name of a program, such as "inverse_dynamics".
            outputs: names among its outputs, such as ("force",).

        Raises:
            InputError: no such output.
            EngineError: there is no compiler, or it fails.
        """
        evaluator = self._model.evaluator
        chosen = evaluator if isinstance(evaluator, Compiled) else Compiled()
        return chosen.build(self.source_function(program, outputs))

    def source_function(self, program: str, outputs: tuple[str, ...]) -> CFunction:
        """A program with only the outputs that are wanted, to be printed as C beside others.

        Args:
            program: name of a program, such as "inverse_dynamics".
            outputs: names among its outputs, such as ("force",).

        Raises:
            InputError: no such output.
        """
        found = self.program(program)
        unknown = [name for name in outputs if name not in found.outputs]
        if unknown:
            remedy = f"outputs are: {', '.join(found.outputs)}"
            raise InputError(Problem(where=name, what=f"is no output of {program}", remedy=remedy) for name in unknown)
        return c_function(found, self._empty_inputs(), outputs)

    def _empty_inputs(self) -> dict[str, np.ndarray]:
        """Arrays (0, n) of all inputs that programs of this entry may have: their widths."""
        model, size = self._model, self.entry.velocity.size
        sizes = {
            "theta": len(model.machine.free),
            "position": self.entry.position.size,
            "velocity": size,
            "acceleration": size,
            "force": len(model.mechanism.actuators),
            "weight": len(model.mechanism.actuators),
            "actuator_acceleration": len(model.assembly.leading),
            "start": model.topology.n_q,
        }
        return {name: np.empty((0, count)) for name, count in sizes.items()}

    def _kernel(self, program: Program, inputs: dict[str, np.ndarray], n: int) -> CompiledFunction | None:
        """Machine code of a program, made once and kept (a failure too); None where it is interpreted."""
        if program not in self._kernels:
            if not self._model.evaluator.wants_code(program, n):
                return None
            self._kernels[program] = self._model.evaluator.kernel(c_function(program, inputs))
        return self._kernels[program]

    def _require(self, found: Health, inputs: dict[str, np.ndarray], q: np.ndarray | None = None) -> None:
        """Raise unless every sample is in reach and regular.

        Raises:
            PoseError: which samples and loops, by how much, and the condition number.
        """
        what = f"{self.entry.name} motion" if "velocity" in inputs else f"{self.entry.name} position"
        reached, regular = found.is_reached, found.is_regular
        if (reached & regular).all():
            return
        bad = np.flatnonzero(reached & ~regular)
        problems = []
        if not reached.all():
            outputs, _ = self.program("diagnosis").run(inputs, len(reached))
            problems += unreached(found, gaps(outputs["extremes"], found.discriminants), what)
        if len(bad):
            condition = self.condition({key: array[bad] for key, array in inputs.items()} if q is None else q[bad])
            problems += singular(bad, condition, len(reached), what)
        raise PoseError(problems)

    def condition(self, q: np.ndarray | dict[str, np.ndarray]) -> np.ndarray:
        """Condition numbers (N,) of assembled poses, free of units (see `condition_numbers`).

        Args:
            q: full coordinates (N, n_q), or checked inputs from which they are to be computed.
        """
        if isinstance(q, dict):
            outputs, _ = self._run("kinematics_0", q, len(q["position"]))
            q = outputs["q"]
        return condition_numbers(self._model.assembly, self.entry, np.atleast_2d(q))

    def _state(self, outputs: dict[str, np.ndarray], found: Health) -> State:
        shape = self._model.topology
        return State(
            coordinate_names=shape.coordinate_names,
            velocity_names=shape.velocity_names,
            q=outputs["q"],
            v=outputs.get("v"),
            a=outputs.get("a"),
            health=found,
        )


def _single(state: State) -> State:
    return State(
        coordinate_names=state.coordinate_names,
        velocity_names=state.velocity_names,
        q=state.q[0],
        v=None if state.v is None else state.v[0],
        a=None if state.a is None else state.a[0],
        health=state.health,
    )
