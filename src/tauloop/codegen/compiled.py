"""Compiled functions in Python: the same ports, called on batches or bound to fixed arrays for single calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from tauloop.assembly.ports import real
from tauloop.codegen.caller import Call, bound_call
from tauloop.codegen.compiler import Compiler
from tauloop.codegen.library import Library
from tauloop.codegen.signature import HEALTH, CPort, CSignature
from tauloop.errors import InputError, Problem, Problems

if TYPE_CHECKING:
    from tauloop.codegen.source import CFunction


class CompiledFunction:
    """A program as machine code."""

    def __init__(
        self,
        function: CSignature,
        library: Library,
        nominal: Mapping[str, np.ndarray] = MappingProxyType({}),
        threads: bool = False,
    ) -> None:
        """Take machine code that is there (see `compile_function`, `tauloop.load_function`).

        Args:
            function: how it is called.
            library: that holds it.
            nominal: what ports of bound calls hold at first; zeros without it.
            threads: whether batches are shared out over threads.
        """
        self.function = function
        self.library, self._library = library.path, library
        self.nominal = nominal
        self._threads = threads
        self._batch = library.function(f"{function.name}_batch", "n" + "*" * len(function.arguments))

    def __call__(
        self, inputs: Mapping[str, np.ndarray], n: int, out: Mapping[str, np.ndarray] | None = None
    ) -> dict[str, np.ndarray]:
        """Outputs (N, n) by port, `health` among them.

        Args:
            inputs: float arrays (N, n) by port. Their numbers are not checked: `health` says where some are no
                finite numbers.
            n: number of samples N.
            out: arrays to write into, by port, such as slices of a long result when a motion streams through in chunks;
                contiguous floats (N, n). Ports that are not named get new arrays.

        Raises:
            InputError: an input is missing, complex or masked or has another shape; or an array of `out` has another
                name, shape, type or layout.
        """
        arrays = _readable(inputs, self.function.inputs, n)
        sizes = {port.name: port.size for port in self.function.outputs} | {"health": HEALTH}
        given = dict(out or {})
        _require_writable(given, sizes, n)
        outputs = {name: given[name] if name in given else np.empty((n, size)) for name, size in sizes.items()}
        if self._threads:
            self._library.one_thread_after_fork()
        self._batch(n, *arrays, *outputs.values())
        return outputs

    def bind(self) -> tuple[Mapping[str, np.ndarray], Call]:
        """Arrays by port and a call that reads and writes them: for control loops.

        The arrays are filled in place; they live as long as the call does. Those of the inputs lie behind one another
        in the array `inputs`, those of the outputs in `outputs`. `call(state)` with contiguous float64 numbers puts
        these at the front of `inputs` first.
        """
        sides = {"inputs": self.function.inputs, "outputs": self.function.arguments[len(self.function.inputs) :]}
        whole = {name: np.zeros(sum(port.size for port in ports)) for name, ports in sides.items()}
        arrays = {port.name: part for name, ports in sides.items() for port, part in _parts(ports, whole[name])}
        for name in self.nominal.keys() & arrays.keys():
            arrays[name][:] = self.nominal[name]
        call = bound_call(self.library, f"{self.function.name}_bound", list(arrays.values()), whole["inputs"])
        return MappingProxyType(arrays | whole), call


def _parts(ports: Sequence[CPort], whole: np.ndarray) -> Iterator[tuple[CPort, np.ndarray]]:
    """Ports with their parts of an array, one behind the other."""
    first = 0
    for port in ports:
        yield port, whole[first : first + port.size]
        first += port.size


def compile_function(
    function: CFunction, compiler: Compiler | None = None, *, threads: bool = False, folder: Path | None = None
) -> CompiledFunction:
    """Compile a function (or find it in the cache) and load it.

    Raises:
        EngineError: the library cannot be made.
    """
    from tauloop.codegen.source import c_units  # and CasADi, which a function out of the cache does not need

    units = c_units(function, f"{function.name}: made by Tauloop, do not edit", _bound_text(function))
    return CompiledFunction(function, Library.made(units, compiler, threads=threads, folder=folder), threads=threads)


def _bound_text(function: CFunction) -> str:
    """C text of the entry for bound calls: all arrays through one pointer, so that a call converts nothing."""
    name = f"{function.name}_bound"
    arrays = ", ".join(f"arrays[{i}]" for i in range(len(function.arguments)))
    head = f"void {name}(double *const *arrays)"
    return f"{head};\n{head}\n{{\n    {function.name}({arrays});\n}}\n"


def _readable(inputs: Mapping[str, np.ndarray], ports: Sequence[CPort], n: int) -> list[np.ndarray]:
    """Inputs as contiguous arrays (N, n), whose names and sizes machine code trusts."""
    problems, arrays = [], []
    for port in ports:
        try:
            array = np.ascontiguousarray(real(inputs[port.name]))
        except KeyError:
            problems.append(Problem(where=port.name, what="is missing", remedy=f"give an array ({n}, {port.size})"))
        except (TypeError, ValueError, OverflowError) as error:
            remedy = f"give real numbers in an array ({n}, {port.size})"
            problems.append(Problem(where=port.name, what=f"is not an array of numbers: {error}", remedy=remedy))
        else:
            arrays.append(array)
            if array.shape != (n, port.size):
                what = f"has shape {array.shape}, needs ({n}, {port.size})"
                problems.append(Problem(where=port.name, what=what, remedy="one row of numbers for each sample"))
    InputError.raise_if_any(problems)
    return arrays


def _require_writable(out: Mapping[str, np.ndarray], sizes: Mapping[str, int], n: int) -> None:
    """Refuse arrays that machine code must not write to: it trusts their names, sizes and layout."""
    problems = Problems()
    for name, array in out.items():
        if name not in sizes:
            remedy = f"outputs are: {', '.join(sizes)}"
            problems.add(f"out.{name}", "is no output", remedy)
        elif array.shape != (n, sizes[name]) or array.dtype != np.float64 or not array.flags.c_contiguous:
            what = f"is {array.dtype} {array.shape}, contiguous: {array.flags.c_contiguous}"
            remedy = f"give a contiguous float64 array ({n}, {sizes[name]})"
            problems.add(f"out.{name}", what, remedy)
        elif not array.flags.writeable:
            problems.add(f"out.{name}", "is read-only", "give an array of your own")
    InputError.raise_if_any(problems)
