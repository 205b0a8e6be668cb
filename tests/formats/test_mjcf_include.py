"""``<include>`` of MJCF: the model is MuJoCo's, whatever file its parts are in, and no other file is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop import DescriptionError
from tauloop.formats import load
from tauloop.formats.options import ImportOptions
from tauloop.formats.xml.meshes import stl_bytes
from tauloop.mechanism.solids.solid import convex

#: Accelerations by MuJoCo, of the largest; masses of meshes are of single precision there.
SAME = 1e-6
STATE = ([0.2, -0.3, 0.4], [0.5, 0.4, -0.2])
MAIN = """<mujoco model="arm"><compiler angle="radian"/><include file="settings.xml"/>
<asset><include file="parts/meshes.xml"/></asset>
<worldbody><body name="upper"><joint name="shoulder" axis="0 1 0" class="pin"/><geom type="box" size="0.1 0.02 0.03"/>
<include file="parts/fore.xml"/></body></worldbody><include file="motors.xml"/></mujoco>"""
FILES = {
    "settings.xml": '<mujoco><compiler angle="degree"/><default><joint damping="0.1"/>'
    '<default class="pin"><joint armature="0.02" damping="0.3"/></default></default></mujoco>',
    "parts/meshes.xml": '<mujocoinclude><mesh name="tip" file="tip.stl" scale="1 2 1"/></mujocoinclude>',
    "parts/fore.xml": '<mujoco><body name="fore" pos="0.2 0 0" euler="10 20 30"><joint name="elbow" axis="0 1 0"/>'
    '<geom type="capsule" size="0.02 0.1"/><include file="tip.xml"/></body></mujoco>',
    "parts/tip.xml": '<any><body name="tip" pos="0.1 0 0"><joint name="wrist" axis="0 0 1"/>'
    '<geom type="mesh" mesh="tip" mass="0.5"/></body></any>',
    "motors.xml": '<mujoco><actuator><motor name="m" joint="shoulder" gear="3"/></actuator></mujoco>',
}
CORNERS = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.0, 0.1]])


def write(folder: Path, main: str = MAIN, **others: str) -> Path:
    """Write the arm of several files; return its main file."""
    for name, text in {**FILES, **others, "main.xml": main}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "parts" / "tip.stl").write_bytes(stl_bytes(convex(CORNERS)))
    return folder / "main.xml"


def problems(path: Path, **options: object) -> list[tuple[str, str]]:
    with pytest.raises(DescriptionError) as caught:
        load(path, options=ImportOptions(**options))
    return [(problem.what, Path(problem.file).name) for problem in caught.value.problems]


def test_a_model_of_several_files_is_mujocos(tmp_path: Path) -> None:
    """Settings, defaults, a mesh next to the file that names it, a file in a file, and motors, each included."""
    mujoco = extra("mujoco")
    path = write(tmp_path)
    machine = load(path)
    assert [body.name for body in machine.bodies] == ["upper", "fore", "tip"]
    assert [actuator.name for actuator in machine.actuators] == ["m"]
    assert machine.unknown_elements == ()
    assert len([solid for solid in machine.solids if solid.body == "tip"]) == 1
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = STATE
    mujoco.mj_forward(model, data)
    platform = tl.Model(machine).platform
    assert platform.ports.position.columns == ("shoulder", "elbow", "wrist")
    x, xd = (np.array([row]) for row in STATE)
    own = np.linalg.solve(platform.mass_matrix(x)[0], -platform.bias(x, xd)[0])
    assert own == pytest.approx(np.array(data.qacc), rel=SAME)


def test_a_name_counts_from_the_main_file_first_as_in_mujoco(tmp_path: Path) -> None:
    mujoco = extra("mujoco")
    leaf = '<mujoco><body name="%s"><joint/><geom size="0.1"/></body></mujoco>'
    main = '<mujoco><worldbody><include file="sub/nest.xml"/></worldbody></mujoco>'
    others = {
        "sub/nest.xml": '<mujoco><include file="leaf.xml"/></mujoco>',
        "sub/leaf.xml": leaf % "near",
    }
    for more, name in (({}, "near"), ({"leaf.xml": leaf % "main"}, "main")):
        path = write(tmp_path, main, **others, **more)
        assert [body.name for body in load(path).bodies] == [name]
        assert mujoco.MjModel.from_xml_path(str(path)).body(1).name == name


def test_a_problem_names_the_included_file(tmp_path: Path) -> None:
    path = write(
        tmp_path, **{"parts/tip.xml": FILES["parts/tip.xml"].replace('mass="0.5"', 'mass="x"')}
    )
    assert problems(path) == [("mass='x' of <geom> is not a finite number", "tip.xml")]


@pytest.mark.parametrize(
    ("main", "what"),
    [
        ('<include file="absent.xml"/>', "it includes 'absent.xml', but there is no such file"),
        (
            '<include file="../secret.xml"/>',
            "it includes '../secret.xml', which is outside the folder of the file",
        ),
        (
            '<include file="/etc/hostname"/>',
            "it includes '/etc/hostname', which is outside the folder of the file",
        ),
        (
            '<include file="link.xml"/>',
            "it includes 'link.xml', which is outside the folder of the file",
        ),
        ('<include file="main.xml"/>', "'main.xml' is included twice"),
        ('<include file="circle.xml"/>', "'circle.xml' is included twice"),
        (
            '<worldbody><include file="leaf.xml"/><include file="parts/../leaf.xml"/></worldbody>',
            "'parts/../leaf.xml' is included twice",
        ),
        ("<include/>", "<include> has no attribute 'file'"),
        ('<include file="leaf.xml"><body/></include>', "an <include> contains elements"),
    ],
)
def test_files_that_may_not_be_read_are_refused(tmp_path: Path, main: str, what: str) -> None:
    folder = tmp_path / "machine"
    path = write(
        folder,
        f"<mujoco>{main}</mujoco>",
        **{"leaf.xml": "<mujoco/>", "circle.xml": '<mujoco><include file="circle.xml"/></mujoco>'},
    )
    (tmp_path / "secret.xml").write_text("<mujoco/>", encoding="utf-8")
    (folder / "link.xml").symlink_to(tmp_path / "secret.xml")
    assert [text for text, _ in problems(path)] == [what]


def test_a_folder_that_is_named_may_be_read(tmp_path: Path) -> None:
    path = write(tmp_path / "machine", MAIN.replace("motors.xml", "../common/motors.xml"))
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "motors.xml").write_text(FILES["motors.xml"], encoding="utf-8")
    ((what, _),) = problems(path)
    assert what == "it includes '../common/motors.xml', which is outside the folder of the file"
    assert (
        len(load(path, options=ImportOptions(package_folders=(tmp_path / "common",))).actuators)
        == 1
    )


def test_a_link_to_a_file_reads_what_is_next_to_that_file(tmp_path: Path) -> None:
    path = write(tmp_path / "source")
    installed = tmp_path / "installed"
    (installed / "parts").mkdir(parents=True)
    for name in ("main.xml", *FILES, "parts/tip.stl"):
        (installed / name).symlink_to(path.parent / name)
    assert load(installed / "main.xml").bodies[2].inertia == load(path).bodies[2].inertia


def test_files_in_files_and_their_sizes_are_limited(tmp_path: Path) -> None:
    chain = {f"f{k}.xml": f'<mujoco><include file="f{k + 1}.xml"/></mujoco>' for k in range(30)}
    path = write(
        tmp_path, '<mujoco><include file="f0.xml"/></mujoco>', **chain, **{"f30.xml": "<mujoco/>"}
    )
    assert [
        "nested more than 200 levels deep, or files more than 20" in text
        for text, _ in problems(path)
    ] == [True]
    deep = {
        f"d{k}.xml": f'<m>{"<body>" * 150}<include file="d{k + 1}.xml"/>{"</body>" * 150}</m>'
        for k in range(3)
    }
    path = write(
        tmp_path, '<mujoco><include file="d0.xml"/></mujoco>', **deep, **{"d3.xml": "<m/>"}
    )
    assert ["nested more than 200 levels deep" in text for text, _ in problems(path)] == [True]
    many = {f"m{k}.xml": f"<m>{'<body/>' * 900}</m>" for k in range(3)}
    includes = "".join(f'<include file="{name}"/>' for name in many)
    path = write(tmp_path, f"<mujoco><worldbody>{includes}</worldbody></mujoco>", **many)
    assert ["more than 2000 bodies are included" in text for text, _ in problems(path)] == [True]
