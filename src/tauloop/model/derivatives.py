"""Values and Jacobians of functions of a motion, as named arrays."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import DEFERRED, dataclass, deferred
from tauloop.common.shown import ReprMixin
from tauloop.compiler.catalogue import DERIVATIVES
from tauloop.compiler.expressions import ProgramSpec
from tauloop.compiler.state import SolveDiagnostics
from tauloop.equations.ports import jacobian_name, text_names
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model.tool import LOAD_PORTS

if TYPE_CHECKING:
    from tauloop.model.runner import Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivatives(ReprMixin):
    """Values of a function of a motion, and its Jacobians.

    Derivatives with respect to a position use the components of its velocity (tangent space): three
    for a rotation, in the base frame.

    Attributes:
        function: name of the function.
        rows: names of the rows of each output.
        columns: names of the columns of each input.
        values: outputs by name (N, n), or (n,) for a single sample.
        jacobians: Jacobians (N, n, m) or (n, m) by output and input.
        condition: dimensionless condition numbers (N,) of the poses. Near singularities,
            derivatives grow with the square or cube of the condition number. Condition numbers are
            computed when first read, because they take many times longer than the rest.
        health: diagnostics of every sample.

    Examples:
        >>> import tauloop as tl
        >>> platform = tl.Model(tl.load("delta")).platform
        >>> motion = [0.05, 0.0, -0.5], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
        >>> result = platform.derivatives("inverse_dynamics", *motion)
        >>> result.jacobian("force", "position").shape
        (3, 3)
    """

    function: str
    rows: Mapping[str, tuple[str, ...]]
    columns: Mapping[str, tuple[str, ...]]
    values: Mapping[str, np.ndarray]
    jacobians: Mapping[tuple[str, str], np.ndarray]
    condition: np.ndarray = field(metadata=DEFERRED)
    health: SolveDiagnostics

    def jacobian(self, output: str, argument: str) -> np.ndarray:
        """Return the Jacobian of an output by an input.

        Raises:
            InputError: no such output or input exists.
        """
        problems = unknown_names([output], self.rows, f"is not an output of {self.function}")
        problems += unknown_names([argument], self.columns, f"is not an input of {self.function}")
        InputError.raise_if_any(problems)
        zero = np.zeros(
            (*self.values[output].shape[:-1], len(self.rows[output]), len(self.columns[argument]))
        )
        return self.jacobians.get((output, argument), zero)

    def single(self) -> Derivatives:
        """Return the first sample without the axis of samples."""
        return replace(
            self,
            values={name: array[0] for name, array in self.values.items()},
            jacobians={key: array[0] for key, array in self.jacobians.items()},
            condition=deferred(lambda: self.condition),
        )


#: Value of outputs that a program does not have.
EMPTY = np.zeros(0)


def differentiated(
    function: str, wrt: str | Iterable[str] | None, loaded: bool, free: Collection[str] = ()
) -> tuple[ProgramSpec, tuple[str, ...]]:
    """Return the program of a function's derivatives, and the inputs of the Jacobians.

    Args:
        function: "kinematics", "inverse_dynamics" or "forward_dynamics".
        wrt: names of inputs; the default is all inputs of the program.
        loaded: whether there are loads at the tool.
        free: names of the free parameters.

    Raises:
        InputError: the function or input does not exist.
    """
    InputError.raise_if_any(unknown_names([function], DERIVATIVES, "{!r} is unknown", "function"))
    specs, names = DERIVATIVES[function], () if wrt is None else text_names(wrt, "wrt")
    known = (*specs[-1].inputs, "theta")
    InputError.raise_if_any(
        unknown_names(names, known, f"{{!r}} is not an input of {function}", "wrt")
    )
    if "theta" in names and not free:
        raise InputError.of(
            "theta",
            "no parameter of this model is free",
            'name some: Model(machine, free=["length"])',
        )
    spec = specs[-1 if loaded or set(names) & set(LOAD_PORTS) else 0]
    return spec, names or (*spec.inputs, "theta")


def arranged(
    runner: Runner,
    function: str,
    names: tuple[str, ...],
    outputs: Mapping[str, np.ndarray],
    health: SolveDiagnostics,
) -> Derivatives:
    """Return outputs (N, n) of a program of derivatives by name and shape."""
    ports, topology, assembly = runner.ports, runner.topology, runner.assembly
    closures = tuple(assembly.loops.names[i] for i in assembly.rows)
    actuators = tuple(actuator.name for actuator in runner.mechanism.actuators)
    known = {
        **dict.fromkeys(("q", "v", "a"), topology.velocity_names),
        **dict.fromkeys(ports.motion, ports.velocity.columns),
        "force": actuators,
        "closure_force": closures,
        "theta": runner.catalogue.free,
        **{name: port.columns for name, port in LOAD_PORTS.items()},
    }
    values = [name for name in known if name in outputs]
    jacobians: dict[tuple[str, str], np.ndarray] = {}
    rows: list[str] = []
    for output, name in itertools.product(values, names):
        key = jacobian_name(output, name)
        if key in outputs and output not in rows:
            rows.append(output)
        if outputs.get(key, EMPTY).size:
            by_columns = outputs[key].reshape(-1, len(known[name]), len(known[output]))
            jacobians[output, name] = by_columns.swapaxes(-1, -2)
    # A copy, because the caller may change the array before the condition is read.
    q = outputs["q"].copy()
    return Derivatives(
        function=function,
        rows={name: known[name] for name in rows},
        columns={name: known[name] for name in names if len(known[name])},
        values={name: outputs[name] for name in values},
        jacobians=jacobians,
        condition=deferred(lambda: runner.condition(q)),
        health=health,
    )
