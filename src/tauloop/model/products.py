"""Products of the derivatives of dynamics with directions and factors, as named arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.catalogue import PRODUCTS
from tauloop.compiler.expressions import ProgramSpec
from tauloop.compiler.state import SolveDiagnostics
from tauloop.equations.ports import direction_name, directional_name, factor_of, jacobian_name
from tauloop.mechanism.suggestions import unknown_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Products(ReprMixin):
    """A function f of a motion x, and products of its derivatives with factors w and a direction d.

    Displacements of a position are in the components of velocities: three for a rotation, in the
    base frame.

    Attributes:
        function: name of the function.
        value: f (N, n_out), or (n_out,) for a single sample.
        along: J d (N, n_out), with the Jacobian J of f.
        slopes: w^T J for each input (N, n), by name.
        bends: gradient of w^T J d with respect to each input (N, n) at constant d, by name: the
            second derivatives times w and d.
        health: diagnostics of every sample.

    Examples:
        >>> import tauloop as tl
        >>> platform = tl.Model(tl.load("delta")).platform
        >>> motion = [0.05, 0.0, -0.5], [0.1, 0.2, 0.3], [1.0, 2.0, 3.0]
        >>> w, d = [1.0, 0.0, 0.0], {"position": [0.0, 0.0, 1.0]}
        >>> result = platform.products("inverse_dynamics", *motion, factors=w, directions=d)
        >>> result.bends["position"].shape
        (3,)
    """

    function: str
    value: np.ndarray
    along: np.ndarray
    slopes: Mapping[str, np.ndarray]
    bends: Mapping[str, np.ndarray]
    health: SolveDiagnostics

    def single(self) -> Products:
        """Return the first sample without the axis of samples."""
        return replace(
            self,
            value=self.value[0],
            along=self.along[0],
            slopes={name: array[0] for name, array in self.slopes.items()},
            bends={name: array[0] for name, array in self.bends.items()},
        )


@contextmanager
def multiplied(
    function: str, motion: tuple[object, ...], factors: object, directions: Mapping[str, object]
) -> Iterator[tuple[ProgramSpec, dict[str, object]]]:
    """Return the program of a function's products, and its arguments by name.

    Unnamed directions are zero.

    Raises:
        InputError: the function or an input does not exist, or an argument is wrong.
    """
    InputError.raise_if_any(unknown_names([function], PRODUCTS, "{!r} is unknown", "function"))
    spec = PRODUCTS[function]
    names = spec.inputs[: len(motion)]
    if not hasattr(directions, "items"):
        remedy = f"give a dict of directions by input, such as {{{names[0]!r}: [...]}}"
        raise InputError.of("directions", f"is of type {type(directions).__name__}", remedy)
    InputError.raise_if_any(
        unknown_names(directions, names, f"is not an input of {function}", "directions[{!r}]")
    )
    arguments = dict(zip(names, motion, strict=True)) | {
        direction_name(name): directions[name] for name in directions
    }
    labels = {direction_name(name): f"directions[{name!r}]" for name in directions} | {
        factor_of(spec.outputs[0]): "factors"
    }
    try:
        yield spec, arguments | {factor_of(spec.outputs[0]): factors}
    except InputError as error:
        raise InputError(
            replace(item, where=labels.get(item.where, item.where)) for item in error.problems
        ) from None


def arranged_products(
    spec: ProgramSpec, function: str, outputs: Mapping[str, np.ndarray], health: SolveDiagnostics
) -> Products:
    """Return outputs (N, n) of a program of products by name and shape."""
    output = spec.outputs[0]
    names = [name for name in spec.inputs if direction_name(name) in spec.inputs]
    return Products(
        function=function,
        value=outputs[output],
        along=outputs[directional_name(output)],
        slopes={name: outputs[jacobian_name("slope", name)] for name in names},
        bends={name: outputs[jacobian_name("bend", name)] for name in names},
        health=health,
    )
