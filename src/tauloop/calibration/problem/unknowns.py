"""Unknowns of a calibration: independent parameters of the machine and nuisance parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from fnmatch import fnmatchcase

import numpy as np

from tauloop.calibration.measurements.instruments import TYPICAL_CORRECTIONS, Nuisance
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
#: Additional dimensions of unknowns: stiffnesses, compliances, expansion and temperatures.
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
#: Names of the dimensions in messages, by SI unit.
_DIMENSION_NAMES = {"m": "a length", "rad": "an angle", "1": "a plain number"}
#: Groups of independent parameters that a pattern with * or ? selects. In the group of drives it
#: selects only parameters with a unit in `DIMENSIONS`, because poses do not depend on the inertia
#: of a rotor. Other parameters must be named in full.
PICKED_GROUPS = ("geometry", "drive")
#: Parameters of stiffness and expansion are at least this fraction of their nominal value.
MIN_ELASTIC_FRACTION = 1e-2
#: Maximum number of names listed in the remedy for an unknown name.
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
        members: parameters to which the correction is added.
        unit: SI unit, such as m, rad or 1.
        tolerance: expected magnitude of the correction, SI. It is the scale of the unknown, the
            largest standard deviation that counts as observable, and the standard deviation of a
            prior.
        has_prior: whether the correction has a prior with mean zero and the tolerance as standard
            deviation.
        is_nuisance: whether the unknown belongs to an instrument or encoder and not to the machine
            file.
        value: start value of the first member, SI.
        lower: lower bound of the correction, SI.
        upper: upper bound of the correction, SI.
    """

    value: float
    lower: float = -np.inf
    upper: float = np.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Minimum and maximum value of an unknown (for ties, of its first member), SI.

    Attributes:
        lower, upper: the bounds; minus or plus infinity if there is none.
        unit: m, rad or 1; it must be the unit of the unknown. Empty if not given.
    """

    lower: float = -np.inf
    upper: float = np.inf
    unit: str = ""


def bounds_of(text: str, between: str) -> Bounds:
    """Parse bounds such as ``1.2 m:1.3 m`` or ``:5 deg``; an omitted side is infinite.

    Args:
        text: the bounds.
        between: separator of both sides.

    Returns:
        The bounds in SI units.

    Raises:
        UnitError: the text does not have two sides, both are empty, they have different units, or
            no unknown has the dimension of a side.
    """
    bounds = interval(text, between, *DIMENSIONS.values(), *ELASTIC_DIMENSIONS)
    unit = str(bounds.dimension) or "1"
    return Bounds(lower=bounds.lower, upper=bounds.upper, unit=unit)


def read_bounds(texts: str | Iterable[str]) -> dict[str, Bounds]:
    """Parse bounds by unknown from ``NAME=LOW:HIGH``, separated by commas.

    Returns:
        The bounds by unknown, in SI units.

    Raises:
        InputError: items do not have this form; lists all of them.
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
    """Tolerances: expected magnitudes of corrections.

    Attributes:
        length: tolerance of lengths, m.
        angle: tolerance of angles, rad.
        ratio: tolerance of dimensionless parameters. For units that are not listed here, the
            tolerance is `ratio` times the value.
        temperature: tolerance of thermometer offsets, K.
        elastic: tolerance of parameters of stiffness and expansion, as a fraction of their value.
        named: tolerances by name or pattern of an unknown, SI; they override all others.
        priors: patterns of the unknowns whose tolerance is also a prior; ("*",) for all parameters
            of the machine.
    """

    length: float = TYPICAL_CORRECTIONS["m"]
    angle: float = TYPICAL_CORRECTIONS["rad"]
    ratio: float = TYPICAL_CORRECTIONS["1"]
    temperature: float = 1.0
    elastic: float = 0.3
    named: Mapping[str, float] = field(default_factory=dict)
    priors: tuple[str, ...] = ()
    of = old_attribute("of", "tolerance")

    def tolerance(self, name: str, unit: str, value: float, *, is_elastic: bool = False) -> float:
        """Return the tolerance of an unknown, SI; for elastic parameters it is relative."""
        for pattern, tolerance in self.named.items():
            if fnmatchcase(name, pattern):
                return tolerance
        if is_elastic or unit in ELASTIC_UNITS:
            return self.elastic * (abs(value) or 1.0)
        by_unit = {"m": self.length, "rad": self.angle, "1": self.ratio, "K": self.temperature}
        if unit in by_unit:
            return by_unit[unit]
        return self.ratio * (abs(value) or 1.0)


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
            all matches to one unknown with the name on the left, so that they have the same
            correction.
        tolerances: expected magnitudes of corrections.
        relative: parameters of stiffness and expansion, which patterns select too. Their tolerance
            is relative, and their lower bound is above zero.

    Raises:
        InputError: nothing matches a pattern, a parameter is named twice, or a tie mixes units.
    """
    selectable = _SelectableParameters(
        parameters={p.name: p for p in mechanism.parameters},
        nuisances={n.name: n for n in nuisances},
        tolerances=tolerances,
        relative=relative,
    )
    problems = Problems()
    result: list[Unknown] = []
    pattern_of: dict[str, str] = {}
    for text in patterns:
        tie, _, pattern = text.rpartition("=")
        tie, pattern = tie.strip(), pattern.strip()
        members = selectable.matches(pattern)
        if not members:
            problems.add(text, *selectable.problem_without_match(pattern))
            continue
        units = {selectable.unit(name) for name in members}
        if tie and len(units) > 1:
            problems.add(
                text,
                f"ties parameters in {' and '.join(sorted(units))}",
                "tie only parameters with the same unit",
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
            result.append(selectable.unknown(tie, members))
        else:
            result += [selectable.unknown(name, (name,)) for name in members]
    if not problems and not result:
        problems.add("parameters", "none is selected", "give at least one name or pattern")
    for item in result:
        if not (np.isfinite(item.tolerance) and item.tolerance > 0):
            what = f"the tolerance is {item.tolerance:g}"
            problems.add(item.name, what, "give a positive tolerance")
    InputError.raise_if_any(problems)
    return tuple(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SelectableParameters:
    """The parameters from which patterns select unknowns.

    Attributes:
        parameters: independent parameters of the machine, by name.
        nuisances: nuisance parameters, by name.
        tolerances: expected magnitudes of corrections.
        relative: names of parameters of stiffness and expansion, whose tolerance is relative.
    """

    parameters: Mapping[str, Parameter]
    nuisances: Mapping[str, Nuisance]
    tolerances: Tolerances
    relative: Collection[str]

    def unit(self, name: str) -> str:
        """Return the SI unit of a parameter."""
        if name in self.nuisances:
            return self.nuisances[name].unit
        return si_unit(self.parameters[name].unit)

    def matches(self, pattern: str) -> tuple[str, ...]:
        """Return the names of the parameters that match a name or pattern."""
        names = (*self.parameters, *self.nuisances)
        return tuple(name for name in names if self._is_match(name, pattern))

    def _is_match(self, name: str, pattern: str) -> bool:
        if name == pattern:
            return True
        if not fnmatchcase(name, pattern):
            return False
        if name in self.nuisances or name in self.relative:
            return True
        group = self.parameters[name].group
        if group == "geometry":
            return True
        return group in PICKED_GROUPS and self.unit(name) in _DIMENSION_NAMES

    def problem_without_match(self, pattern: str) -> tuple[str, str]:
        """Return problem and remedy of a pattern that does not match any parameter."""
        elastic = [
            parameter.name
            for parameter in self.parameters.values()
            if parameter.group == "elasticity" and fnmatchcase(parameter.name, pattern)
        ]
        if elastic:
            return _without_conditions(elastic)
        remedy = _similar_names(pattern, list(self.parameters), list(self.nuisances))
        return "no parameter has this name", remedy

    def unknown(self, name: str, members: tuple[str, ...]) -> Unknown:
        """Return the unknown of some parameters that have the same correction."""
        first = members[0]
        is_nuisance = first in self.nuisances
        value = self.nuisances[first].value if is_nuisance else self.parameters[first].value
        machine_members = [
            self.parameters[member] for member in members if member in self.parameters
        ]
        belongs_to_machine = bool(machine_members)
        unit = self.unit(first)
        tolerance = self.tolerances.tolerance(name, unit, value, is_elastic=first in self.relative)
        has_prior = any(
            fnmatchcase(name, pattern) and (belongs_to_machine or pattern != "*")
            for pattern in self.tolerances.priors
        )
        return Unknown(
            name=name,
            members=members,
            value=value,
            unit=unit,
            tolerance=tolerance,
            has_prior=has_prior,
            lower=max((self._lower(p) - p.value for p in machine_members), default=-np.inf),
            upper=min((p.upper - p.value for p in machine_members), default=np.inf),
            is_nuisance=not belongs_to_machine,
        )

    def _lower(self, parameter: Parameter) -> float:
        """Return the lower bound of a parameter's value; above zero for elastic parameters."""
        is_positive = parameter.name in self.relative and parameter.value > 0.0
        minimum = MIN_ELASTIC_FRACTION * parameter.value if is_positive else -np.inf
        return max(minimum, parameter.lower)


def _without_conditions(names: list[str]) -> tuple[str, str]:
    """Return problem and remedy of a pattern that matches only elastic parameters without loads."""
    what = (
        f"matches only elastic parameters ({listing(names, 3)}), but no series has load columns or "
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
                suggestion(pattern, names) or f"choose among {', '.join(names[:MAX_LISTED_NAMES])}"
            )
            problems.add(where, "does not match the name of any unknown", remedy)
        if not low < high:
            problems.add(
                where,
                f"{low:g} to {high:g} is an empty range",
                "give a lower bound that is smaller than the upper bound",
            )
            continue
        for i in matches:
            unknown = result[i]
            if bound.unit and bound.unit != unknown.unit:
                dimension = _DIMENSION_NAMES.get(unknown.unit, unknown.unit)
                mismatch = f"is {_DIMENSION_NAMES.get(bound.unit, bound.unit)}, but {unknown.name} is {dimension}"
                problems.add(where, mismatch, "give both bounds in the unit of this unknown")
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
