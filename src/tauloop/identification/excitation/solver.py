"""The optimisation of one excitation: a nonlinear program for IPOPT, from one start."""

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
from tauloop.motion.fourier import fourier_basis

#: An iterate counts as feasible when it breaks no (unit-free) limit, and no loop, by more than
#: this: whatever is chosen in the end is judged again on the finer grid, with its loops closed, and
#: made smaller until nothing is broken.
FEASIBLE = 1e-3
#: Starts are drawn this far towards the centre, inside their limits.
INSIDE = 0.97
#: A condition number is first smoothed strongly, then in two stages less and less.
FIRST_SHARPNESS = 4.0
#: Polishing smooths it no more than this: log(r) / 400 above the logarithm.
LAST_SHARPNESS = 400.0
#: IPOPT's options for a start that is nearly optimal and lies on its limits.
NEAR_OPTIMUM = {
    "mu_strategy": "monotone",
    "mu_init": 1e-4,
    "bound_push": 1e-4,
    "bound_frac": 1e-4,
    "slack_bound_push": 1e-4,
    "slack_bound_frac": 1e-4,
}
#: Called in every iteration with a series that is better than those before, or None; true stops.
Watch = Callable[[np.ndarray | None], bool]
#: Status of a start that was stopped from outside.
STOPPED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverOptions(Options):
    """Options of IPOPT.

    Attributes:
        iterations: most iterations for each stage of the smoothing.
        tolerance: tolerance of the optimality conditions.
        seconds: most processor seconds for each start.
    """

    iterations: int = option(200, least=1)
    tolerance: float = option(0.0001, least=1e-15, flag="--optimality")
    seconds: float = option(60.0, least=0.001, metavar="TIME", unit=units.TIME)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StartOutcome:
    """What came out of one start.

    Attributes:
        coefficients: best feasible series (n_free, 2 K + 1); the start where there was none.
        value: its criterion.
        started: criterion of the start.
        status: what IPOPT says.
        converged: whether it arrived.
        iterations: of all stages.
    """

    coefficients: np.ndarray
    value: float
    started: float
    status: str
    converged: bool
    iterations: int


class ExcitationProgram:
    """The nonlinear program of one problem, ready for any start.

    Attributes:
        variables: coefficients in units of reach, then the open coordinates of all samples.
        normal: Y^T Y of the base parameters' columns (r, r).
        residual: of the loops that are left open.
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
            independent: which unknowns represent the base parameters.
            criterion: what is made small.
            grid: times (N,) at which limits are kept; those of the problem's `grid` without it.
        """
        self.problem, self.independent, self.criterion = problem, independent, criterion
        self.grid = problem.grid if grid is None else grid
        n_free, N = len(problem.free), len(self.grid)
        x, z = (
            ca.MX.sym("x", problem.admitted.shape[1], n_free),
            ca.MX.sym("z", len(problem.sample.open), N),
        )
        select = np.zeros((len(problem.channels), n_free))
        select[problem.free, np.arange(n_free)] = problem.reach[problem.free]
        bases = [
            b @ problem.admitted
            for b in fourier_basis(self.grid, problem.task.harmonics, problem.task.period)
        ]
        moved = [ca.mtimes(ca.DM(basis), x) for basis in bases]
        position, velocity, acceleration = (ca.mtimes(ca.DM(select), part.T) for part in moved)
        position = position + ca.repmat(ca.DM(problem.center), 1, N)
        rows, residual, values = problem.sample.function.map(N)(position, velocity, acceleration, z)
        self.normal = self._normal_matrix(rows, N)
        constraints, lower, upper = [], [], []
        for limit, part in zip(problem.limits, moved, strict=True):
            for k, i in enumerate(problem.free):
                if np.isfinite(limit[i]):
                    share = limit[i] / problem.reach[i]
                    constraints.append(part[:, k] / share)
                    lower.append(-np.ones(N))
                    upper.append(np.ones(N))
        constraints += [ca.vec(values), ca.vec(residual)]
        lower += [np.tile(problem.sample.lower, N), np.zeros(residual.numel())]
        upper += [np.tile(problem.sample.upper, N), np.zeros(residual.numel())]
        self.residual = ca.vec(residual)
        self.variables = ca.vertcat(ca.vec(x), ca.vec(z))
        self._g, self.lower, self.upper = (
            ca.vertcat(*constraints),
            np.concatenate(lower),
            np.concatenate(upper),
        )
        self._size = x.numel()

    def _normal_matrix(self, rows: ca.MX, N: int) -> ca.MX:
        """Y^T Y of the weighted columns that represent the base parameters, with those of the data sets before."""
        problem = self.problem
        n_out = len(problem.weights)
        Y = ca.reshape(rows, -1, n_out * N).T
        Y = ca.mtimes(Y, ca.DM(problem.ties.matrix[:, self.independent]))
        Y = Y * ca.repmat(ca.DM(np.tile(problem.weights, N) / np.sqrt(N)), 1, len(self.independent))
        before = problem.before[:, self.independent]
        return ca.mtimes(Y.T, Y) + ca.DM(before.T @ before)

    def start(self, coefficients: np.ndarray) -> np.ndarray:
        """Variables of a series (n_free, 2 K + 1): its coefficients in units of reach, and the open coordinates."""
        problem = self.problem
        moved = coefficients.copy()
        moved[:, 0] -= problem.center[problem.free]
        x = (moved @ problem.admitted) / problem.reach[problem.free][:, None]
        opened, _ = problem.opened(problem.series(coefficients).sample(self.grid))
        return np.concatenate([x.ravel(), opened.ravel()])

    def coefficients(self, variables: np.ndarray) -> np.ndarray:
        """The series (n_free, 2 K + 1) of variables."""
        problem = self.problem
        x = np.asarray(variables)[: self._size].reshape(len(problem.free), -1)
        full = (x @ problem.admitted.T) * problem.reach[problem.free][:, None]
        full[:, 0] += problem.center[problem.free]
        return np.asarray(full)

    def solve(
        self, coefficients: np.ndarray, options: SolverOptions, watch: Watch | None = None
    ) -> StartOutcome:
        """Optimise from one start; `watch` may stop it, and the best feasible iterate is the outcome.

        Args:
            coefficients: the start (n_free, 2 K + 1), which keeps all limits.
            options: of the solver.
            watch: called in every iteration with a series that is better than those before, or
                None; true stops.
        """
        stages = [self.criterion]
        if (
            isinstance(self.criterion, ConditionNumber)
            and self.criterion.sharpness > FIRST_SHARPNESS
        ):
            middle = (FIRST_SHARPNESS * self.criterion.sharpness) ** 0.5
            stages = [
                *(replace(self.criterion, sharpness=p) for p in (FIRST_SHARPNESS, middle)),
                self.criterion,
            ]
        outcome = self._through(stages, shrunk(self.problem, coefficients, INSIDE), options, watch)
        started = self._value(self.start(coefficients))
        if outcome.value > started:
            outcome = replace(outcome, coefficients=coefficients, value=started)
        return replace(outcome, started=started)

    def polish(
        self, coefficients: np.ndarray, options: SolverOptions, watch: Watch | None = None
    ) -> StartOutcome:
        """Go on from the optimum of a coarser grid, whose limits break a little between its samples.

        One stage without the first smoothing, and from where it is: a small barrier from the
        beginning. Whether the outcome is better than its start can be told only after both keep all
        limits.

        Args:
            coefficients: the optimum (n_free, 2 K + 1).
            options: of the solver.
            watch: called in every iteration with a series that is better than those before, or
                None; true stops.
        """
        stage = self.criterion
        if isinstance(stage, ConditionNumber):
            stage = replace(stage, sharpness=max(stage.sharpness, LAST_SHARPNESS))
        outcome = self._through([stage], coefficients, options, watch, NEAR_OPTIMUM)
        return outcome if np.isfinite(outcome.value) else replace(outcome, value=outcome.started)

    def _through(
        self,
        stages: Sequence[ExcitationCriterion],
        coefficients: np.ndarray,
        options: SolverOptions,
        watch: Watch | None,
        more: Mapping[str, Any] | None = None,
    ) -> StartOutcome:
        """Each stage from the best feasible iterate of the one before; the start, at infinity, where there is none."""
        best, iterations, status, converged = self.start(coefficients), 0, "", False
        started, value = self._value(best), np.inf
        settings = {
            "print_level": 0,
            "sb": "yes",
            "hessian_approximation": "limited-memory",
            "limited_memory_max_history": 20,
            "mu_strategy": "adaptive",
            "max_iter": options.iterations,
            "tol": options.tolerance,
            "acceptable_tol": 10 * options.tolerance,
            "max_cpu_time": options.seconds / len(stages),
            **(more or {}),
        }
        for stage in stages:
            keeper = _Keeper(self, watch)
            status, converged = self._run(stage, best, keeper, settings)
            iterations += keeper.count
            if keeper.best is not None:
                best = keeper.best
                value = self._value(best)
            if keeper.stopped:
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
        """The criterion."""
        return self.criterion.value(np.asarray(self._normal_function(variables)))

    @cached_property
    def _normal_function(self) -> ca.Function:
        return ca.Function("normal", [self.variables], [self.normal])

    def _run(
        self,
        stage: ExcitationCriterion,
        start: np.ndarray,
        keeper: _Keeper,
        settings: Mapping[str, Any],
    ) -> tuple[str, bool]:
        """One call of the solver; the keeper holds what came out.

        Returns:
            What the solver says, and whether it arrived.
        """
        judge = CriterionFunction(stage, len(self.independent))
        program = {"x": self.variables, "f": judge(ca.vec(self.normal)), "g": self._g}
        quiet = {"print_time": False, "error_on_fail": False, "calc_lam_p": False}
        solver = ca.nlpsol(
            "excitation",
            "ipopt",
            program,
            quiet | {"iteration_callback": keeper, "ipopt": settings},
        )
        solver(x0=start, lbg=self.lower, ubg=self.upper)
        status = STOPPED if keeper.stopped else str(solver.stats()["return_status"])
        return status, bool(solver.stats()["success"])

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of variables and of constraints."""
        return int(self.variables.numel()), int(self._g.numel())


class _Keeper(ca.Callback):
    """Keeps the best feasible iterate, and stops when it is told to."""

    def __init__(self, program: ExcitationProgram, watch: Watch | None) -> None:
        ca.Callback.__init__(self)
        self._program, self._watch = program, watch
        self._variables, self._constraints = program.sizes
        self.best: np.ndarray | None = None
        self.value, self.count, self.stopped = np.inf, 0, False
        self.construct("keeper", {})

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
        broken = np.maximum(self._program.lower - g, g - self._program.upper).max(initial=0.0)
        better = None
        if broken <= FEASIBLE and value < self.value:
            self.best, self.value = np.asarray(named["x"]).ravel().copy(), value
            better = self._program.coefficients(self.best)
        if self._watch is not None and self._watch(better):
            self.stopped = True
        return [1.0 if self.stopped else 0.0]
