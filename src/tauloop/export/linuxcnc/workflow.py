"""Export of a machine to LinuxCNC: a kinematics module, and a headless simulation of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from tauloop.common.errors import InputError
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import content, plain, tauloop_version
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.source import c_name, comment
from tauloop.export.c.exported_files import ExportedCode, written_files
from tauloop.export.linuxcnc.configuration import (
    FEED,
    geometry_hash,
    geometry_text,
    hal_text,
    headless_text,
    ini_text,
    joints_text,
)
from tauloop.export.linuxcnc.machine import (
    MODULE_PINS,
    MachineLayout,
    Pin,
    geometry_pins,
    machine_layout,
)
from tauloop.export.linuxcnc.program import program_text, reachable_moves
from tauloop.export.linuxcnc.source import (
    KinematicFunctions,
    header_text,
    kinematic_functions,
    load_correction,
)
from tauloop.mechanism.description import units
from tauloop.mechanism.model import Mechanism
from tauloop.model.model import MachineSource, Model, modeled

#: Maximum number of characters of a machine's name in the names of component and files; HAL limits
#: the length of names, and the rest is for the pins.
MAX_STEM_LENGTH = 20
#: License of the module's own text; LinuxCNC requires every module to declare the GPL.
LICENSE = "GPL-2.0-or-later"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinuxcncOptions(Options):
    """Name of a kinematics module, and settings of its simulation.

    Attributes:
        name: prefix of all names, up to 20 characters; default: the machine's name.
        max_acceleration: largest acceleration along the axes in the LinuxCNC simulation, m/s^2.
        servo_period: period of the servo thread in the LinuxCNC simulation, s.
        compensation: correct the joints for the deflection of the machine by its weight, and by the
            wrench and the temperatures on HAL pins.

    Examples:
        >>> import tauloop as tl
        >>> tl.LinuxcncOptions(name="printer", max_acceleration=2.0).servo_period
        0.001
    """

    name: str | None = option(None, flag="")
    max_acceleration: float = option(
        1.0,
        above=0.0,
        below=10000.0,
        metavar="LIMIT",
        unit=units.ACCELERATION,
    )
    servo_period: float = option(0.001, least=0.0001, most=0.01, metavar="TIME", unit=units.TIME)
    compensation: bool = option(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinuxcncExport(ExportedCode):
    """A kinematics module with its simulation; `name` is the name of the HAL component.

    Attributes:
        pins: HAL pins of the geometry.
        layout: the machine's joints and axes.
        loads: pins of the wrench (N, N m) and of temperatures (K); empty without compensation.
    """

    pins: tuple[Pin, ...] = field(metadata=OMITTED)
    layout: MachineLayout = field(metadata=OMITTED)
    loads: tuple[str, ...] = ()


@keywords(LinuxcncOptions)
def export_linuxcnc(
    machine: MachineSource,
    folder: str | Path | None = None,
    options: LinuxcncOptions | None = None,
    *,
    progress: Progress | None = None,
) -> LinuxcncExport:
    """Export a kinematics module for LinuxCNC in C, with a headless simulation.

    The geometry is on HAL pins. The module computes in mm and degrees. Its inverse kinematics
    returns the joints for the tool's x, y, z, a, b, c with the rotation Rz(c) Ry(b) Rx(a), on the
    branch of the reference pose. Its forward kinematics starts from the last pose. Both return -1
    if the pose is out of reach or singular, or if an input is not a number. Equal machines give
    equal texts.

    With `compensation`, the inverse kinematics returns the joints at which the loaded, warm machine
    has its tool at the pose (see `compensate`), and the forward kinematics is its inverse. Wrench
    and temperatures are read from HAL pins, which start at zero. They must change slowly because the
    joints follow them. Deflections are computed with the geometry of the file.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        folder: folder for the files. It is created if missing, and its other files are left alone.
            Either all files are written or none. Without a folder, the result only contains the
            texts.
        options: name of the module, and settings of its simulation.
        progress: called with the completed and the total number of stages.

    Returns:
        The export: texts of the files by name, pins of the module, and the written paths.

    Raises:
        InputError: LinuxCNC cannot drive the machine, the name cannot be converted to a C
            identifier, the machine does not reach its ranges, or the folder cannot be written.
        AssemblyError: the machine cannot be assembled as described.

    Examples:
        >>> import tauloop as tl
        >>> export = tl.export_linuxcnc(tl.load("five_bar"))
        >>> export.name, [pin.name for pin in export.pins]
        ('five_bar_kins', ['motor-distance', 'crank-length', 'link-length'])
    """
    model = modeled(machine)
    options = options or LinuxcncOptions()
    mechanism = model.mechanism
    stages = Stages(progress, 3)
    stem, module, layout, functions, pins = _parts(model, options.name)
    correction = None
    if options.compensation:
        correction = load_correction(model, module, {*MODULE_PINS, *(pin.name for pin in pins)})
    loads = () if correction is None else correction.pins
    stages.done()
    start, moves = reachable_moves(model, layout)
    stages.done()
    note = f"generated by Tauloop from the machine {mechanism.name!r}; do not edit"
    acceleration = 1e3 * options.max_acceleration
    files = {
        f"{module}.c": _module_text(module, note, mechanism),
        f"{module}.h": header_text(
            module,
            f"{module}: {note}; may be used under any terms",
            model,
            layout,
            functions,
            pins,
            correction,
        ),
        f"{stem}.ini": ini_text(stem, module, layout, acceleration, options.servo_period),
        f"{stem}.hal": hal_text(stem, module, layout),
        f"{stem}_geometry.hal": geometry_text(
            module, f"geometry of the machine {mechanism.name!r}", pins
        ),
        f"{stem}.ngc": program_text(
            f"{stem}: lines, corners and an arc", layout, start, moves, FEED
        ),
        f"{stem}.tbl": "T1 P1\n",
        f"{stem}_headless.py": headless_text(),
    }
    manifest = _manifest(module, mechanism, layout, pins, files)
    if correction is not None:
        manifest["loads"] = dict(zip(correction.pins, correction.units, strict=True))
    files[f"{module}_manifest.json"] = (
        json.dumps(manifest, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
    )
    stages.done()
    written = () if folder is None else written_files(files, Path(folder))
    return LinuxcncExport(
        name=module,
        pins=pins,
        layout=layout,
        loads=loads,
        manifest=manifest,
        files=files,
        written=written,
    )


def geometry_hal(machine: MachineSource, name: str | None = None) -> str:
    """Return HAL lines that set a machine's geometry on the pins of its kinematics module.

    Args:
        machine: the machine with the values to set, such as `Calibration.mechanism`; the module may
            have been exported from the nominal machine.
        name: prefix of the module's name in its export; default: the machine's name.

    Raises:
        InputError, AssemblyError: see `export_linuxcnc`.

    Examples:
        >>> import tauloop as tl
        >>> machine = tl.load("five_bar").with_values({"crank_length": 0.2503})
        >>> print(tl.export.linuxcnc.geometry_hal(machine).splitlines()[5])
        setp five_bar_kins.crank-length 250.3
    """
    model = modeled(machine)
    _, module, _, _, pins = _parts(model, name)
    return geometry_text(module, f"geometry of the machine {model.mechanism.name!r}", pins)


def joints_ini(machine: MachineSource, options: LinuxcncOptions | None = None) -> str:
    """Return the joint sections of an INI file for ``#INCLUDE``, with home positions.

    The home positions are computed from the geometry of the machine.

    Args:
        machine: the machine with the values to set, such as `Calibration.mechanism`.
        options: options of the export.

    Raises:
        InputError, AssemblyError: see `export_linuxcnc`.

    Examples:
        >>> import tauloop as tl
        >>> machine = tl.load("five_bar").with_values({"crank_length": 0.2503})
        >>> [line for line in tl.export.linuxcnc.joints_ini(machine).splitlines() if line.startswith("HOME =")]
        ['HOME = 130.767108243763', 'HOME = 49.232891756237']
    """
    model = modeled(machine)
    options = options or LinuxcncOptions()
    note = f"joints of the machine {model.mechanism.name!r}"
    return joints_text(note, machine_layout(model), 1e3 * options.max_acceleration)


def _parts(
    model: Model, name: str | None
) -> tuple[str, str, MachineLayout, KinematicFunctions, tuple[Pin, ...]]:
    """Return the prefix of file names, the component's name, the layout, the functions and the pins."""
    if model.free:
        message = f"has free parameters ({', '.join(model.free)}), but the module reads parameters "
        message += "from its pins"
        remedy = "pass the mechanism, or a model without free parameters"
        raise InputError.of("machine", message, remedy)
    stem = c_name(model.mechanism.name if name is None else name)[:MAX_STEM_LENGTH]
    layout = machine_layout(model)
    module = f"{stem}_kins"
    functions = kinematic_functions(model)
    names = [functions.theta[k] for k in functions.used]
    return stem, module, layout, functions, geometry_pins(module, model.mechanism, layout, names)


def _module_text(module: str, note: str, mechanism: Mechanism) -> str:
    """Return the C text of the module, which starts with its build command and its version."""
    head = (
        f"/* {comment(f'{module}: {note}')}. Build it as root: halcompile --install {module}.c */"
    )
    definitions = (
        '#pragma GCC optimize("O2") /* LinuxCNC sets -Os; with -O2 six legs are a third faster */'
    )
    definitions += f'\n#define TAULOOP_MADE "Tauloop {tauloop_version()}, machine {_machine_hash(mechanism)[:16]}"'
    return f'{head}\n{definitions}\n#include "{module}.h"\n\n{c_file("tauloop.export.linuxcnc", "module.c")}'


def _manifest(
    module: str,
    mechanism: Mechanism,
    layout: MachineLayout,
    pins: tuple[Pin, ...],
    files: Mapping[str, str],
) -> dict[str, object]:
    """Return the manifest as plain data. It contains no times and no paths."""
    data = {
        "tauloop": tauloop_version(),
        "name": module,
        "licence": LICENSE,
        "machine": {"name": mechanism.name, "sha256": _machine_hash(mechanism)},
        "axes": "".join(axis.letter for axis in layout.axes),
        "joints": [
            {"name": joint.name, "unit": "deg" if joint.is_angular else "mm"}
            for joint in layout.joints
        ],
        "pins": pins,
        "geometry": geometry_hash(pins),
        "files": {file: _hash(text) for file, text in files.items()},
    }
    return dict(plain(data))


def _machine_hash(mechanism: Mechanism) -> str:
    return _hash(content(replace(mechanism, file="")))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
