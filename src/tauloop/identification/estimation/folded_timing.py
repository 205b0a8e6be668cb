"""Delays and compliant transmissions of logs that are folded one by one.

Each log is fitted separately, and the fit gives the log's terms (`TimingTerm`). The drives of a
machine are the same in all logs, so the means of the terms over the logs are close to the terms of
a fit to all logs together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.identification.estimation.estimators import Estimate
from tauloop.identification.estimation.result import Identification
from tauloop.identification.estimation.timing_terms import (
    MIN_SHIFT,
    MIN_SIGNIFICANCE,
    TimingTerm,
)

#: Name of the array with the labels of the terms; present only if the fit of a log has terms.
TIMING_LABELS = "timing"


def timing_arrays(result: Identification) -> dict[str, np.ndarray]:
    """Return the terms of the fit of one log as arrays by name; none if it has no terms."""
    terms = [term for term in result.timing if term.value != 0.0]
    if not terms:
        return {}
    return {
        TIMING_LABELS: np.array([f"{term.kind} {' '.join(term.outputs)}" for term in terms]),
        "timing_base": np.array(result.base.names),
        "timing_values": np.array([term.value for term in terms]),
        "timing_deviations": np.array([term.deviation for term in terms]),
        "timing_shifts": np.stack([term.shift for term in terms]),
    }


def mean_timing_terms(
    logs: Sequence[Mapping[str, np.ndarray]],
    normals: Sequence[np.ndarray],
    names: Sequence[str],
    estimate: Estimate,
) -> tuple[TimingTerm, ...]:
    """Return the means of the terms of all logs.

    Values of terms are weighted by their inverse variances. Shifts of the parameters per unit of a
    value are weighted by the normal matrices of the logs, as in a fit to all logs.

    Args:
        logs: arrays of `timing_arrays` of each log. Logs with other base parameters are left out.
        normals: (r, r) normal matrix of each log.
        names: names of the base parameters of all logs.
        estimate: estimate of the base parameters, without the terms.
    """
    entries: dict[str, list[_Entry]] = {}
    for arrays, normal in zip(logs, normals, strict=True):
        if not has_timing(arrays, names):
            continue
        for label, value, deviation, shift in zip(
            arrays[TIMING_LABELS].tolist(),
            arrays["timing_values"].tolist(),
            arrays["timing_deviations"].tolist(),
            arrays["timing_shifts"],
            strict=True,
        ):
            if deviation > 0.0:
                entry = _Entry(value=value, deviation=deviation, shift=shift, normal=normal)
                entries.setdefault(label, []).append(entry)
    return tuple(_mean_term(label, of_logs, estimate) for label, of_logs in entries.items())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Entry:
    """A term of one log.

    Attributes:
        value, deviation, shift: see `TimingTerm`.
        normal: (r, r) normal matrix of the log.
    """

    value: float
    deviation: float
    shift: np.ndarray
    normal: np.ndarray


def _mean_term(label: str, entries: Sequence[_Entry], estimate: Estimate) -> TimingTerm:
    """Return the mean of one term over the logs."""
    kind, *outputs = label.split(" ")
    weights = np.array([entry.deviation**-2.0 for entry in entries])
    value = float(weights @ [entry.value for entry in entries] / weights.sum())
    deviation = float(weights.sum() ** -0.5)
    normal = np.sum([entry.normal for entry in entries], axis=0)
    weighted = [entry.normal @ entry.shift / entry.value for entry in entries]
    shift = value * np.linalg.solve(normal, np.sum(weighted, axis=0))
    is_significant = abs(value) > MIN_SIGNIFICANCE * deviation
    is_large = bool(np.any(np.abs(shift) > MIN_SHIFT * estimate.standard_deviations))
    return TimingTerm(
        outputs=tuple(outputs),
        kind=kind,
        value=value,
        deviation=deviation,
        shift=shift,
        explained=np.zeros(0),
        is_of_all=len(outputs) > 1,
        is_shown=is_significant and is_large,
    )


def has_timing(arrays: Mapping[str, np.ndarray], names: Sequence[str]) -> bool:
    """Return whether arrays of one log contain terms for the base parameters of all logs."""
    return TIMING_LABELS in arrays and arrays["timing_base"].tolist() == list(names)
