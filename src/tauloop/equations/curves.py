"""Curves of couplings as expressions of a coordinate, with two derivatives."""

from __future__ import annotations

from itertools import pairwise

import casadi as ca
import numpy as np

from tauloop.equations.values import Values
from tauloop.mechanism.curves import Curve, CurvePolynomial, CurveTable

#: Value, first and second derivative.
Derivatives = tuple[ca.SX, ca.SX, ca.SX]


def curve_derivatives(curve: Curve, x: ca.SX, values: Values) -> Derivatives:
    """Return a curve and its first two derivatives at a coordinate."""
    if isinstance(curve, CurvePolynomial):
        return _polynomial(curve, x, values)
    return _table(curve, x)


def _polynomial(curve: CurvePolynomial, x: ca.SX, values: Values) -> Derivatives:
    """Return a polynomial and its derivatives by Horner's scheme."""
    u = x - values.scalar(curve.about)
    value, slope, second = ca.SX(0), ca.SX(0), ca.SX(0)
    for coefficient in reversed(curve.coefficients):
        second = second * u + 2 * slope
        slope = slope * u + value
        value = value * u + values.scalar(coefficient)
    return value, slope, second


def _table(curve: CurveTable, x: ca.SX) -> Derivatives:
    """Return an interpolated table and its derivatives.

    The start and the coefficients of the cubic piece at x are written as sums of step functions of
    x. The steps are constant between points, and adjacent pieces agree at points, so derivatives of
    these expressions are exact.
    """
    if curve.periodic:
        period = curve.upper - curve.lower
        x = x - period * ca.floor((x - curve.lower) / period)
    starts, pieces = cubic_pieces(curve)
    piece = ca.SX(ca.DM(pieces[0]))
    start = ca.SX(starts[0])
    for k, (before, after) in enumerate(pairwise(pieces), start=1):
        is_beyond = starts[k] <= x
        piece += is_beyond * ca.DM(after - before)
        if starts[k] != starts[k - 1]:
            start += is_beyond * (starts[k] - starts[k - 1])
    u = x - start
    c0, c1, c2, c3 = (piece[i] for i in range(4))
    value = ((c3 * u + c2) * u + c1) * u + c0
    return value, (3 * c3 * u + 2 * c2) * u + c1, 6 * c3 * u + 2 * c2


def cubic_pieces(curve: CurveTable) -> tuple[np.ndarray, np.ndarray]:
    """Return the starts (n,) and coefficients (n, 4) of the cubic pieces of a table.

    A piece is c_0 + c_1 u + c_2 u^2 + c_3 u^3 with u = x - start. The first piece extends to minus
    infinity, and the last one to infinity.
    """
    # SciPy is slow to import, and few machines have tables.
    from scipy.interpolate import CubicSpline, PchipInterpolator

    x, y = np.array(curve.points).T
    if curve.monotone:
        if curve.periodic:
            # Two further points on both sides determine the slopes where the period ends.
            period = x[-1] - x[0]
            x_extended = np.concatenate([x[-3:-1] - period, x, x[1:3] + period])
            y_extended = np.concatenate([y[-3:-1], y, y[1:3]])
            spline = PchipInterpolator(x_extended, y_extended)
        else:
            spline = PchipInterpolator(x, y)
    else:
        spline = CubicSpline(x, y, bc_type="periodic" if curve.periodic else "natural")
    first = int(np.searchsorted(spline.x, x[0]))
    cubics = spline.c[::-1].T[first : first + len(x) - 1]
    if curve.periodic:
        return x[:-1], cubics
    slopes = spline(x[[0, -1]], 1)
    before, after = ((y[i], slopes[i], 0.0, 0.0) for i in (0, -1))
    return np.concatenate([x[:1], x]), np.concatenate([[before], cubics, [after]])
