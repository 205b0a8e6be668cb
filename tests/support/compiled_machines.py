"""Shipped machines as compiled functions, for the tests of generated code: each is assembled and compiled once."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tauloop import Model, load
from tauloop.compiler.c.calling.compiled import CompiledFunction, compile_function
from tauloop.compiler.c.calling.compiler import Compiler, find_compiler
from tauloop.compiler.c.calling.evaluator import Interpreted, c_function
from tauloop.compiler.c.printing.source import CFunction
from tauloop.compiler.program import Program
from tauloop.kinematics import random_states

ENTRIES = ("platform", "actuators")
#: How far starts of Newton's method lie from the solution, m and rad: far enough that it has work
#: to do.
ASTRAY = 1e-3
#: The strict reading of the standard that generated code shall pass.
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fno-math-errno")


def compilers() -> tuple[str, ...]:
    """Compilers that are here, of those that generated code is tried with."""
    return tuple(name for name in ("gcc", "clang") if shutil.which(name))


@functools.cache
def sanitizing_compilers(flags: tuple[str, ...]) -> tuple[str, ...]:
    """Return the compilers whose runtime library for these sanitizer flags is installed."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "empty.c"
        source.write_text("int main(void) { return 0; }")
        return tuple(
            name
            for name in compilers()
            if subprocess.run(
                [name, *flags, source, "-o", source.with_suffix("")],
                capture_output=True,
                check=False,
            ).returncode
            == 0
        )


def compiler() -> Compiler:
    """The compiler that the library would use; only called where there is one."""
    compiler_here = find_compiler()
    assert compiler_here is not None
    return compiler_here


@functools.cache
def model(name: str) -> Model:
    return Model(load(name), evaluator=Interpreted())


@functools.cache
def motion(name: str, entry: str, n: int) -> dict[str, np.ndarray]:
    """Inputs of all programs at n random states, and forces to move by."""
    machine, rng = model(name), np.random.default_rng(3)
    states = random_states(machine, n, rng)
    q, v, a = states.q, states.v, states.a
    if entry == "platform":
        motion = (states.position, states.velocity, states.acceleration)
    else:
        A = machine.assembly.loops.transmission
        motion = (machine.actuator_position(q), v @ A.T, a @ A.T)
    return {
        **dict(
            zip(
                ("position", "velocity", "acceleration"),
                map(np.ascontiguousarray, motion),
                strict=True,
            )
        ),
        "start": q + ASTRAY * rng.normal(size=q.shape),
        "theta": np.zeros((n, 0)),
        "force": rng.normal(size=(n, len(machine.mechanism.actuators))),
    }


@functools.cache
def program(name: str, entry: str, which: str) -> Program:
    return getattr(model(name), entry).program(which)


@functools.cache
def function(name: str, entry: str, which: str) -> CFunction:
    return c_function(program(name, entry, which), motion(name, entry, 1))


def compiled(
    name: str, entry: str, which: str, folder: Path, *, threads: int = 1
) -> CompiledFunction:
    return compile_function(
        function(name, entry, which), compiler(), threads=threads, folder=folder
    )
