"""Equations of the control: PID with filter and anti-windup, cascade, and one or two motors."""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca

from tauloop.common.records import dataclass
from tauloop.drives.equations.switches import Switches
from tauloop.equations.values import Values
from tauloop.mechanism.drive_line import Control, DualDrive, Pid


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlLaw:
    """Outputs of a control law.

    Attributes:
        torques: requested torque by motor.
        rates: time derivatives of the control's states.
        output: output of the loops: the total torque that they request.
        direction: switching variable v in [-1, 0]; zero with one motor.
    """

    torques: Mapping[str, ca.SX]
    rates: ca.SX
    output: ca.SX
    direction: ca.SX


def pid_states(law: Pid) -> int:
    """Return the number of states: one for an integral part plus one for a derivative part."""
    return (law.integral_time is not None) + (law.derivative_time is not None)


def pid(
    law: Pid, error: ca.SX, states: ca.SX, values: Values, switches: Switches, name: str
) -> tuple[ca.SX, ca.SX]:
    """Return the output of a PID controller within its limit, and the derivatives of its states.

    The output is K_p (e + x_i + N (e - x_d)). The states have the derivatives
    dx_i/dt = e/T_i + (limited - unlimited) / (K_p T_t) and dx_d/dt = (e - x_d) N/T_d, so the
    transfer function of the derivative part is T_d s / (1 + s T_d / N). Both states start at zero.

    Args:
        law: parameters of the controller: gain K_p, integral time T_i, derivative time T_d, filter
            N, and tracking time T_t of the anti-windup.
        error: control error e.
        states: states x_i and x_d, where the controller has these parts (see `pid_states`).
        values: values of the parameters.
        switches: makes modes of the limits, or decides them directly.
        name: name of the loop.

    Source:
        Modelica.Blocks.Continuous.PID and LimPID; back-calculation as in Astrom and Hagglund 1995,
        section 3.5.
    """
    gain = values.scalar(law.gain)
    total, rates, k = error, [], 0
    if law.integral_time is not None:
        total = total + states[k]
        rates.append(error / values.scalar(law.integral_time))
        k += 1
    if law.derivative_time is not None:
        filter_factor = values.scalar(law.filter)
        total = total + filter_factor * (error - states[k])
        rates.append((error - states[k]) * filter_factor / values.scalar(law.derivative_time))
    output = gain * total
    if law.limit is not None and law.tracking_time is not None:
        limited = switches.clipped(output, values.scalar(law.limit), f"{name} output")
        if law.integral_time is not None:
            rates[0] += (limited - output) / (gain * values.scalar(law.tracking_time))
        output = limited
    return output, ca.vertcat(ca.SX(0, 1), *rates)


def switching(e: ca.SX, e_min: ca.SX, e_max: ca.SX, switches: Switches) -> ca.SX:
    """Return the switching variable v(e) of the slave: -1 below e_min, 0 above e_max.

    Between these errors v = -(1 - 3 s^2 + 2 s^3) with s = (e - e_min) / (e_max - e_min). The
    Gantry-Tau paper, Figure 9, shows the shape without a formula.
    """
    s = (e - e_min) / (e_max - e_min)
    smooth = 1 - s * s * (3 - 2 * s)
    below = switches.above(e_min - e, "slave only pulls against the master")
    above = switches.above(e - e_max, "slave only drives")
    return -ca.if_else(below, 1, ca.if_else(above, 0, smooth))


def relative_error(error: ca.SX, step: ca.SX) -> ca.SX:
    """Return |error| / |step|, or zero without a step."""
    no_step = ca.fabs(step) <= 0
    # the kink of |error| is below e_min, where v is constant, so it needs no mode
    return ca.if_else(no_step, 0, ca.fabs(error) / ca.if_else(no_step, 1, ca.fabs(step)))


def control_law(
    control: Control,
    position: ca.SX,
    speed: ca.SX,
    reference: ca.SX,
    before: ca.SX,
    states: ca.SX,
    values: Values,
    switches: Switches,
    feed: tuple[ca.SX, ca.SX] | None = None,
) -> ControlLaw:
    """Return the torques that the control requests from the motors.

    With two motors (Gantry-Tau paper, Figure 7) the slave gets (1 + v) s u + v P r, and the master
    u - (1 + v) s u - v f P r. Here u is the output of the loops, v the switching variable, P the
    preload, s the torque share, f the fraction of the preload that is fed forward, and r the
    direction of the step.

    Args:
        control: the control law.
        position, speed: measured position and speed; only a speed loop uses `speed`.
        reference, before: reference after and before its step.
        states: states of the loops.
        values: values of the parameters.
        switches: makes modes of the conditions, or decides them directly.
        feed: feed-forward: the reference speed, for a speed loop, and the torque that is added to
            the output of the loops.
    """
    reference_speed, feed_torque = feed if feed is not None else (ca.SX(0), ca.SX(0))
    error = reference - position
    count = pid_states(control.position)
    output, rates = pid(control.position, error, states[:count], values, switches, "position loop")
    if control.speed is not None:
        speed_error = output + reference_speed - speed
        output, speed_rates = pid(
            control.speed, speed_error, states[count:], values, switches, "speed loop"
        )
        rates = ca.vertcat(rates, speed_rates)
    output += feed_torque
    drive = control.drive
    if not isinstance(drive, DualDrive):
        return ControlLaw(
            torques={drive.motor: output}, rates=rates, output=output, direction=ca.SX(0)
        )
    step = reference - before
    v = ca.SX(-1)
    if drive.switch_min is not None and drive.switch_max is not None:
        relative = relative_error(error, step)
        v = switching(
            relative, values.scalar(drive.switch_min), values.scalar(drive.switch_max), switches
        )
    slave_share = (1 + v) * values.scalar(drive.torque_share) * output
    preload = v * values.scalar(drive.preload) * ca.if_else(step < 0, -1, 1)
    master = output - slave_share - values.scalar(drive.feed_forward_share) * preload
    return ControlLaw(
        torques={drive.master: master, drive.slave: slave_share + preload},
        rates=rates,
        output=output,
        direction=v,
    )
