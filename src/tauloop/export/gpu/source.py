"""Source text of kernels with one thread per sample, from the same printer as C.

Arrays are stored column by column. The text is CUDA for NVRTC and C99 for the host compiler;
`kernels.h` defines the keywords that differ.
"""

from __future__ import annotations

from collections.abc import Sequence

from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.compiled import NOMINAL_INPUTS
from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.printing.c_helpers import c_file, used_helpers
from tauloop.compiler.c.printing.precision import Precision
from tauloop.compiler.c.printing.source import CFunction, comment, number, thread_text
from tauloop.compiler.program import Newton
from tauloop.compiler.solving.bounded import Bounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An array argument of a kernel.

    Attributes:
        port: name and size per sample.
        is_input: whether it is an input.
        is_held: whether the array may have a single row that all samples share.
    """

    port: CPort
    is_input: bool
    is_held: bool


def arguments(function: CFunction) -> tuple[Argument, ...]:
    """Return the array arguments of a function's kernel, in order."""
    inputs = {port.name for port in function.inputs}
    return tuple(
        Argument(
            port=port,
            is_input=port.name in inputs,
            is_held=port.name in NOMINAL_INPUTS and port.name in inputs,
        )
        for port in function.arguments
    )


def kernel_name(function: CFunction) -> str:
    """Return the name of a function's kernel."""
    return f"{function.name}_grid"


def device_text(body: str, note: str, precision: Precision = Precision.DOUBLE) -> str:
    """Return a complete source file: definitions for both compilers, helpers and functions."""
    head = [f"/* {comment(note)} */", c_file("tauloop.compiler.c.printing", "kernels.h")]
    written = precision.written(body)
    return "\n".join([*head, *used_helpers(written), written])


def kernels_text(
    functions: Sequence[CFunction], note: str, precision: Precision = Precision.DOUBLE
) -> str:
    """Return the source of kernels that evaluate functions at many samples."""
    texts = []
    for function in functions:
        limited = precision.limited(function)
        texts += [sample_text(limited), _kernel(limited, precision.converged)]
    return device_text("\n".join(texts), note, precision)


def can_approach_in_steps(function: CFunction) -> bool:
    """Return whether a function computes coordinates by iteration from a position and a start.

    Its kernel can then approach a distant position in several steps.
    """
    ports = {port.name for port in function.arguments}
    iterates = any(isinstance(step, Newton) for step in function.program.steps)
    return iterates and ports >= {"position", "start", "q"} and "velocity" not in ports


def sample_text(function: CFunction, local: Sequence[str] = ()) -> str:
    """Return the source of the function for a single thread; for `local` see `sample_call`."""
    return thread_text(function, _strided(function) - set(local))


def _strided(function: CFunction) -> frozenset[str]:
    """Return the ports that a thread accesses in place; all other ports are copied in and out."""
    copied = {
        name
        for step in function.program.steps
        if isinstance(step, Bounded)
        for name in (step.rows, step.sides, step.solution)
    }
    if can_approach_in_steps(function):
        copied |= {"position", "q"}
    return frozenset(each.port.name for each in arguments(function) if not each.is_held) - copied


def sample_call(function: CFunction, local: Sequence[str] = ()) -> list[str]:
    """Return the statements that call the thread's function for sample s of n.

    Args:
        function: the called function.
        local: ports for which the caller declares an array of the same name for a single sample.
    """
    strided = _strided(function)
    before: list[str] = []
    after: list[str] = []
    passed: list[str] = []
    held = [each.port.name for each in arguments(function) if each.is_held]
    for each in arguments(function):
        name, size = each.port.name, each.port.size
        if name in strided and name not in local:
            passed.append(f"{name} + s")
            continue
        if name in local:
            passed.append(name)
            continue
        passed.append(f"own_{name}")
        before.append(f"double own_{name}[{max(size, 1)}];")
        loop = f"for (int i = 0; i < {size}; ++i)"
        if each.is_held:
            is_per_sample = f"(each >> {held.index(name)} & 1u)"
            before.append(
                f"{loop} own_{name}[i] = {is_per_sample} ? {name}[i * n + s] : {name}[i];"
            )
        elif each.is_input:
            before.append(f"{loop} own_{name}[i] = {name}[i * n + s];")
        else:
            after.append(f"{loop} {name}[i * n + s] = own_{name}[i];")
    return [*before, f"{function.name}_thread({', '.join(['n', *passed])});", *after]


def parameters(function: CFunction, local: Sequence[str] = (), sizes: Sequence[str] = ()) -> str:
    """Return the parameter list of a kernel.

    It contains the number of samples, a bit for each held input that is set if every sample has its
    own row, `sizes`, and all arrays except `local`.
    """
    listed = [
        f"{'const ' if each.is_input else ''}double *restrict {each.port.name}"
        for each in arguments(function)
        if each.port.name not in local
    ]
    return ", ".join([*(f"size_t {name}" for name in ("n", "each", *sizes)), *listed])


def _kernel(function: CFunction, converged: float) -> str:
    listed = parameters(function)
    called = sample_call(function)
    if can_approach_in_steps(function):
        listed += ", size_t k, const double *restrict from"
        index = next(
            i for i, line in enumerate(called) if line.startswith(f"{function.name}_thread(")
        )
        called[index : index + 1] = _stepwise_call(function, called[index], converged)
    lines = [f"TL_KERNEL {kernel_name(function)}({listed})", "{", "    (void)each;"]
    lines += [f"    (void){each.port.name};" for each in arguments(function) if not each.port.size]
    lines += ["    TL_SAMPLES(s, n) {", *(f"        {line}" for line in called), "    }", "}", ""]
    return "\n".join(lines)


def _stepwise_call(function: CFunction, call: str, converged: float) -> list[str]:
    """Return statements that approach positions in k steps on straight lines.

    Each step starts at the solution of the previous one. The kernel reports the maximum number of
    iterations of a step, as on the host processor.
    """
    size = {port.name: port.size for port in function.arguments}
    step = "from[i] + (double)part * (1.0 / (double)k) * (position[i * n + s] - from[i])"
    is_reached = f"health[s] >= 0.0 && fabs(health[2 * n + s]) < {number(converged)}"
    return [
        "double most = 0.0;",
        "for (size_t part = 1; part <= k; ++part) {",
        f"    for (int i = 0; i < {size['position']}; ++i) own_position[i] = part < k ? {step} : position[i * n + s];",
        f"    {call}",
        "    most = health[3 * n + s] > most ? health[3 * n + s] : most;",
        f"    for (int i = 0; i < {size['q']}; ++i) own_start[i] = {is_reached} ? own_q[i] : own_start[i];",
        "}",
        "health[3 * n + s] = most;",
    ]
