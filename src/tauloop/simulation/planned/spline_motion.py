"""A smooth motion through sampled positions of the platform, including quaternions."""

from __future__ import annotations

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, Problem, Problems
from tauloop.equations.ports import numbers
from tauloop.model import Model
from tauloop.motion import SampledMotion
from tauloop.motion.strokes.rates import velocities_from_position_rates

#: Degree of the splines, for smooth accelerations.
SPLINE_DEGREE = 5
#: Largest deviation of the length of a sampled quaternion from 1. It allows for rounded tables.
UNIT_LENGTH_TOLERANCE = 1e-4


class SplineMotion:
    """Quintic splines through samples. Velocities and accelerations are their derivatives.

    A complete quaternion is p = s/|s|, where s is a spline through the samples. The signs of the
    samples are chosen such that s is continuous. With n = |s|, the derivatives are
    p' = (s' - p (p.s')) / n and p'' = (s'' - 2 n' p' - n'' p) / n. The angular velocity is
    w = 2 p' p*.
    """

    def __init__(self, model: Model, time: np.ndarray, position: np.ndarray) -> None:
        """Fit the splines.

        Args:
            model: the machine.
            time: times (N,), increasing from zero, s.
            position: positions of the platform (N, n).

        Raises:
            InputError: there are too few samples, the times do not increase from zero, or a
                quaternion does not have unit length.
        """
        self._model = model
        entry = model.platform.ports
        self._quaternions: list[list[int]] = []
        for q0, _ in model.topology.quaternions:
            components = range(q0, q0 + 4)
            if set(components) <= set(entry.q):
                self._quaternions.append([entry.q.index(component) for component in components])
        position = numbers(position, "position").copy()
        InputError.raise_if_any(
            _problems(time, position, entry.position.columns, self._quaternions)
        )
        for columns in self._quaternions:
            samples = position[:, columns]
            unit = samples / np.linalg.norm(samples, axis=1, keepdims=True)
            is_flipped = np.sum(unit[1:] * unit[:-1], axis=1) < 0
            signs = np.concatenate([[1.0], np.where(is_flipped, -1.0, 1.0)]).cumprod()
            position[:, columns] = unit * signs[:, None]
        from scipy.interpolate import make_interp_spline  # SciPy is an optional dependency

        self._spline = make_interp_spline(time, position, k=SPLINE_DEGREE)
        self._samples = (time, model.platform.track(position).q)
        self.duration = float(time[-1])

    def at(self, time: np.ndarray) -> SampledMotion:
        """Return the motion at times (N,)."""
        position, first, second = (np.array(self._spline(time, k)) for k in range(3))
        for columns in self._quaternions:
            parts = (position[:, columns], first[:, columns], second[:, columns])
            position[:, columns], first[:, columns], second[:, columns] = _on_unit_sphere(*parts)
        model = self._model
        velocity, acceleration = velocities_from_position_rates(
            model, model.platform, position, first, second, self._near(time)
        )
        return SampledMotion(
            time=time, position=position, velocity=velocity, acceleration=acceleration
        )

    def _near(self, time: np.ndarray) -> np.ndarray:
        """Return coordinates (N, n_q) of samples next to times (N,)."""
        sample_time, q = self._samples
        return np.asarray(q[np.clip(np.searchsorted(sample_time, time), 0, len(q) - 1)])


def _on_unit_sphere(
    s: np.ndarray, ds: np.ndarray, dds: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return unit quaternions p = s/|s| and two derivatives (N, 4), from s and its derivatives."""
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
    if len(time) <= SPLINE_DEGREE:
        remedy = f"give more than {SPLINE_DEGREE} samples"
        problems.add("motion", f"has only {counted(len(time), 'sample')}", remedy)
    if not (np.diff(time) > 0).all() or (len(time) and time[0] != 0.0):
        problems.add(
            "motion", "the times do not increase from zero", "sort the samples, and start at 0 s"
        )
    for quaternion in quaternions:
        deviation = np.abs(np.linalg.norm(position[:, quaternion], axis=1) - 1.0)
        if deviation.max(initial=0.0) > UNIT_LENGTH_TOLERANCE:
            worst = int(np.argmax(deviation))
            what = f"the length of the quaternion of sample {worst} differs from 1 by "
            what += f"{deviation[worst]:.3g}"
            problems.add(
                ", ".join(columns[i] for i in quaternion),
                what,
                "normalize the quaternion; its order is w, x, y, z",
            )
    return problems
