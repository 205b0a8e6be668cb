"""Ties between the parameters of a regressor: equal parameters and known parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import IdentificationError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.ports import numbers
from tauloop.mechanism.suggestions import unknown_names


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ties(ReprMixin):
    """Known relations between the parameters of a regressor: p = matrix r + offset.

    For example, equal legs share one unknown, and known parameters are constant.

    Attributes:
        matrix: (n_p, n_r) derivatives of the parameters with respect to the unknowns.
        parameters: names of the unknowns r.
        units: units of the unknowns.
        offset: known part of p (n_p,), SI; zero by default.
    """

    matrix: np.ndarray
    parameters: tuple[str, ...]
    units: tuple[str, ...]
    offset: np.ndarray | None = None

    def __post_init__(self) -> None:
        """Check shapes, names and numbers."""
        matrix = np.zeros((0, 0))
        if np.ndim(self.matrix) == 2:
            matrix = numbers(self.matrix, "ties.matrix")
        rows, columns = matrix.shape
        offset = np.zeros(rows) if self.offset is None else numbers(self.offset, "ties.offset")
        problems = Problems()
        if columns == 0:
            remedy = "give (parameters, unknowns), with at least one unknown"
            problems.add("ties.matrix", f"has shape {np.shape(self.matrix)}", remedy)
        else:
            problems += named("ties.parameters", self.parameters, columns)
            problems += count_problems("ties.units", self.units, columns)
            if offset.shape != (rows,):
                problems.add(
                    "ties.offset", f"has shape {offset.shape}", f"give {counted(rows, 'number')}"
                )
            if not (np.isfinite(matrix).all() and np.isfinite(offset).all()):
                problems.add("ties", "contains a number that is not finite", "give finite numbers")
        IdentificationError.raise_if_any(problems)
        freeze(
            self,
            matrix=matrix,
            offset=offset,
            parameters=tuple(self.parameters),
            units=tuple(self.units),
        )

    def expand(self, unknowns: np.ndarray) -> np.ndarray:
        """Return the parameters p (n_p,) for values of the unknowns r (n_r,)."""
        parameters: np.ndarray = self.matrix @ unknowns + self.offset
        return parameters

    def without(self, known: Mapping[str, float]) -> Ties:
        """Return the ties with some unknowns fixed at known values, by name, SI."""
        unknown = [k for k, name in enumerate(self.parameters) if name not in known]
        return Ties(
            matrix=self.matrix[:, unknown],
            parameters=tuple(self.parameters[k] for k in unknown),
            units=tuple(self.units[k] for k in unknown),
            offset=self.expand(np.array([known.get(name, 0.0) for name in self.parameters])),
        )


def named_ties(
    parameters: Sequence[str],
    units: Sequence[str],
    *,
    equal: Mapping[str, Sequence[str]] | None = None,
    known: Mapping[str, float] | None = None,
) -> Ties:
    """Return ties that are described by names of parameters.

    Args:
        parameters, units: names and units of the regressor's columns.
        equal: names of equal parameters, by the name of the unknown that they share.
        known: values of known parameters, SI, by name.

    Raises:
        IdentificationError: a name is unknown or used twice, units of a group differ, or no unknown
            remains.
    """
    equal = equal or {}
    known = known or {}
    index = {name: j for j, name in enumerate(parameters)}
    used = Counter([name for group in equal.values() for name in group] + list(known))
    problems = Problems(
        unknown_names(
            used, index, "unknown parameter {!r}", "ties", "name a column of the regressor"
        )
    )
    for name, count in used.items():
        if count > 1:
            problems.add("ties", f"{name!r} is used {count} times", "use every parameter once")
    for group, members in equal.items():
        group_units = {units[index[name]] for name in members if name in index}
        if not members:
            problems.add(f"ties.{group}", "has no members", "name the parameters that are equal")
        if len(group_units) > 1:
            problems.add(
                f"ties.{group}",
                f"equal parameters have different units: {', '.join(sorted(group_units))}",
                "tie only parameters with the same unit",
            )
    IdentificationError.raise_if_any(problems)
    group_of = {name: group for group, members in equal.items() for name in members}
    unknowns = list(
        dict.fromkeys(group_of.get(name, name) for name in parameters if name not in known)
    )
    column = {name: k for k, name in enumerate(unknowns)}
    matrix = np.zeros((len(parameters), len(unknowns)))
    offset = np.zeros(len(parameters))
    unit_of: dict[str, str] = {}
    for name, j in index.items():
        if name in known:
            offset[j] = known[name]
        else:
            matrix[j, column[group_of.get(name, name)]] = 1.0
            unit_of.setdefault(group_of.get(name, name), units[j])
    return Ties(
        matrix=matrix,
        offset=offset,
        parameters=tuple(unknowns),
        units=tuple(unit_of[name] for name in unknowns),
    )


def freeze(owner: object, **values: object) -> None:
    """Set fields of an immutable object in its constructor; arrays become read-only views."""
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            value = value.view()
            value.flags.writeable = False
        object.__setattr__(owner, name, value)


def named(where: str, names: Sequence[str], count: int) -> list[Problem]:
    """Return the problems of the names of columns or rows, whose number must be `count`."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    problems = count_problems(where, names, count)
    if repeated:
        problems.append(
            Problem(
                where,
                f"names are not unique: {', '.join(repeated[:10])}",
                "give each entry a different name",
            )
        )
    return problems


def count_problems(where: str, items: Sequence[str], count: int) -> list[Problem]:
    """Return a problem if the number of items is not `count`."""
    if not isinstance(items, str) and len(items) == count:
        return []
    message = (
        "is a single text" if isinstance(items, str) else f"has {counted(len(items), 'entry')}"
    )
    return [Problem(where, message, f"give {counted(count, 'entry')}, as in the regressor")]
