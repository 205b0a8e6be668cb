"""What every export gives: files as texts, and written into a folder, all or none."""

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

#: C's word for pointers that share no memory; C++ lacks it, and its compilers have another.
RESTRICT = """\
#ifndef TAULOOP_RESTRICT
#ifdef __cplusplus
#define TAULOOP_RESTRICT __restrict
#else
#define TAULOOP_RESTRICT restrict
#endif
#endif
"""
#: An array of lanes as an argument, which in C++ has to be a pointer to its rows; in C both are the
#: same type.
_ARRAY = re.compile(r"\b(\w+)\[restrict\](?=\[)")


def as_c_and_cpp(text: str) -> str:
    """Return the text of a C file such that C++ compiles it too: `restrict` becomes a macro that the text defines."""
    body = re.sub(r"\brestrict\b", "TAULOOP_RESTRICT", _ARRAY.sub(r"(*restrict \1)", text))
    if body == text:
        return text
    first = re.search(r"^#", body, re.MULTILINE)
    start = first.start() if first else 0
    return f"{body[:start]}{RESTRICT}{body[start:]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFiles(PlainData, ReprMixin):
    """A finished export.

    Attributes:
        name: of what was exported, in its files.
        files: contents by file name.
        written: the files, where they were written.
    """

    name: str = field(metadata=OMITTED)
    files: Mapping[str, Any] = field(metadata=OMITTED)
    written: tuple[Path, ...] = field(metadata=json_keys("files"))

    @property
    @in_json()
    def status(self) -> Status:
        """OK: what cannot be exported raises."""
        return Status.OK


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCode(ExportedFiles):
    """Files in C, and what they are.

    Attributes:
        manifest: what was made, as plain data; it is among the files too.
    """

    manifest: Mapping[str, Any]


def written_files(files: Mapping[str, str | bytes], folder: Path) -> tuple[Path, ...]:
    """Files by their paths in a folder, written there: all beside first, then renamed; scripts may be run.

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
        what = f"cannot be written: {error.strerror or error}"
        raise InputError.of(str(folder), what, "name a folder that you may write to") from error
    return tuple(folder / file for file in files)


def refuse_another_project(folder: Path, name: str) -> None:
    """Refuse a folder whose files of fixed names belong to something else: one CMakeLists.txt is one project.

    Raises:
        InputError: the folder has a CMakeLists.txt of another project.
    """
    path = folder / "CMakeLists.txt"
    with suppress(OSError):
        text = path.read_text(encoding="utf-8", errors="replace")
        project = re.search(r"^\s*project\s*\(\s*([^\s)]+)", text, re.M | re.I)
        if project is None or project[1] != name:
            of = "something else" if project is None else f"the project {project[1]}"
            raise InputError.of(
                str(path), f"is that of {of}, and {name} needs one too", "name a folder of its own"
            )
