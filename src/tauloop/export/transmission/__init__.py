"""Actuator maps for controllers and simulators: C, Python modules, and packages for ros2_control."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.export.transmission.export import (
        TransmissionExport as TransmissionExport,
        TransmissionOptions as TransmissionOptions,
        export_transmission as export_transmission,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
