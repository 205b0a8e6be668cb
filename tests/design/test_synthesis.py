"""Dimensional synthesis: measures by other routes, optima in closed form and by brute force, files, resumption."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from extras import extra
from scipy.optimize import brentq

import tauloop as tl
from tauloop.common.errors import DescriptionError, InputError
from tauloop.design.synthesis import designs, polling
from tauloop.design.synthesis.elastic import ExpensiveScores
from tauloop.design.synthesis.evaluation import FEASIBLE, Scores, TaskEvaluator
from tauloop.design.synthesis.polishing import LocalSearch
from tauloop.design.synthesis.population import Population
from tauloop.design.synthesis.pose_measures import (
    MeasureRequest,
    PoseMeasures,
    extreme_eigenvalues,
)
from tauloop.design.synthesis.search import not_dominated, search_designs
from tauloop.design.synthesis.task import DesignTask, SearchSize
from tauloop.design.synthesis.task_reading import loads_task, read_task

extra("pymoo")

QUICK_TASK = Path(__file__).with_name("quick_task.yaml")
TUBES = Path(__file__).parents[2] / "examples" / "elastic" / "gantry_tau.yaml"
#: Numbers of two routes in another order of operations, relative.
ROUNDING = 1e-9
#: Error of central differences with a step of 1e-6.
DIFFERENCES = 1e-6
#: Goal of the comparison with brute force.
BRUTE_FORCE = 0.005
ORTHOGLIDE = """
format: tauloop-synthesis/1
machine: orthoglide
free: {rod: [150 mm, %s]}
box:
  ranges: {x: [-100 mm, 100 mm], y: [-100 mm, 100 mm], z: [-100 mm, 100 mm]}
  center: {x: "-150 mm:150 mm", y: "-150 mm:150 mm", z: "-150 mm:150 mm"}
  poses: 216
requirements: {velocity_factors: {least: 0.5, most: 2}}
objectives: {rods: {minimize: rod}}
search: {population: 40, generations: 12}
"""
DELTA = """
format: tauloop-synthesis/1
machine: delta
free: {arm_length: [100 mm, 400 mm], forearm_length: [200 mm, 900 mm]}
box: {cylinder: {radius: 150 mm, height: 100 mm}, center: {z: "-700 mm:-250 mm"}, poses: 600}
requirements:
  joint_ranges: {"leg*.shoulder": [-60 deg, 120 deg]}
  joint_speed: {tool_speed: 1 m/s, most: 8 rad/s}
objectives: {size: {minimize: arm_length + forearm_length}}
search: {population: 60, generations: 25}
"""
FIVE_BAR = """
format: tauloop-synthesis/1
machine: five_bar
free: {crank_length: [100 mm, 500 mm], link_length: [100 mm, 700 mm]}
box: {cylinder: {radius: 80 mm}, center: {x: 0 m, y: "150 mm:700 mm"}, poses: 200}
requirements: {condition_number: {most: 2.5}}
objectives: {size: {minimize: crank_length + link_length}}
search: {population: 60, generations: 25}
"""


@pytest.fixture
def search_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Designs are neither certified nor moved, which takes longer than a small search."""
    monkeypatch.setattr("tauloop.design.synthesis.designs.CERTIFICATE_TIME", 1e-3)
    monkeypatch.setattr(
        "tauloop.design.synthesis.designs._simulated_motion", lambda *_: designs._DesignMotion()
    )


def task_of(text: str) -> DesignTask:
    (task,) = loads_task(text)
    return task


def optimum(task: DesignTask) -> tuple[TaskEvaluator, np.ndarray, float]:
    """Evaluator, variables and largest violation of the best design, without its machine file."""
    evaluator = TaskEvaluator(task)
    history = search_designs(evaluator, ExpensiveScores(evaluator))
    local = LocalSearch(evaluator)
    point = local.improve(history.x[history.front[0]], [1.0])
    return evaluator, point.x, point.violation


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
def test_extreme_eigenvalues_are_those_of_lapack(size: int) -> None:
    generator = np.random.default_rng(size)
    symbol = ca.SX.sym("B", size, size)
    function = ca.Function("f", [symbol], list(extreme_eigenvalues(symbol)))
    for rank in range(1, size + 1):
        root = generator.normal(size=(size, rank))
        B = root @ root.T
        low, high = (float(value) for value in function(B))
        values = np.linalg.eigvalsh(B)
        # close eigenvalues of three rows come from the arc of a cosine: the root of rounding
        assert [low, high] == pytest.approx([values[0], values[-1]], abs=3e-8 * values[-1])
    low, high = (float(value) for value in function(np.eye(size)))
    assert [low, high] == pytest.approx([1.0, 1.0], abs=1e-12)


MACHINES = {
    "delta": (("arm_length", "forearm_length"), "leg1.shoulder"),
    "five_bar": (("crank_length", "link_length"), "shoulder_1"),
    "hexapod": (("base_radius", "plate_radius"), "leg1.strut"),
}


def measured(name: str) -> tuple[PoseMeasures, np.ndarray, np.ndarray]:
    """Measures of a machine, with parameters and positions near its own."""
    names, limited = MACHINES[name]
    model = tl.Model(name)
    request = MeasureRequest(
        ranges={limited: (-0.5, 1.5)},
        compute_condition=True,
        compute_singular_values=True,
        tool_speed=1.5,
        compute_clearance=len(model.mechanism.rods) > 1,
        compute_footprint=True,
    )
    generator = np.random.default_rng(1)
    position = np.tile(model.platform_position(model.assembly.q[None]), (5, 1))
    moved = min(3, position.shape[1])
    position[:, :moved] += generator.uniform(-0.02, 0.02, (5, moved))
    nominal = [model.mechanism.parameters[item].value for item in names]
    theta = np.array(nominal) * generator.uniform(0.98, 1.02, (5, len(names)))
    return PoseMeasures(model, names, request), theta, position


@pytest.mark.parametrize("name", MACHINES)
def test_measures_are_those_of_models_with_these_parameters(name: str) -> None:
    """By models of each candidate, their Jacobians and NumPy's singular values."""
    measures, theta, position = measured(name)
    raw, _ = measures.evaluate(theta, position)
    values = {}
    for j, column in enumerate(measures.columns):
        values.setdefault(column.kind, []).append(column.value(raw[:, j]))
    names, limited = MACHINES[name]
    for i in range(len(theta)):
        model = tl.Model(tl.load(name).with_values(dict(zip(names, theta[i], strict=True))))
        state = model.platform.kinematics(position[i])
        J = model.platform.actuator_jacobian(position[i])
        turns = np.array([unit == "rad/s" for unit in model.platform.ports.velocity.units])
        length = measures.model.assembly.loops.length
        sigma = np.linalg.svd(J / np.where(turns, length, 1.0), compute_uv=False)
        assert values["condition"][0][i] == pytest.approx(sigma[0] / sigma[-1], rel=ROUNDING)
        assert values["largest_singular_value"][0][i] == pytest.approx(sigma[0], rel=ROUNDING)
        assert values["smallest_singular_value"][0][i] == pytest.approx(sigma[-1], rel=ROUNDING)
        speeds = 1.5 * np.linalg.norm(J[:, ~turns], axis=1)
        assert [column[i] for column in values["speed"]] == pytest.approx(speeds, rel=ROUNDING)
        q = state.q[model.topology.coordinate_names.index(limited)]
        assert values["range"][0][i] == pytest.approx(abs(q - 0.5), rel=1e-7)
        if "clearance" in values:
            from tauloop.geometry.clearance import rod_clearance

            distances = rod_clearance(model).distances(state.q[None])[0]
            assert [c[i] for c in values["clearance"]] == pytest.approx(distances, abs=1e-9)
        assert max(column[i] for column in values["reach"]) < 0.0


@pytest.mark.parametrize("name", MACHINES)
def test_derivatives_are_those_of_differences(name: str) -> None:
    measures, theta, position = measured(name)
    _, slopes = measures.evaluate(theta, position)
    step = 1e-6
    for k in range(theta.shape[1] + position.shape[1]):
        sides = []
        for sign in (1.0, -1.0):
            both = np.concatenate([theta, position], axis=1)
            both[:, k] += sign * step
            sides.append(measures.evaluate(both[:, : theta.shape[1]], both[:, theta.shape[1] :])[0])
        difference = (sides[0] - sides[1]) / (2.0 * step)
        scale = 1.0 + np.abs(slopes).max(axis=(0, 2))
        assert np.abs(difference - slopes[:, :, k]).max(axis=0) / scale == pytest.approx(
            0.0, abs=DIFFERENCES
        )


@pytest.mark.parametrize("name", MACHINES)
def test_compiled_populations_have_the_worst_measures(name: str) -> None:
    """Over poses whose number is no multiple of a block, and with several threads."""
    measures, theta, position = measured(name)
    worst = Population(measures)(theta, np.zeros_like(position), position[:5])
    every = [measures.evaluate(np.tile(row, (5, 1)), position)[0].max(axis=0) for row in theta]
    assert worst.raw == pytest.approx(np.array(every), rel=1e-8, abs=1e-9)
    assert worst.is_sound.all()
    assert (worst.poses == 5).all()
    threads = Population(measures, threads=2)(theta, np.zeros_like(position), position[:5])
    assert (threads.raw == worst.raw).all()


def test_an_early_exit_leaves_candidates_and_changes_no_verdict() -> None:
    evaluator = TaskEvaluator(task_of(DELTA))
    lower, upper = evaluator.task.bounds
    x = lower + np.random.default_rng(0).random((400, 3)) * (upper - lower)
    whole, early = evaluator.scores(x), evaluator.scores(x, leaves_early=True)
    assert early.poses.mean() < 0.7 * whole.poses.mean()
    kept = early.poses == len(evaluator.poses)
    assert (whole.violations[kept] == early.violations[kept]).all()
    assert (whole.worst[~kept] > 1.0).all()
    assert (early.worst[~kept] > 1.0).all()


@pytest.mark.nightly
def test_a_hundred_thousand_deltas_at_a_thousand_poses_take_five_seconds_on_two_cores() -> None:
    """Reach, stops, condition number and joint speed of all, without an early exit."""
    task = task_of(DELTA.replace("joint_speed:", "condition_number: {most: 3}\n  joint_speed:"))
    evaluator = TaskEvaluator(replace(task, count=1100))
    lower, upper = task.bounds
    x = lower + np.random.default_rng(0).random((100_000, 3)) * (upper - lower)
    evaluator.scores(x[:10])  # compiles
    start = time.process_time()
    scores = evaluator.scores(x)
    seconds = time.process_time() - start
    assert scores.poses.sum() >= 1e8
    assert seconds < 10.0  # of two cores


def test_unreachable_poses_state_by_how_much() -> None:
    """The arm and forearm of a delta in a line are shorter than the distance by 1 %."""
    task = task_of(DELTA)
    evaluator = TaskEvaluator(task)
    arm, forearm = 0.2, 0.4
    # the elbow of leg 1 below its motor is nearest to a point straight below
    depth = math.sqrt((arm + 1.01 * forearm) ** 2 - (0.194 - 0.03) ** 2)
    raw, _ = evaluator.measures.evaluate(np.array([[arm, forearm]]), np.array([[0.0, 0.0, -depth]]))
    reach = raw[0, [q == "reach" for q in evaluator.quantities]]
    assert reach == pytest.approx(0.5 * (1.01**2 - 1.0), rel=1e-9)


def test_dominated_points_are_left_out() -> None:
    points = np.array([[1.0, 3.0], [2.0, 2.0], [2.0, 3.0], [3.0, 1.0], [2.5, 2.0]])
    assert not_dominated(points).tolist() == [True, True, False, True, False]


def test_the_orthoglide_has_the_rods_of_the_closed_form(tmp_path: Path) -> None:
    """s / (1/sqrt(6) + 1/sqrt(18)), and the closed cube is certified."""
    path = tmp_path / "task.yaml"
    path.write_text(ORTHOGLIDE % "600 mm", encoding="utf-8")
    result = tl.synthesize(path, tmp_path / "designs")
    assert result.status.value == "ok", result.advice
    (structure,) = result.structures
    (design,) = structure.designs
    rods = 0.2 / (1.0 / math.sqrt(6.0) + 1.0 / math.sqrt(18.0))
    assert design.objectives["rods"] == pytest.approx(rods, rel=1e-6)
    for axis in "xyz":
        low, high = design.machine.certified[f"platform.{axis}"]
        assert high == pytest.approx(rods / math.sqrt(6.0), rel=1e-5)
        assert low == pytest.approx(-rods / math.sqrt(18.0), rel=1e-5)
    assert any("largest velocity factor is 2" in text for text in design.active)
    smaller = next(n for n in design.neighbors if n.variable == "rod")
    assert smaller.reason.startswith("smallest velocity factor fails by")
    machine, proof = (
        tmp_path / "designs" / "design_1.yaml",
        tmp_path / "designs" / "design_1.proof.json",
    )
    assert tl.check(machine).is_usable
    assert tl.load(machine).parameters["rod"].value == pytest.approx(rods, rel=1e-6)
    extra("flint")
    assert not tl.check_certificate(machine, proof).problems


def test_a_task_that_cannot_be_met_states_the_least_violation(tmp_path: Path) -> None:
    """At corners a (1, 1, 1) the factors are 1 + 2 t and 1 - t, t = a / sqrt(L^2 - 2 a^2)."""
    path = tmp_path / "task.yaml"
    path.write_text(ORTHOGLIDE % "300 mm", encoding="utf-8")
    result = tl.synthesize(path)
    L, s = 0.3, 0.2

    def side(t: float) -> float:
        return L * t / math.sqrt(1.0 + 2.0 * t * t)

    # the lower limit fails by 2 t - 1 at one corner and by 4 u - 1 at the other
    u = brentq(lambda u: side(2.0 * u) + side(u) - s, 0.1, 0.6)
    exclusion = result.structures[0].exclusion
    assert exclusion is not None
    assert exclusion.name == "smallest velocity factor"
    assert exclusion.violation == pytest.approx(4.0 * u - 1.0, rel=1e-3)
    assert exclusion.variables["rod"] == pytest.approx(L, rel=1e-6)
    assert result.status.value == "doubtful"
    assert "no candidate meets the task: smallest velocity factor is" in result.advice[0]


def delta_is_feasible(arm: np.ndarray, forearm: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Whether candidates (N,) meet `DELTA`, by formulas of its own."""
    angles = 2.0 * np.pi * np.arange(36) / 36
    rim = np.concatenate(
        [r * np.column_stack([np.cos(angles), np.sin(angles)]) for r in (0.0, 0.5, 1.0)]
    )
    feasible = np.ones(len(arm), dtype=bool)
    for height in (-0.05, 0.0, 0.05):
        for x, y in 0.15 * rim:
            k = np.flatnonzero(feasible)
            for phi in 2.0 * np.pi * np.arange(3) / 3:
                radial = x * np.cos(phi) + y * np.sin(phi) - (0.194 - 0.03)
                across, down = -x * np.sin(phi) + y * np.cos(phi), z[k] + height
                A, B = 2.0 * arm[k] * radial, -2.0 * arm[k] * down
                C = radial**2 + across**2 + down**2 + arm[k] ** 2 - forearm[k] ** 2
                root = A**2 + B**2 - C**2
                # of the two postures the arm that points outwards: the smaller angle downwards
                theta = np.arctan2(B, A) - np.arccos(np.clip(C / np.hypot(A, B), -1.0, 1.0))
                elbow_x, elbow_z = arm[k] * np.cos(theta), -arm[k] * np.sin(theta)
                d = np.stack([radial - elbow_x, np.full(len(k), across), down - elbow_z])
                lever = d[0] * -arm[k] * np.sin(theta) + d[2] * -arm[k] * np.cos(theta)
                with np.errstate(divide="ignore"):
                    speed = forearm[k] / np.abs(lever)
                is_good = (root > 0.0) & (speed <= 8.0)
                is_good &= (theta >= np.radians(-60.0)) & (theta <= np.radians(120.0))
                feasible[k] &= is_good
    return feasible


def five_bar_is_feasible(crank: np.ndarray, link: np.ndarray, y0: np.ndarray) -> np.ndarray:
    """Whether candidates (N,) meet `FIVE_BAR`, by formulas of its own."""
    angles = 2.0 * np.pi * np.arange(72) / 72
    feasible = np.ones(len(crank), dtype=bool)
    for r in (0.0, 0.4, 0.7, 0.9, 1.0):
        for x, dy in 0.08 * r * np.column_stack([np.cos(angles), np.sin(angles)]):
            k = np.flatnonzero(feasible)
            y, rows, reached = y0[k] + dy, [], np.ones(len(k), dtype=bool)
            for sign in (-1.0, 1.0):
                px = x - sign * 0.1
                distance = np.hypot(px, y)
                cosine = (crank[k] ** 2 + distance**2 - link[k] ** 2) / (2.0 * crank[k] * distance)
                reached &= np.abs(cosine) < 1.0
                # the left elbow is on the left, the right one on the right
                theta = np.arctan2(y, px) - sign * np.arccos(np.clip(cosine, -1.0, 1.0))
                d = np.stack([px - crank[k] * np.cos(theta), y - crank[k] * np.sin(theta)])
                lever = crank[k] * (-d[0] * np.sin(theta) + d[1] * np.cos(theta))
                rows.append(d / np.where(np.abs(lever) > 1e-12, lever, 1e-12))
            J = np.array(rows).transpose(2, 0, 1)
            square = (J**2).sum(axis=(1, 2))
            determinant = np.abs(np.linalg.det(J))
            # k + 1/k is the sum of squares over the determinant
            ratio = square / np.maximum(determinant, 1e-300)
            feasible[k] &= reached & (ratio <= 2.5 + 1.0 / 2.5)
    return feasible


BRUTE = {"delta": (DELTA, delta_is_feasible), "five_bar": (FIVE_BAR, five_bar_is_feasible)}


@pytest.mark.parametrize("name", BRUTE)
def test_optima_are_those_of_brute_force(name: str) -> None:
    """Of a grid over all variables that is refined about its best point."""
    text, is_feasible = BRUTE[name]
    task = task_of(text)
    _, x, violation = optimum(task)
    assert violation <= FEASIBLE
    lower, upper = task.bounds
    low, high, best, place = lower, upper, np.inf, lower
    for _ in range(5):
        axes = [np.linspace(a, b, 21) for a, b in zip(low, high, strict=True)]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
        size = grid[:, 0] + grid[:, 1]
        grid = grid[size < best]
        good = grid[is_feasible(*grid.T)]
        if len(good):
            index = int(np.argmin(good[:, 0] + good[:, 1]))
            place = good[index]
            best = float(place[0] + place[1])
        width = 0.25 * (high - low)
        low, high = np.maximum(place - width, lower), np.minimum(place + width, upper)
    assert x[0] + x[1] == pytest.approx(best, rel=BRUTE_FORCE)


def test_designs_without_their_search_are_not_overwritten(tmp_path: Path) -> None:
    design = tmp_path / "design_1.yaml"
    design.write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match=r"contains design_1\.yaml"):
        tl.synthesize(QUICK_TASK, tmp_path)
    assert design.read_text(encoding="utf-8") == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["design_1.yaml"]


@pytest.mark.usefixtures("search_alone")
def test_a_search_resumes_without_loss(tmp_path: Path) -> None:
    whole = tl.synthesize(QUICK_TASK, tmp_path / "whole")
    generations = sorted((tmp_path / "whole" / "search").glob("*.npz"))
    assert len(generations) == 4

    def interrupted(done: int, total: int) -> None:
        if done >= 0.2 * total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tl.synthesize(QUICK_TASK, tmp_path / "parts", progress=interrupted)
    done = sorted((tmp_path / "parts" / "search").glob("*.npz"))
    assert 0 < len(done) < 4
    with pytest.raises(InputError, match="already contains a search of this task"):
        tl.synthesize(QUICK_TASK, tmp_path / "parts")
    resumed = tl.synthesize(QUICK_TASK, tmp_path / "parts", resume=True, workers=1)
    first, second = whole.structures[0], resumed.structures[0]
    assert second.resumed == len(done)
    assert (first.front == second.front).all()
    assert first.designs[0].variables == second.designs[0].variables
    done[0].write_bytes(b"broken")
    with pytest.raises(InputError, match="remove the file, so that its generation is repeated"):
        tl.synthesize(QUICK_TASK, tmp_path / "parts", resume=True)
    other = tmp_path / "other.yaml"
    other.write_text(QUICK_TASK.read_text().replace("most: 4", "most: 5"), encoding="utf-8")
    with pytest.raises(InputError, match="contains designs of another task"):
        tl.synthesize(other, tmp_path / "parts", resume=True)


def test_stiffness_counts_for_candidates_that_pass_the_rest() -> None:
    text = f"""
format: tauloop-synthesis/1
machine: {TUBES}
free: {{cart_mass: [20 kg, 30 kg], m_p: [10 kg, 12 kg]}}
box: {{ranges: {{x: [-50 mm, 50 mm]}}, poses: 8}}
requirements: {{mass: {{most: 105 kg}}, first_mode: {{least: 1 Hz}}}}
objectives: {{stiffness: {{maximize: stiffness}}, mass: {{minimize: mass}}}}
search: {{population: 8, generations: 1}}
"""
    task = task_of(text)
    evaluator = TaskEvaluator(task)
    expensive = ExpensiveScores(evaluator)
    x = np.array([[20.0, 10.0], [30.0, 12.0]])
    scores = expensive(x)
    assert expensive.evaluated == (scores.violations[:, 1] <= 0.0).sum() == 1
    model = tl.Model(task.model.mechanism.with_values({"cart_mass": 20.0, "m_p": 10.0}))
    poses = evaluator.base_positions(expensive.poses) + evaluator.shifts(x[:1])
    stiffness = tl.stiffness(model, poses).worst_translational.min()
    assert -scores.objectives[0, 0] == pytest.approx(stiffness, rel=1e-12)
    assert np.isnan(scores.objectives[1, 0])
    frequency = tl.vibration(model, poses, count=1).frequency.min()
    # Its modes of tubes are sines, those of `vibration` of finite elements.
    assert scores.values["first_mode"][0] == pytest.approx(frequency, rel=1e-6)
    assert scores.objectives[0, 1] < 105.0 < scores.objectives[1, 1]


@pytest.mark.usefixtures("search_alone")
def test_structures_are_compared_for_one_task(tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    path.write_text(
        """
format: tauloop-synthesis/1
structures:
  rotating:
    machine: delta
    free: {arm_length: [100 mm, 400 mm], forearm_length: [200 mm, 900 mm]}
    center: {z: "-700 mm:-250 mm"}
    objectives: {size: {minimize: arm_length + forearm_length}}
  sliding:
    machine: linear_delta
    free: {"tower*.arm": [200 mm, 600 mm], "tower*.radius": [120 mm, 240 mm]}
    center: {z: 100 mm}
    objectives: {size: {minimize: tower1.arm}}
box: {cylinder: {radius: 60 mm, height: 60 mm}, poses: 12}
requirements: {condition_number: {most: 3}}
objectives: {size: {minimize: mass}}
motion: {duration: 400 ms}
search: {population: 8, generations: 1, designs: 1}
""",
        encoding="utf-8",
    )
    rotating, sliding = read_task(path)
    assert rotating.objectives[0].text != sliding.objectives[0].text
    assert sliding.variables[0].parameters == ("tower1.arm", "tower2.arm", "tower3.arm")
    result = tl.synthesize(path, tmp_path / "designs")
    assert [item.name for item in result.structures] == ["rotating", "sliding"]
    assert (tmp_path / "designs" / "sliding" / "design_1.yaml").exists()
    from tauloop.display.tables.design.synthesis_tables import synthesis_tables

    comparison = next(iter(synthesis_tables(result)))
    assert comparison.title == "Structures for the task"
    assert [row[0] for row in comparison.cells] == ["rotating", "sliding"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("crank_length: [150", "crank_lenght: [150", "did you mean crank_length"),
        ("[150 mm, 350 mm]", "[350 mm, 150 mm]", "is empty"),
        ("[150 mm, 350 mm]", "[150 kg, 350 mm]", "is a mass"),
        (
            "minimize: condition_number",
            "minimize: condition_numbr",
            "did you mean condition_number",
        ),
        ("minimize: condition_number", "minimize: joint_speed", "give requirements.joint_speed"),
        ("minimize: condition_number", "minimize: crank_length + 1 kg", "add"),
        ("most: 4", "most: -4", "give a positive limit"),
        ("most: 4", "most: 4 m", "a plain number is needed"),
        ("[-40 mm, 40 mm]", "[-40 mm, 30 mm]", "is not symmetric"),
        ("x: 0 m, y", "u: 0 m, y", "no coordinate 'u'"),
        ("machine: five_bar", "machine: five_bars", "five_bar"),
        ("condition_number: {most", "condition: {most", "did you mean condition_number"),
    ],
)
def test_errors_of_a_task_have_place_and_remedy(old: str, new: str, message: str) -> None:
    text = QUICK_TASK.read_text()
    assert old in text
    with pytest.raises(DescriptionError) as error:
        loads_task(text.replace(old, new), "task.yaml", QUICK_TASK.parent)
    assert message in str(error.value)
    assert "task.yaml, line" in str(error.value)


def test_machines_that_are_not_covered_are_refused() -> None:
    task = task_of(FIVE_BAR)
    undriven = tl.Model(replace(tl.load("four_bar"), actuators=()))
    for model, message in (
        (undriven, "has unactuated degrees of freedom"),
        (tl.Model("sarrus"), "have no closed forms"),
        (tl.Model("excavator"), "rotary and linear actuators, so that singular values mix units"),
    ):
        with pytest.raises(InputError, match=message):
            PoseMeasures(model, (), MeasureRequest(compute_condition=True))
    assert replace(task, search=SearchSize(seed=1)).digest != task.digest


EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "synthesis").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_tasks_whose_candidates_are_measured(path: Path) -> None:
    for task in read_task(path):
        evaluator = TaskEvaluator(task)
        scores = evaluator.scores(task.bounds.mean(axis=0)[None])
        assert np.isfinite(scores.violations[:, list(evaluator.cheap)]).all()


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["delta", "structures"])
def test_examples_end_with_certified_machines(name: str, tmp_path: Path) -> None:
    (path,) = [path for path in EXAMPLES if path.stem == name]
    result = tl.synthesize(path, tmp_path / "designs")
    assert result.status.value == "ok", result.advice
    assert all(structure.designs for structure in result.structures)


def test_stiffness_of_a_rigid_machine_is_refused_before_the_search() -> None:
    text = DELTA.replace("minimize: arm_length + forearm_length", "maximize: stiffness")
    with pytest.raises(InputError, match="has elastic data: the machine is rigid"):
        ExpensiveScores(TaskEvaluator(task_of(text)))


@pytest.mark.usefixtures("search_alone")
def test_a_task_that_only_the_local_search_meets_has_a_design(tmp_path: Path) -> None:
    """All random candidates violate narrow bounds, between which the closed form lies."""
    s = 0.2
    rod = s / (1.0 / np.sqrt(6.0) + 1.0 / np.sqrt(18.0))
    text = (ORTHOGLIDE % f"{1e3 * rod * (1.0 + 1e-5)} mm").replace("150 mm, 31", "300 mm, 31")
    text = text.replace("population: 40, generations: 12", "population: 8, generations: 1")
    path = tmp_path / "task.yaml"
    path.write_text(text, encoding="utf-8")
    (structure,) = tl.synthesize(path).structures
    assert len(structure.front) == 0
    assert structure.exclusion is None
    assert structure.designs[0].variables["rod"] == pytest.approx(rod, rel=2e-5)
    assert structure.designs[0].violation <= FEASIBLE


TUBES_TASK = f"""
format: tauloop-synthesis/1
machine: {TUBES}
free: {{cart_mass: [20 kg, 30 kg], m_p: [10 kg, 12 kg]}}
box: {{ranges: {{x: [-50 mm, 50 mm]}}, poses: 8}}
objectives: {{frequency: {{maximize: first_mode}}}}
search: {{population: 8, generations: 1, designs: 1}}
"""


def accuracy_task() -> str:
    """Return a task whose objective has neither derivatives nor differences."""
    text = TUBES_TASK.replace("maximize: first_mode", "minimize: accuracy").replace(
        "cart_mass: [20 kg, 30 kg], m_p: [10 kg, 12 kg]", "track1.track_z: [850 mm, 950 mm]"
    )
    accuracy = 'requirements: {accuracy: {most: 10 mm, tolerances: "triple*.B_*=0.1mm"}}'
    return text.replace("objectives:", f"{accuracy}\nobjectives:")


@pytest.mark.usefixtures("search_alone")
def test_a_search_that_has_not_converged_is_doubtful(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A higher track is better, and within all requirements; no neighbor is polled."""
    path = tmp_path / "task.yaml"
    path.write_text(accuracy_task(), encoding="utf-8")
    monkeypatch.setattr(polling, "MAX_POLLS", 0)
    result = tl.synthesize(path)
    (design,) = result.structures[0].designs
    assert any(neighbor.is_better for neighbor in design.neighbors)
    assert result.status.value == "doubtful"
    assert any("has not converged" in line for line in result.advice)


@pytest.mark.nightly
def test_objectives_without_gradients_are_improved_by_polling(tmp_path: Path) -> None:
    """The error falls with a higher track, to its bound."""
    path = tmp_path / "task.yaml"
    path.write_text(accuracy_task(), encoding="utf-8")
    (structure,) = tl.synthesize(path).structures
    (design,) = structure.designs
    assert design.variables["track1.track_z"] == pytest.approx(0.95, abs=1e-9)
    assert not any(neighbor.is_better for neighbor in design.neighbors)
    assert "neighbors were polled" in structure.note


def test_polling_finds_the_optimum_of_a_constrained_quadratic() -> None:
    """The least of (x - 1)^2 + 4 (y + 0.5)^2 with x <= 0.6 is at (0.6, -0.5); others may not rise."""

    def score(x: np.ndarray) -> Scores:
        value = (x[:, 0] - 1.0) ** 2 + 4.0 * (x[:, 1] + 0.5) ** 2 + 1.0
        return Scores(
            values={},
            violations=(x[:, :1] - 0.6),
            objectives=np.column_stack([value, x[:, 1]]),
            poses=np.ones(len(x)),
        )

    bounds = np.array([[-1.0, -1.0], [1.0, 1.0]])
    start = np.array([-0.2, 0.2])
    best = polling.polled_design(score, bounds, start, [1.0, 0.0])
    assert best == pytest.approx([0.6, -0.5], abs=2.0 * polling.MIN_POLL_STEP * 2.0)
    assert best[0] <= 0.6
    start = np.array([-0.2, -0.9])
    limits = score(start[None]).objectives[0]
    kept = polling.polled_design(score, bounds, start, [1.0, 0.0], limits)
    assert kept[1] == pytest.approx(-0.9, abs=1e-4)


@pytest.mark.usefixtures("search_alone")
def test_a_local_search_improves_the_first_mode(tmp_path: Path) -> None:
    """Lighter bodies have higher frequencies: both masses end at their lower bounds."""
    path = tmp_path / "task.yaml"
    path.write_text(TUBES_TASK, encoding="utf-8")
    (structure,) = tl.synthesize(path).structures
    (design,) = structure.designs
    assert design.variables == pytest.approx({"cart_mass": 20.0, "m_p": 10.0}, rel=1e-6)
    machine = tl.loads(design.machine.text)
    assert tl.vibration(machine, count=1).frequency[0, 0] == pytest.approx(
        design.objectives["frequency"], rel=1e-6
    )
    assert structure.front[:, 0].max() == design.objectives["frequency"]
    assert not any(neighbor.is_better for neighbor in design.neighbors)


def test_slopes_of_stiffness_are_those_of_exact_derivatives() -> None:
    """d(1 / λ) = -uᵀ dC u / λ² with the softest direction u, at fixed poses."""
    names = ["tube_outer", "tube_wall", "drive_stiffness"]
    free = "free: {tube_outer: [40 mm, 60 mm], tube_wall: [2 mm, 4 mm], drive_stiffness: [10 N/um, 30 N/um]}"
    text = TUBES_TASK.replace("free: {cart_mass: [20 kg, 30 kg], m_p: [10 kg, 12 kg]}", free)
    evaluator = TaskEvaluator(task_of(text.replace("first_mode", "stiffness")))
    expensive = ExpensiveScores(evaluator)
    x = np.array([0.05, 0.003, 20e6])
    slopes = expensive.local_slopes(x)["stiffness"].reshape(len(expensive.poses), -1, 3)[:, 0]
    positions = evaluator.base_positions(expensive.poses) + evaluator.shifts(x[None])
    result = tl.stiffness(tl.Model(TUBES), positions)
    gradient = result.elastic_gradient(names).compliance[:, :3, :3]
    u, k = result.worst_translational_direction, result.worst_translational
    exact = -np.einsum("ni,nijp,nj->np", u, gradient, u) * k[:, None] ** 2
    assert slopes == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"*_length": [', '"*": [', "cannot have one value"),
        ("ranges: {x: [-40 mm, 40 mm]}", "ranges: {}", "has no extent"),
    ],
)
def test_tasks_without_a_meaning_are_refused(old: str, new: str, message: str) -> None:
    text = """
format: tauloop-synthesis/1
machine: hexapod
free: {"*_length": [100 mm, 400 mm]}
box: {ranges: {x: [-40 mm, 40 mm]}}
objectives: {mass: {minimize: mass}}
"""
    with pytest.raises(DescriptionError, match=message):
        loads_task(text.replace(old, new))
