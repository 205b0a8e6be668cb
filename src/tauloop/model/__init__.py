"""The `Model`: every function of one assembled machine, on batches, with checked ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.model.export import Export, ExportOptions, export_c
    from tauloop.model.force_sharing import ForceSharing
    from tauloop.model.hybrid import HybridForces, HybridFunctions
    from tauloop.model.model import Model
    from tauloop.model.motion import Motion
    from tauloop.model.operation_counts import CountOptions, OperationCounts, count_operations
    from tauloop.model.ready import FunctionOptions, load_function
    from tauloop.model.tool import Payload, ToolMotion
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "ForceSharing": "force_sharing",
            "Payload": "tool",
            "ToolMotion": "tool",
            "FunctionOptions": "ready",
            "HybridForces": "hybrid",
            "HybridFunctions": "hybrid",
            "Model": "model",
            "Motion": "motion",
            **dict.fromkeys(("CountOptions", "OperationCounts", "count_operations"), "operation_counts"),
            **dict.fromkeys(("Export", "ExportOptions", "export_c"), "export"),
            "load_function": "ready",
        },
    )

__all__ = [
    "CountOptions",
    "Export",
    "ExportOptions",
    "ForceSharing",
    "FunctionOptions",
    "HybridForces",
    "HybridFunctions",
    "Model",
    "Motion",
    "OperationCounts",
    "Payload",
    "ToolMotion",
    "count_operations",
    "export_c",
    "load_function",
]
