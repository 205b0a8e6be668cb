"""Evaluation of programs on batches, interpreted or as machine code, branch by branch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import AssemblyError, InputError, PoseError
from tauloop.common.names.lazy import lazy_functions
from tauloop.compiler.c.calling.compiled import CompiledFunction
from tauloop.compiler.c.calling.evaluator import (
    Compiled,
    Evaluator,
    Kernel,
    Outcome,
    SampleCall,
    c_function,
    compiled_diagnostics,
    compiled_once,
    interpreted_once,
    nothing,
    run_kernel,
)
from tauloop.compiler.c.calling.threads import LARGEST_PIECE, in_pieces, share_out
from tauloop.compiler.c.printing.source import CFunction
from tauloop.compiler.catalogue import DIAGNOSIS, KINEMATICS
from tauloop.compiler.expressions import Catalogue, ProgramSpec
from tauloop.compiler.limits import FEW_STEPS, UNIT_NORM
from tauloop.compiler.program import NEWTON_ITERATIONS, Newton, Program
from tauloop.compiler.state import SolveDiagnostics, State, Turns, joined, solve_diagnostics
from tauloop.equations.assembly.limits import Limits
from tauloop.equations.ports import (
    PLATFORM,
    Port,
    checked,
    coordinates_text,
    entry_ports,
    force_port,
    is_one_row,
    require_finite,
)
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model.tool import LOAD_PORTS

if TYPE_CHECKING:
    from tauloop.compiler.c.calling.tracking import Tracker
    from tauloop.equations.assembly.elsewhere import assembled_at
    from tauloop.equations.assembly.singular_kinds import singular_kind
    from tauloop.model.forces.tension_terms import tension_terms
    from tauloop.model.positions.diagnosis import gaps, overflowed, singular, unreached
else:
    (assembled_at,) = lazy_functions("tauloop.equations.assembly.elsewhere", "assembled_at")
    (singular_kind,) = lazy_functions("tauloop.equations.assembly.singular_kinds", "singular_kind")
    gaps, overflowed, singular, unreached = lazy_functions(
        "tauloop.model.positions.diagnosis", "gaps", "overflowed", "singular", "unreached"
    )
    (tension_terms,) = lazy_functions("tauloop.model.forces.tension_terms", "tension_terms")

#: Number of samples evaluated together; bounds the memory of intermediate values.
RUN_CHUNK = 8192
#: Number of steps of a continuation along a straight line in positions.
CONTINUATION_STEPS = 12


@final
class Runner:
    """Runs programs for the platform's or the actuators' motion, each sample on its branch."""

    def __init__(self, catalogue: Catalogue, evaluator: Evaluator, limits: Limits) -> None:
        """Store the arguments; programs are built on first use.

        Args:
            catalogue: builder of the programs.
            evaluator: interpreter of programs, or compiler that produces machine code.
            limits: limits of the machine, for the diagnostics of states.
        """
        self.catalogue = catalogue
        self.evaluator = evaluator
        self.limits = limits
        self.ports = catalogue.ports
        self.assembly = catalogue.assembly
        self.mechanism = self.assembly.mechanism
        self.topology = self.assembly.topology
        self._quaternions = self.ports.whole_quaternions(self.topology)
        self._kernels: dict[tuple[Program, bool], Kernel | None] = {}
        self._trackers: dict[tuple[Program, bool, bool], Tracker | None] = {}
        self._other_branches: dict[tuple[int, ...], Self] = {}
        self._once: dict[ProgramSpec, SampleCall] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without machine code, which another process builds again."""
        return type(self), (self.catalogue, self.evaluator, self.limits)

    def on_branch_of(self, q: np.ndarray) -> Self:
        """Return the runner for the branch of closed forms on which a pose is.

        Args:
            q: assembled coordinates (n_q,).

        Raises:
            AssemblyError: the pose is on another branch and not assembled.
        """
        return self._on_branch(tuple(self._signs(q[None, :])[0].tolist()), q)

    def _on_branch(self, signs: tuple[int, ...], q: np.ndarray) -> Self:
        if signs == tuple(self.catalogue.branches.reference_signs.tolist()):
            return self
        if signs not in self._other_branches:
            catalogue = self.catalogue.at(assembled_at(self.assembly, q))
            self._other_branches[signs] = type(self)(catalogue, self.evaluator, self.limits)
        return self._other_branches[signs]

    def program(self, spec: ProgramSpec) -> Program:
        """Return a program of this machine."""
        return self.catalogue.program(spec)

    def run(
        self,
        program: ProgramSpec | Program,
        arguments: dict[str, object],
        *,
        start: object | None = None,
        theta: object | None = None,
        extra: dict[str, np.ndarray] | None = None,
        weights: np.ndarray | None = None,
        preloads: np.ndarray | None = None,
    ) -> tuple[dict[str, np.ndarray], SolveDiagnostics, bool]:
        """Run a program whose outputs contain q.

        Args:
            program: program of the catalogue, or a program that was built for this motion.
            arguments: position; velocity and acceleration if the program needs them.
            start: start values for Newton blocks.
            theta: free parameters.
            extra: further inputs (N, n).
            weights: weights of redundant actuators (n_u,); default one.
            preloads: preloads of cables (k,); default none.

        Returns:
            Outputs by name (N, n), the diagnostics, and whether a single sample was given.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular.
        """
        inputs, single, n = self.inputs(arguments, start, theta)
        if weights is not None:
            relative = weights / np.exp(np.log(weights).mean())
            inputs["weight"] = np.broadcast_to(relative, (n, len(weights)))
        if preloads is not None and "preload" in inputs:
            inputs["preload"] = np.broadcast_to(preloads, (n, len(preloads)))
        outputs, diagnostics = self.settled(program, inputs | (extra or {}), n)
        self.require(diagnostics, inputs)
        self._require_tensions(diagnostics, outputs)
        return outputs, diagnostics, single

    def once(self, spec: ProgramSpec, *motion: object) -> Outcome:
        """Return one sample at nominal parameters from the reference pose, without batch overhead.

        The result is None if the sample fails a check, so that a batch must explain the failure.

        Args:
            spec: specification of the program.
            motion: inputs of the program in their order, arrays or lists (n,).
        """
        if spec not in self._once:
            self._once[spec] = self._sample_call(spec)
        position, *others = map(_row, motion)
        outcome = self._once[spec](position, *others)
        if outcome is None:
            return None
        for i in self._quaternions:
            quaternion = np.asarray(position)[i : i + 4]
            if not abs(quaternion.dot(quaternion) - 1.0) < UNIT_NORM:
                return None
        return outcome

    def _sample_call(self, spec: ProgramSpec) -> SampleCall:
        program = self.program(spec)
        if not self.evaluator.wants_code(program, 1):
            empty = {name: np.zeros(array.shape[1]) for name, array in self.empty_inputs().items()}
            return interpreted_once(program, spec.inputs, {**empty, **self.nominal})
        kernel = self._kernel(program, self.empty_inputs(), 1)
        if not isinstance(kernel, CompiledFunction) or not {*spec.inputs} <= {*kernel.reads}:
            return nothing
        return compiled_once(kernel, spec.inputs)

    @cached_property
    def nominal(self) -> dict[str, np.ndarray]:
        """Values of optional inputs, such as the reference pose and nominal parameters, by name."""
        return {
            "position": self.ports.at(self.assembly.q),
            "start": self.assembly.q,
            "theta": self.mechanism.parameters.vector(self.catalogue.free),
            "weight": np.ones(len(self.mechanism.actuators)),
            "preload": np.zeros(len(self.mechanism.cables)),
        }

    def kinematics(
        self, arguments: dict[str, object], start: object | None = None, theta: object | None = None
    ) -> State:
        """Return the state of positions and, if given, of velocities and accelerations.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular.
        """
        spec = KINEMATICS[len(arguments) - 1]
        if start is None and theta is None and (outcome := self.once(spec, *arguments.values())):
            return self.state(*outcome, None)
        outputs, health, single = self.run(spec, arguments, start=start, theta=theta)
        return self.state(outputs, health, start, single)

    def reached(self, arguments: dict[str, object], start: object | None) -> State:
        """Return the state as `kinematics` does, without errors for poses out of reach."""
        inputs, single, n = self.inputs(arguments, start, None)
        return self.state(*self.settled(KINEMATICS[len(arguments) - 1], inputs, n), start, single)

    def settled(
        self, program: ProgramSpec | Program, inputs: dict[str, np.ndarray], n: int, work: int = 0
    ) -> tuple[dict[str, np.ndarray], SolveDiagnostics]:
        """Run a program, and follow samples far from their starts so that they keep their mode.

        Newton's method finds a pose near its start in a few steps. After more steps it may have
        reached another assembly mode, or failed although a pose exists. For such samples, a
        straight line of positions is followed in small steps, and the sample is solved again from
        its end.

        `work` is the total number of samples if the given samples are a part of them.

        Returns:
            Outputs by name, and the diagnostics of every sample.
        """
        outputs, diagnostics = self.evaluate(program, inputs, n, work, is_explained=False)
        if diagnostics.is_sound:
            return outputs, diagnostics
        far = (diagnostics.steps > FEW_STEPS) | ((diagnostics.steps > 0) & ~diagnostics.is_reached)
        if not far.any():
            if diagnostics.all_sound or not diagnostics.is_of_machine_code:
                return outputs, diagnostics
            return self.evaluate(program, inputs, n, work)
        start = np.array(inputs["start"])
        start[far], _ = self.walked(
            {name: inputs[name][far] for name in ("position", "start", "theta")}
        )
        return self.evaluate(program, inputs | {"start": start}, n, work)

    def walked(
        self, inputs: dict[str, np.ndarray], steps: int = CONTINUATION_STEPS
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return coordinates (N, n_q) near positions (N, n), followed along straight lines.

        If a step of a line needs many Newton steps, the line is repeated with smaller steps.

        Returns:
            The coordinates, and whether the loops stayed open at a point before the end of each
            line (N,).
        """
        current = inputs["start"]
        n = len(current)
        origin = self.ports.at(current)
        max_iterations = np.zeros(n)
        is_reached = np.ones(n, dtype=bool)
        has_opened = np.zeros(n, dtype=bool)
        for fraction in np.linspace(0.0, 1.0, steps + 1)[1:]:
            position = origin + fraction * (inputs["position"] - origin)
            for i in self._quaternions:
                position[:, i : i + 4] /= np.linalg.norm(
                    position[:, i : i + 4], axis=1, keepdims=True
                )
            has_opened |= ~is_reached
            waypoint = inputs | {"position": position, "start": current}
            outputs, health = self.evaluate(
                KINEMATICS[0], waypoint, n, n * steps, is_explained=False
            )
            max_iterations = np.maximum(max_iterations, health.steps)
            is_reached = health.is_reached
            current = np.where(is_reached[:, None], outputs["q"], current)
        may_have_left_mode = (max_iterations > FEW_STEPS) & (
            (max_iterations < NEWTON_ITERATIONS) | is_reached
        )
        if steps == CONTINUATION_STEPS and may_have_left_mode.any():
            repeated = {name: array[may_have_left_mode] for name, array in inputs.items()}
            q, opened = self.walked(repeated, CONTINUATION_STEPS**2)
            current[may_have_left_mode] = q
            has_opened[may_have_left_mode] = opened
        return current, has_opened

    def followed(self, position: np.ndarray, start: np.ndarray) -> State:
        """Return the state at positions (N, n), reached along lines from starts (N, n_q).

        Machine code follows all lines in one call and reports the maximum number of iterations.
        Failed lines are repeated.

        Raises:
            PoseError: out of reach or singular.
        """
        inputs, _, n = self.inputs({"position": position}, start, None)
        kernel = None
        if self.walks_in_code:
            kernel = self._kernel(self.program(KINEMATICS[0]), inputs, n * CONTINUATION_STEPS)
        if kernel is None:
            inputs["start"], has_opened = self.walked(inputs)
            outputs, diagnostics = self.settled(KINEMATICS[0], inputs, n)
        else:
            outputs, is_sound = kernel.run(
                inputs,
                n,
                continuation=(self.ports.at(start[0]) if n else position, CONTINUATION_STEPS),
            )
            diagnostics = compiled_diagnostics(outputs.pop("health"), is_sound)
            far = ~diagnostics.is_reached | (diagnostics.steps > FEW_STEPS)
            # machine code reports the maximum number of iterations of each line
            has_opened = diagnostics.steps >= NEWTON_ITERATIONS
            if not is_sound and far.any():
                new_start = np.array(outputs["q"])
                new_start[far], has_opened[far] = self.walked(
                    {name: array[far] for name, array in inputs.items()}
                )
                inputs_again = inputs | {"start": new_start}
                outputs, diagnostics = self.evaluate(KINEMATICS[0], inputs_again, n)
        self.require(diagnostics, inputs)
        return replace(self.state(outputs, diagnostics, start), has_opened=has_opened)

    def inputs(
        self, motion: dict[str, object], start: object | None, theta: object | None
    ) -> tuple[dict[str, np.ndarray], bool, int]:
        """Return checked arrays of the motion, start values and free parameters.

        `evaluate` checks that values are finite, unless machine code does.
        """
        arguments = motion | {
            name: value for name, value in (("start", start), ("theta", theta)) if value is not None
        }
        inputs, single = checked(
            {name: self.known_ports[name] for name in arguments}, arguments, finite=False
        )
        n = len(inputs["position"])
        defaults = ["start", "theta"]
        if self.assembly.is_redundant:
            defaults += ["weight", "preload"]
        for name in defaults:
            inputs.setdefault(
                name, np.broadcast_to(self.nominal[name], (n, len(self.nominal[name])))
            )
        return inputs, single, n

    @cached_property
    def iterates(self) -> bool:
        """Whether any position needs Newton's method."""
        return any(isinstance(step, Newton) for step in self.program(KINEMATICS[0]).steps)

    @property
    def walks_in_code(self) -> bool:
        """Whether machine code can follow straight lines; it cannot with unit quaternions."""
        return self.iterates and not self._quaternions

    def pose(self, q: object) -> np.ndarray:
        """Return checked coordinates (n_q,) of one pose.

        Raises:
            InputError: wrong shapes or values, or several poses.
        """
        arrays, single = checked({"start": self.known_ports["start"]}, {"start": q})
        if not single:
            raise InputError.of(
                "start",
                f"has {counted(len(arrays['start']), 'row')}",
                "give the coordinates of one pose",
            )
        return arrays["start"][0]

    @cached_property
    def known_ports(self) -> dict[str, Port]:
        """Ports of all possible inputs of a program: motion, loads and start values."""
        force = force_port(self.assembly)
        free = self.catalogue.free
        names = self.topology.coordinate_names
        leading = self.ports.leading_acceleration(len(self.assembly.leading))
        start = Port(name="start", columns=names, units=("",) * len(names))
        theta = Port(name="theta", columns=free, units=("",) * len(free))
        others = {port.name: port for port in (force, self.ports.effort, leading, start, theta)}
        return {**self.ports.motion, **others, **LOAD_PORTS, **self.ports.products(force)}

    def evaluate(
        self,
        program: ProgramSpec | Program,
        inputs: dict[str, np.ndarray],
        n: int,
        work: int = 0,
        *,
        is_explained: bool = True,
    ) -> tuple[dict[str, np.ndarray], SolveDiagnostics]:
        """Run a program with each sample on the branch of its start, compiled if that is faster.

        If a sample fails in machine code, the interpreter repeats all samples, because it has the
        diagnostics of every loop. Without `is_explained` the diagnostics are those of all loops
        together, and nothing is repeated.

        Returns:
            Outputs by name, and the diagnostics of every sample.
        """
        if self._is_own_branch(inputs["start"]):
            return self._run_on_this_branch(program, inputs, n, work, is_explained)
        self._require_finite(inputs)
        parts = self.by_branch(inputs["start"])
        if isinstance(program, Program):
            what = "is on another branch of the closed forms than the reference pose"
            raise AssemblyError.of("start", what, "make it the reference pose (`Model.at`)")
        outputs: dict[str, np.ndarray] = {}
        healths = []
        for runner, where in parts:
            chosen = {key: array[where] for key, array in inputs.items()}
            results, health = runner._run_on_this_branch(
                program, chosen, len(where), max(n, work), is_explained
            )
            healths.append(health)
            for key, array in results.items():
                outputs.setdefault(key, np.empty((n, array.shape[1])))[where] = array
        order = np.argsort(np.concatenate([where for _, where in parts]))
        return outputs, joined(healths).at(order)

    def by_branch(self, start: np.ndarray) -> list[tuple[Self, np.ndarray]]:
        """Return a runner for each branch of the starts (N, n_q), with its samples' indices."""
        if self._is_own_branch(start):
            return [(self, np.arange(len(start)))]
        signs = self._signs(start)
        patterns, first, number = np.unique(signs, axis=0, return_index=True, return_inverse=True)
        return [
            (
                self._on_branch(tuple(pattern.tolist()), start[first[k]]),
                np.flatnonzero(number.ravel() == k),
            )
            for k, pattern in enumerate(patterns)
        ]

    def _is_own_branch(self, start: np.ndarray) -> bool:
        """Return whether all starts (N, n_q) are on this branch."""
        # without given starts, all samples share the reference pose as a view of one row
        if np.may_share_memory(start, self.assembly.q) or not len(start):
            return True
        reference_signs = self.catalogue.branches.reference_signs
        if not len(reference_signs):
            return True
        signs = self._signs(start[:1] if is_one_row(start) else start)
        return bool((signs == reference_signs).all())

    def _signs(self, q: np.ndarray) -> np.ndarray:
        """Return the signs (N, k) of the roots of the closed forms at poses (N, n_q)."""
        branches = self.catalogue.branches
        kernel = self._kernel(branches.slopes, {"q": q}, len(q))
        if kernel is None:
            return branches.signs(q)
        outputs, _ = kernel.run({"q": q}, len(q))
        return branches.signs_of(outputs["slopes"])

    def _require_finite(self, inputs: dict[str, np.ndarray]) -> None:
        """Raise an error if values of inputs are not finite."""
        require_finite(
            self.known_ports, {key: inputs[key] for key in self.known_ports.keys() & inputs.keys()}
        )

    def _run_on_this_branch(
        self,
        program: ProgramSpec | Program,
        inputs: dict[str, np.ndarray],
        n: int,
        work: int,
        is_explained: bool = True,
    ) -> tuple[dict[str, np.ndarray], SolveDiagnostics]:
        """Run a program on this branch."""
        program = program if isinstance(program, Program) else self.program(program)
        kernel = self._kernel(program, inputs, max(n, work))
        if kernel is not None:
            results, state = run_kernel(kernel, inputs, n)
            if state.all_sound:
                self._require_finite(
                    {key: array for key, array in inputs.items() if key not in kernel.reads}
                )
                return results, state
            if not is_explained:
                self._require_finite(inputs)
                return results, state
            # the interpreter has diagnostics of every loop, which explain the failure
        self._require_finite(inputs)
        outputs: dict[str, np.ndarray] = {}
        parts = []
        for first in range(0, max(n, 1), RUN_CHUNK):
            size = min(RUN_CHUNK, n - first)
            chunk = {
                key: np.ascontiguousarray(array[first : first + size])
                for key, array in inputs.items()
            }
            results, diagnostics = program.run(chunk, size)
            parts.append(solve_diagnostics(program, diagnostics, results))
            if size == n:
                return results, parts[0]
            for key, array in results.items():
                outputs.setdefault(key, np.empty((n, array.shape[1])))[first : first + size] = array
        return outputs, joined(parts)

    def attempt(
        self, program: Program, inputs: dict[str, np.ndarray], n: int
    ) -> tuple[dict[str, np.ndarray], SolveDiagnostics]:
        """Run a program of this branch once, without repeating failed samples.

        If machine code is used, the diagnostics are those of all loops together.

        Returns:
            Outputs by name, and the diagnostics of every sample.

        Raises:
            InputError: values are not finite.
        """
        self._require_finite(inputs)
        kernel = self._kernel(program, inputs, n)
        if kernel is None:
            return self._run_on_this_branch(program, inputs, n, n)
        return run_kernel(kernel, inputs, n)

    def compiled(self, program: ProgramSpec, outputs: tuple[str, ...]) -> CompiledFunction:
        """Return machine code of a program with the wanted outputs, for long streams of samples.

        The code checks nothing. Inputs must be contiguous arrays in the order of the ports, and the
        caller must read the reported health (smallest discriminant, smallest relative pivot,
        Newton's residual and number of iterations).

        Args:
            program: specification of the program.
            outputs: names of outputs, such as ("force",).

        Raises:
            InputError: an output does not exist.
            EngineError: no compiler was found, or the compiler fails.
        """
        evaluator = self.evaluator if isinstance(self.evaluator, Compiled) else Compiled()
        function = evaluator.build(self.source_function(program, outputs))
        function.nominal = self.nominal
        return function

    def source_function(self, program: ProgramSpec, outputs: tuple[str, ...]) -> CFunction:
        """Return a program with only these outputs, to be printed as C together with others.

        Args:
            program: specification of the program.
            outputs: names of outputs, such as ("force",).

        Raises:
            InputError: an output does not exist.
        """
        built = self.program(program)
        InputError.raise_if_any(
            unknown_names(outputs, built.outputs, f"is not an output of {program.name}")
        )
        return c_function(built, self.empty_inputs(), outputs)

    def empty_inputs(self) -> dict[str, np.ndarray]:
        """Return arrays (0, n) of all possible inputs, which define their sizes."""
        force = len(self.mechanism.actuators)
        sizes = {
            "theta": len(self.catalogue.free),
            **dict.fromkeys(("weight", "measured", "measured_speed", "spread"), force),
            "preload": len(self.mechanism.cables),
            "start": self.topology.n_q,
            **dict.fromkeys(("momentum_rate", "last_momentum"), self.topology.n_v),
            "last_external_force": len(self.assembly.independent),
            **dict.fromkeys(("period", "bandwidth"), 1),
            **{name: port.size for name, port in self.known_ports.items()},
        }
        return {name: np.empty((0, count)) for name, count in sizes.items()}

    def _kernel(self, program: Program, inputs: dict[str, np.ndarray], n: int) -> Kernel | None:
        """Return cached machine code of a program; None if it is to be interpreted."""
        key = program, self.evaluator.is_large(n)
        try:
            return self._kernels[key]
        except KeyError:
            if not self.evaluator.wants_code(program, n):
                return None
        kernel = self._kernels[key] = self.evaluator.kernel(c_function(program, inputs), n)
        if kernel is not None:
            kernel.nominal = self.nominal
        return kernel

    def tracker(self, samples: int, in_lanes: bool) -> Tracker | None:
        """Return cached machine code that follows motions with this number of samples, or None."""
        program = self.program(KINEMATICS[0])
        key = (program, self.evaluator.is_large(samples), in_lanes)
        if key not in self._trackers:
            function = c_function(program, self.empty_inputs(), ("q",))
            self._trackers[key] = self.evaluator.tracker(function, samples, in_lanes=in_lanes)
        return self._trackers[key]

    def require(self, health: SolveDiagnostics, inputs: dict[str, np.ndarray]) -> None:
        """Raise an error unless every sample is within reach and regular.

        Raises:
            PoseError: the message lists samples, loops with their gaps, and condition numbers.
        """
        self._require_unit_quaternions(inputs["position"])
        what = (
            f"{self.ports.name} motion" if "velocity" in inputs else f"{self.ports.name} position"
        )
        if health.all_sound:
            return
        reached, regular, overflow = health.is_reached, health.is_regular, health.has_overflowed
        bad = np.flatnonzero(reached & ~regular & ~overflow)
        problems = []
        if not reached.all():
            outputs, _ = self.evaluate(DIAGNOSIS, inputs, len(reached))
            gap = gaps(outputs["extremes"], health.discriminants)
            problems += unreached(health, gap, what, self.assembly.loops.length)
        if overflow.any():
            problems.append(overflowed(np.flatnonzero(overflow), len(reached), what))
        if len(bad):
            outputs, _ = self.settled(
                KINEMATICS[0], {key: array[bad] for key, array in inputs.items()}, len(bad)
            )
            condition = self.condition(outputs["q"])
            kind = singular_kind(self.assembly, outputs["q"][int(np.argmax(condition))])
            problems.append(singular(bad, condition, kind, len(reached), what))
        q = self.ports.known_coordinates(inputs["position"], self.topology.n_q)
        raise PoseError([*self.limits.degrees_suspected(q), *problems])

    def _require_unit_quaternions(self, position: np.ndarray) -> None:
        """Raise an error if quaternions in positions (N, n) do not have unit norm.

        Raises:
            InputError: the message states the sample and the error of the norm.
        """
        if not self._quaternions:
            return
        errors = [0.0]

        def check(piece: slice) -> None:
            for i in self._quaternions:
                quaternion = position[piece, i : i + 4]
                squares = np.einsum("ij,ij->i", quaternion, quaternion)
                errors.append(max(squares.max() - 1.0, 1.0 - squares.min()))

        pieces = [slice(k, k + LARGEST_PIECE) for k in range(0, len(position), LARGEST_PIECE)]
        share_out(pieces, self.evaluator.threads, check)
        if max(errors) <= 2.0 * UNIT_NORM:
            return
        for i in self._quaternions:
            norms = np.abs(np.linalg.norm(position[:, i : i + 4], axis=1) - 1.0)
            worst = int(np.argmax(norms))
            what = (
                f"is not a unit quaternion at sample {worst}: its norm differs from 1 by "
                f"{norms[worst]:.3g}"
            )
            raise InputError.of(
                self.ports.position.columns[i], what, "divide its four components by the norm"
            )

    def _require_tensions(self, health: SolveDiagnostics, outputs: dict[str, np.ndarray]) -> None:
        """Raise an error unless all cable tensions are within their bounds.

        Raises:
            PoseError: the message states the samples and the missing wrench.
        """
        if health.is_sound:
            return
        bad = np.flatnonzero(~health.is_within)
        if len(bad):
            assembly = self.assembly
            ports = self.ports if assembly.passive else entry_ports(assembly, PLATFORM)
            count = len(assembly.leading) if assembly.passive else ports.velocity.size
            terms = tension_terms(
                assembly, ports, count, outputs["q"][bad], outputs["tree_force"][bad]
            )
            raise PoseError(terms.problems(bad, len(health.missed), f"{self.ports.name} motion"))

    def condition(self, q: np.ndarray) -> np.ndarray:
        """Return dimensionless condition numbers (N,) of assembled poses.

        See `Assembly.pose_conditions`.

        Args:
            q: full coordinates (N, n_q).
        """
        rows = np.atleast_2d(q)
        return self.in_pieces(
            len(rows), lambda part: (self.assembly.pose_conditions(rows[part], self.ports.v),)
        )[0]

    def in_pieces(
        self, n: int, work: Callable[[slice], Sequence[np.ndarray]]
    ) -> Sequence[np.ndarray]:
        """Return arrays (n, ...) computed from slices of n samples on several threads."""
        if n == 1:
            return work(slice(0, 1))
        return in_pieces(n, self.evaluator.threads, work)

    @cached_property
    def turning(self) -> tuple[str, ...]:
        """Names of the angles that loops determine up to full revolutions."""
        topology = self.topology
        known = set(self.ports.q) | {topology.q_of_v[i] for i in self.assembly.frozen}
        index_of = {name: i for i, name in enumerate(topology.coordinate_names)}
        geared: list[tuple[set[int], set[int]]] = []
        for coupling in self.mechanism.couplings:
            ratios = {index_of[name] for name, _ in coupling.terms}
            geared.append((ratios, {index_of[name] for name, _ in coupling.curves}))
        for _ in geared:
            for ratios, curves in geared:
                unknown = ratios - known
                # different angles can give the same value of a curve
                if len(unknown) == 1 and curves - unknown <= known:
                    known |= unknown
        return tuple(
            name
            for i, name in enumerate(topology.coordinate_names)
            if topology.is_angle[i] and i not in known
        )

    @cached_property
    def _turns(self) -> tuple[Turns, Turns]:
        """Origin of the revolutions with and without given start values."""
        with_start = Turns(angles=self.turning, nearest="start")
        return with_start, Turns(angles=self.turning, nearest="reference pose")

    @cached_property
    def given(self) -> str:
        """Kind and names of the given coordinates, such as "platform coordinates x, y, z"."""
        return coordinates_text(self.ports.entry, self.ports.position.columns)

    def state(
        self,
        outputs: dict[str, np.ndarray],
        health: SolveDiagnostics,
        start: object | None,
        single: bool = False,
    ) -> State:
        """Return the state of a run from a start; without the axis of samples if it is single."""
        topology = self.topology
        state = State(
            given=self.given,
            coordinate_names=topology.coordinate_names,
            velocity_names=topology.velocity_names,
            q=outputs["q"],
            v=outputs.get("v"),
            a=outputs.get("a"),
            health=health,
            limits=self.limits,
            turns=self._turns[start is None],
        )
        return state.single() if single else state


def _row(argument: object) -> object:
    """Return a list or tuple of numbers as an array, and any other argument unchanged."""
    if isinstance(argument, list | tuple) and all(type(item) in (float, int) for item in argument):
        with suppress(OverflowError):
            return np.array(argument, dtype=float)
    return argument
