"""What the bodies of imported machines look like: MuJoCo is the oracle for MJCF, a few lines of NumPy for URDF."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extras import extra
from scipy.spatial.transform import Rotation

import tauloop as tl
from tauloop.formats.options import ImportOptions, RodRecognition
from tauloop.formats.xml.meshes import stl_bytes
from tauloop.geometry import frames, machine_solids, triangles
from tauloop.geometry.machine_geometry import machine_geometry
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.solids.solid import Solid, convex

#: Round shapes are drawn by their corners: what is lost between two of them, over the size; and
#: numbers in 32 bits.
FACETS, SINGLE = 0.02, 1e-6
#: A cylinder of 24 sides, 4 cm thick, turned about its axis by a rod's locked spin, m.
TURNED = 0.02 * (1 - np.cos(np.pi / 24))
#: Directions in which shapes are measured.
DIRECTIONS = np.random.default_rng(5).normal(size=(60, 3))
DIRECTIONS /= np.linalg.norm(DIRECTIONS, axis=1, keepdims=True)
#: A body without any symmetry.
CORNERS = np.array([[0.0, 0, 0], [0.3, 0, 0], [0, 0.2, 0], [0, 0, 0.1], [0.2, 0.15, 0.05]])

Support = Callable[[np.ndarray], np.ndarray]


def support(kind: str, s: np.ndarray) -> Support:
    """How far a shape reaches in directions (n, 3) from its middle; half lengths and radii as MuJoCo has them."""
    return {
        "sphere": lambda d: np.full(len(d), s[0]),
        "capsule": lambda d: s[0] + s[1] * np.abs(d[:, 2]),
        "cylinder": lambda d: s[0] * np.hypot(d[:, 0], d[:, 1]) + s[1] * np.abs(d[:, 2]),
        "ellipsoid": lambda d: np.linalg.norm(d * s, axis=1),
        "box": lambda d: np.abs(d) @ s,
    }[kind]


def drawn(mechanism: Mechanism) -> list[tuple[Solid, np.ndarray]]:
    """The solids that the description states, with how far each reaches in the world at the reference pose."""
    model = tl.Model(mechanism)
    geometry = machine_geometry(model, model.assembly.q)
    placed = frames(mechanism, geometry, geometry)
    reaches = []
    for solid in mechanism.solids:
        pose = placed[solid.body].at(0)
        points = triangles(solid).vertices @ pose.rotation.T + pose.position
        reaches.append((solid, (points @ DIRECTIONS.T).max(axis=0)))
    return reaches


def in_order(mechanism: Mechanism) -> np.ndarray:
    """How far solids reach (n, 60), in an order of their own."""
    return np.array(sorted(tuple(reach) for _, reach in drawn(mechanism)))


def inertial(mass: float = 1.0) -> str:
    return f'<inertial pos="0 0 0" mass="{mass}" diaginertia="0.01 0.01 0.01"/>'


MJCF = f"""<mujoco><compiler angle="degree" meshdir="parts"/>
<default><geom rgba="0.2 0.4 0.6 1"/><default class="bar"><geom type="capsule" size="0.02"/></default>
  <default class="contact"><geom group="3"/></default></default>
<asset><material name="red" rgba="1 0 0 1"/><texture name="t" type="2d" builtin="flat" width="8" height="8"/>
  <mesh name="part" file="part.stl" scale="0.5 0.5 0.5" refpos="0.1 0.02 0" refquat="0.9 0.1 0.2 0.3"/>
  <mesh file="part.stl" name="flat" scale="1 -0.4 0.7" refpos="0 0.1 0.03"/>
  <mesh name="hull" vertex="0 0 0  .1 0 0  0 .2 0  0 0 .3  .02 .02 .02"/></asset>
<worldbody><geom name="floor" type="plane" size="1 1 0.1"/><geom name="base" type="box" size="0.2 0.1 0.05"/>
<body name="a" pos="0 0 0.3" euler="20 30 40"><joint name="j1" axis="0 1 0"/>{inertial()}
  <geom name="bar" class="bar" fromto="0 0 0 0.1 0.2 0.3" material="red" rgba="1 0 0 1"/>
  <geom name="box" type="box" size="0.03" fromto="0 0.1 0 0.2 0 0.1"/>
  <frame pos="0.1 0 0" euler="0 0 30">
    <geom name="part" type="mesh" mesh="part" pos="0.1 0.2 0.3" euler="10 20 30"/></frame>
  <geom name="hidden" class="contact" size="0.4"/><geom name="ghost" size="0.4" rgba="1 1 1 0"/>
  <body name="b" pos="0.3 0 0"><joint name="j2" axis="1 0 0"/>{inertial()}
    <geom name="flat" type="mesh" mesh="flat" zaxis="1 1 0"/><geom name="hull" type="mesh" mesh="hull"/>
    <geom name="egg" type="ellipsoid" size="0.1 0.05 0.02" quat="0.5 0.5 0.1 0"/>
    <geom name="can" type="cylinder" size="0.05 0.1" pos="0 0 0.1"/><geom name="ball" size="0.05"/>
  </body></body></worldbody></mujoco>"""


@pytest.fixture
def mjcf(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part.stl").write_bytes(stl_bytes(convex(CORNERS)))
    (tmp_path / "m.xml").write_text(MJCF)
    return tmp_path / "m.xml"


def seen_by_mujoco(path: Path, names: list[str]) -> list[np.ndarray]:
    """How far geoms reach in MuJoCo's world."""
    mujoco = extra("mujoco")
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return [_reach(model, data, model.geom(name).id) for name in names]


def _reach(model: Any, data: Any, geom: int) -> np.ndarray:
    mujoco = extra("mujoco")
    R, p = data.geom_xmat[geom].reshape(3, 3), data.geom_xpos[geom]
    kind = mujoco.mjtGeom(model.geom_type[geom]).name.removeprefix("mjGEOM_").lower()
    if kind == "mesh":
        mesh = model.geom_dataid[geom]
        first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
        return np.asarray(
            ((model.mesh_vert[first : first + count] @ R.T + p) @ DIRECTIONS.T).max(axis=0)
        )
    return np.asarray(DIRECTIONS @ p + support(kind, model.geom_size[geom])(DIRECTIONS @ R))


def test_geoms_are_where_mujoco_has_them(mjcf: Path) -> None:
    names = ["base", "bar", "box", "part", "flat", "hull", "egg", "can", "ball"]
    solids = drawn(tl.load(mjcf))
    assert [solid.body for solid, _ in solids] == ["base", *"aaabbbbb"]
    for name, (solid, reach), there in zip(names, solids, seen_by_mujoco(mjcf, names), strict=True):
        is_exact = solid.shape == "box" or name in ("part", "flat", "hull")
        size = np.ptp(reach)
        assert np.abs(reach - there).max() < (SINGLE if is_exact else FACETS * size), name
        assert solid.color == ("#ff0000" if name == "bar" else "#336699")


def test_geoms_that_are_not_drawn_are_counted(mjcf: Path) -> None:
    notes = tl.load(mjcf).description.splitlines()
    assert "- geoms that are not drawn: hidden (2), plane (1)" in notes
    assert "- not used: texture (1)" in notes


BALL = """<visual><origin xyz="0 0 0.2"/><geometry><sphere radius="0.1"/></geometry></visual>"""
URDF = f"""<robot name="arm"><material name="blue"><color rgba="0 0 1 1"/></material>
<link name="world"><visual><geometry><box size="0.4 0.3 0.1"/></geometry></visual></link>
<link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <visual><origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/><geometry><cylinder radius="0.05" length="0.4"/></geometry>
    <material name="blue"/></visual>
  <visual><geometry><mesh filename="package://arm_description/meshes/part.stl" scale="2 1 -1"/></geometry>
    <material name="own"><color rgba="0.5 1 0 1"/></material></visual></link>
<link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <visual><origin rpy="1 2 3"/><geometry><mesh filename="../meshes/part.stl"/></geometry></visual>
  {BALL}</link>
<joint name="j1" type="revolute"><origin xyz="0 0 0.5" rpy="0.1 0.2 0.3"/><parent link="world"/><child link="a"/>
  <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<joint name="j2" type="continuous"><origin xyz="0.3 0 0" rpy="0 -0.7 0"/><parent link="a"/><child link="b"/></joint>
</robot>"""


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    package = tmp_path / "arm_description"
    for folder in ("urdf", "meshes"):
        (package / folder).mkdir(parents=True)
    (package / "meshes" / "part.stl").write_bytes(stl_bytes(convex(CORNERS)))
    (package / "urdf" / "arm.urdf").write_text(URDF)
    return package / "urdf" / "arm.urdf"


def placed(xyz: tuple[float, ...], rpy: tuple[float, ...]) -> np.ndarray:
    """URDF's origin as a matrix (4, 4): turns about the fixed axes x, y, z."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_euler("xyz", rpy).as_matrix(), xyz
    return T


def test_visuals_are_where_their_origins_put_them(urdf: Path) -> None:
    a = placed((0, 0, 0.5), (0.1, 0.2, 0.3))
    b = a @ placed((0.3, 0, 0), (0, -0.7, 0))
    here = np.zeros(3)
    expected: list[tuple[np.ndarray, Support, str]] = [
        (np.eye(4), support("box", np.array([0.2, 0.15, 0.05])), ""),
        (
            a @ placed((0.1, 0.2, 0.3), (0.4, 0.5, 0.6)),
            support("cylinder", np.array([0.05, 0.2])),
            "#0000ff",
        ),
        (a, lambda d: (CORNERS * [2, 1, -1] @ d.T).max(axis=0), "#80ff00"),
        (b @ placed(tuple(here), (1, 2, 3)), lambda d: (CORNERS @ d.T).max(axis=0), ""),
        (b @ placed((0, 0, 0.2), tuple(here)), support("sphere", np.array([0.1])), ""),
    ]
    for (solid, reach), (T, shape, color) in zip(drawn(tl.load(urdf)), expected, strict=True):
        there = DIRECTIONS @ T[:3, 3] + shape(DIRECTIONS @ T[:3, :3])
        assert np.abs(reach - there).max() < (
            SINGLE if solid.shape in ("box", "mesh") else FACETS * np.ptp(reach)
        )
        assert solid.color == color


def test_a_missing_mesh_is_named_and_joints_show_the_link(urdf: Path) -> None:
    (urdf.parents[1] / "meshes" / "part.stl").unlink()
    machine = tl.load(urdf)
    words = "mesh files that do not exist, so only joints are drawn there"
    assert (
        f"- {words}: package://arm_description/meshes/part.stl, ../meshes/part.stl"
        in machine.description
    )
    assert [solid.shape for solid in machine.solids] == ["box", "cylinder", "sphere"]
    urdf.write_text(URDF.replace(BALL, ""))
    model = tl.Model(tl.load(urdf))
    assert {solid.body for solid in model.mechanism.solids} == {"base", "a"}
    assert any(solid.body == "b" for solid in machine_solids(model))


def test_a_link_whose_visual_cannot_be_drawn_shows_its_collision(urdf: Path) -> None:
    (urdf.parents[1] / "meshes" / "part.dae").write_text("<COLLADA/>")
    text = URDF.replace(BALL, '<collision><geometry><box size="1 2 3"/></geometry></collision>')
    urdf.write_text(text.replace("../meshes/part.stl", "../meshes/part.dae"))
    machine = tl.load(urdf)
    assert machine.solids[-1].size == (1.0, 2.0, 3.0)
    assert (
        "not drawn, because they are not STL, OBJ, GLB, PLY, OFF: ../meshes/part.dae"
        in machine.description
    )
    assert "- links drawn with their <collision> shapes: b" in machine.description


OTHERS = (
    "package://arm_description/../../secret.stl",
    "http://host/part.stl",
    "/dev/zero",
    "package:///x" * 900,
)


@pytest.mark.parametrize("name", OTHERS)
def test_no_other_place_is_read(urdf: Path, name: str) -> None:
    (urdf.parents[2] / "secret.stl").write_bytes(stl_bytes(convex(CORNERS)))
    urdf.write_text(URDF.replace("../meshes/part.stl", name))
    assert "mesh files that do not exist" in tl.load(urdf).description
    assert len(tl.load(urdf).solids) == 4


def test_what_is_wrong_with_a_shape_stops_no_kinematics(urdf: Path, mjcf: Path) -> None:
    text = (
        URDF.replace('radius="0.05"', 'radius="-1"')
        .replace("0.5 1 0 1", "red")
        .replace('"1 2 3"', '"1 2"')
    )
    urdf.write_text(text)
    machine = tl.load(urdf)
    assert [solid.shape for solid in machine.solids] == ["box", "sphere"]
    assert "a: its size is -1 x 0.4 (line 4); the shape is not drawn" in machine.description
    wrong = MJCF.replace('size="0.05 0.1"', 'size="0"').replace('mesh="flat"', 'mesh="no"')
    wrong = wrong.replace('"hull" vertex="', '"hull" vertex="7 ')
    mjcf.write_text(wrong)
    machine = tl.load(mjcf)
    assert [solid.shape for solid in machine.solids] == [
        "box",
        "capsule",
        "box",
        "mesh",
        "mesh",
        "sphere",
    ]
    assert "`vertex` (16 numbers) and `face` (0) do not define a mesh" in machine.description


# Written again


def test_written_descriptions_have_copies_of_their_meshes(urdf: Path, tmp_path: Path) -> None:
    """Handed on with the folder of meshes, they show the same; MuJoCo has it where it is here."""
    machine = tl.load(urdf)
    here, reaches = in_order(machine), [reach for _, reach in drawn(machine)]
    (tmp_path / "out").mkdir()
    for name in ("m.xml", "m.urdf"):
        written = tl.convert(
            machine, tmp_path / "out" / name, tl.ConvertOptions(solids=False)
        ).written
        assert [path.name for path in written.files if path.suffix == ".stl"] == ["part.stl"]
    shutil.move(tmp_path / "out", tmp_path / "elsewhere")
    shutil.rmtree(urdf.parents[1])
    for name in ("m.xml", "m.urdf"):
        assert np.abs(in_order(tl.load(tmp_path / "elsewhere" / name)) - here).max() < SINGLE
    seen = seen_by_mujoco(tmp_path / "elsewhere" / "m.xml", [f"solid{k}" for k in range(1, 6)])
    for there, reach in zip(seen, reaches, strict=True):
        assert np.abs(there - reach).max() < FACETS * np.ptp(reach)


def test_machine_files_name_meshes_and_take_triangles_beside_them(
    mjcf: Path, urdf: Path, tmp_path: Path
) -> None:
    machine = tl.load(urdf)
    tl.convert(machine, tmp_path / "arm.yaml")
    assert tl.load(tmp_path / "arm.yaml").solids == machine.solids
    machine = tl.load(mjcf)
    files = tl.convert(machine, tmp_path / "m.yaml").written.files
    # the hull and the ellipsoid
    assert [path.name for path in files] == ["m.yaml", "solid1.stl", "solid2.stl"]
    assert np.abs(in_order(tl.load(tmp_path / "m.yaml")) - in_order(machine)).max() < SINGLE


@pytest.mark.parametrize("name", ["delta", "hexapod"])
def test_links_that_become_rods_take_their_solids_along(name: str, tmp_path: Path) -> None:
    """Designed, written as bodies, read as rods: they are where they were designed."""
    machine = tl.load(name)
    tl.convert(machine, tmp_path / "m.xml")
    again = tl.load(tmp_path / "m.xml", options=ImportOptions(rods=RodRecognition()))
    assert again.rods
    designed = replace(machine, solids=machine_solids(tl.Model(machine)))
    assert np.abs(in_order(again) - in_order(designed)).max() < TURNED


def test_the_models_of_others(shared: Path) -> None:
    bars = tl.load(shared / "models/grbda/four_bar.urdf").solids
    assert [(bar.body, bar.size, bar.color) for bar in bars] == [
        ("link1", (0.5, 0.05, 0.05), "#cc1a1a"),
        ("link2", (1.0, 0.05, 0.05), "#1acc00"),
        ("link3", (0.5, 0.05, 0.05), "#1a00cc"),
    ]
    digit = shared / "models/example_parallel_robots/digit_like"
    assert "package:///torso.stl" in tl.load(digit / "robot.urdf", digit / "robot.yaml").description
