"""Functions of a motion for JAX: compiled machine code behind `jit`, `vmap`, `grad` and `jvp`, through XLA's FFI.

Tangents are products with the Jacobians of `tauloop.compiler.derivatives.derivatives`, and those of
Jacobians with the second derivatives of `tauloop.compiler.derivatives.products`, in machine code
too; they are linear in what JAX differentiates by, so that it transposes them itself.
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
from tauloop.compiler.c.calling.compiler import build
from tauloop.compiler.c.calling.library import require_compiler
from tauloop.compiler.c.calling.signature import HEALTH
from tauloop.equations.ports import factor_of, step_of
from tauloop.model.faces.differentiable import Differentiable, held, is_well
from tauloop.model.runner import Runner

#: Name of the one target of XLA.
TARGET = "tauloop_call"


def jax_function(runner: Runner, function: str) -> Callable[..., Any]:
    """A function of three arrays (..., n) for JAX; see `Motion.as_jax`."""
    code = Differentiable(runner, function)
    jax = _jax()
    _target()
    jnp = jax.numpy

    def direction(primals: Any, tangents: Any) -> Any:
        """Of all inputs (..., n), displacements first."""
        matrix = jnp.einsum("ijk,...k->...ij", code.first, primals[0]) + code.constant
        return jnp.concatenate(
            [jnp.einsum("...ij,...j->...i", matrix, tangents[0]), *tangents[1:]], axis=-1
        )

    def slopes(*motion: Any) -> Any:
        """The output, and its Jacobian (..., n_out, n) by all inputs."""
        result, *columns = _called(code.jacobians, code.named(motion))
        return result, jnp.swapaxes(
            jnp.concatenate(columns, axis=-1).reshape(*result.shape[:-1], -1, code.count), -1, -2
        )

    jacobian = jax.custom_jvp(slopes)

    def bent(primals: Any, tangents: Any) -> Any:
        """The same moved, by products for each row and column of the Jacobian."""
        result, whole = jacobian(*primals)
        steps = np.split(np.eye(whole.shape[-1]), np.cumsum(code.sizes)[:-1], axis=1)
        units = {step_of(name): step for name, step in zip(code.inputs, steps, strict=True)}
        units[factor_of(code.output)] = np.eye(code.count)[:, None]
        motion = code.named([part[..., None, None, :] for part in primals])
        second = jnp.concatenate(_called(code.bends, motion | units), axis=-1)
        step = direction(primals, tangents)
        moved = (
            jnp.einsum("...ik,...k->...i", whole, step),
            jnp.einsum("...ikl,...l->...ik", second, step),
        )
        return (result, whole), moved

    jacobian.defjvp(bent)

    def tangent(primals: Any, tangents: Any) -> Any:
        result, whole = jacobian(*primals)
        return result, jnp.einsum("...ik,...k->...i", whole, direction(primals, tangents))

    call = jax.custom_jvp(lambda *motion: _called(code.value, code.named(motion))[0])
    call.defjvp(tangent)

    def spread(*motion: Any) -> Any:
        """The function of arrays whose batches need not be alike."""
        arrays = [jnp.asarray(part, dtype=float) for part in motion]
        batch = code.batch([array.shape for array in arrays])
        return call(*(jnp.broadcast_to(array, (*batch, array.shape[-1])) for array in arrays))

    made: Callable[..., Any] = jax.jit(spread)
    return made


def _called(compiled: CompiledFunction, motion: dict[str, Any]) -> list[Any]:
    """Outputs (..., n) of machine code as an operation of JAX; what is out of reach or singular is no number."""
    jax = _jax()
    arrays = [jax.numpy.asarray(array, dtype=float) for array in held(compiled, motion)]
    batch = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
    arrays = [jax.numpy.broadcast_to(array, (*batch, array.shape[-1])) for array in arrays]
    sizes = [*(port.size for port in compiled.function.outputs), HEALTH]
    shapes = [jax.ShapeDtypeStruct((*batch, size), np.float64) for size in sizes]
    call = jax.ffi.ffi_call(TARGET, shapes, vmap_method="broadcast_all")
    *outputs, health = call(*arrays, kernel=np.int64(_address(compiled)))
    return [jax.numpy.where(is_well(health)[..., None], values, np.nan) for values in outputs]


def _address(compiled: CompiledFunction) -> int:
    """Return the address of the code of one sample; the function keeps the code alive."""
    return compiled.address("bound")


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
    library = ctypes.CDLL(
        str(build(source, require_compiler(), further=(f"-I{jax.ffi.include_dir()}",)))
    )
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(library.tauloop_call), platform="cpu")
