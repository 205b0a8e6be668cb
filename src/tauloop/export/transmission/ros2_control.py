"""A ROS 2 package with an actuator map as a transmission plugin of ros2_control."""

from __future__ import annotations

import re
from importlib.resources import files as resources
from xml.sax.saxutils import escape

from tauloop.compiler.c.printing.source import c_string
from tauloop.dynamics import ActuatorMap
from tauloop.export.c.export import Export
from tauloop.export.ros2.ros_package import PACKAGE_VERSION

_TEMPLATES = ("CMakeLists.txt", "package.xml", "transmission_plugins.xml", "README.md")


def package_name(stem: str) -> str:
    """Return the name of the package (REP 144), formed from the prefix of all names in the code."""
    prefix = re.sub(r"_+", "_", stem.lower()).strip("_")
    return f"{prefix}_transmission"


def package_files(actuator_map: ActuatorMap, stem: str, code: Export) -> dict[str, str]:
    """Return the files of the package by path.

    Args:
        actuator_map: the map.
        stem: prefix of the names in the code.
        code: the exported C in double precision.
    """
    package = package_name(stem)
    class_name = "".join(word.capitalize() for word in stem.split("_") if word) + "Transmission"
    values = {
        "PACKAGE": package,
        "STEM": stem,
        "GUARD": stem.upper(),
        "CLASS": class_name,
        "VERSION": PACKAGE_VERSION,
        "MACHINE": escape(" ".join(actuator_map.model.mechanism.name.split())),
        "COUNT": str(len(actuator_map.joints)),
        "REFERENCE": ", ".join(repr(float(value)) for value in actuator_map.reference),
        "JOINTS": ", ".join(c_string(name) for name in actuator_map.joints),
        "ACTUATORS": ", ".join(c_string(name) for name in actuator_map.actuators),
        "URDF": _urdf(actuator_map, package, class_name),
    }
    files = {name: _filled(f"{name}.in", values) for name in _TEMPLATES}
    files["src/transmission.cpp"] = _filled("transmission.cpp.in", values)
    for name, text in code.files.items():
        if not name.endswith("_manifest.json"):
            folder = "test" if name.endswith("_check.c") else "src"
            files[f"{folder}/{name}"] = text
    return {f"{package}/{path}": text for path, text in files.items()}


def _filled(name: str, values: dict[str, str]) -> str:
    """Return a template with its placeholders replaced."""
    text = resources(__package__).joinpath(f"texts/{name}").read_text(encoding="utf-8")
    for placeholder, value in values.items():
        text = text.replace(f"@{placeholder}@", value)
    return text


def _urdf(actuator_map: ActuatorMap, package: str, class_name: str) -> str:
    """Return the transmission element of a URDF."""
    lines = ['<transmission name="transmission">', f"  <plugin>{package}/{class_name}</plugin>"]
    for tag, names in (("actuator", actuator_map.actuators), ("joint", actuator_map.joints)):
        for i, name in enumerate(names, start=1):
            lines.append(f'  <{tag} name="{escape(name)}" role="{tag}{i}"/>')
    return "\n".join([*lines, "</transmission>"])
