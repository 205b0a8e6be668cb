"""Values of the RCID paper, and our choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A contact task: the motion of a mass on a spring and a damper, with a pushing force.

    M (x'' - r'') + D (x' - r') + K (x - r) = f + push, where r is the reference and f the
    force of the surface.

    Attributes:
        name: name of the task.
        mass: mass M, kg.
        damping, stiffness: D and K along x, y, z, N s/m and N/m.
        way: displacement of the reference from home, m.
        push: pushing force along z, N.
    """

    name: str
    mass: float
    damping: tuple[float, float, float]
    stiffness: tuple[float, float, float]
    way: tuple[float, float, float]
    push: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpedanceSettings:
    """The machine, the printed tables, and contact tasks of the intended kind.

    Attributes:
        machine: the RCID.
        geometry: Table 1 by parameter of the machine file: the paper's symbol, unit, factor from SI
            and value.
        stroke: printed displacement of the actuators, m.
        radius, turn: sphere and rotation that the actuators must reach, m and rad.
        total_mass, payload, speed: printed values, kg and m/s.
        height, diameter: printed dimensions of the machine with its platform up, m.
        acceleration_range, force_range: printed ranges of the sensors on drives and platform, m/s^2
            and N.
        singular: printed pitch at which the Euler angles are singular, rad.
        poses, seed: random poses from which the search for extreme strokes starts.
        surface: height of the surface above the platform's home, m.
        surface_stiffness, surface_damping: stiffness and damping of the surface, N/m and N s/m.
        duration: duration of the reference motion, s.
        end: duration of a simulation, s.
        step: step of the integrator, s.
        turning: moment of inertia, damping and stiffness of the platform's rotation, kg m^2, N m s,
            N m.
        tasks: impedance control, and force control along z with impedance control in x and y.
    """

    machine: str = "rcid"
    geometry: Mapping[str, tuple[str, str, float, float]] = field(
        default_factory=lambda: {
            "base_radius": ("r_B", "mm", 1e3, 80.0),
            "plate_radius": ("r_P", "mm", 1e3, 40.0),
            "phi_B": ("φ_B", "deg", float(np.rad2deg(1.0)), 15.0),
            "phi_P": ("φ_P", "deg", float(np.rad2deg(1.0)), 0.0),
            "link_length": ("L", "mm", 1e3, 97.98),
        }
    )
    stroke: float = 0.070
    radius: float = 0.010
    turn: float = float(np.deg2rad(15.0))
    total_mass: float = 9.7
    payload: float = 5.0
    speed: float = 0.22
    height: float = 0.530
    diameter: float = 0.265
    acceleration_range: float = 5 * 9.81
    force_range: float = 200.0
    singular: float = float(np.deg2rad(90.0))
    poses: int = 4000
    seed: int = 1
    surface: float = 0.003
    surface_stiffness: float = 20e3
    surface_damping: float = 20.0
    duration: float = 0.25
    end: float = 0.5
    step: float = 1e-3
    turning: tuple[float, float, float] = (0.01, 1.0, 25.0)
    tasks: tuple[Task, ...] = (
        Task(
            name="impedance",
            mass=2.0,
            damping=(126.0, 126.0, 126.0),
            stiffness=(2e3, 2e3, 2e3),
            way=(5e-3, 0, 6e-3),
        ),
        Task(
            name="force",
            mass=2.0,
            damping=(126.0, 126.0, 300.0),
            stiffness=(2e3, 2e3, 0.0),
            way=(5e-3, 0, 0),
            push=20.0,
        ),
    )


SETTINGS = ImpedanceSettings()
