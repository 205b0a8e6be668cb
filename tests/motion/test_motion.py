"""Multisines: exact derivatives, a stroke that is never exceeded, arguments that make no sense."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tauloop.common.errors import InputError
from tauloop.motion import Multisine, random_multisine

#: Central differences with this step, s, of sines up to 2 Hz err by (4 pi step)^2 / 6 and by
#: rounding over the step.
STEP, DIFFERENCES = 1e-5, 1e-6


@given(st.integers(0, 2**31), st.integers(1, 9), st.integers(1, 6))
def test_derivatives_are_those_of_the_positions(seed, terms, channels):
    rng = np.random.default_rng(seed)
    motion = random_multisine(
        rng.normal(size=channels), rng.uniform(0, 1, channels), rng, terms=terms, highest=2.0
    )
    time = rng.uniform(-5, 20, 30)
    here, ahead, behind = (motion.sample(time + s) for s in (0.0, STEP, -STEP))
    for rate, value in (("velocity", "position"), ("acceleration", "velocity")):
        quotient = (getattr(ahead, value) - getattr(behind, value)) / (2 * STEP)
        size = np.abs(motion.amplitude).max() * terms * (2 * np.pi * 2.0) ** 2
        assert np.abs(getattr(here, rate) - quotient).max() <= DIFFERENCES * (size + 1e-3)
    assert np.array_equal(here.time, time)


def test_one_sine_by_hand():
    """sin(t) + cos(t) around 3 with amplitude 2: at t = 0 position 5, velocity 2, acceleration -2."""
    ones = np.ones((1, 1))
    motion = Multisine(
        center=np.array([3.0]), amplitude=np.array([2.0]), frequency=ones, phase=np.zeros(1)
    )
    sample = motion.sample(np.array([0.0, np.pi / 2]))
    assert sample.position[:, 0] == pytest.approx([5.0, 5.0])
    assert sample.velocity[:, 0] == pytest.approx([2.0, -2.0])
    assert sample.acceleration[:, 0] == pytest.approx([-2.0, -2.0])


@given(st.integers(0, 2**31), st.integers(1, 7))
def test_the_stroke_is_never_exceeded(seed, terms):
    rng = np.random.default_rng(seed)
    center, stroke = rng.normal(size=4), np.array([0.0, 1e-3, 0.2, 5.0])
    motion = random_multisine(center, stroke, rng, terms=terms, lowest=0.5, highest=3.0)
    away = np.abs(motion.sample(np.linspace(0, 100, 4000)).position - center)
    assert (away <= stroke * (1 + 1e-12)).all()
    if terms == 1:  # a single sine does reach its stroke
        assert away.max(axis=0) == pytest.approx(stroke, rel=1e-2)
    assert motion.frequency.shape == (4, terms)
    assert (motion.frequency >= 2 * np.pi * 0.5).all()
    assert (motion.frequency <= 2 * np.pi * 3.0).all()


def test_the_same_generator_gives_the_same_motion():
    first, second, other = (
        random_multisine(np.zeros(2), np.ones(2), np.random.default_rng(s)) for s in (4, 4, 5)
    )
    time = np.linspace(0, 3, 50)
    assert np.array_equal(first.sample(time).position, second.sample(time).position)
    assert not np.allclose(first.sample(time).position, other.sample(time).position)


@pytest.mark.parametrize(
    ("changes", "wheres"),
    [
        ({"stroke": [0.1, -0.1]}, ["stroke"]),
        ({"stroke": [0.1, np.nan]}, ["stroke"]),
        ({"stroke": [0.1]}, ["stroke"]),
        ({"center": [0.0, np.inf]}, ["center"]),
        ({"terms": 0}, ["terms"]),
        ({"lowest": 0.0}, ["lowest"]),
        ({"lowest": 2.0, "highest": 1.0}, ["lowest"]),
        ({"lowest": np.nan}, ["lowest"]),
        ({"highest": np.inf}, ["lowest"]),
        (
            {"center": [[0.0, 0.0]], "stroke": [-1.0, 1.0], "terms": -3, "lowest": -1.0},
            ["center", "stroke", "stroke", "terms", "lowest"],
        ),
    ],
)
def test_what_makes_no_motion_is_refused_all_at_once(changes, wheres):
    arguments = {
        "center": [0.0, 0.0],
        "stroke": [0.1, 0.2],
        "terms": 3,
        "lowest": 0.1,
        "highest": 1.0,
    } | changes
    center, stroke = np.array(arguments.pop("center")), np.array(arguments.pop("stroke"))
    with pytest.raises(InputError) as caught:
        random_multisine(center, stroke, np.random.default_rng(0), **arguments)
    assert [problem.where for problem in caught.value.problems] == wheres
    assert all(problem.remedy for problem in caught.value.problems)
