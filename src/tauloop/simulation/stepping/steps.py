"""Accepted steps of an integration, with polynomials between them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.common.stopping import StopReason

#: What is known at starts and at the end, and what at starts alone.
_ENDS, _STARTS = ("time", "y"), ("q", "v", "acting", "polynomials")


class Ending(StopReason):
    """Why a simulation ended."""

    SUCCESS = "end of the duration"
    EVENT = "terminal event"
    SINGULAR = "singular or unreachable pose"
    STEP_TOO_SMALL = "step too small"
    MAX_STEPS = "too many steps"
    LOOPS_LOST = "loops lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(ReprMixin):
    """M steps.

    Attributes:
        time: starts of all steps and the end of the last (M + 1,), s.
        y: states there (M + 1, n).
        q, v: coordinates and velocities at the starts (M, n_q), (M, n_v).
        acting: forces and wrench at the starts (M, n_acting).
        polynomials: y(x) = y_i + sum_k polynomials_ik x^(k + 1), x from 0 to 1 within step i (M, d,
            n).
        evaluations: how often the right-hand side was computed.
        rejected: steps that were tried and given up.
        ending: why the integration ended; None while it may go on.
    """

    time: np.ndarray
    y: np.ndarray
    q: np.ndarray
    v: np.ndarray
    acting: np.ndarray
    polynomials: np.ndarray
    evaluations: int
    rejected: int
    ending: Ending | None

    def __len__(self) -> int:
        return len(self.time) - 1

    @property
    def count(self) -> int:
        """Number of steps."""
        return len(self)

    def first(self, count: int) -> Steps:
        """A copy of the first of them."""
        ends = {name: getattr(self, name)[: count + 1].copy() for name in _ENDS}
        return replace(
            self, **ends, **{name: getattr(self, name)[:count].copy() for name in _STARTS}
        )

    def at(self, time: np.ndarray) -> np.ndarray:
        """States (N, n) at times (N,) within the steps, by the dense output."""
        i = np.clip(np.searchsorted(self.time, time, side="right") - 1, 0, len(self) - 1)
        x = (time - self.time[i]) / (self.time[i + 1] - self.time[i])
        powers = x[:, None] ** np.arange(1, self.polynomials.shape[1] + 1)
        return np.asarray(self.y[i] + np.einsum("nd,ndk->nk", powers, self.polynomials[i]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ManySteps:
    """States of N integrations at T wanted times.

    Attributes:
        y: states (N, T, n); not numbers where a time was not reached.
        near: coordinates near those states (N, T, n_q), from which Newton's method starts.
        reached: times to which they came (N,), s.
        endings: why they ended.
        steps: of each (N,).
    """

    y: np.ndarray
    near: np.ndarray
    reached: np.ndarray
    endings: tuple[Ending, ...]
    steps: np.ndarray


def joined_steps(parts: list[Steps]) -> Steps:
    """Consecutive parts of one integration as one."""
    return Steps(
        **{
            name: np.concatenate(
                [getattr(parts[0], name)[:1], *(getattr(p, name)[1:] for p in parts)]
            )
            for name in _ENDS
        },
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in _STARTS},
        evaluations=sum(part.evaluations for part in parts),
        rejected=sum(part.rejected for part in parts),
        ending=parts[-1].ending,
    )
