"""Dynamics in machine code with derivatives, for JAX and PyTorch.

JAX and PyTorch differentiate with respect to the numbers p of a position, four for a rotation.
Tauloop differentiates with respect to displacements D(p) p', with D linear in p.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError, Problem
from tauloop.compiler.c.calling.compiled import CompiledFunction
from tauloop.compiler.catalogue import DERIVATIVES, FORWARD_DYNAMICS, INVERSE_DYNAMICS, PRODUCTS
from tauloop.compiler.limits import CONVERGED, SMALLEST_PIVOT
from tauloop.equations.ports import direction_name, directional_name, factor_of, jacobian_name
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model.faces.casadi_face import displacements
from tauloop.model.runner import Runner

FUNCTIONS = {spec.name: spec for spec in (INVERSE_DYNAMICS, FORWARD_DYNAMICS)}
_Array = TypeVar("_Array")


class Differentiable:
    """Machine code of a function, its Jacobians and their products, each built on first use.

    Attributes:
        spec: program of the function.
        inputs: names of the function's inputs.
        output: name of the function's output.
        sizes: number of directions of each input.
        count: number of components of the output.
        first, constant: D(p) = first p + constant (n_v, n).
    """

    def __init__(self, runner: Runner, function: str) -> None:
        """Determine inputs and output.

        Raises:
            InputError: the function is unknown, or only some components of a rotation are
                independent.
        """
        InputError.raise_if_any(unknown_names([function], FUNCTIONS, "{!r} is unknown", "function"))
        self._runner, self.spec = runner, FUNCTIONS[function]
        self.inputs, self.output = self.spec.inputs, self.spec.outputs[0]
        self.sizes = tuple(runner.known_ports[direction_name(name)].size for name in self.inputs)
        self.count = runner.known_ports[factor_of(self.output)].size
        self.first, self.constant = _displacement_map(runner)

    def batch(self, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """Check arrays with shapes (..., n) and return the shape of their samples.

        Machine code does not check sizes.

        Raises:
            InputError: arrays are missing or have wrong sizes, or their numbers of samples differ.
        """
        if len(shapes) != len(self.inputs):
            what = f"is called with {len(shapes)} arrays, needs {len(self.inputs)}"
            raise InputError.of(self.spec.name, what, f"give {', '.join(self.inputs)}")
        ports = [self._runner.known_ports[name] for name in self.inputs]
        problems = [
            Problem(
                name,
                f"has shape {shape}, needs (..., {port.size})",
                f"give for each sample: {', '.join(port.columns)}",
            )
            for name, shape, port in zip(self.inputs, shapes, ports, strict=True)
            if shape[-1:] != (port.size,)
        ]
        InputError.raise_if_any(problems)
        try:
            return np.broadcast_shapes(*(shape[:-1] for shape in shapes))
        except ValueError:
            what = ", ".join(
                f"{name} {shape}" for name, shape in zip(self.inputs, shapes, strict=True)
            )
            remedy = "give all inputs the same number of samples, or a single one"
            raise InputError.of("samples", f"numbers of samples differ: {what}", remedy) from None

    def named(self, motion: Iterable[_Array]) -> dict[str, _Array]:
        """Return the arrays of the inputs by name."""
        return dict(zip(self.inputs, motion, strict=True))

    @cached_property
    def value(self) -> CompiledFunction:
        """Machine code of the output at a motion."""
        return self._runner.compiled(self.spec, (self.output,))

    @cached_property
    def jacobians(self) -> CompiledFunction:
        """Machine code of the output and its Jacobians with respect to each input, column-major."""
        names = (jacobian_name(self.output, name) for name in self.inputs)
        return self._runner.compiled(DERIVATIVES[self.spec.name][0], (self.output, *names))

    @cached_property
    def along(self) -> CompiledFunction:
        """Machine code of J d at a motion and a direction."""
        return self._product(directional_name(self.output))

    @cached_property
    def slopes(self) -> CompiledFunction:
        """Machine code of w^T J for each input, at a motion and factors."""
        return self._product(*(jacobian_name("slope", name) for name in self.inputs))

    @cached_property
    def bends(self) -> CompiledFunction:
        """Machine code of the gradient of w^T J d for each input, at a motion, d and w."""
        return self._product(*(jacobian_name("bend", name) for name in self.inputs))

    def _product(self, *outputs: str) -> CompiledFunction:
        """Return machine code of products with the derivatives."""
        return self._runner.compiled(PRODUCTS[self.spec.name], outputs)

    @cached_property
    def brackets(self) -> np.ndarray:
        """B (n, n, n), the effect of the order of displacements (Lie brackets of rotations).

        The derivative of w^T J along a displacement d is the gradient of w^T J d at constant d,
        plus B d (w^T J), with the Jacobian J of the function and factors w of its outputs.
        """
        ports, topology = self._runner.ports, self._runner.topology
        brackets = np.zeros((len(ports.v),) * 3)
        unit = np.eye(3)
        cross_products = np.cross(unit[:, None], unit[None]).transpose(2, 0, 1)
        for _, v0 in topology.quaternions:
            if v0 in ports.v:
                rows = [ports.v.index(v0 + k) for k in range(3)]
                brackets[np.ix_(rows, rows, rows)] = cross_products
        inverse = np.linalg.inv(ports.to_v)
        return np.asarray(np.einsum("ki,kab,aj,lb->ijl", ports.to_v, brackets, ports.to_v, inverse))


def all_inputs(
    compiled: CompiledFunction, motion: Mapping[str, _Array]
) -> list[_Array | np.ndarray]:
    """Return the arrays of all inputs in their order, with nominal values for the others."""
    return [
        motion[port.name]
        if port.name in motion
        else compiled.nominal.get(port.name, np.zeros(port.size))
        for port in compiled.function.inputs
    ]


def is_valid(health: Any) -> Any:
    """Return whether samples with health (..., 4) are within reach and regular."""
    least, pivot, residual = health[..., 0], health[..., 1], health[..., 2]
    return (least >= 0.0) & (pivot > SMALLEST_PIVOT) & (abs(residual) < CONVERGED)


def computed(compiled: CompiledFunction, motion: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Return the outputs (..., n) of machine code at arrays (..., n)."""
    arrays = all_inputs(compiled, motion)
    batch = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
    count = int(np.prod(batch))
    rows = [
        np.broadcast_to(array, (*batch, array.shape[-1])).reshape(count, -1) for array in arrays
    ]
    names = [port.name for port in compiled.function.inputs]
    outputs, is_sound = compiled.run(dict(zip(names, rows, strict=True)), count)
    health = outputs.pop("health")
    for values in () if is_sound else outputs.values():
        values[~is_valid(health)] = np.nan
    return [values.reshape(*batch, values.shape[-1]) for values in outputs.values()]


def _displacement_map(runner: Runner) -> tuple[np.ndarray, np.ndarray]:
    """Return D(p) = first p + constant, displacements per unit of the numbers of a position.

    Returns:
        first (n_v, n, n) and constant (n_v, n).
    """
    size = runner.ports.position.size
    x = ca.SX.sym("x", size)
    matrix = ca.densify(displacements(runner.topology, runner.ports, x))
    function = ca.Function("displacements", [x], [matrix])
    constant = np.asarray(function(np.zeros(size)))
    first = [np.asarray(function(row)) - constant for row in np.eye(size)]
    return np.stack(first, axis=-1), constant
