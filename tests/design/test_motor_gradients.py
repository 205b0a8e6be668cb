"""Local search of forces and speeds of actuators: derivatives by plain calls, and optima by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop.design.synthesis.elastic import ExpensiveScores
from tauloop.design.synthesis.evaluation import FEASIBLE, TaskEvaluator
from tauloop.design.synthesis.polishing import LocalSearch
from tauloop.design.synthesis.task import DesignTask
from tauloop.design.synthesis.task_reading import loads_task

extra("pymoo")

TASK = """
format: tauloop-synthesis/1
machine: five_bar
free: {crank_length: [150 mm, 350 mm], link_length: [200 mm, 500 mm]}
box: {ranges: {x: [-60 mm, 60 mm], y: [-20 mm, 20 mm]}, center: {x: 0 m, y: 420 mm}, poses: 25}
requirements: {condition_number: {most: 2.5}, LIMIT}
objectives: {best: {minimize: OBJECTIVE}}
motion: {duration: 300 ms}
search: {population: 8, generations: 1}
"""
START = np.array([0.25, 0.35])
#: Relative distance of the optimum from the best point of the last grid below.
GRID = 1e-4


def task_of(objective: str, limit: str = "motor_rms: {most: 10 N m}") -> DesignTask:
    (task,) = loads_task(TASK.replace("OBJECTIVE", objective).replace("LIMIT", limit))
    return task


def rms_by_plain_calls(task: DesignTask, x: np.ndarray) -> np.ndarray:
    """Return the root mean square of the torques (2,) over the stroke of the task."""
    model = tl.Model(task.model.mechanism.with_values(task.values(x)))
    time = np.linspace(0.0, 0.3, 101)
    s = time / 0.3
    position = np.zeros((101, 2))
    velocity, acceleration = np.zeros((101, 2)), np.zeros((101, 2))
    length = 0.9 * 0.12
    position[:, 0] = -0.5 * length + length * (10 * s**3 - 15 * s**4 + 6 * s**5)
    position[:, 1] = 0.42
    velocity[:, 0] = length * (30 * s**2 - 60 * s**3 + 30 * s**4) / 0.3
    acceleration[:, 0] = length * (60 * s - 180 * s**2 + 120 * s**3) / 0.3**2
    force = model.platform.inverse_dynamics(position, velocity, acceleration).force
    return np.sqrt(np.trapezoid(np.asarray(force) ** 2, time, axis=0) / 0.3)


def test_slopes_of_torques_are_those_of_plain_calls() -> None:
    task = task_of("motor_rms")
    scores = ExpensiveScores(TaskEvaluator(task))
    assert scores.local_rows(START[None])["motor_rms"][0] == pytest.approx(
        rms_by_plain_calls(task, START), rel=1e-9
    )
    slopes = scores.local_slopes(START)["motor_rms"]
    for i, step in enumerate(1e-5 * np.eye(2)):
        ends = [rms_by_plain_calls(task, START + sign * step) for sign in (-1.0, 1.0)]
        assert slopes[:, i] == pytest.approx((ends[1] - ends[0]) / 2e-5, rel=1e-3)


def best_of_grids(task: DesignTask, scores: ExpensiveScores) -> float:
    """Return the least objective of a grid of candidates, and of finer ones around the best."""
    lower, upper = task.bounds
    for _ in range(4):
        axes = [np.linspace(*ends, 21) for ends in zip(lower, upper, strict=True)]
        x = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
        candidates = scores(x)
        values = np.where(candidates.worst <= 0.0, candidates.objectives[:, 0], np.inf)
        best = x[np.argmin(values)]
        width = (upper - lower) / 10.0
        lower = np.maximum(task.bounds[0], best - width)
        upper = np.minimum(task.bounds[1], best + width)
    return float(np.nanmin(values))


@pytest.mark.parametrize(
    ("objective", "limit"),
    [
        ("motor_rms", "motor_rms: {most: 10 N m}"),
        ("motor_speed", "motor_rms: {most: 10 N m}"),
        ("condition_number", "motor_rms: {most: 1.2 N m}"),
    ],
)
def test_a_local_search_ends_at_the_optimum_of_brute_force(objective: str, limit: str) -> None:
    task = task_of(objective, limit)
    evaluator = TaskEvaluator(task)
    scores = ExpensiveScores(evaluator)
    point = LocalSearch(evaluator, scores).improve(START, [1.0])
    last = scores(point.x[None])
    assert last.worst[0] <= FEASIBLE
    assert last.objectives[0, 0] <= best_of_grids(task, scores) * (1.0 + GRID)
