"""Export of a transmission (`ActuatorMap`): C code, a Python module, a package for ros2_control."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from tauloop.common.errors import InputError, Problems
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, listed, option
from tauloop.common.plain import OMITTED, in_json
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Status
from tauloop.compiler.c.printing.source import c_name
from tauloop.dynamics import ActuatorMap
from tauloop.export.c.export import Export
from tauloop.export.c.exported_files import ExportedFiles, refuse_another_project, written_files
from tauloop.export.transmission.array_code import array_module
from tauloop.export.transmission.c_functions import c_export
from tauloop.export.transmission.ros2_control import package_files, package_name
from tauloop.model.model import MachineSource

#: Names of the formats; "double" and "single" are C code in this precision.
FORMATS = ("double", "single", "python", "ros2")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransmissionOptions(Options):
    """Joints of an actuator map, and the files to write.

    Attributes:
        joints: names of the joints, separated by commas, in the order of all arrays; default: the
            independent coordinates of the machine.
        formats: files to write: C in double or single precision, a Python module for NumPy, JAX and
            PyTorch, a package for ros2_control.
        name: prefix of all generated names; default: the machine's name.
        seed: seed of the random states in the test programs, and of the states at which single
            precision is compared with double.

    Examples:
        >>> import tauloop as tl
        >>> tl.TransmissionOptions(joints=("pitch", "roll"), formats=("python",)).formats
        ('python',)
    """

    joints: tuple[str, ...] = option((), read=listed)
    formats: tuple[str, ...] = option(FORMATS, read=listed, choices=FORMATS)
    name: str | None = None
    seed: int = option(0, least=0)

    def _note_mismatches(self, problems: Problems) -> None:
        """Add a problem if the list of formats is empty."""
        if not self.formats:
            problems.add("formats", "is empty", f"choose from {', '.join(FORMATS)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransmissionExport(ExportedFiles):
    """Exported files of an actuator map; every C name starts with `name`.

    Attributes:
        joints, actuators: names, in the order of all arrays.
        code: exported C code by precision, "double" or "single".
    """

    joints: tuple[str, ...]
    actuators: tuple[str, ...]
    code: Mapping[str, Export] = field(metadata=OMITTED)

    @property
    @in_json()
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Largest relative errors of single precision."""
        return tuple(item for export in self.code.values() for item in export.diagnostics)

    @property
    def status(self) -> Status:
        """`DOUBTFUL` if single precision is not accurate enough, otherwise `OK`.

        An export that fails raises an error.
        """
        return Status.OK if all(item.is_good for item in self.diagnostics) else Status.DOUBTFUL


@keywords(TransmissionOptions)
def export_transmission(
    machine: MachineSource,
    folder: str | Path | None = None,
    options: TransmissionOptions | None = None,
    *,
    progress: Progress | None = None,
) -> TransmissionExport:
    """Export the map between joints and the motors that move them, in both directions.

    Every format computes positions, velocities and efforts in both directions, the Jacobian, the
    reflected inertia, and a status for every sample. The source code depends only on the machine
    and the options.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        folder: folder for the files; without it, the result only contains the source code.
        options: the joints and the files to write.
        progress: called with the completed and the total number of stages.

    Returns:
        The exported files, with names of joints and actuators.

    Raises:
        InputError: the joints are unsuitable (see `ActuatorMap`), the name cannot be converted to
            a C identifier, or the folder cannot be written.
        AssemblyError, PoseError: the machine does not assemble, or its reference pose is singular.
        EngineError: single precision needs a C compiler, and none was found.

    Examples:
        >>> import tauloop as tl
        >>> exported = tl.export_transmission("four_bar", joints=["rocker_pin"], formats=["python"])
        >>> sorted(exported.files)
        ['python/four_bar_map.py']
    """
    options = options or TransmissionOptions()
    actuator_map = ActuatorMap(machine, options.joints)
    if actuator_map.model.free:
        what = f"has free parameters: {', '.join(actuator_map.model.free)}"
        raise InputError.of(
            "machine", what, "export a model without `free`; all parameters become constants"
        )
    mechanism = actuator_map.model.mechanism
    stem = c_name(mechanism.name if options.name is None else options.name)
    formats = [name for name in FORMATS if name in options.formats]
    stages = Stages(progress, len(formats))
    source: dict[str, Any] = {
        "machine": {"name": mechanism.name},
        "joints": actuator_map.joints,
        "actuators": actuator_map.actuators,
    }
    files: dict[str, str] = {}
    code: dict[str, Export] = {}
    for kind in stages.over(formats):
        if kind == "python":
            files[f"python/{stem}_map.py"] = array_module(actuator_map, stem)
            continue
        precision = "single" if kind == "single" else "double"
        suffix = "_single" if kind == "single" else ""
        export = code.get(precision) or c_export(
            actuator_map, f"{stem}{suffix}", source, precision=precision, seed=options.seed
        )
        code[precision] = export
        if kind == "ros2":
            files |= package_files(actuator_map, stem, export)
        else:
            files |= {f"c_{precision}/{name}": text for name, text in export.files.items()}
    if folder is not None and "ros2" in formats:
        refuse_another_project(Path(folder) / package_name(stem), package_name(stem))
    written = () if folder is None else written_files(files, Path(folder))
    return TransmissionExport(
        name=stem,
        files=files,
        written=written,
        joints=actuator_map.joints,
        actuators=actuator_map.actuators,
        code=code,
    )
