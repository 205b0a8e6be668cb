"""Simulation of an elastic machine by one call: `simulate_elastic`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import InputError, PoseError, solving
from tauloop.common.keywords import keywords
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.machine.structure import StructureOptions
from tauloop.elasticity.vibrations.machine_modes import (
    LINK_MODE_FACTOR,
    servo_laws,
    stated_damping,
)
from tauloop.elasticity.vibrations.vibration import VibrationOptions, vibration
from tauloop.equations.named_values import TOOL_PORT, named_values
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled
from tauloop.model.motion_table import motion_table
from tauloop.simulation.elastic.result import ElasticSimulation, ElasticSimulationOptions
from tauloop.simulation.elastic.run import ElasticRun
from tauloop.simulation.elastic.sampling import RigidPath, path_entry, sampled_course
from tauloop.simulation.forces import wrench_at_tool
from tauloop.simulation.planned.spline_motion import SplineMotion

#: Number of natural frequencies that determine the modes of links, as in `vibration`.
FREQUENCIES = 10

#: A motion of the platform: a trajectory or the result of a plan; a function of time with a
#: duration; or a table (CSV, Parquet) with columns time and position.NAME.
MotionSource = Any


@keywords(ElasticSimulationOptions)
@solving(PoseError)
def simulate_elastic(
    machine: MachineSource,
    motion: MotionSource | None = None,
    options: ElasticSimulationOptions | None = None,
) -> ElasticSimulation:
    """Simulate the deformation of an elastic machine whose motors follow a motion.

    M(t) ẍ + (C + 2 Bᵀ M dB/dt) ẋ + K(t) x = f(t) for the elastic coordinates x of `stiffness` and
    `vibration`, with the forces f of rigid motion, weight and wrench. Motors follow the motion
    exactly, and their drives deflect according to the stiffness in the file; or position loops move
    them (`motor_state`), with states z and ż = A z + B (r, y, v). Terms of second order in x and in
    the rotation rates are neglected; diagnostics state their size. The machine starts in static
    equilibrium.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        motion: a trajectory, or the result of `plan_stroke`; an object with `at(time)` (motion of
            the platform) and `duration`; or a table (CSV, Parquet) with columns time and
            position.NAME. Default: the machine holds its pose.
        options: loads, damping and accuracy.

    Returns:
        The deflection of the tool, the forces and the energies over time, with diagnostics.

    Raises:
        InputError: the machine has no elastic data, or the file does not state where a mass is.
        AssemblyError: a part can move without any deformation.
        PoseError: a pose is out of reach or singular.

    Examples:
        >>> import tauloop as tl
        >>> machine = tl.loads('''
        ... format: tauloop-machine/1
        ... name: slide
        ... provenance: {status: chosen, source: example}
        ... gravity: [0, 0, -9.81 m/s^2]
        ... damping: {ratio: 0.05}
        ... bodies: {cart: {mass: 2 kg}}
        ... joints: {rail: {type: prismatic, axis: x, parent: base, child: cart}}
        ... actuators: {motor: {on: rail, force: 10 N, stiffness: 5 N/um}}
        ... platform: {body: cart, independent: [rail]}
        ... ''')
        >>> result = tl.simulate_elastic(machine, release={"fx": 10.0}, settling_band="0.1 um")
        >>> print(f"{1e6 * result.largest_deflection:.0f} um, {1e3 * result.settling_time:.0f} ms")
        2 um, 38 ms
    """
    model, options = modeled(machine), options or ElasticSimulationOptions()
    prescribed = None if motion is None else _prescribed(model, motion)
    start = _start_pose(model, prescribed, options)
    vibration_options = VibrationOptions(
        count=FREQUENCIES,
        link_modes=options.link_modes,
        shear=options.shear,
        motor_state=options.motor_state,
        servo_gains=options.servo_gains,
        bandwidth=options.bandwidth,
    )
    modes = vibration(model, start, vibration_options)
    settings = StructureOptions(
        modes=options.link_modes,
        max_frequency=LINK_MODE_FACTOR * float(np.nanmax(modes.frequency, initial=0.0)),
        has_shear=options.shear,
        laws=servo_laws(model, vibration_options),
    )
    path, motion_end = (None, 0.0) if prescribed is None else prescribed
    course = sampled_course(
        model, path, motion_end, start, settings, _ratios(model.mechanism, options)
    )
    wrench, released = _wrench(options)
    run = ElasticRun(course, path, motion_end, wrench, released, options, modes)
    return run.result()


def _prescribed(model: Model, motion: MotionSource) -> tuple[RigidPath, float]:
    """Return a motion of the platform, and its duration, s.

    Raises:
        InputError: the argument is not a motion.
    """
    if isinstance(motion, str | Path):
        time, arrays = motion_table({"position": model.platform.ports.position}, Path(motion))
        spline = SplineMotion(model, time - time[0], arrays["position"])
        return spline, spline.duration
    path: Any = getattr(motion, "trajectory", motion)
    duration = getattr(path, "total", getattr(path, "duration", None))
    if not hasattr(path, "at") or duration is None:
        what = f"a {type(motion).__name__} is not a motion"
        raise InputError.of(
            "motion", what, "pass a trajectory, such as from `plan_stroke`, or the path of a table"
        )
    prescribed: RigidPath = path
    return prescribed, float(duration)


def _start_pose(
    model: Model, prescribed: tuple[RigidPath, float] | None, options: ElasticSimulationOptions
) -> object | None:
    """Return the pose at the start.

    Raises:
        InputError: there is a pose in addition to a motion.
    """
    if prescribed is None:
        return options.pose
    if options.pose is not None:
        what = "given in addition to a motion"
        raise InputError.of("pose", what, "omit the pose; the motion starts at its own pose")
    path, _ = prescribed
    q = path_entry(model, path).track(path.at(np.zeros(1)).position).q
    return model.platform_position(q)


def _ratios(
    mechanism: Mechanism, options: ElasticSimulationOptions
) -> Callable[[Array], Array] | None:
    """Return a function from angular frequencies to damping ratios; None without damping."""
    if options.damping is None and mechanism.damping is None:
        return None

    def ratios(angular: Array) -> Array:
        if options.damping is not None:
            return np.full_like(angular, options.damping)
        stated, loss_factor = stated_damping(mechanism, angular.shape[1])
        if stated is None:
            # A loss factor has no counterpart in the time domain. A damping ratio of half its value
            # dissipates the same energy at the natural frequency of a mode.
            return np.full_like(angular, 0.5 * float(loss_factor or 0.0))
        return np.broadcast_to(stated, angular.shape)

    return ratios


def _wrench(
    options: ElasticSimulationOptions,
) -> tuple[Callable[[Array], Array], Array]:
    """Return the wrench (N, 6) at times (N,), and the wrench (6,) that the start releases."""
    acting = wrench_at_tool(options.wrench)
    released = named_values(TOOL_PORT, "release", options.release, np.zeros(6))

    def at(time: Array) -> Array:
        if acting is None:
            return np.zeros((len(time), 6))
        if callable(acting):
            return np.array([acting(float(t)) for t in time], dtype=float).reshape(-1, 6)
        return np.broadcast_to(np.asarray(acting, dtype=float), (len(time), 6))

    return at, np.asarray(released, dtype=float)
