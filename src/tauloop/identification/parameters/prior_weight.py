"""Choice of the prior's weight by validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic

#: Number of decades beyond the given weights that are tried if the best weight is the first or
#: last.
EXTRA_DECADES = 3
#: Validation errors count as equal to the error at the lower end of the weights if they exceed it
#: by at most this fraction.
LOWER_END_TOLERANCE = 1e-3
#: Validation errors count as equal to the error at the upper end of the weights if they exceed it
#: by at most this fraction. It is larger than the tolerance at the lower end, because errors
#: decrease slowly towards the upper end if the prior is correct.
UPPER_END_TOLERANCE = 1e-2
#: A weight counts as an end of the weights if it is closer to the end than this number of decades.
MIN_DECADES = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightTrial:
    """The validation error at one weight of the prior.

    Attributes:
        weight: weight of the prior.
        validation_error: RMS of the residuals divided by the noise, on validation parts of the
            training data.
    """

    weight: float
    validation_error: float


def widened(
    validated: Callable[[Sequence[float]], tuple[WeightTrial, ...]], weights: Sequence[float]
) -> tuple[WeightTrial, ...]:
    """Return trials at the given weights, and beyond them if the best weight is at an end.

    Args:
        validated: function that returns the trials at some weights.
        weights: candidate weights, ascending. A single weight is used without a choice.
    """
    trials = validated(weights)
    if len(trials) == 1:
        return trials
    best = chosen_weight(trials)
    if best == trials[0].weight:
        return (*validated([best * 10.0**-k for k in range(EXTRA_DECADES, 0, -1)]), *trials)
    if best == trials[-1].weight:
        return (*trials, *validated([best * 10.0**k for k in range(1, EXTRA_DECADES + 1)]))
    return trials


def chosen_weight(trials: Sequence[WeightTrial]) -> float:
    """Return the weight with the smallest validation error, or a weight farther from the ends.

    With good data the error decreases towards a limit as the weight goes to zero. With a correct
    prior it decreases towards a limit as the weight grows. If the smallest error is at an end, the
    chosen weight is therefore the one farthest from this end whose error exceeds the smallest by at
    most the fraction `LOWER_END_TOLERANCE` (`UPPER_END_TOLERANCE` at the upper end). It is never
    the other end.

    Args:
        trials: trials by ascending weight.
    """
    errors = np.array([trial.validation_error for trial in trials])
    best = int(np.argmin(errors))
    last = len(trials) - 1
    if best == 0:
        equal = np.flatnonzero(errors <= (1.0 + LOWER_END_TOLERANCE) * errors[best])
        best = max(0, min(equal[-1], last - 1))
    elif best == last:
        equal = np.flatnonzero(errors <= (1.0 + UPPER_END_TOLERANCE) * errors[best])
        best = min(last, max(equal[0], 1))
    return trials[best].weight


def weight_diagnostic(trials: Sequence[WeightTrial], weight: float) -> Diagnostic:
    """Return the distance of the chosen weight from the nearer end of the weights, in decades.

    The value is None for a single weight, because there was no choice.
    """
    below = -float(np.log10(trials[0].weight / weight))
    above = float(np.log10(trials[-1].weight / weight))
    if below < above:
        advice = (
            f"the prediction improves with decreasing weight of the prior, down to {weight:.0e}: the validation "
            "samples repeat the fitted motion, or the parameters absorb errors of the model; validate with other "
            "motions (`groups`), or check the model"
        )
    else:
        advice = (
            f"the prediction improves with increasing weight of the prior, up to {weight:.0e}: the data do not "
            "improve on the prior; record a motion that excites more, or check the noise"
        )
    return diagnostic(
        "decades from the chosen weight to the nearer end of those tried",
        min(below, above) if len(trials) > 1 else None,
        at_least=MIN_DECADES,
        advice=advice,
    )
