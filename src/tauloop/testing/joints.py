"""Check of joint kinds."""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import Problems
from tauloop.equations.values import unit_vector
from tauloop.mechanism.description.sections.joints import SCALARS
from tauloop.mechanism.model import JointKind
from tauloop.testing.conformance import ConformanceError, compare

#: Largest rounding error of a placement.
PLACEMENT_TOLERANCE = 1e-12
#: Coordinates are dependent if the ratio of the smallest to the largest singular value of the
#: placement's derivatives is below this value.
DEPENDENCE_RATIO = 1e-6


def check_joint(kind: JointKind, *, seeds: int = 5) -> None:
    """Check a joint kind: its names are consistent, and its placement is a pose.

    At zero coordinates the frames of parent and child must coincide.
    Velocities and accelerations follow from the placement by differentiation and need no check.

    Args:
        kind: the kind, as named by an entry point of the group `tauloop.joints`.
        seeds: number of random coordinates, within half a revolution or 1 m, that are checked.

    Raises:
        ConformanceError: lists all violations.
    """
    problems = Problems()
    n = len(kind.coordinates)
    if kind.coordinates != kind.velocities or len(kind.angular) != n or not n:
        what = (
            f"the kind has {counted(n, 'coordinate')}, {counted(len(kind.velocities), 'velocity')} and "
            f"{counted(len(kind.angular), 'flag')} `angular`"
        )
    if n > 1 and (unknown := set(kind.coordinates) - set(SCALARS)):
        what = f"{', '.join(sorted(unknown))} cannot have start values in machine files"
        problems.add("coordinates", what, f"use the names {', '.join(SCALARS)}")
    if kind.placement is None:
        problems.add("placement", "is missing", "define the pose of the child in the parent frame")
    ConformanceError.raise_if_any(problems)
    assert kind.placement is not None
    for axes in sorted({letters[: kind.axes] for letters in ("xy", "yz", "zx")}):
        _check_placement(problems, kind, axes, seeds)
    ConformanceError.raise_if_any(problems)


def _check_placement(problems: Problems, kind: JointKind, axes: str, seeds: int) -> None:
    """Add problems of a placement with these axes."""
    assert kind.placement is not None
    n = len(kind.coordinates)
    x = ca.SX.sym("x", n)
    unit_vectors = [unit_vector(axis) for axis in axes]
    R, p = (ca.densify(ca.SX(matrix)) for matrix in kind.placement(unit_vectors, x))
    if R.shape != (3, 3) or p.shape != (3, 1):
        problems.add("placement", f"has shapes {R.shape} and {p.shape}", "give R (3, 3) and p (3,)")
        raise ConformanceError(problems)
    placement = ca.Function("place", [x], [R, p, ca.jacobian(ca.vertcat(ca.vec(R), p), x)])
    at_rest = [matrix.full() for matrix in placement(np.zeros(n))]
    axes_text = f" about {axes}" if axes else ""
    remedy = "let the frames coincide at zero for all axes"
    compare(
        problems,
        f"R(0){axes_text}",
        at_rest[0],
        np.eye(3),
        tolerance=PLACEMENT_TOLERANCE,
        remedy=remedy,
    )
    compare(
        problems,
        f"p(0){axes_text}",
        1 + at_rest[1],
        np.ones((3, 1)),
        tolerance=PLACEMENT_TOLERANCE,
        remedy=remedy,
    )
    for seed in range(seeds):
        values = np.random.default_rng(seed).uniform(-1, 1, n)
        values *= np.where(kind.angular, np.pi, 1.0)
        rotation, _, derivatives = (matrix.full() for matrix in placement(values))
        where = f"R({', '.join(f'{value:.3g}' for value in values)}){axes_text}"
        remedy = "return a rotation R: R R^T = 1, with determinant 1"
        compare(
            problems,
            where,
            rotation @ rotation.T,
            np.eye(3),
            tolerance=PLACEMENT_TOLERANCE,
            remedy=remedy,
        )
        compare(
            problems,
            f"det {where}",
            np.linalg.det(rotation),
            1.0,
            tolerance=PLACEMENT_TOLERANCE,
            remedy=remedy,
        )
        singular_values = np.linalg.svd(derivatives, compute_uv=False)
        if not singular_values[-1] > DEPENDENCE_RATIO * singular_values[0]:
            what = f"{counted(n, 'coordinate', 'move')} the child in fewer than {counted(n, 'direction')}"
            problems.add(where, what, "remove or change a coordinate")
