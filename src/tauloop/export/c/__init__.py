"""Functions of a machine as C for any compiler, with self-checking test programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.export.c.compensation_export import (
        CompensationExport as CompensationExport,
        CompensationExportOptions as CompensationExportOptions,
        export_compensation as export_compensation,
    )
    from tauloop.export.c.export import (
        Export as Export,
        ExportOptions as ExportOptions,
        export_c as export_c,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
