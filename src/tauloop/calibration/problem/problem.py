"""A calibration as functions of numbers: whitened residuals of all measurements and their exact Jacobian.

Every pose has unknown coordinates q of the extended space. Its equations are

    phi(q, theta) = 0            loops, and equilibrium of a machine that hangs freely (`equilibrium`)
    A q - (s p + o) = 0          encoders, with their scale s and offset o; those beyond the freedoms are soft
    h(q, theta) - y = 0          the instrument

and two ways to make residuals of them are offered (`ForwardKinematics`, `LoopEquations`). In both,
*hard* equations give the coordinates and the *soft* ones are left over as residuals. Where hard
equations leave coordinates open (an orientation that nobody measured), combinations of soft ones
close them, and only what is left counts. With F = (hard; combinations) the coordinates follow the
parameters by dq/dx = -F_v^-1 F_x, hence dr/dx = C (s_x + s_v dq/dx).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from tauloop.calibration.measurements.instruments import Nuisance, Position, require_instruments
from tauloop.calibration.measurements.series import Series
from tauloop.calibration.problem.building import build_station
from tauloop.calibration.problem.equilibrium import Equilibrium, equilibrium_of
from tauloop.calibration.problem.pose_equations import Reach, independent_rows
from tauloop.calibration.problem.residuals import (
    FORWARD_KINEMATICS,
    ForwardKinematics,
    ResidualKind,
)
from tauloop.calibration.problem.stations import Station, StationState
from tauloop.calibration.problem.unknowns import (
    Bounds,
    Tolerances,
    Unknown,
    bounded,
    select_unknowns,
)
from tauloop.common.errors import InputError, PoseError, Problem, solving
from tauloop.common.records import dataclass
from tauloop.common.shown import Shown
from tauloop.compiler.c.calling.evaluator import WORTH_COMPILING, Compiled, Evaluator
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.assembly.locks import DEFAULT_LOCKS
from tauloop.equations.assembly.loops import loops
from tauloop.equations.assembly.spins import assemble_locked
from tauloop.equations.topology import integrate
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model.encoder_fit import encoder_deviations


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation(Shown):
    """Residuals of all poses at one correction.

    Attributes:
        correction: of all unknowns (n,), SI.
        states: coordinates and errors of every series.
    """

    correction: np.ndarray
    states: tuple[StationState, ...]

    @property
    def residual(self) -> np.ndarray:
        """Whitened residuals (R,) in units of standard deviations: series by series, pose by pose."""
        return np.concatenate([state.residual.ravel() for state in self.states])

    @property
    def is_reached(self) -> bool:
        """Whether all loops close at all poses."""
        return all(bool(state.is_reached.all()) for state in self.states)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linearised:
    """An evaluation with its derivatives in the free unknowns.

    Attributes:
        evaluation: where.
        jacobian: of the whitened residuals (R, n), SI.
        tangents: of the coordinates (N, n_v, n) of every series, SI.
    """

    evaluation: Evaluation
    jacobian: np.ndarray
    tangents: tuple[np.ndarray, ...]

    def only(self, columns: Sequence[int]) -> Linearised:
        """The same for some of the free unknowns, at their corrections here; the others must have none."""
        kept = list(columns)
        return Linearised(
            evaluation=replace(self.evaluation, correction=self.evaluation.correction[kept]),
            jacobian=self.jacobian[:, kept],
            tangents=tuple(tangent[:, :, kept] for tangent in self.tangents),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class CalibrationProblem(Shown):
    """Measurements, unknowns, and the functions that relate them.

    Attributes:
        mechanism: the nominal machine.
        assembly: how its loops close.
        unknowns: what is estimated; corrections are in their order.
        stations: one for each series, with its functions.
        residuals: how residuals are made.
        evaluator: how functions are run.
        encoder_noise: standard deviation of the encoders' errors, m or rad; zero takes them as
            exact, but for redundant drives: there it is 1e-5 rad, and 1e-5 of the machine's
            characteristic length.
        free: indices of the unknowns that are estimated; the others stay at their start values.
        equilibrium: equations by which the machine hangs still at every pose; None where it need
            not.
    """

    mechanism: Mechanism
    assembly: Assembly
    unknowns: tuple[Unknown, ...]
    stations: tuple[Station, ...]
    residuals: ResidualKind
    evaluator: Evaluator
    encoder_noise: float
    free: tuple[int, ...]
    equilibrium: Equilibrium | None = None

    @property
    def estimated(self) -> tuple[Unknown, ...]:
        """The unknowns that are estimated."""
        return tuple(self.unknowns[i] for i in self.free)

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(unknown.name for unknown in self.estimated)

    @cached_property
    def tolerances(self) -> np.ndarray:
        """Tolerances (n,) of the unknowns that are estimated, SI."""
        return np.array([unknown.tolerance for unknown in self.estimated])

    @property
    def series(self) -> tuple[Series, ...]:
        """The measurements."""
        return tuple(station.series for station in self.stations)

    @property
    def n_poses(self) -> int:
        """Number of poses of all series together."""
        return sum(len(station.series) for station in self.stations)

    @cached_property
    def pose_of_row(self) -> np.ndarray:
        """Number of the pose (counted over all series) behind every residual (R,)."""
        return np.repeat(
            np.arange(self.n_poses), [s.n_rows for s in self.stations for _ in range(len(s.series))]
        )

    def whole(self, correction: np.ndarray) -> np.ndarray:
        """Corrections (n_all, ...) of all unknowns from those of the estimated ones (n, ...); zero of the others."""
        full = np.zeros((len(self.unknowns), *correction.shape[1:]))
        full[list(self.free)] = correction
        return full

    def evaluate(
        self, correction: np.ndarray, near: Evaluation | Linearised | None = None
    ) -> Evaluation:
        """Residuals at corrections of the free unknowns (n,), started from (or along the tangent of) another place."""
        x = self.whole(correction)
        if isinstance(near, Linearised):
            step = correction - near.evaluation.correction
            starts = [
                integrate(self.assembly.topology, state.q, tangent @ step)
                for state, tangent in zip(near.evaluation.states, near.tangents, strict=True)
            ]
        else:
            starts = (
                [station.q for station in self.stations]
                if near is None
                else [state.q for state in near.states]
            )
        return Evaluation(
            correction=np.array(correction, dtype=float),
            states=tuple(
                station.state(x, q) for station, q in zip(self.stations, starts, strict=True)
            ),
        )

    def pose_jacobians(self, evaluation: Evaluation) -> tuple[np.ndarray, ...]:
        """Jacobians of the whitened residuals in the free unknowns, SI: one array (N, rows, n) for each series."""
        return tuple(J for J, _ in self._sensitivities(evaluation))

    def jacobian(self, evaluation: Evaluation) -> np.ndarray:
        """The same stacked (R, n), rows as in `Evaluation.residual`."""
        return self.linearised(evaluation).jacobian

    def linearised(self, evaluation: Evaluation) -> Linearised:
        """Jacobian and tangent, to step from one evaluation to a neighbour."""
        parts = self._sensitivities(evaluation)
        return Linearised(
            evaluation=evaluation,
            jacobian=np.concatenate([J.reshape(-1, len(self.free)) for J, _ in parts]),
            tangents=tuple(q_x for _, q_x in parts),
        )

    def _sensitivities(self, evaluation: Evaluation) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        x, free = self.whole(evaluation.correction), list(self.free)
        both = [
            station.jacobian(x, state)
            for station, state in zip(self.stations, evaluation.states, strict=True)
        ]
        return tuple((J[:, :, free], q_x[:, :, free]) for J, q_x in both)

    def only(self, names: Iterable[str]) -> CalibrationProblem:
        """The same problem with only these unknowns estimated.

        Raises:
            InputError: a name is not among the unknowns.
        """
        wanted, known = list(names), [unknown.name for unknown in self.unknowns]
        InputError.raise_if_any(unknown_names(wanted, known, "is not among the unknowns"))
        chosen = replace(self, free=tuple(known.index(name) for name in wanted))
        if "_forward" in self.__dict__:  # its functions took seconds to make and are the same
            chosen.__dict__["_forward"] = replace(self._forward, free=chosen.free)
        return chosen

    def bounded(self, bounds: Mapping[str, Bounds]) -> CalibrationProblem:
        """The same problem with the values of unknowns (by name or pattern) kept within bounds, SI.

        Raises:
            InputError: see `tauloop.calibration.unknowns.bounded`.
        """
        return replace(self, unknowns=bounded(self.unknowns, bounds)) if bounds else self

    def take(self, poses: np.ndarray) -> CalibrationProblem:
        """The same problem on some poses: indices into all of them, series after series (repeats allowed)."""
        poses = np.arange(self.n_poses)[poses]
        first, stations = 0, []
        for station in self.stations:
            inside = poses[(poses >= first) & (poses < first + len(station.series))] - first
            if len(inside):
                stations.append(station.take(inside))
            first += len(station.series)
        return replace(self, stations=tuple(stations))

    def reading(self, *readings: np.ndarray) -> CalibrationProblem:
        """The same problem with other readings (N, n_columns), SI, of the same poses: one array for each series."""
        both = zip(self.stations, readings, strict=True)
        stations = [
            replace(station, series=replace(station.series, readings=other))
            for station, other in both
        ]
        return replace(self, stations=tuple(stations))

    @property
    def reach(self) -> Reach:
        """What all series share."""
        nuisances = {n.name: n for station in self.stations for n in station.nuisances}
        return Reach(
            assembly=self.assembly,
            unknowns=self.unknowns,
            nuisances=tuple(nuisances.values()),
            evaluator=self.evaluator,
            equilibrium=self.equilibrium,
        )

    def predicting(self) -> CalibrationProblem:
        """The same problem whose residuals are errors of the instruments, by forward kinematics.

        Raises:
            PoseError: poses that are out of reach with the nominal geometry.
        """
        return self if isinstance(self.residuals, ForwardKinematics) else self._forward

    @cached_property
    def _forward(self) -> CalibrationProblem:
        stations = _stations(self.reach, self.series, FORWARD_KINEMATICS, self.encoder_noise)
        return replace(self, stations=stations, residuals=FORWARD_KINEMATICS)

    def values(self, correction: np.ndarray) -> dict[str, float]:
        """Values of all members of the free unknowns after a correction, SI."""
        start = self.start_values
        return {
            member: start[member] + float(step)
            for unknown, step in zip(self.estimated, correction, strict=True)
            for member in unknown.members
        }

    @cached_property
    def start_values(self) -> dict[str, float]:
        """Start values of all leaf and nuisance parameters, SI."""
        nuisances = {n.name: n.value for station in self.stations for n in station.nuisances}
        return {**self.mechanism.parameters.values, **nuisances}


def calibration_problem(
    mechanism: Mechanism,
    series: Iterable[Series],
    parameters: Iterable[str],
    *,
    residuals: ResidualKind = FORWARD_KINEMATICS,
    tolerances: Tolerances | None = None,
    encoder_noise: float = 0.0,
    bounds: Mapping[str, Bounds] | None = None,
    equilibrium: bool = False,
    evaluator: Evaluator | None = None,
) -> CalibrationProblem:
    """Set a calibration up.

    Args:
        mechanism: the nominal machine.
        series: measurements, of one or several kinds.
        parameters: unknowns by name or pattern (see `select_unknowns`): leaf parameters of the
            machine, nuisance parameters of instruments (``tracker.frame.*``) and
            ``encoder.ACTUATOR.scale`` or ``.offset``.
        residuals: `ForwardKinematics()` or `LoopEquations()`.
        tolerances: usual sizes of corrections, and priors.
        encoder_noise: standard deviation of encoders, m or rad; propagated into the weights.
        bounds: least and largest values of unknowns by name or pattern, SI, besides those of the
            machine file.
        equilibrium: whether the machine hangs still at every pose, in the freedoms that its
            actuators leave open.
        evaluator: how functions are run. Without it they are interpreted, and compiled for very
            many poses; use `Compiled()` for many fits.

    Raises:
        InputError: wrong names or shapes.
        PoseError: poses that are out of reach with the nominal geometry, all named.
        AssemblyError: the nominal machine does not assemble.
    """
    series = tuple(series)
    if not series:
        raise InputError.of("series", "no measurements are given", "give at least one series")
    assembly = assemble_locked(loops(mechanism), DEFAULT_LOCKS)
    if any(joint not in mechanism.joints for joint in assembly.mechanism.joints):
        mechanism = assembly.mechanism
    shape = assembly.topology
    _require_encoders(series, mechanism)
    require_instruments([s.instrument for s in series], mechanism, shape)
    encoders = encoder_nuisances(mechanism, assembly)
    nuisances = {n.name: n for s in series for n in s.instrument.nuisances()}
    everything = (*nuisances.values(), *encoders)
    unknowns = select_unknowns(mechanism, everything, parameters, tolerances or Tolerances())
    unknowns = bounded(unknowns, bounds or {})
    how = Compiled(at_least=WORTH_COMPILING) if evaluator is None else evaluator
    balance = equilibrium_of(assembly, independent_rows(assembly)) if equilibrium else None
    reach = Reach(
        assembly=assembly,
        unknowns=unknowns,
        nuisances=everything,
        evaluator=how,
        equilibrium=balance,
    )
    return CalibrationProblem(
        mechanism=mechanism,
        assembly=assembly,
        unknowns=unknowns,
        stations=_stations(reach, series, residuals, encoder_noise),
        residuals=residuals,
        evaluator=how,
        encoder_noise=encoder_noise,
        free=tuple(range(len(unknowns))),
        equilibrium=balance,
    )


@solving(PoseError)
def hanging_coordinates(mechanism: Mechanism, encoders: np.ndarray) -> np.ndarray:
    """Return the coordinates (N, n_q) at which a machine hangs still, from positions of its actuators.

    The geometrico-static problem of platforms on fewer cables than freedoms: loops, encoders and
    static equilibrium, from the reference pose along straight lines of the encoders.
    `simulated_series` takes such coordinates.

    Args:
        mechanism: the machine.
        encoders: positions of all actuators (N, n_u), m or rad.

    Raises:
        InputError: the actuators leave no freedom open, or no weight acts.
        PoseError: positions out of reach, or an equilibrium that is not stable.
        AssemblyError: the machine does not assemble.
    """
    encoders = np.atleast_2d(encoders)
    instrument = Position(name="hanging")
    series = Series(
        instrument=instrument, encoders=encoders, readings=np.zeros((len(encoders), 3)), noise=1.0
    )
    problem = calibration_problem(mechanism, [series], ["hanging.frame.x"], equilibrium=True)
    (state,) = problem.evaluate(np.zeros(1)).states
    return state.q


def _stations(
    reach: Reach, series: tuple[Series, ...], residuals: ResidualKind, encoder_noise: float
) -> tuple[Station, ...]:
    stations: list[Station] = []
    deviations = _deviations(reach.assembly, encoder_noise)
    for i, item in enumerate(series):
        # series of one instrument share their functions
        twin = next((s for s in stations if s.series.instrument == item.instrument), None)
        stations.append(
            build_station(reach, item, residuals, deviations, twin, where=f"series {i + 1}")
        )
    return tuple(stations)


def _deviations(assembly: Assembly, encoder_noise: float) -> np.ndarray:
    """Standard deviations of all encoders (n_u,), m or rad."""
    if assembly.is_redundant and not encoder_noise:
        return encoder_deviations(assembly, None)
    return np.full(len(assembly.mechanism.actuators), encoder_noise)


def encoder_nuisances(mechanism: Mechanism, assembly: Assembly) -> tuple[Nuisance, ...]:
    """Scale and offset of every actuator's encoder: position = scale * reading + offset."""
    shape = assembly.topology
    result: list[Nuisance] = []
    for actuator in mechanism.actuators:
        unit = "rad" if shape.motor_turns(actuator) else "m"
        result.append(Nuisance(name=f"encoder.{actuator.name}.scale", value=1.0, unit="1"))
        result.append(Nuisance(name=f"encoder.{actuator.name}.offset", value=0.0, unit=unit))
    return tuple(result)


def _require_encoders(series: tuple[Series, ...], mechanism: Mechanism) -> None:
    expected = len(mechanism.actuators)
    names = ", ".join(actuator.name for actuator in mechanism.actuators)
    InputError.raise_if_any(
        Problem(
            where=f"{item.instrument.name}.encoders",
            what=f"have {item.encoders.shape[1]} columns for {expected} actuators",
            remedy=f"give one column for each of {names}",
        )
        for item in series
        if item.encoders.shape[1] != expected
    )
