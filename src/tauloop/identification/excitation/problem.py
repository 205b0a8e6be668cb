"""The excitation task of one machine: channels, unknowns, limits, and the evaluation of motions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from tauloop.common.errors import IdentificationError, InputError, Problem, Problems
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import Compiled
from tauloop.compiler.c.calling.library import WORTH_OPTIMIZING
from tauloop.compiler.state import State
from tauloop.equations.assembly.freedoms.cut_freedoms import cut_freedoms
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
from tauloop.identification.regression.from_log import parameter_ties
from tauloop.identification.regression.ties import Ties, named_ties
from tauloop.kinematics.singularities import singularities
from tauloop.mechanism.description import units
from tauloop.mechanism.description.units import ANGLE, LENGTH
from tauloop.mechanism.expression import Constant, Expression
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model, Motion
from tauloop.motion.excitation.fourier import FourierSeries, fourier_basis, resting_series
from tauloop.motion.sampled import SampledMotion

#: Number of samples per period of the highest harmonic in the grid of the optimization.
SAMPLES_PER_SHORTEST_PERIOD = 24
#: The same number in the grid on which the best results are optimized further.
POLISH_SAMPLES_PER_SHORTEST_PERIOD = 48
#: The same number in the grid on which results are evaluated.
FINE_SAMPLES_PER_SHORTEST_PERIOD = 96
#: Usual number of batches of a random search, all of the same size.
BATCHES = 80
#: Value that replaces the violation of limits for poses whose loops do not close.
UNREACHABLE_EXCESS = 1e6
#: `RankOptions.preference` of base parameters in the order of
#: `ExcitationTask.preferred_parameters`.
GIVEN_ORDER_PREFERENCE = 1e-2


def _named_quantities(where: str) -> Callable[[str], PerChannel]:
    """Return a parser for lengths or angles by channel."""
    return per_channel(where, LENGTH, ANGLE, is_one_enough=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcitationTask(Options):
    """An excitation by finite Fourier series.

    Attributes:
        channels: "platform" or "actuators": the coordinates for which the series are planned.
        output: forces that are measured: of the actuators, or of the joints (after the
            transmission). For redundant actuators, these are the resultants that identification
            uses (`Model.measurable_output`).
        harmonics: number of harmonics of every Fourier series.
        period: period of the motion, such as 10s.
        limits: limits in addition to those of the machine file.
        hold: channels or axes that are held at a position, such as 'telescope1.motor=1.2' (m, rad,
            or with a unit); all others move.
        center: centers of channels, in the same form; by default the positions in the reference
            pose.
        rests: whether a period starts and ends with zero velocity and acceleration, or is part of a
            continuous motion.
        preferred_parameters: parameters that represent base parameters before all others.
        weights: inverse of the noise's standard deviation, by output (row of the regressor); 1 for
            other outputs.
        unknowns: independent parameters of the machine file that are unknown (`parameter_ties`),
            all others being known. By default the expressions of the file are the unknowns
            (`expression_ties`).
    """

    channels: Entry = option(ACTUATORS)
    output: str = option("actuators", choices=("actuators", "joints"))
    harmonics: int = option(5, least=1)
    period: float = option(10.0, least=1e-06, metavar="TIME", unit=units.TIME)
    limits: ExcitationLimits = field(default_factory=ExcitationLimits)
    hold: Mapping[str, float] = option(
        factory=dict, read=_named_quantities("hold"), metavar="NAME=VALUE"
    )
    center: Mapping[str, float] = option(
        factory=dict, read=_named_quantities("center"), metavar="NAME=VALUE"
    )
    rests: bool = option(True, flag="--rests/--no-rests")
    preferred_parameters: tuple[str, ...] = ()
    weights: Mapping[str, float] = option(factory=dict, flag="")
    unknowns: tuple[str, ...] = option((), flag="")


def expression_ties(model: Model, first: Sequence[str] = ()) -> Ties:
    """Return the ties of the regressor's columns that follow from the machine file.

    Columns with the same expression (legs that share their parameters) are one unknown with the
    name of the first of them. Constants are known.

    Args:
        model: the machine.
        first: names of unknowns that come first in the order.

    Raises:
        InputError: a name in `first` is not an unknown.
    """
    groups: dict[Expression, list[str]] = {}
    for parameter in model.parameters:
        groups.setdefault(parameter.expression, []).append(parameter.name)
    known: dict[str, float] = {}
    equal: dict[str, list[str]] = {}
    for expression, names in groups.items():
        if isinstance(expression, Constant):
            known |= dict.fromkeys(names, expression.value)
        else:
            equal[names[0]] = names
    InputError.raise_if_any(unknown_names(first, equal, "is not an unknown of the regressor"))
    units = {parameter.name: parameter.unit for parameter in model.parameters}
    tied = named_ties(tuple(units), tuple(units.values()), equal=equal, known=known)
    order = [*first, *(name for name in equal if name not in first)]
    matrix = tied.matrix[:, [tied.parameters.index(name) for name in order]]
    return replace(
        tied, matrix=matrix, parameters=tuple(order), units=tuple(units[name] for name in order)
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MotionEvaluation:
    """The regressor of a motion, and the fractions of the limits that the motion uses.

    Attributes:
        regressor: (N n_out, n_unknowns) weighted rows of all unknowns.
        values: (N, n_bounds) bounded quantities.
        channels: (3, N, n) positions, velocities and accelerations of the channels.
        shares: (3 n + n_bounds,) used fractions of all limits: stroke, speed and acceleration of
            the channels, then bounds.
    """

    regressor: np.ndarray
    values: np.ndarray
    channels: np.ndarray
    shares: np.ndarray

    @property
    def largest_share(self) -> float:
        """Largest used fraction of a limit."""
        return float(self.shares.max(initial=0.0))


class ExcitationProblem:
    """An excitation task on one machine; it does not change after its creation."""

    def __init__(
        self, mechanism: Mechanism, task: ExcitationTask, before: np.ndarray | None = None
    ) -> None:
        """Set up the problem and check the task.

        Args:
            mechanism: the machine.
            task: the excitation task.
            before: regressor rows (m, n_unknowns) of previous data sets (see
                `MotionEvaluation.regressor`), each data set scaled to one period.

        Raises:
            InputError: names, numbers or limits do not match the machine; lists all problems.
            IdentificationError: the center violates limits; lists the limits and values.
        """
        evaluator = Compiled(at_least=WORTH_OPTIMIZING // BATCHES)
        self.model = Model(mechanism, evaluator=evaluator)
        names = self.model.functions(task.channels).ports.position.columns
        task = replace(task, hold=in_full(names, task.hold), center=in_full(names, task.center))
        self.mechanism = mechanism
        self.task = task
        _check_task(self.model, task)
        if task.unknowns:
            self.ties = parameter_ties(self.model, task.unknowns)
        else:
            self.ties = expression_ties(self.model, task.preferred_parameters)
        self.before = np.zeros((0, len(self.ties.parameters))) if before is None else before
        self.limits = task.limits.of_channels(self.channels)
        self.clearance: RodClearance | None = None
        if task.limits.clearance > 0:
            self.clearance = rod_clearance(self.model)
        self.cuts = cut_freedoms(self.model.mechanism, self.model.topology)
        self.bounds: tuple[Bound, ...] = bounds(self.model, task.limits, self.clearance, self.cuts)
        entry = self.functions.ports
        self.center = entry.at(self.model.assembly.q).copy()
        for name, value in {**task.center, **task.hold}.items():
            self.center[entry.position.columns.index(name)] = value
        self.free = np.array([i for i, name in enumerate(self.channels) if name not in task.hold])
        self.output = self.model.measurable_output(task.output)
        outputs, _ = self.model.output_ports(self.output)
        self.weights = np.array([task.weights.get(name, 1.0) for name in outputs])
        self._start = self.functions.follow(self.center, None).q
        self._require_center()

    @property
    def functions(self) -> Motion:
        """Functions of the platform or the actuators, whose coordinates are the channels."""
        return self.model.functions(self.task.channels)

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels."""
        return self.functions.ports.position.columns

    @cached_property
    def grid(self) -> np.ndarray:
        """Times (N,) over one period of the grid of the optimization."""
        return self._grid(SAMPLES_PER_SHORTEST_PERIOD)

    @cached_property
    def polish_grid(self) -> np.ndarray:
        """Times over one period of the grid on which the best results are optimized further.

        It contains `grid`.
        """
        return self._grid(POLISH_SAMPLES_PER_SHORTEST_PERIOD)

    @cached_property
    def fine_grid(self) -> np.ndarray:
        """Times over one period of the grid on which results are evaluated; it contains `grid`."""
        return self._grid(FINE_SAMPLES_PER_SHORTEST_PERIOD)

    def _grid(self, samples: int) -> np.ndarray:
        """Return times over one period with a number of samples in the shortest period."""
        count = samples * self.task.harmonics
        return np.arange(count) * self.task.period / count

    @cached_property
    def admitted(self) -> np.ndarray:
        """Basis (2 K + 1, k) of the admissible coefficients of one channel."""
        if self.task.rests:
            return resting_series(self.task.harmonics)
        return np.eye(2 * self.task.harmonics + 1)

    @cached_property
    def reach(self) -> np.ndarray:
        """Largest distance (n,) of each channel from its center within its limits, m or rad.

        The distances scale the coefficients.

        Raises:
            InputError: a channel has no limit.
        """
        omega = 2 * np.pi / self.task.period
        distances = np.array([self.limits[0], self.limits[1] / omega, self.limits[2] / omega**2])
        for i, name in enumerate(self.channels):
            for bound in self.bounds:
                if bound.kind == "position" and self._driven_coordinate(name) == bound.of:
                    distance = max(bound.upper - self.center[i], self.center[i] - bound.lower)
                    distances[0, i] = min(distances[0, i], distance)
        reach = distances.min(axis=0)
        unlimited = [i for i in self.free if not np.isfinite(reach[i])]
        if unlimited:
            remedy = "limit its stroke, speed or acceleration"
            raise InputError(Problem(self.channels[i], "has no limit", remedy) for i in unlimited)
        return np.where(np.isfinite(reach), reach, 0.0)

    def _driven_coordinate(self, channel: str) -> str:
        """Return the coordinate that a channel's actuator drives, or else the channel itself."""
        for actuator in self.mechanism.actuators:
            if actuator.name == channel and len(actuator.drives) == 1:
                return actuator.drives[0][0]
        return channel

    def series(self, coefficients: np.ndarray) -> FourierSeries:
        """Return the series with coefficients (n_free, 2 K + 1); held channels are constant."""
        full = np.zeros((len(self.channels), 2 * self.task.harmonics + 1))
        full[:, 0] = self.center
        full[self.free] = coefficients
        return FourierSeries.of(full, self.task.period)

    def channel_shares(self, coefficients: np.ndarray, time: np.ndarray) -> np.ndarray:
        """Return the used fractions (..., 3, n_free) of the limits of stroke, speed, acceleration.

        Args:
            coefficients: (..., n_free, 2 K + 1).
            time: times (N,) at which the series are evaluated.
        """
        bases = fourier_basis(time, self.task.harmonics, self.task.period)
        centered = coefficients.copy()
        centered[..., 0] -= self.center[self.free]
        peaks = [np.abs(centered @ basis.T).max(axis=-1) for basis in bases]
        return np.asarray(np.stack(peaks, axis=-2) / self.limits[:, self.free])

    def evaluate(self, motion: SampledMotion) -> MotionEvaluation:
        """Evaluate consecutive samples of a motion with the model's compiled functions.

        Optimizations use the differentiable function `sample` instead.

        Returns:
            Regressor, bounded quantities and used fractions of the limits.

        Raises:
            PoseError: a pose is out of reach.
        """
        q = None
        if self.model.assembly.rows:
            q = self.functions.track(motion.position, self._start).q
        state, regressor, force = self._forces(motion, q)
        tension = np.zeros((len(force), 0))
        if self._has_cables:
            force, tension = self._tensions(motion, q)
        values = self._bounded_values(state.q, np.asarray(state.v), force, tension)
        channels = np.stack(motion.states)
        centered = np.stack([motion.position - self.center, *channels[1:]])
        peaks = (np.abs(centered).max(axis=1) / self.limits).ravel()
        return MotionEvaluation(
            regressor=regressor,
            values=values,
            channels=channels,
            shares=np.concatenate([peaks, use(self.bounds, values).max(axis=0, initial=0.0)]),
        )

    def _bounded_values(
        self, q: np.ndarray, v: np.ndarray, force: np.ndarray, tension: np.ndarray
    ) -> np.ndarray:
        """Return the bounded quantities (N, n) of a motion."""
        model = self.model
        cuts = self.cuts
        motors = v @ model.assembly.loops.transmission.T
        positions, speeds = cuts.positions_and_speeds(q, v)
        cut = dict(zip(cuts.names, zip(positions.T, speeds.T, strict=True), strict=True))
        known = quantities(model, cut, q.T, v.T, motors.T, force.T, tension.T)
        if any(bound.kind == "singularity" for bound in self.bounds):
            distances = singularities(model, q)
            known |= {("singularity", kind): distances.distance(kind) for kind in SINGULARITIES}
        if self.clearance is not None and len(self.clearance.pairs):
            known["clearance", "rods"] = self.clearance.distances(q).min(axis=1)
        values = [known[bound.kind, bound.of] for bound in self.bounds]
        return np.stack(values, axis=1) if values else np.zeros((len(q), 0))

    def _forces(
        self, motion: SampledMotion, start: np.ndarray | None
    ) -> tuple[State, np.ndarray, np.ndarray]:
        """Return the state, the weighted regressor rows and the actuator forces of a motion."""
        state = self.functions.kinematics(*motion.states, start=start)
        regressor = self.functions.regressor(*motion.states, output=self.output, start=start)
        at_actuators = regressor
        if self.output != "actuators":
            at_actuators = self.functions.regressor(*motion.states, output="actuators", start=start)
        return state, self.rows(regressor), at_actuators @ self.model.pi

    @property
    def _has_cables(self) -> bool:
        """Whether the machine has cables, whose tensions are bounded."""
        return bool(self.mechanism.cables)

    def _tensions(
        self, motion: SampledMotion, start: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return forces (N, n_u) and tensions (N, k), as far inside their bounds as possible.

        If this distribution of the forces violates a bound, every other distribution does too.
        """
        terms, _, _ = self.functions.tension_terms(*motion.states, start=start)
        return terms.shared(self.task.limits.force_share).centered()

    @cached_property
    def force_unit(self) -> float:
        """Unit of the forces among the free inputs of `sample`, N or N m.

        The unit is the largest force at rest at the center.
        """
        return float(np.abs(self._tensions(self._at_rest, None)[0]).max()) or 1.0

    @property
    def _at_rest(self) -> SampledMotion:
        """One sample at rest in the center."""
        still = np.zeros((1, self.functions.ports.velocity.size))
        return SampledMotion(
            time=np.zeros(1), position=self.center[None], velocity=still, acceleration=still
        )

    def rows(self, regressor: np.ndarray) -> np.ndarray:
        """Return weighted regressor rows (N n_out, n_unknowns), scaled to one period."""
        scaled = regressor * (self.weights / np.sqrt(len(regressor)))[:, None]
        return np.asarray((scaled @ self.ties.matrix).reshape(-1, len(self.ties.parameters)))

    @cached_property
    def sample(self) -> SampleFunction:
        """One sample of a motion as a differentiable function."""
        unit = self.force_unit if self._has_cables else 1.0
        return sample_function(
            self.model, self.functions, self.output, self.bounds, self.clearance, unit
        )

    def opened(self, motion: SampledMotion) -> tuple[np.ndarray, np.ndarray]:
        """Return the free inputs of `sample` at independent samples.

        The free inputs are the coordinates of opened loops and, for cables, the forces of the
        winches divided by `force_unit`.

        Returns:
            Values (N, n_open); True (N,) for samples in reach.
        """
        position = motion.position
        if not self.sample.open and not self._has_cables:
            state = self.functions.evaluate(position)
            return np.zeros((len(position), 0)), np.asarray(state.health.is_reached)
        start = np.broadcast_to(self._start, (len(position), self._start.shape[-1]))
        state = self.functions.evaluate(position, start=start)
        reached = state.health.is_reached & np.isfinite(state.q).all(axis=1)
        columns = [
            self.model.topology.coordinate_names.index(name) for name in self.sample.coordinates
        ]
        forces = np.zeros((len(position), len(self.sample.open) - len(columns)))
        if self._has_cables:
            reached &= np.asarray(state.health.is_regular)
            if reached.any():
                winch_forces, _ = self._tensions(motion.part(reached), state.q[reached])
                forces[reached] = winch_forces / self.force_unit
        return np.concatenate([state.q[:, columns], forces], axis=1), reached

    def screen(self, motion: SampledMotion) -> tuple[np.ndarray, np.ndarray]:
        """Return the regressors and the violation of bounds of independent samples.

        Returns:
            Regressors (N, n_out, n_unknowns), not weighted; violations (N,), at most zero within
            all bounds and `UNREACHABLE_EXCESS` where the loops do not close.
        """
        opened, reached = self.opened(motion)
        batch = [x[reached] for x in (*motion.states, opened)]
        regressor = np.zeros((len(opened), len(self.weights), len(self.ties.parameters)))
        violation = np.full(len(opened), UNREACHABLE_EXCESS)
        if len(batch[0]):
            rows, _, values = self._batch(batch, len(batch[0]))
            regressor[reached] = rows.reshape(len(rows), len(self.weights), -1) @ self.ties.matrix
            lower, upper = self.sample.lower, self.sample.upper
            excess = np.maximum(lower - values, values - upper).max(axis=1, initial=-np.inf)
            without_value = UNREACHABLE_EXCESS if values.shape[1] else -1.0
            violation[reached] = np.where(np.isfinite(excess), excess, without_value)
        return regressor, violation

    @cached_property
    def _batch(self) -> BatchFunction:
        """The function `sample` for batches."""
        return BatchFunction(self.sample.function)

    def base(self, regressor: np.ndarray) -> BaseParameters:
        """Return the base parameters of regressor rows and of the previous data sets.

        Args:
            regressor: rows (m, n_unknowns).

        Raises:
            IdentificationError: the rank is ambiguous.
        """
        stacked = np.concatenate([regressor, self.before])
        options = (
            RankOptions(preference=GIVEN_ORDER_PREFERENCE)
            if self.task.preferred_parameters
            else RankOptions()
        )
        return base_parameters(stacked, self.ties.parameters, self.ties.units, options)

    def _require_center(self) -> None:
        """Raise an error if the machine violates limits at rest at the center."""
        evaluation = self.evaluate(self._at_rest)
        fractions = use(self.bounds, evaluation.values)[0]
        problems = Problems()
        for bound, value, fraction in zip(
            self.bounds, evaluation.values[0], fractions, strict=True
        ):
            if fraction >= 1.0:
                limits = [f"at least {bound.lower:.5g}"] if np.isfinite(bound.lower) else []
                limits += [f"at most {bound.upper:.5g}"] if np.isfinite(bound.upper) else []
                size = f"{value:.5g} {bound.unit}".strip()
                problems.add(
                    bound.name,
                    f"is {size} at rest at the center, but must be {' and '.join(limits)}",
                    "choose another center or wider limits: no excitation around this center can meet this "
                    "limit",
                )
        IdentificationError.raise_if_any(problems)


def _check_task(model: Model, task: ExcitationTask) -> None:
    """Raise an error if a task does not match a machine."""
    entry = model.functions(task.channels).ports
    names = entry.position.columns
    quaternion = [
        name for name, unit in zip(names, entry.position.units, strict=True) if unit == "1"
    ]
    if quaternion or entry.position.size != entry.velocity.size:
        raise InputError.of(
            "channels",
            f"{', '.join(quaternion or names)} are components of a quaternion, whose rates are not angular "
            "velocities",
            "set `channels` to actuators",
        )
    problems = Problems()
    if task.rests and task.harmonics < 2:
        problems.add(
            "harmonics",
            f"a motion that starts and ends at rest needs at least 2, got {task.harmonics}",
            "give a number such as 5",
        )
    outputs, _ = model.output_ports(model.measurable_output(task.output))
    for where, stated, known in (
        ("hold", task.hold, names),
        ("center", task.center, names),
        ("weights", task.weights, outputs),
    ):
        problems += unknown_names(stated, known, "is unknown", f"{where}.{{}}")
        for name, value in stated.items():
            if not np.isfinite(value) or (where == "weights" and value <= 0):
                remedy = "give a positive number" if where == "weights" else "give a finite number"
                problems.add(f"{where}.{name}", f"is {value:g}", remedy)
    if len(task.hold) == len(names):
        problems.add(
            "hold", f"holds all {len(names)} channels", "leave at least one channel to move"
        )
    InputError.raise_if_any(problems)
