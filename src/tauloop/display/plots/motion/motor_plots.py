"""Plots of motor sizing: torque as a function of speed, with the curves of the best motor."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.display.palette import COLORS
from tauloop.display.pieces import Plot, PlotTrace
from tauloop.display.plots.building import rounded
from tauloop.dynamics.motor_loads import RPM_PER_RAD_S, ActuatorLoad
from tauloop.dynamics.motor_sizing import MotorCandidate, MotorSizing

#: Maximum number of points of a motion in a plot.
MAX_POINTS = 1000


def motor_plots(sizing: MotorSizing) -> Iterator[Plot]:
    """Yield torque over speed of each actuator; with a catalogue, at the best motor's shaft."""
    for load in sizing.loads:
        candidates = sizing.candidates.get(load.name)
        yield _candidate_plot(sizing, load, candidates[0]) if candidates else _load_plot(load)


def _load_plot(load: ActuatorLoad) -> Plot:
    """Return a plot of an actuator's force over its speed."""
    factor, speed_unit, unit = (
        (RPM_PER_RAD_S, "rpm", "N m") if load.is_rotary else (1.0, "m/s", "N")
    )
    step = max(1, len(load.time) // MAX_POINTS)
    trace = PlotTrace(
        x=rounded(factor * load.speed[::step]),
        y=rounded(load.total_force[::step]),
        name="motion",
        color=COLORS[0],
    )
    return Plot(
        title=load.name,
        x=f"speed [{speed_unit}]",
        y=f"{'torque' if load.is_rotary else 'force'} [{unit}]",
        traces=(trace,),
    )


def _candidate_plot(sizing: MotorSizing, load: ActuatorLoad, best: MotorCandidate) -> Plot:
    """Return a plot of torque over speed at the shaft of a motor, with the motor's curves.

    A point marks the root mean square of the torque at the mean speed. It must be below the curve
    of the continuous torque.
    """
    assert sizing.catalogue is not None
    gear = next(gear for gear in sizing.catalogue.gears if gear.name == best.gear)
    motor = next(motor for motor in sizing.catalogue.motors if motor.name == best.motor)
    step = max(1, len(best.points) // MAX_POINTS)
    speed, torque = np.abs(best.points[::step].T)
    traces = [
        PlotTrace(
            x=rounded(RPM_PER_RAD_S * speed), y=rounded(torque), name="motion", color=COLORS[0]
        ),
        PlotTrace(
            x=rounded(RPM_PER_RAD_S * motor.peak[:, 0]),
            y=rounded(motor.peak[:, 1]),
            name="peak",
            color=COLORS[1],
        ),
        PlotTrace(
            x=rounded(RPM_PER_RAD_S * motor.continuous[:, 0]),
            y=rounded(motor.continuous[:, 1]),
            name="continuous",
            color=COLORS[2],
        ),
    ]
    mean_speed = gear.ratio * load.mean_speed
    rms = best.heat * float(motor.continuous_torque(mean_speed))
    if np.isfinite(rms):
        point = PlotTrace(
            x=rounded(RPM_PER_RAD_S * mean_speed),
            y=rounded(rms),
            name="RMS at the mean speed",
            style="points",
            color=COLORS[2],
        )
        traces.append(point)
    return Plot(
        title=f"{best.actuator}: {best.motor}, {best.gear}",
        x="speed [rpm]",
        y="torque [N m]",
        traces=tuple(traces),
    )
