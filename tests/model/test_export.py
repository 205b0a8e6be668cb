"""Exported C: it compiles strictly, checks itself, says what it is, and nothing hostile gets into it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled_machines import STRICT, compilers, model
from core_machines import CORE_MACHINES
from machine_texts import shipped_text

import tauloop as tl
from tauloop import Model, load, loads
from tauloop.common.errors import AssemblyError, InputError
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.compiler.catalogue import EXPORTABLE
from tauloop.compiler.program import Newton
from tauloop.drives import load_drive
from tauloop.equations.ports import ACTUATORS, PLATFORM, Entry
from tauloop.export.c import Export
from tauloop.export.drive_control import export_control

needs_compiler = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
#: Derivatives are tried in test_derivatives.py.
#: All functions but derivatives, and but the outputs, which few machine files define.
ALL = tuple(
    name
    for name in EXPORTABLE
    if not name.endswith(("_derivatives", "_products")) and name != "outputs"
)


def exported(
    machine: str | Model,
    functions: Sequence[str] = ALL,
    folder: Path | None = None,
    *,
    entry: Entry = PLATFORM,
    name: str | None = None,
) -> Export:
    options = tl.ExportOptions(functions=tuple(functions), coordinates=entry, name=name)
    return tl.export_c(
        model(machine) if isinstance(machine, str) else machine, options, folder=folder
    )


def compile_check(folder: Path, name: str, compiler: str, *flags: str) -> Path:
    """The self-checking program, compiled strictly."""
    program = folder / "check"
    command = [compiler, *STRICT, *flags, f"{name}.c", f"{name}_check.c", "-o", str(program), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return program


def run_check(program: Path) -> tuple[int, str]:
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


# The test program


@needs_compiler
@pytest.mark.parametrize("name", CORE_MACHINES)
def test_every_machine_checks_itself_against_the_interpreter(name, tmp_path):
    """All functions; the entry that is not tried here is tried by the next test and by those of the source."""
    exported(name, folder=tmp_path)
    status, text = run_check(compile_check(tmp_path, name, compilers()[0]))
    assert status == 0, text
    assert text.splitlines()[-1] == "all agree"
    for function in ALL:
        assert f"{name}_{function} (calls)" in text
        assert f"{name}_{function} (batch)" in text


@needs_compiler
@pytest.mark.parametrize("flags", [(), ("-O2",), ("-O1", "-fopenmp")], ids=["O0", "O2", "openmp"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_other_compilers_and_flags_give_the_same_numbers(compiler, flags, tmp_path):
    if compiler not in compilers():
        pytest.skip(f"needs {compiler}, which is not here")
    exported("five_bar", ["inverse_dynamics", "kinematics"], tmp_path, entry=ACTUATORS)
    if compiler == "clang" and "-fopenmp" in flags:
        flags = (*flags, "-c")
        # its library for threads is a package apart
        for file in ("five_bar.c", "five_bar_check.c"):
            command = [compiler, *STRICT, *flags, file, "-o", "object.o"]
            assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
        return
    status, text = run_check(compile_check(tmp_path, "five_bar", compiler, *flags))
    assert status == 0, text


@needs_compiler
@pytest.mark.parametrize("function", ALL)
def test_one_altered_number_is_found(function, tmp_path):
    """The last digit that counts: a part in a million of the largest number of a port."""
    exported("linear_delta", [function], tmp_path)
    check = tmp_path / "linear_delta_check.c"
    text = check.read_text()
    start = re.search(rf"linear_delta_{function}_out_\w+\[\d+\] = {{\n", text)
    assert start
    stop = text.index("};", start.end())
    numbers = re.findall(r"[^\s,()]+", text[start.end() : stop])
    largest = max(numbers, key=lambda number: abs(float(number)))
    altered = repr(float(largest) * (1 + 1e-6))
    check.write_text(text[: start.end()] + text[start.end() :].replace(largest, altered, 1))
    status, output = run_check(compile_check(tmp_path, "linear_delta", compilers()[0]))
    assert status == 1, output
    assert [
        line for line in output.splitlines() if f"{function} (calls)" in line and "FAILED" in line
    ]
    assert output.splitlines()[-1] == "FAILED"


@needs_compiler
@pytest.mark.parametrize("entry", Entry)
def test_numbers_of_a_broken_function_are_found(entry, tmp_path):
    """Not the test program's numbers are wrong, but the code: its answer is not-a-number."""
    exported("linear_delta", ["inverse_dynamics"], tmp_path, entry=entry)
    source = tmp_path / "linear_delta.c"
    text = source.read_text()
    broken = re.sub(
        r"( +)force\[0\] = (\w+);", r"\1force[0] = \2 * (HUGE_VAL - HUGE_VAL);", text, count=1
    )
    assert broken != text
    source.write_text(broken)
    status, output = run_check(compile_check(tmp_path, "linear_delta", compilers()[0]))
    assert status == 1
    assert "inf (tolerance" in output


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++, which is not here")
def test_the_header_is_read_by_cxx_twice(tmp_path):
    exported("five_bar", folder=tmp_path)
    (tmp_path / "main.cpp").write_text(
        '#include "five_bar.h"\n#include "five_bar.h"\n'
        "int main() { double x[16] = {0.0}; five_bar_kinematics_batch(0, x, x, x, x, x, x, x, x); return 0; }\n"
    )
    commands = (
        ["gcc", *STRICT, "-c", "five_bar.c"],
        ["g++", "-Wall", "-Werror", "main.cpp", "five_bar.o", "-lm"],
    )
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


# Header and manifest


@pytest.mark.parametrize("entry", Entry)
def test_the_header_names_every_port_with_columns_units_and_sizes(entry):
    export = exported("five_bar", entry=entry)
    text, machine = export.files["five_bar.h"], model("five_bar")
    ports = machine.functions(entry).ports.motion
    for name in ("position", "velocity", "acceleration"):
        assert f" * in {name}[{ports[name].size}]: {name} of the {entry.name}" in text
        for i, (column, unit) in enumerate(
            zip(ports[name].columns, ports[name].units, strict=True)
        ):
            assert f" *   [{i}] {column} [{unit}]" in text
    n_pi, n_u = len(machine.parameters), len(machine.mechanism.actuators)
    assert f" * out regressor[{n_pi * n_u}]: " in text
    last = f"{machine.mechanism.actuators[-1].name} / {machine.parameters[-1].name}"
    assert f" *   [{n_pi * n_u - 1}] {last} [" in text
    assert text.count(" * out health[4]: ") == len(ALL)
    for parameter in machine.mechanism.parameters:
        assert f" *   {parameter.name} = {parameter.value!r}" in text
    assert text.startswith("/* five_bar: generated by Tauloop")
    assert text.isascii()


def test_start_values_are_asked_for_only_where_newton_is_at_work():
    for name in ("five_bar", "delta"):
        for item in exported(name, ["inverse_dynamics"]).manifest["functions"]:
            program = model(name).platform.program("inverse_dynamics")
            iterates = any(isinstance(step, Newton) for step in program.steps)
            assert ("start" in [port["name"] for port in item["inputs"]]) == iterates
            assert (sum(item["operations"]["each_iteration"].values()) > 0) == iterates
            assert item["operations"]["once"]["multiplications"] > 50


def test_free_parameters_stay_an_input(tmp_path):
    machine = Model(load("delta"), free=["arm_length"], evaluator=Interpreted())
    export = exported(machine, ["inverse_dynamics"], tmp_path)
    (theta,) = (p for p in export.manifest["functions"][0]["inputs"] if p["name"] == "theta")
    assert theta["columns"] == ["arm_length"]
    assert "arm_length" not in export.manifest["baked_in"]
    assert " *   arm_length = " not in export.files["delta.h"]
    if compilers():
        status, text = run_check(compile_check(tmp_path, "delta", compilers()[0]))
        assert status == 0, text


def test_the_manifest_has_hashes_of_all_files_and_no_time_or_place(tmp_path):
    export = exported("five_bar", folder=tmp_path / "new" / "folder")
    paths = export.written
    assert sorted(path.name for path in paths) == sorted(
        path.name for path in (tmp_path / "new" / "folder").iterdir()
    )
    manifest = json.loads((tmp_path / "new" / "folder" / "five_bar_manifest.json").read_text())
    assert set(manifest["files"]) == {path.name for path in paths} - {"five_bar_manifest.json"}
    for path in paths:
        if path.name != "five_bar_manifest.json":
            assert manifest["files"][path.name] == hashlib.sha256(path.read_bytes()).hexdigest()
    kinds = {
        "tauloop",
        "name",
        "machine",
        "entry",
        "baked_in",
        "parameter_hash",
        "functions",
        "files",
    }
    assert set(manifest) == kinds
    assert [item["name"] for item in manifest["functions"]] == [f"five_bar_{name}" for name in ALL]
    for text in export.files.values():
        assert str(tmp_path) not in text
        assert not re.search(r"\b20\d\d-\d\d-\d\d\b|/src/|\.yaml", text)


def test_the_hash_of_the_machine_follows_its_content_and_not_its_file():
    def entry(text: str, file: str) -> Any:
        machine = Model(loads(text, file), evaluator=Interpreted())
        return exported(machine, ["kinematics"]).manifest["machine"]

    text = shipped_text("five_bar")
    again = entry("# a comment\n" + text, "elsewhere.yaml")
    assert entry(text, "here.yaml") == again
    name = model("five_bar").mechanism.parameters.names[0]
    changed = Model(
        replace(model("five_bar").mechanism).with_values(
            {name: model("five_bar").mechanism.parameters[name].value * 1.01}
        )
    )
    assert exported(changed, ["kinematics"]).manifest["machine"] != again


EXPORT = """\
import sys
import tauloop as tl
made = tl.export_c(tl.load("five_bar"))
sys.stdout.write("".join(made.files.values()))
"""


#: Says whether exported code takes a hash that its host has, and its own.
HOST = """#include "NAME.c"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    (void)argc;
    printf("%d %d\\n", NAME_check_parameters(strtoull(argv[1], 0, 16)), NAME_check_parameters(UP_PARAMETER_HASH));
    return 0;
}
"""


def hashed(values: Sequence[float]) -> str:
    """FNV-1a of 64 bits, in the words of its draft."""
    total = 14695981039346656037
    for byte in np.asarray(values, dtype="<f8").tobytes():
        total = (total ^ byte) * 1099511628211 % 2**64
    return f"{total:016x}"


@needs_compiler
def test_parameters_are_checked_at_start_up_by_their_hash(tmp_path):
    """Those of the host, which another calibration changes, and those in the code, which damage changes."""

    def answers(made: Export, *hashes: str) -> list[str]:
        up = made.name.upper()
        (tmp_path / "host.c").write_text(HOST.replace("NAME", made.name).replace("UP_", f"{up}_"))
        words = [compilers()[0], "-std=c99", "-O1", "host.c", "-o", "host", "-lm"]
        subprocess.run(words, check=True, cwd=tmp_path)
        runs = [
            subprocess.run([tmp_path / "host", text], capture_output=True, text=True, check=True)
            for text in hashes
        ]
        return [run.stdout.strip() for run in runs]

    made = exported("four_bar", ["positions"], tmp_path)
    table = load("four_bar").parameters
    assert made.manifest["parameter_hash"] == hashed([p.value for p in table])
    name = next(iter(made.manifest["baked_in"]))
    calibrated = Model(load("four_bar").with_values({name: table[name].value + 1e-9}))
    other = exported(calibrated, ["positions"]).manifest["parameter_hash"]
    assert answers(made, made.manifest["parameter_hash"], other) == ["0 0", "2 0"]
    source = tmp_path / "four_bar.c"
    value = re.search(r"0x([0-9a-f]{16})ULL, /\*", source.read_text())
    assert value
    damaged = f"{int(value[1], 16) ^ 1:016x}"
    source.write_text(source.read_text().replace(value[1], damaged))
    assert answers(made, made.manifest["parameter_hash"]) == ["1 1"]


@needs_compiler
def test_a_control_of_a_drive_line_has_the_hash_of_what_it_was_made_with(tmp_path):
    line = load_drive("dual_motor_axis")
    tuned = export_control(line, {"kp": 250.0}, folder=tmp_path)
    assert tuned.manifest["baked_in"]["kp"] == 250.0
    assert tuned.manifest["parameter_hash"] == hashed(list(tuned.manifest["baked_in"].values()))
    assert tuned.manifest["parameter_hash"] != export_control(line).manifest["parameter_hash"]
    assert run_check(compile_check(tmp_path, tuned.name, compilers()[0]))[0] == 0


def test_files_are_the_same_in_every_process():
    texts = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", EXPORT]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        texts.add(done.stdout)
    assert len(texts) == 1


# Hostile and faulty input

HOSTILE = [
    "*/ int main(void) { return 7; } /*",
    "quote \" and ' and `touch harm` $(touch harm) ; touch harm",
    "two\\nlines #include <harm.h>",
    "ends with a backslash \\\\",
    "??/ trigraph größe Ω \\u202e",
]


def test_exports_share_a_folder_and_each_keeps_its_manifest(tmp_path):
    """By hashes taken anew: of another machine, of another function, for LinuxCNC, and of one written again."""
    exports = [
        tl.export_linuxcnc(model("five_bar"), folder=tmp_path),
        tl.export_controller(model("five_bar"), folder=tmp_path),
        exported("five_bar", ["kinematics"], tmp_path),
        exported("five_bar", ["inverse_dynamics"], tmp_path, name="five_bar_forces"),
        exported("four_bar", ["kinematics"], tmp_path),
        exported("five_bar", ["positions"], tmp_path),
    ]
    assert len({path for export in exports for path in export.written}) == sum(
        len(e.written) for e in exports[:-1]
    )
    for manifest in (json.loads(path.read_text()) for path in tmp_path.glob("*_manifest.json")):
        of_now = {
            name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
            for name in manifest["files"]
        }
        assert of_now == manifest["files"]
    (last,) = json.loads((tmp_path / "five_bar_manifest.json").read_text())["functions"]
    assert last["name"] == "five_bar_positions"
    if compilers():
        assert run_check(compile_check(tmp_path, "five_bar_forces", compilers()[0]))[0] == 0


@needs_compiler
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_descriptions_stay_comments(text, tmp_path):
    quoted = json.dumps(text).replace("\\\\", "\\")
    source = re.sub(
        r"(?ms)^description:.*?(?=^\S)",
        lambda _: f"description: {quoted}\n",
        shipped_text("five_bar"),
    )
    mechanism = loads(source)
    assert mechanism.description
    export = exported(Model(mechanism, evaluator=Interpreted()), ["kinematics"], tmp_path)
    assert all(file.isascii() for file in export.files.values())
    status, output = run_check(compile_check(tmp_path, "five_bar", compilers()[0]))
    assert status == 0, output
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*export.files, "check"])


@needs_compiler
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_of_parts_stay_comments(text, tmp_path):
    """The file's grammar has no such names; a mechanism made in Python, or read from elsewhere, may."""
    machine = model("five_bar").mechanism
    first, *others = machine.actuators
    mechanism = replace(
        machine, name=f"robot {text}", actuators=(replace(first, name=text), *others)
    )
    export = exported(
        Model(mechanism, evaluator=Interpreted()), ["inverse_dynamics"], tmp_path, entry=ACTUATORS
    )
    assert re.fullmatch(r"robot_\w+", export.name, re.ASCII)
    status, output = run_check(compile_check(tmp_path, export.name, compilers()[0]))
    assert status == 0, output
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*export.files, "check"])
    assert (
        json.loads(export.files[f"{export.name}_manifest.json"])["machine"]["name"]
        == mechanism.name
    )


@pytest.mark.parametrize("name", ["*/ int main", "../../etc/harm", "", "9lives", "register"])
def test_names_that_give_no_identifier_are_refused(name):
    with pytest.raises(InputError, match="C identifier"):
        exported("five_bar", name=name)


def test_a_name_of_the_users_own_is_taken():
    assert set(exported("five_bar", name="axis group 2").files) == {
        "axis_group_2.c",
        "axis_group_2.h",
        "axis_group_2_check.c",
        "axis_group_2_manifest.json",
    }


def test_outputs_that_are_named_alone_are_exported_and_cost_what_is_counted_for_them():
    made = tl.export_c(
        tl.load("delta"), tl.ExportOptions(functions=("inverse_dynamics",), outputs=("force",))
    )
    (function,) = made.manifest["functions"]
    assert [port["name"] for port in function["outputs"]] == ["force"]
    costs = tl.count_operations(tl.load("delta")).costs
    (cost,) = [
        c for c in costs if (c.quantity, c.formulation) == ("inverse dynamics", "newton-euler")
    ]
    assert function["operations"]["once"] == cost.once


def test_forces_without_accelerations_cost_what_is_counted_for_them():
    """Beside them a difference and a product for each rate of a momentum."""
    made = tl.export_c(tl.load("nuwar"), tl.ExportOptions(functions=("momentum_forces",)))
    (function,) = made.manifest["functions"]
    (rates,) = [port["size"] for port in function["inputs"] if port["name"] == "momentum_rate"]
    (cost,) = [
        c
        for c in tl.count_operations(tl.load("nuwar")).costs
        if c.formulation == "hamilton, sampled"
    ]
    assert sum(function["operations"]["once"].values()) + 2 * rates == cost.total


@pytest.mark.parametrize(
    ("outputs", "says"),
    [(("forces",), "did you mean force"), (("momentum",), "is an output of inverse_dynamics")],
)
def test_outputs_that_a_function_does_not_have_are_refused(outputs, says):
    with pytest.raises(tl.InputError, match=says):
        tl.ExportOptions(functions=("inverse_dynamics", "momentum"), outputs=outputs)


def test_everything_wrong_with_a_request_is_said_at_once():
    with pytest.raises(InputError) as error:
        exported("five_bar", ["dynamics", "kinematics", "speed"], entry=PLATFORM)
    assert len(error.value.problems) == 2
    with pytest.raises(InputError, match=r"coordinates: 'tool' is unknown\n.*platform, actuators"):
        exported("five_bar", ["kinematics"], entry="tool")
    with pytest.raises(InputError, match="none is named"):
        exported("five_bar", [])


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        exported("five_bar", ["kinematics"], tmp_path / "file")
    (tmp_path / "folder" / "five_bar.c").mkdir(parents=True)
    with pytest.raises(InputError, match="cannot be written"):
        exported("five_bar", ["kinematics"], tmp_path / "folder")
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["five_bar.c"]


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    other = tmp_path / "five_bar_mine.c"
    other.write_text("mine")
    outside = tmp_path / "outside.h"
    outside.write_text("not to be written through a link")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "Makefile").write_text("mine")
    (folder / "five_bar.h").symlink_to(outside)
    for _ in range(2):
        exported("five_bar", ["kinematics"], folder)
    assert (folder / "Makefile").read_text() == "mine"
    assert outside.read_text() == "not to be written through a link"
    assert other.read_text() == "mine"
    assert len(list(folder.iterdir())) == 5


def test_a_machine_that_does_not_assemble_is_refused():
    apart = model("five_bar").mechanism.with_values({"motor_distance": 20.0})
    with pytest.raises(AssemblyError):
        tl.export_c(apart)
