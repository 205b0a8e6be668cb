"""The nonlinear program of a free motion: spline, duration, and limits at collocation points.

The machine's expressions are differentiated once, at a single point. Their values at all points are
assembled into the sparse Jacobian and Hessian of the program, which IPOPT uses directly. A row is
the expression of a limit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
from scipy.sparse import csc_matrix, eye, vstack

from tauloop.common.errors import EngineError, PoseError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.c.calling.compiler import build_without_cache, find_compiler
from tauloop.equations.values import mapped
from tauloop.motion.free.chart import DEGREE, bases
from tauloop.motion.free.loops import ClosedLoops
from tauloop.motion.free.rows import PointRows
from tauloop.motion.free.sequential import Sequential

#: Number of collocation points in each interval, in addition to its start.
INNER_POINTS = 2
#: Offset of the first and last evaluation of rows from rest, where friction is undefined.
END_OFFSET = 1e-6
#: Number of points per collocation point at which constraints are checked.
CHECKS_PER_POINT = 8
#: Number of points per collocation point at which distances are checked: they vary sharply at
#: vertices.
DISTANCE_CHECKS_PER_POINT = 32
#: Number of control points at each end that rest fixes; another one if the forces are also held.
REST_POINTS = 2
#: Tolerance of the optimum for a first solution.
FIRST_TOLERANCE = 1e-6
#: Tolerance of the optimum for a solution that starts from that of a nearby target.
NEARBY_TOLERANCE = 1e-4
#: Initial barrier parameter of a warm start.
WARM_BARRIER = 1e-5
#: Maximum number of IPOPT iterations.
MAX_PLANNING_STEPS = 300
#: Maximum number of IPOPT iterations from a nearby solution; after these, IPOPT starts from scratch.
MAX_NEARBY_STEPS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess(ReprMixin):
    """Initial guess or solution of a program.

    Attributes:
        coefficients: control points (n + 3, m).
        duration: duration, s.
        multipliers: Lagrange multipliers of bounds and rows; empty before the first solution.
        steps: number of iterations of the solver.
    """

    coefficients: np.ndarray
    duration: float
    multipliers: tuple[np.ndarray, ...] = ()
    steps: int = 0


class _Local:
    """Rows, Jacobian and Hessian at a point, from four control points and the duration."""

    def __init__(
        self, rows: PointRows, exact: ca.SX, rate: ca.SX | None, changes: bool, is_compiled: bool
    ) -> None:
        """Differentiate the rows with respect to the control points and the duration.

        Args:
            rows: limits at a point, as functions of the free coordinates and their derivatives.
            exact: values of the rows with jumps.
            rate: cost per second; None for no cost.
            changes: whether changes of forces are bounded.
            is_compiled: whether the functions are compiled to machine code.
        """
        m = rows.y.numel() // 3
        # control points z of a point, duration T, and weights b of the control points in position,
        # velocity and acceleration, followed by the weight of the point in the integral of the cost
        z, T, b = ca.SX.sym("z", 4 * m), ca.SX.sym("T"), ca.SX.sym("b", 13)
        Z = ca.reshape(z, m, 4)
        y = ca.vertcat(Z @ b[:4], Z @ b[4:8] / T, Z @ b[8:12] / T**2)
        unknown = ca.vertcat(z, T)
        values = ca.vertcat(rows.values, rows.forces) if changes else rows.values
        # common subexpressions are eliminated before differentiation
        values, exact, rate = ca.cse([values, exact, ca.SX(0) if rate is None else rate])
        k = values.numel()
        weight = ca.SX.sym("l", k)
        scale = ca.SX.sym("s")
        mu = ca.SX.sym("m", 3 * m)
        cost = b[12] * T * rate
        Jy = ca.jacobian(values, rows.y)
        slope = ca.gradient(cost, rows.y)
        lagrangian = ca.dot(weight, values) + scale * cost
        gradient = ca.gradient(lagrangian, rows.y)
        Hy = _symmetric(gradient, rows.y, m)
        mixed = ca.jacobian(gradient, T)
        exact = ca.substitute([exact], [rows.y], [y])[0]
        values, Jy, cost, slope, gradient, Hy, mixed = ca.substitute(
            [values, Jy, cost, slope, gradient, Hy, mixed], [rows.y], [y]
        )
        # chain rule from y to the unknowns, with K = dy/d(unknown)
        K = ca.jacobian(y, unknown)
        curvature = ca.substitute(
            [ca.jacobian(ca.jtimes(y, unknown, mu, True), unknown)], [mu], [gradient]
        )[0]
        duration_vector = ca.vertcat(ca.SX(4 * m, 1), 1.0)
        cross = K.T @ mixed @ duration_vector.T
        H = K.T @ Hy @ K + curvature + cross + cross.T
        cost_gradient = K.T @ slope + duration_vector * (cost / T)
        point = [unknown, b, rows.loops.symbols]
        options = {"cse": True}
        self.count = k
        functions = [
            ca.Function("free_rows", point, [values, cost], options),
            ca.Function(
                "free_slopes", point, [values, ca.densify(Jy @ K), cost, cost_gradient], options
            ),
            ca.Function("free_bends", [*point, weight, scale], [ca.densify(ca.triu(H))], options),
            ca.Function("free_between", point, [exact], options),
            ca.Function(
                "free_distances", point, [exact[np.flatnonzero(rows.is_distance).tolist()]], options
            ),
        ]
        self._instructions = {function.name(): function.n_instructions() for function in functions}
        if is_compiled:
            functions = _compiled(functions)
        self._functions = {function.name(): function for function in functions}

    def at(self, name: str, width: int) -> ca.Function:
        """Return the function with this name, evaluated at `width` points at once.

        The names are `free_rows`, `free_slopes` (Jacobian), `free_bends` (Hessian), `free_between`
        and `free_distances`.
        """
        return mapped(self._functions[name], width, self._instructions[name])


def _compiled(functions: list[ca.Function]) -> list[ca.Function]:
    """Return the functions as machine code; without a compiler, return them unchanged."""
    compiler = find_compiler()
    if compiler is None:
        return functions
    generator = ca.CodeGenerator("free.c", {"casadi_int": "long long int"})
    for function in functions:
        generator.add(function)
    try:
        library = build_without_cache(generator.dump(), compiler, further=("-O1",))
    except EngineError:
        return functions
    return [ca.external(function.name(), str(library)) for function in functions]


def _symmetric(gradient: ca.SX, y: ca.SX, m: int) -> ca.SX:
    """Return the symmetric Jacobian (3 m, 3 m) of a gradient with respect to y (3 m,).

    Only the first m columns and the remaining diagonal block are differentiated, because rates
    rarely occur in products.
    """
    first = ca.jacobian(gradient, y[:m])
    rest = ca.jacobian(gradient[m:], y[m:])
    return ca.SX(ca.blockcat([[first[:m, :], first[m:, :].T], [first[m:, :], rest]]))


class _Assembly:
    """Assembly of a sparse matrix from the entries of many small dense matrices."""

    def __init__(
        self, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int], is_used: np.ndarray
    ) -> None:
        """Compute the sparsity.

        Args:
            rows, columns: row and column of each entry.
            shape: shape of the sparse matrix.
            is_used: whether each entry is part of the matrix.
        """
        key = (columns * shape[0] + rows)[is_used]
        unique, element = np.unique(key, return_inverse=True)
        self.sparsity = ca.Sparsity.triplet(
            *shape, (unique % shape[0]).tolist(), (unique // shape[0]).tolist()
        )
        sums = csc_matrix(
            (np.ones(len(key)), (element, np.flatnonzero(is_used))),
            shape=(len(unique), is_used.size),
        )
        self._sums = _sparse(sums)

    def __call__(self, entries: ca.MX) -> ca.MX:
        """Return the sparse matrix of all entries."""
        return ca.MX(self.sparsity, self._sums @ ca.vec(entries))


def _sparse(matrix: csc_matrix) -> ca.DM:
    """Return a CasADi sparse matrix."""
    matrix.sort_indices()
    rows, columns = matrix.shape
    return ca.DM(
        ca.Sparsity(rows, columns, matrix.indptr.tolist(), matrix.indices.tolist()), matrix.data
    )


class _Selection:
    """Rows of the problem: the rows of all points, and bounds of force changes between points.

    Attributes:
        matrix: sparse matrix that selects rows of points and subtracts forces.
        count: number of rows.
        rises: number of changes of forces, each with an upper and a lower bound.
    """

    def __init__(self, points: int, own: int, count: int, change: float) -> None:
        """Create the selection.

        Args:
            points: number of points.
            own: number of bounded rows of a point.
            count: number of all values of a point; the values after the rows are forces.
            change: largest change of a force from point to point, divided by the duration.
        """
        forces = count - own
        row_of = eye(points * count, format="csr")
        first = np.arange(points)[:, None] * count
        bounded_rows = (first + np.arange(own)).ravel()
        force_rows = (first + own + np.arange(forces)).ravel()
        difference = row_of[:0]
        if forces:
            difference = row_of[force_rows[forces:]] - row_of[force_rows[:-forces]]
        selected = vstack([row_of[bounded_rows], difference, difference]).tocsc()
        self.count = selected.shape[0]
        self.rises = difference.shape[0]
        by_time = np.zeros(len(bounded_rows))
        if forces:
            limits = [np.full(self.rises, -change), np.full(self.rises, change)]
            by_time = np.concatenate([by_time, *limits])
        self.matrix = _sparse(selected)
        self._by_time = ca.DM(by_time)

    def __call__(self, values: ca.MX, duration: ca.MX) -> ca.MX:
        """Return the rows of the problem from the rows (count, points) of all points."""
        return self.matrix @ ca.vec(values) + self._by_time * duration

    def jacobian(self, slopes: ca.MX) -> ca.MX:
        """Return the Jacobian of the rows from the Jacobian (count points, n) of all points."""
        jacobian = self.matrix @ slopes
        if self.rises:
            n = slopes.size2()
            jacobian += ca.sparsify(self._by_time) @ ca.sparsify(ca.DM(np.eye(n)[-1:]))
        return jacobian


def _joined_slopes(slopes: ca.MX, column: np.ndarray, count: int, n: int) -> ca.MX:
    """Return the Jacobian (count points, n) of all points from the Jacobians of the points."""
    points, q = column.shape
    j, c, r = np.meshgrid(np.arange(points), np.arange(q), np.arange(count), indexing="ij")
    assembly = _Assembly(
        (j * count + r).ravel(),
        column[j, c].ravel(),
        (count * points, n),
        (column[j, c] >= 0).ravel(),
    )
    return assembly(slopes)


def _joined_bends(bends: ca.MX, column: np.ndarray, n: int) -> ca.MX:
    """Return the upper triangle of the Hessian (n, n) from the Hessians of the points."""
    points, q = column.shape
    j, c, r = np.meshgrid(np.arange(points), np.arange(q), np.arange(q), indexing="ij")
    low, high = np.minimum(column[j, r], column[j, c]), np.maximum(column[j, r], column[j, c])
    assembly = _Assembly(low.ravel(), high.ravel(), (n, n), ((r <= c) & (low >= 0)).ravel())
    return assembly(bends)


class FreeProgram:
    """Program for the shortest time, or the smallest integral of a cost, between two poses."""

    def __init__(
        self,
        rows: PointRows,
        intervals: int,
        *,
        rate: ca.SX | None,
        change: float,
        is_held: bool,
        compiled: bool = False,
        exact: ca.SX | None = None,
    ) -> None:
        """Set up the program.

        Args:
            rows: limits at a point.
            intervals: number of intervals of the spline.
            rate: cost per second, an expression of `rows`; None to minimize the time.
            change: largest rate of change of a force relative to its limit, 1/s; infinite for no
                bound.
            is_held: whether accelerations vanish at both ends.
            compiled: whether the functions are compiled to machine code.
            exact: values of the rows with jumps, which check motions between points; by default the
                values of `rows`.
        """
        self.rows = rows
        self.intervals = intervals
        self.u = np.linspace(0.0, 1.0, INNER_POINTS * intervals + 1)
        self.fixed = REST_POINTS + is_held
        self._m = rows.y.numel() // 3
        self._loops = ClosedLoops(rows.loops, self.u, self._m)
        checked_values = rows.values if exact is None else exact
        local = _Local(rows, checked_values, rate, change < np.inf, compiled)
        points = len(self.u)
        selection = _Selection(points, rows.values.numel(), local.count, change * self.u[1])
        self._set_problem(local, selection, is_time=rate is None)
        rises = selection.rises
        self.lower = np.concatenate(
            [np.tile(rows.lower, points), np.full(rises, -np.inf), np.zeros(rises)]
        )
        self.upper = np.concatenate(
            [np.tile(rows.upper, points), np.zeros(rises), np.full(rises, np.inf)]
        )
        between = {CHECKS_PER_POINT: "free_between", DISTANCE_CHECKS_PER_POINT: "free_distances"}
        self._between = {
            number: local.at(name, number * (points - 1) + 1) for number, name in between.items()
        }
        self._solvers = dict[bool, ca.Function]()
        self._sequential = Sequential(self.derivatives)

    def _set_problem(self, local: _Local, selection: _Selection, *, is_time: bool) -> None:
        """Set the problem and its derivatives.

        Args:
            local: functions of a point.
            selection: rows of the problem from the rows of all points.
            is_time: whether the duration is minimized.
        """
        points = len(self.u)
        m = self._m
        n = m * (self.intervals + DEGREE - 2 * self.fixed) + 1
        unknown = ca.MX.sym("w", n)
        ends = ca.MX.sym("e", 2 * m)
        unit = ca.MX.sym("t")
        # the four control points that each point depends on, and their weights
        span, weights = bases(self.u, self.intervals)
        index = (span[:, None, None] + np.arange(DEGREE + 1)[:, None]) * m + np.arange(m)
        index = index.reshape(points, -1)
        arguments = self._arguments(unknown, ends, index, weights)
        column = self._columns(index, n)

        values, cost = local.at("free_rows", points).call(arguments)
        parameters = ca.vertcat(ends, unit)
        self.problem: dict[str, Any] = {
            "x": unknown,
            "p": parameters,
            "f": (unknown[-1] if is_time else ca.sum2(cost)) / unit,
            "g": selection(values, unknown[-1]),
        }
        values, slopes, cost, cost_gradients = local.at("free_slopes", points).call(arguments)
        sums = _Assembly(column.ravel(), np.zeros(column.size, int), (n, 1), (column >= 0).ravel())
        gradient = ca.DM(np.eye(n)[:, -1]) if is_time else ca.densify(sums(cost_gradients))
        objective = (unknown[-1] if is_time else ca.sum2(cost)) / unit
        factor = ca.MX.sym("f")
        multipliers = ca.MX.sym("l", selection.count)
        back = ca.MX(ca.reshape(selection.matrix.T @ multipliers, local.count, points))
        cost_factor = ca.MX(0) if is_time else factor / unit
        bends = local.at("free_bends", points).call(
            [*arguments, back, ca.MX(ca.repmat(cost_factor, 1, points))]
        )[0]
        both = [unknown, parameters]
        self.derivatives: dict[str, ca.Function] = {
            "grad_f": ca.Function(
                "nlp_grad_f", both, [objective, gradient / unit], ["x", "p"], ["f", "grad_f_x"]
            ),
            "jac_g": ca.Function(
                "nlp_jac_g",
                both,
                [
                    selection(values, unknown[-1]),
                    selection.jacobian(_joined_slopes(slopes, column, local.count, n)),
                ],
                ["x", "p"],
                ["g", "jac_g_x"],
            ),
            "hess_lag": ca.Function(
                "nlp_hess_l",
                [*both, factor, multipliers],
                [_joined_bends(bends, column, n)],
                ["x", "p", "lam_f", "lam_g"],
                ["triu_hess_gamma_x_x"],
            ),
        }

    def _arguments(
        self, unknown: ca.MX, ends: ca.MX, index: np.ndarray, weights: np.ndarray
    ) -> list[ca.MX]:
        """Return the arguments of the functions of a point, for all points.

        Args:
            unknown: free control points, and the duration.
            ends: free coordinates at both ends.
            index: indices of the control points that each point depends on (points, 4 m).
            weights: weights of the control points in the position and its derivatives.
        """
        points = len(self.u)
        m = self._m
        quadrature = np.full(points, self.u[1])
        quadrature[[0, -1]] = 0.5 * self.u[1]
        basis = np.concatenate([weights.reshape(points, -1), quadrature[:, None]], axis=1).T
        first, last = (ca.repmat(part, self.fixed, 1) for part in (ends[:m], ends[m:]))
        whole = ca.vertcat(first, unknown[:-1], last)
        places = ca.reshape(whole[index.ravel().tolist()], 4 * m, points)
        where = ca.horzcat(*(ca.reshape(places[:, j], m, 4) @ basis[:4, j] for j in range(points)))
        has_loops = self.rows.loops.symbols.numel() > 0
        return [
            ca.MX(ca.vertcat(places, ca.repmat(unknown[-1], 1, points))),
            ca.MX(ca.DM(basis)),
            self._loops(where) if has_loops else ca.MX(0, points),
        ]

    def _columns(self, index: np.ndarray, n: int) -> np.ndarray:
        """Return the indices of the unknowns of each point's variables (points, 4 m + 1).

        They are -1 for fixed control points. The last variable is the duration.
        """
        free = index - self.fixed * self._m
        column = np.full((len(index), index.shape[1] + 1), n - 1)
        column[:, :-1] = np.where((free >= 0) & (free < n - 1), free, -1)
        return column

    def _solver(self, is_warm: bool) -> ca.Function:
        """Return IPOPT, with settings for a first solution or for a warm start."""
        if is_warm not in self._solvers:
            settings: dict[str, object] = {
                "print_level": 0,
                "sb": "yes",
                "max_iter": MAX_PLANNING_STEPS,
                "tol": FIRST_TOLERANCE,
            }
            if is_warm:
                settings |= {
                    "tol": NEARBY_TOLERANCE,
                    "mu_init": WARM_BARRIER,
                    "warm_start_init_point": "yes",
                    "max_iter": MAX_NEARBY_STEPS,
                }
                settings |= {
                    f"warm_start_{name}_push": 1e-6
                    for name in ("bound", "mult_bound", "slack_bound")
                }
            quiet = {"print_time": False, "no_nlp_grad": True, "calc_lam_p": False}
            options: dict[str, Any] = {**quiet, **self.derivatives, "ipopt": settings}
            self._solvers[is_warm] = ca.nlpsol("free", "ipopt", self.problem, options)
        return self._solvers[is_warm]

    def solved(
        self,
        guess: Guess,
        ends: np.ndarray,
        longest: float,
        margin: np.ndarray,
        taken: np.ndarray | None = None,
    ) -> Guess:
        """Return the motion that IPOPT finds.

        Args:
            guess: initial guess; with multipliers it is a nearby solution.
            ends: free coordinates at both ends (2, m).
            longest: largest duration, s.
            margin: largest distance of control points from the ends (m,).
            taken: reductions of the rows' bounds (points, own rows).

        Raises:
            PoseError: no motion satisfies all rows.
        """
        start, bounds = self._start(guess, ends, longest, margin, taken)
        multipliers_0 = {}
        if guess.multipliers:
            multipliers_0 = dict(zip(("lam_x0", "lam_g0"), guess.multipliers, strict=True))
        solver = self._solver(bool(guess.multipliers))
        parameters = np.append(ends.ravel(), guess.duration)
        solution = solver(x0=start, p=parameters, **bounds, **multipliers_0)
        stats = solver.stats()
        if not stats["success"] and guess.multipliers:
            return self.solved(replace(guess, multipliers=()), ends, longest, margin, taken)
        if not stats["success"]:
            what = f"no motion within all limits was found: {stats['return_status']}"
            raise PoseError.of(
                "motion", what, "allow wider limits, other start and end poses, or fewer obstacles"
            )
        multipliers = np.asarray(solution["lam_x"]).ravel(), np.asarray(solution["lam_g"]).ravel()
        return self._motion(
            np.asarray(solution["x"]).ravel(), ends, multipliers, int(stats["iter_count"])
        )

    def solved_nearby(
        self, guess: Guess, ends: np.ndarray, longest: float, margin: np.ndarray, taken: np.ndarray
    ) -> Guess:
        """Return the motion, found from a nearby solution by sequential quadratic programming.

        If it does not converge, IPOPT is used. For the arguments see `solved`.
        """
        start, bounds = self._start(guess, ends, longest, margin, taken)
        parameters = np.append(ends.ravel(), guess.duration)
        solution = self._sequential.solved(start, parameters, guess.multipliers[1], bounds)
        if not solution:
            return self.solved(guess, ends, longest, margin, taken)
        return self._motion(solution[0], ends, *solution[1:])

    def _start(
        self,
        guess: Guess,
        ends: np.ndarray,
        longest: float,
        margin: np.ndarray,
        taken: np.ndarray | None,
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return the unknowns of an initial guess, and the bounds of unknowns and rows."""
        inner = len(guess.coefficients) - 2 * self.fixed
        own = self.rows.lower.size * len(self.u)
        bounds = {
            "lbx": np.append(np.tile(ends.min(axis=0) - margin, inner), 1e-3 * guess.duration),
            "ubx": np.append(np.tile(ends.max(axis=0) + margin, inner), longest),
            "lbg": self.lower.copy(),
            "ubg": self.upper.copy(),
        }
        if taken is not None:
            bounds["lbg"][:own] += taken.ravel()
            bounds["ubg"][:own] -= taken.ravel()
        free_points = guess.coefficients[self.fixed : -self.fixed].ravel()
        return np.append(free_points, guess.duration), bounds

    def _motion(
        self, x: np.ndarray, ends: np.ndarray, multipliers: tuple[np.ndarray, ...], steps: int
    ) -> Guess:
        """Return the motion of a solution x."""
        first, last = (np.tile(end, (self.fixed, 1)) for end in ends)
        coefficients = np.concatenate([first, x[:-1].reshape(-1, self._m), last])
        return Guess(
            coefficients=coefficients, duration=float(x[-1]), multipliers=multipliers, steps=steps
        )

    def excess(self, guess: Guess) -> np.ndarray:
        """Return the largest excess of rows in the neighborhood of points (points, own rows)."""
        is_distance = self.rows.is_distance
        all_rows = np.ones(len(is_distance), dtype=bool)
        excess = self._excess_of(guess, CHECKS_PER_POINT, all_rows)
        if is_distance.any():
            excess[:, is_distance] = self._excess_of(guess, DISTANCE_CHECKS_PER_POINT, is_distance)
        return excess

    def _excess_of(self, guess: Guess, between: int, is_checked: np.ndarray) -> np.ndarray:
        """Return the excess of some rows, checked at `between` points per collocation point."""
        u = np.linspace(0.0, 1.0, between * (len(self.u) - 1) + 1)
        u[[0, -1]] = END_OFFSET, 1.0 - END_OFFSET
        span, weights = bases(u, self.intervals)
        places = guess.coefficients[span[:, None] + np.arange(DEGREE + 1)].reshape(len(u), -1)
        unknown = np.concatenate([places, np.full((len(u), 1), guess.duration)], axis=1).T
        basis = np.concatenate([weights.reshape(len(u), -1), np.zeros((len(u), 1))], axis=1).T
        free = np.einsum("ni,nij->nj", weights[:, 0], places.reshape(len(u), DEGREE + 1, -1))
        loop_values = self.rows.loops.at(u, free).T
        all_values = self._between[between].call([unknown, basis, loop_values])[0].full()
        values = all_values[: is_checked.sum()].T
        lower, upper = self.rows.lower[is_checked], self.rows.upper[is_checked]
        excess = np.maximum(np.maximum(lower - values, values - upper), 0.0)
        # the largest excess between the neighbors of each collocation point
        largest = np.zeros((len(self.u), excess.shape[1]))
        for shift in range(-between, between + 1):
            samples = np.clip(np.arange(len(self.u)) * between + shift, 0, len(u) - 1)
            largest = np.maximum(largest, excess[samples])
        return largest
