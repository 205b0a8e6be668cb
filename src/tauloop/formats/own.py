"""Tauloop's own formats, whose readers and writers are imported when they are used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, final

from tauloop.common.errors import DescriptionError, Problems
from tauloop.common.files import unreadable, write_text
from tauloop.formats.format import Format, Written
from tauloop.formats.options import ImportOptions
from tauloop.mechanism.description.reader import read_machine
from tauloop.mechanism.description.yaml_nodes import read_text
from tauloop.mechanism.model import Mechanism

if TYPE_CHECKING:
    from tauloop.formats.printers.geometry import Printer


@final
class MachineFile(Format):
    """Machine files (docs/machine-file.md), which read back to an equal mechanism."""

    name, title, endings = "yaml", "a machine file", (".yaml", ".yml")
    motor_element = "`actuators: {motor: {on: JOINT}}`"
    refused: ClassVar[Mapping[str, str]] = {
        **Format.refused,
        **{item.name: "which refers to no other files" for item in fields(ImportOptions)},
    }

    def read(self, path: Path, side: Path | None, options: ImportOptions | None) -> Mechanism:
        """See `Format.read`."""
        return read_machine(read_text(path), str(path), path.parent)

    def write(self, mechanism: Mechanism, path: Path) -> Written:
        """See `Format.write`."""
        from tauloop.formats.writing.yaml_writer import write_yaml

        meshes, notes = write_yaml(mechanism, path)
        return Written(files=(path, *meshes), notes=notes)


@final
class Mjcf(Format):
    """MuJoCo's format."""

    name, title, endings = "mjcf", "an MJCF file", (".mjcf", ".xml")
    motor_element = '`<motor joint="JOINT"/>` in `<actuator>`'
    refused: ClassVar[Mapping[str, str]] = {
        **Format.refused,
        "origins": "whose zeros are part of the structure",
        "model": "which has only one model",
        "xacro": "which is not a xacro",
    }

    def claims(self, path: Path) -> bool:
        """Return whether the root element is MuJoCo's; URDF files may have the same extension."""
        from tauloop.formats.xml.nodes import read_xml

        return super().claims(path) and (
            unreadable(path) is not None or read_xml(path).tag == "mujoco"
        )

    def read(self, path: Path, side: Path | None, options: ImportOptions | None) -> Mechanism:
        """See `Format.read`."""
        from tauloop.formats.mjcf.reader import load_mjcf

        return load_mjcf(path, options=options or ImportOptions())

    def write(self, mechanism: Mechanism, path: Path) -> Written:
        """See `Format.write`."""
        from tauloop.formats.mjcf.writer import coordinate_names, write_mjcf

        meshes, notes = write_mjcf(mechanism, path)
        return Written(files=(path, *meshes), notes=notes, names=coordinate_names(mechanism))


@final
class Sdf(Format):
    """SDF (Gazebo) with a side file."""

    name, title, endings = "sdf", "an SDF file", (".sdf", ".world")
    motor_element = (
        "`<effort>` above 0 in the `<limit>` of JOINT and 0 in the others, "
        "or `actuators` of a side file"
    )
    refused: ClassVar[Mapping[str, str]] = {"keyframe": "which has no keyframes"}

    def claims(self, path: Path) -> bool:
        """Return whether the extension is one of SDF, or the file is a xacro of an SDF file."""
        from tauloop.formats.xml.nodes import read_xml

        is_xacro = path.suffix.lower() == ".xacro" and unreadable(path) is None
        return super().claims(path) or (is_xacro and read_xml(path).tag == "sdf")

    def read(self, path: Path, side: Path | None, options: ImportOptions | None) -> Mechanism:
        """See `Format.read`."""
        from tauloop.formats.sdf.reader import load_sdf

        return load_sdf(path, side, options=options or ImportOptions())

    def write(self, mechanism: Mechanism, path: Path) -> Written:
        """See `Format.write`."""
        from tauloop.formats.sdf.writer import to_sdf

        return to_sdf(mechanism, f"{path.stem}_meshes").write(path)


@final
class Urdf(Format):
    """URDF with a side file; its reader rejects other files with the same extensions."""

    name, title, endings = "urdf", "a URDF file", (".urdf", ".xacro", ".xml", ".mjcf")
    motor_element = (
        "a `<transmission>` or `<ros2_control>` for JOINT, or `actuators` of a side file"
    )
    refused: ClassVar[Mapping[str, str]] = {
        "keyframe": "which has no keyframes",
        "model": "which has only one model",
    }

    def read(self, path: Path, side: Path | None, options: ImportOptions | None) -> Mechanism:
        """See `Format.read`."""
        from tauloop.formats.urdf.reader import load_urdf

        return load_urdf(path, side, options=options or ImportOptions())

    def write(self, mechanism: Mechanism, path: Path) -> Written:
        """See `Format.write`."""
        from tauloop.formats.urdf.writer import to_urdf

        return to_urdf(mechanism, f"{path.stem}_meshes").write(path)


class _Firmware(Format):
    """A configuration of a printer's firmware: kinematics without masses."""

    motor_element = "the section or line of a tower or winch"
    is_kinematic = True
    refused: ClassVar[Mapping[str, str]] = {
        **Format.refused,
        **{item.name: "which has no such property" for item in fields(ImportOptions)},
    }

    def _machine(self, printer: Printer, path: Path) -> Mechanism:
        """Return the mechanism of a printer's geometry."""
        from tauloop.formats.printers.geometry import geometry_problems, machine_text
        from tauloop.formats.urdf.parts import identifier

        problems = Problems()
        for where, what, remedy in geometry_problems(printer):
            problems.add(where, what, remedy, file=str(path))
        DescriptionError.raise_if_any(problems)
        name = identifier(path.stem.replace(".", "_")) or "printer"
        text = machine_text(printer, name, path.name)
        return replace(read_machine(text, path.name), file=str(path))

    def _written(self, path: Path, text: str, notes: tuple[str, ...]) -> Written:
        write_text(path, text)
        masses = f"{self.title} has no masses, losses and forces"
        return Written(files=(path,), notes=(masses, *notes))


@final
class Klipper(_Firmware):
    """Klipper's configuration: delta, rotary delta and winch kinematics."""

    name, title, endings = "klipper", "a Klipper configuration", (".cfg",)

    def read(self, path: Path, side: Path | None, options: ImportOptions | None) -> Mechanism:
        """See `Format.read`."""
        from tauloop.formats.printers.klipper import read_klipper

        return self._machine(read_klipper(path), path)

    def write(self, mechanism: Mechanism, path: Path) -> Written:
        """See `Format.write`."""
        from tauloop.formats.printers.from_machine import printer_of
        from tauloop.formats.printers.klipper import klipper_text

        return self._written(path, *klipper_text(printer_of(mechanism)))


@final
class Marlin(_Firmware):
    """Marlin's Configuration.h: the definitions of a delta, or its M665 and M666."""

    name, title, endings = "marlin", "a Marlin configuration", (".h",)

    def read(self, path: Path, side: Path | None, options: ImportOptions | None) -> Mechanism:
        """See `Format.read`."""
        from tauloop.formats.printers.gcode import read_marlin

        return self._machine(read_marlin(path), path)

    def write(self, mechanism: Mechanism, path: Path) -> Written:
        """See `Format.write`."""
        from tauloop.formats.printers.from_machine import printer_of
        from tauloop.formats.printers.gcode import marlin_text

        return self._written(path, *marlin_text(printer_of(mechanism)))


@final
class RepRap(_Firmware):
    """RepRapFirmware's config.g: M665 and M666 of a delta, or M669 K6 of a Hangprinter."""

    name, title, endings = "reprap", "a RepRapFirmware configuration", (".g", ".gcode")

    def read(self, path: Path, side: Path | None, options: ImportOptions | None) -> Mechanism:
        """See `Format.read`."""
        from tauloop.formats.printers.gcode import read_reprap

        return self._machine(read_reprap(path), path)

    def write(self, mechanism: Mechanism, path: Path) -> Written:
        """See `Format.write`."""
        from tauloop.formats.printers.from_machine import printer_of
        from tauloop.formats.printers.gcode import reprap_text

        return self._written(path, *reprap_text(printer_of(mechanism)))
