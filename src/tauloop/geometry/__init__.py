"""Solids of machines: those in the machine file, and designed solids for other bodies and rods.

Examples:
    >>> import tauloop as tl
    >>> solids = tl.geometry.machine_solids(tl.Model(tl.load("delta")))
    >>> len(solids) > 0
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.geometry.body_frames import frames as frames
    from tauloop.geometry.machine import machine_solids as machine_solids, parts as parts
    from tauloop.geometry.triangle_meshes import triangles as triangles
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
