"""A search for an excitation on its way: random series, starts of the optimiser, and the best that is judged so far.

The search runs in a thread that may be left at any time (`tauloop.common.interrupts.leavable`).
What it has found stands in attributes that are replaced as a whole, so that who has left it reads
what belongs together; nothing else of the problem is then touched, for the thread may still be at
work with it.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import numpy as np

from tauloop.common.errors import IdentificationError
from tauloop.common.records import dataclass
from tauloop.identification.excitation.options import ExcitationOptions
from tauloop.identification.excitation.problem import ExcitationProblem, Judgement
from tauloop.identification.excitation.result import Conditions, RandomSummary
from tauloop.identification.excitation.search import RandomSearch, random_search, shrunk
from tauloop.identification.excitation.solver import STOPPED, StartOutcome
from tauloop.identification.excitation.starts import Report, Work, solve_all
from tauloop.identification.regression.base_parameters import BaseParameters

#: Random series from whose regressors the base parameters are found.
FOR_BASE = 20
#: Attempts at shrinking a series until limits hold between the samples of the optimisation too.
SHRINKS = 40
#: Random series that are judged on the fine grid too, of those best in SI units and those best with
#: unit-norm columns.
JUDGED_RANDOM = 5
#: Judging series that are not the last may take this share of the time.
SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Best:
    """A series that keeps all limits on the fine grid, and its criterion there."""

    value: float
    coefficients: np.ndarray
    judged: Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """All random series so far: base parameters, criterion, and condition numbers in SI units and of unit columns."""

    search: RandomSearch
    base: BaseParameters
    values: np.ndarray
    si: np.ndarray
    unit: np.ndarray


class Search:
    """One search, step by step."""

    def __init__(
        self,
        problem: ExcitationProblem,
        options: ExcitationOptions,
        rng: np.random.Generator,
        report: Report,
    ) -> None:
        """Prepare it; nothing is found yet."""
        self._problem, self._options, self._rng, self._report = problem, options, rng, report
        self._drawn: _Drawn | None = None
        self._summary: RandomSummary | None = None
        self._best: _Best | None = None
        self._interim: _Best | None = None
        self._outcomes: dict[int, StartOutcome] = {}
        self._polished: dict[int, StartOutcome] = {}
        self._phase, self._next = "random", 0.0

    def run(self, is_stopped: Callable[[], bool]) -> None:
        """Search until the end, or until it is to stop.

        Raises:
            IdentificationError: limits that cannot be met, or no clear rank.
        """
        problem, options = self._problem, self._options

        def keep(search: RandomSearch) -> None:
            self._report("random", search.tried, options.random)
            self._keep(search)

        search = random_search(problem, options.random, self._rng, is_stopped=is_stopped, keep=keep)
        drawn = self._drawn = self._described(search, None)
        order = np.argsort(drawn.values, kind="stable")[: max(options.starts, 1)]
        starts = [search.coefficients[k] for k in order]
        random = self._judged(starts[0])
        if is_stopped():
            self._best = random
            return
        self._summary = self._judged_summary(drawn)
        if options.starts:
            self._interim = random
            self._phase = "optimising"
            self._solve(starts, drawn.base, is_stopped, self._outcomes)
            best = self._to_polish(is_stopped)
            if best:
                self._phase = "polishing"
                self._solve(best, drawn.base, is_stopped, self._polished)
        finished = [*self._outcomes.values(), *self._polished.values()]
        judged = [self._judged(outcome.coefficients) for outcome in finished]
        self._best = _least([*judged, random])

    def _solve(
        self,
        starts: list[np.ndarray],
        base: BaseParameters,
        is_stopped: Callable[[], bool],
        into: dict[int, StartOutcome],
    ) -> None:
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
            problem, work, options.processes, self._report, is_stopped=is_stopped, offer=self._offer
        ):
            into[number] = outcome
            self._offer(outcome.coefficients, at_once=True)
        if not is_stopped():
            for number in set(range(len(starts))) - set(into):  # a worker has died
                into[number] = _lost(starts[number], "no answer")

    def _to_polish(self, is_stopped: Callable[[], bool]) -> list[np.ndarray]:
        """The best outcomes, to be followed on a finer grid; none after an interrupt."""
        done = [
            outcome for _, outcome in sorted(self._outcomes.items()) if np.isfinite(outcome.value)
        ]
        if is_stopped() or any(outcome.status == STOPPED for outcome in done):
            return []
        best = sorted(done, key=lambda outcome: outcome.value)[: self._options.polished]
        return [outcome.coefficients for outcome in best]

    def _keep(self, search: RandomSearch) -> None:
        """Describe the random series so far, and judge the best of them now and then."""
        try:
            drawn = self._described(search, self._drawn)
        except IdentificationError:
            return  # too few series for a clear rank as yet
        self._drawn = drawn
        self._offer(search.coefficients[int(drawn.values.argmin())])

    def _described(self, search: RandomSearch, former: _Drawn | None) -> _Drawn:
        """Base parameters and figures of random series; those of the former ones are kept where the base stays."""
        problem, triangles = self._problem, search.triangles
        known = 0
        if former is not None and len(former.search.triangles) >= FOR_BASE:
            base, known = former.base, len(former.values)
        else:
            base = problem.base(triangles[:FOR_BASE].reshape(-1, triangles.shape[-1]))
        new = triangles[known:]
        values = np.array([self._criterion(base, R) for R in new])
        before = np.broadcast_to(problem.before, (len(new), *problem.before.shape))
        R = np.concatenate([new, before], axis=1)[:, :, base.independent]
        si = np.linalg.cond(R)
        unit = np.linalg.cond(
            R / np.maximum(np.linalg.norm(R, axis=1, keepdims=True), np.finfo(float).tiny)
        )
        if known and former is not None:
            values, si, unit = (
                np.concatenate(pair)
                for pair in ((former.values, values), (former.si, si), (former.unit, unit))
            )
        return _Drawn(search=search, base=base, values=values, si=si, unit=unit)

    def _criterion(self, base: BaseParameters, rows: np.ndarray) -> float:
        stacked = np.concatenate([rows, self._problem.before])[:, base.independent]
        return self._options.criterion.value(np.asarray(stacked.T @ stacked))

    def _offer(self, coefficients: np.ndarray, at_once: bool = False) -> None:
        """Judge a series that may be the best so far, as often as there is time for it."""
        began = monotonic()
        if not at_once and began < self._next:
            return
        self._interim = _least([self._interim, self._judged(coefficients)])
        self._next = monotonic() + (monotonic() - began) / SHARE

    def _judged(self, coefficients: np.ndarray) -> _Best | None:
        """A series, as much nearer to its centre as it takes to keep all limits on the fine grid; None if it fails."""
        problem, drawn = self._problem, self._drawn
        for _ in range(SHRINKS):
            judged = problem.judge(problem.series(coefficients).sample(problem.fine_grid))
            if judged.largest_share <= 1.0 and drawn is not None:
                value = self._criterion(drawn.base, judged.regressor)
                return _Best(value=value, coefficients=coefficients, judged=judged)
            coefficients = shrunk(problem, coefficients, min(0.9995, 1.0 / judged.largest_share))
        return None

    def _judged_summary(self, drawn: _Drawn) -> RandomSummary:
        """Condition numbers of all random series; the best are judged as the result is, on the fine grid."""
        best = {
            int(k)
            for v in (drawn.si, drawn.unit)
            for k in np.argsort(v, kind="stable")[:JUDGED_RANDOM]
        }
        kept = [
            design
            for k in sorted(best)
            if (design := self._judged(drawn.search.coefficients[k])) is not None
        ]
        judged = [
            Conditions.of(item.judged.regressor, self._problem.before, drawn.base) for item in kept
        ]
        return _summary(drawn, [item.si for item in judged], [item.unit_norm for item in judged])

    def best(
        self, is_interrupted: bool
    ) -> tuple[float, np.ndarray, Judgement, BaseParameters, RandomSummary]:
        """Criterion, coefficients and judgement of the best series, base parameters, and what random series reach.

        Raises:
            KeyboardInterrupt: there is none, for it was interrupted too soon.
            IdentificationError: none keeps all limits between the samples.
        """
        drawn, best = self._drawn, _least([self._best, self._interim if is_interrupted else None])
        if best is not None and drawn is not None:
            summary = self._summary or _summary(drawn, [], [])
            return best.value, best.coefficients, best.judged, drawn.base, summary
        if is_interrupted:
            raise KeyboardInterrupt
        tried = len(self._outcomes) + len(self._polished) + 1
        what = f"none of {tried} motions keeps them between the samples, even {SHRINKS} times made smaller"
        raise IdentificationError.of("limits", what, "a centre farther from the limits")

    def outcomes(
        self, is_interrupted: bool, coefficients: np.ndarray, value: float
    ) -> tuple[list[StartOutcome], list[StartOutcome]]:
        """What came of the starts, and of those that were polished; one that was left on its way reached the best."""
        done, polished = (
            [o for _, o in sorted(results.items())]
            for results in (self._outcomes.copy(), self._polished.copy())
        )
        is_stopped = any(outcome.status == STOPPED for outcome in done)
        if (
            is_interrupted
            and self._phase == "optimising"
            and len(done) < self._options.starts
            and not is_stopped
        ):
            done.append(_lost(coefficients, STOPPED, value))
        return done, polished


def _summary(drawn: _Drawn, si: list[float], unit: list[float]) -> RandomSummary:
    """What random series reach; the least condition numbers are of those that were judged, where there are any."""
    return RandomSummary(
        tried=drawn.search.tried,
        kept=len(drawn.values),
        best_si=min(si, default=float(drawn.si.min())),
        median_si=float(np.median(drawn.si)),
        best_unit_norm=min(unit, default=float(drawn.unit.min())),
        median_unit_norm=float(np.median(drawn.unit)),
    )


def _lost(start: np.ndarray, status: str, value: float = np.inf) -> StartOutcome:
    """A start that has not come to its end."""
    return StartOutcome(
        coefficients=start,
        value=value,
        started=np.inf,
        status=status,
        converged=False,
        iterations=0,
    )


def _least(candidates: list[_Best | None]) -> _Best | None:
    """The best of them; the first of several."""
    return min(
        (candidate for candidate in candidates if candidate is not None),
        key=lambda candidate: candidate.value,
        default=None,
    )
