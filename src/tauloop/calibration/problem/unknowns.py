"""Which parameters a calibration estimates: leaf parameters of the machine, and nuisance parameters, by pattern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from fnmatch import fnmatchcase

import numpy as np

from tauloop.calibration.measurements.instruments import TYPICAL, Nuisance
from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.options import listed
from tauloop.common.records import dataclass
from tauloop.common.shown import Shown
from tauloop.mechanism.description.quantities import interval
from tauloop.mechanism.description.units import ANGLE, LENGTH, ONE, Dimension, UnitError, si_unit
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import suggestion

#: What unknowns and readings are measured in, by SI unit.
DIMENSIONS: dict[str, Dimension] = {"m": LENGTH, "rad": ANGLE, "1": ONE}
#: Units of unknowns in words.
_SPOKEN = {"m": "a length", "rad": "an angle", "1": "a plain number"}
#: Groups of leaf parameters that a pattern with * or ? picks, and those of a drive in one of
#: `_SPOKEN`'s units only: a rotor's inertia shows in no measured pose. Others must be named in
#: full.
PICKED_GROUPS = ("geometry", "drive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """Parameters that get one correction: what is known of it before a fit and after it; see `Unknown`."""

    name: str
    members: tuple[str, ...]
    unit: str
    tolerance: float
    has_prior: bool = False
    is_nuisance: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(Corrected):
    """One number that is estimated: a correction that is added to the start values of its members.

    Attributes:
        name: of its parameter, or the name given to several that move together.
        members: parameters that get the correction.
        unit: SI unit: m, rad or 1 (or another).
        tolerance: usual size of the correction, SI: scale of the problem, limit of what counts as
            observable, and standard deviation of the prior where there is one.
        has_prior: whether the correction is drawn to zero with that standard deviation.
        is_nuisance: whether it belongs to an instrument or encoder and not to the machine file.
        value: start value of the first member, SI.
        lower, upper: limits of the correction, SI.
    """

    value: float
    lower: float = -np.inf
    upper: float = np.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Least and largest value of an unknown (of its first member, for ties), SI.

    Attributes:
        lower, upper: minus or plus infinity for none.
        unit: m, rad or 1, to be checked against that of the unknown; empty where nobody said.
    """

    lower: float = -np.inf
    upper: float = np.inf
    unit: str = ""


def bounds_of(text: str, between: str) -> Bounds:
    """Bounds of a text such as ``1.2 m:1.3 m`` or ``:5 deg``; infinite where a side is left out.

    Args:
        text: what is written.
        between: what stands between both sides.

    Raises:
        UnitError: no two sides, both left out, two units, or a side that is no length, angle or
            number.
    """
    ends = interval(text, between, *DIMENSIONS.values())
    unit = next(unit for unit, dimension in DIMENSIONS.items() if dimension == ends.dimension)
    return Bounds(lower=ends.lower, upper=ends.upper, unit=unit)


def read_bounds(texts: str | Iterable[str]) -> dict[str, Bounds]:
    """Bounds by unknown from ``NAME=LOW:HIGH``, with commas between them.

    Raises:
        InputError: a part that is no such thing; all at once.
    """
    bounds, problems = {}, Problems()
    for part in listed(texts):
        name, _, limits = part.rpartition("=")
        try:
            bounds[name.strip()] = bounds_of(limits, ":")
        except UnitError as error:
            problems.add("bounds", error.what, error.remedy)
            continue
        if not name.strip():
            problems.add("bounds", f"{part!r} names no unknown", "write NAME=LOW:HIGH, with units")
    InputError.raise_if_any(problems)
    return bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerances(Shown):
    """Usual sizes of corrections.

    Attributes:
        length, angle, ratio: for parameters in m, rad and plain numbers; others count as a plain
            number times value.
        named: by name of an unknown (or pattern), before the three above, SI.
        priors: patterns of the unknowns whose tolerance is also a prior; ("*",) for all of the
            machine's.
    """

    length: float = TYPICAL["m"]
    angle: float = TYPICAL["rad"]
    ratio: float = TYPICAL["1"]
    named: Mapping[str, float] = field(default_factory=dict)
    priors: tuple[str, ...] = ()

    def of(self, name: str, unit: str, value: float) -> float:
        """Tolerance of an unknown, SI."""
        for pattern, tolerance in self.named.items():
            if fnmatchcase(name, pattern):
                return tolerance
        usual = {"m": self.length, "rad": self.angle, "1": self.ratio}.get(unit)
        return usual if usual is not None else self.ratio * (abs(value) or 1.0)


def select_unknowns(
    mechanism: Mechanism,
    nuisances: Iterable[Nuisance],
    patterns: Iterable[str],
    tolerances: Tolerances,
) -> tuple[Unknown, ...]:
    """Unknowns that patterns name.

    Args:
        mechanism: its leaf parameters with bounds.
        nuisances: nuisance parameters of instruments and encoders.
        patterns: names or shell patterns such as ``track*.length``; ``radius=tower*.radius`` ties
            all that match into one unknown of that name: they get the same correction.
        tolerances: usual sizes of corrections.

    Raises:
        InputError: nothing matches a pattern, a parameter is named twice, or a tie mixes units.
    """
    table = {p.name: p for p in mechanism.parameters}
    other = {n.name: n for n in nuisances}
    known = [*table, *other]
    problems = Problems()
    result: list[Unknown] = []
    taken: dict[str, str] = {}

    def unit_of(name: str) -> str:
        return other[name].unit if name in other else si_unit(table[name].unit)

    def is_picked(name: str) -> bool:
        group = table[name].group
        return group in PICKED_GROUPS and (group == "geometry" or unit_of(name) in _SPOKEN)

    def unknown(name: str, members: tuple[str, ...]) -> Unknown:
        first = members[0]
        value = other[first].value if first in other else table[first].value
        leaves = [table[member] for member in members if member in table]
        is_nuisance = not leaves
        unit = unit_of(first)
        tolerance = tolerances.of(name, unit, value)
        has_prior = any(
            fnmatchcase(name, pattern) and (not is_nuisance or pattern != "*")
            for pattern in tolerances.priors
        )
        return Unknown(
            name=name,
            members=members,
            value=value,
            unit=unit,
            tolerance=tolerance,
            has_prior=has_prior,
            lower=max((leaf.lower - leaf.value for leaf in leaves), default=-np.inf),
            upper=min((leaf.upper - leaf.value for leaf in leaves), default=np.inf),
            is_nuisance=is_nuisance,
        )

    for text in patterns:
        tie, _, pattern = text.rpartition("=")
        tie, pattern = tie.strip(), pattern.strip()
        matches = tuple(
            name
            for name in known
            if name == pattern
            or (fnmatchcase(name, pattern) and (name in other or is_picked(name)))
        )
        if not matches:
            remedy = (
                suggestion(pattern, known)
                or "see `tauloop show MACHINE --table`; nuisance parameters are "
            )
            remedy += "" if remedy.startswith("did") else ", ".join(list(other)[:12]) or "none"
            problems.add(text, "no parameter has this name", remedy)
            continue
        units = {unit_of(name) for name in matches}
        if tie and len(units) > 1:
            problems.add(
                text,
                f"ties parameters in {' and '.join(sorted(units))}",
                "tie parameters of one unit",
            )
            continue
        for name in matches:
            if name in taken:
                problems.add(
                    text, f"{name} is already named by {taken[name]!r}", "name each parameter once"
                )
            taken[name] = text
        result += [unknown(tie, matches)] if tie else [unknown(name, (name,)) for name in matches]
    if not problems and not result:
        problems.add("parameters", "none are named", "name at least one")
    problems += [
        Problem(
            where=u.name, what=f"the tolerance is {u.tolerance:g}", remedy="give a size above zero"
        )
        for u in result
        if not (np.isfinite(u.tolerance) and u.tolerance > 0)
    ]
    InputError.raise_if_any(problems)
    return tuple(result)


def bounded(unknowns: Iterable[Unknown], bounds: Mapping[str, Bounds]) -> tuple[Unknown, ...]:
    """Unknowns whose values must stay within bounds as well as those they had.

    Args:
        unknowns: what is estimated.
        bounds: by name or pattern.

    Raises:
        InputError: nothing matches a pattern, bounds are empty or in another unit, or a start value
            lies outside.
    """
    result = list(unknowns)
    problems = Problems()
    for pattern, bound in bounds.items():
        low, high = bound.lower, bound.upper
        matches = [i for i, unknown in enumerate(result) if fnmatchcase(unknown.name, pattern)]
        where = f"bounds of {pattern}"
        if not matches:
            names = [unknown.name for unknown in result]
            remedy = suggestion(pattern, names) or f"unknowns are {', '.join(names[:12])}"
            problems.add(where, "no unknown has this name", remedy)
        if not low < high:
            problems.add(
                where,
                f"{low:g} to {high:g} is no range",
                "give a lower bound and a larger upper one",
            )
            continue
        for i in matches:
            unknown = result[i]
            if bound.unit and bound.unit != unknown.unit:
                what = f"is {_SPOKEN[bound.unit]}, and {unknown.name} is {_SPOKEN.get(unknown.unit, unknown.unit)}"
                problems.add(where, what, "give both bounds in its unit")
                continue
            if not low <= unknown.value <= high:
                unit = "" if unknown.unit == "1" else f" {unknown.unit}"
                what = f"{unknown.name} starts at {unknown.value:g}{unit}, outside {low:g} to {high:g}{unit}"
                problems.add(where, what, "widen the bounds, or change the machine's value")
            result[i] = replace(
                unknown,
                lower=max(unknown.lower, low - unknown.value),
                upper=min(unknown.upper, high - unknown.value),
            )
    InputError.raise_if_any(problems)
    return tuple(result)
