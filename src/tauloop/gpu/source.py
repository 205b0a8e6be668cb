"""Text of kernels: one thread a sample, ports as structures of arrays, from the same printer as C.

The text is CUDA for NVRTC and C99 for the computer's own compiler; `kernels.h` in front of it says
what its words mean.
"""

from __future__ import annotations

from collections.abc import Sequence

from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.compiled import HELD
from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.printing.c_helpers import c_file, used_helpers
from tauloop.compiler.c.printing.precision import Precision
from tauloop.compiler.c.printing.source import CFunction, comment, number, thread_text
from tauloop.compiler.program import Newton
from tauloop.compiler.solving.bounded import Bounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An array of a kernel's.

    Attributes:
        port: its name and its numbers per sample.
        is_input: whether it is read alone.
        is_held: whether one row may serve all samples.
    """

    port: CPort
    is_input: bool
    is_held: bool


def arguments(function: CFunction) -> tuple[Argument, ...]:
    """The arrays of a function's kernel, in order."""
    inputs = {port.name for port in function.inputs}
    return tuple(
        Argument(
            port=port,
            is_input=port.name in inputs,
            is_held=port.name in HELD and port.name in inputs,
        )
        for port in function.arguments
    )


def kernel_name(function: CFunction) -> str:
    """Name of a function's kernel."""
    return f"{function.name}_grid"


def device_text(body: str, note: str, precision: Precision = Precision.DOUBLE) -> str:
    """A whole file: the words for both compilers, helpers as the functions need them, and the functions."""
    head = [f"/* {comment(note)} */", c_file("tauloop.compiler.c.printing", "kernels.h")]
    written = precision.written(body)
    return "\n".join([*head, *used_helpers(written), written])


def kernels_text(
    functions: Sequence[CFunction], note: str, precision: Precision = Precision.DOUBLE
) -> str:
    """Text of the kernels of functions over samples."""
    limited = [precision.limited(function) for function in functions]
    texts = (
        text for each in limited for text in (sample_text(each), _kernel(each, precision.converged))
    )
    return device_text("\n".join(texts), note, precision)


def walks(function: CFunction) -> bool:
    """Whether it leads from positions to coordinates by iteration, and so can go by a way."""
    ports = {port.name for port in function.arguments}
    iterates = any(isinstance(step, Newton) for step in function.program.steps)
    return iterates and ports >= {"position", "start", "q"} and "velocity" not in ports


def sample_text(function: CFunction, own: Sequence[str] = ()) -> str:
    """The function of one thread, which `sample_call` calls with the same ports of the caller's own."""
    return thread_text(function, _strided(function) - set(own))


def _strided(function: CFunction) -> frozenset[str]:
    """Ports that are structures of arrays also within a thread; others are copied there and back."""
    nearest = {
        name
        for step in function.program.steps
        if isinstance(step, Bounded)
        for name in (step.rows, step.sides, step.solution)
    }
    nearest |= {"position", "q"} if walks(function) else set()
    return frozenset(each.port.name for each in arguments(function) if not each.is_held) - nearest


def sample_call(function: CFunction, own: Sequence[str] = ()) -> list[str]:
    """Statements that call the function of one thread for sample s of n.

    Args:
        function: what is called.
        own: ports for which the caller has an array of their name in front of this, of one sample.
    """
    strided, before, behind, passed = _strided(function), [], [], []
    held = [each.port.name for each in arguments(function) if each.is_held]
    for each in arguments(function):
        name, size = each.port.name, each.port.size
        if name in strided and name not in own:
            passed.append(f"{name} + s")
            continue
        if name in own:
            passed.append(name)
            continue
        passed.append(f"own_{name}")
        before.append(f"double own_{name}[{max(size, 1)}];")
        loop = f"for (int i = 0; i < {size}; ++i)"
        if each.is_held:
            many = f"(each >> {held.index(name)} & 1u)"
            before.append(f"{loop} own_{name}[i] = {many} ? {name}[i * n + s] : {name}[i];")
        elif each.is_input:
            before.append(f"{loop} own_{name}[i] = {name}[i * n + s];")
        else:
            behind.append(f"{loop} {name}[i * n + s] = own_{name}[i];")
    return [*before, f"{function.name}_thread({', '.join(['n', *passed])});", *behind]


def parameters(function: CFunction, own: Sequence[str] = (), sizes: Sequence[str] = ()) -> str:
    """Parameters of a kernel: samples, a bit for each held input that has a row for each of them, sizes, arrays."""
    listed = [
        f"{'const ' if each.is_input else ''}double *restrict {each.port.name}"
        for each in arguments(function)
        if each.port.name not in own
    ]
    return ", ".join([*(f"size_t {name}" for name in ("n", "each", *sizes)), *listed])


def _kernel(function: CFunction, converged: float) -> str:
    listed, called = parameters(function), sample_call(function)
    if walks(function):
        listed += ", size_t k, const double *restrict from"
        at = next(i for i, line in enumerate(called) if line.startswith(f"{function.name}_thread("))
        called[at : at + 1] = _way(function, called[at], converged)
    lines = [f"TL_KERNEL {kernel_name(function)}({listed})", "{", "    (void)each;"]
    lines += [f"    (void){each.port.name};" for each in arguments(function) if not each.port.size]
    lines += ["    TL_SAMPLES(s, n) {", *(f"        {line}" for line in called), "    }", "}", ""]
    return "\n".join(lines)


def _way(function: CFunction, call: str, converged: float) -> list[str]:
    """Positions reached by k steps of a straight line, each of which begins where the last one leads.

    As on the processor it reports the most iterations that one of them took.
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
