"""Named ports: names, units and shapes of a function's inputs and outputs, with checks.

The input motion of a function is the motion of either the platform or the actuators. `Entry` names
these two choices, and `EntryPorts` describes the input motion of one machine.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import AssemblyError, InputError, Problem, Problems
from tauloop.common.options import by_label
from tauloop.common.records import dataclass
from tauloop.mechanism.suggestions import listing

if TYPE_CHECKING:  # functions from the cache have ports but no equations
    import casadi as ca

    from tauloop.equations.assembly.assembly import Assembly
    from tauloop.equations.topology import Topology
    from tauloop.mechanism.model import Mechanism

#: Maximum number of faulty samples or columns of one kind that a message lists.
MAX_LISTED = 5
#: Kinds of arrays (texts, dates, bytes) that NumPy would convert to numbers without an error.
_NON_NUMERIC_KINDS = "SUmMV"


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One input or output of a function.

    Attributes:
        name: name of the port.
        columns: name of every component of a sample.
        units: SI unit of every component.
    """

    name: str
    columns: tuple[str, ...]
    units: tuple[str, ...]

    @property
    def size(self) -> int:
        """Number of components of a sample."""
        return len(self.columns)


def jacobian_name(output: str, argument: str) -> str:
    """Return the name of the Jacobian of an output with respect to an input."""
    return f"{output}_by_{argument}"


#: Order of the time derivative of inputs and outputs.
_LEVEL = {"q": 0, "v": 1, "a": 2, "position": 0, "velocity": 1, "acceleration": 2}


def may_depend(output: str, argument: str) -> bool:
    """Return whether an output may depend on an input.

    Positions do not depend on velocities, and velocities do not depend on accelerations.
    """
    return output not in _LEVEL or _LEVEL.get(argument, 0) <= _LEVEL[output]


def directional_name(output: str) -> str:
    """Return the name of the derivative of an output along a direction."""
    return f"{output}_along"


def direction_name(name: str) -> str:
    """Return the name of the input that contains the direction of another input."""
    return f"{name}_step"


def factor_of(output: str) -> str:
    """Return the name of the input with the weights of an output (vector-Jacobian products)."""
    return f"{output}_factor"


def checked(
    ports: Mapping[str, Port], arguments: Mapping[str, object], *, finite: bool = True
) -> tuple[dict[str, np.ndarray], bool]:
    """Return arguments as arrays (N, n) after checking names, shapes, sample counts and values.

    Args:
        ports: required ports by name.
        arguments: array-likes of shape (n,) for one sample or (N, n) for many; or mappings from
            column names.
        finite: whether to reject numbers that are not finite; if not, the caller must call
            `require_finite`.

    Returns:
        Float arrays (N, n), possibly views of the arguments or of one repeated row; and whether a
        single sample was given.

    Raises:
        InputError: arguments are wrong; all problems are listed at once.
    """
    problems = Problems()
    for name in arguments:
        if name not in ports:
            problems.add(name, "no such input", f"use one of {', '.join(ports)}")
    arrays: dict[str, np.ndarray] = {}
    single = True
    for name, port in ports.items():
        if name not in arguments:
            needed = counted(port.size, "number")
            problems.add(name, "is missing", f"give {needed}: {', '.join(port.columns)}")
            continue
        array = _as_array(port, arguments[name], problems)
        if array is not None:
            single = single and array.ndim == 1
            arrays[name] = np.atleast_2d(array)
    counts = {array.shape[0] for array in arrays.values()} - {1}
    if len(counts) > 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        problems.add(
            "samples",
            f"inputs differ in their number of samples: {shapes}",
            "give every input one row per sample, or a single row for all",
        )
    if finite or problems:
        _add_nonfinite_problems(ports, arrays, problems)
    InputError.raise_if_any(problems)
    n = counts.pop() if counts else 1
    for name, array in arrays.items():
        if len(array) == 1 or is_one_row(array):
            arrays[name] = np.broadcast_to(array[:1], (n, array.shape[1]))
    return arrays, single


def is_one_row(array: np.ndarray) -> bool:
    """Return whether an array (N, n) is a view of one repeated row."""
    return array.shape[0] > 1 and not array.strides[0]


def require_finite(ports: Mapping[str, Port], arrays: Mapping[str, np.ndarray]) -> None:
    """Raise an error if arrays (N, n) of ports contain numbers that are not finite.

    Raises:
        InputError: the message lists samples and columns of all arrays.
    """
    problems = Problems()
    _add_nonfinite_problems(ports, arrays, problems)
    InputError.raise_if_any(problems)


def _add_nonfinite_problems(
    ports: Mapping[str, Port], arrays: Mapping[str, np.ndarray], problems: Problems
) -> None:
    for name, array in arrays.items():
        finite = np.isfinite(array[:1] if is_one_row(array) else array)
        if not finite.all():
            bad = np.argwhere(~finite)
            listed = ", ".join(
                f"sample {i} column {ports[name].columns[j]}" for i, j in bad[:MAX_LISTED]
            )
            more = f" and {len(bad) - MAX_LISTED} more" if len(bad) > MAX_LISTED else ""
            problems.add(
                ports[name].name,
                f"is not finite at {listed}{more}",
                "correct or remove these samples",
            )


def is_masked(argument: object) -> bool:
    """Return whether the argument is a masked array of NumPy, without importing that module."""
    return (
        isinstance(argument, np.ndarray)
        and type(argument) is not np.ndarray
        and hasattr(argument, "mask")
    )


def real(argument: object) -> np.ndarray:
    """Return an array of real numbers.

    Raises:
        TypeError: the argument is complex or masked; NumPy would drop the imaginary part or the
            mask.
        ValueError, OverflowError: the elements are not numbers, too large, or differ in length.
    """
    parts = argument if isinstance(argument, list | tuple) else (argument,)
    for part in parts:
        if is_masked(part):
            raise TypeError("the array is masked")
    array = np.asarray(argument)
    if np.iscomplexobj(array):
        raise TypeError(f"the numbers are complex ({array.dtype})")
    if array.dtype.kind in _NON_NUMERIC_KINDS:
        raise TypeError(f"the array contains {array.dtype}, not numbers")
    return np.asarray(array, dtype=float)


def numbers(argument: object, where: str) -> np.ndarray:
    """Return an array of real numbers, possibly the argument itself; they may be infinite or NaN.

    Raises:
        InputError: the argument is complex or masked, or its elements are not numbers, too large,
            or differ in length.
    """
    try:
        return real(argument)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError.of(
            where, f"is not an array of real numbers: {error}", "give real numbers"
        ) from error


def _by_column(port: Port, argument: Mapping[str, object]) -> dict[str, object]:
    """Return values by full column names; keys may be suffixes that are unique."""
    suffixes = [column.rpartition(".")[2] for column in port.columns]
    full_names = {}
    for suffix, column in zip(suffixes, port.columns, strict=True):
        # skip suffixes whose full name is also given
        if suffixes.count(suffix) == 1 and column not in argument:
            full_names[suffix] = column
    return {full_names.get(key, key): value for key, value in argument.items()}


def _as_array(port: Port, argument: object, problems: Problems) -> np.ndarray | None:
    argument = by_label(argument)
    if isinstance(argument, Mapping):
        argument = _by_column(port, argument)
        unknown = [str(key) for key in argument if key not in port.columns]
        missing = [column for column in port.columns if column not in argument]
        if unknown or missing:
            wrong = {"unknown": unknown, "missing": missing}
            what = "; ".join(
                f"{word} columns {', '.join(names)}" for word, names in wrong.items() if names
            )
            problems.add(port.name, what, f"give the columns {', '.join(port.columns)}")
            return None
    try:
        if isinstance(argument, Mapping):
            array = np.stack([real(argument[column]) for column in port.columns], axis=-1)
        else:
            array = real(argument)
    except (TypeError, ValueError, OverflowError) as error:
        remedy = f"give numbers in the order {', '.join(port.columns)}"
        problems.add(port.name, f"is not an array of numbers: {error}", remedy)
        return None
    if array.ndim not in (1, 2) or array.shape[-1] != port.size:
        problems.add(
            port.name,
            f"has shape {array.shape}, needs ({port.size},) or (N, {port.size})",
            f"give for each sample: {', '.join(port.columns)}",
        )
        return None
    return array


class Entry(enum.Enum):
    """Choice of the input motion: the motion of the platform or of the actuators.

    Messages, files and the command line use these names. `entry_ports` returns the columns of the
    input motion for one machine.
    """

    platform = "platform"
    actuators = "actuators"

    def __str__(self) -> str:
        return self.name


#: The two choices of the input motion.
PLATFORM, ACTUATORS = Entry.platform, Entry.actuators


def entry_named(entry: object, where: str = "coordinates") -> Entry:
    """Return the entry for a name.

    Args:
        entry: "platform" or "actuators", or an `Entry`.
        where: name of the argument, for messages.

    Raises:
        InputError: the name is neither of the two.
    """
    if isinstance(entry, Entry):
        return entry
    if isinstance(entry, str) and entry in Entry.__members__:
        return Entry[entry]
    raise InputError.of(where, f"is {entry!r:.80}", "give 'platform' or 'actuators'")


def coordinates_text(entry: Entry, columns: Iterable[str]) -> str:
    """Return a text on the kind of coordinates, such as "platform coordinates x, y, z"."""
    kind = "platform" if entry is Entry.platform else "actuator"
    return f"{kind} coordinates {', '.join(name.removeprefix('platform.') for name in columns)}"


@dataclass(frozen=True, kw_only=True)
class EntryPorts:
    """The input motion of one machine, and the coordinates that it determines without the loops.

    Attributes:
        entry: whose motion is given.
        position, velocity: ports of the given positions and velocities; accelerations have the
            columns of the velocity.
        q, v: indices of the coordinates and velocities that the given motion determines directly.
        to_q, to_v: matrices from the given positions and velocities to these coordinates and
            velocities.
        offset: values of these coordinates at given positions of zero; not zero for couplings with
            an offset.
    """

    entry: Entry
    position: Port
    velocity: Port
    q: tuple[int, ...]
    v: tuple[int, ...]
    to_q: np.ndarray
    to_v: np.ndarray
    offset: np.ndarray

    @property
    def name(self) -> str:
        """Name of the entry."""
        return self.entry.name

    def whole_quaternions(self, topology: Topology) -> tuple[int, ...]:
        """Return the start indices of unit quaternions in the given positions."""
        return tuple(
            self.q.index(iq) for iq, _ in topology.quaternions if {*range(iq, iq + 4)} <= {*self.q}
        )

    @property
    def motion(self) -> dict[str, Port]:
        """Ports of a motion by name: position, velocity, acceleration."""
        return {port.name: port for port in (self.position, self.velocity, self.acceleration)}

    @property
    def acceleration(self) -> Port:
        """Port of the given accelerations."""
        units = tuple(unit + "^2" for unit in self.velocity.units)
        return Port(name="acceleration", columns=self.velocity.columns, units=units)

    @property
    def effort(self) -> Port:
        """Port of forces and torques on the given velocities."""
        units = tuple("N m" if unit == "rad/s" else "N" for unit in self.velocity.units)
        return Port(name="effort", columns=self.velocity.columns, units=units)

    def leading_acceleration(self, count: int) -> Port:
        """Return the port of the leading actuators' accelerations, or of the platform's."""
        port = self.acceleration
        return Port(
            name="actuator_acceleration", columns=port.columns[:count], units=port.units[:count]
        )

    def products(self, force: Port) -> dict[str, Port]:
        """Return the input ports of products with derivatives, by name.

        These are the directions of Jacobian-vector products and the weights of vector-Jacobian
        products.
        """
        displacement = replace(
            self.velocity, units=tuple(unit.removesuffix("/s") for unit in self.velocity.units)
        )
        inputs = {**self.motion, "position": displacement, "force": force}
        ports = {direction_name(name): port for name, port in inputs.items()}
        for output, port in (("force", force), ("acceleration", self.acceleration)):
            ports[factor_of(output)] = replace(port, units=("",) * port.size)
        return {name: replace(port, name=name) for name, port in ports.items()}

    def at(self, q: np.ndarray) -> np.ndarray:
        """Return the given positions (..., n) at full coordinates (..., n_q)."""
        return np.asarray((q[..., list(self.q)] - self.offset) @ self._from_q)

    def rates(self, v: np.ndarray) -> np.ndarray:
        """Return the velocities (..., n) of the input motion at all velocities (..., n_v)."""
        return np.asarray(v[..., list(self.v)] @ self._from_v)

    @cached_property
    def _from_q(self) -> np.ndarray:
        """Transpose of the inverse of `to_q`."""
        return np.linalg.inv(self.to_q).T

    @cached_property
    def _from_v(self) -> np.ndarray:
        """Transpose of the inverse of `to_v`."""
        return np.linalg.inv(self.to_v).T

    def known_coordinates(self, position: np.ndarray, n_q: int) -> np.ndarray:
        """Return the coordinates (N, n_q) at positions (N, n); NaN where these need the loops."""
        q = np.full((len(position), n_q), np.nan)
        q[:, list(self.q)] = self.given_coordinates(position)
        return q

    def given_coordinates(self, position: np.ndarray) -> np.ndarray:
        """Return the coordinates `self.q` (..., n) at the given positions (..., n)."""
        return np.asarray(position @ self.to_q.T + self.offset)

    def coordinates(self, position: ca.SX) -> dict[int, ca.SX]:
        """Return the coordinates `self.q` by index, as expressions of the given positions."""
        import casadi as ca

        values = ca.DM(self.to_q) @ position
        if self.offset.any():
            values += ca.DM(self.offset)
        return {i: values[k] for k, i in enumerate(self.q)}


def entry_ports(assembly: Assembly, entry: Entry) -> EntryPorts:
    """Return the ports of the motion of a machine's platform or actuators.

    Raises:
        AssemblyError: actuators and passive degrees of freedom do not determine the coordinates
            that the actuators drive.
    """
    return _platform_ports(assembly) if entry == PLATFORM else _actuator_ports(assembly)


def _platform_ports(assembly: Assembly) -> EntryPorts:
    """Return the ports of the independent (platform) coordinates.

    A rotation of a free body is given by its quaternion. All four components are given if all three
    rotations are independent; otherwise only the vector components of the independent rotations,
    from which the other components follow.
    """
    topology = assembly.topology
    independent = assembly.independent
    q = [
        topology.q_of_v[i] for i in independent if topology.q_of_v[i] >= 0
    ] + _quaternion_components(topology, independent)
    q.sort()
    return EntryPorts(
        entry=PLATFORM,
        position=_position_port(topology, q),
        velocity=_velocity_port(topology, independent),
        q=tuple(q),
        v=independent,
        to_q=np.eye(len(q)),
        to_v=np.eye(len(independent)),
        offset=np.zeros(len(q)),
    )


def _actuator_ports(assembly: Assembly) -> EntryPorts:
    """Return the ports of the actuators' motion.

    The actuator positions are p = A q over the driven coordinates, followed by the passive
    coordinates. With redundant actuation only the leading actuators are given; the others follow
    them.

    Raises:
        AssemblyError: actuators and passive degrees of freedom do not determine the coordinates
            that the actuators drive.
    """
    topology, mechanism = assembly.topology, assembly.mechanism
    leading, passive = list(assembly.leading), list(assembly.passive)
    drive = assembly.leading_drive
    driven = list(drive.v)
    given_v = driven + [i for i in passive if i not in driven]
    A = np.zeros((len(leading) + len(passive), len(given_v)))
    A[: len(leading), : len(driven)] = drive.matrix
    for row, i in enumerate(passive, start=len(leading)):
        A[row, given_v.index(i)] = 1.0
    if A.shape[0] != A.shape[1] or np.linalg.matrix_rank(A) < A.shape[0]:
        raise AssemblyError([_undetermined(assembly, driven)])
    actuators = tuple(mechanism.actuators[i] for i in leading)
    names = tuple(actuator.name for actuator in actuators)
    rotary = [topology.is_rotary(actuator) for actuator in actuators]
    inverse = np.linalg.inv(A)
    inverse[np.abs(inverse) < 1e-15 * np.abs(inverse).max(initial=0.0)] = 0.0
    components = _quaternion_components(topology, assembly.passive)
    passive_q = [topology.q_of_v[i] for i in passive if topology.q_of_v[i] >= 0]
    rows = [k for k, i in enumerate(given_v) if topology.q_of_v[i] >= 0]
    columns = [
        *range(len(leading)),
        *(len(leading) + k for k, i in enumerate(passive) if topology.q_of_v[i] >= 0),
    ]
    to_q = np.eye(len(rows) + len(components))
    to_q[: len(rows), : len(rows)] = inverse[np.ix_(rows, columns)]
    offset = np.zeros(len(to_q))
    offset[: len(rows)] = -inverse[rows, : len(leading)] @ drive.offset
    return EntryPorts(
        entry=ACTUATORS,
        position=Port(
            name="position",
            columns=names + tuple(topology.coordinate_names[i] for i in passive_q + components),
            units=tuple("rad" if r else "m" for r in rotary)
            + coordinate_units(topology, passive_q + components),
        ),
        velocity=Port(
            name="velocity",
            columns=names + assembly.passive_names,
            units=tuple("rad/s" if r else "m/s" for r in rotary)
            + velocity_units(topology, assembly.passive),
        ),
        q=tuple(topology.q_of_v[i] for i in given_v if topology.q_of_v[i] >= 0) + tuple(components),
        v=tuple(given_v),
        to_q=to_q if components else inverse,
        to_v=inverse,
        offset=offset,
    )


def _undetermined(assembly: Assembly, driven: list[int]) -> Problem:
    """Return the problem that actuator positions do not determine the driven coordinates."""
    names = [assembly.mechanism.actuators[i].name for i in assembly.leading]
    coordinates = [assembly.topology.velocity_names[i] for i in driven]
    drive = counted(len(names), "actuator", "drive")
    what = (
        f"{drive} {len(coordinates)} coordinates ({listing(coordinates)}) that are coupled by "
        f"loops, so the positions of {listing(names)} alone do not determine them"
    )
    remedy = (
        "give the motion of the platform (`ik --pose`, `--coordinates platform`); or name one joint for each motor "
        f"(`--motors {','.join(coordinates[: len(names)])}`)"
    )
    return Problem(where="actuators", what=what, remedy=remedy, file=assembly.mechanism.file)


def force_port(assembly: Assembly) -> Port:
    """Return the port of the actuators' forces."""
    return motor_port(assembly, "force", "N m", "N")


def motor_port(assembly: Assembly, name: str, rotary_unit: str, linear_unit: str) -> Port:
    """Return a port with one column per actuator, with units for rotary and for linear motors."""
    actuators = assembly.mechanism.actuators
    units = tuple(
        rotary_unit if assembly.topology.is_rotary(actuator) else linear_unit
        for actuator in actuators
    )
    return Port(name=name, columns=tuple(actuator.name for actuator in actuators), units=units)


def output_port(mechanism: Mechanism) -> Port:
    """Return the port of the outputs that a machine file defines."""
    outputs = mechanism.outputs
    return Port(
        name="outputs",
        columns=tuple(output.name for output in outputs),
        units=tuple(output.unit for output in outputs),
    )


def _quaternion_components(topology: Topology, velocities: tuple[int, ...]) -> list[int]:
    """Return the indices of quaternion components that represent given angular velocities.

    These are all four components if all three rotations are given, otherwise the vector components
    of the given rotations.
    """
    indices: list[int] = []
    for q0, v0 in topology.quaternions:
        rotations = [i for i in velocities if v0 <= i < v0 + 3]
        if len(rotations) == 3:
            indices += range(q0, q0 + 4)
        else:
            indices += [q0 + 1 + i - v0 for i in rotations]
    return indices


def _position_port(topology: Topology, q: list[int]) -> Port:
    columns = tuple(topology.coordinate_names[i] for i in q)
    return Port(name="position", columns=columns, units=coordinate_units(topology, q))


def coordinate_units(topology: Topology, q: list[int] | None = None) -> tuple[str, ...]:
    """Return the units of coordinates: rad for angles, 1 for quaternions, m for the rest."""
    indices = range(topology.n_q) if q is None else q

    def unit(i: int) -> str:
        if topology.is_length[i]:
            return "m"
        return "rad" if topology.is_angle[i] else "1"

    return tuple(unit(i) for i in indices)


def velocity_units(topology: Topology, v: tuple[int, ...] | None = None) -> tuple[str, ...]:
    """Return the units of velocities."""
    indices = range(topology.n_v) if v is None else v
    return tuple("rad/s" if topology.angular[i] else "m/s" for i in indices)


def _velocity_port(topology: Topology, v: tuple[int, ...]) -> Port:
    columns = tuple(topology.velocity_names[i] for i in v)
    return Port(name="velocity", columns=columns, units=velocity_units(topology, v))


def text_names(names: object, where: str) -> tuple[str, ...]:
    """Return names from one text or several texts.

    Raises:
        InputError: the names are not texts.
    """
    if isinstance(names, str):
        return (names,)
    listed: tuple[object, ...] = (names,)
    if isinstance(names, Iterable) and not isinstance(names, bytes):
        listed = tuple(names)
    wrong = [name for name in listed if not isinstance(name, str)]
    if wrong:
        what = f"contains {wrong[0]!r:.80}, which is of type {type(wrong[0]).__name__}"
        raise InputError.of(where, what, "give a name, or several as texts in a tuple")
    return tuple(map(str, listed))


def require_type(argument: object, kind: type, where: str, remedy: str) -> None:
    """Raise an error if an argument does not have the required type.

    Raises:
        InputError: the message contains the argument's name.
    """
    if not isinstance(argument, kind):
        raise InputError.of(where, f"is of type {type(argument).__name__}", remedy)


def full_coordinates(q: object, topology: Topology, where: str = "q") -> np.ndarray:
    """Return coordinates (..., n_q) as an array; samples out of reach may be NaN.

    Raises:
        InputError: the coordinates are not real numbers, or their number is wrong.
    """
    array = numbers(q, where)
    names = topology.coordinate_names
    if not array.ndim or array.shape[-1] != len(names):
        what = f"has shape {array.shape}, needs ({len(names)},) or (N, {len(names)})"
        raise InputError.of(where, what, f"give for each sample: {', '.join(names)}")
    return array


def assembled_poses(q: object, topology: Topology, where: str = "q") -> tuple[np.ndarray, bool]:
    """Return coordinates (N, n_q) of poses, finite, and whether a single pose (n_q,) was given.

    Raises:
        InputError: wrong shapes or values.
    """
    names = topology.coordinate_names
    arrays, single = checked(
        {where: Port(name=where, columns=names, units=("",) * len(names))}, {where: q}
    )
    return arrays[where], single
