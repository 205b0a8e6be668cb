"""A package of ROS 2 that describes a machine, and publishes its passive joints from the measured ones.

URDF is a tree: of a machine with loops it has the joints, and nobody who reads it knows where the
passive ones are. So the package brings the machine's forward kinematics in C, made of the very URDF
that it holds.
"""

from __future__ import annotations

import re
import tempfile
from importlib.resources import files as resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.keywords import keywords
from tauloop.common.options import Options
from tauloop.common.plain import in_json
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.compiler.c.printing.source import c_string
from tauloop.compiler.limits import CONVERGED, SMALLEST_PIVOT
from tauloop.equations.ports import ACTUATORS
from tauloop.export.c import ExportOptions, export_c
from tauloop.export.c.exported_files import ExportedFiles, refuse_another_project, written_files
from tauloop.formats.imported.motor_elements import ROS2_CONTROL
from tauloop.formats.urdf.reader import load_urdf
from tauloop.formats.urdf.transmission_writer import MOCK_HARDWARE
from tauloop.formats.urdf.writer import to_urdf
from tauloop.mechanism.expression import ONE, evaluate
from tauloop.mechanism.model import JOINT_KINDS, Mechanism
from tauloop.model import Model
from tauloop.model.model import MachineSource, modelled

#: Names that ROS has for packages (REP 144).
_PACKAGE = re.compile(r"[a-z][a-z0-9_]*[a-z0-9]")
_TEXTS = ("passive_joints.h", "passive_joints.c", "passive_joints_node.cpp")
#: What the package needs, by the tag of package.xml.
_NEEDS = (
    ("buildtool_depend", "ament_cmake"),
    *(("depend", package) for package in ("geometry_msgs", "rclcpp", "sensor_msgs", "tf2_ros")),
    ("exec_depend", "robot_state_publisher"),
    ("exec_depend", "launch_ros"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ros2Options(Options):
    """What the package says of itself.

    Attributes:
        package: its name; the machine's with ``_description`` behind it if empty.
        maintainer: who answers for it.
        email: where.
        hardware: the plugin of ros2_control that moves the driven joints.

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
        """Note signs that XML does not have."""
        for name in ("maintainer", "email", "hardware"):
            if not getattr(self, name).isprintable():
                problems.add(
                    name,
                    f"{getattr(self, name)!r} has signs that cannot be printed",
                    "leave them out",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ros2Package(ExportedFiles):
    """A package for ROS 2; its files are by their paths in it.

    Attributes:
        joints: the joints whose positions it publishes, as in the URDF.
        driven: those among them that it must hear of.
        notes: what is not as in the mechanism.
    """

    joints: tuple[str, ...]
    driven: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    @in_json()
    def package(self) -> str:
        """Name of the package."""
        return self.name


@keywords(Ros2Options)
def export_ros2(
    machine: MachineSource,
    folder: str | Path | None = None,
    options: Ros2Options | None = None,
    *,
    progress: Progress | None = None,
) -> Ros2Package:
    """A description package of ROS 2: URDF with ros2_control, launch file, and a node for the passive joints.

    The kinematics are those of the URDF that is written, read back: q = q(motors) with the loops
    closed, to a residual of 1e-9 m; a joint of the URDF is at q + offset.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        folder: where the files are written; they stay texts without it.
        options: names.
        progress: called with what is done and what there is to do.

    Raises:
        InputError: a name that ROS refuses, a folder that cannot be written, or one that holds
            another package.
        DescriptionError: URDF does not represent the machine.
        AssemblyError: the machine does not assemble as described.

    Examples:
        >>> import tauloop as tl
        >>> package = tl.export_ros2(tl.load("five_bar"))
        >>> package.name, package.driven
        ('five_bar_description', ('shoulder_1', 'shoulder_2'))
    """
    options, mechanism = options or Ros2Options(), modelled(machine).mechanism
    name = options.package or f"{re.sub(r'[^a-z0-9_]', '_', mechanism.name.lower())}_description"
    if not _PACKAGE.fullmatch(name) or "__" in name:
        what = f"{name!r} is no name of a package: ROS takes small letters, digits and single underscores (REP 144)"
        raise InputError.of("package", what, "name it: Ros2Options(package='my_robot_description')")
    if folder is not None:
        refuse_another_project(Path(folder), name)
    written = to_urdf(mechanism, "meshes")
    with tempfile.TemporaryDirectory(prefix="tauloop-") as scratch:
        urdf, side = Path(scratch) / "machine.urdf", Path(scratch) / "machine.urdf.side.yaml"
        urdf.write_text(written.text, encoding="utf-8")
        side.write_text(written.side, encoding="utf-8")
        model = Model(load_urdf(urdf, side))
    joints = _Joints(model)
    kinematics = export_c(
        model,
        options=ExportOptions(
            functions=("kinematics",), entry=ACTUATORS, outputs=("q",), name="machine"
        ),
        progress=progress,
    )
    folder_of_texts = resources("tauloop.export.ros2") / "texts"
    texts = {f"src/{text}": (folder_of_texts / text).read_text("utf-8") for text in _TEXTS}
    texts |= {
        f"src/{file}": kinematics.files[file]
        for file in ("machine.c", "machine.h", "machine_check.c")
    }
    texts["src/machine_joints.h"] = joints.header()
    for target, source in (
        ("CMakeLists.txt", "CMakeLists.txt.in"),
        ("launch/display.launch.py", "display.launch.in"),
    ):
        texts[target] = (folder_of_texts / source).read_text("utf-8").replace("@PACKAGE@", name)
    texts["urdf/machine.urdf"] = _in_package(written.text, name, options.hardware)
    texts["urdf/machine.urdf.side.yaml"] = written.side
    meshes = {
        f"{written.meshes.folder}/{file}": content
        for file, content in written.meshes.contents.items()
    }
    # last is what makes it a package
    texts["package.xml"] = _package_xml(name, mechanism, options)
    files: dict[str, str | bytes] = {**meshes, **texts}
    notes = list(written.notes)
    notes += [
        f"{child} floats: the node publishes its place as a transform"
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
    """The joints of a URDF, as read, that turn or slide, and how motors and measured joints belong together."""

    def __init__(self, model: Model) -> None:
        mechanism, q = model.mechanism, list(model.topology.coordinate_names)
        self._model = model
        moving = [
            j for j in mechanism.joints if j.kind in ("revolute", "prismatic") and not j.is_cut
        ]
        self.names = tuple(joint.name for joint in moving)
        self._coordinates = [q.index(name) for name in self.names]
        values = mechanism.parameters.values
        self._offsets = [values.get(f"offsets.{name}", 0.0) for name in self.names]
        # read from a URDF their frames are those of the links
        floating = [j for j in mechanism.joints if j.kind == "free" and not j.is_cut]
        first = JOINT_KINDS["free"].coordinates[0]
        self.floating = [
            (j.parent.body, j.child.body, q.index(f"{j.name}.{first}")) for j in floating
        ]
        motors = {actuator.name: dict(actuator.drives) for actuator in mechanism.actuators}
        drives = [motors.get(name, {name: ONE}) for name in model.actuators.ports.position.columns]
        self.driven = tuple(dict.fromkeys(name for terms in drives for name in terms))
        self._ratios = [
            [evaluate(terms[n], values) if n in terms else 0.0 for n in self.driven]
            for terms in drives
        ]

    def header(self) -> str:
        """The tables for C."""
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
        places = ", ".join(str(self.names.index(name)) for name in self.driven)
        lines = [
            "/* Joints of urdf/machine.urdf, made by Tauloop: do not edit. Position there = coordinate + offset. */",
            "#ifndef MACHINE_JOINTS_H",
            "#define MACHINE_JOINTS_H",
            *(f"#define MACHINE_{word} {size}" for word, size in sizes.items()),
            f"#define MACHINE_RESIDUAL {CONVERGED!r}",
            f"#define MACHINE_PIVOT {SMALLEST_PIVOT!r}",
            f"static const char *const machine_joint_names[MACHINE_JOINTS] = {{{names}}};",
            f"static const int machine_joint_coordinates[MACHINE_JOINTS] = {{{coordinates}}};",
            f"static const double machine_joint_offsets[MACHINE_JOINTS] = {{{_numbers(self._offsets)}}};",
            f"static const int machine_driven[MACHINE_DRIVEN] = {{{places}}};",
            f"static const double machine_ratios[MACHINE_MOTORS][MACHINE_DRIVEN] = {{{ratios}}};",
            f"static const double machine_start[MACHINE_COORDINATES] = {{{_numbers(start)}}};",
            "/* Links that float: parent, child, and which coordinate is the first of x, y, z, qw, qx, qy, qz. */",
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
    ElementTree.SubElement(root, "version").text = "0.1.0"
    ElementTree.SubElement(
        root, "description"
    ).text = f"Description of the machine {mechanism.name}, made by Tauloop"
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
    """The URDF with meshes that are found through the package, and the hardware of ros2_control."""
    robot = ElementTree.fromstring(urdf)
    for mesh in robot.iter("mesh"):
        mesh.set("filename", f"package://{name}/{mesh.get('filename')}")
    for control in robot.iter(ROS2_CONTROL):
        control.set("name", f"{name}_system")
        for plugin in control.iterfind("hardware/plugin"):
            plugin.text = hardware
    ElementTree.indent(robot)
    return ElementTree.tostring(robot, encoding="unicode") + "\n"
