"""Equations of a machine: pure functions of (mechanism, q, v, ..., parameters).

Examples:
    >>> import tauloop as tl
    >>> tl.equations.formulations.FORMULATIONS[0].name
    'newton-euler'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.equations import (
        assembly as assembly,
        formulations as formulations,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
