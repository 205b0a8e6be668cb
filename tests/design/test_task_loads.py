"""Load cases, motions and motors of tasks: by plain calls for models of each candidate, and by statics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop.common.errors import DescriptionError, InputError
from tauloop.design.synthesis.actuator_scores import ActuatorScores
from tauloop.design.synthesis.elastic import ExpensiveScores, largest_joint_force
from tauloop.design.synthesis.evaluation import TaskEvaluator
from tauloop.design.synthesis.task import DesignTask
from tauloop.design.synthesis.task_reading import loads_task

extra("pymoo")

ROOT = Path(__file__).parents[2]
TUBES = ROOT / "examples" / "elastic" / "gantry_tau.yaml"
CYCLE = ROOT / "examples" / "cycles" / "adept.yaml"
MOTORS = ROOT / "examples" / "motors.yaml"
#: Candidates of the task below: arm, forearm and center, m.
CANDIDATES = np.array([[0.24, 0.46, -0.5], [0.28, 0.52, -0.53]])
DELTA = """
format: tauloop-synthesis/1
machine: delta
free: {{arm_length: [100 mm, 400 mm], forearm_length: [200 mm, 900 mm]}}
box: {{cylinder: {{radius: 100 mm, height: 60 mm}}, center: {{z: "-700 mm:-250 mm"}}, poses: 60}}
requirements: {requirements}
objectives: {{size: {{minimize: arm_length + forearm_length}}}}
loads: {loads}
motion: {motion}
search: {{population: 8, generations: 2, designs: 1}}
"""


@pytest.fixture
def without_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Designs are not certified, which takes longer than a small search."""
    monkeypatch.setattr("tauloop.design.synthesis.designs.CERTIFICATE_TIME", 1e-3)


def delta_task(requirements: str, loads: str = "{}", motion: str = "{}") -> DesignTask:
    text = DELTA.format(requirements=requirements, loads=loads, motion=motion)
    (task,) = loads_task(text)
    return task


def model_of(task: DesignTask, x: np.ndarray) -> tl.Model:
    return tl.Model(task.model.mechanism.with_values(task.values(x)))


def test_load_cases_at_rest_have_forces_of_statics() -> None:
    """Virtual work: the forces of a wrench w are -inv(J)^T w, in addition to those of the weight."""
    task = delta_task(
        "{motor_force: {most: 20 N m}}",
        "{push: {force: [30 N, -10 N, 5 N]}, pull: {force: [0 N, 0 N, 80 N], at: {x: 20 mm}}}",
    )
    evaluator = TaskEvaluator(task)
    peaks = ActuatorScores(evaluator).values(CANDIDATES)["motor_force"]
    for x, peak in zip(CANDIDATES, peaks, strict=True):
        model, forces = model_of(task, x), []
        center = np.array([0.0, 0.0, x[2]])
        box = evaluator.poses * task.half + center
        for places, w in (
            (box, np.zeros(3)),
            (box, np.array([30.0, -10.0, 5.0])),
            (center[None] + [0.02, 0.0, 0.0], np.array([0.0, 0.0, 80.0])),
        ):
            weight = tl.inverse_dynamics(model, places, 0 * places, 0 * places).forces.force
            J = model.platform.actuator_jacobian(places)
            forces.append(np.abs(weight - np.linalg.solve(J.swapaxes(1, 2), w)).max())
        assert peak == pytest.approx(max(forces), rel=1e-9)


def test_a_stroke_has_the_forces_of_plain_inverse_dynamics(tmp_path: Path) -> None:
    """Peak, root mean square, speed, and the use of the catalogue's best motors."""
    task = delta_task(
        "{motor_rms: {most: 20 N m}, motor_speed: {most: 20 rad/s}, motor_force: {most: 99 N m}, "
        f"motors: {{catalogue: {MOTORS}}}}}",
        motion="{duration: 250 ms, payload: 0.4 kg}",
    )
    scores = ActuatorScores(TaskEvaluator(task))
    assert scores.motion is not None
    values = scores.values(CANDIDATES)
    for k, x in enumerate(CANDIDATES):
        model, path = model_of(task, x), tmp_path / f"{k}.csv"
        ends = [{"x": side * 0.09, "y": 0.0, "z": float(x[2])} for side in (-1.0, 1.0)]
        stroke = tl.plan_stroke(model, start=ends[0], end=ends[1], duration=0.25)
        tl.logs.write_log(path, stroke.log())
        moved = tl.inverse_dynamics(model, motion=path, payload="0.4 kg")
        force = moved.forces.force
        mean_square = np.trapezoid(force**2, moved.time, axis=0) / 0.25
        assert values["motor_rms"][k] == pytest.approx(np.sqrt(mean_square.max()), rel=1e-3)
        assert values["motor_force"][k] == pytest.approx(np.abs(force).max(), rel=1e-3)
        J = model.platform.actuator_jacobian(scores.motion.about(x * [0.0, 0.0, 1.0]).position)
        speed = np.einsum("nij,nj->ni", J, scores.motion.velocity)
        assert values["motor_speed"][k] == pytest.approx(np.abs(speed).max(), rel=1e-9)
        sizing = tl.size_motors(model, moved, catalogue=MOTORS)
        use = max(min(c.use for c in sizing.candidates[load.name]) for load in sizing.loads)
        assert values["motor_use"][k] == pytest.approx(use, rel=1e-3)


def test_a_candidate_out_of_reach_is_not_known_and_others_are() -> None:
    task = delta_task("{motor_rms: {most: 20 N m}}", motion="{duration: 250 ms}")
    scores = ActuatorScores(TaskEvaluator(task))
    x = np.concatenate([CANDIDATES[:1], [[0.1, 0.2, -0.7]], CANDIDATES[1:]])
    values = scores.values(x)["motor_rms"]
    assert np.isnan(values[1])
    assert (values[[0, 2]] == scores.values(CANDIDATES)["motor_rms"]).all()


def test_deflections_are_those_of_stiffness_and_joint_forces_those_of_rods() -> None:
    text = f"""
format: tauloop-synthesis/1
machine: {TUBES}
free: {{cart_mass: [20 kg, 30 kg], m_p: [10 kg, 12 kg]}}
box: {{ranges: {{x: [-50 mm, 50 mm]}}, poses: 8}}
loads: {{cut: {{force: [50 N, 120 N, -40 N], moment: [5 N m, 0 N m, 2 N m]}}}}
requirements: {{deflection: {{most: 1 mm}}, joint_force: {{most: 10 kN}}}}
objectives: {{mass: {{minimize: mass}}}}
"""
    (task,) = loads_task(text)
    evaluator = TaskEvaluator(task)
    expensive = ExpensiveScores(evaluator)
    x = np.array([25.0, 11.0])
    values = expensive.quantities(x)
    model = model_of(task, x)
    poses = evaluator.base_positions(expensive.poses) + evaluator.shifts(x[None])
    wrench = [50.0, 120.0, -40.0, 5.0, 0.0, 2.0]
    under_load = tl.stiffness(model, poses, wrench=wrench, weightless=True)
    deflection = np.linalg.norm(under_load.deflection[:, :3], axis=1).max()
    assert values["deflection"] == pytest.approx(deflection, rel=1e-9)
    scores = expensive(x[None])
    limits = {r.quantity: v for r, v in zip(task.requirements, scores.violations[0], strict=True)}
    assert limits["deflection"] == pytest.approx((deflection - 1e-3) / 1e-3, rel=1e-9)


def test_a_large_load_is_carried_by_rods_as_statics_has_it() -> None:
    """Three rods meet at the plate: their tensions t solve U t = -w, and are the largest forces."""
    model = tl.Model("gantry_tau_3dof")
    w = np.array([2e6, -5e5, 1e6])
    position = np.array([[0.05, -0.02, 0.03]])
    state = model.platform.kinematics(position[0])
    mechanism = model.mechanism
    directions = []
    for k, track in enumerate(("track1", "track2", "track3"), 1):
        y, z = (mechanism.parameters[f"track{k}.offset_{axis}"].value for axis in "yz")
        slide = state.q[model.topology.coordinate_names.index(f"{track}.slide")]
        d = np.array([slide, y, z]) - position[0]
        directions.append(d / np.linalg.norm(d))
    tensions = np.linalg.solve(np.array(directions).T, -w)
    largest = largest_joint_force(model, np.array([*w, 0.0, 0.0, 0.0]), position)
    assert largest == pytest.approx(np.abs(tensions).max(), rel=1e-3)


@pytest.mark.usefixtures("without_certificates")
def test_a_limit_of_motor_torques_changes_the_design(tmp_path: Path) -> None:
    """A limit below the torque of the most even delta is kept by a less even one."""
    path = tmp_path / "task.yaml"
    loads = "{push: {force: [40 N, 0 N, 0 N]}, lift: {force: [0 N, 0 N, -60 N]}}"

    def designed(limit: float) -> tuple[float, float]:
        """Condition number and largest torque of the design, which the search does not state."""
        requirements = f"{{motor_force: {{most: {limit} N m}}}}"
        text = DELTA.format(requirements=requirements, loads=loads, motion="{duration: 300 ms}")
        text = text.replace("arm_length + forearm_length", "condition_number")
        path.write_text(text, encoding="utf-8")
        (structure,) = tl.synthesize(path).structures
        assert "motor force: derivatives are differences" in structure.note
        (task,) = loads_task(text)
        x = np.array([list(structure.designs[0].variables.values())])
        peak = ActuatorScores(TaskEvaluator(task)).values(x)["motor_force"][0]
        return structure.designs[0].objectives["size"], float(peak)

    evenness, torque = designed(1000.0)
    limited_evenness, limited_torque = designed(0.8 * torque)
    assert limited_torque <= 0.8 * torque * (1.0 + 1e-6)
    assert limited_evenness > evenness


@pytest.mark.nightly
def test_a_cycle_moves_with_the_box_and_sizes_the_design(tmp_path: Path) -> None:
    """The motors of the chosen machine have the forces by which the search has chosen it."""
    path = tmp_path / "task.yaml"
    text = DELTA.format(
        requirements="{condition_number: {most: 4}, motor_rms: {most: 40 N m}, motor_force: {most: 41 N m}}",
        loads="{}",
        motion=f"{{cycle: {CYCLE}}}",
    ).replace("radius: 100 mm", "radius: 155 mm")
    path.write_text(text, encoding="utf-8")
    (structure,) = tl.synthesize(path).structures
    (design,) = structure.designs
    assert not design.machine.problems
    (task,) = loads_task(text)
    values = ActuatorScores(TaskEvaluator(task)).values(np.array([list(design.variables.values())]))
    rms = max(motor.rms_force for motor in design.machine.motors)
    assert values["motor_rms"][0] == pytest.approx(rms, rel=1e-9)
    assert rms <= 40.0
    cycle = tl.plan_cycle("delta", CYCLE)
    assert design.machine.duration == pytest.approx(cycle.time, rel=1e-6)


def test_a_cycle_counts_as_the_trajectory_that_is_planned_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stroke stands for the plan of the cycle, which takes seconds."""
    stroke = tl.plan_stroke("delta", start={"x": -0.05}, end={"x": 0.05}, duration=0.3)
    monkeypatch.setattr(
        "tauloop.design.synthesis.actuator_scores.plan_cycle", lambda model, path: stroke
    )
    path = tmp_path / "motion.csv"
    tl.logs.write_log(path, stroke.log())
    values = [
        ActuatorScores(
            TaskEvaluator(delta_task("{motor_rms: {most: 20 N m}}", motion=f"{{{motion}}}"))
        ).values(CANDIDATES)["motor_rms"]
        for motion in (f"cycle: {CYCLE}", f"trajectory: {path}")
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-12)
    assert (values[0] > 0.0).all()


def test_a_trajectory_is_read_with_its_time_law(tmp_path: Path) -> None:
    path = tmp_path / "motion.csv"
    stroke = tl.plan_stroke("delta", start={"x": -0.05}, end={"x": 0.05}, duration=0.3)
    tl.logs.write_log(path, stroke.log())
    task = delta_task("{motor_rms: {most: 20 N m}}", motion=f"{{trajectory: {path}}}")
    scores = ActuatorScores(TaskEvaluator(task))
    assert scores.motion is not None
    nominal = tl.load("delta").parameters
    reference = tl.Model("delta").platform_position(tl.Model("delta").assembly.q)[2]
    x = np.array([[nominal["arm_length"].value, nominal["forearm_length"].value, reference]])
    force = tl.inverse_dynamics("delta", motion=path).forces.force
    time = scores.motion.time
    rms = np.sqrt((np.trapezoid(force**2, time, axis=0) / np.ptp(time)).max())
    assert scores.values(x)["motor_rms"][0] == pytest.approx(rms, rel=1e-9)


@pytest.mark.parametrize(
    ("requirements", "message"),
    [
        ("{deflection: {most: 1 mm}}", "there are no load cases"),
        ("{motor_force: {most: 1 N}}", "is a force"),
    ],
)
def test_requirements_of_loads_without_a_meaning_are_refused(
    requirements: str, message: str
) -> None:
    with pytest.raises(DescriptionError, match=message):
        delta_task(requirements)


def test_quantities_of_a_motion_need_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="motor rms needs a motion with a time law"):
        ActuatorScores(TaskEvaluator(delta_task("{motor_rms: {most: 1 N m}}")))
    far = tmp_path / "far.yaml"
    far.write_text(CYCLE.read_text().replace("152.5 mm", "5 m"), encoding="utf-8")
    task = delta_task("{motor_rms: {most: 1 N m}}", motion=f"{{cycle: {far}}}")
    with pytest.raises(InputError, match=r"give motion\.trajectory"):
        ActuatorScores(TaskEvaluator(task))


def test_loads_and_motions_are_part_of_the_task(tmp_path: Path) -> None:
    tasks = [
        delta_task("{motor_force: {most: 1 kN m}}"),
        delta_task("{motor_force: {most: 1 kN m}}", "{push: {force: [1 N, 0 N, 0 N]}}"),
        delta_task("{motor_force: {most: 1 kN m}}", "{push: {force: [2 N, 0 N, 0 N]}}"),
        delta_task("{}", motion="{duration: 300 ms}"),
    ]
    digests = {task.digest for task in tasks}
    table = tmp_path / "motion.csv"
    for text in ("time [s]\n0\n", "time [s]\n1\n"):
        table.write_text(text, encoding="utf-8")
        tasks.append(delta_task("{}", motion=f"{{trajectory: {table}}}"))
        digests.add(tasks[-1].digest)
    assert len(digests) == 6
