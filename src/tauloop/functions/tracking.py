"""Kinematics followed along a sampled motion in machine code: every sample starts from where the last ones lead.

Consecutive samples lie close together, so that Newton's method from the linear extrapolation of two samples arrives in
two or three steps, and stays on the assembly mode on which the motion began.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from tauloop.errors import AssemblyError, Problem
from tauloop.functions.compiled import loaded
from tauloop.functions.compiler import Compiler
from tauloop.functions.source import HEALTH, CFunction, c_source


def track_source(function: CFunction) -> str:
    """C text of the loop over samples, for a function of position and start with q among its outputs."""
    position = next(port for port in function.inputs if port.name == "position")
    n = next(port for port in function.outputs if port.name == "q").size
    call = {"position": f"position + s * {position.size}", "start": "guess", "theta": "theta"}
    arguments = ", ".join([*(call[port.name] for port in function.inputs), f"q + s * {n}", f"health + s * {HEALTH}"])
    return "\n".join(
        [
            f"void {function.name}_track(size_t n, const double *position, const double *start, const double *theta,",
            "    double *q, double *health)",
            "{",
            f"    double guess[{n}];",
            "    (void)theta;",
            "    for (size_t s = 0; s < n; ++s) {",
            f"        for (size_t i = 0; i < {n}; ++i) {{",
            "            guess[i] = s == 0 ? start[i]",
            f"                : s == 1 ? q[i] : 2.0 * q[(s - 1) * {n} + i] - q[(s - 2) * {n} + i];",
            "        }",
            f"        {function.name}({arguments});",
            "    }",
            "}",
            "",
        ]
    )


class Tracker:
    """Machine code that follows a motion."""

    def __init__(self, function: CFunction, compiler: Compiler, folder: Path | None = None) -> None:
        """Compile, or find in the cache.

        Raises:
            EngineError: the library cannot be made.
        """
        note = f"{function.name}: made by Tauloop, do not edit"
        source = c_source([function], note, with_batch=False) + track_source(function)
        _, library = loaded(source, compiler, False, folder)
        self._n = next(port for port in function.outputs if port.name == "q").size
        self._track = getattr(library, f"{function.name}_track")
        self._track.argtypes = [ctypes.c_size_t, *[ctypes.c_void_p] * 5]
        self._track.restype = None

    def __call__(self, position: np.ndarray, start: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates (N, n_q) and health (N, 4) along positions (N, n); all contiguous, already checked."""
        q, health = np.empty((len(position), self._n)), np.empty((len(position), HEALTH))
        arrays = (position, start, theta, q, health)
        self._track(len(position), *(array.ctypes.data for array in arrays))
        return q, health


#: A step of a coordinate this many times longer than the longest usual one (the 99th percentile) is a jump.
JUMP = 50.0


def require_continuity(q: np.ndarray, names: tuple[str, ...], scale: np.ndarray, is_angle: np.ndarray) -> None:
    """Raise where a tracked motion jumps, which means that it has left its assembly mode.

    Args:
        q: coordinates (N, n_q).
        names: their names.
        scale: unit displacement (n_q,) of every coordinate, m or rad.
        is_angle: which coordinates are angles (n_q,); they may jump by full turns.

    Raises:
        AssemblyError: where, by how much.
    """
    if len(q) < 3:
        return
    steps = np.diff(q, axis=0)
    steps[:, is_angle] = (steps[:, is_angle] + np.pi) % (2 * np.pi) - np.pi
    steps = np.abs(steps) / scale
    usual = np.quantile(steps.max(axis=1), 0.99)
    sample, coordinate = np.unravel_index(np.argmax(steps), steps.shape)
    largest = steps[sample, coordinate]
    if largest > JUMP * usual and largest > 0.1:
        raise AssemblyError(
            Problem(
                where=names[coordinate],
                what=f"track is lost: it jumps by {largest * scale[coordinate]:.3g} (m or rad) from sample {sample} to "
                f"{sample + 1} of {len(q)}, {largest / max(usual, 1e-300):.0f} times a usual step",
                remedy="the motion passes a singularity or has a gap there; split it, or sample it more densely",
            )
        )
