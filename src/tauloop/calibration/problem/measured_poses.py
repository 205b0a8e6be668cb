"""Measured poses of one series: their coordinates, residuals and derivatives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tauloop.calibration.measurements.instruments import Nuisance
from tauloop.calibration.measurements.series import Series
from tauloop.calibration.problem.deflection import PoseDeflection
from tauloop.calibration.problem.pose_equations import MeasuredPoseFunctions
from tauloop.common.names.deprecated import old_name
from tauloop.common.records import dataclass
from tauloop.equations.topology import Topology, integrate

#: Newton's method stops when no coordinate moves by more than this, in characteristic lengths or
#: rad. The remaining error is of the order of its square.
NEWTON_STEP_TOLERANCE = 1e-7
#: Newton's method is skipped if a motion smaller than this, in characteristic lengths or rad, would
#: satisfy every hard equation.
CLOSURE_TOLERANCE = 1e-12
#: Number of Newton steps after which a pose counts as out of reach.
MAX_NEWTON_STEPS = 40
#: Longest Newton step, in characteristic lengths or rad.
MAX_STEP_LENGTH = 1.0
#: A pose is reached when each hard equation needs a motion smaller than this, in characteristic
#: lengths or rad.
REACHED_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Elimination:
    """Constant combinations of the equations of every pose, computed once at the start values.

    Attributes:
        hard: indices of the equations that determine coordinates.
        soft: indices of the other equations.
        closing: combinations (N, k, n_soft) of soft equations that determine the coordinates left
            open by the hard equations.
        whitening: combinations (N, r, n_soft) of soft equations that give the residuals, with unit
            covariance.
    """

    hard: np.ndarray
    soft: np.ndarray
    closing: np.ndarray
    whitening: np.ndarray

    def take(self, poses: np.ndarray) -> Elimination:
        """Return the combinations of a subset of the poses."""
        return replace(self, closing=self.closing[poses], whitening=self.whitening[poses])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredPoseState:
    """Coordinates and residuals of the poses of a series at given corrections.

    Each of the N readings belongs to m poses. m is one, except for instruments such as `Between`
    that compare several poses.

    Attributes:
        q: coordinates (N m, n_q).
        rates: derivatives (N, n_eq, m n_v) of all equations with respect to the velocities.
        residual: whitened residuals (N, r).
        errors: errors of the instrument (N, n_errors), SI.
        is_reached: (N,) True if the coordinates solve the hard equations.
        twist: deflections (N m, 6) of the tool, m and rad; no columns for a rigid machine.
    """

    q: np.ndarray
    rates: np.ndarray
    residual: np.ndarray
    errors: np.ndarray
    is_reached: np.ndarray
    twist: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredPose:
    """The measured poses of one series, with the functions that evaluate them.

    Attributes:
        series: the measurements.
        nuisances: nuisance parameters of instruments and encoders.
        topology: coordinates of the machine.
        functions: equations of a pose as functions of coordinates and corrections.
        leading: actuators whose encoders determine coordinates; the encoder errors of the other
            actuators are residuals.
        elimination: which equations determine coordinates and which give residuals.
        q: coordinates (N m, n_q) at the start values, with the m poses of each reading in
            consecutive rows.
        scale: (m n_v,) unit displacement of every velocity of the poses of a reading: the
            characteristic length, or one radian.
        deflection: displacement of the tool due to loads and temperatures; None for a rigid
            machine.
        twist: deflections (N m, 6) at the start values; no columns for a rigid machine.
    """

    series: Series
    nuisances: tuple[Nuisance, ...]
    topology: Topology
    functions: MeasuredPoseFunctions
    leading: tuple[int, ...]
    elimination: Elimination
    q: np.ndarray
    scale: np.ndarray
    deflection: PoseDeflection | None
    twist: np.ndarray

    @property
    def n_equations(self) -> tuple[int, int, int, int]:
        """Numbers of equations: loops, leading encoders, errors, redundant encoders."""
        return self.functions.sizes

    @property
    def n_rows(self) -> int:
        """Number of residuals of one reading."""
        return self.elimination.whitening.shape[1]

    @property
    def poses(self) -> int:
        """Number of poses m of one reading."""
        return self.series.instrument.poses

    @property
    def n_v(self) -> int:
        """Number of velocities of the poses of one reading."""
        return self.poses * self.topology.n_v

    def take(self, readings: np.ndarray) -> MeasuredPose:
        """Return the measured poses of a subset of the readings."""
        rows = self.series.rows(readings)
        return replace(
            self,
            series=self.series.take(readings),
            elimination=self.elimination.take(readings),
            q=self.q[rows],
            deflection=None if self.deflection is None else self.deflection.take(rows),
            twist=self.twist[rows],
        )

    def evaluate(
        self,
        x: np.ndarray,
        q: np.ndarray,
        encoders: np.ndarray | None = None,
        twist: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return all equations (N, n_eq) and their velocity derivatives (N, n_eq, m n_v).

        Args:
            x: corrections of all unknowns.
            q: coordinates (N m, n_q).
            encoders: encoder readings; None for those of the series.
            twist: deflections (N m, 6); None for those at the start values. The derivatives neglect
                that they change with the coordinates.
        """
        n = len(self.series)
        f, columns = self.functions.equations(self._function_inputs(x, q, encoders, twist), n)
        return f, columns.reshape(n, self.n_v, -1).transpose(0, 2, 1)

    def points(self, x: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Return the instrument's targets (N m, 3) in the base frame, m."""
        return self.functions.target([q, np.broadcast_to(x, (len(q), len(x)))], len(q))[0]

    def _function_inputs(
        self,
        x: np.ndarray,
        q: np.ndarray,
        encoders: np.ndarray | None,
        twist: np.ndarray | None,
    ) -> list[np.ndarray]:
        """Return the inputs of the functions, with all poses of a reading in one row."""
        n = len(self.series)
        p = self.series.encoders if encoders is None else encoders
        inputs = [
            q.reshape(n, -1),
            np.broadcast_to(x, (n, len(x))),
            p.reshape(n, -1),
            self.series.readings,
        ]
        if self.functions.by_twist is None:
            return inputs
        d = self.twist if twist is None else twist
        return [*inputs, d.reshape(n, -1)]

    def by_twist(self, x: np.ndarray, state: MeasuredPoseState) -> np.ndarray:
        """Return the derivatives (N, n_eq, 6 m) of all equations with respect to deflections."""
        n, by_twist = len(self.series), self.functions.by_twist
        assert by_twist is not None
        (columns,) = by_twist(self._function_inputs(x, state.q, None, state.twist), n)
        return columns.reshape(n, 6 * self.poses, -1).transpose(0, 2, 1)

    def state(self, x: np.ndarray, q: np.ndarray) -> MeasuredPoseState:
        """Solve for the coordinates by Newton's method from q (N m, n_q) and evaluate residuals.

        Returns:
            Coordinates and residuals of the poses, and whether they are reached.
        """
        elimination = self.elimination
        twist = self.twist
        q, f, f_v = self._solve_coordinates(x, q, twist)
        if self.deflection is not None:
            twist = self.deflection.twist(x, q)
            if elimination.closing.shape[1]:
                q, f, f_v = self._solve_coordinates(x, q, twist)
                twist = self.deflection.twist(x, q)
            f, f_v = self.evaluate(x, q, twist=twist)
        F, F_v = coordinate_equations(f, f_v, elimination)
        loops, encoders, errors, _ = self.n_equations
        first = loops + encoders
        is_closed = self._distance_to_zero(F, F_v).max(axis=1, initial=0.0) < REACHED_TOLERANCE
        is_known = np.isfinite(twist).reshape(len(self.series), -1).all(axis=1)
        return MeasuredPoseState(
            q=q,
            rates=f_v,
            residual=(elimination.whitening @ f[:, elimination.soft, None])[:, :, 0],
            errors=f[:, first : first + errors],
            is_reached=is_closed & is_known,
            twist=twist,
        )

    def _solve_coordinates(
        self, x: np.ndarray, q: np.ndarray, twist: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the coordinates by Newton's method at constant deflections, with f and f_v."""
        f, f_v = self.evaluate(x, q, twist=twist)
        F, F_v = coordinate_equations(f, f_v, self.elimination)
        for _ in range(MAX_NEWTON_STEPS):
            if self._distance_to_zero(F, F_v).max(initial=0.0) < CLOSURE_TOLERANCE:
                break
            q, length = self.newton_step(q, F, F_v)
            f, f_v = self.evaluate(x, q, twist=twist)
            F, F_v = coordinate_equations(f, f_v, self.elimination)
            if length < NEWTON_STEP_TOLERANCE:
                break
        return q, f, f_v

    def _distance_to_zero(self, F: np.ndarray, F_v: np.ndarray) -> np.ndarray:
        """Return the motion (N, k) that would satisfy each equation F (N, k) separately.

        Motions are in characteristic lengths or rad.
        """
        derivatives = np.abs(F_v * self.scale).max(axis=2, initial=0.0)
        return np.asarray(np.abs(F) / np.maximum(derivatives, 1e-300))

    def newton_step(
        self, q: np.ndarray, F: np.ndarray, F_v: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Return the coordinates after one Newton step for F = 0, and the longest step.

        Args:
            q: coordinates (N m, n_q).
            F: equations (N, m n_v).
            F_v: derivatives of the equations with respect to the velocities.

        Returns:
            Coordinates (N m, n_q), and the length in characteristic lengths or rad.
        """
        step = solve_stacked(F_v, F[:, :, None])[:, :, 0]
        length = np.abs(step / self.scale).max(axis=1, initial=0.0)
        step *= np.minimum(1.0, MAX_STEP_LENGTH / np.maximum(length, 1e-300))[:, None]
        next_q = integrate(self.topology, q, -step.reshape(len(q), -1))
        return next_q, float(length.max(initial=0.0))

    def encoder_columns(self, state: MeasuredPoseState) -> np.ndarray:
        """Return the derivatives (N, r, n_u) of whitened residuals by constant encoder errors."""
        elimination = self.elimination
        loops, encoders, errors, _ = self.n_equations
        count = self.series.encoders.shape[1]
        n_leading = len(self.leading)
        n_redundant = count - n_leading
        equations = np.zeros((state.rates.shape[1], count))
        equations[loops : loops + encoders, :n_leading] = np.tile(
            -np.eye(n_leading), (self.poses, 1)
        )
        first_redundant = loops + encoders + errors
        equations[first_redundant:, n_leading:] = np.tile(-np.eye(n_redundant), (self.poses, 1))
        n_hard = len(elimination.hard)
        hard = np.broadcast_to(equations[elimination.hard], (len(self.series), n_hard, count))
        soft = equations[elimination.soft]
        F = np.concatenate([hard, elimination.closing @ soft], axis=1)
        F_v = _select_rows(state.rates, elimination)
        displacement = -solve_stacked(F_v, F)
        soft_f_v = state.rates[:, elimination.soft]
        columns = elimination.whitening @ (soft + soft_f_v @ displacement)
        order = np.argsort([*self.leading, *(i for i in range(count) if i not in self.leading)])
        return np.asarray(columns[:, :, order])

    def jacobian(self, x: np.ndarray, state: MeasuredPoseState) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of residuals and coordinates with respect to all unknowns.

        Returns:
            Derivatives (N, r, n) of the whitened residuals, and (N m, n_v, n) of the coordinates.
        """
        n, elimination = len(self.series), self.elimination
        (columns,) = self.functions.sensitivity(
            self._function_inputs(x, state.q, None, state.twist), n
        )
        f_x = columns.reshape(n, len(x), -1).transpose(0, 2, 1)
        if self.deflection is not None:
            twist_x = self.deflection.unknown_derivatives(x, state.q).reshape(n, -1, len(x))
            f_x = f_x + self.by_twist(x, state) @ twist_x
        F_x = _select_rows(f_x, elimination)
        F_v = _select_rows(state.rates, elimination)
        q_x = -solve_stacked(F_v, F_x)
        soft_f_v = state.rates[:, elimination.soft]
        residuals = elimination.whitening @ (f_x[:, elimination.soft] + soft_f_v @ q_x)
        return np.asarray(residuals), q_x.reshape(len(state.q), -1, len(x))


def coordinate_equations(
    f: np.ndarray, f_v: np.ndarray, elimination: Elimination
) -> tuple[np.ndarray, np.ndarray]:
    """Return the equations that determine the coordinates, and their velocity derivatives.

    These are the hard equations and the closing combinations of the soft equations.
    """
    if not elimination.closing.shape[1]:
        return f[:, elimination.hard], f_v[:, elimination.hard]
    closing = (elimination.closing @ f[:, elimination.soft, None])[:, :, 0]
    F = np.concatenate([f[:, elimination.hard], closing], axis=1)
    return F, _select_rows(f_v, elimination)


def _select_rows(derivatives: np.ndarray, elimination: Elimination) -> np.ndarray:
    """Return the rows of derivatives (N, n_eq, n) of the equations that determine coordinates."""
    closing = elimination.closing @ derivatives[:, elimination.soft]
    return np.concatenate([derivatives[:, elimination.hard], closing], axis=1)


def solve_stacked(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve stacked linear systems A (N, m, n), b (N, m, k).

    For systems that are not square or not regular, it is the least-squares solution of minimum
    norm; rows with NaN or infinity then count as zero.

    Returns:
        Solutions x (N, n, k).
    """
    if A.shape[1] == A.shape[2]:
        try:
            return np.asarray(np.linalg.solve(A, b))
        except np.linalg.LinAlgError:
            pass
    is_finite = np.isfinite(A).all(axis=(1, 2))[:, None, None]
    return np.asarray(
        np.linalg.pinv(np.where(is_finite, A, 0.0), rcond=1e-10) @ np.where(np.isfinite(b), b, 0.0)
    )


def __getattr__(name: str) -> Any:
    return old_name(__name__, name)
