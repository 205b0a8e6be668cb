"""Machines that others designed, from the command line, without an edit of their files.

Small files of this project have the form of public models: a gripper (tendon, joint equality,
springs), ankles (rods between balls, in MJCF and as onshape-to-robot writes a URDF), a head on six
cranks. Poses are judged by MuJoCo's own closure, forces by projection on its own Jacobians, motions
by `verify`, which compares both engines.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.closed_in_mujoco import ClosedInMujoco
from support.command_line import run, run_json, text_of

from conftest import shared_folder

CASES = Path(__file__).parents[1] / "cases"
#: Angles by two closures, rad: both leave residuals of 1e-13 m on rods of 0.1 m.
SAME_ANGLE = 1e-10
#: Forces by two routes, of the largest: those of a rod's asymmetry play no part at rest.
SAME_FORCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Other:
    """A model, and what is asked of it.

    Attributes:
        file: its file among the cases.
        options: words that every command needs: what the file leaves open.
        motors: joints of every motor with their ratios, in order.
        actuators: positions of the motors, rad; all others are as at the reference.
        platform: positions of platform coordinates, rad.
        section: words of a small map of the work space.
        connects: loops that MuJoCo's reader of the file does not see: two bodies and a point on the
            first.
    """

    file: str
    options: tuple[str, ...] = ()
    motors: dict[str, dict[str, float]]
    actuators: dict[str, float]
    platform: dict[str, float]
    section: tuple[str, ...]
    connects: tuple[tuple[str, str, tuple[float, float, float]], ...] = field(default=())

    @property
    def path(self) -> Path:
        """Where it is."""
        return CASES / self.file

    def in_mujoco(self) -> ClosedInMujoco:
        """The same file in MuJoCo."""
        return ClosedInMujoco(self.path, self.connects)

    def transmission(self, engine: ClosedInMujoco) -> np.ndarray:
        """Velocities of the motors per unit of those of MuJoCo's joints (n_u, n_v)."""
        A = np.zeros((len(self.motors), engine.model.nv))
        for row, ratios in zip(A, self.motors.values(), strict=True):
            for name, ratio in ratios.items():
                row[int(engine.model.joint(name).dofadr[0])] = ratio
        return A


def stewart(*angles: float) -> dict[str, float]:
    return {f"stewart_{i}": angle for i, angle in enumerate(angles, start=1)}


GRIPPER = Other(
    file="robotiq_gripper.xml",
    motors={"fingers": {"right_crank": 0.5, "left_crank": 0.5}},
    actuators={"fingers": 0.4, "right_fingertip_joint": -0.3, "left_fingertip_joint": -0.35},
    platform={
        "left_spring_joint": 0.35,
        "right_fingertip_joint": -0.3,
        "left_fingertip_joint": -0.32,
    },
    section=(
        *(
            "--plane",
            "left_spring_joint,left_fingertip_joint",
            "--pose",
            "right_fingertip_joint=-0.3",
        ),
        *(
            "--ranges",
            "left_spring_joint=0.1:0.4,left_fingertip_joint=-0.4:-0.1",
            "--resolution",
            "0.1",
        ),
    ),
)
G1 = Other(
    file="g1_ankle.urdf",
    options=("--motors", "motor_a,motor_b"),
    motors={"motor_a": {"motor_a": 1.0}, "motor_b": {"motor_b": 1.0}},
    actuators={"motor_a": 0.15, "motor_b": 0.05},
    platform={"pitch": 0.2, "roll": -0.15},
    section=("--ranges", "pitch=-1:0.4,roll=-0.2:0.2", "--resolution", "0.2"),
    connects=(("rod_a", "foot", (0.0, 0.0, -0.239)), ("rod_b", "foot", (0.0, 0.0, -0.145))),
)
TIENKUNG = Other(
    file="tienkung_ankle.xml",
    motors={"left": {"left_motor": 1.0}, "right": {"right_motor": 1.0}},
    actuators={"left": 0.25, "right": 0.05},
    platform={"pitch": -0.4, "roll": 0.3},
    section=("--ranges", "pitch=-0.6:0.6,roll=-0.4:0.4", "--resolution", "0.2"),
)
REACHY = Other(
    file="reachy_head.xml",
    motors={name: {name: 1.0} for name in ("yaw", *stewart(*6 * [0.0]))},
    actuators={"yaw": 0.5, **stewart(0.1, -0.15, 0.05, -0.1, 0.2, -0.05)},
    platform={"stewart_2": 0.1, "stewart_4": -0.1},
    section=(
        "--plane",
        "stewart_2,stewart_4",
        "--ranges",
        "stewart_2=-0.2:0.2,stewart_4=-0.2:0.2",
        "--resolution",
        "0.2",
    ),
)
MODELS = {model.file: model for model in (GRIPPER, G1, TIENKUNG, REACHY)}
every_model = pytest.mark.parametrize(
    "model",
    [
        pytest.param(model, id=name, marks=[pytest.mark.nightly] * (model is REACHY))
        for name, model in MODELS.items()
    ],
)


def listed(values: dict[str, float]) -> str:
    """Positions as words of a command."""
    return ",".join(f"{name}={value}" for name, value in values.items())


def hinges(answer: dict[str, Any], engine: ClosedInMujoco) -> dict[str, float]:
    """Angles of MuJoCo's hinges at the first pose of an answer; names that bodies have too end in _joint here."""
    q = dict(zip(answer["coordinates"], answer["poses"][0]["q"], strict=True))
    return {name: q[name if name in q else f"{name}_joint"] for name in engine.joint_names()}


@every_model
def test_check_finds_no_problem(model: Other) -> None:
    answer = run_json("check", model.path, *model.options)
    assert answer["status"] == "ok"
    assert answer["assembly"]["residual_m"] < 1e-12
    assert [freedom for freedom in answer["undriven"] if "spin" in freedom["kind"]] == []


@every_model
def test_forward_kinematics_close_as_mujoco_does(model: Other) -> None:
    engine = model.in_mujoco()
    answer = run_json("fk", model.path, *model.options, "--actuators", listed(model.actuators))
    assert answer["status"] == "ok", answer["advice"]
    angles = hinges(answer, engine)
    held = {joint: angles[joint] for ratios in model.motors.values() for joint in ratios}
    stated = {name.removesuffix("_joint"): angle for name, angle in model.actuators.items()}
    held |= {name: angle for name, angle in stated.items() if name in angles}
    for name, ratios in model.motors.items():
        length = sum(ratio * angles[joint] for joint, ratio in ratios.items())
        assert length == pytest.approx(model.actuators.get(name, 0.0), abs=SAME_ANGLE)
    closed = engine.close(held, angles)
    assert closed == pytest.approx(angles, abs=SAME_ANGLE)


@every_model
def test_inverse_kinematics_close_as_mujoco_does(model: Other) -> None:
    engine = model.in_mujoco()
    answer = run_json("ik", model.path, *model.options, "--pose", listed(model.platform))
    angles = hinges(answer, engine)
    for name, angle in model.platform.items():
        assert angles[name if name in angles else name.removesuffix("_joint")] == pytest.approx(
            angle, abs=SAME_ANGLE
        )
    # all hinges are held: the loops close by the balls alone, or not at all
    engine.close(angles, angles)
    for name, length in zip(
        answer["actuators"]["columns"], answer["poses"][0]["actuators"], strict=True
    ):
        assert length == pytest.approx(
            sum(ratio * angles[joint] for joint, ratio in model.motors[name].items())
        )


@every_model
def test_forces_at_rest_are_mujocos_projected(model: Other) -> None:
    engine = model.in_mujoco()
    kinematics = ("fk", "--actuators") if model is GRIPPER else ("ik", "--pose")
    position = model.actuators if model is GRIPPER else model.platform
    words = (*model.options, kinematics[1], listed(position))
    answer = run_json("dynamics", model.path, *words, code=None)
    poses = run_json(kinematics[0], model.path, *model.options, kinematics[1], listed(position))
    angles = hinges(poses, engine)
    engine.close(angles, angles)
    force, acceleration = engine.holding_forces(model.transmission(engine))
    assert answer["actuators"] == list(model.motors)
    computed = np.array(answer["force"][0])
    assert computed == pytest.approx(force, rel=SAME_FORCE, abs=SAME_FORCE * np.abs(force).max())
    for name, value in zip(
        answer["passive"], np.ravel(answer["passive_acceleration"]), strict=True
    ):
        place = int(engine.model.joint(name.removesuffix("_joint")).dofadr[0])
        assert value == pytest.approx(acceleration[place], rel=1e-8)


def test_a_gripper_whose_motor_leaves_freedoms_names_them_and_the_remedy_works() -> None:
    text = text_of("dynamics", GRIPPER.path, code=2)
    assert "no actuator moves 2 of the 3 degrees of freedom" in text
    assert "right_fingertip_joint, left_fingertip_joint" in text
    assert "--coordinates actuators" in text
    assert "Passive accelerations" in text_of(
        "dynamics", GRIPPER.path, "--coordinates", "actuators"
    )


@pytest.mark.nightly
@every_model
def test_engines_agree(model: Other) -> None:
    answer = run_json("verify", model.path, *model.options, "--states", 8)
    assert answer["status"] == "ok"
    assert {row["engine"] for row in answer["engines"]} == {"Pinocchio", "MuJoCo"}


@pytest.mark.parametrize("model", [G1, TIENKUNG], ids=["g1", "tienkung"])
def test_a_map_has_the_poses_that_close_within_the_stops(model: Other) -> None:
    """Every pose of the section, judged by MuJoCo: whether its hinges are within their ranges."""
    answer = run_json("workspace", model.path, *model.options, *model.section)
    engine, within = model.in_mujoco(), 0
    for pitch in answer["axes"]["pitch"]:
        for roll in answer["axes"]["roll"]:
            start = dict.fromkeys(engine.joint_names(), 0.0)
            engine.data.qpos[:] = engine.model.qpos0
            engine.close({"pitch": pitch, "roll": roll}, start)
            within += engine.is_within_ranges()
    assert answer["poses"]["usable"] == within
    assert 0 < within < sum(answer["poses"].values())


@pytest.mark.parametrize(
    "model",
    [GRIPPER, pytest.param(REACHY, marks=pytest.mark.nightly)],
    ids=["gripper", "reachy_head"],
)
def test_a_map_of_some_freedoms_has_usable_poses(model: Other) -> None:
    answer = run_json("workspace", model.path, *model.options, *model.section)
    assert answer["status"] == "ok"
    assert answer["poses"]["usable"] > 0


def test_motors_that_no_file_states_are_asked_for_with_candidates() -> None:
    text = text_of("check", G1.path, code=1)
    assert "`--motors motor_a,motor_b`" in text
    for words in (("dynamics",), ("simulate", "--duration", "0.01")):
        refused = text_of(words[0], G1.path, *words[1:], code=2)
        assert "does not specify which joints have motors" in refused
        assert "--motors motor_a,motor_b" in refused


def test_the_link_that_carries_is_the_platform_not_a_rod() -> None:
    for model in (G1, TIENKUNG):
        answer = run_json("check", model.path, *model.options)
        assert "the platform is foot; the file does not state it" in answer["import"]
        assert answer["assembly"]["independent"] == ["pitch", "roll"]


def test_rods_of_a_written_urdf_have_no_spin_without_the_side_file(tmp_path: Path) -> None:
    written = tmp_path / "ankle.urdf"
    run("convert", TIENKUNG.path, written)
    (tmp_path / "ankle.urdf.side.yaml").unlink()
    answer = run_json("check", written, "--motors", "left_motor,right_motor")
    assert (answer["assembly"]["mobility"], answer["undriven"]) == (2, [])


#: Models of other people: (file, side file beside it, motors).
SHARED_MODELS = {
    "example_parallel_robots/5bar_linkage_iso3d/robot.urdf": "robot.yaml",
    "example_parallel_robots/5bar_linkage_iso6d/robot.urdf": "robot.yaml",
    "example_parallel_robots/digit_like/robot.urdf": "robot.yaml",
    "example_parallel_robots/robot_delta/robot.urdf": "robot.yaml",
    "grbda/four_bar.urdf": "",
    "grbda/planar_leg_linkage.urdf": "",
    "grbda/revolute_rotor_chain.urdf": "",
    "grbda/six_bar.urdf": "",
}
#: Those of the day; maps of others take up to a minute.
BY_DAY = ("grbda/four_bar.urdf", "grbda/revolute_rotor_chain.urdf")


@pytest.mark.parametrize(
    "name",
    [
        name if name in BY_DAY else pytest.param(name, marks=pytest.mark.nightly)
        for name in SHARED_MODELS
    ],
)
def test_models_of_others_answer_every_command(name: str) -> None:
    path = shared_folder() / "models" / name
    if not path.is_file():
        pytest.skip("the models of others are not here (../shared/models)")
    side = ("--side", path.parent / SHARED_MODELS[name]) if SHARED_MODELS[name] else ()

    def answer(command: str, *words: object, code: int | None = 0) -> Any:
        """Its JSON; that a singular reference pose has moved is noted beside it."""
        return json.loads(run(command, path, *side, *words, "--json", code=code).stdout)

    assert answer("check")["status"] == "ok"
    poses = answer("ik")
    actuators = dict(
        zip(poses["actuators"]["columns"], poses["poses"][0]["actuators"], strict=True)
    )
    back = answer("fk", "--actuators", listed(actuators))
    assert back["poses"][0]["q"] == pytest.approx(poses["poses"][0]["q"], abs=1e-9)
    assert answer("dynamics")["status"] == "ok"
    assert answer("verify", "--states", 5)["status"] == "ok"
    assert sum(answer("workspace", "--resolution", 0.5, code=None)["poses"].values()) > 0
