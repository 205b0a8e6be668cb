"""Regression rows from samples as they come: causal filters of the motion, and of regressor and forces alike.

The motion passes three equal lags, c = exp(-w T) each, and is differentiated by central
differences, which are one sample late; the forces pass the same. Regressor and forces then pass two
equal lags of a lower bandwidth, so that what the first filter bends hardly counts. The rows are
late by about 3/w + 2/w_rows + T.

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

#: Lags of the motion and of the rows.
MOTION_LAGS, ROW_LAGS = 3, 2
#: Share of the row filter's memory in which a motor moved, above which its row counts.
MOVING = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class CausalFilters(Options):
    """The filters of a tracker.

    Attributes:
        period: between two samples, s.
        motion: bandwidth of the lags of the motion, rad/s.
        rows: bandwidth of the lags of regressor and forces, rad/s.
        interval: samples from one update of the fit to the next.
        standstill: speed of each motor below which its row does not count, m/s or rad/s (n,).
    """

    period: float = option(above=0.0, below=np.inf)
    motion: float = option(above=0.0, below=np.inf)
    rows: float = option(above=0.0, below=np.inf)
    interval: int = option(least=1)
    standstill: tuple[float, ...] = option(least=0.0, below=np.inf)

    @property
    def delay(self) -> float:
        """Return how late the rows are, s."""
        return MOTION_LAGS / self.motion + ROW_LAGS / self.rows + self.period


class Lags:
    """Equal lags one after the other, that go on from one piece of a log to the next."""

    def __init__(self, bandwidth: float, period: float, count: int) -> None:
        """Begin at the first value that is filtered."""
        self._share = -np.expm1(-bandwidth * period)
        self._states: list[np.ndarray | None] = [None] * count

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the filtered values (N, ...)."""
        c = 1.0 - self._share
        for k, state in enumerate(self._states):
            start = c * x[:1] if state is None else state
            x, self._states[k] = lfilter([self._share], [1.0, -c], x, axis=0, zi=start)
        return x


class CausalRows:
    """Rows Y x = f of the updates of a fit, from positions and forces piece by piece."""

    def __init__(
        self, model: Model, filters: CausalFilters, columns: np.ndarray, offset: np.ndarray
    ) -> None:
        """Begin at rest.

        Args:
            model: the machine.
            filters: how motion and rows are filtered.
            columns: C (n_pi, n): the regressor's columns are Y = Y_pi C.
            offset: values (n_pi,) of what is known, whose forces are taken off.
        """
        self._model, self._filters, self._columns, self._offset = model, filters, columns, offset
        self._position = Lags(filters.motion, filters.period, MOTION_LAGS)
        self._force = Lags(filters.motion, filters.period, MOTION_LAGS)
        self._rows = Lags(filters.rows, filters.period, ROW_LAGS)
        self._moving = Lags(filters.rows, filters.period, ROW_LAGS)
        self._before: tuple[np.ndarray, np.ndarray] | None = None
        self._q: np.ndarray | None = None
        self._count = 0

    def __call__(self, position: np.ndarray, force: np.ndarray) -> UpdateRows:
        """Take the next samples.

        Args:
            position: of the motors (N, n_a).
            force: of the motors (N, n_u).

        Raises:
            PoseError, AssemblyError: the motion leaves the workspace of the machine.
        """
        smooth, force = self._position(position), self._force(force)
        if self._before is None:
            self._before = np.repeat(smooth[:1], 2, axis=0), force[:1]
        smooth = np.concatenate([self._before[0], smooth])
        force = np.concatenate([self._before[1], force])
        self._before = smooth[-2:], force[-1:]
        period = self._filters.period
        at, before, after = smooth[1:-1], smooth[:-2], smooth[2:]
        velocity = (after - before) / (2.0 * period)
        acceleration = (after - 2.0 * at + before) / period**2
        rows, force = self._regression(at, velocity, acceleration, force[:-1])
        columns = rows.shape[2]
        filtered = self._rows(np.concatenate([rows, force[:, :, None]], axis=2))
        moving = self._moving((np.abs(velocity) > self._filters.standstill).astype(float))
        numbers = self._count + np.arange(len(force))
        self._count += len(force)
        due = (numbers + 1) % self._filters.interval == 0
        return UpdateRows(
            samples=numbers[due],
            regressor=filtered[due, :, :columns],
            force=filtered[due, :, columns],
            counts=moving[due] > MOVING,
        )

    def _regression(
        self,
        position: np.ndarray,
        velocity: np.ndarray,
        acceleration: np.ndarray,
        force: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return Y (N, n_u, n) and f (N, n_u) of every sample."""
        q = np.asarray(self._model.actuators.track(position, self._q).q)
        self._q = q[-1]
        rows = regressor_rows(self._model, (position, velocity, acceleration), "actuators", q)
        return rows @ self._columns, force - rows @ self._offset


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UpdateRows(ReprMixin):
    """Rows Y x = f of some updates.

    Attributes:
        samples: numbers of the samples at which they are due, from the beginning (K,).
        regressor: Y (K, n_u, n).
        force: f (K, n_u).
        counts: which forces count: those of motors that move (K, n_u).
    """

    samples: np.ndarray
    regressor: np.ndarray
    force: np.ndarray
    counts: np.ndarray
