"""Machine code of a graphics processor: the instructions of its functions, as NVIDIA's disassembler prints them.

The disassembler comes as `nvidia-cuda-nvdisasm` (extra `dev`), or with the CUDA toolkit. Loops are counted once.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import astuple, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

#: Kinds of instructions: of the unit for doubles, of the one for floats, and those that load or
#: store a thread's own memory (by pointers, too, which may lead elsewhere).
_DOUBLE, _FLOAT = (
    re.compile(r"DFMA|DMUL|DADD|DSETP|DMNMX"),
    re.compile(r"FFMA|FMUL|FADD|FSETP|FMNMX|FSEL"),
)
_OWN = re.compile(r"(?:LDL|STL|LD|ST)(?:\.E)?(?:\.(?P<bits>64|128|U8))?$")
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]+)")
_LABEL = re.compile(
    r"^(?:\.text\.(?P<kernel>\w+)|\$\w+\$_Z.*?\d(?P<function>(?:system|tl)_\w+?)(?:E?P|i|d)\S*):"
)


@dataclass(frozen=True, slots=True)
class Code:
    """Instructions of a function: all, those for doubles and for floats; bytes of the thread's own memory that are
    loaded and stored, and how many of these instructions move a single byte."""

    instructions: int = 0
    doubles: int = 0
    floats: int = 0
    own_bytes: int = 0
    bytewise: int = 0

    def __add__(self, other: Code) -> Code:
        return Code(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __mul__(self, times: int) -> Code:
        return Code(*(times * a for a in astuple(self)))


@cache
def disassembler() -> str | None:
    """Return the path of NVIDIA's disassembler, of the toolkit or of a wheel."""
    spec = find_spec("nvidia")
    folders = list(spec.submodule_search_locations or []) if spec else []
    wheels = [str(path) for folder in folders for path in Path(folder).glob("*/bin/nvdisasm")]
    return shutil.which("nvdisasm") or next(iter(wheels), None)


def functions_of(path: Path) -> dict[str, Code] | None:
    """Return functions by name: kernels and the functions they call, which the compiler counts for their callers.

    None without a disassembler.
    """
    program = disassembler()
    if program is None:
        return None
    text = subprocess.run(
        [program, "-c", str(path)], capture_output=True, text=True, check=False
    ).stdout
    functions: dict[str, Code] = {}
    name = kernel = ""
    for line in text.splitlines():
        if label := _LABEL.match(line):
            kernel = label["kernel"] or kernel
            name = label["function"] or kernel
        elif line.startswith("$"):
            name = kernel
        elif instruction := _INSTRUCTION.match(line):
            functions[name] = functions.get(name, Code()) + _code(instruction[1])
    return functions or None


def _code(name: str) -> Code:
    own = _OWN.match(name)
    bits = "0" if own is None else own["bits"]
    size = {"64": 8, "128": 16, "U8": 1, None: 4, "0": 0}[bits]
    return Code(
        1, int(bool(_DOUBLE.match(name))), int(bool(_FLOAT.match(name))), size, int(bits == "U8")
    )


def step(functions: dict[str, Code], kernel: str, evaluations: int) -> Code:
    """Return the code of one integration step, including one controller sample.

    Args:
        functions: of the kernel's machine code.
        kernel: its name.
        evaluations: number of evaluations of rates in a step.
    """
    once = [functions.get(name, Code()) for name in (kernel, "system_sample", "system_back")]
    return sum(once, functions["system_rate"] * evaluations)
