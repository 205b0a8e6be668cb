"""Many starts under one controller in a kernel: each is the motion of the compiled loop, which runs one at a time."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers
from extras import extra

from tauloop import Model, load
from tauloop.common.errors import InputError
from tauloop.export.gpu import ControlKernel, Cuda, Processor, compile_cuda
from tauloop.motion import POLYNOMIAL_345, Line, Seconds, plan, stroke
from tauloop.simulation import Sampling, prepared_loop
from tauloop.simulation.controllers.laws import PD, ComputedTorque
from tauloop.simulation.controllers.loop import CompiledLoop

needs_compiler = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
#: The same text around the same machine, with products and sums fused elsewhere, over some hundred
#: steps.
SAME = 1e-9
#: Instructions for doubles that explicit steps take for each number of a state; implicit ones take
#: 150 and more.
MOST_OF_A_STATE = 50


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("controls")


def trajectory(name, seconds=0.05):
    model = Model(load(name))
    here = model.platform.ports.at(model.assembly.q)
    shift = np.where(np.array(model.platform.ports.position.units) == "m", 0.01, 0.0)
    path = stroke(model, Line(here - shift, here + shift), model.platform.ports.position.columns)
    return plan(path, POLYNOMIAL_345, Seconds(seconds))


@needs_compiler
@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("five_bar", ComputedTorque(bandwidth=80.0)),
        pytest.param(
            "delta", ComputedTorque(bandwidth=80.0, space="platform"), marks=pytest.mark.nightly
        ),
        pytest.param("rcid", PD(bandwidth=80.0), marks=pytest.mark.nightly),
    ],
)
def test_every_start_moves_as_alone(name, law, folder):
    made = trajectory(name)
    loop, _ = prepared_loop(made, law, Sampling())
    model, rng = loop.plant, np.random.default_rng(4)
    kernel = ControlKernel(model, model, law, Cuda(device=Processor(), folder=folder))
    angles = np.array([unit != "m" for unit in model.platform.ports.position.units])
    position = loop.position + np.where(
        angles, 0.0, 1e-3 * rng.normal(size=(5, len(loop.position)))
    )
    q = model.platform.kinematics(position, start=np.tile(loop.q, (5, 1))).q
    velocity = 1e-2 * rng.normal(size=(5, len(loop.velocity)))
    starts = kernel(loop, position, velocity, q, every=3)
    assert starts.is_whole.all()
    assert (starts.reached == len(loop.feedforward)).all()
    alone = CompiledLoop(model, model, law)
    for i in range(5):
        trace = alone(replace(loop, position=position[i], velocity=velocity[i], q=q[i]))
        for kept, whole in (
            (starts.position, trace.position),
            (starts.velocity, trace.velocity),
            (starts.force, trace.force),
        ):
            assert kept[i].shape == whole[::3].shape
            assert np.abs(kept[i] - whole[::3]).max() < SAME * np.abs(whole).max()
        assert starts.steps[i] == trace.samples.steps
        assert starts.worst[i] == pytest.approx(trace.samples.worst, rel=1e-6, abs=1e-12)
    if name == "five_bar":
        check_what_ends_and_what_is_refused(kernel, loop, position, velocity, q)


def check_what_ends_and_what_is_refused(kernel, loop, position, velocity, q):
    """A start that is thrown out of reach ends early, and alone; a loop that kernels have not is refused."""
    thrown = velocity.copy()
    thrown[2] = 300.0
    starts = kernel(loop, position, thrown, q)
    assert starts.is_whole.tolist() == [True, True, False, True, True]
    reached = int(starts.reached[2])
    assert reached < len(loop.feedforward)
    assert np.isnan(starts.position[2, reached:]).all()
    assert np.isfinite(starts.position[1]).all()
    with pytest.raises(InputError) as error:
        kernel(
            replace(loop, delay=1, load=np.zeros((len(loop.feedforward), 16))),
            position,
            velocity,
            q,
        )
    assert all(word in str(error.value) for word in ("has a delay", "has a load"))
    with pytest.raises(InputError, match=r"velocity: has shape \(5, 1\), needs \(5, 2\)"):
        kernel(loop, position, velocity[:, :1], q)
    with pytest.raises(InputError, match="differs from the kernel in control law"):
        kernel(replace(loop, controller=PD(bandwidth=80.0)), position, velocity, q)


@pytest.mark.parametrize("name", ["delta", pytest.param("five_bar", marks=pytest.mark.nightly)])
def test_it_compiles_for_a_gpu(name, tmp_path, monkeypatch):
    """What a step asks for stays a function of its own, in registers, and the method is known: no implicit steps."""
    extra("nvidia.cuda_nvrtc")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "benchmarks"))
    model = Model(load(name))
    kernel = ControlKernel(
        model, model, ComputedTorque(bandwidth=80.0), Cuda(device=Processor(), folder=tmp_path)
    )
    code = compile_cuda(kernel.text, folder=tmp_path)
    assert 0 < code.kernel("tl_control").registers <= 255
    assert code.kernel("tl_control").spill_stores == 0
    functions = importlib.import_module("machine_code.device").functions_of(code.path)
    if functions is None:
        pytest.skip("needs nvdisasm (extra `dev`)")
    assert functions.keys() == {"tl_control", "system_rate", "system_sample"}
    assert functions["tl_control"].doubles < MOST_OF_A_STATE * kernel.system.states
    assert not any(function.bytewise for function in functions.values())
