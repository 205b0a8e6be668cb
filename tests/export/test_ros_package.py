"""A ROS 2 package: read by parsers that are not ours, and its joints closed in their kinematics; ROS is not here."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop import InputError
from tauloop.export.ros2 import Ros2Package
from tauloop.mechanism.expression import Constant

#: Both sides of a loop, placed by another program's kinematics from the joints that the package
#: publishes, m.
CLOSED = 1e-9
STATES = 5


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Ros2Package:
    return tl.export_ros2(tl.load("delta"), folder=tmp_path_factory.mktemp("package"))


def folder_of(package: Ros2Package) -> Path:
    return next(path.parent for path in package.written if path.name == "package.xml")


class Core:
    """The package's C code without ROS, compiled as strictly as can be."""

    def __init__(self, package: Ros2Package, folder: Path) -> None:
        compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
        if compiler is None:
            pytest.skip("needs a C compiler")
        sources = [
            str(folder_of(package) / "src" / name) for name in ("machine.c", "passive_joints.c")
        ]
        flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-shared", "-fPIC"]
        subprocess.run(
            [compiler, *flags, *sources, "-o", str(folder / "core.so"), "-lm"], check=True
        )
        self._library = ctypes.CDLL(str(folder / "core.so"))
        self._library.passive_joints_take.argtypes = [
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes.c_double,
        ]
        self._state = (ctypes.c_double * 1000)()
        self.positions = (ctypes.c_double * len(package.joints))()
        self._library.passive_joints_start(self._state)

    def take(self, name: str, position: float) -> int:
        return int(self._library.passive_joints_take(self._state, name.encode(), position))

    def place(self, k: int) -> list[float]:
        pose = (ctypes.c_double * 7)()
        self._library.passive_joints_floating(self._state, k, pose)
        return list(pose)

    def compute(self) -> int:
        return int(self._library.passive_joints_compute(self._state, self.positions))


def test_joints_of_the_package_close_the_loops_in_another_program_s_kinematics(
    package: Ros2Package, tmp_path: Path
) -> None:
    """yourdfpy places the links of the URDF; the machine itself says where the driven joints are."""
    yourdfpy = extra("yourdfpy")
    robot = yourdfpy.URDF.load(str(folder_of(package) / "urdf" / "machine.urdf"), load_meshes=False)
    core, machine = Core(package, tmp_path), tl.Model(tl.load("delta"))
    assert core.compute() == 1
    rng = np.random.default_rng(0)
    start = machine.actuator_position(machine.assembly.q)
    leading = [actuator.name for actuator in machine.mechanism.actuators]
    joints = {actuator.name: actuator.drives[0][0] for actuator in machine.mechanism.actuators}
    loops = [(f"leg{k}.forearm.tip.A", f"leg{k}.forearm.tip.B") for k in (1, 2, 3)]
    for _ in range(STATES):
        angles = start + 0.2 * rng.normal(size=len(start))
        for name, angle, zero in zip(leading, angles, start, strict=True):
            assert core.take(joints[name], angle - zero) == 1
        assert core.compute() == 0
        robot.update_cfg(dict(zip(package.joints, core.positions, strict=True)))
        for first, second in loops:
            apart = robot.get_transform(first)[:3, 3] - robot.get_transform(second)[:3, 3]
            assert np.abs(apart).max() < CLOSED
        plate = machine.platform_position(machine.actuators.track(np.vstack([start, angles])).q)[-1]
        assert robot.get_transform("plate")[:3, 3] == pytest.approx(plate, abs=CLOSED)


def test_offsets_of_motors_do_not_move_the_joints(package: Ros2Package, tmp_path: Path) -> None:
    machine = tl.load("delta")
    offsets = [
        replace(actuator, offset=Constant(0.2 + k)) for k, actuator in enumerate(machine.actuators)
    ]
    shifted = tl.export_ros2(replace(machine, actuators=tuple(offsets)), folder=tmp_path)
    (tmp_path / "plain").mkdir()
    cores = [Core(package, tmp_path / "plain"), Core(shifted, tmp_path)]
    for core in cores:
        for k, name in enumerate(package.driven):
            assert core.take(name, 0.1 * k) == 1
        assert core.compute() == 0
    assert list(cores[1].positions) == pytest.approx(list(cores[0].positions), abs=CLOSED)


def test_what_cannot_be_is_said_and_the_last_pose_stays(tmp_path: Path) -> None:
    package = tl.export_ros2(tl.load("linear_delta"), folder=tmp_path)
    core = Core(package, tmp_path)
    for name in package.driven:
        assert core.take(name, 0.0) == 1
    assert core.compute() == 0
    before = list(core.positions)
    assert (core.take("nobody", 0.1), core.take(package.driven[0], float("nan"))) == (0, 0)
    core.take(package.driven[0], 10.0)
    assert core.compute() == 2
    assert list(core.positions) == before
    core.take(package.driven[0], 0.0)
    assert core.compute() == 0
    assert list(core.positions) == pytest.approx(before, abs=CLOSED)


def test_package_xml_is_what_ros_s_own_parser_takes(package: Ros2Package) -> None:
    parsed = extra("catkin_pkg.package").parse_package(str(folder_of(package) / "package.xml"))
    parsed.validate()
    assert (parsed.name, parsed.get_build_type()) == ("delta_description", "ament_cmake")
    assert {need.name for need in parsed.build_depends} == {
        "geometry_msgs",
        "rclcpp",
        "sensor_msgs",
        "tf2_ros",
    }


def test_the_control_names_the_driven_joints_of_the_urdf(package: Ros2Package) -> None:
    names = [
        joint.attrib["name"]
        for joint in ElementTree.fromstring(package.files["urdf/machine.urdf"]).iter("joint")
    ]
    assert set(package.joints) <= set(names)
    control = ElementTree.fromstring(package.files["urdf/machine.urdf"]).find("ros2_control")
    assert control is not None
    assert tuple(joint.attrib["name"] for joint in control.findall("joint")) == package.driven


def test_the_launch_file_is_python_and_names_the_package(package: Ros2Package) -> None:
    text = package.files["launch/display.launch.py"]
    compile(text, "display.launch.py", "exec")
    assert text.count('"delta_description"') == 2


def test_cmake_builds_the_kinematics_without_ros(package: Ros2Package, tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("needs cmake")
    source = str(folder_of(package))
    subprocess.run(["cmake", "-S", source, "-B", str(tmp_path)], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", str(tmp_path)], check=True, capture_output=True)
    assert (tmp_path / "libmachine_kinematics.a").is_file()


def test_the_same_machine_gives_the_same_package_and_names_are_ros_s(package: Ros2Package) -> None:
    again = tl.export_ros2(tl.load("delta"))
    assert again.files == package.files
    assert again.written == ()
    assert all(path.is_file() for path in package.written)
    for name in ("My_Robot", "a__b", "9lives", "x;rm"):
        with pytest.raises(InputError, match="REP 144"):
            tl.export_ros2(tl.load("five_bar"), tl.Ros2Options(package=name))


def test_a_floating_platform_has_a_transform(tmp_path: Path) -> None:
    package, machine = (
        tl.export_ros2(tl.load("hexapod"), folder=tmp_path),
        tl.Model(tl.load("hexapod")),
    )
    assert "plate floats: the node publishes its pose as a transform" in package.notes
    assert not any(name.startswith("platform") for name in package.joints)
    core, start = Core(package, tmp_path), machine.actuator_position(machine.assembly.q)
    stretched = start + 0.02 * np.array([1.0, -1.0, 0.5, 0.3, -0.2, 0.8])
    urdf = ElementTree.parse(folder_of(package) / "urdf" / "machine.urdf")
    assert urdf.find(".//joint[@type='floating']/child[@link='plate']") is not None
    for name, length, zero in zip(package.driven, stretched, start, strict=True):
        assert core.take(name, length - zero) == 1
    assert core.compute() == 0
    expected = machine.platform_position(machine.forward_kinematics(stretched).q)
    assert core.place(0) == pytest.approx(expected, abs=CLOSED)
