"""The search for an excitation: random series, starts of the optimizer, and the best series so far.

The search runs in a thread that the caller can abandon at any time
(`tauloop.common.execution.interrupts.run_in_abandonable_thread`). Its results are attributes that are replaced as a
whole, so the caller reads consistent values after it abandons the thread. The caller then uses no
other data of the problem, because the thread may still be running.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import numpy as np

from tauloop.common.errors import IdentificationError
from tauloop.common.records import dataclass
from tauloop.identification.excitation.options import ExcitationOptions
from tauloop.identification.excitation.problem import ExcitationProblem, MotionEvaluation
from tauloop.identification.excitation.result import Conditions, RandomSummary
from tauloop.identification.excitation.search import RandomSearch, random_search, shrunk
from tauloop.identification.excitation.solver import STOPPED, StartOutcome
from tauloop.identification.excitation.starts import Report, Work, solve_all
from tauloop.identification.regression.base_parameters import BaseParameters

#: Number of random series from whose regressors the base parameters are found.
BASE_SERIES = 20
#: Maximum number of reductions of a series until it meets limits between the samples of the
#: optimization.
MAX_REDUCTIONS = 40
#: Number of random series that are evaluated on the fine grid: of the best in SI units, and of the
#: best with unit-norm columns.
FINE_RANDOM_SERIES = 5
#: Fraction of the computing time that the evaluation of interim results may take.
MAX_TIME_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class _EvaluatedSeries:
    """A series that meets all limits on the fine grid, with its criterion and evaluation."""

    value: float
    coefficients: np.ndarray
    evaluation: MotionEvaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class _RandomSeries:
    """All random series so far.

    Attributes:
        search: the random series.
        base: their base parameters.
        values: criterion of each series.
        si, unit: condition number of each series, in SI units and with unit-norm columns.
    """

    search: RandomSearch
    base: BaseParameters
    values: np.ndarray
    si: np.ndarray
    unit: np.ndarray


class Search:
    """The search for one excitation."""

    def __init__(
        self,
        problem: ExcitationProblem,
        options: ExcitationOptions,
        rng: np.random.Generator,
        report: Report,
    ) -> None:
        """Store the problem and the options."""
        self._problem = problem
        self._options = options
        self._rng = rng
        self._report = report
        self._random: _RandomSeries | None = None
        self._summary: RandomSummary | None = None
        self._best: _EvaluatedSeries | None = None
        self._interim: _EvaluatedSeries | None = None
        self._outcomes: dict[int, StartOutcome] = {}
        self._polished: dict[int, StartOutcome] = {}
        self._phase = "random"
        self._next_evaluation = 0.0

    def run(self, is_stopped: Callable[[], bool]) -> None:
        """Search until the end, or until `is_stopped` returns True.

        Raises:
            IdentificationError: limits cannot be met, or the rank is ambiguous.
        """
        problem, options = self._problem, self._options

        def keep(search: RandomSearch) -> None:
            self._report("random", search.tried, options.random)
            self._update(search)

        search = random_search(problem, options.random, self._rng, is_stopped=is_stopped, keep=keep)
        series = self._random = self._describe(search, None)
        order = np.argsort(series.values, kind="stable")[: max(options.starts, 1)]
        starts = [search.coefficients[k] for k in order]
        best_random = self._evaluated(starts[0])
        if is_stopped():
            self._best = best_random
            return
        self._summary = self._evaluated_summary(series)
        if options.starts:
            self._interim = best_random
            self._phase = "optimizing"
            self._solve(starts, series.base, is_stopped, self._outcomes)
            polish_starts = self._polish_starts(is_stopped)
            if polish_starts:
                self._phase = "polishing"
                self._solve(polish_starts, series.base, is_stopped, self._polished)
        finished = [*self._outcomes.values(), *self._polished.values()]
        results = [self._evaluated(outcome.coefficients) for outcome in finished]
        self._best = _best_of([*results, best_random])

    def _solve(
        self,
        starts: list[np.ndarray],
        base: BaseParameters,
        is_stopped: Callable[[], bool],
        into: dict[int, StartOutcome],
    ) -> None:
        """Optimize from starts and add the outcomes to `into`, by the number of the start."""
        problem, options = self._problem, self._options
        work = Work(
            mechanism=problem.mechanism,
            task=problem.task,
            before=problem.before,
            independent=base.independent,
            criterion=options.criterion,
            starts=tuple(enumerate(starts)),
            options=options.solver,
            polishes=into is self._polished,
        )
        for number, outcome in solve_all(
            problem, work, options.workers, self._report, is_stopped=is_stopped, offer=self._offer
        ):
            into[number] = outcome
            self._offer(outcome.coefficients, at_once=True)
        if not is_stopped():
            # Starts without an outcome belong to a worker process that has died.
            for number in set(range(len(starts))) - set(into):
                into[number] = _unfinished(starts[number], "no answer")

    def _polish_starts(self, is_stopped: Callable[[], bool]) -> list[np.ndarray]:
        """Return the best outcomes, as starts on a finer grid; none after an interrupt."""
        done = [
            outcome for _, outcome in sorted(self._outcomes.items()) if np.isfinite(outcome.value)
        ]
        if is_stopped() or any(outcome.status == STOPPED for outcome in done):
            return []
        best = sorted(done, key=lambda outcome: outcome.value)[: self._options.polish]
        return [outcome.coefficients for outcome in best]

    def _update(self, search: RandomSearch) -> None:
        """Describe the random series so far, and evaluate the best of them from time to time."""
        try:
            series = self._describe(search, self._random)
        except IdentificationError:
            # The rank is still ambiguous, because there are too few series.
            return
        self._random = series
        self._offer(search.coefficients[int(series.values.argmin())])

    def _describe(self, search: RandomSearch, previous: _RandomSeries | None) -> _RandomSeries:
        """Return base parameters, criteria and condition numbers of random series.

        Values of previous series are reused if the base parameters do not change.
        """
        problem = self._problem
        triangles = search.triangles
        known = 0
        if previous is not None and len(previous.search.triangles) >= BASE_SERIES:
            base = previous.base
            known = len(previous.values)
        else:
            base = problem.base(triangles[:BASE_SERIES].reshape(-1, triangles.shape[-1]))
        new = triangles[known:]
        values = np.array([self._criterion(base, R) for R in new])
        before = np.broadcast_to(problem.before, (len(new), *problem.before.shape))
        R = np.concatenate([new, before], axis=1)[:, :, base.independent]
        norms = np.maximum(np.linalg.norm(R, axis=1, keepdims=True), np.finfo(float).tiny)
        si = np.linalg.cond(R)
        unit = np.linalg.cond(R / norms)
        if known and previous is not None:
            values = np.concatenate([previous.values, values])
            si = np.concatenate([previous.si, si])
            unit = np.concatenate([previous.unit, unit])
        return _RandomSeries(search=search, base=base, values=values, si=si, unit=unit)

    def _criterion(self, base: BaseParameters, rows: np.ndarray) -> float:
        """Return the criterion of regressor rows together with those of previous data sets."""
        stacked = np.concatenate([rows, self._problem.before])[:, base.independent]
        return self._options.criterion.value(np.asarray(stacked.T @ stacked))

    def _offer(self, coefficients: np.ndarray, at_once: bool = False) -> None:
        """Evaluate a series that may be the best so far, unless the last evaluation is too recent.

        Args:
            coefficients: coefficients (n_free, 2 K + 1) of the series.
            at_once: whether it is evaluated even if the last evaluation is recent.
        """
        start = monotonic()
        if not at_once and start < self._next_evaluation:
            return
        self._interim = _best_of([self._interim, self._evaluated(coefficients)])
        self._next_evaluation = monotonic() + (monotonic() - start) / MAX_TIME_SHARE

    def _evaluated(self, coefficients: np.ndarray) -> _EvaluatedSeries | None:
        """Return a series reduced until it meets all limits on the fine grid.

        The result is None if it does not meet them after `MAX_REDUCTIONS` reductions.
        """
        problem = self._problem
        series = self._random
        for _ in range(MAX_REDUCTIONS):
            evaluation = problem.evaluate(problem.series(coefficients).sample(problem.fine_grid))
            if evaluation.largest_share <= 1.0 and series is not None:
                value = self._criterion(series.base, evaluation.regressor)
                return _EvaluatedSeries(
                    value=value, coefficients=coefficients, evaluation=evaluation
                )
            factor = min(0.9995, 1.0 / evaluation.largest_share)
            coefficients = shrunk(problem, coefficients, factor)
        return None

    def _evaluated_summary(self, series: _RandomSeries) -> RandomSummary:
        """Return the summary of all random series; the best are evaluated on the fine grid."""
        best: set[int] = set()
        for conditions in (series.si, series.unit):
            best.update(np.argsort(conditions, kind="stable")[:FINE_RANDOM_SERIES].tolist())
        si = []
        unit_norm = []
        for k in sorted(best):
            evaluated = self._evaluated(series.search.coefficients[k])
            if evaluated is not None:
                rows = evaluated.evaluation.regressor
                condition = Conditions.of(rows, self._problem.before, series.base)
                si.append(condition.si)
                unit_norm.append(condition.unit_norm)
        return _summary(series, si, unit_norm)

    def best(
        self, is_interrupted: bool
    ) -> tuple[float, np.ndarray, MotionEvaluation, BaseParameters, RandomSummary]:
        """Return the best series and its properties.

        Returns:
            Criterion, coefficients and evaluation of the series; base parameters; summary of the
            random series.

        Raises:
            KeyboardInterrupt: the search was interrupted before any series was found.
            IdentificationError: no series meets all limits between the samples.
        """
        random = self._random
        best = _best_of([self._best, self._interim if is_interrupted else None])
        if best is not None and random is not None:
            summary = self._summary or _summary(random, [], [])
            return best.value, best.coefficients, best.evaluation, random.base, summary
        if is_interrupted:
            raise KeyboardInterrupt
        tried = len(self._outcomes) + len(self._polished) + 1
        raise IdentificationError.of(
            "limits",
            f"none of {tried} motions meets the limits between the samples, even after {MAX_REDUCTIONS} "
            "reductions",
            "choose a trajectory center farther from the limits",
        )

    def outcomes(
        self, is_interrupted: bool, coefficients: np.ndarray, value: float
    ) -> tuple[list[StartOutcome], list[StartOutcome]]:
        """Return the outcomes of the starts, and of the further optimizations.

        If the search was interrupted during the optimization, the outcomes include one for the
        start that did not end: the best series.

        Args:
            is_interrupted: whether the search was interrupted.
            coefficients, value: the best series and its criterion.
        """
        outcomes = [outcome for _, outcome in sorted(self._outcomes.copy().items())]
        polished = [outcome for _, outcome in sorted(self._polished.copy().items())]
        is_stopped = any(outcome.status == STOPPED for outcome in outcomes)
        is_missing = self._phase == "optimizing" and len(outcomes) < self._options.starts
        if is_interrupted and is_missing and not is_stopped:
            outcomes.append(_unfinished(coefficients, STOPPED, value))
        return outcomes, polished


def _summary(series: _RandomSeries, si: list[float], unit: list[float]) -> RandomSummary:
    """Return the summary of random series.

    Args:
        series: the random series.
        si, unit: condition numbers of series that were evaluated on the fine grid, if any; the
            smallest are reported.
    """
    return RandomSummary(
        tried=series.search.tried,
        kept=len(series.values),
        best_si=min(si, default=float(series.si.min())),
        median_si=float(np.median(series.si)),
        best_unit_norm=min(unit, default=float(series.unit.min())),
        median_unit_norm=float(np.median(series.unit)),
    )


def _unfinished(start: np.ndarray, status: str, value: float = np.inf) -> StartOutcome:
    """Return the outcome of a start that did not end."""
    return StartOutcome(
        coefficients=start,
        value=value,
        started=np.inf,
        status=status,
        converged=False,
        iterations=0,
    )


def _best_of(candidates: list[_EvaluatedSeries | None]) -> _EvaluatedSeries | None:
    """Return the series with the smallest criterion (the first of equal ones).

    The result is None if there is no series.
    """
    return min(
        (candidate for candidate in candidates if candidate is not None),
        key=lambda candidate: candidate.value,
        default=None,
    )
