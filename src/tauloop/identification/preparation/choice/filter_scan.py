"""Scan of filters by validation: order, cutoff and standstill, and their effect on parameters.

The held-out data are not used for the choice.
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
from tauloop.common.shown import ReprMixin
from tauloop.identification.estimation.error_models import ErrorModel
from tauloop.identification.estimation.estimators import Estimator, WeightedLeastSquares
from tauloop.identification.estimation.evaluation import overall
from tauloop.identification.estimation.result import Identification
from tauloop.identification.preparation.choice.trials import Trials
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.identification.regression.streaming import split_each
from tauloop.identification.regression.ties import Ties
from tauloop.logs import Preparation
from tauloop.logs.log import Log, as_signals
from tauloop.model import Model

#: A parameter depends on the filter if its values spread by more than this number of standard
#: deviations.
MAX_SPREAD_DEVIATIONS = 3.0
#: Options that a scan chooses, as attributes of a trial.
SCANNED_OPTIONS = ("order", "cutoff", "standstill")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilterTrial(ReprMixin):
    """One filter of a scan, with its errors and parameters.

    Attributes:
        order: order of the Butterworth filter.
        cutoff: cutoff of the Butterworth filter, Hz.
        standstill: fraction of a channel's largest speed below which it counts as at rest (see
            `Preparation`).
        validation_percent: (n_out,) RMSE on the validation part, % of each output's largest force.
        held_out_percent: (n_out,) the same on the held-out part, which is not used for the choice.
        values: (r,) base parameters fitted to training and validation parts together, SI.
    """

    order: int
    cutoff: float
    standstill: float
    validation_percent: np.ndarray
    held_out_percent: np.ndarray
    values: np.ndarray

    @property
    def validation_error(self) -> float:
        """Root mean square of the outputs' percentages; the choice minimizes it."""
        return overall(self.validation_percent)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilterScan(Result):
    """The trials of all filters, the chosen filter, and the spread of each base parameter.

    Attributes:
        trials: all trials, sorted by order, then cutoff, then standstill.
        chosen: index of the trial with the smallest validation error.
        base: the base parameters, the same for all filters.
        spread: (r,) difference between the largest and the smallest value of all trials, SI.
        spread_in_deviations: (r,) the same difference in standard deviations of the chosen trial.
        identification: the fit with the chosen filter, evaluated on the held-out part.
    """

    json_format: ClassVar[str] = "tauloop-filter-scan/2"
    trials: tuple[FilterTrial, ...]
    chosen: int = field(metadata=OMITTED)
    base: BaseParameters = field(metadata=OMITTED)
    spread: np.ndarray = field(metadata=OMITTED)
    spread_in_deviations: np.ndarray = field(metadata=OMITTED)
    identification: Identification

    def variables(self) -> Iterator[Variable]:
        """Yield filters with their errors over `trial`, and spreads over `parameter`."""
        trials = [
            f"order {trial.order}, {trial.cutoff:g} Hz, at rest below {trial.standstill:g}"
            for trial in self.trials
        ]
        units = {"validation_error": "%", "cutoff": "Hz", "order": "", "standstill": ""}
        values = {name: self._values_of(name) for name in units}
        yield from rows("trial", trials, units, **values)
        yield from rows("parameter", self.base.names, self.base.units, spread=self.spread)

    def least_errors(self, option: str) -> dict[float, float]:
        """Return the smallest validation error (%) for every value of one of `SCANNED_OPTIONS`.

        If the errors differ little, the option has little effect and its chosen value is arbitrary.
        """
        errors: dict[float, float] = {}
        for trial in self.trials:
            value = getattr(trial, option)
            errors[value] = min(trial.validation_error, errors.get(value, trial.validation_error))
        return errors

    def _values_of(self, name: str) -> list[Any]:
        """Return an attribute of every trial."""
        return [getattr(trial, name) for trial in self.trials]

    @property
    @in_json("chosen")
    def chosen_options(self) -> dict[str, float]:
        """Options of the trial with the smallest validation error."""
        return {option: getattr(self.trials[self.chosen], option) for option in SCANNED_OPTIONS}

    @property
    @in_json()
    def least_validation_percent(self) -> dict[str, list[dict[str, float]]]:
        """Smallest validation errors of each option; see `least_errors`."""
        smallest_errors = {option: self.least_errors(option) for option in SCANNED_OPTIONS}
        return {
            option: records(value=errors.keys(), error=errors.values())
            for option, errors in smallest_errors.items()
        }

    @property
    @in_json()
    def parameters(self) -> list[dict[str, Any]]:
        """Spread of each base parameter over the filters."""
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
    """Fit one log, or several together, with every order, cutoff and standstill.

    Each fit filters forces and regressor with its own cutoff. It is evaluated on forces that are
    only trimmed and decimated. These are the same for all fits, so that the errors can be compared.
    Percentages refer to the largest force of the whole log.

    Args:
        model, log, preparation, output, ties: as for `regression_data`, with one preparation for
            all logs or one for each. The filter of a preparation need not be among those scanned.
        orders: orders of the Butterworth filter.
        cutoffs: cutoffs, Hz; if empty, 1/4, 1/2, 1 and 2 times the cutoff of the first
            preparation.
        standstills: fractions of the largest speed; if empty, the standstill of the first
            preparation.
        estimator: estimator of the parameters; weighted least squares if None.
        shares: fraction of each log before its held-out part, and fraction of this part before its
            validation part.
        errors: model of the errors that standard deviations assume, as for `fit`.

    Returns:
        All trials, the chosen one, and the spread of each base parameter.

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
            "cutoffs", "there is no filter to try", "give cutoffs (Hz) and orders"
        )
    trials: list[FilterTrial] = []
    fits: list[Identification] = []
    scan = Trials(model, logs, estimator or WeightedLeastSquares(), output, ties)
    for order, cutoff, standstill in product(orders, cutoffs, standstills):
        changed: dict[str, Any] = {"order": order, "cutoff": cutoff, "standstill": standstill}
        trial_preparations = [replace(stated, **changed) for stated in preparations]
        fit, validation_percent, held_out_percent = _fit(scan, trial_preparations, shares, errors)
        trial = FilterTrial(
            **changed,
            validation_percent=validation_percent,
            held_out_percent=held_out_percent,
            values=fit.values,
        )
        trials.append(trial)
        fits.append(fit)
    validation_errors = [np.nan_to_num(trial.validation_error, nan=np.inf) for trial in trials]
    number = int(np.argmin(validation_errors))
    best = fits[number]
    if not np.isfinite(trials[number].validation_error):
        raise IdentificationError.of(
            "log", "no filter gave a finite error", "check the log's forces"
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


def _fit(
    scan: Trials,
    preparations: Sequence[Preparation],
    shares: tuple[float, float],
    errors: ErrorModel | None,
) -> tuple[Identification, np.ndarray, np.ndarray]:
    """Return the fit with a filter, and its validation and held-out errors, %.

    Args:
        scan: trials of the logs.
        preparations: preparation of each log, with this filter.
        shares, errors: see `scan_filters`.
    """
    data = scan.data(preparations)
    before, held_out = split_each(data, shares[0])
    training, validation = split_each(before, shares[1])
    _, validation_percent = scan.fit_and_evaluate(training, validation, data)
    fit, held_out_percent = scan.fit_and_evaluate(before, held_out, data, errors)
    return fit, validation_percent, held_out_percent


def _diagnostics(
    trials: Sequence[FilterTrial], chosen: int, ratio: np.ndarray
) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of the choice on held-out data and of the parameters' spread."""
    held_out = [overall(trial.held_out_percent) for trial in trials]
    return (
        diagnostic(
            "held-out error of the chosen filter, relative to the best filter",
            held_out[chosen] / min(held_out),
            at_most=1.1,
            advice="the validation and the held-out parts prefer different filters: the log is "
            "short, or its motion changes; record a longer log",
        ),
        diagnostic(
            "held-out error of the worst filter, relative to the best filter",
            max(held_out) / min(held_out),
        ),
        diagnostic(
            f"number of the {len(ratio)} base parameters that change by more than "
            f"{MAX_SPREAD_DEVIATIONS:g} standard deviations over the filters",
            np.sum(ratio > MAX_SPREAD_DEVIATIONS),
        ),
    )
