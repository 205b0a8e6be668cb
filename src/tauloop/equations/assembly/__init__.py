"""Assembly of loops: closing them, their rank, independent motions, locked freedoms and limits.

Examples:
    >>> import tauloop as tl
    >>> model = tl.Model(tl.load("five_bar"))
    >>> model.functions(tl.equations.assembly.ACTUATORS).ports.position.columns
    ('motor_1', 'motor_2')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.equations.assembly.assembly import Assembly as Assembly, assemble as assemble
    from tauloop.equations.assembly.freedoms.locks import Locks as Locks
    from tauloop.equations.assembly.freedoms.spins import Spin as Spin, find_spins as find_spins
    from tauloop.equations.assembly.loops import Loops as Loops
    from tauloop.equations.ports import (
        ACTUATORS as ACTUATORS,
        PLATFORM as PLATFORM,
        Entry as Entry,
        Port as Port,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
