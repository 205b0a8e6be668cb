"""Text of exported C code: the header, and the test program with its expected numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.printing import single as single_precision
from tauloop.compiler.c.printing.batch_source import LANES
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.parameter_check import parameter_declarations
from tauloop.compiler.c.printing.single import in_single
from tauloop.compiler.c.printing.source import CFunction, comment, declarations, number
from tauloop.compiler.solving.bounded import Bounded
from tauloop.compiler.state import CONVERGED, SMALLEST_PIVOT
from tauloop.mechanism.expression import Parameter

#: Largest deviation that the test program accepts, relative to the largest value of a port. It
#: covers rounding errors, amplified by the condition of the states, on any compiler and processor.
TOLERANCE = 1e-9
_BATCH = " * NAME computes one sample; NAME_batch computes n, every array with n rows, one sample after the other."
#: Columns of the description in the header's comment.
DESCRIPTION_COLUMNS = 110
#: Ports whose numbers are all smaller than this are compared by absolute deviation.
ZERO_LEVEL = 1e-9


def _health(*, batch: bool, single: bool) -> tuple[tuple[str, str], ...]:
    """Return the meaning and the unit of the four numbers of `health`."""
    if single:
        no_pivot, converged = single_precision.FLOAT_MARK, single_precision.CONVERGED
        singular = f"below {single_precision.SMALLEST_PIVOT:g}: singular"
    else:
        no_pivot, converged = 1e300, CONVERGED
        singular = "near 0: singular"
    iterations = "maximum number of Newton iterations of a loop"
    if batch:
        iterations += f" (in a batch: of the {LANES} samples of a block)"
    elif single:
        iterations += f", at most {single_precision.NEWTON_ITERATIONS}"
    return (
        (
            "smallest normalized discriminant of the loops closed in closed form, at most 1; negative: out of reach",
            "1",
        ),
        (
            "smallest pivot of the linear solves and Newton steps, relative to its typical value "
            f"({_short(no_pivot)} without pivots); {singular}",
            "1",
        ),
        (
            "sum of the residuals of the loop equations solved by Newton's method, lengths relative to the "
            f"characteristic length; above {_short(converged)}: not converged",
            "1",
        ),
        (iterations, "1"),
    )


def _short(value: float) -> str:
    """Return a power of ten in short notation, such as 1e-9."""
    return repr(value).replace("e+", "e").replace("e-0", "e-")


_BOUNDED = " *   [2] also exceeds {} if tensions violate their bounds: violation relative to the largest tension"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A C function with inputs and the outputs expected for them.

    Attributes:
        function: the function and its ports.
        meaning: description of its outputs.
        inputs, expected: inputs and expected outputs (N, n) by port.
    """

    function: CFunction
    meaning: str
    inputs: Mapping[str, np.ndarray]
    expected: Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderNotes:
    """Notes in a header that apply to all its functions.

    Attributes:
        made_from: name of the machine or of the drive line.
        description: the description in its file.
        given: description of the inputs of the functions.
        baked_in: parameters that are constants in the functions.
    """

    made_from: str
    description: str
    given: str
    baked_in: Sequence[Parameter]

    @property
    def values(self) -> dict[str, float]:
        """Return the constant parameters by name (SI), in the order of the parameter hash."""
        return {p.name: p.value for p in self.baked_in}


def header_text(
    stem: str,
    note: str,
    notes: HeaderNotes,
    cases: Sequence[Case],
    *,
    batch: bool = True,
    single: bool = False,
) -> str:
    """Return the header: prototypes, each with a description of its arguments.

    Args:
        stem: first part of every name.
        note: text of the comment at the top.
        notes: notes that apply to all functions.
        cases: the functions.
        batch: whether the functions have batch kernels.
        single: whether the functions use floats.
    """
    guard = f"{stem.upper()}_H"
    lines = [f"/* {comment(note)}", " *"]
    if notes.description:
        wrapped = textwrap.wrap(comment(notes.description), DESCRIPTION_COLUMNS)
        lines += [f" * {line}" for line in wrapped]
        lines += [" *"]
    if batch:
        samples_line = _BATCH
    elif single:
        samples_line = " * A function computes one sample, in single precision."
    else:
        samples_line = " * A function computes one sample."
    lines += [
        f" * Inputs: {notes.given}. SI units, angles in radians. Functions store nothing between calls and",
        " * may be called from several threads at once. Arrays must not overlap.",
        samples_line,
        " *",
        " * Constants compiled in (SI; the value in the machine file in parentheses):",
    ]
    lines += [
        f" *   {comment(p.name)} = {p.value!r}"
        + (f" ({p.value / p.scale:.12g} {comment(p.unit)})" if p.unit else "")
        for p in notes.baked_in
    ]
    lines += [" */", f"#ifndef {guard}", f"#define {guard}", "", "#include <stddef.h>", ""]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    lines += [*parameter_declarations(stem, notes.values), ""]
    for case in cases:
        lines += [f"/* {case.function.name}: {case.meaning}", " *"]
        for port in case.function.inputs:
            lines += _port_lines("in", port)
        for port in case.function.outputs:
            lines += _port_lines("out", port)
        lines += [" * out health[4]: diagnostics; not-a-number counts as the worst value"]
        health = _health(batch=batch, single=single)
        lines += [f" *   [{i}] {text} [{unit}]" for i, (text, unit) in enumerate(health)]
        if any(isinstance(step, Bounded) for step in case.function.program.steps):
            lines.append(
                _BOUNDED.format(_short(single_precision.CONVERGED if single else CONVERGED))
            )
        prototypes = declarations(case.function, single=single)
        lines += [" */", *(prototypes if batch else prototypes[:1]), ""]
    lines += ["#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard} */", ""]
    return "\n".join(lines)


def _port_lines(direction: str, port: CPort) -> Iterator[str]:
    yield f" * {direction} {port.name}[{port.size}]: {comment(port.meaning)}"
    for i, (column, unit) in enumerate(zip(port.columns, port.units, strict=True)):
        yield f" *   [{i}] {comment(column)} [{comment(unit)}]"


def deviation(computed: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference relative to the largest expected number, as in check.c."""
    difference = np.abs(computed - expected).max(initial=0.0)
    largest = np.abs(expected).max(initial=0.0)
    return float(difference / (largest if largest >= ZERO_LEVEL else 1.0))


def check_text(
    stem: str, cases: Sequence[Case], *, batch: bool = True, tolerance: float | None = None
) -> str:
    """Return the test program; its exit status is 0 if every number is as expected, else 1.

    Args:
        stem: first part of every name.
        cases: the functions.
        batch: whether the functions have batch kernels.
        tolerance: largest accepted deviation in single precision; None for double precision.
    """
    is_single = tolerance is not None
    pivot, converged = (
        (single_precision.SMALLEST_PIVOT, single_precision.CONVERGED)
        if is_single
        else (SMALLEST_PIVOT, CONVERGED)
    )
    kinds_of_calls = "by scalar calls and by a batch" if batch else "by scalar calls"
    samples = len(next(iter(cases[0].inputs.values())))
    lines = [
        f"/* Checks {stem}.c against numbers of Tauloop's interpreter, {kinds_of_calls}. */",
        f'#include "{stem}.h"',
        "",
        f"#define SAMPLES {samples}",
        f"#define BATCH {LANES + samples if batch else samples}",
        f"#define TOLERANCE {TOLERANCE if tolerance is None else float(f'{tolerance:.0e}')!r}",
        f"#define ZERO_LEVEL {ZERO_LEVEL!r}",
        f"#define SMALLEST_PIVOT {pivot!r}",
        f"#define CONVERGED {converged!r}",
        "",
        c_file("tauloop.export.c", "check.c"),
    ]
    for case in cases:
        lines += _check(case, batch=batch)
    lines += ["int main(void)", "{", "    int failed = 0;"]
    lines += [f"    failed += check_{case.function.name}();" for case in cases]
    call, right = f"{stem}_check_parameters", f"{stem.upper()}_PARAMETER_HASH"
    lines += [f"    if ({call}({right}) != 0 || {call}({right} ^ 1ULL) != 2) {{"]
    lines += ['        printf("parameters: FAILED\\n");', "        failed += 1;", "    }"]
    lines += [
        '    printf("%s\\n", failed ? "FAILED" : "all agree");',
        "    return failed ? 1 : 0;",
        "}",
        "",
    ]
    text = "\n".join(lines)
    return (
        in_single(text).replace("(PRINTED)", "(double)")
        if is_single
        else text.replace("(PRINTED)", "")
    )


def _check(case: Case, *, batch: bool) -> Iterator[str]:
    """Yield the numbers and the check of one function."""
    name, inputs, outputs = case.function.name, case.function.inputs, case.function.outputs
    for key, values in (*case.inputs.items(), *case.expected.items()):
        array = f"{name}_{'in' if key in case.inputs else 'out'}_{key}"
        numbers = [number(value) for value in values.ravel().tolist()]
        yield f"static const double {array}[{len(numbers)}] = {{"
        yield from (f"    {', '.join(numbers[i : i + 4])}," for i in range(0, len(numbers), 4))
        yield "};"
    yield f"static int check_{name}(void)"
    yield "{"
    yield "    int failed = 0;"
    for port in (*inputs, *outputs):
        yield f"    static double {port.name}[BATCH * {port.size}];"
    yield "    static double health[BATCH * 4];"
    for port in inputs:
        yield f"    for (size_t i = 0; i < BATCH * {port.size}; ++i)"
        yield f"        {port.name}[i] = {name}_in_{port.name}[i % (SAMPLES * {port.size})];"
    arguments = ", ".join(f"{port.name} + s * {port.size}" for port in (*inputs, *outputs))
    yield f"    for (size_t s = 0; s < SAMPLES; ++s) {name}({arguments}, health + 4 * s);"
    yield from _comparison(case, "calls", "SAMPLES")
    if batch:
        for port in outputs:
            yield f"    for (size_t i = 0; i < BATCH * {port.size}; ++i) {port.name}[i] = 0.0;"
        yield f"    {name}_batch(BATCH, {', '.join(port.name for port in (*inputs, *outputs))}, health);"
        yield from _comparison(case, "batch", "BATCH")
    yield "    return failed;"
    yield "}"
    yield ""


def _comparison(case: Case, how: str, count: str) -> Iterator[str]:
    name = case.function.name
    for port in case.function.outputs:
        expected = f"{name}_out_{port.name}, SAMPLES * {port.size}"
        yield f'    failed += report("{name} ({how})", "{port.name}",'
        yield f"        deviation({port.name}, {count} * {port.size}, {expected}));"
    yield f'    failed += unhealthy("{name} ({how})", health, {count});'
