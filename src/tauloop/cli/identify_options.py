"""What the options of ``tauloop identify`` say: estimator, model of the errors, lists of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tauloop.cli.identify_logs import MeasuredLog, Periodicity, one_decimation
from tauloop.errors import InputError, Problem
from tauloop.identification import (
    AutocorrelatedErrors,
    ClusteredErrors,
    ErrorModel,
    Estimator,
    FilteredErrors,
    IndependentErrors,
    InstrumentalVariables,
    IterativelyReweightedLeastSquares,
    KnownNoise,
    OrdinaryLeastSquares,
    TotalLeastSquares,
    WeightedLeastSquares,
    decimation_correlation,
)
from tauloop.identification.regression.from_log import OUTPUTS

ESTIMATORS = ("ols", "wls", "irls", "tls", "iv")
PARAMETERS = ("standard", "file")
ERRORS = ("independent", "autocorrelated", "decimated", "blocks", "logs")


def check_options(commanded: list[Path] | None, logs: int, **chosen: str) -> None:
    """Refuse unknown names, and instruments without a commanded motion; all problems.

    Raises:
        InputError: with them.
    """
    known = {"estimator": ESTIMATORS, "parameters": PARAMETERS, "output": OUTPUTS, "errors": ERRORS}
    problems = [
        Problem(where=f"--{name}", what=f"{value!r} is unknown", remedy=" or ".join(known[name]))
        for name, value in chosen.items()
        if value not in known[name]
    ]
    if (chosen["estimator"] == "iv") != bool(commanded):
        what = "instruments come from the commanded motion: one is given without the other"
        problems.append(Problem(where="--commanded", what=what, remedy="give both --estimator iv and --commanded LOG"))
    elif commanded and len(commanded) != logs:
        what = f"is given {len(commanded)} times for {logs} logs"
        problems.append(Problem(where="--commanded", what=what, remedy="give one for each log, in their order"))
    InputError.raise_if_any(problems)


def chosen_estimator(
    name: str, column_error: float, instruments: Sequence[np.ndarray] | None, noise: np.ndarray | None = None
) -> Estimator:
    """The estimator of that name; with known noise of the forces weighted by it."""
    if name == "iv" and instruments:
        return InstrumentalVariables(instruments_of=np.concatenate(instruments))
    if noise is not None:
        return KnownNoise(noise=tuple(noise.tolist()))
    if name == "tls":
        return TotalLeastSquares(column_error=column_error)
    plainly = {"ols": OrdinaryLeastSquares(), "irls": IterativelyReweightedLeastSquares()}
    return plainly.get(name, WeightedLeastSquares())


def numbers(option: str, text: str) -> list[float]:
    """Numbers separated by commas.

    Raises:
        InputError: something else.
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        what = f"{text!r} is no list of numbers"
        raise InputError(
            Problem(where=option, what=what, remedy="separate them by commas, such as 20,50,100")
        ) from None


def error_model(name: str, logs: Sequence[MeasuredLog], repeats: Periodicity | None) -> ErrorModel:
    """What standard deviations assume of the errors."""
    if name == "autocorrelated":
        return AutocorrelatedErrors()
    if name == "independent":
        return IndependentErrors()
    if name in ("blocks", "logs"):
        return ClusteredErrors(by=name.removesuffix("s"))
    return FilteredErrors(correlation=decimation_correlation(one_decimation(logs) if repeats is None else 1))


def whole_numbers(option: str, text: str) -> list[int]:
    """Whole numbers separated by commas.

    Raises:
        InputError: something else.
    """
    found = numbers(option, text)
    broken = [number for number in found if number != round(number)]
    if broken:
        what = f"{broken[0]:g} is no whole number"
        raise InputError(Problem(where=option, what=what, remedy="give whole numbers, such as 1,2,4"))
    return [round(number) for number in found]
