"""Arrays of JAX and PyTorch go into kernels and come out of them, by DLPack alone: here on the processor."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_machines import compilers, motion
from extras import extra

from tauloop import Model, load
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.export.gpu import Cuda, DeviceFunction, Processor

pytestmark = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
NAMES = ("position", "velocity", "acceleration")


@pytest.fixture(scope="module")
def inverse(tmp_path_factory):
    model = Model(load("five_bar"), evaluator=Interpreted())
    cuda = Cuda(device=Processor(), folder=tmp_path_factory.mktemp("kernels"))
    return cuda.function(model.actuators, "inverse_dynamics", ("force",))


def test_arrays_of_jax_go_in_and_out(inverse: DeviceFunction):
    jax = extra("jax")
    inputs = motion("five_bar", "actuators", 40)
    with jax.enable_x64(True):
        force = inverse(*(jax.numpy.asarray(inputs[name]) for name in NAMES))
        assert np.array_equal(force, inverse(*(inputs[name] for name in NAMES)))
        assert np.array_equal(jax.numpy.from_dlpack(np.ascontiguousarray(force)), force)


def test_tensors_of_pytorch_go_in_and_out(inverse: DeviceFunction):
    torch = extra("torch")
    inputs = motion("five_bar", "actuators", 40)
    force = inverse(*(torch.as_tensor(inputs[name]) for name in NAMES))
    assert np.array_equal(force, inverse(*(inputs[name] for name in NAMES)))
    back = torch.from_dlpack(force)
    assert np.array_equal(back.numpy(), force)
    assert back.data_ptr() == force.ctypes.data
