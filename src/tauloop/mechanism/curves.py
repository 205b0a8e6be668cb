"""Coupling curves, functions of one coordinate: polynomials, and tables with cubic interpolation."""

from __future__ import annotations

from tauloop.common.records import dataclass
from tauloop.mechanism.expression import ZERO, Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePolynomial:
    """The polynomial y = sum_k c_k (x - about)^k.

    Attributes:
        coefficients: c_0, c_1, ..., in SI units.
        about: coordinate about which the polynomial is expanded.
    """

    coefficients: tuple[Expression, ...]
    about: Expression = ZERO


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveTable:
    """A curve through points, cubic between them.

    The smooth curve is a cubic spline (two continuous derivatives). It is natural: its second
    derivative is zero at both ends, where it continues as a straight line; a periodic one has equal
    derivatives at both ends. The monotone curve (Fritsch and Butland 1984, A method for constructing
    local monotone piecewise cubic interpolants) does not overshoot its points, and has one continuous
    derivative: accelerations jump at its points.

    Attributes:
        points: (x, y), increasing in x, SI.
        periodic: whether the curve repeats after its last point, whose y must equal that of the first.
        monotone: whether the curve is monotone between points.
    """

    points: tuple[tuple[float, float], ...]
    periodic: bool = False
    monotone: bool = False

    @property
    def lower(self) -> float:
        """First x, SI."""
        return self.points[0][0]

    @property
    def upper(self) -> float:
        """Last x, SI."""
        return self.points[-1][0]


Curve = CurvePolynomial | CurveTable
