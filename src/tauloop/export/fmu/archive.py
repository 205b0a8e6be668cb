"""An FMU as a ZIP archive: description, sources and a library for this platform."""

from __future__ import annotations

import io
import platform
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tauloop.common.errors import EngineError
from tauloop.compiler.c.calling.compiler import PORTABLE_FLAGS, build_without_cache
from tauloop.compiler.c.calling.library import require_compiler

#: Folder and file extension of libraries, by system. In version 3 of the standard the folder's name
#: starts with the processor.
_SYSTEMS = {"linux": ("linux", ".so"), "darwin": ("darwin", ".dylib"), "win32": ("windows", ".dll")}
_PROCESSORS = {"AMD64": "x86_64", "arm64": "aarch64"}
#: Time of all entries: the earliest time of the ZIP format, so that equal files give equal
#: archives.
_ENTRY_TIME = (1980, 1, 1, 0, 0, 0)


def library_path(version: str, identifier: str) -> str:
    """Return the path of this platform's library in the archive."""
    system, extension = _SYSTEMS.get(sys.platform, (sys.platform, ".so"))
    machine = _PROCESSORS.get(platform.machine(), platform.machine())
    folder = f"{machine}-{system}"
    if version == "2" and machine == "x86_64":
        # Version 2 only defines folders for this family of processors.
        folder = "win64" if system == "windows" else f"{system}64"
    return f"binaries/{folder}/{identifier}{extension}"


def compiled(source: str, folder: Path | None = None) -> bytes:
    """Compile a C text for any processor of this platform, and return the bytes of the library.

    The same text and compiler give the same bytes.

    Args:
        source: C text.
        folder: folder of the cache; default: the user's cache.

    Raises:
        EngineError: no C compiler was found, or it fails.
    """
    try:
        compiler = replace(require_compiler(), flags=PORTABLE_FLAGS)
    except EngineError as error:
        message = error.problems[0].what
        remedy = "install a compiler, or write only sources (no binary)"
        raise EngineError.of("C compiler", message, remedy) from error
    # A symbol table would contain file names, so that equal texts would give different bytes.
    return build_without_cache(source, compiler, further=("-s",), folder=folder).read_bytes()


def archive(files: Mapping[str, str | bytes]) -> bytes:
    """Return a ZIP archive; the same files give the same bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as zip_file:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, _ENTRY_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            zip_file.writestr(entry, text, compresslevel=9)
    return content.getvalue()
