"""Results of motions: states, forces and regressors, each with the evidence that it can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tauloop.errors import PoseError, Problem
from tauloop.functions.assembly import SINGULAR, Assembly
from tauloop.functions.ports import LISTED
from tauloop.functions.program import Evidence

#: Position residuals (m or pure numbers) above this mean that Newton's method has not arrived.
CONVERGED = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Evidence of a run over N samples.

    Attributes:
        condition: worst condition number of the linear blocks (N,).
        gaps: per loop solved in closed form, by how much it misses (N,): m for a rod, positive where the ends are too
            far apart, negative where too near.
        residuals: per loop solved by Newton's method, what is left of it (N,).
        iterations: Newton steps taken (N,).
    """

    condition: np.ndarray
    gaps: dict[str, np.ndarray]
    residuals: dict[str, np.ndarray]
    iterations: np.ndarray

    @property
    def is_reached(self) -> np.ndarray:
        """Whether all loops close (N,)."""
        ok = np.ones(len(self.condition), dtype=bool)
        for gap in self.gaps.values():
            ok &= gap == 0.0
        for residual in self.residuals.values():
            ok &= np.abs(residual) < CONVERGED
        return ok

    @property
    def is_regular(self) -> np.ndarray:
        """Whether all linear blocks can be solved (N,)."""
        return np.asarray(self.condition < SINGULAR)

    def require(self, assembly: Assembly, what: str) -> None:
        """Raise unless every sample is in reach and regular.

        Raises:
            PoseError: which samples and loops, by how much, and the condition number.
        """
        problems = [*self._unreached(assembly, what), *self._singular(what)]
        if problems:
            raise PoseError(problems)

    def _unreached(self, assembly: Assembly, what: str) -> list[Problem]:
        problems = []
        for element, gap in self.gaps.items():
            bad = np.flatnonzero(gap != 0.0)
            if len(bad):
                worst = bad[np.argmax(np.abs(gap[bad]))]
                amount = abs(gap[worst])
                text = f"by {1e3 * amount:.4g} mm" if np.isfinite(amount) else "because an earlier loop does not close"
                direction = "too far away" if gap[worst] > 0 else "too near"
                problems.append(
                    Problem(
                        where=element,
                        what=f"out of reach {text} ({direction}) in {_samples(bad, len(gap))}",
                        remedy=f"move the {what} back into the workspace",
                    )
                )
        for name, residual in self.residuals.items():
            bad = np.flatnonzero(~(np.abs(residual) < CONVERGED))
            if len(bad):
                worst = bad[np.argmax(np.abs(residual[bad]))]
                amount = abs(residual[worst])
                text = f"{amount:.4g} (m or pure number) is left" if np.isfinite(amount) else "the iteration diverged"
                problems.append(
                    Problem(
                        where=name,
                        what=f"the loop does not close: {text} in {_samples(bad, len(residual))}",
                        remedy=f"the {what} is out of reach, or give a start nearer to the solution",
                    )
                )
        return problems

    def _singular(self, what: str) -> list[Problem]:
        bad = np.flatnonzero(~self.is_regular & self.is_reached)
        if not len(bad):
            return []
        worst = bad[np.argmax(self.condition[bad])]
        return [
            Problem(
                where=what,
                what=f"singular pose: condition number {self.condition[worst]:.3g} (limit {SINGULAR:.0e}) in "
                + _samples(bad, len(self.condition)),
                remedy="stay away from configurations where the actuators lose control of the platform, or the "
                "platform's motion no longer determines the legs'",
            )
        ]


def _samples(bad: np.ndarray, n: int) -> str:
    if n == 1:
        return "this pose"
    listed = ", ".join(str(i) for i in bad[:LISTED])
    more = f" and {len(bad) - LISTED} more" if len(bad) > LISTED else ""
    return f"sample{'s' if len(bad) > 1 else ''} {listed}{more} of {n}"


def health(evidence: Evidence) -> Health:
    """Evidence of a program's run in the caller's terms."""
    residuals: dict[str, np.ndarray] = {}
    iterations = np.zeros(len(evidence.condition), dtype=int)
    for step, phi, counts in evidence.newton:
        for name, column in zip(step.what, phi.T, strict=True):
            residuals[name] = column
        iterations = np.maximum(iterations, counts)
    return Health(condition=evidence.condition, gaps=dict(evidence.gaps), residuals=residuals, iterations=iterations)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Coordinates, and velocities and accelerations as far as they were asked for.

    Attributes:
        coordinate_names, velocity_names: names of the columns.
        q: coordinates (N, n_q) or (n_q,) for a single sample.
        v, a: velocities and accelerations (N, n_v) or (n_v,); None where not computed.
        health: the evidence.
    """

    coordinate_names: tuple[str, ...]
    velocity_names: tuple[str, ...]
    q: np.ndarray
    v: np.ndarray | None
    a: np.ndarray | None
    health: Health

    def coordinate(self, name: str) -> np.ndarray:
        """One coordinate by name."""
        return np.asarray(self.q[..., self.coordinate_names.index(name)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Forces:
    """Inverse dynamics of a motion.

    Attributes:
        actuator_names, closure_names: names of the columns.
        force: actuator forces u (N, n_u), N or N m.
        closure_force: multipliers lambda of the kept loop equations (N, c), N (N m for directions).
        tree_force: M a + h on all velocities (N, n_v).
        state: the full motion.
    """

    actuator_names: tuple[str, ...]
    closure_names: tuple[str, ...]
    force: np.ndarray
    closure_force: np.ndarray
    tree_force: np.ndarray
    state: State
