"""Evaluations that planning shares between rates, durations and both sides of a limit."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import tauloop as tl
from tauloop.model.tool import Payload
from tauloop.motion import POLYNOMIAL_345, Ellipse, PathLimits, PathRows, law_rate, stroke
from tauloop.motion.cycles.planning import CycleLeg, _leg_means, mean_squares
from tauloop.motion.cycles.ways import WayPath
from tauloop.motion.fastest.changes import LawChanges, _limit_constraints
from tauloop.motion.fastest.limits import LimitRows
from tauloop.motion.fastest.planning import sampled_rate
from tauloop.motion.rate_limits.scaling import Quadratics
from tauloop.motion.strokes.stroke import Stroke

PLATE = ("platform.x", "platform.y", "platform.z")
DELTA = tl.Model(tl.load("delta"))
#: Rounding of forces and of polynomials through them.
ROUNDING = 1e-12
#: Peaks between the 10 001 points of the direct evaluation.
BETWEEN_POINTS = 1e-6


def ellipse() -> Stroke:
    radius = np.array([0.1, 0.0, 0.0])
    curve = Ellipse(np.array([0.0, 0.0, -0.52]), radius, np.array([0.0, 0.0, 0.03]), 0.0, np.pi)
    return stroke(DELTA, curve, PLATE)


def test_fractions_at_several_rates_are_those_of_inverse_dynamics() -> None:
    placed, load = ellipse(), Payload(mass=0.3)
    rows = PathRows(placed, PathLimits(force=0.8, payload=load, tool_acceleration=90.0))
    x, rates = np.linspace(0.01, 0.99, 37), (1.5, 3.0, 5.0)
    values, names = rows.shares_at(POLYNOMIAL_345.at(x), rates)
    assert values.shape == (3, 37, len(names))
    first = names.index(f"{rows.names[0]} with payload")
    for k, rate in enumerate(rates):
        motion = placed.motion(POLYNOMIAL_345.at(x), rate, x / rate)
        force = DELTA.platform.inverse_dynamics(*motion.states, payload=load).force
        expected = force[:, 0] / (0.8 * DELTA.mechanism.actuators[0].force)
        assert values[k, :, first] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        tool = np.linalg.norm(motion.states[2], axis=1) / 90.0
        assert values[k, :, -1] == pytest.approx(tool, rel=1e-4, abs=1e-6)


def test_fractions_at_a_fourth_rate_follow_from_three() -> None:
    rows = PathRows(ellipse(), PathLimits(force=0.8))
    progress = POLYNOMIAL_345.at(np.linspace(0.01, 0.99, 37))
    shares = Quadratics.through(2.0, lambda rates: rows.shares_at(progress, rates)[0])
    assert rows.are_quadratic
    assert shares.at(4.7) == pytest.approx(rows.shares(progress, 4.7)[0], abs=100 * ROUNDING)


def test_the_rate_of_a_law_uses_the_largest_fraction_completely() -> None:
    rows = PathRows(ellipse(), PathLimits(force=0.8))
    rate = law_rate(rows, POLYNOMIAL_345, 1.0)
    fine = POLYNOMIAL_345.at(np.linspace(0.0, 1.0, 10_001))
    assert rows.shares(fine, rate)[0].max() == pytest.approx(1.0, abs=BETWEEN_POINTS)
    assert rate <= sampled_rate(rows, POLYNOMIAL_345, 1.0) * (1.0 + ROUNDING)
    assert rate == pytest.approx(law_rate(rows, POLYNOMIAL_345, 7.0), rel=1e-8)


def test_changes_of_one_law_at_two_rates_are_differences_of_its_forces() -> None:
    placed, reversal = ellipse(), 0.02
    rows = PathRows(placed, PathLimits(reversal=reversal))
    changes = LawChanges(rows, POLYNOMIAL_345, 2.0, 101)
    x = np.linspace(0.0, 1.0, 101)
    full = np.array([actuator.force for actuator in DELTA.mechanism.actuators])
    for rate in (1.0, 2.5):
        motion = placed.motion(POLYNOMIAL_345.at(x), rate, x / rate)
        force = DELTA.platform.inverse_dynamics(*motion.states).force
        slopes = np.abs(np.diff(force, axis=0)) * 100.0 * rate
        expected = (slopes * reversal / (2.0 * full)).max(axis=1)
        assert changes.used_fractions(rate)[0] == pytest.approx(expected, rel=1e-7, abs=1e-9)
    slow = changes.slowed(20.0)
    assert 0.98 < changes.used_fractions(slow)[0].max() <= 1.0 + 1e-6


@pytest.mark.parametrize("is_mirrored", [True, False])
def test_constraints_with_two_bounds_have_the_excess_of_the_rows(is_mirrored: bool) -> None:
    rng = np.random.default_rng(3)
    p, q, g = rng.normal(size=(3, 5, 2))
    factor = -1.0 if is_mirrored else -1.1

    def both(values: np.ndarray) -> np.ndarray:
        return np.stack([values, factor * values], axis=2).reshape(5, 4)

    none, r = np.zeros((5, 0)), rng.uniform(0.1, 1.0, (5, 4))
    at = LimitRows(
        names=("a", "b", "c", "d"),
        p=both(p),
        q=both(q),
        g=both(g),
        r=r,
        e=np.zeros((5, 4, 0)),
        c=none,
        top=np.ones(5),
    )
    v, a = ca.MX.sym("v", 5), ca.MX.sym("a", 5)
    bounded = _limit_constraints(at, v, a)
    assert len(bounded) == (2 if is_mirrored else 4)
    speed, pull = rng.uniform(0.0, 2.0, 5), rng.normal(size=5)
    evaluated = ca.Function("rows", [v, a], [part.values for part in bounded])(speed, pull)
    excess = [
        np.maximum(np.asarray(values).ravel() - part.high, part.low - np.asarray(values).ravel())
        for values, part in zip(evaluated, bounded, strict=True)
    ]
    expected = at.excess(speed**2, pull)
    if is_mirrored:
        expected = expected.reshape(5, 2, 2).max(axis=2)
    assert np.stack(excess, axis=1) == pytest.approx(expected, abs=ROUNDING)


def test_mean_squares_of_a_leg_at_rest_are_those_of_its_path_for_each_duration() -> None:
    start, end = np.array([-0.05, 0.0, -0.5]), np.array([0.05, 0.02, -0.52])
    leg = CycleLeg(
        name="leg",
        limits=PathLimits(reversal=0.02),
        way=WayPath(start=start, end=end),
        law=POLYNOMIAL_345,
        leaves=np.zeros(3),
        arrives=np.zeros(3),
        least=0.2,
    )
    load = Payload(mass=0.4)
    means = _leg_means(DELTA, leg, leg.least, load)
    for duration in (0.2, 0.37):
        expected = mean_squares(DELTA, leg.path(duration), duration, load)
        assert means(duration) == pytest.approx(expected, rel=ROUNDING)
