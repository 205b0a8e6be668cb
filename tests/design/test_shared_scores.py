"""Scores of populations by two processes and by a cluster have the same bits as those of one process."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop.common.errors import EngineError
from tauloop.design.synthesis import sharing
from tauloop.design.synthesis.elastic import ExpensiveScores
from tauloop.design.synthesis.evaluation import TaskEvaluator
from tauloop.design.synthesis.search import SearchHistory, search_designs
from tauloop.design.synthesis.sharing import SharedScores
from tauloop.design.synthesis.task import DesignTask
from tauloop.design.synthesis.task_reading import loads_task

extra("pymoo")

ROOT = Path(__file__).parents[2]
TASKS = {
    "motors": f"""
format: tauloop-synthesis/1
machine: delta
free: {{arm_length: [100 mm, 400 mm], forearm_length: [200 mm, 900 mm]}}
box: {{cylinder: {{radius: 100 mm, height: 60 mm}}, center: {{z: "-700 mm:-250 mm"}}, poses: 60}}
requirements: {{motor_rms: {{most: 5 N m}}, motors: {{catalogue: {ROOT / "examples" / "motors.yaml"}}}}}
objectives: {{size: {{minimize: arm_length + forearm_length}}, force: {{minimize: motor_force}}}}
motion: {{duration: 300 ms}}
search: {{population: 16, generations: 3}}
""",
    "elastic": f"""
format: tauloop-synthesis/1
machine: {ROOT / "examples" / "elastic" / "gantry_tau.yaml"}
free: {{cart_mass: [20 kg, 30 kg], m_p: [10 kg, 12 kg]}}
box: {{ranges: {{x: [-50 mm, 50 mm]}}, poses: 8}}
objectives: {{frequency: {{maximize: first_mode}}, mass: {{minimize: mass}}}}
search: {{population: 8, generations: 1}}
""",
}


def searched(task: DesignTask, workers: int | str | None) -> tuple[SearchHistory, ExpensiveScores]:
    evaluator = TaskEvaluator(task)
    expensive = ExpensiveScores(evaluator)
    with closing(SharedScores(expensive, task, workers)) as shared:
        return search_designs(evaluator, shared), expensive


def require_same_bits(first: SearchHistory, second: SearchHistory) -> None:
    for name in ("x", "objectives", "violations"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()


@pytest.mark.parametrize("name", TASKS)
def test_two_processes_score_as_one(name: str) -> None:
    (task,) = loads_task(TASKS[name])
    alone, expensive = searched(task, 1)
    shared, of_two = searched(task, 2)
    assert np.isfinite(alone.objectives).any()
    require_same_bits(alone, shared)
    assert expensive.evaluated == of_two.evaluated


def test_stiffness_and_modes_have_the_same_bits_in_any_batch() -> None:
    """40 candidates at 9 poses are compiled code; the poses of one candidate are few."""
    text = TASKS["elastic"].replace("mass: {minimize: mass}", "stiff: {maximize: stiffness}")
    (task,) = loads_task(text)
    expensive = ExpensiveScores(TaskEvaluator(task))
    lower, upper = task.bounds
    x = lower + np.random.default_rng(0).random((40, 2)) * (upper - lower)
    whole = expensive.worst(x)
    parts = [expensive.worst(part) for part in np.array_split(x, 13)]
    for name, values in whole.items():
        assert np.isfinite(values).all()
        assert values.tobytes() == np.concatenate([part[name] for part in parts]).tobytes()


def test_processes_start_when_the_rest_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first generation, which this process has scored."""
    (task,) = loads_task(TASKS["motors"])
    evaluator = TaskEvaluator(task)
    expensive = ExpensiveScores(evaluator)
    started: list[int | str | None] = []
    monkeypatch.setattr(sharing, "MIN_WORK_FOR_PROCESSES", 1e-9)
    monkeypatch.setattr(sharing, "cores", lambda: 3)
    monkeypatch.setattr(SharedScores, "_start", lambda self, workers: started.append(workers))
    with closing(SharedScores(expensive, task, None)) as shared:
        lower, upper = task.bounds
        shared(lower + np.random.default_rng(0).random((4, 3)) * (upper - lower))
    assert started == [None, 3]


@pytest.mark.nightly
@pytest.mark.parametrize("name", TASKS)
def test_a_cluster_scores_as_one_process(name: str) -> None:
    extra("distributed")
    (task,) = loads_task(TASKS[name])
    require_same_bits(searched(task, 1)[0], searched(task, "local")[0])


@pytest.mark.parametrize("is_expensive", [True, False])
def test_a_scheduler_that_does_not_answer_is_named(tmp_path: Path, *, is_expensive: bool) -> None:
    """Tasks that this process scores alone name it too."""
    extra("distributed")
    path = tmp_path / "task.yaml"
    quick = Path(__file__).with_name("quick_task.yaml").read_text(encoding="utf-8")
    path.write_text(TASKS["motors"] if is_expensive else quick, encoding="utf-8")
    with pytest.raises(EngineError, match="does not answer"):
        tl.synthesize(path, workers="tcp://127.0.0.1:9")
