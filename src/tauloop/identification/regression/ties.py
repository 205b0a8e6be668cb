"""Ties between the parameters of a regressor: equal ones are one unknown, and known ones are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from tauloop.common.errors import IdentificationError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.ports import numbers
from tauloop.mechanism.suggestions import unknown_names


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ties(ReprMixin):
    """Known relations between the parameters of a regressor: p = matrix r + offset.

    Legs that are equal share one unknown, and parameters that are known leave the unknowns.

    Attributes:
        matrix: (n_p, n_r).
        parameters: names of the unknowns r.
        units: their units.
        offset: known part of p (n_p,), SI; zero when not given.
    """

    matrix: np.ndarray
    parameters: tuple[str, ...]
    units: tuple[str, ...]
    offset: np.ndarray | None = None

    def __post_init__(self) -> None:
        """Check shapes, names and numbers."""
        rows, columns = (
            (matrix := numbers(self.matrix, "ties.matrix")).shape
            if np.ndim(self.matrix) == 2
            else (0, 0)
        )
        offset = np.zeros(rows) if self.offset is None else numbers(self.offset, "ties.offset")
        problems = Problems()
        if columns == 0:
            remedy = "give (parameters, unknowns), with at least one unknown"
            problems.add("ties.matrix", f"has shape {np.shape(self.matrix)}", remedy)
        else:
            problems += named("ties.parameters", self.parameters, columns)
            problems += counted("ties.units", self.units, columns)
            if offset.shape != (rows,):
                problems.add("ties.offset", f"has shape {offset.shape}", f"give {rows} numbers")
            if not (np.isfinite(matrix).all() and np.isfinite(offset).all()):
                problems.add("ties", "holds a number that is not finite", "give finite numbers")
        IdentificationError.raise_if_any(problems)
        freeze(
            self,
            matrix=matrix,
            offset=offset,
            parameters=tuple(self.parameters),
            units=tuple(self.units),
        )

    def expand(self, unknowns: np.ndarray) -> np.ndarray:
        """Parameters p (n_p,) from the unknowns r (n_r,)."""
        parameters: np.ndarray = self.matrix @ unknowns + self.offset
        return parameters

    def without(self, known: Mapping[str, float]) -> Ties:
        """With some of the unknowns known, by name, SI."""
        left = [k for k, name in enumerate(self.parameters) if name not in known]
        return Ties(
            matrix=self.matrix[:, left],
            parameters=tuple(self.parameters[k] for k in left),
            units=tuple(self.units[k] for k in left),
            offset=self.expand(np.array([known.get(name, 0.0) for name in self.parameters])),
        )


def ties(
    parameters: Sequence[str],
    units: Sequence[str],
    *,
    equal: Mapping[str, Sequence[str]] | None = None,
    known: Mapping[str, float] | None = None,
) -> Ties:
    """Ties by name: groups of equal parameters become one unknown, and known ones leave the unknowns.

    Args:
        parameters, units: names and units of the regressor's columns.
        equal: new name -> names of the parameters that are equal.
        known: name -> value, SI.

    Raises:
        IdentificationError: a name is unknown or used twice, units of a group differ, nothing is
            left unknown.
    """
    equal, known = equal or {}, known or {}
    place = {name: j for j, name in enumerate(parameters)}
    used = Counter([name for group in equal.values() for name in group] + list(known))
    problems = Problems(
        unknown_names(
            used, place, "unknown parameter {!r}", "ties", "name a column of the regressor"
        )
    )
    for name, count in used.items():
        if count > 1:
            problems.add("ties", f"{name!r} is used {count} times", "use every parameter once")
    for group, members in equal.items():
        kinds = {units[place[name]] for name in members if name in place}
        if not members:
            problems.add(f"ties.{group}", "has no members", "name the parameters that are equal")
        if len(kinds) > 1:
            what = f"equal parameters have different units: {', '.join(sorted(kinds))}"
            problems.add(f"ties.{group}", what, "tie parameters of one kind only")
    IdentificationError.raise_if_any(problems)
    group_of = {name: group for group, members in equal.items() for name in members}
    unknowns = list(
        dict.fromkeys(group_of.get(name, name) for name in parameters if name not in known)
    )
    column = {name: k for k, name in enumerate(unknowns)}
    matrix, offset = np.zeros((len(parameters), len(unknowns))), np.zeros(len(parameters))
    unit_of: dict[str, str] = {}
    for name, j in place.items():
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
    """Set fields of a frozen object while it is being built; arrays become views that cannot be written."""
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            value = value.view()
            value.flags.writeable = False
        object.__setattr__(owner, name, value)


def named(where: str, names: Sequence[str], count: int) -> list[Problem]:
    """What is wrong with the names of so many columns or rows."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    problems = counted(where, names, count)
    if twice:
        problems.append(
            Problem(where, f"named twice: {', '.join(twice[:10])}", "give every one its own name")
        )
    return problems


def counted(where: str, items: Sequence[str], count: int) -> list[Problem]:
    """What is wrong with the number of such items."""
    if not isinstance(items, str) and len(items) == count:
        return []
    what = "is one text" if isinstance(items, str) else f"has {len(items)} entries"
    return [Problem(where, what, f"give {count}, as many as the regressor has")]
