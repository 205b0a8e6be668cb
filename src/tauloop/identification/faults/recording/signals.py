"""Detection of faults of single channels without a model: forces at a limit, samples that jump."""

from __future__ import annotations

from collections.abc import Mapping

from tauloop.common.errors import Problem, Problems
from tauloop.logs.checks.bad_samples import bad_samples
from tauloop.logs.checks.saturation import (
    LEFT_OUT,
    MIN_PLATEAU_SAMPLES,
    left_out,
    limits_reached,
    moving,
)
from tauloop.logs.log import Log, by_channel, samples


def clipped_channels(
    log: Log, quantity: str = "force", limits: Mapping[str, float] | None = None
) -> tuple[Problem, ...]:
    """Return a problem for each channel that stays at its largest or smallest value.

    A clipped channel has several consecutive samples at exactly this value, or, if noise was added
    after the limit, within a small fraction of its range, while the machine moves. A force may also
    be at the limit that the machine file specifies. Forces are not reported if the log leaves out
    their samples at a limit (`without_saturated`) and enough other samples remain.

    Args:
        log: the log as measured, before any filter.
        quantity: quantity of the channels that are checked.
        limits: largest absolute values of channels, SI, such as the drives' largest forces.

    Returns:
        One problem for each limit of a channel, with the value and the number of samples at it.
    """
    problems = Problems()
    moves = moving(log)
    for name, values in by_channel(log, quantity).items():
        marks = None
        if quantity == "force" and name in left_out(log):
            marks = samples(log, LEFT_OUT, (name,))[:, 0] != 0.0
        for limit in limits_reached(values, moves, (limits or {}).get(name)):
            if marks is not None and marks[limit.at].all():
                continue
            word = "largest" if limit.is_upper else "smallest"
            what = (
                f"stays at its {word} value {limit.value:.6g} in {limit.at.sum()} samples, "
                f"{MIN_PLATEAU_SAMPLES} or more in a row: it is clipped{limit.why}"
            )
            remedy = "use less excitation, raise the drive's limit, or remove these samples"
            problems.add(f"{quantity}.{name}", what, remedy)
    return tuple(problems)


def channels_with_spikes(log: Log) -> tuple[Problem, ...]:
    """Return a problem for each position and force with samples far from both their neighbors.

    Such samples are caused by lost bits or messages.

    Returns:
        One problem for each channel, with the number and times of the samples, and the first of
        them with its neighbors (see `tauloop.logs.checks.bad_samples`).
    """
    return tuple(stretch.problem for stretch in bad_samples(log) if stretch.kind == "spikes")
