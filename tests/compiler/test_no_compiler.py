"""Without any compiler everything is interpreted, and one warning states it."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from tauloop import Model, load
from tauloop.compiler.c.calling import library
from tauloop.compiler.c.calling.evaluator import Compiled, Interpreted
from tauloop.kinematics import random_states


def test_one_notice_for_all_programs_and_the_interpreters_numbers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(library, "find_compiler", lambda: None)
    monkeypatch.setattr(library, "find_embedded_compiler", lambda: None)
    model, plain = (
        Model(load("delta"), evaluator=e) for e in (Compiled(at_least=0), Interpreted())
    )
    states = random_states(plain, 5, np.random.default_rng(1))
    motion = (states.position, states.velocity, states.acceleration)
    with caplog.at_level(logging.WARNING, logger="tauloop"):
        forces = model.platform.inverse_dynamics(*motion).force
        a = model.platform.forward_dynamics(*motion[:2], forces).a
        Y = model.platform.regressor(*motion)
        q = model.actuators.kinematics(model.actuator_position(states.q)).q
    (record,) = caplog.records
    for word in ("running interpreted", "slower", "none was found", "install gcc"):
        assert word in record.getMessage()
    assert np.array_equal(forces, plain.platform.inverse_dynamics(*motion).force)
    expected = plain.platform.forward_dynamics(*motion[:2], forces).a
    assert a is not None
    assert expected is not None
    assert np.array_equal(a, expected)
    assert np.array_equal(Y, plain.platform.regressor(*motion))
    assert np.array_equal(q, plain.actuators.kinematics(plain.actuator_position(states.q)).q)
