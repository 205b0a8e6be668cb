"""The machine as data: from a file, checked and frozen.

Examples:
    >>> import tauloop as tl
    >>> tl.mechanism.json_schema()["title"]
    'tauloop-machine/1'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.mechanism import reduction as reduction
    from tauloop.mechanism.description.schema import (
        drive_schema as drive_schema,
        json_schema as json_schema,
    )
    from tauloop.mechanism.expression import moved as moved
    from tauloop.mechanism.model import JointKind as JointKind, Mechanism as Mechanism
    from tauloop.mechanism.shipped import (
        machine_index as machine_index,
        shipped_machines as shipped_machines,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
