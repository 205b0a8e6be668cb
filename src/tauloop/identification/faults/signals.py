"""Faults of single channels that need no model: forces that stay at a limit, samples that jump."""

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


def clipped(
    log: Log, quantity: str = "force", limits: Mapping[str, float] | None = None
) -> tuple[Problem, ...]:
    """Channels that stay at their largest or smallest value for several samples, as a limit makes them.

    Either at exactly that value, or, where noise was added behind the limit, within a small share
    of the range of it, while the machine moves; or at the limit that the machine's description
    states. Nothing is said of forces whose samples at a limit the log leaves out
    (`without_saturated`), where enough others are left.

    Args:
        log: the log as measured, before any filter.
        quantity: which channels are looked at.
        limits: largest absolute value of channels, SI, such as the drives' largest forces.

    Returns:
        One problem for each end of a channel, with the value and how many samples are at it.
    """
    problems = Problems()
    moves = moving(log)
    for name, values in by_channel(log, quantity).items():
        left = (
            samples(log, LEFT_OUT, (name,))[:, 0] != 0.0
            if quantity == "force" and name in left_out(log)
            else None
        )
        for limit in limits_reached(values, moves, (limits or {}).get(name)):
            if left is not None and left[limit.at].all():
                continue
            word = "largest" if limit.is_upper else "smallest"
            what = (
                f"stays at its {word} value {limit.value:.6g} in {limit.at.sum()} samples, "
                f"{MIN_PLATEAU_SAMPLES} or more in a row: "
            )
            remedy = "excite less, raise the drive's limit, or leave these samples out"
            problems.add(f"{quantity}.{name}", f"{what}it is clipped{limit.why}", remedy)
    return tuple(problems)


def spikes(log: Log) -> tuple[Problem, ...]:
    """Positions and forces of which single samples lie far off both neighbours, as a lost bit or message makes them.

    Returns:
        One problem for each channel: how many samples, when, and the first of them with its
        neighbours (see `tauloop.logs.checks.bad_samples`).
    """
    return tuple(stretch.problem for stretch in bad_samples(log) if stretch.kind == "spikes")
