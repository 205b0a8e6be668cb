"""Least time of a function by the number of its operations, on this computer's core.

The core's clock and the throughput of its divider are measured; two units for sums and products are
assumed, as on all relevant cores with AVX2 or AVX-512.
"""

from __future__ import annotations

import ctypes
import functools
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from peers.cache import NotBuilt, built
from peers.computer import compiler_version, processor

from tauloop.compiler.c.printing.operations import operations
from tauloop.compiler.c.printing.source import CFunction

#: Number of units for sums and products, and of lanes of a register by the processor's widest extension.
UNITS = 2
LANES = {"avx512f": 8, "avx2": 4, "avx": 4, "asimd": 2, "sse4_2": 2}
FLAGS = (
    "-std=gnu99",
    "-O2",
    "-ftree-vectorize",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
)
#: A round of the chain below is three shifts and three exclusive ors, each of which depends on the
#: one before: one cycle each.
CYCLES = 6
SOURCE = """
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#define N 512
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static double x[N], y[N];
double probe(int what, uint64_t *sink);
double probe(int what, uint64_t *sink)
{
    const double start = now();
    if (what == 0) {
        uint64_t s = *sink | 1;
        for (int i = 0; i < 200000; ++i) { s ^= s << 13; s ^= s >> 7; s ^= s << 17; }
        *sink = s;
        return (now() - start) / 200000;
    }
    for (int i = 0; i < N; ++i) x[i] = 1.5 + i;
    const double begin = now();
    for (int k = 0; k < 400; ++k) {
        if (what == 1) for (int i = 0; i < N; ++i) y[i] = 3.7 / x[i];
        else for (int i = 0; i < N; ++i) y[i] = sqrt(x[i]);
        __asm__ volatile("" : : "r"(x), "r"(y) : "memory");
    }
    *sink += (uint64_t)y[N / 2];
    return (now() - begin) / (400.0 * N);
}
"""
TRIES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """Times of the core, s.

    Attributes:
        cycle: of the clock, under such code.
        division, root: of one lane, in a long sequence.
        lanes: of a register.
    """

    cycle: float
    division: float
    root: float
    lanes: int


@functools.cache
def core(further: tuple[str, ...] = ()) -> Core | None:
    """Return the measured core; None without a C compiler.

    Args:
        further: flags of the compiler that restrict the width of vectors.
    """
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.c"
        source.write_text(SOURCE, encoding="ascii")
        salt = compiler_version(compiler) + processor().name
        try:
            library = ctypes.CDLL(
                str(built("probe", [compiler, *FLAGS, *further, "-shared"], source, salt))
            )
        except NotBuilt:
            return None
    library.probe.restype = ctypes.c_double
    sink = ctypes.c_uint64(1)
    chain, division, root = (_least(library.probe, what, sink) for what in range(3))
    features = processor().features
    usable = {name for name in features if f"-mno-{name}" not in further}
    lanes = next((count for name, count in LANES.items() if name in usable), 1)
    return Core(cycle=chain / CYCLES, division=division, root=root, lanes=lanes)


def _least(probe: Callable[..., float], what: int, sink: ctypes.c_uint64) -> float:
    return min(probe(what, ctypes.byref(sink)) for _ in range(TRIES))


def limits(
    function: CFunction,
    iterations: float = 0.0,
    *,
    in_lanes: bool,
    further: tuple[str, ...] = (),
) -> tuple[float | None, float | None]:
    """Return the least time of a sample by its operations, and that of its divisions and roots alone, s.

    Args:
        function: what is computed.
        iterations: of its Newton loops for a sample.
        in_lanes: whether a register is full of samples, or holds one.
        further: flags of the compiler that restrict the width of vectors.
    """
    found = core(further)
    if found is None:
        return None, None
    counted = operations(function)
    counts = {
        kind: counted["once"][kind] + iterations * counted["each_iteration"][kind]
        for kind in counted["once"]
    }
    lanes = found.lanes if in_lanes else 1
    # one division alone occupies the divider nearly as long as a register full of them
    times = found.lanes / lanes
    divider = times * (counts["divisions"] * found.division + counts["roots"] * found.root)
    return sum(counts.values()) / (UNITS * lanes) * found.cycle, divider
