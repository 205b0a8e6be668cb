"""Comparison of machines with other physics engines, and the check of the installation.

Examples:
    >>> import tauloop as tl
    >>> [part.name for part in tl.verification.doctor().parts][:2]
    ['tauloop', 'Python']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.verification import engines as engines
    from tauloop.verification.installation import (
        CheckedPart as CheckedPart,
        Checkup as Checkup,
        doctor as doctor,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
