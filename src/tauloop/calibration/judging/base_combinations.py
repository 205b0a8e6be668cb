"""Base combinations of stiffnesses and expansions, from measurements under load and temperature.

Single compliances often have wide intervals, because several of them have similar effects on the
tool. The eigenvectors of the covariance C of their corrections (in tolerances) are combinations
with independent errors, and the eigenvalues of C are the variances of these combinations.

Source: Golub and Van Loan 2013, Matrix Computations, chapter 8.
"""

from __future__ import annotations

import numpy as np

from tauloop.calibration.judging.identifiability import MIN_LISTED_FRACTION
from tauloop.calibration.problem.problem import CalibrationProblem
from tauloop.common.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseCombination:
    """A combination of corrections of stiffness, expansion and thermometers.

    Attributes:
        terms: pairs (name of an unknown, coefficient of its correction), largest first. A
            coefficient has the inverse SI unit of its unknown. The squares of coefficient times
            tolerance add up to 1.
        value: estimate of the combination, in tolerances.
        deviation: standard deviation of the combination; None if there are no degrees of freedom.
        half_width: half-width of the 95 % interval of the combination; None if `deviation` is None.
    """

    terms: tuple[tuple[str, float], ...]
    value: float
    deviation: float | None
    half_width: float | None


def base_combinations(
    problem: CalibrationProblem,
    correction: np.ndarray,
    covariance: np.ndarray,
    factor_95: float | None,
) -> tuple[BaseCombination, ...]:
    """Return the base combinations of a calibration, those with the smallest variance first.

    The result is empty without loads and temperatures.

    Args:
        problem: the calibration.
        correction: corrections of the free unknowns (n,), SI.
        covariance: covariance of the corrections (n, n), SI.
        factor_95: half-width of a 95 % interval, in standard deviations; None if it is not known.
    """
    deflection = problem.deflection
    if deflection is None:
        return ()
    elastic_indices = [
        i
        for i, unknown in enumerate(problem.estimated)
        if unknown.unit == "K" or deflection.affects_deflection(unknown)
    ]
    if not elastic_indices:
        return ()
    tolerances = problem.tolerances[elastic_indices]
    scaled_covariance = covariance[np.ix_(elastic_indices, elastic_indices)] / np.outer(
        tolerances, tolerances
    )
    variances, directions = np.linalg.eigh(scaled_covariance)
    names = [problem.names[i] for i in elastic_indices]
    result = []
    for variance, direction in zip(variances, directions.T, strict=True):
        largest = int(np.abs(direction).argmax())
        direction = direction * np.sign(direction[largest])
        order = np.argsort(-np.abs(direction), kind="stable")
        terms = tuple(
            (names[i], float(direction[i] / tolerances[i]))
            for i in order
            if abs(direction[i]) >= MIN_LISTED_FRACTION * direction[largest]
        )
        deviation = None if factor_95 is None else float(np.sqrt(max(variance, 0.0)))
        result.append(
            BaseCombination(
                terms=terms,
                value=float(direction @ (correction[elastic_indices] / tolerances)),
                deviation=deviation,
                half_width=None
                if deviation is None or factor_95 is None
                else factor_95 * deviation,
            )
        )
    return tuple(result)
