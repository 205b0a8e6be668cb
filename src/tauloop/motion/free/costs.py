"""Cost rate of a motion: losses of motors and friction, or wear of the drives.

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

# Wear is smoothed near zero forces and speeds.
#: Width of the smoothing of forces, relative to the largest force.
FORCE_SMOOTHING = 1e-2
#: Width of the smoothing of speeds, relative to the norm of all motors' speeds.
SPEED_SMOOTHING = 1e-2
#: Width of the smoothing of speeds if all motors are at rest, rad/s or m/s.
REST_SPEED = 1e-6
#: Speed of an inertia, relative to the norm of the speeds of all motors, below which its Coulomb
#: friction decreases to zero.
COULOMB_SMOOTHING = 1e-2


def copper_losses(mechanism: Mechanism, copper_loss: float) -> np.ndarray:
    """Return the winding loss of each motor per squared force (n_u,), W/N^2 or W/(N m)^2.

    The result is `copper_loss` for all motors; if this is zero, the value of each motor in the
    machine file.
    """
    from_file = np.array([actuator.copper_loss or 0.0 for actuator in mechanism.actuators])
    return np.full(len(from_file), copper_loss) if copper_loss > 0 else from_file


def require_goal(model: Model, objective: str, copper_loss: float) -> None:
    """Reject an objective for which the machine file lacks data.

    Raises:
        InputError: the winding loss of a motor or a largest force is missing, or the wear of rotary and
            linear motors would be added.
    """
    mechanism = model.mechanism
    _, units = model.output_ports("actuators")
    if objective == "energy":
        without_loss = [
            a.name
            for a, k in zip(mechanism.actuators, copper_losses(mechanism, copper_loss), strict=True)
            if k == 0
        ]
        if without_loss:
            what = f"the energy needs the winding losses of the motors, which are missing for {', '.join(without_loss)}"
            raise InputError.of(
                "copper_loss",
                what,
                "give R/k^2 of each motor, with this option or as `copper_loss` in the machine file",
            )
    if objective == "wear":
        without_limit = [a.name for a in mechanism.actuators if not np.isfinite(a.force)]
        if without_limit:
            what = (
                f"wear needs the largest forces, which are missing for {', '.join(without_limit)}"
            )
            raise InputError.of(
                "optimize", what, "specify `force` of the actuators in the machine file"
            )
        if len(set(units)) > 1:
            raise InputError.of(
                "optimize",
                "the travel of rotary and linear motors cannot be added",
                "choose time or energy",
            )


def power(
    model: Model,
    force: ca.SX,
    speeds: ca.SX,
    accelerations: ca.SX,
    friction: ca.SX,
    copper_loss: np.ndarray | float,
) -> ca.SX:
    """Return the power lost in motor currents and in friction, including drive lines, W.

    Work against inertia and gravity is recovered until the end of the motion. Each inertia J of an
    actuator's drive line adds J r^2 a + r F(r v) to the motor's force, where r is the motion of the
    inertia per motion of the actuator.

    Args:
        model: the machine.
        force, speeds, accelerations: values of the motors (n_u,).
        friction: power lost in the friction of the machine without drive lines, W.
        copper_loss: winding loss per squared force (n_u,).
    """
    mechanism = model.mechanism
    motors = []
    lost = friction
    for i, actuator in enumerate(mechanism.actuators):
        inertia = 0.0
        drag = ca.SX(0)
        for ratio, value, friction_force in _line_inertias(mechanism, actuator.drive, speeds, i):
            inertia += ratio**2 * value
            drag += ratio * friction_force
        motors.append(force[i] + inertia * accelerations[i] + drag)
        lost += drag * speeds[i]
    return ca.SX(ca.sum1(ca.DM(copper_loss) * ca.vertcat(*motors) ** 2) + lost)


def _line_inertias(
    mechanism: Mechanism, line: DriveLine | None, speeds: ca.SX, i: int
) -> Iterator[tuple[float, float, ca.SX]]:
    """Yield motion ratio, value and friction force of each inertia of the drive line of motor i."""
    if line is None:
        return

    def value(expression: object) -> float:
        """Return the value of an expression; zero for None."""
        return 0.0 if expression is None else float(mechanism.value(expression))  # type: ignore[arg-type]

    ratios = line.ratios()
    for inertia in line.inertias:
        if inertia.name == line.performance.of or inertia.name not in ratios:
            continue
        ratio = value(ratios[inertia.name])
        friction = inertia.friction
        v = ratio * speeds[i]
        drag = ca.SX(0)
        if isinstance(friction, LineFriction | LuGre):
            coulomb = value(friction.coulomb)
            stribeck = value(friction.stribeck)
            excess = ca.SX(0)
            if stribeck > 0:
                excess = (value(friction.static) - coulomb) * ca.exp(-((v / stribeck) ** 2))
            width = ca.sumsqr(ratio * speeds) * COULOMB_SMOOTHING**2 + (ratio * REST_SPEED) ** 2
            drag = value(friction.viscous) * v + (coulomb + excess) * v / ca.sqrt(v**2 + width)
        yield ratio, value(inertia.value), drag


def wear(shares: ca.SX, speeds: ca.SX, exponent: float) -> tuple[ca.SX, ca.SX]:
    """Return the rate of the motors' equivalent travel at full force, smoothed and exact.

    The result is the sum of |tau / tau_max|^p |w| over all motors, with the force tau and the speed
    w. The life of a bearing, a ball screw or a gear, as a travel, is proportional to load^-p, and
    fractions of the life add up. The exponent p is 3 for balls and for gear teeth, and 10/3 for
    rollers; p = 1 is Archard's law of sliding wear.
    """
    width = SPEED_SMOOTHING**2 * ca.sumsqr(speeds) + REST_SPEED**2
    smooth = ca.dot(
        (shares**2 + FORCE_SMOOTHING**2) ** (0.5 * exponent), ca.sqrt(speeds**2 + width)
    )
    return ca.SX(smooth), ca.SX(ca.dot(ca.fabs(shares) ** exponent, ca.fabs(speeds)))
