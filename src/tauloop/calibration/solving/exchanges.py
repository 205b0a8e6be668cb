"""Encoder columns that may be exchanged: a search over pairs that is bounded in time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from itertools import combinations
from time import process_time

import numpy as np

from tauloop.calibration.problem.building import exchanged, with_encoders
from tauloop.calibration.problem.problem import CalibrationProblem
from tauloop.calibration.solving.solver import Solution, solve
from tauloop.common.errors import IdentificationError, PoseError
from tauloop.common.plain import OMITTED
from tauloop.common.records import dataclass

#: Processor time for the search where nobody says more, s.
SECONDS = 10.0
#: A cost so near that of the best fit cannot be told from it.
SAME_FIT = 1.05
#: A fit to exchanged columns may take so many times the evaluations of the fit as it is, and so
#: many more: one that fits as well arrives as soon, and one that does not would wander on.
LONGER, MORE = 3, 10


def alike_pairs(encoders: np.ndarray, seconds: float = SECONDS) -> Iterator[tuple[int, int]]:
    """Pairs of columns (N, n_u) until the processor time is over; those first that are most alike."""
    spread = np.maximum(encoders.std(axis=0), 1e-300)
    alike = {
        (i, j): float(
            np.sqrt(np.mean((encoders[:, i] - encoders[:, j]) ** 2)) / min(spread[i], spread[j])
        )
        for i, j in combinations(range(encoders.shape[1]), 2)
    }
    began = process_time()
    for pair in sorted(alike, key=lambda pair: alike[pair]):
        if not process_time() - began < seconds:
            return
        yield pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanges:
    """Pairs of actuators whose encoder columns could be exchanged without the data telling.

    Attributes:
        pairs: their names; the fit is as good.
        tried: how many pairs were tried before the time was over.
        of: how many there are.
        seconds: processor time that there was; none for the search where it is zero.
    """

    pairs: tuple[tuple[str, str], ...] = field(metadata=OMITTED)
    tried: int
    of: int
    seconds: float


def indistinguishable_swaps(
    problem: CalibrationProblem, solution: Solution, seconds: float = SECONDS
) -> Exchanges:
    """Pairs of actuators whose encoder columns could be swapped without the data telling: the fit is as good.

    Args:
        problem: the calibration.
        solution: its optimum.
        seconds: processor time after which no further pair is tried; one fit more may begin just
            before that.
    """
    names = [actuator.name for actuator in problem.mechanism.actuators]
    cost = float(solution.residual @ solution.residual)
    swaps, tried = [], 0
    zero = np.zeros(len(problem.unknowns))
    forward = problem.predicting()
    every = np.concatenate([station.series.encoders for station in forward.stations])
    most = LONGER * solution.evaluations + MORE
    for i, j in alike_pairs(every, seconds):
        tried += 1
        stations = tuple(
            with_encoders(
                station, exchanged(station.series.encoders, i, j), problem.assembly.q, zero
            )
            for station in forward.stations
        )
        try:
            swapped = solve(replace(forward, stations=stations), most=most)
        except (PoseError, IdentificationError):
            continue
        if float(swapped.residual @ swapped.residual) <= SAME_FIT * max(cost, 1e-12):
            swaps.append((names[i], names[j]))
    n = len(names)
    order = sorted(swaps, key=lambda pair: (names.index(pair[0]), names.index(pair[1])))
    return Exchanges(pairs=tuple(order), tried=tried, of=n * (n - 1) // 2, seconds=seconds)
