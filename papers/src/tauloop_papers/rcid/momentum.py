"""The RCID: strokes for its prescribed poses, operations by two methods, and contact tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import tauloop as tl
from tauloop.common.result import diagnostic, plain, provenance
from tauloop.model import ToolMotion
from tauloop.motion import POLYNOMIAL_345
from tauloop.simulation import ForceLaw, RungeKutta4, Simulator, ToolForce
from tauloop_papers.rcid.results import Impedance, Reach, Touch
from tauloop_papers.rcid.settings import SETTINGS, ImpedanceSettings, Task
from tauloop_papers.rcid.table import PARTS, choices, comparisons, printed
from tauloop_papers.reproduction import EXPERIMENTS, Progress

#: Largest difference of forces by two formulations, relative to the largest force.
FORCE_AGREEMENT = 1e-10
#: Largest distance of a task from its target, m.
TARGET_TOLERANCE = 1e-6


def run(progress: Progress, settings: ImpedanceSettings = SETTINGS) -> Impedance:
    """Compute strokes, count operations, and simulate contact with a surface."""
    mechanism = tl.load(settings.machine)
    model = tl.Model(mechanism)
    reaches = []
    for name, turned in READINGS.items():
        progress(f"strokes: {name}")
        reaches.append(reach(model, name, turned, settings))
    progress("counting operations (Table 2)")
    counts = {}
    operations = tl.count_operations(mechanism, on_platform=True)
    for method in ("lagrange on the platform", "generalized-momentum"):
        costs = (cost for cost in operations.costs if cost.frame == "Euler angles")
        counts[method] = {
            cost.part: (
                cost.once["additions"],
                cost.once["multiplications"],
                cost.once["divisions"],
            )
            for cost in costs
            if cost.formulation == method and cost.part in PARTS
        }
    touches = []
    for task in settings.tasks:
        progress(f"simulating contact with a surface: {task.name} control")
        touches.append(touch(model, task, settings))
    results = Impedance(
        experiment=EXPERIMENTS["rcid"],
        settings=settings,
        comparisons=(),
        choices=choices(settings),
        reaches=tuple(reaches),
        counts=counts,
        touches=tuple(touches),
        masses=sum(
            mechanism.value(body.inertia.mass)
            for body in mechanism.bodies
            if body.inertia is not None
        )
        + sum(mechanism.value(rod.lower.mass) for rod in mechanism.rods if rod.lower is not None)
        - settings.payload,
        diagnostics=(
            diagnostic(
                "drive forces by generalized momentum and by Lagrange: difference over the largest",
                spread(model),
                at_most=FORCE_AGREEMENT,
                advice="report this fault of Tauloop: two formulations disagree",
            ),
            diagnostic(
                "platform and the task's own mass, spring and damper: largest distance",
                max(item.miss for item in touches),
                at_most=TARGET_TOLERANCE,
                unit="m",
                advice="check the controller's model and the step: it does not cancel the machine's dynamics",
            ),
        ),
        provenance=provenance(
            packages=("numpy", "scipy", "casadi"), options=plain(settings), inputs={}
        ),
    )
    return replace(results, comparisons=comparisons(results), printed=printed(results, model))


#: Rotations from three numbers of at most one: about any axis, or by Euler angles ψ,
#: θ, φ.
ABOUT_ANY_AXIS, BY_EULER_ANGLES = (
    Rotation.from_rotvec,
    lambda angles: Rotation.from_euler("ZYX", angles),
)
#: Sets of poses: whether the position, and whether the rotation, is in a ball instead of a
#: cube.
READINGS: dict[str, tuple[bool, bool]] = {
    "position in the sphere, turned about any axis": (True, True),
    "each coordinate by itself, turned about any axis": (False, True),
    "position in the sphere, each Euler angle by itself": (True, False),
}


def reach(
    model: tl.Model, name: str, balls: tuple[bool, bool], settings: ImpedanceSettings
) -> Reach:
    """Return extreme heights of all carriages over a set of poses, by random and local search."""
    home = model.platform_position(model.assembly.q)
    turned: Callable[[np.ndarray], Rotation] = ABOUT_ANY_AXIS if balls[1] else BY_EULER_ANGLES

    def heights(poses: np.ndarray) -> np.ndarray:
        """Return the heights of the carriages (N, 6) at scaled poses (N, 6)."""
        turns = turned(settings.turn * poses[:, 3:]).as_quat(scalar_first=True)
        position = np.hstack([home[:3] + settings.radius * poses[:, :3], turns])
        return model.actuator_position(model.inverse_kinematics(position).q)

    within = [
        {"type": "ineq", "fun": lambda pose, part=part: 1.0 - pose[part] @ pose[part]}
        for part, is_ball in zip((slice(0, 3), slice(3, 6)), balls, strict=True)
        if is_ball
    ]
    poses = np.random.default_rng(settings.seed).uniform(-1.0, 1.0, (settings.poses, 6))
    for part, is_ball in zip((slice(0, 3), slice(3, 6)), balls, strict=True):
        if is_ball:
            poses[:, part] /= np.linalg.norm(poses[:, part], axis=1, keepdims=True)
    sampled = heights(poses)
    extremes = np.zeros((2, 6))
    for row, sign in enumerate((1.0, -1.0)):
        for leg in range(6):
            start = poses[np.argmin(sign * sampled[:, leg])]
            best = minimize(
                lambda pose, leg=leg, sign=sign: 1e3 * sign * heights(pose[None])[0, leg],
                start,
                method="SLSQP",
                bounds=[(-1.0, 1.0)] * 6,
                constraints=within,
            )
            extremes[row, leg] = 1e-3 * sign * best.fun
    return Reach(poses=name, low=extremes[0], high=extremes[1], sampled=float(np.ptp(sampled)))


def spread(model: tl.Model) -> float:
    """Return the relative difference of drive forces by generalized momentum and by Lagrange."""
    rng = np.random.default_rng(0)
    position = np.array([model.platform_position(q) for q in model.assembly.states])
    velocity, acceleration = rng.normal(size=(2, len(position), 6)) * [[[0.1]], [[1.0]]]
    forces = [
        tl.Model(model.mechanism, formulation=name)
        .platform.inverse_dynamics(position, velocity, acceleration)
        .force
        for name in ("generalized-momentum", "lagrange")
    ]
    return float(np.abs(forces[0] - forces[1]).max() / np.abs(forces[1]).max())


class Controller(ForceLaw):
    """A controller that makes the platform behave as a mass, spring and damper.

    It measures the drives and the force at the platform, as on the RCID.
    """

    def __init__(self, model: tl.Model, task: Task, settings: ImpedanceSettings) -> None:
        """Store the model, and the initial position of the platform."""
        self._model, self._task, self._settings = model, task, settings
        self._home = model.platform.tool(model.platform_position(model.assembly.q)).place

    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the forces that give the platform the acceleration of the task."""
        task, (inertia, drag, twist) = self._task, self._settings.turning
        platform = self._model.platform
        position, velocity = self._model.platform_position(q), v[list(platform.ports.v)]
        tool = platform.tool(position, velocity)
        felt = surface(self._home, self._settings)(time, tool)
        wanted = reference(time, task, self._settings)
        place, speed = tool.place - self._home, tool.twist[:3]
        effort = felt[:3] + np.array([0.0, 0.0, task.push])
        effort -= np.array(task.damping) * (speed - wanted[1]) + np.array(task.stiffness) * (
            place - wanted[0]
        )
        turned = Rotation.from_matrix(tool.rotation).as_rotvec()
        turning = (felt[3:] - drag * tool.twist[3:] - twist * turned) / inertia
        acceleration = np.concatenate([wanted[2] + effort / task.mass, turning])
        return np.asarray(
            platform.inverse_dynamics(position, velocity, acceleration, wrench=felt).force
        )


def reference(time: float, task: Task, settings: ImpedanceSettings) -> np.ndarray:
    """Return position, velocity and acceleration of a task's reference from home (3, 3)."""
    at = POLYNOMIAL_345.at(np.array([min(time / settings.duration, 1.0)]))
    parts = (
        at.s[0],
        at.derivative[0] / settings.duration,
        at.second_derivative[0] / settings.duration**2,
    )
    return np.outer(parts, task.way)


def pressed(height: float, speed: float, settings: ImpedanceSettings) -> float:
    """Return the force with which the tool presses on the surface, N, which is never negative."""
    depth = height - settings.surface
    return (
        max(settings.surface_stiffness * depth + settings.surface_damping * speed, 0.0)
        if depth > 0
        else 0.0
    )


def surface(
    home: np.ndarray, settings: ImpedanceSettings
) -> Callable[[float, ToolMotion], np.ndarray]:
    """Return the wrench (6,) of a smooth surface above the tool."""

    def acts(_: float, tool: ToolMotion) -> np.ndarray:
        push = pressed(tool.place[2] - home[2], tool.twist[2], settings)
        return np.array([0.0, 0.0, -push, 0.0, 0.0, 0.0])

    return acts


def touch(model: tl.Model, task: Task, settings: ImpedanceSettings) -> Touch:
    """Simulate a task, and the mass, spring and damper that the platform should imitate."""
    home = model.platform.tool(model.platform_position(model.assembly.q)).place
    simulator = Simulator(model, integrator=RungeKutta4(step=settings.step), with_wrench=True)
    law = Controller(model, task, settings)
    moved = simulator.run(settings.end, force=law, wrench=ToolForce(surface(home, settings)))
    platform = model.platform
    speeds = moved.v[:, list(platform.ports.v)]
    place = platform.tool(model.platform_position(moved.q), speeds).place - home
    return Touch(
        task=task,
        time=moved.time,
        place=place,
        pressure=-moved.wrench[:, 2],
        force=moved.force,
        speed=moved.v[:, list(model.actuators.ports.v)],
        target=target(task, moved.time, settings),
        energy_error=moved.relative_energy_error,
    )


def target(task: Task, time: np.ndarray, settings: ImpedanceSettings) -> np.ndarray:
    """Return positions (N, 3) of the task's mass, spring and damper on the surface, by SciPy."""

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        place, speed = y[:3], y[3:]
        wanted = reference(t, task, settings)
        effort = np.array([0.0, 0.0, task.push - pressed(place[2], speed[2], settings)])
        effort -= np.array(task.damping) * (speed - wanted[1]) + np.array(task.stiffness) * (
            place - wanted[0]
        )
        return np.concatenate([speed, wanted[2] + effort / task.mass])

    solved = solve_ivp(
        rate,
        (0.0, time[-1]),
        np.zeros(6),
        t_eval=time,
        rtol=1e-10,
        atol=1e-13,
        max_step=settings.step,
    )
    return np.asarray(solved.y[:3].T)
