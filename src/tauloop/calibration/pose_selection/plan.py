"""Planning a measuring session: which poses to measure, how many are enough, and what can be expected of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from tauloop.calibration.measurements.instruments import Contact, Instrument
from tauloop.calibration.measurements.simulated import simulated_series
from tauloop.calibration.pose_selection.candidates import LIMITS, Candidates, PoseLimits, candidate_poses
from tauloop.calibration.pose_selection.selection import D_OPTIMAL, SHOWN, Criterion, Progress, Selection, select_poses
from tauloop.calibration.problem.problem import CalibrationProblem, calibration_problem
from tauloop.calibration.problem.unknowns import Tolerances
from tauloop.errors import IdentificationError, InputError, Problem, solving
from tauloop.model import Model
from tauloop.result import Evidence, Result, provenance

#: Poses are enough when the calibrated machine's expected error is below this share of the instrument's noise: it then
#: adds an eighth to the noise at most.
ENOUGH = 0.5
#: Random sets of poses that the curve compares with.
RANDOM_SETS = 20
#: Rounds of exchanges for a point of the curve; the first set is good already.
CURVE_ROUNDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """What a number of poses gives.

    Attributes:
        count: number of poses.
        value: of the criterion for the selected poses, in tolerances.
        error: expected error of the calibrated machine over all candidates, RMS, in standard deviations of the
            instrument's noise.
        random_error: median of the same for random poses; None where they cannot show all directions.
    """

    count: int
    value: float
    error: float
    random_error: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PosePlan(Result):
    """A plan of measurements.

    Attributes:
        problem: the calibration that is planned for, on all candidates.
        candidates: poses to choose from.
        selection: the poses to measure, indices of candidates.
        deviations: expected standard deviation (n,) of every unknown, SI; infinite where nothing tells it.
        error: as in `CurvePoint`.
        curve: for several numbers of poses; empty without.
        enough: smallest number of the curve whose error is below the goal; None if none is.
        goal: that goal, in standard deviations of the noise.
    """

    problem: CalibrationProblem
    candidates: Candidates
    selection: Selection
    deviations: np.ndarray
    error: float
    curve: tuple[CurvePoint, ...]
    enough: int | None
    goal: float

    @property
    def encoders(self) -> np.ndarray:
        """Actuator positions (k, n_u) of the poses to measure."""
        return np.asarray(self.candidates.encoders[list(self.selection.chosen)])

    @property
    def positions(self) -> np.ndarray:
        """Platform positions (k, n) of the poses to measure."""
        return np.asarray(self.candidates.position[list(self.selection.chosen)])


@solving(IdentificationError)
def plan_poses(
    model: Model,
    instrument: Instrument,
    parameters: Iterable[str],
    count: int,
    rng: np.random.Generator,
    *,
    noise: float | tuple[float, ...],
    candidates: int = 2000,
    criterion: Criterion = D_OPTIMAL,
    limits: PoseLimits = LIMITS,
    tolerances: Tolerances | None = None,
    curve: Iterable[int] = (),
    goal: float = ENOUGH,
    progress: Progress | None = None,
) -> PosePlan:
    """Choose the poses that show parameters best, and say what they will give.

    Args:
        model: the nominal machine.
        instrument: what will be measured; poses of a contact all touch its surface.
        parameters: unknowns by name or pattern, as in `calibration_problem`.
        count: how many poses to choose.
        rng: spreads the candidates and draws random sets to compare with.
        noise: standard deviation of the instrument, SI.
        candidates: how many poses to choose from.
        criterion: what is best.
        limits: what poses must keep.
        tolerances: sizes of corrections; those with priors count as information.
        curve: numbers of poses for the curve of how many are enough.
        goal: error that is good enough, in standard deviations of the noise.
        progress: called with poses gone over and a bound of their number.

    Raises:
        InputError: wrong names or numbers.
        PoseError: too few poses keep the limits.
        IdentificationError: too few poses for the unknowns.
    """
    if not goal > 0:
        raise InputError(Problem(where="goal", what=f"is {goal:g}", remedy="give a share of the noise above zero"))
    touching = instrument if isinstance(instrument, Contact) else None
    found = candidate_poses(model, candidates, rng, limits=limits, touching=touching)
    series = simulated_series(model, instrument, found.q, noise)
    problem = calibration_problem(model.mechanism, [series], parameters, tolerances=tolerances)
    (per_pose,) = problem.pose_jacobians(problem.evaluate(np.zeros(len(problem.free))))
    J = per_pose * problem.tolerances
    prior = np.array([1.0 if problem.unknowns[i].has_prior else 0.0 for i in problem.free])
    selection = select_poses(J, count, criterion=criterion, prior=prior, progress=progress)
    chosen = list(selection.chosen)
    points = [_curve_point(J, int(k), criterion, prior, rng) for k in sorted(set(curve))]
    shown = tuple(point for point in points if point is not None)
    error = _expected_error(J, chosen, prior)
    return PosePlan(
        problem=problem,
        candidates=found,
        selection=selection,
        deviations=_deviations(J, chosen, prior) * problem.tolerances,
        error=error,
        curve=shown,
        enough=next((point.count for point in shown if point.error <= goal), None),
        goal=goal,
        evidence=(
            Evidence(
                name="largest residual of the candidates' equations",
                value=float(np.abs(model.assembly.loops.residuals(found.q)[0]).max(initial=0.0)),
                unit="m",
                upper=1e-9,
            ),
            Evidence(
                name="expected error of the calibrated machine over the noise",
                value=error,
                upper=1.0,
                advice="measure more poses: what the parameters leave open is more than the instrument's noise",
            ),
        ),
        provenance=provenance(
            packages=("numpy", "scipy", "casadi"),
            options={"count": count, "candidates": candidates, "criterion": type(criterion).__name__, "noise": noise},
            inputs={"machine": model.mechanism.name, "instrument": instrument.name, "parameters": problem.names},
        ),
    )


def _information(J: np.ndarray, chosen: list[int], prior: np.ndarray) -> np.ndarray:
    rows = J[chosen].reshape(-1, J.shape[2])
    return np.asarray(rows.T @ rows + np.diag(prior))


def _expected_error(J: np.ndarray, chosen: list[int], prior: np.ndarray) -> float:
    """RMS over all candidates of the standard deviation of a predicted reading, sqrt(trace(J_j M^-1 J_j^T) / r).

    Directions that no pose shows move no reading, so the pseudoinverse serves.
    """
    M = np.linalg.pinv(_information(J, chosen, prior), rcond=SHOWN**2, hermitian=True)
    rows = J.reshape(-1, J.shape[2])
    return float(np.sqrt(((rows @ M) * rows).sum() / len(rows)))


def _deviations(J: np.ndarray, chosen: list[int], prior: np.ndarray) -> np.ndarray:
    """Standard deviations (n,) of the unknowns in tolerances; infinite where a silent direction moves them."""
    sizes, V = scipy.linalg.eigh(_information(J, chosen, prior))
    silent = sizes <= SHOWN**2 * sizes[-1]
    variance = (V[:, ~silent] ** 2 / sizes[~silent]).sum(axis=1)
    return np.where((V[:, silent] ** 2).sum(axis=1) > SHOWN, np.inf, np.sqrt(variance))


def _curve_point(
    J: np.ndarray, count: int, criterion: Criterion, prior: np.ndarray, rng: np.random.Generator
) -> CurvePoint | None:
    """What a number of poses gives; None where it cannot show all directions."""
    try:
        selection = select_poses(J, count, criterion=criterion, prior=prior, rounds=CURVE_ROUNDS)
    except IdentificationError:
        return None
    directions = J.shape[2] if prior.all() else J.shape[2] - selection.silent
    errors = []
    for _ in range(RANDOM_SETS):
        some = list(rng.choice(len(J), size=count, replace=False))
        sizes = np.linalg.eigvalsh(_information(J, some, prior))
        if int((sizes > SHOWN**2 * sizes[-1]).sum()) >= directions:
            errors.append(_expected_error(J, some, prior))
    return CurvePoint(
        count=count,
        value=selection.value,
        error=_expected_error(J, list(selection.chosen), prior),
        random_error=float(np.median(errors)) if errors else None,
    )
