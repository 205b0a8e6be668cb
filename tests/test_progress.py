"""Progress of a workflow: its stages, and what is reported within them; the time that is left."""

from __future__ import annotations

import pytest
from rich.progress import Task, TaskID

from tauloop.cli.terminal.screen import TimeLeft
from tauloop.common.progress import STEPS_PER_STAGE, Stages


def test_stages_are_reported_with_what_is_done_within_them():
    seen: list[tuple[int, int]] = []
    stages = Stages(lambda done, total: seen.append((done, total)), 3)
    stages.part(1, 2)
    stages.done()
    for _ in stages.over("ab"):
        stages.part(1, 4)
    assert [done / STEPS_PER_STAGE for done, _ in seen] == [0, 0.5, 1, 1.25, 2, 2.25, 3]
    assert {total for _, total in seen} == {3 * STEPS_PER_STAGE}


def test_what_falls_behind_or_goes_too_far_is_not_reported():
    seen: list[int] = []
    stages = Stages(lambda done, _: seen.append(done), 1)
    for share in (0.5, 0.2, 2.0):
        stages.part(share, 1)
    stages.done()
    assert seen == [0, STEPS_PER_STAGE // 2, STEPS_PER_STAGE]


def test_a_stage_that_another_workflow_fills_ends_where_that_ends():
    seen: list[int] = []
    stages = Stages(lambda done, _: seen.append(done), 2)
    for _ in stages.over(range(2)):
        inner = Stages(stages.part, 2)
        inner.done()
        inner.done()
    assert seen == [
        0,
        STEPS_PER_STAGE // 2,
        STEPS_PER_STAGE,
        3 * STEPS_PER_STAGE // 2,
        2 * STEPS_PER_STAGE,
    ]


def test_nobody_need_listen():
    stages = Stages(None, 1)
    stages.done()


@pytest.mark.parametrize(
    ("done", "text"), [(0, "0:00:30 so far"), (1, "0:01:30 left"), (3, "0:00:10 left")]
)
def test_the_time_that_is_left_is_known_from_the_first_step_on(done: int, text: str):
    task = Task(TaskID(0), "poses", 4, done, _get_time=lambda: 30.0)
    task.start_time = 0.0
    assert str(TimeLeft().render(task)) == text
