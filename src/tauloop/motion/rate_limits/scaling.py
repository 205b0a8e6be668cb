"""The largest rate that satisfies all quadratic limits a r^2 + b r + c <= 0, exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tauloop.common.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Quadratics:
    """Values c + b r + a r^2 at a rate r. The coefficients are arrays of the same shape.

    Forces along a path at different rates have exactly this form: c contains gravity, springs and
    Coulomb friction (whose sign is the same for all positive rates), b contains viscous friction,
    and a contains inertia.
    """

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray

    @staticmethod
    def around(rate: float, values: Callable[[float], np.ndarray]) -> Quadratics:
        """Return quadratics through the values at three rates."""
        return Quadratics.through(rate, lambda rates: [values(r) for r in rates])

    @staticmethod
    def through(
        rate: float, values: Callable[[tuple[float, ...]], Sequence[np.ndarray] | np.ndarray]
    ) -> Quadratics:
        """Return quadratics through the values at three rates near a rate.

        They follow from Newton's divided differences.

        Args:
            rate: a rate; its sign is that of the three rates.
            values: function from three rates to the values at each of them.
        """
        r0, r1, r2 = 0.5 * abs(rate), abs(rate), 1.5 * abs(rate)
        v0, v1, v2 = values(tuple(float(np.copysign(r, rate)) for r in (r0, r1, r2)))
        first = (v1 - v0) / (r1 - r0)
        second = ((v2 - v1) / (r2 - r1) - first) / (r2 - r0)
        return Quadratics(
            a=second, b=first - second * (r0 + r1), c=v0 - first * r0 + second * r0 * r1
        )

    def part(self, samples: np.ndarray) -> Quadratics:
        """Return the quadratics of some samples."""
        return Quadratics(a=self.a[samples], b=self.b[samples], c=self.c[samples])

    def at(self, rate: float) -> np.ndarray:
        """Return the values at a rate."""
        return np.asarray(self.c + rate * (self.b + rate * self.a))


def joined(parts: Sequence[Quadratics]) -> Quadratics:
    """Return all quadratics in flat arrays."""
    return Quadratics(
        a=np.concatenate([part.a.ravel() for part in parts]),
        b=np.concatenate([part.b.ravel() for part in parts]),
        c=np.concatenate([part.c.ravel() for part in parts]),
    )


def stacked(parts: Sequence[Quadratics]) -> Quadratics:
    """Return the quadratics of the samples of all parts."""
    return Quadratics(
        a=np.concatenate([part.a for part in parts]),
        b=np.concatenate([part.b for part in parts]),
        c=np.concatenate([part.c for part in parts]),
    )


def largest_rate(limits: Quadratics) -> float:
    """Return the largest r >= 0 at which no value is positive.

    It is infinite if r is not limited, and zero if a value is positive at every r. Each quadratic
    forbids at most two intervals of r, and the result is the largest point outside their union.
    Smaller rates may be forbidden, because inertia may act against gravity.

    Args:
        limits: quadratics that must not be positive.
    """
    low, high = _forbidden(limits.a.ravel(), limits.b.ravel(), limits.c.ravel())
    is_interval = high > low
    order = np.argsort(low[is_interval], kind="stable")
    low, high = low[is_interval][order], high[is_interval][order]
    if not len(low):
        return np.inf
    union_end = np.maximum.accumulate(high)
    if union_end[-1] < np.inf:
        return np.inf
    gaps = np.flatnonzero(low[1:] >= union_end[:-1])
    if len(gaps):
        return float(low[gaps[-1] + 1])
    return float(max(low[0], 0.0))


def _forbidden(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return open intervals (2 n,) of r >= 0 in which a r^2 + b r + c is positive.

    Empty intervals have low = high.
    """
    discriminant = b * b - 4 * a * c
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        q = -0.5 * (b + np.copysign(np.sqrt(np.maximum(discriminant, 0.0)), b))
        roots = np.sort(np.stack([q / a, np.where(q == 0.0, 0.0, c / q)]), axis=0)
        linear = -c / b
    zero = np.zeros_like(a)
    infinity = np.full_like(a, np.inf)
    is_quadratic = a != 0.0
    has_roots = is_quadratic & (discriminant > 0.0)
    # the intervals in which the value is positive
    between_roots = has_roots & (a < 0)
    outside_roots = has_roots & (a > 0)
    everywhere = (is_quadratic & ~has_roots & (a > 0)) | (~is_quadratic & (b == 0) & (c > 0))
    above_root = ~is_quadratic & (b > 0)
    below_root = ~is_quadratic & (b < 0)
    cases = [between_roots, outside_roots, everywhere, above_root, below_root]
    first_low = np.select(cases, [roots[0], zero, zero, linear, zero], zero)
    first_high = np.select(cases, [roots[1], roots[0], infinity, infinity, linear], zero)
    second_low = np.where(outside_roots, roots[1], zero)
    second_high = np.where(outside_roots, infinity, zero)
    low, high = np.concatenate([first_low, second_low]), np.concatenate([first_high, second_high])
    return np.maximum(low, 0.0), np.maximum(high, 0.0)
