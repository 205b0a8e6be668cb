"""LLVM's machine code analyzer (`llvm-mca`): how many cycles a stretch of instructions takes on a core.

It simulates dispatch, waiting for operands, and the units of the core, as LLVM's scheduling models
describe them. It assumes that every load hits the nearest cache and depends on no store, and that
every branch is predicted; it models neither the decoders nor the lower clock of wide registers.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from machine_code.assembly import Instruction

#: Repetitions of a stretch: the difference excludes filling and emptying the core.
REPETITIONS = (4, 10)
#: Instructions that the analyzer cannot follow, or counts as a hundred cycles.
_LEFT_OUT = ("call", "ret", "rep", "leave")


class Missing(Exception):
    """A tool is missing or fails; the text states what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycles:
    """Cycles of one repetition.

    Attributes:
        simulated: in the steady state.
        bound: by the units alone, which no order of the instructions can beat.
    """

    simulated: float
    bound: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Analyser:
    """An `llvm-mca`.

    Attributes:
        path: the executable.
        version: as it prints it.
        host: LLVM's name of this computer's core.
    """

    path: str
    version: str
    host: str

    def cycles(self, instructions: Sequence[Instruction], core: str) -> Cycles:
        """Return the cycles of a repeated stretch on a core by LLVM's name.

        Raises:
            Missing: it fails, or does not know the core.
        """
        lines = [one.text for one in instructions if not one.name.startswith(_LEFT_OUT)]
        first, last = (self._report(tuple(lines), core, n) for n in REPETITIONS)
        return Cycles(
            simulated=(_figure("Total Cycles", last) - _figure("Total Cycles", first))
            / (REPETITIONS[1] - REPETITIONS[0]),
            bound=_figure("Block RThroughput", last),
        )

    def _report(self, lines: tuple[str, ...], core: str, repetitions: int) -> str:
        options = [
            f"-mcpu={core}",
            f"-iterations={repetitions}",
            "-instruction-info=0",
            "-resource-pressure=0",
        ]
        text = "\n".join(lines) + "\n"
        done = subprocess.run(
            [self.path, *options, "-"], input=text, capture_output=True, text=True, check=False
        )
        # for an unknown core it takes a generic one, with exit code 0
        if done.returncode or "is not a recognized processor" in done.stderr:
            lines = done.stderr.strip().splitlines()
            raise Missing(f"{self.path} -mcpu={core}: {lines[0] if lines else 'failed'}")
        return done.stdout


@functools.cache
def analyser(path: str = "llvm-mca") -> Analyser:
    """Return the analyzer at a path or of that name.

    Raises:
        Missing: there is none.
    """
    found = shutil.which(path)
    if found is None:
        raise Missing(
            f"there is no {path}: install LLVM's tools (Debian: apt-get install llvm) or give --analyser"
        )
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"LLVM version ([\d.]+)", said)
    host = re.search(r"Host CPU: (\S+)", said)
    if version is None or host is None:
        raise Missing(f"{found} does not print its version and this computer's core")
    return Analyser(path=found, version=version[1], host=host[1])


def _figure(name: str, report: str) -> float:
    match = re.search(rf"^{name}:\s+([\d.]+)$", report, re.MULTILINE)
    if match is None:
        raise Missing(f"the report lacks {name!r}")
    return float(match[1])
