"""The environment of an older processor: what compilers, NumPy and OpenBLAS would use there.

A wrapper of each compiler, first on the path, replaces ``-march=native`` by an older instruction
set. NumPy and OpenBLAS are asked for their older code. Results then have the rounding of that
processor, on this one.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Processor:
    """An older processor.

    Attributes:
        architecture: what compilers call its instruction set.
        blas: what OpenBLAS calls it.
        numpy: NumPy's groups of instructions that it has.
    """

    architecture: str
    blas: str
    numpy: frozenset[str]


#: NumPy's names of the instructions of a processor with AVX2, in its versions from 2.2 on.
AVX2 = ("SSSE3", "SSE41", "SSE42", "POPCNT", "AVX", "F16C", "FMA3", "AVX2", "X86_V3")
#: By the option ``--processor``.
PROCESSORS = {
    "avx2": Processor("x86-64-v3", "Haswell", frozenset(AVX2)),
    "sse2": Processor("x86-64", "Nehalem", frozenset()),
}
#: Compilers that tests start by name.
COMPILERS = ("cc", "gcc", "clang", "c++", "g++", "clang++")
#: A compiler that is asked for a certain processor compiles for it.
WRAPPER = """\
#!/bin/sh
case " $* " in
    *" -march=native "*) ;;
    *" -march="*) exec {path} "$@" ;;
esac
exec {path} "$@" -march={architecture}
"""
#: Groups of instructions that NumPy would choose on this computer.
CHOSEN = """
import json
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
print(json.dumps([name for name in __cpu_dispatch__ if __cpu_features__[name]]))
"""


def environment(name: str, folder: Path) -> dict[str, str]:
    """Settings of a process that shall run as on an older processor, with a cache of compiled code of its own.

    Args:
        name: one of `PROCESSORS`.
        folder: where the wrappers and the cache are kept.

    Raises:
        ValueError: this computer has another kind of processor.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        raise ValueError(
            f"--processor {name} needs an x86-64 computer; this is {platform.machine()}"
        )
    processor = PROCESSORS[name]
    wrappers = folder / "bin"
    shutil.rmtree(wrappers, ignore_errors=True)
    wrappers.mkdir(parents=True)
    for compiler in COMPILERS:
        path = shutil.which(compiler)
        if path is not None:
            wrapper = wrappers / compiler
            wrapper.write_text(
                WRAPPER.format(path=path, architecture=processor.architecture), encoding="ascii"
            )
            wrapper.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", CHOSEN], capture_output=True, text=True, check=True
    )
    newer = [group for group in json.loads(done.stdout) if group not in processor.numpy]
    return {
        "PATH": os.pathsep.join([str(wrappers), os.environ["PATH"]]),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "OPENBLAS_CORETYPE": processor.blas,
        "NPY_DISABLE_CPU_FEATURES": " ".join(newer),
    }
