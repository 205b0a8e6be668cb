"""NVRTC without a device: machine code, what the assembler says of it, the cache, errors that say what to install."""

from __future__ import annotations

import pytest
from compiled_machines import function
from extras import extra, is_here

from tauloop.common.errors import EngineError, InputError
from tauloop.compiler.c import Precision
from tauloop.export.gpu import Cuda, Gpu, KernelFigures, compile_cuda
from tauloop.export.gpu.nvrtc import parse_kernel_report
from tauloop.export.gpu.source import kernel_name, kernels_text

LOG = """
ptxas info    : 40 bytes gmem
ptxas info    : Compiling entry function 'first_grid' for 'sm_90'
ptxas info    : Function properties for first_grid
ptxas         .     864 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers, 864 bytes cumulative stack size
ptxas info    : Compile time = 95.536 ms
ptxas info    : Compiling entry function 'second_grid' for 'sm_90'
ptxas info    : Function properties for second_grid
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 24 registers, used 0 barriers
"""


def test_what_the_assembler_says_is_read():
    first, second = parse_kernel_report(LOG)
    assert first == KernelFigures(
        name="first_grid", registers=255, stack=864, spill_stores=16, spill_loads=24
    )
    assert (second.name, second.registers, second.stack) == ("second_grid", 24, 0)


@pytest.mark.parametrize(
    ("registers", "threads", "share"),
    [(32, 128, 1.0), (64, 128, 0.5), (255, 128, 0.125), (168, 128, 0.1875)],
)
def test_occupancy_is_that_of_nvidias_table(registers, threads, share):
    """By hand: 65536 registers and 2048 threads; 255 registers are 8192 a warp, two blocks of four warps."""
    kernel = KernelFigures(name="k", registers=registers, stack=0, spill_stores=0, spill_loads=0)
    assert kernel.occupancy(threads) == share


def test_a_kernel_compiles_without_a_device_and_is_kept(tmp_path):
    extra("nvidia.cuda_nvrtc")
    made = function("five_bar", "platform", "inverse_dynamics")
    for precision in Precision:
        text = kernels_text([made], "test", precision)
        code = compile_cuda(text, folder=tmp_path)
        kernel = code.kernel(kernel_name(made))
        assert 0 < kernel.registers <= 255
        assert (kernel.stack, kernel.spill_stores, kernel.spill_loads) == (0, 0, 0)
        assert code.path.read_bytes()[:4] == b"\x7fELF"
        written = code.path.stat().st_mtime_ns
        assert compile_cuda(text, folder=tmp_path) == code
        assert code.path.stat().st_mtime_ns == written
    whole = code.path.read_bytes()
    code.path.write_bytes(whole[:100])
    assert compile_cuda(text, folder=tmp_path).path.read_bytes() == whole


def test_what_nvrtc_refuses_is_said(tmp_path):
    extra("nvidia.cuda_nvrtc")
    with pytest.raises(EngineError, match='identifier "speed" is undefined'):
        compile_cuda('extern "C" __global__ void k(double *x) { x[0] = speed; }', folder=tmp_path)
    with pytest.raises(InputError, match="sm_90"):
        compile_cuda("", architecture="sm_90 --evil", folder=tmp_path)
    assert list(tmp_path.glob("*.cubin")) == []


def test_without_cupy_or_a_driver_it_says_what_to_install():
    if not is_here("cupy"):
        with pytest.raises(EngineError, match=r"CuPy: cannot be imported") as error:
            Cuda().device.kernel("", "k", "n", None)
        assert "tauloop[gpu]" in str(error.value)
        return
    cupy = extra("cupy")
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        with pytest.raises(EngineError, match="no CUDA driver or no device"):
            Cuda().device.kernel("", "k", "n", None)
    else:
        with pytest.raises(EngineError, match="is not there"):
            _ = Gpu(number=count).arrays


def test_a_cache_that_others_may_write_to_is_refused_with_a_remedy(tmp_path):
    extra("nvidia.cuda_nvrtc")
    tmp_path.chmod(0o777)
    with pytest.raises(EngineError, match=r"(?s)other users may write to .*chmod go-w") as caught:
        compile_cuda('extern "C" __global__ void k(double *x) { x[0] = 1.0; }', folder=tmp_path)
    assert "allow" not in str(caught.value)
