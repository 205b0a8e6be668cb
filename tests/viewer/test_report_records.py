"""Records of results: written by commands, read back as they were, and refused with all that is wrong."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from kills import prepare

import tauloop as tl
from tauloop.common.result import plain
from tauloop.display import page_record, read_record
from tauloop.display.page_records import KEY, fingerprints


@pytest.fixture(scope="module")
def counted() -> tl.TauloopError | Any:
    return tl.count_operations(tl.load("five_bar"))


def written(folder: Path, content: object) -> Path:
    path = folder / "result.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_a_record_is_read_as_it_was_written(counted, tmp_path: Path) -> None:
    shown = page_record(counted, ("tauloop", "cost", "five_bar"))
    assert read_record(written(tmp_path, {KEY: shown.as_dict()})) == shown


def test_a_simulations_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    shown = page_record(tl.simulate(tl.load("five_bar"), tl.SimulationOptions(duration=0.05)))
    assert read_record(written(tmp_path, {KEY: shown.as_dict()})) == shown


def test_the_command_and_hashes_of_its_files_are_recorded(tmp_path: Path) -> None:
    prepare(tmp_path)
    described = tmp_path / "poses.yaml"
    described.write_text("measurements:\n  - file: poses.csv\n", encoding="utf-8")
    words = (
        "five_bar",
        str(tmp_path / "log.csv"),
        f"--other={described}",
        str(tmp_path / "out.json"),
    )
    (tmp_path / "out.json").write_text("{}", encoding="utf-8")
    expected = {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (tmp_path / "log.csv", described)
    }
    data = tmp_path / "poses.csv"
    expected[str(data)] = hashlib.sha256(data.read_bytes()).hexdigest()
    assert fingerprints(words, [tmp_path / "out.json"]) == expected


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("[]", "has no record"),
        ('{"status": "ok"}', "has no record"),
        ('{"report": {"format": "tauloop-report/99"}}', "tauloop-report/99"),
        (b"\xff\xfe", "is not valid JSON"),
    ],
)
def test_what_is_no_record_is_refused(content: str | bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(tl.InputError, match=words):
        read_record(path)


def test_all_that_is_wrong_is_said_at_once(counted, tmp_path: Path) -> None:
    shown = page_record(counted).as_dict()
    plot = {"piece": "plot", "title": "t", "x": "x", "y": "y"}
    pieces = [
        {"piece": "film"},
        {"piece": "plots"},
        {"piece": "paragraph", "text": 3, "tone": "plain"},
        {"piece": "paragraph", "text": "a", "tone": "loud"},
        {"piece": "table", "title": "t", "heads": ["a", "b"], "cells": [["1"]]},
        {
            "piece": "plot",
            "title": "t",
            "x": "x",
            "y": "y",
            "traces": [{"name": "n", "x": [1], "y": [1, 2]}],
        },
        {"piece": "plot", "title": "t", "x": "x", "y": "y", "layout": {"images": []}},
        {"piece": "motionscene", "title": "t", "machine": "m", "time": [0], "q": [[1], [2]]},
        {
            "piece": "plot",
            "title": "t",
            "x": "x",
            "y": "y",
            "traces": [{"name": "n", "x": [1], "y": [1e999]}],
        },
        7,
        {**plot, "grid": [[1, 2], [3]], "grid_x": [0, 1], "grid_y": [0, 1]},
        {**plot, "grid": [[1, 2]], "grid_x": [0, 1], "grid_y": [0, 1]},
        {**plot, "grid_x": [0, 1]},
        {**plot, "y_range": [0]},
        {"piece": "motionscene", "title": "t", "machine": "m", "time": [0, 1], "q": [[1], [2, 3]]},
    ]
    path = tmp_path / "result.json"
    path.write_text(json.dumps({KEY: {**shown, "title": None, "pieces": pieces}}), encoding="utf-8")
    with pytest.raises(tl.InputError) as refused:
        read_record(path)
    where = [problem.where for problem in refused.value.problems]
    assert where == [
        "title",
        *(
            "pieces[0]",
            "pieces[1]",
            "pieces[2].text",
            "pieces[3].tone",
            "pieces[4]",
            "pieces[5].traces[0]",
        ),
        *("pieces[6].layout", "pieces[7]", "pieces[8].traces[0].y[0]", "pieces[9]"),
        *(
            "pieces[10].grid",
            "pieces[11].grid",
            "pieces[12].grid",
            "pieces[13].y_range",
            "pieces[14]",
        ),
    ]
    assert all(problem.file == str(path) and problem.remedy for problem in refused.value.problems)


def test_a_result_within_another_is_written_as_it_writes_itself() -> None:
    view = tl.view(tl.load("five_bar"))
    assert plain({"inner": [view]}) == {"inner": [plain(view.as_dict())]}
