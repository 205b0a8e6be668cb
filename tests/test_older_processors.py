"""Options of the suite: as on an older processor, and no test that is skipped without need."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from compiled_machines import compilers
from older_processors import PROCESSORS, environment

from conftest import unexpected_skips

MACROS = {
    "avx2": {"__AVX2__": True, "__AVX512F__": False},
    "sse2": {"__SSE2__": True, "__AVX__": False},
}


def macros(folder: Path, flags: list[str]) -> str:
    """What a wrapped compiler knows of the processor."""
    command = [str(folder / "bin" / compilers()[0]), *flags, "-dM", "-E", "-x", "c", os.devnull]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs an x86-64 processor")
@pytest.mark.parametrize("name", PROCESSORS)
def test_compilers_make_code_for_an_older_processor(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # with `--processor` the compilers on the path are wrapped already
    folders = [
        folder
        for folder in os.environ["PATH"].split(os.pathsep)
        if "processors" not in Path(folder).parts
    ]
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
    settings = environment(name, tmp_path)
    assert settings["PATH"].startswith(str(tmp_path / "bin"))
    for flags in ([], ["-march=native"]):
        text = macros(tmp_path, flags)
        assert {macro: f"#define {macro} 1" in text for macro in MACROS[name]} == MACROS[name]


@pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs an x86-64 processor")
def test_a_compiler_that_is_asked_for_a_certain_processor_compiles_for_it(tmp_path: Path) -> None:
    environment("sse2", tmp_path)
    assert "#define __AVX512F__ 1" in macros(tmp_path, ["-march=icelake-server"])


def test_a_test_that_is_skipped_for_want_of_a_program_is_unexpected() -> None:
    reasons = [
        "needs clang, which is not here",
        "needs the extra `torch`, which brings torch",
        "needs a user whom permissions bind; this one may write everywhere",
    ]
    reports = [SimpleNamespace(longrepr=(__file__, 3, f"Skipped: {reason}")) for reason in reasons]
    terminal = SimpleNamespace(stats={"skipped": reports})
    assert unexpected_skips(terminal) == [
        "tests/test_older_processors.py:3: needs clang, which is not here"
    ]  # type: ignore[arg-type]
