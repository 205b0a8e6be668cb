"""Residuals after a fit: planted trends are found and named, noise is left alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from calibration_sessions import encoders, machine, measured, part_errors

from tauloop.calibration import (
    Calibration,
    LoopEquations,
    Position,
    Series,
    calibration_problem,
    fit_geometry,
)
from tauloop.calibration.judging.residual_analysis import _quantity, _trend

NAME, NOISE, POSES = "gantry_tau_3dof", 2e-5, 100
LENGTHS = ("track*.length",)
#: A planted slope of 2 sigma at 100 poses is found to about a tenth: three of it.
SLOPE = 0.3


@pytest.fixture(scope="module")
def series() -> Series:
    draw = np.random.default_rng(4)
    true = part_errors(NAME, LENGTHS, 2e-4, draw)
    return measured(
        NAME, true, Position(name="tracker"), encoders(NAME, POSES, draw), NOISE, seed=2
    )


def calibrated(series: Series, **options: object) -> Calibration:
    return fit_geometry(
        calibration_problem(machine(NAME), [series], LENGTHS, **options), np.random.default_rng(0)
    )


def added(series: Series, column: int, values: np.ndarray) -> Series:
    readings = series.readings.copy()
    readings[:, column] += values
    return replace(series, readings=readings)


def test_noise_has_no_remarks(series):
    analysis = calibrated(series).residual_analysis
    assert analysis.remarks == ()
    assert "no significant trend" in analysis.verdict
    assert [item.quantity for item in analysis.quantities] == ["x", "y", "z"]
    against = {trend.against for trend in analysis.quantities[0].trends}
    assert against == {f"target {axis}" for axis in "xyz"} | {
        f"track{i}.motor" for i in (1, 2, 3)
    } | {"order"}


@pytest.mark.parametrize(
    "kind", [{}, {"residuals": LoopEquations(), "encoder_noise": 1e-7}], ids=["kinematics", "loops"]
)
def test_a_drift_is_found_and_told_as_one(series, kind):
    drift = 2 * NOISE * np.linspace(-1, 1, POSES)
    analysis = calibrated(added(series, 1, drift), **kind).residual_analysis
    assert len(analysis.remarks) >= 1
    assert analysis.remarks[0].startswith("y of tracker has a trend with order")
    assert "thermal drift" in analysis.remarks[0]
    trend = min(analysis.quantities[1].trends, key=lambda trend: trend.p)
    # errors are predictions less readings
    assert trend.slope == pytest.approx(-2 * NOISE, rel=SLOPE)
    assert abs(trend.curvature) < SLOPE * 2 * NOISE
    assert not [line for line in analysis.remarks if line.startswith("x of")]


def test_what_the_model_lacks_is_a_trend_with_the_place():
    """A track that is not where it should be, calibrated by lengths alone."""
    draw = np.random.default_rng(5)
    true = part_errors(NAME, LENGTHS, 2e-4, draw) | {
        "track1.yaw": machine(NAME).parameters["track1.yaw"].value + 3e-3
    }
    series = measured(NAME, true, Position(name="tracker"), encoders(NAME, POSES, draw), NOISE)
    analysis = calibrated(series).residual_analysis
    assert any(
        "the model lacks an effect that depends on position" in line for line in analysis.remarks
    )
    whole = fit_geometry(
        calibration_problem(machine(NAME), [series], (*LENGTHS, "track1.yaw")),
        np.random.default_rng(0),
    )
    assert whole.residual_analysis.remarks == ()


def test_correlated_and_long_tailed_noise(series):
    draw = np.random.default_rng(6)
    memory = np.zeros(POSES)
    for i, shock in enumerate(draw.standard_normal(POSES)):
        memory[i] = 0.8 * memory[i - 1] + shock
    text = calibrated(added(series, 0, 3 * NOISE * memory)).residual_analysis.remarks
    assert any(line.startswith("x of tracker is correlated from pose to pose") for line in text)
    bumps = np.where(np.arange(POSES) % 9 == 0, 6 * NOISE * draw.choice([-1.0, 1.0], POSES), 0.0)
    tails = calibrated(added(series, 2, bumps)).residual_analysis.remarks
    assert any(line.startswith("z of tracker is not normally distributed") for line in tails)


def test_too_few_residuals_are_not_judged(series):
    analysis = calibrated(series.take(np.arange(8))).residual_analysis
    assert analysis.verdict.startswith("too few")
    assert analysis.quantities[0].correlation is None


def test_figures_are_those_of_their_definitions():
    """Against SciPy's own regression and moments, on one set of numbers."""
    draw = np.random.default_rng(7)
    u, e = np.linspace(-1, 1, 60), draw.standard_normal(60) + 0.4 * np.linspace(-1, 1, 60)
    trend = _trend("u", u, e)
    coefficients = np.polyfit(u, e, 2)
    left = e - np.polyval(coefficients, u)
    share = 1 - (left @ left) / ((e - e.mean()) @ (e - e.mean()))
    assert trend.share == pytest.approx(share)
    assert trend.slope == pytest.approx(coefficients[1])
    assert trend.curvature == pytest.approx(coefficients[0] * 2 / 3)  # u^2 = (2 P2 + 1)/3
    assert trend.p == pytest.approx(scipy.stats.f.sf(share / 2 / ((1 - share) / 57), 2, 57))
    result = _quantity("s", "q", "m", e, {"u": u})
    d = e - e.mean()
    assert result.correlation == pytest.approx((d[1:] * d[:-1]).sum() / (d * d).sum())
    assert result.normality_p == pytest.approx(scipy.stats.shapiro(e)[1])


def test_chance_is_what_p_says():
    """Of 200 sets of noise about a twentieth has a p below a twentieth, for every test."""
    draw = np.random.default_rng(8)
    u = np.linspace(-1, 1, 50)
    sets = [_quantity("s", "q", "m", draw.standard_normal(50), {"u": u}) for _ in range(200)]
    low, high = scipy.stats.binom.ppf([0.0005, 0.9995], 200, 0.05)
    for figures in ([s.trends[0].p for s in sets], [s.normality_p for s in sets]):
        assert low <= sum(p < 0.05 for p in figures) <= high
    # Ljung and Box's statistic follows its distribution for long series only
    assert sum(s.correlation_p < 0.05 for s in sets) <= 2 * high


def test_the_document_has_it_beside_covariance_and_correlations(series):
    data = calibrated(added(series, 1, 2 * NOISE * np.linspace(-1, 1, POSES))).as_dict()
    assert data["residual_analysis"]["remarks"]
    assert {t["against"] for t in data["residual_analysis"]["quantities"][1]["trends"]} >= {
        "order",
        "target x",
    }
    C, R = np.array(data["covariance"]), np.array(data["correlations"])
    deviations = [row["deviation"] for row in data["parameters"]]
    assert np.sqrt(np.diag(C)) == pytest.approx(deviations)
    assert np.outer(deviations, deviations) * R == pytest.approx(C)
