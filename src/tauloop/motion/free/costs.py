"""Cost rate of a motion: heat of the motors' currents and friction, or wear of their drives.

Source: ISO 281:2007, ISO 3408-5:2006 (exponents of life); Palmgren 1924, Miner 1945 (parts of a
life add up); Archard 1953, Contact and rubbing of flat surfaces.
"""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError
from tauloop.mechanism.drive_line import DriveLine, LineFriction, LuGre
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model

#: Rounding of what wears: of forces over their largest, of speeds over those of all motors, and of
#: speeds at rest.
EDGE, CREEP, REST = 1e-2, 1e-2, 1e-6
#: Speed of an inertia below which its Coulomb friction vanishes, over that of all motors there.
STICK = 1e-2


def copper_of(mechanism: Mechanism, copper: float) -> np.ndarray:
    """Return the heat of each motor per squared force (n_u,).

    It is equal for all motors, or that of the machine file where it is zero.
    """
    own = np.array([actuator.copper or 0.0 for actuator in mechanism.actuators])
    return np.full(len(own), copper) if copper > 0 else own


def require_goal(model: Model, objective: str, copper: float) -> None:
    """Reject a goal for which the machine file lacks data.

    Raises:
        InputError: no heat of motors, or motors whose wear has no sum.
    """
    mechanism, (_, units) = model.mechanism, model.output_ports("actuators")
    if objective == "energy":
        cold = [
            a.name
            for a, k in zip(mechanism.actuators, copper_of(mechanism, copper), strict=True)
            if k == 0
        ]
        if cold:
            what = f"energy without the heat of motors is not what they take: {', '.join(cold)}"
            raise InputError.of(
                "copper", what, "give R/k^2 of the motors, here or as 'copper' of each in the file"
            )
    if objective == "wear":
        endless = [a.name for a in mechanism.actuators if not np.isfinite(a.force)]
        if endless:
            what = f"wear counts fractions of the largest forces, which {', '.join(endless)} lack"
            raise InputError.of("optimize", what, "give 'force' to the actuators")
        if len(set(units)) > 1:
            raise InputError.of(
                "optimize",
                "travel of motors that turn and that slide has no sum",
                "choose time or energy",
            )


def power(
    model: Model,
    force: ca.SX,
    speeds: ca.SX,
    accelerations: ca.SX,
    friction: ca.SX,
    copper: np.ndarray | float,
) -> ca.SX:
    """Return the power lost in currents and friction, drive lines included, W.

    Work against inertia and gravity comes back where the motion ends. A drive line behind an
    actuator adds J r^2 a + r F(r v) of each of its inertias to the motor's force, where r is its
    motion per unit of the actuator's.

    Args:
        model: the machine.
        force, speeds, accelerations: values of the motors (n_u,).
        friction: power that the machine's own takes, W.
        copper: heat per squared force (n_u,).
    """
    mechanism, motors, lost = model.mechanism, [], friction
    for i, actuator in enumerate(mechanism.actuators):
        inertia, drag = 0.0, ca.SX(0)
        for ratio, own, slip in _inside(mechanism, actuator.drive, speeds, i):
            inertia += ratio**2 * own
            drag += ratio * slip
        motors.append(force[i] + inertia * accelerations[i] + drag)
        lost += drag * speeds[i]
    return ca.SX(ca.sum1(ca.DM(copper) * ca.vertcat(*motors) ** 2) + lost)


def _inside(
    mechanism: Mechanism, line: DriveLine | None, speeds: ca.SX, i: int
) -> Iterator[tuple[float, float, ca.SX]]:
    """Return the inertias of a drive line: relative motion, size and friction."""
    if line is None:
        return

    def value(expression: object) -> float:
        return 0.0 if expression is None else float(mechanism.value(expression))  # type: ignore[arg-type]

    ratios = line.ratios()
    for inertia in line.inertias:
        if inertia.name == line.performance.of or inertia.name not in ratios:
            continue
        ratio, friction = value(ratios[inertia.name]), inertia.friction
        v, drag = ratio * speeds[i], ca.SX(0)
        if isinstance(friction, LineFriction | LuGre):
            coulomb, stribeck = value(friction.coulomb), value(friction.stribeck)
            excess = (
                (value(friction.static) - coulomb) * ca.exp(-((v / stribeck) ** 2))
                if stribeck > 0
                else 0.0
            )
            all_speeds = ca.sumsqr(ratio * speeds) * STICK**2 + (ratio * REST) ** 2
            drag = value(friction.viscous) * v + (coulomb + excess) * v / ca.sqrt(v**2 + all_speeds)
        yield ratio, value(inertia.value), drag


def wear(shares: ca.SX, speeds: ca.SX, exponent: float) -> tuple[ca.SX, ca.SX]:
    """Return the travel of motors at full force per second that drives wear, smoothed and exact.

    sum |tau / tau_max|^p |w|

    The travel that a bearing, a ball screw or a gear lasts goes with its load to the power -p, and
    parts of its life add up: p = 3 with balls and for teeth, 10/3 with rollers; p = 1 is Archard's
    law of sliding.
    """
    together = CREEP**2 * ca.sumsqr(speeds) + REST**2
    smooth = ca.dot((shares**2 + EDGE**2) ** (0.5 * exponent), ca.sqrt(speeds**2 + together))
    return ca.SX(smooth), ca.SX(ca.dot(ca.fabs(shares) ** exponent, ca.fabs(speeds)))
