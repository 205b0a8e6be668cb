"""How much the preparation decides: order, cut-off and the speed that counts as rest, scanned and chosen by validation.

The held-out data take no part in the choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np

from tauloop.common.datasets import Variable, rows
from tauloop.common.errors import IdentificationError, solving
from tauloop.common.plain import OMITTED, in_json, records
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, plain, provenance
from tauloop.common.shown import Shown
from tauloop.identification.estimation.error_models import ErrorModel
from tauloop.identification.estimation.estimators import Estimator, WeightedLeastSquares
from tauloop.identification.estimation.evaluation import overall
from tauloop.identification.estimation.result import Identification
from tauloop.identification.preparation.trials import Trials
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.identification.regression.streaming import split_each
from tauloop.identification.regression.ties import Ties
from tauloop.logs import Preparation
from tauloop.logs.log import Log, as_signals
from tauloop.model import Model

#: A parameter that moves by more standard deviations than this over the filters is decided by the
#: filter.
MOVED = 3.0
#: What a scan may choose, as attributes of a trial.
OPTIONS = ("order", "cutoff", "standstill")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilterTrial(Shown):
    """One filter.

    Attributes:
        order, cutoff: of the Butterworth filter; cutoff in Hz.
        standstill: share of a channel's largest speed below which it counts as at rest (see
            `Preparation`).
        validation_percent: (n_out,) RMSE on the validation part, % of each output's largest force.
        held_out_percent: (n_out,) the same on the held-out part, which does not take part in the
            choice.
        values: (r,) base parameters from training and validation parts together, SI.
    """

    order: int
    cutoff: float
    standstill: float
    validation_percent: np.ndarray
    held_out_percent: np.ndarray
    values: np.ndarray

    @property
    def validation_error(self) -> float:
        """Root mean square of the outputs' percentages: what the choice is made by."""
        return overall(self.validation_percent)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilterScan(Result):
    """All filters, the chosen one, and how far each base parameter moves.

    Attributes:
        trials: in the order of orders, then cut-offs.
        chosen: number of the trial with the least validation error.
        base: the base parameters, the same for all filters.
        spread: (r,) largest less smallest value over the trials, SI.
        spread_in_deviations: (r,) the same in standard deviations of the chosen trial.
        identification: the fit with the chosen filter, judged on the held-out part.
    """

    json_format: ClassVar[str] = "tauloop-filter-scan/2"
    trials: tuple[FilterTrial, ...]
    chosen: int = field(metadata=OMITTED)
    base: BaseParameters = field(metadata=OMITTED)
    spread: np.ndarray = field(metadata=OMITTED)
    spread_in_deviations: np.ndarray = field(metadata=OMITTED)
    identification: Identification

    def variables(self) -> Iterator[Variable]:
        """Filters with their errors, by `trial`; how far each parameter moves, by `parameter`."""
        trials = [
            f"order {trial.order}, {trial.cutoff:g} Hz, at rest below {trial.standstill:g}"
            for trial in self.trials
        ]
        names = {"validation_error": "%", "cutoff": "Hz", "order": "", "standstill": ""}
        yield from rows(
            "trial",
            trials,
            names,
            **{name: [getattr(t, name) for t in self.trials] for name in names},
        )
        yield from rows("parameter", self.base.names, self.base.units, spread=self.spread)

    def least_errors(self, option: str) -> dict[float, float]:
        """For every value of one of `OPTIONS`, the least validation error (%) that any trial with it has.

        A choice by much shows as a large difference between the values, a choice by chance as none.
        """
        values = dict.fromkeys(getattr(trial, option) for trial in self.trials)
        return {
            value: min(
                trial.validation_error for trial in self.trials if getattr(trial, option) == value
            )
            for value in values
        }

    @property
    @in_json("chosen")
    def chosen_options(self) -> dict[str, float]:
        """Options of the trial with the least validation error."""
        return {option: getattr(self.trials[self.chosen], option) for option in OPTIONS}

    @property
    @in_json()
    def least_validation_percent(self) -> dict[str, list[dict[str, float]]]:
        """See `least_errors`, for each option."""
        least = {option: self.least_errors(option) for option in OPTIONS}
        return {
            option: records(value=errors.keys(), error=errors.values())
            for option, errors in least.items()
        }

    @property
    @in_json()
    def parameters(self) -> list[dict[str, Any]]:
        """How far each base parameter moves."""
        return records(
            name=self.base.names,
            spread=self.spread,
            spread_in_standard_deviations=self.spread_in_deviations,
        )


@solving(IdentificationError)
def scan_filters(
    model: Model,
    log: Log | Sequence[Log],
    preparation: Preparation | Sequence[Preparation],
    *,
    orders: Sequence[int] = (2, 4, 6),
    cutoffs: Sequence[float] = (),
    standstills: Sequence[float] = (),
    estimator: Estimator | None = None,
    output: str = "actuators",
    ties: Ties | None = None,
    shares: tuple[float, float] = (0.7, 0.7),
    errors: ErrorModel | None = None,
) -> FilterScan:
    """Try every order, cut-off and standstill on one log, or on several together.

    A fit has its cut-off's filter on forces and regressor; it is judged on forces that trimming and
    decimation alone have passed, the same for all, so errors compare. Percentages are of the
    largest force of the whole log.

    Args:
        model, log, preparation, output, ties: as for `regression_data`, or one preparation for each
            of several logs; a preparation's own filter need not be among those scanned.
        orders: of the Butterworth filter.
        cutoffs: Hz; without them half, once, twice and four times that of the (first) preparation
            that are possible.
        standstills: shares of the largest speed; that of the (first) preparation without them.
        estimator: weighted least squares without it.
        shares: part of each log before its held-out part, and share of that before the validation
            part.
        errors: what standard deviations assume, as for `fit`.

    Raises:
        IdentificationError: there is nothing to scan, or the data cannot support the
            identification.
        InputError: a filter is not possible for this log.
    """
    logs = list(log) if isinstance(log, Sequence) else [log]
    preparations = (
        [preparation] * len(logs) if isinstance(preparation, Preparation) else list(preparation)
    )
    first = preparations[0]
    standstills = standstills or (first.standstill,)
    if not cutoffs and first.cutoff is not None:
        cutoffs = tuple(factor * first.cutoff for factor in (0.25, 0.5, 1.0, 2.0))
    if not cutoffs or not orders:
        raise IdentificationError.of(
            "cutoffs", "there is no filter to try", "give cut-offs (Hz) and orders"
        )
    trials: list[FilterTrial] = []
    fits: list[Identification] = []
    search = Trials(model, logs, estimator or WeightedLeastSquares(), output, ties)
    for order, cutoff, standstill in product(orders, cutoffs, standstills):
        tried = (
            replace(base, order=order, cutoff=cutoff, standstill=standstill)
            for base in preparations
        )
        parts = search.parts(list(tried))
        before, held_out = split_each(parts, shares[0])
        _, validation_percent = search.judged(*split_each(before, shares[1]), parts)
        whole, held_out_percent = search.judged(before, held_out, parts, errors)
        trial = FilterTrial(
            order=order,
            cutoff=cutoff,
            standstill=standstill,
            validation_percent=validation_percent,
            held_out_percent=held_out_percent,
            values=whole.values,
        )
        trials.append(trial)
        fits.append(whole)
    number = min(
        range(len(trials)), key=lambda k: np.nan_to_num(trials[k].validation_error, nan=np.inf)
    )
    best = fits[number]
    if not np.isfinite(trials[number].validation_error):
        raise IdentificationError.of(
            "log", "no filter gave a finite error", "look at the log's forces"
        )
    spread = np.ptp([trial.values for trial in trials], axis=0)
    ratio = spread / np.maximum(best.standard_deviations, np.finfo(float).tiny)
    return FilterScan(
        trials=tuple(trials),
        chosen=number,
        base=best.base,
        spread=spread,
        spread_in_deviations=ratio,
        identification=best,
        diagnostics=_diagnostics(trials, number, ratio),
        provenance=provenance(
            packages=("numpy", "scipy"),
            options={
                "orders": orders,
                "cutoffs": cutoffs,
                "standstills": standstills,
                "shares": shares,
                "preparations": plain(preparations),
            },
            inputs={
                "samples": [len(as_signals(log).time) for log in logs],
                "outputs": best.outputs,
            },
        ),
    )


def _diagnostics(
    trials: Sequence[FilterTrial], chosen: int, ratio: np.ndarray
) -> tuple[Diagnostic, ...]:
    held_out = [overall(trial.held_out_percent) for trial in trials]
    return (
        diagnostic(
            "held-out error of the chosen filter beside the least of all filters",
            held_out[chosen] / min(held_out),
            at_most=1.1,
            advice="validation and held-out parts want different filters: the log is short, or its motion changes",
        ),
        diagnostic(
            "held-out error of the worst filter beside the least", max(held_out) / min(held_out)
        ),
        diagnostic(
            f"of {len(ratio)} base parameters move by more than {MOVED:g} standard deviations over the filters",
            np.sum(ratio > MOVED),
        ),
    )
