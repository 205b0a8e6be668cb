"""Worst measures of many candidates over many poses, in compiled code with an early exit."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import Compiled, c_function
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.rows import RowKernel, row_kernel_letters
from tauloop.compiler.c.printing.source import block_text, c_text
from tauloop.compiler.limits import SMALLEST_PIVOT
from tauloop.design.synthesis.pose_measures import REACH, PoseMeasures

#: Number of poses per block; with AVX2's registers 8 and 16 are equally fast.
BLOCK = 8
#: Number of integer arguments of the kernel.
_N_INTEGERS = 1
#: Number of array arguments of the kernel.
_N_ARRAYS = 7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorstMeasures:
    """Worst measures of N candidates.

    Attributes:
        raw: largest raw measures (N, c); after an early exit, over the poses that were evaluated.
        poses: number of poses that were evaluated for each candidate (N,).
        is_sound: whether the measures of each candidate are valid: it is out of reach, or its
            kinematics were solved at all of these poses (N,).
    """

    raw: np.ndarray
    poses: np.ndarray
    is_sound: np.ndarray


class Population:
    """Measures of candidates, compiled by the evaluator of the machine.

    Each row of the kernel is a candidate; blocks of poses are in the vector lanes.
    """

    def __init__(self, measures: PoseMeasures, threads: int = 1) -> None:
        """Store the measures; the code is compiled on first use.

        Args:
            measures: measures of a pose.
            threads: number of threads; results do not depend on it.
        """
        self.measures = measures
        self._threads = threads

    def __call__(
        self,
        theta: np.ndarray,
        shift: np.ndarray,
        poses: np.ndarray,
        caps: np.ndarray | None = None,
    ) -> WorstMeasures:
        """Return the worst measures of candidates.

        Args:
            theta: parameters (N, t).
            shift: displacement of all poses (N, p).
            poses: positions of the platform (P, p), the farthest from the center of the box first.
            caps: raw measures (c,) beyond which a candidate is abandoned; None to evaluate all poses.
        """
        n = len(theta)
        columns = self.measures.columns
        padding = -len(poses) % BLOCK
        padded = np.concatenate([poses, np.repeat(poses[-1:], padding, axis=0)])
        limits = np.full(len(columns), np.inf) if caps is None else caps
        nominal = self.measures.model.platform.runner.nominal
        arrays = (theta, shift, padded.T, nominal["start"], limits)
        raw, counts = self._kernel(n, (len(padded),), arrays, ((len(columns), n), (2, n)))
        is_reach = np.array([column.kind == REACH for column in columns], dtype=bool)
        is_out_of_reach = (raw[is_reach] > 0.0).any(axis=0)
        return WorstMeasures(
            raw=raw.T,
            poses=np.minimum(counts[0], len(poses)),
            is_sound=is_out_of_reach | (counts[1] == 0.0),
        )

    @cached_property
    def _kernel(self) -> RowKernel:
        """The compiled kernel."""
        evaluator = self.measures.model.evaluator
        if isinstance(evaluator, Compiled):
            evaluator = replace(evaluator, threads=self._threads)
        letters = row_kernel_letters(_N_INTEGERS, _N_ARRAYS)
        return evaluator.rows(self.text, "tl_population", letters, evaluations=math.inf)

    @cached_property
    def text(self) -> str:
        """C source of the kernel."""
        runner = self.measures.model.platform.runner
        function = c_function(self.measures.program, runner.empty_inputs(), ("measures",))
        sizes = {port.name: port.size for port in function.arguments}
        argument_of_port = {
            "position": "position",
            "theta": "theta",
            "start": "start",
            "measures": "measured",
            "health": "health",
        }
        arguments = ", ".join(argument_of_port[port.name] for port in function.arguments)
        block = "double (*restrict {})[TL_LANES]"
        inputs = ", ".join(f"const {block.format(name)}" for name in ("position", "theta", "start"))
        body = [
            f"#define TL_THETA {len(self.measures.names)}",
            f"#define TL_POSITIONS {runner.ports.position.size}",
            f"#define TL_START {runner.topology.n_q}",
            f"#define TL_MEASURES {sizes['measures']}",
            f"#define TL_SMALLEST_PIVOT {SMALLEST_PIVOT!r}",
            block_text(function),
            f"static void tl_measured({inputs}, {block.format('measured')}, {block.format('health')})",
            "{",
            "    (void)position, (void)theta, (void)start;",
            f"    {function.name}_block({arguments});",
            "}",
            "",
            c_file("tauloop.design.synthesis", "population.c"),
        ]
        note = f"worst measures of candidates of {self.measures.model.mechanism.name}"
        return c_text("\n".join(body), note, samples=(BLOCK, BLOCK))
