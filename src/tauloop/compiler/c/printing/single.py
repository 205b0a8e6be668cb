"""Single precision: generated C of doubles, written again in floats.

What is printed for one sample holds nothing but doubles, counters and calls of a few functions. In
floats each number keeps its meaning, rounded to the nearest float; every call becomes one of
`single.c`, or of sqrtf and fabsf.
"""

from __future__ import annotations

import math
import re

import numpy as np

#: Newton's loop ends after a step this short: what quadratic convergence leaves then is below a
#: float's rounding.
LAST_STEP = 1e-4
#: It gives up after this many steps, so that the longest time of a call is known.
NEWTON_ITERATIONS = 20
#: Root of the sum of squares of inputs and outputs from which on a result is refused: products of
#: three are still floats.
LARGEST = 1e12
#: A pivot below this share of its typical size means a singular pose: rounding alone may be 1e-6 of
#: it.
SMALLEST_PIVOT = 1e-4
#: Position residuals above this mean that Newton's method has not arrived: a float's rounding of
#: ten characteristic lengths, tenfold.
CONVERGED = 1e-5
#: A projection onto the loops ends with the step that began at a residual below this, in
#: characteristic lengths or pure numbers: a float's rounding of ten characteristic lengths,
#: tenfold.
RETURNED = 1e-5
#: Least relative error of a step that can be asked for: a state's own rounding is a tenth of it.
LEAST_TOLERANCE = 1e-6
#: No step of an integrator is shorter, s: instants of some seconds are floats a tenth of this
#: apart.
SHORTEST_STEP = 1e-6
#: Marks beyond all numbers that a float can hold become this one.
BEYOND = 1e30

_FUNCTIONS = {
    "sqrt": "sqrtf",
    "fabs": "fabsf",
    "pow": "powf",
    "floor": "tl_floorf",
    "fmin": "tl_fminf",
    "fmax": "tl_fmaxf",
    "HUGE_VAL": "HUGE_VALF",
    **{
        name: f"{name}f"
        for name in ("tl_sin", "tl_cos", "tl_atan2", "tl_exp", "tl_nearest", "tl_dot", "tl_squares")
    },
}
_WORDS = re.compile(
    r"(?P<comment>/\*.*?\*/|\"[^\"\n]*\")|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<number>(?:\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?!\w))|(?P<whole>\d\w*)",
    re.DOTALL,
)


def in_single(text: str) -> str:
    """C of doubles as C of floats; comments, texts and whole numbers stay."""
    return _WORDS.sub(_word, text)


def single_number(value: float) -> str:
    """A number as C reads the nearest float of it; what no float can hold becomes `BEYOND`."""
    limited = (
        math.copysign(BEYOND, value) if abs(value) > float(np.finfo(np.float32).max) else value
    )
    return f"{np.float32(limited)!s}f"


def _word(match: re.Match[str]) -> str:
    name, literal = match["name"], match["number"]
    if name is not None:
        return "float" if name == "double" else _FUNCTIONS.get(name, name)
    return match[0] if literal is None else single_number(float(literal))
