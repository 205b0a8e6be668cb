"""A machine written in another format, or as a package of ROS 2."""

from tauloop.conversion.ros_package import (
    Ros2Options as Ros2Options,
    Ros2Package as Ros2Package,
    export_ros2 as export_ros2,
)
from tauloop.conversion.workflow import (
    Conversion as Conversion,
    ConvertOptions as ConvertOptions,
    convert as convert,
)
from tauloop.lazy import public_names

__dir__, __all__ = public_names(__name__)
