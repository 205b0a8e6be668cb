"""Export to LinuxCNC: a kinematics module, and HAL lines that set a calibrated geometry.

Examples:
    >>> import tauloop as tl
    >>> tl.export_linuxcnc(tl.load("delta")).name
    'delta_kins'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.export.linuxcnc.machine import (
        MachineJoint as MachineJoint,
        MachineLayout as MachineLayout,
        Pin as Pin,
        WorldAxis as WorldAxis,
        machine_layout as machine_layout,
        platform_positions as platform_positions,
    )
    from tauloop.export.linuxcnc.workflow import (
        LinuxcncExport as LinuxcncExport,
        LinuxcncOptions as LinuxcncOptions,
        export_linuxcnc as export_linuxcnc,
        geometry_hal as geometry_hal,
        joints_ini as joints_ini,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
