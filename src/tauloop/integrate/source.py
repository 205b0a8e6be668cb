"""C text of the integrator and its methods, which precedes the text of a problem."""

from __future__ import annotations

import numpy as np

from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.source import number
from tauloop.integrate.tableau import Tableau


def integrator_source(method: Tableau | None) -> str:
    """Return `hybrid.c` followed by `TL_METHOD`, which defines `tl_steps`; None for Radau IIA."""
    return c_file("tauloop.integrate", "hybrid.c") + _method(method)


def _method(method: Tableau | None) -> str:
    """Return the C macros that define a method: sizes, and the arrays of the tableau."""
    stages, degree, fields = 1, 3, "0.25, 0, 0, 0, 0"
    arrays = ""
    if method is not None:
        stages, degree = len(method.c), method.dense.shape[1]
        fields = number(1 / method.order)
        error = method.error if method.is_adaptive else np.zeros(0)
        for name, table in (
            ("A", method.A),
            ("c", method.c),
            ("error", error),
            ("dense", method.dense),
        ):
            values = ", ".join(number(float(value)) for value in np.ravel(table))
            if values:
                arrays += f"constant double tl_{name}_of[{np.size(table)}] = {{{values}}}; "
                fields += f", tl_{name}_of"
            else:
                fields += ", 0"
    steps = f"constant tl_method tl_steps = {{TL_STAGES, TL_DEGREE, {fields}}}"
    lines = [
        f"#define TL_STAGES {stages}",
        f"#define TL_DEGREE {degree}",
        f"#define TL_IMPLICIT {int(method is None)}",
        f"#define TL_METHOD(constant) {arrays}{steps}",
    ]
    return "\n".join([*lines, ""])
