"""The tool: its payload, wrenches on it, and its motion."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.options import NamedFields, option, require
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.named_values import TOOL_PORT
from tauloop.equations.ports import Port
from tauloop.mechanism.description import units
from tauloop.mechanism.poses import homogeneous

#: Names of the inertial parameters of a payload about the tool centre point, in the tool's frame.
_PARAMETER_NAMES = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
#: Principal moments may violate the conditions of a rigid body by this share, a rounding error.
_MOMENT_TOLERANCE = 1e-12
_FINITE = {"above": -np.inf, "below": np.inf, "remedy": "give finite numbers, SI"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload(NamedFields, ReprMixin):
    """A rigid body that is fixed to the tool.

    Attributes:
        mass: mass, kg.
        center: position of its centre of mass from the tool centre point, in the tool's frame, m.
        inertia: (I_xx, I_xy, I_yy, I_xz, I_yz, I_zz) about the centre of mass, in the axes of the
            tool's frame, kg m^2.

    Raises:
        InputError: numbers that are not finite, or an inertia that a rigid body cannot have.

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
            remedy = "none is negative, and none exceeds the sum of the others"
            raise InputError.of("payload.inertia", what, remedy)

    def _matrix(self) -> np.ndarray:
        """Return the inertia matrix (3, 3) about the centre of mass."""
        xx, xy, yy, xz, yz, zz = self.inertia
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    @property
    def parameters(self) -> np.ndarray:
        """Parameters (10,) about the tool centre point: m, m c, and I_c + m (c.c 1 - c c^T)."""
        c = np.array(self.center)
        inertia = self._matrix() + self.mass * (c @ c * np.eye(3) - np.outer(c, c))
        components = inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
        return np.concatenate([[self.mass], self.mass * c, components])


#: Ports of the loads at the tool.
LOAD_PORTS = {
    "wrench": TOOL_PORT,
    "payload": Port(name="payload", columns=_PARAMETER_NAMES, units=("",) * len(_PARAMETER_NAMES)),
}


def loads(wrench: object | None, payload: object | None) -> dict[str, object]:
    """Return the load inputs of programs; none without loads.

    Raises:
        InputError: a payload of another type.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMotion(ReprMixin):
    """Motion of the tool in the base frame at N samples; a single sample has no axis of samples.

    Attributes:
        place: position of the tool centre point (N, 3), m.
        rotation: orientation of the tool's frame (N, 3, 3).
        twist: velocity of the tool centre point and angular velocity (N, 6), m/s and rad/s.
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
