"""C source of programs: a function for one sample, and a kernel for batches, from the same steps.

The source is C99 with only math.h: no heap, no global state, no branches on data, deterministic text. A batch is cut
into blocks of lanes; within a block every value is an array over lanes and every stretch of straight-line code one
loop over lanes, which compilers turn into vector instructions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import casadi as ca

from tauloop.errors import InputError, Problem
from tauloop.functions.program import NEWTON_ITERATIONS, NEWTON_LONGEST_STEP, Evaluate, Newton, Program
from tauloop.functions.straight import Piece, instructions, pieces

#: Instructions of straight-line code in one loop over lanes. Registers are shared out in a time that grows with the
#: square of this.
LONGEST_PIECE = 1000
#: Columns of a port that are copied by a line each; more are copied in a loop.
MOST_LINES = 24
#: The array of values that outlive their piece.
KEPT = "kept"
#: Samples per block of a batch kernel: two to four vector registers' worth.
LANES = 16
#: Threads start to pay for themselves at this many samples of a batch.
SAMPLES_FOR_THREADS = 2048
#: Numbers that every function reports: least discriminant (at most 1), least pivot over its typical size (1e300 without
#: pivots), sum of what Newton's loops leave of their equations (m or pure numbers), and most iterations of a loop.
HEALTH = 4
#: Newton's loop ends after a step this short (m, rad or pure numbers), unless a function has its own.
LAST_STEP = 1e-11
#: Words that C keeps for itself.
_RESERVED = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while main".split()
)

_BINARY = {ca.OP_ADD: "+", ca.OP_SUB: "-", ca.OP_MUL: "*", ca.OP_DIV: "/"}
_COMPARE = {ca.OP_LT: "<", ca.OP_LE: "<=", ca.OP_EQ: "==", ca.OP_NE: "!="}
_CALLS = {
    ca.OP_SQRT: "sqrt",
    ca.OP_SIN: "tl_sin",
    ca.OP_COS: "tl_cos",
    ca.OP_ATAN2: "tl_atan2",
    ca.OP_FABS: "fabs",
    ca.OP_FMIN: "fmin",
    ca.OP_FMAX: "fmax",
}

#: Sine, cosine and arctangent without branches or tables, so that loops over lanes stay loops of vector instructions.
#: Reduction in three parts (Cody and Waite); polynomials of fdlibm's kernels and of Cephes. Largest errors measured, in
#: units of the last place: sine and cosine 1.5 up to 100 rad and 2.3 up to 1e6 rad, arctangent 1.6.
_REDUCTION = """\
static inline double tl_reduced(double x, double *quadrant)
{
    const double k = floor(x * 0.63661977236758134308 + 0.5);
    *quadrant = k - 4.0 * floor(0.25 * k);
    return ((x - k * 1.57079632673412561417e+00) - k * 6.07710050630396597660e-11) - k * 2.02226624879595063154e-21;
}

static inline double tl_sin_kernel(double r)
{
    const double z = r * r;
    return r + r * z * (-1.66666666666666324348e-01 + z * (8.33333333332248946124e-03
        + z * (-1.98412698298579493134e-04 + z * (2.75573137070700676789e-06
        + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))));
}

static inline double tl_cos_kernel(double r)
{
    const double z = r * r;
    const double h = 0.5 * z;
    const double w = 1.0 - h;
    return w + (((1.0 - w) - h) + z * z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03
        + z * (2.48015872894767294178e-05 + z * (-2.75573143513906633035e-07
        + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11))))));
}
"""
_SINE = """\
static inline double tl_sin(double x)
{
    double k;
    const double r = tl_reduced(x, &k);
    const double s = tl_sin_kernel(r), c = tl_cos_kernel(r);
    const double y = (k == 1.0 || k == 3.0) ? c : s;
    return k >= 2.0 ? -y : y;
}
"""
_COSINE = """\
static inline double tl_cos(double x)
{
    double k;
    const double r = tl_reduced(x, &k);
    const double s = tl_sin_kernel(r), c = tl_cos_kernel(r);
    const double y = (k == 1.0 || k == 3.0) ? s : c;
    return (k == 1.0 || k == 2.0) ? -y : y;
}
"""
_ARCTANGENT = """\
static inline double tl_atan2(double y, double x)
{
    const double ax = fabs(x), ay = fabs(y);
    const double big = ax > ay ? ax : ay, small = ax > ay ? ay : ax;
    const double t = big == 0.0 ? 0.0 : small / big;
    const double is_far = t > 0.66 ? 1.0 : 0.0;
    const double u = is_far > 0.0 ? (t - 1.0) / (t + 1.0) : t;
    const double z = u * u;
    const double p = (((-8.750608600031904122785e-01 * z - 1.615753718733365076637e+01) * z
        - 7.500855792314704667340e+01) * z - 1.228866684490136173410e+02) * z - 6.485021904942025371773e+01;
    const double q = ((((z + 2.485846490142306297962e+01) * z + 1.650270098316988542046e+02) * z
        + 4.328810604912902668951e+02) * z + 4.853903996359136964868e+02) * z + 1.945506571482613964425e+02;
    const double near_zero = u + u * z * (p / q);
    const double first = is_far > 0.0 ? 0.78539816339744830962 + (near_zero + 3.061616997868383018e-17) : near_zero;
    const double octant = ay > ax ? (1.57079632679489661923 - first) + 6.123233995736765886e-17 : first;
    const double half = x < 0.0 ? (3.14159265358979323846 - octant) + 1.2246467991473531772e-16 : octant;
    return copysign(half, y);
}
"""
ALL_BELOW = """\
static inline int tl_all_below(const double *length, double last)
{
    int above = 0;
    for (int l = 0; l < TL_LANES; ++l) above += length[l] > last;
    return above == 0;
}
"""
_HELPERS = {"tl_sin": _SINE, "tl_cos": _COSINE, "tl_atan2": _ARCTANGENT, "tl_all_below": ALL_BELOW}
MATHEMATICS = "\n".join((_REDUCTION, _SINE, _COSINE, _ARCTANGENT))


@dataclass(frozen=True, slots=True, kw_only=True)
class CPort:
    """An array argument: its name in C, numbers per sample, and what they are (for headers and manifests)."""

    name: str
    size: int
    columns: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    meaning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CFunction:
    """A program with the ports that its C function shall have.

    Attributes:
        name: name of the C function; `name_batch` is the kernel.
        program: the steps.
        inputs: ports in the order of the arguments.
        outputs: ports of the program's outputs that are wanted; `health` is added behind them.
        last_step: Newton's loop ends after a step this short (m, rad or pure numbers).
    """

    name: str
    program: Program
    inputs: tuple[CPort, ...]
    outputs: tuple[CPort, ...]
    last_step: float = LAST_STEP

    @property
    def arguments(self) -> tuple[CPort, ...]:
        """All arrays in the order of the arguments."""
        return (*self.inputs, *self.outputs, CPort(name="health", size=HEALTH))


def c_name(text: str) -> str:
    """A C identifier from any text.

    Raises:
        InputError: nothing usable is left.
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)[:60]
    if not re.match(r"[A-Za-z]", name) or name in _RESERVED:
        raise InputError(
            Problem(where=text, what="gives no C identifier", remedy="choose a name that begins with a letter")
        )
    return name


def c_source(
    functions: Sequence[CFunction],
    note: str,
    *,
    with_batch: bool = True,
    includes: Sequence[str] = (),
    further: str = "",
) -> str:
    """Source of several functions in one file.

    Args:
        functions: what to print.
        note: text for the comment at the top (escaped here).
        with_batch: whether to print the batch kernels too.
        includes: further headers, in their quotes or brackets.
        further: text behind the functions.
    """
    parts = []
    for function in functions:
        parts.append(scalar_text(function))
        if with_batch:
            parts.append(block_text(function))
            parts.append(_batch(function))
    return c_text("\n".join([*parts, *([further] if further else [])]), note, includes)


def c_text(body: str, note: str, includes: Sequence[str] = ()) -> str:
    """A whole file: headers and helpers as the functions need them, and the functions."""
    head = [f"/* {comment(note)} */", *(f"#include {name}" for name in ("<math.h>", "<stddef.h>", *includes)), ""]
    if "TL_LANES" in body:
        head += [f"#define TL_LANES {LANES}", ""]
    return "\n".join([*head, *_used_helpers(body), body])


def _used_helpers(body: str) -> list[str]:
    """Helpers that a text calls: compilers warn of functions that nobody does."""
    called = {name for name in _HELPERS if f"{name}(" in body}
    reduction = [_REDUCTION] if called & {"tl_sin", "tl_cos"} else []
    return reduction + [text for name, text in _HELPERS.items() if name in called]


def declarations(function: CFunction, *, with_batch: bool = True) -> list[str]:
    """Prototypes of a function's C entry points."""
    scalar = ", ".join(_argument(port, port in function.inputs) for port in function.arguments)
    lines = [f"void {function.name}({scalar});"]
    if with_batch:
        lines.append(f"void {function.name}_batch(size_t n, {scalar});")
    return lines


def comment(text: str) -> str:
    """Text that cannot end a comment, nor hold anything but printable ASCII (other signs become escapes)."""
    plain = " ".join(text.split()).encode("ascii", "backslashreplace").decode()
    plain = "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in plain)
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?").rstrip("\\")


def _argument(port: CPort, is_input: bool) -> str:
    return f"{'const ' if is_input else ''}double *{port.name}"


Access = Callable[[str, int], str]


class _Body:
    """Prints steps as statements; how a stored value is written is up to the caller."""

    def __init__(self, access: Access, indent: str, cut: Sequence[str] = ()) -> None:
        """Start without lines.

        Args:
            access: how an element of an array is written.
            indent: before every line.
            cut: lines between the pieces of a long stretch; without them it stays in one piece.
        """
        self.lines: list[str] = []
        self.kept = 0
        self._access = access
        self._indent = indent
        self._cut = cut

    def straight(
        self, function: ca.Function, inputs: Sequence[str], outputs: Sequence[str], wanted: Sequence[str]
    ) -> None:
        """Straight-line code; every intermediate value has its own name."""
        code = instructions(function, [name in wanted for name in outputs])
        parts = pieces(code, LONGEST_PIECE) if self._cut else (Piece(instructions=code, fetched={}, stored={}),)
        constants = {one.number: number(one.constant) for one in code if one.operation == ca.OP_CONST}
        for p, piece in enumerate(parts):
            self.lines += self._cut if p else ()
            for k, place in piece.fetched.items():
                self._line(f"const double t{k} = {self._access(KEPT, place)};")
            for one in piece.instructions:
                a = [constants.get(k, f"t{k}") for k in one.operands]
                if one.operation == ca.OP_OUTPUT and one.port is not None:
                    self._line(f"{self._access(outputs[one.port[0]], one.port[1])} = {a[0]};")
                elif one.port is not None:
                    self._line(f"const double t{one.number} = {self._access(inputs[one.port[0]], one.port[1])};")
                elif one.number not in constants:
                    self._line(f"const double t{one.number} = {_expression(one.operation, a)};")
            for k, place in piece.stored.items():
                self._line(f"{self._access(KEPT, place)} = t{k};")
                self.kept = max(self.kept, place + 1)

    def _line(self, text: str) -> None:
        self.lines.append(self._indent + text)


def number(value: float) -> str:
    """A number as C reads it back exactly."""
    text = repr(float(value))
    if text in ("inf", "-inf", "nan"):
        raise ValueError(f"a constant of the program is {text}")
    text = text if any(mark in text for mark in ".e") else text + ".0"
    return f"({text})" if text.startswith("-") else text


def _expression(op: int, a: list[str]) -> str:
    if op in _BINARY:
        return f"{a[0]} {_BINARY[op]} {a[1]}"
    if op in _CALLS:
        return f"{_CALLS[op]}({', '.join(a)})"
    if op in _COMPARE:
        return f"{a[0]} {_COMPARE[op]} {a[1]} ? 1.0 : 0.0"
    simple = {
        ca.OP_ASSIGN: lambda: a[0],
        ca.OP_NEG: lambda: f"-{a[0]}",
        ca.OP_SQ: lambda: f"{a[0]} * {a[0]}",
        ca.OP_TWICE: lambda: f"{a[0]} + {a[0]}",
        ca.OP_INV: lambda: f"1.0 / {a[0]}",
        ca.OP_SIGN: lambda: f"(double)(({a[0]} > 0.0) - ({a[0]} < 0.0))",
        ca.OP_IF_ELSE_ZERO: lambda: f"{a[0]} != 0.0 ? {a[1]} : 0.0",
        ca.OP_NOT: lambda: f"{a[0]} == 0.0 ? 1.0 : 0.0",
    }
    if op not in simple:
        raise ValueError(f"no C for CasADi's operation {op}")
    return simple[op]()


def _stored(function: CFunction) -> dict[str, int]:
    """Values that live between steps, with their sizes: everything that is neither input nor output."""
    sizes: dict[str, int] = {}
    ports = {port.name for port in function.arguments}
    for step in function.program.steps:
        if isinstance(step, Evaluate):
            for name, size in zip(step.outputs, step.function.output_sizes, strict=True):
                sizes[name] = size
        else:
            sizes[step.solution] = step.size
    wanted = wanted_values(function)
    return {name: size for name, size in sizes.items() if name in wanted and name not in ports}


def wanted_values(function: CFunction) -> set[str]:
    """Values that must be computed: outputs, evidence, and whatever later steps read."""
    wanted = {port.name for port in function.outputs} | {"discriminants", "pivots"}
    for step in function.program.steps:
        if isinstance(step, Newton):
            wanted |= {step.start, step.solution, *step.inputs}
        else:
            wanted |= set(step.inputs)
    return wanted


def _steps(
    function: CFunction, access: Access, indent: str, open_loop: str, close_loop: str, any_lane: str
) -> list[str]:
    """All steps as C lines; a stretch of straight-line code stands inside a loop over lanes."""
    wanted = wanted_values(function)
    lines: list[str] = []
    kept = 0
    begin, end = indent + (open_loop or "{"), indent + (close_loop or "}")
    for step in function.program.steps:
        if isinstance(step, Evaluate):
            body = _Body(access, indent + "    ", cut=(end, begin) if open_loop else ())
            body.straight(step.function.function, step.inputs, step.outputs, sorted(wanted))
            lines += [begin, *body.lines, end]
            kept = max(kept, body.kept)
        else:
            lines += _newton(step, access, indent, open_loop, close_loop, any_lane)
    return [*([f"{indent}double {KEPT}[{kept}][TL_LANES];"] if kept else []), *lines]


def _newton(step: Newton, access: Access, indent: str, open_loop: str, close_loop: str, any_lane: str) -> list[str]:
    """Newton's loop on one block; it ends when every lane has converged. What is left is computed apart from it."""
    inner = indent + "        "

    def inside(name: str, i: int) -> str:
        return f"{name}_{i}" if name in ("phi", "dx") else access(step.solution if name == "x" else name, i)

    local = _Body(inside, inner)
    final = _Body(inside, indent + "    ")
    final.straight(step.function.function, ("x", *step.inputs), ("phi", "dx", "piv"), ("phi",))
    declared = [f"{inner}double dx_{i};" for i in range(step.size)]
    local.straight(step.function.function, ("x", *step.inputs), ("phi", "dx", "piv"), ("dx",))
    update = [f"{inner}double longest = 0.0, limit;"]
    for i in range(step.size):
        update.append(f"{inner}longest = fabs(dx_{i}) > longest ? fabs(dx_{i}) : longest;")
    update.append(f"{inner}limit = longest > {NEWTON_LONGEST_STEP} ? {NEWTON_LONGEST_STEP} / longest : 1.0;")
    update += [f"{inner}{access(step.solution, i)} += limit * dx_{i};" for i in range(step.size)]
    update += [f"{inner}{access('step_length', 0)} = longest;"]
    begin = [f"{indent}    {open_loop or '{'}"]
    end = [f"{indent}    {close_loop or '}'}"]
    copy = [f"{indent}    {access(step.solution, i)} = {access(step.start, i)};" for i in range(step.size)]
    return [
        f"{indent}{open_loop or '{'}",
        *copy,
        f"{indent}{close_loop or '}'}",
        f"{indent}for (int iteration = 1; iteration <= {NEWTON_ITERATIONS}; ++iteration) {{",
        *begin,
        *declared,
        *local.lines,
        *update,
        *end,
        f"{indent}    iterations = iteration > iterations ? iteration : iterations;",
        f"{indent}    if ({any_lane}) break;",
        f"{indent}}}",
        f"{indent}{open_loop or '{'}",
        *(f"{indent}    double phi_{i};" for i in range(step.size)),
        *final.lines,
        # a sum, so that not-a-number stays visible
        *(f"{indent}    {access('residual', 0)} += fabs(phi_{i});" for i in range(step.size)),
        f"{indent}{close_loop or '}'}",
    ]


def _health(function: CFunction, access: Access, indent: str) -> list[str]:
    """Reduce the evidence to four numbers; not-a-number counts as the worst value."""
    program = function.program
    lines = [f"{indent}double least = 1.0, pivot = 1e300, size;", f"{indent}(void)size;"]
    for i in range(len(program.closed_forms)):
        lines.append(f"{indent}size = {access('discriminants', i)};")
        lines.append(f"{indent}size = size >= -1e300 ? size : -1e300;")
        lines.append(f"{indent}least = size < least ? size : least;")
    for i, record in enumerate(program.pivots):
        factor = number(1.0 / max(record.typical, 1e-300))
        lines.append(f"{indent}size = fabs({access('pivots', i)}) * {factor};")
        lines.append(f"{indent}size = size >= 0.0 ? size : 0.0;")
        lines.append(f"{indent}pivot = size < pivot ? size : pivot;")
    residual = access("residual", 0) if _has_newton(program) else "0.0"
    count = "(double)iterations" if _has_newton(program) else "0.0"
    for i, value in enumerate(("least", "pivot", residual, count)):
        lines.append(f"{indent}{access('health', i)} = {value};")
    return lines


def _has_newton(program: Program) -> bool:
    return any(isinstance(step, Newton) for step in program.steps)


def _newton_state(program: Program) -> tuple[str, ...]:
    return ("step_length", "residual") if _has_newton(program) else ()


def scalar_text(function: CFunction) -> str:
    """The function of one sample."""
    arguments = ", ".join(
        f"{'const ' if port in function.inputs else ''}double *restrict {port.name}" for port in function.arguments
    )
    stored = _stored(function)
    lines = [f"void {function.name}({arguments})", "{"]
    lines += [f"    double {name}[{max(size, 1)}];" for name, size in stored.items()]
    lines += [f"    double {name}[1] = {{0.0}};" for name in _newton_state(function.program)]
    if _has_newton(function.program):
        lines.append("    int iterations = 0;")
    lines += [f"    (void){port.name};" for port in function.arguments if port in function.inputs or not port.size]
    access = _pointer
    lines += _steps(function, access, "    ", "", "", f"!(step_length[0] > {function.last_step!r})")
    lines += ["    {", *_health(function, access, "        "), "    }", "}", ""]
    return "\n".join(lines)


def _pointer(name: str, i: int) -> str:
    return f"{name}[{i}]"


def _lane(name: str, i: int) -> str:
    return f"{name}[{i}][l]"


def block_text(function: CFunction) -> str:
    """The kernel of one block of lanes."""
    arguments = ", ".join(
        f"{'const ' if port in function.inputs else ''}double {port.name}[restrict][TL_LANES]"
        for port in function.arguments
    )
    loop = "for (int l = 0; l < TL_LANES; ++l) {"
    lines = [f"static void {function.name}_block({arguments})", "{"]
    lines += [f"    double {name}[{max(size, 1)}][TL_LANES];" for name, size in _stored(function).items()]
    if _has_newton(function.program):
        lines += ["    double step_length[1][TL_LANES], residual[1][TL_LANES];"]
        lines += ["    int iterations = 0;", f"    {loop}", "        residual[0][l] = 0.0;", "    }"]
    lines += [f"    (void){port.name};" for port in function.arguments if port in function.inputs or not port.size]
    all_lanes = f"tl_all_below(step_length[0], {function.last_step!r})"
    lines += _steps(function, _lane, "    ", loop, "}", all_lanes)
    lines += [f"    {loop}", *_health(function, _lane, "        "), "    }", "}", ""]
    return "\n".join(lines)


def _batch(function: CFunction) -> str:
    """The loop over blocks: samples are turned from rows into lanes and back."""
    arguments = ", ".join(
        f"{'const ' if port in function.inputs else ''}double *restrict {port.name}" for port in function.arguments
    )
    lines = [f"void {function.name}_batch(size_t n, {arguments})", "{"]
    lines += [f"    (void){port.name};" for port in function.arguments if not port.size]
    lines += [
        "    const ptrdiff_t blocks = (ptrdiff_t)((n + TL_LANES - 1) / TL_LANES);",
        "#ifdef _OPENMP",
        f"#pragma omp parallel for schedule(static) if (blocks >= {SAMPLES_FOR_THREADS // LANES})",
        "#endif",
        "    for (ptrdiff_t b = 0; b < blocks; ++b) {",
        "        const size_t first = (size_t)b * TL_LANES;",
        "        const size_t count = n - first < TL_LANES ? n - first : TL_LANES;",
    ]
    lines += [f"        double lanes_{port.name}[{max(port.size, 1)}][TL_LANES];" for port in function.arguments]
    lines.append("        for (size_t l = 0; l < TL_LANES; ++l) {")
    lines.append("            const size_t s = first + (l < count ? l : count - 1);")
    for port in function.inputs:
        lines += _columns(port, f"lanes_{port.name}[{{0}}][l] = {port.name}[s * {port.size} + {{0}}];")
    lines.append("            (void)s;")
    lines.append("        }")
    names = ", ".join(_const_cast(port, port in function.inputs) for port in function.arguments)
    lines.append(f"        {function.name}_block({names});")
    lines.append("        for (size_t l = 0; l < count; ++l) {")
    for port in function.arguments[len(function.inputs) :]:
        lines += _columns(port, f"{port.name}[(first + l) * {port.size} + {{0}}] = lanes_{port.name}[{{0}}][l];")
    lines += ["        }", "    }", "}", ""]
    return "\n".join(lines)


def _columns(port: CPort, line: str) -> list[str]:
    """A line for every column of a port; a loop over them where there are many, which would keep compilers busy."""
    indent = " " * 12
    if port.size > MOST_LINES:
        return [f"{indent}for (int i = 0; i < {port.size}; ++i) {line.format('i')}"]
    return [indent + line.format(i) for i in range(port.size)]


def _const_cast(port: CPort, is_input: bool) -> str:
    """Before C23 an array of arrays does not become one of constant arrays by itself."""
    return f"(const double (*)[TL_LANES])lanes_{port.name}" if is_input else f"lanes_{port.name}"
