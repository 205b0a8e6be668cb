"""Many starts under one controller: each is the motion of the loop that runs one at a time, on threads and devices."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from compiled_machines import compilers
from tabulated import assert_tabulated

from tauloop import Model, StrokeOptions, load
from tauloop.common.errors import InputError, PoseError
from tauloop.common.result import Status
from tauloop.compiler.c import Compiled
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.export.gpu import Cuda, Processor
from tauloop.motion.planning import planned
from tauloop.simulation import Sampling, follow_many, prepared_loop
from tauloop.simulation.controllers.laws import PD, ComputedTorque
from tauloop.simulation.controllers.loop import CompiledLoop

needs_compiler = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
#: The same equations around the same machine, with products and sums fused elsewhere, over some
#: hundred steps.
SAME = 1e-9
LAW, SAMPLING = ComputedTorque(bandwidth=80.0), Sampling(saturates=False)
#: Code for the starts; what is evaluated for a few samples takes the embedded compiler.
LONG_RUNS = Compiled(at_least=100)
PUSH = np.array([0.5, -0.2, 0.0, 0.0, 0.0, 0.0])


@cache
def stroke(evaluator):
    return planned(
        Model(load("five_bar"), evaluator=evaluator), StrokeOptions(end={"x": 0.02}, duration=0.05)
    )


def starts(trajectory, n=5):
    model, rng = trajectory.stroke.model, np.random.default_rng(4)
    here = model.platform.ports.at(model.assembly.q)
    return here + 1e-3 * rng.normal(size=(n, 2)), 1e-2 * rng.normal(size=(n, 2))


@needs_compiler
@pytest.mark.parametrize("pushed", [False, True], ids=["alone", "with a wrench at the tool"])
def test_every_start_moves_as_in_the_loop_that_runs_one(pushed):
    acting = {"wrench": PUSH} if pushed else {}
    trajectory = stroke(LONG_RUNS)
    position, velocity = starts(trajectory)
    many = follow_many(trajectory, LAW, SAMPLING, position, velocity, every=3, **acting)
    assert many.status is Status.OK
    assert many.is_whole.all()
    loop, _ = prepared_loop(trajectory, LAW, SAMPLING, **acting)
    alone = CompiledLoop(loop.plant, loop.model, LAW, loaded=pushed)
    for i in range(5):
        q = loop.plant.platform.kinematics(position[i], start=loop.q).q
        trace = alone(replace(loop, position=position[i], velocity=velocity[i], q=q))
        for kept, whole in (
            (many.position, trace.position),
            (many.velocity, trace.velocity),
            (many.force, trace.force),
        ):
            assert np.abs(kept[i] - whole[::3]).max() < SAME * np.abs(whole).max()
        assert many.steps[i] == trace.samples.steps
        distance = np.linalg.norm(trace.position[::3] - many.reference, axis=1)
        assert many.tool_error[i] == pytest.approx(distance, abs=SAME)
    assert (many.tool_error[:, -1] < many.tool_error[:, 0]).all()
    assert_tabulated(many, "residual")


@needs_compiler
def test_no_number_depends_on_threads_and_a_device_has_the_same():
    """Interpreted evaluators and a delay take the other way, one start after the other."""
    results = []
    for evaluator in (
        Compiled(threads=3),
        Compiled(),
        Cuda(device=Processor(), at_least=2),
        Interpreted(),
    ):
        trajectory = stroke(evaluator)
        results.append(follow_many(trajectory, LAW, SAMPLING, *starts(stroke(Compiled()))))
    threads, *others = results
    assert np.array_equal(threads.position, others[0].position)
    assert np.array_equal(threads.force, others[0].force)
    for other in others:
        assert np.abs(threads.position - other.position).max() < SAME
        assert np.array_equal(threads.steps, other.steps)
    trajectory = stroke(Compiled())
    late = follow_many(trajectory, LAW, replace(SAMPLING, delay=5e-4), *starts(trajectory))
    assert late.is_whole.all()
    assert 1e-6 < np.abs(late.position - threads.position).max() < 1e-3


@needs_compiler
def test_a_start_that_is_thrown_out_of_reach_ends_early_and_alone():
    trajectory = stroke(LONG_RUNS)
    position, velocity = starts(trajectory)
    velocity[2] = 300.0
    many = follow_many(trajectory, PD(bandwidth=80.0), SAMPLING, position, velocity)
    assert many.status is Status.DOUBTFUL
    assert many.is_whole.tolist() == [True, True, False, True, True]
    reached = int(many.reached[2])
    assert 0 < reached < len(many.time)
    assert np.isfinite(many.position[2, :reached]).all()
    assert np.isnan(many.position[2, reached:]).all()
    assert np.isfinite(many.position[[0, 1, 3, 4]]).all()
    data = many.as_dict()
    assert "model" not in data
    assert data["position"][2][reached] == [None, None]
    assert np.array_equal(data["position"][1], many.position[1])


def test_wrong_starts_are_refused():
    trajectory = stroke(Interpreted())
    with pytest.raises(InputError, match="every"):
        follow_many(trajectory, LAW, SAMPLING, np.zeros((1, 2)), every=0)
    with pytest.raises(InputError, match="position"):
        follow_many(trajectory, LAW, SAMPLING, np.zeros((1, 3)))
    with pytest.raises(InputError, match="velocity"):
        follow_many(trajectory, LAW, SAMPLING, starts(trajectory)[0], np.zeros((2, 2)))
    with pytest.raises(PoseError):
        follow_many(trajectory, LAW, SAMPLING, np.full((1, 2), 9.0))
