"""What libsdformat, Gazebo's own reader, understands of the SDF that we write: a program on Debian's package."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from conftest import ROOT
from tauloop import DescriptionError, load
from tauloop.formats.sdf.writer import write_sdf
from tauloop.mechanism.links.rigid_tree import rigid_tree
from tauloop.mechanism.poses import IDENTITY

SOURCE = ROOT / "tests" / "sdformat" / "read_sdf.cpp"
PACKAGES = ("sdformat16", "sdformat15", "sdformat14", "sdformat13", "sdformat12")
#: The same numbers by way of a text and of its frames.
ROUNDING = 1e-12
#: Moments are raised by at most this share of the largest, or to this, kg m^2
#: (`sdf_writer.MIN_SHARE`).
RAISED_SHARE, RAISED = 1e-8, 1e-11


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, compiled."""
    if shutil.which("g++") is None or shutil.which("pkg-config") is None:
        pytest.skip("needs g++ and pkg-config")
    package = next(
        (name for name in PACKAGES if subprocess.call(["pkg-config", "--exists", name]) == 0), None
    )
    if package is None:
        pytest.skip("needs Debian's libsdformat-dev (or Gazebo's libsdformatN-dev)")
    flags = subprocess.check_output(
        ["pkg-config", "--cflags", "--libs", package], text=True
    ).split()
    path = tmp_path_factory.mktemp("sdformat") / "read_sdf"
    subprocess.run(["g++", "-std=c++17", "-w", str(SOURCE), "-o", str(path), *flags], check=True)
    return path


def understood(program: Path, path: Path) -> dict[str, dict[str, list[str]]]:
    """Its lines, by their first word and the name after it; it must have nothing to complain of."""
    ended = subprocess.run([str(program), str(path)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    lines: dict[str, dict[str, list[str]]] = {}
    for line in ended.stdout.splitlines():
        word, name, *rest = line.split()
        lines.setdefault(word, {})[name] = rest
    return lines


@pytest.mark.parametrize("name", ["five_bar", "delta", "hexapod", "linear_delta", "rcid"])
def test_gazebo_s_reader_understands_the_machine(program: Path, tmp_path: Path, name: str) -> None:
    """Masses, centres and moments of every link, axes of every joint, and both sides of every loop at one place."""
    machine = load(name)
    write_sdf(machine, tmp_path / "m.sdf")
    lines = understood(program, tmp_path / "m.sdf")
    gravity = [float(x) for x in lines["gravity"]["world"]]
    assert gravity == pytest.approx([machine.value(x) for x in machine.gravity], abs=ROUNDING)
    tree = rigid_tree(
        machine, ("spherical", "revolute", "prismatic", "universal", "fixed"), DescriptionError
    )
    poses = {"base": IDENTITY}
    massive = 0
    for link in tree.links:
        poses[link.name] = pose = poses[link.parent] @ link.pose()
        mass, x, y, z, *rest = (float(value) for value in lines["link"][link.name])
        assert [x, y, z] == pytest.approx(pose.position, abs=ROUNDING)
        if link.mass is None or link.mass.mass == 0.0:
            assert mass <= 1e-9
            continue
        massive += 1
        assert mass == link.mass.mass
        assert rest[:3] == pytest.approx(
            pose.position + pose.rotation @ link.mass.center, abs=ROUNDING
        )
        moment = pose.rotation @ link.mass.about_center @ pose.rotation.T
        expected = [moment[i, i] for i in range(3)] + [moment[0, 1], moment[0, 2], moment[1, 2]]
        assert rest[3:] == pytest.approx(expected, abs=RAISED_SHARE * np.abs(moment).max() + RAISED)
    assert massive > 0
    joints = lines["joint"]
    for link in tree.links:
        frame = poses[link.name] @ link.frame.inverse()
        for primitive in link.chain[-1:]:
            if primitive.kind != "ball" and primitive.name in joints:
                axis = [float(value) for value in joints[primitive.name][6:9]]
                assert axis == pytest.approx(frame.rotation @ primitive.axis, abs=ROUNDING)
    for closure in tree.closures:
        _, parent, child, *numbers = joints[closure.name]
        assert (parent, child) == (closure.first[0], closure.second[0])
        for body, pose in (closure.first, closure.second):
            assert (poses[body] @ pose).position == pytest.approx(
                [float(x) for x in numbers[:3]], abs=1e-9
            )
            for axis in np.reshape([float(x) for x in numbers[3:]], (-1, 3))[:1]:
                assert (poses[body] @ pose).rotation @ closure.axis == pytest.approx(axis, abs=1e-9)
    parents = [rest[2] for rest in joints.values()]
    assert len(set(parents)) < len(parents)  # some link is the child of two joints
