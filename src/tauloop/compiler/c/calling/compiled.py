"""Compiled functions in Python, called with batches or bound to fixed arrays for single calls."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.common.errors import InputError, PoseError, Problem, Problems
from tauloop.compiler.c.calling.caller import (
    Call,
    CallArrays,
    bound_call,
    checked_call,
    counted_call,
)
from tauloop.compiler.c.calling.compiler import Compiler
from tauloop.compiler.c.calling.embedded import EmbeddedCompiler
from tauloop.compiler.c.calling.library import Library, address, compiler_for
from tauloop.compiler.c.calling.memory import empty
from tauloop.compiler.c.calling.signature import HEALTH, CPort, CSignature
from tauloop.compiler.c.calling.threads import MIN_SHARE, share_out, shares
from tauloop.compiler.c.printing.batch_source import LANES, batch_head
from tauloop.compiler.limits import CONVERGED, FEW_STEPS, SMALLEST_PIVOT
from tauloop.equations.ports import Port, checked, is_one_row, real, require_finite

if TYPE_CHECKING:
    from tauloop.compiler.c.printing.source import CFunction


#: Inputs that have nominal values and are not arguments of a call (`CompiledFunction.__call__`).
NOMINAL_INPUTS = ("start", "theta", "weight", "preload", "wrench", "payload")
#: Number of samples whose continuations advance together: a multiple of the kernel's block that
#: fits into the first-level cache.
CONTINUATION_BLOCK = 256
#: Continuation along straight lines from the pose `start` to the positions: the position of `start`
#: and the number of steps; None for a solution in one step.
Continuation = tuple[np.ndarray, int] | None
#: Number of batches that code in memory computes before the extension module is used.
FIRST_BATCHES = 200
#: Number of parts of a batch per thread, so that other threads can take over parts of a slow one.
SHARES = 4


class CompiledFunction:
    """A program as machine code."""

    def __init__(
        self,
        function: CSignature,
        library: Library,
        nominal: Mapping[str, np.ndarray] = MappingProxyType({}),
        threads: int = 1,
    ) -> None:
        """Wrap existing machine code (see `compile_function`, `tauloop.load_function`).

        Args:
            function: signature of the function.
            library: library that contains it.
            nominal: initial values of the ports in bound calls; by default zero.
            threads: number of threads for a batch; it does not affect the results.
        """
        self.function = function
        self.library, self._library = library.path, library
        self.nominal = nominal
        self._threads = threads
        self._batches = 0
        self._inputs = tuple(port.name for port in function.inputs)
        self._sizes = {port.name: port.size for port in function.outputs} | {"health": HEALTH}

    def __call__(self, *motion: Any) -> Any:
        """Return the outputs at one or many samples of a motion, with checks: `function(q, v, a)`.

        Args:
            motion: arrays (n,) for one sample or (N, n) for many, one for each input in order. The
                inputs `start`, `theta`, `weight` and `preload` are omitted and have nominal values.

        Returns:
            The output (n,) or (N, n), or a tuple of outputs.

        Raises:
            InputError: arrays are missing, or have wrong shapes or values.
            PoseError: a pose is out of reach or singular, or no tensions within the bounds exist.
        """
        return self._single(*motion)

    @cached_property
    def _single(self) -> Callable[..., Any]:
        ports = self._motion
        outputs = tuple(port.name for port in self.function.outputs)
        call = self.checked(tuple(port.name for port in ports), self._many)
        if len(outputs) == 1:
            return call
        ends = np.cumsum([port.size for port in self.function.outputs])

        def several(*motion: Any) -> tuple[np.ndarray, ...]:
            outputs = call(*motion)
            if isinstance(outputs, tuple):
                return outputs
            return tuple(np.split(outputs[: ends[-1]], ends[:-1]))

        return several

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(port.name for port in self.function.inputs)

    def renamed(
        self, function: CSignature, nominal: Mapping[str, np.ndarray], threads: int
    ) -> CompiledFunction:
        """Return the same machine code with other names of ports (see `__init__`)."""
        return CompiledFunction(function, self._library, nominal, threads)

    def address(self, entry: str) -> int:
        """Return the address of an entry of the code: "bound" or "counted" (see `_entry_text`)."""
        return self._library.address(f"{self.function.name}_{entry}")

    @property
    def _motion(self) -> tuple[CPort, ...]:
        return tuple(port for port in self.function.inputs if port.name not in NOMINAL_INPUTS)

    def _many(self, *motion: Any) -> Any:
        """Return outputs of many samples, or raise errors on arguments and poses."""
        ports = {port.name: _described(port) for port in self._motion}
        if len(motion) > len(ports):
            what = f"{len(motion)} arrays are too many"
            raise InputError.of(self.function.name, what, f"give {', '.join(ports)}")
        arrays, single = checked(ports, dict(zip(ports, motion, strict=False)), finite=False)
        n = len(next(iter(arrays.values())))
        nominal = {
            port.name: np.broadcast_to(self.nominal.get(port.name, 0.0), (n, port.size))
            for port in self.function.inputs
            if port.name in NOMINAL_INPUTS
        }
        outputs, is_sound = self.run({**arrays, **nominal}, n)
        health = outputs.pop("health")
        if not is_sound:
            require_finite(ports, arrays)
            require_health(health)
        values = tuple(array[0] if single else array for array in outputs.values())
        return values[0] if len(values) == 1 else values

    def checked(
        self, names: Sequence[str], otherwise: Callable[..., Any], *, whole: bool = False
    ) -> Callable[..., Any]:
        """Return a call of one sample that checks inputs and diagnostics; see `checked_call`.

        Args:
            names: names of the inputs that are arguments; the others have their nominal values.
            otherwise: function that is called if a check fails.
            whole: whether the call returns a copy of all outputs followed by the diagnostics, even
                if there is only one output.
        """
        is_single = len(self.function.outputs) == 1 and not whole

        def new_arrays() -> CallArrays:
            arrays, parts = self._arrays()
            result = arrays[self.function.outputs[0].name] if is_single else arrays["outputs"]
            return CallArrays(parts, [arrays[name] for name in names], result)

        return checked_call(self._library, f"{self.function.name}_bound", new_arrays, otherwise)

    def batch(
        self, inputs: Mapping[str, np.ndarray], n: int, out: Mapping[str, np.ndarray] | None = None
    ) -> dict[str, np.ndarray]:
        """Return outputs (N, n) by port, including `health`.

        Args:
            inputs: float arrays (N, n) by port. Values are not checked; `health` reports samples
                that are not finite.
            n: number of samples N.
            out: contiguous float arrays (N, n) to write into, by port, such as slices of a long
                result that is computed in chunks. Other ports get new arrays.

        Raises:
            InputError: an input is missing, complex or masked or has another shape; or an array of
                `out` has another name, shape, type or layout.
        """
        return self.run(inputs, n, out)[0]

    def run(
        self,
        inputs: Mapping[str, np.ndarray],
        n: int,
        out: Mapping[str, np.ndarray] | None = None,
        continuation: Continuation = None,
    ) -> tuple[dict[str, np.ndarray], bool]:
        """Return outputs as `batch` does, and whether all samples passed (see `evaluator.Kernel`).

        Args:
            inputs, n, out: as for `batch`.
            continuation: position of `start` and number of steps of a continuation from there; None
                for a solution in one step.
        """
        n = operator.index(n)
        self._batches += 1
        outputs = self._output_arrays(n, out)
        if (
            continuation is None
            and self._is_called_often
            and self._counted is not None
            and all(name in inputs for name in self._inputs)
        ):
            bad = self._in_parts(n, [*map(inputs.__getitem__, self._inputs), *outputs.values()])
            if bad is not None:
                return outputs, bad == 0
        return outputs, self._run_any_layout(inputs, outputs, n, continuation) == 0

    def _output_arrays(self, n: int, out: Mapping[str, np.ndarray] | None) -> dict[str, np.ndarray]:
        """Return the arrays to write into, by port: checked arrays of the caller, or new ones."""
        if not out:
            return {name: empty(n, size) for name, size in self._sizes.items()}
        _require_writable(out, self._sizes, n)
        return {
            name: out[name] if name in out else empty(n, size) for name, size in self._sizes.items()
        }

    @property
    def _is_called_often(self) -> bool:
        """Whether the code is called so often that loading the extension module pays off."""
        return self._library.path is not None or self._batches > FIRST_BATCHES

    @cached_property
    def _counted(self) -> Callable[..., int | None] | None:
        """The kernel as a function that checks array layouts; None without Python's headers."""
        sizes = [port.size for port in self.function.arguments]
        return counted_call(
            self._library, f"{self.function.name}_counted", sizes, len(self._inputs), LANES
        )

    def _in_parts(self, n: int, arrays: Sequence[np.ndarray]) -> int | None:
        """Run the kernel on arrays in row order; return the number of failed samples.

        The result is None if an array has another layout.
        """
        assert self._counted is not None
        if self._threads == 1 or n < 2 * MIN_SHARE:
            return self._counted(0, n, n, *arrays)
        counts: list[int | None] = []

        def work(part: slice) -> None:
            counts.append(self._counted(part.start, part.stop - part.start, n, *arrays))  # type: ignore[misc]

        share_out(shares(n, SHARES * self._threads), self._threads, work)
        return None if None in counts else sum(filter(None, counts))

    def _run_any_layout(
        self,
        inputs: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray],
        n: int,
        continuation: Continuation,
    ) -> int:
        """Run the kernel on copies of arrays of any layout; return the number of failed samples."""
        arrays = [*_readable(inputs, self.function.inputs, n), *outputs.values()]
        steps = np.array(
            [array.shape[1] if len(array) == n else 0 for array in arrays], dtype=np.uintp
        )
        if continuation is None:
            code = self._library.function(f"{self.function.name}_counted", "n**", "n")
        else:
            code = self._library.function(f"{self.function.name}_walked", "n***n", "n")
        counts: list[int] = []

        def work(part: slice) -> None:
            rows = [array[part] if len(array) == n else array for array in arrays]
            rows = [np.ascontiguousarray(array) for array in rows]
            pointers = np.array([address(array) for array in rows], dtype=np.uintp)
            counts.append(code(part.stop - part.start, pointers, steps, *(continuation or ())))

        if self._threads == 1 or n < 2 * MIN_SHARE:
            work(slice(0, n))
        else:
            share_out(shares(n, SHARES * self._threads), self._threads, work)
        return sum(counts)

    def bind(self) -> tuple[Mapping[str, np.ndarray], Call]:
        """Return arrays by port and a call that reads and writes them, for control loops.

        The arrays are filled in place and live as long as the call does. All inputs are consecutive
        views of the array `inputs`, and all outputs are views of `outputs`. `call(state)` first
        copies `state`, a contiguous float64 array, to the front of `inputs`.
        """
        arrays, parts = self._arrays()
        call = bound_call(self._library, f"{self.function.name}_bound", parts, arrays["inputs"])
        return MappingProxyType(arrays), call

    def _arrays(self) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
        """Return the arrays by port, with nominal values, and a list of all arrays in order."""
        ports_by_array = {
            "inputs": self.function.inputs,
            "outputs": self.function.arguments[len(self.function.inputs) :],
        }
        whole = {name: np.zeros(_total_size(ports)) for name, ports in ports_by_array.items()}
        arrays: dict[str, np.ndarray] = {}
        for name, ports in ports_by_array.items():
            arrays |= {port.name: part for port, part in _parts(ports, whole[name])}
        for name in self.nominal.keys() & arrays.keys():
            arrays[name][:] = self.nominal[name]
        return arrays | whole, list(arrays.values())


def _total_size(ports: Sequence[CPort]) -> int:
    """Return the number of values of all ports together."""
    return sum(port.size for port in ports)


def _described(port: CPort) -> Port:
    """Return a port with names and units of its columns; columns without names get indices."""
    return Port(
        name=port.name,
        columns=port.columns or tuple(f"{port.name}[{i}]" for i in range(port.size)),
        units=port.units or ("",) * port.size,
    )


def require_health(
    health: Any, pivots: float = SMALLEST_PIVOT, residuals: float = CONVERGED, xp: Any = np
) -> None:
    """Raise an error unless all samples are within reach and regular.

    `health` is an array (N, 4) on any device, and `xp` is its array module.

    Raises:
        PoseError: a sample failed; the message states the first one and the reason.
    """
    least, pivot, residual, _ = health.T
    checks = (
        (
            ~(least >= 0),
            "out of reach, or its results are not finite: a loop does not close",
            least,
        ),
        (
            ~(xp.abs(residual) < residuals),
            "a loop does not close, or a cable tension is outside its bounds: residual",
            residual,
        ),
        (~(pivot > pivots), "singular: a pivot has nearly vanished", pivot),
    )
    problems = Problems()
    for bad, what, values in checks:
        if bool(bad.any()):
            first = int(xp.argmax(bad))
            text = f"sample {first} of {len(bad)}: {what} ({float(values[first]):.3g})"
            problems.add(
                "motion",
                text,
                "evaluate the sample with `Model`, which reports the loop and the error",
            )
    PoseError.raise_if_any(problems)


def _parts(ports: Sequence[CPort], whole: np.ndarray) -> Iterator[tuple[CPort, np.ndarray]]:
    """Yield the ports with their consecutive views of an array."""
    first = 0
    for port in ports:
        yield port, whole[first : first + port.size]
        first += port.size


def compile_function(
    function: CFunction,
    compiler: Compiler | EmbeddedCompiler | None = None,
    *,
    threads: int = 1,
    folder: Path | None = None,
) -> CompiledFunction:
    """Return a compiled function, from the cache if possible.

    Raises:
        EngineError: the library cannot be built.
    """
    # imported here, because it imports CasADi, which a function from the cache does not need
    from tauloop.compiler.c.printing.source import c_text, c_units, scalar_text

    compiler = compiler or compiler_for()
    note = f"{function.name}: generated by Tauloop, do not edit"
    units: tuple[str, ...]
    if isinstance(compiler, EmbeddedCompiler):
        # without vector instructions, lanes are not faster and take twice as long to print
        scalar = scalar_text(function, is_optimized=False)
        units = (c_text(f"{scalar}\n{_loop_text(function)}\n{_entry_text(function)}", note),)
    else:
        units = c_units(function, note, _entry_text(function))
    return CompiledFunction(
        function, Library.create(units, compiler, folder=folder), threads=threads
    )


def _loop_text(function: CFunction) -> str:
    """Return the C text of the kernel that counts failed samples, as a loop over single samples."""
    count = len(function.inputs)
    arguments = []
    for i, port in enumerate(function.arguments):
        step = f"steps[{i}]" if i < count else str(port.size)
        arguments.append(f"{port.name} + s * {step}")
    health = f"health[s * {HEALTH}"
    return f"""{batch_head(function, is_counted=True)}
{{
    size_t bad = 0;
    for (size_t s = 0; s < n; ++s) {{
        {function.name}({", ".join(arguments)});
        const int is_sound = {health}] >= 0.0 && {health} + 1] > {SMALLEST_PIVOT!r}
            && fabs({health} + 2]) < {CONVERGED!r} && {health} + 3] <= {float(FEW_STEPS)!r};
        bad += is_sound ? 0 : 1;
    }}
    return bad;
}}
"""


def _entry_text(function: CFunction) -> str:
    """Return the C text of the entries for calls from Python, which take a table of all arrays.

    `NAME_bound` computes one sample. `NAME_counted` computes a batch whose arrays advance by
    `steps` numbers per sample, and returns the number of samples that are out of reach, singular,
    or far from their start.
    """
    name, k = function.name, len(function.arguments)
    arrays = ", ".join(f"arrays[{i}]" for i in range(k))
    text = f"""void {name}_bound(double *const *arrays);
void {name}_bound(double *const *arrays)
{{
    {name}({arrays});
}}

{batch_head(function, is_counted=True)};
size_t {name}_counted(size_t n, double *const *arrays, const size_t *steps);
size_t {name}_counted(size_t n, double *const *arrays, const size_t *steps)
{{
    return {name}_batch(n, steps, {arrays});
}}
"""
    index = {port.name: i for i, port in enumerate(function.arguments)}
    has_continuation = index.keys() >= {"position", "start", "q"} and "velocity" not in index
    if not has_continuation:
        return text
    return text + _continuation_text(function, index)


def _continuation_text(function: CSignature, index: Mapping[str, int]) -> str:
    """Return the C text of the entry that follows straight lines to positions in k steps.

    Each step starts at the pose that the previous step reached. The entry reports the maximum
    number of iterations of a step. It may count a failed sample twice.
    """
    name, ports = function.name, len(function.arguments)
    to, start = index["position"], index["start"]
    x, q = function.arguments[to].size, function.arguments[start].size
    head = f"size_t {name}_walked(size_t n, double *const *arrays, const size_t *steps, const double *from, size_t k)"
    return f"""
{head};
{head}
{{
    size_t bad = 0;
    for (size_t first = 0; first < n; first += {CONTINUATION_BLOCK}) {{
        const size_t count = n - first < {CONTINUATION_BLOCK} ? n - first : {CONTINUATION_BLOCK};
        double waypoint[{CONTINUATION_BLOCK * x}];
        double pose[{CONTINUATION_BLOCK * q}];
        double most[{CONTINUATION_BLOCK}] = {{0.0}};
        double *block[{ports}];
        size_t step[{ports}];
        for (size_t i = 0; i < {ports}; ++i) {{
            block[i] = arrays[i] + first * steps[i];
            step[i] = steps[i];
        }}
        double *const to = block[{to}];
        double *const found = block[{index["q"]}];
        double *const health = block[{index["health"]}];
        for (size_t s = 0; s < count; ++s)
            for (size_t i = 0; i < {q}; ++i)
                pose[s * {q} + i] = block[{start}][s * steps[{start}] + i];
        block[{to}] = waypoint;
        step[{to}] = {x};
        block[{start}] = pose;
        step[{start}] = {q};
        for (size_t part = 1; part < k; ++part) {{
            const double share = (double)part * (1.0 / (double)k);
            for (size_t s = 0; s < count; ++s)
                for (size_t i = 0; i < {x}; ++i)
                    waypoint[s * {x} + i] = from[i] + share * (to[s * steps[{to}] + i] - from[i]);
            {name}_counted(count, block, step);
            for (size_t s = 0; s < count; ++s) {{
                const double *h = health + s * {HEALTH};
                most[s] = h[3] > most[s] ? h[3] : most[s];
                if (h[0] >= 0.0 && fabs(h[2]) < {CONVERGED!r})
                    for (size_t i = 0; i < {q}; ++i)
                        pose[s * {q} + i] = found[s * {q} + i];
            }}
        }}
        block[{to}] = to;
        step[{to}] = steps[{to}];
        bad += {name}_counted(count, block, step);
        for (size_t s = 0; s < count; ++s) {{
            double *h = health + s * {HEALTH};
            if (most[s] > h[3]) {{
                h[3] = most[s];
                if (most[s] > {FEW_STEPS})
                    ++bad;
            }}
        }}
    }}
    return bad;
}}
"""


def _readable(inputs: Mapping[str, np.ndarray], ports: Sequence[CPort], n: int) -> list[np.ndarray]:
    """Return inputs as arrays (N, n) with checked names and sizes; single rows become views."""
    problems, arrays = [], []
    for port in ports:
        try:
            array = real(inputs[port.name])
        except KeyError:
            problems.append(
                Problem(
                    where=port.name,
                    what="is missing",
                    remedy=f"give an array of shape ({n}, {port.size})",
                )
            )
        except (TypeError, ValueError, OverflowError) as error:
            remedy = f"give real numbers in an array of shape ({n}, {port.size})"
            problems.append(
                Problem(where=port.name, what=f"is not an array of numbers: {error}", remedy=remedy)
            )
        else:
            arrays.append(array)
            if array.shape != (n, port.size):
                what = f"has shape {array.shape}, needs ({n}, {port.size})"
                problems.append(
                    Problem(
                        where=port.name,
                        what=what,
                        remedy="give one row of values for each sample",
                    )
                )
    InputError.raise_if_any(problems)
    return [np.ascontiguousarray(array[:LANES]) if is_one_row(array) else array for array in arrays]


def _require_writable(out: Mapping[str, np.ndarray], sizes: Mapping[str, int], n: int) -> None:
    """Raise an error unless machine code, which checks nothing, can write to the arrays."""
    problems = Problems()
    for name, array in out.items():
        if name not in sizes:
            remedy = f"use one of {', '.join(sizes)}"
            problems.add(f"out.{name}", "is not an output", remedy)
        elif (
            array.shape != (n, sizes[name])
            or array.dtype != np.float64
            or not array.flags.c_contiguous
        ):
            what = f"is {array.dtype} {array.shape}, contiguous: {array.flags.c_contiguous}"
            remedy = f"give a contiguous float64 array ({n}, {sizes[name]})"
            problems.add(f"out.{name}", what, remedy)
        elif not array.flags.writeable:
            problems.add(f"out.{name}", "is read-only", "give a writable array")
    InputError.raise_if_any(problems)
