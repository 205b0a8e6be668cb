"""Named ports: names, units and shapes of what a function takes and gives, checked before any number is used."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.errors import InputError, Problem, Problems
from tauloop.records import dataclass

#: How many faulty places of one kind a message lists.
LISTED = 5
#: Kinds of arrays that NumPy would turn into numbers without a word: texts, dates, bytes.
_NO_NUMBERS = "SUmMV"


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One input or output of a function.

    Attributes:
        name: name of the port.
        columns: name of every number of a sample.
        units: unit of every number, SI.
    """

    name: str
    columns: tuple[str, ...]
    units: tuple[str, ...]

    @property
    def size(self) -> int:
        """Numbers per sample."""
        return len(self.columns)


def checked(ports: Mapping[str, Port], arguments: Mapping[str, object]) -> tuple[dict[str, np.ndarray], bool]:
    """Arguments as arrays (N, n), after checking names, shapes, sample counts and finiteness.

    Args:
        ports: the ports that must be given, by name.
        arguments: array-likes of shape (n,) for one sample or (N, n) for many; or mappings from column names.

    Returns:
        Contiguous float arrays (N, n), and whether a single sample was given.

    Raises:
        InputError: all problems at once.
    """
    problems = Problems()
    for name in arguments:
        if name not in ports:
            problems.add(name, "no such input", f"inputs are: {', '.join(ports)}")
    arrays: dict[str, np.ndarray] = {}
    single = True
    for name, port in ports.items():
        if name not in arguments:
            problems.add(name, "is missing", f"give {port.size} numbers: {', '.join(port.columns)}")
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
    InputError.raise_if_any(problems)
    n = max((array.shape[0] for array in arrays.values()), default=1)
    return {
        name: np.ascontiguousarray(np.broadcast_to(array, (n, array.shape[1]))) for name, array in arrays.items()
    }, single


def is_masked(argument: object) -> bool:
    """Whether this is one of NumPy's masked arrays, whose module is imported by those who use them."""
    return isinstance(argument, np.ndarray) and type(argument) is not np.ndarray and hasattr(argument, "mask")


def real(argument: object) -> np.ndarray:
    """An array of real numbers.

    Raises:
        TypeError: it is complex or masked, and NumPy would drop what makes it so.
        ValueError, OverflowError: its parts are no numbers, too large, or differ in length.
    """
    parts = argument if isinstance(argument, list | tuple) else (argument,)
    for part in parts:
        if is_masked(part):
            raise TypeError("it is masked")
    array = np.asarray(argument)
    if np.iscomplexobj(array):
        raise TypeError(f"its numbers are complex ({array.dtype})")
    if array.dtype.kind in _NO_NUMBERS:
        raise TypeError(f"it holds no numbers but {array.dtype}")
    return np.asarray(array, dtype=float)


def numbers(argument: object, where: str) -> np.ndarray:
    """An array of real numbers, which may be the argument itself; whether they are finite is not looked at.

    Raises:
        InputError: it is complex or masked, its parts are no numbers, too large, or differ in length.
    """
    try:
        return real(argument)
    except (TypeError, ValueError, OverflowError) as error:
        what = f"is not an array of real numbers: {error}"
        raise InputError(Problem(where=where, what=what, remedy="give real numbers")) from error


def _by_column(port: Port, argument: Mapping[str, object]) -> dict[str, object]:
    """Numbers by the names of columns, where some are named by what behind the last point they alone have."""
    ends = [column.rpartition(".")[2] for column in port.columns]
    whole = {end: column for end, column in zip(ends, port.columns, strict=True) if ends.count(end) == 1}
    whole = {end: column for end, column in whole.items() if column not in argument}  # else it is given twice
    return {whole.get(key, key): value for key, value in argument.items()}


def _as_array(port: Port, argument: object, problems: Problems) -> np.ndarray | None:
    if isinstance(argument, Mapping):
        argument = _by_column(port, argument)
        unknown = [str(key) for key in argument if key not in port.columns]
        missing = [column for column in port.columns if column not in argument]
        if unknown or missing:
            problems.add(
                port.name,
                "; ".join(
                    text
                    for text in (
                        f"unknown columns {', '.join(unknown)}" if unknown else "",
                        f"missing columns {', '.join(missing)}" if missing else "",
                    )
                    if text
                ),
                f"columns are: {', '.join(port.columns)}",
            )
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
            f"the numbers of a sample are: {', '.join(port.columns)}",
        )
        return None
    bad = np.argwhere(~np.isfinite(np.atleast_2d(array)))
    if len(bad):
        places = ", ".join(f"sample {i} column {port.columns[j]}" for i, j in bad[:LISTED])
        more = f" and {len(bad) - LISTED} more" if len(bad) > LISTED else ""
        remedy = "repair or leave out these samples"
        problems.add(port.name, f"is not finite at {places}{more}", remedy)
        return None
    return array
