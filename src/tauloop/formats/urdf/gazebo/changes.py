"""Settings in ``<gazebo>`` of a URDF that change the machine: plugins, gravity and springs.

`urdf.gazebo.joints` reads the joints in ``<gazebo>``. Everything else in it is for drawing, sensors
or the configuration of a simulation.
"""

from __future__ import annotations

from tauloop.common.records import dataclass
from tauloop.formats.urdf.parts import UrdfReader, identifier
from tauloop.formats.xml.foreign_elements import plugins
from tauloop.formats.xml.nodes import XmlNode

#: Elements with a force that is not modeled, with their names in messages.
_FORCE_ELEMENTS = {
    "springStiffness": "the spring of joint",
    "spring_stiffness": "the spring of joint",
    "dampingFactor": "the velocity damping of",
    "velocity_decay": "the drag of",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GazeboExtensions:
    """Forces that ``<gazebo>`` elements state.

    Attributes:
        weightless: links on which gravity does not act.
        omitted_forces: as in `Mechanism`.
    """

    weightless: tuple[str, ...]
    omitted_forces: tuple[str, ...]


def read_gazebo(reader: UrdfReader, robot: XmlNode) -> GazeboExtensions:
    """Return the forces in ``<gazebo>`` elements; reject plugins that connect links."""
    weightless: list[str] = []
    omitted_forces: list[str] = []
    for node in robot.all("gazebo"):
        name_in_file = node.attributes.get("reference", "").strip()
        for inner in node.walk():
            if name_in_file and _is_switched_off(inner):
                name = identifier(name_in_file)
                weightless.append(reader.renamed.get(name, name))
            elif inner.tag in _FORCE_ELEMENTS and not _is_zero(inner):
                omitted_forces.append(f"{_FORCE_ELEMENTS[inner.tag]} {name_in_file or 'a link'}")
        for plugin, effect in plugins(node):
            name = plugin.attributes.get("name") or plugin.attributes.get("filename", "plugin")
            if effect == "tie":
                what = f"the plugin {name!r} connects links during the simulation"
                remedy = "replace it by <mimic>, <constraint> or a side file"
                reader.problem(plugin, name, what, remedy)
            else:
                omitted_forces.append(f"the forces of the plugin {name!r}")
    return GazeboExtensions(weightless=tuple(weightless), omitted_forces=tuple(omitted_forces))


def _is_switched_off(node: XmlNode) -> bool:
    """Return whether an element switches off gravity for a link, by either of Gazebo's tags."""
    word = node.content.lower()
    if node.tag == "turnGravityOff":
        return word in ("true", "1")
    return node.tag == "gravity" and word in ("false", "0")


def _is_zero(node: XmlNode) -> bool:
    """Return whether all numbers in an element are zero."""
    words = [word for inner in node.walk() for word in inner.content.split()]
    try:
        return not any(float(word) for word in words)
    except ValueError:
        return False
