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
    sizes, defined, parts = (1, 3), "", "0.25, 0, 0, 0, 0"
    if method is not None:
        sizes, parts = (len(method.c), method.dense.shape[1]), number(1 / method.order)
        error = method.error if method.is_adaptive else np.zeros(0)
        for name, table in (
            ("A", method.A),
            ("c", method.c),
            ("error", error),
            ("dense", method.dense),
        ):
            body = ", ".join(number(float(value)) for value in np.ravel(table))
            defined += (
                f"constant double tl_{name}_of[{np.size(table)}] = {{{body}}}; " if body else ""
            )
            parts += f", tl_{name}_of" if body else ", 0"
    lines = [
        f"#define TL_STAGES {sizes[0]}",
        f"#define TL_DEGREE {sizes[1]}",
        f"#define TL_IMPLICIT {int(method is None)}",
        f"#define TL_METHOD(constant) {defined}constant tl_method tl_steps = {{TL_STAGES, TL_DEGREE, {parts}}}",
    ]
    return "\n".join([*lines, ""])
