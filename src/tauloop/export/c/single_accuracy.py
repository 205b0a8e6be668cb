"""How well single precision does: the exported floats against the doubles, over states all over the workspace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.compiler.c.calling.compiler import build
from tauloop.compiler.c.calling.library import Library, require_compiler
from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.printing.single import CONVERGED, SMALLEST_PIVOT
from tauloop.compiler.c.printing.source import CFunction, c_source
from tauloop.compiler.state import solve_diagnostics

#: Largest share of an error in the largest amount that is good enough: of lengths, angles and pure
#: numbers 10 um in a metre, of all else a thousandth, below what friction and inertias are known
#: to.
ENOUGH = {"m": 1e-5, "rad": 1e-5, "1": 1e-5}
ENOUGH_ELSE = 1e-3
#: Amounts below this count as none.
NOTHING = 1e-9
#: Contractions that compilers may do: none, or a product and a sum rounded once.
UNFUSED, FUSED = "off", "fast"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputAccuracy:
    """Largest error of the numbers of one unit in an output.

    Attributes:
        function, output, unit: which.
        largest: largest amount of the doubles.
        error: largest error of the floats, where products and sums are rounded apart.
        fused_error: likewise, where the exporting computer's compiler rounds them once.
        column: whose error it is.
        pose: the inputs' positions there, by name (SI).
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
        """The larger of both errors, of the largest amount."""
        return max(self.error, self.fused_error) / max(self.largest, NOTHING)

    @property
    def enough(self) -> float:
        """Up to which share it is good enough."""
        return ENOUGH.get(self.unit, ENOUGH_ELSE)

    @property
    def diagnostic(self) -> Diagnostic:
        """The share with its limit, and what to do beyond it."""
        where = ", ".join(f"{name} {value:.4g}" for name, value in self.pose.items())
        return diagnostic(
            f"{self.function}: largest error of {self.output} [{self.unit}], of {self.largest:.3g} ({where})",
            self.share,
            at_most=self.enough,
            advice="single precision is not good enough: export --precision double (a Cortex-M7 has it in hardware), "
            "leave this output out (--outputs), or keep to a smaller workspace by limits in the machine file",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleAccuracy:
    """Accuracy of all exported functions.

    Attributes:
        states: how many regular states were compared.
        refused: how many of them the floats' own health refuses.
        outputs: one for each unit of each output.
    """

    states: int
    refused: int
    outputs: tuple[OutputAccuracy, ...]


def single_accuracy(
    functions: Sequence[CFunction], samples: Mapping[str, np.ndarray]
) -> SingleAccuracy:
    """Errors of the floats of exported functions, at inputs that are floats themselves.

    Args:
        functions: as they are exported in single precision.
        samples: inputs of all functions by port (N, size): numbers that floats can hold.

    Raises:
        EngineError: there is no C compiler, or it fails.
    """
    rows: list[OutputAccuracy] = []
    regular = refused = 0
    n, inputs = (
        len(samples["position"]),
        {name: np.ascontiguousarray(array) for name, array in samples.items()},
    )
    for function in functions:
        exact, diagnostics = function.program.run(inputs, n)
        state = solve_diagnostics(function.program, diagnostics)
        good = state.is_reached & state.is_regular & state.is_within
        runs = [run_in_floats(function, inputs, n, contraction) for contraction in (UNFUSED, FUSED)]
        figures = runs[0]["health"]
        healthy = (
            (figures[:, 0] >= 0) & (figures[:, 1] > SMALLEST_PIVOT) & (figures[:, 2] < CONVERGED)
        )
        regular, refused = max(regular, int(good.sum())), refused + int((good & ~healthy).sum())
        kept = np.flatnonzero(good & healthy)
        rows += _rows(function, inputs, exact, runs, kept) if len(kept) else ()
    return SingleAccuracy(states=regular, refused=refused, outputs=tuple(rows))


def _rows(
    function: CFunction,
    inputs: Mapping[str, np.ndarray],
    exact: Mapping[str, np.ndarray],
    runs: Sequence[Mapping[str, np.ndarray]],
    kept: np.ndarray,
) -> Iterator[OutputAccuracy]:
    """One for each unit of each output, at the states that are kept."""
    for port in function.outputs:
        amounts = np.asarray(exact[port.name])[kept]
        errors, fused = (np.abs(run[port.name][kept] - amounts) for run in runs)
        for unit in dict.fromkeys(port.units):
            columns = [i for i, of in enumerate(port.units) if of == unit]
            worst, column = np.unravel_index(errors[:, columns].argmax(), (len(kept), len(columns)))
            yield OutputAccuracy(
                function=function.name,
                output=port.name,
                unit=unit,
                largest=float(np.abs(amounts[:, columns]).max()),
                error=float(errors[worst, columns[column]]),
                fused_error=float(fused[:, columns].max()),
                column=port.columns[columns[column]],
                pose=_pose(function.inputs, inputs, int(kept[worst])),
            )


def _pose(
    ports: Sequence[CPort], inputs: Mapping[str, np.ndarray], sample: int
) -> dict[str, float]:
    """Positions that go in, by name."""
    (port,) = (port for port in ports if port.name == "position")
    return dict(zip(port.columns, inputs["position"][sample].tolist(), strict=True))


def run_in_floats(
    function: CFunction, inputs: Mapping[str, np.ndarray], n: int, contraction: str
) -> dict[str, np.ndarray]:
    """Outputs and health of n samples, computed by the exported floats on this computer.

    Args:
        function: as it is exported.
        inputs: by port (N, size).
        n: number of samples.
        contraction: `UNFUSED` or `FUSED`.

    Raises:
        EngineError: there is no C compiler, or it fails.
    """
    parameters = ", ".join(
        f"{'const ' * (port in function.inputs)}double *{port.name}" for port in function.arguments
    )
    rows = ", ".join(f"{port.name} + s * {port.size}" for port in function.arguments)
    over = f"void over(size_t n, {parameters})\n{{\n    for (size_t s = 0; s < n; ++s) {function.name}({rows});\n}}\n"
    source = c_source([function], "floats over samples", single=True, further=over)
    library = Library(build(source, require_compiler(), further=(f"-ffp-contract={contraction}",)))
    results = {
        port.name: np.zeros((n, port.size), np.float32)
        for port in function.arguments
        if port not in function.inputs
    }
    arrays = [np.ascontiguousarray(inputs[port.name], np.float32) for port in function.inputs]
    library.function("over", "n" + "*" * len(function.arguments))(n, *arrays, *results.values())
    return {name: array.astype(float) for name, array in results.items()}
