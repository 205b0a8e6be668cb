"""Identified values in the formulas of an analytic regrouping: another basis of the same base parameters."""

from __future__ import annotations

import numpy as np

from tauloop.common.records import dataclass
from tauloop.identification.estimation.result import Identification
from tauloop.identification.parameters.regrouping import AnalyticRegrouping

#: A formula that identified base parameters miss by more than this share of its coefficients is not
#: determined.
MISSED = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaValue:
    """A base parameter as a formula, and what the data say of it.

    Attributes:
        formula: in link parameters and lengths.
        unit: SI.
        value, deviation: identified, with its standard deviation; None where the data do not
            determine it.
        file: value of the machine file.
    """

    formula: str
    unit: str
    value: float | None
    deviation: float | None
    file: float | None


def formula_values(
    identification: Identification, regrouping: AnalyticRegrouping
) -> tuple[FormulaValue, ...]:
    """Identified base parameters b = B p in the formulas' basis A p = T b, T B = A, with the covariance T C T'.

    Which parameter represents a base parameter is chosen by the data in B and by the order of the
    columns in A; what they span is the same, unless the data leave a direction out: its formulas
    have no value then.
    """
    base = identification.base
    names = list(dict.fromkeys([*base.parameters, *(item.name for item in regrouping.parameters)]))
    A, B = np.zeros((len(regrouping.base), len(names))), np.zeros((base.rank, len(names)))
    A[:, [names.index(item.name) for item in regrouping.parameters]] = regrouping.matrix()
    B[:, [names.index(name) for name in base.parameters]] = base.regrouping
    T = np.linalg.lstsq(B.T, A.T, rcond=None)[0].T
    is_determined = np.linalg.norm(T @ B - A, axis=1) <= MISSED * np.linalg.norm(A, axis=1)
    deviations = np.sqrt(np.einsum("ij,jk,ik->i", T, identification.estimate.covariance, T))
    files = [None] * len(A) if regrouping.base_values is None else regrouping.base_values.tolist()
    return tuple(
        FormulaValue(
            formula=item.name,
            unit=item.unit,
            value=value if is_known else None,
            deviation=deviation if is_known else None,
            file=file,
        )
        for item, value, deviation, is_known, file in zip(
            regrouping.base,
            (T @ identification.values).tolist(),
            deviations.tolist(),
            is_determined,
            files,
            strict=True,
        )
    )
