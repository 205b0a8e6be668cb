"""Regression rows from consecutive samples, with causal filters of motion, regressor and forces.

The motion passes three equal first-order lags of bandwidth w, y[k] = c y[k-1] + (1 - c) x[k] with
c = exp(-w T) and the sampling period T. It is then differentiated by central differences, which
delay it by one sample. The forces pass the same filters. Regressor and forces then pass two equal
lags of a lower bandwidth w_rows, so that the distortion by the first filter hardly matters. The
rows are delayed by about 3/w + 2/w_rows + T.

Source: Atkeson, An and Hollerbach 1986, Estimation of inertial parameters of manipulator loads and
links (filtered regressors); Gautier, Vandanjon and Presse 1994, Identification of inertial and
drive gain parameters of robots (parallel filtering).
"""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.identification.regression.from_log import regressor_rows
from tauloop.model import Model

#: Number of lags that the motion passes.
MOTION_LAGS = 3
#: Number of lags that regressor and forces pass.
ROW_LAGS = 2
#: A motor's row is used if the motor moved in more than this fraction of the row filter's memory.
MIN_MOVING_SHARE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class CausalFilters(Options):
    """The filters of a tracker.

    Attributes:
        period: sampling period, s.
        motion: bandwidth of the lags of the motion, rad/s.
        rows: bandwidth of the lags of regressor and forces, rad/s.
        interval: number of samples between two updates of the fit.
        standstill: (n,) speed of each motor below which its row is not used, m/s or rad/s.
    """

    period: float = option(above=0.0, below=np.inf)
    motion: float = option(above=0.0, below=np.inf)
    rows: float = option(above=0.0, below=np.inf)
    interval: int = option(least=1)
    standstill: tuple[float, ...] = option(least=0.0, below=np.inf)

    @property
    def delay(self) -> float:
        """Delay of the rows, s."""
        return MOTION_LAGS / self.motion + ROW_LAGS / self.rows + self.period


class Lags:
    """Equal first-order lags in series; their states continue between the pieces of a log."""

    def __init__(self, bandwidth: float, period: float, count: int) -> None:
        """Set up the lags; they start in equilibrium with the first value.

        Args:
            bandwidth: bandwidth of each lag, rad/s.
            period: sampling period, s.
            count: number of lags.
        """
        self._gain = -np.expm1(-bandwidth * period)
        self._states: list[np.ndarray | None] = [None] * count

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the filtered values (N, ...) of the next samples x (N, ...)."""
        c = 1.0 - self._gain
        for k, state in enumerate(self._states):
            start = c * x[:1] if state is None else state
            x, self._states[k] = lfilter([self._gain], [1.0, -c], x, axis=0, zi=start)
        return x


class CausalRows:
    """Rows Y x = f for the updates of a fit, from the samples of consecutive pieces of a log."""

    def __init__(
        self, model: Model, filters: CausalFilters, columns: np.ndarray, offset: np.ndarray
    ) -> None:
        """Set up the filters, which start at rest.

        Args:
            model: the machine.
            filters: filters of motion and rows.
            columns: C (n_pi, n): the regressor's columns are Y = Y_pi C.
            offset: values (n_pi,) of known parameters, whose forces are subtracted.
        """
        self._model = model
        self._filters = filters
        self._columns = columns
        self._offset = offset
        self._position = Lags(filters.motion, filters.period, MOTION_LAGS)
        self._force = Lags(filters.motion, filters.period, MOTION_LAGS)
        self._rows = Lags(filters.rows, filters.period, ROW_LAGS)
        self._moving = Lags(filters.rows, filters.period, ROW_LAGS)
        self._last_samples: tuple[np.ndarray, np.ndarray] | None = None
        self._q: np.ndarray | None = None
        self._count = 0

    def __call__(self, position: np.ndarray, force: np.ndarray) -> UpdateRows:
        """Return the rows of the updates that occur in the next samples.

        Args:
            position: positions of the motors (N, n_a).
            force: forces of the motors (N, n_u).

        Raises:
            PoseError, AssemblyError: the motion leaves the workspace of the machine.
        """
        smooth = self._position(position)
        force = self._force(force)
        if self._last_samples is None:
            self._last_samples = np.repeat(smooth[:1], 2, axis=0), force[:1]
        last_positions, last_force = self._last_samples
        smooth = np.concatenate([last_positions, smooth])
        force = np.concatenate([last_force, force])
        self._last_samples = smooth[-2:], force[-1:]
        period = self._filters.period
        before, current, after = smooth[:-2], smooth[1:-1], smooth[2:]
        velocity = (after - before) / (2.0 * period)
        acceleration = (after - 2.0 * current + before) / period**2
        rows, force = self._regression(current, velocity, acceleration, force[:-1])
        columns = rows.shape[2]
        filtered = self._rows(np.concatenate([rows, force[:, :, None]], axis=2))
        is_moving = (np.abs(velocity) > self._filters.standstill).astype(float)
        moving_fraction = self._moving(is_moving)
        indices = self._count + np.arange(len(force))
        self._count += len(force)
        is_update = (indices + 1) % self._filters.interval == 0
        return UpdateRows(
            samples=indices[is_update],
            regressor=filtered[is_update, :, :columns],
            force=filtered[is_update, :, columns],
            counts=moving_fraction[is_update] > MIN_MOVING_SHARE,
        )

    def _regression(
        self,
        position: np.ndarray,
        velocity: np.ndarray,
        acceleration: np.ndarray,
        force: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return Y (N, n_u, n) and f (N, n_u) at every sample."""
        q = np.asarray(self._model.actuators.track(position, self._q).q)
        self._q = q[-1]
        rows = regressor_rows(self._model, (position, velocity, acceleration), "actuators", q)
        return rows @ self._columns, force - rows @ self._offset


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UpdateRows(ReprMixin):
    """Rows Y x = f of K updates.

    Attributes:
        samples: (K,) sample indices of the updates, from the start of the log.
        regressor: Y (K, n_u, n).
        force: f (K, n_u).
        counts: (K, n_u) True for the forces of moving motors, which are used.
    """

    samples: np.ndarray
    regressor: np.ndarray
    force: np.ndarray
    counts: np.ndarray
