"""Accepted steps of an integration, with polynomials between them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.common.execution.stopping import StopReason
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin

#: Fields with values at the starts of all steps and at the end of the last step.
_BOUNDARY_FIELDS = ("time", "y")
#: Fields with values only at the starts of steps.
_START_FIELDS = ("q", "v", "acting", "polynomials")


class Ending(StopReason):
    """Reason why a simulation ended."""

    SUCCESS = "end of the duration"
    EVENT = "terminal event"
    SINGULAR = "singular or unreachable pose"
    STEP_TOO_SMALL = "step too small"
    MAX_STEPS = "too many steps"
    LOOPS_LOST = "the projection onto the loops failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(ReprMixin):
    """A sequence of M integration steps.

    Attributes:
        time: start times of all steps, followed by the end time of the last (M + 1,), s.
        y: states at these times (M + 1, n).
        q, v: coordinates and velocities at the starts (M, n_q), (M, n_v).
        acting: forces and wrench at the starts (M, n_acting).
        polynomials: coefficients (M, d, n) of the dense output within step i,
            y(x) = y_i + sum_k polynomials_ik x^(k + 1), with x from 0 to 1.
        evaluations: number of evaluations of the right-hand side.
        rejected: number of rejected steps.
        ending: reason why the integration ended; None if it can continue.
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
        """Return a copy of the first `count` steps."""
        boundaries = {name: getattr(self, name)[: count + 1].copy() for name in _BOUNDARY_FIELDS}
        starts = {name: getattr(self, name)[:count].copy() for name in _START_FIELDS}
        return replace(self, **boundaries, **starts)

    def at(self, time: np.ndarray) -> np.ndarray:
        """Return states (N, n) at times (N,) within the steps, from the dense output."""
        i = np.clip(np.searchsorted(self.time, time, side="right") - 1, 0, len(self) - 1)
        x = (time - self.time[i]) / (self.time[i + 1] - self.time[i])
        powers = x[:, None] ** np.arange(1, self.polynomials.shape[1] + 1)
        return np.asarray(self.y[i] + np.einsum("nd,ndk->nk", powers, self.polynomials[i]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ManySteps:
    """States of N integrations at T times.

    Attributes:
        y: states (N, T, n); NaN at times that were not reached.
        near: coordinates near the states (N, T, n_q), from which Newton's method starts.
        reached: time that each integration reached (N,), s.
        endings: reason why each integration ended (N,).
        steps: number of steps of each integration (N,).
    """

    y: np.ndarray
    near: np.ndarray
    reached: np.ndarray
    endings: tuple[Ending, ...]
    steps: np.ndarray


def joined_steps(parts: list[Steps]) -> Steps:
    """Return consecutive parts of an integration as a single sequence of steps."""
    fields = {}
    for name in _BOUNDARY_FIELDS:
        arrays = [getattr(part, name) for part in parts]
        fields[name] = np.concatenate([arrays[0][:1], *(array[1:] for array in arrays)])
    for name in _START_FIELDS:
        fields[name] = np.concatenate([getattr(part, name) for part in parts])
    return Steps(
        **fields,
        evaluations=sum(part.evaluations for part in parts),
        rejected=sum(part.rejected for part in parts),
        ending=parts[-1].ending,
    )
