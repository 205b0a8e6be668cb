"""Machine descriptions of other tools, read into a `Mechanism` and written from it.

Examples:
    >>> import tauloop as tl
    >>> sorted(tl.formats.FORMATS)
    ['klipper', 'marlin', 'mjcf', 'reprap', 'sdf', 'urdf', 'yaml']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.formats.format import Format as Format, Written as Written
    from tauloop.formats.library import (
        FORMATS as FORMATS,
        dumps as dumps,
        load as load,
        loads as loads,
        machine_path as machine_path,
    )
    from tauloop.formats.mjcf.reader import load_mjcf as load_mjcf
    from tauloop.formats.options import (
        ImportOptions as ImportOptions,
        RodRecognition as RodRecognition,
    )
    from tauloop.formats.urdf.reader import load_urdf as load_urdf
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
