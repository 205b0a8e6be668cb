"""A loaded and heated Gantry-Tau as a plant: rods, drives and weight in a few lines of NumPy.

Nothing here uses `tauloop.elasticity`. Rods between balls are axial springs, the plate is rigid, and
each cart moves along x against its drive. Rigid poses and heated ones follow from the lengths of the
rods by Newton's method.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import tauloop as tl
from tauloop.calibration import Position, Series

GANTRY = Path(__file__).parents[2] / "examples" / "elastic" / "gantry_tau.yaml"
RODS = ("triple1", "triple2", "triple3", "pair1", "pair2", "single1")
CART_OF_ROD = (0, 0, 0, 1, 1, 2)
#: Tool in the frame of the plate, m.
TOOL = np.array([0.0, 0.0, -0.2])
#: Poses are within this distance of the reference in x, y and z, m.
WORK_VOLUME = np.array([0.45, 0.2, 0.2])
#: Compliances of rods and drives in the file, m/N, and coefficients of expansion, 1/K.
ROD_COMPLIANCE, DRIVE_COMPLIANCE, EXPANSION = 0.04e-6, 0.05e-6, 23e-6
FORCE, NOISE = 500.0, 20e-6
GRAVITY = 9.81
LINE_MASS = 1.2


def single_parts_text() -> str:
    """Return the example with a compliance and an expansion for each rod, and one for each drive."""
    text = GANTRY.read_text()
    section = (
        "section: {EA: length/c, EI: 8700 N m^2, GJ: 6500 N m^2, mass_per_length: 1.2 kg/m, "
        "expansion: alpha}"
    )
    text = text.replace("tube: {outer: tube_outer, wall: tube_wall, material: aluminium}", section)
    for name, count in (("triple", 3), ("pair", 2), ("single", 1)):
        place = text.index("      length:", text.index(f"  - name: {name}\n"))
        compliance = ", ".join(["0.04 um/N"] * count)
        expansion = ", ".join(["23e-6 1/K"] * count)
        added = f"      c: [{compliance}]\n      alpha: [{expansion}]\n"
        text = text[:place] + added + text[place:]
    text = text.replace(
        "gain: [1, 1, 1]\n", "gain: [1, 1, 1]\n      give: [0.05 um/N, 0.05 um/N, 0.05 um/N]\n"
    )
    text = text.replace("stiffness: drive_stiffness", "stiffness: 1/give")
    return re.sub(r"  (tube_outer|tube_wall|drive_stiffness): .*\n", "", text)


@dataclass(frozen=True, kw_only=True)
class Plant:
    """A real machine.

    Attributes:
        points: (6, 3) ends of the rods on their carts, (6, 3) ends on the plate.
        lengths: (6,) lengths of the rods, m.
        compliances: (9,) of six rods and three drives, m/N.
        expansions: (6,) of the rods, 1/K.
        mass: of the plate, kg.
    """

    points: tuple[np.ndarray, np.ndarray]
    lengths: np.ndarray
    compliances: np.ndarray
    expansions: np.ndarray
    mass: float

    def pose(self, carts: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return position (3,) and rotation (3, 3) of the plate at positions of the carts (3, 3)."""
        on_cart, on_plate = self.points
        start = on_cart + carts[list(CART_OF_ROD)]
        p, R = np.zeros(3), np.eye(3)
        for _ in range(30):
            arm = on_plate @ R.T
            u = p + arm - start
            distance = np.linalg.norm(u, axis=1)
            u /= distance[:, None]
            step = np.linalg.solve(np.hstack([u, np.cross(arm, u)]), lengths - distance)
            p = p + step[:3]
            R = rotation(step[3:]) @ R
            if np.abs(step).max() < 1e-14:
                break
        return p, R

    def tool(
        self, carts: np.ndarray, wrench: np.ndarray, rises: np.ndarray, *, is_heavy: bool = True
    ) -> np.ndarray:
        """Return the tool center point (3,) under a wrench (6,) and rises of temperature (6,)."""
        on_cart, on_plate = self.points
        p, R = self.pose(carts, self.lengths * (1.0 + self.expansions * rises))
        arm = on_plate @ R.T
        u = p + arm - on_cart - carts[list(CART_OF_ROD)]
        u /= np.linalg.norm(u, axis=1)[:, None]
        # Displacements: plate (3), rotation of the plate (3), carts along x (3).
        elongation = np.zeros((9, 9))
        elongation[:6, :3], elongation[:6, 3:6] = u, np.cross(arm, u)
        elongation[np.arange(6), 6 + np.array(CART_OF_ROD)] = -u[:, 0]
        elongation[6:, 6:] = np.eye(3)
        K = elongation.T @ (elongation / self.compliances[:, None])
        force = np.zeros(9)
        lever = R @ TOOL
        force[:3], force[3:6] = wrench[:3], wrench[3:] + np.cross(lever, wrench[:3])
        if is_heavy:
            halves = 0.5 * LINE_MASS * self.lengths
            down = np.array([0.0, 0.0, -GRAVITY])
            force[:3] += (self.mass + halves.sum()) * down
            force[3:6] += (halves[:, None] * np.cross(arm, down)).sum(axis=0)
        d = np.linalg.solve(K, force)
        return np.asarray(p + lever + d[:3] + np.cross(d[3:6], lever))


def rotation(turn: np.ndarray) -> np.ndarray:
    """Return the rotation (3, 3) of a rotation vector (Rodrigues)."""
    angle = float(np.linalg.norm(turn))
    x, y, z = turn
    S = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    if angle < 1e-12:
        return np.eye(3) + S
    return np.asarray(
        np.eye(3) + np.sin(angle) / angle * S + (1 - np.cos(angle)) / angle**2 * S @ S
    )


def plant_of(
    mechanism: tl.Mechanism,
    *,
    compliances: np.ndarray | None = None,
    expansions: np.ndarray | None = None,
    longer: np.ndarray | None = None,
) -> Plant:
    """Return the plant of a machine with relative errors (9,) and (6,), and longer rods (6,)."""
    value = mechanism.parameters.values
    ends = [
        np.array([[value[f"{rod}.{end}_{axis}"] for axis in "xyz"] for rod in RODS]) for end in "AB"
    ]
    nominal = np.repeat([ROD_COMPLIANCE, DRIVE_COMPLIANCE], [6, 3])
    lengths = np.array([value[f"{rod}.length"] for rod in RODS])
    return Plant(
        points=(ends[0], ends[1]),
        lengths=lengths + (0.0 if longer is None else longer),
        compliances=nominal * (1.0 + (0.0 if compliances is None else compliances)),
        expansions=EXPANSION * (1.0 + (np.zeros(6) if expansions is None else expansions)),
        mass=value["m_p"],
    )


def cart_positions(mechanism: tl.Mechanism, encoders: np.ndarray) -> np.ndarray:
    """Return the positions (N, 3, 3) of the carts: each motor reads the position along x."""
    value = mechanism.parameters.values
    carts = np.zeros((len(encoders), 3, 3))
    carts[:, :, 0] = encoders
    for k in range(3):
        carts[:, k, 1:] = value[f"track{k + 1}.track_y"], value[f"track{k + 1}.track_z"]
    return carts


def encoders_at(model: tl.Model, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return positions of the motors (N, 3) at random poses in the work volume."""
    positions = rng.uniform(-1.0, 1.0, (count, 3)) * WORK_VOLUME
    return np.asarray(model.actuator_position(model.inverse_kinematics(positions).q))


def measured(
    mechanism: tl.Mechanism,
    plant: Plant,
    encoders: np.ndarray,
    *,
    loads: np.ndarray | None = None,
    rises: np.ndarray | None = None,
) -> np.ndarray:
    """Return the positions (N, 3) of the plant's tool without noise."""
    count = len(encoders)
    wrenches = np.zeros((count, 6)) if loads is None else loads
    temperatures = np.zeros((count, 6)) if rises is None else rises
    carts = cart_positions(mechanism, encoders)
    return np.array([plant.tool(carts[i], wrenches[i], temperatures[i]) for i in range(count)])


def loaded_series(
    mechanism: tl.Mechanism,
    plant: Plant,
    encoders: np.ndarray,
    loads: np.ndarray,
    rng: np.random.Generator | None = None,
) -> Series:
    """Return a series of positions under loads, with noise if a generator is given."""
    readings = measured(mechanism, plant, encoders, loads=loads)
    if rng is not None:
        readings = readings + NOISE * rng.standard_normal(readings.shape)
    tracker = Position(name="tracker")
    return Series(
        instrument=tracker, encoders=encoders, readings=readings, noise=NOISE, loads=loads
    )


def forces(poses: int) -> np.ndarray:
    """Return loads (3 N, 6): a force along x, y and z at each pose."""
    loads = np.zeros((3 * poses, 6))
    loads[np.arange(3 * poses), np.tile([0, 1, 2], poses)] = FORCE
    return loads
