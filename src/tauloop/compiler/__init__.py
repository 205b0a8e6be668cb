"""Programs: equations in the order of their solution, as straight-line code and Newton loops.

Examples:
    >>> import tauloop as tl
    >>> tl.Model(tl.load("delta"), evaluator=tl.compiler.c.Interpreted()).assembly.mobility
    3
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.compiler import c as c
    from tauloop.compiler.state import (
        Accelerations as Accelerations,
        Forces as Forces,
        SolveDiagnostics as SolveDiagnostics,
        State as State,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
