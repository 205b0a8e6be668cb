"""Excitation: series, criteria, gradients through the loop closure, limits, searches, interrupts, the command."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tauloop import Model, load
from tauloop.common.errors import IdentificationError, InputError, TauloopError
from tauloop.common.result import Status
from tauloop.equations.ports import PLATFORM, Entry
from tauloop.geometry.clearance import segment_distances
from tauloop.identification.excitation import search as excitation_search
from tauloop.identification.excitation.criteria import (
    ConditionNumber,
    CriterionFunction,
    ExcitationCriterion,
    LogDeterminant,
)
from tauloop.identification.excitation.design import ExcitationOptions, plan_excitation
from tauloop.identification.excitation.drives import driven_at
from tauloop.identification.excitation.limits import Bound, ExcitationLimits
from tauloop.identification.excitation.problem import (
    ExcitationProblem,
    ExcitationTask,
    expression_ties,
)
from tauloop.identification.excitation.result import Excitation
from tauloop.identification.excitation.sample import sample_function, squared_distance
from tauloop.identification.excitation.search import random_search, screened
from tauloop.identification.excitation.solver import STOPPED, ExcitationProgram, SolverOptions
from tauloop.kinematics.singularities import singularities
from tauloop.motion import SampledMotion, random_multisine
from tauloop.motion.excitation.fading import Faded
from tauloop.motion.excitation.fourier import FourierSeries, resting_series

#: The same arithmetic in another order.
ROUNDING = 1e-11
#: Central differences of steps of 1e-6 lose half of the digits.
DIFFERENCES = 1e-5
#: Loops closed by Newton's method to 1e-9 m, differenced over 1e-5.
CLOSED_DIFFERENCES = 1e-4
LIMITS = ExcitationLimits(stroke=0.4, max_velocity=3.0, max_acceleration=20.0)
TASK = ExcitationTask(harmonics=3, period=3.0, limits=LIMITS)
QUICK = ExcitationOptions(
    task=TASK, random=40, starts=1, polish=0, solver=SolverOptions(iterations=60)
)


@cache
def problem(name: str, space: str = "actuators") -> ExcitationProblem:
    """A small problem on a shipped machine."""
    limits = (
        LIMITS
        if space == "actuators"
        else ExcitationLimits(stroke=0.05, max_velocity=0.5, max_acceleration=5.0)
    )
    return ExcitationProblem(
        load(name), ExcitationTask(harmonics=3, period=3.0, limits=limits, channels=Entry(space))
    )


def series(seed: int, harmonics: int = 4, size: int = 2) -> FourierSeries:
    rng = np.random.default_rng(seed)
    return FourierSeries(
        center=rng.normal(size=size),
        mu=rng.normal(size=(size, harmonics)),
        nu=rng.normal(size=(size, harmonics)),
        period=7.29,
    )


def test_series_is_the_sum_of_the_paper_from_one_on() -> None:
    fourier, t = series(1), 0.37
    w = 2 * np.pi / fourier.period
    for i in range(2):
        terms = [
            fourier.mu[i, k - 1] / (k * w) * np.sin(k * w * t)
            - fourier.nu[i, k - 1] / (k * w) * np.cos(k * w * t)
            for k in range(1, 5)
        ]
        assert fourier.sample(np.array([t])).position[0, i] == pytest.approx(
            fourier.center[i] + sum(terms), abs=ROUNDING
        )
    assert FourierSeries.of(fourier.coefficients, fourier.period).nu == pytest.approx(
        fourier.nu, abs=ROUNDING
    )


def _derivatives_agree(
    sample: Callable[[np.ndarray], object], time: np.ndarray, tolerance: float
) -> None:
    step = 1e-6
    here, after, before = (sample(time + shift) for shift in (0.0, step, -step))
    for value, rate in (("position", "velocity"), ("velocity", "acceleration")):
        slope = (getattr(after, value) - getattr(before, value)) / (2 * step)
        assert (
            np.abs(slope - getattr(here, rate)).max()
            < tolerance * np.abs(getattr(here, rate)).max()
        )


@given(seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_series_derivatives_and_period(seed: int) -> None:
    fourier, time = series(seed), np.linspace(0.1, 7.0, 23)
    _derivatives_agree(fourier.sample, time, DIFFERENCES)
    assert fourier.sample(time + fourier.period).position == pytest.approx(
        fourier.sample(time).position, abs=1e-9
    )


def test_resting_series_start_at_rest_and_nothing_else_is_lost() -> None:
    basis = resting_series(5)
    assert basis.shape == (11, 9)
    samples = FourierSeries.of(
        (basis @ np.random.default_rng(0).normal(size=(9, 3))).T, 2.0
    ).sample(np.array([0.0, 2.0]))
    assert np.abs(samples.velocity).max() < ROUNDING * 1e2
    assert np.abs(samples.acceleration).max() < ROUNDING * 1e3
    with pytest.raises(InputError, match="harmonics"):
        resting_series(1)


def test_faded_motion_starts_and_ends_still_and_is_untouched_between() -> None:
    rng = np.random.default_rng(0)
    inner = random_multisine(np.array([0.2, -0.1]), np.array([0.1, 0.3]), rng)
    faded = Faded(motion=inner, center=inner.center, duration=10.0, fade=2.0)
    ends = faded.sample(np.array([0.0, 10.0]))
    assert ends.position == pytest.approx(np.tile(inner.center, (2, 1)), abs=ROUNDING)
    assert np.abs(ends.velocity).max() + np.abs(ends.acceleration).max() < ROUNDING
    time = np.linspace(2.5, 7.5, 11)
    assert np.array_equal(faded.sample(time).acceleration, inner.sample(time).acceleration)
    _derivatives_agree(faded.sample, np.linspace(0.3, 9.7, 37), DIFFERENCES)
    with pytest.raises(InputError, match="fade"):
        Faded(motion=inner, center=inner.center, duration=3.0, fade=2.0)
    for duration, fade in ((5.0, 0.0), (np.inf, 2.0)):
        with pytest.raises(InputError, match="above 0 and at most half of the duration, got"):
            Faded(motion=inner, center=inner.center, duration=duration, fade=fade)
    Faded(motion=inner, center=inner.center, duration=4.0, fade=2.0)  # exactly half


CRITERIA = (
    ConditionNumber(sharpness=5.0),
    ConditionNumber(unit_norm=True, sharpness=5.0),
    ConditionNumber(unit_norm=True, information=0.3),
    LogDeterminant(),
)


@pytest.mark.parametrize("number", range(len(CRITERIA)))
@given(seed=st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_criteria_have_exact_gradients(number: int, seed: int) -> None:
    criterion: ExcitationCriterion = CRITERIA[number]
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(12, 4)) * [1.0, 3.0, 0.5, 2.0]
    M, D = Y.T @ Y, rng.normal(size=(4, 4))
    D = D + D.T
    step = 1e-6
    slope = (criterion.value(M + step * D) - criterion.value(M - step * D)) / (2 * step)
    assert slope == pytest.approx((criterion.gradient(M) * D).sum(), rel=1e-4, abs=1e-7)


def test_criteria_are_what_they_are_called() -> None:
    Y = np.random.default_rng(2).normal(size=(20, 5)) * [1.0, 10.0, 0.1, 2.0, 3.0]
    for unit, scaled in ((False, Y), (True, Y / np.linalg.norm(Y, axis=0))):
        exact, smooth = (
            np.log(np.linalg.cond(scaled)),
            ConditionNumber(unit_norm=unit, sharpness=50.0).value(Y.T @ Y),
        )
        assert -ROUNDING < smooth - exact <= np.log(5) / 50
    assert LogDeterminant().value(Y.T @ Y) == pytest.approx(
        -np.linalg.slogdet(Y.T @ Y)[1] / 10, rel=ROUNDING
    )
    face = CriterionFunction(LogDeterminant(), 5)
    m = ca.MX.sym("m", 25)
    gradient = ca.Function("gradient", [m], [ca.gradient(face(m), m)])
    assert np.asarray(gradient((Y.T @ Y).ravel())).ravel() == pytest.approx(
        -np.linalg.inv(Y.T @ Y).ravel() / 10
    )


@given(seed=st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_squared_distance_agrees_with_the_clearance_of_kinematics(seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(4, 3))
    result = float(squared_distance(*(ca.DM(p) for p in points)))  # type: ignore[arg-type]
    assert result == pytest.approx(float(segment_distances(*points)) ** 2, abs=ROUNDING)


@pytest.mark.parametrize(
    ("name", "space"), [("five_bar", "actuators"), ("delta", "actuators"), ("delta", "platform")]
)
def test_differentiable_sample_agrees_with_the_model(name: str, space: str) -> None:
    task = problem(name, space)
    search = random_search(task, 3, np.random.default_rng(0))
    motion = task.series(search.coefficients[0]).sample(task.grid)
    judged = task.evaluate(motion)
    rows, broken = task.screen(motion)
    scaled = (rows * (task.weights / np.sqrt(len(rows)))[:, None]).reshape(judged.regressor.shape)
    assert np.abs(scaled - judged.regressor).max() < 1e-8 * np.abs(judged.regressor).max()
    assert (broken <= 0).all()
    # the random search is scaled on the same grid; centres move by whole reaches
    assert judged.largest_share <= 1.02


def test_open_loops_close_at_the_coordinates_that_the_search_uses() -> None:
    task = problem("gantry_tau_5dof")
    assert task.sample.open
    motion = task.series(random_search(task, 1, np.random.default_rng(0)).coefficients[0]).sample(
        task.grid[:5]
    )
    z, _ = task.opened(motion)
    residual = task.sample.function.map(5)(
        motion.position.T, motion.velocity.T, motion.acceleration.T, z.T
    )[1]
    assert np.abs(np.asarray(residual)).max() < 1e-9


@pytest.mark.parametrize("name", ["five_bar", "gantry_tau_5dof"])
def test_gradient_through_the_loop_closure(name: str) -> None:
    """Total derivative by the implicit function theorem against differences of motions that are closed again."""
    task = problem(name)
    rng = np.random.default_rng(3)
    start = random_search(task, 4, rng)
    base = task.base(start.triangles.reshape(-1, start.triangles.shape[-1]))
    # well conditioned: differences of all are lost in the closing of the loops
    independent = base.independent[:4]
    criterion = LogDeterminant()
    program = ExcitationProgram(task, independent, criterion)
    coefficients = start.coefficients[0]
    x = program.start(coefficients)
    face = CriterionFunction(criterion, len(independent))
    f, g = face(ca.vec(program.normal)), program.residual
    size = task.admitted.shape[1] * len(task.free)
    slopes = ca.Function(
        "slopes",
        [program.variables],
        [ca.jacobian(f, program.variables), ca.jacobian(g, program.variables)],
    )
    df, dg = (np.asarray(part) for part in slopes(x))
    total = df[0, :size]
    if len(x) > size:
        total = total - df[0, size:] @ np.linalg.solve(dg[:, size:], dg[:, :size])
    direction = rng.normal(size=size)
    step, values = 1e-5, []
    for sign in (1, -1):
        moved = x.copy()
        moved[:size] += sign * step * direction
        regressor, _ = screened(task, program.coefficients(moved)[None])
        Y = regressor[0][:, independent]
        values.append(criterion.value(Y.T @ Y))
    assert (values[0] - values[1]) / (2 * step) == pytest.approx(
        total @ direction, rel=CLOSED_DIFFERENCES
    )


@pytest.mark.parametrize("kind", ["parallel", "serial"])
def test_singularity_limit_is_the_distance_of_kinematics(kind: str) -> None:
    """The least pivot changes sign where the distance, measured by singular values, crosses the limit."""
    task = problem("five_bar")
    model, position = task.model, task.center + np.array([0.2, -0.1])
    still = np.zeros((1, 2))
    z, _ = task.opened(
        SampledMotion(time=np.zeros(1), position=position[None], velocity=still, acceleration=still)
    )
    distance = float(
        singularities(model, model.actuators.follow(position).q[None]).distance(kind)[0]
    )
    for share in (0.99, 1.01):
        bound = Bound(kind="singularity", of=kind, unit="", lower=share * distance)
        sample = sample_function(model, model.actuators, "actuators", (bound,), None)
        pivots = np.asarray(sample.function(position, np.zeros(2), np.zeros(2), z[0])[2])
        assert (pivots.min() > 0) == (share < 1)


@cache
def five_bar_excitation() -> Excitation:
    criterion = ConditionNumber(sharpness=4.0)  # one stage: soon done
    return plan_excitation(load("five_bar"), replace(QUICK, criterion=criterion))


def test_excitation_beats_random_and_keeps_limits() -> None:
    excitation = five_bar_excitation()
    assert excitation.conditions.si < 0.9 * excitation.random.best_si
    model = Model(load("five_bar"))
    motion = excitation.sample(317.0)
    q = model.actuators.track(motion.position).q
    forces = model.actuators.inverse_dynamics(
        motion.position, motion.velocity, motion.acceleration, start=q
    )
    allowed = np.array([actuator.force for actuator in model.mechanism.actuators])
    assert (np.abs(forces.force) <= allowed * (1 + 1e-3)).all()
    assert np.abs(motion.velocity).max() <= 3.0 * (1 + 1e-3)
    assert np.abs(motion.acceleration).max() <= 20.0 * (1 + 1e-3)
    assert np.abs(motion.velocity[0]).max() < 1e-9
    Y = model.actuators.regressor(motion.position, motion.velocity, motion.acceleration, start=q)
    unknown = expression_ties(model)
    kept = [
        unknown.parameters.index(parameter.representative) for parameter in excitation.base.base
    ]
    rows = (Y @ unknown.matrix).reshape(-1, len(unknown.parameters))[:, kept]
    assert np.linalg.cond(rows) == pytest.approx(excitation.conditions.si, rel=1e-2)
    json.dumps(excitation.as_dict(), allow_nan=False)


def test_polishing_goes_on_where_limits_hold_between_samples() -> None:
    """From an optimum that broke limits by this share between the samples of its grid, on one twice as fine."""
    excitation, task = five_bar_excitation(), problem("five_bar")
    program = ExcitationProgram(
        task, excitation.base.independent, ConditionNumber(sharpness=400.0), task.polish_grid
    )
    outcome = program.polish(excitation.series.coefficients, SolverOptions(iterations=30))
    assert outcome.value < outcome.started
    assert len(task.polish_grid) == 2 * len(task.grid)
    judged = task.evaluate(task.series(outcome.coefficients).sample(task.fine_grid))
    assert judged.largest_share < 1.005


@pytest.mark.parametrize("name", ["five_bar", "gantry_tau_5dof"])
def test_screening_on_few_samples_first_changes_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = random_search(problem(name), 12, np.random.default_rng(2))
    monkeypatch.setattr(excitation_search, "SCREENING_STRIDE", 1)
    direct = random_search(problem(name), 12, np.random.default_rng(2))
    assert np.array_equal(problems.coefficients, direct.coefficients)
    assert (
        np.abs(problems.triangles - direct.triangles).max()
        <= ROUNDING * np.abs(direct.triangles).max()
    )


def test_processes_find_what_one_process_finds() -> None:
    few, task = SolverOptions(iterations=3), replace(TASK, harmonics=2)
    options = ExcitationOptions(task=task, random=10, starts=2, polish=2, solver=few)
    alone = plan_excitation(load("five_bar"), options)
    shared = plan_excitation(load("five_bar"), replace(options, workers=2))
    reached = [start.reached for start in alone.starts]
    assert [start.reached for start in shared.starts] == pytest.approx(reached, rel=1e-9)
    reached = [start.reached for start in alone.polished]
    assert len(reached) == 2
    assert [start.reached for start in shared.polished] == pytest.approx(reached, rel=1e-9)


def test_an_interrupt_keeps_the_best_so_far() -> None:
    seen: list[str] = []

    def progress(phase: str, done: float, total: float) -> None:
        seen.append(phase)
        if seen.count("optimizing") == 8:
            os.kill(os.getpid(), signal.SIGINT)

    options = ExcitationOptions(task=replace(TASK, harmonics=2), random=20, starts=3)
    excitation = plan_excitation(load("five_bar"), options, progress=progress)
    assert excitation.starts[-1].status == STOPPED
    assert len(excitation.starts) == 1
    assert excitation.polished == ()
    assert "polishing" not in seen
    assert excitation.status is Status.DOUBTFUL
    assert any(STOPPED in line for line in excitation.advice)
    assert excitation.conditions.si <= 1.05 * excitation.random.best_si
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)  # the former handler is back


def test_data_sets_in_sequence_tell_more_than_one() -> None:
    mechanism = load("five_bar")
    names = problem("five_bar").channels
    center = dict(zip(names, problem("five_bar").center, strict=True))
    text = ExcitationTask(harmonics=3, period=3.0, limits=LIMITS, hold={names[0]: center[names[0]]})
    two = ExcitationTask(harmonics=3, period=3.0, limits=LIMITS, hold={names[1]: center[names[1]]})
    first = plan_excitation(mechanism, ExcitationOptions(task=text, random=20, starts=0))
    assert np.ptp(first.sample(100.0).position[:, 0]) == 0.0
    options = ExcitationOptions(task=two, random=20, starts=0)
    alone = plan_excitation(mechanism, options)
    after = plan_excitation(mechanism, replace(options, previous_motions=(first.sample(100.0),)))
    assert after.base.rank >= max(first.base.rank, alone.base.rank)
    assert (
        after.conditions.log_determinant > alone.conditions.log_determinant
        or after.base.rank > alone.base.rank
    )


def test_motors_elsewhere() -> None:
    mechanism = load("five_bar")
    free = [
        name
        for name in Model(mechanism).topology.coordinate_names
        if not name.startswith("platform")
    ]
    moved = driven_at(mechanism, free[:2])
    assert [actuator.name for actuator in moved.actuators] == free[:2]
    with pytest.raises(InputError, match="not a scalar coordinate"):
        driven_at(mechanism, ["nowhere"])
    with pytest.raises(InputError, match="given twice"):
        driven_at(mechanism, [free[0], free[0]])


@pytest.mark.parametrize(
    ("name", "change", "kind", "says"),
    [
        ("five_bar", {"harmonics": 1}, InputError, "harmonics"),
        ("five_bar", {"period": -1.0}, InputError, "period"),
        ("five_bar", {"hold": {"nobody": 0.1}}, InputError, "hold.nobody"),
        ("five_bar", {"preferred_parameters": ("nothing",)}, InputError, "is not an unknown"),
        (
            "five_bar",
            {"limits": ExcitationLimits(stroke={"nobody": 1.0})},
            InputError,
            "is not a channel",
        ),
        ("five_bar", {"limits": ExcitationLimits(stroke=-1.0)}, InputError, "must be positive"),
        ("five_bar", {"output": "legs"}, InputError, "output"),
        (
            "five_bar",
            {"limits": ExcitationLimits(stroke=0.1, singularity=0.99)},
            IdentificationError,
            "at rest at the center, but must be at least",
        ),
        ("hexapod", {"channels": PLATFORM}, InputError, "quaternion"),
    ],
)
def test_bad_tasks_are_refused(
    name: str, change: dict[str, object], kind: type[TauloopError], says: str
) -> None:
    settings = {"harmonics": 3, "period": 3.0, "limits": LIMITS} | change
    with pytest.raises(kind, match=says):
        ExcitationProblem(load(name), ExcitationTask(**settings))  # type: ignore[arg-type]
