"""Estimators as C code with fixed memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.export.microcontroller.encoder_export import (
        export_encoder_fit as export_encoder_fit,
    )
    from tauloop.export.microcontroller.tracker_export import (
        export_tracker as export_tracker,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
