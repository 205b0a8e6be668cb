"""C text of the integrator and of its methods, to stand in front of a problem's own."""

from __future__ import annotations

import numpy as np

from tauloop.codegen.c_helpers import c_file
from tauloop.codegen.source import number
from tauloop.integrate.tableau import Tableau


def integrator_source(method: Tableau | None) -> str:
    """`hybrid.c`, and behind it `tl_steps`: an explicit method, or Radau IIA without one."""
    return c_file("tauloop.integrate", "hybrid.c") + _method(method)


def _method(method: Tableau | None) -> str:
    sizes = (1, 3) if method is None else (len(method.c), method.dense.shape[1])
    lines = [
        f"#define TL_STAGES {sizes[0]}",
        f"#define TL_DEGREE {sizes[1]}",
        f"#define TL_IMPLICIT {int(method is None)}",
    ]
    if method is None:
        return "\n".join([*lines, "static const tl_method tl_steps = {1, 3, 0.25, 0, 0, 0, 0};", ""])
    tables = {"A": method.A, "c": method.c, "dense": method.dense}
    tables |= {"error": method.error} if method.is_adaptive else {}
    for name, table in tables.items():
        if not np.size(table):
            continue
        body = ", ".join(number(float(value)) for value in np.ravel(table))
        lines.append(f"static const double tl_{name}_of[{np.size(table)}] = {{{body}}};")
    error = "tl_error_of" if method.is_adaptive else "0"
    dense = "tl_dense_of" if method.dense.size else "0"
    parts = f"TL_STAGES, TL_DEGREE, {number(1 / method.order)}, tl_A_of, tl_c_of, {error}, {dense}"
    return "\n".join([*lines, f"static const tl_method tl_steps = {{{parts}}};", ""])
