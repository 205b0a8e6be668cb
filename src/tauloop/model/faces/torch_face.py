"""Functions of a motion for PyTorch: machine code for autograd and `torch.func` up to second order.

An operation has four kinds: the value f(x), the product J d with a direction d, the product w^T J
with factors w, and the gradient of w^T J d. The derivatives of the first three kinds are
combinations of the four kinds. This covers reverse mode, forward mode and their combinations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tauloop.common.errors import EngineError, InputError
from tauloop.equations.ports import direction_name, factor_of
from tauloop.model.faces.differentiable import Differentiable, computed
from tauloop.model.runner import Runner

#: Number of tensors of a motion, which precede directions and factors.
MOTION_TENSORS = 3


def torch_function(runner: Runner, function: str) -> Callable[..., Any]:
    """Return a function of three tensors (..., n) for PyTorch; see `Motion.as_torch`."""
    code, torch = Differentiable(runner, function), _torch()
    operation = _operation()

    def call(*motion: Any) -> Any:
        tensors = [torch.as_tensor(tensor) for tensor in motion]
        batch = code.batch([tuple(tensor.shape) for tensor in tensors])
        for name, tensor in zip(code.inputs, tensors, strict=True):
            if not tensor.is_floating_point():
                raise InputError.of(name, f"is a tensor of {tensor.dtype}", "give floats")
        doubles = [tensor.to(torch.float64).expand(*batch, tensor.shape[-1]) for tensor in tensors]
        precision = torch.promote_types(
            torch.promote_types(tensors[0].dtype, tensors[1].dtype), tensors[2].dtype
        )
        return operation.apply(code, "value", *doubles).to(precision)

    call.__name__ = f"{function}_of_{runner.mechanism.name}"
    uncompiled: Callable[..., Any] = torch.compiler.disable(call)
    return uncompiled


class _Operation:
    """The methods of a `torch.autograd.Function`.

    Tensors are a motion, followed by a direction, factors or both, depending on the kind.
    """

    @staticmethod
    def forward(code: Differentiable, kind: str, *tensors: Any) -> Any:
        """Return the results of a kind, computed by machine code on the CPU."""
        torch, (names, is_tuple) = _torch(), _kinds(code)[kind]
        arrays = [tensor.detach().cpu().numpy() for tensor in tensors]
        results = computed(getattr(code, kind), dict(zip(names, arrays, strict=True)))
        outputs = tuple(torch.from_numpy(array).to(tensors[0].device) for array in results)
        return outputs if is_tuple else outputs[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Store the inputs."""
        ctx.code, ctx.kind = inputs[:2]
        ctx.save_for_backward(*inputs[2:])
        ctx.save_for_forward(*inputs[2:])

    @staticmethod
    def backward(ctx: Any, *factors: Any) -> tuple[Any, ...]:
        """Return factors times the Jacobian; None for the code and the kind."""
        code, tensors = ctx.code, ctx.saved_tensors
        motion, others = tensors[:MOTION_TENSORS], tensors[MOTION_TENSORS:]
        if ctx.kind == "value":
            slopes = _apply(code, "slopes", *motion, *factors)
            return (None, None, *_by_numbers(code, motion[0], slopes))
        if ctx.kind == "along":
            bends = _apply(code, "bends", *motion, *others, *factors)
            slopes = _apply(code, "slopes", *motion, *factors)
            return (None, None, *_by_numbers(code, motion[0], bends), *slopes)
        if ctx.kind == "slopes":
            bends = _apply(code, "bends", *motion, *factors, *others)
            along = _apply(code, "along", *motion, *factors)
            return (None, None, *_by_numbers(code, motion[0], bends), along)
        raise _no_third_order()

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Return the Jacobian times a direction."""
        torch, code, tensors = _torch(), ctx.code, ctx.saved_tensors
        directions = [
            torch.zeros_like(tensor) if tangent is None else tangent
            for tensor, tangent in zip(tensors, tangents[2:], strict=True)
        ]
        motion, others = tensors[:MOTION_TENSORS], tensors[MOTION_TENSORS:]
        D = _displacements(code, motion[0])
        displacement = torch.einsum("...ij,...j->...i", D, directions[0])
        steps = displacement, *directions[1:MOTION_TENSORS]
        if ctx.kind == "value":
            return _apply(code, "along", *motion, *steps)
        if ctx.kind == "slopes":
            (factors,) = others
            first, *bends = _apply(code, "bends", *motion, *steps, factors)
            if code.brackets.any():
                slopes = _apply(code, "slopes", *motion, factors)[0]
                brackets = _constant(code.brackets, first)
                first = first + torch.einsum("ijl,...j,...l->...i", brackets, displacement, slopes)
            changes = _apply(code, "slopes", *motion, directions[-1])
            return tuple(a + b for a, b in zip((first, *bends), changes, strict=True))
        if ctx.kind == "along":
            what = (
                "nested forward mode (jvp of jvp) gives wrong results for PyTorch custom functions"
            )
            raise InputError.of("PyTorch", what, "use torch.func.hessian, or jacrev of jacfwd")
        raise _no_third_order()

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], code: Differentiable, kind: str, *tensors: Any
    ) -> Any:
        """Return the results with a further axis of samples in front."""
        batched = [
            tensor.expand(info.batch_size, *tensor.shape)
            if axis is None
            else tensor.movedim(axis, 0)
            for tensor, axis in zip(tensors, in_dims[2:], strict=True)
        ]
        outputs = _apply(code, kind, *batched)
        return outputs, (0,) * len(outputs) if isinstance(outputs, tuple) else 0


def _kinds(code: Differentiable) -> dict[str, tuple[tuple[str, ...], bool]]:
    """Return the names of the inputs of each kind, and whether it has an output for each input."""
    steps, factors = tuple(map(direction_name, code.inputs)), (factor_of(code.output),)
    return {
        "value": (code.inputs, False),
        "along": ((*code.inputs, *steps), False),
        "slopes": ((*code.inputs, *factors), True),
        "bends": ((*code.inputs, *steps, *factors), True),
    }


def _apply(code: Differentiable, kind: str, *tensors: Any) -> Any:
    """Return the results of a kind of operation."""
    return _operation().apply(code, kind, *tensors)


def _constant(numbers: np.ndarray, like: Any) -> Any:
    """Return numbers as a tensor with the type and device of another one."""
    return _torch().as_tensor(numbers, dtype=like.dtype, device=like.device)


def _displacements(code: Differentiable, position: Any) -> Any:
    """Return D(p) (..., n_v, n), displacements per unit of the numbers of a position."""
    first, constant = _constant(code.first, position), _constant(code.constant, position)
    return _torch().einsum("ijk,...k->...ij", first, position) + constant


def _by_numbers(code: Differentiable, position: Any, slopes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return derivatives with respect to the numbers of a position, from those by displacements."""
    D = _displacements(code, position)
    return _torch().einsum("...ij,...i->...j", D, slopes[0]), *slopes[1:]


def _no_third_order() -> InputError:
    """Return the error of third-order derivatives."""
    what = "derivatives of third order are not available"
    return InputError.of("PyTorch", what, "use differences of second-order derivatives")


@cache
def _operation() -> Any:
    """Return the operation, created when PyTorch is available."""
    return type("Operation", (_Operation, _torch().autograd.Function), {})


def _torch() -> Any:
    """Return the package.

    Raises:
        EngineError: PyTorch is not installed.
    """
    try:
        import torch
    except ImportError as error:
        remedy = "pip install 'tauloop[torch]'; docs/derivatives.md describes a small installation"
        raise EngineError.of("PyTorch", "is not installed", remedy) from error
    return torch
