"""Unknowns of a calibration: independent parameters of the machine and nuisance parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from fnmatch import fnmatchcase

import numpy as np

from tauloop.calibration.measurements.instruments import TYPICAL, Nuisance
from tauloop.common.errors import InputError, Problems
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.options import listed
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.description.units import (
    ANGLE,
    ANGULAR_COMPLIANCE,
    BENDING_STIFFNESS,
    COMPLIANCE,
    EXPANSION,
    FORCE,
    LENGTH,
    ONE,
    PRESSURE,
    STIFFNESSES,
    TEMPERATURE,
    Dimension,
    UnitError,
    interval,
    si_unit,
)
from tauloop.mechanism.expression import Parameter
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import listing, suggestion

#: Dimensions of unknowns and readings, by SI unit.
DIMENSIONS: dict[str, Dimension] = {"m": LENGTH, "rad": ANGLE, "1": ONE}
#: Further dimensions of unknowns: stiffnesses, compliances, expansion and temperatures.
ELASTIC_DIMENSIONS = (
    FORCE,
    *STIFFNESSES,
    COMPLIANCE,
    ANGULAR_COMPLIANCE,
    PRESSURE,
    BENDING_STIFFNESS,
    EXPANSION,
    TEMPERATURE,
)
#: Names of these dimensions in messages, by SI unit.
_DIMENSION_NAMES = {"m": "a length", "rad": "an angle", "1": "a plain number"}
#: Groups of independent parameters that a pattern with * or ? selects. Of drives it selects only
#: those in one of the units above, because poses do not depend on the inertia of a rotor. Other
#: parameters must be named in full.
PICKED_GROUPS = ("geometry", "drive")
#: Parameters of stiffness and expansion stay above this fraction of their value.
SMALLEST_SHARE = 1e-2
#: Names listed in the remedy for an unknown name.
MAX_LISTED_NAMES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """Parameters that share one correction, before and after a fit.

    The attributes are described in `Unknown`.
    """

    name: str
    members: tuple[str, ...]
    unit: str
    tolerance: float
    has_prior: bool = False
    is_nuisance: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(Corrected):
    """One estimated number: a correction that is added to the start values of its members.

    Attributes:
        name: name of the parameter, or the name given to several tied parameters.
        members: parameters that get the correction.
        unit: SI unit: m, rad or 1 (or another).
        tolerance: expected size of the correction, SI: the scale of the problem, the largest standard
            deviation that counts as observable, and the standard deviation of a prior.
        has_prior: whether a prior with mean zero and that standard deviation holds the correction.
        is_nuisance: whether it belongs to an instrument or encoder and not to the machine file.
        value: start value of the first member, SI.
        lower, upper: limits of the correction, SI.
    """

    value: float
    lower: float = -np.inf
    upper: float = np.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Minimum and maximum value of an unknown (for ties, of its first member), SI.

    Attributes:
        lower, upper: the bounds; minus or plus infinity for none.
        unit: m, rad or 1, which must be that of the unknown; empty if not given.
    """

    lower: float = -np.inf
    upper: float = np.inf
    unit: str = ""


def bounds_of(text: str, between: str) -> Bounds:
    """Parse bounds such as ``1.2 m:1.3 m`` or ``:5 deg``; a side that is left out is infinite.

    Args:
        text: the bounds.
        between: separator of both sides.

    Returns:
        The bounds in SI units.

    Raises:
        UnitError: the text does not have two sides, both are left out, they have two units, or a
            side has a dimension that no unknown has.
    """
    bounds = interval(text, between, *DIMENSIONS.values(), *ELASTIC_DIMENSIONS)
    unit = str(bounds.dimension) or "1"
    return Bounds(lower=bounds.lower, upper=bounds.upper, unit=unit)


def read_bounds(texts: str | Iterable[str]) -> dict[str, Bounds]:
    """Parse bounds by unknown from ``NAME=LOW:HIGH``, separated by commas.

    Returns:
        The bounds by unknown, in SI units.

    Raises:
        InputError: items that are not of this form, all at once.
    """
    bounds, problems = {}, Problems()
    for item in listed(texts):
        name, _, limits = item.rpartition("=")
        try:
            bounds[name.strip()] = bounds_of(limits, ":")
        except UnitError as error:
            problems.add("bounds", error.what, error.remedy)
            continue
        if not name.strip():
            problems.add(
                "bounds", f"{item!r} has no name of an unknown", "write NAME=LOW:HIGH, with units"
            )
    InputError.raise_if_any(problems)
    return bounds


#: Units of stiffness: of springs, joints and cables.
ELASTIC_UNITS = frozenset({"N/m", "N m/rad", "N"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerances(ReprMixin):
    """Expected sizes of corrections.

    Attributes:
        length, angle, ratio: sizes for parameters in m, in rad and without dimension. For other
            units the size is `ratio` times the value.
        temperature: size for offsets of thermometers, K.
        elastic: size for parameters of stiffness and expansion, as a fraction of their value.
        named: sizes by name or pattern of an unknown, SI; these override those above.
        priors: patterns of the unknowns whose tolerance is also a prior; ("*",) for all parameters
            of the machine.
    """

    length: float = TYPICAL["m"]
    angle: float = TYPICAL["rad"]
    ratio: float = TYPICAL["1"]
    temperature: float = 1.0
    elastic: float = 0.3
    named: Mapping[str, float] = field(default_factory=dict)
    priors: tuple[str, ...] = ()
    of = old_attribute("of", "tolerance")

    def tolerance(self, name: str, unit: str, value: float, *, is_elastic: bool = False) -> float:
        """Return the tolerance of an unknown, SI; that of an elastic one is relative."""
        for pattern, tolerance in self.named.items():
            if fnmatchcase(name, pattern):
                return tolerance
        if is_elastic or unit in ELASTIC_UNITS:
            return self.elastic * (abs(value) or 1.0)
        sizes = {"m": self.length, "rad": self.angle, "1": self.ratio, "K": self.temperature}
        usual = sizes.get(unit)
        return usual if usual is not None else self.ratio * (abs(value) or 1.0)


def select_unknowns(
    mechanism: Mechanism,
    nuisances: Iterable[Nuisance],
    patterns: Iterable[str],
    tolerances: Tolerances,
    *,
    relative: Collection[str] = (),
) -> tuple[Unknown, ...]:
    """Return the unknowns that patterns select.

    Args:
        mechanism: the machine with its independent parameters and their bounds.
        nuisances: nuisance parameters of instruments and encoders.
        patterns: names or shell patterns such as ``track*.length``; ``radius=tower*.radius`` ties
            all matches into one unknown of that name, so that they get the same correction.
        tolerances: usual sizes of corrections.
        relative: parameters of stiffness and expansion, which patterns select too. Their tolerance
            is relative, and they stay above zero.

    Raises:
        InputError: nothing matches a pattern, a parameter is named twice, or a tie mixes units.
    """
    parameters = {p.name: p for p in mechanism.parameters}
    nuisance_of = {n.name: n for n in nuisances}
    problems = Problems()
    result: list[Unknown] = []
    pattern_of: dict[str, str] = {}

    def unit_of(name: str) -> str:
        return nuisance_of[name].unit if name in nuisance_of else si_unit(parameters[name].unit)

    def matches(name: str, pattern: str) -> bool:
        if name == pattern:
            return True
        if not fnmatchcase(name, pattern):
            return False
        if name in nuisance_of or name in relative:
            return True
        group = parameters[name].group
        return group == "geometry" or (group in PICKED_GROUPS and unit_of(name) in _DIMENSION_NAMES)

    def lower_of(parameter: Parameter) -> float:
        is_positive = parameter.name in relative and parameter.value > 0.0
        least = SMALLEST_SHARE * parameter.value if is_positive else -np.inf
        return max(least, parameter.lower)

    def unknown(name: str, members: tuple[str, ...]) -> Unknown:
        first = members[0]
        value = nuisance_of[first].value if first in nuisance_of else parameters[first].value
        machine_members = [parameters[member] for member in members if member in parameters]
        is_nuisance = not machine_members
        unit = unit_of(first)
        is_elastic = first in relative
        tolerance = tolerances.tolerance(name, unit, value, is_elastic=is_elastic)
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
            lower=max((lower_of(p) - p.value for p in machine_members), default=-np.inf),
            upper=min((p.upper - p.value for p in machine_members), default=np.inf),
            is_nuisance=is_nuisance,
        )

    for text in patterns:
        tie, _, pattern = text.rpartition("=")
        tie, pattern = tie.strip(), pattern.strip()
        members = tuple(name for name in (*parameters, *nuisance_of) if matches(name, pattern))
        if not members:
            elastic = [
                p.name
                for p in parameters.values()
                if p.group == "elasticity" and fnmatchcase(p.name, pattern)
            ]
            if elastic:
                problems.add(text, *_without_conditions(elastic))
                continue
            remedy = _similar_names(pattern, list(parameters), list(nuisance_of))
            problems.add(text, "no parameter has this name", remedy)
            continue
        units = {unit_of(name) for name in members}
        if tie and len(units) > 1:
            problems.add(
                text,
                f"ties parameters in {' and '.join(sorted(units))}",
                "tie parameters of one unit",
            )
            continue
        for name in members:
            if name in pattern_of:
                problems.add(
                    text,
                    f"{name} is already named by {pattern_of[name]!r}",
                    "name each parameter once",
                )
            pattern_of[name] = text
        if tie:
            result.append(unknown(tie, members))
        else:
            result += [unknown(name, (name,)) for name in members]
    if not problems and not result:
        problems.add("parameters", "none is selected", "give at least one name or pattern")
    for item in result:
        if not (np.isfinite(item.tolerance) and item.tolerance > 0):
            size = f"the tolerance is {item.tolerance:g}"
            problems.add(item.name, size, "give a size above zero")
    InputError.raise_if_any(problems)
    return tuple(result)


def _without_conditions(names: list[str]) -> tuple[str, str]:
    """Return problem and remedy of a pattern of elastic parameters that no series makes identifiable."""
    what = (
        f"matches only elastic parameters ({listing(names, 3)}), and no series has load columns or "
        "temperatures that make them identifiable"
    )
    remedy = (
        "measure under known loads, in columns load.fx ... load.mz, or at known temperatures of "
        "parts, in columns temperature.PART"
    )
    return what, remedy


def _similar_names(pattern: str, parameters: list[str], nuisances: list[str]) -> str:
    """Return the remedy for a pattern that no parameter matches."""
    similar = suggestion(pattern, [*parameters, *nuisances])
    if similar:
        return similar
    listed_nuisances = ", ".join(nuisances[:MAX_LISTED_NAMES]) or "none"
    return f"see `tauloop show MACHINE --table`; nuisance parameters are {listed_nuisances}"


def bounded(unknowns: Iterable[Unknown], bounds: Mapping[str, Bounds]) -> tuple[Unknown, ...]:
    """Return unknowns with additional bounds on their values.

    Args:
        unknowns: the unknowns of a calibration.
        bounds: bounds by name or pattern.

    Raises:
        InputError: nothing matches a pattern, bounds are empty or in another unit, or a start value
            is outside.
    """
    result = list(unknowns)
    problems = Problems()
    for pattern, bound in bounds.items():
        low, high = bound.lower, bound.upper
        matches = [i for i, unknown in enumerate(result) if fnmatchcase(unknown.name, pattern)]
        where = f"bounds of {pattern}"
        if not matches:
            names = [unknown.name for unknown in result]
            remedy = (
                suggestion(pattern, names) or f"unknowns are {', '.join(names[:MAX_LISTED_NAMES])}"
            )
            problems.add(where, "does not match the name of any unknown", remedy)
        if not low < high:
            problems.add(
                where,
                f"{low:g} to {high:g} is an empty range",
                "give a lower bound and a larger upper one",
            )
            continue
        for i in matches:
            unknown = result[i]
            if bound.unit and bound.unit != unknown.unit:
                dimension = _DIMENSION_NAMES.get(unknown.unit, unknown.unit)
                mismatch = f"is {_DIMENSION_NAMES.get(bound.unit, bound.unit)}, and {unknown.name} is {dimension}"
                problems.add(where, mismatch, "give both bounds in its unit")
                continue
            if not low <= unknown.value <= high:
                unit = "" if unknown.unit == "1" else f" {unknown.unit}"
                mismatch = (
                    f"{unknown.name} starts at {unknown.value:g}{unit}, "
                    f"outside {low:g} to {high:g}{unit}"
                )
                problems.add(where, mismatch, "widen the bounds, or change the machine's value")
            result[i] = replace(
                unknown,
                lower=max(unknown.lower, low - unknown.value),
                upper=min(unknown.upper, high - unknown.value),
            )
    InputError.raise_if_any(problems)
    return tuple(result)
