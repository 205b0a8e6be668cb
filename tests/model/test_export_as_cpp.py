"""Exported C as C++, for a project whose build has that language alone: it compiles clean, and checks itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from compiled_machines import model

import tauloop as tl
from tauloop.compiler.catalogue import EXPORTABLE
from tauloop.export.c.exported_files import as_c_and_cpp
from tauloop.export.controller import ControllerOptions

STRICT_CPP = ("-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-O1")
CPP_COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]
#: Derivatives take the same printer and are long: one of each kind is enough.
#: All functions but derivatives, and but the outputs, which few machine files define.
FUNCTIONS = tuple(
    name
    for name in EXPORTABLE
    if not name.endswith(("_derivatives", "_products")) and name != "outputs"
)
DERIVATIVES = ("inverse_dynamics_derivatives", "forward_dynamics_products")

pytestmark = pytest.mark.skipif(
    not CPP_COMPILERS, reason="needs a C++ compiler, and there is none here"
)


def compile_as_cpp(compiler: str, folder: Path, *further: str) -> None:
    command = [compiler, *STRICT_CPP, *further]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr[:2000]


@pytest.mark.parametrize("compiler", CPP_COMPILERS)
@pytest.mark.parametrize(
    ("functions", "precision", "name"),
    [
        (FUNCTIONS, "double", "five_bar"),
        (DERIVATIVES, "double", "four_bar"),
        (("positions", "inverse_dynamics"), "single", "five_bar"),
    ],
    ids=["all", "derivatives", "single"],
)
def test_functions_check_themselves_as_cpp(
    compiler: str, functions: tuple[str, ...], precision: str, name: str, tmp_path: Path
) -> None:
    options = tl.ExportOptions(functions=functions, precision=precision)
    tl.export_c(model(name), options, folder=tmp_path)
    compile_as_cpp(compiler, tmp_path, f"{name}.c", f"{name}_check.c", "-o", "check", "-lm")
    done = subprocess.run([str(tmp_path / "check")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("precision", ["double", "single"])
def test_libraries_compile_as_cpp(precision: str, tmp_path: Path) -> None:
    options = tl.ExportOptions(functions=("inverse_dynamics",), precision=precision, library=True)
    tl.export_c(model("five_bar"), options, folder=tmp_path)
    compile_as_cpp(CPP_COMPILERS[0], tmp_path, "-Isrc", "-c", "src/five_bar.c", "-o", "object.o")


@pytest.mark.parametrize("law", ["computed-torque", "pd"])
def test_controllers_check_themselves_as_cpp(law: str, tmp_path: Path) -> None:
    """With the program that drives a plant, and the header of its link."""
    stem = tl.export_controller(
        model("five_bar"), ControllerOptions(controller=law), folder=tmp_path
    ).name
    compile_as_cpp(CPP_COMPILERS[0], tmp_path, f"{stem}.c", f"{stem}_check.c", "-o", "check", "-lm")
    compile_as_cpp(CPP_COMPILERS[0], tmp_path, "-c", f"{stem}_loop.c", "-o", "loop.o")
    done = subprocess.run([str(tmp_path / "check")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_arrays_of_lanes_become_pointers_to_their_rows() -> None:
    """The same type in C; C++ has no qualifier within brackets."""
    text = (
        "/* note */\n#include <math.h>\nvoid f(const double *restrict a, double b[restrict][4]);\n"
    )
    body = as_c_and_cpp(text)
    assert "const double *TAULOOP_RESTRICT a, double (*TAULOOP_RESTRICT b)[4]" in body
    assert (
        body.index("/* note */")
        < body.index("#define TAULOOP_RESTRICT")
        < body.index("#include <math.h>")
    )
    assert as_c_and_cpp("int restricted;\n") == "int restricted;\n"
