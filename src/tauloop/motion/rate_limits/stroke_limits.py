"""Fastest rate of a stroke: force and speed limits as exact functions of the rate."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import InputError, PoseError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.compiler.functions.tensions import limited_winches
from tauloop.model import Model
from tauloop.motion.laws import Law, LawSample
from tauloop.motion.rate_limits.peaks import refined
from tauloop.motion.rate_limits.scaling import Quadratics, joined, largest_rate
from tauloop.motion.rate_limits.tension_rates import Margins, conditions, loose, margins
from tauloop.motion.strokes.stroke import Stroke

#: Permitted relative excess over a limit, which allows for rounding.
SHARE_TOLERANCE = 1e-9
#: Maximum number of rounds in which peaks are added; two or three are usual.
MAX_PEAK_ROUNDS = 12
#: Maximum number of rounds in which conditions of cables are added; about ten are usual.
MAX_CONDITIONS = 100
#: Rate (1/s) at which a stroke counts as at rest.
STANDSTILL_RATE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionLimits:
    """The finite force and speed limits of a machine.

    Attributes:
        names: names of the limits (n,): forces of actuators, followed by speeds of motors and
            coordinates.
        units: units of the limits.
        kept: indices of the limited values among all forces and speeds (n,).
        size: the limits (n,).
        cables: names of the rods whose tensions also have bounds. The force limits of their winches
            are part of these bounds and are not in the list above.
        force: fraction of the largest tensions and of the winches' forces that may be used.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    kept: np.ndarray
    size: np.ndarray
    cables: tuple[str, ...]
    force: float

    def demand(self, stroke: Stroke, progress: LawSample, rate: float) -> np.ndarray:
        """Return the signed fractions of the limits that a stroke needs at a rate (1/s), (M, n).

        With a negative rate the stroke runs backward.
        """
        motion = stroke.motion(progress, rate, progress.s)
        start = stroke.start(progress.s)
        if self.cables:
            terms, _, _ = stroke.functions.tension_terms(*motion.states, start=start)
            force, v = (
                terms.conditions()[0],
                np.asarray(stroke.functions.kinematics(*motion.states, start=start).v),
            )
        else:
            solution = stroke.forces(progress.s, np.sign(rate), motion.states)
            force, v = solution.force, np.asarray(solution.state.v)
        everything = np.concatenate(
            [force, v @ stroke.model.assembly.loops.transmission.T, v], axis=1
        )
        return np.asarray(everything[:, self.kept] / self.size)

    def taken(
        self, stroke: Stroke, progress: LawSample, rate: float
    ) -> tuple[np.ndarray, list[tuple[str, ...]]]:
        """Return the used fractions of the limits (M, n) at a rate (1/s), and their names.

        Tensions are last.
        """
        shares, names = np.abs(self.demand(stroke, progress, rate)), [self.names] * len(progress.s)
        if not self.cables:
            return shares, names
        tension = margins(stroke, progress, rate, self.force)
        pulled = [(*self.names, f"tension of {self.cables[k]}") for k in tension.cable]
        return np.concatenate([shares, np.maximum(tension.share, 0.0)[:, None]], axis=1), pulled


def limits_of(model: Model, force: float = 1.0, speed: float = 1.0) -> MotionLimits:
    """Return the limits of the machine file, with forces and speeds multiplied by fractions.

    Raises:
        InputError: actuators with a force limit that are not winches share their forces with
            winches.
    """
    shape, actuators = model.topology, model.mechanism.actuators
    names, force_units = model.output_ports("actuators")
    held = model.mechanism.cables
    wound = [winch.index for winch in limited_winches(model.mechanism)]
    sizes = [
        np.inf if i in wound else force * actuator.force for i, actuator in enumerate(actuators)
    ]
    if held and model.assembly.is_redundant and np.isfinite(sizes).any():
        shared = ", ".join(
            a.name for a, size in zip(actuators, sizes, strict=True) if np.isfinite(size)
        )
        what = "share their forces with winches, so the rate at which they reach their limits is undefined"
        raise InputError.of(shared, what, "choose a duration")
    sizes += [speed * actuator.speed for actuator in actuators]
    sizes += [speed * freedom.speed for freedom in shape.freedoms]
    motor_units = tuple("rad/s" if shape.motor_turns(actuator) else "m/s" for actuator in actuators)
    all_names = (*names, *(f"{name} speed" for name in (*names, *shape.velocity_names)))
    all_units = (
        *force_units,
        *motor_units,
        *("rad/s" if turns else "m/s" for turns in shape.angular),
    )
    kept = np.flatnonzero(np.isfinite(sizes))
    return MotionLimits(
        names=tuple(all_names[i] for i in kept),
        units=tuple(all_units[i] for i in kept),
        kept=kept,
        size=np.array(sizes)[kept],
        cables=tuple(held),
        force=force,
    )


def fastest_rate(
    stroke: Stroke, law: Law, *, force: float = 1.0, speed: float = 1.0, returns: bool = False
) -> float:
    """Return the largest rate (1 / duration, 1/s) at which a stroke satisfies the machine's limits.

    Forces are quadratic in the rate r: tau(x, r) = tau_0(x) + r tau_1(x) + r^2 tau_2(x). Inverse
    dynamics at three rates gives the coefficients exactly. The result is the largest r that all
    these quadratics allow. Peaks between samples are located and added. The bounds of cable
    tensions are also expressed as quadratics (`tension_rates`).

    Args:
        stroke: the path in the machine.
        law: the motion law.
        force: fraction of the force limits and of the largest tensions that may be used.
        speed: fraction of the speed limits that may be used.
        returns: whether the stroke also runs backward (friction then has the other sign).

    Raises:
        InputError: the machine file has no limits, or a fraction is not positive.
        PoseError: no rate satisfies the limits, because gravity, springs or Coulomb friction alone
            exceed them (the message states the limit, the position and the value); or a pose is
            singular.
    """
    asked = [("force", force), ("speed", speed)]
    InputError.raise_if_any(
        Problem(
            where=n,
            what=f"must be positive, got {v:g}",
            remedy="give a fraction of the limit; 1 uses all of it",
        )
        for n, v in asked
        if not v > 0
    )
    limits = limits_of(stroke.model, force, speed)
    if not limits.names and not limits.cables:
        remedy = "give 'force' to actuators or 'speed' to joints, or choose a duration"
        raise InputError.of("limits", "nothing in the machine file limits the rate", remedy)
    x, rate = sample_times(stroke, law), 1.0
    directions = (1.0, -1.0) if returns else (1.0,)
    highest, allowed = np.inf, _Allowed(limits, stroke, law, directions)
    for _ in range(MAX_PEAK_ROUNDS):
        shares = [_shares(limits, stroke, law.at(x), direction * rate) for direction in directions]
        largest = allowed.largest(_excess(shares), x, rate)
        if largest == 0.0:
            raise PoseError(
                _unmet(limits, stroke, law.at(x), shares)
                or loose(stroke, law.at(x), STANDSTILL_RATE, limits.force)
            )
        if not np.isfinite(largest):
            what = "the stroke does not move anything that has a force or speed limit"
            raise InputError.of("limits", what, "choose a duration")
        settled = abs(largest - rate) <= SHARE_TOLERANCE * rate
        rate = largest
        places, highest = _peaks(limits, stroke, law, x, rate, directions)
        if highest <= 1 + SHARE_TOLERANCE and settled:
            return rate
        x = np.union1d(x, places)
    what = (
        f"peaks between samples still need {highest:.9g} of a limit after {MAX_PEAK_ROUNDS} rounds"
    )
    raise PoseError.of(
        "limits", what, "give a `duration`, and compare the forces near the peaks with the limits"
    )


class _Allowed:
    """The largest rate that quadratics and cables allow. Conditions of cables are stored."""

    def __init__(
        self, limits: MotionLimits, stroke: Stroke, law: Law, directions: tuple[float, ...]
    ) -> None:
        self._limits, self._stroke, self._law, self._directions = limits, stroke, law, directions
        self._kept: list[Quadratics] = []

    def largest(self, excess: Quadratics, x: np.ndarray, rate: float) -> float:
        """Return the largest rate allowed at normalized times (M,), 1/s.

        It is zero if no rate is allowed, and infinite if the rate is not limited.
        """
        if not self._limits.cables:
            return largest_rate(excess)
        for _ in range(MAX_CONDITIONS):
            largest = largest_rate(joined([excess, *self._kept]))
            if largest == 0.0:
                return 0.0
            rate = largest if np.isfinite(largest) else 2.0 * rate
            tried = [
                (direction * rate, self._margins(x, direction * rate))
                for direction in self._directions
            ]
            if np.isfinite(largest) and max(margins.share.max() for _, margins in tried) <= 1.0:
                return largest
            progress, force = self._law.at(x), self._limits.force
            self._kept += [
                conditions(self._stroke, progress, r, margins, force) for r, margins in tried
            ]
        return np.inf

    def _margins(self, x: np.ndarray, rate: float) -> Margins:
        return margins(self._stroke, self._law.at(x), rate, self._limits.force)


def tightest_limit(
    stroke: Stroke, law: Law, rate: float, *, returns: bool = False
) -> tuple[str, float] | None:
    """Return the limit with the largest used fraction along a stroke, and this fraction.

    The result is None if the machine file has no limits.

    Args:
        stroke: the path in the machine.
        law: the motion law.
        rate: 1 / duration, 1/s.
        returns: whether the stroke also runs backward.

    Raises:
        PoseError: a pose is singular.
    """
    limits, x = limits_of(stroke.model), sample_times(stroke, law)
    if not limits.names and not limits.cables:
        return None
    reached = []
    for direction in (1.0, -1.0) if returns else (1.0,):
        places, _ = _peaks(limits, stroke, law, x, rate, (direction,))
        shares, names = limits.taken(stroke, law.at(places), direction * rate)
        k, i = np.unravel_index(int(shares.argmax()), shares.shape)
        reached.append((names[k][i], float(shares[k, i])))
    return max(reached, key=lambda item: item[1])


def sample_times(stroke: Stroke, law: Law) -> np.ndarray:
    """Return normalized times (M,), evenly spaced, with both sides of jumps of the acceleration."""
    x = np.linspace(0.0, 1.0, stroke.path.n_shape_points)
    jumps = np.array(
        law.breaks + tuple(float(np.interp(u, law.at(x).s, x)) for u in stroke.path.breaks)
    )
    return np.unique(np.concatenate([x, jumps, np.nextafter(jumps, 0.0)]))


def _shares(limits: MotionLimits, stroke: Stroke, progress: LawSample, rate: float) -> Quadratics:
    """Return the fractions of the limits (M, n) as quadratics in the rate, from three rates.

    Forces are quadratic and speeds are linear. The sign of Coulomb friction does not change because
    no rate is zero.
    """
    return Quadratics.around(rate, lambda r: limits.demand(stroke, progress, r))


def _excess(shares: list[Quadratics]) -> Quadratics:
    """Return the excess of fractions over 1, for both signs."""
    return joined(
        [
            Quadratics(a=side * share.a, b=side * share.b, c=side * share.c - 1.0)
            for share in shares
            for side in (1, -1)
        ]
    )


def _peaks(
    limits: MotionLimits,
    stroke: Stroke,
    law: Law,
    x: np.ndarray,
    rate: float,
    directions: tuple[float, ...],
) -> tuple[np.ndarray, float]:
    """Return the normalized times of the largest fractions of limits, and the largest fraction."""
    places, highest = [], 0.0
    for direction in directions:

        def share(x: np.ndarray, direction: float = direction) -> np.ndarray:
            return np.asarray(limits.taken(stroke, law.at(x), direction * rate)[0].max(axis=1))

        peaks, heights = refined(share, x, share(x))
        places.append(peaks)
        highest = max(highest, float(heights[0]))
    return np.concatenate(places), highest


def _unmet(
    limits: MotionLimits, stroke: Stroke, progress: LawSample, shares: list[Quadratics]
) -> list[Problem]:
    """Return the problems of limits that even a slow motion exceeds."""
    still = np.concatenate([np.abs(share.c) for share in shares])
    problems = Problems()
    for i in np.flatnonzero(still.max(axis=0) >= 1.0 - SHARE_TOLERANCE):
        k, unit = int(still[:, i].argmax()), limits.units[i]
        what = (
            f"needs {still[k, i] * limits.size[i]:.4g} {unit} however slow the motion (gravity, springs and Coulomb "
            f"friction alone), limit {limits.size[i]:.4g} {unit}, at "
            f"{stroke.place(float(progress.s[k % len(progress.s)]))}"
        )
        problems.add(limits.names[i], what, "use a lighter load, another path or a stronger motor")
    return problems
