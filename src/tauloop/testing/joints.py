"""Checks of what is added to the joints: kinds that packages bring."""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.common.errors import Problems
from tauloop.equations.values import unit_vector
from tauloop.mechanism.joints import SCALARS
from tauloop.mechanism.model import JointKind
from tauloop.testing.conformance import ConformanceError, compare

#: Rounding of a few products of cosines.
ROUNDING = 1e-12
#: Below this share of the largest, a singular value of the velocities is none: two coordinates move
#: the child alike.
DEPENDENT = 1e-6


def check_joint(kind: JointKind, *, seeds: int = 5) -> None:
    """Check a kind of joint: names that belong together, and a rotation and an origin that begin at rest.

    Velocities and accelerations follow from the placement by differentiation and need no check of
    their own.

    Args:
        kind: as an entry point of the group `tauloop.joints` names it.
        seeds: coordinates, drawn within a turn or a metre, at which the placement is looked at.

    Raises:
        ConformanceError: all that is wrong.
    """
    problems = Problems()
    n = len(kind.coordinates)
    if kind.coordinates != kind.velocities or len(kind.angular) != n or not n:
        what = f"{n} coordinates, {len(kind.velocities)} velocities, {len(kind.angular)} of them said to turn or not"
        problems.add(
            "coordinates", what, "give scalars, whose rates are the velocities of the same names"
        )
    if n > 1 and (unknown := set(kind.coordinates) - set(SCALARS)):
        remedy = f"name them as the start values of machine files do: {', '.join(SCALARS)}"
        problems.add(
            "coordinates", f"{', '.join(sorted(unknown))} has no start value in a file", remedy
        )
    if kind.placement is None:
        problems.add("placement", "is missing", "say where the child's frame is in the parent's")
    ConformanceError.raise_if_any(problems)
    assert kind.placement is not None
    for axes in sorted({letters[: kind.axes] for letters in ("xy", "yz", "zx")}):
        _look(problems, kind, axes, seeds)
    ConformanceError.raise_if_any(problems)


def _look(problems: Problems, kind: JointKind, axes: str, seeds: int) -> None:
    """Note what is wrong with a placement about these axes."""
    assert kind.placement is not None
    x, n = ca.SX.sym("x", len(kind.coordinates)), len(kind.coordinates)
    R, p = (
        ca.densify(ca.SX(part)) for part in kind.placement([unit_vector(axis) for axis in axes], x)
    )
    if R.shape != (3, 3) or p.shape != (3, 1):
        problems.add("placement", f"has shapes {R.shape} and {p.shape}", "give R (3, 3) and p (3,)")
        raise ConformanceError(problems)
    place = ca.Function("place", [x], [R, p, ca.jacobian(ca.vertcat(ca.vec(R), p), x)])
    at_rest = [part.full() for part in place(np.zeros(n))]
    about, remedy = (
        f" about {axes}" if axes else "",
        "let the frames coincide at zero, whatever the axes",
    )
    compare(problems, f"R(0){about}", at_rest[0], np.eye(3), tolerance=ROUNDING, remedy=remedy)
    compare(
        problems, f"p(0){about}", 1 + at_rest[1], np.ones((3, 1)), tolerance=ROUNDING, remedy=remedy
    )
    for seed in range(seeds):
        at = np.random.default_rng(seed).uniform(-1, 1, n) * np.where(kind.angular, np.pi, 1.0)
        rotation, _, slopes = (part.full() for part in place(at))
        where = f"R({', '.join(f'{value:.3g}' for value in at)}){about}"
        remedy = "R must be a rotation: R R^T = 1, of determinant 1"
        compare(
            problems, where, rotation @ rotation.T, np.eye(3), tolerance=ROUNDING, remedy=remedy
        )
        compare(
            problems,
            f"det {where}",
            np.linalg.det(rotation),
            1.0,
            tolerance=ROUNDING,
            remedy=remedy,
        )
        sizes = np.linalg.svd(slopes, compute_uv=False)
        if not sizes[-1] > DEPENDENT * sizes[0]:
            what = f"{n} coordinates move the child in fewer ways there"
            problems.add(where, what, "leave a coordinate out, or choose others")
