"""Diagnosis of poses in the user's terms: loops that do not close, and singularities."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import Problem, Problems
from tauloop.compiler.state import CONVERGED, SolveDiagnostics
from tauloop.equations.ports import MAX_LISTED

#: A pose with a smaller condition number counts as regular even if a pivot is zero.
REGULAR = 1e6
#: A gap of a loop, in characteristic lengths, above which the position is probably in another unit,
#: such as mm.
UNIT_SUSPICION = 50.0


def gaps(extremes: np.ndarray, discriminants: np.ndarray) -> np.ndarray:
    """Return the gaps of loops (N, n), m for rods: > 0 if ends are too far apart, < 0 if too near.

    The equation of a rod of length L is psi = (d^2 - L^2) / 2 = 0 for the distance d of its ends.

    Args:
        extremes: for each loop (N, 3 n), the smallest and largest psi over the unknown, and the
            rod's length (zero for other loops).
        discriminants: discriminants of the loops (N, n); a loop closes if it is not negative.
    """
    smallest = extremes[:, 0::3]
    largest = extremes[:, 1::3]
    length = extremes[:, 2::3]
    is_rod = length > 0
    with np.errstate(all="ignore"):
        smallest_distance = np.sqrt(np.maximum(length**2 + 2 * smallest, 0))
        largest_distance = np.sqrt(np.maximum(length**2 + 2 * largest, 0))
        excess = np.where(is_rod, smallest_distance - length, smallest)
        deficit = np.where(is_rod, length - largest_distance, -largest)
    gap = np.where(smallest > 0, excess, -deficit)
    is_defined = np.isfinite(gap) & np.isfinite(smallest)
    gap = np.where(is_defined, gap, np.nan)
    return np.where(discriminants >= 0, 0.0, gap)


def unreached(health: SolveDiagnostics, gap: np.ndarray, what: str, length: float) -> list[Problem]:
    """Return the problems of loops that do not close.

    Args:
        health: diagnostics of the run.
        gap: see `gaps`; NaN where an earlier loop of the chain is already open.
        what: name of the motion that the caller gave, such as "platform", for the remedy.
        length: characteristic length of the machine, m.
    """
    problems = Problems()
    for form, column in zip(health.closed_forms, gap.T, strict=True):
        failed = np.flatnonzero(column != 0.0)
        if not len(failed) or np.isnan(column[failed]).all():
            continue
        worst, where = failed[np.nanargmax(np.abs(column[failed]))], _samples(failed, len(gap))
        if not form.unknown:
            text = (
                f"is open by {column[worst]:.3g} characteristic lengths or rad in {where}: this "
                "equation follows from the others at the reference pose, but these have led to "
                "another posture"
            )
            problems.add(
                form.equation,
                text,
                "approach the pose in small steps (`track`), or from a nearer pose (`start`)",
            )
            continue
        direction = "too far away" if column[worst] > 0 else "too near"
        amount = f"{1e3 * abs(column[worst]):.4g} mm ({direction}) in {where}"
        if abs(column[worst]) < CONVERGED * length:
            text = f"at a dead center, the end of its reach; rounding errors exceed it by {amount}"
            remedy = f"move the {what} away from it, or give a motion that does not reverse there"
        else:
            text, remedy = f"out of reach by {amount}", f"move the {what} back into the workspace"
            if abs(column[worst]) > UNIT_SUSPICION * length:
                remedy += ", or give units: numbers without a unit are in m and rad"
        problems.add(form.element, text, remedy)
    open_anywhere = np.flatnonzero((gap != 0.0).any(axis=1))
    if len(open_anywhere) and not problems:
        loops = ", ".join(
            form.element
            for form, column in zip(health.closed_forms, gap.T, strict=True)
            if column.any()
        )
        problem = f"these loops do not close in {_samples(open_anywhere, len(gap))}"
        problems.add(loops, problem, f"move the {what} back into the workspace")
    for name, residual in health.residuals.items():
        failed = np.flatnonzero(~(np.abs(residual) < CONVERGED))
        if len(failed):
            worst = failed[np.argmax(np.abs(residual[failed]))]
            amount = length * abs(residual[worst])
            text = (
                f"misses by {1e3 * amount:.4g} mm"
                if np.isfinite(amount)
                else "the iteration diverged"
            )
            problems.add(
                name,
                f"the loop does not close: {text} in {_samples(failed, len(residual))}",
                f"choose a {what} within reach, or give a closer initial guess (`start`)",
            )
    return problems


def singular(bad: np.ndarray, condition: np.ndarray, kind: str, n: int, what: str) -> Problem:
    """Return the problem of singular poses, or of regular poses with a zero pivot.

    Args:
        bad: indices of these samples.
        condition: condition numbers of these samples.
        kind: kind of singularity at the worst sample, as text.
        n: number of all samples.
        what: name of the given motion.
    """
    text = f"condition number {condition.max():.3g} in {_samples(bad, n)}"
    if condition.max() < REGULAR:
        text = (
            "a regular pose, but the elimination order chosen for this machine divides by zero "
            f"there: {text}"
        )
        return Problem(
            what,
            text,
            "displace it by 1e-6 m or rad, or make a nearby pose the reference pose (`Model.at`)",
        )
    remedy = (
        "stay away from poses where the actuators lose control of the platform, or where the "
        "platform's motion does not determine the motion of the legs; or give the motion in other "
        "coordinates"
    )
    return Problem(what, f"singular pose ({kind}): {text}", remedy)


def overflowed(bad: np.ndarray, n: int, what: str) -> Problem:
    """Return the problem of results that are not finite at regular poses within reach.

    Args:
        bad: indices of these samples.
        n: number of samples.
        what: name of the given motion.
    """
    return Problem(
        where=what,
        what=f"results overflow the range of floating-point numbers in {_samples(bad, n)}",
        remedy="check the units and exponents of velocities, accelerations, forces and parameters",
    )


def _samples(bad: np.ndarray, n: int) -> str:
    """Return the indices of some of n samples as text."""
    if n == 1:
        return "this pose"
    listed = ", ".join(str(i) for i in bad[:MAX_LISTED])
    more = f" and {len(bad) - MAX_LISTED} more" if len(bad) > MAX_LISTED else ""
    return f"sample{'s' if len(bad) > 1 else ''} {listed}{more} of {n}"
