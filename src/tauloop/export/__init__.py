"""Export to other programs: C, graphics processors, controllers, plants, FMUs, LinuxCNC, ROS 2.

Only the command line and the packages that run exported code import this package.

Examples:
    >>> import tauloop as tl
    >>> exported = tl.export_c(tl.load("four_bar"))
    >>> sorted(exported.files)
    ['four_bar.c', 'four_bar.h', 'four_bar_check.c', 'four_bar_manifest.json']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.export import (
        c as c,
        controller as controller,
        drive_control as drive_control,
        fmu as fmu,
        gpu as gpu,
        hil as hil,
        linuxcnc as linuxcnc,
        microcontroller as microcontroller,
        ros2 as ros2,
        transmission as transmission,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
