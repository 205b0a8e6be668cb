"""Loading of machines: from a file, from text, or by the name of one that comes with Tauloop."""

from __future__ import annotations

from pathlib import Path

from tauloop.errors import InputError, Problem
from tauloop.formats.options import ImportOptions
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.reader import read_machine
from tauloop.mechanism.shipped import is_shipped_name, source_path
from tauloop.mechanism.yaml_nodes import read_text


def load(
    name_or_path: str | Path,
    side: str | Path | None = None,
    *,
    options: ImportOptions | None = None,
) -> Mechanism:
    """A mechanism from the name of a shipped machine, from a machine file, or from a description of another tool.

    Args:
        name_or_path: a plain word is a shipped name (``./word`` is a file); anything else is a path. A file that ends
            in ``.urdf`` is read as URDF; one in ``.xml`` or ``.mjcf`` as what its root element says, URDF or MJCF; any
            other as a machine file.
        side: side file of a URDF.
        options: of imported descriptions.

    Raises:
        DescriptionError: there is no such machine or file, or the file is wrong; all problems at once.
        InputError: a side file or options where they mean nothing.
    """
    is_name, path = is_shipped_name(name_or_path), source_path(name_or_path)
    kind = "a machine file" if is_name else file_kind(path)
    if side is not None and kind != "URDF":
        what, remedy = f"{name_or_path} is not a URDF file but {kind}", "only a URDF has a side file: leave it out"
        raise InputError(Problem(where="side", what=what, remedy=remedy))
    if options is not None and options.keyframe and kind == "URDF":
        what, remedy = f"{name_or_path} is a URDF file, which has no keyframes", "leave it out"
        raise InputError(Problem(where="keyframe", what=what, remedy=remedy))
    if options is not None and options.origins and kind == "MJCF":
        what = f"{name_or_path} is an MJCF file, whose zeros are structure"
        raise InputError(Problem(where="origins", what=what, remedy="leave it out, or convert it to URDF"))
    # the readers of other tools' files are imported by whoever has such a file: they take longer than all the rest
    if kind == "URDF":
        from tauloop.formats.urdf import load_urdf

        return load_urdf(path, side, options=options or ImportOptions())
    if kind == "MJCF":
        from tauloop.formats.mjcf import load_mjcf

        return load_mjcf(path, options=options or ImportOptions())
    if options is not None:
        what = f"{name_or_path} is a machine file, which says everything itself"
        raise InputError(Problem(where="options", what=what, remedy="leave them out, or change the file"))
    return read_machine(read_text(path), path.name if is_name else str(path), path.parent)


def file_kind(path: Path) -> str:
    """What a file is by its extension, and by its root element where the extension leaves it open.

    Returns:
        "URDF", "MJCF" or "a machine file".
    """
    extension = path.suffix.lower()
    if extension in (".urdf", ".xacro", ".sdf", ".world"):  # what is no URDF among them is refused by its name
        return "URDF"
    if extension in (".xml", ".mjcf"):
        from tauloop.formats.xml_nodes import read_xml

        return "MJCF" if read_xml(path).tag == "mujoco" else "URDF"
    return "a machine file"


def loads(text: str, file: str = "<text>") -> Mechanism:
    """A mechanism from the text of a machine file.

    Args:
        text: the description.
        file: a name for it, for messages.

    Raises:
        DescriptionError: all problems of the text at once.
    """
    return read_machine(text, file)
