"""Descriptions of other tools, read into a `Mechanism`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.mechanism.formats.mjcf import load_mjcf
    from tauloop.mechanism.formats.options import ImportOptions, RodRecognition
    from tauloop.mechanism.formats.urdf import load_urdf
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"ImportOptions": "options", "RodRecognition": "options", "load_mjcf": "mjcf", "load_urdf": "urdf"},
    )

__all__ = ["ImportOptions", "RodRecognition", "load_mjcf", "load_urdf"]
