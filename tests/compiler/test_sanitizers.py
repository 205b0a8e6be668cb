"""Generated C under gcc's address and undefined-behaviour sanitizers: no read or write outside, no undefined step.

The exported program checks itself; kernels and steppers run inside Python with the sanitizer's
library loaded first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from compiled_machines import model
from core_machines import CORE_MACHINES

from tauloop import ExportOptions, export_c
from tauloop.compiler.catalogue import EXPORTABLE
from tauloop.equations.ports import Entry

GCC = shutil.which("gcc")
FLAGS = (
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
    "-g",
)
#: The machine of `make test`; the others run in `make nightly`.
DAILY = "five_bar"
EXPORTED = [
    name if name == DAILY else pytest.param(name, marks=pytest.mark.nightly)
    for name in CORE_MACHINES
]
#: What runs inside Python: batches with lanes left over, single calls, and every time stepper.
INSIDE = """
import sys
import numpy as np
from tauloop import Model, load
from tauloop.compiler.c.calling.evaluator import Compiled
from tauloop.kinematics import random_states
name = sys.argv[1]
model, rng = Model(load(name), evaluator=Compiled(at_least=1)), np.random.default_rng(0)
states = random_states(model, 21, rng)
for n in (1, 3, 21):
    given = states.position[:n], states.velocity[:n], states.acceleration[:n]
    if not model.assembly.passive:
        forces = model.platform.inverse_dynamics(*given, start=states.q[:n])
        model.platform.regressor(*given, start=states.q[:n])
        model.platform.forward_dynamics(*given[:2], forces.force, start=states.q[:n])
    model.actuators.kinematics(model.actuator_position(states.q[:n]), start=states.q[:n])
"""
#: The command line with gcc alone: the embedded compiler, which knows no sanitizers, would make the
#: code of runs this short.
COMMAND_LINE = """
import sys
from tauloop.compiler.c.calling import library
library.find_embedded_compiler = lambda: None
from tauloop.cli import main
main()
"""

#: A machine with drive lines.
RACKS = Path(__file__).parents[2] / "examples" / "gantry_tau_racks" / "gantry_tau_racks.yaml"

pytestmark = pytest.mark.skipif(GCC is None, reason="needs gcc, and it is not here")

#: Derivatives take the same printer, and minutes under sanitizers.
#: All functions but derivatives, and but the outputs, which few machine files define.
ALL = tuple(
    name
    for name in EXPORTABLE
    if not name.endswith(("_derivatives", "_products")) and name != "outputs"
)


def library(name: str) -> Path:
    """A library of gcc's; the test is skipped where it is not installed."""
    text = Path(
        subprocess.run(
            [GCC, f"-print-file-name={name}"], capture_output=True, text=True
        ).stdout.strip()
    )
    if not text.is_absolute():
        pytest.skip(f"needs gcc's {name}, which is not installed")
    return text


def sanitized(folder: Path) -> dict[str, str]:
    """Surroundings in which every compiled library is built with the sanitizers, in a cache of its own."""
    wrapper = folder / "bin" / "cc"
    wrapper.parent.mkdir()
    # -O0 comes last: an optimizer drops accesses that the sanitizers could see, and takes minutes
    wrapper.write_text(f'#!/bin/sh\nexec "{GCC}" "$@" {" ".join(FLAGS)} -O0\n')
    wrapper.chmod(0o755)
    return os.environ | {
        "PATH": f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(folder / "cache"),
        "LD_PRELOAD": f"{library('libasan.so')} {library('libubsan.so')}",
        # CPython itself keeps memory to its end
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=77",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


@pytest.mark.parametrize(
    "entry", ["platform", pytest.param("actuators", marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("name", EXPORTED)
def test_an_exported_program_runs_clean(name, entry, tmp_path):
    library("libasan.so")
    export_c(model(name), ExportOptions(functions=ALL, coordinates=Entry(entry)), folder=tmp_path)
    command = [GCC, "-std=c99", "-O0", *FLAGS, f"{name}.c", f"{name}_check.c", "-o", "check", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["./check"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-500:] + done.stderr[-3000:]


@pytest.mark.nightly
@pytest.mark.parametrize("name", CORE_MACHINES)
def test_kernels_run_clean_inside_python(name, tmp_path):
    run_clean([sys.executable, "-c", INSIDE, name], tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "delta", "--free", "--duration", "0.05"),
        ("simulate", "spidermill", "--duration", "0.05"),
        ("control", "follow", "delta", "--end", "x=0.05,z=-0.45"),
        ("drive", "step", "dual_motor_axis", "--duration", "0.1"),
        (
            "accuracy",
            "ballbar",
            str(RACKS),
            "--radius",
            "0.05",
            "--speed",
            "0.6",
            "--only",
            "rigid",
        ),
    ],
    ids=lambda arguments: arguments[0],
)
def test_steppers_run_clean_inside_python(arguments, tmp_path):
    run_clean(
        [sys.executable, "-c", COMMAND_LINE, *arguments],
        tmp_path,
        codes=(0, 1),
    )


def run_clean(command: list[str], folder: Path, codes: tuple[int, ...] = (0,)) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env=sanitized(folder)
    )
    text = done.stdout[-500:] + done.stderr[-3000:]
    assert done.returncode in codes, text
    assert "Sanitizer" not in done.stderr, text
    assert "runtime error" not in done.stderr, text
    assert list((folder / "cache").rglob("*.so")), "nothing was compiled with the sanitizers"


def test_the_sanitizers_see_a_write_outside(tmp_path):
    library("libasan.so")
    (tmp_path / "bad.c").write_text(
        "int main(int n, char **v) { (void)v; int a[2]; a[n + 1] = 1; return a[0] & 0; }\n"
    )
    subprocess.run([GCC, "-O0", *FLAGS, "bad.c", "-o", "bad"], cwd=tmp_path, check=True)
    assert subprocess.run(["./bad"], capture_output=True, check=False, cwd=tmp_path).returncode != 0
