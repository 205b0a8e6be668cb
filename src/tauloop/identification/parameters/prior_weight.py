"""The weight of the prior: which one validation samples choose, and what it means when that is the last one tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic

#: Decades of weights beyond those given that are tried where the best is the first or the last of
#: them.
WIDENING = 3
#: Errors on validation samples that differ by less than this share do not tell an end of the
#: weights from others: the lower end, and the upper one, towards which errors fall slowly where the
#: prior is right.
FLAT, FLAT_ABOVE = 1e-3, 1e-2
#: A weight nearer than this to an end of those tried, in decades, is the end itself.
LEAST_DISTANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightTrial:
    """Error on validation parts of the training data at one weight of the prior: RMS of residuals over noise."""

    weight: float
    validation_error: float


def widened(
    validated: Callable[[Sequence[float]], tuple[WeightTrial, ...]], weights: Sequence[float]
) -> tuple[WeightTrial, ...]:
    """Trials at the weights, and beyond the one at an end where that is the best; a weight alone is not chosen."""
    trials = validated(weights)
    best = chosen_weight(trials)
    if len(trials) > 1 and best == trials[0].weight:
        return (*validated([best * 10.0**-k for k in range(WIDENING, 0, -1)]), *trials)
    if len(trials) > 1 and best == trials[-1].weight:
        return (*trials, *validated([best * 10.0**k for k in range(1, WIDENING + 1)]))
    return trials


def chosen_weight(trials: Sequence[WeightTrial]) -> float:
    """The weight of the least validation error.

    Good data without a prior predict ever better by ever less as its weight goes to zero, and with
    a true prior as it grows: where the least is at an end, the weight farthest from there is taken
    whose error is the same to `FLAT`, at the upper end to `FLAT_ABOVE`.

    Args:
        trials: by rising weight.
    """
    errors = np.array([trial.validation_error for trial in trials])
    best, last = int(np.argmin(errors)), len(trials) - 1
    if best == 0:
        best = max(0, min(np.flatnonzero(errors <= (1.0 + FLAT) * errors[best])[-1], last - 1))
    elif best == last:
        best = min(last, max(np.flatnonzero(errors <= (1.0 + FLAT_ABOVE) * errors[best])[0], 1))
    return trials[best].weight


def weight_diagnostic(trials: Sequence[WeightTrial], weight: float) -> Diagnostic:
    """How far the chosen weight lies from the ends of those tried, in decades; a weight alone was not chosen."""
    below, above = (float(np.log10(end / weight)) for end in (trials[0].weight, trials[-1].weight))
    is_low = -below < above
    return diagnostic(
        "decades from the chosen weight to the nearer end of those tried",
        min(-below, above) if len(trials) > 1 else None,
        at_least=LEAST_DISTANCE,
        advice=f"ever {'less' if is_low else 'more'} weight of the prior predicts better, to {weight:.0e}: "
        + (
            "the samples that choose it repeat what was fitted, or the model leaves out what the parameters then "
            "take up; choose it on other motions (`groups`), or look at the model"
            if is_low
            else "the data tell nothing that the prior does not; excite more, or look at the noise"
        ),
    )
