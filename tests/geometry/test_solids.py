"""Solids that are designed: at the joint centres, apart, and seen; MuJoCo and trimesh are the oracles."""

from __future__ import annotations

import functools
import itertools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop.geometry import frames, machine_solids, parts, triangles
from tauloop.geometry.machine_geometry import MachineGeometry, machine_geometry
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.poses import FramePose, placement_pose, rotation_matrix
from tauloop.mechanism.solids.solid import Mesh, Solid
from tauloop.viewer.scene.machine_scene import CAMERA_DIRECTION

MACHINES = (
    "delta",
    "five_bar",
    "gantry_tau_3dof",
    "gantry_tau_5dof",
    "hexapod",
    "linear_delta",
    "rcid",
    "spidermill",
)
CASES = Path(__file__).parents[1] / "cases"
#: What joint centres may be off, and places that are one, m.
NEAR, SAME = 1e-3, 1e-6
#: Joints of which the file says by itself where they are.
CENTERED = ("revolute", "universal", "spherical")


@functools.cache
def model(name: str) -> tl.Model:
    return tl.Model(tl.load(name if "." not in name else CASES / name))


def at_reference(machine: tl.Model) -> MachineGeometry:
    return machine_geometry(machine, machine.assembly.q)


def centers(mechanism: Mechanism) -> list[tuple[str, np.ndarray]]:
    """Bodies with a joint centre (3,) on each, in its coordinates."""
    sides = [
        side
        for joint in mechanism.joints
        if joint.kind in CENTERED
        for side in (joint.parent, joint.child)
    ]
    sides += [side for rod in mechanism.rods for side in (rod.start, rod.end)]
    return [(side.body, placement_pose(mechanism, side).position) for side in sides]


@pytest.mark.parametrize("name", [*MACHINES, "cables8.yaml", "planar_3rrr.yaml"])
def test_a_solid_is_built_about_every_joint_centre(name: str) -> None:
    """At random states, within 1 mm: the axis of a round solid, or the middle of a ball.

    A hinge's centre is any point of its axis, along which the bodies of a plane linkage lie in
    layers.
    """
    machine = model(name)
    geometry = machine_geometry(machine, machine.assembly.states[:3])
    placed, solids = (
        frames(machine.mechanism, geometry, at_reference(machine)),
        machine_solids(machine),
    )
    for body, center in centers(machine.mechanism):
        place = geometry.fixed_to(body, center[None])[:, 0]
        off = np.array(
            [
                _off_axis(solid, placed[solid.body], place)
                for solid in solids
                if solid.shape != "mesh"
            ]
        )
        assert off.min(axis=0).max() < NEAR, (body, center)


def _off_axis(solid: Solid, pose: FramePose, place: np.ndarray) -> np.ndarray:
    """Distance (N,) of places (N, 3) from the axis of a solid, or from its middle."""
    local = np.einsum("nji,nj->ni", pose.rotation, place - pose.position) - solid.position
    local = local @ rotation_matrix(solid.turns)
    if solid.shape == "cylinder":
        local[:, 2] = 0.0
    elif solid.shape == "capsule":
        local[:, 2] -= np.clip(local[:, 2], -0.5 * solid.size[1], 0.5 * solid.size[1])
    return np.linalg.norm(local, axis=1)


@functools.cache
def by_mujoco(name: str) -> tuple[Any, Any]:
    """MuJoCo's model of a machine that is exported to a file, and its data at the start."""
    mujoco = extra("mujoco")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.xml"
        tl.convert(model(name).mechanism, path)
        read = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(read)
    mujoco.mj_forward(read, data)
    return read, data


@pytest.mark.parametrize("name", [*MACHINES[:-1], "four_bar", "slider_crank_tdc.yaml"])
def test_parts_that_do_not_meet_in_a_joint_are_apart(name: str) -> None:
    """By MuJoCo's distances of the exported shapes, in which a mesh counts as its convex hull."""
    mujoco, machine = extra("mujoco"), model(name)
    read, data = by_mujoco(name)
    meet = neighbors(machine.mechanism, machine_geometry(machine, machine.assembly.q))
    halves = {
        f"{rod.name}.{end}": rod.name
        for rod in machine.mechanism.rods
        for end in ("lower", "upper")
    }
    bodies = [read.body(number).name for number in read.geom_bodyid]
    owners = [halves.get(name, name) for name in bodies]
    compared = 0
    for a, b in itertools.combinations(range(read.ngeom), 2):
        if owners[a] != owners[b] and frozenset((owners[a], owners[b])) not in meet:
            assert mujoco.mj_geomDistance(read, data, a, b, 1.0, np.zeros(6)) > 0.0, (
                bodies[a],
                bodies[b],
            )
            compared += 1
    assert compared > 0


def neighbors(mechanism: Mechanism, geometry: MachineGeometry) -> set[frozenset[str]]:
    """Pairs of bodies and rods that have a joint centre at the same place, or a slide between them."""
    held = {frozenset((joint.parent.body, joint.child.body)) for joint in mechanism.joints}
    places = [
        (body, geometry.fixed_to(body, center[None])[0, 0]) for body, center in centers(mechanism)
    ]
    for rod in mechanism.rods:
        for side in (rod.start, rod.end):
            at = placement_pose(mechanism, side).position
            places.append((rod.name, geometry.fixed_to(side.body, at[None])[0, 0]))
    return held | {
        frozenset((a, b)) for a, p in places for b, q in places if np.linalg.norm(p - q) < SAME
    }


@pytest.mark.parametrize(
    "name",
    ["delta", "hexapod", "rcid", "five_bar", "gantry_tau_3dof", "gantry_tau_5dof", "cable_robot"],
)
def test_every_rod_motor_and_platform_is_seen_at_three_poses(name: str) -> None:
    """From where the eye stands at first: points on all surfaces, of which each pixel keeps the nearest."""
    extra("trimesh")
    machine = model(name)
    q = np.concatenate([machine.assembly.q[None], machine.assembly.states[:2]])
    geometry = machine_geometry(machine, q)
    placed, solids = (
        frames(machine.mechanism, geometry, at_reference(machine)),
        machine_solids(machine),
    )
    wanted = {(s.body, s.role) for s in solids if s.role in ("rod", "cable", "motor", "platform")}
    low, high = geometry.extent
    eye = (low + high) / 2 + 1.37 * geometry.size * np.array(CAMERA_DIRECTION)
    for state in range(len(q)):
        points, owners = [], []
        for number, solid in enumerate(solids):
            pose = placed[solid.body].at(state)
            sampled = _sampled(triangles(solid)) @ pose.rotation.T + pose.position
            points.append(sampled)
            owners.append(np.full(len(sampled), number))
        seen = _seen(np.concatenate(points), np.concatenate(owners), eye, (low + high) / 2)
        shown = {
            (solids[number].body, solids[number].role)
            for number, count in seen.items()
            if count >= 8
        }
        assert wanted <= shown, (state, wanted - shown)


def _sampled(mesh: Mesh) -> np.ndarray:
    """Points (n, 3) spread over the surface."""
    trimesh = extra("trimesh")
    surface = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
    return np.asarray(trimesh.sample.sample_surface(surface, 6000, seed=1)[0])


def _seen(
    points: np.ndarray, owners: np.ndarray, eye: np.ndarray, middle: np.ndarray
) -> dict[int, int]:
    """Pixels by the owner of the nearest point in each, of a picture of 500 by 500."""
    forward = (middle - eye) / np.linalg.norm(middle - eye)
    right = np.cross(forward, [0.0, 0.0, 1.0]) / np.linalg.norm(np.cross(forward, [0.0, 0.0, 1.0]))
    local = (points - eye) @ np.column_stack([right, np.cross(right, forward), forward])
    pixels = np.floor(local[:, :2] / local[:, 2:] * 600).astype(int)
    order = np.argsort(local[:, 2])
    _, first = np.unique(pixels[order], axis=0, return_index=True)
    owner, count = np.unique(owners[order][first], return_counts=True)
    return dict(zip(owner.tolist(), count.tolist(), strict=True))


def test_a_body_with_solids_of_its_own_gets_no_others() -> None:
    machine = tl.loads(
        tl.dumps(tl.load("five_bar")) + "visual:\n  bar: {on: crank_1, sphere: 1 cm}\n"
    )
    solids = machine_solids(tl.Model(machine))
    assert [solid.shape for solid in solids if solid.body == "crank_1"] == ["sphere"]
    assert {"crank_2", "link_1", "base"} <= {solid.body for solid in solids}


def test_a_parallelogram_is_two_rods_and_a_strut_slides_in_its_housing() -> None:
    solids = machine_solids(model("delta"))
    assert sum(solid.body == "leg1.forearm" and solid.role == "rod" for solid in solids) == 2
    machine = model("hexapod")
    for rod in machine.mechanism.rods:
        housing, piston = (
            next(
                s
                for s in machine_solids(machine)
                if s.body == f"{rod.name}.{end}" and s.shape == "cylinder"
            )
            for end in ("lower", "upper")
        )
        freedom = rod.telescope.freedom
        assert housing.size[1] < freedom.lower  # it never reaches the joint at B
        assert piston.size[1] <= freedom.lower
        assert housing.size[1] + piston.size[1] > freedom.upper  # nor does the piston leave it
        assert piston.size[0] < housing.size[0]


@pytest.mark.parametrize("name", ["delta", "agile_eye.yaml", "hexapod"])
def test_meshes_are_closed_and_look_outwards(name: str) -> None:
    trimesh = extra("trimesh")
    for solid in machine_solids(model(name)):
        mesh = triangles(solid)
        shape = trimesh.Trimesh(mesh.vertices, mesh.faces)
        assert shape.is_watertight
        assert shape.volume > 0.0
    assert sum(len(mesh.faces) for mesh in parts(machine_solids(model(name))).values()) < 30_000


# Written for others


@pytest.mark.parametrize("name", ["delta", "hexapod", "gantry_tau_5dof", "agile_eye.yaml"])
def test_mujoco_shows_the_solids_where_they_are_here(name: str) -> None:
    machine = model(name)
    read, data = by_mujoco(name)
    solids = machine_solids(machine)
    assert read.ngeom == len(solids)
    placed = frames(machine.mechanism, at_reference(machine), at_reference(machine))
    for number, solid in enumerate(solids):
        pose = placed[solid.body].at(0)
        shown = triangles(solid).vertices @ pose.rotation.T + pose.position
        middle = 0.5 * (shown.min(axis=0) + shown.max(axis=0))
        geom = read.geom(f"solid{number + 1}").id
        if solid.shape != "mesh":
            assert data.geom_xpos[geom] == pytest.approx(middle, abs=1e-5)
        assert read.geom_contype[geom] == read.geom_conaffinity[geom] == 0
    assert read.body_mass.sum() == pytest.approx(mass(machine.mechanism), rel=1e-9)


def mass(mechanism: Mechanism) -> float:
    whole = sum(
        mechanism.value(body.inertia.mass) for body in mechanism.bodies if body.inertia is not None
    )
    return whole + sum(
        mechanism.value(part.mass)
        for rod in mechanism.rods
        for part in (rod.lower, rod.upper)
        if part is not None
    )


def test_urdf_has_visuals_and_its_meshes_lie_beside_it(tmp_path: Path) -> None:
    trimesh = extra("trimesh")
    machine = model("agile_eye.yaml")
    conversion = tl.convert(machine.mechanism, tmp_path / "eye.urdf")
    meshes = [solid for solid in machine_solids(machine) if solid.shape == "mesh"]
    files = [path for path in conversion.written.files if path.suffix == ".stl"]
    assert len(files) == len(meshes)
    text = (tmp_path / "eye.urdf").read_text()
    assert text.count("<visual>") == len(machine_solids(machine))
    for path, solid in zip(files, meshes, strict=True):
        assert f'filename="{path.relative_to(tmp_path)}"' in text
        assert trimesh.load_mesh(path).volume == pytest.approx(
            trimesh.Trimesh(solid.mesh.vertices, solid.mesh.faces).volume, rel=1e-4
        )
    without = tl.convert("four_bar", tmp_path / "bare.urdf", tl.ConvertOptions(solids=False))
    assert "<visual>" not in (tmp_path / "bare.urdf").read_text()
    assert len(without.written.files) == 2


def test_both_bars_of_a_parallelogram_keep_their_place_on_the_plate() -> None:
    """At every pose they are parallel and as far apart along the plate, whose joints do not move on it."""
    machine = model("linear_delta")
    states = machine_geometry(machine, machine.assembly.states[:5])
    each = [
        frames(machine.mechanism, states.shape.at(q[None]), at_reference(machine))
        for q in machine.assembly.states[:5]
    ]
    together = frames(machine.mechanism, states, at_reference(machine))
    for name in ("tower1.link", "tower2.link", "tower3.link"):
        alone = np.concatenate([placed[name].rotation for placed in each])
        assert alone == pytest.approx(together[name].rotation, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "words"), [("part.off", "that MuJoCo reads"), ("gone.stl", "does not exist")]
)
def test_meshes_that_mujoco_cannot_read_are_left_out_and_named(
    name: str, words: str, tmp_path: Path
) -> None:
    mujoco = extra("mujoco")
    extra("trimesh").creation.box(extents=(1.0, 1.0, 1.0)).export(tmp_path / name)
    text = (
        tl.dumps(tl.load("five_bar"))
        + f"visual:\n  part: {{on: crank_1, mesh: {name}, scale: 0.05}}\n"
    )
    (tmp_path / "m.yaml").write_text(text)
    machine = tl.load(tmp_path / "m.yaml")
    assert tl.loads(tl.dumps(machine)).solids == machine.solids  # wherever it is written
    if name == "gone.stl":
        (tmp_path / name).unlink()
    written = tl.convert(machine, tmp_path / "m.xml").written
    assert any(words in note for note in written.notes)
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml")).nmesh == 0
