"""Estimates beside the values of the machine file: a factor that many share is a unit, and some masses cannot be."""

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

#: A factor is that of a unit from here on, either way: files that say by how much a link is heavier
#: err by less.
FACTOR = 3.0
#: Ratios agree with a shared factor that differ from it by less than this power of it: by 1.44 with
#: a factor of 3, by 10 with 1000. So many, and such a share of all, must.
POWER, FEWEST, SHARE = 1.0 / 3.0, 3, 0.6
#: An estimate is near the file's value within this factor.
NEAR_FILE = 1.3
#: Compared are parameters that are known to this share, and whose value in the file is no small
#: difference of large terms: at least this share of their sum.
KNOWN, SUBTRACTED = 0.3, 0.3
#: What cannot be negative is impossible when it is so by this many standard deviations, and by this
#: share of the value in the file; a mass when it is so many times all masses of the file together.
CERTAIN, NEGATIVE, TOO_HEAVY = 5.0, 0.1, 10.0
#: Factors that units make.
UNITS = {
    1e-3: "k for what is in the unit itself",
    1e3: "milli for what is in the unit itself",
    1e-6: "M for what is in the unit itself",
    1e6: "micro for what is in the unit itself",
    np.pi / 180.0: "degrees for what is in radians",
    180.0 / np.pi: "radians for what is in degrees",
    9.80665: "N for what is in kgf",
    1.0 / 9.80665: "kgf for what is in N",
    4.4482216: "N for what is in lbf",
    1.0 / 4.4482216: "lbf for what is in N",
    1e2: "centi for what is in the unit itself",
    1e-2: "hundreds for what is in the unit itself",
}
#: A shared factor is that of a unit when it is as near to it as this factor.
NEAR = 1.15
#: Parts of inertial parameters that cannot be negative, by the last part of their names.
POSITIVE = ("m", "Ixx", "Iyy", "Izz", "J", "inertia")
INERTIAL = ("kg", "kg m", "kg m^2")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PriorComparison:
    """Base parameters of an identification beside those of the machine file.

    Attributes:
        names: of the r base parameters.
        values, standard_deviations: (r,) estimates, SI.
        prior: (r,) of the machine file, SI; NaN where it says nothing.
        comparable: (r,) whose ratio means something: known to 30 %, and no small difference in the
            file.
        findings: a factor that many share; masses and inertias that no body can have.
    """

    names: tuple[str, ...]
    values: np.ndarray
    standard_deviations: np.ndarray
    prior: np.ndarray
    comparable: np.ndarray
    findings: tuple[Problem, ...] = ()

    @property
    def ratios(self) -> np.ndarray:
        """(r,) estimate over machine file; NaN where they do not compare."""
        values = np.full(len(self.values), np.nan)
        values[self.comparable] = self.values[self.comparable] / self.prior[self.comparable]
        return values

    @property
    def remarks(self) -> tuple[str, ...]:
        """How near the estimates are to the machine file, in one sentence; nothing where nothing compares."""
        ratios = self.ratios[self.comparable]
        if not len(ratios):
            return ()
        near = int(np.sum((ratios > 1.0 / NEAR_FILE) & (ratios < NEAR_FILE)))
        far = int(np.argmax(np.abs(np.log(np.maximum(np.abs(ratios), np.finfo(float).tiny)))))
        name = [
            name
            for name, is_comparable in zip(self.names, self.comparable, strict=True)
            if is_comparable
        ][far]
        return (
            f"beside the machine file: {near} of the {len(ratios)} base parameters that compare are within a factor of "
            f"{NEAR_FILE:g} of it; farthest is {name}, {ratios[far]:.3g} times",
        )

    def rows(self) -> list[dict[str, object]]:
        """One entry for every base parameter, as plain data."""
        columns = {
            "name": self.names,
            "value": self.values.tolist(),
            "standard_deviation": self.standard_deviations.tolist(),
            "machine_file": [None if np.isnan(value) else value for value in self.prior.tolist()],
            "ratio": [None if np.isnan(value) else value for value in self.ratios.tolist()],
        }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def prior_values(model: Model, unknowns: Sequence[str]) -> np.ndarray:
    """Values (n,), SI, that the machine file has for unknowns of a regression; NaN for those that it does not know."""
    known = dict(zip((parameter.name for parameter in model.parameters), model.pi, strict=True))
    leaves = {parameter.name: parameter.value for parameter in model.mechanism.parameters}
    return np.array([known.get(name, leaves.get(name, np.nan)) for name in unknowns])


def compare_with_prior(
    model: Model, result: Identification, unknowns: Sequence[str]
) -> PriorComparison:
    """Compare an identification with the machine file.

    A factor f is shared when, of the ratios of estimate to file value that mean something, at least
    three and 60 % agree with their median f (to its cube root) and f is 3 or more, or 1/3 or less;
    asked of all base parameters, then of the inertial ones alone (a file's friction may be a
    guess). What is a sum of masses or moments of inertia cannot be negative, nor a mass ten times
    as heavy as all that the file has.

    Args:
        model: the machine as its file has it.
        result: the identification.
        unknowns: of its regression data, as in `RegressionData.unknowns`.
    """
    base, values, deviations = result.base, result.values, result.standard_deviations
    stated = prior_values(model, unknowns)
    used = _used(base)
    named = np.where(used, base.regrouping, 0.0)
    sums, sizes = named @ np.nan_to_num(stated), np.abs(named) @ np.abs(np.nan_to_num(stated))
    prior = np.where((used & np.isnan(stated)).any(axis=1), np.nan, sums)
    with np.errstate(invalid="ignore"):
        comparable = (
            (np.abs(prior) > SUBTRACTED * sizes)
            & (deviations < KNOWN * np.abs(values))
            & (prior != 0.0)
        )
    comparison = PriorComparison(
        names=tuple(parameter.short_name() for parameter in base.base),
        values=values,
        standard_deviations=deviations,
        prior=prior,
        comparable=comparable,
    )
    inertial = np.array([_dimension(parameter.unit) in INERTIAL for parameter in base.base])
    findings = _shared(comparison, comparable, "base parameters")
    findings = findings or _shared(comparison, comparable & inertial, "inertial base parameters")
    # what is in another unit has impossible masses by that
    return replace(comparison, findings=findings or _impossible(model, base, comparison))


def runaway_masses(physical: ConsistentIdentification) -> tuple[Problem, ...]:
    """Bodies of a physically consistent identification that are ten times as heavy as in the machine file, or more.

    The forces then do not tell the mass, or are in another unit, and the prior's weight is too
    small to hold it.
    """
    unsure = {body.element for body in physical.regularised}
    masses = (
        (cone.element, cone.mass(physical.parameters), cone.mass(physical.prior))
        for cone in physical.cones
        if cone.is_inertial and cone.element not in unsure
    )
    return tuple(
        Problem(
            f"mass of {element}",
            f"comes out as {mass:.4g} kg, {mass / prior:.3g} times the {prior:.4g} kg of the machine file",
            "look at the units of the log and of the machine file; give the prior more weight",
        )
        for element, mass, prior in masses
        if mass > TOO_HEAVY * prior > 0.0
    )


def _shared(beside: PriorComparison, compared: np.ndarray, what: str) -> tuple[Problem, ...]:
    """A finding where most ratios are one factor far from one."""
    at = np.flatnonzero(compared)
    if len(at) < FEWEST:
        return ()
    values, prior = beside.values[at], beside.prior[at]
    ratios = values / prior
    factor = float(np.median(ratios))
    if not factor > 0.0 or 1.0 / FACTOR < factor < FACTOR:
        return ()
    agree = (ratios > 0.0) & (
        np.abs(np.log(np.abs(ratios) / factor)) <= POWER * abs(np.log(factor))
    )
    if agree.sum() < max(FEWEST, SHARE * len(at)):
        return ()
    unit = next(
        (text for size, text in UNITS.items() if max(size / factor, factor / size) < NEAR), ""
    )
    examples = (
        f"{beside.names[at[k]]} {values[k]:.4g} for {prior[k]:.4g}"
        for k in np.flatnonzero(agree)[:3]
    )
    return (
        Problem(
            "forces",
            f"{agree.sum()} of {len(at)} {what} are {factor:.4g} times what the machine file says "
            f"({listing(examples)}): a factor that so many share is a unit or a scale"
            + (f", such as {unit}" if unit else ""),
            "look at the units of forces, positions and time in the log and of the machine file, and at torque "
            "constants and gears; --gains where the scale is unknown",
        ),
    )


def _impossible(model: Model, base: BaseParameters, beside: PriorComparison) -> tuple[Problem, ...]:
    """Sums of masses and of moments of inertia that are negative, and masses beyond all sense."""
    weight = sum(
        value for leaf, value in zip(model.parameters, model.pi, strict=True) if leaf.role == "m"
    )
    masses = {
        leaf.name
        for leaf in model.mechanism.parameters
        if leaf.group == "inertia" and _dimension(leaf.unit) == "kg"
    }
    sure = masses | {
        leaf.name for leaf in model.parameters if leaf.group == "inertia" and leaf.role in POSITIVE
    }
    problems = Problems()
    columns = (beside.values, beside.standard_deviations, beside.prior, beside.names)
    rows = zip(base.regrouping, _used(base), base.base, *columns, strict=True)
    for row, used, parameter, value, deviation, file, name in rows:
        if any(base.parameters[k] not in sure or row[k] < 0.0 for k in np.flatnonzero(used)):
            continue
        unit = _dimension(parameter.unit)
        size = abs(file) if np.isfinite(file) else 0.0
        heavy = unit == "kg" and 0.0 < TOO_HEAVY * weight < value - CERTAIN * deviation
        if not heavy and not (value < -CERTAIN * deviation and value < -NEGATIVE * size):
            continue
        stated = (
            f"{file:.4g} {unit} in the machine file"
            if np.isfinite(file)
            else "not in the machine file"
        )
        why = (
            f"all masses of the file are {weight:.4g} kg"
            if heavy
            else "a sum of masses and moments of inertia"
        )
        what = f"comes out as {value:.4g} {unit} (standard deviation {deviation:.2g}; {stated}), which is impossible: "
        remedy = "look at units, signs and times of the columns and at what the model leaves out; --consistent keeps "
        problems.add(name, what + why, remedy + "bodies possible")
    return tuple(problems)


def _used(base: BaseParameters) -> np.ndarray:
    """Which parameters (r, n) are named in every base parameter; smaller shares are rounding."""
    named = [
        {combination.representative, *(term.parameter for term in combination.terms)}
        for combination in base.base
    ]
    return np.array([[name in own for name in base.parameters] for own in named])


def _dimension(unit: str) -> str:
    return str(parse_unit(unit or "1").dimension)
