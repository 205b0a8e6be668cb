"""Folding of regressors on the device into triangular factors, which suffice for least squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.common.errors import InputError, PoseError
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.precision import Precision
from tauloop.compiler.limits import CONVERGED, SMALLEST_PIVOT
from tauloop.export.gpu.devices import Launch
from tauloop.export.gpu.evaluator import Cuda, DeviceInputs
from tauloop.export.gpu.source import arguments, device_text, parameters, sample_call, sample_text
from tauloop.identification import Condensed

if TYPE_CHECKING:
    from tauloop.compiler.c.printing.source import CFunction
    from tauloop.model import Model, Motion

#: Largest shared memory of a block, bytes. A multiprocessor with 227 KB then runs several blocks.
MAX_SHARED_BYTES = 72 * 1024
#: Maximum number of samples that a block folds at a time.
MAX_BLOCK_ROWS = 64
#: Minimum number of samples that a block folds at a time.
MIN_BLOCK_ROWS = 8
#: Number of chunks of samples, whose triangles are then folded in pairs. With three to six outputs
#: there are several blocks for each of 132 multiprocessors. The number changes results only by
#: rounding.
CHUNKS = 256


class RegressorFold:
    """A kernel that folds motions and measured forces of a machine without storing the regressor.

    Examples:
        >>> import numpy as np
        >>> import tauloop as tl
        >>> model = tl.Model(tl.load("five_bar"))
        >>> cuda = tl.export.gpu.Cuda(device=tl.export.gpu.Processor())
        >>> fold = tl.export.gpu.RegressorFold(model, model.platform, cuda)
        >>> x, rng = model.platform.ports.at(model.assembly.states), np.random.default_rng(1)
        >>> v, a, u = (rng.normal(size=(len(x), 2)) for _ in range(3))
        >>> fold(x, v, a, u).triangles.shape[1:] == (len(model.parameters) + 1,) * 2
        True
    """

    def __init__(self, model: Model, motion: Motion, cuda: Cuda, *, chunks: int = CHUNKS) -> None:
        """Compile the kernel, or load it from the cache.

        Args:
            model: the machine.
            motion: `model.platform` or `model.actuators`.
            cuda: the device and the cache; the kernel is always in double precision.
            chunks: number of chunks of samples, each of which is first folded separately.

        Raises:
            InputError: a triangle of the parameters does not fit into shared memory.
            EngineError: the kernel cannot be compiled or loaded; reports what is missing.
        """
        self.model, self.chunks, self.cuda = model, chunks, cuda
        self.function = motion.source_function("regressor_actuators", ("regressor",))
        self.columns = len(model.parameters) + 1
        self.outputs, self.output_units = model.output_ports("actuators")
        self.rows = _rows(self.columns)
        self.shared = 8 * _shared_numbers(self.columns, self.rows)
        self.text = _text(self.function, self.columns, self.rows, len(self.outputs))
        self._inputs = DeviceInputs(
            self.function, cuda.device, Precision.DOUBLE, motion.runner.nominal
        )
        inputs = "*" * len(self.function.inputs)
        self._fold = self._kernel("tl_rows", f"nnnn{inputs}***")
        self._join = self._kernel("tl_join", "nn*")

    def _kernel(self, name: str, letters: str) -> Launch:
        return self.cuda.device.kernel(self.text, name, letters, self.cuda.folder)

    def __call__(
        self, position: Any, velocity: Any, acceleration: Any, forces: Any, **held: Any
    ) -> Condensed:
        """Return the folded equations of N samples; see `tl.identification.condense_parts`.

        Args:
            position, velocity, acceleration: the motion (N, n), see `DeviceFunction`.
            forces: measured actuator forces (N, n_u), N or N m.
            held: `start`, `theta`, ... by name.

        Raises:
            InputError: names, shapes or types are wrong, or there are no samples.
            PoseError: samples are out of reach or singular. The message states which.
        """
        device, xp = self.cuda.device, self.cuda.device.arrays
        motion = {"position": position, "velocity": velocity, "acceleration": acceleration}
        n, row_bits, ready = self._inputs.read(motion | held)
        measured = device.columns("forces", forces, np.float64)
        if measured.shape != (n, len(self.outputs)) or not n:
            what = f"has shape {measured.shape}, needs ({n}, {len(self.outputs)}) with at least one sample"
            raise InputError.of("forces", what, "give one row of forces for each sample")
        chunks = min(self.chunks, -(-n // self.rows))
        length = -(-n // chunks // self.rows) * self.rows
        chunks = -(-n // length)
        count = chunks * len(self.outputs)
        triangles = xp.empty((count, self.columns, self.columns))
        diagnostics = xp.empty((count, 3))
        threads = 32 * -(-max(self.columns, self.rows) // 32)
        self._fold(
            count,
            threads,
            self.shared,
            (n, row_bits, chunks, length, *ready, measured, triangles, diagnostics),
        )
        self._require(device.numbers(diagnostics), length, n)
        distance = 1
        while distance < chunks:
            self._join(count, threads, self.shared, (chunks, distance, triangles))
            distance *= 2
        return Condensed(
            triangles=device.numbers(triangles[: len(self.outputs)]),
            samples=n,
            unknowns=tuple(parameter.name for parameter in self.model.parameters),
            unknown_units=tuple(parameter.unit for parameter in self.model.parameters),
            outputs=self.outputs,
        )

    def _require(self, diagnostics: np.ndarray, length: int, n: int) -> None:
        """Reject samples that are out of reach or singular, or whose forces are not finite.

        Raises:
            PoseError: a chunk has such samples. The message states the samples of the first chunk.
        """
        least, pivot, residual = diagnostics.T
        good = (least >= 0) & (pivot > SMALLEST_PIVOT) & (residual < CONVERGED)
        if not good.all():
            bad = int(np.argmin(good))
            first = bad // len(self.outputs) * length
            what = f"samples {first} to {min(first + length, n) - 1} of {n}: a pose is out of reach or singular, or a "
            what += f"number is not finite (discriminant {least[bad]:.3g}, pivot {pivot[bad]:.3g}, "
            what += f"residual {residual[bad]:.3g})"
            raise PoseError.of("motion", what, "evaluate these samples with `Model` for details")


def _shared_numbers(columns: int, rows: int) -> int:
    """Return the number of doubles in a block's shared memory."""
    return columns * (columns + 1) // 2 + rows * columns + 3 * rows + 6


def _rows(columns: int) -> int:
    """Return the number of samples that a block folds at a time."""
    rows = MAX_BLOCK_ROWS
    while rows >= MIN_BLOCK_ROWS and 8 * _shared_numbers(columns, rows) > MAX_SHARED_BYTES:
        rows //= 2
    if rows < MIN_BLOCK_ROWS:
        problem = (
            f"{columns - 1} are too many for the {MAX_SHARED_BYTES // 1024} KB that a block shares"
        )
        remedy = "fold on the host processor (`condense_parts`)"
        raise InputError.of("parameters", problem, remedy)
    return rows


def _text(function: CFunction, columns: int, rows: int, outputs: int) -> str:
    """Return the source of the kernels that fold samples and triangles."""
    own = ("regressor", "health")
    sizes = {"TL_COLUMNS": columns, "TL_ROWS": rows, "TL_MEASURED": outputs}
    body = [
        *(f"#define {name} {size}" for name, size in sizes.items()),
        c_file("tauloop.export.gpu", "fold.c"),
        sample_text(function, own),
        *_rows_kernel(function, own),
    ]
    return device_text("\n".join(body), "generated by Tauloop, do not edit")


def _rows_kernel(function: CFunction, own: Sequence[str]) -> list[str]:
    sizes = {each.port.name: each.port.size for each in arguments(function)}
    inputs = parameters(function, own, ("chunks", "length"))
    return [
        f"TL_KERNEL tl_rows({inputs}, const double *restrict forces,",
        "    double *restrict triangles, double *restrict evidence)",
        "{",
        "    (void)each;",
        "    TL_BLOCKS(b, chunks * TL_MEASURED) {",
        "        const size_t first = b / TL_MEASURED * length, end = first + length < n ? first + length : n;",
        "        const int k = (int)(b % TL_MEASURED);",
        "        TL_SHARED(room, TL_ROOM_OF_A_BLOCK)",
        "        double *R = room, *rows = R + TL_TRIANGLE, *mirrors = rows + TL_ROWS * TL_COLUMNS;",
        "        double *worst = mirrors + 6;",
        "        TL_THREADS(i, TL_TRIANGLE) R[i] = 0.0;",
        "        TL_THREADS(t, TL_ROWS) worst[3 * t] = 1.0, worst[3 * t + 1] = 1e300, worst[3 * t + 2] = 0.0;",
        "        TL_TOGETHER",
        "        for (size_t at = first; at < end; at += TL_ROWS) {",
        "            TL_THREADS(t, TL_ROWS) {",
        "                double *row = rows + t * TL_COLUMNS;",
        "                const size_t s = at + (size_t)t;",
        "                if (s < end) {",
        *(f"                    double {name}[{sizes[name]}];" for name in own),
        *(f"                    {line}" for line in sample_call(function, own)),
        "                    for (int i = 0; i + 1 < TL_COLUMNS; ++i) row[i] = regressor[k * (TL_COLUMNS - 1) + i];",
        "                    row[TL_COLUMNS - 1] = forces[(size_t)k * n + s];",
        "                    if (!(fabs(row[TL_COLUMNS - 1]) < 1e100)) health[0] = -1e300;",
        "                    tl_worse(worst + 3 * t, health);",
        "                } else",
        "                    for (int i = 0; i < TL_COLUMNS; ++i) row[i] = 0.0;",
        "            }",
        "            TL_TOGETHER",
        "            tl_fold(R, rows, mirrors);",
        "        }",
        "        TL_THREADS(j, TL_COLUMNS)",
        "            for (int i = 0; i < TL_COLUMNS; ++i)",
        "                triangles[(b * TL_COLUMNS + (size_t)j) * TL_COLUMNS + (size_t)i]"
        " = i < j ? 0.0 : R[TL_PLACE(j, i)];",
        "        TL_THREADS(t, 1) {",
        "            for (int i = 1; i < TL_ROWS; ++i) tl_worse(worst, worst + 3 * i);",
        "            for (int i = 0; i < 3; ++i) evidence[b * 3 + (size_t)i] = worst[i];",
        "        }",
        "        TL_TOGETHER",
        "    }",
        "}",
        "",
    ]
