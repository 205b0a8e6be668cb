"""Identified values of the formulas of an analytic regrouping, another basis of base parameters."""

from __future__ import annotations

import numpy as np

from tauloop.common.records import dataclass
from tauloop.identification.estimation.result import Identification
from tauloop.identification.regrouping.regrouping import AnalyticRegrouping

#: A formula is determined if the identified base parameters reproduce its coefficients within this
#: relative tolerance.
FORMULA_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaValue:
    """A base parameter as a formula, with its identified value.

    Attributes:
        formula: formula in link parameters and lengths.
        unit: SI unit.
        value, deviation: identified value and its standard deviation; None if the data do not
            determine it.
        file: value in the machine file.
    """

    formula: str
    unit: str
    value: float | None
    deviation: float | None
    file: float | None


def formula_values(
    identification: Identification, regrouping: AnalyticRegrouping
) -> tuple[FormulaValue, ...]:
    """Return the values of formulas A p from identified base parameters b = B p.

    The values are A p = T b with T from T B = A, and their covariance is T C T^T, with the
    covariance C of b. Both sets of base parameters span the same space, unless the data do not
    excite a direction; formulas with such a direction have no value. The representatives differ:
    those in B depend on the data, and those in A on the order of the columns.
    """
    base = identification.base
    names = list(dict.fromkeys([*base.parameters, *(item.name for item in regrouping.parameters)]))
    A = np.zeros((len(regrouping.base), len(names)))
    B = np.zeros((base.rank, len(names)))
    A[:, [names.index(item.name) for item in regrouping.parameters]] = regrouping.matrix()
    B[:, [names.index(name) for name in base.parameters]] = base.regrouping
    T = np.linalg.lstsq(B.T, A.T, rcond=None)[0].T
    is_determined = np.linalg.norm(T @ B - A, axis=1) <= FORMULA_TOLERANCE * np.linalg.norm(
        A, axis=1
    )
    deviations = np.sqrt(np.einsum("ij,jk,ik->i", T, identification.estimate.covariance, T))
    values = T @ identification.values
    file_values = regrouping.base_values
    return tuple(
        FormulaValue(
            formula=parameter.name,
            unit=parameter.unit,
            value=float(values[k]) if is_determined[k] else None,
            deviation=float(deviations[k]) if is_determined[k] else None,
            file=None if file_values is None else float(file_values[k]),
        )
        for k, parameter in enumerate(regrouping.base)
    )
