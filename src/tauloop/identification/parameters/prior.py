"""Comparison of estimates with the machine file: wrong units and impossible masses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import Problem, Problems
from tauloop.common.records import dataclass
from tauloop.identification.estimation.result import Identification
from tauloop.identification.parameters.consistency import ConsistentIdentification
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.mechanism.description.units import parse_unit
from tauloop.mechanism.suggestions import listing
from tauloop.model import Model

#: A shared factor indicates a wrong unit if it or its inverse is at least this large. Wrong values
#: in a file usually have smaller factors.
MIN_FACTOR = 3.0
#: A ratio agrees with a shared factor f if it differs from f by a factor of at most f to this
#: power: 1.44 for f = 3, and 10 for f = 1000.
AGREEMENT_POWER = 1.0 / 3.0
#: Minimum number of ratios that agree with a shared factor.
MIN_SHARED = 3
#: Minimum fraction of all ratios that agree with a shared factor.
MIN_AGREEING_FRACTION = 0.6
#: An estimate is close to the file's value if they differ by less than this factor.
NEAR_FILE_FACTOR = 1.3
#: A parameter is compared only if its relative standard deviation is below this value.
MAX_RELATIVE_DEVIATION = 0.3
#: A parameter is compared only if its value in the file is at least this fraction of the sum of its
#: terms' absolute values. Otherwise the value is a small difference of large terms.
MIN_SUM_FRACTION = 0.3
#: A positive quantity is impossible if it is below zero by this number of standard deviations.
MIN_SIGNIFICANCE = 5.0
#: It must also be below zero by this fraction of the value in the file.
MIN_NEGATIVE_FRACTION = 0.1
#: A mass is impossible if it exceeds the sum of all masses in the file by this factor.
MAX_MASS_RATIO = 10.0
#: Factors of common unit mistakes, with their explanation.
UNIT_FACTORS = {
    1e-3: "kilo units read without the prefix",
    1e3: "milli units read without the prefix",
    1e-6: "mega units read without the prefix",
    1e6: "micro units read without the prefix",
    np.pi / 180.0: "degrees read as radians",
    180.0 / np.pi: "radians read as degrees",
    9.80665: "N read as kgf",
    1.0 / 9.80665: "kgf read as N",
    4.4482216: "N read as lbf",
    1.0 / 4.4482216: "lbf read as N",
    1e2: "centi units read without the prefix",
    1e-2: "hecto units read without the prefix",
}
#: A shared factor is attributed to a unit mistake if it agrees with its factor up to this ratio.
UNIT_FACTOR_TOLERANCE = 1.15
#: Roles of inertial parameters that cannot be negative.
POSITIVE_ROLES = ("m", "Ixx", "Iyy", "Izz", "J", "inertia")
INERTIAL_DIMENSIONS = ("kg", "kg m", "kg m^2")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PriorComparison:
    """Base parameters of an identification compared with those of the machine file.

    Attributes:
        names: names of the r base parameters.
        values, standard_deviations: (r,) estimates, SI.
        prior: (r,) values in the machine file, SI; NaN if the file has none.
        comparable: (r,) True for parameters with a meaningful ratio. Their relative standard
            deviation is below 30 %, and they are not small differences of large terms in the file.
        findings: a finding if many ratios share a factor, and findings on impossible masses and
            inertias.
    """

    names: tuple[str, ...]
    values: np.ndarray
    standard_deviations: np.ndarray
    prior: np.ndarray
    comparable: np.ndarray
    findings: tuple[Problem, ...] = ()

    @property
    def ratios(self) -> np.ndarray:
        """Ratios (r,) of estimates to values in the machine file; NaN if not comparable."""
        values = np.full(len(self.values), np.nan)
        values[self.comparable] = self.values[self.comparable] / self.prior[self.comparable]
        return values

    @property
    def remarks(self) -> tuple[str, ...]:
        """A sentence on the agreement with the machine file; empty if nothing is comparable."""
        compared = np.flatnonzero(self.comparable)
        ratios = self.ratios[compared]
        if not len(ratios):
            return ()
        near = int(np.sum((ratios > 1.0 / NEAR_FILE_FACTOR) & (ratios < NEAR_FILE_FACTOR)))
        distances = np.abs(np.log(np.maximum(np.abs(ratios), np.finfo(float).tiny)))
        farthest = int(np.argmax(distances))
        name = self.names[compared[farthest]]
        return (
            f"{near} of the {len(ratios)} comparable base parameters are within a factor of {NEAR_FILE_FACTOR:g} of "
            f"their values in the machine file; {name} differs most (ratio {ratios[farthest]:.3g})",
        )

    def rows(self) -> list[dict[str, object]]:
        """Return one entry for every base parameter, as plain data."""
        return [
            {
                "name": name,
                "value": float(self.values[k]),
                "standard_deviation": float(self.standard_deviations[k]),
                "machine_file": None if np.isnan(self.prior[k]) else float(self.prior[k]),
                "ratio": None if np.isnan(self.ratios[k]) else float(self.ratios[k]),
            }
            for k, name in enumerate(self.names)
        ]


def prior_values(model: Model, unknowns: Sequence[str]) -> np.ndarray:
    """Return the machine file's values (n,), SI, of unknowns of a regression.

    Unknowns that are not in the file have the value NaN.
    """
    values = {parameter.name: parameter.value for parameter in model.mechanism.parameters}
    names = (parameter.name for parameter in model.parameters)
    values |= dict(zip(names, model.pi, strict=True))
    return np.array([values.get(name, np.nan) for name in unknowns])


def compare_with_prior(
    model: Model, result: Identification, unknowns: Sequence[str]
) -> PriorComparison:
    """Return the comparison of an identification with the machine file.

    The comparison uses the ratios of estimates to values in the file. Let f be the median of the
    comparable ratios. It is a shared factor if at least three ratios, and 60 % of all ratios, agree
    with f up to the factor f^(1/3), and if f is at least 3 or at most 1/3. The test is made for all
    base parameters, and then only for inertial base parameters, because friction in a file can be a
    guess. Sums of masses or moments of inertia cannot be negative, and a mass cannot be ten times
    the total mass in the file.

    Args:
        model: the machine with the values of its file.
        result: the identification.
        unknowns: unknowns of its regression data, `RegressionData.unknowns`.
    """
    base = result.base
    values = result.values
    deviations = result.standard_deviations
    file_values = prior_values(model, unknowns)
    is_named = _named_parameters(base)
    coefficients = np.where(is_named, base.regrouping, 0.0)
    sums = coefficients @ np.nan_to_num(file_values)
    magnitudes = np.abs(coefficients) @ np.abs(np.nan_to_num(file_values))
    prior = np.where((is_named & np.isnan(file_values)).any(axis=1), np.nan, sums)
    with np.errstate(invalid="ignore"):
        is_well_conditioned = np.abs(prior) > MIN_SUM_FRACTION * magnitudes
        is_determined = deviations < MAX_RELATIVE_DEVIATION * np.abs(values)
        comparable = is_well_conditioned & is_determined & (prior != 0.0)
    comparison = PriorComparison(
        names=tuple(parameter.short_name() for parameter in base.base),
        values=values,
        standard_deviations=deviations,
        prior=prior,
        comparable=comparable,
    )
    inertial = np.array(
        [_dimension(parameter.unit) in INERTIAL_DIMENSIONS for parameter in base.base]
    )
    findings = _shared_factor(comparison, comparable, "base parameters")
    findings = findings or _shared_factor(
        comparison, comparable & inertial, "inertial base parameters"
    )
    # A wrong unit causes impossible masses, so these are not reported in addition to the unit.
    return replace(comparison, findings=findings or _impossible_values(model, base, comparison))


def runaway_masses(physical: ConsistentIdentification) -> tuple[Problem, ...]:
    """Return a problem for each body with at least ten times its mass in the machine file.

    Such a mass in a physically consistent identification shows that the weight of the prior is too
    small, and that the forces do not determine the mass or have a wrong unit.
    """
    regularized = {body.element for body in physical.regularized}
    problems = Problems()
    for cone in physical.cones:
        if not cone.is_inertial or cone.element in regularized:
            continue
        mass, prior = cone.mass(physical.parameters), cone.mass(physical.prior)
        if mass > MAX_MASS_RATIO * prior > 0.0:
            problems.add(
                f"mass of {cone.element}",
                f"is estimated as {mass:.4g} kg, {mass / prior:.3g} times its value in the machine file "
                f"({prior:.4g} kg)",
                "check the units of the log and of the machine file; increase the weight of the prior",
            )
    return tuple(problems)


def _shared_factor(
    comparison: PriorComparison, compared: np.ndarray, description: str
) -> tuple[Problem, ...]:
    """Return a finding if most of the compared ratios share a factor far from 1."""
    indices = np.flatnonzero(compared)
    if len(indices) < MIN_SHARED:
        return ()
    values, prior = comparison.values[indices], comparison.prior[indices]
    ratios = values / prior
    factor = float(np.median(ratios))
    if not factor > 0.0 or 1.0 / MIN_FACTOR < factor < MIN_FACTOR:
        return ()
    distances = np.abs(np.log(np.abs(ratios) / factor))
    agree = (ratios > 0.0) & (distances <= AGREEMENT_POWER * abs(np.log(factor)))
    if agree.sum() < max(MIN_SHARED, MIN_AGREEING_FRACTION * len(indices)):
        return ()
    units = [
        f", such as {text}"
        for size, text in UNIT_FACTORS.items()
        if max(size / factor, factor / size) < UNIT_FACTOR_TOLERANCE
    ]
    examples = (
        f"{comparison.names[indices[k]]} {values[k]:.4g} instead of {prior[k]:.4g}"
        for k in np.flatnonzero(agree)[:3]
    )
    return (
        Problem(
            "forces",
            f"{agree.sum()} of {len(indices)} {description} are {factor:.4g} times their value in the machine file "
            f"({listing(examples)}): a factor shared by most parameters indicates a wrong unit or scale"
            + (units[0] if units else ""),
            "check the units of forces, positions and time in the log and in the machine file, and torque constants "
            "and gears; use --gains if the scale of the forces is unknown",
        ),
    )


def _impossible_values(
    model: Model, base: BaseParameters, comparison: PriorComparison
) -> tuple[Problem, ...]:
    """Return problems for negative sums of masses or moments of inertia, and for large masses."""
    total_mass = sum(
        value
        for parameter, value in zip(model.parameters, model.pi, strict=True)
        if parameter.role == "m"
    )
    masses = {
        parameter.name
        for parameter in model.mechanism.parameters
        if parameter.group == "inertia" and _dimension(parameter.unit) == "kg"
    }
    positive = masses | {
        parameter.name
        for parameter in model.parameters
        if parameter.group == "inertia" and parameter.role in POSITIVE_ROLES
    }
    problems = Problems()
    is_named = _named_parameters(base)
    for k, parameter in enumerate(base.base):
        row = base.regrouping[k]
        terms = np.flatnonzero(is_named[k])
        if any(base.parameters[j] not in positive or row[j] < 0.0 for j in terms):
            continue
        value, deviation = comparison.values[k], comparison.standard_deviations[k]
        file_value, unit = comparison.prior[k], _dimension(parameter.unit)
        size = abs(file_value) if np.isfinite(file_value) else 0.0
        margin = MIN_SIGNIFICANCE * deviation
        is_too_heavy = unit == "kg" and 0.0 < MAX_MASS_RATIO * total_mass < value - margin
        is_negative = value < -margin and value < -MIN_NEGATIVE_FRACTION * size
        if not is_too_heavy and not is_negative:
            continue
        stated = "not in the machine file"
        if np.isfinite(file_value):
            stated = f"{file_value:.4g} {unit} in the machine file"
        reason = "a sum of masses or moments of inertia cannot be negative"
        if is_too_heavy:
            reason = f"the total mass in the file is {total_mass:.4g} kg"
        problems.add(
            comparison.names[k],
            f"is estimated as {value:.4g} {unit} (standard deviation {deviation:.2g}; {stated}), which is "
            f"impossible: {reason}",
            "check units, signs and time stamps of the columns, and whether the model lacks an effect; --consistent "
            "keeps bodies physically possible",
        )
    return tuple(problems)


def _named_parameters(base: BaseParameters) -> np.ndarray:
    """Return a mask (r, n) of the parameters in the name of each base parameter.

    Parameters that are not in the name have coefficients of the size of rounding errors.
    """
    is_named = np.zeros((len(base.base), len(base.parameters)), dtype=bool)
    for row, combination in zip(is_named, base.base, strict=True):
        names = {combination.representative, *(term.parameter for term in combination.terms)}
        row[:] = [name in names for name in base.parameters]
    return is_named


def _dimension(unit: str) -> str:
    """Return the dimension of a unit as a text in SI base units."""
    return str(parse_unit(unit or "1").dimension)
