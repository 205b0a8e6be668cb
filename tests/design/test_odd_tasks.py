"""Tasks that a user gets wrong: refused with a remedy, or answered without a value that is not known."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop.common.errors import DescriptionError, InputError
from tauloop.design.synthesis import designs, polishing, search, workflow
from tauloop.design.synthesis.designs import designed_machine, machine_of
from tauloop.design.synthesis.elastic import ExpensiveScores
from tauloop.design.synthesis.evaluation import FEASIBLE, TaskEvaluator
from tauloop.design.synthesis.polishing import LocalSearch
from tauloop.design.synthesis.search import SearchHistory, search_designs
from tauloop.design.synthesis.task_reading import loads_task

extra("pymoo")

HERE = Path(__file__).parent
QUICK = (HERE / "quick_task.yaml").read_text(encoding="utf-8")
MOTORS = HERE.parents[1] / "examples" / "motors.yaml"
CONDITION = "condition_number: {most: 4}"
SIZE = "minimize: crank_length + link_length"
MOTION = "duration: 300 ms"


def changed(*pairs: tuple[str, str]) -> str:
    text = QUICK
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


def evaluator_of(text: str) -> TaskEvaluator:
    (task,) = loads_task(text)
    return TaskEvaluator(task)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("machine: five_bar", "machine: lost.yaml", r"lost\.yaml: there is no such file"),
        ("y: 420 mm", 'y: ":400 mm"', "needs two different ends"),
        ("y: 420 mm", 'y: "400 mm:400 mm"', "needs two different ends"),
        ("[150 mm, 350 mm]", "[150 mm, 150 mm]", "both ends are the same"),
        ("most: 4", "most: 0.5", "no condition number is below 1"),
        (CONDITION, "velocity_factors: {least: 3, most: 2}", "least is above most"),
        (CONDITION, "joint_speed: {tool_speed: 1 m/s}", "limits nothing"),
        (CONDITION, "accuracy: {tolerances: crank_length=1mm}", "limits nothing"),
        (
            CONDITION,
            "joint_speed: {turning_speed: 1 rad/s, most: 1 rad/s}",
            "the platform of five_bar does not rotate",
        ),
        (CONDITION, 'joint_ranges: {"*": [0 deg, 1 deg]}', "fits angles and lengths"),
        (CONDITION, "motors: {catalogue: lost.yaml}", "there is no such file"),
        (CONDITION, f"motors: {{catalogue: {MOTORS}, reserve: 1}}", "at least 0 and below 1"),
        (MOTION, "cycle: lost.yaml", "there is no such file"),
        (MOTION, "trajectory: lost.csv", "there is no such file"),
        (MOTION, f"trajectory: {MOTORS}, duration: 1 s", "are different motions"),
        (MOTION, "payload: heavy", "is not a number with a unit"),
        (MOTION, "payload: 2 m", "where a mass"),
        (MOTION, "payload: -1 kg", "give zero or more"),
        ("motion:", "loads: {cut: {force: [1 N, 0 N, 0 N]}}\nmotion:", "uses the load cases"),
        ("machine: five_bar", "structures: {a: {machine: five_bar, free: {}}}", "is empty"),
        (
            "machine: five_bar",
            "structures: {a: {machine: five_bar, free: {crank_length: [1 m, 2 m]}}}",
            "is not used with structures",
        ),
    ],
)
def test_tasks_that_mean_nothing_are_refused_with_their_lines(
    old: str, new: str, message: str
) -> None:
    with pytest.raises(DescriptionError, match=message) as error:
        loads_task(changed((old, new)), "task.yaml", HERE)
    assert "task.yaml, line" in str(error.value)


@pytest.mark.parametrize(
    ("old", "new"), [(CONDITION, "clearance: {least: 1 mm}"), (SIZE, "maximize: clearance")]
)
def test_a_clearance_needs_two_rods(old: str, new: str) -> None:
    with pytest.raises(InputError, match="five_bar has no two rods"):
        evaluator_of(changed((old, new)))


def five_bar_condition(crank: float, link: float, poses: np.ndarray) -> float:
    """Return the largest condition number of the shipped five-bar at poses (P, 2) of the tip."""
    rows = []
    for sign in (-1.0, 1.0):
        p = poses - [sign * 0.1, 0.0]
        distance = np.hypot(*p.T)
        cosine = (crank**2 + distance**2 - link**2) / (2.0 * crank * distance)
        if (np.abs(cosine) >= 1.0).any():
            return math.inf
        theta = np.arctan2(p[:, 1], p[:, 0]) - sign * np.arccos(cosine)
        along = crank * np.column_stack([np.cos(theta), np.sin(theta)])
        d = p - along
        rows.append(d / (along[:, 0] * d[:, 1] - along[:, 1] * d[:, 0])[:, None])
    return float(np.linalg.cond(np.stack(rows, axis=1)).max())


def test_the_least_violation_is_that_of_a_machine_that_reaches_its_box() -> None:
    """The search from a machine out of reach ends where brute force has the least violation."""
    box = np.stack(np.meshgrid(np.linspace(-0.04, 0.04, 9), np.linspace(0.4, 0.44, 5)), axis=-1)
    poses = box.reshape(-1, 2)
    sizes = [(a, b) for a in np.linspace(0.15, 0.35, 41) for b in np.linspace(0.2, 0.5, 61)]
    least = min(five_bar_condition(*size, poses) for size in sizes)
    evaluator = evaluator_of(changed(("most: 4", "most: 1.01")))
    start = np.array([0.16, 0.21])
    assert math.isinf(five_bar_condition(*start, poses))
    point = LocalSearch(evaluator).repair(start)
    assert 1.01 * (1.0 + point.violation) == pytest.approx(
        five_bar_condition(*point.x, poses), rel=1e-6
    )
    assert 1.01 * (1.0 + point.violation) <= least + 1e-6
    exclusion = workflow._exclusion(evaluator, ExpensiveScores(evaluator), point.x)
    assert exclusion.name == "condition number"
    assert exclusion.violation == pytest.approx(point.violation, rel=1e-6)


def test_machines_out_of_reach_are_not_the_nearest_to_a_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A small violation of reach counts more than a large one that is known."""
    evaluator = evaluator_of(changed(("most: 4", "most: 1.01")))
    x = np.array([[0.25, 0.2], [0.35, 0.2]])
    scores = evaluator.scores(x)
    assert scores.violations[0, evaluator.reach] > 0.0
    assert scores.worst[0] < scores.worst[1]
    history = SearchHistory(
        x=x, objectives=scores.objectives, violations=scores.violations, screened=0, resumed=0
    )
    monkeypatch.setattr(workflow, "REPAIR_STARTS", 1)
    monkeypatch.setattr(polishing, "MAX_ROUNDS", 0)
    least = workflow._least_violating(evaluator, history)
    assert least == pytest.approx(x[1])


def test_objectives_of_a_design_hold_between_the_poses_of_its_task() -> None:
    """Six poses a side miss the worst pose of this five-bar, which a fine grid has."""
    evaluator = evaluator_of(changed(("poses: 25", "poses: 36")))
    x = np.array([0.2305, 0.4044])
    fine = np.stack(np.meshgrid(np.linspace(-0.04, 0.04, 81), np.linspace(0.4, 0.44, 41)), axis=-1)
    worst = five_bar_condition(*x, fine.reshape(-1, 2))
    at_poses = evaluator.scores(x[None]).values["condition_number"][0]
    value = evaluator.worst_values(x)["condition_number"]
    assert at_poses < worst * (1.0 - 1e-5)
    assert value == pytest.approx(worst, rel=1e-6)


def test_a_local_search_does_not_leave_the_domain_of_an_objective() -> None:
    evaluator = evaluator_of(changed((SIZE, "minimize: sqrt(crank_length - 0.5*link_length)")))
    local = LocalSearch(evaluator)
    start = np.array([0.3, 0.35])
    point = local.improve(start, [1.0, 0.0])
    first, last = (local.objectives(x)[0] for x in (start, point.x))
    assert last < first
    assert point.violation <= FEASIBLE


def test_an_objective_that_is_not_a_number_is_named(tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    text = changed(("minimize: crank_length + link_length", "minimize: sqrt(-link_length)"))
    path.write_text(text.replace("generations: 4", "generations: 1"), encoding="utf-8")
    result = tl.synthesize(path)
    exclusion = result.structures[0].exclusion
    assert exclusion is not None
    assert exclusion.text == "objective size, sqrt(-link_length), is not a number"
    assert result.status.value == "doubtful"


def test_ranges_of_angles_count_in_any_revolution(tmp_path: Path) -> None:
    x = np.array([0.28, 0.36])
    limits = []
    for ends in ("[0 deg, 180 deg]", "[360 deg, 540 deg]"):
        evaluator = evaluator_of(changed((CONDITION, f"joint_ranges: {{shoulder_1: {ends}}}")))
        assert evaluator.scores(x[None]).worst[0] < 0.0
        mechanism, widened = machine_of(evaluator, x)
        joint = next(item for item in mechanism.joints if item.name == "shoulder_1")
        limits.append((joint.freedoms[0].lower, joint.freedoms[0].upper))
        assert not widened
    assert limits[0] == pytest.approx((0.0, math.pi))
    assert limits[1] == pytest.approx(limits[0])


def test_a_search_resumes_from_a_folder_alone() -> None:
    with pytest.raises(InputError, match="there is no folder to continue from"):
        tl.synthesize(HERE / "quick_task.yaml", resume=True)


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    evaluator = evaluator_of(QUICK.replace("generations: 4", "generations: 1"))
    search_designs(evaluator, evaluator.scores, tmp_path)
    (path,) = tmp_path.glob("*.npz")
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(InputError, match="its generation is repeated"):
        search_designs(evaluator, evaluator.scores, tmp_path)


def test_a_search_ends_where_no_further_candidates_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = evaluator_of(QUICK)
    original = search._algorithm

    def exhausted(*args: object) -> tuple[object, object]:
        algorithm, problem = original(*args)  # type: ignore[arg-type]
        ask = algorithm.ask
        answers = iter([ask, lambda: None])
        algorithm.ask = lambda: next(answers)()
        return algorithm, problem

    monkeypatch.setattr(search, "_algorithm", exhausted)
    history = search_designs(evaluator, evaluator.scores)
    assert len(history.x) == evaluator.task.search.population


def test_designs_with_cables_state_that_tension_is_not_proved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The design is not moved, which takes longer."""
    monkeypatch.setattr(designs, "_simulated_motion", lambda *_: designs._DesignMotion())
    text = """
format: tauloop-synthesis/1
machine: cable_robot
free: {height: [2 m, 5 m]}
box: {ranges: {x: [-300 mm, 300 mm]}, poses: 8}
objectives: {height: {minimize: height}}
"""
    machine, _ = designed_machine(evaluator_of(text), np.array([3.0]))
    assert "tension of cables is not included" in machine.note
