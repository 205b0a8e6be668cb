"""Kernels as loops on this computer's processor, and the C function of one sample beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from compiled_machines import compiler

from tauloop.compiler.c.calling.compiler import PORTABLE_FLAGS, Compiler
from tauloop.compiler.c.calling.library import Library
from tauloop.compiler.c.printing.source import CFunction, c_source


def exact_compiler() -> Compiler:
    """The compiler with flags under which every sum and product is rounded alike, wherever it stands."""
    return replace(compiler(), flags=PORTABLE_FLAGS)


def sample_by_sample(
    function: CFunction, inputs: Mapping[str, np.ndarray], folder: Path
) -> dict[str, np.ndarray]:
    """Outputs (N, n) by port of the C function of one sample, called N times."""
    library = Library.create(
        c_source([function], "of one sample", with_batch=False), exact_compiler(), folder=folder
    )
    call = library.function(function.name, "*" * len(function.arguments))
    n = len(inputs["position"])
    outputs = {
        port.name: np.empty((n, port.size)) for port in function.arguments[len(function.inputs) :]
    }
    read = [np.ascontiguousarray(inputs[port.name]) for port in function.inputs]
    for s in range(n):
        call(*(array[s].copy() for array in read), *(array[s] for array in outputs.values()))
    return outputs
