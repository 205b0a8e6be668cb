"""Motion laws: normalized displacement of a rest-to-rest move over normalized time.

Source: Biagiotti and Melchiorri 2008, Trajectory Planning for Automatic Machines and Robots.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.polynomial import Polynomial

from tauloop.common.names.deprecated import old_attribute
from tauloop.common.options import NamedFields, Options, option
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin


@dataclass(frozen=True, slots=True, kw_only=True)
class LawSample(NamedFields, ReprMixin):
    """Progress s along a path at normalized times x (N,). All values are dimensionless.

    Attributes:
        s: progress from 0 to 1 (N,).
        derivative: first derivative ds/dx (N,).
        second_derivative: second derivative d2s/dx2 (N,).
    """

    s: np.ndarray
    derivative: np.ndarray
    second_derivative: np.ndarray

    first = old_attribute("first", "derivative")
    second = old_attribute("second", "second_derivative")


class Law(ABC):
    """A symmetric motion law s(x), with s(1 - x) = 1 - s(x).

    The progress s along the path is a function of the normalized time x, both from 0 to 1.
    """

    @abstractmethod
    def at(self, x: np.ndarray) -> LawSample:
        """Return the progress at normalized times x (N,) in [0, 1].

        At a jump of the acceleration, the value after the jump is returned.
        """

    @property
    def breaks(self) -> tuple[float, ...]:
        """Normalized times inside (0, 1) at which the acceleration jumps."""
        return ()


class Uniform(Law):
    """s = x, for trajectories that already contain their timing and start and end at rest."""

    def at(self, x: np.ndarray) -> LawSample:
        """Return progress at normalized times x (N,)."""
        return LawSample(s=x, derivative=np.ones_like(x), second_derivative=np.zeros_like(x))


class Parabolic(Law):
    """Bang-bang law: s = 2 x^2 up to the middle, then 1 - 2 (1 - x)^2.

    Its peak acceleration, 4, is the smallest of all laws.
    """

    @property
    def breaks(self) -> tuple[float, ...]:
        """The middle of the motion."""
        return (0.5,)

    def at(self, x: np.ndarray) -> LawSample:
        """Return progress at normalized times x (N,)."""
        accelerates = x < 0.5
        remaining = 1.0 - x
        return LawSample(
            s=np.where(accelerates, 2 * x**2, 1 - 2 * remaining**2),
            derivative=np.where(accelerates, 4 * x, 4 * remaining),
            second_derivative=np.where(accelerates, 4.0, -4.0),
        )


class Cycloidal(Law):
    """Cycloidal law: s = x - sin(2 pi x) / (2 pi); peak speed 2, peak acceleration 2 pi."""

    def at(self, x: np.ndarray) -> LawSample:
        """Return progress at normalized times x (N,)."""
        w = 2 * np.pi
        return LawSample(
            s=x - np.sin(w * x) / w,
            derivative=1 - np.cos(w * x),
            second_derivative=w * np.sin(w * x),
        )


@dataclass(frozen=True, slots=True)
class PolynomialLaw(Law):
    """A polynomial law, given by its coefficients in ascending order."""

    coefficients: tuple[float, ...]

    def at(self, x: np.ndarray) -> LawSample:
        """Return progress at normalized times x (N,)."""
        s = Polynomial(self.coefficients)
        return LawSample(s=s(x), derivative=s.deriv()(x), second_derivative=s.deriv(2)(x))


#: s = 10 x^3 - 15 x^4 + 6 x^5: accelerations are continuous; peak speed 15/8, peak acceleration
#: 10/sqrt(3).
POLYNOMIAL_345 = PolynomialLaw((0.0, 0.0, 0.0, 10.0, -15.0, 6.0))
#: s = 35 x^4 - 84 x^5 + 70 x^6 - 20 x^7: jerks are continuous; peak speed 35/16, peak acceleration
#: 84/(5 sqrt(5)).
POLYNOMIAL_4567 = PolynomialLaw((0.0, 0.0, 0.0, 0.0, 35.0, -84.0, 70.0, -20.0))


@dataclass(frozen=True, slots=True)
class Trapezoidal(Options, Law):
    """Trapezoidal speed: constant acceleration, constant speed, constant deceleration.

    Attributes:
        ramp: fraction of the time for each of the two ramps, above 0 and at most 1/2; with 1/2 the
            law is parabolic.
    """

    ramp: float = option(1.0 / 3.0, above=0.0, most=0.5)

    @property
    def breaks(self) -> tuple[float, ...]:
        """End of the first ramp, and start of the second ramp."""
        return (self.ramp, 1.0 - self.ramp) if self.ramp < 0.5 else (0.5,)

    def at(self, x: np.ndarray) -> LawSample:
        """Return progress at normalized times x (N,)."""
        speed = 1.0 / (1.0 - self.ramp)
        remaining = 1.0 - x
        acceleration = speed / self.ramp
        ramps = [x < self.ramp, x >= 1.0 - self.ramp]
        return LawSample(
            s=np.select(
                ramps,
                [0.5 * acceleration * x**2, 1 - 0.5 * acceleration * remaining**2],
                speed * (x - 0.5 * self.ramp),
            ),
            derivative=np.select(ramps, [acceleration * x, acceleration * remaining], speed),
            second_derivative=np.select(ramps, [acceleration, -acceleration], 0.0),
        )


#: Motion laws by their names on the command line.
LAWS: Mapping[str, Law] = MappingProxyType(
    {
        "parabolic": Parabolic(),
        "cycloidal": Cycloidal(),
        "3-4-5": POLYNOMIAL_345,
        "4-5-6-7": POLYNOMIAL_4567,
        "trapezoidal": Trapezoidal(),
    }
)
