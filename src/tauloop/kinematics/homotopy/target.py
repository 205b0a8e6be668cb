"""Solutions of a given system from all solutions of a generic one (parameter continuation).

Every isolated solution of the given system is the end of a path from a solution of the generic
system (Morgan and Sommese, Coefficient-parameter polynomial continuation, Applied Mathematics and
Computation 29, 1989). The other paths go to infinity, or to solutions that are multiple or not
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

#: Factor on the steps and the tolerance of paths that are followed again because they ended at the
#: same solution.
RETRY_FACTOR = 0.1
#: Maximum number of such repetitions.
RETRIES = 2
#: Number of Newton steps that refine a regular solution to rounding.
POLISHING = 6
#: A polished solution is real if no imaginary part exceeds this fraction of its size; bad
#: conditioning magnifies rounding up to this size.
REAL_TOLERANCE = 1e-7
#: Maximum number of detours if solutions lack their conjugates. Five were enough for Par4, whose
#: solutions have condition numbers up to 1e18.
MAX_DETOURS = 8
#: A path that stopped within this distance in t from the target has arrived. Steps towards a
#: multiple solution shrink to 1e-13; paths that rounding stops are farther away.
ARRIVAL_DISTANCE = 1e-6
#: Distance from a double solution, relative to its size, at which a path stops: the square root of
#: the accepted step at the end, with a margin.
MERGE_TOLERANCE = 1e-3
#: Number of Gauss-Newton steps towards a multiple solution, each of which halves the distance.
STEP_HALVINGS = 40
#: Cutoff of the pseudo-inverse, relative to the largest singular value.
SINGULAR_VALUE_CUTOFF = 1e-9
#: Residual of dimensionless equations that counts as rounding. Near a double solution, the residual
#: is of the order of the squared distance.
TARGET_RESIDUAL = 1e-12
#: A path that stopped early goes to infinity if it grew by more than this factor over the last
#: thousandth. A path towards a multiple solution grows by a few percent, and a path towards a
#: solution of multiplicity 20 at infinity by a factor of 1.4.
MIN_GROWTH = 1.3
#: A path beyond this size, in characteristic lengths, also goes to infinity; no machine is as
#: large.
INFINITE_SIZE = 1e4
#: Length in t of the last stretch of a path, over which its growth is evaluated.
LAST_STRETCH = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSolutions:
    """Ends of all paths to one system, the target.

    Attributes:
        regular: regular solutions (n, m), complex, polished.
        is_real: whether each regular solution is real (n,).
        merged: real solutions (k, m) that are multiple or not isolated, without repetition.
        singular: number of paths that ended at multiple or not isolated solutions, real or complex.
        infinite: number of paths that went to infinity.
        met: number of paths that ended at the same regular solution as another path, in spite of
            smaller steps.
        unpaired: number of complex solutions whose conjugate is missing; if detours were necessary,
            the number of solutions that the last detour added.
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
    rng: np.random.Generator,
    options: TrackingOptions | None = None,
    *,
    follow: Follow,
) -> TargetSolutions:
    """Return all solutions of F(x, y) = 0 that are ends of paths from the generic system.

    The complex conjugate of a solution is also a solution. If the conjugate of a solution is
    missing, a path has been stopped by rounding errors. All paths are then followed again through
    other random systems (detours).

    Args:
        family: family of polynomial systems.
        generic: all solutions of one generic member of the family.
        y: known variables (k,) of the given member, real.
        rng: source of randomness of detours.
        options: options of path tracking.
        follow: function that follows paths.
    """
    options = options or TrackingOptions()
    retry_options = options
    n = len(generic.x)
    line = _line_to_target(generic, generic.e, y, n)
    ends = _followed(family, generic.x, line, retry_options, follow)
    met = _colliding_paths(family, ends)
    for _ in range(RETRIES):
        if not len(met):
            break
        retry_options = replace(
            retry_options,
            tolerance=max(RETRY_FACTOR * retry_options.tolerance, 1e-11),
            first_step=RETRY_FACTOR * retry_options.first_step,
            longest_step=RETRY_FACTOR * retry_options.longest_step,
            steps=int(retry_options.steps / RETRY_FACTOR),
        )
        line = _line_to_target(generic, generic.e, y, len(met))
        ends.replace(met, _followed(family, generic.x[met], line, retry_options, follow))
        met = _colliding_paths(family, ends)
    regular = family.canonical(_refined(family, ends.x[ends.is_regular], y))
    singular = ends.x[ends.is_singular]
    infinite = int(ends.is_infinite.sum())
    unpaired = _unpaired(family, regular)
    if unpaired:
        regular, singular, unpaired = _with_detours(
            family, generic, y, regular, ends, rng, options, follow
        )
        infinite = max(0, n - len(regular) - len(singular))
    return TargetSolutions(
        regular=regular,
        is_real=_is_real(regular),
        merged=_merged(family, singular, y),
        singular=len(singular),
        infinite=infinite,
        met=len(met),
        unpaired=unpaired,
    )


def _line_to_target(
    generic: GenericSolutions, e: np.ndarray, y: np.ndarray, n: int
) -> ParameterLine:
    """Return the line from a member of the family with constants e to the target, for n paths."""
    return ParameterLine(
        y0=np.tile(generic.y, (n, 1)),
        y1=np.tile(y, (n, 1)),
        e0=np.tile(e, (n, 1)),
        e1=np.zeros((n, len(e)), dtype=complex),
    )


@dataclass(slots=True, kw_only=True)
class _Ends:
    """Ends of paths to the target.

    Attributes:
        x: last points (n, m).
        t: path parameter (n,) at these points, 1 at the target.
        is_regular: whether each path ended at a regular solution (n,).
        is_infinite: whether each path went to infinity (n,).
    """

    x: np.ndarray
    t: np.ndarray
    is_regular: np.ndarray
    is_infinite: np.ndarray

    @property
    def is_singular(self) -> np.ndarray:
        """Whether each path neither ended at a regular solution nor went to infinity (n,)."""
        return ~self.is_regular & ~self.is_infinite

    def replace(self, rows: np.ndarray, other: _Ends) -> None:
        """Replace the ends of some paths by those of another attempt."""
        self.x[rows] = other.x
        self.t[rows] = other.t
        self.is_regular[rows] = other.is_regular
        self.is_infinite[rows] = other.is_infinite


def _followed(
    family: Family,
    start: np.ndarray,
    line: ParameterLine,
    options: TrackingOptions,
    follow: Follow,
) -> _Ends:
    """Return the ends of paths to the target."""
    tracked = follow(family, start, line, options)
    diverges = _diverges(family, start, line, tracked, options, follow)
    is_regular = tracked.is_regular
    is_infinite = ~is_regular & (diverges | (tracked.endings == PathEnding.DIVERGED))
    return _Ends(x=tracked.x, t=tracked.t, is_regular=is_regular, is_infinite=is_infinite)


def _is_real(x: np.ndarray) -> np.ndarray:
    """Return whether each solution is real (n,)."""
    size = 1.0 + np.abs(x).max(axis=1, initial=0.0)
    return np.asarray(np.abs(x.imag).max(axis=1, initial=0.0) < REAL_TOLERANCE * size)


def _with_detours(
    family: Family,
    generic: GenericSolutions,
    y: np.ndarray,
    regular: np.ndarray,
    direct: _Ends,
    rng: np.random.Generator,
    options: TrackingOptions,
    follow: Follow,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Follow all solutions through random systems until a detour adds no solution.

    Other routes are useful because the route determines which paths are stopped by rounding errors.

    Returns:
        Regular solutions (n, m) with their conjugates; the ends (s, m) of paths at solutions that
        are not regular, for the route with most of them; and the number of solutions that the last
        detour added.
    """
    regular = _with_conjugates(family, regular)
    constant_size = np.sqrt(np.mean(np.abs(generic.e[family.is_loop]) ** 2))
    routes = [direct]
    added = 0
    for _ in range(MAX_DETOURS):
        shape = generic.e.shape
        random_numbers = rng.normal(size=shape) + 1j * rng.normal(size=shape)
        e = np.where(family.is_loop, constant_size * random_numbers, 0.0)
        n = len(generic.x)
        to_random = ParameterLine(
            y0=np.tile(generic.y, (n, 1)),
            y1=np.tile(generic.y, (n, 1)),
            e0=np.tile(generic.e, (n, 1)),
            e1=np.tile(e, (n, 1)),
        )
        tracked = follow(family, generic.x, to_random, options)
        start = tracked.x[tracked.is_regular]
        line = _line_to_target(generic, e, y, len(start))
        ends = _followed(family, start, line, options, follow)
        routes.append(ends)
        detour_solutions = family.canonical(_refined(family, ends.x[ends.is_regular], y))
        previous_count = len(regular)
        regular = _with_conjugates(family, distinct(np.concatenate([regular, detour_solutions])))
        added = len(regular) - previous_count
        if not added:
            break
    singular = [_unexplained(family, ends, regular) for ends in routes]
    return regular, max(singular, key=len), added


def _unexplained(family: Family, ends: _Ends, regular: np.ndarray) -> np.ndarray:
    """Return the ends of paths that arrived, except those at known solutions and at infinity."""
    has_arrived = ends.is_singular & (1.0 - ends.t < ARRIVAL_DISTANCE)
    x = family.canonical(ends.x[has_arrived])
    pairs = repeated(np.concatenate([regular, x]), MERGE_TOLERANCE)
    explained = pairs[(pairs[:, 0] < len(regular)) & (pairs[:, 1] >= len(regular)), 1]
    return np.delete(x, explained - len(regular), axis=0)


def _with_conjugates(family: Family, x: np.ndarray) -> np.ndarray:
    """Return the solutions of a real system and their conjugates, without repetition."""
    return distinct(np.concatenate([x, family.canonical(x[~_is_real(x)].conj())]))


def _diverges(
    family: Family,
    start: np.ndarray,
    line: ParameterLine,
    end: Tracked,
    options: TrackingOptions,
    follow: Follow,
) -> np.ndarray:
    """Return whether each path diverges (N,): it stopped far away, or grew fast at its end."""
    diverges = np.zeros(len(start), dtype=bool)
    rows = np.flatnonzero(~end.is_regular)
    if not len(rows):
        return diverges
    y = line.y0[rows]
    e = line.e0[rows]
    fraction = 1.0 - LAST_STRETCH
    shorter = ParameterLine(
        y0=y, y1=y + fraction * (line.y1[rows] - y), e0=e, e1=e + fraction * (line.e1[rows] - e)
    )
    earlier = follow(family, start[rows], shorter, options)
    size = np.abs(end.x[rows]).max(axis=1)
    diverges[rows] = (size > INFINITE_SIZE) | (size > MIN_GROWTH * np.abs(earlier.x).max(axis=1))
    return diverges


def _refined(family: Family, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the solutions refined to rounding; those with a singular Jacobian are unchanged."""
    rows = np.arange(len(x))
    y = np.tile(y.astype(complex), (len(x), 1))
    zero = np.zeros_like(x)
    line = ParameterLine(y0=y, y1=y, e0=zero, e1=zero)
    for _ in range(POLISHING):
        nearer, _ = newton(family, x, line, rows, np.ones(len(x)), 0.0, 1)
        x = np.where(np.isfinite(nearer).all(axis=1, keepdims=True), nearer, x)
    return x


def _colliding_paths(family: Family, ends: _Ends) -> np.ndarray:
    """Return the indices of paths that ended at the same regular solution as another path."""
    rows = np.flatnonzero(ends.is_regular)
    if len(rows) < 2:
        return rows[:0]
    is_collision = np.zeros(len(rows), dtype=bool)
    is_collision[repeated(family.canonical(ends.x[rows]))] = True
    return rows[is_collision]


def _unpaired(family: Family, x: np.ndarray) -> int:
    """Return the number of solutions of a real system without their conjugate."""
    x = x[~_is_real(x)]
    if not len(x):
        return 0
    pairs = repeated(np.concatenate([x, family.canonical(x.conj())]))
    has_partner = np.zeros(2 * len(x), dtype=bool)
    has_partner[pairs[(pairs[:, 0] < len(x)) & (pairs[:, 1] >= len(x)), 1]] = True
    return int((~has_partner[len(x) :]).sum())


def _merged(family: Family, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the real multiple solutions (k, m) at the ends of singular paths (s, m).

    The Jacobian of a double solution is singular. Gauss-Newton steps with the pseudo-inverse halve
    the distance to it.
    """
    size = 1.0 + np.abs(x).max(axis=1, initial=0.0)
    is_real = np.abs(x.imag).max(axis=1, initial=0.0) < MERGE_TOLERANCE * size
    x = x[is_real].real
    if not len(x):
        return x
    start = x
    y = np.tile(y, (len(x), 1))
    for _ in range(STEP_HALVINGS):
        F, J, _ = family.linearized(x, y, np.zeros_like(y))
        x = x - (np.linalg.pinv(J.real, rcond=SINGULAR_VALUE_CUTOFF) @ F.real[..., None])[..., 0]
    F, _, _ = family.linearized(x, y, np.zeros_like(y))
    is_solution = np.abs(F).max(axis=1) < TARGET_RESIDUAL
    is_near = np.abs(x - start).max(axis=1) < MERGE_TOLERANCE * (1.0 + np.abs(x).max(axis=1))
    near_solutions = family.canonical(x[is_solution & is_near])
    return distinct(near_solutions, MERGE_TOLERANCE).real
