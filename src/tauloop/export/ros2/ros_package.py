"""A ROS 2 package with a machine's description and a node for its passive joints.

A URDF is a tree, so it does not determine the passive joints of a machine with loops. The package
therefore contains the machine's forward kinematics in C, generated from the package's own URDF. Its
node computes the positions of the passive joints from the measured joints and publishes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files as resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.files import temporary_folder
from tauloop.common.keywords import keywords
from tauloop.common.options import Options
from tauloop.common.plain import in_json
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.common.result import tauloop_version
from tauloop.compiler.c.printing.source import c_string
from tauloop.compiler.limits import CONVERGED, SMALLEST_PIVOT
from tauloop.equations.ports import ACTUATORS
from tauloop.export.c import ExportOptions, export_c
from tauloop.export.c.exported_files import ExportedFiles, refuse_another_project, written_files
from tauloop.formats.imported.motor_elements import ROS2_CONTROL
from tauloop.formats.urdf.reader import load_urdf
from tauloop.formats.urdf.transmission_writer import MOCK_HARDWARE
from tauloop.formats.urdf.writer import to_urdf
from tauloop.mechanism.expression import ONE, ZERO, Expression, evaluate
from tauloop.mechanism.model import JOINT_KINDS, Mechanism
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

#: Valid names of ROS packages (REP 144).
_PACKAGE = re.compile(r"[a-z][a-z0-9_]*[a-z0-9]")
#: Version of a new package; its maintainer raises it.
PACKAGE_VERSION = "0.1.0"
_SOURCE_FILES = ("passive_joints.h", "passive_joints.c", "passive_joints_node.cpp")
#: Dependencies of the package, by the tag in package.xml.
_NEEDS = (
    ("buildtool_depend", "ament_cmake"),
    *(("depend", package) for package in ("geometry_msgs", "rclcpp", "sensor_msgs", "tf2_ros")),
    ("exec_depend", "robot_state_publisher"),
    ("exec_depend", "launch_ros"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ros2Options(Options):
    """Names in a ROS 2 package.

    Attributes:
        package: name of the package; default: the machine's name followed by ``_description``.
        maintainer: maintainer of the package.
        email: e-mail address of the maintainer.
        hardware: ros2_control plugin that moves the driven joints.

    Examples:
        >>> import tauloop as tl
        >>> tl.Ros2Options(package="my_robot").package
        'my_robot'
    """

    package: str = ""
    maintainer: str = "maintainer"
    email: str = "maintainer@example.com"
    hardware: str = MOCK_HARDWARE

    def _note_mismatches(self, problems: Problems) -> None:
        """Report unprintable characters, which XML does not allow."""
        for name in ("maintainer", "email", "hardware"):
            if not getattr(self, name).isprintable():
                problems.add(
                    name,
                    f"{getattr(self, name)!r} has characters that cannot be printed",
                    "remove them",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ros2Package(ExportedFiles):
    """A ROS 2 package. `files` contains the text of each file by path.

    Attributes:
        joints: joints whose positions the node publishes, as named in the URDF.
        driven: joints whose measured positions the node must receive.
        notes: differences between the URDF and the mechanism.
    """

    joints: tuple[str, ...]
    driven: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    @in_json()
    def package(self) -> str:
        """Return the name of the package."""
        return self.name


@keywords(Ros2Options)
def export_ros2(
    machine: MachineSource,
    folder: str | Path | None = None,
    options: Ros2Options | None = None,
    *,
    progress: Progress | None = None,
) -> Ros2Package:
    """Export a ROS 2 description package: URDF, ros2_control, launch file and kinematics node.

    The node's forward kinematics is generated from the exported URDF. It computes the coordinates q at
    which the loops close for given motor positions, to a residual of 1e-9 m. A URDF joint has the
    position q + offset.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        folder: folder for the files; without it, the result only contains the texts.
        options: names in the package.
        progress: called with the completed and the total number of stages.

    Returns:
        The package: texts of the files by name, driven joints, and the written paths.

    Raises:
        InputError: ROS rejects the name, the folder cannot be written, or it holds another package.
        DescriptionError: URDF cannot represent the machine.
        AssemblyError: the machine cannot be assembled as described.

    Examples:
        >>> import tauloop as tl
        >>> package = tl.export_ros2(tl.load("five_bar"))
        >>> package.name, package.driven
        ('five_bar_description', ('shoulder_1', 'shoulder_2'))
    """
    options = options or Ros2Options()
    mechanism = modeled(machine).mechanism
    name = options.package or f"{re.sub(r'[^a-z0-9_]', '_', mechanism.name.lower())}_description"
    if not _PACKAGE.fullmatch(name) or "__" in name:
        message = f"{name!r} is not a valid package name: ROS allows lower-case letters, "
        message += "digits and single underscores (REP 144)"
        remedy = "set a valid name, such as Ros2Options(package='my_robot_description')"
        raise InputError.of("package", message, remedy)
    if folder is not None:
        refuse_another_project(Path(folder), name)
    written = to_urdf(mechanism, "meshes")
    with temporary_folder() as scratch:
        urdf, side = scratch / "machine.urdf", scratch / "machine.urdf.side.yaml"
        urdf.write_text(written.text, encoding="utf-8")
        side.write_text(written.side, encoding="utf-8")
        model = Model(load_urdf(urdf, side))
    joints = _Joints(model)
    kinematics = export_c(
        model,
        options=ExportOptions(
            functions=("kinematics",), coordinates=ACTUATORS, outputs=("q",), name="machine"
        ),
        progress=progress,
    )
    templates = resources("tauloop.export.ros2") / "texts"
    texts = {f"src/{file}": (templates / file).read_text("utf-8") for file in _SOURCE_FILES}
    texts |= {
        f"src/{file}": kinematics.files[file]
        for file in ("machine.c", "machine.h", "machine_check.c")
    }
    texts["src/machine_joints.h"] = joints.header()
    for target, source in (
        ("CMakeLists.txt", "CMakeLists.txt.in"),
        ("launch/display.launch.py", "display.launch.in"),
    ):
        texts[target] = (templates / source).read_text("utf-8").replace("@PACKAGE@", name)
    texts["urdf/machine.urdf"] = _in_package(written.text, name, options.hardware)
    texts["urdf/machine.urdf.side.yaml"] = written.side
    meshes = {
        f"{written.meshes.folder}/{file}": content
        for file, content in written.meshes.contents.items()
    }
    # package.xml comes last: a folder with it is a package.
    texts["package.xml"] = _package_xml(name, mechanism, options)
    files: dict[str, str | bytes] = {**meshes, **texts}
    notes = list(written.notes)
    notes += [
        f"{child} floats: the node publishes its pose as a transform"
        for _, child, _ in joints.floating
    ]
    return Ros2Package(
        name=name,
        joints=joints.names,
        driven=joints.driven,
        notes=tuple(notes),
        files=texts,
        written=() if folder is None else written_files(files, Path(folder)),
    )


class _Joints:
    """The revolute and prismatic joints of a URDF, and the ratios between motors and joints."""

    def __init__(self, model: Model) -> None:
        mechanism = model.mechanism
        q = list(model.topology.coordinate_names)
        self._model = model
        moving = [
            j for j in mechanism.joints if j.kind in ("revolute", "prismatic") and not j.is_cut
        ]
        self.names = tuple(joint.name for joint in moving)
        self._coordinates = [q.index(name) for name in self.names]
        values = mechanism.parameters.values
        self._offsets = [values.get(f"offsets.{name}", 0.0) for name in self.names]
        # In a machine read from a URDF, a floating joint's frames coincide with its links' frames.
        floating = [j for j in mechanism.joints if j.kind == "free" and not j.is_cut]
        first_coordinate = JOINT_KINDS["free"].coordinates[0]
        self.floating = [
            (j.parent.body, j.child.body, q.index(f"{j.name}.{first_coordinate}")) for j in floating
        ]
        motors = {actuator.name: dict(actuator.drives) for actuator in mechanism.actuators}
        motor_terms = [
            motors.get(name, {name: ONE}) for name in model.actuators.ports.position.columns
        ]
        self.driven = tuple(dict.fromkeys(name for terms in motor_terms for name in terms))
        self._ratios = [self._ratio_row(terms, values) for terms in motor_terms]
        zeros = {actuator.name: actuator.offset for actuator in mechanism.actuators}
        columns = model.actuators.ports.position.columns
        self._zeros = [evaluate(zeros.get(name, ZERO), values) for name in columns]

    def _ratio_row(
        self, terms: Mapping[str, Expression], values: Mapping[str, float]
    ) -> list[float]:
        """Return the coefficients of the driven joints' coordinates in the position of a motor."""
        return [evaluate(terms[n], values) if n in terms else 0.0 for n in self.driven]

    def header(self) -> str:
        """Return the joint tables as a C header."""
        start = self._model.assembly.q
        sizes = {
            "JOINTS": len(self.names),
            "DRIVEN": len(self.driven),
            "MOTORS": len(self._ratios),
            "COORDINATES": len(start),
            "FLOATING": len(self.floating),
        }
        ratios = ", ".join(f"{{{_numbers(row)}}}" for row in self._ratios)
        coordinates = ", ".join(map(str, self._coordinates))
        names = ", ".join(c_string(name) for name in self.names)
        driven = ", ".join(str(self.names.index(name)) for name in self.driven)
        lines = [
            "/* Joints of urdf/machine.urdf, generated by Tauloop: do not edit. "
            "URDF position = coordinate + offset. */",
            "#ifndef MACHINE_JOINTS_H",
            "#define MACHINE_JOINTS_H",
            *(f"#define MACHINE_{word} {size}" for word, size in sizes.items()),
            f"#define MACHINE_RESIDUAL {CONVERGED!r}",
            f"#define MACHINE_PIVOT {SMALLEST_PIVOT!r}",
            f"static const char *const machine_joint_names[MACHINE_JOINTS] = {{{names}}};",
            f"static const int machine_joint_coordinates[MACHINE_JOINTS] = {{{coordinates}}};",
            f"static const double machine_joint_offsets[MACHINE_JOINTS] = {{{_numbers(self._offsets)}}};",
            f"static const int machine_driven[MACHINE_DRIVEN] = {{{driven}}};",
            f"static const double machine_ratios[MACHINE_MOTORS][MACHINE_DRIVEN] = {{{ratios}}};",
            f"static const double machine_motor_offsets[MACHINE_MOTORS] = {{{_numbers(self._zeros)}}};",
            f"static const double machine_start[MACHINE_COORDINATES] = {{{_numbers(start)}}};",
            "/* Floating links: parent, child, and index of the first coordinate of x, y, z, qw, qx, qy, qz. */",
            "static const struct { const char *parent, *child; int first; } machine_floating[MACHINE_FLOATING + 1] = {",
            *(
                f"    {{{c_string(parent)}, {c_string(child)}, {k}}},"
                for parent, child, k in self.floating
            ),
            "    {0, 0, 0}",
            "};",
            "#endif",
        ]
        return "\n".join(lines) + "\n"


def _numbers(values: Any) -> str:
    return ", ".join(repr(float(value)) for value in np.asarray(values).tolist())


def _package_xml(name: str, mechanism: Mechanism, options: Ros2Options) -> str:
    root = ElementTree.Element("package", format="3")
    ElementTree.SubElement(root, "name").text = name
    ElementTree.SubElement(root, "version").text = PACKAGE_VERSION
    ElementTree.SubElement(
        root, "description"
    ).text = (
        f"Description of the machine {mechanism.name}, generated by Tauloop {tauloop_version()}"
    )
    ElementTree.SubElement(root, "maintainer", email=options.email).text = options.maintainer
    ElementTree.SubElement(root, "license").text = "Apache-2.0"
    for tag, package in _NEEDS:
        ElementTree.SubElement(root, tag).text = package
    ElementTree.SubElement(
        ElementTree.SubElement(root, "export"), "build_type"
    ).text = "ament_cmake"
    ElementTree.indent(root)
    return '<?xml version="1.0"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _in_package(urdf: str, name: str, hardware: str) -> str:
    """Return the URDF with meshes found through the package, and the ros2_control hardware."""
    robot = ElementTree.fromstring(urdf)
    for mesh in robot.iter("mesh"):
        mesh.set("filename", f"package://{name}/{mesh.get('filename')}")
    for control in robot.iter(ROS2_CONTROL):
        control.set("name", f"{name}_system")
        for plugin in control.iterfind("hardware/plugin"):
            plugin.text = hardware
    ElementTree.indent(robot)
    return ElementTree.tostring(robot, encoding="unicode") + "\n"
