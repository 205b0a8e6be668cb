"""Equations of the elements of a drive line: pure functions of expressions and switches."""

from __future__ import annotations

import casadi as ca

from tauloop.common.records import dataclass
from tauloop.drives.equations.switches import Switches, SwitchModes

#: Gap below which the elastic backlash element is a plain spring and damper (Modelica's
#: ElastoBacklash).
NO_GAP = 1e-10


def elastic_backlash(
    gap: ca.SX, stiffness: ca.SX, damping: ca.SX, D: ca.SX, w: ca.SX, switches: Switches, name: str
) -> ca.SX:
    """Return the force of a gap between elastic contacts, which push but never pull.

    With c stiffness, d damping, b gap and, in contact, tau_c = c (|D| - b/2) and tau_d = d w
    sign(D): the force is sign(D) max(0, tau_c + min(tau_c, tau_d)), and zero inside the gap. It is
    continuous: the bound by tau_c lets it begin at zero, whatever the speed of the impact. A gap of
    at most 1e-10 is none: c D + d w.

    Args:
        gap: whole gap, m or rad.
        stiffness, damping: values of the contact.
        D: deflection (any number), m or rad.
        w: its rate.
        switches: decides the conditions.
        name: name of the element, for the names of modes.

    Source:
        Modelica.Mechanics.Rotational.Components.ElastoBacklash, named in the Gantry-Tau paper,
        Figure 6.
    """
    upper, lower = (
        switches.above(D - gap / 2, f"{name}: upper contact"),
        switches.above(-D - gap / 2, f"{name}: lower"),
    )
    side = upper - lower
    spring = stiffness * ca.if_else(upper, D - gap / 2, ca.if_else(lower, -D - gap / 2, 0))
    total = spring + switches.least(spring, damping * side * w, f"{name}: spring below damper")
    force = side * ca.if_else(switches.above(total, f"{name}: pushes"), total, 0)
    return ca.if_else(gap <= NO_GAP, stiffness * D + damping * w, force)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactGap:
    """Force of an exact backlash, the rate of its state, and the state that its mode prescribes."""

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
    """Return the force of a damped elastic shaft with a gap, whose position x_b in it is a state.

    dx_b/dt = f = w + (k/c)(D - x_b), limited: max(0, f) at x_b = -b/2, min(0, f) at x_b = b/2; the
    force is k (D - x_b) + c (w - dx_b/dt), which is zero wherever x_b moves.

    Args:
        gap: whole gap b.
        stiffness, damping: k and c of the shaft.
        D, w: twist from end to end, gap included, and its rate.
        state: x_b.
        modes: takes up the contacts.
        name: name of the element.

    Source:
        Nordin, Galic, Gutman 1997, "New models for backlash and gear play", eqs. 8 and 9; in Nordin
        and Gutman 2002 (the Gantry-Tau paper's [7]) the exact model.
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
    """Dry friction on one coordinate: a sticking mode, and the force against the motion in slip."""

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
    """Stick when v reaches zero; slip when the force to hold it exceeds `static`.

    A body that creeps to rest, its speed dying away and friction all but balanced, never sticks;
    the sign of such a speed is rounding. So it sticks when v has passed zero by `standstill`, which
    no rounding does and every real reversal does at once: what has slipped slides until it has
    really turned. The body is then `standstill` v late, by a time standstill/a at the deceleration
    a.

    Args:
        level: sliding friction at this speed.
        static: largest force it holds.
        v: velocity.
        required: force that would hold it still (all others' sum).
        standstill: speed to which zero is known: the tolerance of the integration.
        modes: takes up sticking and the direction of sliding.
        name: name of the body.

    Returns:
        The condition of sticking and the friction force.
    """
    sticks = modes.mode(f"{name}: sticks", start=True)
    forward = modes.mode(f"{name}: slides forward")
    sign = 2 * forward - 1
    modes.guard(sticks, ca.if_else(sticks, static - ca.fabs(required), -v * sign - standstill))
    modes.guard(forward, ca.if_else(sticks, required, sign))  # while it slides the direction holds
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
    """Return the force sigma_0 z + sigma_1 dz/dt + sigma_2 v against the motion, and dz/dt = v - sigma_0 |v| z / g(v).

    Args:
        stiffness, damping, viscous: sigma_0, sigma_1, sigma_2.
        level: g(v), `stribeck_level`.
        v: velocity.
        z: mean deflection of the bristles.
        standstill: speed to which zero is known; the direction turns when v has passed zero by it,
            for the sign of a smaller one is rounding.
        modes: takes up the direction.
        name: name of the body.

    Source:
        Canudas de Wit, Olsson, Astrom, Lischinsky 1995, eqs. 1 to 3.
    """
    forward = modes.mode(f"{name}: slides forward")
    sign = 2 * forward - 1
    modes.guard(forward, v + sign * standstill)
    rate = v - stiffness * sign * v / level * z
    return stiffness * z + damping * rate + viscous * v, rate


def motor_torque(
    wanted: ca.SX,
    v: ca.SX,
    torque: ca.SX | None,
    rated_speed: ca.SX | None,
    speed: ca.SX | None,
    switches: Switches,
    name: str,
) -> ca.SX:
    """Return the motor torque within its limits.

    It falls to zero between rated speed and speed limit while the motor drives.

    A motor that brakes keeps its whole torque at any speed.

    Args:
        wanted: torque asked for, N m (N).
        v: its speed.
        torque, rated_speed, speed: limits; None for none.
        switches: decides the conditions.
        name: name of the motor.
    """
    if torque is None:
        return wanted
    limited = switches.within(wanted, torque, name)
    if speed is None or rated_speed is None:
        return limited

    def left(u: ca.SX, direction: str) -> ca.SX:
        """Share of the torque that is left to drive at speed u in its direction."""
        falls = switches.above(u - rated_speed, f"{name}: above rated speed {direction}")
        ends = switches.above(u - speed, f"{name}: at its limit of speed {direction}")
        return ca.if_else(ends, 0, ca.if_else(falls, (speed - u) / (speed - rated_speed), 1))

    limited = switches.least(limited, torque * left(v, "forward"), f"{name}: limited forward")
    return -switches.least(-limited, torque * left(-v, "backward"), f"{name}: limited backward")
