"""Programs that are built once: named by the hash of all inputs of the build, in the user's cache folder."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tauloop.compiler.c.calling.cache import cache_folder


class NotBuilt(Exception):
    """A program could not be built; the text states the reason."""


def built(name: str, command: Sequence[str], source: Path, salt: str, *, suffix: str = "") -> Path:
    """Return the program of a compiler command, from the cache or built now.

    It is written under a temporary name and renamed, so that of two simultaneous runs none sees an
    incomplete program.

    Args:
        name: of the program.
        command: the compiler with its flags; source and output are appended.
        source: the source file.
        salt: other inputs of the result: versions of compiler, processor and libraries.
        suffix: ending of the file's name; CasADi recognizes a library by its ending.

    Raises:
        NotBuilt: with the compiler's first error.
    """
    text = "\0".join([*command, source.read_text(encoding="utf-8"), salt])
    program = (
        cache_folder()
        / "benchmarks"
        / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:24]}{suffix}"
    )
    if program.is_file():
        return program
    try:
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=program.parent) as folder:
            fresh = Path(folder) / name
            done = subprocess.run(
                [*command, str(source), "-o", str(fresh)],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise NotBuilt(_first_error(done.stderr))
            fresh.replace(program)
    except OSError as error:
        raise NotBuilt(str(error)) from error
    return program


def _first_error(text: str) -> str:
    lines = (
        [line for line in text.splitlines() if "error" in line.lower()]
        or text.splitlines()
        or ["no message"]
    )
    return lines[0][:200]
