"""Finite Fourier series: periodic motions with exact derivatives, linear in their coefficients."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.ports import numbers
from tauloop.motion.sampled import SampledMotion


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FourierSeries(ReprMixin):
    """q_i(t) = c_i + sum_k (mu_ik / (k w) sin(k w t) - nu_ik / (k w) cos(k w t)), k = 1 ... K, w = 2 pi / T.

    mu and nu are the coefficients of the velocities. In the SpiderMill paper the sum starts at
    k = 0, where the terms are undefined; here it starts at k = 1.

    Attributes:
        center: center c (n,), m or rad.
        mu, nu: coefficients of the velocities (n, K), m/s or rad/s.
        period: period T, s.

    Source: SpiderMill paper (Kroneis, Müller and Liu), eqs. 15 and 17; Swevers et al. 1997.
    """

    center: np.ndarray
    mu: np.ndarray
    nu: np.ndarray
    period: float

    def __post_init__(self) -> None:
        """Check shapes and numbers.

        Raises:
            InputError: shapes or numbers are wrong.
        """
        center = numbers(self.center, "series")
        mu = numbers(self.mu, "series")
        nu = numbers(self.nu, "series")
        problems = Problems()
        if (
            center.ndim != 1
            or mu.shape != nu.shape
            or mu.ndim != 2
            or len(mu) != len(center)
            or mu.shape[1] < 1
        ):
            what = f"shapes do not agree: center {center.shape}, mu {mu.shape}, nu {nu.shape}"
            problems.add("series", what, "give (n,), (n, K) and (n, K), K at least 1")
        if not all(np.isfinite(values).all() for values in (center, mu, nu)):
            problems.add("series", "a coefficient is not finite", "give finite numbers")
        if not 0 < self.period < np.inf:
            problems.add(
                "period",
                f"must be positive, got {self.period:g} s",
                "give a positive time, such as 10 s",
            )
        InputError.raise_if_any(problems)
        for name, values in (("center", center), ("mu", mu), ("nu", nu)):
            object.__setattr__(self, name, values)

    @property
    def harmonics(self) -> int:
        """Number of terms K."""
        return int(self.mu.shape[1])

    @property
    def coefficients(self) -> np.ndarray:
        """Coefficients (n, 2 K + 1) in the units of the positions: c, mu / (k w), nu / (k w)."""
        scale = np.arange(1, self.harmonics + 1) * 2 * np.pi / self.period
        return np.concatenate([self.center[:, None], self.mu / scale, self.nu / scale], axis=1)

    @staticmethod
    def of(coefficients: np.ndarray, period: float) -> FourierSeries:
        """Return the series with these `coefficients` (n, 2 K + 1)."""
        coefficients = numbers(coefficients, "coefficients")
        count = coefficients.shape[1] // 2
        scale = np.arange(1, count + 1) * 2 * np.pi / period
        return FourierSeries(
            center=coefficients[:, 0],
            mu=coefficients[:, 1 : 1 + count] * scale,
            nu=coefficients[:, 1 + count :] * scale,
            period=period,
        )

    def sample(self, time: np.ndarray) -> SampledMotion:
        """Return the positions (N, n) with exact first and second derivatives at times (N,), s."""
        time = np.asarray(time, dtype=float)
        position, velocity, acceleration = fourier_basis(time, self.harmonics, self.period)
        coefficients = self.coefficients.T
        return SampledMotion(
            time=time,
            position=position @ coefficients,
            velocity=velocity @ coefficients,
            acceleration=acceleration @ coefficients,
        )


def fourier_basis(
    time: np.ndarray, harmonics: int, period: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the matrices (N, 2 K + 1) that map coefficients to positions and two derivatives."""
    w = np.arange(1, harmonics + 1) * 2 * np.pi / period
    angle = np.asarray(time, dtype=float)[:, None] * w
    s, c = np.sin(angle), np.cos(angle)
    ones = np.ones((len(angle), 1))
    zeros = np.zeros((len(angle), 1))
    return (
        np.concatenate([ones, s, -c], axis=1),
        np.concatenate([zeros, w * c, w * s], axis=1),
        np.concatenate([zeros, -w * w * s, w * w * c], axis=1),
    )


def resting_series(harmonics: int) -> np.ndarray:
    """Return a basis (2 K + 1, 2 K - 1) of the coefficients of motions from rest to rest.

    The basis is orthonormal. Velocity and acceleration vanish at the start and the end: sum mu_k = 0
    and sum k nu_k = 0. A single harmonic cannot satisfy both.

    Raises:
        InputError: there are fewer than two harmonics.
    """
    if harmonics < 2:
        noun = "harmonic" if harmonics == 1 else "harmonics"
        what = f"a series with {harmonics} {noun} cannot start and end at rest"
        raise InputError.of(
            "harmonics", what, "use at least 2, or allow the motion to start with a velocity"
        )
    _, velocity, acceleration = fourier_basis(np.zeros(1), harmonics, 2 * np.pi)
    return np.asarray(scipy.linalg.null_space(np.concatenate([velocity, acceleration / harmonics])))
