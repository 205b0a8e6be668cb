"""Model predictive tracking: at each sample, optimal forces of the next samples within limits.

Let e = (p - p_ref, p' - p_ref'), and let y and y' be its positions and velocities in the
coordinates of the controller (actuators or platform). The cost is the

    sum over the horizon of  T (w^4 y^2 + (4 z^2 - 2) w^2 y'^2 + y''^2),  y''_k = (y'_{k+1} - y'_k)
    / T,

plus the remaining cost after the horizon of a mass without limits (from the Riccati equation). In
continuous time and without limits, its minimum is y'' + 2 z w y' + w^2 y = 0: computed torque with
the same bandwidth and damping. With linear steps of e (`error_steps`) the problem is a condensed
quadratic program, with only the forces as unknowns. Forces without effect on the motion have a
small extra cost. It ensures that the forces of redundant actuators have the smallest norm unless a
limit is active.

Source: Rawlings, Mayne and Diehl, Model Predictive Control, 2nd ed., 2017, sections 1.3 and 8.8.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, final

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.names.lazy import lazy_functions
from tauloop.common.options import option
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.simulation.controllers.error_steps import ErrorSteps, error_steps
from tauloop.simulation.controllers.laws import Controller, ForceCallback, Loop
from tauloop.simulation.controllers.quadratic import QuadraticProgram
from tauloop.simulation.controllers.redundant import spread

if TYPE_CHECKING:
    from scipy.linalg import cho_factor, cho_solve, solve_discrete_are
else:
    cho_factor, cho_solve, solve_discrete_are = lazy_functions(
        "scipy.linalg", "cho_factor", "cho_solve", "solve_discrete_are"
    )

#: Number of samples that are condensed at once.
SAMPLES_PER_BLOCK = 64
#: Largest memory of the quadratic programs of a run, bytes.
MAX_PROGRAM_BYTES = 2e9
#: Weight of forces that do not move the machine, relative to the weakest acceleration direction.
IDLE_FORCE_WEIGHT = 0.03
#: Relative excess over a limit that counts as rounding.
PREDICTED_LIMIT_TOLERANCE = 1e-9
#: Bounds of a program without limits of force changes.
NO_LIMITS = np.zeros(0)
#: Diagnostics that count the samples by the kind of solution of their program.
UNLIMITED = "fraction of samples whose best forces keep all limits"
LIMITED = "fraction of samples with limits active"
RELAXED_PROGRAMS = "fraction of samples without speed and force-rate limits"
UNSOLVED_PROGRAMS = "fraction of samples whose program was not solved"
#: Largest passing fraction of each diagnostic, and advice.
SOLUTION_CHECKS = {
    UNLIMITED: (None, ""),
    LIMITED: (None, ""),
    RELAXED_PROGRAMS: (
        0.0,
        "plan a slower motion: no forces satisfied the speed and force-rate limits, so these limits were dropped",
    ),
    UNSOLVED_PROGRAMS: (
        0.0,
        "use a shorter horizon: the forces of the optimum without limits were clipped at the limits",
    ),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PredictiveTracking(Controller):
    """Model predictive control: the optimal forces of the next samples within limits.

    It minimizes the sum of w^4 y^2 + (4 z^2 - 2) w^2 y'^2 + y''^2 over the next samples, where y
    are the errors. Without limits this is computed torque. Errors are predicted in linear steps
    with exact derivatives of forward dynamics along the reference, including delay and motor
    speeds.

    Attributes:
        damping: damping ratio z, at least the square root of 1/2 (a sum of squares cannot have a
            minimum with more overshoot).
        horizon: number of samples to look ahead.
        motor_curve: pairs of a speed (rad/s, m/s) and the fraction of the largest force that is
            available at this speed, such as ((0, 1), (20, 1), (40, 0.3)).
        reversal: time that motors need for a full reversal of their force, s; zero for no limit.

    Examples:
        >>> import tauloop as tl
        >>> law = tl.simulation.PredictiveTracking(bandwidth=150.0, horizon=15, reversal=0.01)
        >>> stroke = tl.StrokeOptions(end={"x": 0.02}, duration=0.1)
        >>> comparison = tl.follow_path(tl.load("five_bar"), tl.ControlOptions(stroke=stroke, controller=(law,)))
        >>> bool(comparison.runs["PredictiveTracking"].peak_error < 1e-4)
        True
    """

    damping: float = option(1.0, least=0.5**0.5, below=np.inf)
    horizon: int = option(20, least=1)
    motor_curve: tuple[tuple[float, float], ...] = option(())
    reversal: float = option(0.0, least=0.0, below=np.inf)

    def force_callback(self, loop: Loop) -> ForceCallback:
        """Return the function of a run that solves quadratic programs instead of using gains."""
        return PredictiveRun(self, loop)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackingPrograms:
    """Quadratic programs of K samples over N steps.

    Each program minimizes x^T H x / 2 + (F e + f)^T x within limits of R x + S e + s. The unknowns
    x are, step by step, the differences of the forces from the reference forces, divided by their
    units: (u - mean) / unit.

    Attributes:
        H, F: matrices of the cost (K, N n_u, N n_u) and (K, N n_u, 2 m + 1); the last column of F
            is f.
        R, S: matrices of the limits (K, r, N n_u) and (K, r, 2 m + 1); the last column of S is s.
        best: matrix (K, N n_u, 2 m + 1) of the optimum without limits, x = best (e, 1).
    """

    H: np.ndarray
    F: np.ndarray
    R: np.ndarray
    S: np.ndarray
    best: np.ndarray


def last_cost(bandwidth: float, damping: float, period: float) -> np.ndarray:
    """Return the matrix P (2, 2) of the remaining cost of (y, y') for a mass without limits."""
    A, B = np.array([[1.0, period], [0.0, 1.0]]), np.array([[period**2 / 2], [period]])
    weights = np.diag([bandwidth**4, (4 * damping**2 - 2) * bandwidth**2])
    return np.asarray(solve_discrete_are(A, B, period * weights, np.array([[period]])))


def condensed(
    steps: ErrorSteps, law: PredictiveTracking, period: float, unit: np.ndarray, samples: np.ndarray
) -> TrackingPrograms:
    """Return the programs that begin at the given samples.

    Args:
        steps: linear steps of the errors, up to the end of the last program.
        law: bandwidth, damping and horizon.
        period: sample period, s.
        unit: scales of the forces (n_u,).
        samples: first samples of the programs (K,).
    """
    if len(samples) > SAMPLES_PER_BLOCK:
        blocks = [
            condensed(steps, law, period, unit, samples[k : k + SAMPLES_PER_BLOCK])
            for k in range(0, len(samples), SAMPLES_PER_BLOCK)
        ]
        arrays = {}
        for item in fields(TrackingPrograms):
            arrays[item.name] = np.concatenate([getattr(block, item.name) for block in blocks])
        return TrackingPrograms(**arrays)
    _, m2, n_u = steps.B.shape
    N = law.horizon
    K = len(samples)
    r = steps.output_jacobian.shape[1] // 2
    # errors at a step as matrices to be multiplied by (e, 1, x)
    error = np.zeros((K, m2, m2 + 1 + N * n_u))
    error[:, :, :m2] = np.eye(m2)
    position_weight = np.sqrt(period) * law.bandwidth**2
    speed_weight = np.sqrt(period) * np.sqrt(4 * law.damping**2 - 2) * law.bandwidth
    # square roots of the terms of the cost, and actuator speeds, as such matrices
    cost = []
    speeds = []
    y = steps.output_jacobian[samples] @ error
    relative = unit**2 / (unit**2).max()
    for j in range(N):
        k = samples + j
        cost += [position_weight * y[:, :r], speed_weight * y[:, r:]]
        error = steps.A[k] @ error
        error[:, :, m2] += steps.drift[k]
        columns = slice(m2 + 1 + j * n_u, m2 + 1 + (j + 1) * n_u)
        error[:, :, columns] += steps.B[k] * unit
        after = np.minimum(k + 1, len(steps.A) - 1)
        before, y = y, steps.output_jacobian[after] @ error
        cost.append((y - before)[:, r:] / np.sqrt(period))
        if n_u > r:
            # forces u = mean + unit x have the smallest norm if N^T u = 0, where N = unit V are
            # the forces that do not move the machine
            _, singular_values, directions = np.linalg.svd(cost[-1][:, :, columns])
            V = directions[:, r:]
            idle = np.zeros((K, n_u - r, error.shape[2]))
            weight = IDLE_FORCE_WEIGHT * singular_values[:, -1, None, None]
            scaled = V * relative
            idle[:, :, columns] = weight * np.linalg.solve(scaled @ V.mT, scaled)
            idle[:, :, m2] = np.einsum("kij,kj->ki", idle[:, :, columns], steps.mean[k] / unit)
            cost.append(idle)
        speeds.append(steps.actuator_jacobian[after] @ error)
    L = np.linalg.cholesky(last_cost(law.bandwidth, law.damping, period))
    cost += [L[0, 0] * y[:, :r] + L[1, 0] * y[:, r:], L[1, 1] * y[:, r:]]
    all_terms = np.concatenate(cost, axis=1)
    by_error, by_force = all_terms[:, :, : m2 + 1], all_terms[:, :, m2 + 1 :]
    H = by_force.mT @ by_force
    F = by_force.mT @ by_error
    scale = np.einsum("kii->ki", H).max(axis=1)[:, None, None]
    H, F = H / scale, F / scale
    best = np.stack([-cho_solve(cho_factor(H_k), F_k) for H_k, F_k in zip(H, F, strict=True)])
    all_speeds = np.concatenate(speeds, axis=1)
    return TrackingPrograms(
        H=H, F=F, R=all_speeds[:, :, m2 + 1 :], S=all_speeds[:, :, : m2 + 1], best=best
    )


@final
class PredictiveRun:
    """Force callback of a run, with counts of the kinds of its solutions.

    Attributes:
        outcomes: number of samples by diagnostic; the keys are those of `SOLUTION_CHECKS`.
    """

    def __init__(self, law: PredictiveTracking, loop: Loop) -> None:
        """Linearize along the reference, and condense the programs.

        Raises:
            InputError: the largest force of a motor is needed but unknown, or the horizon is too
                long.
            PoseError: the reference is out of reach or singular.
        """
        _require_limits(law, loop)
        model = loop.model
        T = loop.period
        n_u, count = len(loop.limit), len(loop.feedforward)
        self._law = law
        self._period = T
        position, speed, acceleration = _reference(loop)
        leading = list(model.assembly.leading)
        self._reference = position[:, leading], speed[:, leading], acceleration[:, leading]
        self._fit = _fit(loop, self._reference[0]) if model.assembly.is_redundant else None
        # differences lag by half a sample; the reference's differences have the same lag
        self._expected = position, speed
        if loop.uses_velocity_differences:
            self._expected = position, np.diff(position, axis=0, prepend=position[:1]) / T
        # the delay is a number of whole samples and a fraction of a sample
        self._whole, remaining_substeps = divmod(loop.delay, loop.substeps)
        late = remaining_substeps * T / loop.substeps
        grid = partial(
            error_steps,
            model,
            self._reference,
            T,
            in_platform=law.space == "platform",
            start=loop.q,
        )
        self._steps = grid(first=late, step=T, count=count + self._whole + law.horizon)
        # the part of a sample in which the previous forces still act
        self._late_step = None
        if remaining_substeps:
            self._late_step = grid(first=0.0, step=late, count=count)
        self._most = np.broadcast_to(loop.limit, self._steps.mean.shape)
        if law.motor_curve:
            self._most = loop.limit * np.interp(
                np.abs(self._steps.speed), *np.array(law.motor_curve, dtype=float).T
            )
        self._unit = np.where(
            np.isfinite(loop.limit), loop.limit, 1 / np.abs(self._steps.B).max(axis=(0, 1))
        )
        size = law.horizon * n_u
        if 8.0 * count * size**2 > MAX_PROGRAM_BYTES:
            what = f"{law.horizon} steps at each of {count} samples need {8e-9 * count * size**2:.1f} GB"
            raise InputError.of("horizon", what, "use a shorter horizon")
        self._programs = condensed(self._steps, law, T, self._unit, np.arange(count) + self._whole)
        fastest = np.tile([actuator.speed for actuator in model.mechanism.actuators], law.horizon)
        self._fast, self._speed = np.isfinite(fastest), fastest[np.isfinite(fastest)]
        # matrix that maps the forces to their changes from step to step
        self._changes = (np.eye(size) - np.eye(size, k=-n_u))[: size if law.reversal else 0]
        self._change = NO_LIMITS
        if law.reversal:
            largest_change = 2 * loop.limit / self._unit * T / law.reversal
            self._change = np.tile(largest_change, law.horizon)
        limited_rows = len(self._speed) + len(self._change)
        self._solvers = {rows: QuadraticProgram(size, rows) for rows in {0, limited_rows}}
        self._sent = deque([loop.initial_force] * (self._whole + 1), maxlen=self._whole + 1)
        self.outcomes: Counter[str] = Counter()

    def __call__(
        self, time: float, measured: np.ndarray, speed: np.ndarray, _: np.ndarray
    ) -> np.ndarray:
        """Return the forces (n_u,) of this sample."""
        k = round(time / self._period)
        steps, sent = self._steps, self._sent
        deviation = np.stack([measured - self._expected[0][k], speed - self._expected[1][k]])
        e = (deviation if self._fit is None else deviation @ self._fit[k].T).ravel()
        # predict the error at which the new forces begin to act, under the forces already sent
        predictions = [(self._late_step, k, sent[0])]
        predictions += [(steps, k + j, sent[j + 1]) for j in range(self._whole)]
        for linear, i, force in predictions:
            if linear is not None:
                e = linear.A[i] @ e + linear.B[i] @ (force - linear.mean[i]) + linear.drift[i]
        begins = k + self._whole
        window = slice(begins, begins + self._law.horizon)
        x, outcome = self._solve(k, np.append(e, 1.0), window)
        self.outcomes[outcome] += 1
        most = self._most[begins]
        force = np.clip(steps.mean[begins] + self._unit * x[: len(most)], -most, most)
        sent.append(force)
        return force

    def _solve(self, k: int, known: np.ndarray, window: slice) -> tuple[np.ndarray, str]:
        """Return the scaled forces x (N n_u,) at sample k, and the diagnostic that counts them.

        `known` is (e, 1), and `window` are the steps of the horizon.
        """
        programs, mean = self._programs, (self._steps.mean[window] / self._unit).ravel()
        most = (self._most[window] / self._unit).ravel()
        lower, upper = -most - mean, most - mean
        x = programs.best[k] @ known
        rows = self._rows(k, known, window, mean)
        if is_within(x, lower, upper) and (not rows or is_within(rows[0] @ x, *rows[1:])):
            return x, UNLIMITED
        cost = programs.H[k], programs.F[k] @ known, (lower, upper)
        solved = self._solvers[len(rows[1]) if rows else 0](*cost, *rows)
        if solved is not None:
            return solved, LIMITED
        relaxed = self._solvers[0](*cost) if rows else None
        if relaxed is None:
            return np.clip(x, lower, upper), UNSOLVED_PROGRAMS
        return relaxed, RELAXED_PROGRAMS

    def _rows(
        self, k: int, known: np.ndarray, window: slice, mean: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Return the matrix R of speeds and force changes, with lower and upper bounds of R x.

        The result is empty without such limits.
        """
        if len(self._solvers) == 1:
            return ()
        programs, reference = self._programs, self._steps.speed[window].ravel()
        speed = (reference + programs.S[k] @ known)[self._fast]
        changes = self._changes @ mean
        if len(self._change):
            changes[: len(self._unit)] -= self._sent[-1] / self._unit
        R = np.concatenate([programs.R[k][self._fast], self._changes])
        size = np.concatenate([self._speed, self._change])
        offset = np.concatenate([speed, changes])
        return R, -size - offset, size - offset

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the fraction of samples with each kind of solution."""
        count = max(self.outcomes.total(), 1)
        return tuple(
            diagnostic(name, self.outcomes[name] / count, at_most=upper, advice=advice)
            for name, (upper, advice) in SOLUTION_CHECKS.items()
        )


def is_within(x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> bool:
    """Return whether numbers are within their bounds, apart from rounding."""
    return bool(
        np.all(x <= upper + PREDICTED_LIMIT_TOLERANCE)
        and np.all(x >= lower - PREDICTED_LIMIT_TOLERANCE)
    )


def _reference(loop: Loop) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the reference positions, velocities and accelerations of all actuators (N, n_u)."""
    if loop.controller.space != "platform":
        return loop.reference
    q, v, a = loop.reference
    platform, A = loop.model.platform, loop.model.assembly.loops.transmission
    state = platform.kinematics(platform.ports.at(q), v, a, start=q)
    return loop.model.actuator_position(q), np.asarray(state.v) @ A.T, np.asarray(state.a) @ A.T


def _fit(loop: Loop, position: np.ndarray) -> np.ndarray:
    """Return the least-squares map L (N, m, n_u) from all actuators' motions to the leading ones.

    `position` contains the positions of the leading actuators (N, m).
    """
    actuators, weigh = loop.model.actuators, spread(loop.model, loop.resolution)
    R = actuators.actuator_jacobian(position, start=actuators.track(position, loop.q).q)
    return np.asarray(np.linalg.pinv(R / weigh[:, None]) / weigh)


def _require_limits(law: PredictiveTracking, loop: Loop) -> None:
    """Reject limits that are relative to the largest forces if these are unknown."""
    problems = Problems()
    relative_limits = {"motor_curve": bool(law.motor_curve), "reversal": law.reversal > 0}
    for name, is_given in relative_limits.items():
        if is_given and not np.isfinite(loop.limit).all():
            problem = "requires motors with known largest forces"
            problems.add(name, problem, "give `force` to the actuators, and keep saturation on")
    InputError.raise_if_any(problems)
