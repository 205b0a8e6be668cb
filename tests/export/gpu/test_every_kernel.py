"""Every function of the catalogue that batches run, of machines of all kinds: as loops to the last bit, by NVRTC."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_machines import ENTRIES, compilers, function, motion
from device_kernels import exact_compiler, sample_by_sample
from extras import extra

from tauloop.compiler.c import Precision
from tauloop.export.gpu import DeviceFunction, Processor, compile_cuda
from tauloop.export.gpu.source import kernel_name, kernels_text

pytestmark = pytest.mark.nightly
PROGRAMS = (
    "kinematics_0",
    "kinematics_2",
    "embedding",
    "inverse_dynamics",
    "forward_dynamics",
    "regressor_actuators",
)
MACHINES = ("delta", "rcid", "five_bar", "gantry_tau_3dof")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here")
@pytest.mark.parametrize("which", PROGRAMS)
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("name", MACHINES)
def test_every_kernel_has_the_numbers_of_c_to_the_last_bit(name, entry, which, folder):
    made, inputs = function(name, entry, which), motion(name, entry, 33)
    outputs = DeviceFunction(made, Processor(compiler=exact_compiler()), folder=folder).batch(
        inputs
    )
    expected = sample_by_sample(made, inputs, folder)
    for port, array in outputs.items():
        assert np.array_equal(array, expected[port]), port


@pytest.mark.parametrize("which", PROGRAMS)
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("name", MACHINES)
def test_every_kernel_compiles_for_a_gpu(name, entry, which, folder):
    extra("nvidia.cuda_nvrtc")
    made = function(name, entry, which)
    for precision in Precision:
        code = compile_cuda(kernels_text([made], "test", precision), folder=folder)
        kernel = code.kernel(kernel_name(made))
        assert 0 < kernel.registers <= 255
        assert kernel.occupancy(128) > 0
