"""Functions of a motion for PyTorch: compiled machine code behind autograd and `torch.func`, first and second order.

One operation has four kinds: the value f(x), J d along a direction, w^T J of factors, and the
gradient of w^T J d. Derivatives of the first three are among them, so that `backward`, forward mode
and both of each other need no more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tauloop.common.errors import EngineError, InputError
from tauloop.equations.ports import factor_of, step_of
from tauloop.model.faces.differentiable import Differentiable, computed
from tauloop.model.runner import Runner

#: Numbers of an input's batch come first: so many arrays has a motion.
MOTION = 3


def torch_function(runner: Runner, function: str) -> Callable[..., Any]:
    """A function of three tensors (..., n) for PyTorch; see `Motion.as_torch`."""
    code, torch = Differentiable(runner, function), _torch()
    operation = _operation()

    def call(*motion: Any) -> Any:
        tensors = [torch.as_tensor(part) for part in motion]
        batch = code.batch([tuple(tensor.shape) for tensor in tensors])
        for name, tensor in zip(code.inputs, tensors, strict=True):
            if not tensor.is_floating_point():
                raise InputError.of(name, f"is a tensor of {tensor.dtype}", "give floats")
        whole = [tensor.to(torch.float64).expand(*batch, tensor.shape[-1]) for tensor in tensors]
        precision = torch.promote_types(
            torch.promote_types(tensors[0].dtype, tensors[1].dtype), tensors[2].dtype
        )
        return operation.apply(code, "value", *whole).to(precision)

    call.__name__ = f"{function}_of_{runner.mechanism.name}"
    made: Callable[..., Any] = torch.compiler.disable(call)
    return made


class _Operation:
    """What `torch.autograd.Function` asks for; tensors are a motion, and by kind a direction and factors behind it."""

    @staticmethod
    def forward(code: Differentiable, kind: str, *tensors: Any) -> Any:
        """Numbers of a kind, from machine code on the processor."""
        torch, (names, several) = _torch(), _kinds(code)[kind]
        arrays = [tensor.detach().cpu().numpy() for tensor in tensors]
        results = computed(getattr(code, kind), dict(zip(names, arrays, strict=True)))
        made = tuple(torch.from_numpy(array).to(tensors[0].device) for array in results)
        return made if several else made[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep the inputs."""
        ctx.code, ctx.kind = inputs[:2]
        ctx.save_for_backward(*inputs[2:])
        ctx.save_for_forward(*inputs[2:])

    @staticmethod
    def backward(ctx: Any, *factors: Any) -> tuple[Any, ...]:
        """Factors times the Jacobian."""
        code, tensors = ctx.code, ctx.saved_tensors
        motion, rest = tensors[:MOTION], tensors[MOTION:]
        if ctx.kind == "value":
            return (
                None,
                None,
                *_numbered(code, motion[0], _apply(code, "slopes", *motion, *factors)),
            )
        if ctx.kind == "along":
            bends = _apply(code, "bends", *motion, *rest, *factors)
            return (
                None,
                None,
                *_numbered(code, motion[0], bends),
                *_apply(code, "slopes", *motion, *factors),
            )
        if ctx.kind == "slopes":
            bends = _apply(code, "bends", *motion, *factors, *rest)
            return (
                None,
                None,
                *_numbered(code, motion[0], bends),
                _apply(code, "along", *motion, *factors),
            )
        raise _no_third()

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """The Jacobian times a direction."""
        torch, code, tensors = _torch(), ctx.code, ctx.saved_tensors
        moved = [
            torch.zeros_like(tensor) if tangent is None else tangent
            for tensor, tangent in zip(tensors, tangents[2:], strict=True)
        ]
        motion, rest = tensors[:MOTION], tensors[MOTION:]
        turned = torch.einsum("...ij,...j->...i", _displacements(code, motion[0]), moved[0])
        steps = turned, *moved[1:MOTION]
        if ctx.kind == "value":
            return _apply(code, "along", *motion, *steps)
        if ctx.kind == "slopes":
            (factors,) = rest
            first, *others = _apply(code, "bends", *motion, *steps, factors)
            if code.brackets.any():
                slopes = _apply(code, "slopes", *motion, factors)[0]
                first = first + torch.einsum(
                    "ijl,...j,...l->...i", _constant(code.brackets, first), turned, slopes
                )
            weighed = _apply(code, "slopes", *motion, moved[-1])
            return tuple(a + b for a, b in zip((first, *others), weighed, strict=True))
        if ctx.kind == "along":
            what = "forward mode over forward mode comes out wrong through functions of one's own"
            raise InputError.of("PyTorch", what, "take torch.func.hessian, or jacrev of jacfwd")
        raise _no_third()

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], code: Differentiable, kind: str, *tensors: Any
    ) -> Any:
        """One more axis of samples in front."""
        whole = [
            tensor.expand(info.batch_size, *tensor.shape)
            if place is None
            else tensor.movedim(place, 0)
            for tensor, place in zip(tensors, in_dims[2:], strict=True)
        ]
        outputs = _apply(code, kind, *whole)
        return outputs, (0,) * len(outputs) if isinstance(outputs, tuple) else 0


def _kinds(code: Differentiable) -> dict[str, tuple[tuple[str, ...], bool]]:
    """Names of the inputs of each kind, and whether it has an output for each input."""
    steps, factors = tuple(map(step_of, code.inputs)), (factor_of(code.output),)
    return {
        "value": (code.inputs, False),
        "along": ((*code.inputs, *steps), False),
        "slopes": ((*code.inputs, *factors), True),
        "bends": ((*code.inputs, *steps, *factors), True),
    }


def _apply(code: Differentiable, kind: str, *tensors: Any) -> Any:
    return _operation().apply(code, kind, *tensors)


def _constant(numbers: np.ndarray, beside: Any) -> Any:
    """Numbers as a tensor where another one is."""
    return _torch().as_tensor(numbers, dtype=beside.dtype, device=beside.device)


def _displacements(code: Differentiable, position: Any) -> Any:
    """D(p) (..., n_v, n)."""
    first, constant = _constant(code.first, position), _constant(code.constant, position)
    return _torch().einsum("ijk,...k->...ij", first, position) + constant


def _numbered(code: Differentiable, position: Any, slopes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Slopes by displacements as those by the numbers of a position."""
    return _torch().einsum("...ij,...i->...j", _displacements(code, position), slopes[0]), *slopes[
        1:
    ]


def _no_third() -> InputError:
    what = "there are no derivatives of third order"
    return InputError.of("PyTorch", what, "take differences of those of second order")


@cache
def _operation() -> Any:
    """The operation, which is only made where PyTorch is."""
    return type("Operation", (_Operation, _torch().autograd.Function), {})


def _torch() -> Any:
    """The package.

    Raises:
        EngineError: it is not installed.
    """
    try:
        import torch
    except ImportError as error:
        remedy = "pip install 'tauloop[torch]'; docs/derivatives.md says how it stays small"
        raise EngineError.of("PyTorch", "is not installed", remedy) from error
    return torch
