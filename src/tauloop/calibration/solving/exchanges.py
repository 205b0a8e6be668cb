"""Encoder columns that may be swapped: a search over pairs of actuators within a time limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from itertools import combinations
from time import process_time

import numpy as np

from tauloop.calibration.problem.building import swap_columns, with_encoders
from tauloop.calibration.problem.problem import CalibrationProblem
from tauloop.calibration.solving.solver import Solution, solve_calibration
from tauloop.common.errors import IdentificationError, PoseError
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.plain import OMITTED, json_keys
from tauloop.common.records import dataclass

#: Default processor time for the search, s.
DEFAULT_SEARCH_TIME = 10.0
#: Fits whose costs differ by less than this factor are indistinguishable.
EQUAL_COST_RATIO = 1.05
#: Maximum number of evaluations of a fit to swapped columns, as a multiple of those of the original
#: fit. A fit that is equally good converges as fast; a bad fit would need many more.
MAX_EVALUATION_RATIO = 3
#: Number of evaluations that are allowed in addition to this multiple.
MAX_EXTRA_EVALUATIONS = 10


def similar_pairs(
    encoders: np.ndarray, seconds: float = DEFAULT_SEARCH_TIME
) -> Iterator[tuple[int, int]]:
    """Yield pairs of columns of (N, n_u), the most similar first, within a processor time."""
    deviations = np.maximum(encoders.std(axis=0), 1e-300)
    difference: dict[tuple[int, int], float] = {}
    for i, j in combinations(range(encoders.shape[1]), 2):
        rms = np.sqrt(np.mean((encoders[:, i] - encoders[:, j]) ** 2))
        difference[i, j] = float(rms / min(deviations[i], deviations[j]))
    start_time = process_time()
    for pair in sorted(difference, key=lambda pair: difference[pair]):
        if not process_time() - start_time < seconds:
            return
        yield pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanges:
    """Pairs of actuators whose encoder columns could be swapped without changing the fit.

    Attributes:
        pairs: names of the actuators of each pair; the fit to the swapped columns is equally good.
        tried: number of pairs that were tried within the time limit.
        total: number of all pairs.
        seconds: limit of the processor time; zero if no search was done.
    """

    pairs: tuple[tuple[str, str], ...] = field(metadata=OMITTED)
    tried: int
    total: int = field(metadata=json_keys("of"))
    seconds: float
    of = old_attribute("of", "total")


def indistinguishable_swaps(
    problem: CalibrationProblem, solution: Solution, seconds: float = DEFAULT_SEARCH_TIME
) -> Exchanges:
    """Find pairs of actuators whose encoder columns the data cannot distinguish.

    A fit to the swapped columns of such a pair is as good as the fit to the original columns.

    Args:
        problem: the calibration.
        solution: optimum of the calibration.
        seconds: processor time after which no further pair is tried. The last fit may end later.

    Returns:
        Pairs of actuators, and the numbers of pairs that were tried and that exist.
    """
    names = [actuator.name for actuator in problem.mechanism.actuators]
    cost = float(solution.residual @ solution.residual)
    swaps = []
    tried = 0
    zero = np.zeros(len(problem.unknowns))
    forward = problem.predicting()
    encoders = np.concatenate([item.series.encoders for item in forward.measured_poses])
    max_evaluations = MAX_EVALUATION_RATIO * solution.evaluations + MAX_EXTRA_EVALUATIONS
    for i, j in similar_pairs(encoders, seconds):
        tried += 1
        measured_poses = tuple(
            with_encoders(item, swap_columns(item.series.encoders, i, j), problem.assembly.q, zero)
            for item in forward.measured_poses
        )
        swapped_problem = replace(forward, measured_poses=measured_poses)
        try:
            swapped = solve_calibration(swapped_problem, max_evaluations=max_evaluations)
        except (PoseError, IdentificationError):
            continue
        swapped_cost = float(swapped.residual @ swapped.residual)
        if swapped_cost <= EQUAL_COST_RATIO * max(cost, 1e-12):
            swaps.append((names[i], names[j]))
    n = len(names)
    order = sorted(swaps, key=lambda pair: (names.index(pair[0]), names.index(pair[1])))
    return Exchanges(pairs=tuple(order), tried=tried, total=n * (n - 1) // 2, seconds=seconds)
