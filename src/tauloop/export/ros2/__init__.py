"""A ROS 2 package that describes a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.export.ros2.ros_package import (
        Ros2Options as Ros2Options,
        Ros2Package as Ros2Package,
        export_ros2 as export_ros2,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
