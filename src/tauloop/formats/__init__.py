"""Machine descriptions of other tools, read into a `Mechanism` and written from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.formats.conversion import Conversion
    from tauloop.formats.format import Format, Written
    from tauloop.formats.library import FORMATS, ConvertOptions, convert, load, loads
    from tauloop.formats.mjcf import load_mjcf
    from tauloop.formats.options import ImportOptions, RodRecognition
    from tauloop.formats.urdf import load_urdf
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Conversion": "conversion",
            **dict.fromkeys(("Format", "Written"), "format"),
            **dict.fromkeys(("FORMATS", "ConvertOptions", "convert"), "library"),
            "ImportOptions": "options",
            "RodRecognition": "options",
            "load": "library",
            "load_mjcf": "mjcf",
            "load_urdf": "urdf",
            "loads": "library",
        },
    )

__all__ = [
    "FORMATS",
    "Conversion",
    "ConvertOptions",
    "Format",
    "ImportOptions",
    "RodRecognition",
    "Written",
    "convert",
    "load",
    "load_mjcf",
    "load_urdf",
    "loads",
]
