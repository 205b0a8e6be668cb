"""The optimization of an excitation from one start, as a nonlinear program for IPOPT."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.identification.excitation.criteria import (
    ConditionNumber,
    CriterionFunction,
    ExcitationCriterion,
)
from tauloop.identification.excitation.problem import ExcitationProblem
from tauloop.identification.excitation.search import shrunk
from tauloop.mechanism.description import units
from tauloop.motion.excitation.fourier import fourier_basis

#: An iterate is feasible if it violates no scaled limit and no loop equation by more than this
#: value. The final result is evaluated again on the finer grid, with closed loops, and reduced
#: until it meets all limits.
FEASIBILITY_TOLERANCE = 1e-3
#: Starts are scaled about the center by this factor, so that they are inside their limits.
START_SIZE = 0.97
#: Sharpness of a condition number in the first of three stages. The sharpness increases up to that
#: of the criterion.
INITIAL_SHARPNESS = 4.0
#: Smallest sharpness in a further optimization; the smoothing adds at most log(r) / 400.
MIN_POLISH_SHARPNESS = 400.0
#: IPOPT's options for a start that is nearly optimal and at some of its limits.
WARM_START_OPTIONS = {
    "mu_strategy": "monotone",
    "mu_init": 1e-4,
    "bound_push": 1e-4,
    "bound_frac": 1e-4,
    "slack_bound_push": 1e-4,
    "slack_bound_frac": 1e-4,
}
#: Function that is called in every iteration. Its argument is the series of the iterate if this
#: series is better than all previous series, otherwise None. If the function returns True, the
#: solver stops.
Watch = Callable[[np.ndarray | None], bool]
#: Status of a start that was stopped by the caller.
STOPPED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverOptions(Options):
    """Options of IPOPT.

    Attributes:
        iterations: maximum number of iterations for each stage of the smoothing.
        optimality: tolerance of the optimality conditions.
        start_time_limit: maximum processor time for each start.
    """

    iterations: int = option(200, least=1)
    optimality: float = option(0.0001, least=1e-15)
    start_time_limit: float = option(60.0, least=0.001, metavar="TIME", unit=units.TIME)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StartOutcome:
    """The outcome of one start.

    Attributes:
        coefficients: best feasible series (n_free, 2 K + 1); the start if no iterate was feasible.
        value: criterion of the series.
        started: criterion of the start.
        status: status of IPOPT.
        converged: whether IPOPT converged.
        iterations: number of iterations of all stages.
    """

    coefficients: np.ndarray
    value: float
    started: float
    status: str
    converged: bool
    iterations: int


class ExcitationProgram:
    """The nonlinear program of a problem, for any start.

    Attributes:
        variables: coefficients divided by the channels' reach, then the open coordinates of all
            samples.
        normal: Y^T Y of the base parameters' columns (r, r).
        residual: residual of the open loops.
        lower, upper: limits of all constraints.
    """

    def __init__(
        self,
        problem: ExcitationProblem,
        independent: np.ndarray,
        criterion: ExcitationCriterion,
        grid: np.ndarray | None = None,
    ) -> None:
        """Build the expressions.

        Args:
            problem: the task.
            independent: indices of the unknowns that represent the base parameters.
            criterion: criterion to minimize.
            grid: times (N,) at which limits apply; by default the problem's `grid`.
        """
        self.problem = problem
        self.independent = independent
        self.criterion = criterion
        self.grid = problem.grid if grid is None else grid
        n_free, N = len(problem.free), len(self.grid)
        x = ca.MX.sym("x", problem.admitted.shape[1], n_free)
        z = ca.MX.sym("z", len(problem.sample.open), N)
        scale = np.zeros((len(problem.channels), n_free))
        scale[problem.free, np.arange(n_free)] = problem.reach[problem.free]
        bases = fourier_basis(self.grid, problem.task.harmonics, problem.task.period)
        rates = [ca.mtimes(ca.DM(basis @ problem.admitted), x) for basis in bases]
        position, velocity, acceleration = (ca.mtimes(ca.DM(scale), rate.T) for rate in rates)
        position = position + ca.repmat(ca.DM(problem.center), 1, N)
        rows, residual, values = problem.sample.function.map(N)(position, velocity, acceleration, z)
        self.normal = self._normal_matrix(rows, N)
        constraints, lower, upper = [], [], []
        for limit, rate in zip(problem.limits, rates, strict=True):
            for k, i in enumerate(problem.free):
                if np.isfinite(limit[i]):
                    constraints.append(rate[:, k] / (limit[i] / problem.reach[i]))
                    lower.append(-np.ones(N))
                    upper.append(np.ones(N))
        constraints += [ca.vec(values), ca.vec(residual)]
        lower += [np.tile(problem.sample.lower, N), np.zeros(residual.numel())]
        upper += [np.tile(problem.sample.upper, N), np.zeros(residual.numel())]
        self.residual = ca.vec(residual)
        self.variables = ca.vertcat(ca.vec(x), ca.vec(z))
        self._g = ca.vertcat(*constraints)
        self.lower = np.concatenate(lower)
        self.upper = np.concatenate(upper)
        self._size = x.numel()

    def _normal_matrix(self, rows: ca.MX, N: int) -> ca.MX:
        """Return Y^T Y of the weighted base columns, including those of previous data sets."""
        problem = self.problem
        n_out = len(problem.weights)
        Y = ca.reshape(rows, -1, n_out * N).T
        Y = ca.mtimes(Y, ca.DM(problem.ties.matrix[:, self.independent]))
        Y = Y * ca.repmat(ca.DM(np.tile(problem.weights, N) / np.sqrt(N)), 1, len(self.independent))
        before = problem.before[:, self.independent]
        return ca.mtimes(Y.T, Y) + ca.DM(before.T @ before)

    def start(self, coefficients: np.ndarray) -> np.ndarray:
        """Return the variables of a series with coefficients (n_free, 2 K + 1)."""
        problem = self.problem
        centered = coefficients.copy()
        centered[:, 0] -= problem.center[problem.free]
        x = (centered @ problem.admitted) / problem.reach[problem.free][:, None]
        opened, _ = problem.opened(problem.series(coefficients).sample(self.grid))
        return np.concatenate([x.ravel(), opened.ravel()])

    def coefficients(self, variables: np.ndarray) -> np.ndarray:
        """Return the coefficients (n_free, 2 K + 1) of variables."""
        problem = self.problem
        x = np.asarray(variables)[: self._size].reshape(len(problem.free), -1)
        full = (x @ problem.admitted.T) * problem.reach[problem.free][:, None]
        full[:, 0] += problem.center[problem.free]
        return np.asarray(full)

    def solve(
        self, coefficients: np.ndarray, options: SolverOptions, watch: Watch | None = None
    ) -> StartOutcome:
        """Optimize from one start and return the best feasible iterate.

        Args:
            coefficients: the start (n_free, 2 K + 1), which meets all limits.
            options: options of the solver.
            watch: called in every iteration, see `Watch`; it can stop the solver.
        """
        stages = [self.criterion]
        if (
            isinstance(self.criterion, ConditionNumber)
            and self.criterion.sharpness > INITIAL_SHARPNESS
        ):
            middle = (INITIAL_SHARPNESS * self.criterion.sharpness) ** 0.5
            smoother = [
                replace(self.criterion, sharpness=sharpness)
                for sharpness in (INITIAL_SHARPNESS, middle)
            ]
            stages = [*smoother, self.criterion]
        outcome = self._solve_stages(
            stages, shrunk(self.problem, coefficients, START_SIZE), options, watch
        )
        started = self._value(self.start(coefficients))
        if outcome.value > started:
            outcome = replace(outcome, coefficients=coefficients, value=started)
        return replace(outcome, started=started)

    def polish(
        self, coefficients: np.ndarray, options: SolverOptions, watch: Watch | None = None
    ) -> StartOutcome:
        """Optimize further from the optimum of a coarser grid.

        The optimum can violate limits slightly between the samples of its grid. A single stage is
        used, without strong smoothing and with a small barrier from the beginning. The outcome and
        its start can be compared only after both are reduced to meet all limits.

        Args:
            coefficients: the optimum (n_free, 2 K + 1).
            options: options of the solver.
            watch: called in every iteration, see `Watch`; it can stop the solver.

        Returns:
            The outcome; its value is that of the start if the optimization fails.
        """
        stage = self.criterion
        if isinstance(stage, ConditionNumber):
            stage = replace(stage, sharpness=max(stage.sharpness, MIN_POLISH_SHARPNESS))
        outcome = self._solve_stages([stage], coefficients, options, watch, WARM_START_OPTIONS)
        return outcome if np.isfinite(outcome.value) else replace(outcome, value=outcome.started)

    def _solve_stages(
        self,
        stages: Sequence[ExcitationCriterion],
        coefficients: np.ndarray,
        options: SolverOptions,
        watch: Watch | None,
        more: Mapping[str, Any] | None = None,
    ) -> StartOutcome:
        """Solve stages, each from the best feasible iterate of the previous stage.

        If no iterate is feasible, the outcome is the start, with an infinite value.

        Args:
            stages: criteria of the stages.
            coefficients: the start.
            options: options of the solver.
            watch: see `Watch`.
            more: additional options of IPOPT.
        """
        best = self.start(coefficients)
        iterations = 0
        status = ""
        converged = False
        started = self._value(best)
        value = np.inf
        settings = {
            "print_level": 0,
            "sb": "yes",
            "hessian_approximation": "limited-memory",
            "limited_memory_max_history": 20,
            "mu_strategy": "adaptive",
            "max_iter": options.iterations,
            "tol": options.optimality,
            "acceptable_tol": 10 * options.optimality,
            "max_cpu_time": options.start_time_limit / len(stages),
            **(more or {}),
        }
        for stage in stages:
            monitor = _IterateMonitor(self, watch)
            status, converged = self._run(stage, best, monitor, settings)
            iterations += monitor.count
            if monitor.best is not None:
                best = monitor.best
                value = self._value(best)
            if monitor.stopped:
                break
        return StartOutcome(
            coefficients=self.coefficients(best) if np.isfinite(value) else coefficients,
            value=value,
            started=started,
            status=status,
            converged=converged,
            iterations=iterations,
        )

    def _value(self, variables: np.ndarray) -> float:
        """Return the criterion at variables."""
        return self.criterion.value(np.asarray(self._normal_function(variables)))

    @cached_property
    def _normal_function(self) -> ca.Function:
        """The normal matrix as a function of the variables."""
        return ca.Function("normal", [self.variables], [self.normal])

    def _run(
        self,
        stage: ExcitationCriterion,
        start: np.ndarray,
        monitor: _IterateMonitor,
        settings: Mapping[str, Any],
    ) -> tuple[str, bool]:
        """Call the solver; the monitor stores the result.

        Returns:
            Status of the solver, and whether it converged.
        """
        criterion = CriterionFunction(stage, len(self.independent))
        program = {"x": self.variables, "f": criterion(ca.vec(self.normal)), "g": self._g}
        quiet = {"print_time": False, "error_on_fail": False, "calc_lam_p": False}
        solver = ca.nlpsol(
            "excitation",
            "ipopt",
            program,
            quiet | {"iteration_callback": monitor, "ipopt": settings},
        )
        solver(x0=start, lbg=self.lower, ubg=self.upper)
        status = STOPPED if monitor.stopped else str(solver.stats()["return_status"])
        return status, bool(solver.stats()["success"])

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of variables and of constraints."""
        return int(self.variables.numel()), int(self._g.numel())


class _IterateMonitor(ca.Callback):
    """Stores the best feasible iterate, and stops the solver on request."""

    def __init__(self, program: ExcitationProgram, watch: Watch | None) -> None:
        ca.Callback.__init__(self)
        self._program = program
        self._watch = watch
        self._variables, self._constraints = program.sizes
        self.best: np.ndarray | None = None
        self.value = np.inf
        self.count = 0
        self.stopped = False
        self.construct("monitor", {})

    def get_n_in(self) -> int:
        return int(ca.nlpsol_n_out())

    def get_n_out(self) -> int:
        return 1

    def get_sparsity_in(self, which: int) -> ca.Sparsity:
        name = ca.nlpsol_out(which)
        sizes = {"f": 1, "x": self._variables, "lam_x": self._variables, "g": self._constraints}
        return ca.Sparsity.dense(sizes.get(name, self._constraints if name == "lam_g" else 0), 1)

    def eval(self, arguments: Sequence[ca.DM]) -> list[float]:
        named = dict(zip(map(ca.nlpsol_out, range(ca.nlpsol_n_out())), arguments, strict=True))
        self.count += 1
        value, g = float(named["f"]), np.asarray(named["g"]).ravel()
        violation = np.maximum(self._program.lower - g, g - self._program.upper).max(initial=0.0)
        better = None
        if violation <= FEASIBILITY_TOLERANCE and value < self.value:
            self.best, self.value = np.asarray(named["x"]).ravel().copy(), value
            better = self._program.coefficients(self.best)
        if self._watch is not None and self._watch(better):
            self.stopped = True
        return [1.0 if self.stopped else 0.0]
