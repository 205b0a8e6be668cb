"""Single precision: generated C code of doubles, converted to floats.

The code for one sample contains only doubles, counters and calls of a few functions. In floats each
number keeps its meaning, rounded to the nearest float. Every call becomes a call of a function in
`single.c`, or of sqrtf or fabsf.
"""

from __future__ import annotations

import math
import re

import numpy as np

#: Newton's loop ends after a step this short; the error is then below a float's rounding, because
#: convergence is quadratic.
SINGLE_STEP_TOLERANCE = 1e-4
#: Maximum number of Newton steps, which bounds the time of a call.
NEWTON_ITERATIONS = 20
#: Limit of the Euclidean norm of inputs and outputs, beyond which a result is rejected: products of
#: three such numbers are still floats.
LARGEST = 1e12
#: Pivots below this fraction of their typical size indicate a singular pose: rounding may reach
#: 1e-6 of it.
SMALLEST_PIVOT = 1e-4
#: Position residuals above this indicate that Newton's method has not converged: ten times a
#: float's rounding of ten characteristic lengths.
CONVERGED = 1e-5
#: A projection onto the loops ends with the step that starts from a residual below this, in
#: characteristic lengths or pure numbers: ten times a float's rounding of ten characteristic
#: lengths.
RETURNED = 1e-5
#: Smallest tolerance of a step: the rounding error of a state is a tenth of it.
LEAST_TOLERANCE = 1e-6
#: Smallest step of an integrator, s: times of some seconds are floats a tenth of this apart.
SHORTEST_STEP = 1e-6
#: Replaces marks that exceed the range of floats.
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
    """Return C code of doubles as C code of floats; comments, strings and integers stay."""
    return _C_WORDS.sub(_word, text)


def single_number(value: float) -> str:
    """Return the C text of the nearest float; numbers out of range become `FLOAT_MARK`."""
    limited = (
        math.copysign(FLOAT_MARK, value) if abs(value) > float(np.finfo(np.float32).max) else value
    )
    return f"{np.float32(limited)!s}f"


def _word(match: re.Match[str]) -> str:
    name, literal = match["name"], match["number"]
    if name is not None:
        return "float" if name == "double" else _FUNCTIONS.get(name, name)
    return match[0] if literal is None else single_number(float(literal))
