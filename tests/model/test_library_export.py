"""Exported C as a library: CMake, Arduino and compilers of C++ take the folder, and nothing hostile gets into it."""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from compiled_machines import compilers, model

import tauloop as tl
from tauloop import Model
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.export.c import Export

pytestmark = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Wdouble-promotion", "-pedantic", "-Werror")
#: Debian's arduino-builder and arduino-core-avr.
ARDUINO = Path("/usr/share/arduino/hardware")
HOSTILE = '*/ ${CMAKE_COMMAND} $ENV{HOME} "quote" ; touch harm \\'


@functools.cache
def exported(precision: str = "single", name: str | None = None) -> Export:
    options = tl.ExportOptions(
        functions=("positions",), precision=precision, library=True, name=name
    )
    return tl.export_c(model("delta"), options)


def written(export: Export, folder: Path) -> Path:
    for name, text in export.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def ran(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def require(*programs: str) -> None:
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}, which is not here")


CONSUMER = """\
cmake_minimum_required(VERSION 3.15)
project(consumer LANGUAGES C CXX)
find_package(delta 0.1 CONFIG REQUIRED)
add_executable(in_c main.c)
target_link_libraries(in_c PRIVATE delta::delta)
add_executable(in_cpp main.cpp)
target_link_libraries(in_cpp PRIVATE delta::delta)
"""
MAIN_C = """\
#include <delta.h>
#include <stdio.h>
int main(void)
{
    const float position[3] = {0.02f, 0.1f, -0.5f}, start[6] = {0.0f};
    float q[6], health[4];
    delta_positions(position, start, q, health);
    for (int i = 0; i < 6; ++i) printf("%.9g\\n", (double)q[i]);
    return 0;
}
"""
MAIN_CPP = """\
#include <array>
#include <cstdio>
#include <delta.hpp>
int main()
{
    const float position[3] = {0.02f, 0.1f, -0.5f};
    const std::array<float, 6> start{};
    std::array<float, 6> q{};
    float health[4] = {0.0f};
    delta::positions(position, start, q, health);
    if (!delta::is_good(health)) return 1;
    const delta::view<const float, 6> seen = q;
    for (float x : seen) std::printf("%.9g\\n", static_cast<double>(x));
    return seen[0] == q[0] ? 0 : 1;
}
"""


def test_cmake_builds_checks_installs_and_finds_the_package(tmp_path):
    require("cmake", "g++")
    written(exported(), tmp_path / "delta")
    ran(["cmake", "-S", "delta", "-B", "build", "-DCMAKE_INSTALL_PREFIX=there"], tmp_path)
    ran(["cmake", "--build", "build"], tmp_path)
    assert "100% tests passed" in ran(["ctest", "--test-dir", "build"], tmp_path)
    ran(["cmake", "--install", "build"], tmp_path)
    user = tmp_path / "user"
    user.mkdir()
    for name, text in (("CMakeLists.txt", CONSUMER), ("main.c", MAIN_C), ("main.cpp", MAIN_CPP)):
        (user / name).write_text(text)
    ran(
        ["cmake", "-S", "user", "-B", "used", f"-DCMAKE_PREFIX_PATH={tmp_path / 'there'}"], tmp_path
    )
    ran(["cmake", "--build", "used"], tmp_path)
    numbers = [ran([f"used/{program}"], tmp_path) for program in ("in_c", "in_cpp")]
    assert numbers[0] == numbers[1]
    position = [float(line) for line in numbers[0].split()]
    exact = model("delta").platform.evaluate([[0.02, 0.1, -0.5]]).q[0]
    assert position == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize(
    "standard", [pytest.param("c++11", marks=pytest.mark.nightly), "c++17", "c++20"]
)
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_the_header_for_cpp_is_clean_and_takes_arrays_of_the_right_size_alone(
    compiler, standard, tmp_path
):
    require(compiler)
    written(exported(), tmp_path)
    (tmp_path / "main.cpp").write_text(MAIN_CPP)
    command = [compiler, f"-std={standard}", *STRICT, "-Isrc", "-c", "main.cpp", "-o", "main.o"]
    ran(command, tmp_path)
    (tmp_path / "main.cpp").write_text(MAIN_CPP.replace("float health[4]", "float health[3]"))
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "another size" in done.stderr or standard == "c++20"


@pytest.mark.parametrize("precision", ["single", "double"])
def test_cppcheck_and_compilers_find_nothing(precision, tmp_path):
    export = exported(precision)
    written(export, tmp_path)
    for compiler in compilers():
        flags = ("-std=c99", *STRICT, "-Isrc", "-fsyntax-only")
        ran([compiler, *flags, "src/delta.c", "test/delta_check.c"], tmp_path)
    require("cppcheck")
    (tmp_path / "main.cpp").write_text(MAIN_CPP)
    checked = [
        "src/delta.c",
        "test/delta_check.c",
        *(["main.cpp"] if precision == "single" else []),
    ]
    flags = [
        "-q",
        "--enable=warning,style,performance,portability",
        "--error-exitcode=1",
        "-Isrc",
        "--inline-suppr",
    ]
    assert ran(["cppcheck", *flags, "--suppress=missingIncludeSystem", *checked], tmp_path) == ""


@pytest.mark.nightly
def test_arduino_builds_the_example_for_a_board(tmp_path):
    require("arduino-builder")
    if not (ARDUINO / "arduino" / "avr").exists():
        pytest.skip("needs Debian's arduino-core-avr, which is not here")
    library = written(exported(), tmp_path / "libraries" / "delta")
    (tmp_path / "build").mkdir()
    # what Debian's compiler for AVR leaves out of float.h, and its Arduino core needs
    places = [
        "-prefs=compiler.cpp.extra_flags=-DDECIMAL_DIG=9",
        "-fqbn",
        "arduino:avr:mega:cpu=atmega2560",
    ]
    places += [
        "-hardware",
        "/usr/share/arduino-builder",
        "-hardware",
        str(ARDUINO),
        "-tools",
        "/usr/bin",
    ]
    places += ["-libraries", str(library.parent), "-build-path", str(tmp_path / "build")]
    sketch = library / "examples" / "delta_example" / "delta_example.ino"
    text = ran(["arduino-builder", "-compile", "-warnings", "all", *places, str(sketch)], tmp_path)
    assert not re.search(r"delta\S*: warning", text)
    assert (tmp_path / "build" / "delta_example.ino.hex").stat().st_size > 1000, text


def test_descriptions_of_the_library_hold_what_arduino_and_platformio_ask_for():
    files = exported().files
    fields = dict(line.split("=", 1) for line in files["library.properties"].splitlines())
    assert {
        "name",
        "version",
        "author",
        "maintainer",
        "sentence",
        "paragraph",
        "category",
        "architectures",
    } <= set(fields)
    assert fields["includes"] == "delta.h"
    described = json.loads(files["library.json"])
    assert (described["name"], described["version"]) == (fields["name"], fields["version"])
    assert len(fields["version"].split(".")) == 3
    assert set(json.loads(files["delta_manifest.json"])["files"]) == set(files) - {
        "delta_manifest.json"
    }


def test_a_folder_is_one_library(tmp_path):
    """Two would share CMakeLists.txt, and the first would no longer be built; a user's own is not written over."""
    options = tl.ExportOptions(functions=("positions",), library=True)
    first = tl.export_c(model("delta"), options, folder=tmp_path)
    assert tl.export_c(model("delta"), options, folder=tmp_path).written == first.written
    texts = {path: path.read_bytes() for path in first.written}
    for again in (
        lambda: tl.export_c(model("five_bar"), options, folder=tmp_path),
        lambda: tl.export_ros2(tl.load("five_bar"), folder=tmp_path),
    ):
        with pytest.raises(
            tl.InputError,
            match=r"(?s)belongs to the project delta, but five_bar.* a folder for this export",
        ):
            again()
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "CMakeLists.txt").write_text("add_subdirectory(delta)\n")
    with pytest.raises(tl.InputError, match="belongs to something else"):
        tl.export_c(model("delta"), options, folder=tmp_path / "own")
    assert {path: path.read_bytes() for path in texts} == texts
    assert sorted(path.name for path in (tmp_path / "own").iterdir()) == ["CMakeLists.txt"]


def test_doubles_keep_their_kernels_in_a_library(tmp_path):
    files = exported("double").files
    assert "delta_positions_batch" in files["src/delta.h"]
    assert "view<const double, 3> position" in files["src/delta.hpp"]


@pytest.mark.parametrize(
    "name", ["new", *(pytest.param(name, marks=pytest.mark.nightly) for name in (None, "test"))]
)
def test_hostile_texts_and_reserved_names_build(name, tmp_path):
    require("cmake", "g++")
    mechanism = replace(model("four_bar").mechanism, name=f"robot {HOSTILE}", description=HOSTILE)
    options = tl.ExportOptions(functions=("positions",), library=True, name=name)
    export = tl.export_c(Model(mechanism, evaluator=Interpreted()), options, folder=tmp_path)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.relative_to(tmp_path).as_posix() for path in before} == set(export.files)
    assert all(text.isascii() for text in export.files.values())
    assert len(export.files["library.properties"].splitlines()) == 9
    ran(["cmake", "-S", ".", "-B", "build"], tmp_path)
    ran(["cmake", "--build", "build"], tmp_path)
    assert "100% tests passed" in ran(["ctest", "--test-dir", "build"], tmp_path)
    (tmp_path / "main.cpp").write_text(
        f'#include "{export.name}.hpp"\nint main() {{ return 0; }}\n'
    )
    ran(["g++", "-std=c++17", *STRICT, "-Isrc", "-fsyntax-only", "main.cpp"], tmp_path)
    assert not (tmp_path / "harm").exists()
