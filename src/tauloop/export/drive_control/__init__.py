"""Controllers of drive lines as C code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.export.drive_control.export import (
        export_control as export_control,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
