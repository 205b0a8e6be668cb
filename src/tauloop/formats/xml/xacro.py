"""Expansion of xacro templates of URDF and SDF in a separate process (`xacro_process`)."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tauloop.common.errors import DescriptionError, InputError, Problems
from tauloop.common.records import dataclass
from tauloop.formats.options import ImportOptions
from tauloop.formats.xml.nodes import MAX_FILE_BYTES, XmlNode, parse_xml, read_xml

#: Time limit of an expansion, s.
EXPANSION_TIMEOUT = 20
_PROGRAM = Path(__file__).with_name("xacro_process.py")
_PREFIX, _ENDING, _ASSIGNS = "xacro:", ".xacro", ":="
#: Packages that the process needs.
_REQUIRED_PACKAGES = ("xacro", "yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlSource:
    """A description as XML, after expansion if it was a xacro.

    Attributes:
        root: the root element.
        file: file name for messages; line numbers of a xacro refer to the expanded text.
        notes: findings for the user.
    """

    root: XmlNode
    file: str
    notes: tuple[str, ...] = ()


def read_source(path: str | Path, options: ImportOptions) -> XmlSource:
    """Return the root element of a URDF or SDF after expansion of xacro.

    Raises:
        DescriptionError: the file is invalid, or is a xacro that cannot be expanded.
        InputError: arguments are invalid, or are given for a file that is not a xacro template.
    """
    path = Path(path)
    root = read_xml(path)
    arguments = _arguments(options.xacro)
    if not is_xacro(path, root):
        if arguments:
            what = f"arguments are given, but {path} is not a xacro template"
            raise InputError.of("xacro", what, "omit the arguments NAME:=VALUE")
        return XmlSource(root=root, file=str(path))
    reply = _expanded(path, arguments, options.package_folders)
    file = f"{path} (expanded)"
    values = "".join(f", {name} {text!r}" for name, text in arguments.items())
    notes = (f"expanded by xacro{values}", *(f"xacro: {warning}" for warning in reply["warnings"]))
    return XmlSource(root=parse_xml(str(reply["text"]), file), file=file, notes=notes)


def is_xacro(path: Path, root: XmlNode) -> bool:
    """Return whether a file is a xacro template.

    It has elements of xacro, or an expression and xacro's file extension or namespace.
    """
    nodes = list(root.walk())
    if any(_is_xacro_element(node) for node in nodes):
        return True
    if path.suffix.lower() != _ENDING and "xmlns:xacro" not in root.attributes:
        return False
    return any(_has_expression([*node.attributes.values(), node.content]) for node in nodes)


def _is_xacro_element(node: XmlNode) -> bool:
    """Return whether an element or one of its attributes belongs to xacro."""
    return any(name.startswith(_PREFIX) for name in (node.tag, *node.attributes))


def _has_expression(texts: Iterable[str]) -> bool:
    return any("${" in text or "$(" in text for text in texts)


def _arguments(texts: Iterable[str]) -> dict[str, str]:
    """Return the arguments from texts ``name:=value``."""
    arguments: dict[str, str] = {}
    problems = Problems()
    for text in texts:
        name, assigns, value = text.partition(_ASSIGNS)
        if not assigns or not name.strip():
            problems.add("xacro", f"{text!r} is not of the form NAME:=VALUE", "write NAME:=VALUE")
        elif name.strip() in arguments:
            problems.add("xacro", f"{name.strip()!r} is given twice", "write it once")
        else:
            arguments[name.strip()] = value
    InputError.raise_if_any(problems)
    return arguments


def _expanded(
    path: Path, arguments: Mapping[str, str], folders: Iterable[str | Path]
) -> dict[str, Any]:
    """Return the expanded text of a template, with warnings."""
    missing = [name for name in _REQUIRED_PACKAGES if _import_folder(name) is None]
    if missing:
        what = "the file is a xacro template, which requires the package xacro"
        plain_name = f"NAME{_plain_ending(path)}"
        remedy = (
            f"pip install 'tauloop[xacro]', or expand it first: `xacro NAME.xacro > {plain_name}`"
        )
        raise DescriptionError.of("", what, remedy, file=str(path))
    request = {
        "file": str(path.absolute()),
        "arguments": dict(arguments),
        "folders": [str(Path(folder).absolute()) for folder in folders],
        "paths": [_import_folder(name) for name in _REQUIRED_PACKAGES],
        "seconds": EXPANSION_TIMEOUT,
        "bytes": MAX_FILE_BYTES,
    }
    command = [sys.executable, "-I", "-B", str(_PROGRAM)]
    try:
        process = subprocess.run(
            command,
            input=json.dumps(request),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=EXPANSION_TIMEOUT,
            check=False,
            encoding="utf-8",
        )
    except subprocess.TimeoutExpired:
        what = f"the expansion took more than {EXPANSION_TIMEOUT} s"
        remedy = "simplify the template, or expand it with `xacro`"
        raise DescriptionError.of("", what, remedy, file=str(path)) from None
    except OSError as error:
        what = f"its process cannot be started: {error.strerror}"
        raise DescriptionError.of("", what, "expand it with `xacro`", file=str(path)) from None
    try:
        reply = json.loads(process.stdout)
    except ValueError:
        what = f"xacro ended without a result (exit code {process.returncode})"
        raise DescriptionError.of(
            "", what, "expand it with `xacro` to see why", file=str(path)
        ) from None
    if "text" not in reply:
        file = reply.get("file") or str(path)
        raise DescriptionError.of(reply["where"], reply["what"], reply["remedy"], file=file)
    return dict(reply)


def _import_folder(name: str) -> str | None:
    """Return the folder from which a package is imported; None if it is not installed."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:  # a folder with this name has no origin
        return None
    return str(Path(spec.origin).absolute().parents[1])


def _plain_ending(path: Path) -> str:
    return Path(path.stem).suffix or ".urdf"
