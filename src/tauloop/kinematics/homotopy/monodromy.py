"""All solutions of a generic member of a family of polynomial systems, by monodromy.

The family is F(x) + e = 0 with a free constant e_i on every loop equation. The pairs (x, e) are the
graph of x -> -F(x) over products of circles, quaternion spheres and lines, which is irreducible. So
loops of e act transitively on the solutions, and every solution can be reached from every other
solution (Duff, Hill, Jensen, Lee, Leykin and Sommars, Solving polynomial systems via homotopy
continuation and monodromy, IMA Journal of Numerical Analysis 39, 2019). Any x solves the system
with e = -F(x), so start points cost nothing.

The trace test shows whether all solutions are known. While e moves along a line, e + t d, the sum
of a coordinate over all solutions is a polynomial in t of degree at most one; the sum over only a
part of the solutions is not (Leykin, Rodriguez and Sottile, Trace test, Arnold Mathematical Journal
4, 2018). The test does not apply to families whose solutions may go to infinity at finite constants
(see `widening`). For these, the search ends after a number of loops without a new solution.

Source: Duff, Hill, Jensen, Lee, Leykin and Sommars 2019, Solving polynomial systems via homotopy
continuation and monodromy; Leykin, Rodriguez and Sottile 2018, Trace test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields
from typing import Any, Protocol

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import PoseError
from tauloop.common.options import Options
from tauloop.common.records import dataclass
from tauloop.kinematics.homotopy.code import Follow, Printable
from tauloop.kinematics.homotopy.paths import ParameterLine, TrackingOptions

#: Solutions closer than this, relative to their size, count as equal. Tracking is accurate to 1e-7
#: or better, and the solutions of a random system are about 0.01 apart.
REPEAT_TOLERANCE = 1e-5


#: Maximum number of loops in one round. A random loop misses a given branch point three times out
#: of four, so this number of loops fails to connect two solutions once in 10 000 cases. Random
#: start points, which end at any solution, make a miss even less likely.
MAX_LOOPS_PER_ROUND = 32
#: Fraction of the distance to another random system at which traces are evaluated.
TRACE_STEP = 0.5
#: Largest relative deviation of the trace from a straight line, for solutions tracked to 1e-10.
#: With one of 40 solutions missing, the deviation was at least 3e-4.
MAX_TRACE_NONLINEARITY = 1e-7
#: Maximum number of lines for a trace test. A further line is tried if a path is lost along a line.
#: If every line loses a path, further loops follow, which need many more paths.
MAX_TRACE_LINES = 4
#: The search stops after this number of trace tests in which every line lost a path. The system is
#: then nearly degenerate, and more loops would not help.
MAX_LOST_ROUNDS = 4
#: Number of random members of the family that are drawn. The search uses the member with the
#: smallest constants. Members with large constants have large, badly conditioned solutions (1e16
#: for Par4).
RANDOM_MEMBERS = 64
#: Maximum number of random start points that are followed first.
MAX_PROBES = 64


class Family(Printable, Protocol):
    """A family of polynomial systems with random points that satisfy some member."""

    @property
    def is_loop(self) -> np.ndarray:
        """Whether each equation has a free constant (m,)."""

    @property
    def is_traceable(self) -> bool:
        """Whether solutions are finite for all finite constants, so that the trace test applies."""

    def random(self, n: int, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return random points (n, m) that satisfy the equations without a free constant."""

    def random_known_variables(self, n: int, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the known variables (n, k) of random members of the family near y (k,)."""

    def canonical(self, x: np.ndarray) -> np.ndarray:
        """Return points (n, m) of which equivalent ones are replaced by the same representative.

        Quaternions of opposite sign are equivalent, for example.
        """

    def invariants(self, x: np.ndarray) -> np.ndarray:
        """Return numbers (n, k) that are equal for equivalent points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonodromyOptions(Options):
    """Options of the search for more solutions.

    Attributes:
        quiet_loops: number of consecutive loops without a new solution after which the search ends,
            if there is no trace test. Each loop follows all known solutions.
        traced_loops: number of consecutive loops without a new solution after which the trace test
            is made, if there is one.
        traced_angles: maximum number of unknown angles for which a block gets a trace test. The
            test needs a wider family (see `widening`), whose number of solutions grows fast: 2
            solutions for one angle, 6 for two, and 576 for SpiderMill's seven angles (46 without
            widening).
        batch: number of paths followed together, and maximum number of random start points.
        max_solutions: maximum number of solutions; more are an error.
        max_rounds: maximum number of rounds of loops, after which the search ends; the result
            then has fewer quiet loops than required.
        tracking: options of path tracking.
    """

    quiet_loops: int = 16
    traced_loops: int = 2
    traced_angles: int = 3
    batch: int = 128
    max_solutions: int = 2000
    max_rounds: int = 120
    tracking: TrackingOptions = field(default_factory=TrackingOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCounts:
    """Counts of a search for all solutions of one random member of a family.

    Attributes:
        probes: number of random start points that were followed to the member; each ends at a
            random solution.
        loops: number of loops, each followed with all known solutions.
        quiet_loops: number of consecutive loops at the end that found nothing new.
        lost: number of paths of probes and loops that failed.
        trace: second difference of the traces, relative to their size; of the order of rounding
            errors if all solutions are known. None without a trace test, or if none of its lines
            could be followed.
        lost_lines: number of trace tests in which every line lost a path.
    """

    probes: int
    loops: int
    quiet_loops: int
    lost: int
    trace: float | None
    lost_lines: int


def counts_of(search: object) -> dict[str, Any]:
    """Return the fields of `SearchCounts`, by name, from an object with the same attributes."""
    return {item.name: getattr(search, item.name) for item in fields(SearchCounts)}


@dataclass(frozen=True, slots=True, kw_only=True)
class GenericSolutions(SearchCounts):
    """All solutions found of one random member of the family.

    Attributes:
        x: solutions (n, m).
        e: constants (m,) of the member.
        y: known variables (k,) of the member.
    """

    x: np.ndarray
    e: np.ndarray
    y: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProgress:
    """Progress of the search in one block.

    Attributes:
        block, blocks: index of the block, from 1, and number of blocks.
        phase: "looking for complex solutions" or "following them to the machine".
        done, total: in the first phase, the number of consecutive loops without a new solution and
            the number required; in the second, the number of finished parameter
            continuations and their total.
        solutions: number of known complex solutions.
    """

    block: int = 1
    blocks: int = 1
    phase: str
    done: int
    total: int
    solutions: int


#: Function that is called with the progress of a search.
Report = Callable[[SearchProgress], None]
#: Phases of a search (`SearchProgress.phase`).
SEARCHING = "looking for complex solutions"
FOLLOWING = "following them to the machine"


def unreported(_: SearchProgress) -> None:
    """Ignore the progress."""


def generic_solutions(
    family: Family,
    y: np.ndarray,
    rng: np.random.Generator,
    options: MonodromyOptions | None = None,
    report: Report = unreported,
    *,
    follow: Follow,
) -> GenericSolutions:
    """Find all solutions of F(x, y) + e = 0 for a random complex e.

    Random points are followed to one random system. Then loops through two more random systems
    permute the known solutions, until the loops find no new solution and the trace test, if there
    is one, is passed.

    Args:
        family: family of polynomial systems.
        y: known variables (k,) of the machine.
        rng: source of randomness.
        options: options of the search.
        report: called with the progress after every round.
        follow: function that follows paths.

    Returns:
        The solutions, with the constants e and the known variables of the random member.

    Raises:
        PoseError: there are more than `max_solutions` solutions.
    """
    options = options or MonodromyOptions()
    search = _ModeSearch(family, y, rng, options, follow)
    search.probe(min(options.batch, MAX_PROBES))
    search.report_progress(report)
    while not search.check_complete():
        search.loop()
        search.report_progress(report)
        if len(search.known) > options.max_solutions:
            what = (
                f"{counted(len(search.known), 'complex solution')} after "
                f"{counted(search.loops, 'loop')}, and the number still grows"
            )
            remedy = "allow more solutions in MonodromyOptions, or reduce the machine first"
            raise PoseError.of("assembly modes", what, remedy)
        if search.rounds >= options.max_rounds or search.lost_lines >= MAX_LOST_ROUNDS:
            break
    return GenericSolutions(x=search.known, e=search.e, y=search.y, **counts_of(search))


#: Known variables and constants of a system: one row for all points, or one row for each point.
Member = tuple[np.ndarray, np.ndarray]


class _ModeSearch:
    """State of the search for all solutions of one random member.

    Attributes:
        known: solutions (n, m) of the member so far.
        y: known variables (k,) of the member.
        e: constants (m,) of the member.
        rounds: number of rounds of loops.
    """

    def __init__(
        self,
        family: Family,
        y: np.ndarray,
        rng: np.random.Generator,
        options: MonodromyOptions,
        follow: Follow,
    ) -> None:
        self._family = family
        self._rng = rng
        self._options = options
        self._follow = follow
        self._machine_variables = y
        points, known_variables, constants = self._members(RANDOM_MEMBERS)
        chosen = int(np.argmin(np.abs(constants).max(axis=1)))
        self.known = family.canonical(points[chosen : chosen + 1])
        self.y = known_variables[chosen]
        self.e = constants[chosen]
        self.rounds = 0
        self.probes = 0
        self.loops = 0
        self.quiet_loops = 0
        self.lost = 0
        self.lost_lines = 0
        self.trace: float | None = None

    def _members(self, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return random points, and the known variables and constants of the systems they solve."""
        y = self._family.random_known_variables(n, self._machine_variables, self._rng)
        x = self._family.random(n, self._machine_variables, self._rng)
        F, _, _ = self._family.linearized(x, y, np.zeros_like(y))
        return x, y, np.where(self._family.is_loop, -F, 0.0)

    def _track(self, x: np.ndarray, start: Member, end: Member) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the paths from solutions x (n, m), and whether each is regular."""

        def rows(y: np.ndarray) -> np.ndarray:
            return np.broadcast_to(y, (len(x), y.shape[-1]))

        y0, e0 = start
        y1, e1 = end
        line = ParameterLine(y0=rows(y0), y1=rows(y1), e0=rows(e0), e1=rows(e1))
        tracked = self._follow(self._family, x, line, self._options.tracking)
        return tracked.x, tracked.is_regular

    def _add(self, x: np.ndarray) -> int:
        """Add solutions (n, m), and return the number of new ones."""
        before = len(self.known)
        self.known = distinct(np.concatenate([self.known, self._family.canonical(x)]))
        return len(self.known) - before

    def probe(self, n: int) -> None:
        """Follow random points from their systems to the member whose solutions are sought."""
        x, y, e = self._members(n)
        end, is_regular = self._track(x, (y, e), (self.y, self.e))
        self._add(end[is_regular])
        self.probes += n
        self.lost += int((~is_regular).sum())

    def loop(self) -> None:
        """Follow all known solutions around several random loops at once."""
        n = len(self.known)
        count = int(np.clip(self._options.batch // n, 1, MAX_LOOPS_PER_ROUND))
        home = (self.y, self.e)
        x = np.tile(self.known, (count, 1))
        intermediate = []
        for _ in range(2):
            _, y, e = self._members(count)
            intermediate.append((np.repeat(y, n, axis=0), np.repeat(e, n, axis=0)))
        is_tracked = np.ones(len(x), dtype=bool)
        start = home
        for member in (*intermediate, home):
            x, is_regular = self._track(x, start, member)
            is_tracked &= is_regular
            start = member
        new = self._add(x[is_tracked])
        self.loops += count
        self.rounds += 1
        self.lost += int((~is_tracked).sum())
        self.quiet_loops = 0 if new else self.quiet_loops + count

    def report_progress(self, report: Report) -> None:
        """Report the progress of the search."""
        options = self._options
        required = options.traced_loops if self._family.is_traceable else options.quiet_loops
        done = min(self.quiet_loops, required)
        report(
            SearchProgress(phase=SEARCHING, done=done, total=required, solutions=len(self.known))
        )

    def check_complete(self) -> bool:
        """Return whether enough loops added no solution and the trace test, if any, is passed.

        After enough loops, the trace test is made; its result is stored in `trace`.
        """
        if not self._family.is_traceable:
            return self.quiet_loops >= self._options.quiet_loops
        if self.quiet_loops < self._options.traced_loops:
            return False
        self.trace = None
        for _ in range(MAX_TRACE_LINES):
            nonlinearity = self._trace_nonlinearity()
            if np.isfinite(nonlinearity):
                self.trace = nonlinearity
                return nonlinearity < MAX_TRACE_NONLINEARITY
        self.lost_lines += 1
        return False

    def _trace_nonlinearity(self) -> float:
        """Return the relative deviation of the traces from a line; infinite if a path is lost.

        The traces are the sums of the coordinates over all known solutions, along a random line.
        """
        direction = self._members(1)[2][0] - self.e
        sums = []
        sizes = []
        for t in (-TRACE_STEP, 0.0, TRACE_STEP):
            x, is_regular = self._track(
                self.known, (self.y, self.e), (self.y, self.e + t * direction)
            )
            if not is_regular.all():
                return np.inf
            invariants = self._family.invariants(x)
            sums.append(invariants.sum(axis=0))
            sizes.append(np.abs(invariants).sum(axis=0))
        second_difference = np.abs(sums[0] - 2 * sums[1] + sums[2])
        return float((second_difference / (1e-12 + np.max(sizes, axis=0))).max(initial=0.0))


def comparable(x: np.ndarray) -> np.ndarray:
    """Return complex points (n, m) as real points (n, 2 m) divided by 1 + max |x_i|.

    The same tolerance then applies to small and large points.
    """
    return np.hstack([x.real, x.imag]) / (1.0 + np.abs(x).max(axis=1, initial=0.0, keepdims=True))


def repeated(x: np.ndarray, tolerance: float = REPEAT_TOLERANCE) -> np.ndarray:
    """Return pairs (k, 2) of indices of equal points, the smaller index first.

    Args:
        x: points (n, m).
        tolerance: largest difference of equal points, relative to their size.
    """
    points = comparable(x)
    # The projections of equal points on any direction are close, so sorting by them limits the
    # comparison to few neighbors.
    direction = np.cos(np.arange(points.shape[1]))
    order = np.argsort(points @ direction)
    points = points[order]
    projections = points @ direction
    projection_tolerance = tolerance * np.abs(direction).sum()
    pairs = [np.empty((0, 2), dtype=int)]
    for offset in range(1, len(points)):
        near = np.flatnonzero(projections[offset:] - projections[:-offset] <= projection_tolerance)
        if not len(near):
            break
        near = near[np.abs(points[near + offset] - points[near]).max(axis=1) <= tolerance]
        pairs.append(np.stack([order[near], order[near + offset]], axis=1))
    return np.sort(np.concatenate(pairs), axis=1)


def distinct(x: np.ndarray, tolerance: float = REPEAT_TOLERANCE) -> np.ndarray:
    """Return the points (n, m) without those that repeat an earlier one."""
    return np.delete(x, repeated(x, tolerance)[:, 1], axis=0)
