"""Measurements of machines whose geometry is known, worked out with numbers only: apart from the code they test."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from tauloop import Mechanism, Model, load
from tauloop.calibration import (
    Contact,
    Distance,
    Inclinometer,
    Instrument,
    JointSensor,
    Orientation,
    Plane,
    Pose,
    Position,
    Series,
    Sphere,
)

#: The 21 parameters of the paper's calibration, and the 51 of the six-link error model
#: (machines.md, section 2).
P21 = ("track*.length", "track*.offset_?", "track*.yaw", "track*.pitch", "track*.gain")
P51 = ("*.length", "*.A_?", "*.B_?", "track*.yaw", "track*.pitch", "track*.gain")


@functools.cache
def machine(name: str) -> Mechanism:
    return load(name)


@functools.cache
def home(name: str) -> np.ndarray:
    """Actuator positions at the reference pose."""
    model = Model(machine(name))
    return model.actuator_position(model.assembly.q[None, :])[0]


def encoders(name: str, count: int, rng: np.random.Generator, stroke: float = 0.15) -> np.ndarray:
    start = home(name)
    return start + rng.uniform(-stroke, stroke, (count, len(start)))


def tool_poses(
    true: Mechanism, positions: np.ndarray
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Tool centre point (N, 3), orientation (N, 3, 3) and all coordinates by name, by the kinematics of `Model`."""
    state = Model(true).forward_kinematics(positions)
    q = {name: state.q[:, i] for i, name in enumerate(state.coordinate_names)}
    body = true.platform.tool.body
    origin = np.stack([q[f"platform.{letter}"] for letter in "xyz"], axis=1)
    turns = [f"platform.q{letter}" for letter in "xyzw"]
    rotation = (
        Rotation.from_quat(np.stack([q[name] for name in turns], axis=1))
        if turns[0] in q
        else Rotation.identity(len(origin))
    )
    assert body == true.platform.body
    assert not true.platform.tool.turns
    offset = [true.value(component) for component in true.platform.tool.position]
    return origin + rotation.apply(offset), rotation.as_matrix(), q


def readings(instrument: Instrument, true: Mechanism, positions: np.ndarray) -> np.ndarray:
    """What the instrument reads without noise."""
    p, R, q = tool_poses(true, positions)
    target = np.array(getattr(instrument, "target", (0.0, 0.0, 0.0)))
    point = p + R @ target
    if isinstance(instrument, JointSensor):
        return q[instrument.coordinate][:, None]
    if isinstance(instrument, Distance):
        return np.linalg.norm(point - np.array(instrument.center), axis=1, keepdims=True)
    if isinstance(instrument, Contact):
        surface = instrument.surface
        if isinstance(surface, Plane):
            n = np.array(surface.normal) / np.linalg.norm(surface.normal)
            return ((point - np.array(surface.point)) @ n)[:, None]
        assert isinstance(surface, Sphere)
        return (
            np.linalg.norm(point - np.array(surface.center), axis=1, keepdims=True) - surface.radius
        )
    if isinstance(instrument, Inclinometer):
        up = R.transpose(0, 2, 1) @ np.array([0.0, 0.0, 1.0])
        return np.stack([np.arctan2(up[:, 1], up[:, 2]), -np.arcsin(up[:, 0])], axis=1)
    assert isinstance(instrument, Position | Pose | Orientation)
    w, x, y, z = instrument.frame.quaternion
    R_F = Rotation.from_quat([x, y, z, w]).as_matrix()
    seen = (point - np.array(instrument.frame.position)) @ R_F
    w, x, y, z = getattr(instrument, "target_quaternion", (1.0, 0.0, 0.0, 0.0))
    R_T = Rotation.from_quat([x, y, z, w]).as_matrix()
    turned = np.roll(Rotation.from_matrix(R_F.T @ R @ R_T).as_quat(), 1, axis=1)
    if isinstance(instrument, Position):
        return seen[:, ["xyz".index(letter) for letter in instrument.components]]
    return turned if isinstance(instrument, Orientation) else np.hstack([seen, turned])


def disturbed(
    instrument: Instrument, values: np.ndarray, noise: float, rng: np.random.Generator
) -> np.ndarray:
    """Readings with noise; quaternions turn by a random rotation vector."""
    if isinstance(instrument, Pose | Orientation):
        turn = Rotation.from_quat(np.roll(values[:, -4:], -1, axis=1))
        noisy = turn * Rotation.from_rotvec(noise * rng.standard_normal((len(values), 3)))
        quaternion = np.roll(noisy.as_quat(), 1, axis=1)
        moved = values[:, :-4] + noise * rng.standard_normal((len(values), values.shape[1] - 4))
        return np.hstack([moved, quaternion])
    return values + noise * rng.standard_normal(values.shape)


def measured(
    name: str,
    true: dict[str, float],
    instrument: Instrument,
    positions: np.ndarray,
    noise: float,
    seed: int = 0,
) -> Series:
    """A series of a machine of other geometry; `true` are values of leaf parameters, SI."""
    values = readings(instrument, machine(name).with_values(true), positions)
    rng = np.random.default_rng(seed)
    return Series(
        instrument=instrument,
        encoders=positions,
        readings=disturbed(instrument, values, noise, rng),
        noise=noise,
    )


def written(series: Series, path: Path, name: str = "gantry_tau_3dof") -> Path:
    """A bare table of positions or gaps in mm, to 1e-9 mm."""
    axes = "xyz" if series.readings.shape[1] == 3 else ["gap"]
    header = [f"encoder.{a.name} [mm]" for a in machine(name).actuators] + [
        f"measured.{c} [mm]" for c in axes
    ]
    values = 1e3 * np.hstack([series.encoders, series.readings])
    np.savetxt(path, values, delimiter=",", header=",".join(header), comments="", fmt="%.9f")
    return path


def part_errors(
    name: str, patterns: tuple[str, ...], size: float, rng: np.random.Generator
) -> dict[str, float]:
    """Values of the parameters that patterns name, each off by a normal error of a size (m, rad or plain)."""
    from fnmatch import fnmatchcase

    return {
        p.name: p.value + size * float(rng.standard_normal())
        for p in machine(name).parameters
        if any(fnmatchcase(p.name, pattern) for pattern in patterns)
        and p.group in ("geometry", "drive")
    }
