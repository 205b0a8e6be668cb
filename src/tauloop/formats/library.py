"""Loading of machines from a file, from text, or by the name of a shipped machine."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tauloop.common.errors import DescriptionError, InputError, Problem
from tauloop.common.extensions import Registry
from tauloop.common.keywords import keywords
from tauloop.formats.format import Format
from tauloop.formats.options import ImportOptions
from tauloop.formats.own import Klipper, MachineFile, Marlin, Mjcf, RepRap, Sdf, Urdf
from tauloop.mechanism.description.reader import read_machine
from tauloop.mechanism.description.yaml_nodes import read_text
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.shipped import GALLERY, SHIPPED, shipped_machines
from tauloop.mechanism.suggestions import suggestion

if TYPE_CHECKING:
    from tauloop.formats.xml.meshes import MeshCopies

#: Maximum length of the name of a shipped machine, characters; a longer word is a path.
MAX_NAME_LENGTH = 100
_OWN_FORMATS: tuple[Format, ...] = (
    MachineFile(),
    Mjcf(),
    Sdf(),
    Urdf(),
    Klipper(),
    Marlin(),
    RepRap(),
)
#: All formats by name: Tauloop's own, then those of installed packages.
FORMATS = Registry(
    "tauloop.formats", Format, {candidate.name: candidate for candidate in _OWN_FORMATS}
)


def machine_path(name: str) -> Path:
    """Return the file of a shipped machine.

    Raises:
        DescriptionError: there is no machine with this name.
    """
    paths = (
        [folder / f"{name}.yaml" for folder in (SHIPPED, GALLERY)] if is_shipped_name(name) else []
    )
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        hint = suggestion(name, shipped_machines())
        hint = hint or f"there are {', '.join(shipped_machines())}."
        problem = Problem(
            where=name,
            what="no machine with this name is shipped with Tauloop",
            remedy=f"{hint} For a file, write ./{name}",
        )
        raise DescriptionError(problem)
    return path


def is_shipped_name(name_or_path: str | Path) -> bool:
    """Return whether a name is a plain word and therefore refers to a shipped machine."""
    return (
        isinstance(name_or_path, str)
        and re.fullmatch(rf"\w{{1,{MAX_NAME_LENGTH}}}", name_or_path) is not None
    )


def source_path(name_or_path: str | Path) -> Path:
    """Return the file that `load` reads.

    Raises:
        DescriptionError: a plain word is not the name of a shipped machine.
    """
    return machine_path(str(name_or_path)) if is_shipped_name(name_or_path) else Path(name_or_path)


def format_of(path: Path) -> Format:
    """Return the format of a file, by its extension and, if formats share one, by its content.

    A file that no format claims is a machine file.
    """
    own_format = next((candidate for candidate in _OWN_FORMATS if candidate.claims(path)), None)
    return own_format or next(
        (candidate for candidate in FORMATS.values() if candidate.claims(path)), _OWN_FORMATS[0]
    )


def motor_remedy(file: str) -> str:
    """Return advice on how to state a motor in the description that a machine was read from.

    Args:
        file: `Mechanism.file`.
    """
    format_ = format_of(Path(file))
    option = "" if "motors" in format_.refused else ", or name the joints: `--motors JOINT,...`"
    return f"state which joints have motors: {format_.motor_element}{option}"


@keywords(ImportOptions)
def load(
    name_or_path: str | Path,
    side: str | Path | None = None,
    *,
    options: ImportOptions | None = None,
) -> Mechanism:
    """Return the mechanism of a shipped machine, a machine file or a description of another tool.

    Args:
        name_or_path: a plain word is the name of a shipped machine (``./word`` is a file); anything
            else is a path. The file extension determines the format: ``.urdf`` is URDF, ``.sdf``
            and ``.world`` are SDF. For ``.xml`` and ``.mjcf`` the root element determines whether
            the file is URDF or MJCF. ``.cfg`` is Klipper, ``.h`` Marlin and ``.g`` RepRapFirmware.
            Installed packages may add extensions. Any other file is read as a machine file.
        side: side file of a URDF or SDF.
        options: options for descriptions of other tools.

    Raises:
        DescriptionError: there is no such machine or file, or the file has problems; it lists all.
        InputError: the side file or options do not apply to this format.

    Examples:
        >>> import tauloop as tl
        >>> tl.load("delta").name
        'delta'
    """
    is_name, path = is_shipped_name(name_or_path), source_path(name_or_path)
    format_ = _OWN_FORMATS[0] if is_name else format_of(path)
    side = Path(side) if side is not None else None
    if side is not None or options is not None:
        format_.require_meaning(name_or_path, side, options)
    if is_name:
        return shipped_machine(path)
    return format_.read(path, side, options)


@cache
def shipped_machine(path: Path) -> Mechanism:
    """Return the mechanism of a shipped machine, whose file does not change."""
    return read_machine(read_text(path), path.name, path.parent)


@keywords()
def loads(text: str, file: str = "<text>") -> Mechanism:
    """Return the mechanism that the text of a machine file describes.

    Args:
        text: the description.
        file: a file name for messages.

    Raises:
        DescriptionError: all problems of the text.
        InputError: the text is XML, or looks like the name of a machine or a path.

    Examples:
        >>> import tauloop as tl
        >>> text = tl.dumps(tl.load("delta")).replace("name: delta", "name: mine")
        >>> tl.loads(text).name
        'mine'
    """
    first_line = text.strip("\ufeff \t\r\n").partition("\n")[0] if isinstance(text, str) else ""
    if re.match(r"<[A-Za-z!?]", first_line):
        what = f"{first_line[:40]!r} starts an XML text, not the text of a machine file"
        remedy = "write it to a .urdf, .sdf or .xml file and read that with `tl.load`"
        raise InputError.of("text", what, remedy)
    if first_line == text and re.fullmatch(r"[\w./\\~-]+", text):
        what = f"{text[:40]!r} looks like a name or path, not like the text of a machine file"
        raise InputError.of("text", what, "use `tl.load`, which takes paths and names")
    return read_machine(text, file)


def mechanism_of(machine: object) -> Mechanism:
    """Return the mechanism of a machine in any form that public functions accept.

    Args:
        machine: a mechanism, a model or another result that has one, a path, or the name of a
            shipped machine.

    Raises:
        DescriptionError: there is no such machine or file, or the file is invalid.
        InputError: the argument is none of these.
    """
    if isinstance(machine, Mechanism):
        return machine
    if isinstance(machine, str | Path):
        return load(machine)
    inner = getattr(machine, "mechanism", None)
    if isinstance(inner, Mechanism):
        return inner
    raise InputError.of(
        "machine",
        f"{machine!r:.80} is of type {type(machine).__name__}",
        "give a Model, a Mechanism, a path, or the name of a shipped machine",
    )


@keywords()
def dumps(machine: object, meshes: MeshCopies | None = None) -> str:
    """Return the text of a machine file for a machine.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        meshes: receives triangles that have no file; the text contains the names of the new files.

    Returns:
        Text from which `tauloop.formats.loads` reads a mechanism with the same parameter table
            (values, units, bounds, groups, status, source, order), elements and expressions. An
            independent parameter keeps its unit if a number of that unit gives exactly its value;
            otherwise it is written in SI units.

    Raises:
        DescriptionError: the file would be rejected when it is read (a length that is not positive,
            a parameter without a required unit); line numbers refer to the text.

    Examples:
        >>> import tauloop as tl
        >>> machine = tl.load("delta")
        >>> tl.loads(tl.dumps(machine)).parameters == machine.parameters
        True
    """
    from tauloop.formats.writing.yaml_writer import dumps as yaml_text  # slow to import
    from tauloop.formats.xml.meshes import MeshCopies

    if meshes is not None and not isinstance(meshes, MeshCopies):
        raise InputError.of("meshes", f"is of type {type(meshes).__name__}", "give MeshCopies(...)")

    return yaml_text(mechanism_of(machine), meshes)
