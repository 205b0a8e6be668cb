"""The tool: a payload fixed to it, a wrench on it, and where it is and how it moves."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.options import option, require
from tauloop.common.records import dataclass
from tauloop.common.shown import Shown
from tauloop.equations.named_values import TOOL
from tauloop.equations.ports import Port
from tauloop.mechanism.description import units
from tauloop.mechanism.poses import homogeneous

#: Inertial parameters of a payload about the tool centre point, in the tool's frame.
_NAMES = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
#: Products of inertia that exceed what a body can have by less than this share are rounding.
_ROUNDING = 1e-12
_FINITE = {"above": -np.inf, "below": np.inf, "remedy": "give finite numbers, SI"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload(Shown):
    """A rigid body that is fixed to the tool.

    Attributes:
        mass: kg.
        center: its mass centre from the tool centre point, in the tool's frame, m.
        inertia: (I_xx, I_xy, I_yy, I_xz, I_yz, I_zz) about the mass centre, in the axes of the
            tool's frame, kg m^2.

    Raises:
        InputError: numbers that are not finite, or that no body can have.

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
        """Check that a body can be so."""
        require(self, owner="payload.")
        moments = np.linalg.eigvalsh(self._matrix())
        if moments[0] < -_ROUNDING * moments[2] or moments[2] > (1 + _ROUNDING) * (
            moments[0] + moments[1]
        ):
            what = (
                f"has the principal moments {', '.join(f'{value:.4g}' for value in moments)} kg m^2"
            )
            raise InputError.of(
                "payload.inertia", what, "none is negative, and none exceeds the sum of the others"
            )

    def _matrix(self) -> np.ndarray:
        xx, xy, yy, xz, yz, zz = self.inertia
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    @property
    def parameters(self) -> np.ndarray:
        """Parameters (10,) about the tool centre point: m, m c, and I_c + m (c.c 1 - c c^T)."""
        c = np.array(self.center)
        about = self._matrix() + self.mass * (c @ c * np.eye(3) - np.outer(c, c))
        return np.concatenate(
            [[self.mass], self.mass * c, about[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]]
        )


#: Ports of what acts at the tool.
LOAD_PORTS = {
    "wrench": TOOL,
    "payload": Port(name="payload", columns=_NAMES, units=("",) * len(_NAMES)),
}


def loads(wrench: object | None, payload: object | None) -> dict[str, object]:
    """Inputs of the loaded programs; none where nothing acts.

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
        "wrench": np.zeros(TOOL.size) if wrench is None else wrench,
        "payload": payload.parameters,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMotion(Shown):
    """Motion of the tool in the base frame, of N samples; without the axis of samples for a single one.

    Attributes:
        place: of the tool centre point (N, 3), m.
        rotation: of the tool's frame (N, 3, 3).
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
