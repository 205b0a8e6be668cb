"""C that lies in files is C: a compiler takes it by itself, without a word, and nothing of Python's stands in it."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pytest

import tauloop
from tauloop.compiler.c.calling.compiler import compiler_path

needs_compiler = pytest.mark.skipif(compiler_path() is None, reason="no C compiler")
PACKAGE = Path(tauloop.__path__[0])
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only")
SIZES = ("-DTL_LANES=8", "-DTL_MOST_CHANGES=200", "-DTL_MISSED=1e-11", "-DTL_DEPENDENT=1e-11")
LIMITS = (
    "-DTOLERANCE=1e-9",
    "-DZERO_LEVEL=1e-9",
    "-DSMALLEST_PIVOT=1e-9",
    "-DCONVERGED=1e-9",
    "-DPRINTED=double",
)
HEADERS = f"-I{sysconfig.get_path('include')}"


@needs_compiler
@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("compiler/c/printing/helpers.c", ("-std=c99", "-Wno-unused-function", *SIZES)),
        (
            "compiler/c/printing/single.c",
            ("-std=c99", "-Wno-unused-function", "-Wconversion", "-Wdouble-promotion"),
        ),
        ("compiler/c/calling/caller.c", ("-std=c11", HEADERS)),
        ("export/c/check.c", ("-std=c99", "-Wno-unused-function", *LIMITS)),
    ],
)
def test_a_file_compiles_by_itself_without_warnings(name: str, flags: tuple[str, ...]):
    if (
        name == "compiler/c/calling/caller.c"
        and not (Path(sysconfig.get_path("include")) / "Python.h").exists()
    ):
        pytest.skip("no headers of Python")
    run = subprocess.run(
        [compiler_path() or "", *STRICT, *flags, PACKAGE / name], capture_output=True, text=True
    )
    assert (run.returncode, run.stderr) == (0, "")
