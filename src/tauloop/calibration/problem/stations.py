"""One series of measurements with its functions: coordinates pose by pose, what is left, and how that varies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.calibration.measurements.instruments import Nuisance
from tauloop.calibration.measurements.series import Series
from tauloop.calibration.problem.pose_equations import StationFunctions
from tauloop.common.records import dataclass
from tauloop.equations.topology import Topology, integrate

#: Newton's method stops when no coordinate moves by more than this, characteristic lengths or rad:
#: what is left then is its square.
STEP = 1e-7
#: It need not start where a motion by less than this, characteristic lengths or rad, would satisfy
#: each hard equation.
CLOSED = 1e-12
#: Steps before a pose counts as out of reach, and the longest step, characteristic lengths or rad.
ITERATIONS, LONGEST = 40, 1.0
#: Hard equations that need a motion by more than this, characteristic lengths or rad, are not
#: solved.
SOLVED = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Elimination:
    """Constant combinations of the equations of every pose, found once at the start values.

    Attributes:
        hard, soft: indices of the equations.
        closing: combinations (N, k, n_soft) that close the coordinates which hard equations leave
            open.
        whitening: combinations (N, r, n_soft) that are the residuals, of covariance one.
    """

    hard: np.ndarray
    soft: np.ndarray
    closing: np.ndarray
    whitening: np.ndarray

    def take(self, poses: np.ndarray) -> Elimination:
        """The same at some poses."""
        return replace(self, closing=self.closing[poses], whitening=self.whitening[poses])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StationState:
    """Coordinates of a series' poses at given corrections.

    Each of the N readings belongs to m poses (one, but for distances between poses and the like).

    Attributes:
        q: coordinates (N m, n_q).
        rates: derivatives (N, n_eq, m n_v) of all equations in the velocities.
        residual: whitened residuals (N, r).
        errors: errors of the instrument (N, n_errors), SI.
        is_reached: whether the coordinates solve the hard equations (N,).
    """

    q: np.ndarray
    rates: np.ndarray
    residual: np.ndarray
    errors: np.ndarray
    is_reached: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Station:
    """One series with its functions.

    Attributes:
        series: the measurements.
        nuisances: of instruments and encoders.
        topology: coordinates.
        functions: of poses and corrections.
        leading: actuators whose encoders give coordinates; the misfits of the others are residuals.
        elimination: which equations give coordinates and which are residuals.
        q: coordinates (N m, n_q) at the start values, the m poses of each reading one after the
            other.
        scale: unit displacement of every velocity of the poses of a reading (m n_v,): the
            characteristic length, or one radian.
    """

    series: Series
    nuisances: tuple[Nuisance, ...]
    topology: Topology
    functions: StationFunctions
    leading: tuple[int, ...]
    elimination: Elimination
    q: np.ndarray
    scale: np.ndarray

    @property
    def n_equations(self) -> tuple[int, int, int, int]:
        """Numbers of equations of a reading: loops, leading encoders, errors, spare encoders."""
        return self.functions.sizes

    @property
    def n_rows(self) -> int:
        """Residuals of one reading."""
        return self.elimination.whitening.shape[1]

    @property
    def poses(self) -> int:
        """Number of poses m of one reading."""
        return self.series.instrument.poses

    @property
    def n_v(self) -> int:
        """Number of velocities of the poses of one reading."""
        return self.poses * self.topology.n_v

    def take(self, readings: np.ndarray) -> Station:
        """The same with some readings."""
        return replace(
            self,
            series=self.series.take(readings),
            elimination=self.elimination.take(readings),
            q=self.q[self.series.rows(readings)],
        )

    def evaluate(
        self, x: np.ndarray, q: np.ndarray, encoders: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """All equations (N, n_eq) and their derivatives in the velocities (N, n_eq, m n_v)."""
        n = len(self.series)
        f, columns = self.functions.equations(self._given(x, q, encoders), n)
        return f, columns.reshape(n, self.n_v, -1).transpose(0, 2, 1)

    def points(self, x: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Targets (N m, 3) of the instrument in the base frame, m."""
        return self.functions.target([q, np.broadcast_to(x, (len(q), len(x)))], len(q))[0]

    def _given(self, x: np.ndarray, q: np.ndarray, encoders: np.ndarray | None) -> list[np.ndarray]:
        """Inputs of the functions: coordinates and encoders of the poses of a reading side by side."""
        n = len(self.series)
        p = self.series.encoders if encoders is None else encoders
        return [
            q.reshape(n, -1),
            np.broadcast_to(x, (n, len(x))),
            p.reshape(n, -1),
            self.series.readings,
        ]

    def state(self, x: np.ndarray, q: np.ndarray) -> StationState:
        """Coordinates by Newton's method from q (N m, n_q), and what is left."""
        part = self.elimination
        f, rates = self.evaluate(x, q)
        F, F_v = square(f, rates, part)
        for _ in range(ITERATIONS):
            if self._left(F, F_v).max(initial=0.0) < CLOSED:
                break
            q, length = self.stepped(q, F, F_v)
            f, rates = self.evaluate(x, q)
            F, F_v = square(f, rates, part)
            if length < STEP:
                break
        loops, encoders, errors, _ = self.n_equations
        first = loops + encoders
        return StationState(
            q=q,
            rates=rates,
            residual=(part.whitening @ f[:, part.soft, None])[:, :, 0],
            errors=f[:, first : first + errors],
            is_reached=self._left(F, F_v).max(axis=1, initial=0.0) < SOLVED,
        )

    def _left(self, F: np.ndarray, F_v: np.ndarray) -> np.ndarray:
        """Motions (N, m), characteristic lengths or rad, that would satisfy each of equations F (N, m) alone."""
        slopes = np.abs(F_v * self.scale).max(axis=2, initial=0.0)
        return np.asarray(np.abs(F) / np.maximum(slopes, 1e-300))

    def stepped(self, q: np.ndarray, F: np.ndarray, F_v: np.ndarray) -> tuple[np.ndarray, float]:
        """Coordinates a Newton step on for equations F (N, m n_v) that are to be zero, and the longest step.

        The step counts in characteristic lengths and rad.
        """
        step = solved(F_v, F[:, :, None])[:, :, 0]
        length = np.abs(step / self.scale).max(axis=1, initial=0.0)
        step *= np.minimum(1.0, LONGEST / np.maximum(length, 1e-300))[:, None]
        return integrate(self.topology, q, -step.reshape(len(q), -1)), float(
            length.max(initial=0.0)
        )

    def encoder_columns(self, state: StationState) -> np.ndarray:
        """Derivatives of the whitened residuals (N, r, n_u) in errors of all encoders' readings, of scale one."""
        part, (loops, encoders, errors, _) = self.elimination, self.n_equations
        leading, count = len(self.leading), self.series.encoders.shape[1]
        spares = count - leading
        equations = np.zeros((state.rates.shape[1], count))
        equations[loops : loops + encoders, :leading] = np.tile(-np.eye(leading), (self.poses, 1))
        equations[loops + encoders + errors :, leading:] = np.tile(-np.eye(spares), (self.poses, 1))
        hard = np.broadcast_to(equations[part.hard], (len(self.series), len(part.hard), count))
        F = np.concatenate([hard, part.closing @ equations[part.soft]], axis=1)
        F_v = np.concatenate(
            [state.rates[:, part.hard], part.closing @ state.rates[:, part.soft]], axis=1
        )
        moved = -solved(F_v, F)
        columns = part.whitening @ (equations[part.soft] + state.rates[:, part.soft] @ moved)
        order = np.argsort([*self.leading, *(i for i in range(count) if i not in self.leading)])
        return np.asarray(columns[:, :, order])

    def jacobian(self, x: np.ndarray, state: StationState) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives in all unknowns of the whitened residuals (N, r, n) and of the coordinates (N m, n_v, n)."""
        n, part = len(self.series), self.elimination
        (columns,) = self.functions.sensitivity(self._given(x, state.q, None), n)
        f_x = columns.reshape(n, len(x), -1).transpose(0, 2, 1)
        F_x = np.concatenate([f_x[:, part.hard], part.closing @ f_x[:, part.soft]], axis=1)
        F_v = np.concatenate(
            [state.rates[:, part.hard], part.closing @ state.rates[:, part.soft]], axis=1
        )
        q_x = -solved(F_v, F_x)
        residuals = part.whitening @ (f_x[:, part.soft] + state.rates[:, part.soft] @ q_x)
        return np.asarray(residuals), q_x.reshape(len(state.q), -1, len(x))


def square(f: np.ndarray, rates: np.ndarray, part: Elimination) -> tuple[np.ndarray, np.ndarray]:
    """Equations that give the coordinates: hard ones, and combinations of soft ones."""
    if not part.closing.shape[1]:
        return f[:, part.hard], rates[:, part.hard]
    F = np.concatenate([f[:, part.hard], (part.closing @ f[:, part.soft, None])[:, :, 0]], axis=1)
    return F, np.concatenate([rates[:, part.hard], part.closing @ rates[:, part.soft]], axis=1)


def solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solutions of stacked linear systems (N, m, n) (N, m, k); of least norm where they are not square and regular."""
    if A.shape[1] == A.shape[2]:
        try:
            return np.asarray(np.linalg.solve(A, b))
        except np.linalg.LinAlgError:
            pass
    sound = np.isfinite(A).all(axis=(1, 2))[:, None, None]
    return np.asarray(
        np.linalg.pinv(np.where(sound, A, 0.0), rcond=1e-10) @ np.where(np.isfinite(b), b, 0.0)
    )
