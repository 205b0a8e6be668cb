"""Files of an export, as texts or written into a folder; either all files are written or none."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any

from tauloop.common.errors import InputError
from tauloop.common.plain import OMITTED, PlainData, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Status
from tauloop.common.shown import ReprMixin

#: C's keyword for pointers that share no memory. C++ compilers have a different keyword.
RESTRICT = """\
#ifndef TAULOOP_RESTRICT
#ifdef __cplusplus
#define TAULOOP_RESTRICT __restrict
#else
#define TAULOOP_RESTRICT restrict
#endif
#endif
"""
#: An argument that is a two-dimensional array, declared with `restrict`. In C++ it must be a pointer
#: to its rows, which is the same type in C.
_LANE_ARRAY = re.compile(r"\b(\w+)\[restrict\](?=\[)")


def as_c_and_cpp(text: str) -> str:
    """Return the text of a C file, changed so that C++ compilers accept it. `restrict` is a macro."""
    body = re.sub(r"\brestrict\b", "TAULOOP_RESTRICT", _LANE_ARRAY.sub(r"(*restrict \1)", text))
    if body == text:
        return text
    first = re.search(r"^#", body, re.MULTILINE)
    start = first.start() if first else 0
    return f"{body[:start]}{RESTRICT}{body[start:]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFiles(PlainData, ReprMixin):
    """Files of an export.

    Attributes:
        name: name of the exported object in its files.
        files: contents by file name.
        written: paths of the files, if they were written.
    """

    name: str = field(metadata=OMITTED)
    files: Mapping[str, Any] = field(metadata=OMITTED)
    written: tuple[Path, ...] = field(metadata=json_keys("files"))

    @property
    @in_json()
    def status(self) -> Status:
        """OK, because an export that fails raises an error."""
        return Status.OK


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCode(ExportedFiles):
    """Files in C with their manifest.

    Attributes:
        manifest: description of the files as plain data. It is also written as a file.
    """

    manifest: Mapping[str, Any]


def written_files(files: Mapping[str, str | bytes], folder: Path) -> tuple[Path, ...]:
    """Write files into a folder and return their paths; scripts become executable.

    All files are written to a temporary folder first and then renamed.

    Raises:
        InputError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".export-") as scratch:
            for file, text in files.items():
                content = text.encode() if isinstance(text, str) else text
                (Path(scratch) / file).parent.mkdir(parents=True, exist_ok=True)
                (Path(scratch) / file).write_bytes(content)
                if content.startswith(b"#!"):
                    (Path(scratch) / file).chmod(0o755)
            for file in files:
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (Path(scratch) / file).replace(folder / file)
    except OSError as error:
        message = f"cannot be written: {error.strerror or error}"
        raise InputError.of(str(folder), message, "name a folder that you may write to") from error
    return tuple(folder / file for file in files)


def refuse_another_project(folder: Path, name: str) -> None:
    """Reject a folder with the CMakeLists.txt of another project.

    Raises:
        InputError: CMakeLists.txt belongs to another project.
    """
    path = folder / "CMakeLists.txt"
    with suppress(OSError):
        text = path.read_text(encoding="utf-8", errors="replace")
        project = re.search(r"^\s*project\s*\(\s*([^\s)]+)", text, re.M | re.I)
        if project is None or project[1] != name:
            owner = "something else" if project is None else f"the project {project[1]}"
            message = f"belongs to {owner}, but {name} also needs a CMakeLists.txt"
            raise InputError.of(str(path), message, "choose a folder for this export only")
