"""Kinematics along a sampled motion in machine code; every sample starts from an extrapolation.

Consecutive samples are close together. Newton's method from the extrapolation of four samples
converges in one or two steps and stays in the initial assembly mode. A long motion is divided into
one segment per lane of the batch kernel, and all lanes advance through their segments together.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tauloop.common.errors import AssemblyError
from tauloop.compiler.c.calling.compiler import Compiler
from tauloop.compiler.c.calling.embedded import EmbeddedCompiler
from tauloop.compiler.c.calling.library import Library
from tauloop.compiler.c.calling.signature import HEALTH
from tauloop.compiler.c.printing.batch_source import LANES
from tauloop.compiler.c.printing.source import CFunction, block_text, c_text, scalar_text

#: Newton's loop ends after a step shorter than this (characteristic lengths, rad or dimensionless).
#: The error is then about the square of the step, a rounding error. The residual is computed
#: separately after the step.
TRACKING_STEP_TOLERANCE = 3e-8
#: Minimum number of samples of a motion that is divided into segments. The interpreter computes the
#: starts of the segments.
LONG_MOTION = 20_000
#: Largest accepted distance between the end of a segment and the start of the next one,
#: characteristic lengths, rad or dimensionless.
SEAM = 1e-8


def track_source(function: CFunction, lanes: int) -> str:
    """Return the C text of the loop over samples, for a function of position and start.

    q is among the function's outputs. The extrapolation is q + d1 + d2 + d3 with the backward
    differences d of the last four samples, which is a polynomial of third degree (lower for the
    first samples). Every lane continues to the first sample of the next segment.
    """
    position = next(port for port in function.inputs if port.name == "position").size
    n = next(port for port in function.outputs if port.name == "q").size
    theta = next((port.size for port in function.inputs if port.name == "theta"), 0)
    axis = "" if lanes == 1 else f"[{lanes}]"
    at = "" if lanes == 1 else "[l]"
    loop = f"for (size_t l = 0; l < {lanes}; ++l)"
    call = {
        "position": "given" if lanes == 1 else "(const double (*)[TL_LANES])given",
        "start": "guess" if lanes == 1 else "(const double (*)[TL_LANES])guess",
        "theta": "theta" if lanes == 1 else "(const double (*)[TL_LANES])parameters",
    }
    arguments = ", ".join([*(call[port.name] for port in function.inputs), "found", "evidence"])
    spread = [f"    double parameters[{max(theta, 1)}]{axis};"] if lanes > 1 else []
    if lanes > 1 and theta:
        spread.append(
            f"    {loop} for (size_t i = 0; i < {theta}; ++i) parameters[i]{at} = theta[i];"
        )
    elif lanes > 1:
        spread.append("    (void)parameters;")
    return "\n".join(
        [
            "void track(size_t n, size_t part, const double *position, const double *start, const double *theta,",
            "    double *q, double *health, double *seam);",
            "void track(size_t n, size_t part, const double *position, const double *start, const double *theta,",
            "    double *q, double *health, double *seam)",
            "{",
            f"    double given[{position}]{axis}, guess[{n}]{axis}, found[{n}]{axis}, evidence[{HEALTH}]{axis};",
            f"    double last[{n}]{axis}, d1[{n}]{axis}, d2[{n}]{axis}, d3[{n}]{axis};",
            *spread,
            "    (void)theta;",
            f"    for (size_t i = 0; i < {n}; ++i) {loop} {{",
            f"        guess[i]{at} = start[l * {n} + i];",
            f"        last[i]{at} = d1[i]{at} = d2[i]{at} = d3[i]{at} = 0.0;",
            "    }",
            "    for (size_t s = 0; s <= part; ++s) {",
            "        const double one = s > 0 ? 1.0 : 0.0, two = s > 1 ? 1.0 : 0.0, three = s > 2 ? 1.0 : 0.0;",
            f"        {loop} {{",
            "            const size_t k = l * part + s < n ? l * part + s : n - 1;",
            f"            for (size_t i = 0; i < {position}; ++i) given[i]{at} = position[k * {position} + i];",
            "        }",
            f"        {function.name}{'' if lanes == 1 else '_block'}({arguments});",
            f"        for (size_t i = 0; i < {n}; ++i) {loop} {{",
            f"            const double x = found[i]{at}, e1 = one * (x - last[i]{at});",
            f"            const double e2 = two * (e1 - d1[i]{at}), e3 = three * (e2 - d2[i]{at});",
            f"            last[i]{at} = x;",
            f"            d1[i]{at} = e1;",
            f"            d2[i]{at} = e2;",
            f"            d3[i]{at} = e3;",
            f"            guess[i]{at} = x + e1 + e2 + e3;",
            "        }",
            f"        {loop} {{",
            "            const size_t k = l * part + s;",
            f"            if (s == part) for (size_t i = 0; i < {n}; ++i) seam[l * {n} + i] = found[i]{at};",
            "            if (s == part || k >= n) continue;",
            f"            for (size_t i = 0; i < {n}; ++i) q[k * {n} + i] = found[i]{at};",
            f"            for (size_t i = 0; i < {HEALTH}; ++i) health[k * {HEALTH} + i] = evidence[i]{at};",
            "        }",
            "    }",
            "}",
            "",
        ]
    )


class Tracker:
    """Machine code that follows a motion, in one segment or one segment per lane."""

    def __init__(
        self,
        function: CFunction,
        folder: Path | None = None,
        *,
        in_lanes: bool = False,
        compiler: Compiler | EmbeddedCompiler | None = None,
    ) -> None:
        """Compile the code, unless it is in the cache.

        Raises:
            EngineError: the library cannot be built.
        """
        self.parts = LANES if in_lanes else 1
        function = replace(function, last_step=TRACKING_STEP_TOLERANCE)
        text = block_text(function) if in_lanes else scalar_text(function)
        source = c_text(
            f"{text}\n{track_source(function, self.parts)}",
            f"{function.name}: generated by Tauloop, do not edit",
        )
        self._n = next(port for port in function.outputs if port.name == "q").size
        self._track = Library.create(source, compiler, folder=folder).function("track", "nn******")

    def starts(self, n: int) -> np.ndarray:
        """Return the indices of the first samples of all segments of a motion of n samples."""
        return np.minimum(np.arange(self.parts) * self._length(n), n - 1)

    def _length(self, n: int) -> int:
        return -(-n // self.parts)

    def __call__(
        self, position: np.ndarray, start: np.ndarray, theta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return coordinates (N, n_q), health (N, 4), and largest jumps between segments (n_q,).

        A jump is the difference of a coordinate between the end of a segment, computed from the
        segment itself, and the start of the next segment; m or rad.

        All arrays must be contiguous and already checked.

        Args:
            position: given positions (N, n).
            start: coordinates (segments, n_q) at the samples `starts`.
            theta: free parameters (n_free,).
        """
        n = len(position)
        q = np.empty((n, self._n))
        health = np.empty((n, HEALTH))
        seam = np.empty((self.parts, self._n))
        arrays = (position, start, theta, q, health, seam)
        self._track(n, self._length(n), *arrays)
        first = self.starts(n)[1:]
        gap = np.abs(seam[:-1] - q[first])[np.diff(self.starts(n)) == self._length(n)]
        return q, health, gap.max(axis=0, initial=0.0)


#: Ratio of a step to the 99th percentile of all steps above which the step is a jump. The step of a
#: sample is the largest one of its coordinates.
JUMP = 50.0


def require_continuity(
    q: np.ndarray, names: tuple[str, ...], scale: np.ndarray, is_angle: np.ndarray
) -> None:
    """Raise an error if a tracked motion jumps because it has left its assembly mode.

    Args:
        q: coordinates (N, n_q).
        names: names of the coordinates.
        scale: unit displacement (n_q,) of every coordinate, m or rad.
        is_angle: whether each coordinate is an angle (n_q,), which may jump by full revolutions.

    Raises:
        AssemblyError: the motion jumps; the message states the sample and the size of the jump.
    """
    if len(q) < 3:
        return
    steps = np.zeros(len(q) - 1)
    sample, coordinate, largest = 0, 0, -1.0
    for k, values in enumerate(q.T):  # one at a time to save memory
        coordinate_steps = _steps(values, bool(is_angle[k])) / scale[k]
        if coordinate_steps.max() > largest:
            coordinate, largest = k, float(coordinate_steps.max())
            sample = int(coordinate_steps.argmax())
        np.maximum(steps, coordinate_steps, out=steps)
    percentile = np.quantile(steps, 0.99)
    if largest > JUMP * percentile and largest > 0.1:
        unit = "rad" if is_angle[coordinate] else "m"
        what = (
            f"track is lost: it jumps by {largest * scale[coordinate]:.3g} {unit} from sample "
            f"{sample} to {sample + 1} of {len(q)}, "
            f"{largest / max(percentile, 1e-300):.0f} times the 99th percentile of the steps"
        )
        remedy = (
            "the motion passes a singularity or has a gap there; split the motion, or sample it "
            "more densely"
        )
        raise AssemblyError.of(names[coordinate], what, remedy)


def _steps(values: np.ndarray, is_angle: bool) -> np.ndarray:
    """Return the absolute steps (N - 1,) of a coordinate, without full revolutions of an angle."""
    steps = np.abs(np.diff(values))
    if is_angle:
        wrapped = np.flatnonzero(steps > np.pi)
        steps[wrapped] = np.abs((steps[wrapped] + np.pi) % (2 * np.pi) - np.pi)
    return steps
