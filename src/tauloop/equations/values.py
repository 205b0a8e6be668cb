"""Values of expressions over theta, of the dynamic parameters pi, and of functions on batches.

Expressions accept numbers or CasADi symbols. Inverse dynamics is linear in pi (inertia, rotor
inertia, friction and springs): Y(q, v, a) pi. Every entry of pi is an expression over theta, so
shared parameters of equal legs remain shared. CasADi functions are evaluated on arrays (N, n)
without copies.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import casadi as ca
import numpy as np

from tauloop.common.errors import DescriptionError, Problem
from tauloop.common.records import dataclass
from tauloop.equations.topology import Topology
from tauloop.mechanism.expression import (
    FLOAT_OPERATIONS,
    FUNCTIONS,
    Constant,
    Expression,
    Leaf,
    Measured,
    evaluate,
    exact_cosine,
    exact_sine,
    multiply,
)
from tauloop.mechanism.model import (
    Friction,
    Inertia,
    Mechanism,
    Placement,
    SlenderPart,
    Turn,
    Vector,
)

Result = TypeVar("Result")


def sine(angle: Any) -> Any:
    """Return the sine of a number (exact at multiples of a right angle) or of a symbol."""
    return exact_sine(float(angle)) if isinstance(angle, int | float) else ca.sin(angle)


def cosine(angle: Any) -> Any:
    """Return the cosine of a number (exact at multiples of a right angle) or of a symbol."""
    return exact_cosine(float(angle)) if isinstance(angle, int | float) else ca.cos(angle)


def _either(name: str) -> Callable[..., Any]:
    symbolic = {"abs": ca.fabs}.get(name) or getattr(ca, name)
    numeric = {"abs": abs}.get(name) or getattr(math, name)

    def function(*arguments: Any) -> Any:
        if all(isinstance(a, int | float) for a in arguments):
            return numeric(*arguments)
        return symbolic(*arguments)

    return function


_OPERATIONS: dict[str, Callable[..., Any]] = {
    **FLOAT_OPERATIONS,
    **{name: _either(name) for name in FUNCTIONS},
    "sin": sine,
    "cos": cosine,
}


class Values:
    """Independent parameters, numbers or symbols, and the values of expressions over them."""

    def __init__(self, theta: Mapping[str, Any]) -> None:
        """Store theta: independent parameter values by name, SI."""
        self._theta = theta
        self._placed: dict[int, tuple[Placement, ca.SX, ca.SX]] = {}
        self._shared: dict[Hashable, Any] = {}

    def shared(self, key: Hashable, make: Callable[[], Result]) -> Result:
        """Return an object that depends on these values only; it is made on the first call.

        All programs of a machine have the same values, so they share the object.

        Args:
            key: identifies the object.
            make: function that makes the object.
        """
        if key not in self._shared:
            self._shared[key] = make()
        result: Result = self._shared[key]
        return result

    def scalar(self, expression: Expression) -> Any:
        """Return the value of an expression, a float if it contains no symbol."""
        if isinstance(expression, Constant):
            return expression.value
        if isinstance(expression, Leaf):
            return self._theta[expression.name]
        return evaluate(expression, self._theta, _OPERATIONS)

    def measured(self, expression: Expression, measure: Callable[[Measured], ca.SX]) -> Any:
        """Return the value of an output's expression.

        Args:
            expression: output's expression.
            measure: function that returns the value of a measured number.
        """
        return evaluate(expression, self._theta, {**_OPERATIONS, "measure": measure})

    def vector(self, vector: Vector) -> ca.SX:
        """Return the value (3,) of a vector."""
        components = [self.scalar(component) for component in vector]
        if any(isinstance(component, ca.SX) for component in components):
            return ca.SX(ca.vertcat(*components))
        return ca.SX([float(component) for component in components])

    def rotation(self, turns: tuple[Turn, ...]) -> ca.SX:
        """Return the matrix (3, 3) of successive rotations, from the rotated frame to the body."""
        R = ca.SX.eye(3)
        for turn in turns:
            angle = self.scalar(turn.angle)
            R = R @ elementary_rotation(turn.axis, cosine(angle), sine(angle))
        return R

    def placement(self, placement: Placement) -> tuple[ca.SX, ca.SX]:
        """Return rotation (3, 3) and origin (3,) of a frame in its body."""
        # cached by identity, because sweeps use each placement many times
        if id(placement) not in self._placed:
            self._placed[id(placement)] = (
                placement,
                self.rotation(placement.turns),
                self.vector(placement.position),
            )
        return self._placed[id(placement)][1:]


def elementary_rotation(axis: str, c: Any, s: Any) -> ca.SX:
    """Return the rotation about a coordinate axis, from the cosine and sine of its angle."""
    R = ca.SX(3, 3)
    i = "xyz".index(axis)
    j, k = (i + 1) % 3, (i + 2) % 3
    R[i, i] = 1
    R[j, j], R[k, k] = c, c
    R[k, j], R[j, k] = s, -s
    return R


def unit_vector(axis: str) -> ca.SX:
    """Return the unit vector (3,) of a coordinate axis."""
    e = ca.SX(3, 1)
    e["xyz".index(axis)] = 1
    return e


BODY_SUFFIXES = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
BODY_UNITS = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)
SLENDER_SUFFIXES = ("m", "h", "J")
SLENDER_UNITS = ("kg", "kg m", "kg m^2")


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicParameter:
    """One entry of pi.

    Attributes:
        name: element and suffix, such as ``plate.mcx`` or ``leg1.motor.viscous``.
        element: name of the body, rod, coordinate or actuator.
        role: suffix of the name, such as ``mcx``.
        unit: SI unit.
        group: "inertia", "friction", "drive" or "spring".
        expression: value of the entry as an expression over theta.
    """

    name: str
    element: str
    role: str
    unit: str
    group: str
    expression: Expression


def dynamic_parameters(mechanism: Mechanism, topology: Topology) -> tuple[DynamicParameter, ...]:
    """Return all entries of pi in order: bodies, rods, freedoms, actuators, losses.

    Raises:
        DescriptionError: a joint and a motor have the same name and the same coefficient.
    """
    entries = tuple(_entries(mechanism, topology))
    counts = Counter(entry.name for entry in entries)
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise DescriptionError(
            Problem(
                where=name,
                what="is a coefficient of a joint and of a motor with the same name",
                remedy="give the motor another name",
                file=mechanism.file,
            )
            for name in repeated
        )
    return entries


def _entry(
    element: str, role: str, unit: str, group: str, expression: Expression
) -> DynamicParameter:
    return DynamicParameter(
        name=f"{element}.{role}",
        element=element,
        role=role,
        unit=unit,
        group=group,
        expression=expression,
    )


def _entries(mechanism: Mechanism, topology: Topology) -> Iterator[DynamicParameter]:
    for body in mechanism.bodies:
        if body.inertia is not None:
            yield from _part(body.name, "", body.inertia)
    for rod in mechanism.rods:
        for prefix, part in (("", rod.lower), ("upper_", rod.upper)):
            if part is not None:
                yield from _part(rod.name, prefix, part)
    for name, is_angle, freedom in zip(
        topology.velocity_names, topology.angular, topology.freedoms, strict=True
    ):
        if freedom.inertia is not None:
            yield _entry(name, "inertia", "kg m^2" if is_angle else "kg", "drive", freedom.inertia)
        if freedom.friction is not None:
            yield from _friction(name, freedom.friction, is_angle)
        if freedom.spring is not None:
            force, angle = ("N m", "rad") if is_angle else ("N", "m")
            yield _entry(name, "stiffness", f"{force}/{angle}", "spring", freedom.spring.stiffness)
            yield _entry(
                name,
                "preload",
                force,
                "spring",
                multiply(freedom.spring.stiffness, freedom.spring.rest),
            )
    for actuator in mechanism.actuators:
        is_angle = topology.is_rotary(actuator)
        if actuator.inertia is not None:
            yield _entry(
                actuator.name, "inertia", "kg m^2" if is_angle else "kg", "drive", actuator.inertia
            )
        if actuator.friction is not None:
            yield from _friction(actuator.name, actuator.friction, is_angle)
    for loss in mechanism.losses:
        yield from _friction(loss.name, loss.friction, loss.is_angular)


def _part(element: str, prefix: str, part: Inertia | SlenderPart) -> Iterator[DynamicParameter]:
    slender = isinstance(part, SlenderPart)
    suffixes, units = (SLENDER_SUFFIXES, SLENDER_UNITS) if slender else (BODY_SUFFIXES, BODY_UNITS)
    for suffix, unit, expression in zip(suffixes, units, part.parameters, strict=True):
        yield _entry(element, prefix + suffix, unit, "inertia", expression)


def _friction(element: str, friction: Friction, is_angle: bool) -> Iterator[DynamicParameter]:
    force, speed = ("N m", "N m s/rad") if is_angle else ("N", "N s/m")
    terms = {
        "viscous": (speed, friction.viscous),
        "coulomb": (force, friction.coulomb),
        "offset": (force, friction.offset),
        "viscous_asymmetry": (speed, friction.viscous_asymmetry),
        "coulomb_asymmetry": (force, friction.coulomb_asymmetry),
        "stribeck": (force, friction.excess),
    }
    for role, (unit, expression) in terms.items():
        if expression is not None:
            yield _entry(element, role, unit, "friction", expression)


class Entries:
    """Values of pi (n_pi,) by element and role.

    Attributes:
        parameters: the entries of pi.
        pi: values or symbols of the entries (n_pi,), SI.
    """

    def __init__(self, parameters: tuple[DynamicParameter, ...], pi: ca.SX) -> None:
        """Store pi (n_pi,) with the names of its entries."""
        self.parameters, self.pi = parameters, pi
        self._pi: Mapping[tuple[str, str], ca.SX] = {
            (p.element, p.role): pi[i] for i, p in enumerate(parameters)
        }
        self._inertial: dict[str, list[str]] = {}
        for p in parameters:
            if p.group == "inertia":
                self._inertial.setdefault(p.element, []).append(p.role)

    def get(self, element: str, role: str) -> ca.SX | None:
        """Return an entry; None if the element has no such parameter."""
        return self._pi.get((element, role))

    def part(self, element: str, upper: bool = False) -> ca.SX:
        """Return the inertial parameters of a body or of a part of a rod, in their order."""
        roles = [role for role in self._inertial[element] if role.startswith("upper_") == upper]
        return ca.vertcat(*(self._pi[element, role] for role in roles))


#: Numbers of samples per call of a mapped function. A map of each width is built once, and a batch
#: of any size is a sequence of calls of these maps.
MAP_WIDTHS = (512, 64, 8, 1)


#: Number of instructions per call from which threads are started, which takes tens of microseconds.
MIN_THREADED_INSTRUCTIONS = 400_000
#: Maximum number of threads.
MAX_THREADS = 8


def mapped(function: ca.Function, width: int, instructions: int) -> ca.Function:
    """Return a function mapped over several points, on all cores if that is faster.

    Args:
        function: function of one point.
        width: number of points.
        instructions: number of instructions of the function.
    """
    cores = os.cpu_count() or 1
    if cores > 1 and width * instructions > MIN_THREADED_INSTRUCTIONS:
        return function.map(width, "thread", min(cores, MAX_THREADS))
    return function.map(width)


class BatchFunction:
    """A CasADi function of column vectors that evaluates any number of samples.

    Attributes:
        function: the function of one sample.
        output_sizes: number of values per sample of every output.
    """

    __slots__ = ("_calls", "function", "output_sizes")

    def __init__(self, function: ca.Function) -> None:
        """Store the function; its inputs and outputs must be dense columns."""
        self.function = function
        self.output_sizes = tuple(function.numel_out(i) for i in range(function.n_out()))
        # unused calls, by their number of samples; a thread takes one while it runs
        self._calls: dict[int, list[_MappedCall]] = {width: [] for width in MAP_WIDTHS}

    def __reduce__(self) -> tuple[type, tuple[ca.Function]]:
        """Pickle and copy the function without the memory of its calls."""
        return BatchFunction, (self.function,)

    def __call__(self, arrays: Sequence[np.ndarray], n: int) -> list[np.ndarray]:
        """Return values at n samples: one array (n, k) per output, from one array per input."""
        outputs = [np.empty((n, size)) for size in self.output_sizes]
        first = 0
        for width in MAP_WIDTHS:
            if n - first < width:
                continue
            call = self._take(width)
            while n - first >= width:
                last = first + width
                for memory, array in zip(call.inputs, arrays, strict=True):
                    memory[...] = array[first:last]
                call.run()
                for memory, array in zip(call.outputs, outputs, strict=True):
                    array[first:last] = memory
                first = last
            self._calls[width].append(call)
        return outputs

    def _take(self, width: int) -> _MappedCall:
        """Return a call of a number of samples that no other thread uses."""
        try:
            return self._calls[width].pop()
        except IndexError:
            function = self.function
            if width > 1:
                function = mapped(function, width, self.instructions)
            return _MappedCall(function, width)

    @property
    def instructions(self) -> int:
        """Number of instructions of the function."""
        return int(self.function.n_instructions())


class _MappedCall:
    """A function of several samples that reads inputs from and writes outputs to fixed memory.

    Copying a few samples takes less time than passing their addresses to CasADi. An array (n, k)
    has the memory layout of the (k, n) matrix of CasADi's map.

    Attributes:
        inputs: memory (n, k) of every input.
        outputs: memory (n, k) of every output.
        run: function without arguments that evaluates the mapped function.
    """

    __slots__ = ("_buffer", "inputs", "outputs", "run")

    def __init__(self, function: ca.Function, n: int) -> None:
        self.inputs = [np.zeros((n, function.numel_in(i) // n)) for i in range(function.n_in())]
        self.outputs = [np.zeros((n, function.numel_out(i) // n)) for i in range(function.n_out())]
        self._buffer, self.run = function.buffer()
        for i, array in enumerate(self.inputs):
            self._buffer.set_arg(i, memoryview(array.reshape(-1)))  # type: ignore[call-arg]
        for i, array in enumerate(self.outputs):
            self._buffer.set_res(i, memoryview(array.reshape(-1)))  # type: ignore[call-arg]


def quantile(values: object, fraction: float) -> np.ndarray:
    """Return the quantile over the first axis, with linear interpolation; 0.5 is the median.

    Infinite values are allowed.
    """
    ordered = np.sort(np.asarray(values, dtype=float), axis=0)
    position = fraction * (len(ordered) - 1)
    below = int(position)
    weight = position - below
    if not weight:
        return np.asarray(ordered[below])
    return np.asarray((1.0 - weight) * ordered[below] + weight * ordered[below + 1])
