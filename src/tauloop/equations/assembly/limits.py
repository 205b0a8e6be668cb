"""Check of poses and motions against limits: coordinates beyond a stop, and angles in degrees.

Searches respect limits of both kinds (`Limits.room`); a given motion is checked only against stops.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import PoseError, Problem
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.names.lazy import lazy_functions
from tauloop.common.plain import OMITTED, PlainData, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.equations.assembly.loops import Loops
from tauloop.equations.topology import Topology
from tauloop.equations.values import BatchFunction, quantile
from tauloop.mechanism.model import LIMIT_KINDS, Freedom, LimitKind, Mechanism

if TYPE_CHECKING:
    from tauloop.equations.assembly.freedoms.cut_freedoms import CutFreedoms, limited_cuts
else:
    (limited_cuts,) = lazy_functions(
        "tauloop.equations.assembly.freedoms.cut_freedoms", "limited_cuts"
    )

#: Excess over a stop (rad or characteristic lengths) from which a coordinate is beyond it; a
#: smaller excess is a rounding error.
STOP_TOLERANCE = 1e-9
#: Fraction of a range that searches for poses keep free at each end.
LIMIT_MARGIN = 0.02
#: Names of the diagnostics.
BEYOND_STOPS = "coordinates beyond a stop"
LIKE_DEGREES = "angles that look like degrees"
#: Maximum number of coordinates that one line of text names; further ones are counted.
MAX_NAMED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitViolation(PlainData):
    """A coordinate that exceeds its limits in some samples of a motion.

    Attributes:
        coordinate: name of the coordinate, or of a cut joint.
        unit: rad or m.
        value: value at the sample that is farthest beyond the limit.
        stop: the limit that is exceeded.
        kind: kind of the limit.
        sample, first: indices of the farthest sample and of the first sample beyond the limit.
        time, first_time: times of these samples, s; None if samples have no times.
        count, samples: number of samples beyond the limit, and number of all samples.
    """

    coordinate: str
    unit: str
    value: float
    stop: float
    kind: LimitKind = field(metadata=OMITTED)
    sample: int
    first: int = field(metadata=OMITTED)
    time: float | None = field(metadata=OMITTED)
    first_time: float | None = field(metadata=json_keys("time_s"))
    count: int = field(metadata=json_keys("samples_beyond"))
    samples: int = field(metadata=OMITTED)

    @property
    @in_json("beyond")
    def by(self) -> float:
        """Distance beyond the limit, rad or m."""
        return abs(self.value - self.stop)

    @property
    def short(self) -> str:
        """Coordinate and distance beyond its limit, in deg or m, as a label in a plot."""
        factor, unit = (180.0 / np.pi, "deg") if self.unit == "rad" else (1.0, "m")
        return f"{self.coordinate} {factor * self.by:.3g} {unit} too far"

    @property
    def amount(self) -> str:
        """Value, distance beyond the limit, and samples, in deg or m, as text."""
        factor, unit = (180.0 / np.pi, "deg") if self.unit == "rad" else (1.0, "m")
        end = {"stop": "stop", "drawing": "drawing range"}[self.kind]
        text = f"at {factor * self.value:.6g} {unit}, {factor * self.by:.4g} {unit} beyond its {end} at "
        text += f"{factor * self.stop:.6g} {unit}"
        if self.samples == 1:
            return text
        farthest = f"sample {self.sample}" if self.time is None else f"{self.time:.4g} s"
        first = "" if self.count == 1 else f", first at {self._first()}"
        return f"{text} ({farthest}{first}; {self.count} of {counted(self.samples, 'sample')})"

    def _first(self) -> str:
        return f"sample {self.first}" if self.first_time is None else f"{self.first_time:.4g} s"

    def __str__(self) -> str:
        return f"{self.coordinate} {self.amount}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionRange:
    """Range of the n limited coordinates in each of N motions.

    Attributes:
        least, greatest: extreme values (N, n), rad or m.
        outside: number of samples outside the limits (N, n).
    """

    least: np.ndarray
    greatest: np.ndarray
    outside: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of all coordinates of a machine, and of its cut joints.

    Attributes:
        names, units: names of the n limited coordinates, and their units, rad or m.
        columns: indices of the limited coordinates in q; cut joints come last and have no index.
        lower, upper: lower and upper limits (n,), SI; infinite where there is no limit.
        scale: unit of each coordinate (n,): one radian, or the machine's characteristic length, m.
        is_stop: whether the limits are stops (n,).
        cuts: the cut joints; None if no joint is cut.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    columns: tuple[int, ...]
    lower: np.ndarray
    upper: np.ndarray
    scale: np.ndarray
    is_stop: np.ndarray
    cuts: CutFreedoms | None

    def values(self, q: np.ndarray) -> np.ndarray:
        """Return the limited coordinates (N, n) at coordinates (N, n_q)."""
        values = q[:, list(self.columns)]
        if self.cuts is None:
            return values
        return np.concatenate([values, self.cuts.positions(q)], axis=1)

    def of(self, kinds: tuple[LimitKind, ...]) -> np.ndarray:
        """Return whether each limited coordinate has limits of these kinds (n,)."""
        return np.array(
            [("stop" if stops else "drawing") in kinds for stops in self.is_stop], dtype=bool
        )

    def room(self, q: np.ndarray, kinds: tuple[LimitKind, ...] = LIMIT_KINDS) -> np.ndarray:
        """Return the distance (N, n) of each coordinate from its nearer limit; negative beyond it.

        The unit is rad or m.

        Args:
            q: coordinates (N, n_q).
            kinds: kinds of limits to respect; the distance is infinite for coordinates with other
                kinds of limits.
        """
        values = self.values(q)
        room = np.minimum(values - self.lower, self.upper - values)
        return np.asarray(np.where(self.of(kinds), room, np.inf))

    def margins(self, q: np.ndarray, kinds: tuple[LimitKind, ...] = LIMIT_KINDS) -> np.ndarray:
        """Return the `room` (N, n) in units of `scale`, increased by `STOP_TOLERANCE`.

        Args:
            q: coordinates (N, n_q).
            kinds: kinds of limits to respect, as in `room`.
        """
        return np.asarray(self.room(q, kinds) / self.scale + STOP_TOLERANCE)

    def passed(self, q: np.ndarray) -> MotionRange:
        """Return the range of the limited coordinates in each motion.

        Args:
            q: coordinates (N, T, n_q); samples that are NaN are ignored.
        """
        values = self.values(q.reshape(-1, q.shape[-1])).reshape(*q.shape[:2], -1)
        least, greatest = np.fmin.reduce(values, axis=1), np.fmax.reduce(values, axis=1)
        outside = np.zeros(least.shape)
        for k in np.flatnonzero(self._is_outside(least, greatest).any(axis=0)):
            outside[:, k] = self._is_outside(values[:, :, k], values[:, :, k], int(k)).sum(axis=1)
        return MotionRange(least=least, greatest=greatest, outside=outside)

    def beyond(
        self,
        q: np.ndarray,
        time: np.ndarray | None = None,
        kind: LimitKind = "stop",
        passed: MotionRange | None = None,
    ) -> tuple[LimitViolation, ...]:
        """Return the coordinates beyond their limits of one kind, each with its farthest sample.

        Args:
            q: coordinates (n_q,), (N, n_q), or (N, T, n_q) of N motions; samples that are NaN are
                ignored.
            time: times of the samples (N,), or of the samples of all motions (T,), s.
            kind: kind of limits.
            passed: result of `passed` for these motions, if known.
        """
        q = np.atleast_2d(np.asarray(q, dtype=float))
        if not self.of((kind,)).any() or not q.size:
            return ()
        q = q.reshape(-1, *q.shape[-2:])
        passed = self.passed(q) if passed is None else passed
        violations = []
        violated = np.flatnonzero(self.of((kind,)) & passed.outside.any(axis=0))
        samples = int(np.isfinite(q[..., 0]).sum()) if len(violated) else 0
        for k in violated:
            below = self.lower[k] - passed.least[:, k]
            above = passed.greatest[:, k] - self.upper[k]
            # motions with the farthest and with the first sample beyond the limit
            far = int(np.nanargmax(np.fmax(below, above)))
            earliest = int(np.flatnonzero(passed.outside[:, k])[0])
            is_below = below[far] > above[far]
            value, stop = (passed.least, self.lower) if is_below else (passed.greatest, self.upper)
            i = int(np.flatnonzero(self.values(q[far])[:, k] == value[far, k])[0])
            values = self.values(q[earliest])[:, k]
            first = int(np.flatnonzero(self._is_outside(values, values, int(k)))[0])
            violations.append(
                LimitViolation(
                    coordinate=self.names[k],
                    unit=self.units[k],
                    value=float(value[far, k]),
                    stop=float(stop[k]),
                    kind=kind,
                    sample=far * q.shape[1] + i,
                    first=earliest * q.shape[1] + first,
                    time=None if time is None else float(time[i]),
                    first_time=None if time is None else float(time[first]),
                    count=int(passed.outside[:, k].sum()),
                    samples=samples,
                )
            )
        return tuple(violations)

    def _is_outside(
        self, least: np.ndarray, greatest: np.ndarray, k: int | slice = slice(None)
    ) -> np.ndarray:
        """Return whether ranges of values exceed limits of any kind; NaN does not."""
        rounding = STOP_TOLERANCE * self.scale[k]
        return np.asarray(
            (self.lower[k] - least > rounding) | (greatest - self.upper[k] > rounding)
        )

    def like_degrees(self, q: np.ndarray) -> tuple[str, ...]:
        """Return the names of the angles that look like degrees.

        All values of such an angle exceed its limits, the median by more than the width of the
        range. All values would be within the limits if they were in degrees.

        Args:
            q: coordinates (n_q,), (N, n_q) or (N, T, n_q), rad.
        """
        q = np.atleast_2d(np.asarray(q, dtype=float))
        q = q.reshape(-1, q.shape[-1])
        width = self.upper - self.lower
        angles = np.array([unit == "rad" for unit in self.units], dtype=bool) & np.isfinite(width)
        if not angles.any() or not len(q):
            return ()
        first = self.values(q[:1])[0]
        angles &= self._is_outside(first, first)
        if not angles.any():
            return ()
        values = self.values(q)
        far = np.maximum(self.lower - values, values - self.upper)
        with np.errstate(invalid="ignore"):
            converted = np.radians(values)
            fits = (converted >= self.lower) & (converted <= self.upper)
            suspect = (
                angles & (far > 0).all(axis=0) & (quantile(far, 0.5) > width) & fits.all(axis=0)
            )
        return tuple(self.names[k] for k in np.flatnonzero(suspect))

    def degrees_suspected(self, q: np.ndarray) -> tuple[Problem, ...]:
        """Return a problem if angles of an unreachable motion (N, n_q) look like degrees."""
        names = self.like_degrees(q)
        if not names:
            return ()
        what = (
            f"all values of {', '.join(names)} are far outside the limits, but would be within "
            "them in degrees"
        )
        return (Problem(where="position", what=what, remedy="give angles in rad"),)

    evidence = old_attribute("evidence", "diagnostics")

    def diagnostics(
        self, q: np.ndarray, time: np.ndarray | None = None, passed: MotionRange | None = None
    ) -> tuple[Diagnostic, ...]:
        """Return diagnostics of coordinates beyond their stops, and of those that look like degrees.

        A machine without stops has no diagnostic of the first kind. The second kind is returned
        only if an angle looks like degrees.

        Args:
            q: coordinates (n_q,), (N, n_q) or (N, T, n_q), as in `beyond`.
            time: times of the samples (N,) or (T,), s.
            passed: result of `passed` for these motions, if known.
        """
        rows = []
        if self.is_stop.any():
            beyond = self.beyond(q, time, passed=passed)
            text = "; ".join(str(item) for item in beyond[:MAX_NAMED])
            more = f"; and {len(beyond) - MAX_NAMED} more" if len(beyond) > MAX_NAMED else ""
            rows.append(
                diagnostic(
                    BEYOND_STOPS,
                    len(beyond),
                    at_most=0.0,
                    advice=f"{text}{more}: stay within the limits, or correct them in the machine file",
                )
            )
        names = self.like_degrees(q)
        if names:
            rows.append(
                diagnostic(
                    LIKE_DEGREES,
                    len(names),
                    at_most=0.0,
                    advice=f"all values of {', '.join(names)} are far outside the limits, but "
                    "would be within them in degrees: give angles in rad, or with their unit",
                )
            )
        for name, kind in self.cuts.unseen if self.cuts is not None else ():
            rows.append(
                diagnostic(
                    f"limits of {name} (a {kind} joint that closes a loop: not judged)", None
                )
            )
        return tuple(rows)


def beyond_limits(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the diagnostics that report values beyond a stop or angles that look like degrees."""
    return tuple(
        item
        for item in diagnostics
        if not item.is_good and item.name.endswith((BEYOND_STOPS, LIKE_DEGREES))
    )


def require_within_limits(diagnostics: Iterable[Diagnostic]) -> None:
    """Raise an error if a result has coordinates beyond a stop or angles that look like degrees.

    Args:
        diagnostics: diagnostics of any result.

    Raises:
        PoseError: coordinates are beyond a stop; the message states the amounts and samples.
    """
    remedy = (
        "stay within the stops, or correct the machine file: "
        "{drawing: [lower, upper]} is a range without stops"
    )
    PoseError.raise_if_any(
        Problem(where=item.name, what=item.advice, remedy=remedy)
        for item in beyond_limits(diagnostics)
    )


def limits_of(mechanism: Mechanism, topology: Topology) -> Limits:
    """Return the limits of a machine's coordinates and of its cut joints."""
    limited = [
        (i, freedom)
        for i, freedom in zip(topology.q_of_v, topology.freedoms, strict=True)
        if i >= 0 and np.isfinite([freedom.lower, freedom.upper]).any()
    ]
    columns = tuple(i for i, _ in limited)
    names = tuple(topology.coordinate_names[i] for i in columns)
    units = tuple("rad" if topology.is_angle[i] else "m" for i in columns)
    freedoms = [freedom for _, freedom in limited]
    cuts = limited_cuts(mechanism, topology) if topology.cuts else None
    if cuts is not None:
        names += cuts.names
        units += cuts.units
        freedoms += cuts.freedoms
    return Limits(
        names=names,
        units=units,
        columns=columns,
        lower=np.array([freedom.lower for freedom in freedoms]),
        upper=np.array([freedom.upper for freedom in freedoms]),
        scale=np.where([unit == "rad" for unit in units], 1.0, mechanism.characteristic_length),
        is_stop=np.array([_stops(freedom) for freedom in freedoms], dtype=bool),
        cuts=cuts,
    )


def _stops(freedom: Freedom) -> bool:
    """Return whether a freedom has a stop; a cut joint may have only a speed limit."""
    return freedom.limit == "stop" and bool(np.isfinite([freedom.lower, freedom.upper]).any())


def coordinate_limits(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper limits (n_q,) of the coordinates, SI; infinite without limits."""
    lower, upper = np.full(topology.n_q, -np.inf), np.full(topology.n_q, np.inf)
    for i, freedom in zip(topology.q_of_v, topology.freedoms, strict=True):
        if i >= 0:
            lower[i], upper[i] = freedom.lower, freedom.upper
    return lower, upper


def excess(loops: Loops, q: np.ndarray) -> np.ndarray:
    """Return the excess of coordinates (..., n_q) over their limits, rad or m.

    The excess is negative below the lower limit.
    """
    lower, upper = coordinate_limits(loops.topology)
    beyond = q - np.clip(q, lower, upper)
    return np.asarray(
        np.where(np.abs(beyond) > STOP_TOLERANCE * loops.coordinate_scale, beyond, 0.0)
    )


def moved_inside(loops: Loops, q: np.ndarray) -> np.ndarray:
    """Return coordinates (..., n_q) within the limits.

    A coordinate beyond a limit is moved to the middle of its range, or to its only limit.
    """
    lower, upper = coordinate_limits(loops.topology)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    with np.errstate(invalid="ignore"):
        middle = np.where(bounded, 0.5 * (lower + upper), np.clip(q, lower, upper))
    return np.where((q < lower) | (q > upper), middle, q)


def limited(loops: Loops) -> Loops:
    """Return the loops with an equation for every limited coordinate: its excess is zero.

    These equations help to close the loops from a distant start. Poses within the limits satisfy
    them.
    """
    topology = loops.topology
    lower, upper = coordinate_limits(topology)
    margin = np.where(np.isfinite(upper - lower), LIMIT_MARGIN * (upper - lower), 0.0)
    chosen = [
        i
        for i, j in enumerate(topology.q_of_v)
        if j >= 0 and np.isfinite([lower[j], upper[j]]).any()
    ]
    q = ca.SX.sym("q", topology.n_q)
    phi, K = loops.function.function(q) if loops.names else (ca.SX(0, 1), ca.SX(0, 1))
    above, below = q - (upper - margin), (lower + margin) - q
    outside = ca.fmax(above, 0) - ca.fmax(below, 0)
    is_outside = ca.logic_or(above > 0, below > 0)
    K_limits = ca.SX(len(chosen), topology.n_v)
    for row, i in enumerate(chosen):
        K_limits[row, i] = is_outside[topology.q_of_v[i]]
    K = ca.vertcat(ca.reshape(K, len(loops.names), topology.n_v), K_limits)
    phi = ca.vertcat(phi, outside[[topology.q_of_v[i] for i in chosen]])
    names = tuple(topology.velocity_names[i] for i in chosen)
    return replace(
        loops,
        names=(*loops.names, *(f"{name}: limits" for name in names)),
        elements=(*loops.elements, *names),
        is_length=np.concatenate(
            [loops.is_length, [not topology.angular[i] for i in chosen]]
        ).astype(bool),
        function=BatchFunction(
            ca.Function("limited", [q], [ca.densify(phi), ca.densify(ca.vec(K))])
        ),
    )
