"""Structures for one task: mixed actuators, stops, and the winner of six freedoms by own formulas."""

from __future__ import annotations

import itertools
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from extras import extra
from scipy.spatial.transform import Rotation

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.design.synthesis.designs import machine_of
from tauloop.design.synthesis.evaluation import TaskEvaluator
from tauloop.design.synthesis.polishing import LocalSearch
from tauloop.design.synthesis.pose_measures import MeasureRequest, PoseMeasures
from tauloop.design.synthesis.task_reading import loads_task, read_task

extra("pymoo")

EXAMPLES = Path(__file__).parents[2] / "examples" / "synthesis"
SLIDE = EXAMPLES / "machines" / "five_bar_slide.yaml"
#: A design of the task of six freedoms: base radius, plate radius, rod, center of the box, m.
RCID_DESIGN = np.array([0.0718, 0.0513, 0.1154, 0.2264])


@pytest.mark.parametrize("length", [0.1, 0.35])
def test_a_five_bar_on_a_slide_has_the_singular_values_of_a_five_bar(length: float) -> None:
    """The slide adds the factor 1; cranks count with the stated length of a radian."""
    request = MeasureRequest(compute_condition=True, compute_singular_values=True, length=length)
    measures = PoseMeasures(tl.Model(SLIDE), ("crank_length",), request)
    flat = tl.Model("five_bar")
    for x, y, z in ((0.0, 0.42, 0.0), (0.08, 0.38, 0.05), (-0.05, 0.46, -0.1)):
        raw, _ = measures.evaluate(np.array([[0.25]]), np.array([[x, y, z]]))
        rates = np.linalg.svd(length * flat.platform.actuator_jacobian(np.array([x, y])))[1]
        sigma = np.sort([1.0, *rates])
        values = {c.kind: float(c.value(raw[:, j])[0]) for j, c in enumerate(measures.columns)}
        assert values["condition"] == pytest.approx(sigma[-1] / sigma[0], rel=1e-9)
        assert values["largest_singular_value"] == pytest.approx(sigma[-1], rel=1e-9)
        assert values["smallest_singular_value"] == pytest.approx(sigma[0], rel=1e-9)
        direct = measures.values(np.array([[0.25]]), np.array([[x, y, z]]))
        assert direct == pytest.approx(raw, rel=1e-12)


def test_mixed_actuators_need_the_length_of_a_radian() -> None:
    text = (EXAMPLES / "structures.yaml").read_text().replace("radian_length: 200 mm, ", "")
    *_, slide = loads_task(text, "structures.yaml", EXAMPLES)
    with pytest.raises(InputError, match="give radian_length"):
        TaskEvaluator(slide)


def rcid_measures(
    design: np.ndarray, poses: np.ndarray, length: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Condition numbers (P,), slides (P, 6) and footprint of an RCID (Lopes and Almeida's equations).

    A pose is a position about the center and a rotation vector.
    """
    base, plate, rod, z = design
    spread = math.radians(15.0)
    phi = np.concatenate([[c - spread, c + spread] for c in np.radians([0.0, 120.0, 240.0])])
    phi = np.concatenate([phi[1:], phi[:1]])
    psi = np.radians([60.0, 60.0, 180.0, 180.0, 300.0, 300.0])
    B = base * np.column_stack([np.cos(phi), np.sin(phi), 0.0 * phi])
    P = plate * np.column_stack([np.cos(psi), np.sin(psi), 0.0 * psi])
    conditions, slides, points = [], [], [B]
    for x, y, dz, rx, ry in poses:
        r = P @ Rotation.from_rotvec([rx, ry, 0.0]).as_matrix().T
        e = np.array([x, y, z + dz]) + r - B
        below = rod**2 - e[:, 0] ** 2 - e[:, 1] ** 2
        slide = e[:, 2] - np.sqrt(np.where(below > 0.0, below, np.nan))
        a = e - slide[:, None] * np.array([0.0, 0.0, 1.0])
        J = np.concatenate([a, np.cross(r, a) / length], axis=1) / a[:, 2:]
        known = np.isfinite(J).all()
        conditions.append(np.linalg.cond(J) if known else np.inf)
        slides.append(slide)
        points.append(np.array([x, y, z + dz]) + r)
    whole = np.concatenate(points)
    sides = np.ptp(whole[:, :2], axis=0)
    return np.array(conditions), np.array(slides), float(sides[0] * sides[1])


def task_poses(steps: int) -> np.ndarray:
    """Poses (steps^5, 5) of the box of the task of six freedoms, m and rad."""
    ends = np.linspace(-1.0, 1.0, steps)
    half = np.array([0.03, 0.03, 0.03, np.radians(5.0), np.radians(5.0)])
    return half * np.array(list(itertools.product(ends, repeat=5)))


@cache
def rcid_task() -> TaskEvaluator:
    (task,) = (t for t in read_task(EXAMPLES / "six_freedoms.yaml") if t.name == "rcid")
    return TaskEvaluator(task)


def test_measures_of_an_rcid_are_those_of_its_paper() -> None:
    evaluator = rcid_task()
    scores = evaluator.scores(RCID_DESIGN[None])
    conditions, slides, floor = rcid_measures(RCID_DESIGN, task_poses(3), 0.1)
    assert len(evaluator.poses) == len(conditions)
    assert scores.values["condition_number"][0] == pytest.approx(conditions.max(), rel=1e-8)
    assert scores.objectives[0, 0] == pytest.approx(floor, rel=1e-9)
    travel = scores.values["range leg1.slide"][0]
    assert travel == pytest.approx(np.abs(slides[:, 0] - 0.125).max(), rel=1e-9)


@pytest.mark.nightly
def test_the_winner_of_six_freedoms_is_the_best_by_other_formulas(tmp_path: Path) -> None:
    """No random RCID near its design meets the task on less floor, on a finer grid of poses."""
    result = tl.synthesize(EXAMPLES / "six_freedoms.yaml", tmp_path)
    assert result.status.value == "ok", result.advice
    by_name = {item.name: item.designs[0] for item in result.structures}
    assert min(by_name, key=lambda name: by_name[name].objectives["floor"]) == "rcid"
    winner = by_name["rcid"]
    names = ("base_radius", "plate_radius", "link_length", "center.z")
    design = np.array([winner.variables[name] for name in names])
    conditions, slides, floor = rcid_measures(design, task_poses(5), 0.1)
    assert conditions.max() == pytest.approx(5.0, rel=1e-4)
    # the design's own search between its poses may find a larger extent than the grid
    assert floor * (1.0 - 1e-9) <= winner.objectives["floor"] <= floor * (1.0 + 1e-3)
    assert 0.0 <= slides.min()
    assert slides.max() <= 0.25
    generator = np.random.default_rng(0)
    corners = task_poses(2)
    for factor in generator.uniform(0.9, 1.1, (4000, 3)):
        other = np.array([*(design[:3] * factor), design[3]])
        values, _, smaller = rcid_measures(other, corners[:1], 0.1)
        if values[0] <= 5.0 and smaller < (1.0 - 1e-3) * floor:
            values, _, smaller = rcid_measures(other, corners, 0.1)
            assert values.max() > 5.0 or smaller >= (1.0 - 1e-3) * floor


def test_stops_that_the_box_exceeds_are_widened_and_stated() -> None:
    """The legs of a smaller hexapod are shorter than the stops of the shipped one."""
    text = """
format: tauloop-synthesis/1
machine: hexapod
free: {base_radius: [100 mm, 500 mm], plate_radius: [50 mm, 300 mm]}
box: {ranges: {x: [-10 mm, 10 mm], y: [-10 mm, 10 mm]}, center: {z: 200 mm}, poses: 9}
objectives: {floor: {minimize: footprint}}
"""
    (task,) = loads_task(text)
    evaluator = TaskEvaluator(task)
    mechanism, widened = machine_of(evaluator, np.array([0.15, 0.1]))
    assert len(widened) == 6
    assert "leg1.strut" in widened[0]
    assert "give requirements.stops or joint_ranges" in widened[0]
    inspection = tl.check(tl.formats.loads(tl.formats.dumps(mechanism)))
    assert inspection.is_usable
    lower = min(rod.telescope.freedom.lower for rod in mechanism.rods if rod.telescope is not None)
    # from the base joint at 10 deg to the plate's at 50 deg, which moves by 10 mm along x and y
    base = 0.15 * np.array([math.cos(math.radians(10.0)), math.sin(math.radians(10.0))])
    plate = 0.1 * np.array([math.cos(math.radians(50.0)), math.sin(math.radians(50.0))])
    height = 0.2
    lengths = [
        math.hypot(*(plate + np.array(d) - base), height)
        for d in itertools.product((-0.01, 0.0, 0.01), repeat=2)
    ]
    assert lower == pytest.approx(min(lengths) - 0.01 * (0.53 - min(lengths)), rel=1e-9)


def test_a_design_that_reaches_no_pose_is_repaired() -> None:
    """Its footprint is not known: the reach alone leads the local search."""
    evaluator = rcid_task()
    start = np.array([0.3, 0.05, 0.12, 0.3])
    assert not np.isfinite(evaluator.raw_at_poses(start, evaluator.poses)[:, -1]).any()
    point = LocalSearch(evaluator).repair(start)
    assert point.violation < 0.5 * evaluator.scores(start[None]).worst[0]
