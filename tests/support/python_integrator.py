"""The integrator in Python, a reference for `hybrid.c` and `system.c`: the same steps, by NumPy and CasADi."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.c.printing.precision import PROJECTION_TOLERANCE
from tauloop.compiler.derivatives.tangents import moved
from tauloop.compiler.state import CONVERGED, solve_diagnostics
from tauloop.equations.values import BatchFunction
from tauloop.integrate.integrators import Method
from tauloop.integrate.outcome import StepOutcome
from tauloop.integrate.routine import Own, Routine, RoutineCall, split_place
from tauloop.integrate.system import MAX_PROJECTIONS, WORST, HybridSystem

#: Arrays by name.
Arrays = dict[str, np.ndarray]
#: As in `hybrid.c`, which explains the values.
SAFETY, LEAST_FACTOR, GREATEST_FACTOR, RETREAT, STRETCH = 0.9, 0.2, 10.0, 0.25, 0.01
SMALLEST_STEP, SMALLEST_RETREAT, FARTHEST_RETURN = 1e-13, 1e-10, 10.0
ADVANCE, CROWD, MOST_CROWDED, ROUNDS, TRIES = 1e-10, 1e-9, 200, 40, 90
NEWTON, STALE, MEMORY, LEAST_ERROR = 7, 1e-3, 0.04, 1e-4

_ROOT = np.sqrt(6.0)
_C = np.array([(4 - _ROOT) / 10, (4 + _ROOT) / 10, 1.0])
_A_1 = [(88 - 7 * _ROOT) / 360, (296 - 169 * _ROOT) / 1800, (-2 + 3 * _ROOT) / 225]
_A_2 = [(296 + 169 * _ROOT) / 1800, (88 + 7 * _ROOT) / 360, (-2 - 3 * _ROOT) / 225]
_A_3 = [(16 - _ROOT) / 36, (16 + _ROOT) / 36, 1 / 9]
_A = np.array([_A_1, _A_2, _A_3])
_M = np.linalg.inv(_A)
_REAL = float(min(np.linalg.eigvals(_M), key=lambda value: abs(value.imag)).real)
_E = np.array([-13 - 7 * _ROOT, -13 + 7 * _ROOT, -1.0]) / 3
_P = np.linalg.inv(np.stack([_C, _C**2, _C**3], axis=1))


class InterpretedProblem(ABC):
    """Problem y' = f(t, y) under modes; as `tl_problem`.

    Attributes:
        slopes: derivatives of the first guards along the directions (d, m), from the last
            evaluation of rates.
    """

    slopes: np.ndarray = np.zeros((0, 0))

    @abstractmethod
    def rate(self, run: Run, time: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return rates (n,), guards (m,) and whether they are reliable; may set `run.known`."""

    def reset(self, run: Run, y: np.ndarray) -> np.ndarray:
        """Return the state with the values that the modes prescribe."""
        return y

    def back(self, run: Run, y: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the projected state, with 1 if it moved, 0 if not, -1 if the projection failed."""
        return y, 0


class Run:
    """State of an integration; as `tl_run`."""

    def __init__(
        self,
        problem: InterpretedProblem,
        method: Method,
        y: np.ndarray,
        *,
        modes: np.ndarray | None = None,
        guess: np.ndarray | None = None,
    ) -> None:
        """Start an integration.

        Args:
            problem: problem to integrate.
            method: numeric parameters of the integrator.
            y: state (n,).
            modes: (m,), 0 or 1.
            guess: start of iterations in rates; restored when a step is rejected.
        """
        self.problem, self.method, self.y = problem, method.tableau, np.array(y, dtype=float)
        self.s = np.zeros(0) if modes is None else np.array(modes, dtype=float)
        self.guess = np.zeros(0) if guess is None else np.array(guess, dtype=float)
        (self.step, self.rtol, self.atol, self.longest), self.time = method.numbers, 0.0
        self.known: object = None
        self.start, self.Q = self.y, np.zeros((3, len(self.y)))
        self.start_known: object = None
        self.origin, self.length, self.share, self.is_event = 0.0, 0.0, 1.0, False
        self.evaluations = self.rejected = self.steps = self.events = 0
        self.is_known = self._is_behind_event = False
        self._crowded, self._last, self._last_error, self._jacobian = (
            0,
            0.0,
            LEAST_ERROR,
            (np.zeros(0), 0),
        )
        self._K = self._guards = np.zeros(0)
        self._known_now: object = None

    def along(self, x: float) -> np.ndarray:
        """Return the state at a share of the last step."""
        return np.asarray(self.start + x ** np.arange(1, len(self.Q) + 1) @ self.Q)

    def agree(self) -> bool:
        """Flip modes until all guards hold; return whether the rates are reliable."""
        good, flipped, change = True, False, None
        for turn in range(ROUNDS + 1):
            self._K, self._guards, good = self._rates(self.time, self.y)
            wrong = np.where(self.s != 0, self._guards < 0, self._guards > 0)
            if turn == ROUNDS or not wrong.any():
                break
            if not turn and good and self._is_behind_event and len(self.problem.slopes):
                change = self._instant()
                self._shift(change)
            self.s, flipped = np.where(wrong, 1 - self.s, self.s), True
            self.y = self.problem.reset(self, self.y)
        if change is not None:
            self._shift(-change)
            self._K, self._guards, again = self._rates(self.time, self.y)
            good = good and again
        self._known_now, self.is_known, self._is_behind_event = self.known, True, False
        if flipped:
            self._jacobian = np.zeros(0), 0
        return good

    def _instant(self) -> np.ndarray:
        """Return the derivatives of the event's time along the directions (d,); `tl_instant`."""
        slopes = self.problem.slopes.copy()
        over = np.where(self.s != 0, -self._guards, self._guards)[: slopes.shape[1]]
        if not over.max(initial=0.0) > 0:
            return np.zeros(len(slopes))
        met, n = int(over.argmax()), len(self.y) // (1 + len(slopes))
        moved = self.y.copy()
        moved[n : 2 * n] += self._K[:n]
        self._rates(self.time, moved)
        speed = self.problem.slopes[0, met] - slopes[0, met]
        return np.asarray(-slopes[:, met] / speed) if speed else np.zeros(len(slopes))

    def _shift(self, change: np.ndarray) -> None:
        """Shift derivatives by those of the event's time; as `tl_shift`."""
        n = len(self.y) // (1 + len(change))
        self.y = self.y + np.concatenate([np.zeros(n), np.outer(change, self._K[:n]).ravel()])

    def next(self, limit: float) -> StepOutcome:
        """One step that is good enough, up to an instant at most; what it comes to. As `tl_next`."""
        if not self.is_known and not self.agree():
            return StepOutcome.SINGULAR
        near, after_rejection = self.guess.copy(), False
        is_fixed = self.method is not None and not self.method.is_adaptive
        while True:
            h = min(self.step, self.longest)
            is_last = self.time + h * (1 + STRETCH) >= limit
            h = limit - self.time if is_last else h
            with np.errstate(all="ignore"):
                trial = (
                    self._explicit(h)
                    if self.method is not None
                    else self._implicit(h, near, after_rejection)
                )
            healthy, good, moved = trial.healthy, trial.good, 0
            factor = min(
                max(trial.factor, LEAST_FACTOR), 1.0 if after_rejection else GREATEST_FACTOR
            )
            if good:
                before = self.start, self.Q
                self.start, self.Q = self.y, trial.Q
                share = self._event(h, trial.guards) if len(self.s) else 1.0
                is_event = share < 1.0 or self._violation(trial.guards) > 0
                end = self.along(share) if share < 1.0 else trial.end
                back, moved = self.problem.back(self, end)
                if moved and not is_fixed:
                    good = moved > 0 and self._norm(back - end, back) < FARTHEST_RETURN
                if good:
                    self._take(trial, back, h, share, limit if is_last and share == 1.0 else None)
                    self.is_known, self._last = (
                        not moved and bool(self.method is None or self.method.dense.size),
                        h,
                    )
                    if not is_fixed and not is_event:
                        self.step = h * factor if not is_last or factor < 1.0 else self.step
                        self._last_error = max(trial.norm, LEAST_ERROR)
                    self.is_event = is_event
                    if is_event:
                        self.events, self.is_known, self.step, self._last = (
                            self.events + 1,
                            False,
                            h,
                            0.0,
                        )
                        self._is_behind_event = True
                        self._crowded = self._crowded + 1 if share * h < CROWD else 0
                        if self._crowded > MOST_CROWDED:
                            return StepOutcome.CHATTERING
                    return StepOutcome.LOOPS_LOST if moved < 0 else StepOutcome.SUCCESS
                self.start, self.Q = before
                healthy, factor, self._last = False, RETREAT, 0.0
            self.rejected += 1
            self.guess = near.copy()
            if moved < 0:
                lost = StepOutcome.LOOPS_LOST
            else:
                lost = StepOutcome.STEP_TOO_SMALL if healthy else StepOutcome.SINGULAR
            if is_fixed or h < (SMALLEST_STEP if healthy else SMALLEST_RETREAT):
                return lost
            after_rejection, self.step = True, h * factor

    def _take(
        self, trial: _Trial, y: np.ndarray, h: float, share: float, instant: float | None
    ) -> None:
        self.origin, self.length, self.share = self.time, h, share
        self.time = self.time + share * h if instant is None else instant
        self.y, self._K, self._guards = y, trial.rate, trial.guards
        self.start_known, self._known_now = self._known_now, trial.known
        self.steps += 1

    def _rates(self, time: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        self.evaluations += 1
        rate, guards, good = self.problem.rate(self, time, y)
        return rate, guards, good and bool(np.isfinite(rate).all())

    def _violation(self, guards: np.ndarray) -> float:
        return float(np.where(self.s != 0, -guards, guards).max(initial=-np.inf))

    def _norm(self, error: np.ndarray, to: np.ndarray) -> float:
        """Return an error relative to the tolerance, as root mean square over the state."""
        scale = self.atol + self.rtol * np.maximum(np.abs(self.y), np.abs(to))
        return float(np.sqrt(np.mean((error / scale) ** 2)))

    def _explicit(self, h: float) -> _Trial:
        method = self.method
        assert method is not None
        K, end, guards = [self._K], self.y, self._guards
        for s in range(1, len(method.c)):
            end = self.y + h * (method.A[s, :s] @ np.array(K))
            if s + 1 == len(method.c) and not method.dense.size:
                return _Trial(end, self._K, guards, healthy=bool(np.isfinite(end).all()))
            rate, guards, good = self._rates(self.time + method.c[s] * h, end)
            if not good:
                return _Trial(self.y, self._K, self._guards, healthy=False)
            K.append(rate)
        stages = np.array(K)
        norm = self._norm(h * (method.error @ stages), end) if method.is_adaptive else 0.0
        factor = GREATEST_FACTOR
        if norm > 0:
            factor = SAFETY * norm ** (0.75 * MEMORY - 1 / method.order) * self._last_error**MEMORY
        Q = h * (method.dense.T @ stages)
        return _Trial(end, stages[-1], guards, known=self.known, norm=norm, factor=factor, Q=Q)

    # Radau IIA

    def _near(
        self, near: np.ndarray, time: float, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return rates with iterations from the start of the step, not from a trial's result."""
        self.guess = near.copy()
        return self._rates(time, y)

    def _differences(self, near: np.ndarray) -> bool:
        """Compute the Jacobian at the step's start by differences; return whether it succeeded."""
        columns = []
        for j in range(len(self.y)):
            moved = self.y.copy()
            moved[j] += (-1.5e-8 if self._K[j] < 0 else 1.5e-8) * max(abs(self.y[j]), 1e-5)
            rate, _, good = self._near(near, self.time, moved)
            if not good:
                return False
            columns.append((rate - self._K) / (moved[j] - self.y[j]))
        self._jacobian = np.array(columns).T, 2
        return True

    def _implicit(self, h: float, near: np.ndarray, after_rejection: bool) -> _Trial:
        nothing = _Trial(self.y, self._K, self._guards, healthy=False)
        while True:
            if not self._jacobian[1] and not self._differences(near):
                return nothing
            iteration = self._iterated(h, near)
            if iteration.converged:
                return self._judged(h, iteration, near, after_rejection)
            if self._jacobian[1] == 2:
                return (
                    _Trial(self.y, self._K, self._guards, factor=0.5, norm=np.inf)
                    if iteration.healthy
                    else nothing
                )
            self._jacobian = self._jacobian[0], 0

    def _iterated(self, h: float, near: np.ndarray) -> _Stages:
        """Solve for the stages' distances from the state by Newton's method."""
        n, before, rate = len(self.y), 0.0, 0.0
        tolerance = max(2e-15 / self.rtol, min(0.03, np.sqrt(self.rtol)))
        whole = np.kron(_M / h, np.eye(n)) - np.kron(np.eye(3), self._jacobian[0])
        Z = np.zeros((3, n))
        if self._last > 0:
            Z = np.array([self.along(1 + c * h / self._last) for c in _C]) - self.along(1.0)
        for tries in range(NEWTON):
            stages = [self._near(near, self.time + _C[k] * h, self.y + Z[k]) for k in range(3)]
            if not all(good for _, _, good in stages):
                return _Stages(Z, tries, rate, converged=False, healthy=False)
            F = np.array([stage for stage, _, _ in stages])
            try:
                change = np.linalg.solve(whole, (F - _M @ Z / h).ravel()).reshape(3, n)
            except np.linalg.LinAlgError:
                break
            moved = float(
                np.sqrt(np.mean((change / (self.atol + self.rtol * np.abs(self.y))) ** 2))
            )
            rate = moved / before if tries else 0.0
            if not np.isfinite(moved) or rate >= 1:
                break
            if tries and rate ** (NEWTON - tries) / (1 - rate) * moved > tolerance:
                break
            Z = Z + change
            if moved == 0 or (tries and rate / (1 - rate) * moved < tolerance):
                return _Stages(Z, tries + 1, rate, converged=True, healthy=True)
            before = moved
        return _Stages(Z, NEWTON, rate, converged=False, healthy=True)

    def _judged(self, h: float, stages: _Stages, near: np.ndarray, after_rejection: bool) -> _Trial:
        """Return an implicit step with known stages, and its error."""
        Z, tries = stages.Z, stages.tries
        end, defect = self.y + Z[2], _E @ Z / h
        real = _REAL / h * np.eye(len(self.y)) - self._jacobian[0]
        error = np.linalg.solve(real, self._K + defect)
        norm = self._norm(error, end)
        if norm > 1 and after_rejection:
            again, _, good = self._near(near, self.time, self.y + error)
            if not good:
                return _Trial(self.y, self._K, self._guards, healthy=False)
            norm = self._norm(np.linalg.solve(real, again + defect), end)
        factor = GREATEST_FACTOR
        if norm > 0:
            factor = SAFETY * (2 * NEWTON + 1) / (2 * NEWTON + tries) * norm**-0.25
            if self._last > 0:
                factor *= min(1.0, h / self._last * (self._last_error / norm) ** 0.25)
        if norm >= 1:
            return _Trial(end, self._K, self._guards, norm=norm, factor=factor)
        self._jacobian = self._jacobian[0], 0 if tries > 2 and stages.rate > STALE else 1
        last, guards, good = self._near(near, self.time + h, end)
        return _Trial(
            end, last, guards, known=self.known, norm=norm, factor=factor, Q=_P @ Z, healthy=good
        )

    def _event(self, h: float, guards: np.ndarray) -> float:
        """Return the share of the step at which a guard first changes sign; else 1."""

        def at(x: float) -> float:
            return self._violation(self._rates(self.time + x * h, self.along(x))[1])

        lo, hi, v_lo, v_hi = 0.0, 1.0, self._violation(self._guards), self._violation(guards)
        middle = at(0.5)
        if middle > 0:
            hi, v_hi = 0.5, middle
        elif v_hi > 0:
            lo, v_lo = 0.5, middle
        else:
            return 1.0
        least = min(ADVANCE / h, 0.25)
        if lo < least:
            v = at(least)
            hi = least if v > 0 else hi
            lo, v_lo = least, v
        side = 0
        for k in range(TRIES):
            if (hi - lo) * h <= 1e-15 * (1 + self.time) or hi - lo <= 1e-16:
                break
            x = (
                (lo * v_hi - hi * v_lo) / (v_hi - v_lo)
                if k % 3 != 2 and v_lo < 0
                else 0.5 * (lo + hi)
            )
            v = at(x)
            if v > 0:
                hi, v_hi, v_lo, side = x, v, v_lo * (0.5 if side == 1 else 1.0), 1
            else:
                lo, v_lo, v_hi, side = x, v, v_hi * (0.5 if side == -1 else 1.0), -1
        return hi


@dataclass(frozen=True, slots=True)
class _Stages:
    """Result of Newton's method: stages' distances (3, n), iterations and convergence rate."""

    Z: np.ndarray
    tries: int
    rate: float
    converged: bool
    healthy: bool


class _Trial:
    """A computed step before acceptance: end, rates and guards there, and polynomials."""

    __slots__ = ("Q", "end", "factor", "good", "guards", "healthy", "known", "norm", "rate")

    def __init__(
        self,
        end: np.ndarray,
        rate: np.ndarray,
        guards: np.ndarray,
        *,
        known: object = None,
        norm: float = 0.0,
        factor: float = RETREAT,
        Q: np.ndarray | None = None,
        healthy: bool = True,
    ) -> None:
        self.end, self.rate, self.guards, self.known = end, rate, guards, known
        self.norm, self.factor = norm, factor
        self.Q = np.zeros((1, len(end))) if Q is None else Q
        self.healthy, self.good = healthy, healthy and norm < 1.0


def view(arrays: Arrays, place: str, size: int | None = None) -> np.ndarray:
    name, start = split_place(place)
    return arrays[name][start : None if size is None else start + size]


@functools.cache
def _batch_function(function: ca.Function) -> BatchFunction:
    return BatchFunction(function)


def run_call(call: RoutineCall, arrays: Arrays, worst: np.ndarray, own: Own | None) -> bool:
    """Run a call on arrays by name; return whether the result is reliable."""
    if call.when and view(arrays, call.when, 1) == 0:
        return True
    if call.function is None:
        if own is not None:
            time, seen, made = (view(arrays, place, n) for place, n in call.further.values())
            own(float(time[0]), seen, made)
        return True
    if isinstance(call.function, ca.Function):
        sizes = map(call.function.numel_in, range(call.function.n_in()))
        views = [view(arrays, place, n)[None] for place, n in zip(call.inputs, sizes, strict=True)]
        parts = _batch_function(call.function)(views, 1)
    else:
        program = call.function.program
        named = {name: view(arrays, place, n)[None] for name, (place, n) in call.further.items()}
        results, diagnostics = program.run(named, 1)
        parts = [results[port.name] for port in call.function.outputs]
        judged = solve_diagnostics(
            program, diagnostics, {str(i): part for i, part in enumerate(parts)}
        )
        if call.is_judged:
            least = float(judged.discriminants.min(initial=1.0)) if judged.finite[0] else -1e300
            residual = sum(float(np.abs(part[0])) for part in judged.residuals.values())
            figures = np.array([least, min(float(judged.smallest_pivot[0]), 1e300), residual])
            if not (least >= 0 and figures[1] > call.smallest_pivot and residual < CONVERGED):
                worst[3:] = figures
                return False
            worst[:3] = [
                min(worst[0], least),
                min(worst[1], figures[1]),
                max(worst[2], residual),
            ]
    for place, part in zip(call.outputs, parts, strict=True):
        view(arrays, place, part.shape[1])[:] = part[0]
    return True


def run_routine(
    routine: Routine, arrays: Arrays, worst: np.ndarray, own: Own | None = None
) -> bool:
    """Run a routine on arrays by name; return whether the result is reliable."""
    arrays |= {name: np.zeros(size) for name, size in routine._array_sizes().items()}
    for call in routine.calls:
        for j in range(1, 1 + routine.directions) if call.tangent is not None else ():
            there = ((name, n) for name, n in routine.varied.items() if name in arrays)
            arrays |= {moved(name): arrays[name][j * n : (j + 1) * n] for name, n in there}
            run_call(call.tangent, arrays, worst, None)
        if not run_call(call, arrays, worst, own):
            return False
    return True


class RoutineProblem(InterpretedProblem):
    """A system in Python, as in `system.c`.

    Attributes:
        system: the system.
        arrays: arrays by name; `in` and `held` belong to the loop around the steps.
        worst: smallest discriminant, smallest pivot and largest residual so far, and those of the
            last failure (6,).
        law: sets the applied forces at every evaluation of rates; None if they are constant.
    """

    def __init__(
        self,
        system: HybridSystem,
        p: np.ndarray,
        held: np.ndarray,
        values: Own | None = None,
        events: int = 0,
    ) -> None:
        """Create the problem.

        Args:
            system: the system.
            p: constants.
            held: forces before the first sample, followed by kept numbers.
            values: sets the guards of events, from the known coordinates and velocities.
            events: number of events.
        """
        self.system, self.worst = system, np.array(WORST)
        self.law: Callable[[float, np.ndarray, np.ndarray], None] | None = None
        self.arrays: Arrays = {
            "p": p,
            "z": np.array(held, dtype=float),
            "held": np.array(held, dtype=float),
        }
        self._values, self._events = values, events

    def seen(self, run: Run, y: np.ndarray) -> Arrays:
        """Return the arrays at a state."""
        modes, directions = len(self.system.modes), self.system.directions
        self.arrays |= {"y": y.copy(), "start": run.guess, "s": run.s[:modes]}
        self.arrays |= {
            "rate": np.zeros(max(len(y), 1)),
            "guards": np.zeros(modes * (1 + directions)),
        }
        return self.arrays

    def rate(self, run: Run, time: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return rates, and guards of the system and of events."""
        arrays, modes, directions = (
            self.seen(run, y),
            len(self.system.modes),
            self.system.directions,
        )
        if self.law is not None:
            self.law(time, y[: len(y) // (1 + directions)], arrays["in"])
        good = run_routine(self.system.rate, arrays, self.worst)
        guards, slopes = arrays["guards"][:modes], arrays["guards"][modes:]
        self.slopes = slopes.reshape(directions, modes)
        if good and self.system.rate.known:
            run.known = np.concatenate(
                [arrays[place][:size] for place, size in self.system.rate.known]
            )
        if self._values is not None:
            values = np.full(self._events, np.nan)
            if good:
                self._values(time, np.asarray(run.known), values)
            guards = np.concatenate([guards, values])
        return arrays["rate"], guards, good

    def reset(self, run: Run, y: np.ndarray) -> np.ndarray:
        """Return the state with the values that the modes prescribe."""
        arrays = self.seen(run, y)
        run_routine(self.system.reset, arrays, self.worst)
        return arrays["y"]

    def sample(self, run: Run, own: Own | None = None) -> bool:
        """Compute a sample at the current state; return whether it is reliable."""
        good = run_routine(self.system.sample, self.seen(run, run.y), self.worst, own)
        return good and bool(np.isfinite(self.arrays["z"][: self.system.held]).all())

    def back(self, run: Run, y: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the projected state."""
        for _ in range(MAX_PROJECTIONS if self.system.back.calls else 0):
            arrays = self.seen(run, y)
            run_routine(self.system.back, arrays, self.worst)
            y = arrays["y"]
            if arrays["rate"][0] < PROJECTION_TOLERANCE:
                return y, 1
        return y, -1 if self.system.back.calls else 0
