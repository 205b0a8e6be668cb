"""C text of batch kernels, which transpose blocks of samples from rows into lanes and back."""

from __future__ import annotations

from collections.abc import Sequence

from tauloop.compiler.c.calling.signature import CPort, CSignature
from tauloop.compiler.limits import CONVERGED, FEW_STEPS, SMALLEST_PIVOT

#: Number of samples per block of a batch kernel, which fill two to four vector registers.
LANES = 16
#: Number of samples per block with AVX-512, for kernels in one piece. AVX-512 has twice as many
#: registers, each twice as wide, and in smaller blocks values stay in registers.
LANES_OF_WIDE_REGISTERS = 8
#: Number of values per sample (of ports and stored values) above which a kernel has smaller blocks
#: on every processor. Blocks of 16 samples would then exceed the first-level cache (TX40 with
#: Jacobians: 163 instead of 211 ns, with the registers of AVX2 242 instead of 291 ns).
NUMBERS_IN_CACHE = 380
#: Number of samples per block of a kernel with more values than `NUMBERS_IN_CACHE`.
FEW_LANES = 8
#: Minimum number of samples of a batch that several threads compute.
SAMPLES_FOR_THREADS = 2048
#: Maximum number of columns of a port that are copied by one line each; more columns are copied in
#: a loop.
MAX_LINES = 24
#: Minimum number of columns of a result that `tl_back` transposes. For four columns, compilers need
#: three times as many shuffles (delta's inverse dynamics 20.6 instead of 19.5 ns).
TRANSPOSED_BACK_FROM = 4
#: Numbers of columns for which compilers would transpose rows into lanes value by value.
TRANSPOSED_IN_PAIRS = (5, 6, 7)
#: C text of the check that a lane is within reach, regular and near its start. The text has no
#: branches, so that it compiles to vector instructions.
_IS_SOUND = (
    f"(lanes_health[0][l] >= 0.0) & (lanes_health[1][l] > {SMALLEST_PIVOT!r})"
    f" & (fabs(lanes_health[2][l]) < {CONVERGED!r}) & (lanes_health[3][l] <= {float(FEW_STEPS)!r})"
)


def batch_text(function: CSignature, *, is_counted: bool = False) -> str:
    """Return the C text of the loop over blocks; the last block is padded with its last sample.

    Args:
        function: function to compute.
        is_counted: whether the kernel takes the step by which each array advances per sample (zero
            if all samples share one row, which is then repeated for a whole block), and returns the
            number of failed samples.
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
    """Return the C text of a kernel's return type, name and parameters."""
    parameters = ", ".join(argument(port, port in function.inputs) for port in function.arguments)
    if is_counted:
        return f"size_t {function.name}_batch(size_t n, const size_t *steps, {parameters})"
    return f"void {function.name}_batch(size_t n, {parameters})"


def _advanced(i: int, port: CPort, *, is_counted: bool) -> str:
    """Return the C text of the address at which a block's values of a port begin."""
    if not port.size:
        return port.name
    return f"{port.name} + first * {f'steps[{i}]' if is_counted else port.size}"


def _rows(function: CSignature, *, is_counted: bool) -> str:
    """Return the C text of a function for a block of samples, with transposed ports."""
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
    lines += [_transposed(port, k) for port in function.inputs for k in _pairs(port)]
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
        if port.size >= TRANSPOSED_BACK_FROM
    ]
    lines.append("    for (int l = 0; l < TL_LANES; ++l) {")
    for port in results:
        if port.size < TRANSPOSED_BACK_FROM:
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
    """Return the first columns of the pairs in which a port is transposed.

    With an odd number of columns, the last two pairs share a column.
    """
    if port.size not in TRANSPOSED_IN_PAIRS:
        return ()
    return (*range(0, port.size - 1, 2), *((port.size - 2,) if port.size % 2 else ()))


def _transposed(port: CPort, k: int) -> str:
    lanes = f"lanes_{port.name}"
    return f"    tl_turn({port.name} + {k}, {port.size}, {lanes}[{k}], {lanes}[{k + 1}]);"


def _loops(ports: Sequence[CPort], lines: Sequence[str]) -> list[str]:
    """Return a loop over the columns of each port, with the port's line."""
    return [
        f"            for (size_t i = 0; i < {port.size}; ++i) {line}"
        for port, line in zip(ports, lines, strict=True)
        if port.size
    ]


def argument(port: CPort, is_input: bool) -> str:
    """Return the C text of an argument that shares no memory with other arguments."""
    return f"{'const ' if is_input else ''}double *restrict {port.name}"


def _columns(port: CPort, line: str) -> list[str]:
    """Return a line for every column of a port, or a loop, which compiles faster if there are many."""
    indent = " " * 8
    if port.size > MAX_LINES:
        return [f"{indent}for (int i = 0; i < {port.size}; ++i) {line.format('i')}"]
    return [indent + line.format(i) for i in range(port.size)]


def _const_cast(port: CPort, is_input: bool) -> str:
    """Return the cast to an array of constant arrays, which is not implicit before C23."""
    return f"(const double (*)[TL_LANES])lanes_{port.name}" if is_input else f"lanes_{port.name}"
