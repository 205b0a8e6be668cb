"""What an excitation is to achieve on one machine: channels, unknowns, limits, and how any series is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from tauloop.common.errors import IdentificationError, InputError, Problem, Problems
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import Compiled
from tauloop.compiler.state import State
from tauloop.equations.assembly.cut_freedoms import cut_freedoms
from tauloop.equations.ports import ACTUATORS, Entry
from tauloop.equations.values import BatchFunction
from tauloop.geometry.clearance import RodClearance, rod_clearance
from tauloop.identification.excitation.limits import (
    SINGULARITIES,
    Bound,
    ExcitationLimits,
    PerChannel,
    bounds,
    in_full,
    per_channel,
    quantities,
    use,
)
from tauloop.identification.excitation.sample import SampleFunction, sample_function
from tauloop.identification.regression.base_parameters import (
    BaseParameters,
    RankOptions,
    base_parameters,
)
from tauloop.identification.regression.from_log import leaf_ties
from tauloop.identification.regression.ties import Ties, ties
from tauloop.kinematics.singularities import singularities
from tauloop.mechanism.bodies import cables
from tauloop.mechanism.description import units
from tauloop.mechanism.description.units import ANGLE, LENGTH
from tauloop.mechanism.expression import Constant, Expression
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model, Motion
from tauloop.motion.fourier import FourierSeries, fourier_basis, resting_series
from tauloop.motion.sampled import SampledMotion

#: Samples of the shortest period in the grid on which an excitation is optimised, in that on which
#: the best are polished, and in that on which they are judged.
SAMPLES_OF_SHORTEST, POLISHED_OF_SHORTEST, JUDGED_OF_SHORTEST = 24, 48, 96
#: Samples from which on machine code pays: random searches call for as many again and again.
WORTH_COMPILING = 10_000
#: How far limits count as broken where loops do not close.
OUT_OF_REACH = 1e6
#: Base parameters keep the given order as far as this share of the best column allows.
PREFERENCE = 1e-2


def _values(where: str) -> Callable[[str], PerChannel]:
    return per_channel(where, LENGTH, ANGLE, is_one_enough=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcitationTask(Options):
    """An excitation by finite Fourier series.

    Attributes:
        space: whose coordinates are the series' channels.
        output: forces that are measured: of the actuators, or of the joints (after the
            transmission); of redundant actuators the resultants that identification uses too
            (`Model.measurable_output`).
        harmonics: terms of every Fourier series.
        period: period of the motion, such as 10s.
        limits: beside those of the machine file.
        held: channels or axes that stand still, such as 'telescope1.motor=1.2' (m, rad, or with a
            unit); the others move.
        center: centres of channels, likewise; the reference pose's where not named.
        rests: whether a period starts and ends with zero velocity and acceleration, or is part of a
            motion.
        first: parameters that represent base parameters before all others.
        weights: by output (row of the regressor), the inverse of its noise; one where not named.
        unknowns: leaf parameters of the machine file to be told (`leaf_ties`), all others known;
            without them the expressions of the file are the unknowns (`expression_ties`).
    """

    space: Entry = option(ACTUATORS, flag="--channels")
    output: str = option("actuators", choices=("actuators", "joints"))
    harmonics: int = option(5, least=1)
    period: float = option(10.0, least=1e-06, metavar="TIME", unit=units.TIME)
    limits: ExcitationLimits = field(default_factory=ExcitationLimits)
    held: Mapping[str, float] = option(
        factory=dict, read=_values("held"), flag="--hold", metavar="NAME=VALUE"
    )
    center: Mapping[str, float] = option(factory=dict, read=_values("center"), metavar="NAME=VALUE")
    rests: bool = option(True, flag="--rests/--no-rests")
    first: tuple[str, ...] = ()
    weights: Mapping[str, float] = option(factory=dict, flag="")
    unknowns: tuple[str, ...] = option((), flag="")


def expression_ties(model: Model, first: Sequence[str] = ()) -> Ties:
    """Ties of the regressor's columns by what the machine file says of them.

    Columns of one expression (legs that share their parameters) are one unknown, named after the
    first of them; constants are known.

    Args:
        model: the machine.
        first: unknowns that come first.

    Raises:
        InputError: a name in `first` is no unknown.
    """
    groups: dict[Expression, list[str]] = {}
    for parameter in model.parameters:
        groups.setdefault(parameter.expression, []).append(parameter.name)
    known = {
        name: key.value
        for key, names in groups.items()
        if isinstance(key, Constant)
        for name in names
    }
    equal = {names[0]: names for key, names in groups.items() if not isinstance(key, Constant)}
    InputError.raise_if_any(unknown_names(first, equal, "is no unknown of the regressor"))
    units = {parameter.name: parameter.unit for parameter in model.parameters}
    tied = ties(tuple(units), tuple(units.values()), equal=equal, known=known)
    order = [*first, *(name for name in equal if name not in first)]
    matrix = tied.matrix[:, [tied.parameters.index(name) for name in order]]
    return replace(
        tied, matrix=matrix, parameters=tuple(order), units=tuple(units[name] for name in order)
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judgement:
    """What a motion tells, and which limits it takes up.

    Attributes:
        regressor: rows weighted, of all unknowns (N n_out, n_unknowns).
        values: bounded quantities (N, n_bounds).
        channels: positions, velocities and accelerations (3, N, n) of the channels.
        shares: shares of all limits (3 n + n_bounds,): stroke, speed and acceleration of the
            channels, then bounds.
    """

    regressor: np.ndarray
    values: np.ndarray
    channels: np.ndarray
    shares: np.ndarray

    @property
    def largest_share(self) -> float:
        """Of any limit."""
        return float(self.shares.max(initial=0.0))


class ExcitationProblem:
    """An excitation task on one machine; constant once made."""

    def __init__(
        self, mechanism: Mechanism, task: ExcitationTask, before: np.ndarray | None = None
    ) -> None:
        """Check the task against the machine.

        Args:
            mechanism: the machine.
            task: what is asked.
            before: regressor rows (m, n_unknowns) of data sets that come before this one (see
                `Judgement.regressor`), on the scale of one period each.

        Raises:
            InputError: names, numbers or limits that do not fit; all problems.
            IdentificationError: the centre itself breaks limits: which, and by how much.
        """
        self.model = Model(mechanism, evaluator=Compiled(at_least=WORTH_COMPILING))
        names = self.model.motion(task.space).ports.position.columns
        task = replace(task, held=in_full(names, task.held), center=in_full(names, task.center))
        self.mechanism, self.task = mechanism, task
        _check(self.model, task)
        self.ties = (
            leaf_ties(self.model, task.unknowns)
            if task.unknowns
            else expression_ties(self.model, task.first)
        )
        self.before = np.zeros((0, len(self.ties.parameters))) if before is None else before
        self.limits = task.limits.of_channels(self.channels)
        self.clearance: RodClearance | None = (
            rod_clearance(self.model) if task.limits.clearance > 0 else None
        )
        self.cuts = cut_freedoms(self.model.mechanism, self.model.topology)
        self.bounds: tuple[Bound, ...] = bounds(self.model, task.limits, self.clearance, self.cuts)
        entry = self.functions.ports
        self.center = entry.at(self.model.assembly.q).copy()
        for name, value in {**task.center, **task.held}.items():
            self.center[entry.position.columns.index(name)] = value
        self.free = np.array([i for i, name in enumerate(self.channels) if name not in task.held])
        self.output = self.model.measurable_output(task.output)
        outputs, _ = self.model.output_ports(self.output)
        self.weights = np.array([task.weights.get(name, 1.0) for name in outputs])
        self._start = self.functions.follow(self.center, None).q
        self._require_center()

    @property
    def functions(self) -> Motion:
        """The entry whose coordinates are the channels."""
        return self.model.motion(self.task.space)

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels."""
        return self.functions.ports.position.columns

    @cached_property
    def grid(self) -> np.ndarray:
        """Times (N,) over one period on which excitations are optimised."""
        return self._grid(SAMPLES_OF_SHORTEST)

    @cached_property
    def polish_grid(self) -> np.ndarray:
        """Times over one period on which the best ones are optimised further; a multiple of `grid`."""
        return self._grid(POLISHED_OF_SHORTEST)

    @cached_property
    def fine_grid(self) -> np.ndarray:
        """Times over one period on which they are judged; a multiple of `grid`."""
        return self._grid(JUDGED_OF_SHORTEST)

    def _grid(self, samples: int) -> np.ndarray:
        count = samples * self.task.harmonics
        return np.arange(count) * self.task.period / count

    @cached_property
    def admitted(self) -> np.ndarray:
        """Basis (2 K + 1, k) of the coefficients of one channel that are allowed."""
        return (
            resting_series(self.task.harmonics)
            if self.task.rests
            else np.eye(2 * self.task.harmonics + 1)
        )

    @cached_property
    def reach(self) -> np.ndarray:
        """By channel (n,), how far its limits let it go from its centre, m or rad: a scale for coefficients.

        Raises:
            InputError: nothing limits a channel.
        """
        rate = 2 * np.pi / self.task.period
        ratios = np.array([self.limits[0], self.limits[1] / rate, self.limits[2] / rate**2])
        for i, name in enumerate(self.channels):
            for bound in self.bounds:
                if bound.kind == "position" and self._drives(name) == bound.of:
                    ratios[0, i] = min(
                        ratios[0, i],
                        max(bound.upper - self.center[i], self.center[i] - bound.lower),
                    )
        reach = ratios.min(axis=0)
        free = [i for i in self.free if not np.isfinite(reach[i])]
        if free:
            remedy = "give it a stroke, a speed or an acceleration"
            raise InputError(Problem(self.channels[i], "has no limit", remedy) for i in free)
        return np.where(np.isfinite(reach), reach, 0.0)

    def _drives(self, channel: str) -> str:
        """The coordinate that a channel is, or that an actuator drives alone."""
        for actuator in self.mechanism.actuators:
            if actuator.name == channel and len(actuator.drives) == 1:
                return actuator.drives[0][0]
        return channel

    def series(self, coefficients: np.ndarray) -> FourierSeries:
        """The series of coefficients (n_free, 2 K + 1); held channels rest."""
        full = np.zeros((len(self.channels), 2 * self.task.harmonics + 1))
        full[:, 0] = self.center
        full[self.free] = coefficients
        return FourierSeries.of(full, self.task.period)

    def channel_shares(self, coefficients: np.ndarray, time: np.ndarray) -> np.ndarray:
        """Shares (..., 3, n_free) of stroke, speed and acceleration that coefficients (..., n_free, 2 K + 1) take."""
        bases = fourier_basis(time, self.task.harmonics, self.task.period)
        moved = coefficients.copy()
        moved[..., 0] -= self.center[self.free]
        peaks = [np.abs(moved @ basis.T).max(axis=-1) for basis in bases]
        return np.asarray(np.stack(peaks, axis=-2) / self.limits[:, self.free])

    def judge(self, motion: SampledMotion) -> Judgement:
        """Judge consecutive samples of one motion, by the functions that all applications use.

        Raises:
            PoseError: out of reach.
        """
        q = (
            self.functions.track(motion.position, self._start).q
            if self.model.assembly.rows
            else None
        )
        state, regressor, force = self._forces(motion, q)
        tension = np.zeros((len(force), 0))
        if self._is_held:
            force, tension = self._tensions(motion, q)
        values = self._measured(state.q, np.asarray(state.v), force, tension)
        channels = np.stack(motion.rates)
        moved = np.stack([motion.position - self.center, *channels[1:]])
        peaks = (np.abs(moved).max(axis=1) / self.limits).ravel()
        return Judgement(
            regressor=regressor,
            values=values,
            channels=channels,
            shares=np.concatenate([peaks, use(self.bounds, values).max(axis=0, initial=0.0)]),
        )

    def _measured(
        self, q: np.ndarray, v: np.ndarray, force: np.ndarray, tension: np.ndarray
    ) -> np.ndarray:
        """The bounded quantities (N, n) of a motion, by the functions that all applications use."""
        model, cuts = self.model, self.cuts
        motors, moved = (
            v @ model.assembly.loops.transmission.T,
            (part.T for part in cuts.positions_and_speeds(q, v)),
        )
        cut = dict(zip(cuts.names, zip(*moved, strict=True), strict=True))
        known = quantities(model, cut, q.T, v.T, motors.T, force.T, tension.T)
        if any(bound.kind == "singularity" for bound in self.bounds):
            far = singularities(model, q)
            known |= {("singularity", kind): far.distance(kind) for kind in SINGULARITIES}
        if self.clearance is not None and len(self.clearance.pairs):
            known["clearance", "rods"] = self.clearance.distances(q).min(axis=1)
        values = [known[bound.kind, bound.of] for bound in self.bounds]
        return np.stack(values, axis=1) if values else np.zeros((len(q), 0))

    def _forces(
        self, motion: SampledMotion, start: np.ndarray | None
    ) -> tuple[State, np.ndarray, np.ndarray]:
        state = self.functions.kinematics(*motion.rates, start=start)
        regressor = self.functions.regressor(*motion.rates, output=self.output, start=start)
        at_actuators = regressor
        if self.output != "actuators":
            at_actuators = self.functions.regressor(*motion.rates, output="actuators", start=start)
        return state, self.rows(regressor), at_actuators @ self.model.pi

    @property
    def _is_held(self) -> bool:
        """Whether tensions of cables bound it."""
        return bool(cables(self.mechanism))

    def _tensions(
        self, motion: SampledMotion, start: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Forces (N, n_u) and tensions (N, k) as far within their bounds as can be: they show whether any are."""
        terms, _, _ = self.functions.tension_terms(*motion.rates, start=start)
        return terms.shared(self.task.limits.force).centred()

    @cached_property
    def force_unit(self) -> float:
        """What open forces are counted in: the largest at rest in the centre, N or N m."""
        return float(np.abs(self._tensions(self._at_rest, None)[0]).max()) or 1.0

    @property
    def _at_rest(self) -> SampledMotion:
        """One sample at rest in the centre."""
        still = np.zeros((1, self.functions.ports.velocity.size))
        return SampledMotion(
            time=np.zeros(1), position=self.center[None], velocity=still, acceleration=still
        )

    def rows(self, regressor: np.ndarray) -> np.ndarray:
        """Weighted rows (N n_out, n_unknowns) of the unknowns, on the scale of one period."""
        scaled = regressor * (self.weights / np.sqrt(len(regressor)))[:, None]
        return np.asarray((scaled @ self.ties.matrix).reshape(-1, len(self.ties.parameters)))

    @cached_property
    def sample(self) -> SampleFunction:
        """One sample of a motion as a differentiable function."""
        unit = self.force_unit if self._is_held else 1.0
        return sample_function(
            self.model, self.functions, self.output, self.bounds, self.clearance, unit
        )

    def opened(self, motion: SampledMotion) -> tuple[np.ndarray, np.ndarray]:
        """What stays open in `sample` (N, n_open), at independent samples, and which are in reach (N,)."""
        position = motion.position
        if not self.sample.open and not self._is_held:
            state = self.functions.evaluate(position)
            return np.zeros((len(position), 0)), np.asarray(state.health.is_reached)
        start = np.broadcast_to(self._start, (len(position), self._start.shape[-1]))
        state = self.functions.evaluate(position, start=start)
        reached = state.health.is_reached & np.isfinite(state.q).all(axis=1)
        columns = [
            self.model.topology.coordinate_names.index(name) for name in self.sample.coordinates
        ]
        forces = np.zeros((len(position), len(self.sample.open) - len(columns)))
        if self._is_held:
            reached &= np.asarray(state.health.is_regular)
            if reached.any():
                forces[reached] = (
                    self._tensions(motion.part(reached), state.q[reached])[0] / self.force_unit
                )
        return np.concatenate([state.q[:, columns], forces], axis=1), reached

    def screen(self, motion: SampledMotion) -> tuple[np.ndarray, np.ndarray]:
        """Regressors (N, n_out, n_unknowns), not weighted, and how far bounds are broken (N,), of independent samples.

        At most zero where all bounds are kept; `OUT_OF_REACH` where the loops do not close.
        """
        opened, reached = self.opened(motion)
        batch = [x[reached] for x in (*motion.rates, opened)]
        regressor = np.zeros((len(opened), len(self.weights), len(self.ties.parameters)))
        broken = np.full(len(opened), OUT_OF_REACH)
        if len(batch[0]):
            rows, _, values = self._batch(batch, len(batch[0]))
            regressor[reached] = rows.reshape(len(rows), len(self.weights), -1) @ self.ties.matrix
            lower, upper = self.sample.lower, self.sample.upper
            excess = np.maximum(lower - values, values - upper).max(axis=1, initial=-np.inf)
            broken[reached] = np.where(
                np.isfinite(excess), excess, np.where(values.shape[1] == 0, -1.0, OUT_OF_REACH)
            )
        return regressor, broken

    @cached_property
    def _batch(self) -> BatchFunction:
        return BatchFunction(self.sample.function)

    def base(self, regressor: np.ndarray) -> BaseParameters:
        """Base parameters that regressor rows (m, n_unknowns), and those of the data sets before, can tell.

        Raises:
            IdentificationError: there is no clear rank.
        """
        stacked = np.concatenate([regressor, self.before])
        options = RankOptions(preference=PREFERENCE) if self.task.first else RankOptions()
        return base_parameters(stacked, self.ties.parameters, self.ties.units, options)

    def _require_center(self) -> None:
        """Raise where the machine breaks limits while it stands at the centre."""
        judged = self.judge(self._at_rest)
        shares = use(self.bounds, judged.values)[0]
        problems = Problems()
        for bound, value, share in zip(self.bounds, judged.values[0], shares, strict=True):
            if share >= 1.0:
                limits = [f"at least {bound.lower:.5g}"] if np.isfinite(bound.lower) else []
                limits += [f"at most {bound.upper:.5g}"] if np.isfinite(bound.upper) else []
                what = f"is {value:.5g} {bound.unit} at rest in the centre, where {' and '.join(limits)} is asked"
                remedy = "choose another centre, or wider limits: no excitation around it can keep this one"
                problems.add(bound.name, " ".join(what.split()), remedy)
        IdentificationError.raise_if_any(problems)


def _check(model: Model, task: ExcitationTask) -> None:
    entry = model.motion(task.space).ports
    names = entry.position.columns
    quaternion = [
        name for name, unit in zip(names, entry.position.units, strict=True) if unit == "1"
    ]
    if quaternion or entry.position.size != entry.velocity.size:
        what = f"{', '.join(quaternion or names)} are parts of a quaternion, whose rates are no angular velocities"
        raise InputError.of("space", what, "excite in the space of the actuators")
    problems = Problems()
    if task.rests and task.harmonics < 2:
        problems.add("harmonics", f"must be at least 2, got {task.harmonics}", "such as 5")
    outputs, _ = model.output_ports(model.measurable_output(task.output))
    for where, stated, known in (
        ("held", task.held, names),
        ("center", task.center, names),
        ("weights", task.weights, outputs),
    ):
        problems += unknown_names(stated, known, "is unknown", f"{where}.{{}}")
        for name, value in stated.items():
            if not np.isfinite(value) or (where == "weights" and value <= 0):
                problems.add(f"{where}.{name}", f"is {value:g}", "give a finite number")
    if len(task.held) == len(names):
        problems.add("held", "holds all channels", "leave at least one to move")
    InputError.raise_if_any(problems)
