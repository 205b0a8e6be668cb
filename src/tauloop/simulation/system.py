"""Differential equations of a machine for a route, a formulation of its forward dynamics."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import AssemblyError, InputError, Problem
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import BatchRuns, interpreted_run, reads_start
from tauloop.compiler.c.printing.precision import PROJECTION_TOLERANCE
from tauloop.compiler.functions.extended import projection_program
from tauloop.compiler.functions.rates import RateProgram
from tauloop.compiler.functions.tool import WRENCH
from tauloop.compiler.program import Evaluate, Program
from tauloop.compiler.state import SolveDiagnostics
from tauloop.equations.assembly.closing import open_loops
from tauloop.equations.assembly.freedoms.motor_candidates import unstated_motors
from tauloop.equations.assembly.loops import Loops
from tauloop.equations.assembly.singular_kinds import singular_kind
from tauloop.integrate.routine import Routine, program_call, straight, unit_quaternions
from tauloop.integrate.system import MAX_PROJECTIONS, HybridSystem
from tauloop.mechanism.cables import cable_problems
from tauloop.model import Model
from tauloop.simulation.routes import Route, built_once

#: Largest loop residual of a start, in characteristic lengths or dimensionless. It allows for
#: rounded input, because the loops are closed before the first step.
START_GAP = 1e-6
#: Number of states of the energy balance at the end of a state vector: work of forces, and friction
#: losses.
N_ENERGY_STATES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Values of a right-hand side at N states.

    Attributes:
        rate: time derivatives of the states (N, n).
        q, v: all coordinates and velocities (N, n_q), (N, n_v).
        health: diagnostics of the solution.
        is_good: whether loops close, linear systems are regular, and derivatives are finite (N,).
    """

    rate: np.ndarray
    q: np.ndarray
    v: np.ndarray
    health: SolveDiagnostics
    is_good: np.ndarray


class System:
    """The equations y' = f(y, acting) of a machine, with the applied forces `acting`.

    The applied forces are the actuator forces, followed by the wrench at the tool. A route is a
    formulation of the forward dynamics.
    """

    def __init__(self, model: Model, route: Route, *, with_wrench: bool = False) -> None:
        """Build the programs.

        Args:
            model: the machine; its free parameters are inputs with their nominal values.
            route: method of forward dynamics.
            with_wrench: whether a wrench at the tool acts.

        Raises:
            AssemblyError: the machine's description does not specify where the motors are.
            InputError: the machine has cables, or momenta do not determine the velocities.
            DescriptionError: Hamilton's equations need the kinetic energy of a rod, which is not
                defined (see `require_energy`).
        """
        if model.mechanism.unstated_motors:
            raise AssemblyError([unstated_motors(model.assembly)])
        if problems := cable_problems(model.mechanism):
            raise InputError(problems)
        self.model = model
        self.route = route
        self.with_wrench = with_wrench
        self.rate: RateProgram = route.rate(model, with_wrench=with_wrench)
        self.theta = model.mechanism.parameters.vector(model.free)
        self._projection = built_once(
            model, "projection", lambda: projection_program(model.assembly, model.free)
        )
        self._encode = route.encoder(model)
        self.runs = BatchRuns(model.evaluator)

    @property
    def size(self) -> int:
        """Number of entries of a state."""
        return sum(size for _, size in self.rate.state) + N_ENERGY_STATES

    @property
    def acting(self) -> int:
        """Number of applied forces: actuator forces, followed by the wrench."""
        return len(self.model.mechanism.actuators) + (WRENCH if self.with_wrench else 0)

    @cached_property
    def routines(self) -> HybridSystem:
        """Routines for the integrator, with forces and wrench as inputs."""
        topology = self.model.topology
        program = self.rate.program
        # C expressions of the addresses of the program's inputs
        c_names = {
            "start": "start",
            "theta": "p",
            "force": "in",
            "wrench": f"in + {len(self.model.mechanism.actuators)}",
        }
        sizes = {
            "start": topology.n_q,
            "theta": len(self.theta),
            "force": len(self.model.mechanism.actuators),
        }
        sizes |= {"wrench": WRENCH} | dict(self.rate.state)
        offset = 0
        for name, size in self.rate.state:
            c_names[name] = f"y + {offset}"
            offset += size
        outputs = {"rate": "rate", "all_q": "q", "all_v": "v"}
        calls = [
            program_call(
                "motion", program, sizes, c_names, outputs, smallest_pivot=self.route.smallest_pivot
            )
        ]
        if reads_start(program, program.outputs):
            calls.append(straight("moved", {"q": topology.n_q}, lambda q: {"start": q}))
        back = unit_quaternions(self.rate.quaternions, self.size)
        if self.route.projects:
            projected = {"projected_q": c_names["q"], "projected_v": c_names["v"], "gap": "rate"}
            call = program_call(
                "projection", self._projection, sizes, c_names, projected, is_judged=False
            )
            back = Routine(calls=(call,))
        return HybridSystem(
            states=self.size,
            inputs=self.acting,
            coordinates=topology.n_q,
            velocities=topology.n_v,
            rate=Routine(
                calls=tuple(calls),
                own={"q": topology.n_q, "v": topology.n_v},
                known=(("q", topology.n_q), ("v", topology.n_v), ("in", self.acting)),
            ),
            back=back,
            constants=len(self.theta),
        )

    def inputs(self, y: np.ndarray, acting: np.ndarray, start: np.ndarray) -> dict[str, np.ndarray]:
        """Return the program's inputs at states (N, n), by name."""
        n = len(y)
        n_u = len(self.model.mechanism.actuators)
        result = {}
        offset = 0
        for name, size in self.rate.state:
            result[name] = y[:, offset : offset + size]
            offset += size
        acting = np.broadcast_to(acting, (n, self.acting))
        start = np.broadcast_to(start, (n, start.shape[-1]))
        theta = np.broadcast_to(self.theta, (n, len(self.theta)))
        return result | {
            "force": acting[:, :n_u],
            "wrench": acting[:, n_u:],
            "start": start,
            "theta": theta,
        }

    def rates(
        self, y: np.ndarray, acting: np.ndarray, start: np.ndarray, *, is_compiled: bool = False
    ) -> Rates:
        """Return the right-hand side at states (N, n).

        Args:
            y: states (N, n).
            acting: forces and wrench (N, acting) or (1, acting).
            start: start values (N, n_q) for Newton's method.
            is_compiled: whether to use compiled code, which reports fewer diagnostics of the loops.
        """
        run = self.runs if is_compiled else interpreted_run
        outputs, checked = run(self.rate.program, self.inputs(y, acting, start), len(y))
        regular = checked.smallest_pivot > self.route.smallest_pivot
        return Rates(
            rate=outputs["rate"],
            q=outputs["all_q"],
            v=outputs["all_v"],
            health=checked,
            is_good=checked.is_reached & regular & np.isfinite(outputs["rate"]).all(axis=1),
        )

    def decoded(
        self, y: np.ndarray, near: np.ndarray, total_samples: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return coordinates (N, n_q) and velocities (N, n_v) of states (N, n).

        `near` contains coordinates near the result (N, n_q). If `decoded` and `residual` are
        called for parts of the samples, `total_samples` is the number of samples of all calls. It
        decides whether compiling pays off.
        """
        inputs = self.inputs(y, np.zeros((1, self.acting)), near)
        with np.errstate(all="ignore"):
            outputs, _ = self.runs(
                self.rate.program, inputs, len(y), ("all_q", "all_v"), total_samples
            )
        return outputs["all_q"], outputs["all_v"]

    def residual(self, q: np.ndarray, total_samples: int = 0) -> np.ndarray:
        """Return the largest residuals (N,) of all loop equations, m.

        Dimensionless equations are multiplied by the characteristic length.
        """
        return self.model.assembly.loops.largest_residual(
            self._loops(q, "residuals", total_samples)
        )

    def _loops(self, q: np.ndarray, output: str, total_samples: int = 0) -> np.ndarray:
        """Return residuals (N, c) or column-wise Jacobians (N, n_v c) of all loop equations."""
        if not self.model.assembly.loops.names:
            return np.zeros((len(q), 0))
        return self.runs(self._closure, {"q": q}, len(q), (output,), total_samples)[0][output]

    @cached_property
    def _closure(self) -> Program:
        outputs = ("residuals", "jacobian")
        step = Evaluate(function=self.model.assembly.loops.function, inputs=("q",), outputs=outputs)
        return Program(name="closure", steps=(step,), outputs=outputs, closed_forms=(), pivots=())

    def _projected(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return coordinates and velocities with closed loops, and whether the loops close."""
        for _ in range(MAX_PROJECTIONS):
            theta = np.broadcast_to(self.theta, (len(q), len(self.theta)))
            outputs, _ = self.runs(self._projection, {"q": q, "v": v, "theta": theta}, len(q))
            q, v = outputs["projected_q"], outputs["projected_v"]
            if (outputs["gap"] < PROJECTION_TOLERANCE).all():
                return q, v, True
        return q, v, False

    def encode(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the state (n,) of coordinates (n_q,) and velocities (n_v,), with closed loops.

        Work and losses are zero.

        Raises:
            InputError: an array has a wrong shape or values that are not finite.
            AssemblyError: the start is not assembled. The message lists the open loops with their
                gaps, or the loop that opens fastest with its speed.
        """
        return np.asarray(self.encode_many(q[None], v[None])[0])

    def encode_many(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the states (N, n) of many starts (N, n_q), (N, n_v); see `encode`.

        Raises:
            InputError, AssemblyError: see `encode`; the message is about the worst start.
        """
        q, v = self._assembled(q, v)
        return np.concatenate([*self._encode(q, v), np.zeros((len(q), N_ENERGY_STATES))], axis=1)

    def _assembled(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return starts with closed loops; reject starts that are not assembled."""
        topology, loops = self.model.topology, self.model.assembly.loops
        problems = []
        for name, rows, names in (
            ("q", q, topology.coordinate_names),
            ("v", v, topology.velocity_names),
        ):
            if rows.shape != (len(q), len(names)) or not np.isfinite(rows).all():
                needed = counted(len(names), "finite number")
                problem = f"needs {needed}, got an array of shape {rows.shape}"
                remedy = f"give {', '.join(names)}"
                problems.append(Problem(where=name, what=problem, remedy=remedy))
        InputError.raise_if_any(problems)
        phi = self.residual(q)
        if phi.max(initial=0.0) > START_GAP * loops.length:
            worst = int(np.argmax(phi))
            raise AssemblyError(open_loops(loops, q[worst : worst + 1]))
        norms = [
            np.abs(np.linalg.norm(q[:, iq : iq + 4], axis=1) - 1.0).max()
            for iq, _ in topology.quaternions
        ]
        if max(norms, default=0.0) > START_GAP:
            problem = f"a quaternion of the start differs from unit length by {max(norms):.3g}"
            raise AssemblyError.of("q", problem, "normalize the quaternion")
        K = (
            self._loops(q, "jacobian")
            .reshape(len(q), topology.n_v, len(loops.names))
            .transpose(0, 2, 1)
        )
        _require_closing(loops, K, v)
        closed_q, closed_v, is_closed = self._projected(q, v)
        if not is_closed:
            kind = singular_kind(self.model.assembly, q[0])
            problem = f"the loops do not close near the start, which is singular ({kind})"
            raise AssemblyError.of("q", problem, "start away from singularities")
        return closed_q, closed_v


def _require_closing(loops: Loops, K: np.ndarray, v: np.ndarray) -> None:
    """Reject velocities (N, n_v) that open loops, with the loops' Jacobians K (N, rows, n_v).

    Raises:
        AssemblyError: a loop opens. The message states the loop that opens fastest, and its speed.
    """
    rates = np.abs(np.einsum("nij,nj->ni", K, v))
    speeds = np.abs(v / loops.velocity_scale).max(axis=1, initial=0.0)
    excess = loops.row_scale * rates / np.maximum(1.0, speeds)[:, None]
    if excess.max(initial=0.0) > START_GAP:
        start, worst = np.unravel_index(int(np.argmax(excess)), excess.shape)
        problem = f"the start opens this loop at {rates[start, worst]:.3g} m/s (or 1/s)"
        raise AssemblyError.of(
            loops.names[worst], problem, "take velocities from kinematics, such as `start_state`"
        )
