"""Motors as ``<ros2_control>`` of a URDF, with transmissions (see `motor_elements`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from xml.etree import ElementTree

import numpy as np

from tauloop.common.records import dataclass
from tauloop.formats.imported.motor_elements import ROS2_CONTROL, TRANSMISSION
from tauloop.formats.urdf.parts import StatedMotor
from tauloop.formats.writing.expression_writer import number

#: Test hardware that is part of ros2_control.
MOCK_HARDWARE = "mock_components/GenericSystem"
_PLUGIN = "transmission_interface/"
#: Relative difference below which products of ratios count as equal.
_RATIO_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class _Transmission:
    """A transmission: reductions of its actuators and joints by name, in role order.

    Attributes:
        kind: type of the transmission.
        actuators, joints: reductions by name.
        ratios: matrix (n, n) from joint positions to actuator positions.
    """

    kind: str
    actuators: Mapping[str, float]
    joints: Mapping[str, float]
    ratios: np.ndarray


def add_ros2_control(
    robot: ElementTree.Element,
    motors: Sequence[StatedMotor],
    shifts: Mapping[str, float],
    positions: Mapping[str, float],
) -> tuple[str, ...]:
    """Add the motors to a URDF.

    Args:
        robot: the root element.
        motors: motors with the names of the URDF.
        shifts: by joint, the URDF's coordinate minus the machine's.
        positions: by motor, its position when the machine's coordinates are zero.

    Returns:
        Names of the motors for which there is no transmission; they are omitted.
    """
    transmissions, unsupported = _transmissions(motors)
    joints = list(dict.fromkeys(name for item in transmissions for name in item.joints))
    if not joints:
        return tuple(unsupported)
    control = ElementTree.SubElement(
        robot, ROS2_CONTROL, name=f"{robot.get('name')}_system", type="system"
    )
    ElementTree.SubElement(
        ElementTree.SubElement(control, "hardware"), "plugin"
    ).text = MOCK_HARDWARE
    for name in joints:
        joint = ElementTree.SubElement(control, "joint", name=name)
        ElementTree.SubElement(joint, "command_interface", name="position")
        for state in ("position", "velocity"):
            ElementTree.SubElement(joint, "state_interface", name=state)
    for item in transmissions:
        _add_transmission(control, item, _joint_offsets(item, shifts, positions))
    return tuple(unsupported)


def _joint_offsets(
    item: _Transmission, shifts: Mapping[str, float], positions: Mapping[str, float]
) -> dict[str, float]:
    """Return the offsets of the joints of a transmission.

    With the URDF's coordinates u = q + c and positions p = A q + b of the motors, the offsets are
    c - A^-1 b, so that p = A (u - offset).
    """
    b = np.array([positions.get(name, 0.0) for name in item.actuators])
    shifts_at_zero = np.linalg.solve(item.ratios, b)
    return {
        name: shifts.get(name, 0.0) - float(angle)
        for name, angle in zip(item.joints, shifts_at_zero, strict=True)
    }


def _add_transmission(
    control: ElementTree.Element, item: _Transmission, offsets: Mapping[str, float]
) -> None:
    """Add a transmission, unless it is a motor of ratio 1 with the name of its joint."""
    is_direct = item.actuators == item.joints and not any(offsets.get(name) for name in item.joints)
    if is_direct and set(item.joints.values()) == {1.0}:
        return
    name = f"{'_'.join(item.actuators)}_transmission"
    element = ElementTree.SubElement(control, TRANSMISSION, name=name)
    ElementTree.SubElement(element, "plugin").text = f"{_PLUGIN}{item.kind}"
    for tag, reductions in (("actuator", item.actuators), ("joint", item.joints)):
        for k, (end, reduction) in enumerate(reductions.items()):
            inner = ElementTree.SubElement(element, tag, name=end, role=f"{tag}{k + 1}")
            if reduction != 1.0:
                ElementTree.SubElement(inner, "mechanical_reduction").text = number(reduction)
            if tag == "joint" and offsets.get(end):
                ElementTree.SubElement(inner, "offset").text = number(offsets[end])


def _transmissions(motors: Sequence[StatedMotor]) -> tuple[list[_Transmission], list[str]]:
    """Return the transmissions of the motors, and the names of motors without one."""
    transmissions: list[_Transmission] = []
    remaining = list(motors)
    for motor, partner in permutations(motors, 2):
        if motor in remaining and partner in remaining and (item := _pair(motor, partner)):
            transmissions.append(item)
            remaining = [other for other in remaining if other not in (motor, partner)]
    single = [motor for motor in remaining if len(motor.drives) == 1]
    for motor in single:
        ((joint, ratio),) = motor.drives
        transmissions.append(
            _Transmission(
                kind="SimpleTransmission",
                actuators={motor.name: 1.0},
                joints={joint: ratio},
                ratios=np.array([[ratio]]),
            )
        )
    return transmissions, [motor.name for motor in remaining if motor not in single]


def _pair(first: StatedMotor, second: StatedMotor) -> _Transmission | None:
    """Return the differential or four-bar transmission of two motors in role order, or None."""
    a, b = dict(first.drives), dict(second.drives)
    names = list(b)
    if len(names) != 2 or not set(a) <= set(b):
        return None
    # in a four-bar, the joint that both motors drive comes first
    names.sort(key=lambda name: name not in a)
    (a1, a2), (b1, b2) = (
        (drives.get(names[0], 0.0), drives.get(names[1], 0.0)) for drives in (a, b)
    )
    ratios = np.array([[a1, a2], [b1, b2]])
    if not a2:
        return _Transmission(
            kind="FourBarLinkageTransmission",
            actuators={first.name: a1, second.name: b1},
            joints={names[0]: 1.0, names[1]: b2 / b1},
            ratios=ratios,
        )
    if not np.isclose(a1 * b2, -a2 * b1, rtol=_RATIO_TOLERANCE, atol=0.0):
        return None
    return _Transmission(
        kind="DifferentialTransmission",
        actuators={first.name: 1.0, second.name: b1 / a1},
        joints={names[0]: a1, names[1]: a2},
        ratios=ratios,
    )
