"""Generated controllers: a control law with fault detection, as C and in Python simulations.

Examples:
    >>> import tauloop as tl
    >>> tl.export.controller.ControllerOptions(controller="pd").controller
    'pd'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.export.controller.controller import (
        FLAGS as FLAGS,
        CompiledController as CompiledController,
        ControllerSample as ControllerSample,
    )
    from tauloop.export.controller.export import (
        ControllerExport as ControllerExport,
        export_controller as export_controller,
    )
    from tauloop.export.controller.law import (
        GeneratedLaw as GeneratedLaw,
        follow_path_with_exported_code as follow_path_with_exported_code,
    )
    from tauloop.export.controller.options import ControllerOptions as ControllerOptions
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
