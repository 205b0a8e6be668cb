"""Batches on graphics processors: CUDA kernels with one thread per sample and arrays on the device.

Examples:
    >>> import tauloop as tl
    >>> tl.export.gpu.Cuda().device
    Gpu(number=0, registers=None)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.compiler.c.printing.precision import Precision as Precision
    from tauloop.export.gpu.devices import Device as Device, Gpu as Gpu, Processor as Processor
    from tauloop.export.gpu.evaluator import Cuda as Cuda, DeviceFunction as DeviceFunction
    from tauloop.export.gpu.folding import RegressorFold as RegressorFold
    from tauloop.export.gpu.nvrtc import (
        DeviceCode as DeviceCode,
        KernelFigures as KernelFigures,
        compile_cuda as compile_cuda,
    )
    from tauloop.export.gpu.simulation import (
        ControlKernel as ControlKernel,
        ControlledStarts as ControlledStarts,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
