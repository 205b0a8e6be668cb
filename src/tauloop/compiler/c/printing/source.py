"""C source of programs: a function for one sample and a kernel for batches, from the same steps.

The source is C99 and needs only math.h. It uses no heap and no global state, and its text is
reproducible. It branches on data only in projections and at the end of Newton's loop. A batch is
divided into blocks of lanes (samples that are computed together). In a block, every value is an
array over lanes, and every piece of straight-line code is a loop over lanes, which compilers
vectorize.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import field, replace
from functools import lru_cache
from itertools import chain

import casadi as ca

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.signature import LARGEST, CSignature
from tauloop.compiler.c.printing.batch_source import (
    FEW_LANES,
    LANES,
    LANES_OF_WIDE_REGISTERS,
    MAX_LINES,
    NUMBERS_IN_CACHE,
    batch_text,
)
from tauloop.compiler.c.printing.c_helpers import used_helpers
from tauloop.compiler.c.printing.checked_values import CheckedValues, Element, checked_values
from tauloop.compiler.c.printing.few_values import with_few_live_values
from tauloop.compiler.c.printing.recomputed import with_few_registers
from tauloop.compiler.c.printing.scheduling import scheduled
from tauloop.compiler.c.printing.single import in_single
from tauloop.compiler.c.printing.stored_orders import stored_order
from tauloop.compiler.c.printing.straight import (
    HIDDEN,
    Instruction,
    Piece,
    instructions,
    pieces,
    with_reciprocals,
)
from tauloop.compiler.c.printing.sums import with_sums_in_order
from tauloop.compiler.program import (
    NEWTON_ITERATIONS,
    NEWTON_LONGEST_STEP,
    Evaluate,
    Newton,
    Program,
)
from tauloop.compiler.solving.bounded import Bounded

#: Maximum number of instructions of straight-line code that stays in its function, for one sample
#: and for lanes. Longer code is divided into pieces, which are separate functions, because the time
#: of register allocation grows with the square of the length of a function.
LONGEST_STRETCH, LONGEST_STRETCH_OF_LANES = 2500, 1200
#: Maximum number of instructions of a piece of longer code, for one sample and for lanes. Short
#: pieces make code for lanes faster (hexapod 94 instead of 112 ns, a leg of 3900 operations 293
#: instead of 339 ns), but not code for single samples.
LONGEST_PIECE, LONGEST_PIECE_OF_LANES = 600, 150
#: Maximum numbers of instructions of undivided code, and of a piece of longer code, for one thread
#: among many. They are large because values that are used in several pieces are stored in memory.
#: They are limited because the compiler of a graphics processor takes seconds to allocate
#: registers.
LONGEST_STRETCH_OF_THREADS, LONGEST_PIECE_OF_THREADS = 20_000, 2500
#: Maximum number of statements of code for lanes that computes two samples at once, so that each
#: fills the stalls of the other (four_bar 14 instead of 18 ns, five_bar 15 instead of 17 ns).
#: Longer code would need too many registers.
LONGEST_INTERLEAVED = 310
HALF_OF_LANES = "TL_LANES / 2"
#: Minimum number of instructions of code that is reordered. Processors reorder short code
#: themselves: reordering to reduce the number of live values (`with_few_live_values`) makes batches
#: of Delta 4 to 12 % slower, and those of hexapod's forward dynamics a fifth faster (205 instead of
#: 262 ns).
ORDERED_FROM = 600
#: Maximum number of instructions of code for the processor that is reordered. The 9 200 of a
#: regressor of gantry_tau_5dof take 7.0 us in batches in either order, and 3.1 instead of 1.9 us for
#: single samples if reordered.
ORDERED_TO = 5000
#: Number of reordered codes in the cache of `_ordered`. An export in single precision prints its
#: code a dozen times.
CACHED_ORDERS = 4
#: Minimum number of lines for each compiler process, because starting a compiler takes as long as
#: compiling several hundred lines. A shorter kernel is compiled by a single process.
MIN_LINES_PER_COMPILER = 600
#: Number of partial sums of a sum of squares, because each addition waits four cycles for the
#: previous one.
CHAINS_OF_SQUARES = 4
#: Minimum size of an input whose squares are summed with vector instructions (`tl_squares`).
NUMBERS_OF_VECTOR = 4
#: Prefix of the local variables from which the output `health` (the diagnostics of a sample) is
#: computed; no port has this prefix.
LOCAL = "health_"
#: Name of the C array of values that several pieces share.
SHARED_ARRAY = "kept"
#: Newton's loop ends after a step shorter than this (characteristic lengths, rad or dimensionless),
#: unless a function defines another limit.
NEWTON_STEP_TOLERANCE = 1e-8
#: Declaration of an array in a kernel, with the number of values per sample.
_ARRAY_OF_LANES = re.compile(r"^    double \w+\[(\d+)\]\[TL_LANES\];$", re.MULTILINE)
#: Keywords of C, and `main`.
_RESERVED = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while main".split()
)

_BINARY = {ca.OP_ADD: "+", ca.OP_SUB: "-", ca.OP_MUL: "*", ca.OP_DIV: "/"}
_COMPARE = {ca.OP_LT: "<", ca.OP_LE: "<=", ca.OP_EQ: "==", ca.OP_NE: "!="}
_LOGICAL = {ca.OP_AND: "&", ca.OP_OR: "|"}
_CALLS = {
    ca.OP_SQRT: "sqrt",
    ca.OP_SIN: "tl_sin",
    ca.OP_COS: "tl_cos",
    ca.OP_ATAN2: "tl_atan2",
    ca.OP_EXP: "tl_exp",
    ca.OP_FABS: "fabs",
    ca.OP_FLOOR: "floor",
    ca.OP_FMIN: "fmin",
    ca.OP_FMAX: "fmax",
    # rare functions, for which the system's library is fast enough
    ca.OP_TAN: "tan",
    ca.OP_ASIN: "asin",
    ca.OP_ACOS: "acos",
    ca.OP_ATAN: "atan",
    ca.OP_SINH: "sinh",
    ca.OP_COSH: "cosh",
    ca.OP_TANH: "tanh",
    ca.OP_ASINH: "asinh",
    ca.OP_ACOSH: "acosh",
    ca.OP_ATANH: "atanh",
    ca.OP_LOG: "log",
    ca.OP_POW: "pow",
    ca.OP_CONSTPOW: "pow",
    ca.OP_CEIL: "ceil",
    ca.OP_FMOD: "fmod",
    ca.OP_COPYSIGN: "copysign",
    ca.OP_ERF: "erf",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CFunction(CSignature):
    """A program with the ports of its C function.

    Attributes:
        program: program that the function computes.
        last_step: step tolerance: Newton's loop ends after a step shorter than this (characteristic
            lengths, rad or dimensionless).
        max_steps: maximum number of Newton steps.
        largest: limit of the Euclidean norm of inputs and outputs, beyond which entry 0
            of the output `health` is -1e300.
    """

    program: Program
    last_step: float = NEWTON_STEP_TOLERANCE
    max_steps: int = field(default=NEWTON_ITERATIONS, repr=False)
    largest: float = field(default=LARGEST, repr=False)


def c_name(text: str) -> str:
    """Return a C identifier for a text.

    Raises:
        InputError: the text does not begin with a letter, or is a keyword of C or `main`.
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)[:60]
    if not re.match(r"[A-Za-z]", name) or name in _RESERVED:
        raise InputError.of(
            text,
            "cannot be used as a C identifier",
            "choose a name that begins with a letter and is not a keyword of C or 'main'",
        )
    return name


def c_source(
    functions: Sequence[CFunction],
    note: str,
    *,
    with_batch: bool = True,
    includes: Sequence[str] = (),
    further: str = "",
    single: bool = False,
    is_counted: bool = False,
) -> str:
    """Return the source of several functions in one file.

    Args:
        functions: functions to print.
        note: text of the comment at the top (escaped here).
        with_batch: whether to print the batch kernels too.
        includes: further headers, in quotes or brackets.
        further: text after the functions.
        single: whether to print in single precision; only without batch kernels.
        is_counted: whether batch kernels return the number of failed samples (see `batch_text`).
    """
    parts = []
    sizes = list[tuple[int, int]]()
    for function in functions:
        parts.append(scalar_text(function))
        if with_batch and not single:
            block, piece_functions = _text(function, _LANES)
            sizes.append(_samples_of_a_block(function, block, is_undivided=not piece_functions))
            parts += [
                *(piece.static_text for piece in piece_functions),
                block,
                batch_text(function, is_counted=is_counted),
            ]
    body = "\n".join([*parts, *([further] if further else [])])
    if single:
        return c_text(in_single(body), note, ["<stdint.h>", *includes])
    # The file has one block size. A kernel with many values per sample requires small blocks.
    samples = min(sizes, default=(LANES, LANES))
    if samples[0] == LANES:
        samples = max(sizes, default=samples)
    return c_text(body, note, includes, samples=samples)


def c_units(function: CFunction, note: str, further: str = "") -> tuple[str, ...]:
    """Return the source of a function and its kernel, which counts failed samples, for Python.

    A long source consists of several files that are compiled in parallel. The last file contains
    the function of one sample, and the others contain the kernel.

    Args:
        function: function to print.
        note: text of the comment at the top (escaped here).
        further: text after the function of one sample.
    """
    block, piece_functions = _text(function, _LANES)
    if not piece_functions and block.count("\n") < MIN_LINES_PER_COMPILER:
        return (c_source([function], note, further=further, is_counted=True),)
    prototypes = "".join(f"{piece.declaration}\n" for piece in piece_functions)
    samples = _samples_of_a_block(function, block, is_undivided=not piece_functions)
    groups = _grouped([piece.external_text for piece in piece_functions])
    return (
        *(c_text("\n".join(texts), note, samples=samples) for texts in groups),
        c_text(
            f"{prototypes}\n{block}\n{batch_text(function, is_counted=True)}", note, samples=samples
        ),
        c_text(f"{scalar_text(function)}\n{further}", note),
    )


def _grouped(texts: Sequence[str]) -> list[list[str]]:
    """Return groups of texts, in order, each long enough to justify starting a compiler."""
    groups: list[list[str]] = []
    lines = MIN_LINES_PER_COMPILER
    for text in texts:
        if lines >= MIN_LINES_PER_COMPILER:
            groups.append([])
            lines = 0
        groups[-1].append(text)
        lines += text.count("\n")
    return groups


def _samples_of_a_block(function: CFunction, block: str, *, is_undivided: bool) -> tuple[int, int]:
    """Return the number of samples per block, and the number for AVX-512.

    Args:
        function: function to compute.
        block: C text of the kernel, which declares values that are used in several pieces.
        is_undivided: whether the kernel is in one piece.
    """
    port_values = sum(port.size for port in function.arguments)
    stored_values = sum(map(int, _ARRAY_OF_LANES.findall(block)))
    if port_values + stored_values > NUMBERS_IN_CACHE:
        return FEW_LANES, FEW_LANES
    is_interleaved = HALF_OF_LANES in block
    if is_undivided and not is_interleaved:
        return LANES, LANES_OF_WIDE_REGISTERS
    return LANES, LANES


def c_text(
    body: str, note: str, includes: Sequence[str] = (), *, samples: tuple[int, int] = (LANES, LANES)
) -> str:
    """Return the text of a whole file: headers, helpers that the functions need, and the functions.

    Args:
        body: text of the functions.
        note: text of the comment at the top (escaped here).
        includes: further headers, in quotes or brackets.
        samples: number of samples per block of lanes, and the number for AVX-512.
    """
    head = [
        f"/* {comment(note)} */",
        *(f"#include {name}" for name in ("<math.h>", "<stddef.h>", *includes)),
        "",
    ]
    if "TL_LANES" in body:
        default = f"#define TL_LANES {samples[0]}"
        with_avx512 = f"#define TL_LANES {samples[1]}"
        if default == with_avx512:
            head += [default, ""]
        else:
            head += ["#ifdef __AVX512F__", with_avx512, "#else", default, "#endif", ""]
    return "\n".join([*head, *used_helpers(body), body])


def declarations(function: CFunction, *, single: bool = False) -> list[str]:
    """Return the prototypes of a function's C entry points."""
    scalar = _arguments(function, lambda name: f"double *{name}")
    if single:
        return [in_single(f"void {function.name}({scalar});")]
    return [f"void {function.name}({scalar});", f"void {function.name}_batch(size_t n, {scalar});"]


def comment(text: str) -> str:
    """Return text that cannot end a comment, with characters outside printable ASCII escaped."""
    plain = " ".join(text.split()).encode("ascii", "backslashreplace").decode()
    plain = "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in plain)
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?").rstrip("\\")


def c_string(text: str) -> str:
    """Return a C string literal of this text in UTF-8, with special characters in octal."""
    plain = (
        chr(byte)
        if (chr(byte).isalnum() and byte < 128) or chr(byte) in " _.-"
        else f"\\{byte:03o}"
        for byte in text.encode()
    )
    return '"' + "".join(plain) + '"'


def _arguments(function: CFunction, parameter: Callable[[str], str]) -> str:
    """Return the C text of all parameters; `parameter` returns the text of each from its name."""
    inputs = function.inputs
    return ", ".join(
        ("const " if port in inputs else "") + parameter(port.name) for port in function.arguments
    )


#: Function from the name of an array and the index of an element to the C text of the element.
Access = Callable[[str, int], str]


def _straight(
    code: Piece,
    constants: dict[int, str],
    inputs: Sequence[str],
    outputs: Sequence[str],
    access: Access,
    indent: str,
    letter: str = "t",
) -> list[str]:
    """Return a piece of straight-line code as statements, with one variable per intermediate value.

    Args:
        code: the instructions.
        constants: C text of constant values.
        inputs, outputs: names of the arrays to read and write.
        access: function that returns the C text of an element of an array.
        indent: indentation of every line.
        letter: first letter of the names of variables.
    """
    lines = [
        f"const double {letter}{k} = {access(SHARED_ARRAY, index)};"
        for k, index in code.fetched.items()
    ]
    for instruction in code.instructions:
        a = [constants.get(k, f"{letter}{k}") for k in instruction.operands]
        if instruction.operation == ca.OP_OUTPUT and instruction.port is not None:
            lines.append(f"{access(outputs[instruction.port[0]], instruction.port[1])} = {a[0]};")
        elif instruction.port is not None:
            lines.append(
                f"const double {letter}{instruction.number}"
                f" = {access(inputs[instruction.port[0]], instruction.port[1])};"
            )
        elif instruction.number not in constants:
            lines.append(
                f"const double {letter}{instruction.number}"
                f" = {_expression(instruction.operation, a)};"
            )
    lines += [f"{access(SHARED_ARRAY, index)} = {letter}{k};" for k, index in code.stored.items()]
    return [indent + line for line in lines]


def _undivided(
    function: ca.Function,
    inputs: Sequence[str],
    outputs: Sequence[str],
    wanted: set[str],
    access: Access,
    indent: str,
) -> list[str]:
    """Return the statements of a CasADi function for some of its outputs, in one piece."""
    code = with_reciprocals(instructions(function, [name in wanted for name in outputs]))
    return _straight(
        Piece(instructions=code, fetched={}, stored={}),
        _constants(code),
        inputs,
        outputs,
        access,
        indent,
    )


def _constants(code: Sequence[Instruction]) -> dict[int, str]:
    """Return the C text of each constant, by the number of its instruction."""
    return {
        instruction.number: number(instruction.constant)
        for instruction in code
        if instruction.operation == ca.OP_CONST
    }


def number(value: float) -> str:
    """Return the C text of a number that is read back exactly."""
    text = repr(float(value))
    if text in ("inf", "-inf", "nan"):
        raise ValueError(f"a constant of the program is {text}")
    text = text if any(mark in text for mark in ".e") else text + ".0"
    return f"({text})" if text.startswith("-") else text


def _expression(op: int, a: list[str]) -> str:
    """Return the C text of an operation on operands `a`.

    Raises:
        ValueError: the operation cannot be printed.
    """
    if op in _BINARY:
        return f"{a[0]} {_BINARY[op]} {a[1]}"
    if op in _CALLS:
        return f"{_CALLS[op]}({', '.join(a)})"
    if op in _COMPARE:
        return f"{a[0]} {_COMPARE[op]} {a[1]} ? 1.0 : 0.0"
    if op in _LOGICAL:
        return f"({a[0]} != 0.0) {_LOGICAL[op]} ({a[1]} != 0.0) ? 1.0 : 0.0"
    printers = {
        ca.OP_ASSIGN: lambda: a[0],
        HIDDEN: lambda: f"TL_HIDDEN({a[0]})",
        ca.OP_NEG: lambda: f"-{a[0]}",
        ca.OP_SQ: lambda: f"{a[0]} * {a[0]}",
        ca.OP_TWICE: lambda: f"{a[0]} + {a[0]}",
        ca.OP_INV: lambda: f"1.0 / {a[0]}",
        # Use doubles: more integers than doubles fit into a register, so with integers compilers
        # would unroll loops over lanes.
        ca.OP_SIGN: lambda: f"({a[0]} > 0.0 ? 1.0 : 0.0) - ({a[0]} < 0.0 ? 1.0 : 0.0)",
        ca.OP_IF_ELSE_ZERO: lambda: f"{a[0]} != 0.0 ? {a[1]} : 0.0",
        ca.OP_NOT: lambda: f"{a[0]} == 0.0 ? 1.0 : 0.0",
    }
    if op not in printers:
        raise ValueError(f"CasADi's operation {op} cannot be printed as C")
    return printers[op]()


def _stored(function: CFunction) -> dict[str, int]:
    """Return the sizes of values that several steps use, except inputs and outputs, by name."""
    sizes: dict[str, int] = {}
    ports = {port.name for port in function.arguments}
    for step in function.program.steps:
        if isinstance(step, Evaluate):
            for name, size in zip(step.outputs, step.function.output_sizes, strict=True):
                sizes[name] = size
        else:
            sizes[step.solution] = step.size
            if isinstance(step, Newton) and step.pivots:
                sizes[step.pivot_values] = len(step.pivots)
    wanted = wanted_values(function)
    return {name: size for name, size in sizes.items() if name in wanted and name not in ports}


def wanted_values(function: CFunction) -> set[str]:
    """Return the names of values to compute: outputs, diagnostics, and inputs of later steps."""
    wanted = {port.name for port in function.outputs} | {"discriminants", "pivots"}
    for step in function.program.steps:
        if isinstance(step, Newton):
            wanted |= {step.start, step.solution, step.pivot_values, *step.inputs}
        else:
            wanted |= set(step.inputs)
    return wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Layout of a function: for one sample, or for a block of lanes with arrays over lanes.

    Attributes:
        suffix: suffix of the function's name.
        access: function that returns the C text of an element of an array.
        loop: C text at the start of straight-line code.
        width: suffix of the size in the declaration of an array.
        parameter: function that returns the C text of the parameter for an array from its name.
        convergence: function from the step tolerance to the C condition that ends Newton's loop.
        max_undivided: maximum number of instructions of code that is not divided into pieces.
        max_piece: maximum number of instructions of a piece of longer code.
        order: function that returns long code in another order; None for the given order.
        max_ordered: maximum number of instructions of code that is reordered.
        return_type: C text before the function's name, such as "static void".
        size_parameter: C declaration and name of a parameter before the arrays; None if there is
            none.
    """

    suffix: str
    access: Access
    loop: str
    width: str
    parameter: Callable[[str], str]
    convergence: Callable[[float], str]
    max_undivided: int
    max_piece: int
    order: Callable[[Sequence[Instruction]], tuple[Instruction, ...]] | None
    max_ordered: float = ORDERED_TO
    return_type: str = "static void"
    size_parameter: tuple[str, str] | None = None

    @property
    def is_lanes(self) -> bool:
        """Whether values are arrays over lanes."""
        return bool(self.width)

    @property
    def is_contiguous(self) -> bool:
        """Whether the values of a port are adjacent in memory."""
        return not self.is_lanes and self.size_parameter is None

    def parameter_list(self, parameters: Iterable[str]) -> str:
        """Return the C text of a parameter list that starts with the size parameter, if any."""
        if self.size_parameter is None:
            return ", ".join(parameters)
        return ", ".join([self.size_parameter[0], *parameters])

    def argument_list(self, arguments: Iterable[str]) -> str:
        """Return the C text of an argument list that starts with the size, if any."""
        if self.size_parameter is None:
            return ", ".join(arguments)
        return ", ".join([self.size_parameter[1], *arguments])


@dataclass(frozen=True, slots=True, kw_only=True)
class _PieceFunction:
    """A separate C function that contains a piece of straight-line code.

    Attributes:
        head: name and parameter list.
        body: statements in braces.
    """

    head: str
    body: str

    @property
    def static_text(self) -> str:
        """The text of the function in the file of its caller."""
        return f"static void TL_APART {self.head}\n{self.body}"

    @property
    def external_text(self) -> str:
        """The text of the function in a different file from its caller."""
        return f"{self.declaration}\n\nvoid {self.head}\n{self.body}"

    @property
    def declaration(self) -> str:
        """The prototype of the function in C."""
        return f"void {self.head};"


def _for_one_sample(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Return code for one sample with few live values; short code is scheduled to hide latencies.

    On AVX2, spidermill's inverse dynamics takes 203 ns if it is scheduled, and 256 ns if it is not;
    hexapod's forward dynamics, which is divided into pieces, 1330 and 810 ns.
    """
    ordered = _with_few_live_values(code)
    return scheduled(ordered) if len(code) <= LONGEST_STRETCH else ordered


def _for_lanes(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Return code for lanes: short code is scheduled to hide latencies, longer code for few values.

    RCID's inverse dynamics, in one piece, takes 43 ns if latencies are hidden, and 45 ns with few
    live values.
    """
    if len(code) <= LONGEST_STRETCH_OF_LANES:
        return scheduled(with_sums_in_order(code))
    return _with_few_live_values(code)


def _with_few_live_values(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Return code with few live values. Code for lanes and for one sample share one search."""
    return _cached_search(tuple(code), _negative_zeros(code))


@lru_cache(maxsize=1)
def _cached_search(
    code: tuple[Instruction, ...], negative_zeros: tuple[int, ...]
) -> tuple[Instruction, ...]:
    """Return code with few live values; the arguments are those of `_ordered`."""
    return with_few_live_values(code)


_ONE_SAMPLE = _Layout(
    suffix="",
    access=lambda name, i: f"{name}[{i}]",
    loop="{",
    width="",
    parameter=lambda name: f"double *restrict {name}",
    convergence=lambda tolerance: f"!(step_length[0] > {tolerance!r})",
    max_undivided=LONGEST_STRETCH,
    max_piece=LONGEST_PIECE,
    order=_for_one_sample,
    return_type="void",
)
#: Layout for a compiler that does not optimize. Reordering instructions takes longer than printing
#: them and does not make its code faster.
_ONE_SAMPLE_UNOPTIMIZED = replace(_ONE_SAMPLE, order=None)
_LANES = _Layout(
    suffix="_block",
    access=lambda name, i: f"{name}[{i}][l]",
    loop="for (int l = 0; l < TL_LANES; ++l) {",
    width="[TL_LANES]",
    parameter=lambda name: f"double {name}[restrict][TL_LANES]",
    convergence=lambda tolerance: f"tl_all_below(step_length[0], {tolerance!r})",
    max_undivided=LONGEST_STRETCH_OF_LANES,
    max_piece=LONGEST_PIECE_OF_LANES,
    order=_for_lanes,
)


def _thread(strided: Set[str]) -> _Layout:
    """Return the layout of one sample of n; value i of a `strided` port is at index i n."""
    return _Layout(
        suffix="_thread",
        access=lambda name, i: f"{name}[{i} * n]" if name in strided else f"{name}[{i}]",
        loop="{",
        width="",
        parameter=_ONE_SAMPLE.parameter,
        convergence=_ONE_SAMPLE.convergence,
        max_undivided=LONGEST_STRETCH_OF_THREADS,
        max_piece=LONGEST_PIECE_OF_THREADS,
        order=with_few_registers,
        max_ordered=math.inf,
        size_parameter=("const size_t n", "n"),
    )


@lru_cache(maxsize=CACHED_ORDERS)
def _ordered(
    order: Callable[[Sequence[Instruction]], tuple[Instruction, ...]],
    code: tuple[Instruction, ...],
    negative_zeros: tuple[int, ...],
) -> tuple[Instruction, ...]:
    """Return the reordered code. Equal code is reordered once (see `stored_order`).

    Args:
        order: function that orders code.
        code: the code.
        negative_zeros: instructions whose constant is -0.0, which is equal to 0.0 but printed
            differently.
    """
    return stored_order(order, code)


def _reordered(code: tuple[Instruction, ...], layout: _Layout) -> tuple[Instruction, ...]:
    """Return code in the order of a layout; short and very long code keeps its order."""
    if layout.order is None or not ORDERED_FROM <= len(code) <= layout.max_ordered:
        return code
    return _ordered(layout.order, code, _negative_zeros(code))


def _negative_zeros(code: Sequence[Instruction]) -> tuple[int, ...]:
    """Return the numbers of the instructions whose constant is -0.0."""
    return tuple(
        item.number
        for item in code
        if item.constant == 0.0 and math.copysign(1.0, item.constant) < 0.0
    )


def _steps(function: CFunction, layout: _Layout) -> tuple[list[str], list[_PieceFunction]]:
    """Return the C lines of all steps, and the separate functions for pieces of long code."""
    wanted = wanted_values(function)
    lines: list[str] = []
    functions: list[_PieceFunction] = []
    shared_size = 0
    for step in function.program.steps:
        if isinstance(step, Newton):
            lines += _newton(step, layout, function)
            continue
        if isinstance(step, Bounded):
            lines += step.lanes_text() if layout.is_lanes else step.scalar_text()
            continue
        code = with_reciprocals(
            instructions(step.function.function, [name in wanted for name in step.outputs])
        )
        code = _reordered(code, layout)
        parts = pieces(code, layout.max_piece, layout.max_undivided)
        constants = _constants(code)
        for part in parts:
            used_arrays: dict[str, None] = {}

            def access(name: str, i: int, used_arrays: dict[str, None] = used_arrays) -> str:
                """Return the C text of an element, and record its array as used."""
                used_arrays[name] = None
                return layout.access(name, i)

            statements = _straight(part, constants, step.inputs, step.outputs, access, " " * 8)
            shared_size = max([shared_size, *(index + 1 for index in part.stored.values())])
            if len(parts) == 1:
                if layout.is_lanes and len(statements) <= LONGEST_INTERLEAVED:
                    lines += _interleaved(part, constants, step.inputs, step.outputs)
                else:
                    lines += [f"    {layout.loop}", *statements, "    }"]
                continue
            name = f"{function.name}{layout.suffix}_{len(functions) + 1}"
            lines.append(f"    {name}({layout.argument_list(used_arrays)});")
            inputs = {port.name for port in function.inputs}
            parameters = [
                ("const " if array in inputs else "") + layout.parameter(array)
                for array in used_arrays
            ]
            body = "\n".join(["{", f"    {layout.loop}", *statements, "    }", "}", ""])
            head = f"{name}({layout.parameter_list(parameters)})"
            functions.append(_PieceFunction(head=head, body=body))
    if shared_size:
        lines.insert(0, f"    double {SHARED_ARRAY}[{shared_size}]{layout.width};")
    return lines, functions


def _interleaved(
    code: Piece, constants: dict[int, str], inputs: Sequence[str], outputs: Sequence[str]
) -> list[str]:
    """Return the loop of short code over half of the lanes, with the statements of both halves.

    While one half waits for a result, the processor computes the other half.
    """

    def first_half(name: str, i: int) -> str:
        return f"{name}[{i}][l]"

    def second_half(name: str, i: int) -> str:
        return f"{name}[{i}][l + {HALF_OF_LANES}]"

    first = _straight(code, constants, inputs, outputs, first_half, " " * 8, "t")
    second = _straight(code, constants, inputs, outputs, second_half, " " * 8, "u")
    statements = chain.from_iterable(zip(first, second, strict=True))
    return [f"    for (int l = 0; l < {HALF_OF_LANES}; ++l) {{", *statements, "    }"]


def _newton(step: Newton, layout: _Layout, function: CFunction) -> list[str]:
    """Return the C lines of Newton's loop, which ends when every sample of the block has converged.

    The final residual is computed separately. The pivots are those of the last step, so they need
    no extra factorization. That step starts close to the solution.
    """
    access = layout.access
    inner = " " * 12
    has_residual_output = step.residual_values in {port.name for port in function.outputs}

    def step_access(name: str, i: int) -> str:
        """Return the C text of an element; the residual phi and the step dx are scalars."""
        if name in ("phi", "dx"):
            return f"{name}_{i}"
        return access(step.solution if name == "x" else name, i)

    ports = (("x", *step.inputs), ("phi", "dx", step.pivot_values))
    residuals = [_in_units(f"phi_{i}", size) for i, size in enumerate(step.residual_sizes)]
    update = [f"{inner}double longest = 0.0, limit;"]
    for i, size in enumerate(step.sizes):
        length = f"fabs({_in_units(f'dx_{i}', size)})"
        update.append(f"{inner}longest = {length} > longest ? {length} : longest;")
    update.append(
        f"{inner}limit = longest > {NEWTON_LONGEST_STEP} ? {NEWTON_LONGEST_STEP} / longest : 1.0;"
    )
    update += [f"{inner}{access(step.solution, i)} += limit * dx_{i};" for i in range(step.size)]
    update += [f"{inner}{access('step_length', 0)} = longest;"]
    return [
        f"    {layout.loop}",
        *(
            f"        {access(step.solution, i)} = {access(step.start, i)};"
            for i in range(step.size)
        ),
        "    }",
        f"    for (int iteration = 1; iteration <= {function.max_steps}; ++iteration) {{",
        f"        {layout.loop}",
        *(f"{inner}double dx_{i};" for i in range(step.size)),
        *_undivided(step.function.function, *ports, {"dx", step.pivot_values}, step_access, inner),
        *update,
        "        }",
        "        iterations = iteration > iterations ? iteration : iterations;",
        f"        if ({layout.convergence(function.last_step)}) break;",
        "    }",
        f"    {layout.loop}",
        *(f"        double phi_{i};" for i in range(step.size)),
        *_undivided(step.function.function, *ports, {"phi"}, step_access, " " * 8),
        # Add the residuals: unlike a maximum, a sum preserves NaN.
        *(f"        {access('residual', 0)} += fabs({text});" for text in residuals),
        *(
            f"        {access(step.residual_values, i)} = {text};"
            for i, text in enumerate(residuals)
            if has_residual_output
        ),
        "    }",
    ]


def _in_units(name: str, size: float) -> str:
    """Return the C text of a value divided by its characteristic size."""
    return name if size == 1.0 else f"{number(1.0 / size)} * {name}"


def _health(function: CFunction, layout: _Layout) -> list[str]:
    """Return C lines that compute the four numbers of `health`; NaN counts as the worst value."""
    program, access = function.program, layout.access
    checked = checked_values(program, function.inputs, function.outputs, MAX_LINES)
    # For single samples, code with fewer sums is slower, because gcc then orders other code worse
    # (inverse dynamics of Delta: 53 instead of 50 ns).
    implied = checked.implied if layout.is_lanes else frozenset()
    discriminants = [access("discriminants", i) for i in range(len(program.closed_forms))]
    pivots = [
        f"fabs({access(name, i)}) * {number(factor)}"
        for name, factors in checked.pivot_factors.items()
        for i, factor in factors.items()
    ]
    residual = access("residual", 0) if _has_residual(program) else "0.0"
    count = "(double)iterations" if _has_newton(program) else "0.0"
    lines = [
        *_smallest(
            f"{LOCAL}d",
            discriminants,
            1.0,
            -1e300,
            nan_checked_elsewhere="discriminants" in implied,
        ),
        *_smallest(
            f"{LOCAL}p",
            pivots,
            1e300,
            0.0,
            nan_checked_elsewhere=implied >= {*checked.pivot_factors},
        ),
        *_squares(function, checked, layout),
    ]
    within = f"{LOCAL}squares < {function.largest**2!r} ? {LOCAL}d : -1e300"
    values = (within, f"{LOCAL}p", residual, count)
    lines += [f"{access('health', i)} = {value};" for i, value in enumerate(values)]
    return ["        " + line for line in lines]


def _squares(function: CFunction, checked: CheckedValues, layout: _Layout) -> list[str]:
    """Return C lines that sum the squares of the checked inputs and of outputs.

    The sum is infinite or NaN if an input or output is. Most processors multiply and add in one
    instruction. Large matrices are skipped, because regressors would take 10 to 50 % longer. Their
    entries are products of two velocities and a length, which cannot overflow below `LARGEST`.
    """
    in_vectors, one_by_one = [], []
    for name, first, count in _runs(checked.inputs):
        if layout.is_contiguous and count >= NUMBERS_OF_VECTOR:
            in_vectors.append(f"tl_squares({f'{name} + {first}' if first else name}, {count})")
        else:
            one_by_one += [layout.access(name, i) for i in range(first, first + count)]
    outputs = [layout.access(name, i) for name, i in checked.outputs]
    # Use two sums, because the sum of the inputs is complete long before the last output.
    return [
        *_sum_of_squares(f"{LOCAL}in", one_by_one, in_vectors),
        *_sum_of_squares(f"{LOCAL}out", outputs, []),
        f"const double {LOCAL}squares = {LOCAL}in + {LOCAL}out;",
    ]


def _runs(elements: Sequence[Element]) -> list[tuple[str, int, int]]:
    """Return consecutive elements of arrays as runs: name, first index, count."""
    runs: list[tuple[str, int, int]] = []
    for name, i in elements:
        if runs and runs[-1][0] == name and i == runs[-1][1] + runs[-1][2]:
            runs[-1] = (name, runs[-1][1], runs[-1][2] + 1)
        else:
            runs.append((name, i, 1))
    return runs


def _sum_of_squares(name: str, terms: Sequence[str], further: Sequence[str]) -> list[str]:
    """Return C lines that define the sum of the squares of `terms`, plus the `further` sums."""
    chains = min(len(terms), CHAINS_OF_SQUARES)
    lines = [f"double {name}_{k} = {terms[k]} * {terms[k]};" for k in range(chains)]
    lines += [f"{name}_{k % chains} += {terms[k]} * {terms[k]};" for k in range(chains, len(terms))]
    sums = [*further, *(f"{name}_{k}" for k in range(chains))]
    return [*lines, f"const double {name} = {' + '.join(sums) or '0.0'};"]


def _smallest(
    name: str, values: Sequence[str], most: float, worst: float, *, nan_checked_elsewhere: bool
) -> list[str]:
    """Return C lines for the smallest of some values, at most `most`; `worst` if a value is NaN.

    Values are compared in a binary tree to avoid a long chain of operations. The constant comes
    last; otherwise compilers would merge the selections into branches, or into masks of lanes.

    Args:
        name: name of the result.
        values: C text of each value.
        most: upper bound of the result.
        worst: result if a value is NaN.
        nan_checked_elsewhere: whether another check detects NaN.
    """
    lines = [f"const double {name}_0_{i} = {value};" for i, value in enumerate(values)]
    # Names of the minima and of the sums at a level of the tree. A sum is NaN if a value is.
    minima = [f"{name}_0_{i}" for i in range(len(values))]
    sums = list(minima)
    level = 0
    while len(minima) > 1:
        level += 1
        n_pairs = len(minima) // 2
        for k in range(n_pairs):
            first, second = minima[2 * k], minima[2 * k + 1]
            lines.append(
                f"const double {name}_{level}_{k} = {first} < {second} ? {first} : {second};"
            )
            if not nan_checked_elsewhere:
                lines.append(
                    f"const double {name}s_{level}_{k} = {sums[2 * k]} + {sums[2 * k + 1]};"
                )
        # The last value of an odd number of values passes to the next level.
        unpaired = slice(2 * n_pairs, None)
        minima = [*(f"{name}_{level}_{k}" for k in range(n_pairs)), *minima[unpaired]]
        sums = [*(f"{name}s_{level}_{k}" for k in range(n_pairs)), *sums[unpaired]]
    if not minima:
        return [f"const double {name} = {most!r};"]
    limited = f"{minima[0]} < {most!r} ? {minima[0]} : {most!r}"
    if nan_checked_elsewhere:
        return [*lines, f"const double {name} = {limited};"]
    return [
        *lines,
        f"const double {name} = {sums[0]} == {sums[0]} ? ({limited}) : {number(worst)};",
    ]


def _has_newton(program: Program) -> bool:
    """Return whether the program has a Newton loop."""
    return any(isinstance(step, Newton) for step in program.steps)


def _has_residual(program: Program) -> bool:
    """Return whether the program has steps that leave a residual."""
    return any(isinstance(step, Newton | Bounded) for step in program.steps)


def _iterated_state(program: Program) -> list[str]:
    """Return the names of the C variables of iterations."""
    names = []
    if _has_newton(program):
        names.append("step_length")
    if _has_residual(program):
        names.append("residual")
    return names


def scalar_text(function: CFunction, *, is_optimized: bool = True) -> str:
    """Return the C text of the function that computes one sample.

    Args:
        function: function to print.
        is_optimized: whether the compiler optimizes; if not, instructions are not reordered.
    """
    return _joined_text(function, _ONE_SAMPLE if is_optimized else _ONE_SAMPLE_UNOPTIMIZED)


def thread_text(function: CFunction, strided: Set[str]) -> str:
    """Return the text of the function that computes one sample in a thread among many.

    Args:
        function: function to print.
        strided: names of ports whose values are n samples apart, as in structures of arrays; the
            values of other ports are adjacent.
    """
    return _joined_text(function, _thread(strided))


def block_text(function: CFunction) -> str:
    """Return the text of the kernel of one block of lanes."""
    return _joined_text(function, _LANES)


def _joined_text(function: CFunction, layout: _Layout) -> str:
    """Return the text of a function or kernel in a layout, after the pieces that it calls."""
    text, piece_functions = _text(function, layout)
    return "\n".join([*(piece.static_text for piece in piece_functions), text])


def _text(function: CFunction, layout: _Layout) -> tuple[str, list[_PieceFunction]]:
    """Return the text of a function or kernel in a layout, with the pieces that it calls."""
    iterated = _iterated_state(function.program)
    parameters = layout.parameter_list([_arguments(function, layout.parameter)])
    lines = [f"{layout.return_type} {function.name}{layout.suffix}({parameters})", "{"]
    lines += [
        f"    double {name}[{max(size, 1)}]{layout.width};"
        for name, size in _stored(function).items()
    ]
    if not layout.is_lanes:
        lines += [f"    double {name}[1] = {{0.0}};" for name in iterated]
    elif iterated:
        lines.append(f"    double {', '.join(f'{name}[1]{layout.width}' for name in iterated)};")
    if _has_newton(function.program):
        lines.append("    int iterations = 0;")
    if layout.is_lanes and _has_residual(function.program):
        lines += [f"    {layout.loop}", "        residual[0][l] = 0.0;", "    }"]
    if layout.size_parameter is not None:
        lines.append("    (void)n;")
    lines += [
        f"    (void){port.name};"
        for port in function.arguments
        if port in function.inputs or not port.size
    ]
    steps, piece_functions = _steps(function, layout)
    lines += [*steps, f"    {layout.loop}", *_health(function, layout), "    }", "}", ""]
    return "\n".join(lines), piece_functions
