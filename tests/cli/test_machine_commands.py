"""Commands on a machine, from check to convert: what they print, write and refuse."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from command_line import problems, run, run_json, text_of
from extras import extra
from slider_cranks import BALL, SIDE, slider_crank
from terminals import in_terminal, shown
from typer.testing import CliRunner

import tauloop as tl
from tauloop.cli.app import app, command_words
from tauloop.common.result import plain
from tauloop.equations.ports import ACTUATORS
from tauloop.formats.options import ImportOptions
from tauloop.logs import read_log

CASES = Path(__file__).parents[1] / "cases"


@pytest.mark.parametrize(
    "command",
    [
        ["dynamics", "--json"],
        ["simulate", "--duration", "0.01"],
        ["modes", "--working"],
        ["plan", "stroke", "--end", "s1=1.9", "--duration", "1"],
        ["verify", "--states", "2"],
        ["export", "c", "--out", "folder"],
    ],
    ids=" ".join,
)
def test_commands_say_that_they_use_another_pose(tmp_path, monkeypatch, command):
    """The forces are those at that pose, and finite: at the file's own the motors would need to push without end."""
    if command[0] == "verify":
        extra("pinocchio")
    monkeypatch.chdir(tmp_path)
    first = len(command_words(command).split())
    machine = str(CASES / "five_bar_singular.yaml")
    answer = CliRunner().invoke(app, [*command[:first], machine, *command[first:]])
    assert answer.exit_code == 0, answer.output
    assert answer.stderr.startswith("note: reference pose: is singular (parallel")
    if "--json" in command:
        forces = json.loads(answer.stdout)
        reference = tl.check(tl.load(machine)).as_dict()["assembly"]["reference"]
        assert dict(zip(forces["coordinates"], forces["q"][0], strict=True)) == pytest.approx(
            reference
        )
        assert np.abs(forces["force"]).max() < 100


def test_commands_are_silent_where_the_pose_is_that_of_the_file():
    answer = CliRunner().invoke(app, ["dynamics", "five_bar"])
    assert (answer.exit_code, answer.stderr) == (0, "")


def test_check_prints_conditions_and_ends_with_its_verdict() -> None:
    text = text_of("check", CASES / "no_motor.yaml", code=1)
    assert "at the reference pose; 1.77 median, 2.08 worst of 37" in text
    assert text.endswith("not usable as described")


def test_show_prints_blocks_only_when_asked() -> None:
    text = text_of("show", "delta", "--blocks")
    for word in ("Linear blocks", "actuator forces", "L D L^T", "division", "accelerations"):
        assert word in text
    assert "linear_blocks" not in run_json("show", "delta")


def test_an_unknown_entry_is_refused() -> None:
    result = CliRunner().invoke(app, ["model", "cost", "delta", "--coordinates", "tool"])
    assert result.exit_code == 2
    assert "'tool' is not one of 'platform', 'actuators'" in result.stderr


def test_modes_prints_a_table_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "modes.png"
    text = text_of("modes", "five_bar", "--actuators", "motor_1=2.2", "--out", picture)
    assert "Assembly modes of five_bar: 2" in text
    assert "4 complex solutions" in text
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["modes.png"]


def test_modes_gives_json_and_exit_codes(tmp_path: Path) -> None:
    data = run_json("modes", "delta", "--working")
    assert len(data["modes"]) == 8
    assert data["status"] == "ok"
    doubtful = run_json("modes", "five_bar", "--actuators", f"motor_1={np.pi!r},motor_2=0", code=1)
    assert doubtful["status"] == "doubtful"
    picture = tmp_path / "modes.png"
    run("modes", "gantry_tau_3dof", "--actuators", "track1.motor=5", "--out", picture, code=2)
    assert not picture.exists()


def test_wrong_positions_are_refused_with_the_name_of_the_option() -> None:
    answer = run_json("ik", "delta", "--pose", "x=1kg,q=1", code=2)
    assert [problem["where"] for problem in answer["problems"]] == ["--pose x", "--pose"]
    both = run_json("jacobian", "delta", "--pose", "x=0", "--actuators", "leg1.motor=0", code=2)
    assert both["problems"][0]["where"] == "--actuators"
    assert run_json("jacobian", "delta", "--of", "legs", code=2)["problems"][0]["where"] == "--of"


def test_motion_prints_the_limit_that_sets_its_time_and_writes_what_dynamics_reads(
    tmp_path: Path,
) -> None:
    table = tmp_path / "stroke.csv"
    ends = ("--start", "y=-0.144,z=-0.648", "--via", "y=0,z=-0.36", "--end", "y=0.144,z=-0.648")
    text = text_of(
        "plan", "stroke", "nuwar", "--shape", "ellipse", *ends, "--rate", 200, "--out", table
    )
    assert "41.76" in text
    assert "100.0% of the limit of leg3.motor" in text
    assert "acceleration.platform.z [m/s^2]" in table.read_text(encoding="utf-8").splitlines()[0]
    assert len(run_json("dynamics", "nuwar", "--motion", table)["force"]) > 30


def test_motion_refuses_by_the_names_of_its_options() -> None:
    clothoid = (
        "--shape",
        "clothoid",
        "--start",
        "x=0",
        "--end",
        "y=0.1",
        "--duration",
        1,
        "--max-velocity",
        1,
    )
    wrong = {problem["where"] for problem in problems("plan", "stroke", "nuwar", *clothoid)}
    assert wrong == {"--max-velocity", "--start-heading", "--end-heading"}
    assert (
        "is not three numbers"
        in problems("plan", "stroke", "hexapod", "--rotation", "0,1")[0]["what"]
    )
    assert [problem["where"] for problem in problems("plan", "stroke", "nuwar")] == ["--end"]


def test_workspace_writes_map_and_figure(tmp_path: Path) -> None:
    picture, data = tmp_path / "map.png", tmp_path / "map.nc"
    arguments = ["workspace", "delta", "--plane", "x,z", "--resolution", "0.05"]
    result = CliRunner().invoke(
        app, [*arguments, "--out", str(picture), "--out", str(data), "--json"]
    )
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["poses"]["usable"] > 0
    assert document["connected_usable_unit"] == "m^2"
    assert picture.stat().st_size > 1000
    assert data.stat().st_size > 1000
    wrong = CliRunner().invoke(app, ["workspace", "delta", "--ranges", "x=3:2"])
    assert wrong.exit_code == 2


def test_export_writes_what_the_function_does(tmp_path: Path) -> None:
    words = ("--functions", "kinematics, regressor", "--coordinates", "actuators", "--name", "d")
    assert "d_regressor" in run("export", "c", "five_bar", *words, "--out", tmp_path).stdout
    options = tl.ExportOptions(
        functions=("kinematics", "regressor"), coordinates=ACTUATORS, name="d"
    )
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict(
        tl.export_c(tl.load("five_bar"), options).files
    )


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("c delta --functions fly", "fly"),
        ("c delta --functions ,", "none is named"),
        ("c delta --name int", "C identifier"),
        ("c no_such_machine", "no_such_machine"),
    ],
)
def test_export_refuses_bad_requests_and_writes_nothing(
    words: str, what: str, tmp_path: Path
) -> None:
    problem = problems("export", *words.split(), "--out", tmp_path / "out")[0]
    assert what in f"{problem['where']}: {problem['what']}"
    assert not (tmp_path / "out").exists()


def test_export_to_a_format_that_is_none_says_which_there_are(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["export", "rust", "delta", "--out", str(tmp_path / "out")])
    assert ran.exit_code == 2
    assert (
        "'rust': choose among c, controller, fmu, compensation, linuxcnc, ros2, transmission"
        in " ".join(ran.output.split())
    )
    assert not (tmp_path / "out").exists()


def test_equations_refuses_names_that_are_none() -> None:
    assert (
        "is not a valid name"
        in problems("model", "equations", "five_bar", "--names", "platform.x=1x")[0]["what"]
    )


def test_files_of_equations_hold_what_the_result_holds(tmp_path: Path) -> None:
    paths = [tmp_path / f"equations.{ending}" for ending in ("txt", "tex", "py")]
    words = ["model", "equations", "pendulum_arm", "--names", "waist=X"]
    for flag, path in zip(("--out", "--out", "--out"), paths, strict=True):
        words += [flag, str(path)]
    assert CliRunner().invoke(app, words).exit_code == 0
    written = tl.write_equations(tl.load("pendulum_arm"), tl.EquationOptions(names={"waist": "X"}))
    assert [path.read_text(encoding="utf-8") for path in paths] == [
        written.text,
        written.latex,
        written.python,
    ]
    assert "sign(d_X * [1e-12 < abs(d_X)])" in written.text


@pytest.mark.parametrize(
    "name", ["slider_crank_tdc.yaml", "five_bar_singular.yaml", "plantar_hybrid.xml"]
)
@pytest.mark.parametrize("command", ["check", "dynamics", "verify", "simulate", "modes"])
def test_commands_on_machines_that_start_singular_end_without_warning_or_traceback(
    name: str, command: str
) -> None:
    """NumPy's warnings are errors here."""
    if command == "verify":
        extra("pinocchio")
        extra("mujoco")
    options = {
        "simulate": ["--duration", "0.02"],
        "verify": ["--states", "20"],
        "dynamics": ["--coordinates", "actuators"],
    }
    result = CliRunner().invoke(app, [command, str(CASES / name), *options.get(command, [])])
    assert result.exit_code in (0, 1), result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert "Traceback" not in result.output


def test_the_case_of_struts_that_are_called_cables_does_not_pass_without_a_word() -> None:
    case = str(CASES / "cables8.yaml")
    checked = CliRunner().invoke(app, ["check", case])
    assert checked.exit_code == 0
    assert "named as cables, but they push as well as pull" in " ".join(checked.output.split())
    moved = CliRunner().invoke(app, ["dynamics", case])
    assert moved.exit_code == 0
    assert "rods named as cables carry compression: cable1.line (up to 11.26 N)" in " ".join(
        moved.output.split()
    )


def test_the_case_with_bounds_pulls_or_says_what_is_missing(tmp_path: Path) -> None:
    text = (CASES / "cables8.yaml").read_text(encoding="utf-8")
    file = tmp_path / "cables8.yaml"
    bounds = "model: massless, tension: {least: 5 N, greatest: 500 N}}"
    file.write_text(text.replace("model: massless}", bounds), encoding="utf-8")
    checked = CliRunner().invoke(app, ["check", str(file)])
    assert "N at the reference pose, at rest" in " ".join(checked.output.split())
    assert "cannot hold this pose" not in checked.output
    moved = CliRunner().invoke(app, ["dynamics", str(file), "--preload", "100"])
    assert moved.exit_code == 0
    assert "cable8.line  111.256  N" in moved.output
    assert "called cables" not in moved.output
    too_fast = CliRunner().invoke(
        app, ["dynamics", str(file), "--acceleration", "platform.z=-1500"]
    )
    assert too_fast.exit_code == 2
    assert "missing forces: platform.z" in too_fast.output


def test_reduction_is_printed_in_words() -> None:
    result = CliRunner().invoke(
        app, ["model", "reduce", "delta", "--states", "10"], env={"COLUMNS": "140"}
    )
    assert result.exit_code == 0
    for text in ("gather joints", "preserved exactly", "leg1.motor", "N m", "exact"):
        assert text in result.output


def test_reduction_without_such_a_rod_is_refused() -> None:
    answer = run_json("model", "reduce", "delta", "--lumped-rods", "leg9.forearm", code=2)
    assert "leg9.forearm" in str(answer["problems"])


def test_unknown_formulation_is_refused() -> None:
    answer = run_json("dynamics", "delta", "--formulation", "hamiltn", code=2)
    assert "did you mean hamilton" in answer["problems"][0]["remedy"]


def test_modes_says_how_far_its_search_is_and_where_modes_meet() -> None:
    with in_terminal("modes", "five_bar") as (_, terminal):
        seen = shown(terminal).decode()
    assert "complex solutions" in seen
    assert "block 1 of" in seen
    with in_terminal("modes", "five_bar", "--json") as (_, terminal):
        assert json.loads(shown(terminal))["position"]
    text = text_of("modes", "five_bar", "--actuators", f"motor_1={np.pi!r},motor_2=0", code=None)
    assert "without passing" in text.split("No mode is reached from")[1]
    assert "~ singular or nearly singular: modes meet at this pose" in text


ARM = """
<robot name="arm"><link name="root"/>
  <link name="a"><inertial><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="the-hand"><inertial><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="one" type="continuous"><parent link="root"/><child link="a"/><axis xyz="0 1 0"/></joint>
  <joint name="two" type="continuous"><parent link="a"/><child link="the-hand"/><origin xyz="0.3 0 0"/></joint>
</robot>
"""
SLIDE = """
<mujoco model="slide">
  <worldbody><body name="cart"><joint name="rail" type="slide" axis="1 0 0"/>
    <inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/></body></worldbody>
  <actuator><motor joint="rail"/></actuator>
  <keyframe><key name="home" qpos="0.3"/></keyframe>
</mujoco>
"""


def test_what_a_file_of_another_tool_does_not_say_is_said_beside_it(tmp_path: Path) -> None:
    urdf, mjcf = tmp_path / "arm.urdf", tmp_path / "slide.xml"
    urdf.write_text(ARM, encoding="utf-8")
    mjcf.write_text(SLIDE, encoding="utf-8")
    shown = run_json(
        "show", urdf, "--gravity", "0,-9.81 m/s^2,0", "--platform-body", "a", "--origins", "--table"
    )
    options = ImportOptions(gravity=(0.0, -9.81, 0.0), platform_body="a", origins=True)
    described = tl.describe(tl.load(urdf, options=options), tl.DescribeOptions(table=True))
    assert shown == json.loads(json.dumps(plain(described.as_dict())))
    for wrong in ("0,-9.81", "down", "0,0,nan"):
        assert problems("show", urdf, "--gravity", wrong)[0]["where"] == "--gravity"
    assert problems("check", "delta", "--gravity", "0,0,0")[0]["where"] == "--gravity"
    assert run_json("show", mjcf, "--keyframe", "home")["assembly"]["reference"] == {"rail": 0.3}


def test_check_prints_what_was_done_on_the_way(tmp_path: Path) -> None:
    (tmp_path / "machine.urdf").write_text(
        slider_crank(hinges=BALL).replace('"block"', '"the-block"')
    )
    (tmp_path / "robot.yaml").write_text(SIDE)
    text = text_of("check", tmp_path / "machine.urdf", "--side", tmp_path / "robot.yaml", "--rods")
    assert "- link 'the-block' is renamed to 'the_block'" in text
    assert "rod is a slender rod; its spin is locked" in text


def test_convert_refuses_an_unknown_format(tmp_path: Path) -> None:
    (problem,) = problems("convert", "rcid", "--format", "vrml", tmp_path / "m.wrl")
    assert "'vrml' is unknown" in problem["what"]


def test_view_draws_or_refuses(tmp_path: Path) -> None:
    picture = tmp_path / "delta.png"
    assert (
        "out of reach by"
        in problems("view", "delta", "--pose", "z=-0.9", "--out", picture)[0]["what"]
    )
    assert not picture.exists()
    assert (
        "cannot be combined with pose"
        in problems("view", "delta", "--pose", "z=-0.4", "--motion", "a.csv")[0]["what"]
    )
    text_of("view", "delta", "--pose", "x=0.1", "--out", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_pictures_and_films_reject_layers_that_only_the_browser_shows(tmp_path: Path) -> None:
    """They were left out silently."""
    layers = ("--forces", "--workspace", "x,z", "--next-to", "five_bar")
    rejected = problems("view", "delta", *layers, "--out", tmp_path / "delta.png")
    assert [problem["where"] for problem in rejected] == ["--forces", "--workspace", "--next-to"]
    assert "tauloop dynamics" in rejected[0]["remedy"]
    (film,) = problems("view", "delta", "--modes", "actuators", "--out", tmp_path / "delta.gif")
    assert "tauloop modes" in film["remedy"]


def test_view_serves_until_it_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address is whole in a narrow terminal, and viser's own banners are kept quiet."""
    extra("viser")
    from tauloop.viewer import Viewer

    served: list[tuple[int, str]] = []

    def interrupted(viewer: Viewer, elapsed: float) -> None:
        with urllib.request.urlopen(viewer.url, timeout=10) as answer:
            served.append((answer.status, viewer.url))
        raise KeyboardInterrupt

    monkeypatch.setattr(Viewer, "advance", interrupted)
    output = run("view", "five_bar", "--port", 0, columns=40).output
    ((status, url),) = served
    assert status == 200
    assert url.startswith("http://127.0.0.1:")
    assert output.splitlines() == [f"five_bar: {url} (Ctrl-C ends)"]


@pytest.mark.parametrize("words", [["five_bar"], ["FILE", "--out", "a.png"]])
def test_view_watches_files_alone_and_in_the_browser_alone(words: list[str]) -> None:
    file = CASES / "one_joint.yaml"
    (problem,) = problems("view", "--watch", *(file if word == "FILE" else word for word in words))
    assert "watch" in f"{problem['where']} {problem['what']}"


def test_what_is_doubtful_has_no_ok_and_is_named_by_a_quiet_command_too(tmp_path: Path) -> None:
    """Arms of 50 mm make a machine that works, but not in a volume of 200 mm."""
    path = tmp_path / "short.yaml"
    words = (
        "new",
        "short",
        "--template",
        "delta",
        "--set",
        "arm_length=50mm",
        "--set",
        "stroke_width=200mm",
        "--out",
        path,
        "--replace",
    )
    lines = run(*words, code=1).stdout.splitlines()
    assert "ok" not in [line.strip() for line in lines]
    quiet = run(*words, "--quiet", code=1)
    assert not quiet.stdout
    assert quiet.stderr.startswith("reachable fraction of the work volume: ")
    text = path.read_text(encoding="utf-8")
    (tmp_path / "idle.yaml").write_text(
        text.split("    actuators:")[0] + "platform:" + text.split("platform:")[1]
    )
    assert run("check", tmp_path / "idle.yaml", "--quiet", code=1).stderr.startswith(
        "actuators: nothing is driven"
    )
    lines = run("check", tmp_path / "idle.yaml", code=1).stdout.splitlines()
    assert "ok" not in [line.strip() for line in lines]


@pytest.mark.parametrize(
    "words",
    ["show five_bar", "check five_bar", "dynamics five_bar", "plan stroke five_bar --end x=0.02"],
)
def test_a_figure_of_a_machine_its_forces_and_its_motion_is_written(
    words: str, tmp_path: Path
) -> None:
    path = tmp_path / "drawn.svg"
    assert f"written: {path}" in text_of(*words.split(), "--out", path)
    assert "</svg>" in path.read_text(encoding="utf-8")


FOREIGN = {
    "urdf": """<robot name="arm"><link name="base"/><link name="a"><inertial><mass value="2"/><origin xyz="0.1 0 0"/>
    <inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="j" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="5" velocity="2"/></joint></robot>""",
    "mjcf": """<mujoco model="arm"><worldbody><body name="a"><joint name="j" type="hinge" axis="0 1 0"/>
    <inertial pos="0.1 0 0" mass="2" diaginertia="0.01 0.02 0.02"/></body></worldbody>
    <actuator><motor joint="j"/></actuator></mujoco>""",
}


@pytest.mark.parametrize("form", FOREIGN)
def test_new_writes_a_machine_of_a_file_from_elsewhere_that_check_finds_well(
    form: str, tmp_path: Path
) -> None:
    source, made = tmp_path / f"arm.{'xml' if form == 'mjcf' else form}", tmp_path / "mine.yaml"
    source.write_text(FOREIGN[form], encoding="utf-8")
    run("new", "mine", "--template", form, source, "--out", made)
    assert text_of("check", made).endswith("ok")


def test_the_command_prints_and_writes_forces_in_joints(tmp_path):
    table = tmp_path / "forces.csv"
    result = run("dynamics", "delta", "--joint-forces", "--out", str(table))
    assert result.exit_code == 0, result.output
    assert "leg1.shoulder" in result.stdout
    forces = tl.inverse_dynamics("delta").joint("leg1.shoulder").force[0]
    log = read_log(table)
    columns = [log[f"joint.leg1.shoulder.force.{axis}"].item() for axis in "xyz"]
    assert columns == pytest.approx(forces, rel=1e-6)
    written = json.loads(run("dynamics", "five_bar", "--joint-forces", "--json").stdout)
    joints = written["joint_forces"]
    shoulder = [point["name"] for point in joints["points"]].index("shoulder_1")
    assert joints["wrench"][0][shoulder][2] is None
    assert joints["points"][shoulder]["on"] == "crank_1"
    assert "joint_forces" not in json.loads(run("dynamics", "delta", "--json").stdout)


def test_motors_are_sized_for_a_planned_stroke_with_a_payload(tmp_path):
    stroke, figure = tmp_path / "stroke.csv", tmp_path / "motors.png"
    run(
        "plan",
        "stroke",
        "delta",
        "--start",
        "x=-0.1",
        "--end",
        "x=0.1",
        "--duration",
        "300ms",
        "--out",
        stroke,
    )
    catalogue = Path(__file__).parents[2] / "examples" / "motors.yaml"
    command = ("design", "motors", "delta", stroke, "--catalogue", catalogue)
    written = run_json(*command, "--payload", "0.3kg")
    lighter = run_json(*command)
    assert [load["name"] for load in written["loads"]] == [f"leg{i}.motor" for i in (1, 2, 3)]
    assert written["loads"][0]["rms_force"] > lighter["loads"][0]["rms_force"]
    best = written["candidates"]["leg1.motor"][0]
    assert max(best[name] for name in ("torque", "heat", "speed", "gear_load")) < 1
    text = text_of(*command, "--out", figure)
    assert "Motors for all 3 actuators" in text
    assert figure.stat().st_size > 10_000
