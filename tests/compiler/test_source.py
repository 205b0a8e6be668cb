"""Generated C: the same numbers as the interpreter's, elementary functions to the last places, clean and plain text."""

from __future__ import annotations

import ctypes
import difflib
import gc
import os
import re
import subprocess
import sys
import weakref
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from compiled_machines import (
    ENTRIES,
    STRICT,
    compiled,
    compiler,
    compilers,
    function,
    motion,
    program,
)
from core_machines import CORE_MACHINES

from tauloop.common.errors import InputError
from tauloop.compiler.c.calling.compiled import CompiledFunction
from tauloop.compiler.c.calling.compiler import build
from tauloop.compiler.c.calling.threads import MIN_SHARE, share_out, shares
from tauloop.compiler.c.printing import c_helpers, source as source_module
from tauloop.compiler.c.printing.batch_source import FEW_LANES, LANES
from tauloop.compiler.c.printing.c_helpers import mathematics
from tauloop.compiler.c.printing.scheduling import scheduled
from tauloop.compiler.c.printing.source import c_name, c_source, comment
from tauloop.compiler.c.printing.straight import instructions, pieces
from tauloop.compiler.state import CONVERGED

needs_compiler = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)

#: Compiled against interpreted: the same operations up to their order, through the conditioning of
#: regular states.
SAME = 1e-12
#: Counts of samples around the width of a block, and many.
COUNTS = (1, 7, LANES, LANES + 1, 1000)
#: Largest error of an elementary function, in units of the last place of the exact result: half a
#: unit of rounding, one of the last additions; for the sine another one from the reduction of
#: arguments beyond some turns.
SINE_ULP, SINE_FAR_ULP, ARCTANGENT_ULP = 1.6, 2.5, 2.0
#: Up to where an argument is near, rad.
NEAR = 100.0
#: The library's own functions, where nothing more exact than double precision is at hand, err by
#: one unit themselves.
REFERENCE_ULP = 0.0 if np.finfo(np.longdouble).eps < 1e-18 else 1.0

#: Instructions that are read again in every piece.
SOURCES = (ca.OP_INPUT, ca.OP_CONST)

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compiled")


def deviation(values: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference over the largest number expected."""
    assert values.shape == expected.shape
    if not expected.size:
        return 0.0
    return float(np.abs(values - expected).max() / max(np.abs(expected).max(), 1e-9))


# The same numbers as the interpreter's


def check_same_numbers(kernel: CompiledFunction, name: str, entry: str, which: str) -> None:
    inputs = motion(name, entry, max(COUNTS))
    expected, diagnostics = program(name, entry, which).run(inputs, max(COUNTS))
    for n in COUNTS:
        by_name = kernel.batch({key: array[:n] for key, array in inputs.items()}, n)
        for port, array in expected.items():
            assert deviation(by_name[port], array[:n]) < SAME, f"{port} of {n} samples"
    health = by_name["health"]
    assert health[:, 0] == pytest.approx(
        np.minimum(diagnostics.discriminants.min(axis=1, initial=1.0), 1.0), rel=1e-9
    )
    if diagnostics.pivots.size:
        assert health[:, 1] == pytest.approx(diagnostics.pivots.min(axis=1), rel=1e-6)
    assert (health[:, 2] < CONVERGED).all()
    assert (health[:, 3] >= (1 if diagnostics.newton else 0)).all()
    arrays, call = kernel.bind()
    for sample in (0, 5):
        whole = np.concatenate([inputs[port.name][sample] for port in kernel.function.inputs])
        memoryview(arrays["inputs"])[:] = whole
        call()
        for port_name, array in expected.items():
            assert deviation(arrays[port_name], array[sample]) < SAME, f"{port_name} of one sample"
        assert arrays["health"][:3] == pytest.approx(health[sample, :3], rel=1e-6, abs=CONVERGED)


@needs_compiler
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("name", CORE_MACHINES)
def test_compiled_inverse_dynamics_is_the_interpreted_one(name, entry, folder):
    check_same_numbers(
        compiled(name, entry, "inverse_dynamics", folder), name, entry, "inverse_dynamics"
    )


@needs_compiler
@pytest.mark.parametrize(
    "which", ["kinematics_0", "embedding", "forward_dynamics", "regressor_actuators"]
)
@pytest.mark.parametrize(("name", "entry"), [("delta", "platform"), ("five_bar", "actuators")])
def test_every_other_program_compiles_to_the_same_numbers(name, entry, which, folder):
    check_same_numbers(compiled(name, entry, which, folder), name, entry, which)


@needs_compiler
@pytest.mark.parametrize(
    ("name", "entry", "which"),
    [("delta", "platform", "inverse_dynamics"), ("five_bar", "actuators", "kinematics_2")],
)
def test_threads_give_the_same_numbers(name, entry, which, folder):
    """More samples than it takes to start threads, and not a whole number of blocks; Newton's loops end by blocks."""
    n = 3 * MIN_SHARE + 5
    inputs = {
        key: np.resize(array, (n, array.shape[1]))
        for key, array in motion(name, entry, 1000).items()
    }
    alone = compiled(name, entry, which, folder).batch(inputs, n)
    for threads in (2, 3):
        shared = compiled(name, entry, which, folder, threads=threads).batch(inputs, n)
        for port, array in alone.items():
            np.testing.assert_array_equal(shared[port], array)


def test_shares_of_a_batch_begin_with_blocks_and_are_worth_a_thread():
    for n in (0, 1, MIN_SHARE, 2 * MIN_SHARE - 1, 2 * MIN_SHARE, 100_003):
        for threads in (1, 2, 7):
            parts = shares(n, threads)
            assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
            assert parts[-1].stop == n
            assert all(part.start % LANES == 0 for part in parts)
            assert len(parts) == max(min(threads, n // MIN_SHARE), 1)


def test_what_fails_in_a_thread_is_raised():
    def work(part):
        if part.start:
            raise ValueError(f"part {part.start}")

    with pytest.raises(ValueError, match="part 1"):
        share_out([slice(k, k + 1) for k in range(5)], 2, work)


@needs_compiler
def test_no_samples_give_no_numbers(folder):
    kernel = compiled("delta", "platform", "inverse_dynamics", folder)
    inputs = {key: array[:0] for key, array in motion("delta", "platform", 1).items()}
    assert {array.shape[0] for array in kernel.batch(inputs, 0).values()} == {0}


@needs_compiler
@pytest.mark.parametrize(("name", "entry"), [("delta", "platform"), ("five_bar", "actuators")])
def test_what_is_no_number_or_out_of_reach_is_never_healthy(name, entry, folder):
    """A bad sample says so, and leaves its neighbors in the block alone."""
    kernel = compiled(name, entry, "inverse_dynamics", folder)
    inputs = {key: array[:LANES].copy() for key, array in motion(name, entry, 1000).items()}
    good = kernel.batch(inputs, LANES)
    inputs["position"][2] = np.nan
    inputs["position"][5] = 100.0 if entry == "platform" else np.inf
    outputs = kernel.batch(inputs, LANES)
    least, pivot, residual, _ = outputs["health"].T
    bad = (least < 0) | (pivot <= 0) | ~(residual < CONVERGED)
    assert list(np.flatnonzero(bad)) == [2, 5]
    assert deviation(outputs["force"][~bad], good["force"][~bad]) < SAME


@needs_compiler
def test_arrays_of_a_bound_call_live_as_long_as_the_call(folder):
    kernel = compiled("delta", "platform", "inverse_dynamics", folder)
    arrays, call = kernel.bind()
    with pytest.raises(TypeError):
        arrays["position"] = np.zeros(3)  # type: ignore[index]
    del arrays
    call()


@needs_compiler
def test_bound_arrays_are_freed_with_the_call(folder):
    kernel = compiled("delta", "platform", "inverse_dynamics", folder)
    arrays, call = kernel.bind()
    watched = [weakref.ref(array) for array in arrays.values() if array.size]
    del arrays
    gc.collect()
    assert all(array() is not None for array in watched)
    del call
    gc.collect()
    assert all(array() is None for array in watched)


@needs_compiler
def test_chunks_are_written_into_a_long_result(folder):
    kernel = compiled("delta", "platform", "inverse_dynamics", folder)
    n, rng = 100, np.random.default_rng(4)
    inputs = {port.name: np.zeros((n, port.size)) for port in kernel.function.inputs}
    inputs["position"][:] = [0.0, 0.0, -0.5] + 0.05 * rng.normal(size=(n, 3))
    whole = kernel.batch(inputs, n)["force"]
    long = np.full_like(whole, np.nan)
    for first in range(0, n, 32):
        part = slice(first, min(first + 32, n))
        size = part.stop - part.start
        kernel.batch(
            {name: array[part] for name, array in inputs.items()}, size, out={"force": long[part]}
        )
    np.testing.assert_array_equal(long, whole)
    wrong = {
        "force": np.empty((n, 2)),
        "forces": whole,
        "health": np.empty((n, 4), dtype=np.float32),
    }
    with pytest.raises(InputError) as caught:
        kernel.batch(inputs, n, out=wrong)
    assert len(caught.value.problems) == 3


# Pieces of straight-line code


def test_pieces_keep_what_later_ones_need():
    """Run piece by piece as a reader would: nothing is read that is not there, nothing overwritten too early."""
    whole = program("delta", "platform", "inverse_dynamics").steps[-1].function.function
    code = instructions(whole, [True] * whole.n_out())
    for longest in (1, 7, 50):
        parts = pieces(code, longest)
        assert (
            max(len([o for o in part.instructions if o.operation not in SOURCES]) for part in parts)
            <= longest
        )
        kept: dict[int, int] = {}
        for part in parts:
            known = {number for number, place in part.fetched.items() if kept[place] == number}
            assert known == set(part.fetched)
            for instruction in part.instructions:
                assert set(instruction.operands) <= known
                known.add(instruction.number)
            assert set(part.stored) <= known
            kept |= {place: number for number, place in part.stored.items()}
        done = [
            instruction.number
            for part in parts
            for instruction in part.instructions
            if instruction.operation not in SOURCES
        ]
        assert done == [
            instruction.number for instruction in code if instruction.operation not in SOURCES
        ]
    assert len(pieces(code, len(code))) == 1


@needs_compiler
@pytest.mark.parametrize(("name", "entry"), [("delta", "platform"), ("five_bar", "actuators")])
def test_code_in_pieces_gives_the_same_numbers(name, entry, folder, monkeypatch):
    whole = compiled(name, entry, "inverse_dynamics", folder)
    in_pieces = {"max_undivided": 0, "max_piece": 40}
    monkeypatch.setattr(
        source_module, "_ONE_SAMPLE", replace(source_module._ONE_SAMPLE, **in_pieces)
    )
    monkeypatch.setattr(source_module, "_LANES", replace(source_module._LANES, **in_pieces))
    assert "TL_APART" in c_source([function(name, entry, "inverse_dynamics")], name)
    parts = compiled(name, entry, "inverse_dynamics", folder)
    assert parts.library != whole.library
    check_same_numbers(parts, name, entry, "inverse_dynamics")


@needs_compiler
def test_large_kernels_have_smaller_blocks_and_the_same_numbers(folder, monkeypatch):
    usual = compiled("delta", "platform", "inverse_dynamics", folder)
    small = function("delta", "platform", "inverse_dynamics")
    assert f"#define TL_LANES {LANES}\n" in c_source([small], "delta")
    monkeypatch.setattr(source_module, "NUMBERS_IN_CACHE", 20)
    assert re.findall(r"#define TL_LANES (\d+)\n", c_source([small], "delta")) == [str(FEW_LANES)]
    large = compiled("delta", "platform", "inverse_dynamics", folder)
    assert large.library != usual.library
    check_same_numbers(large, "delta", "platform", "inverse_dynamics")


@needs_compiler
@pytest.mark.parametrize(
    ("name", "which"), [("rcid", "inverse_dynamics"), ("five_bar", "regressor_actuators")]
)
def test_compilers_without_gnu_vectors_get_the_same_numbers(name, which, folder, monkeypatch):
    shuffled = compiled(name, "platform", which, folder)
    without = {**c_helpers.pieces(), "TL_SHUFFLE": ""}
    monkeypatch.setattr(c_helpers, "pieces", lambda: without)
    plain = compiled(name, "platform", which, folder)
    assert plain.library != shuffled.library
    check_same_numbers(plain, name, "platform", which)


@pytest.mark.parametrize(
    ("name", "entry"), [("delta", "platform"), ("rcid", "platform"), ("five_bar", "actuators")]
)
def test_scheduled_code_makes_every_value_once_before_its_use(name, entry):
    for step in function(name, entry, "forward_dynamics").program.steps:
        code = instructions(step.function.function, [True] * step.function.function.n_out())
        order = scheduled(code)
        known: set[int] = set()
        for instruction in order:
            assert set(instruction.operands) <= known
            known.add(instruction.number)
        read = {k for instruction in order for k in instruction.operands}
        assert len(known) == len(order)
        assert {
            instruction.number for instruction in code if instruction.operation not in SOURCES
        } | read == known


@needs_compiler
def test_scheduled_code_gives_the_same_numbers(folder, monkeypatch):
    plain = compiled("delta", "platform", "inverse_dynamics", folder)
    monkeypatch.setattr(source_module, "ORDERED_FROM", 0)
    ordered = compiled("delta", "platform", "inverse_dynamics", folder)
    assert ordered.library != plain.library
    check_same_numbers(ordered, "delta", "platform", "inverse_dynamics")


# Elementary functions


def elementary(folder: Path) -> ctypes.CDLL:
    """Sine, cosine and arctangent on arrays, compiled as every kernel is."""
    loops = "\n".join(
        f"void many_{name}(int n, {', '.join(f'const double *{a}' for a in arguments)}, double *r)\n"
        f"{{ for (int i = 0; i < n; ++i) r[i] = tl_{name}({', '.join(f'{a}[i]' for a in arguments)}); }}"
        for name, arguments in (("sin", "x"), ("cos", "x"), ("atan2", "yx"))
    )
    return ctypes.CDLL(
        str(build(f"#include <math.h>\n{mathematics()}\n{loops}\n", compiler(), folder=folder))
    )


def applied(library: ctypes.CDLL, name: str, *arguments: np.ndarray) -> np.ndarray:
    result = np.empty_like(arguments[0])
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arguments, result)]
    getattr(library, f"many_{name}")(ctypes.c_int(len(result)), *pointers)
    return result


def units_in_the_last_place(values: np.ndarray, exact: np.ndarray) -> float:
    """Largest error over the spacing of numbers at the exact result."""
    spacing = np.spacing(np.maximum(np.abs(exact).astype(float), np.finfo(float).tiny))
    return float((np.abs(values.astype(np.longdouble) - exact) / spacing).max())


@needs_compiler
def test_sine_and_cosine_are_exact_to_the_last_places(folder):
    rng, quarter = np.random.default_rng(0), np.pi / 2
    special = np.concatenate(
        [np.arange(-8, 9) * quarter, np.arange(-8, 9) * quarter / 2, [1e-300, -1e-9, 1e-5, 5e-324]]
    )
    x = np.concatenate(
        [
            special,
            rng.uniform(-1e4, 1e4, 200_000),
            rng.uniform(-7, 7, 200_000),
            np.nextafter(rng.integers(-6000, 6000, 2000) * quarter, 1e9),
            10.0 ** rng.uniform(-300, 0, 2000),
        ]
    )
    library = elementary(folder)
    for name, exact in (("sin", np.sin), ("cos", np.cos)):
        outputs = applied(library, name, x)
        assert np.abs(outputs).max() <= 1.0
        reference, near = exact(x.astype(np.longdouble)), np.abs(x) < NEAR
        assert units_in_the_last_place(outputs[near], reference[near]) < SINE_ULP + REFERENCE_ULP
        assert units_in_the_last_place(outputs, reference) < SINE_FAR_ULP + REFERENCE_ULP
    assert applied(library, "sin", np.zeros(1))[0] == 0.0
    assert applied(library, "cos", np.zeros(1))[0] == 1.0


@needs_compiler
def test_arctangent_is_exact_to_the_last_places_in_all_quadrants(folder):
    rng = np.random.default_rng(1)
    angle = rng.uniform(-np.pi, np.pi, 200_000)
    radius = 10.0 ** rng.uniform(-100, 100, len(angle))
    axes = np.array([(y, x) for y in (-2.0, 0.0, 1e-200, 3.0) for x in (-5.0, 1e-200, 1.0, 7.0)])
    y = np.concatenate([radius * np.sin(angle), axes[:, 0], rng.normal(size=50_000)])
    x = np.concatenate([radius * np.cos(angle), axes[:, 1], rng.normal(size=50_000)])
    library = elementary(folder)
    exact = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
    assert (
        units_in_the_last_place(applied(library, "atan2", y, x), exact)
        < ARCTANGENT_ULP + REFERENCE_ULP
    )


@needs_compiler
def test_arctangent_on_the_axes_is_the_librarys(folder):
    y = np.array([0.0, 0.0, -0.0, -0.0, 1.0, -1.0, 0.0])
    x = np.array([0.0, -1.0, -1.0, 1.0, 0.0, 0.0, 2.0])
    outputs = applied(elementary(folder), "atan2", y, x)
    np.testing.assert_array_equal(outputs, np.arctan2(y, x))
    np.testing.assert_array_equal(np.signbit(outputs), np.signbit(np.arctan2(y, x)))


@needs_compiler
def test_elementary_functions_of_no_number_are_none(folder):
    library, nan, ones = elementary(folder), np.array([np.nan]), np.ones(1)
    for name, arguments in (
        ("sin", (nan,)),
        ("cos", (nan,)),
        ("atan2", (nan, ones)),
        ("atan2", (ones, nan)),
    ):
        assert np.isnan(applied(library, name, *arguments)[0]), name


# The text


@pytest.mark.parametrize("name", CORE_MACHINES)
def test_the_text_has_no_heap_no_state_and_only_standard_headers(name):
    functions = [function(name, entry, "inverse_dynamics") for entry in ENTRIES]
    text = c_source(functions, name)
    assert re.findall(r"#include\s*(\S+)", text) == ["<math.h>", "<stddef.h>"]
    assert not re.search(
        r"\b(malloc|calloc|realloc|free|alloca|printf|goto|extern|volatile|errno)\b", text
    )
    for line in text.splitlines():
        if re.match(r"static\b", line):
            assert re.match(r"static (inline )?(double|int|void) (TL_APART )?\w+\(", line), line
    # nothing but functions and types stands at the outermost level
    outermost = [
        line
        for line in text.splitlines()
        if line and not line[0].isspace() and line[0] not in "{}#/"
    ]
    assert all(
        re.match(r"typedef double|(static |inline |void |double |int |TL_APART )+\w+\(", x)
        for x in outermost
    )
    assert text.isascii()


@pytest.mark.parametrize("name", CORE_MACHINES)
def test_the_text_passes_strict_compilers_with_and_without_threads(name, tmp_path):
    if not compilers():
        pytest.skip("needs gcc or clang, and neither is here")
    text = tmp_path / "text.c"
    text.write_text(
        c_source([function(name, entry, "inverse_dynamics") for entry in ENTRIES], name),
        encoding="ascii",
    )
    for compiler_name in compilers():
        for flags in ((), ("-fopenmp",)):
            command = [compiler_name, *STRICT, *flags, "-fsyntax-only", str(text)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr


TEXT_OF_TWO_MACHINES = """\
import sys
sys.path.insert(0, sys.argv[1])
from compiled_machines import function
from tauloop.compiler.c.printing.source import c_source
sys.stdout.write(c_source([function("five_bar", e, "inverse_dynamics") for e in ("platform", "actuators")], "twice"))
"""


def test_the_text_is_the_same_in_every_process():
    texts = set()
    for seed in ("1", "2"):
        command = [
            sys.executable,
            "-c",
            TEXT_OF_TWO_MACHINES,
            str(Path(__file__).parents[1] / "support"),
        ]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        texts.add(done.stdout)
    assert len(texts) == 1
    assert "five_bar" not in texts.pop()[:50]


@pytest.mark.parametrize(
    ("name", "entry"),
    [("linear_delta", "platform"), ("four_bar", "actuators"), ("five_bar", "actuators")],
)
def test_the_text_is_the_golden_one(name, entry, request):
    """Reviewed like code. Numbers are compared to twelve digits: their last ones are the processor's."""
    path = GOLDEN / f"{name}_{entry}.c"
    text = c_source([function(name, entry, "inverse_dynamics")], f"{name}, {entry}")
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="ascii")
    golden = path.read_text(encoding="ascii")
    changes = list(
        difflib.unified_diff(_rounded(golden), _rounded(text), "golden", "now", n=2, lineterm="")
    )
    hint = "where this is meant: pytest --update-golden, and review the difference like code"
    assert not changes, "\n".join([*changes[:80], f"... {len(changes)} lines of differences", hint])


def _rounded(text: str) -> list[str]:
    number = re.compile(r"\b\d+(\.\d+)?(e[+-]?\d+)?\b")
    return [number.sub(lambda case: f"{float(case[0]):.11e}", line) for line in text.splitlines()]


# Names and comments


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("delta", "delta"),
        ("RCID 2", "RCID_2"),
        ("a;rm -rf /", "a_rm__rf__"),
        ("größe", "gr__e"),
        ("x" * 99, "x" * 60),
    ],
)
def test_names_become_identifiers(text, name):
    assert c_name(text) == name


@pytest.mark.parametrize("text", ["", "2nd", "_x", "int", "main", "*/", "öl", "\n"])
def test_names_that_give_no_identifier_are_refused(text):
    with pytest.raises(InputError, match="C identifier"):
        c_name(text)


@pytest.mark.parametrize(
    "text",
    [
        "*/ int main",
        "**//",
        "/*/",
        "*\n/",
        "line\nbreak",
        "ends in \\",
        "??/",
        "größe Ω \x00 \x1b[31m \u202e",
        '"quoted" \'',
        "*\u2028/",
    ],
)
def test_comments_cannot_be_left(text):
    result = comment(text)
    assert result.isascii()
    assert result.isprintable()
    assert "*/" not in result
    assert "/*" not in result
    assert "??" not in result
    assert not result.endswith("\\")
