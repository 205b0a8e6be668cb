"""Load cases of joints over a motion in every output of the command."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from command_line import run, run_json

import tauloop as tl
from tauloop.display.parts import PARTS


def test_every_output_of_a_motion_has_the_load_cases(tmp_path: Path) -> None:
    """The printed table, JSON, the CSV file and the table of pandas contain the same numbers."""
    stroke = tl.plan_stroke("delta", start={"x": -0.1}, end={"x": 0.1}, duration="0.3 s")
    tl.logs.write_log(tmp_path / "stroke.csv", stroke.log())
    motion = tl.inverse_dynamics("delta", motion=tmp_path / "stroke.csv", joint_forces=True)
    cases = motion.joint_forces.load_cases()
    frame = cases.to_pandas()
    assert len(frame) == len(cases.cases)
    path = tmp_path / "bearings.cases.csv"
    words = ("dynamics", "delta", "--motion", tmp_path / "stroke.csv", "--joint-forces")
    printed = run(*words, "--out", path)
    listed = run_json(*words)["load_cases"]
    assert [case["force"] for case in listed] == [case.force for case in cases.cases]
    shoulder = cases.of("leg1.shoulder")["largest force"]
    assert f"{shoulder.force:.4g}" in printed.output
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["force [N]"]) for row in rows] == [case.force for case in cases.cases]
    assert rows[0]["joint"] == cases.cases[0].joint
    balls = [row for row in rows if row["joint"] == "leg1.forearm.end"]
    assert {row["case"] for row in balls} >= {"largest axial force", "smallest axial force"}


def test_picture_and_report_show_the_loads_of_joints(tmp_path: Path) -> None:
    stroke = tl.plan_stroke("delta", start={"x": -0.1}, end={"x": 0.1}, duration="0.3 s")
    tl.logs.write_log(tmp_path / "stroke.csv", stroke.log())
    words = ("dynamics", "delta", "--motion", tmp_path / "stroke.csv", "--payload", "0.3kg")
    options = ("--joint-forces", "--out", tmp_path / "d.json", "--out", tmp_path / "d.svg")
    run(*words, *options)
    picture = (tmp_path / "d.svg").read_text(encoding="utf-8")
    assert "<svg" in picture
    run("report", tmp_path / "d.json", "--out", tmp_path / "d.html")
    page = (tmp_path / "d.html").read_text(encoding="utf-8")
    for title in ("Actuator forces", "Force in joints", "Axial force", "Moment in joints"):
        assert title in page
    motion = tl.inverse_dynamics("delta", motion=tmp_path / "stroke.csv", joint_forces=True)
    plots = {plot.title: plot for plot in PARTS["MotionForces"].plots(motion)}
    joint = motion.joint("leg1.shoulder")
    drawn = {trace.name: trace for trace in plots["Moment in joints"].traces}["leg1.shoulder"]
    largest = np.linalg.norm(joint.moment, axis=1).max()
    assert max(drawn.y) == pytest.approx(largest, rel=1e-5)  # six digits are drawn
