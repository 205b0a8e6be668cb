"""The tool: its payload, wrenches on it, and its motion."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.options import NamedFields, option, require
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.named_values import TOOL_PORT
from tauloop.equations.ports import Port
from tauloop.mechanism.description import units
from tauloop.mechanism.description.units import quantities_reader, quantity
from tauloop.mechanism.expression import Constant
from tauloop.mechanism.model import Body, Inertia, Joint, Mechanism, Placement
from tauloop.mechanism.poses import homogeneous

#: Names of the inertial parameters of a payload about the tool center point, in the tool's frame.
_PARAMETER_NAMES = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
#: Fraction by which principal moments may violate the conditions of a rigid body: a rounding error.
_MOMENT_TOLERANCE = 1e-12
_FINITE = {"above": -np.inf, "below": np.inf, "remedy": "give finite numbers, SI"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload(NamedFields, ReprMixin):
    """A rigid body that is fixed to the tool.

    Attributes:
        mass: mass, kg.
        center: position of its center of mass from the tool center point, in the tool's frame, m.
        inertia: (I_xx, I_xy, I_yy, I_xz, I_yz, I_zz) about the center of mass, in the axes of the
            tool's frame, kg m^2.

    Raises:
        InputError: values are not finite, or a rigid body cannot have this inertia.

    Examples:
        >>> import tauloop as tl
        >>> tl.Payload(mass="500 g", center=("0 mm", "0 mm", "-20 mm")).mass
        0.5
    """

    mass: float = option(least=0.0, below=np.inf, remedy="give zero or more", unit=units.MASS)
    center: tuple[float, float, float] = option((0.0, 0.0, 0.0), unit=units.LENGTH, **_FINITE)
    inertia: tuple[float, float, float, float, float, float] = option(
        (0.0,) * 6, unit=units.INERTIA, **_FINITE
    )

    def __post_init__(self) -> None:
        """Check the types of all values and the inertia."""
        require(self, owner="payload.")
        smallest, middle, largest = np.linalg.eigvalsh(self._matrix())
        is_negative = smallest < -_MOMENT_TOLERANCE * largest
        if is_negative or largest > (1 + _MOMENT_TOLERANCE) * (smallest + middle):
            what = f"has the principal moments {smallest:.4g}, {middle:.4g}, {largest:.4g} kg m^2"
            remedy = (
                "correct the inertia: no principal moment may be negative or exceed the sum of the "
                "other two"
            )
            raise InputError.of("payload.inertia", what, remedy)

    def _matrix(self) -> np.ndarray:
        """Return the inertia matrix (3, 3) about the center of mass."""
        xx, xy, yy, xz, yz, zz = self.inertia
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    @property
    def parameters(self) -> np.ndarray:
        """Parameters (10,) about the tool center point: m, m c, and I_c + m (c.c 1 - c c^T)."""
        c = np.array(self.center)
        inertia = self._matrix() + self.mass * (c @ c * np.eye(3) - np.outer(c, c))
        components = inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
        return np.concatenate([[self.mass], self.mass * c, components])


#: Ports of the loads at the tool.
LOAD_PORTS = {
    "wrench": TOOL_PORT,
    "payload": Port(name="payload", columns=_PARAMETER_NAMES, units=("",) * len(_PARAMETER_NAMES)),
}
#: End of the name of the joint between the tool and a payload.
MOUNT_SUFFIX = "_mount"


def loads(wrench: object | None, payload: object | None) -> dict[str, object]:
    """Return the load inputs of programs; empty without loads.

    Raises:
        InputError: the payload is not a `Payload`.
    """
    if wrench is None and payload is None:
        return {}
    payload = Payload(mass=0.0) if payload is None else payload
    if not isinstance(payload, Payload):
        what = f"is of the type {type(payload).__name__}"
        raise InputError.of("payload", what, "give a tauloop.model.Payload(mass=..., center=...)")
    return {
        "wrench": np.zeros(TOOL_PORT.size) if wrench is None else wrench,
        "payload": payload.parameters,
    }


def read_payload(text: str | float) -> float | Payload:
    """Return a mass, or a payload from the text ``MASS@X,Y,Z`` with its center in the tool's frame.

    Raises:
        InputError: the text is not a mass, or the center is not three lengths.
    """
    mass_text, at, center_text = str(text).partition("@")
    mass = quantity("payload", mass_text, units.MASS)
    if not at:
        return mass
    center = quantities_reader("payload", units.LENGTH)(center_text)
    if len(center) != 3:
        what = f"{center_text!r} is not a center of three lengths"
        raise InputError.of("payload", what, "write MASS@X,Y,Z, such as 0.5kg@0,0,20mm")
    return Payload(mass=mass, center=(center[0], center[1], center[2]))


def with_payload(mechanism: Mechanism, payload: float | Payload) -> Mechanism:
    """Return the machine with a payload as a body that is fixed to the tool.

    Args:
        mechanism: the machine.
        payload: the payload, or the mass of a point at the tool center point, kg.
    """
    load = payload if isinstance(payload, Payload) else Payload(mass=payload)
    names = {body.name for body in mechanism.bodies} | {rod.name for rod in mechanism.rods}
    names |= {joint.name for joint in mechanism.joints}
    names |= {actuator.name for actuator in mechanism.actuators}
    # Names are unique over elements of all kinds, so that the machine can be written as a file.
    name = next(
        name for name in _payload_names() if names.isdisjoint((name, f"{name}{MOUNT_SUFFIX}"))
    )
    inertia = Inertia.of(Constant(float(value)) for value in load.parameters)
    joint = Joint(
        name=f"{name}{MOUNT_SUFFIX}",
        kind="fixed",
        parent=mechanism.platform.tool,
        child=Placement(body=name),
    )
    return replace(
        mechanism,
        bodies=(*mechanism.bodies, Body(name=name, inertia=inertia)),
        joints=(*mechanism.joints, joint),
    )


def _payload_names() -> Iterator[str]:
    """Yield names for the body of a payload."""
    yield "payload"
    yield from (f"payload_{number}" for number in itertools.count(2))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMotion(ReprMixin):
    """Motion of the tool in the base frame at N samples. A single sample has no axis of samples.

    Attributes:
        place: position of the tool center point (N, 3), m.
        rotation: orientation of the tool's frame (N, 3, 3).
        twist: velocity of the tool center point and angular velocity (N, 6), m/s and rad/s.
        jacobian: twist per unit of the given velocities (N, 6, m).
    """

    place: np.ndarray
    rotation: np.ndarray
    twist: np.ndarray
    jacobian: np.ndarray

    @property
    def pose(self) -> np.ndarray:
        """Poses of the tool's frame in the base frame (N, 4, 4), homogeneous, m."""
        return homogeneous(self.rotation, self.place)
