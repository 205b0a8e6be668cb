"""Equations of the elements of a drive line, as functions of expressions and switches."""

from __future__ import annotations

import casadi as ca

from tauloop.common.records import dataclass
from tauloop.drives.equations.switches import Switches, SwitchModes

#: Gap up to which the elastic backlash element is a spring and damper without a gap (as in
#: Modelica's ElastoBacklash), m or rad.
NO_GAP = 1e-10


def elastic_backlash(
    gap: ca.SX, stiffness: ca.SX, damping: ca.SX, D: ca.SX, w: ca.SX, switches: Switches, name: str
) -> ca.SX:
    """Return the force of a gap between elastic contacts, which push but never pull.

    With the stiffness c, the damping d and the gap b, the force is zero inside the gap. In contact
    tau_c = c (|D| - b/2), tau_d = d w sign(D), and the force is sign(D) max(0, tau_c + min(tau_c,
    tau_d)). The force is continuous: since the damping force is at most tau_c, it starts at zero at
    any speed of impact. A gap of at most 1e-10 is replaced by the spring and damper c D + d w.

    Args:
        gap: total gap b, m or rad.
        stiffness, damping: c and d of the contact.
        D: deflection, m or rad.
        w: time derivative of the deflection.
        switches: makes modes of the conditions, or decides them directly.
        name: name of the element, for the names of modes.

    Source:
        Modelica.Mechanics.Rotational.Components.ElastoBacklash, named in the Gantry-Tau paper,
        Figure 6.
    """
    upper = switches.above(D - gap / 2, f"{name}: upper contact")
    lower = switches.above(-D - gap / 2, f"{name}: lower")
    side = upper - lower
    spring = stiffness * ca.if_else(upper, D - gap / 2, ca.if_else(lower, -D - gap / 2, 0))
    total = spring + switches.smaller(spring, damping * side * w, f"{name}: spring below damper")
    force = side * ca.if_else(switches.above(total, f"{name}: pushes"), total, 0)
    return ca.if_else(gap <= NO_GAP, stiffness * D + damping * w, force)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactGap:
    """Force of an exact backlash, and the equations of its state, the position in the gap.

    Attributes:
        force: force of the shaft.
        rate: time derivative of the position in the gap.
        reset: position in the gap after a change of modes.
    """

    force: ca.SX
    rate: ca.SX
    reset: ca.SX


def exact_backlash(
    gap: ca.SX,
    stiffness: ca.SX,
    damping: ca.SX,
    D: ca.SX,
    w: ca.SX,
    state: ca.SX,
    modes: SwitchModes,
    name: str,
) -> ExactGap:
    """Return the force of an elastic shaft with damping and a gap.

    The position x_b in the gap is a state. Inside the gap dx_b/dt = f = w + (k/c)(D - x_b); at x_b
    = -b/2 it is max(0, f), and at x_b = b/2 it is min(0, f). The force is k (D - x_b) + c (w -
    dx_b/dt), which is zero whenever x_b moves.

    Args:
        gap: total gap b, m or rad.
        stiffness, damping: k and c of the shaft.
        D, w: deflection from end to end, including the gap, and its time derivative.
        state: position x_b in the gap.
        modes: receives the modes of the contacts.
        name: name of the element.

    Source:
        Nordin, Galic, Gutman 1997, "New models for backlash and gear play", eqs. 8 and 9: the exact
        model in Nordin and Gutman 2002 (reference [7] of the Gantry-Tau paper).
    """
    free = w + stiffness / damping * (D - state)
    upper, lower = modes.mode(f"{name}: upper contact"), modes.mode(f"{name}: lower contact")
    modes.guard(upper, ca.if_else(upper, free, state - gap / 2))
    modes.guard(lower, ca.if_else(lower, -free, -state - gap / 2))
    touches = upper + lower
    return ExactGap(
        force=ca.if_else(touches, damping * free, 0),
        rate=ca.if_else(touches, 0, free),
        reset=ca.if_else(upper, gap / 2, ca.if_else(lower, -gap / 2, state)),
    )


def stribeck_level(coulomb: ca.SX, static: ca.SX, velocity: ca.SX, v: ca.SX) -> ca.SX:
    """Return the sliding friction coulomb + (static - coulomb) exp(-(v/velocity)^2)."""
    return coulomb + (static - coulomb) * ca.exp(-((v / velocity) ** 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class DryFriction:
    """Dry friction on one inertia: whether it sticks, and the force against the motion in sliding."""

    sticks: ca.SX
    force: ca.SX


def dry_friction(
    level: ca.SX,
    static: ca.SX,
    v: ca.SX,
    required: ca.SX,
    standstill: ca.SX,
    modes: SwitchModes,
    name: str,
) -> DryFriction:
    """Return the dry (Coulomb) friction of an inertia, with its sticking mode.

    Sticking starts when v passes zero, and ends when the required force exceeds the static
    friction. It starts only when v has passed zero by `standstill`. The sign of a smaller speed may be
    due to rounding, for example when an inertia creeps to rest with nearly balanced forces. At a
    real reversal with the deceleration a, sticking therefore starts late by the time standstill/a.

    Args:
        level: sliding friction at this speed.
        static: static friction: the largest force at which the inertia sticks.
        v: velocity.
        required: sum of the other forces, which friction must balance while the inertia sticks.
        standstill: speed below which v counts as zero: the tolerance of the integration.
        modes: receives the modes of sticking and of the direction of sliding.
        name: name of the inertia.

    Returns:
        Whether the inertia sticks, and the force of sliding friction.
    """
    sticks = modes.mode(f"{name}: sticks", start=True)
    forward = modes.mode(f"{name}: slides forward")
    sign = 2 * forward - 1
    modes.guard(sticks, ca.if_else(sticks, static - ca.fabs(required), -v * sign - standstill))
    modes.guard(forward, ca.if_else(sticks, required, sign))  # constant direction while it slides
    return DryFriction(sticks=sticks, force=level * sign)


def lugre(
    stiffness: ca.SX,
    damping: ca.SX,
    viscous: ca.SX,
    level: ca.SX,
    v: ca.SX,
    z: ca.SX,
    standstill: ca.SX,
    modes: SwitchModes,
    name: str,
) -> tuple[ca.SX, ca.SX]:
    """Return the LuGre friction force against the motion, and dz/dt of the bristle deflection z.

    The force is sigma_0 z + sigma_1 dz/dt + sigma_2 v, and dz/dt = v - sigma_0 |v| z / g(v).

    Args:
        stiffness, damping, viscous: sigma_0 and sigma_1 of the bristles, viscous friction sigma_2.
        level: sliding friction g(v), from `stribeck_level`.
        v: velocity.
        z: mean deflection of the bristles.
        standstill: the direction changes when v has passed zero by this speed, because the sign of
            a smaller speed may be due to rounding.
        modes: receives the mode of the direction.
        name: name of the inertia.

    Source:
        Canudas de Wit, Olsson, Astrom, Lischinsky 1995, eqs. 1 to 3.
    """
    forward = modes.mode(f"{name}: slides forward")
    sign = 2 * forward - 1
    modes.guard(forward, v + sign * standstill)
    rate = v - stiffness * sign * v / level * z
    return stiffness * z + damping * rate + viscous * v, rate


def motor_torque(
    requested: ca.SX,
    v: ca.SX,
    torque: ca.SX | None,
    rated_speed: ca.SX | None,
    speed: ca.SX | None,
    switches: Switches,
    name: str,
) -> ca.SX:
    """Return the motor torque within its limits.

    While the motor drives, the torque limit falls to zero between the rated speed and the speed
    limit. While it brakes, the whole torque is available at any speed.

    Args:
        requested: torque that the control requests, N m (or force, N).
        v: speed of the motor.
        torque, rated_speed, speed: limits; None if there is no such limit.
        switches: makes modes of the conditions, or decides them directly.
        name: name of the motor.
    """
    if torque is None:
        return requested
    limited = switches.clipped(requested, torque, name)
    if speed is None or rated_speed is None:
        return limited

    def available_fraction(u: ca.SX, direction: str) -> ca.SX:
        """Return the fraction of the torque that is available to drive at speed u."""
        falls = switches.above(u - rated_speed, f"{name}: above rated speed {direction}")
        ends = switches.above(u - speed, f"{name}: at its limit of speed {direction}")
        return ca.if_else(ends, 0, ca.if_else(falls, (speed - u) / (speed - rated_speed), 1))

    forward_limit = torque * available_fraction(v, "forward")
    limited = switches.smaller(limited, forward_limit, f"{name}: limited forward")
    backward_limit = torque * available_fraction(-v, "backward")
    return -switches.smaller(-limited, backward_limit, f"{name}: limited backward")
