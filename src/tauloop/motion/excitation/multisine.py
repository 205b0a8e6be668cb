"""Multisines: sums of sines and cosines with random frequencies and phases, for excitation."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.ports import numbers
from tauloop.motion.sampled import SampledMotion


@dataclass(frozen=True, slots=True, kw_only=True)
class Multisine(ReprMixin):
    """q_i(t) = c_i + A_i sum_k (sin(w_ki t + phi_i) + cos(w_ki t + phi_i)).

    Attributes:
        center: centers c (n,), m or rad.
        amplitude: amplitudes A (n,), m or rad; zero for a channel at rest.
        frequency: angular frequencies w (n, K), rad/s.
        phase: phases phi (n,), rad.

    Source: Gantry-Tau paper (Lyzell, Hovland), eq. 2, with added center and amplitude.
    """

    center: np.ndarray
    amplitude: np.ndarray
    frequency: np.ndarray
    phase: np.ndarray

    def sample(self, time: np.ndarray) -> SampledMotion:
        """Return the positions (N, n) with exact first and second derivatives at times (N,), s."""
        angle = time[:, None, None] * self.frequency + self.phase[:, None]
        s, c = np.sin(angle), np.cos(angle)
        w = self.frequency
        return SampledMotion(
            time=time,
            position=self.center + self.amplitude * (s + c).sum(axis=2),
            velocity=self.amplitude * (w * (c - s)).sum(axis=2),
            acceleration=-self.amplitude * (w * w * (s + c)).sum(axis=2),
        )


def random_multisine(
    center: np.ndarray,
    stroke: np.ndarray,
    rng: np.random.Generator,
    *,
    terms: int = 5,
    lowest: float = 0.1,
    highest: float = 1.0,
) -> Multisine:
    """Return a multisine with random frequencies and phases, so that the tool's path does not repeat.

    Args:
        center: center of each channel (n,), m or rad.
        stroke: largest distance from the center (n,), m or rad. It is never exceeded, because
            |sin + cos| <= sqrt(2).
        rng: random number generator.
        terms: number of frequencies per channel.
        lowest, highest: range of frequencies, Hz.

    Raises:
        InputError: shapes differ, a stroke is negative or not finite, there are no terms, or the
            frequency range is empty.
    """
    center = numbers(center, "center")
    stroke = numbers(stroke, "stroke")
    problems = Problems()
    if center.ndim != 1 or not np.isfinite(center).all():
        problems.add("center", "is not a row of finite numbers", "give one number per channel")
    if stroke.shape != center.shape:
        problems.add(
            "stroke",
            f"has shape {stroke.shape}, but the center has {center.shape}",
            "give one number per channel",
        )
    is_valid = (stroke >= 0) & np.isfinite(stroke)
    if not is_valid.all():
        problems.add(
            "stroke",
            f"must be finite and not negative, got {stroke[~is_valid][0]:g}",
            "give a positive distance, or zero to keep a channel at rest",
        )
    if terms < 1:
        problems.add("terms", f"must be at least 1, got {terms}", "give a number such as 5")
    if not 0 < lowest < highest < np.inf:
        problems.add(
            "lowest",
            f"needs 0 < lowest < highest, got {lowest:g} and {highest:g} Hz",
            "give for example 0.1 and 1 Hz",
        )
    InputError.raise_if_any(problems)
    n = len(center)
    return Multisine(
        center=center,
        amplitude=stroke / (terms * np.sqrt(2.0)),
        frequency=2 * np.pi * np.sort(rng.uniform(lowest, highest, size=(n, terms)), axis=1),
        phase=rng.uniform(-np.pi, np.pi, size=n),
    )
