"""The recursive fit against batch least squares, a Kalman filter in covariance form, and its own promises."""

import numpy as np
import pytest

from tauloop.common.errors import IdentificationError, InputError
from tauloop.identification.online import RecursiveFit, Wander

NAMES = tuple("abcdef")
NOISE = (0.3, 0.1)


def samples(count=400, seed=0):
    rng = np.random.default_rng(seed)
    regressor = rng.standard_normal((count, 2, 6)) * [1.0, 10.0, 0.1, 1.0, 3.0, 1.0]
    truth = np.array([1.0, 0.2, 30.0, -2.0, 0.5, 4.0])
    return regressor, regressor @ truth + rng.standard_normal((count, 2)) * NOISE, truth


def test_without_forgetting_it_is_batch_least_squares():
    regressor, forces, _ = samples()
    fit = RecursiveFit(NAMES, noise=NOISE, wander={})
    for row, force in zip(regressor, forces, strict=True):
        fit.update(row, force, 0.01)
    weights = np.tile(1 / np.array(NOISE), len(forces))
    A, b = regressor.reshape(-1, 6) * weights[:, None], forces.ravel() * weights
    expected = np.linalg.lstsq(A, b, rcond=None)[0]
    assert fit.values == pytest.approx(expected, rel=1e-10)
    assert fit.covariance == pytest.approx(np.linalg.inv(A.T @ A), rel=1e-9, abs=1e-15)


def kalman(regressor, forces, values, covariance, rates, elapsed):
    """Return estimates and covariance of the textbook Kalman filter in covariance form."""
    x, P, noise = np.array(values), np.array(covariance), np.diag(np.square(NOISE))
    for Y, f in zip(regressor, forces, strict=True):
        P = P + np.diag(np.square(rates) * elapsed)
        gain = P @ Y.T @ np.linalg.inv(Y @ P @ Y.T + noise)
        x = x + gain @ (f - Y @ x)
        P = (np.eye(len(x)) - gain @ Y) @ P
    return x, P


def test_with_wander_it_is_a_kalman_filter():
    regressor, forces, truth = samples(60)
    values, covariance = truth + 0.1, np.diag([0.04, 0.01, 4.0, 0.25, 0.04, 1.0])
    covariance[0, 1] = covariance[1, 0] = 0.01
    rates = np.array([0.0, 0.5, 0.0, 0.0, 2.0, 0.0])
    wander = {"b": Wander(rate=0.5, range=1e6), "e": Wander(rate=2.0, range=1e6)}
    fit = RecursiveFit(NAMES, noise=NOISE, values=values, covariance=covariance, wander=wander)
    for row, force in zip(regressor, forces, strict=True):
        fit.update(row, force, 0.01)
    x, P = kalman(regressor, forces, values, covariance, rates, 0.01)
    assert fit.tracked == ("b", "e")
    assert fit.values == pytest.approx(x, rel=1e-9)
    assert fit.covariance == pytest.approx(P, rel=1e-8, abs=1e-14)
    assert fit.tracked_deviations == pytest.approx(np.sqrt(np.diag(P)[[1, 4]]))


def test_without_excitation_a_parameter_is_frozen():
    _, _, truth = samples(1)
    wander = {"b": Wander(rate=1.0, range=0.5)}
    fit = RecursiveFit(
        NAMES, noise=NOISE, values=truth, covariance=np.diag([1e-4] * 6), wander=wander
    )
    still = np.zeros((2, 6))
    before = fit.values
    for _ in range(2000):
        fit.update(still, [0.0, 0.0], 0.01)
    assert fit.is_frozen.all()
    assert fit.values == pytest.approx(before, rel=1e-12)
    assert fit.deviation("b") == pytest.approx(0.5, abs=0.11)  # one step beyond its range at most
    assert fit.deviation("a") == pytest.approx(0.01)


def test_a_held_parameter_stays_where_a_tracked_one_explains_the_change():
    """A payload that is taken up is the payload's, and not the platform's mass, which the saved fit knows."""
    rng = np.random.default_rng(3)
    wander = {"payload": Wander(rate=1.0, range=2.0)}
    covariance = np.diag([0.01**2, 1e-4**2])
    fit = RecursiveFit(
        ["plate", "payload"], noise=[0.05], values=[0.6, 0.0], covariance=covariance, wander=wander
    )
    for k in range(300):
        lift = 9.81 + 3.0 * np.sin(0.2 * k)
        payload = 0.5 if k >= 150 else 0.0
        fit.update([[lift, lift]], [lift * (0.6 + payload) + 0.05 * rng.standard_normal()], 0.01)
    assert fit.value("payload") == pytest.approx(0.5, abs=0.02)
    assert fit.value("plate") == pytest.approx(0.6, abs=0.01)


def test_forces_that_do_not_count_are_left_out():
    regressor, forces, truth = samples()
    spoilt = forces.copy()
    spoilt[:, 1] = 1e6
    both = RecursiveFit(NAMES, noise=NOISE)
    for row, force in zip(regressor, spoilt, strict=True):
        both.update(row, force, used=[True, False])
    assert both.values == pytest.approx(truth, abs=0.5)


def test_wrong_arguments_are_refused_by_name():
    with pytest.raises(InputError, match="'d' is not a parameter"):
        RecursiveFit(["a"], noise=[1.0], wander={"d": Wander(rate=1.0, range=1.0)})
    with pytest.raises(InputError, match="positive definite"):
        RecursiveFit(
            ["a", "b"], noise=[1.0], values=[1.0, 1.0], covariance=[[1.0, 2.0], [2.0, 1.0]]
        )
    with pytest.raises(InputError, match="noise: contains 0, which is not positive"):
        RecursiveFit(["a"], noise=[0.0])
    with pytest.raises(IdentificationError, match="start from a saved fit"):
        _ = RecursiveFit(["a"], noise=[1.0]).values
