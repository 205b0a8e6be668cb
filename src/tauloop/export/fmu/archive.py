"""An FMU as a file: description, sources, and a library for this platform, in a ZIP archive without times."""

from __future__ import annotations

import io
import platform
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tauloop.common.errors import EngineError
from tauloop.compiler.c.calling.compiler import PORTABLE_FLAGS, build
from tauloop.compiler.c.calling.library import require_compiler

#: Folders and endings of libraries by system, for versions 2 and 3; before them stands the
#: processor.
_SYSTEMS = {"linux": ("linux", ".so"), "darwin": ("darwin", ".dylib"), "win32": ("windows", ".dll")}
_PROCESSORS = {"AMD64": "x86_64", "arm64": "aarch64"}
#: The time that all entries have: the first that the format knows.
_TIME = (1980, 1, 1, 0, 0, 0)


def library_place(version: str, identifier: str) -> str:
    """Where the library for this platform lies in the archive."""
    system, ending = _SYSTEMS.get(sys.platform, (sys.platform, ".so"))
    machine = _PROCESSORS.get(platform.machine(), platform.machine())
    folder = f"{machine}-{system}"
    if version == "2":  # which knows one family of processors alone
        folder = {"windows": "win64"}.get(system, f"{system}64") if machine == "x86_64" else folder
    return f"binaries/{folder}/{identifier}{ending}"


def compiled(source: str, folder: Path | None = None) -> bytes:
    """The library of a C text, for any processor of this kind; the same text and compiler give the same bytes.

    Args:
        source: C text.
        folder: the cache; the user's own without it.

    Raises:
        EngineError: there is no compiler, or it fails.
    """
    try:
        compiler = replace(require_compiler(), flags=PORTABLE_FLAGS)
    except EngineError as error:
        what, remedy = error.problems[0].what, "install one, or write sources alone (no binary)"
        raise EngineError.of("C compiler", what, remedy) from error
    # without names of files, which a symbol table would have
    return build(source, compiler, further=("-s",), folder=folder).read_bytes()


def archive(files: Mapping[str, str | bytes]) -> bytes:
    """A ZIP archive: the same files give the same bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type, entry.create_system, entry.external_attr = (
                zipfile.ZIP_DEFLATED,
                3,
                0o644 << 16,
            )
            packed.writestr(entry, text, compresslevel=9)
    return content.getvalue()
