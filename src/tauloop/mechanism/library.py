"""Loading of machines: from a file, from text, or one of those that come with Tauloop."""

from __future__ import annotations

import re
from pathlib import Path

from tauloop.errors import DescriptionError, InputError, Problem
from tauloop.mechanism.formats.mjcf import load_mjcf
from tauloop.mechanism.formats.options import ImportOptions
from tauloop.mechanism.formats.urdf import load_urdf
from tauloop.mechanism.formats.xml_nodes import read_xml
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.reader import read_machine
from tauloop.mechanism.suggestions import suggestion
from tauloop.mechanism.yaml_nodes import read_text

_SHIPPED = Path(__file__).parent / "machines"


def shipped_machines() -> tuple[str, ...]:
    """Names of the machines that come with Tauloop, in alphabetical order."""
    return tuple(sorted(path.stem for path in _SHIPPED.glob("*.yaml")))


def machine_path(name: str) -> Path:
    """File of a shipped machine.

    Raises:
        DescriptionError: there is no machine of that name.
    """
    if name not in shipped_machines():
        problem = Problem(
            where=name,
            what="no machine of this name comes with Tauloop",
            remedy=(suggestion(name, shipped_machines()) or f"there are {', '.join(shipped_machines())}")
            + f"; a file of this name is written ./{name}",
        )
        raise DescriptionError(problem)
    return _SHIPPED / f"{name}.yaml"


def source_path(name_or_path: str | Path) -> Path:
    """The file that `load` reads.

    Raises:
        DescriptionError: a plain word that no shipped machine has for a name.
    """
    return machine_path(str(name_or_path)) if _is_name(name_or_path) else Path(name_or_path)


def _is_name(name_or_path: str | Path) -> bool:
    return isinstance(name_or_path, str) and re.fullmatch(r"\w+", name_or_path) is not None


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
    is_name, path = _is_name(name_or_path), source_path(name_or_path)
    kind = "a machine file" if is_name else file_kind(path)
    if side is not None and kind != "URDF":
        what, remedy = f"{name_or_path} is not a URDF file but {kind}", "only a URDF has a side file: leave it out"
        raise InputError(Problem(where="side", what=what, remedy=remedy))
    if kind == "URDF":
        return load_urdf(path, side, options=options or ImportOptions())
    if kind == "MJCF":
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
    if extension == ".urdf":
        return "URDF"
    if extension in (".xml", ".mjcf"):
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
