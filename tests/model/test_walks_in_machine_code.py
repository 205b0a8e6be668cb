"""Lines to poses that cannot be reached are followed in machine code, not by the interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tauloop import Model, load
from tauloop.compiler.c.calling.evaluator import Compiled, Interpreted
from tauloop.compiler.program import Program

CASES = Path(__file__).parents[1] / "cases"


@pytest.fixture(scope="module")
def model() -> Model:
    """Return a machine whose positions need Newton's method."""
    return Model(load(CASES / "loop_within_a_loop.yaml"), evaluator=Compiled(at_least=0))


def walk(model: Model, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the end of each line from the reference pose, and whether it was out of reach."""
    runner = model.platform.runner
    inputs, _, _ = runner.inputs({"position": lengths[:, None]}, None, None)
    return runner.walked(inputs)


def test_samples_out_of_reach_do_not_repeat_the_others(model, monkeypatch):
    home = float(model.platform_position(model.assembly.q)[0])
    lengths = np.array([home, 0.999 * home, 5.0 * home])  # the last one is out of reach
    calls = []
    run = Program.run
    monkeypatch.setattr(Program, "run", lambda *a: calls.append(a) or run(*a))
    q, has_opened = walk(model, lengths)
    assert not calls
    assert has_opened.tolist() == [False, False, True]
    for length, pose in zip(lengths[:2], q[:2], strict=True):
        np.testing.assert_allclose(model.platform_position(pose), [length], rtol=1e-12)
        assert np.abs(model.assembly.loops.residuals(pose[None])[0]).max() < 1e-9
    # a failure is still explained loop by loop
    state = model.platform.runner.reached({"position": lengths[:, None]}, None)
    assert calls
    assert state.health.is_reached.tolist() == [True, True, False]


def test_walks_of_the_interpreter_end_at_the_same_poses(model):
    interpreted = Model(model.mechanism, evaluator=Interpreted())
    home = float(model.platform_position(model.assembly.q)[0])
    lengths = np.linspace(0.9 * home, 5.0 * home, 7)
    q, has_opened = walk(model, lengths)
    expected, expected_opened = walk(interpreted, lengths)
    assert has_opened.tolist() == expected_opened.tolist()
    assert has_opened.any()
    assert not has_opened.all()
    reached = ~has_opened
    np.testing.assert_allclose(q[reached], expected[reached], atol=1e-9)
