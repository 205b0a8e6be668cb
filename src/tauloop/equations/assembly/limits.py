"""How limits judge a pose or motion that is given: what lies beyond a stop, by how much, and what looks like degrees.

Searches keep within limits of both kinds (`Limits.room`); a given motion is judged by stops alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace

import casadi as ca
import numpy as np

from tauloop.common.deprecated import old_attribute
from tauloop.common.errors import PoseError, Problem
from tauloop.common.plain import OMITTED, PlainData, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.equations.assembly.cut_freedoms import CutFreedoms, seen_cuts
from tauloop.equations.assembly.loops import Loops
from tauloop.equations.topology import Topology
from tauloop.equations.values import BatchFunction, quantile
from tauloop.mechanism.model import LIMIT_KINDS, Freedom, LimitKind, Mechanism

#: A coordinate is beyond a stop from this far on, rad or characteristic lengths: rounding of what
#: was put onto it.
AT_THE_STOP = 1e-9
#: Share of a range by which poses that are sought keep off its ends.
MARGIN = 0.02
#: Names of the diagnostics.
BEYOND_STOPS, LIKE_DEGREES = "coordinates beyond a stop", "angles that look like degrees"
#: Beyond these many are counted, not named, in one line of text.
NAMED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Beyond(PlainData):
    """A coordinate that leaves its limits: the sample where it is farthest out, and the first one outside.

    Attributes:
        coordinate: its name; the joint's for a joint that is cut.
        unit: rad or m.
        value: at the farthest sample.
        stop: the end that it passes.
        kind: of the limit.
        sample, first: indices of the farthest sample and of the first one outside.
        time, first_time: their times, s; None where samples have none.
        count, samples: how many are outside, of how many.
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
        """How far beyond, rad or m."""
        return abs(self.value - self.stop)

    @property
    def amount(self) -> str:
        """By how much beyond which stop, and where: for people, in deg or m."""
        factor, unit = (180.0 / np.pi, "deg") if self.unit == "rad" else (1.0, "m")
        end = {"stop": "stop", "drawing": "drawing range"}[self.kind]
        text = f"at {factor * self.value:.6g} {unit}, {factor * self.by:.4g} {unit} beyond its {end} at "
        text += f"{factor * self.stop:.6g} {unit}"
        if self.samples == 1:
            return text
        place = f"sample {self.sample}" if self.time is None else f"{self.time:.4g} s"
        first = "" if self.count == 1 else f", first at {self._first()}"
        return f"{text} ({place}{first}; {self.count} of {self.samples} samples)"

    def _first(self) -> str:
        return f"sample {self.first}" if self.first_time is None else f"{self.first_time:.4g} s"

    def __str__(self) -> str:
        return f"{self.coordinate} {self.amount}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """What N motions do with the n coordinates that are limited.

    Attributes:
        least, greatest: values (N, n), rad or m.
        outside: counts of the samples that are out of the range (N, n).
    """

    least: np.ndarray
    greatest: np.ndarray
    outside: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of all coordinates of a machine, and of joints that are cut.

    Attributes:
        names, units: of the coordinates that have any; rad or m.
        columns: their columns among the coordinates; those of cut joints come last and have none.
        lower, upper: their ranges (n,), SI; infinite at an open end.
        scale: one radian, or the characteristic length of the machine, m (n,).
        is_stop: whether the range is of stops (n,).
        cuts: the cut joints; None where the tree has all joints.
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
        """What is limited (N, n), at coordinates (N, n_q)."""
        own = q[:, list(self.columns)]
        return own if self.cuts is None else np.concatenate([own, self.cuts.positions(q)], axis=1)

    def of(self, kinds: tuple[LimitKind, ...]) -> np.ndarray:
        """Which of them have limits of these kinds (n,)."""
        return np.array(
            [("stop" if stops else "drawing") in kinds for stops in self.is_stop], dtype=bool
        )

    def room(self, q: np.ndarray, kinds: tuple[LimitKind, ...] = LIMIT_KINDS) -> np.ndarray:
        """Distance of what is limited from the nearer end of its range (N, n), rad or m; negative beyond it.

        Args:
            q: coordinates (N, n_q).
            kinds: the kinds of limits that count: all for a search; the others are infinitely far.
        """
        values = self.values(q)
        room = np.minimum(values - self.lower, self.upper - values)
        return np.asarray(np.where(self.of(kinds), room, np.inf))

    def margins(self, q: np.ndarray, kinds: tuple[LimitKind, ...] = LIMIT_KINDS) -> np.ndarray:
        """Return the room (N, n) in units of `scale`; negative from `AT_THE_STOP` beyond an end on.

        Args:
            q: coordinates (N, n_q).
            kinds: the kinds of limits that count, as in `room`.
        """
        return np.asarray(self.room(q, kinds) / self.scale + AT_THE_STOP)

    def passed(self, q: np.ndarray) -> Passed:
        """What motions do with what is limited.

        Args:
            q: coordinates (N, T, n_q); samples that are not numbers are none.
        """
        values = self.values(q.reshape(-1, q.shape[-1])).reshape(*q.shape[:2], -1)
        least, greatest = np.fmin.reduce(values, axis=1), np.fmax.reduce(values, axis=1)
        outside = np.zeros(least.shape)
        for k in np.flatnonzero(self._is_outside(least, greatest).any(axis=0)):
            outside[:, k] = self._is_outside(values[:, :, k], values[:, :, k], int(k)).sum(axis=1)
        return Passed(least=least, greatest=greatest, outside=outside)

    def beyond(
        self,
        q: np.ndarray,
        time: np.ndarray | None = None,
        kind: LimitKind = "stop",
        passed: Passed | None = None,
    ) -> tuple[Beyond, ...]:
        """What leaves its limits of one kind; the farthest sample of each coordinate.

        Args:
            q: coordinates (n_q,), (N, n_q), or (N, T, n_q) of N motions; samples that are not
                numbers are none.
            time: of the samples (N,), or of those of all motions (T,), s.
            kind: of limits.
            passed: what `passed` says of these motions, where it is known.
        """
        q = np.atleast_2d(np.asarray(q, dtype=float))
        if not self.of((kind,)).any() or not q.size:
            return ()
        q = q.reshape(-1, *q.shape[-2:])
        passed = self.passed(q) if passed is None else passed
        beyond, left = [], np.flatnonzero(self.of((kind,)) & passed.outside.any(axis=0))
        samples = int(np.isfinite(q[..., 0]).sum()) if len(left) else 0
        for k in left:
            below, above = self.lower[k] - passed.least[:, k], passed.greatest[:, k] - self.upper[k]
            far, earliest = (
                int(np.nanargmax(np.fmax(below, above))),
                int(np.flatnonzero(passed.outside[:, k])[0]),
            )
            is_below = below[far] > above[far]
            value, stop = (passed.least, self.lower) if is_below else (passed.greatest, self.upper)
            i = int(np.flatnonzero(self.values(q[far])[:, k] == value[far, k])[0])
            values = self.values(q[earliest])[:, k]
            first = int(np.flatnonzero(self._is_outside(values, values, int(k)))[0])
            beyond.append(
                Beyond(
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
        return tuple(beyond)

    def _is_outside(
        self, least: np.ndarray, greatest: np.ndarray, k: int | slice = slice(None)
    ) -> np.ndarray:
        """Whether values between these leave ranges (of one coordinate), of any kind; not numbers do not."""
        rounding = AT_THE_STOP * self.scale[k]
        return np.asarray(
            (self.lower[k] - least > rounding) | (greatest - self.upper[k] > rounding)
        )

    def like_degrees(self, q: np.ndarray) -> tuple[str, ...]:
        """Angles of which every value leaves its range, of whatever kind, by more than its width, but none in degrees.

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
            turned = np.radians(values)
            fits = (turned >= self.lower) & (turned <= self.upper)
            suspect = (
                angles & (far > 0).all(axis=0) & (quantile(far, 0.5) > width) & fits.all(axis=0)
            )
        return tuple(self.names[k] for k in np.flatnonzero(suspect))

    def degrees_suspected(self, q: np.ndarray) -> tuple[Problem, ...]:
        """For a motion (N, n_q) that is out of reach: the problem that its angles look like degrees, if they do."""
        names = self.like_degrees(q)
        if not names:
            return ()
        what = f"all values of {', '.join(names)} lie far outside the limits, and inside when read as degrees"
        return (Problem(where="position", what=what, remedy="angles are in rad"),)

    evidence = old_attribute("evidence", "diagnostics")

    def diagnostics(
        self, q: np.ndarray, time: np.ndarray | None = None, passed: Passed | None = None
    ) -> tuple[Diagnostic, ...]:
        """Return diagnostics of coordinates beyond their stops, and of those that look like degrees.

        A machine without stops has none of the first kind, and where nothing looks like degrees
        there is none of the second.

        Args:
            q: coordinates (n_q,), (N, n_q) or (N, T, n_q), as in `beyond`.
            time: of the samples (N,) or (T,), s.
            passed: what `passed` says of these motions, where it is known.
        """
        rows = []
        if self.is_stop.any():
            beyond = self.beyond(q, time, passed=passed)
            text = "; ".join(str(item) for item in beyond[:NAMED])
            more = f"; and {len(beyond) - NAMED} more" if len(beyond) > NAMED else ""
            rows.append(
                diagnostic(
                    BEYOND_STOPS,
                    len(beyond),
                    at_most=0.0,
                    advice=f"{text}{more}: the machine cannot go there, unless its file has the limit wrong",
                )
            )
        names = self.like_degrees(q)
        if names:
            rows.append(
                diagnostic(
                    LIKE_DEGREES,
                    len(names),
                    at_most=0.0,
                    advice=f"all values of {', '.join(names)} lie far outside the limits, and inside when read as "
                    "degrees: angles are in rad, or say their unit",
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
    """Return those diagnostics that report values beyond a stop, or that look like degrees."""
    return tuple(
        item
        for item in diagnostics
        if not item.is_good and item.name.endswith((BEYOND_STOPS, LIKE_DEGREES))
    )


def require_within_limits(diagnostics: Iterable[Diagnostic]) -> None:
    """Refuse a result of which something lies beyond a stop, or looks like degrees.

    Args:
        diagnostics: of any result.

    Raises:
        PoseError: which coordinates, by how much, and where.
    """
    remedy = "stay within the stops, or mend the machine file: {drawing: [lower, upper]} is a range that stops nothing"
    PoseError.raise_if_any(
        Problem(where=item.name, what=item.advice, remedy=remedy)
        for item in beyond_limits(diagnostics)
    )


def limits_of(mechanism: Mechanism, topology: Topology) -> Limits:
    """Limits of a machine's coordinates, and of its cut joints."""
    limited = [
        (i, freedom)
        for i, freedom in zip(topology.q_of_v, topology.freedoms, strict=True)
        if i >= 0 and np.isfinite([freedom.lower, freedom.upper]).any()
    ]
    columns = tuple(i for i, _ in limited)
    names = tuple(topology.coordinate_names[i] for i in columns)
    units = tuple("rad" if topology.is_angle[i] else "m" for i in columns)
    every = [freedom for _, freedom in limited]
    cuts = seen_cuts(mechanism, topology) if topology.cuts else None
    if cuts is not None:
        names, units, every = names + cuts.names, units + cuts.units, [*every, *cuts.freedoms]
    return Limits(
        names=names,
        units=units,
        columns=columns,
        lower=np.array([freedom.lower for freedom in every]),
        upper=np.array([freedom.upper for freedom in every]),
        scale=np.where([unit == "rad" for unit in units], 1.0, mechanism.characteristic_length),
        is_stop=np.array([_stops(freedom) for freedom in every], dtype=bool),
        cuts=cuts,
    )


def _stops(freedom: Freedom) -> bool:
    """Whether a freedom has a stop (a cut joint may limit its speed alone)."""
    return freedom.limit == "stop" and bool(np.isfinite([freedom.lower, freedom.upper]).any())


def coordinate_limits(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper limits (n_q,) of the coordinates, of all kinds, SI; infinite where the file gives none."""
    lower, upper = np.full(topology.n_q, -np.inf), np.full(topology.n_q, np.inf)
    for i, freedom in zip(topology.q_of_v, topology.freedoms, strict=True):
        if i >= 0:
            lower[i], upper[i] = freedom.lower, freedom.upper
    return lower, upper


def excess(loops: Loops, q: np.ndarray) -> np.ndarray:
    """By how much coordinates (..., n_q) are beyond their limits (..., n_q), m or rad; negative below the lower one."""
    lower, upper = coordinate_limits(loops.topology)
    beyond = q - np.clip(q, lower, upper)
    return np.asarray(np.where(np.abs(beyond) > AT_THE_STOP * loops.coordinate_scale, beyond, 0.0))


def moved_inside(loops: Loops, q: np.ndarray) -> np.ndarray:
    """Coordinates (..., n_q), those beyond their limits in the middle of their range, or at its only end."""
    lower, upper = coordinate_limits(loops.topology)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    with np.errstate(invalid="ignore"):
        middle = np.where(bounded, 0.5 * (lower + upper), np.clip(q, lower, upper))
    return np.where((q < lower) | (q > upper), middle, q)


def limited(loops: Loops) -> Loops:
    """The same loops with one more equation for every limited coordinate: by how much it leaves its range.

    They serve to close the loops from afar; poses within the limits satisfy them.
    """
    topology = loops.topology
    lower, upper = coordinate_limits(topology)
    margin = np.where(np.isfinite(upper - lower), MARGIN * (upper - lower), 0.0)
    chosen = [
        i
        for i, j in enumerate(topology.q_of_v)
        if j >= 0 and np.isfinite([lower[j], upper[j]]).any()
    ]
    q = ca.SX.sym("q", topology.n_q)
    phi, K = loops.function.function(q) if loops.names else (ca.SX(0, 1), ca.SX(0, 1))
    above, below = q - (upper - margin), (lower + margin) - q
    outside, is_outside = ca.fmax(above, 0) - ca.fmax(below, 0), ca.logic_or(above > 0, below > 0)
    extra = ca.SX(len(chosen), topology.n_v)
    for row, i in enumerate(chosen):
        extra[row, i] = is_outside[topology.q_of_v[i]]
    K = ca.vertcat(ca.reshape(K, len(loops.names), topology.n_v), extra)
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
