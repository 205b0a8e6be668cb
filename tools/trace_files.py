"""Files of the package between a machine's YAML and a torque: `python tools/trace_files.py`.

Counted are the files whose functions are called

- in Python, from `tauloop.load` to the forces of `inverse_dynamics`, interpreted;
- on the command line, by `tauloop dynamics MACHINE --pose x=0.01`.

Each is done once before, so that neither imports nor tables that are computed once count. Files of
code generation (`compiler/c`) are counted apart: the command compiles its program, Python
interprets the same program. The last number is the number of returns while the machine file is read:
calls from a stage of the reader to a later one. The stages are `STAGES`; each may use the results of
earlier ones, never call back.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np

import tauloop
from tauloop.cli import main as command_line
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.formats import machine_path
from tauloop.mechanism.description.reader import read_machine

ROOT = f"{Path(tauloop.__file__).parent}/"
#: Folder of code generation and machine code.
CODE_GENERATION = "compiler/c/"
#: Stages of the reader of machine files, the first one first: modules below `mechanism`.
STAGES = (
    ("description/units", "description/yaml_nodes", "expression"),
    ("description/parser", "description/cursor"),
    ("description/structure",),
    ("description/values",),
    ("description/placements",),
    (
        "description/sections/joints",
        "description/sections/bodies",
        "description/sections/elements",
        "solids/visual",
    ),
    ("description/reader",),
)
_STAGE_OF = {
    f"mechanism/{module}.py": stage for stage, modules in enumerate(STAGES) for module in modules
}


def calls_between_files(work: Callable[[], object]) -> Counter[tuple[str, str]]:
    """Return the number of calls from file to file of the package, during a second run of `work`.

    The caller of a function that is not called from the package is "".
    """
    calls: Counter[tuple[str, str]] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_function = bool(code.co_flags & inspect.CO_OPTIMIZED)  # no module, no body of a class
        if event == "call" and is_function and code.co_filename.startswith(ROOT):
            calls[_caller(frame), code.co_filename.removeprefix(ROOT)] += 1

    work()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def _caller(frame: FrameType) -> str:
    """Return the file that contains the call; a comprehension belongs to the function around it."""
    if frame.f_code.co_name == "<genexpr>":
        return frame.f_code.co_filename.removeprefix(ROOT)
    outer = frame.f_back
    while outer is not None and not outer.f_code.co_filename.startswith(ROOT):
        outer = outer.f_back
    return outer.f_code.co_filename.removeprefix(ROOT) if outer is not None else ""


def files_entered(calls: Counter[tuple[str, str]]) -> Counter[str]:
    """Return the number of calls of functions in each file."""
    entered: Counter[str] = Counter()
    for (_, file), count in calls.items():
        entered[file] += count
    return entered


def python_calls(machine: str) -> Counter[tuple[str, str]]:
    """Return the calls from `tauloop.load` to the forces of a machine at rest."""

    def work() -> None:
        model = tauloop.Model(tauloop.load(machine), evaluator=Interpreted())
        still = np.zeros(model.platform.ports.velocity.size)
        model.platform.inverse_dynamics(model.platform.ports.at(model.assembly.q), still, still)

    return calls_between_files(work)


def command_calls(machine: str) -> Counter[tuple[str, str]]:
    """Return the calls of `tauloop dynamics MACHINE --pose x=0.01`.

    Raises:
        RuntimeError: the command failed.
    """
    words = ["tauloop", "dynamics", machine, "--pose", "x=0.01"]

    def work() -> None:
        former, sys.argv = sys.argv, words
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                command_line()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"{' '.join(words)} ends with {end.code}") from None
        finally:
            sys.argv = former

    return calls_between_files(work)


def returns_while_reading(machine: str) -> Counter[tuple[str, str]]:
    """Return the calls from a stage of the reader to a later one, for the file of a machine."""
    path = machine_path(machine)
    text = path.read_text(encoding="utf-8")
    calls = calls_between_files(lambda: read_machine(text, path.name, path.parent))
    returns: Counter[tuple[str, str]] = Counter()
    for (caller, callee), count in calls.items():
        if caller in _STAGE_OF and _STAGE_OF.get(callee, 0) > _STAGE_OF[caller]:
            returns[caller, callee] = count
    return returns


def main(machine: str = "delta") -> None:
    """Print the files of both, with the number of calls, and the returns of the reader."""
    for title, calls in (
        ("in Python", python_calls(machine)),
        ("on the command line", command_calls(machine)),
    ):
        entered = files_entered(calls)
        for file, count in sorted(entered.items()):
            sys.stdout.write(f"{count:8d}  {file}\n")
        generating = sum(file.startswith(CODE_GENERATION) for file in entered)
        sys.stdout.write(f"{len(entered) - generating:8d}  files {title}\n")
        sys.stdout.write(f"{generating:8d}  files of code generation {title}\n")
    returns = returns_while_reading(machine)
    for (caller, callee), count in sorted(returns.items()):
        sys.stdout.write(f"{count:8d}  {caller} -> {callee}\n")
    sys.stdout.write(f"{returns.total():8d}  returns while reading\n")


if __name__ == "__main__":
    main(*sys.argv[1:2])
