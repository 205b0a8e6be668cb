"""Functions of a motion for JAX: machine code for `jit`, `vmap`, `grad` and `jvp`, by XLA's FFI.

Tangents are products with the Jacobians of `tauloop.compiler.derivatives.derivatives`. Tangents of
Jacobians are products with the second derivatives of `tauloop.compiler.derivatives.products`. Both
are machine code and linear in the tangents of the inputs, so that JAX can transpose them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import EngineError, InputError
from tauloop.compiler.c.calling.compiled import CompiledFunction
from tauloop.compiler.c.calling.compiler import build_without_cache
from tauloop.compiler.c.calling.library import require_compiler
from tauloop.compiler.c.calling.signature import HEALTH
from tauloop.equations.ports import direction_name, factor_of
from tauloop.model.faces.differentiable import Differentiable, all_inputs, is_valid
from tauloop.model.runner import Runner

#: Name of the XLA target that calls all functions.
XLA_TARGET = "tauloop_call"


def jax_function(runner: Runner, function: str) -> Callable[..., Any]:
    """Return a function of three arrays (..., n) for JAX; see `Motion.as_jax`."""
    code = Differentiable(runner, function)
    jax = _jax()
    _register_target()
    jnp = jax.numpy

    def direction(primals: Any, tangents: Any) -> Any:
        """Return the direction of all inputs (..., n), with displacements of the position."""
        D = jnp.einsum("ijk,...k->...ij", code.first, primals[0]) + code.constant
        displacement = jnp.einsum("...ij,...j->...i", D, tangents[0])
        return jnp.concatenate([displacement, *tangents[1:]], axis=-1)

    def value_and_jacobian(*motion: Any) -> Any:
        """Return the output and its Jacobian (..., n_out, n) with respect to all inputs."""
        result, *columns = _call(code.jacobians, code.named(motion))
        columns_first = jnp.concatenate(columns, axis=-1)
        columns_first = columns_first.reshape(*result.shape[:-1], -1, code.count)
        return result, jnp.swapaxes(columns_first, -1, -2)

    jacobian = jax.custom_jvp(value_and_jacobian)

    def jacobian_tangent(primals: Any, tangents: Any) -> Any:
        """Return the output and its Jacobian, with their tangents from second derivatives."""
        result, J = jacobian(*primals)
        steps = np.split(np.eye(J.shape[-1]), np.cumsum(code.sizes)[:-1], axis=1)
        units = {direction_name(name): step for name, step in zip(code.inputs, steps, strict=True)}
        units[factor_of(code.output)] = np.eye(code.count)[:, None]
        motion = code.named([array[..., None, None, :] for array in primals])
        second = jnp.concatenate(_call(code.bends, motion | units), axis=-1)
        step = direction(primals, tangents)
        result_tangent = jnp.einsum("...ik,...k->...i", J, step)
        return (result, J), (result_tangent, jnp.einsum("...ikl,...l->...ik", second, step))

    jacobian.defjvp(jacobian_tangent)

    def tangent(primals: Any, tangents: Any) -> Any:
        """Return the output with its tangent."""
        result, J = jacobian(*primals)
        return result, jnp.einsum("...ik,...k->...i", J, direction(primals, tangents))

    value = jax.custom_jvp(lambda *motion: _call(code.value, code.named(motion))[0])
    value.defjvp(tangent)

    def broadcasting(*motion: Any) -> Any:
        """Return the output at arrays with different batches."""
        arrays = [jnp.asarray(array, dtype=float) for array in motion]
        batch = code.batch([array.shape for array in arrays])
        return value(*(jnp.broadcast_to(array, (*batch, array.shape[-1])) for array in arrays))

    compiled: Callable[..., Any] = jax.jit(broadcasting)
    return compiled


def _call(compiled: CompiledFunction, motion: dict[str, Any]) -> list[Any]:
    """Return the outputs (..., n) of machine code as an operation of JAX.

    Outputs are NaN at samples that are out of reach or singular.
    """
    jax = _jax()
    arrays = [jax.numpy.asarray(array, dtype=float) for array in all_inputs(compiled, motion)]
    batch = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
    arrays = [jax.numpy.broadcast_to(array, (*batch, array.shape[-1])) for array in arrays]
    sizes = [*(port.size for port in compiled.function.outputs), HEALTH]
    shapes = [jax.ShapeDtypeStruct((*batch, size), np.float64) for size in sizes]
    call = jax.ffi.ffi_call(XLA_TARGET, shapes, vmap_method="broadcast_all")
    *outputs, health = call(*arrays, kernel=np.int64(_address(compiled)))
    return [jax.numpy.where(is_valid(health)[..., None], values, np.nan) for values in outputs]


def _address(compiled: CompiledFunction) -> int:
    """Return the address of the code of one sample; the function keeps the code alive."""
    return compiled.address("bound")


def _jax() -> Any:
    """Return the package, if it uses double precision.

    Raises:
        EngineError: JAX is not installed.
        InputError: JAX uses single precision.
    """
    try:
        import jax
        import jax.ffi
    except ImportError as error:
        raise EngineError.of("JAX", "is not installed", "pip install 'tauloop[jax]'") from error
    if not jax.config.read("jax_enable_x64"):
        remedy = 'call jax.config.update("jax_enable_x64", True) before creating the first array'
        raise InputError.of("JAX", "uses single precision", remedy)
    return jax


@cache
def _register_target() -> None:
    """Register the handler of all functions with XLA."""
    jax = _jax()
    source = Path(__file__).with_name("jax_call.c").read_text(encoding="utf-8")
    options = (f"-I{jax.ffi.include_dir()}",)
    library = ctypes.CDLL(str(build_without_cache(source, require_compiler(), further=options)))
    handler = jax.ffi.pycapsule(library.tauloop_call)
    jax.ffi.register_ffi_target(XLA_TARGET, handler, platform="cpu")
