"""A simulated tracker session, and fits of a simple and of a full model to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from tauloop.calibration import (
    PICKED_GROUPS,
    CalibrationProblem,
    Identifiability,
    Instrument,
    Pose,
    Position,
    Series,
    Solution,
    Tolerances,
    calibration_problem,
    candidate_poses,
    identifiability,
    simulated_readings,
    simulated_series,
    solve_calibration,
)
from tauloop.common.errors import IdentificationError
from tauloop.formats import load
from tauloop.mechanism import Mechanism
from tauloop.model import Model
from tauloop_papers.alike import one_link_per_cluster
from tauloop_papers.tracker.chains import fitted_chain, linear_chain, meeting
from tauloop_papers.tracker.settings import TrackerSettings

#: Largest ratio of costs of the same optimum; fits end when the cost changes by less than 1e-10.
SAME_OPTIMUM_RATIO = 1.0 + 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Session:
    """The simulated measurement.

    Attributes:
        nominal: the machine as drawn.
        series: readings of encoders and tracker.
        true: true positions (N, 3), m.
        tilt: angle of the platform from its nominal orientation (N,), rad.
        errors: errors of the parameters of the machine as built, SI.
    """

    nominal: Mechanism
    series: Series
    true: np.ndarray
    tilt: np.ndarray
    errors: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One start of a fit.

    Attributes:
        name: nominal or linear.
        distance: mean position error at the start over the fitted
            poses, m; None if the start does not close the loops.
        cost: weighted sum of squares at the optimum; None if there is none.
    """

    name: str
    distance: float | None
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFit:
    """One model before and after calibration, on the poses that were not fitted.

    Attributes:
        name: name of the model.
        unknowns: number of parameters.
        correction: correction of the parameters, SI.
        before, after: position errors (N, 3) of the hold-out poses against the readings, m.
        true_after: the same after calibration against the true positions, m.
        starts: the starts of the fit.
        kept: name of the better start.
        parameter_error: RMS error of the estimates in tolerances; None if the machine has no such
            parameters.
        unfitted_error: the same before the fit.
        expected: RMS of the hold-out errors per component from noise and covariance, m; None if the
            model is known to be wrong.
    """

    name: str
    unknowns: int
    correction: np.ndarray
    before: np.ndarray
    after: np.ndarray
    true_after: np.ndarray
    starts: tuple[Start, ...]
    kept: str
    parameter_error: float | None = None
    unfitted_error: float | None = None
    expected: float | None = None

    def mean(self, which: np.ndarray) -> float:
        """Return the mean length of errors (N, 3), m."""
        return float(np.linalg.norm(which, axis=1).mean())

    @property
    def rms(self) -> float:
        """RMS of the hold-out errors per component after calibration, m."""
        return float(np.sqrt((self.after**2).mean()))


@dataclass(frozen=True, slots=True, kw_only=True)
class SizePoint:
    """The simple model's hold-out errors for another size of part errors.

    Attributes:
        size: standard deviation of the lengths' errors, m.
        errors: mean position error after calibration for several draws, m.
        starts: the starts of each draw.
    """

    size: float
    errors: tuple[float, ...]
    starts: tuple[tuple[Start, ...], ...]

    def quantile(self, share: float) -> float:
        """Return the error below which this share of the draws is, m."""
        return float(np.quantile(self.errors, share))

    @property
    def is_one_optimum(self) -> bool:
        """Whether all starts of every draw end at the same cost."""
        for draw in self.starts:
            costs = [start.cost for start in draw if start.cost is not None]
            if len(costs) < len(draw) or max(costs) > SAME_OPTIMUM_RATIO * min(costs):
                return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """Identifiability of the full model by kind of measurement.

    Attributes:
        poses, positions: with complete poses, and with positions only, at the session's poses.
        narrow: with positions only, at half as many poses in the volume of the source of the stated
            ranks.
    """

    poses: Identifiability
    positions: Identifiability
    narrow: Identifiability


def planned_encoders(settings: TrackerSettings, rng: np.random.Generator) -> np.ndarray:
    """Return the commanded actuator positions (N, n_u), from the nominal geometry."""
    return candidate_poses(
        Model(load(settings.machine)), settings.poses, rng, limits=settings.limits
    ).encoders


def measured(
    settings: TrackerSettings, encoders: np.ndarray, rng: np.random.Generator, *, scale: float = 1.0
) -> Session:
    """Measure the machine as built at the commanded positions.

    Args:
        settings: sizes of part errors, and the tracker's noise.
        encoders: actuator positions (N, n_u).
        rng: generator of part errors and noise.
        scale: factor of the part errors.
    """
    nominal = load(settings.machine)
    errors = {name: scale * error for name, error in _part_errors(settings, nominal, rng).items()}
    built = nominal.with_values(
        {name: nominal.parameters[name].value + error for name, error in errors.items()}
    )
    model, tracker = Model(built), Position(name="tracker")
    q = model.forward_kinematics(encoders).q
    real_part = simulated_readings(model, Pose(name="tracker"), q)[:, 3]
    return Session(
        nominal=nominal,
        series=simulated_series(model, tracker, q, settings.noise, rng),
        true=simulated_readings(model, tracker, q),
        tilt=2.0 * np.arccos(np.clip(real_part, -1.0, 1.0)),
        errors=errors,
    )


def _part_errors(
    settings: TrackerSettings, nominal: Mechanism, rng: np.random.Generator
) -> dict[str, float]:
    """Draw the errors of the parameters of the machine as built, SI."""
    return {
        p.name: float(rng.normal(0.0, deviation))
        for p in nominal.parameters
        for pattern, deviation in settings.part_errors.items()
        if p.group in PICKED_GROUPS and fnmatchcase(p.name, pattern)
    }


def _halves(
    problem: CalibrationProblem,
) -> tuple[CalibrationProblem, CalibrationProblem, np.ndarray]:
    """Return the poses for fit (every second) and verification, and the latter's numbers."""
    everything = np.arange(problem.n_poses)
    return problem.take(everything[::2]), problem.take(everything[1::2]), everything[1::2]


def _errors(problem: CalibrationProblem, correction: np.ndarray) -> np.ndarray:
    return problem.evaluate(correction).states[0].errors


def simple_problem(settings: TrackerSettings, session: Session) -> CalibrationProblem:
    """Return the problem of one link per cluster, at all poses."""
    mechanism = one_link_per_cluster(settings.model, session.nominal)
    return calibration_problem(mechanism, [session.series], settings.model_parameters)


def simple_fit(
    settings: TrackerSettings, problem: CalibrationProblem, true: np.ndarray
) -> ModelFit:
    """Fit one link per cluster to every second pose from both starts.

    Args:
        settings: settings of the experiment.
        problem: `simple_problem`, with the readings of the session.
        true: true positions (N, 3), m.
    """
    fitting, judging, held = _halves(problem)
    zero, series = np.zeros(len(problem.free)), problem.series[0]
    solution, starts, kept = _best(
        fitting, {"nominal": zero, "linear": _linear_start(settings, problem)}
    )
    after = _errors(judging, solution.correction)
    return ModelFit(
        name="one link per cluster (eq. 1)",
        unknowns=len(problem.free),
        correction=solution.correction,
        before=_errors(judging, zero),
        after=after,
        true_after=after + series.readings[held] - true[held],
        starts=starts,
        kept=kept,
    )


def disagreement(problem: CalibrationProblem, fit: ModelFit) -> float:
    """Return the largest difference of positions by the written machine and by the fit, m."""
    series, held = problem.series[0], np.arange(1, problem.n_poses, 2)
    written = Model(problem.mechanism.with_values(problem.values(fit.correction)))
    q = written.forward_kinematics(series.encoders[held]).q
    return float(
        np.abs(
            simulated_readings(written, series.instrument, q) - series.readings[held] - fit.after
        ).max()
    )


def second_program(settings: TrackerSettings, problem: CalibrationProblem) -> np.ndarray:
    """Return the errors (N_held, 3) of a fit of eq. 1's cost without code of Tauloop, m.

    It minimizes the sum of the squared residuals of eq. 1, chain by chain, instead of squared
    position errors; three spheres then intersect.
    """
    series, mechanism = problem.series[0], problem.mechanism
    tool = np.array([mechanism.value(component) for component in mechanism.platform.tool.position])
    joints, q = series.readings - tool, series.encoders
    chains = [fitted_chain(joints[::2], q[::2, i]) for i in range(len(settings.chains))]
    return np.asarray(meeting(chains, q[1::2], near=joints[1::2]) - joints[1::2])


def _spread_start(
    settings: TrackerSettings, session: Session, problem: CalibrationProblem
) -> np.ndarray | None:
    """Return the linear start for all links: those of a cluster have equal lengths and A - B."""
    chains = simple_problem(settings, session)
    start = _linear_start(settings, chains)
    if start is None:
        return None
    correction = np.zeros(len(problem.free))
    for name, value in zip(chains.names, start, strict=True):
        chain, _, part = name.partition(".")
        if part.startswith("offset_"):
            names = [f"{link}.A_{part[-1]}" for link in settings.links[chain]]
        elif part == "length":
            names = [f"{link}.length" for link in settings.links[chain]]
        else:
            names = [name]
        for unknown in names:
            correction[problem.names.index(unknown)] = value
    return correction


def _linear_start(settings: TrackerSettings, problem: CalibrationProblem) -> np.ndarray | None:
    """Return corrections from the linear fit of each chain; None if one fails."""
    mechanism, series = problem.mechanism, problem.series[0]
    series = series.take(np.arange(0, len(series), 2))
    tool = np.array([mechanism.value(component) for component in mechanism.platform.tool.position])
    start = problem.start_values
    correction = np.zeros(len(problem.free))
    for i, name in enumerate(settings.chains):
        try:
            chain = linear_chain(series.readings - tool, series.encoders[:, i])
        except IdentificationError:
            return None
        by_name = {
            "length": chain.length,
            **{
                f"offset_{axis}": float(value)
                for axis, value in zip("xyz", chain.offset, strict=True)
            },
            "yaw": chain.yaw,
            "pitch": chain.pitch,
            "gain": chain.gain,
        }
        for part, value in by_name.items():
            correction[problem.names.index(f"{name}.{part}")] = value - start[f"{name}.{part}"]
    return correction


def _best(
    problem: CalibrationProblem, guesses: Mapping[str, np.ndarray | None]
) -> tuple[Solution, tuple[Start, ...], str]:
    """Return the best optimum of several starts.

    Raises:
        IdentificationError: none of them converges.
    """
    starts: list[Start] = []
    best: dict[str, Solution] = {}
    failures = []
    for name, guess in guesses.items():
        distance = cost = None
        if guess is not None:
            evaluation = problem.evaluate(guess)
            if evaluation.is_reached:
                distance = float(np.linalg.norm(evaluation.states[0].errors, axis=1).mean())
                try:
                    best[name] = solve_calibration(problem, guess)
                    cost = best[name].cost
                except IdentificationError as error:
                    failures += list(error.problems)
        starts.append(Start(name=name, distance=distance, cost=cost))
    if not best:
        raise IdentificationError(failures)
    kept = min(best, key=lambda name: best[name].cost)
    return best[kept], tuple(starts), kept


def full_fit(settings: TrackerSettings, session: Session, looser: float = 1.0) -> ModelFit:
    """Fit all links with priors, from both starts."""
    sizes = {name: looser * size for name, size in settings.part_errors.items()}
    tolerances = Tolerances(named=sizes, priors=("*",))
    problem = calibration_problem(
        session.nominal, [session.series], settings.machine_parameters, tolerances=tolerances
    )
    fitting, judging, held = _halves(problem)
    zero = np.zeros(len(problem.free))
    guesses = {"nominal": zero, "linear": _spread_start(settings, session, fitting)}
    solution, starts, kept = _best(fitting, guesses)
    judged = judging.evaluate(solution.correction)
    after = judged.states[0].errors
    truth = np.array([session.errors[name] for name in problem.names])
    # whitened residuals are errors divided by the noise, of which one is due to the noise itself
    J = judging.jacobian(judged) * problem.tolerances
    information = solution.information * np.outer(problem.tolerances, problem.tolerances)
    share = float((J * np.linalg.solve(information, J.T).T).sum() / len(J))

    def off(correction: np.ndarray) -> float:
        return float(np.sqrt((((correction - truth) / problem.tolerances * looser) ** 2).mean()))

    return ModelFit(
        name="all links, tolerance priors"
        if looser == 1.0
        else f"all links, priors {looser:g} times looser",
        unknowns=len(problem.free),
        correction=solution.correction,
        before=_errors(judging, zero),
        after=after,
        true_after=after + session.series.readings[held] - session.true[held],
        starts=starts,
        kept=kept,
        parameter_error=off(solution.correction),
        unfitted_error=off(zero),
        expected=settings.noise * float(np.sqrt(1.0 + share)),
    )


def size_points(settings: TrackerSettings, session: Session) -> tuple[SizePoint, ...]:
    """Fit the simple model for scaled part errors; draws of all sizes differ only by scale."""
    built = calibration_problem(session.nominal, [session.series], settings.machine_parameters)
    simple = simple_problem(settings, session)

    def drawn(number: int, scale: float) -> ModelFit:
        rng = np.random.default_rng([settings.seed, number])
        errors = _part_errors(settings, session.nominal, rng)
        correction = scale * np.array([errors[name] for name in built.names])
        true = _errors(built, correction) + session.series.readings
        readings = true + settings.noise * rng.normal(size=true.shape)
        return simple_fit(settings, simple.reading(readings), true)

    points = []
    for scale in settings.error_scales:
        fits = [drawn(i, scale) for i in range(settings.scale_draws)]
        points.append(
            SizePoint(
                size=scale * next(iter(settings.part_errors.values())),
                errors=tuple(fit.mean(fit.after) for fit in fits),
                starts=tuple(fit.starts for fit in fits),
            )
        )
    return tuple(points)


def ranks_told(settings: TrackerSettings, session: Session, rng: np.random.Generator) -> Ranks:
    """Return ranks at and away from the nominal geometry, for the session and a smaller volume."""
    nominal = Model(session.nominal)
    q = nominal.forward_kinematics(session.series.encoders).q
    noise, turn = settings.noise, settings.pose_turn_noise
    size = settings.practical_tolerance
    tolerances = Tolerances(length=size, angle=size, ratio=size)

    def identifiability_of(
        instrument: Instrument, deviation: tuple[float, ...], q: np.ndarray
    ) -> Identifiability:
        series = simulated_series(nominal, instrument, q, deviation)
        return identifiability(
            calibration_problem(
                session.nominal, [series], settings.machine_parameters, tolerances=tolerances
            ),
            rng,
        )

    limits = replace(settings.limits, ranges=settings.ranks_ranges)
    near = candidate_poses(nominal, settings.poses // 2, rng, limits=limits).q
    return Ranks(
        poses=identifiability_of(Pose(name="tracker"), (noise,) * 3 + (turn,) * 3, q),
        positions=identifiability_of(Position(name="tracker"), (noise,) * 3, q),
        narrow=identifiability_of(Position(name="tracker"), (noise,) * 3, near),
    )
