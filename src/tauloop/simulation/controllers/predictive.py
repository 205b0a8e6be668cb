"""Model predictive tracking: the forces of the next samples that cost least within the limits, anew at each sample.

With e = (p - p_ref, p' - p_ref') and what counts of it, y and y' (of the actuators or of the
platform),

    sum over the horizon of  T (w^4 y^2 + (4 z^2 - 2) w^2 y'^2 + y''^2),  y''_k = (y'_{k+1} - y'_k)
    / T,

and behind it what a mass without limits still costs (from the Riccati equation): the cost whose
least, in continuous time and without limits, is y'' + 2 z w y' + w^2 y = 0, the computed torque of
the same bandwidth and damping. With linear steps of e (`error_steps`) it is a quadratic program in
the forces alone (condensed). Redundant actuators share forces by the least norm, but where a limit
is in the way: what moves nothing has a small cost of its own.

Source: Rawlings, Mayne and Diehl, Model Predictive Control, 2nd ed., 2017, sections 1.3 and 8.8.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import fields
from functools import partial
from typing import final

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_discrete_are

from tauloop.common.errors import InputError, Problems
from tauloop.common.options import option
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.simulation.controllers.error_steps import ErrorSteps, error_steps
from tauloop.simulation.controllers.laws import Controller, Correction, Loop
from tauloop.simulation.controllers.quadratic import QuadraticProgram
from tauloop.simulation.controllers.redundant import spread

#: Samples that are condensed at once, and bytes of programs that a run may have.
BLOCK, MOST_BYTES = 64, 2e9
#: Share, in the cost, of forces that move nothing: their root beside what the least acceleration by
#: as much costs.
IDLE = 0.03
#: Beyond a limit by this share is rounding.
ROUNDING = 1e-9
NONE = np.zeros(0)
#: Of these none is good: it could not do what it was to do.
RELAXED = "share of samples without limits of speeds and changes"
CUT = "share of samples whose program was not solved"
#: How the forces of a sample came about: names of diagnostics.
FREE, LIMITED = (
    "share of samples whose best forces keep all limits",
    "share of samples with limits active",
)
#: The largest share that is good, and advice.
WAYS = {
    FREE: (None, ""),
    LIMITED: (None, ""),
    RELAXED: (
        0.0,
        "no forces kept the limits of speeds and changes, which were left out: a slower motion",
    ),
    CUT: (0.0, "forces of the least cost without limits were cut off at them: a shorter horizon"),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PredictiveTracking(Controller):
    """The forces of the next samples that cost least within the limits, computed anew at each sample.

    It minimises the sum of w^4 y^2 + (4 z^2 - 2) w^2 y'^2 + y''^2 over errors y of the next
    samples, so that without limits it is computed torque. Errors go on in linear steps, with exact
    derivatives of forward dynamics along the reference; a delay and speeds of motors are foreseen.

    Attributes:
        damping: z, at least the square root of 1/2: no sum of squares has a least that overshoots
            more.
        horizon: samples that it looks ahead.
        motor_curve: share of the largest force that motors have at a speed (rad/s, m/s): ((0, 1),
            (20, 1), (40, 0.3)).
        reversal: time that motors need for a full reversal of their force, s; zero for none.

    Examples:
        >>> import tauloop as tl
        >>> law = tl.simulation.PredictiveTracking(bandwidth=150.0, horizon=15, reversal=0.01)
        >>> stroke = tl.StrokeOptions(end={"x": 0.02}, time=0.1)
        >>> comparison = tl.follow_path(tl.load("five_bar"), tl.ControlOptions(stroke=stroke, controller=(law,)))
        >>> bool(comparison.runs["PredictiveTracking"].peak_error < 1e-4)
        True
    """

    damping: float = option(1.0, least=0.5**0.5, below=np.inf)
    horizon: int = option(20, least=1)
    motor_curve: tuple[tuple[float, float], ...] = option(())
    reversal: float = option(0.0, least=0.0, below=np.inf)

    def correction(self, loop: Loop) -> Correction:
        """The solution of a quadratic program, in place of what gains make of the errors."""
        return PredictiveRun(self, loop)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackingPrograms:
    """Programs of K samples over N steps: cost x^T H x / 2 + (F e + f)^T x, rows R x + S e + s, in x.

    Unknowns x are forces beyond the reference's, (u - mean) over their units, step by step.

    Attributes:
        H, F: (K, N n_u, N n_u) and (K, N n_u, 2 m + 1): the last column is f.
        R, S: rows (K, r, N n_u) and (K, r, 2 m + 1).
        best: forces without limits: x = best (e, 1), (K, N n_u, 2 m + 1).
    """

    H: np.ndarray
    F: np.ndarray
    R: np.ndarray
    S: np.ndarray
    best: np.ndarray


def last_cost(bandwidth: float, damping: float, period: float) -> np.ndarray:
    """P (2, 2): what (y, y') of a mass that is pushed without limits still costs, sample by sample."""
    A, B = np.array([[1.0, period], [0.0, 1.0]]), np.array([[period**2 / 2], [period]])
    weights = np.diag([bandwidth**4, (4 * damping**2 - 2) * bandwidth**2])
    return np.asarray(solve_discrete_are(A, B, period * weights, np.array([[period]])))


def condensed(
    steps: ErrorSteps, law: PredictiveTracking, period: float, unit: np.ndarray, samples: np.ndarray
) -> TrackingPrograms:
    """The programs that begin at some samples.

    Args:
        steps: of the errors, as far as the last program looks.
        law: bandwidth, damping, horizon.
        period: s.
        unit: of the forces (n_u,).
        samples: at which programs begin (K,).
    """
    if len(samples) > BLOCK:
        blocks = [
            condensed(steps, law, period, unit, samples[k : k + BLOCK])
            for k in range(0, len(samples), BLOCK)
        ]
        names = [item.name for item in fields(TrackingPrograms)]
        return TrackingPrograms(
            **{name: np.concatenate([getattr(block, name) for block in blocks]) for name in names}
        )
    (_, m2, n_u), N = steps.B.shape, law.horizon
    K, r = len(samples), steps.seen.shape[1] // 2
    # errors at a step as matrices by (e, 1, x)
    error = np.zeros((K, m2, m2 + 1 + N * n_u))
    error[:, :, :m2] = np.eye(m2)
    weights = (law.bandwidth**2, np.sqrt(4 * law.damping**2 - 2) * law.bandwidth)
    cost, speeds, y = [], [], steps.seen[samples] @ error
    relative = unit**2 / (unit**2).max()
    for k, j in ((samples + j, j) for j in range(N)):
        cost += [np.sqrt(period) * weights[0] * y[:, :r], np.sqrt(period) * weights[1] * y[:, r:]]
        error = steps.A[k] @ error
        error[:, :, m2] += steps.drift[k]
        here = slice(m2 + 1 + j * n_u, m2 + 1 + (j + 1) * n_u)
        error[:, :, here] += steps.B[k] * unit
        after = np.minimum(k + 1, len(steps.A) - 1)
        before, y = y, steps.seen[after] @ error
        cost.append((y - before)[:, r:] / np.sqrt(period))
        if n_u > r:
            # of least norm are forces u = mean + unit x with N^T u = 0, where N = unit V are those
            # that move nothing
            _, sizes, directions = np.linalg.svd(cost[-1][:, :, here])
            V = directions[:, r:]
            idle = np.zeros((K, n_u - r, error.shape[2]))
            idle[:, :, here] = (
                IDLE
                * sizes[:, -1, None, None]
                * np.linalg.solve((V * relative) @ V.mT, V * relative)
            )
            idle[:, :, m2] = np.einsum("kij,kj->ki", idle[:, :, here], steps.mean[k] / unit)
            cost.append(idle)
        speeds.append(steps.driven[after] @ error)
    half = np.linalg.cholesky(last_cost(law.bandwidth, law.damping, period)).T
    cost += [half[0, 0] * y[:, :r] + half[0, 1] * y[:, r:], half[1, 1] * y[:, r:]]
    rows = np.concatenate(cost, axis=1)
    rows, by_force = rows[:, :, : m2 + 1], rows[:, :, m2 + 1 :]
    H, F = by_force.mT @ by_force, by_force.mT @ rows
    size = np.einsum("kii->ki", H).max(axis=1)[:, None, None]
    H, F = H / size, F / size
    best = np.stack([-cho_solve(cho_factor(each), right) for each, right in zip(H, F, strict=True)])
    limited = np.concatenate(speeds, axis=1)
    return TrackingPrograms(
        H=H, F=F, R=limited[:, :, m2 + 1 :], S=limited[:, :, : m2 + 1], best=best
    )


@final
class PredictiveRun:
    """The law of one run: (time, measured, speed, force) -> force, and how its programs went.

    Attributes:
        went: samples by how their forces came about: one of `WAYS`.
    """

    def __init__(self, law: PredictiveTracking, loop: Loop) -> None:
        """Linearise and condense along the reference.

        Raises:
            InputError: motors whose largest force is not known, or too long a horizon.
            PoseError: the reference is out of reach or singular.
        """
        _require_limits(law, loop)
        model, T, n_u, count = loop.model, loop.period, len(loop.limit), len(loop.forward)
        self._law, self._period = law, T
        position, speed, acceleration = _reference(loop)
        lead = list(model.assembly.leading)
        self._reference = position[:, lead], speed[:, lead], acceleration[:, lead]
        self._fit = _fit(loop, self._reference[0]) if model.assembly.is_redundant else None
        # differences are late by half a sample, and so are those of the reference
        late_speed = np.diff(position, axis=0, prepend=position[:1]) / T
        self._expected = position, late_speed if loop.differences else speed
        self._whole, part = divmod(loop.delay, loop.substeps)
        late = part * T / loop.substeps
        grid = partial(
            error_steps,
            model,
            self._reference,
            T,
            in_platform=law.space == "platform",
            start=loop.q,
        )
        self._steps = grid(first=late, step=T, count=count + self._whole + law.horizon)
        # the part of a sample in which the forces before it still act
        self._rest = grid(first=0.0, step=late, count=count) if part else None
        self._most = np.broadcast_to(loop.limit, self._steps.mean.shape)
        if law.motor_curve:
            self._most = loop.limit * np.interp(
                np.abs(self._steps.speed), *np.array(law.motor_curve, dtype=float).T
            )
        self._unit = np.where(
            np.isfinite(loop.limit), loop.limit, 1 / np.abs(self._steps.B).max(axis=(0, 1))
        )
        size = law.horizon * n_u
        if 8.0 * count * size**2 > MOST_BYTES:
            what = f"{law.horizon} steps at each of {count} samples take {8e-9 * count * size**2:.1f} GB"
            raise InputError.of("horizon", what, "a shorter one")
        self._programs = condensed(self._steps, law, T, self._unit, np.arange(count) + self._whole)
        fastest = np.tile([actuator.speed for actuator in model.mechanism.actuators], law.horizon)
        self._fast, self._speed = np.isfinite(fastest), fastest[np.isfinite(fastest)]
        # forces -> their changes from step to step
        self._changes = (np.eye(size) - np.eye(size, k=-n_u))[: size if law.reversal else 0]
        self._change = (
            np.tile(2 * loop.limit / self._unit * T / law.reversal, law.horizon)
            if law.reversal
            else NONE
        )
        self._solvers = {
            rows: QuadraticProgram(size, rows) for rows in {0, len(self._speed) + len(self._change)}
        }
        self._sent = deque([loop.first] * (self._whole + 1), maxlen=self._whole + 1)
        self.went: Counter[str] = Counter()

    def __call__(
        self, time: float, measured: np.ndarray, speed: np.ndarray, _: np.ndarray
    ) -> np.ndarray:
        """The forces (n_u,) of this sample."""
        k, steps, sent = round(time / self._period), self._steps, self._sent
        beyond = np.stack([measured - self._expected[0][k], speed - self._expected[1][k]])
        e = (beyond if self._fit is None else beyond @ self._fit[k].T).ravel()
        # to where they begin to act, under forces that are on their way
        for passed, i, force in (
            (self._rest, k, sent[0]),
            *((steps, k + j, sent[j + 1]) for j in range(self._whole)),
        ):
            if passed is not None:
                e = passed.A[i] @ e + passed.B[i] @ (force - passed.mean[i]) + passed.drift[i]
        begins = k + self._whole
        window = slice(begins, begins + self._law.horizon)
        x, way = self._solved(k, np.append(e, 1.0), window)
        self.went[way] += 1
        most = self._most[begins]
        force = np.clip(steps.mean[begins] + self._unit * x[: len(most)], -most, most)
        sent.append(force)
        return force

    def _solved(self, k: int, known: np.ndarray, window: slice) -> tuple[np.ndarray, str]:
        """Forces beyond the reference's (N n_u,) of sample k from (e, 1), and how they came about."""
        programs, mean = self._programs, (self._steps.mean[window] / self._unit).ravel()
        most = (self._most[window] / self._unit).ravel()
        lower, upper = -most - mean, most - mean
        x = programs.best[k] @ known
        rows = self._rows(k, known, window, mean)
        if is_within(x, lower, upper) and (not rows or is_within(rows[0] @ x, *rows[1:])):
            return x, FREE
        cost = programs.H[k], programs.F[k] @ known, (lower, upper)
        solved = self._solvers[len(rows[1]) if rows else 0](*cost, *rows)
        if solved is not None:
            return solved, LIMITED
        solved = self._solvers[0](*cost) if rows else None
        return (np.clip(x, lower, upper), CUT) if solved is None else (solved, RELAXED)

    def _rows(
        self, k: int, known: np.ndarray, window: slice, mean: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Rows R of speeds and of changes of forces, and within what R x is to be; nothing without such limits."""
        if len(self._solvers) == 1:
            return ()
        programs, reference = self._programs, self._steps.speed[window].ravel()
        speed = (reference + programs.S[k] @ known)[self._fast]
        before = self._changes @ mean
        if len(self._change):
            before[: len(self._unit)] -= self._sent[-1] / self._unit
        R = np.concatenate([programs.R[k][self._fast], self._changes])
        size, beside = np.concatenate([self._speed, self._change]), np.concatenate([speed, before])
        return R, -size - beside, size - beside

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """How many of the samples needed a program, and how many got none of what they were to have."""
        count = max(self.went.total(), 1)
        return tuple(
            diagnostic(name, self.went[name] / count, at_most=upper, advice=advice)
            for name, (upper, advice) in WAYS.items()
        )


def is_within(x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> bool:
    """Whether numbers are within their bounds, to rounding."""
    return bool(np.all(x <= upper + ROUNDING) and np.all(x >= lower - ROUNDING))


def _reference(loop: Loop) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities and accelerations of all actuators (N, n_u) that a loop follows in either space."""
    if loop.controller.space != "platform":
        return loop.reference
    q, v, a = loop.reference
    platform, A = loop.model.platform, loop.model.assembly.loops.transmission
    state = platform.kinematics(platform.ports.at(q), v, a, start=q)
    return loop.model.actuator_position(q), np.asarray(state.v) @ A.T, np.asarray(state.a) @ A.T


def _fit(loop: Loop, position: np.ndarray) -> np.ndarray:
    """L (N, m, n_u): motion of the leading actuators that explains those of all best, at their positions (N, m)."""
    actuators, weigh = loop.model.actuators, spread(loop.model, loop.resolution)
    R = actuators.actuator_jacobian(position, start=actuators.track(position, loop.q).q)
    return np.asarray(np.linalg.pinv(R / weigh[:, None]) / weigh)


def _require_limits(law: PredictiveTracking, loop: Loop) -> None:
    """Refuse shares of forces that have no limit."""
    problems = Problems()
    for name, is_asked in {
        "motor_curve": bool(law.motor_curve),
        "reversal": law.reversal > 0,
    }.items():
        if is_asked and not np.isfinite(loop.limit).all():
            what = "is of motors whose largest force is not known"
            problems.add(name, what, "give `force` to actuators, and keep saturation")
    InputError.raise_if_any(problems)
