"""A smooth motion through sampled positions of the platform, quaternions among them."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import make_interp_spline

from tauloop.common.errors import InputError, Problem, Problems
from tauloop.equations.ports import numbers
from tauloop.model import Model
from tauloop.motion import SampledMotion
from tauloop.motion.rates import entry_rates

#: Degree of the splines: accelerations are then smooth.
DEGREE = 5
#: A sampled quaternion may miss unit length by this much, for rounded tables.
UNIT = 1e-4


class SplineMotion:
    """Splines of degree five through samples; velocities and accelerations are their derivatives.

    A whole quaternion is s/|s| with a spline s through its samples, signs chosen so that it never
    jumps; its derivatives are p' = (s' - p (p.s')) / |s| and p'' = (s'' - 2 n' p' - n'' p) / |s|
    with n = |s|. Angular velocities follow by w = 2 p' p*.
    """

    def __init__(self, model: Model, time: np.ndarray, position: np.ndarray) -> None:
        """Lay the splines.

        Args:
            model: the machine.
            time: s (N,), rising from zero.
            position: of the platform's entry (N, n).

        Raises:
            InputError: too few samples, times that do not rise from zero, or quaternions that are
                not of unit length.
        """
        self._model, entry = model, model.platform.ports
        self._quaternions = [
            [entry.q.index(q0 + k) for k in range(4)]
            for q0, _ in model.topology.quaternions
            if all(q0 + k in entry.q for k in range(4))
        ]
        position = numbers(position, "position").copy()
        InputError.raise_if_any(
            _problems(time, position, entry.position.columns, self._quaternions)
        )
        for columns in self._quaternions:
            part = position[:, columns] / np.linalg.norm(
                position[:, columns], axis=1, keepdims=True
            )
            turned = np.sum(part[1:] * part[:-1], axis=1) < 0
            position[:, columns] = (
                part * np.concatenate([[1.0], np.where(turned, -1.0, 1.0)]).cumprod()[:, None]
            )
        self._spline = make_interp_spline(time, position, k=DEGREE)
        self._known = (time, model.platform.track(position).q)
        self.duration = float(time[-1])

    def at(self, time: np.ndarray) -> SampledMotion:
        """The motion at times (N,)."""
        position, first, second = (np.array(self._spline(time, k)) for k in range(3))
        for columns in self._quaternions:
            parts = (position[:, columns], first[:, columns], second[:, columns])
            position[:, columns], first[:, columns], second[:, columns] = _on_unit_sphere(*parts)
        model = self._model
        velocity, acceleration = entry_rates(
            model, model.platform, position, first, second, self._near(time)
        )
        return SampledMotion(
            time=time, position=position, velocity=velocity, acceleration=acceleration
        )

    def _near(self, time: np.ndarray) -> np.ndarray:
        known, q = self._known
        return np.asarray(q[np.clip(np.searchsorted(known, time), 0, len(q) - 1)])


def _on_unit_sphere(
    s: np.ndarray, ds: np.ndarray, dds: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unit quaternions p = s/|s| and their two derivatives, from those of s (N, 4)."""
    n = np.linalg.norm(s, axis=1, keepdims=True)
    p = s / n
    dn = np.sum(p * ds, axis=1, keepdims=True)
    dp = (ds - p * dn) / n
    ddn = np.sum(dp * ds + p * dds, axis=1, keepdims=True)
    return p, dp, (dds - 2 * dn * dp - ddn * p) / n


def _problems(
    time: np.ndarray, position: np.ndarray, columns: tuple[str, ...], quaternions: list[list[int]]
) -> list[Problem]:
    problems = Problems()
    if len(time) <= DEGREE:
        problems.add("motion", f"has {len(time)} samples", f"give more than {DEGREE}")
    if not (np.diff(time) > 0).all() or (len(time) and time[0] != 0.0):
        problems.add(
            "motion", "the times do not rise from zero", "sort the samples, and start at 0 s"
        )
    for part in quaternions:
        miss = np.abs(np.linalg.norm(position[:, part], axis=1) - 1.0)
        if miss.max(initial=0.0) > UNIT:
            worst = int(np.argmax(miss))
            what = f"the quaternion of sample {worst} misses unit length by {miss[worst]:.3g}"
            problems.add(
                ", ".join(columns[i] for i in part),
                what,
                "divide it by its length; the order is w, x, y, z",
            )
    return problems
