"""Solutions of a given system from all solutions of a generic one (parameter continuation).

Every isolated solution of the given system is the end of a path from a generic one (Morgan and
Sommese, Coefficient-parameter polynomial continuation, Applied Mathematics and Computation 29,
1989); paths that end nowhere regular go to infinity, or to solutions that are multiple or not
isolated.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.kinematics.homotopy.code import Follow
from tauloop.kinematics.homotopy.monodromy import Family, GenericSolutions, distinct, repeated
from tauloop.kinematics.homotopy.paths import (
    ParameterLine,
    PathEnding,
    Tracked,
    TrackingOptions,
    newton,
)

#: Factor on steps and tolerance of paths that met and are followed again, and largest number of such
#: repetitions.
CARE, RETRIES = 0.1, 2
#: Newton steps that refine a regular solution to rounding.
POLISHING = 6
#: A polished solution is real when no imaginary part exceeds this fraction of its size: rounding
#: over its conditioning.
REAL = 1e-7
#: Distance, relative to its size, at which a path towards a double solution stops: the square root of
#: the accepted distance of a step from the end, with a margin.
MERGE_TOLERANCE = 1e-3
#: Steps by which a multiple solution is approached, each halving the distance; and the fraction of
#: the largest singular value below which directions of the Jacobian are ignored there.
STEP_HALVINGS, PSEUDO = 40, 1e-9
#: Residual of dimensionless equations that counts as rounding, the square of the distance of a double
#: solution.
TARGET_RESIDUAL = 1e-12
#: A path that stopped short has gone to infinity when it grew by more than this factor over the
#: last thousandth: one towards a multiple solution grows by some per cent, one towards a solution
#: of multiplicity 20 at infinity by 1.4.
GROWTH = 1.3
#: It has also gone to infinity beyond this size in characteristic lengths, larger than any machine.
FAR = 1e4
#: Value of t from which the growth of a path is evaluated.
LAST_STRETCH = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSolutions:
    """Ends of all paths to one given system.

    Attributes:
        regular: regular solutions (n, m), complex, polished.
        is_real: which of them are real (n,).
        merged: real solutions that are multiple or not isolated (k, m), each given once.
        singular: number of paths that ended at multiple or not isolated solutions, real or complex.
        infinite: number of paths that went to infinity.
        met: number of regular ends that other paths reached too, in spite of smaller steps.
        unpaired: number of complex solutions whose conjugate is missing.
    """

    regular: np.ndarray
    is_real: np.ndarray
    merged: np.ndarray
    singular: int
    infinite: int
    met: int
    unpaired: int


def target_solutions(
    family: Family,
    generic: GenericSolutions,
    y: np.ndarray,
    options: TrackingOptions | None = None,
    *,
    follow: Follow,
) -> TargetSolutions:
    """Return all solutions of F(x, y) = 0 that are ends of paths from the generic system.

    Args:
        family: the system.
        generic: all solutions of one generic member.
        y: the known variables (k,) of the given member, real.
        options: how paths are followed.
        follow: follows them.
    """
    options = options or TrackingOptions()
    n = len(generic.x)

    def ends(
        rows: np.ndarray, careful: TrackingOptions
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        line = ParameterLine(
            y0=np.tile(generic.y, (len(rows), 1)),
            y1=np.tile(y, (len(rows), 1)),
            e0=np.tile(generic.e, (len(rows), 1)),
            e1=np.zeros((len(rows), len(generic.e)), dtype=complex),
        )
        tracked = follow(family, generic.x[rows], line, careful)
        grows = _grows(family, generic.x[rows], line, tracked, careful, follow)
        return tracked.x, tracked.endings, grows

    x, endings, grows = ends(np.arange(n), options)
    met = _meeting(family, x, endings)
    for _ in range(RETRIES):
        if not len(met):
            break
        options = replace(
            options,
            tolerance=max(CARE * options.tolerance, 1e-11),
            first_step=CARE * options.first_step,
            longest_step=CARE * options.longest_step,
            steps=int(options.steps / CARE),
        )
        x[met], endings[met], grows[met] = ends(met, options)
        met = _meeting(family, x, endings)
    is_regular = endings == PathEnding.SUCCESS
    regular = family.unsigned(_polished(family, x[is_regular], y))
    is_infinite = (endings == PathEnding.DIVERGED) | (~is_regular & grows)
    is_singular = ~is_regular & ~is_infinite
    is_real = np.abs(regular.imag).max(axis=1, initial=0.0) < REAL * (
        1.0 + np.abs(regular).max(axis=1, initial=0.0)
    )
    return TargetSolutions(
        regular=regular,
        is_real=is_real,
        merged=_merged(family, x[is_singular], y),
        singular=int(is_singular.sum()),
        infinite=int(is_infinite.sum()),
        met=len(met),
        unpaired=_unpaired(family, regular[~is_real]),
    )


def _grows(
    family: Family,
    start: np.ndarray,
    line: ParameterLine,
    end: Tracked,
    options: TrackingOptions,
    follow: Follow,
) -> np.ndarray:
    """Return which stopped paths diverge: they are far away, or larger than a little earlier."""
    grows = np.zeros(len(start), dtype=bool)
    rows = np.flatnonzero(~end.is_regular)
    if not len(rows):
        return grows
    y, e = line.y0[rows], line.e0[rows]
    fraction = 1.0 - LAST_STRETCH
    earlier = follow(
        family,
        start[rows],
        ParameterLine(
            y0=y, y1=y + fraction * (line.y1[rows] - y), e0=e, e1=e + fraction * (line.e1[rows] - e)
        ),
        options,
    )
    size = np.abs(end.x[rows]).max(axis=1)
    grows[rows] = (size > FAR) | (size > GROWTH * np.abs(earlier.x).max(axis=1))
    return grows


def _polished(family: Family, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the solutions refined to rounding; those with a singular Jacobian are unchanged."""
    rows, y = np.arange(len(x)), np.tile(y.astype(complex), (len(x), 1))
    zero = np.zeros_like(x)
    line = ParameterLine(y0=y, y1=y, e0=zero, e1=zero)
    for _ in range(POLISHING):
        nearer, _ = newton(family, x, line, rows, np.ones(len(x)), 0.0, 1)
        x = np.where(np.isfinite(nearer).all(axis=1, keepdims=True), nearer, x)
    return x


def _meeting(family: Family, x: np.ndarray, endings: np.ndarray) -> np.ndarray:
    """Paths whose regular end another path has reached too."""
    rows = np.flatnonzero(endings == PathEnding.SUCCESS)
    if len(rows) < 2:
        return rows[:0]
    is_met = np.zeros(len(rows), dtype=bool)
    is_met[repeated(family.unsigned(x[rows]))] = True
    return rows[is_met]


def _unpaired(family: Family, x: np.ndarray) -> int:
    """Return the complex solutions of a real system without their conjugate."""
    if not len(x):
        return 0
    pairs = repeated(np.concatenate([x, family.unsigned(x.conj())]))
    alone = np.ones(2 * len(x), dtype=bool)
    alone[pairs[(pairs[:, 0] < len(x)) & (pairs[:, 1] >= len(x)), 1]] = False
    return int(alone[len(x) :].sum())


def _merged(family: Family, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the real multiple solutions (k, m) at the ends of singular paths (s, m).

    Gauss-Newton steps through the pseudo-inverse converge by halves to a double solution, whose
    Jacobian is singular.
    """
    x = x[
        np.abs(x.imag).max(axis=1, initial=0.0)
        < MERGE_TOLERANCE * (1.0 + np.abs(x).max(axis=1, initial=0.0))
    ].real
    if not len(x):
        return x
    start, y = x, np.tile(y, (len(x), 1))
    for _ in range(STEP_HALVINGS):
        F, J, _ = family.linearized(x, y, np.zeros_like(y))
        x = x - (np.linalg.pinv(J.real, rcond=PSEUDO) @ F.real[..., None])[..., 0]
    F, _, _ = family.linearized(x, y, np.zeros_like(y))
    is_solution = np.abs(F).max(axis=1) < TARGET_RESIDUAL
    is_near = np.abs(x - start).max(axis=1) < MERGE_TOLERANCE * (1.0 + np.abs(x).max(axis=1))
    unsigned = family.unsigned(x[is_solution & is_near])
    return distinct(unsigned, MERGE_TOLERANCE).real
