"""The hybrid integrator in Python, step by step: without a compiler, and to check machine code against.

Modes are constant within a step of Dormand and Prince's pair. A step at whose middle or end a guard is violated is cut
at the first violation; there modes flip until all guards hold, as in `tauloop.drives.stepping_source`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.integrate import RK45

from tauloop.drives.event_source import ADVANCE, CROWDED, MOST_CROWDED

#: Rounds in which modes are flipped until all agree, and most evaluations that locate an event.
ROUNDS, LOCATING = 40, 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step that keeps its tolerances, not taken yet.

    Attributes:
        Q: its dense output: y + Q (x, x^2, x^3, x^4) (n, 4).
        taken: its length, s.
        x: where an event cuts it; 1 without.
        is_event: whether one does.
        norm: of the error.
        rate, guards: at its end.
    """

    Q: np.ndarray
    taken: float
    x: float
    is_event: bool
    norm: float
    rate: np.ndarray
    guards: np.ndarray


class HybridRun(ABC):
    """A state with modes, and the steps that move it on.

    Attributes:
        y, s: states and modes.
        h: length of the next step, s.
        steps, events: so far.
        crowds: whether events pile up.
        healthy: whether the last rates can be relied on.
    """

    def __init__(self, y: np.ndarray, s: np.ndarray, h: float, rtol: float, atol: float) -> None:
        """Begin at a state; `agree` must follow."""
        self.y, self.s, self.h = y, s, h
        self.steps = self.events = self._crowded = 0
        self.healthy = True
        self._rtol, self._atol, self._last = rtol, atol, 1e-4
        self._rate, self._g = np.zeros_like(y), np.zeros_like(s)
        self._A, self._E, self._P = _tables()

    @abstractmethod
    def rates(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rates of all states, and guards, under the present modes."""

    @abstractmethod
    def reset(self) -> None:
        """Put the states where the modes prescribe them."""

    def normalise(self) -> None:
        """Bring the states back to where they must be, such as quaternions to unit length."""
        return

    @property
    def crowds(self) -> bool:
        """Whether too many events follow each other too closely."""
        return self._crowded > MOST_CROWDED

    def agree(self) -> None:
        """Flip modes until all guards hold."""
        for _ in range(ROUNDS):
            self._rate, self._g = self.rates(self.y)
            wrong = np.where(self.s != 0, self._g < 0, self._g > 0)
            if not wrong.any():
                return
            self.s = np.where(wrong, 1 - self.s, self.s)
            self.reset()
        self._rate, self._g = self.rates(self.y)

    def attempt(self, taken: float) -> Step | None:
        """A step of that length; None where its error is too large, and then the next is shorter."""
        self.steps += 1
        K, is_healthy, end, guards = [self._rate], True, self.y, self._g
        with np.errstate(invalid="ignore", over="ignore"):
            for j in range(1, 7):
                end = self.y + taken * (self._A[j, :j] @ np.array(K))
                rate, guards = self.rates(end)
                K.append(rate)
                is_healthy = is_healthy and self.healthy
            stages = np.array(K)
            size = np.maximum(np.abs(self.y), np.abs(end))
            error = taken * (self._E @ stages) / (self._atol + self._rtol * size)
            norm = float(np.sqrt(np.mean(error**2)))
        self.healthy = is_healthy
        if not (norm <= 1.0 and np.isfinite(end).all() and is_healthy):
            shorter = 0.9 * norm**-0.2 if np.isfinite(norm) and np.isfinite(end).all() and is_healthy else 0.1
            self.h = taken * max(shorter, 0.1)
            return None
        Q = taken * (stages.T @ self._P)
        x = self._event(Q, taken, guards)
        self.healthy = True
        return Step(
            Q=Q,
            taken=taken,
            x=1.0 if x is None else x,
            is_event=x is not None,
            norm=norm,
            rate=stages[-1],
            guards=guards,
        )

    def take(self, step: Step, *, is_last: bool) -> None:
        """Move on; behind an event modes and states must be made to agree (`agree`).

        Args:
            step: from `attempt`.
            is_last: whether it was shortened to end at a given time, so that the next need not be as short.
        """
        self.y = self.along(step.Q, step.x)
        self.normalise()
        if step.is_event:
            self.events += 1
            self._crowded = self._crowded + 1 if step.x * step.taken < CROWDED else 0
            self.h = step.taken
            return
        growth = 0.9 * step.norm**-0.17 * self._last**0.04 if step.norm > 0 else 5.0
        self._last = max(step.norm, 1e-4)
        growth = min(max(growth, 0.2), 5.0)
        if not is_last or growth < 1.0:
            self.h = step.taken * growth
        self._rate, self._g = step.rate, step.guards

    def along(self, Q: np.ndarray, x: float) -> np.ndarray:
        """States within a step."""
        return np.asarray(self.y + Q @ np.array([x, x**2, x**3, x**4]))

    def _violation(self, g: np.ndarray) -> float:
        return float(np.where(self.s != 0, -g, g).max(initial=-np.inf))

    def _event(self, Q: np.ndarray, taken: float, g_end: np.ndarray) -> float | None:
        """Where in the step the first guard is violated; None if none is, at its middle or end."""

        def at(x: float) -> float:
            return self._violation(self.rates(self.along(Q, x))[1])

        if not len(self.s):
            return None
        lo, hi, v_lo, v_hi = 0.0, 1.0, self._violation(self._g), self._violation(g_end)
        middle = at(0.5)
        if middle > 0:
            hi, v_hi = 0.5, middle
        elif v_hi > 0:
            lo, v_lo = 0.5, middle
        else:
            return None
        least = min(ADVANCE / taken, 0.25)
        if lo < least:
            v = at(least)
            hi = least if v > 0 else hi
            lo, v_lo = least, v
        side = 0
        for j in range(LOCATING):
            if (hi - lo) * taken <= 1e-15 or hi - lo <= 1e-16:
                break
            x = (lo * v_hi - hi * v_lo) / (v_hi - v_lo) if j % 3 != 2 and v_lo < 0 else 0.5 * (lo + hi)
            v = at(x)
            if v > 0:
                hi, v_hi, v_lo = x, v, v_lo * (0.5 if side == 1 else 1.0)
                side = 1
            else:
                lo, v_lo, v_hi = x, v, v_hi * (0.5 if side == -1 else 1.0)
                side = -1
        return hi


def _tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights of stages, error and dense output of Dormand and Prince's pair."""
    A = np.zeros((7, 7))
    A[:6, :5], A[6, :6] = RK45.A, RK45.B
    return A, np.array(RK45.E), np.array(RK45.P)
