"""Diagnosis of poses in the user's terms: loops that do not close, and singularities."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import Problem, Problems
from tauloop.compiler.state import CONVERGED, SolveDiagnostics
from tauloop.equations.ports import MAX_LISTED

#: A pose with a smaller condition number is regular, regardless of pivots.
REGULAR = 1e6
#: A pose that is out of reach by more characteristic lengths is probably in another unit, such as mm.
UNIT_SUSPICION = 50.0


def gaps(extremes: np.ndarray, discriminants: np.ndarray) -> np.ndarray:
    """Return the gaps of loops (N, n), m for rods: > 0 if ends are too far apart, < 0 if too near.

    Args:
        extremes: (N, 3 n): least and greatest psi over the unknown, and the rod's length (zero for
            other loops).
        discriminants: (N, n); loops close where they are not negative.
    """
    least, greatest, length = extremes[:, 0::3], extremes[:, 1::3], extremes[:, 2::3]
    with np.errstate(all="ignore"):
        far = np.where(length > 0, np.sqrt(np.maximum(length**2 + 2 * least, 0)) - length, least)
        near = np.where(
            length > 0, length - np.sqrt(np.maximum(length**2 + 2 * greatest, 0)), -greatest
        )
    gap = np.where(least > 0, far, -near)
    known = np.isfinite(gap) & np.isfinite(least)
    return np.where(discriminants >= 0, 0.0, np.where(known, gap, np.nan))


def unreached(health: SolveDiagnostics, gap: np.ndarray, what: str, length: float) -> list[Problem]:
    """Return the problems of loops that do not close.

    Args:
        health: diagnostics of the run.
        gap: see `gaps`; NaN where an earlier loop of the chain is already open.
        what: name of the given motion, for the remedy.
        length: characteristic length of the machine, m.
    """
    problems = Problems()
    for form, column in zip(health.closed_forms, gap.T, strict=True):
        bad = np.flatnonzero(column != 0.0)
        if not len(bad) or np.isnan(column[bad]).all():
            continue
        worst, where = bad[np.nanargmax(np.abs(column[bad]))], _samples(bad, len(gap))
        if not form.unknown:
            text = f"is open by {column[worst]:.3g} characteristic lengths or rad in {where}: the other equations, "
            text += "from which it follows at the reference, have led to another posture"
            problems.add(
                form.equation,
                text,
                "go there in small steps (`track`), or from a nearer pose (`start`)",
            )
            continue
        direction = "too far away" if column[worst] > 0 else "too near"
        amount = f"{1e3 * abs(column[worst]):.4g} mm ({direction}) in {where}"
        if abs(column[worst]) < CONVERGED * length:
            text = f"at a dead center: the end of its reach, which rounding passes by {amount}"
            remedy = f"move the {what} away from it, or give a motion that does not turn back there"
        else:
            text, remedy = f"out of reach by {amount}", f"move the {what} back into the workspace"
            if abs(column[worst]) > UNIT_SUSPICION * length:
                remedy += ", or give its unit: numbers without a unit are in m and rad"
        problems.add(form.element, text, remedy)
    open_anywhere = np.flatnonzero((gap != 0.0).any(axis=1))
    if len(open_anywhere) and not problems:
        loops = ", ".join(
            form.element
            for form, column in zip(health.closed_forms, gap.T, strict=True)
            if column.any()
        )
        what_for = f"these loops do not close in {_samples(open_anywhere, len(gap))}"
        problems.add(loops, what_for, f"move the {what} back into the workspace")
    for name, residual in health.residuals.items():
        bad = np.flatnonzero(~(np.abs(residual) < CONVERGED))
        if len(bad):
            worst = bad[np.argmax(np.abs(residual[bad]))]
            amount = length * abs(residual[worst])
            text = (
                f"misses by {1e3 * amount:.4g} mm"
                if np.isfinite(amount)
                else "the iteration diverged"
            )
            problems.add(
                name,
                f"the loop does not close: {text} in {_samples(bad, len(residual))}",
                f"choose a {what} within reach, or give a start nearer to the solution",
            )
    return problems


def singular(bad: np.ndarray, condition: np.ndarray, kind: str, n: int, what: str) -> Problem:
    """Return the problem of singular poses, or of regular ones with a zero pivot.

    Args:
        bad: indices of these samples.
        condition: their condition numbers.
        kind: text on the kind of the worst of them.
        n: number of samples.
        what: name of the given motion.
    """
    text = f"condition number {condition.max():.3g} in {_samples(bad, n)}"
    if condition.max() < REGULAR:
        text = f"a regular pose, but the order chosen for this machine's equations divides by zero there: {text}"
        return Problem(
            what,
            text,
            "displace it by 1e-6 m or rad, or make a nearby pose the reference pose (`Model.at`)",
        )
    remedy = (
        "stay away from configurations where the actuators lose control of the platform, or where "
        "its motion no longer determines that of the legs; or give another motion that determines "
        "the machine there"
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
    if n == 1:
        return "this pose"
    listed = ", ".join(str(i) for i in bad[:MAX_LISTED])
    more = f" and {len(bad) - MAX_LISTED} more" if len(bad) > MAX_LISTED else ""
    return f"sample{'s' if len(bad) > 1 else ''} {listed}{more} of {n}"
