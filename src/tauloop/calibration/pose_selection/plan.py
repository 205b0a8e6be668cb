"""Planning of a measuring session: poses to measure, their number, and the expected accuracy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import scipy.linalg

from tauloop.calibration.measurements.instruments import (
    INSTRUMENTS,
    Distance,
    Instrument,
    JointSensor,
    sensor_units,
)
from tauloop.calibration.measurements.measurement_grammar import INSTRUMENT_KINDS
from tauloop.calibration.measurements.reading import read_instrument
from tauloop.calibration.measurements.series import Series
from tauloop.calibration.measurements.simulated import simulated_series
from tauloop.calibration.measurements.surfaces import Vector3
from tauloop.calibration.pose_selection.candidates import Candidates, PoseLimits, candidate_poses
from tauloop.calibration.pose_selection.selection import (
    CRITERIA,
    D_OPTIMAL,
    OBSERVABLE_TOLERANCE,
    Criterion,
    Selection,
    information,
    select_poses,
)
from tauloop.calibration.problem.problem import CalibrationProblem, calibration_problem
from tauloop.calibration.problem.unknowns import Tolerances
from tauloop.common.datasets import Variable, columns, rows
from tauloop.common.errors import IdentificationError, InputError, Problems, solving
from tauloop.common.files import write_text
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, listed, option
from tauloop.common.plain import in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.equations.named_values import TOOL_PORT, named_values
from tauloop.equations.ports import PLATFORM, entry_ports, motor_port
from tauloop.mechanism.description import units
from tauloop.mechanism.description.units import LENGTH, quantity
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

#: Default goal: expected error of the calibrated machine divided by the instrument's noise. At this
#: value the error increases the total noise by about one eighth.
DEFAULT_GOAL = 0.5
#: Number of random sets of poses that each point of the curve is compared with.
RANDOM_SETS = 20
#: Number of rounds of exchanges for a point of the curve. A few suffice because the initial set is
#: good.
CURVE_ROUNDS = 2
#: Default numbers of poses of the curve, as multiples of the requested number.
COUNT_MULTIPLES = (0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 4.0)


def _point(text: str) -> Vector3:
    """Parse three lengths separated by commas; a bare number is in meters."""
    lengths = text.split(",")
    if len(lengths) != 3:
        remedy = "give three lengths, such as '0 m, 0.1 m, -0.6 m'"
        raise InputError.of("ball_center", f"{text!r} is not three lengths", remedy)
    x, y, z = (quantity("ball_center", length, LENGTH) for length in lengths)
    return x, y, z


def _loads(texts: str | Iterable[str]) -> tuple[str, ...]:
    """Return wrenches as texts; `_available_loads` parses and checks them."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PosePlanOptions(Options):
    """Options of a pose plan: unknowns, instrument, number of poses and candidates.

    Attributes:
        parameters: parameters to estimate, by name or pattern, such as
            'track*.length,track*.yaw,tracker.frame.*'; with loads also those of stiffness.
        loads: available wrenches at the tool center point, such as 'fz=-500' or 'fx=100,mz=20' (N,
            N m, in the axes of the base); a load is chosen for each pose. 'fx=0' means no load.
        max_force: largest force, N: also choose among no load and this force along x, y and z, in
            both directions.
        measure: kind of measurement; the surface of contacts is the plane z = 0.
        ball_center: fixed center of a ball bar (distance), such as '0 m, 0.1 m, -0.6 m'.
        coordinate: coordinate, or output of the machine file, that a joint sensor reads.
        instrument: YAML file that describes the instrument with the keys of a series of
            measurements (kind, surface, ...); in Python also the instrument itself.
        count: number of poses to choose.
        candidates: number of poses to choose from.
        criterion: criterion to minimize: volume of the uncertainty ellipsoid (D), mean variance
            (A), or uncertainty of the worst direction (E).
        noise: standard deviation of measured lengths, such as '20 um'.
        angle_noise: standard deviation of measured angles, such as '0.01 deg'.
        usual_correction: usual size of corrections, m, rad or 1.
        tolerance_priors: use tolerances as priors of the parameters.
        tolerances: sizes of corrections, and priors; replaces usual_correction and
            tolerance_priors.
        limits: limits of the poses.
        curve: also evaluate other numbers of poses, to find how many are enough.
        counts: numbers of poses of this curve; by default multiples of the count.
        goal: the number of poses is enough if the expected error at all candidates is below this
            fraction of the noise.
        seed: seed of the candidates and of the random sets for comparison.

    Examples:
        >>> import tauloop as tl
        >>> tl.PosePlanOptions(parameters=("track*.length",), count=8).count
        8
    """

    parameters: tuple[str, ...] = option((), read=listed, metavar="NAMES")
    loads: tuple[str | tuple[float, ...], ...] = option(
        (), read=_loads, repeated=True, metavar="VALUES"
    )
    max_force: float | None = option(None, least=0.0, metavar="FORCE", unit=units.FORCE)
    measure: str = option("position", choices=INSTRUMENT_KINDS)
    ball_center: Vector3 | None = option(None, read=_point, metavar="X,Y,Z")
    coordinate: str | None = None
    instrument: Instrument | Path | None = option(None, read=Path, metavar="FILE")
    count: int = option(60, least=1)
    candidates: int = option(2000, least=1)
    criterion: Criterion = option(D_OPTIMAL, named=CRITERIA)
    noise: float = option(2e-05, least=0.0, metavar="QUANTITY", unit=units.LENGTH)
    angle_noise: float = option(2e-05, least=0.0, metavar="ANGLE", unit=units.ANGLE)
    usual_correction: float = option(0.001, least=0.0, unit=(units.LENGTH, units.ANGLE, units.ONE))
    tolerance_priors: bool = option(True)
    tolerances: Tolerances | None = option(None, flag="")
    limits: PoseLimits = field(default_factory=PoseLimits)
    curve: bool = False
    counts: tuple[int, ...] = ()
    goal: float = option(DEFAULT_GOAL, least=0.0)
    seed: int = option(0, least=0)

    def _note_mismatches(self, problems: Problems) -> None:
        """Add a problem if no parameters are given."""
        if not self.parameters:
            remedy = (
                "give names or patterns of the unknowns, such as 'track*.length'; "
                "see `tauloop show MACHINE --table`"
            )
            problems.add("parameters", "are not given", remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """Expected accuracy with a number of poses.

    Attributes:
        count: number of poses.
        value: value of the criterion for the selected poses, in tolerances.
        error: expected RMS error of the calibrated machine at all candidates, in standard
            deviations of the instrument's noise.
        random_error: median of `error` for random poses; None if random poses do not determine all
            directions.
    """

    count: int
    value: float
    error: float
    random_error: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PosePlan(Result):
    """A plan of measurements.

    Attributes:
        options: the options of the plan.
        problem: the planned calibration, on all candidates.
        candidates: poses to choose from.
        available_loads: (L, 6) wrenches to choose from; no rows for a plan without loads.
        selection: the poses to measure, as indices of candidates; with L loads, index L i + j is
            pose i with load j.
        deviations: expected standard deviation (n,) of every unknown, SI; infinite if the
            measurements do not depend on it.
        error: expected error, as in `CurvePoint`.
        curve: expected accuracy for several numbers of poses; empty unless requested.
        enough: smallest number of poses of the curve whose error is below the goal; None if there
            is none.
    """

    needs_forces: ClassVar[bool] = False
    options: PosePlanOptions = field(metadata=json_keys(goal="goal"))
    problem: CalibrationProblem = field(
        metadata=json_keys(machine="mechanism.name", parameters="names")
    )
    candidates: Candidates = field(metadata=json_keys("candidates", columns="columns"))
    available_loads: np.ndarray
    selection: Selection
    deviations: np.ndarray = field(metadata=json_keys("expected_deviations", nullable=True))
    error: float = field(metadata=json_keys("expected_error_over_noise"))
    curve: tuple[CurvePoint, ...]
    enough: int | None

    def variables(self) -> Iterator[Variable]:
        """Yield platform and actuator positions of each pose, and deviations of the unknowns."""
        over = ("pose",)
        assembly = self.problem.assembly
        ports = (
            entry_ports(assembly, PLATFORM).position,
            motor_port(assembly, "position", "rad", "m"),
        )
        yield Variable(name="pose", values=np.arange(1, len(self.positions) + 1), over=over)
        for port, values in zip(ports, (self.positions, self.encoders), strict=True):
            yield from columns("position", port.columns, port.units, values, over)
        if len(self.available_loads):
            yield from columns("load", TOOL_PORT.columns, TOOL_PORT.units, self.loads, over)
        units = (unknown.unit for unknown in self.problem.estimated)
        yield from rows("parameter", self.problem.names, units, deviation=self.deviations)

    @property
    @in_json()
    def encoders(self) -> np.ndarray:
        """Actuator positions (k, n_u) of the poses to measure."""
        return np.asarray(self.candidates.encoders[self.chosen_poses])

    @property
    @in_json()
    def positions(self) -> np.ndarray:
        """Platform positions (k, n) of the poses to measure."""
        return np.asarray(self.candidates.position[self.chosen_poses])

    @property
    @in_json()
    def loads(self) -> np.ndarray:
        """Wrenches (k, 6) of the poses to measure, N and N m; (k, 0) for a plan without loads."""
        count = len(self.available_loads)
        if not count:
            return np.zeros((len(self.selection.chosen), 0))
        return np.asarray(self.available_loads[np.array(self.selection.chosen) % count])

    @property
    def chosen_poses(self) -> np.ndarray:
        """Indices (k,) of the candidate poses to measure."""
        return np.array(self.selection.chosen) // max(len(self.available_loads), 1)

    @property
    @in_json()
    def criterion(self) -> str:
        """Name of the criterion."""
        names = {id(criterion): name for name, criterion in CRITERIA.items()}
        return names.get(id(self.options.criterion), type(self.options.criterion).__name__)

    def write_csv(self, path: str | Path) -> Path:
        """Write the poses to measure as a table: actuators and platform positions, SI.

        Returns:
            Path of the table.

        Raises:
            InputError: the folder does not exist or is not writable.
        """
        actuators = [actuator.name for actuator in self.problem.mechanism.actuators]
        loads = [f"load.{name}" for name in TOOL_PORT.columns if len(self.available_loads)]
        rows = [["pose", *actuators, *self.candidates.columns, *loads]]
        for i, values in enumerate(np.hstack([self.encoders, self.positions, self.loads])):
            rows.append([str(i + 1), *(f"{value:.9g}" for value in values)])
        return write_text(path, "".join(f"{','.join(row)}\n" for row in rows))


@keywords(PosePlanOptions)
@solving(IdentificationError)
def plan_poses(
    machine: MachineSource,
    options: PosePlanOptions,
    *,
    progress: Callable[[str, int, int], None] | None = None,
) -> PosePlan:
    """Choose the poses that determine the parameters of a calibration best.

    The result contains the expected accuracy. Candidates are spread over the workspace within
    reach and limits (`candidate_poses`). An exchange algorithm chooses among them with the
    Jacobians of the calibration (`select_poses`).

    Args:
        machine: the nominal machine.
        options: unknowns, instrument, number of poses and candidates.
        progress: called with the phase, and the completed and total number of steps.

    Returns:
        The plan: the chosen poses, and the expected standard deviations of the unknowns.

    Raises:
        InputError, DescriptionError: names or numbers are wrong, or the instrument's file is
            invalid.
        PoseError: too few poses satisfy the limits.
        IdentificationError: too few poses for the unknowns.

    Examples:
        >>> import tauloop as tl
        >>> options = tl.PosePlanOptions(parameters=("track*.length",), count=6, candidates=20)
        >>> plan = tl.plan_poses(tl.load("gantry_tau_3dof"), options)
        >>> len(plan.to_pandas())
        6
    """
    model = modeled(machine)
    rng = np.random.default_rng(options.seed)
    count = options.count
    criterion = options.criterion
    instrument = _instrument(model, options)
    _require_single_poses(instrument)
    touching = instrument if instrument.is_contact else None
    candidates = candidate_poses(
        model, options.candidates, rng, limits=options.limits, touching=touching
    )
    noise = tuple(
        options.noise if unit == "m" else options.angle_noise for _, unit in instrument.errors
    )
    loads = _available_loads(options)
    series = _with_loads(simulated_series(model, instrument, candidates.q, noise), loads)
    problem = calibration_problem(
        model.mechanism, [series], options.parameters, tolerances=_tolerances(options)
    )
    (per_pose,) = problem.pose_jacobians(problem.evaluate(np.zeros(len(problem.free))))
    J = per_pose * problem.tolerances
    prior = np.array([float(unknown.has_prior) for unknown in problem.estimated])
    report = None if progress is None else partial(progress, "poses")
    selection = select_poses(J, count, criterion=criterion, prior=prior, progress=report)
    chosen = list(selection.chosen)
    points = [_curve_point(J, int(k), criterion, prior, rng) for k in _curve_counts(options)]
    curve = tuple(point for point in points if point is not None)
    error = _expected_error(J, chosen, prior)
    return PosePlan(
        options=options,
        problem=problem,
        candidates=candidates,
        available_loads=loads,
        selection=selection,
        deviations=_deviations(J, chosen, prior) * problem.tolerances,
        error=error,
        curve=curve,
        enough=next((point.count for point in curve if point.error <= options.goal), None),
        diagnostics=_plan_diagnostics(model, candidates.q, error),
        provenance=provenance(
            packages=("numpy", "scipy", "casadi"),
            options={
                "count": count,
                "candidates": options.candidates,
                "criterion": type(criterion).__name__,
                "noise": noise,
                "seed": options.seed,
            },
            inputs={
                "machine": model.mechanism.name,
                "instrument": instrument.name,
                "parameters": problem.names,
            },
        ),
    )


def _require_single_poses(instrument: Instrument) -> None:
    """Reject an instrument whose readings belong to several poses.

    Raises:
        InputError: a reading of the instrument belongs to several poses.
    """
    if instrument.poses > 1:
        what = (
            f"a reading of {instrument.name!r} belongs to {instrument.poses} poses, but poses are "
            "chosen one by one"
        )
        remedy = "plan for an instrument that reads single poses, such as a position"
        raise InputError.of("measure", what, remedy)


def _tolerances(options: PosePlanOptions) -> Tolerances:
    """Return the tolerances of the unknowns."""
    if options.tolerances:
        return options.tolerances
    tolerance = options.usual_correction
    priors = ("*",) if options.tolerance_priors else ()
    return Tolerances(length=tolerance, angle=tolerance, ratio=tolerance, priors=priors)


def _plan_diagnostics(model: Model, q: np.ndarray, error: float) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of the candidate poses (N, n_q) and of the expected error."""
    return (
        diagnostic(
            "largest loop residual of the candidate poses",
            np.abs(model.assembly.loops.residuals(q)[0]).max(initial=0.0),
            at_most=1e-9,
            unit="m",
            advice="keep the candidates farther from singularities (`singularity`)",
        ),
        diagnostic(
            "expected error of the calibrated machine relative to the noise",
            error,
            at_most=1.0,
            advice="measure more poses: the uncertainty of the parameters exceeds the instrument's noise",
        ),
    )


def _available_loads(options: PosePlanOptions) -> np.ndarray:
    """Return the wrenches (L, 6) that a plan chooses from; empty for a plan without loads.

    Raises:
        InputError: a wrench has unknown components or invalid numbers.
    """
    zero = np.zeros(6)
    loads = [
        np.asarray(named_values(TOOL_PORT, "loads", load, zero), dtype=float)
        for load in options.loads
    ]
    if options.max_force:
        force = options.max_force * np.eye(6)[:3]
        loads += [zero, *force, *-force]
    return np.array(loads).reshape(-1, 6)


def _with_loads(series: Series, loads: np.ndarray) -> Series:
    """Return a series with each of its poses under each of the loads (L, 6)."""
    count = len(loads)
    if not count:
        return series
    return replace(
        series,
        encoders=np.repeat(series.encoders, count, axis=0),
        readings=np.repeat(series.readings, count, axis=0),
        loads=np.tile(loads, (len(series), 1)),
    )


def _curve_counts(options: PosePlanOptions) -> list[int]:
    """Return the numbers of poses of the curve; empty unless the options request a curve."""
    if options.counts:
        return sorted(set(options.counts))
    if not options.curve:
        return []
    counts = [multiple * options.count for multiple in COUNT_MULTIPLES]
    return sorted({round(count) for count in counts if count <= options.candidates})


def _instrument(model: Model, options: PosePlanOptions) -> Instrument:
    """Return the instrument of the options, with the name that `calibrate` uses for tables.

    Raises:
        InputError: the center or the coordinate of the instrument is missing.
    """
    if options.instrument is not None:
        instrument = options.instrument
        return instrument if isinstance(instrument, Instrument) else read_instrument(instrument)
    kind = INSTRUMENTS[options.measure]
    if kind is Distance:
        if options.ball_center is None:
            remedy = "give the fixed center of the bar, such as '0 m, 0.1 m, -0.6 m'"
            raise InputError.of("ball_center", "is missing", remedy)
        return Distance(name=kind.usual_name, center=options.ball_center)
    if kind is JointSensor:
        units_by_name = sensor_units(model.mechanism, model.topology)
        name = options.coordinate
        if name is None:
            raise InputError.of(
                "coordinate",
                "is missing",
                f"name the coordinate or output that is read: {', '.join(units_by_name)}",
            )
        unit = units_by_name.get(name, "rad")
        return JointSensor(name=kind.usual_name, coordinate=name, unit=unit)
    return kind(name=kind.usual_name)


def _expected_error(J: np.ndarray, chosen: list[int], prior: np.ndarray) -> float:
    """Return the RMS over all candidates of the standard deviation of a predicted reading.

    For candidate j the variance is trace(J_j M^-1 J_j^T) / r, with r residuals of a pose. The
    pseudoinverse of M is used, because directions that no pose determines do not change any
    reading.
    """
    M = information(J, np.diag(prior), chosen)
    covariance = np.linalg.pinv(M, rcond=OBSERVABLE_TOLERANCE**2, hermitian=True)
    rows = J.reshape(-1, J.shape[2])
    return float(np.sqrt(((rows @ covariance) * rows).sum() / len(rows)))


def _deviations(J: np.ndarray, chosen: list[int], prior: np.ndarray) -> np.ndarray:
    """Return the standard deviations (n,) of the unknowns in tolerances.

    The deviations are infinite for unknowns that are in an unobservable direction.
    """
    eigenvalues, V = scipy.linalg.eigh(information(J, np.diag(prior), chosen))
    is_unobservable = eigenvalues <= OBSERVABLE_TOLERANCE**2 * eigenvalues[-1]
    is_observable = ~is_unobservable
    variance = (V[:, is_observable] ** 2 / eigenvalues[is_observable]).sum(axis=1)
    unobservable_fraction = (V[:, is_unobservable] ** 2).sum(axis=1)
    return np.where(unobservable_fraction > OBSERVABLE_TOLERANCE, np.inf, np.sqrt(variance))


def _curve_point(
    J: np.ndarray, count: int, criterion: Criterion, prior: np.ndarray, rng: np.random.Generator
) -> CurvePoint | None:
    """Return the expected accuracy with a number of poses; None if they are too few."""
    try:
        selection = select_poses(J, count, criterion=criterion, prior=prior, rounds=CURVE_ROUNDS)
    except IdentificationError:
        return None
    directions = J.shape[2] if prior.all() else J.shape[2] - selection.n_unobservable
    errors = []
    for _ in range(RANDOM_SETS):
        random_set = list(rng.choice(len(J), size=count, replace=False))
        eigenvalues = np.linalg.eigvalsh(information(J, np.diag(prior), random_set))
        if int((eigenvalues > OBSERVABLE_TOLERANCE**2 * eigenvalues[-1]).sum()) >= directions:
            errors.append(_expected_error(J, random_set, prior))
    return CurvePoint(
        count=count,
        value=selection.value,
        error=_expected_error(J, list(selection.chosen), prior),
        random_error=float(np.median(errors)) if errors else None,
    )
