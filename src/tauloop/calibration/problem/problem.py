"""The calibration problem: whitened residuals of all measurements and their exact Jacobian.

Every pose has unknown coordinates q of the extended space. Its equations are

    phi(q, theta) = 0           loops
    A q - (s p + o) = 0         encoders with readings p, scale s and offset o
    h(q, theta) - y = 0         errors of an instrument with reading y

with the parameters theta. For a machine that hangs freely, phi also contains static equilibrium
(see `equilibrium`). Encoders of redundant drives are always soft equations.

Two definitions of the residuals are available: `ForwardKinematics` and `LoopEquations`. In both,
*hard* equations determine the coordinates, and the *soft* equations are residuals. Hard equations
may leave coordinates open, such as an orientation that was not measured. Combinations of soft
equations then determine these coordinates, and the residuals are the other combinations. With
F = (hard; combinations), the derivatives of the coordinates with respect to the unknowns x are
dq/dx = -F_v^-1 F_x, where F_v is the derivative with respect to displacements along the velocities.
Hence dr/dx = C (e_x + e_v dq/dx) for the residuals r = C e, with the soft equations e and the other
combinations C.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from tauloop.calibration.measurements.instruments import Nuisance, Position, require_instruments
from tauloop.calibration.measurements.series import Series
from tauloop.calibration.problem.building import build_measured_pose
from tauloop.calibration.problem.deflection import Deflection
from tauloop.calibration.problem.equilibrium import Equilibrium, equilibrium_of
from tauloop.calibration.problem.loaded_machine import (
    ElasticMachine,
    elastic_machine,
    require_load_columns,
    thermometer_nuisances,
)
from tauloop.calibration.problem.measured_poses import MeasuredPose, MeasuredPoseState
from tauloop.calibration.problem.pose_equations import CalibrationContext, independent_rows
from tauloop.calibration.problem.residuals import (
    FORWARD_KINEMATICS,
    ForwardKinematics,
    ResidualKind,
)
from tauloop.calibration.problem.unknowns import (
    Bounds,
    Tolerances,
    Unknown,
    bounded,
    select_unknowns,
)
from tauloop.common.counts import counted
from tauloop.common.errors import InputError, PoseError, Problem, solving
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.c.calling.evaluator import Evaluator, default_evaluator
from tauloop.equations.assembly.assembly import Assembly, assemble
from tauloop.equations.assembly.freedoms.locks import DEFAULT_LOCKS
from tauloop.equations.assembly.freedoms.spins import lock_spins
from tauloop.equations.assembly.loops import loops
from tauloop.equations.topology import integrate
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model.positions.encoder_fit import encoder_deviations


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation(ReprMixin):
    """Residuals of all poses at one vector of corrections.

    Attributes:
        correction: corrections of the free unknowns (n,), SI.
        states: coordinates and errors of every series.
    """

    correction: np.ndarray
    states: tuple[MeasuredPoseState, ...]

    @property
    def residual(self) -> np.ndarray:
        """Whitened residuals (R,) in standard deviations, series by series and pose by pose."""
        return np.concatenate([state.residual.ravel() for state in self.states])

    @property
    def is_reached(self) -> bool:
        """Whether all loops close at all poses."""
        return all(bool(state.is_reached.all()) for state in self.states)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linearized:
    """An evaluation with its derivatives with respect to the free unknowns.

    Attributes:
        evaluation: residuals and coordinates at the corrections.
        jacobian: derivatives of the whitened residuals (R, n), SI.
        tangents: derivatives of the coordinates (N, n_v, n) of every series, SI.
    """

    evaluation: Evaluation
    jacobian: np.ndarray
    tangents: tuple[np.ndarray, ...]

    def only(self, columns: Sequence[int]) -> Linearized:
        """Return the derivatives with respect to some of the free unknowns.

        Corrections of the other unknowns must be zero.
        """
        indices = list(columns)
        return Linearized(
            evaluation=replace(self.evaluation, correction=self.evaluation.correction[indices]),
            jacobian=self.jacobian[:, indices],
            tangents=tuple(tangent[:, :, indices] for tangent in self.tangents),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class CalibrationProblem(ReprMixin):
    """Measurements, unknowns, and the functions that relate them.

    Attributes:
        mechanism: the nominal machine.
        assembly: how the loops of the machine close.
        unknowns: parameters that can be estimated; corrections are in the same order.
        measured_poses: the measured poses of each series, with their functions.
        residuals: definition of the residuals.
        evaluator: how functions are evaluated: interpreted or compiled.
        encoder_noise: standard deviation of the encoders' errors, m or rad. Zero means exact
            encoders; for redundant drives it is then 1e-5 rad, or 1e-5 of the characteristic
            length.
        free: indices of the unknowns that are estimated; the others have their start values.
        equilibrium: static equilibrium equations of every pose; None if the machine does not hang
            freely.
        deflection: displacement of the tool due to loads and temperatures; None for a rigid
            machine.
    """

    mechanism: Mechanism
    assembly: Assembly
    unknowns: tuple[Unknown, ...]
    measured_poses: tuple[MeasuredPose, ...]
    residuals: ResidualKind
    evaluator: Evaluator
    encoder_noise: float
    free: tuple[int, ...]
    equilibrium: Equilibrium | None = None
    deflection: Deflection | None = None
    stations = old_attribute("stations", "measured_poses")
    reach = old_attribute("reach", "context")

    @property
    def estimated(self) -> tuple[Unknown, ...]:
        """The unknowns that are estimated."""
        return tuple(self.unknowns[i] for i in self.free)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the unknowns that are estimated."""
        return tuple(unknown.name for unknown in self.estimated)

    @cached_property
    def tolerances(self) -> np.ndarray:
        """Tolerances (n,) of the unknowns that are estimated, SI."""
        return np.array([unknown.tolerance for unknown in self.estimated])

    @property
    def series(self) -> tuple[Series, ...]:
        """The measurements, series by series."""
        return tuple(measured_pose.series for measured_pose in self.measured_poses)

    @property
    def n_poses(self) -> int:
        """Number of readings of all series together; most instruments read one pose at a time."""
        return sum(len(measured_pose.series) for measured_pose in self.measured_poses)

    @cached_property
    def pose_of_row(self) -> np.ndarray:
        """Index of the reading (counted over all series) of every residual (R,)."""
        rows_per_pose = np.repeat(
            [item.n_rows for item in self.measured_poses],
            [len(item.series) for item in self.measured_poses],
        )
        return np.repeat(np.arange(self.n_poses), rows_per_pose)

    def whole(self, correction: np.ndarray) -> np.ndarray:
        """Return the corrections (n_all, ...) of all unknowns; zero for unknowns that are not free.

        Args:
            correction: corrections (n, ...) of the free unknowns.
        """
        full = np.zeros((len(self.unknowns), *correction.shape[1:]))
        full[list(self.free)] = correction
        return full

    def evaluate(
        self, correction: np.ndarray, near: Evaluation | Linearized | None = None
    ) -> Evaluation:
        """Return the residuals at given corrections of the free unknowns.

        Args:
            correction: corrections (n,), SI.
            near: an evaluation whose coordinates are the start of the iterations; those of a
                `Linearized` are extrapolated along its tangents. None to start from the nominal
                coordinates.
        """
        x = self.whole(correction)
        if isinstance(near, Linearized):
            step = correction - near.evaluation.correction
            starts = [
                integrate(self.assembly.topology, state.q, tangent @ step)
                for state, tangent in zip(near.evaluation.states, near.tangents, strict=True)
            ]
        else:
            starts = (
                [measured_pose.q for measured_pose in self.measured_poses]
                if near is None
                else [state.q for state in near.states]
            )
        return Evaluation(
            correction=np.array(correction, dtype=float),
            states=tuple(
                measured_pose.state(x, q)
                for measured_pose, q in zip(self.measured_poses, starts, strict=True)
            ),
        )

    def pose_jacobians(self, evaluation: Evaluation) -> tuple[np.ndarray, ...]:
        """Return the Jacobian (N, r, n) of the whitened residuals of each series, SI."""
        return tuple(J for J, _ in self._sensitivities(evaluation))

    def jacobian(self, evaluation: Evaluation) -> np.ndarray:
        """Return the Jacobian (R, n) of all residuals; the rows are as in `Evaluation.residual`."""
        return self.linearized(evaluation).jacobian

    def linearized(self, evaluation: Evaluation) -> Linearized:
        """Return an evaluation with its derivatives, for steps to nearby corrections."""
        sensitivities = self._sensitivities(evaluation)
        return Linearized(
            evaluation=evaluation,
            jacobian=np.concatenate([J.reshape(-1, len(self.free)) for J, _ in sensitivities]),
            tangents=tuple(q_x for _, q_x in sensitivities),
        )

    def _sensitivities(self, evaluation: Evaluation) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        x = self.whole(evaluation.correction)
        free = list(self.free)
        derivatives = [
            measured_pose.jacobian(x, state)
            for measured_pose, state in zip(self.measured_poses, evaluation.states, strict=True)
        ]
        return tuple((J[:, :, free], q_x[:, :, free]) for J, q_x in derivatives)

    def only(self, names: Iterable[str]) -> CalibrationProblem:
        """Return the same problem with only these unknowns estimated.

        Raises:
            InputError: a name is not among the unknowns.
        """
        selected = list(names)
        known = [unknown.name for unknown in self.unknowns]
        InputError.raise_if_any(unknown_names(selected, known, "is not among the unknowns"))
        problem = replace(self, free=tuple(known.index(name) for name in selected))
        # Reuse the cached functions, which take seconds to build.
        if "_forward" in self.__dict__:
            problem.__dict__["_forward"] = replace(self._forward, free=problem.free)
        return problem

    def bounded(self, bounds: Mapping[str, Bounds]) -> CalibrationProblem:
        """Return the same problem with bounds on values of unknowns (by name or pattern), SI.

        Raises:
            InputError: see `tauloop.calibration.problem.unknowns.bounded`.
        """
        return replace(self, unknowns=bounded(self.unknowns, bounds)) if bounds else self

    def take(self, poses: np.ndarray) -> CalibrationProblem:
        """Return the same problem on a subset of the readings.

        Args:
            poses: indices into the readings of all series, series by series; an index may be
                repeated.
        """
        poses = np.arange(self.n_poses)[poses]
        measured_poses = []
        first = 0
        for measured_pose in self.measured_poses:
            indices = poses[(poses >= first) & (poses < first + len(measured_pose.series))] - first
            if len(indices):
                measured_poses.append(measured_pose.take(indices))
            first += len(measured_pose.series)
        return replace(self, measured_poses=tuple(measured_poses))

    def reading(self, *readings: np.ndarray) -> CalibrationProblem:
        """Return the same problem with other readings of the same poses.

        Args:
            readings: an array (N, n_columns), SI, for each series.
        """
        measured_poses = [
            replace(measured_pose, series=replace(measured_pose.series, readings=other))
            for measured_pose, other in zip(self.measured_poses, readings, strict=True)
        ]
        return replace(self, measured_poses=tuple(measured_poses))

    @property
    def context(self) -> CalibrationContext:
        """The machine, unknowns and evaluator that all series share."""
        nuisances = {n.name: n for item in self.measured_poses for n in item.nuisances}
        return CalibrationContext(
            assembly=self.assembly,
            unknowns=self.unknowns,
            nuisances=tuple(nuisances.values()),
            evaluator=self.evaluator,
            equilibrium=self.equilibrium,
            deflection=self.deflection,
        )

    def predicting(self) -> CalibrationProblem:
        """Return the same problem with instrument errors by forward kinematics as residuals.

        Raises:
            PoseError: poses are out of reach with the nominal geometry.
        """
        return self if isinstance(self.residuals, ForwardKinematics) else self._forward

    @cached_property
    def _forward(self) -> CalibrationProblem:
        measured_poses = _measured_poses(
            self.context, self.series, FORWARD_KINEMATICS, self.encoder_noise
        )
        return replace(self, measured_poses=measured_poses, residuals=FORWARD_KINEMATICS)

    def values(self, correction: np.ndarray) -> dict[str, float]:
        """Return the values, SI, of all parameters of the free unknowns after a correction."""
        start = self.start_values
        return {
            member: start[member] + float(step)
            for unknown, step in zip(self.estimated, correction, strict=True)
            for member in unknown.members
        }

    @cached_property
    def start_values(self) -> dict[str, float]:
        """Start values of all independent parameters of the machine and nuisance parameters, SI."""
        nuisances = {n.name: n.value for item in self.measured_poses for n in item.nuisances}
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
    """Set up a calibration.

    Args:
        mechanism: the nominal machine.
        series: measurements, of one or several kinds.
        parameters: unknowns by name or pattern (see `select_unknowns`): independent parameters of
            the machine, nuisance parameters of instruments (``tracker.frame.*``) and
            ``encoder.ACTUATOR.scale`` or ``.offset``.
        residuals: `ForwardKinematics()` or `LoopEquations()`.
        tolerances: expected magnitudes of corrections, and priors.
        encoder_noise: standard deviation of encoders, m or rad; propagated into the weights.
        bounds: minimum and maximum values of unknowns by name or pattern, SI, in addition to those
            of the machine file.
        equilibrium: whether the machine is in static equilibrium at every pose, in the degrees of
            freedom that its actuators leave open.
        evaluator: how functions are evaluated. By default the number of poses decides which
            compiler is used; use `Compiled()` for many fits.

    Returns:
        The unknowns with the residual functions of all series.

    Raises:
        InputError: names are unknown, or arrays have wrong shapes.
        PoseError: poses are out of reach with the nominal geometry; lists them.
        AssemblyError: the nominal machine does not assemble.
    """
    series = tuple(series)
    if not series:
        raise InputError.of("series", "no measurements are given", "give at least one series")
    assembly = lock_spins(assemble(loops(mechanism)), DEFAULT_LOCKS)
    if any(joint not in mechanism.joints for joint in assembly.mechanism.joints):
        mechanism = assembly.mechanism
    topology = assembly.topology
    _require_encoders(series, mechanism)
    require_instruments([s.instrument for s in series], mechanism, topology)
    encoders = encoder_nuisances(mechanism, assembly)
    nuisances = {n.name: n for s in series for n in s.instrument.nuisances()}
    all_nuisances = (*nuisances.values(), *encoders, *thermometer_nuisances(series))
    machine = elastic_machine(mechanism, series)
    _reject_loads_at_equilibrium(machine, equilibrium=equilibrium)
    unknowns = select_unknowns(
        mechanism,
        all_nuisances,
        parameters,
        tolerances or Tolerances(),
        relative=_relative_parameters(mechanism, machine),
    )
    unknowns = bounded(unknowns, bounds or {})
    if not equilibrium:
        require_load_columns(unknowns, mechanism, machine)
    deflection = None if machine is None else Deflection(mechanism, unknowns, machine)
    evaluator = default_evaluator() if evaluator is None else evaluator
    balance = equilibrium_of(assembly, independent_rows(assembly)) if equilibrium else None
    context = CalibrationContext(
        assembly=assembly,
        unknowns=unknowns,
        nuisances=all_nuisances,
        evaluator=evaluator,
        equilibrium=balance,
        deflection=deflection,
    )
    return CalibrationProblem(
        mechanism=mechanism,
        assembly=assembly,
        unknowns=unknowns,
        measured_poses=_measured_poses(context, series, residuals, encoder_noise),
        residuals=residuals,
        evaluator=evaluator,
        encoder_noise=encoder_noise,
        free=tuple(range(len(unknowns))),
        equilibrium=balance,
        deflection=deflection,
    )


def _reject_loads_at_equilibrium(machine: ElasticMachine | None, *, equilibrium: bool) -> None:
    """Reject loads and temperatures of a machine that hangs freely."""
    if machine is None or not equilibrium:
        return
    what = "the machine hangs freely, but loads and temperatures need a pose that the actuators determine"
    raise InputError.of("equilibrium", what, "omit either this option or these columns")


def _relative_parameters(mechanism: Mechanism, machine: ElasticMachine | None) -> tuple[str, ...]:
    """Return the parameters of stiffness and expansion, whose tolerance is relative."""
    if machine is None:
        return ()
    heated = [part for parts in machine.parts.values() for part in parts]
    expansions = [parameter.name for parameter in mechanism.parameters if parameter.unit == "1/K"]
    return (*machine.elastic, *(expansions if heated else ()))


@solving(PoseError)
def hanging_coordinates(mechanism: Mechanism, encoders: np.ndarray) -> np.ndarray:
    """Return the coordinates (N, n_q) of a freely hanging machine at given actuator positions.

    This is the geometrico-static problem of platforms with fewer cables than degrees of freedom:
    loops, encoders and static equilibrium determine the pose. It is solved by continuation from the
    reference pose along straight lines in encoder space. `simulated_series` takes such coordinates.

    Args:
        mechanism: the machine.
        encoders: positions of all actuators (N, n_u), m or rad.

    Raises:
        InputError: the actuators leave no degree of freedom open, or no weight acts.
        PoseError: positions are out of reach, or the equilibrium is not stable.
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


def _measured_poses(
    context: CalibrationContext,
    series: tuple[Series, ...],
    residuals: ResidualKind,
    encoder_noise: float,
) -> tuple[MeasuredPose, ...]:
    measured_poses: list[MeasuredPose] = []
    deviations = _deviations(context.assembly, encoder_noise)
    for i, item in enumerate(series):
        # Series of one instrument share their functions.
        template = next((s for s in measured_poses if s.series.instrument == item.instrument), None)
        measured_poses.append(
            build_measured_pose(
                context, item, residuals, deviations, template, where=f"series {i + 1}"
            )
        )
    return tuple(measured_poses)


def _deviations(assembly: Assembly, encoder_noise: float) -> np.ndarray:
    """Return the standard deviations of all encoders (n_u,), m or rad."""
    if assembly.is_redundant and not encoder_noise:
        return encoder_deviations(assembly, None)
    return np.full(len(assembly.mechanism.actuators), encoder_noise)


def encoder_nuisances(mechanism: Mechanism, assembly: Assembly) -> tuple[Nuisance, ...]:
    """Return the scale and offset of every encoder: position = scale * reading + offset."""
    topology = assembly.topology
    result: list[Nuisance] = []
    for actuator in mechanism.actuators:
        unit = "rad" if topology.is_rotary(actuator) else "m"
        result.append(Nuisance(name=f"encoder.{actuator.name}.scale", value=1.0, unit="1"))
        result.append(Nuisance(name=f"encoder.{actuator.name}.offset", value=0.0, unit=unit))
    return tuple(result)


def _require_encoders(series: tuple[Series, ...], mechanism: Mechanism) -> None:
    expected = len(mechanism.actuators)
    names = ", ".join(actuator.name for actuator in mechanism.actuators)
    InputError.raise_if_any(
        Problem(
            where=f"{item.instrument.name}.encoders",
            what=f"have {counted(item.encoders.shape[1], 'column')} for {counted(expected, 'actuator')}",
            remedy=f"give one column for each of {names}",
        )
        for item in series
        if item.encoders.shape[1] != expected
    )
