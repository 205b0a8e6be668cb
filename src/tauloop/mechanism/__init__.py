"""The machine as data: from a file, checked and frozen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.mechanism.expression import moved
    from tauloop.mechanism.index import machine_index
    from tauloop.mechanism.model import JointKind, Mechanism
    from tauloop.mechanism.schema import drive_schema, json_schema
    from tauloop.mechanism.shipped import machine_path, shipped_machines
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "JointKind": "model",
            "Mechanism": "model",
            "drive_schema": "schema",
            "json_schema": "schema",
            "machine_index": "index",
            "machine_path": "shipped",
            "moved": "expression",
            "shipped_machines": "shipped",
        },
    )

__all__ = [
    "JointKind",
    "Mechanism",
    "drive_schema",
    "json_schema",
    "machine_index",
    "machine_path",
    "moved",
    "shipped_machines",
]
