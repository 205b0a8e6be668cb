"""Accuracy of exported single-precision functions, compared with double precision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.compiler.c.calling.compiler import build_without_cache
from tauloop.compiler.c.calling.library import Library, require_compiler
from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.printing.single import CONVERGED, SMALLEST_PIVOT
from tauloop.compiler.c.printing.source import CFunction, c_source
from tauloop.compiler.state import solve_diagnostics

#: Largest accepted relative error of lengths, angles and dimensionless numbers: 10 um in a meter.
RELATIVE_ERROR_LIMITS = {"m": 1e-5, "rad": 1e-5, "1": 1e-5}
#: Largest accepted relative error for other units, below the uncertainty of friction and inertias.
OTHER_RELATIVE_ERROR_LIMIT = 1e-3
#: If all values are smaller than this, the error is divided by this level.
ZERO_LEVEL = 1e-9
#: Compiler option for floating-point contraction: every product and every sum is rounded.
UNFUSED = "off"
#: Compiler option for floating-point contraction: a product and a sum may be rounded once.
FUSED = "fast"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputAccuracy:
    """Largest error of those numbers of an output that have the same unit.

    Attributes:
        function: name of the function.
        output: name of its output.
        unit: unit of the numbers, and of `largest`, `error` and `fused_error`.
        largest: largest absolute value in double precision.
        error: largest error in single precision without fused operations.
        fused_error: largest error in single precision with fused operations, by this computer's
            compiler.
        column: name of the number with the largest error.
        pose: positions at the largest error, by name (SI).
    """

    function: str
    output: str
    unit: str
    largest: float
    error: float
    fused_error: float
    column: str
    pose: Mapping[str, float]

    @property
    def share(self) -> float:
        """Relative error: the larger of both errors divided by the largest absolute value."""
        return max(self.error, self.fused_error) / max(self.largest, ZERO_LEVEL)

    @property
    def enough(self) -> float:
        """Limit of the relative error."""
        return RELATIVE_ERROR_LIMITS.get(self.unit, OTHER_RELATIVE_ERROR_LIMIT)

    @property
    def diagnostic(self) -> Diagnostic:
        """Return the relative error with its limit, and a remedy."""
        where = ", ".join(f"{name} {value:.4g}" for name, value in self.pose.items())
        return diagnostic(
            f"{self.function}: largest error of {self.output} as a fraction of its largest value, "
            f"{self.largest:.3g} {self.unit} ({where})",
            self.share,
            at_most=self.enough,
            advice="single precision is not accurate enough: export --precision double "
            "(many Cortex-M7s have a double-precision FPU), leave this output out (--outputs), or "
            "restrict the workspace with limits in the machine file",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleAccuracy:
    """Accuracy of all exported functions.

    Attributes:
        states: number of regular states in double precision; the largest number of a function.
        refused: number of regular states that the diagnostics in single precision reject, summed
            over the functions.
        outputs: accuracy of each unit of each output.
    """

    states: int
    refused: int
    outputs: tuple[OutputAccuracy, ...]


def single_accuracy(
    functions: Sequence[CFunction], samples: Mapping[str, np.ndarray]
) -> SingleAccuracy:
    """Return the errors of exported functions in single precision.

    Args:
        functions: the functions as exported in single precision.
        samples: inputs of all functions by port (N, size), exactly representable in single
            precision.

    Raises:
        EngineError: no C compiler was found, or it fails.
    """
    rows: list[OutputAccuracy] = []
    n_regular = 0
    n_rejected = 0
    n = len(samples["position"])
    inputs = {name: np.ascontiguousarray(array) for name, array in samples.items()}
    for function in functions:
        exact, diagnostics = function.program.run(inputs, n)
        state = solve_diagnostics(function.program, diagnostics)
        is_regular = state.is_reached & state.is_regular & state.is_within
        runs = [run_in_floats(function, inputs, n, contraction) for contraction in (UNFUSED, FUSED)]
        discriminant, pivot, residual, _ = runs[0]["health"].T
        is_accepted = (discriminant >= 0) & (pivot > SMALLEST_PIVOT) & (residual < CONVERGED)
        n_regular = max(n_regular, int(is_regular.sum()))
        n_rejected += int((is_regular & ~is_accepted).sum())
        compared = np.flatnonzero(is_regular & is_accepted)
        if len(compared):
            rows += _output_accuracies(function, inputs, exact, runs, compared)
    return SingleAccuracy(states=n_regular, refused=n_rejected, outputs=tuple(rows))


def _output_accuracies(
    function: CFunction,
    inputs: Mapping[str, np.ndarray],
    exact: Mapping[str, np.ndarray],
    runs: Sequence[Mapping[str, np.ndarray]],
    compared: np.ndarray,
) -> Iterator[OutputAccuracy]:
    """Yield the accuracy of each unit of each output at the compared states."""
    for port in function.outputs:
        values = np.asarray(exact[port.name])[compared]
        errors, fused_errors = (np.abs(run[port.name][compared] - values) for run in runs)
        for unit in dict.fromkeys(port.units):
            columns = [i for i, column_unit in enumerate(port.units) if column_unit == unit]
            shape = (len(compared), len(columns))
            worst, column = np.unravel_index(errors[:, columns].argmax(), shape)
            yield OutputAccuracy(
                function=function.name,
                output=port.name,
                unit=unit,
                largest=float(np.abs(values[:, columns]).max()),
                error=float(errors[worst, columns[column]]),
                fused_error=float(fused_errors[:, columns].max()),
                column=port.columns[columns[column]],
                pose=_pose(function.inputs, inputs, int(compared[worst])),
            )


def _pose(
    ports: Sequence[CPort], inputs: Mapping[str, np.ndarray], sample: int
) -> dict[str, float]:
    """Return the input positions of a sample, by name."""
    (port,) = (port for port in ports if port.name == "position")
    return dict(zip(port.columns, inputs["position"][sample].tolist(), strict=True))


def run_in_floats(
    function: CFunction, inputs: Mapping[str, np.ndarray], n: int, contraction: str
) -> dict[str, np.ndarray]:
    """Return outputs and diagnostics of n samples, computed in single precision on this computer.

    Args:
        function: the function as exported.
        inputs: inputs by port (N, size).
        n: number of samples.
        contraction: `UNFUSED` or `FUSED`.

    Raises:
        EngineError: there is no C compiler, or it fails.
    """
    parameters = ", ".join(
        f"{'const ' if port in function.inputs else ''}double *{port.name}"
        for port in function.arguments
    )
    rows = ", ".join(f"{port.name} + s * {port.size}" for port in function.arguments)
    loop = f"void over(size_t n, {parameters})\n{{\n"
    loop += f"    for (size_t s = 0; s < n; ++s) {function.name}({rows});\n}}\n"
    source = c_source([function], "floats over samples", single=True, further=loop)
    library = Library(
        build_without_cache(source, require_compiler(), further=(f"-ffp-contract={contraction}",))
    )
    results = {
        port.name: np.zeros((n, port.size), np.float32)
        for port in function.arguments
        if port not in function.inputs
    }
    arrays = [np.ascontiguousarray(inputs[port.name], np.float32) for port in function.inputs]
    library.function("over", "n" + "*" * len(function.arguments))(n, *arrays, *results.values())
    return {name: array.astype(float) for name, array in results.items()}
