"""Numerical evaluation of coupling curves with NumPy polynomials and SciPy splines."""

from __future__ import annotations

import numpy as np

from tauloop.mechanism.curves import Curve, CurvePolynomial
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.poses import Array
from tauloop.verification.engines.trees.rigid_tree import CurveFunction


def curve_function(mechanism: Mechanism, curve: Curve) -> CurveFunction:
    """Return the function that evaluates a curve and its derivatives.

    The parameters of the mechanism have their nominal values.
    """
    if isinstance(curve, CurvePolynomial):
        coefficients = [mechanism.value(c) for c in curve.coefficients]
        center = mechanism.value(curve.about)
        polynomial = np.polynomial.Polynomial(coefficients)

        def evaluate(x: Array) -> tuple[Array, Array, Array]:
            u = x - center
            return polynomial(u), polynomial.deriv()(u), polynomial.deriv(2)(u)

        return evaluate
    from scipy.interpolate import CubicSpline, PchipInterpolator

    x, y = np.array(curve.points).T
    shifts = np.array([-1.0, 0.0, 1.0]) * (x[-1] - x[0]) if curve.periodic else np.zeros(1)
    nodes = np.unique(np.concatenate([x[:-1] + shift for shift in shifts] + [x[-1:] + shifts[-1]]))
    heights = np.concatenate([np.tile(y[:-1], len(shifts)), y[-1:]])
    if curve.monotone:
        spline = PchipInterpolator(nodes, heights)
    else:
        spline = CubicSpline(x, y, bc_type="periodic" if curve.periodic else "natural")

    def table(position: Array) -> tuple[Array, Array, Array]:
        period = x[-1] - x[0]
        inside = (
            x[0] + np.mod(position - x[0], period)
            if curve.periodic
            else np.clip(position, x[0], x[-1])
        )
        value = spline(inside)
        slope = spline(inside, 1)
        curvature = spline(inside, 2)
        is_outside = (
            position != inside if not curve.periodic else np.zeros(position.shape, dtype=bool)
        )
        return (
            value + slope * np.where(is_outside, position - inside, 0.0),
            slope,
            np.where(is_outside, 0.0, curvature),
        )

    return table
