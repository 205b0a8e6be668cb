"""The walk through machine code passes what the processor runs, and the analyser's report is read rightly."""

from __future__ import annotations

import importlib
import platform
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tauloop import Model, load
from tauloop.compiler.c.calling.compiler import find_compiler
from tauloop.compiler.c.printing.batch_source import LANES
from tauloop.compiler.c.printing.source import CFunction

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
#: Blocks of the batch that is stepped through.
BLOCKS = 3
#: Cycles from one product to another that needs it, on all cores with AVX-512 that Intel made.
PRODUCT_LATENCY = 4
#: Cycles between divisions of eight numbers on them.
DIVISION = 16
#: Runs a function under the processor's single step and counts what lies between two marks. A
#: string instruction stops at each repetition; it counts once.
STEPPER = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
void kernel_begin(void);
void kernel_end(void);
size_t {name}(size_t, const size_t *, {types});
int main(void)
{{
    double *a[{arrays}];
    const size_t steps[{arrays}] = {{{sizes}}};
    for (int i = 0; i < {arrays}; ++i) {{
        a[i] = calloc({samples} * 64, sizeof(double));
        for (int k = 0; k < {samples} * 64; ++k) a[i][k] = 0.1 + 0.001 * (k % 7);
    }}
    const pid_t child = fork();
    if (!child) {{
        if (ptrace(PTRACE_TRACEME, 0, 0, 0)) _exit(3);
        raise(SIGSTOP);
        {name}({samples}, steps, {values});
        _exit(0);
    }}
    long count = 0;
    unsigned long before = 0;
    int status;
    waitpid(child, &status, 0);
    if (WIFEXITED(status)) return 3;
    for (;;) {{
        struct user_regs_struct r;
        if (ptrace(PTRACE_GETREGS, child, 0, &r)) return 3;
        if (r.rip != before && r.rip >= (unsigned long)kernel_begin && r.rip < (unsigned long)kernel_end) ++count;
        before = r.rip;
        if (ptrace(PTRACE_SINGLESTEP, child, 0, 0)) return 3;
        waitpid(child, &status, 0);
        if (WIFEXITED(status)) break;
    }}
    printf("%ld", count);
    return 0;
}}
"""
NEWTON = """
void many_batch(unsigned long n, const double *restrict x, double *restrict y)
{
    for (unsigned long b = 0; b < n / 16; ++b) {
        double s[16], step[16];
        for (int l = 0; l < 16; ++l) s[l] = 1.0 + x[16 * b + l];
        for (int k = 0; k < 25; ++k) {
            int above = 0;
            for (int l = 0; l < 16; ++l) {
                step[l] = (x[16 * b + l] / s[l] - s[l]) * 0.5;
                s[l] += step[l];
            }
            for (int l = 0; l < 16; ++l) above += step[l] > 1e-8;
            if (above == 0) break;
        }
        for (int l = 0; l < 16; ++l) y[16 * b + l] = s[l];
    }
}
"""


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    compiler = find_compiler()
    if compiler is None or not compiler.is_gcc or platform.machine() != "x86_64":
        pytest.skip("the walk reads what gcc writes for x86-64")
    return importlib.import_module("machine_code")


def part(name: str) -> ModuleType:
    return importlib.import_module(f"machine_code.{name}")


def kernel() -> CFunction:
    return Model(load("five_bar")).platform.source_function("inverse_dynamics", ("force",))


def stepped(function: CFunction, files: list[str], folder: Path) -> int:
    """Instructions of a batch, counted while it runs."""
    compiler = find_compiler()
    assert compiler is not None
    arrays = len(function.arguments)
    marks = {"begin": "kernel_begin", "end": "kernel_end"}
    sources = {
        f"{key}.c": f"void {name}(void);\nvoid {name}(void) {{}}\n" for key, name in marks.items()
    }
    sources["main.c"] = STEPPER.format(
        name=f"{function.name}_batch",
        arrays=arrays,
        samples=BLOCKS * LANES,
        sizes=", ".join(str(port.size) for port in function.arguments),
        types=", ".join(["double *"] * arrays),
        values=", ".join(f"a[{i}]" for i in range(arrays)),
    )
    # what fills the gaps before aligned places is in the program, not in its text
    files = [re.sub(r"^\s+\.p2align.*\n", "", text, flags=re.MULTILINE) for text in files]
    names = [f"{i}.s" for i in range(len(files))]
    for name, text in {**sources, **dict(zip(names, files, strict=True))}.items():
        (folder / name).write_text(text, encoding="utf-8")
    # in this order they lie in the program
    parts = [str(folder / name) for name in ("begin.c", *names, "end.c", "main.c")]
    subprocess.run([compiler.path, "-O1", *parts, "-o", str(folder / "step"), "-lm"], check=True)
    done = subprocess.run([str(folder / "step")], capture_output=True, text=True, check=False)
    if done.returncode == 3:
        pytest.skip("a program may not be stepped through here")
    assert done.returncode == 0
    return int(done.stdout)


def test_a_walk_passes_what_the_processor_runs(code: ModuleType, tmp_path: Path) -> None:
    compiler, function = find_compiler(), kernel()
    assert compiler is not None
    files = part("kernels").assembly(function, compiler, "native")
    arguments = [BLOCKS * LANES, None, *[None] * len(function.arguments)]
    walker = part("walk").walked(
        part("assembly").parsed(files), f"{function.name}_batch", arguments
    )
    assert walker.guessed == 0
    assert len(walker.steps) == stepped(function, files, tmp_path)


@pytest.mark.parametrize(("architecture", "lanes"), [("haswell", 4), ("icelake-server", 8)])
def test_the_toolkits_flags_fill_registers_with_samples(
    code: ModuleType, architecture: str, lanes: int
) -> None:
    compiler, function = find_compiler(), kernel()
    assert compiler is not None
    result = part("assembly").parsed(part("kernels").assembly(function, compiler, architecture))
    steps, samples = part("kernels").passed(function, result, 1, in_lanes=True)
    assert part("kinds").widest(result, steps) == lanes
    # a block of lanes divides as often as as many calls, with registers full of samples
    call, _ = part("kernels").passed(function, result, 1, in_lanes=False)
    divisions = [part("kinds").counts(result, each)["divisions"] for each in (steps, call)]
    assert divisions[0] * lanes == divisions[1] * samples > 0


@pytest.mark.parametrize("rounds", [1, 3])
def test_newtons_loop_runs_the_given_rounds(code: ModuleType, rounds: int, tmp_path: Path) -> None:
    compiler = find_compiler()
    assert compiler is not None
    source, result = tmp_path / "many.c", tmp_path / "many.s"
    source.write_text(NEWTON, encoding="ascii")
    flags = ["-O2", "-ftree-vectorize", "-march=icelake-server", "-mprefer-vector-width=512"]
    subprocess.run([compiler.path, *flags, "-S", str(source), "-o", str(result)], check=True)
    text = part("assembly").parsed([result.read_text(encoding="utf-8")])
    walker = part("walk").walked(text, "many_batch", [BLOCKS * LANES, None, None], rounds)
    steps = part("walk").one_round(walker, BLOCKS)
    lanes = sum({"%zmm": 8, "%ymm": 4, "%xmm": 1}[register] for register in divided(text, steps))
    assert lanes == rounds * LANES


def divided(value: object, steps: list[object]) -> list[str]:
    texts = [value.instructions[step.place].text for step in steps]  # type: ignore[attr-defined]
    return [
        next(r for r in ("%zmm", "%ymm", "%xmm") if r in text) for text in texts if "vdiv" in text
    ]


@pytest.mark.skipif(
    shutil.which("llvm-mca") is None, reason="llvm-mca (Debian: llvm) is not installed"
)
def test_the_analysers_report_is_read(code: ModuleType) -> None:
    text = "f:\n\tvxorpd %xmm0, %xmm0, %xmm0\n" + 100 * "\tvmulsd %xmm1, %xmm0, %xmm0\n"
    chain = part("assembly").parsed([text + 25 * "\tvdivpd %zmm2, %zmm3, %zmm4\n"]).instructions
    tool = part("analyser").analyser()
    # a chain that cannot wait for its own start: repeated, it is bound by the last product of the
    # time before
    dependent = tool.cycles(chain[1:101], "icelake-server")
    assert dependent.simulated == pytest.approx(100 * PRODUCT_LATENCY, rel=0.01)
    assert dependent.bound == pytest.approx(50.0, rel=0.01)
    divisions = tool.cycles(chain[101:], "icelake-server")
    assert divisions.simulated == pytest.approx(25 * DIVISION, rel=0.01)
    assert divisions.bound == pytest.approx(25 * DIVISION, rel=0.01)
    with pytest.raises(part("analyser").Missing, match="no core"):
        tool.cycles(chain, "no core")


def test_a_missing_analyser_says_what_to_install(
    code: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    predict = importlib.import_module("predict_avx512")
    assert predict.main(["--analyser", "no-such-analyser"]) == 1
    assert "apt-get install llvm" in capsys.readouterr().err


@pytest.mark.skipif(
    shutil.which("llvm-mca") is None, reason="llvm-mca (Debian: llvm) is not installed"
)
@pytest.mark.parametrize("features", [("avx2",), ("avx2", "avx512f")])
def test_the_page_gets_what_was_measured_where_there_is_avx_512_and_a_prediction_elsewhere(
    code: ModuleType, features: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict = importlib.import_module("predict_avx512")
    monkeypatch.setattr(
        predict, "processor", lambda: SimpleNamespace(name="a core", features=features)
    )
    # LLVM may not know this core
    analyser = replace(part("analyser").analyser(), host="icelake-server")
    monkeypatch.setattr(predict, "analyser", lambda _: analyser)
    page = tmp_path / "page.md"
    marks = [*predict.PREDICTION_MARKS, "", *predict.MEASURED_MARKS]
    page.write_text("\n".join(marks), encoding="utf-8")
    assert predict.main(["--only", "delta", "--seconds", "0.01", "--markdown", str(page)]) == 0
    predicted, measured = page.read_text(encoding="utf-8").split(predict.PREDICTION_MARKS[1])
    written, other = (measured, predicted) if "avx512f" in features else (predicted, measured)
    assert "delta" not in other
    rows = [
        line.strip("| ").split(" | ") for line in written.splitlines() if line.startswith("| delta")
    ]
    works = [
        f"delta, {of} dynamics, {how}" for of in ("inverse", "forward") for how in ("call", "batch")
    ]
    assert [row[0] for row in rows] == works
    assert all(float(row[2].split()[0]) > 0 for row in rows)
