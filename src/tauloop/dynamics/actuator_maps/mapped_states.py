"""States that an actuator map returns, with a status for every sample."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Status, diagnostic, status_of
from tauloop.common.shown import ReprMixin
from tauloop.compiler.state import CONVERGED, SMALLEST_PIVOT, SolveDiagnostics


class MapStatus(IntEnum):
    """Status of a sample. For `UNREACHABLE` and all following statuses, the values are NaN.

    Attributes:
        SUCCESS: the values are valid and within all limits.
        JOINT_LIMITS: the values are valid, but a named joint is beyond a stop.
        ACTUATOR_LIMITS: the values are valid, but a motor, or an element between motors and joints,
            is beyond a stop.
        UNREACHABLE: no position exists: the loops cannot close.
        NOT_CONVERGED: Newton's method found no position.
        SINGULAR: velocities or efforts are not determined.
        OTHER_MODE: the position is in another assembly mode than the reference pose.
    """

    SUCCESS = 0
    JOINT_LIMITS = 1
    ACTUATOR_LIMITS = 2
    UNREACHABLE = 3
    NOT_CONVERGED = 4
    SINGULAR = 5
    OTHER_MODE = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedStates(ReprMixin):
    """Positions, velocities and efforts of motors or joints, with a status for every sample.

    Attributes:
        names: names of the motors or joints.
        position: positions (N, n) or (n,), rad or m.
        velocity: velocities of the same shape, rad/s or m/s; zero if none were given.
        effort: efforts of the same shape, N m or N; zero if none were given.
        jacobian: motor velocities per joint velocity (N, n, n) or (n, n).
        sample_status: `MapStatus` of each sample (N,), or of the single sample.
    """

    names: tuple[str, ...]
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    jacobian: np.ndarray
    sample_status: np.ndarray

    @property
    def is_valid(self) -> np.ndarray:
        """Whether each sample has values (N,); samples without values are NaN."""
        return np.asarray(self.sample_status < MapStatus.UNREACHABLE)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Number of samples with each status other than success."""
        return tuple(self._count(status) for status in MapStatus if status)

    def _count(self, status: MapStatus) -> Diagnostic:
        samples = np.flatnonzero(np.atleast_1d(self.sample_status) == status)
        name = f"samples: {status.name.lower().replace('_', ' ')}"
        advice = f"the first is sample {samples[0]}; see `sample_status`" if len(samples) else ""
        return diagnostic(name, len(samples), at_most=0, advice=advice)

    @property
    def status(self) -> Status:
        """OK if all samples have values within all limits."""
        return status_of(self.diagnostics)


def deciding_numbers(
    outputs: dict[str, np.ndarray], health: SolveDiagnostics
) -> dict[str, np.ndarray]:
    """Return the numbers (N,) that determine the status of samples, by name."""
    mode = outputs["mode"][:, 0]
    residuals = [np.abs(residual) for residual in health.residuals.values()]
    return {
        "discriminant": health.discriminants.min(axis=1, initial=1.0),
        "residual": np.max(residuals, axis=0) if residuals else np.zeros(len(mode)),
        "pivot": np.where(health.finite, health.smallest_pivot, 0.0),
        "mode": np.where(np.isnan(mode), 0.0, mode),
    }


def failures(numbers: dict[str, np.ndarray]) -> np.ndarray:
    """Return the statuses (N,) of samples; limits are not checked."""
    status = np.full(len(numbers["mode"]), MapStatus.SUCCESS, dtype=np.int8)
    status[numbers["mode"] <= 0.0] = MapStatus.OTHER_MODE
    status[~(numbers["pivot"] > SMALLEST_PIVOT)] = MapStatus.SINGULAR
    status[~(numbers["residual"] < CONVERGED)] = MapStatus.NOT_CONVERGED
    status[~(numbers["discriminant"] >= 0.0)] = MapStatus.UNREACHABLE
    return status
