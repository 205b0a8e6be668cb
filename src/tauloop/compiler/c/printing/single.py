"""Single precision: generated C code of doubles, converted to floats.

The code for one sample contains only doubles, counters and calls of a few functions. Each number is
rounded to the nearest float. Every call becomes a call of a function in `single.c`, or of sqrtf or
fabsf.
"""

from __future__ import annotations

import math
import re

import numpy as np

#: Newton's loop ends after a step shorter than this. The error is then below the rounding of
#: floats, because convergence is quadratic.
SINGLE_STEP_TOLERANCE = 1e-4
#: Maximum number of Newton steps, which bounds the time of a call.
NEWTON_ITERATIONS = 20
#: Limit of the Euclidean norm of inputs and outputs, beyond which a result is rejected. Products of
#: three such numbers do not overflow.
LARGEST = 1e12
#: Pivots below this fraction of their typical size indicate a singular pose. Rounding errors may be
#: 1e-6 of the typical size.
SMALLEST_PIVOT = 1e-4
#: Position residuals above this indicate that Newton's method has not converged. It is ten times
#: the rounding of ten characteristic lengths.
CONVERGED = 1e-5
#: Residual (characteristic lengths or dimensionless) below which the projection onto the loop
#: constraints takes its last Newton step. It is ten times the rounding of ten characteristic
#: lengths.
PROJECTION_TOLERANCE = 1e-5
#: Smallest tolerance of a step; the rounding error of a state is a tenth of it.
LEAST_TOLERANCE = 1e-6
#: Smallest step of an integrator, s; at times of some seconds, adjacent floats differ by a tenth of
#: it.
SHORTEST_STEP = 1e-6
#: Value that replaces special values outside the range of floats.
FLOAT_MARK = 1e30

_FUNCTIONS = {
    "sqrt": "sqrtf",
    "fabs": "fabsf",
    "pow": "powf",
    "floor": "tl_floorf",
    "fmin": "tl_fminf",
    "fmax": "tl_fmaxf",
    "HUGE_VAL": "HUGE_VALF",
    **{name: f"{name}f" for name in ("tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")},
    **{name: f"{name}f" for name in ("asinh", "acosh", "atanh", "log", "ceil", "fmod", "erf")},
    "copysign": "copysignf",
    **{
        name: f"{name}f"
        for name in ("tl_sin", "tl_cos", "tl_atan2", "tl_exp", "tl_nearest", "tl_dot", "tl_squares")
    },
}
_C_WORDS = re.compile(
    r"(?P<comment>/\*.*?\*/|\"[^\"\n]*\")|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<number>(?:\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?!\w))|(?P<whole>\d\w*)",
    re.DOTALL,
)


def in_single(text: str) -> str:
    """Return C code of doubles as C code of floats; comments, strings, integers stay."""
    return _C_WORDS.sub(_word, text)


def single_number(value: float) -> str:
    """Return the C text of the nearest float; numbers out of range become `FLOAT_MARK`."""
    if abs(value) > float(np.finfo(np.float32).max):
        value = math.copysign(FLOAT_MARK, value)
    return f"{np.float32(value)!s}f"


def _word(match: re.Match[str]) -> str:
    name, literal = match["name"], match["number"]
    if name is not None:
        return "float" if name == "double" else _FUNCTIONS.get(name, name)
    return match[0] if literal is None else single_number(float(literal))
