"""The sampled control loop around a machine: what goes into it, and the loop itself in Python and as machine code.

Between samples the forces are constant and the platform's coordinates are integrated by an explicit method with fixed
steps; quaternions are kept at unit length.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tauloop.assembly.singular_kinds import singular_kind
from tauloop.codegen.evaluator import Compiled
from tauloop.codegen.library import Callback, Library
from tauloop.errors import InputError, PoseError, Problem
from tauloop.integrate.integrators import Method
from tauloop.integrate.interpreted import InterpretedProblem as Dynamics
from tauloop.integrate.interpreted import Run, Stepped
from tauloop.integrate.tableau import Tableau
from tauloop.model import Model
from tauloop.programs.state import CONVERGED, SMALLEST_PIVOT
from tauloop.records import dataclass
from tauloop.simulation.controllers.laws import RUNGE_KUTTA_4, Compensation, Controller
from tauloop.simulation.controllers.source import WORST, loop_source

#: What is said of a motion that has grown beyond numbers.
NOT_FINITE = "the motion is no longer finite shortly before {:.6g} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """Everything that a run of the control loop needs.

    Attributes:
        plant: the machine that moves.
        model: the machine that the controller believes in.
        controller: the law.
        method: the integrator between samples.
        max_steps: after which it is given up.
        substeps: parts of a sample, in which the delay is counted: the steps of a method without an error.
        delay: from measurement to force, in such parts.
        period: s.
        position, velocity: start of the platform's motion (n_position,) and (n,).
        q: full coordinates there (n_q,).
        reference: positions, velocities, accelerations to be followed, in the controller's space, (N, ...) each; in
            platform space the positions are all coordinates.
        forward: forces to add at each sample (N, n_u).
        first: forces before the first sample takes effect (n_u,).
        gains: proportional and derivative (2, n).
        limit: largest forces (n_u,), infinite without limit.
        resolution: of the encoders (n_u,).
        differences: whether speeds are differences of measured positions.
    """

    plant: Model
    model: Model
    controller: Controller
    method: Method
    max_steps: int
    substeps: int
    delay: int
    period: float
    position: np.ndarray
    velocity: np.ndarray
    q: np.ndarray
    reference: tuple[np.ndarray, np.ndarray, np.ndarray]
    forward: np.ndarray
    first: np.ndarray
    gains: np.ndarray
    limit: np.ndarray
    resolution: np.ndarray
    differences: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What the loop has done, for the samples that it reached.

    Attributes:
        position, velocity: of the platform (N, ...).
        force: at the actuators, from each sample on (N, n_u).
        pivot: smallest pivot of all eliminations over its typical size.
        residual: largest that is left of the loop equations, m or pure numbers.
        end: why it ended early; empty where it did not.
    """

    position: np.ndarray
    velocity: np.ndarray
    force: np.ndarray
    pivot: float
    residual: float
    end: str


#: More steps than are allowed, as an outcome; and what is said of that, and of steps that become too small.
TOO_LONG = 20
GIVEN_UP = {
    TOO_LONG: "too many steps shortly before {:.6g} s",
    int(Stepped.TOO_SMALL): "no step is short enough for the tolerances shortly before {:.6g} s",
}


def _in_place(loop: Loop) -> Callable[[float, np.ndarray, np.ndarray], None] | None:
    """The correction of the loop's controller, as C calls it."""
    corrected, n = loop.controller.correction(loop), len(loop.limit)
    if corrected is None:
        return None

    def call(time: float, measured: np.ndarray, force: np.ndarray) -> None:
        force[:] = corrected(time, measured[:n].copy(), measured[n:].copy(), force.copy())

    return call


class CompiledLoop:
    """The loop as machine code: the machine, the controller and the integrator in one library."""

    def __init__(
        self, plant: Model, model: Model, controller: Controller, method: Tableau | None = RUNGE_KUTTA_4
    ) -> None:
        """Compile, or find in the cache.

        Args:
            plant: the machine that moves.
            model: the machine that the controller believes in.
            controller: the law; other gains, and other numbers of `control`, need no new compilation.
            method: the integrator between samples: an explicit one, or Radau IIA without it.

        Raises:
            EngineError: there is no compiler, or it fails.
        """
        self._made_for = (plant, model, type(controller), controller.space, method)
        self.source = loop_source(plant, model, controller, method)
        folder = plant.evaluator.folder if isinstance(plant.evaluator, Compiled) else None
        self._run = Library.made(self.source, folder=folder).function("tl_control", "nlldddddd" + "i" + "*" * 20, "n")

    def __call__(self, loop: Loop) -> Trace:
        """Run the loop.

        Raises:
            InputError: it was compiled for another machine, law or method.
        """
        if self._made_for != (
            loop.plant,
            loop.model,
            type(loop.controller),
            loop.controller.space,
            loop.method.tableau,
        ):
            what = "was compiled for another machine, model, law, space or method"
            raise InputError(Problem(where="loop", what=what, remedy="make a CompiledLoop for these"))
        n = len(loop.forward)
        entry = loop.plant.platform.ports
        position, velocity = np.empty((n, entry.position.size)), np.empty((n, entry.velocity.size))
        force, worst = np.empty((n, loop.forward.shape[1])), np.array([1.0, 1e300, 0.0])
        theta = [
            np.array([m.mechanism.parameters[leaf].value for leaf in m.machine.free] + [0.0])
            for m in (loop.plant, loop.model)
        ]
        inputs = [loop.position, loop.velocity, loop.q, *loop.reference, loop.forward, loop.first, *loop.gains]
        inputs += [loop.limit, loop.resolution, *theta]
        arrays = [np.ascontiguousarray(array, dtype=float) for array in inputs] + [position, velocity, force, worst]
        code, method = np.zeros(1), loop.method
        numbers = (method.first, method.rtol, method.atol, method.longest, float(loop.max_steps))
        own = Callback(_in_place(loop), 2 * len(loop.limit), len(loop.limit))
        reached = self._run(
            *(n, loop.substeps, loop.delay, loop.period),
            *(*numbers, int(loop.differences), own.pointer),
            *(*arrays, code),
        )
        own.raise_error()
        least, pivot, residual = worst[:WORST]
        end = ""
        if reached < n:
            q = loop.plant.platform.evaluate(position[reached - 1], start=loop.q).q if reached else loop.q
            end = _reason(loop.plant, q, float(least), float(pivot), float(residual), float(reached * loop.period))
            end = GIVEN_UP.get(int(code[0]), "{}").format(end if code[0] not in GIVEN_UP else reached * loop.period)
        return Trace(
            position=position[:reached],
            velocity=velocity[:reached],
            force=force[:reached],
            pivot=float(pivot),
            residual=float(residual),
            end=end,
        )


def _reason(plant: Model, q: np.ndarray, least: float, pivot: float, residual: float, time: float) -> str:
    if not (least >= 0 and residual < CONVERGED):
        return f"a loop does not close shortly before {time:.6g} s: out of reach (residual {residual:.3g})"
    if not pivot > SMALLEST_PIVOT:
        kind = singular_kind(plant.assembly, q)
        return f"singular pose ({kind}) shortly before {time:.6g} s: pivot at {pivot:.3g} of its typical size"
    return NOT_FINITE.format(time)


class InterpretedLoop:
    """The same loop in Python, step by step: without a compiler, and to check machine code against."""

    def __call__(self, loop: Loop) -> Trace:
        """Run the loop."""
        run = _InterpretedRun(loop)
        try:
            for k in range(len(loop.forward)):
                run.sample(k)
                if k + 1 < len(loop.forward):
                    run.go_on(k)
                if run.end:
                    break
        except PoseError as error:
            run.end = str(error.problems[0])
        return run.trace()


class _Plant(Dynamics):
    """The machine under constant forces; states are positions and velocities of its platform."""

    def __init__(self, loop: Loop) -> None:
        self._loop, self.force = loop, loop.first
        self.pivot, self.residual = 1e300, 0.0

    def rate(self, run: Run, time: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Rates; where the machine cannot be a PoseError says why."""
        platform, n = self._loop.plant.platform, len(self._loop.position)
        state = platform.forward_dynamics(y[:n], y[n:], self.force, start=run.guess)
        run.guess = state.q
        self.pivot = min(self.pivot, float(state.health.smallest_pivot.min()))
        self.residual = max([self.residual, *(float(np.abs(r).max()) for r in state.health.residuals.values())])
        full, a = np.asarray(state.v), np.asarray(state.a)
        shape = self._loop.plant.topology
        rate = np.zeros(shape.n_q)
        for iv, iq in enumerate(shape.q_of_v):
            if iq >= 0:
                rate[iq] = full[iv]
        for q0, v0 in shape.quaternions:
            w, x, y_, z = state.q[q0 : q0 + 4]
            E = np.array([[-x, -y_, -z], [w, z, -y_], [-z, w, x], [y_, -x, w]])
            rate[q0 : q0 + 4] = 0.5 * E @ full[v0 : v0 + 3]
        return np.concatenate([rate[list(platform.ports.q)], a[list(platform.ports.v)]]), np.zeros(0), True

    def back(self, run: Run, y: np.ndarray) -> tuple[np.ndarray, int]:
        """Quaternions of the platform, back to unit length."""
        y, whole = y.copy(), unit_quaternions(self._loop.plant)
        for columns in whole:
            y[columns] /= np.linalg.norm(y[columns])
        return y, int(bool(whole))


class _InterpretedRun:
    """State of one interpreted run."""

    def __init__(self, loop: Loop) -> None:
        self.loop, self.plant, method = loop, _Plant(loop), loop.method
        self.run = Run(
            self.plant,
            method.tableau,
            np.concatenate([loop.position, loop.velocity]),
            guess=loop.q,
            step=method.first,
            rtol=method.rtol,
            atol=method.atol,
            longest=method.longest,
        )
        self._corrected = loop.controller.correction(loop)
        self.estimate, self.past = loop.q.copy(), (loop.q, loop.q, loop.q)
        self.states: list[np.ndarray] = []
        self.forces: list[np.ndarray] = []
        self.last: np.ndarray | None = None
        self.end = ""

    def trace(self) -> Trace:
        """What was reached."""
        n, n_p = len(self.forces), len(self.loop.position)
        states = np.array(self.states[:n]).reshape(n, len(self.run.y))
        return Trace(
            position=states[:, :n_p],
            velocity=states[:, n_p:],
            force=np.array(self.forces).reshape(n, len(self.loop.limit)),
            pivot=self.plant.pivot,
            residual=self.plant.residual,
            end=self.end,
        )

    def go_on(self, k: int) -> None:
        """From one sample to the next; each force takes effect `delay` parts of a sample behind its own."""
        loop, run, j = self.loop, self.run, 0
        while j < loop.substeps:
            since = k * loop.substeps + j - loop.delay
            self.plant.force = loop.first if since < 0 else self.forces[since // loop.substeps]
            run.is_known = False
            j = min(loop.substeps, j + (-since if since < 0 else loop.substeps - since % loop.substeps))
            limit = (k * loop.substeps + j) * (loop.period / loop.substeps)
            while run.time < limit:
                if run.steps + run.rejected >= loop.max_steps:
                    self.end = GIVEN_UP[TOO_LONG].format(run.time)
                elif (code := run.next(limit)) != Stepped.STEPPED:
                    self.end = GIVEN_UP.get(code, NOT_FINITE).format((k + 1) * loop.period)
                if self.end:
                    return

    def sample(self, k: int) -> None:
        """Measure, and find the forces of one sample."""
        loop = self.loop
        n_p = len(loop.position)
        state = loop.plant.platform.kinematics(self.run.y[:n_p], self.run.y[n_p:], start=self.run.guess)
        self.states.append(self.run.y.copy())
        measured = loop.plant.actuator_position(state.q)
        speed = loop.plant.assembly.loops.transmission @ np.asarray(state.v)
        with np.errstate(divide="ignore", invalid="ignore"):
            stepped = loop.resolution * np.floor(measured / loop.resolution + 0.5)
        measured = np.where(loop.resolution > 0, stepped, measured)
        if loop.differences:
            speed = np.zeros_like(speed) if self.last is None else (measured - self.last) / loop.period
            self.last = measured
        # the controller's Newton method starts from where its last four poses lead: then one step is mostly enough
        first, second, third = self.past
        self.past = (self.estimate, first, second)
        self.estimate = 4 * self.estimate - 6 * first + 4 * second - third
        force = self._force(k, measured, speed)
        if self._corrected is not None:
            force = self._corrected(k * loop.period, measured, speed, force)
        self.forces.append(np.clip(force, -loop.limit, loop.limit))

    def _force(self, k: int, measured: np.ndarray, speed: np.ndarray) -> np.ndarray:
        loop, actuators, platform = self.loop, self.loop.model.actuators, self.loop.model.platform
        position_ref, velocity_ref, acceleration_ref = (part[k] for part in loop.reference)
        kp, kd = loop.gains
        functions = actuators
        if loop.controller.space == "platform":
            state = actuators.kinematics(measured, speed, start=self.estimate)
            self.estimate = state.q
            functions = platform
            measured, speed = platform.ports.at(state.q), np.asarray(state.v)[list(platform.ports.v)]
            error = pose_error(loop.model, position_ref, state.q)
        else:
            error = position_ref - measured
        push = kp * error + kd * (velocity_ref - speed)
        zero = np.zeros_like(speed)
        if loop.controller.compensation is Compensation.ACCELERATION:
            found = functions.inverse_dynamics(measured, speed, acceleration_ref + push, start=self.estimate)
            self.estimate = found.state.q
            return np.asarray(found.force + loop.forward[k])
        if loop.controller.space == "platform":
            push = self._actuator_share(platform.actuator_jacobian(measured, start=self.estimate), push)
        if loop.controller.compensation is Compensation.GRAVITY:
            found = functions.inverse_dynamics(measured, zero, zero, start=self.estimate)
            self.estimate = found.state.q
            push = push + found.force
        return np.asarray(push + loop.forward[k])

    def _actuator_share(self, J: np.ndarray, force: np.ndarray) -> np.ndarray:
        """Actuator forces u of a force on the platform: J^T u = f.

        Raises:
            PoseError: no actuator forces bring it about.
        """
        try:
            return np.linalg.solve(J.T, force)
        except np.linalg.LinAlgError as error:
            kind = singular_kind(self.loop.model.assembly, self.estimate)
            remedy = "keep the trajectory away from it"
            raise PoseError(Problem(where="platform", what=f"singular pose ({kind})", remedy=remedy)) from error


def unit_quaternions(model: Model) -> list[list[int]]:
    """Columns of the platform's positions that are whole quaternions."""
    entry = model.platform.ports
    found = [[entry.q.index(q0 + k) for k in range(4) if q0 + k in entry.q] for q0, _ in model.topology.quaternions]
    return [columns for columns in found if len(columns) == 4]


def pose_error(model: Model, reference: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Error (n,) of a platform pose in the columns of its velocities.

    Rotations enter by twice the vector part of q_ref q*. Where the platform is given a part of a rotation only, the
    components of that part: to first order the others follow from the loops, as velocities do.

    Args:
        model: the machine.
        reference, measured: all coordinates (n_q,).
    """
    entry, shape = model.platform.ports, model.topology
    error = np.zeros(len(entry.v))
    for column, iv in enumerate(entry.v):
        iq = shape.q_of_v[iv]
        if iq >= 0:
            error[column] = reference[iq] - measured[iq]
    for q0, v0 in shape.quaternions:
        (a0, *a), (b0, *b) = reference[q0 : q0 + 4], measured[q0 : q0 + 4]
        turned = np.array(b) * -a0 + np.array(a) * b0 - np.cross(a, b)
        sign = 1.0 if a0 * b0 + np.dot(a, b) >= 0 else -1.0
        for column, iv in enumerate(entry.v):
            if v0 <= iv < v0 + 3:
                error[column] = 2 * sign * turned[iv - v0]
    return error
