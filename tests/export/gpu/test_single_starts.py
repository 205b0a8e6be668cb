"""Many starts in floats, on the processor: how far they stay from doubles, and what floats do not keep."""

from __future__ import annotations

import re

import numpy as np
import pytest
from compiled_machines import compilers
from extras import extra
from scaled_machines import Scale, scaled

from tauloop import Model, StrokeOptions, load
from tauloop.common.errors import InputError
from tauloop.compiler.c import Compiled, Precision
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.export.gpu import ControlKernel, Cuda, Processor, compile_cuda
from tauloop.motion.planning import planned
from tauloop.simulation import (
    DormandPrince,
    Projected,
    RungeKutta4,
    Sampling,
    Simulator,
    follow_many,
    prepared_loop,
    simulate_many,
)
from tauloop.simulation.controllers.laws import PD, ComputedTorque
from tauloop.simulation.stepping.starts import steps_text

needs_compiler = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
FLOATS = Cuda(device=Processor(), at_least=2, precision=Precision.SINGLE)
#: A float's rounding of coordinates of half a metre and some radians is 1e-7; it adds up over
#: hundreds of steps.
NEAR, NEAR_SPEED = 1e-5, 1e-3


def simulated(evaluator, integrator, route=None):
    model = Model(load("delta"), evaluator=evaluator)
    q = np.tile(model.assembly.q, (5, 1))
    held = model.platform.inverse_dynamics(
        model.platform_position(q[0]), np.zeros(3), np.zeros(3)
    ).force
    speed = 0.05 * np.random.default_rng(1).normal(size=(5, 3))
    v = model.platform.kinematics(model.platform.ports.at(q), speed).v
    return simulate_many(
        Simulator(model, integrator=integrator, route=route), 0.2, q, v, force=held, samples=11
    )


@needs_compiler
@pytest.mark.parametrize(
    ("integrator", "route"),
    [
        (RungeKutta4(step=1e-3), None),
        pytest.param(DormandPrince(rtol=1e-5, atol=1e-6), None, marks=pytest.mark.nightly),
        pytest.param(RungeKutta4(step=1e-3), Projected(), marks=pytest.mark.nightly),
    ],
)
def test_motions_in_floats_stay_near_those_in_doubles(integrator, route):
    doubles, floats = (
        simulated(evaluator, integrator, route) for evaluator in (Compiled(), FLOATS)
    )
    assert doubles.endings == floats.endings
    assert (floats.reached == 0.2).all()
    moved = np.abs(doubles.q - doubles.q[:, :1]).max()
    assert 0.0 < np.abs(floats.q - doubles.q).max() < NEAR < 1e-3 * moved
    assert np.abs(floats.v - doubles.v).max() < NEAR_SPEED
    assert floats.q.dtype == np.float64
    if route is None:  # coordinates of independent ones are found in doubles
        assert floats.residual.max() < 1e-14
    assert floats.energy_error.max() > 10 * doubles.energy_error.max()


@needs_compiler
@pytest.mark.nightly
def test_loops_are_projected_in_floats_alike_at_every_scale():
    """A residual below 1e-6 m was rounding: on a machine of micrometres any was, on one of kilometres none."""
    ends = []
    for scale in (Scale(), Scale(1e-3, 1e-9, 1.0), Scale(1e3, 1e9, 1.0)):
        model = Model(scaled("delta", scale).without_friction(), evaluator=FLOATS)
        simulator = Simulator(model, integrator=RungeKutta4(step=1e-3), route=Projected())
        q, v = np.tile(model.assembly.q, (2, 1)), np.zeros((2, model.topology.n_v))
        motions = simulate_many(simulator, 0.05, q, v, samples=3)
        assert (motions.reached == 0.05).all()
        assert motions.residual.max() < NEAR * scale.length
        ends.append(motions.q[:, -1] / scale.coordinates(model.topology))
    assert np.abs(ends - ends[0]).max() < NEAR


@needs_compiler
@pytest.mark.parametrize(
    "law",
    [pytest.param(PD(bandwidth=80.0), marks=pytest.mark.nightly), ComputedTorque(bandwidth=80.0)],
)
def test_control_in_floats_stays_near_that_in_doubles(law):
    results, rng = [], np.random.default_rng(2)
    shift = 1e-3 * rng.normal(size=(4, 2))
    for evaluator in (Compiled(), FLOATS):
        model = Model(load("five_bar"), evaluator=evaluator)
        trajectory = planned(model, StrokeOptions(end={"x": 0.02}, duration=0.1))
        position = model.platform.ports.at(model.assembly.q) + shift
        results.append(follow_many(trajectory, law, Sampling(saturates=False), position, every=5))
    doubles, floats = results
    assert floats.is_whole.all()
    assert (floats.steps == doubles.steps).all()
    assert 0.0 < np.abs(floats.position - doubles.position).max() < NEAR
    assert np.abs(floats.force - doubles.force).max() < 1e-3 * np.abs(doubles.force).max()
    loop, _ = prepared_loop(trajectory, law, Sampling(saturates=False))
    kernel = ControlKernel(model, model, law, FLOATS)
    q = model.platform.kinematics(position, start=np.tile(loop.q, (4, 1))).q
    starts = kernel(loop, position, np.zeros((4, 2)), q, every=5)
    assert starts.position.dtype == np.float32
    assert np.array_equal(starts.position, floats.position)


@needs_compiler
def test_tolerances_that_floats_do_not_keep_are_refused():
    with pytest.raises(
        InputError,
        match="integrator: has a relative tolerance of 1e-09; single precision allows 1e-06 or more",
    ):
        simulated(FLOATS, DormandPrince())


def test_no_double_is_left_in_the_text():
    model = Model(load("delta"), evaluator=Interpreted())
    simulator = Simulator(model, integrator=RungeKutta4(step=1e-3), route=Projected())
    text = re.sub(
        r"/\*.*?\*/", "", steps_text(simulator.stepper, Precision.SINGLE), flags=re.DOTALL
    )
    behind = text[text.index("#endif\n", text.index("TL_SHARED")) :]
    assert not re.search(r"\bdouble\b", behind)
    assert not re.search(r"\b(sqrt|fabs|pow|floor|fmin|fmax|sin|cos|exp|atan2)\(", behind)
    assert not re.search(r"(?<![\w.])\d+\.\d*(?:[eE][-+]?\d+)?(?![\dfeE])", behind)


@pytest.mark.nightly
def test_it_compiles_for_a_gpu(tmp_path):
    extra("nvidia.cuda_nvrtc")
    simulator = Simulator(
        Model(load("five_bar"), evaluator=Interpreted()), integrator=RungeKutta4(step=1e-3)
    )
    single, double = (
        compile_cuda(steps_text(simulator.stepper, precision), folder=tmp_path).kernel("tl_many")
        for precision in (Precision.SINGLE, Precision.DOUBLE)
    )
    assert 0 < single.registers < double.registers
