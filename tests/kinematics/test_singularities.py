"""Singular poses: measures against closed forms, crossings where geometry puts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core_machines import CORE_MACHINES
from hypothesis import given, settings, strategies as st
from planar_machines import five_bar_text
from scipy.linalg import null_space

from tauloop import Model, load, loads
from tauloop.common.errors import AssemblyError, InputError
from tauloop.kinematics import random_states
from tauloop.kinematics.singularities import (
    SINGULARITY_KINDS,
    require_regular,
    singularities,
    singularity_report,
)

#: Bisection halves 40 times: crossings are found to rounding of the pose.
LOCATED = 1e-9
#: Measures near zero are square roots of nothing: rounding of K enters at first order.
ROUNDING = 1e-9


@pytest.mark.parametrize("name", CORE_MACHINES)
def test_measures_are_the_jacobians(name: str) -> None:
    """parallel = 0 exactly where the actuator Jacobian is singular: compare with J on random states."""
    model = Model(load(name))
    states = random_states(model, 20, np.random.default_rng(3))
    measures = singularities(model, states.q)
    J = model.platform.actuator_jacobian(states.position, start=states.q)
    for measure in (measures.serial, measures.parallel, measures.constraint):
        assert ((measure > 0) & (measure <= 1 + ROUNDING)).all()
    sign = (
        np.sign(np.linalg.det(J))
        * np.sign(measures.serial_determinant)
        * np.sign(measures.parallel_determinant)
    )
    assert (sign == sign[0]).all()  # det J is the quotient of both determinants
    quotient = measures.parallel_determinant / measures.serial_determinant / np.linalg.det(J)
    np.testing.assert_allclose(quotient, quotient[0], rtol=1e-6)


def five_bar_states(model: Model, angles: np.ndarray) -> np.ndarray:
    """Coordinates along actuator positions, followed from the reference pose."""
    return model.actuators.track(angles).q


def test_parallel_singularity_where_distal_links_align() -> None:
    """Base 1 m, all links 0.6 m: the elbows are 2 x 0.6 m apart, so the distal links are in line, at cos a = -1/6."""
    model = Model(loads(five_bar_text(base=1.0, link=0.6)))
    # symmetric: left motor at pi - b, right motor at b; elbows 1 + 1.2 cos(a) apart
    exact = np.arccos(-1 / 6)
    start = model.actuator_position(model.assembly.q[None])[0]
    assert start[0] == pytest.approx(np.pi - start[1], abs=1e-12)
    # near the singularity the measure falls as the sine of the angle between the distal links
    right = np.linspace(start[1], np.pi - exact + 1e-4, 200)
    left = np.pi - right
    q = five_bar_states(model, np.stack([left, right], axis=1))
    measures = singularities(model, q)
    assert measures.parallel[-1] < 0.03 < 0.1 < measures.parallel[0]
    assert measures.serial.min() > 0.1


def test_crossing_of_a_parallel_singularity_is_located() -> None:
    """With the platform's motion given, the same five-bar passes through the straight pose of its distal links."""
    model = Model(loads(five_bar_text(base=1.0, link=0.6)))
    reference = model.platform_position(model.assembly.q[None])[0]
    # elbows at (-0.1, h) and (1.1, h), the tip between them at (0.5, h)
    height = np.sqrt(0.36 - 0.01)
    y = np.linspace(reference[1], height - 0.05, 41)
    positions = np.stack([np.full_like(y, 0.5), y], axis=1)
    state = model.platform.kinematics(positions[:1], start=model.assembly.q)
    q = [state.q[0]]
    for position in positions[1:]:
        q.append(model.platform.kinematics(position, start=q[-1]).q)
    motion = model.platform.evaluate(positions, start=np.array(q))
    report = singularity_report(model, motion)
    crossings = [c for c in report.crossings if c.kind == "parallel"]
    assert len(crossings) == 1
    assert crossings[0].pose["tip_y"] == pytest.approx(height, abs=LOCATED)
    with pytest.raises(AssemblyError, match="passes a parallel singularity"):
        require_regular(report)


def test_stretched_legs_are_a_serial_singularity_only() -> None:
    """A Delta straight down at sqrt((L + l)^2 - (R - r)^2): legs are stretched, yet the motors hold the plate."""
    model = Model(load("delta"))
    report = singularity_report(model, model.platform.kinematics([[0, 0, -0.5], [0, 0, -0.45]]))
    assert not report.crossings
    require_regular(report)
    straight = np.array([[0.0, 0.0, -(np.sqrt((0.26 + 0.48) ** 2 - 0.164**2) - 1e-9)]])
    measures = singularities(model, model.platform.kinematics(straight).q)
    assert measures.serial[0] < 1e-3
    assert measures.parallel[0] > 0.1


def test_bad_input() -> None:
    model = Model(load("delta"))
    state = model.platform.kinematics([[0, 0, -0.5]])
    with pytest.raises(InputError, match="at least two"):
        singularity_report(model, state)
    with pytest.raises(InputError, match=r"give .platform. or .actuators."):
        singularity_report(model, model.platform.kinematics([[0, 0, -0.5]] * 2), entry="tool")


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_determinants_and_measures_are_two_views_of_one_matrix(seed: int) -> None:
    """det [K; A]^2 = det(K K^T) det(A N)^2, N from SciPy: both vanish with the least singular value of A N."""
    model = Model(load("rcid"))
    q = random_states(model, 2, np.random.default_rng(seed)).q
    measures, loops = singularities(model, q), model.assembly.loops
    A = loops.transmission * loops.velocity_scale
    A = A / np.linalg.norm(A, axis=1, keepdims=True)
    for i, K in enumerate(loops.scaled(loops.residuals(q)[1])):
        sigma = np.linalg.svd(A @ null_space(K), compute_uv=False)
        assert measures.parallel[i] == pytest.approx(sigma[-1], abs=ROUNDING)
        volume = np.sqrt(np.linalg.det(K @ K.T)) * sigma.prod()
        assert abs(measures.parallel_determinant[i]) == pytest.approx(volume, rel=ROUNDING)


def test_distances_and_determinants_are_computed_when_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Crossings need no distances, distances no determinants; both are those of the poses that were given."""
    model = Model(load("delta"))
    state = model.platform.kinematics([[0, 0, -0.5], [0, 0.1, -0.45]])
    report = singularity_report(model, state)
    approaches = report.approaches
    expected = {
        name: report.measures.distance(name)
        for name in (*SINGULARITY_KINDS, "serial_determinant", "parallel_determinant")
    }
    counts = {"svd": 0, "det": 0}

    def counted(name: str) -> Callable[..., Any]:
        function = getattr(np.linalg, name)

        def call(*arguments: Any, **options: Any) -> Any:
            counts[name] += 1
            return function(*arguments, **options)

        return call

    for name in counts:
        monkeypatch.setattr(np.linalg, name, counted(name))
    report = singularity_report(model, state)
    require_regular(report, smallest=0.0)
    assert counts == {"svd": 0, "det": 2}
    assert report.approaches == approaches
    assert counts == {"svd": 3, "det": 2}
    measures = singularities(model, state.q)
    state.q[:] = 0.0
    for name in SINGULARITY_KINDS:
        np.testing.assert_array_equal(measures.distance(name), expected[name])
    assert counts["det"] == 2
    for name, values in expected.items():
        np.testing.assert_array_equal(measures.distance(name), values)
