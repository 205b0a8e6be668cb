"""Target processors of exported C code; code size, stack depth and calls from their compilers.

The stack depth of a function is the largest sum of stack frames over all chains of calls from it.
gcc reports the frames and the calls (-fcallgraph-info=su). Recursion is rejected.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from tauloop.common.errors import EngineError
from tauloop.common.files import temporary_folder
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.compiler import COMPILERS, TIMEOUT, run_program

#: Flags for every target: no extended precision, and no errno for sqrtf.
COMMON_FLAGS = ("-std=c99", "-O2", "-fno-math-errno", "-ffp-contract=off")
_NODE = re.compile(r'node: \{ title: "(?P<title>[^"]*)" label: "(?P<label>[^"]*)"')
_EDGE = re.compile(r'edge: \{ sourcename: "(?P<source>[^"]*)" targetname: "(?P<target>[^"]*)"')
_STACK = re.compile(r"\\n(\d+) bytes \((static|dynamic,bounded)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A target processor.

    Attributes:
        name: name of the target.
        compilers: names of compilers; the first installed one is used.
        flags: command-line flags for the processor.
        package: package that contains the compiler.
    """

    name: str
    compilers: tuple[str, ...]
    flags: tuple[str, ...]
    package: str


_ARM, _ARM_PACKAGE = ("arm-none-eabi-gcc",), "gcc-arm-none-eabi (Debian)"
_HARD = ("-mthumb", "-mfloat-abi=hard")
#: Targets by name. The generic target represents any processor; it uses the compiler of this
#: computer.
TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        target.name: target
        for target in (
            Target(name="generic", compilers=("gcc", *COMPILERS), flags=(), package="gcc"),
            Target(
                name="cortex-m4f",
                compilers=_ARM,
                flags=("-mcpu=cortex-m4", *_HARD, "-mfpu=fpv4-sp-d16"),
                package=_ARM_PACKAGE,
            ),
            Target(
                name="cortex-m7",
                compilers=_ARM,
                flags=("-mcpu=cortex-m7", *_HARD, "-mfpu=fpv5-d16"),
                package=_ARM_PACKAGE,
            ),
        )
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFigures:
    """Code size, stack depth and calls of C code on a target.

    Attributes:
        compiler: first line of the compiler's version text.
        flags: command-line flags.
        code_bytes, data_bytes: sizes in the object file: instructions with constants, and static
            variables.
        stack_bytes: stack depth of each function, without calls outside the file.
        calls: functions outside the file that are called.
    """

    compiler: str
    flags: tuple[str, ...]
    code_bytes: int
    data_bytes: int
    stack_bytes: Mapping[str, int]
    calls: tuple[str, ...]


def target_figures(
    target: Target, files: Mapping[str, str], source: str, functions: Sequence[str]
) -> TargetFigures:
    """Compile a file for a target and return code size, stack depth and calls.

    Args:
        target: processor and compiler to compile for.
        files: C texts by name.
        source: name of the file to compile.
        functions: functions whose stack depths are requested.

    Raises:
        EngineError: the compiler is not installed or fails, or a function calls itself.
    """
    compiler = next(filter(None, map(shutil.which, target.compilers)), None)
    if compiler is None:
        what = f"{' or '.join(target.compilers)} was not found"
        raise EngineError.of(target.name, what, f"install {target.package}")
    flags = (*COMMON_FLAGS, *target.flags)
    with temporary_folder() as folder:
        for name, text in files.items():
            (folder / name).write_text(text, encoding="ascii")
        _ran([compiler, *flags, "-fcallgraph-info=su", "-c", source, "-o", "out.o"], folder)
        (graph,) = folder.glob("*.ci")
        frames, calls = _graph(graph.read_text(encoding="utf-8", errors="replace"))
        code, data = _sizes(
            _ran([_tool_of_toolchain(compiler, "size"), "-A", "-d", "out.o"], folder)
        )
        undefined = _ran([_tool_of_toolchain(compiler, "nm"), "-u", "out.o"], folder).split()
    return TargetFigures(
        compiler=_ran([compiler, "--version"]).partition("\n")[0],
        flags=flags,
        code_bytes=code,
        data_bytes=data,
        stack_bytes={name: deepest(name, frames, calls) for name in functions},
        calls=tuple(sorted({word for word in undefined if len(word) > 1})),
    )


def deepest(
    name: str,
    frames: Mapping[str, int],
    calls: Mapping[str, Sequence[str]],
    chain: tuple[str, ...] = (),
) -> int:
    """Return the stack depth of a function, bytes.

    Args:
        name: the function.
        frames: stack frame of each function, bytes; zero for other functions.
        calls: functions that each function calls.
        chain: names of the callers so far.

    Raises:
        EngineError: a function occurs twice in the chain.
    """
    if name in chain:
        raise EngineError.of(
            name,
            f"calls itself: {' -> '.join((*chain, name))}",
            "report this: Tauloop generates no such code",
        )
    below = (deepest(called, frames, calls, (*chain, name)) for called in calls.get(name, ()))
    return frames.get(name, 0) + max(below, default=0)


def _graph(text: str) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Return the stack frame of each function, bytes, and its calls."""
    frames, calls = {}, dict[str, list[str]]()
    for node in _NODE.finditer(text):
        stack = _STACK.search(node["label"])
        if stack:
            frames[node["title"]] = int(stack[1])
    for edge in _EDGE.finditer(text):
        calls.setdefault(edge["source"], []).append(edge["target"])
    return frames, calls


def _sizes(text: str) -> tuple[int, int]:
    """Return sizes of instructions with constants, and of variables, from a table of sections."""
    rows = [line.split() for line in text.splitlines()]
    sections = [(row[0], int(row[1])) for row in rows if len(row) == 3 and row[1].isdigit()]
    code = sum(size for name, size in sections if name.startswith((".text", ".rodata")))
    return code, sum(size for name, size in sections if name.startswith((".data", ".bss")))


def _tool_of_toolchain(compiler: str, tool: str) -> str:
    """Return the path of a tool from the same toolchain as a compiler."""
    path = Path(compiler)
    if not path.name.endswith("-gcc"):
        return tool
    return str(path.with_name(path.name.removesuffix("gcc") + tool))


def _ran(command: list[str], folder: Path | None = None) -> str:
    """Return the output of a program.

    Raises:
        EngineError: the program cannot be started, or fails.
    """
    try:
        done = run_program(command, TIMEOUT, folder)
    except subprocess.TimeoutExpired:
        what = f"was stopped after {TIMEOUT:g} s: {shlex.join(command)}"
        remedy = "run the command in a terminal; if it hangs there too, install another compiler"
        raise EngineError.of(command[0], what, remedy) from None
    except OSError as error:
        raise EngineError.of(command[0], f"cannot be run: {error}", "install it") from error
    if done.returncode:
        what = f"fails: {' '.join(done.stderr.split())[:500]}"
        raise EngineError.of(
            command[0], what, "choose another target, or update the compiler (gcc 10 or later)"
        )
    return done.stdout
