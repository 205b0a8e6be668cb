"""C text of batch kernels: samples are turned from rows into lanes, block by block, and back."""

from __future__ import annotations

from collections.abc import Sequence

from tauloop.compiler.c.calling.signature import CPort, CSignature
from tauloop.compiler.limits import CONVERGED, FEW_STEPS, SMALLEST_PIVOT

#: Samples per block of a batch kernel: two to four vector registers' worth. With the registers of
#: AVX-512, which are twice as many too, kernels in one piece keep a block of half the size in them.
LANES, LANES_OF_WIDE_REGISTERS = 16, 8
#: A kernel whose ports and kept values are more numbers than this has smaller blocks on every
#: processor: those of 16 samples would leave the core's first cache (TX40 with Jacobians 211 to 163
#: ns, with AVX2's registers 291 to 242).
NUMBERS_IN_CACHE, FEW_LANES = 380, 8
#: Threads start to pay for themselves at this many samples of a batch.
SAMPLES_FOR_THREADS = 2048
#: Columns of a port that are copied by a line each; more are copied in a loop, or turned back by
#: `tl_back`.
MOST_LINES = 24
#: Columns of ports that compilers would turn from rows into lanes number by number.
TURNED_IN_PAIRS = (5, 6, 7)
#: Whether a lane is in reach, regular and near its start; without branches, so that it stays vector
#: instructions.
_IS_SOUND = (
    f"(lanes_health[0][l] >= 0.0) & (lanes_health[1][l] > {SMALLEST_PIVOT!r})"
    f" & (fabs(lanes_health[2][l]) < {CONVERGED!r}) & (lanes_health[3][l] <= {float(FEW_STEPS)!r})"
)


def batch_text(function: CSignature, *, is_counted: bool = False) -> str:
    """Return the C text of the loop over blocks, the last of which is filled up with its last sample.

    Args:
        function: what is computed.
        is_counted: whether the kernel takes the numbers by which each array advances a sample (zero
            where all samples share one row, which is then there for a whole block), and returns the
            number of samples that failed.
    """
    ports = function.arguments
    results = ports[len(function.inputs) :]
    blocks = ", ".join(_advanced(i, port, is_counted=is_counted) for i, port in enumerate(ports))
    rest = ", ".join(f"tail_{port.name}" for port in ports)
    steps = [
        f"steps[{i}]" if is_counted else str(port.size) for i, port in enumerate(function.inputs)
    ]
    fill = [
        f"tail_{port.name}[l * {port.size} + i] = {port.name}[s * {step} + i];"
        for port, step in zip(function.inputs, steps, strict=True)
    ]
    copy_back = [
        f"{port.name}[(first + l) * {port.size} + i] = tail_{port.name}[l * {port.size} + i];"
        for port in results
    ]
    add, end = ("bad += ", ["    return bad;"]) if is_counted else ("", [])
    lines = [
        _rows(function, is_counted=is_counted),
        batch_head(function, is_counted=is_counted),
        "{",
        "    const ptrdiff_t blocks = (ptrdiff_t)(n / TL_LANES);",
        "    const size_t rest = n % TL_LANES;",
        *(["    size_t bad = 0;"] if is_counted else []),
        "#ifdef _OPENMP",
        f"#pragma omp parallel for schedule(static) if (n >= {SAMPLES_FOR_THREADS})",
        "#endif",
        "    for (ptrdiff_t b = 0; b < blocks; ++b) {",
        "        const size_t first = (size_t)b * TL_LANES;",
        f"        {add}{function.name}_rows({blocks});",
        "    }",
        "    if (rest) {",
        "        const size_t first = n - rest;",
        *(f"        double tail_{port.name}[TL_LANES * {max(port.size, 1)}];" for port in ports),
        "        for (size_t l = 0; l < TL_LANES; ++l) {",
        "            const size_t s = first + (l < rest ? l : rest - 1);",
        "            (void)s;",
        *_loops(function.inputs, fill),
        "        }",
        f"        {add}{function.name}_rows({rest});",
        "        for (size_t l = 0; l < rest; ++l) {",
        *_loops(results, copy_back),
        "        }",
        "    }",
        *end,
        "}",
        "",
    ]
    return "\n".join(lines)


def batch_head(function: CSignature, *, is_counted: bool = False) -> str:
    """Return the C text of a kernel's name with its parameters."""
    parameters = ", ".join(argument(port, port in function.inputs) for port in function.arguments)
    if is_counted:
        return f"size_t {function.name}_batch(size_t n, const size_t *steps, {parameters})"
    return f"void {function.name}_batch(size_t n, {parameters})"


def _advanced(i: int, port: CPort, *, is_counted: bool) -> str:
    """Return the C text of where a block's numbers of a port begin."""
    if not port.size:
        return port.name
    return f"{port.name} + first * {f'steps[{i}]' if is_counted else port.size}"


def _rows(function: CSignature, *, is_counted: bool) -> str:
    """Return the C text of a function for a block of samples, turned from rows into lanes and back."""
    arguments = ", ".join(argument(port, port in function.inputs) for port in function.arguments)
    names = ", ".join(_const_cast(port, port in function.inputs) for port in function.arguments)
    lines = [
        f"static {'size_t' if is_counted else 'void'} TL_APART {function.name}_rows({arguments})",
        "{",
    ]
    lines += [f"    (void){port.name};" for port in function.arguments if not port.size]
    lines += [
        f"    double lanes_{port.name}[{max(port.size, 1)}][TL_LANES];"
        for port in function.arguments
    ]
    if is_counted:
        lines.append("    long long bad = 0;")
    lines += [_turned(port, k) for port in function.inputs for k in _pairs(port)]
    lines.append("    for (int l = 0; l < TL_LANES; ++l) {")
    for port in function.inputs:
        if not _pairs(port):
            lines += _columns(
                port, f"lanes_{port.name}[{{0}}][l] = {port.name}[l * {port.size} + {{0}}];"
            )
    lines += ["    }", f"    {function.name}_block({names});"]
    results = function.arguments[len(function.inputs) :]
    lines += [
        f"    tl_back((const double (*)[TL_LANES])lanes_{port.name}, {port.size}, {port.name});"
        for port in results
        if port.size > MOST_LINES
    ]
    lines.append("    for (int l = 0; l < TL_LANES; ++l) {")
    for port in results:
        if port.size <= MOST_LINES:
            lines += _columns(
                port, f"{port.name}[l * {port.size} + {{0}}] = lanes_{port.name}[{{0}}][l];"
            )
    lines.append("    }")
    if is_counted:
        lines += [
            f"    for (int l = 0; l < TL_LANES; ++l) bad += {_IS_SOUND} ? 0 : 1;",
            "    return (size_t)bad;",
        ]
    return "\n".join([*lines, "}", ""])


def _pairs(port: CPort) -> tuple[int, ...]:
    """First columns of the pairs in which a port is turned into lanes; the last column of an odd number comes twice."""
    if port.size not in TURNED_IN_PAIRS:
        return ()
    return (*range(0, port.size - 1, 2), *((port.size - 2,) if port.size % 2 else ()))


def _turned(port: CPort, k: int) -> str:
    lanes = f"lanes_{port.name}"
    return f"    tl_turn({port.name} + {k}, {port.size}, {lanes}[{k}], {lanes}[{k + 1}]);"


def _loops(ports: Sequence[CPort], lines: Sequence[str]) -> list[str]:
    """Return a loop over the columns of every port that has some, each with its line."""
    return [
        f"            for (size_t i = 0; i < {port.size}; ++i) {line}"
        for port, line in zip(ports, lines, strict=True)
        if port.size
    ]


def argument(port: CPort, is_input: bool) -> str:
    """An argument that shares no memory with others."""
    return f"{'const ' if is_input else ''}double *restrict {port.name}"


def _columns(port: CPort, line: str) -> list[str]:
    """A line for every column of a port; a loop over them where there are many, which would keep compilers busy."""
    indent = " " * 8
    if port.size > MOST_LINES:
        return [f"{indent}for (int i = 0; i < {port.size}; ++i) {line.format('i')}"]
    return [indent + line.format(i) for i in range(port.size)]


def _const_cast(port: CPort, is_input: bool) -> str:
    """Before C23 an array of arrays does not become one of constant arrays by itself."""
    return f"(const double (*)[TL_LANES])lanes_{port.name}" if is_input else f"lanes_{port.name}"
