"""Functions of a motion for JAX: compiled machine code behind `jit`, `vmap`, `grad` and `jvp`, through XLA's FFI.

Tangents are products with the Jacobians of `tauloop.programs.derivatives`, in machine code too; they are linear in what
JAX differentiates by, so that it transposes them itself.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from tauloop.codegen.compiled import HELD, CompiledFunction
from tauloop.codegen.compiler import build
from tauloop.codegen.library import require_compiler
from tauloop.codegen.signature import HEALTH
from tauloop.errors import EngineError, InputError
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model.casadi_face import displacements
from tauloop.model.runner import Runner
from tauloop.programs.catalogue import DERIVATIVES, FORWARD_DYNAMICS, INVERSE_DYNAMICS
from tauloop.programs.derivatives import by
from tauloop.programs.limits import CONVERGED, SMALLEST_PIVOT

#: Name of the one target of XLA.
TARGET = "tauloop_call"
FUNCTIONS = {spec.name: spec for spec in (INVERSE_DYNAMICS, FORWARD_DYNAMICS)}


def jax_function(runner: Runner, function: str) -> Callable[..., Any]:
    """A function of three arrays (..., n) for JAX; see `Motion.as_jax`."""
    InputError.raise_if_any(unknown_names([function], FUNCTIONS, "{!r} is unknown", "function"))
    jax = _jax()
    spec, pair = FUNCTIONS[function], DERIVATIVES[function][0]
    output, inputs = spec.outputs[0], spec.inputs
    value = _Call(runner.compiled(spec, (output,)))
    both = _Call(runner.compiled(pair, (output, *(by(output, name) for name in inputs))))
    turned = _displacement_map(runner)

    def tangent(primals: Any, tangents: Any) -> Any:
        result, *columns = both(*primals)
        first, constant = turned
        moved = jax.numpy.einsum("ijk,...k->...ij", first, primals[0]) + constant
        steps = [jax.numpy.einsum("...ij,...j->...i", moved, tangents[0]), *tangents[1:]]
        change = 0.0
        for block, step in zip(columns, steps, strict=True):
            jacobian = block.reshape(*block.shape[:-1], -1, result.shape[-1])  # by columns
            change = change + jax.numpy.einsum("...ji,...j->...i", jacobian, step)
        return result, change

    call = jax.custom_jvp(lambda *motion: value(*motion)[0])
    call.defjvp(tangent)
    made: Callable[..., Any] = jax.jit(call)
    return made


class _Call:
    """Machine code as an operation of JAX; what is out of reach or singular is no number."""

    def __init__(self, compiled: CompiledFunction) -> None:
        library = ctypes.CDLL(str(compiled.library))
        self._kept = compiled
        self._address = ctypes.cast(getattr(library, f"{compiled.function.name}_bound"), ctypes.c_void_p).value
        _target()

    def __call__(self, *motion: Any) -> Any:
        jax = _jax()
        function, arrays = self._kept.function, []
        rest = iter(motion)
        for port in function.inputs:
            held = self._kept.nominal.get(port.name, np.zeros(port.size))
            arrays.append(jax.numpy.asarray(held if port.name in HELD else next(rest), dtype=float))
        batch = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
        arrays = [jax.numpy.broadcast_to(array, (*batch, array.shape[-1])) for array in arrays]
        sizes = [*(port.size for port in function.outputs), HEALTH]
        shapes = [jax.ShapeDtypeStruct((*batch, size), np.float64) for size in sizes]
        call = jax.ffi.ffi_call(TARGET, shapes, vmap_method="broadcast_all")
        *outputs, health = call(*arrays, kernel=np.int64(self._address or 0))
        least, pivot, residual = health[..., 0], health[..., 1], health[..., 2]
        is_well = (least >= 0.0) & (pivot > SMALLEST_PIVOT) & (abs(residual) < CONVERGED)
        return [jax.numpy.where(is_well[..., None], values, np.nan) for values in outputs]


def _jax() -> Any:
    """The package, in double precision.

    Raises:
        EngineError: it is not installed.
        InputError: it counts with single precision.
    """
    try:
        import jax
        import jax.ffi
    except ImportError as error:
        raise EngineError.of("JAX", "is not installed", "pip install 'tauloop[jax]'") from error
    if not jax.config.read("jax_enable_x64"):
        remedy = 'jax.config.update("jax_enable_x64", True) before the first array'
        raise InputError.of("JAX", "counts with single precision", remedy)
    return jax


@cache
def _target() -> None:
    """Let XLA know the one handler of all functions."""
    jax = _jax()
    source = Path(__file__).with_name("jax_call.c").read_text(encoding="utf-8")
    library = ctypes.CDLL(str(build(source, require_compiler(), further=(f"-I{jax.ffi.include_dir()}",))))
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(library.tauloop_call), platform="cpu")


def _displacement_map(runner: Runner) -> tuple[np.ndarray, np.ndarray]:
    """Displacements per unit of the numbers of a position, which are linear in it: first (n_v, n, n), constant."""
    size = runner.ports.position.size
    x = ca.SX.sym("x", size)
    matrix = ca.densify(displacements(runner.topology, runner.ports, x))
    function = ca.Function("moved", [x], [matrix])
    constant = np.asarray(function(np.zeros(size)))
    first = [np.asarray(function(row)) - constant for row in np.eye(size)]
    return np.stack(first, axis=-1), constant
