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
from tauloop.motion.rate_limits.tension_rates import (
    Margins,
    conditions,
    margins,
    tension_problems,
)
from tauloop.motion.strokes.stroke import Stroke

#: Permitted relative excess over a limit, which allows for rounding.
LIMIT_TOLERANCE = 1e-9
#: Maximum number of rounds in which peaks are added; two or three are usual.
MAX_PEAK_ROUNDS = 12
#: Maximum number of rounds in which conditions of cables are added; about ten are usual.
MAX_CONDITION_ROUNDS = 100
#: Rate (1/s) at which a stroke counts as at rest.
STANDSTILL_RATE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionLimits:
    """The finite force and speed limits of a machine.

    Attributes:
        names: names of the limits (n,): forces of actuators, followed by speeds of motors and
            coordinates.
        units: units of the limits.
        indices: indices of the limited values among all forces and speeds (n,).
        values: the limits (n,).
        cables: names of the cables, whose tensions are also bounded. The force limits of their
            winches are part of these bounds and are not in `values`.
        force: fraction of the largest tensions and of the winches' forces that may be used.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    indices: np.ndarray
    values: np.ndarray
    cables: tuple[str, ...]
    force: float

    def demand(self, stroke: Stroke, progress: LawSample, rate: float) -> np.ndarray:
        """Return the signed fractions of the limits that a stroke needs at a rate (1/s), (M, n).

        With a negative rate the stroke runs backward.
        """
        motion = stroke.motion(progress, rate, progress.s)
        start = stroke.start(progress.s)
        if self.cables:
            # without redundancy the forces of smallest norm are unique; with redundancy no force of
            # this list is limited (`limits_of`)
            terms, _, _ = stroke.functions.tension_terms(*motion.states, start=start)
            force, _, _, _ = terms.conditions()
            v = np.asarray(stroke.functions.kinematics(*motion.states, start=start).v)
        else:
            solution = stroke.forces(progress.s, np.sign(rate), motion.states)
            force = solution.force
            v = np.asarray(solution.state.v)
        motor_speeds = v @ stroke.model.assembly.loops.transmission.T
        forces_and_speeds = np.concatenate([force, motor_speeds, v], axis=1)
        return np.asarray(forces_and_speeds[:, self.indices] / self.values)

    def utilization(
        self, stroke: Stroke, progress: LawSample, rate: float
    ) -> tuple[np.ndarray, list[tuple[str, ...]]]:
        """Return the used fractions of the limits (M, n) at a rate (1/s), and the limits' names.

        With cables, the last column is the used fraction of the tension bounds.
        """
        fractions = np.abs(self.demand(stroke, progress, rate))
        if not self.cables:
            return fractions, [self.names] * len(progress.s)
        tension = margins(stroke, progress, rate, self.force)
        names = [(*self.names, f"tension of {self.cables[k]}") for k in tension.cable]
        tension_fraction = np.maximum(tension.share, 0.0)[:, None]
        return np.concatenate([fractions, tension_fraction], axis=1), names


def limits_of(model: Model, force: float = 1.0, speed: float = 1.0) -> MotionLimits:
    """Return the limits of the machine file, with forces and speeds multiplied by fractions.

    Raises:
        InputError: actuators with a force limit that are not winches are redundant with winches.
    """
    topology = model.topology
    actuators = model.mechanism.actuators
    names, force_units = model.output_ports("actuators")
    cables = model.mechanism.cables
    winch_indices = [winch.index for winch in limited_winches(model.mechanism)]
    values = [
        np.inf if i in winch_indices else force * actuator.force
        for i, actuator in enumerate(actuators)
    ]
    if cables and model.assembly.is_redundant and np.isfinite(values).any():
        limited = ", ".join(
            a.name for a, value in zip(actuators, values, strict=True) if np.isfinite(value)
        )
        what = (
            "share their forces with winches: the forces, and the rate at which they reach their "
            "limits, are not unique"
        )
        raise InputError.of(limited, what, "choose a duration")
    values += [speed * actuator.speed for actuator in actuators]
    values += [speed * freedom.speed for freedom in topology.freedoms]
    motor_units = tuple(
        "rad/s" if topology.is_rotary(actuator) else "m/s" for actuator in actuators
    )
    all_names = (*names, *(f"{name} speed" for name in (*names, *topology.velocity_names)))
    all_units = (
        *force_units,
        *motor_units,
        *("rad/s" if is_angular else "m/s" for is_angular in topology.angular),
    )
    indices = np.flatnonzero(np.isfinite(values))
    return MotionLimits(
        names=tuple(all_names[i] for i in indices),
        units=tuple(all_units[i] for i in indices),
        indices=indices,
        values=np.array(values)[indices],
        cables=tuple(cables),
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
        stroke: the path of the machine's coordinates.
        law: the motion law.
        force: fraction of the force limits and of the largest tensions that may be used.
        speed: fraction of the speed limits that may be used.
        returns: whether the stroke also runs backward (friction then has the other sign).

    Raises:
        InputError: the machine file has no limits, a fraction is not positive, or the stroke moves
            nothing that has a limit.
        PoseError: no rate satisfies the limits, because gravity, springs or Coulomb friction alone
            exceed them (the message states the limit, the position and the value); peaks between
            samples still exceed a limit after the largest number of rounds; or a pose is singular.
    """
    problems = Problems()
    for name, value in (("force", force), ("speed", speed)):
        if not value > 0:
            what = f"must be positive, got {value:g}"
            problems.add(name, what, "give a fraction of the limit; 1 uses all of it")
    InputError.raise_if_any(problems)
    limits = limits_of(stroke.model, force, speed)
    if not limits.names and not limits.cables:
        remedy = (
            "specify `force` of actuators or `speed` of joints in the machine file, or choose a "
            "duration"
        )
        raise InputError.of("limits", "nothing in the machine file limits the rate", remedy)
    x = sample_times(stroke, law)
    rate = 1.0
    directions = (1.0, -1.0) if returns else (1.0,)
    highest = np.inf
    bound = _RateBound(limits, stroke, law, directions)
    for _ in range(MAX_PEAK_ROUNDS):
        shares = [_shares(limits, stroke, law.at(x), direction * rate) for direction in directions]
        largest = bound.largest(_excess(shares), x, rate)
        if largest == 0.0:
            raise PoseError(
                _static_violations(limits, stroke, law.at(x), shares)
                or tension_problems(stroke, law.at(x), STANDSTILL_RATE, limits.force)
            )
        if not np.isfinite(largest):
            what = "the stroke does not move anything that has a force or speed limit"
            raise InputError.of("limits", what, "choose a duration")
        has_converged = abs(largest - rate) <= LIMIT_TOLERANCE * rate
        rate = largest
        peak_times, highest = _peaks(limits, stroke, law, x, rate, directions)
        if highest <= 1 + LIMIT_TOLERANCE and has_converged:
            return rate
        x = np.union1d(x, peak_times)
    what = (
        f"between samples the motion still reaches {100 * highest:.9g} % of a limit after "
        f"{MAX_PEAK_ROUNDS} rounds"
    )
    raise PoseError.of(
        "limits", what, "give a `duration`, and compare the forces near the peaks with the limits"
    )


class _RateBound:
    """The largest rate that quadratics and cables allow.

    Conditions of cables that are computed for a rate are stored for the next calls.
    """

    def __init__(
        self, limits: MotionLimits, stroke: Stroke, law: Law, directions: tuple[float, ...]
    ) -> None:
        self._limits = limits
        self._stroke = stroke
        self._law = law
        self._directions = directions
        self._conditions: list[Quadratics] = []

    def largest(self, excess: Quadratics, x: np.ndarray, rate: float) -> float:
        """Return the largest rate allowed at normalized times (M,), 1/s.

        It is zero if no rate is allowed, and infinite if the rate is not limited.
        """
        if not self._limits.cables:
            return largest_rate(excess)
        for _ in range(MAX_CONDITION_ROUNDS):
            largest = largest_rate(joined([excess, *self._conditions]))
            if largest == 0.0:
                return 0.0
            rate = largest if np.isfinite(largest) else 2.0 * rate
            rates = [direction * rate for direction in self._directions]
            all_margins = [self._margins(x, r) for r in rates]
            largest_share = max(item.share.max() for item in all_margins)
            if np.isfinite(largest) and largest_share <= 1.0:
                return largest
            progress = self._law.at(x)
            force = self._limits.force
            for r, item in zip(rates, all_margins, strict=True):
                self._conditions.append(conditions(self._stroke, progress, r, item, force))
        return np.inf

    def _margins(self, x: np.ndarray, rate: float) -> Margins:
        return margins(self._stroke, self._law.at(x), rate, self._limits.force)


def tightest_limit(
    stroke: Stroke, law: Law, rate: float, *, returns: bool = False
) -> tuple[str, float] | None:
    """Return the limit with the largest used fraction along a stroke, and this fraction.

    The result is None if the machine file has no limits.

    Args:
        stroke: the path of the machine's coordinates.
        law: the motion law.
        rate: 1 / duration, 1/s.
        returns: whether the stroke also runs backward.

    Raises:
        PoseError: a pose is singular.
    """
    limits = limits_of(stroke.model)
    x = sample_times(stroke, law)
    if not limits.names and not limits.cables:
        return None
    candidates = []
    directions = (1.0, -1.0) if returns else (1.0,)
    for direction in directions:
        peak_times, _ = _peaks(limits, stroke, law, x, rate, (direction,))
        fractions, names = limits.utilization(stroke, law.at(peak_times), direction * rate)
        k, i = np.unravel_index(int(fractions.argmax()), fractions.shape)
        candidates.append((names[k][i], float(fractions[k, i])))
    return max(candidates, key=lambda item: item[1])


def sample_times(stroke: Stroke, law: Law) -> np.ndarray:
    """Return uniformly spaced normalized times, and both sides of jumps of the acceleration (M,)."""
    x = np.linspace(0.0, 1.0, stroke.path.n_shape_points)
    jumps = np.array(
        law.breaks + tuple(float(np.interp(u, law.at(x).s, x)) for u in stroke.path.breaks)
    )
    return np.unique(np.concatenate([x, jumps, np.nextafter(jumps, 0.0)]))


def _shares(limits: MotionLimits, stroke: Stroke, progress: LawSample, rate: float) -> Quadratics:
    """Return the fractions of the limits (M, n) as quadratics in the rate, from three rates.

    Forces are quadratic and speeds are linear in the rate. The three rates have the same sign, so
    Coulomb friction does not change its sign.
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
    peak_times = []
    highest = 0.0
    for direction in directions:

        def largest_fraction(x: np.ndarray, direction: float = direction) -> np.ndarray:
            fractions, _ = limits.utilization(stroke, law.at(x), direction * rate)
            return np.asarray(fractions.max(axis=1))

        times, heights = refined(largest_fraction, x, largest_fraction(x))
        peak_times.append(times)
        highest = max(highest, float(heights[0]))
    return np.concatenate(peak_times), highest


def _static_violations(
    limits: MotionLimits, stroke: Stroke, progress: LawSample, shares: list[Quadratics]
) -> list[Problem]:
    """Return the problems of limits that even a slow motion exceeds."""
    static = np.concatenate([np.abs(share.c) for share in shares])
    problems = Problems()
    for i in np.flatnonzero(static.max(axis=0) >= 1.0 - LIMIT_TOLERANCE):
        k = int(static[:, i].argmax())
        unit = limits.units[i]
        limit = limits.values[i]
        what = (
            f"needs {static[k, i] * limit:.4g} {unit} however slow the motion (gravity, springs and "
            f"Coulomb friction alone), limit {limit:.4g} {unit}, at "
            f"{stroke.place(float(progress.s[k % len(progress.s)]))}"
        )
        problems.add(limits.names[i], what, "use a lighter load, another path or a stronger motor")
    return problems
