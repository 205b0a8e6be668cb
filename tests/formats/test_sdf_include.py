"""``<include>`` of SDF and models in models: where links are as libsdformat has it, and which files are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tauloop as tl
from tauloop import DescriptionError, load
from tauloop.formats.options import ImportOptions
from tauloop.formats.sdf.include import with_included_models
from tauloop.formats.sdf.model import SdfModel, SdfReader
from tauloop.formats.xml.nodes import read_xml

GRIPPER = """<sdf version="1.9"><model name="gripper"><pose>0.01 0.02 0.03 0.1 0 0</pose>
<frame name="mount" attached_to="palm"><pose relative_to="palm">0 0 -0.05 0.3 0 0.2</pose></frame>
<frame name="top"><pose>0 0 0.2 0 0.4 0</pose></frame>
<link name="palm"><pose>0.1 0 0 0 0.2 0</pose><inertial><mass>1</mass></inertial></link>
<link name="finger"><pose relative_to="top">0 0.1 0 0 0 0.5</pose><inertial><mass>0.5</mass></inertial>
<visual name="v"><geometry><mesh><uri>finger.stl</uri></mesh></geometry></visual></link>
<joint name="grasp" type="prismatic"><parent>palm</parent><child>finger</child>
<axis><xyz expressed_in="__model__">0.6 0 0.8</xyz></axis></joint>
<include><uri>model://tool</uri><name>tip</name><pose relative_to="finger">0 0 0.3 0 0 0.1</pose></include>
<joint name="hold" type="fixed"><parent>finger</parent><child>tip</child></joint></model></sdf>"""
TOOL = """<sdf version="1.8"><model name="tool" canonical_link="blade">
<link name="handle"><pose>0 0 0.1 0.2 0 0</pose></link>
<link name="blade"><pose relative_to="handle">0 0.1 0 0 0 0.3</pose></link>
<joint name="edge" type="fixed"><parent>handle</parent><child>blade</child></joint></model></sdf>"""
CONFIG = '<model><name>x</name><sdf version="1.5">old.sdf</sdf><sdf version="1.9">model.sdf</sdf></model>'
MAIN = """<sdf version="1.9"><model name="m"><pose>1 0 0 0 0 0.1</pose><link name="base"/>
<link name="arm"><pose>0 0 0.5 0 0.3 0</pose></link>
<frame name="flange" attached_to="arm"><pose>0 0 0.4 0 0 0.7</pose></frame>
<joint name="shoulder" type="revolute"><parent>base</parent><child>arm</child><axis><xyz>0 1 0</xyz></axis></joint>
<include><uri>model://gripper</uri><name>left</name><pose relative_to="flange">0 0.1 0.1 0.5 0 0</pose>
<placement_frame>mount</placement_frame></include>
<include merge="true"><uri>gripper/model.sdf</uri><name>right</name>
<pose relative_to="flange">0 -0.1 0.1 0.5 0 0</pose></include>
<joint name="j1" type="fixed"><parent>arm</parent><child>left::mount</child></joint>
<joint name="j2" type="fixed"><parent>flange</parent><child>palm</child></joint>
<model name="inner"><pose>0 0 2 0 0 0</pose><link name="only"><pose>0.1 0.2 0.3 0 0 0</pose></link></model>
<joint name="j3" type="fixed"><parent>base</parent><child>inner</child></joint></model></sdf>"""
#: Positions, and first rows of the rotations, of links in the base by libsdformat (in Drake 1.51).
POSES = {
    "arm": ([0.0, 0.0, 0.5], [0.955336, 0.0, 0.29552]),
    "left::palm": ([0.10681061, 0.068886684, 1.04162972], [0.824285, -0.388449, 0.411899]),
    "left::finger": ([0.026982829, 0.061931648, 1.273101431], [0.450913, -0.68897, 0.567449]),
    "left::tip::handle": ([0.253962473, 0.040702493, 1.601779943], [0.379878, -0.603247, 0.701275]),
    "left::tip::blade": ([0.193637778, 0.081588915, 1.670257907], [0.184639, -0.688565, 0.701275]),
    "palm": ([0.282372735, -0.01206245, 0.936027678], [0.605974, -0.398424, 0.688516]),
    "finger": ([0.280342867, -0.082699978, 1.170561725], [0.210135, -0.568799, 0.79518]),
    "tip::handle": ([0.598414892, -0.117447559, 1.410609205], [0.1523, -0.417258, 0.895935]),
    "tip::blade": ([0.556689093, -0.105618131, 1.500714822], [0.02219, -0.44363, 0.895935]),
    "inner::only": ([0.1, 0.2, 2.3], [1.0, 0.0, 0.0]),
}
#: Digits that these were printed with.
PRINTED = 6e-7


def write(folder: Path, **texts: str) -> Path:
    """Write the machine with its two models next to it, or other texts; return the main file."""
    files = {
        "m.sdf": MAIN,
        "gripper/model.sdf": GRIPPER,
        "gripper/model.config": CONFIG,
        "tool/model.sdf": TOOL,
        "tool/model.config": CONFIG,
    }
    for name, text in (files | texts).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "m.sdf"


def model_of(path: Path) -> SdfModel:
    files = with_included_models(read_xml(path), path, ())
    reader = SdfReader(str(path), "", files.unread)
    model = reader.model(files.root)
    reader.raise_any()
    assert model is not None
    return model


def problems(path: Path, **options: object) -> list[tuple[str, str]]:
    with pytest.raises(DescriptionError) as caught:
        load(path, options=ImportOptions(**options))
    return [(problem.what, Path(problem.file).name) for problem in caught.value.problems]


def test_links_are_where_libsdformat_has_them(tmp_path: Path) -> None:
    """Names, poses relative to frames, a placement frame, a merged model, models in models and in the text."""
    model = model_of(write(tmp_path))
    assert set(model.poses) == {"base", *POSES}
    for name, (position, row) in POSES.items():
        assert_allclose(model.poses[name].position, position, atol=PRINTED)
        assert_allclose(model.poses[name].rotation[0], row, atol=PRINTED)
    ends = {joint.name: (joint.parent, joint.child) for joint in model.joints}
    # the canonical link of the tool
    assert ends["left::hold"] == ("left::finger", "left::tip::blade")
    assert ends["hold"] == ("finger", "tip::blade")
    assert (ends["j1"], ends["j3"]) == (("arm", "left::palm"), ("base", "inner::only"))


def test_an_axis_in_the_frame_of_its_model_turns_with_it(tmp_path: Path) -> None:
    """In the frame of the gripper the axis and the finger are as the gripper's own file has them."""
    own = next(
        joint
        for joint in model_of(write(tmp_path / "own", **{"m.sdf": GRIPPER})).joints
        if joint.axes
    )
    for axis_ in (
        '<xyz expressed_in="__model__">',
        "<use_parent_model_frame>1</use_parent_model_frame><xyz>",
    ):
        gripper = GRIPPER.replace('<xyz expressed_in="__model__">', axis_)
        joints = model_of(write(tmp_path / "all", **{"gripper/model.sdf": gripper})).joints
        for joint in joints:
            if joint.name in ("grasp", "left::grasp"):
                assert_allclose(joint.axes[0], own.axes[0], atol=1e-12)


def test_an_included_machine_moves_as_the_same_text_in_one_file(tmp_path: Path) -> None:
    main = """<sdf version="1.9"><world name="w"><gravity>0 0 -9.8</gravity>
    <include><uri>model://sun</uri></include><include><uri>arm.sdf</uri><name>mine</name>
    <pose>0 0 1 0 0.3 0</pose></include></world></sdf>"""
    arm = """<sdf version="1.9"><model name="arm">%s<link name="base"/><link name="arm"><inertial>
    <pose>0.1 0 0 0 0 0</pose><mass>2</mass></inertial></link>
    <joint name="j" type="revolute"><parent>base</parent><child>arm</child>
    <axis><xyz>0 1 0</xyz></axis></joint></model></sdf>"""
    path = write(tmp_path, **{"m.sdf": main, "arm.sdf": arm % "<pose>9 9 9 1 2 3</pose>"})
    machine = load(path)
    assert machine.name == "mine"
    assert "omitted includes of the world: model://sun" in machine.description
    torque = tl.inverse_dynamics(machine).forces.force
    assert_allclose(torque, [[-2 * 9.8 * 0.1 * np.cos(0.3)]], rtol=1e-12)


def test_models_are_found_in_folders_that_are_named(tmp_path: Path) -> None:
    main = MAIN.replace("gripper/model.sdf", "package://gripper/model.sdf")
    path = write(tmp_path / "models", **{"else/m.sdf": main}).parent / "else" / "m.sdf"
    assert problems(path)[0] == (
        "it includes 'model://gripper', but there is no folder of the model 'gripper'",
        "m.sdf",
    )
    options = ImportOptions(platform_body="left::finger", package_folders=(tmp_path / "models",))
    assert load(path, options=options).platform.body == "left__finger"


def test_a_mesh_of_an_included_file_is_next_to_that_file(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "gripper" / "finger.stl").write_bytes(bytes(80) + (0).to_bytes(4, "little"))
    machine = load(path, options=ImportOptions(platform_body="arm"))
    assert {solid.mesh for solid in machine.solids} == {
        (tmp_path / "gripper" / "finger.stl").resolve()
    }


def test_a_problem_names_the_included_file(tmp_path: Path) -> None:
    path = write(
        tmp_path, **{"gripper/model.sdf": GRIPPER.replace('type="prismatic"', 'type="magnet"')}
    )
    assert problems(path) == [("joints of type 'magnet' are not supported", "model.sdf")] * 2


INCLUDE = '<sdf version="1.9"><model name="m"><link name="a"/>%s</model></sdf>'


@pytest.mark.parametrize(
    ("include", "what"),
    [
        (
            "<include><uri>absent.sdf</uri></include>",
            "it includes 'absent.sdf', but there is no such file",
        ),
        (
            "<include><uri>../secret.sdf</uri></include>",
            "it includes '../secret.sdf', which is outside the folder of the file",
        ),
        (
            "<include><uri>file:///etc/hostname</uri></include>",
            "it includes 'file:///etc/hostname', which is outside the folder of the file",
        ),
        (
            "<include><uri>link.sdf</uri></include>",
            "it includes 'link.sdf', which is outside the folder of the file",
        ),
        (
            "<include><uri>https://fuel.gazebosim.org/1.0/x/models/arm</uri></include>",
            "it includes 'https://fuel.gazebosim.org/1.0/x/models/arm', which is not on this computer",
        ),
        ("<include><uri>m.sdf</uri></include>", "it includes 'm.sdf', which includes itself"),
        (
            "<include><uri>circle.sdf</uri></include>",
            "it includes 'circle.sdf', which includes itself",
        ),
        (
            "<include><uri>r.urdf</uri></include>",
            "it includes 'r.urdf': its root element is <robot>, not <sdf>",
        ),
        (
            "<include><uri>old.sdf</uri></include>",
            "it includes 'old.sdf': version '1.4' is older than 1.5, or not a version",
        ),
        (
            "<include><uri>world.sdf</uri></include>",
            "it includes 'world.sdf': it has 0 models outside worlds, but an included file must have one",
        ),
        ("<include><name>x</name></include>", "has no <uri>"),
        (
            "<include><uri>tool/model.sdf</uri><placement_frame>handle</placement_frame></include>",
            "<placement_frame> in an <include> needs a <pose>",
        ),
        (
            "<include><uri>tool/model.sdf</uri><experimental:params/></include>",
            "<experimental:params> in an <include> is not supported",
        ),
        (
            "<include><uri>tool/model.sdf</uri><static>1</static></include>",
            "a static model in the model does not move",
        ),
    ],
)
def test_an_include_that_may_not_be_read_is_refused(
    tmp_path: Path, include: str, what: str
) -> None:
    folder = tmp_path / "machine"
    path = write(
        folder,
        **{
            "m.sdf": INCLUDE.replace("<sdf ", '<sdf xmlns:experimental="e" ') % include,
            "circle.sdf": INCLUDE % "<include><uri>circle.sdf</uri></include>",
            "r.urdf": '<robot name="r"><link name="a"/></robot>',
            "old.sdf": '<sdf version="1.4"><model name="o"/></sdf>',
            "world.sdf": '<sdf version="1.9"><world name="o"/></sdf>',
        },
    )
    (tmp_path / "secret.sdf").write_text(TOOL, encoding="utf-8")
    (folder / "link.sdf").symlink_to(tmp_path / "secret.sdf")
    assert what in [text for text, _ in problems(path)]


def test_a_world_whose_machine_cannot_be_read_states_why(tmp_path: Path) -> None:
    path = tmp_path / "m.sdf"
    path.write_text(
        '<sdf version="1.9"><world name="w"><include><uri>model://arm</uri></include></world></sdf>',
        encoding="utf-8",
    )
    assert problems(path) == [
        ("it includes 'model://arm', but there is no folder of the model 'arm'", "m.sdf")
    ]
    path.write_text(
        '<sdf version="1.9"><world name="w"><include merge="1"><uri>a.sdf</uri></include></world></sdf>',
        encoding="utf-8",
    )
    (tmp_path / "a.sdf").write_text(TOOL, encoding="utf-8")
    assert problems(path) == [("merge is not supported outside a model", "m.sdf")]


@pytest.mark.parametrize("name", ["", "arm"])
def test_scenery_does_not_hide_why_the_machine_cannot_be_read(tmp_path: Path, name: str) -> None:
    """A ground plane next to the include was refused as the machine, since it is static."""
    path = tmp_path / "m.sdf"
    ground = "<model name='ground'><static>true</static><link name='l'/></model>"
    include = "<include><uri>model://arm</uri></include>"
    path.write_text(
        f'<sdf version="1.9"><world name="w">{ground}{include}</world></sdf>', encoding="utf-8"
    )
    with pytest.raises(DescriptionError, match="there is no folder of the model 'arm'"):
        load(path, model_name=name)


def test_includes_that_double_are_limited(tmp_path: Path) -> None:
    twice = "<include><uri>f{0}.sdf</uri><name>a</name></include><include><uri>f{0}.sdf</uri><name>b</name></include>"
    texts = {
        f"f{k}.sdf": INCLUDE.replace('<link name="a"/>', "") % twice.format(k + 1)
        for k in range(12)
    }
    path = write(tmp_path, **{"m.sdf": INCLUDE % twice.format(0), "f12.sdf": INCLUDE % ""}, **texts)
    assert {what for what, _ in problems(path)} == {"more than 500 files are included"}
    chain = "<include><uri>f{0}.sdf</uri></include>"
    texts = {f"f{k}.sdf": INCLUDE % chain.format(k + 1) for k in range(30)}
    path = write(tmp_path, **{"m.sdf": INCLUDE % chain.format(0), "f30.sdf": INCLUDE % ""}, **texts)
    assert ["or files more than 20" in what for what, _ in problems(path)] == [True]
