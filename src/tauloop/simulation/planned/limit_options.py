"""Options of planned motions: their limits, and the simulated controller."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.mechanism.description import units
from tauloop.mechanism.description.units import quantity
from tauloop.mechanism.model import Platform
from tauloop.model.tool import Payload, read_payload
from tauloop.motion.fastest.limits import PathLimits
from tauloop.simulation.controllers.laws import read_bandwidth
from tauloop.simulation.controllers.library import CONTROLLERS


def motor_curve(text: str) -> tuple[tuple[float, float], ...]:
    """Return the pairs of motor speed and fraction of the peak force in a text: 0:1,3000rpm:0.3.

    Raises:
        InputError: the text is not a list of SPEED:SHARE, or a speed has a unit of another
            dimension.
    """
    try:
        pairs = [pair.split(":") for pair in text.split(",")]
        points = [(speed, float(share)) for speed, share in pairs]
    except ValueError:
        problem = f"{text!r} is not a list of SPEED:SHARE"
        remedy = "write pairs such as 0:1,20:1,40:0.3"
        raise InputError.of("motor_curve", problem, remedy) from None
    return tuple((quantity("motor_curve", speed, *units.SPEEDS), share) for speed, share in points)


@dataclass(frozen=True, kw_only=True)
class LimitOptions(Options):
    """Limits of a planned motion, and the controller under which it is simulated.

    Attributes:
        reserve: fraction of the largest forces that is reserved for the controller.
        payload: mass that is attached to the tool, such as 0.5kg, or 0.5kg@0,0,20mm with
            its center in the tool's frame; by default the rated payload of the machine file. The
            motion satisfies all limits with the payload and without it. Python also accepts a
            `Payload`.
        motor_curve: fraction of the peak force that is available at each speed, such as
            0:1,20:1,40:0.3 (rad/s, m/s) or 0:1,3000rpm:0.3, linear between the points and concave.
        tension: largest tension of a rod, such as 200N.
        compression: largest compression of a rod, such as 200N.
        tool_acceleration: largest acceleration of the tool, m/s^2, for example for a suction cup.
        reversal: time that motors need for a full reversal of their force, such as 20ms.
        ends: state at the start and the end of a motion with limited force rates: the motors hold
            the machine (held), or brakes hold it while the motor forces build up and decay
            (braked).
        controller: law of the controller under which the motion is simulated.
        rate: samples per second, such as 1kHz.
        bandwidth: bandwidth of the controller, such as 100 (rad/s) or '20 Hz'.

    Examples:
        >>> import tauloop as tl
        >>> isinstance(tl.TransferOptions(end={"x": 0.1}), tl.simulation.LimitOptions)
        True
    """

    reserve: float = option(0.1, least=0.0, below=1.0)
    payload: float | Payload | None = option(
        None, least=0.0, read=read_payload, metavar="MASS", unit=units.MASS
    )
    motor_curve: tuple[tuple[float, float], ...] | str = option(
        (), read=motor_curve, metavar="SPEED:SHARE,..."
    )
    tension: float = option(np.inf, above=0.0, metavar="FORCE", unit=units.FORCE)
    compression: float = option(np.inf, above=0.0, metavar="FORCE", unit=units.FORCE)
    tool_acceleration: float = option(
        np.inf, above=0.0, metavar="ACCELERATION", unit=units.ACCELERATION
    )
    reversal: float = option(0.0, least=0.0, metavar="TIME", unit=units.TIME)
    ends: str = option("held", choices=("held", "braked"))
    controller: str = option("computed-torque", choices=tuple(CONTROLLERS), metavar="LAW")
    rate: float = option(4000.0, metavar="FREQUENCY", unit=units.FREQUENCY)
    bandwidth: float = option(150.0, above=0.0, read=read_bandwidth, metavar="FREQUENCY")

    def limits(self, reserve: float, platform: Platform) -> PathLimits:
        """Return the limits of the motion, with a reserve in the forces."""
        payload = platform.payload if self.payload is None else self.payload
        if not isinstance(payload, Payload):
            payload = Payload(mass=payload)
        curve = self.motor_curve
        return PathLimits(
            force=1.0 - reserve,
            payload=payload if payload.mass > 0 else None,
            motor_curve=motor_curve(curve) if isinstance(curve, str) else curve,
            **{name: getattr(self, name) for name in _LIMIT_NAMES},
        )


#: Options with the same name as a limit.
_LIMIT_NAMES = ("tension", "compression", "tool_acceleration", "reversal", "ends")
